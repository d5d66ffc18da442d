"""OpenHands' runs: event streams of the old and the new format, and records of its benchmarks.

A file holds the events of one run, as a list or one a line, or records with the events under
``history``, such as ``output.jsonl``. The agent SDK may also write each event to its own file: then
the folder is one run.

Events of the old format have an ``action`` or an ``observation``. Events of the new format, which
the agent SDK writes, have a ``kind``.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from mast_tui.traces.index.document import StepList, StepSpans
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import (
    as_text,
    canonical_bytes,
    content_text,
    dump_text,
    identifier,
)
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import (
    FileReport,
    Problem,
    Role,
    SpanKind,
    SpanStatus,
    Trace,
    TraceIdentity,
    TraceMeta,
)
from mast_tui.traces.readers.base import FormatReader, identity_of
from mast_tui.traces.readers.chat.messages import MessageMapper, MessageToolCall
from mast_tui.traces.readers.chat.pieces import Piece, json_log_piece, log_piece
from mast_tui.traces.readers.chat.values import usage_tokens
from mast_tui.traces.readers.document_traces import (
    neighbour_json,
    records_by_line,
    records_of_list,
    report_of,
)
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    flag_in,
    items_of,
    mostly,
    name_set,
    one_line,
    texts_in,
    without,
)
from mast_tui.traces.readers.run_facts import (
    AnswerKeyDraft,
    facts_of_record,
    outcome_of_flag,
    task_of,
)
from mast_tui.traces.result_status import first_known_status, status_of_code, status_of_flag
from mast_tui.traces.times import unix_seconds

_DEFAULT_AGENT: Final = "agent"
_SOURCES: Final = frozenset({"agent", "user", "environment"})
_SILENT_KINDS: Final = name_set("""
    null change_agent_state agent_state_changed
    TokenEvent StreamingDeltaEvent LLMCompletionLogEvent ConversationStateUpdateEvent
""")
_LOGGED_KINDS: Final = name_set("""
    condensation condensation_request condense loop_detection_recovery loop_recovery recall
    summarize
""")
_LOG_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "Condensation": ("summary",),
    "CondensationRequest": ("summary",),
    "CondensationSummaryEvent": ("summary",),
    "ConversationErrorEvent": ("code", "detail"),
    "InterruptEvent": ("reason",),
    "PauseEvent": ("reason",),
}
"""The text fields of SDK events that become logs."""

_RESULT_KINDS: Final = name_set("ObservationEvent AgentErrorEvent UserRejectObservation")
_SDK_KINDS: Final = frozenset({*_LOG_FIELDS, *_RESULT_KINDS}) | name_set("""
    ACPToolCallEvent ActionEvent ConversationStateUpdateEvent LLMCompletionLogEvent MessageEvent
    StreamingDeltaEvent SystemPromptEvent TokenEvent
""")
_INTERNAL_ARGUMENTS: Final = name_set("""
    thought confirmation_state is_confirmed hidden security_risk keep_prompt
""")


@dataclass(frozen=True)
class OpenHandsEvent:
    """A JSON value in a list of events; the keys of its spans begin with its id, else ``key``."""

    key: str
    location: str
    value: object

    @cached_property
    def fields(self) -> Fields:
        """The fields of the event; empty for a bare value."""
        return fields_of(self.value)

    @cached_property
    def id(self) -> str:
        """The id of the event, else its key."""
        return identifier(self.fields.get("id")) or self.key

    @cached_property
    def call_id(self) -> str | None:
        """The id of the tool call that the event makes, reports or answers, if any."""
        metadata = fields_of(self.fields.get("tool_call_metadata"))
        return identifier(self.fields.get("tool_call_id") or metadata.get("tool_call_id"))

    @cached_property
    def response(self) -> Fields:
        """The model's response that caused an action; empty in the SDK's format."""
        return fields_at(self.fields.get("tool_call_metadata"), "model_response")

    @cached_property
    def response_id(self) -> str | None:
        """The id of the model's response, or a made-up id; None without a response."""
        if not self.response:
            return None
        event_id = identifier(self.fields.get("id"))
        return identifier(self.response.get("id")) or f"of event {event_id}"


