"""Codex rollouts as files: big, damaged, removed, changed, in any encoding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.library import read_file
from mast_tui.traces.model import Problem, SpanKind
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
    trace_of,
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
