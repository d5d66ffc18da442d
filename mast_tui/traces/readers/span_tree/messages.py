"""The chat messages in the input and output of a model, as clients and tracers wrap them.

This module finds messages under the field names of clients, and repairs messages in a tracer's own
form. ``MessageMapper`` then reads the messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from mast_tui.traces.io.json_values import as_text, content_text, dump_text, read_literal
from mast_tui.traces.model import Role, SpanStatus
from mast_tui.traces.readers.chat.pieces import role_of
from mast_tui.traces.readers.chat.turns import is_message, langchain_message
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
from mast_tui.traces.result_status import status_of_word

_MAX_WRAPPERS: Final = 5
_REQUEST_FIELDS: Final = names("""
    messages input inputs prompts prompt contents request text args kwargs
""")
_ANSWER_FIELDS: Final = names("message messages output outputs response text content")
_PROMPT_FIELDS: Final = names("""
    system instructions system_prompt system_instruction systemInstruction system_instructions
""")
_ROLES_OF_PAIRS: Final = {"human": "user", "ai": "assistant"} | {
    role: role for role in ("user", "assistant", "system")
}
"""The roles in messages that are pairs of role and text."""

_LOST_MESSAGE: Final = {"content": "role"}
"""The text that LangSmith's OTel exporter writes in place of a message: a pair of its keys."""

_NONE_TEXT: Final = "None"
"""The text of an answer that only calls tools, if an integration writes messages as text."""


def request_messages(value: object) -> tuple[Message, ...]:
    """Return the messages of a request with roles, its system prompt first."""
    structured_messages, _plain_messages = _structured_or_plain_messages(
        value, _REQUEST_FIELDS, "user"
    )
    return structured_messages


def request_text(value: object) -> tuple[Message, ...]:
    """Return a request without roles as messages of the user, one for each text."""
    _structured_messages, plain_messages = _structured_or_plain_messages(
        value, _REQUEST_FIELDS, "user"
    )
    return plain_messages or _message_with_text(value, "user")


def answer_messages(value: object) -> tuple[Message, ...]:
    """Return the messages of an answer; a value without messages becomes one message."""
    answer = _without_choices(value)
    structured_messages, plain_messages = _structured_or_plain_messages(
        answer, _ANSWER_FIELDS, "assistant"
    )
    return (
        structured_messages
        or plain_messages
        or repaired_messages(_message_with_text(value, "assistant"))
    )


def structured_answer(value: object) -> tuple[Message, ...]:
    """Return those messages of an answer that have roles; empty for plain text."""
    answer = _without_choices(value)
    structured_messages, _plain_messages = _structured_or_plain_messages(
        answer, _ANSWER_FIELDS, "assistant"
    )
    return structured_messages


def last_answer(value: object) -> tuple[Message, ...]:
    """Return the last message of a conversation in a run's output; empty for any other output."""
    return structured_answer(value)[-1:]


def without_lost_messages(request: object, answer: object) -> tuple[object, object]:
    """Return a request and an answer, with None in place of a message that the tracer lost.

    Args:
        request: The input of the model.
        answer: The output of the model.
    """
    is_plain_request = isinstance(request, str) and json_in(request) is None
    # Some tracers write "None" for an answer that only calls tools. LangSmith's exporter may write
    # the keys of a message in place of the message.
    is_none_text = is_plain_request and answer == _NONE_TEXT
    is_answer_lost = is_none_text or value_in(answer) == _LOST_MESSAGE
    is_request_lost = value_in(request) == _LOST_MESSAGE
    return (None if is_request_lost else request), (None if is_answer_lost else answer)


def is_system(message: Message) -> bool:
    """Return whether a message is a system prompt."""
    role = message.get("role")
    return isinstance(role, str) and role_of(role) is Role.SYSTEM


def has_answer(value: object) -> bool:
    """Return whether a value has the shape of a model's response, as a client receives it."""
    fields = fields_of(value)
    has_choices = any(isinstance(fields.get(name), list) for name in ("choices", "generations"))
    is_message = fields.get("type") == "message" and fields.get("role") == "assistant"
    return has_choices or is_message or fields.get("object") == "response"


def instructions_in(value: object) -> object:
    """Return the system prompt beside the messages of a request or response: a text or parts."""
    fields = fields_of(value_in(value))
    for record in (fields, fields_of(fields.get("config"))):
        for name in _PROMPT_FIELDS:
            prompt = value_in(record.get(name))
            if isinstance(prompt, Mapping):
                prompt = first_in(prompt, "parts", "content", "text")
            if prompt and isinstance(prompt, str | list):
                return prompt
    return None


