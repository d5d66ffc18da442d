"""A command line in a temporary folder, and a model server for judges."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from mast_tui.configuration import configuration_path
from mast_tui.workspace import Workspace
from mast_tui.workspace.paths import find_workspace
from tests.judges.llm.made_answers import judgement, write_runs
from tests.judges.llm.server import Action, ModelServer, answer

COLUMNS: Final = "trace_id,annotator,mode,value"


@dataclass(frozen=True)
class CliResult:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


class Cli:
    """A command line; arguments may be any objects, as text."""

    def __init__(self, command: Callable[..., CliResult]) -> None:
        self._command = command

    def __call__(self, *args: object) -> CliResult:
        return self._command(*args)

    def ok(self, *args: object) -> CliResult:
        """Run a command that must succeed."""
        result = self(*args)
        assert result.code == 0, result.err
        return result

    def json(self, *args: object) -> Any:
        """Run a command with ``--json``, which must succeed, and return its document."""
        return self.ok(*args, "--json").json

    def refused(self, *args: object, says: str | tuple[str, ...] = (), code: int = 1) -> CliResult:
        """Run a command that must fail.

        Args:
            args: The arguments.
            says: Texts that stderr contains; stdout is empty unless it is JSON.
            code: The exit code.

        Returns:
            The failed command.
        """
        result = self(*args)
        assert result.code == code, result.err
        assert result.out == "" or result.out.startswith("{")
        for text in (says,) if isinstance(says, str) else says:
            assert text in result.err
        return result

    def export(self, file_format: str, *options: object) -> str:
        """Export into a file, which may be there already, and return its text."""
        self.ok("export", "--format", file_format, "-o", "exported", "--force", *options)
        return Path("exported").read_text("utf-8")

    def gold(self, *options: object) -> Any:
        """Export gold, and return its document."""
        return json.loads(self.export("gold", *options))

    def rows(self, *options: object, labels: str = "all") -> list[dict[str, str]]:
        """Export labels as csv-long, and return the rows of the table."""
        text = self.export("csv-long", "--labels", labels, *options)
        return list(csv.DictReader(io.StringIO(text, newline="")))

    def label(
        self, *rows: str, columns: str = COLUMNS, options: Sequence[object] = ()
    ) -> CliResult:
        """Import rows of a csv-long table, which may have new names."""
        Path("rows.csv").write_text("\n".join([columns, *rows]) + "\n", "utf-8")
        return self.ok("import", "rows.csv", "--format", "csv-long", "--allow-new", *options)


def configure(text: str) -> Path:
    """Write the user's configuration, and return its path."""
    path = configuration_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def write_calls(
    path: Path, commands: Iterable[str], task: str = "Find the failing pod.", result: str = "done"
) -> None:
    """Write a run that calls the shell with each command.

    Args:
        path: The file.
        commands: The commands.
        task: The first message.
        result: The result of every call.
    """
    messages: list[dict[str, object]] = [{"role": "user", "content": task}]
    for number, command in enumerate(commands):
        function = {"name": "shell", "arguments": json.dumps({"command": command})}
        calls = [{"id": f"c{number}", "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": result})
    path.write_text(json.dumps({"messages": messages}))


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Commands that run in ``tmp_path``, which is the current directory."""
    monkeypatch.chdir(tmp_path)

    def call(*args: object) -> CliResult:
        capsys.readouterr()
        code = run(split_command([str(arg) for arg in args]))
        out, err = capsys.readouterr()
        return CliResult(code, out, err)

    return Cli(call)


def open_workspace() -> closing[Workspace]:
    """Open the workspace of the current directory until the end of a block."""
    return closing(Workspace.open(find_workspace(None)))


def right_answer(body: dict[str, Any], _: int) -> Action:
    return answer(judgement(body), tokens_in=3_000, tokens_out=500)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A server whose model gives right answers."""
    with ModelServer(right_answer) as server:
        yield server


@pytest.fixture
def new_cli(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Cli]:
    """Return a function that makes a command by which a server's model judges new runs."""

    def make(server: ModelServer, runs: int, *options: str) -> Cli:
        for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        write_runs(tmp_path / "runs", runs)
        model = ("--model", "test-model", "--base-url", server.base_url)
        return Cli(lambda *more: cli("judge", "runs", "--judge", "llm", *model, *options, *more))

    return make
