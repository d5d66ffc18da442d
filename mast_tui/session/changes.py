"""The facts of a command before they are recorded, and the messages that describe them.

A fact is one entry of a pass, such as an added label. Each fact is applied to a copy of the pass,
so that the next step of the command builds on it. If the pass is frozen, the change first opens the
next pass as a copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct, structs

from mast_tui.labels import (
    Label,
    Origin,
    PassKind,
    ReviewAnswer,
    Severity,
    Target,
    VerdictValue,
    confidence_words,
)
from mast_tui.safe_text import quote_line
from mast_tui.session.pass_state import Passes, PassState
from mast_tui.session.read_model import Suggestion
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace
from mast_tui.workspace.events.model import now
from mast_tui.workspace.events.types import (
    Fact,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    PassFinished,
    PassStarted,
    ReviewGiven,
    ReviewSet,
    SpanNoteSet,
    SuggestionsSeen,
    VerdictSet,
)


class PendingChange:
    """The facts of a change in order; ``state`` is the pass after these facts."""

    def __init__(
        self,
        passes: Passes,
        new_id: Callable[[], str],
        *,
        blind: bool,
        withheld: bool,
        judge_on_screen: bool,
    ) -> None:
        """Continue the current pass, or open the next pass if there is none or it is frozen.

        A frozen pass can no longer change: it is finished, or followed by an adjudication.

        Args:
            passes: The current passes.
            new_id: Creates the id of a label.
            blind: True if a new pass is a blind one.
            withheld: True if a study hides suggestions from a new pass.
            judge_on_screen: True if a judge's suggestions are shown.
        """
        self.facts: list[Fact] = []
        self._passes = passes
        self._new_id = new_id
        self._at = now()
        self._copied_ids: dict[str, str] = {}
        """The ids of copied labels in a new pass, by the ids of the originals."""
        current = passes.current
        if current is not None and not passes.frozen:
            self.state = current.copy()
        else:
            self._open_pass(current, blind=blind, withheld=withheld)
        if judge_on_screen and not self.state.judge_seen:
            self.record(SuggestionsSeen())
        self._opening_fact_count = len(self.facts)

    @property
    def opens_second_look(self) -> bool:
        """True if the change opens a copy of a frozen pass."""
        return any(
            isinstance(fact, PassStarted) and fact.copy_of is not None for fact in self.facts
        )

    @property
    def changes_something(self) -> bool:
        """True if there are facts beyond those that open the pass."""
        return len(self.facts) > self._opening_fact_count

    def record(self, fact: Fact) -> None:
        """Add a fact and apply it to the state."""
        self.facts.append(fact)
        self.state.apply(fact, self._at)

    def _open_pass(self, base: PassState | None, *, blind: bool, withheld: bool) -> None:
        """Add the facts that open the next pass, with copies of the labels, verdicts and notes."""
        kind = self._first_pass_kind(blind=blind) if base is None else PassKind.SECOND_LOOK
        number = self._passes.next_number
        start = PassStarted(kind, None if base is None else base.number, withheld)
        self.state = self._passes.new_pass(number, start, self._at)
        self.facts.append(start)
        if base is None:
            return
        for label in base.labels.values():
            copy = structs.replace(label, id=self._new_id(), pass_number=number)
            self._copied_ids[label.id] = copy.id
            self.record(LabelAdded(copy))
        for mode, value in base.verdicts.items():
            self.set_verdict(mode, value)
        for key, text in base.notes.items():
            self.set_note(key, text)

    def _first_pass_kind(self, *, blind: bool) -> PassKind:
        """Return the kind of a pass that does not copy an earlier pass."""
        if self._passes.in_retest:
            return PassKind.RETEST
        if self._passes.adjudicated:  # others' labels were shown
            return PassKind.SECOND_LOOK
        return PassKind.BLIND if blind else PassKind.ASSISTED

    def label(self, label_id: str) -> Label | None:
        """Return the label with this id, or its copy in a new pass."""
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
            suggestion: The id of the answered suggestion.
            saw_suggestions: True if the annotator saw suggestions.
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
        """Replace a label; remove an absent or unsure verdict on its mode.

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
        """Turn accepted suggestions of a label into edited ones."""
        for suggestion, review in self._reviews_with(label):
            if review.answer is ReviewAnswer.ACCEPT:
                self.set_review(suggestion, structs.replace(review, answer=ReviewAnswer.EDIT))

    def remove_label(self, label: Label) -> None:
        """Remove a label and all answers to suggestions that refer to it."""
        for suggestion, _ in self._reviews_with(label):
            self.set_review(suggestion, None)
        self.record(LabelRemoved(label))

    def set_verdict(self, mode: str, value: VerdictValue | None) -> None:
        """Set the verdict on a mode to absent or unsure, or remove the verdict.

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
            review: The answer; None removes it, so that the suggestion waits again.
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

    def accept(
        self, suggestion: Suggestion, mode: str | None = None, target: Target | None = None
    ) -> None:
        """Answer a suggestion with a label of a mode on a target; by default the suggestion's own.

        Use an existing label with this mode and target, or else change the label of an earlier
        answer, or else add a label.

        Args:
            suggestion: The suggestion.
            mode: The slug of another mode, which makes the answer an edit.
            target: Another span range, which makes the answer an edit.
        """
        mode = mode or suggestion.mode
        target = target or suggestion.target
        is_own = (mode, target) == (suggestion.mode, suggestion.target)
        origin = Origin.ACCEPTED if is_own else Origin.EDITED
        earlier_label = self._label_of_answer(suggestion)
        label = self.state.find(mode, target)
        if label is None and earlier_label is not None:
            changed = structs.replace(earlier_label, mode=mode, target=target, origin=origin)
            label = self.change_label(earlier_label, changed)
        elif label is None:
            label = self.add_label(
                mode,
                target,
                origin=origin,
                suggestion=suggestion.id,
                saw_suggestions=True,
                severity=Severity.FATAL if suggestion.remedy else None,
            )
        elif earlier_label is not None and earlier_label is not label:
            self.remove_label(earlier_label)
        answer = ReviewAnswer.ACCEPT if is_own else ReviewAnswer.EDIT
        self.set_review(suggestion.id, ReviewGiven(answer, label.id))

    def reject(self, suggestion: Suggestion, reason: str = "") -> None:
        """Reject a suggestion, and remove the label of an earlier answer.

        Args:
            suggestion: The suggestion.
            reason: The reason.
        """
        label = self._label_of_answer(suggestion)
        if label is not None:
            self.remove_label(label)
        self.set_review(suggestion.id, ReviewGiven(ReviewAnswer.REJECT, reason=reason.strip()))

    def _label_of_answer(self, suggestion: Suggestion) -> Label | None:
        """Return the label from an earlier answer to this suggestion; None if there is none."""
        labels = self.state.labels.values()
        return next((label for label in labels if label.suggestion == suggestion.id), None)

    def _reviews_with(self, label: Label) -> list[tuple[str, ReviewGiven]]:
        """Return the suggestions that were answered with a label, with their answers."""
        return [
            (suggestion, review)
            for suggestion, review in self.state.reviews.items()
            if review.label == label.id
        ]


_ANSWERED = {
    ReviewAnswer.ACCEPT: "accepted",
    ReviewAnswer.EDIT: "changed and accepted",
    ReviewAnswer.REJECT: "rejected",
}


_MAX_TEXTS: Final = 3
"""The number of texts in one message; the others are counted."""


class Change(Struct, frozen=True):
    """The result of a command: a message, and the mode and spans that it changed.

    Attributes:
        message: The message for the annotator.
        mode: The slug of the mode; None if there is none.
        target: The span range; None if there is none.
        key: The span to which the cursor moves; None if it stays.
    """

    message: str
    mode: str | None = None
    target: Target | None = None
    key: str | None = None


MOST_QUOTE_CELLS: Final = 30
"""The most cells of a quote in a message."""


class _ValueChange(NamedTuple):
    """A changed value of a label: a message, and the text of the previous value, if any."""

    message: str
    previous: str


class ChangeMessages:
    """Messages about one trace under one taxonomy."""

    def __init__(
        self,
        taxonomy: Taxonomy,
        trace: Trace,
        find_suggestion: Callable[[str], Suggestion | None],
    ) -> None:
        self._mode_texts = {mode.slug: f"{mode.code} {mode.name}" for mode in taxonomy.all_modes}
        self._codes = {mode.slug: mode.code for mode in taxonomy.all_modes}
        self._trace = trace
        self._find_suggestion = find_suggestion

    def mode(self, slug: str) -> str:
        """Return the code and name of a mode, such as ``1.3 Step repetition``."""
        return self._mode_texts.get(slug, slug)

    def span(self, key: str) -> str:
        """Return the number of a span, such as ``#13``; its key if it is not loaded."""
        index = self._trace.index_of(key)
        return key if index is None else f"#{index + 1}"

    def location(self, target: Target) -> str:
        """Describe a target: ``#13 to #18``, ``a quote in #13 (“retry”)``, ``the whole trace``."""
        if target.first is None or target.last is None:
            return "the whole trace"
        if target.quote is not None:
            masks = self._trace.masks
            quote = target.quote if masks is None else masks.text(target.quote)
            return f"a quote in {self.span(target.first)} (“{quote_line(quote, MOST_QUOTE_CELLS)}”)"
        if target.first == target.last:
            return self.span(target.first)
        return f"{self.span(target.first)} to {self.span(target.last)}"

    def change_with_message(self, facts: Sequence[Fact]) -> Change:
        """Describe a change by its last fact, which the annotator requested."""
        match facts[-1]:
            case LabelAdded(label):
                return self._placed_change(label, f"{self.mode(label.mode)} on")
            case LabelRemoved(label):
                return self._placed_change(label, f"{self.mode(label.mode)} removed from")
            case LabelChanged(previous, label):
                messages = (value.message for value in self._value_changes(previous, label))
                target = label.target
                return Change(", ".join(messages), label.mode, target, target.first)
            case VerdictSet(mode, _, value):
                return Change(f"{self.mode(mode)}: {value or 'no verdict'}", mode)
            case ReviewSet() as review_set:
                return self._answer_change(review_set, facts)
            case SpanNoteSet(key, _, text):
                return Change(_note_text(self.span(key), text), key=key)
            case PassFinished(_, read, spans):
                return Change(f"finished, {read} of {spans} spans read")
            case unexpected:
                raise AssertionError(f"no command ends with {unexpected}")

    def undone(self, facts: Sequence[Fact]) -> Change:
        """Describe the undo of a change, with the restored values."""
        change = self.change_with_message(facts)
        match facts[-1]:
            case LabelChanged(previous, current):
                values = (value.previous for value in self._value_changes(previous, current))
                restored = ", ".join(filter(None, values))
            case VerdictSet(_, previous, _):
                restored = previous or "no verdict"
            case SpanNoteSet(_, previous, _):
                restored = _quoted(previous)
            case PassFinished():  # more spans may have been read since
                return structs.replace(change, message="undone: finish")
            case _:
                restored = ""
        suffix = f" · back to {restored}" if restored else ""
        return structs.replace(change, message=f"undone: {change.message}{suffix}")

    def _value_changes(self, previous: Label, current: Label) -> Iterator[_ValueChange]:
        """Yield the changed values of a label; their messages are joined to one."""
        code = self._codes.get(current.mode, current.mode)
        location = self.location(current.target)
        where = f"{code} on {location}"
        if previous.mode != current.mode:
            previous_code = self._codes.get(previous.mode, previous.mode)
            message = f"{previous_code} changed to {self.mode(current.mode)}"
            yield _ValueChange(message, self.mode(previous.mode))
        if previous.target != current.target:
            previous_location = self.location(previous.target)
            subject = code if previous.mode == current.mode else "now"
            yield _ValueChange(f"{subject} on {location}", previous_location)
        elif previous.mode != current.mode:
            yield _ValueChange(f"on {location}", "")
        if previous.note != current.note:
            message = _note_text(location, current.note, f"{code} at ")
            yield _ValueChange(message, _quoted(previous.note))
        if previous.confidence != current.confidence:
            message = f"confidence of {where}: {confidence_words(current.confidence)}"
            yield _ValueChange(message, confidence_words(previous.confidence))
        if previous.severity is not current.severity:
            message = f"severity of {where}: {current.severity or 'none'}"
            yield _ValueChange(message, previous.severity or "none")

    def difference(
        self,
        labels: Mapping[str, Label],
        labels_now: Mapping[str, Label],
        verdicts: Mapping[str, VerdictValue],
        verdicts_now: Mapping[str, VerdictValue],
    ) -> str:
        """Describe changed labels and verdicts.

        Args:
            labels: The previous labels, by id.
            labels_now: The current labels, by id.
            verdicts: The previous verdicts, by mode.
            verdicts_now: The current verdicts, by mode.

        Returns:
            The message; empty if nothing differs.
        """
        facts = [*_label_facts(labels, labels_now), *_verdict_facts(verdicts, verdicts_now)]
        return _first_texts([self.change_with_message([fact]).message for fact in facts])

    def _placed_change(self, label: Label, action: str) -> Change:
        """Return a change with the action and the location of the label as its message."""
        target = label.target
        return Change(f"{action} {self.location(target)}", label.mode, target, target.first)

    def _answer_change(self, review_set: ReviewSet, facts: Sequence[Fact]) -> Change:
        """Describe the last answer of a change, or all suggestions with the same answer."""
        current = review_set.after
        if current is None:
            answer_text = "reopened"
        else:
            same_answer_ids = _suggestions_answered(facts, current.answer)
            if len(same_answer_ids) > 1:
                return self._answers_summary(same_answer_ids, current.answer)
            answer_text = _ANSWERED[current.answer]
        # The label of this answer; for a removed answer, the label of that answer.
        review = current or review_set.before
        label_id = None if review is None else review.label
        labels = (label for label in _changed_labels(facts) if label.id == label_id)
        return self._answer_summary(review_set.suggestion, answer_text, next(labels, None))

    def _answers_summary(self, suggestion_ids: Sequence[str], answer: ReviewAnswer) -> Change:
        """Describe the same answer to several suggestions."""
        suggestions = [
            suggestion
            for suggestion in map(self._find_suggestion, suggestion_ids)
            if suggestion is not None
        ]
        modes = list(dict.fromkeys(suggestion.mode for suggestion in suggestions))
        mode_text = f" of {self.mode(modes[0])}" if len(modes) == 1 else ""
        message = f"{_ANSWERED[answer]} {len(suggestion_ids)} suggestions{mode_text}"
        if answer is ReviewAnswer.ACCEPT:
            message += self._merged_text(suggestions)
        if not suggestions:
            return Change(message)
        first = suggestions[0]
        return Change(message, first.mode, first.target, first.evidence_key)

    def _merged_text(self, suggestions: Sequence[Suggestion]) -> str:
        """Describe the targets on which several suggestions became one label."""
        counts = Counter((suggestion.mode, suggestion.target) for suggestion in suggestions)
        places = [self.location(target) for (_, target), count in counts.items() if count > 1]
        if not places:
            return ""
        return f" · one label for several suggestions on {_first_texts(places)}"

    def _answer_summary(self, suggestion_id: str, answer: str, label: Label | None) -> Change:
        """Describe an answer to a suggestion; ``label`` is the label that it made, if any."""
        suggestion = self._find_suggestion(suggestion_id)
        if suggestion is None:
            return Change(f"suggestion {answer}")
        mode = suggestion.mode if label is None else label.mode
        target = suggestion.target if label is None else label.target
        return Change(
            f"{answer} {self.mode(mode)} on {self.location(target)}",
            mode,
            target,
            suggestion.evidence_key,
        )


