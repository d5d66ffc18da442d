"""Responses of models that were logged as streams of events, joined to whole responses.

Each event becomes a part of the response, and the parts are merged. The vendors are OpenAI (Chat
Completions and Responses), Anthropic, Google, Amazon Bedrock, Cohere and .NET's AI extensions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_lines import split_records
from mast_tui.traces.model import Problem
from mast_tui.traces.readers.document_traces import Record
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    items_of,
    json_in,
    kind_of,
    name_set,
    text_in,
    value_in,
    without,
)

_GROWING_FIELDS: Final = name_set("""
    arguments code content input reasoning reasoning_content refusal signature text thinking
    thoughtSignature tool_plan
""")
"""The fields whose texts grow; a text in any other field replaces the earlier one."""

_CALL_DELTAS: Final = {
    "response.function_call_arguments.delta": "arguments",
    "response.mcp_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
    "response.code_interpreter_call_code.delta": "code",
}
"""The field of a call to which an event of OpenAI's Responses adds text."""

_TEXT_DELTAS: Final = {
    "response.output_text.delta": ("content", "output_text", "text"),
    "response.refusal.delta": ("content", "refusal", "refusal"),
    "response.reasoning_text.delta": ("content", "reasoning_text", "text"),
    "response.reasoning_summary_text.delta": ("summary", "summary_text", "text"),
}
"""The list, the type of its part, and the field of the part to which an event adds text."""

_HEAD_CHARS: Final = 100
_STREAM_BEGINNINGS: Final = ("data:", "event:", "id:", ": ")
_SILENT_TYPES: Final = name_set("""
    content_block_stop message_stop ping content-end tool-call-end citation-start citation-end
""")
_GOOGLE_EVENT_FIELDS: Final = name_set("""
    automaticFunctionCallingHistory automatic_function_calling_history candidates createTime
    create_time modelVersion model_version parsed promptFeedback prompt_feedback sdkHttpResponse
    sdk_http_response usageMetadata usage_metadata
""")
"""The fields of a Google event without an id; a record with other fields is no such event."""
_CODE_ASSIST_FIELDS: Final = frozenset({"response", "traceId", "metadata"})
_COHERE_EVENTS: Final = name_set("""
    stream-start text-generation tool-calls-chunk tool-calls-generation citation-generation
    search-queries-generation search-results stream-end
""")
"""The events of Cohere's first API."""
_END_FIELDS: Final = ("stop_reason", "finish_reason", "stopReason", "finishReason")
_IS_WHOLE: Final = "is_whole"
_UPDATE_MARKS: Final = ("authorName", "messageId", "role")
"""The fields in which updates of different messages differ, in .NET's ``ChatResponseUpdate``."""
_FIELDS_WITHOUT_CONTENT: Final = frozenset({"error", "usage"})


