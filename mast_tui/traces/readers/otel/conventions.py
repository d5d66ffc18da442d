"""The conventions of OpenTelemetry spans for the work of models, tools and agents.

A convention is a table of attribute names. Spans often follow several conventions; the first table
with an attribute of the span is used. The ``gen_ai`` conventions have three generations: messages
in numbered attributes (``gen_ai.prompt.0.content``), in events (``gen_ai.user.message``), and with
parts (``gen_ai.input.messages``). OpenInference has attributes of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text, dump_text, read_literal, tokens_of
from mast_tui.traces.readers.chat.turns import is_message
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    items_of,
    json_in,
    names,
    text_in,
    value_in,
)
from mast_tui.traces.readers.otel.dialects import with_genai_names
from mast_tui.traces.readers.otel.spans import (
    OtelSpan,
    SpanEvent,
    event_of,
    nested_object,
    span_of,
    value_under,
)
from mast_tui.traces.readers.span_tree.messages import (
    answer_messages,
    is_system,
    request_messages,
    request_text,
    structured_answer,
    tool_output,
)
from mast_tui.traces.readers.span_tree.rows import Message, RowKind, SpanRow
from mast_tui.traces.result_status import status_of_word, worst_status

_OBSERVATION_HEADING: Final = re.compile(r"(?:Call id: (?P<id>\S+)\n)?Observation:\n?")
_CALLS_HEADING: Final = "Calling tools:\n"
_ENUM_PREFIX: Final = "MessageRole."
_ECHOED_CALL: Final = "Called Tool: '"


def flattened_messages(span: OtelSpan, name: str, role: str) -> list[Message]:
    """Return the messages under dotted names such as ``llm.input_messages.0.message.role``.

    Args:
        span: The span.
        name: The attribute with the messages, or the beginning of their dotted names.
        role: The role of a plain text: ``user`` or ``assistant``.
    """
    value = value_under(span.attributes, name)
    if isinstance(value, str):  # all messages as JSON or as plain text
        answer = answer_messages(value) if role == "assistant" else ()
        return list(answer or request_messages(value) or request_text(value))
    items = value if isinstance(value, list) else [value]
    return [_message_of_item(item) for item in items if isinstance(item, Mapping)]


def _message_of_item(item: Fields) -> Message:
    """Return a message from its flattened fields: ``message.role``, ``message.tool_calls`` …"""
    fields = _nested_fields(item, "message")
    message: dict[str, object] = {"role": as_text(fields.get("role")) or "assistant"}
    for name in ("content", "name", "tool_call_id", "reasoning_content", "refusal"):
        if fields.get(name) is not None:
            message[name] = fields[name]

    contents = fields.get("contents")
    if message.get("content") in (None, "") and isinstance(contents, list):
        message["content"] = [_content_part(part) for part in contents]

    calls = fields.get("tool_calls")
    if isinstance(calls, list):
        message["tool_calls"] = [
            _nested_fields(call, "tool_call") if isinstance(call, Mapping) else call
            for call in calls
        ]

    message.setdefault("content", "")
    return message


def _content_part(part: object) -> object:
    """Return a part of a message without OpenInference's prefix ``message_content``."""
    content = _nested_fields(fields_of(part), "message_content")
    if isinstance(content.get("text"), str):
        return {"type": as_text(content.get("type")) or "text", "text": content["text"]}
    # The data of a picture is left out.
    return {"type": "image"} if "image" in content else content


def _nested_fields(value: Fields, wrapper: str | None = None) -> Fields:
    """Return an object with its dotted names as nested objects, without the object ``wrapper``."""
    if any("." in str(name) for name in value):
        nested = nested_object({str(name): field_value for name, field_value in value.items()})
        value = nested if isinstance(nested, Mapping) else value
    wrapped = None if wrapper is None else value.get(wrapper)
    return _nested_fields(wrapped) if isinstance(wrapped, Mapping) else value


def fuller_messages(
    flat_messages: Sequence[Message], raw_messages: Sequence[Message]
) -> list[Message]:
    """Return flattened messages, with raw messages in place of incomplete ones.

    Some instrumentation leaves out tool calls or their arguments in flattened messages.

    Args:
        flat_messages: The messages in attributes of their own.
        raw_messages: The same messages in the input or output value.
    """
    if not flat_messages:
        return list(raw_messages)
    if len(flat_messages) != len(raw_messages):
        has_complete = any(map(_is_complete, flat_messages))
        return list(flat_messages if has_complete or not raw_messages else raw_messages)
    pairs = zip(flat_messages, raw_messages, strict=True)
    return [
        flat_message if _is_complete(flat_message) else raw_message
        for flat_message, raw_message in pairs
    ]


