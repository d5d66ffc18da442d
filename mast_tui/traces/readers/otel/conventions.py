"""What a span says of a run, by the conventions that its attributes follow.

Of the ``gen_ai`` conventions there are three generations and some variants: the content of a
model's call stands in numbered attributes (``gen_ai.prompt.0.content``), in events
(``gen_ai.user.message``), or in messages with parts (``gen_ai.input.messages``). OpenInference is
what Phoenix's and Arize's instrumentation writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text, dump_text, tokens_of
from mast_tui.traces.io.python_literals import literal
from mast_tui.traces.readers.chat.turns import is_message
from mast_tui.traces.readers.json_fields import Fields, fields_of, items_of, json_in, names, text_in
from mast_tui.traces.readers.otel.spans import (
    Event,
    OtelSpan,
    event_of,
    grouped,
    span_of,
    unflattened,
)
from mast_tui.traces.readers.span_tree.rows import Message, Row, RowKind

_OPERATIONS: Final = {
    name: kind
    for kind, listed in {
        RowKind.MODEL: "call_llm chat completion generate generate_content llm model "
        "text_completion",
        RowKind.TOOL: "execute_tool tool",
        RowKind.AGENT: "invoke_agent agent",
        RowKind.OTHER: "embeddings create_agent invoke_workflow workflow task",
    }.items()
    for name in names(listed)
}
_VERBS: Final = ("invoke_agent ", "agent_run ", "execute_tool ", "create_agent ")
_TOOL_INPUT: Final = names("""
    gen_ai.tool.call.arguments gen_ai.tool.args gcp.vertex.agent.tool_call_args ai.toolCall.args
    tool_arguments
""")
_TOOL_OUTPUT: Final = names("""
    gen_ai.tool.call.result gen_ai.tool.message gen_ai.output gcp.vertex.agent.tool_response
    ai.toolCall.result tool_response
