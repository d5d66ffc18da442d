"""The whole text of one span. Only the part on screen is laid out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Final

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from mast_tui.safe_text import COLOUR_SEQUENCE, one_line
from mast_tui.traces.model import PREVIEW_CHARS, Span, SpanKind, Trace
from mast_tui.ui.context import context_of
from mast_tui.ui.text.highlighting import PART_NAMES, Highlighter, TextPart
from mast_tui.ui.text.json_view import PrettyText, pretty_json
from mast_tui.ui.text.layout import (
    UNWRAPPED,
    Readable,
    TextLayout,
    TextRow,
    next_word,
    previous_word,
    word_at,
)
from mast_tui.ui.textual_internals import set_virtual_size_undrawn, show_titles_undrawn, titles_of
from mast_tui.ui.trace_view.timeline import SHELL_TOOLS
from mast_tui.ui.widgets.virtual_lines import VirtualLines

PYTHON_TOOLS: Final = frozenset(
    {"python", "ipython", "execute_python", "python_executor", "jupyter"}
)
"""Tools that run Python code."""

_NO_TEXT: Final = "This step has no text."


class SpanText:
    """The text of one span at a time, read for ``screen``.

    A text that cannot be read is empty, so that nothing in it can be quoted or copied. The user is
    told once per trace that its file has changed.
    """

    def __init__(self, screen: Screen[None]) -> None:
        self.unreadable: str | None = None
        """The reason why the last text cannot be read, or None."""
        self._screen = screen
        self._last: tuple[Trace | None, int, str] = (None, -1, "")
        self._warned_trace: Trace | None = None

    @property
    def empty_text(self) -> str:
        """The message to show if the text is empty."""
        return _NO_TEXT if self.unreadable is None else f"[cannot be read: {self.unreadable}]"

    def forget(self) -> None:
        """Read the text again the next time, even if it is the same span."""
        self._last = (None, -1, "")

    def text_of(self, trace: Trace, index: int) -> str:
        """Return the text of a span; the last one read is kept.

        Args:
            trace: The trace.
            index: The index of the span.
        """
        if self._last[0] is not trace or self._last[1] != index:
            self._last = (trace, index, self._read(trace, index))
        return self._last[2]

    def _read(self, trace: Trace, index: int) -> str:
        """Read the text of a span; warn if the file has changed."""
        try:
            text = trace.text(index)
            self.unreadable = None
        except OSError as error:
            text = ""
            self.unreadable = error.strerror or str(error)
        reason = self.unreadable or trace.changed()
        if reason is not None:
            self.warn(trace, reason)
        return text

    def warn(self, trace: Trace, reason: str) -> None:
        """Warn the user, once per trace, that its file has changed.

        Args:
            trace: The trace.
            reason: The change.
        """
        if self._warned_trace is not trace:
            self._warned_trace = trace
            key = context_of(self._screen).key_of("annotate.follow")
            message = f"{trace.path.name} has changed: {reason}. Press {key} to read it again"
            self._screen.app.notify(one_line(message), severity="warning", timeout=12, markup=False)


def text_format(span: Span) -> str:
    """Return the format of a span's text: ``bash``, ``python``, ``output`` or ``markdown``."""
    if span.kind is SpanKind.TOOL_CALL:
        name = (span.name or "").lower()
        if name in SHELL_TOOLS:
            return "bash"
        return "python" if name in PYTHON_TOOLS else "output"
    return "output" if span.kind is SpanKind.TOOL_RESULT else "markdown"


def opens_at(span: Span, text: str) -> int:
    """Return the code point at which to open a text: the one that its row begins with.

    Some texts begin with a long prompt, and their row shows the answer after it.

    Args:
        span: The span of the row.
        text: Its text.
    """
    preview_words = span.preview.split()
    cut = len(span.preview) >= PREVIEW_CHARS
    if span.preview_is_complete or not preview_words or span.kind is SpanKind.TOOL_CALL:
        return 0
    if cut and " ".join(text[: 4 * PREVIEW_CHARS].split()).startswith(span.preview):
        return 0
    # A preview that is not cut reaches the end of the text; the same words may occur earlier.
    end = "" if cut else r"\s*\Z"
    match = re.search(r"\s+".join(map(re.escape, preview_words)) + end, text)
    return 0 if match is None else match.start()


COUNTED_CHARS: Final = 1 << 20
"""The length up to which all rows of a text are counted in idle time.

Of longer texts only visited parts are counted, and the size of the scroll bar is an estimate.
"""

