"""Sessions that are logs of events: Kimi CLI, Copilot, Droid's stream, CodeBuddy, MCP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text, dump_text
from mast_tui.traces.model import Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    THE_MODEL,
    Piece,
    Speaker,
    Turn,
    call_piece,
    content_pieces,
    log_piece,
    result_piece,
    role_of,
)
from mast_tui.traces.readers.chat.values import output_text, usage_tokens
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    first_in,
    flag_in,
    identifier_in,
    items_of,
    kind_of,
    mostly,
    name_in,
    name_set,
    text_in,
    value_in,
)
from mast_tui.traces.readers.sessions.engine import (
    SYSTEM,
    USER,
    SessionContext,
    SessionFormat,
    along_last_branch,
    any_record_with,
    is_empty,
    log_turn,
    message_turn,
    record_time,
    record_turn,
    stateless,
    text_at,
    unknown_record_turn,
    user_prompt_piece,
)
from mast_tui.traces.result_status import (
    first_known_status,
    status_of_code,
    status_of_error_flag,
    status_of_flag,
)

_KIMI_INPUT_COUNT_FIELDS: Final = """
    inputOther inputCacheRead inputCacheCreation
    input_other input_cache_read input_cache_creation
"""
_KIMI_SILENT_TYPES: Final = name_set("""
    metadata tools.set_active_tools llm.tools_snapshot llm.request usage.record turn.steer
    turn.ended permission.set_mode plugin.session_start
    runtime.set_binding token_counting.measured token_counting.turn_recorded
