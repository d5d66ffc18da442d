"""Programs that share a workspace, and programs that are killed."""

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


def start_writer(address: Path | str, name: str, kind: str, *count: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.workspace.writer", str(address), name, kind, *count],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("on_server", [False, True])
def test_three_programs_write_at_once_and_nothing_is_lost(
    request: pytest.FixtureRequest, tmp_path: Path, on_server: bool
) -> None:
    address: Path | str = request.getfixturevalue("url") if on_server else tmp_path / "w.db"
    names = ("alice", "bob", "alice")
    written: dict[str, set[str]] = {"alice": set(), "bob": set()}
    programs = [start_writer(address, name, "local", "20") for name in names]
    for name, program in zip(names, programs, strict=True):
        output, _ = program.communicate(timeout=PATIENCE)
        assert program.returncode == 0
        written[name].update(output.split())
    with closing(Workspace.open(address, create=False)) as workspace:
        for name, ids in written.items():
            assert {row.id for row in workspace.labels(annotator=name)} == ids
            counters = [row.seq for row in workspace.events(annotator=name)]
            assert counters == list(range(1, len(counters) + 1))
        assert workspace.conflicts() == ()
        assert workspace.differences() == ()
        assert workspace.edited_histories() == ()


@pytest.mark.parametrize(
    ("count", "kind", "file_format"), [(1, "local", 2), (40, "local", 2), (7, "remote", 1)]
)
def test_acknowledged_labels_survive_a_kill(
    tmp_path: Path, count: int, kind: str, file_format: int
) -> None:
    path = tmp_path / "w.db"
    program = start_writer(path, "alice", kind)
    assert program.stdout is not None
    acknowledged = [program.stdout.readline().strip() for _ in range(count)]
    program.kill()
    acknowledged += program.stdout.read().split()
    program.wait()
    program.stdout.close()
    # The file itself says whether it has a write-ahead log (2) or not (1).
    assert path.read_bytes()[18] == file_format
    with closing(Workspace.open(path, create=False)) as workspace:
        stored = {row.id for row in workspace.labels()}
        assert set(acknowledged) <= stored
        assert len(stored) <= len(acknowledged) + 1
        state_before = state(workspace)
        workspace.rebuild()
        assert state(workspace) == state_before
