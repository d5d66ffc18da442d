"""OpenHands' event streams of generation 0, and the records of its benchmarks."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Outcome, SpanStatus, Tokens, Trace
from mast_tui.traces.readers.openhands import READER
from tests.traces.checks import (
    read_file,
    read_one,
    told,
    write_json,
    write_json_lines,
)

Json = dict[str, object]


def keys(trace: Trace) -> list[tuple[str, str | None]]:
    spans = [trace.span(index) for index in range(len(trace))]
    return [(span.key, span.parent) for span in spans]


def metadata(call: str, response: str, reasoning: str | None = None) -> Json:
    """Return the fields of an old action about the model call that it is part of."""
    return {
        "function_name": "execute_bash",
        "tool_call_id": call,
        "model_response": {
            "id": response,
            "usage": {"prompt_tokens": 50, "completion_tokens": 6},
            "choices": [{"message": {"reasoning_content": reasoning}}],
        },
        "total_calls_in_response": 1,
    }


def action(number: int, name: str, args: Json, source: str = "agent", **fields: object) -> Json:
    """Return an action in the old format."""
    time = f"2025-03-01T10:00:{number:02}.000000"
    event = {"id": number, "timestamp": time, "source": source, "message": f"did {name}"}
    return {**event, "action": name, "args": args, **fields}


def observation(number: int, name: str, content: str, cause: int | None, **fields: object) -> Json:
    """Return an observation in the old format."""
    time = f"2025-03-01T10:00:{number:02}.000000"
    event = {"id": number, "timestamp": time, "source": "agent", "message": "ran"}
    event = {**event, "observation": name, "content": content, "extras": {}, **fields}
    return event if cause is None else {**event, "cause": cause}


def published_stream() -> list[object]:
    """Return a stream in the old format, with the framework's own events among the others."""
    return [
        action(0, "system", {"content": "be helpful", "agent_class": "CodeActAgent"}),
        action(1, "message", {"content": "fix the bug", "image_urls": None}, "user"),
        action(2, "recall", {"recall_type": "workspace_context", "query": "fix the bug"}, "user"),
        observation(3, "recall", "Added workspace context", 2, extras={"repo_name": "x/y"}),
        action(4, "change_agent_state", {"agent_state": "running"}, "environment"),
        observation(5, "agent_state_changed", "", 4, extras={"agent_state": "running"}),
        action(
            6,
            "run",
            {"command": "ls", "thought": "look first", "hidden": False, "is_input": "false"},
            tool_call_metadata=metadata("call_a", "r1", "hm"),
        ),
        observation(
            7,
            "run",
            "no such file",
            6,
            tool_call_metadata=metadata("call_a", "r1"),
            extras={"command": "ls", "metadata": {"exit_code": 2}},
            success=False,
        ),
        action(
            8,
            "think",
            {"thought": "it is the parser"},
            tool_call_metadata=metadata("call_b", "r2"),
        ),
        observation(9, "think", "Your thought has been logged.", 8),
        action(10, "null", {}, "environment"),
        observation(11, "null", "", 10),
        action(12, "read", {"path": "/x.py", "thought": ""}),
        observation(13, "read", "1: broken", 12),
        action(14, "finish", {"final_thought": "done", "outputs": {}, "task_completed": "true"}),
        observation(15, "error", "no more steps", None),
        observation(
            16, "agent_state_changed", "", 4, extras={"agent_state": "error", "reason": "limit"}
        ),
    ]


def test_a_stream_of_generation_0(tmp_path: Path) -> None:
    trace = read_one(READER, write_json(tmp_path / "trajectory.json", published_stream()))
    assert told(trace) == [
        ("message", "be helpful"),
        ("message", "fix the bug"),
        ("log", 'Added workspace context\n{\n  "repo_name": "x/y"\n}'),
        ("reasoning", "hm"),
        ("message", "look first"),
        ("tool_call", '{\n  "command": "ls",\n  "is_input": "false"\n}'),
        ("tool_result", "no such file"),
        ("reasoning", "it is the parser"),
        ("tool_call", '{\n  "path": "/x.py"\n}'),
        ("tool_result", "1: broken"),
        ("tool_call", '{\n  "final_thought": "done",\n  "task_completed": "true"\n}'),
        ("log", "no more steps"),
        ("log", "limit"),
    ]
    assert keys(trace)[3:11] == [
        ("6/reasoning", None),
        ("6/thought", None),
        ("call_a:call", None),
        ("call_a:result", "call_a:call"),
        ("8", None),
        ("12:call", None),
        ("13:result", "12:call"),
        ("14:call", None),
    ]
    spans = [trace.span(index) for index in range(len(trace))]
    assert [span.name for span in spans[5:11:3]] == ["execute_bash", "read"]
    assert (spans[5].start, spans[5].end) == (1740823206, 1740823207)
    assert [span.status for span in spans[6:13]] == [
        SpanStatus.ERROR,
        *[SpanStatus.UNKNOWN] * 4,
        SpanStatus.ERROR,
        SpanStatus.ERROR,
    ]
    assert [number for number, span in enumerate(spans) if span.tokens] == [5, 7]
    assert spans[5].tokens == Tokens(50, 6)
    assert spans[7].agent == "CodeActAgent"
    assert trace.meta.system == "OpenHands"
    assert trace.meta.task == "fix the bug"
    assert trace.meta.outcome is Outcome.UNKNOWN


