"""A trace that is read while one looks at it: little is drawn, the end is followed, marks come."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.strip import Strip

from mast_tui.traces.index.lines import FIRST_SLICE
from mast_tui.traces.model import Loaded, Span
from mast_tui.ui.trace_view.overview import Overview
from mast_tui.ui.trace_view.timeline import Timeline
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from tests import waiting
from tests.ui.long_trace import LongTrace
from tests.ui.settle import settle
from tests.ui.stage import Stage, finding, read_trace, stage, suggest

HEIGHT = 24


class PartOfTrace(LongTrace):
    """A trace that is still read, as far as the test lets it."""

    def __init__(self, length: int) -> None:
        super().__init__(length, self.timeless)
        self.loaded = Loaded(0, 2, False)

    @staticmethod
    def timeless(span: Span) -> Span:
        """All rows' bars would change as the run turns out longer."""
        return Span(**{**{name: getattr(span, name) for name in FIELDS}, "start": None})

    def grow(self, length: int, *, over: bool = False) -> None:
        """So many spans are known now."""
        self.length = length
        if over:
            self.loaded = Loaded(2, 2, True)


FIELDS = tuple(Span.__dataclass_fields__)


class CountedTimeline(Timeline):
    """Counts the lines that it draws, and how often all panes are laid out for it."""

    drawn = 0

    def render_line(self, y: int) -> Strip:
        self.drawn += 1
        return super().render_line(y)


class Bare(App[None]):
    """Nothing but a timeline."""

    moves: list[int]

    def compose(self) -> ComposeResult:
        self.moves = []
        yield CountedTimeline(id="timeline")

    def on_virtual_lines_moved(self, event: VirtualLines.Moved) -> None:
        self.moves.append(event.row)


@asynccontextmanager
async def growing(length: int) -> AsyncIterator[tuple[Pilot[None], CountedTimeline, PartOfTrace]]:
    """A timeline with a trace of so many spans so far, and none of its threads at work."""
    app, trace = Bare(), PartOfTrace(length)
    async with app.run_test(size=(100, HEIGHT)) as pilot:
        timeline = app.query_one(CountedTimeline)
        timeline.show_trace(trace)
        await settle(pilot)
        yield pilot, timeline, trace


async def after(pilot: Pilot[None], timeline: CountedTimeline) -> int:
    """How many lines are drawn when the timeline takes in that its trace has grown."""
    await pilot.pause()
    timeline.drawn = 0
    timeline.show_new_spans()
    await pilot.pause()
    return timeline.drawn


async def test_what_comes_below_the_screen_draws_no_line() -> None:
    async with growing(5000) as (pilot, timeline, trace):
        trace.grow(6000)
        assert await after(pilot, timeline) == 0
        assert timeline.row_count == 6000
        assert timeline.vertical_scrollbar.window_virtual_size == 6000
        assert timeline.max_scroll_y == 6000 - HEIGHT
        timeline.move_to(5999)
        await pilot.pause()
        assert "6000" in timeline.render_line(HEIGHT - 1).text


async def test_more_digits_in_the_numbers_have_all_rows_drawn_once() -> None:
    async with growing(9_999) as (pilot, timeline, trace):
        trace.grow(10_000)
        # Nothing that is drawn before the timeline is told stands elsewhere than the rest.
        assert timeline.render_row(0, 90).text == timeline.render_line(0).text[:90]
        assert await after(pilot, timeline) == HEIGHT
        trace.grow(10_001)
        assert await after(pilot, timeline) == 0


async def test_the_end_is_followed_until_it_is_the_real_one() -> None:
    async with growing(5000) as (pilot, timeline, trace):
        timeline.move_to_end()
        assert timeline.follows_end
        for length in (5100, 7000):
            trace.grow(length)
            assert await after(pilot, timeline) == HEIGHT
            assert timeline.index == length - 1
        trace.grow(7010, over=True)
        timeline.show_new_spans()
        assert timeline.index == 7009
        assert not timeline.follows_end
        await pilot.pause()
        assert isinstance(pilot.app, Bare)
        assert pilot.app.moves == [4999, 5099, 6999, 7009]


@pytest.mark.parametrize("length", [5000, 6000])
async def test_whoever_moves_is_left_where_they_are(length: int) -> None:
    async with growing(5000) as (pilot, timeline, trace):
        timeline.move_to_end()
        timeline.move_by(-1)
        trace.grow(length, over=True)
        await after(pilot, timeline)
        assert timeline.index == 4998


async def test_whoever_scrolls_away_is_left_where_they_are() -> None:
    async with growing(5000) as (pilot, timeline, trace):
        timeline.move_to_end()
        await pilot.pause()
        timeline.scroll_to(y=100, animate=False, force=True)
        trace.grow(6000)
        assert await after(pilot, timeline) == 0
        assert timeline.index == 4999
        assert not timeline.follows_end


