"""The text of a table cell, for all renderers with tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Final

from mast_tui.figures.record import Figure
from mast_tui.reports.model import Cell, Column, Kind, Row

NONE: Final = "—"
"""The text in place of an undefined figure."""

WITHHELD: Final = "[–]"
"""The text in place of a withheld interval."""


@dataclass(frozen=True, slots=True)
class Written:
    """The text of a cell.

    Args:
        text: The number or the words.
        interval: The text of the interval, which is left out if space is short.
        reason: The text for a missing number: ``— no variance``.
        value: The number, for sorting and for copies.
    """

    text: str = ""
    interval: str = ""
    reason: str = ""
    value: float | None = None

    @property
    def whole(self) -> str:
        """The whole text on one line."""
        return self.reason or f"{self.text} {self.interval}".rstrip()


def written_cell(row: Row, column: Column) -> Written:
    """Return the text and interval of a cell, or the reason for a missing value.

    Args:
        row: The row.
        column: The column of the cell.
    """
    cell: Cell = row.cells.get(column.key)
    if cell is None:
        return Written()
    if isinstance(cell, str):
        return Written(cell)
    estimate = cell if isinstance(cell, Figure) else Figure(value=cell)
    value = estimate.value
    if value is None or not isfinite(value):
        return Written(reason=undefined_words(estimate.undefined or "", column.key))
    details = [_interval_text(estimate, column.kind)] if column.interval else []
    if estimate.n is not None:
        details.append(f"n {estimate.n}")
    return Written(number(value, column.kind), " ".join(filter(None, details)), value=value)


_REASON_WORDS: Final = {
    "no_unlabelled": "no unlabelled trace",
    "no_positives": "no present verdict",
    "no_negatives": "no absent verdict",
}
_NO_VARIANCE_WORDS: Final = {
    "positive_agreement": "none present",
    "negative_agreement": "none absent",
    "true_positive_rate": "none present",
    "true_negative_rate": "none absent",
    "precision": "none present",
    "f1": "none present",
    "f1_exact": "no places",
    "f1_overlap": "no places",
}
"""The words for ``no_variance``, by the name of the figure."""


def undefined_words(reason: str, column_key: str = "") -> str:
    """Return the reason for a missing figure, for its place: ``— no variance``.

    Args:
        reason: The reason; empty if it is unknown.
        column_key: The key of the figure's column, which may have words of its own.
    """
    reason_text = _REASON_WORDS.get(reason, reason.replace("_", " "))
    if reason == "no_variance":
        reason_text = _NO_VARIANCE_WORDS.get(column_key.partition(":")[0], reason_text)
    return f"{NONE} {reason_text}".rstrip()


def number(value: float, kind: Kind) -> str:
    """Return a number as text; a number that rounds to 0 has no sign.

    Args:
        value: The number.
        kind: The kind of its column.
    """
    match kind:
        case Kind.SHARE:
            return f"{fixed_number(100 * value, 0)}%"
        case Kind.POINTS:
            points = fixed_number(100 * value, 0)
            return points if points == "0" or value < 0 else f"+{points}"
        case Kind.P_VALUE:
            return "<0.001" if value < 0.001 else f"{value:.3f}"
        case Kind.NUMBER:
            return fixed_number(value, 2)
    # A count may be a float, such as 3.0.
    return str(value) if isinstance(value, int) or value % 1 else f"{value:.0f}"


def as_sentence(text: str) -> str:
    """Return a title with a full stop, unless it ends in a full stop or similar."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def is_numeric(column: Column) -> bool:
    """Return whether a column has numbers, which are aligned to the right."""
    return column.kind is not Kind.TEXT


def name_column_count(columns: tuple[Column, ...]) -> int:
    """Return the number of leading columns that name a row."""
    return next((i for i, column in enumerate(columns) if is_numeric(column)), len(columns))


def _interval_text(estimate: Figure, kind: Kind) -> str:
    """Return the interval or the bounds as text, or ``WITHHELD``."""
    if estimate.interval is not None:
        low, high = (number(end, kind).removesuffix("%") for end in estimate.interval)
        return f"[{low}, {high}]"
    if estimate.bounds is not None:
        low, high = (number(end, kind).removesuffix("%") for end in estimate.bounds)
        return f"({low} to {high})"
    return WITHHELD if estimate.withheld else ""


def fixed_number(value: float, digits: int = 2) -> str:
    """Return a number with fixed decimals as text; a number that rounds to 0 has no sign.

    Args:
        value: The number.
        digits: The number of decimals.
    """
    text = f"{value:.{digits}f}"
    is_zero = not text.strip("-0.")
    return text.lstrip("-") if is_zero else text


_UNITS: Final[Mapping[Kind, str]] = {Kind.SHARE: "percent", Kind.POINTS: "percentage points"}


def unit(column: Column) -> str:
    """Return the unit of a column's numbers; empty without one."""
    return _UNITS.get(column.kind, "")
