"""The lists, records and logs in a JSON value that hold the messages of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, canonical_bytes, dump_text
from mast_tui.traces.model import Tokens
from mast_tui.traces.readers.chat import a2a
from mast_tui.traces.readers.chat.streams import joined_updates, response_in_stream
from mast_tui.traces.readers.chat.turns import is_message
from mast_tui.traces.readers.chat.values import message_text, model_of, usage_of
from mast_tui.traces.readers.json_fields import (
    Fields,
    add_new,
    fields_at,
    fields_of,
    first_in,
    is_of_other_format,
    items_of,
    json_in,
    kind_of,
    located_items,
    located_objects,
    mostly,
    name_in,
    name_set,
    names,
    text_in,
)

Messages = tuple[tuple[str, object], ...]
"""Messages in reading order, as pairs of JSON pointer and message."""

_MESSAGE_LIST_FIELDS: Final = names("""
    messages history traj trajectory conversation conversations input contents events
    chat_history chatMessages message_history all_messages intermediate_steps
""")
_REQUEST_LIST_FIELDS: Final = frozenset({"messages", "input", "contents", "message"})
"""The fields that hold the messages of one request; its response may be in another field."""

_PROMPT_ROLES: Final = frozenset({"system", "developer", "user"})
"""The roles of the first message of a conversation."""

_NESTING_FIELDS: Final = names("""
    data request request_body body inputs input values state result session conversation
    trajectory trace run response result output outputs task
""")
_RESPONSE_FIELDS: Final = ("response", "completion", "response_body", "output")
_BODY_FIELDS: Final = names(
    "body body_raw postData content text chunks sse_lines inputBodyJson outputBodyJson"
)
"""The fields of a logged HTTP request or response that may hold its body."""

_PROMPT_FIELDS: Final = ("input", "prompt", "contents")
_SYSTEM_PROMPT_FIELDS: Final = names("""
    system systemInstruction system_instruction system_prompt systemPrompt preamble
""")
_STOP_REASON_FIELDS: Final = names("stop_reason stopReason finish_reason finishReason reason")
_ORDINARY_STOP_REASONS: Final = name_set("""
    complete completed end_turn eos function_call stop stop_sequence tool-calls tool_call tool_calls
    tool_use
