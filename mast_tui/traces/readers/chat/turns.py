"""The pieces of a message of any client or framework.

The known messages are:

- chat messages with ``role`` and ``content``, as of OpenAI, Anthropic and Bedrock
- ShareGPT's messages with ``from`` and ``value``
- OpenAI's response items
- messages made of ``parts``, as of Gemini, OpenTelemetry, Vercel, A2A and Pydantic AI
- events of Google's ADK
- messages of LangChain and AutoGen
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text, dump_text
from mast_tui.traces.model import Role, SpanKind, SpanStatus
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    OUTPUT_FIELDS,
    THE_MODEL,
    Piece,
    Speaker,
    Turn,
    call_piece,
    content_pieces,
    has_result_parts,
    json_log_piece,
    log_piece,
    result_piece,
    role_of_name,
    speaker_of,
    ui_tool_pieces,
    without_dotnet_names,
)
from mast_tui.traces.readers.chat.streams import is_update
from mast_tui.traces.readers.chat.values import (
    message_text,
    model_of,
    output_text,
    start_of,
    thought_text,
    usage_of,
)
from mast_tui.traces.readers.codex.records import status_of_output
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    identifier_in,
    items_of,
    json_in,
    kind_of,
    name_in,
    name_set,
    names,
    snake_fields,
    value_in,
    without,
)
from mast_tui.traces.result_status import status_of_code, worst_status
from mast_tui.traces.times import unix_seconds

PLAIN_FIELDS = frozenset({"role", "content"})

_FIELDS_WITHOUT_FACTS: Final = PLAIN_FIELDS | {"name", "tool_call_id", "tool_calls"}
"""The fields of a message that has no time, tokens or model."""

_SESSION_FIELDS: Final = frozenset({"sessionId", "session_id", "uuid"})

_CONTENT_FIELDS: tuple[str, ...] = (
    "content",
    "contents",
    "tool_calls",
    "function_call",
    "text",
    "parts",
)


def is_message(value: object) -> bool:
    """Return whether a JSON value has the shape of a chat message or a response item."""
    if not isinstance(value, Mapping):
        return False
    value = _without_wrapper(value)
    if isinstance(value.get("role"), str):
        return any(field in value for field in _CONTENT_FIELDS)
    if isinstance(value.get("from"), str) and "value" in value:  # as ShareGPT writes messages
        return True
    # A line of a coding agent's log is no message.
    is_session_line = kind_of(value) == "system" and bool(_SESSION_FIELDS & value.keys())
    return (
        _is_response_item(value)
        or _is_autogen_message(value)
        or _is_parts_message(value)
        or _is_adk_event(value)
        or is_update(value)
        or (langchain_message(value) is not None and not is_session_line)
    )


def turn_of(message: Fields, by_name: bool = False) -> Turn:
    """Return the pieces, the time, the tokens and the model of a message of any shape.

    Args:
        message: A JSON object; one of an unknown shape becomes a log entry.
        by_name: Whether ``name`` is the speaker; see ``speaks_by_name``.
    """
    message = _without_wrapper(message)
    pieces, fields = _pieces_of(message, by_name)
    if message.keys() <= _FIELDS_WITHOUT_FACTS:
        return Turn(tuple(pieces))
    start = start_of(message)
    if start is None and fields is not message:
        start = start_of(fields)
    return Turn(tuple(pieces), start, usage_of(fields), model_of(fields))


def _pieces_of(message: Fields, by_name: bool) -> tuple[Iterable[Piece], Fields]:
    """Return the pieces of a message, and the object in it that has its tokens and model."""
    role = message.get("role")
    if isinstance(role, str):
        if role.startswith("_") and not any(field in message for field in _CONTENT_FIELDS):
            return (), message  # a record of Kimi CLI such as ``_checkpoint``
        if _is_parts_message(message):
            return _parts_pieces(message), message
        return _chat_or_log_pieces(message, by_name), message
    if _is_autogen_message(message):
        return _autogen_pieces(message), message
    langchain = langchain_message(message)
    if langchain is not None:
        speaker, fields, pointer = langchain
        return chat_pieces(fields, speaker, pointer), fields
    for has_shape, pieces_of_shape in _SHAPES:
        if has_shape(message):
            return pieces_of_shape(message), message
    return _chat_or_log_pieces(message, by_name), message


def _without_wrapper(value: Fields) -> Fields:
    """Return the message inside the wrapper of its framework, or the value itself."""
    raw_item = first_in(value, "raw_item", "rawItem")
    if isinstance(raw_item, Mapping):  # in OpenAI's Agents SDK
        return _item_of_agent(raw_item, fields_of(value.get("agent")), kind_of(value))
    # The Agents SDK for TypeScript writes items in camel case.
    if "callId" in value and kind_of(value) in _ITEM_TYPES:
        return snake_fields(value)
    role = fields_of(value.get("role")).get("value")
    if isinstance(role, str):  # an object in Microsoft's Agent Framework
        return {**value, "role": role}

    message = value.get("message")
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        return value
    is_session_line = bool(_SESSION_FIELDS & value.keys())
    if "role" in value or "messages" in value or is_session_line:
        return value
    return {**without(value, ("message", "type")), **message}


def _item_of_agent(raw_item: Fields, agent: Fields, outer_type: str) -> Fields:
    """Return the raw item of an item of OpenAI's Agents SDK, with the item's agent."""
    item = snake_fields(raw_item)
    # A request for approval repeats the call, so its arguments are left out.
    if outer_type == _APPROVAL_TYPE:
        return {"type": outer_type, "name": item.get("name"), "call_id": item.get("call_id")}
    if item.get("role") == "assistant":
        return {**item, "name": agent.get("name")}
    return {**item, "agent": agent}


def _chat_or_log_pieces(message: Fields, by_name: bool) -> Iterable[Piece]:
    speaker = speaker_of(message, by_name)
    if speaker is not None:
        return chat_pieces(message, speaker)
    match kind_of(message):
        case "tool_call" | "tool_use":
            return [call_piece(message, "", ASSISTANT)]
        case "tool_result":
            return [result_piece(message, first_in(message, *OUTPUT_FIELDS), key_suffix="")]
    return [json_log_piece(message)]


_REASONING_FIELDS: Final = names(
    "reasoning_content reasoning thinking thinking_blocks reasoning_details"
)


def chat_pieces(message: Fields, speaker: Speaker, pointer: str = "") -> Sequence[Piece]:
    """Return the thoughts, texts, calls and results of a chat message in reading order.

    A message without content has one empty piece.

    Args:
        message: The object that holds the fields of the message.
        speaker: The speaker.
        pointer: The JSON pointer from the whole message to that object.
    """
    is_sharegpt = isinstance(message.get("from"), str)
    # The keys of existing spans have ``content`` for ShareGPT's field ``value`` too.
    content_field = "contents" if "contents" in message and not is_sharegpt else "content"
    content = message.get("value" if is_sharegpt else content_field)
    if content is None:
        content = message.get("text")
    if content_field == "contents" and isinstance(content, list):
        content = list(map(without_dotnet_names, content))
    if message.get("from") in ("function_call", "tool_call"):
        return list(_calls_in_text(content, pointer))
    if speaker.role is Role.TOOL and not has_result_parts(content):
        return [result_piece(message, content, "")]

    pieces = list(_thought_pieces_in_fields(message, speaker, pointer))
    pieces += content_pieces(
        content, speaker, f"{pointer}/{content_field}", without_thoughts=bool(pieces)
    )
    # Some vendors repeat the calls of the content in fields beside it.
    content_call_ids = {piece.call_id for piece in pieces if piece.kind is SpanKind.TOOL_CALL}
    pieces += _text_pieces_beside_content(message, speaker, pointer, is_alone=not pieces)
    for piece in _call_pieces_beside_content(message, speaker, pointer):
        if piece.call_id is None or piece.call_id not in content_call_ids:
            if speaker.role is Role.USER:  # Users have tools in some simulations.
                piece = replace(piece, role=Role.USER)
            pieces.append(piece)
    empty_text = "[audio]" if fields_of(message.get("audio")) else ""
    return pieces or [speaker.piece(empty_text, kind=speaker.kind)]


def _text_pieces_beside_content(
    message: Fields, speaker: Speaker, pointer: str, *, is_alone: bool
) -> Iterator[Piece]:
    """Yield the plan, the refusal and the transcript of a message, in fields beside its content.

    With ``is_alone`` the message has no other piece, so its first text has the message's key.
    """
    if plan := as_text(message.get("tool_plan")):  # a thought in Cohere's messages
        yield speaker.piece(plan, f"{pointer}/tool_plan", kind=SpanKind.REASONING)
        is_alone = False
    transcript = fields_of(message.get("audio")).get("transcript")
    for field, value in (("refusal", message.get("refusal")), ("audio", transcript)):
        if text := as_text(value):
            yield speaker.piece(text, "" if is_alone else f"{pointer}/{field}")
            is_alone = False


def _thought_pieces_in_fields(message: Fields, speaker: Speaker, pointer: str) -> Iterator[Piece]:
    """Yield the first thought in a field beside the content; the other fields repeat it."""
    extras = fields_of(message.get("additional_kwargs"))
    for fields, fields_pointer in ((message, pointer), (extras, f"{pointer}/additional_kwargs")):
        for field in _REASONING_FIELDS:
            value = fields.get(field)
            if isinstance(value, str | list | Mapping) and (text := thought_text(value)):
                yield speaker.piece(text, f"{fields_pointer}/{field}", kind=SpanKind.REASONING)
                return


def _call_pieces_beside_content(message: Fields, speaker: Speaker, pointer: str) -> Iterator[Piece]:
    extras = fields_of(message.get("additional_kwargs"))
    has_calls = False
    # Most messages have no calls, and None is tested faster than the type ``Mapping``.
    for fields, fields_pointer in ((message, pointer), (extras, f"{pointer}/additional_kwargs")):
        if has_calls:
            return  # LangChain's ``additional_kwargs`` repeat the calls in the vendor's form.
        calls = _parsed_calls(first_in(fields, "tool_calls", "toolCalls"))
        if calls is not None and isinstance(calls, Mapping):
            calls = [calls]
        for number, call in enumerate(items_of(calls)):
            has_calls = True
            yield call_piece(call, f"{fields_pointer}/tool_calls/{number}", speaker.agent)
        function_call = fields.get("function_call")
        if function_call is not None and isinstance(function_call, Mapping):
            has_calls = True
            yield call_piece(function_call, f"{fields_pointer}/function_call", speaker.agent)
    if not has_calls:
        for number, invocation in enumerate(items_of(message.get("toolInvocations"))):
            invocation_pointer = f"{pointer}/toolInvocations/{number}"
            yield from ui_tool_pieces(fields_of(invocation), invocation_pointer, speaker)
        for number, call in enumerate(items_of(message.get("invalid_tool_calls"))):
            piece = call_piece(call, f"{pointer}/invalid_tool_calls/{number}", speaker.agent)
            yield replace(piece, status=SpanStatus.ERROR)


def _parsed_calls(calls: object) -> object:
    """Return the calls in a JSON text; any other value unchanged."""
    if isinstance(calls, str) and calls.lstrip()[:1] == "[":
        parsed_calls = json_in(calls)
        return [calls] if parsed_calls is None else parsed_calls
    return calls


def _calls_in_text(content: object, pointer: str) -> Iterator[Piece]:
    """Yield the calls in ShareGPT's JSON text; any other text is one call without a name."""
    value = json_in(content)
    calls = value if isinstance(value, list) else [value]
    if not calls or not all(isinstance(call, Mapping) and "name" in call for call in calls):
        yield Piece(SpanKind.TOOL_CALL, Role.AGENT, THE_MODEL.agent, content_text(content))
        return
    for number, call in enumerate(calls):
        # The first call has the key of the message.
        key_suffix = f"{pointer}/value/{number}" if number else ""
        yield call_piece(call, key_suffix, THE_MODEL.agent)


