"""The screen of judge runs: what was run, one's own answers, and nothing while working blind."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from mast_tui.exchange.apply import apply_incoming
from mast_tui.exchange.importers.labelled_sets import read_agentrx
from mast_tui.session import Session
from mast_tui.ui.judge_runs.runs import RunsScreen
from mast_tui.workspace import (
    Asked,
    RunSettings,
    RunTrace,
    TraceRecord,
    Workspace,
    store_judgement,
)
from tests.exchange.corpus import corpus
from tests.ui.office import Office, said
from tests.ui.stage import JUDGE, MAST, SLUGS, Stage, finding, stage


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """One trace, which a judge has run on with two findings; bob has accepted one."""
    office = Office(tmp_path / "set")
    trace = office.trace("one")
    store = Workspace.open(office.workspace)
    store.add_taxonomy(MAST)
    run = store.start_run(JUDGE, MAST.ref)
    store_judgement(
        store,
        judge=JUDGE,
        taxonomy=MAST.ref,
        trace_id=store.register_trace(TraceRecord.from_trace(trace)),
        looks_at=tuple(SLUGS.values()),
        findings=[finding(trace, "1.3", 3, 8), finding(trace, "3.1", 12, 12)],
        run_id=run,
    )
    store.finish_run(run)
    session = Session.open(store, trace, MAST, "bob", blind=False)
    session.accept(session.suggestions[0].id)
    store.close()
    return office


@asynccontextmanager
async def looking(
    office: Office,
    who: str = "alice",
    *,
    blind: bool = False,
    size: tuple[int, int] = (120, 40),
) -> AsyncIterator[Stage]:
    """The screen of runs, read."""
    async with stage(
        office.folder, workspace=office.workspace, annotator=who, blind=blind, size=size
    ) as on:
        await on.press("R")
        assert isinstance(on.app.screen, RunsScreen)
        yield on


def figures(on: Stage) -> list[str]:
    """What stands in the first row after the time."""
    row = next(line for line in on.lines if "rules@" in line)
    return row.split(":", 1)[1].split()[1:]


async def test_only_ones_own_answers_are_counted(office: Office) -> None:
    async with looking(office, "bob") as on:
        assert on.lines[1].split() == ["judge", "when", "traces", "found", "accepted", "waiting"]
        assert figures(on) == ["1", "2", "100%", "1"]
        mode = next(line for line in on.lines if "Step repetition" in line)
        assert mode.split("repetition")[1].split()[:5] == ["1", "1", "0", "0", "100%"]
    async with looking(office, "alice") as on:
        assert figures(on) == ["1", "2", "—", "2"]


async def test_working_blind_nothing_found_is_told(office: Office) -> None:
    async with looking(office, blind=True) as on:
        assert figures(on) == ["1", "hidden", "hidden", "hidden"]
        assert "hidden while you work blind" in on.text
        assert "2 found" not in on.text


async def test_j_runs_the_rules_on_the_librarys_traces(tmp_path: Path) -> None:
    office = Office(tmp_path / "set")
    for name in ("one", "two"):
        office.file(name)
    async with looking(office) as on:
        assert "No judge has run" in on.text
        await on.press("J")
        assert "has looked at 2 traces" in said(on)
        row = figures(on)
        assert row[0] == "2"
        assert int(row[1]) > 0
        await on.press("J")
        assert figures(on)[0] == "2"
        assert sum("rules@" in line for line in on.lines) >= 2


async def test_a_run_that_failed_or_was_broken_off_says_so(office: Office) -> None:
    store = Workspace.open(office.workspace)
    run = store.start_run("judge:some-model@abc", MAST.ref)
    trace_id = store.traces()[0].trace_id
    store.note_run_trace(run, RunTrace(trace_id, 0, "the answer was no JSON"))
    store.close()
    async with looking(office) as on:
        row = next(line for line in on.lines if "some-model" in line)
        assert "!" in row.split("some-model")[0]
        assert "the answer was no JSON" in on.text
        assert "not finished" in on.text


async def test_a_judge_that_was_imported_is_listed_and_compared_with_gold(office: Office) -> None:
    trace = office.trace("one")
    office.label("alice", "one", {"1.3": (3, 8)})
    store = Workspace.open(office.workspace)
    store_judgement(
        store,
        judge="judge:other@1",
        taxonomy=MAST.ref,
        trace_id=store.traces()[0].trace_id,
        looks_at=tuple(SLUGS.values()),
        findings=[finding(trace, "1.3", 3, 8, why="it says so")],
    )
    store.close()
    async with looking(office) as on:
        row = next(line for line in on.lines if "other@1" in line)
        assert row.split()[-3:] == ["1", "—", "1"]
        if "▌" not in row:
            await on.press("j")
        assert "its judgements were imported" in on.text
        await on.press("c")
        assert "other@1 · beside gold" in on.text
        await on.press("tab")
        assert "it says so" in on.text


async def test_the_recorded_answers_of_a_model_are_beside_the_planted_truth(tmp_path: Path) -> None:
    folder = corpus("agentrx-recorded")
    files = sorted((folder / "runs" / "agentrx").glob("*/rep1/*.json"))
    runs = [file for file in files if file.name == "trajectory_ir.json"]
    answers = [file for file in files if file.name == "run1.json"]
    with closing(Workspace.open(tmp_path / "w.db")) as store:
        for name, paths in (
            ("planted", [folder / "ground_truth"]),
            ("judge:gpt-5.5", answers),
        ):
            incoming = read_agentrx([*paths, *runs], name)
            apply_incoming(incoming, store, source="agentrx")
    truth = {}
    for file in (folder / "ground_truth").glob("*.json"):
        planted = json.loads(file.read_text("utf-8"))
        truth[planted["run_task_id"]] = planted["critical_failure_step"]
    results = [json.loads(file.read_text("utf-8"))["detailed_results"][0] for file in answers]
    right = sum(
        result["failures"][0]["step_number"] == truth[result["task_id"]] for result in results
    )
    async with stage(
        *runs, workspace=tmp_path / "w.db", annotator="planted", taxonomy=incoming.taxonomies[0]
    ) as on:
        await on.press("R")
        await on.press("c")
        assert "gpt-5.5 · beside gold" in on.text
        row = next(line for line in on.lines if "all modes" in line)
        assert f"{right} of {len(runs)}" in row
        await on.press("tab")
        assert "judge: present: " in on.text
        assert "planted: present: Fault injected" in on.text


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_all_columns_fit(office: Office, size: tuple[int, int]) -> None:
    async with looking(office, size=size) as on:
        assert on.lines[1].rstrip().endswith("waiting")
        assert len(figures(on)) == 4


async def test_what_a_model_answered_can_be_read_word_for_word(office: Office) -> None:
    store = Workspace.open(office.workspace)
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
    async with looking(office) as on:
        await on.press("enter", "a")
        assert "2 answers" in on.text
        assert "1 of 2" in on.text
        assert "json_schema · 3,000 tokens in, 500 out · not usable" in on.text
        assert "not even [JSON" in on.text
        assert '{"modes": {"1.3": {}}}' in on.text
        await on.press("a")
        assert "not even" not in on.text
    async with looking(office, blind=True) as on:
        await on.press("enter", "a")
        assert "not even" not in on.text
        assert "You work blind" in on.text


async def test_a_run_without_kept_answers_says_so(office: Office) -> None:
    async with looking(office) as on:
        await on.press("enter", "a")
        assert "This workspace has no answer about this trace" in on.text


async def test_what_a_model_was_asked_for_stands_first(office: Office) -> None:
    ways: tuple[tuple[str, str], ...] = (("decisive", "step by step"), ("verify", "each finding"))
    for way in ways:
        store = Workspace.open(office.workspace)
        settings = RunSettings("m", "0123abcd", "here", (way,), price_in=1.0, price_out=2.0)
        store.finish_run(store.start_run("judge:m@0123abcd", MAST.ref, settings=settings))
        store.close()
        async with looking(office) as on:
            told = "asked for the decisive step (step by step)"
            assert (told in on.text) == (way[0] == "decisive")
            assert ("each finding verified" in on.text) == (way[0] == "verify")
