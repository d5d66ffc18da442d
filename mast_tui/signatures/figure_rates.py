"""Figures of shares per mode: two sides as bars, and their difference with its interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Final

from mast_tui.reports.render.svg import WIDTH, Drawing, clipped, text_width, wrapped
from mast_tui.signatures.figure_model import LABELS

if TYPE_CHECKING:
    from mast_tui.figures.signatures.modes import DifferenceJson
    from mast_tui.figures.signatures.rates import RateJson

_Scale = Callable[[float], float]

_BAR: Final = 10
_ROW: Final = 34
_LEFT: Final = LABELS + 12
_RIGHT: Final = 528
_PERCENT: Final = 568
_COUNT: Final = 622


@dataclass(frozen=True, slots=True)
class Side:
    """One of two sides: what it is called, and how its bars are drawn."""

    name: str
    kind: str


DARK_BARS: Final = ("v-failed", "v-first")
"""The kinds of bars on which ink would not show."""

FAILED: Final = Side("failed traces", "v-failed")
SUCCEEDED: Final = Side("successful traces", "v-succeeded")


@dataclass(frozen=True, slots=True)
class Row:
    """A mode on two sides; ``word`` is its class, ``stated`` what others call it."""

    code: str
    name: str
    first: RateJson
    second: RateJson
    found: DifferenceJson
    word: str = ""
    stated: str = ""


def percent(rate: float) -> str:
    """A share as whole percent."""
    return f"{100 * rate:.0f} %"


def legend(drawing: Drawing, x: float, y: float, sides: Sequence[tuple[str, str]]) -> None:
    """A line of boxes with their words, ``y`` at the baseline; ``sides`` are words and kinds."""
    room = (drawing.width - x) / max(len(sides), 1) - 32
    for words, kind in sides:
        words = clipped(words, room)
        drawing.rect(x, y - 9, 14, 10, kind)
        drawing.text(x + 20, y, words)
        x += 20 + text_width(words) + 20


def bars(rows: Sequence[Row], sides: tuple[Side, Side]) -> Drawing:
    """Per mode a bar for either side with its Wilson interval, the share and the counts."""
    drawing = Drawing(WIDTH)
    # The names stand left of each other only as far as there is room.
    legend(drawing, _LEFT, 12, [(side.name, side.kind) for side in sides])
    top = 26
    names = [wrapped(f"{row.code} {row.name}", LABELS) for row in rows]
    heights = [max(_ROW, 14 * len(lines) + 8) for lines in names]
    bottom = top + sum(heights)
    for quarter in range(5):
        x = _LEFT + (_RIGHT - _LEFT) * quarter / 4
        drawing.line(x, top, x, bottom, "v-grid" if quarter else "v-axis")
        drawing.text(x, bottom + 15, f"{25 * quarter} %", "v-s v-m", "middle")
    y = float(top)
    for row, lines, height in zip(rows, names, heights, strict=True):
        middle = y + height / 2
        drawing.lines(0, middle + 4 - 7 * (len(lines) - 1), lines)
        _bar(drawing, middle - _BAR - 1, row.first, sides[0], row)
        _bar(drawing, middle + 1.5, row.second, sides[1], row)
        drawing.text(WIDTH, middle + 4, row.word, _weight(row.word), "end")
        y += height
    drawing.height = bottom + 22
    return drawing


def _bar(drawing: Drawing, y: float, rate: RateJson, side: Side, row: Row) -> None:
    baseline = y + _BAR - 1.2
    if rate["rate"] is None or rate["ci"] is None:
        drawing.text(_LEFT + 6, baseline, "not judged", "v-s v-m")
        return
    span = _RIGHT - _LEFT
    low, high = rate["ci"]
    tip = (
        f"{row.code} {row.name}, {side.name}: {rate['count']} of {rate['n']}, "
        f"{percent(rate['rate'])} ({percent(low)} to {percent(high)})"
    )
    if rate["count"]:
        drawing.rect(_LEFT, y, span * rate["rate"], _BAR, side.kind, tip=tip)
    _interval(drawing, (_LEFT + span * low, _LEFT + span * high), y + _BAR / 2, rate, side)
    drawing.text(_PERCENT, baseline, percent(rate["rate"]), "v-s", "end")
    drawing.text(_COUNT, baseline, f"{rate['count']}/{rate['n']}", "v-s v-m", "end")


def _interval(
    drawing: Drawing, ends: tuple[float, float], y: float, rate: RateJson, side: Side
) -> None:
    """The interval, light where it lies in a dark bar."""
    tip = _LEFT + (_RIGHT - _LEFT) * (rate["rate"] or 0)
    if side.kind not in DARK_BARS or tip - ends[0] < 1:
        drawing.interval(*ends, y, set_off=False)
        return
    drawing.line(ends[0], y, tip, y, "v-in")
    drawing.line(ends[0], y - 3, ends[0], y + 3, "v-in")
    if ends[1] > tip:
        drawing.line(tip, y, ends[1], y, "v-end")
        drawing.line(ends[1], y - 3, ends[1], y + 3, "v-end")


def _weight(word: str) -> str:
    return "v-b" if word == "fatal" else "v-m" if word == "unclear" else ""


def differences(rows: Sequence[Row], heads: tuple[str, str]) -> Drawing:
    """Per mode the difference of both shares in points with its interval, and the classes.

    ``heads`` stand over the columns of classes, which are left out where they are empty.
    """
    drawing = Drawing(WIDTH)
    right = 496 if any(heads) else 600
    ends = [end for row in rows for end in row.found["difference_ci_pp"] or ()]
    reach = max(25, 25 * ceil(max((abs(end) for end in ends), default=25) / 25))
    low = -reach if any(end < -25 for end in ends) else -25

    def at(points: float) -> float:
        return _LEFT + (right - _LEFT) * (points - low) / (reach - low)

    top = 28
    names = [wrapped(f"{row.code} {row.name}", LABELS) for row in rows]
    heights = [max(24, 14 * len(lines) + 6) for lines in names]
    bottom = top + sum(heights)
    for points in range(low, reach + 1, 25):
        drawing.line(at(points), top, at(points), bottom, "v-grid" if points else "v-axis")
        drawing.text(at(points), bottom + 15, points_words(points), "v-s v-m", "middle")
    if any(heads):
        drawing.text(612, 14, heads[0], "v-s v-m", "end")
        drawing.text(WIDTH, 14, heads[1], "v-s v-m", "end")
    drawing.text((_LEFT + right) / 2, 14, "difference in points", "v-s v-m", "middle")
    y = float(top)
    for row, lines, height in zip(rows, names, heights, strict=True):
        middle = y + height / 2
        drawing.lines(0, middle + 4 - 7 * (len(lines) - 1), lines)
        _difference(drawing, middle, row, (at(0), right), at)
        drawing.text(612, middle + 4, row.word, _weight(row.word), "end")
        drawing.text(WIDTH, middle + 4, row.stated, "v-m", "end")
        y += height
    drawing.height = bottom + 22
    return drawing


def _difference(
    drawing: Drawing, y: float, row: Row, ends: tuple[float, float], at: _Scale
) -> None:
    value, interval = row.found["difference_pp"], row.found["difference_ci_pp"]
    if value is None or interval is None:
        drawing.text(ends[0] + 6, y + 4, "no difference can be had", "v-s v-m v-halo")
        return
    drawing.interval(at(interval[0]), at(interval[1]), y)
    drawing.dot(at(value), y, 4)
    drawing.text(ends[1] + 40, y + 4, points_words(value), "v-s", "end")


def points_words(value: float) -> str:
    """Points with their sign."""
    rounded = round(value)
    return f"{'−' if rounded < 0 else '+' if rounded > 0 else ''}{abs(rounded)}"
