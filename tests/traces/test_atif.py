"""ATIF trajectories of the standard."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Trace
from mast_tui.traces.readers.atif import READER
from tests.traces.checks import keys_of, read_file, read_one, spans_of, write_json

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


def sub_agent(name: str, *steps: Json, **more: object) -> Json:
    return published_trajectory(
        *steps, trajectory_id=name, **{"agent": {"name": f"a-{name}"}, **more}
    )


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
