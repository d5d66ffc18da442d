"""The lists, records and logs in a JSON value that hold the messages of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, canonical_bytes
from mast_tui.traces.model import Tokens
from mast_tui.traces.readers.chat import a2a
from mast_tui.traces.readers.chat.turns import is_message
from mast_tui.traces.readers.chat.values import message_text, model_of, usage_of
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    first_in,
    items_of,
    json_in,
    kind_of,
    mostly,
    name_in,
    names,
    text_in,
)

Messages = tuple[tuple[str, object], ...]
"""Messages in reading order, each under its JSON pointer."""

_CONTAINERS: Final = names("""
    messages history traj trajectory conversation conversations input contents events
    chat_history message_history all_messages intermediate_steps
""")
_ANSWERED: Final = frozenset({"messages", "input", "contents"})
"""The containers of a request to a model, beside which there may be its response."""

_NESTS: Final = names("""
    data request request_body body inputs input values state result session conversation
    trajectory trace run response result output outputs task
""")
_RESPONSES: Final = ("response", "completion", "response_body", "output")
_PROMPTS: Final = ("input", "prompt", "contents")
_SYSTEMS: Final = names("""
    system systemInstruction system_instruction system_prompt systemPrompt
""")
_RESPONSE_OBJECTS: Final = ("response", "chat.completion")

_FOREIGN: Final[tuple[frozenset[str], ...]] = tuple(
    map(
        frozenset,
        (
            ("trajectory", "history", "info"),
            ("steps", "agent"),
            ("steps", "schema_version"),
            ("eval", "samples"),
            ("cells", "nbformat"),
            ("sessionId", "uuid"),
            ("type", "payload"),
            ("run_type",),
            ("dotted_order",),
            ("observations",),
            ("op_name",),
            ("span_attributes",),
            ("span_data",),
            ("span_id",),
            ("spans",),
            ("traceId",),
            ("resourceSpans",),
            ("resource_spans",),
        ),
    )
)
"""Fields of records of other formats that hold messages too."""

_LISTS: Final = frozenset({"trajectory", "steps", "samples", "observations", "spans"})
"""The fields of ``_FOREIGN`` that count only as lists: beside messages they may be texts."""

_LOOKED_AT: Final = 20


@dataclass(frozen=True, slots=True)
class Conversation:
    """A run's messages and the record around them.

    The last ``answers`` messages are a model's response, if the file keeps responses apart.
    ``usage`` and ``model`` belong to that response. ``error`` is the reason if it is missing.
    """

    messages: Messages
    record: Fields
    usage: Tokens | None = None
    model: str | None = None
    answers: int = 0
    error: str | None = None


def mostly_messages(values: Iterable[object]) -> bool:
    """Return whether at least half of the first values are chat messages."""
    return mostly(is_message, values)


def conversation_in(value: object) -> Conversation | None:
    """Return the messages in a JSON value: a list of messages, or a record that holds messages.

    The messages may be in an object of the record, and be JSON texts. A request and its response
    are one conversation.
    """
    if isinstance(value, list):
        listed = _message_list(value)
        return None if listed is None else Conversation(_pointers("", listed), {})
    if not isinstance(value, Mapping) or _is_foreign(value):
        return None
    holders: list[tuple[str, Fields]] = [("", value)]
    for field in _NESTS:
        inner = _json_object(value.get(field))
        if inner is not None and not _is_foreign(inner):
            holders.append((f"/{field}", inner))
    for pointer, record in holders:
        if a2a.is_task(record) and (messages := a2a.task_messages(record, pointer)):
            return Conversation(messages, {**record, "outcome": a2a.task_outcome(record)})
    if (logged := _bedrock_log(value)) is not None:
        return logged
    for find in (_request_and_answer, _answer_alone):
        for pointer, record in holders:
            if (conversation := find(record, pointer, value)) is not None:
                return conversation
    return None


def is_set(document: object) -> bool:
    """Return whether a JSON document is a list of conversations."""
    return isinstance(document, list) and any(map(conversation_in, document[:_LOOKED_AT]))


def _bedrock_log(record: Fields) -> Conversation | None:
    """Return the request and the answer in a record of Bedrock's log of invocations."""
    request_pointer = "/input/inputBodyJson"
    request = fields_at(record, "input", "inputBodyJson")
    container, messages = _request_messages(request, request_pointer)
    if container is None:
        return None
    answer_pointer = "/output/outputBodyJson"
    answer = _own_answer(fields_at(record, "output", "outputBodyJson"), answer_pointer)
    conversation = _conversation(request, request_pointer, record, messages, answer)
    return replace(conversation, model=conversation.model or name_in(record, "modelId"))


def _request_and_answer(record: Fields, pointer: str, document: Fields) -> Conversation | None:
    """Return the messages of a request with the response to it; None without messages.

    Args:
        record: The record of the request.
        pointer: The pointer to the record in the document.
        document: The whole document; the record itself if nothing is around it.
    """
    container, request_messages = _request_messages(record, pointer)
    if container is None:
        return None
    answer = None
    if container in _ANSWERED:
        answer = (
            _response_in(record, pointer, document)
            or _text_answer(record, pointer, request_messages)
            or _text_answer(document, "", request_messages)
        )
    return _conversation(record, pointer, document, request_messages, answer)


