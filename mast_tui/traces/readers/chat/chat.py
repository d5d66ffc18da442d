"""Chat messages with ``role`` and ``content``: OpenAI's, Anthropic's, and what is spelt like them.

ShareGPT's ``from`` and ``value`` belong here too, and LangChain's messages once they are
unwrapped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_values import InvalidJSON, as_text, content_text, load_json
from mast_tui.traces.model import Role, SpanKind, SpanStatus
from mast_tui.traces.readers.chat.fields import (
    Fields,
    fields_of,
    kind_of,
)
from mast_tui.traces.readers.chat.pieces import (
    Piece,
    call_piece,
    result_of_block,
    result_piece,
    said,
)
from mast_tui.traces.readers.chat.speakers import THE_MODEL, Speaker
from mast_tui.traces.readers.chat.text import said_text, thought_text

_CALL_BLOCKS: Final = frozenset(
    {
        "tool_use",
        "tool-call",
        "tool_call",
        "server_tool_use",
        "server_tool_call",
        "mcp_tool_use",
        "function_call",
        "input_json_delta",
    }
)
_RESULT_BLOCKS: Final = frozenset(
    {"tool_result", "tool-result", "tool_call_response", "server_tool_result"}
)
_THINKING_BLOCKS: Final = frozenset({"thinking", "reasoning", "redacted_thinking"})
_REASONING_FIELDS: Final = (
    "reasoning_content",
    "reasoning",
    "thinking",
    "thinking_blocks",
    "reasoning_details",
)
_SHAREGPT_CALLS: Final = ("function_call", "tool_call")


def chat_pieces(message: Fields, speaker: Speaker, inner: str = "") -> Iterator[Piece]:
    """The thoughts, texts, calls and results of a chat message, in the order they are read in.

    ``inner`` is the pointer from the message to the object that holds its fields. A message that
    says nothing is one empty piece.
    """
    content = (
        message.get("value") if isinstance(message.get("from"), str) else message.get("content")
    )
    if content is None:
        content = message.get("text")
    if message.get("from") in _SHAREGPT_CALLS:
        yield from _spoken_calls(content, inner)
        return
    if speaker.role is Role.TOOL and not _has_blocks(content, is_result_block):
        yield result_piece(message, content, "")
        return
    count = 0
    called: set[str] = set()
    for piece in _parts(message, content, speaker, inner):
        count += 1
        if piece.kind is SpanKind.TOOL_CALL and piece.call_id is not None:
            called.add(piece.call_id)
        yield piece
    audio = fields_of(message.get("audio"))
    for field, text in (("refusal", message.get("refusal")), ("audio", audio.get("transcript"))):
        if spoken := as_text(text):
            yield said(speaker.role, speaker.agent, spoken, f"{inner}/{field}" if count else "")
            count += 1
    for piece in _calls(message, speaker, inner):
        if piece.call_id is None or piece.call_id not in called:
            count += 1
            yield piece
    if not count:
        yield said(speaker.role, speaker.agent, "[audio]" if audio else "", kind=speaker.kind)


def is_call_block(kind: str) -> bool:
    """Whether a content block of this type asks for a tool."""
    return kind in _CALL_BLOCKS


def is_result_block(kind: str) -> bool:
    """Whether a content block of this type is what a tool gave back."""
    return kind in _RESULT_BLOCKS or kind.endswith("_tool_result")


def is_thinking_block(kind: str) -> bool:
    """Whether a content block of this type is reasoning."""
    return kind in _THINKING_BLOCKS


def block_piece(block: Fields, at: str, agent: str, role: Role = Role.AGENT) -> Piece | None:
    """The call, the result or the thought that a block is; None for one that is part of a text."""
    kind = kind_of(block)
    if is_call_block(kind):
        return call_piece(block, at, agent)
    if is_result_block(kind):
        return result_of_block(block, at)
    if is_thinking_block(kind):
        return said(role, agent, thought_text(block), at, kind=SpanKind.REASONING)
    return None


def _parts(message: Fields, content: object, speaker: Speaker, inner: str) -> Iterator[Piece]:
    """What was thought and said, and the blocks of the content."""
    extras = fields_of(message.get("additional_kwargs"))
    thought = False
    for holder, at in ((message, inner), (extras, f"{inner}/additional_kwargs")):
        for field in _REASONING_FIELDS:
            value = holder.get(field)
            if value is None or thought:
                continue
            if isinstance(value, str | list | Mapping):
                text = thought_text(value)
                if thought := bool(text):
                    yield _thought(speaker, text, f"{at}/{field}")
    yield from _content(content, speaker, inner, repeated=thought)


def _content(content: object, speaker: Speaker, inner: str, *, repeated: bool) -> Iterator[Piece]:
    """The content's pieces; its thoughts are left out where they were ``repeated`` beside it."""
    if not isinstance(content, list) or not _has_blocks(content, _is_special):
        if text := said_text(content):
            yield said(speaker.role, speaker.agent, text, kind=speaker.kind)
        return
    texts: list[object] = []
    text_at = ""
    for number, block in enumerate([*content, None]):
        if block is not None and not _is_special(kind_of(block)):
            texts.append(block)
            continue
        if text := said_text(texts):
            yield said(speaker.role, speaker.agent, text, text_at, kind=speaker.kind)
        texts = []
        text_at = f"{inner}/content/{number + 1}"
        if not isinstance(block, Mapping) or (repeated and is_thinking_block(kind_of(block))):
            continue
        piece = block_piece(block, f"{inner}/content/{number}", speaker.agent, speaker.role)
        if piece is not None:
            yield piece


