"""Spans of the events of an Inspect sample, with results at their times of arrival.

The events of scorers reveal the ground truth, so they make no spans. Their texts go to the answer
key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from typing import Final

from mast_tui.traces.io.json_values import as_count, as_number, as_text
from mast_tui.traces.model import SpanStatus
from mast_tui.traces.readers.chat.pieces import Piece, log_piece
from mast_tui.traces.readers.chat.values import usage_tokens
from mast_tui.traces.readers.inspect.messages import (
    Attachments,
    History,
    MessagePool,
    MessageSpans,
    SpanContext,
    json_text,
)
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    items_of,
    located_items,
    name_set,
    short_name,
    without,
)
from mast_tui.traces.times import unix_seconds

_MAX_DEPTH: Final = 30
_COMPARED_RESULTS: Final = 8
_MAX_BLANKS: Final = 64
_GRADING_CHARS: Final = 20_000
_INPUT_COUNT_FIELDS: Final = "input_tokens input_tokens_cache_read input_tokens_cache_write"


@dataclass(frozen=True, slots=True)
class Scope:
    """The agent, the parent span and the message history of nested events."""

    history: History = field(default_factory=History)
    agent: str | None = None
    parent: str | None = None
    is_grading: bool = False
    """Whether the events are a scorer's."""
    agent_key: str | None = None
    """The key of the span "agent … begins", which gets the end time of the scope."""


@dataclass(slots=True)
class _PendingResult:
    """A result with the time of its arrival, which follows the events before that time."""

    text: str
    add_spans: Callable[[], object]
    call_id: str | None = None
    is_added: bool = False


