"""Sessions that are logs of events: Kimi CLI, Copilot CLI, Droid's stream, CodeBuddy, MCP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text, dump_text
from mast_tui.traces.model import Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.chat.parts import content_pieces
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    THE_MODEL,
    Piece,
    Speaker,
    Turn,
    call_piece,
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
    SessionContext,
    SessionFormat,
    along_last_branch,
    stateless,
    text_at,
)
from mast_tui.traces.readers.sessions.pieces import (
    SYSTEM,
    USER,
    is_empty,
    message_turn,
    note_of,
    record_time,
    record_turn,
    unknown_record,
    user_prompt_piece,
)
from mast_tui.traces.result_status import status_of_code, status_of_error_flag, status_of_flag

_KIMI_USAGE: Final = """
    inputOther inputCacheRead inputCacheCreation
    input_other input_cache_read input_cache_creation
"""
_KIMI_SETTINGS: Final = name_set("""
    metadata tools.set_active_tools llm.tools_snapshot llm.request usage.record turn.steer
    turn.ended permission.set_mode plugin.session_start
    runtime.set_binding token_counting.measured token_counting.turn_recorded
""")


def _is_kimi(records: Sequence[Fields]) -> bool:
    return any(
        kind_of(record).startswith(("context.append_", "turn.prompt"))
        or (kind_of(record) == "metadata" and "protocol_version" in record)
        or _wire_type(record) == "TurnBegin"
        for record in records
    )


def _wire_type(record: Fields) -> str:
    """Return the type of a message in the form that versions before Kimi Code wrote."""
    message = fields_of(record.get("message"))
    return kind_of(message) if "payload" in message else ""


class _KimiTranslator:
    """Takes the records of a Kimi session apart.

    A prompt is recorded when it is typed and again when it joins the model's context; the second
    counts, unless the context never got it. The tokens of a step belong to its last piece.
    """

    def __init__(self, session: SessionContext) -> None:
        self._system_prompt: str | None = None
        self._in_context: set[str] = set()
        self._tokens: dict[int, Tokens | None] = {}
        counted = False
        last_of_step: dict[str | None, int] = {}
        for number, record in enumerate(session.values):
            event = fields_of(record.get("event"))
            message = fields_of(record.get("message"))
            step = as_text(event.get("stepUuid"))
            if message.get("role") == "user":
                self._in_context.add(output_text(message.get("content")))
            elif message.get("role") == "assistant":
                last_of_step[None] = number
            elif kind_of(event) in ("content.part", "tool.call"):
                last_of_step[step] = number
            elif kind_of(message) in ("ContentPart", "ToolCall"):
                last_of_step[None] = number
            elif kind_of(message) == "StatusUpdate":
                usage = fields_of(message.get("payload")).get("token_usage")
                self._count(session.values, last_of_step.pop(None, None), usage)
            elif kind_of(event) == "step.end":
                counted = True
                number_of_last = last_of_step.get(as_text(event.get("uuid")))
                self._count(session.values, number_of_last, event.get("usage"))
            elif kind_of(record) == "usage.record" and not counted:
                self._count(session.values, last_of_step.get(None), record.get("usage"))

    def _count(self, values: Sequence[Fields], number: int | None, usage: object) -> None:
        if number is not None:
            self._tokens[id(values[number])] = usage_tokens(usage, _KIMI_USAGE, "output")

    def __call__(self, record: Fields) -> Turn | None:
        spoken = self._turn(record)
        tokens = self._tokens.get(id(record))
        return spoken if spoken is None or tokens is None else replace(spoken, tokens=tokens)

    def _turn(self, record: Fields) -> Turn | None:
        wire_type = _wire_type(record)
        if wire_type:
            payload = fields_of(fields_of(record.get("message")).get("payload"))
            return _wire_turn(record, wire_type, payload)
        kind = kind_of(record)
        if kind in ("config.update", "profile.bind"):
            return self._prompt_of_system(record)
        if kind == "turn.prompt":
            text = output_text(record.get("input"))
            return None if text in self._in_context else record_turn(record, USER.piece(text))
        if kind == "context.append_message":
            return record_turn(record, *self._message(record, fields_of(record.get("message"))))
        if kind == "context.append_loop_event":
            return self._event(record, fields_of(record.get("event")))
        if kind == "turn.cancel":
            return note_of(record, "reason", failed=True)
        if kind == "permission.record_approval_result":
            decision = fields_of(record.get("result")).get("decision")
            return None if decision == "approved" else note_of(record, failed=True)
        return None if kind in _KIMI_SETTINGS else unknown_record(record)

    def _prompt_of_system(self, record: Fields) -> Turn | None:
        text = as_text(record.get("systemPrompt"))
        if text is None or text == self._system_prompt:
            return None
        self._system_prompt = text
        return record_turn(record, SYSTEM.piece(text))

    def _message(self, record: Fields, message: Fields) -> list[Piece]:
        role = message.get("role")
        content = message.get("content")
        if role == "tool":
            result = result_piece(message, output_text(content), "")
            return [result]
        if role == "user":
            origin = fields_of(message.get("origin"))
            by_user = origin.get("kind") in (None, "user") or origin.get("name") == "subagent"
            text = output_text(content)
            return [user_prompt_piece(text) if by_user else SYSTEM.piece(text)]
        if role == "system":
            return [SYSTEM.piece(output_text(content))]
        agent = _kimi_agent(record)
        parts = content if isinstance(content, list) else [content]
        pieces = [piece for part in parts for piece in _kimi_part(part, agent)]
        for number, call in enumerate(items_of(first_in(message, "toolCalls", "tool_calls"))):
            pieces.append(call_piece(call, f"/toolCalls/{number}", agent))
        return pieces

    def _event(self, record: Fields, event: Fields) -> Turn | None:
        agent = _kimi_agent(record)
        kind = kind_of(event)
        if kind == "content.part":
            return record_turn(record, *_kimi_part(event.get("part"), agent))
        call_id = name_in(event, "toolCallId")
        if kind == "tool.call":
            call = {"id": call_id, "name": event.get("name"), "arguments": event.get("args")}
            return record_turn(record, call_piece(call, "", agent))
        if kind == "tool.result":
            return record_turn(record, _kimi_result(fields_of(event.get("result")), call_id))
        return None if kind in ("step.begin", "step.end") else unknown_record(record)


_WIRE_NOTES: Final = name_set("CompactionBegin CompactionEnd HookTriggered HookResolved")


def _wire_turn(record: Fields, kind: str, payload: Fields) -> Turn | None:
    """Return the turn of a message in the older form; None for one about the program."""
    match kind:
        case "TurnBegin" | "SteerInput":
            return record_turn(record, user_prompt_piece(output_text(payload.get("user_input"))))
        case "ContentPart":
            return record_turn(record, *_kimi_part(payload, ASSISTANT))
        case "ToolCall":
            return record_turn(record, call_piece(payload, "", ASSISTANT))
        case "ToolResult":
            result = fields_of(payload.get("return_value"))
            return record_turn(record, _kimi_result(result, name_in(payload, "tool_call_id")))
        case "SubagentEvent":
            event = fields_of(payload.get("event"))
            return _wire_turn(record, kind_of(event), fields_of(event.get("payload")))
        case "StepInterrupted":
            return record_turn(
                record, log_piece(dump_text(payload) if payload else kind, kind, failed=True)
            )
    return (
        record_turn(record, log_piece(dump_text(payload), kind))
        if kind in _WIRE_NOTES and payload
        else None
    )


def _kimi_result(result: Fields, call_id: str | None) -> Piece:
    output = first_in(result, "output", "message", "content")
    status = status_of_error_flag(flag_in(result, "isError", "is_error"))
    return result_piece({}, output, "", call_id=call_id, status=status)


def _kimi_agent(record: Fields) -> str:
    agent = name_in(record, "agentId")
    return ASSISTANT if agent in (None, "main") else str(agent)


def _kimi_part(part: object, agent: str) -> list[Piece]:
    speaker = Speaker(agent, Role.AGENT)
    fields = fields_of(part)
    if kind_of(fields) == "think":
        thought = content_text(fields.get("think"))
        return [speaker.piece(thought, kind=SpanKind.REASONING)] if thought.strip() else []
    return [piece for piece in content_pieces(part, speaker, "") if not is_empty(piece)]


KIMI: Final = SessionFormat(
    name="kimi-cli",
    system="kimi-cli",
    marks=(b'"context.append_', b'"turn.prompt"', b'"protocol_version"'),
    recognises=_is_kimi,
    translator=_KimiTranslator,
    keys="uuid",
    facts={"model": "modelAlias model", "id": "sessionId session_id"},
)


_COPILOT_SETTINGS: Final = name_set("""
    session.start session.resume session.model_change session.auto_mode_resolved session.idle
    session.usage_checkpoint session.mode_changed session.title_changed session.usage_info
    session.workspace_file_changed session.plan_changed session.context_changed assistant.turn_start
    assistant.turn_end assistant.intent assistant.message_delta assistant.reasoning_delta
    assistant.streaming_delta hook.start tool.execution_progress tool.execution_partial_result
    tool.user_requested user_message.transformed pending_messages.modified permission.requested
    permission.completed session.tools_updated session.background_tasks_changed