def _first_texts(texts: Sequence[str]) -> str:
    """Join the first texts, and count the others: ``#3, #5, #9, 2 more``."""
    more = [f"{len(texts) - _MAX_TEXTS} more"] if len(texts) > _MAX_TEXTS else []
    return ", ".join([*texts[:_MAX_TEXTS], *more])


def _note_text(location: str, text: str, prefix: str = "") -> str:
    """Describe a new or removed note."""
    if text:
        return f"note on {prefix}{location}: {text}"
    return f"note on {prefix}{location} removed"


def _quoted(text: str) -> str:
    """Return a text in quotes; empty for an empty text."""
    return f"“{text}”" if text else ""


def _label_facts(labels: Mapping[str, Label], labels_now: Mapping[str, Label]) -> list[Fact]:
    """Return the facts that turn the previous labels (by id) into the current labels."""
    added = [LabelAdded(label) for id, label in labels_now.items() if id not in labels]
    removed = [LabelRemoved(label) for id, label in labels.items() if id not in labels_now]
    changed = [
        LabelChanged(labels[id], label)
        for id, label in labels_now.items()
        if id in labels and labels[id] != label
    ]
    return [*added, *removed, *changed]


def _verdict_facts(
    verdicts: Mapping[str, VerdictValue], verdicts_now: Mapping[str, VerdictValue]
) -> Iterator[Fact]:
    """Yield changes of verdicts; changes to or from present are left out, as labels show them."""
    for mode in {**verdicts, **verdicts_now}:
        previous = verdicts.get(mode)
        current = verdicts_now.get(mode)
        if previous is not current and VerdictValue.PRESENT not in (previous, current):
            yield VerdictSet(mode, previous, current)


def _suggestions_answered(facts: Sequence[Fact], answer: ReviewAnswer) -> list[str]:
    """Return the ids of the suggestions that have this answer after a change."""
    reviews = {fact.suggestion: fact.after for fact in facts if isinstance(fact, ReviewSet)}
    return [
        suggestion_id
        for suggestion_id, review in reviews.items()
        if review is not None and review.answer is answer
    ]


def _changed_labels(facts: Sequence[Fact]) -> list[Label]:
    """Return the labels that were added, and the changed labels after the change."""
    added = [fact.label for fact in facts if isinstance(fact, LabelAdded)]
    return added + [fact.after for fact in facts if isinstance(fact, LabelChanged)]
