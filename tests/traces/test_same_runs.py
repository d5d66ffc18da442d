"""Traces of one run in several formats, matched by their texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.library import scan
from mast_tui.traces.model import Trace
from mast_tui.traces.same_runs import same_runs
from tests.traces.checks import CORPUS, needs_corpus

TASK = "Find out why the checkout of the shop is slow, and mend it."
ANSWERS = [
    f"I have looked at {part} of the checkout now, and it says {message} in every second line."
    for part, message in (("the log", "timeout"), ("the queue", "full"), ("the disk", "read only"))
]


def write(path: Path, answers: list[str], task: str = TASK, *, as_history: bool = False) -> None:
    """Write a run as messages, or in the format of Who&When with other white space."""
    steps = [{"role": "user", "content": task}]
    steps += [{"role": "assistant", "content": text} for text in answers]
    if as_history:
        record = {
            "history": [
                {"role": step["role"], "content": step["content"].replace(" ", "\n")}
                for step in steps
            ],
            "question": task,
        }
        path.write_text(json.dumps(record))
    else:
        path.write_text(json.dumps({"messages": steps}))


def matches_of(folder: Path) -> dict[str, list[str]]:
    traces = [trace for report in scan([folder]) for trace in report.traces]
    names = {trace.identity.trace_id: trace.path.name for trace in traces}
    return {
        names[trace_id]: [names[match_id] for match_id in match_ids]
        for trace_id, match_ids in same_runs(traces).items()
    }


def test_one_run_in_two_formats_is_recognised(tmp_path: Path) -> None:
    write(tmp_path / "a.json", ANSWERS)
    write(tmp_path / "b.json", ANSWERS, as_history=True)
    assert matches_of(tmp_path) == {"a.json": ["b.json"], "b.json": ["a.json"]}


def test_another_run_of_one_task_is_no_match(tmp_path: Path) -> None:
    write(tmp_path / "a.json", ANSWERS)
    write(tmp_path / "b.json", [*ANSWERS[:2], ANSWERS[2].replace("disk", "network")])
    assert matches_of(tmp_path) == {}


def test_two_short_texts_are_no_match(tmp_path: Path) -> None:
    write(tmp_path / "a.json", ANSWERS[:2])
    write(tmp_path / "b.json", ANSWERS[:2], as_history=True)
    assert matches_of(tmp_path) == {}


def test_runs_of_another_task_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.json", ANSWERS)
    write(tmp_path / "b.json", ANSWERS, "Another task, of which the words are others altogether.")
    traces: list[Trace] = [trace for report in scan([tmp_path]) for trace in report.traces]
    monkeypatch.setattr("mast_tui.traces.same_runs._agent_texts", pytest.fail)
    assert same_runs(traces) == {}


@needs_corpus
def test_real_runs_of_two_benchmarks_are_matched() -> None:
    folders = [CORPUS / "agentrx", CORPUS / "who-and-when", CORPUS / "tau-bench"]
    traces = [trace for report in scan(folders) for trace in report.traces]
    by_id = {trace.identity.trace_id: trace for trace in traces}
    pairs = same_runs(traces)
    assert len(pairs) == 16
    for trace_id, match_ids in pairs.items():
        (match,) = (by_id[match_id] for match_id in match_ids)
        # The file of one run is named by the id of its task, which the other file contains.
        ids = {by_id[trace_id].meta.task_id, match.meta.task_id} - {None}
        assert ids <= {by_id[trace_id].path.stem, match.path.stem}
        assert {by_id[trace_id].path.parent.name, match.path.parent.name} == {
            "magentic-one",
            "hand-crafted",
        }
