"""Programs that share a workspace, and programs that are killed."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mast_tui.workspace import Workspace
from tests.postgres import PostgresServer
from tests.waiting import PATIENCE
from tests.workspace.build import state

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def start_writer(place: Path | str, name: str, where: str, *count: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.workspace.writer", str(place), name, where, *count],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("on_server", [False, True])
def test_three_programs_write_at_once_and_nothing_is_lost(
    request: pytest.FixtureRequest, tmp_path: Path, on_server: bool
) -> None:
    place: Path | str = tmp_path / "w.db"
    if on_server:
        server: PostgresServer = request.getfixturevalue("postgres")
        database = server.take()
        request.addfinalizer(lambda: server.give_back(database))
        place = server.url(database)
    names = ("alice", "bob", "alice")
    written: dict[str, set[str]] = {"alice": set(), "bob": set()}
    programs = [start_writer(place, name, "local", "20") for name in names]
    for name, program in zip(names, programs, strict=True):
        output, _ = program.communicate(timeout=PATIENCE)
        assert program.returncode == 0
        written[name].update(output.split())
    with closing(Workspace.open(place, create=False)) as workspace:
        for name, ids in written.items():
            assert {one.id for one in workspace.labels(annotator=name)} == ids
            counters = [one.seq for one in workspace.events(annotator=name)]
            assert counters == list(range(1, len(counters) + 1))
        assert workspace.conflicts() == ()
        assert workspace.differences() == ()
        assert workspace.edited_histories() == ()


@pytest.mark.parametrize(
    ("after", "where", "file_format"), [(1, "local", 2), (40, "local", 2), (7, "remote", 1)]
)
def test_acknowledged_labels_survive_a_kill(
    tmp_path: Path, after: int, where: str, file_format: int
) -> None:
    path = tmp_path / "w.db"
    program = start_writer(path, "alice", where)
    assert program.stdout is not None
    acknowledged = [program.stdout.readline().strip() for _ in range(after)]
    program.kill()
    acknowledged += program.stdout.read().split()
    program.wait()
    program.stdout.close()
    # The file itself says whether it has a write-ahead log (2) or not (1).
    assert path.read_bytes()[18] == file_format
    with closing(Workspace.open(path, create=False)) as workspace:
        stored = {one.id for one in workspace.labels()}
        assert set(acknowledged) <= stored
        assert len(stored) <= len(acknowledged) + 1
        before = state(workspace)
        workspace.rebuild()
        assert state(workspace) == before
