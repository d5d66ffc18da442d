"""Sessions of coding agents: one trace each, every format by its marks, damage kept local."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.library import read_file, scan
from mast_tui.traces.model import SpanKind, Trace
from mast_tui.traces.readers import recognising_readers
from tests.traces.checks import (
    check_sound,
    read_one,
    span_lines,
    spans_of,
    write_json,
    write_json_lines,
)
from tests.traces.session_files import (
    CLAUDE_WEB,
    GEMINI_LINES,
    GOOSE,
    LONG,
    LONGER,
    OPENCODE,
    OPENCODE_RUN,
    PI,
    QWEN,
    SESSIONS,
    STRANDS,
    SessionFile,
)
from tests.traces.text_coverage import text_coverage


def read(path: Path) -> Trace:
    """Return the only trace of a file, which exactly one reader claims."""
    (reader,) = recognising_readers(Source(path))
    return read_one(reader, path)


def problems_of(path: Path) -> list[str]:
    """Return the messages of all problems of a file, with their places."""
    report = read_file(path, named=True)
    problems = [
        *report.problems,
        *(problem for trace in report.traces for problem in trace.problems),
    ]
    return [f"{problem.place}: {problem.message}" for problem in problems]


@pytest.mark.parametrize("session", SESSIONS.values(), ids=SESSIONS.keys())
def test_a_session_is_one_trace(session: SessionFile, tmp_path: Path) -> None:
    path = session.write(tmp_path)
    trace = read(path)
    assert read_file(path, named=True).format == session.format
    assert span_lines(trace) == session.spans
    assert trace.meta.model == session.model
    assert trace.meta.version == session.version
    assert (trace.identity.trace_id == session.id) is trace.identity.native
    assert trace.identity.native is (session.id is not None)
    counted = [span.tokens for span in spans_of(trace) if span.tokens is not None]
    totals = tuple(sum(tokens[side] or 0 for tokens in counted) for side in (0, 1))
    assert totals == session.tokens
    if any(line.startswith("message user") and LONG in line for line in session.spans):
        assert trace.meta.task == LONG


@pytest.mark.parametrize("session", SESSIONS.values(), ids=SESSIONS.keys())
def test_every_long_text_is_in_one_span_and_every_result_at_its_call(
    session: SessionFile, tmp_path: Path
) -> None:
    path = session.write(tmp_path)
    trace = read(path)
    coverage = text_coverage(path, [trace], ("request", "transformedContent"))
    assert coverage.lost == ()
    assert coverage.doubled == ()
    results = [span for span in spans_of(trace) if span.kind is SpanKind.TOOL_RESULT]
    assert all(span.parent is not None for span in results)


@pytest.mark.parametrize("session", SESSIONS.values(), ids=SESSIONS.keys())
def test_damage_costs_the_broken_record_alone(session: SessionFile, tmp_path: Path) -> None:
    """A broken line is a problem; a document that ends too soon is read up to there."""
    if isinstance(session.content, Mapping):
        path = session.write(tmp_path)
        text = path.read_text()
        path.write_text(text[: text.rindex(":")])
        lines = span_lines(read(path))
        assert lines[:2] == session.spans[:2]
        assert any("cut off" in problem for problem in problems_of(path))
        assert not any("not JSON" in problem for problem in problems_of(path))
    else:
        path = session.write(tmp_path, line='{"type": "assistant", "mess')
        assert span_lines(read(path)) == session.spans
        assert any(problem.startswith("line 3: not JSON") for problem in problems_of(path))


@pytest.mark.parametrize("session", SESSIONS.values(), ids=SESSIONS.keys())
def test_a_list_of_records_is_read_as_its_lines_are(session: SessionFile, tmp_path: Path) -> None:
    if isinstance(session.content, Mapping):
        pytest.skip("a document")
    path = write_json(tmp_path / "list.json", list(session.content))
    assert span_lines(read(path)) == session.spans


def test_an_abandoned_branch_is_left_out_and_named(tmp_path: Path) -> None:
    problem = "1 message of an abandoned branch is not shown"
    assert problems_of(PI.write(tmp_path)) == [f"line 4: {problem}"]
    assert problems_of(QWEN.write(tmp_path)) == [f"line 3: {problem}"]


def test_messages_without_a_parent_follow_each_other(tmp_path: Path) -> None:
    assert not isinstance(PI.content, Mapping)
    records = [
        {name: value for name, value in record.items() if name != "parentId"}
        for record in PI.content
    ]
    lines = span_lines(read(write_json_lines(tmp_path / "flat.jsonl", *records)))
    assert lines == [PI.spans[0], "message assistant: Dropped.", *PI.spans[1:]]


def test_a_rewind_takes_messages_back(tmp_path: Path) -> None:
    path = GEMINI_LINES.write(tmp_path)
    assert problems_of(path) == ["line 8: 2 messages taken back by a rewind are not shown"]


def test_calls_have_the_times_of_their_tools(tmp_path: Path) -> None:
    call = next(span for span in spans_of(read(OPENCODE.write(tmp_path))) if span.name == "bash")
    assert call.start is not None
    assert call.end == call.start + 1


def test_text_before_an_export_is_named(tmp_path: Path) -> None:
    path = OPENCODE.write(tmp_path)
    path.write_text(f"Exporting session: ses_m\n{path.read_text()}")
    assert span_lines(read(path)) == OPENCODE.spans
    assert problems_of(path) == ["line 1: text before the JSON, left out"]


def test_records_among_lines_of_text_are_read(tmp_path: Path) -> None:
    """As where a program's output went into a file with its progress."""
    path = OPENCODE_RUN.write(tmp_path)
    path.write_text(f"Starting …\n{path.read_text()}Done.\n")
    assert span_lines(read(path)) == OPENCODE_RUN.spans
    assert [problem.split(":")[0] for problem in problems_of(path)] == ["line 1", "line 7"]


