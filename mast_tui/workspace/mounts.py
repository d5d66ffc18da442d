"""The question whether a file is on a network file system."""

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
"""The command that lists mounts on macOS and the BSDs, which have no table of them."""

_MOUNT_SECONDS: Final = 5.0
_MOUNT_LINE: Final = re.compile(r".*? on (?P<point>/.*) \((?P<kind>[^,()]+)(?P<options>[^()]*)\)")


class _Mount(NamedTuple):
    """A mounted file system; ``network`` is True if it is on a network."""

    point: Path
    kind: str
    network: bool


def is_on_network(path: Path, mounts: Path = _MOUNTS) -> bool:
    """Return whether a path is on a network file system; unknown types count as local.

    Args:
        path: The path; links are followed.
        mounts: The system's table of mounted file systems.
    """
    resolved = path.resolve()
    containing = [m for m in _mounted_file_systems(mounts) if resolved.is_relative_to(m.point)]
    # The deepest mount counts, and the last one of a mount point.
    containing.sort(key=lambda mount: len(mount.point.parts))
    return bool(containing) and containing[-1].network


def _linux_mounts(table: str) -> Iterator[_Mount]:
    """Yield the mounts in a table such as ``/proc/mounts``."""
    for line in table.splitlines():
        match line.split(" "):
            case [_device, point, kind, *_options]:
                is_network = _NETWORK.fullmatch(kind) is not None
                yield _Mount(Path(_without_octal_escapes(point)), kind, is_network)


def _bsd_mounts(printed: str) -> Iterator[_Mount]:
    """Yield the mounts in the output of ``mount``; local ones have the option "local"."""
    for line in printed.splitlines():
        match = _MOUNT_LINE.fullmatch(line)
        if match is not None:
            options = match["options"].split(",")
            local = any(option.strip() == "local" for option in options)
            yield _Mount(Path(match["point"]), match["kind"], not local)


def _mounted_file_systems(mounts: Path) -> Iterator[_Mount]:
    """Read the mounts from Linux's table, or else from the command ``mount``."""
    try:
        return _linux_mounts(mounts.read_text(encoding="utf-8", errors="surrogateescape"))
    except OSError:
        pass
    try:
        printed = subprocess.run(
            [_MOUNT], capture_output=True, timeout=_MOUNT_SECONDS, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return iter(())
    return _bsd_mounts(printed.decode("utf-8", "surrogateescape"))


def _without_octal_escapes(field: str) -> str:
    """Decode octal escapes, such as those of spaces."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)
