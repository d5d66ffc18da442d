"""The keys of a long trace's spans: unique, found again by hash, in a few bytes each."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from mast_tui.traces.index.columns import wider

_SHARDS: Final = 16
_SHARD: Final = _SHARDS - 1
_FIRST_SLOTS: Final = 8
_NUMBER_BITS: Final = 32
_NUMBER: Final = (1 << _NUMBER_BITS) - 1
_TAG: Final = _NUMBER << _NUMBER_BITS
"""What is kept of a hash, of 64 bits, in the slot; the lowest bits choose the shard."""
_LINE: Final = "line "
_MOST_DIGITS: Final = 12
_REMEMBERED: Final = 8
"""Repetitions of one key from which on the next free number is not looked for from the start."""


class KeyTable:
    """Hands out keys like ``UniqueKeys``, and says which span has which.

    A span without an id of its own goes by its first line, which ``lines`` knows already; other
    keys are kept as UTF-8 in one piece. One thread adds; others may ask meanwhile.
    """

    # Each shard is a hash table with open addressing. A slot is 0 where it is free, else the
    # upper bits of the key's hash and below them the span's number, counted from 1. Spans that go
    # by their lines are not in there as long as their lines follow each other.

    def __init__(self, lines: Sequence[int]) -> None:
        self._lines = lines
        self._own = bytearray()
        self._ends = array("I", [0])
        self._shards = [array("Q", bytes(8 * _FIRST_SLOTS)) for _ in range(_SHARDS)]
        self._used = [0] * _SHARDS
        self._by_line = array("I")
        self._last_line = 0
        self._looks_like_line = False  # whether some other key does
        self._free_numbers: dict[str, int] = {}
        self.repeats = 0
        """How many keys were taken when they were asked for."""

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, index: int) -> str:
        """The key of the span at ``index``."""
        begin, end = self._ends[index], self._ends[index + 1]
        if begin == end:
            return f"{_LINE}{self._lines[index]}"
        return self._own[begin:end].decode("utf-8", "surrogatepass")

    def any_holds(self, part: bytes, first: int, end: int) -> bool:
        """Whether these bytes stand in a key of its own of the spans ``first`` to ``end``
        (exclusive)."""
        return self._own.find(part, self._ends[first], self._ends[end]) >= 0

    def find(self, key: str) -> int | None:
        """The index of the span with this key."""
        if key.startswith(_LINE) and (index := self._on_line(key)) is not None:
            return index
        number = self._number(key)
        return number - 1 if number else None

    def add(self, own: str | None) -> None:
        """Give the next span its key: ``own`` or that of its line, with ``~2`` where it is taken.

        ``lines`` must know the span's line by now.
        """
        number = len(self._ends)
        if own:
            wanted, like_line = own, own.startswith(_LINE)
            self._looks_like_line |= like_line
        else:
            line = self._lines[number - 1]
            if line > self._last_line and not self._looks_like_line:
                self._last_line = line
                self._ends.append(self._ends[-1])
                self._by_line.append(number - 1)
                return
            wanted, like_line = f"{_LINE}{line}", True
        code, slots, place = self._slot(wanted)
        if slots[place] or (like_line and self._on_line(wanted) is not None):
            self.repeats += 1
            own = self._free(wanted)
            code, slots, place = self._slot(own)
        if own:
            self._own += own.encode("utf-8", "surrogatepass")
        end = len(self._own)
        try:
            self._ends.append(end)  # From here on the span is known; its key is found last.
        except OverflowError:
            self._ends = wider(self._ends, end)
        shard = code & _SHARD
        slots[place] = code & _TAG | number
        used = self._used[shard] = self._used[shard] + 1
        if 5 * used > 3 * len(slots):
            self._shards[shard] = _grown(slots)

    def _on_line(self, key: str) -> int | None:
        """The index of the span with this key among those that go by lines which follow."""
        digits = key[len(_LINE) :]
        if not (digits.isascii() and digits.isdecimal()) or digits[0] == "0":
            return None
        line, spans = int(digits[:_MOST_DIGITS]), self._by_line
        place = bisect_left(spans, line, key=self._lines.__getitem__)
        if place < len(spans) and self._lines[spans[place]] == line and len(digits) < _MOST_DIGITS:
            return spans[place]
        return None

    def _free(self, wanted: str) -> str:
        number = self._free_numbers.get(wanted, 1) + 1
        while self._number(key := f"{wanted}~{number}"):
            number += 1
        if number > _REMEMBERED:
            self._free_numbers[wanted] = number
        return key

    def _number(self, key: str) -> int:
        """The number of the span with this key, 0 where there is none."""
        _code, slots, place = self._slot(key)
        return slots[place] & _NUMBER

    def _slot(self, key: str) -> tuple[int, array[int], int]:
        """The key's hash, its shard, and its place there, where it is or would be."""
        code = hash(key)
        slots = self._shards[code & _SHARD]
        mask = len(slots) - 1
        place = code >> _NUMBER_BITS & mask
        while entry := slots[place]:
            if not (entry ^ code) & _TAG and self[(entry & _NUMBER) - 1] == key:
                break
            place = place + 1 & mask
        return code, slots, place


def _grown(slots: array[int]) -> array[int]:
    """The same hash table with twice the room."""
    bigger = array("Q", bytes(16 * len(slots)))
    mask = len(bigger) - 1
    for entry in slots:
        if entry:
            place = entry >> _NUMBER_BITS & mask
            while bigger[place]:
                place = place + 1 & mask
            bigger[place] = entry
    return bigger
