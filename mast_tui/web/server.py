"""The app in browsers: the sign-in, and an app for each page.

Each page has its own app process. A web socket carries its output to textual-serve's xterm.js in
the page, and the input back. Requests are refused if they come from pages of another origin, under
a wrong host name (DNS rebinding), or without a required token.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

import textual_serve
from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mast_tui.configuration import read_configuration
from mast_tui.errors import MastError, ServerAway, WorkspaceError
from mast_tui.labels import checked_person
from mast_tui.session import checked_new_name, outside_study_text
from mast_tui.study import Study
from mast_tui.traces.io.url_secrets import ADDRESSES, ENVIRONMENT
from mast_tui.web.command import LOCAL_HOSTS
from mast_tui.web.page_apps import (
    RECONNECT_SECONDS,
    RUNNING_APPS,
    AppLaunch,
    PageApps,
    PageKey,
    limited_size,
)
from mast_tui.workspace import Workspace
from mast_tui.workspace.paths import (
    default_workspace_path,
    is_url,
    samples_workspace_path,
    suggested_name,
    url_with_user,
)

_WAIT_SECONDS: Final = 1.0
"""The seconds that a wrong password or token blocks the next sign-in from its address."""

_CHECKS_AT_ONCE: Final = 4
"""The most sign-ins that are checked at once, from all addresses together."""

_WAITING: Final = 20
"""The most waiting sign-ins of one address. A team behind one proxy may come all at once."""

_IPV6_HOST_BITS: Final = 64
"""The bits of an IPv6 address that its owner can choose."""


class WrongSecret(Exception):
    """A wrong password or token."""


class TooManySignIns(Exception):
    """An error because more sign-ins of one address wait than allowed."""


class GuessLimit:
    """The queue of sign-ins that wait for their check.

    Sign-ins of one address are checked one by one. A wrong sign-in blocks its address for a second,
    so parallel guesses are not faster.

    Args:
        wait: Waits after a wrong sign-in; None to wait ``_WAIT_SECONDS``.
    """

    def __init__(self, wait: Callable[[], Awaitable[object]] | None = None) -> None:
        self._wait_after_guess = wait or partial(asyncio.sleep, _WAIT_SECONDS)
        self._checks = asyncio.Semaphore(_CHECKS_AT_ONCE)
        self._locks: dict[str, asyncio.Lock] = {}
        self._waiting_counts: Counter[str] = Counter()

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        """Wait for the turn of a sign-in, then run the block that checks it.

        Args:
            address: The client's address.

        Raises:
            TooManySignIns: Too many sign-ins from the network of the address are waiting.
            WrongSecret: The block raised it; it is raised again after a wait that slows guessing.
        """
        network = _network_of(address)
        if self._waiting_counts[network] >= _WAITING:
            raise TooManySignIns
        self._waiting_counts[network] += 1
        try:
            async with self._locks.setdefault(network, asyncio.Lock()), self._checks:
                try:
                    yield
                except WrongSecret:
                    await self._wait_after_guess()
                    raise
        finally:
            self._waiting_counts[network] -= 1
            if not self._waiting_counts[network]:
                del self._waiting_counts[network]
                self._locks.pop(network, None)


def _network_of(address: str) -> str:
    """Return the part of a client's address that the client cannot choose.

    This is an IPv4 address, or the network of an IPv6 address.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{int(parsed) >> _IPV6_HOST_BITS:x}::"


_LONGEST_PASSWORD: Final = 1024
"""The most characters of a password, so that it fits into a pipe."""


@dataclass(frozen=True)
class Visitor:
    """A visitor who has signed in.

    Attributes:
        name: The name under which the visitor labels.
        workspace: The path or URL of the workspace; None for the nearest workspace.
        password: The member's password; None if libpq looks for it.
    """

    name: str
    workspace: str | None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class SignedIn:
    """A visitor with a valid password or token, and a warning to confirm."""

    visitor: Visitor
    outside_text: str | None
    """The warning that the visitor has no part in the study, if this is the case."""


