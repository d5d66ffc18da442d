"""Conversations of chat products and kits.

The products are ChatGPT, DeepSeek, Open WebUI, claude.ai and LibreChat, the kits Semantic Kernel
and OpenAI's Assistants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from mast_tui.counts import counted
from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import TraceMeta
from mast_tui.traces.readers.exports.engine import (
    ExportedRun,
    ExportFormat,
    Messages,
    messages_of_each,
    objects_in,
    result_message,
    step_lists,
)
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    identifier_in,
    items_of,
    kind_of,
    located_objects,
    name_set,
    text_in,
    texts_in,
)
from mast_tui.traces.times import unix_seconds

_THREAD_MESSAGE: Final = "thread.message"
_RUN: Final = "thread.run"
_RUN_STEP: Final = "thread.run.step"
_MAX_DEPTH: Final = 3
_KERNEL_LISTS: Final = (
    "messages",
    "Messages",
    "chat_history.messages",
    "chatHistory.messages",
    "ChatHistory",
    "chat_history",
)


def parents_in_list(named_parents: Mapping[str, str | None]) -> dict[str, str | None]:
    """Map the id of each message in a list to the id of its parent.

    The default parent is the previous message. An unknown parent becomes None.
    """
    parents: dict[str, str | None] = {}
    previous_id: str | None = None
    for message_id, parent_id in named_parents.items():
        if parent_id is None:
            parents[message_id] = previous_id
        else:
            parents[message_id] = parent_id if parent_id in named_parents else None
        previous_id = message_id
    return parents


def branch_problems(count: int) -> list[str]:
    """Return a problem with the number of messages on other branches, if there are any."""
    if count == 0:
        return []
    singular = "message of another branch left out"
    plural = "messages of other branches left out"
    return [f"{counted(count, singular, plural)} (regenerated answers, edited questions)"]


def _chatgpt_runs(document: object) -> Iterable[ExportedRun]:
    """Return the conversations of a ChatGPT export, each along one branch."""
    for run in _mapped_runs(document, ("author", "content"), _chatgpt_message):
        _link_chatgpt_results(run.messages)
        yield run


def _mapped_runs(
    document: object,
    message_fields: Sequence[str],
    message_of: Callable[[Fields], dict[str, object] | None],
) -> Iterable[ExportedRun]:
    """Yield the conversations of an export with a tree of messages under ``mapping``.

    Args:
        message_fields: The fields of the product's messages.
        message_of: Returns the message of a node in chat form.
    """
    for pointer, conversation in objects_in(document):
        mapping = fields_of(conversation.get("mapping"))
        nodes = {node_id: fields_of(node) for node_id, node in mapping.items()}
        node_messages = (fields_of(node.get("message")) for node in nodes.values())
        if any(message.keys() >= set(message_fields) for message in node_messages):
            yield run_of_branch(
                conversation,
                pointer,
                messages={
                    node_id: [(f"/mapping/{node_id}", message)]
                    for node_id, node in nodes.items()
                    if (message := message_of(node)) is not None
                },
                parents=_chatgpt_parents(nodes),
                leaf=text_in(conversation, "current_node"),
                model=text_in(conversation, "default_model_slug"),
            )


def run_of_branch(
    conversation: Fields,
    pointer: str,
    *,
    messages: Mapping[str, Sequence[tuple[str, object]]],
    parents: Mapping[str, str | None],
    leaf: str | None,
    model: str | None = None,
) -> ExportedRun:
    """Return a conversation along one branch of its tree of nodes.

    The branch begins at a node without a known parent. A cycle of parents ends it too.

    Args:
        conversation: The conversation.
        pointer: The JSON pointer to it in the document.
        messages: The messages of each node, with their JSON pointers in the conversation.
        parents: The parent of each node.
        leaf: The last node of the branch; by default the last node without children.
        model: The model, if the conversation names it.
    """
    if leaf is None or leaf not in parents:
        inner_nodes = set(parents.values())
        leaf = max(reversed(list(parents)), key=lambda node: node not in inner_nodes, default="")
    branch: dict[str, None] = {}
    node_id: str | None = leaf
    while node_id is not None and node_id in parents and node_id not in branch:
        branch[node_id] = None
        node_id = parents[node_id]
    return ExportedRun(
        value=conversation,
        messages=[message for node_id in reversed(branch) for message in messages.get(node_id, ())],
        pointer=pointer,
        native_id=text_in(conversation, "conversation_id", "uuid", "id"),
        meta=TraceMeta(model=model),
        problems=branch_problems(len(messages.keys() - branch.keys())),
    )


def _chatgpt_parents(nodes: dict[str, Fields]) -> dict[str, str | None]:
    """Return the parent of each node: the parent that it names, else the node that lists it.

    If no node has a parent, as in shortened exports, each follows the node before it.
    """
    listing_nodes = {
        child_id: node_id
        for node_id, node in reversed(nodes.items())
        for child_id in map(as_text, items_of(node.get("children")))
    }
    parents = {
        node_id: as_text(node.get("parent")) or listing_nodes.get(node_id)
        for node_id, node in nodes.items()
    }
    if any(parents.values()):
        return parents
    return dict(zip(nodes, (None, *nodes), strict=False))


def _link_chatgpt_results(messages: Sequence[tuple[str, object]]) -> None:
    """Set the ids of calls and the call ids of results, which ChatGPT's export lacks.

    The id of a call is the pointer of its message. A result answers the last call of its tool since
    the user's last message, else the last call of any tool.
    """
    call_id_by_family: dict[str, str] = {}
    last_call_id: str | None = None
    for pointer, message in messages:
        assert isinstance(message, dict)
        if message["role"] == "user":
            call_id_by_family.clear()
            last_call_id = None
        for call in items_of(message.get("tool_calls")):
            last_call_id = pointer
            call_id_by_family[_tool_family(fields_of(call).get("name"))] = pointer
            message["tool_calls"] = [{**fields_of(call), "id": pointer}]
        if message["role"] == "tool":
            # A result of ``web.run`` may answer a call of ``web``.
            family = _tool_family(message.get("name"))
            message["tool_call_id"] = call_id_by_family.get(family, last_call_id)


def _tool_family(tool: object) -> str:
    """Return the part of a tool's name before the first dot."""
    return (as_text(tool) or "").partition(".")[0]


