"""ATIF trajectories of the standard."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Tokens, Trace
from mast_tui.traces.readers.atif import READER
from tests.traces.checks import keys_of, kinds_and_texts, read_file, read_one, spans_of, write_json
from tests.traces.checks import write_json_lines as write_lines

Json = dict[str, object]


def published_trajectory(*steps: Json, **more: object) -> Json:
    """A trajectory in the layout of version 1.8, its steps numbered."""
    return {
        "schema_version": "ATIF-v1.8",
        "session_id": "session-1",
        "agent": {"name": "terminus", "version": "2", "model_name": "gpt-x"},
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
        "final_metrics": {"total_prompt_tokens": 10},
        **more,
    }


def user(text: str, **more: object) -> Json:
    return {"source": "user", "message": text, **more}


def agent(text: str, *calls: str, **more: object) -> Json:
    """An agent's step with a call of ``bash`` for each id."""
    made = [
        {"tool_call_id": call, "function_name": "bash", "arguments": {"command": f"run {call}"}}
        for call in calls
    ]
    return {"source": "agent", "message": text, "tool_calls": made, **more}


def observation_of(*results: Json) -> Json:
    return {"results": list(results)}


def shape(trace: Trace) -> list[tuple[str, str, str | None]]:
    """Agent, key and parent of every span."""
    return [(span.agent, span.key, span.parent) for span in spans_of(trace)]


def test_a_run_of_the_standard(tmp_path: Path) -> None:
    run = published_trajectory(
        {"source": "system", "message": "be brief"},
        user("list the files", timestamp="2026-01-01T00:00:00Z"),
        agent(
            "listing",
            "c1",
            "c2",
            timestamp="2026-01-01T00:00:05Z",
            reasoning_content="hm",
            metrics={"prompt_tokens": 9, "completion_tokens": 4, "cost_usd": 0.1},
            observation=observation_of(
                {"source_call_id": "c2", "content": "B"},
                {"source_call_id": "c1", "content": [{"type": "text", "text": "A"}]},
            ),
        ),
        agent("done", llm_call_count=0, metrics={"prompt_tokens": 1}),
    )
    trace = read_one(READER, write_json(tmp_path / "trajectory.json", run))
    assert kinds_and_texts(trace) == [
        ("message", "be brief"),
        ("message", "list the files"),
        ("reasoning", "hm"),
        ("message", "listing"),
        ("tool_call", '{\n  "command": "run c1"\n}'),
        ("tool_call", '{\n  "command": "run c2"\n}'),
        ("tool_result", "B"),
        ("tool_result", "A"),
        ("message", "done"),
    ]
    assert shape(trace)[2:8] == [
        ("terminus", "/steps/2/reasoning_content", None),
        ("terminus", "/steps/2", None),
        ("terminus", "c1:call", None),
        ("terminus", "c2:call", None),
        ("terminus", "c2:result", "c2:call"),
        ("terminus", "c1:result", "c1:call"),
    ]
    spans = spans_of(trace)
    assert [span.tokens for span in spans if span.tokens] == [Tokens(9, 4)]
    assert spans[5].tokens == Tokens(9, 4)
    assert spans[4].name == spans[7].name == "bash"
    assert spans[3].start == 1767225605
    assert (trace.meta.system, trace.meta.model, trace.meta.task) == (
        "terminus",
        "gpt-x",
        "list the files",
    )
    assert (trace.identity.trace_id, trace.identity.native) == ("session-1", True)
    assert not trace.problems


EVENT: Json = {
    "source": "system",
    "message": "",
    "observation": observation_of({"content": "event"}),
}
COMPLAINT = agent("not well formed", observation=observation_of({"content": "errors"}))


@pytest.mark.parametrize(
    ("steps", "parents"),
    [
        pytest.param(
            [agent("one", "c1", observation=observation_of({"content": "of c1"}))],
            {"of c1": ("tool_result", "c1:call")},
            id="only call",
        ),
        pytest.param(
            [agent("two", "c2", "c3", observation=observation_of({"content": "of both"}))],
            {"of both": ("tool_result", "/steps/0")},
            id="whole step",
        ),
        pytest.param(
            [agent("", "c4", "c5", observation=observation_of({"content": "4"}, {"content": "5"}))],
            {"4": ("tool_result", "c4:call"), "5": ("tool_result", "c5:call")},
            id="in turn",
        ),
        pytest.param(
            [agent("", "c1"), COMPLAINT],
            {"errors": ("tool_result", "/steps/1")},
            id="complaint about an answer",
        ),
        pytest.param(
            [
                agent(
                    "all",
                    "c1",
                    "c2",
                    observation=observation_of({"source_call_id": "c1"}, {"content": "x"}),
                ),
                EVENT,
            ],
            {"x": ("tool_result", "c2:call"), "event": ("log", None)},
            id="rest of the step",
        ),
        pytest.param(
            [{**EVENT, "message": "compacting"}],
            {"event": ("log", "/steps/0")},
            id="event about no call",
        ),
        pytest.param(
            [{"source": "tool", "message": "early", "tool_call_id": "c1"}, agent("", "c1")],
            {"early": ("tool_result", "c1:call")},
            id="before its call",
        ),
    ],
)
def test_results_belong_to_their_calls(
    tmp_path: Path, steps: list[Json], parents: dict[str, tuple[str, str | None]]
) -> None:
    trace = read_one(READER, write_json(tmp_path / "t.json", published_trajectory(*steps)))
    spans = {trace.text(span.index): (span.kind.value, span.parent) for span in spans_of(trace)}
    assert {text: spans[text] for text in parents} == parents


