"""Aligned tables of figures with their intervals, within a width."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, set_cell_size

if TYPE_CHECKING:
    from mast_tui.figures.agreement.coefficients import CoefficientJson

GAP: Final = "  "
NONE: Final = "—"
WITHHELD: Final = "–"
"""What stands in the place of an interval that would not hold."""

SHORTEST_NAME: Final = 12


@dataclass(frozen=True, slots=True)
class Cell:
    """A number and its interval, or the reason why there is none."""

    number: str = ""
    interval: str = ""  # ``WITHHELD`` where one would not hold.
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """The words of a row, and its cells."""

    words: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class FigureTable:
    """Rows under headings, a rule between their ``groups``.

    The first ``left`` columns of words are aligned to the left, and the last of these is cut where
    there is no room. Where there still is none, the intervals of the columns that ``gives_way``
    names (by place) are left out, one after the other; numbers and reasons never are.
    """

    words: tuple[str, ...]
    figures: tuple[str, ...]
    groups: Sequence[Sequence[Row]]
    gives_way: tuple[int, ...] = ()
    left: int = 2

    def lines(self, width: int | None) -> list[str]:
        """The table's lines; without a width nothing is cut."""
        bare: list[int] = []
        shape = _Shape.of(self, bare)
        for place in self.gives_way:
            if width is None or shape.narrowest() <= width:
                break
            bare.append(place)
            shape = _Shape.of(self, bare)
        return shape.within(width).lines()


def undefined_in_words(reason: str) -> str:
    """Why there is no figure, as shown in its place: ``— no variance``."""
    return f"{NONE} {reason.replace('_', ' ')}"


def number(value: float, digits: int = 2) -> str:
    """A number of so many digits; one that rounds to nothing has no sign."""
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.") else text


def interval_of(figure: Mapping[str, object]) -> tuple[float, float] | None:
    """The two ends of a figure's interval, where it has one."""
    ends = figure.get("ci")
    if not isinstance(ends, list):
        return None
    low, high = ends
    return float(low), float(high)


def cell(figure: CoefficientJson | Mapping[str, object]) -> Cell:
    """A figure of the report as a cell."""
    given: Mapping[str, object] = figure
    value = given["value"]
    if not isinstance(value, int | float):
        return Cell(reason=undefined_in_words(str(given.get("undefined", "undefined"))))
    ends = interval_of(given)
    brackets = "" if ends is None else f"[{number(ends[0])}, {number(ends[1])}]"
    if "ci_withheld" in given:
        brackets = WITHHELD
    return Cell(number(value), brackets)


def in_words(figure: CoefficientJson | Mapping[str, object]) -> str:
    """A figure of the report within a sentence: ``0.61 [0.48, 0.72]``."""
    one = cell(figure)
    return one.reason or f"{one.number} {one.interval}".rstrip()


def withheld_notes(*parts: object) -> list[str]:
    """Why figures anywhere in these parts of a report have no interval, a sentence a reason."""
    needs: dict[str, set[int]] = {}
    for part in parts:
        _needs(part, needs)
    return [
        f"{WITHHELD}: {_WHY[reason](sorted(needs[reason]))}." for reason in _WHY if reason in needs
    ]


_WHY: Final[Mapping[str, Callable[[list[int]], str]]] = {
    "few_traces": lambda least: (
        f"too few traces for an interval ({', '.join(f'n < {n}' for n in least)})"
    ),
    "rare_answer": lambda least: (
        "no interval, as present or absent was said too rarely "
        f"(fewer than {least[-1]} times by each, on average)"
    ),
    "few_shared_traces": lambda least: (
        "no interval of mean κ, as two of them share too few of the traces "
        f"(fewer than {least[-1]})"
    ),
    "few_places": lambda least: (
        f"no interval, as places of two meet in fewer than {least[-1]} traces"
    ),
}


def _needs(part: object, found: dict[str, set[int]]) -> None:
    if isinstance(part, Mapping):
        if "ci_withheld" in part:
            found.setdefault(part["ci_withheld"], set()).add(part["ci_needs"])
        else:
            for inner in part.values():
                _needs(inner, found)


