"""The text of a span on screen: any length, wrapped or not, and only what changed is drawn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.pilot import Pilot

from mast_tui.ui.text.highlighting import TextPart
from mast_tui.ui.text.layout import CHUNK_CHARS
from mast_tui.ui.trace_view.span_view import COUNTED_CHARS, SpanView
from mast_tui.ui.wording import plain_title
from tests import waiting
from tests.ui.counting_text import CountingText

HEIGHT = 20


class Alone(App[None]):
    """Nothing but a text."""

    CSS = "SpanView { height: 1fr; } .span-view--match { text-style: underline; }"

    def compose(self) -> ComposeResult:
        """One text."""
        yield SpanView()


@asynccontextmanager
async def view_of(text: str) -> AsyncIterator[tuple[SpanView, Pilot[None]]]:
    """A view with this text, drawn."""
    async with Alone().run_test(size=(60, HEIGHT)) as pilot:
        view = pilot.app.query_one(SpanView)
        view.show_text(text)
        await pilot.pause()
        yield view, pilot


def shown(view: SpanView) -> list[str]:
    return [view.render_line(y).text.strip() for y in range(HEIGHT)]


def numbers(view: SpanView) -> list[int]:
    return [int(line.split()[1]) for line in shown(view) if line]


LOG = "".join(f"line {i} \n" for i in range(40_000)).rstrip("\n")


async def test_one_scrolls_through_line_by_line_page_by_page_and_to_both_ends() -> None:
    async with view_of(LOG) as (view, _):
        assert numbers(view) == list(range(HEIGHT))
        view.move_by(3)
        assert numbers(view)[0] == 3
        view.move_page(1)
        assert numbers(view)[0] == 3 + HEIGHT - 1
        view.move_to(view.row_count - 1)
        assert numbers(view) == list(range(40_000 - HEIGHT, 40_000))
        view.move_by(1)
        assert numbers(view)[-1] == 39_999
        view.move_page(-1)
        assert numbers(view)[-1] == 39_999 - HEIGHT + 1
        view.move_to(0)
        view.move_by(-1)
        assert numbers(view)[0] == 0


@pytest.mark.parametrize("way", [1, -1])
async def test_no_line_is_left_out_where_the_rows_above_or_below_were_only_estimated(
    way: int,
) -> None:
    # The first chunk has far more rows than the others, so that every estimate is wrong.
    text = "\n" * CHUNK_CHARS + "".join(f"line {i} {'x ' * 300}\n" for i in range(2500))
    assert len(text) > COUNTED_CHARS
    async with view_of(text) as (view, _):
        view.reveal(text.index("line 1200 "), text.index("line 1200 ") + 4)
        seen = [int(line.split()[1]) for line in shown(view) if line.startswith("line")]
        for _ in range(80):
            view.move_page(way)
            seen += [int(line.split()[1]) for line in shown(view) if line.startswith("line")]
        assert sorted(set(seen)) == list(range(min(seen), max(seen) + 1))
        assert max(seen) - min(seen) > 100


async def test_counting_the_rows_on_moves_nothing_on_screen() -> None:
    text = "\n" * CHUNK_CHARS + "".join(f"line {i} {'x ' * 300}\n" for i in range(1200))
    assert len(text) < COUNTED_CHARS
    async with Alone().run_test(size=(60, HEIGHT)) as pilot:
        view = pilot.app.query_one(SpanView)
        view.show_text(text)
        place = text.index("line 900 ")
        view.reveal(place, place + 4)
        before, rows = shown(view), view.row_count
        for _ in waiting.until(lambda: view._layout.complete):
            await pilot.pause()
        assert view.row_count != rows
        assert shown(view) == before
        assert "line 900" in "".join(before)


async def test_the_wheel_and_the_scroll_bar_go_through_the_text() -> None:
    async with view_of(LOG) as (view, pilot):
        view.scroll_to(y=5, animate=False, force=True)
        await pilot.pause()
        assert numbers(view)[0] == 5
        view.scroll_to(y=view.max_scroll_y, animate=False, force=True)
        await pilot.pause()
        assert numbers(view)[-1] == 39_999
        view.scroll_relative(y=-2, animate=False, force=True)
        await pilot.pause()
        assert numbers(view)[-1] == 39_997


HUGE = {
    "one line": lambda: "x" * 100_000_000,
    "short lines": lambda: "a line of a log\n" * 6_250_000,
}


@pytest.mark.parametrize("name", HUGE)
async def test_a_key_on_a_huge_text_looks_at_a_few_chunks(name: str) -> None:
    text = CountingText(HUGE[name]())
    few = 24 * CHUNK_CHARS
    async with view_of(text) as (view, pilot):
        assert text.looked < few
        steps: list[Callable[[], object]] = [
            lambda: view.move_by(1),
            lambda: view.move_page(1),
            lambda: view.move_to(view.row_count - 1),
            lambda: view.move_by(-1),
            lambda: view.reveal(50_000_000, 50_000_010),
            lambda: view.move_page(-1),
            lambda: view.scroll_to(y=view.max_scroll_y / 3, animate=False, force=True),
            lambda: view.show_highlights([TextPart(5, 9, "match")]),
        ]
        for step in steps:
            text.looked = 0
            step()
            await pilot.pause()
            assert text.looked < few
        text.looked = 0
        view.toggle_wrap()
        await pilot.pause()
        assert text.looked < 5 * few  # rows are as long as blocks now


@pytest.mark.parametrize("wrapped", [True, False])
async def test_a_place_is_brought_on_screen_wherever_it_is(wrapped: bool) -> None:
    text = LOG + "\n" + "y" * 3000 + "needle" + "y" * 3000 + "\n" + LOG
    start = text.index("needle")
    async with view_of(text) as (view, _):
        if not wrapped:
            view.toggle_wrap()
        view.reveal(start, start + 6)
        assert "needle" in "".join(shown(view))
        top = shown(view)
        view.reveal(start, start + 6)
        assert shown(view) == top
        # What is shown at a cell leads back to its place in the text.
        y = next(y for y, line in enumerate(shown(view)) if "needle" in line)
        x = view.render_line(y).text.index("needle")
        assert view.offset_at(x, y) == start


async def test_lines_run_on_to_the_side_and_are_scrolled_there() -> None:
    line = "".join(f"{i:>10}" for i in range(200))
    async with view_of(f"short\n{line}\nshort") as (view, _):
        assert not view.move_sideways(1)
        assert len([text for text in shown(view) if text]) > 10
        view.toggle_wrap()
        assert len([text for text in shown(view) if text]) == 3
        seen = set(shown(view)[1].split())
        for _ in range(400):
            assert view.move_sideways(1)
            seen |= set(shown(view)[1].split())
        assert "199" in shown(view)[1]
        assert {str(i) for i in range(200)} <= seen
        for _ in range(400):
            view.move_sideways(-1)
        assert shown(view)[0] == "short"
        view.toggle_wrap()
        assert len([text for text in shown(view) if text]) > 10


async def test_another_width_keeps_the_first_line_on_screen() -> None:
    async with view_of(LOG) as (view, pilot):
        place = LOG.index("line 20000 ")
        view.reveal(place, place + 4)
        first = numbers(view)[0]
        await pilot.resize_terminal(40, HEIGHT)
        await pilot.pause()
        assert numbers(view)[0] == first


async def drawn_by(view: SpanView, pilot: Pilot[None]) -> list[Region]:
    """What was asked to be drawn since the last picture."""
    regions = list(view._repaint_regions)
    await pilot.pause()
    return regions


async def test_only_lines_that_look_different_are_drawn() -> None:
    async with view_of("one\ntwo\nthree") as (view, pilot):
        view.show_text("one\n2\nthree")
        assert [(r.y, r.height) for r in await drawn_by(view, pilot)] == [(1, 1)]
        view.show_text("one\n2\nthree")
        assert await drawn_by(view, pilot) == []
        view.show_highlights([TextPart(0, 3, "match")])
        assert [(r.y, r.height) for r in await drawn_by(view, pilot)] == [(0, 1)]


async def test_a_title_draws_its_own_line_of_the_border() -> None:
    async with view_of("one") as (view, pilot):
        view.styles.border = ("round", "white")
        await pilot.pause()
        view.show_titles(plain_title("#1 message"), plain_title("line 1"))
        await pilot.pause()
        view.show_titles(plain_title("#2 message"), plain_title("line 1"))
        regions = await drawn_by(view, pilot)
        assert [(r.y, r.height) for r in regions] == [(0, 1)]
        assert regions[0].width < 20
        view.show_titles(plain_title("#2 message"), plain_title("line 22"))
        assert [(r.y, r.height) for r in await drawn_by(view, pilot)] == [(HEIGHT - 1, 1)]
