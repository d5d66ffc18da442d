"""A picture of the agreement screen; ``pytest --snapshot-update`` takes it anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mast_tui.ui.services.open_workspace import remember_welcome
from tests.ui.office import Office
from tests.ui.stage import finding, suggest
from tests.ui.test_looks import WIDE, app, pressing

Compare = Callable[..., bool]

KEYS = ("K", "3", "down", *("j",) * 5, "enter", "j")


def test_pages_of_agreement(snap_compare: Compare, tmp_path: Path) -> None:
    remember_welcome()
    office = Office(tmp_path / "set")
    for name, spans in (("one", (3, 8)), ("two", (5, 5))):
        trace = office.trace(name)
        made = finding(trace, "1.3", *spans)
        suggest(office.workspace, trace, [replace(made, confidence=0.75)])
        for who in ("alice", "bob", "carol"):
            office.label(who, name, {"1.3": (3, 8)} if who != "carol" or name == "one" else {})
    opened = app(office.folder, workspace=office.workspace)
    run = pressing(*([key] for key in KEYS))
    assert snap_compare(opened, terminal_size=WIDE, run_before=run)
