"""Conversations that apps and agent servers save: LM Studio, Zed, Letta, LlamaIndex, Grok's web."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import TraceMeta
from mast_tui.traces.readers.chat.values import message_text
from mast_tui.traces.readers.exports.chats import branch_problems, parents_in_list, run_of_branch
from mast_tui.traces.readers.exports.engine import (
    ExportedRun,
    ExportFormat,
    Messages,
    join_distinct_texts,
    messages_of_each,
    objects_in,
    result_message,
    step_lists,
)
from mast_tui.traces.readers.json_fields import (
    Fields,
    add_new,
    fields_at,
    fields_of,
    first_in,
    identifier_in,
    items_of,
    json_in,
    kind_of,
    located_objects,
    mostly,
    text_in,
)

_SYSTEM_PROMPT_KEY: Final = "llm.prediction.systemPrompt"


def _lm_studio_runs(document: object) -> Iterable[ExportedRun]:
    """Yield the conversations in a file of LM Studio, with the selected version of each message."""
    for pointer, conversation in objects_in(document):
        values = items_of(conversation.get("messages"))
        if not mostly(lambda value: isinstance(fields_of(value).get("versions"), list), values):
            continue
        messages = list(_lm_studio_prompt(conversation))
        omitted_count = 0
        for number, value in enumerate(values):
            versions = items_of(fields_of(value).get("versions"))
            if not versions:
                continue
            index = fields_of(value).get("currentlySelected")
            if not isinstance(index, int) or not 0 <= index < len(versions):
                index = 0
            version_pointer = f"/messages/{number}/versions/{index}"
            messages += _lm_studio_messages(fields_of(versions[index]), version_pointer)
            omitted_count += len(versions) - 1
        meta = TraceMeta(model=text_in(fields_at(conversation, "lastUsedModel"), "identifier"))
        problems = branch_problems(omitted_count)
        yield ExportedRun(conversation, messages, pointer, meta=meta, problems=problems)


def _lm_studio_prompt(conversation: Fields) -> Messages:
    settings = items_of(fields_of(conversation.get("perChatPredictionConfig")).get("fields"))
    prompts = [
        text_in(setting, "value")
        for setting in map(fields_of, settings)
        if setting.get("key") == _SYSTEM_PROMPT_KEY
    ]
    prompt = text_in(conversation, "systemPrompt") or next(iter(prompts), None)
    if prompt:
        yield "/systemPrompt", {"role": "system", "content": prompt}


def _lm_studio_messages(version: Fields, pointer: str) -> Messages:
    """Yield a version of a message: one message, or the messages of its steps."""
    role = text_in(version, "role") or "assistant"
    if not isinstance(version.get("steps"), list):
        yield pointer, {"role": role, "content": _lm_studio_blocks(version)}
        return
    model = text_in(fields_of(version.get("senderInfo")), "senderName")
    call_id_by_number: dict[str | None, str | None] = {}
    for step_pointer, step in located_objects(version.get("steps"), f"{pointer}/steps"):
        if kind_of(step) == "contentBlock":
            yield from _lm_studio_step(step, step_pointer, model, call_id_by_number)
        elif kind_of(step) != "genInfo":
            yield step_pointer, step


def _lm_studio_step(
    step: Fields, pointer: str, model: str | None, call_id_by_number: dict[str | None, str | None]
) -> Messages:
    """Yield the text, the thought or the calls of a step, then the results in it.

    A result may name its call only by number. Calls are added to ``call_id_by_number``.
    """
    calls = []
    results: list[tuple[str, object]] = []
    for index, part in enumerate(map(fields_of, items_of(step.get("content")))):
        number = identifier_in(part, "callId")
        call_id = identifier_in(part, "toolCallRequestId")
        name = part.get("name")
        if kind_of(part) == "toolCallRequest":
            call_id_by_number[number] = call_id or number
            arguments = first_in(part, "parameters", "arguments")
            calls.append({"id": call_id or number, "name": name, "arguments": arguments})
        elif kind_of(part) == "toolCallResult":
            call_id = call_id or call_id_by_number.get(number, number)
            blocks = json_in(part.get("content"))
            content = blocks if isinstance(blocks, list) else part.get("content")
            results.append((f"{pointer}/content/{index}", result_message(content, call_id, name)))

    stats = fields_at(step, "genInfo", "stats")
    message: dict[str, object] = {
        "role": text_in(step, "roleOverride") or "assistant",
        "model": model,
        "usage": {
            "prompt_tokens": stats.get("promptTokensCount"),
            "completion_tokens": stats.get("predictedTokensCount"),
        },
    }
    blocks = _lm_studio_blocks(step)
    if fields_of(step.get("style")).get("type") == "thinking":
        yield pointer, {**message, "reasoning_content": message_text(blocks)}
    elif blocks or calls:
        yield pointer, {**message, "content": blocks, "tool_calls": calls}
    yield from results


def _lm_studio_blocks(record: Fields) -> list[object]:
    """Return the content blocks of a record, without calls and results; a file as its name."""
    blocks: list[object] = []
    for part in items_of(record.get("content")):
        fields = fields_of(part)
        if kind_of(fields) == "file":
            blocks.append({"type": "text", "text": f"[file {text_in(fields, 'fileIdentifier')}]"})
        elif kind_of(fields) not in ("toolCallRequest", "toolCallResult"):
            blocks.append(part)
    return blocks


LM_STUDIO: Final = ExportFormat(
    name="lm-studio",
    system="LM Studio",
    marks=(b'"versions"', b'"currentlySelected"'),
    runs=_lm_studio_runs,
)


_ZED_RESUME: Final = "Resume"
"""A mark in place of a message, for the user's command to continue."""