def response_in_stream(value: object) -> Fields | None:
    """Return the response that was logged as a stream: a text, its lines, or a list of events."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "\n".join(value)
    if isinstance(value, str) and value[:_HEAD_CHARS].lstrip().startswith(_STREAM_BEGINNINGS):
        value = [json_in(line.decode()) for line in split_records(value.encode("utf-8", "replace"))]
    # The events of one list are one response; old events of Gemini have no id.
    values = [{"responseId": "stream", **_google_event_in(event)} for event in items_of(value)]
    return next(
        (stream.response() for _number, stream in _streams_in(values) if stream is not None), None
    )


def joined_events(records: Sequence[Record], problems: list[Problem]) -> Sequence[Record]:
    """Return the records of a log, with the events of each response joined to one record.

    If there is nothing to join, the result is ``records`` itself.

    Args:
        records: The records.
        problems: The list to which a problem is added for each cut-off response.
    """
    joined_records: list[Record] = []
    for number, stream in _streams_in([record.value for record in records]):
        record = records[number]
        if stream is None:
            joined_records.append(record)
            continue
        joined_records.append(replace(record, value=stream.response()))
        if not stream.is_complete:
            problems.append(Problem(record.location, "the stream of this response is cut off"))
    return joined_records if len(joined_records) < len(records) else records


def is_update(value: Fields) -> bool:
    """Return whether a JSON object is a part of a streamed message of .NET."""
    return "responseId" in value and isinstance(value.get("contents"), list)


def joined_updates(messages: Iterable[tuple[str, object]]) -> tuple[tuple[str, object], ...]:
    """Return the messages of a conversation, with the updates of .NET joined to whole messages.

    A joined message has the key of its first update.
    """
    joined_messages: list[tuple[str, object]] = []
    joined: dict[str, object] = {}
    for key, message in messages:
        update = fields_of(message)
        continues_updates = bool(joined) and "contents" in update and "role" not in update
        if not is_update(update) and not continues_updates:
            joined_messages.append((key, message))
            joined = {}
            continue
        # An update without a mark has that of the update before.
        marks = ((joined.get(name), update.get(name)) for name in _UPDATE_MARKS)
        if not joined or any(mark and new_mark and mark != new_mark for mark, new_mark in marks):
            joined = {}
            joined_messages.append((key, joined))
        parts = map(fields_of, items_of(update["contents"]))
        usage = next((part.get("details") for part in parts if part.get("$type") == "usage"), None)
        # Updates without a time have the time 0.
        times = [str(fields.get("createdAt") or "") for fields in (joined, update)]
        _merge(joined, {**update, "usage": usage, "createdAt": max(times)})
    return tuple(
        (key, {"role": "assistant", **fields_of(message)})
        if is_update(fields_of(message))
        else (key, message)
        for key, message in joined_messages
    )


class _Stream:
    """The response so far, merged from the parts in its events."""

    def __init__(self) -> None:
        self.fields: dict[str, object] = {}

    def add(self, part: Fields) -> None:
        """Merge the next part into the response; a part with ``_IS_WHOLE`` replaces its values."""
        if part.get(_IS_WHOLE):
            whole_indexes = [fields_of(item).get("index") for item in items_of(part.get("output"))]
            for present in items_of(self.fields.get("output")):
                if not isinstance(present, dict) or present.get("index") not in whole_indexes:
                    continue
                index = present.get("index")
                if index is not None or "type" not in present:
                    present.clear()
                    present["index"] = index
            for name, value in part.items():
                if value is not None and name != "output":
                    self.fields.pop(name, None)
        _merge(self.fields, part)

    def response(self) -> Fields:
        """Return the merged response in the form of a response without streaming."""
        outputs = self.fields.get("output")
        if isinstance(outputs, list):
            self.fields["output"] = [item for item in outputs if item != {"index": None}]
        # Anthropic's blocks then have no index, and their input is parsed JSON.
        for block in items_of(self.fields.get("content")):
            if isinstance(block, dict):
                block.pop("index", None)
                if "input" in block:
                    block["input"] = value_in(block["input"])
        return self.fields

    @property
    def lacks_id(self) -> bool:
        """True if no event had an id so far, as with Azure's first event."""
        return not (self.is_complete or text_in(self.fields, "id", "responseId"))

    @property
    def is_complete(self) -> bool:
        """True if the response has ended."""
        if "status" in self.fields:
            return self.fields["status"] != "in_progress"
        ends = [self.fields, *map(fields_of, _choices_in(self.fields))]
        return "error" in self.fields or any(first_in(end, *_END_FIELDS) for end in ends)

    def is_complete_before(self, part: Fields) -> bool:
        """Return whether this response has ended and a part begins another."""
        contents = [part.get("content"), fields_of(part.get("output")).get("message")]
        for choice in map(fields_of, _choices_in(part)):
            message = fields_of(first_in(choice, "message", "content"))
            contents.append(first_in(message, "content", "tool_calls", "parts"))
        return self.is_complete and any(contents)


def _choices_in(response: Fields) -> Sequence[object]:
    return items_of(first_in(response, "choices", "candidates"))


def _streams_in(values: Iterable[object]) -> list[tuple[int, _Stream | None]]:
    """Return the streams in a log, as pairs of the first event's number and the stream.

    A value that is no event has None as its stream. The ids in events separate simultaneous
    responses.
    """
    numbered_streams: list[tuple[int, _Stream | None]] = []
    stream_by_id: dict[str, _Stream] = {}
    current: _Stream | None = None
    for number, value in enumerate(values):
        part = _part_in(value)
        if part is None and current is not None and not current.is_complete:
            part = _google_part(_google_event_in(value))  # the last event of a stream without ids
        if part is not None and current is None and part.keys() <= _FIELDS_WITHOUT_CONTENT:
            part = None  # an error or a usage alone begins no stream
        if part is None:
            numbered_streams.append((number, None))
            continue

        response_id = text_in(part, "id", "responseId")
        stream = current
        # Azure's id comes after the first event, and names the current stream.
        current_lacks_id = current is not None and current.lacks_id
        if response_id and not current_lacks_id:
            stream = stream_by_id.get(response_id)
        if stream is None or stream.is_complete_before(part):
            stream = _Stream()
            numbered_streams.append((number, stream))
        if response_id:
            stream_by_id[response_id] = stream
        stream.add(part)
        current = stream
    return numbered_streams


