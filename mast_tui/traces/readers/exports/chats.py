"""Conversations of chat products and kits.

The products are ChatGPT, claude.ai and LibreChat, the kits Semantic Kernel and OpenAI's Assistants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from mast_tui.counts import counted
from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import TraceMeta
from mast_tui.traces.readers.exports.engine import ExportedRun, ExportFormat, objects_in
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    identifier_in,
    items_of,
    kind_of,
    mostly,
    text_in,
)
from mast_tui.traces.times import unix_seconds

_THREAD_MESSAGE: Final = "thread.message"
_RUN_STEP: Final = "thread.run.step"
_DEEPEST: Final = 3


def branch_to(leaf: str, parents: Mapping[str, str | None]) -> list[str]:
    """Return the ids from the root of a tree down to a leaf.

    Args:
        leaf: The id of the last message of the branch.
        parents: The id of the parent of each message.

    Returns:
        The ids of the branch; a circle of parents ends it.
    """
    branch: dict[str, None] = {}
    current: str | None = leaf
    while current is not None and current in parents and current not in branch:
        branch[current] = None
        current = parents[current]
    return list(reversed(branch))


def _left_out(count: int) -> list[str]:
    """Return the problem that names how many messages belong to other branches."""
    if not count:
        return []
    one = "message of another branch left out"
    many = "messages of other branches left out"
    return [f"{counted(count, one, many)} (answers made anew, questions edited)"]


def _chatgpt_runs(document: object) -> Sequence[ExportedRun]:
    """Return the conversations of a ChatGPT export, each along the branch of ``current_node``.

    Some programs leave ``current_node`` out: then the branch is that of the last node.
    """
    return [
        _chatgpt_run(conversation, pointer)
        for pointer, conversation in objects_in(document)
        if any(map(_is_chatgpt_node, fields_of(conversation.get("mapping")).values()))
    ]


def _is_chatgpt_node(node: object) -> bool:
    message = fields_of(fields_of(node).get("message"))
    return "author" in message and "content" in message


def _chatgpt_run(conversation: Fields, pointer: str) -> ExportedRun:
    nodes = {name: fields_of(node) for name, node in fields_of(conversation["mapping"]).items()}
    parents = {name: as_text(node.get("parent")) for name, node in nodes.items()}
    current = as_text(conversation.get("current_node"))
    leaf = current if current in nodes else next(reversed(nodes), "")
    branch = branch_to(leaf or "", parents)
    spoken = {name for name, node in nodes.items() if _chatgpt_message(node) is not None}
    messages = [
        (f"/mapping/{name}", message)
        for name in branch
        if (message := _chatgpt_message(nodes[name])) is not None
    ]
    return ExportedRun(
        value=conversation,
        messages=messages,
        pointer=pointer,
        native_id=text_in(conversation, "conversation_id", "id"),
        meta=TraceMeta(system="ChatGPT", model=text_in(conversation, "default_model_slug")),
        problems=_left_out(len(spoken - set(branch))),
    )


def _chatgpt_message(node: Fields) -> Fields | None:
    """Return the message of a node in chat form; None for an empty one."""
    message = fields_of(node.get("message"))
    author = fields_of(message.get("author"))
    content = fields_of(message.get("content"))
    role = text_in(author, "role") or "assistant"
    chat: dict[str, object] = {
        "role": role,
        "timestamp": message.get("create_time"),
        "model": fields_of(message.get("metadata")).get("model_slug"),
    }
    text = _chatgpt_text(content)
    recipient = text_in(message, "recipient") or "all"
    if not text:
        return None
    if content.get("content_type") in ("thoughts", "reasoning_recap"):
        return {**chat, "content": None, "reasoning_content": text}
    if role == "assistant" and recipient != "all":
        call = {"name": recipient, "arguments": text}
        return {**chat, "content": None, "tool_calls": [call]}
    if role == "tool":
        return {**chat, "name": text_in(author, "name"), "content": text}
    return {**chat, "content": text}


def _chatgpt_text(content: Fields) -> str:
    parts: list[str] = []
    for part in items_of(first_in(content, "parts", "thoughts")):
        if isinstance(part, str):
            parts.append(part)
        elif kind := text_in(fields_of(part), "content_type"):
            name = kind.removesuffix("_asset_pointer")
            parts.append(text_in(fields_of(part), "text") or f"[{name}]")
        else:
            parts.append(text_in(fields_of(part), "content", "summary") or "")
    parts.append(text_in(content, "text", "result", "content") or "")
    return "\n".join(part for part in parts if part.strip())


CHATGPT: Final = ExportFormat(
    name="chatgpt-export", marks=(b'"mapping"', b'"author"'), runs=_chatgpt_runs
)


def _claude_ai_runs(document: object) -> Sequence[ExportedRun]:
    """Return the conversations of a claude.ai export, each along the branch of its last message."""
    return [
        _claude_ai_run(conversation, pointer)
        for pointer, conversation in objects_in(document)
        if isinstance(conversation.get("chat_messages"), list)
    ]


def _claude_ai_run(conversation: Fields, pointer: str) -> ExportedRun:
    listed = [fields_of(message) for message in items_of(conversation.get("chat_messages"))]
    ids = [text_in(message, "uuid") or str(number) for number, message in enumerate(listed)]
    known_ids = set(ids)
    parents: dict[str, str | None] = {}
    for number, (name, message) in enumerate(zip(ids, listed, strict=True)):
        named = text_in(message, "parent_message_uuid")
        previous = ids[number - 1] if number else None
        parents[name] = previous if named is None else (named if named in known_ids else None)
    leaf = text_in(conversation, "current_leaf_message_uuid")
    if leaf not in known_ids:
        leaf = ids[-1] if ids else ""
    branch = set(branch_to(leaf or "", parents))
    messages = [
        (f"/chat_messages/{number}", _claude_ai_message(message))
        for number, message in enumerate(listed)
        if ids[number] in branch
    ]
    return ExportedRun(
        value=conversation,
        messages=messages,
        pointer=pointer,
        native_id=text_in(conversation, "uuid"),
        meta=TraceMeta(system="claude.ai", model=text_in(conversation, "model")),
        problems=_left_out(len(listed) - len(messages)),
    )


def _claude_ai_message(message: Fields) -> Fields:
    blocks = list(items_of(message.get("content")))
    if not blocks and (text := text_in(message, "text")):
        blocks = [{"type": "text", "text": text}]
    for attachment in map(fields_of, items_of(message.get("attachments"))):
        name = text_in(attachment, "file_name") or "attachment"
        text = text_in(attachment, "extracted_content")
        blocks.append(
            {"type": "text", "text": f"[file {name}]\n{text}" if text else f"[file {name}]"}
        )
    role = "user" if message.get("sender") == "human" else "assistant"
    return {"role": role, "content": blocks, "timestamp": message.get("created_at")}


CLAUDE_AI: Final = ExportFormat(
    name="claude-ai-export", marks=(b'"chat_messages"',), runs=_claude_ai_runs
)


def _librechat_runs(document: object) -> Sequence[ExportedRun]:
    """Return the conversations of a LibreChat export, each along the branch of its last message."""
    return [
        _librechat_run(conversation, pointer, nodes)
        for pointer, conversation in objects_in(document)
        if (nodes := _librechat_nodes(conversation))
        and any("isCreatedByUser" in message for message in nodes.values())
    ]


def _librechat_nodes(conversation: Fields) -> dict[str, Fields]:
    """Return the messages under their pointers, each before its answers.

    The export has a list of messages, or a tree of messages with ``children``.
    """
    field = "messagesTree" if "messagesTree" in conversation else "messages"
    nodes: dict[str, Fields] = {}
    levels = [_numbered(f"/{field}", items_of(conversation.get(field)))]
    while levels:
        pointer, message = next(levels[-1], ("", {}))
        if not pointer:
            levels.pop()
            continue
        nodes[pointer] = message
        levels.append(_numbered(f"{pointer}/children", items_of(message.get("children"))))
    return nodes


def _numbered(pointer: str, values: Sequence[object]) -> Iterator[tuple[str, Fields]]:
    for number, value in enumerate(values):
        yield f"{pointer}/{number}", fields_of(value)


def _librechat_run(conversation: Fields, pointer: str, nodes: Mapping[str, Fields]) -> ExportedRun:
    names = {
        location: text_in(message, "messageId") or location for location, message in nodes.items()
    }
    pointers = {name: location for location, name in names.items()}
    parents: dict[str, str | None] = {}
    previous: str | None = None
    for location, name in names.items():
        above = names.get(location.rpartition("/children/")[0], previous)
        parents[name] = text_in(nodes[location], "parentMessageId") or above
        previous = name
    identified = [name for location, name in names.items() if name != location]
    branch = branch_to((identified or list(pointers))[-1], parents)
    broken = sum(location == name for location, name in names.items() if name not in branch)
    problems = _left_out(len(names) - len(branch) - broken)
    if broken:
        problems.append(f"{counted(broken, 'message')} without `messageId` left out")
    options = fields_of(conversation.get("options"))
    messages: list[tuple[str, Fields]] = []
    for field in ("promptPrefix", "system", "instructions"):
        if prompt := text_in(options, field):
            messages.append((f"/options/{field}", {"role": "system", "content": prompt}))
    messages.extend((pointers[name], _librechat_message(nodes[pointers[name]])) for name in branch)
    return ExportedRun(
        value=conversation,
        messages=messages,
        pointer=pointer,
        native_id=text_in(conversation, "conversationId"),
        meta=TraceMeta(
            system="LibreChat",
            model=text_in(options, "model") or text_in(conversation, "model"),
        ),
        problems=problems,
    )


def _librechat_message(message: Fields) -> Fields:
    parts = [_librechat_part(part) for part in items_of(message.get("content"))]
    if not parts and (text := text_in(message, "text")):
        kind = "error" if message.get("error") is True else "text"
        parts.append({"type": kind, "text": text})
    for file in map(fields_of, items_of(message.get("files"))):
        parts.append({"type": "text", "text": f"[file {text_in(file, 'filename') or 'file'}]"})
    chat: dict[str, object] = {"content": parts, "timestamp": message.get("createdAt")}
    if message.get("isCreatedByUser") is True:
        return {**chat, "role": "user"}
    return {
        **chat,
        "role": "assistant",
        "name": text_in(message, "sender"),
        "model": message.get("model"),
        "usage": {
            "prompt_tokens": message.get("promptTokens"),
            "completion_tokens": message.get("tokenCount"),
        },
    }


def _librechat_part(part: object) -> object:
    """Return a part of a content as Anthropic and Vercel's AI SDK spell it."""
    fields = fields_of(part)
    kind = kind_of(part)
    if kind == "think":
        thought = fields.get("think")
        return {"type": "thinking", "thinking": text_in(fields_of(thought), "value") or thought}
    if kind != "tool_call":
        return part
    call = fields_of(fields.get("tool_call"))
    details = fields_of(call.get(kind_of(call))) or call  # assistants name the details by the type
    output = first_in(details, "output", "outputs")
    return {
        "type": "tool-invocation",
        "toolInvocation": {
            "toolCallId": call.get("id"),
            "toolName": text_in(details, "name") or kind_of(call) or "tool",
            "args": first_in(details, "args", "arguments", "input"),
            "output": None if output == "" and call.get("progress") != 1 else output,
        },
    }


