"""The differences of two texts by lines and, within changed lines, by words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, zip_longest
from typing import Final, NamedTuple

from msgspec import Struct

from mast_tui.ui.text.json_view import pretty_json

MOST_LINES: Final = 2000
"""The most lines compared, from the first difference on."""

MOST_CHARS: Final = 200_000
"""The most code points compared, from the first difference on."""

MOST_WORDS: Final = 1000
"""The most words of a line in which words are compared."""

WORDS_IN_ALL: Final = 20_000
"""The most words compared in all lines together."""

NEAR_CHARS: Final = 200
"""The code points of a very long line that are shown around a difference."""

MOST_FORMATTED_CHARS: Final = 1 << 16
"""The longest JSON, in code points, that is formatted before the comparison."""

CONTEXT_LINES: Final = 2
"""The number of equal lines shown around different lines."""

_WORD: Final = re.compile(r"\w+|\s+|.", re.DOTALL)


class TextComparison(Struct, frozen=True):
    """The lines in which two texts differ.

    Attributes:
        text: The lines, with ``-`` before lines of the earlier text and ``+`` before those of the
            later text.
        changed_ranges: The ranges of ``text``, end exclusive, that differ within changed lines.
        is_equal: True if the texts are the same.
        is_cut: True if only a part of the texts was compared.
    """

    text: str
    changed_ranges: tuple[tuple[int, int], ...]
    is_equal: bool
    is_cut: bool


class _Page:
    """The text of a comparison under construction.

    Attributes:
        lines: The lines so far, each with its sign and line break.
        changed_ranges: The ranges of the text that differ within changed lines.
        words_left: The number of words that may still be compared.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.changed_ranges: list[tuple[int, int]] = []
        self.words_left = WORDS_IN_ALL
        self._length = 0

    def add_line(
        self, sign: str, line: str, changed_ranges: Sequence[tuple[int, int]] = ()
    ) -> None:
        """Add a line with its sign, and the ranges of the line that differ."""
        line_start = self._length + len(sign) + 1
        self.changed_ranges += [
            (line_start + first, line_start + end) for first, end in changed_ranges
        ]
        self.lines.append(f"{sign} {line}\n")
        self._length += len(self.lines[-1])


def compare(earlier_text: str, later_text: str) -> TextComparison:
    """Return the lines in which two texts differ, with some lines of context.

    At most ``MOST_LINES`` and ``MOST_CHARS`` of each text are compared. Longer texts first lose
    their common beginning and end. Short JSON is formatted first.

    Args:
        earlier_text: The earlier text.
        later_text: The later text.
    """
    texts = _formatted(_ComparedTexts(earlier_text, later_text))
    if texts.earlier == texts.later:
        return TextComparison("", (), is_equal=True, is_cut=False)
    if texts.is_too_long:
        texts = _without_common_ends(texts)
    page = _Page()
    _add_differences(page, texts)
    return TextComparison(
        "".join(page.lines).rstrip("\n"),
        tuple(page.changed_ranges),
        is_equal=False,
        is_cut=texts.is_too_long,
    )


class _ComparedTexts(NamedTuple):
    """Two texts, or the parts of them to compare.

    Attributes:
        earlier: The earlier text.
        later: The later text.
        skipped_lines: The number of lines cut off before ``later``.
    """

    earlier: str
    later: str
    skipped_lines: int = 0

    @property
    def is_too_long(self) -> bool:
        """True if a text is too long to compare as a whole."""
        return any(
            len(text) > MOST_CHARS or text.count("\n") >= MOST_LINES
            for text in (self.earlier, self.later)
        )


def _formatted(texts: _ComparedTexts) -> _ComparedTexts:
    """Return two texts as formatted JSON; unchanged if one is no JSON or is too long."""
    if max(len(texts.earlier), len(texts.later)) > MOST_FORMATTED_CHARS:
        return texts
    pretty_earlier = pretty_json(texts.earlier)
    pretty_later = pretty_json(texts.later)
    if pretty_earlier is None or pretty_later is None:
        return texts
    return _ComparedTexts(pretty_earlier.whole(), pretty_later.whole())


def _without_common_ends(texts: _ComparedTexts) -> _ComparedTexts:
    """Cut off the common beginning and end of two texts, except for lines of context."""
    earlier, later, _ = texts
    shorter_length = min(len(earlier), len(later))
    common_begin = _equal_length(
        shorter_length, lambda low, high: earlier[low:high] == later[low:high]
    )
    common_end = _equal_length(
        shorter_length - common_begin,
        lambda low, high: (
            earlier[len(earlier) - high : len(earlier) - low]
            == later[len(later) - high : len(later) - low]
        ),
    )
    start = _start_of_context(later, common_begin)
    end = _end_of_context(later, len(later) - common_end)
    cut_length = len(later) - end
    prefix = "…" if start and later[start - 1] != "\n" else ""
    suffix = "…" if cut_length and later[end - 1] != "\n" else ""
    return _ComparedTexts(
        f"{prefix}{earlier[start : len(earlier) - cut_length]}{suffix}",
        f"{prefix}{later[start:end]}{suffix}",
        later.count("\n", 0, start),
    )


