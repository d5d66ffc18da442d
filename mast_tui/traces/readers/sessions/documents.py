"""Sessions kept as documents: Gemini CLI, OpenCode, Cline, Devin, fx; steps of two editors."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Final

from mast_tui.counts import counted
from mast_tui.traces.io.json_values import as_text, content_text, dump_text
from mast_tui.traces.model import Problem, Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    THE_MODEL,
    Piece,
    Speaker,
    Turn,
    call_piece,
    content_pieces,
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
    without,
)
from mast_tui.traces.readers.sessions.engine import (
    SYSTEM,
    USER,
    SessionContext,
    SessionFormat,
    SessionRecord,
    Translator,
    any_record_with,
    is_empty,
    log_turn,
    message_turn,
    record_time,
    record_turn,
    stateless,
    text_at,
    turn_without_empty_pieces,
    unknown_record_turn,
    user_prompt_piece,
)
from mast_tui.traces.result_status import status_of_code, status_of_word, worst_status
from mast_tui.traces.times import unix_seconds


def _is_gemini_header(record: Fields) -> bool:
    return "sessionId" in record and ("projectHash" in record or "startTime" in record)


def _select_gemini_messages(
    records: Sequence[SessionRecord], problems: list[Problem]
) -> Sequence[SessionRecord]:
    """Return the messages that are shown, each in its last version.

    Gemini CLI appends to the file:

    - A message is written again after every change.
    - ``$rewindTo`` removes a message and all messages after it.
    - ``$set`` adds messages, for example after a compression.
    """
    # A new version of a message keeps the first version's position.
    message_by_id: dict[str, SessionRecord] = {}
    for record in records:
        target_id = as_text(record.value.get("$rewindTo"))
        if target_id is not None:
            _remove_rewound_messages(message_by_id, target_id, record, problems)
            continue
        changes = record.value.get("$set")
        if not isinstance(changes, Mapping):
            message_id = identifier_in(record.value, "id") or record.location
            message_by_id[message_id] = record
            continue
        for number, message in enumerate(items_of(changes.get("messages"))):
            message_id = identifier_in(fields_of(message), "id") or f"{record.location} {number}"
            # Some lists lack the calls and thoughts of messages that were written before.
            known = message_by_id.get(message_id)
            fields = {**(known.value if known is not None else {}), **fields_of(message)}
            message_by_id[message_id] = SessionRecord(fields, record.location)
    return list(message_by_id.values())


def _remove_rewound_messages(
    message_by_id: dict[str, SessionRecord],
    target_id: str,
    record: SessionRecord,
    problems: list[Problem],
) -> None:
    """Remove the target message of a rewind and all messages after it; add a problem."""
    if target_id not in message_by_id:
        problem = f"a rewind to {target_id}, which is not in the file"
        problems.append(Problem(record.location, problem))
        return
    message_ids = list(message_by_id)
    removed_ids = message_ids[message_ids.index(target_id) :]
    for message_id in removed_ids:
        del message_by_id[message_id]
    problem = counted(
        len(removed_ids),
        "message taken back by a rewind is not shown",
        "messages taken back by a rewind are not shown",
    )
    problems.append(Problem(record.location, problem))


def _gemini_turn(record: Fields) -> Turn | None:
    """Return the turn of a record of Gemini CLI, unless it is a header."""
    kind = kind_of(record)
    content = record.get("content")
    if kind == "user":
        return turn_without_empty_pieces(record, content_pieces(content, USER, "/content"))
    if kind in ("gemini", "model", "assistant"):
        return _gemini_answer_turn(record, content)
    if not kind or _is_gemini_header(record):
        return None
    if kind in ("info", "warning", "error"):
        return record_turn(record, log_piece(content_text(content), kind, failed=kind == "error"))
    return unknown_record_turn(record)


def _gemini_answer_turn(record: Fields, content: object) -> Turn:
    """Return the turn of the model's answer: its thoughts, its text and its calls with results."""
    pieces = []
    for number, thought in enumerate(items_of(record.get("thoughts"))):
        fields = fields_of(thought)
        text = texts_in(fields, "subject", "description", "text")
        reasoning = THE_MODEL.piece(text, f"/thoughts/{number}", kind=SpanKind.REASONING)
        pieces.append(replace(reasoning, start=record_time(fields)))
    pieces += content_pieces(content, THE_MODEL, "/content")
    for number, call in enumerate(items_of(record.get("toolCalls"))):
        pieces += _gemini_call_pieces(fields_of(call), f"/toolCalls/{number}")
    # Gemini counts the tokens of tools and of thoughts separately.
    tokens = usage_tokens(record.get("tokens"), "input tool", "output thoughts")
    turn = turn_without_empty_pieces(record, pieces)
    return replace(turn, tokens=tokens, model=as_text(record.get("model")))


