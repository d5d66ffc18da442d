"""Labels after ``kill -9``."""

from __future__ import annotations

import random
import re
import signal
import time
from functools import partial
from pathlib import Path
from typing import Final

from mast_tui.labels import Label
from mast_tui.taxonomy.loader import load_mast
from mast_tui.traces.library import read_file, read_fully, samples_folder
from mast_tui.workspace import Workspace
from tests import waiting
from tests.terminal.forking import Apps
from tests.terminal.screen import Terminal

TRACE: Final = samples_folder() / "shipping-quote-hpa-stuck.jsonl"
ROW: Final = re.compile(r"[│▌┃]\s*(\d+)\s.*?((?:\s\d\.\d ●)+)\s*│")
SAID: Final = re.compile(r" (\d\.\d) [^#]* on #(\d+)(?: |$)")
MARK: Final = re.compile(r"(\d\.\d) ●")

Shown = set[tuple[int, str]]


def shown(terminal: Terminal) -> Shown:
    found: Shown = set()
    for line in terminal.text.splitlines():
        row = ROW.search(line)
        if row is not None:
            found.update((int(row[1]), code) for code in MARK.findall(row[2]))
        said = SAID.match(line)
        if said is not None:
            found.add((int(said[2]), said[1]))
    return found


def something_new(terminal: Terminal, before: Shown, _: str) -> bool:
    return bool(shown(terminal) - before)


def kept(workspace: Path) -> Shown:
    trace = read_file(TRACE, named=True).traces[0]
    read_fully(trace)
    codes = {mode.slug: mode.code for mode in load_mast().modes}
    store = Workspace.open(workspace, create=False)
    try:
        labels: tuple[Label, ...] = store.labels(annotator="alice")
    finally:
        store.close()
    found: Shown = set()
    for label in labels:
        assert label.target.first is not None
        index = trace.index_of(label.target.first)
        assert index is not None
        found.add((index + 1, codes[label.mode]))
    return found


def test_shown_labels_survive_a_kill(apps: Apps, home: Path) -> None:
    workspace = home / "workspace.db"
    chance = random.Random(0)
    codes = [mode.code for mode in load_mast().modes]
    used: Shown = set()
    seen_at_all = 0
    arguments = (str(TRACE), "--workspace", str(workspace), "--annotator", "alice")
    for _ in range(5):
        with apps.terminal(*arguments, home=home, columns=100, rows=30) as terminal:
            terminal.until(r"alice")
            before = shown(terminal)
            number = chance.randrange(1, 110)
            terminal.press(":", str(number), "enter")
            for press in range(chance.randrange(2, 12)):
                number += 1
                taken = {c for n, c in used if n in (number - 1, number)}
                code = chance.choice([c for c in codes if c not in taken])
                used.add((number, code))
                terminal.press("down", *code.replace(".", ""))
                if press == 0:
                    terminal.until(partial(something_new, terminal, before))
                until = time.monotonic() + chance.uniform(0, 0.1)
                while time.monotonic() < until:
                    terminal.read(0.01)
            terminal.process.kill(signal.SIGKILL)
            for _ in waiting.until(lambda: not terminal.read(0.2)):
                pass
            # A frame torn by the kill may hold the number of one row with the mark of the row
            # that stood there before; neighbours have no code in common, so that it is told.
            on_screen = (shown(terminal) | before) & used
        seen_at_all += len(on_screen)
        missing = on_screen - kept(workspace)
        assert not missing, f"shown, but lost: {sorted(missing)}"
    assert seen_at_all >= 8
