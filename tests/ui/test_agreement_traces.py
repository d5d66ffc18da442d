"""The traces behind a figure of agreement, and the way from there to the place and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.study.model import Study
from mast_tui.ui.adjudicate.screen import AdjudicateScreen
from mast_tui.ui.annotate.screen import AnnotateScreen
from mast_tui.ui.reports.agreement import AgreementScreen
from mast_tui.ui.reports.agreement_traces import AgreementTracesScreen
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import StudySet
from tests.ui.office import Office
from tests.ui.stage import MAST, Stage, finding, suggest
from tests.ui.test_agreement_screen import agreeing


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """Both call 1.3 present in ``both``, bob alone in ``bobs``, nobody in ``none``."""
    office = Office(tmp_path / "set")
    for name, alice, bob in (("none", 0, 0), ("both", 1, 1), ("bobs", 0, 1)):
        office.label("alice", name, {"1.3": (3, 8)} if alice else {})
        office.label("bob", name, {"1.3": (5, 8)} if bob else {})
    return office


def traces(on: Stage) -> AgreementTracesScreen:
    assert isinstance(on.app.screen, AgreementTracesScreen)
    return on.app.screen


def listed(on: Stage) -> list[str]:
    """The traces as they are listed, by the names of their files."""
    return [str(row.cells["trace"]).removesuffix(".json") for row in traces(on).main_list.rows]


async def test_disagreements_come_first_and_each_opens_where_it_fits(office: Office) -> None:
    async with agreeing(office) as on:
        await on.press("j", "j", "enter")
        assert listed(on) == ["bobs", "both", "none"]
        assert "1 where the sides differ" in on.lines[0]
        assert traces(on).detail.text.splitlines()[:2] == ["alice: absent", "bob: present"]

        await on.press("enter")
        opened = on.app.screen
        assert isinstance(opened, AdjudicateScreen)
        assert opened.queue.row is not None
        assert opened.queue.name_of(opened.queue.row.trace_id) == "bobs.json"
        await on.press("escape", "j", "enter")
        # What was agreed on is listed there, with the cursor on it.
        opened = on.app.screen
        assert isinstance(opened, AdjudicateScreen)
        assert opened.queue.row is not None
        assert opened.queue.name_of(opened.queue.row.trace_id) == "both.json"
        await on.press("escape", "j", "enter")
        assert isinstance(on.app.screen, AnnotateScreen)

        await on.press("escape")
        assert traces(on).main_list.row == traces(on).main_list.rows[2]
        await on.press("escape")
        assert isinstance(on.app.screen, AgreementScreen)
        assert on.app.screen.main_list.row == on.app.screen.main_list.rows[2]


async def test_only_what_differs_is_listed_on_request(office: Office) -> None:
    async with agreeing(office) as on:
        await on.press("j", "j", "enter", "v")
        assert listed(on) == ["bobs"]
        await on.press("v")
        assert len(listed(on)) == 3
        await on.press("escape", "g", "enter", "v")
        assert "differ in none" in traces(on).hints.message


async def test_totals_and_places_have_traces_behind_them_too(office: Office) -> None:
    async with agreeing(office) as on:
        await on.press(*(["j"] * (len(MAST.modes) + 1)), "enter")
        assert len(listed(on)) == 3 * len(MAST.modes)
        assert traces(on).main_list.rows[0].cells["code"] == "1.3"
        await on.press("escape", "4")
        await on.press("g", "j", "j", "enter")
        assert listed(on) == ["both", "bobs"]
        assert traces(on).detail.text.splitlines()[:2] == ["alice: #3–8", "bob: #5–8"]


async def test_whose_adjudication_it_is_not_opens_the_trace_at_the_label(office: Office) -> None:
    store = Workspace.open(office.workspace)
    study = Study(MAST.ref, ("alice", "bob"), ("carol",), (("one",),))
    store.append([NewEvent("alice", None, MAST.ref, None, StudySet(None, study))])
    store.close()
    async with agreeing(office) as on:
        await on.press("j", "j", "enter")
        await on.press("enter")
        assert isinstance(on.app.screen, AnnotateScreen)
        assert on.number == 5


async def test_errors_of_a_judge_come_first_and_open_at_its_suggestion(office: Office) -> None:
    for name, spans in (("none", (9, 9)), ("both", (3, 8)), ("bobs", (3, 3))):
        trace = office.trace(name)
        suggest(office.workspace, trace, [finding(trace, "1.3", *spans)])
    async with agreeing(office) as on:
        await on.press("5")
        await on.press("c")
        await on.press("j", "j", "enter")
        assert {row.cells["note"] for row in traces(on).main_list.rows} == {"false alarm", ""}
        assert listed(on)[-1] == "both"
        await on.press("v")
        await on.press(*(["j"] * listed(on).index("none")), "enter")
        assert isinstance(on.app.screen, AnnotateScreen)
        assert on.number == 9
        await on.press("escape", "escape")
        assert isinstance(on.app.screen, AgreementScreen)
        assert "against alice" in on.lines[0]


async def test_what_is_settled_meanwhile_is_counted_on_coming_back(office: Office) -> None:
    for name in ("none", "both", "bobs"):
        suggest(office.workspace, office.trace(name), [])
    async with agreeing(office) as on:
        await on.press("5")
        await on.press("j", "j")
        assert isinstance(on.app.screen, AgreementScreen)
        row = on.app.screen.main_list.row
        assert row is not None
        assert row.cells["n"] == 2
        await on.press("a")
        await on.press("2")
        await on.press("escape")
        row = on.app.screen.main_list.row
        assert row is not None
        assert (row.cells["name"], row.cells["n"]) == ("Step repetition", 3)