""")


def _wire_type(record: Fields) -> str:
    """Return the type of a message in versions before Kimi Code."""
    message = fields_of(record.get("message"))
    return kind_of(message) if "payload" in message else ""


def _kimi_tokens_by_record(records: Sequence[Fields]) -> dict[int, Tokens | None]:
    """Map the last record of each step to the tokens of the step.

    The keys are the ``id()`` of records, because equal records occur. Older versions have the
    tokens in a ``StatusUpdate``, newer ones in a ``step.end`` or a ``usage.record``.
    """
    tokens_by_record: dict[int, Tokens | None] = {}
    # Records without a step are under None.
    last_record_by_step: dict[str | None, Fields] = {}
    has_step_end = False
    for record in records:
        event = fields_of(record.get("event"))
        message = fields_of(record.get("message"))
        if (
            message.get("role") == "assistant"
            or kind_of(message) in ("ContentPart", "ToolCall")
            or kind_of(event) in ("content.part", "tool.call")
        ):
            last_record_by_step[as_text(event.get("stepUuid"))] = record
            continue

        if kind_of(message) == "StatusUpdate":
            # Further updates before the next step are ignored.
            last_record = last_record_by_step.pop(None, None)
            usage = fields_of(message.get("payload")).get("token_usage")
        elif kind_of(event) == "step.end":
            has_step_end = True
            last_record = last_record_by_step.get(as_text(event.get("uuid")))
            usage = event.get("usage")
        elif kind_of(record) == "usage.record" and not has_step_end:
            last_record = last_record_by_step.get(None)
            usage = record.get("usage")
        else:
            continue
        if last_record is not None:
            tokens = usage_tokens(usage, _KIMI_INPUT_COUNT_FIELDS, "output")
            tokens_by_record[id(last_record)] = tokens
    return tokens_by_record


class _KimiTranslator:
    """Makes the turns of a Kimi session.

    A prompt is recorded when it is typed, and again when the model's context gets it. The first
    record is shown only if there is no second record.
    """

    def __init__(self, session: SessionContext) -> None:
        self._system_prompt: str | None = None
        messages = (fields_of(record.get("message")) for record in session.values)
        self._context_prompts = {
            output_text(message.get("content"))
            for message in messages
            if message.get("role") == "user"
        }
        self._tokens_by_record = _kimi_tokens_by_record(session.values)

    def __call__(self, record: Fields) -> Turn | None:
        """Return the turn of a record, with the tokens of its step."""
        turn = self._turn_of_record(record)
        tokens = self._tokens_by_record.get(id(record))
        return turn if turn is None or tokens is None else replace(turn, tokens=tokens)

    def _turn_of_record(self, record: Fields) -> Turn | None:
        wire_type = _wire_type(record)
        if wire_type:  # in versions before Kimi Code
            payload = fields_of(fields_of(record.get("message")).get("payload"))
            return _turn_of_wire_message(record, wire_type, payload)
        kind = kind_of(record)
        match kind:
            case "config.update" | "profile.bind":
                return self._system_prompt_turn(record)
            case "turn.prompt":
                text = output_text(record.get("input"))
                is_shown_in_context = text in self._context_prompts
                return None if is_shown_in_context else record_turn(record, USER.piece(text))
            case "context.append_message":
                return record_turn(
                    record, *self._message_pieces(record, fields_of(record.get("message")))
                )
            case "context.append_loop_event":
                return self._step_event_turn(record, fields_of(record.get("event")))
            case "turn.cancel":
                return log_turn(record, "reason", failed=True)
            case "context.apply_compaction":
                return log_turn(record, "summary")
            case "permission.record_approval_result":
                decision = fields_of(record.get("result")).get("decision")
                return None if decision == "approved" else log_turn(record, failed=True)
        return None if kind in _KIMI_SILENT_TYPES else unknown_record_turn(record)

    def _system_prompt_turn(self, record: Fields) -> Turn | None:
        """Return the turn of a system prompt, unless it is unchanged."""
        text = as_text(record.get("systemPrompt"))
        if text is None or text == self._system_prompt:
            return None
        self._system_prompt = text
        return record_turn(record, SYSTEM.piece(text))

    def _message_pieces(self, record: Fields, message: Fields) -> list[Piece]:
        """Return the pieces of a message that was added to the model's context."""
        role = message.get("role")
        content = message.get("content")
        match role:
            case "tool":
                return [result_piece(message, output_text(content), key_suffix="")]
            case "user":
                origin = fields_of(message.get("origin"))
                # A sub-agent's user is the agent that starts it.
                is_by_user = (
                    origin.get("kind") in (None, "user") or origin.get("name") == "subagent"
                )
                text = output_text(content)
                return [user_prompt_piece(text) if is_by_user else SYSTEM.piece(text)]
            case "system":
                return [SYSTEM.piece(output_text(content))]
        agent = _kimi_agent(record)
        parts = content if isinstance(content, list) else [content]
        pieces = [piece for part in parts for piece in _kimi_part_pieces(part, agent)]
        for number, call in enumerate(items_of(first_in(message, "toolCalls", "tool_calls"))):
            pieces.append(call_piece(call, f"/toolCalls/{number}", agent))
        return pieces

    def _step_event_turn(self, record: Fields, event: Fields) -> Turn | None:
        """Return the turn of an event in a step."""
        agent = _kimi_agent(record)
        kind = kind_of(event)
        match kind:
            case "content.part":
                return record_turn(record, *_kimi_part_pieces(event.get("part"), agent))
            case "tool.call":
                return record_turn(record, call_piece(event, "", agent))
            case "tool.result":
                result = fields_of(event.get("result"))
                return record_turn(record, _kimi_result(result, name_in(event, "toolCallId")))
        return None if kind in ("step.begin", "step.end") else unknown_record_turn(record)


_WIRE_SILENT_TYPES: Final = name_set("""
    TurnEnd StepBegin StatusUpdate ToolCallPart MCPLoadingBegin MCPLoadingEnd MCPServerSnapshot
    MCPStatusSnapshot ApprovalRequest QuestionRequest ToolCallRequest HookRequest HookResponse
""")
_WIRE_FAILURE_TYPES: Final = name_set("ApprovalResponse StepInterrupted StepRetry")
_WIRE_TEXT_FIELDS: Final = ("content", "body", "feedback", "question", "response")