def is_old_event(value: object) -> bool:
    """Return whether a JSON value is an event of OpenHands' old format: action or observation."""
    fields = fields_of(value)
    source = fields.get("source")
    is_action = isinstance(fields.get("action"), str)
    is_observation = isinstance(fields.get("observation"), str)
    if is_action == is_observation or source not in (None, *_SOURCES):
        return False
    if is_action:
        return isinstance(fields.get("args"), Mapping) or source is not None
    return "content" in fields or isinstance(fields.get("extras"), Mapping)


def is_sdk_event(value: object) -> bool:
    """Return whether a JSON value is an event of OpenHands' SDK, by its kind or its fields."""
    fields = fields_of(value)
    kind = as_text(fields.get("kind")) or ""
    is_similar = kind.endswith("Event") and "id" in fields
    return kind in _SDK_KINDS or (is_similar and as_text(fields.get("source")) in _SOURCES)


class EventMapper:
    """Adds the spans of a run's events, in order.

    Attributes:
        steps: The steps so far, which become spans.
        messages: Adds the spans, and has the problems of single events.
        model: The first model in an update of the run's state.
    """

    def __init__(self, agent: str | None) -> None:
        self.steps = StepList()
        self.messages = MessageMapper(self.steps)
        self.model: str | None = None
        self._agent_stack = [agent or _DEFAULT_AGENT]
        """The agents that have delegated to one another; the last one acts."""
        self._call_by_event: dict[str | None, MessageToolCall] = {}
        self._is_sdk = False
        self._previous_event_id: str | None = None
        self._last_prompt = ""
        """The last message of the user."""
        self._responses_with_action: set[str | None] = set()
        self._thought_ids: set[str | None] = set()
        """The ids of the calls of the tool ``think``, and of their events."""
        self._last_action_by_response: dict[str | None, OpenHandsEvent] = {}
        self._reports_by_call: dict[str, list[OpenHandsEvent]] = {}

    def add_all(self, events: Iterable[OpenHandsEvent]) -> None:
        """Add the spans of all events of the run.

        A model's response may have several actions. Its last span has the tokens.
        """
        events = tuple(events)
        sdk_event_count = sum(is_sdk_event(event.value) for event in events)
        self._is_sdk = 2 * sdk_event_count >= len(events)  # at least half of the events
        self._index_events(events)
        for event in events:
            for piece in self._pieces_of_event(event):
                self._add_piece(event, piece)
            is_last_action = self._last_action_by_response.get(event.response_id) is event
            if event.response and is_last_action:
                usage = event.response.get("usage")
                self.messages.count_tokens(
                    usage_tokens(usage, "prompt_tokens", "completion_tokens")
                )
            self._previous_event_id = event.id

    def _index_events(self, events: Iterable[OpenHandsEvent]) -> None:
        """Record the last action of each response, and the reports on an external agent's calls."""
        for event in events:
            if isinstance(event.fields.get("action"), str):
                self._last_action_by_response[event.response_id] = event
            if event.fields.get("kind") == "ACPToolCallEvent":
                self._reports_by_call.setdefault(event.call_id or event.id, []).append(event)

    def _add_piece(self, event: OpenHandsEvent, piece: Piece) -> None:
        """Add the span of a piece; a result sets the end of its call.

        The id of the event is the default id of a call.
        """
        time = unix_seconds(event.fields.get("timestamp"))
        key = event.id
        call: MessageToolCall | None = None
        if piece.kind is SpanKind.TOOL_CALL:
            piece = replace(piece, call_id=piece.call_id or key)
        elif piece.kind is SpanKind.TOOL_RESULT:
            key = piece.call_id or key
            # The event determines the call, not the id in the piece.
            piece = replace(piece, call_id=None, key_suffix=":result")
            call = self._answered_call(event)
        if call is not None:
            self.steps.amend(call.key, end=time)
        self.messages.add_piece(piece, key, location=event.location, start=time, call=call)
        if piece.call_id is not None:
            self._call_by_event[event.id] = self.messages.calls[piece.call_id]

    def _answered_call(self, event: OpenHandsEvent) -> MessageToolCall | None:
        """Return the call that an event answers.

        The event has the id of the call, or the id of the event that made the call.
        """
        fields = event.fields
        calls = self.messages.calls
        if fields.get("kind") == "ACPToolCallEvent":
            return calls.get(event.call_id or event.id)
        call_event_id = identifier(fields.get("cause")) or identifier(fields.get("action_id"))
        has_id = any((call_event_id, event.call_id, identifier(fields.get("id"))))
        if not self._is_sdk and not has_id:
            # The oldest histories have no ids, but an observation directly follows its action.
            call_event_id = self._previous_event_id
        return calls.get(event.call_id or "") or self._call_by_event.get(call_event_id)

    def _pieces_of_event(self, event: OpenHandsEvent) -> Iterator[Piece]:
        """Return the pieces of an event; a value of another kind becomes a log."""
        fields = event.fields
        kind = fields.get("kind")
        action = fields.get("action")
        observation = fields.get("observation")
        if self._is_sdk:
            if fields:
                return self._sdk_event_pieces(event, kind if isinstance(kind, str) else "")
        elif isinstance(action, str):
            return self._old_action_pieces(event, one_line(action) or "")
        elif isinstance(observation, str):
            return self._old_observation_pieces(event, one_line(observation) or "")
        problem = None if fields else "not an event but a bare value"
        return iter((replace(json_log_piece(event.value), problem=problem),))

    def _old_action_pieces(self, event: OpenHandsEvent, action: str) -> Iterator[Piece]:
        """Yield the pieces of an action of the old format."""
        fields = event.fields
        arguments = fields_of(fields.get("args"))
        is_by_user = fields.get("source") == "user"
        role = Role.USER if is_by_user else Role.AGENT
        agent = "user" if is_by_user else self._agent_stack[-1]

        match action:
            case action if action in _SILENT_KINDS:
                return
            case action if action in _LOGGED_KINDS:
                query = content_text(arguments.get("query"))
                # The framework adds a ``recall`` of the user's message.
                if action == "recall" and query.strip() == self._last_prompt:
                    return
                text = content_text(arguments.get("summary")) or query or _arguments_text(arguments)
                yield log_piece(text, action)
            case "message":
                text = _first_nonblank_text(
                    arguments.get("content"), fields.get("content"), fields.get("message")
                )
                images = ["[image]"] * len(items_of(arguments.get("image_urls")))
                if images:
                    text = "\n".join((text, *images)).lstrip("\n")
                if is_by_user:
                    self._last_prompt = text.strip()
                yield Piece(SpanKind.MESSAGE, role, agent, text)
            case "system":
                if self._agent_stack == [_DEFAULT_AGENT]:  # its name is still unknown
                    self._agent_stack = [one_line(arguments.get("agent_class")) or _DEFAULT_AGENT]
                text = content_text(arguments.get("content")) or content_text(fields.get("message"))
                yield Piece(SpanKind.MESSAGE, Role.SYSTEM, "system", text)
            case _:
                yield from self._old_call_pieces(event, action, role, agent)

    def _old_call_pieces(
        self, event: OpenHandsEvent, action: str, role: Role, agent: str
    ) -> Iterator[Piece]:
        """Yield the model's reasoning and message before an action, then its call or thought."""
        fields = event.fields
        arguments = fields_of(fields.get("args"))
        choices = items_of(event.response.get("choices"))
        message = fields_at(choices[0], "message") if choices else {}
        reasoning = as_text(message.get("reasoning_content"))
        if reasoning and event.response_id not in self._responses_with_action:
            yield Piece(SpanKind.REASONING, role, agent, reasoning, "/reasoning")
        self._responses_with_action.add(event.response_id)

        argument_thought = arguments.get("thought")
        is_argument = argument_thought is not None
        thought = content_text(argument_thought if is_argument else fields.get("thought"))
        if action == "think":
            thought = thought or content_text(arguments.get("content"))
            yield Piece(SpanKind.REASONING, role, agent, thought)
            return
        if thought.strip():
            yield Piece(SpanKind.MESSAGE, role, agent, thought, "/thought")

        name = one_line(arguments.get("name")) if action in ("mcp", "call_tool_mcp") else None
        metadata = fields_of(fields.get("tool_call_metadata"))
        name = name or one_line(metadata.get("function_name")) or action
        text = _arguments_text(arguments)
        if not text and not thought.strip():
            text = content_text(fields.get("message"))
        yield Piece(SpanKind.TOOL_CALL, role, agent, text, name=name, call_id=event.call_id)
        # The named agent acts until the result of this call.
        if action == "delegate":
            self._agent_stack.append(one_line(arguments.get("agent")) or "delegate")

    def _old_observation_pieces(self, event: OpenHandsEvent, kind: str) -> Iterator[Piece]:
        """Yield the result or the log of an observation of the old format.

        An error without a call is a log. After the result of ``delegate``, the agent that
        called it acts again.
        """
        fields = event.fields
        extras = fields_of(fields.get("extras"))
        text = content_text(fields.get("content"))
        if kind == "agent_state_changed" and extras.get("agent_state") == "error":
            if reason := as_text(extras.get("reason")):
                yield log_piece(reason, kind, failed=True)
        elif kind in _LOGGED_KINDS:
            yield log_piece("\n".join(filter(None, (text, _arguments_text(extras)))), kind)
        elif kind in ("error", "user_rejected") and self._answered_call(event) is None:
            yield log_piece(text, kind, failed=True)
        elif kind not in _SILENT_KINDS and kind != "think":  # the action shows the thought
            if kind == "delegate" and len(self._agent_stack) > 1:
                self._agent_stack.pop()
            if not text.strip() and (outputs := extras.get("outputs")):
                text = dump_text(outputs)
            yield _result_piece(event, text, _old_result_status(kind, fields, extras), kind)

    def _sdk_event_pieces(self, event: OpenHandsEvent, kind: str) -> Iterator[Piece]:
        """Yield the pieces of an event of the SDK, and record the model in it."""
        fields = event.fields
        llm = fields_at(fields.get("value"), "agent", "llm")
        self.model = self.model or as_text(llm.get("model"))
        match kind:
            case "ActionEvent":
                yield from self._sdk_action_pieces(event)
            case kind if kind in _RESULT_KINDS:
                yield from self._sdk_result_pieces(event, kind)
            case "MessageEvent":
                yield from self._sdk_message_pieces(event)
            case "ACPToolCallEvent":
                yield from self._acp_call_pieces(event)
            case "SystemPromptEvent":
                texts = (
                    content_text(fields.get(name)) for name in ("system_prompt", "dynamic_context")
                )
                text = "\n\n".join(filter(None, texts))
                yield Piece(SpanKind.MESSAGE, Role.SYSTEM, "system", text)
            case kind if kind in _LOG_FIELDS:
                text = texts_in(fields, *_LOG_FIELDS[kind], between=": ")
                if not text:  # a pause has no content
                    is_pause = kind in ("PauseEvent", "InterruptEvent")
                    text = kind if is_pause else dump_text(event.value)
                is_error = kind == "ConversationErrorEvent"
                yield log_piece(text, "error" if is_error else kind, failed=is_error)
            case kind if kind not in _SILENT_KINDS:
                yield log_piece(dump_text(event.value), one_line(kind))

    def _sdk_message_pieces(self, event: OpenHandsEvent) -> Iterator[Piece]:
        """Yield the reasoning and the text of a message, and the text that OpenHands added."""
        fields = event.fields
        message = fields_of(fields.get("llm_message"))
        role = Role.USER
        agent = "user"
        if fields.get("source") == "agent":
            role = Role.AGENT
            agent = one_line(fields.get("sender")) or self._agent_stack[-1]
        if fields.get("source") == "environment" or message.get("role") == "system":
            role = Role.SYSTEM
            agent = "system"
        if reasoning := _reasoning_text(message):
            yield Piece(SpanKind.REASONING, role, agent, reasoning, "/reasoning")
        yield Piece(SpanKind.MESSAGE, role, agent, content_text(message.get("content")))
        if added_text := content_text(fields.get("extended_content")):
            name = "extended_content"
            yield Piece(SpanKind.LOG, Role.SYSTEM, "system", added_text, f"/{name}", name=name)

    def _sdk_action_pieces(self, event: OpenHandsEvent) -> Iterator[Piece]:
        """Yield the reasoning and the thought before an action, then its call.

        A call of the tool ``think`` is shown as reasoning, and its result is skipped.
        """
        fields = event.fields
        agent = self._agent_stack[-1]
        if reasoning := _reasoning_text(fields):
            yield Piece(SpanKind.REASONING, Role.AGENT, agent, reasoning, "/reasoning")
        thought = content_text(fields.get("thought"))
        if thought.strip():
            yield Piece(SpanKind.MESSAGE, Role.AGENT, agent, thought, "/thought")

        call = fields_of(fields.get("tool_call"))
        action = fields_of(fields.get("action"))
        function = fields_of(call.get("function")) or call
        name = one_line(fields.get("tool_name")) or one_line(function.get("name"))
        call_id = event.call_id or identifier(call.get("id"))
        tool_thought = content_text(action.get("thought")) if name == "think" else ""
        if tool_thought:
            yield Piece(SpanKind.REASONING, Role.AGENT, agent, tool_thought)
            self._thought_ids |= {call_id, event.id} - {None}
            return
        arguments = function.get("arguments")
        has_arguments = arguments is not None
        text = dump_text(arguments) if has_arguments else _text_without(action, ("kind",))
        yield Piece(SpanKind.TOOL_CALL, Role.AGENT, agent, text, name=name, call_id=call_id)

    def _sdk_result_pieces(self, event: OpenHandsEvent, kind: str) -> Iterator[Piece]:
        """Yield the result of a call, unless its tool is ``think``: that call has all content."""
        fields = event.fields
        answered_ids = {event.call_id, identifier(fields.get("action_id"))}
        if answered_ids & self._thought_ids:
            return
        name = one_line(fields.get("tool_name"))
        observation = fields.get("observation")
        if kind == "ObservationEvent":
            yield _result_piece(
                event,
                _observation_text(observation),
                _sdk_result_status(fields_of(observation)),
                name,
            )
        else:
            text = content_text(fields.get("error")) or content_text(fields.get("rejection_reason"))
            yield _result_piece(event, text, SpanStatus.ERROR, name)

    def _acp_call_pieces(self, event: OpenHandsEvent) -> Iterator[Piece]:
        """Yield the call of an external agent's tool at its first report, the result at its last.

        The arguments are those of the last report.
        """
        call_id = event.call_id or event.id
        reports = self._reports_by_call[call_id]
        last_fields = reports[-1].fields
        title = one_line(last_fields.get("title"))
        if event is reports[0]:
            text = dump_text(last_fields.get("raw_input")) or title or ""
            name = title or one_line(last_fields.get("tool_kind"))
            agent = self._agent_stack[-1]
            yield Piece(SpanKind.TOOL_CALL, Role.AGENT, agent, text, name=name, call_id=call_id)
        output = last_fields.get("raw_output") or last_fields.get("content")
        has_ended = last_fields.get("status") in ("completed", "failed")
        if event is reports[-1] and (has_ended or output):
            failed = last_fields.get("is_error") is True or last_fields.get("status") == "failed"
            status = SpanStatus.ERROR if failed else SpanStatus.OK
            piece = _result_piece(event, content_text(output), status, title)
            yield replace(piece, call_id=call_id)


