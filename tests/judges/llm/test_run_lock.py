"""The lock of a judge's run on a workspace."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mast_tui.judges.llm.errors import RunStops
from mast_tui.judges.llm.run.run_lock import run_lock

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no such locks there")

JUDGE = "judge:m@12345678"


def test_one_process_runs_a_judge_on_a_workspace(tmp_path: Path) -> None:
    place = tmp_path / "workspace.db"
    with run_lock(place, JUDGE):
        with (
            pytest.raises(RunStops, match="another process is running judge:m@12345678"),
            run_lock(place, JUDGE),
        ):
            pass
        with run_lock(place, "judge:n@12345678"), run_lock(tmp_path / "other.db", JUDGE):
            pass
    with run_lock(place, JUDGE):
        pass
    assert list(tmp_path.iterdir()) == []
    # Without a file there is no lock.
    for unlocked in (None, tmp_path / "nowhere" / "workspace.db"):
        with run_lock(unlocked, JUDGE), run_lock(unlocked, JUDGE):
            pass


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    place = tmp_path / "workspace.db"
    pid = os.fork()
    if pid == 0:
        with run_lock(place, JUDGE):
            os._exit(0)
    os.waitpid(pid, 0)
    assert len(list(tmp_path.iterdir())) == 1
    with run_lock(place, JUDGE):
        pass
    assert list(tmp_path.iterdir()) == []
