"""What can happen in a workspace, one small record per kind, each with its inverse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from mast_tui.gold.model import Decision, Guideline
from mast_tui.labels import Answer, Label, PassKind, Target, VerdictValue
from mast_tui.study.model import Study


class EventKind(StrEnum):
    """The kinds of events, as they stand in the workspace."""

    PASS_STARTED = "pass_started"
    PASS_WITHDRAWN = "pass_withdrawn"
    PASS_KIND_SET = "pass_kind_set"
    PASS_FINISHED = "pass_finished"
    PASS_UNFINISHED = "pass_unfinished"
    LABEL_ADDED = "label_added"
    LABEL_CHANGED = "label_changed"
    LABEL_REMOVED = "label_removed"
    VERDICT_SET = "verdict_set"
    REVIEW_SET = "review_set"
    SPAN_NOTE_SET = "span_note_set"
    SPANS_READ = "spans_read"
    SUGGESTIONS_SEEN = "suggestions_seen"
    REVEALED = "revealed"
    SIGHT_SET = "sight_set"
    DECIDED = "decided"
    JUDGED = "judged"
    STUDY_SET = "study_set"
    GUIDELINE_SET = "guideline_set"
    LOOK_AGAIN_SET = "look_again_set"


@dataclass(frozen=True, slots=True)
class PassStarted:
    """A pass begins; a later one as a copy of pass ``copy_of`` (the copies are events of their
    own). Where the pass exists already, the first start stands. ``withheld``: judges' suggestions
    are not shown in it, as a study has it."""

    kind: PassKind
    copy_of: int | None = None
    withheld: bool = False


@dataclass(frozen=True, slots=True)
class PassWithdrawn:
    """A pass is taken back because the change that opened it was undone."""

    kind: PassKind
    copy_of: int | None = None


@dataclass(frozen=True, slots=True)
class PassKindSet:
    """The conditions of an open pass have changed: a blind one is worked on assisted."""

    before: PassKind
    after: PassKind


@dataclass(frozen=True, slots=True)
class PassFinished:
    """A pass is frozen with ``read`` of ``spans`` spans read (None where nobody counted).

    ``open_modes`` says what became of modes without a verdict: ``leave`` or ``absent``; the
    verdicts are events of their own. ``at`` is when it was finished where that was another time
    than the event's, as in an import.
    """

    open_modes: str = "leave"
    read: int | None = None
    spans: int | None = None
    at: str | None = None


@dataclass(frozen=True, slots=True)
class PassUnfinished:
    """A finish is taken back."""

    was: PassFinished


@dataclass(frozen=True, slots=True)
class LabelAdded:
    """A label is there."""

    label: Label


@dataclass(frozen=True, slots=True)
class LabelRemoved:
    """A label is gone."""

    label: Label


@dataclass(frozen=True, slots=True)
class LabelChanged:
    """A label of the same id says something else."""

    before: Label
    after: Label


@dataclass(frozen=True, slots=True)
class VerdictSet:
    """A mode is absent or unsure; None leaves it open."""

    mode: str
    before: VerdictValue | None
    after: VerdictValue | None


@dataclass(frozen=True, slots=True)
class ReviewGiven:
    """What a review says: the answer, the label that came of it, and why."""

    answer: Answer
    label: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ReviewSet:
    """A suggestion is answered; None leaves it waiting."""

    suggestion: str
    before: ReviewGiven | None
    after: ReviewGiven | None


@dataclass(frozen=True, slots=True)
class SpanNoteSet:
    """What is written beside a span; empty for nothing."""

    key: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class SpansRead:
    """These spans were read: single ones, and ``runs`` from a first to a last key, all between
    them included."""

    keys: tuple[str, ...]
    runs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SuggestionsSeen:
    """A judge's suggestions were on screen in this pass."""


@dataclass(frozen=True, slots=True)
class Revealed:
    """Something that was hidden until the finish was shown."""

    what: str