_ITEM_CALL_TYPES: Final = name_set("""
    apply_patch_call code_interpreter_call computer_call custom_tool_call file_search_call
    function_call hosted_tool_call image_generation_call local_shell_call mcp_call program
    shell_call tool_search_call web_search_call
""")
_ITEM_OUTPUT_TYPES: Final = frozenset(
    {"tool_search_output"}
    | {f"{kind}{suffix}" for kind in _ITEM_CALL_TYPES for suffix in ("_output", "_result")}
)
_APPROVAL_TYPE: Final = "tool_approval_item"
_ITEM_LOG_TYPES: Final = name_set("""
    compaction mcp_list_tools mcp_approval_request mcp_approval_response tool_approval_item
""")
_ITEM_TYPES: Final = _ITEM_CALL_TYPES | _ITEM_OUTPUT_TYPES
_ITEM_OUTPUT_FIELDS: Final = ("output", "results", "outputs", "result")
"""The fields with the result in an item that holds a call with its result."""

_NON_ARGUMENT_FIELDS: Final = name_set("""
    type id call_id name status error container_id index agent usage fingerprint
""") | set(_ITEM_OUTPUT_FIELDS)


def _is_response_item(message: Fields) -> bool:
    """Return whether a JSON object is an item of OpenAI's Responses API other than a message."""
    item_type = kind_of(message)
    if item_type == "reasoning":
        has_content_list = isinstance(message.get("content"), list)
        return has_content_list or "summary" in message or "encrypted_content" in message
    if item_type == "program":  # records of other formats have this type too
        return "code" in message
    return item_type in _ITEM_LOG_TYPES or item_type in _ITEM_TYPES


