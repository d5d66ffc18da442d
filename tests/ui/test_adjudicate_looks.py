"""Pictures of adjudication under a study; ``pytest --snapshot-update`` takes them anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from mast_tui.study.model import Study
from mast_tui.ui.services.open_workspace import remember_welcome
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import StudySet
from tests.ui.office import Office
from tests.ui.stage import MAST
from tests.ui.test_looks import app, pressing

Compare = Callable[..., bool]

SCENES: dict[str, tuple[tuple[int, int], Iterable[str]]] = {
    "wide": ((120, 40), ("A", "1", "k", "v", "m", *"thrice is a loop", "enter")),
    "narrow": ((80, 24), ("A", "j")),
}


@pytest.mark.parametrize("scene", SCENES)
def test_adjudication_with_hidden_names(snap_compare: Compare, tmp_path: Path, scene: str) -> None:
    remember_welcome()
    office = Office(tmp_path / "set")
    office.label("alice", "one", {"1.3": (3, 8), "2.6": (10, 10)}, note="the same call thrice")
    office.label("bob", "one", {"3.1": "Done: the checkout", "2.6": (2, 2)})
    store = Workspace.open(office.workspace)
    study = Study(MAST.ref, ("alice", "bob"), ("carol",), (("one",),))
    store.append([NewEvent("alice", None, MAST.ref, None, StudySet(None, study))])
    store.close()
    size, keys = SCENES[scene]
    opened = app(office.folder, workspace=office.workspace)
    assert snap_compare(opened, terminal_size=size, run_before=pressing(*([key] for key in keys)))
