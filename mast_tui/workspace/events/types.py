"""Everything that can happen in a workspace, one record per kind, with its inverse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, TypeVar, get_args

from msgspec import Struct, field, structs

from mast_tui.gold.model import Decision, Guideline
from mast_tui.labels import Label, PassKind, ReviewAnswer, Target, VerdictValue, WholeNumber
from mast_tui.study.model import Study

TAG: Final = "fact"
"""The field that names the kind of a fact where facts of several kinds are read."""


class _Fact(Struct, frozen=True, omit_defaults=True, tag_field=TAG):
    """The base of facts; the tag is the kind of the event that records the fact."""

    context: ClassVar[tuple[str, ...]] = ("trace_id", "taxonomy", "pass_number")
    """The fields that the event of the fact must have beside its annotator."""


class PassStarted(_Fact, frozen=True, tag="pass_started"):
    """The start of a pass; if the pass exists already, its first start counts.

    ``copy_of`` is the pass whose labels a later pass begins with; the copies are events of their
    own. With ``withheld`` the study hides judges' suggestions in the pass.
    """

    kind: PassKind
    copy_of: WholeNumber | None = None
    withheld: bool = False


class PassWithdrawn(_Fact, frozen=True, tag="pass_withdrawn"):
    """The removal of a pass, because the change that opened it was undone."""

    kind: PassKind
    copy_of: WholeNumber | None = None


class PassKindSet(_Fact, frozen=True, tag="pass_kind_set"):
    """The conditions of an open pass have changed: a blind one is worked on assisted."""

    before: PassKind
    after: PassKind


class PassFinished(_Fact, frozen=True, tag="pass_finished"):
    """The end of a pass, with ``read`` of ``spans`` spans read (None if unknown).

    ``open_modes`` is the choice for modes without a verdict: ``leave`` or ``absent``; the verdicts
    are events of their own. ``at`` is the time of the end if it is not that of the event, as in an
    import.
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
    """A mode is absent or unsure; None leaves it open."""

    mode: str
    before: VerdictValue | None
    after: VerdictValue | None

    def __post_init__(self) -> None:
        if VerdictValue.PRESENT in (self.before, self.after):
            raise ValueError("use a label, not a verdict, for 'present'")


class ReviewGiven(Struct, frozen=True, omit_defaults=True):
    """The content of a review: the answer, the label that resulted, and the reason."""

    answer: ReviewAnswer
    label: str | None = None
    reason: str = ""


class ReviewSet(_Fact, frozen=True, tag="review_set"):
    """A suggestion is answered; None leaves it waiting."""

    suggestion: str
    before: ReviewGiven | None
    after: ReviewGiven | None


class SpanNoteSet(_Fact, frozen=True, tag="span_note_set"):
    """A note on a span was written; empty for none."""

    key: str
    before: str
    after: str


class SpanRange(Struct, frozen=True, order=True):
    """The spans from a first to a last key, all between them included."""

    first: str
    last: str


class SpansRead(_Fact, frozen=True, tag="spans_read"):
    """These spans were read: single ones by their keys, and ranges of spans."""

    keys: tuple[str, ...]
    # Stored events call the ranges "runs".
    ranges: tuple[SpanRange, ...] = field(default=(), name="runs")


class SuggestionsSeen(_Fact, frozen=True, tag="suggestions_seen"):
    """A judge's suggestions were on screen in this pass."""


class Revealed(_Fact, frozen=True, tag="revealed"):
    """Something that was hidden until the finish was shown."""

    what: str


class SightSet(_Fact, frozen=True, tag="sight_set"):
    """An annotator works blind from now on, or does not."""

    context = ()

    before: bool | None
    blind: bool


class Decided(_Fact, frozen=True, tag="decided"):
    """An adjudicator decided an item; None leaves it undecided."""

    context = ("trace_id", "taxonomy")

    item: str
    before: Decision | None
    after: Decision | None


class Judged(_Fact, frozen=True, tag="judged"):
    """The verdicts of a judge on a trace: the modes it ``looks_at``, and those called ``absent``.

    It is unsure of the modes in ``unsure``; each other mode has a label.
    """

    looks_at: tuple[str, ...]
    absent: tuple[str, ...]
    run: str | None = None
    unsure: tuple[str, ...] = ()


class StudySet(_Fact, frozen=True, tag="study_set"):
    """A new, changed or removed study; None if there is no study."""

    context = ("taxonomy",)

    before: Study | None
    after: Study | None


class GuidelineSet(_Fact, frozen=True, tag="guideline_set"):
    """A new or changed text of a guideline on a mode, or its removal.

    ``id`` names the guideline in all its versions.
    """

    context = ("taxonomy",)

    id: str
    before: Guideline | None
    after: Guideline | None


class LookAgainSet(_Fact, frozen=True, tag="look_again_set"):
    """The modes of a trace to look at again after a change of the codebook.

    The annotator saw a mode that was split; one of these modes is present in its place.
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
    | SightSet
    | Decided
    | Judged
    | StudySet
    | GuidelineSet
    | LookAgainSet
)

KIND_OF: Final[Mapping[type[_Fact], str]] = {
    kind: str(kind.__struct_config__.tag) for kind in get_args(Fact)
}
"""The kind of event that records a fact, as it is in the workspace, by the fact's class."""

FACT_TYPES: Final[Mapping[str, type[_Fact]]] = {kind: fact for fact, kind in KIND_OF.items()}
"""The class of a fact by the kind of its event."""


_Swappable = TypeVar("_Swappable", bound=Any)


def swapped(fact: _Swappable) -> _Swappable:
    """Return a fact with its values ``before`` and ``after`` in each other's place."""
    return structs.replace(fact, before=fact.after, after=fact.before)


def inverse(fact: Fact) -> Fact | None:
    """Return the fact that undoes a fact, or None if it cannot be undone.

    The start of a pass can be undone only if the pass copies an earlier one.
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
    """Return the keys of the spans that a fact refers to; True if it quotes from the span."""
    targets: Sequence[Target] = ()
    has_quote: dict[str, bool] = {}
    match fact:
        case LabelAdded(label) | LabelChanged(_, label):
            targets = (label.target,)
        case Decided(_, _, Decision(targets=decided, said=opinions)):
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
            # A target with a quote is a single span.
            has_quote[target.first] = has_quote.get(target.first, False) or target.quote is not None
    return has_quote


PassPart = Literal["labels", "verdicts", "reviews", "notes", "pass"]
"""A part of a pass; the items of the part ``pass`` are its columns."""


def changes_in_pass(fact: Fact, time: str) -> Sequence[tuple[PassPart, str, Any]]:
    """Return the changes that a fact makes to the labels, verdicts and so on of its pass.

    Args:
        fact: The fact.
        time: The time of the event, ISO 8601 in UTC.

    Returns:
        For each change the part of the pass, such as ``labels``; the id of the changed item in that
        part; and its new value, None if it is removed.
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


def _finish_changes(
    time: str | None, read: int | None, spans: int | None
) -> Sequence[tuple[PassPart, str, Any]]:
    return (("pass", "finished_at", time), ("pass", "spans_read", read), ("pass", "spans", spans))
