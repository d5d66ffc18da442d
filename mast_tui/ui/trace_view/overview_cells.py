"""A whole run in a column of cells: what matters most in each stretch of its spans."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mast_tui.ui.trace_view.gutter import Mark, MarkKind, Marks
from mast_tui.ui.trace_view.span_counts import Matter, RunCounts

MARKS: Final[Mapping[Matter, MarkKind]] = {
    Matter.OWN: MarkKind.OWN,
    Matter.SUGGESTION: MarkKind.SUGGESTION,
}
"""The marks that are shown, the weightiest first."""

FEW: Final = 0.25
"""Errors in no larger a share of the cells are few, and each of these cells shows them."""

STANDS_OUT: Final = 1.5
"""Where they are many, those cells show them whose share of errors is so many times the run's."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A stretch of spans, ``first`` to ``end`` (exclusive), and what matters most there.

    ``errors`` says that some of them are errors, whatever the cell shows.
    """

    first: int
    end: int
    matter: Matter
    errors: bool = False


def stretch(cell: int, height: int, total: int) -> tuple[int, int]:
    """The spans of a cell, where ``total`` spans fill ``height`` cells; the second is exclusive.

    Where there are more cells than spans each span has one, and the cells below have none.
    """
    if total <= height:
        return min(cell, total), min(cell + 1, total)
    return cell * total // height, (cell + 1) * total // height


def cell_of(index: int, height: int, total: int) -> int:
    """The cell in which a span is."""
    if total <= height:
        return index
    return ((index + 1) * height - 1) // total


class Cells:
    """The run in at most ``height`` cells; ``matches`` are indices in order.

    Working them out costs no more for a long run than for a short one, but for its marks.
    """

    def __init__(self, counts: RunCounts, marks: Marks, matches: Sequence[int] = ()) -> None:
        self._counts = counts
        self._marks = marks
        self._matches = matches

    def of(self, height: int, total: int) -> list[Cell]:
        """The cells from the top; ``total`` is how many spans the run has."""
        height = min(height, total)
        seen = self._counts.seen
        stretches = [stretch(number, height, total) for number in range(height)]
        errors = [self._counts.errors_in(first, end) for first, end in stretches]
        each = total <= height
        few = sum(map(bool, errors)) <= FEW * height
        least = STANDS_OUT * sum(errors) / max(1, seen)
        cells = []
        for (first, end), count in zip(stretches, errors, strict=True):
            looked_at = min(end, seen) - first
            shown = count > 0 and (each or few or count >= least * looked_at)
            cells.append(Cell(first, end, self._matter(first, end, shown), count > 0))
        return cells

    def _matter(self, first: int, end: int, errors: bool) -> Matter:
        if _any_within(self._matches, first, end):
            return Matter.MATCH
        begins = _matter_of(mark for _, mark in self._marks.beginning_in(first, end))
        if begins is not None:
            return begins
        # What goes on from further up must not hide what is here.
        if errors:
            return Matter.ERROR
        goes_on = _matter_of(self._marks.within(first, end))
        if goes_on is not None:
            return goes_on
        return self._counts.kind_in(first, end) if first < self._counts.seen else Matter.UNSEEN

    def place_in(self, cell: Cell) -> int:
        """The first span of a cell that is what the cell shows; for a kind, and for a mark that
        goes on from further up, the cell's first."""
        if cell.matter is Matter.ERROR:
            errors = self._counts.errors
            return errors[bisect_left(errors, cell.first)]
        if cell.matter is Matter.MATCH:
            return self._matches[bisect_left(self._matches, cell.first)]
        if cell.matter in MARKS:
            begins = self._marks.beginning_in(cell.first, cell.end)
            places = (index for index, mark in begins if MARKS[cell.matter] is mark.kind)
            return min(places, default=cell.first)
        return cell.first


def _matter_of(marks: Iterable[Mark]) -> Matter | None:
    """What matters most of these marks."""
    kinds = {mark.kind for mark in marks}
    return next((matter for matter, kind in MARKS.items() if kind in kinds), None)


def _any_within(indices: Sequence[int], first: int, end: int) -> bool:
    place = bisect_left(indices, first)
    return place < len(indices) and indices[place] < end
