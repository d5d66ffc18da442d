"""Chat messages in the values of spans, in the shapes that ``MessageMapper`` reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text, dump_text
from mast_tui.traces.readers.chat.pieces import is_message
from mast_tui.traces.readers.otel.values import json_in, unflattened
from mast_tui.traces.readers.span_tree.builder import Message

_LISTS: Final = (
    "messages",
    "input",
    "contents",
    "args",
    "prompts",
    "output",
    "choices",
    "generations",
)
_DEEPEST: Final = 4
_LITERAL_CHARS: Final = 1 << 20

_OBSERVATION: Final = re.compile(r"(?:Call id: (?P<id>\S+)\n)?Observation:\n?")
_CALLING: Final = "Calling tools:\n"
_ENUM: Final = "MessageRole."
_CALLED: Final = "Called Tool: '"
_TOOL_MESSAGE: Final = re.compile(
    r"content=(?P<content>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\").*?"
    r"tool_call_id='(?P<id>[^']*)'",
    re.DOTALL,
)


def messages_in(value: object, role: str = "user") -> list[Message]:
    """The messages that a value holds, under any of the names that libraries give the list.

    A value without messages is one message of ``role``: its text, or its JSON.
    """
    if isinstance(value, str):
        parsed = json_in(value)
        if parsed is None:
            return [{"role": role, "content": value}] if value.strip() else []
        found = _found(parsed, 0)
        return found or [{"role": role, "content": value}]
    if value is None:
        return []
    return _found(value, 0) or [{"role": role, "content": dump_text(value)}]


def listed_messages(value: object) -> list[Message]:
    """The messages in a value; none where it holds none."""
    return _found(json_in(value) if isinstance(value, str) else value, 0)


def _found(value: object, depth: int) -> list[Message]:
    if depth > _DEEPEST:
        return []
    if isinstance(value, Mapping):
        if is_message(value):
            return [value]
        inner = value.get("message")
        if isinstance(inner, Mapping):
            return _found(inner, depth + 1)
        for name in _LISTS:
            if isinstance(value.get(name), list | Mapping) and (
                found := _found(value[name], depth + 1)
            ):
                return found
        return []
    if not isinstance(value, list):
        return []
    found = []
    for item in value:
        if isinstance(item, list) and len(item) == 2 and all(isinstance(one, str) for one in item):
            found.append({"role": item[0], "content": item[1]})
        else:
            found.extend(_found(item, depth + 1))
    return found


def openinference_messages(value: object) -> list[Message]:
    """Messages as OpenInference flattens them: ``message.role``, ``message.tool_calls`` …"""
    items = value if isinstance(value, list) else [value]
    return [_openinference_message(item) for item in items if isinstance(item, Mapping)]


def _openinference_message(item: Mapping[str, object]) -> Message:
    nested = _nested(item)
    inner = nested.get("message")
    fields = _nested(inner) if isinstance(inner, Mapping) else nested
    message: dict[str, object] = {"role": as_text(fields.get("role")) or "assistant"}
    for name in ("content", "name", "tool_call_id", "reasoning_content", "refusal"):
        if fields.get(name) is not None:
            message[name] = fields[name]
    contents = fields.get("contents")
    if message.get("content") in (None, "") and isinstance(contents, list):
        message["content"] = [_content_part(part) for part in contents]
    calls = fields.get("tool_calls")
    if isinstance(calls, list):
        message["tool_calls"] = [_tool_call(call) for call in calls]
    elif called := as_text(fields.get("function_call_name")):
        arguments = fields.get("function_call_arguments_json")
        message["tool_calls"] = [{"function": {"name": called, "arguments": arguments}}]
    message.setdefault("content", "")
    return message


def _content_part(part: object) -> object:
    if not isinstance(part, Mapping):
        return part
    nested = _nested(part)
    inner = nested.get("message_content")
    content = _nested(inner) if isinstance(inner, Mapping) else nested
    if isinstance(content.get("text"), str):
        kind = content.get("type")
        return {"type": kind if isinstance(kind, str) else "text", "text": content["text"]}
    return {"type": "image"} if "image" in content else content


def _tool_call(call: object) -> object:
    if not isinstance(call, Mapping):
        return call
    nested = _nested(call)
    inner = nested.get("tool_call")
    return _nested(inner) if isinstance(inner, Mapping) else nested


def _nested(value: Mapping[str, object]) -> Mapping[str, object]:
    """An object with its dotted names taken apart."""
    if not any("." in str(name) for name in value):
        return value
    nested = unflattened({str(name): inner for name, inner in value.items()})
    return nested if isinstance(nested, Mapping) else value


def fuller(told: Sequence[Message], raw: Sequence[Message]) -> list[Message]:
    """The messages as told, or as they stand in the raw value where that says more.

    Some instrumentation leaves out tool calls, or their arguments.
    """
    if not told:
        return list(raw)
    if len(told) != len(raw):
        return list(raw) if raw and not any(map(_says_all, told)) else list(told)
    return [one if _says_all(one) else other for one, other in zip(told, raw, strict=True)]


def _says_all(message: Message) -> bool:
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return bool(message.get("content"))
    functions = [call.get("function") for call in calls if isinstance(call, Mapping)]
    return all(isinstance(one, Mapping) and "arguments" in one for one in functions)


def retold_by_smolagents(messages: Sequence[Message]) -> list[Message]:
    """The messages with calls and observations that smolagents tells as text made such again."""
    found: list[Message] = []
    for message in messages:
        said = str(message.get("role", ""))
        role = said.removeprefix(_ENUM).lower().replace("_", "-")
        if role not in ("tool-call", "tool-response"):
            found.append({**message, "role": role} if said.startswith(_ENUM) else message)
            continue
        text = content_text(message.get("content"))
        if role == "tool-response":
            found.append(_observation(text))
            continue
        if found and content_text(found[-1].get("content")).startswith(_CALLED):
            found.pop()
        calls = literal(text.removeprefix(_CALLING)) if text.startswith(_CALLING) else None
        if isinstance(calls, list):
            found.append({"role": "assistant", "content": "", "tool_calls": calls})
        else:
            found.append({"role": "assistant", "content": text})
    return found


def _observation(text: str) -> Message:
    match = _OBSERVATION.match(text)
    result: dict[str, object] = {"role": "tool", "content": text[match.end() :] if match else text}
    if match and match["id"]:
        result["tool_call_id"] = match["id"]
    return result


def tool_message(text: str) -> tuple[str, str] | None:
    """Content and call id of a LangChain tool message that was saved as Python writes it."""
    match = _TOOL_MESSAGE.match(text) if text.startswith("content=") else None
    if match is None:
        return None
    content = literal(match["content"])
    return (content if isinstance(content, str) else match["content"], match["id"])


def literal(text: str) -> object:
    """The value that a text of Python stands for; None where it is none."""
    if len(text) > _LITERAL_CHARS:
        return None
    try:
        value: object = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return value
