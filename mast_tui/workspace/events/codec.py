"""The JSON form of records: facts, labels, decisions, studies, settings of a run.

A label is stored without the annotator, trace, taxonomy and pass, which its event has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from msgspec import Struct, ValidationError, convert, to_builtins

from mast_tui.errors import MastError
from mast_tui.gold.model import Decision
from mast_tui.labels import Label, QuoteCounts
from mast_tui.study.model import Study
from mast_tui.workspace.events.types import (
    FACT_TYPES,
    KIND_OF,
    TAG,
    Fact,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    PassUnfinished,
    StudySet,
)
from mast_tui.workspace.records import RunSettings

Record = TypeVar("Record")
Values = dict[str, Any]

_LABEL_CONTEXT: Final = ("annotator", "trace_id", "taxonomy", "pass_number")
_LABEL_KINDS: Final = frozenset(KIND_OF[fact] for fact in (LabelAdded, LabelRemoved, LabelChanged))
_MISSING: Final = re.compile(r"Object missing required field `(\w+)`")
_QUOTED: Final = re.compile(r"`(\w+)`")
_TYPE_NAMES: Final = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
}
_OMITTED_IF_EMPTY: Final = (
    *("memberships", "releases", "draws", "assignments"),
    *("redact", "redact_patterns", "redact_key"),
)
"""The fields of a study that are omitted if they are empty."""


class InvalidRecord(MastError, ValueError):
    """A record that this version cannot read."""


def read(values: object, record_type: type[Record], name: str) -> Record:
    """Convert plain values to a record.

    Args:
        values: The values, as a JSON parser returns them.
        record_type: The class of the record, or another type that ``msgspec`` supports.
        name: The name of the record in error messages.

    Raises:
        InvalidRecord: A value is missing or has the wrong type.
    """
    try:
        return convert(values, record_type)
    except ValidationError as error:
        # msgspec's message ends with the path of the value, such as "- at `$.fact.label`", and
        # quotes names in backticks.
        text, _, path = str(error).partition(" - at `$")
        text = _MISSING.sub(r"'\1' is missing", text)
        text = _QUOTED.sub(lambda match: _TYPE_NAMES.get(match[1], f"'{match[1]}'"), text)
        raise InvalidRecord(f"{name}{path.removesuffix('`')}: {text}") from None


def to_values(record: Struct) -> Values:
    """Convert a record to plain values, the same for equal records."""
    # A float field may hold an int such as 1, which ``convert`` turns into 1.0.
    values: Values = to_builtins(convert(to_builtins(record), type(record)))
    return values


def label_to_values(label: Label) -> Values:
    """Convert a label to plain values, without the fields that its event has."""
    values = to_values(label)
    _remove_context(values)
    return values


def label_from_values(values: object, context: Mapping[str, object]) -> Label:
    """Convert plain values to a label.

    Args:
        values: The values that ``label_to_values`` returned.
        context: The annotator, trace, taxonomy and pass of the label's event, by the names of the
            label's fields.

    Raises:
        InvalidRecord: The values are no label.
    """
    return read(_with_context(values, context), Label, "label")


def study_to_values(study: Study) -> Values:
    """Convert a study to plain values."""
    values = to_values(study)
    _shorten_study_values(values)
    return values


def study_from_json(text: str) -> Study:
    """Read a study from JSON.

    Raises:
        InvalidRecord: The text describes no study.
    """
    return read(_with_batches_as_lists(json.loads(text)), Study, "study")


def decision_from_json(text: str) -> Decision:
    """Read a decision from JSON.

    Raises:
        InvalidRecord: The text describes no decision.
    """
    return read(json.loads(text), Decision, "decision")


def settings_to_values(settings: RunSettings) -> Values:
    """Convert the settings of a run to plain values, without ``form``."""
    values = to_values(settings)
    values.pop("form", None)
    if settings.parameters:
        values["parameters"] = dict(settings.parameters)
    return values


def settings_from_values(values: object, form: str | None) -> RunSettings:
    """Convert stored values to the settings of a run.

    Args:
        values: The values that ``settings_to_values`` returned.
        form: The form of the answers, which is stored separately.

    Raises:
        InvalidRecord: The values are no settings.
    """
    if not isinstance(values, dict):
        return read(values, RunSettings, "settings")  # raises
    parameters = read(values.get("parameters", {}), dict[str, str], "settings.parameters")
    complete = {**values, "parameters": list(parameters.items()), "form": form}
    return read(complete, RunSettings, "settings")


def quote_counts_from(values: object, *, quotes: int, matched: int) -> QuoteCounts:
    """Convert stored values to the counts of quotes by kind of match.

    Args:
        values: The counts by kind; None for a run before kinds were recorded.
        quotes: The number of quotes.
        matched: The number of quotes found in the trace.

    Raises:
        InvalidRecord: The values are no counts.
    """
    if values is None:
        return QuoteCounts(not_found=max(0, quotes - matched), unsorted=matched)
    return read(values, QuoteCounts, "quote_kinds")


def fact_to_values(fact: Fact) -> Values:
    """Convert a fact to plain values, without its kind and the fields of its event."""
    values = to_values(fact)
    del values[TAG]
    match fact:
        case LabelAdded() | LabelRemoved() | LabelChanged():
            for label in values.values():
                _remove_context(label)
        case StudySet():
            for study in values.values():
                if study is not None:
                    _shorten_study_values(study)
        case PassUnfinished():
            # ``was`` is always a PassFinished, so its kind is not stored.
            del values["was"][TAG]
    return values


def tagged_fact_values(kind: object, payload: object, context: Mapping[str, object]) -> object:
    """Complete the stored values of a fact for ``read``.

    Args:
        kind: The kind of the event, which becomes the tag of the fact.
        payload: The values that ``fact_to_values`` returned.
        context: The annotator, trace, taxonomy and pass of the event, which labels get.

    Raises:
        InvalidRecord: The kind is unknown, or ``context`` lacks a value.
    """
    fact_type = FACT_TYPES.get(kind) if isinstance(kind, str) else None
    if fact_type is None:
        raise InvalidRecord(f"event.kind: unknown kind of event {kind!r:.60}")
    for name in fact_type.context:
        if context[name] is None:
            raise InvalidRecord(f"event: an event {kind!r} names its {name}")
    if not isinstance(payload, dict):
        return payload
    tagged = {**payload, TAG: kind}
    if kind in _LABEL_KINDS:
        for name in ("label", "before", "after"):
            if name in tagged:
                tagged[name] = _with_context(tagged[name], context)
    elif fact_type is StudySet:  # its batches are stored as objects
        for name in ("before", "after"):
            tagged[name] = _with_batches_as_lists(tagged.get(name))
    return tagged


def _remove_context(label: Values) -> None:
    for name in _LABEL_CONTEXT:
        label.pop(name, None)


def _with_context(label: object, context: Mapping[str, object]) -> object:
    return {**label, **context} if isinstance(label, dict) else label


def _shorten_study_values(study: Values) -> None:
    """Remove default values of a study, and make each batch an object."""
    study["batches"] = [{"traces": traces} for traces in study["batches"]]
    for membership in study["memberships"]:
        if membership["weight"] == 1:
            del membership["weight"]
    for name in _OMITTED_IF_EMPTY:
        if not study[name]:
            del study[name]


def _with_batches_as_lists(study: object) -> object:
    """Turn the batches of a stored study back into lists of traces."""
    if not isinstance(study, dict) or not isinstance(study.get("batches"), list):
        return study
    batches = [
        batch.get("traces") if isinstance(batch, dict) else batch for batch in study["batches"]
    ]
    return {**study, "batches": batches}