def system_text(value: object) -> str | None:
    """Return the system prompt in an agent's input, beside the messages or as the first message."""
    prompt = instructions_in(value)
    if prompt is not None:
        return as_text(content_text(prompt))
    parsed = value_in(value)
    messages = items_of(parsed.get("messages") if isinstance(parsed, Mapping) else parsed)
    first_message = fields_of(messages[0] if messages else None)
    if not is_system(first_message):
        return None
    return as_text(content_text(first_in(first_message, "content", "parts")))


def _structured_or_plain_messages(
    value: object, wrapper_fields: Sequence[str], role: str
) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Return the messages with roles, and texts without roles as messages of ``role``.

    One of the two is empty. They are the value itself, or in one of its ``wrapper_fields``.
    """
    system: tuple[Message, ...] = ()
    for _wrapper in range(_MAX_WRAPPERS):
        value = value_in(value)
        if isinstance(value, list):
            # A list of one list may be a batch. But a list of role and text is a message.
            is_nested = len(value) == 1 and isinstance(value[0], list)
            if is_nested and _message_of(value[0], role) is None:
                value = value[0]
                continue
            messages = [
                message for item in value if (message := _message_of(item, role)) is not None
            ]
            if messages and 2 * len(messages) >= len(value):  # at least half of the items
                return (*system, *repaired_messages(messages)), ()
            return (), ()
        if (message := _message_of(value, role)) is not None:
            return (*system, *repaired_messages([message])), ()
        if not isinstance(value, Mapping):
            return (), ()

        # Unwrap the value: read its system prompt, then its first usable field.
        if role == "user" and not system and (instructions := instructions_in(value)) is not None:
            system = ({"role": "system", "content": instructions},)
        wrapped_values = (wrapped for field in wrapper_fields if (wrapped := value.get(field)))
        value = next(
            (wrapped for wrapped in wrapped_values if isinstance(wrapped, str | list | Mapping)),
            None,
        )
        if isinstance(value, str) and value.strip() and json_in(value) is None:
            return (), (*system, *_message_with_text(value, role))
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return (), (*system, *({"role": role, "content": item} for item in value))
    return (), ()


def _message_with_text(value: object, role: str) -> tuple[Message, ...]:
    """Return the whole value as the text of one message; empty for a blank text."""
    text = dump_text(value)
    return ({"role": role, "content": text},) if text.strip() else ()


def _without_choices(value: object) -> object:
    """Return the messages in the choices of a response as a list, or else the value unchanged."""
    value = value_in(value)
    candidates = (value, *map(fields_of(value).get, ("choices", "generations", "candidates")))
    choices = next((candidate for candidate in candidates if isinstance(candidate, list)), None)
    if choices is None:
        return value
    if len(choices) == 1 and isinstance(choices[0], list):
        choices = choices[0]
    messages = []
    for choice in choices:
        message = choice
        if isinstance(choice, Mapping):
            message = choice.get("message") or choice.get("delta")
            is_completed_text = isinstance(choice.get("text"), str) and "role" not in choice
            if message is None and is_completed_text:
                message = {"role": "assistant", "content": choice["text"]}
            if message is None and isinstance(choice.get("content"), Mapping):
                message = choice["content"]  # in Gemini's candidates
        if message is None:
            return value
        messages.append(message)
    return messages or value


def _message_of(value: object, role: str) -> Message | None:
    """Return a value as a message, with ``role`` as the default role; None if it is no message."""
    if isinstance(value, list) and len(value) == 2:
        role_name, content = value
        pair_role = _ROLES_OF_PAIRS.get(as_text(role_name) or "")
        return {"role": pair_role, "content": content} if pair_role else None
    if not isinstance(value, Mapping):
        return None
    if value.get("type") == "message" and "role" not in value and "content" in value:
        return {**value, "role": role}
    calls = first_in(value, "tool_calls", "toolCalls")
    if isinstance(calls, list) and not ("tool_calls" in value and is_message(value)):
        content = first_in(value, "content", "text", "message")
        return {"role": role, "content": content or "", **value, "tool_calls": calls}
    return value if is_message(value) else None


_CALLS_AS_TEXT: Final = re.compile(r'\[\s*\{\s*"(?:function|toolCallId|toolName|id|type)"')
_DEFINITION_FIELDS: Final = frozenset({"parameters", "description"})
_DEFINITION_HEAD: Final = 100
"""The number of first characters that show whether JSON is a definition."""


def repaired_messages(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return messages in the usual form, where a tracer wrote them in a form of its own.

    - Koog and Vercel's AI SDK write the calls of an answer as JSON in its text. They become tool
      calls.
    - Langfuse's handler for LangChain writes definitions of tools as messages of the role ``tool``.
      They are left out. It also writes the tool's name as the role of a result.
    """
    repaired: list[Message] = []
    called_tools: set[str] = set()
    for message in messages:
        role = message.get("role")
        content = message.get("content")
        if role == "tool" and _is_tool_definition(content):
            continue
        if isinstance(content, str) and _CALLS_AS_TEXT.match(content):
            message = _with_calls_read_from_text(message, content)
        elif as_text(role) in called_tools and role_of(str(role)) is None:
            message = {**message, "role": "tool", "name": role}
        called_tools.update(name for name, _arguments in tool_calls(message))
        repaired.append(message)
    return tuple(repaired)


