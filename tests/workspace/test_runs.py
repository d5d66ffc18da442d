"""Runs of judges: settings, notes on traces, usage, and answers of models."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs

from mast_tui.labels import QuoteCounts
from mast_tui.workspace import Asked, Run, RunSettings, RunTrace, Usage, Workspace
from mast_tui.workspace.events import codec
from tests.workspace.build import MAST

JUDGE = "judge:m-1@0123abcd"
PARAMETERS = (("samples", "3"), ("temperature", "0"))
EXAMPLES = ("run-7", "run-9")
SETTINGS = RunSettings("m-1", "0123abcd", "models.example", PARAMETERS, EXAMPLES, 0.5, 2.0)


def asked(run: str, key: str = "key", *, answer: str = "{}", usable: bool = True) -> Asked:
    return Asked(run, "run-1", key, answer, "stop", "json_schema", 100, 10, usable)


def only_run(workspace: Workspace) -> Run:
    (run,) = workspace.runs()
    return run


def test_run_keeps_settings_form_and_ending(workspace: Workspace) -> None:
    run_id = workspace.start_run(JUDGE, MAST.ref, note="night", settings=SETTINGS)
    assert only_run(workspace).settings == SETTINGS
    workspace.set_run_answer_form(run_id, "json_object")
    run = only_run(workspace)
    assert run.settings == structs.replace(SETTINGS, form="json_object")
    assert (run.note, run.finished_at, run.ending) == ("night", None, None)
    workspace.finish_run(run_id, ending="the allowance of 1000 tokens is spent")
    run = only_run(workspace)
    assert run.finished_at is not None
    assert run.ending == "the allowance of 1000 tokens is spent"


def test_notes_on_traces_are_stored_completely(workspace: Workspace) -> None:
    run = workspace.start_run(JUDGE, MAST.ref)
    remarks = ("#4 was cut", "1.3 is missing")
    first = RunTrace("a", 3, None, QuoteCounts(1, 1, 0, 1, 2, 3), 5, remarks)
    workspace.note_run_trace(run, RunTrace("a", 0, "no answer"))
    workspace.note_run_trace(run, first)
    workspace.note_run_trace(run, RunTrace("b", 1, quotes=QuoteCounts(reworded=1), windows=1))
    stored = only_run(workspace)
    assert stored.traces[0] == first
    assert (stored.findings, stored.quotes) == (4, QuoteCounts(1, 1, 1, 1, 2, 3))
    assert (stored.quotes.all, stored.quotes.found) == (9, 3)


def test_quotes_of_earlier_versions_count_as_unsorted(tmp_path: Path) -> None:
    path = tmp_path / "w.db"
    with closing(Workspace.open(path)) as workspace:
        run = workspace.start_run(JUDGE, MAST.ref)
        workspace.note_run_trace(run, RunTrace("a", 5, quotes=QuoteCounts(3, not_found=2)))
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("UPDATE run_traces SET quote_kinds = NULL")
        raw.commit()
    with closing(Workspace.open(path)) as workspace:
        quotes = only_run(workspace).quotes
    assert quotes == QuoteCounts(unsorted=3, not_found=2)
    assert (quotes.all, quotes.found, quotes.summary) == (5, 3, "2 not found, 3 unsorted")


def test_usage_is_summed_by_run_with_unusable_answers(workspace: Workspace) -> None:
    first = workspace.start_run(JUDGE, MAST.ref, settings=SETTINGS)
    other = workspace.start_run(JUDGE, MAST.ref)
    workspace.start_run("judge:rules@1", MAST.ref)
    workspace.record_asked(asked(first))
    workspace.record_asked(asked(first, "another", usable=False))
    workspace.record_asked(asked(other))
    usage = [Usage(2, 200, 20), Usage(1, 100, 10), Usage()]
    runs = workspace.runs()
    assert [run.usage for run in runs] == usage
    assert [workspace.usage(run.id) for run in runs] == usage
    assert [run.cost for run in runs] == [(200 * 0.5 + 20 * 2.0) / 1e6, None, None]


def test_last_usable_answer_is_found_in_any_run(workspace: Workspace) -> None:
    first, second = (workspace.start_run(JUDGE, MAST.ref) for _ in range(2))
    assert workspace.find_answer("key") is None
    workspace.record_asked(asked(first, usable=False))
    assert workspace.find_answer("key") is None
    workspace.record_asked(asked(first, answer='{"a": "ü\ud800"}'))
    answer = workspace.find_answer("key")
    assert answer is not None
    assert answer == structs.replace(asked(first, answer='{"a": "ü\ufffd"}'), at=answer.at)
    assert answer.at
    workspace.record_asked(structs.replace(asked(second, answer="later"), counted=False))
    workspace.record_asked(asked(second, answer="of no use", usable=False))
    answer = workspace.find_answer("key")
    assert answer is not None
    assert (answer.run_id, answer.answer, answer.counted) == (second, "later", False)
    assert workspace.find_answer("other") is None


def test_last_unfinished_run_can_be_resumed(workspace: Workspace) -> None:
    assert workspace.unfinished_run(JUDGE, MAST.ref) is None
    first = workspace.start_run(JUDGE, MAST.ref)
    last = workspace.start_run(JUDGE, MAST.ref, settings=SETTINGS)
    workspace.start_run("judge:rules@1", MAST.ref)
    workspace.start_run(JUDGE, "other@1")
    workspace.note_run_trace(last, RunTrace("a", 1))
    workspace.note_run_trace(first, RunTrace("b", 1))
    workspace.record_asked(asked(last))
    runs = {run.id: run for run in workspace.runs()}
    assert workspace.unfinished_run(JUDGE, MAST.ref) == runs[last]
    assert (runs[last].usage.requests, len(runs[last].traces)) == (1, 1)
    workspace.finish_run(last)
    assert workspace.unfinished_run(JUDGE, MAST.ref) == runs[first]
    workspace.finish_run(first, ending="stopped")
    assert workspace.unfinished_run(JUDGE, MAST.ref) is None


def test_imported_run_brings_its_usage_and_is_not_resumed(
    workspace: Workspace, other: Workspace
) -> None:
    run_id = other.start_run(JUDGE, MAST.ref, settings=SETTINGS)
    other.record_asked(asked(run_id))
    other.note_run_trace(run_id, RunTrace("a", 1, windows=1))
    early = only_run(other)
    other.record_asked(asked(run_id, "another"))
    other.set_run_answer_form(run_id, "text")
    other.note_run_trace(run_id, RunTrace("a", 2, windows=2))
    other.finish_run(run_id, ending="spent")
    late = only_run(other)
    for run in (early, late, late):
        workspace.add_run(run)
        assert only_run(workspace) == run
        assert workspace.unfinished_run(JUDGE, MAST.ref) is None
    workspace.add_run(early)
    stored = only_run(workspace)
    assert (stored.usage, stored.ending) == (Usage(2, 200, 20), "spent")
    assert stored.finished_at == late.finished_at
    # Its own export changes nothing of a run.
    for run in (early, late, structs.replace(late, usage=Usage(9, 9, 9))):
        other.add_run(run)
        assert only_run(other) == late


def test_impossible_settings_and_usage_are_named() -> None:
    settings = {"model": "m", "prompt": "p", "host": "h"}
    for values, reason in (
        ({"prompt": "p", "host": "h"}, "'model'"),
        (settings | {"parameters": {"a": 1}}, "parameters"),
        (settings | {"price_in": "2"}, "price_in"),
    ):
        with pytest.raises(ValueError, match=reason):
            codec.settings_from_values(values, None)
    with pytest.raises(ValueError, match=">= 0"):
        codec.read({"tokens_in": -1}, Usage, "usage")
