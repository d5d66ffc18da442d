"""Chats of VS Code with Copilot: exported, or stored as a document or as a log of its changes."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import TraceMeta
from mast_tui.traces.readers.exports.engine import ExportedRun, ExportFormat, result_message
from mast_tui.traces.readers.json_fields import (
    Fields,
    add_new,
    fields_at,
    fields_of,
    first_in,
    items_of,
    located_objects,
    name_set,
    text_in,
)

Messages = Iterator[tuple[str, dict[str, object]]]

_TEXT_KINDS: Final = name_set("inlineReference markdownContent markdownVuln warning")
_CALL_KINDS: Final = name_set("toolInvocationSerialized textEditGroup")
_SILENT_KINDS: Final = name_set("""
    codeblockUri command confirmation extensions externalEdit mcpServersStarting multiDiffData
    prepareToolInvocation progressMessage progressTask progressTaskSerialized pullRequest
    references undoStop
""")
_TEXT_FIELDS: Final = (
    "text",
    "value",
    "content",
    "node",
    "children",
    "name",
    "inlineReference",
    "path",
)
_SNAPSHOT: Final = 0
_APPEND: Final = 2
"""Kinds of records in a log of changes; other kinds set or delete a value."""

_LONGEST_PATH: Final = 20
_REPEATED_PROMPT: Final = re.compile(r"<userRequest>.*?</userRequest>", re.DOTALL)


def _vscode_runs(document: object) -> Iterable[ExportedRun]:
    """Yield the chat in a document, or in a log of the document's changes."""
    if fields_of(document).get("kind") == _SNAPSHOT:  # a log of one record
        document = [document]
    chat = fields_of(_replay(document) if isinstance(document, list) else document)
    requests = list(map(fields_of, items_of(chat.get("requests"))))
    if not any("response" in request for request in requests):
        return
    unknown_kinds: dict[str, None] = {}  # a set in the order of occurrence
    messages = [
        message
        for number, request in enumerate(requests)
        for message in _request_messages(request, f"/requests/{number}", unknown_kinds)
    ]
    yield ExportedRun(
        value=chat,
        messages=messages,
        native_id=text_in(chat, "sessionId"),
        meta=TraceMeta(system=text_in(chat, "responderUsername")),
        problems=[f"parts of the unknown kind `{kind}` are left out" for kind in unknown_kinds],
    )


def _replay(records: Sequence[object]) -> object:
    """Return the document that results from a log of changes."""
    document: object = None
    for record in map(fields_of, records):
        path = items_of(record.get("k"))
        is_change = bool(path) or record.get("kind") == _SNAPSHOT
        # A longer path would exceed the recursion limit.
        if is_change and len(path) <= _LONGEST_PATH:
            document = _with_change(document, path, record)
    return document


def _with_change(value: object, path: Sequence[object], change: Fields) -> object:
    """Return a copy of a value with a change at a path in it."""
    if not path:
        if change.get("kind") != _APPEND:
            return change.get("v")
        # ``i`` is the number of items to keep before the new items.
        length = change.get("i")
        kept_items = items_of(value)[: length if isinstance(length, int) else None]
        return [*kept_items, *items_of(change.get("v"))]
    step, *inner_path = path
    if isinstance(value, dict) and isinstance(step, str):
        return {**value, step: _with_change(value.get(step), inner_path, change)}
    if isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
        return [*value[:step], _with_change(value[step], inner_path, change), *value[step + 1 :]]
    return value


