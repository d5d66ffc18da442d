"""The cells of a report as a terminal shows them: values, intervals and bars."""

from __future__ import annotations

from typing import Final

from mast_tui.reports.model import Cell, Estimate, Kind
from mast_tui.reports.render.cells import NONE, WITHHELD, number
from mast_tui.safe_text import one_line

PENDING: Final = "…"
"""What stands for an interval that is still being counted."""

SURE: Final = "█"
BELOW: Final = "▓"
ABOVE: Final = "░"
LEGEND: Final = f"Bars: {SURE}{BELOW} share, {BELOW}{ABOVE} 95 % interval."


def figure_of(cell: Cell) -> float | None:
    """The number in a cell, None where there is none."""
    value = cell.value if isinstance(cell, Estimate) else cell
    return None if isinstance(value, str) else value


def value_words(cell: Cell, kind: Kind) -> str:
    """A value in one line, without its interval; nothing for an empty cell."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return one_line(cell)
    value = figure_of(cell)
    return NONE if value is None else number(value, kind)


def interval_words(cell: Cell, kind: Kind, *, pending: bool) -> str:
    """The interval beside a value, or what stands for it; nothing where it has none."""
    if not isinstance(cell, Estimate) or cell.value is None:
        return ""
    if cell.ci is not None:
        low, high = (number(end, kind).removesuffix("%") for end in cell.ci)
        return f"[{low}, {high}]"
    if cell.withheld is not None:
        return WITHHELD
    return PENDING if pending else ""


def bar(cell: Cell, width: int) -> str:
    """A share as a bar of which ``width`` cells are the whole; legible without colours.

    It is full up to its interval, lighter up to the share, and light up to the interval's end.
    """
    value = figure_of(cell)
    if value is None:
        return ""
    low, high = (value, value)
    if isinstance(cell, Estimate) and cell.ci is not None:
        low, high = cell.ci
    first, middle, last = (round(end * width) for end in (low, value, high))
    if value > 0:
        # What was seen at all shows, however rare it is.
        middle = max(1, middle)
    last = max(last, middle)
    return SURE * min(first, middle) + BELOW * max(0, middle - first) + ABOVE * (last - middle)
