"""Codex rollouts: one JSON record a line, response items with events that repeat them.

Spans are the response items. An event becomes a span only if no item has the same text, as with the
thoughts of an interrupted turn. Keys are ``<call id>:call`` and ``<call id>:result``, the item's
id, else ``line N``; the keys of a sub-agent's thread begin with ``<thread id>/``. The span of an
item is also found by the lines of the events that it repeats, because a label may be older than the
item.

Most records are read in two steps, so that other processes can parse the lines of a big file. A
``Digest`` has the facts of one record. ``CodexParser`` makes spans of the digests in the order of
the lines.

A fork repeats the parent's history. It writes its own ``session_meta`` and then, in a burst, the
parent's records with the parent's ``session_meta``. A sub-agent writes only the records of the last
turns. The history is not shown. Newer builds number their records and state a sub-agent's first own
record, or leave the history in the parent's file (``history_base``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from errno import ESTALE
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import orjson

from mast_tui.traces.index.span_table import SpanTable
from mast_tui.traces.io.json_values import as_count, as_text
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Role, SpanKind, SpanStatus, Thread
from mast_tui.traces.preview import task_of_text
from mast_tui.traces.readers.base import FormatReader, trace_of_lines
from mast_tui.traces.readers.codex.records import (
    CODEX,
    HOSTED_CALLS,
    SILENT_TYPES,
    CodexLines,
    RewordedLines,
    RolloutStep,
    call_id_and_name,
    hosted_call_step,
    is_from_harness,
    is_wrapped,
    may_be_object,
    output_of,
    payload_of,
    prompt_of,
    status_of_output,
    step_of,
    text_of_output,
)
from mast_tui.traces.readers.json_fields import Fields, fields_at, fields_of, json_in, text_in
from mast_tui.traces.times import unix_seconds

_CHECKED_RECORD_COUNT: Final = 5
_AGENT_BY_ROLE: Final[Mapping[Role, str]] = {Role.SYSTEM: "system", Role.USER: "user"}
_SHORT_ID_LENGTH: Final = 8


def _recognises(source: Source) -> bool:
    """Return whether the first records are those of a build of Codex."""
    records = source.head_records
    return any(map(is_wrapped, records[:_CHECKED_RECORD_COUNT])) or _is_first_build(records)


def _read(source: Source) -> FileReport:
    """Return one trace with its first slice; the rest is read on demand."""
    parser = CodexParser()
    trace = trace_of_lines(READER, source, parser, lambda: parser.thread and parser.thread.id)
    return FileReport(source.path, format=READER.name, traces=(trace,), thread=parser.thread)


READER: Final = FormatReader("codex", _recognises, _read)
"""Reads Codex rollouts, slice by slice."""


def _is_first_build(records: list[dict[str, object]]) -> bool:
    """Return whether the records have no wrapping, as the first builds of Codex wrote them."""
    if not records or "type" in records[0] or not {"id", "timestamp"} <= records[0].keys():
        return False
    return "instructions" in records[0] and any(
        record.get("type") == "message" or "record_type" in record for record in records[1:]
    )


# Names of the module are faster than members of an enum.
_MESSAGE: Final = SpanKind.MESSAGE
_CALL: Final = SpanKind.TOOL_CALL
_RESULT: Final = SpanKind.TOOL_RESULT
_AGENT: Final = Role.AGENT
_TOOL: Final = Role.TOOL
_USER: Final = Role.USER

Position = tuple[int, int]
"""The line of a record, and its number on that line."""

TextHashes = tuple[bytes, ...]
"""The hashes of the text of a message or a thought, and of each of its parts."""

_MAX_TEXT_HASHES: Final = 4096


def hashes_of_text(kind: SpanKind, text: str, parts: Sequence[str] = ()) -> TextHashes:
    """Return the hashes of a text and of its parts, for the search of repeated texts.

    Args:
        kind: The kind of the text: message or thought.
        text: The whole text.
        parts: The parts of the text, each of which another record may repeat alone.
    """
    is_message = kind is _MESSAGE
    hashes = (_hash_of_text(is_message, part) for part in (text, *parts))
    return tuple(dict.fromkeys(hashes))  # each hash once, in order


@lru_cache(maxsize=4)  # an item usually follows the event with its text
def _hash_of_text(is_message: bool, text: str) -> bytes:
    """Return a hash that is equal in every process, as another process may continue the file."""
    prefix = b"m" if is_message else b"t"
    data = prefix + text.strip().encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=8).digest()


class TextHashCounts:
    """The number of expected repetitions of each recent text.

    The last few thousand hashes are enough, as an event and its item are close together.
    """

    def __init__(self) -> None:
        self._counts: OrderedDict[bytes, int] = OrderedDict()

    def add(self, text_hashes: TextHashes) -> None:
        """Raise the count of each hash of a text by one; drop the oldest hashes over the limit."""
        for text_hash in text_hashes:
            self._counts[text_hash] = self._counts.get(text_hash, 0) + 1
        while len(self._counts) > _MAX_TEXT_HASHES:
            self._counts.popitem(last=False)

    def remove(self, text_hashes: TextHashes) -> bool:
        """Lower the count of each hash of a text by one; return whether any hash had a count."""
        was_any_removed = False
        for text_hash in text_hashes:
            count = self._counts.get(text_hash, 0)
            if count > 1:
                self._counts[text_hash] = count - 1
            elif count:
                del self._counts[text_hash]
            was_any_removed = was_any_removed or count > 0
        return was_any_removed

    def has_any(self, text_hashes: TextHashes) -> bool:
        """Return whether at least one of the hashes has a count."""
        return any(text_hash in self._counts for text_hash in text_hashes)

    def clear(self) -> None:
        """Remove all texts."""
        self._counts.clear()


_BURST_SECONDS: Final = 1.0
"""The maximum time in which a fork writes the history; a model's first answer takes longer."""