def _turn_of_wire_message(record: Fields, kind: str, payload: Fields) -> Turn | None:
    """Return the turn of a message of an older Kimi CLI."""
    match kind:
        case "TurnBegin" | "SteerInput":
            return record_turn(record, user_prompt_piece(output_text(payload.get("user_input"))))
        case "ContentPart":
            return record_turn(record, *_kimi_part_pieces(payload, ASSISTANT))
        case "ToolCall":
            return record_turn(record, call_piece(payload, "", ASSISTANT))
        case "ToolResult":
            result = fields_of(payload.get("return_value")) or payload
            return record_turn(record, _kimi_result(result, name_in(payload, "tool_call_id", "id")))
        case "SubagentEvent":
            event = fields_of(payload.get("event"))
            return _turn_of_wire_message(record, kind_of(event), fields_of(event.get("payload")))
        case "ApprovalResponse" if payload.get("response") != "reject":
            return None
        case "StepInterrupted" if not payload:
            return record_turn(record, log_piece(kind, kind, failed=True))
    if kind in _WIRE_SILENT_TYPES or not payload:
        return None
    text = text_in(payload, *_WIRE_TEXT_FIELDS) or dump_text(payload)
    return record_turn(record, log_piece(text, kind, failed=kind in _WIRE_FAILURE_TYPES))


def _kimi_result(result: Fields, call_id: str | None) -> Piece:
    output = first_in(result, "output", "message", "content")
    status = status_of_error_flag(flag_in(result, "isError", "is_error"))
    return result_piece({}, output, key_suffix="", call_id=call_id, status=status)


def _kimi_agent(record: Fields) -> str:
    agent = name_in(record, "agentId")
    return ASSISTANT if agent in (None, "main") else str(agent)


def _kimi_part_pieces(part: object, agent: str) -> list[Piece]:
    """Return the pieces of a part of the agent's content."""
    speaker = Speaker(agent, Role.AGENT)
    fields = fields_of(part)
    if kind_of(fields) == "think":
        thought = content_text(fields.get("think"))
        return [speaker.piece(thought, kind=SpanKind.REASONING)] if thought.strip() else []
    return [piece for piece in content_pieces(part, speaker, "") if not is_empty(piece)]


KIMI: Final = SessionFormat(
    name="kimi-cli",
    system="kimi-cli",
    typical_bytes=(b'"context.append_', b'"turn.prompt"', b'"protocol_version"'),
    recognises=lambda records: any(
        kind_of(record).startswith(("context.append_", "turn.prompt"))
        or (kind_of(record) == "metadata" and "protocol_version" in record)
        or _wire_type(record) == "TurnBegin"
        for record in records
    ),
    make_translator=_KimiTranslator,
    id_paths="uuid",
    fact_paths={"model": "modelAlias model", "id": "sessionId session_id"},
)


_COPILOT_SILENT_TYPES: Final = name_set("""
    session.start session.resume session.model_change session.idle session.usage_checkpoint
    session.usage_info assistant.intent hook.start tool.execution_partial_result tool.user_requested
    user_message.transformed pending_messages.modified permission.requested permission.completed
    assistant.idle
""")
_COPILOT_SILENT_SUFFIXES: Final = (
    "_changed",
    "_delta",
    "_end",
    "_loaded",
    "_progress",
    "_resolved",
    "_start",
    "_updated",
)
"""The ends of the types of changed settings, and of parts of a later event."""
_COPILOT_FAILURE_TYPES: Final = name_set("""
    session.error abort hook.end subagent.failed model.call_failure
""")
_COPILOT_TYPE_PREFIXES: Final = (
    "session.",
    "user.message",
    "assistant.",
    "tool.execution_",
    "system.message",
)


