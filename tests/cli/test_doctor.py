"""``mast-tui doctor``: what works on a machine, what does not, and what to do."""

from __future__ import annotations

import codecs
import io
import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from tests.cli.conftest import Cli, Done, configure
from tests.judges.llm.server import ModelServer, answer, status


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "TMUX", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("EDITOR", "true")


def checks(done: Done) -> Mapping[str, Mapping[str, str]]:
    return {check["name"]: check for check in done.json["checks"]}


def test_a_machine_without_problems_passes(cli: Cli) -> None:
    done = cli("doctor", "--json")
    found = checks(done)
    assert done.code == 0
    assert {check["state"] for check in found.values()} <= {"works", "note"}
    assert found["workspace"]["found"].endswith(str(Path(".mast-tui") / "workspace.db"))
    assert found["model"]["found"] == "not set; the rules need none"
    told = cli("doctor")
    assert [line.split()[1] for line in told.out.splitlines() if line[0] in "✓·"] == list(found)
    assert not list(Path().iterdir())  # it has changed nothing


def test_pictures_need_a_library(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks(cli("doctor", "--json"))["pictures"]["state"] == "works"
    monkeypatch.setattr("mast_tui.cli.doctor.find_spec", lambda _name: None)
    pictures = checks(cli("doctor", "--json"))["pictures"]
    assert pictures["state"] == "note"
    assert "mast-tui[pictures]" in pictures["hint"]


def test_a_wrong_setting_and_a_missing_editor_are_reported(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure('theme = "nrod"\n')
    monkeypatch.setenv("VISUAL", "no-such-editor -w")
    found = checks(cli.refused("doctor", "--json"))
    assert found["settings"]["state"] == found["editor"]["state"] == "wrong"
    assert "nord" in found["settings"]["found"]
    assert "no-such-editor" in found["editor"]["found"]


def test_the_workspace_is_checked(cli: Cli) -> None:
    Path("mine.db").write_bytes(b"no database")
    done = cli.refused("doctor", "--workspace", "mine.db", "--json")
    assert "not a mast-tui workspace" in checks(done)["workspace"]["found"]
    cli.label("t,ann,1.3,present")
    found = checks(cli("doctor", "--json"))["workspace"]
    assert (found["state"], "1 trace," in found["found"]) == ("works", True)


def test_a_model_server_is_asked_for_its_models_only(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def model(*options: str) -> Mapping[str, str]:
        return checks(cli("doctor", "--json", *options))["model"]

    with ModelServer(lambda _body, _n: answer("{}"), models=["small", "large"]) as server:
        configure(f'[judge]\nmodel = "small"\nbase_url = "{server.base_url}"\n')
        assert model()["state"] == "works"
        configure(f'[judge]\nmodel = "smal"\nbase_url = "{server.base_url}"\n')
        assert "it has small, large" in checks(cli.refused("doctor", "--json"))["model"]["found"]
        before = len(server.requests)
        assert model("--offline")["state"] == "note"
        assert len(server.requests) == before
        assert not server.chats
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-this-one-either")
        server.listing = status(401, "Incorrect API key provided: sk-not-this-one-either")
        done = cli.refused("doctor", "--json")
        assert "refuses the key in OPENAI_API_KEY" in checks(done)["model"]["found"]
        assert "sk-not-this" not in done.out
    assert "cannot be reached" in checks(cli.refused("doctor", "--json"))["model"]["found"]


def test_a_terminal_that_is_too_small_or_dumb_is_reported(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for term, size, hint in (
        ("dumb", (120, 40), "set TERM"),
        ("xterm", (50, 40), "at least 60 × 15"),
        ("xterm", (70, 20), "120 × 40 shows the taxonomy"),
        ("xterm", (120, 40), ""),
    ):
        terminal = os.terminal_size(size)
        with monkeypatch.context() as patched:
            patched.setenv("TERM", term)
            patched.setattr(sys.stdout, "isatty", lambda: True)
            patched.setattr(shutil, "get_terminal_size", lambda *_, t=terminal, **__: t)
            found = checks(cli("doctor", "--json"))["terminal"]
        assert hint in found["hint"]
        assert (found["state"] == "works") == (not hint)


@pytest.mark.parametrize(
    ("variable", "remedy"),
    [("latin-1", "unset PYTHONIOENCODING"), (None, "set LC_ALL to a UTF-8 locale")],
)
def test_an_encoding_that_lacks_characters_is_reported(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, variable: str | None, remedy: str
) -> None:
    monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    if variable is not None:
        monkeypatch.setenv("PYTHONIOENCODING", variable)
    assert checks(cli("doctor", "--json"))["encoding"]["state"] == "works"
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", stdout)
    assert run(split_command(["doctor", "--json"])) == 1
    stdout.seek(0)
    (check,) = [check for check in json.load(stdout)["checks"] if check["name"] == "encoding"]
    assert check["state"] == "wrong"
    assert "iso8859-1" in codecs.lookup(check["found"].partition(":")[0]).name
    assert remedy in check["hint"]