def _answer_alone(record: Fields, pointer: str, document: Fields) -> Conversation | None:
    """Return the messages of a response whose request is a text or unknown; None without any."""
    answer = _response_in(record, pointer, document)
    if answer is not None:
        return _conversation(record, pointer, document, _prompt(record, pointer), answer)
    output = _message_list(record.get("output"))
    if output is None:
        return None
    return _conversation(record, pointer, document, _pointers(f"{pointer}/output", output), None)


def _conversation(
    record: Fields,
    pointer: str,
    document: Fields,
    request_messages: Messages,
    answer: Conversation | None,
) -> Conversation:
    """Return the conversation of a request and its answer, with the system prompt first.

    Args:
        record: The record of the request.
        pointer: The pointer to the record in the document.
        document: The whole document; the record itself if nothing is around it.
        request_messages: The messages of the request.
        answer: The response; None if there is no response, so that its error is looked up.

    Returns:
        The messages, with the fields of the record and of the document as metadata.
    """
    metadata = record if record is document else {**record, **document}
    messages = _with_logged_prompts(record, pointer, request_messages)
    system = _system(record, pointer)
    if not (system and messages and _say_the_same(system[0][1], messages[0][1])):
        messages = system + messages
    if answer is None:
        error = _response_error(record) or _response_error(document)
        return Conversation(messages, metadata, model=model_of(record), error=error)
    answered = answer.messages
    if request_messages and answered and _are_equal(request_messages[-1][1], answered[0][1]):
        answered = answered[1:]  # the log of the request holds the answer already
    model = answer.model or model_of(record)
    return Conversation(messages + answered, metadata, answer.usage, model, len(answered))


def _response_error(record: Fields) -> str | None:
    """Return the text of the error that came instead of a response, else None."""
    for name in _RESPONSES:
        if name not in record:
            continue
        response = _json_object(record[name]) or {}
        error = first_in(response, "error") or (None if response else record.get("error"))
        if text := as_text(error) or text_in(fields_of(error), "message", "code", "type"):
            return text
    return None


def _say_the_same(left: object, right: object) -> bool:
    """Return whether two messages are system prompts of the same text."""
    first = fields_of(left)
    second = fields_of(right)
    return (
        first.get("role") == second.get("role")
        and "content" in first
        and message_text(first["content"]) == message_text(second.get("content"))
    )


def _are_equal(left: object, right: object) -> bool:
    """Return whether two JSON values are equal, however deeply they are nested."""
    return canonical_bytes(left) == canonical_bytes(right)


def _request_messages(record: Fields, pointer: str) -> tuple[str | None, Messages]:
    """Return the name of the field that lists a record's messages, and the messages."""
    for container in _CONTAINERS:
        listed = record.get(container)
        if container == "contents" and isinstance(listed, list):
            listed = list(map(_with_role, listed))
        if (messages := _message_list(listed)) is not None:
            return container, _pointers(f"{pointer}/{container}", messages)
    return None, ()


def _with_role(content: object) -> object:
    """Return a content of Gemini's with its role; a content without a role is a user's."""
    if isinstance(content, Mapping) and "parts" in content and content.get("role") is None:
        return {**content, "role": "user"}
    return content


def _prompt(record: Fields, pointer: str) -> Messages:
    """Return the prompt of a request that is a text."""
    for field in _PROMPTS:
        if as_text(record.get(field)):
            return ((f"{pointer}/{field}", {"role": "user", "content": record[field]}),)
    return ()


def _system(record: Fields, pointer: str) -> Messages:
    """Return the system prompt beside the messages."""
    if "input" in record or "output" in record:
        instructions = record.get("instructions")
        if isinstance(instructions, list) and mostly_messages(instructions):
            return _pointers(f"{pointer}/instructions", instructions)
        if as_text(instructions):
            return ((f"{pointer}/instructions", {"role": "system", "content": instructions}),)
    for field in _SYSTEMS:
        value = record.get(field)
        if isinstance(value, Mapping) and isinstance(value.get("parts"), list):
            return ((f"{pointer}/{field}", {"role": "system", "parts": value["parts"]}),)
        if value and (field == "system" or isinstance(value, str)):
            return ((f"{pointer}/{field}", {"role": "system", "content": value}),)
    return ()