""")
_EVENT_ROLES: Final = {
    f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")
}
_PREFIXES: Final = ("gen_ai.", "traceloop.", "llm.request.", "gcp.vertex.agent.", "ai.")
_DETAILS: Final = "gen_ai.client.inference.operation.details"


def is_genai(span: OtelSpan) -> bool:
    """Whether a span has attributes or events of the ``gen_ai`` conventions or their variants."""
    names = [*span.attributes, *(event.name for event in span.events)]
    return any(name.startswith(_PREFIXES) for name in names)


def genai_row(span: OtelSpan, row_id: str) -> Row:
    """The row that a span of the ``gen_ai`` conventions makes."""
    kind = _genai_kind(span)
    row = replace(span.row(row_id, kind), agent=span.text("gen_ai.agent.name", "agent_name"))
    match kind:
        case RowKind.MODEL:
            return _genai_model(span, row)
        case RowKind.TOOL:
            return _genai_tool(span, row)
        case RowKind.AGENT:
            name = row.agent or span.text("traceloop.entity.name") or bare_name(span.name)
            taken = _genai_told(_asked(span), "user")
            given = _genai_told(_answered(span), "assistant")
            system = _genai_told(_asked(span), "system")
            row = replace(row, name=name, agent=name, input=taken, output=given)
            return replace(row, instructions=as_text(system))
        case RowKind.OTHER:
            return replace(
                row,
                name=span.text("traceloop.entity.name") or span.name,
                input=_entity(span, "input"),
                output=_entity(span, "output"),
            )


def _genai_kind(span: OtelSpan) -> RowKind:
    for name in ("gen_ai.operation.name", "traceloop.span.kind", "llm.request.type"):
        said = (span.text(name) or "").strip().lower().replace(" ", "_")
        if said in _OPERATIONS:
            return _OPERATIONS[said]
    if "gen_ai.tool.name" in span.attributes or "ai.toolCall.name" in span.attributes:
        return RowKind.TOOL
    if _asked(span) or _answered(span) or span.value("gen_ai.usage.output_tokens") is not None:
        return RowKind.MODEL
    return RowKind.OTHER


def _genai_model(span: OtelSpan, row: Row) -> Row:
    taken_in = span.value("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
    given_out = span.value("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
    return replace(
        row,
        model=span.text("gen_ai.response.model", "gen_ai.request.model", "ai.model.id"),
        tokens=tokens_of(taken_in, given_out),
        asked=tuple(_asked(span)),
        answered=tuple(_answered(span)),
    )


def _genai_tool(span: OtelSpan, row: Row) -> Row:
    name = span.text("gen_ai.tool.name", "ai.toolCall.name", "traceloop.entity.name")
    taken, given = span.value(*_TOOL_INPUT), span.value(*_TOOL_OUTPUT)
    return replace(
        row,
        name=name or bare_name(span.name),
        input=_entity(span, "input") if taken is None else taken,
        output=_entity(span, "output") if given is None else given,
        call_id=span.text("gen_ai.tool.call.id", "ai.toolCall.id"),
    )


def _asked(span: OtelSpan) -> list[Message]:
    found = _instructions(grouped(span.attributes, "gen_ai.system_instructions"))
    for name in ("gen_ai.input.messages", "gen_ai.prompt"):
        if (told := grouped(span.attributes, name)) is not None:
            return found + messages_in(told)
    for event in _events(span):
        if event.name == _DETAILS:
            found += _instructions(grouped(event.attributes, "gen_ai.system_instructions"))
            found += messages_in(grouped(event.attributes, "gen_ai.input.messages"))
        elif event.name == "gen_ai.content.prompt":
            found += messages_in(grouped(event.attributes, "gen_ai.prompt"))
        elif event.name in _EVENT_ROLES:
            found.append(_event_message(event.attributes, _EVENT_ROLES[event.name]))
    if found:
        return found
    for name in ("gen_ai.input", "ai.prompt.messages", "pydantic_ai.all_messages", "ai.prompt"):
        if messages := listed_messages(grouped(span.attributes, name)):
            return messages
    # Google's ADK: contents, with the instruction beside them.
    request = fields_of(grouped(span.attributes, "gcp.vertex.agent.llm_request"))
    instruction = fields_of(request.get("config")).get("system_instruction")
    return _instructions(instruction) + listed_messages(request.get("contents"))


def _answered(span: OtelSpan) -> list[Message]:
    for name in ("gen_ai.output.messages", "gen_ai.completion"):
        if (told := grouped(span.attributes, name)) is not None:
            return messages_in(told, "assistant")
    found: list[Message] = []
    for event in _events(span):
        if event.name == _DETAILS:
            output = grouped(event.attributes, "gen_ai.output.messages")
            found += messages_in(output, "assistant")
        elif event.name == "gen_ai.content.completion":
            found += messages_in(grouped(event.attributes, "gen_ai.completion"), "assistant")
        elif event.name == "gen_ai.choice":
            found.append(_choice(event.attributes))
    if found:
        return found
    output = span.value("gen_ai.output")
    if output is not None:
        return _any_agent_calls(output) or messages_in(output, "assistant")
    text, made = span.value("ai.response.text"), grouped(span.attributes, "ai.response.toolCalls")
    if text is not None or isinstance(made, list):
        return [{"role": "assistant", "content": text or "", "tool_calls": made or []}]
    response = fields_of(grouped(span.attributes, "gcp.vertex.agent.llm_response"))
    content = response.get("content")
    return [content] if isinstance(content, Mapping) else []


def _events(span: OtelSpan) -> Iterable[Event]:
    """The events of a span, and those that Logfire keeps in an attribute instead."""
    listed = items_of(grouped(span.attributes, "events"))
    return [*span.events, *(event_of({"body": one}) for one in listed if isinstance(one, Mapping))]


def _event_message(attributes: Fields, role: str) -> Message:
    content, calls = grouped(attributes, "content"), grouped(attributes, "tool_calls")
    message: dict[str, object] = {
        "role": as_text(attributes.get("role")) or role,
        "content": (content if isinstance(content, list) else dump_text(content)) or "",
    }
    if isinstance(calls, list):
        message["tool_calls"] = calls
    if role == "tool":
        message["tool_call_id"] = attributes.get("id") or attributes.get("tool_call_id")
        message["name"] = attributes.get("name")
    return message


def _choice(attributes: Fields) -> Message:
    inner = grouped(attributes, "message")
    if isinstance(inner, str):
        return {"role": "assistant", "content": inner}
    fields = {**attributes, **inner} if isinstance(inner, Mapping) else attributes
    return _event_message(fields, "assistant")


def _instructions(value: object) -> list[Message]:
    if value is None:
        return []
    text = content_text(value)
    return [{"role": "system", "content": text}] if text.strip() else []


def _any_agent_calls(output: object) -> list[Message]:
    """The tool calls that any-agent writes as ``[{"tool.name", "tool.args"}]``."""
    calls = [fields_of(call) for call in items_of(json_in(output))]
    if not calls or not all("tool.name" in call for call in calls):
        return []
    made = [
        {"function": {"name": one["tool.name"], "arguments": one.get("tool.args")}} for one in calls
    ]
    return [{"role": "assistant", "content": "", "tool_calls": made}]


def _genai_told(messages: list[Message], role: str) -> object:
    """What the last message of a role says, for a row that has no messages of its own."""
    for message in reversed(messages):
        if message.get("role") == role and is_message(message):
            parts = message.get("content")
            return content_text(message.get("parts") if parts is None else parts) or None
    return None


def _entity(span: OtelSpan, part: str) -> object:
    """What Traceloop keeps of a decorated function's input or output."""
    value = grouped(span.attributes, f"traceloop.entity.{part}")
    if isinstance(value, Mapping):
        inner = value.get("inputs" if part == "input" else "outputs")
        if part == "input" and inner == {} and value.get("args"):
            return value["args"]
        return value if inner is None else inner
    return value


