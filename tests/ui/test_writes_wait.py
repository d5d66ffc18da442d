"""Writes and drawing after a key, other programs and windows, and lost workspaces."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from textual.geometry import Region
from textual.widget import Widget

from mast_tui import writes
from mast_tui.labels import Target
from mast_tui.session import Session
from mast_tui.ui.annotate import screen as annotate
from mast_tui.ui.annotate.finish import MAX_DELAYS
from mast_tui.ui.dialogs.dialog import Ask
from mast_tui.ui.services import workspace as watch
from mast_tui.ui.services.input_queue import InputQueue
from mast_tui.ui.trace_view.folding import FoldedRun
from mast_tui.workspace import Event, NewEvent, Workspace
from mast_tui.workspace.events.types import SpansRead
from tests.ui.settle import settle
from tests.ui.stage import (
    MAST,
    SLUGS,
    SMALL,
    Stage,
    call,
    finding,
    missing,
    read_trace,
    result,
    stage,
    suggest,
    write_trace,
)

pytestmark = pytest.mark.usefixtures("every_frame")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "w" / "w.db"


@pytest.fixture
def keys_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the timers that check or record, so that only keys ask to write."""
    monkeypatch.setattr(watch, "WATCH_EVERY", 3600.0)
    monkeypatch.setattr(annotate, "READ_EVERY", 3600.0)
    monkeypatch.setattr(annotate, "SAVE_POSITION_EVERY", 3600.0)


