"""Opening: the name, the welcome, early keys, and workspaces that cannot be opened."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs
from textual.widgets import Input

from mast_tui.labels import AnnotatorKind, Severity
from mast_tui.study.plan import assigned
from mast_tui.ui.annotate.screen import AnnotateScreen
from mast_tui.ui.dialogs.opening import NameScreen, WelcomeScreen
from mast_tui.ui.library.screen import LibraryScreen
from mast_tui.ui.services.open_workspace import Opening
from mast_tui.workspace import Workspace
from tests.cli.conftest import configure
from tests.taxonomy.rewording import reworded
from tests.ui.settle import settle
from tests.ui.stage import CODES, MAST, Stage, key_event, stage
from tests.ui.team_dir import TeamDir
from tests.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("every_frame")


@pytest.fixture
def workspace_gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The event that lets the workspace open."""
    event = threading.Event()
    opening = Opening.open

    def wait_and_open(self: Opening, taxonomy: str) -> None:
        assert event.wait(PATIENCE)
        opening(self, taxonomy)

    monkeypatch.setattr(Opening, "open", wait_and_open)
    yield event
    event.set()


async def test_keys_before_the_workspace_wait_in_order(
    small: Path, workspace_gate: threading.Event
) -> None:
    async with stage(small, settled=False) as on:
        await on.wait_for_trace()
        await on.send("j", "j", "space", "G")
        assert (on.number, on.annotate.timeline.row_count) == (12, 9)
        await on.send("g", "j", "j", "space", "k")
        assert on.annotate.session is None
        await on.until(lambda: "not labelling yet" in on.lines[0])
        # What moves does so at once, but not behind a label.
        assert on.number == 2
        post_keys(on, *"13j26ukfvk11")
        await on.until(lambda: on.app.input_queue.blocked)
        assert on.number == 2
        workspace_gate.set()
        await settle(on.pilot)
        # The labels are where the cursor stood, the undo came after the second of them.
        assert on.labels == {("1.3", 2, 2), ("1.1", 1, 2)}
        assert {label.severity for label in on.session.labels} == {Severity.FATAL, None}


@pytest.mark.parametrize(
    ("keys", "labels"),
    [
        ([*"11mabc", "enter", *"j13"], {("1.1", "/0", "abc"), ("1.3", "/1", "")}),
        ([*"00none here", "enter", *"j13"], {("0.0", "/0", "none here"), ("1.3", "/1", "")}),
    ],
)
async def test_early_text_goes_into_an_early_note(
    small: Path, workspace_gate: threading.Event, keys: list[str], labels: set[tuple[str, str, str]]
) -> None:
    async with stage(small, settled=False) as on:
        await on.wait_for_trace()
        post_keys(on, *keys)
        await on.until(lambda: on.app.input_queue.blocked)
        workspace_gate.set()
        await settle(on.pilot)
        await on.press()
        assert labels == {
            (CODES.get(label.mode, "0.0"), str(label.target.first)[-2:], label.note)
            for label in on.session.labels
        }


def post_keys(on: Stage, *keys: str) -> None:
    """Post keys all at once, without waiting."""
    for key in keys:
        on.app.post_message(key_event(key))


async def test_early_keys_open_the_first_trace_of_the_queue(
    tmp_path: Path, workspace_gate: threading.Event
) -> None:
    team = TeamDir(tmp_path / "set")
    ids = [team.trace(name).identity.trace_id for name in "abc"]
    first, second, _ = assigned(team.set_study(*ids, annotators=("alice",), per_trace=1), "alice")
    assert first != ids[0]
    async with stage(team.folder, workspace=team.workspace, settled=False) as on:
        await on.until(lambda: len(on.app.catalog.traces) >= 3 and on.app.trace_queue.ids)
        assert on.app.trace_queue.ids == ids
        post_keys(on, "enter", *"j1326u26>jj31")
        await on.until(lambda: on.app.input_queue.blocked)
        workspace_gate.set()
        await settle(on.pilot)
        await on.press()
        assert (on.trace.identity.trace_id, on.labels) == (second, {("3.1", 3, 3)})
        await on.press("<")
        assert on.trace.identity.trace_id == first
        assert on.labels == {("1.3", 2, 2), ("2.6", 2, 2)}


