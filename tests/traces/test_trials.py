"""Folders that hold one run of a benchmark in several files, and files of OpenHands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.library import read_file, read_fully, scan
from mast_tui.traces.model import AnswerKey, FileReport, Outcome, Trace
from mast_tui.traces.readers.openhands import is_sdk_event, read_event_folder
from mast_tui.traces.scan.library_cache import LibraryCache
from tests.traces.checks import check_sound, kinds_and_texts, texts_of, write_json, write_json_lines
from tests.traces.golden import golden_text
from tests.traces.nested_runs import MAIN, run_message, write_rollout


def read_single_trace(reports: list[FileReport]) -> Trace:
    (trace,) = [trace for report in reports for trace in report.traces]
    read_fully(trace)
    check_sound(trace)
    return trace


def published_layout_itbench(folder: Path) -> Path:
    """Write the workspace of a trial with all files of the agent runner; return its folder."""
    trial = folder / "7" / "2"
    (trial / "traces").mkdir(parents=True)
    (trial / "AGENTS.md").write_text("be an engineer")
    (trial / "config.toml").write_text('model = "m"')
    write_json(trial / "agent_output.json", {"entities": []})
    write_rollout(
        trial / "sessions" / "2026" / "03" / "01" / "rollout-x.jsonl",
        MAIN,
        None,
        run_message(1, "user", "diagnose"),
        run_message(5, "assistant", "told by the rollout"),
    )
    write_json_lines(
        trial / "traces" / "stdout.log",
        {"type": "thread.started", "thread_id": "t-1"},
        {"type": "turn.started"},
        {
            "type": "item.completed",
            "item": {"id": "item_0", "type": "agent_message", "text": "told by stdout"},
        },
    )
    attributes = {"event.name": "codex.user_prompt", "conversation.id": "c-1", "prompt": "told"}
    log = {"time_unix_nano": 1, "body": None, "attributes": attributes}
    logs = [{"resource": {"attributes": {}}, "scope_logs": [{"scope": {}, "log_records": [log]}]}]
    write_json_lines(
        trial / "traces" / "traces.jsonl",
        {"timestamp": "2026-03-01T10:00:00Z", "path": "/v1/logs", "data": {"resource_logs": logs}},
    )
    return trial


def test_a_trial_without_a_rollout_is_its_output_else_its_telemetry(tmp_path: Path) -> None:
    trial = published_layout_itbench(tmp_path)
    for path in (trial / "sessions").rglob("*.jsonl"):
        path.unlink()
    reports = list(scan([tmp_path]))
    assert "told by stdout" in texts_of(read_single_trace(reports))
    assert [report.format for report in reports if report.format] == ["codex-exec"]
    (trial / "traces" / "stdout.log").unlink()
    reports = list(scan([tmp_path]))
    assert [report.format for report in reports if report.format] == ["codex-otel-logs"]
    assert texts_of(read_single_trace(reports)) == ["told"]


@pytest.mark.parametrize(
    ("score", "outcome", "expected"),
    [
        ({"calculation_recall": 1.0, "calculation_precision": 0.5}, Outcome.SUCCEEDED, 1.0),
        ({"calculation_recall": 0.5}, Outcome.FAILED, 0.5),
        ({"score": 100, "justification": "found it"}, Outcome.SUCCEEDED, 1.0),
        ({"score": 0}, Outcome.FAILED, 0.0),
        ("no score", Outcome.UNKNOWN, None),
    ],
)
def test_the_evaluation_is_the_outcome_of_a_trial(
    tmp_path: Path, score: object, outcome: Outcome, expected: float | None
) -> None:
    trial = published_layout_itbench(tmp_path)
    write_json(trial / "judge_output.json", {"scores": {"root_cause_entity": score}})
    meta = read_single_trace(list(scan([tmp_path]))).meta
    assert (meta.outcome, meta.score, meta.benchmark) == (outcome, expected, "ITBench")
    metric = "root_cause_entity"
    verdict = score if isinstance(score, dict) else {"score": score}
    assert dict(meta.answer_key.explanations) == (
        {f"{metric} justification": "found it"} if "justification" in verdict else {}
    )
    assert [text for _name, text in meta.answer_key.scores] == [
        str(value) for name, value in verdict.items() if name != "justification"
    ]


def test_an_evaluation_of_many_trials_names_them_by_folder(tmp_path: Path) -> None:
    published_layout_itbench(tmp_path / "outputs" / "agent_outputs")

    def evaluation(incident: object, trial: object, recall: float) -> dict[str, object]:
        scores = {"root_cause_entity": {"calculation_recall": recall}}
        return {"incident_id": incident, "trial_id": trial, "scores": scores}

    results = [evaluation("7", "1", 1.0), evaluation(7, 2, 0.0), evaluation("8", "2", 1.0)]
    write_json(tmp_path / "outputs" / "evaluation_results.json", {"raw_results": results})
    trace = read_single_trace(list(scan([tmp_path / "outputs" / "agent_outputs"])))
    assert trace.meta.outcome is Outcome.FAILED


def test_a_published_trajectory_has_its_scenario_run_and_score(tmp_path: Path) -> None:
    """The published set has a session beside the outputs of the agent and the judge."""
    scenarios = tmp_path / "ReAct-Agent-Trajectories" / "Model-A" / "sre"
    for scenario, run, recall in ((3, 1, 0.1), (3, 2, 1.0), (12, 1, 0.0)):
        folder = scenarios / f"Scenario-{scenario}" / str(run)
        folder.mkdir(parents=True)
        write_json(folder / "agent_output.json", {"entities": []})
        scores = {"root_cause_entity": {"calculation_recall": recall}}
        write_json(folder / "judge_output.json", {"scores": scores})
        session = f"{MAIN[:-4]}{scenario:02}{run:02}"
        write_rollout(folder / "session.jsonl", session, None, run_message(1, "user", "diagnose"))
    metas = [trace.meta for report in scan([tmp_path]) for trace in report.traces]
    facts = {(meta.task_id, meta.trial, meta.score, meta.benchmark) for meta in metas}
    assert facts == {
        ("Scenario-3", 1, 0.1, "ITBench sre"),
        ("Scenario-3", 2, 1.0, "ITBench sre"),
        ("Scenario-12", 1, 0.0, "ITBench sre"),
    }
    assert {meta.outcome for meta in metas if meta.score == 1.0} == {Outcome.SUCCEEDED}


def published_layout_harbor(folder: Path, reward: float | None) -> Path:
    trial = folder / "solve-it__abc"
    (trial / "agent").mkdir(parents=True)
    (trial / "verifier").mkdir()
    (trial / "verifier" / "test-stdout.txt").write_text("1 passed")
    (trial / "agent" / "setup.txt").write_text("installing")
    write_json(
        trial / "result.json",
        {
            "trial_name": "solve-it__abc",
            "task_name": "solve-it",
            "source": "terminal-bench",
            "agent_info": {"name": "terminus-2", "model_info": {"name": "m-7"}},
            "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
        },
    )
    step = {"step_id": 1, "source": "user", "message": "solve it"}
    answer = {"step_id": 2, "source": "agent", "message": "solved"}
    write_json(
        trial / "agent" / "trajectory.json",
        {
            "schema_version": "ATIF-v1.4",
            "session_id": "s-1",
            "agent": {"name": "terminus-2", "version": "1"},
            "steps": [step, answer],
        },
    )
    return trial


@pytest.mark.parametrize(
    ("reward", "outcome"),
    [(1.0, Outcome.SUCCEEDED), (0.0, Outcome.FAILED), (None, Outcome.UNKNOWN)],
)
def test_a_harbor_trial_is_its_trajectory_with_the_verifier_s_outcome(
    tmp_path: Path, reward: float | None, outcome: Outcome
) -> None:
    published_layout_harbor(tmp_path, reward)
    reports = list(scan([tmp_path]))
    trace = read_single_trace(reports)
    assert texts_of(trace) == ["solve it", "solved"]
    assert trace.meta.outcome is outcome
    assert trace.meta.model == "m-7"
    assert trace.meta.benchmark == "terminal-bench"
    assert trace.meta.answer_key == AnswerKey(
        scores=() if reward is None else (("reward", str(reward)),),
        tests=(("test-stdout.txt", "1 passed"),),
    )
    assert [report.skipped for report in reports if report.skipped] == [
        "3 other files of the Terminal-Bench trial"
    ]


def published_layout_terminal_bench(folder: Path) -> Path:
    trial = folder / "hello.1-of-1"
    answers = [
        '{"analysis": "empty folder", "plan": "write it", "commands": '
        '[{"keystrokes": "echo hi > a\\n", "duration": 1}], "task_complete": false}',
        '```json\n{"state_analysis": "written", "explanation": "done", "commands": [], '
        '"is_task_complete": true}\n```',
    ]
    for number, answer in enumerate(answers):
        episode = trial / "agent-logs" / f"episode-{number}"
        episode.mkdir(parents=True)
        (episode / "prompt.txt").write_text(["write a file", "New Terminal Output: $"][number])
        (episode / "response.txt").write_text(answer)
        (episode / "debug.json").write_text("{}")
    (trial / "sessions").mkdir()
    (trial / "sessions" / "agent.cast").write_text('{"version": 2}\n[0.1, "o", "$"]\n')
    write_json(
        trial / "results.json",
        {"id": "u-1", "task_id": "hello", "instruction": "write a file", "is_resolved": False},
    )
    return trial


def test_a_trial_without_a_run_is_a_problem(tmp_path: Path) -> None:
    trial = published_layout_itbench(tmp_path)
    for path in (*(trial / "sessions").rglob("*.jsonl"), *(trial / "traces").iterdir()):
        path.write_text("")
    (report,) = scan([tmp_path])
    assert report.skipped == "ITBench trial without a trace of its run"
    assert read_file(trial, named=True).failed == "ITBench trial with 0 runs; give one of them"


def published_layout_openhands_events(folder: Path) -> Path:
    events = folder / "conversation" / "events"
    events.mkdir(parents=True)
    for number, (source, text) in enumerate([("user", "mend it"), ("agent", "mended")]):
        write_json(
            events / f"event-{number:05}-ab{number}.json",
            {
                "kind": "MessageEvent",
                "id": f"ab{number}",
                "timestamp": f"2026-03-01T10:00:0{number}",
                "source": source,
                "llm_message": {
                    "role": "user" if source == "user" else "assistant",
                    "content": [{"type": "text", "text": text}],
                },
            },
        )
    return events


def test_a_cached_trial_is_used_until_a_file_changes(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    library = tmp_path / "library.db"
    events = published_layout_openhands_events(folder)
    published_layout_terminal_bench(folder)

    def scan_cached() -> list[Trace]:
        with LibraryCache(library) as cache:
            return [trace for report in scan([folder], library=cache) for trace in report.traces]

    assert [len(trace) for trace in scan_cached()] == [2, 5]
    cached = scan_cached()
    assert [(len(trace), trace.loaded.spans) for trace in cached] == [(0, 2), (0, 5)]
    for trace in cached:
        read_fully(trace)
    assert [len(trace) for trace in cached] == [2, 5]
    (events / "event-00002-x.json").write_text("not an event")
    assert [len(trace) for trace in scan_cached()] == [2, 0]


SDK_EVENTS = [
    json.loads(line) for line in golden_text("openhands", "a-stream-of-the-sdk").splitlines()
]


def test_files_of_generation_0_are_read_by_number(tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    for number in (10, 9):
        event: dict[str, object] = {
            "id": number,
            "timestamp": f"2025-03-01T10:00:{number:02}",
            "source": "user",
        }
        event |= {"action": "message", "args": {"content": str(number)}}
        write_json(events / f"{number}.json", event)
    report = read_event_folder(events)
    assert report is not None
    assert kinds_and_texts(report.traces[0]) == [("message", "9"), ("message", "10")]
    assert not report.traces[0].identity.native


def test_other_folders_are_no_run(tmp_path: Path) -> None:
    assert read_event_folder(tmp_path / "absent") is None
    assert read_event_folder(tmp_path) is None
    write_json(tmp_path / "1.json", {"history": [{"role": "user", "content": "x"}]})
    assert read_event_folder(tmp_path) is None


@pytest.mark.parametrize(
    ("kind", "source", "expected"),
    [
        ("SomethingNewEvent", "agent", True),
        ("SomethingNewEvent", "cron", False),
        ("SomethingNew", "agent", False),
        ("MessageEvent", "agent", True),
    ],
)
def test_a_new_kind_of_event_is_recognised_by_ending_and_source(
    kind: str, source: str, expected: bool
) -> None:
    assert is_sdk_event({**SDK_EVENTS[0], "kind": kind, "source": source}) is expected