class EventWalk:
    """The reader of a sample's events, which adds their spans to ``spans``."""

    def __init__(self, sample: Fields, spans: MessageSpans) -> None:
        self.spans = spans
        self.pool = MessagePool(sample, spans)
        self.root = Scope()
        self.grading_texts: list[str] = []
        """The texts of the models that scorers called."""
        self.score_events: list[tuple[str, Fields]] = []
        """The score events, each with the key of its span."""
        self.error_texts: set[str] = set()
        """The texts of the errors that have spans."""
        self.limit_count = 0
        """The number of limits that stopped the run."""
        self._attachments = spans.attachments
        self._scope_by_span_id: dict[str, Scope] = {}
        self._call_key_by_agent_span: dict[str, str] = {}
        """The keys of the tool calls that agents carry out, by the ids of the agents' spans."""
        self._pending: list[tuple[float, int, _PendingResult]] = []
        """A heap of the results to add, by their time and the order in which they were queued."""
        self._result_by_call_id: dict[str, _PendingResult] = {}
        self._latest_result_by_tool: dict[str, _PendingResult] = {}
        self._subtask_keys: dict[str, str] = {}
        """The keys of the spans with which subtasks begin, by their names."""
        self._skipped_call_ids: set[str] = set()
        """The ids of the calls that messages have shown, so that their tool events add nothing."""
        self._queued_count = 0
        self._grading_chars_left = _GRADING_CHARS

    def walk(self, events: Sequence[object], *, skip_known_calls: bool = False) -> None:
        """Add the spans of all events.

        Args:
            events: The events of the sample.
            skip_known_calls: Whether to skip the tool events of calls that already have spans.
        """
        if skip_known_calls:
            self._skipped_call_ids = set(self.spans.calls)
        self._walk_list(events, "/events", self.root, depth=0)
        self._add_results_until(time=None)  # all that are left

    def _walk_list(self, events: Sequence[object], pointer: str, base: Scope, depth: int) -> None:
        """Add the spans of a list of events, which may open and close scopes within ``base``."""
        open_scopes = [base]
        for event_pointer, event in located_items(events, pointer):
            if not isinstance(event, Mapping):
                self.spans.log(json_text(event), event_pointer, SpanContext(parent=base.parent))
                self.spans.add_problem(event_pointer, "not an event but a bare value")
                continue
            if (time := unix_seconds(event.get("timestamp"))) is not None:
                self._add_results_until(time)
            span_id = event.get("span_id")
            scope = self._scope_by_span_id.get(span_id) if isinstance(span_id, str) else None
            self._add_event(event, event_pointer, scope or open_scopes[-1], open_scopes, depth)

    def _add_event(
        self, event: Fields, pointer: str, scope: Scope, open_scopes: list[Scope], depth: int
    ) -> None:
        """Add the spans of an event, or open or close the scope that the event begins or ends.

        Args:
            scope: The scope of the event's ``span_id``, else the innermost open scope.
            open_scopes: The open scopes in this list of events, the innermost last. The ``step``
                events of older logs change it.
            depth: The number of events around the list.
        """
        kind = event.get("event")
        match kind:
            case "span_begin":
                outer_scope = self._scope_by_span_id.get(
                    as_text(event.get("parent_id")) or "", open_scopes[-1]
                )
                span_id = as_text(event.get("id")) or as_text(event.get("span_id"))
                inner_scope = self._open_scope(event, pointer, outer_scope, span_id)
                if span_id is not None:
                    self._scope_by_span_id[span_id] = inner_scope
            case "span_end":
                span_id = as_text(event.get("id")) or as_text(event.get("span_id"))
                self._close_scope(self._scope_by_span_id.get(span_id or ""), event)
            case "step":
                if event.get("action") == "begin":
                    open_scopes.append(
                        self._open_scope(event, pointer, open_scopes[-1], span_id=None)
                    )
                elif len(open_scopes) > 1:
                    self._close_scope(open_scopes.pop(), event)
            case "model":
                self._add_model_call(event, pointer, scope)
            case kind if scope.is_grading and kind not in ("error", "sample_limit", "score"):
                self._add_grading_text(event)
            case "tool":
                self._add_tool_call(event, pointer, scope, depth)
            case "subtask":
                self._add_subtask(event, pointer, scope, depth)
            case "input":
                self._add_input(event, pointer, scope)
            case kind if not (isinstance(kind, str) and kind in _SILENT_EVENTS):
                self._add_log_event(event, pointer, scope)

    def _open_scope(
        self, event: Fields, pointer: str, outer_scope: Scope, span_id: str | None
    ) -> Scope:
        """Return the scope that an event begins; add a log span if an agent begins."""
        begun_type = event.get("type")
        name = short_name(event.get("name"))
        if begun_type in ("scorer", "scorers"):
            return Scope(History(), name or outer_scope.agent, outer_scope.parent, is_grading=True)
        if outer_scope.is_grading:
            return outer_scope
        if begun_type == "agent":
            parent = self._call_key_by_agent_span.get(span_id or "") or outer_scope.parent
            start = unix_seconds(event.get("timestamp"))
            context = SpanContext(parent=parent, start=start)
            text = f"agent {name} begins" if name else "an agent begins"
            key = self.spans.log(text, pointer, context, as_text(event.get("uuid")) or span_id)
            return Scope(History(), name or "agent", key, agent_key=key)
        if begun_type not in ("tool", "subtask"):
            return outer_scope
        is_tool = begun_type == "tool"
        call_key = self._pending_call_key(name) if is_tool else self._subtask_keys.get(name)
        return replace(outer_scope, history=History(), parent=call_key or outer_scope.parent)

    def _close_scope(self, scope: Scope | None, event: Fields) -> None:
        """Set the end time of the log span with which a scope's agent began."""
        end = unix_seconds(event.get("timestamp"))
        if scope is not None and scope.agent_key is not None and end is not None:
            self.spans.steps.amend(scope.agent_key, end=end)

    def _pending_call_key(self, name: str) -> str | None:
        """Return the key of a tool's latest call, unless the result has a span already."""
        pending_result = self._latest_result_by_tool.get(name)
        if pending_result is None or pending_result.is_added:
            return None
        call = self.spans.calls.get(pending_result.call_id or "")
        return None if call is None else call.key

    def _add_model_call(self, event: Fields, pointer: str, scope: Scope) -> None:
        """Add the new messages of a model call, its answer and its error.

        Of a scorer's call, only the answer's text is recorded.
        """
        if scope.is_grading:
            self._add_grading_text(event)
            return
        start, end = _event_times(event)
        output = fields_of(event.get("output"))
        duration = as_number(output.get("time"))
        if end is None and start is not None and duration is not None:
            end = start + duration

        input_context = SpanContext(parent=scope.parent, start=start)
        for message, message_pointer in self._new_input_messages(event, pointer, scope):
            pending_result = self._pending_result_in(message)
            if pending_result is not None:
                self._add_result(pending_result)
            else:
                self.spans.add(message, message_pointer, input_context, scope.history, key=None)

        agent = scope.agent or short_name(event.get("role")) or "assistant"
        context = SpanContext(agent, scope.parent, start, end)
        key = as_text(event.get("uuid"))
        error = event.get("error") or output.get("error")
        last_key: str | None = None
        for choice_index, choice in enumerate(items_of(output.get("choices"))):
            message = choice.get("message") if isinstance(choice, Mapping) else choice
            if error is not None and _is_empty_message(message):
                continue
            message_pointer = f"{pointer}/output/choices/{choice_index}/message"
            message_key = self.spans.add(message, message_pointer, context, scope.history, key)
            last_key = message_key or last_key
        if error is not None:
            last_key = self._add_error(error, pointer, context, key)

        tokens = usage_tokens(output.get("usage"), _INPUT_COUNT_FIELDS, "output_tokens")
        if last_key is not None and tokens is not None:
            self.spans.steps.amend(last_key, tokens=tokens)

    def _pending_result_in(self, message: object) -> _PendingResult | None:
        """Return the queued result that a tool's message repeats."""
        fields = fields_of(message)
        if fields.get("role") != "tool":
            return None
        result = self._result_by_call_id.get(as_text(fields.get("tool_call_id")) or "")
        return None if result is None or result.is_added else result

    def _new_input_messages(
        self, event: Fields, pointer: str, scope: Scope
    ) -> Iterator[tuple[object, str]]:
        """Yield the messages of a model call's input that have no spans yet, with JSON pointers."""
        messages = event.get("input")
        refs = event.get("input_refs")
        if not messages and isinstance(refs, list):
            yield from self.pool.new_in(refs, f"{pointer}/input_refs", scope.history)
            return
        # This input has all its messages itself, so they are counted anew. Only an input in the
        # pool continues the counts of the previous input.
        scope.history.input_counts = Counter()
        scope.history.input_ranges = []
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        for message_index, message in enumerate(items_of(messages)):
            identity = self.spans.identity(message)
            if self.spans.is_new(message, identity, scope.history):
                yield message, f"{pointer}/input/{message_index}"

    def _add_error(self, error: object, pointer: str, context: SpanContext, key: str | None) -> str:
        """Add the log span of a model call's error and return its key."""
        text = self._attachments.error(error)
        self.error_texts.add(text)
        own_key = f"{key}/error" if key else f"{pointer}/error"
        return self.spans.log(text, pointer, context, own_key, status=SpanStatus.ERROR)

    def _add_tool_call(self, event: Fields, pointer: str, scope: Scope, depth: int) -> None:
        """Add the spans of a tool call, of the events inside it and of its result.

        The result is queued until its time, so that it follows the events before.
        """
        call_id = as_text(event.get("id"))
        if call_id is not None and call_id in self._skipped_call_ids:
            return
        start, end = _event_times(event)
        call = self.spans.calls.get(call_id) if call_id else None
        call_context = SpanContext(scope.agent or "assistant", scope.parent, start)
        call_key = call.key if call else self.spans.call(event, pointer, call_context)
        if (agent_span := as_text(event.get("agent_span_id"))) is not None:
            self._call_key_by_agent_span[agent_span] = call_key
        call_scope = replace(scope, history=History(), parent=call_key)
        has_nested_events = self._add_nested_events(event, pointer, call_scope, depth)
        if event.get("pending") is True and event.get("result") in (None, ""):
            return

        output = self._attachments.content(event.get("result"))
        text, status = self._attachments.with_error(output, event.get("error"))
        if event.get("failed") is True:
            status = SpanStatus.ERROR
        name = short_name(event.get("function")) or None
        context = SpanContext(parent=call_key, start=start if end is None else end, end=end)
        key = f"{as_text(event.get('uuid')) or pointer}/result"

        def add_spans() -> None:
            if call_id:
                # Then the tool's message, which a later model call reads, adds no span.
                message = {"id": as_text(event.get("message_id"))}
                self.spans.mark(("tool", "", (call_id,)), scope.history, message)
            self.spans.result(call_id, text, pointer, context, name=name, status=status, key=key)

        pending_result = _PendingResult(text, add_spans, call_id)
        if call_id:
            self._result_by_call_id[call_id] = pending_result
            self._latest_result_by_tool[name or ""] = pending_result
        # The result directly follows the events inside the call.
        self._add_result_when_due(pending_result, due=None if has_nested_events else end)

    def _add_subtask(self, event: Fields, pointer: str, scope: Scope, depth: int) -> None:
        """Add log spans for the beginning and the result of a subtask, and the events inside it."""
        start, end = _event_times(event)
        name = short_name(event.get("name"))
        title = f"subtask {name}".rstrip()
        begin_text = self._attachments.joined(f"{title} begins", event.get("input") or None)
        begin_context = SpanContext(parent=scope.parent, start=start)
        uuid = as_text(event.get("uuid"))
        begin_key = self.spans.log(begin_text, pointer, begin_context, uuid)
        self._subtask_keys[name] = begin_key
        subtask_scope = replace(scope, history=History(), parent=begin_key)
        has_nested_events = self._add_nested_events(event, pointer, subtask_scope, depth)
        if event.get("result") is None:
            return

        text = f"{title} ends\n{self._attachments.piece(event['result'])}"
        context = SpanContext(parent=begin_key, start=start if end is None else end, end=end)
        result_key = f"{uuid or pointer}/result"
        add_spans = partial(self.spans.log, text, pointer, context, result_key)
        pending_result = _PendingResult(text, add_spans)
        # The result directly follows the events inside the subtask.
        self._add_result_when_due(pending_result, due=None if has_nested_events else end)

    def _add_nested_events(self, event: Fields, pointer: str, scope: Scope, depth: int) -> bool:
        """Add the spans of the events inside an event of an old log; return whether it has any."""
        events = event.get("events")
        if not isinstance(events, list) or not events:
            return False
        nested_pointer = f"{pointer}/events"
        if depth >= _MAX_DEPTH:
            self.spans.add_problem(nested_pointer, "nested too deeply; shown unchanged")
            self.spans.log(json_text(events), nested_pointer, SpanContext(parent=scope.parent))
        else:
            self._walk_list(events, nested_pointer, scope, depth + 1)
        return True

    def _add_input(self, event: Fields, pointer: str, scope: Scope) -> None:
        """Add the input of a person during the run as a message of the user."""
        parts = (as_text(event.get("message")), as_text(event.get("input")))
        text = self._attachments.joined(*parts)
        context = SpanContext(parent=scope.parent, start=unix_seconds(event.get("timestamp")))
        message = {"role": "user", "content": text}
        self.spans.add(message, pointer, context, scope.history, as_text(event.get("uuid")))

    def _add_log_event(self, event: Fields, pointer: str, scope: Scope) -> None:
        """Add the log span of an event; record the error, the limit or the score in it."""
        kind = event.get("event")
        # The result of the call that ran the command shows the output.
        if kind == "sandbox" and self._equals_pending_result(event.get("output")):
            event = without(event, ("output",))
        piece = _event_piece(event, self._attachments)

        match kind:
            case "score" if scope.is_grading and scope.agent:
                piece = replace(piece, text=f"scored by {scope.agent}")
            case "error":
                self.error_texts.add(piece.text)
            case "sample_limit":
                self.limit_count += 1

        start, end = _event_times(event)
        context = SpanContext(parent=scope.parent, start=start, end=end)
        key = self.spans.log(
            piece.text,
            pointer,
            context,
            as_text(event.get("uuid")),
            name=piece.name or "log",
            status=piece.status,
        )
        if kind == "score":
            self.score_events.append((key, event))

    def _equals_pending_result(self, output: object) -> bool:
        """Return whether one of the next queued results has the text of an output."""
        if not isinstance(output, str) or not output.strip():
            return False
        text = self._attachments.text(output).strip()
        # The comparison of the lengths saves copies of long results.
        return any(
            abs(len(result.text) - len(text)) <= _MAX_BLANKS and result.text.strip() == text
            for _time, _number, result in self._pending[:_COMPARED_RESULTS]
        )

    def _add_grading_text(self, event: Fields) -> None:
        """Record the texts of a scorer's model, up to ``_GRADING_CHARS`` in all."""
        for choice in items_of(fields_of(event.get("output")).get("choices")):
            content = fields_at(choice, "message").get("content")
            text = self._attachments.content(content)[: self._grading_chars_left]
            self._grading_chars_left -= len(text)
            if text:
                self.grading_texts.append(text)

    def _add_result_when_due(self, result: _PendingResult, *, due: float | None) -> None:
        """Queue a result until the time ``due``, or add it now if that is None."""
        if due is None:
            self._add_result(result)
        else:
            self._queued_count += 1
            heappush(self._pending, (due, self._queued_count, result))

    def _add_results_until(self, time: float | None) -> None:
        """Add the queued results up to a time, or all if it is None."""
        while self._pending:
            result_time, _number, result = self._pending[0]
            if time is not None and result_time > time:
                break
            heappop(self._pending)
            if not result.is_added:
                self._add_result(result)

    def _add_result(self, result: _PendingResult) -> None:
        result.is_added = True
        result.add_spans()


