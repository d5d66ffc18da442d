"""The question for the annotator's name: people of a study, other names, and blind work."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from textual.widgets import Input

from mast_tui.labels import AnnotatorKind
from mast_tui.session import remember_person, set_study
from mast_tui.study import Study
from mast_tui.ui.dialogs.dialog import Ask
from mast_tui.ui.dialogs.opening import NameScreen
from mast_tui.workspace import Workspace
from tests.ui.stage import MAST, Stage, finding, read_trace, stage, suggest
from tests.ui.team_dir import TeamDir
from tests.ui.test_study_annotate import study_over

NAMES = ("alice", "bob", "jane", "dee")
"""The people of the study in the order of the list."""


@pytest.fixture
def team(team: TeamDir) -> TeamDir:
    """A blind study of three annotators and an adjudicator, over a trace with a suggestion."""
    trace = team.trace("one")
    suggest(team.workspace, trace, [finding(trace, "1.3", 3, 8)])
    study_over(team, "one", annotators=NAMES[:3], adjudicators=NAMES[3:], blind=True)
    return team


def line_of(on: Stage) -> str:
    """Return the text in the field of the open dialog."""
    return on.screen(NameScreen).query_one(Input).value


async def test_no_name_is_accepted_without_a_choice(team: TeamDir) -> None:
    async with stage(team.folder, workspace=team.workspace, annotator=None) as on:
        text = " ".join(on.text.replace("│", " ").split())
        assert "Your labels are saved at once in " in text
        assert "Each label carries your name: use the same name on every machine." in text
        for name, part in zip(NAMES, ("annotator",) * 3 + ("adjudicator",), strict=True):
            assert any(name in line and part in line for line in on.lines)
        assert line_of(on) == ""
        await on.press("enter", "enter")
        assert line_of(on) == ""
        assert "No name is chosen" in on.text
        with team.store() as store:
            assert "tester" not in {info.name for info in store.annotators()}


async def test_a_name_is_chosen_by_moving_or_by_typing(team: TeamDir) -> None:
    choices: tuple[tuple[tuple[str, ...], str], ...] = (
        (("j", "j", "j", "k"), "bob"),
        (("k", "k"), "jane"),
        (("j", *["down"] * 9), "dee"),
        (("j", "a", "n", "e"), "jane"),
        (("j", "j", *"alice"), "alice"),
        (("down", "tab", *"bob"), "bob"),
    )
    for keys, name in choices:
        async with stage(team.folder, workspace=team.workspace, annotator=None) as on:
            await on.press(*keys)
            assert line_of(on) == name, keys


@pytest.mark.parametrize("name", ["bob", "dee"])
async def test_a_chosen_name_is_remembered(team: TeamDir, name: str) -> None:
    async with stage(team.folder, workspace=team.workspace, annotator=None) as on:
        await on.press(*name, "enter")
        assert name in on.lines[0]
        assert ("blind" in on.lines[0]) is (name != "dee")
    async with stage(team.folder, workspace=team.workspace, annotator=None) as on:
        assert name in on.lines[0]


async def test_names_are_chosen_by_clicks(team: TeamDir) -> None:
    async with stage(team.folder, workspace=team.workspace, annotator=None) as on:
        row = next(y for y, line in enumerate(on.lines) if "bob" in line)
        column = on.lines[row].index("bob")
        await on.pilot.click(offset=(column, row))
        await on.press()
        assert line_of(on) == "bob"
        await on.pilot.click(offset=(column, row))
        await on.press()
        assert "bob · blind" in on.lines[0]


async def test_another_name_is_confirmed_and_blind(team: TeamDir) -> None:
    path = team.file("one")
    async with stage(path, workspace=team.workspace, annotator=None) as on:
        await on.press(*"root", "enter")
        assert isinstance(on.app.screen, Ask)
        assert "root is not in this study: labels under this name do not count." in on.text
        await on.press("enter")
        assert line_of(on) == "root"
        await on.press("enter", "escape")
        assert line_of(on) == "root"
        await on.press("enter", "y")
        assert "root · blind" in on.lines[0]
        assert not on.session.suggestions_visible
        assert "◌" not in on.text
    # The name is remembered for commands; the app asks again.
    async with stage(path, workspace=team.workspace, annotator=None) as on:
        assert line_of(on) == ""
        await on.press("j", "enter")
        assert "alice · blind" in on.lines[0]


async def test_a_name_option_outside_the_study_is_blind(team: TeamDir) -> None:
    path = team.file("one")
    async with stage(path, workspace=team.workspace, annotator="root") as on:
        notices = on.notices
        assert "root is not in this study: labels under this name do not count" in notices
        assert "root · blind" in on.lines[0]
        assert on.session.suggestions == ()
    async with stage(path, workspace=team.workspace, annotator="root", assisted=True) as on:
        assert on.session.suggestions_visible  # which is recorded
    async with stage(path, workspace=team.workspace, annotator="bob") as on:
        assert not on.notices


async def test_a_name_older_than_the_study_is_asked_again(team: TeamDir, tmp_path: Path) -> None:
    with team.store() as store:
        store.add_annotator("tester", AnnotatorKind.HUMAN)
        remember_person(store, "tester")
    async with stage(team.folder, workspace=team.workspace, annotator=None) as on:
        assert line_of(on) == ""
    workspace = tmp_path / "elsewhere.db"
    with closing(Workspace.open(workspace)) as store:
        store.add_annotator("tester", AnnotatorKind.HUMAN)
        remember_person(store, "tester")
    async with stage(team.folder, workspace=workspace, annotator=None) as on:
        assert "tester" in on.lines[0]  # no study, nothing to ask


async def test_names_without_a_study(
    team: TeamDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for keys, name in (
        (("enter", *"tester", "enter"), "tester"),
        (("down", "down", "up", "enter"), "kim"),
        (("down", *"jo", "enter"), "jo"),
        ((*"jk", "enter"), "jk"),
    ):
        workspace = tmp_path / f"{'-'.join(keys)}.db"
        with closing(Workspace.open(workspace)) as store:
            store.add_annotator("kim", AnnotatorKind.HUMAN)
            store.add_annotator("tomas", AnnotatorKind.HUMAN)
        async with stage(team.folder, workspace=workspace, annotator=None) as on:
            assert line_of(on) == ""  # Enter alone would add an annotator
            assert "In this workspace:" in on.text
            await on.press(*keys)
            assert f"{name} · suggestions shown" in on.lines[0]


@pytest.mark.parametrize("name", ["alice", "root"])
async def test_a_new_blind_study_applies_at_once(team: TeamDir, workspace: Path, name: str) -> None:
    path = team.file("one")
    suggest(workspace, read_trace(path), [finding(read_trace(path), "1.3", 3, 8)])
    async with stage(path, workspace=workspace, annotator=name) as on:
        assert f"{name} · suggestions shown" in on.lines[0]
        assert on.session.suggestions
        opened = on.app.opened
        assert opened is not None
        traces = tuple(record.trace_id for record in opened.workspace.traces())
        set_study(opened.workspace, "root", Study(MAST.ref, ("alice",), (), (traces,), 1))
        on.app.study_changed()
        await on.press()
        assert f"{name} · blind" in on.lines[0]
        assert not on.session.suggestions
        assert "◌" not in on.text


async def test_many_names_are_scrolled_on_a_small_screen(team: TeamDir) -> None:
    people = tuple(f"annotator-{number:02}" for number in range(30))
    study_over(team, "one", annotators=people, blind=True)
    async with stage(team.folder, workspace=team.workspace, annotator=None, size=(40, 15)) as on:
        await on.press(*["down"] * 25)
        assert line_of(on) == people[24]
        assert any(people[24] in line for line in on.lines if "annotator-" in line)
        await on.press("enter")
        assert not isinstance(on.app.screen, NameScreen)