@contextmanager
def other_program_writes(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


async def send(on: Stage, *keys: str) -> None:
    """Press keys, and wait until each has been handed out or has to wait."""
    delivered = on.app.input_queue.delivered_count
    for key in keys:
        await on.pilot.press(key)
    queue = on.app.input_queue
    await on.until(lambda: queue.delivered_count >= delivered + len(keys) or queue.blocked)


def set_setting(on: Stage) -> None:
    assert on.app.opened is not None
    on.app.opened.workspace.set_setting("a", "b")


async def write_reads_and_position(on: Stage) -> None:
    """Write what timers would write, so that from now on only keys ask to write."""
    on.annotate.drawn_spans.write()
    on.annotate.arrival.save_position()
    await settle(on.pilot)


def labels_on_disk(workspace: Path) -> set[tuple[str, str | None]]:
    with closing(Workspace.open(workspace, create=False)) as store:
        return {(label.mode, label.target.first) for label in store.labels()}


async def test_moves_labels_and_reads_wait_for_another_writer(small: Path, workspace: Path) -> None:
    async with stage(small, workspace=workspace) as on:
        await on.press("j")
        with other_program_writes(workspace):
            await send(on, "1", "3", "j", "1", "4", "j", "j", "2", "6")
            assert (on.number, on.labels) == (5, set())
            await on.until(lambda: "another program is writing" in on.lines[-1])
            assert "3 actions not done yet" in on.lines[-1]
            on.annotate.drawn_spans.write()
        await settle(on.pilot)
        assert (on.labels, on.number) == ({("1.3", 2, 2), ("1.4", 3, 3), ("2.6", 5, 5)}, 5)
        assert "Saving …" not in on.lines[-1]
        on.annotate.drawn_spans.write()
        await settle(on.pilot)
        trace = on.trace
        assert {trace.span(index).key for index in range(4)} <= on.session.read
        expected = {
            (SLUGS[code], trace.span(number - 1).key)
            for code, number in (("1.3", 2), ("1.4", 3), ("2.6", 5))
        }
        await on.press("L")
        app_workspace = on.app.workspace
        with other_program_writes(workspace):
            on.app.writes.do(lambda: app_workspace.carry_out(lambda: set_setting(on)))
            await on.until(lambda: "another program is writing" in on.lines[-1])
        await settle(on.pilot)
        assert "Saving …" not in on.lines[-1]
    assert labels_on_disk(workspace) == expected


async def test_keys_act_after_the_changes_they_wait_for(small: Path, workspace: Path) -> None:
    trace = read_trace(small)
    suggest(workspace, trace, [finding(trace, "1.3", 3, 3), finding(trace, "1.1", 10, 10)])
    async with stage(small, workspace=workspace) as on:
        await on.press("]")
        assert on.number == 3
        with other_program_writes(workspace):
            # Labelled is the evidence of the next suggestion, wherever the cursor was meanwhile.
            await send(on, "a", "1", "4")
            assert (on.number, on.labels) == (3, set())
        await settle(on.pilot)
        assert (on.number, on.labels) == (10, {("1.3", 3, 3), ("1.4", 10, 10)})
        await on.undo_all()
        with other_program_writes(workspace):
            await send(on, "1", "3", "u")
        await settle(on.pilot)
        assert on.labels == set()
        assert "undone: 1.3" in on.message


async def test_a_label_is_refused_after_waiting(
    small: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(small, workspace=workspace) as on:
        await on.press("j")
        await write_reads_and_position(on)
        monkeypatch.setattr(writes, "PATIENCE", 0.1)
        with other_program_writes(workspace):
            await send(on, "1", "3")
            await on.until(lambda: "another program has been writing" in on.message)
            assert on.labels == set()
        await settle(on.pilot)
        assert on.labels == set()
        monkeypatch.undo()
        await on.press("1", "3")
        assert on.labels == {("1.3", 2, 2)}


@pytest.mark.usefixtures("keys_alone")
@pytest.mark.parametrize(("keys_come", "waits"), [(True, MAX_DELAYS), (False, 0)])
async def test_reads_are_written_between_keys(
    keys_come: bool, waits: int, small: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(small, workspace=workspace) as on:
        await on.press("j")
        previous = len(on.session.read)
        monkeypatch.setattr(InputQueue, "keys_come", keys_come)
        for _ in range(waits):
            on.annotate.drawn_spans.write_between_keys()
            await settle(on.pilot)
            assert len(on.session.read) == previous
        on.annotate.drawn_spans.write_between_keys()
        await settle(on.pilot)
        assert len(on.session.read) > previous


def label_elsewhere(workspace: Path, small: Path, code: str, number: int) -> None:
    trace = read_trace(small)
    with closing(Workspace.open(workspace)) as store:
        session = Session.open(store, trace, MAST, "alice", blind=False)
        key = trace.span(number - 1).key
        session.toggle_label(SLUGS[code], Target(key, key), suggestions_on_screen=False)


async def test_changes_of_other_windows_and_judges_are_shown(small: Path, workspace: Path) -> None:
    async with stage(small, workspace=workspace) as on:
        await on.press("j", "1", "3")
        label_elsewhere(workspace, small, "1.4", 3)
        await on.until(lambda: on.labels == {("1.3", 2, 2), ("1.4", 3, 3)})
        assert not missing(on.message, "In another window: 1.4", "#3")

        await on.press("j")
        assert not on.session.suggestions
        trace = read_trace(small)
        suggest(workspace, trace, [finding(trace, "1.1", 10, 10)])
        await on.until(lambda: len(on.session.pending) == 1)


@pytest.mark.usefixtures("keys_alone")
async def test_a_key_after_another_window_has_no_effect(small: Path, workspace: Path) -> None:
    async with stage(small, workspace=workspace) as on:
        await on.press("j")
        label_elsewhere(workspace, small, "1.3", 2)
        await on.press("1", "3")
        # Nothing is taken off by a key that was to put it on; what stands is said and shown.
        assert on.labels == {("1.3", 2, 2)}
        assert not missing(on.message, "1.3 Step repetition on #2", "had no effect")
        assert any("1.3" in line for line in on.lines[2:20])


async def test_a_lost_workspace_is_written_again(small: Path, workspace: Path) -> None:
    async with stage(small, workspace=workspace) as on:
        await on.press("j", "1", "3")
        shutil.rmtree(workspace.parent)
        await on.until(lambda: any("The workspace is gone" in line for line in on.lines))
        await on.pilot.press("w")
        await settle(on.pilot)
        assert on.labels == {("1.3", 2, 2)}
        await on.press("j", "1", "4")
        assert on.labels == {("1.3", 2, 2), ("1.4", 3, 3)}
    assert len(labels_on_disk(workspace)) == 2


@pytest.mark.usefixtures("keys_alone")
async def test_a_replaced_workspace_is_saved_beside_it(small: Path, workspace: Path) -> None:
    async with stage(small, workspace=workspace) as on:
        await on.press("j", "1", "3")
        Workspace.open(workspace.with_name("other.db")).close()
        workspace.with_name("other.db").replace(workspace)
        await on.pilot.press("j", "1", "4")
        await on.until(lambda: isinstance(on.app.screen, Ask))
        await on.pilot.press("w")
        await settle(on.pilot)
        assert on.labels == {("1.3", 2, 2), ("1.4", 3, 3)}
        on.app.workspace.close()
    assert labels_on_disk(workspace) == set()
    assert len(labels_on_disk(workspace.with_name("w-rescued.db"))) == 2


@pytest.mark.usefixtures("keys_alone")
async def test_a_refused_write_asks_again_on_labelling_alone(small: Path, workspace: Path) -> None:
    async with stage(small, workspace=workspace) as on:
        await on.press("j")
        shutil.rmtree(workspace.parent)
        await on.pilot.press("1", "4")
        await on.until(lambda: isinstance(on.app.screen, Ask))
        await on.pilot.press("n")
        await settle(on.pilot)
        assert on.labels == set()
        assert "deleted, moved or replaced" in on.message
        assert not workspace.exists()
        await on.press("j")
        on.annotate.arrival.save_position()
        on.annotate.drawn_spans.write()
        await settle(on.pilot)
        assert not isinstance(on.app.screen, Ask)
        await on.pilot.press("1", "4")
        await on.until(lambda: isinstance(on.app.screen, Ask))
        await on.pilot.press("w")
        await settle(on.pilot)
        assert on.labels == {("1.4", 3, 3)}
    assert len(labels_on_disk(workspace)) == 1


async def test_changes_reach_the_file_when_idle(
    small: Path, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "WRITE_PAUSE", 0.0)
    monkeypatch.setattr(watch, "WATCH_EVERY", 0.01)
    async with stage(small, workspace=workspace) as on:
        await on.press("j", "1", "3")
        copy = tmp_path / "copy.db"

        def is_whole() -> bool:
            shutil.copy(workspace, copy)
            return len(labels_on_disk(copy)) == 1

        await on.until(is_whole)


async def test_a_workspace_that_others_can_write_is_asked_about(small: Path) -> None:
    workspace = Path(".mast-tui") / "workspace.db"
    Workspace.open(workspace).close()
    workspace.chmod(0o666)
    async with stage(small) as on:
        await on.until(lambda: "Open this workspace?" in " ".join(on.lines))
        await on.pilot.press("r")
        await settle(on.pilot)
        assert on.annotate.session is None
    async with stage(small) as on:
        await on.pilot.press("o")
        await settle(on.pilot)
        await on.press("1", "3")
        assert on.labels == {("1.3", 1, 1)}


class StepRecorder:
    """The order of drawing and writing: the classes of drawn widgets, and ``disk``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[str] = []
        refresh = Widget.refresh
        append = Workspace.append

        def refreshed(widget: Widget, *regions: Region, **options: bool) -> Widget:
            self.steps.append(type(widget).__name__)
            return refresh(widget, *regions, **options)

        def appended(
            workspace: Workspace, events: Sequence[NewEvent], **options: object
        ) -> tuple[Event, ...]:
            recorded = append(workspace, events, **options)  # type: ignore[arg-type]
            if not any(isinstance(event.fact, SpansRead) for event in events):
                self.steps.append("disk")
            return recorded

        monkeypatch.setattr(Widget, "refresh", refreshed)
        monkeypatch.setattr(Workspace, "append", appended)


async def test_a_label_is_written_before_it_is_drawn(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(small) as on:
        await on.press("j", "1")
        recorder = StepRecorder(monkeypatch)
        on.annotate.action_digit("3")
        await settle(on.pilot)
        assert recorder.steps.count("disk") == 1
        assert "Timeline" not in recorder.steps[: recorder.steps.index("disk")]
        assert {"HintBar", "TaxonomyPanel", "Timeline"} <= set(recorder.steps)
        assert on.labels == {("1.3", 2, 2)}


async def test_a_long_fold_is_recorded_as_one_run(tmp_path: Path) -> None:
    repeats = 40
    messages = [SMALL[0]]
    for number in range(repeats):
        messages += [call(number, "get_pods", "{}"), result(number, "Running " * 40)]
    path = write_trace(tmp_path / "again.json", messages)
    async with stage(path, workspace=tmp_path / "w.db") as on:
        await on.press("j", "space", "j", "j")
        fold = on.annotate.timeline.fold_at_cursor
        assert isinstance(fold, FoldedRun)
        on.annotate.drawn_spans.write()
        await settle(on.pilot)
        assert on.session.unread() == ()
        written = on.session.workspace.reads("alice", on.session.trace_id, on.app.taxonomy.ref, 1)
        assert len(written.ranges) == 1
        assert len(written.keys) < repeats
