"""From a label to its place in a trace as it reads now."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mast_tui.labels import Label
from mast_tui.traces.model import Trace


@dataclass(frozen=True, slots=True)
class Place:
    """The spans that a label covers (indices, both included), and where its quote stands.

    ``start`` and ``end`` are code points into the text of span ``first`` (end exclusive), None
    without a quote. ``moved`` says that the quote stands elsewhere than the label says.
    """

    first: int
    last: int
    start: int | None = None
    end: int | None = None
    moved: bool = False


def reanchor(label: Label, trace: Trace) -> Place | None:
    """The place of a label in a trace, or None: its spans are not here, or 'quote not found'.

    A quote that no longer stands where the label says is looked for in the same span, first word
    for word, then with other white space; the place nearest to the old one is taken. Where the
    span itself has gone, it is looked for in all others, and taken where only one has it.
    """
    target = label.target
    if target.first is None or target.last is None:
        return Place(0, max(0, len(trace) - 1))
    first, last = trace.index_of(target.first), trace.index_of(target.last)
    if target.quote is None:
        if first is None or last is None:
            return None
        return Place(min(first, last), max(first, last))
    if first is not None:
        return _in_span(trace, first, target.quote, target.char_start)
    found = [i for i in range(len(trace)) if target.quote in _text(trace, i)]
    if len(found) != 1:
        return None
    place = _in_span(trace, found[0], target.quote, None)
    return place and Place(place.first, place.last, place.start, place.end, moved=True)


def _in_span(trace: Trace, index: int, quote: str, start: int | None) -> Place | None:
    text = _text(trace, index)
    if start is not None and text.startswith(quote, start):
        return Place(index, index, start, start + len(quote))
    if not quote.strip():
        return None
    pattern = r"\s+".join(re.escape(word) for word in quote.split())
    exact = _nearest([m.span() for m in re.finditer(re.escape(quote), text)], start)
    place = exact or _nearest([m.span() for m in re.finditer(pattern, text)], start)
    return place and Place(index, index, *place, moved=True)


def _text(trace: Trace, index: int) -> str:
    """The text of a span; one that cannot be read any more holds nothing."""
    try:
        return trace.text(index)
    except OSError:
        return ""


def _nearest(places: list[tuple[int, int]], start: int | None) -> tuple[int, int] | None:
    return min(places, key=lambda place: abs(place[0] - (start or 0)), default=None)
