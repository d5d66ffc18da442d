"""Pictures of the agreement screen; ``pytest --snapshot-update`` takes them anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from mast_tui.ui.services.open_workspace import remember_welcome
from tests.ui.office import Office
from tests.ui.stage import finding, suggest
from tests.ui.test_looks import app, pressing

Compare = Callable[..., bool]

SCENES: dict[str, tuple[tuple[int, int], Iterable[str]]] = {
    "pairs-wide": ((120, 40), ("K", "3", "down", *("j",) * 5, "enter", "j")),
    "judge-narrow": ((80, 24), ("K", "5", "G", "k", "k", "k")),
    "traces-narrow": ((80, 24), ("K", "j", "j", "enter")),
}


@pytest.mark.parametrize("scene", SCENES)
def test_pages_of_agreement(snap_compare: Compare, tmp_path: Path, scene: str) -> None:
    remember_welcome()
    office = Office(tmp_path / "set")
    for name, spans in (("one", (3, 8)), ("two", (5, 5))):
        trace = office.trace(name)
        made = finding(trace, "1.3", *spans)
        suggest(office.workspace, trace, [replace(made, confidence=0.75)])
        for who in ("alice", "bob", "carol"):
            office.label(who, name, {"1.3": (3, 8)} if who != "carol" or name == "one" else {})
    size, keys = SCENES[scene]
    opened = app(office.folder, workspace=office.workspace)
    assert snap_compare(opened, terminal_size=size, run_before=pressing(*([key] for key in keys)))
