"""Choosing a queue in the library, and going through it."""

from __future__ import annotations

from pathlib import Path

from mast_tui.ui.library.screen import LibraryScreen
from mast_tui.workspace import Workspace
from mast_tui.workspace.events.types import Revealed
from tests.ui.office import Office
from tests.ui.stage import Stage, stage


def listed(on: Stage) -> list[str]:
    (library,) = (s for s in on.app.screen_stack if isinstance(s, LibraryScreen))
    return [row.name for row in library.table.rows]


def reveals(office: Office) -> int:
    store = Workspace.open(office.workspace)
    try:
        return sum(isinstance(event.fact, Revealed) for event in store.events())
    finally:
        store.close()


async def test_a_queue_is_chosen_by_two_keys_and_gone_through_in_its_order(
    tmp_path: Path,
) -> None:
    office = Office(tmp_path / "set")
    for name in ("a", "b", "c", "d", "e"):
        office.file(name)
    office.label("alice", "b", {"1.3": (3, 8)})
    office.label("bob", "b", {})
    office.label("alice", "d", {"1.3": (3, 8)})
    async with stage(office.folder, workspace=office.workspace) as on:
        assert len(listed(on)) == 5
        await on.press("f")
        assert "mine to do" in on.text
        assert "in your 2 finished" in on.text
        await on.press("escape")
        assert len(listed(on)) == 5
        await on.press("f", "m")
        assert listed(on) == ["a.json", "c.json", "e.json"]
        assert "mine to do · 3 of 5 traces" in on.lines[0]
        await on.press("enter", "}")
        assert on.lines[0].startswith(" c ·")
        await on.press("1", "3", "D", "j", "}")
        assert on.lines[0].startswith(" e ·")
        await on.press("}")
        assert on.lines[0].startswith(" a ·")
        await on.press("escape")
        # What is begun comes first, by whatever it was begun.
        assert sorted(listed(on)) == ["a.json", "e.json"]
        assert reveals(office) == 0
        await on.press("f", "d")
        assert listed(on) == ["b.json"]
        assert "1.3" in on.text
        assert reveals(office) > 0
        await on.press("f", "s", "backspace", "backspace", *"2 7", "enter")
        drawn = listed(on)
        assert len(drawn) == 2
        assert "random sample, seed 7" in on.lines[0]
        await on.press("f", "u")
        assert "You have called no mode unsure" in on.text
        await on.press("f", "a", "f", "s", "backspace", "backspace", *"2 7", "enter")
        assert listed(on) == drawn
