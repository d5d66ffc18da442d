"""What an adjudicator looks at: the sides, and the spans that they marked."""

from __future__ import annotations

from textual import on

from mast_tui.labels import Target
from mast_tui.safe_text import one_line
from mast_tui.traces.model import Span, Trace
from mast_tui.ui.adjudicate.conflict_list import ConflictList
from mast_tui.ui.adjudicate.rows import ItemView
from mast_tui.ui.screens.base_screen import BaseScreen
from mast_tui.ui.titles import origin_title, plain_title
from mast_tui.ui.trace_view.gutter import Mark, MarkKind, marks_by_span
from mast_tui.ui.trace_view.span_text import SpanText
from mast_tui.ui.trace_view.span_view import Highlight, SpanView
from mast_tui.ui.trace_view.timeline import Timeline
from mast_tui.ui.widgets.sides_panel import SidesPanel
from mast_tui.ui.widgets.virtual_lines import VirtualLines

NO_FILE = "The file of this trace is not on this machine: the sides are all there is to see."


class Evidence(BaseScreen):
    """The panes beside the queue; they follow its cursor."""

    def __init__(self) -> None:
        super().__init__()
        self.trace: Trace | None = None
        self.item: ItemView | None = None
        self.range_from: int | None = None
        self._span_text = SpanText(self)

    @property
    def main_list(self) -> ConflictList:
        """The queue."""
        return self.query_one(ConflictList)

    @property
    def sides(self) -> SidesPanel:
        """Who says what."""
        return self.query_one(SidesPanel)

    @property
    def timeline(self) -> Timeline:
        """The spans of the trace."""
        return self.query_one("#evidence", Timeline)

    @property
    def span_view(self) -> SpanView:
        """The text of the span under the timeline's cursor."""
        return self.query_one("#text", SpanView)

    @property
    def has_spans(self) -> bool:
        """Whether there is a span to stand on."""
        return self.trace is not None and len(self.trace) > 0

    def index_of(self, key: str) -> int | None:
        """Where a span stands; None where the trace is not here or has no such span."""
        return self.trace.index_of(key) if self.trace is not None else None

    def show_trace(self, trace: Trace | None) -> None:
        """Show another trace beside the queue; None for one that is not on this machine."""
        self.set_class(trace is None, "-no-file")
        if trace is self.trace:
            return
        self.trace = trace
        self._span_text.forget()
        if trace is not None:
            self.timeline.show_trace(trace)
            self.timeline.look_for_repeats()
            self.timeline.border_title = plain_title(f"Timeline · {len(trace)} spans")

    def show_item(self, item: ItemView | None, empty: str = "") -> None:
        """Show the sides of an item and the place to look at first; ``empty`` where there is none.

        The marks in the timeline are the numbers of the sides.
        """
        self.item = item
        self.sides.border_title = plain_title(item.title if item is not None else "Sides")
        self.sides.border_subtitle = plain_title(item.note) if item and item.note else None
        self.sides.show(item.sides if item is not None else (), empty=empty)
        if self.trace is None:
            self.span_view.border_title = self.span_view.border_subtitle = None
            words = self.missing_words() if item is not None else ""
            self.span_view.show_text("", empty=words)
            return
        targets = [
            (place.target, Mark(str(side.number or "judge"), MarkKind.OTHER))
            for side in (item.sides if item is not None else ())
            for place in side.places
        ]
        self.timeline.show_marks(marks_by_span(targets, self.trace.index_of))
        where = item.where if item is not None else None
        self.timeline.show_range(self._range_of(where))
        if where is not None:
            self.go_to_target(where)
        self.show_span()

    def missing_words(self) -> str:
        """Why there is no text beside the sides."""
        return NO_FILE

    def _range_of(self, target: Target | None) -> tuple[int, int] | None:
        if target is None or target.first is None or target.last is None:
            return None
        first, last = self.index_of(target.first), self.index_of(target.last)
        if first is None or last is None:
            return None
        return min(first, last), max(first, last)

    def go_to_target(self, target: Target) -> None:
        """Put the timeline's cursor on a place; the whole trace leaves it where it is."""
        for key in (target.first, target.last):
            index = self.index_of(key) if key is not None else None
            if index is not None:
                self.timeline.go_to(index)
                # Where the pane has just come on screen it has no height to scroll in yet.
                self.call_after_refresh(self._show_cursor)
                return

    def _show_cursor(self) -> None:
        self.timeline.show_row(self.timeline.cursor, centre=True)

    def show_span(self) -> None:
        """The whole text of the span under the timeline's cursor, with what is quoted in it."""
        trace = self.trace
        if trace is None:
            return
        if not len(trace):
            self.span_view.show_text("", empty="This trace has no spans.")
            return
        span = trace.span(self.timeline.index)
        text = self._span_text.of(trace, span.index)
        self.span_view.border_title = plain_title(_span_title(span))
        self.span_view.border_subtitle = origin_title(span)
        self.span_view.show_text(
            text, self._highlights(span), empty=self._span_text.words_on_nothing
        )

    def _highlights(self, span: Span) -> list[Highlight]:
        """What the sides quote in a span; the place under the sides' cursor on top, and first."""
        if self.item is None:
            return []
        chosen = self.sides.place
        found = []
        for side in self.item.sides:
            for place in side.places:
                target = place.target
                if target.first == span.key and target.char_start is not None:
                    style = "own" if place is chosen else "evidence"
                    found.append(Highlight(target.char_start, target.char_end or 0, style))
        return sorted(found, key=lambda highlight: highlight.style != "own")

    @on(VirtualLines.Moved, "#evidence")
    def _span_moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        if self.range_from is not None:
            self.timeline.show_range(self.marked_range())
        self.show_span()

    def marked_range(self) -> tuple[int, int] | None:
        """First and last span of the boundary that is being moved."""
        if self.range_from is None:
            return None
        here = self.timeline.index
        return min(self.range_from, here), max(self.range_from, here)

    @on(VirtualLines.Moved, "#sides")
    def _side_moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        place = self.sides.place
        if place is not None and self.trace is not None and self.range_from is None:
            self.go_to_target(place.target)
            self.show_span()

    def action_text(self, delta: int) -> None:
        """Scroll the span's text by a screen."""
        self.span_view.move_page(delta)

    def action_pane(self) -> None:
        """The next pane."""
        panes: list[VirtualLines] = [self.main_list, self.sides, self.timeline, self.span_view]
        shown = [pane for pane in panes if pane.is_on_screen and pane.display]
        place = shown.index(self.pane) if self.pane in shown else 0
        shown[(place + 1) % len(shown)].focus()

    def go_to_place(self, text: str) -> bool:
        """Go to a span by its number (from 1) or its key; False where there is none."""
        trace = self.trace
        if trace is None:
            return False
        wanted = text.strip().removeprefix("#")
        if wanted.isdigit() and 1 <= int(wanted) <= len(trace):
            index: int | None = int(wanted) - 1
        else:
            index = trace.index_of(text.strip())
        if index is None:
            return False
        self.timeline.go_to(index)
        self.show_span()
        return True


def _span_title(span: Span) -> str:
    parts = [f"#{span.index + 1} {span.kind.replace('_', ' ')}", span.agent]
    if span.name:
        parts.append(span.name)
    return " · ".join(one_line(part) for part in parts if part)