def _is_complete(message: Message) -> bool:
    """Return whether all calls of a message have arguments, or else it has content."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return bool(message.get("content"))
    functions = [call.get("function") for call in calls if isinstance(call, Mapping)]
    return all("arguments" in fields_of(function) for function in functions)


def with_smolagents_calls(messages: Sequence[Message]) -> list[Message]:
    """Return messages with tool calls and results in place of smolagents' texts.

    The roles of these texts are ``tool-call`` and ``tool-response``, or ``MessageRole.TOOL_CALL``.
    """
    converted_messages: list[Message] = []
    for message in messages:
        role_name = str(message.get("role", ""))
        is_enum = role_name.startswith(_ENUM_PREFIX)
        role = role_name.removeprefix(_ENUM_PREFIX).lower().replace("_", "-")
        if role not in ("tool-call", "tool-response"):
            converted_messages.append({**message, "role": role} if is_enum else message)
            continue
        text = content_text(message.get("content"))
        if role == "tool-response":
            converted_messages.append(_tool_message(text))
            continue

        previous_content = converted_messages[-1].get("content") if converted_messages else None
        if content_text(previous_content).startswith(_ECHOED_CALL):
            converted_messages.pop()  # the same call as plain text
        has_calls = text.startswith(_CALLS_HEADING)
        calls = read_literal(text.removeprefix(_CALLS_HEADING)) if has_calls else None
        if isinstance(calls, list):
            converted_messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        else:
            converted_messages.append({"role": "assistant", "content": text})
    return converted_messages


def _tool_message(text: str) -> Message:
    """Return a result as a tool's message, with the call id of its heading ``Observation:``."""
    match = _OBSERVATION_HEADING.match(text)
    content = text[match.end() :] if match else text
    message: dict[str, object] = {"role": "tool", "content": content}
    if match and match["id"]:
        message["tool_call_id"] = match["id"]
    return message


def arguments_without_wrapping(value: object) -> object:
    """Return a tool's arguments without the object in which smolagents wraps them.

    The text of an object is parsed, also as Python prints it. Any other text is unchanged.
    """
    parsed_value = json_in(value)
    if parsed_value is None and isinstance(value, str) and value.lstrip()[:1] == "{":
        parsed_value = read_literal(value)
    if not isinstance(parsed_value, Mapping):
        return value
    if "sanitize_inputs_outputs" not in parsed_value:  # Only smolagents' wrapper has this field.
        return parsed_value
    return parsed_value.get("args") or parsed_value.get("kwargs")


_DOCUMENTS: Final = names("""
    retrieval.documents reranker.output_documents gen_ai.retrieval.documents gen_ai.memory.records
""")


def documents_text(span: OtelSpan) -> str | None:
    """Return the texts of a retriever's or reranker's documents, or of a memory's records."""
    for name in _DOCUMENTS:
        documents = value_under(span.attributes, name)
        if isinstance(documents, list):
            return "\n\n".join(map(_document_text, documents))
    return None


def _document_text(value: object) -> str:
    """Return the content of a document, else the whole value as text."""
    wrapped = fields_of(value).get("document")
    document = fields_of(wrapped if isinstance(wrapped, Mapping) else value)
    return text_in(document, "content", "document.content") or dump_text(value)


Names = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """The names of the attributes of one convention.

    Attributes:
        marks: The beginnings of names by which the convention is known.
        kind: The kind of the span, such as a call of a tool.
        row_kind_by_value: The row's kind by each value of the attributes ``kind``.
        agent: The acting agent.
        model: The model.
        tokens_in: The tokens of a model's input.
        tokens_out: The tokens of a model's output.
        tool: The tool.
        call_id: The id of a tool call.
        entity: A name of any called thing.
        request: The messages to a model.
        answer: The messages of a model.
        arguments: The arguments of a tool.
        result: The result of a tool.
        input: The input of any call.
        output: The output of any call.
    """

    marks: Names = ()
    kind: Names = ()
    row_kind_by_value: Mapping[str, RowKind] = field(default_factory=dict)
    agent: Names = ()
    model: Names = ()
    tokens_in: Names = ()
    tokens_out: Names = ()
    tool: Names = ()
    call_id: Names = ()
    entity: Names = ()
    request: Names = ()
    answer: Names = ()
    arguments: Names = ()
    result: Names = ()
    input: Names = ()
    output: Names = ()