_CHATGPT_FIELDS_WITHOUT_TEXT: Final = name_set("content_type language source_analysis_msg_id")


def _chatgpt_message(node: Fields) -> dict[str, object] | None:
    """Return the message of a node in chat form, if it has a text."""
    message = fields_of(node.get("message"))
    author = fields_of(message.get("author"))
    content = message.get("content")
    kind = fields_of(content).get("content_type")
    metadata = fields_of(message.get("metadata"))
    is_context = kind in ("user_editable_context", "model_editable_context")
    role = "system" if is_context else text_in(author, "role") or "assistant"
    chat: dict[str, object] = {
        "role": role,
        "timestamp": message.get("create_time"),
        "model": metadata.get("model_slug"),
    }
    file_notes = map(_file_note, items_of(metadata.get("attachments")))
    text = "\n".join(line for line in (_chatgpt_text(content), *file_notes) if line)
    if not text:
        return None
    if kind in ("thoughts", "reasoning_recap"):
        return {**chat, "content": None, "reasoning_content": text}
    recipient = text_in(message, "recipient") or "all"
    if role == "assistant" and recipient != "all":  # a call, whose recipient is a tool
        call = {"name": recipient, "arguments": text}
        return {**chat, "content": None, "tool_calls": [call]}
    if role == "tool":
        result = {**chat, "name": text_in(author, "name"), "content": text}
        return {**result, "is_error": True} if kind == "system_error" else result
    return {**chat, "content": text}


def _chatgpt_text(content: object) -> str:
    """Return the text of a message's content; for an unknown type, the texts in all fields."""
    if not isinstance(content, Mapping):
        return as_text(content) or ""
    parts = [
        _chatgpt_part(part)
        for field in ("parts", "thoughts")
        for part in items_of(content.get(field))
    ]
    parts.append(text_in(content, "text", "result", "content", "parts") or "")
    text = "\n".join(part for part in parts if part.strip())
    other_fields = (field for field in content if field not in _CHATGPT_FIELDS_WITHOUT_TEXT)
    return text or texts_in(content, *other_fields)


