"""One run of a judge at a time over a workspace, so that no two ask the same questions."""

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
    """Within, no other process has this judge asked for the same workspace.

    A lock on a small file beside the workspace's says so; it goes with the process, however that
    ends. Where the file system or the operating system has no such locks nobody is kept out.

    Raises:
        RunStops: another process is at it.
    """
    held = None if workspace is None else _locked(workspace, judge)
    try:
        yield
    finally:
        if held is not None:
            place, file = held
            place.unlink(missing_ok=True)  # while it is held, so that nobody loses a lock by it
            os.close(file)


def _locked(workspace: Path, judge: str) -> tuple[Path, int] | None:
    """The lock's file and its descriptor, None where there can be none."""
    if sys.platform == "win32":
        return None
    short = hashlib.sha256(judge.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    place = workspace.with_name(f"{workspace.name}-judge-{short}")
    while True:
        try:
            file = os.open(place, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_there(place, file):
                return place, file
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


def _is_there(place: Path, file: int) -> bool:
    """Whether the file that was locked still stands at its place: who held it may have removed
    it in between."""
    try:
        return os.path.samestat(place.stat(), os.fstat(file))
    except FileNotFoundError:
        return False
