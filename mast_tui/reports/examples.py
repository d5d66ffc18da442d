"""The parts of a report besides figures: the modes that decided traces, and example labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from mast_tui.figures.signatures.model import FAILED, PRESENT, SignatureInput
from mast_tui.figures.source.verdicts import GoldOf, last_pass_numbers
from mast_tui.gold.model import GoldLabel
from mast_tui.gold.overlaps import Order
from mast_tui.labels import GOLD, AnnotatorKind, Label, Severity, annotator_kind

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Mode, Taxonomy
    from mast_tui.workspace import Workspace

MOST_EXAMPLES: Final = 3
"""The number of example labels of each mode and group, each from another trace."""


class LabelPassage(NamedTuple):
    """The quote of a label, or without one its first span; a note has no key.

    ``start`` and ``end`` are the code points of the quote in the text of its span, if known.
    """

    key: str | None
    quote: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class LabelExample:
    """A label of a failed trace.

    Attributes:
        group: The name of the group, or ``OVERALL``.
        code: The code of the mode.
        trace: The id of the trace.
        first: The number of the first span on screen, from 1; None if unknown.
        last: The number of the last span on screen; None if unknown.
        whole: Whether the label is on the whole trace.
        text: The quote of the label, otherwise the text of its first span if known.
        note: The note of the label.
        fatal: Whether the label is fatal.
    """

    group: str
    code: str
    trace: str
    first: int | None
    last: int | None
    whole: bool
    text: str
    note: str
    fatal: bool


@dataclass(frozen=True, slots=True)
class Extras:
    """The taxonomy with its strategies, the traces that modes decided, and example labels.

    Attributes:
        taxonomy: The taxonomy with its strategies.
        fatal_counts: The number of failed traces in which each mode is fatal, by group and code.
            Groups without fatal labels have no entry.
        examples: The example labels.
    """

    taxonomy: Taxonomy | None = None
    fatal_counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    examples: tuple[LabelExample, ...] = ()


def extras_from_workspace(
    workspace: Workspace,
    taxonomy: Taxonomy,
    signature_input: SignatureInput,
    *,
    gold_of: GoldOf,
    order_of: Callable[[str], Order],
    text_of: Callable[[str, LabelPassage], str],
    shown_name_of: Callable[[str], str] = str,
) -> Extras:
    """Count the failed traces that each mode decided, and choose example labels.

    A mode has decided a trace if its labels in the trace are fatal.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        signature_input: The traces of the report, with their groups, outcomes and verdicts.
        gold_of: Returns the gold of traces by trace id.
        order_of: Returns the order of a trace's spans: the index of each key.
        text_of: Returns the text of a passage by trace id; empty if it cannot be read.
        shown_name_of: Returns the name or pseudonym of the author of a note.
    """
    fatal_units = _fatal_units(workspace, taxonomy, signature_input)
    units = list(_example_units(signature_input, fatal_units))
    labels = _labels_of_traces(
        workspace, taxonomy, signature_input, {unit.trace for unit in units}, gold_of
    )
    examples = []
    for unit in units:
        labels_of_trace = labels.get(unit.trace, ())
        label = _best_label(label for label in labels_of_trace if label.mode == unit.mode.slug)
        if label is None:
            continue
        example = _example_of_label(label, unit, order_of(unit.trace), text_of, shown_name_of)
        # A label without any text is no useful example.
        if example.text or example.note:
            examples.append(example)
    return Extras(taxonomy, _fatal_counts(signature_input, fatal_units), tuple(examples))


def _fatal_counts(
    signature_input: SignatureInput, fatal_units: Collection[tuple[int, int]]
) -> dict[str, Counter[str]]:
    """Return the number of traces in which each mode is fatal, by group and code."""
    counts_by_group = {
        group: Counter(
            signature_input.modes[column].code
            for row, column in sorted(fatal_units)
            if is_member[row]
        )
        for group, is_member in signature_input.members().items()
    }
    return {group: counts for group, counts in counts_by_group.items() if counts}


class _ExampleUnit(NamedTuple):
    """A failed trace of a group in which a mode is present."""

    group: str
    trace: str
    mode: Mode


def _example_units(
    signature_input: SignatureInput, fatal_units: Collection[tuple[int, int]]
) -> Iterator[_ExampleUnit]:
    """Yield a few failed traces of each group and mode, those with fatal labels first."""
    for group, is_member in signature_input.members().items():
        rows = np.flatnonzero(is_member & (signature_input.outcome == FAILED))
        for column, mode in enumerate(signature_input.modes):
            rows_with_mode = rows[signature_input.verdicts[rows, column] == PRESENT].tolist()
            preferred = nsmallest(
                MOST_EXAMPLES,
                (
                    ((row, column) not in fatal_units, signature_input.traces[row])
                    for row in rows_with_mode
                ),
            )
            yield from (_ExampleUnit(group, trace, mode) for _, trace in preferred)


def _best_label(labels: Iterable[Label | GoldLabel]) -> Label | GoldLabel | None:
    """Return the best label for an example: fatal, on a place, with a quote; None without any."""
    return min(
        labels,
        key=lambda label: (
            not _is_fatal(label),
            label.target.is_whole,
            not _passage_of(label).quote,
        ),
        default=None,
    )


def _labels_of_traces(
    workspace: Workspace,
    taxonomy: Taxonomy,
    signature_input: SignatureInput,
    traces: set[str],
    gold_of: GoldOf,
) -> Mapping[str, tuple[Label | GoldLabel, ...]]:
    """Return the labels of some traces by trace: those of the gold, or of the annotator."""
    if signature_input.label_source == GOLD:
        return {trace: gold.labels for trace, gold in gold_of(sorted(traces)).items()}
    # A judge's labels count even in an unfinished pass.
    is_judge = signature_input.label_source_kind == AnnotatorKind.JUDGE
    return {
        trace: workspace.labels(
            trace_id=trace,
            annotator=signature_input.label_source,
            taxonomy=taxonomy.ref,
            pass_number="last" if is_judge else "finished",
        )
        for trace in sorted(traces)
    }


def _example_of_label(
    label: Label | GoldLabel,
    unit: _ExampleUnit,
    order: Order,
    text_of: Callable[[str, LabelPassage], str],
    shown_name_of: Callable[[str], str],
) -> LabelExample:
    """Return a label as an example, with the numbers of its spans on screen."""
    target = label.target
    first_index = None if target.first is None else order(target.first)
    last_index = None if target.last is None else order(target.last)
    return LabelExample(
        group=unit.group,
        code=unit.mode.code,
        trace=unit.trace,
        first=None if first_index is None else first_index + 1,
        last=None if first_index is None or last_index is None else last_index + 1,
        whole=target.is_whole,
        text=text_of(unit.trace, _passage_of(label)),
        note=text_of(unit.trace, LabelPassage(None, _note_of(label, shown_name_of))),
        fatal=_is_fatal(label),
    )


def _passage_of(label: Label | GoldLabel) -> LabelPassage:
    target = label.target
    evidence = label.evidence if isinstance(label, Label) else None
    if target.quote or evidence is None or not evidence.quote:
        return LabelPassage(target.first, target.quote or "", target.char_start, target.char_end)
    return LabelPassage(evidence.key, evidence.quote, evidence.char_start, evidence.char_end)


def _note_of(label: Label | GoldLabel, shown_name_of: Callable[[str], str]) -> str:
    if isinstance(label, Label):
        return label.note
    return " · ".join(f"{shown_name_of(author)}: {note}" for author, note in label.notes if note)


def _is_fatal(label: Label | GoldLabel) -> bool:
    decisive = label.decisive if isinstance(label, Label) else None
    return label.severity is Severity.FATAL or decisive is True


def _fatal_units(
    workspace: Workspace, taxonomy: Taxonomy, signature_input: SignatureInput
) -> set[tuple[int, int]]:
    """Return the modes that were fatal in failed traces, as (row of the trace, column of the mode).

    An annotator makes a mode fatal with any fatal label of it. For gold, all people whose labels of
    the mode have a severity must agree.
    """
    filters = {"taxonomy": taxonomy.ref}
    if signature_input.label_source != GOLD:
        filters["annotator"] = signature_input.label_source
    is_judge = signature_input.label_source_kind == AnnotatorKind.JUDGE
    last_passes = last_pass_numbers(workspace, filters, unfinished=is_judge)
    row_by_trace = {
        trace: row
        for row, trace in enumerate(signature_input.traces)
        if signature_input.outcome[row] == FAILED
    }
    if is_judge:  # leave out the examples in its prompts
        for trace in workspace.unmeasured_traces(signature_input.label_source):
            row_by_trace.pop(trace, None)
    column_by_mode = {mode.slug: column for column, mode in enumerate(signature_input.modes)}
    fatal_by_annotator: dict[tuple[int, int], dict[str, bool]] = {}

    def collect(records: Iterable[tuple[Any, ...]]) -> None:
        """Record for each trace and mode which annotators have a fatal label."""
        for name, trace, number, mode, severity, decisive in records:
            row = row_by_trace.get(trace)
            column = column_by_mode.get(mode)
            if row is None or column is None or last_passes.get((name, trace)) != number:
                continue
            if signature_input.label_source == GOLD and not annotator_kind(name).is_person:
                continue
            if signature_input.verdicts[row, column] == PRESENT:
                is_fatal_by_name = fatal_by_annotator.setdefault((row, column), {})
                is_fatal = severity == Severity.FATAL or decisive == 1
                is_fatal_by_name[name] = is_fatal_by_name.get(name, False) or is_fatal

    label_columns = ("annotator", "trace_id", "pass_number", "mode", "severity", "decisive")
    # Only labels with a severity or the field ``decisive`` count.
    for not_null in ("severity", "decisive"):
        workspace.read_columns(
            "labels", label_columns, collect, equal_to=filters, not_null=not_null
        )
    return {
        unit
        for unit, is_fatal_by_name in fatal_by_annotator.items()
        if all(is_fatal_by_name.values())
    }
