"""``mast-tui doctor``: its checks of a machine, with states and remedies."""

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
from tests.cli.conftest import Cli, CliResult, configure
from tests.judges.llm.server import ModelServer, answer, status


@pytest.fixture(autouse=True)
def temporary_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "TMUX", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("EDITOR", "true")


def checks(result: CliResult) -> Mapping[str, Mapping[str, str]]:
    return {check["name"]: check for check in result.json["checks"]}


def test_a_machine_without_problems_passes(cli: Cli) -> None:
    result = cli("doctor", "--json")
    by_name = checks(result)
    assert result.code == 0
    assert {check["state"] for check in by_name.values()} <= {"works", "note"}
    assert by_name["workspace"]["found"].endswith(str(Path(".mast-tui") / "workspace.db"))
    assert by_name["model"]["found"] == "not set; the rules need none"
    output = cli("doctor")
    assert [line.split()[1] for line in output.out.splitlines() if line[0] in "✓·"] == list(by_name)
    assert not list(Path().iterdir())


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
    by_name = checks(cli.refused("doctor", "--json"))
    assert by_name["settings"]["state"] == by_name["editor"]["state"] == "wrong"
    assert "nord" in by_name["settings"]["found"]
    assert "no-such-editor" in by_name["editor"]["found"]


def test_the_workspace_is_checked(cli: Cli) -> None:
    Path("mine.db").write_bytes(b"no database")
    result = cli.refused("doctor", "--workspace", "mine.db", "--json")
    assert "not a mast-tui workspace" in checks(result)["workspace"]["found"]
    cli.label("t,ann,1.3,present")
    workspace = checks(cli("doctor", "--json"))["workspace"]
    assert (workspace["state"], "1 trace," in workspace["found"]) == ("works", True)


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
        requests = len(server.requests)
        assert model("--offline")["state"] == "note"
        assert len(server.requests) == requests
        assert not server.chats
        monkeypatch.setenv("OPENAI_API_KEY", "sk-not-this-one-either")
        server.listing = status(401, "Incorrect API key provided: sk-not-this-one-either")
        result = cli.refused("doctor", "--json")
        assert "refuses the key in OPENAI_API_KEY" in checks(result)["model"]["found"]
        assert "sk-not-this" not in result.out
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
            patched.setattr(shutil, "get_terminal_size", lambda *_, size=terminal, **__: size)
            check = checks(cli("doctor", "--json"))["terminal"]
        assert hint in check["hint"]
        assert (check["state"] == "works") == (not hint)


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
