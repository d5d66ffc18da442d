"""The conventions of OpenTelemetry spans for the work of models, tools and agents.

Each is a table of the attributes that it uses. Spans often follow several: a fact is taken from the
first table whose attribute is there. Of the ``gen_ai`` conventions there are three generations:
messages in numbered attributes (``gen_ai.prompt.0.content``), in events (``gen_ai.user.message``)
and as messages with parts (``gen_ai.input.messages``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text, dump_text, tokens_of
from mast_tui.traces.model import SpanStatus
from mast_tui.traces.readers.chat.turns import is_message
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    items_of,
    json_in,
    names,
    value_in,
)
from mast_tui.traces.readers.otel.openinference import (
    arguments_without_wrapping,
    documents_text,
    flattened_messages,
    fuller_messages,
    with_smolagents_calls,
)
from mast_tui.traces.readers.otel.spans import OtelSpan, SpanEvent, event_of, span_of, value_under
from mast_tui.traces.readers.span_tree.messages import (
    answer_messages,
    is_system,
    request_messages,
    request_text,
    structured_answer,
    tool_output,
    worse_status,
)
from mast_tui.traces.readers.span_tree.rows import Message, RowKind, SpanRow

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """The names of the attributes of one convention.

    Attributes:
        marks: The beginnings of names by which the convention is known.
        kind: The kind of the call; ``kinds`` has the meanings of its values.
        agent: The acting agent.
        model: The model; ``tokens_in`` and ``tokens_out`` are the tokens of its call.
        tool: The tool; ``call_id`` is the id of its call.
        entity: A name for anything.
        asked: The messages that went into a model; ``answered`` those that came out.
        arguments: The arguments of a tool; ``result`` what it gave back.
        input: The input of any call; ``output`` its output.
    """

    marks: Names
    kind: Names = ()
    kinds: Mapping[str, RowKind]
    agent: Names = ()
    model: Names = ()
    tokens_in: Names = ()
    tokens_out: Names = ()
    tool: Names = ()
    call_id: Names = ()
    entity: Names = ()
    asked: Names = ()
    answered: Names = ()
    arguments: Names = ()
    result: Names = ()
    input: Names = ()
    output: Names = ()


def _kinds(
    *, model: str = "", tool: str = "", agent: str = "", other: str = ""
) -> dict[str, RowKind]:
    rows = (RowKind.MODEL, RowKind.TOOL, RowKind.AGENT, RowKind.OTHER)
    listed = zip(rows, (model, tool, agent, other), strict=True)
    return {name: kind for kind, spaced_names in listed for name in names(spaced_names)}


OPENINFERENCE: Final = Convention(
    marks=(
        "openinference.span.kind",
        "llm.input_messages",
        "llm.output_messages",
        "llm.token_count.",
    ),
    kind=("openinference.span.kind",),
    kinds=_kinds(
        model="llm",
        tool="tool",
        agent="agent",
        other="chain retriever reranker embedding guardrail evaluator prompt unknown",
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
    kinds=_kinds(
        model="call_llm chat completion generate generate_content text_completion",
        tool="execute_tool",
        agent="invoke_agent",
        other="embeddings create_agent invoke_workflow execute_event_loop_cycle",
    ),
    agent=("gen_ai.agent.name",),
    model=("gen_ai.response.model", "gen_ai.request.model"),
    tokens_in=("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    tokens_out=("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
    tool=("gen_ai.tool.name",),
    call_id=("gen_ai.tool.call.id",),
    asked=("gen_ai.input.messages", "gen_ai.prompt"),
    answered=("gen_ai.output.messages", "gen_ai.completion"),
    arguments=("gen_ai.tool.call.arguments",),
    result=("gen_ai.tool.call.result", "gen_ai.tool.message"),
)
OPENLLMETRY: Final = Convention(
    marks=("traceloop.", "llm.request."),
    kind=("traceloop.span.kind", "llm.request.type"),
    kinds=_kinds(
        model="chat completion llm model", tool="tool", agent="agent", other="workflow task"
    ),
    entity=("traceloop.entity.name",),
    input=("traceloop.entity.input",),
    output=("traceloop.entity.output",),
)
AI_SDK: Final = Convention(
    marks=("ai.",),
    kinds={},
    model=("ai.model.id",),
    tokens_in=("ai.usage.promptTokens", "ai.usage.inputTokens"),
    tokens_out=("ai.usage.completionTokens", "ai.usage.outputTokens"),
    tool=("ai.toolCall.name",),
    call_id=("ai.toolCall.id",),
    asked=("ai.prompt.messages", "ai.prompt"),
    arguments=("ai.toolCall.args",),
    result=("ai.toolCall.result",),
)
GOOGLE_ADK: Final = Convention(
    marks=("gcp.vertex.agent.",),
    kinds={},
    asked=("gcp.vertex.agent.llm_request",),
    answered=("gcp.vertex.agent.llm_response",),
    arguments=("gcp.vertex.agent.tool_call_args",),
    result=("gcp.vertex.agent.tool_response",),
)
PYDANTIC_AI: Final = Convention(
    marks=(),
    kinds={},
    agent=("agent_name",),
    asked=("pydantic_ai.all_messages",),
    arguments=("tool_arguments",),
    result=("tool_response",),
)
ANY_AGENT: Final = Convention(
    marks=(),
    kinds={},
    asked=("gen_ai.input",),
    answered=("gen_ai.output",),
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


def _merged(conventions: Iterable[Convention]) -> Convention:
    """Return one table with the attributes of all, in the order in which they count."""
    merged: dict[str, Names] = {}
    for convention in conventions:
        for field in fields(convention):
            if field.name != "kinds":
                names_before = merged.get(field.name, ())
                merged[field.name] = names_before + getattr(convention, field.name)
    return Convention(kinds={}, **merged)


_ALL: Final = _merged(CONVENTIONS)
_TOOL_MARKS: Final = (*GEN_AI.tool, *AI_SDK.tool)
_MODEL_MARKS: Final = (*OPENINFERENCE.marks, "gen_ai.usage.output_tokens")
_INSTRUCTIONS: Final = "gen_ai.system_instructions"
_TOOL_STATUS: Final = {"error": SpanStatus.ERROR, "success": SpanStatus.OK}
_SPEAKING: Final = frozenset({"RETRIEVER", "RERANKER", "GUARDRAIL", "EVALUATOR"})
_VERBS: Final = ("invoke_agent ", "agent_run ", "execute_tool ", "create_agent ")


def row_of_attributes(attributes: object, name: str, row_id: str) -> SpanRow | None:
    """Return the row that the attributes of a span make; None where they are of no convention.

    Args:
        attributes: A JSON object, or the text of one; anything else is of no convention.
        name: The name of the span.
        row_id: The id of the row.
    """
    attributes = json_in(attributes)
    if not isinstance(attributes, Mapping):
        return None
    return row_of(span_of({"name": name, "attributes": attributes}, ""), row_id)


def row_of(span: OtelSpan, row_id: str) -> SpanRow | None:
    """Return the row that a span makes by the conventions that it follows; None without any.

    Args:
        span: A span with its attributes and events.
        row_id: The id of the row.
    """
    marked = (*span.attributes, *(event.name for event in span.events))
    if not any(name.startswith(_ALL.marks) for name in marked):
        return None
    row = span.row(row_id, _kind(span))
    agent = span.text(*_ALL.agent)
    match row.kind:
        case RowKind.MODEL:
            return replace(
                row,
                agent=agent,
                model=span.text(*_ALL.model),
                tokens=tokens_of(span.value(*_ALL.tokens_in), span.value(*_ALL.tokens_out)),
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
                name=span.text(*_ALL.entity) or span.name,
                input=_input_of(span),
                output=_output_of(span) if documents is None else documents,
                has_readable_output=kind.upper() in _SPEAKING,
            )


def _kind(span: OtelSpan) -> RowKind:
    """Return the kind of a span by the first convention that states it, else by its attributes."""
    for convention in CONVENTIONS:
        for name in convention.kind:
            value = (span.text(name) or "").strip().lower().replace(" ", "_")
            if value in convention.kinds:
                return convention.kinds[value]
            if value and convention is OPENINFERENCE:
                return RowKind.OTHER
            if value.startswith("invoke_"):  # as Strands calls a swarm or a graph of agents
                return RowKind.AGENT
    if any(name in span.attributes for name in _TOOL_MARKS):
        return RowKind.TOOL
    if any(name.startswith(_MODEL_MARKS) for name in span.attributes):
        return RowKind.MODEL
    return RowKind.MODEL if _request_messages(span) or _answer_messages(span) else RowKind.OTHER


def _tool_row(span: OtelSpan, row: SpanRow, agent: str | None) -> SpanRow:
    """Return the row of a tool: its arguments and result are in attributes, or in events."""
    arguments = _first_present(
        arguments_without_wrapping(span.value("input.value")),
        span.value(*_ALL.arguments),
        _input_of(span),
        _in_parts(_event_requests(span), "arguments"),
        _parameters(span),
    )
    result = tool_output(
        _first_present(
            span.value("output.value"),
            span.value(*_ALL.result),
            _output_of(span),
            _in_parts(_event_answers(span), "response"),
        )
    )
    status = _TOOL_STATUS.get(span.text("gen_ai.tool.status") or "", result.status)
    return replace(
        row,
        agent=agent,
        name=span.text(*_ALL.tool, *_ALL.entity) or bare_name(span.name),
        input=arguments,
        output=result.output,
        call_id=span.text(*_ALL.call_id) or result.call_id,
        status=worse_status(row.status, status),
    )


def _agent_row(span: OtelSpan, row: SpanRow, agent: str | None) -> SpanRow:
    asked = _request_messages(span)
    name = agent or span.text(*_ALL.entity) or bare_name(span.name.removesuffix(".run"))
    return replace(
        row,
        name=name,
        agent=name,
        input=_first_present(span.value("input.value"), _last_text(asked, "user")),
        output=_first_present(
            span.value("output.value"), _last_text(_answer_messages(span), "assistant")
        ),
        instructions=next((_text(message) for message in asked if is_system(message)), None),
    )


def _first_present(*values: object) -> object:
    return next((value for value in values if value is not None), None)


def _parameters(span: OtelSpan) -> object:
    """Return the arguments in a tool's parameters, which are its JSON schema in some libraries."""
    parameters = value_under(span.attributes, "tool.parameters")
    return None if "properties" in fields_of(parameters) else parameters