async def test_keys_without_a_trace_do_nothing(tmp_path: Path) -> None:
    path = tmp_path / "nothing.bin"
    path.write_bytes(bytes(range(256)))
    async with stage(path, settled=False) as on:
        await on.send(*"u]13-13vwtm", "space", "backspace", "D", "y", "n", "tab", "enter")
        await settle(on.pilot)
        assert "No traces" in on.text
    path = tmp_path / "empty.json"
    path.write_text('{"messages": [{"role": "user", "content": ""}]}')
    async with stage(path) as on:
        await on.press(*"u]13-13vwtm", "escape", "space", "backspace", "y", "n", "escape", "tab")
        assert not on.app._exit


async def test_a_broken_configuration_is_reported(small: Path) -> None:
    configure("[keys\n")
    async with stage(small) as on:
        assert any("config.toml" in notice for notice in on.notices)
        await on.press("j", "1", "3")
        assert on.labels == {("1.3", 2, 2)}


async def test_an_early_enter_skips_the_welcome(small: Path) -> None:
    async with stage(small.parent, annotator=None, welcomed=False) as on:
        assert isinstance(on.app.screen, NameScreen)
        await on.press("enter", "enter", "down")
        assert isinstance(on.app.screen, AnnotateScreen)
        assert on.number == 2
    async with stage(small.parent, welcomed=False) as on:
        assert isinstance(on.app.screen, WelcomeScreen), "nobody has seen it yet"
        assert "Your labels are saved at once in" in on.text  # nobody was asked for a name
        await on.press("enter")
        assert isinstance(on.app.screen, LibraryScreen)
        await on.press("enter")
        assert isinstance(on.app.screen, AnnotateScreen)


async def test_keys_for_an_awaited_trace_are_no_name(
    small: Path, workspace_gate: threading.Event
) -> None:
    async with stage(small.parent, annotator=None, settled=False) as on:
        await on.until(lambda: on.app.trace_queue.ids)
        post_keys(on, "enter", *"13")
        await on.until(lambda: on.app.input_queue.blocked)
        workspace_gate.set()
        await settle(on.pilot)
        on.app.show_new_traces()
        await settle(on.pilot)
        assert "13" not in on.app.screen.query_one(Input).value