_GAP_SECONDS: Final = 0.25
"""The maximum time between two records of a slower history."""


class ForkedHistory:
    """A filter that drops the parent's history at the beginning of a fork.

    The history ends before the record with the number that the file states, at the first message to
    this thread, or at a gap in time. Before a gap, the fork's own first prompt may directly follow
    the history. So the last prompt before the gap is the fork's own, unless the record after the
    gap begins a turn.

    Attributes:
        copied_thread: The thread of the repeated history.
        may_continue: Whether the next record may belong to a history.
    """

    def __init__(self) -> None:
        self.copied_thread: str | None = None
        self.may_continue = False
        self._fork_thread: str | None = None
        """The thread of the fork itself."""
        self._fork_path: str | None = None
        """The path by which other agents address that thread."""
        self._first_own_number: int | None = None
        """The ordinal number of the fork's first own record, if the file states it."""
        self._start_time: float | None = None
        """The time of the first ``session_meta`` of the history, else of the file."""
        self._last_time: float | None = None
        self._is_within_history = False
        self._held_records: list[tuple[Position, Fields]] = []
        """The last prompt and the records after it, which may be the fork's own."""

    def note_session_meta(self, record: Fields, meta: Fields, path: str | None) -> bool:
        """Record a ``session_meta``; return whether a copied history begins with it.

        The first ``session_meta`` of a file describes the fork itself.

        Args:
            record: The ``session_meta`` record.
            meta: Its payload.
            path: The path by which other agents address its thread.
        """
        thread = as_text(meta.get("id"))
        time = unix_seconds(record.get("timestamp"))
        if self._fork_thread is None:
            self._fork_thread = thread
            self._start_time = time
            self._fork_path = path
            self._first_own_number = as_count(meta.get("subagent_history_start_ordinal"))
            is_fork = bool(as_text(meta.get("forked_from_id")) or self._first_own_number)
            # A fork with ``history_base`` leaves the history in the parent's file.
            self.may_continue = is_fork and meta.get("history_base") is None
            return False
        is_of_other_thread = thread is not None and thread != self._fork_thread
        # Only the first ``session_meta`` of a copied history begins it.
        if self.copied_thread or not is_of_other_thread or not self._is_early(record, time):
            return False
        self.copied_thread = thread
        self._start_time = time
        self._last_time = time
        self.may_continue = True
        self._is_within_history = True
        return True

    def released_records(
        self, position: Position, record: Fields
    ) -> Iterable[tuple[Position, Fields]]:
        """Read the next record; return the records that are now known to be the fork's own.

        Records of the history are dropped. The last prompt and the records after it are held,
        because they may be the fork's own.

        Args:
            position: The position of the record.
            record: The record.

        Returns:
            The fork's own records with their positions.
        """
        time = unix_seconds(record.get("timestamp"))
        if not self._is_within_history:
            _, payload = payload_of(record)
            is_user_prompt = _is_prompt(record) and not is_from_harness(payload)
            may_begin_history = self._first_own_number is not None or is_user_prompt
            self._is_within_history = may_begin_history and self._is_early(record, time)
            self._last_time = self._start_time
        if not self._is_within_history:
            self.may_continue = False
            return [(position, record)]

        if self._is_own(record):
            self._held_records = []
        elif self._continues_burst(time):
            if _is_prompt(record):
                self._held_records = [(position, record)]
            elif self._held_records:
                self._held_records.append((position, record))
            return ()
        elif _begins_turn(record):
            # The held prompt is of the history, as the fork's own turn begins here.
            self._held_records = []

        own_records = [*self._held_records, (position, record)]
        self._held_records = []
        self._is_within_history = False
        self.may_continue = False
        return own_records

    def _is_early(self, record: Fields, time: float | None) -> bool:
        """Return whether a record is early enough to be of the copied history.

        If the file states the number of the first own record, the record's number decides, else its
        time.
        """
        ordinal = as_count(record.get("ordinal"))
        if ordinal is not None and self._first_own_number is not None:
            return ordinal < self._first_own_number
        if self._start_time is None or time is None:
            return False
        return abs(time - self._start_time) <= _BURST_SECONDS

    def _continues_burst(self, time: float | None) -> bool:
        """Return whether a record belongs to the burst in which the fork copied the history.

        It is early enough, or comes soon after the previous record.
        """
        if time is None or self._start_time is None or self._last_time is None:
            return False
        gap = time - self._last_time
        self._last_time = time
        return time - self._start_time <= _BURST_SECONDS or gap <= _GAP_SECONDS

    def _is_own(self, record: Fields) -> bool:
        """Return whether a record's number or recipient shows that it is the fork's own."""
        ordinal = as_count(record.get("ordinal"))
        first_number = self._first_own_number
        if ordinal is not None and first_number is not None and ordinal >= first_number:
            return True
        kind, payload = payload_of(record)
        if kind == "inter_agent_communication" or payload.get("type") == "agent_message":
            return self._fork_path is not None and payload.get("recipient") == self._fork_path
        return False


