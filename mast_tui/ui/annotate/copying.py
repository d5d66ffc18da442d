"""Copying what is on screen, or where it stands: a text, a quote, a place, the whole trace."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING, Final

from textual.worker import get_current_worker

from mast_tui.traces.model import Span, Trace
from mast_tui.ui.dialogs.finder import FinderChoice, FinderDialog
from mast_tui.ui.services.clipboard import TERMINAL_CHARS, copied_words, copy_by_tools

if TYPE_CHECKING:
    from mast_tui.ui.annotate.screen import AnnotateScreen

MOST_CHARS: Final = 20_000_000
"""The longest trace that is copied; what is longer is cut there."""

_LINE: Final = re.compile(r"line (\d+)")


class Copying:
    """Gives texts of the trace to the clipboard, and says by what."""

    def __init__(self, screen: AnnotateScreen) -> None:
        self._screen = screen
        self._state = screen.state

    def copy(self) -> None:
        """Copy the quote that is marked, else the text of the span."""
        if self._state.has_spans:
            quoted = self._state.selection.quote is not None
            self._copy("quote" if quoted else "text")

    def choose(self) -> None:
        """Ask what to copy."""
        trace = self._state.trace
        if trace is None or not self._state.has_spans:
            return
        number = self._state.index + 1
        choices = [FinderChoice("text", "", f"the text of #{number}")]
        if self._state.selection.quote is not None:
            choices.insert(0, FinderChoice("quote", "", "the quote that is marked"))
        place = place_of(trace, trace.span(self._state.index))
        choices.append(FinderChoice("place", "", "where it stands in its file", place))
        choices.append(
            FinderChoice("trace", "", "the whole trace as text", f"{len(trace):,} spans")
        )
        dialog = FinderDialog("Copy", choices, placeholder="what to copy")
        self._screen.app.push_screen(dialog, self._copy)

    def _copy(self, what: str | None) -> None:
        trace, quote = self._state.trace, self._state.selection.quote
        if trace is None or what is None:
            return
        span = trace.span(self._state.index)
        if what == "place":
            self.hand_over("the place", lambda: place_of(trace, span))
        elif what == "trace":
            self._screen.hints.say("Copying the whole trace …")
            self.hand_over("the trace", lambda: whole_text(trace))
        else:
            text = self._state.text_here()
            if self._state.texts.unreadable is not None:
                words = "Nothing to copy: this text cannot be read any more"
                self._screen.hints.say(words, error=True)
                return
            if what == "quote" and quote is not None:
                self.hand_over("the quote", lambda: text[quote.start : quote.end])
            else:
                self.hand_over(f"the text of #{span.index + 1}", lambda: text)

    def hand_over(self, what: str, made: Callable[[], str]) -> None:
        """Copy a text that is made in the background, and say so by what it is called.

        Args:
            what: What it is called.
            made: Gives the text.
        """
        self._screen.in_background(partial(self._run, what, made), "copy")

    def _run(self, what: str, made: Callable[[], str]) -> None:
        worker = get_current_worker()
        try:
            text = made()
        except OSError:
            text, what = "", ""
        used = copy_by_tools(text) if text else []
        if not worker.is_cancelled:
            self._screen.call_later(self._take_copied, what, text, used)

    def _take_copied(self, what: str, text: str, used: list[str]) -> None:
        """Say what was copied; hand it to the terminal where no tool took it."""
        if not text:
            self._screen.hints.say("Nothing to copy", error=True)
            return
        if not used:
            self._screen.app.copy_to_clipboard(text[:TERMINAL_CHARS])
        self._screen.hints.say(copied_words(what, len(text), used))


def place_of(trace: Trace, span: Span) -> str:
    """Return where a span stands, as editors and other tools take it.

    Args:
        trace: Whose span it is.
        span: The span.

    Returns:
        ``file:line`` where its place is a line, else the file with the pointer into it.
    """
    line = _LINE.match(span.place)
    return f"{trace.path}:{line[1]}" if line is not None else f"{trace.path}#{span.place}"


def whole_text(trace: Trace) -> str:
    """Return the texts of all spans, each under a line that says whose it is."""
    text = StringIO()
    for index in range(len(trace)):
        span = trace.span(index)
        name = f" · {span.name}" if span.name else ""
        text.write(f"#{index + 1} {span.kind.replace('_', ' ')} · {span.agent}{name}\n")
        text.write(f"{trace.text(index).rstrip()}\n\n")
        if text.tell() >= MOST_CHARS:
            break
    return text.getvalue()[:MOST_CHARS]