def _item_pieces(item: Fields) -> Iterator[Piece]:
    """Yield the piece of an item of OpenAI's Responses API, or a call and its result."""
    item_type = kind_of(item)
    speaker = Speaker(name_in(fields_of(item.get("agent")), "name") or ASSISTANT, Role.AGENT)
    if item_type == "reasoning":
        yield speaker.piece(_item_thought_text(item), kind=SpanKind.REASONING)
    elif item_type in _ITEM_LOG_TYPES:
        yield json_log_piece(item, name=item_type)
    elif item_type in _ITEM_CALL_TYPES:
        yield from _item_call_pieces(item, item_type, speaker.agent)
    else:
        output = first_in(item, "output", "tools", "result")
        is_of_codex = isinstance(output, str) and output.startswith('{"output":"')
        status = status_of_output(output) if is_of_codex else _status_of_commands(output)
        yield result_piece(item, _joined_output(output), "", status=status)


def _status_of_commands(output: object) -> SpanStatus:
    """Return ERROR if one of the shell commands failed or timed out."""
    overall_status = SpanStatus.UNKNOWN
    for command_output in items_of(output):
        outcome = fields_of(fields_of(command_output).get("outcome"))
        code = 1 if outcome.get("type") == "timeout" else first_in(outcome, "exit_code", "exitCode")
        overall_status = worst_status(overall_status, status_of_code(code))
    return overall_status