def _event_times(event: Fields) -> tuple[float | None, float | None]:
    return unix_seconds(event.get("timestamp")), unix_seconds(event.get("completed"))


def _is_empty_message(message: object) -> bool:
    return isinstance(message, Mapping) and not any(
        message.get(name) for name in ("content", "tool_calls", "reasoning")
    )


_SILENT_EVENTS: Final = frozenset(
    {"state", "store", "sample_init", "span_end", "anchor", "checkpoint"}
)
"""Events without spans; messages repeat the contents of the state."""

_FIELDS_OF_ANY_EVENT: Final = name_set(
    "uuid span_id timestamp working_start working_time completed pending metadata"
)
_FAILED_LEVELS: Final = frozenset({"error", "critical"})


def _event_piece(event: Fields, attachments: Attachments) -> Piece:
    """Return the log of an event; for an unknown kind or shape, the event's fields as JSON."""
    kind = event.get("event")
    formatter = _FORMATTERS.get(kind) if isinstance(kind, str) else None
    if formatter is not None and (piece := formatter(event, attachments)) is not None:
        return piece
    return log_piece(attachments.dumped(without(event, _FIELDS_OF_ANY_EVENT)))


def _error_piece(event: Fields, attachments: Attachments) -> Piece | None:
    if event.get("error") is None:
        return None
    return log_piece(attachments.error(event["error"]), failed=True)