def _result_piece(event: OpenHandsEvent, text: str, status: SpanStatus, name: str | None) -> Piece:
    """Return the result piece of an event."""
    kind = SpanKind.TOOL_RESULT
    return Piece(
        kind, Role.TOOL, "environment", text, name=name, call_id=event.call_id, status=status
    )


def _first_nonblank_text(*contents: object) -> str:
    """Return the first nonblank text of some contents."""
    return next((text for text in map(content_text, contents) if text.strip()), "")


def _text_without(fields: Fields, excluded_fields: Container[str]) -> str:
    """Return the fields that are not excluded as JSON, or an empty text."""
    other_fields = without(fields, excluded_fields)
    return dump_text(other_fields) if other_fields else ""


def _arguments_text(fields: Fields) -> str:
    """Return the arguments of an action as JSON, without empty ones and those of OpenHands."""
    empty_names = [name for name, value in fields.items() if value in (None, "", [], {})]
    return _text_without(fields, (*empty_names, *_INTERNAL_ARGUMENTS))


def _reasoning_text(fields: Fields) -> str:
    """Return the readable reasoning of a model in an SDK event."""
    reasoning_item = fields_of(fields.get("responses_reasoning_item"))
    block_lists = (
        fields.get("thinking_blocks"),
        reasoning_item.get("summary"),
        reasoning_item.get("content"),
    )
    texts = (content_text(blocks) for blocks in block_lists if isinstance(blocks, list))
    return as_text(fields.get("reasoning_content")) or next(filter(None, texts), "")


