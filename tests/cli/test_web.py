"""``mast-tui web``: signing in, and the apps of visitors."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType, WSServerHandshakeError
from aiohttp.test_utils import TestClient, TestServer

from mast_tui.errors import MastError
from mast_tui.session import set_study
from mast_tui.study import Study
from mast_tui.web import page_apps
from mast_tui.web.command import checked_url
from mast_tui.web.page_apps import MAX_WAITING_APPS_PER_VISITOR, RECONNECT_SECONDS
from mast_tui.web.server import VisitorAccess, WebServer
from mast_tui.workspace import Workspace
from tests.cli.conftest import Cli
from tests.workspace.build import MAST

TOKEN = "long-enough-a-token"
SOCKET = "/ws/page-of-visitor1"
STATE = "/app/page-of-visitor1"


@asynccontextmanager
async def serve(
    folder: Path,
    *,
    token: str | None = None,
    url: str | None = None,
    command: Sequence[str] = (sys.executable, "-m", "mast_tui"),
    reconnect_seconds: float = RECONNECT_SECONDS,
) -> AsyncIterator[TestClient]:  # type: ignore[type-arg]
    """Serve the command in a folder, and yield a client of the server."""
    server = WebServer(
        command,
        ("run.jsonl",),
        access=VisitorAccess(token, None if url is None else checked_url(url)),
        annotator=None,
        workspace=str(folder / "labels.db"),
        taxonomy=MAST.ref,
        kept_seconds=reconnect_seconds,
    )
    async with TestClient(TestServer(server.application())) as client:
        yield client


def origin(client: TestClient) -> dict[str, str]:  # type: ignore[type-arg]
    """Return the header of requests by the server's own pages."""
    return {"Origin": str(client.make_url("/")).rstrip("/")}


async def sign_in(client: TestClient, **form: str) -> str:  # type: ignore[type-arg]
    """Send the sign-in form and return the page that follows."""
    return await (await client.post("/enter", data=form, headers=origin(client))).text()