def _part_in(value: object) -> Fields | None:
    """Return the part of a response in an event, or in an event inside a wrapper."""
    event = _google_event_in(value)
    wrapped_values = (event[name] for name in ("data", "chunk", "event") if name in event)
    for candidate in (event, *wrapped_values):
        part = _part_of_event(fields_of(json_in(candidate)))
        if part is not None:
            return part
    return None


def _google_event_in(value: object) -> Fields:
    """Return an event without the wrapper of Google's server for editors."""
    event = fields_of(value)
    is_wrapped = event.keys() <= _CODE_ASSIST_FIELDS and "response" in event
    return fields_of(event["response"]) if is_wrapped else event


def _google_part(event: Fields) -> Fields | None:
    """Return the part of a response in an event of Google."""
    candidates = items_of(event.get("candidates"))
    is_event = "candidates" in event and "responseId" in event
    if not is_event and event.keys() <= _GOOGLE_EVENT_FIELDS:
        is_event = bool(candidates) and all(isinstance(one, Mapping) for one in candidates)
    return {**event, "candidates": _numbered(candidates)} if is_event else None


def _part_of_event(event: Fields) -> Fields | None:
    """Return the part of a response in an event of any vendor."""
    event_type = kind_of(event)
    if event_type.startswith("response."):
        return _responses_part(event, event_type)
    delta = fields_of(event.get("delta"))
    # Cohere's event types have hyphens, such as ``content-delta``.
    if "-" in event_type and event_type not in _SILENT_TYPES and delta:
        return _cohere_part(event, delta)
    if event_type:
        return _anthropic_part(event, event_type)

    if text_in(event, "event_type") in _COHERE_EVENTS:
        return _first_cohere_part(event)
    google_part = _google_part(event)
    if google_part is not None:
        # Without an id, an event with an end may be a whole response.
        ends = (first_in(choice, *_END_FIELDS) for choice in map(fields_of, _choices_in(event)))
        return google_part if "responseId" in event or not any(ends) else None
    if event.get("object") == "text_completion":  # OpenAI's first API
        return event
    # OpenAI's Chat Completions; Azure's first chunk has only the results of its filter.
    choices = [fields_of(choice) for choice in items_of(event.get("choices"))]
    is_chunk = any("delta" in choice for choice in choices) or "prompt_filter_results" in event
    if is_chunk or event.get("object") == "chat.completion.chunk":
        whole_choices = [_choice_with_message(choice) for choice in choices]
        return {**event, "object": "chat.completion", "choices": _numbered(whole_choices)}
    return _bedrock_part(event)


def _choice_with_message(choice: Fields) -> Fields:
    """Return a choice of OpenAI's event with its ``delta`` as ``message``, as in a response."""
    delta = fields_of(choice.get("delta"))
    fields = {name: value for name, value in delta.items() if value is not None}
    return {**choice, "delta": None, "message": {"role": "assistant", "content": "", **fields}}


def _numbered(values: object) -> list[Fields]:
    """Return the objects of a list; the default ``index`` is the number in the list."""
    return [{"index": number, **fields_of(value)} for number, value in enumerate(items_of(values))]


def _anthropic_part(event: Fields, event_type: str) -> Fields | None:
    """Return the part of a message in an event of Anthropic; it may be empty."""
    if event_type == "message_start" and "content" in fields_of(event.get("message")):
        return fields_of(event["message"])
    if event_type == "message_delta" and "delta" in event:
        return {**fields_of(event["delta"]), "usage": event.get("usage")}
    if event_type == "error" and "error" in event:
        return {"error": event["error"]}
    block = dict(fields_of(first_in(event, "content_block", "delta")))
    if not event_type.startswith("content_block_") or not block:
        return {} if event_type in _SILENT_TYPES else None
    if event_type == "content_block_delta":
        block.pop("type", None)  # the type of the delta, not of the block
    if (arguments := block.pop("partial_json", None)) is not None:
        block["input"] = arguments
    return {"content": [{**block, "index": event.get("index")}]}


def _cohere_part(event: Fields, delta: Fields) -> Fields | None:
    """Return the part of a response in an event of Cohere."""
    if kind_of(event) == "message-end":
        return delta
    message = fields_of(delta.get("message"))
    texts = {name: value for name, value in message.items() if isinstance(value, str)}
    index = event.get("index")
    lists = {
        name: [{"index": index, **fields_of(message[name])}]
        for name in ("content", "tool_calls")
        if fields_of(message.get(name))
    }
    if not texts and not lists:
        return None
    return {"id": event.get("id"), "message": {**texts, **lists}}


