"""The sides of one conflict with their numbers: verdict, spans, quotes and notes of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import events
from textual.strip import Strip

from mast_tui.labels import Target
from mast_tui.safe_text import one_line
from mast_tui.ui.context import context_of
from mast_tui.ui.text.layout import wrapped
from mast_tui.ui.widgets.virtual_lines import VirtualLines

INDENT: Final = 4

MOST_SIDE_KEYS: Final = 9
"""The number of sides that have a key."""


@dataclass(frozen=True, slots=True)
class SidePlace:
    """A target that a side has marked, with its quote and note."""

    target: Target
    words: str
    quote: str = ""
    note: str = ""
    extra: str = ""


@dataclass(frozen=True, slots=True)
class SideView:
    """One side as it is shown. ``number`` is its key; None for a side that cannot be chosen.

    ``note`` is the note on the verdict. ``is_judge`` is true for the verdict of a judge.
    """

    number: int | None
    name: str
    verdict: str
    places: tuple[SidePlace, ...] = ()
    remark: str = ""
    note: str = ""
    is_judge: bool = False


@dataclass(frozen=True, slots=True)
class _SideLine:
    """A row of the panel: its side and target, and its texts with their styles."""

    side: SideView
    mark: SidePlace | None
    parts: tuple[tuple[str, str], ...]


class SidesPanel(VirtualLines):
    """The rows of all sides. The evidence shows the target under the cursor."""

    css_prefix = "sides-panel"
    tells_focus = True
    css_parts = ("cursor", "number", "name", "verdict", "place", "quote", "note", "quiet")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.sides: Sequence[SideView] = ()
        self.empty = ""
        self._lines: list[_SideLine] = []
        self._empty_rows: list[str] = []

    @property
    def row_count(self) -> int:
        """The number of rows of all sides, or of the message that there are none."""
        return len(self._lines) or len(self._empty_rows)

    @property
    def side(self) -> SideView | None:
        """The side under the cursor."""
        return self._lines[self.cursor].side if self._lines else None

    @property
    def place(self) -> SidePlace | None:
        """The target under the cursor."""
        return self._lines[self.cursor].mark if self._lines else None

    def show(self, sides: Sequence[SideView], *, empty: str = "") -> None:
        """Show other sides, with the cursor on the first.

        Args:
            sides: The sides.
            empty: The message to show if there are none.
        """
        self.sides = sides
        self.empty = empty
        self.cursor = 0
        self.scroll_to(y=0, animate=False, force=True)
        self.rows_changed()

    def rows_changed(self) -> None:
        """Wrap the texts to the present width."""
        width = self.scrollable_content_region.width
        self._lines = [
            line
            for side in map(self._with_hint, self.sides)
            for line in _lines_of(side, self._key_of(side), width)
        ]
        self._empty_rows = wrapped(self.empty, max(8, width - 2))
        super().rows_changed()

    def _with_hint(self, side: SideView) -> SideView:
        """Return the side with a hint how to choose it, if it has no key."""
        if side.number is None or side.number <= MOST_SIDE_KEYS:
            return side
        key_of = context_of(self).key_of
        hint = (
            f"{key_of('adjudicate.pane')}, {key_of('adjudicate.down')} to here, "
            f"{key_of('adjudicate.enter')} takes it"
        )
        return replace(side, remark=" · ".join(filter(None, (side.remark, hint))))

    def _key_of(self, side: SideView) -> str:
        """Return the key that chooses a side, or a blank."""
        if side.number is None:
            return " "
        if side.number > MOST_SIDE_KEYS:
            return str(side.number)
        return context_of(self).key_of(f"adjudicate.side_{side.number}")

    def render_row(self, row: int, width: int) -> Strip:
        """Draw one row."""
        base = self.rich_style
        if not self._lines:
            message = Segment(f" {self._empty_rows[row]}", base + self._part("quiet"))
            return Strip([message]).adjust_cell_length(width, base)
        line = self._lines[row]
        at_cursor = row == self.cursor and self.has_focus
        if at_cursor:
            base += self._part("cursor")
        parts = [Segment("▌" if at_cursor else " ", base + self._part("number"))]
        parts += [Segment(text, base + self._part(kind)) for text, kind in line.parts]
        return Strip(parts).adjust_cell_length(width, base)

    def on_click(self, event: events.Click) -> None:
        """Choose a side if its number was clicked; otherwise show the target."""
        event.stop()
        event.prevent_default()  # or the handler of the base class runs as well
        offset = event.get_content_offset(self)
        if offset is None:
            return
        row = offset.y + round(self.scroll_y)
        if not 0 <= row < len(self._lines):
            return
        self.move_to(row)
        on_number = offset.x < INDENT - 1 and self._lines[row].parts[0][1] == "number"
        self.post_message(self.Chosen(self, row) if on_number else self.Moved(self, row))


def _lines_of(side: SideView, key: str, width: int) -> list[_SideLine]:
    """Return the rows of a side: its verdict, then its targets with quotes and notes."""
    first = side.places[0] if side.places else None
    parts = [
        (f"{key} ", "number"),
        (one_line(side.name, 32), "name"),
        (f"  {side.verdict}" if side.verdict else "", "verdict"),
    ]
    if first is not None:
        parts += _place_parts(first, "  ")
    if side.remark:
        parts.append((f"  {one_line(side.remark)}", "quiet"))
    lines = [_SideLine(side, first, _fitted(parts, width - 1))]
    lines += _wrapped(side, None, side.note, "note", width)
    for mark in side.places:
        if mark is not first:
            lines.append(
                _SideLine(side, mark, _fitted(_place_parts(mark, " " * INDENT), width - 1))
            )
        lines += _wrapped(side, mark, f"“{mark.quote}”" if mark.quote else "", "quote", width)
        lines += _wrapped(side, mark, mark.note, "note", width)
    return lines


def _place_parts(mark: SidePlace, indent: str) -> list[tuple[str, str]]:
    parts = [(f"{indent}{mark.words}", "place")]
    if mark.extra:
        parts.append((f"  {mark.extra}", "quiet"))
    return parts


def _fitted(parts: list[tuple[str, str]], width: int) -> tuple[tuple[str, str], ...]:
    """Return the texts cut to the width, with an ellipsis if something is cut."""
    fitted: list[tuple[str, str]] = []
    room = max(1, width)
    for number, (text, kind) in enumerate(parts):
        more_follow = number + 1 < len(parts)
        if cell_len(text) > room or (more_follow and cell_len(text) == room):
            fitted.append((set_cell_size(text, room - 1) + "…", kind))
            break
        fitted.append((text, kind))
        room -= cell_len(text)
    return tuple(fitted)


def _wrapped(
    side: SideView, mark: SidePlace | None, text: str, kind: str, width: int
) -> list[_SideLine]:
    if not text:
        return []
    rows = wrapped(text, max(8, width - 1 - INDENT))
    return [_SideLine(side, mark, ((" " * INDENT + row, kind),)) for row in rows]
