"""Sessions kept as documents: Gemini CLI, OpenCode, Cline, Devin, fx; steps of Antigravity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from mast_tui.counts import counted
from mast_tui.traces.io.json_values import as_text, content_text, dump_text
from mast_tui.traces.model import Problem, Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.chat.parts import content_pieces
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    THE_MODEL,
    Piece,
    Speaker,
    Turn,
    call_piece,
    json_log_piece,
    log_piece,
    result_piece,
)
from mast_tui.traces.readers.chat.values import file_note, usage_tokens
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    first_in,
    identifier_in,
    items_of,
    kind_of,
    name_in,
    name_set,
    text_in,
    texts_in,
    value_in,
)
from mast_tui.traces.readers.sessions.engine import (
    SessionContext,
    SessionFormat,
    SessionRecord,
    stateless,
)
from mast_tui.traces.readers.sessions.pieces import (
    GEMINI_STATUS,
    SYSTEM,
    USER,
    is_empty,
    message_turn,
    note_of,
    record_time,
    record_turn,
    spoken_turn,
    unknown_record,
    user_prompt_piece,
)
from mast_tui.traces.result_status import status_of_code
from mast_tui.traces.times import unix_seconds


def _is_gemini(records: Sequence[Fields]) -> bool:
    return any(
        (kind_of(record) == "gemini" and "content" in record)
        or (kind_of(record) == "user" and "role" not in record and _is_gemini_header(records[0]))
        for record in records
    )


def _is_gemini_header(record: Fields) -> bool:
    return "sessionId" in record and ("projectHash" in record or "startTime" in record)


def _gemini_order(
    records: Sequence[SessionRecord], problems: list[Problem]
) -> Sequence[SessionRecord]:
    """Return the messages that count, each as it was written last.

    A message is written again whenever something of it changes. ``$rewindTo`` takes back that
    message and all that follow. ``$set`` may bring messages, as after a compression; those before
    were part of the run and stay.
    """
    messages: dict[str, SessionRecord] = {}
    for record in records:
        target = as_text(record.value.get("$rewindTo"))
        if target is not None:
            _rewind(messages, target, record, problems)
            continue
        changes = record.value.get("$set")
        if not isinstance(changes, Mapping):
            name = identifier_in(record.value, "id") or record.location
            messages[name] = record
            continue
        for number, message in enumerate(items_of(changes.get("messages"))):
            name = identifier_in(fields_of(message), "id") or f"{record.location} {number}"
            messages[name] = SessionRecord(fields_of(message), record.location)
    return list(messages.values())


def _rewind(
    messages: dict[str, SessionRecord],
    target: str,
    record: SessionRecord,
    problems: list[Problem],
) -> None:
    names = list(messages)
    if target not in messages:
        problems.append(Problem(record.location, f"a rewind to {target}, which is not in the file"))
        return
    rewound = names[names.index(target) :]
    for name in rewound:
        del messages[name]
    verb = "is" if len(rewound) == 1 else "are"
    count = counted(len(rewound), "message")
    problems.append(Problem(record.location, f"{count} taken back by a rewind {verb} not shown"))


def _gemini_turn(record: Fields) -> Turn | None:
    kind = kind_of(record)
    content = record.get("content")
    if kind == "user":
        return spoken_turn(record, content_pieces(content, USER, "/content"))
    if kind in ("gemini", "model", "assistant"):
        return _gemini_answer(record, content)
    if not kind or _is_gemini_header(record):
        return None
    if kind in ("info", "warning", "error"):
        return record_turn(record, log_piece(content_text(content), kind, failed=kind == "error"))
    return unknown_record(record)


def _gemini_answer(record: Fields, content: object) -> Turn:
    pieces = []
    for number, thought in enumerate(items_of(record.get("thoughts"))):
        fields = fields_of(thought)
        text = texts_in(fields, "subject", "description", "text")
        reasoning = THE_MODEL.piece(text, f"/thoughts/{number}", kind=SpanKind.REASONING)
        pieces.append(replace(reasoning, start=record_time(fields)))
    pieces += content_pieces(content, THE_MODEL, "/content")
    for number, call in enumerate(items_of(record.get("toolCalls"))):
        pieces += _gemini_call(fields_of(call), f"/toolCalls/{number}")
    tokens = usage_tokens(record.get("tokens"), "input", "output")
    return replace(spoken_turn(record, pieces), tokens=tokens, model=as_text(record.get("model")))


def _gemini_call(call: Fields, pointer: str) -> list[Piece]:
    """Return a call, and its result where there is one."""
    asked = call_piece({**call, "arguments": call.get("args")}, pointer, ASSISTANT)
    output = call.get("result")
    responses = [
        fields_at(part, "functionResponse").get("response", part) for part in items_of(output)
    ]
    if not responses:
        display = as_text(output) or as_text(call.get("resultDisplay"))
        if display is None and as_text(call.get("status")) not in GEMINI_STATUS:
            return [asked]
        responses = [display]
    failed = all(set(fields_of(response)) == {"error"} for response in responses)
    status = GEMINI_STATUS.get(as_text(call.get("status")), SpanStatus.UNKNOWN)
    texts = (result_piece({}, response, "").text for response in responses)
    result = result_piece(
        {},
        "\n".join(texts),
        f"{pointer}/result",
        name=asked.name,
        call_id=asked.call_id,
        status=SpanStatus.ERROR if failed else status,
    )
    return [asked, replace(result, start=record_time(call))]


GEMINI: Final = SessionFormat(
    name="gemini-cli",
    system="gemini-cli",
    marks=(b'"gemini"', b'"projectHash"'),
    recognises=_is_gemini,
    translator=stateless(_gemini_turn),
    order=_gemini_order,
    lists=("messages",),
    facts={"id": "sessionId", "model": "model"},
)


_OPENCODE_SKIPPED: Final = name_set("step-start step-finish snapshot agent patch step_start")


def _is_opencode(records: Sequence[Fields]) -> bool:
    for record in records:
        info = fields_of(record.get("info"))
        if isinstance(record.get("parts"), list) and isinstance(info.get("role"), str):
            return True
        if "sessionID" in record and isinstance(record.get("part"), Mapping):
            return True
    return False


def _opencode_turn(record: Fields) -> Turn | None:
    if "part" in record:
        return _opencode_event(record)
    info = fields_of(record.get("info"))
    if kind_of(record) == "error" and "sessionID" in record:
        return record_turn(record, _opencode_error(fields_of(record.get("error"))))
    if "parts" not in record or "role" not in info:
        return unknown_record(record) if kind_of(record) else None
    speaker = USER if info.get("role") == "user" else THE_MODEL
    pieces: list[Piece] = []
    for number, part in enumerate(items_of(record.get("parts"))):
        pieces += opencode_part(fields_of(part), f"/parts/{number}", speaker)
    if error := fields_of(info.get("error")):
        pieces.append(_opencode_error(error))
    start = unix_seconds(fields_of(info.get("time")).get("created"))
    spoken = tuple(piece for piece in pieces if not is_empty(piece))
    model = name_in(info, "modelID") or name_in(fields_of(info.get("model")), "modelID")
    return Turn(spoken, start, usage_tokens(info.get("tokens"), "input", "output"), model)


def _opencode_error(error: Fields) -> Piece:
    text = text_in(fields_of(error.get("data")), "message") or text_in(error, "message")
    return log_piece(text or dump_text(error), name_in(error, "name"), failed=True)


def _opencode_event(record: Fields) -> Turn | None:
    """Return the turn of an event that ``opencode run --format json`` prints."""
    part = fields_of(record.get("part"))
    pieces = opencode_part(part, "", THE_MODEL)
    tokens = usage_tokens(part.get("tokens"), "input", "output")
    return replace(spoken_turn(record, pieces), tokens=tokens)


def opencode_part(part: Fields, pointer: str, speaker: Speaker) -> list[Piece]:
    """Return the pieces of a part of a message.

    Args:
        part: The part.
        pointer: The pointer from the message to it.
        speaker: The speaker.
    """
    kind = kind_of(part)
    start = unix_seconds(fields_of(part.get("time")).get("start"))
    if kind in _OPENCODE_SKIPPED:
        return []
    if kind in ("text", "reasoning"):
        by_program = part.get("synthetic") is True and speaker.role is Role.USER
        span_kind = SpanKind.REASONING if kind == "reasoning" else SpanKind.MESSAGE
        piece = (SYSTEM if by_program else speaker).piece(
            content_text(part.get("text")), pointer, kind=span_kind
        )
        return [replace(piece, start=start)]
    if kind == "tool":
        return _opencode_tool(part, pointer)
    if kind == "file":
        return [speaker.piece(file_note(part) or "[file]", pointer)]
    if kind in ("compaction", "retry", "subtask"):
        return list(note_of(part, "prompt", "description", failed=kind == "retry").pieces)
    problem = f"unknown part type `{kind}`"
    return [replace(json_log_piece(part, pointer, name=kind or None), problem=problem)]


def _opencode_tool(part: Fields, pointer: str) -> list[Piece]:
    state = fields_of(part.get("state"))
    times = fields_of(state.get("time"))
    call = {"id": part.get("callID"), "name": part.get("tool"), "arguments": state.get("input")}
    call_piece_ = replace(
        call_piece(call, pointer, ASSISTANT), start=unix_seconds(times.get("start"))
    )
    state_name = state.get("status")
    output = first_in(state, "output", "error")
    if output is None and state_name in ("pending", "running", None):
        return [call_piece_]
    result_status = status_of_code(fields_of(state.get("metadata")).get("exit"))
    if state_name == "error":
        result_status = SpanStatus.ERROR
    elif result_status is SpanStatus.UNKNOWN and state_name in ("completed", "success"):
        result_status = SpanStatus.OK
    result = result_piece(
        {},
        output,
        f"{pointer}/state",
        name=call_piece_.name,
        call_id=call_piece_.call_id,
        status=result_status,
    )
    return [call_piece_, replace(result, start=unix_seconds(times.get("end")))]


OPENCODE: Final = SessionFormat(
    name="opencode",
    system="opencode",
    marks=(b'"parts"', b'"sessionID"'),
    recognises=_is_opencode,
    translator=stateless(_opencode_turn),
    lists=("messages",),
    keys="info.id part.id",
    facts={
        "id": "info.sessionID info.id sessionID",
        "model": "info.modelID info.model.modelID",
        "version": "info.version",
    },
)


_CLINE_SKIPPED: Final = name_set("""
    api_req_finished api_req_retried api_req_deleted deleted_api_reqs checkpoint_created
    checkpoint_saved shell_integration_warning resume_task resume_completed_task
    mcp_server_request_started load_mcp_documentation auto_approval_max_req_reached
    codebase_search_result condense_context_started mcp_notification
