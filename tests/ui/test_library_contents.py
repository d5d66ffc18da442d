"""The search in the texts of all traces from the library."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.ui.library import contents as contents_module
from mast_tui.ui.library.screen import LibraryScreen
from tests import waiting
from tests.ui.stage import SMALL, Stage, stage, write_trace


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three traces, of which two mention a second pod, and a file that cannot be read."""
    folder = tmp_path / "runs"
    for name, count in (("a", 12), ("b", 2), ("c", 9)):
        write_trace(folder / f"{name}.json", [{**SMALL[0], "name": name}, *SMALL[1:count]])
    return folder


async def search_for(on: Stage, *keys: str) -> LibraryScreen:
    """Type a text to search, and wait for all hits."""
    await on.press(*keys)
    screen = on.open_screen(LibraryScreen)
    for _ in waiting.until(lambda: screen.contents.done):
        await on.pilot.pause()
    await on.pilot.pause()
    return screen


def rows(screen: LibraryScreen) -> list[tuple[str, int]]:
    return [(row.name, row.hit.span + 1) for row in screen.contents.list.rows]


async def test_hits_replace_the_traces(runs: Path, tmp_path: Path) -> None:
    async with stage(runs, workspace=tmp_path / "w.db") as on:
        await on.press("j")
        screen = await search_for(on, "F", *"second", "space", *"pod", "enter")
        assert rows(screen) == [("a.json", 9), ("c.json", 9)]
        assert (screen.contents.list.display, screen.table.display) == (True, False)
        assert next(screen.contents.title_parts()) == "2 spans in 2 traces"
        assert [trace.path.stem for trace in screen.report_to_write().listed] == ["a", "c"]
        await on.press("o")
        assert screen.hints.message == "This key acts on the list of traces: Esc shows it"
        await on.press("escape")
        assert (screen.contents.list.display, screen.table.display) == (False, True)
        assert (screen.table.cursor, screen.focused) == (1, screen.table)
        await on.press("/", *"b.js")
        screen = on.open_screen(LibraryScreen)
        assert [row.name for row in screen.table.rows] == ["b.json"]
        await on.press("tab")
        assert screen.contents.line.has_focus
        assert (screen.contents.line.value, len(screen.table.rows)) == ("b.js", 3)
        await on.press("tab")
        assert [row.name for row in screen.table.rows] == ["b.json"]
        assert not screen.contents.line.display
        await on.press("escape")
        screen = await search_for(on, "F", *"zebra", "enter")
        assert screen.contents.empty_text().startswith("No span contains “zebra”.")
        await on.press("enter")
        assert on.app.screen is screen


async def test_enter_opens_the_span_of_a_hit(runs: Path, tmp_path: Path) -> None:
    async with stage(runs, workspace=tmp_path / "w.db") as on:
        screen = await search_for(on, "F", *"second", "enter")
        await on.press("j", "enter")
        assert on.annotate.trace is not None
        assert (on.annotate.trace.path.name, on.number) == ("c.json", 9)
        assert on.annotate.state.needle == "second"
        await on.press("escape", "escape")
        assert on.app.screen is screen
        assert screen.contents.list.display
        assert screen.contents.list.cursor == 1


async def test_patterns_and_unread_files(runs: Path, tmp_path: Path) -> None:
    (runs / "d.json").write_text('{"pod": nothing,,}')
    async with stage(runs, workspace=tmp_path / "w.db") as on:
        screen = await search_for(on, "F", "/", *"crash[a-z]+", "/", "enter")
        assert [number for _, number in rows(screen)] == [4, 6, 8, 9, 4, 6, 8, 9]
        await on.press("F")
        screen.contents.line.value = "/(/"
        await on.press("enter")
        assert "Not a regular expression" in screen.hints.message
        await on.press("escape")
        screen = await search_for(on, "F", *"pod", "enter")
        assert screen.hints.message.startswith("Not searched: d.json: not JSON")
        assert "1 file not searched" in screen.contents.title_parts()


async def test_hits_wait_for_their_traces_and_end_at_a_limit(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(runs, workspace=tmp_path / "w.db") as on:
        catalog = on.app.catalog
        trace_id, trace = next(item for item in catalog.traces.items() if item[1].path.stem == "a")
        catalog.remove([trace_id])
        catalog.complete = False
        screen = await search_for(on, "F", *"second", "enter")
        assert rows(screen) == [("c.json", 9)]
        assert "1 more span in traces still being read …" in screen.contents.title_parts()
        catalog.add_traces([trace])
        catalog.complete = True
        screen.refresh_rows()
        assert rows(screen) == [("c.json", 9), ("a.json", 9)]
        monkeypatch.setattr(contents_module, "MOST_HITS", 3)
        await on.press("escape")
        screen = await search_for(on, "F", *"pod", "enter")
        assert len(rows(screen)) == 3
        assert "the rest is not listed" in screen.contents.title_parts()