def _zed_runs(document: object) -> Iterable[ExportedRun]:
    """Yield the threads in a file of Zed's agent panel, of any version."""
    for pointer, thread in objects_in(document):
        values = items_of(thread.get("messages"))
        if mostly(_is_zed_message, values):
            meta = TraceMeta(model=text_in(fields_at(thread, "model"), "model"))
            yield ExportedRun(thread, _zed_thread_messages(thread, values), pointer, meta=meta)


def _is_zed_message(value: object) -> bool:
    fields = fields_of(value)
    is_tagged = len(fields) == 1 and any(
        isinstance(fields_of(fields.get(tag)).get("content"), list) for tag in ("User", "Agent")
    )
    is_older = "role" in fields and isinstance(fields.get("segments"), list)
    return value == _ZED_RESUME or is_tagged or is_older


def _zed_thread_messages(thread: Fields, values: Sequence[object]) -> list[tuple[str, object]]:
    """Return the messages of a thread.

    The last answer to each prompt has the prompt's tokens.
    """
    last_answer_by_prompt: dict[str, dict[str, object]] = {}
    prompt_id = ""
    messages: list[tuple[str, object]] = []
    for number, value in enumerate(values):
        prompt_id = text_in(fields_at(value, "User"), "id") or prompt_id
        for pointer, message in _zed_messages(value, f"/messages/{number}"):
            messages.append((pointer, message))
            if message["role"] == "assistant":
                last_answer_by_prompt[prompt_id] = message

    for prompt_id, usage in fields_of(thread.get("request_token_usage")).items():
        if prompt_id in last_answer_by_prompt:
            last_answer_by_prompt[prompt_id]["usage"] = usage
    return messages


