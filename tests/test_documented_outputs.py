"""The commands that pages show with their output run, in the order of the page."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final

import pytest

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from scripts.practice_server import Handler

ROOT: Final = Path(__file__).resolve().parent.parent

BLOCK: Final = re.compile(r"^```\n(\$ .*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND: Final = re.compile(r"^\$ (?:\.venv/bin/)?mast-tui (.*)$")

SHOWN_ADDRESS: Final = "http://127.0.0.1:8765"

PAGES: Final = ("agreement", "annotating", "judge", "lint")
"""Pages that show the output of commands on the samples."""


def commands_of(page: str) -> list[str]:
    """Return the commands that a page shows with their output."""
    lines = [line for block in BLOCK.findall(page) for line in block.splitlines()]
    return [match[1] for line in lines if (match := COMMAND.match(line))]


@contextmanager
def practice_server() -> Iterator[str]:
    """Run the practice server and yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "sample_traces", tmp_path / "sample_traces")
    page = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    # `watch` and the app run until the user ends them.
    endless = ("watch", "sample_traces")
    commands = [command for command in commands_of(page) if not command.startswith(endless)]
    assert commands
    with practice_server() as address:
        for command in commands:
            capsys.readouterr()
            code = run(split_command(shlex.split(command.replace(SHOWN_ADDRESS, address))))
            out, err = capsys.readouterr()
            # 3: `lint` found what it is told to fail on.
            assert code == 0 or (code == 3 and command.startswith("lint ")), f"{command}\n{err}"
            assert out or err, f"{command} prints nothing"
