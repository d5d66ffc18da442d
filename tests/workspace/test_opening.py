"""Opening of workspaces: refusals, file systems, and threads."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.workspace import Workspace, WorkspaceError, mounts, sqlite_file
from mast_tui.workspace.events.types import LabelAdded
from mast_tui.workspace.mounts import is_on_network
from tests.workspace.build import event, label, start_pass, state


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "w.db"


def hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_reopened_workspace_has_the_same_content(tmp_path: Path, path: Path) -> None:
    deep = tmp_path / "deep" / "folder" / "w.db"
    with closing(Workspace.open(deep)) as workspace:
        start_pass(workspace, label(workspace))
        workspace.set_setting("a", "b")
        content_before = state(workspace), list(workspace.events())
    with closing(Workspace.open(deep, create=False)) as workspace:
        assert (state(workspace), list(workspace.events())) == content_before
        assert workspace.get_setting("a") == "b"
        assert workspace.get_setting("c") is None
    path.touch()
    with closing(Workspace.open(path)) as workspace:
        assert workspace.labels() == ()


def newer_schema(path: Path) -> None:
    with closing(Workspace.open(path)) as workspace:
        start_pass(workspace, label(workspace))
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA user_version = 99")


def other_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("CREATE TABLE mine (x)")


def read_only(path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("the superuser may write everything")
    Workspace.open(path).close()
    path.chmod(0o400)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (newer_schema, "newer.*upgrade"),
        (other_program, "another program"),
        (lambda path: path.write_bytes(b"not a database at all"), "not a mast-tui workspace"),
        (lambda path: path.write_bytes(b"SQLite format 3\0 cut off"), "not a mast-tui workspace"),
        (Path.mkdir, "folder"),
        (read_only, "is read-only"),
    ],
    ids=["newer", "other program", "text", "cut off", "folder", "read only"],
)
def test_refused_file_is_named_with_the_reason_and_unchanged(
    path: Path, make: Callable[[Path], object], reason: str
) -> None:
    make(path)
    hashes_before = hashes(path.parent)
    with pytest.raises(WorkspaceError, match=reason) as caught:
        Workspace.open(path)
    assert hashes(path.parent) == hashes_before
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_refused_places_stay_empty(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="no workspace"):
        Workspace.open(tmp_path / "x" / "w.db", create=False)
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("x")
    with pytest.raises(WorkspaceError, match="file"):
        Workspace.open(tmp_path / "file" / "w.db")


def test_newer_schema_in_the_write_ahead_log_is_refused(path: Path) -> None:
    Workspace.open(path).close()
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA user_version = 99")
        with pytest.raises(WorkspaceError, match="newer"):
            Workspace.open(path)
        assert raw.execute("PRAGMA user_version").fetchone() == (99,)


def test_closed_workspace_refuses_reads_and_writes() -> None:
    workspace = Workspace.open(":memory:")
    workspace.close()
    workspace.close()
    with pytest.raises(WorkspaceError, match="closed"):
        workspace.labels()
    with pytest.raises(WorkspaceError, match="closed"):
        workspace.append([event(LabelAdded(label(workspace)))])


def test_lone_surrogate_is_refused_and_nothing_is_written(workspace: Workspace) -> None:
    with pytest.raises(WorkspaceError, match="half a character"):
        start_pass(workspace, label(workspace, note="\ud800"))
    assert list(workspace.events()) == []
    assert workspace.labels() == ()


def test_only_local_files_have_a_write_ahead_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "is_on_network", lambda path: path.name == "remote.db")
    for name, has_log in (("local.db", True), ("remote.db", False)):
        with closing(Workspace.open(tmp_path / name)) as workspace:
            start_pass(workspace, label(workspace))
            assert (tmp_path / name).exists()
            assert (tmp_path / f"{name}-wal").exists() == has_log


LINUX_MOUNTS = """\
proc /proc proc rw 0 0
/dev/sda1 / ext4 rw 0 0
server:/export /home nfs4 rw 0 0
/dev/sdb1 /home/me/with\\040space xfs rw 0 0
me@host: /home/me/far fuse.sshfs rw 0 0
over /srv overlay rw 0 0
//nas/x /srv cifs rw 0 0
broken
"""
MACOS_MOUNTS = """\
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


ON_NETWORK = {
    "/opt/w.db": False,
    "/home/me/w.db": True,
    "/homework/w.db": False,
    "/home/me/with space/w.db": False,
    "/home/me/far/.mast-tui/w.db": True,
    "/srv/w.db": True,
}
ON_NETWORK_OF_A_MAC = {
    "/Users/ann/w.db": False,
    "/System/Volumes/Data/w.db": False,
    "/Volumes/work (1)/w.db": True,
    "/Volumes/on tape/w.db": True,
    "/Users/ann/far/.mast-tui/w.db": True,
    "/Volumes/stick/w.db": False,
}


def test_network_is_recognised_by_the_nearest_mount_of_a_table_or_command_or_assumed_local(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "mounts"
    command = tmp_path / "mount"
    monkeypatch.setattr(mounts, "_MOUNT", str(command))

    def network_of(paths: Iterable[str]) -> dict[str, bool]:
        return {path: is_on_network(Path(path), table) for path in paths}

    all_paths = {*ON_NETWORK, *ON_NETWORK_OF_A_MAC}
    assert not any(network_of(all_paths).values())  # no table and no command
    command.write_text(f"#!/bin/sh\ncat <<'END'\n{MACOS_MOUNTS}END\n")
    command.chmod(0o700)
    assert network_of(ON_NETWORK_OF_A_MAC) == ON_NETWORK_OF_A_MAC
    command.write_text("#!/bin/sh\nexit 1\n")
    assert not any(network_of(all_paths).values())
    table.write_text(LINUX_MOUNTS)
    assert network_of(ON_NETWORK) == ON_NETWORK


def test_threads_share_a_workspace(workspace: Workspace) -> None:
    def work(name: str) -> None:
        start_pass(workspace, annotator=name)
        for _ in range(20):
            added = LabelAdded(label(workspace, annotator=name))
            workspace.append([event(added, annotator=name)])

    threads = [threading.Thread(target=work, args=(name,)) for name in ("alice", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in ("alice", "bob"):
        assert len(workspace.labels(annotator=name)) == 20
        counters = [row.seq for row in workspace.events(annotator=name)]
        assert counters == list(range(1, 22))
