"""Messages, tools and documents as OpenInference writes them, and what frameworks do to them."""

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

_DOCUMENTS: Final = ("retrieval.documents", "reranker.output_documents")
_OBSERVATION: Final = re.compile(r"(?:Call id: (?P<id>\S+)\n)?Observation:\n?")
_CALLING: Final = "Calling tools:\n"
_ENUM: Final = "MessageRole."
_CALLED: Final = "Called Tool: '"


def flattened_messages(span: OtelSpan, name: str, role: str) -> list[Message]:
    """Return the messages under dotted names such as ``llm.input_messages.0.message.role``.

    Args:
        span: The span.
        name: The attribute that holds the messages.
        role: The role of a message that is a text.
    """
    value = value_under(span.attributes, name)
    if isinstance(value, str):
        read = answer_messages(value) if role == "assistant" else ()
        return list(read or request_messages(value) or request_text(value))
    items = value if isinstance(value, list) else [value]
    return [_message(item) for item in items if isinstance(item, Mapping)]


def _message(item: Fields) -> Message:
    """Return a message as it is flattened: ``message.role``, ``message.tool_calls`` …"""
    fields = _nested(item, "message")
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
            _nested(call, "tool_call") if isinstance(call, Mapping) else call for call in calls
        ]
    elif called := as_text(fields.get("function_call_name")):
        arguments = fields.get("function_call_arguments_json")
        message["tool_calls"] = [{"function": {"name": called, "arguments": arguments}}]
    message.setdefault("content", "")
    return message


def _content_part(part: object) -> object:
    if not isinstance(part, Mapping):
        return part
    content = _nested(part, "message_content")
    if isinstance(content.get("text"), str):
        kind = content.get("type")
        return {"type": kind if isinstance(kind, str) else "text", "text": content["text"]}
    return {"type": "image"} if "image" in content else content


def _nested(value: Fields, within: str | None = None) -> Fields:
    """Return an object with its dotted names taken apart, or the object ``within`` it if any."""
    if any("." in str(name) for name in value):
        nested = nested_object({str(name): inner for name, inner in value.items()})
        value = nested if isinstance(nested, Mapping) else value
    inner = None if within is None else value.get(within)
    return _nested(inner) if isinstance(inner, Mapping) else value


def fuller_messages(flattened: Sequence[Message], raw: Sequence[Message]) -> list[Message]:
    """Return the messages of the attributes, or those of the raw value where these say more.

    Some instrumentation leaves out tool calls, or their arguments.

    Args:
        flattened: The messages in attributes of their own.
        raw: The same messages in the input or output value.
    """
    if not flattened:
        return list(raw)
    if len(flattened) != len(raw):
        return list(raw) if raw and not any(map(_says_all, flattened)) else list(flattened)
    pairs = zip(flattened, raw, strict=True)
    return [message if _says_all(message) else other for message, other in pairs]


def _says_all(message: Message) -> bool:
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return bool(message.get("content"))
    functions = [call.get("function") for call in calls if isinstance(call, Mapping)]
    return all("arguments" in fields_of(function) for function in functions)


def with_smolagents_calls(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with calls and results made such that smolagents writes as text."""
    result: list[Message] = []
    for message in messages:
        name = str(message.get("role", ""))
        role = name.removeprefix(_ENUM).lower().replace("_", "-")
        if role not in ("tool-call", "tool-response"):
            result.append({**message, "role": role} if name.startswith(_ENUM) else message)
            continue
        text = content_text(message.get("content"))
        if role == "tool-response":
            result.append(_observation(text))
            continue
        if result and content_text(result[-1].get("content")).startswith(_CALLED):
            result.pop()
        calls = read_literal(text.removeprefix(_CALLING)) if text.startswith(_CALLING) else None
        if isinstance(calls, list):
            result.append({"role": "assistant", "content": "", "tool_calls": calls})
        else:
            result.append({"role": "assistant", "content": text})
    return result


def _observation(text: str) -> Message:
    match = _OBSERVATION.match(text)
    result: dict[str, object] = {"role": "tool", "content": text[match.end() :] if match else text}
    if match and match["id"]:
        result["tool_call_id"] = match["id"]
    return result


def arguments_without_wrapping(value: object) -> object:
    """Return a tool's arguments without what smolagents wraps around them."""
    parsed = value
    if isinstance(value, str):
        parsed = json_in(value)
        if parsed is None and value.lstrip()[:1] == "{":
            parsed = read_literal(value)
    if isinstance(parsed, Mapping) and "sanitize_inputs_outputs" in parsed:
        named = parsed.get("kwargs")
        positional = parsed.get("args")
        if named and positional:
            return {"args": positional, "kwargs": named}
        return positional or named
    return value if not isinstance(parsed, Mapping) else parsed


def documents_text(span: OtelSpan) -> str | None:
    """Return the texts of the documents that a retriever found, or a reranker kept."""
    for name in _DOCUMENTS:
        documents = value_under(span.attributes, name)
        if isinstance(documents, list):
            return "\n\n".join(map(_document, documents))
    return None


def _document(value: object) -> str:
    inner = fields_of(value).get("document")
    fields = fields_of(inner if isinstance(inner, Mapping) else value)
    return text_in(fields, "content", "document.content") or dump_text(value)
