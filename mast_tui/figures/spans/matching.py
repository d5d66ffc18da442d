"""Which places of two annotators are the same finding, at every degree of overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mast_tui.figures.spans.places import LEVELS, Place, level


def matched(ours: Sequence[Place], theirs: Sequence[Place]) -> tuple[int, ...]:
    """How many pairs can be made at each level of overlap, from 1 to 10 tenths.

    Each place is in one pair at most, and the two of a pair overlap by that level or more. There
    is no way to make more pairs: this is the size of a maximum matching (Berge 1957), found by
    augmenting paths. It cannot grow with the level.
    """
    edges: dict[int, list[tuple[int, int]]] = {}
    by_first = sorted(range(len(theirs)), key=lambda place: theirs[place].first)
    for left, one in enumerate(ours):
        for right in by_first:
            if theirs[right].first > one.last:
                break
            tenths = level(one, theirs[right])
            if tenths:
                edges.setdefault(tenths, []).append((left, right))
    pairs = _Pairs()
    sizes = []
    for tenths in range(LEVELS, 0, -1):
        # Pairs that overlap more stay pairs, so each level goes on from the one above.
        for left, right in edges.get(tenths, ()):
            pairs.reach.setdefault(left, []).append(right)
        if tenths in edges:
            pairs.augment()
        sizes.append(len(pairs.of_right))
    return tuple(reversed(sizes))


class _Pairs:
    """A matching of places on the left with places on the right that they reach."""

    def __init__(self) -> None:
        self.reach: dict[int, list[int]] = {}
        self.of_right: dict[int, int] = {}
        self._of_left: dict[int, int] = {}

    def augment(self) -> None:
        """Make as many pairs as can be made."""
        for left in self.reach:
            if left not in self._of_left:
                self._pair(left)

    def _pair(self, start: int) -> None:
        """Find a partner for one on the left, where others must change theirs for it as well."""
        came_from: dict[int, int] = {}
        waiting = [start]
        while waiting:
            left = waiting.pop()
            for right in self.reach[left]:
                if right in came_from:
                    continue
                came_from[right] = left
                if right not in self.of_right:
                    self._flip(right, came_from)
                    return
                waiting.append(self.of_right[right])

    def _flip(self, end: int, came_from: Mapping[int, int]) -> None:
        """Make the pairs along a path that ends at one on the right without a partner."""
        right: int | None = end
        while right is not None:
            left = came_from[right]
            self.of_right[right], self._of_left[left], right = left, right, self._of_left.get(left)