@dataclass(frozen=True, slots=True)
class _Shape:
    """A table whose columns have their widths."""

    table: FigureTable
    words: tuple[int, ...]
    numbers: tuple[int, ...]
    figures: tuple[int, ...]
    bare: frozenset[int]

    @classmethod
    def of(cls, table: FigureTable, bare: Sequence[int]) -> _Shape:
        rows = [row for group in table.groups for row in group]
        words = tuple(
            max(cell_len(text) for text in (head, *(row.words[place] for row in rows)))
            for place, head in enumerate(table.words)
        )
        cells = [row.cells for row in rows]
        numbers = tuple(
            max((cell_len(row[place].number) for row in cells), default=0)
            for place in range(len(table.figures))
        )
        widths = []
        for place, head in enumerate(table.figures):
            shown = [
                numbers[place] + len(_ending(row[place], place in bare))
                for row in cells
                if not row[place].reason
            ]
            widths.append(max(cell_len(head), *shown) if shown else cell_len(head))
        return cls(table, words, numbers, _with_reasons(rows, widths), frozenset(bare))

    def total(self) -> int:
        """The width of a line."""
        columns = (*self.words, *self.figures)
        return sum(columns) + len(GAP) * (len(columns) - 1)

    def narrowest(self) -> int:
        """The width of a line with its name cut as far as may be."""
        return self.total() - max(0, self.words[self.table.left - 1] - SHORTEST_NAME)

    def within(self, width: int | None) -> _Shape:
        """The same with its name cut as far as has to be."""
        name = self.table.left - 1
        over = 0 if width is None else max(0, self.total() - width)
        kept = max(min(SHORTEST_NAME, self.words[name]), self.words[name] - over)
        words = (*self.words[:name], kept, *self.words[name + 1 :])
        return _Shape(self.table, words, self.numbers, self.figures, self.bare)

    def lines(self) -> list[str]:
        head = [*self._words(self.table.words)]
        for place, title in enumerate(self.table.figures):
            # A heading stands over the numbers, not over their intervals.
            lead = max(0, self.numbers[place] - cell_len(title))
            head.append(set_cell_size(" " * lead + title, self.figures[place]))
        lines = [GAP.join(head).rstrip()]
        for group in self.table.groups:
            if group:
                lines += ["─" * self.total(), *map(self._line, group)]
        return lines

    def _line(self, row: Row) -> str:
        parts = self._words(row.words)
        for start, end in _runs(row.cells):
            one = row.cells[start]
            room = sum(self.figures[start:end]) + len(GAP) * (end - start - 1)
            text = one.reason or (
                _right(one.number, self.numbers[start]) + _ending(one, start in self.bare)
            )
            parts.append(set_cell_size(text, room))
        return GAP.join(parts).rstrip()

    def _words(self, words: Sequence[str]) -> list[str]:
        return [
            _cut(text, width) if place < self.table.left else _right(text, width)
            for place, (text, width) in enumerate(zip(words, self.words, strict=True))
        ]


def _with_reasons(rows: Sequence[Row], widths: list[int]) -> tuple[int, ...]:
    """The widths such that each reason fits over the neighbours that share it."""
    for row in rows:
        for start, end in _runs(row.cells):
            room = sum(widths[start:end]) + len(GAP) * (end - start - 1)
            widths[end - 1] += max(0, cell_len(row.cells[start].reason) - room)
    return tuple(widths)


def _runs(cells: Sequence[Cell]) -> list[tuple[int, int]]:
    """Stretches of neighbouring cells with one and the same reason; any other cell is its own."""
    runs: list[tuple[int, int]] = []
    for place, one in enumerate(cells):
        if runs and one.reason and cells[runs[-1][0]] == one:
            runs[-1] = (runs[-1][0], place + 1)
        else:
            runs.append((place, place + 1))
    return runs


def _ending(one: Cell, bare: bool) -> str:
    return f" {one.interval}" if one.interval and not bare else ""


def _cut(text: str, width: int) -> str:
    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…"
    return set_cell_size(text, width)


def _right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text
