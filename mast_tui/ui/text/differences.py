"""The differences of two texts by lines and, within changed lines, by words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Final

from mast_tui.ui.text.json_view import pretty_json

MOST_LINES: Final = 2000
"""The most lines that are compared, from the first that differs."""

MOST_CHARS: Final = 200_000
"""The most code points that are compared, from the first that differs."""

MOST_WORDS: Final = 1000
"""The most words of a line whose words are compared; a longer one is shown as changed."""

WORDS_IN_ALL: Final = 20_000
"""The most words of all lines whose words are compared."""

NEAR_CHARS: Final = 200
"""The code points of a very long line that are shown around a difference."""

SET_OUT_CHARS: Final = 1 << 16
"""The most code points of JSON that is formatted before it is compared."""

CONTEXT: Final = 2
"""The equal lines that are shown around those that differ."""

_WORD: Final = re.compile(r"\w+|\s+|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TextComparison:
    """The lines that differ, ``-`` for the earlier text and ``+`` for the later one.

    ``changed`` holds the ranges of ``text`` that differ in changed lines, end exclusive. ``cut`` is
    true if the texts are longer than the compared parts.
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
    """Compare two texts, without their common begin and end.

    At most ``MOST_LINES`` and ``MOST_CHARS`` of each are compared. Short JSON is formatted first.

    Args:
        earlier: The earlier text.
        later: The later text.
    """
    if max(len(earlier), len(later)) <= SET_OUT_CHARS:
        pretty_earlier = pretty_json(earlier)
        pretty_later = pretty_json(later)
        if pretty_earlier is not None and pretty_later is not None:
            earlier = pretty_earlier.whole()
            later = pretty_later.whole()
    if earlier == later:
        return TextComparison("", (), equal=True, cut=False)
    skipped_lines = 0
    if _is_cut(earlier) or _is_cut(later):
        earlier, later, skipped_lines = _without_common_ends(earlier, later)
    cut = _is_cut(earlier) or _is_cut(later)
    old = _lines(earlier)
    new = _lines(later)
    page = _Page()
    matcher = SequenceMatcher(None, old, new)
    for group in matcher.get_grouped_opcodes(CONTEXT):
        if page.parts or skipped_lines or group[0][1] > 0:
            page.put("⋯", f"line {skipped_lines + group[0][3] + 1}")
        for tag, old_first, old_end, new_first, new_end in group:
            if tag == "equal":
                for line in new[new_first:new_end]:
                    page.put(" ", line)
            else:
                _put_change(page, old[old_first:old_end], new[new_first:new_end])
    return TextComparison("".join(page.parts).rstrip("\n"), tuple(page.changed), False, cut)


def _without_common_ends(earlier: str, later: str) -> tuple[str, str, int]:
    """Cut the common begin and end of two texts, except some lines.

    Returns:
        Both texts, and the number of lines that are cut from the begin of the later one.
    """
    earlier_length = len(earlier)
    later_length = len(later)
    shorter = min(earlier_length, later_length)
    common_begin = _count_equal(shorter, lambda low, high: earlier[low:high] == later[low:high])
    begin = _start_of_context(later, common_begin)
    lines = later.count("\n", 0, begin)
    prefix = "…" if begin and later[begin - 1] != "\n" else ""
    common_end = _count_equal(
        shorter - common_begin,
        lambda low, high: (
            earlier[earlier_length - high : earlier_length - low]
            == later[later_length - high : later_length - low]
        ),
    )
    end = later_length - common_end
    cut = later_length - _end_of_context(later, end)
    suffix = "…" if cut and later[later_length - cut - 1] != "\n" else ""
    return (
        f"{prefix}{earlier[begin : earlier_length - cut]}{suffix}",
        f"{prefix}{later[begin : later_length - cut]}{suffix}",
        lines,
    )


def _count_equal(most: int, equal: Callable[[int, int], bool]) -> int:
    """Count the equal code points before the first that differs.

    Args:
        most: The most code points.
        equal: Compares the code points of a range, given by its first number and its end.
    """
    low = 0
    high = most
    while low < high:
        middle = (low + high + 1) // 2
        if equal(low, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _start_of_context(text: str, offset: int) -> int:
    """Return the begin of the line ``CONTEXT`` lines above an offset, or a nearer one."""
    begin = text.rfind("\n", 0, offset) + 1
    if offset - begin > NEAR_CHARS:
        return offset - NEAR_CHARS
    for _line in range(CONTEXT):
        above = text.rfind("\n", 0, max(0, begin - 1)) + 1
        if begin - above > NEAR_CHARS:
            break
        begin = above
    return begin


def _end_of_context(text: str, offset: int) -> int:
    """Return the end of the line ``CONTEXT`` lines below an offset, or a nearer one."""
    end = offset
    for _line in range(CONTEXT + 1):
        feed = text.find("\n", end)
        below = len(text) if feed < 0 else feed + 1
        if below - end > NEAR_CHARS:
            return end if end > offset else offset + NEAR_CHARS
        end = below
    return end


def _put_change(page: _Page, old: Sequence[str], new: Sequence[str]) -> None:
    paired = len(old) == len(new)
    changes = [_changed_words(a, b, page) for a, b in zip(old, new, strict=True)] if paired else []
    for number, line in enumerate(old):
        page.put("-", line, changes[number][0] if paired else ())
    for number, line in enumerate(new):
        page.put("+", line, changes[number][1] if paired else ())


Ranges = list[tuple[int, int]]


def _changed_words(old: str, new: str, page: _Page) -> tuple[Ranges, Ranges]:
    """Return the ranges of two lines that differ."""
    if page.words_left <= 0:
        return [], []
    old_words = _WORD.findall(old)
    new_words = _WORD.findall(new)
    page.words_left -= len(old_words) + len(new_words)
    if max(len(old_words), len(new_words)) > MOST_WORDS:
        return [], []
    old_starts = list(accumulate(map(len, old_words), initial=0))
    new_starts = list(accumulate(map(len, new_words), initial=0))
    removed: Ranges = []
    added: Ranges = []
    for tag, a, b, c, d in SequenceMatcher(None, old_words, new_words).get_opcodes():
        if tag != "equal":
            if b > a:
                removed.append((old_starts[a], old_starts[b]))
            if d > c:
                added.append((new_starts[c], new_starts[d]))
    return removed, added


def _lines(text: str) -> list[str]:
    return text[:MOST_CHARS].split("\n", MOST_LINES)[:MOST_LINES]


def _is_cut(text: str) -> bool:
    return len(text) > MOST_CHARS or text.count("\n") >= MOST_LINES