def _item_thought_text(item: Fields) -> str:
    """Return the summary and the content of a reasoning item, or a note if it is encrypted."""
    texts = (
        content_text(item.get(field))
        for field in ("summary", "content", "raw_content", "rawContent")
    )
    text = "\n".join(filter(None, texts))
    if not text and as_text(item.get("encrypted_content")):
        return thought_text(item)
    return text


def _item_call_pieces(item: Fields, item_type: str, agent: str) -> Iterator[Piece]:
    """Yield the call in an item, and its output or error as the result."""
    arguments = first_in(item, "arguments", "input", "action")
    if arguments is None:
        arguments = without(item, _NON_ARGUMENT_FIELDS) or None
    call_fields = {**item, "arguments": arguments}
    call = call_piece(call_fields, "", agent, name=item_type.removesuffix("_call"))
    yield call

    error = item.get("error")
    output = first_in(item, *_ITEM_OUTPUT_FIELDS)
    if output is None and error is None:
        return
    has_output = output is not None
    content = _joined_output(output if has_output else error)
    if item_type == "image_generation_call" and isinstance(output, str):
        content = "[image]"
    yield result_piece(
        item,
        content,
        "/output" if has_output else "/error",
        name=call.name,
        call_id=call.call_id,
        status=SpanStatus.UNKNOWN if error is None else SpanStatus.ERROR,
    )


