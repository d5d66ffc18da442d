"""Everything that is kept as JSON: facts, labels, decisions, studies, what a run was asked for.

Whose label it is, and of which trace, taxonomy and pass, stands with the event that holds it and is
not repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from types import MappingProxyType
from typing import Any, Final

from mast_tui.gold.model import Decision, Guideline, Said
from mast_tui.labels import Evidence, Label, QuoteCounts, Target, VerdictValue
from mast_tui.study.model import Assignment, Draw, Membership, Release, Study
from mast_tui.workspace.events.fields import Fields
from mast_tui.workspace.events.layout import Kind, Layout, Values, always, filled, known
from mast_tui.workspace.events.types import (
    Decided,
    EventKind,
    Fact,
    GuidelineSet,
    Judged,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    LookAgainSet,
    PassFinished,
    PassKindSet,
    PassStarted,
    PassUnfinished,
    PassWithdrawn,
    Revealed,
    ReviewGiven,
    ReviewSet,
    SightSet,
    SpanNoteSet,
    SpansRead,
    StudySet,
    SuggestionsSeen,
    VerdictSet,
)
from mast_tui.workspace.records import RunSettings, Usage


def named_from(keys: Sequence[str]) -> tuple[str, str] | None:
    """The first and last span that a judge had named, None for no keys at all."""
    if not keys:
        return None
    if len(keys) != 2:
        raise ValueError("'named' holds a first and a last key")
    return keys[0], keys[1]


def _check_evidence(evidence: Evidence) -> None:
    if evidence.placed and evidence.key is None:
        raise ValueError("evidence with a place in a span names the span")


def _check_label(label: Label) -> None:
    if label.confidence is not None and not 0 <= label.confidence <= 1:
        raise ValueError(f"a confidence lies between 0 and 1, not at {label.confidence}")


def _check_quotes(quotes: QuoteCounts) -> None:
    if min(astuple(quotes)) < 0:
        raise ValueError("no kind of quotes is counted below nothing")


def _check_usage(usage: Usage) -> None:
    if min(astuple(usage)) < 0:
        raise ValueError("a run uses no less than nothing")


def _check_verdict(verdict: VerdictSet) -> None:
    if VerdictValue.PRESENT in (verdict.before, verdict.after):
        raise ValueError("'present' is said with a label, not with a verdict")


class _TargetLayout(Layout[Target]):
    """A target names its last span only where that is another than the first."""

    def write(self, record: Target) -> Values:
        values = super().write(record)
        if record.last == record.first:
            values.pop("last", None)
        return values

    def read(self, fields: Fields, given: Mapping[str, object] | None = None) -> Target:
        first, last = fields.text_or_none("first"), fields.text_or_none("last")
        return Target(
            first,
            first if last is None else last,
            fields.text_or_none("quote"),
            fields.whole_or_none("start"),
            fields.whole_or_none("end"),
        )


TARGET: Final = _TargetLayout(
    Target, known("first", "last", "quote", "start:char_start", "end:char_end")
)
_EVIDENCE: Final = Layout(
    Evidence,
    known("key"),
    always("quote"),
    known("match", "named", "wording", "start:char_start", "end:char_end"),
    kinds={"named": Kind(list, lambda fields, name: named_from(fields.texts(name)))},
    check=_check_evidence,
)
LABEL: Final = Layout(
    Label,
    always("id", "mode", "target"),
    filled("note", "severity", "origin", "suggestion", "saw_suggestions", "created_at"),
    known("evidence", "confidence", "decisive"),
    filled("remedy"),
    given=("annotator", "trace_id", "taxonomy", "pass_number"),
    parts=(TARGET, _EVIDENCE),
    check=_check_label,
)
_SAID: Final = Layout(Said, filled("annotator", "value"), always("targets"), parts=(TARGET,))
DECISION: Final = Layout(
    Decision,
    always("mode", "item", "value", "targets", "sides", "said", "decided_by", "decided_at"),
    filled("judge_seen", "reason"),
    parts=(TARGET, _SAID),
)
GUIDELINE: Final = Layout(
    Guideline,
    always("id", "mode", "text", "written_by", "written_at"),
    filled("trace_id", "item"),
)
STUDY: Final = Layout(
    Study,
    always("taxonomy", "annotators", "adjudicators", "batches", "per_trace", "overlap", "seed"),
    always("blind", "withheld", "retests", "open_modes", "names_hidden", "judge_first"),
    always("boundaries", "reasons"),
    filled("memberships", "releases", "draws", "assignments"),
    kinds={
        "batches": Kind(
            lambda batches: [{"traces": list(batch)} for batch in batches],
            lambda fields, name: tuple(one.texts("traces") for one in fields.children(name)),
        )
    },
    parts=(
        Layout(
            Membership,
            always("annotator", "first", "end"),
            filled("weight"),
            kinds={
                "weight": Kind(
                    lambda weight: None if weight == 1 else weight,
                    lambda fields, name: fields.number(name) if fields.has(name) else 1.0,
                )
            },
        ),
        Layout(Release, always("annotator", "traces")),
        Layout(Assignment, always("trace_id", "annotators")),
        Layout(
            Draw,
            always("lot", "of", "by", "seed"),
            filled("chances", "judge"),
            kinds={"chances": Kind(list, Fields.numbers)},
        ),
    ),
)
SETTINGS: Final = Layout(
    RunSettings,
    always("model", "prompt", "host"),
    filled("parameters", "examples"),
    known("price_in", "price_out", "price_cached"),
    given=("form",),
    kinds={"parameters": Kind(dict, Fields.named_texts)},
)
"""``form`` is known only later, and stands beside."""

USAGE: Final = Layout(
    Usage, filled("requests", "tokens_in", "tokens_out", "tokens_cached"), check=_check_usage
)
QUOTES: Final = Layout(
    QuoteCounts,
    filled("exact", "spacing", "reworded", "in_parts", "altered", "not_found", "unsorted"),
    check=_check_quotes,
)
"""How many quotes were found in which way; none of a kind is left out."""

_FINISHED: Final = Layout(PassFinished, always("open_modes"), known("read", "spans", "at"))
_REVIEW: Final = Layout(ReviewGiven, always("answer"), filled("label", "reason"))
_STRETCHES: Final = Kind(
    lambda runs: [{"first": first, "last": last} for first, last in runs],
    lambda fields, name: tuple(
        (run.text("first"), run.text("last")) for run in fields.children(name)
    ),
)
_FACTS: Final[Mapping[EventKind, Layout[Any]]] = MappingProxyType(
    {
        EventKind.PASS_STARTED: Layout(PassStarted, always("kind"), filled("copy_of", "withheld")),
        EventKind.PASS_WITHDRAWN: Layout(PassWithdrawn, always("kind"), filled("copy_of")),
        EventKind.PASS_KIND_SET: Layout(PassKindSet, always("before", "after")),
        EventKind.PASS_FINISHED: _FINISHED,
        EventKind.PASS_UNFINISHED: Layout(PassUnfinished, always("was"), parts=(_FINISHED,)),
        EventKind.LABEL_ADDED: Layout(LabelAdded, always("label"), parts=(LABEL,)),
        EventKind.LABEL_CHANGED: Layout(LabelChanged, always("before", "after"), parts=(LABEL,)),
        EventKind.LABEL_REMOVED: Layout(LabelRemoved, always("label"), parts=(LABEL,)),
        EventKind.VERDICT_SET: Layout(
            VerdictSet, always("mode", "before", "after"), check=_check_verdict
        ),
        EventKind.REVIEW_SET: Layout(
            ReviewSet, always("suggestion", "before", "after"), parts=(_REVIEW,)
        ),
        EventKind.SPAN_NOTE_SET: Layout(SpanNoteSet, always("key", "before", "after")),
        EventKind.SPANS_READ: Layout(
            SpansRead, always("keys"), filled("runs"), kinds={"runs": _STRETCHES}
        ),
        EventKind.SUGGESTIONS_SEEN: Layout(SuggestionsSeen),
        EventKind.REVEALED: Layout(Revealed, always("what")),
        EventKind.SIGHT_SET: Layout(SightSet, always("before", "blind")),
        EventKind.DECIDED: Layout(Decided, always("item", "before", "after"), parts=(DECISION,)),
        EventKind.JUDGED: Layout(Judged, always("looks_at", "absent"), filled("run", "unsure")),
        EventKind.STUDY_SET: Layout(StudySet, always("before", "after"), parts=(STUDY,)),
        EventKind.GUIDELINE_SET: Layout(
            GuidelineSet, always("id", "before", "after"), parts=(GUIDELINE,)
        ),
        EventKind.LOOK_AGAIN_SET: Layout(LookAgainSet, always("before", "after")),
    }
)
_KINDS: Final[dict[object, EventKind]] = {layout.cls: kind for kind, layout in _FACTS.items()}
KIND_NAMES: Final[dict[object, str]] = {fact: kind.value for fact, kind in _KINDS.items()}
"""The name of each fact's kind as it is written; an enum's own ``value`` takes long to look up."""

_WITHOUT_TRACE: Final = frozenset(
    {EventKind.SIGHT_SET, EventKind.STUDY_SET, EventKind.GUIDELINE_SET}
)
_WITHOUT_PASS: Final = _WITHOUT_TRACE | {EventKind.DECIDED}
_OF_A_TAXONOMY: Final = frozenset({EventKind.STUDY_SET, EventKind.GUIDELINE_SET})


def kind_of(fact: Fact) -> EventKind:
    """The kind of event that records this fact."""
    return _KINDS[type(fact)]


def fact_to_dict(fact: Fact) -> Values:
    """A fact's own values."""
    return _FACTS[_KINDS[type(fact)]].write(fact)


