"""The table of a run, as Markdown."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from statistics import median
from typing import Final

_SECONDS_FROM: Final = 10_000.0
"""Milliseconds from which on a time is shown in seconds."""


@dataclass(frozen=True, slots=True)
class Row:
    """A measured figure with its values and its comparison.

    ``unit`` is ms, MB or bytes. ``against`` names what the median is divided by, a row of the
    same run, ``base`` is that row's median. Without values ``missing`` says why there are none.
    """

    title: str
    values: tuple[float, ...] = ()
    unit: str = "ms"
    against: str = ""
    base: float | None = None
    missing: str = ""
    note: str = ""

    @property
    def middle(self) -> float | None:
        """Return the median, or None if nothing was measured."""
        return median(self.values) if self.values else None

    @property
    def p95(self) -> float | None:
        """Return the 95th percentile, None for fewer than 20 values."""
        if len(self.values) < 20:
            return None
        return sorted(self.values)[math.ceil(0.95 * len(self.values)) - 1]

    @property
    def ratio(self) -> float | None:
        """Return the median divided by that of the row compared with."""
        if self.middle is None or not self.base:
            return None
        return self.middle / self.base


def times(
    title: str, seconds: Sequence[float], *, against: Row | None = None, note: str = ""
) -> Row:
    """Return a row of times."""
    values = tuple(1000 * each for each in seconds)
    if against is None:
        return Row(title, values, note=note)
    return Row(title, values, against=against.title, base=against.middle, note=note)


def missing(title: str, reason: str) -> Row:
    """Return a row for a figure that could not be measured, with the reason."""
    return Row(title, missing=reason)


def machine() -> str:
    """Return cores, load and versions in one line."""
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    return (
        f"{os.cpu_count() or 1} cores, load {load} (1, 5, 15 minutes), {platform.system()} "
        f"{platform.release()}, Python {platform.python_version()}, "
        f"mast_tui {version('mast-tui')}, Textual {version('textual')}\n"
    )


def section(title: str, rows: Sequence[Row]) -> str:
    """Return one measure as a Markdown table under its title."""
    lines = [f"**{title}**", ""]
    lines += ["| what | median | p95 | n | ratio |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *(_line(row) for row in rows), ""])


def _line(row: Row) -> str:
    title = f"{row.title} ({row.note})" if row.note else row.title
    if row.missing:
        return f"| {title} | not measured: {row.missing} | | | |"
    ratio = f"{row.ratio:.2f} × {row.against}" if row.ratio is not None else ""
    middle = _formatted(row.middle, row.unit)
    high = _formatted(row.p95, row.unit)
    return f"| {title} | {middle} | {high} | {len(row.values)} | {ratio} |"


def _formatted(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    if unit == "ms" and value >= _SECONDS_FROM:
        return f"{value / 1000:,.1f} s"
    if unit == "ms" and value < 100:
        return f"{value:.1f} ms"
    return f"{value:,.0f} {unit}"
