"""The file of a workspace: checkpoints, copies, permissions, and loss."""

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
from tests.workspace.build import event, label, start_pass, state


def labels_in(path: Path) -> int:
    """Count the labels in the file itself, without its write-ahead log."""
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


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".mast-tui" / "workspace.db"


def test_checkpoint_and_closing_make_one_whole_file(path: Path) -> None:
    with closing(Workspace.open(path)) as workspace:
        start_pass(workspace, label(workspace))
        assert labels_in(path) == 0
        workspace.checkpoint()
        assert labels_in(path) == 1
        add(workspace)
    assert labels_in(path) == 2
    assert [file.name for file in path.parent.iterdir() if file.is_file()] == [path.name]


def test_reader_does_not_block_checkpoints_and_writes(path: Path) -> None:
    with closing(Workspace.open(path)) as workspace, closing(Workspace.open(path)) as other:
        start_pass(workspace, label(workspace))
        with other._database.reading() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM labels").scalar_one() == 1
            workspace.checkpoint()
            add(workspace)
        assert len(other.labels()) == 2


def test_copy_is_complete_appears_when_whole_and_replaces_nothing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "copy.db"
    existed: list[bool] = []
    with closing(Workspace.open(path)) as workspace:
        start_pass(workspace, label(workspace))
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
        second = tmp_path / "second.db"
        monkeypatch.setattr(
            "mast_tui.workspace.sqlite_file._adapt_trace_paths",
            lambda *_: existed.append(second.exists()),
        )
        workspace.copy_to(second)
    assert existed == [False]
    assert labels_in(second) == 1
    assert not list(tmp_path.glob(".mast-tui-*"))


def test_backup_command_copies_an_open_workspace(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from mast_tui.cli.command_line import split_command
    from mast_tui.cli.dispatch import run

    target = tmp_path / "backup.db"
    command = split_command(["workspace", "backup", str(target), "--workspace", str(path)])
    with closing(Workspace.open(path)) as workspace:
        start_pass(workspace, label(workspace))
        assert run(command) == 0
        assert "2 events" in capsys.readouterr().out
        assert run(command) == 1
        assert "backup.db" in capsys.readouterr().err
    assert labels_in(target) == 1
    assert mode_of(target) == 0o600


def test_new_workspace_is_private(path: Path) -> None:
    old_mask = os.umask(0o022)
    try:
        with closing(Workspace.open(path)) as workspace:
            start_pass(workspace, label(workspace))
            modes = {file.name: mode_of(file) for file in path.parent.iterdir()}
    finally:
        os.umask(old_mask)
    assert set(modes) >= {"workspace.db", "workspace.db-wal"}
    assert set(modes.values()) == {0o600}
    assert mode_of(path.parent) == 0o700


def test_opening_removes_read_permission_of_others_who_may_not_write(path: Path) -> None:
    Workspace.open(path).close()
    for old_mode, new_mode in ((0o644, 0o600), (0o660, 0o660), (0o640, 0o600)):
        path.chmod(old_mode)
        Workspace.open(path).close()
        assert mode_of(path) == new_mode


def test_file_with_a_trigger_or_view_is_refused(path: Path) -> None:
    Workspace.open(path).close()
    for kind, planted in (
        ("TRIGGER", "CREATE TRIGGER t AFTER INSERT ON labels BEGIN DELETE FROM labels; END"),
        ("VIEW", "CREATE VIEW t AS SELECT * FROM settings"),
    ):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(planted)
        with pytest.raises(WorkspaceError, match=r"trigger|view"):
            Workspace.open(path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"DROP {kind} t")
    Workspace.open(path).close()


@pytest.mark.parametrize("plant", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_special_file_is_refused_unread(path: Path, plant: Callable[[Path], object]) -> None:
    path.parent.mkdir()
    plant(path)
    errors: list[str] = []

    def open_it() -> None:
        with pytest.raises(WorkspaceError) as error:
            Workspace.open(path)
        errors.append(str(error.value))

    # In a thread, as opening a pipe would wait forever.
    thread = threading.Thread(target=open_it, daemon=True)
    thread.start()
    thread.join(60)
    assert errors == [f"{path}: is not a regular file; give another one"]


def test_file_that_others_may_write_is_not_trusted(path: Path) -> None:
    Workspace.open(path).close()
    assert why_not_trusted(path) is None
    path.chmod(0o666)
    assert "others can write" in (why_not_trusted(path) or "")
    path.chmod(0o600)
    path.parent.chmod(0o777)
    assert str(path.parent) in (why_not_trusted(path) or "")
    path.parent.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
        assert "another user" in (why_not_trusted(path) or "")


def delete(path: Path) -> None:
    shutil.rmtree(path.parent)


def move(path: Path) -> None:
    path.rename(path.with_name("other.db"))


def replace(path: Path) -> None:
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


def delete_log(path: Path) -> None:
    path.with_name(path.name + "-wal").unlink()


def bytes_of(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


@pytest.mark.parametrize("lose", [delete, move, replace, delete_log])
def test_lost_file_is_reported_and_its_content_can_be_written_elsewhere(
    path: Path, tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    target = tmp_path / "rescued" / "w.db"
    with closing(Workspace.open(path)) as workspace:
        start_pass(workspace, label(workspace))
        state_before = state(workspace)
        lose(path)
        with pytest.raises(WorkspaceGone, match="deleted, moved or replaced"):
            add(workspace)
        with pytest.raises(WorkspaceGone):
            workspace.changed_elsewhere()
        remaining = bytes_of(path)
        workspace.move_to(target)
        assert state(workspace) == state_before
        add(workspace)
        assert len(workspace.labels()) == 2
    assert bytes_of(path) == remaining
    assert labels_in(target) == 2


def test_lost_file_can_be_written_to_its_old_place(path: Path) -> None:
    with closing(Workspace.open(path)) as workspace:
        start_pass(workspace, label(workspace))
        delete(path)
        workspace.move_to(path)
        add(workspace)
    assert labels_in(path) == 2
    assert mode_of(path.parent) == 0o700
