"""The whole text of one span. Only the part on screen is laid out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from mast_tui.safe_text import COLOUR_SEQUENCE, one_line
from mast_tui.traces.model import PREVIEW_CHARS, Span, SpanKind, Trace
from mast_tui.ui.context import context_of
from mast_tui.ui.text.highlighting import PART_NAMES, Highlighter, TextPart
from mast_tui.ui.text.json_view import PrettyText, pretty_json
from mast_tui.ui.text.layout import (
    UNWRAPPED_WIDTH,
    Readable,
    TextLayout,
    TextRow,
    next_word,
    previous_word,
    word_at,
)
from mast_tui.ui.textual_internals import set_virtual_size_undrawn
from mast_tui.ui.trace_view.timeline import SHELL_TOOLS
from mast_tui.ui.widgets.virtual_lines import VirtualLines

PYTHON_TOOLS: Final = frozenset(
    {"python", "ipython", "execute_python", "python_executor", "jupyter"}
)
"""Tools that run Python code."""

_NO_TEXT: Final = "This step has no text."


class SpanText:
    """The text of one span at a time.

    A text that cannot be read is empty, so that nothing in it can be quoted or copied. If the file
    of a trace has changed, the user is warned once.
    """

    def __init__(self, screen: Screen[None]) -> None:
        """Begin without a text."""
        self.unreadable: str | None = None
        """The reason why the last text cannot be read, or None."""
        self._screen = screen
        self._read_span: tuple[Trace | None, int] = (None, -1)
        """The trace and the index of the span that was read last."""
        self._text = ""
        """The text of that span."""
        self._warned_trace: Trace | None = None
        """The last trace with a warning on screen."""

    @property
    def empty_text(self) -> str:
        """The message to show if the text is empty."""
        return _NO_TEXT if self.unreadable is None else f"[cannot be read: {self.unreadable}]"

    def discard_text(self) -> None:
        """Read the text again the next time, even if it is the same span."""
        self._read_span = (None, -1)

    def text_of(self, trace: Trace, index: int) -> str:
        """Return the text of a span, empty if it cannot be read.

        Args:
            trace: The trace.
            index: The index of the span.
        """
        read_trace, read_index = self._read_span
        if read_trace is not trace or read_index != index:
            self._text = self._read_text(trace, index)
            self._read_span = (trace, index)
        return self._text

    def _read_text(self, trace: Trace, index: int) -> str:
        """Read the text of a span and set ``unreadable``. Return an empty text if it cannot be
        read.

        Warn if the file has changed.
        """
        try:
            text = trace.text(index)
            self.unreadable = None
        except OSError as error:
            text = ""
            self.unreadable = error.strerror or str(error)
        reason = self.unreadable or trace.change_reason()
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


def preview_start(span: Span, text: str) -> int:
    """Return the offset in a text at which its preview begins; 0 if the preview is not in it.

    Some texts begin with a long prompt, and their preview is the answer after it.

    Args:
        span: The span.
        text: The text of the span.
    """
    preview_words = span.preview.split()
    is_cut = len(span.preview) >= PREVIEW_CHARS
    # The preview of a call summarises its arguments, so it is not part of the text.
    if span.preview_is_complete or not preview_words or span.kind is SpanKind.TOOL_CALL:
        return 0
    # In a preview, white space is reduced to single blanks.
    beginning = " ".join(text[: 4 * PREVIEW_CHARS].split())
    if is_cut and beginning.startswith(span.preview):
        return 0
    pattern = r"\s+".join(map(re.escape, preview_words))
    if not is_cut:
        # An uncut preview is the end of the text; the same words may occur earlier.
        pattern += r"\s*\Z"
    match = re.search(pattern, text)
    return 0 if match is None else match.start()


COUNTED_CHARS: Final = 1 << 20
"""The length up to which all rows of a text are counted in idle time.

