"""A lock so that only one run of a judge at a time uses a workspace."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mast_tui.judges.llm.errors import RunStops

if sys.platform != "win32":
    import fcntl


@contextmanager
def run_lock(workspace: Path | None, judge: str) -> Iterator[None]:
    """Hold the lock of a judge on a workspace.

    The lock is on a small file beside the workspace, and ends with the process. Nothing is locked
    if the file system or the operating system has no file locks.

    Args:
        workspace: The file of the workspace; None for a workspace on a server.
        judge: The name of the judge.

    Raises:
        RunStops: Another process holds the lock.
    """
    lock = None if workspace is None else _lock_file(workspace, judge)
    try:
        yield
    finally:
        if lock is not None:
            path, file = lock
            path.unlink(missing_ok=True)  # before the release, so that no other lock is removed
            os.close(file)


def _lock_file(workspace: Path, judge: str) -> tuple[Path, int] | None:
    """Lock the file of a judge, and return its path and descriptor.

    Return None if the system has no file locks.

    Raises:
        RunStops: Another process holds the lock.
    """
    if sys.platform == "win32":
        return None
    judge_hash = hashlib.sha256(judge.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    path = workspace.with_name(f"{workspace.name}-judge-{judge_hash}")
    while True:
        try:
            file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another process may have removed the file between the two calls: then try again.
            if _is_same_file(path, file):
                return path, file
        except BlockingIOError as error:
            os.close(file)
            raise RunStops(
                f"another process is running {judge} in this workspace; "
                "once it has ended, the same command goes on"
            ) from error
        except OSError:
            os.close(file)
            return None
        os.close(file)


def _is_same_file(path: Path, file: int) -> bool:
    """Check whether the locked file is still at its path; another holder may have removed it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False
