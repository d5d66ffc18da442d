"""Moving about on the annotate screen: rows, words, panes, folds, and back."""

from __future__ import annotations

from mast_tui.safe_text import one_line
from mast_tui.ui.annotate.compare import Comparing
from mast_tui.ui.annotate.filter import Filtering
from mast_tui.ui.annotate.labelling import Labelling
from mast_tui.ui.annotate.search import Searching, SearchInput
from mast_tui.ui.annotate.selection import Selection
from mast_tui.ui.text.word_motions import next_word, previous_word, word_at
from mast_tui.ui.trace_view.folding import Fold, Run
from mast_tui.ui.widgets.virtual_lines import VirtualLines

COPY_LIMIT = 100_000
"""Longest text that is handed to the terminal's clipboard, in code points."""


def _folded_words(fold: Fold) -> str:
    places = f"#{fold.first + 1} to #{fold.end}"
    if isinstance(fold, Run):
        return f"Folded ×{fold.times} {'nearly ' if fold.near else ''}equal steps, {places}"
    if fold.head is not None:
        return f"Folded {places} under #{fold.head + 1}"
    return f"Folded the steps of {one_line(fold.agent, 40)}, {places}"


class Moving(Labelling, Filtering, Searching, Comparing):
    """Keys that change what one looks at, and no label."""

    @property
    def pane(self) -> VirtualLines:
        """The pane that has the focus; the timeline where none has."""
        focused = self.focused
        return focused if isinstance(focused, VirtualLines) else self.timeline

    def action_move(self, delta: int) -> None:
        """One row up or down; a line of the text while a quote is being marked."""
        if self.selection.quote is not None:
            self._quote_line(delta)
        else:
            self.forget_message()
            self.pane.move_by(delta)
            self.follow_cursor()

    def action_move_page(self, delta: int) -> None:
        """One screen up or down."""
        self.forget_message()
        self.pane.move_page(delta)
        self.follow_cursor()

    def action_move_to_start(self) -> None:
        """To the first row."""
        self.forget_message()
        self.pane.move_to(0)
        self.follow_cursor()

    def action_move_to_end(self) -> None:
        """To the last row; while a trace is read to the last span that is known, and on with it."""
        self.forget_message()
        self.pane.move_to_end()
        self.follow_cursor()

    def follow_cursor(self) -> None:
        """Let everything on screen follow the timeline's cursor, where it has moved.

        A key does so itself, so that all it changes is drawn at once; the message that the cursor
        has moved comes too late for that.
        """
        raise NotImplementedError

    def forget_message(self) -> None:
        """What was said belongs to where one was; what is waited for stays on screen."""
        waiting = self.entry.begun or self._choice is not None or not self.selection.is_plain
        if not waiting and self._editing is None:
            self.hints.clear()

    def action_text(self, delta: int) -> None:
        """Scroll the span's text by a screen; while a quote is being marked, ``b`` goes back."""
        if self.selection.quote is not None:
            self.action_word(delta)
        else:
            self.catch_up()
            self.span_view.move_page(delta)

    def action_raw(self) -> None:
        """Show JSON as it is, or set out in lines."""
        self.catch_up()
        if not self.span_view.toggle_raw():
            self.hints.say("This text is shown as it is: it is no JSON to set out in lines")
        elif self.span_view.raw:
            self.hints.say("JSON is shown as it is")
        else:
            self.hints.say("JSON is set out in lines")

    def action_wrap(self) -> None:
        """Break long lines of the text, or let them run on to the side."""
        self.span_view.toggle_wrap()
        if self.span_view.wrapped:
            self.hints.say("Long lines are wrapped")
        else:
            self.hints.say("Long lines run on: ← → scroll while the text has the focus (tab)")

    def action_word(self, step: int) -> None:
        """To the next or previous word, while a quote is being marked; else to the side in a text
        whose lines run on."""
        quote = self.selection.quote
        if quote is None:
            if self.pane is self.span_view and not self.span_view.move_sideways(step):
                self.hints.say("Long lines are wrapped; W lets them run on")
            return
        text = self.text_here()
        word = next_word(text, quote.head[1]) if step > 0 else previous_word(text, quote.head[0])
        self.set_selection(Selection(quote=quote.at(word)))

    def _quote_line(self, delta: int) -> None:
        quote = self.selection.quote
        assert quote is not None
        offset = self.span_view.vertical_neighbour(quote.head[0], delta)
        self.set_selection(Selection(quote=quote.at(word_at(self.text_here(), offset))))

    def action_pane(self) -> None:
        """The next pane; or the next of several labels where one is being chosen."""
        if self.next_choice():
            return
        order: list[VirtualLines] = [self.timeline, self.span_view, self.modes]
        order += [panel for panel in self.suggestion_panels if panel.overflows]
        panes = [pane for pane in order if pane.is_on_screen and pane.display]
        place = panes.index(self.pane) if self.pane in panes else 0
        self.set_focus(panes[(place + 1) % len(panes)])

    def action_drawer(self) -> None:
        """Show or hide the taxonomy where it is a drawer."""
        self.toggle_class("-drawer")
        self.set_focus(self.modes if self.has_class("-drawer") else self.timeline)

    def action_fold(self) -> None:
        """Fold or unfold what the step under the cursor is a part of."""
        if not self.has_spans:
            return
        if self.timeline.filtered:
            self.hints.say("Nothing is folded while only some spans are shown")
            return
        index = self.index
        fold = self.timeline.toggle_fold()
        if fold is None:
            self.hints.say(
                f"#{index + 1} stands in no run of equal steps, and nothing belongs under it"
            )
        elif self.timeline.rows.folded_at(fold.first) is not None:
            self.hints.say(_folded_words(fold))
        self.show_span()

    def action_copy(self) -> None:
        """Copy the span's text, or the marked quote, through the terminal."""
        if not self.has_spans:
            return
        text = self.text_here()
        if self.span_text.unreadable is not None:
            self.hints.say("Nothing to copy: this text cannot be read any more", error=True)
            return
        quote = self.selection.quote
        if quote is not None:
            text = text[quote.start : quote.end]
        self.app.copy_to_clipboard(text[:COPY_LIMIT])
        cut = f", cut at {COPY_LIMIT:,}" if len(text) > COPY_LIMIT else ""
        self.hints.say(f"Copied {min(len(text), COPY_LIMIT):,} characters{cut}")

    def action_back(self) -> None:
        """Leave what is open, one thing at a time; then the trace.

        Of a search and a filter the one that was set last goes first.
        """
        if self.focused is not None and isinstance(self.focused, SearchInput):
            self.forget_search()
            return
        steps = [self.forget_search, self.forget_filter]
        if self.set_last == "filter":
            steps.reverse()
        if self.forget_choice() or any(step() for step in steps):
            self.hints.clear()
            return
        if self.has_class("-drawer"):
            self.action_drawer()
            return
        if self.focused is not self.timeline:
            self.set_focus(self.timeline)
            return
        self.leave()

    def leave(self) -> None:
        """Back to the library."""
        raise NotImplementedError

    def action_trace(self, step: int) -> None:
        """Another trace of the queue."""
        self.other_trace(step)

    def other_trace(self, step: int) -> None:
        """Open the next or previous trace of the queue."""
        raise NotImplementedError

    def go_to_place(self, text: str) -> bool:
        """Go to a span by its number (from 1) or its key; False where there is none."""
        if not self.has_spans:
            return False
        assert self.trace is not None
        wanted = text.strip().removeprefix("#")
        if wanted.isdecimal() and 1 <= int(wanted) <= len(self.trace):
            index: int | None = int(wanted) - 1
        else:
            index = self.trace.index_of(text.strip())
        if index is None:
            return False
        self.timeline.go_to(index)
        self.show_span()
        return True
