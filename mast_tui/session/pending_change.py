"""A change in the making: the facts that a command is about to record.

A draft shows the pass as it will be, so that a command that does several things builds each on
the one before. On a frozen pass it opens the next one first, as a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mast_tui.labels import Answer, Label, Origin, PassKind, Target, VerdictValue
from mast_tui.session.pass_state import Work
from mast_tui.workspace.facts import (
    Fact,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    PassStarted,
    ReviewGiven,
    ReviewSet,
    SpanNoteSet,
    SuggestionsSeen,
    VerdictSet,
)


class PendingChange:
    """Facts in order, and what stands once they are recorded.

    ``renamed`` says under which id a label of the frozen pass goes on in the copy.
    """

    def __init__(
        self,
        work: Work,
        new_id: Callable[[], str],
        *,
        blind: bool,
        withheld: bool,
        judge_on_screen: bool,
    ) -> None:
        self.facts: list[Fact] = []
        self.renamed: dict[str, str] = {}
        self._new_id = new_id
        self._work = work
        current = work.current
        if current is not None and not work.frozen:
            self.number = current.number
            self.labels = dict(current.labels)
            self.verdicts = dict(current.verdicts)
            self.reviews = dict(current.reviews)
            self.notes = dict(current.notes)
            judge_seen = current.judge_seen
        else:
            self.number = work.next_number
            self.labels, self.verdicts, self.reviews, self.notes = {}, {}, {}, {}
            judge_seen = False
            self._open(blind=blind, withheld=withheld)
        if judge_on_screen and not judge_seen:
            self.facts.append(SuggestionsSeen())
        self._noted = len(self.facts)

    @property
    def opens_second_look(self) -> bool:
        """Whether a pass is opened as a copy of a frozen one."""
        return any(isinstance(f, PassStarted) and f.copy_of is not None for f in self.facts)

    @property
    def changes_something(self) -> bool:
        """Whether there is more in it than what opening the pass takes."""
        return len(self.facts) > self._noted

    def _open(self, *, blind: bool, withheld: bool) -> None:
        base = self._work.current
        if base is None:
            self.facts.append(PassStarted(self._first_kind(blind=blind), withheld=withheld))
            return
        self.facts.append(PassStarted(PassKind.SECOND_LOOK, base.number, withheld))
        for label in base.labels.values():
            copy = replace(label, id=self._new_id(), pass_number=self.number)
            self.renamed[label.id] = copy.id
            self.labels[copy.id] = copy
            self.facts.append(LabelAdded(copy))
        for mode, value in base.verdicts.items():
            self.set_verdict(mode, value)
        for key, text in base.notes.items():
            self.set_note(key, text)

    def _first_kind(self, *, blind: bool) -> PassKind:
        if self._work.in_retest:
            return PassKind.RETEST
        if self._work.adjudicated:
            return PassKind.SECOND_LOOK
        return PassKind.BLIND if blind else PassKind.ASSISTED

    def label(self, label_id: str) -> Label | None:
        """The label with this id, or the copy of it."""
        return self.labels.get(self.renamed.get(label_id, label_id))

    def find(self, mode: str, target: Target) -> Label | None:
        """The label with exactly this mode and target."""
        for label in self.labels.values():
            if label.mode == mode and label.target == target:
                return label
        return None

    def of_mode(self, mode: str) -> tuple[Label, ...]:
        """All labels of a mode."""
        return tuple(label for label in self.labels.values() if label.mode == mode)

    def add_label(
        self,
        mode: str,
        target: Target,
        *,
        at: str,
        origin: Origin = Origin.MANUAL,
        suggestion: str | None = None,
        saw_suggestions: bool = False,
    ) -> Label:
        """Add a label, which withdraws what was said against its mode."""
        self.set_verdict(mode, None)
        label = Label(
            id=self._new_id(),
            annotator=self._work.annotator,
            trace_id=self._work.trace_id,
            taxonomy=self._work.taxonomy,
            mode=mode,
            target=target,
            origin=origin,
            suggestion=suggestion,
            saw_suggestions=saw_suggestions,
            pass_number=self.number,
            created_at=at,
        )
        self.labels[label.id] = label
        self.facts.append(LabelAdded(label))
        return label

    def change_label(self, before: Label, after: Label) -> Label:
        """Change a label to ``after``, which withdraws what was said against its mode."""
        self.set_verdict(after.mode, None)
        self.labels[after.id] = after
        self.facts.append(LabelChanged(before, after))
        return after

    def accepted_with_changes(self, label: Label) -> None:
        """Let the suggestions that were accepted with a label count as edited."""
        for suggestion, review in self._reviews_of(label):
            if review.answer is Answer.ACCEPT:
                self.set_review(suggestion, replace(review, answer=Answer.EDIT))

    def remove_label(self, label: Label) -> None:
        """Remove a label; suggestions that were answered with it wait again."""
        for suggestion, _ in self._reviews_of(label):
            self.set_review(suggestion, None)
        del self.labels[label.id]
        self.facts.append(LabelRemoved(label))

    def set_verdict(self, mode: str, value: VerdictValue | None) -> None:
        """Say that a mode is absent or unsure, or nothing."""
        before = self.verdicts.get(mode)
        if before is value:
            return
        if value is None:
            del self.verdicts[mode]
        else:
            self.verdicts[mode] = value
        self.facts.append(VerdictSet(mode, before, value))

    def set_review(self, suggestion: str, review: ReviewGiven | None) -> None:
        """Answer a suggestion, or leave it waiting."""
        before = self.reviews.get(suggestion)
        if before == review:
            return
        if review is None:
            del self.reviews[suggestion]
        else:
            self.reviews[suggestion] = review
        self.facts.append(ReviewSet(suggestion, before, review))

    def set_note(self, key: str, text: str) -> None:
        """Write beside a span; an empty text takes the note away."""
        before = self.notes.get(key, "")
        if before == text:
            return
        self.notes[key] = text
        self.facts.append(SpanNoteSet(key, before, text))

    def _reviews_of(self, label: Label) -> list[tuple[str, ReviewGiven]]:
        return [(s, review) for s, review in self.reviews.items() if review.label == label.id]
