"""The app in browsers: who gets in, and an app for each visitor.

Textual draws into a browser as into a terminal: each visitor has a process of their own, whose
output textual-serve carries to xterm.js in the page, and its input back. What is ours is the door.
Nobody gets in by way of another page (the origin of what is sent must be this server), by a name
of the server's that somebody made up (DNS rebinding), or without the token where there is one.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

import orjson
import textual_serve
from aiohttp import WSMsgType, web
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from mast_tui.cli.web.address import HERE
from mast_tui.configuration import read_configuration
from mast_tui.errors import MastError
from mast_tui.labels import checked_person
from mast_tui.session import outside_words, unlike_others
from mast_tui.study import Study
from mast_tui.traces.io.url_secrets import ADDRESSES, ENVIRONMENT
from mast_tui.workspace import Workspace
from mast_tui.workspace.paths import default_workspace_path, samples_workspace_path, suggested_name

VISITORS: Final = 50
"""So many apps run at once; each takes some 100 MB."""

GRACE: Final = 10.0
"""Seconds for an app to end whose visitor has gone; what was labelled is on disk long before."""

_AFTER_WRONG: Final = 1.0
"""Seconds that the answer to a wrong token takes, so that none is found by trying."""

_WIDEST: Final = 1000
"""Columns and rows beyond which no browser is believed."""

_TERMINAL: Final = Path(textual_serve.__file__).parent / "static"
_PAGES: Final = Path(__file__).with_name("static")
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


class _App(AppService):
    """The app of one visitor; its end is the visit's end."""

    def __init__(
        self, words: Sequence[str], paths: Sequence[str], socket: web.WebSocketResponse
    ) -> None:
        super().__init__(
            "mast-tui",
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=_closing(socket),
            download_manager=DownloadManager(),
        )
        self._words = (*words, *paths)
        addresses = "\n".join(map(ADDRESSES.whole, paths))
        self._addresses = {ENVIRONMENT: addresses} if "://" in addresses else {}

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        # Textual's own goes through a shell.
        self._process = await asyncio.create_subprocess_exec(
            *self._words,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self._build_environment(width=width, height=height) | self._addresses,
        )
        self._stdin = self._process.stdin
        return self._process

    async def run(self) -> None:
        """Carry what the app draws to the browser until the app ends; then the visit ends too."""
        await super().run()
        await self.remote_close()

    async def stop(self) -> None:
        """End the app, by force where it does not end by itself."""
        process = self._process
        if process is None:
            return
        try:
            await asyncio.wait_for(super().stop(), GRACE)
            await asyncio.wait_for(process.wait(), GRACE)
        except TimeoutError:
            process.kill()
            await process.wait()


def _closing(socket: web.WebSocketResponse) -> Callable[[], Awaitable[None]]:
    async def close() -> None:
        await socket.close()

    return close


