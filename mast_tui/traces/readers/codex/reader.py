"""Codex rollouts: one JSON record a line, response items with events that repeat them.

Spans are the response items; an event becomes one only where no item has the same text, which is
how the thoughts of an interrupted turn look. Keys are ``<call id>:call`` and ``<call id>:result``,
the item's id, else ``line N``; those of a sub-agent's thread begin with ``<thread id>/``.

Most records are read in two steps, so that other processes can parse the lines of a big file: a
``Digest`` has what follows from a record alone, and ``CodexParser`` takes it in the order of the
lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from errno import ESTALE
from typing import Any, Final, NamedTuple

import orjson

from mast_tui.traces.index.line_index import LineIndex
from mast_tui.traces.index.lines import FIRST_SLICE, LineSpans, feed_lines
from mast_tui.traces.index.span_table import SpanTable
from mast_tui.traces.io.json_values import as_count, as_text
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import (
    FileReport,
    Role,
    SpanKind,
    SpanStatus,
    Thread,
    Trace,
)
from mast_tui.traces.preview import preview, task_of_text
from mast_tui.traces.readers.base import identity_of
from mast_tui.traces.readers.codex.records import (
    AGENT,
    SILENT,
    SPOKEN,
    CodexLines,
    RewordedLines,
    RolloutStep,
    call_id_and_name,
    is_wrapped,
    may_be_object,
    output_of,
    payload_of,
    speaker_role,
    status_of_output,
    step_of,
    text_of_output,
)
from mast_tui.traces.readers.codex.repeats import (
    ForkedHistory,
    MarkCounts,
    Marks,
    Position,
    marks_of,
)
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    json_in,
    text_in,
)
from mast_tui.traces.times import unix_seconds

_HEAD_RECORDS: Final = 5
_TEXT_KINDS: Final = (SpanKind.MESSAGE, SpanKind.REASONING)
_SPEAKERS: Final[Mapping[Role, str]] = {Role.SYSTEM: "system", Role.USER: "user"}
_LONGEST_ANSWER: Final = 10_000
_SHORT_ID: Final = 8


class CodexReader:
    """Reads Codex rollouts, slice by slice."""

    name: Final = "codex"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Return whether one of the first records is typed and wrapped as Codex does or did it."""
        records = source.head_records
        if not source.head_lines:
            return b'"session_meta"' in source.head[:200] and b'"payload"' in source.head[:200]
        return any(map(is_wrapped, records[:_HEAD_RECORDS])) or _is_bare(records)

    def read(self, source: Source) -> FileReport:
        """Return one trace, of which the first slice has been read."""
        index = LineIndex.of_source(source)
        parser = CodexParser()
        feed_lines(index, parser, FIRST_SLICE)
        thread = None if parser.thread is None else parser.thread.id
        identity = identity_of(self, source.path, source.head, native=thread)
        trace = Trace(identity, source.path, LineSpans(index, parser))
        return FileReport(source.path, format=self.name, traces=(trace,), thread=parser.thread)


READER: Final = CodexReader()


def _is_bare(records: list[dict[str, object]]) -> bool:
    if not records or "type" in records[0] or not {"id", "timestamp"} <= records[0].keys():
        return False
    return "instructions" in records[0] and any(
        record.get("type") == "message" or "record_type" in record for record in records[1:]
    )


Digest = tuple[Any, ...]
"""The content of one record by itself: the name of a row in ``_TAKE`` and the arguments of its
method; empty for a record that shows nothing."""


