"""The whole text of one span, wrapped, of which only what is on screen is ever made."""

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
from mast_tui.ui.trace_view.timeline import SHELLS
from mast_tui.ui.widgets.virtual_lines import VirtualLines

PYTHONS: Final = frozenset({"python", "ipython", "execute_python", "python_executor", "jupyter"})
"""Tools that run a program in Python, and whose name says so."""

_NO_TEXT: Final = "This step has no text."


class SpanText:
    """Reads the text of one span at a time for ``screen``; that a trace has changed is said once.

    A text that cannot be read is empty, so that there is nothing to quote or to copy.
    """

    def __init__(self, screen: Screen[None]) -> None:
        self.unreadable: str | None = None
        """Why the text that was read last cannot be read; None where it can."""
        self._screen = screen
        self._last: tuple[Trace | None, int, str] = (None, -1, "")
        self._told_of: Trace | None = None

    @property
    def words_on_nothing(self) -> str:
        """What is shown in place of a text that is empty."""
        return _NO_TEXT if self.unreadable is None else f"[cannot be read: {self.unreadable}]"

    def forget(self) -> None:
        """Read the next text in any case."""
        self._last = (None, -1, "")

    def of(self, trace: Trace, index: int) -> str:
        """The text of the span at ``index``; the one read last is kept."""
        if self._last[0] is not trace or self._last[1] != index:
            self._last = (trace, index, self._read(trace, index))
        return self._last[2]

    def _read(self, trace: Trace, index: int) -> str:
        try:
            text, self.unreadable = trace.text(index), None
        except OSError as error:
            text, self.unreadable = "", error.strerror or str(error)
        reason = self.unreadable or trace.changed()
        if reason is not None:
            self.tell(trace, reason)
        return text

    def tell(self, trace: Trace, reason: str) -> None:
        """Say once of a trace that its file is not what was read."""
        if self._told_of is not trace:
            self._told_of = trace
            key = context_of(self._screen).key_of("annotate.follow")
            words = f"{trace.path.name} is not what was opened: {reason}. {key} reads it anew"
            self._screen.app.notify(one_line(words), severity="warning", timeout=12, markup=False)


def written_as(span: Span) -> str:
    """Return how the text of a span is written, as ``text/highlighting.py`` calls it."""
    if span.kind is SpanKind.TOOL_CALL:
        name = (span.name or "").lower()
        return "bash" if name in SHELLS else "python" if name in PYTHONS else "output"
    return "output" if span.kind is SpanKind.TOOL_RESULT else "markdown"


def opens_at(span: Span, text: str) -> int:
    """Return where a text is to be opened: at what the row of its span shows.

    Some begin with a prompt of pages, and the row shows the answer behind it.

    Args:
        span: Whose row it is.
        text: Its text.
    """
    words = span.preview.split()
    cut = len(span.preview) >= PREVIEW_CHARS
    if span.whole or not words or span.kind is SpanKind.TOOL_CALL:
        return 0
    if cut and " ".join(text[: 4 * PREVIEW_CHARS].split()).startswith(span.preview):
        return 0
    # A preview that is not cut goes on to the end of the text; the same words may stand before.
    end = "" if cut else r"\s*\Z"
    found = re.search(r"\s+".join(map(re.escape, words)) + end, text)
    return 0 if found is None else found.start()


COUNTED_CHARS: Final = 1 << 20
"""The rows of texts up to this long are counted while nothing else is to be done; those of longer
ones only where one has been, so that the scroll bar's size is an estimate."""

COUNTED_JSON_CHARS: Final = 1 << 16
"""The same for JSON, which has to be set out for that."""

NEAR_CHARS: Final = 1 << 15
"""JSON is set out for what one goes to within so many code points behind what is set out; and
words are looked for as far."""