@pytest.mark.parametrize("indent", [None, 2], ids=["on one line", "pretty-printed"])
def test_records_without_lines_of_their_own_are_read(tmp_path: Path, indent: int | None) -> None:
    assert not isinstance(QWEN.content, Mapping)
    path = tmp_path / "glued.jsonl"
    path.write_text("".join(json.dumps(record, indent=indent) for record in QWEN.content))
    (trace,) = read_file(path, named=True).traces
    assert span_lines(trace) == QWEN.spans


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_any_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    path = PI.write(tmp_path)
    path.write_bytes(path.read_text().encode(encoding))
    assert span_lines(read(path)) == PI.spans


def test_a_file_with_two_sessions_is_two_traces(tmp_path: Path) -> None:
    lines = [
        {"type": "message", "session_id": name, "role": "user", "text": text}
        for name, text in (("one", LONG), ("two", LONGER), ("one", "More."))
    ]
    path = write_json_lines(tmp_path / "stream.jsonl", *lines)
    traces = read_file(path, named=True).traces
    assert {trace.identity.trace_id: span_lines(trace) for trace in traces} == {
        "one": [f"message user: {LONG}", "message user: More."],
        "two": [f"message user: {LONGER}"],
    }


def test_a_session_of_claude_code_needs_no_parents(tmp_path: Path) -> None:
    """Sessions without ``parentUuid`` are read in file order, those without ids as lines."""
    assert isinstance(CLAUDE_WEB.content, Mapping)
    lines = CLAUDE_WEB.content["loglines"]
    with_ids = [{"uuid": f"u{n}", "sessionId": "cc", **line} for n, line in enumerate(lines)]
    trace = read(write_json_lines(tmp_path / "ids.jsonl", *with_ids))
    assert trace.identity.trace_id == "cc"
    assert span_lines(trace) == CLAUDE_WEB.spans
    assert [span.key for span in spans_of(trace)] == ["u0", "u1", "t:call", "t:result"]
    bare = write_json_lines(tmp_path / "bare.jsonl", *lines)
    listed = write_json(tmp_path / "list.json", with_ids)
    assert span_lines(read(bare)) == span_lines(read(listed)) == CLAUDE_WEB.spans


