"""Judge runs: their list, their traces, comparisons, and what is hidden from blind annotators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import pytest

from mast_tui.labels import Finding, QuoteCounts, VerdictValue
from mast_tui.session import Session
from mast_tui.ui.judge_runs.comparison import ComparisonScreen
from mast_tui.ui.judge_runs.runs import RunScreen, RunsScreen
from mast_tui.ui.widgets.virtual_lines import ColumnTable
from mast_tui.workspace import Asked, RunSettings, RunTrace, TraceRecord, Workspace
from tests.ui.stage import JUDGE, MAST, SLUGS, Stage, finding, missing, stage, store_findings
from tests.ui.team_dir import TeamDir, last_message, screen_of_key


@pytest.fixture
def judged(team: TeamDir) -> TeamDir:
    """One trace with a run of two findings, of which bob has accepted one."""
    trace = team.trace("one")
    with team.store() as store:
        store.add_taxonomy(MAST)
        run = store.start_run(JUDGE, MAST.ref)
        trace_id = store.register_trace(TraceRecord.from_trace(trace))
        findings = [finding(trace, "1.3", 3, 8), finding(trace, "3.1", 12, 12)]
        store_findings(store, trace_id, findings, run_id=run)
        store.finish_run(run)
        session = Session.open(store, trace, MAST, "bob", blind=False)
        session.accept(session.suggestions[0].id)
    return team


runs_screen = partial(screen_of_key, "R", RunsScreen)
"""Opens the screen of runs."""


def figures(on: Stage) -> list[str]:
    row = next(line for line in on.lines if "rules@" in line)
    return row.split(":", 1)[1].split()[1:]


async def test_own_answers_are_counted_and_hidden_from_blind_annotators(judged: TeamDir) -> None:
    async with runs_screen(judged, "bob") as on:
        assert " ".join(on.lines[1].split()) == "judge when traces found you accepted waiting"
        assert figures(on) == ["1", "2", "100%", "1"]
        mode = next(line for line in on.lines if "Step repetition" in line)
        assert mode.split("repetition")[1].split()[:5] == ["1", "1", "0", "0", "100%"]
    async with runs_screen(judged, "alice") as on:
        assert figures(on) == ["1", "2", "—", "2"]
        await on.press("enter", "a")
        assert "This workspace has no answer of a model about this trace" in on.text
    async with runs_screen(judged, blind=True) as on:
        assert figures(on) == ["1", "hidden", "hidden", "hidden"]
        assert "hidden while you work blind" in on.text
        assert "2 found" not in on.text


async def test_the_rules_run_on_the_traces_of_the_library(team: TeamDir) -> None:
    for name in ("one", "two"):
        team.file(name)
    async with runs_screen(team) as on:
        assert "No judge has run" in on.text
        await on.press("v")
        assert "There is no run under the cursor" in last_message(on)
        on.app.catalog.complete = False
        await on.press("J")
        assert not missing(
            on.text, "Run the rules judge on 2 traces?", "is still being read: these"
        )
        await on.press("enter")
        assert "has looked at 2 traces" in last_message(on)
        row = figures(on)
        assert row[0] == "2"
        assert int(row[1]) > 0
        await on.press("J", "enter")
        assert figures(on)[0] == "2"
        assert sum("rules@" in line for line in on.lines) >= 2


async def test_failed_and_unfinished_runs_are_marked(judged: TeamDir) -> None:
    store = Workspace.open(judged.workspace)
    run = store.start_run("judge:some-model@abc", MAST.ref)
    trace_id = store.traces()[0].trace_id
    store.note_run_trace(run, RunTrace(trace_id, 0, "the answer was no JSON"))
    store.close()
    async with runs_screen(judged) as on:
        row = next(line for line in on.lines if "some-model" in line)
        assert "!" in row.split("some-model")[0]
        assert not missing(on.text, "the answer was no JSON", "not finished")


async def test_imported_judgements_are_compared_with_gold(judged: TeamDir) -> None:
    trace = judged.trace("one")
    judged.label("alice", "one", {"1.3": (3, 8)})
    with judged.store() as store:
        findings = [finding(trace, "1.3", 3, 8, why="it says so")]
        store_findings(store, store.traces()[0].trace_id, findings, "judge:other@1")
    async with runs_screen(judged) as on:
        row = next(line for line in on.lines if "other@1" in line)
        assert row.split()[-3:] == ["1", "—", "1"]
        if "▌" not in row:
            await on.press("j")
        assert "its judgements were imported" in on.text
        await on.press("c")
        assert "other@1 · beside gold" in on.text
        await on.press("tab")
        assert "it says so" in on.text


async def test_answers_of_a_model_are_shown(judged: TeamDir) -> None:
    store = Workspace.open(judged.workspace)
    (run,) = store.runs()
    for answer, usable in (("not even [JSON", False), ('{"modes": {"1.3": {}}}', True)):
        store.record_asked(
            Asked(
                run_id=run.id,
                trace_id=run.traces[0].trace_id,
                key=answer,
                answer=answer,
                finish="stop",
                form="json_schema",
                tokens_in=3_000,
                tokens_out=500,
                usable=usable,
            )
        )
    store.close()
    async with runs_screen(judged) as on:
        await on.press("enter", "a")
        assert not missing(on.text, "2 answers", "1 of 2")
        assert "json_schema · 3,000 tokens in, 500 out · not usable" in on.text
        assert not missing(on.text, "not even [JSON", '{"modes": {"1.3": {}}}')
        await on.press("a")
        assert "not even" not in on.text
    async with runs_screen(judged, blind=True) as on:
        await on.press("enter", "a")
        assert "not even" not in on.text
        assert "You work blind" in on.text


async def test_the_question_to_a_model_is_shown(judged: TeamDir) -> None:
    ways: tuple[tuple[str, str], ...] = (("decisive", "step by step"), ("verify", "each finding"))
    for way in ways:
        store = Workspace.open(judged.workspace)
        settings = RunSettings("m", "0123abcd", "here", (way,), price_in=1.0, price_out=2.0)
        store.finish_run(store.start_run("judge:m@0123abcd", MAST.ref, settings=settings))
        store.close()
        async with runs_screen(judged) as on:
            caption = "asked for the decisive step (step by step)"
            assert (caption in on.text) == (way[0] == "decisive")
            assert ("each finding verified" in on.text) == (way[0] == "verify")


NAMES = ("one", "two", "three")
MODEL = "judge:gpt@ab12cd34"
OTHER = "judge:other@1"


@pytest.fixture
def compared_runs(team: TeamDir) -> TeamDir:
    """Three traces with runs of two judges, the model later and with a failure."""
    traces = {name: team.trace(name) for name in NAMES}
    first = traces["one"]
    second = traces["two"]
    findings_by_judge = {
        OTHER: {"one": [finding(first, "1.3", 5, 6)], "two": [finding(second, "1.1", 10, 10)]},
        MODEL: {
            "one": [finding(first, "1.3", 3, 8), finding(first, "3.1", 12, 12)],
            "two": [finding(second, "1.3", 3, 4, quote="CrashLoopBackOff")],
        },
    }
    for judge, by_name in findings_by_judge.items():
        run_judge(team, judge, by_name, fails=["three"] if judge == MODEL else [])
    return team


def run_judge(
    team: TeamDir,
    judge: str,
    findings_by_trace: dict[str, list[Finding]],
    *,
    fails: Sequence[str] = (),
    examples: Iterable[str] = (),
) -> None:
    """Let a judge run over the three traces."""
    with team.store() as store:
        store.add_taxonomy(MAST)
        records = {name: TraceRecord.from_trace(team.trace(name)) for name in NAMES}
        ids = {name: store.register_trace(record) for name, record in records.items()}
        settings = None
        if judge == MODEL:
            prompts = tuple(ids[name] for name in examples)
            model_settings = ("gpt", "ab12cd34", "models.example", (("samples", "1"),))
            settings = RunSettings(*model_settings, prompts, 1.0, 2.0, form="json_schema")
        run = store.start_run(judge, MAST.ref, settings=settings)
        for name, trace_id in ids.items():
            if name in fails:
                store.note_run_trace(run, RunTrace(trace_id, 0, "the answer was\x1b cut twice"))
                continue
            findings = findings_by_trace.get(name, [])
            quotes = QuoteCounts(reworded=1, altered=1)
            run_trace = RunTrace(trace_id, len(findings), quotes=quotes, remarks=("#3 cut",))
            store_findings(store, trace_id, findings, judge, run_id=run, trace=run_trace)
        store.finish_run(run)


def table_cells(table: ColumnTable[Any]) -> list[list[str]]:
    return [[column.cell(row) for column in table.columns] for row in table.rows]


def counts(on: Stage) -> dict[str, str]:
    assert isinstance(on.app.screen, ComparisonScreen)
    table = on.app.screen.main_list
    titles = [column.title for column in table.columns]
    return dict(zip(titles, table_cells(table)[0], strict=True))


def listed_cases(on: Stage) -> list[tuple[str, str, str, str]]:
    assert isinstance(on.app.screen, ComparisonScreen)
    return [
        (trace, outcome, first, second)
        for _, trace, _, outcome, first, second in table_cells(on.app.screen.cases)
    ]


async def test_a_run_shows_its_quotes_failures_and_traces(compared_runs: TeamDir) -> None:
    async with stage(compared_runs.folder, workspace=compared_runs.workspace) as on:
        await on.press("R")
        assert isinstance(on.app.screen, RunsScreen)
        row = next(line for line in on.lines if " gpt " in line)
        assert row.split()[:3] == ["▌!", "gpt", "ab12cd34"]
        assert row.split()[5:] == ["3", "1", "3", "50%", "—", "3", "0", "0.00"]
        text = on.app.screen.detail.text
        assert "It failed on 1 of 3 traces" in text
        assert "three.json: the answer was␛ cut twice" in text
        assert "2 of 4 quotes are in the traces (50%)" in text
        assert not missing(text, "Quotes: 2 reworded, 2 altered.", "0 requests to models.example")
        assert "two.json: #3 cut" in text
        await on.press("enter")
        screen = on.screen(RunScreen)
        names = [row[1] for row in table_cells(screen.main_list)]
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
        rows = table_cells(screen.main_list)
        assert rows[screen.main_list.cursor][1] in ("one.json", "two.json")
        waiting = {name: count for _, name, _, count, *_ in rows}
        assert waiting == {"three.json": "", "one.json": "1", "two.json": "1"}
        await on.press("escape")
        assert isinstance(on.app.screen, RunsScreen)
        assert "100%" in next(line for line in on.lines if " gpt " in line)


async def test_two_runs_side_by_side(compared_runs: TeamDir) -> None:
    async with stage(compared_runs.folder, workspace=compared_runs.workspace) as on:
        await on.press("R")
        await on.press("=")
        assert "v marks a run" in last_message(on)
        await on.press("v", "v")
        assert "No run is marked" in last_message(on)
        await on.press("v", "=")
        assert "This run is the marked one" in last_message(on)
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
        assert listed_cases(on)[0] == ("two.json", "only B", "—", "#10")
        await on.press(*"jjj")
        assert listed_cases(on) == [
            ("two.json", "only A", "#3 to #4", "—"),
            ("one.json", "both, same place", "#3 to #8", "#5 to #6"),
        ]
        await on.press("enter", "enter")
        assert on.annotate.is_current
        assert on.number == 4
        session = on.session
        await on.press("escape")
        assert not session.workspace.passes(annotator=session.annotator)
        assert screen.is_current
        assert screen.focused is screen.cases
        assert screen.main_list.cursor == 3
        await on.press("escape", "escape")
        assert isinstance(on.app.screen, RunsScreen)


async def test_a_run_is_compared_with_the_gold(compared_runs: TeamDir) -> None:
    compared_runs.label("alice", "one", {"1.3": (7, 8), "2.3": (10, 10)})
    compared_runs.label("bob", "two", {"1.3": (3, 4)})
    async with stage(compared_runs.folder, workspace=compared_runs.workspace) as on:
        await on.press("R")
        await on.press("c")
        assert not missing(on.text, "1 trace compared", "1 hidden until you have finished them")
        total = counts(on)
        assert (total["in gold"], total["not in gold"], total["missed"]) == ("1", "1", "1")
        assert total["precision"] == "0.50"
        assert (total["TPR"][:4], total["TNR"][:4]) == ("0.50", "0.92")
        assert {(outcome, position) for _, outcome, position, _ in listed_cases(on)} == {
            ("both, same place", "#3 to #8"),
            ("not in gold", "#12"),
            ("missed", "—"),
        }
        position = [outcome for _, outcome, *_ in listed_cases(on)].index("missed")
        await on.press("tab", *"j" * position, "enter")
        # What the judge missed stands where the gold has it.
        assert on.number == 10
    assert passes_revealed(compared_runs, "alice") == [False]


def passes_revealed(team: TeamDir, annotator: str) -> list[bool]:
    return [labelling.revealed_at is not None for labelling in team.passes(annotator, "one")]


async def test_seeing_a_judge_is_recorded_for_blind_annotators(compared_runs: TeamDir) -> None:
    compared_runs.label("alice", "one", {"1.3": (7, 8)})
    async with stage(compared_runs.folder, workspace=compared_runs.workspace, blind=True) as on:
        await on.press("R")
        await on.press("v", "j", "=")
        assert "judged no trace in common that you may see" in on.text
        await on.press("escape", "k", "c")
        assert "1 trace compared" in on.text
    assert passes_revealed(compared_runs, "alice") == [True]


async def test_verdicts_made_with_a_judge_count_on_request(compared_runs: TeamDir) -> None:
    trace = compared_runs.trace("one")
    with compared_runs.store() as store:
        session = Session.open(store, trace, MAST, "alice", blind=False)
        session.accept(next(s.id for s in session.suggestions if s.judge == MODEL))
        session.set_verdict(SLUGS["1.1"], VerdictValue.ABSENT)
        session.finish(open_modes="leave")
    async with stage(compared_runs.folder, workspace=compared_runs.workspace) as on:
        await on.press("R")
        await on.press("c")
        assert "2 verdicts decided with a judge on screen: left out" in on.text
        assert counts(on)["in gold"] == "0"
        await on.press("o")
        assert "counted, so the figures are not independent" in on.text
        assert counts(on)["in gold"] == "1"


async def test_examples_in_a_prompt_are_left_out(compared_runs: TeamDir) -> None:
    run_judge(compared_runs, MODEL, {}, examples=["two"])
    async with stage(compared_runs.folder, workspace=compared_runs.workspace) as on:
        await on.press("R")
        assert isinstance(on.app.screen, RunsScreen)
        assert "1 trace is an example in the prompt" in on.app.screen.detail.text
        await on.press("v", "j", "j", "=")
        assert "2 traces compared · 1 left out, an example in a prompt" in on.text


async def test_columns_fit_a_narrow_terminal(compared_runs: TeamDir) -> None:
    compared_runs.label("alice", "one", {"1.3": (7, 8)})
    path = compared_runs.workspace
    async with stage(compared_runs.folder, workspace=path, size=(70, 20)) as on:
        for keys in ("R", ["enter"], ["escape", "v", "j", "="], ["escape", "c"]):
            await on.press(*keys)
            for table in on.app.screen.query(ColumnTable):
                assert table.row_count
                width = table.lines_area.width
                assert len(table.heading()) <= width
                for row in range(table.row_count):
                    assert table.render_row(row, width).cell_length == width
