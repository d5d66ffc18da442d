"""What an adjudicator looks at: the sides, and the spans that they marked."""

from __future__ import annotations

from mast_tui.labels import Target
from mast_tui.safe_text import one_line
from mast_tui.traces.model import Span, Trace
from mast_tui.ui.adjudicate.items import ItemView
from mast_tui.ui.text.highlighting import TextPart
from mast_tui.ui.trace_view.gutter import GutterMark, MarkKind, marks_by_span
from mast_tui.ui.trace_view.span_view import SpanText, SpanView, text_format
from mast_tui.ui.trace_view.timeline import Timeline
from mast_tui.ui.widgets.sides_panel import SidesPanel
from mast_tui.ui.wording import origin_title, plain_title

READING = "Reading the trace …"
NO_FILE = "The file of this trace is not on this machine: the sides are all there is to see."


class EvidencePanes:
    """Three panes for the item under the queue's cursor: who says what, the spans, and one's text.

    While a boundary is moved, ``range_from`` is the span at its other end.
    """

    def __init__(self, span_text: SpanText) -> None:
        """Begin with nothing to see.

        Args:
            span_text: Reads the spans' texts.
        """
        self.sides = SidesPanel(id="sides")
        self.timeline = Timeline(id="evidence")
        self.span_view = SpanView(id="text")
        self.trace: Trace | None = None
        self.item: ItemView | None = None
        self.range_from: int | None = None
        self._span_text = span_text

    @property
    def has_spans(self) -> bool:
        """Whether there is a span to stand on."""
        return self.trace is not None and len(self.trace) > 0

    def index_of(self, key: str) -> int | None:
        """Where a span stands; None where the trace is not here or has no such span."""
        return self.trace.index_of(key) if self.trace is not None else None

    def show_trace(self, trace: Trace | None) -> None:
        """Show another trace; None for one that is not on this machine."""
        self.timeline.display = trace is not None
        if trace is self.trace:
            return
        self.trace = trace
        self._span_text.forget()
        if trace is not None:
            self.timeline.show_trace(trace)
            self.timeline.look_for_repeats()
            self.timeline.border_title = plain_title(f"Timeline · {len(trace)} spans")

    def show_item(self, item: ItemView | None, *, empty: str = "", reading: bool = False) -> None:
        """Show the sides of an item and the place to look at first.

        The marks in the timeline are the numbers of the sides, and ``judge`` for a judge.

        Args:
            item: What to show; None where the cursor stands on no item.
            empty: What is said then.
            reading: Whether the trace is still being looked for.
        """
        self.item = item
        sides = item.sides if item is not None else ()
        self.sides.border_title = plain_title(item.title if item is not None else "Sides")
        self.sides.border_subtitle = plain_title(item.note) if item and item.note else None
        self.sides.show(sides, empty=empty)
        if self.trace is None:
            self.span_view.border_title = self.span_view.border_subtitle = None
            words = "" if item is None else READING if reading else NO_FILE
            self.span_view.show_text("", empty=words)
            return
        targets = [
            (
                place.target,
                GutterMark("judge" if side.is_judge else str(side.number), MarkKind.OTHER),
            )
            for side in sides
            if side.is_judge or side.number is not None
            for place in side.places
        ]
        self.timeline.show_marks(marks_by_span(targets, self.trace.index_of))
        where = item.where if item is not None else None
        self.timeline.show_range(self._range_of(where))
        if where is not None:
            self._go_to_target(where)
        self.show_span()

    def _range_of(self, target: Target | None) -> tuple[int, int] | None:
        if target is None or target.first is None or target.last is None:
            return None
        first, last = self.index_of(target.first), self.index_of(target.last)
        if first is None or last is None:
            return None
        return min(first, last), max(first, last)

    def _go_to_target(self, target: Target) -> None:
        """Put the timeline's cursor on a place; the whole trace leaves it where it is."""
        for key in (target.first, target.last):
            index = self.index_of(key) if key is not None else None
            if index is not None:
                self.timeline.go_to(index)
                # Where the pane has just come on screen it has no height to scroll in yet.
                self.timeline.call_after_refresh(self._show_cursor)
                return

    def _show_cursor(self) -> None:
        self.timeline.show_row(self.timeline.cursor, centre=True)

    def go_to_place(self, text: str) -> bool:
        """Go to a span by its number (from 1) or its key; False where there is none."""
        found = self.timeline.go_to_named(text)
        if found:
            self.show_span()
        return found

    def show_span(self) -> None:
        """The whole text of the span under the timeline's cursor, with what is quoted in it."""
        trace = self.trace
        if trace is None:
            return
        if not len(trace):
            self.span_view.show_text("", empty="This trace has no spans.")
            return
        span = trace.span(self.timeline.index)
        text = self._span_text.text_of(trace, span.index)
        self.span_view.border_title = plain_title(_span_title(span))
        self.span_view.border_subtitle = origin_title(span)
        self.span_view.show_text(
            text,
            self._highlights(span),
            empty=self._span_text.empty_text,
            text_format=text_format(span),
        )

    def _highlights(self, span: Span) -> list[TextPart]:
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
                    found.append(TextPart(target.char_start, target.char_end or 0, style))
        return sorted(found, key=lambda highlight: highlight.name != "own")

    def span_moved(self) -> None:
        """The timeline's cursor stands on another span."""
        if self.range_from is not None:
            self.timeline.show_range(self.marked_range())
        self.show_span()

    def side_moved(self) -> None:
        """Show the place under the sides' cursor, unless a boundary is moved."""
        place = self.sides.place
        if place is not None and self.trace is not None and self.range_from is None:
            self.timeline.show_range(self._range_of(place.target))
            self._go_to_target(place.target)
            self.show_span()

    # A boundary that is moved

    def move_boundary(self, place: Target | None = None) -> None:
        """Begin to move the end of a place, else of what is marked; again goes to the other end."""
        if self.range_from is None:
            marked = self._range_of(place) if place is not None else self.timeline.range
            first, last = marked if marked is not None else (self.timeline.index,) * 2
        else:
            first, last = self.timeline.index, self.range_from
        self._show_boundary(first, last)

    def begin_boundary_here(self) -> None:
        """Have the boundary that is moved begin at the timeline's cursor."""
        self._show_boundary(self.timeline.index, self.timeline.index)

    def _show_boundary(self, first: int, last: int) -> None:
        self.range_from = first
        self.timeline.go_to(last)
        self.timeline.show_range(self.marked_range())
        self.show_span()

    def marked_range(self) -> tuple[int, int] | None:
        """First and last span of the boundary that is moved."""
        if self.range_from is None:
            return None
        here = self.timeline.index
        return min(self.range_from, here), max(self.range_from, here)

    def boundary(self) -> Target | None:
        """The place within the boundary that is moved; None where none is."""
        marked = self.marked_range()
        if marked is None or self.trace is None:
            return None
        return Target(self.trace.span(marked[0]).key, self.trace.span(marked[1]).key)


def _span_title(span: Span) -> str:
    parts = [f"#{span.index + 1} {span.kind.replace('_', ' ')}", span.agent]
    if span.name:
        parts.append(span.name)
    return " · ".join(one_line(part) for part in parts if part)
