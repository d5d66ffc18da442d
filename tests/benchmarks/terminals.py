"""Programs measured in a pseudo-terminal, with the time of every byte that they write."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Final, Self

import pyte

from mast_tui.safe_text import one_line
from mast_tui.traces.library import read_file
from tests.terminal.screen import Screen

COLUMNS: Final = 120
ROWS: Final = 40

PAGE_DOWN: Final = b"\x1b[6~"

TRIVIAL_TEXT: Final = "first text"
TRIVIAL: Final = f"""
from textual.app import App
from textual.widgets import Static

class Trivial(App):
    def compose(self):
        yield Static({TRIVIAL_TEXT!r})

Trivial().run()
"""


def set_size(terminal: int) -> None:
    """Give a pseudo-terminal the size that all are measured in."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))


def environment(home: Path | str) -> dict[str, str]:
    """Return the environment of measured programs."""
    return {
        "HOME": str(home),
        "PATH": os.environ.get("PATH", os.defpath),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LANG": "C.UTF-8",
    }


def trivial_app() -> list[str]:
    """Return the command of a Textual app that shows one text."""
    return [sys.executable, "-c", TRIVIAL]


def our_app(path: Path, workspace: Path) -> list[str]:
    """Return the command that opens ``path`` with ``workspace``."""
    ours = [sys.executable, "-m", "mast_tui", str(path), "--annotator", "someone"]
    return [*ours, "--workspace", str(workspace)]


def first_words(trace: Path) -> str:
    """Return the beginning of the first span in the timeline."""
    spans = read_file(trace, named=True).traces[0]
    return one_line(spans.span(0).preview)[:24].rstrip()


QUIET: Final = 0.06
"""Seconds without a byte after which a redraw counts as complete."""

_LOOK_AFTER: Final = 0.015
"""Seconds without a byte after which the screen is looked at: reading must not wait for that."""

_CHUNK: Final = 1 << 16
_OF_ONE_KEY: Final = 1000
"""Pieces of output that one key may bring about."""

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_IDLE_SHARE: Final = 0.03
"""Of a second: a program that works less than this has nothing more to do."""


class TooLate(Exception):
    """The expected output did not come in time, or the program has ended."""


@dataclass(frozen=True, slots=True)
class Redraw:
    """The output after a key: the times of its first and last bytes, and its size."""

    first: float
    last: float
    size: int


class Program:
    """A program that was started in a terminal; times are those of ``perf_counter``.

    What it writes is only read while one of the methods waits.
    """

    def __init__(self, command: Sequence[str], home: Path) -> None:
        self._chunks: list[tuple[float, bytes]] = []
        self._ends: list[int] = []
        self._drawn = 0
        self.raw = bytearray()
        self._screen = Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        env = environment(home)
        self.started = perf_counter()
        self.id, self._terminal = pty.fork()
        if self.id == 0:
            os.chdir(home)
            os.execve(command[0], list(command), env)
        set_size(self._terminal)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for process in reversed(self.processes()):
            os.kill(process, signal.SIGKILL)
        os.waitpid(self.id, 0)
        os.close(self._terminal)

    @property
    def age(self) -> float:
        """Return the seconds since the start."""
        return perf_counter() - self.started

    # Reading and writing

    def take_in(self, seconds: float) -> bool:
        """Wait for bytes, at most so long, and return whether any came."""
        if not select.select([self._terminal], [], [], max(0.0, seconds))[0]:
            return False
        try:
            data = os.read(self._terminal, _CHUNK)
        except OSError as error:
            raise TooLate("the program has ended") from error
        self._chunks.append((perf_counter(), data))
        self.raw += data
        self._ends.append(len(self.raw))
        return True

    def send(self, keys: bytes) -> float:
        """Press keys and return the time."""
        sent = perf_counter()
        os.write(self._terminal, keys)
        return sent

    def until_bytes(self, regex: bytes, seconds: float, *, since: int = 0) -> float:
        """Return the time when ``regex`` was written after ``since``.

        ``since`` is a length of ``raw``. Raises ``TooLate``.
        """
        pattern = re.compile(regex)
        end = perf_counter() + seconds
        begin = since
        while True:
            if match := pattern.search(self.raw, begin):
                return self._chunks[bisect_left(self._ends, match.end())][0]
            # Long enough for a text that has come in part.
            begin = max(since, len(self.raw) - 400)
            if not self.take_in(end - perf_counter()):
                raise TooLate(f"{regex!r} has not come")

    def until_screen(self, regex: str, seconds: float) -> float:
        """Return the time when ``regex`` was shown. Raises ``TooLate``."""
        pattern = re.compile(regex)
        end = perf_counter() + seconds
        while perf_counter() < end:
            if self.take_in(_LOOK_AFTER):
                continue
            while self._drawn < len(self._chunks):
                time, data = self._chunks[self._drawn]
                self._drawn += 1
                self._stream.feed(data)
                if pattern.search("\n".join(self._screen.display)):
                    return time
        raise TooLate(f"{regex!r} is not on the screen")

    def until_quiet(self, since: float, seconds: float = 5.0, *, quiet: float = QUIET) -> Redraw:
        """Return the output from ``since`` until nothing comes for a while.

        ``since`` is the time of the key; bytes that come before the call count as well. Raises
        ``TooLate`` for a program that never stops writing.
        """
        end = perf_counter() + seconds
        while self.take_in(quiet):
            if perf_counter() > end:
                raise TooLate("the screen never comes to rest")
        chunks = [
            (time - since, len(data)) for time, data in self._chunks[-_OF_ONE_KEY:] if time >= since
        ]
        if not chunks:
            return Redraw(0.0, 0.0, 0)
        return Redraw(chunks[0][0], chunks[-1][0], sum(size for _, size in chunks))

    def drain(self, seconds: float) -> None:
        """Take in whatever comes within so many seconds."""
        end = perf_counter() + seconds
        while (left := end - perf_counter()) > 0:
            self.take_in(left)

    # The processes behind it

    def processes(self) -> list[int]:
        """Return the running processes of the program."""
        ids = [self.id]
        for process in ids:
            for children in Path(f"/proc/{process}/task").glob("*/children"):
                try:
                    ids += map(int, children.read_text().split())
                except OSError:
                    continue
        return ids

    def memory(self, field: str = "VmHWM") -> float:
        """Return the megabytes of all processes together; ``VmHWM`` is the peak of each."""
        kilobytes = 0
        for process in self.processes():
            try:
                status = Path(f"/proc/{process}/status").read_text()
            except OSError:
                continue
            match = re.search(rf"^{field}:\s+(\d+)", status, re.MULTILINE)
            kilobytes += int(match[1]) if match else 0
        return kilobytes * 1024 / 1e6

    def until_idle(self, seconds: float) -> float:
        """Return the time when the program became idle, to the second. Raises ``TooLate``."""
        end = perf_counter() + seconds
        while perf_counter() < end:
            worked_before = self._worked()
            begun = perf_counter()
            self.drain(1.0)
            if self._worked() - worked_before < _IDLE_SHARE:
                return begun
        raise TooLate("still at work")

    def _worked(self) -> float:
        """Return the seconds of processor time so far."""
        ticks = 0
        for process in self.processes():
            try:
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            ticks += int(fields[11]) + int(fields[12])
        return ticks / _TICKS
