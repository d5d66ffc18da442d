"""The chat messages in what a model was given and gave back, as clients and tracers wrap them.

``MessageMapper`` reads the messages themselves. Here they are found under the names that clients
use, and those are repaired that a tracer wrote in words of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from mast_tui.traces.io.json_values import as_text, content_text, dump_text
from mast_tui.traces.io.python_literals import read_literal
from mast_tui.traces.model import Role, SpanStatus
from mast_tui.traces.readers.chat.pieces import role_of
from mast_tui.traces.readers.chat.turns import is_message, unwrap_langchain
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    items_of,
    json_in,
    names,
    value_in,
)
from mast_tui.traces.readers.span_tree.rows import Message

_MOST_WRAPPERS: Final = 5
_REQUEST_FIELDS: Final = names("""
    messages input inputs prompts prompt contents request text args kwargs
""")
_ANSWER_FIELDS: Final = names("message messages output outputs response text content")
_INSTRUCTIONS: Final = names("""
    system instructions system_prompt system_instruction systemInstruction system_instructions
""")
_PAIRS: Final = {"human": "user", "ai": "assistant"} | {
    role: role for role in ("user", "assistant", "system")
}
"""The roles in messages that are written as pairs of role and text."""

_CHOICES: Final = ("choices", "generations", "candidates")
_LOST_MESSAGE: Final = {"content": "role"}
"""LangSmith's OTel exporter writes this where it took the keys of a message for a message."""

_NONE: Final = "None"
"""The text of an answer that only calls tools, where an integration writes messages as text."""


def request_messages(value: object) -> tuple[Message, ...]:
    """Return the messages of a request, its system prompt first; none where it is plain text."""
    return _messages(value, _REQUEST_FIELDS, "user")[0]


def request_text(value: object) -> tuple[Message, ...]:
    """Return the messages of a user that a request without roles holds."""
    messages = _messages(value, _REQUEST_FIELDS, "user")[1]
    return messages or _whole(value, "user")


def answer_messages(value: object) -> tuple[Message, ...]:
    """Return the messages of an answer; a text, or JSON of another shape, is one message."""
    structured, plain = _messages(_without_choices(value), _ANSWER_FIELDS, "assistant")
    return structured or plain or repaired_messages(_whole(value, "assistant"))


def structured_answer(value: object) -> tuple[Message, ...]:
    """Return the messages of an answer with roles; none where it is plain text."""
    return _messages(_without_choices(value), _ANSWER_FIELDS, "assistant")[0]


def last_answer(value: object) -> tuple[Message, ...]:
    """Return the last message of a conversation that came out of a run; none for anything else."""
    return structured_answer(value)[-1:]


def without_lost_messages(request: object, answer: object) -> tuple[object, object]:
    """Return a request and an answer, with None where a tracer lost the message.

    Args:
        request: The input of the model.
        answer: The output of the model.
    """
    is_plain = isinstance(request, str) and json_in(request) is None
    lost_answer = value_in(answer) == _LOST_MESSAGE or (is_plain and answer == _NONE)
    request = None if value_in(request) == _LOST_MESSAGE else request
    return request, None if lost_answer else answer


def is_system(message: Message) -> bool:
    """Return whether a message is a system prompt."""
    role = message.get("role")
    return isinstance(role, str) and role_of(role) is Role.SYSTEM


def has_answer(value: object) -> bool:
    """Return whether a value has the shape of what a model's client returns."""
    if not isinstance(value, Mapping):
        return False
    if any(isinstance(value.get(name), list) for name in _CHOICES[:2]):
        return True
    return value.get("object") == "response" or (
        value.get("type") == "message" and value.get("role") == "assistant"
    )


def instructions_in(value: object) -> object:
    """Return the system prompt that a request or a response keeps beside its messages.

    Returns:
        A text, or a list of parts; None where there is none.
    """
    fields = fields_of(value_in(value))
    for holder in (fields, fields_of(fields.get("config"))):
        for name in _INSTRUCTIONS:
            inner = value_in(holder.get(name))
            if isinstance(inner, Mapping):
                inner = first_in(inner, "parts", "content", "text")
            if inner and isinstance(inner, str | list):
                return inner
    return None