def _request_messages(request: Fields, pointer: str, unknown_kinds: dict[str, None]) -> Messages:
    """Yield the prompt, the answers and the error of a request; record unknown kinds of parts.

    ``toolCallRounds`` have the model's texts and calls. The parts of ``response``, which the user
    saw, repeat many of them.
    """
    metadata = fields_at(request, "result", "metadata")
    shared_fields = {
        "role": "assistant",
        "model": text_in(metadata, "resolvedModel") or text_in(request, "modelId"),
        "timestamp": request.get("timestamp"),
    }
    prompt = request.get("message")
    prompt_text = as_text(prompt) or text_in(fields_of(prompt), "text")
    for name in ("renderedGlobalContext", "renderedUserMessage"):
        # ``renderedUserMessage`` repeats the prompt, which is yielded afterwards.
        context = _REPEATED_PROMPT.sub("", _text_of(metadata.get(name))).strip()
        if context and context != prompt_text:
            context_pointer = f"{pointer}/result/metadata/{name}"
            yield context_pointer, {**shared_fields, "role": "system", "content": context}
    yield f"{pointer}/message", {**shared_fields, "role": "user", "content": prompt_text}

    rounds = list(map(fields_of, items_of(metadata.get("toolCallRounds"))))
    results = fields_of(metadata.get("toolCallResults"))
    failed_ids = _failed_call_ids(rounds, items_of(request.get("response")))
    answers = list(_round_messages(rounds, results, failed_ids, pointer, shared_fields))
    if answers:
        shared_fields["timestamp"] = answers[-1][1]["timestamp"]
    answers += _part_messages(request, rounds, pointer, shared_fields, unknown_kinds)
    if answers:
        counts = {"input": metadata.get("promptTokens"), "output": metadata.get("outputTokens")}
        answers[-1][1]["usage"] = {f"{name}_tokens": count for name, count in counts.items()}
    yield from answers

    error = text_in(fields_at(request, "result", "errorDetails"), "message")
    if error or request.get("isCanceled") is True:
        message: dict[str, object] = {"role": "system", "name": "error"}
        yield f"{pointer}/result", {**message, "content": error or "[canceled]"}


def _failed_call_ids(rounds: Iterable[Fields], parts: Iterable[object]) -> set[str]:
    """Return the ids of those calls in the rounds that failed according to the response's parts.

    The ids of parts differ from those of calls. So the calls and the parts of a tool are paired in
    order if their numbers are equal.
    """
    failures_by_tool: dict[str, list[bool]] = {}
    for part in map(fields_of, parts):
        if part.get("kind") == "toolInvocationSerialized":
            has_failed = fields_of(part.get("resultDetails")).get("isError") is True
            failures_by_tool.setdefault(text_in(part, "toolId") or "", []).append(has_failed)

    ids_by_tool: dict[str, list[str]] = {}
    for model_round in rounds:
        for call in map(fields_of, items_of(model_round.get("toolCalls"))):
            ids = ids_by_tool.setdefault(text_in(call, "name") or "", [])
            ids.append(text_in(call, "id") or "")

    return {
        call_id
        for tool, ids in ids_by_tool.items()
        if len(failures_by_tool.get(tool, ())) == len(ids)
        for call_id, has_failed in zip(ids, failures_by_tool[tool], strict=True)
        if has_failed
    }


def _round_messages(
    rounds: Iterable[Fields],
    results: Fields,
    failed_ids: Container[str],
    pointer: str,
    shared_fields: Fields,
) -> Messages:
    """Yield the model's answer of each round, and the results of its calls."""
    for number, model_round in enumerate(rounds):
        shared_fields = {
            **shared_fields,
            "timestamp": model_round.get("timestamp") or shared_fields["timestamp"],
        }
        yield (
            f"{pointer}/result/metadata/toolCallRounds/{number}",
            {
                **shared_fields,
                "content": model_round.get("response"),
                "reasoning": _thought_of(model_round),
                "tool_calls": model_round.get("toolCalls"),
            },
        )
        for call in items_of(model_round.get("toolCalls")):
            call_id = text_in(fields_of(call), "id") or ""
            if call_id in results:
                text = _text_of(fields_of(results[call_id]).get("content"))
                is_error = True if call_id in failed_ids else None
                result = {**shared_fields, **result_message(text, call_id, None, is_error=is_error)}
                yield f"{pointer}/result/metadata/toolCallResults/{call_id}", result


def _thought_of(model_round: Fields) -> str:
    return _text_of(model_round.get("thinking"))