@dataclass(frozen=True, slots=True)
class SightSet:
    """An annotator works blind from now on, or does not."""

    before: bool | None
    blind: bool


@dataclass(frozen=True, slots=True)
class Decided:
    """An adjudicator decided an item; None leaves it undecided."""

    item: str
    before: Decision | None
    after: Decision | None


@dataclass(frozen=True, slots=True)
class Judged:
    """A judge looked at a trace; of the modes it ``looks_at`` it calls these ``absent``.

    It cannot tell of those in ``unsure``; any other has a label.
    """

    looks_at: tuple[str, ...]
    absent: tuple[str, ...]
    run: str | None = None
    unsure: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StudySet:
    """A study is set up, or changed; None where there is none."""

    before: Study | None
    after: Study | None


@dataclass(frozen=True, slots=True)
class GuidelineSet:
    """What is agreed about a mode is written down, or put otherwise; None for nothing.

    ``id`` names the guideline, whatever it says.
    """

    id: str
    before: Guideline | None
    after: Guideline | None


@dataclass(frozen=True, slots=True)
class LookAgainSet:
    """These modes of a trace are to be looked at again, for the codebook has changed: one of them,
    nobody knows which, shows where the annotator had seen a mode that is no more."""

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


def inverse(fact: Fact) -> Fact | None:
    """The fact that takes this one back, or None for one that cannot be undone.

    A pass that began as a copy of another can be taken back, a first one stays open.
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
        case LabelChanged(before, after):
            return LabelChanged(after, before)
        case VerdictSet(mode, before, after):
            return VerdictSet(mode, after, before)
        case ReviewSet(suggestion, before, after):
            return ReviewSet(suggestion, after, before)
        case SpanNoteSet(key, before, after):
            return SpanNoteSet(key, after, before)
        case Decided(item, before, after):
            return Decided(item, after, before)
        case GuidelineSet(id, before, after):
            return GuidelineSet(id, after, before)
        case LookAgainSet(before, after):
            return LookAgainSet(after, before)
        case _:
            return None


def span_keys(fact: Fact) -> dict[str, bool]:
    """Return the keys of the spans that a fact refers to; True where a quote lies in the span."""
    targets: Sequence[Target] = ()
    keys: dict[str, bool] = {}
    match fact:
        case LabelAdded(label) | LabelChanged(_, label):
            targets = (label.target,)
        case Decided(_, _, Decision(targets=chosen, said=said)):
            targets = (*chosen, *(target for one in said for target in one.targets))
        case SpanNoteSet(key):
            keys[key] = False
        case SpansRead(single, runs):
            keys = dict.fromkeys((*single, *(key for run in runs for key in run)), False)
        case _:
            pass
    for target in targets:
        if target.first is not None and target.last is not None:
            keys.setdefault(target.last, False)
            keys[target.first] = keys.get(target.first, False) or target.quote is not None
    return keys


PassPart = Literal["labels", "verdicts", "reviews", "notes", "pass"]
"""Where something stands in a pass; of ``pass`` itself the names are those of its columns."""


def changes_in_pass(fact: Fact, at: str) -> Sequence[tuple[PassPart, str, Any]]:
    """What a fact changes in the pass that it belongs to, once this has begun.

    Args:
        fact: What happened.
        at: When it was recorded, ISO 8601 in UTC.

    Returns:
        The part, the name of what stands there, and what it is from now on: None for nothing.
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
            return _finish(at if finished_at is None else finished_at, read, spans)
        case PassUnfinished():
            return _finish(None, None, None)
        case SuggestionsSeen():
            return (("pass", "judge_seen", True),)
        case Revealed():
            return (("pass", "revealed_at", at),)
        case _:
            return ()


def _finish(
    at: str | None, read: int | None, spans: int | None
) -> Sequence[tuple[PassPart, str, Any]]:
    return (("pass", "finished_at", at), ("pass", "spans_read", read), ("pass", "spans", spans))
