"""A study in a real terminal, from setting it up to gold labels."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Final

import pytest

from mast_tui.traces.library import samples_folder
from tests.terminal.forking import Apps
from tests.terminal.screen import Terminal
from tests.terminal.test_whole_way import command

LABELS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "alice": {"ad-restart-loop": ("1.3", "1.1"), "support_desk_exchange": ("2.6",)},
    "bob": {"ad-restart-loop": ("1.3",), "support_desk_exchange": ("3.1",)},
}
"""The modes with which each annotator labels the second span of a trace."""


@pytest.fixture
def samples(home: Path) -> Path:
    """A home with two of the samples in the folder ``set``."""
    (home / "set").mkdir()
    for name in ("ad-restart-loop.jsonl", "support_desk_exchange.json"):
        shutil.copy(samples_folder() / name, home / "set" / name)
    return home


def title(terminal: Terminal) -> str:
    return terminal.text.partition("\n")[0]


def label_all(apps: Apps, home: Path, annotator: str, workspace_options: tuple[str, ...]) -> None:
    """Label and finish all traces of an annotator, in the order of the queue."""
    with apps.terminal("set", *workspace_options, "--annotator", annotator, home=home) as terminal:
        terminal.until(rf"mine to do · 2 traces .*{annotator} · blind · 0 of 2 finished")
        terminal.press("enter")
        left = {**LABELS[annotator]}
        while left:
            terminal.until(lambda _: any(title(terminal).startswith(f" {name} ·") for name in left))
            terminal.until(rf"{annotator} · blind · ")
            modes = left.pop(next(name for name in left if f" {name} ·" in title(terminal)))
            terminal.press("down", *(digit for code in modes for digit in code.replace(".", "")))
            terminal.until(rf"{modes[-1]} .* on #2")
            # The study sets open modes absent.
            terminal.press("D")
            terminal.until("open modes become absent")
            terminal.press("o")
            terminal.until(r"set absent \(study rule\)")
            terminal.until(rf"{2 - len(left)} of 2 finished")
            terminal.press(">")
        terminal.press("Q")
        assert terminal.ended() == 0


def conflict_on(screen: str) -> tuple[str, str] | None:
    """Return the mode under the cursor with the verdict of the first side.

    Return None while the panes show different modes.
    """
    row = re.search(r"▌ ≠ (\d\.\d) ", screen)
    sides = re.search(r"╮╭─ (\d\.\d) [^\n]*\n[^\n]*││ 1 A +(present|absent)", screen)
    if row is None or sides is None or row[1] != sides[1]:
        return None
    return sides[1], sides[2]


def is_undecided(conflict: tuple[str, str] | None, decided: dict[str, str]) -> bool:
    return conflict is not None and conflict[0] not in decided


def decide_all(
    apps: Apps, home: Path, workspace_options: tuple[str, ...]
) -> tuple[int, dict[str, str]]:
    """Decide every conflict for the first side.

    Returns:
        The number of keys, and the decided verdict of each mode.
    """
    decided: dict[str, str] = {}
    keys = 0
    with apps.terminal("set", *workspace_options, "--annotator", "carol", home=home) as terminal:
        terminal.until(r"carol · ")
        terminal.press("A")
        terminal.until(r"0 of \d+ decided")
        while "nothing left" not in title(terminal):
            screen = terminal.until(lambda text: is_undecided(conflict_on(text), decided))
            assert not re.search(r"alice|bob", screen)
            code, value = conflict_on(screen) or ("", "")
            decided[code] = value
            terminal.press("1")
            keys += 1
            terminal.until(rf"{keys} of \d+ decided")
        terminal.press("Q")
        assert terminal.ended() == 0
    return keys, decided


def test_a_study_from_protocol_to_gold(apps: Apps, samples: Path) -> None:
    home = samples
    workspace_options = ("--workspace", str(home / "workspace.db"))
    people = ("--annotators", "alice,bob", "--adjudicators", "carol", "--annotator", "carol")
    command(home, "study", "set", "set", *people, "--open-modes", "absent", *workspace_options)
    for annotator in LABELS:
        label_all(apps, home, annotator, workspace_options)
    keys, decided = decide_all(apps, home, workspace_options)
    alice, bob = LABELS["alice"], LABELS["bob"]
    assert set(decided) == {code for name in alice for code in {*alice[name]} ^ {*bob[name]}}
    assert keys == len(decided)
    out = home / "gold.json"
    command(home, "export", "--format", "gold", "-o", str(out), *workspace_options)
    traces = json.loads(out.read_text("utf-8"))["traces"]
    verdicts = {
        (trace["trace_id"], code): verdict
        for trace in traces
        for code, verdict in trace["verdicts"].items()
    }
    adjudicated = {code: v for (_, code), v in verdicts.items() if v["source"] == "adjudicated"}
    assert {code: v["value"] for code, v in adjudicated.items()} == decided
    assert all(v["decided_by"] == "carol" for v in adjudicated.values())
    unanimous = [v for v in verdicts.values() if v["source"] != "adjudicated"]
    assert {v["source"] for v in unanimous} == {"unanimous"}
    assert ([v["value"] for v in unanimous].count("present"), len(verdicts)) == (1, 2 * 14)
