"""Spans of Monocle, with the attributes of the GenAI conventions.

Monocle has the kind of a span in ``span.type``, and the model, agent or tool in ``entity.N.*``.
Events have the input, the output and the tokens. A message is a JSON text such as
``{"human": "Hello"}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, read_literal
from mast_tui.traces.model import SpanStatus
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    items_of,
    json_in,
    value_in,
)
from mast_tui.traces.readers.otel.spans import OtelSpan

_OPERATION_BY_TYPE: Final = {
    "inference": "chat",
    "inference.framework": "chat",
    "inference.modelapi": "chat",
    "agentic.tool.invocation": "execute_tool",
    "agentic.invocation": "invoke_agent",
}
_ROLE_BY_NAME: Final = {"human": "user", "ai": "assistant", "model": "assistant"}
_MOST_ENTITIES: Final = 9


def with_genai_names(span: OtelSpan) -> OtelSpan:
    """Return a span of Monocle with GenAI attributes added, any other span unchanged."""
    span_type = span.text("span.type")
    if span_type is None or span.text("monocle_apptrace.version") is None:
        return span
    request = _event_value(span, "data.input", "input", "Inputs")
    output = _event_value(span, "data.output", "response", "output")
    metadata = next((event.attributes for event in span.events if event.name == "metadata"), {})
    operation = _OPERATION_BY_TYPE.get(span_type)
    if operation == "chat" and request is None and output is None:
        operation = None  # the framework's span around it has the messages
    attributes: dict[str, object] = {
        **span.attributes,
        "gen_ai.operation.name": operation or "invoke_workflow",
        "gen_ai.request.model": _entity_name(span, "model."),
        "gen_ai.agent.name": _entity_name(span, "agent."),
        "gen_ai.usage.input_tokens": metadata.get("prompt_tokens"),
        "gen_ai.usage.output_tokens": metadata.get("completion_tokens"),
    }
    message = span.message
    if operation == "chat":
        if span.status is SpanStatus.ERROR:  # The output is the text of the error.
            message = message or as_text(output)
            output = None
        attributes["gen_ai.input.messages"] = list(_messages(request, "user"))
        attributes["gen_ai.output.messages"] = list(_messages(output, "assistant"))
    elif operation == "execute_tool":
        attributes["gen_ai.tool.name"] = _entity_name(span, "tool.")
        attributes["gen_ai.tool.call.arguments"] = _arguments(request)
        attributes["gen_ai.tool.call.result"] = output
    else:
        attributes["input.value"] = _first_text(request)
        attributes["output.value"] = output
    attributes = {name: value for name, value in attributes.items() if value not in (None, [])}
    return replace(span, attributes=attributes, events=[], message=message)


def _event_value(span: OtelSpan, event_name: str, *fields: str) -> object:
    """Return the first of some fields that the first event of this name has."""
    events = (event for event in span.events if event.name == event_name)
    return next((first_in(event.attributes, *fields) for event in events), None)


def _entity_name(span: OtelSpan, type_prefix: str) -> str | None:
    """Return the name of the first entity (model, agent or tool) with a type."""
    for number in range(1, _MOST_ENTITIES + 1):
        if (span.text(f"entity.{number}.type") or "").startswith(type_prefix):
            return span.text(f"entity.{number}.name")
    return None


def _messages(value: object, role: str) -> Iterable[Fields]:
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
        elif may_have_calls and (calls := _calls_in(content)):
            yield {"role": "assistant", "content": "", "tool_calls": calls}
        elif content is not None:
            yield {"role": _ROLE_BY_NAME.get(role_name, role_name), "content": content}


def _calls_in(content: object) -> Sequence[Fields]:
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


def _arguments(value: object) -> object:
    """Return a tool's arguments, with a single text parsed as JSON or as a Python literal."""
    text = _first_text(value)
    if text is None or (isinstance(value, list) and len(value) > 1):
        return value
    parsed_values = (json_in(text), read_literal(text), text)
    return next(arguments for arguments in parsed_values if arguments is not None)


def _first_text(value: object) -> str | None:
    """Return a text, or the first text of a list."""
    return as_text(value[0] if isinstance(value, list) and value else value)
