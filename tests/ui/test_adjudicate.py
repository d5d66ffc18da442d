"""The adjudicate screen: the queue, what each key decides, and what stays hidden."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from mast_tui.adjudication import Adjudication, take_on
from mast_tui.adjudication.conflicts import ABSENT_CHOICE
from mast_tui.columns import fit, text_lengths
from mast_tui.gold import Decision
from mast_tui.labels import VerdictValue
from mast_tui.ui.adjudicate.lists import COLUMNS, QueueRow, RowState
from mast_tui.ui.adjudicate.screen import AdjudicateScreen
from mast_tui.workspace import Workspace
from mast_tui.workspace.presence import Presence
from tests.adjudication.annotated_workspace import decide_verdict
from tests.ui.stage import MAST, SLUGS, finding, missing, stage, suggest
from tests.ui.team_dir import TeamDir, adjudicate, adjudicating, last_message, row_at_cursor

PRESENT = VerdictValue.PRESENT
ABSENT = VerdictValue.ABSENT
UNSURE = VerdictValue.UNSURE


@pytest.fixture
def conflicts(team: TeamDir) -> TeamDir:
    """alice and bob differ on 1.3 and 3.1, and on the place of 2.6; carol has no labels."""
    note = "the same call thrice [red]no[/red] \x1b]0;title\x07"
    team.label("alice", "one", {"1.3": (3, 8), "2.6": (10, 10)}, note=note)
    team.label("bob", "one", {"3.1": "Done: the checkout", "2.6": (2, 2)})
    return team


def places_of(team: TeamDir, name: str, decision: Decision) -> list[tuple[int, int] | str]:
    """Return the places of a decision: first and last span (from 1), or the quote."""
    trace = team.trace(name)
    places: list[tuple[int, int] | str] = []
    for target in decision.targets:
        first = trace.index_of(target.first or "")
        last = trace.index_of(target.last or "")
        assert first is not None
        assert last is not None
        places.append(target.quote or (first + 1, last + 1))
    return places


async def test_cursor_starts_on_the_first_conflict_and_nothing_is_decided(
    conflicts: TeamDir,
) -> None:
    assert conflicts.passes("alice", "one")[-1].revealed_at is None
    async with adjudicating(conflicts) as on:
        assert row_at_cursor(on) == "1.3 open"
        assert not missing(on.text, "3 left in 1 trace", "present / absent")
        assert "1 alice  present  #3 to #8" in on.text
        assert "the same call thrice [red]no[/red] ␛]0;title␇" in on.text
        assert conflicts.passes("alice", "one")[-1].revealed_at is not None
        assert "2 bob  absent" in on.text
        assert adjudicate(on).evidence.timeline.index == 2
        assert adjudicate(on).evidence.timeline.range == (2, 7)
        assert "get_pods" in str(adjudicate(on).evidence.span_view.border_title)
        await on.press("3")
        assert "There is no side 3" in last_message(on)
        await on.press("k", "1")
        assert "Choose a conflict of this trace" in last_message(on)
        await on.press("j")
        assert not conflicts.decisions("one")
        assert row_at_cursor(on) == "1.3 open"
        assert "Conversation reset" not in on.text
        await on.press("v")
        row = next(line for line in on.lines if "Conversation reset" in line)
        assert "absent" in row
        await on.press("v")
        assert "Conversation reset" not in on.text
        assert not conflicts.decisions("one")


async def test_a_digit_decides_a_conflict_and_goes_on(conflicts: TeamDir) -> None:
    async with adjudicating(conflicts) as on:
        await on.press("1")
        assert row_at_cursor(on) == "3.1 open"
        assert "1.3 Step repetition: present at #3 to #8, as alice · 2 left" in last_message(on)
        decided = conflicts.decisions("one")["1.3"]
        assert (decided.value, decided.sides, decided.decided_by) == (PRESENT, ("alice",), "alice")
        assert places_of(conflicts, "one", decided) == [(3, 8)]
        await on.press("2")
        assert places_of(conflicts, "one", conflicts.decisions("one")["3.1"]) == [
            "Done: the checkout"
        ]
        await on.press("u", "u", "0", "_")
        assert [conflicts.decisions("one")[code].value for code in ("1.3", "3.1")] == [
            ABSENT,
            UNSURE,
        ]
        await on.press("u", "u", "1", "2", "_")
        assert "2.6@" not in conflicts.decisions("one")
        assert "cannot be unsure" in last_message(on)
        await on.press("u", "u", "1", "k")
        assert row_at_cursor(on) == "1.3 decided"
        assert "present, as alice" in on.text
        await on.press("2")
        assert "1.3 Step repetition: absent, as bob" in last_message(on)
        assert conflicts.decisions("one")["1.3"].value is ABSENT
        await on.press("u", "u", "1", "0", "1")
        decisions_now = conflicts.decisions("one")
        assert {code: d.value for code, d in decisions_now.items() if "@" not in code} == {
            "1.3": PRESENT,
            "3.1": ABSENT,
        }
        what_next = "Nothing left: V exports the gold · K shows agreement"
        assert last_message(on).startswith(what_next)
        for key in ("]", "0"):  # the cursor is on the row of the trace
            await on.press("g", key)
            assert last_message(on) == what_next
        assert "nothing left" in on.lines[0]


async def test_both_joins_the_places_of_all_who_say_present(team: TeamDir) -> None:
    team.label("alice", "one", {"1.3": (3, 6), "1.4": UNSURE})
    team.label("bob", "one", {"1.3": (5, 8)})
    team.label("carol", "one", {})
    async with adjudicating(team) as on:
        await on.press("b")
        assert "present at #3 to #8, as alice and bob" in last_message(on)
        decided = team.decisions("one")["1.3"]
        assert (decided.value, decided.sides) == (PRESENT, ("alice", "bob"))
        assert (places_of(team, "one", decided), row_at_cursor(on)) == ([(3, 8)], "1.4 open")
        await on.press("b")
        assert "No side says present" in last_message(on)
        assert list(team.decisions("one")) == ["1.3"]


async def test_boundaries_are_edited_and_modes_replaced(conflicts: TeamDir) -> None:
    async with adjudicating(conflicts) as on:
        await on.press("e", "j")
        row = row_at_cursor(on)
        asked = adjudicate(on).hints.message
        marked = adjudicate(on).evidence.marked_range()
        assert "move this end of the range" in asked
        for key in ("1", "2", "b", "0", "_", "l", "x", "c", "m", "J", "u", "}", "]", "L", "Q", "?"):
            await on.send(key)
            assert on.app.screen is adjudicate(on)
            assert (row_at_cursor(on), adjudicate(on).hints.message) == (row, asked), key
            assert adjudicate(on).evidence.marked_range() == marked, key
        await on.press("escape")
        assert adjudicate(on).evidence.marked_range() is None
        assert not conflicts.decisions("one")
        await on.press("e", "j", "j", "v", "j")
        assert adjudicate(on).evidence.marked_range() == (9, 10)
        await on.press("escape")
        assert adjudicate(on).evidence.marked_range() is None
        assert not conflicts.decisions("one")
        await on.press("2")
        assert conflicts.decisions("one")["1.3"].value is ABSENT
        await on.press("u", "e")
        assert adjudicate(on).evidence.marked_range() == (2, 7)
        await on.press("k", "k")
        assert adjudicate(on).evidence.marked_range() == (2, 5)
        await on.press("e", "j")
        assert adjudicate(on).evidence.marked_range() == (3, 5)
        await on.press("enter")
        decided = conflicts.decisions("one")["1.3"]
        assert (decided.value, decided.sides) == (PRESENT, ("alice",))
        assert places_of(conflicts, "one", decided) == [(4, 6)]
        assert row_at_cursor(on) == "3.1 open"
        await on.press("u", "l", *"1.5", "enter")
        decisions_now = conflicts.decisions("one")
        assert decisions_now["1.3"].value is ABSENT
        assert decisions_now["1.5"].value is PRESENT
        assert places_of(conflicts, "one", decisions_now["1.5"]) == [(3, 8)]
        assert row_at_cursor(on) == "3.1 open"


async def test_the_judge_is_hidden_until_the_decision(conflicts: TeamDir) -> None:
    suggest(
        conflicts.workspace,
        conflicts.trace("one"),
        [finding(conflicts.trace("one"), "1.3", 3, 8, why="thrice")],
    )
    async with adjudicating(conflicts) as on:
        assert "rules@1" not in on.text
        await on.press("1")
        assert "rules@1" not in on.text
        await on.press("k")
        assert row_at_cursor(on) == "1.3 decided"
        assert "rules@1" not in on.text
        await on.press("J")
        assert not missing(on.text, "rules@1  suggests it", "thrice")
        await on.press("0")
        decided = conflicts.decisions("one")
        assert decided["1.3"].judge_seen
        await on.press("u", "j", "0")
        assert not conflicts.decisions("one")["3.1"].judge_seen


async def test_labels_are_hidden_until_adjudication_begins(conflicts: TeamDir) -> None:
    async with adjudicating(conflicts, "carol") as on:
        assert "one.json" in on.text
        assert "present" not in on.text
        assert "left in" not in on.text
        assert not missing(on.text, "1 trace hidden", "Enter adjudicate it")
        await on.press("enter")
        assert "You have not labelled this trace" in on.text
        await on.press("n")
        assert not conflicts.passes("carol", "one")
        await on.press("1", "a")
        assert conflicts.adjudicates("carol", "one")
        assert "3 left in 1 trace" in on.text
        await on.press("1")  # the cursor stands on its first conflict
        assert conflicts.decisions("one")["1.3"].decided_by == "carol"


async def test_a_trace_with_an_open_pass_stays_hidden(conflicts: TeamDir) -> None:
    conflicts.label("carol", "one", {"1.1": (1, 1)}, finish=False)
    async with adjudicating(conflicts, "carol") as on:
        assert "finish it first" in on.text
        await on.press("enter")
        assert "finish it" in last_message(on)
        assert not conflicts.adjudicates("carol", "one")
        assert "present" not in on.text


async def test_a_trace_without_file_is_adjudicated(conflicts: TeamDir) -> None:
    conflicts.file("other")
    (conflicts.folder / "one.json").unlink()
    async with adjudicating(conflicts) as on:
        assert row_at_cursor(on) == "1.3 open"
        assert not missing(on.text, "1 alice  present", "not on this machine")
        await on.press("e")
        assert "file" in last_message(on)
        await on.press("1")
        assert row_at_cursor(on) == "3.1 open"


async def test_labels_without_known_order_are_counted(team: TeamDir) -> None:
    team.label("alice", "one", {"1.3": (3, 5)})
    team.label("bob", "one", {"1.3": (4, 6)})
    team.label("alice", "two", {"1.3": (2, 2)})
    async with adjudicating(team) as on:
        assert "unknown" not in on.text
    team.lose_order("one")
    async with adjudicating(team) as on:
        assert "order of 2 labels unknown" in on.text


async def test_a_queue_without_conflicts_says_why(team: TeamDir) -> None:
    team.label("alice", "one", {"1.3": (3, 4)})
    async with adjudicating(team) as on:
        assert not missing(on.text, "two people must have finished", "alice 1")
    team.label("bob", "one", {"1.3": (3, 4)})
    async with adjudicating(team) as on:
        assert "14 verdicts of two or more" in on.text
        await on.press("v")
        assert "Step repetition" in on.text
        await on.press("v", "tab")
        assert "14 verdicts of two or more" in on.text


async def test_braces_go_to_other_traces_and_undo_returns(conflicts: TeamDir) -> None:
    conflicts.label("alice", "two", {"1.4": (1, 1)})
    conflicts.label("bob", "two", {})
    async with adjudicating(conflicts) as on:
        await on.press("}")
        assert row_at_cursor(on) == "1.4 open"
        await on.press(">")
        assert "last trace" in last_message(on)
        await on.press("{")
        assert row_at_cursor(on) == "1.3 open"
        await on.press("[")
        assert row_at_cursor(on) == "1.4 open"
        await on.press("{")
        await on.press("0", "0", "0")
        assert row_at_cursor(on) == "1.4 open"
        await on.press("0", "m", *"so", "enter", "m", "x", "enter", "u")
        assert conflicts.decisions("two")["1.4"].reason == "so"
        await on.press("u")
        assert not conflicts.decisions("two")
        await on.press("u")
        assert row_at_cursor(on) == "2.6 open"


@pytest.mark.parametrize("size", [(80, 24), (60, 15)])
async def test_sides_and_evidence_fit_small_screens(
    conflicts: TeamDir, size: tuple[int, int]
) -> None:
    note = " ".join(f"reason{number}" for number in range(40))
    conflicts.label("aaron", "one", {"1.3": (4, 4)}, note=note)
    async with adjudicating(conflicts, size=size) as on:
        assert not missing(on.text, "1 aaron", "2 alice", "3 bob")
        assert "reason12" not in on.text
        await on.press("tab")
        assert "reason12" in on.text
        await on.press("escape", "1", "1")
        text = on.text
        for part in ("Premature", "1 aaron", "2 alice", "3 bob", "Done: the checkout", "present"):
            assert part in text
        assert all(len(line) <= size[0] for line in on.lines)
        cursor = [line for line in on.lines if line.lstrip("│ ").startswith("▌")]
        assert cursor


async def test_sides_are_chosen_by_clicks(conflicts: TeamDir) -> None:
    async with adjudicating(conflicts) as on:
        await on.pilot.click("HintBar", offset=(2, 0))
        await on.press()
        assert not conflicts.decisions("one")
        assert adjudicate(on).focused is adjudicate(on).evidence.sides_panel
        await on.press("escape")
        await on.press("1")
        await on.pilot.click("#sides", offset=(20, 2))
        await on.press()
        assert set(conflicts.decisions("one")) == {"1.3"}
        assert adjudicate(on).evidence.timeline.index == 11
        await on.pilot.click("#sides", offset=(2, 2))
        await on.press()
        assert conflicts.decisions("one")["3.1"].sides == ("bob",)


async def test_the_queue_of_one_mode(conflicts: TeamDir) -> None:
    async with stage(conflicts.folder, workspace=conflicts.workspace) as on:
        on.app.push_screen(AdjudicateScreen(mode=SLUGS["3.1"]))
        await on.press()
        assert row_at_cursor(on) == "3.1 open"
        assert "Step repetition" not in on.text
        assert f"3.1 {MAST.mode(SLUGS['3.1']).name}" in on.lines[0]
        await on.press("2")
        assert "2 left in other modes: Esc, then A" in last_message(on)
        await on.press("escape")
        assert not isinstance(on.app.screen, AdjudicateScreen)


async def test_decisions_of_others_appear_at_once(conflicts: TeamDir) -> None:
    async with adjudicating(conflicts) as on:
        await on.press("1")
        with closing(Workspace.open(conflicts.workspace)) as store:
            trace_id = conflicts.trace_id(store, "one")
            take_on(store, MAST, "carol", [trace_id])
            work = Adjudication(store, MAST, trace_id, "carol")
            decide_verdict(work, SLUGS["1.3"], ABSENT_CHOICE)
            decide_verdict(work, SLUGS["3.1"], ABSENT_CHOICE)
        await on.until(lambda: "carol" in last_message(on))
        assert last_message(on) == (
            "carol has decided 1.3 Step repetition on one.json: absent, "
            "which replaces your decision · 1 more decision"
        )
        assert row_at_cursor(on) == "3.1 decided"
        await on.until(lambda: "2 of 3 decided" in on.text)


async def test_items_that_others_are_deciding_are_skipped(conflicts: TeamDir) -> None:
    async with adjudicating(conflicts) as on:
        assert on.app.opened is not None
        presence = on.app.opened.workspace._database.presence = Presence()
        (cases,) = adjudicate(on).queue.cases.values()
        first, second, third = (
            row.case_id for row in adjudicate(on).main_list.rows if row.case_id is not None
        )

        def current_item() -> str | None:
            row = adjudicate(on).queue.row
            return None if row is None else row.case_id

        presence.receive(0, json.dumps(["carol", cases.presence_key(second)]))
        await on.press("]")
        assert current_item() == third
        await on.press("[")
        assert current_item() == first
        await on.press("1", "1")  # both that nobody else is at
        assert current_item() == second


def test_names_are_left_out_before_columns_are_cut() -> None:
    texts = {"name": "n" * 10, "summary": "w" * 25, "sides": "ann, bob"}
    row = QueueRow(trace_id="t1", case_id="1.3", state=RowState.OPEN, code="1.3", **texts)
    widths = {54: [2, 3, 10, 25, 8], 53: [2, 3, 10, 25], 44: [2, 3, 10, 25], 43: [2, 3, 10, 24]}
    widths |= {41: [2, 3, 10, 22], 40: [2, 3, 9, 22]}
    for line, expected in widths.items():
        assert list(fit(COLUMNS, [text_lengths(COLUMNS, row)], line).values()) == expected
