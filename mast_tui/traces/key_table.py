"""The keys of a long trace's spans: unique, found again by hash, in a few bytes each."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

_SHARDS: Final = 16
_FIRST_SLOTS: Final = 8
_NUMBER_BITS: Final = 32
_NUMBER: Final = (1 << _NUMBER_BITS) - 1
_HASH: Final = (1 << 36) - 1
"""What is used of a hash: 4 bits choose the shard, 32 are kept in the slot."""
_REMEMBERED: Final = 8
"""Repetitions of one key from which on the next free number is not looked for from the start."""


class KeyTable:
    """Hands out keys like ``UniqueKeys``, and says which span has which.

    A span without an id of its own goes by its first line, which ``lines`` knows already; other
    keys are kept as UTF-8 in one piece. One thread adds; others may ask meanwhile.
    """

    # Each shard is a hash table with open addressing. A slot is 0 where it is free, else the
    # upper bits of the key's hash and below them the span's number, counted from 1.

    def __init__(self, lines: Sequence[int]) -> None:
        self._lines = lines
        self._own = bytearray()
        self._ends = array("Q", [0])
        self._shards = [array("Q", bytes(8 * _FIRST_SLOTS)) for _ in range(_SHARDS)]
        self._used = [0] * _SHARDS
        self._free_numbers: dict[str, int] = {}
        self.repeats = 0
        """How many keys were taken when they were asked for."""

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, index: int) -> str:
        """The key of the span at ``index``."""
        begin, end = self._ends[index], self._ends[index + 1]
        if begin == end:
            return f"line {self._lines[index]}"
        return self._own[begin:end].decode("utf-8", "surrogatepass")

    def any_holds(self, part: bytes, first: int, end: int) -> bool:
        """Whether these bytes stand in a key of its own of the spans ``first`` to ``end``
        (exclusive)."""
        return self._own.find(part, self._ends[first], self._ends[end]) >= 0

    def find(self, key: str) -> int | None:
        """The index of the span with this key."""
        number = self._slot(key)[2]
        return number - 1 if number else None

    def add(self, own: str | None) -> None:
        """Give the next span its key: ``own`` or that of its line, with ``~2`` where it is taken.

        ``lines`` must know the span's line by now.
        """
        number = len(self._ends)
        wanted = own or f"line {self._lines[number - 1]}"
        code, place, taken = self._slot(wanted)
        if taken:
            self.repeats += 1
            own = self._free(wanted)
            code, place, _none = self._slot(own)
        if own:
            self._own += own.encode("utf-8", "surrogatepass")
        self._ends.append(len(self._own))
        shard = code % _SHARDS
        slots = self._shards[shard]
        slots[place] = code // _SHARDS << _NUMBER_BITS | number
        used = self._used[shard] = self._used[shard] + 1
        if 5 * used > 3 * len(slots):
            self._shards[shard] = _grown(slots)

    def _free(self, wanted: str) -> str:
        number = self._free_numbers.get(wanted, 1) + 1
        while self._slot(key := f"{wanted}~{number}")[2]:
            number += 1
        if number > _REMEMBERED:
            self._free_numbers[wanted] = number
        return key

    def _slot(self, key: str) -> tuple[int, int, int]:
        """The key's hash, its place in its shard, and the number of the span there, 0 if free."""
        code = hash(key) & _HASH
        tag = code // _SHARDS
        slots = self._shards[code % _SHARDS]
        mask = len(slots) - 1
        place = tag & mask
        while entry := slots[place]:
            if entry >> _NUMBER_BITS == tag and self[(entry & _NUMBER) - 1] == key:
                return code, place, entry & _NUMBER
            place = place + 1 & mask
        return code, place, 0


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
