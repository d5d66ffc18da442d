"""``web`` on a team's database: visitors sign in with the password of their member."""

from __future__ import annotations

import asyncio
import html
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp import WSServerHandshakeError
from aiohttp.test_utils import TestClient, TestServer

from mast_tui.errors import MastError
from mast_tui.session import set_study
from mast_tui.study import Study
from mast_tui.web.command import checked_url
from mast_tui.web.server import (
    GuessLimit,
    TeamSignIn,
    TooManySignIns,
    VisitorAccess,
    WebServer,
    WrongSecret,
)
from mast_tui.workspace import Workspace
from mast_tui.workspace.paths import url_with_user
from mast_tui.workspace.records import TeamRole, TraceRecord
from tests.cli.conftest import Cli
from tests.cli.test_web import SOCKET, origin
from tests.postgres import ASKED, PostgresServer
from tests.workspace.build import MAST, trace_of

pytestmark = pytest.mark.slow

MEMBERS: Final = {"webmira": "mira's secret", "webbob": "bob's secret"}
TRUSTED: Final = "webtrusted"
"""A member whom the database accepts without a password."""
TOKEN: Final = "long-enough-a-token"

LABELLING_APP = """
import sys
from contextlib import closing
from pathlib import Path
from mast_tui.cli.shared.asking import typed_password
from mast_tui.workspace import Workspace
from tests.workspace.build import MAST, TRACE, label, start_pass, trace_of
from mast_tui.session import Session
arguments = sys.argv[1:]
url = arguments[arguments.index("--workspace") + 1]
name = arguments[arguments.index("--annotator") + 1]
password = typed_password(url)
exposed = " ".join([*arguments, Path("/proc/self/environ").read_text()])
with closing(Workspace.open(url, password=password)) as workspace:
    start_pass(workspace, label(workspace, annotator=name), annotator=name)
    said = f"{workspace.member.name} {password in exposed}".encode()
out = sys.stdout.buffer
out.write(b"__GANGLION__\\nD" + len(said).to_bytes(4, "big") + said)
out.flush()
sys.stdin.buffer.read()
"""
"""An app that labels as its member, and prints the member and whether its arguments or its
environment have the password."""


def new_team(postgres: PostgresServer) -> str:
    """Make a workspace with a team, owned by ``postgres``; return its database."""
    database = postgres.new_database()
    with closing(Workspace.create_on_server(postgres.url(database))) as owner:
        owner.add_taxonomy(MAST)
        owner.register_trace(TraceRecord.from_trace(trace_of("a step")))
        for name in (*MEMBERS, TRUSTED):
            owner.add_member(name, TeamRole.ANNOTATOR)
    for name, password in MEMBERS.items():
        quoted = password.replace("'", "''")
        postgres.run(f"ALTER ROLE {name} PASSWORD '{quoted}'")
        postgres.run(f"GRANT {ASKED} TO {name}")  # the server asks for it
    return database


@pytest.fixture(scope="module")
def team_database(postgres: PostgresServer) -> str:
    return new_team(postgres)


