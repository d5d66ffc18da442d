"""A message of any client or framework, taken apart into pieces.

Known are chat messages with ``role`` and ``content`` (OpenAI's, Anthropic's, Bedrock's, and what is
spelt like them), ShareGPT's ``from`` and ``value``, OpenAI's response items, messages made of
``parts`` (Gemini's, OpenTelemetry's, Vercel's, A2A's, Pydantic AI's), events of Google's ADK, and
the messages of LangChain and AutoGen. ``parts`` knows the parts of their contents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text, dump_text
from mast_tui.traces.model import Role, SpanKind, SpanStatus
from mast_tui.traces.readers.chat.parts import content_pieces, holds_results, ui_tool_pieces
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    THE_MODEL,
    Piece,
    Speaker,
    Turn,
    call_piece,
    json_log_piece,
    result_piece,
    role_of,
    role_of_name,
    speaker_of,
)
from mast_tui.traces.readers.chat.values import (
    message_text,
    model_of,
    output_text,
    start_of,
    thought_text,
    usage_of,
)
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    items_of,
    json_in,
    kind_of,
    name_in,
    name_set,
    names,
    value_in,
)
from mast_tui.traces.result_status import status_of_code
from mast_tui.traces.times import unix_seconds

BARE = frozenset({"role", "content"})
"""The fields of a plain message, in which nothing else has to be searched for."""

_CONTENT_FIELDS: tuple[str, ...] = ("content", "tool_calls", "function_call", "text", "parts")


def is_message(value: object) -> bool:
    """Return whether a JSON value has the shape of a chat message or a response item."""
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("role"), str):
        return any(field in value for field in _CONTENT_FIELDS)
    if isinstance(value.get("from"), str) and "value" in value:
        return True
    return (
        _is_item(value)
        or _is_autogen(value)
        or _is_parts_message(value)
        or _is_adk_event(value)
        or (unwrap_langchain(value) is not None and not _is_session_line(value))
    )


def turn_of(message: Fields, by_name: bool = False) -> Turn:
    """Take a message of any shape apart; one of an unknown shape becomes a log.

    Args:
        message: A JSON object.
        by_name: Whether ``name`` is the speaker; see ``speaks_by_name``.
    """
    start = None
    tokens = None
    model = None
    if not message.keys() <= BARE:
        start = start_of(message)
        tokens = usage_of(message)
        model = model_of(message)
    pieces: Iterable[Piece]
    if isinstance(message.get("role"), str):
        has_parts = _is_parts_message(message)
        pieces = _parts_pieces(message) if has_parts else _turn_pieces(message, by_name)
    elif not _is_autogen(message) and (unwrapped := unwrap_langchain(message)) is not None:
        speaker, fields, inner = unwrapped
        pieces = chat_pieces(fields, speaker, inner)
        if fields is not message:
            start = start_of(fields) if start is None else start
            tokens = usage_of(fields)
            model = model_of(fields)
    elif _is_item(message):
        pieces = _item_pieces(message)
    elif _is_autogen(message):
        pieces = _autogen_pieces(message)
    elif _is_parts_message(message):
        pieces = _pydantic_pieces(message)
    elif _is_adk_event(message):
        pieces = _adk_pieces(message)
    else:
        pieces = _turn_pieces(message, by_name)
    return Turn(tuple(pieces), start, tokens, model)


def _turn_pieces(message: Fields, by_name: bool) -> Iterable[Piece]:
    speaker = speaker_of(message, by_name)
    return [json_log_piece(message)] if speaker is None else chat_pieces(message, speaker)


def _is_session_line(value: Fields) -> bool:
    """Return whether an object is a line of a coding agent's own log rather than a message."""
    return kind_of(value) == "system" and bool({"sessionId", "session_id", "uuid"} & value.keys())


_REASONING_FIELDS: Final = names(
    "reasoning_content reasoning thinking thinking_blocks reasoning_details"
)
_SHAREGPT_CALLS: Final = ("function_call", "tool_call")


