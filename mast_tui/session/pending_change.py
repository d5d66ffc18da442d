"""A change in progress: the facts that a command is about to record.

Each fact is applied to a copy of the pass, so that each step of a command builds on the previous
one. If the pass is frozen, the change first opens the next pass as a copy.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from mast_tui.labels import Label, Origin, PassKind, ReviewAnswer, Severity, Target, VerdictValue
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
    """The facts of a change in order, and ``state``, the pass after these facts.

    Args:
        passes: The current passes.
        new_id: Creates the id of a label.
        blind: A new pass is a blind one.
        withheld: A study withholds suggestions from a new pass.
        judge_on_screen: A judge's suggestions are shown.
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
        self._copied_ids: dict[str, str] = {}
        current = passes.current
        if current is not None and not passes.frozen:
            self.state = current.copy()
        else:
            self._open_pass(current, blind=blind, withheld=withheld)
        if judge_on_screen and not self.state.judge_seen:
            self.record(SuggestionsSeen())
        self._opening_facts = len(self.facts)

    @property
    def opens_second_look(self) -> bool:
        """True if a pass is opened as a copy of a frozen one."""
        return any(isinstance(f, PassStarted) and f.copy_of is not None for f in self.facts)

    @property
    def changes_something(self) -> bool:
        """True if there are facts after the facts that open the pass."""
        return len(self.facts) > self._opening_facts

    def record(self, fact: Fact) -> None:
        """Add a fact and apply it to the state."""
        self.facts.append(fact)
        self.state.apply(fact, self._at)

    def _open_pass(self, base: PassState | None, *, blind: bool, withheld: bool) -> None:
        """Add the facts that open the next pass, with copies of the work in ``base``, if any."""
        kind = self._first_pass_kind(blind=blind) if base is None else PassKind.SECOND_LOOK
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
            self._copied_ids[label.id] = copy.id
            self.record(LabelAdded(copy))
        for mode, value in base.verdicts.items():
            self.set_verdict(mode, value)
        for key, text in base.notes.items():
            self.set_note(key, text)

    def _first_pass_kind(self, *, blind: bool) -> PassKind:
        """Return the kind of a pass that copies no other pass."""
        if self._passes.in_retest:
            return PassKind.RETEST
        if self._passes.adjudicated:
            return PassKind.SECOND_LOOK
        return PassKind.BLIND if blind else PassKind.ASSISTED

    def label(self, label_id: str) -> Label | None:
        """Return the label with this id, or its copy if the pass is opened as a copy."""
        return self.state.labels.get(self._copied_ids.get(label_id, label_id))

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
        """Add a label and remove an absent or unsure verdict on its mode.

        Args:
            mode: The slug of the mode.
            target: The span range.
            origin: The way in which the label came about.
            suggestion: The id of the suggestion that it answers.
            saw_suggestions: The annotator saw suggestions.
            severity: The severity.

        Returns:
            The label.
        """
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

    def change_label(self, previous: Label, changed: Label) -> Label:
        """Replace a label, and remove an absent or unsure verdict on its mode.

        Args:
            previous: The label.
            changed: The label after the change.

        Returns:
            The label after the change.
        """
        self.set_verdict(changed.mode, None)
        self.record(LabelChanged(previous, changed))
        return changed

    def mark_as_edited(self, label: Label) -> None:
        """Change the answers that accept a suggestion with this label from accept to edit."""
        for suggestion, review in self._reviews_with(label):
            if review.answer is ReviewAnswer.ACCEPT:
                self.set_review(suggestion, replace(review, answer=ReviewAnswer.EDIT))

    def remove_label(self, label: Label) -> None:
        """Remove a label; suggestions that were answered with it wait again."""
        for suggestion, _ in self._reviews_with(label):
            self.set_review(suggestion, None)
        self.record(LabelRemoved(label))

    def set_verdict(self, mode: str, value: VerdictValue | None) -> None:
        """Set the verdict absent or unsure on a mode, or remove it.

        Args:
            mode: The slug of the mode.
            value: The verdict; None removes it.
        """
        previous = self.state.verdicts.get(mode)
        if previous is not value:
            self.record(VerdictSet(mode, previous, value))

    def set_review(self, suggestion: str, review: ReviewGiven | None) -> None:
        """Set or remove the answer to a suggestion.

        Args:
            suggestion: The id of the suggestion.
            review: The answer; None if the suggestion waits again.
        """
        previous = self.state.reviews.get(suggestion)
        if previous != review:
            self.record(ReviewSet(suggestion, previous, review))

    def set_note(self, key: str, text: str) -> None:
        """Write a note on a span, or remove it.

        Args:
            key: The key of the span.
            text: The note; an empty text removes it.
        """
        previous = self.state.notes.get(key, "")
        if previous != text:
            self.record(SpanNoteSet(key, previous, text))

    def _reviews_with(self, label: Label) -> list[tuple[str, ReviewGiven]]:
        """Return the suggestions that were answered with a label, and their answers."""
        return [
            (suggestion, review)
            for suggestion, review in self.state.reviews.items()
            if review.label == label.id
        ]