def _in_parts(messages: Iterable[Message], field: str) -> object:
    """Return what the messages on a tool's span hold in a part's field, or as content."""
    for message in messages:
        for part in map(fields_of, items_of(message.get("parts"))):
            if part.get(field) is not None:
                return part[field]
        if content := message.get("content"):
            return value_in(content)
    return None


def _request_messages(span: OtelSpan) -> list[Message]:
    """Return the messages that a model or an agent was given, its system prompt first."""
    raw = span.value("input.value")
    flattened = flattened_messages(span, "llm.input_messages", "user")
    messages = fuller_messages(flattened, request_messages(raw)) or _prompts(span)
    instructions = _instructions(span.attributes)
    if messages:
        system = [] if any(map(is_system, messages)) else instructions
        return [*system, *with_smolagents_calls(messages)]
    values = [
        value for name in _ALL.asked if (value := value_under(span.attributes, name)) is not None
    ]
    for value in values:
        if messages := list(request_messages(value)):
            return [*instructions, *messages]
    if messages := [*instructions, *_event_requests(span)]:
        return messages
    return list(request_text(values[0] if values else raw))


def _answer_messages(span: OtelSpan) -> list[Message]:
    """Return the messages that a model or an agent answered."""
    raw = span.value("output.value")
    flattened = flattened_messages(span, "llm.output_messages", "assistant")
    if messages := fuller_messages(flattened, structured_answer(raw)):
        return messages
    for name in (*GEN_AI.answered, *GOOGLE_ADK.answered):
        value = value_under(span.attributes, name)
        read = answer_messages if name in GEN_AI.answered else structured_answer
        if messages := list(read(value)):
            return messages
    output = span.value(*ANY_AGENT.answered)
    if messages := _event_answers(span) or _ai_sdk_answer(span) or _any_agent_calls(output):
        return messages
    return list(answer_messages(output if raw is None else raw))