""")
_CLINE_ERRORS: Final = name_set("""
    error diff_error clineignore_error rooignore_error api_req_failed mistake_limit_reached
    error_retry
""")
_CLINE_LISTINGS: Final = name_set("""
    listFilesTopLevel listFilesRecursive listCodeDefinitionNames searchFiles codebaseSearch
""")
"""The tools whose ``content`` is what they found; that of others is what they write."""


def _is_cline(records: Sequence[Fields]) -> bool:
    return any(
        kind_of(record) in ("say", "ask") and isinstance(record.get(kind_of(record)), str)
        for record in records
    )


class _ClineTranslator:
    """Takes the messages of Cline's panel apart, and those of Roo Code's.

    A request counts its tokens before the answer comes, so they are kept until it does. It also
    quotes the result of the tool that ran before, which no other message holds for some tools.
    """

    def __init__(self, session: SessionContext) -> None:
        self._tokens: Tokens | None = None
        self._waiting: Piece | None = None
        self._began = False
        self._output: dict[int, str] = {}
        run: list[Fields] = []
        for record in session.values:
            kind = _cline_kind(record)
            if kind == "command_output":
                run.append(record)
            elif kind in ("command", "completion_result", "text", "tool", "api_req_started"):
                self._join(run)
                run = []
        self._join(run)

    def _join(self, run: Sequence[Fields]) -> None:
        """Keep the outputs of one command as one text."""
        texts = [text for record in run if (text := as_text(record.get("text")))]
        if run:
            self._output[id(run[0])] = "\n".join(texts)

    def __call__(self, record: Fields) -> Turn | None:
        kind = _cline_kind(record)
        pieces = self._pieces(kind, record)
        self._began = self._began or bool(pieces)
        spoken = spoken_turn(record, pieces)
        model = name_in(fields_of(record.get("modelInfo")), "modelId")
        if self._tokens is not None and any(piece.role is Role.AGENT for piece in spoken.pieces):
            spoken = replace(spoken, tokens=self._tokens)
            self._tokens = None
        return replace(spoken, model=model)

    def _pieces(self, kind: str, record: Fields) -> list[Piece]:
        text = content_text(record.get("text"))
        if kind == "api_req_started":
            return self._request(fields_of(value_in(text)))
        if kind in _CLINE_SKIPPED:
            return []
        if kind == "command_output":
            return self._command_output(record)
        if kind in _CLINE_ERRORS:
            return [log_piece(text, kind, failed=True)]
        if kind in ("task", "user_feedback", "user_feedback_diff"):
            return [USER.piece(text)]
        if kind == "reasoning":
            thought = text or content_text(record.get("reasoning"))
            return [THE_MODEL.piece(thought, kind=SpanKind.REASONING)]
        if kind in ("tool", "use_mcp_server", "browser_action", "browser_action_launch"):
            return self._tool(kind, text)
        if kind == "command":
            return [self._call("command", {"command": text})]
        if kind in ("mcp_server_response", "browser_action_result"):
            self._waiting = None
            return [result_piece({}, text, "")]
        if kind == "text" and not self._began:
            return [USER.piece(text)]  # newer versions do not mark the task
        if kind in ("text", "completion_result", "followup", "plan_mode_respond"):
            return [THE_MODEL.piece(_cline_words(text))]
        return [log_piece(text or dump_text({**record, "ts": None}), kind)] if text else []

    def _request(self, request: Fields) -> list[Piece]:
        self._tokens = usage_tokens(request, "tokensIn cacheReads cacheWrites", "tokensOut")
        waiting = self._waiting
        self._waiting = None
        quoted = as_text(request.get("request"))
        if reason := as_text(request.get("cancelReason")):
            return [
                log_piece(text_in(request, "streamingFailedMessage") or reason, "api", failed=True)
            ]
        if waiting is None or quoted is None or "] Result:" not in quoted[:1000]:
            return []
        output = quoted.partition("] Result:")[2].partition("<environment_details>")[0].strip()
        return [result_piece({}, output, "/request", name=waiting.name)]

    def _command_output(self, record: Fields) -> list[Piece]:
        output = self._output.get(id(record))
        if output is None:
            return []
        self._waiting = None
        return [result_piece({}, output, "", name="command")]

    def _tool(self, kind: str, text: str) -> list[Piece]:
        """Return the call of a tool, with its result where the message holds it."""
        fields = fields_of(value_in(text))
        if not fields:
            return [self._call(kind, {"url": text} if kind == "browser_action_launch" else text)]
        if kind == "use_mcp_server":
            name = name_in(fields, "toolName", "uri") or kind
            return [self._call(name, value_in(fields.get("arguments")) or fields)]
        name = name_in(fields, "tool", "action") or kind
        shows_result = name in _CLINE_LISTINGS
        arguments = {
            key: value
            for key, value in fields.items()
            if key not in ("tool", "operationIsLocatedInWorkspace")
            and not (key == "content" and (shows_result or name == "readFile"))
        }
        call = self._call(name, arguments)
        if not shows_result or "content" not in fields:
            return [call]
        self._waiting = None
        return [call, result_piece({}, fields.get("content"), "/content", name=name)]

    def _call(self, name: str, arguments: object) -> Piece:
        self._waiting = call_piece({"arguments": arguments}, "", ASSISTANT, name=name)
        return self._waiting


def _cline_kind(record: Fields) -> str:
    return as_text(record.get(kind_of(record))) or kind_of(record)


def _cline_words(text: str) -> str:
    """Return the words of a question or a plan, which are kept as JSON with their options."""
    fields = fields_of(value_in(text))
    question = text_in(fields, "question", "response")
    if question is None:
        return text
    options = [content_text(option) for option in items_of(fields.get("options"))]
    return "\n".join([question, *(f"- {option}" for option in options if option)])


def _cline_order(
    records: Sequence[SessionRecord], _problems: list[Problem]
) -> Sequence[SessionRecord]:
    """Return the messages, each as it was written last: a stream repeats one while it grows."""
    last: dict[str, SessionRecord] = {}
    for record in records:
        value = record.value
        name = f"{value.get('ts')} {kind_of(value)} {_cline_kind(value)}"
        earlier = last.get(name)
        if earlier is not None and earlier.value.get("partial") is True:
            last[name] = record
        else:
            last[name if earlier is None else f"{name} {record.location}"] = record
    return list(last.values())


CLINE: Final = SessionFormat(
    name="cline",
    system="cline",
    marks=(b'"say"', b'"ask"'),
    recognises=_is_cline,
    translator=_ClineTranslator,
    order=_cline_order,
    lists=("messages", "clineMessages"),
    keys="",
    facts={"id": "taskId"},
)


_ANTIGRAVITY_NOTES: Final = name_set("CHECKPOINT SYSTEM_MESSAGE EPHEMERAL_MESSAGE")


def _is_antigravity(records: Sequence[Fields]) -> bool:
    return any(
        "step_index" in record and "source" in record and kind_of(record).isupper()
        for record in records
    )


def _antigravity_turn(record: Fields) -> Turn | None:
    kind = kind_of(record)
    text = content_text(record.get("content"))
    failed = str(record.get("status")).upper() in ("ERROR", "FAILED", "CANCELED", "CANCELLED")
    if kind == "USER_INPUT":
        return spoken_turn(record, [user_prompt_piece(text)])
    if kind == "PLANNER_RESPONSE":
        return _antigravity_answer(record, text)
    if record.get("source") == "MODEL":
        return record_turn(record, _antigravity_result(kind, text, failed))
    if not text.strip():
        return None
    if kind in _ANTIGRAVITY_NOTES:
        return record_turn(record, SYSTEM.piece(text))
    return record_turn(record, log_piece(text, kind, failed=failed or kind == "ERROR_MESSAGE"))


def _antigravity_answer(record: Fields, text: str) -> Turn:
    thought = content_text(record.get("thinking"))
    pieces = [THE_MODEL.piece(thought, "/thinking", kind=SpanKind.REASONING), THE_MODEL.piece(text)]
    for number, call in enumerate(items_of(record.get("tool_calls"))):
        fields = fields_of(call)
        arguments = {
            name: _unquoted(value) for name, value in fields_of(fields.get("args")).items()
        }
        spelt = {**fields, "arguments": arguments or fields.get("args")}
        pieces.append(call_piece(spelt, f"/tool_calls/{number}", ASSISTANT))
    return spoken_turn(record, pieces)


def _antigravity_result(kind: str, text: str, failed: bool) -> Piece:
    """Return the result that a step is: of the call that has waited longest."""
    status = SpanStatus.ERROR if failed else SpanStatus.UNKNOWN
    result = result_piece({}, text, "", status=status)
    return replace(result, agent=kind.lower() or result.agent)


def _unquoted(value: object) -> object:
    """Return the text in an argument that is written as JSON."""
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        return value[1:-1].replace('\\"', '"').replace("\\n", "\n")
    return value


ANTIGRAVITY: Final = SessionFormat(
    name="antigravity",
    system="antigravity",
    marks=(b'"step_index"',),
    recognises=_is_antigravity,
    translator=stateless(_antigravity_turn),
    keys="",
)


def _is_devin(records: Sequence[Fields]) -> bool:
    return isinstance(records[0].get("session"), Mapping) and any(
        "message_id" in record and isinstance(record.get("role"), str) for record in records
    )


def _devin_turn(record: Fields) -> Turn | None:
    return message_turn(record, record) if "role" in record else None


DEVIN: Final = SessionFormat(
    name="devin",
    system="devin",
    marks=(b'"nodes"',),
    recognises=_is_devin,
    translator=stateless(_devin_turn),
    lists=("nodes",),
    keys="message_id",
    facts={"id": "session.id", "model": "session.model"},
)


def _is_fx(records: Sequence[Fields]) -> bool:
    return any(
        isinstance(record.get("user"), Mapping)
        and ("execution" in record or "tool_call" in record or "terminal_reason" in record)
        for record in records
    )


def _fx_turn(record: Fields) -> Turn:
    if "user" not in record:
        return note_of(record, "summary", "text", name=name_in(record, "kind"))
    pieces = [user_prompt_piece(content_text(fields_of(record.get("user")).get("text")))]
    for number, step in enumerate(items_of(fields_of(record.get("execution")).get("tool_steps"))):
        pieces += _fx_step(fields_of(step), f"/execution/tool_steps/{number}")
    if isinstance(record.get("tool_call"), Mapping):
        pieces.append(_fx_call(record.get("tool_call"), "/tool_call"))
    pieces.append(THE_MODEL.piece(content_text(record.get("assistant")), "/assistant"))
    if record.get("kind") == "interrupted":
        pieces.append(
            log_piece(text_in(record, "terminal_reason") or "", "interrupted", failed=True)
        )
    return spoken_turn(record, pieces)


def _fx_step(step: Fields, pointer: str) -> list[Piece]:
    pieces = [THE_MODEL.piece(content_text(step.get("assistant")), pointer)]
    for number, call in enumerate(items_of(step.get("tool_calls"))):
        pieces.append(_fx_call(call, f"{pointer}/tool_calls/{number}"))
    for number, result in enumerate(items_of(step.get("tool_results"))):
        fields = fields_of(result)
        spelt = {**fields, "status": fields.get("status"), "name": fields.get("tool_name")}
        output = result_piece(spelt, fields.get("output"), f"{pointer}/tool_results/{number}")
        pieces.append(replace(output, start=unix_seconds(fields.get("created_at_ms"))))
    return pieces


def _fx_call(call: object, pointer: str) -> Piece:
    fields = fields_of(call)
    return call_piece({**fields, "arguments": fields.get("arguments_json")}, pointer, ASSISTANT)


FX: Final = SessionFormat(
    name="fx",
    system="fx",
    marks=(b'"history"',),
    recognises=_is_fx,
    translator=stateless(_fx_turn),
    lists=("state.history", "history"),
    keys="",
    facts={"id": "session_id state.id", "model": "state.preferences.model preferences.model"},
)
