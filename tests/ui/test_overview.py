"""The overview of a trace beside the timeline."""

from __future__ import annotations

from pathlib import Path

from mast_tui.traces.model import Span
from mast_tui.ui.trace_view.background_index import BackgroundIndex, CellContent
from mast_tui.ui.trace_view.overview import GLYPHS, Overview
from tests.ui.build import SmallTrace
from tests.ui.stage import (
    SMALL,
    Message,
    Stage,
    WidgetApp,
    call,
    finding,
    read_trace,
    stage,
    suggest,
    write_trace,
)


def failed_result(number: int) -> Message:
    return {
        "role": "tool",
        "tool_call_id": f"call_{number}",
        "content": [{"type": "tool_result", "is_error": True, "content": "no such pod"}],
        "is_error": True,
    }


def column(on: Stage) -> list[str]:
    view = on.annotate.overview
    return [view.render_line(y).text for y in range(len(view.cells))]


async def test_labels_suggestions_and_matches_are_shown(small: Path, workspace: Path) -> None:
    trace = read_trace(small)
    suggest(workspace, trace, [finding(trace, "1.3", 7, 8)])
    async with stage(small, workspace=workspace) as on:
        assert len(set(GLYPHS.values())) == len(CellContent) == len(GLYPHS)
        assert on.annotate.overview.size.width == 2
        assert len(on.annotate.overview.cells) == len(SMALL)
        await on.press("E")
        assert "No step of this trace is known to have failed" in on.message
        assert on.number == 1
        plain = [GLYPHS[m] for m in (CellContent.USER, CellContent.AGENT, *[CellContent.TOOL] * 6)]
        glyphs = [text[1] for text in column(on)]
        assert (glyphs[:6], glyphs[6:8]) == (plain[:6], [GLYPHS[CellContent.SUGGESTION]] * 2)
        await on.press(*"jj13")
        assert column(on)[2] == "▶●"
        await on.press("u")
        assert column(on)[2] == "▶░"
        await on.press("/", *"restarted", "enter")
        assert [text[1] for text in column(on)].count("◆") == 1
        await on.press("escape")
        assert "◆" not in "".join(column(on))


async def test_cursor_screen_and_clicks_in_a_long_trace(tmp_path: Path) -> None:
    steps: list[Message] = [{"role": "user", "content": f"step {i}"} for i in range(2000)]
    async with stage(write_trace(tmp_path / "long.json", steps)) as on:
        height = on.annotate.overview.size.height
        assert column(on)[0].startswith("▶")
        await on.press("G")
        assert [i for i, text in enumerate(column(on)) if text.startswith("▶")] == [height - 1]
        await on.press(":", *"1000", "enter")
        assert [i for i, text in enumerate(column(on)) if text.startswith("▶")] == [
            1000 * height // 2000 - (1000 * height % 2000 == 0)
        ]
        on.annotate.timeline.scroll_to(y=0, animate=False, force=True)
        await on.press()
        assert column(on)[0].startswith("▏")
        for y in (30, 3):
            await on.pilot.click(Overview, offset=(1, y))
            await on.press()
            assert on.number - 1 == on.annotate.overview.cells[y].first
            assert f"#{on.number} message" in on.text


async def test_visible_rows_follow_the_height_of_the_timeline(tmp_path: Path) -> None:
    steps: list[Message] = [{"role": "user", "content": f"step {i}"} for i in range(40)]
    async with stage(write_trace(tmp_path / "long.json", steps)) as on:
        earlier = [text[0] for text in column(on)]
        on.annotate.timeline.styles.height = 8
        await on.press()
        on_screen = len(on.annotate.timeline.rows_on_screen())
        after = [text[0] for text in column(on)]
        assert on_screen < 8
        assert after.count("▏") + 1 <= on_screen < earlier.count("▏")


async def test_keys_go_to_errors(tmp_path: Path) -> None:
    steps: list[Message] = [{"role": "user", "content": "go"}]
    for number in range(6):
        steps += [call(number, "run", "{}"), failed_result(number)]
    async with stage(write_trace(tmp_path / "failing.json", steps)) as on:
        errors = [index + 1 for index in on.annotate.overview.totals.errors]
        assert len(errors) == 6
        seen = []
        for _ in errors:
            await on.press("E")
            seen.append(on.number)
        assert seen == errors
        await on.press("E")
        assert "No error after this step" in on.message
        await on.press("B")
        assert (on.number, on.message) == (errors[-2], "")


class EqualSpans(SmallTrace):
    """Equal spans, of which some are read."""

    read_count = 0

    def __len__(self) -> int:
        return self.read_count

    def span(self, index: int, /) -> Span:
        return super().span(0)


async def test_a_growing_trace_fills_the_column() -> None:
    trace = EqualSpans("step")
    index = BackgroundIndex()
    async with WidgetApp(Overview()).run_test(size=(2, 30)) as pilot:
        view = pilot.app.query_one(Overview)
        view.show_trace(trace, index)
        assert list(view.cells) == []
        for known_spans in (3, 40, 5000):
            trace.read_count = known_spans
            view.update_cells()
            assert view.cells[-1].content is CellContent.UNSEEN
            assert not view.complete
            while index.step(trace):
                pass
            view.update_cells()
            assert view.complete
            assert (len(view.cells), view.cells[-1].end) == (min(30, known_spans), known_spans)
            assert all(cell.content is CellContent.AGENT for cell in view.cells)


async def test_many_errors_are_underlined(tmp_path: Path) -> None:
    steps: list[Message] = []
    for number in range(200):
        steps += [call(number, "run", "{}"), failed_result(number)]
    async with stage(write_trace(tmp_path / "failing.json", steps)) as on:
        view = on.annotate.overview
        assert {text[1] for text in column(on)} == {GLYPHS[CellContent.TOOL]}
        glyphs = [list(view.render_line(y))[-1] for y in range(len(view.cells))]
        assert all(glyph.style is not None and glyph.style.underline for glyph in glyphs)
        await on.press("E")
        assert on.number == 2
