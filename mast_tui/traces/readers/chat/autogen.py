"""AutoGen's messages and events, from version 0.4 on: ``{source, type, content}``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import Role, SpanKind
from mast_tui.traces.readers.chat.fields import Fields, first_in, kind_of, name_in
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    Piece,
    call_piece,
    noted,
    result_piece,
    said,
    status_of_code,
)
from mast_tui.traces.readers.chat.speakers import role_of_name
from mast_tui.traces.readers.chat.text import said_text

_MODEL_MESSAGES: Final = {
    "SystemMessage": Role.SYSTEM,
    "UserMessage": Role.USER,
    "AssistantMessage": Role.AGENT,
    "FunctionExecutionResultMessage": Role.TOOL,
}
"""What an agent keeps as its model's context, in saved states."""

_NOTES: Final = frozenset(
    {
        "MemoryQueryEvent",
        "ModelClientStreamingChunkEvent",
        "SelectSpeakerEvent",
        "SelectorEvent",
        "UserInputRequestedEvent",
    }
)
_KINDS: Final = re.compile(r"(?:Message|Event)(?:\[[^\[\]]*\])?\Z")
_FOREIGN: Final = frozenset({"action", "observation", "args", "extras", "sessionId", "payload"})
_WITHOUT_SOURCE: Final = ("ToolCallRequestEvent", "ToolCallExecutionEvent")
"""What is told apart by its name alone, and saved without its source in places."""

_RESULT_MARKS: Final = frozenset({"call_id", "name", "is_error"})
_CODE_TOOL: Final = "code"


def is_autogen(message: Fields) -> bool:
    """Whether a JSON object is a message or an event of AutoGen's."""
    kind = kind_of(message)
    if kind in _MODEL_MESSAGES or kind in _WITHOUT_SOURCE:
        return "content" in message
    if not kind or not isinstance(message.get("source"), str) or _FOREIGN & message.keys():
        return False
    if not _KINDS.search(kind) and "models_usage" not in message:
        return False
    return "content" in message or kind in ("CodeExecutionEvent", *_NOTES)


def autogen_pieces(message: Fields) -> Iterator[Piece]:
    """The pieces of a message or an event."""
    kind = kind_of(message)
    content = message.get("content")
    agent = name_in(message, "source") or _MODEL_MESSAGES.get(kind, Role.AGENT).value
    if agent == Role.AGENT.value:
        agent = ASSISTANT
    role = _MODEL_MESSAGES.get(kind) or role_of_name(agent)
    if thought := as_text(message.get("thought")):
        yield said(role, agent, thought, "/thought", kind=SpanKind.REASONING)
    if kind in _NOTES:
        yield noted(content if content is not None else message, name=kind)
    elif kind == "CodeExecutionEvent":
        result = message.get("result")
        ran = result if isinstance(result, Mapping) else {}
        yield result_piece(
            message,
            first_in(ran, "output"),
            "",
            name=_CODE_TOOL,
            status=status_of_code(ran.get("exit_code")),
        )
    elif isinstance(content, list) and content and all(map(_is_call, content)):
        for number, call in enumerate(content):
            yield call_piece(call, f"/content/{number}", agent)
    elif isinstance(content, list) and content and all(map(_is_result, content)):
        for number, result in enumerate(content):
            yield result_piece(result, result.get("content"), f"/content/{number}")
    else:
        thinks = kind == "ThoughtEvent"
        text = said_text(content) if isinstance(content, str | list) else dump_text(content)
        yield said(role, agent, text, kind=SpanKind.REASONING if thinks else SpanKind.MESSAGE)


def _is_call(value: object) -> bool:
    return isinstance(value, Mapping) and "name" in value and "arguments" in value


def _is_result(value: object) -> bool:
    return isinstance(value, Mapping) and "content" in value and not _RESULT_MARKS.isdisjoint(value)
