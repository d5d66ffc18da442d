"""The study screen: setting up, changing, and extending a study."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from threading import Event
from typing import Any

import pytest
from textual.widgets import Static

from mast_tui.session import register_opened_trace, set_study
from mast_tui.study import Membership, OpenModes, Study, assigned
from mast_tui.ui.library.screen import LibraryScreen
from mast_tui.ui.study import screen as study_screen
from mast_tui.ui.study.screen import StudyView, study_view
from tests.session.studies import study_of
from tests.ui.stage import MAST, Stage, missing, stage
from tests.ui.team_dir import TeamDir, last_message
from tests.waiting import PATIENCE


@pytest.fixture
def team(team: TeamDir) -> TeamDir:
    """Three traces without labels."""
    for name in ("one", "two", "three"):
        team.file(name)
    return team


DISK_IS_FULL = "BEFORE INSERT ON traces BEGIN SELECT RAISE(ABORT, 'disk is full'); END"


def study_in(team: TeamDir) -> Study | None:
    with team.store() as store:
        return store.study(MAST.ref)


def listed_ids(on: Stage) -> list[str]:
    return [row.trace_id for row in on.open_screen(LibraryScreen).table.rows]


async def test_a_study_is_set_up_by_keys(team: TeamDir) -> None:
    async with stage(team.folder, workspace=team.workspace, size=(80, 24)) as on:
        assert "mine to do" not in on.lines[0]
        await on.press("Y")
        assert "There is no study yet" in on.text
        await on.press("a")
        assert "e sets one up" in last_message(on)
        # Two people, suggestions shown, open modes left open.
        await on.press("e", *", bob", "down", *"carol", "down", "down", "down", "down", "space")
        await on.press("down", "down", "down", "right", "enter")
        assert not missing(
            on.text,
            "New names in this workspace: bob and carol.",
            "3 traces, each labelled by every annotator.",
            "alice  3 traces",
        )
        assert "Enter sets it up" in on.lines[-1]
        assert "↑ ↓ move" not in on.lines[-1]
        assert study_in(team) is None
        await on.press("ctrl+q")
        assert "^q again closes and drops what you typed" in on.text
        await on.press("enter")
        assert "The study is set up · L shows your traces" in last_message(on)
        study = study_in(team)
        assert study is not None
        assert (study.annotators, study.adjudicators) == (("alice", "bob"), ("carol",))
        assert (study.per_trace, study.blind) == (2, False)
        assert study.open_modes is OpenModes.LEAVE
        assert (len(study.traces), len(study.batches)) == (3, 1)
        assert "0 of 3 shared traces finished by all" in on.lines[0]
        assert "alice and bob label; where they differ carol decides" in on.text
        await on.press("a")
        assert "in the study already" in last_message(on)
        await on.press("L")
        assert "mine to do" in on.lines[0]
        assert listed_ids(on) == list(assigned(study, "alice"))


async def test_fixed_fields_are_refused_and_traces_added(team: TeamDir) -> None:
    team.label("alice", "one", {"1.3": (3, 8)})
    ids = set_up(team, "one").traces
    async with stage(team.folder, workspace=team.workspace) as on:
        assert "1 of 1 finished" in on.lines[0]
        assert "Nothing is left for you to do" in on.text
        await on.press("Y", "e", *["down"] * 14, "9", "enter")
        about = on.app.screen.query_one("#about", Static)
        assert "the seed can no longer change" in str(about.render())
        await on.press("escape", "escape", "a", "y")
        study = study_in(team)
        assert study is not None
        assert (study.seed, len(study.batches), len(study.traces)) == (0, 2, 3)
        assert study.batches[0] == ids
        assert "3 traces in 2 batches" in on.text
        await on.press("L")
        assert listed_ids(on) == [trace for trace in assigned(study, "alice") if trace not in ids]


async def test_changes_are_shown_before_they_are_written(team: TeamDir) -> None:
    previous = set_up(team, "one", "two", "three")
    async with stage(team.folder, workspace=team.workspace) as on:
        # The judge before the decision, places a conflict, reasons asked, texts masked, and
        # another seed.
        await on.press("Y", "e", *["down"] * 10, "space", "down", "space", "down", "space")
        await on.press("down", "space", "down", "backspace", "7", "enter")
        changes = ("judge shown: after → before", "data: as recorded → masked", "seed: 0 → 7")
        assert not missing(on.text, *changes)
        await on.press("escape")
        assert "↑ ↓ move" in on.text
        await on.press("enter")
        assert study_in(team) == previous
        await on.press("enter")
        study = study_in(team)
        assert study is not None
        assert (study.judge_first, study.boundaries, study.reasons) == (True, True, True)
        assert study.redact
        assert (study.seed, len(study.batches)) == (7, 1)
        await on.press("e", "enter")
        assert "Nothing is changed yet" in on.text


async def test_a_study_of_the_listed_traces(team: TeamDir) -> None:
    async with stage(team.folder, workspace=team.workspace) as on:
        await on.press("/", *"one.json", "enter", "Y", "e", *", bob", "down", "down", "space")
        assert "listed in the library (1)" in on.text
        await on.press("enter")
        assert "1 trace, each labelled by every annotator." in on.text
        with closing(sqlite3.connect(team.workspace)) as raw:
            raw.execute(f"CREATE TRIGGER full {DISK_IS_FULL}")
            await on.press("enter")
            assert not missing(
                on.text, "alice, bob", "● listed in the library (1)", "the disk is full"
            )
            raw.execute("DROP TRIGGER full")
        await on.press("enter", "enter")
        study = study_in(team)
        assert study is not None
        assert len(study.traces) == 1
        await on.press("a")
        assert not missing(on.text, "Add 2 traces?", "alice  1 → 3 traces")


async def test_annotators_join_and_leave(team: TeamDir) -> None:
    set_up(team, "one", "two", "three", per_trace=1)
    async with stage(team.folder, workspace=team.workspace, annotator="carol") as on:
        await on.press("Y", "n", *"dora", "enter")
        assert "dora   0 traces" in on.text
        await on.press("y")
        study = study_in(team)
        assert study is not None
        assert study.present == ("alice", "bob", "dora")
        had = len(assigned(study, "alice"))
        await on.press("g", "r")
        assert f"alice  {had} → 0 traces" in on.text
        await on.press("n")
        assert study_in(team) == study
        await on.press("x", "y")
        after = study_in(team)
        assert after is not None
        assert (after.present, assigned(after, "alice")) == (("bob", "dora"), ())
        await on.press("n", *"bob", "enter")
        assert study_in(team) == after


async def test_keys_work_while_conflicts_are_counted(
    team: TeamDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(team, "one")
    counted = Event()

    def slow_view(*args: Any, **options: Any) -> StudyView | None:
        assert counted.wait(PATIENCE)
        return study_view(*args, **options)

    monkeypatch.setattr(study_screen, "study_view", slow_view)
    async with stage(team.folder, workspace=team.workspace, annotator="carol") as on:
        await on.send("Y", "x")
        await on.until(lambda: "Move the cursor to an annotator" in on.text)
        await on.send("n", *"dora", "enter")
        await on.until(lambda: "dora   0 traces" in on.text)
        counted.set()


def set_up(team: TeamDir, *names: str, **fields: object) -> Study:
    """Set up a study of these traces by carol."""
    with team.store() as store:
        ids = sorted(register_opened_trace(store, team.trace(name)) for name in names)
        study = study_of(tuple(ids), **fields)
        set_study(store, "carol", study)
    return study


async def test_annotators_who_have_left_are_named(team: TeamDir) -> None:
    people = ("alice", "bob", "eve")
    set_up(team, "one", annotators=people, memberships=(Membership("bob", 0, 1),))
    async with stage(team.folder, workspace=team.workspace) as on:
        await on.press("Y")
        assert "alice and eve label; where they differ anyone may decide." in on.text
        assert "bob has left; their finished traces count." in on.text
