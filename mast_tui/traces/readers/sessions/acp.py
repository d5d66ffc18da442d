"""Logs of the Agent Client Protocol (ACP), with which editors talk to coding agents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from mast_tui.traces.io.json_values import as_text, content_text, dump_text
from mast_tui.traces.model import Problem, SpanKind, SpanStatus
from mast_tui.traces.readers.chat.pieces import (
    ASSISTANT,
    THE_MODEL,
    Turn,
    call_piece,
    log_piece,
    result_piece,
)
from mast_tui.traces.readers.chat.values import message_text, output_text, usage_tokens
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    identifier_in,
    items_of,
    kind_of,
    name_in,
    name_set,
    text_in,
)
from mast_tui.traces.readers.sessions.engine import (
    SessionContext,
    SessionFormat,
    SessionRecord,
    record_time,
    record_turn,
    unknown_record_turn,
    user_prompt_piece,
)
from mast_tui.traces.readers.sessions.events import rpc_message_in
from mast_tui.traces.result_status import status_of_word

_CHUNK_KINDS: Final = name_set("user_message_chunk agent_message_chunk agent_thought_chunk")
_CALL_KINDS: Final = frozenset({"tool_call", "tool_call_update"})
_SILENT_KINDS: Final = name_set("""
    available_commands_update current_mode_update config_option_update usage_update
    session_info_update
""")
_SILENT_METHODS: Final = name_set("""
    initialize authenticate session/new session/load session/resume session/list session/close
    session/set_mode session/set_model session/set_config_option
""")
_TOOL_NAME: Final = re.compile(r"[\w:-]+")
_EXPECTED_STOP_REASON: Final = "end_turn"
_ANSWERS: Final = frozenset({"result", "error"})
_UNCHANGED: Final[tuple[object, ...]] = (None, "", {}, [])
_UPDATE_PATHS: Final = (("params", "update"), ("update",), ("data", "update"), ())
"""The paths to the update in a record; programs that log only updates drop the message around it.
"""


def _message_in(record: Fields) -> Fields:
    """Return the JSON-RPC message that a record is or contains."""
    is_message = "method" in record or ("id" in record and not _ANSWERS.isdisjoint(record))
    return rpc_message_in(record) or (record if is_message else {})


def _update_in(record: Fields) -> Fields:
    """Return the session update that a record is or contains."""
    for value in (_message_in(record), record):
        for path in _UPDATE_PATHS:
            update = fields_at(value, *path)
            if isinstance(update.get("sessionUpdate"), str):
                return update
    return {}


def _session_of(record: Fields) -> str | None:
    message = _message_in(record) or record
    places = (message, *(fields_of(message.get(name)) for name in ("params", "result", "data")))
    return next((name for fields in places if (name := text_in(fields, "sessionId"))), None)


def _whole_records(
    records: Sequence[SessionRecord], _problems: list[Problem]
) -> list[SessionRecord]:
    """Return the messages and the updates of a session, in the order in which they began.

    - The chunks of a message become one update. A repetition of the prompt is left out.
    - The updates of a call become two: a ``tool_call`` with all its fields, at the first update,
      and a ``tool_result``, at the update that ends the call.
    """
    contents = ((record, _message_or_update(record.value)) for record in records)
    visible_records = [
        SessionRecord(value, record.location)
        for record, value in contents
        if value.get("sessionUpdate") not in _SILENT_KINDS
    ]
    calls = _Calls(visible_records)
    whole_records: list[SessionRecord] = []
    for message, group in groupby(visible_records, lambda record: _message_of_chunk(record.value)):
        if message is None:
            for record in group:
                whole_records += calls.whole_updates(record)
            continue
        chunks = list(group)
        text = "".join(_blocks_text(chunk.value.get("content")) for chunk in chunks)
        if not _repeats_prompt(message[0], text, whole_records):
            first_chunk = chunks[0]
            value = {**first_chunk.value, "content": text}
            whole_records.append(SessionRecord(value, first_chunk.location))
    return whole_records


def _message_or_update(record: Fields) -> Fields:
    """Return the update or else the message in a record, with the record's time and session."""
    value = _update_in(record) or _message_in(record)
    if not value:
        return record
    return {"sessionId": _session_of(record), **value, "timestamp": record_time(record)}


