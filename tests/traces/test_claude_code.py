"""Claude Code sessions: spans, pairs of calls and results, tokens and roles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Role, SpanKind, SpanStatus, Thread, Tokens
from mast_tui.traces.readers import recognising_readers
from mast_tui.traces.readers.claude_code.reader import READER
from tests.traces.checks import (
    keys_of,
    read_file,
    span_lines,
    spans_of,
    texts_of,
    write_json_lines,
)
from tests.traces.claude_sessions import (
    SESSION,
    Record,
    agent,
    answer,
    at,
    call,
    record,
    report_of,
    text,
    trace_of,
    user,
)


def test_a_session_from_its_prompt_to_its_answer(tmp_path: Path) -> None:
    report = report_of(
        tmp_path,
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        at(0, user("u1", None, "Why is checkout slow?")),
        at(1, agent("u2", "u1", {"type": "thinking", "thinking": "Pods first."})),
        at(2, agent("u3", "u2", "Looking.", call("t1", command="kubectl get pods"))),
        at(5, answer("u4", "u3", "t1", "NAME  READY", is_error=False)),
        at(6, agent("u5", "u4", "The pods are fine.")),
    )
    (trace,) = report.traces
    assert [
        (span.kind.value, span.role.value, span.agent, span.key) for span in spans_of(trace)
    ] == [
        ("message", "user", "user", "u1"),
        ("reasoning", "agent", "claude-code", "u2"),
        ("message", "agent", "claude-code", "u3"),
        ("tool_call", "agent", "claude-code", "t1:call"),
        ("tool_result", "tool", "claude-code", "t1:result"),
        ("message", "agent", "claude-code", "u5"),
    ]
    made, result = trace.span(3), trace.span(4)
    assert (made.name, result.name, result.parent) == ("Bash", "Bash", "t1:call")
    assert (made.end, made.end and made.start and made.end - made.start) == (result.start, 3)
    assert result.status is SpanStatus.OK
    assert made.place == "line 4"
    assert texts_of(trace)[:3] == ["Why is checkout slow?", "Pods first.", "Looking."]
    assert json.loads(trace.text(3)) == {"command": "kubectl get pods"}
    assert trace.text(4) == "NAME  READY"
    assert (trace.meta.system, trace.meta.model) == ("claude-code", "claude-opus-5")
    assert trace.meta.task == "Why is checkout slow?"
    assert (trace.identity.trace_id, trace.identity.native) == (SESSION, True)
    assert report.thread == Thread(SESSION)
    assert report.format == "claude-code"
    assert not trace.problems


def test_further_blocks_of_a_record_have_their_number_in_the_key(tmp_path: Path) -> None:
    blocks = ("one", call("t1"), "two", {"type": "thinking", "thinking": "three"})
    trace = trace_of(tmp_path, user("u1", None, [text("a"), text("b")]), agent("u2", "u1", *blocks))
    assert keys_of(trace) == ["u1", "u1/2", "u2", "t1:call", "u2/3", "u2/4"]


def test_parallel_calls_are_paired_with_their_own_results(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        user("u1", None, "go"),
        agent("a1", "u1", call("t1", "Read"), response="m"),
        agent("a2", "a1", call("t2", "Grep"), response="m"),
        at(3, answer("r2", "a2", "t2", "two")),
        at(4, answer("r1", "a1", "t1", "one", is_error=True)),
        agent("a3", "r1", "done"),
    )
    _prompt, first, second, two, one, _done = spans_of(trace)
    assert (one.parent, one.name, one.status) == ("t1:call", "Read", SpanStatus.ERROR)
    assert (two.parent, two.name, two.status) == ("t2:call", "Grep", SpanStatus.UNKNOWN)
    assert (first.end, second.end) == (one.start, two.start)


def test_a_call_or_a_result_may_be_missing(tmp_path: Path) -> None:
    lone = (user("u1", None, "go"), agent("a1", "u1", call("t1")), answer("r", "a1", "t9"))
    made, result = spans_of(trace_of(tmp_path, *lone))[1:]
    assert (made.end, result.parent, result.name, result.key) == (None, None, None, "t9:result")


def test_the_tokens_of_a_response_are_counted_once_as_its_last_record_has_them(
    tmp_path: Path,
) -> None:
    early = {"input_tokens": 3, "cache_read_input_tokens": 100, "output_tokens": 1}
    late = {**early, "cache_creation_input_tokens": 20, "output_tokens": 57}
    trace = trace_of(
        tmp_path,
        user("u1", None, "go"),
        agent("a1", "u1", {"type": "thinking", "thinking": "hm"}, response="m1", usage=early),
        agent("a2", "a1", call("t1"), response="m1", usage=early),
        answer("r1", "a2", "t1"),
        agent("a3", "a2", call("t2"), response="m1", usage=late),
        answer("r2", "a3", "t2"),
        agent("a4", "r2", "done", response="m2", usage={"output_tokens": 5}),
    )
    counted = {span.key: span.tokens for span in spans_of(trace) if span.tokens is not None}
    assert counted == {"t2:call": Tokens(123, 57), "a4": Tokens(None, 5)}


@pytest.mark.parametrize(
    ("content", "role"),
    [
        ("Fix the bug", Role.USER),
        ("Fix <system-reminder>x</system-reminder> it", Role.USER),
        ("<command-name>/clear</command-name>\n <command-args></command-args>", Role.SYSTEM),
        ("<local-command-stdout>Set model</local-command-stdout>", Role.SYSTEM),
        ("\n<system-reminder>\nBe brief\n</system-reminder>\n", Role.SYSTEM),
        ("<system-reminder>never closed", Role.USER),
        ("<command-name>/x</command-name> and also this", Role.USER),
        ("<div>hello</div>", Role.USER),
        (
            "Caveat: The messages below were generated by the user while running local commands.",
            Role.SYSTEM,
        ),
    ],
)
def test_texts_in_the_name_of_the_user_have_the_role_of_their_writer(
    tmp_path: Path, content: str, role: Role
) -> None:
    for shape in (content, [text(content)]):
        span = trace_of(tmp_path, user("u1", None, shape)).span(0)
        assert (span.role, span.kind) == (role, SpanKind.MESSAGE)
        assert span.agent == role.value


def test_the_task_is_the_first_prompt_that_a_person_wrote(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        user("u1", None, "Base directory for this skill", isMeta=True),
        user("u2", "u1", "<command-name>/model</command-name>"),
        user("u3", "u2", "[Request interrupted by user]"),
        user("u4", "u3", [text("<system-reminder>x</system-reminder>"), text("The task")]),
        user("u5", "u4", "This session is being continued", isCompactSummary=True),
    )
    assert trace.meta.task == "The task"
    assert [span.role.value for span in spans_of(trace)] == [
        "system",
        "system",
        "user",
        "system",
        "user",
        "system",
    ]


def system_record(subtype: str, **fields: object) -> Record:
    return record("x", "u1", "system", subtype=subtype, **fields)


def attachment_record(attachment: object) -> Record:
    return record("x", "u1", "attachment", attachment=attachment)


def result_record(content: object, outcome: object) -> Record:
    return answer("x", "u1", "t1", content, toolUseResult=outcome)


QUEUED = {"type": "queued_command", "prompt": "also the docs"}
RESULT = "tool_result claude-code"
IMAGE = {"type": "image", "source": {"data": "x" * 99}}
UNREADABLE = ({"type": "redacted_thinking", "data": "eA=="}, {"type": "thinking", "thinking": ""})
RECORDS: list[tuple[Record, dict[str, str]]] = [
    (
        {"type": "summary", "summary": "Slow", "leafUuid": "x"},
        {"line 2": "log system summary: Slow"},
    ),
    (system_record("compact_boundary", content="Done"), {"x": "log system compact_boundary: Done"}),
    (
        system_record("api_error", error={"status": 529}, level="error"),
        {"x": 'log system api_error error: { "error": { "status": 529 } }'},
    ),
    (system_record("hook", errors=["lint"]), {"x": 'log system hook: { "errors": [ "lint" ] }'}),
    (system_record("turn_duration", durationMs=5), {}),
    *((record("x", "u1", kind, content="x"), {}) for kind in ("progress", "ai-title", "pr-link")),
    (
        attachment_record({"type": "hook_success", "content": "fine"}),
        {"x": "log system attachment: fine"},
    ),
    (attachment_record({**QUEUED, "commandMode": "prompt"}), {"x": "message user: also the docs"}),
    (
        attachment_record({**QUEUED, "commandMode": "task-notification", "content": "done"}),
        {"x": "log system attachment: done"},
    ),
    (
        agent("x", "u1", "API Error: 500", isApiErrorMessage=True),
        {"x": "log system api_error error: API Error: 500"},
    ),
    (agent("x", "u1", "No response.", model="<synthetic>"), {"x": "message system: No response."}),
    (agent("x", "u1", *UNREADABLE, "b"), {"x/3": "message claude-code: b"}),
    (record("x", "u1", "hologram"), {"x": "log log hologram: "}),
    (result_record("printed", {"stdout": "other"}), {"t1:result": f"{RESULT}: printed"}),
    (result_record([text("a"), IMAGE], None), {"t1:result": f"{RESULT}: a [image]"}),
    (result_record("", {"stdout": "other"}), {"t1:result": f"{RESULT}: "}),
    (result_record(None, {"stdout": "a", "stderr": "b"}), {"t1:result": f"{RESULT}: a b"}),
    (result_record(None, "Error: no"), {"t1:result": f"{RESULT}: Error: no"}),
    (result_record(None, None), {"t1:result": f"{RESULT}: "}),
    (record("x", "u1", "user", message="bare"), {"x": "message user: bare"}),
    (
        record("x", "u1", "user", message={"role": "user"}, toolUseResult="saved"),
        {"x": f"{RESULT}: saved"},
    ),
    (
        user("x", "u1", ["a string", IMAGE, 7]),
        {"x": "message user: a string", "x/2": "message user: [image]", "x/3": "log log user: 7"},
    ),
    (
        record("x", "u1", "user", message={"role": "user", "contents": "misspelt"}),
        {"x": 'log log user: { "role": "user", "contents": "misspelt" }'},
    ),
    (record("x", "u1", "user"), {}),
    (
        record("x", "u1", "assistant", message={"role": "assistant", "content": "plain"}),
        {"x": "message claude-code: plain"},
    ),
]


@pytest.mark.parametrize(("written", "shown"), RECORDS)
def test_each_kind_of_record_becomes_its_spans(
    tmp_path: Path, written: Record, shown: dict[str, str]
) -> None:
    trace = trace_of(tmp_path, user("u1", None, "go"), written)
    lines = dict(zip(keys_of(trace), span_lines(trace), strict=True))
    assert lines.pop("u1") == "message user: go"
    if written["type"] == "hologram":
        lines = {key: line.partition("{")[0] for key, line in lines.items()}
    assert lines == shown
    assert trace.meta.model in (None, "claude-opus-5")


ONE, TWO, THREE = (
    json.dumps(one)
    for one in (user("u1", None, "go"), agent("a1", "u1", "ok"), agent("a2", "a1", "done"))
)
SUMMARY = json.dumps({"type": "summary", "summary": "S", "leafUuid": "a2"})
NUL = "\0" * 300
DAMAGED = {
    "broken lines": (f'{ONE}\n{{"broken": \n42\n\n{TWO}\n{ONE[:70]}', "u1 a1", (2, 3, 6)),
    "glued records": (f"{ONE}\n{TWO}{THREE}\n{SUMMARY}", "u1 a1 a2 line_3", (2,)),
    "glued records without ids": (f"{ONE}\n{SUMMARY} {SUMMARY}\n", "u1 line_2 line_2~2", (2,)),
    "a record behind a cut one": (f"{ONE}\n{TWO[:90]}{THREE}\n{SUMMARY}", "u1 a2 line_3", (2,)),
    "a cut end in an inner object": (f'{ONE}\n{{"message": {{"type": "text"}}', "u1", (2,)),
    "a line of NUL bytes": (f"{ONE}\n{NUL}\n{TWO}\n{SUMMARY}", "u1 a1 line_4", (2,)),
    "NUL bytes in a record": (f"{ONE}\n{TWO[:40]}{NUL}{TWO[40:]}\n{THREE}", "u1 a1 a2", (2,)),
    "NUL bytes between records": (f"{ONE}\n{TWO}{NUL}{THREE}\n", "u1 a1 a2", (2, 2)),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_whole_records_on_damaged_lines_are_read(tmp_path: Path, name: str) -> None:
    content, keys, lines = DAMAGED[name]
    path = tmp_path / "s.jsonl"
    path.write_text(content, encoding="utf-8")
    (trace,) = read_file(READER, path).traces
    assert keys_of(trace) == [key.replace("_", " ") for key in keys.split()]
    assert [problem.place for problem in trace.problems] == [f"line {line}" for line in lines]
    assert texts_of(trace)[0] == "go"
    cut_off = name in ("broken lines", "a cut end in an inner object")
    assert ("cut off" in trace.problems[-1].message) == cut_off


def test_a_record_that_was_written_twice_is_shown_once(tmp_path: Path) -> None:
    first, second = user("u1", None, "go"), agent("a1", "u1", call("t1"))
    assert keys_of(trace_of(tmp_path, first, first, second, second)) == ["u1", "t1:call"]


def test_the_text_of_a_changed_or_removed_file_is_an_error(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "s.jsonl", user("u1", None, "go"))
    (trace,) = READER.read(Source(path)).traces
    path.write_bytes(b"#" * path.stat().st_size)
    with pytest.raises(OSError, match="the file has changed"):
        trace.text(0)
    path.unlink()
    with pytest.raises(OSError, match="gone"):
        trace.text(0)
    assert "gone" in trace.span(0).preview


def test_a_first_record_longer_than_the_head_is_recognised(tmp_path: Path) -> None:
    pasted = "x" * 200_000
    trace = trace_of(tmp_path, user("u1", None, pasted), agent("a1", "u1", "ok"))
    assert trace.text(0) == pasted
    queue = {"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION}
    assert keys_of(trace_of(tmp_path, queue, user("u1", None, pasted))) == ["u1"]


def test_only_this_reader_claims_a_session(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "s.jsonl", user("u1", None, "go"), agent("a", "u1", "ok"))
    assert [reader.name for reader in recognising_readers(Source(path))] == ["claude-code"]


def test_other_files_are_not_recognised_as_sessions(tmp_path: Path) -> None:
    contents: list[list[object]] = [
        [{"type": "started", "key": "k", "agentId": "a1"}, {"type": "result", "agentId": "a1"}],
        [{"type": "summary", "summary": "x", "leafUuid": "y"}],
        [{"role": "user", "content": "parentUuid sessionId uuid"}],
        [{"type": "user", "message": {}, "session_id": "s", "uuid": "u"}],
        [{"sessionId": {}, "uuid": 3, "parentUuid": None}],
    ]
    for content in contents:
        assert not READER.recognises(Source(write_json_lines(tmp_path / "x.jsonl", *content)))