def _joined_output(output: object) -> object:
    """Join the logs and texts in a list of outputs; return any other output unchanged."""
    if isinstance(output, list):
        texts = [output_text(fields_of(part).get("logs", part)) for part in output]
        return "\n".join(text for text in texts if text)
    return output


_SPEECH_FIELDS: Final = names("""
    output_transcription outputTranscription input_transcription inputTranscription
""")
_ADK_EVENT_FIELDS: Final = ("invocation_id", "invocationId", "actions", "partial", "timestamp")


def _is_parts_message(message: Fields) -> bool:
    """Return whether a JSON object is a message made of parts, Pydantic AI's included."""
    parts = message.get("parts")
    # The parts may be a JSON text or a single part.
    if isinstance(parts, str | Mapping) and message.get("content") is None:
        return isinstance(message.get("role"), str)
    if not isinstance(parts, list):
        return False
    if message.get("kind") in ("request", "response"):
        return all(isinstance(part, Mapping) and "part_kind" in part for part in parts)
    if not isinstance(message.get("role"), str):
        # Vercel's AI SDK repeats the texts of typed parts in ``content``.
        return False
    content = message.get("content")
    has_typed_parts = bool(parts) and all(map(kind_of, parts))
    return content is None or (isinstance(content, str) and has_typed_parts)


def _is_adk_event(message: Fields) -> bool:
    """Return whether a JSON object is an event of Google's ADK (Agent Development Kit)."""
    if name_in(message, "author") is None or "role" in message:
        return False
    content = message.get("content")
    if isinstance(content, Mapping):
        return isinstance(content.get("parts"), list)
    # An event without content is recognised by two or more of its other fields.
    return content is None and sum(field in message for field in _ADK_EVENT_FIELDS) > 1


def unfinished_messages(
    messages: Iterable[tuple[str, object]],
) -> dict[str, Fields]:
    """Return the answers that a cut-off run of Google's ADK has only as partial events.

    The ADK writes an answer first as partial events, and then once as a whole.

    Args:
        messages: The messages of a run with their keys.

    Returns:
        Each unfinished answer as one event, under the key of its first partial event.
    """
    unfinished_events: dict[str, Fields] = {}
    for events in _partial_events_of_unfinished_answers(messages):
        first_key, _first_event = events[0]
        _last_key, last_event = events[-1]
        if parts := _joined_parts(event for _key, event in events):
            content = {**fields_of(last_event.get("content")), "parts": parts}
            unfinished_events[first_key] = {**last_event, "partial": False, "content": content}
    return unfinished_events


