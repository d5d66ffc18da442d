"""Logs of unexpected errors: place and type of the error, and no text of a trace."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from textual import work
from textual.worker import WorkerFailed

from mast_tui.taxonomy.loader import load_mast
from mast_tui.ui import crashes
from mast_tui.ui.app import MastApp
from mast_tui.ui.options import AppOptions
from tests.ui.settle import settle
from tests.ui.stage import stage, write_trace
from tests.waiting import PATIENCE

SECRET: Final = "the-flag-of-a-trace"


def _chained() -> None:
    try:
        int(SECRET)
    except ValueError as error:
        raise RuntimeError(SECRET) from error


def _group() -> None:
    raise ExceptionGroup(SECRET, [ValueError(SECRET), OSError(28, SECRET, SECRET)])


def _noted() -> None:
    error = ValueError(SECRET)
    error.add_note(SECRET)
    raise error


QUERY: Final = f"select '{SECRET}' from {SECRET[:3]}{SECRET[4:8]}"

RAISING: Final[dict[str, tuple[Callable[[], object], tuple[str, ...]]]] = {
    "key": (lambda: dict[str, int]()[SECRET], ("builtins.KeyError",)),
    "chained": (_chained, ("in _chained\n", "builtins.RuntimeError", "builtins.ValueError")),
    "group": (_group, ("ExceptionGroup", "ValueError", "OSError: ENOSPC, No space left")),
    "bytes": ((SECRET.encode() + b"\xff").decode, ("builtins.UnicodeDecodeError",)),
    "database": (
        lambda: sqlite3.connect(":memory:").execute(QUERY),
        ("sqlite3.OperationalError: SQLITE_ERROR",),
    ),
    "attribute": (lambda: getattr(SECRET, SECRET), ("builtins.AttributeError: str has no …",)),
    "noted": (_noted, ("builtins.ValueError",)),
}


def raised_error(name: str) -> Exception:
    raising, _ = RAISING[name]
    try:
        raising()
    except Exception as error:  # noqa: BLE001 - any error is what is looked at
        return error
    raise AssertionError("it raises nothing")


@pytest.mark.parametrize("name", RAISING)
def test_a_log_has_place_and_type_and_no_text(name: str) -> None:
    log = crashes.log_of(raised_error(name))
    assert SECRET not in log
    assert "test_crashes.py" in log
    assert all(part in log for part in RAISING[name][1])


def test_a_log_has_the_name_of_a_missing_attribute() -> None:
    with pytest.raises(AttributeError) as caught:
        SECRET.no_such()  # type: ignore[attr-defined]
    assert "builtins.AttributeError: str has no no_such\n" in crashes.log_of(caught.value)


def test_logs_are_few_small_and_private() -> None:
    from platformdirs import user_log_path

    folder = user_log_path("mast-tui")
    for _ in range(crashes.MAX_LOGS + 3):
        message = crashes.log_error(raised_error("chained"))
    assert "unexpected error (RuntimeError); the log is " in message
    assert SECRET not in message
    logs = [*folder.iterdir()]
    assert (len(logs), folder.stat().st_mode & 0o777) == (crashes.MAX_LOGS, 0o700)
    assert {log.stat().st_mode & 0o777 for log in logs} == {0o600}
    assert all(log.stat().st_size <= crashes.MAX_LOG_CHARS for log in logs)


def test_a_log_that_cannot_be_written_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    assert "no log could be written: Not a directory" in crashes.log_error(ValueError(SECRET))


COMMAND: Final = f"""
import sys
import mast_tui.cli.dispatch as dispatch
from mast_tui.cli import main

def broken(name):
    held = {SECRET!r}
    raise LookupError(held)

dispatch.load_command = broken
main(["status"])
"""


def test_a_command_with_an_unexpected_error_prints_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMMAND],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("mast-tui: unexpected error (LookupError); the log is ")
    assert done.stderr.count("\n") == 1
    log = Path(done.stderr.strip().rpartition(" ")[2]).read_text()
    assert "in broken" in log
    assert SECRET not in log + done.stderr


class AppWithBrokenWorkspace(MastApp):
    """An app whose workspace cannot be opened for a reason that nobody expected."""

    @work(thread=True, group="workspace", exclusive=True)
    def open_workspace(self) -> None:
        raise KeyError(SECRET)


async def test_an_error_on_opening_the_workspace_leaves_the_reader(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "small.json")
    app = AppWithBrokenWorkspace(
        AppOptions((path,), False, None, "alice", None, False, False), load_mast()
    )
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert "KeyError" in str(app.workspace.no_workspace_reason)
        await pilot.press("r", "j")
        assert app.is_running
        assert app.crash is None
        expect_error(app, KeyError)


def expect_error(app: MastApp, kind: type[Exception]) -> None:
    assert isinstance(app._exception, WorkerFailed)
    assert isinstance(app._exception.error, kind)
    app._exception = None


async def test_an_error_of_a_judge_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OverflowError(SECRET)

    path = write_trace(tmp_path / "small.json")
    async with stage(path) as on:
        with monkeypatch.context() as planted:
            planted.setattr("mast_tui.ui.services.judging.run_judge", broken)
            await on.press("J")
        assert "The judge stopped: unexpected error (OverflowError)" in on.message
        assert SECRET not in on.text
        assert on.app.judge_at_work is None
        expect_error(on.app, OverflowError)
        await on.press("J", "1", "3")
        assert on.labels == {("1.3", 1, 1)}
