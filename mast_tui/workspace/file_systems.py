"""Detection of network file systems, where SQLite's write-ahead log cannot be trusted."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_MOUNTS: Final = Path("/proc/self/mounts")

_NETWORK: Final = re.compile(
    r"9p|acfs|afs|beegfs|ceph|cifs|coda|davfs|drvfs|gfs2|glusterfs|gpfs|lustre|ncpfs|nfs4?|ocfs2"
    r"|orangefs|panfs|prl_fs|smb3|smbfs|vboxsf|virtiofs|vmhgfs|wekafs"
    r"|fuse\.(?:ceph|davfs2|gcsfuse|glusterfs|rclone|s3fs|sshfs|vmhgfs-fuse)"
)

_MOUNT: Final = "/sbin/mount"
"""The command of macOS and the BSDs that prints the mounted file systems, of which they have no
table."""

_MOUNT_SECONDS: Final = 5.0
_MOUNT_LINE: Final = re.compile(r".*? on (?P<point>/.*) \((?P<kind>[^,()]+)(?P<options>[^()]*)\)")


class Mount(NamedTuple):
    """A file system: its mount point, its type, and True for one on a network."""

    point: Path
    kind: str
    network: bool


def is_on_network(path: Path, mounts: Path = _MOUNTS) -> bool:
    """Check whether a path is on a network file system; an unknown file system counts as local.

    Args:
        path: The path; links are followed.
        mounts: The system's table of mounted file systems.
    """
    mount = mount_of(path.resolve(), _mounted(mounts))
    return mount is not None and mount.network


def mount_of(path: Path, table: Iterator[Mount]) -> Mount | None:
    """Return the file system that holds a path; None if the table has none.

    Args:
        path: An absolute path.
        table: The mounted file systems; of several at one mount point the last one counts.
    """
    best: Mount | None = None
    for mount in table:
        nearer = best is None or len(mount.point.parts) >= len(best.point.parts)
        if nearer and path.is_relative_to(mount.point):
            best = mount
    return best


def linux_mounts(table: str) -> Iterator[Mount]:
    """Return the mounts in a table like ``/proc/mounts``."""
    for line in table.splitlines():
        fields = line.split(" ")
        if len(fields) >= 3:
            kind = fields[2]
            yield Mount(Path(_unescaped(fields[1])), kind, _NETWORK.fullmatch(kind) is not None)


def bsd_mounts(printed: str) -> Iterator[Mount]:
    """Return the mounts that ``mount`` prints on macOS, which says which ones are local."""
    for line in printed.splitlines():
        match = _MOUNT_LINE.fullmatch(line)
        if match is not None:
            options = match["options"].split(",")
            local = any(option.strip() == "local" for option in options)
            yield Mount(Path(match["point"]), match["kind"], not local)


def _mounted(mounts: Path) -> Iterator[Mount]:
    try:
        return linux_mounts(mounts.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError:
        pass
    try:
        printed = subprocess.run(
            [_MOUNT], capture_output=True, timeout=_MOUNT_SECONDS, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return iter(())
    return bsd_mounts(printed.decode("utf-8", "surrogateescape"))


def _unescaped(field: str) -> str:
    """Decode the octal escapes by which the table writes spaces."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)