class _CopilotTranslator:
    """Makes the turns of a Copilot session.

    A call is announced with its message, and again when it starts.
    """

    def __init__(self, session: SessionContext) -> None:
        self._session = session
        self._agent_by_call: dict[str, str] = {}
        self._last_thought: str | None = None

    def __call__(self, record: Fields) -> Turn | None:
        """Return the turn of an event that is shown."""
        kind = kind_of(record)
        data = fields_of(record.get("data"))
        # An event of a sub-agent names the call that started it.
        starting_call_id = name_in(data, "parentToolCallId") or ""
        agent = self._agent_by_call.get(starting_call_id, ASSISTANT)
        match kind:
            case "user.message":
                return record_turn(record, USER.piece(content_text(data.get("content"))))
            case "system.message" | "system.notification":
                return record_turn(record, SYSTEM.piece(content_text(data.get("content"))))
            case "assistant.reasoning":
                return record_turn(record, *self._reasoning_pieces(data.get("content"), agent))
            case "assistant.message":
                return self._message_turn(record, data, agent)
            case "assistant.usage":
                input_fields = "inputTokens cacheReadTokens cacheWriteTokens"
                tokens = usage_tokens(data, input_fields, "outputTokens")
                return Turn((), tokens=tokens, model=name_in(data, "model"))
            case "tool.execution_start":
                return record_turn(record, call_piece(data, "", agent))
            case "tool.execution_complete":
                return record_turn(record, _copilot_result(data))
            case "subagent.started":
                name = name_in(data, "agentName", "agentDisplayName")
                if name is not None:
                    self._agent_by_call[name_in(data, "toolCallId") or ""] = name
                description = text_in(data, "agentDescription") or dump_text(data)
                return record_turn(record, log_piece(description, kind))
        return self._event_log_turn(record, kind, data)

    def _event_log_turn(self, record: Fields, kind: str, data: Fields) -> Turn | None:
        """Return a log for an event outside of the conversation, if it is shown.

        The event at the end of the session sets the session's tokens instead.
        """
        if kind == "session.shutdown":
            self._session.tokens = _copilot_session_tokens(data)
            return None
        is_successful_hook = kind == "hook.end" and data.get("success") is not False
        is_successful_call = kind == "model.call_finished" and data.get("outcome") == "success"
        is_silent = kind in _COPILOT_SILENT_TYPES or kind.endswith(_COPILOT_SILENT_SUFFIXES)
        if is_silent or is_successful_hook or is_successful_call:
            return None
        if "data" not in record:  # the result that ``copilot --output-format json`` prints last
            return unknown_record_turn(record)
        text = text_in(data, "message", "content", "summaryContent", "reason") or dump_text(data)
        return record_turn(record, log_piece(text, kind, failed=kind in _COPILOT_FAILURE_TYPES))

    def _message_turn(self, record: Fields, data: Fields, agent: str) -> Turn:
        pieces = self._reasoning_pieces(data.get("reasoningText"), agent)
        text = content_text(data.get("content"))
        if text.strip():
            pieces.append(Speaker(agent, Role.AGENT).piece(text))
        for number, request in enumerate(items_of(data.get("toolRequests"))):
            # A type would be shown as the tool's name.
            call = {**fields_of(request), "type": None}
            pieces.append(call_piece(call, f"/toolRequests/{number}", agent))
        tokens = usage_tokens(data, "inputTokens", "outputTokens")
        return Turn(tuple(pieces), record_time(record), tokens, name_in(data, "model"))

    def _reasoning_pieces(self, content: object, agent: str) -> list[Piece]:
        """Return the piece of a thought, unless its text is blank or repeats the last thought."""
        thought = content_text(content)
        if not thought.strip() or thought == self._last_thought:
            return []
        self._last_thought = thought
        speaker = Speaker(agent, Role.AGENT)
        return [speaker.piece(thought, "/reasoningText", kind=SpanKind.REASONING)]


def _copilot_result(data: Fields) -> Piece:
    """Return the result of a call: its content, else its error."""
    error = fields_of(data.get("error"))
    result = data.get("result")
    output = result.get("content") if isinstance(result, Mapping) else result
    if as_text(output) is None and error:
        output = text_in(error, "message") or dump_text(error)
    return result_piece(
        data,
        output,
        key_suffix="",
        name=name_in(data, "toolName"),
        call_id=name_in(data, "toolCallId"),
        status=status_of_flag(data.get("success")),
    )


def _copilot_session_tokens(data: Fields) -> Tokens | None:
    """Return the sum of the tokens of all models of a session."""
    usages = [
        fields_of(fields_of(metrics).get("usage"))
        for metrics in fields_of(data.get("modelMetrics")).values()
    ]
    model_tokens = [
        usage_tokens(usage, "inputTokens", "outputTokens") or Tokens() for usage in usages if usage
    ]
    if not model_tokens:
        return None
    return Tokens(
        sum(tokens.input or 0 for tokens in model_tokens),
        sum(tokens.output or 0 for tokens in model_tokens),
    )


