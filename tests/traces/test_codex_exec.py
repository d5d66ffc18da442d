"""The output of ``codex exec --json`` among other lines of a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Role, SpanStatus, Trace
from mast_tui.traces.readers import recognising_readers
from mast_tui.traces.readers.codex.exec import READER
from tests.traces.checks import read_one, spans_of, texts_of

Event = dict[str, object]
THREAD = "01a2b3c4-0000-7000-8000-00000000e4ec"
BEGIN: list[Event] = [{"type": "thread.started", "thread_id": THREAD}, {"type": "turn.started"}]


def item(stage: str, name: str, key: str = "item_0", **fields: object) -> Event:
    return {"type": f"item.{stage}", "item": {"id": key, "type": name, **fields}}


def command(stage: str, key: str = "item_0", code: int | None = None, shown: str = "") -> Event:
    """Return a command item; ``code`` is its exit code, None while it runs."""
    status = "in_progress" if code is None else ("failed" if code else "completed")
    return item(
        stage,
        "command_execution",
        key,
        command="bash -lc 'kubectl get pods'",
        aggregated_output=shown,
        exit_code=code,
        status=status,
    )


def agent_message(text: str, key: str = "item_9") -> Event:
    return item("completed", "agent_message", key, text=text)


def turn_completed(input_count: int, output_count: int) -> Event:
    usage = {"input_tokens": input_count, "cached_input_tokens": 1, "output_tokens": output_count}
    return {"type": "turn.completed", "usage": usage}


def write(folder: Path, *lines: Event | str, name: str = "stdout.log") -> Path:
    """Write the lines to a file, events as JSON; return its path."""
    path = folder / name
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def trace_of(folder: Path, *lines: Event | str) -> Trace:
    trace = read_one(READER, write(folder, *lines))
    read_fully(trace)
    return trace


CHANGES = [{"path": "/srv/a.py", "kind": "update"}]
ANSWER = {"content": [{"type": "text", "text": "3 lines"}], "structured_content": None}


@pytest.mark.parametrize(
    ("name", "fields", "tool", "asked", "answered", "status"),
    [
        (
            "file_change",
            {"changes": CHANGES, "status": "completed"},
            "file_change",
            {"changes": CHANGES},
            "completed",
            SpanStatus.OK,
        ),
        (
            "mcp_tool_call",
            {"server": "sre", "tool": "logs", "arguments": {"pod": "a"}, "result": ANSWER}
            | {"status": "completed"},
            "sre.logs",
            {"pod": "a"},
            "3 lines",
            SpanStatus.OK,
        ),
        (
            "mcp_tool_call",
            {"server": "sre", "tool": "logs", "arguments": {}, "error": {"message": "gone"}},
            "sre.logs",
            {},
            "gone",
            SpanStatus.ERROR,
        ),
        (
            "collab_tool_call",
            {"tool": "wait", "receiver_thread_ids": ["t"], "agents_states": {}}
            | {"status": "completed"},
            "wait",
            {"receiver_thread_ids": ["t"]},
            '{\n  "agents_states": {}\n}',
            SpanStatus.OK,
        ),
    ],
)
def test_every_kind_of_call(
    tmp_path: Path,
    name: str,
    fields: dict[str, object],
    tool: str,
    asked: object,
    answered: str,
    status: SpanStatus,
) -> None:
    trace = trace_of(tmp_path, *BEGIN, item("completed", name, "item_0", **fields))
    call, result = spans_of(trace)
    assert (call.name, result.name, result.status) == (tool, tool, status)
    assert json.loads(trace.text(0)) == asked
    assert trace.text(1) == answered


def test_consecutive_lines_of_other_text_are_one_span(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        "Reading prompt from stdin...",
        "",
        "warning: slow",
        *BEGIN,
        "",
        command("started"),
        "2026-10-02 ERROR codex_core: timeout",
        '{"level": "warn", "message": "not an event"}',
        command("completed", code=0),
        "bye",
    )
    assert [(span.key, span.kind.value) for span in spans_of(trace)] == [
        ("line 1", "log"),
        ("item_0:call", "tool_call"),
        ("line 8", "log"),
        ("item_0:result", "tool_result"),
        ("line 11", "log"),
    ]
    assert trace.text(0) == "Reading prompt from stdin...\n\nwarning: slow"
    assert trace.text(2).endswith('{"level": "warn", "message": "not an event"}')
    assert trace.span(0).role is Role.LOG


def test_a_long_preamble_is_recognised(tmp_path: Path) -> None:
    path = write(tmp_path, *(f"setting up {number}" for number in range(500)), *BEGIN)
    assert [reader.name for reader in recognising_readers(Source(path))] == ["codex-exec"]


def test_every_whole_event_on_a_damaged_line_is_read(tmp_path: Path) -> None:
    first = json.dumps(agent_message("one", "item_1"))
    second = json.dumps(command("completed", "item_2", 0, "two"))
    trace = trace_of(tmp_path, *BEGIN, first + second, first[:40] + second, "\0\0" + first)
    assert [span.key for span in spans_of(trace)] == [
        "item_1",
        "item_2:call",
        "item_2:result",
        "item_2:call~2",
        "item_2:result~2",
        "item_1~2",
    ]
    texts = texts_of(trace)
    assert [texts[0], texts[2], texts[4], texts[5]] == ["one", "two", "two", "one"]
    assert [problem.place for problem in trace.problems] == ["line 3", "line 4", "line 5"]


@pytest.mark.parametrize(
    "lines",
    [
        ['{"type": "turn.started"}', "text"],
        ['{"type": "error", "message": "x"}'],
        ['{"type": "item.completed"}', '{"type": "item.completed", "item": "x"}'],
        ['{"type": "response.completed", "usage": {}}'],
        ['{"type": "session_meta", "payload": {"thread_id": "turn.started"}}'],
        ["the agent printed \"thread.started\" and {'type': 'thread.started'}"],
    ],
)
def test_other_output_is_not_recognised(tmp_path: Path, lines: list[str]) -> None:
    assert not READER.recognises(Source(write(tmp_path, *lines)))


LINES: list[Event | str] = [
    *BEGIN,
    command("started"),
    command("completed", code=0, shown="x"),
    command("started", "item_1"),
    item("started", "web_search", "item_2", query=""),
    item("completed", "web_search", "item_2", query="q"),
    item("completed", "file_change", "item_1", changes=[]),
    item("updated", "todo_list", "item_4", items=[{"text": "a", "completed": True}]),
    agent_message("ok"),
    turn_completed(3, 4),
    {"type": "turn.failed", "error": {"message": "no"}},
    "noise",
    "",
]


def test_the_spans_do_not_depend_on_the_slices(tmp_path: Path) -> None:
    lines = [line for number in range(40) for line in (*LINES, f"noise {number} " * 2000)]
    path = write(tmp_path, *BEGIN, *lines)
    whole, sliced = (READER.read(Source(path)).traces[0] for _ in range(2))
    read_fully(whole)
    while sliced.advance(1):
        pass
    assert spans_of(sliced) == spans_of(whole)
    assert texts_of(sliced) == texts_of(whole)
