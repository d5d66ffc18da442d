"""Several programs at one workspace, and programs that end without a word."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.workspace import Workspace
from tests.waiting import PATIENCE
from tests.workspace.build import state

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def begin(path: Path, name: str, where: str, *count: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.workspace.writer", str(path), name, where, *count],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_programs_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "w.db"
    names = ("alice", "bob", "alice")
    said: dict[str, set[str]] = {"alice": set(), "bob": set()}
    programs = [begin(path, name, "local", "40") for name in names]
    for name, program in zip(names, programs, strict=True):
        output, _ = program.communicate(timeout=PATIENCE)
        assert program.returncode == 0
        said[name].update(output.split())
    with closing(Workspace.open(path, create=False)) as workspace:
        for name, ids in said.items():
            assert {one.id for one in workspace.labels(annotator=name)} == ids
            counted = [one.seq for one in workspace.events(annotator=name)]
            assert counted == list(range(1, len(counted) + 1))
        assert workspace.conflicts() == ()


@pytest.mark.parametrize(
    ("after", "where", "file_format"), [(1, "local", 2), (40, "local", 2), (7, "remote", 1)]
)
def test_what_was_acknowledged_outlives_the_program(
    tmp_path: Path, after: int, where: str, file_format: int
) -> None:
    path = tmp_path / "w.db"
    program = begin(path, "alice", where)
    assert program.stdout is not None
    acknowledged = [program.stdout.readline().strip() for _ in range(after)]
    program.kill()
    acknowledged += program.stdout.read().split()
    program.wait()
    program.stdout.close()
    # The file itself says whether it has a write-ahead log (2) or not (1).
    assert path.read_bytes()[18] == file_format
    with closing(Workspace.open(path, create=False)) as workspace:
        found = {one.id for one in workspace.labels()}
        assert set(acknowledged) <= found
        assert len(found) <= len(acknowledged) + 1
        before = state(workspace)
        workspace.rebuild()
        assert state(workspace) == before
