"""The app in a pseudo-terminal, with a terminal emulator that reads its output."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from unicodedata import category, combining

import pexpect
import pyte
from wcwidth import wcwidth

from tests import waiting

TIMEOUT: Final = waiting.PATIENCE
"""Seconds to wait for a screen; the machine may be busy."""

NOT_INHERITED: Final = ("XDG_", "TEXTUAL", "COLUMNS", "LINES", "NO_COLOR")
"""Prefixes of environment variables that would change the screens."""

KEYS: Final = {
    "escape": "\x1b",
    "enter": "\r",
    "tab": "\t",
    "backspace": "\x7f",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "space": " ",
    "ctrl+q": "\x11",
    "ctrl+r": "\x12",
}


SPACING_MARK: Final = "◌"
"""The character that pyte draws for a vowel sign with its own cell."""


class Screen(pyte.Screen):
    """A screen on which characters without width take no cell; pyte drops the text after them.

    A spacing mark takes a cell, as in tmux and xterm.
    """

    def draw(self, data: str) -> None:
        """Draw a text without joiners and without vowel signs that have no cell."""
        if not data.isascii():
            data = "".join(SPACING_MARK if category(c) == "Mc" else c for c in data)
            data = "".join(c for c in data if combining(c) or wcwidth(c) != 0)
        super().draw(data)


def settings(home: Path) -> dict[str, str]:
    """Return the environment of a process in the terminal."""
    return {
        **{k: v for k, v in os.environ.items() if not k.startswith(NOT_INHERITED)},
        "HOME": str(home),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "COLORTERM": "",
        "PYTHONUNBUFFERED": "1",
    }


class Terminal:
    """A process in a pseudo-terminal; ``raw`` has all its output."""

    def __init__(
        self,
        *arguments: str,
        home: Path,
        columns: int = 120,
        rows: int = 40,
        process: Any = None,
    ) -> None:
        """Start the app with arguments, unless a ``process`` is given."""
        self.screen = Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._lines = [""] * rows
        self.raw = bytearray()
        self.process = process or pexpect.spawn(
            sys.executable,
            ["-m", "mast_tui", *arguments],
            env=settings(home),
            dimensions=(rows, columns),
            cwd=str(home),
            timeout=TIMEOUT,
        )

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_error: object) -> None:
        self.process.close(force=True)

    @property
    def text(self) -> str:
        """The text of the screen; only rows that have changed are read again."""
        screen = self.screen
        for y in screen.dirty:
            row = screen.buffer[y]
            self._lines[y] = "".join(row[x].data for x in range(screen.columns)).rstrip()
        screen.dirty.clear()
        return "\n".join(self._lines)

    def read(self, seconds: float = 0.05) -> bool:
        """Read output for at most ``seconds``; return False if the process has ended."""
        try:
            data = self.process.read_nonblocking(65536, timeout=seconds)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += data
        self._stream.feed(data)
        return True

    def press(self, *keys: str) -> None:
        """Send keys, by their names or as characters.

        Escape must be last: a key directly after it would form a sequence with it.
        """
        assert "escape" not in keys[:-1]
        for key in keys:
            self.process.send(KEYS.get(key, key))

    def until(self, expected: str | Callable[[str], bool], *, seconds: float = TIMEOUT) -> str:
        """Read until the screen matches a regular expression or a check, and return its text."""
        matches = expected if callable(expected) else re.compile(expected).search
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if matches(self.text):
                return self.text
            if not self.read():
                break
        if matches(self.text):
            return self.text
        raise AssertionError(f"{expected!r} did not come on screen:\n{self.text}")

    def first_label(self, name: str) -> None:
        """Do what a new user does: give a name, open the first sample, and label a span."""
        self.until("Who is labelling")
        self.press(f"\x15{name}", "enter")
        self.until("any key begins")
        self.press("enter")
        self.until("Enter open")
        self.press("enter")
        self.until("Timeline")
        self.until(r"#\d+ \w+")
        self.press("1", "3")
        self.until(r"1\.3 .*●")

    def ended(self) -> int:
        """Wait for the end of the process, and return its exit code."""
        for _ in waiting.until(lambda: not self.read(), TIMEOUT):
            pass
        self.process.wait()
        return int(self.process.exitstatus if self.process.exitstatus is not None else -1)
