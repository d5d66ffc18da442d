"""Pieces and turns in the spellings that several formats of sessions share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.chat.pieces import Piece, Speaker, Turn, json_log_piece, log_piece
from mast_tui.traces.readers.chat.turns import turn_of
from mast_tui.traces.readers.json_fields import Fields, kind_of, names
from mast_tui.traces.times import unix_seconds

SYSTEM: Final = Speaker("system", Role.SYSTEM)
USER: Final = Speaker("user", Role.USER)

GEMINI_STATUS: Final[Mapping[str | None, SpanStatus]] = {
    "success": SpanStatus.OK,
    "error": SpanStatus.ERROR,
    "cancelled": SpanStatus.ERROR,
}
"""The statuses of calls in Gemini CLI and in Qwen Code, which is derived from it."""

_USER_TEXT_TAG: Final = re.compile(
    r"<(?P<tag>USER_REQUEST|user_query)>(?P<text>.*?)</(?P=tag)>", re.DOTALL
)
_PROGRAM_TEXT_TAG: Final = re.compile(
    r"<(?P<tag>system-reminder|system-notification|USER_SETTINGS_CHANGE|ADDITIONAL_METADATA"
    r"|user_info|attached_files|git_status|git-context|environment_context)>.*?</(?P=tag)>",
    re.DOTALL,
)
_ENVELOPE_FIELDS: Final = frozenset(
    names("id parentId parentUuid uuid timestamp time ts type sessionId session_id agentId")
)
"""Fields of a record that say nothing about the event."""


def message_turn(
    record: Fields, message: object, *, tokens: Tokens | None = None, model: str | None = None
) -> Turn | None:
    """Return the turn of the chat message in a record.

    Args:
        record: The record; its time replaces the message's own.
        message: A message of any shape that ``chat.turns`` knows.
        tokens: The tokens of the model call, if the message has them in a form of its own.
        model: The model, if the record names it.

    Returns:
        The turn without empty messages; None if ``message`` is no object.
    """
    if not isinstance(message, Mapping):
        return None
    parsed_turn = turn_of(message)
    pieces = tuple(piece for piece in parsed_turn.pieces if not is_empty(piece))
    time = record_time(record)
    return Turn(
        pieces,
        parsed_turn.start if time is None else time,
        parsed_turn.tokens if tokens is None else tokens,
        model or parsed_turn.model,
    )


def is_empty(piece: Piece) -> bool:
    """Return whether a piece is a message or a thought with a blank text."""
    return piece.kind in (SpanKind.MESSAGE, SpanKind.REASONING) and not piece.text.strip()


def record_turn(record: Fields, *pieces: Piece) -> Turn:
    """Return a turn of pieces at the time of a record.

    Args:
        record: The record.
        pieces: The pieces, in their order.
    """
    return Turn(pieces, record_time(record))


def turn_without_empty_pieces(record: Fields, pieces: Iterable[Piece]) -> Turn:
    """Return a turn of pieces, without empty messages and thoughts.

    Args:
        record: The record, whose time the turn has.
        pieces: The pieces, in their order.
    """
    return record_turn(record, *(piece for piece in pieces if not is_empty(piece)))


def unknown_record_turn(record: Fields) -> Turn:
    """Return the turn of a record of an unknown type: a log of its fields."""
    return record_turn(record, json_log_piece(_event_fields(record), name=kind_of(record) or None))


def log_turn(record: Fields, *fields: str, name: str | None = None, failed: bool = False) -> Turn:
    """Return the turn of an event as a log with the event's text, else with its fields.

    Args:
        record: The record.
        fields: The fields in which the text is looked up, in this order.
        name: The name of the event; by default its type.
        failed: Whether the event is an error.
    """
    text = next((text for field in fields if (text := as_text(record.get(field)))), None)
    if text is None:
        event_fields = _event_fields(record)
        text = dump_text(event_fields) if event_fields else kind_of(record)
    return record_turn(record, log_piece(text, name or kind_of(record) or None, failed=failed))


def _event_fields(record: Fields) -> Fields:
    """Return the fields of a record that are specific to its event."""
    return {name: value for name, value in record.items() if name not in _ENVELOPE_FIELDS}


def user_prompt_piece(text: str) -> Piece:
    """Return the piece of a user's message; it is the system's if the program wrote all of it."""
    return (USER if user_text(text) else SYSTEM).piece(text)


def user_text(text: str) -> str:
    """Return the text that the user wrote, without the tagged texts that the program added."""
    tag = _USER_TEXT_TAG.search(text)
    if tag is not None:
        return tag["text"].strip()
    return _PROGRAM_TEXT_TAG.sub("", text).strip()


def record_time(record: Fields) -> float | None:
    """Return the time of a record in Unix seconds; None if it states none."""
    for name in ("timestamp", "time", "ts", "created_at", "created", "createdAt"):
        time = unix_seconds(record.get(name))
        if time is not None:
            return time
    return None


def with_status(pieces: Sequence[Piece], status: SpanStatus | None) -> tuple[Piece, ...]:
    """Return the pieces, with the status set on results of calls.

    Args:
        pieces: The pieces of a record.
        status: The status that the record states beside the result; None changes nothing.
    """
    if status is None:
        return tuple(pieces)
    return tuple(
        replace(piece, status=status) if piece.kind is SpanKind.TOOL_RESULT else piece
        for piece in pieces
    )


def with_speaker(pieces: Sequence[Piece], role: Role, agent: str) -> tuple[Piece, ...]:
    """Return the pieces with another speaker; results of tools are unchanged.

    Args:
        pieces: The pieces of a record.
        role: The role of the speaker.
        agent: The name of the speaker.
    """
    return tuple(
        replace(piece, role=role, agent=agent) if piece.kind is not SpanKind.TOOL_RESULT else piece
        for piece in pieces
    )
