"""Spans that follow OpenInference, as Phoenix's and Arize's instrumentation writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text, dump_text, tokens_of
from mast_tui.traces.readers.otel.messages import (
    fuller,
    listed_messages,
    literal,
    messages_in,
    openinference_messages,
    retold_by_smolagents,
    tool_message,
)
from mast_tui.traces.readers.otel.spans import OtelSpan
from mast_tui.traces.readers.otel.values import grouped, json_in
from mast_tui.traces.readers.span_tree.builder import Message, Row, RowKind

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
            return _model(span, row)
        case RowKind.TOOL:
            output, call_id = _tool_output(given)
            return replace(
                row,
                name=span.text("tool.name") or span.name,
                input=_arguments(taken),
                output=output,
                call_id=span.text("tool_call.id", "tool.call_id", "gen_ai.tool.call.id") or call_id,
            )
        case RowKind.AGENT:
            name = row.agent or span.name.removesuffix(".run")
            return replace(row, name=name, agent=name, input=taken, output=given)
        case RowKind.OTHER:
            documents = _documents(span)
            output = given if documents is None else documents
            return replace(row, input=taken, output=output, speaks=said in _SPEAKING)


def _model(span: OtelSpan, row: Row) -> Row:
    taken, given = span.value("input.value"), span.value("output.value")
    asked = _told(span, "llm.input_messages", "user")
    answered = _told(span, "llm.output_messages", "assistant")
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


def _told(span: OtelSpan, name: str, role: str) -> list[Message]:
    value = grouped(span.attributes, name)
    if isinstance(value, str):
        return messages_in(value, role)
    return [] if value is None else openinference_messages(value)


def _prompts(span: OtelSpan) -> list[Message]:
    """The prompts of a completion that has no messages."""
    prompts = grouped(span.attributes, "llm.prompts")
    if not isinstance(prompts, list):
        return []
    return [{"role": "user", "content": content_text(prompt)} for prompt in prompts]


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
    parsed = json_in(value) if isinstance(value, str) else value
    inner: object = value
    if isinstance(parsed, Mapping) and set(parsed) == {"output"}:
        inner = parsed["output"]
    if isinstance(inner, str):
        message = tool_message(inner)
        return (inner, None) if message is None else message
    fields = inner
    if isinstance(fields, Mapping) and isinstance(fields.get("kwargs"), Mapping):
        fields = fields["kwargs"]
    if isinstance(fields, Mapping) and (call_id := as_text(fields.get("tool_call_id"))):
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
    if isinstance(value, Mapping):
        inner = value.get("document")
        fields = inner if isinstance(inner, Mapping) else value
        text = as_text(fields.get("content")) or as_text(fields.get("document.content"))
        return text or dump_text(value)
    return dump_text(value)