""")

_CHECKED_COUNT: Final = 20


@dataclass(frozen=True, slots=True)
class Conversation:
    """A run's messages and the record around them.

    Attributes:
        usage: The tokens of the model's response.
        model: The model of the response.
        response_count: The number of messages at the end that are the response.
        error: The error in place of a response, or the reason why the response ended early.
        is_streamed: Whether the response was logged as a stream.
    """

    messages: Messages
    record: Fields
    usage: Tokens | None = None
    model: str | None = None
    response_count: int = 0
    error: str | None = None
    is_streamed: bool = False


def mostly_messages(values: Iterable[object]) -> bool:
    """Return whether at least half of the first values are chat messages."""
    return mostly(is_message, values)


def conversation_in(value: object) -> Conversation | None:
    """Return the conversation in a list of messages, or in a record that holds messages.

    A request and its response are one conversation. The result is None for other values and for
    records of formats that have their own readers.
    """
    if isinstance(value, list):
        messages = _message_list(value)
        if messages is None:
            return None
        return Conversation(joined_updates(located_items(messages, "")), record={})
    if not isinstance(value, Mapping) or is_of_other_format(value):
        return None

    # Try each kind of record, the most specific first.
    located_records = list(_located_records(value))
    for pointer, record in located_records:
        task_messages = a2a.task_messages(record, pointer) if a2a.is_task(record) else ()
        if task_messages:
            return Conversation(task_messages, {**record, "outcome": a2a.task_outcome(record)})
    for find_conversation in (_request_and_response, _response_alone):
        for pointer, record in located_records:
            conversation = find_conversation(record, pointer, value)
            if conversation is not None:
                return conversation
    return None


def _located_records(value: Fields) -> Iterator[tuple[str, Fields]]:
    """Yield a value and the records within it that may have messages, with their JSON pointers."""
    yield "", value
    for field in _NESTING_FIELDS:
        nested_record = _json_object(value.get(field))
        if nested_record is not None and not is_of_other_format(nested_record):
            yield f"/{field}", nested_record
    for field in ("request", "input"):  # ``input`` in Bedrock's log of model invocations
        yield from _located_bodies(_json_object(value.get(field)) or {}, f"/{field}")


def is_conversation_list(document: object) -> bool:
    """Return whether a JSON document is a list of conversations."""
    return isinstance(document, list) and any(map(conversation_in, document[:_CHECKED_COUNT]))


def _request_and_response(record: Fields, pointer: str, document: Fields) -> Conversation | None:
    """Return the messages of a request with its response.

    Args:
        document: The whole document, which contains the record or is the record.
    """
    list_field, request_messages = _request_messages(record, pointer)
    if list_field is None:
        return None
    response = None
    if list_field in _REQUEST_LIST_FIELDS:  # the other fields hold whole runs
        response = (
            _response_in(record, pointer, document)
            or _text_response(record, pointer, request_messages)
            or _text_response(document, pointer="", request_messages=request_messages)
        )
    return _conversation_of(record, pointer, document, request_messages, response)


def _response_alone(record: Fields, pointer: str, document: Fields) -> Conversation | None:
    """Return the messages of a record without a request: its response, else its ``output``."""
    response = _response_in(record, pointer, document)
    if response is not None:
        prompt = _text_prompt(record, pointer)
        return _conversation_of(record, pointer, document, prompt, response)
    output_messages = _message_list(record.get("output"))
    if output_messages is None:
        return None
    messages = tuple(located_items(output_messages, f"{pointer}/output"))
    return _conversation_of(record, pointer, document, messages, response=None)


def _conversation_of(
    record: Fields,
    pointer: str,
    document: Fields,
    request_messages: Messages,
    response: Conversation | None,
) -> Conversation:
    """Return the conversation of a request and its response, with the system prompt first.

    The conversation's record has the fields of both the record and the document.
    """
    merged_record = record if record is document else {**record, **document}
    messages = _with_adk_prompts(record, pointer, request_messages)
    system_prompt = _system_prompt(record, pointer)
    if not _begins_with_prompt(messages, system_prompt):
        messages = system_prompt + messages
    if response is None:
        error = _response_error(record) or _response_error(document)
        return Conversation(messages, merged_record, model=model_of(record), error=error)

    new_messages = response.messages
    if _repeats_last_message(request_messages, new_messages):
        new_messages = new_messages[1:]
    return replace(
        response,
        messages=messages + new_messages,
        record=merged_record,
        model=response.model or model_of(record) or name_in(document, "modelId"),
        response_count=len(new_messages),
    )


def _repeats_last_message(request_messages: Messages, response_messages: Messages) -> bool:
    """Return whether a response begins with the last message of its request."""
    if not request_messages or not response_messages:
        return False
    _, last_request_message = request_messages[-1]
    _, first_response_message = response_messages[0]
    return canonical_bytes(last_request_message) == canonical_bytes(first_response_message)


def _response_error(record: Fields) -> str | None:
    """Return the text of the error that a record has in place of a response."""
    for field in _RESPONSE_FIELDS:
        if field not in record:
            continue
        response = _json_object(record[field]) or {}
        error = first_in(response, "error")
        if not error and not response:  # the response is empty; the record has the error
            error = record.get("error")
        if text := _error_text(error):
            return text
    return None


def _begins_with_prompt(messages: Messages, system_prompt: Messages) -> bool:
    """Return whether the first message has the role and the text of the system prompt."""
    if not messages or not system_prompt:
        return False
    _, first_message = messages[0]
    _, prompt_message = system_prompt[0]
    message_fields = fields_of(first_message)
    prompt_fields = fields_of(prompt_message)
    return (
        prompt_fields.get("role") == message_fields.get("role")
        and "content" in prompt_fields
        and message_text(prompt_fields["content"]) == message_text(message_fields.get("content"))
    )


def _request_messages(record: Fields, pointer: str) -> tuple[str | None, Messages]:
    """Return the messages of a record and the name of their field; None without messages.

    The name is ``message`` for a request to Cohere's first API.
    """
    is_page = record.get("object") == "list"  # a page of a list in OpenAI's API
    for list_field in (*_MESSAGE_LIST_FIELDS, "data" if is_page else "items"):
        values = record.get(list_field)
        if list_field == "items" and any("from" in fields_of(value) for value in items_of(values)):
            continue  # the edges of a graph
        if list_field == "contents" and isinstance(values, list):
            values = list(map(_with_role, values))
        if (messages := _message_list(values)) is not None:
            located_messages = tuple(located_items(messages, f"{pointer}/{list_field}"))
            if is_page:
                return list_field, _oldest_first(located_messages)
            if any(map(_is_cohere_message, items_of(values))):
                return "message", located_messages + _cohere_prompt(record, pointer)
            if any("toolCallStates" in fields_of(value) for value in items_of(values)):
                located_messages = _with_outputs_of_calls(located_messages)
            return list_field, located_messages
    # A request to Cohere's first API without a history.
    prompt = _cohere_prompt(record, pointer) if "preamble" in record else ()
    return ("message", prompt) if prompt else (None, ())


def _with_outputs_of_calls(messages: Messages) -> Messages:
    """Return the messages of Continue with the outputs beside its calls.

    Only its command line has no messages with these outputs.
    """
    if any(fields_at(message, "message").get("role") == "tool" for _pointer, message in messages):
        return messages
    all_messages: list[tuple[str, object]] = []
    for pointer, message in messages:
        all_messages.append((pointer, message))
        for location, state in located_objects(
            fields_of(message).get("toolCallStates"), f"{pointer}/toolCallStates"
        ):
            status = "error" if state.get("status") == "errored" else None
            result = {"role": "tool", "toolCallId": state.get("toolCallId"), "status": status}
            if output := state.get("output"):
                all_messages.append((location, {**result, "content": output}))
    return tuple(all_messages)


def _cohere_prompt(record: Fields, pointer: str) -> Messages:
    """Return the new messages of a request to Cohere's first API, after its documents."""
    documents = tuple(
        (f"{pointer}/documents/{number}", {"role": "system", "content": dump_text(document)})
        for number, document in enumerate(items_of(record.get("documents")))
    )
    role_by_field = {"message": "user", "tool_results": "tool"}
    return documents + tuple(
        (f"{pointer}/{field}", _from_cohere({"role": role, field: record[field]}))
        for field, role in role_by_field.items()
        if record.get(field)
    )