def bare_name(name: str) -> str:
    """A span's name without the verb that the conventions put before it."""
    for verb in _VERBS:
        name = name.removeprefix(verb)
    return name.strip().removeprefix("[").removesuffix("]") or name


def row_of_attributes(attributes: object, name: str, row_id: str) -> Row | None:
    """Return the row that the attributes of a span make; None where they are of no convention.

    Args:
        attributes: A JSON object; anything else is of no convention.
        name: The name of the span.
        row_id: The id of the row.
    """
    if not isinstance(attributes, Mapping):
        return None
    span = span_of({"name": name, "attributes": attributes}, "")
    return row_of(span, row_id)


def row_of(span: OtelSpan, row_id: str) -> Row | None:
    """Return the row that a span makes by the conventions that it follows; None without any."""
    genai = genai_row(span, row_id) if is_genai(span) else None
    if not is_openinference(span):
        return genai
    row = openinference_row(span, row_id)
    return row if genai is None else _completed(row, genai)


def _completed(row: Row, other: Row) -> Row:
    """Return a row with what only the other convention tells."""
    if row.kind is RowKind.TOOL:
        return replace(row, call_id=row.call_id or other.call_id)
    if row.kind is not RowKind.MODEL:
        return replace(row, instructions=row.instructions or other.instructions)
    return replace(
        row,
        asked=row.asked or other.asked,
        answered=row.answered or other.answered,
        tokens=row.tokens or other.tokens,
        model=row.model or other.model,
        agent=row.agent or other.agent,
    )


_KIND: Final = "openinference.span.kind"
_KINDS: Final = {"LLM": RowKind.MODEL, "TOOL": RowKind.TOOL, "AGENT": RowKind.AGENT}
_SPEAKING: Final = frozenset({"RETRIEVER", "RERANKER", "GUARDRAIL", "EVALUATOR"})
_DOCUMENTS: Final = ("retrieval.documents", "reranker.output_documents")
_OWN: Final = ("llm.input_messages", "llm.output_messages", "llm.token_count.")


def is_openinference(span: OtelSpan) -> bool:
    """Whether a span tells its kind, or messages, the way OpenInference does."""
    return _KIND in span.attributes or any(name.startswith(_OWN) for name in span.attributes)


def openinference_row(span: OtelSpan, row_id: str) -> Row:
    """The row that a span of OpenInference's makes."""
    said = (span.text(_KIND) or "LLM").upper()
    row = replace(span.row(row_id, _KINDS.get(said, RowKind.OTHER)), agent=span.text("agent.name"))
    taken, given = span.value("input.value"), span.value("output.value")
    match row.kind:
        case RowKind.MODEL:
            return _openinference_model(span, row)
        case RowKind.TOOL:
            output, call_id = _tool_output(given)
            return replace(
                row,
                name=span.text("tool.name") or span.name,
                input=_arguments(_parameters(span) if taken is None else taken),
                output=output,
                call_id=span.text("tool_call.id", "tool.call_id", "gen_ai.tool.call.id") or call_id,
            )
        case RowKind.AGENT:
            name = row.agent or bare_name(span.name.removesuffix(".run"))
            return replace(row, name=name, agent=name, input=taken, output=given)
        case RowKind.OTHER:
            documents = _documents(span)
            output = given if documents is None else documents
            return replace(row, input=taken, output=output, speaks=said in _SPEAKING)


