"""The agreement screen: figures over what one may know, in words, and the pages of them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from mast_tui.labels import VerdictValue
from mast_tui.reports.model import Table
from mast_tui.ui.adjudicate.screen import AdjudicateScreen
from mast_tui.ui.reports.agreement import AgreementScreen
from mast_tui.ui.reports.agreement_traces import AgreementTracesScreen
from mast_tui.ui.reports.lines import value_text
from tests import waiting
from tests.ui.office import Office, said
from tests.ui.stage import MAST, SLUGS, Stage, finding, stage, suggest

UNSURE = VerdictValue.UNSURE


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
    office: Office, who: str = "alice", size: tuple[int, int] = (120, 40), *, blind: bool = False
) -> AsyncIterator[Stage]:
    """The agreement screen with its figures."""
    async with stage(
        office.folder, workspace=office.workspace, annotator=who, size=size, blind=blind
    ) as on:
        await on.press("K")
        yield on


def screen(on: Stage) -> AgreementScreen:
    assert isinstance(on.app.screen, AgreementScreen)
    return on.app.screen


def cells(on: Stage, code: str) -> Mapping[str, str]:
    """What stands in the cells of a mode's row, in the first table that has one."""
    tables = [part for part in screen(on).main_list.parts if isinstance(part, Table)]
    table, row = next(
        (table, row) for table in tables for row in table.rows if row.cells.get("code") == code
    )
    kinds = {column.key: column.kind for column in table.columns}
    return {key: value_text(cell, kinds[key]) for key, cell in row.cells.items() if key in kinds}


def heading(on: Stage) -> str:
    """The titles over the columns of the first table, as they stand on the screen."""
    return next(line for line in on.lines[2:] if " n " in line)


def words(on: Stage) -> str:
    """What is told of the row under the cursor."""
    return screen(on).detail.text


async def test_figures_stand_under_their_titles_on_pages_with_digits(two: Office) -> None:
    async with agreeing(two) as on:
        assert "alice and bob" in on.lines[0]
        assert "2 traces by both" in on.lines[0]
        figures = cells(on, "1.3")
        assert (figures["n"], figures["raw_agreement"]) == ("2", "0.50")
        assert figures["prevalence"] == "1.00/0.50"
        row = next(line for line in on.lines if "Step repetition" in line)
        columns = {"raw": "raw_agreement", "P+": "positive_agreement", "AC1": "gwet_ac1"}
        for title, column in columns.items():
            end = heading(on).index(title) + len(title)
            assert row[:end].split()[-1] == figures[column]
        pages = list(screen(on).pages)
        seen = []
        for _ in pages:
            seen.append(screen(on).page)
            await on.press("tab")
        assert seen == pages == ["modes", "categories", "pairs", "spans", "judge"]
        assert screen(on).page == "modes"
        await on.press("2")
        assert screen(on).page == "categories"
        assert "1.1, 1.2, 1.3" in words(on)
        assert screen(on).main_list.rows[0].cells["n"] == 10
        await on.press("3")
        assert "three people or more" in " ".join(on.text.split())
        await on.press("4")
        figures = cells(on, "2.6")
        assert (figures["places"], figures["f1_exact"]) == ("2", "1.00")
        await on.press("G", "k")
        assert str(screen(on).detail.border_title).startswith("alice")
        assert re.search(r"places marked +3", words(on))
        await on.press("1")
        await on.press("j", "j", "a")
        assert isinstance(on.app.screen, AdjudicateScreen)
        assert on.app.screen.queue.mode == SLUGS["1.3"]
        assert "1 left in 1 trace" in on.lines[0]
        await on.press("escape")
        assert screen(on).main_list.row == screen(on).main_list.rows[2]
        await on.press("G", "a")
        assert "choose a mode" in said(on).lower()


