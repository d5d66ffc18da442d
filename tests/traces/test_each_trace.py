"""Work on every trace under paths, with and without worker processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mast_tui.traces.library import read_fully, samples_folder
from mast_tui.traces.model import Trace
from mast_tui.traces.scan.each_trace import each_trace
from tests.pickled_workers import PickledWorkers
from tests.traces.checks import write_json


def described(trace: Trace) -> tuple[Any, ...]:
    """All that may differ where a trace is read elsewhere."""
    read_fully(trace)
    texts = [trace.text(index) for index in range(len(trace))]
    keys = [trace.span(index).key for index in range(len(trace))]
    return trace.identity, trace.meta, tuple(trace.problems), keys, texts


def all_of(paths: list[Path], workers: PickledWorkers | None) -> list[tuple[Any, ...]]:
    actual = []
    for report, results in each_trace(paths, described, workers):
        ids = [trace.identity.trace_id for trace in report.traces]
        facts = (report.path, report.format, report.skipped, report.failed, report.problems)
        actual.append((*facts, ids, list(results)))
    return actual


def chat(*messages: str) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": message} for message in messages]}


def test_workers_read_the_samples_alike() -> None:
    paths = [samples_folder()]
    assert all_of(paths, PickledWorkers()) == all_of(paths, None)


def test_repeated_ids_become_unique_as_without_workers(tmp_path: Path) -> None:
    for name, words in (("a", "one"), ("b", "two"), ("c", "one")):
        (tmp_path / name).mkdir()
        write_json(tmp_path / name / "run.json", {"id": "same", **chat(words, "and so on")})
    (tmp_path / "b" / "outcomes.csv").write_text(
        "trace,outcome,model\nrun.json,failed,m-1\nnowhere.json,failed,m-2\n"
    )
    plain = all_of([tmp_path], None)
    assert all_of([tmp_path], PickledWorkers()) == plain
    assert any("m-1" in str(one) for one in plain)
    assert [one[2] for one in plain if one[2]], "the third is the first once more"


def test_a_file_removed_meanwhile_has_failed(tmp_path: Path) -> None:
    for name in "abc":
        write_json(tmp_path / f"{name}.json", chat(name))
    lost = PickledWorkers(lost=[2, 3, 4])
    actual = all_of([tmp_path], lost)
    assert [one[3] is None for one in actual] == [True, False, True]
    assert "was killed" in actual[1][3]
    assert actual[::2] == all_of([tmp_path], None)[::2]


def test_progress_is_reported(tmp_path: Path) -> None:
    for name in "abc":
        write_json(tmp_path / f"{name}.json", chat(name))
    (tmp_path / "notes.md").write_text("nothing")
    heard: list[tuple[int, int]] = []
    workers = PickledWorkers()
    for _ in each_trace([tmp_path], described, workers, tell=lambda *so_far: heard.append(so_far)):
        pass
    assert [total for _, total in heard] == [4, 4, 4]
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)
    assert json.dumps(heard[-1]) == "[3, 4]"
