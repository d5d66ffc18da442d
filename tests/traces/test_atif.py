"""ATIF trajectories in the layout of the standard."""

from __future__ import annotations

from pathlib import Path

from mast_tui.traces.readers.atif import READER
from tests.traces.checks import read_file, spans_of, write_json

Json = dict[str, object]


def published_trajectory(*steps: Json, **fields: object) -> Json:
    """Return a trajectory in the layout of version 1.8 with numbered steps."""
    return {
        "schema_version": "ATIF-v1.8",
        "session_id": "session-1",
        "agent": {"name": "terminus", "version": "2", "model_name": "gpt-x"},
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
        "final_metrics": {"total_prompt_tokens": 10},
        **fields,
    }


def user(text: str, **fields: object) -> Json:
    return {"source": "user", "message": text, **fields}


def agent(text: str, *calls: str, **fields: object) -> Json:
    """Return a step of an agent with a call of ``bash`` for each id."""
    tool_calls = [
        {"tool_call_id": call, "function_name": "bash", "arguments": {"command": f"run {call}"}}
        for call in calls
    ]
    return {"source": "agent", "message": text, "tool_calls": tool_calls, **fields}


def observation_of(*results: Json) -> Json:
    return {"results": list(results)}


def sub_agent(name: str, *steps: Json, **fields: object) -> Json:
    return published_trajectory(
        *steps, trajectory_id=name, **{"agent": {"name": f"a-{name}"}, **fields}
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