def _with_logged_prompts(record: Fields, pointer: str, events: Messages) -> Messages:
    """Return the events of a session of Google's ADK with the prompts that its log of requests has.

    Each prompt is before the first event that it led to, and the first one before all events.
    """
    prompts: dict[str, tuple[str, object]] = {}
    seen: set[str] = set()
    for number, request in enumerate(items_of(record.get("event_logs"))):
        config = fields_at(request, "model_request", "config")
        prompt = config.get("system_instruction")
        parts = prompt.get("parts") if isinstance(prompt, Mapping) else prompt
        text = as_text(message_text(parts))
        if text is not None and text not in seen:
            seen.add(text)
            prompt_pointer = (
                f"{pointer}/event_logs/{number}/model_request/config/system_instruction"
            )
            event_id = as_text(fields_of(request).get("event_id")) or prompt_pointer
            prompts[event_id] = (prompt_pointer, {"role": "system", "content": text})
    if not prompts:
        return events
    first = prompts.pop(next(iter(prompts)))
    messages = [first]
    for location, event in events:
        event_prompt = prompts.pop(as_text(fields_of(event).get("id")) or "", None)
        if event_prompt is not None:
            messages.append(event_prompt)
        messages.append((location, event))
    return (*messages, *prompts.values())


def _response_in(record: Fields, pointer: str, document: Fields) -> Conversation | None:
    """Return the response that a record is, or that is beside the request in it."""
    answer = _own_answer(record, pointer) or _answer_in_field(record, pointer)
    if answer is None and record is not document:
        answer = _answer_in_field(document, "")
    return answer


def _answer_in_field(record: Fields, pointer: str) -> Conversation | None:
    """Return the response in a field of a record, None if no field has one."""
    for field in _RESPONSES:
        inner = _json_object(record.get(field))
        if inner is None or _is_foreign(inner):
            continue
        answer = _own_answer(inner, f"{pointer}/{field}")
        if answer is not None:
            return answer
        if isinstance(inner.get("role"), str) and is_message(inner):
            message = (f"{pointer}/{field}", inner)
            return Conversation((message,), inner, model=model_of(inner))
    return None


def _text_answer(record: Fields, pointer: str, request_messages: Messages) -> Conversation | None:
    """Return the response that is a bare text beside the messages, unless they end with it."""
    for field in _RESPONSES:
        text = as_text(record.get(field))
        if text is not None and _json_object(text) is None:
            if message_text(fields_of(request_messages[-1][1]).get("content")) == text:
                return None
            message = (f"{pointer}/{field}", {"role": "assistant", "content": text})
            return Conversation((message,), record)
    return None


def _own_answer(record: Fields, pointer: str) -> Conversation | None:
    """Return the messages of a response of OpenAI's clients, Anthropic's, Gemini's or Ollama's."""
    if kind_of(record) == "message" and record.get("role") == "assistant" and "content" in record:
        return Conversation(((pointer, record),), record)
    messages: list[tuple[str, object]] = []
    for number, choice in enumerate(items_of(record.get("choices"))):
        message = fields_of(choice).get("message")
        if is_message(message):
            messages.append((f"{pointer}/choices/{number}/message", message))
        elif isinstance(text := fields_of(choice).get("text"), str):
            messages.append((f"{pointer}/choices/{number}", {"role": "assistant", "content": text}))
    for number, candidate in enumerate(items_of(record.get("candidates"))):
        content = fields_of(candidate).get("content")
        if isinstance(content, Mapping) and isinstance(content.get("parts"), list):
            messages.append(
                (f"{pointer}/candidates/{number}/content", {"role": "model", **content})
            )
    if not messages and is_message(record.get("message")):
        messages.append((f"{pointer}/message", record["message"]))
    in_output = fields_of(record.get("output")).get("message")  # as Bedrock answers
    if not messages and is_message(in_output):
        messages.append((f"{pointer}/output/message", in_output))
    is_response = (
        record.get("object") in _RESPONSE_OBJECTS or pointer.rpartition("/")[-1] in _RESPONSES
    )
    if not messages and (is_response or any(prompt in record for prompt in _PROMPTS)):
        items = _message_list(record.get("output")) or ()
        messages.extend(_pointers(f"{pointer}/output", items))
    if not messages:
        return None
    return Conversation(tuple(messages), record, usage_of(record), model_of(record))


def _message_list(value: object) -> Sequence[object] | None:
    """Return ``value`` if it is a list of messages, or the list in its JSON text; else None."""
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        value = json_in(value)
    if not isinstance(value, list) or not value:
        return None
    if isinstance(value[0], str) and value[0].lstrip()[:1] == "{":
        if not mostly_messages(map(_parsed_message, value[:_LOOKED_AT])):
            return None
        return [_parsed_message(element) for element in value]
    return value if mostly_messages(value) else None


def _parsed_message(element: object) -> object:
    """Return a message that is a JSON text; any other element as it is."""
    message = _json_object(element)
    return element if message is None else message


def _json_object(value: object) -> Fields | None:
    """Return ``value`` if it is a JSON object, or the object in its text; else None."""
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        value = json_in(value)
    return value if isinstance(value, Mapping) else None


def _pointers(container: str, messages: Sequence[object]) -> Messages:
    return tuple((f"{container}/{number}", message) for number, message in enumerate(messages))


def _is_foreign(record: Fields) -> bool:
    """Return whether a record has the fields of another format that holds messages too."""
    return any(
        fields <= record.keys()
        and all(isinstance(record[field], list) for field in fields & _LISTS)
        for fields in _FOREIGN
    )