def _is_cohere_message(value: object) -> bool:
    """Return whether a value is a message of Cohere's first API, without ``content``."""
    message = fields_of(value)
    return (
        isinstance(message.get("role"), str)
        and "content" not in message
        and (isinstance(message.get("message"), str) or bool(items_of(message.get("tool_results"))))
    )


def _from_cohere(value: object) -> object:
    """Convert a message of Cohere's first API to a usual chat message; keep any other value."""
    if not _is_cohere_message(value):
        return value
    message = fields_of(value)
    role = str(message["role"]).lower()
    results = [
        {
            "type": "tool_result",
            "name": fields_at(result, "call").get("name"),
            "content": fields_of(result).get("outputs"),
        }
        for result in items_of(message.get("tool_results"))
    ]
    role = "assistant" if role == "chatbot" else role
    # A history and a response write empty fields differently, so these are left out.
    nonempty_fields = {name: field for name, field in message.items() if field}
    return {**nonempty_fields, "role": role, "content": results or message.get("message")}


def _oldest_first(messages: Messages) -> Messages:
    """Return the messages of a page of OpenAI's API, which usually has the newest first."""
    roles = [text_in(fields_of(message), "role") for _pointer, message in messages]
    is_prompt = [role in _PROMPT_ROLES for role in roles]
    # A conversation begins with a prompt.
    is_newest_first = is_prompt[-1] and not is_prompt[0]
    return messages[::-1] if is_newest_first else messages


def _with_role(content: object) -> object:
    """Return a message of Gemini with a role, by default ``user``; any other value unchanged."""
    if isinstance(content, Mapping) and "parts" in content and content.get("role") is None:
        return {**content, "role": "user"}
    return content


def _text_prompt(record: Fields, pointer: str) -> Messages:
    """Return the text prompt of a request as its only message."""
    for field in _PROMPT_FIELDS:
        if as_text(record.get(field)):
            return ((f"{pointer}/{field}", {"role": "user", "content": record[field]}),)
    return ()


def _system_prompt(record: Fields, pointer: str) -> Messages:
    """Return the system prompt in a record with messages."""
    has_items = "items" in record
    instructions = fields_at(record, "session").get("instructions")
    if has_items and as_text(instructions):  # the first sessions of Codex
        prompt = {"role": "system", "content": instructions}
        return ((f"{pointer}/session/instructions", prompt),)
    # OpenAI's Responses; other records have other instructions.
    if has_items or "input" in record or "output" in record:
        instructions = record.get("instructions")
        if isinstance(instructions, list) and mostly_messages(instructions):
            return tuple(located_items(instructions, f"{pointer}/instructions"))
        if as_text(instructions):
            return ((f"{pointer}/instructions", {"role": "system", "content": instructions}),)
    for field in _SYSTEM_PROMPT_FIELDS:
        value = record.get(field)
        if isinstance(value, Mapping) and isinstance(value.get("parts"), list):
            return ((f"{pointer}/{field}", {"role": "system", "parts": value["parts"]}),)
        if value and (field == "system" or isinstance(value, str | list)):
            return ((f"{pointer}/{field}", {"role": "system", "content": value}),)
    return ()


