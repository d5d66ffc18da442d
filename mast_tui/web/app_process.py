"""The process of one app, which draws through pipes instead of a terminal."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from typing import Final

import orjson

from mast_tui.cli.shared.asking import PASSWORD_PIPE

DRAWING: Final = b"D"
"""The kind of a packet with output for the terminal in the page, or with its input."""

MESSAGE: Final = b"M"
"""The kind of a packet with a JSON object for the server or for the app's driver."""

UNREAD_BYTES: Final = 4 << 20
"""The most input that may wait for an app. No person types or pastes that much."""

_READY: Final = b"__GANGLION__\n"
"""Textual's web driver writes this line before its first packet."""


class AppProcess:
    """A running app with Textual's web driver.

    A packet is a letter for its kind, four bytes for its length, and its content. The app has a
    process group of its own: Ctrl-C in the server's terminal does not reach it, and its helper
    processes can be killed with it.
    """

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._input = process.stdin
        self._output = process.stdout

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        variables: Mapping[str, str],
        password: str | None,
        *,
        width: int,
        height: int,
    ) -> AppProcess:
        """Start an app.

        Args:
            command: The program and its arguments.
            variables: Variables of its environment beside those of this process.
            password: The password of its workspace, which it gets through a pipe.
            width: The columns of its screen.
            height: The lines of its screen.
        """
        environment = {
            **os.environ,
            **variables,
            "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver",
            "TEXTUAL_FPS": "60",
            "TEXTUAL_COLOR_SYSTEM": "truecolor",
            "TERM_PROGRAM": "textual",
            "TERM_PROGRAM_VERSION": version("textual-serve"),
            "COLUMNS": str(width),
            "ROWS": str(height),
        }
        with _password_pipe(password) as pipes:
            for pipe in pipes:
                environment[PASSWORD_PIPE] = str(pipe)
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE,
                env=environment,
                start_new_session=True,
                pass_fds=pipes,
            )
        return cls(process)

    async def packets(self) -> AsyncIterator[tuple[bytes, bytes]]:
        """Yield the kind and the content of each packet until the app ends."""
        with suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await self._output.readuntil(_READY)
            while True:
                kind = await self._output.readexactly(1)
                length = int.from_bytes(await self._output.readexactly(4), "big")
                yield kind, await self._output.readexactly(length)

    def send_input(self, text: str) -> bool:
        """Send typed or pasted text without waiting for the app to read it.

        Returns:
            Whether the app keeps up; False if more than ``UNREAD_BYTES`` wait for it.
        """
        self._send(DRAWING, text.encode("utf-8", "replace"))
        return self._input.transport.get_write_buffer_size() <= UNREAD_BYTES

    def resize(self, width: int, height: int) -> None:
        """Set the size of the app's screen; the same size again draws the whole screen again."""
        self._send(MESSAGE, orjson.dumps({"type": "resize", "width": width, "height": height}))

    def _send(self, kind: bytes, content: bytes) -> None:
        if not self._input.is_closing():
            self._input.write(kind + len(content).to_bytes(4, "big") + content)

    async def stop(self) -> None:
        """Ask the app to end, and wait for its end."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.terminate()
        await self._process.wait()
        self._input.close()

    def kill(self) -> None:
        """Kill the app with all processes of its group."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


@contextmanager
def _password_pipe(password: str | None) -> Iterator[tuple[int, ...]]:
    """Yield the end of a pipe from which a password can be read; nothing without a password."""
    if password is None:
        yield ()
        return
    read, write = os.pipe()
    try:
        # It is short enough to fit into the pipe before anyone reads it.
        os.write(write, password.encode())
        os.close(write)
        yield (read,)
    finally:
        os.close(read)
