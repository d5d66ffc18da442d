from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import AnswerKey, Outcome, Role, SpanKind, SpanStatus, Trace
from mast_tui.traces.readers.chat.reader import READER
from tests.traces.checks import (
    read_file,
    read_one,
    write_json,
    write_json_lines,
)

CALL = {
    "role": "assistant",
    "content": "let me look",
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "get", "arguments": '{"a":1}'}},
        {"id": "c2", "type": "function", "function": {"name": "put", "arguments": {"b": 2}}},
    ],
}
CONVERSATION = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "please\nhelp"},
    CALL,
    {"role": "tool", "tool_call_id": "c2", "name": "put", "content": "done"},
    {"role": "tool", "tool_call_id": "c1", "content": "Error: none"},
    {"role": "assistant", "content": "all done"},
]
LABELLED = {
    "is_correct": False,
    "question": "How many?",
    "ground_truth": "SECRET-8",
    "history": [
        {"content": "start", "role": "human"},
        {"content": "think", "role": "Orchestrator (thought)"},
        {"content": "ask", "role": "Orchestrator (-> WebSurfer)"},
        {"content": "page", "role": "WebSurfer"},
    ],
    "mistake_agent": "WebSurfer",
    "mistake_step": "3",
    "mistake_reason": "SECRET-reason",
}


def rows(trace: Trace) -> Iterator[tuple[str, str, str, str | None, str]]:
    for index in range(len(trace)):
        span = trace.span(index)
        yield span.key, span.kind.value, span.agent, span.name, trace.text(index)


def test_a_chat_with_tool_calls(tmp_path: Path) -> None:
    trace = read_one(READER, write_json(tmp_path / "run.json", {"messages": CONVERSATION}))
    assert list(rows(trace)) == [
        ("/messages/0", "message", "system", None, "be brief"),
        ("/messages/1", "message", "user", None, "please\nhelp"),
        ("/messages/2", "message", "assistant", None, "let me look"),
        ("c1:call", "tool_call", "assistant", "get", '{"a":1}'),
        ("c2:call", "tool_call", "assistant", "put", '{\n  "b": 2\n}'),
        ("c2:result", "tool_result", "assistant", "put", "done"),
        ("c1:result", "tool_result", "assistant", "get", "Error: none"),
        ("/messages/5", "message", "assistant", None, "all done"),
    ]
    assert [trace.span(index).parent for index in (5, 6)] == ["c2:call", "c1:call"]
    assert trace.span(4).place == "/messages/2/tool_calls/1"
    assert [trace.span(index).role for index in (0, 1, 3, 5)] == [
        Role.SYSTEM,
        Role.USER,
        Role.AGENT,
        Role.TOOL,
    ]
    assert trace.meta.task == "please\nhelp"
    assert trace.record is None


@pytest.mark.parametrize("container", ["history", "traj", "trajectory", "conversation", "input"])
def test_messages_in_any_container(tmp_path: Path, container: str) -> None:
    trace = read_one(READER, write_json(tmp_path / "run.json", {container: CONVERSATION}))
    assert trace.span(1).key == f"/{container}/1"


def test_messages_that_are_a_json_text_inside_the_record(tmp_path: Path) -> None:
    record = {"messages": json.dumps(CONVERSATION)}
    assert len(read_one(READER, write_json(tmp_path / "run.json", record))) == 8


def test_a_bare_list_is_one_run(tmp_path: Path) -> None:
    trace = read_one(READER, write_json(tmp_path / "run.json", CONVERSATION))
    assert trace.span(1).key == "/1"
    assert trace.identity.trace_id.startswith("run-")


@pytest.mark.parametrize("as_lines", [True, False])
def test_many_conversations_in_one_file(tmp_path: Path, as_lines: bool) -> None:
    records = [{"messages": CONVERSATION}, {"messages": CONVERSATION[:2], "n": 1}]
    if as_lines:
        path = write_json_lines(tmp_path / "runs.jsonl", *records)
    else:
        path = write_json(tmp_path / "runs.json", records)
    report = read_file(READER, path)
    first, second = report.traces
    assert (first.record, second.record) == (0, 1)
    assert second.span(1).key == "/messages/1"
    assert second.span(1).place == ("line 2 /messages/1" if as_lines else "/1/messages/1")
    assert second.identity.trace_id.startswith("runs:1-")


def test_the_same_record_is_the_same_trace_in_a_list_and_on_a_line(tmp_path: Path) -> None:
    records = [{"messages": CONVERSATION}, {"messages": CONVERSATION[:2]}]
    in_list = read_file(READER, write_json(tmp_path / "runs.json", records))
    on_lines = read_file(READER, write_json_lines(tmp_path / "runs.jsonl", *records))
    assert [t.identity for t in in_list.traces] == [t.identity for t in on_lines.traces]


def test_one_message_a_line_is_one_run(tmp_path: Path) -> None:
    trace = read_one(READER, write_json_lines(tmp_path / "run.jsonl", *CONVERSATION))
    assert [trace.span(index).key for index in (0, 2, 3)] == ["line 1", "line 3", "c1:call"]


