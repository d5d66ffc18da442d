"""A new user, from a clone to a first label in the terminal and in a browser."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

import pexpect
import pytest

from tests.browser.chromium import browser
from tests.browser.visitor import Visitor, labelled
from tests.terminal.screen import TIMEOUT, Terminal, settings
from tests.waiting import PATIENCE

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).parents[2]


def fresh_machine(home: Path) -> dict[str, str]:
    """An environment in which nothing of the project is installed.

    What it depends on is lent by the environment of the tests, as if an index had it: pip finds it
    installed, and asks no index.
    """
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return settings(home) | {
        "PATH": programs,
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_NO_COMPILE": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def test_the_pages_lead_to_a_first_label(tmp_path: Path, program: str) -> None:
    clone, home = tmp_path / "clone", tmp_path / "home"
    left_out = (".git", ".mast-tui", ".venv", "__pycache__", "tests", ".*_cache", "build", "dist")
    shutil.copytree(ROOT, clone, ignore=shutil.ignore_patterns(*left_out))
    home.mkdir()
    machine = fresh_machine(home)

    readme = (clone / "README.md").read_text("utf-8").partition("\n## Start\n")[2]
    start = readme.split("```\n")[1]
    process = pexpect.spawn(
        "bash", ["-c", start], env=machine, dimensions=(40, 120), cwd=str(clone), timeout=TIMEOUT
    )
    with Terminal(home=home, process=process) as terminal:
        terminal.first_label("Ann")
        terminal.press("u")
        terminal.until(r"(?i)took back|taken back|undo")
        terminal.press("ctrl+q")
        assert terminal.ended() == 0

    page = (clone / "docs" / "web.md").read_text("utf-8")
    install, serve = re.findall(r"`(\.venv/bin/[^`]+)`", page)[:2]
    (clone / "runs").mkdir()
    shutil.copy(clone / "sample_traces" / "cart-valkey-noeviction.jsonl", clone / "runs")
    installed = subprocess.run(
        ["bash", "-c", install], env=machine, cwd=clone, capture_output=True, text=True, check=False
    )
    assert installed.returncode == 0, installed.stderr
    # Word for word but for the port, which another test may have.
    server = subprocess.Popen(
        ["bash", "-c", f"exec {serve} --port 0"],
        env=machine,
        cwd=clone,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().removeprefix("The app is at ").strip()
        with browser(program, tmp_path / "profile", offline=False) as shown:
            shown.size(1280, 800)
            visitor = Visitor(shown)
            visitor.enter(address, "Ben")
            visitor.sees("Enter open")
            visitor.press("enter")
            visitor.sees("44 spans")
            visitor.press("j", "1", "3")
            visitor.sees("Step repetition on #2")
        assert labelled(clone / ".mast-tui" / "workspace.db") == [("Ben", "step_repetition")]
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0
    finally:
        server.kill()
        assert server.stdout is not None
        server.stdout.close()