def test_a_later_step_can_hold_the_result_of_the_only_open_call(tmp_path: Path) -> None:
    late = observation_of({"content": "late", "extra": {"exit_code": 3}})
    run = published_trajectory(
        agent("", "c1", timestamp="2026-01-01T00:00:00Z"),
        {**EVENT, "timestamp": "2026-01-01T00:00:07Z", "observation": late},
    )
    call, result = spans_of(read_one(READER, write_json(tmp_path / "t.json", run)))
    assert (result.kind, result.parent, result.status) == ("tool_result", call.key, "error")
    assert (call.start, call.end) == (1767225600, 1767225607)


def test_a_step_of_a_tool_shows_the_sub_agent_that_it_refers_to(tmp_path: Path) -> None:
    reference: Json = {"subagent_trajectory_ref": {"trajectory_id": "sub"}}
    answer = {"source": "tool", "message": "it said so", "tool_call_id": "c1", **reference}
    main = published_trajectory(agent("", "c1"), answer)
    path = write_json(tmp_path / "t.json", [sub_agent("sub", user("look")), main])
    assert keys_of(read_one(READER, path)) == ["c1:call", "sub/steps/0", "c1:result"]


def test_copied_steps_are_counted_and_the_session_is_not_claimed_twice(tmp_path: Path) -> None:
    run = published_trajectory(
        user("old", is_copied_context=True),
        agent("old", "c1", is_copied_context=True),
        agent("new"),
        continued_trajectory_ref="trajectory.cont-2.json",
    )
    trace = read_one(READER, write_json(tmp_path / "t.json", run))
    assert kinds_and_texts(trace) == [("message", "new")]
    assert shape(trace)[0][1] == "/steps/2"
    assert [problem.message for problem in trace.problems] == [
        "2 steps are copied from an earlier context; not shown",
        "the run continues in trajectory.cont-2.json",
    ]
    assert not trace.identity.native
    named = read_one(READER, write_json(tmp_path / "u.json", {**run, "trajectory_id": "part-1"}))
    assert (named.identity.trace_id, named.identity.native) == ("part-1", True)
    part = read_one(READER, write_json(tmp_path / "v.json", {**run, "session_id": "s-cont-1"}))
    assert (part.identity.trace_id, part.identity.native) == ("s-cont-1", True)


def sub_agent(name: str, *steps: Json, **more: object) -> Json:
    return published_trajectory(
        *steps, trajectory_id=name, **{"agent": {"name": f"a-{name}"}, **more}
    )


def test_a_sub_agent_stands_before_the_result_that_refers_to_it(tmp_path: Path) -> None:
    inner = sub_agent("deep", agent("deepest"))
    outer = sub_agent(
        "sub",
        agent(
            "",
            "c1",
            observation=observation_of(
                {"source_call_id": "c1", "subagent_trajectory_ref": [{"trajectory_id": "deep"}]}
            ),
        ),
        subagent_trajectories=[inner],
    )
    run = published_trajectory(
        agent(
            "delegate",
            "c1",
            observation=observation_of(
                {
                    "source_call_id": "c1",
                    "content": "it said so",
                    "subagent_trajectory_ref": [{"trajectory_id": "sub"}],
                }
            ),
        ),
        agent(
            "", observation=observation_of({"subagent_trajectory_ref": [{"trajectory_id": "sub"}]})
        ),
        subagent_trajectories=[outer, sub_agent("alone", user("unasked"))],
    )
    trace = read_one(READER, write_json(tmp_path / "t.json", run))
    assert shape(trace) == [
        ("terminus", "/steps/0", None),
        ("terminus", "c1:call", None),
        ("a-sub", "sub/c1:call", None),
        ("a-deep", "deep/steps/0", None),
        ("a-sub", "sub/c1:result", "sub/c1:call"),
        ("terminus", "c1:result", "c1:call"),
        ("user", "alone/steps/0", None),
    ]
    assert trace.span(3).place == "/subagent_trajectories/0/subagent_trajectories/0/steps/0"
    assert [problem.place for problem in trace.problems] == ["/subagent_trajectories/1"]


def test_a_sub_agent_in_another_file_is_named(tmp_path: Path) -> None:
    reference = [{"session_id": "s-2", "trajectory_path": "trajectory.summary.json"}]
    result: Json = {"source_call_id": "c1", "subagent_trajectory_ref": reference}
    run = published_trajectory(agent("", "c1", observation=observation_of(result)))
    (problem,) = read_one(READER, write_json(tmp_path / "t.json", run)).problems
    assert problem.message.endswith("not in this file: trajectory.summary.json")