def test_broken_lines_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "run.jsonl", *CONVERSATION[:2])
    text = path.read_text(encoding="utf-8")
    path.write_text(f'{text}{{"role": \n\n{text}{{"role": "user", "cont', encoding="utf-8")
    report = read_file(READER, path)
    assert [len(trace) for trace in report.traces] == [4]
    assert [problem.place for problem in report.problems] == ["line 3", "line 7"]
    assert "cut off" in report.problems[1].message


def test_line_separators_inside_strings_do_not_end_a_line(tmp_path: Path) -> None:
    said = "one\u2028two\u0085three"
    path = tmp_path / "run.jsonl"
    line = json.dumps({"role": "user", "content": said}, ensure_ascii=False)
    path.write_text(f"{line}\n{line}\n", encoding="utf-8")
    trace = read_one(READER, path)
    assert [trace.text(0), trace.text(1)] == [said, said]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_other_unicode_encodings(tmp_path: Path, encoding: str) -> None:
    document = json.dumps({"messages": CONVERSATION})
    lines = "\n".join(map(json.dumps, CONVERSATION))
    for name, text in (("run.json", document), ("run.jsonl", lines)):
        path = tmp_path / name
        path.write_text(text, encoding=encoding)
        assert len(read_one(READER, path)) == 8


def test_a_record_longer_than_the_head_of_the_file(tmp_path: Path) -> None:
    long = {"messages": [{"role": "user", "content": "x" * 200_000}]}
    report = read_file(READER, write_json_lines(tmp_path / "runs.jsonl", long, long))
    assert len(report.traces) == 2


def test_lone_surrogates_do_not_stop_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text('[{"role": "user", "content": "a\\ud83d"}]', encoding="utf-8")
    assert read_one(READER, path).text(0) == "a\ufffd"


def test_who_speaks_stands_in_the_role_of_magentic_one(tmp_path: Path) -> None:
    report = read_file(READER, write_json(tmp_path / "7.json", LABELLED))
    (trace,) = report.traces
    assert report.format == "who-and-when"
    assert [row[1:3] for row in rows(trace)] == [
        ("message", "human"),
        ("reasoning", "Orchestrator"),
        ("message", "Orchestrator"),
        ("message", "WebSurfer"),
    ]
    assert trace.meta.system == "Magentic-One"
    assert trace.meta.task == "How many?"
    assert trace.meta.outcome is Outcome.FAILED


def test_answers_and_labels_in_a_file_are_hidden_and_in_no_span(tmp_path: Path) -> None:
    trace = read_one(READER, write_json(tmp_path / "7.json", LABELLED))
    hidden = dict(trace.meta.hidden)
    assert hidden["ground_truth"] == "SECRET-8"
    assert hidden["mistake_step"] == "3"
    assert hidden["mistake_reason"] == "SECRET-reason"
    assert not any("SECRET" in row[-1] for row in rows(trace))


def test_names_tell_who_speaks_where_every_message_has_one(tmp_path: Path) -> None:
    path = write_json(
        tmp_path / "run.json",
        [
            {"role": "assistant", "name": "Planner", "content": "plan"},
            {"role": "user", "name": "Terminal", "content": "exitcode: 1 (execution failed)\nno"},
            {"role": "user", "name": "user", "content": "go on"},
        ],
    )
    trace = read_one(READER, path)
    spans = [trace.span(index) for index in range(3)]
    assert [(span.agent, span.role) for span in spans] == [
        ("Planner", Role.AGENT),
        ("Terminal", Role.AGENT),
        ("user", Role.USER),
    ]
    assert spans[1].status is SpanStatus.ERROR


@pytest.mark.parametrize(
    ("reward", "outcome", "score"),
    [(1.0, Outcome.SUCCEEDED, 1.0), (0.5, Outcome.FAILED, 0.5), ("x", Outcome.UNKNOWN, None)],
)
def test_a_reward_below_one_is_a_failed_run(
    tmp_path: Path, reward: object, outcome: Outcome, score: float | None
) -> None:
    task = {"x": "S", "actions": [{"name": "book", "kwargs": {"seat": 4}}], "outputs": ["12"]}
    info = {"task": task, "reward_info": {"info": {"r_actions": 0.0, "hash": "ab"}}}
    record = {"task_id": 3, "reward": reward, "info": info, "traj": CONVERSATION}
    report = read_file(READER, write_json(tmp_path / "runs.json", [record]))
    (trace,) = report.traces
    assert report.format == "tau-bench"
    assert (trace.meta.outcome, trace.meta.score) == (outcome, score)
    assert trace.meta.answer_key == AnswerKey(
        expected_actions=(("book", '{\n  "seat": 4\n}'),),
        reference=(("output", "12"),),
        scores=(("reward", str(reward)), ("r_actions", "0.0")),
        other=(("hash", "ab"), ("task x", "S")),
    )


