"""The keys that docs/annotating.md counts, and that they do what it says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from mast_tui.labels import ReviewAnswer
from mast_tui.ui.annotate.text_screen import TextScreen
from tests.session.build import review_of
from tests.ui.stage import SLUGS, Stage, finding, read_trace, stage, suggest, write_trace
from tests.ui.test_many_answers import STEPS, flood

PAGE: Final = Path(__file__).parents[2] / "docs" / "annotating.md"
NAMES: Final = {"Enter": "enter", "⇧↓": "shift+down"}
ROWS: Final = {
    what: (tuple(re.findall("`(.+?)`", keys)), int(count))
    for what, keys, count in re.findall(
        r"^\| (.+?) \| (`.+?) \| (\d+) \|$", PAGE.read_text("utf-8"), re.M
    )
}
MOST: Final = {
    "Label the span under the cursor": 2,
    "Accept a suggestion and go to the next": 1,
    "Move an end of your label by a span": 3,
    "Extend a label to the next span": 3,
    "Reject all suggestions of one rule": 3,
    "Go back to where you were before a jump": 1,
    "See your labels of the trace": 1,
    "See the answer key": 1,
}


def labelled(on: Stage) -> None:
    assert on.labels == {("1.3", 1, 1)}


def accepted(on: Stage) -> None:
    assert on.labels == {("1.3", 1, 1)}
    assert on.number == 2


def moved(on: Stage) -> None:
    assert on.labels == {("2.3", 3, 6)}
    assert on.session.labels[0].note == "well"


def stretched(on: Stage) -> None:
    assert on.labels == {("2.3", 3, 4)}


def rejected(on: Stage) -> None:
    reviews = [review_of(on.session, one.id) for one in on.session.suggestions]
    assert [x.answer for x in reviews if x is not None] == [ReviewAnswer.REJECT] * 28
    assert {one.mode for one in on.session.pending} == {SLUGS["1.3"], SLUGS["3.1"]}


def back(on: Stage) -> None:
    assert on.number == 1


def listed(on: Stage) -> None:
    assert "My labels · 1" in on.text
    assert on.annotate.focused is on.annotate.my_labels


def key_seen(on: Stage) -> None:
    assert isinstance(on.app.screen, TextScreen)


AFTER: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Stage], None]]]] = {
    "Label the span under the cursor": ((), labelled),
    "Accept a suggestion and go to the next": ((), accepted),
    "Move an end of your label by a span": (
        ("j", "j", "v", "j", "j", "2", "3", "m", *"well", "enter"),
        moved,
    ),
    "Extend a label to the next span": (("j", "j", "2", "3"), stretched),
    "Reject all suggestions of one rule": ((), rejected),
    "Go back to where you were before a jump": (("G",), back),
    "See your labels of the trace": (("1", "3"), listed),
    "See the answer key": ((), key_seen),
}
"""What is pressed before, and what holds afterwards."""


def test_the_page_counts_what_is_promised() -> None:
    assert ROWS.keys() == MOST.keys() == AFTER.keys()
    for what, (keys, count) in ROWS.items():
        assert count == len(keys) <= MOST[what], what


@pytest.mark.parametrize("what", AFTER)
async def test_these_keys_are_enough(tmp_path: Path, what: str) -> None:
    path = write_trace(tmp_path / "t.json", STEPS)
    trace = read_trace(path)
    suggest(tmp_path / "w.db", trace, flood(trace))
    suggest(tmp_path / "plain.db", trace, [finding(trace, "3.3", 30, 30)])
    before, holds = AFTER[what]
    suggested = "suggestion" in what.lower()
    place = tmp_path / ("w.db" if suggested else "plain.db")
    async with stage(path, workspace=place) as on:
        await on.press(*before)
        await on.press(*(NAMES.get(key, key) for key in ROWS[what][0]))
        holds(on)
