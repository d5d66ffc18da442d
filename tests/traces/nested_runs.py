"""Builders of a Codex run whose sub-agents are in files of their own."""

from __future__ import annotations

from pathlib import Path

from tests.traces.checks import write_json_lines

MAIN = "019a0000-0000-7000-8000-000000000001"
CHILD = "019a0000-0000-7000-8000-000000000002"
GRANDCHILD = "019a0000-0000-7000-8000-000000000003"


def run_record(second: int, kind: str, **payload: object) -> dict[str, object]:
    return {"timestamp": f"2026-03-01T10:00:{second:02}.000Z", "type": kind, "payload": payload}


def run_message(second: int, role: str, text: str) -> dict[str, object]:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text}]
    return run_record(second, "response_item", type="message", role=role, content=content)


def spawn_call(
    second: int, call_id: str, child: str
) -> tuple[dict[str, object], dict[str, object]]:
    """Return the records of a call that starts a sub-agent, and of its result."""
    call = run_record(
        second,
        "response_item",
        type="function_call",
        name="spawn_agent",
        arguments='{"message": "look"}',
        call_id=call_id,
    )
    output = f'{{"agent_id":"{child}","nickname":"Ada"}}'
    result = run_record(
        second + 1, "response_item", type="function_call_output", call_id=call_id, output=output
    )
    return call, result


def write_rollout(path: Path, thread: str, parent: str | None, *records: dict[str, object]) -> Path:
    """Write the rollout of a thread; return its path."""
    meta: dict[str, object] = {"id": thread, "timestamp": "2026-03-01T10:00:00.000Z"}
    if parent is not None:
        meta |= {"parent_thread_id": parent, "agent_nickname": f"agent-{thread[-1]}"}
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_json_lines(path, run_record(0, "session_meta", **meta), *records)


def write_run(folder: Path) -> Path:
    """Write a run with a sub-agent and its sub-agent in three files; return the run's file."""
    write_rollout(
        folder / "01" / "rollout-b.jsonl",
        CHILD,
        MAIN,
        run_message(20, "user", "look"),
        *spawn_call(22, "call_c", GRANDCHILD),
        run_message(29, "assistant", "child has looked"),
    )
    write_rollout(
        folder / "02" / "rollout-c.jsonl",
        GRANDCHILD,
        CHILD,
        run_message(24, "assistant", "grandchild was here"),
    )
    return write_rollout(
        folder / "01" / "rollout-a.jsonl",
        MAIN,
        None,
        run_message(10, "user", "do it"),
        *spawn_call(11, "call_m", CHILD),
        run_message(40, "assistant", "all done"),
    )
