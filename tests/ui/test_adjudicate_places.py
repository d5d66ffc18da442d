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
from tests.ui.stage import MAST, SLUGS, Stage, finding, missing, suggest
from tests.ui.team_dir import TeamDir, adjudicate, adjudicating, last_message

CODE = "2.6"


def mark(team: TeamDir, annotator: str, *spans: int, name: str = "one", code: str = CODE) -> None:
    """Label spans (from 1) with one mode as an annotator, and finish."""
    trace = team.trace(name)
    with team.store() as store:
        session = Session.open(store, trace, MAST, annotator, blind=False)
        for number in spans:
            key = trace.span(number - 1).key
            target = Target(key, key)
            session.toggle_label(SLUGS[code], target, suggestions_on_screen=False)
        session.finish(open_modes="absent")


@pytest.fixture
def team(team: TeamDir) -> TeamDir:
    """alice and bob agree on 2.6 and on #2; alice marks #10 and #12 too, bob #7."""
    mark(team, "alice", 2, 10, 12)
    mark(team, "bob", 2, 7)
    return team


def cursor_row(on: Stage) -> tuple[str, str]:
    row = adjudicate(on).queue.row
    assert row is not None
    return str(row.state), row.summary


def shown_sides(on: Stage) -> list[tuple[int | None, str, list[str]]]:
    sides = adjudicate(on).evidence.sides_panel.sides
    return [(side.number, side.name, [p.words for p in side.places]) for side in sides]


def gold(team: TeamDir, annotator: str = "alice", *, code: str = CODE) -> list[tuple[int, int]]:
    """Return the first and last spans (from 1) of a mode in the gold."""
    trace = team.trace("one")
    with team.store() as store:
        trace_id = team.trace_id(store, "one")
        work = Adjudication(store, MAST, trace_id, annotator, order=trace.index_of)
        targets = [label.target for label in work.gold.labels if label.mode == SLUGS[code]]
    ends = [(trace.index_of(t.first or ""), trace.index_of(t.last or "")) for t in targets]
    return [(first + 1, last + 1) for first, last in ends if first is not None and last is not None]


def reasons(team: TeamDir) -> list[str]:
    with team.store() as store:
        decisions = store.decisions(team.trace_id(store, "one"), MAST.ref)
    return [decision.reason for decision in decisions]


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_the_row_shows_the_places_of_each_side(team: TeamDir, size: tuple[int, int]) -> None:
    async with adjudicating(team, size=size) as on:
        assert "1 left in 1 trace" in on.lines[0]
        assert cursor_row(on) == ("open", "at #10, #12 / #7")
        sides = adjudicate(on).evidence.sides_panel
        assert shown_sides(on) == [
            (1, "alice", ["#10", "#12"]),
            (2, "bob", ["#7"]),
            (None, "gold so far", ["#2"]),
        ]
        assert "where is it?" in str(sides.border_title)
        text = on.text
        assert not missing(text, "gold so far  #2", "1 alice  #10", "2 bob  #7")
        marks = adjudicate(on).evidence.timeline.marks
        assert [[m.code for m in marks.marks_on(index)] for index in (6, 9, 11, 1)] == [
            ["2"], ["1"], ["1"], [],
        ]  # fmt: skip


async def test_one_key_decides_all_places(team: TeamDir) -> None:
    cases = (
        ("1", [(2, 2), (10, 10), (12, 12)], "at #10, #12, as alice"),
        ("2", [(2, 2), (7, 7)], "at #7, as bob"),
        ("b", [(2, 2), (7, 7), (10, 10), (12, 12)], "at #7, #10, #12, as alice and bob"),
        ("0", [(2, 2)], "present, 3 places dropped"),
    )
    async with adjudicating(team) as on:
        for key, expected, summary in cases:
            await on.press(key)
            assert gold(team) == expected
            assert summary in last_message(on)
            assert "1 of 1 decided" in on.lines[0]
            assert cursor_row(on) == ("decided", summary)
            await on.press("u")
            assert (gold(team), cursor_row(on)) == ([(2, 2)], ("open", "at #10, #12 / #7"))
            await on.press("U")
            assert gold(team) == expected
            await on.press("u")


async def test_places_are_numbers_and_joined_before_the_trace_is_shown(team: TeamDir) -> None:
    mark(team, "alice", 5, code="1.5")
    mark(team, "bob", 5, 8, code="1.5")
    async with adjudicating(team) as on:
        assert cursor_row(on) == ("open", "only bob: #8")
        adjudicate(on).evidence.trace = None  # as while the trace is read
        await on.press("2")
        assert "1.5 Unaware of termination conditions: place taken at #8, as bob" in last_message(
            on
        )
        assert "1 left" in last_message(on)