def _openinference_model(span: OtelSpan, row: Row) -> Row:
    taken, given = span.value("input.value"), span.value("output.value")
    asked = _openinference_messages(span, "llm.input_messages", "user")
    answered = _openinference_messages(span, "llm.output_messages", "assistant")
    asked = fuller(asked, listed_messages(taken)) or _prompts(span) or messages_in(taken)
    answered = fuller(answered, listed_messages(given)) or messages_in(given, "assistant")
    return replace(
        row,
        model=span.text("llm.model_name", "embedding.model_name"),
        tokens=tokens_of(
            span.value("llm.token_count.prompt"), span.value("llm.token_count.completion")
        ),
        asked=tuple(retold_by_smolagents(asked)),
        answered=tuple(answered),
    )


def _openinference_messages(span: OtelSpan, name: str, role: str) -> list[Message]:
    value = grouped(span.attributes, name)
    if isinstance(value, str):
        return messages_in(value, role)
    items = value if isinstance(value, list) else [value]
    return [_openinference_message(item) for item in items if isinstance(item, Mapping)]


def _prompts(span: OtelSpan) -> list[Message]:
    """The prompts of a completion that has no messages."""
    prompts = items_of(grouped(span.attributes, "llm.prompts"))
    return [{"role": "user", "content": content_text(prompt)} for prompt in prompts]


def _parameters(span: OtelSpan) -> object:
    """Return the arguments in a tool's parameters, which are its JSON schema in some libraries."""
    parameters = grouped(span.attributes, "tool.parameters")
    return None if "properties" in fields_of(parameters) else parameters


def _arguments(value: object) -> object:
    """A tool's arguments without what smolagents wraps around them."""
    parsed = value
    if isinstance(value, str):
        parsed = json_in(value)
        if parsed is None and value.lstrip()[:1] == "{":
            parsed = literal(value)
    if isinstance(parsed, Mapping) and "sanitize_inputs_outputs" in parsed:
        named, others = parsed.get("kwargs"), parsed.get("args")
        return named if not others else others if not named else {"args": others, "kwargs": named}
    return value if not isinstance(parsed, Mapping) else parsed


def _tool_output(value: object) -> tuple[object, str | None]:
    """What a tool gave back, and the call's id where LangChain's message around it has one."""
    parsed = fields_of(json_in(value))
    inner: object = parsed["output"] if set(parsed) == {"output"} else value
    if set(parsed) == {"id", "name", "response"}:  # a function response of Google's
        return parsed["response"], as_text(parsed["id"])
    if isinstance(inner, str):
        message = tool_message(inner)
        return (inner, None) if message is None else message
    fields = fields_of(inner)
    if isinstance(kwargs := fields.get("kwargs"), Mapping):
        fields = kwargs
    if call_id := as_text(fields.get("tool_call_id")):
        return content_text(fields.get("content")), call_id
    return inner, None


def _documents(span: OtelSpan) -> str | None:
    """The texts of the documents that a retriever found, or a reranker kept."""
    for name in _DOCUMENTS:
        documents = grouped(span.attributes, name)
        if isinstance(documents, list):
            return "\n\n".join(map(_document, documents))
    return None


def _document(value: object) -> str:
    inner = fields_of(value).get("document")
    fields = fields_of(inner if isinstance(inner, Mapping) else value)
    return text_in(fields, "content", "document.content") or dump_text(value)


_LISTS: Final = names("messages input contents args prompts output choices generations")
_DEEPEST: Final = 4

_OBSERVATION: Final = re.compile(r"(?:Call id: (?P<id>\S+)\n)?Observation:\n?")
_CALLING: Final = "Calling tools:\n"
_ENUM: Final = "MessageRole."
_CALLED: Final = "Called Tool: '"
_TOOL_MESSAGE: Final = re.compile(
    r"content=(?P<content>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\").*?"
    r"tool_call_id='(?P<id>[^']*)'",
    re.DOTALL,
)


def messages_in(value: object, role: str = "user") -> list[Message]:
    """The messages that a value holds, under any of the names that libraries give the list.

    A value without messages is one message of ``role``: its text, or its JSON.
    """
    text = dump_text(value)
    if value is None or not text.strip():
        return []
    return listed_messages(value) or [{"role": role, "content": text}]


def listed_messages(value: object) -> list[Message]:
    """The messages in a value; none where it holds none."""
    return _found(json_in(value), 0)