def _chatgpt_part(part: object) -> str:
    fields = fields_of(part)
    if kind := text_in(fields, "content_type"):
        return text_in(fields, "text") or f"[{kind.removesuffix('_asset_pointer')}]"
    return texts_in(fields, "summary", "content") or dump_text(part)


CHATGPT: Final = ExportFormat(
    name="chatgpt-export", system="ChatGPT", marks=(b'"mapping"', b'"author"'), runs=_chatgpt_runs
)


def _deepseek_message(node: Fields) -> dict[str, object] | None:
    """Return the message of a node in chat form, if it has a text."""
    message = fields_of(node.get("message"))
    fragments = list(map(fields_of, items_of(message.get("fragments"))))
    blocks = [block for fragment in fragments for block in _deepseek_blocks(fragment)]
    if not blocks:
        return None
    is_request = any(kind_of(fragment) == "REQUEST" for fragment in fragments)
    return {
        "role": "user" if is_request else "assistant",
        "content": blocks,
        "model": message.get("model"),
        "timestamp": message.get("inserted_at"),
    }


def _deepseek_blocks(fragment: Fields) -> Iterator[dict[str, object]]:
    """Yield the blocks of a fragment: its text, its files, or a search with its results."""
    if text := text_in(fragment, "content"):
        is_thought = kind_of(fragment) == "THINK"
        yield (
            {"type": "thinking", "thinking": text} if is_thought else {"type": "text", "text": text}
        )
    for note in filter(None, map(_file_note, items_of(fragment.get("files")))):
        yield {"type": "text", "text": note}
    if results := items_of(fragment.get("results")):
        yield {"type": "tool_use", "name": "search", "input": fragment.get("queries")}
        yield {"type": "tool_result", "name": "search", "content": dump_text(results)}


DEEPSEEK: Final = ExportFormat(
    name="deepseek-export",
    system="DeepSeek",
    marks=(b'"mapping"', b'"fragments"'),
    runs=lambda document: _mapped_runs(document, ("fragments",), _deepseek_message),
)


def _open_webui_runs(document: object) -> Iterable[ExportedRun]:
    """Return the chats of an Open WebUI export, each along the branch of its current message."""
    for pointer, record in objects_in(document):
        chat_pointer = "/chat" if isinstance(record.get("chat"), Mapping) else ""
        history = fields_of((fields_of(record.get("chat")) or record).get("history"))
        messages = fields_of(history.get("messages"))
        nodes = {node_id: fields_of(node) for node_id, node in messages.items()}
        if any({"role", "parentId"} <= node.keys() for node in nodes.values()):
            yield run_of_branch(
                record,
                pointer,
                messages={
                    node_id: list(
                        _open_webui_messages(node, f"{chat_pointer}/history/messages/{node_id}")
                    )
                    for node_id, node in nodes.items()
                },
                parents={node_id: text_in(node, "parentId") for node_id, node in nodes.items()},
                leaf=text_in(history, "currentId"),
            )


def _open_webui_messages(node: Fields, pointer: str) -> Messages:
    """Yield the items of a node's output, else its content, and then its error."""
    notes = filter(None, map(_file_note, items_of(node.get("files"))))
    message = {name: node.get(name) for name in ("role", "model", "timestamp", "usage")}
    message["content"] = "\n".join(filter(None, [dump_text(node.get("content")), *notes]))
    error = node.get("error")
    error_text = text_in(fields_of(error), "content", "message") or as_text(error)

    items = items_of(node.get("output"))
    for index, item in enumerate(items):
        facts = {name: message[name] for name in ("model", "timestamp")}
        if index == len(items) - 1:  # The usage is that of all items.
            facts["usage"] = message["usage"]
        yield f"{pointer}/output/{index}", {**facts, **fields_of(item)}
    if not items and (message["content"] or error_text is None):
        yield pointer, message
    if error_text is not None:
        yield f"{pointer}/error", {"role": "system", "name": "error", "content": error_text}


