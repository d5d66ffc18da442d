"""Open coding by keys: labels with 0 0, and the screen that groups them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.labels import Target
from mast_tui.session import Session
from mast_tui.session.open_codes import CodedTrace, Saturation
from mast_tui.taxonomy.loader import load_taxonomy
from mast_tui.taxonomy.model import OPEN_CODE_SLUG
from mast_tui.ui.annotate.screen import AnnotateScreen
from mast_tui.ui.dialogs.dialog import NoteScreen
from mast_tui.ui.open_codes import BARS, OpenCodesScreen, saturation_line
from tests.judges.llm.server import MODEL, ModelServer, answer
from tests.ui.stage import MAST, Stage, missing, stage
from tests.ui.team_dir import TeamDir, last_message
from tests.ui.test_judging import configure_model


@pytest.fixture
def team(team: TeamDir) -> TeamDir:
    """Two traces without labels."""
    for name in ("one", "two"):
        team.file(name)
    return team


def write_open_code(
    team: TeamDir, annotator: str, name: str, note: str, number: int = 2, *, finish: bool = True
) -> None:
    with team.store() as store:
        trace = team.trace(name)
        session = Session.open(store, trace, MAST, annotator, blind=False)
        key = trace.span(number - 1).key
        session.toggle_label(OPEN_CODE_SLUG, Target(key, key), suggestions_on_screen=False)
        (label,) = session.labels_at(key)
        session.edit_label(label.id, note=note)
        if finish:
            session.finish(open_modes="absent")


def open_labels(on: Stage) -> list[tuple[str, str | None]]:
    return [(x.note, x.target.first) for x in on.session.labels if x.mode == OPEN_CODE_SLUG]


async def test_open_labels_ask_for_a_note(small: Path) -> None:
    async with stage(small) as on:
        rows = on.annotate.modes.row_count
        await on.press("j", "0")
        assert "0 None of these modes" in on.text
        await on.press("0")
        assert isinstance(on.app.screen, NoteScreen)
        await on.press(*"restarts it", "enter")
        key = on.trace.span(1).key
        assert open_labels(on) == [("restarts it", key)]
        assert "0.0 ●" in on.row(2)
        # It stands below the modes, once it is there.
        assert "0.0 None of these modes" in on.text
        await on.press("0", "0")
        assert open_labels(on) == []
        assert not isinstance(on.app.screen, NoteScreen)
        assert on.annotate.modes.row_count == rows
        await on.press("u")
        assert open_labels(on) == [("restarts it", key)]
        await on.undo_all()
        await on.press("j", "v", "j", "0", "0")
        assert "Esc leaves the label without a note" in on.text
        await on.press("escape")
        assert "0.0 on #2 to #3 has no note · m writes one" in on.message
        assert [note for note, _ in open_labels(on)] == [""]
        await on.press("-", "0")
        assert "no mode has the first digit 0" in on.message


async def test_groups_are_searched_and_open_their_place(team: TeamDir) -> None:
    write_open_code(team, "alice", "one", "restarts the pod unasked", 10)
    write_open_code(team, "alice", "two", "restarted a pod, unasked \x1b[2J", 10)
    write_open_code(team, "bob", "one", "wrong namespace", 3)
    async with stage(team.folder, workspace=team.workspace) as on:
        await on.press("+")
        assert "Open codes · 3 places" in on.lines[0]
        assert "restarts the pod unasked · 2 places" in on.text
        assert not missing(on.text, "wrong namespace · 1 place", "2 different failures")
        assert "\x1b" not in on.text
        await on.press("j", "enter")
        assert isinstance(on.app.screen, AnnotateScreen)
        assert on.number == 10
        await on.press("escape")
        assert isinstance(on.app.screen, OpenCodesScreen)
        await on.press("/", *"namespace", "enter")
        assert "1 place with “namespace”" in last_message(on)
        assert "restarts the pod" not in on.text
        await on.press("/", *["backspace"] * 9, "enter")
        assert "restarts the pod" in on.text


async def test_tags_and_a_model_group_codes(team: TeamDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    write_open_code(team, "alice", "one", "restarts the pod unasked", 10)
    write_open_code(team, "alice", "one", "wrong namespace", 3)
    write_open_code(team, "alice", "two", "looks elsewhere", 3)
    groups = {"groups": [{"name": "Lost", "notes": [1, 2]}]}
    async with stage(team.folder, workspace=team.workspace) as on:
        await on.press("+")
        await on.press("J")
        assert "the groups are unchanged" in last_message(on)
        await on.press("/", *"restarts", "enter")
        await on.press("j", "t")
        assert isinstance(on.app.screen, NoteScreen)
        await on.press(*"Two words", "enter")
        await on.until(lambda: not missing(on.text, "one word"))
        await on.press(*["backspace"] * 9, *"Restart", "enter")
        await on.until(lambda: not missing(on.text, "#restart · 1 place"))
        await on.press("/", *["backspace"] * 8, "enter")
        with ModelServer(lambda *_: answer(json.dumps(groups))) as server:
            configure_model(server.base_url)
            await on.press("J")
            await on.until(
                lambda: not missing(on.text, "The texts of 2 notes are sent to", "It stops at")
            )
            await on.press("y")
            await on.until(lambda: not missing(on.text, "Lost · 2 places", f"by {MODEL}"))
        await on.press("J")
        await on.press("w")
        await on.until(lambda: "Lost" not in on.text)


async def test_codes_of_others_are_hidden_before_finishing(team: TeamDir) -> None:
    async with stage(team.folder, workspace=team.workspace) as on:
        await on.press("+")
        assert "0 0 labels a failure that no mode describes" in on.text
        await on.press("n", "v", "enter", "/", "escape")
        assert isinstance(on.app.screen, OpenCodesScreen)
    write_open_code(team, "bob", "one", "wrong namespace")
    write_open_code(team, "alice", "two", "asks twice")
    async with stage(team.folder, workspace=team.workspace, blind=True) as on:
        await on.press("+")
        assert "asks twice" in on.text
        assert "namespace" not in on.text
        assert "1 place" in on.lines[0]


async def test_marked_codes_become_a_mode(team: TeamDir) -> None:
    write_open_code(team, "alice", "one", "restarts the pod unasked", 10)
    write_open_code(team, "alice", "two", "restarted a pod unasked", 10)
    write_open_code(team, "alice", "one", "wrong namespace", 3)
    async with stage(team.folder, workspace=team.workspace) as on:
        await on.press("+")
        await on.press("v", "n")
        assert "A mode of 2 places" in on.text
        await on.press(*"Unasked restart", "enter")
        assert "Under which category is Unasked restart?" in on.text
        await on.press("enter")
        assert "1.6 Unasked restart" in on.text
        file = team.workspace.parent / "mast-3+1.toml"
        file.mkdir()  # the file cannot be written
        await on.press("y")
        await on.until(lambda: "Unasked restart" in on.text and "A mode of 2 places" in on.text)
        file.rmdir()
        await on.press("enter", "enter", "y")
        assert "mast@3+1" in on.text
        await on.press("enter")
        assert isinstance(on.app.screen, OpenCodesScreen)
    assert load_taxonomy(file).mode("unasked_restart").code == "1.6"
    with team.store() as store:
        modes = {label.mode for label in store.labels(taxonomy="mast@3+1")}
        assert modes == {"unasked_restart", OPEN_CODE_SLUG}


def test_saturation_is_drawn() -> None:
    looked = tuple(CodedTrace(str(n), 3, ("x",) * new) for n, new in enumerate((9, 3, 0, 1, 0)))
    line = saturation_line(Saturation(looked))
    assert f"{BARS[-1]}{BARS[3]}{BARS[0]}{BARS[1]}{BARS[0]}  13 different failures" in line
    assert line.endswith("in 5 traces; no new failure in the last trace")
    assert "once a trace is finished" in saturation_line(Saturation(()))