def _gemini_call_pieces(call_fields: Fields, pointer: str) -> list[Piece]:
    """Return a call, and its result if it has any output or has ended."""
    call = call_piece(call_fields, pointer, ASSISTANT)
    status = status_of_word(call_fields.get("status"))
    output = call_fields.get("result")
    # The output is a list of responses, or in some versions a text.
    responses = [
        fields_at(part, "functionResponse").get("response", part) for part in items_of(output)
    ]
    if not responses:
        output_text = as_text(output) or as_text(call_fields.get("resultDisplay"))
        if output_text is None and status is SpanStatus.UNKNOWN:  # The call has not ended.
            return [call]
        responses = [output_text]

    # The result has failed if all responses are errors.
    has_failed = all(set(fields_of(response)) == {"error"} for response in responses)
    texts = (result_piece({}, response, key_suffix="").text for response in responses)
    result = result_piece(
        {},
        "\n".join(texts),
        f"{pointer}/result",
        name=call.name,
        call_id=call.call_id,
        status=SpanStatus.ERROR if has_failed else status,
    )
    return [call, replace(result, start=record_time(call_fields))]


GEMINI: Final = SessionFormat(
    name="gemini-cli",
    system="gemini-cli",
    typical_bytes=(b'"gemini"', b'"projectHash"'),
    recognises=lambda records: any(
        (kind_of(record) == "gemini" and "content" in record)
        or (kind_of(record) == "user" and "role" not in record and _is_gemini_header(records[0]))
        for record in records
    ),
    make_translator=stateless(_gemini_turn),
    select_records=_select_gemini_messages,
    list_paths=("messages",),
    fact_paths={"id": "sessionId", "model": "model"},
)


_OPENCODE_SILENT_TYPES: Final = name_set("step-start step-finish snapshot agent patch step_start")


_OPENCODE_2_EVENT: Final = "session.next."
_OPENCODE_2_TYPES: Final = {
    "prompted": "user",
    "prompt.admitted": "user",
    "synthetic": "synthetic",
    "context.updated": "system",
    "compaction.ended": "compaction",
}
"""The types of the messages in events of OpenCode 2."""

_OPENCODE_2_PART: Final = re.compile(r"(text|reasoning)\.(?:delta|ended)|(?:tool|shell)\.(?!input)")
_OPENCODE_2_STATUSES: Final = {"success": "completed", "failed": "error", "ended": "completed"}


def _is_opencode_record(record: Fields) -> bool:
    """Return whether a record is a message or an event of OpenCode."""
    info = fields_of(record.get("info"))
    is_message = isinstance(record.get("parts"), list) and isinstance(info.get("role"), str)
    is_printed_event = "sessionID" in record and isinstance(record.get("part"), Mapping)
    # Events of the server are the third kind of record, messages of OpenCode 2 the fourth.
    kind, _properties = _opencode_event(record)
    is_event = kind.startswith(("message.", _OPENCODE_2_EVENT))
    is_event_of_session = is_event and _opencode_session_of(record) is not None
    has_provider = "providerID" in fields_of(record.get("model"))
    is_new_message = has_provider and isinstance(record.get("content"), list)
    return is_message or is_printed_event or is_event_of_session or is_new_message


def _opencode_event(record: Fields) -> tuple[str, Fields]:
    """Return the type and the properties of an event; stored events have them in ``data``."""
    event = fields_of(record.get("syncEvent")) or record
    return kind_of(event), fields_of(event.get("properties", event.get("data")))


def _opencode_session_of(record: Fields) -> str | None:
    """Return the session's id in an event of OpenCode's server."""
    _kind, properties = _opencode_event(record)
    return text_at(properties, "sessionID part.sessionID info.sessionID")