def digest_line(line: bytes) -> Digest | bytes:
    """Return the digest of the record on a line, or the line where all of it is needed."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return line
    if type(record) is not dict:
        return line
    kind = record.get("type")
    payload = record.get("payload")
    if type(kind) is not str or type(payload) is not dict:
        kind, payload = payload_of(record)
    return line if kind == "session_meta" else _digest_of(record, kind, payload)


def _digest_of(record: Fields, kind: str, payload: Fields) -> Digest:
    payload_type = payload.get("type")
    if type(payload_type) is str:
        if kind == "response_item":
            if payload_type.endswith("_call"):
                return _call_digest(record, payload)
            if payload_type.endswith("_output"):
                return _result_digest(record, payload)
        elif kind == "event_msg":
            if payload_type in SPOKEN:
                return _spoken_digest(record, payload)
            if payload_type == "token_count":
                return _tokens_digest(record, payload)
            if payload_type in SILENT:
                return ()
    if kind == "turn_context":
        return "model", as_text(payload.get("model"))
    step = step_of(kind, payload)
    return () if step is None else _step_digest(record, step)


def _step_digest(record: Fields, step: RolloutStep) -> Digest:
    stamp = record.get("timestamp")
    if step.is_event and step.agent is None:
        marks = marks_of(step.kind, step.text, step.parts)
        return "event", stamp, step.kind, step.role, step.text, marks
    if step.kind in _TEXT_KINDS and not (step.is_event or step.ends_turn):
        task = task_of_text(step.text) if step.role is Role.USER else None
        marks = marks_of(step.kind, step.text, step.parts)
        speaker = (step.kind, step.role, step.agent)
        return "item", unix_seconds(stamp), speaker, step.key, marks, task
    return "step", unix_seconds(stamp), step


def _spoken_digest(record: Fields, payload: Fields) -> Digest:
    kind, role, field = SPOKEN[str(payload["type"])]
    text = payload.get(field)
    if type(text) is not str or not text.strip():
        return ()
    role = speaker_role(role, text)
    return "event", record.get("timestamp"), kind, role, text, marks_of(kind, text)


def _call_digest(record: Fields, payload: Fields) -> Digest:
    return ("call", unix_seconds(record.get("timestamp")), *call_id_and_name(payload))


def _result_digest(record: Fields, payload: Fields) -> Digest:
    output = output_of(payload)
    time = unix_seconds(record.get("timestamp"))
    answer = output if may_be_object(output) else None
    return "result", time, as_text(payload.get("call_id")), status_of_output(output), answer


def _tokens_digest(record: Fields, payload: Fields) -> Digest:
    """Return the counts of a model call, with the sums that distinguish it from others."""
    info = fields_of(payload.get("info"))
    usage = info.get("last_token_usage")
    if not isinstance(usage, dict):
        return ()
    total = fields_of(info.get("total_token_usage"))
    fields = ("total_tokens", "input_tokens", "output_tokens")
    counts = (usage.get("input_tokens"), usage.get("output_tokens"), *map(total.get, fields))
    return "tokens", record.get("timestamp"), counts


# A member of an enum takes longer to look up than a name of the module.
_MESSAGE: Final = SpanKind.MESSAGE
_CALL: Final = SpanKind.TOOL_CALL
_RESULT: Final = SpanKind.TOOL_RESULT
_BY_AGENT: Final = Role.AGENT
_BY_TOOL: Final = Role.TOOL


class WaitingEvent(NamedTuple):
    """An event that is shown unless an item with the same text follows."""

    stamp: object
    kind: SpanKind
    role: Role
    text: str
    marks: Marks


class CodexParser(CodexLines):
    """Makes the spans of one rollout."""

    digest = staticmethod(digest_line)

    def __init__(self) -> None:
        super().__init__(RewordedLines())
        self.thread: Thread | None = None
        self._agent = AGENT
        self._history = ForkedHistory()
        self._tokens = _TokenCounts(self.table)
        self._repeated_calls: dict[str, int] = {}  # the last call of each id that several have
        self._early_statuses: dict[str, SpanStatus] = {}  # reported before the result
        self._early_threads: dict[str, list[str]] = {}  # begun before the result
        self._has_items = False
        self._waiting: dict[Position, WaitingEvent] = {}
        self._awaited: dict[bytes, list[Position]] = {}
        self._items = MarkCounts()
        self._events = MarkCounts()
        self._messages = MarkCounts()

    def feed(self, number: int, line: bytes, cut_off: bool, /) -> None:
        """Read a line.

        Args:
            number: The number of the line, from 1 on.
            line: The line without its line feed.
            cut_off: Whether it is a last line without a line feed.
        """
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            record = None
        if type(record) is dict:
            self._take_record(number, record)
        elif line.strip():
            for damaged_record in self._damaged_records(number, line, cut_off):
                self._take_record(number, damaged_record)

    def take(self, number: int, digest: Digest, /) -> bool:
        """Read the digest of a line.

        Args:
            number: The number of the line, from 1 on.
            digest: The digest of the record on the line.

        Returns:
            False where the line itself is needed.
        """
        if self._history.active:
            return False
        if digest:
            _TAKE[digest[0]](self, number, *digest[1:])
        return True

    def finish(self) -> None:
        """Add a problem for each event that still waits for an item with the same text.

        Such events are no spans: their keys would change once the file has grown by those items. In
        a file without any items the events are shown.
        """
        if not self._has_items:
            self._show_waiting()
        for (number, _part), event in self._waiting.items():
            text = preview(event.text)[0]
            message = f"the file ends before the turn does, so this is not shown: {text}"
            self.table.add_problem(number, message)
        self._tokens.finish()

    def text(self, data: bytes, kind: SpanKind, index: int, /) -> str:
        """Return the text of a span.

        Args:
            data: The content of its line.
            kind: The kind of the span; it decides between the call and the result of a record with
                both.
            index: The index of the span.

        Raises:
            OSError: The line no longer holds the span.
        """
        record = self._record_of(index, data)
        step = None if record is None else self._step_of(*payload_of(record))
        if step is None:
            raise OSError(ESTALE, "the file has changed")
        is_output = kind is SpanKind.TOOL_RESULT and step.output is not None
        return step.output or "" if is_output else step.text

    def _step_of(self, kind: str, payload: Fields) -> RolloutStep | None:
        thread = self._history.thread
        if kind == "session_meta" and thread and as_text(payload.get("id")) == thread:
            text = f"Here the history of thread {thread} is repeated; it is left out."
            return RolloutStep(SpanKind.LOG, Role.LOG, text, name="history")
        return step_of(kind, payload)

    def _take_record(self, number: int, record: Fields) -> None:
        kind = record.get("type")
        payload = record.get("payload")
        if type(kind) is not str or type(payload) is not dict:
            kind, payload = payload_of(record)
        if kind == "session_meta":
            begins = self._history.begins(record, payload, _path_of(payload))
            if begins or self.thread is None or not self._history.active:
                self._take_meta(number, record, payload)
                return
        if self._history.active:
            position = (number, self._part)
            for (line, part), released in self._history.released(position, record):
                self._part = part
                self._take_record(line, released)
            return
        digest = _digest_of(record, kind, payload)
        if digest:
            _TAKE[digest[0]](self, number, *digest[1:])

    def _take_meta(self, number: int, record: Fields, meta: Fields) -> None:
        if self.thread is None:
            self._begin_thread(_thread_of(meta), meta)
            self.meta = self.meta._replace(version=as_text(meta.get("cli_version")))
        self._take_model(number, as_text(meta.get("model")))
        step = self._step_of("session_meta", meta)
        if step is not None:
            name, *arguments = _step_digest(record, step)
            _TAKE[name](self, number, *arguments)

    def _take_model(self, _number: int, model: str | None) -> None:
        if self.meta.model is None:
            self.meta = self.meta._replace(model=model)

    def _begin_thread(self, thread: Thread | None, meta: Fields) -> None:
        self.thread = thread
        if thread is None or thread.parent is None:
            return
        if len(self.table):  # Keys that were handed out already stay as they are.
            self.thread = Thread(thread.id)
            return
        self.table.prefix = f"{thread.id}/"
        self._agent = _agent_of(meta, thread)

    def _take_event(
        self, number: int, stamp: object, kind: SpanKind, role: Role, text: str, marks: Marks
    ) -> None:
        """Show an event later, unless an item has shown the same text."""
        if not self._items.remove(marks):
            position = (number, self._part)
            self._waiting[position] = WaitingEvent(stamp, kind, role, text, marks)
            for mark in marks:
                self._awaited.setdefault(mark, []).append(position)

    def _show_waiting(self) -> None:
        if not self._waiting:
            self._awaited.clear()
            return
        waiting = self._waiting
        part = self._part
        self._waiting = {}
        self._awaited.clear()
        for (number, self._part), event in waiting.items():
            step = RolloutStep(event.kind, event.role, event.text)
            self._show(number, unix_seconds(event.stamp), step, event.marks)
            self._events.add(event.marks)
        self._part = part

    def _drop_waiting_events(self, marks: Marks) -> bool:
        """Remove the waiting events that an item repeats; return whether there were any."""
        count = len(self._waiting)
        if count:
            for mark in marks:
                for position in self._awaited.pop(mark, ()):
                    self._waiting.pop(position, None)
        return len(self._waiting) < count

    def _record_item(self, marks: Marks) -> bool:
        """Record an item for later events; return False where an event has shown it already."""
        if self._events.remove(marks):
            return False
        self._items.add(marks)
        return True

    def _take_item(
        self,
        number: int,
        time: float | None,
        speaker: tuple[SpanKind, Role, str | None],
        key: str | None,
        marks: Marks,
        task: str | None,
    ) -> None:
        """Show an item unless an event has shown its text; drop waiting events with the text."""
        self._has_items = True
        kind, role, agent = speaker
        by_agent = role is _BY_AGENT
        was_waiting = self._drop_waiting_events(marks)
        if not by_agent and role is Role.USER and not was_waiting:
            self._show_waiting()
            for counts in (self._items, self._events, self._messages):
                counts.clear()
        if was_waiting or self._record_item(marks):
            own_agent = self._agent if by_agent else _SPEAKERS[role]
            shape = (kind, role, agent or own_agent, None)
            index = self._add(number, shape, key, time)
            if kind is _MESSAGE:
                self._note_message(marks, task)
            if by_agent and not agent:
                self._tokens.add_span(index, time)

    def _note_message(self, marks: Marks, task: str | None) -> None:
        self._messages.add(marks)
        if task is not None and self.meta.task is None:
            self.meta = self.meta._replace(task=task)

    def _take_call(
        self, number: int, time: float | None, call_id: str | None, name: str | None
    ) -> None:
        self._show_waiting()
        self._tokens.add_span(self._add_call(number, time, call_id, name), time)

    def _take_result(
        self,
        number: int,
        time: float | None,
        call_id: str | None,
        status: SpanStatus,
        output: object,
    ) -> None:
        call = self._call_of(call_id)
        index = self._add_result(number, time, call_id, status, call)
        name = None if call is None else self.table.name_of(call)
        if call_id is None or name is None or "spawn" not in name:
            return
        text = text_of_output(output)
        answer = fields_of(json_in(text)) if len(text) <= _LONGEST_ANSWER else {}
        thread = text_in(answer, "agent_id", "thread_id", "new_thread_id", "agent_thread_id")
        for spawned in (*self._early_threads.pop(call_id, ()), thread):
            if spawned is not None:
                self.table.spawned.setdefault(spawned, self.table.key_of(index))

    def _add_call(
        self, number: int, time: float | None, call_id: str | None, name: str | None
    ) -> int:
        repeats = self.table.repeats
        key = None if call_id is None else f"{call_id}:call"
        index = self._add(number, (_CALL, _BY_AGENT, self._agent, name), key, time)
        if call_id is not None and self.table.repeats != repeats:
            self._repeated_calls[call_id] = index
        return index

    def _add_result(
        self,
        number: int,
        time: float | None,
        call_id: str | None,
        status: SpanStatus,
        call: int | None,
    ) -> int:
        name = None
        if call is not None:
            name = self.table.name_of(call)
            self.table.set_end(call, time)
            if self._early_statuses and call_id is not None:
                status = self._early_statuses.pop(call_id, status)
        key = None if call_id is None else f"{call_id}:result"
        return self._add(number, (_RESULT, _BY_TOOL, self._agent, name), key, time, status, call)

    def _call_of(self, call_id: str | None) -> int | None:
        """Return the index of the last call with this id."""
        if call_id is None:
            return None
        if self._repeated_calls and call_id in self._repeated_calls:
            return self._repeated_calls[call_id]
        call = self.table.find_own(f"{call_id}:call")
        return call if call is not None and self.table.kind_of(call) is _CALL else None

    def _take_step(self, number: int, time: float | None, step: RolloutStep) -> None:
        marks: Marks = ()
        if step.kind is SpanKind.MESSAGE:
            marks = marks_of(step.kind, step.text, step.parts)
        if step.is_event:
            if not self._items.remove(marks):
                self._show(number, time, step, marks)
                self._events.add(marks)
        elif step.ends_turn:
            self._show_waiting()
            if step.text and not self._messages.has_any(marks):
                self._show(number, time, step, marks)
        elif step.only_without_call or step.spawned:
            self._take_report(number, time, step)
        else:
            self._show(number, time, step, marks)

    def _take_report(self, number: int, time: float | None, step: RolloutStep) -> None:
        """Record the status and sub-agents of a call; show a report whose call no record has."""
        call_id = step.call_id
        has_call = self._call_of(call_id) is not None
        result = None if call_id is None else self.table.find_own(f"{call_id}:result")
        reported = None
        if not (step.only_without_call and has_call):
            reported = self._show_report(number, time, step)
            if step.output is not None and call_id is not None:
                result = self.table.find_own(f"{call_id}:result")
        elif call_id is not None and step.status is not SpanStatus.UNKNOWN:
            if result is None:
                self._early_statuses[call_id] = step.status
            else:
                self.table.set_status(result, step.status)
        for thread in step.spawned:
            if result is not None:
                self.table.spawned.setdefault(thread, self.table.key_of(result))
            elif has_call and call_id is not None:
                self._early_threads.setdefault(call_id, []).append(thread)
            elif reported is not None:
                self.table.spawned.setdefault(thread, self.table.key_of(reported))

    def _show_report(self, number: int, time: float | None, step: RolloutStep) -> int:
        """Show a call and its result by the report on both, or the step that is reported."""
        if step.output is None:
            return self._show(number, time, step, ())
        start = None if time is None else time - (step.seconds or 0.0)
        call = self._add_call(number, start, step.call_id, step.name)
        self._add_result(number, time, step.call_id, step.status, call)
        return call

    def _show(self, number: int, time: float | None, step: RolloutStep, marks: Marks) -> int:
        """Add the span of a message, a thought or a note."""
        agent = step.agent or _SPEAKERS.get(step.role, self._agent)
        shape = (step.kind, step.role, agent, step.name)
        index = self._add(number, shape, step.key, time, step.status)
        if step.kind is SpanKind.MESSAGE:
            task = task_of_text(step.text) if step.role is Role.USER else None
            self._note_message(marks, task)
        return index

    def _take_tokens(self, _number: int, stamp: object, counts: tuple[object, ...]) -> None:
        self._tokens.take(stamp, counts)


_TAKE: Final[Mapping[str, Callable[..., None]]] = {
    "call": CodexParser._take_call,
    "result": CodexParser._take_result,
    "event": CodexParser._take_event,
    "item": CodexParser._take_item,
    "tokens": CodexParser._take_tokens,
    "model": CodexParser._take_model,
    "step": CodexParser._take_step,
}
"""The methods that take a digest, by its name."""


def _thread_of(meta: Fields) -> Thread | None:
    """Return the thread that a ``session_meta`` begins; one that the user began has no parent."""
    thread = text_in(meta, "id", "session_id")
    if thread is None:
        return None
    parent = text_in(meta, "parent_thread_id") or text_in(_origin(meta), "parent_thread_id")
    return Thread(thread, None if parent == thread else parent)


def _agent_of(meta: Fields, thread: Thread) -> str:
    """Return the nickname or role of a sub-agent, else the end of its path, else its id."""
    origin = _origin(meta)
    for field in ("agent_nickname", "agent_role", "agent_type"):
        if name := text_in(meta, field) or text_in(origin, field):
            return " ".join(name.split())
    name = (_path_of(meta) or "").rstrip("/").rpartition("/")[2].strip()
    return name or f"codex {thread.id[:_SHORT_ID]}"


def _path_of(meta: Fields) -> str | None:
    """Return the path by which other agents address this one, from the first agent down."""
    return text_in(meta, "agent_path") or text_in(_origin(meta), "agent_path")


def _origin(meta: Fields) -> Fields:
    return fields_at(meta.get("source"), "subagent", "thread_spawn")


_BATCH_SECONDS: Final = 0.25
"""The time in which a build that counts first writes the items; a model call takes longer."""


class _TokenCounts:
    """Gives the tokens of each model call to the last of its spans.

    Builds since late 2025 write a call's items as they come and the ``token_count`` after them.
    Older ones wrote the ``token_count`` first and then all items in one go: those follow within
    milliseconds. A count that is repeated, as happens with news of rate limits, is passed over.
    """

    def __init__(self, table: SpanTable) -> None:
        self._table = table
        self._last: tuple[object, ...] = ()
        self._open: int | None = None
        self._early: tuple[int | None, int | None] | None = None
        self._early_time: float | None = None
        self._early_span: int | None = None

    def add_span(self, index: int, time: float | None) -> None:
        """Record that the model has made a span.

        Args:
            index: The index of the span.
            time: The time of its record in Unix seconds.
        """
        if self._early is None:
            self._open = index
        elif time is None or self._early_time is None or time - self._early_time <= _BATCH_SECONDS:
            self._early_span = index
        else:
            self.finish()
            self._early = None
            self._open = index

    def take(self, stamp: object, counts: tuple[object, ...]) -> None:
        """Take a ``token_count``.

        Args:
            stamp: Its time stamp.
            counts: The tokens read and written by the call, and the sums so far.
        """
        if counts == self._last:
            return
        tokens = (as_count(counts[0]), as_count(counts[1]))
        if tokens == (None, None):
            return
        self._last = counts
        self.finish()
        self._early = None
        if self._open is None:
            self._early = tokens
            self._early_time = unix_seconds(stamp)
        else:
            self._table.set_counts(self._open, *tokens)
            self._open = None

    def finish(self) -> None:
        """Give the tokens that came before their spans to the last of those."""
        if self._early is not None and self._early_span is not None:
            self._table.set_counts(self._early_span, *self._early)
            self._early = None
            self._early_span = None
