"""Waiting: reads never wait, writes wait for their turn, and the event loop continues."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread

import psycopg
import pytest
from sqlalchemy import text

from mast_tui import writes
from mast_tui.workspace import Workspace, WorkspaceError
from mast_tui.workspace.events.types import LabelAdded
from mast_tui.writes import HeldKeys, Writes
from tests import waiting
from tests.workspace.build import event, label, start_pass

COUNT = text("SELECT count(*) FROM labels")


ON_BOTH_DATABASES = pytest.mark.parametrize(
    "location", ["file", pytest.param("server", marks=pytest.mark.slow)], indirect=True
)


@pytest.fixture
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """The path of a new file, or the address of an empty workspace on a server."""
    is_file = getattr(request, "param", "file") == "file"
    return tmp_path / "w.db" if is_file else str(request.getfixturevalue("url"))


@contextmanager
def another_writer(location: Path | str) -> Iterator[None]:
    """Let another program hold the right to write."""
    if isinstance(location, str):
        with psycopg.connect(location) as server:
            server.execute("SELECT public.take_turns(ARRAY['alice'])")
            yield
        return
    with closing(sqlite3.connect(location, isolation_level=None)) as file:
        file.execute("BEGIN IMMEDIATE")
        yield


@pytest.fixture
def workspace(location: Path | str) -> Iterator[Workspace]:
    """A workspace with one label."""
    with closing(Workspace.open(location)) as workspace:
        start_pass(workspace, label(workspace))
        yield workspace


def add(workspace: Workspace) -> None:
    workspace.append([event(LabelAdded(label(workspace)))])


def assert_read_only(workspace: Workspace) -> None:
    with (
        pytest.raises(WorkspaceError, match="is read-only"),
        workspace._database.reading() as connection,
    ):
        connection.execute(text("DELETE FROM labels"))
    assert len(workspace.labels()) == 1
    workspace.set_setting("still", "writable")


@ON_BOTH_DATABASES
def test_reading_connection_cannot_write_and_sees_one_state(workspace: Workspace) -> None:
    assert_read_only(workspace)
    with workspace._database.reading() as connection:
        assert connection.execute(COUNT).scalar_one() == 1
        add(workspace)
        assert connection.execute(COUNT).scalar_one() == 1
    assert len(workspace.labels()) == 2


def test_reading_connection_in_memory_cannot_write() -> None:
    with closing(Workspace.open(":memory:")) as workspace:
        start_pass(workspace, label(workspace))
        assert_read_only(workspace)


def test_reads_do_not_wait_for_writers(workspace: Workspace, location: Path) -> None:
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
    with another_writer(location):
        assert len(workspace.labels()) == 2


@ON_BOTH_DATABASES
def test_changes_of_other_programs_are_noticed_once(
    workspace: Workspace, location: Path | str
) -> None:
    workspace.changed_elsewhere()
    add(workspace)
    assert not workspace.changed_elsewhere()
    with closing(Workspace.open(location)) as other:
        add(other)
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


@ON_BOTH_DATABASES
async def test_step_waits_for_another_program_while_the_loop_continues(
    workspace: Workspace, location: Path | str
) -> None:
    queue = StepQueue()
    with another_writer(location):
        queue.add(lambda: add(workspace))
        await queue.until_reported()
        holder = "the server is slow" if isinstance(location, str) else "another program is writing"
        assert queue.writes.report == f"Saving …: {holder} · 1 action not done yet"
        assert len(workspace.labels()) == 1
    await queue.until_idle()
    assert (queue.errors, queue.writes.report) == ([], "")
    assert len(workspace.labels()) == 2


async def test_drawing_is_held_until_a_piece_of_work_ends_or_waits(
    workspace: Workspace, location: Path
) -> None:
    queue = StepQueue()
    log: list[str] = []

    @contextmanager
    def hold() -> Iterator[None]:
        log.append("held")
        yield
        log.append("drawn")

    queue.writes = Writes(lambda: None, queue.errors.append, hold)

    def step() -> None:
        add(workspace)
        log.append("written")

    with another_writer(location):
        queue.add(step)
        await queue.until(lambda: len(log) == 2)
    await queue.until_idle()
    assert log == ["held", "drawn", "written"]
    queue.writes.do(partial(queue.writes.run, lambda: log.append("unasked")), HeldKeys.NOTHING)
    await queue.until_idle()
    assert log[3:] == ["unasked"]


async def test_error_after_a_wait_is_reported_and_rolls_back(
    workspace: Workspace, location: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = StepQueue()

    def step() -> None:
        with workspace.transaction():
            add(workspace)
            raise LookupError("no")

    with another_writer(location):
        queue.add(step)
        await queue.until_reported()
    await queue.until_idle()
    assert [type(error) for error in queue.errors] == [LookupError]
    assert len(workspace.labels()) == 1
    # The next step waits no longer than its patience.
    monkeypatch.setattr(writes, "PATIENCE", 0.05)
    with another_writer(location):
        queue.add(lambda: workspace.set_setting("a", "b"))
        await queue.until_idle()
    assert isinstance(queue.errors[1], WorkspaceError)
    assert "another program has been writing" in str(queue.errors[1])
    assert workspace.get_setting("a") is None


async def test_closing_ends_the_wait_of_a_step(workspace: Workspace, location: Path) -> None:
    queue = StepQueue()
    with another_writer(location):
        queue.add(lambda: workspace.set_setting("a", "b"))
        await queue.until_reported()
        workspace.close()
        await queue.until_idle()
    (error,) = queue.errors
    assert "the workspace is closed" in str(error)


async def test_steps_run_in_order_and_a_question_lets_keys_in(workspace: Workspace) -> None:
    queue = StepQueue()
    log: list[object] = []
    answers: list[Callable[[str], None]] = []

    async def ask() -> None:
        log.append(await queue.writes.ask(answers.append))
        log.append(await queue.writes.run(lambda: len(workspace.labels())))

    async def finish() -> None:
        log.append("after the question")

    queue.writes.do(ask)
    queue.writes.do(finish, HeldKeys.NOTHING)
    first_holds = queue.writes.holds
    await queue.until(lambda: answers)
    assert [first_holds, queue.writes.holds] == [HeldKeys.ALL, HeldKeys.NOTHING]
    assert not log
    answers[0]("yes")
    await queue.until_idle()
    assert log == ["yes", 1, "after the question"]
    assert queue.errors == []


async def test_pieces_queued_by_an_error_run_one_by_one() -> None:
    queue = StepQueue()
    log: list[str] = []

    async def piece() -> None:
        log.append("begun")
        await asyncio.sleep(0.01)
        log.append("done")

    queue.writes = Writes(lambda: None, lambda _: list(map(queue.writes.do, [piece] * 2)))
    queue.add(lambda: 1 // 0)
    await queue.until(lambda: len(log) == 4)
    assert log == ["begun", "done"] * 2