def system_text(value: object) -> str | None:
    """Return the system prompt in an agent's input: beside its messages, or the first of them."""
    inner = instructions_in(value)
    if inner is not None:
        return as_text(content_text(inner))
    value = value_in(value)
    messages = items_of(fields_of(value).get("messages") if isinstance(value, Mapping) else value)
    first = fields_of(messages[0] if messages else None)
    return as_text(content_text(first_in(first, "content", "parts"))) if is_system(first) else None


def _messages(
    value: object, wrappers: Sequence[str], role: str
) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Return the messages in a list or under one of the fields ``wrappers``, and bare texts there.

    One of the two is empty. Only a request has its system prompt among them.
    """
    system: tuple[Message, ...] = ()
    for _ in range(_MOST_WRAPPERS):
        value = value_in(value)
        if isinstance(value, list):
            if len(value) == 1 and isinstance(value[0], list) and _message(value[0], role) is None:
                value = value[0]
                continue
            read = [_message(item, role) for item in value]
            messages = [message for message in read if message is not None]
            if messages and 2 * len(messages) >= len(read):
                return (*system, *repaired_messages(messages)), ()
            return (), ()
        if (message := _message(value, role)) is not None:
            return (*system, *repaired_messages([message])), ()
        if not isinstance(value, Mapping):
            return (), ()
        if role == "user" and not system and (instructions := instructions_in(value)) is not None:
            system = ({"role": "system", "content": instructions},)
        inner_values = (inner for field in wrappers if (inner := value.get(field)))
        value = next(
            (inner for inner in inner_values if isinstance(inner, str | list | Mapping)), None
        )
        if isinstance(value, str) and value.strip() and json_in(value) is None:
            return (), (*system, *_whole(value, role))
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return (), (*system, *({"role": role, "content": item} for item in value))
    return (), ()


def _whole(value: object, role: str) -> tuple[Message, ...]:
    """Return one message with all of a value as its text."""
    text = dump_text(value)
    return ({"role": role, "content": text},) if text.strip() else ()


def _without_choices(value: object) -> object:
    """Return the messages that a client wraps in one of ``_CHOICES``, else the value."""
    value = value_in(value)
    wrapped = map(fields_of(value).get, _CHOICES)
    choices = next(
        (candidate for candidate in (value, *wrapped) if isinstance(candidate, list)), None
    )
    if choices is None:
        return value
    if len(choices) == 1 and isinstance(choices[0], list):
        choices = choices[0]
    unwrapped = []
    for choice in choices:
        inner = choice
        if isinstance(choice, Mapping):
            inner = choice.get("message") or choice.get("delta")
            if inner is None and isinstance(choice.get("text"), str) and "role" not in choice:
                inner = {"role": "assistant", "content": choice["text"]}
            if inner is None and isinstance(choice.get("content"), Mapping):
                inner = choice["content"]
        if inner is None:
            return value
        unwrapped.append(inner)
    return unwrapped or value


def _message(value: object, role: str) -> Message | None:
    """Return the message that a value is; None where it is none."""
    if isinstance(value, list) and len(value) == 2:
        speaker = _PAIRS.get(as_text(value[0]) or "")
        return {"role": speaker, "content": value[1]} if speaker else None
    if not isinstance(value, Mapping):
        return None
    if value.get("type") == "message" and "role" not in value and "content" in value and role:
        return {**value, "role": role}
    if isinstance(calls := value.get("toolCalls"), list) and "tool_calls" not in value:
        content = first_in(value, "content", "text")
        return {"role": role, "content": content or "", **value, "tool_calls": calls}
    return value if is_message(value) else None


_WRITTEN_CALLS: Final = re.compile(r'\[\s*\{\s*"(?:function|toolCallId|toolName|id|type)"')
_DEFINITION_FIELDS: Final = frozenset({"parameters", "description"})


def repaired_messages(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return messages with calls and results made such that a tracer wrote otherwise.

    - Koog and Vercel's AI SDK write calls as JSON text of an answer.
    - Langfuse's handler for LangChain adds the definitions of tools as messages of a tool, and
      gives a result the name of its tool as role.
    """
    result: list[Message] = []
    called: set[str] = set()
    for message in messages:
        role = message.get("role")
        content = message.get("content")
        if role == "tool" and _is_definition(content):
            continue
        if isinstance(content, str) and _WRITTEN_CALLS.match(content):
            message = _with_written_calls(message, content)
        elif role in called and role_of(str(role)) is None:
            message = {**message, "role": "tool", "name": role}
        called.update(name for name, _arguments in tool_calls(message))
        result.append(message)
    return tuple(result)