COPILOT: Final = SessionFormat(
    name="copilot-cli",
    system="copilot-cli",
    typical_bytes=(
        b'"session.start"',
        b'"user.message"',
        b'"assistant.message"',
        b'"tool.execution_',
    ),
    recognises=lambda records: any(
        isinstance(record.get("data"), Mapping)
        and kind_of(record).startswith(_COPILOT_TYPE_PREFIXES)
        for record in records
    ),
    make_translator=_CopilotTranslator,
    repeats_calls=True,
    list_paths=("events",),
    session_of=lambda record: text_at(record, "session.start:data.sessionId"),
    fact_paths={
        "id": "session.start:data.sessionId",
        "model": "session.model_change:data.newModel data.selectedModel data.model",
        "version": "data.copilotVersion",
    },
)


_DEBUG_LOG_TYPES: Final = name_set("""
    session_start user_message llm_request agent_response tool_call tool_result subagent hook error
    generic discovery turn_start turn_end child_session_ref
""")
_DEBUG_LOG_FIELDS: Final = frozenset({"sid", "spanId", "attrs"})
_DEBUG_LOG_FAILURES: Final = ("error", "subagent", "llm_request", "hook")


class _DebugLogTranslator:
    """Makes the turns of a debug log of Copilot in VS Code.

    The tokens of a response are in the request before it. A call may be in the response too.
    """

    def __init__(self, _session: SessionContext) -> None:
        self._usage_by_request: dict[str, Fields] = {}
        self._open_calls: list[Piece] = []

    def __call__(self, record: Fields) -> Turn | None:
        """Return the turn of a record that is shown."""
        attributes = fields_of(record.get("attrs"))
        span_id = identifier_in(record, "spanId") or ""
        failed = record.get("status") == "error"
        match kind_of(record):
            case "user_message":
                return record_turn(record, USER.piece(content_text(attributes.get("content"))))
            case "llm_request" if not failed:
                self._usage_by_request[span_id] = attributes
                return None
            case "agent_response":
                request_id = span_id.removeprefix("agent-msg-")
                usage = self._usage_by_request.get(request_id, {})
                return self._response_turn(record, attributes, usage)
            case "tool_call":
                return self._call_turn(record, attributes, span_id, failed=failed)
            case "tool_result":
                result = result_piece(
                    record,
                    attributes.get("result"),
                    "",
                    call_id=identifier_in(attributes, "source_call_id"),
                )
                return record_turn(record, replace(result, name=None))
            case kind if failed or kind == "error":
                text = text_in(attributes, "error", "details", "output") or dump_text(attributes)
                name = kind if kind in _DEBUG_LOG_FAILURES else name_in(record, "name")
                return record_turn(record, log_piece(text, name, failed=True))
        return None

    def _response_turn(self, record: Fields, attributes: Fields, usage: Fields) -> Turn:
        """Return the turn of a response, which is a JSON text of messages, possibly cut off."""
        thought = content_text(attributes.get("reasoning"))
        pieces = [THE_MODEL.piece(thought, "/reasoning", kind=SpanKind.REASONING)]
        messages = value_in(attributes.get("response"))
        for number, message in enumerate(items_of(messages)):
            turn = message_turn(record, message)
            for piece in turn.pieces:
                pieces.append(replace(piece, key_suffix=f"/{number}{piece.key_suffix}"))
        if not isinstance(messages, list):
            pieces.append(THE_MODEL.piece(content_text(messages), "/response"))
        pieces = [piece for piece in pieces if not is_empty(piece)]
        self._open_calls += (piece for piece in pieces if piece.kind is SpanKind.TOOL_CALL)
        tokens = usage_tokens(usage, "inputTokens", "outputTokens")
        return Turn(tuple(pieces), record_time(record), tokens, name_in(usage, "model"))

    def _call_turn(self, record: Fields, attributes: Fields, span_id: str, *, failed: bool) -> Turn:
        """Return the turn of a finished call: its result, and the call if no response has it."""
        tool_name = name_in(record, "name")
        call = call_piece(
            {"id": span_id, "name": tool_name, "arguments": attributes.get("args")}, "", ASSISTANT
        )
        same_names = [piece for piece in self._open_calls if piece.name == tool_name]
        same_texts = [piece for piece in same_names if piece.text == call.text]
        announced_call = next(iter(same_texts or same_names), None)
        if announced_call is not None:
            self._open_calls.remove(announced_call)
        result = result_piece(
            {},
            first_in(attributes, "result", "error"),
            "",
            name=tool_name,
            call_id=(announced_call or call).call_id,
            status=status_of_error_flag(failed),
        )
        if announced_call is None:
            return record_turn(record, call, result)
        duration = record.get("dur")
        start = record_time(record)
        if start is not None and isinstance(duration, int):
            start += duration / 1000
        return Turn((result,), start)