class TeamSignIn:
    """The check of a visitor's name and password by the team's database.

    Args:
        url: The URL of the workspace. Each visitor replaces its user.
        taxonomy: The visitors' taxonomy as ``id@version``; its study names the annotators.
        trusts_database: True to accept members without a password if the database does. It must be
            false if other machines reach the web server.

    Raises:
        MastError: The URL cannot be read, or has a password.
    """

    def __init__(self, url: str, taxonomy: str, *, trusts_database: bool) -> None:
        self._url = url
        self._parts = _checked_parts(url)
        self._taxonomy = taxonomy
        self._trusts_database = trusts_database
        self._asked_for_password: set[str] = set()
        """The members that the database is known to ask for a password."""

    @property
    def url_user(self) -> str:
        """The user in the URL; empty without a user."""
        return unquote(self._parts.netloc.rpartition("@")[0])

    def check(self, name: str, password: str) -> SignedIn:
        """Check a name and a password by opening the workspace as that member.

        Args:
            name: The name that the visitor typed.
            password: The password that the visitor typed.

        Raises:
            WrongSecret: The database refuses the member, or the password is missing.
            MastError: The name is not valid, the database does not answer, the user is no member,
                or the database needs no password and is not trusted.
        """
        name = checked_person(name)
        if "\0" in password or len(password) > _LONGEST_PASSWORD:
            raise WrongSecret(f"A password has at most {_LONGEST_PASSWORD} characters, and no NUL.")
        # Without a password, libpq would use the password of the user who runs the server.
        try:
            signed_in = self._opened_sign_in(name, password or secrets.token_urlsafe())
        except ServerAway:
            raise
        except WorkspaceError as error:
            if not password:
                raise WrongSecret(f"The password of {name} is missing.") from None
            reason = str(error).removeprefix(f"{url_with_user(self._url, name)}: ")
            raise WrongSecret(f"The database refuses {name}: {reason}.") from None
        # If the password is empty, the database accepted a random one, so it needs none.
        if not self._trusts_database and not (password and self._asks_for_password(name)):
            raise MastError(
                f"the database accepts {name} without a password, so anyone could sign in under "
                "this name; it must ask for one (scram-sha-256 in its pg_hba.conf)"
            )
        return signed_in

    def check_annotator(self, name: str) -> Visitor:
        """Sign in the member for whom the server was started.

        libpq finds the password, which belongs to the user who runs the server.

        Raises:
            MastError: The workspace cannot be opened as this member.
        """
        return self._opened_sign_in(name, None).visitor

    def _opened_sign_in(self, name: str, password: str | None) -> SignedIn:
        """Open the workspace as a member to check the password, and return the sign-in.

        Raises:
            MastError: The password is wrong, or the name is not a member's.
        """
        url = url_with_user(self._url, name)
        with closing(Workspace.open(url, password=password)) as workspace:
            if workspace.member is None or workspace.member.name != name:
                raise MastError(
                    f"{name} is not in the team of this workspace; the creator of the "
                    "workspace adds members with mast-tui team add"
                )
            outside_text = outside_study_text(name, workspace.study(self._taxonomy))
        return SignedIn(Visitor(name, url, password), outside_text)

    def _asks_for_password(self, name: str) -> bool:
        """Try a wrong password to check whether the database asks a member for one.

        Raises:
            ServerAway: The database cannot be reached.
        """
        # Only True is stored, because the database may begin to ask for passwords later.
        if name not in self._asked_for_password:
            try:
                url = url_with_user(self._url, name)
                Workspace.open(url, password=secrets.token_urlsafe()).close()
            except ServerAway:
                raise
            except WorkspaceError:
                self._asked_for_password.add(name)
        return name in self._asked_for_password