def test_the_last_action_of_a_response_has_its_tokens(tmp_path: Path) -> None:
    stream = [
        action(0, "run", {"command": "a"}, tool_call_metadata=metadata("c1", "r", "once")),
        action(1, "run", {"command": "b"}, tool_call_metadata=metadata("c2", "r", "once")),
        observation(2, "run", "B", 1, extras={"metadata": {"exit_code": 0}}),
        observation(3, "run", "A", 0, extras={"metadata": {"exit_code": -1}}),
    ]
    trace = read_one(READER, write_json(tmp_path / "t.json", stream))
    assert [(kind, text) for kind, text in told(trace) if kind == "reasoning"] == [
        ("reasoning", "once")
    ]
    spans = [trace.span(index) for index in range(len(trace))]
    assert [span.key for span in spans if span.tokens] == ["c2:call"]
    assert [(span.parent, span.status) for span in spans[3:]] == [
        ("c2:call", SpanStatus.OK),
        ("c1:call", SpanStatus.UNKNOWN),
    ]


def test_a_delegate_acts_under_its_own_name(tmp_path: Path) -> None:
    stream = [
        action(0, "delegate", {"agent": "BrowsingAgent", "inputs": {"task": "search"}}),
        action(1, "browse", {"url": "http://x"}),
        observation(2, "browse", "page", 1, extras={"error": False}),
        observation(3, "delegate", "", 0, extras={"outputs": {"found": 1}}),
        action(4, "message", {"content": "thanks"}),
    ]
    trace = read_one(READER, write_json(tmp_path / "t.json", stream))
    assert [trace.span(index).agent for index in range(len(trace))] == [
        "agent",
        "BrowsingAgent",
        "BrowsingAgent",
        "agent",
        "agent",
    ]
    assert trace.span(2).status is SpanStatus.OK
    assert trace.span(3).parent == "0:call"
    assert '"found": 1' in trace.text(3)


def published_record(history: list[object], **fields: object) -> Json:
    """Return a line of a benchmark's output."""
    return {
        "instance_id": "astropy__astropy-1",
        "test_result": {"git_patch": "diff"},
        "instruction": "<issue>",
        "metadata": {
            "agent_class": "CodeActAgent",
            "llm_config": {"model": "gpt-x", "api_key": None},
            "dataset": "SWE-bench",
        },
        "history": history,
        "metrics": {"accumulated_cost": 1},
        "error": None,
        **fields,
    }


def test_records_of_a_benchmark(tmp_path: Path) -> None:
    path = write_json_lines(
        tmp_path / "output.jsonl",
        published_record(published_stream(), report={"resolved": False}),
        {"instance_id": "none", "history": []},
        published_record(
            [action(1, "message", {"content": "hi"}, "user")],
            test_result={"report": {"resolved": True}},
            error="it broke",
        ),
    )
    report = read_file(READER, path)
    first, second = report.traces
    assert first.identity.trace_id == f"astropy__astropy-1-{first.identity.content_hash[:8]}"
    assert not first.identity.native
    assert first.identity.trace_id != second.identity.trace_id
    assert (first.meta.model, first.meta.benchmark, first.meta.task) == (
        "gpt-x",
        "SWE-bench",
        "<issue>",
    )
    assert [trace.meta.outcome for trace in report.traces] == [Outcome.FAILED, Outcome.SUCCEEDED]
    assert dict(first.meta.answer_key.patch) == {"git_patch": "diff"}
    assert [name for name, _text in first.meta.answer_key.tests] == ["report"]
    assert "diff" not in [text for _kind, text in told(first)]
    assert first.span(3).place == "line 1 /history/6"
    assert (told(second)[-1], second.span(len(second) - 1).status) == (
        ("log", "it broke"),
        SpanStatus.ERROR,
    )
    assert [problem.place for problem in report.problems] == ["line 2"]


def test_a_history_of_pairs_without_ids(tmp_path: Path) -> None:
    pairs = [
        [
            {"source": "user", "action": "message", "args": {"content": "go"}},
            {"observation": "null", "content": "", "extras": {}},
        ],
        [
            {"source": "agent", "action": "run", "args": {"command": "ls", "thought": "look"}},
            {"observation": "run", "content": "a.py", "extras": {"exit_code": 0}},
        ],
    ]
    trace = read_one(READER, write_json(tmp_path / "r.json", published_record(list(pairs))))
    assert keys(trace) == [
        ("/history/0/0", None),
        ("/history/1/0/thought", None),
        ("/history/1/0:call", None),
        ("/history/1/1:result", "/history/1/0:call"),
    ]
    assert trace.span(3).status is SpanStatus.OK


@pytest.mark.parametrize(
    "foreign",
    [
        [{"source": "user", "content": "hi", "type": "TextMessage"}],
        {"history": [{"role": "user", "content": "hi"}]},
        [{"kind": "request", "parts": []}],
        [{"action": "a", "observation": "b", "source": "agent", "id": 1}],
        [{"action": "run", "args": {}}],
        {"trajectory": [{"action": "ls", "observation": "x", "args": {}}], "info": {}},
    ],
)
def test_other_lists_of_actions_are_left_to_others(tmp_path: Path, foreign: object) -> None:
    assert not READER.recognises(Source(write_json(tmp_path / "x.json", foreign)))
