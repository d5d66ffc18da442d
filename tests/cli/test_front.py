"""The command line from outside: what it imports, its exit codes, its one-line errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

HEAVY = ("sqlalchemy", "numpy", "openai", "rapidfuzz", "click", "textual", "rich")


def run(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mast_tui", *args],
        cwd=cwd,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )


def test_the_command_line_and_the_way_to_the_app_import_nothing_heavy() -> None:
    code = (
        "import sys, mast_tui.cli, mast_tui.cli.start, mast_tui.ui.options\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "args",
    [("--no-such-option",), ("--workspace",), ("--blind", "--assisted"), ("agree", "--pass", "7")],
)
def test_wrong_usage_leaves_with_2(cli: Cli, args: tuple[str, ...]) -> None:
    done = cli(*args)
    assert (done.code, done.out) == (2, "")
    assert "Error" in done.err
    assert "Traceback" not in done.err


def test_a_missing_path_is_told_in_one_line_and_makes_no_files(tmp_path: Path) -> None:
    done = run("no-such\x1b[31m.jsonl", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "no such file" in done.stderr
    assert "\x1b" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_mistyped_command_is_recognised(cli: Cli) -> None:
    done = cli("exprot")
    assert done.code == 1
    assert "mast-tui export" in done.err


def test_a_missing_taxonomy_is_told_before_the_app_opens(cli: Cli) -> None:
    done = cli("--taxonomy", "nowhere.toml")
    assert done.code == 1
    assert "nowhere.toml" in done.err
    assert done.err.count("\n") == 1


def test_help_lists_every_command(cli: Cli) -> None:
    done = cli("--help")
    assert done.code == 0
    commands = ("inspect", "convert", "judge", "import", "status", "study", "agree", "export")
    for word in (*commands, "PATH"):
        assert word in done.out


def test_the_version_is_printed(cli: Cli) -> None:
    done = cli("--version")
    assert done.code == 0
    assert done.out.startswith("mast-tui")
