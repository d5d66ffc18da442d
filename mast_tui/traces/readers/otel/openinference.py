"""Messages, tools and documents as OpenInference and frameworks that use it write them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text, dump_text
from mast_tui.traces.io.python_literals import read_literal
from mast_tui.traces.readers.json_fields import Fields, fields_of, json_in, text_in
from mast_tui.traces.readers.otel.spans import OtelSpan, nested_object, value_under
from mast_tui.traces.readers.span_tree.messages import (
    answer_messages,
    request_messages,
    request_text,
)
from mast_tui.traces.readers.span_tree.rows import Message

_DOCUMENT_LISTS: Final = ("retrieval.documents", "reranker.output_documents")
_OBSERVATION_HEADING: Final = re.compile(r"(?:Call id: (?P<id>\S+)\n)?Observation:\n?")
_CALLS_HEADING: Final = "Calling tools:\n"
_ENUM_PREFIX: Final = "MessageRole."
_ECHOED_CALL: Final = "Called Tool: '"


def flattened_messages(span: OtelSpan, name: str, role: str) -> list[Message]:
    """Return the messages under dotted names such as ``llm.input_messages.0.message.role``.

    Args:
        span: The span.
        name: The attribute with the messages, or the beginning of their dotted names.
        role: The role of the message if the attribute is one text: ``user`` or ``assistant``.
    """
    value = value_under(span.attributes, name)
    if isinstance(value, str):
        answer = answer_messages(value) if role == "assistant" else ()
        return list(answer or request_messages(value) or request_text(value))
    items = value if isinstance(value, list) else [value]
    return [_message_of_item(item) for item in items if isinstance(item, Mapping)]


def _message_of_item(item: Fields) -> Message:
    """Return a message from its flattened fields: ``message.role``, ``message.tool_calls`` …"""
    fields = _nested_fields(item, "message")
    message: dict[str, object] = {"role": as_text(fields.get("role")) or "assistant"}
    for name in ("content", "name", "tool_call_id", "reasoning_content", "refusal"):
        if fields.get(name) is not None:
            message[name] = fields[name]
    contents = fields.get("contents")
    calls = fields.get("tool_calls")
    if message.get("content") in (None, "") and isinstance(contents, list):
        message["content"] = [_content_part(part) for part in contents]
    if isinstance(calls, list):
        message["tool_calls"] = [
            _nested_fields(call, "tool_call") if isinstance(call, Mapping) else call
            for call in calls
        ]
    elif function_name := as_text(fields.get("function_call_name")):
        arguments = fields.get("function_call_arguments_json")
        message["tool_calls"] = [{"function": {"name": function_name, "arguments": arguments}}]
    message.setdefault("content", "")
    return message


def _content_part(part: object) -> object:
    """Return a part of a message without OpenInference's names; a picture without its data."""
    if not isinstance(part, Mapping):
        return part
    content = _nested_fields(part, "message_content")
    if isinstance(content.get("text"), str):
        kind = content.get("type")
        return {"type": kind if isinstance(kind, str) else "text", "text": content["text"]}
    return {"type": "image"} if "image" in content else content


def _nested_fields(value: Fields, wrapper: str | None = None) -> Fields:
    """Return an object with its dotted names as nested objects.

    If the field ``wrapper`` is an object, that object is returned.
    """
    if any("." in str(name) for name in value):
        nested = nested_object({str(name): field_value for name, field_value in value.items()})
        value = nested if isinstance(nested, Mapping) else value
    wrapped = None if wrapper is None else value.get(wrapper)
    return _nested_fields(wrapped) if isinstance(wrapped, Mapping) else value


def fuller_messages(flattened: Sequence[Message], raw: Sequence[Message]) -> list[Message]:
    """Return the flattened messages, each replaced by the raw message if it is not complete.

    Some instrumentation leaves out tool calls or their arguments in flattened messages. If the
    numbers of messages differ, the raw messages are returned if no flattened message is complete.

    Args:
        flattened: The messages in attributes of their own.
        raw: The same messages in the input or output value.
    """
    if not flattened:
        return list(raw)
    if len(flattened) != len(raw):
        return list(raw) if raw and not any(map(_is_complete, flattened)) else list(flattened)
    pairs = zip(flattened, raw, strict=True)
    return [
        flat_message if _is_complete(flat_message) else raw_message
        for flat_message, raw_message in pairs
    ]


def _is_complete(message: Message) -> bool:
    """Return whether a message has content, or tool calls that all have arguments."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return bool(message.get("content"))
    functions = [call.get("function") for call in calls if isinstance(call, Mapping)]
    return all("arguments" in fields_of(function) for function in functions)


def with_smolagents_calls(messages: Sequence[Message]) -> list[Message]:
    """Return messages with tool calls and results in place of the texts that smolagents writes."""
    converted: list[Message] = []
    for message in messages:
        role_name = str(message.get("role", ""))
        is_enum = role_name.startswith(_ENUM_PREFIX)
        role = role_name.removeprefix(_ENUM_PREFIX).lower().replace("_", "-")
        if role not in ("tool-call", "tool-response"):
            converted.append({**message, "role": role} if is_enum else message)
            continue
        text = content_text(message.get("content"))
        if role == "tool-response":
            converted.append(_tool_message(text))
            continue
        if converted and content_text(converted[-1].get("content")).startswith(_ECHOED_CALL):
            converted.pop()
        has_calls = text.startswith(_CALLS_HEADING)
        calls = read_literal(text.removeprefix(_CALLS_HEADING)) if has_calls else None
        if isinstance(calls, list):
            converted.append({"role": "assistant", "content": "", "tool_calls": calls})
        else:
            converted.append({"role": "assistant", "content": text})
    return converted


def _tool_message(text: str) -> Message:
    """Return an observation as a tool's message; the call id in its heading becomes a field."""
    match = _OBSERVATION_HEADING.match(text)
    content = text[match.end() :] if match else text
    message: dict[str, object] = {"role": "tool", "content": content}
    if match and match["id"]:
        message["tool_call_id"] = match["id"]
    return message


def arguments_without_wrapping(value: object) -> object:
    """Return a tool's arguments without the object in which smolagents wraps them.

    A text that holds an object is parsed; any other text is returned as it is.
    """
    parsed = value
    if isinstance(value, str):
        parsed = json_in(value)
        if parsed is None and value.lstrip()[:1] == "{":
            parsed = read_literal(value)
    if not isinstance(parsed, Mapping):
        return value
    if "sanitize_inputs_outputs" not in parsed:  # Only smolagents' wrapper has this field.
        return parsed
    named = parsed.get("kwargs")
    positional = parsed.get("args")
    if named and positional:
        return {"args": positional, "kwargs": named}
    return positional or named


def documents_text(span: OtelSpan) -> str | None:
    """Return the texts of a retriever's or reranker's documents; None if it lists none."""
    for name in _DOCUMENT_LISTS:
        documents = value_under(span.attributes, name)
        if isinstance(documents, list):
            return "\n\n".join(map(_document_text, documents))
    return None


def _document_text(value: object) -> str:
    """Return the content of a document; if it has none, the whole value as text."""
    wrapped = fields_of(value).get("document")
    fields = fields_of(wrapped if isinstance(wrapped, Mapping) else value)
    return text_in(fields, "content", "document.content") or dump_text(value)
