"""The two command lines of the README, and ``.ci/run``, which runs the second one."""

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
"""Shell scripts that replace programs of the machine."""


def ci(
    folder: Path, readme: str, stubs: Mapping[str, str], installed: Iterable[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run ``.ci/run`` beside this README, with only the programs that it needs.

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


def test_the_readme_has_one_line_for_the_start_and_one_for_the_tests() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    for heading in ("Start", "Run all tests"):
        section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        block = section.split("```\n")[1]
        assert block.count("\n") == 1
        assert block.startswith("python3 -m venv .venv && ")
        # The first command shows its progress.
        assert heading != "Start" or not {"-q", "--quiet", "-qq"}.intersection(block.split())


@pytest.mark.parametrize("installed", [["google-chrome", "groff"], ["chromium"], []])
def test_ci_runs_the_line_of_the_readme(tmp_path: Path, installed: list[str]) -> None:
    readme = "# x\n\n```\nexit 7\n```\n\n## Run all tests\n\n```\necho 'all is well' $CI\n```\n"
    done = ci(tmp_path, readme, STUBS, installed)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "all is well true"
    packages = {(): "chromium groff", ("chromium",): "groff"}.get(tuple(installed))
    command = f"apt-get install -y -q --no-install-recommends {packages}"
    assert (command in done.stdout.splitlines()) is (packages is not None)


def test_ci_continues_without_permission_to_install_and_fails_with_the_line(tmp_path: Path) -> None:
    for name, line, stubs, code, last in (
        ("denied", "echo all is well", {**STUBS, "sudo": "exit 1"}, 0, "all is well"),
        ("failed", "echo 1 failed && exit 3", STUBS, 3, "1 failed"),
    ):
        (tmp_path / name).mkdir()
        done = ci(tmp_path / name, f"## Run all tests\n\n```\n{line}\n```\n", stubs)
        assert (done.returncode, done.stdout.splitlines()[-1]) == (code, last)
        assert ("cannot install chromium groff" in done.stderr) is (name == "denied")


@pytest.mark.parametrize("block", ["", "```\n```\n", "```\ntrue\ntrue\n```\n"])
def test_ci_refuses_a_readme_without_one_line(block: str, tmp_path: Path) -> None:
    readme = f"## Run all tests\n\n{block}\n## Other\n\n```\ntrue\n```\n"
    done = ci(tmp_path, readme, STUBS)
    assert done.returncode == 2
    assert "README.md" in done.stderr
