"""A few spans of a trace as a short text: what an example shows."""

from __future__ import annotations

from typing import Final

from mast_tui.labels import Target
from mast_tui.safe_text import one_line
from mast_tui.traces.model import Span, Trace

MOST_CHARS: Final = 1_800
"""About so many characters of text an excerpt has: a few hundred tokens."""

MOST_SPANS: Final = 4
MOST_QUOTE: Final = 160

_LEFT_OUT: Final = "[…]"


def excerpt_of(trace: Trace, target: Target) -> tuple[str, str] | None:
    """The spans of a target as text, and words of them that can be quoted.

    Long texts are shortened around the quote, long ranges to their ends. None where the spans are
    not in the trace, or hold no text.
    """
    if target.first is None or target.last is None:
        return None
    first, last = trace.index_of(target.first), trace.index_of(target.last)
    if first is None or last is None:
        return None
    first, last = min(first, last), max(first, last)
    indices = list(range(first, last + 1))
    if len(indices) > MOST_SPANS:
        indices = [*indices[: MOST_SPANS - 1], last]
    quote = target.quote
    share = MOST_CHARS // len(indices)
    parts: list[str] = []
    before = first - 1
    for index in indices:
        if index != before + 1:
            parts.append(f"[… {index - before - 1} steps left out …]")
        text, found = _cut(trace.text(index), share, quote, target.char_start)
        quote = quote if found is None else found
        parts.append(f"{_heading(trace.span(index))}\n{text}")
        before = index
    words = quote or _first_words(trace.text(first))
    shown = "\n\n".join(parts)
    return (shown, words) if words and words in shown else None


def _heading(span: Span) -> str:
    named = [span.kind.value.replace("_", " "), one_line(span.agent, 40)]
    if span.name:
        named.append(one_line(span.name, 40))
    if span.status.value == "error":
        named.append("error")
    return f"({' · '.join(part for part in named if part)})"


def _cut(text: str, room: int, quote: str | None, start: int | None) -> tuple[str, str | None]:
    """The text within its room, and the quote as it is shown where it stands here."""
    at = -1
    if quote:
        at = start if start is not None and text.startswith(quote, start) else text.find(quote)
    shown = None if at < 0 or quote is None else quote[:MOST_QUOTE]
    if len(text) <= room:
        return text, shown
    middle = 0 if shown is None else at + len(shown) // 2
    begin = max(0, min(middle - room // 2, len(text) - room))
    end = begin + room
    before = _LEFT_OUT if begin else ""
    after = _LEFT_OUT if end < len(text) else ""
    return f"{before}{text[begin:end]}{after}", shown


def _first_words(text: str) -> str:
    """The first line that says something, where nobody marked words."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line[:MOST_QUOTE].rstrip()