def _whole_opencode_messages(
    records: Sequence[SessionRecord], _problems: list[Problem]
) -> Sequence[SessionRecord]:
    """Return one record for each message in a server's events, then all other records.

    An event has the ``info`` of a message, or one of its parts. The last version of each is used.
    Of all other events, only errors are kept.
    """
    other_records: list[SessionRecord] = []
    info_by_message: dict[str, SessionRecord] = {}
    parts_by_message: dict[str, dict[str, object]] = {}
    for record in records:
        kind, properties = _opencode_event(record.value)
        part = fields_of(properties.get("part"))
        info = fields_of(properties.get("info"))
        # An info without a role is that of a session.
        message_id = text_in(part, "messageID") or (text_in(info, "id") if "role" in info else None)
        if message_id is not None:
            info_record = info_by_message.setdefault(message_id, replace(record, value={}))
            if part:
                part_id = text_in(part, "id") or record.location
                parts_by_message.setdefault(message_id, {})[part_id] = part
            else:
                info_by_message[message_id] = replace(info_record, value=info)
        elif kind.startswith("session.error"):
            other_records.append(replace(record, value={**properties, "type": "error"}))
        elif "properties" not in record.value and _opencode_session_of(record.value) is None:
            other_records.append(replace(record, value=_from_opencode_2(record.value)))
    if not info_by_message:
        other_records[:0] = _messages_of_opencode_2_events(records)

    # A log can lack the ``info`` of a message, so these are the defaults.
    message_records = [
        replace(
            info_record,
            value={
                "info": {"id": message_id, "role": "assistant", **info_record.value},
                "parts": list(parts_by_message.get(message_id, {}).values()),
            },
        )
        for message_id, info_record in info_by_message.items()
    ]
    return [*message_records, *other_records]


def _messages_of_opencode_2_events(records: Sequence[SessionRecord]) -> list[SessionRecord]:
    """Return the messages in events of OpenCode 2, with the last version of each part."""
    messages: dict[str, tuple[SessionRecord, dict[str, object]]] = {}
    parts_by_message = defaultdict[str, dict[str | None, dict[str, Any]]](dict)
    for record in records:
        kind, event = _opencode_event(record.value)
        if not kind.startswith(_OPENCODE_2_EVENT):
            continue
        # Stored events end in the version of their type.
        subject = kind.removeprefix(_OPENCODE_2_EVENT).rstrip(".0123456789")
        time = event.get("timestamp")
        message_id = text_in(event, "assistantMessageID", "callID", "messageID") or record.location
        new_message: dict[str, object] = {
            "id": message_id,
            "type": "assistant",
            "sessionID": event.get("sessionID"),
            "time": {"created": time},
        }
        _record, message = messages.setdefault(message_id, (record, new_message))
        if subject in _OPENCODE_2_TYPES:
            message |= {**event, **fields_at(event, "prompt"), "type": _OPENCODE_2_TYPES[subject]}
        elif subject.startswith(("step.", "retried")):
            message |= event
        elif part_type := _OPENCODE_2_PART.match(subject):
            part_id = text_in(event, "callID", "textID", "reasoningID")
            new_part = {"id": part_id, "text": "", "time": {"start": time}, "state": {}}
            part = parts_by_message[message_id].setdefault(part_id, new_part)
            part["type"] = part_type[1] or "tool"
            part["text"] = text_in(event, "text") or part["text"] + content_text(event.get("delta"))
            part["name"] = text_in(event, "name", "tool") or part.get("name")
            status = _OPENCODE_2_STATUSES.get(subject.rpartition(".")[2], "running")
            part["state"].update(event, status=status)
            part["time"]["completed"] = time
    return [
        replace(
            record,
            value=_from_opencode_2(
                {**message, "content": list(parts_by_message[message_id].values())}
            ),
        )
        for message_id, (record, message) in messages.items()
    ]


def _from_opencode_2(message: Fields) -> Fields:
    """Convert a message of OpenCode 2 to one of OpenCode 1; keep any other record."""
    kind = kind_of(message)
    if kind == "assistant" and "content" in message:
        parts = [_from_opencode_2_part(part) for part in items_of(message["content"])]
    elif kind == "compaction":
        parts = [{"type": kind, "prompt": first_in(message, "summary", "text")}]
    elif kind in ("user", "synthetic", "system", "skill") and "text" in message:
        files = [{**fields_of(file), "type": "file"} for file in items_of(message.get("files"))]
        parts = [{"type": "text", "text": message["text"], "synthetic": kind != "user"}, *files]
    else:
        return message
    role = "assistant" if kind == "assistant" else "user"
    info = {**message, "role": role, "modelID": fields_at(message, "model").get("id")}
    return {"info": info, "parts": parts}


