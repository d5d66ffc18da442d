"""What a study changes on the adjudicate screen, and what can be done after a decision."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mast_tui.adjudication import Adjudication, GuidelineBook
from mast_tui.adjudication.conflicts import take_side
from mast_tui.labels import VerdictValue
from mast_tui.study.model import Study
from mast_tui.ui.adjudicate.screen import AdjudicateScreen
from mast_tui.ui.annotate.screen import AnnotateScreen
from mast_tui.ui.dialogs.dialog import NoteScreen
from mast_tui.ui.study.guidelines import GuidelinesScreen
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import Decided, StudySet
from tests import waiting
from tests.ui.office import Office, said
from tests.ui.stage import CODES, MAST, SLUGS, Stage, finding, stage, suggest

PRESENT, ABSENT = VerdictValue.PRESENT, VerdictValue.ABSENT


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """alice and bob differ on 1.3 and 3.1 of one trace, and on 1.4 of another."""
    office = Office(tmp_path / "set")
    office.label("alice", "one", {"1.3": (3, 8)}, note="the same call thrice")
    office.label("bob", "one", {"3.1": "Done: the checkout"})
    office.label("alice", "two", {"1.4": (1, 1)})
    office.label("bob", "two", {})
    return office


def set_up(office: Office, **fields: float) -> None:
    """A study of alice and bob over both traces, with carol as adjudicator."""
    store = Workspace.open(office.workspace)
    traces = tuple(record.trace_id for record in store.traces())
    given = {"names_hidden": False, **fields}
    study = Study(MAST.ref, ("alice", "bob"), ("carol",), (traces,), **given)  # type: ignore[arg-type]
    store.append([NewEvent("alice", None, MAST.ref, None, StudySet(None, study))])
    store.close()


@asynccontextmanager
async def adjudicating(
    office: Office, who: str = "carol", *, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[Stage]:
    """The adjudicate screen, quiet after its start."""
    async with stage(office.folder, workspace=office.workspace, annotator=who, size=size) as on:
        await on.press("A")
        yield on


def screen(on: Stage) -> AdjudicateScreen:
    return next(s for s in on.app.screen_stack if isinstance(s, AdjudicateScreen))


def here(on: Stage) -> str:
    """Code and state of the row under the cursor."""
    row = screen(on).queue.row
    return "" if row is None else f"{row.code} {row.state}".strip()


async def test_a_conflict_is_one_key_and_moving_on_is_none(office: Office) -> None:
    """From the open screen to gold, for an adjudicator of the study: a key per conflict."""
    set_up(office)
    async with adjudicating(office) as on:
        assert "0 of 3 decided" in on.lines[0]
        conflicts = sum(items.open_count() for items in screen(on).queue.items.values())
        keys = 0
        while "nothing left" not in on.lines[0]:
            await on.press("1")
            keys += 1
            assert keys <= conflicts
        assert keys == conflicts == 3
        assert "3 of 3 decided" in on.lines[0]
    store = Workspace.open(office.workspace)
    made = [e.fact for e in store.events(annotator="carol") if isinstance(e.fact, Decided)]
    store.close()
    assert len(made) == 3


async def test_the_trace_with_most_disagreement_comes_first_and_stays_there(
    office: Office,
) -> None:
    office.label("alice", "a_calm_one", {"1.4": (1, 1)})
    office.label("bob", "a_calm_one", {})
    async with adjudicating(office, "alice") as on:
        rows = [row.name for row in screen(on).main_list.rows if row.item is None]
        assert rows[0] == "one.json"
        await on.press("1", "1")
        assert [r.name for r in screen(on).main_list.rows if r.item is None] == rows
    async with adjudicating(office, "alice") as on:
        assert [r.name for r in screen(on).main_list.rows if r.item is None][-1] == "one.json"


async def test_different_places_are_conflicts_where_the_study_says_so(office: Office) -> None:
    office.label("alice", "three", {"1.3": (3, 6)})
    office.label("bob", "three", {"1.3": (5, 8)})
    set_up(office, boundaries=True)
    async with adjudicating(office) as on:
        rows = list(screen(on).main_list.rows)
        screen(on).main_list.move_to(next(i for i, r in enumerate(rows) if "#" in r.summary))
        await on.press()
        assert "at #3 to #6 / #5" in on.text
        await on.press("e", "k", "enter")
        (target,) = office.decisions("three")["1.3@"].targets
        trace = office.trace("three")
        assert [trace.index_of(key or "") for key in (target.first, target.last)] == [2, 6]


class TestNames:
    async def test_nobodys_name_is_on_screen_until_asked_for(self, office: Office) -> None:
        set_up(office, names_hidden=True)
        async with adjudicating(office) as on:
            assert "names hidden" in on.lines[0]
            texts = [on.text]
            for key in ("k", "1", "k", "v", "j", "}"):
                await on.press(key)
                texts.append(on.text)
            for text in texts:
                assert "alice" not in text
                assert "bob" not in text
            assert "1 A" in texts[0]
            await on.press("h")
            assert "alice" in on.text
            await on.press("h")
            assert "alice" not in on.text

    async def test_a_digit_takes_the_side_that_stands_at_it_and_its_real_name_is_stored(
        self, office: Office
    ) -> None:
        set_up(office, names_hidden=True)
        async with adjudicating(office) as on:
            assert here(on) == "1.3 open"
            sides = screen(on).evidence.sides.sides
            marked = next(side for side in sides if side.verdict == "present")
            await on.press(str(marked.number))
            assert f"as {marked.name}" in said(on)
            assert office.decisions("one")["1.3"].sides == ("alice",)

    async def test_without_a_study_names_are_shown_and_can_be_hidden(self, office: Office) -> None:
        async with adjudicating(office, "alice") as on:
            assert "1 alice" in on.text
            await on.press("h")
            assert "bob" not in on.text
            assert "names hidden" in on.lines[0]


class TestReasons:
    async def test_where_a_study_wants_one_it_is_asked_after_the_decision(
        self, office: Office
    ) -> None:
        set_up(office, reasons=True)
        async with adjudicating(office) as on:
            await on.press("1")
            assert isinstance(on.app.screen, NoteScreen)
            assert office.decisions("one")["1.3"].reason == ""
            await on.press(*"so it is", "enter")
            assert office.decisions("one")["1.3"].reason == "so it is"
            assert here(on) == "3.1 open"
            await on.press("0", "escape")
            assert office.decisions("one")["3.1"].reason == ""
            assert here(on) == "1.4 open"
            await on.press("u", "u")
            assert not office.decisions("one")

    async def test_elsewhere_it_is_never_asked_but_can_be_given(self, office: Office) -> None:
        async with adjudicating(office, "alice") as on:
            await on.press("m")
            assert "decide first" in said(on)
            await on.press("1")
            assert isinstance(on.app.screen, AdjudicateScreen)
            await on.press("m", *"late", "enter")
            assert office.decisions("one")["1.3"].reason == "late"
            assert here(on) == "3.1 open"
            await on.press("k")
            assert "late" in on.text
            await on.press("m", *"r", "enter")
            assert office.decisions("one")["1.3"].reason == "later"


class TestJudge:
    async def test_a_study_can_show_it_first_and_that_is_recorded(self, office: Office) -> None:
        trace = office.trace("one")
        suggest(office.workspace, trace, [finding(trace, "1.3", 3, 8, why="thrice")])
        set_up(office, judge_first=True)
        async with adjudicating(office) as on:
            assert "rules@1  suggests it" in on.text
            await on.press("1")
            assert office.decisions("one")["1.3"].judge_seen

    async def test_a_key_goes_back_to_the_last_decision_and_shows_it(self, office: Office) -> None:
        trace = office.trace("one")
        suggest(office.workspace, trace, [finding(trace, "3.1", 3, 8)])
        async with adjudicating(office, "alice") as on:
            await on.press("J")
            assert "after the decision" in said(on)
            await on.press("1")
            assert here(on) == "3.1 open"
            await on.press("J")
            assert here(on) == "1.3 decided"
            assert "rules@1  absent" in on.text
            assert not office.decisions("one")["1.3"].judge_seen
            await on.press("1")
            assert office.decisions("one")["1.3"].judge_seen


class TestAgreed:
    async def test_digits_leave_it_alone_and_x_overrules_it(self, office: Office) -> None:
        office.label("alice", "three", {"1.3": (3, 4)})
        office.label("bob", "three", {"1.3": (3, 4)})
        async with adjudicating(office, "alice") as on:
            await on.press("x")
            assert "v lists" in said(on)
            await on.press("v", "}", "}")
            for _ in waiting.until(lambda: here(on) == "1.3 agreed"):
                await on.press("j")
            await on.press("1", "b", "0")
            assert "x overrules" in said(on)
            assert not office.decisions("three")
            await on.press("x")
            assert office.decisions("three")["1.3"].value is ABSENT
            assert here(on) == "1.4 agreed"
            await on.press("x")
            decided = office.decisions("three")["1.4"]
            assert (decided.value, decided.targets[0].is_whole) == (PRESENT, True)
            await on.press("u", "u")
            assert not office.decisions("three")


class TestChanged:
    async def test_it_shows_what_a_side_said_then_and_can_be_confirmed(
        self, office: Office
    ) -> None:
        async with adjudicating(office, "alice") as on:
            await on.press("1", "c")
            assert "nothing to confirm" in said(on)
        office.label("bob", "one", {"1.3": (3, 4)})
        async with adjudicating(office, "alice") as on:
            assert "1 changed since" in on.lines[0]
            screen(on).main_list.move_to(1)
            await on.press()
            assert here(on) == "1.3 changed"
            assert "! then absent" in on.text
            assert "a side has changed since" in on.text
            before = office.decisions("one")["1.3"]
            await on.press("c")
            after = office.decisions("one")["1.3"]
            assert (after.value, after.targets, after.sides) == (
                before.value,
                before.targets,
                before.sides,
            )
            assert "changed since" not in on.lines[0]
            screen(on).main_list.move_to(1)
            await on.press()
            await on.press("c")
            assert "stays as it is" in said(on)


async def test_all_hidden_traces_can_be_taken_on_at_once(office: Office) -> None:
    async with adjudicating(office, "dan") as on:
        await on.press("enter")
        assert "every one of the 2" in on.text
        await on.press("e")
        assert "0 of 3 decided" in on.lines[0]
        assert office.adjudicates("dan", "one")
        assert office.adjudicates("dan", "two")


async def test_what_comes_back_is_told_like_all_that_is_hidden(office: Office) -> None:
    set_up(office, retests=1.0)
    async with adjudicating(office, "alice") as on:
        assert "hidden" in on.text
        assert "back" not in on.text
        assert "bob has finished this trace" in " ".join(on.text.split())
        await on.press("enter")
        question = " ".join(on.text.split())
        assert "label it again" in question
        assert "repeat" not in question
        assert "every one" not in question


def book(office: Office) -> list[tuple[str, str, bool]]:
    """What is written down: code, text, and whether a trace gave occasion."""
    store = Workspace.open(office.workspace)
    try:
        written = store.guidelines(MAST.ref)
    finally:
        store.close()
    return [(CODES[g.mode], g.text, g.trace_id is not None) for g in written]


def decide(office: Office, name: str, guideline: str) -> None:
    """alice decides the first conflict of a trace for herself, and writes down what was agreed."""
    store = Workspace.open(office.workspace)
    trace_id = office.trace_id(store, name)
    work = Adjudication(store, MAST, trace_id, "alice", order=office.trace(name).index_of)
    conflict = work.gold.conflicts[0]
    work.decide(conflict, take_side(conflict, "alice"))
    book = GuidelineBook(store, MAST, "alice")
    book.write(conflict.mode, guideline, trace_id=trace_id, item=conflict.id)
    store.close()


class TestGuidelines:
    async def test_they_are_written_edited_taken_back_and_undone(self, office: Office) -> None:
        async with adjudicating(office, "alice") as on:
            await on.press("1", "k", "p")
            assert isinstance(on.app.screen, GuidelinesScreen)
            assert "1.3 Step repetition" in on.lines[0]
            assert "one.json: present at #3 to #8" in on.text
            await on.press("m", *"[red]Twice[/red]", "enter")
            assert book(office) == [("1.3", "[red]Twice[/red]", True)]
            assert "• [red]Twice[/red]" in on.text
            await on.press("tab", "e", *" is it", "enter")
            assert book(office) == [("1.3", "[red]Twice[/red] is it", True)]
            await on.press("x")
            assert book(office) == []
            await on.press("u")
            assert book(office) == [("1.3", "[red]Twice[/red] is it", True)]
            await on.press("u", "u", "u")
            assert book(office) == []
            assert "Nothing of yours" in said(on)
            await on.press("U", "U")
            assert [text for _, text, _ in book(office)] == ["[red]Twice[/red] is it"]
            await on.press("}", "m", *"Not here", "enter")
            assert ("1.4", "Not here", False) in book(office)

    async def test_enter_goes_to_the_decided_case(self, office: Office) -> None:
        async with adjudicating(office, "alice") as on:
            await on.press("1", "1", "p", "{")
            assert "1.3 Step repetition" in on.lines[0]
            await on.press("enter")
            assert "Tab finds one" in said(on)
            await on.press("tab", "enter")
            assert isinstance(on.app.screen, AdjudicateScreen)
            assert here(on) == "1.3 decided"

    async def test_beside_the_taxonomy_one_reads_only_what_one_may_know(
        self, office: Office
    ) -> None:
        decide(office, "one", "Twice is enough")
        place = office.folder / "one.json"
        async with stage(place, workspace=office.workspace, annotator="eve") as on:
            on.annotate.modes.go_to(SLUGS["1.3"])
            await on.press("P")
            assert isinstance(on.app.screen, GuidelinesScreen)
            assert "Twice is enough" in on.text
            assert "one.json" not in on.text
            assert "1 more case is in traces that you have not finished" in on.text
            assert "next entry" in on.lines[-1]
            assert "write" not in on.lines[-1]
            assert "take back" not in on.lines[-1]
            await on.press("m")
            assert "write them in adjudication" in said(on)
            await on.press("escape")
            assert isinstance(on.app.screen, AnnotateScreen)
        async with stage(place, workspace=office.workspace, annotator="bob") as on:
            on.annotate.modes.go_to(SLUGS["1.3"])
            await on.press("P")
            assert "one.json: present at #3 to #8" in on.text
            await on.press("tab", "tab", "enter")
            assert isinstance(on.app.screen, AnnotateScreen)
            assert on.app.screen.index == 2
            await on.press("escape")
            assert isinstance(on.app.screen, GuidelinesScreen)


async def test_the_title_says_who_adjudicates_in_the_study(office: Office) -> None:
    set_up(office, blind=False)
    for person, role in (("carol", "adjudicator"), ("alice", "suggestions shown")):
        async with stage(office.folder, workspace=office.workspace, annotator=person) as on:
            for key in ("L", "K", "S"):
                await on.press(key)
                assert f"{person} · {role}" in on.lines[0]