LIBRECHAT: Final = ExportFormat(
    name="librechat-export", marks=(b'"messageId"', b'"isCreatedByUser"'), runs=_librechat_runs
)


def _semantic_kernel_runs(document: object) -> Sequence[ExportedRun]:
    """Return the run in a chat history of Semantic Kernel, in .NET's or Python's spelling."""
    fields = fields_of(document)
    listed = document if isinstance(document, list) else first_in(fields, "messages", "Messages")
    messages = items_of(listed)
    if not mostly(lambda message: _items_in(fields_of(message)) is not None, messages):
        return ()
    prefix = "" if isinstance(document, list) else "/messages"
    return [
        ExportedRun(
            value=document,
            messages=[
                (f"{prefix}/{number}", _semantic_kernel_message(fields_of(message)))
                for number, message in enumerate(messages)
            ],
            meta=TraceMeta(system="Semantic Kernel"),
        )
    ]


def _items_in(message: Fields) -> Sequence[object] | None:
    """Return the items of a message where they are typed as Semantic Kernel types them."""
    items = first_in(message, "Items", "items")
    if not isinstance(items, list):
        return None
    typed = all("$type" in fields_of(item) or "content_type" in fields_of(item) for item in items)
    return items if typed else None


def _semantic_kernel_message(message: Fields) -> Fields:
    role = first_in(message, "Role", "role")
    label = text_in(fields_of(role), "Label", "label") or as_text(role) or "assistant"
    items = _items_in(message) or ()
    return {
        "role": "user" if label.lower() == "user" else label.lower(),
        "name": first_in(message, "AuthorName", "name"),
        "content": list(_blocks(items)),
        "model": first_in(message, "ModelId", "ai_model_id"),
    }


