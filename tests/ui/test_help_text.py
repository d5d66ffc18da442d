"""The help screen: all keys of a screen in sections, those that a person has set, and its signs."""

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
def test_every_action_of_the_screen_and_of_everywhere_is_explained_once(where: Where) -> None:
    found = entries_of(where)
    for place in {where, Where.EVERYWHERE}:
        for action in actions_for(place):
            if action.name.startswith(("digit_", "side_")):
                continue
            keys = "  ".join(key_text(key) for key in action.keys)
            assert found.count((keys, action.help)) == 1


def test_every_sign_of_a_row_and_of_the_overview_is_explained() -> None:
    keys = " ".join(key for key, _ in entries_of(Where.ANNOTATE))
    for sign in (*GLYPHS.values(), *STRIP.values(), FIRST, BETWEEN, LAST, CURSOR, "⋮", "┃"):
        assert sign.strip() in keys


@pytest.mark.parametrize("where", list(Where))
def test_each_section_stands_once(where: Where) -> None:
    titles = [section.title for section in sections_of(where, {})]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize(("where", "keys"), [(Where.ANNOTATE, "0…9"), (Where.ADJUDICATE, "1…9")])
def test_digits_take_one_line(where: Where, keys: str) -> None:
    assert sum(keys in key for key, _ in entries_of(where)) == 1


def test_other_screens_are_left_out() -> None:
    assert "Adjudicate" not in [section.title for section in sections_of(Where.LIBRARY, {})]


def test_keys_of_ones_own_stand_in_place_of_ours() -> None:
    sections = sections_of(Where.ANNOTATE, {"annotate.note": ("ctrl+n", "i")})
    (keys,) = [
        key for s in sections for key, words in s.entries if words.startswith("Write a note")
    ]
    assert keys.split() == ["^n", "i"]


def test_what_is_looked_for_is_found_in_keys_words_and_headings() -> None:
    sections = [
        HelpSection("Move", [("j", "One line down"), ("k", "One line up")]),
        HelpSection("Label", [("t", "Label the whole trace")]),
    ]
    assert [*matching(sections, "DOWN")] == [HelpSection("Move", [("j", "One line down")])]
    assert [*matching(sections, " move ")] == sections[:1]
    assert [*matching(sections, "k ")] == [HelpSection("Move", [("k", "One line up")])]
    assert [*matching(sections, "")] == sections
    assert [*matching(sections, "nowhere")] == []


def lines_of(on: Stage) -> HelpLines:
    return on.app.screen.query_one(HelpLines)


async def test_it_scrolls_by_lines_pages_and_to_its_ends(small: Path, tmp_path: Path) -> None:
    async with stage(small, workspace=tmp_path / "w.db", size=(80, 24)) as on:
        await on.press("?")
        lines = lines_of(on)
        bottom = lines.row_count - lines.lines_area.height
        for key, place in (
            ("j", 1),
            ("k", 0),
            ("ctrl+d", lines.lines_area.height // 2),
            ("ctrl+u", 0),
            ("pagedown", lines.lines_area.height - 1),
            ("G", bottom),
            ("g", 0),
        ):
            await on.press(key)
            assert lines.scroll_y == place, key


async def test_a_line_that_is_wrapped_goes_on_under_its_beginning(
    small: Path, tmp_path: Path
) -> None:
    async with stage(small, workspace=tmp_path / "w.db", size=(60, 24)) as on:
        await on.press("?")
        lines = lines_of(on)
        rows = [lines.render_row(row, 60).text for row in range(lines.row_count)]
        (place,) = [n for n, row in enumerate(rows) if "To the last line" in row]
        first = rows[place].index("To the last line")
        wrapped = [row for row in rows if row.strip() and row[:first].isspace()]
        assert wrapped
        assert all(row[first] != " " for row in wrapped)


async def test_slash_narrows_it_and_escape_shows_all_again(small: Path, tmp_path: Path) -> None:
    async with stage(small, workspace=tmp_path / "w.db") as on:
        await on.press("?")
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
