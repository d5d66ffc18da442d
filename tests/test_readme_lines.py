"""The two lines of the README, and the script that runs the second as it stands."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent


def ci(folder: Path, readme: str) -> subprocess.CompletedProcess[str]:
    """``.ci/run`` in a folder that holds nothing else but this README."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    (folder / "README.md").write_text(readme, "utf-8")
    return subprocess.run(
        [folder / ".ci" / "run"], capture_output=True, encoding="utf-8", check=False, timeout=60
    )


@pytest.mark.parametrize("heading", ["Start", "Run all tests"])
def test_the_readme_gives_one_line_for_it(heading: str) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    block = section.split("```\n")[1]
    assert block.count("\n") == 1
    assert block.startswith("python3 -m venv .venv && ")


def test_the_first_command_shows_that_it_is_at_work() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    block = text.partition("\n## Start\n")[2].split("```\n")[1]
    assert not {"-q", "--quiet", "-qq"}.intersection(block.split())


def test_ci_runs_the_line_of_the_readme(tmp_path: Path) -> None:
    text = "# x\n\n```\nexit 7\n```\n\n## Run all tests\n\n```\necho 'all is well' $CI\n```\n"
    done = ci(tmp_path, text)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "all is well true"


def test_ci_fails_where_the_line_fails(tmp_path: Path) -> None:
    done = ci(tmp_path, "## Run all tests\n\n```\necho 1 failed && exit 3\n```\n")
    assert done.returncode == 3
    assert done.stdout.splitlines()[-1] == "1 failed"


@pytest.mark.parametrize("block", ["", "```\n```\n", "```\ntrue\ntrue\n```\n"])
def test_ci_refuses_a_readme_without_one_line(block: str, tmp_path: Path) -> None:
    done = ci(tmp_path, f"## Run all tests\n\n{block}\n## Other\n\n```\ntrue\n```\n")
    assert done.returncode == 2
    assert "README.md" in done.stderr