class Server:
    """Lets visitors in, and gives each an app.

    Args:
        words: The command of an app, before the visitor's name and the paths.
        paths: What it opens.
        token: What visitors must know, None for no token.
        url: What they type where a proxy stands in between.
        annotator: Under what name everybody labels; None asks each visitor.
        workspace: Where labels are kept, None for the nearest one.
        taxonomy: What visitors label with, as ``id@version``; its study says who they are.
    """

    def __init__(
        self,
        words: Sequence[str],
        paths: Sequence[str],
        *,
        token: str | None,
        url: SplitResult | None,
        annotator: str | None,
        workspace: str | None,
        taxonomy: str,
    ) -> None:
        self._words = words
        self._paths = paths
        self._token = token
        self._url = url
        self._annotator = annotator
        self._workspace = workspace
        self._taxonomy = taxonomy
        self.cookie = f"mast_tui_{secrets.token_hex(4)}"
        """Browsers share cookies among the ports of a machine: each server has one of its own."""
        self._names: dict[str, str] = {}
        """The visitors' names by what their cookie says."""
        self._running = 0
        self._pages = Environment(
            loader=FileSystemLoader(Path(__file__).with_name("templates")),
            autoescape=True,
            undefined=StrictUndefined,
        )

    def run(self, host: str, port: int, tell: Callable[[str], None]) -> int:
        """Serve until Ctrl-C or SIGTERM, which end all apps in good order; the exit code.

        Args:
            host: Where to listen.
            port: On which port; 0 for any that is free.
            tell: Prints a line for who runs the server.

        Raises:
            OSError: Nobody can listen there.
        """
        asyncio.run(self._serve(host, port, tell))
        return 0

    async def _serve(self, host: str, port: int, tell: Callable[[str], None]) -> None:
        runner = web.AppRunner(self.application(), access_log=None, shutdown_timeout=GRACE)
        await runner.setup()
        try:
            site = web.TCPSite(runner, host, port)
            await site.start()
            at = f"[{host}]" if ":" in host else host
            address = f"http://{at}:{runner.addresses[0][1]}/"
            if self._url is not None:
                address = f"{self._url.geturl().rstrip('/')}/"
            tell(f"The app is at {address}{'' if self._token is None else '#' + self._token}")
            if host not in HERE and not address.startswith("https:"):
                tell(
                    "Nothing is encrypted on the way: put a proxy with TLS before it (and name it "
                    "by --url), or come by ssh -L"
                )
            tell("Ctrl-C ends it")
            ended = asyncio.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, ended.set)
            await ended.wait()
        finally:
            await runner.cleanup()

    def application(self) -> web.Application:
        """Return what answers requests."""
        app = web.Application(middlewares=[self._at_the_door])
        app.add_routes(
            [
                web.get("/", self._page),
                web.post("/enter", self._enter),
                web.post("/leave", self._leave),
                web.get("/ws", self._visit),
                web.static("/terminal", _TERMINAL),
                web.static("/pages", _PAGES),
            ]
        )
        return app

    @web.middleware
    async def _at_the_door(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        if self._token is None and _parts(f"//{request.host}").hostname not in self._hosts():
            raise web.HTTPForbidden(
                text=f"This server does not go by the name {request.host}; who runs it can name "
                "it by --url."
            )
        # What changes something, and the way to an app, is asked for by our own pages only.
        if (request.method != "GET" or request.path == "/ws") and not self._is_own(request):
            raise web.HTTPForbidden(text="This was sent by a page of another address.")
        answer = await handler(request)
        if not answer.prepared:
            answer.headers.update(_HEADERS)
            if not request.path.startswith(("/terminal/", "/pages/")):
                answer.headers["Cache-Control"] = "no-store"
        return answer

    def _hosts(self) -> frozenset[str | None]:
        return HERE if self._url is None else HERE | {self._url.hostname}

    def _is_own(self, request: web.Request) -> bool:
        origin = _parts(request.headers.get("Origin", ""))
        own = {request.host} if self._url is None else {request.host, self._url.netloc}
        return origin.scheme in ("http", "https") and origin.netloc in own

    def _name(self, request: web.Request) -> str | None:
        return self._names.get(request.cookies.get(self.cookie, ""))

    async def _page(self, request: web.Request) -> web.Response:
        name = self._name(request)
        if name is None:
            return await self._first_door()
        secure = self._url is not None and self._url.scheme == "https"
        host = request.host if self._url is None else self._url.netloc
        socket = f"{'wss' if secure else 'ws'}://{host}/ws"
        return self._html("app.html.j2", socket=socket, name=name)

    async def _first_door(self) -> web.Response:
        """Return the sign-in page; who is in the study is shown only without a token."""
        if self._token is not None or self._annotator is not None:
            return self._door()
        try:
            study = await asyncio.to_thread(self._study)
        except MastError as error:
            return self._door(str(error))
        if study is not None:
            return self._door(people=study.participants)
        return self._door(name=suggested_name(read_configuration().annotator))

    def _door(
        self,
        wrong: str | None = None,
        name: str = "",
        *,
        people: Sequence[str] = (),
        outside: str | None = None,
        token: str = "",
    ) -> web.Response:
        """Return the sign-in page.

        Args:
            wrong: Why the visitor does not get in yet.
            name: The name that is filled in.
            people: The names to choose from.
            outside: A name outside the study that the visitor can confirm.
            token: The token that the visitor has given already.
        """
        return self._html(
            "door.html.j2",
            wrong=wrong,
            name=name,
            people=people,
            outside=outside,
            token=token,
            asks_name=self._annotator is None,
            asks_token=self._token is not None and not token,
        )

    def _html(self, page: str, **values: object) -> web.Response:
        text = self._pages.get_template(page).render(**values)
        return web.Response(text=text, content_type="text/html")

    async def _enter(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        name, token = str(form.get("name", "")), str(form.get("token", ""))
        if self._token is not None and not hmac.compare_digest(
            token.encode("utf-8", "replace"), self._token.encode("utf-8", "replace")
        ):
            await asyncio.sleep(_AFTER_WRONG)
            return self._door("This is not the token that the server was started with.", name)
        people: Sequence[str] = ()
        try:
            study = await asyncio.to_thread(self._study)
            people = () if study is None else study.participants
            name = await asyncio.to_thread(self._checked, self._annotator or name)
        except MastError as error:
            return self._door(str(error), name, people=people, token=token)
        outside = None if self._annotator is not None else outside_words(name, study)
        if outside is not None and form.get("outside") != name:
            return self._door(f"{outside}. Continue?", people=people, outside=name, token=token)
        key = secrets.token_urlsafe(24)
        self._names[key] = name
        answer = _to_page()
        answer.set_cookie(
            self.cookie,
            key,
            httponly=True,
            samesite="Strict",
            secure=self._url is not None and self._url.scheme == "https",
        )
        return answer

    def _study(self) -> Study | None:
        """Return the study that visitors work in."""
        place = self._place()
        if isinstance(place, Path) and not place.exists():
            return None
        with closing(Workspace.open(place)) as workspace:
            return workspace.study(self._taxonomy)

    def _checked(self, name: str) -> str:
        name, place = checked_person(name), self._place()
        if isinstance(place, Path) and not place.exists():
            return name
        with closing(Workspace.open(place)) as workspace:
            return unlike_others(workspace, name)

    def _place(self) -> str | Path:
        if self._workspace is not None:
            return self._workspace if "://" in self._workspace else Path(self._workspace)
        return default_workspace_path(Path.cwd()) if self._paths else samples_workspace_path()

    async def _leave(self, request: web.Request) -> web.Response:
        self._names.pop(request.cookies.get(self.cookie, ""), None)
        answer = _to_page()
        answer.del_cookie(self.cookie)
        return answer

    async def _visit(self, request: web.Request) -> web.StreamResponse:
        name = self._name(request)
        if name is None:
            raise web.HTTPForbidden(text="Open the page first.")
        if self._running >= VISITORS:
            raise web.HTTPServiceUnavailable(text=f"{VISITORS} visitors are here already.")
        socket = web.WebSocketResponse(heartbeat=15)
        await socket.prepare(request)
        app = _App((*self._words, "--annotator", name, "--"), self._paths, socket)
        self._running += 1
        try:
            await app.start(_size(request, "width", 80), _size(request, "height", 24))
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    with suppress(orjson.JSONDecodeError):
                        await _hand_on(orjson.loads(message.data), app, socket)
        finally:
            try:
                await asyncio.shield(app.stop())
            finally:
                self._running -= 1
        return socket


async def _hand_on(said: object, app: AppService, socket: web.WebSocketResponse) -> None:
    """Hand what a page says to its app; what no page of ours says is not heard."""
    match said:
        case ["stdin", str(text)]:
            await app.send_bytes(text.encode("utf-8", "replace"))
        case ["resize", {"width": int(width), "height": int(height)}]:
            await app.set_terminal_size(min(max(width, 1), _WIDEST), min(max(height, 1), _WIDEST))
        case ["ping", data]:
            await socket.send_json(["pong", data])
        case ["focus", *_]:
            await app.focus()
        case ["blur", *_]:
            await app.blur()
        case _:
            pass


def _size(request: web.Request, name: str, otherwise: int) -> int:
    given = request.query.get(name, "")
    return min(max(int(given), 1), _WIDEST) if re.fullmatch("[0-9]{1,6}", given) else otherwise


def _to_page() -> web.Response:
    return web.Response(status=303, headers={"Location": "/"})


def _parts(address: str) -> SplitResult:
    """The parts of an address that anybody may have made up; nothing where it is none."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")