def _from_opencode_2_part(part: object) -> object:
    """Convert a part of a message of OpenCode 2; only calls differ."""
    if kind_of(part) != "tool":
        return part
    fields = fields_of(part)
    state = fields_of(fields.get("state"))
    times = fields_of(fields.get("time"))
    new_state = {
        "status": state.get("status"),
        "input": first_in(state, "input", "command"),
        "output": text_in(fields_of(state.get("error")), "message")
        or first_in(state, "output", "content", "result", "structured"),
        "time": {"start": first_in(times, "ran", "start"), "end": times.get("completed")},
    }
    name = text_in(fields, "name", "tool") or "shell"
    return {"type": "tool", "callID": fields.get("id"), "tool": name, "state": new_state}


def _opencode_turn(record: Fields) -> Turn | None:
    if "part" in record:
        return _opencode_event_turn(record)
    info = fields_of(record.get("info"))
    if kind_of(record) == "error" and "sessionID" in record:
        return record_turn(record, _opencode_error_piece(fields_of(record.get("error"))))
    if "parts" not in record or "role" not in info:
        return unknown_record_turn(record) if kind_of(record) else None
    speaker = USER if info.get("role") == "user" else THE_MODEL
    pieces: list[Piece] = []
    for number, part in enumerate(items_of(record.get("parts"))):
        pieces += _opencode_part_pieces(fields_of(part), f"/parts/{number}", speaker)
    if error := fields_of(info.get("error")):
        pieces.append(_opencode_error_piece(error))

    nonempty_pieces = tuple(piece for piece in pieces if not is_empty(piece))
    start = unix_seconds(fields_of(info.get("time")).get("created"))
    model = name_in(info, "modelID") or name_in(fields_of(info.get("model")), "modelID")
    return Turn(nonempty_pieces, start, _opencode_tokens(info), model)


def _opencode_tokens(fields: Fields) -> Tokens | None:
    """Return the tokens of a message or a step."""
    counts = fields_of(fields.get("tokens"))
    return usage_tokens({**counts, **fields_of(counts.get("cache"))}, "input read write", "output")


def _opencode_error_piece(error: Fields) -> Piece:
    text = text_in(fields_of(error.get("data")), "message") or text_in(error, "message")
    return log_piece(text or dump_text(error), name_in(error, "name"), failed=True)


def _opencode_event_turn(record: Fields) -> Turn | None:
    """Return the turn of an event that ``opencode run --format json`` prints."""
    part = fields_of(record.get("part"))
    pieces = _opencode_part_pieces(part, "", THE_MODEL)
    return replace(turn_without_empty_pieces(record, pieces), tokens=_opencode_tokens(part))


def _opencode_part_pieces(part: Fields, pointer: str, speaker: Speaker) -> list[Piece]:
    """Return the pieces of a part of a message, under its JSON pointer."""
    kind = kind_of(part)
    start = unix_seconds(fields_of(part.get("time")).get("start"))
    match kind:
        case kind if kind in _OPENCODE_SILENT_TYPES:
            return []
        case "text" | "reasoning":
            is_written_by_program = part.get("synthetic") is True
            if is_written_by_program and speaker.role is Role.USER:
                speaker = SYSTEM
            span_kind = SpanKind.REASONING if kind == "reasoning" else SpanKind.MESSAGE
            piece = speaker.piece(content_text(part.get("text")), pointer, kind=span_kind)
            return [replace(piece, start=start)]
        case "tool":
            return _opencode_tool_pieces(part, pointer)
        case "file":
            return [speaker.piece(file_note(part) or "[file]", pointer)]
        case "compaction" | "retry" | "subtask":
            return list(log_turn(part, "prompt", "description", failed=kind == "retry").pieces)
    problem = f"unknown part type `{kind}`"
    return [replace(json_log_piece(part, pointer, name=kind or None), problem=problem)]


def _opencode_tool_pieces(part: Fields, pointer: str) -> list[Piece]:
    """Return a call, and its result if it has any output or has ended."""
    state = fields_of(part.get("state"))
    times = fields_of(state.get("time"))
    fields = {"id": part.get("callID"), "name": part.get("tool"), "input": state.get("input")}
    call = replace(call_piece(fields, pointer, ASSISTANT), start=unix_seconds(times.get("start")))
    stated_status = state.get("status")
    output = first_in(state, "output", "error")
    if output is None and stated_status in ("pending", "running", None):
        return [call]

    # A command that completed may have failed with an exit code.
    code_status = status_of_code(fields_of(state.get("metadata")).get("exit"))
    result = result_piece(
        {},
        output,
        f"{pointer}/state",
        name=call.name,
        call_id=call.call_id,
        status=worst_status(code_status, status_of_word(stated_status)),
    )
    return [call, replace(result, start=unix_seconds(times.get("end")))]


