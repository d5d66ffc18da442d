"""mast-tui web as a server: junk on the socket, wrong tokens, slow and killed clients."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from aiohttp import ClientError, ClientSession, ClientWebSocketResponse, CookieJar
from yarl import URL

from tests.attack.trying import DB, PATIENCE, SAMPLES, Outcome, Setting, unsound

WHOLE: Final = 200

TRACE: Final = "support_desk_exchange.json"
TOKEN: Final = "a-token-of-the-attack"
WEB: Final = ("web", "--port", "0", "--token", "--workspace", DB, TRACE)
PAGE: Final = "page-of-attacker"
PATHS: Final = (
    *("/terminal/../../etc/passwd", "/pages/%2e%2e/%2e%2e/server.py", "/pages//etc/passwd"),
)
Server = subprocess.Popen[str]


class Site:
    """A running server with a token, and a visitor who has signed in."""

    def __init__(self, address: URL, client: ClientSession, server: Server) -> None:
        self.address = address
        self.client = client
        self.server = server
        self.own = {"Origin": str(address.origin())}

    async def enter(self, token: str = TOKEN, name: str = "carol") -> int:
        """Send the form of the sign-in; return the status."""
        form = {"name": name, "token": token}
        async with self.client.post(self.address / "enter", data=form, headers=self.own) as answer:
            return answer.status

    async def connect(self, page: str = PAGE) -> ClientWebSocketResponse:
        """Connect a page to its app."""
        address = self.address / "ws" / page
        return await self.client.ws_connect(address, headers=self.own, max_msg_size=0)

    def apps(self) -> list[int]:
        """Return the processes of the apps."""
        pid = self.server.pid
        text = "".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
        return [int(child) for child in text.split()]


async def label(site: Site) -> ClientWebSocketResponse:
    """Label the first step in an app of one's own; return once the label is on the screen."""
    socket = await site.connect("page-of-labeller")
    await socket.send_str(json.dumps(["resize", {"width": 120, "height": 40}]))
    await _shown(socket, b"support")
    await socket.send_str(json.dumps(["stdin", "13"]))
    await _shown(socket, b"on #1")
    return socket


async def _shown(socket: ClientWebSocketResponse, words: bytes) -> None:
    seen = b""
    while words not in seen:
        message = await socket.receive(PATIENCE)
        assert isinstance(message.data, (bytes, str)), f"the app has ended before {words!r}"
        seen += message.data if isinstance(message.data, bytes) else b""


# Attacks


async def junk(site: Site, draw: random.Random) -> str:
    """Send random bytes and messages, then drop the connection."""
    socket = await site.connect()
    with suppress(ClientError, ConnectionError):
        for _ in range(draw.randrange(1, 30)):
            data = draw.randbytes(draw.choice((1, 100, 70_000)))
            match draw.randrange(5):
                case 0:
                    await socket.send_bytes(data)
                case 1:
                    await socket.send_str(data.decode("latin-1"))
                case 2:
                    await socket.send_str("[" * draw.choice((10, 100_000)))
                case 3:
                    await socket.send_str(json.dumps(["stdin", "\x00" * 5_000 + "\x1b[200~"]))
                case _:
                    size = draw.choice((-1, 0, 10**9, "x", None, 1e300))
                    await socket.send_str(json.dumps(["resize", {"width": size, "height": size}]))
    await socket.close()
    return ""


async def wrong_doors(site: Site, draw: random.Random) -> str:
    """Try to get in without a token, from other origins, and by names of files."""
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as stranger:
        outside = Site(site.address, stranger, site.server)
        if await outside.enter(draw.choice(("", "guess", TOKEN[:-1], TOKEN + "x"))) != 403:
            return "a wrong token is not refused"
        with suppress(ClientError):
            await outside.connect()
            return "an app was given to a visitor who has not signed in"
    socket = site.address / "ws" / PAGE
    origin = draw.choice(("http://evil.example", "null", "", "http://user@localhost", "x" * 9_000))
    with suppress(ClientError):
        await site.client.ws_connect(socket, headers={"Origin": origin})
        return f"the origin {origin[:40]!r} was let in"
    for path in PATHS:
        address = URL(str(site.address.origin()) + path, encoded=True)
        async with site.client.get(address) as answer:
            if answer.status < 400:
                return f"{path}: {answer.status}"
    return ""


async def half_requests(site: Site, draw: random.Random) -> str:
    """Send parts of requests, slowly, and leave."""
    for _ in range(draw.randrange(1, 10)):
        _reader, writer = await asyncio.open_connection("localhost", site.address.port)
        lines = b"GET /ws/x HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nX: " + b"y" * 9_000
        writer.write(draw.choice((lines, draw.randbytes(500)))[: draw.randrange(1, 9_000)])
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()
    return ""


async def killed_app(site: Site, draw: random.Random) -> str:
    """Kill the apps of the server."""
    socket = await site.connect()
    await socket.send_str(json.dumps(["resize", {"width": 80, "height": 24}]))
    await socket.receive(PATIENCE)
    for pid in site.apps():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    while not socket.closed:
        await socket.receive(PATIENCE)
    return ""


WAYS: Final[Mapping[str, Callable[[Site, random.Random], Awaitable[str]]]] = {
    "junk on the socket": junk,
    "wrong tokens, origins and paths": wrong_doors,
    "half requests": half_requests,
    "killed apps": killed_app,
}


async def visit(address: URL, server: Server, way: str, draw: random.Random) -> str:
    """Label, attack, and see that the server goes on."""
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as client:
        site = Site(address, client, server)
        if await site.enter() != 200:
            return "a right token is refused"
        await label(site)
        if fell := await WAYS[way](site, draw):
            return fell
        async with asyncio.timeout(PATIENCE), client.get(address) as answer:
            if answer.status != 200 or server.poll() is not None:
                return f"the server does not go on: {answer.status}, {server.poll()}"
    return ""


def attack(home: Path, way: str, draw: random.Random) -> str:
    """Start a server, attack it, and end it by SIGINT; return what does not hold."""
    shutil.copy(SAMPLES / TRACE, home / TRACE)
    with (home / "server.err").open("wb") as errors:
        server = subprocess.Popen(
            (sys.executable, "-m", "mast_tui", *WEB),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=home,
            env={**os.environ, "HOME": str(home), "MAST_TUI_WEB_TOKEN": TOKEN},
        )
    assert server.stdout is not None
    try:
        address = URL(server.stdout.readline().removeprefix("The app is at ").partition("#")[0])
        fell = asyncio.run(visit(address, server, way, draw))
        server.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            server.wait(PATIENCE)
        if server.poll() != 0:
            fell = fell or f"SIGINT does not end it: {server.poll()}"
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    said = (home / "server.err").read_text("utf-8", "replace")
    if "Traceback" in said:
        fell = fell or f"traceback: {said[-500:]}"
    with closing(sqlite3.connect(home / DB)) as database:
        labels = database.execute("SELECT annotator, mode FROM labels").fetchall()
    if ("carol", "step_repetition") not in labels:
        fell = fell or f"the label that was shown is gone: {labels}"
    return fell or unsound(home / DB)


def tries(setting: Setting) -> Iterator[Outcome]:
    """Make the ways in turn, each on a server of its own."""
    for number in setting.numbers(WHOLE):
        way = list(WAYS)[number % len(WAYS)]
        with setting.home() as home:
            try:
                fell = attack(home, way, setting.draw(number))
            except (AssertionError, TimeoutError) as error:
                fell = f"{type(error).__name__}: {error}"
        yield Outcome(setting.kind, way, fell)
