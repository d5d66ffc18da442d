"""The table of a run, as Markdown and as JSON."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

    what: str
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


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of one measure."""

    name: str
    title: str
    rows: Sequence[Row]


def times(
    what: str, seconds: Sequence[float], *, against: Row | None = None, note: str = ""
) -> Row:
    """Return a row of times."""
    values = tuple(1000 * each for each in seconds)
    if against is None:
        return Row(what, values, note=note)
    return Row(what, values, against=against.what, base=against.middle, note=note)


def missing(what: str, reason: str) -> Row:
    """Return a row for a figure that could not be measured, with the reason."""
    return Row(what, missing=reason)


def machine() -> str:
    """Return cores, load and interpreter in one line."""
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    cores = os.cpu_count() or 1
    return (
        f"{cores} cores, load {load} (1, 5, 15 minutes), {platform.system()} "
        f"{platform.release()}, Python {platform.python_version()}"
    )


def heading(about: str, versions: Mapping[str, str]) -> str:
    """Return the heading: the machine, and the compared versions."""
    compared = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"{about}\n\nCompared: {compared}\n"


def section(part: Part) -> str:
    """Return one measure as a Markdown table under its title."""
    lines = [f"**{part.title}**", ""]
    lines += ["| what | median | p95 | n | ratio |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *(_line(row) for row in part.rows), ""])


def _line(row: Row) -> str:
    what = f"{row.what} ({row.note})" if row.note else row.what
    if row.missing:
        return f"| {what} | not measured: {row.missing} | | | |"
    ratio = f"{row.ratio:.2f} × {row.against}" if row.ratio is not None else ""
    middle, high = _shown(row.middle, row.unit), _shown(row.p95, row.unit)
    return f"| {what} | {middle} | {high} | {len(row.values)} | {ratio} |"


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    if unit == "ms" and value >= _SECONDS_FROM:
        return f"{value / 1000:,.1f} s"
    if unit == "ms" and value < 100:
        return f"{value:.1f} ms"
    return f"{value:,.0f} {unit}"


def as_values(parts: Sequence[Part], versions: Mapping[str, str], about: str) -> dict[str, object]:
    """Return the measures as plain values."""
    return {
        "machine": about,
        "versions": dict(versions),
        "measures": {
            part.name: [
                {
                    "what": row.what,
                    "unit": row.unit,
                    "n": len(row.values),
                    "median": row.middle,
                    "p95": row.p95,
                    "against": row.against or None,
                    "ratio": row.ratio,
                    "missing": row.missing or None,
                    "note": row.note or None,
                    "values": list(row.values),
                }
                for row in part.rows
            ]
            for part in parts
        },
    }
