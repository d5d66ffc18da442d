"""A command line in a folder of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mast_tui.cli.command_line import split_words
from mast_tui.cli.dispatch import run


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


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command in ``tmp_path``; the last words may be any objects, as text."""
    monkeypatch.chdir(tmp_path)

    def call(*args: object) -> Done:
        capsys.readouterr()
        code = run(split_words([str(arg) for arg in args]))
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return call