def _with_calls_read_from_text(message: Message, content: str) -> Message:
    """Return a message with the tool calls in its JSON text; unchanged if the text has none."""
    calls = [fields_of(call) for call in items_of(json_in(content))]
    if not calls or not all(_is_call(call) for call in calls):
        return message
    return {**message, "role": "assistant", "content": "", "tool_calls": calls}


def _is_call(value: Fields) -> bool:
    function = fields_of(value.get("function"))
    if as_text(function.get("name")) and "arguments" in function:
        return True
    return bool(as_text(value.get("toolName")) and as_text(value.get("toolCallId")))


def _is_tool_definition(content: object) -> bool:
    """Return whether the content of a message is the definition of a tool, not a call."""
    # This test of the first characters saves the slow parsing of most long texts.
    if isinstance(content, str) and '"function"' not in content[:_DEFINITION_HEAD]:
        return False
    fields = fields_of(json_in(content))
    function = fields_of(fields.get("function"))
    return (
        fields.get("type") == "function"
        and "arguments" not in function
        and not _DEFINITION_FIELDS.isdisjoint(function)
    )


def tool_calls(message: Fields) -> Iterator[tuple[str, object]]:
    """Yield the name and the arguments of each tool call in a message of any vendor."""
    additional_fields = fields_of(message.get("additional_kwargs"))
    candidates = (
        *items_of(message.get("tool_calls")),
        *items_of(additional_fields.get("tool_calls")),
        *items_of(message.get("content")),
        *items_of(message.get("parts")),
        message,
    )
    for call in map(fields_of, candidates):
        function = first_in(call, "function", "function_call", "functionCall", "toolUse")
        call_fields = function if isinstance(function, Mapping) else call
        name = as_text(first_in(call_fields, "name", "toolName"))
        is_message_with_name = "role" in call
        if name is not None and not is_message_with_name:
            yield name, first_in(call_fields, "arguments", "args", "input")


def tool_message(value: object) -> Message | None:
    """Return the message of a tool in a value, without wrappers."""
    for _wrapper in range(_MAX_WRAPPERS):
        if isinstance(value, Mapping) and len(value) == 1 and "output" in value:
            value = value["output"]
        elif isinstance(value, list) and len(value) == 1:
            value = value[0]
        else:
            break
    if not isinstance(value, Mapping) or not is_message(value):
        return None
    unwrapped = langchain_message(value)
    if unwrapped is not None:
        speaker, message, _pointer = unwrapped
        return message if speaker.role is Role.TOOL else None
    return value if value.get("role") == "tool" else None


class ToolOutput(NamedTuple):
    """The output of a tool, with the id of its call and its status if the source has them."""

    output: object
    call_id: str | None = None
    status: SpanStatus = SpanStatus.UNKNOWN


_GOOGLE_RESPONSE_FIELDS: Final = {"id", "name", "response"}
_MESSAGE_AS_TEXT: Final = re.compile(
    r"content=(?P<content>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\").*?"
    r"tool_call_id='(?P<id>[^']*)'",
    re.DOTALL,
)


def tool_output(value: object) -> ToolOutput:
    """Return a tool's output without the message or object in which a framework wraps it."""
    parsed = value_in(value)
    message = tool_message(parsed)
    fields = fields_of(parsed)
    if message is not None:
        text = content_text(message.get("content"))
        status = status_of_word(message.get("status"))
        return ToolOutput(text, as_text(message.get("tool_call_id")), status)
    if fields.keys() == _GOOGLE_RESPONSE_FIELDS:
        return ToolOutput(fields["response"], as_text(fields["id"]))

    output = fields["output"] if fields.keys() == {"output"} else value
    # LangChain's message as Python prints it: content='…' … tool_call_id='…'
    printed_message = _MESSAGE_AS_TEXT.match(output) if isinstance(output, str) else None
    if printed_message is not None:
        literal = printed_message["content"]
        content = read_literal(literal)
        return ToolOutput(content if isinstance(content, str) else literal, printed_message["id"])
    # LangChain's message as JSON: the fields are in ``kwargs``, in NeMo Relay in ``data``.
    output_fields = fields_of(output)
    output_fields = fields_of(first_in(output_fields, "kwargs", "data")) or output_fields
    if call_id := as_text(output_fields.get("tool_call_id")):
        return ToolOutput(content_text(output_fields.get("content")), call_id)
    return ToolOutput(output)
