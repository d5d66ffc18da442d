"""The text of the span that a screen shows, and what is said where it cannot be read any more."""

from __future__ import annotations

import re
from typing import Final

from textual.screen import Screen

from mast_tui.safe_text import one_line
from mast_tui.traces.model import PREVIEW_CHARS, Span, SpanKind, Trace
from mast_tui.ui.context import context_of
from mast_tui.ui.trace_view.timeline import SHELLS

PYTHONS: Final = frozenset({"python", "ipython", "execute_python", "python_executor", "jupyter"})
"""Tools that run a program in Python, and whose name says so."""

_NO_TEXT: Final = "This step has no text."


class SpanText:
    """Reads the text of one span at a time for ``screen``; that a trace has changed is said once.

    A text that cannot be read is empty, so that there is nothing to quote or to copy.
    """

    def __init__(self, screen: Screen[None]) -> None:
        self.unreadable: str | None = None
        """Why the text that was read last cannot be read; None where it can."""
        self._screen = screen
        self._last: tuple[Trace | None, int, str] = (None, -1, "")
        self._told_of: Trace | None = None

    @property
    def words_on_nothing(self) -> str:
        """What is shown in place of a text that is empty."""
        return _NO_TEXT if self.unreadable is None else f"[cannot be read: {self.unreadable}]"

    def forget(self) -> None:
        """Read the next text in any case."""
        self._last = (None, -1, "")

    def of(self, trace: Trace, index: int) -> str:
        """The text of the span at ``index``; the one read last is kept."""
        if self._last[0] is not trace or self._last[1] != index:
            self._last = (trace, index, self._read(trace, index))
        return self._last[2]

    def _read(self, trace: Trace, index: int) -> str:
        try:
            text, self.unreadable = trace.text(index), None
        except OSError as error:
            text, self.unreadable = "", error.strerror or str(error)
        reason = self.unreadable or trace.changed()
        if reason is not None:
            self.tell(trace, reason)
        return text

    def tell(self, trace: Trace, reason: str) -> None:
        """Say once of a trace that its file is not what was read."""
        if self._told_of is not trace:
            self._told_of = trace
            key = context_of(self._screen).key_of("annotate.follow")
            words = f"{trace.path.name} is not what was opened: {reason}. {key} reads it anew"
            self._screen.app.notify(one_line(words), severity="warning", timeout=12, markup=False)


def written_as(span: Span) -> str:
    """Return how the text of a span is written, as ``text/highlighting.py`` calls it."""
    if span.kind is SpanKind.TOOL_CALL:
        name = (span.name or "").lower()
        return "bash" if name in SHELLS else "python" if name in PYTHONS else "output"
    return "output" if span.kind is SpanKind.TOOL_RESULT else "markdown"


def opens_at(span: Span, text: str) -> int:
    """Return where a text is to be opened: at what the row of its span shows.

    Some begin with a prompt of pages, and the row shows the answer behind it.

    Args:
        span: Whose row it is.
        text: Its text.
    """
    words = span.preview.split()
    cut = len(span.preview) >= PREVIEW_CHARS
    if span.whole or not words or span.kind is SpanKind.TOOL_CALL:
        return 0
    if cut and " ".join(text[: 4 * PREVIEW_CHARS].split()).startswith(span.preview):
        return 0
    # A preview that is not cut goes on to the end of the text; the same words may stand before.
    end = "" if cut else r"\s*\Z"
    found = re.search(r"\s+".join(map(re.escape, words)) + end, text)
    return 0 if found is None else found.start()
