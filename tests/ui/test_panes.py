"""The panes of the annotate screen: full text, split, time bar, and saved sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.geometry import Offset

from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus
from mast_tui.ui.services.view_settings import ViewSettings, remembered_settings
from mast_tui.ui.trace_view.span_view import preview_start
from tests.ui.stage import Message, Stage, finding, missing, read_trace, stage, suggest, write_trace

LONG = "".join(f"line {number} of the story\n" for number in range(120)).rstrip("\n")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three messages, the second of 120 lines."""
    steps: list[Message] = [
        {"role": "user", "content": "Tell a story of pods."},
        {"role": "assistant", "content": LONG},
        {"role": "user", "content": "That was long."},
    ]
    return write_trace(tmp_path / "story.json", steps)


def lower_border(on: Stage) -> str:
    view = on.annotate.span_view
    return on.lines[view.region.bottom - 1][view.region.x : view.region.right]


async def test_reading_in_the_whole_window(path: Path) -> None:
    async with stage(path) as on:
        await on.press("j")
        height = on.annotate.span_view.lines_area.height
        assert f"lines 1–{height} of 120" in lower_border(on)
        await on.press("z")
        assert on.annotate.span_view.size.width > 100
        assert not on.annotate.timeline.is_on_screen
        height = on.annotate.span_view.lines_area.height
        assert height > 30
        assert f"lines 1–{height} of 120" in lower_border(on)
        await on.press("j", "j")
        assert f"lines 3–{height + 2} of 120" in lower_border(on)
        for key in ("j", "space", "ctrl+d", "d"):
            await on.press("g", "G", key)
            assert "–120 of 120" in lower_border(on)
            assert on.message == "The text ends here · ) next span"
        await on.press("z")
        for to_text, back in (("z", "z"), ("enter", "escape")):
            await on.press("g", "j", to_text, "j", "j", "j", back)
            assert on.annotate.timeline.is_on_screen
            assert on.app.focused is on.annotate.timeline
            assert on.number == 2
            await on.press("j")
            assert on.number == 3


async def test_the_cursor_stays_visible_in_a_lower_timeline(tmp_path: Path) -> None:
    steps: list[Message] = [{"role": "user", "content": f"step {n}"} for n in range(60)]
    async with stage(write_trace(tmp_path / "t.json", steps), size=(80, 24)) as on:
        timeline = on.annotate.timeline
        await on.press("G")
        assert timeline.cursor in timeline.rows_on_screen()
        previous = timeline.lines_area.height
        await on.press("Z")
        assert timeline.lines_area.height < previous
        assert timeline.cursor in timeline.rows_on_screen()
        assert "60 " in on.text


async def test_labelling_and_moving_while_reading(path: Path) -> None:
    async with stage(path) as on:
        await on.press("z", ")")
        assert on.number == 2
        assert "line 0 of the story" in on.text
        await on.press(";")
        assert "That was long." in on.text
        assert "lines" not in lower_border(on)
        await on.press("(", "'", "(")
        assert on.number == 1
        await on.press(")")
        assert on.number == 2
        assert on.annotate.panes.is_reading
        await on.press("z", "g")
        await on.press("z", ")", "1", "3")
        assert on.labels == {("1.3", 2, 2)}
        assert "1.3 ●" in on.lines[1]
        await on.press("w", "w", "w", "v", "2", "1")
        assert {label.target.quote for label in on.session.labels} == {None, "of"}
        await on.press("/", *"line 77", "enter")
        assert "line 77 of the story" in on.text
        await on.press("u")
        assert on.labels == {("1.3", 2, 2)}
        await on.press("g", "space")
        assert on.annotate.panes.is_reading
        assert "line 0 of the story" not in on.text
        await on.press("M")
        assert on.annotate.my_labels is on.annotate.focused
        assert not on.annotate.panes.is_reading


async def test_suggestions_are_answered_while_reading(path: Path, workspace: Path) -> None:
    trace = read_trace(path)
    findings = [finding(trace, "1.1", 2, 2, quote="line 99"), finding(trace, "1.3", 3, 3)]
    suggest(workspace, trace, findings)
    async with stage(path, workspace=workspace) as on:
        await on.press("z", "]")
        assert on.annotate.panes.is_reading
        assert on.number == 2
        assert not missing(on.text, "line 99 of the story", "because")
        await on.press("a")
        assert (on.labels, on.number) == ({("1.1", 2, 2)}, 3)
        await on.press("x")
        assert not on.session.pending


