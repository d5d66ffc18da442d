"""Messages of an Inspect sample: each shown once, whole, under a lasting key."""

from __future__ import annotations

import json
from collections.abc import Hashable
from pathlib import Path

import pytest

from mast_tui.traces.model import Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.inspect import messages as inspect_messages
from mast_tui.traces.readers.inspect.messages import History, MessageSpans
from tests.traces.inspect_logs import (
    Json,
    answers,
    at,
    calls,
    model,
    read_eval,
    read_sample,
    sample,
    says,
    spans,
    told,
    tool,
    unix,
    user,
)

SYSTEM: Json = {"role": "system", "content": "You are helpful."}
TASK = user("Find the key.")


def test_a_history_that_every_call_repeats_is_shown_once(tmp_path: Path) -> None:
    first = says("I look.", calls("c1", cmd="ls"))
    history = [SYSTEM, TASK, first, answers("c1", "mat")]
    trace = read_sample(
        tmp_path,
        model([SYSTEM, TASK], first, 0),
        tool("c1", "mat", 1),
        model(history, says("Go on?"), 2),
        model([*history, says("Go on?"), user("Go on.")], says("Hm."), 4),
        model(
            [*history, says("Go on?"), user("Go on."), says("Hm."), user("Go on.")], says("!"), 6
        ),
    )
    assert told(trace) == [
        ("message", "system", "You are helpful."),
        ("message", "user", "Find the key."),
        ("message", "assistant", "I look."),
        ("tool_call", "assistant", '{\n  "cmd": "ls"\n}'),
        ("tool_result", "assistant", "mat"),
        ("message", "assistant", "Go on?"),
        ("message", "user", "Go on."),
        ("message", "assistant", "Hm."),
        ("message", "user", "Go on."),
        ("message", "assistant", "!"),
    ]


def test_a_call_knows_its_times_its_tokens_and_its_result(tmp_path: Path) -> None:
    usage = {"input_tokens": 10, "input_tokens_cache_read": 5, "output_tokens": 3}
    call = model([TASK], says("I look.", calls("c1", cmd="ls")), 0)
    call["output"]["usage"] = usage  # type: ignore[index]
    trace = read_sample(tmp_path, call, tool("c1", "mat", 1, error={"type": "x", "message": "no"}))
    _user, text, asked, result = spans(trace)
    assert (text.start, text.end, text.tokens) == (unix(0), unix(1), None)
    assert asked.tokens == Tokens(15, 3)
    assert (asked.start, asked.end, asked.name) == (unix(1), unix(1.5), "bash")
    assert (asked.key, asked.place) == (
        "c1:call",
        "samples/1_epoch_1.json /events/0/output/choices/0/message/tool_calls/0",
    )
    assert (result.parent, result.start) == ("c1:call", unix(1.5))
    assert (result.key, result.place) == ("c1:result", "samples/1_epoch_1.json /events/1")
    assert (result.role, result.name, result.status) == (Role.TOOL, "bash", SpanStatus.ERROR)
    assert trace.text(3) == "mat\nno"


def test_keys_are_ids_of_messages_and_events_else_places(tmp_path: Path) -> None:
    trace = read_sample(
        tmp_path,
        model([user("a", id="m1"), user("b")], says("c", id="m2"), 0, uuid="e0"),
        model([], says("d"), 2, uuid="e1"),
        model([], says("e"), 4),
        {"event": "info", "uuid": "e3", "data": "f"},
        {"event": "info", "data": {"g": 1}},
        {"event": "tool", "function": "x", "arguments": {}, "result": 7},
    )
    assert [span.key for span in spans(trace)] == [
        "m1",
        "/events/0/input/1",
        "m2",
        "e1",
        "/events/2/output/choices/0/message",
        "e3",
        "/events/4",
        "/events/5",
        "/events/5/result",
    ]


def test_reasoning_text_and_calls_are_spans_of_their_own(tmp_path: Path) -> None:
    content = [
        {"type": "reasoning", "reasoning": "I think.", "signature": "x"},
        {"type": "text", "text": "I"},
        {"type": "image", "image": "data:image/png;base64,AAAA"},
        {"type": "reasoning", "reasoning": "garbled", "redacted": True, "summary": "Planning."},
        {"type": "reasoning", "reasoning": "garbled", "redacted": True},
        {
            "type": "tool_use",
            "tool_type": "web_search",
            "id": "w1",
            "name": "search",
            "arguments": "key",
            "result": "found",
        },
        {"type": "text", "text": "Done."},
    ]
    trace = read_sample(tmp_path, model([], says(content, calls("c1", cmd="x"), id="m"), 0))
    assert told(trace) == [
        ("reasoning", "assistant", "I think."),
        ("message", "assistant", "I\n[image]"),
        ("reasoning", "assistant", "Planning."),
        ("reasoning", "assistant", "[reasoning hidden]"),
        ("tool_call", "assistant", "key"),
        ("tool_result", "assistant", "found"),
        ("message", "assistant", "Done."),
        ("tool_call", "assistant", '{\n  "cmd": "x"\n}'),
    ]
    assert [span.key for span in spans(trace)][:4] == [
        "m/content/0",
        "m/content/1",
        "m/content/3",
        "m/content/4",
    ]
    assert [span.tokens is None for span in spans(trace)] == [True] * 7 + [False]


