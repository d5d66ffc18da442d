"""Adjudication under a study: hidden names, reasons, the judge, changes, and guidelines."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.adjudication import Adjudication, GuidelineBook
from mast_tui.adjudication.conflicts import choice_of_side
from mast_tui.labels import VerdictValue
from mast_tui.session import Session
from mast_tui.ui.adjudicate.screen import AdjudicateScreen
from mast_tui.ui.annotate.screen import AnnotateScreen
from mast_tui.ui.dialogs.dialog import NoteScreen
from mast_tui.ui.study.guidelines import GuidelinesScreen
from tests import waiting
from tests.ui.stage import CODES, MAST, SLUGS, finding, missing, stage, suggest
from tests.ui.team_dir import TeamDir, adjudicate, adjudicating, last_message, row_at_cursor

PRESENT = VerdictValue.PRESENT
ABSENT = VerdictValue.ABSENT


@pytest.fixture
def team(team: TeamDir) -> TeamDir:
    """alice and bob differ on 1.3 and 3.1 of one trace, and on 1.4 of another."""
    team.label("alice", "one", {"1.3": (3, 8)}, note="the same call thrice")
    team.label("bob", "one", {"3.1": "Done: the checkout"})
    team.label("alice", "two", {"1.4": (1, 1)})
    team.label("bob", "two", {})
    return team


async def test_a_study_can_show_the_judge_before_the_decision(team: TeamDir) -> None:
    suggest(team.workspace, team.trace("one"), [finding(team.trace("one"), "1.3", 3, 8)])
    team.set_study(names_hidden=False, judge_first=True)
    async with adjudicating(team, "carol") as on:
        assert "rules@1  suggests it" in on.text
        await on.press("1")
        assert team.decisions("one")["1.3"].judge_seen


async def test_traces_are_ordered_by_disagreement_on_opening(team: TeamDir) -> None:
    team.label("alice", "a_calm_one", {"1.4": (1, 1)})
    team.label("bob", "a_calm_one", {})
    async with adjudicating(team) as on:
        rows = [row.name for row in adjudicate(on).main_list.rows if row.case_id is None]
        assert rows[0] == "one.json"
        await on.press("1", "1")
        assert [r.name for r in adjudicate(on).main_list.rows if r.case_id is None] == rows
    async with adjudicating(team) as on:
        assert [r.name for r in adjudicate(on).main_list.rows if not r.code][-1] == "one.json"


async def test_a_study_can_make_boundaries_conflicts(team: TeamDir) -> None:
    team.label("alice", "three", {"1.3": (3, 6)})
    team.label("bob", "three", {"1.3": (5, 8)})
    team.set_study(names_hidden=False, boundaries=True)
    async with adjudicating(team, "carol") as on:
        rows = list(adjudicate(on).main_list.rows)
        adjudicate(on).main_list.move_to(next(i for i, r in enumerate(rows) if "#" in r.summary))
        await on.press()
        assert "at #3 to #6 / #5" in on.text
        assert "≈ 1.3" in on.text
        await on.press("e", "k", "enter")
        (target,) = team.decisions("three")["1.3@"].targets
        trace = team.trace("three")
        assert [trace.index_of(key or "") for key in (target.first, target.last)] == [2, 6]


async def test_a_moved_end_is_described_in_words(tmp_path: Path) -> None:
    team = TeamDir(tmp_path / "set")
    team.label("al at work", "one", {"1.3": (3, 6), "1.4": (5, 8)})
    team.label("bob", "one", {"1.3": (3, 8), "1.4": (6, 8)})
    people = ("al at work", "bob")
    team.set_study(names_hidden=False, boundaries=True, annotators=people)
    async with adjudicating(team, "carol") as on:
        assert "where does it end?" in on.text
        summaries = [row.summary for row in adjudicate(on).main_list.rows if row.case_id]
        assert summaries == [
            "al at work ends at #6, bob at #8",
            "al at work begins at #5, bob at #6",
        ]


async def test_notes_on_disputed_spans_are_beside_the_side(tmp_path: Path) -> None:
    team = TeamDir(tmp_path / "set")
    team.label("alice", "one", {"1.3": (3, 6)})
    team.label("bob", "one", {"1.3": ABSENT}, finish=False)
    trace = team.trace("one")
    with team.store() as store:
        session = Session.open(store, trace, MAST, "bob", blind=False)
        session.note_span(trace.span(4).key, "it is another call")
        session.note_span(trace.span(9).key, "elsewhere")
        session.finish(open_modes="absent")
    team.set_study(names_hidden=False)
    async with adjudicating(team, "carol") as on:
        assert "#5: it is another call" in on.text
        assert "elsewhere" not in on.text


async def test_hidden_names_are_shown_on_request_and_stored(team: TeamDir) -> None:
    team.set_study(names_hidden=True)
    async with adjudicating(team, "carol") as on:
        assert "names hidden" in on.lines[0]
        assert row_at_cursor(on) == "1.3 open"
        sides = adjudicate(on).evidence.sides_panel.sides
        marked = next(side for side in sides if side.verdict == "present")
        texts = [on.text]
        for key in (str(marked.number), "k", "v", "j", "}", "v", "g"):
            await on.press(key)
            texts.append(on.text)
        for text in texts:
            assert "alice" not in text
            assert "bob" not in text
        assert "1 A" in texts[0]
        assert "names hidden (h shows)" in texts[0]
        assert "Each letter is an annotator" in adjudicate(on).evidence.sides_panel.empty_text
        assert f"as {marked.name}" in texts[1]
        assert team.decisions("one")["1.3"].sides == ("alice",)
        await on.press("h", "j")
        assert "alice" in on.text
        # A key takes the same side while the names are shown.
        cases = adjudicate(on).queue.current_cases
        assert cases is not None
        shown_sides = [side.name for side in adjudicate(on).evidence.sides_panel.sides]
        assert [cases.letters[name] for name in shown_sides] == ["A", "B"]
        await on.press("h")
        assert "alice" not in on.text


async def test_a_study_can_ask_for_reasons(team: TeamDir) -> None:
    team.set_study(names_hidden=False, reasons=True)
    async with adjudicating(team, "carol") as on:
        await on.press("1")
        assert isinstance(on.app.screen, NoteScreen)
        assert team.decisions("one")["1.3"].reason == ""
        await on.press(*"so it is", "enter")
        assert team.decisions("one")["1.3"].reason == "so it is"
        assert row_at_cursor(on) == "3.1 open"
        await on.press("0", "escape")
        assert (team.decisions("one")["3.1"].reason, row_at_cursor(on)) == ("", "1.4 open")
        await on.press("u", "u")
        assert not team.decisions("one")


async def test_without_a_study_names_are_shown_and_reasons_are_optional(team: TeamDir) -> None:
    async with adjudicating(team) as on:
        assert "1 alice" in on.text
        await on.press("h")
        assert "bob" not in on.text
        assert "names hidden" in on.lines[0]
        await on.press("m")
        assert "decide first" in last_message(on)
        await on.press("1")
        assert isinstance(on.app.screen, AdjudicateScreen)
        await on.press("m", *"late", "enter")
        assert team.decisions("one")["1.3"].reason == "late"
        assert row_at_cursor(on) == "3.1 open"
        await on.press("k")
        assert "late" in on.text
        await on.press("m", *"r", "enter")
        assert team.decisions("one")["1.3"].reason == "later"


@pytest.mark.parametrize(
    ("annotator", "opening", "effect", "count"),
    [("alice", [], "Your decisions count", 2), ("dan", ["enter", "e"], "count in no figure", 1)],
)
async def test_others_than_the_adjudicators_are_asked_once(
    team: TeamDir, annotator: str, opening: list[str], effect: str, count: int
) -> None:
    team.set_study()
    async with adjudicating(team, annotator) as on:
        await on.press(*opening, "0", "n")
        assert not team.decisions("one")
        await on.press("0")
        assert not missing(" ".join(on.text.split()), "decisions to carol", effect)
        await on.press("d", "0")
        assert len(team.decisions("one")) == count


async def test_agreed_modes_are_overruled_by_x_alone(team: TeamDir) -> None:
    team.label("alice", "three", {"1.3": (3, 4)})
    team.label("bob", "three", {"1.3": (3, 4)})
    async with adjudicating(team) as on:
        await on.press("x")
        assert "v lists" in last_message(on)
        await on.press("v", "}", "}")
        for _ in waiting.until(lambda: row_at_cursor(on) == "1.3 agreed"):
            await on.press("j")
        await on.press("1", "b", "0")
        assert "x overrules" in last_message(on)
        assert not team.decisions("three")
        await on.press("x")
        assert team.decisions("three")["1.3"].value is ABSENT
        assert row_at_cursor(on) == "1.4 agreed"
        await on.press("x")
        decided = team.decisions("three")["1.4"]
        assert (decided.value, decided.targets[0].is_whole) == (PRESENT, True)
        await on.press("u", "u")
        assert not team.decisions("three")


async def test_a_changed_side_is_shown_and_the_decision_confirmed(team: TeamDir) -> None:
    async with adjudicating(team) as on:
        await on.press("1", "c")
        assert "nothing to confirm" in last_message(on)
    team.label("bob", "one", {"1.3": (3, 4)})
    async with adjudicating(team) as on:
        assert "1 to confirm" in on.lines[0]
        adjudicate(on).main_list.move_to(1)
        await on.press()
        assert row_at_cursor(on) == "1.3 changed"
        assert not missing(on.text, "! before: absent", "still right?", "c confirm")
        previous = team.decisions("one")["1.3"]
        await on.press("c")
        after = team.decisions("one")["1.3"]
        assert (after.value, after.targets, after.sides) == (
            previous.value,
            previous.targets,
            previous.sides,
        )
        assert "to confirm" not in on.lines[0]
        adjudicate(on).main_list.move_to(1)
        await on.press()
        await on.press("c")
        assert "No side has changed its answer" in last_message(on)


async def test_adjudication_of_all_hidden_traces_begins_at_once(team: TeamDir) -> None:
    async with adjudicating(team, "dan") as on:
        await on.press("enter")
        assert "adjudicate all 2" in on.text
        await on.press("e")
        assert "0 of 3 decided" in on.lines[0]
        assert team.adjudicates("dan", "one")
        assert team.adjudicates("dan", "two")


async def test_a_retest_looks_like_any_hidden_trace(team: TeamDir) -> None:
    team.set_study(names_hidden=False, retests=1.0)
    async with adjudicating(team) as on:
        assert "hidden" in on.text
        assert "back" not in on.text.replace("Esc back", "")
        assert "bob has finished this trace" in " ".join(on.text.split())
        await on.press("enter")
        question = " ".join(on.text.split())
        assert "label it again" in question
        assert "second time" not in question
        assert "every one" not in question


def guidelines(team: TeamDir) -> list[tuple[str, str, bool]]:
    """Return the guidelines: code, text, and whether a trace is the occasion."""
    with team.store() as store:
        written = store.guidelines(MAST.ref)
    return [(CODES[g.mode], g.text, g.trace_id is not None) for g in written]


def decide(team: TeamDir, name: str, guideline: str) -> None:
    """Decide the first conflict of a trace for alice, and write a guideline on it."""
    with team.store() as store:
        trace_id = team.trace_id(store, name)
        work = Adjudication(store, MAST, trace_id, "alice", order=team.trace(name).index_of)
        conflict = work.gold.conflicts[0]
        work.decide(conflict, choice_of_side(conflict, "alice"))
        guidelines = GuidelineBook(store, MAST, "alice")
        guidelines.write(conflict.mode, guideline, trace_id=trace_id, item=conflict.id)


async def test_guidelines_are_written_edited_and_undone(team: TeamDir) -> None:
    async with adjudicating(team) as on:
        await on.press("1", "k", "p")
        assert isinstance(on.app.screen, GuidelinesScreen)
        assert "1.3 Step repetition" in on.lines[0]
        assert "one.json: present at #3 to #8" in on.text
        await on.press("m", *"[red]Twice[/red]", "enter")
        assert guidelines(team) == [("1.3", "[red]Twice[/red]", True)]
        assert "• [red]Twice[/red]" in on.text
        await on.press("tab", "e", *" is it", "enter")
        assert guidelines(team) == [("1.3", "[red]Twice[/red] is it", True)]
        await on.press("x")
        assert guidelines(team) == []
        await on.press("u")
        assert guidelines(team) == [("1.3", "[red]Twice[/red] is it", True)]
        await on.press("u", "u", "u")
        assert guidelines(team) == []
        assert "Nothing of yours" in last_message(on)
        await on.press("U", "U")
        assert [text for _, text, _ in guidelines(team)] == ["[red]Twice[/red] is it"]
        await on.press("}", "m", *"Not here", "enter")
        assert ("1.4", "Not here", False) in guidelines(team)


async def test_annotators_read_guidelines_without_hidden_cases(team: TeamDir) -> None:
    decide(team, "one", "Twice is enough")
    path = team.folder / "one.json"
    async with stage(path, workspace=team.workspace, annotator="eve") as on:
        on.annotate.modes.go_to(SLUGS["1.3"])
        await on.press("P")
        assert isinstance(on.app.screen, GuidelinesScreen)
        assert "Twice is enough" in on.text
        assert "one.json" not in on.text
        assert "1 case, shown after you finish its trace" in on.text
        assert "next entry" in on.lines[-1]
        assert "write" not in on.lines[-1]
        assert "remove" not in on.lines[-1]
        await on.press("m")
        assert "write them in adjudication" in last_message(on)
        await on.press("escape")
        assert isinstance(on.app.screen, AnnotateScreen)
    async with stage(path, workspace=team.workspace, annotator="alice") as on:
        await on.press("j", "j", "P")  # the mode of the label there
        assert "one.json: present at #3 to #8" in on.text
        await on.press("tab", "tab", "enter")
        assert isinstance(on.app.screen, AnnotateScreen)
        assert on.app.screen.index == 2
        await on.press("escape")
        assert isinstance(on.app.screen, GuidelinesScreen)


async def test_the_title_shows_the_role_in_the_study(team: TeamDir) -> None:
    team.set_study(names_hidden=False, blind=False)
    for person, in_library, elsewhere in (
        ("carol", "carol · adjudicator", "carol · adjudicator "),
        ("alice", "alice · suggestions shown", " alice "),
    ):
        async with stage(team.folder, workspace=team.workspace, annotator=person) as on:
            for key, role in (("L", in_library), ("K", elsewhere), ("S", elsewhere)):
                await on.press(key)
                assert role in on.lines[0]