def test_blocks_of_one_message_become_spans_of_their_own(tmp_path: Path) -> None:
    path = write_json(
        tmp_path / "run.json",
        {
            "system": "rules",
            "messages": [
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm"},
                        {"type": "text", "text": "I look"},
                        {"type": "tool_use", "id": "t1", "name": "bash", "input": {"cmd": "ls"}},
                        {"type": "text", "text": "and wait"},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "t1",
                            "is_error": True,
                            "content": [{"type": "text", "text": "no such file"}],
                        }
                    ],
                },
            ],
        },
    )
    trace = read_one(READER, path)
    assert [row[:2] + row[4:] for row in rows(trace)] == [
        ("/system", "message", "rules"),
        ("/messages/0/content/0", "reasoning", "hm"),
        ("/messages/0/content/1", "message", "I look"),
        ("t1:call", "tool_call", '{\n  "cmd": "ls"\n}'),
        ("/messages/0/content/3", "message", "and wait"),
        ("t1:result", "tool_result", "no such file"),
    ]
    result = trace.span(5)
    assert (result.parent, result.name, result.status) == ("t1:call", "bash", SpanStatus.ERROR)


def test_response_items_are_read_like_messages(tmp_path: Path) -> None:
    path = write_json(
        tmp_path / "run.json",
        {
            "input": [{"role": "user", "content": "hi"}],
            "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
                {"type": "function_call", "call_id": "x", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "x", "output": "7"},
            ],
        },
    )
    assert [row[:2] for row in rows(read_one(READER, path))] == [
        ("/input/0", "message"),
        ("/output/0", "reasoning"),
        ("x:call", "tool_call"),
        ("x:result", "tool_result"),
    ]


def test_calls_without_ids_are_answered_in_order(tmp_path: Path) -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}}
    answer = {"role": "function", "name": "f", "content": "1"}
    trace = read_one(READER, write_json(tmp_path / "run.json", [call, call, answer, answer]))
    assert [trace.span(index).parent for index in range(4)] == [
        None,
        None,
        "/0/function_call",
        "/1/function_call",
    ]


def test_an_id_that_repeats_pairs_with_its_own_call(tmp_path: Path) -> None:
    round_ = [CALL, {"role": "tool", "tool_call_id": "c1", "content": "again"}]
    trace = read_one(READER, write_json(tmp_path / "run.json", round_ + round_))
    results = [span for span in map(trace.span, range(len(trace))) if span.kind == "tool_result"]
    assert [(span.key, span.parent) for span in results] == [
        ("c1:result", "c1:call"),
        ("c1:result~2", "c1:call~2"),
    ]


def test_what_is_no_message_is_kept_as_a_log_and_named(tmp_path: Path) -> None:
    said = {"role": "user", "content": "hi"}
    values = [said, "stray", {"kind": "ping", "n": 1}, said]
    trace = read_one(READER, write_json(tmp_path / "run.json", values))
    assert [trace.span(index).kind for index in (1, 2)] == [SpanKind.LOG, SpanKind.LOG]
    assert trace.text(1) == "stray"
    assert '"ping"' in trace.text(2)
    assert [problem.place for problem in trace.problems] == ["/1"]


def test_a_name_that_is_a_text_in_itself_is_cut_short(tmp_path: Path) -> None:
    values = [{"role": "Planner\nof " + "all " * 9000, "content": "x"}]
    agent = read_one(READER, write_json(tmp_path / "run.json", values)).span(0).agent
    assert agent.startswith("Planner of all all")
    assert len(agent) <= 100


def test_every_message_has_a_span_even_when_it_says_nothing(tmp_path: Path) -> None:
    values = [{"role": "user", "content": ""}, {"role": "assistant", "content": None}]
    trace = read_one(READER, write_json(tmp_path / "run.json", values))
    assert [row[0] for row in rows(trace)] == ["/0", "/1"]


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        [1, 2],
        [{"trajectory_id": "x", "failures": []}],
        {"messages": "none"},
        {"messages": []},
        {"resourceSpans": []},
        [{"trace": "a.json", "mode": "1.3", "first": "line 1"}],
    ],
)
def test_other_json_is_left_to_others(tmp_path: Path, value: object) -> None:
    assert not READER.recognises(Source(write_json(tmp_path / "x.json", value)))


def test_elements_of_a_set_that_are_no_conversation_are_named(tmp_path: Path) -> None:
    report = read_file(
        READER, write_json(tmp_path / "x.json", [{"messages": CONVERSATION}, {"messages": 3}])
    )
    assert len(report.traces) == 1
    assert [problem.place for problem in report.problems] == ["/1"]


BLOCKS = [
    {
        "type": "ai",
        "role": "assistant",
        "timestamp": "2026-01-01T00:00:00Z",
        "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "tool_use", "id": "t1", "name": "bash", "input": {"cmd": "ls"}},
            {"type": "text", "text": "x"},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "y"}]},
    {"type": "function_call", "call_id": "x", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "x", "output": "7", "metadata": {"exit_code": 1}},
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
    {"type": "human", "content": "x", "name": "n", "source": "s"},
    {"from": "gpt", "value": "x"},
]


DOCUMENT: list[object] = [
    {"messages": CONVERSATION},
    LABELLED,
    {"messages": BLOCKS},
    {"task_id": 1, "reward": 1, "traj": CONVERSATION},
]
