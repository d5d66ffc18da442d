"""The apps of the pages that visitors have open.

Each app is a process that draws through pipes instead of a terminal. It outlives a lost connection.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Final, NamedTuple

import orjson
from aiohttp import WSCloseCode, WSMessage, WSMsgType, web

from mast_tui.cli.shared.asking import PASSWORD_PIPE

DRAWING: Final = b"D"
"""The kind of a packet with output for the terminal in the page, or with input."""

MESSAGE: Final = b"M"
"""The kind of a packet with a JSON object for the server or for the app's driver."""

UNREAD_BYTES: Final = 4 << 20
"""The most bytes of input that may wait for an app. No person types or pastes as much."""

_READY: Final = b"__GANGLION__\n"
"""The line that Textual's web driver writes before its first packet."""


@dataclass(frozen=True, slots=True)
class AppLaunch:
    """The data to start an app.

    Attributes:
        command: The program and its arguments.
        variables: Further variables of its environment.
        password: The password of its workspace, which it gets through a pipe.
        width: The columns of its screen.
        height: The lines of its screen.
    """

    command: Sequence[str]
    variables: Mapping[str, str]
    password: str | None = field(repr=False)
    width: int
    height: int


class AppProcess:
    """A running app with Textual's web driver.

    A packet is a letter for its kind, four bytes for its length, and its content. The app has its
    own process group, so that Ctrl-C in the server's terminal does not reach it.
    """

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._input = process.stdin
        self._output = process.stdout

    @classmethod
    async def start(cls, launch: AppLaunch) -> AppProcess:
        """Start an app."""
        # Textual's driver for browsers, with the values of textual-serve.
        environment = {
            **os.environ,
            **launch.variables,
            "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver",
            "TEXTUAL_FPS": "60",
            "TEXTUAL_COLOR_SYSTEM": "truecolor",
            "TERM_PROGRAM": "textual",
            "TERM_PROGRAM_VERSION": version("textual-serve"),
            "COLUMNS": str(launch.width),
            "ROWS": str(launch.height),
        }
        with _password_pipe(launch.password) as pipes:
            for pipe in pipes:
                environment[PASSWORD_PIPE] = str(pipe)
            process = await asyncio.create_subprocess_exec(
                *launch.command,
                stdin=PIPE,
                stdout=PIPE,
                env=environment,
                start_new_session=True,
                pass_fds=pipes,
            )
        return cls(process)

    async def packets(self) -> AsyncIterator[tuple[bytes, bytes]]:
        """Yield the kind and the content of each packet until the app closes its output."""
        with suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await self._output.readuntil(_READY)
            while True:
                kind = await self._output.readexactly(1)
                length = int.from_bytes(await self._output.readexactly(4), "big")
                yield kind, await self._output.readexactly(length)

    def send_input(self, text: str) -> bool:
        """Send typed or pasted text without waiting for the app to read it.

        Returns:
            True if the app reads fast enough, False if more than ``UNREAD_BYTES`` wait for it.
        """
        # Packets with input and with output have the same kind.
        self._send_packet(DRAWING, text.encode("utf-8", "replace"))
        return self._input.transport.get_write_buffer_size() <= UNREAD_BYTES

    def resize(self, width: int, height: int) -> None:
        """Set the size of the app's screen; even the same size draws the whole screen again."""
        self._send_packet(
            MESSAGE, orjson.dumps({"type": "resize", "width": width, "height": height})
        )

    def _send_packet(self, kind: bytes, content: bytes) -> None:
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
        """Kill the app and all processes of its group."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


@contextmanager
def _password_pipe(password: str | None) -> Iterator[tuple[int, ...]]:
    """Yield the file descriptors for the app: a pipe with the password, or none."""
    if password is None:
        yield ()
        return
    read_end, write_end = os.pipe()
    try:
        # The password is short enough to fit into the pipe before it is read.
        os.write(write_end, password.encode())
        os.close(write_end)
        yield (read_end,)
    finally:
        os.close(read_end)


RUNNING_APPS: Final = 50
"""The most apps at once, including waiting apps. Each needs some 100 MB."""

MAX_WAITING_APPS: Final = 20
"""The most apps that wait for a lost connection."""

MAX_WAITING_APPS_PER_VISITOR: Final = 3
"""The most apps of one visitor that wait for a lost connection."""

RECONNECT_SECONDS: Final = 600.0
"""The seconds that an app waits for a lost connection."""

ENDED: Final = 4000
"""The code that closes a socket after its app has ended, so that the page does not connect
again."""

GRACE: Final = 10.0
"""The seconds that an app has to end after its visitor has left."""

SHUTDOWN_GRACE: Final = 1.5
"""The seconds that an app has to end with the server."""

_TYPED_CHARACTERS: Final = 4096
"""The most characters of a message that is not a paste."""

_PASTE: Final = ("\x1b[200~", "\x1b[201~")
"""The start and the end of a paste."""

_LARGEST_SIZE: Final = 1000
"""The most columns and lines of a screen."""

_LOST: Final = (None, WSCloseCode.ABNORMAL_CLOSURE, WSCloseCode.GOING_AWAY)
"""The codes of a lost connection: None before the socket is open, and ``GOING_AWAY`` if a proxy
restarts. A page that the visitor leaves sends ``OK``."""


class PageKey(NamedTuple):
    """The key of an app: the visitor's cookie and the random name of the page."""

    visitor: str
    page: str