def _partial_events_of_unfinished_answers(
    messages: Iterable[tuple[str, object]],
) -> Iterable[list[tuple[str, Fields]]]:
    """Return the keys and partial events of each answer that was never written as a whole."""
    partial_events: dict[tuple[object, ...], list[tuple[str, Fields]]] = {}
    for key, message in messages:
        event = fields_of(message)
        if "author" not in event or not _is_adk_event(event):
            continue
        answer_id = (
            as_text(event.get("author")),
            identifier_in(event, "invocation_id", "invocationId"),
            as_text(event.get("branch")),
        )
        if event.get("partial") is True:
            partial_events.setdefault(answer_id, []).append((key, event))
            continue
        # Results of tools have the role of a user, but the author is an agent.
        has_user_role = fields_of(event.get("content")).get("role") == "user"
        is_result = has_user_role and event.get("author") != "user"
        if _event_parts(event) and not is_result:
            partial_events.pop(answer_id, None)  # This event has the whole answer.
    return partial_events.values()


def _event_parts(event: Fields) -> Sequence[object]:
    """Return the parts of an ADK event, or the transcript of its speech as the only part."""
    parts = items_of(fields_of(event.get("content")).get("parts"))
    speech = fields_of(first_in(event, *_SPEECH_FIELDS))
    return parts or ([{"text": speech["text"]}] if as_text(speech.get("text")) else [])


def _joined_parts(events: Iterable[Fields]) -> list[Fields]:
    """Return the parts of partial events without repetitions, with adjacent texts joined."""
    joined_parts: list[Fields] = []
    for event in events:
        for part in map(fields_of, _event_parts(event)):
            last_part = joined_parts[-1] if joined_parts else {}
            text = part.get("text")
            last_text = last_part.get("text")
            is_next_text = isinstance(text, str) and isinstance(last_text, str)
            if is_next_text and part.get("thought") == last_part.get("thought"):
                joined_parts[-1] = {**last_part, "text": f"{last_text}{text}"}
            elif part and part not in joined_parts:
                joined_parts.append(part)
    return joined_parts


def _adk_pieces(event: Fields) -> Sequence[Piece]:
    """Return the pieces of an ADK event; none for a partial one, which a later event repeats."""
    if event.get("partial") is True:
        return ()
    author = name_in(event, "author") or ASSISTANT
    content = fields_of(event.get("content"))
    speaker = Speaker(author, role_of_name(author))
    parts = content.get("parts") or _event_parts(event)
    pieces = list(content_pieces(parts, speaker, "/content/parts"))
    error_parts = (
        first_in(event, "error_code", "errorCode"),
        first_in(event, "error_message", "errorMessage"),
    )
    if error := ": ".join(content_text(text) for text in error_parts if text is not None):
        pointer = "/error" if pieces else ""  # "": the event's own key
        error_piece = Piece(SpanKind.LOG, Role.LOG, author, error, pointer, status=SpanStatus.ERROR)
        return [*pieces, error_piece]
    if not pieces and not content:
        remaining_fields = {
            name: value for name, value in event.items() if value not in (None, {}, [])
        }
        return [json_log_piece(remaining_fields)]
    return pieces or [speaker.piece("")]


def _parts_pieces(message: Fields) -> Sequence[Piece]:
    speaker = speaker_of(message) or THE_MODEL
    parts = message.get("parts")
    if isinstance(parts, str):
        parts = value_in(parts)  # Databases store the list as a JSON text.
    pieces = list(content_pieces(parts, speaker, "/parts"))
    return pieces or [speaker.piece("")]


def _pydantic_pieces(message: Fields) -> Iterator[Piece]:
    if instructions := as_text(message.get("instructions")):
        yield Piece(
            SpanKind.MESSAGE,
            Role.SYSTEM,
            "system",
            instructions,
            "/instructions",
            is_instructions=True,
        )
    # The first part has the key of the message itself.
    for number, part in enumerate(items_of(message.get("parts"))):
        yield _pydantic_piece(fields_of(part), f"/parts/{number}" if number else "")


