"""Where a label lies, as Label Studio's ``Paragraphs`` counts it, and back.

A region begins and ends in a paragraph (by its number, from 0, the end one included) and there at
an offset in UTF-16 code units, since that is how strings count in a browser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mast_tui.exchange.exporters.trace_texts import SpanText
from mast_tui.labels import Target

Values = dict[str, Any]


def utf16_length(text: str) -> int:
    """How many UTF-16 code units a text takes; a lone surrogate is one."""
    return len(text) + sum(char > "\uffff" for char in text)


def code_points(text: str, units: int, *, up: bool = False) -> int:
    """How many code points the first ``units`` UTF-16 code units of a text are.

    Within a pair the place is that before the pair, or with ``up`` that after it.
    """
    counted = 0
    for place, char in enumerate(text):
        if counted >= units:
            return place
        counted += 2 if char > "\uffff" else 1
        if counted > units:
            return place + 1 if up else place
    return len(text)


def region_of(target: Target, spans: Sequence[SpanText]) -> Values | None:
    """The place of a target, None for the whole trace and where its spans are not there.

    A quote whose place is unknown is looked for in its span; where it is not there the region is
    the whole span.
    """
    places = {span.key: number for number, span in enumerate(spans)}
    if target.first not in places or target.last not in places:
        return None
    first, last = places[target.first], places[target.last]
    if first > last:
        first, last = last, first
    found = _quote(target, spans[first].text)
    if found is not None:
        text = spans[first].text
        start, end = (utf16_length(text[:place]) for place in found)
    else:
        start, end = 0, utf16_length(spans[last].text)
    return {"start": str(first), "end": str(last), "startOffset": start, "endOffset": end}


def _quote(target: Target, text: str) -> tuple[int, int] | None:
    if target.quote is None:
        return None
    start, end = target.char_start, target.char_end
    if start is not None and end is not None and text[start:end] == target.quote:
        return start, end
    place = text.find(target.quote)
    return None if place < 0 or not target.quote else (place, place + len(target.quote))


def target_of(value: Mapping[str, object], spans: Sequence[SpanText]) -> Target:
    """The target that a region marks; raises ``ValueError`` where it lies outside the trace.

    Whole paragraphs are a range of spans, words of one paragraph a quote. Words over several
    paragraphs are the range of these, since a quote stands inside one span.
    """
    first, last = _number(value, "start"), _number(value, "end")
    if not 0 <= first <= last < len(spans):
        raise ValueError(f"lies on paragraphs {first} to {last}, but the task has {len(spans)}")
    one, other = spans[first], spans[last]
    if "startOffset" not in value and "endOffset" not in value:
        return Target(one.key, other.key)
    start = code_points(one.text, _number(value, "startOffset"))
    end = code_points(other.text, _number(value, "endOffset"), up=True)
    if first != last or (start == 0 and end == len(one.text)):
        return Target(one.key, other.key)
    if start >= end:
        raise ValueError(f"is empty: it begins at {start} and ends at {end} of paragraph {first}")
    return Target(one.key, one.key, one.text[start:end], start, end)


def place_of(value: Mapping[str, object]) -> tuple[int, ...]:
    """What of a region says where it is, to be compared; raises ``ValueError``."""
    return tuple(_number(value, name) for name in ("start", "end", "startOffset", "endOffset"))


def _number(value: Mapping[str, object], name: str) -> int:
    number = value.get(name)
    if isinstance(number, str) and number.isascii() and number.isdigit():
        return int(number)
    if isinstance(number, int) and not isinstance(number, bool) and number >= 0:
        return number
    raise ValueError(f"{name!r} is {number!r}, not a number from 0")
