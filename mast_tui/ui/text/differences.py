"""In what two texts differ, line by line and, inside lines that were changed, word by word."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Final

from mast_tui.ui.text.json_view import pretty_json

MOST_LINES: Final = 2000
"""Of longer texts only so many lines are compared, from the first that differs on."""

MOST_CHARS: Final = 200_000
"""Of longer texts only so many code points are compared, from the first that differs on."""

MOST_WORDS: Final = 1000
"""Lines of more words are shown as changed altogether."""

WORDS_IN_ALL: Final = 20_000
"""After so many words all lines are shown as changed altogether."""

NEAR_CHARS: Final = 200
"""How much of a very long line is shown around what differs in it."""

SET_OUT_CHARS: Final = 1 << 16
"""Longer JSON is compared as it is."""

CONTEXT: Final = 2
"""Equal lines that are shown around those that differ."""

_WORD: Final = re.compile(r"\w+|\s+|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TextComparison:
    """The lines that differ, ``-`` for the earlier text and ``+`` for the later one.

    ``changed`` are the parts of ``text`` that differ inside lines that have a counterpart, as
    first and last (exclusive) code point. ``cut`` says that the texts go on beyond what was
    compared.
    """

    text: str
    changed: tuple[tuple[int, int], ...]
    equal: bool
    cut: bool


class _Page:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.changed: list[tuple[int, int]] = []
        self.words_left = WORDS_IN_ALL
        self._length = 0

    def put(self, sign: str, line: str, changed: Sequence[tuple[int, int]] = ()) -> None:
        begin = self._length + len(sign) + 1
        self.changed += [(begin + first, begin + end) for first, end in changed]
        self.parts.append(f"{sign} {line}\n")
        self._length += len(self.parts[-1])


def compare(earlier: str, later: str) -> TextComparison:
    """How two texts differ; what both begin and end with is passed over.

    Of what is left at most ``MOST_LINES`` and ``MOST_CHARS`` of each are compared. Where both are
    JSON, and not long, they are compared as they are set out for reading.
    """
    if max(len(earlier), len(later)) <= SET_OUT_CHARS:
        set_out = pretty_json(earlier), pretty_json(later)
        if set_out[0] is not None and set_out[1] is not None:
            earlier, later = set_out[0].whole(), set_out[1].whole()
    if earlier == later:
        return TextComparison("", (), equal=True, cut=False)
    before = 0
    if _is_cut(earlier) or _is_cut(later):
        earlier, later, before = _where_they_differ(earlier, later)
    cut = _is_cut(earlier) or _is_cut(later)
    old, new = _lines(earlier), _lines(later)
    page = _Page()
    matcher = SequenceMatcher(None, old, new)
    for group in matcher.get_grouped_opcodes(CONTEXT):
        if page.parts or before or group[0][1] > 0:
            page.put("⋯", f"line {before + group[0][3] + 1}")
        for tag, old_first, old_end, new_first, new_end in group:
            if tag == "equal":
                for line in new[new_first:new_end]:
                    page.put(" ", line)
            else:
                _put_change(page, old[old_first:old_end], new[new_first:new_end])
    return TextComparison("".join(page.parts).rstrip("\n"), tuple(page.changed), False, cut)


def _where_they_differ(one: str, other: str) -> tuple[str, str, int]:
    """Both without what they begin and end with alike but for some lines, and how many lines of
    ``other`` stand before."""
    a, b = len(one), len(other)
    same = _alike(min(a, b), lambda low, high: one[low:high] == other[low:high])
    begin = _back(other, same)
    lines = other.count("\n", 0, begin)
    lead = "…" if begin and other[begin - 1] != "\n" else ""
    tail = _alike(
        min(a, b) - same,
        lambda low, high: one[a - high : a - low] == other[b - high : b - low],
    )
    kept = _on(other, len(other) - tail) - (len(other) - tail)
    rest = tail - kept
    trail = "…" if rest and other[len(other) - rest - 1] != "\n" else ""
    one, other = one[begin : len(one) - rest], other[begin : len(other) - rest]
    return f"{lead}{one}{trail}", f"{lead}{other}{trail}", lines


def _alike(most: int, equal: Callable[[int, int], bool]) -> int:
    """Count code points that are alike, the first that differs ending it.

    Args:
        most: How many there are at most.
        equal: Whether those from one count on up to another (exclusive) are alike.
    """
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if equal(low, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _back(text: str, at: int) -> int:
    """The beginning of the line ``CONTEXT`` lines above the one at ``at``, if that is near."""
    begin = text.rfind("\n", 0, at) + 1
    if at - begin > NEAR_CHARS:
        return at - NEAR_CHARS
    for _line in range(CONTEXT):
        above = text.rfind("\n", 0, max(0, begin - 1)) + 1
        if begin - above > NEAR_CHARS:
            break
        begin = above
    return begin


def _on(text: str, at: int) -> int:
    """The end of the line ``CONTEXT`` lines below the one at ``at``, if that is near."""
    end = at
    for _line in range(CONTEXT + 1):
        feed = text.find("\n", end)
        below = len(text) if feed < 0 else feed + 1
        if below - end > NEAR_CHARS:
            return end if end > at else at + NEAR_CHARS
        end = below
    return end


def _put_change(page: _Page, old: Sequence[str], new: Sequence[str]) -> None:
    paired = len(old) == len(new)
    words = [_words_changed(a, b, page) for a, b in zip(old, new, strict=True)] if paired else []
    for place, line in enumerate(old):
        page.put("-", line, words[place][0] if paired else ())
    for place, line in enumerate(new):
        page.put("+", line, words[place][1] if paired else ())


Parts = list[tuple[int, int]]


def _words_changed(old: str, new: str, page: _Page) -> tuple[Parts, Parts]:
    """The parts of two lines that differ."""
    if page.words_left <= 0:
        return [], []
    before, after = _WORD.findall(old), _WORD.findall(new)
    page.words_left -= len(before) + len(after)
    if max(len(before), len(after)) > MOST_WORDS:
        return [], []
    starts_before, starts_after = (
        list(accumulate(map(len, words), initial=0)) for words in (before, after)
    )
    gone: Parts = []
    come: Parts = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after).get_opcodes():
        if tag != "equal":
            if b > a:
                gone.append((starts_before[a], starts_before[b]))
            if d > c:
                come.append((starts_after[c], starts_after[d]))
    return gone, come


def _lines(text: str) -> list[str]:
    return text[:MOST_CHARS].split("\n", MOST_LINES)[:MOST_LINES]


def _is_cut(text: str) -> bool:
    return len(text) > MOST_CHARS or text.count("\n") >= MOST_LINES
