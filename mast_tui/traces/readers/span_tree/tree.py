"""The rows of a run as a tree, in the order in which one reads them."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mast_tui.traces.model import SpanStatus
from mast_tui.traces.readers.span_tree.builder import Row, RowKind


@dataclass(frozen=True, slots=True)
class Visit:
    """A row in its place: what lies under it are the ``size`` visits that follow."""

    row: Row
    size: int


class RowTree:
    """The visits of a run, each before those under it.

    Children stand in the order of their start times; where one has none, it stays behind the one
    before it in the file. A row whose parent is not there is a root, and so is the first row of
    parents that go round in a circle.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.visits = _visits(rows)
        self._models: list[int] = []
        self._failures: list[int] = []
        self._errors: dict[str, list[int]] = defaultdict(list)
        for number, visit in enumerate(self.visits):
            row = visit.row
            if row.kind is RowKind.MODEL and tells(row):
                self._models.append(number)
            if row.status is SpanStatus.ERROR:
                self._failures.append(number)
            if row.error is not None:
                self._errors[row.error].append(number)

    def first_model(self, number: int) -> Row | None:
        """The first row of a model with content under the visit with this number, or None."""
        found = self._first_under(number, self._models)
        return None if found is None else self.visits[found].row

    def fails_by_itself(self, number: int) -> bool:
        """Whether the row failed, and no row under it tells that already."""
        row = self.visits[number].row
        if row.error is not None:
            return self._first_under(number, self._errors[row.error]) is None
        failed = row.status is SpanStatus.ERROR
        return failed and self._first_under(number, self._failures) is None

    def _first_under(self, number: int, places: Sequence[int]) -> int | None:
        """The first of the sorted ``places`` that lies under a visit."""
        found = bisect_right(places, number)
        if found == len(places) or places[found] > number + self.visits[number].size:
            return None
        return places[found]


def tells(row: Row) -> bool:
    """Whether a model's row has anything of what was asked or answered."""
    return bool(row.asked or row.answered) or row.input is not None or row.output is not None


def _visits(rows: Sequence[Row]) -> list[Visit]:
    known: dict[str, int] = {}
    for number, row in enumerate(rows):
        known.setdefault(row.id, number)
    children: list[list[int]] = [[] for _row in rows]
    roots: list[int] = []
    for number, row in enumerate(rows):
        parent = None if row.parent is None else known.get(row.parent)
        if parent is None or parent == number:
            roots.append(number)
        else:
            children[parent].append(number)
    order: list[int] = []
    sizes = [0] * len(rows)
    seen = [False] * len(rows)
    for root in [*_by_start(roots, rows), *range(len(rows))]:
        # The second half are the rows that no root leads to: their parents go round.
        stack = [] if seen[root] else [root]
        while stack:
            number = stack.pop()
            if number < 0:  # all under this row have had their turn
                sizes[~number] = len(order) - 1 - sizes[~number]
                continue
            if seen[number]:
                continue
            seen[number] = True
            sizes[number] = len(order)
            order.append(number)
            stack.append(~number)
            stack.extend(reversed(_by_start(children[number], rows)))
    return [Visit(rows[number], sizes[number]) for number in order]


def _by_start(numbers: Iterable[int], rows: Sequence[Row]) -> list[int]:
    timed: list[tuple[float, int]] = []
    last = float("-inf")
    for number in numbers:
        start = rows[number].start
        last = last if start is None else start
        timed.append((last, number))
    return [number for _start, number in sorted(timed)]
