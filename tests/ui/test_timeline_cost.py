"""The cost of a long timeline, in spans read and lines drawn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.strip import Strip

from mast_tui.traces.model import Span
from mast_tui.ui.trace_view.folding import FoldedRun
from mast_tui.ui.trace_view.gutter import GutterMark, GutterMarks, MarkKind
from mast_tui.ui.trace_view.timeline import Timeline
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from tests.ui.long_trace import LongTrace

HEIGHT = 24
MOST = 8 * HEIGHT
"""Spans that a key may ask for: a few for each row of the screen, whatever the trace's length."""


class CountedTimeline(Timeline):
    """A timeline that counts its drawn lines and rows."""

    drawn = 0
    made = 0

    def render_line(self, y: int) -> Strip:
        self.drawn += 1
        return super().render_line(y)

    def render_row(self, row: int, width: int) -> Strip:
        self.made += 1
        return super().render_row(row, width)


class AppWithTimeline(App[None]):
    """An app with a timeline alone."""

    def compose(self) -> ComposeResult:
        self.moves: list[int] = []
        yield CountedTimeline(id="timeline")

    def on_virtual_lines_moved(self, event: VirtualLines.Moved) -> None:
        self.moves.append(event.row)


class Counts:
    """The cost of one step."""

    def __init__(self, app: AppWithTimeline, trace: LongTrace) -> None:
        self.app = app
        self.trace = trace
        self.timeline = app.query_one(CountedTimeline)
        self.asked = self.drawn = self.made = self.moved = 0

    async def measure(self, pilot: Pilot[None], step: Callable[[], object]) -> Counts:
        timeline = self.timeline
        trace = self.trace
        await pilot.pause()
        previous = trace.asked, timeline.drawn, timeline.made, len(self.app.moves)
        step()
        await pilot.pause()
        after = trace.asked, timeline.drawn, timeline.made, len(self.app.moves)
        self.asked, self.drawn, self.made, self.moved = (
            b - a for a, b in zip(previous, after, strict=True)
        )
        return self


@asynccontextmanager
async def timeline_of(
    trace: LongTrace, *, in_background: bool = False
) -> AsyncIterator[tuple[Pilot[None], Counts]]:
    """Show a trace in a timeline, and count its cost; without the background index by default,
    which would read all million spans."""
    app = AppWithTimeline()
    async with app.run_test(size=(100, HEIGHT)) as pilot:
        counts = Counts(app, trace)
        counts.timeline.show_trace(trace)
        await pilot.pause()
        if not in_background:
            app.workers.cancel_all()
            await pilot.pause()
        yield pilot, counts


STEPS: dict[str, Callable[[Timeline], object]] = {
    "up": lambda timeline: timeline.move_by(-1),
    "last": lambda timeline: timeline.move_to(timeline.row_count - 1),
    "first": lambda timeline: timeline.move_to(0),
    "page down": lambda timeline: timeline.move_page(1),
    "page up": lambda timeline: timeline.move_page(-1),
    "jump": lambda timeline: timeline.go_to(123_456),
    "range": lambda timeline: timeline.show_range((10, 900_000)),
    "no range": lambda timeline: timeline.show_range(None),
    "marks": lambda timeline: timeline.show_marks(
        GutterMarks(
            [(0, 999_999, GutterMark("1.3", MarkKind.OWN)), (7, 7, GutterMark("2.6", MarkKind.OWN))]
        )
    ),
    "read": lambda timeline: timeline.show_read({"k1", "k500000"}),
    "filter": lambda timeline: timeline.set_filter(range(0, 1_000_000, 2)),
    "no filter": lambda timeline: timeline.set_filter(None),
    "grown": lambda timeline: timeline.show_new_spans(),
}


async def test_keys_read_only_visible_spans() -> None:
    trace = LongTrace(1_000_000)
    async with timeline_of(trace) as (pilot, counts):
        timeline = counts.timeline
        assert timeline.row_count == 1_000_000
        assert trace.asked <= 1000
        assert timeline.facts.total == 1_000_000.0
        for name, step in STEPS.items():
            timeline.move_to(500_000 if timeline.row_count == 1_000_000 else 250_000)
            await counts.measure(pilot, partial(step, timeline))
            assert counts.asked <= MOST, name
            assert counts.drawn <= 2 * HEIGHT, name


async def test_a_large_fold_costs_as_much_as_a_small_one() -> None:
    trace = LongTrace(1_000_000)
    async with timeline_of(trace) as (pilot, counts):
        timeline = counts.timeline
        timeline.rows.fold(FoldedRun(5, 900_005, 1))
        timeline.rows_changed()
        timeline.move_to(6)
        await counts.measure(pilot, timeline.toggle_fold)
        assert timeline.row_count == 1_000_000
        assert counts.asked <= MOST
        await counts.measure(pilot, lambda: timeline.go_to(800_000))
        assert counts.asked <= MOST


async def test_bars_follow_the_length_of_the_run() -> None:
    def change(span: Span) -> Span:
        return replace(span, start=0.0 if span.index < 3 else None, end=None)

    def later(span: Span) -> Span:
        return replace(change(span), end=1000.0 if span.index == 900 else None)

    trace = LongTrace(1000, change)
    async with timeline_of(trace) as (pilot, counts):
        timeline = counts.timeline
        trace.change = later
        facts = timeline.facts._replace(total=1000.0)
        previous = [timeline.render_line(y).text for y in range(4)]
        message = Timeline.IndexGrown(trace, facts, False)
        await counts.measure(pilot, lambda: timeline.post_message(message))
        assert counts.drawn == counts.made <= 3
        assert (timeline.render_line(3).text, timeline.facts.total) == (previous[3], 1000.0)
