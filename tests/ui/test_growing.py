"""x"""

from __future__ import annotations

import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from mast_tui.traces.index.lines import FIRST_SLICE
from mast_tui.traces.model import Loaded, Span, SpanStatus
from mast_tui.ui.trace_view.background_index import (
    COMPARISONS_PER_STEP,
    SPANS_PER_STEP,
    BackgroundIndex,
    TraceFacts,
    index_more,
)
from mast_tui.ui.trace_view.folding import FoldedRun
from mast_tui.ui.trace_view.overview import Overview
from mast_tui.ui.trace_view.timeline import Timeline
from tests import waiting
from tests.traces.rollouts import message, meta, write
from tests.ui.long_trace import GlancedTrace, LongTrace, calling
from tests.ui.settle import settle
from tests.ui.stage import finding, read_trace, stage, suggest
from tests.ui.test_timeline_cost import HEIGHT, AppWithTimeline, CountedTimeline


class PartOfTrace(LongTrace):
    """A trace that is still read, as far as the test allows."""

    def __init__(self, length: int) -> None:
        # Without times, as all bars would change when the run turns out longer.
        super().__init__(length, lambda span: replace(span, start=None))
        self.loaded = Loaded(0, 2, False)

    def grow(self, length: int, *, over: bool = False) -> None:
        """Set the number of spans that are read."""
        self.length = length
        if over:
            self.loaded = Loaded(2, 2, True)


@asynccontextmanager
async def growing(length: int) -> AsyncIterator[tuple[Pilot[None], CountedTimeline, PartOfTrace]]:
    app = AppWithTimeline()
    trace = PartOfTrace(length)
    async with app.run_test(size=(100, HEIGHT)) as pilot:
        timeline = app.query_one(CountedTimeline)
        timeline.show_trace(trace)
        await settle(pilot)
        yield pilot, timeline, trace


async def lines_drawn_by_growth(pilot: Pilot[None], timeline: CountedTimeline) -> int:
    await settle(pilot)
    timeline.drawn = 0
    timeline.show_new_spans()
    await settle(pilot)
    return timeline.drawn


async def test_growth_below_the_screen_draws_no_line() -> None:
    async with growing(5000) as (pilot, timeline, trace):
        trace.grow(6000)
        assert (await lines_drawn_by_growth(pilot, timeline), timeline.row_count) == (0, 6000)
        assert timeline.vertical_scrollbar.window_virtual_size == 6000
        assert timeline.max_scroll_y == 6000 - HEIGHT
        timeline.move_to(5999)
        await settle(pilot)
        assert "6000" in timeline.render_line(HEIGHT - 1).text
        timeline.move_to(0)
        indices = list(range(0, 1000, 2))
        timeline.set_filter(indices)
        await settle(pilot)
        timeline.drawn = 0
        indices.extend(range(1000, 3000, 2))
        timeline.set_filter(indices)
        await settle(pilot)
        assert (timeline.drawn, timeline.row_count) == (0, 1500)


async def test_the_end_is_followed_while_the_trace_is_read() -> None:
    async with growing(5000) as (pilot, timeline, trace):
        timeline.move_to_end()
        assert timeline.follows_end
        for length in (5100, 7000):
            trace.grow(length)
            assert await lines_drawn_by_growth(pilot, timeline) == HEIGHT
            assert timeline.index == length - 1
        trace.grow(7010, over=True)
        timeline.show_new_spans()
        assert timeline.index == 7009
        assert not timeline.follows_end
        await settle(pilot)
        assert isinstance(pilot.app, AppWithTimeline)
        assert pilot.app.moves == [4999, 5099, 6999, 7009]


async def test_the_end_is_not_followed_after_a_move_or_scroll() -> None:
    async with growing(5000) as (pilot, timeline, trace):
        timeline.move_to_end()
        await settle(pilot)
        timeline.scroll_to(y=100, animate=False, force=True)
        trace.grow(6000)
        assert (await lines_drawn_by_growth(pilot, timeline), timeline.index) == (0, 4999)
        assert not timeline.follows_end
        timeline.move_to_end()
        timeline.move_by(-1)
        trace.grow(7000, over=True)
        await lines_drawn_by_growth(pilot, timeline)
        assert timeline.index == 5998
        timeline.move_to_end()
        assert not timeline.follows_end  # the trace is complete
        timeline.set_filter([3, 5, 7])
        timeline.move_to_end()
        assert not timeline.follows_end


def write_chat(path: Path, spans: int) -> Path:
    """Write a Codex rollout that is not read to its end at once."""
    texts = (f"message {number} {'and so on ' * 30}" for number in range(spans))
    messages = [message("assistant", text) for text in texts]
    write(path.parent, meta(id=path.stem), *messages, name=path.name)
    assert path.stat().st_size > 2 * FIRST_SLICE
    return path


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """A trace that is not read to its end at once."""
    return write_chat(tmp_path / "rollout-chat.jsonl", 3000)


async def test_last_span_and_marks_of_a_trace_that_is_read(chat: Path, workspace: Path) -> None:
    suggest(workspace, read_trace(chat), [finding(read_trace(chat), "1.3", 2990, 2990)])
    async with stage(chat, workspace=workspace, settled=False) as on:
        await on.wait_for_trace()
        await on.send("G")
        await settle(on.pilot)
        assert on.number == 3000
        assert "3000 spans" in on.lines[0]
        assert "#3000 message" in on.text
        assert on.annotate.timeline.marks.marks_on(2989)
        view = on.annotate.query_one(Overview)
        assert any("◌" in view.render_line(y).text for y in range(view.size.height))