async def check_socket_refused(client: TestClient, code: str = "403", **headers: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(WSServerHandshakeError, match=code):
        await client.ws_connect(SOCKET, headers=headers or origin(client))


async def test_the_page_asks_for_a_name_and_refuses_a_reserved_one(tmp_path: Path) -> None:
    async with serve(tmp_path) as client:
        assert "Who is labelling?" in await (await client.get("/")).text()
        assert "begin with &#39;judge:" in await sign_in(client, name="judge:me")
        response = await client.post("/enter", data={"name": "<b>carol"}, headers=origin(client))
        page = await response.text()
        assert "/ws" in page
        assert "&lt;b&gt;carol" in page
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        after_leaving = await client.post("/leave", headers=origin(client))
        assert "Who is labelling?" in await after_leaving.text()


@pytest.fixture
def study_folder(tmp_path: Path) -> Path:
    """A folder with the workspace of a study of ada and ben, and dee as adjudicator."""
    study = Study(MAST.ref, ("ada", "ben"), ("dee",))
    with closing(Workspace.open(tmp_path / "labels.db")) as workspace:
        workspace.add_taxonomy(MAST)
        set_study(workspace, "dee", study)
    return tmp_path


async def test_a_study_offers_its_annotators_and_confirms_other_names(study_folder: Path) -> None:
    async with serve(study_folder) as client:
        page = await (await client.get("/")).text()
        for name in ("ada", "ben", "dee"):
            assert f'<option value="{name}">' in page
        assert 'name="name" value=""' in page  # Enter alone accepts nothing
        page = await sign_in(client, name="root")
        assert "root is not in this study: labels under this name do not count. Continue?" in page
        assert "/ws" not in page
        assert not list(client.session.cookie_jar)
        assert "Continue as root" in await sign_in(client, name="root", outside="another")
        assert "/ws" in await sign_in(client, name="root", outside="root")
    async with serve(study_folder) as client:
        assert "/ws" in await sign_in(client, name="ada")
    async with serve(study_folder, token=TOKEN) as client:
        assert "ada" not in await (await client.get("/")).text()
        assert "ada" not in await sign_in(client, name="root", token="guess")
        page = await sign_in(client, name="root", token=TOKEN)
        assert "root is not in this study" in page
        assert '<option value="ada">' in page
        assert "/ws" in await sign_in(client, name="root", token=TOKEN, outside="root")


async def test_requests_of_other_origins_and_hosts_are_refused(tmp_path: Path) -> None:
    async with serve(tmp_path) as client:
        await sign_in(client, name="carol")
        origins = ("https://evil.example", "null", "http://localhost.evil.example", "http://[x")
        for foreign in (*origins, ""):
            headers = {"Origin": foreign} if foreign else {}
            answer = await client.post("/enter", data={"name": "mallory"}, headers=headers)
            assert answer.status == 403
            with pytest.raises(WSServerHandshakeError, match="403"):
                await client.ws_connect(SOCKET, headers=headers)
        for name in ("evil.example:8000", "[::1", "localhost.evil.example"):
            assert (await client.get("/", headers={"Host": name})).status == 403
    async with serve(tmp_path, url="https://labels.example.org") as client:
        response = await client.get("/", headers={"Host": "labels.example.org"})
        assert response.status == 200


async def test_an_app_needs_a_signed_in_visitor(tmp_path: Path) -> None:
    async with serve(tmp_path, token=TOKEN) as client:
        await check_socket_refused(client)
        form = {"name": "carol", "token": "guess"}
        response = await client.post("/enter", data=form, headers=origin(client))
        assert response.status == 403
        assert "This is not the token" in await response.text()
        assert not list(client.session.cookie_jar)
        assert "/ws" in await sign_in(client, name="carol", token=TOKEN)
        (cookie,) = client.session.cookie_jar
        client.session.cookie_jar.update_cookies({cookie.key: "made-up"}, client.make_url("/"))
        await check_socket_refused(client)
    # Servers of one machine have separate cookies.
    async with serve(tmp_path) as first, serve(tmp_path) as second:
        for client in (first, second):
            await sign_in(client, name="carol")
        names = {cookie.key for client in (first, second) for cookie in client.session.cookie_jar}
        assert len(names) == 2


def test_missing_packages_tokens_and_addresses_are_reported(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.refused("web", "--host", "0.0.0.0", says="add --token", code=2)
    monkeypatch.setenv("MAST_TUI_WEB_TOKEN", "short")
    assert "too short" in cli("web", "--token").err
    valid = "https://a.example"
    no_addresses = ("labels.example.org", "ftp://a.example", "https://:443", "https://[::1")
    with_more_than_a_host = (f"{valid}{ending}" for ending in ("/b", "?q", "/#token", ":99999"))
    for url in (*no_addresses, *with_more_than_a_host, "https://carol:secret@a.example"):
        with pytest.raises(MastError, match="give an address such as"):
            checked_url(url)
    assert checked_url("https://A.example:443/").geturl() == valid  # as browsers send it
    for name in [name for name in sys.modules if name.startswith("mast_tui.web")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    assert "--token" in cli.ok("web", "--help").out
    cli.refused(
        "web", says="textual_serve is missing; install it with: pip install 'mast-tui[web]'"
    )


STUBBORN_APP = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stdout.buffer.write(b"__GANGLION__\\nD" + (5).to_bytes(4, "big") + b"hello")
sys.stdout.flush()
time.sleep(3600)
"""
"""An app that reads nothing and ignores SIGTERM."""

ECHOING_APP = """
import sys
out = sys.stdout.buffer
out.write(b"__GANGLION__\\n")
out.flush()
while head := sys.stdin.buffer.read(5):
    content = sys.stdin.buffer.read(int.from_bytes(head[1:], "big"))
    out.write(b"D" + len(content).to_bytes(4, "big") + content)
    out.flush()
"""
"""An app that returns its input as output."""


def python_command(source: str) -> tuple[str, ...]:
    return (sys.executable, "-c", source)


async def connect(
    client: TestClient,  # type: ignore[type-arg]
    address: str = SOCKET,
) -> ClientWebSocketResponse:
    """Sign in unless the client has, and return its socket."""
    if not list(client.session.cookie_jar):
        await client.post("/enter", data={"name": "carol"}, headers=origin(client))
    return await client.ws_connect(address, headers=origin(client))


async def wait_for_output(socket: ClientWebSocketResponse, content: bytes) -> None:
    while await socket.receive_bytes() != content:
        pass


def cut_connection(socket: ClientWebSocketResponse) -> None:
    """Cut the connection without a closing frame."""
    transport = socket._response.connection.transport  # type: ignore[union-attr]
    assert transport is not None
    transport.abort()


async def wait_for_end(client: TestClient, state: str = STATE) -> None:  # type: ignore[type-arg]
    """Wait until the app of a page has ended."""
    while (await client.get(state)).status != 404:
        await asyncio.sleep(0.01)


async def test_an_app_survives_a_lost_connection(tmp_path: Path) -> None:
    async with serve(tmp_path, command=python_command(ECHOING_APP)) as client:
        socket = await connect(client)
        await socket.send_json(["resize", {"width": 90, "height": 30}])
        await socket.send_json(["stdin", "half a note"])
        await wait_for_output(socket, b"half a note")
        cut_connection(socket)
        second = await connect(client, f"{SOCKET}?again=1&width=80&height=24")
        await wait_for_output(second, b'{"type":"resize","width":90,"height":30}')
        await second.send_json(["stdin", "the rest"])
        await wait_for_output(second, b"the rest")
        # A new connection replaces one that the server still regards as open.
        third = await connect(client, f"{SOCKET}?again=1")
        await second.receive()
        await third.send_json(["stdin", "x"])
        await wait_for_output(third, b"x")
    async with serve(tmp_path, command=python_command(ECHOING_APP), reconnect_seconds=0) as client:
        cut_connection(await connect(client))
        await wait_for_end(client)


async def test_a_waiting_app_is_only_for_its_visitor(tmp_path: Path) -> None:
    async with serve(tmp_path, command=python_command(ECHOING_APP)) as client:
        cut_connection(await connect(client))
        assert (await client.get(STATE)).status == 204
        client.session.cookie_jar.clear()
        await client.post("/enter", data={"name": "carol"}, headers=origin(client))
        assert (await client.get(STATE)).status == 404
        with pytest.raises(WSServerHandshakeError, match="404"):
            await connect(client, f"{SOCKET}?again=1")


async def test_an_app_ends_with_its_page_and_with_its_visitor(tmp_path: Path) -> None:
    async with serve(tmp_path, command=python_command(ECHOING_APP)) as client:
        socket = await connect(client)
        await socket.close()
        await wait_for_end(client)
        cut_connection(await connect(client, "/ws/page-of-visitor2"))
        cookies = {cookie.key: cookie.value for cookie in client.session.cookie_jar}
        await client.post("/leave", headers=origin(client))
        client.session.cookie_jar.update_cookies(cookies, client.make_url("/"))
        assert (await client.get("/app/page-of-visitor2")).status == 404


async def test_an_app_that_is_killed_closes_its_page(tmp_path: Path) -> None:
    killed = "import os; os.kill(os.getpid(), 9)"
    async with serve(tmp_path, command=python_command(killed)) as client:
        socket = await connect(client)
        while not socket.closed:
            await socket.receive()
        await wait_for_end(client)


async def test_the_oldest_waiting_app_of_a_visitor_ends_first(tmp_path: Path) -> None:
    async with serve(tmp_path, command=python_command(ECHOING_APP)) as client:
        pages = [f"page-of-visitor{n}" for n in range(MAX_WAITING_APPS_PER_VISITOR + 1)]
        for page in pages:
            socket = await connect(client, f"/ws/{page}")
            await socket.send_json(["stdin", "x"])
            await wait_for_output(socket, b"x")
            cut_connection(socket)
        await wait_for_end(client, f"/app/{pages[0]}")
        for page in pages[1:]:
            assert (await client.get(f"/app/{page}")).status == 204


@pytest.mark.parametrize(
    "junk",
    ["x" * 100_000, "\x1b[200~" + "x" * 100_000, "\x1b]52;c;" + "x" * 10_000],
    ids=["keys", "paste without end", "clipboard"],
)
async def test_oversized_input_reaches_no_app(tmp_path: Path, junk: str) -> None:
    async with serve(tmp_path, command=python_command(ECHOING_APP)) as client:
        socket = await connect(client)
        await socket.send_json(["stdin", junk])
        await socket.send_bytes(junk.encode())
        await socket.send_str("[" * len(junk))
        await socket.send_json(["resize", {"width": junk, "height": -1}])
        await socket.send_json(["stdin", "x"])
        while (content := await socket.receive_bytes()) != b"x":
            assert len(content) < 1000
        cut_connection(socket)
        await wait_for_end(client)


async def test_an_app_that_reads_nothing_ends_with_its_page_or_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_apps, "GRACE", 0.1)
    async with serve(tmp_path, command=python_command(STUBBORN_APP)) as client:
        socket = await connect(client)
        await wait_for_output(socket, b"hello")
        for _ in range(300):
            await socket.send_json(["stdin", "x" * 4000])
        await socket.close()
        await wait_for_end(client)
        other = await connect(client, "/ws/page-of-visitor2")
        await wait_for_output(other, b"hello")  # the app still runs when the server ends


async def test_ctrl_c_ends_the_server_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(STUBBORN_APP)
    source = (
        "import sys; from mast_tui.web.server import VisitorAccess, WebServer\n"
        "server = WebServer((sys.executable, 'app.py'), (), access=VisitorAccess(), "
        "annotator='carol',"
        f" workspace='labels.db', taxonomy={MAST.ref!r})\n"
        "sys.exit(server.run('localhost', 0, lambda line: print(line, flush=True)))"
    )
    server = await asyncio.create_subprocess_exec(
        *python_command(source),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=tmp_path,
    )
    assert server.stdout is not None
    address = (await server.stdout.readline()).decode().split()[-1].rstrip("/")
    headers = {"Origin": address}
    async with ClientSession() as session:
        await session.post(f"{address}/enter", headers=headers)
        socket = await session.ws_connect(f"{address}{SOCKET}", headers=headers)
        await wait_for_output(socket, b"hello")
        server.send_signal(signal.SIGINT)
        message = await socket.receive()
        assert (message.type, message.data) == (WSMsgType.CLOSE, page_apps.ENDED)
    _, errors = await server.communicate()
    assert server.returncode == 0
    assert errors == b""
