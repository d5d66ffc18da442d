"""Reading waits for nobody, writing for its turn, and an event loop for neither."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from sqlalchemy import text

from mast_tui import writes
from mast_tui.workspace import Workspace, WorkspaceError
from mast_tui.workspace.events.types import LabelAdded
from mast_tui.writes import Command
from tests.workspace.build import event, label, started


@contextmanager
def somebody_writes(path: Path) -> Iterator[sqlite3.Connection]:
    """Another program holds the right to write."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with closing(Workspace.open(tmp_path / "w.db")) as workspace:
        started(workspace, label(workspace))
        yield workspace


@pytest.mark.parametrize("place", ["w.db", ":memory:"])
def test_whoever_reads_cannot_write(tmp_path: Path, place: str) -> None:
    where = place if place == ":memory:" else tmp_path / place
    with closing(Workspace.open(where)) as workspace:
        started(workspace, label(workspace))
        with (
            pytest.raises(WorkspaceError, match="may not be written"),
            workspace._database.reading() as connection,
        ):
            connection.execute(text("DELETE FROM labels"))
        assert len(workspace.labels()) == 1
        workspace.set_setting("still", "writable")


def test_reading_waits_neither_for_another_program_nor_for_another_thread(
    workspace: Workspace, tmp_path: Path
) -> None:
    begun, done = Event(), Event()

    def write() -> None:
        with workspace.transaction():
            workspace.append([event(LabelAdded(label(workspace)))])
            begun.set()
            done.wait(60)

    thread = Thread(target=write)
    thread.start()
    try:
        assert begun.wait(60)
        assert len(workspace.labels()) == 1
    finally:
        done.set()
        thread.join()
    assert len(workspace.labels()) == 2
    with somebody_writes(tmp_path / "w.db"):
        assert len(workspace.labels()) == 2


def test_a_reader_that_is_not_through_holds_nobody_up_and_sees_one_state(
    workspace: Workspace,
) -> None:
    count = text("SELECT count(*) FROM labels")
    with workspace._database.reading() as connection:
        assert connection.execute(count).scalar_one() == 1
        workspace.append([event(LabelAdded(label(workspace)))])
        assert connection.execute(count).scalar_one() == 1
    assert len(workspace.labels()) == 2


def test_within_a_transaction_one_reads_what_one_has_written(workspace: Workspace) -> None:
    with workspace.transaction():
        workspace.append([event(LabelAdded(label(workspace)))])
        assert len(workspace.labels()) == 2


def test_it_is_told_when_another_program_has_written_and_not_of_oneself(
    workspace: Workspace, tmp_path: Path
) -> None:
    workspace.changed_elsewhere()
    workspace.set_setting("a", "b")
    assert not workspace.changed_elsewhere()
    with closing(Workspace.open(tmp_path / "w.db")) as other:
        other.set_setting("a", "c")
    assert workspace.changed_elsewhere()
    assert not workspace.changed_elsewhere()


class Told:
    """What became of commands."""

    def __init__(self) -> None:
        self.errors: list[BaseException | None] = []
        self.over = asyncio.Event()

    def __call__(self, error: BaseException | None) -> None:
        self.errors.append(error)
        self.over.set()


async def test_a_command_waits_for_others_while_the_loop_goes_on(
    workspace: Workspace, tmp_path: Path
) -> None:
    told = Told()
    command = Command(lambda: workspace.append([event(LabelAdded(label(workspace)))]), told)
    with somebody_writes(tmp_path / "w.db"):
        command.start()
        for _ in range(20):  # the loop goes round
            await asyncio.sleep(0)
            assert command.waits_for_others
        assert not told.over.is_set()
        assert len(workspace.labels()) == 1
    await asyncio.wait_for(told.over.wait(), 60)
    assert told.errors == [None]
    assert len(workspace.labels()) == 2


async def test_what_a_command_raises_behind_a_wait_is_told(
    workspace: Workspace, tmp_path: Path
) -> None:
    told = Told()

    def work() -> None:
        with workspace.transaction():
            workspace.append([event(LabelAdded(label(workspace)))])
            raise LookupError("no")

    with somebody_writes(tmp_path / "w.db"):
        Command(work, told).start()
        await asyncio.sleep(0)
    await asyncio.wait_for(told.over.wait(), 60)
    assert [type(error) for error in told.errors] == [LookupError]
    assert len(workspace.labels()) == 1


async def test_two_commands_write_one_after_the_other(workspace: Workspace) -> None:
    first, second = Told(), Told()

    def work() -> None:
        with workspace.transaction():
            known = len(workspace.labels())
            workspace.append([event(LabelAdded(label(workspace)))])
            assert len(workspace.labels()) == known + 1

    Command(work, first).start()
    Command(work, second).start()
    await asyncio.wait_for(asyncio.gather(first.over.wait(), second.over.wait()), 60)
    assert [*first.errors, *second.errors] == [None, None]
    assert len(workspace.labels()) == 3


async def test_a_command_that_has_waited_in_vain_is_refused_and_has_written_nothing(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "PATIENCE", 0.05)
    told = Told()
    with somebody_writes(tmp_path / "w.db"):
        Command(lambda: workspace.set_setting("a", "b"), told).start()
        await asyncio.wait_for(told.over.wait(), 60)
    assert "another program has been writing" in str(told.errors[0])
    assert isinstance(told.errors[0], WorkspaceError)
    assert workspace.get_setting("a") is None