def _limit_piece(event: Fields, attachments: Attachments) -> Piece | None:
    message = as_text(event.get("message"))
    return None if message is None else log_piece(attachments.text(message))


def _logger_piece(event: Fields, attachments: Attachments) -> Piece | None:
    """Return the log of a logger's message with its level."""
    log_message = event.get("message")
    if not isinstance(log_message, Mapping):
        return None
    level = short_name(log_message.get("level"))
    text = attachments.piece(log_message.get("message"))
    text = f"{level}: {text}" if level else text
    failed = level.lower() in _FAILED_LEVELS
    return log_piece(text, short_name(log_message.get("name")), failed=failed)


def _approval_piece(event: Fields, attachments: Attachments) -> Piece | None:
    """Return the log of a decision on a tool call."""
    decision = as_text(event.get("decision"))
    if decision is None:
        return None
    name = short_name(event.get("approver")) or short_name(event.get("reviewer"))
    tool = short_name(fields_of(event.get("call")).get("function"))
    title = f"{decision} {tool}".rstrip()
    text = attachments.joined(title, as_text(event.get("explanation")), event.get("modified"))
    return log_piece(text, name)


def _sandbox_piece(event: Fields, attachments: Attachments) -> Piece | None:
    """Return the log of an action in a sandbox."""
    action = as_text(event.get("action"))
    if action is None:
        return None
    subject = as_text(event.get("cmd")) or as_text(event.get("file")) or ""
    title = f"{action}: {attachments.piece(subject)}"
    text = attachments.joined(title, as_text(event.get("input")), as_text(event.get("output")))
    result = event.get("result")
    if isinstance(result, bool) or not isinstance(result, int) or action != "exec":
        return log_piece(text, "sandbox")
    if result == 0:
        return replace(log_piece(text, "sandbox"), status=SpanStatus.OK)
    return log_piece(f"{text}\n[exit code {result}]", "sandbox", failed=True)