OPENCODE: Final = SessionFormat(
    name="opencode",
    system="opencode",
    typical_bytes=(b'"parts"', b'"sessionID"', b'"providerID"'),
    recognises=lambda records: any(map(_is_opencode_record, records)),
    make_translator=stateless(_opencode_turn),
    select_records=_whole_opencode_messages,
    list_paths=("messages", "data"),
    id_paths="info.id part.id",
    fact_paths={
        "id": "info.sessionID info.id sessionID",
        "model": "info.modelID info.model.modelID",
        "version": "info.version properties.info.version data.info.version",
    },
    session_of=_opencode_session_of,
)


_CLINE_SILENT_KINDS: Final = name_set("""
    api_req_finished api_req_retried api_req_deleted deleted_api_reqs checkpoint_created
    checkpoint_saved shell_integration_warning resume_task resume_completed_task
    mcp_server_request_started load_mcp_documentation auto_approval_max_req_reached
    condense_context_started mcp_notification
""")
_CLINE_ERROR_KINDS: Final = name_set("""
    error diff_error clineignore_error rooignore_error api_req_failed mistake_limit_reached
    error_retry
""")
_CLINE_LISTING_TOOLS: Final = name_set("""
    listFilesTopLevel listFilesRecursive listCodeDefinitionNames searchFiles codebaseSearch
""")
"""The tools with a result in ``content``; other tools have an argument there."""

_CLINE_RESULT_LABEL: Final = "] Result:"
"""The text between a call and its result in a request, as in ``[read_file] Result:``."""

_CLINE_LABEL_CHARS: Final = 1000
"""The first characters of a request, which contain the label."""

_CLINE_NEXT_LABEL: Final = re.compile(r"\n\n\[[a-z_]+(?: for '[^\n]*')?\] Result:")
"""The label before the second and any further result in a request."""


