"""The app in a real terminal, which reports when it has handled all its input.

A test writes bytes to the terminal, then the report of a cursor position, as terminals send it. The
app receives the report after the keys. When it has handled them all, it writes the number of the
report to the named pipe ``ACKNOWLEDGEMENTS``.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pexpect
from textual import events

from mast_tui.cli import main as mast_tui_main
from mast_tui.ui import app as app_module
from mast_tui.ui.annotate.screen import AnnotateScreen
from tests.terminal.screen import settings
from tests.waiting import PATIENCE

ACKNOWLEDGEMENTS: Final = "ACKNOWLEDGEMENTS"
"""The environment variable with the path of the named pipe."""

ROOT: Final = Path(__file__).parents[2]


class AcknowledgingApp(app_module.MastApp):
    """The app, which answers reports of the cursor position."""

    _pending: asyncio.Task[None] | None = None

    async def on_event(self, event: events.Event) -> None:
        """Handle an event, and answer a report when the app is idle."""
        await super().on_event(event)
        if isinstance(event, events.CursorPosition):
            self._pending = asyncio.create_task(self._acknowledge(event.x))

    async def _acknowledge(self, number: int) -> None:
        while not (self.input_queue.idle and self.writes.idle) or self.workspace.opened is None:
            await asyncio.sleep(0.001)
        drawn = asyncio.Event()
        self.call_after_refresh(drawn.set)
        await drawn.wait()
        with Path(os.environ[ACKNOWLEDGEMENTS]).open("w", encoding="ascii") as pipe:
            screen = type(self.screen).__name__
            pipe.write(f"{number} {self.screen.size.width} {screen} {self._open_span()}\n")

    def _open_span(self) -> int | None:
        """Return the index of the span under the cursor of the open trace."""
        screens = [screen for screen in self.screen_stack if isinstance(screen, AnnotateScreen)]
        return screens[0].index if screens else None


class AcknowledgedTerminal:
    """A terminal with the app, and a way to wait until the app has handled its input."""

    def __init__(self, *arguments: str, home: Path, columns: int = 100, rows: int = 30) -> None:
        """Start the app.

        Args:
            arguments: The arguments after ``mast-tui``.
            home: The home folder and current directory.
            columns: The terminal's width in cells.
            rows: The terminal's height in cells.
        """
        pipe = home / "acknowledgements"
        os.mkfifo(pipe)
        # Open for reading and writing, so that the file does not end when the app closes it.
        self._pipe = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        self._number = 0
        self._columns = columns
        self.open_span = ""
        """The span under the cursor at the last answer."""
        self.open_screen = ""
        """The class of the open screen at the last answer."""
        self._process = pexpect.spawn(
            sys.executable,
            ["-m", "tests.terminal.acknowledging_app", *arguments],
            env={
                **settings(home),
                "PYTHONPATH": str(ROOT),
                ACKNOWLEDGEMENTS: str(pipe),
                # On a busy machine, a sequence in pieces is still one sequence.
                "ESCDELAY": "60000",
            },
            dimensions=(rows, columns),
            cwd=str(home),
        )

    def __enter__(self) -> AcknowledgedTerminal:
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.close(force=True)
        os.close(self._pipe)

    def send(self, pieces: Sequence[bytes]) -> None:
        """Write pieces of input one after the other, and wait until the app has handled them.

        Args:
            pieces: The bytes of each write.
        """
        self.write(pieces)
        self.wait()

    def write(self, pieces: Sequence[bytes]) -> None:
        """Write pieces of input one after the other, without waiting.

        Args:
            pieces: The bytes of each write.
        """
        for piece in pieces:
            os.write(self._process.child_fd, piece)

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        self._columns = columns
        self._process.setwinsize(rows, columns)

    def wait(self) -> None:
        """Wait until the app has handled all input, and has drawn the screen in its last size."""
        resized = True
        while resized:
            width, self.open_screen, self.open_span = self._answer().split(" ")
            resized = int(width) != self._columns

    def _answer(self) -> str:
        """Return the answer of the app when it has handled all input."""
        self._number = self._number % 99 + 1
        os.write(self._process.child_fd, f"\x1b[1;{self._number + 1}R".encode())
        expected = f"{self._number} ".encode()
        received = b""
        end = time.monotonic() + PATIENCE
        while not (received.startswith(expected) and received.endswith(b"\n")):
            readable, _, _ = select.select([self._pipe, self._process.child_fd], [], [], 1)
            if self._pipe in readable:
                received += os.read(self._pipe, 4096)
            if self._process.child_fd in readable:
                self._discard_output()
            assert time.monotonic() < end, "the app did not answer"
        return received.removeprefix(expected).decode().strip()

    def _discard_output(self) -> None:
        try:
            self.last_output = os.read(self._process.child_fd, 65536)
        except OSError as error:
            raise AssertionError(f"the app has ended: {self.last_output!r}") from error

    last_output = b""
    """The last output of the app."""


if __name__ == "__main__":
    app_module.MastApp = AcknowledgingApp  # type: ignore[misc]
    sys.exit(mast_tui_main(sys.argv[1:]))