def _observation_text(observation: object) -> str:
    """Return the text in a known field of an SDK observation, else all its fields as JSON."""
    fields = fields_of(observation)
    if not isinstance(observation, Mapping):
        return content_text(observation)
    outputs = (fields.get(name) for name in ("content", "output", "text", "message", "error"))
    text = _first_nonblank_text(*(output for output in outputs if isinstance(output, str | list)))
    if text or "content" in fields or "output" in fields:  # these two may be empty
        return text
    return _text_without(fields, ("kind",))


def _sdk_result_status(observation: Fields) -> SpanStatus:
    """Return the status in the error, the exit code or the flag of an SDK observation."""
    flag = observation.get("is_error")
    if flag is True or as_text(observation.get("error")):
        return SpanStatus.ERROR
    codes = (observation.get("exit_code"), fields_at(observation, "metadata").get("exit_code"))
    if any(code is not None for code in codes):
        return _status_of_codes(codes)
    return SpanStatus.OK if flag is False else SpanStatus.UNKNOWN


def _old_result_status(kind: str, fields: Fields, extras: Fields) -> SpanStatus:
    """Return the status in the flag, exit code or error of an old observation."""
    success = fields.get("success")
    error = extras.get("error")
    if kind in ("error", "user_rejected") or success is False:
        return SpanStatus.ERROR
    codes = (fields_at(extras, "metadata").get("exit_code"), extras.get("exit_code"))
    has_failed = error is True or as_text(error) is not None
    went_well = True if success is True or error is False else None
    flag_status = status_of_flag(False if has_failed else went_well)
    return first_known_status(_status_of_codes(codes), flag_status)