def chat_pieces(message: Fields, speaker: Speaker, inner: str = "") -> Sequence[Piece]:
    """Return the thoughts, texts, calls and results of a chat message in reading order.

    Args:
        message: The object that holds the fields of the message.
        speaker: The speaker.
        inner: The pointer from the message to that object.

    Returns:
        The pieces; one empty piece for a message without content.
    """
    content = (
        message.get("value") if isinstance(message.get("from"), str) else message.get("content")
    )
    if content is None:
        content = message.get("text")
    if message.get("from") in _SHAREGPT_CALLS:
        return list(_spoken_calls(content, inner))
    if speaker.role is Role.TOOL and not holds_results(content):
        return [result_piece(message, content, "")]
    pieces = list(_chat_parts(message, content, speaker, inner))
    called = {piece.call_id for piece in pieces if piece.kind is SpanKind.TOOL_CALL}
    audio = fields_of(message.get("audio"))
    for field, text in (("refusal", message.get("refusal")), ("audio", audio.get("transcript"))):
        if spoken := as_text(text):
            pointer = f"{inner}/{field}" if pieces else ""
            pieces.append(speaker.piece(spoken, pointer))
    for piece in _chat_calls(message, speaker, inner):
        if piece.call_id is None or piece.call_id not in called:
            by_user = speaker.role is Role.USER  # as in simulations where users have tools
            pieces.append(replace(piece, role=Role.USER) if by_user else piece)
    nothing = "[audio]" if audio else ""
    return pieces or [speaker.piece(nothing, kind=speaker.kind)]


def _chat_parts(message: Fields, content: object, speaker: Speaker, inner: str) -> Iterator[Piece]:
    """Yield the thoughts beside the content and the pieces of the content."""
    extras = fields_of(message.get("additional_kwargs"))
    thought = False
    for holder, pointer in ((message, inner), (extras, f"{inner}/additional_kwargs")):
        for field in _REASONING_FIELDS:
            value = holder.get(field)
            if value is None or thought:
                continue
            if isinstance(value, str | list | Mapping):
                text = thought_text(value)
                if thought := bool(text):
                    at_field = f"{pointer}/{field}"
                    yield speaker.piece(text, at_field, kind=SpanKind.REASONING)
    yield from content_pieces(content, speaker, f"{inner}/content", without_thoughts=thought)


def _chat_calls(message: Fields, speaker: Speaker, inner: str) -> Iterator[Piece]:
    """Yield the calls beside the content, in OpenAI's two spellings, Vercel's and LangChain's."""
    extras = fields_of(message.get("additional_kwargs"))
    has_calls = False
    for holder, pointer in ((message, inner), (extras, f"{inner}/additional_kwargs")):
        if has_calls:
            return  # what follows repeats the calls as the vendor spelt them
        calls = _parsed_calls(holder.get("tool_calls"))
        if calls is not None and isinstance(calls, Mapping):
            calls = [calls]
        for number, call in enumerate(items_of(calls)):
            has_calls = True
            yield call_piece(call, f"{pointer}/tool_calls/{number}", speaker.agent)
        legacy = holder.get("function_call")
        if legacy is not None and isinstance(legacy, Mapping):
            has_calls = True
            yield call_piece(legacy, f"{pointer}/function_call", speaker.agent)
    if not has_calls:
        for number, invocation in enumerate(items_of(message.get("toolInvocations"))):
            invocation_pointer = f"{inner}/toolInvocations/{number}"
            yield from ui_tool_pieces(fields_of(invocation), invocation_pointer, speaker)
        for number, call in enumerate(items_of(message.get("invalid_tool_calls"))):
            piece = call_piece(call, f"{inner}/invalid_tool_calls/{number}", speaker.agent)
            yield replace(piece, status=SpanStatus.ERROR)


def _parsed_calls(calls: object) -> object:
    """Return the calls in a JSON text, as tables keep them; anything else as it is."""
    if isinstance(calls, str) and calls.lstrip()[:1] == "[":
        return [calls] if (pieces := json_in(calls)) is None else pieces
    return calls


def _spoken_calls(content: object, inner: str) -> Iterator[Piece]:
    """Yield the calls that are written as JSON into the text of a turn."""
    value = json_in(content)
    calls = value if isinstance(value, list) else [value]
    if not calls or not all(isinstance(call, Mapping) and "name" in call for call in calls):
        yield Piece(SpanKind.TOOL_CALL, Role.AGENT, THE_MODEL.agent, content_text(content))
        return
    for number, call in enumerate(calls):
        yield call_piece(call, f"{inner}/value/{number}" if number else "", THE_MODEL.agent)