def _is_prompt(record: Fields) -> bool:
    """Return whether a record is a message in the user's name."""
    kind, payload = payload_of(record)
    is_message = kind == "response_item" and payload.get("type") == "message"
    return is_message and payload.get("role") == Role.USER.value


def _begins_turn(record: Fields) -> bool:
    """Return whether a record is a prompt or the settings of a turn."""
    kind, payload = payload_of(record)
    if kind == "event_msg":
        return payload.get("type") in ("task_started", "turn_started", "user_message")
    return kind == "turn_context" or _is_prompt(record)


Digest = tuple[Any, ...]
"""A record in short form: a key of ``_METHOD_BY_DIGEST_NAME`` and the arguments of that method.

It is empty for a record that shows nothing.
"""


def digest_line(line: bytes) -> Digest | bytes:
    """Return the digest of a line's record, or the line itself if only the parser can read it."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return line
    if type(record) is not dict:
        return line
    kind, payload = payload_of(record)
    # The parser compares the thread of a ``session_meta`` with earlier threads.
    return line if kind == "session_meta" else _digest_of(record, kind, payload)


def _digest_of(record: Fields, kind: str, payload: Fields) -> Digest:
    """Return the digest of a record, made without a ``RolloutStep`` for frequent types."""
    payload_type = payload.get("type")
    if type(payload_type) is str:
        if kind == "response_item":
            if payload_type in HOSTED_CALLS:
                return _hosted_call_digest(record, payload)
            if payload_type.endswith("_call"):
                return _call_digest(record, payload)
            if payload_type.endswith("_output"):
                return _result_digest(record, payload)
        elif kind == "event_msg":
            if payload_type == "token_count":
                return _tokens_digest(record, payload)
            if payload_type in SILENT_TYPES:
                return ()
    if kind == "turn_context":
        return "model", as_text(payload.get("model"))
    step = step_of(kind, payload)
    return () if step is None else _step_digest(record, step)


def _step_digest(record: Fields, step: RolloutStep) -> Digest:
    """Return the digest of a step.

    - ``event``: an event that a response item may repeat, with its text
    - ``item``: a message or a thought of a response item, without its text
    - ``step``: any other step
    """
    stamp = record.get("timestamp")
    if step.is_event and step.agent is None:
        text_hashes = hashes_of_text(step.kind, step.text, step.parts)
        event = WaitingEvent(stamp, step.kind, step.role, step.text, text_hashes, step.name)
        return "event", event
    if step.kind in (SpanKind.MESSAGE, SpanKind.REASONING) and not (
        step.is_event or step.ends_turn
    ):
        is_prompt = step.role is Role.USER
        task = task_of_text(prompt_of(step.text, step.parts)) if is_prompt else None
        text_hashes = hashes_of_text(step.kind, step.text, step.parts)
        speaker = (step.kind, step.role, step.agent)
        return "item", unix_seconds(stamp), speaker, step.key, text_hashes, task
    return "step", unix_seconds(stamp), step


def _call_digest(record: Fields, payload: Fields) -> Digest:
    """Return the digest of a call: its time, its id and its tool."""
    return ("call", unix_seconds(record.get("timestamp")), *call_id_and_name(payload))


def _hosted_call_digest(record: Fields, payload: Fields) -> Digest:
    """Return the digest of a call by the model's host, with the hashes that its event shares."""
    step = hosted_call_step(payload)
    text_hashes = hashes_of_text(step.kind, step.text, step.parts)
    return *_call_digest(record, payload), text_hashes


