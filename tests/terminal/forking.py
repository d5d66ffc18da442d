"""Starting the app many times without waiting for its imports each time."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

from pexpect.fdpexpect import fdspawn

from tests.terminal.screen import Terminal, settings
from tests.waiting import PATIENCE

ROOT: Final = Path(__file__).parents[2]
BETWEEN_KEYS: Final = 0.05
"""Seconds before each key, as in the terminals that start a process of their own."""


class Apps:
    """Starts the app in processes that come from one in which everything is imported."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._asking, asked = socket.socketpair()
        with asked:
            self._program = subprocess.Popen(
                [sys.executable, "-m", "tests.terminal.forked_apps", str(asked.fileno())],
                cwd=ROOT,
                env={**settings(home), "PYTHONPATH": str(ROOT)},
                pass_fds=[asked.fileno()],
            )

    def __enter__(self) -> Apps:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._asking.close()
        self._program.wait(PATIENCE)

    def terminal(self, *arguments: str, columns: int, rows: int) -> Terminal:
        """The app with these words, in a terminal of this size."""
        order = json.dumps([str(self._home), rows, columns, arguments])
        self._asking.sendall(f"{order}\n".encode())
        pid, descriptors, _, _ = socket.recv_fds(self._asking, 32, 1)
        assert pid, "the program has gone"
        process = ForkedProcess(descriptors[0], int(pid))
        return Terminal(home=self._home, columns=columns, rows=rows, process=process)


class ForkedProcess(fdspawn):  # type: ignore[misc]
    """A process that somebody else has started, by the file descriptor of its terminal."""

    def __init__(self, descriptor: int, pid: int) -> None:
        super().__init__(descriptor)
        self._pid = pid

    def send(self, text: str) -> int:
        """Type a text."""
        time.sleep(BETWEEN_KEYS)
        return int(super().send(text))

    def kill(self, number: int) -> None:
        """Send a signal."""
        os.kill(self._pid, number)

    def close(self, force: bool = False) -> None:
        """Take the terminal away; by ``force`` the process ends too."""
        if force:
            with suppress(ProcessLookupError):
                self.kill(signal.SIGKILL)
        super().close()