def test_sub_agents_of_claude_code_are_not_tied_to_qwen_code(tmp_path: Path) -> None:
    """Ids mean nothing across programs."""
    QWEN.write(tmp_path)
    worker = {
        "sessionId": QWEN.id,
        "agentId": "w",
        "isSidechain": True,
        "uuid": "w1",
        "parentUuid": None,
        "type": "user",
        "message": {"role": "user", "content": "Look."},
    }
    write_json_lines(tmp_path / "agent-w.jsonl", worker)
    formats = {report.format for report in scan([tmp_path]) if report.traces}
    assert formats == {"claude-code", "qwen-code"}


def test_an_unknown_part_is_a_problem(tmp_path: Path) -> None:
    assert isinstance(OPENCODE.content, Mapping)
    message = {"info": {"role": "assistant"}, "parts": [{"type": "hologram", "of": "mill"}]}
    path = write_json(tmp_path / "new.json", {"info": {"id": "s"}, "messages": [message]})
    assert problems_of(path) == ["/messages/0: unknown part type `hologram`"]


def test_a_folder_with_a_file_per_message_is_one_session(tmp_path: Path) -> None:
    assert not isinstance(STRANDS.content, Mapping)
    session = tmp_path / "session_mill"
    messages = session / "agents" / "agent_default" / "messages"
    messages.mkdir(parents=True)
    write_json(session / "session.json", {"session_id": "mill"})
    write_json(messages.parent / "agent.json", {"agent_id": "default"})
    for number, record in zip((0, 2, 10), STRANDS.content, strict=True):
        write_json(messages / f"message_{number}.json", record)
    for folder, name in ((session, "mill"), (messages.parent, None), (messages, None)):
        (trace,) = (trace for report in scan([folder]) for trace in report.traces)
        check_sound(trace)
        assert span_lines(trace) == STRANDS.spans
        assert trace.identity.native is (name is not None)
    (messages / "message_2.json").write_text("{")
    (report,) = (report for report in scan([session]) if report.traces)
    assert len(report.traces[0]) == 2
    assert any("message_2.json" in problem.place for problem in report.problems)


@pytest.mark.parametrize("flat", [False, True], ids=["by message", "in one folder"])
def test_a_folder_with_a_file_per_part_is_its_sessions(tmp_path: Path, flat: bool) -> None:
    assert isinstance(OPENCODE.content, Mapping)
    for folder in ("session/mill", "message/ses_m", "part"):
        (tmp_path / folder).mkdir(parents=True)
    write_json(tmp_path / "session/mill/ses_m.json", OPENCODE.content["info"])
    for message in OPENCODE.content["messages"]:
        name = message["info"]["id"]
        write_json(tmp_path / f"message/ses_m/{name}.json", message["info"])
        parts = tmp_path / "part" if flat else tmp_path / "part" / name
        parts.mkdir(exist_ok=True)
        for number, part in enumerate(message["parts"]):
            named = {**part, "messageID": name} if flat else part
            write_json(parts / f"prt_{name}_{number}.json", named)
    (trace,) = (trace for report in scan([tmp_path]) for trace in report.traces)
    check_sound(trace)
    assert span_lines(trace) == OPENCODE.spans
    assert (trace.identity.trace_id, trace.meta.version) == ("ses_m", "2.1.0")


def test_an_exported_session_has_the_tokens_beside_its_messages(tmp_path: Path) -> None:
    assert not isinstance(GOOSE.content, Mapping)
    header, *messages = GOOSE.content
    document = {"id": "20261102_1", **header, "conversation": messages}
    trace = read(write_json(tmp_path / "export.json", document))
    assert trace.identity.trace_id == "20261102_1"
    assert span_lines(trace) == GOOSE.spans
    assert [span.tokens for span in spans_of(trace) if span.tokens] == [GOOSE.tokens]