def _pydantic_piece(part: Fields, pointer: str) -> Piece:
    content = part.get("content")
    match part.get("part_kind"):
        case "system-prompt":
            piece = Speaker("system", Role.SYSTEM).piece(message_text(content), pointer)
        case "user-prompt":
            piece = Speaker("user", Role.USER).piece(message_text(content), pointer)
        case "text" | "file":
            piece = THE_MODEL.piece(message_text(content), pointer)
        case "thinking":
            encrypted_note = "[encrypted reasoning]" if as_text(part.get("signature")) else ""
            text = content_text(content) or encrypted_note
            piece = THE_MODEL.piece(text, pointer, kind=SpanKind.REASONING)
        case "tool-call" | "builtin-tool-call":
            piece = call_piece(part, pointer, ASSISTANT)
        case "tool-return" | "builtin-tool-return":
            failed = part.get("outcome") in ("failed", "denied")
            status = SpanStatus.ERROR if failed else SpanStatus.UNKNOWN
            piece = result_piece(part, content, pointer, status=status)
        case "retry-prompt" if as_text(part.get("tool_name")):
            # The content is a text or a list of the errors in the model's answer.
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


_SPEAKER_BY_LANGCHAIN_TYPE: Final[Mapping[str, Speaker]] = {
    "human": Speaker("user", Role.USER),
    "user": Speaker("user", Role.USER),
    "assistant": THE_MODEL,
    "ai": Speaker(ASSISTANT, Role.AGENT),
    "system": Speaker("system", Role.SYSTEM),
    "developer": Speaker("developer", Role.SYSTEM),
    "tool": Speaker("tool", Role.TOOL),
    "function": Speaker("function", Role.TOOL),
    "chat": Speaker("chat", Role.AGENT),
}


def langchain_message(message: Fields) -> tuple[Speaker, Fields, str] | None:
    """Return the speaker of a LangChain message, the object with its fields, and its JSON pointer.

    The result is None for any other message.
    """
    type_name = kind_of(message)
    fields = message
    pointer = ""
    if message.get("lc") is not None and isinstance(message.get("kwargs"), Mapping):
        class_path = message.get("id")
        type_name = str(class_path[-1]) if isinstance(class_path, list) and class_path else ""
        fields = fields_of(message.get("kwargs"))
        pointer = "/kwargs"
    elif isinstance(message.get("data"), Mapping) and "content" not in message:
        fields = fields_of(message.get("data"))
        pointer = "/data"
    short_type = type_name.removesuffix("Chunk").removesuffix("Message").lower()
    # The type of ``AIMessageChunk`` is "ai".
    speaker = _SPEAKER_BY_LANGCHAIN_TYPE.get(short_type)
    # A message with a role beside its type comes from another chat format.
    is_chat_message = isinstance(fields.get("role"), str) and not pointer
    if speaker is None or is_chat_message:
        return None
    if not any(field in fields for field in ("content", "tool_calls")):
        return None
    return _langchain_speaker(speaker, fields), fields, pointer


def _langchain_speaker(speaker: Speaker, fields: Fields) -> Speaker:
    """Return the speaker of a message's type, with the name that the message has."""
    name = name_in(fields, "name")
    is_chat_type = speaker.agent == "chat"  # this type has a free role
    if is_chat_type:
        name = name_in(fields, "name", "role")
    if name is None or speaker.role in (Role.TOOL, Role.SYSTEM):
        return speaker
    if speaker.role is Role.USER:
        return Speaker(name, Role.USER)
    return Speaker(name, role_of_name(name) if is_chat_type else Role.AGENT)


_ROLE_BY_CONTEXT_TYPE: Final = {
    "SystemMessage": Role.SYSTEM,
    "UserMessage": Role.USER,
    "AssistantMessage": Role.AGENT,
    "FunctionExecutionResultMessage": Role.TOOL,
}
"""The roles of messages in the model context that an agent's saved state holds."""