def _result_digest(record: Fields, payload: Fields) -> Digest:
    """Return the digest of a result, with a short output that may name a sub-agent's thread."""
    output = output_of(payload)
    time = unix_seconds(record.get("timestamp"))
    short_output = output if may_be_object(output) else None
    return "result", time, as_text(payload.get("call_id")), status_of_output(output), short_output


def _tokens_digest(record: Fields, payload: Fields) -> Digest:
    """Return the digest of a ``token_count``: the tokens of a call, and the sums so far."""
    info = fields_of(payload.get("info"))
    call_usage = info.get("last_token_usage")
    if not isinstance(call_usage, dict):
        return ()
    total_usage = fields_of(info.get("total_token_usage"))
    sum_fields = ("total_tokens", "input_tokens", "output_tokens")
    counts = (
        call_usage.get("input_tokens"),
        call_usage.get("output_tokens"),
        *map(total_usage.get, sum_fields),
    )
    return "tokens", record.get("timestamp"), counts


class WaitingEvent(NamedTuple):
    """An event that is shown unless a response item with the same text follows."""

    stamp: object
    kind: SpanKind
    role: Role
    text: str
    text_hashes: TextHashes
    name: str | None


class CodexParser(CodexLines):
    """Makes the spans of one rollout.

    An event waits for a response item with the same text. Counts of hashes prevent that a text is
    shown twice within a turn.
    """

    digest = staticmethod(digest_line)

    def __init__(self) -> None:
        super().__init__(RewordedLines())
        self.thread: Thread | None = None
        self._agent = CODEX
        self._forked_history = ForkedHistory()
        self._token_counts = _TokenCounts(self.table)
        self._last_call_by_id: dict[str, int] = {}
        """The last call for each id of several calls; the table finds all other calls."""
        self._early_status_by_call: dict[str, SpanStatus] = {}  # reported before the result
        self._early_threads_by_call: dict[str, list[str]] = {}  # started before the result
        self._waiting_events: dict[Position, WaitingEvent] = {}
        self._positions_by_hash: dict[bytes, list[Position]] = {}
        self._item_hashes = TextHashCounts()  # of items that no event has repeated yet
        self._event_hashes = TextHashCounts()  # of shown events that no item has repeated yet
        self._message_hashes = TextHashCounts()  # of all messages shown in this turn

    def feed(self, line_number: int, line: bytes, cut_off: bool, /) -> None:
        """Read a line.

        Args:
            line_number: The number of the line, from 1 on.
            line: The line without its line feed.
            cut_off: Whether it is a last line without a line feed.
        """
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            record = None
        if type(record) is dict:
            self._take_record(line_number, record)
        elif line.strip():
            for record_on_line in self._damaged_records(line_number, line, cut_off):
                self._take_record(line_number, record_on_line)

    def take(self, line_number: int, digest: Digest, /) -> bool:
        """Read the digest of a line; return False if the parser needs the line itself.

        Args:
            line_number: The number of the line, from 1 on.
            digest: The digest of the record on the line.
        """
        if self._forked_history.may_continue:
            return False  # the filter needs whole records
        self._apply(line_number, digest)
        return True

    def _apply(self, line_number: int, digest: Digest) -> None:
        """Call the method that reads a digest."""
        if digest:
            name, *arguments = digest
            _METHOD_BY_DIGEST_NAME[name](self, line_number, *arguments)

    def finish(self) -> None:
        """Add the spans of the events that still wait for an item with the same text.

        If such an item is appended later, the item's span has the keys of both.
        """
        self._add_waiting_events()
        self._token_counts.finish()

    def text(self, data: bytes, kind: SpanKind, index: int, /) -> str:
        """Return the text of a span.

        Args:
            data: The content of its line.
            kind: The kind of the span, as a record may hold both a call and its result.
            index: The index of the span.

        Raises:
            OSError: The line no longer holds the span.
        """
        record = self._record_of(index, data)
        step = None if record is None else self._step_of(*payload_of(record))
        if step is None:
            raise OSError(ESTALE, "the file has changed")
        if kind is SpanKind.TOOL_RESULT and step.output is not None:
            return step.output
        return step.text

    def _step_of(self, kind: str, payload: Fields) -> RolloutStep | None:
        """Return the step of a record; the ``session_meta`` of a copied history becomes a log."""
        thread = self._forked_history.copied_thread
        if kind == "session_meta" and thread and as_text(payload.get("id")) == thread:
            text = f"Here the history of thread {thread} is repeated; it is left out."
            return RolloutStep(SpanKind.LOG, Role.LOG, text, name="history")
        return step_of(kind, payload)

    def _take_record(self, line_number: int, record: Fields) -> None:
        """Add the spans of a record, unless it is part of a fork's copied history."""
        history_filter = self._forked_history
        kind, payload = payload_of(record)
        if kind == "session_meta":
            path = _spawn_text(payload, "agent_path")  # by which other agents address it
            begins_history = history_filter.note_session_meta(record, payload, path)
            # Only the first ``session_meta`` of a history is shown; the filter drops the others.
            if begins_history or self.thread is None or not history_filter.may_continue:
                self._take_session_meta(line_number, record, payload)
                return
        if history_filter.may_continue:
            position = (line_number, self._number_on_line)
            for own_position, own_record in history_filter.released_records(position, record):
                own_line_number, self._number_on_line = own_position
                self._take_record(own_line_number, own_record)
            return
        self._apply(line_number, _digest_of(record, kind, payload))

    def _take_session_meta(self, line_number: int, record: Fields, meta: Fields) -> None:
        """Set the thread, version and model of the run, unless they are set; add the record's span.

        The span has the instructions of the run, or a note on an omitted history.
        """
        if self.thread is None:
            self._set_thread(_thread_of(meta), meta)
            self.meta = self.meta._replace(version=as_text(meta.get("cli_version")))
        self._take_model(line_number, as_text(meta.get("model")))
        step = self._step_of("session_meta", meta)
        if step is not None:
            self._apply(line_number, _step_digest(record, step))

    def _take_model(self, _line_number: int, model: str | None) -> None:
        """Set the model of the run, if it has none yet."""
        if self.meta.model is None:
            self.meta = self.meta._replace(model=model)

    def _set_thread(self, thread: Thread | None, meta: Fields) -> None:
        """Set the thread of the file, and for a sub-agent the key prefix and the name."""
        self.thread = thread
        if thread is None or thread.parent is None:
            return
        # The keys of earlier spans lack the prefix, so the sub-agent is read as a main thread.
        if len(self.table):
            self.thread = Thread(thread.id)
            return
        self.table.prefix = f"{thread.id}/"
        self._agent = _agent_of(meta, thread)

    def _take_event(self, line_number: int, event: WaitingEvent) -> None:
        """Let an event wait for a later item with its text, unless an earlier item has a span."""
        if self._item_hashes.remove(event.text_hashes):
            return
        position = (line_number, self._number_on_line)
        self._waiting_events[position] = event
        for text_hash in event.text_hashes:
            self._positions_by_hash.setdefault(text_hash, []).append(position)

    def _add_waiting_events(self) -> None:
        """Add the spans of the events for which no item with the same text came."""
        events_by_position = self._waiting_events
        current_number_on_line = self._number_on_line
        self._waiting_events = {}
        self._positions_by_hash.clear()
        for (event_line_number, number_on_line), event in events_by_position.items():
            # Each span is stored with the number of its record on the line.
            self._number_on_line = number_on_line
            step = RolloutStep(event.kind, event.role, event.text, name=event.name)
            time = unix_seconds(event.stamp)
            self._add_step_span(event_line_number, time, step, event.text_hashes)
            self._event_hashes.add(event.text_hashes)
        self._number_on_line = current_number_on_line

    def _drop_waiting_events(self, text_hashes: TextHashes) -> Sequence[int]:
        """Remove the waiting events with an item's text; return their line numbers."""
        event_lines: list[int] = []
        for text_hash in text_hashes:
            for position in self._positions_by_hash.pop(text_hash, ()):
                if self._waiting_events.pop(position, None) is not None:
                    event_line, _number_on_line = position
                    event_lines.append(event_line)
        return event_lines

    def _record_if_new(self, text_hashes: TextHashes) -> bool:
        """Record an item's text; return False instead if an earlier event with it has a span.

        An earlier event corresponds to one item only.
        """
        if self._event_hashes.remove(text_hashes):
            return False
        self._item_hashes.add(text_hashes)
        return True

    def _take_item(
        self,
        line_number: int,
        time: float | None,
        speaker: tuple[SpanKind, Role, str | None],
        key: str | None,
        text_hashes: TextHashes,
        task_text: str | None,
    ) -> None:
        """Add the span of a message or a thought, unless an event with its text has a span.

        A prompt without an event begins a turn, so the previous texts are forgotten.

        Args:
            task_text: The task in a prompt; None for other items.
        """
        kind, role, agent = speaker
        by_agent = role is _AGENT
        event_lines = self._drop_waiting_events(text_hashes)
        if role is _USER and not event_lines:
            self._add_waiting_events()
            for counts in (self._item_hashes, self._event_hashes, self._message_hashes):
                counts.clear()
        if event_lines or self._record_if_new(text_hashes):
            default_agent = self._agent if by_agent else _AGENT_BY_ROLE[role]
            span_shape = (kind, role, agent or default_agent, None)
            index = self._add_span(line_number, span_shape, key, time)
            self.table.add_line_keys(index, event_lines)
            if kind is _MESSAGE:
                self._record_message(text_hashes, task_text)
            if by_agent and not agent:
                self._token_counts.add_span(index, time)

    def _record_message(self, text_hashes: TextHashes, task_text: str | None) -> None:
        """Record the text of a message with a span; set the run's task if it has none yet."""
        self._message_hashes.add(text_hashes)
        if task_text is not None and self.meta.task is None:
            self.meta = self.meta._replace(task=task_text)

    def _take_call(
        self,
        line_number: int,
        time: float | None,
        call_id: str | None,
        name: str | None,
        text_hashes: TextHashes = (),
    ) -> None:
        """Add the spans of all waiting events, then the span of a call.

        A call that the model's host ran may also be an event with the same ``text_hashes``. Nothing
        is added if this event has a span.
        """
        event_lines = self._drop_waiting_events(text_hashes)
        if text_hashes and not (event_lines or self._record_if_new(text_hashes)):
            return
        self._add_waiting_events()
        index = self._add_call(line_number, time, call_id, name)
        self._token_counts.add_span(index, time)
        self.table.add_line_keys(index, event_lines)

    def _take_result(
        self,
        line_number: int,
        time: float | None,
        call_id: str | None,
        status: SpanStatus,
        output: object,
    ) -> None:
        """Add the span of a result; record the threads of the sub-agents that its call started."""
        call_index = self._last_call_index(call_id)
        result_index = self._add_result(line_number, time, call_id, status, call_index)
        name = None if call_index is None else self.table.name_of(call_index)
        if call_id is None or name is None or "spawn" not in name:
            return
        output_fields = fields_of(json_in(text_of_output(output)))
        named_thread = text_in(
            output_fields, "agent_id", "thread_id", "new_thread_id", "agent_thread_id"
        )
        # An earlier report on the call may have named threads.
        reported_threads = self._early_threads_by_call.pop(call_id, ())
        for thread in (*reported_threads, named_thread):
            if thread is not None:
                self.table.spawned.setdefault(thread, self.table.key_of(result_index))

    def _add_call(
        self, line_number: int, time: float | None, call_id: str | None, name: str | None
    ) -> int:
        """Add the span of a call and return its index."""
        repeats_before = self.table.repeats  # the number of repeated keys
        key = None if call_id is None else f"{call_id}:call"
        index = self._add_span(line_number, (_CALL, _AGENT, self._agent, name), key, time)
        is_repeated_key = self.table.repeats != repeats_before
        # The table itself finds the first call with an id.
        if call_id is not None and is_repeated_key:
            self._last_call_by_id[call_id] = index
        return index

    def _add_result(
        self,
        line_number: int,
        time: float | None,
        call_id: str | None,
        status: SpanStatus,
        call_index: int | None,
    ) -> int:
        """Add the span of a result, set the end of its call, and return the result's index."""
        name = None
        if call_index is not None:
            name = self.table.name_of(call_index)
            self.table.set_end(call_index, time)
            if call_id is not None:  # an earlier report may have the status
                status = self._early_status_by_call.pop(call_id, status)
        key = None if call_id is None else f"{call_id}:result"
        return self._add_span(
            line_number, (_RESULT, _TOOL, self._agent, name), key, time, status, parent=call_index
        )

    def _last_call_index(self, call_id: str | None) -> int | None:
        """Return the index of the last call with this id."""
        if call_id is None:
            return None
        if call_id in self._last_call_by_id:
            return self._last_call_by_id[call_id]
        # The id of a message may look like the key of a call.
        index = self.table.find_own(f"{call_id}:call")
        return index if index is not None and self.table.kind_of(index) is _CALL else None

    def _take_step(self, line_number: int, time: float | None, step: RolloutStep) -> None:
        """Add the spans of a step, as its kind requires.

        - The span of an event is added unless an item with its text has a span.
        - The end of a turn adds the spans of waiting events, and its last message unless that has a
          span.
        - A report on a call may be hidden by an item with this call.
        - The span of any other step is always added.
        """
        text_hashes: TextHashes = ()
        if step.kind is SpanKind.MESSAGE:
            text_hashes = hashes_of_text(step.kind, step.text, step.parts)
        if step.is_event:
            if not self._item_hashes.remove(text_hashes):
                self._add_step_span(line_number, time, step, text_hashes)
                self._event_hashes.add(text_hashes)
        elif step.ends_turn:
            self._add_waiting_events()
            if step.text and not self._message_hashes.has_any(text_hashes):
                self._add_step_span(line_number, time, step, text_hashes)
        elif step.only_without_call_item and step.parts:
            self._take_hosted_report(line_number, time, step)
        elif step.only_without_call_item or step.spawned_threads:
            self._take_report(line_number, time, step)
        else:
            self._add_step_span(line_number, time, step, text_hashes)

    def _take_hosted_report(
        self, line_number: int, time: float | None, report: RolloutStep
    ) -> None:
        """Add the results of a call by the model's host, and the call if no earlier item has it."""
        text_hashes = hashes_of_text(report.kind, report.text, report.parts)
        if self._item_hashes.remove(text_hashes):
            call_index = self._last_call_index(report.call_id)
            self._add_result(line_number, time, report.call_id, report.status, call_index)
            return
        self._event_hashes.add(text_hashes)
        call_index = self._add_report(line_number, time, report)
        self.table.add_line_keys(call_index, [line_number])

    def _take_report(self, line_number: int, time: float | None, report: RolloutStep) -> None:
        """Record the status and the sub-agents of a call from a report.

        The report has spans only if no response item has the call. Its facts are kept until the
        result of the call is read.
        """
        call_id = report.call_id
        has_call = self._last_call_index(call_id) is not None
        is_hidden = has_call and report.only_without_call_item
        report_index = None if is_hidden else self._add_report(line_number, time, report)
        result_index = None if call_id is None else self.table.find_own(f"{call_id}:result")
        if is_hidden and call_id is not None and report.status is not SpanStatus.UNKNOWN:
            if result_index is None:
                self._early_status_by_call[call_id] = report.status
            else:
                self.table.set_status(result_index, report.status)
        for thread in report.spawned_threads:
            if result_index is not None:
                self.table.spawned.setdefault(thread, self.table.key_of(result_index))
            elif has_call and call_id is not None:
                self._early_threads_by_call.setdefault(call_id, []).append(thread)
            elif report_index is not None:
                self.table.spawned.setdefault(thread, self.table.key_of(report_index))

    def _add_report(self, line_number: int, time: float | None, report: RolloutStep) -> int:
        """Add the spans of the call and the result in a report; return the index of the first.

        A report without an output has a single span.
        """
        if report.output is None:
            return self._add_step_span(line_number, time, report, text_hashes=())
        start = None if time is None else time - (report.seconds or 0.0)
        call_index = self._add_call(line_number, start, report.call_id, report.name)
        self._add_result(line_number, time, report.call_id, report.status, call_index)
        return call_index

    def _add_step_span(
        self, line_number: int, time: float | None, step: RolloutStep, text_hashes: TextHashes
    ) -> int:
        """Add the span of a message, a thought or a log; return its index.

        ``text_hashes`` are kept for a message, to find its repetitions.
        """
        agent = step.agent or _AGENT_BY_ROLE.get(step.role, self._agent)
        shape = (step.kind, step.role, agent, step.name)
        index = self._add_span(line_number, shape, step.key, time, step.status)
        if step.kind is SpanKind.MESSAGE:
            task_text = task_of_text(step.text) if step.role is Role.USER else None
            self._record_message(text_hashes, task_text)
        return index

    def _take_tokens(self, _line_number: int, stamp: object, counts: tuple[object, ...]) -> None:
        self._token_counts.take(stamp, counts)


