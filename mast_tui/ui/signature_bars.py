"""Shares as text bars with their intervals, legible without colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mast_tui.figures.signatures.rates import RateJson

SURE: Final = "█"
BELOW: Final = "▓"
ABOVE: Final = "░"

LEGEND: Final = f"{SURE}{BELOW} share, {BELOW}{ABOVE} 95 % interval"


def rate_bar(rate: RateJson, width: int) -> str:
    """A share: full up to its interval, lighter up to the share, and light up to the other end.

    ``width`` cells are the whole; nothing where nobody was judged.
    """
    if rate["rate"] is None or rate["ci"] is None:
        return ""
    low, value, high = (round(end * width) for end in (rate["ci"][0], rate["rate"], rate["ci"][1]))
    if rate["count"]:
        # What was seen at all shows, however rare it is.
        value = max(1, value)
    high = max(high, value)
    return SURE * low + BELOW * (value - low) + ABOVE * (high - value)


def count_bar(count: int, most: int, width: int) -> str:
    """A count, where ``most`` fills the width; anything but 0 shows."""
    if not count or most < 1:
        return ""
    return SURE * max(1, round(count / most * width))


def spread_bar(low: float, median: float, high: float, width: int) -> str:
    """Quartiles and median of positions along the run, from 0 at its left end to 1."""
    cells = ["·"] * width
    first, middle, last = (min(width - 1, int(end * width)) for end in (low, median, high))
    for place in range(first, last + 1):
        cells[place] = BELOW
    cells[middle] = SURE
    return "".join(cells)


def percent(share: float | None) -> str:
    """A share in percent, or a dash."""
    return "—" if share is None else f"{share:.0%}"


def points(value: float | None) -> str:
    """A difference in points with its sign, or a dash."""
    if value is None:
        return "—"
    rounded = round(value)
    return f"{rounded:+d}" if rounded else "0"


def p_words(value: float | None) -> str:
    """A p-value with three digits, or a dash."""
    if value is None:
        return "—"
    return "<.001" if value < 0.001 else f"{value:.3f}"