def _with_adk_prompts(record: Fields, pointer: str, events: Messages) -> Messages:
    """Return the events of a session of Google's ADK with the system prompts of its requests.

    A prompt comes before the event of its request; the first prompt comes before all events.
    """
    prompt_by_event_id: dict[str, tuple[str, object]] = {}
    prompt_texts: set[str] = set()
    for number, request in enumerate(items_of(record.get("event_logs"))):
        config = fields_at(request, "model_request", "config")
        instruction = config.get("system_instruction")
        parts = instruction.get("parts") if isinstance(instruction, Mapping) else instruction
        text = as_text(message_text(parts))
        if text is not None and add_new(prompt_texts, text):
            prompt_pointer = (
                f"{pointer}/event_logs/{number}/model_request/config/system_instruction"
            )
            # A prompt without an event gets a key that no event has, and comes last.
            event_id = as_text(fields_of(request).get("event_id")) or prompt_pointer
            prompt_by_event_id[event_id] = (prompt_pointer, {"role": "system", "content": text})
    if not prompt_by_event_id:
        return events

    first_prompt = prompt_by_event_id.pop(next(iter(prompt_by_event_id)))
    messages = [first_prompt]
    for location, event in events:
        event_prompt = prompt_by_event_id.pop(as_text(fields_of(event).get("id")) or "", None)
        if event_prompt is not None:
            messages.append(event_prompt)
        messages.append((location, event))
    return (*messages, *prompt_by_event_id.values())


def _response_in(record: Fields, pointer: str, document: Fields) -> Conversation | None:
    """Return the response in a record, else the response in the document around it."""
    response = _vendor_response(record, pointer) or _response_in_field(record, pointer)
    if response is None and record is not document:
        response = _response_in_field(document, "")
    return response


def _response_in_field(record: Fields, pointer: str) -> Conversation | None:
    for field in _RESPONSE_FIELDS:
        candidate = _json_object(record.get(field))
        if candidate is None or is_of_other_format(candidate):
            continue
        response = _vendor_response(candidate, f"{pointer}/{field}")
        if response is not None:
            is_whole = isinstance(json_in(record[field]), Mapping)  # else joined from a stream
            return replace(response, is_streamed=not is_whole)
        if isinstance(candidate.get("role"), str) and is_message(candidate):
            message = (f"{pointer}/{field}", candidate)
            return Conversation((message,), candidate, model=model_of(candidate))
        for body_pointer, body in _located_bodies(candidate, f"{pointer}/{field}"):
            if (response := _vendor_response(body, body_pointer)) is not None:
                return response
    return None


def _located_bodies(message: Fields, pointer: str) -> Iterator[tuple[str, Fields]]:
    """Yield the bodies of a logged HTTP request or response with their JSON pointers.

    A body may contain further bodies.
    """
    for field in _BODY_FIELDS:
        body = _json_object(message.get(field))
        if body is not None and not is_of_other_format(body):
            yield f"{pointer}/{field}", body
            yield from _located_bodies(body, f"{pointer}/{field}")


def _text_response(record: Fields, pointer: str, request_messages: Messages) -> Conversation | None:
    """Return the response that is a plain text in a field of a record.

    A text that the request already has as its last message is no response.
    """
    for field in _RESPONSE_FIELDS:
        text = as_text(record.get(field))
        if text is not None and _json_object(text) is None:
            _, last_message = request_messages[-1]
            if message_text(fields_of(last_message).get("content")) == text:
                return None
            message = (f"{pointer}/{field}", {"role": "assistant", "content": text})
            return Conversation((message,), record)
    return None


def _vendor_response(record: Fields, pointer: str) -> Conversation | None:
    """Return the messages of a response in the form of a vendor's client.

    A failed response may have no messages.
    """
    messages_by_vendor = (tuple(messages_of(record, pointer)) for messages_of in _VENDORS)
    messages = next(filter(None, messages_by_vendor), ())
    error = _early_end_of(record)
    is_failed_response = error is not None and _is_response(record, pointer)
    if not messages and not is_failed_response:
        return None
    return Conversation(messages, record, usage_of(record), model_of(record), error=error)


def _is_response(record: Fields, pointer: str) -> bool:
    """Return whether its type or the field around a record shows that it is a response."""
    is_in_response_field = any(field in _RESPONSE_FIELDS for field in pointer.split("/"))
    return record.get("object") in ("response", "chat.completion") or is_in_response_field


