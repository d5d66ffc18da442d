"""Quick starts of the app, without its imports."""

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
from typing import Final

from pexpect.fdpexpect import fdspawn

from tests.terminal.screen import Terminal, settings
from tests.waiting import PATIENCE

ROOT: Final = Path(__file__).parents[2]
BETWEEN_KEYS: Final = 0.05
"""Seconds before each key, as ``pexpect.spawn`` waits."""


class Apps:
    """Starts of the app in children of a process that has imported its modules."""

    def __init__(self) -> None:
        self._socket, other_end = socket.socketpair()
        with other_end:
            self._program = subprocess.Popen(
                [sys.executable, "-m", "tests.terminal.forked_apps", str(other_end.fileno())],
                cwd=ROOT,
                env={**settings(ROOT), "PYTHONPATH": str(ROOT)},
                pass_fds=[other_end.fileno()],
            )

    def __enter__(self) -> Apps:
        return self

    def __exit__(self, *_error: object) -> None:
        self._socket.close()
        self._program.wait(PATIENCE)

    def terminal(self, *arguments: str, home: Path, columns: int = 120, rows: int = 40) -> Terminal:
        """Start the app with arguments, in a terminal of a size."""
        request = json.dumps([str(home), rows, columns, arguments])
        self._socket.sendall(f"{request}\n".encode())
        pid, descriptors, _, _ = socket.recv_fds(self._socket, 32, 1)
        assert pid, "the program has ended"
        process = ForkedProcess(descriptors[0], int(pid), self._exit_code)
        return Terminal(home=home, columns=columns, rows=rows, process=process)

    def _exit_code(self, pid: int) -> int:
        """Wait for the end of a started process, and return its exit code."""
        self._socket.sendall(f"{pid}\n".encode())
        return int(self._socket.recv(32))


class ForkedProcess(fdspawn):  # type: ignore[misc]
    """A process that was started elsewhere, by the file descriptor of its terminal."""

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
        """Wait for the end of the process."""
        self.exitstatus = self._exit_code(self._pid)

    def close(self, force: bool = False) -> None:
        """Close the terminal; with ``force``, kill the process too."""
        if force and self.exitstatus is None:
            with suppress(ProcessLookupError):
                self.kill(signal.SIGKILL)
        super().close()
