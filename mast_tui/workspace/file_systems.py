"""Whether a file lies on a network, where SQLite's write-ahead log cannot be trusted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_MOUNTS: Final = Path("/proc/self/mounts")

_NETWORK: Final = re.compile(
    r"9p|acfs|afs|beegfs|ceph|cifs|coda|davfs|drvfs|gfs2|glusterfs|gpfs|lustre|ncpfs|nfs4?|ocfs2"
    r"|orangefs|panfs|prl_fs|smb3|smbfs|vboxsf|virtiofs|vmhgfs|wekafs"
    r"|fuse\.(?:ceph|davfs2|gcsfuse|glusterfs|rclone|s3fs|sshfs|vmhgfs-fuse)"
)


def is_on_network(path: Path, mounts: Path = _MOUNTS) -> bool:
    """Whether ``path`` lies on a network file system; what cannot be told counts as local."""
    try:
        table = mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return False
    return _NETWORK.fullmatch(file_system_of(path.resolve(), table) or "") is not None


def file_system_of(path: Path, mounts: str) -> str | None:
    """The type of the file system that holds an absolute path, by a table like /proc/mounts."""
    best: tuple[int, str] | None = None
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(_unescaped(fields[1]))
        # Of several mounts on one point the last hides the others.
        if path.is_relative_to(point) and (best is None or len(point.parts) >= best[0]):
            best = (len(point.parts), fields[2])
    return None if best is None else best[1]


def _unescaped(field: str) -> str:
    """Spaces and the like stand as octal escapes in the table."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)
