"""The agreement screen: figures over what one may know, in words, and the way to the conflicts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mast_tui.labels import VerdictValue
from mast_tui.ui.screens.adjudicate import AdjudicateScreen
from mast_tui.ui.screens.agreement import AgreementScreen
from tests.ui.office import Office, said
from tests.ui.stage import SLUGS, Stage, stage

UNSURE = VerdictValue.UNSURE


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """A folder of traces and a workspace beside it."""
    return Office(tmp_path / "set")


@pytest.fixture
def two(office: Office) -> Office:
    """alice and bob have finished two traces; they differ on 1.3 in one of them."""
    office.label("alice", "one", {"1.3": (3, 8), "2.6": (9, 9)})
    office.label("bob", "one", {"2.6": (9, 9)})
    office.label("alice", "two", {"1.3": (3, 4)})
    office.label("bob", "two", {"1.3": (3, 4)})
    return office


@asynccontextmanager
async def agreeing(
    office: Office, who: str = "alice", size: tuple[int, int] = (120, 40)
) -> AsyncIterator[Stage]:
    """The agreement screen with its figures."""
    async with stage(office.folder, workspace=office.workspace, annotator=who, size=size) as on:
        await on.press("K")
        yield on


def screen(on: Stage) -> AgreementScreen:
    assert isinstance(on.app.screen, AgreementScreen)
    return on.app.screen


def cells(on: Stage, code: str) -> list[str]:
    """The figures of a row as they are drawn, after the mode's name."""
    table = screen(on).main_list
    place = next(i for i, row in enumerate(table.rows) if row.code == code)
    text = table.render_row(place, table.scrollable_content_region.width).text
    return text.split(table.rows[place].name)[-1].split()


async def test_figures_stand_under_their_titles(two: Office) -> None:
    async with agreeing(two) as on:
        assert "alice and bob" in on.lines[0]
        assert "2 traces finished by all" in on.lines[0]
        titles = on.lines[1].split()
        assert titles == ["mode", "n", "raw", "present", "P+", "P−", "κ", "α", "AC1"]
        figures = dict(zip(titles[1:], cells(on, "1.3"), strict=True))
        assert (figures["n"], figures["raw"], figures["present"]) == ("2", "0.50", "1.00/0.50")
        row = next(line for line in on.lines if "Step repetition" in line)
        for title in ("raw", "P+", "AC1"):
            end = on.lines[1].index(title) + len(title)
            assert row[:end].split()[-1] == figures[title]


async def test_what_is_undefined_is_a_dash_and_the_cursor_tells_why(two: Office) -> None:
    async with agreeing(two) as on:
        assert cells(on, "1.1")[-3:] == ["—", "—", "—"]
        assert "nobody said present" in on.text
        assert "all verdicts are the same" in on.text
        await on.press("j", "j")
        assert "Step repetition" in str(screen(on).detail.border_title)
        assert "alice in 100%, bob in 50%" in on.text


async def test_unfinished_traces_count_for_nothing(two: Office) -> None:
    two.label("alice", "three", {"1.3": (3, 4)}, finish=False)
    two.label("bob", "three", {})
    async with agreeing(two) as on:
        assert cells(on, "1.3")[0] == "2"


async def test_what_only_others_have_finished_is_counted_as_adjudicator_and_recorded(
    two: Office,
) -> None:
    async with agreeing(two, "carol") as on:
        assert "2 traces left out" in on.text
        assert "Step repetition" not in on.text
        await on.press("o")
        assert "no longer label them" in on.text.replace("\n", " ") or "longer label" in on.text
        await on.press("n")
        assert not two.passes("carol", "one")
        assert "Step repetition" not in on.text
        await on.press("o", "a")
        assert two.adjudicates("carol", "one")
        assert two.adjudicates("carol", "two")
        assert cells(on, "1.3")[0] == "2"
        await on.press("o")
        assert "counted already" in said(on)


async def test_a_trace_that_one_has_begun_stays_left_out(two: Office) -> None:
    two.label("carol", "one", {"1.1": (1, 1)}, finish=False)
    async with agreeing(two, "carol") as on:
        await on.press("o", "a")
        assert two.adjudicates("carol", "two")
        assert not two.adjudicates("carol", "one")
        assert cells(on, "1.3")[0] == "1"


async def test_showing_figures_makes_ones_own_finish_stand(two: Office) -> None:
    assert two.passes("alice", "one")[-1].revealed_at is None
    async with agreeing(two):
        assert two.passes("alice", "one")[-1].revealed_at is not None


async def test_p_counts_last_passes_and_back(two: Office) -> None:
    # After finishing, a change opens a second look, which only the last passes hold.
    two.label("bob", "one", {"1.3": (3, 8)})
    async with agreeing(two) as on:
        assert "first pass" in on.lines[0]
        assert cells(on, "1.3")[1] == "0.50"
        await on.press("p")
        assert "last pass" in on.lines[0]
        assert cells(on, "1.3")[1] == "1.00"
        await on.press("p")
        assert cells(on, "1.3")[1] == "0.50"


async def test_enter_opens_the_disagreements_of_the_mode_and_escape_comes_back(
    two: Office,
) -> None:
    async with agreeing(two) as on:
        await on.press("j", "j", "enter")
        assert isinstance(on.app.screen, AdjudicateScreen)
        assert on.app.screen.mode == SLUGS["1.3"]
        assert "1 left in 1 trace" in on.lines[0]
        await on.press("escape")
        assert isinstance(on.app.screen, AgreementScreen)


async def test_totals_have_no_disagreements_of_their_own(two: Office) -> None:
    async with agreeing(two) as on:
        await on.press("G", "enter")
        assert isinstance(on.app.screen, AgreementScreen)
        assert "choose a mode" in said(on)


async def test_without_two_finishers_it_says_what_it_needs(office: Office) -> None:
    office.label("alice", "one", {})
    async with agreeing(office) as on:
        assert "two people who have finished" in on.text
        assert "alice has finished 1 trace." in on.text


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_all_columns_fit(two: Office, size: tuple[int, int]) -> None:
    two.label("carol", "one", {"3.1": UNSURE})
    async with agreeing(two, size=size) as on:
        for title in ("n", "raw", "present", "P+", "P−", "κ", "Fleiss", "α", "AC1"):
            assert title in on.lines[1].split()
        assert len(cells(on, "3.3")) == 9
        table = screen(on).main_list
        width = table.scrollable_content_region.width
        assert all(table.render_row(row, width).text.rstrip() for row in range(table.row_count))
        assert len(on.lines[1].rstrip()) <= width
