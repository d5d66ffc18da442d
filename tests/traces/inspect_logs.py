"""Builders of Inspect logs in the layout of its writers."""

from __future__ import annotations

import json
from pathlib import Path

from mast_tui.traces.model import FileReport
from mast_tui.traces.readers.inspect import reader as inspect_reader
from tests.traces.checks import read_file
from tests.traces.zips import DEFLATED, Part, archive_of

Json = dict[str, object]

HEADER: Json = {
    "version": 2,
    "status": "success",
    "eval": {
        "run_id": "run",
        "created": "2026-03-01T10:00:00+00:00",
        "task": "find_the_key",
        "task_id": "t",
        "dataset": {},
        "model": "openai/gpt-5",
        "config": {},
    },
    "plan": {"name": "plan", "steps": [{"solver": "system_message"}, {"solver": "agent_loop"}]},
}


def timestamp(seconds: float) -> str:
    """Return the time so many seconds after ten o'clock."""
    return f"2026-03-01T10:{int(seconds // 60):02}:{seconds % 60:09.6f}+00:00"


def sample(*events: Json, **fields: object) -> Json:
    """Return a finished sample with these events."""
    return {
        "id": 1,
        "epoch": 1,
        "input": "Find the key.",
        "target": "under the mat",
        "messages": [],
        "scores": {"includes": {"value": "C", "answer": "mat"}},
        "events": list(events),
        "attachments": {},
        **fields,
    }


def assistant(text: object, *tool_calls: Json, **fields: object) -> Json:
    """Return a message of the model."""
    message: Json = {"role": "assistant", "source": "generate", "content": text, **fields}
    return {**message, "tool_calls": list(tool_calls)} if tool_calls else message


def user(text: object, **fields: object) -> Json:
    return {"role": "user", "content": text, **fields}


def tool_call(call_id: str, function: str = "bash", **arguments: object) -> Json:
    """Return a tool call within a message."""
    return {"id": call_id, "type": "function", "function": function, "arguments": arguments}


def model(request: list[Json], answer: Json | None, second: float = 0, **fields: object) -> Json:
    """Return the event of a model call of one second."""
    choices = [] if answer is None else [{"message": answer, "stop_reason": "stop"}]
    usage = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}
    return {
        "event": "model",
        "timestamp": timestamp(second),
        "completed": timestamp(second + 1),
        "model": "openai/gpt-5",
        "input": request,
        "output": {"model": "gpt-5", "choices": choices, "usage": usage},
        **fields,
    }


def tool(call_id: str, result: object, second: float = 1, **fields: object) -> Json:
    """Return the event of a tool that ran for half a second."""
    return {
        "event": "tool",
        "timestamp": timestamp(second),
        "completed": timestamp(second + 0.5),
        "type": "function",
        "id": call_id,
        "function": "bash",
        "arguments": {"cmd": "ls"},
        "result": result,
        "events": [],
        **fields,
    }


def members_of(*samples: Json, header: Json = HEADER) -> dict[str, object]:
    """Return the members of a finished archive by name."""
    start = {name: header[name] for name in ("version", "eval", "plan") if name in header}
    members: dict[str, object] = {"_journal/start.json": start}
    members |= {
        f"samples/{sample['id']}_epoch_{sample['epoch']}.json": sample for sample in samples
    }
    return members | {"summaries.json": [], "header.json": header}


def parts_of(members: dict[str, object], method: int = DEFLATED) -> list[Part]:
    """Return the members as parts of an archive."""
    return [
        Part(name, value if isinstance(value, bytes) else json.dumps(value).encode(), method)
        for name, value in members.items()
    ]


def write_eval(path: Path, members: dict[str, object], method: int = DEFLATED) -> Path:
    """Write an archive of these members; return its path."""
    path.write_bytes(archive_of(*parts_of(members, method)))
    return path


def read_eval(path: Path, *samples: Json, header: Json = HEADER) -> FileReport:
    """Read an archive of these samples."""
    members = members_of(*samples, header=header)
    return read_file(inspect_reader.READER, write_eval(path / "log.eval", members))