OPEN_WEBUI: Final = ExportFormat(
    name="open-webui-export",
    system="Open WebUI",
    marks=(b'"history"', b'"parentId"'),
    runs=_open_webui_runs,
)


def _claude_ai_run(conversation: Fields, pointer: str) -> ExportedRun:
    """Return a conversation along the branch of its current leaf, else of its last message."""
    messages = items_of(conversation.get("chat_messages"))
    ids = [
        text_in(fields_of(message), "uuid") or f"#{index}" for index, message in enumerate(messages)
    ]
    named_parents = {
        message_id: text_in(fields_of(message), "parent_message_uuid")
        for message_id, message in zip(ids, messages, strict=True)
    }
    return run_of_branch(
        conversation,
        pointer,
        messages={
            message_id: [(f"/chat_messages/{index}", _claude_ai_message(message))]
            for index, (message_id, message) in enumerate(zip(ids, messages, strict=True))
        },
        parents=parents_in_list(named_parents),
        leaf=text_in(conversation, "current_leaf_message_uuid"),
        model=text_in(conversation, "model"),
    )


def _claude_ai_message(message: object) -> object:
    """Return a message in chat form, with its files; any value that is no object unchanged."""
    if not isinstance(message, Mapping):
        return message
    content = message.get("content")
    blocks: list[object] = [content] if isinstance(content, str) else list(items_of(content))
    has_content = any(
        dump_text(fields_of(block).get("text") if kind_of(block) == "text" else block).strip()
        for block in blocks
    )
    text = text_in(message, "text")
    if text and not has_content:
        blocks = [{"type": "text", "text": text}]

    for attachment in items_of(message.get("attachments")):
        note = _file_note(attachment) or "[file attachment]"
        file_text = text_in(fields_of(attachment), "extracted_content")
        lines = [note, file_text] if file_text else [note]
        blocks.append({"type": "text", "text": "\n".join(lines)})
    files = first_in(message, "files", "files_v2")
    notes = filter(None, map(_file_note, items_of(files)))
    blocks.extend({"type": "text", "text": note} for note in notes)

    role = "user" if text_in(message, "sender", "role") in ("human", "user") else "assistant"
    return {"role": role, "content": blocks, "timestamp": message.get("created_at")}


def _file_note(file: object) -> str:
    """Return ``[file log.txt]`` for an attached file with a name."""
    name = text_in(fields_of(file), "file_name", "name")
    return f"[file {name}]" if name else ""


CLAUDE_AI: Final = ExportFormat(
    name="claude-ai-export",
    system="claude.ai",
    marks=(b'"chat_messages"',),
    runs=lambda document: (
        _claude_ai_run(conversation, pointer)
        for pointer, conversation in objects_in(document)
        if isinstance(conversation.get("chat_messages"), list)
    ),
)


def _librechat_nodes(conversation: Fields) -> dict[str, Fields]:
    """Return the messages by JSON pointer, each before its children."""
    # The tree has ``children`` in its messages.
    field = "messagesTree" if "messagesTree" in conversation else "messages"
    nodes: dict[str, Fields] = {}
    remaining = located_objects(conversation.get(field), f"/{field}")[::-1]
    while remaining:
        pointer, message = remaining.pop()
        nodes[pointer] = message
        remaining += located_objects(message.get("children"), f"{pointer}/children")[::-1]
    return nodes


def _librechat_run(conversation: Fields, pointer: str, nodes: Mapping[str, Fields]) -> ExportedRun:
    """Return a conversation along the branch of its last message with a ``messageId``.

    The JSON pointer of a message is its default id.
    """
    id_by_pointer = {
        node_pointer: text_in(message, "messageId") or node_pointer
        for node_pointer, message in nodes.items()
    }
    stated_ids = [text_in(message, "messageId") for message in nodes.values()]
    options = fields_of(conversation.get("options"))
    run = run_of_branch(
        conversation,
        pointer,
        messages={
            message_id: [(node_pointer, _librechat_message(nodes[node_pointer]))]
            for node_pointer, message_id in id_by_pointer.items()
        },
        parents=_librechat_parents(nodes, id_by_pointer),
        leaf=next(filter(None, reversed(stated_ids)), None),
        model=text_in(options, "model") or text_in(conversation, "model"),
    )
    prompts = [
        (f"/options/{field}", {"role": "system", "content": prompt})
        for field in ("promptPrefix", "system", "instructions")
        if (prompt := text_in(options, field))
    ]
    shown_pointers = {node_pointer for node_pointer, _message in run.messages}
    omitted_without_id = sum(
        node_pointer == message_id and node_pointer not in shown_pointers
        for node_pointer, message_id in id_by_pointer.items()
    )
    problems = branch_problems(len(nodes) - len(shown_pointers) - omitted_without_id)
    if omitted_without_id:
        problems.append(f"{counted(omitted_without_id, 'message')} without `messageId` left out")
    return replace(
        run,
        messages=[*prompts, *run.messages],
        native_id=text_in(conversation, "conversationId"),
        problems=problems,
    )