def _status_of_codes(codes: Sequence[object]) -> SpanStatus:
    """Return the status of the first exit code; a running command has a negative code."""
    integer_codes = (code for code in codes if isinstance(code, int) and not isinstance(code, bool))
    code = next(integer_codes, -1)
    return SpanStatus.UNKNOWN if code < 0 else status_of_code(code)


_FIELD_BYTES: Final = (b'"observation"', b'"action"', b'"kind"', b'"history"', b'"instance_id"')
_CHECKED_FILE_COUNT: Final = 3
_MAX_EVENT_BYTES: Final = 64 << 20
EVENT_FILE: Final = re.compile(r"(?:event-)?(?P<number>\d{1,12})(?:-[^/]*)?\.json")
_UUID: Final = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class OpenHandsRun:
    """The events of one run and the record around them."""

    events: Sequence[OpenHandsEvent]
    record: Fields


def _recognises(source: Source) -> bool:
    """Return whether most elements of the file are events, or records with events."""
    head = as_utf8(source.head)
    lines = source.json_lines
    if head.lstrip()[:1] not in (b"{", b"["):
        return False
    if len(lines) > 1:
        return mostly(_is_listed_event, lines) or mostly(_is_record_with_run, lines)
    if not lines and not any(field_bytes in head for field_bytes in _FIELD_BYTES):
        return False
    document = source.json
    records = lines if document is None else items_of(document)
    return _run_in(document) is not None or mostly(_is_record_with_run, records)