def _with_written_calls(message: Message, content: str) -> Message:
    calls = [fields_of(call) for call in items_of(json_in(content))]
    if not calls or not all(_is_call(call) for call in calls):
        return message
    return {**message, "role": "assistant", "content": "", "tool_calls": calls}


def _is_call(value: Fields) -> bool:
    function = fields_of(value.get("function"))
    if as_text(function.get("name")) and "arguments" in function:
        return True
    return bool(as_text(value.get("toolName")) and as_text(value.get("toolCallId")))


def _is_definition(content: object) -> bool:
    if isinstance(content, str) and '"function"' not in content[:100]:
        return False
    fields = fields_of(json_in(content))
    function = fields_of(fields.get("function"))
    return (
        fields.get("type") == "function"
        and "arguments" not in function
        and not _DEFINITION_FIELDS.isdisjoint(function)
    )


def tool_calls(message: Fields) -> Iterator[tuple[str, object]]:
    """Yield the names of the tools that a message calls, with their arguments."""
    extras = fields_of(message.get("additional_kwargs"))
    calls = (
        *items_of(message.get("tool_calls")),
        *items_of(extras.get("tool_calls")),
        *items_of(message.get("content")),
        *items_of(message.get("parts")),
        message,
    )
    for call in map(fields_of, calls):
        function = first_in(call, "function", "function_call", "functionCall", "toolUse")
        asked = function if isinstance(function, Mapping) else call
        name = as_text(first_in(asked, "name", "toolName"))
        if name is not None and "role" not in call:
            yield name, first_in(asked, "arguments", "args", "input")


def tool_message(value: object) -> Message | None:
    """Return the fields of the tool's message that ``value`` is, or that wraps it; else None."""
    for _ in range(_MOST_WRAPPERS):
        if isinstance(value, Mapping) and len(value) == 1 and "output" in value:
            value = value["output"]
        elif isinstance(value, list) and len(value) == 1:
            value = value[0]
        else:
            break
    if not isinstance(value, Mapping) or not is_message(value):
        return None
    unwrapped = unwrap_langchain(value)
    if unwrapped is not None:
        return unwrapped[1] if unwrapped[0].role is Role.TOOL else None
    return value if value.get("role") == "tool" else None


class ToolOutput(NamedTuple):
    """The output of a tool, with the id of its call and its status where the source has them."""

    output: object
    call_id: str | None = None
    status: SpanStatus = SpanStatus.UNKNOWN


_GOOGLE_RESPONSE: Final = {"id", "name", "response"}
_STATUS: Final = {"error": SpanStatus.ERROR, "success": SpanStatus.OK}
_WRITTEN_MESSAGE: Final = re.compile(
    r"content=(?P<content>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\").*?"
    r"tool_call_id='(?P<id>[^']*)'",
    re.DOTALL,
)


def tool_output(value: object) -> ToolOutput:
    """Return a tool's output without the message or the object that a framework puts around it."""
    parsed = value_in(value)
    message = tool_message(parsed)
    fields = fields_of(parsed)
    if message is not None:
        status = _STATUS.get(str(message.get("status")), SpanStatus.UNKNOWN)
        text = content_text(message.get("content"))
        return ToolOutput(text, as_text(message.get("tool_call_id")), status)
    if fields.keys() == _GOOGLE_RESPONSE:
        return ToolOutput(fields["response"], as_text(fields["id"]))
    inner = fields["output"] if fields.keys() == {"output"} else value
    written = _WRITTEN_MESSAGE.match(inner) if isinstance(inner, str) else None
    if written is not None:
        content = read_literal(written["content"])
        text = content if isinstance(content, str) else written["content"]
        return ToolOutput(text, written["id"])
    held = fields_of(inner)
    held = fields_of(held.get("kwargs")) or held
    if call_id := as_text(held.get("tool_call_id")):
        return ToolOutput(content_text(held.get("content")), call_id)
    return ToolOutput(inner)


def worse_status(first: SpanStatus, second: SpanStatus) -> SpanStatus:
    """Return error if one of two statuses is an error, else the one that is known.

    Args:
        first: The status that counts where both are known.
        second: Another one of the same call.
    """
    if SpanStatus.ERROR in (first, second):
        return SpanStatus.ERROR
    return second if first is SpanStatus.UNKNOWN else first