def _message_of_chunk(value: Fields) -> tuple[str, object] | None:
    """Return the kind of a chunk and the id of its message; None for any other value."""
    kind = as_text(value.get("sessionUpdate"))
    return (kind, value.get("messageId")) if kind in _CHUNK_KINDS else None


def _repeats_prompt(kind: str, text: str, records: Sequence[SessionRecord]) -> bool:
    """Return whether a chunk of the user repeats the prompt before it, as some agents write it."""
    if kind != "user_message_chunk" or not records:
        return False
    previous = records[-1].value
    is_prompt = previous.get("method") == "session/prompt"
    return is_prompt and _prompt_text(previous).split() == text.split()


def _prompt_text(message: Fields) -> str:
    return _blocks_text(fields_of(message.get("params")).get("prompt"))


def _blocks_text(content: object) -> str:
    blocks = content if isinstance(content, list) else [content]
    return "\n".join(filter(None, map(_block_text, blocks)))


def _block_text(block: object) -> str:
    """Return the text of a block; for a file, its address and its text."""
    fields = fields_of(block)
    if kind_of(block) not in ("resource", "resource_link"):
        return message_text(block)
    resource = fields_of(fields.get("resource")) or fields
    return "\n".join([f"[file {resource.get('uri')}]", *filter(None, [text_in(resource, "text")])])


class _Calls:
    """The calls of a session, put together from their updates."""

    def __init__(self, records: Iterable[SessionRecord]) -> None:
        self._fields_by_id: dict[str, dict[str, object]] = {}
        # Records are compared by identity, because several may be on one line.
        self._start_by_id: dict[str, SessionRecord] = {}
        """The first update of each call."""
        self._end_by_id: dict[str, SessionRecord] = {}
        """The update that has the result of each call."""
        self._ended: set[str] = set()
        """The ids of the calls with an update that ends them."""
        for record in records:
            if record.value.get("sessionUpdate") in _CALL_KINDS:
                self._add(record)

    def _add(self, record: SessionRecord) -> None:
        """Merge an update into its call."""
        update = record.value
        call_id = _call_id(update)
        fields = self._fields_by_id.setdefault(call_id, {})
        # Some agents write a null or empty value for a field that an update does not change.
        fields.update({name: value for name, value in update.items() if value not in _UNCHANGED})
        self._start_by_id.setdefault(call_id, record)
        ends = status_of_word(update.get("status")) is not SpanStatus.UNKNOWN
        # Without an update that ends the call, the last update with output has the result.
        if call_id not in self._ended and (ends or _output_of(update)):
            self._end_by_id[call_id] = record
        if ends:
            self._ended.add(call_id)

    def whole_updates(self, record: SessionRecord) -> Iterator[SessionRecord]:
        """Yield a call at its first update, a result at its end, and any other record itself."""
        update = record.value
        if update.get("sessionUpdate") not in _CALL_KINDS:
            yield record
            return
        call_id = _call_id(update)
        fields = {**self._fields_by_id[call_id], "timestamp": update.get("timestamp")}
        if self._start_by_id[call_id] is record:
            yield SessionRecord({**fields, "sessionUpdate": "tool_call"}, record.location)
        if self._end_by_id.get(call_id) is record:
            yield SessionRecord({**fields, "sessionUpdate": "tool_result"}, record.location)


def _call_id(update: Fields) -> str:
    return identifier_in(update, "toolCallId") or ""


