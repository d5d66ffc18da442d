"""Work on every trace under paths, with and without worker processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mast_tui.traces.library import read_fully, samples_folder
from mast_tui.traces.model import Trace
from mast_tui.traces.scan.each_trace import each_trace
from tests.pickled_workers import PickledWorkers
from tests.traces.checks import keys_of, texts_of, write_json


def trace_facts(trace: Trace) -> tuple[Any, ...]:
    """Return the parts of a trace that another process might read differently."""
    read_fully(trace)
    texts = texts_of(trace)
    keys = keys_of(trace)
    return trace.identity, trace.meta, tuple(trace.problems), keys, texts


def facts_by_file(paths: list[Path], workers: PickledWorkers | None) -> list[tuple[Any, ...]]:
    actual = []
    for report, results in each_trace(paths, trace_facts, workers):
        ids = [trace.identity.trace_id for trace in report.traces]
        facts = (report.path, report.format, report.skipped, report.failed, report.problems)
        actual.append((*facts, ids, list(results)))
    return actual


def chat(*messages: str) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": message} for message in messages]}


def test_workers_read_the_samples_alike() -> None:
    paths = [samples_folder()]
    assert facts_by_file(paths, PickledWorkers()) == facts_by_file(paths, None)


def test_repeated_ids_become_unique_as_without_workers(tmp_path: Path) -> None:
    for name, text in (("a", "one"), ("b", "two"), ("c", "one")):
        (tmp_path / name).mkdir()
        write_json(tmp_path / name / "run.json", {"id": "same", **chat(text, "and so on")})
    (tmp_path / "b" / "outcomes.csv").write_text(
        "trace,outcome,model\nrun.json,failed,m-1\nnowhere.json,failed,m-2\n"
    )
    expected = facts_by_file([tmp_path], None)
    assert facts_by_file([tmp_path], PickledWorkers()) == expected
    assert any("m-1" in str(facts) for facts in expected)
    assert [facts[2] for facts in expected if facts[2]], "the third file is a copy"


def test_a_file_whose_worker_was_killed_has_failed(tmp_path: Path) -> None:
    for name in "abc":
        write_json(tmp_path / f"{name}.json", chat(name))
    workers = PickledWorkers(lost=[2, 3, 4])
    actual = facts_by_file([tmp_path], workers)
    assert [facts[3] is None for facts in actual] == [True, False, True]
    assert "was killed" in actual[1][3]
    assert actual[::2] == facts_by_file([tmp_path], None)[::2]


def test_progress_is_reported(tmp_path: Path) -> None:
    for name in "abc":
        write_json(tmp_path / f"{name}.json", chat(name))
    (tmp_path / "notes.md").write_text("nothing")
    calls: list[tuple[int, int]] = []
    workers = PickledWorkers()
    for _ in each_trace([tmp_path], trace_facts, workers, tell=lambda *pair: calls.append(pair)):
        pass
    assert [total for _, total in calls] == [4, 4, 4]
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert json.dumps(calls[-1]) == "[3, 4]"
