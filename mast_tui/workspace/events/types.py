"""The facts that events can record, and their inverses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, TypeVar, get_args

from msgspec import Struct, field, structs

from mast_tui.gold.model import Decision, Guideline
from mast_tui.labels import Label, PassKind, ReviewAnswer, Target, VerdictValue, WholeNumber
from mast_tui.study.model import Study

TAG: Final = "fact"
"""The field that names the kind of a fact."""


class _Fact(Struct, frozen=True, omit_defaults=True, tag_field=TAG):
    """The base class of facts; the tag is the kind of the recording event."""

    context: ClassVar[tuple[str, ...]] = ("trace_id", "taxonomy", "pass_number")
    """The fields that the event must have, besides the annotator."""


class PassStarted(_Fact, frozen=True, tag="pass_started"):
    """The start of a pass; of several starts the first counts.

    ``copy_of`` is the number of the pass whose labels are copied; the copies are separate events.
    ``withheld`` is True if the study hides judges' suggestions in the pass.
    """

    kind: PassKind
    copy_of: WholeNumber | None = None
    withheld: bool = False


class PassWithdrawn(_Fact, frozen=True, tag="pass_withdrawn"):
    """The removal of a pass by undoing the change that opened it."""

    kind: PassKind
    copy_of: WholeNumber | None = None


class PassKindSet(_Fact, frozen=True, tag="pass_kind_set"):
    """The change of an open pass from blind to assisted."""

    before: PassKind
    after: PassKind


class PassFinished(_Fact, frozen=True, tag="pass_finished"):
    """The end of a pass.

    ``open_modes`` is the choice for modes without a verdict: ``leave`` or ``absent``; the verdicts
    are separate events. ``read`` of ``spans`` spans were read, None if unknown. ``at`` is the time
    of the end if it differs from the event's time, as in an import.
    """

    open_modes: str = field(default_factory=lambda: "leave")
    read: WholeNumber | None = None
    spans: WholeNumber | None = None
    at: str | None = None


class PassUnfinished(_Fact, frozen=True, tag="pass_unfinished"):
    """The undo of a finish."""

    was: PassFinished


class LabelAdded(_Fact, frozen=True, tag="label_added"):
    """A new label."""

    label: Label


class LabelRemoved(_Fact, frozen=True, tag="label_removed"):
    """The removal of a label."""

    label: Label


class LabelChanged(_Fact, frozen=True, tag="label_changed"):
    """A change of a label, which keeps its id."""

    before: Label
    after: Label


class VerdictSet(_Fact, frozen=True, tag="verdict_set"):
    """The verdict on a mode, absent or unsure; None removes it."""

    mode: str
    before: VerdictValue | None
    after: VerdictValue | None

    def __post_init__(self) -> None:
        if VerdictValue.PRESENT in (self.before, self.after):
            raise ValueError("use a label, not a verdict, for 'present'")


class ReviewGiven(Struct, frozen=True, omit_defaults=True):
    """The content of a review: the answer, the resulting label, and the reason."""

    answer: ReviewAnswer
    label: str | None = None
    reason: str = ""


class ReviewSet(_Fact, frozen=True, tag="review_set"):
    """The answer to a suggestion; None removes it."""

    suggestion: str
    before: ReviewGiven | None
    after: ReviewGiven | None


class SpanNoteSet(_Fact, frozen=True, tag="span_note_set"):
    """The note on a span; an empty text removes it."""

    key: str
    before: str
    after: str


class SpanRange(Struct, frozen=True, order=True):
    """The spans from a first to a last key."""

    first: str
    last: str


class SpansRead(_Fact, frozen=True, tag="spans_read"):
    """The spans that were read: single keys and ranges."""

    keys: tuple[str, ...]
    # Stored events call the ranges "runs".
    ranges: tuple[SpanRange, ...] = field(default=(), name="runs")


class SuggestionsSeen(_Fact, frozen=True, tag="suggestions_seen"):
    """A judge's suggestions were on screen in this pass."""


class Revealed(_Fact, frozen=True, tag="revealed"):
    """The first showing of contents that were hidden until the finish."""

    what: str


class BlindWorkSet(_Fact, frozen=True, tag="sight_set"):
    """The setting of an annotator's blind work."""

    context = ()

    before: bool | None
    blind: bool


class Decided(_Fact, frozen=True, tag="decided"):
    """An adjudicator's decision on an item; None removes it."""

    context = ("trace_id", "taxonomy")

    item: str
    before: Decision | None
    after: Decision | None


class Judged(_Fact, frozen=True, tag="judged"):
    """The verdicts of a judge on a trace.

    Of the modes in ``looks_at``, the judge calls those in ``absent`` absent and is unsure of those
    in ``unsure``. All others have labels. ``judged_at`` is the time of the judgement if it differs
    from the event's time, as in an import.
    """

    looks_at: tuple[str, ...]
    absent: tuple[str, ...]
    run: str | None = None
    unsure: tuple[str, ...] = ()
    judged_at: str | None = None


class StudySet(_Fact, frozen=True, tag="study_set"):
    """A new, changed or removed study; None if there is no study."""

    context = ("taxonomy",)

    before: Study | None
    after: Study | None


