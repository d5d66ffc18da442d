"""Spans of Claude Code with the attributes of the GenAI conventions, and its log events as rows.

The texts are recorded only at the user's request. ``tool_input`` has a tool's input; an event or
``new_context`` has its output. ``new_context`` of a model call has the new messages of its request.
A heading in brackets is before each text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_values import as_count, as_number, as_text, dump_text
from mast_tui.traces.model import SpanStatus
from mast_tui.traces.readers.chat.values import usage_tokens
from mast_tui.traces.readers.json_fields import Fields, first_in, json_in, text_in
from mast_tui.traces.readers.otel.spans import Attributes, OtelSpan, SpanEvent, unrecorded_prompt
from mast_tui.traces.readers.span_tree.rows import RowKind, SpanRow
from mast_tui.traces.result_status import status_of_flag

_NAME_PREFIX: Final = "claude_code."
_AGENT: Final = "Claude Code"
_INPUT_COUNT_FIELDS: Final = "input_tokens cache_read_tokens cache_creation_tokens"
_HEADING: Final = re.compile(r"\[(?P<kind>[A-Z ]+)(?:: (?P<id>[^\]\n]*))?\]\n")
_NEXT_HEADING: Final = re.compile(r"\n\n---\n\n(?=\[[A-Z ]+(?:: [^\]\n]*)?\]\n)")
_HIDDEN_PROMPT: Final = "<REDACTED>"
_ARGUMENT_BY_FIELD: Final = {
    "bash_command": "command",
    "full_command": "command",
    "file_path": "file_path",
}


def with_genai_names(span: OtelSpan) -> OtelSpan:
    """Return a span of Claude Code with GenAI attributes added, any other span unchanged."""
    if not span.name.startswith(_NAME_PREFIX):
        return span
    genai_attributes: dict[str, object] = {"gen_ai.operation.name": "invoke_workflow"}
    failed = span.attributes.get("success") in (False, "false")
    match span.name.removeprefix(_NAME_PREFIX):
        case "interaction":
            genai_attributes = {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": _AGENT,
                "input.value": span.text("user_prompt"),
            }
        case "llm_request":
            tokens = usage_tokens(span.attributes, _INPUT_COUNT_FIELDS, "output_tokens")
            answer = span.text("response.model_output")
            genai_attributes = {
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": list(_messages(span.text("new_context") or "")),
                "gen_ai.output.messages": answer and [{"role": "assistant", "content": answer}],
                "gen_ai.usage.input_tokens": tokens and tokens.input,
                "gen_ai.usage.output_tokens": tokens and tokens.output,
            }
        case "tool":
            genai_attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": span.text("tool_name"),
                "gen_ai.tool.call.arguments": _arguments(span),
                "gen_ai.tool.call.result": _result(span),
            }
        case "tool.execution" if failed:  # the error is the result of the tool
            genai_attributes = {"gen_ai.operation.name": "execute_tool"}
    known_attributes = {
        name: value for name, value in genai_attributes.items() if value not in (None, [])
    }
    return replace(
        span,
        attributes={**span.attributes, **known_attributes},
        status=SpanStatus.ERROR if failed else span.status,
        message=span.message or (span.text("error") if failed else None),
    )


def _messages(context: str) -> Iterator[Fields]:
    """Yield the messages in a text with a heading in brackets before each message."""
    for text in _NEXT_HEADING.split(context):
        if (heading := _HEADING.match(text)) is None:
            continue
        content = text[heading.end() :]
        if heading["kind"] == "TOOL RESULT":
            yield {"role": "tool", "tool_call_id": heading["id"], "content": content}
        else:
            yield {"role": "user", "content": content}


def event_name(event: SpanEvent) -> str | None:
    """Return the name of a log event of Claude Code without prefix; None for any other event."""
    for name in (event.name, as_text(event.attributes.get("content")) or ""):
        if name.startswith(_NAME_PREFIX):
            return name.removeprefix(_NAME_PREFIX)
    return None


def start_of_event(attributes: Fields, end: float | None) -> float | None:
    """Return the start of the activity that an event reports, in Unix seconds.

    Args:
        attributes: The attributes of the event, with its duration.
        end: The time of the event, at the end of the activity.
    """
    duration = attributes.get("duration_ms")  # a number, or its digits in a text
    milliseconds = max(as_number(duration) or as_count(duration) or 0, 0)
    return None if end is None else end - milliseconds / 1e3


def row_of_event(name: str, attributes: Attributes, row: SpanRow) -> SpanRow | None:
    """Return the row of a log event; None for a decision whether a tool may be called.

    Args:
        name: The name of the event without prefix.
        attributes: The attributes of the event.
        row: The row that shows the event as a log record.
    """
    row = replace(row, agent=_AGENT, start=start_of_event(attributes, row.start), end=row.start)
    tool = text_in(attributes, "tool_name") or "tool"
    match name:
        case "user_prompt":
            prompt = text_in(attributes, "prompt")
            if prompt in (None, _HIDDEN_PROMPT):
                prompt = unrecorded_prompt(attributes)
            return replace(row, input=prompt, output=None, has_readable_output=False)
        case "api_request" | "api_error":
            cost = dump_text(attributes.get("cost_usd"))
            failed = name == "api_error"
            return replace(
                row,
                kind=RowKind.MODEL,
                name=f"model call, {cost} USD" if cost else name,
                output=None,
                model=text_in(attributes, "model"),
                tokens=usage_tokens(attributes, _INPUT_COUNT_FIELDS, "output_tokens"),
                status=SpanStatus.ERROR if failed else SpanStatus.UNKNOWN,
                error=text_in(attributes, "error") or (name if failed else None),
            )
        case "tool_result":
            error = text_in(attributes, "error")
            output = first_in(attributes, "tool_result", "tool_output")
            return replace(
                row,
                kind=RowKind.TOOL,
                name=tool,
                call_id=text_in(attributes, "tool_use_id"),
                status=status_of_flag(attributes.get("success")),
                input=json_in(first_in(attributes, "tool_input", "tool_parameters")),
                output=output or error or "[the result was not recorded]",
                error=error,
            )
        case "tool_decision":
            decision = text_in(attributes, "decision") or "decided"
            source = text_in(attributes, "source")
            text = f"{tool}: {decision} ({source})" if source else f"{tool}: {decision}"
            return None if decision == "accept" else replace(row, output=text)
    return row


def _arguments(span: OtelSpan) -> object:
    """Return the arguments of a tool call, from ``tool_input`` or other attributes."""
    text = _HEADING.sub("", span.text("tool_input") or "", count=1)
    if text:
        return json_in(text) or text
    fields = {**_output(span), **span.attributes}
    arguments = {
        argument: fields[name] for name, argument in _ARGUMENT_BY_FIELD.items() if name in fields
    }
    return arguments or None


def _result(span: OtelSpan) -> object:
    result = first_in(_output(span), "output", "diff", "content")
    return result or _HEADING.sub("", span.text("new_context") or "", count=1) or None


def _output(span: OtelSpan) -> Fields:
    events = (event.attributes for event in span.events if event.name == "tool.output")
    return next(events, {})
