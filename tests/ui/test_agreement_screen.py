"""The agreement screen: figures, their pages, and the traces behind a figure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

import pytest

from mast_tui.labels import VerdictValue
from mast_tui.reports.model import Table
from mast_tui.ui.adjudicate.screen import AdjudicateScreen
from mast_tui.ui.annotate.screen import AnnotateScreen
from mast_tui.ui.reports.agreement import AgreementScreen
from mast_tui.ui.reports.agreement_traces import AgreementTracesScreen
from mast_tui.ui.reports.lines import value_text
from tests.ui.stage import MAST, SLUGS, Stage, finding, missing, suggest
from tests.ui.team_dir import TeamDir, last_message, screen_of_key


@pytest.fixture
def finished(team: TeamDir) -> TeamDir:
    """alice and bob have finished two traces; they differ on 1.3 in one of them."""
    team.label("alice", "one", {"1.3": (3, 8), "2.6": (9, 9)})
    team.label("bob", "one", {"2.6": (9, 9)})
    team.label("alice", "two", {"1.3": (3, 4)})
    team.label("bob", "two", {"1.3": (3, 4)})
    return team


agreeing = partial(screen_of_key, "K", AgreementScreen)
"""Opens the agreement screen."""


def cells(on: Stage, code: str) -> Mapping[str, str]:
    tables = [
        part for part in on.screen(AgreementScreen).main_list.parts if isinstance(part, Table)
    ]
    table, row = next(
        (table, row) for table in tables for row in table.rows if row.cells.get("code") == code
    )
    kinds = {column.key: column.kind for column in table.columns}
    return {key: value_text(cell, kinds[key]) for key, cell in row.cells.items() if key in kinds}


def titles_line(on: Stage) -> str:
    return next(line for line in on.lines[2:] if " n " in line)


def detail_of(on: Stage) -> str:
    return on.screen(AgreementScreen).detail.text


async def test_figures_and_pages(finished: TeamDir) -> None:
    assert finished.passes("alice", "one")[-1].revealed_at is None
    async with agreeing(finished) as on:
        assert not missing(on.lines[0], "alice and bob", "2 traces finished by both")
        assert finished.passes("alice", "one")[-1].revealed_at is not None
        figures = cells(on, "1.3")
        assert (figures["n"], figures["raw_agreement"]) == ("2", "0.50")
        assert figures["prevalence"] == "1.00/0.50"
        row = next(line for line in on.lines if "Step repetition" in line)
        columns = {"raw": "raw_agreement", "P+": "positive_agreement", "AC1": "gwet_ac1"}
        for title, column in columns.items():
            end = titles_line(on).index(title) + len(title)
            assert row[:end].split()[-1] == figures[column]
        pages = list(on.screen(AgreementScreen).pages)
        seen = []
        for _ in pages:
            seen.append(on.screen(AgreementScreen).page)
            await on.press("tab")
        assert seen == pages == ["modes", "categories", "pairs", "spans", "judge"]
        assert on.screen(AgreementScreen).page == "modes"
        await on.press("2")
        assert on.screen(AgreementScreen).page == "categories"
        assert "1.1, 1.2, 1.3" in detail_of(on)
        assert on.screen(AgreementScreen).main_list.rows[0].cells["n"] == 10
        await on.pilot.click("PageBar", offset=(on.lines[1].index("3 pairs"), 0))
        await on.press()
        assert "three people or more" in " ".join(on.text.split())
        await on.press("4")
        figures = cells(on, "2.6")
        assert (figures["places"], figures["f1_exact"]) == ("2", "1.00")
        assert "Enter traces counted" in on.lines[-1]
        await on.press("G", "k")
        assert str(on.screen(AgreementScreen).detail.border_title).startswith("alice")
        assert "traces counted" not in on.lines[-1]
        assert re.search(r"places marked +3", detail_of(on))
        await on.press("1")
        await on.press("j", "j", "a")
        assert isinstance(on.app.screen, AdjudicateScreen)
        assert on.app.screen.queue.mode == SLUGS["1.3"]
        assert "1 left in 1 trace" in on.lines[0]
        await on.press("escape")
        assert (
            on.screen(AgreementScreen).main_list.row == on.screen(AgreementScreen).main_list.rows[2]
        )
        await on.press("G", "a")
        assert "choose a mode" in last_message(on).lower()


async def test_intervals_are_explained(finished: TeamDir) -> None:
    finished.label("alice", "three", {})
    finished.label("bob", "three", {"3.1": (4, 4)})
    async with agreeing(finished) as on:
        await on.press(*(["j"] * (len(MAST.modes) + 1)))
        assert on.screen(AgreementScreen).main_list.row_key == ("modes", "pooled")
        interval = r" 0\.\d\d \[-?\d\.\d\d, \d\.\d\d\]"
        assert re.search(interval, next(line for line in on.lines if line.startswith("▌")))
        assert re.search(rf"raw agreement *{interval}", detail_of(on))
        assert "(jackknife over traces)" in detail_of(on)
        assert "trace × mode pairs with verdicts by both" in detail_of(on)


async def test_hidden_traces_are_counted_as_adjudicator(finished: TeamDir) -> None:
    async with agreeing(finished, "carol") as on:
        assert "2 traces are hidden from you: finish" in on.text
        await on.press("j")
        assert "o look as adjudicator" in on.lines[-1]
        await on.press("o")
        assert "independently" in on.text
        await on.press("n")
        assert not finished.passes("carol", "one")
        assert "Step repetition" not in on.text
        for keys in ("A", "ee", "q"):  # the adjudication shows them as well
            await on.press(*keys)
        assert finished.adjudicates("carol", "two")
        assert cells(on, "1.3")["n"] == "2"
        await on.press("j")
        assert "look as adjudicator" not in on.lines[-1]
        await on.press("o")
        assert "No trace is excluded" in last_message(on)


async def test_first_or_last_passes_are_counted(finished: TeamDir) -> None:
    # After finishing, a change opens a second look, which only the last passes hold.
    finished.label("bob", "one", {"1.3": (3, 8)})
    finished.set_study()
    for code in ("1.3", "2.6"):  # Dave is not in the study, so his passes do not count.
        finished.label("dave", "two", {code: (3, 8)})
    async with agreeing(finished) as on:
        assert "1 trace was finished again; p counts the last finish." in on.text
        assert "first finish" in on.lines[0]
        assert cells(on, "1.3")["raw_agreement"] == "0.50"
        await on.press("p")
        assert "last finish" in on.lines[0]
        assert cells(on, "1.3")["raw_agreement"] == "1.00"
        # Pressed twice at once, only what was asked for last is shown.
        await on.press("p", "p")
        assert "last finish" in on.lines[0]
        assert cells(on, "1.3")["raw_agreement"] == "1.00"


async def test_agreement_without_two_annotators(team: TeamDir) -> None:
    team.label("alice", "one", {})
    async with agreeing(team) as on:
        assert not missing(on.text, "two people who have finished", "alice has finished 1 trace.")
        command = f"mast-tui {team.folder} --workspace {team.workspace} --annotator NAME"
        assert "".join(command.split()) in "".join(on.text.split())
        await on.press("5")
        assert "No judge has labelled a trace" in on.text


async def test_main_columns_fit_on_a_narrow_terminal(finished: TeamDir) -> None:
    finished.label("carol", "one", {"3.1": VerdictValue.UNSURE})
    async with agreeing(finished, size=(80, 24)) as on:
        for title in ("n", "raw", "mean κ", "α", "AC1"):
            assert f" {title} " in f"{titles_line(on)} "
        for code in ("1.3", "2.6"):
            row = next(line for line in on.lines if f" {code} " in line)
            assert cells(on, code)["cohen_kappa"] in row.split()


async def test_a_pair_unfolds_and_lists_its_traces(finished: TeamDir) -> None:
    finished.label("carol", "one", {"1.3": (3, 8)})
    async with agreeing(finished) as on:
        await on.press("3", "down")
        assert on.screen(AgreementScreen).main_list.chosen_column == "with alice"
        await on.press("right")
        assert on.screen(AgreementScreen).main_list.chosen_column == "with bob"
        assert "14 trace × mode pairs with verdicts by both" in detail_of(on)
        await on.press("enter")
        assert isinstance(on.app.screen, AgreementTracesScreen)
        assert "bob and carol" in on.lines[0]
        assert "alice" not in on.lines[1]
        await on.press("escape")
        assert (
            on.screen(AgreementScreen).main_list.row_key,
            on.screen(AgreementScreen).main_list.chosen_column,
        ) == (("pairs_kappa", "carol"), "with bob")
        await on.press("3", "G", "k")
        assert "▌  ▸ alice and carol, by mode" in on.text
        await on.press("enter")
        assert "▌  ▾ alice and carol, by mode" in on.text
        await on.press("j", "j", "j")
        assert str(on.screen(AgreementScreen).detail.border_title).startswith("1.3")
        assert "1 trace with verdicts by both" in detail_of(on)
        await on.press("k", "k", "k", "enter")
        assert "▌  ▸ alice and carol, by mode" in on.text


async def test_a_judge_is_compared_with_gold_and_with_people(finished: TeamDir) -> None:
    trace = finished.trace("one")
    suggest(finished.workspace, trace, [finding(trace, "1.3", 3, 8)])
    suggest(finished.workspace, finished.trace("two"), [])
    async with agreeing(finished) as on:
        await on.press("5")
        assert "against gold" in on.lines[0]
        await on.press("p")
        assert "the other pages" in last_message(on)
        # In one of the finished people differ, so there is no gold yet.
        assert (cells(on, "1.3")["n"], cells(on, "1.3")["true_positive_rate"]) == ("1", "0.00")
        await on.press("c")
        assert "against alice" in on.lines[0]
        assert (cells(on, "1.3")["n"], cells(on, "1.3")["true_positive_rate"]) == ("2", "0.50")
        await on.press("j", "j")
        assert not missing(detail_of(on), "only by alice in 1", "mast-tui study")
    async with agreeing(finished, "carol") as on:
        await on.press("5")
        assert "2 traces are hidden from you: finish your work on them, or o shows" in " ".join(
            on.text.split()
        )
        await on.press("o", "a")
        assert cells(on, "1.3")["n"] == "1"


async def test_blind_annotators_see_no_judge_on_other_traces(finished: TeamDir) -> None:
    for name in ("one", "three"):
        trace = finished.trace(name)
        suggest(finished.workspace, trace, [finding(trace, "1.3", 3, 8)])
    async with agreeing(finished) as on:
        await on.press("5")
        await on.press("j", "j")
        assert "In 1 trace that no one has finished" in detail_of(on)
    async with agreeing(finished, "bob", blind=True) as on:
        await on.press("5")
        await on.press("j", "j")
        assert not missing(detail_of(on), "1 unlabelled trace", "hidden from you")
        assert "that no one has finished" not in detail_of(on)


async def test_new_finishes_are_announced_and_counted_on_request(finished: TeamDir) -> None:
    async with agreeing(finished) as on:
        assert cells(on, "1.3")["n"] == "2"
        finished.label("alice", "three", {})
        finished.label("bob", "three", {}, finish=False)
        await on.until(lambda: "new pass" in last_message(on))
        assert last_message(on).startswith("Not in these figures: 1 new pass or decision")
        finished.label("bob", "three", {})
        await on.until(lambda: "2 new passes or decisions" in last_message(on))
        assert cells(on, "1.3")["n"] == "2"
        await on.press("O")
        assert cells(on, "1.3")["n"] == "3"
        assert "new pass" not in last_message(on)


@pytest.fixture
def differing(team: TeamDir) -> TeamDir:
    """Both label 1.3 in ``both``, bob alone in ``bobs``, and no one in ``none``."""
    for name, alice, bob in (("none", 0, 0), ("both", 1, 1), ("bobs", 0, 1)):
        team.label("alice", name, {"1.3": (3, 8)} if alice else {})
        team.label("bob", name, {"1.3": (5, 8)} if bob else {})
    return team


def listed_names(on: Stage) -> list[str]:
    return [
        str(row.cells["trace"]).removesuffix(".json")
        for row in on.screen(AgreementTracesScreen).main_list.rows
    ]


async def test_source_traces_of_figures_lead_to_their_screens(differing: TeamDir) -> None:
    async with agreeing(differing) as on:
        await on.press("j", "j", "enter")
        assert listed_names(on) == ["bobs", "both", "none"]
        assert "1 where the sides differ" in on.lines[0]
        assert on.screen(AgreementTracesScreen).detail.text.splitlines()[:2] == [
            "alice: absent",
            "bob: present",
        ]

        await on.press("enter")
        opened = on.screen(AdjudicateScreen)
        assert opened.queue.row is not None
        assert opened.queue.name_of(opened.queue.row.trace_id) == "bobs.json"
        await on.press("escape", "j", "enter")
        # What was agreed on is listed there, with the cursor on it.
        opened = on.screen(AdjudicateScreen)
        assert opened.queue.row is not None
        assert opened.queue.name_of(opened.queue.row.trace_id) == "both.json"
        await on.press("escape", "j", "enter")
        assert isinstance(on.app.screen, AnnotateScreen)

        await on.press("escape")
        assert (
            on.screen(AgreementTracesScreen).main_list.row
            == on.screen(AgreementTracesScreen).main_list.rows[2]
        )
        await on.press("escape")
        agreement = on.screen(AgreementScreen).main_list
        assert agreement.row == agreement.rows[2]
        await on.press("g")
        await on.press("j", "j", "enter", "v")
        assert listed_names(on) == ["bobs"]
        await on.press("v")
        assert len(listed_names(on)) == 3
        await on.press("escape", "g", "enter", "v")
        assert "differ in none" in on.screen(AgreementTracesScreen).hints.message
        await on.press("escape", "g")
        await on.press(*(["j"] * (len(MAST.modes) + 1)), "enter")
        assert len(listed_names(on)) == 3 * len(MAST.modes)
        assert on.screen(AgreementTracesScreen).main_list.rows[0].cells["code"] == "1.3"
        await on.press("escape", "4")
        assert cells(on, "1.3")["places"] == "2"
        await on.press("g", "j", "j", "enter")
        # Only bob has read the span of his place in "bobs".
        assert listed_names(on) == ["both"]
        assert on.screen(AgreementTracesScreen).detail.text.splitlines()[:2] == [
            "alice: #3–8",
            "bob: #5–8",
        ]


async def test_annotators_open_the_trace_at_the_label_if_others_adjudicate(
    differing: TeamDir,
) -> None:
    differing.set_study("one")
    async with agreeing(differing) as on:
        await on.press("j", "j", "enter")
        await on.press("enter")
        assert isinstance(on.app.screen, AnnotateScreen)
        assert on.number == 5


async def test_errors_of_a_judge_open_at_its_suggestion(differing: TeamDir) -> None:
    for name, spans in (("none", (9, 9)), ("both", (3, 8)), ("bobs", (3, 3))):
        trace = differing.trace(name)
        suggest(differing.workspace, trace, [finding(trace, "1.3", *spans)])
    async with agreeing(differing) as on:
        await on.press("5")
        await on.press("c")
        await on.press("j", "j", "enter")
        assert {row.cells["note"] for row in on.screen(AgreementTracesScreen).main_list.rows} == {
            "false alarm",
            "",
        }
        assert listed_names(on)[-1] == "both"
        await on.press("v")
        await on.press(*(["j"] * listed_names(on).index("none")), "enter")
        assert isinstance(on.app.screen, AnnotateScreen)
        assert on.number == 9
        await on.press("escape", "escape")
        assert isinstance(on.app.screen, AgreementScreen)
        assert "against alice" in on.lines[0]


async def test_figures_are_updated_on_return(differing: TeamDir) -> None:
    for name in ("none", "both", "bobs"):
        suggest(differing.workspace, differing.trace(name), [])
    async with agreeing(differing) as on:
        await on.press("5")
        await on.press("j", "j")
        row = on.screen(AgreementScreen).main_list.row
        assert row is not None
        assert row.cells["n"] == 2
        await on.press("a")
        await on.press("2")
        await on.press("escape")
        row = on.screen(AgreementScreen).main_list.row
        assert row is not None
        assert (row.cells["name"], row.cells["n"]) == ("Step repetition", 3)
