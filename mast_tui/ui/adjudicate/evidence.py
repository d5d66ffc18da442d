"""The panes beside the queue: the sides of a case, and the spans that they marked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from mast_tui.labels import Target
from mast_tui.redaction.filled_masks import masked_quote
from mast_tui.safe_text import one_line
from mast_tui.traces.model import Span, Trace, TraceMasks
from mast_tui.ui.adjudicate.cases import CaseView
from mast_tui.ui.adjudicate.lists import SidesPanel, SideView
from mast_tui.ui.text.highlighting import TextPart
from mast_tui.ui.trace_view.gutter import GutterMark, MarkKind, marks_by_span, span_range_of
from mast_tui.ui.trace_view.span_view import SpanText, SpanView, text_format
from mast_tui.ui.trace_view.timeline import Timeline
from mast_tui.ui.wording import counted, origin_title, plain_title, span_title_parts

READING = "Reading the trace …"
NO_FILE = "The file of this trace is not on this machine: the sides are all there is to see."


class EvidencePanes:
    """The sides, the timeline and the span text for the case under the queue's cursor.

    Attributes:
        trace: The trace of the case; None if it is not on this machine.
        view: The contents of the case, or None.
        fixed_end_index: The span at the fixed end of the boundary that is moved, or None.
    """

    def __init__(self, span_text: SpanText, find_masks: Callable[[], TraceMasks | None]) -> None:
        """Make empty panes.

        Args:
            span_text: Reads the texts of spans.
            find_masks: Returns the masks of the study, or None.
        """
        self.sides_panel = SidesPanel(id="sides")
        self.timeline = Timeline(id="evidence")
        self.span_view = SpanView(id="text")
        self.trace: Trace | None = None
        self.view: CaseView | None = None
        self.fixed_end_index: int | None = None
        self._span_text = span_text
        self._find_masks = find_masks

    @property
    def has_spans(self) -> bool:
        """True if the trace is on this machine and has spans."""
        return self.trace is not None and len(self.trace) > 0

    def show_trace(self, trace: Trace | None, name: str = "") -> None:
        """Show another trace.

        Args:
            trace: The trace; None if it is not on this machine.
            name: Its name, for the title: its row in the queue may be out of sight.
        """
        self.timeline.display = trace is not None
        if trace is self.trace:
            return
        self.trace = trace
        self._span_text.discard_text()
        if trace is not None:
            self.timeline.show_trace(trace)
            self.timeline.look_for_repeats()
            self.timeline.border_title = plain_title(
                f"{one_line(name)} · {counted(len(trace), 'span')}"
            )

    def show_case(
        self, view: CaseView | None, *, empty: str = "", is_reading: bool = False
    ) -> None:
        """Show the sides of a case, and move the timeline to its first target.

        The timeline marks the spans of each side with its number, and those of a judge with
        ``judge``.

        Args:
            view: The contents of the case, or None.
            empty: The text in place of the sides without a case.
            is_reading: Whether the trace is still being read.
        """
        self.view = view
        sides = () if view is None else view.sides
        self.sides_panel.border_title = plain_title("Sides" if view is None else view.title)
        self.sides_panel.border_subtitle = plain_title(view.note) if view and view.note else None
        self.sides_panel.show(self._masked_sides(sides), empty_text=empty)
        self.span_view.display = self.trace is not None or view is not None
        if self.trace is None:
            self.span_view.show_titles(None)
            reason = READING if is_reading else NO_FILE
            self.span_view.show_text("", empty="" if view is None else reason)
            return
        self.timeline.show_marks(marks_by_span(_marked_targets(sides), self.trace.index_of))
        self._show_target(self.trace, None if view is None else view.target)

    def _masked_sides(self, sides: Sequence[SideView]) -> Sequence[SideView]:
        """Return the sides with masked quotes and judges' notes, if the study masks texts."""
        masks = self._find_masks()
        if masks is None:
            return sides
        return [_masked_side(side, self.trace, masks) for side in sides]

    def _show_target(self, trace: Trace, target: Target | None) -> None:
        """Mark the spans of a target in the timeline, and move to its first span.

        For None, the whole trace or a target outside the trace, the cursor stays.
        """
        index_range = None if target is None else span_range_of(target, trace.index_of)
        self.timeline.show_range(index_range)
        if index_range is not None:
            self.timeline.go_to(index_range[0])
            # A pane that has just appeared has no height yet, so it cannot scroll.
            timeline = self.timeline
            timeline.call_after_refresh(
                lambda: timeline.show_row(timeline.cursor, in_upper_third=True)
            )
        self.show_span()

    def go_to_place(self, text: str) -> bool:
        """Move to a span by its number (from 1) or key; return False if there is none."""
        has_moved = self.timeline.go_to_named(text)
        if has_moved:
            self.show_span()
        return has_moved

    def show_span(self) -> None:
        """Show the text of the span under the timeline's cursor, with the quotes of the sides."""
        trace = self.trace
        if trace is None:
            return
        if not len(trace):
            self.span_view.show_text("", empty="This trace has no spans.")
            return
        span = trace.span(self.timeline.index)
        text = self._span_text.text_of(trace, span.index)
        title = " · ".join(one_line(part) for part in span_title_parts(span) if part)
        self.span_view.show_titles(plain_title(title), origin_title(span))
        self.span_view.show_text(
            text,
            self._quote_highlights(span),
            empty=self._span_text.empty_text,
            text_format=text_format(span),
        )

    def _quote_highlights(self, span: Span) -> list[TextPart]:
        """Return the highlights of the sides' quotes in a span, first that of the sides panel's
        cursor.
        """
        if self.view is None:
            return []
        highlights = [
            TextPart(
                place.target.char_start,
                place.target.char_end or 0,
                "own" if place is self.sides_panel.place else "evidence",
            )
            for side in self.view.sides
            for place in side.places
            if place.target.first == span.key and place.target.char_start is not None
        ]
        return sorted(highlights, key=lambda highlight: highlight.name != "own")

    def span_moved(self) -> None:
        """Show the span under the timeline's cursor."""
        if self.fixed_end_index is not None:
            self.timeline.show_range(self.marked_range())
        self.show_span()

    def side_moved(self) -> None:
        """Show the target under the cursor of the sides panel, unless a boundary is moved."""
        marked_place = self.sides_panel.place
        if marked_place is not None and self.trace is not None and self.fixed_end_index is None:
            self._show_target(self.trace, marked_place.target)

    def move_boundary(self, target: Target | None = None) -> None:
        """Begin to move the end of a range of spans with the cursor, or switch to its other end.

        Args:
            target: The target to begin with; None for the marked range.
        """
        if self.fixed_end_index is not None:
            self._show_boundary(self.timeline.index, moving_end=self.fixed_end_index)
            return
        index_range = self.timeline.range
        if target is not None and self.trace is not None:
            index_range = span_range_of(target, self.trace.index_of)
        if index_range is None:
            self.begin_boundary()
            return
        first_index, last_index = index_range
        self._show_boundary(first_index, moving_end=last_index)

    def begin_boundary(self) -> None:
        """Begin a boundary of one span at the timeline's cursor."""
        self._show_boundary(self.timeline.index, moving_end=self.timeline.index)

    def _show_boundary(self, fixed_end: int, *, moving_end: int) -> None:
        """Move the timeline's cursor to one end of a boundary, and mark its spans."""
        self.fixed_end_index = fixed_end
        self.timeline.go_to(moving_end)
        self.timeline.show_range(self.marked_range())
        self.show_span()

    def marked_range(self) -> tuple[int, int] | None:
        """Return the first and last index of the moved boundary, or None."""
        if self.fixed_end_index is None:
            return None
        index = self.timeline.index
        return min(self.fixed_end_index, index), max(self.fixed_end_index, index)

    def boundary(self) -> Target | None:
        """Return the target within the moved boundary, or None."""
        index_range = self.marked_range()
        if index_range is None or self.trace is None:
            return None
        first_index, last_index = index_range
        return Target(self.trace.span(first_index).key, self.trace.span(last_index).key)


def _marked_targets(sides: Iterable[SideView]) -> Iterator[tuple[Target, GutterMark]]:
    """Yield the targets of numbered sides and judges, with their marks."""
    for side in sides:
        if side.is_judge or side.number is not None:
            mark = GutterMark("judge" if side.is_judge else str(side.number), MarkKind.OTHER)
            yield from ((marked_place.target, mark) for marked_place in side.places)


def _masked_side(side: SideView, trace: Trace | None, masks: TraceMasks) -> SideView:
    """Return a side with masked quotes and, for a judge, masked notes."""
    places = []
    for side_place in side.places:
        target = side_place.target
        if side_place.quote:
            quote = masked_quote(
                masks, trace, side_place.quote, target.first, target.char_start, target.char_end
            )
            side_place = replace(side_place, quote=quote)
        if side.is_judge:  # a judge copies text of the trace into its notes
            side_place = replace(side_place, note=masks.text(side_place.note))
        places.append(side_place)
    return replace(side, places=tuple(places))