class _ClineTranslator:
    """Makes the turns of the messages of Cline's panel, or of Roo Code's.

    The tokens of a request come before its answer, so they are kept for the answer. A request also
    quotes the results of earlier calls; for some tools no other message has the result.
    """

    def __init__(self, session: SessionContext) -> None:
        self._request_tokens: Tokens | None = None
        self._calls: list[Piece | None] = []
        """The calls since the last request; None in place of a call with a shown result."""
        self._has_pieces = False
        """True after the first record with pieces. Before that, a text is the user's task."""
        self._output_by_record: dict[int, str] = {}
        """The whole output of a command, by the ``id()`` of its first record."""
        output_records: list[Fields] = []
        for record in session.values:
            kind = _cline_kind(record)
            if kind == "command_output":
                output_records.append(record)
            # Messages of further kinds may be between the parts of an output.
            elif kind in ("command", "completion_result", "text", "tool", "api_req_started"):
                self._set_command_output(output_records)
                output_records = []
        self._set_command_output(output_records)

    def _set_command_output(self, output_records: Sequence[Fields]) -> None:
        """Join the output in some records; save it under the first record."""
        texts = [text for record in output_records if (text := as_text(record.get("text")))]
        if output_records:
            self._output_by_record[id(output_records[0])] = "\n".join(texts)

    def __call__(self, record: Fields) -> Turn | None:
        """Return the turn of a message.

        The agent's first turn after a request has the request's tokens.
        """
        kind = _cline_kind(record)
        pieces = self._pieces_of_kind(kind, record)
        self._has_pieces = self._has_pieces or bool(pieces)
        turn = turn_without_empty_pieces(record, pieces)
        model = name_in(fields_of(record.get("modelInfo")), "modelId")
        is_by_agent = any(piece.role is Role.AGENT for piece in turn.pieces)
        if self._request_tokens is not None and is_by_agent:
            turn = replace(turn, tokens=self._request_tokens)
            self._request_tokens = None
        return replace(turn, model=model)

    def _pieces_of_kind(self, kind: str, record: Fields) -> list[Piece]:
        """Return the pieces of a message of this kind."""
        text = content_text(record.get("text"))
        match kind:
            case "api_req_started":
                return self._request_pieces(fields_of(value_in(text)))
            case kind if kind in _CLINE_SILENT_KINDS:
                return []
            case "command_output":
                return self._command_output_pieces(record)
            case kind if kind in _CLINE_ERROR_KINDS:
                return [log_piece(text, kind, failed=True)]
            case "task" | "user_feedback" | "user_feedback_diff":
                return [USER.piece(text)]
            case "reasoning":
                thought = text or content_text(record.get("reasoning"))
                return [THE_MODEL.piece(thought, kind=SpanKind.REASONING)]
            case "tool" | "use_mcp_server" | "browser_action" | "browser_action_launch":
                return self._tool_pieces(kind, text)
            case "command":
                return [self._new_call("command", {"command": text})]
            case "mcp_server_response" | "browser_action_result" | "codebase_search_result":
                self._close_last_call()
                return [result_piece({}, text, key_suffix="")]
            case "text" if not self._has_pieces:
                # In newer versions the user's task is the first text.
                return [USER.piece(text)]
            case "text" | "completion_result" | "followup" | "plan_mode_respond":
                return [THE_MODEL.piece(_cline_question_text(text))]
        text = text or text_in(fields_of(record.get("contextCondense")), "summary") or ""
        return [log_piece(text, kind)] if text else []

    def _request_pieces(self, request: Fields) -> list[Piece]:
        """Return the results and the error in a request of Cline; begin a new list of calls."""
        self._request_tokens = usage_tokens(request, "tokensIn cacheReads cacheWrites", "tokensOut")
        pieces = self._quoted_results(content_text(request.get("request")))
        self._calls = []
        if reason := as_text(request.get("cancelReason")):
            error = text_in(request, "streamingFailedMessage") or reason
            pieces.append(log_piece(error, "api", failed=True))
        return pieces

    def _quoted_results(self, request_text: str) -> list[Piece]:
        """Return the results in a request's text, except those that a message has shown."""
        if _CLINE_RESULT_LABEL not in request_text[:_CLINE_LABEL_CHARS]:
            return []
        _call, _label, results_text = request_text.partition(_CLINE_RESULT_LABEL)
        outputs = _CLINE_NEXT_LABEL.split(results_text)
        outputs[-1], _tag, _details = outputs[-1].partition("<environment_details>")
        # The outputs belong to the last calls in order; an answered call is None.
        calls = self._calls[-len(outputs) :]
        return [
            result_piece({}, output.strip(), f"/request/{n}" if n else "/request", name=call.name)
            for n, (call, output) in enumerate(zip(calls, outputs, strict=False))
            if call is not None
        ]

    def _close_last_call(self) -> None:
        """Record that the result of the last call is shown."""
        self._calls[-1:] = [None]

    def _command_output_pieces(self, record: Fields) -> list[Piece]:
        """Return the whole output of a command for its first record, and close its call."""
        output = self._output_by_record.get(id(record))
        if output is None:
            return []
        self._close_last_call()
        return [result_piece({}, output, key_suffix="", name="command")]

    def _tool_pieces(self, kind: str, text: str) -> list[Piece]:
        """Return the call in a message of this kind, and its result if the message has it."""
        fields = fields_of(value_in(text))
        if not fields:  # The text is no JSON but the argument itself.
            is_url = kind == "browser_action_launch"
            return [self._new_call(kind, {"url": text} if is_url else text)]
        if kind == "use_mcp_server":
            name = name_in(fields, "toolName", "uri") or kind
            return [self._new_call(name, value_in(fields.get("arguments")) or fields)]

        name = name_in(fields, "tool", "action") or kind
        content_is_result = name in _CLINE_LISTING_TOOLS
        non_argument_fields = {"tool", "operationIsLocatedInWorkspace"}
        # ``readFile`` repeats the path as its content.
        if content_is_result or name == "readFile":
            non_argument_fields.add("content")
        call = self._new_call(name, without(fields, non_argument_fields))
        if not content_is_result or "content" not in fields:
            return [call]
        self._close_last_call()
        return [call, result_piece({}, fields.get("content"), "/content", name=name)]

    def _new_call(self, name: str, arguments: object) -> Piece:
        """Return the piece of a new call, and record the call."""
        call = call_piece({"arguments": arguments}, "", ASSISTANT, name=name)
        self._calls.append(call)
        return call


def _cline_kind(record: Fields) -> str:
    """Return the kind of a message, which is in the field ``say`` or ``ask``; else its type."""
    return as_text(record.get(kind_of(record))) or kind_of(record)


def _cline_question_text(text: str) -> str:
    """Return the question or plan in a JSON text, with its options; any other text unchanged."""
    fields = fields_of(value_in(text))
    question = text_in(fields, "question", "response")
    if question is None:
        return text
    options = [content_text(option) for option in items_of(fields.get("options"))]
    return "\n".join([question, *(f"- {option}" for option in options if option)])


