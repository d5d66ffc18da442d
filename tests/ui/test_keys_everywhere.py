"""Keys that work everywhere: leaving, the palette, unknown keys, and themes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.configuration import configuration_path, read_configuration
from mast_tui.ui.dialogs.dialog import Ask
from mast_tui.ui.dialogs.finder import ChoiceList, FinderDialog, Palette, ThemeChoice
from mast_tui.ui.library.screen import LibraryScreen
from mast_tui.ui.study.screen import StudyScreen
from tests.cli.conftest import configure
from tests.ui.stage import missing, stage


async def test_q_leaves_one_screen_or_panel_at_a_time(small: Path, tmp_path: Path) -> None:
    async with stage(small, workspace=tmp_path / "w.db") as on:
        await on.press("tab", "q")
        assert on.annotate.timeline.has_focus
        await on.press("q")
        assert isinstance(on.app.screen, LibraryScreen)
        await on.press("/", *"none", "enter", "q")
        assert isinstance(on.app.screen, LibraryScreen)
        assert on.app.screen.query_one("#filter").display is False
        await on.press("q")
        assert isinstance(on.app.screen, Ask)
        await on.press("n")
        assert isinstance(on.app.screen, LibraryScreen)
        await on.press("K", "q")
        assert isinstance(on.app.screen, LibraryScreen)
        await on.send("q", "q")
        await on.until(lambda: on.app.return_code == 0)


async def test_a_list_without_matches_keeps_the_focus(small: Path, tmp_path: Path) -> None:
    async with stage(small, workspace=tmp_path / "w.db") as on:
        await on.press("q", "/", "s", "enter")
        table = on.screen(LibraryScreen).table
        assert table.has_focus
        table.display = False
        await on.pilot.pause()
        assert table.has_focus


async def test_half_pages_and_panes(small: Path, tmp_path: Path) -> None:
    async with stage(small, workspace=tmp_path / "w.db", size=(120, 24)) as on:
        half = on.annotate.timeline.lines_area.height // 2
        await on.press("ctrl+d")
        assert on.number == 1 + half
        await on.press("ctrl+u")
        assert on.number == 1
        await on.press("tab")
        assert on.annotate.span_view.has_focus
        await on.press("escape")
        assert on.annotate.timeline.has_focus


async def test_unknown_keys_and_the_palette(small: Path, tmp_path: Path) -> None:
    async with stage(small, workspace=tmp_path / "w.db") as on:
        await on.press(":", "#", "5", "enter")
        assert on.number == 5
        await on.press(":", *"#99999", "enter")
        assert on.message == "Nothing here has the number or name “#99999”"
        for key in (":", "ctrl+p"):
            await on.press(key)
            assert isinstance(on.app.screen, Palette), key
            await on.press(*"send")
            assert not missing(on.text, "No action matches “send”", "Go to span “send”")
            await on.press(*["backspace"] * 4, *"dark")
            assert on.app.screen.query_one(ChoiceList).choices[0].code == "F9"
            await on.press("enter")
            assert isinstance(on.app.screen, ThemeChoice)
            await on.press("escape")
        for key, key_text in (("@", "@"), ("ctrl+x", "^x"), ("f7", "F7")):
            await on.press(key)
            assert on.message == f"{key_text} does nothing here · ? shows the keys"
        await on.press("escape", "L", "@")
        assert "does nothing here" in on.lines[-1]


async def test_themes_are_previewed_and_saved(small: Path, tmp_path: Path) -> None:
    path = configuration_path()
    async with stage(small, workspace=tmp_path / "w.db") as on:
        await on.press("f9", *"nord", "enter")
    assert path.read_text() == 'theme = "nord"\n'
    path.write_text('# mine\nannotator = "alice"\n\n[keys]\npreset = "vim"\n')
    async with stage(small, workspace=tmp_path / "w.db") as on:
        previous_theme = on.app.theme
        await on.press("f9", *"nord")
        assert on.app.theme == "nord"
        await on.press("escape")
        assert on.app.theme == previous_theme
        assert "theme" not in path.read_text()
        await on.press("f9", *"nord", "enter")
        assert on.app.theme == "nord"
        # What was drawn in the theme of before is drawn anew.
        timeline = on.annotate.timeline
        (*_, last) = timeline.render_line(5)
        assert last.style is not None
        assert last.style.bgcolor == timeline.rich_style.bgcolor
    assert path.read_text().startswith('# mine\nannotator = "alice"\n')
    config = read_configuration(path)
    assert (config.theme, config.annotator, config.problems) == ("nord", "alice", ())
    async with stage(small, workspace=tmp_path / "w.db") as on:
        assert on.app.theme == "nord"


async def test_a_broken_configuration_is_not_written(small: Path, tmp_path: Path) -> None:
    path = configure("theme = \n")
    async with stage(small, workspace=tmp_path / "w.db") as on:
        # An equal notice replaces the one that is shown.
        await on.press("f9", *"nord", "enter", "f9", *"nord", "enter")
        assert ["The theme is not saved" in notice for notice in on.notices].count(True) == 1
    assert path.read_text() == "theme = \n"


@pytest.mark.parametrize("size", [(60, 12), (120, 15)])
async def test_cursor_and_text_are_visible_on_low_screens(
    small: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    async with stage(small, workspace=tmp_path / "w.db", size=size) as on:
        await on.press(*"jjjjjjj")
        rows = [line for line in on.lines if line[1:2] == "▌"]
        assert len(rows) == 1
        assert " 8 " in rows[0]
        assert on.annotate.timeline.lines_area.height >= 3
        assert on.annotate.span_view.lines_area.height >= 2


async def test_lists_of_choices_use_free_columns(small: Path, tmp_path: Path) -> None:
    async with stage(small, workspace=tmp_path / "w.db", size=(140, 40)) as on:
        for key in ("V", ":", "f9"):
            await on.pilot.resize_terminal(140, 40)
            await on.press(key)
            lines = on.screen(FinderDialog).query_one(ChoiceList)
            assert lines.row_count
            for row, choice in enumerate(lines.choices):
                row_text = lines.render_row(row, lines.lines_area.width).text
                assert choice.name in row_text
                assert choice.detail in row_text
            await on.pilot.resize_terminal(60, 24)
            await on.press("down")
            assert lines.cursor == 1
            assert on.app.screen.query_one(".dialog").outer_size.width <= 60
            await on.press("escape")


async def test_the_library_finds_names_and_follows_the_open_trace(runs: Path) -> None:
    async with stage(runs) as on:
        table = on.screen(LibraryScreen).table
        await on.press(":", *"UN-7", "enter")
        assert table.cursor == 7
        await on.press("enter", "}", "L")
        assert table.rows[table.cursor].name == "run-8.json"
        await on.press("Y", "K", "escape")
        on.screen(StudyScreen)
        await on.press("K", "Y", "escape", "escape")
        on.screen(LibraryScreen)
