"""Events of Amazon Bedrock's agents, as ``InvokeAgent`` streams them with its trace enabled."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_values import content_text
from mast_tui.traces.model import Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    Piece,
    Speaker,
    Turn,
    call_piece,
    json_log_piece,
    log_piece,
    result_piece,
)
from mast_tui.traces.readers.chat.values import message_text, usage_tokens
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    first_in,
    items_of,
    located_objects,
    name_in,
    object_in,
    texts_in,
)
from mast_tui.traces.readers.sessions.engine import (
    SYSTEM,
    USER,
    SessionContext,
    SessionFormat,
    new_pieces,
    turn_without_empty_pieces,
)

_INPUT_TOOLS: Final = {
    "knowledgeBaseLookupInput": "knowledge_base",
    "codeInterpreterInvocationInput": "code_interpreter",
}
_LOG_TRACES: Final = ("guardrailTrace", "customOrchestrationTrace")
_JAVA_TEXT: Final = re.compile(r"\[\{text=(?P<text>.*), type=text\}\]", re.DOTALL)
_MARKS_OF_RESULTS: Final = ("tool_result", "toolResult")
"""Texts in a message with the result of a tool, which another event has."""


def _part_of(record: Fields) -> Fields:
    """Return the part of a trace that an event is or holds; empty for another event."""
    for part in (record, fields_of(record.get("trace"))):
        if any(name.endswith("Trace") for name in fields_of(part.get("trace"))):
            return part
    return {}


class _BedrockTranslator:
    """Makes the turns of a session.

    The prompt of a model call repeats the conversation. Later events repeat its raw answer, unless
    it cannot be parsed.
    """

    def __init__(self, _session: SessionContext) -> None:
        self._prompt_counts: Counter[str] = Counter()
        self._last_answer = ""
        self._raw_answer = ""
        self._tokens: Tokens | None = None

    def __call__(self, record: Fields) -> Turn | None:
        """Return the turn of an event."""
        part = _part_of(record)
        agent = Speaker(name_in(part, "collaboratorName") or ASSISTANT, Role.AGENT)
        pieces: list[Piece] = []
        model = None
        for name, step in fields_of(part.get("trace")).items():
            fields = fields_of(step)
            model = name_in(fields_of(fields.get("modelInvocationInput")), "foundationModel")
            pieces += self._step_pieces(name, fields, agent)
        turn = turn_without_empty_pieces({"time": part.get("eventTime")}, pieces)
        if any(piece.role is Role.AGENT for piece in turn.pieces):
            turn = replace(turn, tokens=self._tokens)
            self._tokens = None
        return replace(turn, model=model)

    def _step_pieces(self, name: str, step: Fields, agent: Speaker) -> Iterator[Piece]:
        """Yield the pieces of a step, which has one of these fields."""
        prompts = _prompt_pieces(fields_of(step.get("modelInvocationInput")))
        yield from new_pieces(prompts, self._prompt_counts)
        if output := fields_of(step.get("modelInvocationOutput")):
            yield from self._answer_pieces(output, agent)
        rationale = content_text(fields_of(step.get("rationale")).get("text"))
        yield agent.piece(rationale, kind=SpanKind.REASONING)
        for tool_input, value in fields_of(step.get("invocationInput")).items():
            if tool_input.endswith("Input"):
                yield _call(tool_input, fields_of(value), agent.agent)
        for observation, value in fields_of(step.get("observation")).items():
            text = content_text(fields_of(value).get("text"))
            if observation == "finalResponse":
                self._last_answer = text
                yield agent.piece(text)
            elif observation == "repromptResponse":
                yield log_piece(text, observation, failed=True)
            elif observation.endswith("Output"):
                yield _result(fields_of(value))
        if name == "failureTrace":
            text = texts_in({**step, "raw": self._raw_answer}, "failureReason", "raw")
            yield log_piece(text, name, failed=True)
        elif name in _LOG_TRACES and step.get("action") != "NONE":
            yield json_log_piece(step, name=name)

    def _answer_pieces(self, output: Fields, agent: Speaker) -> Iterator[Piece]:
        """Yield the thoughts and the parsed answer of a model call; keep the rest for later."""
        usage = fields_at(output, "metadata", "usage")
        self._tokens = usage_tokens(usage, "inputTokens", "outputTokens")
        self._raw_answer = content_text(fields_of(output.get("rawResponse")).get("content"))
        reasoning = fields_at(output, "reasoningContent", "reasoningText")
        parsed = fields_of(output.get("parsedResponse"))
        for thought in (reasoning.get("text"), parsed.get("rationale")):
            yield agent.piece(content_text(thought), kind=SpanKind.REASONING)
        if (answer := content_text(parsed.get("text"))) != self._last_answer:
            yield agent.piece(answer)


def _prompt_pieces(prompt: Fields) -> Iterator[Piece]:
    """Yield the system prompt and the user's messages in a prompt, or the prompt as one message."""
    text = content_text(prompt.get("text"))
    request = object_in(text) or {}
    if "messages" not in request:
        yield USER.piece(text)
        return
    yield SYSTEM.piece(content_text(request.get("system")))
    for pointer, message in located_objects(request["messages"], "/messages"):
        text = message_text(message.get("content"))
        is_result = any(mark in text for mark in _MARKS_OF_RESULTS)
        if message.get("role") == "user" and not is_result:
            java_text = _JAVA_TEXT.fullmatch(text)
            yield USER.piece(java_text["text"] if java_text else text, pointer)


def _call(name: str, value: Fields, agent: str) -> Piece:
    """Return the call of an action, a knowledge base, an interpreter or another agent."""
    tool = _INPUT_TOOLS.get(name) or name_in(value, "function", "apiPath", "agentCollaboratorName")
    body = fields_at(value, "requestBody", "content").values()
    parameters = [
        *items_of(value.get("parameters")),
        *(item for part in body for item in items_of(part)),
    ]
    arguments = {str(item.get("name")): item.get("value") for item in map(fields_of, parameters)}
    text = first_in(value, "code", "text") or fields_of(value.get("input")).get("text")
    call = {"name": tool or name, "arguments": text or arguments}
    return call_piece(call, "", agent)


def _result(output: Fields) -> Piece:
    """Return the result of a call."""
    references = map(fields_of, items_of(output.get("retrievedReferences")))
    texts = [
        content_text(fields_of(reference.get("content")).get("text")) for reference in references
    ]
    text = texts_in({**output, **fields_of(output.get("output"))}, "text", "executionOutput")
    error = content_text(output.get("executionError"))
    status = SpanStatus.ERROR if error else SpanStatus.UNKNOWN
    return result_piece({}, "\n".join(filter(None, (*texts, text, error))), "", status=status)


BEDROCK_AGENTS: Final = SessionFormat(
    name="bedrock-agents",
    system="Amazon Bedrock Agents",
    typical_bytes=(b'orchestrationTrace"', b'preProcessingTrace"', b'failureTrace"'),
    recognises=lambda records: any(map(_part_of, records)),
    make_translator=_BedrockTranslator,
    list_paths=("traces", "trace", "events", "completion", "completion_events"),
    id_paths="",
    fact_paths={"id": "sessionId trace.sessionId"},
)