def _select_cline_messages(
    records: Sequence[SessionRecord], _problems: list[Problem]
) -> Sequence[SessionRecord]:
    """Return each message once, without the partial versions before it."""
    record_by_key: dict[str, SessionRecord] = {}
    for record in records:
        value = record.value
        key = f"{value.get('ts')} {kind_of(value)} {_cline_kind(value)}"
        earlier_record = record_by_key.get(key)
        if earlier_record is not None and earlier_record.value.get("partial") is not True:
            if earlier_record.value.get("text") == value.get("text"):
                continue  # Some versions write a message twice.
            # It is another message with the same time and kind.
            key = f"{key} {record.location}"
        record_by_key[key] = record
    return list(record_by_key.values())


CLINE: Final = SessionFormat(
    name="cline",
    system="cline",
    typical_bytes=(b'"say"', b'"ask"'),
    recognises=any_record_with({"say": {"say"}, "ask": {"ask"}}),
    make_translator=_ClineTranslator,
    select_records=_select_cline_messages,
    list_paths=("messages", "clineMessages"),
    id_paths="",
    fact_paths={"id": "taskId"},
)


_ANTIGRAVITY_ANSWER_KINDS: Final = name_set(
    "PLANNER_RESPONSE TEXT_RESPONSE THINKING TOOL_CALL FINISH"
)
_ANTIGRAVITY_SYSTEM_KINDS: Final = name_set("CHECKPOINT SYSTEM_MESSAGE EPHEMERAL_MESSAGE")


def _antigravity_turn(record: Fields) -> Turn | None:
    """Return the turn of a step of Antigravity or its SDK, if it has a text."""
    kind = kind_of(record)
    text = content_text(record.get("content")) or dump_text(record.get("structured_output"))
    failed = status_of_word(record.get("status")) is SpanStatus.ERROR
    if kind == "USER_INPUT" or record.get("source") == "USER":
        return turn_without_empty_pieces(record, [user_prompt_piece(text)])
    if kind in _ANTIGRAVITY_ANSWER_KINDS:
        return _antigravity_answer_turn(record, text)
    if record.get("source") == "MODEL":  # The kind of any other step of the model is a tool.
        return record_turn(record, _antigravity_result(kind, text, failed))
    if not text.strip():
        return None
    if kind in _ANTIGRAVITY_SYSTEM_KINDS:
        return record_turn(record, SYSTEM.piece(text))
    return record_turn(record, log_piece(text, kind, failed=failed or kind == "ERROR_MESSAGE"))


def _antigravity_answer_turn(record: Fields, text: str) -> Turn:
    """Return the turn of the model's response: its thought, its text and its calls."""
    thought = content_text(record.get("thinking"))
    pieces = [THE_MODEL.piece(thought, "/thinking", kind=SpanKind.REASONING), THE_MODEL.piece(text)]
    for number, call in enumerate(items_of(record.get("tool_calls"))):
        call_fields = fields_of(call)
        arguments = {
            name: _unquoted_argument(value)
            for name, value in fields_of(call_fields.get("args")).items()
        }
        call_with_arguments = {**call_fields, "arguments": arguments or call_fields.get("args")}
        pieces.append(call_piece(call_with_arguments, f"/tool_calls/{number}", ASSISTANT))
    return turn_without_empty_pieces(record, pieces)


def _antigravity_result(tool: str, text: str, failed: bool) -> Piece:
    """Return the result of a tool."""
    status = SpanStatus.ERROR if failed else SpanStatus.UNKNOWN
    result = result_piece({}, text, key_suffix="", status=status)
    return replace(result, agent=tool.lower() or result.agent)


def _unquoted_argument(value: object) -> object:
    """Return an argument without the quotes and escapes of JSON."""
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        return value[1:-1].replace('\\"', '"').replace("\\n", "\n")
    return value


ANTIGRAVITY: Final = SessionFormat(
    name="antigravity",
    system="antigravity",
    typical_bytes=(b'"step_index"',),
    recognises=lambda records: any(
        {"step_index", "source"} <= record.keys() and kind_of(record).isupper()
        for record in records
    ),
    make_translator=stateless(_antigravity_turn),
    id_paths="",
)


_WINDSURF_OUTPUT_FIELDS: Final = ("output", "content", "result", "error")


def _windsurf_translator(_session: SessionContext) -> Translator:
    """Return the function that makes turns; calls get ids, because steps have none."""
    step_numbers = count(1)
    return lambda record: _windsurf_turn(record, f"step-{next(step_numbers)}")


