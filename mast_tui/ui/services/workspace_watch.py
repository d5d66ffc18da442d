"""An eye on the workspace's file: what others write, whether it is there, that it is whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final

from textual.message import Message

from mast_tui.errors import WorkspaceError, WorkspaceGone

if TYPE_CHECKING:
    from mast_tui.workspace import Workspace

LOOK_EVERY: Final = 0.5
"""Seconds between two looks."""

IDLE: Final = 3.0
"""Seconds without a write after which all that is kept is brought into the one file."""


@dataclass
class WorkspaceChanged(Message):
    """Another program has written to the workspace."""


@dataclass
class WorkspaceLost(Message):
    """The workspace's file is not at its path any more."""


class Watch:
    """Looks at an open workspace from a thread of its own, which ends with the process."""

    def __init__(self, workspace: Workspace, post: Callable[[Message], object]) -> None:
        """Begin to look.

        Args:
            workspace: The open workspace.
            post: Takes what is seen, from the thread.
        """
        self._workspace = workspace
        self._post = post
        self._over = Event()
        self._whole_at = 0.0
        Thread(target=self._run, name="workspace-watch", daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()

    def _run(self) -> None:
        lost = False
        while not self._over.wait(LOOK_EVERY):
            try:
                if self._workspace.changed_elsewhere():
                    self._post(WorkspaceChanged())
                lost = False
                self._make_whole()
            except WorkspaceGone:
                if not lost:
                    self._post(WorkspaceLost())
                lost = True
            except WorkspaceError:
                continue  # whoever writes next is told, in words

    def _make_whole(self) -> None:
        """Bring what was written into the one file, once nothing more has come for a while."""
        last = self._workspace.last_write
        if last > self._whole_at and monotonic() - last > IDLE:
            self._whole_at = last
            self._workspace.checkpoint()


def place_for_a_copy(path: Path) -> Path:
    """Where to write a workspace whose file is gone: the same place where nothing lies there now,
    else beside it."""
    if not path.exists():
        return path
    numbers = ("", *(f"-{number}" for number in range(2, 1000)))
    names = (f"{path.stem}-rescued{number}{path.suffix}" for number in numbers)
    return next(place for name in names if not (place := path.with_name(name)).exists())
