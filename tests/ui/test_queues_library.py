"""Choosing a queue in the library, and going through it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from mast_tui.exchange.migration.mapping import CodebookMap
from mast_tui.exchange.migration.migrate import migrate
from mast_tui.labels import AnnotatorKind, Target
from mast_tui.session import Session
from mast_tui.taxonomy.model import Mode
from mast_tui.traces.library import read_file
from mast_tui.ui.library.screen import LibraryScreen
from mast_tui.workspace import Workspace
from mast_tui.workspace.events.types import Revealed
from tests.taxonomy.rewording import changed
from tests.ui.office import Office
from tests.ui.stage import MAST, Stage, stage


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
        await on.press("/", *"b.json", "enter")
        assert "No trace of this queue matches “b.json”: 1 match outside of it." in on.text
        assert "f chooses another queue" in on.text
        await on.press("escape")
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
        assert "You have marked no mode as unsure" in on.text
        await on.press("f", "a", "f", "s", "backspace", "backspace", *"2 7", "enter")
        assert listed(on) == drawn


def two_in_one(modes: list[Mode]) -> list[Mode]:
    """The modes with one, 1.3, in the place of 1.3 and 1.4."""
    bare = [replace(mode, confusable=()) for mode in modes]
    return [*bare[:2], replace(bare[2], slug="both", name="Both"), *bare[4:]]


async def test_a_changed_codebook_has_a_queue_that_names_the_modes(tmp_path: Path) -> None:
    office = Office(tmp_path / "set")
    old = changed(MAST, two_in_one, version="2")
    parts = ("step_repetition", "loss_of_conversation_history")
    targets = {mode.slug: (mode.slug,) for mode in old.modes} | {"both": parts}
    with closing(Workspace.open(office.workspace)) as store:
        store.add_taxonomy(old)
        store.add_annotator("alice", AnnotatorKind.HUMAN)
        for name in ("a", "b"):
            (trace,) = read_file(office.file(name), named=True).traces
            session = Session.open(store, trace, old, "alice", blind=False)
            mode = "both" if name == "a" else "task_derailment"
            key = trace.span(3).key
            session.toggle_label(mode, Target(key, key), suggestions_on_screen=False)
            session.finish(open_modes="absent")
        migrate(store, CodebookMap(old, MAST, targets), "alice")
    async with stage(office.folder, workspace=office.workspace) as on:
        await on.press("f")
        assert "codebook changed" in on.text
        await on.press("c")
        assert listed(on) == ["a.json"]
        assert "codebook changed · 1 of 2 traces" in on.lines[0]
        assert "On: 1.3 Step repetition, 1.4 Loss of conversation history" in on.text
        await on.press("enter")
        await on.press("D")
        assert "1.3, 1.4 open, as the codebook has changed" in on.text
        await on.press("u", "1", "4", "-", "1", "3", "escape")
        assert listed(on) == []
        assert "No change of the codebook asks you to look again" in on.text
