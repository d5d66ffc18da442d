"""Secrets of URLs stay out of the output and the files of commands."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cli.conftest import Cli, open_workspace
from tests.traces.s3_server import S3Server, s3_server

USER = "ada:SECRETPW"
TOKEN = "SECRETTOK"
QUERY = f"?token={TOKEN}"
SECRETS = ("ada", "SECRETPW", "SECRETTOK", "token=")
SAMPLE = Path(__file__).parents[2] / "sample_traces" / "support_desk_exchange.json"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mast_tui.traces.io.remote._copies_folder", lambda: tmp_path / "fetched")
    monkeypatch.setattr("mast_tui.traces.io.remote._RETRY_SECONDS", 0.0)


@pytest.fixture
def server() -> Iterator[S3Server]:
    """A web server that serves files to one user with one token."""
    pytest.importorskip("aiohttp")
    with s3_server() as server:
        data = SAMPLE.read_bytes()
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("x.json", data)
        server.objects = {"runs/a.json": data, "runs/a.zip": packed.getvalue()}
        server.credentials = (USER, f"token={TOKEN}")
        yield server


def files_with_secrets(folder: Path) -> list[tuple[str, str]]:
    """Return each file below a folder whose name or content has a secret, with the secret."""
    matches = []
    for path in sorted(folder.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        for secret in SECRETS[1:]:
            if secret in path.name or secret.encode() in content:
                matches.append((str(path), secret))
    return matches


@pytest.mark.parametrize("kind", ["file", "archive", "list"])
def test_secrets_of_a_url_are_neither_printed_nor_written(
    cli: Cli, server: S3Server, tmp_path: Path, kind: str
) -> None:
    host = f"127.0.0.1:{server.server_port}"
    public = f"http://{host}/runs/a.json"
    typed = f"http://{USER}@{host}/runs/a.json{QUERY}"
    if kind == "archive":
        public = f"zip://x.json::http://{host}/runs/a.zip"
        typed = f"zip://x.json::http://{USER}@{host}/runs/a.zip{QUERY}"
    outside = tmp_path.parent / f"{tmp_path.name}-list.txt"
    if kind == "list":
        outside.write_text(f"{typed}\n")
        typed = f"@{outside}"
    for command in (
        ("inspect", typed, "--json", "--spans"),
        ("judge", typed, "--judge", "rules"),
        ("judge", typed, "--judge", "rules", "--out", "shards"),
        ("search", "the", typed, "--json", "--workers", "2"),
        ("lint", typed, "--json"),
        ("convert", typed, "-o", "converted.jsonl"),
        ("export", "--format", "jsonl", "-o", "all.jsonl", "--labels", "all"),
        ("export", "--format", "csv-long", "-o", "all.csv", "--labels", "all"),
        ("status", "--json"),
    ):
        result = cli(*command)
        assert result.code in (0, 3), (command, result.err)
        for secret in SECRETS[1:]:
            assert secret not in result.out + result.err, command
    assert files_with_secrets(Path.cwd()) == []
    assert files_with_secrets(tmp_path) == []
    with open_workspace() as workspace:
        assert [str(trace.path) for trace in workspace.traces()] == [public]


def test_a_refusal_asks_for_the_whole_url_and_quotes_none(cli: Cli, server: S3Server) -> None:
    host = f"127.0.0.1:{server.server_port}"
    result = cli("inspect", f"http://{host}/runs/a.json")
    assert "give the whole URL again, such as mast-tui 'https://…?…'" in result.out + result.err
    server.objects["runs/b.json"] = b"{}"
    result = cli("inspect", f"http://eve:SECRETPW@{host}/runs/b.json?token=SECRETTOK")
    assert "may have expired" in result.out + result.err
    for secret in ("eve", "SECRETPW", "SECRETTOK"):
        assert secret not in result.out + result.err


URLS: Final = (
    "http://ada:SECRETPW@127.0.0.1:1/a.json?token=SECRETTOK",
    "HTTP://ada:SECRETPW@127.0.0.1:1/a.json?token=SECRETTOK#SECRETTOK",
    "simplecache::http://ada:SECRETPW@127.0.0.1:1/a.json?token=SECRETTOK",
    "http:/ada:SECRETPW@127.0.0.1:1/a.json?token=SECRETTOK",
    "nothing://ada:SECRETPW@host/a.json?token=SECRETTOK",
    "zip://x::nothing://ada:SECRETPW@host/a.zip?token=SECRETTOK",
    "@http://ada:SECRETPW@127.0.0.1:1/list?token=SECRETTOK",
    "http://ada:SECRETPW@127.0.0.1:1/*.json?token=SECRETTOK",
)


def test_no_message_quotes_a_secret_of_a_url(cli: Cli) -> None:
    commands = (["compare", "a"], ["status"], ["lint"], ["search", "x"], ["read"])
    for url, command in (*((url, ["inspect"]) for url in URLS), *((URLS[0], c) for c in commands)):
        result = cli(*command, url)
        assert result.code != 0
        for secret in SECRETS:
            assert secret not in result.out + result.err, (command, url)


WORKSPACES: Final = (
    "postgresql://ada:SECRETPW@127.0.0.1:1/labels",
    "postgresql://ada:SECRETPW%zz@127.0.0.1:1/labels",
    "postgresql://ada@127.0.0.1:1/labels?password=SECRETPW",
    "postgresql://ada@127.0.0.1:1/labels?passwort=SECRETPW",
    "mysql://ada:SECRETPW@127.0.0.1:1/labels",
)


def test_no_message_quotes_the_password_of_a_workspace(cli: Cli) -> None:
    for url in WORKSPACES:
        commands = [["status", "--workspace", url], ["workspace", "create", url]]
        if url == WORKSPACES[0]:
            commands += [["doctor", "--offline", "--workspace", url], ["agree", "--workspace", url]]
        for command in commands:
            result = cli(*command)
            assert result.code != 0
            assert "SECRETPW" not in result.out + result.err, command