def _checked_parts(url: str) -> SplitResult:
    """Return the parts of a workspace's URL.

    Raises:
        MastError: The URL is not valid or has a password.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise MastError(
            "--workspace: not the address of a PostgreSQL database; write "
            "postgresql://USER@HOST/DATABASE, without a password"
        ) from None
    names = {unquote(option.partition("=")[0]) for option in parts.query.split("&")}
    if ":" in parts.netloc.rpartition("@")[0] or names & {"password", "sslpassword"}:
        raise MastError(
            "--workspace: a password in an address is visible to everyone who lists "
            "processes; leave it out: each visitor types their own password"
        )
    return parts


_CLOSE_SECONDS: Final = 1.0
"""The seconds that a page has to confirm the end of its socket, and that requests have to end."""

_LONGEST_MESSAGE: Final = 1 << 20
"""The most bytes of a message of a page, with room for a long paste."""

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


def _full_addresses(paths: Sequence[str]) -> dict[str, str]:
    """Return the environment that gives apps the addresses of paths, with users and queries."""
    addresses = "\n".join(map(ADDRESSES.full_url, paths))
    return {ENVIRONMENT: addresses} if "://" in addresses else {}


@dataclass(frozen=True, slots=True)
class VisitorAccess:
    """The ways in which visitors reach the server.

    Attributes:
        token: The token that visitors must know; None for none.
        url: The address of a proxy that visitors type; None without a proxy.
        only_this_machine: True if no other machine reaches the server, not even by a proxy.
    """

    token: str | None = None
    url: SplitResult | None = None
    only_this_machine: bool = False


def _check_annotator_of_all(annotator: str | None, access: VisitorAccess) -> None:
    """Refuse one team member for all visitors, unless only this machine has visitors.

    Raises:
        MastError: Visitors from other machines, or with a token, would be that member.
    """
    if annotator is not None and (access.token or not access.only_this_machine):
        raise MastError(
            f"--annotator {annotator} would make every visitor the team member {annotator}; leave "
            "it out, so that each visitor signs in with their own password. Use it only on this "
            "machine's own address, without --token and --url"
        )


class WebServer:
    """The web server: the sign-in page, and an app for each page of a visitor.

    Args:
        command: The command of an app, before the workspace, the visitor's name and the paths.
        paths: The files and folders that each app opens.
        access: The ways in which visitors reach the server.
        annotator: The name under which all visitors label; None asks each visitor.
        workspace: The path or URL of the workspace; None for the nearest. With a URL, visitors sign
            in as members of the team.
        taxonomy: The visitors' taxonomy as ``id@version``; its study names the annotators.
        kept_seconds: The seconds that an app waits for a lost connection.

    Raises:
        MastError: The workspace's URL cannot be used, or an annotator is not allowed for it.
    """

    def __init__(
        self,
        command: Sequence[str],
        paths: Sequence[str],
        *,
        access: VisitorAccess,
        annotator: str | None,
        workspace: str | None,
        taxonomy: str,
        kept_seconds: float = RECONNECT_SECONDS,
    ) -> None:
        self._command = command
        self._paths = paths
        self._token = access.token
        self._proxy_url = access.url
        self._annotator = annotator
        self._workspace = workspace
        self._taxonomy = taxonomy
        self.cookie = f"mast_tui_{secrets.token_hex(4)}"
        """The name of the cookie; unique, because browsers share cookies among a machine's
        ports."""
        self._visitors: dict[str, Visitor] = {}
        """The visitors by cookie."""
        self._team: TeamSignIn | None = None
        """The check of passwords; None if visitors sign in by name."""
        if workspace is not None and is_url(workspace):
            _check_annotator_of_all(annotator, access)
            # The database may need no password from this machine. Other machines must not benefit
            # from it.
            self._team = TeamSignIn(workspace, taxonomy, trusts_database=access.only_this_machine)
        self._guesses = GuessLimit()
        self._report: Callable[[str], None] = lambda _: None
        self.apps = PageApps(kept_seconds)
        self._pages = Environment(
            loader=FileSystemLoader(Path(__file__).with_name("templates")),
            autoescape=True,
            undefined=StrictUndefined,
        )

    def run(self, host: str, port: int, report: Callable[[str], None]) -> None:
        """Serve until Ctrl-C or SIGTERM; then all apps end within 3 s.

        Args:
            host: The address to listen on.
            port: The port to listen on; 0 for any free port.
            report: Prints a line for the person who runs the server.

        Raises:
            OSError: The server cannot listen there.
        """
        self._report = report
        asyncio.run(self._serve_until_signal(host, port))

    async def _serve_until_signal(self, host: str, port: int) -> None:
        """Report the address, and serve until SIGINT or SIGTERM."""
        runner = web.AppRunner(
            self.application(), access_log=None, shutdown_timeout=_CLOSE_SECONDS / 2
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
            host_text = f"[{host}]" if ":" in host else host
            address = f"http://{host_text}:{runner.addresses[0][1]}/"
            if self._proxy_url is not None:
                address = f"{self._proxy_url.geturl()}/"
            self._report(
                f"The app is at {address}{'' if self._token is None else '#' + self._token}"
            )
            if host not in LOCAL_HOSTS and not address.startswith("https:"):
                self._report(
                    "The connection is not encrypted: put a TLS proxy in front (and give its "
                    "address with --url), or use ssh -L"
                )
            self._report("Ctrl-C ends it")
            ended = asyncio.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, ended.set)
            await ended.wait()
        finally:
            await runner.cleanup()

    def application(self) -> web.Application:
        """Return the web application with the routes of the server."""
        app = web.Application(middlewares=[self._check_request])
        app.on_shutdown.append(lambda _: self.apps.end_all())
        app.add_routes(
            [
                web.get("/", self._app_page),
                web.post("/enter", self._sign_in),
                web.post("/leave", self._sign_out),
                web.get("/app/{page:[-_A-Za-z0-9]{16}}", self._app_state),
                web.get("/ws/{page:[-_A-Za-z0-9]{16}}", self._connect_page),
                web.static("/terminal", _TERMINAL),
                web.static("/pages", _PAGES),
            ]
        )
        return app

    @web.middleware
    async def _check_request(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        """Refuse requests with a wrong host or from other pages, and add headers to all answers.

        Raises:
            HTTPForbidden: The request is refused.
        """
        # A page of another site can reach this server under its own host name (DNS rebinding). A
        # required token stops such a page.
        host = _url_parts(f"//{request.host}").hostname
        if self._token is None and host not in self._allowed_hosts():
            raise web.HTTPForbidden(
                text=f"This server does not answer to the name {request.host}; whoever runs it can "
                "set the name with --url."
            )
        # Only this server's own pages may change something or connect to an app.
        only_reads = request.method == "GET" and not request.path.startswith("/ws/")
        if not only_reads and not self._is_own_page(request):
            raise web.HTTPForbidden(text="This request came from a page of another address.")
        answer = await handler(request)
        if not answer.prepared:
            answer.headers.update(_HEADERS)
            if not request.path.startswith(("/terminal/", "/pages/")):
                answer.headers["Cache-Control"] = "no-store"
        return answer

    @property
    def _uses_https(self) -> bool:
        """True if visitors reach the server by HTTPS, which only a proxy offers."""
        return self._proxy_url is not None and self._proxy_url.scheme == "https"

    def _allowed_hosts(self) -> frozenset[str | None]:
        return LOCAL_HOSTS if self._proxy_url is None else LOCAL_HOSTS | {self._proxy_url.hostname}

    def _is_own_page(self, request: web.Request) -> bool:
        origin = _url_parts(request.headers.get("Origin", ""))
        proxy_host = None if self._proxy_url is None else self._proxy_url.netloc
        return origin.scheme in ("http", "https") and origin.netloc in (request.host, proxy_host)

    def _visitor_of(self, request: web.Request) -> Visitor | None:
        return self._visitors.get(request.cookies.get(self.cookie, ""))

    def _client_address(self, request: web.Request) -> str:
        """Return the address of the client, or the address that a proxy on this machine reports."""
        address = request.remote or ""
        forwarded = request.headers.get("X-Forwarded-For")
        if self._proxy_url is not None and forwarded is not None and address in LOCAL_HOSTS:
            return forwarded.rpartition(",")[2].strip()
        return address

    async def _app_page(self, request: web.Request) -> web.Response:
        """Return the page of a new app, or the sign-in page for an unknown visitor."""
        visitor = self._visitor_of(request)
        if visitor is None:
            return await self._first_sign_in_page()
        host = request.host if self._proxy_url is None else self._proxy_url.netloc
        page = secrets.token_urlsafe(12)
        socket = f"{'wss' if self._uses_https else 'ws'}://{host}/ws/{page}"
        return self._html_response("app.html.j2", socket=socket, page_key=page, name=visitor.name)

    async def _first_sign_in_page(self) -> web.Response:
        """Return the sign-in page with suggested names."""
        # With a token, only a visitor who has it may see names. With an annotator for all visitors,
        # the page asks for no name.
        if self._token is not None or self._annotator is not None:
            return self._sign_in_page()
        if self._team is not None:
            return self._sign_in_page(name=self._team.url_user)
        try:
            study = await asyncio.to_thread(self._current_study)
        except MastError as error:
            return self._sign_in_page(str(error))
        if study is not None:
            return self._sign_in_page(people=study.participants)
        return self._sign_in_page(name=suggested_name(read_configuration().annotator))

    def _sign_in_page(
        self,
        problem: str | None = None,
        name: str = "",
        *,
        people: Sequence[str] = (),
        outside: str | None = None,
        token: str = "",
        status: int = 200,
    ) -> web.Response:
        """Return the sign-in page.

        Args:
            problem: The reason why the sign-in failed; None before a sign-in.
            name: The name to fill in.
            people: The names to choose from.
            outside: A name outside the study, which the visitor can confirm.
            token: The token that the visitor has given already.
            status: The HTTP status.
        """
        asks_token = self._token is not None and not token
        # The member in the workspace's URL, for whom the server was started.
        expected_member = "" if self._team is None or asks_token else self._team.url_user
        answer = self._html_response(
            "door.html.j2",
            wrong=problem,
            name=name,
            people=people,
            outside=outside,
            token=token,
            asks_name=self._annotator is None,
            asks_password=self._team is not None and self._annotator is None,
            asks_token=asks_token,
            expected=expected_member,
        )
        answer.set_status(status)
        return answer

    def _html_response(self, page: str, **values: object) -> web.Response:
        text = self._pages.get_template(page).render(**values)
        return web.Response(text=text, content_type="text/html")

    async def _sign_in(self, request: web.Request) -> web.StreamResponse:
        """Check a sign-in; redirect to the app with a cookie, or return the sign-in page again."""
        form = await request.post()
        name = str(form.get("name", ""))
        token = str(form.get("token", ""))
        password = str(form.get("password", ""))
        client = self._client_address(request)
        people: Sequence[str] = ()
        try:
            async with self._guesses.turn(client):
                if not self._is_token(token):
                    raise WrongSecret("This is not the token that the server was started with.")
                if self._team is not None:
                    signed_in = await self._sign_in_member(self._team, name, password)
            if self._team is None:
                study = await asyncio.to_thread(self._current_study)
                people = () if study is None else study.participants
                signed_in = await asyncio.to_thread(self._sign_in_by_name, name, study)
        except WrongSecret as error:
            self._report(f"A sign-in from {client} was refused: wrong token, name or password")
            known_token = token if self._is_token(token) else ""
            return self._sign_in_page(str(error), name, token=known_token, status=403)
        except TooManySignIns:
            # This answer must not depend on the token, which was not checked in its turn.
            problem = "Too many pending sign-ins from your address; try again in half a minute."
            return self._sign_in_page(problem, name, status=429)
        except MastError as error:
            return self._sign_in_page(str(error), name, people=people, token=token)
        visitor = signed_in.visitor
        if signed_in.outside_text is not None and form.get("outside") != visitor.name:
            problem = f"{signed_in.outside_text}. Continue?"
            return self._sign_in_page(problem, people=people, outside=visitor.name, token=token)
        return self._redirect_with_cookie(request, visitor)

    def _redirect_with_cookie(self, request: web.Request, visitor: Visitor) -> web.Response:
        """Redirect a visitor who has signed in to the app, with a new cookie."""
        self._visitors.pop(request.cookies.get(self.cookie, ""), None)
        key = secrets.token_urlsafe(24)
        self._visitors[key] = visitor
        answer = _redirect_to_app()
        answer.set_cookie(
            self.cookie, key, httponly=True, samesite="Strict", secure=self._uses_https
        )
        return answer

    def _is_token(self, token: str) -> bool:
        return self._token is None or hmac.compare_digest(
            token.encode("utf-8", "replace"), self._token.encode("utf-8", "replace")
        )

    async def _sign_in_member(self, team: TeamSignIn, name: str, password: str) -> SignedIn:
        if self._annotator is not None:
            return SignedIn(await asyncio.to_thread(team.check_annotator, self._annotator), None)
        return await asyncio.to_thread(team.check, name, password)

    def _current_study(self) -> Study | None:
        location = self._workspace_location()
        if isinstance(location, Path) and not location.exists():
            return None
        with closing(Workspace.open(location)) as workspace:
            return workspace.study(self._taxonomy)

    def _sign_in_by_name(self, name: str, study: Study | None) -> SignedIn:
        """Sign in a visitor without a password.

        Raises:
            MastError: The name is not valid in the workspace.
        """
        name = checked_person(self._annotator or name)
        location = self._workspace_location()
        if not isinstance(location, Path) or location.exists():
            with closing(Workspace.open(location)) as workspace:
                name = checked_new_name(workspace, name)
        outside_text = None if self._annotator is not None else outside_study_text(name, study)
        return SignedIn(Visitor(name, self._workspace), outside_text)

    def _workspace_location(self) -> str | Path:
        if self._workspace is not None:
            return self._workspace if "://" in self._workspace else Path(self._workspace)
        return default_workspace_path(Path.cwd()) if self._paths else samples_workspace_path()

    async def _sign_out(self, request: web.Request) -> web.Response:
        """End the apps of a visitor, remove the cookie, and redirect to the sign-in page."""
        visitor = request.cookies.get(self.cookie, "")
        self._visitors.pop(visitor, None)
        await self.apps.end_of_visitor(visitor)
        answer = _redirect_to_app()
        answer.del_cookie(self.cookie)
        return answer

    def _page_key(self, request: web.Request) -> PageKey:
        return PageKey(request.cookies.get(self.cookie, ""), request.match_info["page"])

    async def _app_state(self, request: web.Request) -> web.Response:
        """Return status 204 if the app of a page waits for it, 404 if it has ended."""
        return web.Response(status=204 if self._page_key(request) in self.apps else 404)

    async def _connect_page(self, request: web.Request) -> web.StreamResponse:
        """Connect a page to its app; only the page's first connection starts one."""
        visitor = self._visitor_of(request)
        if visitor is None:
            raise web.HTTPForbidden(text="Open the page first.")
        key = self._page_key(request)
        if "again" in request.query and key not in self.apps:
            raise web.HTTPNotFound(text="The app has ended.")
        options = () if visitor.workspace is None else ("--workspace", visitor.workspace)
        launch = AppLaunch(
            command=(*self._command, *options, "--annotator", visitor.name, "--", *self._paths),
            variables=_full_addresses(self._paths),
            password=visitor.password,
            width=_screen_size(request, "width", 80),
            height=_screen_size(request, "height", 24),
        )
        app = await self.apps.open(key, launch)
        if app is None:
            raise web.HTTPServiceUnavailable(
                text=f"The server runs {RUNNING_APPS} apps, its limit; close one and try again."
            )
        socket = web.WebSocketResponse(
            heartbeat=15, timeout=_CLOSE_SECONDS, max_msg_size=_LONGEST_MESSAGE
        )
        try:
            await socket.prepare(request)
            await app.connect(socket, request.transport)
        finally:
            if app.disconnect(socket):
                if app.may_reconnect(socket):
                    self.apps.keep(key)
                else:
                    await self.apps.end(key)
        return socket


def _screen_size(request: web.Request, name: str, default: int) -> int:
    """Return a width or height in a request, or the default without a valid number."""
    text = request.query.get(name, "")
    return limited_size(int(text)) if re.fullmatch("[0-9]{1,6}", text) else default


def _redirect_to_app() -> web.Response:
    return web.Response(status=303, headers={"Location": "/"})


def _url_parts(address: str) -> SplitResult:
    """Return the parts of a URL; empty parts if it is invalid."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")
