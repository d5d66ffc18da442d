"""Builders of the rows and messages of recorded runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mast_tui.traces.index.document import Step
from mast_tui.traces.readers.span_tree.rows import Message, RowKind, SpanRow
from mast_tui.traces.readers.span_tree.steps import observed_steps

SYSTEM: Message = {"role": "system", "content": "Be brief."}
QUESTION: Message = {"role": "user", "content": "Is it raining?"}
ANSWER: Message = {"role": "assistant", "content": "No."}


def call(arguments: str = '{"city": "Bern"}', call_id: str | None = "c1") -> Message:
    tool_call: dict[str, object] = {"function": {"name": "weather", "arguments": arguments}}
    if call_id is not None:
        tool_call["id"] = call_id
    return {"role": "assistant", "content": None, "tool_calls": [tool_call]}


def result(text: str = "dry", call_id: str | None = "c1") -> Message:
    message: dict[str, object] = {"role": "tool", "content": text}
    if call_id is not None:
        message["tool_call_id"] = call_id
    return message


def model(
    row_id: str,
    start: float,
    request: Sequence[Message] = (),
    answer: Sequence[Message] = (),
    parent: str | None = None,
    **extra: Any,
) -> SpanRow:
    row = SpanRow(row_id, parent, RowKind.MODEL, "chat", f"/{row_id}", start, start + 1)
    return replace(row, request=tuple(request), answer=tuple(answer), **extra)


def tool(row_id: str, start: float, parent: str | None = None, **extra: Any) -> SpanRow:
    row = SpanRow(row_id, parent, RowKind.TOOL, "weather", f"/{row_id}", start, start + 1)
    fields: dict[str, Any] = {"input": {"city": "Bern"}, "output": "dry", **extra}
    return replace(row, **fields)


def agent(row_id: str, name: str, start: float, parent: str | None = None, **extra: Any) -> SpanRow:
    return replace(SpanRow(row_id, parent, RowKind.AGENT, name, f"/{row_id}", start), **extra)


def other(row_id: str, start: float, parent: str | None = None, **extra: Any) -> SpanRow:
    return replace(SpanRow(row_id, parent, RowKind.OTHER, row_id, f"/{row_id}", start), **extra)


def steps_of(*rows: SpanRow, service: str | None = None, every_row: bool = False) -> list[Step]:
    return observed_steps(rows, service=service, every_row=every_row).steps