class GuidelineSet(_Fact, frozen=True, tag="guideline_set"):
    """A new, changed or removed guideline on a mode; ``id`` is the same in all versions."""

    context = ("taxonomy",)

    id: str
    before: Guideline | None
    after: Guideline | None


class LookAgainSet(_Fact, frozen=True, tag="look_again_set"):
    """The modes of a trace that the annotator must look at again.

    The codebook has split a labelled mode into these modes.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]


Fact = (
    PassStarted
    | PassWithdrawn
    | PassKindSet
    | PassFinished
    | PassUnfinished
    | LabelAdded
    | LabelRemoved
    | LabelChanged
    | VerdictSet
    | ReviewSet
    | SpanNoteSet
    | SpansRead
    | SuggestionsSeen
    | Revealed
    | BlindWorkSet
    | Decided
    | Judged
    | StudySet
    | GuidelineSet
    | LookAgainSet
)

KIND_OF: Final[Mapping[type[_Fact], str]] = {
    kind: str(kind.__struct_config__.tag) for kind in get_args(Fact)
}
"""The kind of event that records a fact, by the fact's class."""

FACT_TYPES: Final[Mapping[str, type[_Fact]]] = {kind: fact for fact, kind in KIND_OF.items()}
"""The class of a fact by the kind of its event."""


_Swappable = TypeVar("_Swappable", bound=Any)


def swapped(fact: _Swappable) -> _Swappable:
    """Swap the values ``before`` and ``after`` of a fact."""
    return structs.replace(fact, before=fact.after, after=fact.before)


def inverse(fact: Fact) -> Fact | None:
    """Return the fact that undoes a fact; None if it cannot be undone.

    The start of a pass can be undone only if the pass is a copy.
    """
    match fact:
        case PassStarted(kind, copy_of) if copy_of is not None:
            return PassWithdrawn(kind, copy_of)
        case PassWithdrawn(kind, copy_of):
            return PassStarted(kind, copy_of)
        case PassFinished():
            return PassUnfinished(fact)
        case PassUnfinished(was):
            return was
        case LabelAdded(label):
            return LabelRemoved(label)
        case LabelRemoved(label):
            return LabelAdded(label)
        case LabelChanged() | VerdictSet() | ReviewSet() | SpanNoteSet() | Decided():
            return swapped(fact)
        case GuidelineSet() | LookAgainSet():
            return swapped(fact)
        case _:
            return None


def span_keys(fact: Fact) -> dict[str, bool]:
    """Return the keys of the spans in a fact; True if the fact quotes from the span."""
    targets: Sequence[Target] = ()
    has_quote: dict[str, bool] = {}
    match fact:
        case LabelAdded(label) | LabelChanged(_, label):
            targets = (label.target,)
        case Decided(_, _, Decision(targets=decided, answers=opinions)):
            targets = (*decided, *(target for opinion in opinions for target in opinion.targets))
        case SpanNoteSet(key):
            has_quote[key] = False
        case SpansRead(keys, ranges):
            ends = (key for span_range in ranges for key in (span_range.first, span_range.last))
            has_quote = dict.fromkeys((*keys, *ends), False)
        case _:
            pass
    for target in targets:
        if target.first is not None and target.last is not None:
            has_quote.setdefault(target.last, False)
            # A target with a quote is one span.
            has_quote[target.first] = has_quote.get(target.first, False) or target.quote is not None
    return has_quote


PassPart = Literal["labels", "verdicts", "reviews", "notes", "pass"]
"""A part of a pass; the items of the part ``pass`` are columns."""


def changes_in_pass(fact: Fact, time: str) -> Sequence[tuple[PassPart, str, Any]]:
    """Return the changes that a fact makes to the labels, verdicts and so on of its pass.

    Args:
        fact: The fact.
        time: The time of the event, ISO 8601 in UTC.

    Returns:
        Each change as the part of the pass, the id of the changed item, and its new value; None
        removes the item.
    """
    match fact:
        case VerdictSet(mode, _, value):
            return (("verdicts", mode, value),)
        case LabelAdded(label) | LabelChanged(_, label):
            return (("labels", label.id, label),)
        case LabelRemoved(label):
            return (("labels", label.id, None),)
        case ReviewSet(suggestion, _, review):
            return (("reviews", suggestion, review),)
        case SpanNoteSet(key, _, text):
            return (("notes", key, text or None),)
        case PassWithdrawn():
            return (("pass", "withdrawn", True),)
        case PassKindSet(_, kind):
            return (("pass", "kind", kind),)
        case PassFinished(_, read, spans, finished_at):
            return _finish_changes(time if finished_at is None else finished_at, read, spans)
        case PassUnfinished():
            return _finish_changes(None, None, None)
        case SuggestionsSeen():
            return (("pass", "judge_seen", True),)
        case Revealed():
            return (("pass", "revealed_at", time),)
        case _:
            return ()


def set_or_remove(values: dict[str, Any], name: str, value: object) -> None:
    """Make a change of ``changes_in_pass`` in a part of a pass.

    Args:
        values: The items of the part by id.
        name: The id of the changed item.
        value: The new value; None removes the item.
    """
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value


def _finish_changes(
    time: str | None, read: int | None, spans: int | None
) -> Sequence[tuple[PassPart, str, Any]]:
    return (("pass", "finished_at", time), ("pass", "spans_read", read), ("pass", "spans", spans))
