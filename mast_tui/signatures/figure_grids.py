"""Figures of pairs of modes as grids: which show together, and which sets on first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_tui.reports.render.svg import WIDTH, Drawing, clipped, on_shade, wrapped
from mast_tui.signatures.figure_model import LABELS

if TYPE_CHECKING:
    from mast_tui.figures.signatures.co_occurrence import TogetherJson
    from mast_tui.figures.signatures.places import OrderJson

_LEFT: Final = LABELS + 12
_WIDEST: Final = 44.0
_LEAST: Final = 26.0


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in a cell, how dark it is (0 to 1), and what a pointer on it shows."""

    words: str
    share: float
    tip: str


def grid(
    names: Sequence[tuple[str, str]], cells: Mapping[tuple[str, str], Cell], *, half: bool
) -> Drawing:
    """Modes against modes; ``cells`` are by the codes of row and column.

    With ``half`` only what lies under the diagonal is drawn, without the diagonal.
    """
    rows, columns = (names[1:], names[:-1]) if half else (names, names)
    many = max(len(columns), 1)
    side = max(_LEAST, min(_WIDEST, (WIDTH - _LEFT) / many))
    drawing = Drawing(max(WIDTH, _LEFT + side * many))
    tall = max(side, 32.0)
    top = 22.0
    for place, (code, _) in enumerate(columns):
        x = _LEFT + side * (place + 0.5)
        head = clipped(code, side - 2, 10.5)
        drawing.text(x, top - 8, head, "v-s v-m", "middle")
    for row, (code, name) in enumerate(rows):
        y = top + tall * row
        lines = wrapped(f"{code} {name}", LABELS, most=2)
        drawing.lines(0, y + tall / 2 + 4 - 7 * (len(lines) - 1), lines)
        for column, (other, _) in enumerate(columns[: row + 1] if half else columns):
            _cell(drawing, _LEFT + side * column, y, (side, tall), cells.get((code, other)))
    drawing.height = top + tall * len(rows) + 4
    if not rows:
        drawing.text(0, 14, "no two modes show in one trace", "v-m")
    return drawing


def _cell(
    drawing: Drawing, x: float, y: float, size: tuple[float, float], cell: Cell | None
) -> None:
    drawing.rect(x + 0.5, y + 0.5, size[0] - 1, size[1] - 1, "v-cell")
    if cell is None:
        return
    shade = 0.9 * cell.share
    drawing.rect(x + 1, y + 1, size[0] - 2, size[1] - 2, "v-heat", tip=cell.tip, opacity=shade)
    words = clipped(cell.words, size[0] - 2, 10.5)
    drawing.text(x + size[0] / 2, y + size[1] / 2 + 4, words, on_shade(shade), "middle")


def together(pairs: Sequence[TogetherJson], names: Sequence[tuple[str, str]]) -> Drawing:
    """In how many traces both modes show; the darker, the more of those with either."""
    cells = {
        # Pairs come in the order of the modes; under the diagonal the later mode is the row.
        (pair["modes"][1], pair["modes"][0]): Cell(
            str(pair["both"]),
            pair["jaccard"],
            f"{pair['modes'][0]} and {pair['modes'][1]}: both in {pair['both']} of {pair['n']} "
            f"traces, one alone in {pair['only_first'] + pair['only_second']}",
        )
        for pair in pairs
    }
    used = {code for pair in pairs for code in pair["modes"]}
    return grid([one for one in names if one[0] in used], cells, half=True)


def order(pairs: Sequence[OrderJson], names: Sequence[tuple[str, str]]) -> Drawing:
    """In how many traces with both the mode of the row sets on before that of the column."""
    cells: dict[tuple[str, str], Cell] = {}
    for pair in pairs:
        one, other = pair["modes"]
        for modes, count in (((one, other), pair["before"]), ((other, one), pair["after"])):
            tip = (
                f"{modes[0]} before {modes[1]} in {count} of {pair['n']} traces with both, "
                f"at the same span in {pair['together']}"
            )
            cells[modes] = Cell(f"{count}/{pair['n']}", count / pair["n"], tip)
    used = {code for pair in pairs for code in pair["modes"]}
    return grid([one for one in names if one[0] in used], cells, half=False)