def _read(source: Source) -> FileReport:
    """Return one trace for each run; a record without a run becomes a problem."""
    problems: list[Problem] = []
    # A file with one record on each line is not one document.
    document = source.json if len(source.json_lines) < 2 else None
    if document is None:
        records = list(records_by_line(source, problems))
        events = [
            OpenHandsEvent(record.location, record.location, record.value) for record in records
        ]
        are_events = mostly(_is_listed_event, (record.value for record in records))
        run = OpenHandsRun(events, {}) if are_events else None
    else:
        records = list(records_of_list(items_of(document)))
        run = _run_in(document)
    if run is not None:  # the whole file
        identity = identity_of(READER, source.path, source.data)
        return report_of(READER, source, [_trace_of_run(run, source.path, identity)], problems)

    traces = []
    for record in records:
        run = _run_in(record.value, record.prefix)
        if run is None:
            problems.append(Problem(record.location, "no run of OpenHands, left out"))
            continue
        content = canonical_bytes(run.record)
        identity = identity_of(READER, source.path, content, record=record.number)
        traces.append(_trace_of_run(run, source.path, identity, record.number))
    return report_of(READER, source, traces, problems)


READER: Final = FormatReader("openhands", _recognises, _read)
"""Reads OpenHands' files; keys are the model's call ids, else the events' ids."""


