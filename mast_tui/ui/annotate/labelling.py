"""Labelling, verdicts and undo on the annotate screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mast_tui.taxonomy.model import Mode
from mast_tui.ui.actions.action import MOVE
from mast_tui.ui.annotate.label_keys import LabelKeys
from mast_tui.ui.annotate.mode_code_entry import DigitEntry, Purpose, type_digit
from mast_tui.ui.annotate.selection import PLAIN, Selection
from mast_tui.ui.annotate.suggestions import Suggesting
from mast_tui.ui.services.workspace_writer import Holds
from mast_tui.ui.text.word_motions import QuoteCursor, next_word, word_at

if TYPE_CHECKING:
    from mast_tui.labels import Target, VerdictValue
    from mast_tui.session import Change, Session


TYPING: Final = frozenset(
    f"annotate.{name}" for name in (*(f"digit_{d}" for d in range(10)), *(row[0] for row in MOVE))
) | {"everywhere.back"}
"""Actions of keys that are known while a mode is being typed: what it is for may still be found."""

EDITING: Final = TYPING | {
    "everywhere.goto",
    *(
        f"annotate.{name}"
        for name in (
            *("find_mode", "range", "quote", "whole", "word_right", "word_left"),
            *("search", "search_next", "search_previous", "search_regex", "filter"),
            *("next_error", "previous_error", "fold", "compare", "copy", "pane", "drawer"),
            *("text_down", "text_up", "raw", "wrap"),
        )
    ),
}
"""The same while another place for a suggestion is marked: what finds the place, and the mode."""


class Labelling(Suggesting, LabelKeys):
    """What keys do to labels; every command is on disk before the screen shows it."""

    # What the last line asks

    @property
    def asks(self) -> bool:
        """Whether a label, the rest of a mode, or another place for a suggestion is asked for."""
        return self._choosing or self.entry.begun or self._editing is not None

    def take_key(self, key: str, action: str | None) -> bool:
        """Take a key while something is asked; what is not known there does nothing."""
        if self._choosing:
            return self.take_choice_key(key, action)
        if self.entry.begun:
            if key == "backspace":
                self._untype()
                return True
            if action in TYPING:
                return False
            self._show_typing()
            return True
        if action in EDITING or key == "enter":
            return False
        if not self.hints.message:
            self.show_editing()
        return True

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
        elif purpose is Purpose.LABEL:
            self.label_with(typed.mode)
        else:
            from mast_tui.labels import VerdictValue

            self._stop_typing()
            self.judge_mode(typed.mode, VerdictValue(purpose.value))

    def action_verdict(self, value: str) -> None:
        """The next two digits say that a mode is absent, or that one is unsure."""
        if not self.has_spans:
            return
        self.entry = DigitEntry(Purpose(value), None, True)
        self._show_typing()

    def _show_typing(self) -> None:
        self.hints.prompt(self.entry.prompt(self.taxonomy, self.size.width - 2))
        self.modes.show_typed(
            frozenset(mode.slug for _, mode in self.entry.candidates(self.taxonomy))
        )

    def _untype(self) -> None:
        """Take back the last of what has been typed of a mode."""
        purpose, first = self.entry.purpose, self.entry.first
        if purpose is not Purpose.LABEL and first is not None:
            self.action_verdict(purpose.value)
            return
        self._stop_typing()
        if self._editing is not None:
            self.show_editing()

    def _stop_typing(self) -> None:
        self.entry = DigitEntry()
        self.modes.show_typed(frozenset())
        self.hints.clear()

    def label_with(self, mode: Mode) -> None:
        """Label what is under the cursor, or take exactly that label off."""
        target = self.target_here()
        editing, self._editing = self._editing, None
        if editing is not None:
            self._done_typing(mode)
            self.with_session(lambda session: self.finish_edit(session, editing, mode, target))
        elif self.session is None:
            self._done_typing(mode)
            self.with_session(lambda _: self._label(mode, target))
        else:
            self._done_typing(mode)
            self.change(lambda session: _toggled(session, mode, target), Holds.MOST)

    def _label(self, mode: Mode, target: Target) -> None:
        self.changed(lambda session: _toggled(session, mode, target))

    def _done_typing(self, mode: Mode) -> None:
        """The mode is typed and what was marked is labelled: nothing is waited for any longer."""
        self._stop_typing()
        self.set_selection(PLAIN)
        self.modes.go_to(mode.slug)

    def judge_mode(self, mode: Mode, value: VerdictValue) -> None:
        """Say that a mode is absent or unsure; asks first where labels stand."""
        self.with_session(lambda session: self._judged(session, mode, value))

    def _judged(self, session: Session, mode: Mode, value: VerdictValue) -> None:
        labels = [label for label in session.labels if label.mode == mode.slug]
        if not labels:
            self.changed(lambda s: s.set_verdict(mode.slug, value))
            return
        if not self.on_stage:
            return
        from mast_tui.ui.dialogs.question import Ask

        count = "1 label" if len(labels) == 1 else f"{len(labels)} labels"

        def answered(answer: str | None) -> None:
            if answer == "y":
                self.change(lambda s: s.set_verdict(mode.slug, value, remove_labels=True))

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
        from mast_tui.ui.dialogs.finder import ModeFinder

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
        self.catch_up()
        word = word_at(self.text_here(), self.span_view.first_offset_on_screen)
        if word is None:
            unreadable = self.span_text.unreadable is not None
            reason = "cannot be read any more" if unreadable else "has no text to quote"
            self.hints.say(f"This span {reason}", error=True)
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
            self.show_range()
        elif selection.quote is not None:
            step = "stretch it" if selection.quote.fixed else "to its first word, v begins there"
            self.hints.prompt(f"quote: w b ← → ↑ ↓ {step}; two digits label it · Esc leaves")
        elif selection.whole:
            self.hints.prompt("whole trace: two digits label it; m f c ⌫ its labels · Esc leaves")

    def show_range(self) -> None:
        """Show how far the range goes that is being marked."""
        marked = self.selection.span_range(self.index)
        self.timeline.show_range(marked)
        if marked is not None:
            first, last = marked
            words = f"#{first + 1} to #{last + 1}" if last > first else f"#{first + 1}"
            self.hints.prompt(f"range {words}: move its end; two digits label it · Esc leaves")

    # Taking back

    def forget_choice(self) -> bool:
        """Leave whatever waits for another key; False where nothing did."""
        waiting = (
            self._choice is not None
            or self._editing is not None
            or self.entry.begun
            or not self.selection.is_plain
        )
        self._choice, self._choosing, self._editing = None, False, None
        self._stop_typing()
        self.set_selection(PLAIN)
        return waiting

    def action_undo(self) -> None:
        """Take back the last change on this trace."""
        self.with_session(lambda session: self._step(back=True))

    def action_redo(self) -> None:
        """Do again what was taken back."""
        self.with_session(lambda session: self._step(back=False))

    def _step(self, *, back: bool) -> None:
        if not self.on_stage:
            self.changed(lambda s: s.undo() if back else s.redo())
            return
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


def _toggled(session: Session, mode: Mode, target: Target) -> Change:
    return session.toggle_label(mode.slug, target, suggestions_on_screen=bool(session.suggestions))
