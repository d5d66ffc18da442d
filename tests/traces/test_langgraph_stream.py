"""LangGraph's stream updates as texts of messages.

No such file is public; the fixture follows a description of what one looks like: what a node added
to the state, dumped as JSON into the ``content`` of a message under the agent's name, and what code
gave back under a name that says how it went.
"""

from __future__ import annotations

import json
from pathlib import Path

from mast_tui.traces.library import read_file
from mast_tui.traces.model import Role, SpanKind, SpanStatus, Trace
from tests.traces.checks import check_sound, write_json


def ai(text: str, number: int, *calls: str) -> dict[str, object]:
    made = [
        {"name": "python", "args": {"code": c}, "id": f"c{c}", "type": "tool_call"} for c in calls
    ]
    spelt = [
        {"id": f"c{c}", "type": "function", "function": {"name": "python", "arguments": "{}"}}
        for c in calls
    ]
    return {
        "content": text,
        "additional_kwargs": {"tool_calls": spelt} if calls else {},
        "response_metadata": {"model_name": "gpt-x"},
        "type": "ai",
        "name": None,
        "id": f"run-{number}",
        "tool_calls": made,
        "usage_metadata": {"input_tokens": 10, "output_tokens": number},
    }


def tool(call: str, text: str) -> dict[str, object]:
    return {
        "content": text,
        "type": "tool",
        "name": "python",
        "tool_call_id": f"c{call}",
        "id": f"t{call}",
    }


def logged(name: str, update: object) -> dict[str, object]:
    return {"role": "assistant", "name": name, "content": json.dumps(update)}


def read(tmp_path: Path, *messages: dict[str, object]) -> Trace:
    (trace,) = read_file(write_json(tmp_path / "run.json", list(messages)), named=True).traces
    check_sound(trace)
    return trace


def told(trace: Trace) -> list[tuple[str, SpanKind, str, str]]:
    spans = [trace.span(index) for index in range(len(trace))]
    return [(s.key, s.kind, s.agent, trace.text(i)) for i, s in enumerate(spans)]


def test_updates_become_messages_calls_and_results_of_the_right_agents(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        {"role": "user", "name": "task", "content": "Find the genes."},
        logged("react_agent", {"agent": {"messages": [ai("", 1, "1")]}}),
        logged("react_agent", {"tools": {"messages": [tool("1", "Error: no such file")]}}),
        logged("react_agent", {"agent": {"messages": [ai("Found.", 2)]}}),
        logged("team", {"researcher": {"messages": [ai("I look further.", 3)]}}),
    )
    assert told(trace) == [
        ("/0", SpanKind.MESSAGE, "task", "Find the genes."),
        ("c1:call", SpanKind.TOOL_CALL, "react_agent", '{\n  "code": "1"\n}'),
        ("c1:result", SpanKind.TOOL_RESULT, "react_agent", "Error: no such file"),
        ("/3", SpanKind.MESSAGE, "react_agent", "Found."),
        ("/4", SpanKind.MESSAGE, "researcher", "I look further."),
    ]
    assert trace.span(2).parent == "c1:call"
    assert trace.span(2).status is SpanStatus.ERROR
    assert trace.span(3).tokens is not None
    assert trace.meta.model == "gpt-x"


def test_what_a_graph_around_the_node_passes_on_is_there_once(tmp_path: Path) -> None:
    first, answer = ai("Let me see.", 1, "1"), tool("1", "4")
    trace = read(
        tmp_path,
        {"role": "user", "content": "2 + 2?"},
        logged("react_agent", {"agent": {"messages": [first]}}),
        logged("react_agent", {"tools": {"messages": [answer]}}),
        logged("react_agent", {"agent": {"messages": [first, answer, ai("It is 4.", 2)]}}),
    )
    assert [text for _key, _kind, _agent, text in told(trace)] == [
        *("2 + 2?", "Let me see.", '{\n  "code": "1"\n}', "4", "It is 4."),
    ]


def test_what_code_gave_back_is_no_users_word(tmp_path: Path) -> None:
    failed = (
        "Failed the python code execution test: Traceback (most recent call last):\nKeyError: 1"
    )
    trace = read(
        tmp_path,
        {"role": "user", "content": "Run it."},
        {"role": "user", "name": "python_code_execution_error", "content": failed},
        {"role": "user", "name": "code_execution_success", "content": "ok"},
    )
    spans = [trace.span(index) for index in range(len(trace))]
    assert [(span.kind, span.role, span.agent, span.name, span.status) for span in spans[1:]] == [
        (
            *(SpanKind.TOOL_RESULT, Role.TOOL, "python_code_execution"),
            *("python_code_execution", SpanStatus.ERROR),
        ),
        (SpanKind.TOOL_RESULT, Role.TOOL, "code_execution", "code_execution", SpanStatus.OK),
    ]
    assert [span.key for span in spans] == ["/0", "/1", "/2"]


def test_a_text_that_only_begins_like_an_update_stays_what_was_said(tmp_path: Path) -> None:
    texts = ['{"agent": {"messages": [', '{"agent": {"state": 1}}', '{"plan": ["messages"]}']
    messages: list[dict[str, object]] = [{"role": "assistant", "content": one} for one in texts]
    trace = read(tmp_path, *messages)
    assert [text for _key, _kind, _agent, text in told(trace)] == texts


def test_what_is_no_message_in_an_update_is_kept(tmp_path: Path) -> None:
    update = {"agent": {"messages": [5, ai("x", 1)]}, "tests": {"passed": 2}}
    trace = read(tmp_path, {"role": "user", "content": "?"}, logged("a", update))
    assert [(kind.value, text) for _key, kind, _agent, text in told(trace)][1:] == [
        ("log", "5"),
        ("message", "x"),
        ("log", '{\n  "passed": 2\n}'),
    ]
