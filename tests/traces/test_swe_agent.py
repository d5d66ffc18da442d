"""SWE-agent's trajectories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import AnswerKey, Outcome
from mast_tui.traces.readers.swe_agent import READER
from tests.traces.checks import read_file, read_one, spans_of, told, write_json

PATCH = "diff --git a/x.py b/x.py\n+fixed\n"


def published_step(
    thought: str, action: str, observation: str, **more: object
) -> dict[str, object]:
    """A step as release 1 writes it for a model that calls tools."""
    return {
        "action": action,
        "observation": observation,
        "response": thought,
        "thought": thought,
        "execution_time": 0.25,
        "state": {"working_dir": "/testbed", "open_file": "n/a", "diff": ""},
        "query": [],
        "extra_info": {},
        **more,
    }


def published_action(action: str, tool: str, call_id: str, **more: object) -> dict[str, object]:
    """The history's message for a step."""
    call = {"id": call_id, "type": "function", "function": {"name": tool, "arguments": "{}"}}
    return {
        "role": "assistant",
        "content": "",
        "thought": "",
        "action": action,
        "agent": "main",
        "tool_calls": [call],
        "message_type": "action",
        **more,
    }


def published_run() -> dict[str, object]:
    """A run in the layout of release 1, where the state is an object."""
    return {
        "trajectory": [
            published_step("look around", "ls -la", "README\n"),
            published_step("", "str_replace_editor view /x.py", "1: broken"),
            published_step("done", "submit", PATCH + "\n"),
        ],
        "history": [
            {"role": "system", "content": "be an engineer", "agent": "main"},
            {"role": "user", "content": "try: ls", "agent": "main", "is_demo": True},
            {"role": "assistant", "content": "ls", "agent": "main", "is_demo": True},
            {"role": "user", "content": [{"type": "text", "text": "fix x.py"}], "agent": "main"},
            published_action("ls -la", "bash", "call_1"),
            {"role": "tool", "content": "OBSERVATION: README", "agent": "main"},
            published_action(
                "str_replace_editor view /x.py",
                "str_replace_editor",
                "call_2",
                thinking_blocks=[{"type": "thinking", "thinking": "hm", "signature": "AAAA"}],
            ),
            published_action("submit", "submit", "call_3"),
        ],
        "info": {
            "exit_status": "submitted (exit_cost)",
            "submission": PATCH,
            "model_stats": {"tokens_sent": 900, "tokens_received": 30, "api_calls": 3},
        },
        "replay_config": json.dumps(
            {
                "agent": {"model": {"name": "gpt-x"}},
                "problem_statement": {"type": "text", "text": "x.py is broken"},
            }
        ),
        "environment": "main",
    }


def test_a_run_of_release_1(tmp_path: Path) -> None:
    trace = read_one(READER, write_json(tmp_path / "run.traj", published_run()))
    assert told(trace) == [
        ("message", "be an engineer"),
        ("log", "[user]\ntry: ls\n\n[assistant]\nls"),
        ("message", "fix x.py"),
        ("message", "look around"),
        ("tool_call", "ls -la"),
        ("tool_result", "README\n"),
        ("reasoning", "hm"),
        ("tool_call", "str_replace_editor view /x.py"),
        ("tool_result", "1: broken"),
        ("message", "done"),
        ("tool_call", "submit"),
        ("tool_result", PATCH + "\n"),
        ("log", "submitted (exit_cost)"),
    ]
    spans = spans_of(trace)
    assert [span.name for span in spans if span.kind == "tool_call"] == [
        "bash",
        "str_replace_editor",
        "submit",
    ]
    assert [(span.key, span.parent) for span in spans if span.kind == "tool_result"] == [
        (f"/trajectory/{number}/observation", f"/trajectory/{number}/action") for number in range(3)
    ]
    assert spans[1].name == "demonstration"
    assert spans[1].role == "system"
    assert {span.agent for span in spans if span.role == "agent"} == {"main"}
    meta = trace.meta
    assert (meta.system, meta.model, meta.task) == ("SWE-agent", "gpt-x", "x.py is broken")
    assert meta.outcome is Outcome.UNKNOWN


def test_a_run_of_release_0_repeats_its_action_in_the_response(tmp_path: Path) -> None:
    step = {
        "action": "open x.py\n",
        "observation": "[File: x.py]",
        "response": "I open it.\n\n```\nopen x.py\n```",
        "state": '{"open_file": "n/a", "working_dir": "/repo"}\n',
        "thought": "I open it.\n\n",
    }
    bare = {**step, "thought": "", "response": "```\nopen x.py\n```"}
    run = {
        "environment": "swe_main",
        "trajectory": [step, bare],
        "history": [{"role": "system", "content": "sys", "agent": "primary"}],
        "info": {},
    }
    trace = read_one(READER, write_json(tmp_path / "run.traj", run))
    assert [text for _kind, text in told(trace)] == [
        "sys",
        "I open it.\n\n",
        "open x.py\n",
        "[File: x.py]",
        "open x.py\n",
        "[File: x.py]",
    ]
    assert trace.span(2).name == "open"