async def test_the_split_is_moved_by_keys_and_saved(path: Path) -> None:
    async with stage(path) as on:
        height = on.annotate.span_view.size.height
        await on.press("ctrl+up")
        taller = on.annotate.span_view.size.height
        assert taller > height
        assert "50 %" in on.message
        await on.press("ctrl+down")
        assert on.annotate.span_view.size.height == height
        await on.press("Z", "Z")
        tallest = on.annotate.span_view.size.height
        assert tallest > taller
    async with stage(path) as on:
        assert on.annotate.span_view.size.height == tallest
        await on.press("Z")
        assert on.annotate.span_view.size.height < height
        for _ in range(20):
            await on.press("ctrl+down")
        assert on.annotate.span_view.size.height >= 5


async def test_the_split_is_moved_by_the_mouse(path: Path) -> None:
    async with stage(path) as on:
        view = on.annotate.span_view
        top = view.region.y
        await on.pilot.mouse_down(view, offset=(10, 0))
        await on.pilot.hover(offset=Offset(10, top - 8))
        await on.pilot.mouse_up(offset=Offset(10, top - 8))
        await on.pilot.pause()
        assert abs(view.region.y - (top - 8)) <= 1
        now = view.region.y
        await on.pilot.hover(offset=Offset(10, top))
        await on.pilot.pause()
        assert view.region.y == now


async def test_the_time_bar_is_hidden_and_that_is_saved(tmp_path: Path) -> None:
    steps: list[Message] = [
        {"role": "user", "content": "word " * 40, "timestamp": f"2026-01-01T00:00:0{n}Z"}
        for n in range(3)
    ]
    path = write_trace(tmp_path / "timed.json", steps)
    async with stage(path) as on:
        row = on.row(1)
        assert "▕" in row
        await on.press("H")
        assert "▕" not in on.row(1)
        assert on.row(1).index("word") == row.index("word") - len("▕▏       ▏ ")
    async with stage(path) as on:
        assert "▕" not in on.row(1)
        await on.press("H")
        assert "▕" in on.row(1)


def test_invalid_settings_are_ignored() -> None:
    for text in ("", "{", "[]", '{"text_share": "a"}', '{"text_share": 900}', "\udcff"):
        ViewSettings(60, False).remember()
        assert remembered_settings() == ViewSettings(60, False)
        (path,) = Path.home().rglob("view.json")
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        assert remembered_settings() == ViewSettings(), text


async def test_the_timeline_has_half_of_a_low_screen(path: Path) -> None:
    async with stage(path, size=(80, 40)) as on:
        assert on.annotate.timeline.size.height >= 18
        await on.pilot.resize_terminal(80, 24)
        await on.press()
        assert on.annotate.timeline.size.height >= 11
    async with stage(path, size=(80, 24), blind=True) as on:
        assert on.annotate.timeline.size.height >= 14


def span_with(preview: str, kind: SpanKind = SpanKind.MESSAGE) -> Span:
    fields = (0, "k", kind, Role.AGENT, "a", None, None, None, None, SpanStatus.UNKNOWN)
    return Span(*fields, "", preview, False)


def test_texts_open_at_the_preview() -> None:
    text = "A prompt.\n" * 300 + "The\n answer  is 42 (really?)."
    assert preview_start(span_with("The answer is 42 (really?)."), text) == text.index("The\n")
    assert preview_start(span_with("A prompt. A prompt."), text) == 0
    assert preview_start(span_with("A"), "A prompt. A question. A") == len("A prompt. A question. ")
    assert preview_start(span_with("nowhere to be found"), text) == 0
    assert preview_start(span_with(""), text) == 0
    assert preview_start(span_with("The answer", SpanKind.TOOL_CALL), text) == 0


async def test_the_taxonomy_grows_on_a_wide_screen(path: Path) -> None:
    async with stage(path, size=(120, 50)) as on:
        for width, side in ((120, 40), (200, 52), (240, 52)):
            await on.pilot.resize_terminal(width, 50)
            await on.press()
            assert on.annotate.query_one("#side").outer_size.width == side
        assert "Unaware of termination conditions" in on.text