def _librechat_parents(
    nodes: Mapping[str, Fields], id_by_pointer: Mapping[str, str]
) -> dict[str, str | None]:
    """Map the id of each message to the id of its parent.

    The parent is the one that the message names, else the message around it, else the previous one.
    """
    parents: dict[str, str | None] = {}
    previous_id: str | None = None
    for node_pointer, message_id in id_by_pointer.items():
        outer_pointer = node_pointer.rpartition("/children/")[0]
        parent_by_position = id_by_pointer.get(outer_pointer, previous_id)
        parents[message_id] = text_in(nodes[node_pointer], "parentMessageId") or parent_by_position
        previous_id = message_id
    return parents


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
    """Convert a thought to Anthropic's form, and a call to that of Vercel's AI SDK.

    Any other part is returned unchanged.
    """
    fields = fields_of(part)
    kind = kind_of(part)
    if kind == "think":
        thought = fields.get("think")
        return {"type": "thinking", "thinking": text_in(fields_of(thought), "value") or thought}
    if kind != "tool_call":
        return part
    call = fields_of(fields.get("tool_call"))
    # A call of an assistant has its details in a field with the name of its type.
    details = fields_of(call.get(kind_of(call))) or call
    output = first_in(details, "output", "outputs")
    if output == "" and call.get("progress") != 1:
        output = None  # The call is unfinished.
    return {
        "type": "tool-invocation",
        "toolInvocation": {
            "toolCallId": call.get("id"),
            "toolName": text_in(details, "name") or kind_of(call) or "tool",
            "args": first_in(details, "args", "arguments", "input"),
            "output": output,
        },
    }


LIBRECHAT: Final = ExportFormat(
    name="librechat-export",
    system="LibreChat",
    marks=(b'"messageId"', b'"isCreatedByUser"'),
    runs=lambda document: (
        _librechat_run(conversation, pointer, nodes)
        for pointer, conversation in objects_in(document)
        if (nodes := _librechat_nodes(conversation))
        and any("isCreatedByUser" in message for message in nodes.values())
    ),
)


def _semantic_kernel_runs(document: object) -> Iterable[ExportedRun]:
    """Return the runs in chat histories of Semantic Kernel, in .NET's or Python's spelling."""
    return (
        ExportedRun(
            value=history.run,
            messages=messages_of_each(
                history.steps, history.steps_pointer, _semantic_kernel_messages
            ),
            pointer=history.run_pointer,
        )
        for history in step_lists(document, _KERNEL_LISTS, _is_semantic_kernel_message)
    )


def _is_semantic_kernel_message(message: object) -> bool:
    """Return whether a value has content and a role with a label, or a role and typed items."""
    fields = fields_of(message)
    role = first_in(fields, "Role", "role")
    has_label = "label" in _normalized_fields(role)
    if has_label and ("Content" in fields or "content" in fields):
        return True
    items = items_of(first_in(fields, "Items", "items"))
    return (
        role is not None
        and bool(items)
        and all("$type" in fields_of(item) or "content_type" in fields_of(item) for item in items)
    )


def _normalized_fields(value: object) -> Fields:
    """Return an object with one spelling for .NET and Python: ``pluginname`` for ``PluginName``."""
    return {
        name.lower().replace("_", "").removeprefix("$"): field
        for name, field in fields_of(value).items()
    }