def fact_from(
    kind: EventKind,
    fields: Fields,
    *,
    annotator: str,
    trace_id: str | None,
    taxonomy: str | None,
    pass_number: int | None,
) -> Fact:
    """The fact of this kind with these values; raises ``ValueError`` in words."""
    if kind not in _WITHOUT_TRACE and (trace_id is None or taxonomy is None):
        raise ValueError(f"an event {kind.value!r} names its trace and its taxonomy")
    if kind in _OF_A_TAXONOMY and taxonomy is None:
        raise ValueError(f"an event {kind.value!r} names its taxonomy")
    if kind not in _WITHOUT_PASS and pass_number is None:
        raise ValueError(f"an event {kind.value!r} names its pass")
    given = {
        "annotator": annotator,
        "trace_id": trace_id,
        "taxonomy": taxonomy,
        "pass_number": pass_number,
    }
    fact: Fact = _FACTS[kind].read(fields, given)
    return fact


def quote_kinds_from(fields: Fields | None, *, quotes: int, found: int) -> QuoteCounts:
    """How many quotes were found in which way.

    Args:
        fields: counts by kind; None in a run of an earlier version, which did not tell them apart.
        quotes: how many there are.
        found: how many of them were found.

    Raises:
        ValueError: these are no counts.
    """
    if fields is None:
        return QuoteCounts(not_found=max(0, quotes - found), unsorted=found)
    return QUOTES.read(fields)