async def test_the_last_row_of_a_whole_trace_or_of_a_filter_is_not_followed() -> None:
    async with growing(5000) as (_pilot, timeline, trace):
        timeline.set_filter([3, 5, 7])
        timeline.move_to_end()
        assert not timeline.follows_end
        timeline.set_filter(None)
        trace.grow(5000, over=True)
        timeline.move_to_end()
        assert not timeline.follows_end


async def test_more_of_a_filter_below_the_screen_draws_no_line() -> None:
    async with growing(5000) as (pilot, timeline, _trace):
        shown = list(range(0, 1000, 2))
        timeline.set_filter(shown)
        await pilot.pause()
        timeline.drawn = 0
        shown.extend(range(1000, 3000, 2))
        timeline.set_filter(shown)
        await pilot.pause()
        assert (timeline.drawn, timeline.row_count) == (0, 1500)


# The whole screen


def write_chat(path: Path, spans: int) -> Path:
    """A Codex rollout of messages, longer than what is read before its trace is shown."""
    meta = {"id": path.stem, "timestamp": "2026-01-01T00:00:00Z", "cwd": "/", "originator": "x"}
    lines = [{"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": meta}]
    for number in range(spans):
        content = [{"type": "output_text", "text": f"message {number} {'and so on ' * 30}"}]
        payload = {"type": "message", "role": "assistant", "content": content}
        lines.append(
            {"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": payload}
        )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    assert path.stat().st_size > 2 * FIRST_SLICE
    return path


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """A trace that is not read to its end at once."""
    return write_chat(tmp_path / "rollout-chat.jsonl", 3000)


async def test_the_last_span_is_gone_to_while_the_trace_is_read(chat: Path) -> None:
    async with stage(chat, settled=False) as on:
        await on.trace_shown()
        await on.send("G")
        await settle(on.pilot)
        assert on.number == 3000
        assert "3000 spans" in on.lines[0]
        assert "#3000 message" in on.text


async def test_any_key_ends_the_following(chat: Path) -> None:
    async with stage(chat) as on:
        timeline = on.annotate.timeline
        trace = PartOfTrace(500)
        timeline.show_trace(trace)
        await settle(on.pilot)
        await on.send("G")
        assert timeline.follows_end
        await on.send("1")
        trace.grow(700)
        timeline.show_new_spans()
        assert timeline.index == 499
        assert not timeline.follows_end


async def test_under_a_dialog_only_the_end_of_the_reading_is_taken_in(chat: Path) -> None:
    async with stage(chat) as on:
        timeline = on.annotate.timeline
        trace = PartOfTrace(500)
        timeline.show_trace(trace)
        await settle(on.pilot)
        await on.send(":")
        for length, over in ((600, False), (700, True)):
            trace.grow(length, over=over)
            timeline.post_message(Timeline.IndexGrown(trace, timeline.facts, over))
            await on.pilot.pause()
            assert timeline.row_count == (700 if over else 500)


async def test_what_rushes_by_does_not_count_as_read(chat: Path) -> None:
    async with stage(chat) as on:
        timeline = on.annotate.timeline
        assert on.annotate.drawn_spans.record_visible()
        trace = PartOfTrace(500)
        timeline.show_trace(trace)
        await settle(on.pilot)
        await on.send("G")
        assert not on.annotate.drawn_spans.record_visible()


async def test_marks_are_there_once_their_spans_are(chat: Path, tmp_path: Path) -> None:
    place = tmp_path / "w.db"
    suggest(place, read_trace(chat), [finding(read_trace(chat), "1.3", 2990, 2990)])
    async with stage(chat, workspace=place) as on:
        assert on.annotate.timeline.marks.marks_on(2989)
        assert "◌" in "".join(_column(on))


def _column(on: Stage) -> list[str]:
    view = on.annotate.query_one(Overview)
    return [view.render_line(y).text for y in range(view.size.height)]


async def test_a_trace_that_is_left_gives_its_memory_back(chat: Path, tmp_path: Path) -> None:
    other = write_chat(tmp_path / "rollout-other.jsonl", 2500)
    async with stage(chat, other) as on:
        await on.press("enter")
        trace = on.annotate.trace
        assert trace is not None
        survey = on.annotate.timeline.background
        left = weakref.ref(survey), weakref.ref(survey.totals)
        counted = weakref.ref(trace)
        del trace, survey
        await on.press("}")
        await on.press("j")
        # The thread that read it on was told to stop, and does so within a step.
        for _ in waiting.until(lambda: [one() for one in (*left, counted)] == [None] * 3):
            await on.pilot.pause(0.1)
            gc.collect()