def _compaction_piece(event: Fields, _attachments: Attachments) -> Piece:
    """Return the log of a shortened history, with the numbers of tokens if the event has both."""
    tokens_before = as_count(event.get("tokens_before"))
    tokens_after = as_count(event.get("tokens_after"))
    if tokens_before is None or tokens_after is None:
        return log_piece("history compacted")
    return log_piece(f"history compacted from {tokens_before} to {tokens_after} tokens")


def _interrupt_piece(event: Fields, _attachments: Attachments) -> Piece:
    source = short_name(event.get("source")) or "somebody"
    activity = short_name(event.get("interrupted")) or "the run"
    return log_piece(f"interrupted by {source} during {activity}")


def _score_piece(_event: Fields, _attachments: Attachments) -> Piece:
    # The score is ground truth, which a blind annotator must not see.
    return log_piece("scored")


_FORMATTERS: Final[Mapping[str, Callable[[Fields, Attachments], Piece | None]]] = {
    "error": _error_piece,
    "sample_limit": _limit_piece,
    "info": lambda event, attachments: log_piece(
        attachments.dumped(event.get("data")), short_name(event.get("source"))
    ),
    "logger": _logger_piece,
    "approval": _approval_piece,
    "review": _approval_piece,
    "sandbox": _sandbox_piece,
    "compaction": _compaction_piece,
    "interrupt": _interrupt_piece,
    "score": _score_piece,
    "score_edit": _score_piece,
}