def _instructions(attributes: Fields) -> list[Message]:
    text = content_text(value_under(attributes, _INSTRUCTIONS))
    return [{"role": "system", "content": text}] if text.strip() else []


def _prompts(span: OtelSpan) -> list[Message]:
    """Return the prompts of a completion that has no messages."""
    prompts = items_of(value_under(span.attributes, "llm.prompts"))
    return [{"role": "user", "content": content_text(prompt)} for prompt in prompts]


_DETAILS: Final = "gen_ai.client.inference.operation.details"
_EVENT_ROLES: Final = {
    f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")
}


def _events(span: OtelSpan) -> Iterable[SpanEvent]:
    """Return the events of a span, and those that Logfire keeps in an attribute instead."""
    listed = items_of(value_under(span.attributes, "events"))
    return [
        *span.events,
        *(event_of({"body": event}) for event in listed if isinstance(event, Mapping)),
    ]


def _event_requests(span: OtelSpan) -> list[Message]:
    """Return the input messages in the events of a span."""
    messages: list[Message] = []
    for event in _events(span):
        if event.name == _DETAILS:
            asked = value_under(event.attributes, "gen_ai.input.messages")
            messages += [*_instructions(event.attributes), *request_messages(asked)]
        elif event.name == "gen_ai.content.prompt":
            asked = value_under(event.attributes, "gen_ai.prompt")
            messages += request_messages(asked) or request_text(asked)
        elif event.name in _EVENT_ROLES:
            messages.append(_event_message(event.attributes, _EVENT_ROLES[event.name]))
    return messages