_AUTOGEN_LOG_TYPES: Final = name_set("""
    MemoryQueryEvent ModelClientStreamingChunkEvent SelectSpeakerEvent SelectorEvent
    UserInputRequestedEvent
""")
_AUTOGEN_TYPE_ENDING: Final = re.compile(r"(?:Message|Event)(?:\[[^\[\]]*\])?\Z")
_NON_AUTOGEN_FIELDS: Final = frozenset(
    {"action", "observation", "args", "extras", "sessionId", "payload"}
)
_TYPES_WITHOUT_SOURCE: Final = ("ToolCallRequestEvent", "ToolCallExecutionEvent")
"""Events that some versions save without their source."""

_RESULT_MARKS: Final = frozenset({"call_id", "name", "is_error"})
_AUTOGEN_CODE_TOOL: Final = "code"


def _is_autogen_message(message: Fields) -> bool:
    """Return whether a JSON object is a message or an event of AutoGen.

    Other programs write a type and a source too, but with ``_NON_AUTOGEN_FIELDS``.
    """
    type_name = kind_of(message)
    if type_name in _ROLE_BY_CONTEXT_TYPE or type_name in _TYPES_WITHOUT_SOURCE:
        return "content" in message
    has_source = isinstance(message.get("source"), str)
    if not type_name or not has_source or _NON_AUTOGEN_FIELDS & message.keys():
        return False
    if not _AUTOGEN_TYPE_ENDING.search(type_name) and "models_usage" not in message:
        return False
    return "content" in message or type_name in ("CodeExecutionEvent", *_AUTOGEN_LOG_TYPES)


def is_task_result(record: Fields) -> bool:
    """Return whether a JSON object is AutoGen's ``TaskResult``: the messages and a stop reason."""
    return "stop_reason" in record and any(
        _is_autogen_message(fields_of(message)) for message in items_of(record.get("messages"))
    )


def end_pieces(task_result: Fields) -> list[Piece]:
    """Return a log entry with the reason why a task of AutoGen ended, if it has a reason."""
    reason = as_text(task_result.get("stop_reason"))
    return [] if reason is None else [log_piece(reason, "stop_reason")]


def _autogen_pieces(message: Fields) -> Iterator[Piece]:
    type_name = kind_of(message)
    content = message.get("content")
    agent = name_in(message, "source") or _ROLE_BY_CONTEXT_TYPE.get(type_name, Role.AGENT).value
    if agent == Role.AGENT.value:  # a context does not name its agent
        agent = ASSISTANT
    role = _ROLE_BY_CONTEXT_TYPE.get(type_name) or role_of_name(agent)
    speaker = Speaker(agent, role, thinks=type_name == "ThoughtEvent")
    parts = list(map(fields_of, items_of(content)))

    if thought := as_text(message.get("thought")):
        yield speaker.piece(thought, "/thought", kind=SpanKind.REASONING)
    if type_name in _AUTOGEN_LOG_TYPES:
        yield json_log_piece(content if content is not None else message, name=type_name)
    elif type_name == "CodeExecutionEvent":
        result = fields_of(message.get("result"))
        yield result_piece(
            message,
            result.get("output"),
            "",
            name=_AUTOGEN_CODE_TOOL,
            status=status_of_code(result.get("exit_code")),
        )
    elif parts and all({"name", "arguments"} <= part.keys() for part in parts):
        for number, call in enumerate(parts):
            yield call_piece(call, f"/content/{number}", agent)
    elif parts and all("content" in part and _RESULT_MARKS & part.keys() for part in parts):
        for number, result in enumerate(parts):
            yield result_piece(result, result.get("content"), f"/content/{number}")
    else:
        text = message_text(content) if isinstance(content, str | list) else dump_text(content)
        yield speaker.piece(text, kind=speaker.kind)


_SHAPES: Final[Sequence[tuple[Callable[[Fields], bool], Callable[[Fields], Iterable[Piece]]]]] = (
    (_is_response_item, _item_pieces),
    (_is_parts_message, _pydantic_pieces),
    (_is_adk_event, _adk_pieces),
    (is_task_result, end_pieces),
)
"""For messages without a role: a test of the shape, and the function that reads its pieces."""
