"""The stream of messages that Claude Code prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Trace
from mast_tui.traces.readers.claude_code.stream import READER
from tests.traces.checks import (
    keys_of,
    read_file,
    span_lines,
    texts_of,
    write_json_lines,
)
from tests.traces.claude_sessions import Record, text

SESSION = "0b7a3c11-0000-4000-8000-000000000002"


def stream_record(kind: str, **fields: object) -> Record:
    return {"type": kind, "session_id": SESSION, **fields}


def init(session: str = SESSION) -> Record:
    return stream_record("system", subtype="init", model="claude-opus-5", tools=["Bash"]) | {
        "session_id": session
    }


def agent(uuid: str, *content: Record, caller: str | None = None, **message: object) -> Record:
    inner_message = {"id": f"msg_{uuid}", "role": "assistant", "content": list(content), **message}
    return stream_record("assistant", message=inner_message, parent_tool_use_id=caller, uuid=uuid)


def user(uuid: str, *content: Record, caller: str | None = None) -> Record:
    inner_message = {"role": "user", "content": list(content)}
    return stream_record("user", message=inner_message, parent_tool_use_id=caller, uuid=uuid)


def result(text: str | None, **fields: object) -> Record:
    base_record = stream_record(
        "result", subtype="success", is_error=False, num_turns=2, total_cost_usd=0.1
    )
    return {**base_record, **({} if text is None else {"result": text}), **fields}


def text_delta(text: str, caller: str | None = None, kind: str = "text") -> Record:
    delta = {"type": f"{kind}_delta", kind: text}
    event = {"type": "content_block_delta", "index": 0, "delta": delta}
    return stream_record("stream_event", event=event, parent_tool_use_id=caller)


def message_start(response: str) -> Record:
    event = {"type": "message_start", "message": {"id": response}}
    return stream_record("stream_event", event=event, parent_tool_use_id=None)


def trace_of(tmp_path: Path, *records: object) -> Trace:
    (trace,) = read_file(READER, write_json_lines(tmp_path / "out.jsonl", *records)).traces
    return trace


def test_a_printed_prompt_is_the_task(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, init(), user("u1", text("Fix it")), agent("a1", text("ok")))
    assert trace.meta.task == "Fix it"
    assert trace.span(0).agent == "user"


AGENT = "message claude-code"
OK = agent("a1", text("ok"))
STREAMS: dict[str, tuple[list[Record], dict[str, str]]] = {
    "too many turns": (
        [OK, result(None, subtype="error_max_turns", is_error=True)],
        {"a1": f"{AGENT}: ok", "line 3": "log system error_max_turns error: error_max_turns"},
    ),
    "errors": (
        [OK, result(None, subtype="error_during_execution", errors=["no", "way"])],
        {"a1": f"{AGENT}: ok", "line 3": "log system error_during_execution error: no way"},
    ),
    "an error as result": (
        [OK, result("it broke", is_error=True)],
        {"a1": f"{AGENT}: ok", "line 3": "log system success error: it broke"},
    ),
    "an error that was shown already": (
        [agent("a1", text("API Error: 500")), result("API Error: 500", is_error=True)],
        {"a1": f"{AGENT} error: API Error: 500"},
    ),
    "runs that continue one another": (
        [OK, result("ok"), init("other"), result("ok", session_id="other")],
        {"a1": f"{AGENT}: ok", "line 5": f"{AGENT} result: ok"},
    ),
    "messages with their pieces": (
        [
            *(
                message_start("m1"),
                text_delta("hel"),
                text_delta("lo"),
                agent("a1", text("hello"), id="m1"),
            ),
            *(text_delta("wor"), agent("a2", text("world"), id="m1"), result("world")),
        ],
        {"a1": f"{AGENT}: hello", "a2": f"{AGENT}: world"},
    ),
    "pieces of messages that never came": (
        [
            *(
                message_start("m1"),
                text_delta("hm ", kind="thinking"),
                text_delta("of another", caller="t1"),
            ),
            *(
                stream_record("tool_progress"),
                text_delta("half a wo"),
                message_start("m2"),
                text_delta("rd"),
            ),
        ],
        {
            "line 3": f"{AGENT}: hm half a wo",
            "t1/line 4": "message sub-agent t1: of another",
            "line 8": f"{AGENT}: rd",
        },
    ),
    "records of the program": (
        [
            stream_record("system", subtype="hook_started"),
            stream_record("system", subtype="status", status="compacting"),
            stream_record("system", subtype="compact_boundary", trigger="auto"),
            *(
                stream_record("rate_limit_event"),
                stream_record("control_response"),
                stream_record("hologram"),
            ),
        ],
        {
            "line 4": 'log system compact_boundary: { "trigger": "auto" }',
            "line 7": f'log log hologram: {{ "type": "hologram", "session_id": "{SESSION}" }}',
        },
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_records_of_a_stream(tmp_path: Path, name: str) -> None:
    records, shown = STREAMS[name]
    trace = trace_of(tmp_path, init(), *records)
    assert dict(zip(keys_of(trace), span_lines(trace), strict=True)) == shown
    assert trace.identity.trace_id == SESSION
    assert not trace.problems


INIT, FIRST, SECOND = (json.dumps(one) for one in (init(), OK, agent("a2", text("done"))))
WARNING = "npm warn deprecated\n{'not': 'json'}\n{\n\"pretty\": 1}"
LINES: dict[str, tuple[str, dict[str, str], tuple[int, ...]]] = {
    "text and a cut end": (
        f'{WARNING}\n{INIT}\n42\n{FIRST}\n{{"type": "assis',
        {"line 1": WARNING, "line 6": "42", "a1": "ok"},
        (8,),
    ),
    "pretty JSON at the end": (f'{INIT}\n{{\n"a": 1\n}}\n', {"line 2": '{\n"a": 1\n}'}, ()),
    "glued records": (f"{INIT}\n{FIRST}{SECOND}\n", {"a1": "ok", "a2": "done"}, (2,)),
    "a record behind a cut one": (f"{INIT}\n{FIRST[:60]}{SECOND}\n", {"a2": "done"}, (2,)),
    "NUL bytes": (
        f"{INIT}\n\0\0\0\n{FIRST[:30]}\0{FIRST[30:]}\nnpm\0 warn\n",
        {"a1": "ok", "line 4": "npm warn"},
        (2, 3, 4),
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_lines_of_text_are_logs_and_damaged_lines_problems(tmp_path: Path, name: str) -> None:
    content, shown, lines = LINES[name]
    path = tmp_path / "stdout.log"
    path.write_text(content, encoding="utf-8")
    (trace,) = read_file(READER, path).traces
    assert dict(zip(keys_of(trace), texts_of(trace), strict=True)) == shown
    assert [problem.place for problem in trace.problems] == [f"line {line}" for line in lines]


def test_a_long_beginning_is_recognised(tmp_path: Path) -> None:
    first = {"type": "system", "subtype": "init", "session_id": SESSION, "tools": ["x" * 90_000]}
    assert texts_of(trace_of(tmp_path, first, agent("a1", text("ok")))) == ["ok"]


def test_other_files_are_not_recognised_as_a_stream(tmp_path: Path) -> None:
    contents: list[list[object]] = [
        [{"type": "user", "message": {}, "sessionId": "s", "uuid": "u", "parentUuid": None}],
        [{"type": "thread.started", "thread_id": "x"}],
        [{"type": "result", "session_id": "s"}],
        [{"role": "user", "content": "session_id"}],
        [{"type": "system", "subtype": "init", "session_id": 5}],
    ]
    for content in contents:
        assert not READER.recognises(Source(write_json_lines(tmp_path / "x.jsonl", *content)))
