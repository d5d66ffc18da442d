"""Reading waits for nobody, writing for its turn, and an event loop for neither."""

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


class Pieces:
    """Steps that are carried out as pieces of work, and what they have raised."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []
        self.writes = Writes(lambda: None, self.errors.append)

    def add(self, step: Callable[[], object]) -> None:
        """Have a step carried out after those before it."""
        self.writes.do(partial(self.writes.run, step))

    async def until(self, condition: Callable[[], object]) -> None:
        """Let the loop go on until something holds."""
        for _ in waiting.until(condition):
            await asyncio.sleep(0.001)

    async def over(self) -> None:
        """Wait until all steps are carried out."""
        await self.until(lambda: self.writes.idle)


async def test_a_step_waits_for_others_while_the_loop_goes_on(
    workspace: Workspace, tmp_path: Path
) -> None:
    pieces = Pieces()
    with somebody_writes(tmp_path / "w.db"):
        pieces.add(lambda: workspace.append([event(LabelAdded(label(workspace)))]))
        await pieces.until(lambda: pieces.writes.report)
        assert (
            pieces.writes.report == "Waiting for another program that writes · 1 change not saved"
        )
        assert len(workspace.labels()) == 1
    await pieces.over()
    assert pieces.errors == []
    assert pieces.writes.report == ""
    assert len(workspace.labels()) == 2


async def test_what_a_step_raises_after_a_wait_is_reported(
    workspace: Workspace, tmp_path: Path
) -> None:
    pieces = Pieces()

    def step() -> None:
        with workspace.transaction():
            workspace.append([event(LabelAdded(label(workspace)))])
            raise LookupError("no")

    with somebody_writes(tmp_path / "w.db"):
        pieces.add(step)
        await pieces.until(lambda: pieces.writes.report)
    await pieces.over()
    assert [type(error) for error in pieces.errors] == [LookupError]
    assert len(workspace.labels()) == 1


async def test_pieces_of_work_follow_one_another_and_a_question_lets_keys_in(
    workspace: Workspace,
) -> None:
    pieces = Pieces()
    writes = pieces.writes
    happened: list[object] = []
    answer: list[Callable[[str], None]] = []

    async def ask() -> None:
        happened.append(await writes.ask(answer.append))
        happened.append(await writes.run(lambda: len(workspace.labels())))

    async def count() -> None:
        happened.append("after the question")

    writes.do(ask)
    writes.do(count, HeldKeys.NOTHING)
    held = [writes.holds]
    await pieces.until(lambda: answer)
    assert [*held, writes.holds] == [HeldKeys.ALL, HeldKeys.NOTHING]
    assert not happened
    answer[0]("yes")
    await pieces.over()
    assert happened == ["yes", 1, "after the question"]
    assert pieces.errors == []


async def test_a_step_that_has_waited_in_vain_is_refused_and_has_written_nothing(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "PATIENCE", 0.05)
    pieces = Pieces()
    with somebody_writes(tmp_path / "w.db"):
        pieces.add(lambda: workspace.set_setting("a", "b"))
        await pieces.over()
    (error,) = pieces.errors
    assert "another program has been writing" in str(error)
    assert isinstance(error, WorkspaceError)
    assert workspace.get_setting("a") is None


async def test_closing_ends_the_wait_of_a_step(workspace: Workspace, tmp_path: Path) -> None:
    pieces = Pieces()
    with somebody_writes(tmp_path / "w.db"):
        pieces.add(lambda: workspace.set_setting("a", "b"))
        await pieces.until(lambda: pieces.writes.report)
        workspace.close()
        await pieces.over()
    (error,) = pieces.errors
    assert "the workspace is closed" in str(error)