VSCODE_DEBUG_LOG: Final = SessionFormat(
    name="vscode-debug-log",
    system="GitHub Copilot",
    typical_bytes=(b'"spanId"',),
    recognises=any_record_with(dict.fromkeys(_DEBUG_LOG_TYPES, _DEBUG_LOG_FIELDS)),
    make_translator=_DebugLogTranslator,
    id_paths="spanId",
    fact_paths={"id": "sid", "model": "attrs.model", "version": "attrs.copilotVersion"},
)


def _is_droid_event(record: Fields) -> bool:
    """Return whether a record is an event or a message of Droid's stream."""
    kind = kind_of(record)
    has_session = "sessionId" in record or "session_id" in record
    has_event_fields = bool({"toolName", "toolId", "value", "finalText"} & record.keys())
    is_event = kind in ("tool_call", "tool_result", "completion") and has_event_fields
    is_message = kind == "message" and isinstance(record.get("role"), str) and "text" in record
    return has_session and (is_event or is_message)


def _droid_event_turn(record: Fields) -> Turn | None:
    """Return the turn of an event of Droid's stream."""
    match kind_of(record):
        case "system":
            return None
        case "message":
            text = content_text(first_in(record, "text", "content"))
            if record.get("role") == "user":
                return record_turn(record, user_prompt_piece(text))
            speaker = SYSTEM if record.get("role") == "system" else THE_MODEL
            return record_turn(record, speaker.piece(text))
        case "reasoning" | "thinking":
            thought = text_in(record, "text") or ""
            return record_turn(record, THE_MODEL.piece(thought, kind=SpanKind.REASONING))
        case "tool_call":
            # A type would be shown as the tool's name.
            call = {**record, "id": first_in(record, "toolCallId", "id"), "type": None}
            return record_turn(record, call_piece(call, "", ASSISTANT))
        case "tool_result":
            return record_turn(record, _droid_result(record))
        case "completion":
            input_fields = "input_tokens cache_read_input_tokens cache_creation_input_tokens"
            tokens = usage_tokens(record.get("usage"), input_fields, "output_tokens")
            answer = THE_MODEL.piece(text_in(record, "finalText") or "")
            return replace(record_turn(record, answer), tokens=tokens)
        case "error":
            return log_turn(record, "message", failed=True)
    return unknown_record_turn(record)


def _droid_result(record: Fields) -> Piece:
    """Return the result in an event, with the status of the error flag or the exit code."""
    value = first_in(record, "value", "error", "content")
    flag_status = status_of_error_flag(flag_in(record, "isError", "is_error"))
    return result_piece(
        {},
        value,
        "",
        name=name_in(record, "toolName", "toolId"),
        call_id=identifier_in(record, "toolCallId", "id"),
        status=first_known_status(flag_status, status_of_code(fields_of(value).get("exitCode"))),
    )


DROID_STREAM: Final = SessionFormat(
    name="droid-stream",
    system="factory-droid",
    typical_bytes=(b'"tool_call"', b'"tool_result"', b'"completion"', b'"text"'),
    recognises=lambda records: any(map(_is_droid_event, records)),
    make_translator=stateless(_droid_event_turn),
    fact_paths={"id": "sessionId session_id", "model": "model"},
    session_of=lambda record: text_at(record, "sessionId session_id"),
)