def read_event_folder(folder: Path) -> FileReport | None:
    """Return the run whose events are files of a folder; None if it has no such files.

    The files are ``event-00001-<id>.json`` or ``1.json``. The run's folder is this one, or the one
    around it if this one is ``events``. The run's id is in ``base_state.json``, or is the folder's
    name if that is a UUID.
    """
    problems: list[Problem] = []
    events = []
    contents = []
    for path in event_files(folder):
        data, value = neighbour_json(path, path.name, problems, _MAX_EVENT_BYTES)
        contents.append(data)
        if value is not None:
            events.append(OpenHandsEvent(path.name, path.name, value))
    if not contents:
        return None
    run_folder = folder.parent if folder.name == "events" else folder
    state_path = run_folder / "base_state.json"
    _, state_value = neighbour_json(state_path, state_path.name, problems, _MAX_EVENT_BYTES)
    state = fields_of(state_value)
    folder_id = run_folder.name if _UUID.fullmatch(run_folder.name) else None
    native = as_text(state.get("id")) or folder_id
    content = b"\n".join(contents)
    identity = identity_of(READER, Path(run_folder.name), content, native=native)
    trace = _trace_of_run(OpenHandsRun(events, state), folder, identity)
    return FileReport(folder, format=READER.name, traces=(trace,), problems=tuple(problems))


def event_files(folder: Path) -> list[Path]:
    """Return the files of a folder that have one event each, in the order of their numbers.

    The list is empty if the first files have no event, or if the folder cannot be read.
    """
    numbered_files = []
    try:
        for path in folder.iterdir():
            if (match := EVENT_FILE.fullmatch(path.name)) and path.is_file():
                numbered_files.append((int(match["number"]), path.name, path))
    except OSError:
        return []
    files = [path for _number, _name, path in sorted(numbered_files)]
    for path in files[:_CHECKED_FILE_COUNT]:
        _, value = neighbour_json(path, path.name, [], _MAX_EVENT_BYTES)
        if _is_event(value):
            return files
    return []


def _is_event(value: object) -> bool:
    return is_old_event(value) or is_sdk_event(value)


def _is_listed_event(value: object) -> bool:
    """Return whether an element of a list is an event."""
    # The other fields of an old event are common ones.
    is_identified = {"id", "source"} <= fields_of(value).keys()
    return is_sdk_event(value) or (is_identified and is_old_event(value))