COUNTED_JSON_CHARS: Final = 1 << 16
"""The same for JSON, which must be formatted first."""

NEAR_CHARS: Final = 1 << 15
"""The distance in code points over which JSON is formatted on demand, and words are searched."""


class DisplayedText:
    """A text as it is displayed, with conversions between offsets in the text and in the display.

    Offsets are code points. JSON is formatted up to the part that was visited, and the layout is
    told what has changed. Far beyond that, the display shows the text as it is.
    """

    def __init__(self, text: str, text_format: str | None) -> None:
        """Format the beginning of a text.

        Args:
            text: The text.
            text_format: Its format, see ``text_format``; None to show it as it is.
        """
        self.text = text
        self.rendered = text_format is not None
        self.pretty = None if text_format is None else pretty_json(text)
        self.highlighter: Highlighter | None = None
        if text_format:
            self.highlighter = Highlighter(self.displayed, text_format, self.pretty)

    def lay_out(self, width: int) -> TextLayout:
        """Return the layout of the displayed text at a width in cells."""
        return TextLayout(self.displayed, width, rendered=self.rendered)

    @property
    def displayed(self) -> Readable:
        """The displayed text."""
        return self.text if self.pretty is None else self.pretty

    def to_shown(self, offset: int) -> int:
        """Return the offset in the display of an offset in the text."""
        return offset if self.pretty is None else self.pretty.to_shown(offset)

    def to_source(self, offset: int) -> int:
        """Return the offset in the text of an offset in the display."""
        return offset if self.pretty is None else self.pretty.to_source(offset)

    def range_to_shown(self, start: int, end: int) -> tuple[int, int]:
        """Return the displayed range of a range of the text.

        Args:
            start: The first code point of the text.
            end: The end (exclusive).
        """
        return (start, end) if self.pretty is None else self.pretty.range_to_shown(start, end)

    def range_to_source(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of the text, in whole code points, that a range of the display shows.

        Args:
            start: The first code point of the display.
            end: The end (exclusive).
        """
        return (start, end) if self.pretty is None else self.pretty.range_to_source(start, end)

    def search_near(
        self, offset: int, search: Callable[[str, int], tuple[int, int] | None]
    ) -> tuple[int, int] | None:
        """Search the displayed text around an offset.

        Args:
            offset: An offset in the text.
            search: Searches a string from a position, and returns start and end of the match or
                None.

        Returns:
            The match as a range of the text, or None.
        """
        position = self.to_shown(offset)
        begin = max(0, position - NEAR_CHARS)
        around = self.displayed[begin : position + NEAR_CHARS]
        if self.rendered:
            around = COLOUR_SEQUENCE.sub(lambda match: " " * len(match[0]), around)
        match = search(around, position - begin)
        return None if match is None else self.range_to_source(begin + match[0], begin + match[1])

    def format_rows(self, layout: TextLayout, top: int, rows: int) -> bool:
        """Format JSON until so many rows below an offset are ready.

        Args:
            layout: The layout of the display.
            top: The offset in the display.
            rows: The number of rows.

        Returns:
            Whether anything was formatted.
        """
        pretty = self.pretty
        changed = False
        while pretty is not None and not pretty.complete and top < pretty.set_out:
            if layout.step(top, rows) < pretty.set_out:
                break
            changed = self._extend(pretty, layout)
        return changed

    def format_until(self, layout: TextLayout, end: int) -> bool:
        """Format JSON up to an offset, unless that is far beyond the formatted part.

        Args:
            layout: The layout of the display.
            end: The offset in the text.

        Returns:
            Whether anything was formatted.
        """
        pretty = self.pretty
        changed = False
        if pretty is not None and end - pretty.read <= NEAR_CHARS:
            while not pretty.complete and pretty.read <= end:
                changed = self._extend(pretty, layout)
        return changed

    def is_counting(self, layout: TextLayout) -> bool:
        """Check if rows are still to be counted in idle time."""
        if self.pretty is not None and not self.pretty.complete:
            return len(self.text) <= COUNTED_JSON_CHARS
        return not layout.complete and len(self.text) <= COUNTED_CHARS

    def count_more(self, layout: TextLayout) -> None:
        """Count some more rows."""
        if self.pretty is not None and not self.pretty.complete:
            self._extend(self.pretty, layout)
        layout.work_out_next()

    def _extend(self, pretty: PrettyText, layout: TextLayout) -> bool:
        changed = pretty.set_out
        pretty.extend()
        layout.changed_from(changed)
        if self.highlighter is not None:
            self.highlighter.changed()
        return True


SIDE_CELLS: Final = 8
"""The cells by which a key scrolls sideways."""

TITLE_FRAME: Final = 5
"""The cells of a border's line that are drawn with its title."""


class SpanView(VirtualLines):
    """The text of a span with highlights; later ones are drawn over earlier ones.

    A text with a format is displayed in it until ``toggle_raw``: JSON in lines, Markdown, code and
    terminal colours with styles. All offsets in arguments and results are those of the text itself.
    """

    css_prefix = "span-view"
    css_parts: ClassVar[tuple[str, ...]] = (
        *("evidence", "own", "match", "selection", "empty"),
        *PART_NAMES,
    )

    @dataclass
    class EdgeDragged(Message):
        """The report that the border above the text was dragged to a line of the screen."""

        view: SpanView
        y: int

        @property
        def control(self) -> SpanView:
            return self.view

    @dataclass
    class Quoted(Message):
        """The report that a part of the text was marked with the mouse."""

        view: SpanView
        start: int
        end: int

        @property
        def control(self) -> SpanView:
            return self.view

    def __init__(
        self, *, id: str | None = None, classes: str | None = None, tells_place: bool = False
    ) -> None:
        """Show nothing yet.

        Args:
            id: Its id.
            classes: Its classes.
            tells_place: Whether the lower border says which rows are visible, and how many there
                are.
        """
        super().__init__(id=id, classes=classes)
        self._tells_place = tells_place
        self._origin: Content | None = None
        self.raw = False
        """Whether texts are displayed as they are, without their format."""
        self._format: str | None = None
        self._displayed = DisplayedText("", None)
        self.text = ""
        self.empty = ""
        self.highlights: Sequence[TextPart] = ()
        self.wrapped = True
        self._layout = TextLayout("", 20)
        self._top = 0
        self._shift = 0
        self._drag_from: int | None = None
        self._drags_edge = False

    @property
    def row_count(self) -> int:
        """The number of rows; an estimate until all of a long text is laid out."""
        return self._layout.rows

    def show_text(
        self,
        text: str,
        highlights: Sequence[TextPart] = (),
        *,
        empty: str = "",
        text_format: str | None = None,
        opens_at: int = 0,
    ) -> None:
        """Show another text from its first highlight, from ``opens_at``, or from its beginning.

        Only lines that change are sent to the terminal.

        Args:
            text: The text.
            highlights: The parts to highlight.
            empty: The message to show if the text is empty.
            text_format: Its format (``text_format``); None to show it as it is.
            opens_at: The code point to show in the first row.
        """
        old_lines = self._lines_on_screen()
        self.text = text
        self.empty = empty
        self.highlights = highlights
        self._top = self._shift = 0
        self._format = text_format
        self._displayed = DisplayedText(text, None if self.raw else text_format)
        self._lay_out()
        if highlights:
            self.reveal(highlights[0].start, highlights[0].end)
        elif opens_at:
            self._set_top(self._displayed.to_shown(opens_at))
        self._redraw_changed_lines(old_lines)

    def show_highlights(self, highlights: Sequence[TextPart]) -> None:
        """Change the highlights without scrolling."""
        if list(highlights) == list(self.highlights):
            return
        old_lines = self._lines_on_screen()
        self.highlights = highlights
        self._cache.clear()
        self._redraw_changed_lines(old_lines)

    def show_titles(self, title: Text | None, subtitle: Text | None = None) -> None:
        """Show titles in the border; only the lines of the border are drawn.

        Args:
            title: The title above the text.
            subtitle: The source of the text, below it.
        """
        top = None if title is None else Content.from_rich_text(title)
        self._origin = None if subtitle is None else Content.from_rich_text(subtitle)
        self._set_titles(top, self._subtitle())

    def _set_titles(self, top: Content | None, bottom: Content | None) -> None:
        """Set the titles of the border, and draw those that have changed."""
        edge = self.gutter
        # Textual's own setter draws the whole box.
        old_top, old_bottom = titles_of(self)
        if top is not old_top and top != old_top:
            self._redraw_edge(-edge.top, self.styles.border_title_align, old_top, top)
        if bottom is not old_bottom and bottom != old_bottom:
            below = self.outer_size.height - edge.top - 1
            self._redraw_edge(below, self.styles.border_subtitle_align, old_bottom, bottom)
        show_titles_undrawn(self, top, bottom)

    def _subtitle(self) -> Content | None:
        """Return the source of the text and, if some rows are hidden, the visible rows."""
        if not self._tells_place or not self.text:
            return self._origin
        height = self.lines_area.height
        rows = self.row_count
        if rows <= height or height <= 0:
            return self._origin
        pretty = self._displayed.pretty
        all_rows = f"{rows:,}"
        if self._displayed.is_counting(self._layout):
            all_rows = "…"
        elif not self._layout.complete or (pretty is not None and not pretty.complete):
            all_rows = f"about {rows:,}"
        first = round(self.scroll_y) + 1
        position = f"lines {first:,}–{min(rows, first + height - 1):,} of {all_rows}"
        return (
            Content(position) if self._origin is None else Content(f"{position} · ") + self._origin
        )

    def _redraw_edge(self, y: int, aligned: str, old: Content | None, new: Content | None) -> None:
        """Draw a line of the border; only as far as its titles reach if they are on the left."""
        longest = max(0 if text is None else text.cell_length for text in (old, new))
        width = self.outer_size.width
        if aligned == "left":
            width = min(width, longest + TITLE_FRAME)
        self.refresh(Region(-self.gutter.left, y, width, 1))

    def _lines_on_screen(self) -> list[Strip]:
        return [self.render_line(y) for y in range(self.lines_area.height)]

    def _redraw_changed_lines(self, old_lines: Sequence[Strip]) -> None:
        """Draw the lines that differ from ``old_lines``."""
        new_lines = self._lines_on_screen()
        if len(new_lines) != len(old_lines):
            self.refresh()
            return
        width = self.lines_area.width
        for y, (old, new) in enumerate(zip(old_lines, new_lines, strict=True)):
            if old != new:
                self.refresh(Region(0, y, width, 1))

    def toggle_raw(self) -> None:
        """Switch between the text with and without its format; the top row stays the same."""
        first = self.first_offset_on_screen
        self.raw = not self.raw
        self._displayed = DisplayedText(self.text, None if self.raw else self._format)
        self._top = self._shift = 0
        self._lay_out()
        self._displayed.format_until(self._layout, first)
        self._top = self._displayed.to_shown(first) if first else 0
        self._cache.clear()
        self._update_rows()
        self.refresh()

    def reveal(self, start: int, end: int) -> None:
        """Scroll so that a part of the text is visible.

        Args:
            start: Its first code point.
            end: Its end (exclusive).
        """
        layout = self._layout
        if self._displayed.format_until(layout, end):
            self._cache.clear()
        start, end = self._displayed.range_to_shown(start, end)
        ends = (start, max(start, end - 1))
        for offset in ends:
            layout.row_of(offset)
        self._update_rows()
        first, last = (layout.row_of(offset) for offset in ends)
        height = self._height
        top = round(self.scroll_y)
        if not (top <= first and last < top + height):
            self._scroll_to_offset(layout.step(start, -(height // 4)))
        if not self.wrapped:
            self._reveal_sideways(start, end)

    def _reveal_sideways(self, start: int, end: int) -> None:
        row = self._layout.row_at(start)
        part = row.slice_of(start, min(end, row.end))
        if part is not None:
            left, right = (row.indent + cell_len(row.shown[:offset]) for offset in part)
            if left < self._shift or right > self._shift + self._text_width:
                self._scroll_sideways(left - self._text_width // 4)

    def toggle_wrap(self) -> None:
        """Wrap long lines, or let them extend beyond the right side."""
        self.wrapped = not self.wrapped
        self._shift = 0
        self.rows_changed()

    def move_sideways(self, step: int) -> bool:
        """Scroll right (negative: left); return False if lines are wrapped."""
        if self.wrapped:
            return False
        longest = max(cell_len(self._layout.row(row).shown) for row in self.rows_on_screen())
        furthest = max(0, longest - self._text_width)
        self._scroll_sideways(min(self._shift + step * SIDE_CELLS, max(furthest, self._shift)))
        return True

    def _scroll_sideways(self, shift: int) -> None:
        shift = max(0, shift)
        if shift != self._shift:
            old_lines = self._lines_on_screen()
            self._shift = shift
            self._cache.clear()
            self._redraw_changed_lines(old_lines)

    def rows_changed(self) -> None:
        """Lay the text out again if the width has changed; the first row stays the same."""
        old = self.virtual_size
        if self.is_mounted:
            if self._layout.width != self._width:
                self._lay_out()
            else:
                self._update_rows()
        super().rows_changed()
        if self.virtual_size != old and self.styles.auto_dimensions:
            self.refresh(layout=True)

    @property
    def _text_width(self) -> int:
        return max(4, self.lines_area.width - 1)

    @property
    def _width(self) -> int:
        return self._text_width if self.wrapped else UNWRAPPED

    @property
    def _height(self) -> int:
        return max(1, self.lines_area.height)

    def _lay_out(self) -> None:
        self._layout = self._displayed.lay_out(self._width)
        self._cache.clear()
        self._update_rows()
        if self._displayed.is_counting(self._layout):
            self.call_later(self._count_in_idle_time, self._layout)

    def _count_in_idle_time(self, layout: TextLayout) -> None:
        """Count some more rows of a text, so that their number becomes exact."""
        if layout is self._layout and self.is_mounted and self._displayed.is_counting(layout):
            self._displayed.count_more(layout)
            self._cache.clear()
            self._update_rows()
            self.call_later(self._count_in_idle_time, layout)

    def _update_rows(self) -> None:
        """Lay out the visible rows, and update the number of the first one, without drawing."""
        layout = self._layout
        if self._displayed.format_rows(layout, self._top, 2 * self._height):
            self._cache.clear()
        bottom = layout.step(self._top, self._height - 1)
        # The last row does not move above the lower edge.
        self._top = layout.step(bottom, 1 - self._height)
        number = layout.row_of(self._top)
        # Setting these in the usual way would draw and lay out the whole screen.
        size = Size(self.lines_area.width, self.row_count)
        if size != self.virtual_size:
            set_virtual_size_undrawn(self, size)
        if number != self.scroll_y:
            self._cache.clear()
            self.set_reactive(Widget.scroll_y, float(number))
            if self.show_vertical_scrollbar:
                self.vertical_scrollbar.position = number
        self.set_reactive(Widget.scroll_target_y, float(number))
        if self._tells_place:
            self._set_titles(titles_of(self)[0], self._subtitle())

    def _scroll_to_offset(self, offset: int) -> None:
        """Make the row of an offset the first one, and draw the lines that change."""
        old_lines = self._lines_on_screen()
        self._set_top(offset)
        self._redraw_changed_lines(old_lines)

    def _set_top(self, offset: int) -> None:
        self._top = self._layout.step(offset, 0)
        self._cache.clear()
        self._update_rows()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Scroll with the wheel and the scroll bar."""
        row = round(new_value)
        old_row = round(old_value)
        if row != old_row and self.is_mounted:
            near = abs(row - old_row) <= self._height
            layout = self._layout
            self._set_top(layout.step(self._top, row - old_row) if near else layout.row(row).start)
        super().watch_scroll_y(old_value, self.scroll_y)

    def move_by(self, delta: int) -> None:
        """Scroll by ``delta`` rows; a text has no row cursor."""
        self._scroll_to_offset(self._layout.step(self._top, delta))

    def move_to(self, row: int, *, centre: bool = False) -> None:
        """Scroll to a row; the last row or a later one means the end of the text."""
        at_end = row >= self.row_count - 1
        self._scroll_to_offset(
            len(self._displayed.displayed) if at_end else self._layout.row(max(0, row)).start
        )

    def move_page(self, delta: int) -> None:
        """Scroll by ``delta`` screens; the first new screen repeats one row of the last."""
        self.move_by(delta * max(1, self._height - 1))

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw the lines at the present width; the first frame comes before any resize event."""
        if self._layout.width != self._width:
            rows = self.row_count
            self._lay_out()
            if rows != self.row_count and self.styles.auto_dimensions:
                self.call_later(self.refresh, layout=True)
        return super().render_lines(crop)

    def render_row(self, row: int, width: int) -> Strip:
        """Draw one row with its highlights."""
        base = self.rich_style
        if not self.text:
            style = base + self._part("empty")
            return Strip([Segment(f" {self.empty}", style)]).adjust_cell_length(width, base)
        strip = Strip(list(self._segments(self._layout.row(row), base)))
        if self._shift:
            strip = strip.crop(self._shift)
        strip = strip.adjust_cell_length(width - 1, base)
        return Strip([Segment(" ", base), *strip], width)

    def _segments(self, row: TextRow, base: Style) -> Iterator[Segment]:
        """Yield the pieces of a row, each in one style."""
        if row.indent:
            yield Segment(" " * row.indent, base)
        parts = [*self._parts_of(row), *self._highlights_of(row)]
        edges = sorted({0, len(row.shown), *(edge for part in parts for edge in part[:2])})
        numbers = {edge: number for number, edge in enumerate(edges)}
        styles = [base] * len(edges)
        for start, end, name in parts:
            added = self._part(name)
            for number in range(numbers[start], numbers[end]):
                styles[number] += added
        for style, (start, end) in zip(styles, pairwise(edges), strict=False):
            yield Segment(row.shown[start:end], style)

    def _parts_of(self, row: TextRow) -> Iterator[tuple[int, int, str]]:
        highlighter = self._displayed.highlighter
        for part in () if highlighter is None else highlighter.parts(row.start, row.end):
            span_range = row.slice_of(part.start, part.end)
            if span_range is not None:
                yield *span_range, part.name

    def _highlights_of(self, row: TextRow) -> Iterator[tuple[int, int, str]]:
        for highlight in self.highlights:
            span_range = row.slice_of(
                *self._displayed.range_to_shown(highlight.start, highlight.end)
            )
            if span_range is not None:
                yield *span_range, highlight.name

    def offset_at(self, x: int, y: int) -> int | None:
        """Return the code point at a cell of the widget, or None below the text.

        Args:
            x: The column.
            y: The line.
        """
        offset = self._display_offset_at(x, y)
        return None if offset is None else self._displayed.to_source(offset)

    def _display_offset_at(self, x: int, y: int) -> int | None:
        """Return the offset in the display at a cell of the widget, or None below the text."""
        row = y + round(self.scroll_y)
        if not self.text or not 0 <= row < self.row_count:
            return None
        text_row = self._layout.row(row)
        return text_row.offset_at(
            column_at_cell(text_row.shown, x - 1 + self._shift - text_row.indent)
        )

    @property
    def first_offset_on_screen(self) -> int:
        """The first visible code point."""
        return self._displayed.to_source(self._top)

    def word_at(self, offset: int) -> tuple[int, int] | None:
        """Return start and end of the displayed word at an offset, or of the next one."""
        return self._displayed.search_near(offset, word_at)

    def next_word(self, end: int) -> tuple[int, int] | None:
        """Return start and end of the displayed word after an offset."""
        return self._displayed.search_near(end, next_word)

    def previous_word(self, start: int) -> tuple[int, int] | None:
        """Return start and end of the displayed word before an offset."""
        return self._displayed.search_near(start, previous_word)

    def vertical_neighbour(self, offset: int, rows: int) -> int:
        """Return the code point some rows below, near the same column.

        Args:
            offset: The code point to start from.
            rows: The number of rows; negative for rows above.
        """
        offset = self._displayed.to_shown(offset)
        row = self._layout.row_at(offset)
        target = self._layout.row_at(self._layout.step(offset, rows))
        column = max(0, row.indent + offset - row.start - target.indent)
        return self._displayed.to_source(
            min(target.start + column, max(target.start, target.end - 1))
        )

    def on_click(self, event: events.Click) -> None:
        """Ignore clicks: there is no row to select."""
        event.stop()
        event.prevent_default()  # or the handler of the base class scrolls

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin to mark a quote, or to drag the border above the text."""
        offset = event.get_content_offset(self)
        self._drag_from = None if offset is None else self._display_offset_at(offset.x, offset.y)
        self._drags_edge = offset is None and event.y == 0 and self.gutter.top > 0
        if self._drag_from is not None or self._drags_edge:
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag the border above the text."""
        if self._drags_edge:
            self.post_message(self.EdgeDragged(self, event.screen_y))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Report the quote that was marked with the mouse."""
        self.release_mouse()
        self._drags_edge = False
        start = self._drag_from
        self._drag_from = None
        offset = event.get_content_offset(self)
        if start is None or offset is None:
            return
        end = self._display_offset_at(offset.x, offset.y)
        if end is not None and end != start:
            quote = self._displayed.range_to_source(min(start, end), max(start, end) + 1)
            self.post_message(self.Quoted(self, *quote))


def column_at_cell(line: str, cell: int) -> int:
    """Return the code point of a displayed line that covers a cell.

    Args:
        shown: The line.
        cell: The cell.
    """
    column = 0
    used = 0
    for column, char in enumerate(line):
        used += cell_len(char)
        if used > cell:
            return column
    return column
