"""Spans that follow the ``gen_ai`` conventions, in each generation of them and some variants.

The content of a model's call stands in numbered attributes (``gen_ai.prompt.0.content``), in
events (``gen_ai.user.message``), or in messages with parts (``gen_ai.input.messages``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text, dump_text, tokens_of
from mast_tui.traces.readers.chat.pieces import is_message
from mast_tui.traces.readers.otel.messages import listed_messages, messages_in
from mast_tui.traces.readers.otel.spans import Event, OtelSpan, event_of
from mast_tui.traces.readers.otel.values import grouped, json_in
from mast_tui.traces.readers.span_tree.builder import Message, Row, RowKind

_OPERATIONS: Final = {
    "chat": RowKind.MODEL,
    "text_completion": RowKind.MODEL,
    "completion": RowKind.MODEL,
    "generate_content": RowKind.MODEL,
    "generate": RowKind.MODEL,
    "call_llm": RowKind.MODEL,
    "execute_tool": RowKind.TOOL,
    "invoke_agent": RowKind.AGENT,
    "embeddings": RowKind.OTHER,
    "create_agent": RowKind.OTHER,
    "invoke_workflow": RowKind.OTHER,
    "workflow": RowKind.OTHER,
    "task": RowKind.OTHER,
    "agent": RowKind.AGENT,
    "tool": RowKind.TOOL,
    "llm": RowKind.MODEL,
    "model": RowKind.MODEL,
}
_VERBS: Final = ("invoke_agent ", "execute_tool ", "create_agent ")
_ROLES: Final = ("system", "user", "assistant", "tool")
_PREFIXES: Final = ("gen_ai.", "traceloop.", "llm.request.", "gcp.vertex.agent.", "ai.")
_DETAILS: Final = "gen_ai.client.inference.operation.details"


def is_genai(span: OtelSpan) -> bool:
    """Whether a span has attributes or events of the ``gen_ai`` conventions or their variants."""
    names = [*span.attributes, *(event.name for event in span.events)]
    return any(name.startswith(_PREFIXES) for name in names)


def is_genai_event(name: str) -> bool:
    """Whether a log record of this name belongs to the call of a model."""
    return name.startswith("gen_ai.")


def genai_row(span: OtelSpan, row_id: str) -> Row:
    """The row that a span of the ``gen_ai`` conventions makes."""
    kind = _kind(span)
    row = replace(span.row(row_id, kind), agent=span.text("gen_ai.agent.name", "agent_name"))
    match kind:
        case RowKind.MODEL:
            return _model(span, row)
        case RowKind.TOOL:
            return _tool(span, row)
        case RowKind.AGENT:
            name = row.agent or span.text("traceloop.entity.name") or _bare(span.name)
            taken, given = _told(_asked(span), "user"), _told(_answered(span), "assistant")
            return replace(row, name=name, agent=name, input=taken, output=given)
        case RowKind.OTHER:
            return replace(
                row,
                name=span.text("traceloop.entity.name") or span.name,
                input=_entity(span, "input"),
                output=_entity(span, "output"),
            )


def _kind(span: OtelSpan) -> RowKind:
    for name in ("gen_ai.operation.name", "traceloop.span.kind", "llm.request.type"):
        said = (span.text(name) or "").strip().lower().replace(" ", "_")
        if said in _OPERATIONS:
            return _OPERATIONS[said]
    if "gen_ai.tool.name" in span.attributes or "ai.toolCall.name" in span.attributes:
        return RowKind.TOOL
    if _asked(span) or _answered(span) or span.value("gen_ai.usage.output_tokens") is not None:
        return RowKind.MODEL
    return RowKind.OTHER


def _model(span: OtelSpan, row: Row) -> Row:
    value = span.value
    return replace(
        row,
        model=span.text("gen_ai.response.model", "gen_ai.request.model", "ai.model.id"),
        tokens=tokens_of(
            value("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
            value("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        ),
        asked=tuple(_asked(span)),
        answered=tuple(_answered(span)),
    )


def _tool(span: OtelSpan, row: Row) -> Row:
    name = span.text("gen_ai.tool.name", "ai.toolCall.name", "traceloop.entity.name")
    taken = span.value(
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.args",
        "gcp.vertex.agent.tool_call_args",
        "ai.toolCall.args",
        "tool_arguments",
    )
    given = span.value(
        "gen_ai.tool.call.result",
        "gen_ai.tool.message",
        "gen_ai.output",
        "gcp.vertex.agent.tool_response",
        "ai.toolCall.result",
        "tool_response",
    )
    return replace(
        row,
        name=name or _bare(span.name),
        input=_entity(span, "input") if taken is None else taken,
        output=_entity(span, "output") if given is None else given,
        call_id=span.text("gen_ai.tool.call.id", "ai.toolCall.id"),
    )


def _asked(span: OtelSpan) -> list[Message]:
    found = _instructions(grouped(span.attributes, "gen_ai.system_instructions"))
    told = grouped(span.attributes, "gen_ai.input.messages")
    for candidate in (told, grouped(span.attributes, "gen_ai.prompt")):
        if candidate is not None:
            return found + messages_in(candidate)
    for event in _events(span):
        if event.name == _DETAILS:
            found += _instructions(grouped(event.attributes, "gen_ai.system_instructions"))
            found += messages_in(grouped(event.attributes, "gen_ai.input.messages"))
        elif event.name == "gen_ai.content.prompt":
            found += messages_in(grouped(event.attributes, "gen_ai.prompt"))
        elif (role := _role(event.name)) is not None:
            found.append(_event_message(event.attributes, role))
    if found:
        return found
    others = ("gen_ai.input", "ai.prompt.messages", "pydantic_ai.all_messages", "ai.prompt")
    for name in others:
        if messages := listed_messages(grouped(span.attributes, name)):
            return messages
    return _vertex_request(span)


def _answered(span: OtelSpan) -> list[Message]:
    told = grouped(span.attributes, "gen_ai.output.messages")
    for candidate in (told, grouped(span.attributes, "gen_ai.completion")):
        if candidate is not None:
            return messages_in(candidate, "assistant")
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
        calls = _any_agent_calls(output)
        return calls or messages_in(output, "assistant")
    text, calls_made = (
        span.value("ai.response.text"),
        grouped(span.attributes, "ai.response.toolCalls"),
    )
    if text is not None or isinstance(calls_made, list):
        return [{"role": "assistant", "content": text or "", "tool_calls": calls_made or []}]
    response = grouped(span.attributes, "gcp.vertex.agent.llm_response")
    content = response.get("content") if isinstance(response, Mapping) else None
    return [content] if isinstance(content, Mapping) else []


def _events(span: OtelSpan) -> Iterable[Event]:
    """The events of a span, and those that Logfire keeps in an attribute instead."""
    kept = grouped(span.attributes, "events")
    listed = kept if isinstance(kept, list) else []
    return [*span.events, *(event_of({"body": one}) for one in listed if isinstance(one, Mapping))]


def _role(name: str) -> str | None:
    role = name.removeprefix("gen_ai.").removesuffix(".message")
    return role if role in _ROLES and name == f"gen_ai.{role}.message" else None


def _event_message(attributes: Mapping[str, object], role: str) -> Message:
    message: dict[str, object] = {
        "role": as_text(attributes.get("role")) or role,
        "content": _parsed(grouped(attributes, "content")) or "",
    }
    calls = grouped(attributes, "tool_calls")
    if isinstance(calls, list):
        message["tool_calls"] = calls
    if role == "tool":
        message["tool_call_id"] = attributes.get("id") or attributes.get("tool_call_id")
        message["name"] = attributes.get("name")
    return message


def _choice(attributes: Mapping[str, object]) -> Message:
    inner = grouped(attributes, "message")
    if isinstance(inner, str):
        return {"role": "assistant", "content": inner}
    fields = {**attributes, **inner} if isinstance(inner, Mapping) else attributes
    return _event_message(fields, "assistant")


def _parsed(value: object) -> object:
    """A list of parts stays one; any other value is its text."""
    return value if isinstance(value, list) else dump_text(value)


def _instructions(value: object) -> list[Message]:
    if value is None:
        return []
    text = content_text(value)
    return [{"role": "system", "content": text}] if text.strip() else []


def _any_agent_calls(output: object) -> list[Message]:
    """The tool calls that any-agent writes as ``[{"tool.name", "tool.args"}]``."""
    calls = json_in(output) if isinstance(output, str) else output
    if not isinstance(calls, list) or not calls:
        return []
    if not all(isinstance(call, Mapping) and "tool.name" in call for call in calls):
        return []
    made = [
        {"function": {"name": call["tool.name"], "arguments": call.get("tool.args")}}
        for call in calls
    ]
    return [{"role": "assistant", "content": "", "tool_calls": made}]


def _vertex_request(span: OtelSpan) -> list[Message]:
    """The messages of Google's ADK: contents, with the instruction beside them."""
    request = grouped(span.attributes, "gcp.vertex.agent.llm_request")
    if not isinstance(request, Mapping):
        return []
    config = request.get("config")
    instruction = config.get("system_instruction") if isinstance(config, Mapping) else None
    return _instructions(instruction) + listed_messages(request.get("contents"))


def _told(messages: list[Message], role: str) -> object:
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


def _bare(name: str) -> str:
    """A span's name without the verb that the conventions put before it."""
    for verb in _VERBS:
        name = name.removeprefix(verb)
    return name.strip().removeprefix("[").removesuffix("]") or name