_METHOD_BY_DIGEST_NAME: Final[Mapping[str, Callable[..., None]]] = {
    "call": CodexParser._take_call,
    "result": CodexParser._take_result,
    "event": CodexParser._take_event,
    "item": CodexParser._take_item,
    "tokens": CodexParser._take_tokens,
    "model": CodexParser._take_model,
    "step": CodexParser._take_step,
}
"""The methods that read a digest, by the name with which digests begin."""


def _thread_of(meta: Fields) -> Thread | None:
    """Return the thread that a ``session_meta`` begins; a thread of the user has no parent."""
    thread_id = text_in(meta, "id", "session_id")
    if thread_id is None:
        return None
    parent = _spawn_text(meta, "parent_thread_id")
    return Thread(thread_id, None if parent == thread_id else parent)


def _agent_of(meta: Fields, thread: Thread) -> str:
    """Return the nickname or role of a sub-agent, else the end of its path, else its id."""
    names = (_spawn_text(meta, field) for field in ("agent_nickname", "agent_role", "agent_type"))
    if name := next(filter(None, names), None):
        return " ".join(name.split())
    name = (_spawn_text(meta, "agent_path") or "").rstrip("/").rpartition("/")[2].strip()
    return name or f"codex {thread.id[:_SHORT_ID_LENGTH]}"