_BUDDY_SESSION_PATHS: Final = "sessionId session_id conversation_id"
_BUDDY_KIND_BY_TYPE: Final = {
    "message": "message",
    "assistant_message": "message",
    "reasoning": "reasoning",
    "function_call": "call",
    "tool_use": "call",
    "tool-call": "call",
    "function_call_result": "result",
    "tool_result": "result",
    "tool-result": "result",
    "session_start": "settings",
    "metadata": "settings",
    "conversation.created": "settings",
    "topic": "settings",
    "file-history-snapshot": "settings",
}
"""The kind of a record by its type in CodeBuddy or in WorkBuddy."""


def _any_codebuddy_record(records: Sequence[Fields]) -> bool:
    """Return whether the records are of CodeBuddy: messages beside calls, results or settings."""
    kinds = {_buddy_kind(record) for record in records if text_at(record, _BUDDY_SESSION_PATHS)}
    has_message = any(_buddy_role(record) is not None for record in records)
    has_tools = not kinds.isdisjoint({"call", "result"})
    return has_message and (has_tools or {"message", "settings"} <= kinds)


def _buddy_kind(record: Fields) -> str:
    """Return the kind of a record as in ``_BUDDY_KIND_BY_TYPE``."""
    kind = kind_of(record) or name_in(record, "event_type", "kind") or ""
    return _BUDDY_KIND_BY_TYPE.get(kind, "")


def _buddy_role(record: Fields) -> str | None:
    """Return the role in a message, by default the agent's; None for other records."""
    is_of_droid = "text" in record  # Messages of Droid's stream have the same type.
    if _buddy_kind(record) != "message" or is_of_droid:
        return None
    for fields in (record, fields_of(record.get("message")), fields_of(record.get("author"))):
        if isinstance(fields.get("role"), str):
            return str(fields["role"])
    return ASSISTANT if "message" in record else None


def _codebuddy_turn(record: Fields) -> Turn | None:
    """Return the turn of a record of CodeBuddy, unless it is a setting or an empty thought."""
    data = fields_of(record.get("providerData"))
    tokens = usage_tokens(
        data.get("usage"), "inputTokens input_tokens", "outputTokens output_tokens"
    )
    message = fields_of(record.get("message"))
    content = first_in(record, "content") or message.get("content")
    objects_with_name = (record, fields_of(record.get("tool")), fields_of(record.get("function")))
    names = (name_in(fields, "name", "toolName", "functionName") for fields in objects_with_name)
    tool_name = next(filter(None, names), None)
    call_id = name_in(record, "callId", "call_id")

    match _buddy_kind(record):
        case "message":
            role = _buddy_role(record) or ASSISTANT
            turn = message_turn(record, {"role": role, "content": content}, tokens=tokens)
            if role_of(role) is not Role.USER:
                return turn
            pieces = tuple(
                replace(user_prompt_piece(piece.text), key_suffix=piece.key_suffix)
                for piece in turn.pieces
            )
            return replace(turn, pieces=pieces)
        case "reasoning":
            text = content_text(first_in(record, "rawContent", "content", "text"))
            thought = THE_MODEL.piece(text, kind=SpanKind.REASONING)
            if is_empty(thought):
                return None
            return replace(record_turn(record, thought), tokens=tokens)
        case "call":
            arguments = first_in(record, "arguments", "input", "parameters")
            call = {"name": tool_name, "id": call_id, "arguments": arguments}
            return replace(record_turn(record, call_piece(call, "", ASSISTANT)), tokens=tokens)
        case "result":
            output = first_in(record, "output", "result") or content
            result = result_piece(record, output, key_suffix="", name=tool_name, call_id=call_id)
            return record_turn(record, result)
        case "settings":
            return None
    # WorkBuddy has the type in another field.
    return unknown_record_turn({"type": name_in(record, "event_type", "kind"), **record})


