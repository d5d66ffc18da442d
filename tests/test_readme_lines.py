"""The two lines of the README, and the script that runs the second as it stands."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent


STUBS: Final = {
    "apt-get": 'echo "apt-get $*"',
    "sudo": 'test "$1" = -n && shift && exec "$@"',
    "id": "echo 1000",
}
"""Programs that stand in for those of the machine, as shell scripts."""


def ci(
    folder: Path, readme: str, stubs: Mapping[str, str], installed: Iterable[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run ``.ci/run`` beside this README, on a machine that has only what it needs itself.

    Args:
        folder: An empty folder.
        readme: The text of the README.
        stubs: Programs of the machine as shell scripts, by name.
        installed: Names of programs that exist and do nothing.

    Returns:
        The finished process.
    """
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    (folder / "README.md").write_text(readme, "utf-8")
    programs = folder / "bin"
    programs.mkdir()
    for name in ("bash", "env", "awk", "dirname"):
        program = shutil.which(name)
        assert program is not None
        (programs / name).symlink_to(program)
    for name, script in {**stubs, **dict.fromkeys(installed, "")}.items():
        (programs / name).write_text(f"#!/usr/bin/env bash\n{script}\n")
        (programs / name).chmod(0o755)
    return subprocess.run(
        [folder / ".ci" / "run"],
        env={"PATH": str(programs)},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
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


@pytest.mark.parametrize("installed", [["google-chrome", "groff"], ["chromium"], []])
def test_ci_runs_the_line_of_the_readme(tmp_path: Path, installed: list[str]) -> None:
    readme = "# x\n\n```\nexit 7\n```\n\n## Run all tests\n\n```\necho 'all is well' $CI\n```\n"
    done = ci(tmp_path, readme, STUBS, installed)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "all is well true"
    packages = {(): "chromium groff", ("chromium",): "groff"}.get(tuple(installed))
    command = f"apt-get install -y -q --no-install-recommends {packages}"
    assert (command in done.stdout.splitlines()) is (packages is not None)


def test_ci_goes_on_where_it_may_not_install(tmp_path: Path) -> None:
    readme = "## Run all tests\n\n```\necho all is well\n```\n"
    done = ci(tmp_path, readme, {**STUBS, "sudo": "exit 1"})
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "all is well"
    assert "cannot install chromium groff" in done.stderr


def test_ci_fails_where_the_line_fails(tmp_path: Path) -> None:
    done = ci(tmp_path, "## Run all tests\n\n```\necho 1 failed && exit 3\n```\n", STUBS)
    assert done.returncode == 3
    assert done.stdout.splitlines()[-1] == "1 failed"


@pytest.mark.parametrize("block", ["", "```\n```\n", "```\ntrue\ntrue\n```\n"])
def test_ci_refuses_a_readme_without_one_line(block: str, tmp_path: Path) -> None:
    readme = f"## Run all tests\n\n{block}\n## Other\n\n```\ntrue\n```\n"
    done = ci(tmp_path, readme, STUBS)
    assert done.returncode == 2
    assert "README.md" in done.stderr
