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
    """A target that a side has marked.

    Attributes:
        target: The target.
        words: The text for the target.
        quote: The quoted text.
        note: The note on the label.
        extra: Further text after ``words``.
    """

    target: Target
    words: str
    quote: str = ""
    note: str = ""
    extra: str = ""


@dataclass(frozen=True, slots=True)
class SideView:
    """One side as it is shown.

    Attributes:
        number: The number that chooses the side; None if it cannot be chosen.
        name: The name of the annotator or judge.
        verdict: The text of the verdict.
        places: The marked targets.
        remark: Further text after the verdict.
        note: The note on the verdict.
        is_judge: True for the verdict of a judge.
    """

    number: int | None
    name: str
    verdict: str
    places: tuple[SidePlace, ...] = ()
    remark: str = ""
    note: str = ""
    is_judge: bool = False


_StyledText = tuple[str, str]
"""A text with the name of its style."""


@dataclass(frozen=True, slots=True)
class _SideLine:
    """A row of the panel.

    Attributes:
        side: The side that the row belongs to.
        side_place: The target that the row is about; None if it is about the verdict only.
        parts: The texts with the names of their styles.
    """

    side: SideView
    side_place: SidePlace | None
    parts: Sequence[_StyledText]


class SidesPanel(VirtualLines):
    """The rows of all sides. The evidence shows the target under the cursor."""

    css_prefix = "sides-panel"
    tells_focus = True
    css_parts = ("cursor", "number", "name", "verdict", "place", "quote", "note", "quiet")

    def __init__(self, *, id: str | None = None) -> None:
        """Begin without sides."""
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
        return self._lines[self.cursor].side_place if self._lines else None

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
        """Wrap the texts of the sides to the present width."""
        width = self.scrollable_content_region.width
        self._lines = []
        for side in self.sides:
            self._lines += _lines_of(self._with_hint(side), self._key_of(side), width)
        self._empty_rows = wrapped(self.empty, max(8, width - 2))
        super().rows_changed()

    def _with_hint(self, side: SideView) -> SideView:
        """Return the side; if it has a number but no key, with a hint how to choose it."""
        if side.number is None or side.number <= MOST_SIDE_KEYS:
            return side
        key_of = context_of(self).key_of
        hint = (
            f"{key_of('adjudicate.pane')}, {key_of('adjudicate.down')} to here, "
            f"{key_of('adjudicate.enter')} takes it"
        )
        return replace(side, remark=" · ".join(filter(None, (side.remark, hint))))

    def _key_of(self, side: SideView) -> str:
        """Return the key that chooses a side, its number if no key does, or a blank."""
        if side.number is None:
            return " "
        if side.number > MOST_SIDE_KEYS:
            return str(side.number)
        return context_of(self).key_of(f"adjudicate.side_{side.number}")

    def render_row(self, row: int, width: int) -> Strip:
        """Draw one row of a side, or of the message that there are none."""
        base_style = self.rich_style
        if not self._lines:
            message = Segment(f" {self._empty_rows[row]}", base_style + self._part("quiet"))
            return Strip([message]).adjust_cell_length(width, base_style)
        is_at_cursor = row == self.cursor and self.has_focus
        if is_at_cursor:
            base_style += self._part("cursor")
        edge = "▌" if is_at_cursor else " "
        segments = [Segment(edge, base_style + self._part("number"))]
        for text, style_name in self._lines[row].parts:
            segments.append(Segment(text, base_style + self._part(style_name)))
        return Strip(segments).adjust_cell_length(width, base_style)

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
        _text, first_style = self._lines[row].parts[0]
        if first_style == "number" and offset.x < INDENT - 1:
            self.post_message(self.Chosen(self, row))
        else:
            self.post_message(self.Moved(self, row))


def _lines_of(side: SideView, key: str, width: int) -> list[_SideLine]:
    """Return the rows of a side: its verdict, then its targets with quotes and notes.

    The first target is in the row of the verdict.
    """
    first_place = side.places[0] if side.places else None
    parts = [
        (f"{key} ", "number"),
        (one_line(side.name, 32), "name"),
        (f"  {side.verdict}" if side.verdict else "", "verdict"),
    ]
    if first_place is not None:
        parts += _place_parts(first_place, "  ")
    if side.remark:
        parts.append((f"  {one_line(side.remark)}", "quiet"))
    lines = [_SideLine(side, first_place, _cut_parts(parts, width - 1))]
    lines += _wrapped_lines(side, None, side.note, "note", width)
    for side_place in side.places:
        if side_place is not first_place:
            place_parts = _cut_parts(_place_parts(side_place, " " * INDENT), width - 1)
            lines.append(_SideLine(side, side_place, place_parts))
        quote = f"“{side_place.quote}”" if side_place.quote else ""
        lines += _wrapped_lines(side, side_place, quote, "quote", width)
        lines += _wrapped_lines(side, side_place, side_place.note, "note", width)
    return lines


def _place_parts(side_place: SidePlace, indent: str) -> list[_StyledText]:
    parts = [(f"{indent}{side_place.words}", "place")]
    if side_place.extra:
        parts.append((f"  {side_place.extra}", "quiet"))
    return parts


def _cut_parts(parts: Sequence[_StyledText], width: int) -> list[_StyledText]:
    """Return the parts that fit the width; the last one ends in an ellipsis if parts are cut."""
    cut_parts: list[_StyledText] = []
    free_cells = max(1, width)
    for number, (text, style_name) in enumerate(parts):
        is_last = number + 1 == len(parts)
        needed_cells = cell_len(text) if is_last else cell_len(text) + 1
        if needed_cells > free_cells:
            cut_parts.append((set_cell_size(text, free_cells - 1) + "…", style_name))
            break
        cut_parts.append((text, style_name))
        free_cells -= cell_len(text)
    return cut_parts


def _wrapped_lines(
    side: SideView, side_place: SidePlace | None, text: str, style_name: str, width: int
) -> list[_SideLine]:
    """Return the rows of a wrapped and indented text; none for an empty text."""
    if not text:
        return []
    rows = wrapped(text, max(8, width - 1 - INDENT))
    return [_SideLine(side, side_place, [(" " * INDENT + row, style_name)]) for row in rows]