""")
_COPILOT_FAILURES: Final = name_set("""
    session.error abort hook.end subagent.failed model.call_failure
""")
_COPILOT_PREFIXES: Final = (
    "session.",
    "user.message",
    "assistant.",
    "tool.execution_",
    "system.message",
)


def _is_copilot(records: Sequence[Fields]) -> bool:
    return any(
        isinstance(record.get("data"), Mapping) and kind_of(record).startswith(_COPILOT_PREFIXES)
        for record in records
    )


class _CopilotTranslator:
    """Takes the events of a Copilot session apart.

    A call is announced with the message and again when it starts: the first counts. Events of a
    sub-agent name the call that began it.
    """

    def __init__(self, session: SessionContext) -> None:
        self._session = session
        self._calls: set[str | None] = set()
        self._agents: dict[str, str] = {}
        self._thought: str | None = None

    def __call__(self, record: Fields) -> Turn | None:
        kind = kind_of(record)
        data = fields_of(record.get("data"))
        parent = name_in(data, "parentToolCallId")
        agent = self._agents.get(parent or "", ASSISTANT)
        match kind:
            case "user.message":
                return record_turn(record, USER.piece(content_text(data.get("content"))))
            case "system.message" | "system.notification":
                return record_turn(record, SYSTEM.piece(content_text(data.get("content"))))
            case "assistant.reasoning":
                return record_turn(record, *self._reasoning(data.get("content"), agent))
            case "assistant.message":
                return self._message(record, data, agent)
            case "assistant.usage":
                input_fields = "inputTokens cacheReadTokens cacheWriteTokens"
                tokens = usage_tokens(data, input_fields, "outputTokens")
                return Turn((), tokens=tokens, model=name_in(data, "model"))
            case "tool.execution_start":
                call = {
                    "id": data.get("toolCallId"),
                    "name": data.get("toolName"),
                    "arguments": data.get("arguments"),
                }
                return record_turn(record, *self._call(call, "", agent))
            case "tool.execution_complete":
                return record_turn(record, _copilot_result(data))
            case "subagent.started":
                name = name_in(data, "agentName", "agentDisplayName")
                if name is not None:
                    self._agents[name_in(data, "toolCallId") or ""] = name
                return record_turn(
                    record, log_piece(text_in(data, "agentDescription") or dump_text(data), kind)
                )
        return self._event(record, kind, data)

    def _event(self, record: Fields, kind: str, data: Fields) -> Turn | None:
        """Return the log of an event around the conversation; None for changed settings."""
        if kind == "session.shutdown":
            self._session.tokens = _copilot_total(data)
            return None
        if kind in _COPILOT_SETTINGS or (kind == "hook.end" and data.get("success") is not False):
            return None
        text = text_in(data, "message", "content", "summaryContent", "reason") or dump_text(data)
        return record_turn(record, log_piece(text, kind, failed=kind in _COPILOT_FAILURES))

    def _message(self, record: Fields, data: Fields, agent: str) -> Turn:
        pieces = self._reasoning(data.get("reasoningText"), agent)
        text = content_text(data.get("content"))
        if text.strip():
            pieces.append(Speaker(agent, Role.AGENT).piece(text))
        for number, request in enumerate(items_of(data.get("toolRequests"))):
            pieces += self._call(fields_of(request), f"/toolRequests/{number}", agent)
        tokens = usage_tokens(data, "inputTokens", "outputTokens")
        return Turn(tuple(pieces), record_time(record), tokens, name_in(data, "model"))

    def _reasoning(self, content: object, agent: str) -> list[Piece]:
        thought = content_text(content)
        if not thought.strip() or thought == self._thought:
            return []
        self._thought = thought
        speaker = Speaker(agent, Role.AGENT)
        return [speaker.piece(thought, "/reasoningText", kind=SpanKind.REASONING)]

    def _call(self, call: Fields, pointer: str, agent: str) -> list[Piece]:
        piece = call_piece({**call, "type": None}, pointer, agent)
        if piece.call_id is not None and piece.call_id in self._calls:
            return []
        self._calls.add(piece.call_id)
        return [piece]


def _copilot_result(data: Fields) -> Piece:
    error = fields_of(data.get("error"))
    result = data.get("result")
    text = fields_of(result).get("content") if isinstance(result, Mapping) else result
    if as_text(text) is None and error:
        text = text_in(error, "message") or dump_text(error)
    return result_piece(
        data,
        text,
        "",
        name=name_in(data, "toolName"),
        call_id=name_in(data, "toolCallId"),
        status=status_of_flag(data.get("success")),
    )


def _copilot_total(data: Fields) -> Tokens | None:
    """Return the tokens of all models of the session."""
    usages = [
        fields_of(fields_of(metrics).get("usage"))
        for metrics in fields_of(data.get("modelMetrics")).values()
    ]
    sums = [
        usage_tokens(usage, "inputTokens", "outputTokens") or Tokens() for usage in usages if usage
    ]
    if not sums:
        return None
    return Tokens(
        sum(tokens.input or 0 for tokens in sums), sum(tokens.output or 0 for tokens in sums)
    )


COPILOT: Final = SessionFormat(
    name="copilot-cli",
    system="copilot-cli",
    marks=(b'"session.start"', b'"user.message"', b'"assistant.message"', b'"tool.execution_'),
    recognises=_is_copilot,
    translator=_CopilotTranslator,
    lists=("events",),
    facts={
        "id": "session.start:data.sessionId",
        "model": "session.model_change:data.newModel data.selectedModel data.model",
        "version": "data.copilotVersion",
    },
)


_DROID_EVENTS: Final = ("tool_call", "tool_result", "completion")


def _is_droid_stream(records: Sequence[Fields]) -> bool:
    for record in records:
        if "sessionId" not in record and "session_id" not in record:
            continue
        kind = kind_of(record)
        if kind in _DROID_EVENTS and {"toolName", "toolId", "value", "finalText"} & record.keys():
            return True
        if kind == "message" and isinstance(record.get("role"), str) and "text" in record:
            return True
    return False


def _droid_event(record: Fields) -> Turn | None:
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
            return record_turn(
                record, THE_MODEL.piece(text_in(record, "text") or "", kind=SpanKind.REASONING)
            )
        case "tool_call":
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
            return note_of(record, "message", failed=True)
    return unknown_record(record)


def _droid_result(record: Fields) -> Piece:
    value = first_in(record, "value", "error", "content")
    status = status_of_error_flag(flag_in(record, "isError", "is_error"))
    if status is SpanStatus.UNKNOWN:
        status = status_of_code(fields_of(value).get("exitCode"))
    return result_piece(
        {},
        value,
        "",
        name=name_in(record, "toolName", "toolId"),
        call_id=identifier_in(record, "toolCallId", "id"),
        status=status,
    )


DROID_STREAM: Final = SessionFormat(
    name="droid-stream",
    system="factory-droid",
    marks=(b'"tool_call"', b'"tool_result"', b'"completion"', b'"text"'),
    recognises=_is_droid_stream,
    translator=stateless(_droid_event),
    facts={"id": "sessionId session_id", "model": "model"},
    session_of=lambda record: text_at(record, "sessionId session_id"),
)


_BUDDY_SESSIONS: Final = "sessionId session_id conversation_id"
_BUDDY_KINDS: Final = {
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
"""The types of records in CodeBuddy's and WorkBuddy's spellings."""


def _is_codebuddy(records: Sequence[Fields]) -> bool:
    kinds = {_buddy_kind(record) for record in records if text_at(record, _BUDDY_SESSIONS)}
    spoken = any(_buddy_role(record) is not None for record in records)
    return bool({"call", "result"} & kinds or ("message" in kinds and "settings" in kinds)) and (
        spoken
    )


def _buddy_kind(record: Fields) -> str:
    kind = kind_of(record) or name_in(record, "event_type", "kind") or ""
    return _BUDDY_KINDS.get(kind, "")


def _buddy_role(record: Fields) -> str | None:
    """Return the role in a message; the one message without a role is the agent's."""
    if _buddy_kind(record) != "message" or "text" in record:
        return None
    for holder in (record, fields_of(record.get("message")), fields_of(record.get("author"))):
        if isinstance(holder.get("role"), str):
            return str(holder["role"])
    return ASSISTANT if "message" in record else None


