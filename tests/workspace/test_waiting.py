"""Waiting: reads never wait, writes wait for their turn, and the event loop goes on."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread

import pytest
from sqlalchemy import text

from mast_tui import writes
from mast_tui.workspace import Workspace, WorkspaceError
from mast_tui.workspace.events.types import LabelAdded
from mast_tui.writes import HeldKeys, Writes
from tests import waiting
from tests.workspace.build import event, label, started

COUNT = text("SELECT count(*) FROM labels")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "w.db"


@contextmanager
def another_writer(path: Path) -> Iterator[None]:
    """Let another program hold the right to write."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield


@pytest.fixture
def workspace(path: Path) -> Iterator[Workspace]:
    """A file with one label."""
    with closing(Workspace.open(path)) as workspace:
        started(workspace, label(workspace))
        yield workspace


def add(workspace: Workspace) -> None:
    workspace.append([event(LabelAdded(label(workspace)))])


@pytest.mark.parametrize("name", ["w.db", ":memory:"])
def test_reading_connection_cannot_write(tmp_path: Path, name: str) -> None:
    place = name if name == ":memory:" else tmp_path / name
    with closing(Workspace.open(place)) as workspace:
        started(workspace, label(workspace))
        with (
            pytest.raises(WorkspaceError, match="is read-only"),
            workspace._database.reading() as connection,
        ):
            connection.execute(text("DELETE FROM labels"))
        assert len(workspace.labels()) == 1
        workspace.set_setting("still", "writable")


def test_reads_do_not_wait_for_writers_and_see_one_state(workspace: Workspace, path: Path) -> None:
    written = Event()
    finish = Event()

    def write() -> None:
        with workspace.transaction():
            add(workspace)
            assert len(workspace.labels()) == 2  # reads its own writes
            written.set()
            finish.wait(60)

    thread = Thread(target=write)
    thread.start()
    try:
        assert written.wait(60)
        assert len(workspace.labels()) == 1
    finally:
        finish.set()
        thread.join()
    assert len(workspace.labels()) == 2
    with another_writer(path):
        assert len(workspace.labels()) == 2
    with workspace._database.reading() as connection:
        assert connection.execute(COUNT).scalar_one() == 2
        add(workspace)
        assert connection.execute(COUNT).scalar_one() == 2
    assert len(workspace.labels()) == 3


def test_changes_of_other_programs_are_noticed_once(workspace: Workspace, path: Path) -> None:
    workspace.changed_elsewhere()
    workspace.set_setting("a", "b")
    assert not workspace.changed_elsewhere()
    with closing(Workspace.open(path)) as other:
        other.set_setting("a", "c")
    assert workspace.changed_elsewhere()
    assert not workspace.changed_elsewhere()


class StepQueue:
    """Steps that are written one after the other, and the errors that they raise."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []
        self.writes = Writes(lambda: None, self.errors.append)

    def add(self, step: Callable[[], object]) -> None:
        self.writes.do(partial(self.writes.run, step))

    async def until(self, condition: Callable[[], object]) -> None:
        for _ in waiting.until(condition):
            await asyncio.sleep(0.001)

    async def until_reported(self) -> None:
        await self.until(lambda: self.writes.report)

    async def until_idle(self) -> None:
        await self.until(lambda: self.writes.idle)


async def test_step_waits_for_another_program_while_the_loop_goes_on(
    workspace: Workspace, path: Path
) -> None:
    queue = StepQueue()
    with another_writer(path):
        queue.add(lambda: add(workspace))
        await queue.until_reported()
        report = "Waiting for another program that is writing · 1 change not saved"
        assert queue.writes.report == report
        assert len(workspace.labels()) == 1
    await queue.until_idle()
    assert (queue.errors, queue.writes.report) == ([], "")
    assert len(workspace.labels()) == 2


async def test_error_after_a_wait_is_reported_and_rolls_back(
    workspace: Workspace, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = StepQueue()

    def step() -> None:
        with workspace.transaction():
            add(workspace)
            raise LookupError("no")

    with another_writer(path):
        queue.add(step)
        await queue.until_reported()
    await queue.until_idle()
    assert [type(error) for error in queue.errors] == [LookupError]
    assert len(workspace.labels()) == 1
    # The next step waits no longer than its patience.
    monkeypatch.setattr(writes, "PATIENCE", 0.05)
    with another_writer(path):
        queue.add(lambda: workspace.set_setting("a", "b"))
        await queue.until_idle()
    assert isinstance(queue.errors[1], WorkspaceError)
    assert "another program has been writing" in str(queue.errors[1])
    assert workspace.get_setting("a") is None


async def test_closing_ends_the_wait_of_a_step(workspace: Workspace, path: Path) -> None:
    queue = StepQueue()
    with another_writer(path):
        queue.add(lambda: workspace.set_setting("a", "b"))
        await queue.until_reported()
        workspace.close()
        await queue.until_idle()
    (error,) = queue.errors
    assert "the workspace is closed" in str(error)


async def test_steps_run_in_order_and_a_question_lets_keys_in(workspace: Workspace) -> None:
    queue = StepQueue()
    happened: list[object] = []
    answers: list[Callable[[str], None]] = []

    async def ask() -> None:
        happened.append(await queue.writes.ask(answers.append))
        happened.append(await queue.writes.run(lambda: len(workspace.labels())))

    async def finish() -> None:
        happened.append("after the question")

    queue.writes.do(ask)
    queue.writes.do(finish, HeldKeys.NOTHING)
    before = queue.writes.holds
    await queue.until(lambda: answers)
    assert [before, queue.writes.holds] == [HeldKeys.ALL, HeldKeys.NOTHING]
    assert not happened
    answers[0]("yes")
    await queue.until_idle()
    assert happened == ["yes", 1, "after the question"]
    assert queue.errors == []
