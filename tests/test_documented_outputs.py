"""What the pages show that a command prints is what it prints."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final

import pytest

from mast_tui.cli.command_line import split_words
from mast_tui.cli.dispatch import run

ROOT: Final = Path(__file__).resolve().parent.parent

BLOCK: Final = re.compile(r"^```\n(\$ .*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND: Final = re.compile(r"^\$ (?:\.venv/bin/)?mast-tui (.*)$")

AT: Final = "http://127.0.0.1:8765"

PAGES: Final = ("agreement", "judge", "lint", "search")
"""Pages that show what commands print of the samples."""


def shown(page: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a page that print what stands below them, and those that lead there."""
    for block in BLOCK.findall(page):
        printed: list[str] | None = None
        for line in block.splitlines():
            command = COMMAND.match(line)
            if command is not None:
                printed = []
                yield command[1], printed
            elif line.startswith("$ "):
                printed = None
            elif printed is not None:
                printed.append(line)


@contextmanager
def practice_server() -> Iterator[str]:
    """The server to practise with, and its address; nothing is printed of what it is asked."""
    handler = runpy.run_path(str(ROOT / "scripts" / "practice_server.py"))["Handler"]
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_commands_print_what_the_page_shows(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The shown lines stand in what is printed, in their order; ``…`` is for what is left out."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "sample_traces", tmp_path / "sample_traces")
    page = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    # What is followed while it grows, and screens, end when somebody ends them.
    commands = [one for one in shown(page) if not one[0].startswith(("watch", "sample_traces"))]
    checked = 0
    with practice_server() as address:
        for command, wanted in commands:
            capsys.readouterr()
            run(split_words(shlex.split(command.replace(AT, address))))
            out, err = capsys.readouterr()
            printed = iter([*err.splitlines(), *out.splitlines()])
            missing = [line for line in wanted if line not in ("", "…") and line not in printed]
            assert not missing, f"{command}: {missing[0]!r} is not printed, or not there"
            checked += len(wanted)
    assert checked
