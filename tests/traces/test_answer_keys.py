"""Facts of a run in its file: task, trial, version, reference, scores and tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.library import read_file, scan
from mast_tui.traces.model import AnswerKey
from mast_tui.traces.readers.converted import line_of
from mast_tui.traces.readers.run_facts import (
    AnswerKeyDraft,
    answer_key_from_json,
    answer_key_of,
    as_json,
    sorted_into_sections,
    task_id_of,
    trial_of,
)
from mast_tui.traces.scan.library_cache import LibraryCache
from tests.traces.checks import CORPUS, needs_corpus, write_json, write_json_lines
from tests.traces.claude_sessions import user
from tests.traces.rollouts import message, meta


def test_fields_are_sorted_into_sections_by_name_and_empty_ones_are_dropped() -> None:
    record = {
        "reward": 0,
        "success": False,
        "ground_truth": "12",
        "mistake_agent": "Coder",
        "expected_actions": [{"name": "book", "arguments": {}}, "look"],
        "gold_patch": ["--- a", "+++ b"],
        "answer": "",
        "failures": [],
        "content": "no part of it",
    }
    assert answer_key_of(record) == AnswerKey(
        expected_actions=(("book", "{}"), ("action", "look")),
        reference=(("ground_truth", "12"),),
        scores=(("reward", "0"), ("success", "false")),
        patch=(("gold_patch", "--- a\n+++ b"),),
        failures=(("mistake_agent", "Coder"),),
    )


@pytest.mark.parametrize("name", ["note", "feedback", "expected"])
def test_ambiguous_names_count_only_where_a_reader_allows_them(name: str) -> None:
    assert answer_key_of({name: "x"}) == AnswerKey()
    assert answer_key_of({name: "x"}, {name: "failures"}).failures == ((name, "x"),)


@pytest.mark.parametrize(
    ("value", "scores", "explanations"),
    [
        (0.5, {"s": "0.5"}, {}),
        ({"db": 1.0, "nl": {"met": 0}}, {"s db": "1.0", "s nl met": "0"}, {}),
        ({"score": 40, "justification": "half"}, {"s": "40"}, {"s justification": "half"}),
        ([{"name": "a", "value": 1, "comment": "ok"}], {"a": "1"}, {"a comment": "ok"}),
        ([{"overall": 3}], {"s overall": "3"}, {}),
    ],
)
def test_scores_are_split_into_numbers_and_explanations(
    value: object, scores: dict[str, str], explanations: dict[str, str]
) -> None:
    draft = AnswerKeyDraft()
    draft.add_score("s", value)
    assert (dict(draft.key().scores), dict(draft.key().explanations)) == (scores, explanations)


def test_merging_adds_the_missing_entries_once() -> None:
    first = AnswerKey(scores=(("a", "1"),))
    second = AnswerKey(scores=(("a", "1"), ("b", "2")), tests=(("t", "ok"),))
    assert first.with_all_of(second) == second
    assert list(second.sections()) == [("scores", second.scores), ("tests", second.tests)]


def test_answer_keys_are_written_and_read_without_loss() -> None:
    key = AnswerKey(scores=(("a", "1"), ("a", "2")), other=(("", ""),))
    assert answer_key_from_json(json.loads(json.dumps(as_json(key)))) == key
    shapes: tuple[object, ...] = (None, 5, [], {"scores": 5}, {"scores": [5]}, {"unknown": []})
    for broken in shapes:
        assert answer_key_from_json(broken) == AnswerKey()


def test_an_older_converted_file_keeps_its_answer_key(tmp_path: Path) -> None:
    record = {"question": "?", "history": [{"role": "user", "content": "?"}], "mistake_agent": "A"}
    (trace,) = read_file(write_json(tmp_path / "a.json", record), named=True).traces
    line = json.loads(line_of(trace))
    del line["answer_key"]
    path = tmp_path / "b.jsonl"
    path.write_text(json.dumps(line, separators=(",", ":")) + "\n")
    (older,) = read_file(path, named=True).traces
    assert older.meta.answer_key == trace.meta.answer_key
    assert sorted_into_sections([("x", "y")]) == AnswerKey(other=(("x", "y"),))


def test_answer_keys_are_not_written_for_blind_annotators(tmp_path: Path) -> None:
    record = {"ground_truth": "SECRET", "history": [{"role": "user", "content": "?"}], "reward": 1}
    (trace,) = read_file(write_json(tmp_path / "a.json", record), named=True).traces
    assert b"SECRET" in line_of(trace)
    blind = json.loads(line_of(trace, hides_outcomes=True))
    assert (blind["answer_key"], blind["hidden"], blind["score"]) == ({}, {}, None)


@needs_corpus
@pytest.mark.parametrize(
    ("path", "sections"),
    [
        ("tau-bench/retail.json", {"expected_actions", "scores", "other"}),
        ("who-and-when/hand-crafted/1.json", {"reference", "scores", "failures"}),
        ("swe-agent/pydicom-1458.traj", {"patch"}),
        ("inspect/docent_log.eval", {"reference", "scores", "explanations", "other"}),
    ],
)
def test_real_files_have_answer_keys(path: str, sections: set[str]) -> None:
    trace = read_file(CORPUS / path, named=True).traces[0]
    assert {name for name, _entries in trace.meta.answer_key.sections()} == sections


STEPS = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [((None, 7), "7"), (("a-1", 7), "a-1"), ((True, ""), None), (("a\nb",), None), (({},), None)],
)
def test_an_id_is_a_short_text_or_a_number(
    candidates: tuple[object, ...], expected: str | None
) -> None:
    assert task_id_of(*candidates) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(0, 0), (3, 3), (-1, None), (True, None), ("1", None), (1.5, None)]
)
def test_a_trial_is_a_number_from_0(value: object, expected: int | None) -> None:
    assert trial_of(value) == expected


def test_task_and_trial_are_read_cached_and_converted(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    records = [{"task_id": 3, "trial": 1, "reward": 1, "info": {}, "traj": STEPS}]
    path = folder / "tau.json"
    path.write_text(json.dumps(records))
    (trace,) = read_file(path, named=True).traces
    assert (trace.meta.task_id, trace.meta.trial) == ("3", 1)
    for _ in range(2):  # the second scan uses the cache
        with LibraryCache(tmp_path / "library.db") as library:
            (cached,) = next(iter(scan([folder], library=library))).traces
            assert (cached.meta.task_id, cached.meta.trial) == ("3", 1)
            assert (cached.summary.task_id, cached.summary.trial) == ("3", 1)
    converted = tmp_path / "converted.jsonl"
    converted.write_bytes(line_of(trace))
    (converted_trace,) = read_file(converted, named=True).traces
    assert (converted_trace.meta.task_id, converted_trace.meta.trial) == ("3", 1)


ATIF = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s",
    "agent": {"name": "a", "version": "4.2"},
    "steps": [{"step_id": 1, "source": "user", "message": "go"}],
}
STREAM = [
    {"type": "system", "subtype": "init", "session_id": "s", "claude_code_version": "2.2.0"},
    {"type": "user", "session_id": "s", "message": {"role": "user", "content": "go"}},
]
INSPECT = {
    "version": 2,
    "status": "success",
    "eval": {"task": "t", "model": "m", "packages": {"inspect_ai": "0.3.210"}},
    "samples": [
        {"id": 1, "epoch": 1, "input": "go", "messages": [{"role": "user", "content": "go"}]}
    ],
}
OTEL = {
    "name": "chat",
    "context": {"trace_id": "1" * 32, "span_id": "1" * 16},
    "start_time": "2026-03-01T09:00:00Z",
    "attributes": {"gen_ai.prompt": "go", "gen_ai.operation.name": "chat"},
}
RESOURCE = {"service.name": "desk", "service.version": "7.1.0"}
OTLP_SPAN = {"traceId": "1" * 32, "spanId": "1" * 16, "name": "chat", "startTimeUnixNano": "1"}
OTLP = {
    "resourceSpans": [
        {
            "resource": {
                "attributes": [{"key": "service.version", "value": {"stringValue": "7.1.0"}}]
            },
            "scopeSpans": [{"spans": [OTLP_SPAN]}],
        }
    ]
}
LANGFUSE = {
    "id": "o",
    "traceId": "t",
    "type": "GENERATION",
    "startTime": "2026-03-01T09:00:00Z",
    "input": "go",
    "metadata": {"resourceAttributes": RESOURCE},
}


@pytest.mark.parametrize(
    ("records", "version"),
    [
        pytest.param([meta(cli_version="0.151.0"), message("user", "go")], "0.151.0", id="codex"),
        pytest.param([user("u1", None, "go")], "2.1.207", id="claude-code"),
        pytest.param(STREAM, "2.2.0", id="claude-code-stream"),
        pytest.param(ATIF, "4.2", id="atif"),
        pytest.param({**ATIF, "agent": {"name": "a", "version": "unknown"}}, None, id="unknown"),
        pytest.param(INSPECT, "0.3.210", id="inspect"),
        pytest.param(OTLP, "7.1.0", id="otlp"),
        pytest.param({**OTEL, "resource": {"attributes": RESOURCE}}, "7.1.0", id="otel-spans"),
        pytest.param(OTEL, None, id="otel-without-version"),
        pytest.param({"data": [LANGFUSE]}, "7.1.0", id="langfuse"),
    ],
)
def test_the_version_of_the_system_is_read(
    records: object, version: str | None, tmp_path: Path
) -> None:
    """`report --by version` groups by it."""
    if isinstance(records, list):
        path = write_json_lines(tmp_path / "run.jsonl", *records)
    else:
        path = write_json(tmp_path / "run.json", records)
    (trace,) = read_file(path, named=True).traces
    assert trace.meta.version == version
