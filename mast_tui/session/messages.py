"""What a command has done, in a few words, told from the facts it recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mast_tui.labels import Answer, Label, Target, VerdictValue, confidence_words
from mast_tui.session.read_model import Suggestion
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace
from mast_tui.workspace.events.types import (
    Fact,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    PassFinished,
    ReviewGiven,
    ReviewSet,
    SpanNoteSet,
    VerdictSet,
)

_ANSWERED = {
    Answer.ACCEPT: "accepted",
    Answer.EDIT: "accepted with changes",
    Answer.REJECT: "rejected",
}


@dataclass(frozen=True, slots=True)
class Change:
    """What a command has done, in words, and where to look.

    ``key`` is the span on which the cursor belongs; None where it can stay.
    """

    message: str
    mode: str | None = None
    target: Target | None = None
    key: str | None = None


class Words:
    """Speaks of one trace under one taxonomy."""

    def __init__(
        self,
        taxonomy: Taxonomy,
        trace: Trace,
        suggestion: Callable[[str], Suggestion | None],
    ) -> None:
        self._modes = {mode.slug: f"{mode.code} {mode.name}" for mode in taxonomy.all_modes}
        self._codes = {mode.slug: mode.code for mode in taxonomy.all_modes}
        self._trace = trace
        self._suggestion = suggestion

    def mode(self, slug: str) -> str:
        """``1.3 Step repetition``."""
        return self._modes.get(slug, slug)

    def span(self, key: str) -> str:
        """``#13``, or the key of a span that is not here."""
        index = self._trace.index_of(key)
        return key if index is None else f"#{index + 1}"

    def place(self, target: Target) -> str:
        """``#13``, ``#13 to #18``, ``words in #13``, ``the whole trace``."""
        if target.first is None or target.last is None:
            return "the whole trace"
        if target.quote is not None:
            return f"words in {self.span(target.first)}"
        if target.first == target.last:
            return self.span(target.first)
        return f"{self.span(target.first)} to {self.span(target.last)}"

    def change(self, facts: Sequence[Fact]) -> Change:
        """What these facts come to; the last one is what the person asked for."""
        match facts[-1]:
            case LabelAdded(label):
                return self._of_label(label, f"{self.mode(label.mode)} on")
            case LabelRemoved(label):
                return self._of_label(label, f"{self.mode(label.mode)} taken off")
            case LabelChanged(before, label):
                target = label.target
                words = ", ".join(self._what_changed(before, label))
                return Change(words, label.mode, target, target.first)
            case VerdictSet(mode, _, value):
                return Change(f"{self.mode(mode)}: {value or 'open'}", mode)
            case ReviewSet(suggestion, before, after):
                together = _answered_alike(facts, after)
                if after is not None and len(together) > 1:
                    return self._of_many(together, _ANSWERED[after.answer])
                review = after or before
                answer = "waits again" if after is None else _ANSWERED[after.answer]
                wanted = None if review is None else review.label
                own = next((x for x in _labels(facts) if x.id == wanted), None)
                return self._of_review(suggestion, answer, own)
            case SpanNoteSet(key, _, text):
                return Change(_of_note(self.span(key), text), key=key)
            case PassFinished(_, read, spans):
                return Change(f"finished, {read} of {spans} spans read")
            case other:
                raise AssertionError(f"no command ends with {other}")

    def taken_back(self, facts: Sequence[Fact]) -> Change:
        """What is taken back with these facts, and which value holds again where one was set."""
        change = self.change(facts)
        match facts[-1]:
            case LabelChanged(before, after):
                again = ", ".join(self._values(before, after))
            case VerdictSet(_, before, _):
                again = before or "open"
            case SpanNoteSet(_, before, _):
                again = _quoted(before)
            case _:
                again = ""
        now = f" · again {again}" if again else ""
        return replace(change, message=f"taken back: {change.message}{now}")

    def _what_changed(self, before: Label, after: Label) -> Iterator[str]:
        """What a label says now that it did not say before."""
        code, place = self._codes.get(after.mode, after.mode), self.place(after.target)
        if before.mode != after.mode:
            yield f"{self._codes.get(before.mode, before.mode)} is {self.mode(after.mode)} now"
        if before.target != after.target:
            yield f"{code} is on {place} now"
        elif before.mode != after.mode:
            yield f"on {place}"
        if before.note != after.note:
            yield _of_note(place, after.note, f"{code} at ")
        if before.confidence != after.confidence:
            yield f"confidence of {code} on {place}: {confidence_words(after.confidence)}"
        if before.severity is not after.severity:
            yield f"severity of {code} on {place}: {after.severity or 'none'}"

    def _values(self, label: Label, other: Label) -> Iterator[str]:
        """What a label says where another one says something else."""
        if label.mode != other.mode:
            yield self.mode(label.mode)
        if label.target != other.target:
            yield f"on {self.place(label.target)}"
        if label.note != other.note:
            yield _quoted(label.note)
        if label.confidence != other.confidence:
            yield confidence_words(label.confidence)
        if label.severity is not other.severity:
            yield label.severity or "none"

    def difference(
        self,
        labels: Mapping[str, Label],
        labels_now: Mapping[str, Label],
        verdicts: Mapping[str, VerdictValue],
        verdicts_now: Mapping[str, VerdictValue],
        *,
        most: int = 3,
    ) -> str:
        """What has become of one's labels and verdicts, such as ``1.3 Step repetition on #13``.

        Args:
            labels: One's labels before, by id.
            labels_now: The same now.
            verdicts: One's verdicts before, by mode; of a mode with labels nothing is said.
            verdicts_now: The same now.
            most: How many changes are named; the others are counted.

        Returns:
            Empty where nothing has changed.
        """
        facts: list[Fact] = [LabelAdded(x) for key, x in labels_now.items() if key not in labels]
        facts += [LabelRemoved(x) for key, x in labels.items() if key not in labels_now]
        facts += [
            LabelChanged(labels[key], x)
            for key, x in labels_now.items()
            if key in labels and labels[key] != x
        ]
        for mode in {**verdicts, **verdicts_now}:
            before, after = verdicts.get(mode), verdicts_now.get(mode)
            if before is not after and VerdictValue.PRESENT not in (before, after):
                facts.append(VerdictSet(mode, before, after))
        words = [self.change([fact]).message for fact in facts[:most]]
        more = len(facts) - most
        return ", ".join([*words, f"{more} more"] if more > 0 else words)

    def _of_label(self, label: Label, done: str) -> Change:
        target = label.target
        return Change(f"{done} {self.place(target)}", label.mode, target, target.first)

    def _of_many(self, suggestions: Sequence[str], answer: str) -> Change:
        found = [one for one in map(self._suggestion, suggestions) if one is not None]
        modes = list(dict.fromkeys(one.mode for one in found))
        of = f" of {self.mode(modes[0])}" if len(modes) == 1 else ""
        words = f"{answer}: {len(suggestions)} suggestions{of}"
        if not found:
            return Change(words)
        first = found[0]
        return Change(words, first.mode, first.target, first.evidence_key)

    def _of_review(self, suggestion_id: str, answer: str, label: Label | None) -> Change:
        suggestion = self._suggestion(suggestion_id)
        if suggestion is None:
            return Change(f"suggestion {answer}")
        mode = suggestion.mode if label is None else label.mode
        target = suggestion.target if label is None else label.target
        return Change(
            f"{answer}: {self.mode(mode)} on {self.place(target)}",
            mode,
            target,
            suggestion.evidence_key,
        )


def _of_note(place: str, text: str, whose: str = "") -> str:
    return f"note on {whose}{place}: {text}" if text else f"note on {whose}{place} taken off"


def _quoted(text: str) -> str:
    return f"“{text}”" if text else "none"


def _answered_alike(facts: Sequence[Fact], last: ReviewGiven | None) -> list[str]:
    """The suggestions that were answered as the last of them was."""
    reviews = {fact.suggestion: fact.after for fact in facts if isinstance(fact, ReviewSet)}
    return [
        key
        for key, after in reviews.items()
        if after is not None and last is not None and after.answer is last.answer
    ]


def _labels(facts: Sequence[Fact]) -> list[Label]:
    """The labels that were added or changed."""
    added = [fact.label for fact in facts if isinstance(fact, LabelAdded)]
    return added + [fact.after for fact in facts if isinstance(fact, LabelChanged)]
