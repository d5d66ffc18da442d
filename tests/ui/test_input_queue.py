"""The order of keys, clicks and pastes."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events
from textual.screen import ModalScreen
from textual.widgets import Input

from mast_tui.ui.library.screen import LibraryScreen
from mast_tui.ui.services.traces import TraceService
from tests.ui.settle import settle
from tests.ui.stage import SMALL, Stage, stage, write_trace


class Question(ModalScreen[str]):
    """A dialog with a text field."""

    def compose(self):  # type: ignore[no-untyped-def]
        yield Input(id="text")


async def test_keys_clicks_pastes_and_changes_of_focus_keep_their_order(
    small: Path, tmp_path: Path
) -> None:
    async with stage(small, workspace=tmp_path / "w.db") as on:
        for report, digits in ((events.AppBlur, "13"), (events.AppFocus, "26")):
            on.app.post_message(report())
            await on.press(*digits)
        assert on.labels == {("1.3", 1, 1), ("2.6", 1, 1)}
        await on.undo_all()
        on.app.post_message(events.Key("slash", "/"))
        on.app.post_message(events.Paste("1\n3"))
        await on.press("4")
        assert on.annotate.search.line.value == "1 34"
        assert not on.labels
        await on.press("escape")
        _post_click(on, row=4)
        await on.press("1", "3")
        assert on.labels == {("1.3", 5, 5)}
        on.app.post_message(events.AppBlur())
        await on.app.push_screen(Question())
        await settle(on.pilot)
        await on.press("a", "d", "a")
        assert on.app.screen.query_one(Input).value == "ada"


def _post_click(on: Stage, row: int) -> None:
    """Post the events that a terminal sends for a click on a row of the timeline."""
    area = on.annotate.timeline.content_region
    for kind in (events.MouseDown, events.MouseUp):
        x = area.x + 20
        y = area.y + row
        on.app.post_message(kind(None, x, y, 0, 0, 1, False, False, False, screen_x=x, screen_y=y))


async def test_keys_wait_for_the_saved_position(tmp_path: Path) -> None:
    write_trace(tmp_path / "runs" / "a.json")
    write_trace(tmp_path / "runs" / "b.json", SMALL[:3])
    async with stage(tmp_path / "runs", workspace=tmp_path / "w.db") as on:
        await on.press("enter", "j", "j", "j", "}")
        await on.press("{", "j", "1", "3")
        assert on.labels == {("1.3", 5, 5)}


async def test_enter_in_the_library_waits_for_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_trace(tmp_path / "runs" / "a.json")
    begin = TraceService.begin
    monkeypatch.setattr(TraceService, "begin", lambda _self: None)
    async with stage(tmp_path / "runs", workspace=tmp_path / "w.db") as on:
        on.app.post_message(events.Key("enter", "\r"))
        await on.until(lambda: on.app.input_queue.blocked)
        begin(on.app.traces)
        await on.wait_for_trace()
        assert on.number == 1


async def test_keys_in_a_line_do_not_wait_for_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_trace(tmp_path / "runs" / "a.json")
    monkeypatch.setattr(TraceService, "begin", lambda _self: None)
    async with stage(tmp_path / "runs", workspace=tmp_path / "w.db") as on:
        await on.press("/", *"jkGno", "enter")
        assert on.app.screen.query_one("#filter", Input).value == "jkGno"
        await on.press("q")
        assert not on.app.screen.query_one("#filter").display


@pytest.fixture
def slow_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the first screen open without the trace."""
    monkeypatch.setattr(TraceService, "begin", lambda _self: None)
    monkeypatch.setattr("mast_tui.ui.services.traces.Prefetch.first_spans", lambda *_: None)


@pytest.mark.usefixtures("slow_reading")
async def test_keys_wait_for_the_trace(small: Path, tmp_path: Path) -> None:
    async with stage(small, workspace=tmp_path / "w.db") as on:
        for key in ("j", "1", "3"):
            on.app.post_message(events.Key(key, key))
        on.app.post_message(
            events.MouseMove(None, 5, 5, 1, 1, 0, False, False, False, screen_x=5, screen_y=5)
        )
        await on.until(lambda: on.app.input_queue.blocked)
        on.app.show_new_traces()  # there are none before the file is read
        show_trace(on)
        await on.press()
        assert on.labels == {("1.3", 2, 2)}


@pytest.mark.usefixtures("slow_reading")
async def test_leaving_drops_the_waiting_keys(small: Path, tmp_path: Path) -> None:
    async with stage(small, workspace=tmp_path / "w.db") as on:
        for key in ("j", "1", "3"):
            on.app.post_message(events.Key(key, key))
        await on.press("L")
        assert isinstance(on.app.screen, LibraryScreen)
        assert on.app.input_queue.idle


def show_trace(on: Stage) -> None:
    report = on.app.traces.prefetch.report()
    assert report is not None
    on.app.catalog.add(report)
    on.app.show_new_traces()