class ShownText:
    """Leads from the offsets of a text to those of what is shown of it, and back.

    Offsets are code points. JSON is set out as far as one has come; a layout of it is told what
    has changed by that. Whoever goes far beyond sees the text as it is.
    """

    def __init__(self, text: str, written: str | None) -> None:
        """Begin with the beginning of a text.

        Args:
            text: What is shown.
            written: How it is written (``highlighting``); None to show it as it is.
        """
        self.text = text
        self.rendered = written is not None
        self.pretty = None if written is None else pretty_json(text)
        self.highlighter: Highlighter | None = None
        if written:
            self.highlighter = Highlighter(self.readable, written, self.pretty)

    def lay_out(self, width: int) -> TextLayout:
        """Return what is shown, wrapped to a width in cells."""
        return TextLayout(self.readable, width, rendered=self.rendered)

    @property
    def readable(self) -> Readable:
        """What is shown."""
        return self.text if self.pretty is None else self.pretty

    def to_shown(self, offset: int) -> int:
        """Where the text's code point at ``offset`` is shown."""
        return offset if self.pretty is None else self.pretty.to_shown(offset)

    def to_source(self, offset: int) -> int:
        """The code point of the text that is shown at ``offset``."""
        return offset if self.pretty is None else self.pretty.to_source(offset)

    def range_to_shown(self, start: int, end: int) -> tuple[int, int]:
        """What is shown of the text's ``start`` to ``end`` (exclusive)."""
        return (start, end) if self.pretty is None else self.pretty.range_to_shown(start, end)

    def range_to_source(self, start: int, end: int) -> tuple[int, int]:
        """Return the code points that are shown from ``start`` to ``end`` (exclusive), whole."""
        return (start, end) if self.pretty is None else self.pretty.range_to_source(start, end)

    def found_near(
        self, offset: int, look: Callable[[str, int], tuple[int, int] | None]
    ) -> tuple[int, int] | None:
        """Return what ``look`` finds in what is shown around a place, as code points of the text.

        Args:
            offset: A code point of the text.
            look: Takes some of what is shown and a place in it; gives start and end of what is
                found there.
        """
        at = self.to_shown(offset)
        begin = max(0, at - NEAR_CHARS)
        around = self.readable[begin : at + NEAR_CHARS]
        if self.rendered:
            around = COLOUR_SEQUENCE.sub(lambda found: " " * len(found[0]), around)
        found = look(around, at - begin)
        return None if found is None else self.range_to_source(begin + found[0], begin + found[1])

    def set_out_on(self, layout: TextLayout, top: int, rows: int) -> bool:
        """Set out more where fewer than ``rows`` rows below ``top`` are; whether that was so."""
        pretty, more = self.pretty, False
        while pretty is not None and not pretty.complete and top < pretty.set_out:
            if layout.step(top, rows) < pretty.set_out:
                break
            more = self._extend(pretty, layout)
        return more

    def set_out_until(self, layout: TextLayout, end: int) -> bool:
        """Set out what comes before this code point of the text, where that is not far; whether
        there was any."""
        pretty, more = self.pretty, False
        if pretty is not None and end - pretty.read <= NEAR_CHARS:
            while not pretty.complete and pretty.read <= end:
                more = self._extend(pretty, layout)
        return more

    def is_counted(self, layout: TextLayout) -> bool:
        """Whether rows are still to be worked out while nothing else is to be done."""
        if self.pretty is not None and not self.pretty.complete:
            return len(self.text) <= COUNTED_JSON_CHARS
        return not layout.complete and len(self.text) <= COUNTED_CHARS

    def count_on(self, layout: TextLayout) -> None:
        """Work out some more, so that the number of rows becomes exact."""
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
"""How far a key scrolls to the side."""

TITLE_FRAME: Final = 5
"""Cells of a border's line before and behind its title that go with it."""


