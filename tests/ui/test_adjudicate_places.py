"""One row for the places of a mode on the adjudicate screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.adjudication import Adjudication
from mast_tui.labels import Target
from mast_tui.session import Session
from mast_tui.ui.adjudicate.screen import AdjudicateScreen
from mast_tui.ui.dialogs.dialog import NoteScreen
from mast_tui.ui.study.guidelines import GuidelinesScreen
from tests.ui.office import Office, adjudicate, adjudicating, last_message
from tests.ui.stage import MAST, SLUGS, Stage, finding, missing, suggest

CODE = "2.6"


def mark(office: Office, who: str, *spans: int, name: str = "one", code: str = CODE) -> None:
    """Label spans (from 1) with one mode for somebody, and finish."""
    trace = office.trace(name)
    with office.store() as store:
        session = Session.open(store, trace, MAST, who, blind=False)
        for number in spans:
            key = trace.span(number - 1).key
            target = Target(key, key)
            session.toggle_label(SLUGS[code], target, suggestions_on_screen=False)
        session.finish(open_modes="absent")


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """alice and bob agree on 2.6 and on #2; alice marks #10 and #12 too, bob #7."""
    office = Office(tmp_path / "set")
    mark(office, "alice", 2, 10, 12)
    mark(office, "bob", 2, 7)
    return office


def row(on: Stage) -> tuple[str, str]:
    found = adjudicate(on).queue.row
    assert found is not None
    return str(found.state), found.summary


def shown(on: Stage) -> list[tuple[int | None, str, list[str]]]:
    sides = adjudicate(on).evidence.sides_panel.sides
    return [(one.number, one.name, [place.words for place in one.places]) for one in sides]


def gold(office: Office, who: str = "alice", *, code: str = CODE) -> list[tuple[int, int]]:
    """Return where a mode shows by the gold: first and last span (from 1)."""
    trace = office.trace("one")
    with office.store() as store:
        trace_id = office.trace_id(store, "one")
        work = Adjudication(store, MAST, trace_id, who, order=trace.index_of)
        found = [label.target for label in work.gold.labels if label.mode == SLUGS[code]]
    ends = [(trace.index_of(t.first or ""), trace.index_of(t.last or "")) for t in found]
    return [(first + 1, last + 1) for first, last in ends if first is not None and last is not None]


def reasons(office: Office) -> list[str]:
    with office.store() as store:
        found = store.decisions(office.trace_id(store, "one"), MAST.ref)
    return [decision.reason for decision in found]


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_the_row_shows_the_places_of_each_side(office: Office, size: tuple[int, int]) -> None:
    async with adjudicating(office, size=size) as on:
        assert "1 left in 1 trace" in on.lines[0]
        assert row(on) == ("open", "at #10, #12 / #7")
        sides = adjudicate(on).evidence.sides_panel
        assert shown(on) == [
            (1, "alice", ["#10", "#12"]),
            (2, "bob", ["#7"]),
            (None, "gold so far", ["#2"]),
        ]
        assert "where is it?" in str(sides.border_title)
        text = on.text
        assert not missing(text, "gold so far  #2", "1 alice  #10", "2 bob  #7")
        marks = adjudicate(on).evidence.timeline.marks
        assert [[m.code for m in marks.marks_on(place)] for place in (6, 9, 11, 1)] == [
            ["2"], ["1"], ["1"], [],
        ]  # fmt: skip


async def test_one_key_decides_all_places(office: Office) -> None:
    cases = (
        ("1", [(2, 2), (10, 10), (12, 12)], "at #10, #12, as alice"),
        ("2", [(2, 2), (7, 7)], "at #7, as bob"),
        ("b", [(2, 2), (7, 7), (10, 10), (12, 12)], "at #7, #10, #12, as alice and bob"),
        ("0", [(2, 2)], "present, 3 places dropped"),
    )
    async with adjudicating(office) as on:
        for key, expected, summary in cases:
            await on.press(key)
            assert gold(office) == expected
            assert summary in last_message(on)
            assert "1 of 1 decided" in on.lines[0]
            assert row(on) == ("decided", summary)
            await on.press("u")
            assert (gold(office), row(on)) == ([(2, 2)], ("open", "at #10, #12 / #7"))
            await on.press("U")
            assert gold(office) == expected
            await on.press("u")


async def test_places_are_numbers_and_joined_before_the_trace_is_shown(office: Office) -> None:
    mark(office, "alice", 5, code="1.5")
    mark(office, "bob", 5, 8, code="1.5")
    async with adjudicating(office) as on:
        assert row(on) == ("open", "only bob marks #8")
        adjudicate(on).evidence.trace = None  # as while the trace is read
        await on.press("2")
        assert "1.5 Unaware of termination conditions: place taken at #8, as bob" in last_message(
            on
        )
        assert "1 left" in last_message(on)