def _windsurf_turn(record: Fields, step_id: str) -> Turn:
    """Return the turn of a step of Windsurf, which has its data in a field named after its type."""
    kind = kind_of(record)
    data = fields_of(record.get(kind))
    if kind == "user_input":
        prompt = user_prompt_piece(content_text(data.get("user_response")))
        return turn_without_empty_pieces(record, [prompt])
    if kind == "planner_response":
        answer = THE_MODEL.piece(content_text(data.get("response")))
        return turn_without_empty_pieces(record, [answer])
    if not data:
        return unknown_record_turn(record)

    arguments = without(data, _WINDSURF_OUTPUT_FIELDS)
    tool = name_in(data, "tool_name") or kind
    call = call_piece({"name": tool, "arguments": arguments, "id": step_id}, "", ASSISTANT)
    output = first_in(data, *_WINDSURF_OUTPUT_FIELDS)
    status = worst_status(
        status_of_code(data.get("exit_code")), status_of_word(record.get("status"))
    )
    if output is None and status is not SpanStatus.ERROR:
        return record_turn(record, call)
    result = result_piece({}, output, "", name=tool, call_id=step_id, status=status)
    return record_turn(record, call, result)


WINDSURF: Final = SessionFormat(
    name="windsurf",
    system="windsurf",
    typical_bytes=(b'"user_input"', b'"planner_response"'),
    recognises=any_record_with(
        {"user_input": {"user_input"}, "planner_response": {"planner_response"}}
    ),
    make_translator=_windsurf_translator,
    id_paths="",
)


def _any_devin_message(records: Sequence[Fields]) -> bool:
    # ``records`` is empty if the lines of the file are lists.
    has_header = bool(records) and isinstance(records[0].get("session"), Mapping)
    return has_header and any(
        "message_id" in record and isinstance(record.get("role"), str) for record in records
    )


DEVIN: Final = SessionFormat(
    name="devin",
    system="devin",
    typical_bytes=(b'"nodes"',),
    recognises=_any_devin_message,
    make_translator=stateless(
        lambda record: message_turn(record, record) if "role" in record else None
    ),
    list_paths=("nodes",),
    id_paths="message_id",
    fact_paths={"id": "session.id", "model": "session.model"},
)


def _fx_turn(record: Fields) -> Turn:
    """Return the turn of a record of fx: a prompt with the steps to its answer, or a summary."""
    if "user" not in record:
        return log_turn(record, "summary", "text", name=name_in(record, "kind"))
    pieces = [user_prompt_piece(content_text(fields_of(record.get("user")).get("text")))]
    steps = items_of(fields_of(record.get("execution")).get("tool_steps"))
    for number, step in enumerate(steps):
        pieces += _fx_step_pieces(fields_of(step), f"/execution/tool_steps/{number}")
    if isinstance(record.get("tool_call"), Mapping):
        pieces.append(call_piece(record.get("tool_call"), "/tool_call", ASSISTANT))
    pieces.append(THE_MODEL.piece(content_text(record.get("assistant")), "/assistant"))
    if record.get("kind") == "interrupted":
        pieces.append(
            log_piece(text_in(record, "terminal_reason") or "", "interrupted", failed=True)
        )
    return turn_without_empty_pieces(record, pieces)


def _fx_step_pieces(step: Fields, pointer: str) -> list[Piece]:
    pieces = [THE_MODEL.piece(content_text(step.get("assistant")), pointer)]
    for number, call in enumerate(items_of(step.get("tool_calls"))):
        pieces.append(call_piece(call, f"{pointer}/tool_calls/{number}", ASSISTANT))
    for number, result in enumerate(items_of(step.get("tool_results"))):
        fields = fields_of(result)
        piece = result_piece(fields, fields.get("output"), f"{pointer}/tool_results/{number}")
        pieces.append(replace(piece, start=unix_seconds(fields.get("created_at_ms"))))
    return pieces


FX: Final = SessionFormat(
    name="fx",
    system="fx",
    typical_bytes=(b'"history"',),
    recognises=lambda records: any(
        isinstance(record.get("user"), Mapping)
        and not {"execution", "tool_call", "terminal_reason"}.isdisjoint(record)
        for record in records
    ),
    make_translator=stateless(_fx_turn),
    list_paths=("state.history", "history"),
    id_paths="",
    fact_paths={"id": "session_id state.id", "model": "state.preferences.model preferences.model"},
)