def _is_record_with_run(value: object) -> bool:
    """Return whether a value is a record with events."""
    return not isinstance(value, list) and _run_in(value) is not None


def _run_in(value: object, prefix: str = "") -> OpenHandsRun | None:
    """Return the run in a list of events, or in a record with such a list."""
    if mostly(_is_listed_event, items_of(value)):
        return OpenHandsRun(_located_events(items_of(value), "", prefix), {})
    record = fields_of(value)
    for list_field in ("history", "trajectory", "events"):
        values = items_of(record.get(list_field))
        # An element of an old history is a pair of an action and its observation.
        if mostly(lambda value: all(map(_is_event, _pair_members(value))), values):
            return OpenHandsRun(_located_events(values, f"/{list_field}", prefix), record)
    return None


def _pair_members(value: object) -> Sequence[object]:
    """Return the action and the observation in a pair of an old history, else the value alone."""
    return value if isinstance(value, list) and len(value) == 2 else (value,)


def _located_events(values: Sequence[object], pointer: str, prefix: str) -> list[OpenHandsEvent]:
    """Return the values as events under their JSON pointers; a pair becomes two events."""
    events = []
    for number, value in enumerate(values):
        parts = _pair_members(value)
        for index, part in enumerate(parts):
            key = f"{pointer}/{number}" + (f"/{index}" if len(parts) > 1 else "")
            events.append(OpenHandsEvent(key, prefix + key, part))
    return events


def _trace_of_run(
    run: OpenHandsRun, path: Path, identity: TraceIdentity, number: int | None = None
) -> Trace:
    """Return the trace of a run; ``number`` is the number of its record in the file, if any."""
    mapper = EventMapper(one_line(fields_at(run.record, "metadata").get("agent_class")))
    mapper.add_all(run.events)
    if error := as_text(run.record.get("error")):
        mapper.steps.log("/error", error, name="error", status=SpanStatus.ERROR)
    if instance := identifier(run.record.get("instance_id")):
        # Runs of several models have one instance (task), so the id has the content's hash too.
        identity = identity._replace(trace_id=f"{instance}-{identity.content_hash[:8]}")
    return Trace(
        identity,
        path,
        StepSpans(mapper.steps.steps),
        record=number,
        meta=_meta_of_run(run.record, mapper),
        problems=mapper.messages.problems,
    )


def _meta_of_run(record: Fields, mapper: EventMapper) -> TraceMeta:
    """Return the facts of a run; the benchmark's verdict is also part of the answer key."""
    steps = mapper.steps.steps
    facts = facts_of_record(record, steps)
    metadata = fields_of(record.get("metadata"))
    instance = fields_of(record.get("instance"))
    test_result = fields_of(record.get("test_result"))
    llms = (metadata.get("llm_config"), metadata.get("llm"), fields_at(record, "agent").get("llm"))
    models = (as_text(fields_of(llm).get("model")) for llm in llms)
    result_records = (
        record,
        fields_at(record, "report"),
        fields_at(test_result, "report"),
        test_result,
    )
    flags = (flag_in(fields, "resolved") for fields in result_records)
    resolved = next((flag for flag in flags if flag is not None), None)

    answers = AnswerKeyDraft()
    answers.add_value("git_patch", test_result.get("git_patch"), "patch")
    other_results = without(test_result, ("git_patch",))
    answers.add_fields({**record, "test_result": other_results}, {"report": "tests"})
    answers.add_fields(
        instance,
        {
            "patch": "patch",
            "test_patch": "patch",
            "FAIL_TO_PASS": "tests",
            "PASS_TO_PASS": "tests",
        },
    )
    return facts._replace(
        task=task_of(instance.get("problem_statement"), record.get("instruction"), steps=steps),
        system="OpenHands",
        model=next(filter(None, models), None) or mapper.model or facts.model,
        benchmark=facts.benchmark or as_text(metadata.get("dataset")),
        outcome=facts.outcome if resolved is None else outcome_of_flag(resolved),
        answer_key=answers.key(),
    )