CODEBUDDY: Final = SessionFormat(
    name="codebuddy",
    system="codebuddy",
    typical_bytes=(b'"sessionId"', b'"session_id"', b'"conversation_id"'),
    recognises=_any_codebuddy_record,
    make_translator=stateless(_codebuddy_turn),
    select_records=along_last_branch("id", "parentId"),
    fact_paths={
        "id": _BUDDY_SESSION_PATHS,
        "model": "model metadata.model providerData.model providerData.modelId",
    },
)


_MCP_METHOD_PREFIXES: Final = (
    "tools/",
    "resources/",
    "prompts/",
    "sampling/",
    "notifications/",
    "elicitation/",
    "completion/",
    "roots/",
    "logging/",
)
_MCP_WRAPPER_FIELDS: Final = (
    "message",
    "payload",
    "data",
    "msg",
    "request",
    "response",
    "body",
    "json",
)


def rpc_message_in(record: Fields) -> Fields:
    """Return the JSON-RPC message that a record is or contains; empty without a message."""
    for value in (record, *(value_in(record.get(name)) for name in _MCP_WRAPPER_FIELDS)):
        fields = fields_of(value)
        if "jsonrpc" in fields:
            return fields
    return {}


def _any_mcp_message(records: Sequence[Fields]) -> bool:
    """Return whether most records are messages of JSON-RPC, and one has a method of MCP."""
    messages = [rpc_message_in(record) for record in records]
    methods = [as_text(message.get("method")) or "" for message in messages]
    has_mcp_method = any(method.startswith(_MCP_METHOD_PREFIXES) for method in methods)
    return mostly(bool, messages) and has_mcp_method


class _McpTranslator:
    """Makes the turns of the messages of a connection.

    Client and server may use the same ids for their requests. A response belongs to the last open
    request with its id.
    """

    def __init__(self, _session: SessionContext) -> None:
        self._request_by_id: dict[str, tuple[str, str | None]] = {}  # the method and the call id
        self._tool_call_count = 0

    def __call__(self, record: Fields) -> Turn | None:
        """Return the turn of a request, a response or an unknown record."""
        message = rpc_message_in(record)
        method = as_text(message.get("method"))
        request_id = identifier_in(message, "id")
        if method is not None:
            return record_turn(record, self._request_piece(message, method, request_id))
        if request_id is None or not {"result", "error"} & message.keys():
            return unknown_record_turn(record)
        method, call_id = self._request_by_id.pop(request_id, ("response", None))
        return record_turn(record, self._response_piece(message, method, call_id))

    def _request_piece(self, message: Fields, method: str, request_id: str | None) -> Piece:
        """Return the call of a tool or the log of another request; record it for its response."""
        params = fields_of(message.get("params"))
        if method != "tools/call":
            if request_id is not None:
                self._request_by_id[request_id] = (method, None)
            return log_piece(dump_text(params) if params else method, method)

        # A count makes the id unique, as client and server may use the same ids.
        self._tool_call_count += 1
        call_id = None
        if request_id is not None:
            call_id = f"{request_id}.{self._tool_call_count}"
            self._request_by_id[request_id] = (method, call_id)
        call = {"name": params.get("name"), "arguments": params.get("arguments"), "id": call_id}
        return call_piece(call, "", "client")

    def _response_piece(self, message: Fields, method: str, call_id: str | None) -> Piece:
        """Return the result of a tool, or the log of a response to any other method."""
        result = message.get("result")
        error = fields_of(message.get("error"))
        if method != "tools/call":
            text = text_in(error, "message") or dump_text(result)
            return log_piece(text, method, failed=bool(error))

        if error:
            error_text = text_in(error, "message") or dump_text(error)
            return result_piece(
                {}, error_text, key_suffix="", call_id=call_id, status=SpanStatus.ERROR
            )
        fields = fields_of(result)
        output = first_in(fields, "content", "structuredContent", "toolResult")
        status = status_of_error_flag(fields.get("isError"))
        return result_piece({}, output, key_suffix="", call_id=call_id, status=status)


MCP: Final = SessionFormat(
    name="mcp-log",
    system=None,
    typical_bytes=(b"jsonrpc",),
    recognises=_any_mcp_message,
    make_translator=_McpTranslator,
    list_paths=("messages", "events", "log"),
    id_paths="",
)
