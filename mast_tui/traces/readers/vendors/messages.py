"""The chat messages in what a model call took in and gave out, whatever wraps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from mast_tui.traces.io.json_values import InvalidJSON, as_text, dump_text, load_json
from mast_tui.traces.model import Role
from mast_tui.traces.readers.chat.pieces import is_message, unwrap_langchain
from mast_tui.traces.readers.span_tree.builder import Message

_MOST_WRAPPERS: Final = 5
_ASKED: Final = ("messages", "input", "inputs", "prompts", "prompt", "contents", "request", "text")
_ANSWERED: Final = ("message", "messages", "output", "outputs", "response", "text", "content")
_SYSTEM: Final = ("system", "instructions", "system_prompt")
_PAIRS: Final = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "system": "system",
}
"""The roles in messages that are written as pairs of role and text."""


def asked_in(value: object) -> tuple[Message, ...]:
    """The messages that a model was given: a whole chat, or one text; empty where nothing is."""
    if found := _messages(value, _ASKED, "user"):
        return found
    return _one(value, "user")


def answered_in(value: object) -> tuple[Message, ...]:
    """What a model answered, in any of the shapes that clients keep; empty where nothing is."""
    if found := _messages(_without_choices(value), _ANSWERED, "assistant"):
        return found
    return _one(value, "assistant")


def tool_message(value: object) -> Message | None:
    """The fields of the tool's message that ``value`` is, or that wraps it; None for others."""
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


def json_in(value: object) -> object:
    """What a text that is JSON stands for; any other value as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return load_json(value)
    except InvalidJSON:
        return value


def has_answer(value: object) -> bool:
    """Whether a value has the shape of what a model's client returns."""
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("choices"), list) or isinstance(value.get("generations"), list):
        return True
    return value.get("object") == "response" or (
        value.get("type") == "message" and value.get("role") == "assistant"
    )


def _messages(value: object, wrappers: Sequence[str], role: str) -> tuple[Message, ...]:
    """The messages in a list, in a list of lists, or under one of the fields ``wrappers``."""
    system: tuple[Message, ...] = ()
    for _ in range(_MOST_WRAPPERS):
        value = json_in(value)
        if isinstance(value, list):
            if len(value) == 1 and isinstance(value[0], list) and _message(value[0], role) is None:
                value = value[0]
                continue
            found = [_message(item, role) for item in value]
            told = [message for message in found if message is not None]
            return (*system, *told) if told and 2 * len(told) >= len(found) else ()
        if (message := _message(value, role)) is not None:
            return (*system, message)
        if not isinstance(value, Mapping):
            return ()
        for field in _SYSTEM:
            if not system and isinstance(value.get(field), str | list) and value[field]:
                system = ({"role": "system", "content": value[field]},)
        value = next((value[field] for field in wrappers if _holds(value.get(field))), None)
        if isinstance(value, str) and (text := _one(value, role)) and not _is_json(value):
            return (*system, *text)
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return (*system, *({"role": role, "content": item} for item in value))
    return ()


def _holds(value: object) -> bool:
    return isinstance(value, str | list | Mapping) and bool(value)


def _is_json(text: str) -> bool:
    return not isinstance(json_in(text), str)


def _one(value: object, role: str) -> tuple[Message, ...]:
    """One message that says all of a value."""
    text = dump_text(value)
    return ({"role": role, "content": text},) if text.strip() else ()


def _without_choices(value: object) -> object:
    """The messages that a client wraps in ``choices`` or ``generations``, else the value."""
    value = json_in(value)
    choices = value
    if isinstance(value, Mapping):
        choices = next(
            (
                value[field]
                for field in ("choices", "generations")
                if isinstance(value.get(field), list)
            ),
            None,
        )
    if not isinstance(choices, list):
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
        if inner is None:
            return value
        unwrapped.append(inner)
    return unwrapped or value


def _message(value: object, role: str) -> Message | None:
    """The message that a value is; None where it is none."""
    if isinstance(value, list) and len(value) == 2:
        said = as_text(value[0])
        if said not in _PAIRS:
            return None
        return {"role": _PAIRS[said], "content": value[1]}
    if not isinstance(value, Mapping):
        return None
    if value.get("type") == "message" and "role" not in value and "content" in value and role:
        return {**value, "role": role}
    return value if is_message(value) else None
