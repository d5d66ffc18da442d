"""A change in the making: the facts that a command is about to record.

Each fact is folded into a copy of the pass as it is settled on, so a command that does several
things builds each on the one before. On a frozen pass it opens the next one first, as a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mast_tui.labels import Answer, Label, Origin, PassKind, Severity, Target, VerdictValue
from mast_tui.session.pass_state import Passes, PassState
from mast_tui.workspace.events.types import (
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
from mast_tui.workspace.ids import now


class PendingChange:
    """Facts in order, and the pass as it stands once they are recorded: ``state``.

    Args:
        passes: All that stands now.
        new_id: Makes the id of a label.
        blind: Whether a pass that begins is a blind one.
        withheld: Whether a study keeps suggestions from it.
        judge_on_screen: Whether a judge's suggestions are shown.
    """

    def __init__(
        self,
        passes: Passes,
        new_id: Callable[[], str],
        *,
        blind: bool,
        withheld: bool,
        judge_on_screen: bool,
    ) -> None:
        self.facts: list[Fact] = []
        self._passes = passes
        self._new_id = new_id
        self._at = now()
        self._renamed: dict[str, str] = {}
        current = passes.current
        if current is not None and not passes.frozen:
            self.state = current.copy()
        else:
            self._open(current, blind=blind, withheld=withheld)
        if judge_on_screen and not self.state.judge_seen:
            self.record(SuggestionsSeen())
        self._noted = len(self.facts)

    @property
    def opens_second_look(self) -> bool:
        """Whether a pass is opened as a copy of a frozen one."""
        return any(isinstance(f, PassStarted) and f.copy_of is not None for f in self.facts)

    @property
    def changes_something(self) -> bool:
        """Whether there is more in it than what opening the pass takes."""
        return len(self.facts) > self._noted

    def record(self, fact: Fact) -> None:
        """Add a fact, of which the state follows."""
        self.facts.append(fact)
        self.state.apply(fact, self._at)

    def _open(self, base: PassState | None, *, blind: bool, withheld: bool) -> None:
        kind = self._first_kind(blind=blind) if base is None else PassKind.SECOND_LOOK
        number = self._passes.next_number
        self.state = PassState(
            self._passes.annotator,
            self._passes.trace_id,
            self._passes.taxonomy,
            number=number,
            kind=kind,
            started_at=self._at,
            withheld=withheld,
        )
        self.facts.append(PassStarted(kind, None if base is None else base.number, withheld))
        if base is None:
            return
        for label in base.labels.values():
            copy = replace(label, id=self._new_id(), pass_number=number)
            self._renamed[label.id] = copy.id
            self.record(LabelAdded(copy))
        for mode, value in base.verdicts.items():
            self.set_verdict(mode, value)
        for key, text in base.notes.items():
            self.set_note(key, text)

    def _first_kind(self, *, blind: bool) -> PassKind:
        if self._passes.in_retest:
            return PassKind.RETEST
        if self._passes.adjudicated:
            return PassKind.SECOND_LOOK
        return PassKind.BLIND if blind else PassKind.ASSISTED

    def label(self, label_id: str) -> Label | None:
        """The label with this id, or the copy of it where the pass is opened as a copy."""
        return self.state.labels.get(self._renamed.get(label_id, label_id))

    def add_label(
        self,
        mode: str,
        target: Target,
        *,
        origin: Origin = Origin.MANUAL,
        suggestion: str | None = None,
        saw_suggestions: bool = False,
        severity: Severity | None = None,
    ) -> Label:
        """Add a label, which withdraws what was said against its mode."""
        self.set_verdict(mode, None)
        label = Label(
            id=self._new_id(),
            annotator=self._passes.annotator,
            trace_id=self._passes.trace_id,
            taxonomy=self._passes.taxonomy,
            mode=mode,
            target=target,
            origin=origin,
            suggestion=suggestion,
            saw_suggestions=saw_suggestions,
            severity=severity,
            pass_number=self.state.number,
            created_at=self._at,
        )
        self.record(LabelAdded(label))
        return label

    def change_label(self, before: Label, after: Label) -> Label:
        """Change a label to ``after``, which withdraws what was said against its mode."""
        self.set_verdict(after.mode, None)
        self.record(LabelChanged(before, after))
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
        self.record(LabelRemoved(label))

    def set_verdict(self, mode: str, value: VerdictValue | None) -> None:
        """Say that a mode is absent or unsure, or nothing."""
        before = self.state.verdicts.get(mode)
        if before is not value:
            self.record(VerdictSet(mode, before, value))

    def set_review(self, suggestion: str, review: ReviewGiven | None) -> None:
        """Answer a suggestion, or leave it waiting."""
        before = self.state.reviews.get(suggestion)
        if before != review:
            self.record(ReviewSet(suggestion, before, review))

    def set_note(self, key: str, text: str) -> None:
        """Write beside a span; an empty text takes the note away."""
        before = self.state.notes.get(key, "")
        if before != text:
            self.record(SpanNoteSet(key, before, text))

    def _reviews_of(self, label: Label) -> list[tuple[str, ReviewGiven]]:
        return [(s, review) for s, review in self.state.reviews.items() if review.label == label.id]
