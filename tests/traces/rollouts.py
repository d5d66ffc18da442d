"""Builders of Codex rollouts."""

from __future__ import annotations

import json
from pathlib import Path

from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Trace
from mast_tui.traces.readers.codex.reader import READER
from tests.traces.checks import read_one

Record = dict[str, object]
SESSION = "01a2b3c4-0000-7000-8000-000000000001"


def record(kind: str, payload: object, second: float = 0) -> Record:
    """Return a wrapped record with a timestamp so many seconds after the first."""
    minutes, seconds = divmod(second, 60)
    stamp = f"2026-09-21T14:{13 + int(minutes):02d}:{seconds:06.3f}Z"
    return {"timestamp": stamp, "type": kind, "payload": payload}


def meta(session: str = SESSION, second: float = 0, **fields: object) -> Record:
    """Return the record that a rollout begins with."""
    return record("session_meta", {"id": session, "cwd": "/srv", **fields}, second)


def message(role: str, text: str, second: float = 0, **fields: object) -> Record:
    """Return a message item."""
    part_type = "output_text" if role == "assistant" else "input_text"
    content = [{"type": part_type, "text": text}]
    payload = {"type": "message", "role": role, "content": content, **fields}
    return record("response_item", payload, second)


def reasoning(*parts: str, second: float = 0) -> Record:
    """Return a reasoning item with a summary of these parts."""
    summary = [{"type": "summary_text", "text": part} for part in parts]
    payload = {"type": "reasoning", "summary": summary, "encrypted_content": "gAAA"}
    return record("response_item", payload, second)


def call(call_id: str, arguments: object = '{"command": ["ls"]}', second: float = 0) -> Record:
    """Return a call of the shell."""
    payload = {"type": "function_call", "name": "shell", "arguments": arguments, "call_id": call_id}
    return record("response_item", payload, second)


def output(call_id: str, text: object = "done", second: float = 0) -> Record:
    """Return the result of a call."""
    payload = {"type": "function_call_output", "call_id": call_id, "output": text}
    return record("response_item", payload, second)


def event(kind: str, /, second: float = 0, **fields: object) -> Record:
    """Return an event."""
    return record("event_msg", {"type": kind, **fields}, second)


def tokens(read: int, written: int, total: int, second: float = 0) -> Record:
    """Return a count of tokens: of the last model call, and of the whole thread."""
    usage = {"input_tokens": read, "cached_input_tokens": 1, "output_tokens": written}
    info = {"last_token_usage": usage, "total_token_usage": {"total_tokens": total}}
    return event("token_count", second, info=info)


def turn_item(kind: str, /, second: float = 0, **fields: object) -> Record:
    """Return a turn item, as builds of mid-2026 report it."""
    item = {**fields, "type": kind}
    return event("item_completed", second, item=item, turn_id="t")


def write(folder: Path, *records: object, name: str = "rollout.jsonl") -> Path:
    """Write the records to a rollout file, one a line; return its path."""
    path = folder / name
    path.write_text(
        "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in records), encoding="utf-8"
    )
    return path


def trace_of(path: Path) -> Trace:
    """Return the trace of a rollout, read to its end."""
    trace = read_one(READER, path)
    read_fully(trace)
    return trace
