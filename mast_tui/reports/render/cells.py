"""The text of a table cell, for all renderers with tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Final

from mast_tui.reports.model import Cell, Column, Estimate, Kind, Row

NONE: Final = "—"
"""What stands for a figure that is undefined."""

WITHHELD: Final = "–"
"""What stands in the place of an interval that would not hold."""


@dataclass(frozen=True, slots=True)
class Written:
    """A cell in words.

    Args:
        text: The number or the words.
        interval: What stands beside the number, which may be left out where there is little room.
        reason: Why there is no number, in its place: ``— no variance``.
        value: The number itself, for sorting and for copies.
    """

    text: str = ""
    interval: str = ""
    reason: str = ""
    value: float | None = None

    @property
    def whole(self) -> str:
        """All of it on one line."""
        return self.reason or f"{self.text} {self.interval}".rstrip()


def written(row: Row, column: Column) -> Written:
    """Write the cell of a row under a column; an empty one has no words at all."""
    cell: Cell = row.cells.get(column.key)
    if cell is None:
        return Written()
    if isinstance(cell, str):
        return Written(cell)
    found = cell if isinstance(cell, Estimate) else Estimate(cell)
    value = found.value
    if value is None or not isfinite(value):
        return Written(reason=f"{NONE} {(found.undefined or '').replace('_', ' ')}".rstrip())
    beside = [_interval(found, column.kind)] if column.interval else []
    if found.n is not None:
        beside.append(f"n {found.n}")
    return Written(number(value, column.kind), " ".join(filter(None, beside)), value=value)


def number(value: float, kind: Kind) -> str:
    """Write a number of a kind; one that rounds to nothing has no sign."""
    match kind:
        case Kind.SHARE:
            return f"{fixed(100 * value, 0)}%"
        case Kind.POINTS:
            points = fixed(100 * value, 0)
            return points if points == "0" or value < 0 else f"+{points}"
        case Kind.P_VALUE:
            return "<0.001" if value < 0.001 else f"{value:.3f}"
        case Kind.NUMBER:
            return fixed(value, 2)
    return str(value) if isinstance(value, int) or value % 1 else f"{value:.0f}"


def as_sentence(text: str) -> str:
    """Return a title with a full stop, unless it ends in a sign that ends a sentence."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def is_right(column: Column) -> bool:
    """Return whether a column has numbers, which are aligned to the right."""
    return column.kind is not Kind.TEXT


def naming(columns: tuple[Column, ...]) -> int:
    """Return the number of leading columns that name a row."""
    return next((i for i, column in enumerate(columns) if is_right(column)), len(columns))


def _interval(found: Estimate, kind: Kind) -> str:
    if found.ci is not None:
        low, high = (number(end, kind).removesuffix("%") for end in found.ci)
        return f"[{low}, {high}]"
    if found.bounds is not None:
        low, high = (number(end, kind).removesuffix("%") for end in found.bounds)
        return f"({low} to {high})"
    return WITHHELD if found.withheld else ""


def fixed(value: float, digits: int = 2) -> str:
    """Write a number with so many digits; one that rounds to nothing has no sign."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.") else text


_UNITS: Final[Mapping[Kind, str]] = {Kind.SHARE: "percent", Kind.POINTS: "percentage points"}


def unit(column: Column) -> str:
    """The unit of a column's numbers, empty where they have none."""
    return _UNITS.get(column.kind, "")