async def test_single_places_are_dropped_changed_and_added(office: Office) -> None:
    async with adjudicating(office) as on:
        await on.press("tab")
        assert "0 drops it alone" in last_message(on)
        await on.press("j", "0")
        assert row(on) == ("open", "at #10 / #7")
        assert "its other places are open" in last_message(on)
        assert shown(on)[2:] == [(None, "gold so far", ["#2"]), (None, "dropped", ["#12"])]
        assert adjudicate(on).focused is adjudicate(on).evidence.sides_panel
        await on.press("e", "k", "enter")
        assert row(on) == ("open", "only bob marks #7")
        assert adjudicate(on).focused is adjudicate(on).evidence.sides_panel
        await on.press("b")
        assert (gold(office), row(on)[0]) == ([(2, 2), (7, 7), (9, 10)], "decided")
        await on.press("u", "u", "u")
        assert (row(on), gold(office)) == (("open", "at #10, #12 / #7"), [(2, 2)])
        await on.press("1")
        assert row(on) == ("decided", "at #10, #12, as alice")
        assert "✓ taken" in next(line for line in on.lines if "1 alice" in line)
        await on.press("2")
        assert (row(on), gold(office)) == (("decided", "at #7, as bob"), [(2, 2), (7, 7)])
        await on.press("u")
        adjudicate(on).action_undo()
        adjudicate(on).row_moved()  # asks for the panes of the decided row, which come too late
        await on.press("e", "j", "enter")
        assert gold(office) == [(2, 2), (7, 8)]
        assert "nothing left" in on.lines[0]


async def test_settled_places_are_shown_and_not_decided(office: Office) -> None:
    async with adjudicating(office) as on:
        await on.press("tab", "j", "j", "j")
        assert adjudicate(on).evidence.timeline.index == 1
        for key in ("0", "e", "l"):
            await on.press(key)
            assert "not in question" in last_message(on)
            assert isinstance(on.app.screen, AdjudicateScreen)
        assert (gold(office), row(on)[0]) == ([(2, 2)], "open")


async def test_another_mode_takes_all_places_or_one(office: Office) -> None:
    async with adjudicating(office) as on:
        await on.press("tab", "j", "l", *"1.5", "enter")
        assert (gold(office, code="1.5"), row(on)[0]) == ([(12, 12)], "open")
        await on.press("u")
        assert gold(office, code="1.5") == []
        await on.press("escape", "l", *"1.5", "enter")
        assert gold(office, code="1.5") == [(7, 7), (10, 10), (12, 12)]
        assert gold(office) == [(2, 2)]


async def test_guideline_page_and_reason_are_of_all_places(office: Office) -> None:
    async with adjudicating(office) as on:
        await on.press("1", "p")
        assert isinstance(on.app.screen, GuidelinesScreen)
        assert "Decided cases: 1" in on.text
        assert "one.json: 2 of 3 places taken at #10, #12" in on.text
        await on.press("tab", "enter")
        assert row(on)[0] == "decided"
        await on.press("m")
        assert isinstance(on.app.screen, NoteScreen)
        await on.press(*"so", "enter")
        assert reasons(office) == ["so", "so", "so"]
        assert on.text.count("so") < 10
        await on.press("m", *"!", "enter")
        assert reasons(office) == ["so!", "so!", "so!"]


async def test_reopened_places_are_not_settled(office: Office) -> None:
    async with adjudicating(office) as on:
        await on.press("1")
    mark(office, "alice", 12)  # a second time: it is hers no more
    mark(office, "bob", 5)
    async with adjudicating(office) as on:
        assert row(on)[0] == "open"
        assert shown(on) == [
            (1, "alice", []),
            (2, "bob", ["#5"]),
            (None, "gold so far", ["#2", "#10"]),
            (None, "dropped", ["#7"]),
            (None, "taken before", ["#12"]),
        ]
        await on.press("0")
        assert gold(office) == [(2, 2), (10, 10)]
        assert "to confirm" not in on.lines[0]


async def test_sides_beyond_nine_are_numbered_and_taken_with_enter(tmp_path: Path) -> None:
    office = Office(tmp_path / "set")
    for number in range(1, 12):
        mark(office, f"p{number:02}", number)
    trace = office.trace("one")
    suggest(office.workspace, trace, [finding(trace, CODE, 10, 10)])
    async with adjudicating(office, "p01") as on:
        sides = adjudicate(on).evidence.sides_panel
        assert [side.number for side in sides.sides] == list(range(1, 12))
        assert "Enter takes it" in next(line for line in on.lines if "p10" in line)
        marks = adjudicate(on).evidence.timeline.marks
        assert [mark.code for mark in marks.marks_on(9)] == ["10"]
        await on.press("tab", *["j"] * 9, "enter")
        assert gold(office, "p01") == [(10, 10)]
        assert "as p10" in last_message(on)
        await on.press("J")
        assert [mark.code for mark in adjudicate(on).evidence.timeline.marks.marks_on(9)] == [
            "10",
            "judge",
        ]
