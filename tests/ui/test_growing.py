"""A trace that is read while it is open."""

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
from mast_tui.traces.model import Loaded
from mast_tui.ui.trace_view.overview import Overview
from mast_tui.ui.trace_view.timeline import Timeline
from tests import waiting
from tests.traces.rollouts import message, meta, write
from tests.ui.long_trace import LongTrace
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