def _anthropic_message(record: Fields, pointer: str) -> Iterator[tuple[str, object]]:
    """Yield the record itself if it is a message of Anthropic."""
    if kind_of(record) == "message" and record.get("role") == "assistant" and "content" in record:
        yield pointer, record


def _openai_or_google_messages(record: Fields, pointer: str) -> Iterator[tuple[str, object]]:
    """Yield the messages in OpenAI's choices and Google's candidates."""
    for number, choice in enumerate(items_of(record.get("choices"))):
        message = fields_of(choice).get("message")
        if is_message(message):
            yield f"{pointer}/choices/{number}/message", message
        elif isinstance(text := fields_of(choice).get("text"), str):
            yield f"{pointer}/choices/{number}", {"role": "assistant", "content": text}
    for number, candidate in enumerate(items_of(record.get("candidates"))):
        content = fields_of(candidate).get("content")
        if isinstance(content, Mapping) and isinstance(content.get("parts"), list):
            yield f"{pointer}/candidates/{number}/content", {"role": "model", **content}


def _ollama_message(record: Fields, pointer: str) -> Iterator[tuple[str, object]]:
    """Yield the only message of a response of Ollama."""
    if is_message(record.get("message")):
        yield f"{pointer}/message", record["message"]


def _bedrock_message(record: Fields, pointer: str) -> Iterator[tuple[str, object]]:
    """Yield the message of a response of Amazon Bedrock."""
    message = fields_of(record.get("output")).get("message")
    if is_message(message):
        yield f"{pointer}/output/message", message


def _cohere_message(record: Fields, pointer: str) -> Iterator[tuple[str, object]]:
    """Yield the answer of a response of Cohere as a message."""
    if "generation_id" in record and isinstance(record.get("text"), str):
        tool_calls = record.get("tool_calls")
        answer = {"role": "chatbot", "message": record["text"], "tool_calls": tool_calls}
        yield f"{pointer}/text", _from_cohere(answer)


def _openai_output_messages(record: Fields, pointer: str) -> Iterator[tuple[str, object]]:
    """Yield the messages in ``output`` of OpenAI's Responses."""
    # Records of other kinds may have a field ``output`` too.
    if _is_response(record, pointer) or any(field in record for field in _PROMPT_FIELDS):
        messages = _message_list(record.get("output")) or ()
        yield from located_items(messages, f"{pointer}/output")


_VENDORS: Final[tuple[Callable[[Fields, str], Iterator[tuple[str, object]]], ...]] = (
    _anthropic_message,
    _openai_or_google_messages,
    _ollama_message,
    _bedrock_message,
    _cohere_message,
    _openai_output_messages,
)
"""The functions that yield the messages of a vendor's response with their JSON pointers."""


def _early_end_of(response: Fields) -> str | None:
    """Return the error or the stop reason with which a response ended early."""
    if text := _error_text(response.get("error")):
        return text
    choices = items_of(first_in(response, "choices", "candidates"))
    ends = [response, fields_of(response.get("incomplete_details")), *map(fields_of, choices)]
    for end in ends:
        reason = text_in(end, *_STOP_REASON_FIELDS)
        if reason is not None and reason.lower() not in _ORDINARY_STOP_REASONS:
            return f"ended early: {reason}"
    return None


def _error_text(error: object) -> str | None:
    """Return the text of an error, which may be an object."""
    return as_text(error) or text_in(fields_of(error), "message", "code", "type")


def _message_list(value: object) -> Sequence[object] | None:
    """Return the messages in a list, or in the JSON text of a list.

    The messages may be JSON texts too.
    """
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        value = json_in(value)
    if not isinstance(value, list) or not value:
        return None
    if isinstance(value[0], str) and value[0].lstrip()[:1] == "{":
        if not mostly_messages(map(_parsed_message, value[:_CHECKED_COUNT])):
            return None
        return [_parsed_message(element) for element in value]
    if any(map(_is_cohere_message, value[:_CHECKED_COUNT])):
        value = list(map(_from_cohere, value))
    return value if mostly_messages(value) else None


def _parsed_message(element: object) -> object:
    """Parse a message that is a JSON text; return any other element unchanged."""
    message = _json_object(element)
    return element if message is None else message


def _json_object(value: object) -> Fields | None:
    """Return a JSON object, the object in a JSON text, or the object joined from a stream."""
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        value = json_in(value)
    return value if isinstance(value, Mapping) else response_in_stream(value)