async def test_intervals_come_with_the_words_on_what_they_rest_on(two: Office) -> None:
    two.label("alice", "three", {})
    two.label("bob", "three", {"3.1": (4, 4)})
    async with agreeing(two) as on:
        await on.press(*(["j"] * (len(MAST.modes) + 1)))
        assert screen(on).main_list.row_key == ("modes", "pooled")
        interval = r" 0\.\d\d \[-?\d\.\d\d, \d\.\d\d\]"
        assert re.search(interval, next(line for line in on.lines if line.startswith("▌")))
        assert re.search(rf"raw agreement *{interval}", words(on))
        assert "(jackknife over traces)" in words(on)
        assert "trace × mode pairs have a verdict by both" in words(on)


async def test_what_only_others_have_finished_is_counted_as_adjudicator_and_recorded(
    two: Office,
) -> None:
    async with agreeing(two, "carol") as on:
        assert "2 traces left out until you finish them · o includes them" in on.text
        await on.press("j")
        assert "o look as adjudicator" in on.lines[-1]
        assert "Step repetition" not in on.text
        await on.press("o")
        assert "no longer label them" in on.text.replace("\n", " ") or "longer label" in on.text
        await on.press("n")
        assert not two.passes("carol", "one")
        assert "Step repetition" not in on.text
        await on.press("o", "a")
        assert two.adjudicates("carol", "one")
        assert two.adjudicates("carol", "two")
        assert cells(on, "1.3")["n"] == "2"
        await on.press("j")
        assert "look as adjudicator" not in on.lines[-1]
        await on.press("o")
        assert "included already" in said(on)


async def test_a_trace_that_one_has_begun_stays_left_out(two: Office) -> None:
    two.label("carol", "one", {"1.1": (1, 1)}, finish=False)
    async with agreeing(two, "carol") as on:
        await on.press("o", "a")
        assert two.adjudicates("carol", "two")
        assert not two.adjudicates("carol", "one")
        assert cells(on, "1.3")["n"] == "1"


async def test_showing_figures_makes_ones_own_finish_stand(two: Office) -> None:
    assert two.passes("alice", "one")[-1].revealed_at is None
    async with agreeing(two):
        assert two.passes("alice", "one")[-1].revealed_at is not None


async def test_p_counts_last_passes_and_back(two: Office) -> None:
    # After finishing, a change opens a second look, which only the last passes hold.
    two.label("bob", "one", {"1.3": (3, 8)})
    async with agreeing(two) as on:
        assert "first pass" in on.lines[0]
        assert cells(on, "1.3")["raw_agreement"] == "0.50"
        await on.press("p")
        assert "last pass" in on.lines[0]
        assert cells(on, "1.3")["raw_agreement"] == "1.00"
        # Pressed twice at once, only what was asked for last is shown.
        await on.press("p", "p")
        assert "last pass" in on.lines[0]
        assert cells(on, "1.3")["raw_agreement"] == "1.00"


async def test_without_two_finishers_it_says_what_it_needs(office: Office) -> None:
    office.label("alice", "one", {})
    async with agreeing(office) as on:
        assert "two people who have finished" in on.text
        assert "alice has finished 1 trace." in on.text
        await on.press("5")
        assert "No judge has looked at a trace" in on.text


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_what_has_to_be_read_together_fits_and_no_number_is_cut(
    two: Office, size: tuple[int, int]
) -> None:
    two.label("carol", "one", {"3.1": UNSURE})
    async with agreeing(two, size=size) as on:
        for title in ("n", "raw", "mean κ", "α", "AC1"):
            assert f" {title} " in f"{heading(on)} "
        for code in ("1.3", "2.6"):
            row = next(line for line in on.lines if f" {code} " in line)
            assert cells(on, code)["cohen_kappa"] in row.split()