def _part_messages(
    request: Fields,
    rounds: Sequence[Fields],
    pointer: str,
    shared_fields: Fields,
    unknown_kinds: dict[str, None],
) -> Messages:
    """Yield the texts, thoughts and calls in a response's parts that its rounds do not contain.

    A round is one answer of the model, with its calls. The text of a part is left out if a round
    has it. All thoughts are left out if any round has a thought, and calls likewise.
    """
    round_text = "\n".join(dump_text(model_round.get("response")) for model_round in rounds)
    has_calls = any(items_of(model_round.get("toolCalls")) for model_round in rounds)
    located_parts = [
        (f"{pointer}/response/{number}", fields_of(part))
        for number, part in enumerate(items_of(request.get("response")))
    ]
    for kind, group in groupby(located_parts, lambda located_part: _group_of(located_part[1])):
        parts = list(group)
        match kind:
            case "text":
                texts = []
                for _pointer, part in parts:
                    text = _text_of(part)
                    is_repeated = bool(rounds) and _shown_text(text, part) in round_text
                    if not is_repeated:
                        texts.append(text)
                if joined_text := "".join(texts).strip():
                    yield parts[0][0], {**shared_fields, "content": joined_text}
            case "thinking" if not any(map(_thought_of, rounds)):
                yield (
                    parts[0][0],
                    {**shared_fields, "reasoning": "".join(_text_of(part) for _, part in parts)},
                )
            case kind if kind in _CALL_KINDS and not has_calls:
                for part_pointer, part in parts:
                    yield from _call_messages(part, part_pointer, shared_fields)
            case kind if kind not in ("thinking", *_CALL_KINDS):
                unknown_kinds[kind] = None


def _shown_text(text: str, part: Fields) -> str:
    """Return the text of a part in the model's form: without fences, a file as its name."""
    text = text.strip("`\n ")
    return text.rpartition("/")[2] if part.get("kind") == "inlineReference" else text


def _group_of(part: Fields) -> str:
    """Return the kind of a part, or ``text`` for a part with any kind of text or with none."""
    kind = dump_text(part.get("kind"))
    return "text" if not kind or kind in _TEXT_KINDS or kind in _SILENT_KINDS else kind


def _call_messages(part: Fields, pointer: str, shared_fields: Fields) -> Messages:
    """Yield the call in a part of a response, and its result."""
    call_id = text_in(part, "toolCallId") or pointer
    details = fields_of(part.get("resultDetails"))
    specific_data = fields_of(part.get("toolSpecificData"))
    arguments = (
        first_in(specific_data, "rawInput", "commandLine")
        or details.get("input")
        or {name: part[name] for name in ("uri", "edits", "invocationMessage") if name in part}
    )
    name = text_in(part, "toolId") or "edit"
    yield (
        pointer,
        {**shared_fields, "tool_calls": [{"id": call_id, "name": name, "arguments": arguments}]},
    )

    # The details of a result are an object, or a list of objects with values.
    values = [fields_of(value).get("value") for value in items_of(part.get("resultDetails"))]
    text = (
        _text_of(details.get("output"))
        or text_in(fields_of(specific_data.get("terminalCommandOutput")), "text")
        or "\n".join(value for value in values if isinstance(value, str))
        or _text_of(part.get("pastTenseMessage"))
    )
    if text:
        exit_code = fields_of(specific_data.get("terminalCommandState")).get("exitCode")
        has_failed = details.get("isError") is True or exit_code not in (None, 0)
        result = result_message(text, call_id, None, is_error=True if has_failed else None)
        yield f"{pointer}/resultDetails", {**shared_fields, **result}


def _text_of(value: object) -> str:
    """Return the texts in a part or an output, and the names of files, in reading order."""
    texts: list[str] = []
    stack = [value]
    while stack:
        item = stack.pop()
        fields = fields_of(item)
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, list):
            stack += reversed(item)
        elif fields and fields.get("kind") not in _SILENT_KINDS:
            texts += ["\n"] if fields.get("lineBreakBefore") is True else []
            stack.append(first_in(fields, *_TEXT_FIELDS))
    return "".join(texts)


