"""Claude Code sessions: what becomes a span, what is paired, counted and left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Role, SpanKind, SpanStatus, Thread, Tokens
from mast_tui.traces.readers import claims
from mast_tui.traces.readers.claude_code.reader import READER
from tests.traces.checks import keys_of, said, spans_of, write_json_lines
from tests.traces.claude_sessions import (
    SESSION,
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
    assert [(one.kind.value, one.role.value, one.agent, one.key) for one in spans_of(trace)] == [
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
    assert said(trace)[:3] == ["Why is checkout slow?", "Pods first.", "Looking."]
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
    counted = {one.key: one.tokens for one in spans_of(trace) if one.tokens is not None}
    assert counted == {"t2:call": Tokens(123, 57), "a4": Tokens(None, 5)}


def test_thinking_that_cannot_be_read_shows_nothing_but_keeps_the_keys_of_what_follows(
    tmp_path: Path,
) -> None:
    trace = trace_of(
        tmp_path,
        user("u1", None, "go"),
        agent("a1", "u1", {"type": "redacted_thinking", "data": "eA=="}, "b"),
        agent("a2", "a1", {"type": "thinking", "thinking": "", "signature": "x"}, "c"),
    )
    assert keys_of(trace) == ["u1", "a1/2", "a2/2"]


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
def test_who_wrote_a_text_in_the_name_of_the_user(tmp_path: Path, content: str, role: Role) -> None:
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
    assert [one.role.value for one in spans_of(trace)] == [
        "system",
        "system",
        "user",
        "system",
        "user",
        "system",
    ]


def test_what_the_harness_tells_is_a_log(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        {"type": "summary", "summary": "Slow checkout", "leafUuid": "x"},
        user("u1", None, "go"),
        record("s1", "u1", "system", subtype="compact_boundary", content="Conversation compacted"),
        record("s2", "s1", "system", subtype="api_error", error={"status": 529}, level="error"),
        record("s3", "s2", "system", subtype="stop_hook_summary", hookErrors=["lint failed"]),
        record("s4", "s3", "system", subtype="turn_duration", durationMs=5),
        record("h1", "s4", "attachment", attachment={"type": "hook_success", "content": "fine"}),
        agent("a1", "h1", "API Error: 500", isApiErrorMessage=True),
        record("z1", "a1", "hologram", depth=3),
    )
    logs = [one for one in spans_of(trace) if one.kind is SpanKind.LOG]
    assert [(one.name, one.role.value, one.status.value, one.key) for one in logs] == [
        ("summary", "system", "unknown", "line 1"),
        ("compact_boundary", "system", "unknown", "s1"),
        ("api_error", "system", "error", "s2"),
        ("stop_hook_summary", "system", "unknown", "s3"),
        ("attachment", "system", "unknown", "h1"),
        ("api_error", "system", "error", "a1"),
        ("hologram", "log", "unknown", "z1"),
    ]
    texts = said(trace)
    assert texts[0] == "Slow checkout"
    assert texts[2] == "Conversation compacted"
    assert json.loads(texts[3]) == {"error": {"status": 529}}
    assert "lint failed" in texts[4]
    assert texts[5:7] == ["fine", "API Error: 500"]
    assert json.loads(texts[7])["depth"] == 3


def test_bookkeeping_makes_no_spans(tmp_path: Path) -> None:
    kinds = ("progress", "queue-operation", "last-prompt", "ai-title", "mode", "pr-link")
    books = [record(f"b{number}", "u1", kind, content="x") for number, kind in enumerate(kinds)]
    assert keys_of(trace_of(tmp_path, user("u1", None, "go"), *books)) == ["u1"]


def test_a_prompt_typed_while_the_agent_was_at_work_is_the_users(tmp_path: Path) -> None:
    queued = {"type": "queued_command", "prompt": "also the docs", "commandMode": "prompt"}
    notice = {"type": "queued_command", "prompt": "task done", "commandMode": "task-notification"}
    trace = trace_of(
        tmp_path,
        user("u1", None, "go"),
        record("q1", "u1", "attachment", attachment=queued),
        record("q2", "q1", "attachment", attachment=notice),
    )
    _prompt, first, second = spans_of(trace)
    assert (first.kind, first.role, trace.text(1)) == (
        SpanKind.MESSAGE,
        Role.USER,
        "also the docs",
    )
    assert (second.kind, second.role) == (SpanKind.LOG, Role.SYSTEM)


def test_words_that_the_harness_put_into_the_models_mouth_are_the_harness_s(tmp_path: Path) -> None:
    made_up = agent("a1", "u1", "No response requested.")
    message = made_up["message"]
    assert isinstance(message, dict)
    message["model"] = "<synthetic>"
    trace = trace_of(tmp_path, user("u1", None, "go"), made_up, agent("a2", "a1", "ok"))
    assert trace.span(1).role is Role.SYSTEM
    assert trace.meta.model == "claude-opus-5"


@pytest.mark.parametrize(
    ("content", "outcome", "shown"),
    [
        ("printed", {"stdout": "other"}, "printed"),
        (
            [{"type": "text", "text": "a"}, {"type": "image", "source": {"data": "x"}}],
            None,
            "a\n[image]",
        ),
        ("", {"stdout": "other"}, ""),
        (None, {"stdout": "out", "stderr": "err"}, "out\nerr"),
        (None, "Error: no", "Error: no"),
        (None, None, ""),
    ],
)
def test_the_text_of_a_result(tmp_path: Path, content: object, outcome: object, shown: str) -> None:
    result = answer("r1", "a1", "t1", content, toolUseResult=outcome)
    trace = trace_of(tmp_path, user("u1", None, "go"), agent("a1", "u1", call("t1")), result)
    assert trace.text(2) == shown


def test_messages_of_other_shapes(tmp_path: Path) -> None:
    trace = trace_of(
        tmp_path,
        user("u1", None, "go"),
        record("u2", "u1", "user", message="bare"),
        record("u3", "u2", "user", message={"role": "user"}, toolUseResult="saved"),
        user("u4", "u3", ["a string", {"type": "image", "source": {"data": "x" * 99}}, 7]),
        record("u5", "u4", "user", message={"role": "user", "contents": "misspelt"}),
        record("u6", "u5", "user"),
        record("u7", "u6", "assistant", message={"role": "assistant", "content": "plain"}),
    )
    kinds = [(one.key, one.kind.value) for one in spans_of(trace)]
    assert kinds == [
        ("u1", "message"),
        ("u2", "message"),
        ("u3", "tool_result"),
        ("u4", "message"),
        ("u4/2", "message"),
        ("u4/3", "log"),
        ("u5", "log"),
        ("u7", "message"),
    ]
    assert said(trace)[1:5] == ["bare", "saved", "a string", "[image]"]
    assert said(trace)[-1] == "plain"


def test_a_record_that_was_written_twice_is_shown_once(tmp_path: Path) -> None:
    first, second = user("u1", None, "go"), agent("a1", "u1", call("t1"))
    assert keys_of(trace_of(tmp_path, first, first, second, second)) == ["u1", "t1:call"]


def test_broken_lines_are_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    good = json.dumps(user("u1", None, "go"))
    more = json.dumps(agent("a1", "u1", "ok"))
    path.write_text(f'{good}\n{{"broken": \n42\n\n{more}\n{good[:70]}', encoding="utf-8")
    (trace,) = READER.read(Source(path)).traces
    assert keys_of(trace) == ["u1", "a1"]
    assert trace.span(1).place == "line 5"
    assert [problem.place for problem in trace.problems] == ["line 2", "line 3", "line 6"]
    assert "cut off" in trace.problems[-1].message


def test_text_of_a_file_that_has_gone_or_changed(tmp_path: Path) -> None:
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
    assert [reader.name for reader in claims(Source(path))] == ["claude-code"]


def test_other_files_are_not_taken_for_sessions(tmp_path: Path) -> None:
    contents: list[list[object]] = [
        [{"type": "started", "key": "k", "agentId": "a1"}, {"type": "result", "agentId": "a1"}],
        [{"type": "summary", "summary": "x", "leafUuid": "y"}],
        [{"role": "user", "content": "parentUuid sessionId uuid"}],
        [{"type": "user", "message": {}, "session_id": "s", "uuid": "u"}],
        [{"sessionId": {}, "uuid": 3, "parentUuid": None}],
    ]
    for content in contents:
        assert not READER.recognises(Source(write_json_lines(tmp_path / "x.jsonl", *content)))
