"""The keys of daily work as docs/annotating.md lists them."""

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


def rejects_one_rule(on: Stage) -> bool:
    reviews = [review_of(on.session, one.id) for one in on.session.suggestions]
    answers = [review.answer for review in reviews if review is not None]
    left = {one.mode for one in on.session.pending}
    return answers == [ReviewAnswer.REJECT] * 28 and left == {SLUGS["1.3"], SLUGS["3.1"]}


LONG_LABEL: Final = ("j", "j", "v", "j", "j", "2", "3", "m", *"well", "enter")

AFTER: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Stage], object]]]] = {
    "Label the span under the cursor": ((), lambda on: on.labels == {("1.3", 1, 1)}),
    "Accept a suggestion and go to the next": (
        (),
        lambda on: (on.labels, on.number) == ({("1.3", 1, 1)}, 2),
    ),
    "Move an end of your label by a span": (
        LONG_LABEL,
        lambda on: on.labels == {("2.3", 3, 6)} and on.session.labels[0].note == "well",
    ),
    "Extend a label to the next span": (
        ("j", "j", "2", "3"),
        lambda on: on.labels == {("2.3", 3, 4)},
    ),
    "Reject all suggestions of one rule": ((), rejects_one_rule),
    "Go back to where you were before a jump": (("G",), lambda on: on.number == 1),
    "See your labels of the trace": (
        ("1", "3"),
        lambda on: "My labels · 1" in on.text and on.annotate.focused is on.annotate.my_labels,
    ),
    "See the answer key": ((), lambda on: isinstance(on.app.screen, TextScreen)),
}
"""Keys pressed before, and what holds after the listed keys."""


def test_the_page_counts_its_keys() -> None:
    assert ROWS.keys() == MOST.keys() == AFTER.keys()
    for what, (keys, count) in ROWS.items():
        assert count == len(keys) <= MOST[what], what


@pytest.mark.parametrize("suggested", [True, False])
async def test_the_listed_keys_are_enough(tmp_path: Path, suggested: bool) -> None:
    path = write_trace(tmp_path / "t.json", STEPS)
    trace = read_trace(path)
    found = flood(trace) if suggested else [finding(trace, "3.3", 30, 30)]
    suggest(tmp_path / "w.db", trace, found)
    async with stage(path, workspace=tmp_path / "w.db") as on:
        for what, (before, holds) in AFTER.items():
            if suggested is ("suggestion" in what.lower()):
                await on.press(*before)
                await on.press(*(NAMES.get(key, key) for key in ROWS[what][0]))
                assert holds(on), what
                if on.app.screen.is_modal:
                    await on.press("escape")
                await on.undo_all()
