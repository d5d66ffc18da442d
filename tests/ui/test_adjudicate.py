"""Adjudication by keys: the queue, what each key decides, and what stays hidden."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import pytest

from mast_tui.adjudication import Adjudication, take_on
from mast_tui.adjudication.conflicts import NOBODY
from mast_tui.gold import Decision
from mast_tui.labels import VerdictValue
from mast_tui.ui.adjudicate.screen import AdjudicateScreen
from mast_tui.workspace import Workspace
from mast_tui.workspace.presence import Presence
from tests import waiting
from tests.adjudication.office import overrule
from tests.ui.office import Office, said
from tests.ui.stage import MAST, SLUGS, Stage, finding, stage, suggest

PRESENT, ABSENT, UNSURE = VerdictValue.PRESENT, VerdictValue.ABSENT, VerdictValue.UNSURE


@pytest.fixture
def two(office: Office) -> Office:
    """alice and bob differ on 1.3 and 3.1, and on where 2.6 shows; carol has said nothing."""
    office.label("alice", "one", {"1.3": (3, 8), "2.6": (10, 10)}, note="the same call thrice")
    office.label("bob", "one", {"3.1": "Done: the checkout", "2.6": (2, 2)})
    return office


@asynccontextmanager
async def adjudicating(
    office: Office, who: str = "alice", *, size: tuple[int, int] = (120, 40), blind: bool = False
) -> AsyncIterator[Stage]:
    """The adjudicate screen, quiet after its start."""
    async with stage(
        office.folder, workspace=office.workspace, annotator=who, size=size, blind=blind
    ) as on:
        await on.press("A")
        assert isinstance(on.app.screen, AdjudicateScreen)
        yield on


def screen(on: Stage) -> AdjudicateScreen:
    assert isinstance(on.app.screen, AdjudicateScreen)
    return on.app.screen


def here(on: Stage) -> str:
    """Code and state of the row under the cursor."""
    row = screen(on).queue.row
    return "" if row is None else f"{row.code} {row.state}".strip()


def place(office: Office, name: str, decision: Decision) -> list[tuple[int, int] | str]:
    """The places of a decision: first and last span (from 1), or the quote."""
    trace = office.trace(name)
    found: list[tuple[int, int] | str] = []
    for target in decision.targets:
        first, last = trace.index_of(target.first or ""), trace.index_of(target.last or "")
        assert first is not None
        assert last is not None
        found.append(target.quote or (first + 1, last + 1))
    return found


async def test_the_cursor_begins_on_the_first_conflict_and_looking_decides_nothing(
    two: Office,
) -> None:
    async with adjudicating(two) as on:
        assert here(on) == "1.3 open"
        assert "3 left in 1 trace" in on.text
        assert "present / absent" in on.text
        assert "1 alice  present  #3 to #8" in on.text
        assert "the same call thrice" in on.text
        assert "2 bob  absent" in on.text
        assert screen(on).evidence.timeline.index == 2
        assert screen(on).evidence.timeline.range == (2, 7)
        assert "get_pods" in str(screen(on).evidence.span_view.border_title)
        await on.press("3")
        assert "There is no side 3" in said(on)
        assert not two.decisions("one")
        assert here(on) == "1.3 open"
        assert "Conversation reset" not in on.text
        await on.press("v")
        row = next(line for line in on.lines if "Conversation reset" in line)
        assert "absent" in row
        await on.press("v")
        assert "Conversation reset" not in on.text
        assert not two.decisions("one")


async def test_a_key_decides_a_conflict_with_its_places_and_goes_on(two: Office) -> None:
    async with adjudicating(two) as on:
        await on.press("1")
        assert here(on) == "3.1 open"
        assert "1.3 Step repetition: present at #3 to #8, as alice · 2 to go" in said(on)
        decided = two.decisions("one")["1.3"]
        assert (decided.value, decided.sides, decided.decided_by) == (PRESENT, ("alice",), "alice")
        assert place(two, "one", decided) == [(3, 8)]
        await on.press("2")
        assert place(two, "one", two.decisions("one")["3.1"]) == ["Done: the checkout"]
        await on.press("u", "u")
        await on.press("0", "_")
        assert [two.decisions("one")[code].value for code in ("1.3", "3.1")] == [ABSENT, UNSURE]
        await on.press("u", "u")
        await on.press("1", "2", "_")
        assert "2.6@" not in two.decisions("one")
        assert "taken or not" in said(on)
        await on.press("u", "u")
        await on.press("1", "k")
        assert here(on) == "1.3 decided"
        assert "present, as alice" in on.text
        await on.press("2")
        assert two.decisions("one")["1.3"].value is ABSENT
        await on.press("u", "u")
        await on.press("1", "0", "1")
        decisions_now = two.decisions("one")
        assert {code: d.value for code, d in decisions_now.items() if "@" not in code} == {
            "1.3": PRESENT,
            "3.1": ABSENT,
        }
        what_next = "Nothing left to decide: V exports the gold · K shows agreement"
        assert said(on).startswith(what_next)
        await on.press("]")
        assert said(on) == what_next
        assert "nothing left" in on.lines[0]


async def test_both_keeps_all_that_was_marked(office: Office) -> None:
    office.label("alice", "one", {"1.3": (3, 6)})
    office.label("bob", "one", {"1.3": (5, 8)})
    office.label("carol", "one", {})
    async with adjudicating(office) as on:
        await on.press("b")
        decided = office.decisions("one")["1.3"]
        assert (decided.value, decided.sides) == (PRESENT, ("alice", "bob"))
        assert place(office, "one", decided) == [(3, 8)]


async def test_both_has_nothing_to_keep_where_nobody_says_present(office: Office) -> None:
    office.label("alice", "one", {"1.3": UNSURE})
    office.label("bob", "one", {})
    async with adjudicating(office) as on:
        await on.press("b")
        assert "No side says present" in said(on)
        assert not office.decisions("one")


async def test_a_boundary_is_moved_begun_anew_or_left_and_a_mode_replaced(two: Office) -> None:
    async with adjudicating(two) as on:
        await on.press("e", "j")
        row, asked = here(on), screen(on).hints.message
        marked = screen(on).evidence.marked_range()
        assert "move its end" in asked
        for key in ("1", "2", "b", "0", "_", "l", "x", "c", "m", "J", "u", "}", "]", "L", "Q", "?"):
            await on.send(key)
            assert on.app.screen is screen(on)
            assert (here(on), screen(on).hints.message) == (row, asked), key
            assert screen(on).evidence.marked_range() == marked, key
        await on.press("escape")
        assert screen(on).evidence.marked_range() is None
        assert not two.decisions("one")
        await on.press("e", "j", "j", "v", "j")
        assert screen(on).evidence.marked_range() == (9, 10)
        await on.press("escape")
        assert screen(on).evidence.marked_range() is None
        assert not two.decisions("one")
        await on.press("2")
        assert two.decisions("one")["1.3"].value is ABSENT
        await on.press("u")
        await on.press("e")
        assert screen(on).evidence.marked_range() == (2, 7)
        await on.press("k", "k")
        assert screen(on).evidence.marked_range() == (2, 5)
        await on.press("e", "j")
        assert screen(on).evidence.marked_range() == (3, 5)
        await on.press("enter")
        decided = two.decisions("one")["1.3"]
        assert (decided.value, decided.sides) == (PRESENT, ("alice",))
        assert place(two, "one", decided) == [(4, 6)]
        assert here(on) == "3.1 open"
        await on.press("u")
        await on.press("l", *"1.5", "enter")
        decisions_now = two.decisions("one")
        assert decisions_now["1.3"].value is ABSENT
        assert decisions_now["1.5"].value is PRESENT
        assert place(two, "one", decisions_now["1.5"]) == [(3, 8)]
        assert here(on) == "3.1 open"


async def test_undo_goes_back_to_the_item_and_redo_decides_it_again(two: Office) -> None:
    async with adjudicating(two) as on:
        await on.press("1", "0")
        await on.press("u")
        assert here(on) == "3.1 open"
        assert set(two.decisions("one")) == {"1.3"}
        await on.press("u")
        assert here(on) == "1.3 open"
        assert not two.decisions("one")
        await on.press("U", "U")
        assert {code: d.value for code, d in two.decisions("one").items()} == {
            "1.3": PRESENT,
            "3.1": ABSENT,
        }


async def test_undo_takes_back_what_was_decided_before_a_restart(two: Office) -> None:
    async with adjudicating(two) as on:
        await on.press("1")
    async with adjudicating(two) as on:
        assert "2 left" in on.lines[0]
        await on.press("u")
        assert here(on) == "1.3 open"
        assert not two.decisions("one")
        await on.press("u")
        assert "Nothing to take back" in said(on)


async def test_the_judge_is_hidden_until_the_item_is_decided(two: Office) -> None:
    suggest(two.workspace, two.trace("one"), [finding(two.trace("one"), "1.3", 3, 8, why="thrice")])
    async with adjudicating(two) as on:
        assert "rules@1" not in on.text
        await on.press("1")
        assert "rules@1" not in on.text
        await on.press("k")
        assert here(on) == "1.3 decided"
        assert "rules@1" not in on.text
        await on.press("J")
        assert "rules@1  suggests it" in on.text
        assert "thrice" in on.text
        await on.press("0")
        decided = two.decisions("one")
        assert decided["1.3"].judge_seen
        await on.press("u", "j")
        await on.press("0")
        assert not two.decisions("one")["3.1"].judge_seen


async def test_what_others_said_stays_hidden_until_one_takes_the_trace_on(two: Office) -> None:
    async with adjudicating(two, "carol") as on:
        assert "one.json" in on.text
        assert "present" not in on.text
        assert "left in" not in on.text
        await on.press("enter")
        assert "You have not labelled this trace" in on.text
        await on.press("n")
        assert not two.passes("carol", "one")
        await on.press("1")
        await on.press("a")
        assert two.adjudicates("carol", "one")
        assert "3 left in 1 trace" in on.text
        await on.press("1")  # the cursor stands on its first conflict
        assert two.decisions("one")["1.3"].decided_by == "carol"


async def test_a_trace_that_one_has_begun_is_never_shown(two: Office) -> None:
    two.label("carol", "one", {"1.1": (1, 1)}, finish=False)
    async with adjudicating(two, "carol") as on:
        assert "finish it first" in on.text
        await on.press("enter", "a")
        assert "finish it" in said(on)
        assert not two.adjudicates("carol", "one")
        assert "present" not in on.text


async def test_looking_records_that_others_were_shown(two: Office) -> None:
    assert two.passes("alice", "one")[-1].revealed_at is None
    async with adjudicating(two):
        assert two.passes("alice", "one")[-1].revealed_at is not None


async def test_a_trace_whose_file_is_gone_is_adjudicated_from_its_sides(two: Office) -> None:
    two.file("other")
    (two.folder / "one.json").unlink()
    async with adjudicating(two) as on:
        assert here(on) == "1.3 open"
        assert "1 alice  present" in on.text
        assert "not on this machine" in on.text
        await on.press("e")
        assert "file" in said(on)
        await on.press("1")
        assert here(on) == "3.1 open"


async def test_it_says_of_how_many_labels_the_order_is_unknown(office: Office) -> None:
    office.label("alice", "one", {"1.3": (3, 5)})
    office.label("bob", "one", {"1.3": (4, 6)})
    office.label("alice", "two", {"1.3": (2, 2)})
    async with adjudicating(office) as on:
        assert "unknown" not in on.text
    office.lose_order("one")
    async with adjudicating(office) as on:
        assert "Differences; order of 2 labels unknown" in on.text


async def test_an_empty_queue_says_what_it_needs(office: Office) -> None:
    office.label("alice", "one", {})
    async with adjudicating(office) as on:
        assert "two people must have finished" in on.text
        assert "alice 1" in on.text


async def test_full_agreement_is_told_and_can_be_looked_through(office: Office) -> None:
    for who in ("alice", "bob"):
        office.label(who, "one", {"1.3": (3, 4)})
    async with adjudicating(office) as on:
        assert "they agree" in on.text
        await on.press("v")
        assert "Step repetition" in on.text
        await on.press("v")
        assert "they agree" in on.text


async def test_braces_walk_the_traces_and_undo_returns_to_the_last(
    two: Office,
) -> None:
    two.label("alice", "two", {"1.4": (1, 1)})
    two.label("bob", "two", {})
    async with adjudicating(two) as on:
        await on.press("}")
        assert here(on) == "1.4 open"
        await on.press(">")
        assert "last trace" in said(on)
        await on.press("{")
        assert here(on) == "1.3 open"
        await on.press("[")
        assert here(on) == "1.4 open"
        await on.press("{")
        await on.press("0", "0", "0")
        assert here(on) == "1.4 open"
        await on.press("u")
        assert here(on) == "2.6 open"


async def test_foreign_text_is_shown_as_it_is(office: Office) -> None:
    office.label("alice", "one", {"1.3": (3, 8)}, note="[red]no[/red] \x1b]0;title\x07")
    office.label("bob", "one", {})
    async with adjudicating(office) as on:
        assert "[red]no[/red] ␛]0;title␇" in on.text


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (60, 15)])
async def test_conflict_sides_evidence_and_keys_are_on_screen(
    two: Office, size: tuple[int, int]
) -> None:
    async with adjudicating(two, size=size) as on:
        await on.press("1")
        text = on.text
        for words in ("Premature", "1 alice", "2 bob", "Done: the checkout", "present"):
            assert words in text
        assert all(len(line) <= size[0] for line in on.lines)
        cursor = [line for line in on.lines if line.lstrip("│ ").startswith("▌")]
        assert cursor


async def test_clicks_on_sides_and_on_the_hint_for_them(two: Office) -> None:
    async with adjudicating(two) as on:
        await on.pilot.click("HintBar", offset=(2, 0))
        await on.press()
        assert not two.decisions("one")
        assert screen(on).focused is screen(on).evidence.sides
        await on.press("escape")
        await on.press("1")
        await on.pilot.click("#sides", offset=(20, 2))
        await on.press()
        assert set(two.decisions("one")) == {"1.3"}
        assert screen(on).evidence.timeline.index == 11
        await on.pilot.click("#sides", offset=(2, 2))
        await on.press()
        assert two.decisions("one")["3.1"].sides == ("bob",)


async def test_only_one_mode_is_listed_where_one_was_asked_for(two: Office) -> None:
    async with stage(two.folder, workspace=two.workspace) as on:
        on.app.push_screen(AdjudicateScreen(mode=SLUGS["3.1"]))
        await on.press()
        assert here(on) == "3.1 open"
        assert "Step repetition" not in on.text
        assert f"3.1 {MAST.mode(SLUGS['3.1']).name}" in on.lines[0]
        await on.press("2", "escape")
        assert not isinstance(on.app.screen, AdjudicateScreen)


async def test_what_somebody_else_decides_meanwhile_is_listed_and_said(two: Office) -> None:
    async with adjudicating(two) as on:
        await on.press("1")
        with closing(Workspace.open(two.workspace)) as store:
            trace_id = two.trace_id(store, "one")
            take_on(store, MAST, "carol", [trace_id])
            work = Adjudication(store, MAST, trace_id, "carol")
            overrule(work, SLUGS["1.3"], NOBODY)
            overrule(work, SLUGS["3.1"], NOBODY)
        for _ in waiting.until(lambda: "carol" in said(on)):
            await on.pilot.pause()
        assert said(on) == (
            "carol has decided 1.3 Step repetition on one.json: absent, otherwise than you, "
            "and that counts · 1 more"
        )
        assert here(on) == "3.1 decided"
        assert "2 of 3 decided" in on.text


async def test_what_somebody_else_is_deciding_is_passed_over_while_there_is_another(
    two: Office,
) -> None:
    async with adjudicating(two) as on:
        assert on.app.opened is not None
        presence = on.app.opened.workspace._database.presence = Presence()
        (items,) = screen(on).queue.items.values()
        first, second, third = (
            row.item for row in screen(on).main_list.rows if row.item is not None
        )

        def here_now() -> str | None:
            row = screen(on).queue.row
            return None if row is None else row.item

        for program, item in enumerate((second,)):
            presence.hear(program, json.dumps(["carol", items.presence_key(item)]))
        await on.press("]")
        assert here_now() == third
        await on.press("[")
        assert here_now() == first
        await on.press("1", "1")  # both that nobody else is at
        assert here_now() == second