_ITEM_CALLS: Final = name_set("""
    apply_patch_call code_interpreter_call computer_call custom_tool_call file_search_call
    function_call image_generation_call local_shell_call mcp_call shell_call tool_search_call
    web_search_call
""")
_ITEM_NOTES: Final = frozenset(
    {"mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "compaction"}
)
_OUTPUT_SUFFIX: Final = "_output"
_ITEM_OUTPUTS: Final = ("output", "results", "outputs", "result")
"""The fields with the result in an item that holds a call with its result."""

_ITEM_ARGUMENTS: Final = ("arguments", "input", "action")
_NO_ARGUMENTS: Final = frozenset(
    {"type", "id", "call_id", "name", "status", "error", "container_id", *_ITEM_OUTPUTS}
)


def _is_item(message: Fields) -> bool:
    """Return whether a JSON object is a response item other than a message."""
    kind = kind_of(message)
    if kind == "reasoning":
        return "summary" in message or "encrypted_content" in message
    return kind in _ITEM_NOTES or kind in _ITEM_CALLS or _is_item_output(kind)


def _item_pieces(item: Fields) -> Iterator[Piece]:
    """Yield the piece of a response item, or two where it holds a call with its result."""
    kind = kind_of(item)
    if kind == "reasoning":
        yield THE_MODEL.piece(_item_thought(item), kind=SpanKind.REASONING)
    elif kind in _ITEM_NOTES:
        yield json_log_piece(item, name=kind)
    elif kind in _ITEM_CALLS:
        yield from _item_call(item, kind)
    else:
        output = first_in(item, "output", "tools")
        yield result_piece(item, _listed_output(output), "", status=_shell_status(output))


def _is_item_output(kind: str) -> bool:
    return kind == "tool_search_output" or kind.removesuffix(_OUTPUT_SUFFIX) in _ITEM_CALLS


def _shell_status(output: object) -> SpanStatus:
    """Return how the listed commands of a shell went by their exit codes."""
    overall = SpanStatus.UNKNOWN
    for part in items_of(output):
        outcome = fields_of(fields_of(part).get("outcome"))
        status = status_of_code(outcome.get("exit_code"))
        if status is SpanStatus.ERROR or outcome.get("type") == "timeout":
            return SpanStatus.ERROR
        if status is not SpanStatus.UNKNOWN:
            overall = status
    return overall


def _item_thought(item: Fields) -> str:
    texts = (content_text(item.get("summary")), content_text(item.get("content")))
    return "\n".join(text for text in texts if text) or (
        thought_text(item) if as_text(item.get("encrypted_content")) else ""
    )


def _item_call(item: Fields, kind: str) -> Iterator[Piece]:
    piece = call_piece(item, "", ASSISTANT, name=kind.removesuffix("_call"))
    if not any(item.get(field) is not None for field in _ITEM_ARGUMENTS):
        remaining_fields = {
            name: value for name, value in item.items() if name not in _NO_ARGUMENTS
        }
        if remaining_fields:
            piece = call_piece(
                {**item, "arguments": remaining_fields}, "", ASSISTANT, name=piece.name
            )
    yield piece
    error = item.get("error")
    output = first_in(item, *_ITEM_OUTPUTS)
    if output is None and error is None:
        return
    is_picture = kind == "image_generation_call" and isinstance(output, str)
    yield result_piece(
        item,
        "[image]" if is_picture else _listed_output(error if output is None else output),
        "/output" if output is not None else "/error",
        name=piece.name,
        call_id=piece.call_id,
        status=SpanStatus.UNKNOWN if error is None else SpanStatus.ERROR,
    )


def _listed_output(output: object) -> object:
    """Return the logs and texts that a tool lists as its output."""
    if isinstance(output, list):
        texts = [output_text(fields_of(part).get("logs", part)) for part in output]
        return "\n".join(text for text in texts if text)
    return output


_EVENT_MARKS: Final = ("invocation_id", "invocationId", "actions", "partial", "timestamp")


def _is_parts_message(message: Fields) -> bool:
    """Return whether a JSON object is ``{role, parts}``, or Pydantic AI's ``{kind, parts}``.

    Beside typed parts, as Vercel's AI SDK writes them, ``content`` only repeats their texts.
    """
    parts = message.get("parts")
    if isinstance(parts, str | Mapping) and message.get("content") is None:
        return isinstance(message.get("role"), str)
    if not isinstance(parts, list):
        return False
    if message.get("kind") in ("request", "response"):
        return all(isinstance(part, Mapping) and "part_kind" in part for part in parts)
    if not isinstance(message.get("role"), str):
        return False
    content = message.get("content")
    return content is None or (
        isinstance(content, str) and bool(parts) and all(map(kind_of, parts))
    )


def _is_adk_event(message: Fields) -> bool:
    """Return whether a JSON object is an event of Google's ADK."""
    if name_in(message, "author") is None or "role" in message:
        return False
    content = message.get("content")
    if isinstance(content, Mapping):
        return isinstance(content.get("parts"), list)
    return content is None and sum(mark in message for mark in _EVENT_MARKS) > 1


def _adk_pieces(event: Fields) -> Sequence[Piece]:
    """Return the pieces of an ADK event; none for a part of a text that a later event has whole."""
    if event.get("partial") is True:
        return ()
    author = name_in(event, "author") or ASSISTANT
    content = fields_of(event.get("content"))
    speaker = Speaker(author, role_of_name(author))
    pieces = list(content_pieces(content.get("parts"), speaker, "/content/parts"))
    texts = (
        first_in(event, "error_code", "errorCode"),
        first_in(event, "error_message", "errorMessage"),
    )
    if error := ": ".join(content_text(text) for text in texts if text is not None):
        pointer = "/error" if pieces else ""
        failed = Piece(SpanKind.LOG, Role.LOG, author, error, pointer, status=SpanStatus.ERROR)
        return [*pieces, failed]
    if not pieces and not content:
        remaining_fields = {
            name: value for name, value in event.items() if value not in (None, {}, [])
        }
        return [json_log_piece(remaining_fields)]
    return pieces or [speaker.piece("")]


def _parts_pieces(message: Fields) -> Sequence[Piece]:
    """Return the pieces of a message with ``role`` and ``parts``."""
    role = name_in(message, "role") or ASSISTANT
    name = name_in(message, "name")
    if role == "model":
        speaker = Speaker(name or ASSISTANT, Role.AGENT)
    else:
        speaker = Speaker(name or role, role_of(role) or Role.AGENT)
    parts = message.get("parts")
    if isinstance(parts, str):
        parts = value_in(parts)  # databases keep the list as a JSON text
    pieces = list(content_pieces(parts, speaker, "/parts"))
    return pieces or [speaker.piece("")]


def _pydantic_pieces(message: Fields) -> Iterator[Piece]:
    """Yield the pieces of a request or a response of Pydantic AI."""
    if instructions := as_text(message.get("instructions")):
        yield Piece(
            SpanKind.MESSAGE, Role.SYSTEM, "system", instructions, "/instructions", standing=True
        )
    for number, part in enumerate(items_of(message.get("parts"))):
        yield _pydantic_part(fields_of(part), f"/parts/{number}" if number else "")


def _pydantic_part(part: Fields, pointer: str) -> Piece:
    content = part.get("content")
    match part.get("part_kind"):
        case "system-prompt":
            piece = Speaker("system", Role.SYSTEM).piece(message_text(content), pointer)
        case "user-prompt":
            piece = Speaker("user", Role.USER).piece(message_text(content), pointer)
        case "text" | "file":
            piece = THE_MODEL.piece(message_text(content), pointer)
        case "thinking":
            hidden = "[encrypted reasoning]" if as_text(part.get("signature")) else ""
            text = content_text(content) or hidden
            piece = THE_MODEL.piece(text, pointer, kind=SpanKind.REASONING)
        case "tool-call" | "builtin-tool-call":
            piece = call_piece(part, pointer, ASSISTANT)
        case "tool-return" | "builtin-tool-return":
            failed = part.get("outcome") in ("failed", "denied")
            status = SpanStatus.ERROR if failed else SpanStatus.UNKNOWN
            piece = result_piece(part, content, pointer, status=status)
        case "retry-prompt" if as_text(part.get("tool_name")):
            # What was wrong with the model's answer: a text, or a list of errors by field.
            piece = result_piece(part, dump_text(content), pointer, status=SpanStatus.ERROR)
        case "retry-prompt":
            text = dump_text(content)
            piece = Piece(
                SpanKind.MESSAGE, Role.USER, "user", text, pointer, status=SpanStatus.ERROR
            )
        case _:
            piece = json_log_piece(part, pointer)
    start = unix_seconds(part.get("timestamp"))
    return piece if start is None else replace(piece, start=start)


_LANGCHAIN_TYPES: Final[Mapping[str, Speaker]] = {
    "human": Speaker("user", Role.USER),
    "ai": Speaker(ASSISTANT, Role.AGENT),
    "system": Speaker("system", Role.SYSTEM),
    "developer": Speaker("developer", Role.SYSTEM),
    "tool": Speaker("tool", Role.TOOL),
    "function": Speaker("function", Role.TOOL),
    "chat": Speaker("chat", Role.AGENT),
}
_LANGCHAIN_FIELDS: Final = ("content", "tool_calls")


def unwrap_langchain(message: Fields) -> tuple[Speaker, Fields, str] | None:
    """Return the speaker, the object with the fields of the message, and the pointer to it.

    None for anything but a message of LangChain's.
    """
    kind = kind_of(message)
    fields = message
    inner = ""
    if message.get("lc") is not None and isinstance(message.get("kwargs"), Mapping):
        path = message.get("id")
        kind = str(path[-1]) if isinstance(path, list) and path else ""
        fields = fields_of(message.get("kwargs"))
        inner = "/kwargs"
    elif isinstance(message.get("data"), Mapping) and "content" not in message:
        fields = fields_of(message.get("data"))
        inner = "/data"
    # AIMessageChunk is "ai"
    speaker = _LANGCHAIN_TYPES.get(kind.removesuffix("Chunk").removesuffix("Message").lower())
    if speaker is None or (isinstance(fields.get("role"), str) and not inner):
        return None
    if not any(field in fields for field in _LANGCHAIN_FIELDS):
        return None
    return _langchain_speaker(speaker, fields), fields, inner


def _langchain_speaker(speaker: Speaker, fields: Fields) -> Speaker:
    """Return the speaker under the name in the message; the name of a tool does not count."""
    name = name_in(fields, "name")
    if speaker.agent == "chat":
        name = name_in(fields, "name", "role")
    if name is None or speaker.role in (Role.TOOL, Role.SYSTEM):
        return speaker
    if speaker.role is Role.USER:
        return Speaker(name, Role.USER)
    return Speaker(name, role_of_name(name) if speaker.agent == "chat" else Role.AGENT)


_MODEL_MESSAGES: Final = {
    "SystemMessage": Role.SYSTEM,
    "UserMessage": Role.USER,
    "AssistantMessage": Role.AGENT,
    "FunctionExecutionResultMessage": Role.TOOL,
}
"""The messages of a model's context in an agent's saved state."""

_AUTOGEN_NOTES: Final = name_set("""
    MemoryQueryEvent ModelClientStreamingChunkEvent SelectSpeakerEvent SelectorEvent
    UserInputRequestedEvent
""")
_AUTOGEN_KINDS: Final = re.compile(r"(?:Message|Event)(?:\[[^\[\]]*\])?\Z")
_NOT_AUTOGEN: Final = frozenset({"action", "observation", "args", "extras", "sessionId", "payload"})
_WITHOUT_SOURCE: Final = ("ToolCallRequestEvent", "ToolCallExecutionEvent")
"""Events that some versions save without their source."""

_RESULT_MARKS: Final = frozenset({"call_id", "name", "is_error"})
_AUTOGEN_CODE_TOOL: Final = "code"


def _is_autogen(message: Fields) -> bool:
    """Return whether a JSON object is a message or an event of AutoGen's."""
    kind = kind_of(message)
    if kind in _MODEL_MESSAGES or kind in _WITHOUT_SOURCE:
        return "content" in message
    if not kind or not isinstance(message.get("source"), str) or _NOT_AUTOGEN & message.keys():
        return False
    if not _AUTOGEN_KINDS.search(kind) and "models_usage" not in message:
        return False
    return "content" in message or kind in ("CodeExecutionEvent", *_AUTOGEN_NOTES)


def _autogen_pieces(message: Fields) -> Iterator[Piece]:
    """Yield the pieces of a message or an event."""
    kind = kind_of(message)
    content = message.get("content")
    agent = name_in(message, "source") or _MODEL_MESSAGES.get(kind, Role.AGENT).value
    if agent == Role.AGENT.value:
        agent = ASSISTANT
    role = _MODEL_MESSAGES.get(kind) or role_of_name(agent)
    speaker = Speaker(agent, role, thinks=kind == "ThoughtEvent")
    if thought := as_text(message.get("thought")):
        yield speaker.piece(thought, "/thought", kind=SpanKind.REASONING)
    if kind in _AUTOGEN_NOTES:
        yield json_log_piece(content if content is not None else message, name=kind)
    elif kind == "CodeExecutionEvent":
        result = fields_of(message.get("result"))
        yield result_piece(
            message,
            result.get("output"),
            "",
            name=_AUTOGEN_CODE_TOOL,
            status=status_of_code(result.get("exit_code")),
        )
    elif isinstance(content, list) and content and all(map(_is_autogen_call, content)):
        for number, call in enumerate(content):
            yield call_piece(call, f"/content/{number}", agent)
    elif isinstance(content, list) and content and all(map(_is_autogen_result, content)):
        for number, result in enumerate(content):
            yield result_piece(result, result.get("content"), f"/content/{number}")
    else:
        text = message_text(content) if isinstance(content, str | list) else dump_text(content)
        yield speaker.piece(text, kind=speaker.kind)


def _is_autogen_call(value: object) -> bool:
    return isinstance(value, Mapping) and "name" in value and "arguments" in value


def _is_autogen_result(value: object) -> bool:
    return isinstance(value, Mapping) and "content" in value and not _RESULT_MARKS.isdisjoint(value)