async def test_single_places_are_dropped_changed_and_added(team: TeamDir) -> None:
    async with adjudicating(team) as on:
        await on.press("tab")
        assert "0 drops it alone" in last_message(on)
        await on.press("j", "0")
        assert cursor_row(on) == ("open", "at #10 / #7")
        assert "its other places are open" in last_message(on)
        assert shown_sides(on)[2:] == [(None, "gold so far", ["#2"]), (None, "dropped", ["#12"])]
        assert adjudicate(on).focused is adjudicate(on).evidence.sides_panel
        await on.press("e", "k", "enter")
        assert cursor_row(on) == ("open", "only bob: #7")
        assert adjudicate(on).focused is adjudicate(on).evidence.sides_panel
        await on.press("b")
        assert (gold(team), cursor_row(on)[0]) == ([(2, 2), (7, 7), (9, 10)], "decided")
        await on.press("u", "u", "u")
        assert (cursor_row(on), gold(team)) == (("open", "at #10, #12 / #7"), [(2, 2)])
        await on.press("1")
        assert cursor_row(on) == ("decided", "at #10, #12, as alice")
        assert "✓ taken" in next(line for line in on.lines if "1 alice" in line)
        await on.press("2")
        assert (cursor_row(on), gold(team)) == (("decided", "at #7, as bob"), [(2, 2), (7, 7)])
        await on.press("u")
        adjudicate(on).action_undo()
        adjudicate(on).row_moved()  # asks for the panes of the decided row, which come too late
        await on.press("e", "j", "enter")
        assert gold(team) == [(2, 2), (7, 8)]
        assert "nothing left" in on.lines[0]


async def test_resolved_places_are_shown_and_not_decided(team: TeamDir) -> None:
    async with adjudicating(team) as on:
        await on.press("tab", "j", "j", "j")
        assert adjudicate(on).evidence.timeline.index == 1
        for key in ("0", "e", "l"):
            await on.press(key)
            assert "not disputed" in last_message(on)
            assert isinstance(on.app.screen, AdjudicateScreen)
        assert (gold(team), cursor_row(on)[0]) == ([(2, 2)], "open")


async def test_another_mode_replaces_all_places_or_one(team: TeamDir) -> None:
    async with adjudicating(team) as on:
        await on.press("tab", "j", "l", *"1.5", "enter")
        assert (gold(team, code="1.5"), cursor_row(on)[0]) == ([(12, 12)], "open")
        await on.press("u")
        assert gold(team, code="1.5") == []
        await on.press("escape", "l", *"1.5", "enter")
        assert gold(team, code="1.5") == [(7, 7), (10, 10), (12, 12)]
        assert gold(team) == [(2, 2)]


async def test_guideline_page_and_reason_are_of_all_places(team: TeamDir) -> None:
    async with adjudicating(team) as on:
        await on.press("1", "p")
        assert isinstance(on.app.screen, GuidelinesScreen)
        assert "Decided cases: 1" in on.text
        assert "one.json: 2 of 3 places taken at #10, #12" in on.text
        await on.press("tab", "enter")
        assert cursor_row(on)[0] == "decided"
        await on.press("m")
        assert isinstance(on.app.screen, NoteScreen)
        await on.press(*"so", "enter")
        assert reasons(team) == ["so", "so", "so"]
        assert on.text.count("so") < 10
        await on.press("m", *"!", "enter")
        assert reasons(team) == ["so!", "so!", "so!"]


async def test_reopened_places_are_not_resolved(team: TeamDir) -> None:
    async with adjudicating(team) as on:
        await on.press("1")
    mark(team, "alice", 12)  # a second time: it is hers no more
    mark(team, "bob", 5)
    async with adjudicating(team) as on:
        assert cursor_row(on)[0] == "open"
        assert shown_sides(on) == [
            (1, "alice", []),
            (2, "bob", ["#5"]),
            (None, "gold so far", ["#2", "#10"]),
            (None, "dropped", ["#7"]),
            (None, "taken before", ["#12"]),
        ]
        await on.press("0")
        assert gold(team) == [(2, 2), (10, 10)]
        assert "to confirm" not in on.lines[0]


async def test_sides_beyond_nine_are_numbered_and_accepted_with_enter(tmp_path: Path) -> None:
    team = TeamDir(tmp_path / "set")
    for number in range(1, 12):
        mark(team, f"p{number:02}", number)
    trace = team.trace("one")
    suggest(team.workspace, trace, [finding(trace, CODE, 10, 10)])
    async with adjudicating(team, "p01") as on:
        sides = adjudicate(on).evidence.sides_panel
        assert [side.number for side in sides.sides] == list(range(1, 12))
        assert "Enter takes it" in next(line for line in on.lines if "p10" in line)
        marks = adjudicate(on).evidence.timeline.marks
        assert [mark.code for mark in marks.marks_on(9)] == ["10"]
        await on.press("tab", *["j"] * 9, "enter")
        assert gold(team, "p01") == [(10, 10)]
        assert "as p10" in last_message(on)
        await on.press("J")
        assert [mark.code for mark in adjudicate(on).evidence.timeline.marks.marks_on(9)] == [
            "10",
            "judge",
        ]
