"""Every shape that a message comes in, tried one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mast_tui.traces.readers.chat import autogen, items, langchain, parts
from mast_tui.traces.readers.chat.chat import chat_pieces
from mast_tui.traces.readers.chat.fields import Fields, kind_of, model_of, start_of, usage_of
from mast_tui.traces.readers.chat.pieces import Piece, Turn, noted
from mast_tui.traces.readers.chat.speakers import speaker_of

BARE = frozenset({"role", "content"})
"""Many messages have nothing else, so that nothing else need be looked for in them."""

_SAID_IN: tuple[str, ...] = ("content", "tool_calls", "function_call", "text", "parts")


def is_message(value: object) -> bool:
    """Whether a JSON value has the shape of a chat message or a response item."""
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("role"), str):
        return any(field in value for field in _SAID_IN)
    if isinstance(value.get("from"), str) and "value" in value:
        return True
    return (
        items.is_item(value)
        or autogen.is_autogen(value)
        or parts.is_parts_message(value)
        or parts.is_event(value)
        or (langchain.unwrap(value) is not None and not _is_session_line(value))
    )


def turn_of(message: Fields, by_name: bool = False) -> Turn:
    """A message of any shape taken apart; what has none is kept as a log."""
    start, tokens, model = None, None, None
    if not message.keys() <= BARE:
        start, tokens, model = start_of(message), usage_of(message), model_of(message)
    found: Iterable[Piece]
    if isinstance(message.get("role"), str):
        chat = not parts.is_parts_message(message)
        found = _chat(message, by_name) if chat else parts.parts_pieces(message)
    elif not autogen.is_autogen(message) and (unwrapped := langchain.unwrap(message)) is not None:
        speaker, fields, inner = unwrapped
        found = chat_pieces(fields, speaker, inner)
        start = start if start is not None else start_of(fields)
        tokens, model = usage_of(fields), model_of(fields)
    elif items.is_item(message):
        found = items.item_pieces(message)
    elif autogen.is_autogen(message):
        found = autogen.autogen_pieces(message)
    elif parts.is_parts_message(message):
        found = parts.pydantic_pieces(message)
    elif parts.is_event(message):
        found = parts.event_pieces(message)
    else:
        found = _chat(message, by_name)
    return Turn(tuple(found), start, tokens, model)


def _chat(message: Fields, by_name: bool) -> Iterable[Piece]:
    speaker = speaker_of(message, by_name)
    return [noted(message)] if speaker is None else chat_pieces(message, speaker)


def _is_session_line(value: Fields) -> bool:
    """Whether an object is a line of a coding agent's own log rather than a message."""
    return kind_of(value) == "system" and bool({"sessionId", "session_id", "uuid"} & value.keys())