async def test_keys_and_dialogs_while_the_trace_is_read(chat: Path) -> None:
    async with stage(chat) as on:
        timeline = on.annotate.timeline
        assert on.annotate.drawn_spans.readable_keys()
        trace = PartOfTrace(500)
        timeline.show_trace(trace)
        await settle(on.pilot)
        await on.send("G")
        assert timeline.follows_end
        assert not on.annotate.drawn_spans.readable_keys()  # rows that pass by are not read
        await on.send("1")
        trace.grow(700)
        timeline.show_new_spans()
        assert timeline.index == 499
        assert not timeline.follows_end
        await on.send("escape", ":")
        for length, over in ((800, False), (900, True)):
            trace.grow(length, over=over)
            timeline.post_message(Timeline.IndexGrown(trace, timeline.facts, over))
            await settle(on.pilot)
            assert timeline.row_count == (900 if over else 700)


async def test_a_closed_trace_frees_its_memory(chat: Path, tmp_path: Path) -> None:
    other = write_chat(tmp_path / "rollout-other.jsonl", 2500)
    async with stage(chat, other) as on:
        await on.press("enter")
        trace = on.trace
        survey = on.annotate.timeline.background_index
        left = weakref.ref(survey), weakref.ref(survey.totals)
        counted = weakref.ref(trace)
        del trace, survey
        await on.press("}")
        await on.press("j")
        # The thread that read it on was told to stop, and does so within a step.
        for _ in waiting.until(lambda: [ref() for ref in (*left, counted)] == [None] * 3):
            await on.pilot.pause(0.1)
            gc.collect()


@pytest.mark.parametrize(("agents", "cells"), [(["main", "helper"], 6), (["編集者"], 6), ([""], 0)])
def test_the_widest_name_is_measured(agents: list[str], cells: int) -> None:
    trace = GlancedTrace(9, lambda span: replace(span, agent=agents[span.index % len(agents)]))
    index = BackgroundIndex()
    for _ in index_more(trace, index, reads_to_end=True):
        pass
    assert index.facts == TraceFacts(9, 0.0, 9.0, tuple(agents), cells)


class GrowingTrace(GlancedTrace):
    """A trace that is read in slices of spans."""

    def __init__(self, length: int, slices: int) -> None:
        super().__init__(0, self.as_known)
        self.whole = length
        self.slices = slices
        self.loaded = Loaded(0, length, False)
        self.advances = 0

    def as_known(self, span: Span) -> Span:
        """Make every hundredth step an error once the trace is complete."""
        if self.loaded.complete and span.index % 100 == 0:
            return replace(span, status=SpanStatus.ERROR, end=span.index + 500.0)
        return span

    def advance(self, max_bytes: int = 1 << 20, /) -> bool:
        self.advances += 1
        self.length = min(self.whole, self.length + self.slices)
        self.loaded = Loaded(self.length, self.whole, self.length >= self.whole)
        return not self.loaded.complete


@pytest.mark.slow
def test_the_index_reads_in_small_steps() -> None:
    trace = GrowingTrace(10_000, 30)
    index = BackgroundIndex()
    previous = trace.advances, trace.glanced_at, trace.asked
    for _ in index_more(trace, index, reads_to_end=True):
        current = trace.advances, trace.glanced_at, trace.asked
        advanced, glanced_at, asked = (b - a for a, b in zip(previous, current, strict=True))
        assert advanced <= 1
        assert not (advanced and glanced_at)
        assert glanced_at <= SPANS_PER_STEP + COMPARISONS_PER_STEP
        assert asked <= COMPARISONS_PER_STEP + 2
        assert len(trace) - index.totals.span_count < SPANS_PER_STEP + 30
        assert index.search_repeats or index.repeats.seen == 0
        previous = current
        if index.totals.span_count == 10_000:
            index.search_repeats = True
    assert index.totals.span_count == 10_000
    assert index.complete(trace)


def test_errors_known_at_the_end_are_counted() -> None:
    trace = GrowingTrace(3050, 300)
    index = BackgroundIndex()
    announced = []
    for is_news in index_more(trace, index, reads_to_end=True):
        assert index.totals.span_count == index.facts.seen
        if is_news:
            announced.append(len(trace))
    assert (announced, list(index.totals.errors)) == ([3050], list(range(0, 3050, 100)))
    assert index.facts.total == 3500.0


def test_a_trace_that_another_thread_reads_is_not_advanced() -> None:
    trace = GrowingTrace(5000, 300)
    trace.advance()
    index = BackgroundIndex()
    for _ in index_more(trace, index, reads_to_end=False):
        pass
    assert (trace.advances, index.totals.span_count) == (1, 300)
    assert index.complete(trace)


def test_repeats_are_searched_on_request() -> None:
    trace = GlancedTrace(100, lambda span: calling(span, "same"))
    index = BackgroundIndex()
    assert all(not worth for worth in index_more(trace, index, reads_to_end=True))
    assert index.repeats.run_at(50) is None
    index.search_repeats = True
    assert not index.complete(trace)
    assert list(index_more(trace, index, reads_to_end=True))
    assert index.repeats.run_at(50) == FoldedRun(0, 100, 1)
    assert index.complete(trace)


def test_errors_are_counted_as_far_as_the_index_goes() -> None:
    trace = GlancedTrace(600, lambda span: replace(span, status=SpanStatus.ERROR))
    index = BackgroundIndex()
    assert index.step(trace, 200)
    assert index.totals.errors_in(0, 600) == 200
