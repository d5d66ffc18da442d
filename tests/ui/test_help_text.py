"""The help screen: keys in sections, set keys, signs, search, and scrolling."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.ui.actions.registry import Where, actions_for, key_text
from mast_tui.ui.dialogs.help import (
    Entry,
    HelpLines,
    HelpScreen,
    HelpSection,
    matching,
    sections_of,
)
from mast_tui.ui.trace_view.gutter import BETWEEN, FIRST, GLYPHS, LAST
from mast_tui.ui.trace_view.overview import CURSOR
from mast_tui.ui.trace_view.overview import GLYPHS as STRIP
from tests.ui.stage import Stage, stage


def entries_of(where: Where) -> list[Entry]:
    return [entry for section in sections_of(where, {}) for entry in section.entries]


@pytest.mark.parametrize("where", list(Where))
def test_every_action_of_a_screen_is_explained_once(where: Where) -> None:
    entries = entries_of(where)
    for screen in {where, Where.EVERYWHERE}:
        for action in actions_for(screen):
            if not action.name.startswith(("digit_", "side_")):
                keys = "  ".join(key_text(key) for key in action.keys)
                assert entries.count((keys, action.help)) == 1
    titles = [section.title for section in sections_of(where, {})]
    assert len(set(titles)) == len(titles)
    for screen, digits in ((Where.ANNOTATE, "0…9"), (Where.ADJUDICATE, "1…9")):
        assert sum(digits in key for key, _ in entries) == (where is screen)


def test_all_signs_are_explained() -> None:
    keys = " ".join(key for key, _ in entries_of(Where.ANNOTATE))
    for sign in (*GLYPHS.values(), *STRIP.values(), FIRST, BETWEEN, LAST, CURSOR, "⋮", "┃"):
        assert sign.strip() in keys


def test_keys_texts_and_headings_are_searched() -> None:
    sections = [
        HelpSection("Move", [("j", "One line down"), ("k", "One line up")]),
        HelpSection("Label", [("t", "Label the whole trace")]),
    ]
    assert [*matching(sections, "DOWN")] == [HelpSection("Move", [("j", "One line down")])]
    assert [*matching(sections, " move ")] == sections[:1]
    assert [*matching(sections, "k ")] == [HelpSection("Move", [("k", "One line up")])]
    assert ([*matching(sections, "")], [*matching(sections, "nowhere")]) == (sections, [])


def lines_of(on: Stage) -> HelpLines:
    return on.app.screen.query_one(HelpLines)


async def test_the_help_scrolls_and_is_searched(small: Path, tmp_path: Path) -> None:
    async with stage(small, workspace=tmp_path / "w.db", size=(80, 24)) as on:
        await on.press("?")
        lines = lines_of(on)
        bottom = lines.row_count - lines.lines_area.height
        for key, scroll_offset in (
            ("j", 1),
            ("k", 0),
            ("ctrl+d", lines.lines_area.height // 2),
            ("ctrl+u", 0),
            ("pagedown", lines.lines_area.height - 1),
            ("G", bottom),
            ("g", 0),
        ):
            await on.press(key)
            assert lines.scroll_y == scroll_offset, key
        whole = lines_of(on).row_count
        await on.press("/", *"wrap long", "enter")
        assert "Wrap long lines" in on.text
        assert "Label the whole trace" not in on.text
        await on.press("escape")
        assert lines_of(on).row_count == whole
        await on.press("/", *"zzz")
        assert "No match for “zzz”" in on.text
        await on.press("escape", "escape")
        assert not isinstance(on.app.screen, HelpScreen)


async def test_wrapped_lines_are_indented(small: Path, tmp_path: Path) -> None:
    async with stage(small, workspace=tmp_path / "w.db", size=(60, 24)) as on:
        await on.press("?")
        lines = lines_of(on)
        rows = [lines.render_row(row, 60).text for row in range(lines.row_count)]
        (number,) = [n for n, row in enumerate(rows) if "To the last line" in row]
        first = rows[number].index("To the last line")
        wrapped = [row for row in rows if row.strip() and row[:first].isspace()]
        assert wrapped
        assert all(row[first] != " " for row in wrapped)