@pytest.fixture
def url(
    team_database: str, postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The workspace's URL with bob as user, whose password is in the server's password file."""
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"*:*:*:webbob:{MEMBERS['webbob']}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    monkeypatch.delenv("PGPASSWORD", raising=False)
    return postgres.url(team_database, user="webbob")


def team_server(workspace: str, **options: Any) -> WebServer:
    annotator = options.pop("annotator", None)
    command = (sys.executable, "-c", LABELLING_APP)
    return WebServer(
        command,
        ("run.jsonl",),
        access=VisitorAccess(**options),
        annotator=annotator,
        workspace=workspace,
        taxonomy=MAST.ref,
    )


@asynccontextmanager
async def serve(workspace: str, **options: Any) -> AsyncIterator[TestClient]:  # type: ignore[type-arg]
    server = team_server(workspace, **options)
    async with TestClient(TestServer(server.application())) as client:
        yield client


async def enter(client: TestClient, **form: str) -> tuple[int, str]:  # type: ignore[type-arg]
    """Send the sign-in form; return the status and the page."""
    answer = await client.post("/enter", data=form, headers=origin(client))
    return answer.status, html.unescape(await answer.text())


async def test_each_visitor_labels_as_the_member_whose_password_they_know(
    url: str, team_database: str, postgres: PostgresServer
) -> None:
    async with serve(url) as client:
        for name, password in MEMBERS.items():
            client.session.cookie_jar.clear()
            status, page = await enter(client, name=name, password=password)
            assert (status, "/ws" in page) == (200, True)
            assert password not in page
            (cookie,) = client.session.cookie_jar
            assert password not in cookie.value
            socket = await client.ws_connect(SOCKET, headers=origin(client))
            assert await socket.receive_bytes() == f"{name} False".encode()
            await socket.close()
    with closing(Workspace.open(postgres.url(team_database))) as owner:
        assert sorted(label.annotator for label in owner.labels()) == sorted(MEMBERS)


async def test_only_the_right_password_of_the_named_member_gets_in(url: str) -> None:
    async with serve(url) as client:
        page = await (await client.get("/")).text()
        assert 'name="password"' in page
        assert "The server was started for webbob" in page
        for name, password in (
            ("webmira", "wrong"),
            ("webmira", MEMBERS["webbob"]),
            ("webbob", "wrong"),
            ("webbob", ""),  # the server's password file has it
            ("webmira", ""),
            ("webbob", "\0"),
            ("webbob", "x" * 100_000),
        ):
            status, page = await enter(client, name=name, password=password)
            assert status == 403
            assert 'role="alert"' in page
            assert "postgresql://" not in page
            assert not list(client.session.cookie_jar)
        with pytest.raises(WSServerHandshakeError, match="403"):
            await client.ws_connect(SOCKET, headers=origin(client))


async def test_a_name_outside_the_team_cannot_sign_in(url: str, postgres: PostgresServer) -> None:
    async with serve(url, only_this_machine=True) as client:
        _, page = await enter(client, name="postgres", password="any")
        assert "postgres is not in the team" in page
        _, page = await enter(client, name="judge:rules", password="any")
        assert "/ws" not in page
        assert not list(client.session.cookie_jar)
    alone = postgres.take()
    async with serve(postgres.url(alone), only_this_machine=True) as client:
        _, page = await enter(client, name="postgres", password="any")
        assert "postgres is not in the team" in page
    postgres.give_back(alone)


@pytest.mark.parametrize("password", ["", "any"])
async def test_a_name_without_a_password_signs_in_on_this_machine_only(
    url: str, password: str
) -> None:
    async with serve(url) as client:
        _, page = await enter(client, name=TRUSTED, password=password)
        assert f"accepts {TRUSTED} without a password" in page
        assert not list(client.session.cookie_jar)
    async with serve(url, only_this_machine=True) as client:
        _, page = await enter(client, name=TRUSTED, password=password)
        assert "/ws" in page


async def test_a_member_outside_the_study_confirms_with_the_password(
    postgres: PostgresServer,
) -> None:
    database = new_team(postgres)
    with closing(Workspace.open(postgres.url(database))) as owner:
        set_study(owner, "postgres", Study(MAST.ref, ("webbob",), ("postgres",), per_trace=1))
    async with serve(postgres.url(database, user="webbob")) as client:
        form = {"name": "webmira", "password": MEMBERS["webmira"]}
        _, page = await enter(client, **form)
        assert "webmira is not in this study" in page
        assert MEMBERS["webmira"] not in page
        status, _ = await enter(client, name="webmira", outside="webmira", password="")
        assert status == 403
        _, page = await enter(client, **form, outside="webmira")
        assert "/ws" in page


async def test_a_refused_sign_in_is_logged_without_its_secret(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = team_server(url, token=TOKEN, url=checked_url("https://a.example"))
    lines: list[str] = []
    monkeypatch.setattr(server, "_report", lines.append)
    async with TestClient(TestServer(server.application())) as client:
        status, page = await enter(client, name="webbob", password="pass", token="guess")
        assert status == 403
        assert "This is not the token" in page
        assert "webbob" not in page.replace('value="webbob"', "")
        headers = origin(client) | {"X-Forwarded-For": "9.9.9.9, 192.0.2.7"}
        form = {"name": "webbob", "password": "pass", "token": TOKEN}
        answer = await client.post("/enter", data=form, headers=headers)
        assert answer.status == 403
    assert lines == [
        f"A sign-in from {client_address} was refused: wrong token, name or password"
        for client_address in ("127.0.0.1", "192.0.2.7")
    ]


async def test_an_unreachable_database_is_not_reported_as_a_wrong_password(url: str) -> None:
    unreachable = url.replace(f"port={url.rpartition('=')[2]}", "port=1")
    async with serve(unreachable) as client:
        status, page = await enter(client, name="webbob", password=MEMBERS["webbob"])
        assert status == 200
        assert "no server answers there" in page
        assert not list(client.session.cookie_jar)


async def test_one_member_for_all_visitors_is_for_this_machine_only(url: str, cli: Cli) -> None:
    async with serve(url, annotator="webbob", only_this_machine=True) as client:
        assert 'name="password"' not in await (await client.get("/")).text()
        _, page = await enter(client)
        assert "/ws" in page
    async with serve(url, annotator="webmira", only_this_machine=True) as client:
        _, page = await enter(client)  # the server's password file does not have it
        assert "needs a password" in page
    options: dict[str, Any]
    for options in ({"token": TOKEN, "only_this_machine": True}, {}):
        with pytest.raises(MastError, match="make every visitor the team member webbob"):
            team_server(url, annotator="webbob", **options)
    web = ("web", "--annotator", "webbob", "--workspace", url, "--token")
    cli.refused(*web, says="would make every visitor the team member webbob")


def test_a_password_in_the_url_is_refused() -> None:
    for url in (
        "postgresql://bob:secret@localhost/x",
        "postgresql://localhost/x?user=a&pass%77ord=secret",
    ):
        with pytest.raises(MastError, match="a password in an address") as error:
            TeamSignIn(url, MAST.ref, trusts_database=False)
        assert "secret" not in str(error.value)


def test_the_member_replaces_the_user_of_the_url() -> None:
    for url, expected in (
        ("postgresql://bob@db.example/x", "postgresql://Zo%C3%AB%20%40%2F%3F@db.example/x"),
        ("postgresql:///x?us%65r=bob&port=1", "postgresql://Zo%C3%AB%20%40%2F%3F@/x?port=1"),
        ("postgresql://a@h,i:5/x?user=b", "postgresql://Zo%C3%AB%20%40%2F%3F@h,i:5/x"),
    ):
        assert url_with_user(url, "Zoë @/?") == expected


class GuessCounter:
    """Wrong sign-ins, and the number of them that are checked or wait at once."""

    def __init__(self) -> None:
        self.over = asyncio.Semaphore(0)
        self.limit = GuessLimit(self.over.acquire)
        self.checked: list[str] = []
        self.at_once: Counter[str] = Counter()
        self.most_at_once: Counter[str] = Counter()

    async def guess(self, address: str) -> None:
        """Give a wrong secret, and count the guesses at one time."""
        try:
            async with self.limit.turn(address):
                self.checked.append(address)
                for name in (address, "all"):
                    self.at_once[name] += 1
                    self.most_at_once[name] = max(self.most_at_once[name], self.at_once[name])
                raise WrongSecret
        except WrongSecret:
            for name in (address, "all"):
                self.at_once[name] -= 1


async def idle() -> None:
    """Let all tasks that are ready run."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_simultaneous_guesses_wait_for_each_other() -> None:
    guesses = GuessCounter()
    addresses = ["192.0.2.1"] * 5 + ["2001:db8::1", "2001:db8::2"]
    addresses += [f"198.51.100.{n}" for n in range(5)]
    tasks = [asyncio.create_task(guesses.guess(address)) for address in addresses]
    await idle()
    # Two addresses of one IPv6 network are one client.
    assert guesses.checked == ["192.0.2.1", "2001:db8::1", "198.51.100.0", "198.51.100.1"]
    for _ in addresses:
        guesses.over.release()
        await idle()
    await asyncio.gather(*tasks)
    assert sorted(guesses.checked) == sorted(addresses)
    assert guesses.most_at_once["all"] == 4
    assert guesses.most_at_once["192.0.2.1"] == 1


async def test_more_than_twenty_waiting_sign_ins_of_one_address_are_refused() -> None:
    guesses = GuessCounter()
    tasks = [asyncio.create_task(guesses.guess("192.0.2.1")) for _ in range(20)]
    await idle()
    with pytest.raises(TooManySignIns):
        await guesses.guess("192.0.2.1")
    for _ in tasks:
        guesses.over.release()
    await asyncio.gather(*tasks)
    guesses.over.release()
    await guesses.guess("192.0.2.1")  # none is waiting any more
    assert len(guesses.checked) == 21


async def test_the_answer_to_too_many_sign_ins_does_not_depend_on_the_token(url: str) -> None:
    server = team_server(url, token=TOKEN)
    async with TestClient(TestServer(server.application())) as client:
        server._guesses._waiting_counts["127.0.0.1"] = 20
        right = await enter(client, name="webbob", token=TOKEN)
        wrong = await enter(client, name="webbob", token="guess")
    assert right == wrong
    assert right[0] == 429