def _codebuddy_turn(record: Fields) -> Turn | None:
    data = fields_of(record.get("providerData"))
    tokens = usage_tokens(
        data.get("usage"), "inputTokens input_tokens", "outputTokens output_tokens"
    )
    message = fields_of(record.get("message"))
    content = first_in(record, "content") or message.get("content")
    holders = (record, fields_of(record.get("tool")), fields_of(record.get("function")))
    names = (name_in(holder, "name", "toolName", "functionName") for holder in holders)
    name = next(filter(None, names), None)
    call_id = name_in(record, "callId", "call_id")
    match _buddy_kind(record):
        case "message":
            role = _buddy_role(record) or ASSISTANT
            spoken = message_turn(record, {"role": role, "content": content}, tokens=tokens)
            if spoken is None or role_of(role) is not Role.USER:
                return spoken
            pieces = tuple(
                replace(user_prompt_piece(piece.text), key_suffix=piece.key_suffix)
                for piece in spoken.pieces
            )
            return replace(spoken, pieces=pieces)
        case "reasoning":
            text = content_text(first_in(record, "rawContent", "content", "text"))
            thought = THE_MODEL.piece(text, kind=SpanKind.REASONING)
            return (
                None if is_empty(thought) else replace(record_turn(record, thought), tokens=tokens)
            )
        case "call":
            arguments = first_in(record, "arguments", "input", "parameters")
            call = {"name": name, "id": call_id, "arguments": arguments}
            return replace(record_turn(record, call_piece(call, "", ASSISTANT)), tokens=tokens)
        case "result":
            output = first_in(record, "output", "result") or content
            return record_turn(record, result_piece(record, output, "", name=name, call_id=call_id))
        case "settings":
            return None
    return unknown_record({"type": name_in(record, "event_type", "kind"), **record})