class SpanView(VirtualLines):
    """The text of a span. Highlights are drawn in order, later ones over earlier ones.

    A text of which it is said how it is written is shown as it is meant, until ``toggle_raw``:
    JSON set out in lines, Markdown, code and a terminal's colours drawn as such. All offsets that
    are taken and given are those of the text itself, however it is shown.
    """

    css_prefix = "span-view"
    css_parts: ClassVar[tuple[str, ...]] = (
        *("evidence", "own", "match", "selection", "empty"),
        *PART_NAMES,
    )

    @dataclass
    class EdgeDragged(Message):
        """The border above the text was drawn to another line of the screen."""

        view: SpanView
        y: int

        @property
        def control(self) -> SpanView:
            return self.view

    @dataclass
    class Quoted(Message):
        """A part of the text was marked with the mouse."""

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
            tells_place: Whether the lower border says which rows of how many are on screen.
        """
        super().__init__(id=id, classes=classes)
        self._tells_place = tells_place
        self._origin: Content | None = None
        self.raw = False
        """Whether texts are shown as they are."""
        self._written: str | None = None
        self._shown = ShownText("", None)
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
        """How many rows there are; an estimate while not all of a long text was laid out."""
        return self._layout.rows

    def show_text(
        self,
        text: str,
        highlights: Sequence[TextPart] = (),
        *,
        empty: str = "",
        written: str | None = None,
        opens_at: int = 0,
    ) -> None:
        """Show another text from a place, its beginning if none is given, or with its first
        highlight.

        Only lines that look different then are sent to the terminal.

        Args:
            text: What to show.
            highlights: What in it stands out.
            empty: What to say where the text is empty.
            written: How it is written (``text/highlighting.py``); None to show it as it is.
            opens_at: The code point of the text that stands on the first row.
        """
        before = self._lines_on_screen()
        self.text = text
        self.empty = empty
        self.highlights = highlights
        self._top = self._shift = 0
        self._written = written
        self._shown = ShownText(text, None if self.raw else written)
        self._lay_out()
        if highlights:
            self.reveal(highlights[0].start, highlights[0].end)
        elif opens_at:
            self._place(self._shown.to_shown(opens_at))
        self._redraw_changed(before)

    def show_highlights(self, highlights: Sequence[TextPart]) -> None:
        """Change what is highlighted, without moving."""
        if list(highlights) == list(self.highlights):
            return
        before = self._lines_on_screen()
        self.highlights = highlights
        self._cache.clear()
        self._redraw_changed(before)

    def show_titles(self, title: Text | None, subtitle: Text | None = None) -> None:
        """Name what is shown in the border; of the box only the border's lines are drawn anew."""
        top = None if title is None else Content.from_rich_text(title)
        self._origin = None if subtitle is None else Content.from_rich_text(subtitle)
        self._set_titles(top, self._subtitle())

    def _set_titles(self, top: Content | None, bottom: Content | None) -> None:
        edge = self.gutter
        # Textual's own setter draws the whole box anew.
        old_top, old_bottom = titles_of(self)
        if top is not old_top and top != old_top:
            self._redraw_edge(-edge.top, self.styles.border_title_align, old_top, top)
        if bottom is not old_bottom and bottom != old_bottom:
            below = self.outer_size.height - edge.top - 1
            self._redraw_edge(below, self.styles.border_subtitle_align, old_bottom, bottom)
        show_titles_undrawn(self, top, bottom)

    def _subtitle(self) -> Content | None:
        """Where the text comes from, and which of its rows are on screen where not all are."""
        if not self._tells_place or not self.text:
            return self._origin
        height, rows = self.lines_area.height, self.row_count
        if rows <= height or height <= 0:
            return self._origin
        pretty = self._shown.pretty
        all_rows = f"{rows:,}"
        if self._shown.is_counted(self._layout):
            all_rows = "…"
        elif not self._layout.complete or (pretty is not None and not pretty.complete):
            all_rows = f"about {rows:,}"
        first = round(self.scroll_y) + 1
        words = f"lines {first:,}–{min(rows, first + height - 1):,} of {all_rows}"
        return Content(words) if self._origin is None else Content(f"{words} · ") + self._origin

    def _redraw_edge(self, y: int, aligned: str, old: Content | None, new: Content | None) -> None:
        """Draw a line of the border; on the left side as far as a title goes, or went."""
        longest = max(0 if text is None else text.cell_length for text in (old, new))
        width = self.outer_size.width
        if aligned == "left":
            width = min(width, longest + TITLE_FRAME)
        self.refresh(Region(-self.gutter.left, y, width, 1))

    def _lines_on_screen(self) -> list[Strip]:
        return [self.render_line(y) for y in range(self.lines_area.height)]

    def _redraw_changed(self, before: Sequence[Strip]) -> None:
        """Draw the lines that look different from ``before``."""
        now = self._lines_on_screen()
        if len(now) != len(before):
            self.refresh()
            return
        width = self.lines_area.width
        for y, (old, new) in enumerate(zip(before, now, strict=True)):
            if old != new:
                self.refresh(Region(0, y, width, 1))

    def toggle_raw(self) -> None:
        """Show texts as they are, or as they are meant; what is at the top stays there."""
        first = self.first_offset_on_screen
        self.raw = not self.raw
        self._shown = ShownText(self.text, None if self.raw else self._written)
        self._top = self._shift = 0
        self._lay_out()
        self._shown.set_out_until(self._layout, first)
        self._top = self._shown.to_shown(first) if first else 0
        self._cache.clear()
        self._keep_place()
        self.refresh()

    def reveal(self, start: int, end: int) -> None:
        """Scroll so that this part of the text is on screen."""
        layout = self._layout
        if self._shown.set_out_until(layout, end):
            self._cache.clear()
        start, end = self._shown.range_to_shown(start, end)
        ends = (start, max(start, end - 1))
        for offset in ends:
            layout.row_of(offset)
        self._keep_place()
        first, last = (layout.row_of(offset) for offset in ends)
        height, top = self._height, round(self.scroll_y)
        if not (top <= first and last < top + height):
            self._go(layout.step(start, -(height // 4)))
        if not self.wrapped:
            self._reveal_sideways(start, end)

    def _reveal_sideways(self, start: int, end: int) -> None:
        row = self._layout.row_at(start)
        part = row.slice_of(start, min(end, row.end))
        if part is not None:
            left, right = (row.indent + cell_len(row.shown[:place]) for place in part)
            if left < self._shift or right > self._shift + self._text_width:
                self._scroll_sideways(left - self._text_width // 4)

    def toggle_wrap(self) -> None:
        """Break long lines at the width of the view, or let them run on to the side."""
        self.wrapped = not self.wrapped
        self._shift = 0
        self.rows_changed()

    def move_sideways(self, step: int) -> bool:
        """Scroll to the right (negative: to the left) where lines run on; False elsewhere."""
        if self.wrapped:
            return False
        longest = max(cell_len(self._layout.row(row).shown) for row in self.rows_on_screen())
        most = max(0, longest - self._text_width)
        self._scroll_sideways(min(self._shift + step * SIDE_CELLS, max(most, self._shift)))
        return True

    def _scroll_sideways(self, shift: int) -> None:
        shift = max(0, shift)
        if shift != self._shift:
            before = self._lines_on_screen()
            self._shift = shift
            self._cache.clear()
            self._redraw_changed(before)

    def rows_changed(self) -> None:
        """Lay the text out anew where the width has changed; the first row stays the first."""
        old = self.virtual_size
        if self.is_mounted:
            if self._layout.width != self._width:
                self._lay_out()
            else:
                self._keep_place()
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
        self._layout = self._shown.lay_out(self._width)
        self._cache.clear()
        self._keep_place()
        if self._shown.is_counted(self._layout):
            self.call_later(self._count_on, self._layout)

    def _count_on(self, layout: TextLayout) -> None:
        """Work out some more of a text, so that the number of its rows becomes exact."""
        if layout is self._layout and self.is_mounted and self._shown.is_counted(layout):
            self._shown.count_on(layout)
            self._cache.clear()
            self._keep_place()
            self.call_later(self._count_on, layout)

    def _keep_place(self) -> None:
        """Work out what is on screen, and give the row at the top the number that it has now.

        Nothing is drawn: what is on screen stays the same.
        """
        layout = self._layout
        if self._shown.set_out_on(layout, self._top, 2 * self._height):
            self._cache.clear()
        bottom = layout.step(self._top, self._height - 1)
        # Near its end the text stays at the lower edge.
        self._top = layout.step(bottom, 1 - self._height)
        number = layout.row_of(self._top)
        # Setting these as usual would draw and lay out the screen anew.
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

    def _go(self, offset: int) -> None:
        """Put the row of this code point at the top, and draw what has changed."""
        before = self._lines_on_screen()
        self._place(offset)
        self._redraw_changed(before)

    def _place(self, offset: int) -> None:
        self._top = self._layout.step(offset, 0)
        self._cache.clear()
        self._keep_place()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow the wheel and the scroll bar."""
        row, was = round(new_value), round(old_value)
        if row != was and self.is_mounted:
            near = abs(row - was) <= self._height
            layout = self._layout
            self._place(layout.step(self._top, row - was) if near else layout.row(row).start)
        super().watch_scroll_y(old_value, self.scroll_y)

    def move_by(self, delta: int) -> None:
        """Scroll by ``delta`` rows; a text has no row cursor."""
        self._go(self._layout.step(self._top, delta))

    def move_to(self, row: int, *, centre: bool = False) -> None:
        """Scroll to ``row``; to the last one or beyond means the end of the text."""
        at_end = row >= self.row_count - 1
        self._go(len(self._shown.readable) if at_end else self._layout.row(max(0, row)).start)

    def move_page(self, delta: int) -> None:
        """Scroll by ``delta`` screens, keeping one row of what was there."""
        self.move_by(delta * max(1, self._height - 1))

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines for this width: the first frame is drawn before one hears of any size."""
        if self._layout.width != self._width:
            rows = self.row_count
            self._lay_out()
            if rows != self.row_count and self.styles.auto_dimensions:
                self.call_later(self.refresh, layout=True)
        return super().render_lines(crop)

    def render_row(self, row: int, width: int) -> Strip:
        """One row of the text with its highlights."""
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
        """The pieces of a row, each in one style."""
        if row.indent:
            yield Segment(" " * row.indent, base)
        parts = [*self._parts_of(row), *self._highlights_of(row)]
        edges = sorted({0, len(row.shown), *(edge for part in parts for edge in part[:2])})
        places = {edge: place for place, edge in enumerate(edges)}
        styles = [base] * len(edges)
        for start, end, name in parts:
            added = self._part(name)
            for place in range(places[start], places[end]):
                styles[place] += added
        for style, (start, end) in zip(styles, pairwise(edges), strict=False):
            yield Segment(row.shown[start:end], style)

    def _parts_of(self, row: TextRow) -> Iterator[tuple[int, int, str]]:
        highlighter = self._shown.highlighter
        for part in () if highlighter is None else highlighter.parts(row.start, row.end):
            place = row.slice_of(part.start, part.end)
            if place is not None:
                yield *place, part.name

    def _highlights_of(self, row: TextRow) -> Iterator[tuple[int, int, str]]:
        for highlight in self.highlights:
            place = row.slice_of(*self._shown.range_to_shown(highlight.start, highlight.end))
            if place is not None:
                yield *place, highlight.name

    def offset_at(self, x: int, y: int) -> int | None:
        """The code point of the text at a cell of the widget, or None below the text."""
        place = self._shown_at(x, y)
        return None if place is None else self._shown.to_source(place)

    def _shown_at(self, x: int, y: int) -> int | None:
        """What is shown at a cell of the widget."""
        row = y + round(self.scroll_y)
        if not self.text or not 0 <= row < self.row_count:
            return None
        found = self._layout.row(row)
        return found.offset_at(found_column(found.shown, x - 1 + self._shift - found.indent))

    @property
    def first_offset_on_screen(self) -> int:
        """The first code point of the text that is on screen."""
        return self._shown.to_source(self._top)

    def word_at(self, offset: int) -> tuple[int, int] | None:
        """Start and end of the word that is shown for a code point, or of the next one."""
        return self._shown.found_near(offset, word_at)

    def next_word(self, end: int) -> tuple[int, int] | None:
        """Start and end of the word that is shown behind a code point."""
        return self._shown.found_near(end, next_word)

    def previous_word(self, start: int) -> tuple[int, int] | None:
        """Start and end of the word that is shown before a code point."""
        return self._shown.found_near(start, previous_word)

    def vertical_neighbour(self, offset: int, rows: int) -> int:
        """The code point ``rows`` further down (negative: up), near the same column."""
        offset = self._shown.to_shown(offset)
        here = self._layout.row_at(offset)
        found = self._layout.row_at(self._layout.step(offset, rows))
        column = max(0, here.indent + offset - here.start - found.indent)
        return self._shown.to_source(min(found.start + column, max(found.start, found.end - 1)))

    def on_click(self, event: events.Click) -> None:
        """A click has no row to choose here."""
        event.stop()
        event.prevent_default()  # the handler of lists would run as well, and scroll

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin to mark a quote, or to move the border above the text."""
        offset = event.get_content_offset(self)
        self._drag_from = None if offset is None else self._shown_at(offset.x, offset.y)
        self._drags_edge = offset is None and event.y == 0 and self.gutter.top > 0
        if self._drag_from is not None or self._drags_edge:
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Move the border above the text, where that is what the mouse holds."""
        if self._drags_edge:
            self.post_message(self.EdgeDragged(self, event.screen_y))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """End the quote that was marked with the mouse."""
        self.release_mouse()
        self._drags_edge = False
        start, self._drag_from = self._drag_from, None
        offset = event.get_content_offset(self)
        if start is None or offset is None:
            return
        end = self._shown_at(offset.x, offset.y)
        if end is not None and end != start:
            first, last = min(start, end), max(start, end) + 1
            self.post_message(self.Quoted(self, *self._shown.range_to_source(first, last)))


def found_column(shown: str, cell: int) -> int:
    """The code point of a shown line that covers this cell."""
    column = 0
    used = 0
    for column, char in enumerate(shown):
        used += cell_len(char)
        if used > cell:
            return column
    return column
