"""A command line in a folder of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from tests.judges.llm.made_answers import said, write_runs
from tests.judges.llm.server import Action, ModelServer, answer


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


Cli = Callable[..., Done]
Judge = Callable[..., Done]
"""A command that has a model judge; the words may be any objects, as text."""


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command in ``tmp_path``; the last words may be any objects, as text."""
    monkeypatch.chdir(tmp_path)

    def call(*args: object) -> Done:
        capsys.readouterr()
        code = run(split_command([str(arg) for arg in args]))
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return call


def right(body: dict[str, Any], _: int) -> Action:
    """A right answer to whatever is asked."""
    return answer(said(body), tokens_in=3_000, tokens_out=500)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A server whose model answers well."""
    with ModelServer(right) as server:
        yield server


@pytest.fixture
def judging(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Judge]:
    """Make a command that has the model of a server judge so many runs, with some options."""

    def made(server: ModelServer, runs: int, *options: str) -> Judge:
        for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        write_runs(tmp_path / "runs", runs)

        def call(*more: object) -> Done:
            where = ("--model", "test-model", "--base-url", server.base_url)
            return cli("judge", "runs", "--judge", "llm", *where, *options, *more)

        return call

    return made