CODEBUDDY: Final = SessionFormat(
    name="codebuddy",
    system="codebuddy",
    marks=(b'"sessionId"', b'"session_id"', b'"conversation_id"'),
    recognises=_is_codebuddy,
    translator=stateless(_codebuddy_turn),
    order=along_last_branch("id", "parentId"),
    facts={
        "id": _BUDDY_SESSIONS,
        "model": "model metadata.model providerData.model providerData.modelId",
    },
)


_MCP_METHODS: Final = (
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
_MCP_WRAPPERS: Final = ("message", "payload", "data", "msg", "request", "response", "body", "json")


def _rpc_of(record: Fields) -> Fields:
    """Return the message of the protocol that a record is or holds; empty where it is none."""
    for value in (record, *(value_in(record.get(name)) for name in _MCP_WRAPPERS)):
        fields = fields_of(value)
        if "jsonrpc" in fields:
            return fields
    return {}


def _is_mcp(records: Sequence[Fields]) -> bool:
    messages = [_rpc_of(record) for record in records]
    methods = [as_text(message.get("method")) or "" for message in messages]
    return mostly(bool, messages) and any(method.startswith(_MCP_METHODS) for method in methods)


class _McpTranslator:
    """Takes the messages of a connection apart; a response is tied to its request by the id.

    Either side may ask, with ids of its own, so a response belongs to the last request with its
    id that has none yet.
    """

    def __init__(self, _session: SessionContext) -> None:
        self._methods: dict[str, tuple[str, str | None]] = {}
        self._asked = 0

    def __call__(self, record: Fields) -> Turn | None:
        message = _rpc_of(record)
        method = as_text(message.get("method"))
        request_id = identifier_in(message, "id")
        if method is not None:
            return record_turn(record, self._request(message, method, request_id))
        if request_id is None or not {"result", "error"} & message.keys():
            return unknown_record(record)
        method, call_id = self._methods.pop(request_id, ("response", None))
        return record_turn(record, self._response(message, method, call_id))

    def _request(self, message: Fields, method: str, request_id: str | None) -> Piece:
        params = fields_of(message.get("params"))
        if method != "tools/call":
            if request_id is not None:
                self._methods[request_id] = (method, None)
            return log_piece(dump_text(params) if params else method, method)
        self._asked += 1
        call_id = None if request_id is None else f"{request_id}.{self._asked}"
        if request_id is not None:
            self._methods[request_id] = (method, call_id)
        call = {"name": params.get("name"), "arguments": params.get("arguments"), "id": call_id}
        return call_piece(call, "", "client")

    def _response(self, message: Fields, method: str, call_id: str | None) -> Piece:
        result = message.get("result")
        error = fields_of(message.get("error"))
        if method != "tools/call":
            text = text_in(error, "message") or dump_text(result)
            return log_piece(text, method, failed=bool(error))
        fields = fields_of(result)
        status = SpanStatus.ERROR if error else status_of_error_flag(fields.get("isError"))
        content = first_in(fields, "content", "structuredContent", "toolResult")
        return result_piece(
            {},
            text_in(error, "message") or dump_text(error) if error else content,
            "",
            call_id=call_id,
            status=status,
        )


MCP: Final = SessionFormat(
    name="mcp-log",
    system=None,
    marks=(b"jsonrpc",),
    recognises=_is_mcp,
    translator=_McpTranslator,
    lists=("messages", "events", "log"),
    keys="",
)
