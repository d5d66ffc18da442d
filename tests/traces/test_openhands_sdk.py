"""OpenHands' event streams of generation 1, of one file and of a file for each event."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import SpanStatus
from mast_tui.traces.readers import recognising_readers
from mast_tui.traces.readers.openhands import READER, is_sdk_event, read_event_folder
from tests.traces.checks import (
    check_sound,
    read_one,
    told,
    write_json,
    write_json_lines,
)
from tests.traces.test_openhands import Json, action, keys, published_stream


def sdk(identifier: str, kind: str, source: str, second: int, **fields: object) -> Json:
    """Return an event as the agent SDK writes it."""
    time = f"2026-01-01T00:00:{second:02}"
    return {"id": identifier, "timestamp": time, "source": source, "kind": kind, **fields}


def text(content: str) -> Json:
    return {"type": "text", "text": content, "cache_prompt": False}


def sdk_call(name: str, call_id: str, **tool_arguments: object) -> Json:
    """Return the fields of an action event with a tool call."""
    arguments = json.dumps(tool_arguments)
    return {
        "tool_name": name,
        "tool_call_id": call_id,
        "tool_call": {"id": call_id, "name": name, "arguments": arguments, "origin": "completion"},
        "action": {**tool_arguments, "kind": f"{name.capitalize()}Action"},
        "llm_response_id": "r",
    }


def published_sdk_stream() -> list[Json]:
    """Return a run of the agent SDK with most of its kinds of events."""
    state = {"agent": {"llm": {"model": "claude-x"}}}
    return [
        sdk("s", "SystemPromptEvent", "agent", 0, system_prompt=text("be kind"), tools=[{}]),
        sdk("st", "ConversationStateUpdateEvent", "environment", 1, key="full_state", value=state),
        sdk(
            "m",
            "MessageEvent",
            "user",
            2,
            llm_message={"role": "user", "content": [text("fix it")]},
            extended_content=[text("a rule of the repository")],
        ),
        sdk(
            "a1",
            "ActionEvent",
            "agent",
            3,
            thought=[text("let me see")],
            reasoning_content="hm",
            **sdk_call("terminal", "c1", command="ls"),
        ),
        sdk(
            "o1",
            "ObservationEvent",
            "environment",
            5,
            tool_name="terminal",
            tool_call_id="c1",
            action_id="a1",
            observation={
                "content": [text("nothing")],
                "is_error": False,
                "exit_code": 1,
                "kind": "TerminalObservation",
            },
        ),
        sdk("a2", "ActionEvent", "agent", 6, thought=[], **sdk_call("think", "c2", thought="aha")),
        sdk(
            "o2",
            "ObservationEvent",
            "environment",
            7,
            tool_name="think",
            tool_call_id="c2",
            action_id="a2",
            observation={"content": [text("Your thought has been logged.")]},
        ),
        sdk("a3", "ActionEvent", "agent", 8, thought=[], **{**sdk_call("x", "c3"), "action": None}),
        sdk("e3", "AgentErrorEvent", "agent", 9, tool_name="x", tool_call_id="c3", error="no x"),
        sdk("c", "Condensation", "environment", 10, forgotten_event_ids=["m"], summary="so far"),
        sdk("p", "PauseEvent", "user", 11),
        sdk("d", "StreamingDeltaEvent", "agent", 12, content="par"),
        sdk("n", "SomethingNewEvent", "agent", 13, of="interest"),
        sdk("f", "ConversationErrorEvent", "environment", 14, code="LLMError", detail="429"),
    ]


def test_a_stream_of_the_sdk(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "events.jsonl", *published_sdk_stream())
    trace = read_one(READER, path)
    found = told(trace)
    assert found[:11] == [
        ("message", "be kind"),
        ("message", "fix it"),
        ("log", "a rule of the repository"),
        ("reasoning", "hm"),
        ("message", "let me see"),
        ("tool_call", '{"command": "ls"}'),
        ("tool_result", "nothing"),
        ("reasoning", "aha"),
        ("tool_call", "{}"),
        ("tool_result", "no x"),
        ("log", "so far"),
    ]
    assert found[11] == ("log", "PauseEvent")
    assert "of" in found[12][1]
    assert found[13:] == [("log", "LLMError: 429")]
    assert keys(trace)[3:10] == [
        ("a1/reasoning", None),
        ("a1/thought", None),
        ("c1:call", None),
        ("c1:result", "c1:call"),
        ("a2", None),
        ("c3:call", None),
        ("c3:result", "c3:call"),
    ]
    call, result = trace.span(5), trace.span(6)
    assert (call.name, call.end, result.status) == ("terminal", result.start, SpanStatus.ERROR)
    assert trace.span(9).status is SpanStatus.ERROR
    assert trace.span(5).place == "line 4"
    assert trace.meta.model == "claude-x"
    assert [reader.name for reader in recognising_readers(Source(path))] == ["openhands"]


@pytest.mark.parametrize("field", ["title", "tool_kind"])
def test_a_tool_of_another_agent_is_one_call_however_often_it_is_reported(
    field: str, tmp_path: Path
) -> None:
    named = {"tool_call_id": "t", field: "grep"}
    reports = [
        sdk("1", "ACPToolCallEvent", "agent", 1, status="pending", **named),
        sdk("2", "MessageEvent", "agent", 2, llm_message={"content": [text("wait")]}),
        sdk(
            "3",
            "ACPToolCallEvent",
            "agent",
            3,
            status="failed",
            raw_input={"q": 1},
            raw_output="none",
            is_error=True,
            **named,
        ),
    ]
    trace = read_one(READER, write_json(tmp_path / "t.json", reports))
    assert told(trace) == [
        ("tool_call", '{\n  "q": 1\n}'),
        ("message", "wait"),
        ("tool_result", "none"),
    ]
    assert trace.span(2).status is SpanStatus.ERROR
    assert trace.span(2).parent == trace.span(0).key
    assert [trace.span(index).name for index in (0, 2)] == ["grep", "grep"]


def write_folder(folder: Path) -> Path:
    """Write the events of a run to files of their own; return their folder."""
    events = folder / "a3f1c2d4e5b64788990011223344aabb" / "events"
    events.mkdir(parents=True)
    for number, event in enumerate(published_sdk_stream()):
        write_json(events / f"event-{number:05}-{event['id']}.json", event)
    return events


def test_a_folder_of_events_is_one_run(tmp_path: Path) -> None:
    events = write_folder(tmp_path)
    write_json(events.parent / "base_state.json", {"agent": {"llm": {"model": "from state"}}})
    (events / "event-00099-x.json").write_text("{broken", encoding="utf-8")
    report = read_event_folder(events)
    assert report is not None
    (trace,) = report.traces
    check_sound(trace)
    stream = read_one(READER, write_json(tmp_path / "same.json", published_sdk_stream()))
    assert told(trace) == told(stream)
    assert keys(trace) == keys(stream)
    assert trace.identity.trace_id == "a3f1c2d4e5b64788990011223344aabb"
    assert trace.identity.native
    assert trace.meta.model == "from state"
    assert trace.span(0).place == "event-00000-s.json"
    assert [problem.place for problem in report.problems] == ["event-00099-x.json"]


def test_files_of_generation_0_are_read_by_number(tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    for number in (10, 9):
        event = action(number, "message", {"content": str(number)}, "user")
        write_json(events / f"{number}.json", event)
    report = read_event_folder(events)
    assert report is not None
    assert told(report.traces[0]) == [("message", "9"), ("message", "10")]
    assert not report.traces[0].identity.native


def test_other_folders_are_no_run(tmp_path: Path) -> None:
    assert read_event_folder(tmp_path / "absent") is None
    assert read_event_folder(tmp_path) is None
    write_json(tmp_path / "1.json", {"history": [{"role": "user", "content": "x"}]})
    assert read_event_folder(tmp_path) is None


@pytest.mark.parametrize("stream", [published_stream(), published_sdk_stream()])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_keys_stay_when_events_are_appended(
    stream: list[object], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    # Each at most once, so that events of an unknown kind are never most of them.
    orders = st.permutations(stream)
    short = [*stream[:3], *data.draw(orders)[: data.draw(st.integers(0, 6))]]
    long = [*short, *data.draw(orders)[: data.draw(st.integers(0, 3))]]
    path = tmp_path_factory.mktemp("grown") / "events.json"
    before, after = (read_one(READER, write_json(path, listed)) for listed in (short, long))
    for index in range(len(before)):
        assert after.index_of(before.span(index).key) == index
        assert after.text(index) == before.text(index)


@pytest.mark.parametrize(
    ("kind", "source", "known"),
    [
        ("SomethingNewEvent", "agent", True),
        ("SomethingNewEvent", "cron", False),
        ("SomethingNew", "agent", False),
        ("MessageEvent", "agent", True),
    ],
)
def test_a_new_kind_of_event_is_known_by_its_ending_and_its_source(
    kind: str, source: str, known: bool
) -> None:
    assert is_sdk_event(sdk("n", kind, source, 0)) is known
