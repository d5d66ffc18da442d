"""Figures of places: where in the run failures set on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from mast_tui.reports.render.svg import WIDTH, Drawing, wrapped
from mast_tui.signatures.figure_counts import ticks
from mast_tui.signatures.figure_model import LABELS
from mast_tui.signatures.figure_rates import percent

if TYPE_CHECKING:
    from mast_tui.figures.signatures.places import PlacesJson, PositionJson

_LEFT: Final = LABELS + 12
_RIGHT: Final = 560
_PLOT: Final = 84


def onset(found: PlacesJson, names: Sequence[tuple[str, str]]) -> Drawing:
    """Above, traces by the tenth of the run with their first failure; below, each mode's onset.

    ``names`` are codes and names of all modes, in their order.
    """
    drawing = Drawing(WIDTH)
    top = 22.0
    bottom = top + _PLOT
    _firsts(drawing, found["first_failure"], top)
    rows = [(code, name, found["onset"][code]) for code, name in names if code in found["onset"]]
    y = bottom + 22
    for code, name, position in rows:
        lines = wrapped(f"{code} {name}", LABELS)
        height = max(26, 14 * len(lines) + 6)
        middle = y + height / 2
        drawing.lines(0, middle + 4 - 7 * (len(lines) - 1), lines)
        _strip(drawing, middle, position, f"{code} {name}")
        y += height
    y += 4
    for quarter in range(5):
        x = _LEFT + (_RIGHT - _LEFT) * quarter / 4
        drawing.line(x, y, x, y + 4, "v-axis")
        drawing.text(x, y + 17, f"{25 * quarter} %", "v-s v-m", "middle")
    drawing.line(_LEFT, y, _RIGHT, y, "v-axis")
    drawing.text((_LEFT + _RIGHT) / 2, y + 34, "part of the run", "v-s v-m", "middle")
    drawing.height = y + 40
    return drawing


def _firsts(drawing: Drawing, found: PositionJson, top: float) -> None:
    bottom = top + _PLOT
    marks = ticks(max(found["bins"], default=0))
    tenth = (_RIGHT - _LEFT) / len(found["bins"])
    drawing.lines(0, top + _PLOT / 2 - 2, ["first failure", f"of {found['n']} traces"], "v-b")
    for mark in marks:
        y = bottom - _PLOT * mark / marks[-1]
        drawing.line(_LEFT, y, _RIGHT, y, "v-grid" if mark else "v-axis")
        drawing.text(_RIGHT + 8, y + 4, str(mark), "v-s v-m")
    for place, count in enumerate(found["bins"]):
        if count:
            tall = _PLOT * count / marks[-1]
            tip = f"{count} traces first fail between {10 * place} and {10 * place + 10} %"
            x = _LEFT + tenth * place + 2
            drawing.rect(x, bottom - tall, tenth - 4, tall, "v-failed", tip=tip)
    if found["median"] is not None and found["quartiles"] is not None:
        _box(drawing, top - 10, found["median"], found["quartiles"])
        drawing.text(WIDTH, top - 6, f"median {percent(found['median'])}", "v-s", "end")


def _strip(drawing: Drawing, y: float, found: PositionJson, words: str) -> None:
    tenth = (_RIGHT - _LEFT) / len(found["bins"])
    most = max(found["bins"], default=0)
    drawing.rect(_LEFT, y - 8, _RIGHT - _LEFT, 16, "v-cell")
    for place, count in enumerate(found["bins"]):
        if count:
            tip = f"{words}: {count} of {found['n']} between {10 * place} and {10 * place + 10} %"
            x, shade = _LEFT + tenth * place, 0.15 + 0.55 * count / most
            drawing.rect(x + 0.5, y - 7.5, tenth - 1, 15, "v-heat", tip=tip, opacity=shade)
    if found["median"] is None or found["quartiles"] is None:
        drawing.text(_LEFT + 6, y + 4, "nobody counted the spans", "v-s v-m")
        return
    _box(drawing, y, found["median"], found["quartiles"])
    drawing.text(618, y + 4, percent(found["median"]), "v-s", "end")
    drawing.text(WIDTH, y + 4, f"n {found['n']}", "v-s v-m", "end")


def _box(drawing: Drawing, y: float, median: float, quartiles: list[float]) -> None:
    span = _RIGHT - _LEFT
    drawing.interval(_LEFT + span * quartiles[0], _LEFT + span * quartiles[1], y)
    drawing.dot(_LEFT + span * median, y, 4)