VSCODE_CHAT: Final = ExportFormat(
    name="vscode-chat", system="VS Code", marks=(b'"requests"',), runs=_vscode_runs
)


_REPLAY_ROLES: Final = ("system", "user")
"""The roles of messages that are neither the model's nor a tool's, by their number."""


def _replay_log_runs(document: object) -> Iterable[ExportedRun]:
    """Yield the chat in an export of the log of requests (``.chatreplay.json``)."""
    listed_prompts = items_of(fields_of(document).get("prompts"))
    prompts = {f"/prompts/{number}": prompt for number, prompt in enumerate(listed_prompts)}
    prompts = prompts or {"": document}
    if any("logCount" in fields_of(prompt) for prompt in prompts.values()):
        yield ExportedRun(document, list(_replay_log_messages(prompts)))


def _replay_log_messages(prompts: Mapping[str, object]) -> Messages:
    """Yield the messages, calls and results of prompts, which are in a mapping by JSON pointer.

    Each request repeats the history. Only new instructions are yielded from it.
    """
    last_prompt: str | None = None
    seen_texts: set[str] = set()
    for pointer, prompt in prompts.items():
        prompt = fields_of(prompt)
        text = text_in(prompt, "prompt")
        if text and text != last_prompt:  # A prompt with several requests is listed several times.
            yield pointer, {"role": "user", "content": text}
        last_prompt = text
        for location, entry in located_objects(prompt.get("logs"), f"{pointer}/logs"):
            if entry.get("kind") == "toolCall":
                yield from _replayed_call(entry, location)
            elif entry.get("kind") == "request":
                for message in items_of(fields_of(entry.get("requestMessages")).get("messages")):
                    instructions = _instructions_in(fields_of(message))
                    if instructions and add_new(seen_texts, instructions):
                        yield (
                            f"{location}/{len(seen_texts)}",
                            {"role": "system", "content": instructions},
                        )
                yield f"{location}/response", _replayed_answer(entry)


def _instructions_in(message: Fields) -> str:
    """Return the text of a request's message without the user's prompt; empty for an answer."""
    role = message.get("role")
    is_answer = role not in (*range(len(_REPLAY_ROLES)), *_REPLAY_ROLES)
    parts = () if is_answer else map(fields_of, items_of(message.get("content")))
    text = "".join(as_text(part.get("text")) or "" for part in parts)
    return _REPEATED_PROMPT.sub("", text).strip()


def _replayed_answer(entry: Fields) -> dict[str, object]:
    """Return the message of a model's answer with its tokens, or of its error."""
    metadata = fields_of(entry.get("metadata"))
    response = fields_of(entry.get("response"))
    texts = [as_text(text) or "" for text in items_of(response.get("message"))]
    content: object = "".join(texts)
    if response.get("type") != "success":
        reason = text_in(response, "reason", "type") or dump_text(response)
        content = [{"type": "error", "error": reason}]
    return {
        "role": "assistant",
        "content": content,
        "usage": metadata.get("usage"),
        "model": metadata.get("model"),
        "timestamp": first_in(metadata, "endTime", "startTime"),
    }


def _replayed_call(entry: Fields, location: str) -> Messages:
    """Yield a call with the thought before it, and its result."""
    call_id = as_text(entry.get("id"))
    function = {"name": entry.get("tool"), "arguments": entry.get("args")}
    thought = text_in(fields_of(entry.get("thinking")), "text")
    shared_fields = {"timestamp": entry.get("time")}
    call = {"role": "assistant", "tool_calls": [{"id": call_id, "function": function}]}
    yield location, {**call, **shared_fields, "reasoning_content": thought}
    texts = [as_text(text) or dump_text(text) for text in items_of(entry.get("response"))]
    result = {"role": "tool", "tool_call_id": call_id, "content": "\n".join(texts)}
    yield f"{location}/response", {**result, **shared_fields}


VSCODE_CHAT_REPLAY: Final = ExportFormat(
    name="vscode-chat-replay",
    system="GitHub Copilot",
    marks=(b'"logCount"', b'"logs"'),
    runs=_replay_log_runs,
)