def in_camel_case(value: object) -> object:
    """The value with the names of all fields in camel case."""
    if isinstance(value, list):
        return list(map(in_camel_case, value))
    if not isinstance(value, dict):
        return value
    words = {name: name.split("_") for name in value}
    return {
        "".join([first, *map(str.title, more)]): in_camel_case(value[name])
        for name, (first, *more) in words.items()
    }


def test_camel_case_and_a_bundle_with_its_sub_agent(tmp_path: Path) -> None:
    result: Json = {"source_call_id": "c1", "content": "found", "is_error": True}
    result["subagent_trajectory_ref"] = [{"session_id": "child"}]
    metrics: Json = {"prompt_tokens": 2, "completion_tokens": 1}
    step = agent(
        "", "c1", reasoning_content="why", metrics=metrics, observation=observation_of(result)
    )
    bundle = [
        published_trajectory(user("old", is_copied_context=True), step, trajectory_id="main"),
        published_trajectory(user("look"), session_id="child"),
        published_trajectory(user("hi"), session_id="other"),
    ]
    standard, camel = (
        read_file(READER, write_json(tmp_path / "b.json", {"trajectories": trajectories}))
        for trajectories in (bundle, in_camel_case(bundle))
    )
    assert [trace.identity.trace_id for trace in camel.traces] == ["main", "other"]
    for trace, same in zip(standard.traces, camel.traces, strict=True):
        assert spans_of(trace) == spans_of(same)
        assert (trace.meta, trace.record) == (same.meta, same.record)
        assert trace.problems == same.problems
    assert keys_of(camel.traces[0])[1:] == ["c1:call", "child/steps/0", "c1:result"]
    assert camel.traces[0].span(1).tokens == Tokens(2, 1)


def test_trajectories_that_refer_to_each_other_are_not_lost(tmp_path: Path) -> None:
    both = [
        sub_agent(
            one,
            agent(
                "", observation=observation_of({"subagent_trajectory_ref": {"trajectory_id": two}})
            ),
        )
        for one, two in (("x", "y"), ("y", "x"))
    ]
    report = read_file(READER, write_json(tmp_path / "t.json", both))
    assert [trace.identity.trace_id for trace in report.traces] == ["x"]


def test_sub_agents_below_the_depth_limit_are_runs_of_their_own(tmp_path: Path) -> None:
    chain = [
        sub_agent(
            str(number),
            agent(
                f"of {number}",
                observation=observation_of(
                    {"subagent_trajectory_ref": {"trajectory_id": str(number + 1)}}
                ),
            ),
        )
        for number in range(40)
    ]
    report = read_file(READER, write_json(tmp_path / "t.json", chain))
    messages = [
        trace.text(span.index)
        for trace in report.traces
        for span in spans_of(trace)
        if span.kind == "message"
    ]
    assert sorted(messages) == sorted(f"of {number}" for number in range(40))
    assert 1 < len(report.traces) < 40


def test_one_trajectory_a_line(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "all.jsonl",
        published_trajectory(user("one"), session_id="s1"),
        {"no": "trajectory"},
        published_trajectory(user("two"), session_id="s2"),
    )
    report = read_file(READER, path)
    assert [(trace.identity.trace_id, trace.record) for trace in report.traces] == [
        ("s1", 0),
        ("s2", 2),
    ]
    assert report.traces[1].span(0).place == "line 3 /steps/0"
    assert [problem.place for problem in report.problems] == ["line 2"]


def test_broken_steps_and_calls_become_logs(tmp_path: Path) -> None:
    run = published_trajectory(notes="converted")
    run["steps"] = [user("go"), agent("", "c1"), 7, {"source": "agent", "tool_calls": ["x"]}]
    trace = read_one(READER, write_json(tmp_path / "t.json", run))
    assert kinds_and_texts(trace)[2:] == [("log", "7"), ("log", "x"), ("log", "converted")]
    assert [problem.place for problem in trace.problems] == ["/steps/2", "/steps/3/tool_calls/0"]


def test_a_score_in_extra_is_hidden(tmp_path: Path) -> None:
    run = published_trajectory(user("go"), extra={"reward": 0.0, "other": 1})
    meta = read_one(READER, write_json(tmp_path / "t.json", run)).meta
    assert meta.hidden == (("reward", "0.0"),)
    assert meta.outcome == "failed"


@pytest.mark.parametrize(
    "foreign",
    [
        {"steps": [{"step_number": 1, "model_output": "x"}], "agent": {}},
        {"agent": "x", "steps": [{"step_id": 1, "source": "web"}]},
        {"schema_version": "1.0", "steps": []},
        [{"role": "user", "content": "ATIF"}],
    ],
)
def test_other_records_with_steps_are_not_recognised(tmp_path: Path, foreign: object) -> None:
    assert not READER.recognises(Source(write_json(tmp_path / "x.json", foreign)))