def _event_answers(span: OtelSpan) -> list[Message]:
    """Return the output messages in the events of a span."""
    messages: list[Message] = []
    for event in _events(span):
        if event.name == _DETAILS:
            messages += answer_messages(value_under(event.attributes, "gen_ai.output.messages"))
        elif event.name == "gen_ai.content.completion":
            messages += answer_messages(value_under(event.attributes, "gen_ai.completion"))
        elif event.name == "gen_ai.choice":
            messages.append(_choice(event.attributes))
    return messages


def _event_message(attributes: Fields, role: str) -> Message:
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


def _choice(attributes: Fields) -> Message:
    """Return the message of a choice: a text, Strands' list of parts, or a message's fields."""
    inner = value_under(attributes, "message")
    if isinstance(inner, str | list):
        return {"role": "assistant", "content": inner}
    fields = {**attributes, **inner} if isinstance(inner, Mapping) else attributes
    return _event_message(fields, "assistant")


def _ai_sdk_answer(span: OtelSpan) -> list[Message]:
    text = span.value("ai.response.text")
    calls = value_under(span.attributes, "ai.response.toolCalls")
    if text is None and not isinstance(calls, list):
        return []
    return [{"role": "assistant", "content": text or "", "tool_calls": calls or []}]


def _any_agent_calls(output: object) -> list[Message]:
    """Return the tool calls that any-agent writes as ``[{"tool.name", "tool.args"}]``."""
    calls = [fields_of(call) for call in items_of(json_in(output))]
    if not calls or not all("tool.name" in call for call in calls):
        return []
    functions = [{"name": call["tool.name"], "arguments": call.get("tool.args")} for call in calls]
    made = [{"function": function} for function in functions]
    return [{"role": "assistant", "content": "", "tool_calls": made}]


def _last_text(messages: list[Message], role: str) -> str | None:
    """Return the text of the last message of a role, for a row without messages of its own."""
    last = (m for m in reversed(messages) if m.get("role") == role and is_message(m))
    message = next(last, None)
    return None if message is None else _text(message)


def _text(message: Message) -> str | None:
    return content_text(first_in(message, "content", "parts")) or None


def _input_of(span: OtelSpan) -> object:
    return _of_entity(span, _ALL.input, "inputs")


def _output_of(span: OtelSpan) -> object:
    return _of_entity(span, _ALL.output, "outputs")


def _of_entity(span: OtelSpan, attributes: Names, field: str) -> object:
    """Return an input or output without the object that OpenLLMetry puts around it."""
    for name in attributes:
        if name in (*OPENLLMETRY.input, *OPENLLMETRY.output):
            value = value_under(span.attributes, name)
            inner = fields_of(value).get(field)
            if inner == {} and fields_of(value).get("args"):
                return fields_of(value)["args"]
            value = value if inner is None else inner
        else:
            value = span.value(name)
        if value is not None:
            return value
    return None


def bare_name(name: str) -> str:
    """Return a span's name without the verb that the conventions put before it."""
    for verb in _VERBS:
        name = name.removeprefix(verb)
    return name.strip().removeprefix("[").removesuffix("]") or name
