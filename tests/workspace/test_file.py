"""The one file: whole when it is left alone, private, trusted, and missed when it is gone."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.errors import WorkspaceGone
from mast_tui.workspace import Workspace, WorkspaceError
from mast_tui.workspace.events.types import LabelAdded
from mast_tui.workspace.paths import why_not_trusted
from tests.workspace.build import event, label, started, state


def labels_in(path: Path) -> int:
    """How many labels the file holds by itself, without what lies beside it."""
    copy = path.with_name("alone") / "copy.db"
    copy.parent.mkdir(exist_ok=True)
    shutil.copy(path, copy)
    with closing(sqlite3.connect(copy)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE name = 'labels'")
        if tables.fetchone() is None:
            return 0
        return int(connection.execute("SELECT count(*) FROM labels").fetchone()[0])


def add(workspace: Workspace) -> None:
    workspace.append([event(LabelAdded(label(workspace)))])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".mast-tui" / "workspace.db"


# Whole


def test_a_workspace_that_was_closed_is_one_whole_file(path: Path) -> None:
    with closing(Workspace.open(path)) as workspace:
        started(workspace, label(workspace), label(workspace))
    assert labels_in(path) == 2
    assert [one.name for one in path.parent.iterdir() if one.is_file()] == [path.name]


def test_it_can_be_made_whole_while_it_is_open(path: Path) -> None:
    with closing(Workspace.open(path)) as workspace:
        started(workspace, label(workspace))
        assert labels_in(path) == 0
        workspace.checkpoint()
        assert labels_in(path) == 1
        add(workspace)
    assert labels_in(path) == 2


def test_whoever_reads_keeps_nobody_from_closing(path: Path) -> None:
    with closing(Workspace.open(path)) as workspace, closing(Workspace.open(path)) as other:
        started(workspace, label(workspace))
        with other._database.reading() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM labels").scalar_one() == 1
            workspace.checkpoint()
            add(workspace)
        assert len(other.labels()) == 2


def test_a_copy_holds_everything_and_replaces_nothing(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    with closing(Workspace.open(path)) as workspace:
        started(workspace, label(workspace))
        workspace.copy_to(target)
        assert labels_in(target) == 1
        with closing(Workspace.open(target, create=False)) as copy:
            assert state(copy) == state(workspace)
            assert list(copy.events()) == list(workspace.events())
        with pytest.raises(WorkspaceError, match="copy"):
            workspace.copy_to(target)
        link = tmp_path / "link.db"
        link.symlink_to(tmp_path / "elsewhere.db")
        with pytest.raises(WorkspaceError, match="link"):
            workspace.copy_to(link)
    assert not (tmp_path / "elsewhere.db").exists()


def test_a_copy_has_no_name_until_it_is_whole(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "copy.db"
    existed: list[bool] = []
    monkeypatch.setattr(
        "mast_tui.workspace.sqlite_file._name_traces_from",
        lambda *_: existed.append(target.exists()),
    )
    with closing(Workspace.open(path)) as workspace:
        workspace.copy_to(target)
    assert existed == [False]
    assert labels_in(target) == 0
    assert not list(tmp_path.glob(".mast-tui-*"))


# Private and trusted


def test_nobody_else_can_read_a_new_workspace(path: Path) -> None:
    before = os.umask(0o022)
    try:
        with closing(Workspace.open(path)) as workspace:
            started(workspace, label(workspace))
            modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert set(modes) >= {"workspace.db", "workspace.db-wal"}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o660, 0o660), (0o640, 0o600)])
def test_one_that_others_could_read_is_closed_to_them_unless_they_may_write(
    path: Path, before: int, after: int
) -> None:
    Workspace.open(path).close()
    path.chmod(before)
    Workspace.open(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == after


@pytest.mark.parametrize(
    "planted",
    [
        "CREATE TRIGGER t AFTER INSERT ON labels BEGIN DELETE FROM labels; END",
        "CREATE VIEW v AS SELECT * FROM settings",
    ],
)
def test_a_file_that_would_do_things_by_itself_is_refused(path: Path, planted: str) -> None:
    Workspace.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(planted)
        connection.commit()
    with pytest.raises(WorkspaceError, match=r"trigger|view"):
        Workspace.open(path)


@pytest.mark.parametrize("plant", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_regular_file_is_refused_unread(
    path: Path, plant: Callable[[Path], object]
) -> None:
    path.parent.mkdir()
    plant(path)
    refused: list[str] = []

    def try_it() -> None:
        with pytest.raises(WorkspaceError) as error:
            Workspace.open(path)
        refused.append(str(error.value))

    # In a thread: a pipe that is opened is waited for without an end.
    thread = threading.Thread(target=try_it, daemon=True)
    thread.start()
    thread.join(60)
    assert refused == [f"{path}: this is no regular file; name one for the workspace"]


def test_one_that_others_may_write_is_not_trusted_unasked(path: Path) -> None:
    Workspace.open(path).close()
    assert why_not_trusted(path) is None
    path.chmod(0o666)
    assert "others may write" in (why_not_trusted(path) or "")
    path.chmod(0o600)
    path.parent.chmod(0o777)
    assert str(path.parent) in (why_not_trusted(path) or "")
    path.parent.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
        assert "another user" in (why_not_trusted(path) or "")


# Gone


def _deleted(path: Path) -> None:
    shutil.rmtree(path.parent)


def _moved(path: Path) -> None:
    path.rename(path.with_name("other.db"))


def _replaced(path: Path) -> None:
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


def _without_log(path: Path) -> None:
    path.with_name(path.name + "-wal").unlink()


@pytest.mark.parametrize("lose", [_deleted, _moved, _replaced, _without_log])
def test_nothing_is_claimed_once_the_file_is_gone_and_all_of_it_can_be_written_elsewhere(
    path: Path, tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    with closing(Workspace.open(path)) as workspace:
        started(workspace, label(workspace))
        before = state(workspace)
        lose(path)
        with pytest.raises(WorkspaceGone, match="deleted, moved or replaced"):
            add(workspace)
        with pytest.raises(WorkspaceGone):
            workspace.changed_elsewhere()
        there = _bytes_of(path)
        target = tmp_path / "rescued" / "w.db"
        workspace.move_to(target)
        assert state(workspace) == before
        add(workspace)
        assert len(workspace.labels()) == 2
    # What has taken its place is left alone, also at the end.
    assert _bytes_of(path) == there
    assert labels_in(target) == 2


def _bytes_of(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def test_it_can_be_written_to_the_place_that_it_has_gone_from(path: Path) -> None:
    with closing(Workspace.open(path)) as workspace:
        started(workspace, label(workspace))
        _deleted(path)
        workspace.move_to(path)
        add(workspace)
    assert labels_in(path) == 2
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_backup_is_made_by_command_while_the_workspace_is_open(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from mast_tui.cli.command_line import split_command
    from mast_tui.cli.dispatch import run

    target = tmp_path / "backup.db"
    words = ["workspace", "backup", str(target), "--workspace", str(path)]
    with closing(Workspace.open(path)) as workspace:
        started(workspace, label(workspace))
        assert run(split_command(words)) == 0
        assert "2 events" in capsys.readouterr().out
        assert run(split_command(words)) == 1
        assert "backup.db" in capsys.readouterr().err
    assert labels_in(target) == 1
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
