"""Spans of Claude Code and Monocle, with the attributes of the GenAI conventions.

Both have names of their own for attributes. Log events of Claude Code become rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_values import as_count, as_number, as_text, dump_text, read_literal
from mast_tui.traces.model import SpanStatus
from mast_tui.traces.readers.chat.values import usage_tokens
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    items_of,
    json_in,
    text_in,
    value_in,
)
from mast_tui.traces.readers.otel.spans import Attributes, OtelSpan, SpanEvent, unrecorded_prompt
from mast_tui.traces.readers.span_tree.rows import RowKind, SpanRow
from mast_tui.traces.result_status import status_of_flag


def with_genai_names(span: OtelSpan) -> OtelSpan:
    """Return a span of Claude Code or Monocle with GenAI attributes, any other span unchanged."""
    if span.name.startswith(_CLAUDE_PREFIX):
        return _claude_with_genai_names(span)
    span_type = span.text("span.type")
    if span_type is not None and span.text("monocle_apptrace.version") is not None:
        return _monocle_with_genai_names(span, span_type)
    return span


# Claude Code: the texts are recorded only at the user's request. ``tool_input`` has a tool's input;
# an event or ``new_context`` has its output. ``new_context`` of a model call has the new messages
# of its request. A heading in brackets is before each text.


_CLAUDE_PREFIX: Final = "claude_code."
_CLAUDE_AGENT: Final = "Claude Code"
_CLAUDE_INPUT_COUNTS: Final = "input_tokens cache_read_tokens cache_creation_tokens"
_CLAUDE_HEADING: Final = re.compile(r"\[(?P<kind>[A-Z ]+)(?:: (?P<id>[^\]\n]*))?\]\n")
_CLAUDE_NEXT_HEADING: Final = re.compile(r"\n\n---\n\n(?=\[[A-Z ]+(?:: [^\]\n]*)?\]\n)")
_CLAUDE_HIDDEN_PROMPT: Final = "<REDACTED>"
_CLAUDE_ARGUMENT_BY_FIELD: Final = {
    "bash_command": "command",
    "full_command": "command",
    "file_path": "file_path",
}


def _claude_with_genai_names(span: OtelSpan) -> OtelSpan:
    """Return a span of Claude Code with GenAI attributes."""
    genai_attributes: dict[str, object] = {"gen_ai.operation.name": "invoke_workflow"}
    failed = span.attributes.get("success") in (False, "false")
    match span.name.removeprefix(_CLAUDE_PREFIX):
        case "interaction":
            genai_attributes = {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": _CLAUDE_AGENT,
                "input.value": span.text("user_prompt"),
            }
        case "llm_request":
            tokens = usage_tokens(span.attributes, _CLAUDE_INPUT_COUNTS, "output_tokens")
            answer = span.text("response.model_output")
            genai_attributes = {
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": list(_claude_messages(span.text("new_context") or "")),
                "gen_ai.output.messages": answer and [{"role": "assistant", "content": answer}],
                "gen_ai.usage.input_tokens": tokens and tokens.input,
                "gen_ai.usage.output_tokens": tokens and tokens.output,
            }
        case "tool":
            genai_attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": span.text("tool_name"),
                "gen_ai.tool.call.arguments": _claude_arguments(span),
                "gen_ai.tool.call.result": _claude_result(span),
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


def _claude_messages(context: str) -> Iterator[Fields]:
    """Yield the messages in a text with a heading in brackets before each message."""
    for text in _CLAUDE_NEXT_HEADING.split(context):
        if (heading := _CLAUDE_HEADING.match(text)) is None:
            continue
        content = text[heading.end() :]
        if heading["kind"] == "TOOL RESULT":
            yield {"role": "tool", "tool_call_id": heading["id"], "content": content}
        else:
            yield {"role": "user", "content": content}


def claude_event_name(event: SpanEvent) -> str | None:
    """Return the name of a log event of Claude Code without prefix; None for any other event."""
    for name in (event.name, as_text(event.attributes.get("content")) or ""):
        if name.startswith(_CLAUDE_PREFIX):
            return name.removeprefix(_CLAUDE_PREFIX)
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


def row_of_claude_event(name: str, attributes: Attributes, row: SpanRow) -> SpanRow | None:
    """Return the row of a log event; None for a decision whether a tool may be called.

    Args:
        name: The name of the event without prefix.
        attributes: The attributes of the event.
        row: The row that shows the event as a log record.
    """
    row = replace(
        row, agent=_CLAUDE_AGENT, start=start_of_event(attributes, row.start), end=row.start
    )
    tool = text_in(attributes, "tool_name") or "tool"
    match name:
        case "user_prompt":
            prompt = text_in(attributes, "prompt")
            if prompt in (None, _CLAUDE_HIDDEN_PROMPT):
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
                tokens=usage_tokens(attributes, _CLAUDE_INPUT_COUNTS, "output_tokens"),
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


def _claude_arguments(span: OtelSpan) -> object:
    """Return the arguments of a tool call, from ``tool_input`` or other attributes."""
    text = _CLAUDE_HEADING.sub("", span.text("tool_input") or "", count=1)
    if text:
        return json_in(text) or text
    fields = {**_claude_output(span), **span.attributes}
    arguments = {
        argument: fields[name]
        for name, argument in _CLAUDE_ARGUMENT_BY_FIELD.items()
        if name in fields
    }
    return arguments or None


def _claude_result(span: OtelSpan) -> object:
    result = first_in(_claude_output(span), "output", "diff", "content")
    return result or _CLAUDE_HEADING.sub("", span.text("new_context") or "", count=1) or None


def _claude_output(span: OtelSpan) -> Fields:
    events = (event.attributes for event in span.events if event.name == "tool.output")
    return next(events, {})


# Monocle: the kind of a span is in ``span.type``, the model, agent or tool in ``entity.N.*``.
# Events have the input, the output and the tokens. A message is a JSON text such as
# ``{"human": "Hello"}``.


_MONOCLE_OPERATION_BY_TYPE: Final = {
    "inference": "chat",
    "inference.framework": "chat",
    "inference.modelapi": "chat",
    "agentic.tool.invocation": "execute_tool",
    "agentic.invocation": "invoke_agent",
}
_MONOCLE_ROLE_BY_NAME: Final = {"human": "user", "ai": "assistant", "model": "assistant"}
_MONOCLE_MOST_ENTITIES: Final = 9


def _monocle_with_genai_names(span: OtelSpan, span_type: str) -> OtelSpan:
    """Return a span of Monocle with GenAI attributes."""
    request = _monocle_event_value(span, "data.input", "input", "Inputs")
    output = _monocle_event_value(span, "data.output", "response", "output")
    metadata = next((event.attributes for event in span.events if event.name == "metadata"), {})
    operation = _MONOCLE_OPERATION_BY_TYPE.get(span_type)
    if operation == "chat" and request is None and output is None:
        operation = None  # the framework's span around it has the messages
    attributes: dict[str, object] = {
        **span.attributes,
        "gen_ai.operation.name": operation or "invoke_workflow",
        "gen_ai.request.model": _monocle_entity_name(span, "model."),
        "gen_ai.agent.name": _monocle_entity_name(span, "agent."),
        "gen_ai.usage.input_tokens": metadata.get("prompt_tokens"),
        "gen_ai.usage.output_tokens": metadata.get("completion_tokens"),
    }
    message = span.message
    if operation == "chat":
        if span.status is SpanStatus.ERROR:  # The output is the text of the error.
            message = message or as_text(output)
            output = None
        attributes["gen_ai.input.messages"] = list(_monocle_messages(request, "user"))
        attributes["gen_ai.output.messages"] = list(_monocle_messages(output, "assistant"))
    elif operation == "execute_tool":
        attributes["gen_ai.tool.name"] = _monocle_entity_name(span, "tool.")
        attributes["gen_ai.tool.call.arguments"] = _monocle_arguments(request)
        attributes["gen_ai.tool.call.result"] = output
    else:
        attributes["input.value"] = _monocle_text(request)
        attributes["output.value"] = output
    attributes = {name: value for name, value in attributes.items() if value not in (None, [])}
    return replace(span, attributes=attributes, events=[], message=message)


def _monocle_event_value(span: OtelSpan, event_name: str, *fields: str) -> object:
    """Return the first of some fields that the first event of this name has."""
    events = (event for event in span.events if event.name == event_name)
    return next((first_in(event.attributes, *fields) for event in events), None)


def _monocle_entity_name(span: OtelSpan, type_prefix: str) -> str | None:
    """Return the name of the first entity (model, agent or tool) with a type."""
    for number in range(1, _MONOCLE_MOST_ENTITIES + 1):
        if (span.text(f"entity.{number}.type") or "").startswith(type_prefix):
            return span.text(f"entity.{number}.name")
    return None


def _monocle_messages(value: object, role: str) -> Iterable[Fields]:
    """Yield the messages in a value; ``role`` is the role of a plain text."""
    items = value_in(value)
    for item in items if isinstance(items, list) else [items]:
        fields = fields_of(json_in(item))
        role_name, content = next(iter(fields.items())) if len(fields) == 1 else (role, item)
        may_have_calls = (
            role_name in ("ai", "assistant", "model", "tools") or "tool_function" in fields
        )
        if "call_id" in fields and "output" in fields:
            tool_output = fields["output"]
            yield {"role": "tool", "tool_call_id": fields["call_id"], "content": tool_output}
        elif may_have_calls and (calls := _monocle_calls(content)):
            yield {"role": "assistant", "content": "", "tool_calls": calls}
        elif content is not None:
            yield {"role": _MONOCLE_ROLE_BY_NAME.get(role_name, role_name), "content": content}


def _monocle_calls(content: object) -> Sequence[Fields]:
    """Return the tool calls in the content of a message; empty if any item is no call."""
    value = json_in(content)
    calls: list[Fields] = []
    for item in [value] if isinstance(value, Mapping) else items_of(value):
        fields = fields_of(item)
        name = first_in(fields, "name", "tool_name", "tool_function")
        arguments = first_in(fields, "args", "tool_arguments")
        if name is None or arguments is None:
            return ()
        calls.append(
            {"id": first_in(fields, "id", "tool_id"), "name": name, "arguments": arguments}
        )
    return calls


def _monocle_arguments(value: object) -> object:
    """Return a tool's arguments, with a single text parsed as JSON or as a Python literal."""
    text = _monocle_text(value)
    if text is None or (isinstance(value, list) and len(value) > 1):
        return value
    parsed_values = (json_in(text), read_literal(text), text)
    return next(arguments for arguments in parsed_values if arguments is not None)


def _monocle_text(value: object) -> str | None:
    """Return a text, or the first text of a list."""
    return as_text(value[0] if isinstance(value, list) and value else value)