async def test_the_name_is_asked_once(
    small: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    async with stage(small, workspace=workspace, annotator=None) as on:
        await on.press("escape")
        assert on.app._exit
    async with stage(small, workspace=workspace, annotator=None) as on:
        assert isinstance(on.app.screen, NameScreen)
        line = on.app.screen.query_one(Input)
        assert line.value == "tester"
        for refused in ("judge:rules@1", "", "a,b", "judge:me"):
            line.value = ""
            await on.press(*refused, "enter")
            assert isinstance(on.app.screen, NameScreen)
        assert "judge's name" in on.text
        line.value = ""
        await on.press(*"ann", "enter", "1", "3")
        assert on.labels == {("1.3", 1, 1)}
        assert "ann · suggestions shown" in on.lines[0]
    async with stage(small, workspace=workspace, annotator=None) as on:
        assert "ann · suggestions shown" in on.lines[0]
    with closing(Workspace.open(workspace)) as store:
        assert [info.name for info in store.annotators()] == ["ann"]


async def test_a_similar_name_is_refused(small: Path, workspace: Path) -> None:
    with closing(Workspace.open(workspace)) as store:
        store.add_annotator("tomas", AnnotatorKind.HUMAN)
    async with stage(small, workspace=workspace, annotator=None) as on:
        line = on.app.screen.query_one(Input)
        for name in ("gold", "tornas"):
            line.value = name
            await on.press("enter")
            assert isinstance(on.app.screen, NameScreen)
        assert "looks like 'tomas'" in " ".join(on.text.split())
        line.value = "tomas"
        await on.press("enter")
        assert "tomas · suggestions shown" in on.lines[0]


def upgrade(workspace: Path) -> None:
    Workspace.open(workspace).close()
    with closing(sqlite3.connect(workspace)) as raw:
        raw.execute("PRAGMA user_version = 99")


def write_letter(workspace: Path) -> None:
    workspace.write_text("this is a letter, not a database")


def make_folder(workspace: Path) -> None:
    workspace.mkdir()


def store_other_modes(workspace: Path) -> None:
    with closing(Workspace.open(workspace)) as store:
        store.add_taxonomy(structs.replace(MAST, modes=MAST.modes[1:]))


def protect(workspace: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("the superuser may write everything")
    workspace.parent.chmod(0o500)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (upgrade, "newer"),
        (write_letter, "no workspace"),
        (make_folder, "folder"),
        (store_other_modes, "mast@3"),
        (protect, "w.db"),
    ],
)
async def test_traces_are_read_without_a_workspace(
    small: Path, tmp_path: Path, spoil: object, message: str
) -> None:
    workspace = tmp_path / "place" / "w.db"
    workspace.parent.mkdir()
    assert callable(spoil)
    spoil(workspace)
    original = workspace.read_bytes() if workspace.is_file() else None
    async with stage(small, workspace=workspace) as on:
        assert "could not be opened" in on.text
        assert message in " ".join(on.text.split())
        await on.press("r", "j", "j", "1", "3", "D", "m", "u", "]", "a", "r", "J")
        assert on.number == 3
        assert on.annotate.session is None
        assert "nothing can be labelled" in on.message
        assert "no workspace" in on.lines[0]
        assert "not labelling yet" not in on.text
        await on.press("/", *"restart", "enter", "n", "y", "space", "escape", "escape", "o")
        assert "no workspace" in on.lines[0]
    workspace.parent.chmod(0o700)
    assert original is None or workspace.read_bytes() == original


async def test_screens_open_without_a_workspace(small: Path, workspace: Path) -> None:
    write_letter(workspace)
    async with stage(small, workspace=workspace) as on:
        await on.press("r")
        (reading, *_) = reversed(on.app.screen_stack)
        for key in ("?", ":", "ctrl+p", "l", "A", "K", "R", "L"):
            await on.press(key, "escape")
            if on.app.screen is not reading:
                await on.press("escape")
            assert not on.app._exit, key
        await on.press("L", "J")
        assert "no judge can store" in on.lines[-1]
        assert on.app.judge_at_work is None
    async with stage(small, workspace=workspace) as on:
        await on.press("q")
        assert on.app._exit
        assert on.app.return_code == 1


async def test_the_taxonomy_of_the_workspace_is_used(small: Path, workspace: Path) -> None:
    with closing(Workspace.open(workspace)) as store:
        store.add_taxonomy(MAST)
        store.add_taxonomy(reworded(MAST, "Corrected in this study."))
    async with stage(small, workspace=workspace) as on:
        await on.press("t", "1", "1")
        assert on.annotate.state.taxonomy.modes[0].definition == "Corrected in this study."
        assert on.app.taxonomy == on.annotate.state.taxonomy
    with closing(Workspace.open(workspace)) as store:
        assert len(store.revisions()) == 2
        assert [label.mode for label in store.labels()] == [MAST.modes[0].slug]


async def test_a_new_wording_is_stored_once(small: Path, workspace: Path) -> None:
    with closing(Workspace.open(workspace)) as store:
        store.add_taxonomy(reworded(MAST, "As an earlier program had it."))
    async with stage(small, workspace=workspace) as on:
        await on.press("t")
    with closing(Workspace.open(workspace)) as store:
        assert (store.taxonomies(), len(store.revisions())) == ((MAST,), 2)