@pytest.mark.parametrize("layout", ["events_data", "message_pool"])
def test_pooled_inputs_are_looked_up(tmp_path: Path, layout: str) -> None:
    pool = [SYSTEM, TASK, says("One."), user("Go on."), says("Two.")]
    kept: Json = (
        {"events_data": {"messages": pool, "calls": []}}
        if layout == "events_data"
        else {"message_pool": pool}
    )
    refs: list[object] = [
        [[0, 2]],
        [[0, 4]],
        [[0, 5], [3, 4]],
    ]
    outputs = ["One.", "Two.", "Three."]
    events = [
        model([], says(text), 2 * number, input_refs=ref)
        for number, (ref, text) in enumerate(zip(refs, outputs, strict=True))
    ]
    trace = read_sample(tmp_path, *events, **kept)
    assert [text for _kind, _agent, text in told(trace)] == [
        *("You are helpful.", "Find the key.", "One."),
        *("Go on.", "Two.", "Go on.", "Three."),
    ]
    pointer = "/events_data/messages" if layout == "events_data" else "/message_pool"
    assert spans(trace)[0].key == f"{pointer}/0"


def test_references_beyond_the_pool_are_one_problem(tmp_path: Path) -> None:
    refs: list[object] = [[0, 9], [-1, 0], ["a", 2], [1], 7, [2, 1]]
    report = read_eval(
        tmp_path,
        sample(
            model([], says("One."), 0, input_refs=refs),
            model([], says("Two."), 2, input_refs=[[0, 5]]),
            message_pool=[TASK],
        ),
    )
    (trace,) = report.traces
    assert [text for _kind, _agent, text in told(trace)] == ["Find the key.", "One.", "Two."]
    (problem,) = trace.problems
    assert "not in the pool" in problem.message
    assert problem.place == "samples/1_epoch_1.json /events/0/input_refs"


def test_long_runs_with_pooled_inputs_do_not_look_at_everything_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = 0
    is_new = MessageSpans.is_new

    def counted(self: MessageSpans, message: object, identity: Hashable, history: History) -> bool:
        nonlocal looked_at
        looked_at += 1
        return is_new(self, message, identity, history)

    monkeypatch.setattr(MessageSpans, "is_new", counted)
    monkeypatch.setattr(inspect_messages, "_MAX_LOOKUPS", 5000)
    number = 300
    pool = [user(f"message {index}", id=f"m{index}") for index in range(number)]
    growing = [
        model([], says("x", id=f"o{last}"), 0, input_refs=[[0, last]]) for last in range(number)
    ]
    (trace,) = read_eval(tmp_path, sample(*growing, message_pool=pool)).traces
    assert looked_at == number - 1
    assert not trace.problems
    changing = [
        model([], says("y", id=f"p{last}"), 0, input_refs=[[last, last + 1], [0, number]])
        for last in range(100)
    ]
    (trace,) = read_eval(tmp_path, sample(*growing, *changing, message_pool=pool)).traces
    assert looked_at < 3 * number + 5000 + 100 * 50
    assert sum(span.role is Role.USER for span in spans(trace)) == number
    assert any("repeat too much" in problem.message for problem in trace.problems)


def test_attachments_are_filled_in_wherever_they_stand(tmp_path: Path) -> None:
    long = 'a "long"\ntext'
    name = "0123456789abcdef0123456789abcdef"
    ref = f"attachment://{name}"
    trace = read_sample(
        tmp_path,
        model([user(ref)], says([{"type": "text", "text": ref}], calls("c", code=ref)), 0),
        tool("c", [{"type": "text", "text": ref}]),
        {"event": "info", "timestamp": at(2), "data": {"deep": [ref]}},
        {"event": "logger", "message": {"level": "warning", "message": f"tc://{name}"}},
        input=ref,
        attachments={name: long},
    )
    texts = [text for _kind, _agent, text in told(trace)]
    assert texts[0] == texts[1] == texts[3] == trace.meta.task == long
    assert json.loads(texts[2]) == {"code": long}
    assert json.loads(texts[4])["deep"] == [long]
    assert texts[5] == f"warning: {long}"


def test_attachments_that_are_not_there_stay_and_are_one_problem(tmp_path: Path) -> None:
    ref = "attachment://0123456789abcdef0123456789abcdef"
    (trace,) = read_eval(tmp_path, sample(model([user(ref)], says("a", calls("c", x=ref))))).traces
    assert trace.text(0) == ref
    (problem,) = trace.problems
    assert "attachments" in problem.message
    assert ref in trace.text(2)


def test_an_attachment_used_everywhere_does_not_fill_the_memory(tmp_path: Path) -> None:
    big = "x" * (2 << 20)
    ref = "attachment://aa"
    events = [tool(f"c{number}", ref, number, arguments={"a": ref}) for number in range(100)]
    (trace,) = read_eval(tmp_path, sample(*events, attachments={"aa": big})).traces
    results = [trace.text(span.index) for span in spans(trace) if span.kind is SpanKind.TOOL_RESULT]
    assert all(text == big for text in results)
    asked = [trace.text(span.index) for span in spans(trace) if span.kind is SpanKind.TOOL_CALL]
    assert sum(map(len, asked)) < 70 << 20
    assert len(asked[0]) > len(big)
    assert "not filled in" in trace.problems[0].message