def test_a_step_without_an_action_keeps_its_words(tmp_path: Path) -> None:
    run = published_run()
    run["trajectory"] = [
        published_step("", "", "", response="no more calls"),
        published_step("", "", "Your output was not well formed", response=""),
        published_step("", "", "", response="", execution_time=3),
        "what",
    ]
    trace = read_one(READER, write_json(tmp_path / "run.traj", run))
    assert [pair for pair in told(trace) if pair[0] != "message"][1:5] == [
        ("tool_result", "Your output was not well formed"),
        ("log", trace.text(5)),
        ("log", "what"),
        ("log", "submitted (exit_cost)"),
    ]
    assert trace.text(3) == "no more calls"
    assert trace.span(4).parent is None
    assert '"execution_time": 3' in trace.text(5)
    assert [problem.place for problem in trace.problems] == ["/trajectory/3"]


QUERY = [{"role": "system", "content": "sys"}, {"role": "user", "content": "task"}]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"info": {"exit_status": "exit_context", "submission": "another patch"}},
            ["/info/exit_status: exit_context", "/info/submission: another patch"],
            id="submission that no step shows",
        ),
        pytest.param(
            {"history": [], "trajectory": [published_step("think", "ls", "", query=QUERY)]},
            ["/trajectory/0/query/0: sys", "/trajectory/0/query/1: task"],
            id="prompts in the first query",
        ),
        pytest.param(
            {"attempts": [{}, {}]},
            ["the run made 2 attempts; only the one it chose is shown"],
            id="other attempts",
        ),
    ],
)
def test_parts_of_a_run(tmp_path: Path, changes: dict[str, object], expected: list[str]) -> None:
    run = {**published_run(), **changes}
    trace = read_one(READER, write_json(tmp_path / "run.traj", run))
    lines = [f"{span.key}: {trace.text(span.index)}" for span in spans_of(trace)]
    lines += [problem.message for problem in trace.problems]
    assert set(expected) <= set(lines)


def test_a_result_of_the_benchmark_is_hidden(tmp_path: Path) -> None:
    run = published_run()
    run["info"] = {"resolved": False, "submission": "p"}
    meta = read_one(READER, write_json(tmp_path / "run.traj", run)).meta
    assert meta.outcome is Outcome.FAILED
    assert meta.answer_key == AnswerKey(
        scores=(("resolved", "false"),), patch=(("submission", "p"),)
    )


@pytest.mark.parametrize(
    "foreign",
    [
        {"trajectory": [{"role": "user", "content": "hi"}], "info": {}},
        {"trajectory": ["a line", "another"], "history": []},
        {"trajectory": [{"action": "a", "observation": "b"}]},
        {"trajectory": []},
        [published_run()],
    ],
)
def test_other_records_with_a_trajectory_are_left_to_others(
    tmp_path: Path, foreign: object
) -> None:
    assert not READER.recognises(Source(write_json(tmp_path / "x.json", foreign)))


def test_a_file_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    text = json.dumps(published_run())
    path = tmp_path / "cut.traj"
    path.write_text(text[: text.index('"submit"')], encoding="utf-8")
    trace = read_one(READER, path)
    assert ("tool_result", "README\n") in told(trace)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)


@settings(max_examples=40, deadline=None)
@given(
    field=st.sampled_from(list(published_step("", "", ""))),
    part=st.sampled_from(["history", "info", "replay_config", "attempts"]),
    value=ANY,
)
def test_whatever_stands_in_a_field_is_read_the_same_way_twice(
    tmp_path_factory: pytest.TempPathFactory, field: str, part: str, value: object
) -> None:
    run = published_run()
    steps = [published_step("a", "ls", "b"), {**published_step("c", "pwd", "d"), field: value}]
    run["trajectory"] = steps
    if part != "info":
        run[part] = value
    path = write_json(tmp_path_factory.mktemp("any") / "run.traj", run)
    first, second = read_file(READER, path).traces[0], read_file(READER, path).traces[0]
    assert told(first) == told(second)
    steps.append(published_step("e", "cat x", "f"))
    longer = read_one(READER, write_json(path, run))
    for index in range(len(first)):
        key = first.span(index).key
        if key.startswith("/trajectory"):
            place = longer.index_of(key)
            assert place is not None
            assert longer.text(place) == first.text(index)