class _AcpTranslator:
    """Makes the turns of messages and whole updates; sets the tokens of the session.

    The response to a prompt has the token counts of the session so far.
    """

    def __init__(self, session: SessionContext) -> None:
        self._session = session
        # Client and agent count their requests separately, so two requests may have the same id.
        self._methods_by_id: dict[str, list[str]] = {}

    def __call__(self, record: Fields) -> Turn | None:
        """Return the turn of a request, a response or an update, if it has content."""
        if "sessionUpdate" in record:
            return self._update_turn(record)
        method = as_text(record.get("method"))
        message_id = identifier_in(record, "id")
        if method is None:
            if message_id is None or _ANSWERS.isdisjoint(record):
                return unknown_record_turn(record)
            methods = self._methods_by_id.get(message_id)  # of the requests without a response
            return self._response_turn(record, methods.pop() if methods else "response")
        if message_id is not None:
            self._methods_by_id.setdefault(message_id, []).append(method)
        if method == "session/prompt":
            return record_turn(record, user_prompt_piece(_prompt_text(record)))
        if method in _SILENT_METHODS:
            return None
        return record_turn(record, log_piece(dump_text(record.get("params")), method))

    def _response_turn(self, record: Fields, method: str) -> Turn | None:
        """Return the log of an error, of an early end or of a result."""
        error = record.get("error")
        if error is not None:
            text = text_in(fields_of(error), "message") or dump_text(error)
            return record_turn(record, log_piece(text, method, failed=True))
        result = fields_of(record.get("result"))
        if method == "session/prompt":
            tokens = usage_tokens(result.get("usage"), "inputTokens", "outputTokens")
            self._session.tokens = tokens if tokens is not None else self._session.tokens
            reason = as_text(result.get("stopReason"))
            if reason in (None, _EXPECTED_STOP_REASON):
                return None
            return record_turn(record, log_piece(f"stop reason: {reason}", method))
        if method in _SILENT_METHODS or not result:
            return None
        return record_turn(record, log_piece(output_text(result), method))

    def _update_turn(self, update: Fields) -> Turn | None:
        """Return the turn of a whole update, if it has a text."""
        kind = as_text(update.get("sessionUpdate")) or ""
        if kind in _CHUNK_KINDS:
            text = content_text(update.get("content"))
            if not text.strip():
                return None
            if kind == "user_message_chunk":
                return record_turn(update, user_prompt_piece(text))
            thinks = kind == "agent_thought_chunk"
            span_kind = SpanKind.REASONING if thinks else SpanKind.MESSAGE
            return record_turn(update, THE_MODEL.piece(text, kind=span_kind))
        name = _tool_name(update)
        match kind:
            case "tool_call":
                call = {"id": _call_id(update), "arguments": _arguments(update)}
                return record_turn(update, call_piece(call, "", ASSISTANT, name=name))
            case "tool_result":
                status = status_of_word(update.get("status"))
                output = _output_of(update)
                call_id = _call_id(update)
                piece = result_piece(
                    {}, output, key_suffix="", name=name, call_id=call_id, status=status
                )
                return record_turn(update, piece)
            case "plan":
                entries = map(fields_of, items_of(update.get("entries")))
                lines = (f"[{entry.get('status')}] {entry.get('content')}" for entry in entries)
                return record_turn(update, log_piece("\n".join(lines), kind))
        return unknown_record_turn({**update, "type": kind})


def _tool_name(update: Fields) -> str:
    """Return the name of the tool, else the title or the kind of the call."""
    for vendor_fields in fields_of(update.get("_meta")).values():
        if name := name_in(fields_of(vendor_fields), "toolName", "name"):
            return name
    title = name_in(update, "title") or ""
    return title if _TOOL_NAME.fullmatch(title) else name_in(update, "kind", "title") or "tool"


def _arguments(update: Fields) -> object:
    """Return the input of a call and its further changes of files."""
    raw_input = update.get("rawInput")
    if raw_input is not None and not isinstance(raw_input, Mapping):
        return raw_input
    # Without an input, the title and the locations are shown.
    arguments = fields_of(raw_input) or {
        name: update[name] for name in ("title", "locations") if update.get(name)
    }
    changes = [
        item
        for item in map(fields_of, items_of(update.get("content")))
        if kind_of(item) == "diff" and item.get("newText") not in arguments.values()
    ]
    return {**arguments, "changes": changes} if changes else arguments


def _output_of(update: Fields) -> object:
    """Return the texts in the content of a call, else its raw output."""
    # Changes of files are left out, as they are part of the call.
    contents = (
        fields_of(item).get("content")
        for item in items_of(update.get("content"))
        if kind_of(item) == "content"
    )
    return "\n".join(filter(None, map(_block_text, contents))) or update.get("rawOutput")


ACP: Final = SessionFormat(
    name="acp-log",
    system=None,
    typical_bytes=(b"sessionUpdate",),
    recognises=lambda records: any(map(_update_in, records)),
    make_translator=_AcpTranslator,
    select_records=_whole_records,
    list_paths=("messages", "events", "log", "updates"),
    id_paths="",
    fact_paths={
        "id": "sessionId params.sessionId result.sessionId",
        "model": "_meta.modelId params.update._meta.modelId result.models.currentModelId",
        "version": "result.agentInfo.version",
    },
    session_of=_session_of,
)
