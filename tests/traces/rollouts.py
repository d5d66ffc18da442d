"""Codex rollouts to order."""

from __future__ import annotations

import json
from pathlib import Path

from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Trace
from mast_tui.traces.readers.codex.reader import READER
from tests.traces.checks import read_one

Record = dict[str, object]
SESSION = "01a2b3c4-0000-7000-8000-000000000001"
FIRST_SECOND = 1_790_000_000


def record(kind: str, payload: object, second: float = 0) -> Record:
    """A wrapped record, so many seconds after the first."""
    minutes, rest = divmod(second, 60)
    stamp = f"2026-09-21T14:{13 + int(minutes):02d}:{rest:06.3f}Z"
    return {"timestamp": stamp, "type": kind, "payload": payload}


def meta(session: str = SESSION, second: float = 0, **fields: object) -> Record:
    """The record a rollout begins with."""
    return record("session_meta", {"id": session, "cwd": "/srv", **fields}, second)


def message(role: str, text: str, second: float = 0, **fields: object) -> Record:
    """A message item."""
    part = "output_text" if role == "assistant" else "input_text"
    content = [{"type": part, "text": text}]
    payload = {"type": "message", "role": role, "content": content, **fields}
    return record("response_item", payload, second)


def reasoning(*parts: str, second: float = 0) -> Record:
    """A reasoning item with a summary of so many parts."""
    summary = [{"type": "summary_text", "text": part} for part in parts]
    payload = {"type": "reasoning", "summary": summary, "encrypted_content": "gAAA"}
    return record("response_item", payload, second)


def call(call_id: str, arguments: object = '{"command": ["ls"]}', second: float = 0) -> Record:
    """A call of the shell."""
    payload = {
        "type": "function_call",
        "name": "shell",
        "arguments": arguments,
        "call_id": call_id,
    }
    return record("response_item", payload, second)


def output(call_id: str, text: object = "done", second: float = 0) -> Record:
    """What a call gave."""
    payload = {"type": "function_call_output", "call_id": call_id, "output": text}
    return record("response_item", payload, second)


def event(kind: str, /, second: float = 0, **fields: object) -> Record:
    """An event."""
    return record("event_msg", {"type": kind, **fields}, second)


def tokens(taken: int, given: int, total: int, second: float = 0) -> Record:
    """A count of tokens: those of the last model call, and those of the thread in all."""
    usage = {"input_tokens": taken, "cached_input_tokens": 1, "output_tokens": given}
    info = {"last_token_usage": usage, "total_token_usage": {"total_tokens": total}}
    return event("token_count", second, info=info)


def turn_item(kind: str, /, second: float = 0, **fields: object) -> Record:
    """A turn item, as builds of mid-2026 report it."""
    item = {**fields, "type": kind}
    return event("item_completed", second, item=item, turn_id="t")


def write(folder: Path, *records: object, name: str = "rollout.jsonl") -> Path:
    """The records as a rollout file."""
    path = folder / name
    path.write_text(
        "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records), encoding="utf-8"
    )
    return path


def trace_of(path: Path) -> Trace:
    """The rollout, read to its end."""
    trace = read_one(READER, path)
    read_fully(trace)
    return trace
