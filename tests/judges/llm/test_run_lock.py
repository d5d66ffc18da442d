"""One run of a judge at a time over a workspace."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mast_tui.judges.llm.request import RunStops
from mast_tui.judges.llm.run.running import run_lock

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no such locks there")

JUDGE = "judge:m@12345678"


def test_nobody_else_has_the_same_judge_at_work(tmp_path: Path) -> None:
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


def test_what_a_killed_process_left_keeps_nobody_out(tmp_path: Path) -> None:
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


def test_where_there_can_be_no_lock_nobody_is_kept_out(tmp_path: Path) -> None:
    for place in (None, tmp_path / "nowhere" / "workspace.db"):
        with run_lock(place, JUDGE), run_lock(place, JUDGE):
            pass
