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

SAID: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "alice": {"ad-restart-loop": ("1.3", "1.1"), "support_desk_exchange": ("2.6",)},
    "bob": {"ad-restart-loop": ("1.3",), "support_desk_exchange": ("3.1",)},
}
"""Which modes each annotator puts on a trace, all of them on its second span."""


@pytest.fixture
def samples(home: Path) -> Path:
    """A home with two of the samples in the folder ``set``."""
    (home / "set").mkdir()
    for name in ("ad-restart-loop.jsonl", "support_desk_exchange.json"):
        shutil.copy(samples_folder() / name, home / "set" / name)
    return home


def title(terminal: Terminal) -> str:
    return terminal.text.partition("\n")[0]


def label_all(apps: Apps, home: Path, who: str, place: tuple[str, ...]) -> None:
    """Go through what is somebody's to do, in its order, without once going back."""
    with apps.terminal("set", *place, "--annotator", who, home=home) as terminal:
        terminal.until(rf"mine to do · 2 traces .*{who} · blind · 0 of 2 finished")
        terminal.press("enter")
        left = {**SAID[who]}
        while left:
            terminal.until(lambda _: any(title(terminal).startswith(f" {name} ·") for name in left))
            terminal.until(rf"{who} · blind · ")
            modes = left.pop(next(name for name in left if f" {name} ·" in title(terminal)))
            terminal.press("down", *(digit for code in modes for digit in code.replace(".", "")))
            terminal.until(rf"{modes[-1]} .* on #2")
            # The study says what becomes of modes without a verdict.
            terminal.press("D")
            terminal.until("the study sets modes without a verdict absent")
            terminal.press("o")
            terminal.until(r"set absent \(study rule\)")
            terminal.until(rf"{2 - len(left)} of 2 finished")
            terminal.press(">")
        terminal.press("Q")
        assert terminal.ended() == 0


def conflict_on(screen: str) -> tuple[str, str] | None:
    """The mode under the cursor and what the first side says of it; None where the panes do not
    show the same mode yet."""
    row = re.search(r"▌ ≠ (\d\.\d) ", screen)
    sides = re.search(r"╮╭─ (\d\.\d) [^\n]*\n[^\n]*││ 1 A +(present|absent)", screen)
    if row is None or sides is None or row[1] != sides[1]:
        return None
    return sides[1], sides[2]


def is_next(found: tuple[str, str] | None, decided: dict[str, str]) -> bool:
    return found is not None and found[0] not in decided


def decide_all(apps: Apps, home: Path, place: tuple[str, ...]) -> tuple[int, dict[str, str]]:
    """Take the first side of every conflict: how many keys that took from the open queue on, and
    what stood behind the key each time, by mode."""
    decided: dict[str, str] = {}
    keys = 0
    with apps.terminal("set", *place, "--annotator", "carol", home=home) as terminal:
        terminal.until(r"carol · ")
        terminal.press("A")
        terminal.until(r"0 of \d+ decided")
        while "nothing left" not in title(terminal):
            screen = terminal.until(lambda text: is_next(conflict_on(text), decided))
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
    place = ("--workspace", str(home / "workspace.db"))
    people = ("--annotators", "alice,bob", "--adjudicators", "carol", "--annotator", "carol")
    command(home, "study", "set", "set", *people, "--open-modes", "absent", *place)
    for who in SAID:
        label_all(apps, home, who, place)
    keys, decided = decide_all(apps, home, place)
    alice, bob = SAID["alice"], SAID["bob"]
    assert set(decided) == {code for name in alice for code in {*alice[name]} ^ {*bob[name]}}
    assert keys == len(decided)
    out = home / "gold.json"
    command(home, "export", "--format", "gold", "-o", str(out), *place)
    traces = json.loads(out.read_text("utf-8"))["traces"]
    verdicts = {
        (trace["trace_id"], code): verdict
        for trace in traces
        for code, verdict in trace["verdicts"].items()
    }
    settled = {code: v for (_, code), v in verdicts.items() if v["source"] == "adjudicated"}
    assert {code: v["value"] for code, v in settled.items()} == decided
    assert all(v["decided_by"] == "carol" for v in settled.values())
    rest = [v for v in verdicts.values() if v["source"] != "adjudicated"]
    assert {v["source"] for v in rest} == {"unanimous"}
    assert ([v["value"] for v in rest].count("present"), len(verdicts)) == (1, 2 * 14)
