"""Codex rollouts as files: damaged, changed, in any encoding, and threads of sub-agents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.library import read_file
from mast_tui.traces.model import FileReport, Problem, SpanKind, Thread, Trace
from mast_tui.traces.readers.codex.reader import READER
from tests.traces.checks import spans_of, texts_of
from tests.traces.rollouts import (
    Record,
    call,
    event,
    message,
    meta,
    output,
    reasoning,
    record,
    trace_of,
    turn_item,
    write,
)


def test_unreadable_lines_are_problems_and_the_rest_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, meta(), message("user", "one"))
    with path.open("ab") as file:
        file.write(b"not json\n\n[1]\n\xff\n" + json.dumps(message("user", "two")).encode() + b"\n")
        file.write(json.dumps(message("user", "three")).encode()[:-9])
    trace = trace_of(path)
    assert texts_of(trace) == ["one", "two"]
    assert [problem.place for problem in trace.problems] == ["line 3", "line 5", "line 6", "line 8"]
    assert "cut off" in trace.problems[-1].message


ANSWERED = [call("a"), output("a", "first"), message("assistant", "ok")]


def glued(*records: Record) -> str:
    return "".join(map(json.dumps, records))


@pytest.mark.parametrize(
    ("line", "texts", "keys", "problem"),
    [
        (
            glued(*ANSWERED),
            ["first", "ok", "last"],
            ["a:call", "a:result", "line 2", "line 3"],
            "3 records on one line",
        ),
        (
            glued(message("assistant", "one"), message("assistant", "two")),
            ["one", "two", "last"],
            ["line 2", "line 2~2", "line 3"],
            "2 records on one line",
        ),
        (
            glued(event("agent_message", message="one"), message("assistant", "two"), call("a")),
            ["two", "one", "last"],
            ["line 2", "line 2~2", "a:call", "line 3"],
            "3 records on one line",
        ),
        (
            glued(message("assistant", "cut"))[:-30] + glued(message("assistant", "whole")),
            ["whole", "last"],
            ["line 2", "line 3"],
            "a broken record, left out; 1 record beside it read",
        ),
        (
            "\0" * 300 + glued(message("assistant", "a\0b")).replace("\\u0000", "\0" * 300),
            ["ab", "last"],
            ["line 2", "line 3"],
            "NUL bytes, as a crash leaves them, are left out",
        ),
    ],
)
def test_every_whole_record_on_a_damaged_line_is_read(
    tmp_path: Path, line: str, texts: list[str], keys: list[str], problem: str | None
) -> None:
    path = write(tmp_path, meta(), name="damaged.jsonl")
    end = json.dumps(message("assistant", "last"))
    path.write_text(f"{path.read_text('utf-8')}{line}\n{end}\n", encoding="utf-8")
    trace = trace_of(path)
    spans = spans_of(trace)
    assert sorted(span.key for span in spans) == sorted(keys)
    calls = {span.index for span in spans if span.kind is SpanKind.TOOL_CALL}
    assert [trace.text(span.index) for span in spans if span.index not in calls] == texts
    expected = [] if problem is None else [Problem("line 2", problem)]
    assert list(trace.problems) == expected


def test_a_file_of_broken_lines_has_a_short_list_of_problems(tmp_path: Path) -> None:
    path = write(tmp_path, meta())
    with path.open("ab") as file:
        file.write(b"{broken\n" * 5000)
    problems = trace_of(path).problems
    assert len(problems) < 500
    assert isinstance(problems[-1], Problem)
    assert "not listed" in problems[-1].message


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_encodings_with_a_byte_order_mark_are_read(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path, meta(), message("user", "Grüße, 漢字 👩‍💻"))
    path.write_text(path.read_text(encoding="utf-8"), encoding=encoding)
    assert texts_of(trace_of(path)) == ["Grüße, 漢字 👩‍💻"]


@pytest.mark.slow
def test_a_big_file_is_returned_after_its_first_slice(tmp_path: Path) -> None:
    records = [message("user", f"message {number} " + "x" * 400) for number in range(20_000)]
    source = Source(write(tmp_path, meta(), *records))
    (trace,) = READER.read(source).traces
    assert 0 < len(trace) < 2000
    assert trace.loaded.done <= 1 << 20
    assert not trace.loaded.complete
    lengths = [len(trace)]
    while trace.advance(1 << 20):
        lengths.append(len(trace))
    assert lengths == sorted(lengths)
    assert len(trace) == 20_000
    assert trace.loaded.done == trace.loaded.total == source.size
    assert trace.loaded.complete
    assert trace.text(19_999).startswith("message 19999 ")
    assert trace.index_of("line 20001") == 19_999


def test_a_span_of_ten_megabytes_is_read(tmp_path: Path) -> None:
    text = "é" * 5_000_000
    trace = trace_of(write(tmp_path, meta(), call("a"), output("a", text), message("user", "x")))
    assert trace.text(1) == text
    assert len(trace.span(1).preview) <= 200
    assert not trace.span(1).preview_is_complete
    assert trace.text(2) == "x"


def test_the_spans_do_not_depend_on_the_slices(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        meta("child"),
        meta("parent"),
        message("user", "theirs"),
        event("task_started", 5),
        message("user", "ours", 5),
        event("agent_reasoning", 6, text="hm"),
        reasoning("hm", second=7),
        call("a", second=8),
        event("agent_reasoning", 8, text="alone"),
        output("a", second=9),
        event("turn_aborted", 9),
        message("user", "x" * 400_000, 10),
        *(message("assistant", str(number), 11) for number in range(50)),
    )
    whole = trace_of(path)
    sliced = READER.read(Source(path)).traces[0]
    while sliced.advance(1):
        pass
    assert spans_of(sliced) == spans_of(whole)
    assert texts_of(sliced) == texts_of(whole)


def test_a_removed_file_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, meta(), message("user", "one"), message("user", "two"))
    trace = trace_of(path)
    assert trace.text(0) == "one"
    (reopened,) = read_file(path, named=True).traces
    assert reopened.span(0).preview == "one"
    path.unlink()
    with pytest.raises(OSError, match="gone"):
        reopened.text(1)
    assert reopened.change_reason() == "the file is gone"
    assert "can no longer be read" in reopened.span(1).preview
    assert (reopened.span(1).key, reopened.span(1).role) == ("line 3", "user")
    assert reopened.span(0).preview == "one"


def test_the_text_of_a_changed_file_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, meta(), message("user", "one"))
    trace = READER.read(Source(path)).traces[0]
    path.write_bytes(b"#" * path.stat().st_size)
    with pytest.raises(OSError, match="the file has changed"):
        trace.text(0)


def test_other_json_lines_are_not_recognised(tmp_path: Path) -> None:
    for content in (
        b'{"type": "user", "message": {}}\n',
        b'{"role": "user", "content": "session_meta payload"}\n',
        b'{"id": 1, "timestamp": 2, "type": "x"}\n{"type": "message"}\n',
        b"plain text\n",
    ):
        path = tmp_path / "other.jsonl"
        path.write_bytes(content)
        assert not READER.recognises(Source(path)), content


# Pairs of calls and results


def test_a_result_finds_its_call_after_a_thousand_others(tmp_path: Path) -> None:
    ids = [f"call_{number}" for number in range(1000)]
    records = [meta(), *map(call, ids), call("call_7"), *map(output, ids)]
    spans = spans_of(trace_of(write(tmp_path, *records)))
    assert [span.parent for span in spans[1001:]] == [
        "call_7:call~2" if name == "call_7" else f"{name}:call" for name in ids
    ]


CHILD = "01a2b3c4-aaaa-7000-8000-00000000000c"
PARENT = "01a2b3c4-bbbb-7000-8000-00000000000a"


def read_report(path: Path) -> FileReport:
    return READER.read(Source(path))


def spawn(call_id: str = "s") -> Record:
    """Return a call that starts a sub-agent."""
    arguments = json.dumps({"message": "Look at the pods."})
    payload = {
        "type": "function_call",
        "name": "spawn_agent",
        "arguments": arguments,
        "call_id": call_id,
    }
    return record("response_item", payload)


def spawned(trace: Trace) -> dict[str, str]:
    return dict(trace.spawned)


def test_the_parent_of_a_thread_can_be_in_its_source(tmp_path: Path) -> None:
    spawn_fields = {"parent_thread_id": PARENT, "depth": 1, "agent_nickname": "Ada"}
    header = meta(CHILD, source={"subagent": {"thread_spawn": spawn_fields}})
    path = write(tmp_path, header, message("assistant", "ok"))
    assert read_report(path).thread == Thread(CHILD, PARENT)
    assert trace_of(path).span(0).agent == "Ada"


@pytest.mark.parametrize("source", ["cli", {"subagent": "review"}, {"subagent": {"other": "x"}}, 3])
def test_other_sources_name_no_parent(tmp_path: Path, source: object) -> None:
    assert read_report(write(tmp_path, meta(CHILD, source=source))).thread == Thread(CHILD)


def test_the_result_of_a_spawn_call_names_the_child(tmp_path: Path) -> None:
    answer = json.dumps({"agent_id": CHILD, "nickname": "Ada"})
    trace = trace_of(write(tmp_path, meta(), spawn(), call("x"), output("s", answer)))
    assert spawned(trace) == {CHILD: "s:result"}


@pytest.mark.parametrize("answer", ["{}", "no", '{"agent_id": 7}', "[1]", '{"agent_id": "'])
def test_a_spawn_result_without_a_thread_has_no_child(tmp_path: Path, answer: str) -> None:
    assert spawned(trace_of(write(tmp_path, meta(), spawn(), output("s", answer)))) == {}


def test_other_calls_begin_no_thread(tmp_path: Path) -> None:
    answer = json.dumps({"agent_id": CHILD})
    assert spawned(trace_of(write(tmp_path, meta(), call("a"), output("a", answer)))) == {}


STARTED = {"agent_thread_id": CHILD, "agent_path": "/root/pods", "kind": "started"}
PATHS_ONLY = json.dumps({"task_name": "/root/pods"})


@pytest.mark.parametrize(
    "child_event",
    [
        event("sub_agent_activity", 0, event_id="s", **STARTED),
        turn_item("SubAgentActivity", 0, id="s", **STARTED),
        event("collab_agent_spawn_end", call_id="s", new_thread_id=CHILD),
        turn_item("CollabAgentToolCall", id="s", tool="spawnAgent", receiver_thread_ids=[CHILD]),
    ],
)
@pytest.mark.parametrize("answered_first", [True, False])
def test_newer_builds_name_the_child_in_an_event(
    tmp_path: Path, child_event: Record, answered_first: bool
) -> None:
    pair = [child_event, output("s", PATHS_ONLY)]
    path = write(tmp_path, meta(), spawn(), *(reversed(pair) if answered_first else pair))
    trace = trace_of(path)
    assert spawned(trace) == {CHILD: "s:result"}
    assert [span.key for span in spans_of(trace) if span.kind is not SpanKind.LOG] == [
        "s:call",
        "s:result",
    ]


def test_the_spawning_key_of_a_sub_agent_has_its_thread(tmp_path: Path) -> None:
    header = meta(CHILD, parent_thread_id=PARENT)
    answer = json.dumps({"agent_id": "grandchild"})
    trace = trace_of(write(tmp_path, header, spawn(), output("s", answer)))
    assert spawned(trace) == {"grandchild": f"{CHILD}/s:result"}
