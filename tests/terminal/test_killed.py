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
MESSAGE: Final = re.compile(r" (\d\.\d) [^#]* on #(\d+)(?: |$)")
MARK: Final = re.compile(r"(\d\.\d) ●")

NumberedLabels = set[tuple[int, str]]
"""Numbers of spans with codes of modes."""


def labels_on_screen(terminal: Terminal) -> NumberedLabels:
    labels: NumberedLabels = set()
    for line in terminal.text.splitlines():
        row = ROW.search(line)
        if row is not None:
            labels.update((int(row[1]), code) for code in MARK.findall(row[2]))
        message = MESSAGE.match(line)
        if message is not None:
            labels.add((int(message[2]), message[1]))
    return labels


def shows(terminal: Terminal, label: tuple[int, str], _: str) -> bool:
    return label in labels_on_screen(terminal)


def labels_on_disk(workspace: Path) -> NumberedLabels:
    trace = read_file(TRACE, named=True).traces[0]
    read_fully(trace)
    codes = {mode.slug: mode.code for mode in load_mast().modes}
    store = Workspace.open(workspace, create=False)
    try:
        stored: tuple[Label, ...] = store.labels(annotator="alice")
    finally:
        store.close()
    labels: NumberedLabels = set()
    for label in stored:
        assert label.target.first is not None
        index = trace.index_of(label.target.first)
        assert index is not None
        labels.add((index + 1, codes[label.mode]))
    return labels


def test_shown_labels_survive_a_kill(apps: Apps, home: Path) -> None:
    workspace = home / "workspace.db"
    chance = random.Random(0)
    codes = [mode.code for mode in load_mast().modes]
    used: NumberedLabels = set()
    arguments = (str(TRACE), "--workspace", str(workspace), "--annotator", "alice")
    for _ in range(5):
        with apps.terminal(*arguments, home=home, columns=100, rows=30) as terminal:
            terminal.until(r"alice")
            shown = labels_on_screen(terminal)
            number = chance.randrange(1, 110)
            terminal.press(":", str(number), "enter")
            for press in range(chance.randrange(2, 12)):
                number += 1
                neighbours = {used_code for n, used_code in used if n in (number - 1, number)}
                code = chance.choice([code for code in codes if code not in neighbours])
                used.add((number, code))
                terminal.press("down", *code.replace(".", ""))
                if press == 0:
                    terminal.until(partial(shows, terminal, (number, code)))
                    shown |= labels_on_screen(terminal)
                until = time.monotonic() + chance.uniform(0, 0.1)
                while time.monotonic() < until:
                    terminal.read(0.01)
            terminal.process.kill(signal.SIGKILL)
            for _ in waiting.until(lambda: not terminal.read(0.2)):
                pass
            # The kill may leave half a frame: the number of a row with the mark of the row that was
            # there before. Neighbours have no code in common, so such a pair is not in ``used``.
            shown = (labels_on_screen(terminal) | shown) & used
        missing = shown - labels_on_disk(workspace)
        assert not missing, f"shown, but lost: {sorted(missing)}"