async def test_a_pair_has_its_traces_and_unfolds_to_its_figures_by_mode(two: Office) -> None:
    two.label("carol", "one", {"1.3": (3, 8)})
    async with agreeing(two) as on:
        await on.press("3", "down")
        assert screen(on).main_list.chosen == "with alice"
        await on.press("right")
        assert screen(on).main_list.chosen == "with bob"
        assert "14 trace × mode pairs have a verdict by both" in words(on)
        await on.press("enter")
        assert isinstance(on.app.screen, AgreementTracesScreen)
        assert "bob and carol" in on.lines[0]
        assert "alice" not in on.lines[1]
        await on.press("escape")
        assert (screen(on).main_list.row_key, screen(on).main_list.chosen) == (
            ("pairs_kappa", "carol"),
            "with bob",
        )
        await on.press("3", "G", "k")
        assert "▌  ▸ alice and carol, by mode" in on.text
        await on.press("enter")
        assert "▌  ▾ alice and carol, by mode" in on.text
        await on.press("j", "j", "j")
        assert str(screen(on).detail.border_title).startswith("1.3")
        assert "1 trace has a verdict by both" in words(on)
        await on.press("k", "k", "k", "enter")
        assert "▌  ▸ alice and carol, by mode" in on.text


async def test_without_files_and_indices_places_are_not_compared(two: Office) -> None:
    two.lose_order("one", "two")
    two.file("three")
    async with agreeing(two) as on:
        await on.press("4")
        assert "of 2 traces" in on.text
        await on.press("1")
        assert cells(on, "1.3")["n"] == "2"


async def test_a_judge_is_held_against_gold_and_against_people(two: Office) -> None:
    trace = two.trace("one")
    suggest(two.workspace, trace, [finding(trace, "1.3", 3, 8)])
    suggest(two.workspace, two.trace("two"), [])
    async with agreeing(two) as on:
        await on.press("5")
        assert "against gold" in on.lines[0]
        # In one of the two people differ, so there is no gold yet.
        assert cells(on, "1.3")["n"] == "1"
        assert cells(on, "1.3")["true_positive_rate"] == "0.00"
        await on.press("c")
        assert "against alice" in on.lines[0]
        assert cells(on, "1.3")["n"] == "2"
        assert cells(on, "1.3")["true_positive_rate"] == "0.50"
        await on.press("j", "j")
        assert "only alice in 1" in words(on)
        assert "mast-tui study" in words(on)


async def test_who_works_blind_learns_nothing_of_what_judges_say_elsewhere(two: Office) -> None:
    for name in ("one", "three"):
        trace = two.trace(name)
        suggest(two.workspace, trace, [finding(trace, "1.3", 3, 8)])
    async with agreeing(two) as on:
        await on.press("5")
        await on.press("j", "j")
        assert "On 1 trace that no one has labelled" in words(on)
    async with agreeing(two, "bob", blind=True) as on:
        await on.press("5")
        await on.press("j", "j")
        assert "1 unlabelled trace left out" in words(on)
        assert "hidden from you" in words(on)
        assert "that no one has labelled the judge says" not in words(on)


async def test_what_others_finish_meanwhile_is_told_and_counted_when_asked_for(
    two: Office,
) -> None:
    async with agreeing(two) as on:
        assert cells(on, "1.3")["n"] == "2"
        two.label("alice", "three", {})
        two.label("bob", "three", {}, finish=False)
        for _ in waiting.until(lambda: "new since" in said(on)):
            await on.pilot.pause()
        assert said(on).startswith("1 new since")
        two.label("bob", "three", {})
        for _ in waiting.until(lambda: "2 new since" in said(on)):
            await on.pilot.pause()
        assert cells(on, "1.3")["n"] == "2"
        await on.press("O")
        assert cells(on, "1.3")["n"] == "3"
        assert "new since" not in said(on)


async def test_the_judge_page_says_first_why_its_figures_are_empty(office: Office) -> None:
    trace = office.trace("one")
    suggest(office.workspace, trace, [finding(trace, "1.3", 3, 8)])
    async with stage(office.folder, workspace=office.workspace, annotator="alice") as on:
        await on.press("enter", "right_square_bracket", "a", "D", "j")
        await on.press("escape", "K", "5")
        assert (
            "All verdicts of gold here were made with suggestions on screen; s includes them."
            in on.text
        )
        await on.press("s")
        assert "Verdicts made with suggestions on screen count here; s leaves them" in on.text
        assert cells(on, "1.3")["true_positive_rate"] == "1.00"
        await on.press("s")
        assert "All verdicts of gold here" in on.text
