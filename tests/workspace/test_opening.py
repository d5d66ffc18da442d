"""A workspace is opened or refused in words, and what is refused is not touched."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from mast_tui import writes
from mast_tui.workspace import Workspace, WorkspaceError, sqlite_file
from mast_tui.workspace.events.types import LabelAdded
from mast_tui.workspace.sqlite_file import bsd_mounts, is_on_network, linux_mounts, mount_of
from tests.workspace.build import event, label, started, state


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def refused(path: Path) -> str:
    """The words with which a path is refused; nothing in its folder has changed."""
    before = contents(path.parent)
    with pytest.raises(WorkspaceError) as caught:
        Workspace.open(path)
    assert contents(path.parent) == before
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def test_what_was_written_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "folder" / "w.db"
    with closing(Workspace.open(path)) as workspace:
        started(workspace, label(workspace))
        workspace.set_setting("a", "b")
        before, happened = state(workspace), list(workspace.events())
    with closing(Workspace.open(path, create=False)) as workspace:
        assert state(workspace) == before
        assert list(workspace.events()) == happened
        assert workspace.get_setting("a") == "b"
        assert workspace.get_setting("c") is None


def test_without_create_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="no workspace"):
        Workspace.open(tmp_path / "x" / "w.db", create=False)
    assert not list(tmp_path.iterdir())


def test_a_newer_schema_is_refused_and_nothing_is_touched(tmp_path: Path) -> None:
    path = tmp_path / "w.db"
    with closing(Workspace.open(path)) as workspace:
        started(workspace, label(workspace))
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA user_version = 99")
    message = refused(path)
    assert "newer" in message
    assert "upgrade" in message


def test_a_newer_schema_in_the_write_ahead_log_is_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "w.db"
    with closing(Workspace.open(path)):
        pass
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA user_version = 99")
        with pytest.raises(WorkspaceError, match="newer"):
            Workspace.open(path)
        assert raw.execute("PRAGMA user_version").fetchone() == (99,)


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.db"
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("CREATE TABLE mine (x)")
    assert "another program" in refused(path)


@pytest.mark.parametrize("content", [b"not a database at all", b"SQLite format 3\0 cut off"])
def test_another_kind_of_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "w.db"
    path.write_bytes(content)
    assert "no workspace" in refused(path)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.db"
    path.mkdir()
    assert "folder" in refused(path)


def test_a_file_in_the_way_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(WorkspaceError, match="file"):
        Workspace.open(tmp_path / "file" / "w.db")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everything")
def test_a_file_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.db"
    Workspace.open(path).close()
    path.chmod(0o400)
    assert "may be read but not written" in refused(path)


def test_an_empty_file_becomes_a_workspace(tmp_path: Path) -> None:
    path = tmp_path / "w.db"
    path.touch()
    with closing(Workspace.open(path)) as workspace:
        assert workspace.labels() == ()


def test_a_closed_workspace_says_so() -> None:
    workspace = Workspace.open(":memory:")
    workspace.close()
    workspace.close()
    with pytest.raises(WorkspaceError, match="closed"):
        workspace.labels()
    with pytest.raises(WorkspaceError, match="closed"):
        workspace.append([event(LabelAdded(label(workspace)))])


@pytest.mark.slow
def test_a_writer_that_holds_on_too_long_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "PATIENCE", 0.05)
    path = tmp_path / "w.db"
    with (
        closing(Workspace.open(path)) as workspace,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(WorkspaceError, match="another program"):
            started(workspace, label(workspace))
        other.execute("ROLLBACK")
        assert workspace.labels() == ()
        started(workspace, label(workspace))
        assert len(workspace.labels()) == 1


def test_half_a_character_is_refused_in_words_and_nothing_is_written() -> None:
    with closing(Workspace.open(":memory:")) as workspace:
        with pytest.raises(WorkspaceError, match="half a character"):
            started(workspace, label(workspace, note="\ud800"))
        assert list(workspace.events()) == []
        assert workspace.labels() == ()


def test_a_local_file_has_a_write_ahead_log_and_a_remote_one_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Workspace.open(tmp_path / "local.db")) as workspace:
        started(workspace, label(workspace))
        assert (tmp_path / "local.db-wal").exists()
    monkeypatch.setattr(sqlite_file, "is_on_network", lambda path: path.name == "remote.db")
    path = tmp_path / "remote.db"
    with closing(Workspace.open(path)) as workspace:
        started(workspace, label(workspace))
        assert {p.name for p in tmp_path.iterdir()} >= {"remote.db"}
        assert not list(tmp_path.glob("remote.db-wal"))


MOUNTS = """\
proc /proc proc rw 0 0
/dev/sda1 / ext4 rw 0 0
server:/export /home nfs4 rw 0 0
/dev/sdb1 /home/me/with\\040space xfs rw 0 0
me@host: /home/me/far fuse.sshfs rw 0 0
over /srv overlay rw 0 0
//nas/x /srv cifs rw 0 0
broken
"""


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/opt/w.db", "ext4"),
        ("/home/me/w.db", "nfs4"),
        ("/homework/w.db", "ext4"),
        ("/home/me/with space/w.db", "xfs"),
        ("/home/me/far/.mast-tui/w.db", "fuse.sshfs"),
        ("/srv/w.db", "cifs"),
    ],
)
def test_the_file_system_is_that_of_the_nearest_mount(path: str, found: str) -> None:
    mount = mount_of(Path(path), linux_mounts(MOUNTS))
    assert mount is not None
    assert mount.kind == found


MACOS = """\
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
devfs on /dev (devfs, local, nobrowse)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse, protect, root data)
map auto_home on /System/Volumes/Data/home (autofs, automounted, nobrowse)
//ann@nas._smb._tcp.local/work on /Volumes/work (1) (smbfs, nodev, nosuid, mounted by ann)
server:/export on /Volumes/on tape (nfs, nodev, nosuid, mounted by ann)
ann@host: on /Users/ann/far (macfuse, nodev, nosuid, synchronous, mounted by ann)
/dev/disk5s1 on /Volumes/stick (msdos, local, nodev, nosuid, noowners, fskit)
broken
"""


@pytest.mark.parametrize(
    ("path", "kind", "network"),
    [
        ("/Users/ann/w.db", "apfs", False),
        ("/System/Volumes/Data/w.db", "apfs", False),
        ("/Volumes/work (1)/w.db", "smbfs", True),
        ("/Volumes/on tape/w.db", "nfs", True),
        ("/Users/ann/far/.mast-tui/w.db", "macfuse", True),
        ("/Volumes/stick/w.db", "msdos", False),
    ],
)
def test_macos_says_itself_what_is_local(path: str, kind: str, network: bool) -> None:
    mount = mount_of(Path(path), bsd_mounts(MACOS))
    assert mount is not None
    assert (mount.kind, mount.network) == (kind, network)


def test_where_there_is_no_table_the_command_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, absent = tmp_path / "mount", tmp_path / "mounts"
    command.write_text(f"#!/bin/sh\ncat <<'END'\n{MACOS}END\n")
    command.chmod(0o700)
    monkeypatch.setattr(sqlite_file, "_MOUNT", str(command))
    assert is_on_network(Path("/Users/ann/far/w.db"), absent)
    assert not is_on_network(Path("/Users/ann/w.db"), absent)
    command.write_text("#!/bin/sh\nexit 1\n")
    assert not is_on_network(Path("/Users/ann/far/w.db"), absent)


def test_what_cannot_be_told_counts_as_local(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mount_of(Path("/x"), linux_mounts("")) is None
    monkeypatch.setattr(sqlite_file, "_MOUNT", str(tmp_path / "no such command"))
    mounts = tmp_path / "mounts"
    assert not is_on_network(Path("/home/me/w.db"), mounts)
    mounts.write_text(MOUNTS)
    assert is_on_network(Path("/home/me/w.db"), mounts)
    assert not is_on_network(Path("/opt/w.db"), mounts)


def test_it_is_used_from_several_threads() -> None:
    with closing(Workspace.open(":memory:")) as workspace:

        def work(name: str) -> None:
            started(workspace, annotator=name)
            for _ in range(20):
                one = label(workspace, annotator=name)
                workspace.append([event(LabelAdded(one), annotator=name)])

        threads = [threading.Thread(target=work, args=(name,)) for name in ("alice", "bob")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(workspace.labels(annotator="alice")) == 20
        assert len(workspace.labels(annotator="bob")) == 20
        for name in ("alice", "bob"):
            counted = [one.seq for one in workspace.events(annotator=name)]
            assert counted == list(range(1, 22))