def _calls(message: Fields, speaker: Speaker, inner: str) -> Iterator[Piece]:
    """The calls beside the content, in OpenAI's two spellings and LangChain's."""
    extras = fields_of(message.get("additional_kwargs"))
    found = False
    for holder, at in ((message, inner), (extras, f"{inner}/additional_kwargs")):
        if found:
            return  # what follows repeats the calls as the vendor spelt them
        calls = _listed(holder.get("tool_calls"))
        if calls is not None and isinstance(calls, Mapping):
            calls = [calls]
        if isinstance(calls, list):
            for number, call in enumerate(calls):
                found = True
                yield call_piece(call, f"{at}/tool_calls/{number}", speaker.agent)
        legacy = holder.get("function_call")
        if legacy is not None and isinstance(legacy, Mapping):
            found = True
            yield call_piece(legacy, f"{at}/function_call", speaker.agent)
    broken = message.get("invalid_tool_calls")
    if not found and isinstance(broken, list):
        for number, call in enumerate(broken):
            piece = call_piece(call, f"{inner}/invalid_tool_calls/{number}", speaker.agent)
            yield replace(piece, status=SpanStatus.ERROR)


def _listed(calls: object) -> object:
    """Calls that a table keeps as a JSON text; anything else as it is."""
    if isinstance(calls, str) and calls.lstrip()[:1] == "[":
        try:
            return load_json(calls)
        except InvalidJSON:
            return [calls]
    return calls


def _spoken_calls(content: object, inner: str) -> Iterator[Piece]:
    """The calls that a turn consists of, written as JSON into its text."""
    value: object = content
    if isinstance(content, str):
        try:
            value = load_json(content)
        except InvalidJSON:
            value = None
    calls = value if isinstance(value, list) else [value]
    if not calls or not all(isinstance(call, Mapping) and "name" in call for call in calls):
        yield Piece(SpanKind.TOOL_CALL, Role.AGENT, THE_MODEL.agent, content_text(content))
        return
    for number, call in enumerate(calls):
        yield call_piece(call, f"{inner}/value/{number}" if number else "", THE_MODEL.agent)


def _thought(speaker: Speaker, text: str, at: str) -> Piece:
    return said(speaker.role, speaker.agent, text, at, kind=SpanKind.REASONING)


def _is_special(kind: str) -> bool:
    return is_call_block(kind) or is_result_block(kind) or is_thinking_block(kind)


def _has_blocks(content: object, wanted: Callable[[str], bool]) -> bool:
    return isinstance(content, list) and any(
        isinstance(block, Mapping) and wanted(kind_of(block)) for block in content
    )
