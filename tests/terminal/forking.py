"""Starting the app many times without waiting for its imports each time."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
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

    def __init__(self) -> None:
        self._asking, asked = socket.socketpair()
        with asked:
            self._program = subprocess.Popen(
                [sys.executable, "-m", "tests.terminal.forked_apps", str(asked.fileno())],
                cwd=ROOT,
                env={**settings(ROOT), "PYTHONPATH": str(ROOT)},
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

    def terminal(self, *arguments: str, home: Path, columns: int = 120, rows: int = 40) -> Terminal:
        """The app with these words, in a terminal of this size."""
        order = json.dumps([str(home), rows, columns, arguments])
        self._asking.sendall(f"{order}\n".encode())
        pid, descriptors, _, _ = socket.recv_fds(self._asking, 32, 1)
        assert pid, "the program has gone"
        process = ForkedProcess(descriptors[0], int(pid), self._exit_code)
        return Terminal(home=home, columns=columns, rows=rows, process=process)

    def _exit_code(self, pid: int) -> int:
        """Wait for the end of a process that was started here."""
        self._asking.sendall(f"{pid}\n".encode())
        return int(self._asking.recv(32))


class ForkedProcess(fdspawn):  # type: ignore[misc]
    """A process that somebody else has started, by the file descriptor of its terminal."""

    def __init__(self, descriptor: int, pid: int, exit_code: Callable[[int], int]) -> None:
        super().__init__(descriptor)
        self._pid = pid
        self._exit_code = exit_code

    def send(self, text: str) -> int:
        """Type a text."""
        time.sleep(BETWEEN_KEYS)
        return int(super().send(text))

    def kill(self, number: int) -> None:
        """Send a signal."""
        os.kill(self._pid, number)

    def wait(self) -> None:
        """Wait for the end of the process, whose terminal has ended."""
        self.exitstatus = self._exit_code(self._pid)

    def close(self, force: bool = False) -> None:
        """Take the terminal away; by ``force`` the process ends too."""
        if force and self.exitstatus is None:
            with suppress(ProcessLookupError):
                self.kill(signal.SIGKILL)
        super().close()