def _blocks(items: Sequence[object]) -> Iterator[Fields]:
    """Yield the items of a message as content blocks."""
    for item in map(fields_of, items):
        kind = text_in(item, "$type", "content_type") or ""
        name = ".".join(
            text
            for text in (
                text_in(item, "PluginName", "plugin_name"),
                text_in(item, "FunctionName", "function_name"),
            )
            if text
        ) or text_in(item, "name")
        if kind in ("FunctionCallContent", "function_call"):
            arguments = first_in(item, "Arguments", "arguments")
            call_id = identifier_in(item, "Id", "id")
            yield {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
        elif kind in ("FunctionResultContent", "function_result"):
            result = first_in(item, "Result", "result")
            call_id = identifier_in(item, "CallId", "call_id", "id")
            yield {
                "type": "tool_result",
                "tool_use_id": call_id,
                "name": name,
                "content": dump_text(result),
            }
        elif (text := first_in(item, "Text", "text")) is not None:
            yield {"type": "text", "text": dump_text(text)}
        else:
            yield {"type": kind_of(item) or kind, **item}


SEMANTIC_KERNEL: Final = ExportFormat(
    name="semantic-kernel", marks=(b'tems"',), runs=_semantic_kernel_runs
)


def _assistants_runs(document: object) -> Sequence[ExportedRun]:
    """Return the thread in lists of messages and run steps, as OpenAI's Assistants API has them.

    The API lists the newest first, so that all are put in the order of their times.
    """
    objects = list(_assistants_objects(document, "", 0))
    if not objects:
        return ()
    objects.sort(key=lambda item: unix_seconds(item[1].get("created_at")) or 0.0)
    messages = [message for pointer, item in objects for message in _assistants(pointer, item)]
    thread = next((text_in(item, "thread_id") for _pointer, item in objects), None)
    return [ExportedRun(document, messages, native_id=thread)]


def _assistants_objects(value: object, pointer: str, depth: int) -> Iterator[tuple[str, Fields]]:
    """Yield the messages and run steps in a value, at most three levels down."""
    fields = fields_of(value)
    if fields.get("object") in (_THREAD_MESSAGE, _RUN_STEP):
        yield pointer, fields
    elif depth < _DEEPEST:
        members = {str(number): item for number, item in enumerate(items_of(value))}
        for name, item in (members or fields).items():
            yield from _assistants_objects(item, f"{pointer}/{name}", depth + 1)


def _assistants(pointer: str, item: Fields) -> Iterator[tuple[str, Fields]]:
    """Yield the messages of a thread's message, or of the calls of a run step."""
    time = item.get("created_at")
    if item.get("object") == _THREAD_MESSAGE:
        yield pointer, item
        return
    calls = items_of(fields_of(item.get("step_details")).get("tool_calls"))
    for number, call in enumerate(map(fields_of, calls)):
        call_pointer = f"{pointer}/step_details/tool_calls/{number}"
        name = kind_of(call)
        details = fields_of(call.get(name))
        asked = {
            "id": call.get("id"),
            "name": text_in(details, "name") or name,
            "arguments": first_in(details, "arguments", "input"),
        }
        yield call_pointer, {"role": "assistant", "tool_calls": [asked], "timestamp": time}
        output = first_in(details, "output", "outputs", "results")
        if isinstance(output, list):
            output = "\n".join(
                text_in(fields_of(part), "logs") or dump_text(part) for part in output
            )
        if output is not None:
            yield (
                f"{call_pointer}/output",
                {
                    "role": "tool",
                    "tool_call_id": call.get("id"),
                    "content": output,
                    "timestamp": item.get("completed_at"),
                },
            )
    if error := fields_of(item.get("last_error")):
        text = text_in(error, "message", "code")
        yield f"{pointer}/last_error", {"role": "system", "name": "error", "content": text}


OPENAI_ASSISTANTS: Final = ExportFormat(
    name="openai-assistants", marks=(b'"thread.', b'"object"'), runs=_assistants_runs
)