def _first_cohere_part(event: Fields) -> Fields:
    """Return the part of a response in an event of Cohere's first API."""
    if event["event_type"] == "stream-end":
        return {**fields_of(event.get("response")), "id": None, _IS_WHOLE: True}
    has_content = event["event_type"] in ("text-generation", "tool-calls-generation")
    content_fields = ("text", "tool_calls") if has_content else ()
    part = {name: event[name] for name in content_fields if name in event}
    return {"id": event.get("generation_id"), **part}


def _responses_part(event: Fields, event_type: str) -> Fields:
    """Return what an event of OpenAI's Responses adds to the response, or the whole response."""
    response = fields_of(event.get("response"))
    if response:
        # Some servers change the id at the end, so only the first one counts.
        response_id = response.get("id") if event_type == "response.created" else None
        outputs = _numbered(response.get("output"))
        return {**response, "id": response_id, "output": outputs, _IS_WHOLE: True}

    item = fields_of(event.get("item"))
    delta = event.get("delta")
    if event_type in _CALL_DELTAS:
        item = {_CALL_DELTAS[event_type]: delta}
    elif event_type in _TEXT_DELTAS:
        list_field, part_type, field = _TEXT_DELTAS[event_type]
        index = first_in(event, "content_index", "summary_index")
        item = {list_field: [{"index": index, "type": part_type, field: delta}]}
    if not item:
        return {}
    index = event.get("output_index")
    if index is None and item.get("call_id"):
        index = f"{kind_of(item)} {item['call_id']}"
    outputs = [{**item, "index": index}]
    return {"output": outputs, _IS_WHOLE: event_type == "response.output_item.done"}


def _bedrock_part(event: Fields) -> Fields | None:
    """Return the part of a response in an event of Amazon Bedrock."""
    if (usage := fields_of(event.get("metadata")).get("usage")) is not None:
        return {"usage": usage}
    if stop := fields_of(event.get("messageStop")):
        return {"stopReason": stop.get("stopReason")}
    if start := fields_of(event.get("messageStart")):
        return {"output": {"message": {**start, "content": []}}}
    block = fields_of(first_in(event, "contentBlockStart", "contentBlockDelta", "contentBlockStop"))
    if "contentBlockIndex" not in block:
        return None
    content = fields_of(first_in(block, "start", "delta"))
    part = {**content, "index": block["contentBlockIndex"]}
    return {"output": {"message": {"role": "assistant", "content": [part] if content else []}}}


def _merge(target: dict[str, object], part: Fields) -> None:
    """Merge the fields of a part of a response into ``target``."""
    for name, value in part.items():
        present = target.get(name)
        # An empty text sets a missing field, but replaces nothing.
        is_empty = value is None or (value == "" and present is not None)
        if is_empty:
            continue
        if isinstance(value, Mapping):
            present = present if isinstance(present, dict) else {}
            _merge(present, value)
        elif isinstance(value, list):
            present = present if isinstance(present, list) else _text_parts(present)
            for item in value:
                _merge_item(present, item)
        elif isinstance(present, list) and isinstance(value, str):
            _merge_item(present, {"type": "text", "text": value})
        elif isinstance(present, str) and isinstance(value, str) and name in _GROWING_FIELDS:
            present += value
        else:
            present = value
        target[name] = present


def _text_parts(text: object) -> list[object]:
    return [{"type": "text", "text": text}] if text and isinstance(text, str) else []


def _merge_item(items: list[object], item: object) -> None:
    """Merge an item into the item that it continues, or append it to the list.

    It continues the item with the same index. Without an index, it continues the last item if both
    differ only in growing texts.
    """
    if not isinstance(item, Mapping):
        items.append(item)
        return
    continued: object = None
    if (index := item.get("index")) is not None:
        same_index = [present for present in items if fields_of(present).get("index") == index]
        continued = same_index[-1] if same_index else None
        if item.get("id") and fields_of(continued).get("id") not in (None, "", item["id"]):
            continued = None  # Some servers give all parallel calls the same index.
    elif items and not _GROWING_FIELDS.isdisjoint(item):
        fixed_fields = without(item, _GROWING_FIELDS)
        differs_only_in_texts = without(fields_of(items[-1]), _GROWING_FIELDS) == fixed_fields
        continued = items[-1] if differs_only_in_texts else None
    if not isinstance(continued, dict):
        continued = {}
        items.append(continued)
    _merge(continued, item)
