"""Labelling, verdicts, suggestions and undo on the annotate screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

from mast_tui.labels import Severity, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode
from mast_tui.ui.digits import DigitEntry, Purpose, type_digit
from mast_tui.ui.screens.annotate_base import AnnotateBase
from mast_tui.ui.selection import PLAIN, Selection
from mast_tui.ui.words import QuoteCursor, next_word, word_at

if TYPE_CHECKING:
    from mast_tui.labels import Label, Target
    from mast_tui.session import Session, Suggestion

Chooses = Literal["note", "severity", "confidence", "remove"]

CONFIDENCES: tuple[float | None, ...] = (None, 1.0, 0.75, 0.5, 0.25)
SEVERITIES: tuple[Severity | None, ...] = (None, Severity.FATAL, Severity.BENIGN)


class Labelling(AnnotateBase):
    """What keys do to labels; every command is on disk before the screen shows it."""

    _choice: tuple[Chooses, int] | None = None

    # Typing a mode

    def action_digit(self, digit: str) -> None:
        """Take one digit of a mode's code."""
        if not self.has_spans:
            return
        typed = type_digit(self.entry, digit, self.taxonomy)
        purpose, self.entry = self.entry.purpose, typed.entry
        if typed.refused:
            self._stop_typing()
            self.hints.say(f"Nothing labelled: {typed.refused}", error=True)
            return
        if typed.mode is None:
            self._show_typing()
            return
        self._stop_typing()
        if purpose is Purpose.LABEL:
            self.label_with(typed.mode)
        else:
            self.judge_mode(typed.mode, VerdictValue(purpose.value))

    def action_verdict(self, value: str) -> None:
        """The next two digits say that a mode is absent, or that one is unsure."""
        self.entry = DigitEntry(Purpose(value), None, True)
        self._show_typing()

    def _show_typing(self) -> None:
        self.hints.prompt(self.entry.prompt(self.taxonomy))
        self.modes.show_typed(
            frozenset(mode.slug for _, mode in self.entry.candidates(self.taxonomy))
        )

    def _stop_typing(self) -> None:
        self.entry = DigitEntry()
        self.modes.show_typed(frozenset())
        self.hints.clear()

    def label_with(self, mode: Mode) -> None:
        """Label what is under the cursor, or take exactly that label off."""
        target = self.target_here()
        editing, self._editing = self._editing, None
        self.set_selection(PLAIN)
        self.modes.go_to(mode.slug)
        if editing is not None:
            self.with_session(lambda session: self._edited(session, editing, mode, target))
            return
        self.with_session(lambda session: self._labelled(mode, target))

    def _labelled(self, mode: Mode, target: Target) -> None:
        self.changed(
            lambda session: session.toggle_label(
                mode.slug, target, suggestions_on_screen=bool(session.suggestions)
            )
        )

    def judge_mode(self, mode: Mode, value: VerdictValue) -> None:
        """Say that a mode is absent or unsure; asks first where labels stand."""
        self.with_session(lambda session: self._judged(session, mode, value))

    def _judged(self, session: Session, mode: Mode, value: VerdictValue) -> None:
        labels = [label for label in session.labels if label.mode == mode.slug]
        if not labels:
            self.changed(lambda s: s.set_verdict(mode.slug, value))
            return
        from mast_tui.ui.screens.ask import Ask

        count = "1 label" if len(labels) == 1 else f"{len(labels)} labels"

        def answered(answer: str | None) -> None:
            if answer == "y":
                self.changed(lambda s: s.set_verdict(mode.slug, value, remove_labels=True))

        self.app.push_screen(
            Ask(
                f"{mode.code} {mode.name}",
                f"You have {count} of this mode here. Set it {value} and remove them?",
                (("y", "remove and set"), ("n", "keep")),
            ),
            answered,
        )

    def action_find_mode(self) -> None:
        """Choose a mode by typing a part of its name."""
        if not self.has_spans:
            return
        from mast_tui.ui.screens.mode_finder import ModeFinder

        def found(slug: str | None) -> None:
            if slug is not None:
                self.label_with(self.taxonomy.mode(slug))

        self.app.push_screen(ModeFinder(self.taxonomy), found)

    # What is labelled

    def action_range(self) -> None:
        """Begin a range at the cursor, or end it."""
        if not self.has_spans:
            return
        if self.selection.quote is not None:
            self.set_selection(Selection(quote=self.selection.quote.fix()))
            return
        begun = self.selection.range_from is not None
        self.set_selection(PLAIN if begun else Selection(range_from=self.index))

    def action_quote(self) -> None:
        """Begin to mark words in the span's text; again goes to the next word."""
        if not self.has_spans:
            return
        quote = self.selection.quote
        if quote is not None:
            after = next_word(self.text_here(), quote.head[1])
            self.set_selection(Selection(quote=quote.at(after)))
            return
        word = word_at(self.text_here(), self.span_view.first_offset_on_screen)
        if word is None:
            self.hints.say("This span has no text to quote", error=True)
            return
        self.set_selection(Selection(quote=QuoteCursor(word, word)))

    def action_whole(self) -> None:
        """The next label is on the whole trace."""
        if self.has_spans:
            self.set_selection(PLAIN if self.selection.whole else Selection(whole=True))

    def set_selection(self, selection: Selection) -> None:
        """Mark something else for the next label, and show it."""
        self.selection = selection
        self.timeline.show_range(selection.span_range(self.index) if self.has_spans else None)
        self.show_highlights()
        self.hints.clear()
        if selection.range_from is not None:
            self.hints.prompt("range: move to its other end, then two digits · Esc leaves")
        elif selection.quote is not None:
            step = "stretch it" if selection.quote.fixed else "to its first word, v begins there"
            self.hints.prompt(f"quote: w b ← → ↑ ↓ {step}; two digits label it · Esc leaves")
        elif selection.whole:
            self.hints.prompt("whole trace: two digits · t or Esc leaves")

    def show_highlights(self) -> None:
        """Show in the text what is quoted, found or marked."""
        raise NotImplementedError

    # Suggestions

    _editing: str | None = None

    def action_suggestion(self, step: int) -> None:
        """Go to the next or previous suggestion that waits, at its evidence."""

        def go(session: Session) -> None:
            self.go_to_suggestion(session, step)

        self.with_session(go)

    def go_to_suggestion(self, session: Session, step: int, *, after: int | None = None) -> bool:
        """Put the cursor on the evidence of the next suggestion; False where none waits."""
        pending = session.pending
        if not pending:
            self.suggestion_id = None
            self.show_span()
            self.hints.say(self.no_suggestion_words(session))
            return False
        current = next((i for i, s in enumerate(pending) if s.id == self.suggestion_id), None)
        if current is not None:
            place = (current + step) % len(pending)
        else:
            at = self.index if after is None else after
            places = [self.index_of_suggestion(s) for s in pending]
            if step > 0:
                place = next((i for i, p in enumerate(places) if p >= at), 0)
            else:
                place = next(
                    (i for i in range(len(places) - 1, -1, -1) if places[i] < at), len(pending) - 1
                )
        self.show_suggestion(pending[place])
        return True

    def show_suggestion(self, suggestion: Suggestion) -> None:
        """Put the cursor on a suggestion's evidence."""
        self.suggestion_id = suggestion.id
        self.timeline.go_to(self.index_of_suggestion(suggestion))
        self.modes.go_to(suggestion.mode)
        self.show_span()

    def index_of_suggestion(self, suggestion: Suggestion) -> int:
        """The span where a suggestion's evidence stands."""
        assert self.trace is not None
        for key in (suggestion.evidence_key, suggestion.target.first, suggestion.target.last):
            index = self.trace.index_of(key) if key is not None else None
            if index is not None:
                return index
        return 0

    @staticmethod
    def no_suggestion_words(session: Session) -> str:
        """Why there is no suggestion to go to."""
        if session.blind and not session.finished:
            return "You work blind: suggestions are shown after you have finished the trace"
        if session.suggestions:
            return "All suggestions on this trace are answered"
        return "No suggestions on this trace; J runs the rules judge"

    def action_accept(self) -> None:
        """Accept the suggestion under the cursor and go on to the next."""
        self.with_session(lambda session: self._answer(session, accept=True))

    def action_reject(self) -> None:
        """Reject the suggestion under the cursor and go on to the next."""
        self.with_session(lambda session: self._answer(session, accept=False))

    def _answer(self, session: Session, *, accept: bool) -> None:
        suggestion = self.suggestion_here()
        if suggestion is None:
            if self.go_to_suggestion(session, 1):
                self.hints.say("Here is the next suggestion: a accepts, x rejects, e edits")
            return
        place = self.index_of_suggestion(suggestion)
        done = self.changed(
            lambda s: s.accept(suggestion.id) if accept else s.reject(suggestion.id)
        )
        if done is None:
            return
        self.suggestion_id = None
        if session.pending:
            self.go_to_suggestion(session, 1, after=place)
            self.hints.say(f"{one_line(done.message)} · {len(session.pending)} to go")
        else:
            self.show_span()
            self.hints.say(f"{one_line(done.message)} · all suggestions answered")

    def action_edit(self) -> None:
        """Accept the suggestion with another mode or place: mark it, then type the mode."""
        self.with_session(self._begin_edit)

    def _begin_edit(self, session: Session) -> None:
        suggestion = self.suggestion_here()
        if suggestion is None:
            self._answer(session, accept=True)
            return
        assert self.trace is not None
        self._editing = suggestion.id
        first = suggestion.target.first
        start = self.trace.index_of(first) if first is not None else None
        last = suggestion.target.last
        end = self.trace.index_of(last) if last is not None else None
        if start is not None and end is not None and end > start:
            self.timeline.go_to(end)
            self.set_selection(Selection(range_from=start))
        mode = self.taxonomy.mode(suggestion.mode)
        self.hints.prompt(
            f"edit: move, v range, w quote, t whole; then two digits "
            f"({self.taxonomy.keys_of(mode)} keeps the mode) · Esc leaves"
        )

    def _edited(self, session: Session, suggestion_id: str, mode: Mode, target: Target) -> None:
        place = self.index
        done = self.changed(lambda s: s.edit(suggestion_id, mode.slug, target))
        if done is None:
            return
        self.suggestion_id = None
        if session.pending:
            self.go_to_suggestion(session, 1, after=place)
        self.hints.say(one_line(done.message))

    # Labels under the cursor

    def action_note(self) -> None:
        """Write a note on the label under the cursor, or on the span."""
        if not self.has_spans:
            return
        if self.labels_here():
            self._choose("note")
            return
        assert self.trace is not None
        key, index = self.trace.span(self.index).key, self.index
        from mast_tui.ui.screens.note import NoteScreen

        def ask(session: Session) -> None:
            def written(text: str | None) -> None:
                if text is not None:
                    self.changed(lambda s: s.note_span(key, text))

            self.app.push_screen(
                NoteScreen(f"Note on #{index + 1}", session.span_notes.get(key, "")), written
            )

        self.with_session(ask)

    def action_severity(self) -> None:
        """Fatal, benign, none: for the label under the cursor."""
        self._choose("severity")

    def action_confidence(self) -> None:
        """How sure one is of the label under the cursor."""
        self._choose("confidence")

    def action_remove(self) -> None:
        """Remove the label under the cursor."""
        self._choose("remove")

    def _choose(self, what: Chooses) -> None:
        labels = self.labels_here()
        if not labels:
            self.hints.say("No label of yours on this span", error=True)
            return
        if len(labels) == 1:
            self._apply(what, labels[0])
            return
        if self._choice is not None and self._choice[0] == what:
            place = self._choice[1] % len(labels)
            self._choice = (what, place) if what in ("severity", "confidence") else None
            self._apply(what, labels[place])
            return
        self._choice = (what, 0)
        self._show_choice(labels)

    def next_choice(self) -> bool:
        """Go to the next of several labels under the cursor; False where none is being chosen."""
        labels = self.labels_here()
        if self._choice is None or len(labels) < 2:
            return False
        self._choice = (self._choice[0], (self._choice[1] + 1) % len(labels))
        self._show_choice(labels)
        return True

    def _show_choice(self, labels: tuple[Label, ...]) -> None:
        assert self._choice is not None
        what, place = self._choice
        label = labels[place % len(labels)]
        mode = self.taxonomy.mode(label.mode)
        key = {"note": "m", "severity": "f", "confidence": "c", "remove": "⌫"}[what]
        self.hints.prompt(
            f"{what}: {mode.code} {mode.name} on {self.where_words(label.target)} "
            f"({place % len(labels) + 1} of {len(labels)}) · {key} takes it · Tab the next"
        )

    def _apply(self, what: Chooses, label: Label) -> None:
        if what == "remove":
            self.changed(lambda s: s.remove_label(label.id))
        elif what == "severity":
            severity = _following(SEVERITIES, label.severity)
            self.changed(lambda s: s.edit_label(label.id, severity=severity))
        elif what == "confidence":
            confidence = _following(CONFIDENCES, label.confidence)
            self.changed(lambda s: s.edit_label(label.id, confidence=confidence))
        else:
            from mast_tui.ui.screens.note import NoteScreen

            mode = self.taxonomy.mode(label.mode)

            def written(text: str | None) -> None:
                if text is not None:
                    self.changed(lambda s: s.edit_label(label.id, note=text))

            title = f"Note on {mode.code} {mode.name}, {self.where_words(label.target)}"
            self.app.push_screen(NoteScreen(title, label.note), written)

    def forget_choice(self) -> bool:
        """Leave whatever waits for another key; False where nothing did."""
        waiting = (
            self._choice is not None
            or self._editing is not None
            or self.entry.begun
            or not self.selection.is_plain
        )
        self._choice, self._editing = None, None
        self._stop_typing()
        self.set_selection(PLAIN)
        return waiting

    # Taking back

    def action_undo(self) -> None:
        """Take back the last change on this trace."""
        self.with_session(lambda session: self._step(back=True))

    def action_redo(self) -> None:
        """Do again what was taken back."""
        self.with_session(lambda session: self._step(back=False))

    def _step(self, *, back: bool) -> None:
        assert self.session is not None
        self.hints.clear()
        change = self.changed(lambda s: s.undo() if back else s.redo())
        if change is None:
            if not self.hints.message:
                self.hints.say("Nothing to take back" if back else "Nothing to do again")
            return
        if change.key is not None and self.trace is not None:
            index = self.trace.index_of(change.key)
            if index is not None:
                self.timeline.go_to(index)
        if change.mode is not None:
            self.modes.go_to(change.mode)


Value = TypeVar("Value")


def _following(values: tuple[Value, ...], value: Value) -> Value:
    place = values.index(value) if value in values else 0
    return values[(place + 1) % len(values)]
