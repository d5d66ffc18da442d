"""Who&When and AgentRx: published labels on their steps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.import_batch import Incoming
from mast_tui.exchange.importers.labelled_sets import read_agentrx, read_who_and_when
from mast_tui.labels import AnnotatorKind, Severity
from mast_tui.traces.library import read_file
from mast_tui.traces.model import Trace
from tests.exchange.corpus import corpus
from tests.traces.checks import write_json


def texts_by_key(trace: Trace) -> dict[str, str]:
    return {trace.span(i).key: trace.text(i) for i in range(len(trace))}


def who_and_when(folder: Path, **fields: object) -> Path:
    record = {
        "history": [
            {"role": "human", "content": "What is the capital of Peru?"},
            {"role": "Orchestrator (-> Reader)", "content": "Look it up."},
            {"role": "Reader", "content": "It is Cusco."},
        ],
        "question": "What is the capital of Peru?",
        "ground_truth": "Lima",
        "is_corrected": False,
        "mistake_agent": "Reader",
        "mistake_step": "2",
        "mistake_reason": "It did not look it up.",
    }
    return write_json(folder / "7.json", record | fields)


def only_label_text(incoming: Incoming, path: Path) -> str:
    [trace] = read_file(path, named=True).traces
    [label] = incoming.work[0].labels.values()
    assert label.target.first == label.target.last
    assert label.trace_id == trace.identity.trace_id
    return texts_by_key(trace)[label.target.first or ""]


def test_who_and_when_steps_count_from_0(tmp_path: Path) -> None:
    path = who_and_when(tmp_path)
    incoming = read_who_and_when([path])
    assert incoming.problems == ()
    assert only_label_text(incoming, path) == "It is Cusco."
    [work] = incoming.work
    assert next(iter(work.labels.values())).note == "It did not look it up."
    assert (work.annotator, work.author_kind) == ("who-and-when", AnnotatorKind.IMPORTED)
    assert work.finished_at is not None
    [taxonomy] = incoming.taxonomies
    assert [mode.slug for mode in taxonomy.modes] == ["decisive_error"]


def test_a_differing_agent_is_reported(tmp_path: Path) -> None:
    path = who_and_when(tmp_path, mistake_agent="Orchestrator")
    incoming = read_who_and_when([tmp_path])
    assert only_label_text(incoming, path) == "It is Cusco."
    assert any("'Reader'" in note and "'Orchestrator'" in note for note in incoming.notes)
    assert "'Orchestrator'" in next(iter(incoming.work[0].labels.values())).note
    same = read_who_and_when([who_and_when(tmp_path, mistake_step=1, mistake_agent="orchestrator")])
    assert len(same.notes) == 1


def test_problems_of_who_and_when_are_named(tmp_path: Path) -> None:
    for step in ["3", "-1", "two", "", None, True, 1.5]:
        incoming = read_who_and_when([who_and_when(tmp_path, mistake_step=step)])
        assert incoming.work == ()
        [problem] = incoming.problems
        assert "mistake_step" in problem.reason
    plain = write_json(tmp_path / "others" / "a.json", [{"role": "user", "content": "hello"}])
    broken = tmp_path / "others" / "b.json"
    broken.write_text("{")
    incoming = read_who_and_when([tmp_path / "others"])
    assert [problem.file for problem in incoming.problems] == [plain, broken]


@pytest.mark.slow
@pytest.mark.parametrize("part", ["hand-crafted", "algorithm-generated"])
def test_published_who_and_when_labels_name_the_agent_of_their_step(part: str) -> None:
    folder = corpus(f"who-and-when/{part}")
    incoming = read_who_and_when([folder])
    assert incoming.problems == ()
    files = sorted(folder.glob("*.json"))
    assert len(incoming.work) == len(files)
    mismatches = len(incoming.notes) - 1
    assert mismatches <= 0.1 * len(files)
    # The text under the label is the raw message at that step.
    labels = {work.trace_id: next(iter(work.labels.values())) for work in incoming.work}
    for file in files:
        raw = json.loads(file.read_bytes())
        [trace] = read_file(file, named=True).traces
        key = labels[trace.identity.trace_id].target.first
        assert texts_by_key(trace)[key or ""] == raw["history"][int(raw["mistake_step"])]["content"]


RUN = [
    {"role": "human", "content": "Book a table."},
    {"role": "Orchestrator (thought)", "content": "I need a site."},
    {"role": "WebSurfer", "content": "404"},
]


def agentrx(folder: Path, *failures: Mapping[str, object], root: int | str = 1) -> Path:
    record = {
        "trajectory_id": "run-1",
        "failures": [
            {
                "failure_id": number,
                "step_number": 3,
                "step_reason": "The page was not there.",
                "failure_category": "System Failure",
                "category_reason": "The page was not there.",
                "failed_agent": "Websurfer",
            }
            | dict(failure)
            for number, failure in enumerate(failures, start=1)
        ],
        "root_cause": {"failure_id": root, "reason_for_root_cause": "No other page was tried."},
    }
    return write_json(folder / "truth.json", [record])


def test_agentrx_steps_count_from_1_also_without_the_run(tmp_path: Path) -> None:
    path = write_json(tmp_path / "runs" / "run-1.json", RUN)
    incoming = read_agentrx([agentrx(tmp_path, {})])
    assert incoming.problems == ()
    assert only_label_text(incoming, path) == "404"
    assert len(incoming.notes) == 1
    (tmp_path / "alone").mkdir()
    incoming = read_agentrx([agentrx(tmp_path / "alone", {})])
    assert incoming.problems == ()
    assert [work.trace_id for work in incoming.work] == ["run-1"]
    assert next(iter(incoming.work[0].labels.values())).target.first == "/2"
    assert any("run-1" in note and "not found" in note for note in incoming.notes)


ROOTS: tuple[int | str, ...] = (2, "2")


def test_root_causes_are_fatal_and_equal_failures_joined(tmp_path: Path) -> None:
    for root in ROOTS:
        write_json(tmp_path / "run-1.json", RUN)
        [work] = read_agentrx([agentrx(tmp_path, {}, {"step_number": 2}, root=root)]).work
        labels = [*work.labels.values()]
        assert [label.severity for label in labels] == [None, Severity.FATAL]
        assert "No other page was tried." in labels[1].note
        assert labels[0].note == "The page was not there."
    # Two failures of one category at one step are one label.
    write_json(tmp_path / "run-1.json", RUN)
    second = {"step_reason": "Nor was the next.", "category_reason": ""}
    [work] = read_agentrx([agentrx(tmp_path, {}, second, root=2)]).work
    [label] = work.labels.values()
    assert label.severity is Severity.FATAL
    assert label.note.startswith("The page was not there.\nNor was the next.")


def test_spellings_of_a_category_are_recognised(tmp_path: Path) -> None:
    for written, slug in [
        ("Instruction/Plan Adherence Failure", "plan_adherence_failure"),
        ("instruction adherence failure", "plan_adherence_failure"),
        ("Intent Plan Misalignment", "intent_plan_misalignment"),
        ("Intent-Plan Misalignment", "intent_plan_misalignment"),
        ("Intent not supported", "intent_not_supported"),
        ("Invention of new information", "invention_of_new_information"),
    ]:
        write_json(tmp_path / "run-1.json", RUN)
        incoming = read_agentrx([agentrx(tmp_path, {"failure_category": written})])
        assert [label.mode for label in incoming.work[0].labels.values()] == [slug]


BAD_FAILURES: list[dict[str, object]] = [
    {"step_number": 0},
    {"step_number": 4},
    {"step_number": "3"},
    {"failure_category": "Bad luck"},
]


def test_bad_failures_are_problems_and_files_without_labels_refused(tmp_path: Path) -> None:
    for failure in BAD_FAILURES:
        write_json(tmp_path / "run-1.json", RUN)
        [problem] = read_agentrx([agentrx(tmp_path, {}, failure)]).problems
        assert problem.place == "record 0, failure 1"
    with pytest.raises(ExchangeError, match="no AgentRx labels"):
        read_agentrx([write_json(tmp_path / "run-1.json", RUN)])


def tasks(path: Path, *ids: int, trial: int = 0) -> Path:
    """Write runs in the format of τ-bench."""
    roles = ("system", "user", "assistant")
    runs = [
        {
            "task_id": task,
            "reward": 0.0,
            "info": {},
            "traj": [{"role": role, "content": f"{role} {task} {trial}"} for role in roles],
            "trial": trial,
        }
        for task in ids
    ]
    return write_json(path, runs)


def labelled_tasks(path: Path, *steps: tuple[int, int]) -> Path:
    """Write labels on steps (from 1) of tasks."""
    failure = {"failure_id": 1, "failure_category": "System Failure"}
    records = [
        {"trajectory_id": task, "failures": [failure | {"step_number": step}], "root_cause": {}}
        for task, step in steps
    ]
    return write_json(path, records)


def test_a_trajectory_id_may_be_a_tau_bench_task(tmp_path: Path) -> None:
    runs = tasks(tmp_path / "runs.json", 4, 2, 21)
    truth = labelled_tasks(tmp_path / "truth" / "tau.json", (2, 3), (21, 2))
    incoming = read_agentrx([truth, runs])
    assert incoming.problems == ()
    assert not [note for note in incoming.notes if "not found" in note]
    traces = {trace.identity.trace_id: trace for trace in read_file(runs, named=True).traces}
    labelled_texts = {
        traces[work.trace_id].record: texts_by_key(traces[work.trace_id])[label.target.first or ""]
        for work in incoming.work
        for label in work.labels.values()
    }
    assert labelled_texts == {1: "assistant 2 0", 2: "user 21 0"}


def test_ambiguous_tasks_are_refused(tmp_path: Path) -> None:
    runs = [tasks(tmp_path / f"{trial}.json", 2, trial=trial) for trial in range(2)]
    truth = labelled_tasks(tmp_path / "truth" / "tau.json", (2, 3))
    incoming = read_agentrx([truth, *runs])
    [problem] = incoming.problems
    assert "any of 2 runs" in problem.reason
    assert incoming.work == ()
    unambiguous = read_agentrx([truth, runs[0], tasks(tmp_path / "other.json", 2)])
    assert unambiguous.problems == ()
    assert len(unambiguous.work) == 1


def test_published_agentrx_labels_are_on_their_steps() -> None:
    truth = corpus("agentrx/magentic_one_ground_truth.json")
    incoming = read_agentrx([truth])
    assert incoming.problems == ()
    raw = {record["trajectory_id"]: record for record in json.loads(truth.read_bytes())}
    assert len(incoming.work) == len(raw)
    assert len({work.trace_id for work in incoming.work}) == len(raw)
    for work in incoming.work:
        record = raw[work.trace_id.rsplit("-", 1)[0]]
        steps = {f"/{failure['step_number'] - 1}" for failure in record["failures"]}
        assert {label.target.first for label in work.labels.values()} == steps
        assert any(label.severity is Severity.FATAL for label in work.labels.values())