def _spawn_text(meta: Fields, field: str) -> str | None:
    """Return a text in a ``session_meta``, or in its description of the call before it."""
    spawn_fields = fields_at(meta.get("source"), "subagent", "thread_spawn")
    return text_in(meta, field) or text_in(spawn_fields, field)


_BATCH_SECONDS: Final = 0.25
"""The time in which older builds write the items after their count; a model call takes longer."""


class _TokenCounts:
    """Sets the tokens of each model call on the last of its spans.

    Builds since late 2025 write the ``token_count`` after a call's items. Older builds wrote it
    first, and all items within milliseconds after it. Records on rate limits repeat the last count;
    these are ignored.
    """

    def __init__(self, table: SpanTable) -> None:
        self._table = table
        self._last_counts: tuple[object, ...] = ()
        self._uncounted_span: int | None = None
        """The last span of the model since the last count."""
        self._early_tokens: tuple[int | None, int | None] | None = None
        """The tokens of a count that came before its spans, as older builds wrote it."""
        self._early_time: float | None = None
        self._early_span: int | None = None
        """The last of the spans that came after ``_early_tokens``."""

    def add_span(self, index: int, time: float | None) -> None:
        """Record the latest span of the model, which will have the tokens of its call.

        Early tokens came in a record before the call's spans.

        Args:
            index: The index of the span.
            time: The time of its record in Unix seconds.
        """
        if self._early_tokens is None:  # a later record has the tokens
            self._uncounted_span = index
        elif time is None or self._early_time is None or time - self._early_time <= _BATCH_SECONDS:
            self._early_span = index  # a span of the call whose tokens came early
        else:  # the early tokens belong to an earlier call
            self.finish()
            self._early_tokens = None
            self._uncounted_span = index

    def take(self, stamp: object, counts: tuple[object, ...]) -> None:
        """Set the tokens of a ``token_count`` on the span before it, or keep them for later spans.

        Args:
            stamp: The time stamp of the record.
            counts: The tokens read and written by the call, and the sums so far.
        """
        if counts == self._last_counts:
            return  # a record on rate limits
        input_count, output_count, *_sums = counts
        tokens = (as_count(input_count), as_count(output_count))
        if tokens == (None, None):
            return
        self._last_counts = counts
        self.finish()
        self._early_tokens = None  # also if no span came after them
        if self._uncounted_span is None:
            self._early_tokens = tokens
            self._early_time = unix_seconds(stamp)
        else:
            self._table.set_counts(self._uncounted_span, *tokens)
            self._uncounted_span = None

    def finish(self) -> None:
        """Set the early tokens, which came before their spans, on the last span of their call."""
        if self._early_tokens is not None and self._early_span is not None:
            self._table.set_counts(self._early_span, *self._early_tokens)
            self._early_tokens = None
            self._early_span = None
