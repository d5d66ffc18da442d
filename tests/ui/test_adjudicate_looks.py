"""A picture of adjudication under a study; ``pytest --snapshot-update`` takes it anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mast_tui.study.model import Study
from mast_tui.ui.services.open_workspace import remember_welcome
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import StudySet
from tests.ui.office import Office
from tests.ui.stage import MAST
from tests.ui.test_looks import WIDE, app, pressing

Compare = Callable[..., bool]

KEYS = ("A", "1", "k", "v", "m", *"thrice is a loop", "enter")


def test_adjudication_with_hidden_names(snap_compare: Compare, tmp_path: Path) -> None:
    remember_welcome()
    office = Office(tmp_path / "set")
    office.label("alice", "one", {"1.3": (3, 8), "2.6": (10, 10)}, note="the same call thrice")
    office.label("bob", "one", {"3.1": "Done: the checkout", "2.6": (2, 2)})
    store = Workspace.open(office.workspace)
    study = Study(MAST.ref, ("alice", "bob"), ("carol",), (("one",),))
    store.append([NewEvent("alice", None, MAST.ref, None, StudySet(None, study))])
    store.close()
    opened = app(office.folder, workspace=office.workspace)
    run = pressing(*([key] for key in KEYS))
    assert snap_compare(opened, terminal_size=WIDE, run_before=run)