def limited_size(value: int) -> int:
    """Return the nearest valid number of columns or lines of a screen."""
    return min(max(value, 1), _LARGEST_SIZE)


class PageApp:
    """The app of one page; it outlives the page's connection."""

    def __init__(self, process: AppProcess, width: int, height: int) -> None:
        self._process = process
        self._width = width
        self._height = height
        self._socket: web.WebSocketResponse | None = None
        self._transport: asyncio.Transport | None = None
        self._only_page_messages = True
        """False after a message that the page would not send, or after too much input."""
        self._stop_task: asyncio.Task[None] | None = None
        self.output = asyncio.create_task(self._carry_output())
        """The task that sends the app's output to the page; done when the app has ended."""

    async def connect(
        self, socket: web.WebSocketResponse, transport: asyncio.Transport | None
    ) -> None:
        """Send the messages of a page to the app until the socket closes.

        Args:
            socket: The page's socket. It replaces an earlier socket, which may be lost unnoticed.
            transport: The connection under the socket.
        """
        if self._transport is not None:
            self._transport.abort()
        self._socket = socket
        self._transport = transport
        # This makes the app draw the whole screen for the new page.
        self._process.resize(self._width, self._height)
        async for message in socket:
            if not await self._handle_message(message, socket):
                # After too much input, the app does not wait for this page to connect again.
                self._only_page_messages = False
                break

    def disconnect(self, socket: web.WebSocketResponse) -> bool:
        """Remove a closed socket.

        Returns:
            True if no page is connected now; False if another socket has replaced this one.
        """
        if self._socket not in (socket, None):
            return False
        self._socket = None
        self._transport = None
        return True

    def may_reconnect(self, socket: web.WebSocketResponse) -> bool:
        """Check whether the app should wait for another connection after a socket has closed."""
        return socket.close_code in _LOST and self._only_page_messages

    async def _handle_message(self, message: WSMessage, socket: web.WebSocketResponse) -> bool:
        """Handle a message of the page; return False if too much input waits for the app.

        A message that no page of this server sends is ignored, and the app will not wait for a lost
        connection.
        """
        content: object = None
        if message.type is WSMsgType.TEXT:
            with suppress(orjson.JSONDecodeError):
                content = orjson.loads(message.data)
        match content:
            case ["stdin", str(text)] if len(text) <= _TYPED_CHARACTERS or _is_paste(text):
                return self._process.send_input(text)
            case ["resize", {"width": int(width), "height": int(height)}]:
                self._width = limited_size(width)
                self._height = limited_size(height)
                self._process.resize(self._width, self._height)
            case ["ping", str(data)]:
                with suppress(ConnectionError):
                    await socket.send_json(["pong", data])
            case ["focus" | "blur"]:
                pass
            case _:
                self._only_page_messages = False
        return True

    async def _carry_output(self) -> None:
        """Send the output of the app to the connected page until the app ends.

        Output without a connected page is dropped, so that the app never waits for a page.
        """
        async for kind, content in self._process.packets():
            socket = self._socket
            if socket is None:
                continue
            with suppress(ConnectionError):
                if kind == DRAWING:
                    await socket.send_bytes(content)
                elif kind == MESSAGE:
                    await _forward_url(content, socket)

    def is_ending(self) -> bool:
        """Check whether the app has ended or is about to end."""
        return self._stop_task is not None or self.output.done()

    async def stop(self, grace: float) -> None:
        """End the app, and close its page's socket.

        Args:
            grace: The seconds before the app is killed. No label is lost, because each is stored at
                once.
        """
        if self._stop_task is None:
            self._stop_task = asyncio.create_task(self._process.stop())
        try:
            await asyncio.wait_for(asyncio.shield(self._stop_task), grace)
        except TimeoutError:
            self._process.kill()
            await asyncio.shield(self._stop_task)
        self.output.cancel()
        if self._socket is not None:
            with suppress(ConnectionError):
                await self._socket.close(code=ENDED)


