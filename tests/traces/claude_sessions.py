"""Session records of Claude Code in the layout of its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mast_tui.traces.model import FileReport, Trace
from mast_tui.traces.readers.claude_code.reader import READER
from tests.traces.checks import read_file, write_json_lines

SESSION = "5f0c1d9e-aaaa-4bbb-8ccc-000000000001"

Record = dict[str, object]


def record(uuid: str, parent: str | None, kind: str, **fields: object) -> Record:
    """Return a record with its envelope; ``fields`` replace the envelope's fields."""
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/srv",
        "sessionId": SESSION,
        "version": "2.1.207",
        "gitBranch": "main",
        "type": kind,
        "uuid": uuid,
        "timestamp": "2026-05-01T10:00:00.000Z",
        **fields,
    }


def user(uuid: str, parent: str | None, content: object, **fields: object) -> Record:
    """Return a record in the user's name."""
    message = {"role": "user", "content": content}
    return record(uuid, parent, "user", **{"message": message, **fields})


def agent(
    uuid: str,
    parent: str | None,
    *blocks: Mapping[str, object] | str,
    response: str | None = None,
    usage: Mapping[str, object] | None = None,
    model: str = "claude-opus-5",
    **fields: object,
) -> Record:
    """Return a record of the model; a text stands for a text block."""
    message: Record = {
        "id": response or f"msg_{uuid}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [text(block) if isinstance(block, str) else block for block in blocks],
        "stop_reason": None,
    }
    if usage is not None:
        message["usage"] = usage
    return record(uuid, parent, "assistant", **{"message": message, **fields})


def result(
    uuid: str, parent: str | None, tool_id: str, content: object = "ok", **fields: object
) -> Record:
    """Return a record with the result of a tool call."""
    block: Record = {"type": "tool_result", "tool_use_id": tool_id, "content": content}
    if "is_error" in fields:
        block["is_error"] = fields.pop("is_error")
    return user(uuid, parent, [block], **fields)


def text(content: str) -> Record:
    return {"type": "text", "text": content}


def call(tool_id: str, name: str = "Bash", **arguments: object) -> Record:
    return {"type": "tool_use", "id": tool_id, "name": name, "input": arguments}


def report_of(tmp_path: Path, *records: object, name: str = f"{SESSION}.jsonl") -> FileReport:
    return read_file(READER, write_json_lines(tmp_path / name, *records))


def trace_of(tmp_path: Path, *records: object) -> Trace:
    (trace,) = report_of(tmp_path, *records).traces
    return trace