def _zed_messages(value: object, pointer: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield a message and the results of its calls; a mark without a message yields nothing.

    Newer threads have a message in the field ``User`` or ``Agent``.
    """
    tagged_message = fields_of(value)
    fields = fields_of(first_in(tagged_message, "User", "Agent")) or tagged_message
    is_user = "User" in tagged_message or fields.get("role") == "user"
    parts = first_in(fields, "content", "segments")
    blocks = [block for part in items_of(parts) for block in _zed_blocks(part, is_user)]
    if context := text_in(fields, "context"):
        blocks.append({"type": "text", "text": context})
    blocks += [
        {"type": "tool_use", **fields_of(call)} for call in items_of(fields.get("tool_uses"))
    ]
    role = "user" if is_user else text_in(fields, "role") or "assistant"
    if blocks:
        yield pointer, {"role": role, "content": blocks}

    # The results are an object or a list.
    results = fields.get("tool_results")
    named_results = fields_of(results).items() or enumerate(items_of(results))
    for name, result in named_results:
        record = fields_of(result)
        contents = record.get("content")
        texts = contents if isinstance(contents, list) else [contents]
        message = result_message(
            "\n".join(map(_zed_text, texts)),
            record.get("tool_use_id"),
            record.get("tool_name"),
            is_error=record.get("is_error"),
        )
        yield f"{pointer}/tool_results/{name}", message


def _zed_text(content: object) -> str:
    """Return the text of a result's content; ``[image]`` for an image."""
    fields = {name.lower(): value for name, value in fields_of(content).items()}
    if "image" in fields or "source" in fields:
        return "[image]"
    return as_text(content) or text_in(fields, "text") or dump_text(content)


def _zed_blocks(part: object, is_user: bool) -> Iterator[Fields]:
    """Yield a part of a message as a block in Anthropic's form; an unknown part unchanged."""
    fields = fields_of(part)
    mention = fields_of(fields.get("Mention"))
    thought = fields_of(fields.get("Thinking"))
    if text := text_in(fields, "Text") or text_in(mention, "content"):
        yield {"type": "text", "text": text}
    elif mention:
        yield {"type": "text", "text": f"[mention {dump_text(mention.get('uri'))}]"}
    elif "Image" in fields:
        yield {"type": "text", "text": "[image]"}
    elif thought:
        yield {"type": "thinking", "thinking": thought.get("text")}
    elif "RedactedThinking" in fields or kind_of(fields) == "RedactedThinking":
        yield {"type": "redacted_thinking"}
    elif "ToolUse" in fields:
        yield {"type": "tool_use", **fields_of(fields["ToolUse"])}
    elif kind_of(fields) == "thinking":
        kind = "text" if is_user else "thinking"
        yield {"type": kind, kind: fields.get("text")}
    elif fields and "Text" not in fields:
        yield fields


ZED: Final = ExportFormat(
    name="zed", system="Zed", marks=(b'"messages"', b'"updated_at"'), runs=_zed_runs
)


def _letta_runs(document: object) -> Iterable[ExportedRun]:
    """Yield a run for each agent in an agent file, or for each list of messages of a server."""
    file = fields_of(document)
    if "agents" in file and "blocks" in file:
        for number, agent in enumerate(map(fields_of, items_of(file["agents"]))):
            values = items_of(agent.get("messages"))
            if messages := messages_of_each(values, "/messages", _letta_stored_messages):
                meta = TraceMeta(model=text_in(fields_at(agent, "llm_config"), "model"))
                yield ExportedRun(agent, messages, f"/agents/{number}", meta=meta)
        return
    for run in step_lists(
        document,
        ("messages",),
        lambda value: (text_in(fields_of(value), "message_type") or "").endswith("_message"),
    ):
        messages = messages_of_each(run.steps, run.steps_pointer, _letta_messages)
        times = [text for step in run.steps if (text := text_in(fields_of(step), "date"))]
        if times and times[0] > times[-1]:  # The server can list the newest message first.
            messages.reverse()
        yield ExportedRun(run.run, messages, run.run_pointer)


def _letta_stored_messages(message: Fields, pointer: str) -> Messages:
    """Yield the results of a tool's message, the parts of an approval, or any other message."""
    results = [fields_of(result) for result in items_of(message.get("tool_returns"))]
    if message.get("role") == "tool" and results:
        for number, result in enumerate(results):
            texts = [result.get("func_response")]
            texts += [*items_of(result.get("stdout")), *items_of(result.get("stderr"))]
            chat = result_message(
                join_distinct_texts(texts) or message.get("content"),
                first_in(result, "tool_call_id") or message.get("tool_call_id"),
                message.get("name"),
                is_error=result.get("status") == "error",
            )
            facts = {"model": message.get("model"), "timestamp": message.get("created_at")}
            yield f"{pointer}/tool_returns/{number}", {**chat, **facts}
        return

    if message.get("role") == "approval":
        decision = {
            name: message[name]
            for name in ("approve", "denial_reason", "approvals")
            if message.get(name) not in (None, [])
        }
        if decision:
            yield f"{pointer}/approve", decision
        if not message.get("tool_calls"):
            return
        message = {**message, "role": "assistant"}
    yield pointer, message


_LETTA_ROLES: Final = {
    "system_message": "system",
    "user_message": "user",
    "assistant_message": "assistant",
}


def _letta_messages(message: Fields, pointer: str) -> Messages:
    """Yield a message of Letta's server in chat form; a message of an unknown type unchanged."""
    chat: dict[str, object] = {"role": "assistant", "timestamp": message.get("date")}
    match text_in(message, "message_type"):
        case str(kind) if kind in _LETTA_ROLES:
            chat |= {"role": _LETTA_ROLES[kind], "content": message.get("content")}
        case "reasoning_message":
            chat["reasoning_content"] = message.get("reasoning")
        case "hidden_reasoning_message":
            thought = text_in(message, "hidden_reasoning") or "[hidden reasoning]"
            chat["reasoning_content"] = thought
        case "tool_call_message" | "approval_request_message":
            calls = items_of(message.get("tool_calls")) or [message.get("tool_call")]
            chat["tool_calls"] = list(calls)
        case "tool_return_message":
            chat |= result_message(
                message.get("tool_return"),
                message.get("tool_call_id"),
                message.get("name"),
                is_error=message.get("status") == "error",
            )
        case _:
            chat = dict(message)
    yield pointer, chat


LETTA: Final = ExportFormat(name="letta", system="Letta", marks=(b'"message',), runs=_letta_runs)


def _llama_index_store_runs(document: object) -> Iterable[ExportedRun]:
    """Yield the chats in a chat store of LlamaIndex, or the one chat in a list of messages."""
    store = fields_of(document).get("store")
    is_store = isinstance(store, Mapping)
    chats = fields_of(store) if is_store else {"": document}
    is_message = _is_stored_message if is_store else _is_llama_index_message
    for name, values in chats.items():
        pointer = f"/store/{name}" if name else ""
        if mostly(is_message, items_of(values)):
            messages = [
                (f"/{number}", _llama_index_message(value))
                for number, value in enumerate(items_of(values))
            ]
            yield ExportedRun(values, messages, pointer, native_id=name or None)


def _is_llama_index_message(value: object) -> bool:
    """Return whether a value is a message that only LlamaIndex writes: with blocks, no content."""
    fields = fields_of(value)
    return {"role", "additional_kwargs", "blocks"} <= fields.keys() and "content" not in fields


def _is_stored_message(value: object) -> bool:
    return {"role", "additional_kwargs"} <= fields_of(value).keys()


def _llama_index_message(value: object) -> object:
    """Return a message in chat form; any value that is no object unchanged."""
    if not isinstance(value, Mapping):
        return value
    extras = fields_of(value.get("additional_kwargs"))
    message: dict[str, object] = {name: value.get(name) for name in ("role", "content")}
    message |= {name: extras.get(name) for name in ("tool_calls", "tool_call_id", "name")}
    thoughts = []
    blocks: list[object] = []
    calls: list[object] = []
    for block in map(fields_of, items_of(value.get("blocks"))):
        match block.get("block_type"):
            case "text":
                blocks.append({"type": "text", "text": block.get("text")})
            case "thinking":
                thoughts.append(text_in(block, "content") or "")
            case "tool_call":
                calls.append(_llama_index_call(block))
            case str(kind):
                text = text_in(block, "title", "text") or f"[{kind}]"
                blocks.append({"type": "text", "text": text})
    if blocks:
        message["content"] = blocks
    if calls and not message["tool_calls"]:
        message["tool_calls"] = calls
    return {**message, "reasoning_content": "\n".join(thoughts)} if thoughts else message


def _llama_index_call(call: object) -> dict[str, object]:
    """Return the call in a block of a message or in an event, in chat form."""
    fields = fields_of(call)
    return {
        "id": identifier_in(fields, "tool_call_id", "tool_id"),
        "name": fields.get("tool_name"),
        "arguments": fields.get("tool_kwargs"),
    }


def _llama_index_result(result: Fields) -> dict[str, object]:
    """Return the result of a call in an event, in chat form."""
    output = fields_of(result.get("tool_output"))
    content = fields_of(_llama_index_message(output)).get("content")
    return result_message(
        content or dump_text(output.get("raw_output")),
        result.get("tool_id"),
        result.get("tool_name"),
        is_error=output.get("is_error"),
    )


LLAMA_INDEX: Final = ExportFormat(
    name="llama-index",
    system="LlamaIndex",
    marks=(b'"additional_kwargs"',),
    runs=_llama_index_store_runs,
)


def _llama_index_event_runs(document: object) -> Iterable[ExportedRun]:
    """Yield the run in a log of the events of a workflow."""
    entries = items_of(document)
    if mostly(_is_llama_index_event, entries):
        log = _EventLog()
        messages = messages_of_each(entries, "", log.messages)
        cut_off_messages = list(log.unfinished_messages())
        problems = ["the last message was cut off"] if cut_off_messages else ()
        yield ExportedRun(document, [*messages, *cut_off_messages], problems=problems)


def _is_llama_index_event(value: object) -> bool:
    fields = fields_of(value)
    return "value" in fields and isinstance(fields.get("qualified_name"), str)


class _EventLog:
    """The messages in the events of a workflow, each once.

    Events repeat messages of earlier events.
    """

    def __init__(self) -> None:
        self._shown: set[tuple[object, object]] = set()
        self._streamed_answer: tuple[str, Fields] | None = None

    def messages(self, event: Fields, pointer: str) -> Messages:
        """Yield the new messages of an event; an event of an unknown type is yielded unchanged.

        Args:
            event: The event.
            pointer: Its JSON pointer.
        """
        value = fields_of(event.get("value"))
        # An event without its own class has its fields in ``_data``.
        value = fields_of(value.get("_data")) or value
        kind = (text_in(event, "qualified_name") or "").rpartition(".")[2]
        match kind:
            case "AgentStream":
                self._streamed_answer = (pointer, value)
            case "AgentInput" | "AgentSetup":
                yield from self._input_messages(value, pointer)
            case "AgentOutput":
                yield pointer, self._output_message(value)
            case "ToolCall":
                call = _llama_index_call(value)
                if add_new(self._shown, ("call", call["id"])):
                    yield pointer, {"role": "assistant", "tool_calls": [call]}
            case "ToolCallResult":
                yield pointer, _llama_index_result(value)
            case "StartEvent" | "AgentWorkflowStartEvent":
                text = text_in(value, "user_msg", "input", "query") or dump_text(value)
                if value and add_new(self._shown, ("text", text)):
                    yield pointer, {"role": "user", "content": text}
            case "StopEvent" | "AgentWorkflowStopEvent":
                result = value.get("result")
                response = fields_of(_llama_index_message(fields_of(result).get("response")))
                text = message_text(response.get("content")) or dump_text(result)
                if result is not None and add_new(self._shown, ("text", text)):
                    yield pointer, {"role": "assistant", "content": text}
            case _:
                yield pointer, event

    def _input_messages(self, value: Fields, pointer: str) -> Messages:
        """Yield the new messages of the user and the system in the input of an agent."""
        for number, message in enumerate(items_of(value.get("input"))):
            chat = fields_of(_llama_index_message(message))
            is_prompt = chat.get("role") in ("user", "system")
            if is_prompt and add_new(self._shown, ("text", message_text(chat.get("content")))):
                yield f"{pointer}/value/input/{number}", chat

    def _output_message(self, value: Fields) -> Fields:
        """Return the answer of an agent with its calls, and record them as shown."""
        self._streamed_answer = None
        chat = fields_of(_llama_index_message(value.get("response")))
        add_new(self._shown, ("text", message_text(chat.get("content"))))
        calls = [_llama_index_call(call) for call in items_of(value.get("tool_calls"))]
        for call in calls:
            add_new(self._shown, ("call", call["id"]))
        agent = text_in(value, "current_agent_name")
        tool_calls = calls or chat.get("tool_calls")
        return {**chat, "role": "assistant", "name": agent, "tool_calls": tool_calls}

    def unfinished_messages(self) -> Messages:
        """Yield the streamed part of an answer that was cut off."""
        if self._streamed_answer is not None:
            pointer, value = self._streamed_answer
            agent = text_in(value, "current_agent_name")
            yield pointer, {"role": "assistant", "name": agent, "content": value.get("response")}


LLAMA_INDEX_EVENTS: Final = ExportFormat(
    name="llama-index-events",
    system="LlamaIndex",
    marks=(b'"qualified_name"', b'"value"'),
    runs=_llama_index_event_runs,
)


def _grok_runs(document: object) -> Iterable[ExportedRun]:
    """Yield the conversations of an export of Grok, each along the branch of its last response."""
    for pointer, record in objects_in(document):
        values = [fields_of(item).get("response") for item in items_of(record.get("responses"))]
        if not any({"sender", "message"} <= fields_of(value).keys() for value in values):
            continue
        conversation = fields_of(record.get("conversation"))
        responses = {
            identifier_in(response, "_id", "response_id") or f"#{number}": (number, response)
            for number, response in enumerate(map(fields_of, values))
            if response
        }
        yield run_of_branch(
            {**record, **conversation},
            pointer,
            messages={
                response_id: list(_grok_messages(response, f"/responses/{number}/response"))
                for response_id, (number, response) in responses.items()
            },
            parents=parents_in_list(
                {
                    response_id: identifier_in(response, "parent_response_id")
                    for response_id, (_number, response) in responses.items()
                }
            ),
            leaf=text_in(conversation, "leaf_response_id"),
        )


def _grok_messages(response: Fields, pointer: str) -> Messages:
    """Yield a message of the user or of Grok with thoughts and names of files, and its error."""
    is_user = text_in(response, "sender") == "human"
    thoughts: list[object] = [response.get("thinking_trace")]
    for name, field in (("agent_thinking_traces", "thinking_trace"), ("steps", "text")):
        for value in map(fields_of, items_of(response.get(name))):
            text = value.get(field)
            thoughts += items_of(text) or [text]
    files = (f"[file {file}]" for file in items_of(response.get("file_attachments")))
    text = "\n".join(filter(None, (text_in(response, "message"), *files)))
    thought = join_distinct_texts(thoughts)
    error = as_text(response.get("error"))
    if text or thought or error is None:
        yield (
            pointer,
            {
                "role": "user" if is_user else "assistant",
                "content": text,
                "reasoning_content": thought,
                "model": response.get("model"),
                "timestamp": _grok_time(response.get("create_time")),
            },
        )
    if error is not None:
        yield f"{pointer}/error", {"role": "system", "name": "error", "content": error}


def _grok_time(value: object) -> object:
    """Return the text or the milliseconds of MongoDB's ``{"$date": TIME}``; else the value."""
    date = fields_of(value).get("$date", value)
    return fields_of(date).get("$numberLong", date)


GROK_EXPORT: Final = ExportFormat(
    name="grok-export",
    system="Grok",
    marks=(b'"conversation"', b'"responses"', b'"sender"'),
    runs=_grok_runs,
)