def _is_paste(text: str) -> bool:
    start, end = _PASTE
    return text.startswith(start) and text.endswith(end) and text.count("\x1b") == 2


async def _forward_url(content: bytes, socket: web.WebSocketResponse) -> None:
    """Forward a message of the app to its page if it asks to open a link."""
    message = orjson.loads(content)
    if message["type"] == "open_url":
        await socket.send_json(["open_url", {"url": message["url"], "new_tab": message["new_tab"]}])


class PageApps:
    """All apps of a server, by page.

    Args:
        kept_seconds: The seconds that an app waits for a lost connection.
    """

    def __init__(self, kept_seconds: float = RECONNECT_SECONDS) -> None:
        self._kept_seconds = kept_seconds
        self._apps: dict[PageKey, PageApp] = {}
        self._wait_timers: dict[PageKey, asyncio.TimerHandle] = {}
        """The timers that end apps without a connection, in the order of their start."""
        self._start_lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._apps)

    def __contains__(self, key: PageKey) -> bool:
        return key in self._apps and not self._apps[key].is_ending()

    async def open(self, key: PageKey, launch: AppLaunch) -> PageApp | None:
        """Return the app of a page; start the app if there is none.

        Args:
            key: The page.
            launch: The data to start the app.

        Returns:
            The app, or None if it is ending or the server runs the most apps.
        """
        async with self._start_lock:
            if key in self._apps:
                self._stop_waiting(key)
                return None if self._apps[key].is_ending() else self._apps[key]
            # Make room by ending the app that has been without a page for the longest time.
            if len(self._apps) >= RUNNING_APPS and self._wait_timers:
                await self.end(next(iter(self._wait_timers)), SHUTDOWN_GRACE)
            if self._closed or len(self._apps) >= RUNNING_APPS:
                return None
            app = PageApp(await AppProcess.start(launch), launch.width, launch.height)
            self._apps[key] = app
            app.output.add_done_callback(lambda _: self._schedule_end(key))
            return app

    def _stop_waiting(self, key: PageKey) -> None:
        """Stop the timer that would end an app without a connection, if it runs."""
        timer = self._wait_timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def keep(self, key: PageKey) -> None:
        """Keep an app without a connection alive for a while."""
        if key not in self._apps:
            return
        self._stop_waiting(key)
        loop = asyncio.get_running_loop()
        self._wait_timers[key] = loop.call_later(self._kept_seconds, self._schedule_end, key)
        # The first timer belongs to the app that has waited the longest.
        visitor_keys = [other for other in self._wait_timers if other.visitor == key.visitor]
        if len(visitor_keys) > MAX_WAITING_APPS_PER_VISITOR:
            self._schedule_end(visitor_keys[0])
        elif len(self._wait_timers) > MAX_WAITING_APPS:
            self._schedule_end(next(iter(self._wait_timers)))

    async def end_of_visitor(self, visitor: str) -> None:
        """End all apps of a visitor."""
        keys = [key for key in self._apps if key.visitor == visitor]
        await asyncio.gather(*map(self.end, keys))

    async def end_all(self) -> None:
        """End all apps, and start no more."""
        self._closed = True
        await asyncio.gather(*(self.end(key, SHUTDOWN_GRACE) for key in list(self._apps)))

    def _schedule_end(self, key: PageKey) -> None:
        """End the app of a page in a separate task."""
        self._stop_waiting(key)
        if key in self._apps:
            task = asyncio.create_task(self.end(key))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def end(self, key: PageKey, grace: float = GRACE) -> None:
        """End the app of a page.

        Args:
            key: The page.
            grace: The seconds before the app is killed.
        """
        self._stop_waiting(key)
        app = self._apps.get(key)
        if app is not None:
            await app.stop(grace)
            self._apps.pop(key, None)
