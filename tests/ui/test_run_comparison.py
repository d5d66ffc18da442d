"""From the runs to the traces of one, to two side by side, to one beside the gold, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mast_tui.labels import Finding, QuoteCounts, VerdictValue
from mast_tui.session import Session
from mast_tui.ui.judge_runs.comparison import ComparisonScreen
from mast_tui.ui.judge_runs.runs import RunScreen, RunsScreen
from mast_tui.ui.widgets.virtual_lines import ColumnTable
from mast_tui.workspace import RunSettings, RunTrace, TraceRecord, Workspace, store_judgement
from tests.ui.office import Office, said
from tests.ui.stage import MAST, SLUGS, Stage, finding, stage

NAMES = ("one", "two", "three")
MODEL = "judge:gpt@ab12cd34"
OTHER = "judge:other@1"


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """Three traces that two judges have run on, the model later and with a failure."""
    office = Office(tmp_path / "set")
    traces = {name: office.trace(name) for name in NAMES}
    one, two = traces["one"], traces["two"]
    found = {
        OTHER: {"one": [finding(one, "1.3", 5, 6)], "two": [finding(two, "1.1", 10, 10)]},
        MODEL: {
            "one": [finding(one, "1.3", 3, 8), finding(one, "3.1", 12, 12)],
            "two": [finding(two, "1.3", 3, 4, quote="CrashLoopBackOff")],
        },
    }
    for judge, by_name in found.items():
        run_judge(office, judge, by_name, fails=["three"] if judge == MODEL else [])
    return office


def run_judge(
    office: Office,
    judge: str,
    found: dict[str, list[Finding]],
    *,
    fails: Sequence[str] = (),
    examples: Iterable[str] = (),
) -> None:
    """A judge runs over the three traces."""
    store = Workspace.open(office.workspace)
    store.add_taxonomy(MAST)
    ids = {name: store.register_trace(TraceRecord.from_trace(office.trace(name))) for name in NAMES}
    settings = None
    if judge == MODEL:
        settings = RunSettings(
            "gpt",
            "ab12cd34",
            "models.example",
            (("samples", "1"),),
            tuple(ids[name] for name in examples),
            1.0,
            2.0,
            form="json_schema",
        )
    run = store.start_run(judge, MAST.ref, settings=settings)
    for name, trace_id in ids.items():
        if name in fails:
            store.note_run_trace(run, RunTrace(trace_id, 0, "the answer was\x1b cut twice"))
            continue
        findings = found.get(name, [])
        store_judgement(
            store,
            judge=judge,
            taxonomy=MAST.ref,
            trace_id=trace_id,
            looks_at=tuple(SLUGS.values()),
            findings=findings,
            run_id=run,
            trace=RunTrace(
                trace_id,
                len(findings),
                quotes=QuoteCounts(reworded=1, altered=1),
                remarks=("#3 cut",),
            ),
        )
    store.finish_run(run)
    store.close()


def cells(table: ColumnTable[Any]) -> list[list[str]]:
    """The texts of all columns of all rows."""
    return [[column.cell(row) for column in table.columns] for row in table.rows]


def counts(on: Stage) -> dict[str, str]:
    """The figures of all modes together in the comparison that is open, by their headings."""
    assert isinstance(on.app.screen, ComparisonScreen)
    table = on.app.screen.main_list
    titles = [column.title for column in table.columns]
    return dict(zip(titles, cells(table)[0], strict=True))


def cases(on: Stage) -> list[tuple[str, str, str, str]]:
    """The traces that are listed, with what is said of them."""
    assert isinstance(on.app.screen, ComparisonScreen)
    return [
        (trace, outcome, first, second)
        for _, trace, _, outcome, first, second in cells(on.app.screen.cases)
    ]


async def test_a_run_tells_what_it_took_and_what_went_wrong(office: Office) -> None:
    async with stage(office.folder, workspace=office.workspace) as on:
        await on.press("R")
        assert isinstance(on.app.screen, RunsScreen)
        row = next(line for line in on.lines if " gpt " in line)
        assert row.split()[:3] == ["▌!", "gpt", "ab12cd34"]
        assert row.split()[5:] == ["3", "1", "3", "50%", "—", "3", "0", "0.00"]
        text = on.app.screen.detail.text
        assert "It failed on 1 of 3 traces" in text
        assert "three.json: the answer was␛ cut twice" in text
        assert "2 of 4 quotes are in the traces (50%)" in text
        assert "Quotes: 2 reworded, 2 altered." in text
        assert "0 requests to models.example" in text
        assert "two.json: #3 cut" in text


async def test_from_a_run_to_its_traces_and_back(office: Office) -> None:
    async with stage(office.folder, workspace=office.workspace) as on:
        await on.press("R")
        await on.press("enter")
        screen = on.app.screen
        assert isinstance(screen, RunScreen)
        names = [row[1] for row in cells(screen.main_list)]
        assert names == ["three.json", "one.json", "two.json"]
        assert "failed: the answer was␛ cut twice" in on.text
        await on.press("j", "enter")
        assert on.annotate.is_current
        # The other judge's suggestion comes before, the run's own is gone to.
        assert on.number == 3
        suggestion = on.annotate.suggestions.current()
        assert suggestion is not None
        assert suggestion.judge == MODEL
        await on.press("a", "escape")
        assert screen.is_current
        assert screen.main_list.row is not None
        rows = cells(screen.main_list)
        assert rows[screen.main_list.cursor][1] in ("one.json", "two.json")
        waiting = {name: count for _, name, _, count, *_ in rows}
        assert waiting == {"three.json": "", "one.json": "1", "two.json": "1"}
        await on.press("escape")
        assert isinstance(on.app.screen, RunsScreen)
        assert "100%" in next(line for line in on.lines if " gpt " in line)


async def test_two_runs_side_by_side(office: Office) -> None:
    async with stage(office.folder, workspace=office.workspace) as on:
        await on.press("R")
        await on.press("=")
        assert "v marks a run" in said(on)
        await on.press("v", "=")
        assert "This run is the marked one" in said(on)
        await on.press("j", "=")
        screen = on.app.screen
        assert isinstance(screen, ComparisonScreen)
        assert "2 traces compared" in on.text
        total = counts(on)
        assert [total[name] for name in ("both", "only A", "only B", "same place")] == [
            "1",
            "2",
            "1",
            "1 of 1",
        ]
        assert cases(on)[0] == ("two.json", "only B", "—", "#10")
        await on.press(*"jjj")
        assert cases(on) == [
            ("two.json", "only A", "#3 to #4", "—"),
            ("one.json", "both, same place", "#3 to #8", "#5 to #6"),
        ]
        await on.press("enter", "enter")
        assert on.annotate.is_current
        assert on.number == 4
        await on.press("escape")
        assert screen.is_current
        assert screen.focused is screen.cases
        assert screen.main_list.cursor == 3
        await on.press("escape", "escape")
        assert isinstance(on.app.screen, RunsScreen)


async def test_a_run_beside_the_gold(office: Office) -> None:
    office.label("alice", "one", {"1.3": (7, 8), "2.3": (10, 10)})
    office.label("bob", "two", {"1.3": (3, 4)})
    async with stage(office.folder, workspace=office.workspace) as on:
        await on.press("R")
        await on.press("c")
        assert "1 trace compared" in on.text
        assert "1 hidden until you have finished them" in on.text
        total = counts(on)
        assert (total["in gold"], total["not in gold"], total["missed"]) == ("1", "1", "1")
        assert total["precision"] == "0.50"
        assert (total["TPR"][:4], total["TNR"][:4]) == ("0.50", "0.92")
        assert {(outcome, place) for _, outcome, place, _ in cases(on)} == {
            ("both, same place", "#3 to #8"),
            ("not in gold", "#12"),
            ("missed", "—"),
        }
        place = [outcome for _, outcome, *_ in cases(on)].index("missed")
        await on.press("tab", *"j" * place, "enter")
        # What the judge missed stands where the gold has it.
        assert on.number == 10
    assert passes_revealed(office, "alice") == [False]


def passes_revealed(office: Office, who: str) -> list[bool]:
    return [one.revealed_at is not None for one in office.passes(who, "one")]


async def test_working_blind_it_is_recorded_that_the_judge_was_shown(office: Office) -> None:
    office.label("alice", "one", {"1.3": (7, 8)})
    async with stage(office.folder, workspace=office.workspace, blind=True) as on:
        await on.press("R")
        await on.press("v", "j", "=")
        assert "judged no trace in common that you may see" in on.text
        await on.press("escape", "k", "c")
        assert "1 trace compared" in on.text
    assert passes_revealed(office, "alice") == [True]


async def test_what_was_settled_in_sight_of_a_judge_counts_on_request(office: Office) -> None:
    store = Workspace.open(office.workspace)
    session = Session.open(store, office.trace("one"), MAST, "alice", blind=False)
    session.accept(next(s.id for s in session.suggestions if s.judge == MODEL))
    session.set_verdict(SLUGS["1.1"], VerdictValue.ABSENT)
    session.finish(open_modes="leave")
    store.close()
    async with stage(office.folder, workspace=office.workspace) as on:
        await on.press("R")
        await on.press("c")
        assert "2 verdicts settled with a judge on screen left out" in on.text
        assert counts(on)["in gold"] == "0"
        await on.press("o")
        assert "counted too" in on.text
        assert counts(on)["in gold"] == "1"


async def test_traces_that_stood_in_a_prompt_are_left_out_and_counted(office: Office) -> None:
    run_judge(office, MODEL, {}, examples=["two"])
    async with stage(office.folder, workspace=office.workspace) as on:
        await on.press("R")
        assert isinstance(on.app.screen, RunsScreen)
        assert "1 trace is an example in the prompt" in on.app.screen.detail.text
        await on.press("v", "j", "j", "=")
        assert "2 traces compared · 1 left out, an example in a prompt" in on.text


async def test_the_columns_fit_also_where_it_is_narrow(office: Office) -> None:
    office.label("alice", "one", {"1.3": (7, 8)})
    async with stage(office.folder, workspace=office.workspace, size=(70, 20)) as on:
        for keys in ("R", ["enter"], ["escape", "v", "j", "="], ["escape", "c"]):
            await on.press(*keys)
            for table in on.app.screen.query(ColumnTable):
                assert table.row_count
                width = table.lines_area.width
                assert len(table.heading()) <= width
                for row in range(table.row_count):
                    assert table.render_row(row, width).cell_length == width