def _semantic_kernel_messages(message: Fields, pointer: str) -> Messages:
    """Yield a message in chat form."""
    fields = _normalized_fields(message)
    role = fields.get("role")
    role_name = text_in(_normalized_fields(role), "label") or as_text(role) or "assistant"
    blocks = list(_content_blocks(items_of(fields.get("items"))))
    metadata = _normalized_fields(fields.get("metadata"))
    usage = _normalized_fields(metadata.get("usage"))
    chat = {
        "role": role_name.lower(),
        "name": first_in(fields, "authorname", "name"),
        "content": blocks or fields.get("content"),
        "model": first_in(fields, "modelid", "aimodelid"),
        "timestamp": first_in(metadata, "createdat", "created"),
        "usage": {
            "input_tokens": first_in(usage, "inputtokencount", "prompttokens", "inputtokens"),
            "output_tokens": first_in(
                usage, "outputtokencount", "completiontokens", "outputtokens"
            ),
        },
    }
    yield pointer, chat


def _content_blocks(items: Sequence[object]) -> Iterator[object]:
    """Yield the items of a message of Semantic Kernel as content blocks in Anthropic's form."""
    for item in items:
        fields = _normalized_fields(item)
        names = (text_in(fields, "pluginname"), text_in(fields, "functionname"))
        name = ".".join(text for text in names if text) or text_in(fields, "name")
        kind = text_in(fields, "type", "contenttype") or ""  # such as StreamingTextContent
        plain_kind = kind.lower().replace("_", "").removeprefix("streaming")
        match plain_kind.removesuffix("content"):
            case "functioncall":
                call_id = identifier_in(fields, "id")
                arguments = fields.get("arguments")
                yield {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
            case "functionresult":
                yield {
                    "type": "tool_result",
                    "tool_use_id": identifier_in(fields, "callid", "id"),
                    "name": name,
                    "content": dump_text(fields.get("result")),
                }
            case "reasoning":
                yield {"type": "thinking", "thinking": dump_text(fields.get("text"))}
            case "image" | "audio" as medium:
                yield {"type": medium}
            case "binary" | "file" | "filereference":
                yield {"type": "file", "name": first_in(fields, "name", "fileid", "uri")}
            case "annotation" | "text":
                texts = (dump_text(fields.get("text")), text_in(fields, "quote", "title"))
                yield {"type": "text", "text": "\n".join(text for text in texts if text)}
            case _ if (text := fields.get("text")) is not None:
                yield {"type": "text", "text": dump_text(text)}
            case _:
                yield {"type": kind, **fields_of(item)} if fields else item


SEMANTIC_KERNEL: Final = ExportFormat(
    name="semantic-kernel",
    system="Semantic Kernel",
    marks=(b'ole"', b"ontent"),
    runs=_semantic_kernel_runs,
)


def _assistants_runs(document: object) -> Iterable[ExportedRun]:
    """Return each thread of an export of OpenAI's Assistants API as one run.

    The document lists messages, runs and run steps of the API. The API's runs alone have no
    content. An object without a thread's id belongs to the first thread.
    """
    items_by_thread: dict[str | None, list[tuple[str, Fields]]] = {}
    has_content = False
    for pointer, item in _assistants_objects(document, pointer="", depth=0):
        thread_id = text_in(item, "thread_id") or next(iter(items_by_thread), None)
        items_by_thread.setdefault(thread_id, []).append((pointer, item))
        has_content = has_content or item.get("object") != _RUN
    if not has_content:
        return ()
    return [_assistants_run(thread_id, items) for thread_id, items in items_by_thread.items()]


def _assistants_run(thread_id: str | None, items: Sequence[tuple[str, Fields]]) -> ExportedRun:
    """Return a thread with its messages sorted by time, without repeated instructions.

    The API lists the newest message first.
    """
    timed_messages = [timed for pointer, item in items for timed in _timed_messages(pointer, item)]
    timed_messages.sort(key=lambda timed_message: (timed_message.time, timed_message.rank))
    messages: list[tuple[str, Fields]] = []
    instructions: object = None
    for _time, _rank, pointer, message in timed_messages:
        is_prompt = message["role"] == "system" and "name" not in message  # An error has a name.
        if is_prompt:
            if message["content"] == instructions:
                continue
            instructions = message["content"]
        messages.append((pointer, message))
    model = next((name for _pointer, item in items if (name := text_in(item, "model"))), None)
    return ExportedRun(
        [item for _pointer, item in items],
        messages,
        native_id=thread_id,
        meta=TraceMeta(model=model),
    )


def _assistants_objects(value: object, pointer: str, depth: int) -> Iterator[tuple[str, Fields]]:
    """Yield the messages, runs and steps in a value, at most ``_MAX_DEPTH`` levels down."""
    fields = fields_of(value)
    if fields.get("object") in (_THREAD_MESSAGE, _RUN_STEP, _RUN):
        yield pointer, fields
    elif depth < _MAX_DEPTH:
        items = items_of(value)
        named_items = [(str(index), item) for index, item in enumerate(items)]
        # Objects of one second keep this order later.
        if len(items) > 1 and _creation_time(items[0]) > _creation_time(items[-1]):
            named_items.reverse()
        for name, item in named_items or fields.items():
            yield from _assistants_objects(item, f"{pointer}/{name}", depth + 1)


def _creation_time(item: object) -> float:
    return unix_seconds(fields_of(item).get("created_at")) or 0.0


_USER_RANK: Final = 0
_PROMPT_RANK: Final = 1
_CALL_RANK: Final = 2
_ANSWER_RANK: Final = 3
_ERROR_RANK: Final = 4


class _TimedMessage(NamedTuple):
    """A message with its time, and a rank for the order within one second."""

    time: float
    rank: int
    pointer: str
    message: dict[str, object]


def _timed_messages(pointer: str, item: Fields) -> Iterator[_TimedMessage]:
    """Yield a thread's message, or the instructions, the calls and the error of a run or a step."""
    time = _creation_time(item)
    if item.get("object") == _THREAD_MESSAGE:
        role = text_in(item, "role") or "assistant"
        rank = _USER_RANK if role == "user" else _ANSWER_RANK
        yield _TimedMessage(time, rank, pointer, {**item, "role": role})
        return
    if text := text_in(item, "instructions"):
        prompt = {"role": "system", "content": text, "timestamp": item.get("created_at")}
        yield _TimedMessage(time, _PROMPT_RANK, f"{pointer}/instructions", prompt)
    for call_pointer, message in _assistants_calls(pointer, item):
        yield _TimedMessage(time, _CALL_RANK, call_pointer, message)
    if error := fields_of(item.get("last_error")):
        error_time = unix_seconds(item.get("failed_at")) or time
        message = {
            "role": "system",
            "name": "error",
            "content": text_in(error, "message", "code"),
            "timestamp": error_time or None,
        }
        yield _TimedMessage(error_time, _ERROR_RANK, f"{pointer}/last_error", message)


def _assistants_calls(pointer: str, item: Fields) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the calls of a run step and their outputs; the first call has the step's tokens."""
    calls = items_of(fields_of(item.get("step_details")).get("tool_calls"))
    for call_index, call in enumerate(calls):
        call_pointer = f"{pointer}/step_details/tool_calls/{call_index}"
        kind = kind_of(call)
        call_id = fields_of(call).get("id")
        details = fields_of(fields_of(call).get(kind))
        tool_call = {
            "id": call_id,
            "name": text_in(details, "name") or kind,
            "arguments": first_in(details, "arguments", "input") if details else call,
        }
        usage = None if call_index else item.get("usage")
        message = {"role": "assistant", "tool_calls": [tool_call], "usage": usage}
        yield call_pointer, {**message, "timestamp": item.get("created_at")}
        output = first_in(details, "output", "outputs", "results")
        if isinstance(output, list):
            texts = (text_in(fields_of(part), "logs") or dump_text(part) for part in output)
            output = "\n".join(texts)
        if output is not None:
            result = result_message(output, call_id, None)
            yield f"{call_pointer}/output", {**result, "timestamp": item.get("completed_at")}


OPENAI_ASSISTANTS: Final = ExportFormat(
    name="openai-assistants", marks=(b'"thread.', b'"object"'), runs=_assistants_runs
)