def _kind_by_name(
    *, model: str = "", tool: str = "", agent: str = "", other: str = ""
) -> dict[str, RowKind]:
    """Map each name to its kind; each argument has the names of one kind, separated by spaces."""
    names_by_kind = {
        RowKind.MODEL: names(model),
        RowKind.TOOL: names(tool),
        RowKind.AGENT: names(agent),
        RowKind.OTHER: names(other),
    }
    return {name: kind for kind, kind_names in names_by_kind.items() for name in kind_names}


OPENINFERENCE: Final = Convention(
    marks=(
        "openinference.span.kind",
        "llm.input_messages",
        "llm.output_messages",
        "llm.token_count.",
    ),
    kind=("openinference.span.kind",),
    row_kind_by_value=_kind_by_name(
        model="llm",
        tool="tool",
        agent="agent",
        other="chain retriever reranker embedding guardrail evaluator prompt decision unknown",
    ),
    agent=("agent.name",),
    model=("llm.model_name", "embedding.model_name"),
    tokens_in=("llm.token_count.prompt",),
    tokens_out=("llm.token_count.completion",),
    tool=("tool.name",),
    call_id=("tool_call.id", "tool.call_id"),
    input=("input.value",),
    output=("output.value",),
)
GEN_AI: Final = Convention(
    marks=("gen_ai.",),
    kind=("gen_ai.operation.name",),
    row_kind_by_value=_kind_by_name(
        model="call_llm chat completion generate generate_content text_completion",
        tool="execute_tool",
        agent="invoke_agent",
        other="embeddings create_agent invoke_workflow execute_event_loop_cycle retrieval",
    ),
    agent=("gen_ai.agent.name",),
    model=("gen_ai.response.model", "gen_ai.request.model"),
    tokens_in=("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    tokens_out=("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
    tool=("gen_ai.tool.name",),
    call_id=("gen_ai.tool.call.id",),
    request=("gen_ai.input.messages", "gen_ai.prompt"),
    answer=("gen_ai.output.messages", "gen_ai.completion"),
    arguments=("gen_ai.tool.call.arguments",),
    result=("gen_ai.tool.call.result", "gen_ai.tool.message"),
    input=("gen_ai.retrieval.query.text", "gen_ai.memory.query.text"),
)
OPENLLMETRY: Final = Convention(
    marks=("traceloop.", "llm.request."),
    kind=("traceloop.span.kind", "llm.request.type"),
    row_kind_by_value=_kind_by_name(
        model="chat completion llm model", tool="tool", agent="agent", other="workflow task"
    ),
    entity=("traceloop.entity.name",),
    input=("traceloop.entity.input",),
    output=("traceloop.entity.output",),
)
AI_SDK: Final = Convention(
    marks=("ai.",),
    model=("ai.model.id",),
    tokens_in=("ai.usage.promptTokens", "ai.usage.inputTokens"),
    tokens_out=("ai.usage.completionTokens", "ai.usage.outputTokens"),
    tool=("ai.toolCall.name",),
    call_id=("ai.toolCall.id",),
    request=("ai.prompt.messages", "ai.prompt"),
    arguments=("ai.toolCall.args",),
    result=("ai.toolCall.result",),
)
GOOGLE_ADK: Final = Convention(
    marks=("gcp.vertex.agent.",),
    request=("gcp.vertex.agent.llm_request",),
    answer=("gcp.vertex.agent.llm_response",),
    arguments=("gcp.vertex.agent.tool_call_args",),
    result=("gcp.vertex.agent.tool_response",),
)
PYDANTIC_AI: Final = Convention(
    agent=("agent_name",),
    request=("pydantic_ai.all_messages",),
    arguments=("tool_arguments",),
    result=("tool_response",),
)
ANY_AGENT: Final = Convention(
    request=("gen_ai.input",),
    answer=("gen_ai.output",),
    arguments=("gen_ai.tool.args",),
    result=("gen_ai.output",),
)

CONVENTIONS: Final = (
    OPENINFERENCE,
    GEN_AI,
    OPENLLMETRY,
    AI_SDK,
    GOOGLE_ADK,
    PYDANTIC_AI,
    ANY_AGENT,
)


_ALL_CONVENTIONS: Final = Convention(
    row_kind_by_value={},
    **{
        name: tuple(chain(*(getattr(convention, name) for convention in CONVENTIONS)))
        for name in (attribute.name for attribute in fields(Convention))
        if name != "row_kind_by_value"
    },
)
"""The attributes of all conventions, in their order."""

CALL_ID_ATTRIBUTES: Final = _ALL_CONVENTIONS.call_id
_MODEL_PREFIXES: Final = (*OPENINFERENCE.marks, "gen_ai.usage.output_tokens")
_INSTRUCTIONS_ATTRIBUTE: Final = "gen_ai.system_instructions"
_READABLE_KINDS: Final = frozenset({"RETRIEVER", "RERANKER", "GUARDRAIL", "EVALUATOR"})
_NAME_PREFIXES: Final = ("invoke_agent ", "agent_run ", "execute_tool ", "create_agent ")


def row_of_attributes(attributes: object, name: str, row_id: str) -> SpanRow | None:
    """Return the row that the attributes of a span describe; None if they follow no convention.

    Args:
        attributes: A JSON object or its text.
        name: The name of the span.
        row_id: The id of the row.
    """
    attributes = json_in(attributes)
    if not isinstance(attributes, Mapping):
        return None
    return row_of(span_of({"name": name, "attributes": attributes}, location=""), row_id)


def row_of(span: OtelSpan, row_id: str) -> SpanRow | None:
    """Return the row that a span describes; None if it follows no convention.

    Args:
        span: A span with its attributes and events.
        row_id: The id of the row.
    """
    span = with_genai_names(span)
    span_names = (*span.attributes, *(event.name for event in span.events))
    if not any(name.startswith(_ALL_CONVENTIONS.marks) for name in span_names):
        return None
    row = span.row(row_id, _kind_of_span(span))
    agent = span.text(*_ALL_CONVENTIONS.agent)
    match row.kind:
        case RowKind.MODEL:
            return replace(
                row,
                agent=agent,
                model=span.text(*_ALL_CONVENTIONS.model),
                tokens=tokens_of(
                    span.value(*_ALL_CONVENTIONS.tokens_in),
                    span.value(*_ALL_CONVENTIONS.tokens_out),
                ),
                request=tuple(_request_messages(span)),
                answer=tuple(_answer_messages(span)),
            )
        case RowKind.TOOL:
            return _tool_row(span, row, agent)
        case RowKind.AGENT:
            return _agent_row(span, row, agent)
        case RowKind.OTHER:
            documents = documents_text(span)
            kind = span.text(*OPENINFERENCE.kind) or ""
            return replace(
                row,
                agent=agent,
                name=span.text(*_ALL_CONVENTIONS.entity) or span.name,
                input=_input_of(span),
                output=_output_of(span) if documents is None else documents,
                has_readable_output=kind.upper() in _READABLE_KINDS or documents is not None,
            )


def _kind_of_span(span: OtelSpan) -> RowKind:
    """Return the kind that an attribute names, else the kind that other attributes imply."""
    for convention in CONVENTIONS:
        for attribute in convention.kind:
            value = (span.text(attribute) or "").strip().lower().replace(" ", "_")
            if value in convention.row_kind_by_value:
                return convention.row_kind_by_value[value]
            if value.startswith("invoke_"):
                return RowKind.AGENT  # also a swarm or graph of agents, in Strands
    if any(name in span.attributes for name in (*GEN_AI.tool, *AI_SDK.tool)):
        return RowKind.TOOL
    if any(name.startswith(_MODEL_PREFIXES) for name in span.attributes):
        return RowKind.MODEL
    return RowKind.MODEL if _request_messages(span) or _answer_messages(span) else RowKind.OTHER


def _tool_row(span: OtelSpan, row: SpanRow, agent: str | None) -> SpanRow:
    arguments = _first_present(
        arguments_without_wrapping(span.value("input.value")),
        span.value(*_ALL_CONVENTIONS.arguments),
        _input_of(span),
        _first_part_field(_event_requests(span), "arguments"),
        _arguments_in_parameters(span),
    )
    result = tool_output(
        _first_present(
            span.value("output.value"),
            span.value(*_ALL_CONVENTIONS.result),
            _output_of(span),
            _first_part_field(_event_answers(span), "response"),
        )
    )
    status = status_of_word(span.text("gen_ai.tool.status"))
    return replace(
        row,
        agent=agent,
        name=span.text(*_ALL_CONVENTIONS.tool, *_ALL_CONVENTIONS.entity) or bare_name(span.name),
        input=arguments,
        output=result.output,
        call_id=span.text(*_ALL_CONVENTIONS.call_id) or result.call_id,
        status=worst_status(row.status, status, result.status),
    )


def _agent_row(span: OtelSpan, row: SpanRow, agent: str | None) -> SpanRow:
    """Return the row of an agent, with its input and output."""
    request = _request_messages(span)
    name = agent or span.text(*_ALL_CONVENTIONS.entity) or bare_name(span.name.removesuffix(".run"))
    return replace(
        row,
        name=name,
        agent=name,
        input=_first_present(span.value("input.value"), _last_text(request, "user")),
        output=_first_present(
            span.value("output.value"), _last_text(_answer_messages(span), "assistant")
        ),
        instructions=next(
            (_message_text(message) for message in request if is_system(message)), None
        ),
    )


def _first_present(*values: object) -> object:
    return next((value for value in values if value is not None), None)


def _arguments_in_parameters(span: OtelSpan) -> object:
    """Return a tool's arguments in ``tool.parameters``, unless it is a JSON schema."""
    parameters = value_under(span.attributes, "tool.parameters")
    return None if "properties" in fields_of(parameters) else parameters


def _first_part_field(messages: Iterable[Message], field: str) -> object:
    """Return a field of a part of the first message that has it, else the message's content."""
    for message in messages:
        for part in map(fields_of, items_of(message.get("parts"))):
            if part.get(field) is not None:
                return part[field]
        if content := message.get("content"):
            return value_in(content)
    return None


def _request_messages(span: OtelSpan) -> list[Message]:
    """Return the messages to a model or an agent, its system prompt first.

    The messages come from the first of these that has any:

    - OpenInference's attributes and input, or the prompts of a text completion
    - the request of any convention
    - the events of the span
    - the request or the input as plain text
    """
    system_messages = _system_messages(span.attributes)
    input_value = span.value("input.value")
    flat_messages = flattened_messages(span, "llm.input_messages", "user")
    messages = fuller_messages(flat_messages, request_messages(input_value))
    messages = messages or _prompt_messages(span)
    if messages:
        has_system = any(map(is_system, messages))
        return [*([] if has_system else system_messages), *with_smolagents_calls(messages)]

    requests = [value_under(span.attributes, name) for name in _ALL_CONVENTIONS.request]
    requests = [request for request in requests if request is not None]
    for request in requests:
        if messages := list(request_messages(request)):
            return [*system_messages, *messages]
    if messages := [*system_messages, *_event_requests(span)]:
        return messages
    return list(request_text(requests[0] if requests else input_value))


def _answer_messages(span: OtelSpan) -> list[Message]:
    """Return the messages of the answer of a model or an agent.

    The messages come from the first of these that has any:

    - OpenInference's attributes and output
    - the answer of the ``gen_ai`` conventions, or of Google's ADK
    - the events of the span
    - the answer of the AI SDK or of any-agent
    - the output as plain text
    """
    output_value = span.value("output.value")
    flat_messages = flattened_messages(span, "llm.output_messages", "assistant")
    if messages := fuller_messages(flat_messages, structured_answer(output_value)):
        return messages

    for name in (*GEN_AI.answer, *GOOGLE_ADK.answer):
        answer = value_under(span.attributes, name)
        read_messages = answer_messages if name in GEN_AI.answer else structured_answer
        if messages := list(read_messages(answer)):
            return messages

    any_agent_output = span.value(*ANY_AGENT.answer)
    messages = _event_answers(span) or _ai_sdk_answer(span) or _any_agent_answer(any_agent_output)
    if messages:
        return messages
    return list(answer_messages(any_agent_output if output_value is None else output_value))


def _system_messages(attributes: Fields) -> list[Message]:
    text = content_text(value_under(attributes, _INSTRUCTIONS_ATTRIBUTE))
    return [{"role": "system", "content": text}] if text.strip() else []


def _prompt_messages(span: OtelSpan) -> list[Message]:
    """Return the prompts of a text completion as messages."""
    prompts = items_of(value_under(span.attributes, "llm.prompts"))
    return [{"role": "user", "content": content_text(prompt)} for prompt in prompts]


_DETAILS_EVENT: Final = "gen_ai.client.inference.operation.details"
_ROLE_BY_EVENT: Final = {
    f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")
}


def _all_events(span: OtelSpan) -> Iterable[SpanEvent]:
    """Return the events of a span, and those in Logfire's attribute ``events``."""
    logfire_events = items_of(value_under(span.attributes, "events"))
    return [
        *span.events,
        *(event_of({"body": event}) for event in logfire_events if isinstance(event, Mapping)),
    ]


def _event_requests(span: OtelSpan) -> list[Message]:
    messages: list[Message] = []
    for event in _all_events(span):
        if event.name == _DETAILS_EVENT:
            request = value_under(event.attributes, "gen_ai.input.messages")
            messages += [*_system_messages(event.attributes), *request_messages(request)]
        elif event.name == "gen_ai.content.prompt":
            request = value_under(event.attributes, "gen_ai.prompt")
            messages += request_messages(request) or request_text(request)
        elif event.name in _ROLE_BY_EVENT:
            messages.append(_event_message(event.attributes, _ROLE_BY_EVENT[event.name]))
    return messages


def _event_answers(span: OtelSpan) -> list[Message]:
    messages: list[Message] = []
    for event in _all_events(span):
        if event.name == _DETAILS_EVENT:
            messages += answer_messages(value_under(event.attributes, "gen_ai.output.messages"))
        elif event.name in ("gen_ai.content.completion", "gen_ai.choice"):
            completion = value_under(event.attributes, "gen_ai.completion")
            if completion is not None:
                messages += answer_messages(completion)
            elif event.name == "gen_ai.choice":
                messages.append(_message_of_choice(event.attributes))
    return messages


def _event_message(attributes: Fields, role: str) -> Message:
    """Return the message in an event's attributes; ``role`` is the default role."""
    content = value_under(attributes, "content")
    calls = value_under(attributes, "tool_calls")
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


def _message_of_choice(attributes: Fields) -> Message:
    """Return the message in the attributes of the event ``gen_ai.choice``."""
    message = value_under(attributes, "message")
    if isinstance(message, str | list):
        return {"role": "assistant", "content": message}
    fields = {**attributes, **message} if isinstance(message, Mapping) else attributes
    return _event_message(fields, "assistant")


def _ai_sdk_answer(span: OtelSpan) -> list[Message]:
    """Return the answer in the AI SDK's attributes."""
    text = span.value("ai.response.text", "ai.response.object")
    calls = value_under(span.attributes, "ai.response.toolCalls")
    if text is None and not isinstance(calls, list):
        return []
    answer = {"role": "assistant", "content": text or "", "tool_calls": calls or []}
    thought = span.text("ai.response.reasoning")
    return [answer if thought is None else {**answer, "reasoning": thought}]


def _any_agent_answer(output: object) -> list[Message]:
    """Return an answer with any-agent's calls, as in ``[{"tool.name", "tool.args"}]``."""
    calls = [fields_of(call) for call in items_of(json_in(output))]
    if not calls or not all("tool.name" in call for call in calls):
        return []
    functions = [{"name": call["tool.name"], "arguments": call.get("tool.args")} for call in calls]
    tool_calls = [{"function": function} for function in functions]
    return [{"role": "assistant", "content": "", "tool_calls": tool_calls}]


def _last_text(messages: list[Message], role: str) -> str | None:
    """Return the text of the last message with a role."""
    for message in reversed(messages):
        if message.get("role") == role and is_message(message):
            return _message_text(message)
    return None


def _message_text(message: Message) -> str | None:
    return content_text(first_in(message, "content", "parts")) or None


def _input_of(span: OtelSpan) -> object:
    return _unwrapped_value(span, _ALL_CONVENTIONS.input, "inputs")


def _output_of(span: OtelSpan) -> object:
    return _unwrapped_value(span, _ALL_CONVENTIONS.output, "outputs")


def _unwrapped_value(span: OtelSpan, attributes: Names, field: str) -> object:
    """Return the first value of some attributes, without OpenLLMetry's object around it."""
    for name in attributes:
        if name in (*OPENLLMETRY.input, *OPENLLMETRY.output):
            value = value_under(span.attributes, name)
            wrapper = fields_of(value)
            if wrapper.get(field) == {} and wrapper.get("args"):
                return wrapper["args"]  # the call had positional arguments only
            value = value if wrapper.get(field) is None else wrapper[field]
        else:
            value = span.value(name)
        if value is not None:
            return value
    return None


def bare_name(name: str) -> str:
    """Return a span's name without a prefix such as ``execute_tool`` and without brackets."""
    for prefix in _NAME_PREFIXES:
        name = name.removeprefix(prefix)
    return name.strip().removeprefix("[").removesuffix("]") or name
