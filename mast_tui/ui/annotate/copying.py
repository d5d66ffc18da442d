"""Copying from the open trace: a text, a quote, the location of a span, the whole trace."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from io import StringIO
from typing import Final

from mast_tui.counts import counted
from mast_tui.traces.model import Span, Trace
from mast_tui.ui.annotate.part import ScreenPart
from mast_tui.ui.dialogs.finder import FinderChoice, FinderDialog
from mast_tui.ui.services.external_programs import TERMINAL_CHARS, copied_text, copy_by_tools

MAX_CHARS: Final = 20_000_000
"""The most characters of the copy of a trace."""

_LINE_NUMBER: Final = re.compile(r"line (\d+)")


class Copying(ScreenPart):
    """Copies texts of the trace to the clipboard, and reports which tool did."""

    def copy(self) -> None:
        """Copy the marked quote, or else the text of the span."""
        if self._state.has_spans:
            self._copy_choice("quote" if self._state.selection.quote is not None else "text")

    def choose(self) -> None:
        """Ask what to copy, and copy it."""
        trace = self._state.trace
        if trace is None or not self._state.has_spans:
            return
        span = trace.span(self._state.index)
        choices = [
            FinderChoice("text", "", f"the text of #{span.index + 1}"),
            FinderChoice("place", "", "its place in the file", location_of(trace, span)),
            FinderChoice("trace", "", "the whole trace as text", counted(len(trace), "span")),
        ]
        if self._state.selection.quote is not None:
            choices.insert(0, FinderChoice("quote", "", "the quote that is marked"))
        dialog = FinderDialog("Copy", choices, placeholder="what to copy")
        self._screen.mast.ask(dialog, self._copy_choice)

    def _copy_choice(self, choice: str) -> None:
        """Copy the chosen part: ``text``, ``quote``, ``place`` or ``trace``.

        If the text of the span cannot be read, show an error.
        """
        trace = self._state.trace
        quote = self._state.selection.quote
        if trace is None:
            return
        span = trace.span(self._state.index)
        if choice == "place":
            self.copy_in_background("the place", lambda: location_of(trace, span))
        elif choice == "trace":
            self._screen.hints.say("Copying the whole trace …")
            self.copy_in_background("the trace", lambda: whole_text(trace))
        else:
            text = self._state.text_at_cursor()
            if self._state.texts.unreadable is not None:
                message = "Nothing to copy: this text cannot be read any more"
                self._screen.hints.say(message, error=True)
                return
            if choice == "quote" and quote is not None:
                self.copy_in_background("the quote", lambda: text[quote.start : quote.end])
            else:
                self.copy_in_background(f"the text of #{span.index + 1}", lambda: text)

    def copy_in_background(self, name: str, make_text: Callable[[], str]) -> None:
        """Make a text in the background, copy it, and report that.

        Args:
            name: The name of the text in the message.
            make_text: Returns the text.
        """

        def copy() -> tuple[str, list[str]]:
            """Return the text and the tools that have copied it.

            The text is empty if it cannot be read.
            """
            try:
                text = make_text()
            except OSError:
                text = ""
            return text, copy_by_tools(text) if text else []

        self._screen.work.run("copy", copy, partial(self._finish_copy, name))

    def _finish_copy(self, name: str, copied: tuple[str, list[str]]) -> None:
        """Report the copy. If no tool has copied the text, let the terminal copy it."""
        text, copied_by = copied
        if not text:
            self._screen.hints.say("Nothing to copy", error=True)
            return
        if not copied_by:
            self._screen.app.copy_to_clipboard(text[:TERMINAL_CHARS])
        self._screen.hints.say(copied_text(name, len(text), copied_by))


def location_of(trace: Trace, span: Span) -> str:
    """Return the location of a span as editors and other tools accept it.

    Args:
        trace: The trace.
        span: The span.

    Returns:
        ``file:line`` if the span has a line, else ``file#pointer``.
    """
    line_match = _LINE_NUMBER.match(span.place)
    if line_match is None:
        return f"{trace.path}#{span.place}"
    return f"{trace.path}:{line_match[1]}"


def whole_text(trace: Trace) -> str:
    """Return the texts of all spans, each below a line with its number, kind and agent.

    At most ``MAX_CHARS`` are returned.
    """
    text = StringIO()
    for index in range(len(trace)):
        span = trace.span(index)
        name = f" · {span.name}" if span.name else ""
        text.write(f"#{index + 1} {span.kind.replace('_', ' ')} · {span.agent}{name}\n")
        text.write(f"{trace.text(index).rstrip()}\n\n")
        if text.tell() >= MAX_CHARS:
            break
    return text.getvalue()[:MAX_CHARS]