def _found(value: object, depth: int) -> list[Message]:
    if depth > _DEEPEST:
        return []
    if isinstance(value, Mapping):
        if is_message(value):
            return [value]
        inner = value.get("message")
        if isinstance(inner, Mapping):
            return _found(inner, depth + 1)
        held = (_found(value[name], depth + 1) for name in _LISTS if name in value)
        return next(filter(None, held), [])
    found: list[Message] = []
    for item in items_of(value):
        if isinstance(item, list) and len(item) == 2 and all(isinstance(one, str) for one in item):
            found.append({"role": item[0], "content": item[1]})
        else:
            found.extend(_found(item, depth + 1))
    return found


def _openinference_message(item: Fields) -> Message:
    """A message as OpenInference flattens it: ``message.role``, ``message.tool_calls`` …"""
    fields = _nested(item, "message")
    message: dict[str, object] = {"role": as_text(fields.get("role")) or "assistant"}
    for name in ("content", "name", "tool_call_id", "reasoning_content", "refusal"):
        if fields.get(name) is not None:
            message[name] = fields[name]
    contents, calls = fields.get("contents"), fields.get("tool_calls")
    if message.get("content") in (None, "") and isinstance(contents, list):
        message["content"] = [_content_part(part) for part in contents]
    if isinstance(calls, list):
        message["tool_calls"] = [
            _nested(call, "tool_call") if isinstance(call, Mapping) else call for call in calls
        ]
    elif called := as_text(fields.get("function_call_name")):
        arguments = fields.get("function_call_arguments_json")
        message["tool_calls"] = [{"function": {"name": called, "arguments": arguments}}]
    message.setdefault("content", "")
    return message


def _content_part(part: object) -> object:
    if not isinstance(part, Mapping):
        return part
    content = _nested(part, "message_content")
    if isinstance(content.get("text"), str):
        kind = content.get("type")
        return {"type": kind if isinstance(kind, str) else "text", "text": content["text"]}
    return {"type": "image"} if "image" in content else content


def _nested(value: Fields, within: str | None = None) -> Fields:
    """An object with its dotted names taken apart; the one ``within`` it where there is such."""
    if any("." in str(name) for name in value):
        nested = unflattened({str(name): inner for name, inner in value.items()})
        value = nested if isinstance(nested, Mapping) else value
    inner = None if within is None else value.get(within)
    return _nested(inner) if isinstance(inner, Mapping) else value


def fuller(told: Sequence[Message], raw: Sequence[Message]) -> list[Message]:
    """The messages as told, or as they stand in the raw value where that says more.

    Some instrumentation leaves out tool calls, or their arguments.
    """
    if not told:
        return list(raw)
    if len(told) != len(raw):
        return list(raw) if raw and not any(map(_says_all, told)) else list(told)
    return [one if _says_all(one) else other for one, other in zip(told, raw, strict=True)]


def _says_all(message: Message) -> bool:
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return bool(message.get("content"))
    functions = [call.get("function") for call in calls if isinstance(call, Mapping)]
    return all("arguments" in fields_of(one) for one in functions)


def retold_by_smolagents(messages: Sequence[Message]) -> list[Message]:
    """The messages with calls and observations that smolagents tells as text made such again."""
    found: list[Message] = []
    for message in messages:
        said = str(message.get("role", ""))
        role = said.removeprefix(_ENUM).lower().replace("_", "-")
        if role not in ("tool-call", "tool-response"):
            found.append({**message, "role": role} if said.startswith(_ENUM) else message)
            continue
        text = content_text(message.get("content"))
        if role == "tool-response":
            found.append(_observation(text))
            continue
        if found and content_text(found[-1].get("content")).startswith(_CALLED):
            found.pop()
        calls = literal(text.removeprefix(_CALLING)) if text.startswith(_CALLING) else None
        if isinstance(calls, list):
            found.append({"role": "assistant", "content": "", "tool_calls": calls})
        else:
            found.append({"role": "assistant", "content": text})
    return found


def _observation(text: str) -> Message:
    match = _OBSERVATION.match(text)
    result: dict[str, object] = {"role": "tool", "content": text[match.end() :] if match else text}
    if match and match["id"]:
        result["tool_call_id"] = match["id"]
    return result


def tool_message(text: str) -> tuple[str, str] | None:
    """Content and call id of a LangChain tool message that was saved as Python writes it."""
    match = _TOOL_MESSAGE.match(text) if text.startswith("content=") else None
    if match is None:
        return None
    content = literal(match["content"])
    return (content if isinstance(content, str) else match["content"], match["id"])
