"""What may stand around a list of messages, and what is left to the readers of other formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, SpanKind
from mast_tui.traces.readers.chat.reader import READER
from tests.traces.checks import (
    read_file,
    read_one,
    write_json,
    write_json_lines,
)
from tests.traces.test_message_lists import BLOCKS, CALL, CONVERSATION
from tests.traces.test_messages_frameworks import (
    PUBLISHED_LAYOUT_AUTOGEN,
    PUBLISHED_LAYOUT_LANGCHAIN,
    PUBLISHED_LAYOUT_PYDANTIC_AI,
)
from tests.traces.test_messages_openai_anthropic import PUBLISHED_LAYOUT_CHAT, rows

TEXTS = [
    "be brief",
    "please\nhelp",
    "let me look",
    '{"a":1}',
    '{\n  "b": 2\n}',
    "done",
    "Error: none",
    "all done",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("record", "at"),
    [
        ({"data": {"messages": CONVERSATION}}, "/data/messages"),
        ({"state": {"history": CONVERSATION}}, "/state/history"),
        ({"values": {"messages": CONVERSATION}, "config": {}}, "/values/messages"),
        ({"request": {"messages": CONVERSATION}}, "/request/messages"),
        ({"inputs": {"messages": CONVERSATION}}, "/inputs/messages"),
        ({"conversation": {"messages": CONVERSATION}}, "/conversation/messages"),
        ({"conversations": json.dumps(CONVERSATION)}, "/conversations"),
        ({"trajectory": json.dumps(CONVERSATION)}, "/trajectory"),
        ({"data": json.dumps({"messages": CONVERSATION})}, "/data/messages"),
        ({"messages": [json.dumps(message) for message in CONVERSATION]}, "/messages"),
        ([json.dumps(message) for message in CONVERSATION], ""),
        ({"messages": CONVERSATION, "agent": "x", "steps": 12, "observations": "few"}, "/messages"),
    ],
)
@pytest.mark.parametrize("as_lines", [False, True])
def test_where_messages_stand(tmp_path: Path, record: object, at: str, as_lines: bool) -> None:
    if as_lines:
        report = read_file(READER, write_json_lines(tmp_path / "x.jsonl", record, record))
    else:
        report = read_file(READER, write_json(tmp_path / "x.json", record))
    assert len(report.traces) == 1 + as_lines
    for number, trace in enumerate(report.traces, 1):
        assert [row[-1] for row in rows(trace)] == TEXTS
        assert trace.span(1).key == f"{at}/1"
        assert trace.span(1).place == (f"line {number} {at}/1" if as_lines else f"{at}/1")
        assert trace.meta.task == "please\nhelp"


def test_calls_that_are_a_json_text(tmp_path: Path) -> None:
    calls = json.dumps(CALL["tool_calls"])
    values = [
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "assistant", "content": "", "tool_calls": "[{"},
        {"role": "assistant", "content": "x", "tool_calls": ""},
    ]
    trace = read_one(READER, write_json(tmp_path / "x.json", {"messages": values}))
    assert [row[1::3] for row in rows(trace)] == [
        ("tool_call", '{"a":1}'),
        ("tool_call", '{\n  "b": 2\n}'),
        ("log", "[{"),
        ("message", "x"),
    ]
    assert [problem.place for problem in trace.problems] == ["/messages/1/tool_calls/0"]


@pytest.mark.parametrize(
    ("field", "opening", "closing"),
    [
        ("content", '{"content":', "}"),
        ("reasoning", "[", "]"),
        ("tool_calls", "[", "]"),
        ("parts", '{"parts":', "}"),
        ("data", '{"messages":', "}"),
    ],
)
def test_deep_nesting_anywhere_raises_nothing(
    tmp_path: Path, field: str, opening: str, closing: str
) -> None:
    deep = opening * 1000 + "1" + closing * 1000
    message = json.dumps({"role": "assistant", "content": "said", field: 0})
    message = message.replace(" 0}", f" {deep}}}")
    path = tmp_path / "x.json"
    path.write_text(
        f'{{"input": [{{"role": "user", "content": "go"}}, {message}], '
        f'"response": {{"choices": [{{"message": {message}}}]}}}}',
        encoding="utf-8",
    )
    trace = read_one(READER, path)
    assert trace.text(0) == "go"
    assert len(trace) >= 2


def test_facts_beside_nested_messages(tmp_path: Path) -> None:
    record = {
        "data": {"messages": CONVERSATION, "ground_truth": "SECRET", "system": "rules"},
        "model": "opal-2",
        "reward": 0.0,
    }
    trace = read_one(READER, write_json(tmp_path / "x.json", record))
    assert rows(trace)[0] == ("/data/system", "message", "system", None, "rules")
    assert trace.meta.model == "opal-2"
    assert trace.meta.score == 0
    assert dict(trace.meta.hidden)["ground_truth"] == "SECRET"


def test_elements_that_are_no_messages_do_not_hide_the_others(tmp_path: Path) -> None:
    values = [CONVERSATION[0], 3, json.dumps({"no": "message"}), *CONVERSATION[1:], ["x"]]
    trace = read_one(READER, write_json(tmp_path / "x.json", {"messages": values}))
    texts = [text for _key, kind, _agent, _name, text in rows(trace) if kind != "log"]
    assert texts == TEXTS
    assert [problem.place for problem in trace.problems] == [
        "/messages/1",
        "/messages/2",
        f"/messages/{len(values) - 1}",
    ]


SAID = {"role": "user", "content": "x"}


@pytest.mark.parametrize(
    "value",
    [
        {"name": "x", "version": "1", "type": "module", "scripts": {"test": "x"}, "author": "me"},
        {"cells": [{"cell_type": "code", "source": ["x"], "outputs": []}], "nbformat": 4},
        {"schema_version": "ATIF-v1.4", "agent": {}, "steps": [{"source": "user", "message": "x"}]},
        {"schema_version": "ATIF-v1.4", "steps": [], "history": [SAID]},
        {"trajectory": [{"action": "ls"}], "history": [SAID], "info": {}},
        {"resourceSpans": [{"scopeSpans": []}], "messages": [SAID]},
        {"spans": [{"name": "x", "attributes": {}}]},
        {"id": "x", "run_type": "llm", "inputs": {"messages": [SAID]}, "outputs": {}},
        {"id": "x", "observations": [{"input": [SAID]}], "input": [SAID]},
        {"id": "x", "traceId": "y", "type": "GENERATION", "input": [SAID], "output": SAID},
        {"version": 2, "status": "success", "eval": {}, "samples": [{"messages": [SAID]}]},
        [{"id": 1, "source": "agent", "action": "run", "args": {}, "message": "x", "content": ""}],
        [{"id": "x", "kind": "MessageEvent", "source": "user", "llm_message": SAID}],
        {"instruction": "do", "input": "this", "output": "that"},
        {"prompt": "a", "completion": "b"},
        {"type": "assistant", "message": SAID, "sessionId": "x", "uuid": "y"},
        [{"type": "system", "content": "x", "sessionId": "s", "uuid": "u"}],
        {"timestamp": "t", "type": "response_item", "payload": {"type": "message", **SAID}},
        {"author": "me", "timestamp": "now", "content": "an article"},
        [{"name": "x", "content": "y"}],
        [{"type": "page", "source": "wiki", "content": "an article"}],
    ],
)
@pytest.mark.parametrize("as_lines", [False, True])
def test_what_belongs_to_other_readers(tmp_path: Path, value: object, as_lines: bool) -> None:
    if as_lines:
        path = write_json_lines(tmp_path / "x.jsonl", value, value)
    else:
        path = write_json(tmp_path / "x.json", value)
    assert not READER.recognises(Source(path))


ALL_MESSAGES: list[object] = [
    *CONVERSATION,
    *BLOCKS,
    *PUBLISHED_LAYOUT_CHAT,
    *PUBLISHED_LAYOUT_LANGCHAIN,
    *PUBLISHED_LAYOUT_PYDANTIC_AI,
    *PUBLISHED_LAYOUT_AUTOGEN,
    "stray",
    {"kind": "ping"},
]


def kinds_by_key(report: FileReport) -> dict[str, SpanKind]:
    """Return the kind of each span by its key, in the order of the spans."""
    (trace,) = report.traces
    spans = [trace.span(index) for index in range(len(trace))]
    kinds = {span.key: span.kind for span in spans}
    assert len(kinds) == len(spans)
    return kinds


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
@given(
    messages=st.lists(st.sampled_from(ALL_MESSAGES), max_size=8),
    more=st.lists(st.sampled_from(ALL_MESSAGES), min_size=1, max_size=4),
    as_lines=st.booleans(),
)
def test_keys_stay_when_messages_are_appended(
    tmp_path: Path, messages: list[object], more: list[object], as_lines: bool
) -> None:
    """Messages of all vendors in one list, their ids repeating.

    A result whose call is appended moves behind the call; all other spans keep their order too.
    """
    before: list[object] = [*CONVERSATION, *CONVERSATION, *messages]
    path = tmp_path / "run.json"

    def read(values: list[object]) -> dict[str, SpanKind]:
        if as_lines:
            return kinds_by_key(read_file(READER, write_json_lines(path, *values)))
        return kinds_by_key(read_file(READER, write_json(path, values)))

    def without_results(kinds: dict[str, SpanKind]) -> list[str]:
        return [key for key, kind in kinds.items() if kind is not SpanKind.TOOL_RESULT]

    first = read(before)
    assert list(read(before).items()) == list(first.items())
    longer = read([*before, *more])
    assert longer.items() >= first.items()
    in_order = without_results(first)
    assert without_results(longer)[: len(in_order)] == in_order


def test_one_shape_after_the_other_in_one_list(tmp_path: Path) -> None:
    trace = read_one(READER, write_json(tmp_path / "x.json", {"messages": ALL_MESSAGES}))
    spans = [trace.span(index) for index in range(len(trace))]
    logs = [span.place for span in spans if span.kind is SpanKind.LOG and span.name is None]
    last = len(ALL_MESSAGES)
    assert logs[-2:] == [f"/messages/{last - 2}", f"/messages/{last - 1}"]
    assert all(
        span.parent for span in spans if span.kind is SpanKind.TOOL_RESULT and span.name == "look"
    )