def _equal_length(max_length: int, is_equal: Callable[[int, int], bool]) -> int:
    """Return the number of equal code points before the first difference, by bisection.

    Args:
        max_length: The most code points.
        is_equal: Checks if both texts are equal between two positions.
    """
    low = 0
    high = max_length
    while low < high:
        middle = (low + high + 1) // 2
        if is_equal(low, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _start_of_context(text: str, offset: int) -> int:
    """Return the beginning of the line ``CONTEXT_LINES`` lines above an offset.

    Stop below a line that is too long. In a long line, return the position ``NEAR_CHARS`` before
    the offset.
    """
    start = text.rfind("\n", 0, offset) + 1
    if offset - start > NEAR_CHARS:
        return offset - NEAR_CHARS
    for _line in range(CONTEXT_LINES):
        line_above = text.rfind("\n", 0, max(0, start - 1)) + 1
        if start - line_above > NEAR_CHARS:
            break
        start = line_above
    return start


def _end_of_context(text: str, offset: int) -> int:
    """Return the end of the line ``CONTEXT_LINES`` lines below an offset.

    Stop above a line that is too long. In a long line, return the position ``NEAR_CHARS`` after the
    offset.
    """
    end = offset
    for _line in range(CONTEXT_LINES + 1):
        line_feed = text.find("\n", end)
        line_end = len(text) if line_feed < 0 else line_feed + 1
        if line_end - end > NEAR_CHARS:
            return end if end > offset else offset + NEAR_CHARS
        end = line_end
    return end


def _add_differences(page: _Page, texts: _ComparedTexts) -> None:
    """Add the different lines with their context; each group follows a line with its line number.

    Only the first ``MOST_LINES`` and ``MOST_CHARS`` of a text are compared.
    """
    earlier_lines = _compared_lines(texts.earlier)
    later_lines = _compared_lines(texts.later)
    matcher = SequenceMatcher(None, earlier_lines, later_lines)
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        _, earlier_first, _, later_first, _ = group[0]
        if page.lines or texts.skipped_lines or earlier_first > 0:
            page.add_line("⋯", f"line {texts.skipped_lines + later_first + 1}")
        for tag, earlier_start, earlier_end, later_start, later_end in group:
            added_lines = later_lines[later_start:later_end]
            if tag == "equal":
                for line in added_lines:
                    page.add_line(" ", line)
            else:
                _add_change(page, earlier_lines[earlier_start:earlier_end], added_lines)


def _add_change(page: _Page, removed_lines: Sequence[str], added_lines: Sequence[str]) -> None:
    """Add removed and then added lines. If their numbers are equal, compare their words."""
    changed_words: list[tuple[Ranges, Ranges]] = []
    if len(removed_lines) == len(added_lines):
        line_pairs = zip(removed_lines, added_lines, strict=True)
        changed_words = [_changed_words(*lines, page) for lines in line_pairs]
    for line, ranges in zip_longest(removed_lines, changed_words):
        page.add_line("-", line, ranges[0] if ranges else ())
    for line, ranges in zip_longest(added_lines, changed_words):
        page.add_line("+", line, ranges[1] if ranges else ())


Ranges = list[tuple[int, int]]


def _changed_words(earlier_line: str, later_line: str, page: _Page) -> tuple[Ranges, Ranges]:
    """Return the ranges in which an earlier and a later line differ.

    Subtract the compared words from ``page.words_left``. If none are left or a line is too long,
    return no ranges.
    """
    if page.words_left <= 0:
        return [], []
    earlier_words = _WORD.findall(earlier_line)
    later_words = _WORD.findall(later_line)
    page.words_left -= len(earlier_words) + len(later_words)
    if max(len(earlier_words), len(later_words)) > MOST_WORDS:
        return [], []
    earlier_offsets = list(accumulate(map(len, earlier_words), initial=0))
    later_offsets = list(accumulate(map(len, later_words), initial=0))
    removed_ranges: Ranges = []
    added_ranges: Ranges = []
    matcher = SequenceMatcher(None, earlier_words, later_words)
    for tag, earlier_start, earlier_end, later_start, later_end in matcher.get_opcodes():
        if tag == "equal":
            continue
        if earlier_end > earlier_start:
            removed_ranges.append((earlier_offsets[earlier_start], earlier_offsets[earlier_end]))
        if later_end > later_start:
            added_ranges.append((later_offsets[later_start], later_offsets[later_end]))
    return removed_ranges, added_ranges


def _compared_lines(text: str) -> list[str]:
    return text[:MOST_CHARS].split("\n", MOST_LINES)[:MOST_LINES]