In longer texts only visited parts are counted, and the size of the scroll bar is an estimate.
"""

COUNTED_JSON_CHARS: Final = 1 << 16
"""The length up to which all rows of JSON are counted. It is shorter, because JSON must be
formatted first.
"""

NEAR_CHARS: Final = 1 << 15
"""The distance in code points over which words are searched and JSON is formatted on demand."""


class DisplayedText:
    """A text as it is displayed, with conversions between offsets in the text and in the display.

    Offsets are code points. JSON is formatted as far as it was visited. The rest is displayed
    unchanged.
    """

    def __init__(self, text: str, text_format: str | None) -> None:
        """Format the beginning of a text.

        Args:
            text: The text.
            text_format: The format, see ``text_format``; None to show the text unchanged.
        """
        self.text = text
        self.rendered = text_format is not None
        self.pretty = None if text_format is None else pretty_json(text)
        self.highlighter: Highlighter | None = None
        if text_format is not None:
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
        """Return the range of the text that a range of the display shows.

        Args:
            start: The first code point of the display.
            end: The end (exclusive).
        """
        return (start, end) if self.pretty is None else self.pretty.range_to_source(start, end)

    def search_near(
        self, offset: int, search: Callable[[str, int], tuple[int, int] | None]
    ) -> tuple[int, int] | None:
        """Search the display around an offset.

        Args:
            offset: An offset in the text, not in the display.
            search: Searches a string from a position, and returns start and end of the match or
                None.

        Returns:
            The match as a range of the text, not of the display; None without a match.
        """
        position = self.to_shown(offset)
        context_start = max(0, position - NEAR_CHARS)
        context = self.displayed[context_start : position + NEAR_CHARS]
        if self.rendered:
            # Blanks of the same length keep the offsets unchanged.
            context = COLOUR_SEQUENCE.sub(lambda sequence: " " * len(sequence[0]), context)
        match = search(context, position - context_start)
        if match is None:
            return None
        match_start, match_end = match
        return self.range_to_source(context_start + match_start, context_start + match_end)

    def format_rows(self, layout: TextLayout, top: int, row_count: int) -> bool:
        """Format JSON until a number of rows below an offset is formatted.

        Args:
            layout: The layout of the display.
            top: The offset in the display.
            row_count: The number of rows.

        Returns:
            True if anything was formatted.
        """
        pretty = self.pretty
        was_formatted = False
        while pretty is not None and not pretty.complete and top < pretty.shown_end:
            start_of_next_row = layout.step(top, row_count)
            if start_of_next_row < pretty.shown_end:
                break
            self._format_more(pretty, layout)
            was_formatted = True
        return was_formatted

    def format_until(self, layout: TextLayout, end: int) -> bool:
        """Format JSON up to an offset, unless it is more than ``NEAR_CHARS`` away.

        Args:
            layout: The layout of the display.
            end: The offset in the text.

        Returns:
            True if anything was formatted.
        """
        pretty = self.pretty
        was_formatted = False
        if pretty is not None and end - pretty.source_end <= NEAR_CHARS:
            while not pretty.complete and pretty.source_end <= end:
                self._format_more(pretty, layout)
                was_formatted = True
        return was_formatted

    def is_counting(self, layout: TextLayout) -> bool:
        """Check if rows must still be counted in idle time."""
        if self.pretty is not None and not self.pretty.complete:
            return len(self.text) <= COUNTED_JSON_CHARS
        return not layout.complete and len(self.text) <= COUNTED_CHARS

    def count_more(self, layout: TextLayout) -> None:
        """Count some more rows."""
        if self.pretty is not None and not self.pretty.complete:
            self._format_more(self.pretty, layout)
        layout.work_out_next()

    def _format_more(self, pretty: PrettyText, layout: TextLayout) -> None:
        changed_from = pretty.shown_end
        pretty.extend()
        layout.changed_from(changed_from)
        if self.highlighter is not None:
            self.highlighter.changed()


SIDE_CELLS: Final = 8
"""The cells by which a key scrolls sideways."""


class SpanView(VirtualLines):
    """The text of a span with highlights; later highlights are drawn over earlier ones.

    JSON is formatted in lines. Markdown, code and terminal colours are displayed with styles.
    ``toggle_raw`` displays the text unchanged. Public methods take and return offsets in the text,
    not in the display.
    """

    css_prefix = "span-view"
    css_parts: ClassVar[tuple[str, ...]] = (
        *("evidence", "own", "match", "selection", "empty"),
        *PART_NAMES,
    )

    @dataclass
    class EdgeDragged(VirtualLines.OfLines):
        """The report that the border above the text was dragged to line ``y`` of the screen."""

        y: int

    @dataclass
    class Quoted(VirtualLines.OfLines):
        """The report that a part of the text was marked with the mouse."""

        start: int
        end: int

    def __init__(
        self, *, id: str | None = None, classes: str | None = None, shows_visible_rows: bool = False
    ) -> None:
        """Show nothing yet.

        Args:
            id: The id of the widget.
            classes: The classes of the widget.
            shows_visible_rows: True to show the numbers of the visible rows in the lower border.
        """
        super().__init__(id=id, classes=classes)
        self._shows_visible_rows = shows_visible_rows
        self._source_title: Content | None = None
        """The source of the text, for the lower border."""
        self.raw = False
        """True if texts are displayed as they are, without their format."""
        self._format: str | None = None
        self._displayed = DisplayedText("", text_format=None)
        self.text = ""
        self.empty = ""
        """The message to show if the text is empty."""
        self.highlights: Sequence[TextPart] = ()
        self.wrapped = True
        """True if long lines are wrapped."""
        self._layout = TextLayout("", width=20)
        self._top = 0
        """The offset in the display of the first visible row."""
        self._hidden_columns = 0
        """The number of cells that are scrolled out at the left."""
        self._drag_start: int | None = None
        """The offset in the display where the mouse began to mark a quote."""
        self._is_dragging_edge = False
        """True while the mouse drags the border above the text."""

    @property
    def row_count(self) -> int:
        """The number of rows; an estimate until the whole text is laid out."""
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
        """Show another text.

        Args:
            text: The text.
            highlights: The parts to highlight; the first one is made visible.
            empty: The message to show if the text is empty.
            text_format: The format, see the function ``text_format``; None to show the text
                unchanged.
            opens_at: The offset in the text to show first if there are no highlights.
        """
        with self._redraw_changed_lines():
            self.text = text
            self.empty = empty
            self.highlights = highlights
            self._top = 0
            self._hidden_columns = 0
            self._format = text_format
            self._displayed = DisplayedText(text, None if self.raw else text_format)
            self._lay_out()
            if highlights:
                self.reveal(highlights[0].start, highlights[0].end)
            elif opens_at:
                self._set_top(self._displayed.to_shown(opens_at))

    def show_highlights(self, highlights: Sequence[TextPart]) -> None:
        """Change the highlights without scrolling."""
        if list(highlights) != list(self.highlights):
            with self._redraw_changed_lines():
                self.highlights = highlights
                self._cache.clear()

    def show_titles(self, title: Text | None, subtitle: Text | None = None) -> None:
        """Show titles in the border.

        Args:
            title: The title above the text.
            subtitle: The source of the text, below it.
        """
        self._source_title = None if subtitle is None else Content.from_rich_text(subtitle)
        self.border_title = title
        self.border_subtitle = self._lower_title()

    def _lower_title(self) -> Content | None:
        """Return the title of the lower border, or None.

        It consists of the range of visible rows, if some are out of view, and the source of the
        text.
        """
        if not self._shows_visible_rows or not self.text:
            return self._source_title
        height = self.lines_area.height
        row_count = self.row_count
        if row_count <= height or height <= 0:
            return self._source_title
        pretty = self._displayed.pretty
        count_text = f"{row_count:,}"
        if self._displayed.is_counting(self._layout):
            count_text = "…"
        elif not self._layout.complete or (pretty is not None and not pretty.complete):
            count_text = f"about {row_count:,}"
        first = round(self.scroll_y) + 1
        last = min(row_count, first + height - 1)
        position = f"lines {first:,}–{last:,} of {count_text}"
        if self._source_title is None:
            return Content(position)
        return Content(f"{position} · ") + self._source_title

    @contextmanager
    def _redraw_changed_lines(self) -> Iterator[None]:
        """Draw the lines that look different at the end of the context."""
        previous_lines = [self.render_line(y) for y in range(self.lines_area.height)]
        yield
        lines = [self.render_line(y) for y in range(self.lines_area.height)]
        if len(lines) != len(previous_lines):
            self.refresh()
            return
        width = self.lines_area.width
        for y, (previous_line, line) in enumerate(zip(previous_lines, lines, strict=True)):
            if previous_line != line:
                self.refresh(Region(0, y, width, 1))

    def toggle_raw(self) -> None:
        """Switch between the formatted and the unchanged text; the top row stays the same."""
        first_offset = self.first_offset_on_screen
        self.raw = not self.raw
        self._displayed = DisplayedText(self.text, None if self.raw else self._format)
        self._top = 0
        self._hidden_columns = 0
        self._lay_out()
        self._displayed.format_until(self._layout, first_offset)
        self._top = self._displayed.to_shown(first_offset) if first_offset else 0
        self._cache.clear()
        self._update_rows()
        self.refresh()

    def reveal(self, start: int, end: int) -> None:
        """Scroll so that a part of the text is visible.

        Args:
            start: The first code point of the part.
            end: The end of the part (exclusive).
        """
        layout = self._layout
        if self._displayed.format_until(layout, end):
            self._cache.clear()  # drawn rows may differ now that more of the JSON is formatted
        start, end = self._displayed.range_to_shown(start, end)
        last_offset = max(start, end - 1)
        # Laying out these rows may change the number of the first visible row.
        layout.row_of(start)
        layout.row_of(last_offset)
        self._update_rows()
        first_row = layout.row_of(start)
        last_row = layout.row_of(last_offset)
        height = self._visible_row_count
        top_row = round(self.scroll_y)
        if first_row < top_row or last_row >= top_row + height:
            # A quarter of the screen is left for the rows before it.
            self._scroll_to_offset(layout.step(start, -(height // 4)))
        if not self.wrapped:
            self._reveal_sideways(start, end)

    def _reveal_sideways(self, start: int, end: int) -> None:
        """Scroll sideways so that a displayed range is visible in its first row."""
        row = self._layout.row_at(start)
        range_in_row = row.slice_of(start, min(end, row.end))
        if range_in_row is None:
            return
        range_start, range_end = range_in_row
        left = row.indent + cell_len(row.shown[:range_start])
        right = row.indent + cell_len(row.shown[:range_end])
        if left < self._hidden_columns or right > self._hidden_columns + self._text_width:
            # A quarter of the row is left for the text before it.
            self._scroll_sideways(left - self._text_width // 4)

    def toggle_wrap(self) -> None:
        """Switch between wrapped lines and lines that extend beyond the right side."""
        self.wrapped = not self.wrapped
        self._hidden_columns = 0
        self.rows_changed()

    def move_sideways(self, step: int) -> bool:
        """Scroll right, or left for a negative step. Return False if lines are wrapped."""
        if self.wrapped:
            return False
        line_widths = [cell_len(self._layout.row(row).shown) for row in self.rows_on_screen()]
        # Longer lines may be above the screen. So a key to the right never scrolls to the left.
        most_columns = max(max(line_widths) - self._text_width, self._hidden_columns)
        self._scroll_sideways(min(self._hidden_columns + step * SIDE_CELLS, most_columns))
        return True

    def _scroll_sideways(self, hidden_columns: int) -> None:
        hidden_columns = max(0, hidden_columns)
        if hidden_columns != self._hidden_columns:
            with self._redraw_changed_lines():
                self._hidden_columns = hidden_columns
                self._cache.clear()

    def rows_changed(self) -> None:
        """Adapt to a new size.

        The text is laid out again only for a new width. The text in the first row stays the same.
        """
        previous_size = self.virtual_size
        if self.is_mounted:
            if self._layout.width != self._layout_width:
                self._lay_out()
            else:
                self._update_rows()
        super().rows_changed()
        if self.virtual_size != previous_size and self.styles.auto_dimensions:
            self.refresh(layout=True)

    @property
    def _text_width(self) -> int:
        """The cells of a line on screen, without the blank before it."""
        return max(4, self.lines_area.width - 1)

    @property
    def _layout_width(self) -> int:
        return self._text_width if self.wrapped else UNWRAPPED_WIDTH

    @property
    def _visible_row_count(self) -> int:
        return max(1, self.lines_area.height)

    def _lay_out(self) -> None:
        """Lay out the text anew, and begin to count its rows in idle time."""
        self._layout = self._displayed.lay_out(self._layout_width)
        self._cache.clear()
        self._update_rows()
        if self._displayed.is_counting(self._layout):
            self.call_later(self._count_in_idle_time, self._layout)

    def _count_in_idle_time(self, layout: TextLayout) -> None:
        """Count some more rows of a text until their number is exact."""
        if layout is self._layout and self.is_mounted and self._displayed.is_counting(layout):
            self._displayed.count_more(layout)
            self._cache.clear()
            self._update_rows()
            self.call_later(self._count_in_idle_time, layout)

    def _update_rows(self) -> None:
        """Update the layout of the visible rows, the scroll position and its title.

        Nothing is drawn, because Textual's usual setters would draw the whole screen.
        """
        layout = self._layout
        height = self._visible_row_count
        visible_and_next_page = 2 * height
        if self._displayed.format_rows(layout, self._top, visible_and_next_page):
            self._cache.clear()
        # The last row of the text stays at the lower edge or below it.
        bottom = layout.step(self._top, height - 1)
        self._top = layout.step(bottom, 1 - height)
        top_row = layout.row_of(self._top)
        size = Size(self.lines_area.width, self.row_count)
        if size != self.virtual_size:
            set_virtual_size_undrawn(self, size)
        if top_row != self.scroll_y:
            self._cache.clear()
            self.set_reactive(Widget.scroll_y, float(top_row))
            if self.show_vertical_scrollbar:
                self.vertical_scrollbar.position = top_row
        self.set_reactive(Widget.scroll_target_y, float(top_row))
        if self._shows_visible_rows:
            self.border_subtitle = self._lower_title()

    def _scroll_to_offset(self, offset: int) -> None:
        """Make the row of an offset the first visible row, and draw the lines that change."""
        with self._redraw_changed_lines():
            self._set_top(offset)

    def _set_top(self, offset: int) -> None:
        """Make the row of an offset in the display the first visible row, without drawing."""
        self._top = self._layout.step(offset, 0)
        self._cache.clear()
        self._update_rows()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Scroll with the wheel and the scroll bar."""
        row = round(new_value)
        row_delta = row - round(old_value)
        if row_delta and self.is_mounted:
            # Over short distances steps are exact, even if row numbers are estimates.
            is_near = abs(row_delta) <= self._visible_row_count
            layout = self._layout
            self._set_top(layout.step(self._top, row_delta) if is_near else layout.row(row).start)
        super().watch_scroll_y(old_value, self.scroll_y)

    def move_by(self, delta: int) -> None:
        """Scroll by ``delta`` rows."""
        self._scroll_to_offset(self._layout.step(self._top, delta))

    def move_to(self, row: int, *, in_upper_third: bool = False) -> None:
        """Scroll a row to the top, or scroll to the end of the text for its last row.

        ``in_upper_third`` has no effect.
        """
        is_last = row >= self.row_count - 1
        self._scroll_to_offset(
            len(self._displayed.displayed) if is_last else self._layout.row(max(0, row)).start
        )

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw the lines at the present width.

        The first frame is drawn before any resize event.
        """
        if self._layout.width != self._layout_width:
            previous_row_count = self.row_count
            self._lay_out()
            if previous_row_count != self.row_count and self.styles.auto_dimensions:
                self.call_later(self.refresh, layout=True)
        return super().render_lines(crop)

    def render_row(self, row: int, width: int) -> Strip:
        """Draw one row with its highlights, or the message for an empty text."""
        base_style = self.rich_style
        if not self.text:
            message = Segment(f" {self.empty}", base_style + self._part("empty"))
            return Strip([message]).adjust_cell_length(width, base_style)
        strip = Strip(list(self._row_segments(self._layout.row(row), base_style)))
        if self._hidden_columns:
            strip = strip.crop(self._hidden_columns)
        strip = strip.adjust_cell_length(width - 1, base_style)
        return Strip([Segment(" ", base_style), *strip], width)

    def _row_segments(self, row: TextRow, base_style: Style) -> Iterator[Segment]:
        """Yield the pieces of a row, each in one style.

        The styles of overlapping parts are added.
        """
        if row.indent:
            yield Segment(" " * row.indent, base_style)
        parts = list(self._parts_of(row))
        # Piece 0 lies between the edges 0 and 1, piece 1 between the edges 1 and 2, and so on.
        edge_set = {0, len(row.shown)}
        for part in parts:
            edge_set.update((part.start, part.end))
        edges = sorted(edge_set)
        piece_at_edge = {edge: piece for piece, edge in enumerate(edges)}
        piece_styles = [base_style] * (len(edges) - 1)
        for part in parts:
            part_style = self._part(part.name)
            for piece in range(piece_at_edge[part.start], piece_at_edge[part.end]):
                piece_styles[piece] += part_style
        for style, (start, end) in zip(piece_styles, pairwise(edges), strict=True):
            yield Segment(row.shown[start:end], style)

    def _parts_of(self, row: TextRow) -> Iterator[TextPart]:
        """Yield the parts of a row that have a style: those of the format, then the highlights."""
        displayed = self._displayed
        parts: list[TextPart] = []
        if displayed.highlighter is not None:
            parts += displayed.highlighter.parts(row.start, row.end)
        parts += [
            TextPart(*displayed.range_to_shown(highlight.start, highlight.end), highlight.name)
            for highlight in self.highlights
        ]
        for part in parts:
            columns = row.slice_of(part.start, part.end)
            if columns is not None:
                yield TextPart(*columns, part.name)

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
        cell = x - 1 + self._hidden_columns - text_row.indent  # each row begins with a space
        return text_row.offset_at(_column_at_cell(text_row.shown, cell))

    @property
    def first_offset_on_screen(self) -> int:
        """The first visible code point."""
        return self._displayed.to_source(self._top)

    def word_at(self, offset: int) -> tuple[int, int] | None:
        """Return the range of the displayed word at an offset or after it, or None."""
        return self._displayed.search_near(offset, word_at)

    def next_word(self, end: int) -> tuple[int, int] | None:
        """Return the range of the displayed word after an offset, or None if none is near."""
        return self._displayed.search_near(end, next_word)

    def previous_word(self, start: int) -> tuple[int, int] | None:
        """Return the range of the displayed word before an offset, or None if none is near."""
        return self._displayed.search_near(start, previous_word)

    def vertical_neighbour(self, offset: int, row_delta: int) -> int:
        """Return the code point in another row, near the same column.

        Args:
            offset: The code point to start from.
            row_delta: The number of rows to move down; negative to move up.
        """
        shown_offset = self._displayed.to_shown(offset)
        row = self._layout.row_at(shown_offset)
        target_row = self._layout.row_at(self._layout.step(shown_offset, row_delta))
        column = max(0, row.indent + shown_offset - row.start - target_row.indent)
        last_offset = max(target_row.start, target_row.end - 1)
        return self._displayed.to_source(min(target_row.start + column, last_offset))

    def on_click(self, event: events.Click) -> None:
        """Ignore clicks: there is no row to select."""
        event.stop()
        event.prevent_default()  # or the handler of the base class scrolls

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin to mark a quote, or to drag the border above the text."""
        cell = event.get_content_offset(self)
        self._drag_start = None if cell is None else self._display_offset_at(cell.x, cell.y)
        self._is_dragging_edge = cell is None and event.y == 0 and self.gutter.top > 0
        if self._drag_start is not None or self._is_dragging_edge:
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag the border above the text."""
        if self._is_dragging_edge:
            self.post_message(self.EdgeDragged(self, event.screen_y))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """End the dragging, and report the quote if several characters were marked."""
        self.release_mouse()
        self._is_dragging_edge = False
        start = self._drag_start
        self._drag_start = None
        cell = event.get_content_offset(self)
        if start is None or cell is None:
            return
        end = self._display_offset_at(cell.x, cell.y)
        if end is not None and end != start:
            quote_start, quote_end = self._displayed.range_to_source(
                min(start, end), max(start, end) + 1
            )
            self.post_message(self.Quoted(self, quote_start, quote_end))


def _column_at_cell(line: str, cell: int) -> int:
    """Return the index of the character of a displayed line that covers a cell.

    Beyond the end of the line, return the index of the last character.
    """
    column = 0
    end_cell = 0
    for column, char in enumerate(line):
        end_cell += cell_len(char)
        if end_cell > cell:
            return column
    return column
