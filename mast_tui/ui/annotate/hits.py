"""What a search has found so far."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import overload


class _Part:
    """Hits that were found in reading order, with how many matches there are up to each."""

    def __init__(self) -> None:
        self.indices = array("Q")
        self.upto = array("Q")

    @property
    def total(self) -> int:
        return self.upto[-1] if self.upto else 0

    def add(self, index: int, times: int) -> None:
        self.upto.append(self.total + times)
        self.indices.append(index)

    def extend(self, more: _Part) -> None:
        """Add what stands behind all of these."""
        total = self.total
        self.upto.extend(map(total.__add__, more.upto))
        self.indices.extend(more.indices)

    def within(self, first: int, end: int) -> array[int]:
        """The spans from ``first`` up to ``end`` (exclusive)."""
        low = bisect_left(self.indices, first)
        return self.indices[low : bisect_left(self.indices, end, low)]

    def before(self, place: int) -> int:
        """The number of matches in the hits before the one at ``place``."""
        return self.upto[place - 1] if place else 0


class Hits(Sequence[int]):
    """The spans that hold what is looked for, in reading order, and how often each does.

    They are found from ``start`` on and then from the beginning; what is added is never moved.
    """

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self._ahead = _Part()
        self._behind = _Part()

    def add(self, hits: Iterable[tuple[int, int]]) -> None:
        """Take in more spans, each with its number of matches."""
        for index, times in hits:
            (self._ahead if index >= self.start else self._behind).add(index, times)

    def extend(self, more: Hits) -> None:
        """Take in what was found after these, from the same start on."""
        self._ahead.extend(more._ahead)
        self._behind.extend(more._behind)

    @property
    def first(self) -> int:
        """The span that was found first; there must be one."""
        return (self._ahead.indices or self._behind.indices)[0]

    @property
    def total(self) -> int:
        """The number of matches."""
        return self._behind.total + self._ahead.total

    def __len__(self) -> int:
        return len(self._behind.indices) + len(self._ahead.indices)

    @overload
    def __getitem__(self, place: int) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[int]: ...
    def __getitem__(self, place: int | slice) -> int | Sequence[int]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(f"no hit {place} of {len(self)}")
        place %= len(self)
        behind = len(self._behind.indices)
        return (
            self._behind.indices[place] if place < behind else self._ahead.indices[place - behind]
        )

    def __iter__(self) -> Iterator[int]:
        yield from self._behind.indices
        yield from self._ahead.indices

    def __contains__(self, index: object) -> bool:
        return isinstance(index, int) and self.times(index) > 0

    def _part_and_place(self, index: int) -> tuple[_Part, int]:
        part = self._ahead if index >= self.start else self._behind
        return part, bisect_left(part.indices, index)

    def times(self, index: int) -> int:
        """How many matches there are in the span at ``index``."""
        part, place = self._part_and_place(index)
        if place == len(part.indices) or part.indices[place] != index:
            return 0
        return part.upto[place] - part.before(place)

    def within(self, first: int, end: int) -> Sequence[int]:
        """The hits from span ``first`` up to ``end`` (exclusive)."""
        return self._behind.within(first, end) + self._ahead.within(first, end)

    def rank(self, index: int, nth: int) -> int:
        """Of all matches known, in reading order and from 1, which one the ``nth`` (from 0) of the
        span at ``index`` is."""
        part, place = self._part_and_place(index)
        others = 0 if part is self._behind else self._behind.total
        return others + part.before(place) + nth + 1

    def next_to(self, index: int, step: int) -> int:
        """The next hit behind span ``index`` (``step`` above 0) or before it, round the ends."""
        place = bisect_right(self, index) if step > 0 else bisect_left(self, index) - 1
        return self[place % len(self)]
