"""Codex rollouts: one JSON record a line, response items with events that repeat them.

Spans are the response items; an event becomes one only where no item says the same, which is
how the thoughts of an interrupted turn look. Keys are ``<call id>:call`` and ``<call id>:result``,
the item's id, else ``line N``; those of a sub-agent's thread begin with ``<thread id>/``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from errno import ESTALE
from typing import Final

import orjson

from mast_tui.traces.index.line_index import LineIndex
from mast_tui.traces.index.lines import FIRST_SLICE, LineSpans, feed_lines
from mast_tui.traces.io.json_values import as_text, load_json
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import (
    FileReport,
    Role,
    SpanKind,
    SpanStatus,
    Thread,
    Trace,
    TraceMeta,
)
from mast_tui.traces.preview import preview, task_of_text
from mast_tui.traces.readers.base import identity_of, record_on
from mast_tui.traces.readers.codex.calls import CallBook, TokenBook
from mast_tui.traces.readers.codex.digest import Digest, digest_line, digest_of, message_of
from mast_tui.traces.readers.codex.records import (
    AGENT,
    RECORD_TYPES,
    Entry,
    RewordedLines,
    agent_of,
    entry_of,
    payload_of,
    thread_of,
    time_of,
)
from mast_tui.traces.readers.codex.told_twice import (
    Marks,
    ReplayFilter,
    TwiceTold,
    marks_of,
)
from mast_tui.traces.readers.json_fields import Fields, object_in

_LOOKED_AT: Final = 5
_AGENT_NAMES: Final[Mapping[Role, str]] = {Role.SYSTEM: "system", Role.USER: "user"}


class CodexReader:
    """Reads Codex rollouts, slice by slice."""

    name: Final = "codex"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Whether one of the first records is typed and wrapped as Codex does it, or was once."""
        records = source.head_records
        if not source.head_lines:
            return b'"session_meta"' in source.head[:200] and b'"payload"' in source.head[:200]
        return any(map(_is_wrapped, records[:_LOOKED_AT])) or _is_bare(records)

    def read(self, source: Source) -> FileReport:
        """One trace, of which the first slice has been read."""
        index = LineIndex.of(source)
        parser = CodexParser()
        feed_lines(index, parser, FIRST_SLICE)
        thread = None if parser.thread is None else parser.thread.id
        identity = identity_of(self, source.path, source.head, native=thread)
        trace = Trace(identity, source.path, LineSpans(index, parser))
        return FileReport(source.path, format=self.name, traces=(trace,), thread=parser.thread)


READER: Final = CodexReader()


def _is_wrapped(record: Fields) -> bool:
    kind = record.get("type")
    return (
        isinstance(kind, str) and kind in RECORD_TYPES and isinstance(record.get("payload"), dict)
    )


def _is_bare(records: list[dict[str, object]]) -> bool:
    if not records or "type" in records[0] or not {"id", "timestamp"} <= records[0].keys():
        return False
    return "instructions" in records[0] and any(
        record.get("type") == "message" or "record_type" in record for record in records[1:]
    )


class CodexParser:
    """Makes spans of the records of one rollout."""

    digest = staticmethod(digest_line)

    def __init__(self) -> None:
        self.table = RewordedLines()
        self.meta = TraceMeta(system=AGENT)
        self.thread: Thread | None = None
        self._agent = AGENT
        self._has_items = False
        self._twice = TwiceTold()
        self._replay = ReplayFilter()
        self._tokens = TokenBook(self.table)
        self._calls = CallBook(self.table)

    def feed(self, number: int, line: bytes, cut_off: bool, /) -> None:
        """Take line ``number``; ``cut_off`` marks a last line without its line feed."""
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            record = None
        if type(record) is not dict:
            if not line.strip():
                return
            record = record_on(line, number, cut_off, self.table.problems)
            if record is None:
                return
        kind, payload = record.get("type"), record.get("payload")
        if type(kind) is not str or type(payload) is not dict:
            kind, payload = payload_of(record)
        if kind == "session_meta":
            begins = self._replay.begins(record, payload)
            if begins or self.thread is None:
                self._take_record(number, line, record, kind, payload)
                return
        if not self._replay.active:
            self._take_record(number, line, record, kind, payload)
        else:
            for held_number, held in self._replay.let_through(number, line, record):
                record = _record_on(held)
                self._take_record(held_number, held, record, *payload_of(record))

    def take(self, number: int, found: Digest, /) -> bool:
        """Take what ``digest_line`` has made of line ``number``; False where the line itself is
        needed."""
        if self._replay.active:
            return False
        if found:
            _TAKE[found[0]](self, number, *found[1:])
        return True

    def finish(self) -> None:
        """Name the events of which it is open whether an item will say the same.

        They are no spans: their keys would be others once the file has grown by those items. A
        file without any items has said everything by events alone.
        """
        if not self._has_items:
            self._show_waiting()
        for number, line in self._twice.waiting:
            entry = self._entry(*payload_of(_record_on(line)))
            said, _whole = preview(entry.text if entry is not None else "")
            message = f"the file ends before the turn does, so this is not shown: {said}"
            self.table.add_problem(number, message)
        self._tokens.finish()

    def text(self, data: bytes, kind: SpanKind, /) -> str:
        """The text of the span on this line; of two the call's or the result's."""
        record = object_in(data)
        entry = None if record is None else self._entry(*payload_of(record))
        if entry is None:
            raise OSError(ESTALE, "the file has changed")
        return (entry.result if entry.result and kind is SpanKind.TOOL_RESULT else entry).text

    def _entry(self, kind: str, payload: Fields) -> Entry | None:
        """The step of a record, where the thread whose history is repeated gives only a note."""
        if kind == "session_meta" and self._replay.thread is not None:
            thread = as_text(payload.get("id"))
            if thread == self._replay.thread:
                text = f"Here the history of thread {thread} is repeated; it is left out."
                return Entry(SpanKind.LOG, Role.LOG, text, name="history")
        return entry_of(kind, payload)

    def _take_record(
        self, number: int, line: bytes, record: Fields, kind: str, payload: Fields
    ) -> None:
        # Nothing is made of most records that is not wanted: not their texts, and of most events
        # not even steps.
        found = digest_of(line, record, kind, payload)
        if found is not None:
            if found:
                _TAKE[found[0]](self, number, *found[1:])
            return
        if kind in ("turn_context", "session_meta"):
            self._note_facts(kind, payload)
        entry = self._entry(kind, payload)
        if entry is not None:
            self._take(number, line, time_of(record), entry)

    def _note_facts(self, kind: str, payload: Fields) -> None:
        if kind == "session_meta" and self.thread is None:
            self._begin_thread(thread_of(payload), payload)
            self.meta = self.meta._replace(version=as_text(payload.get("cli_version")))
        if self.meta.model is None:
            self.meta = self.meta._replace(model=as_text(payload.get("model")))

    def _begin_thread(self, thread: Thread | None, meta: Fields) -> None:
        if thread is None or thread.parent is None:
            self.thread = thread
        elif len(self.table):  # Keys that were given out already stay as they are.
            self.thread = Thread(thread.id)
        else:
            self.thread = thread
            self.table.prefix = f"{thread.id}/"
            self._agent = agent_of(meta, thread)

    def _take(self, number: int, line: bytes, time: float | None, entry: Entry) -> None:
        if entry.event:
            if not entry.at_once:
                self._take_event(number, line, marks_of(entry))
            elif self._twice.event_is_new(marks_of(entry)):
                self._show_event(number, time, entry)
        elif entry.closes_turn:
            self._show_waiting()
            if entry.text and not self._twice.is_shown(marks_of(entry)):
                self._show(number, time, entry)
        elif entry.twin or entry.spawned:
            self._take_report(number, time, entry)
        elif entry.kind is SpanKind.MESSAGE:
            self._take_message(number, *message_of(time, entry)[1:])
        else:
            self._show(number, time, entry)

    def _take_counts(self, _number: int, stamp: object, counts: tuple[object, ...]) -> None:
        self._tokens.counted(stamp, counts)

    def _take_event(self, number: int, line: bytes, marks: Marks) -> None:
        """Let an event wait for the item that says the same, where none has done so yet."""
        if self._twice.event_is_new(marks):
            self._twice.wait(number, line, marks)

    def _take_call(
        self, number: int, time: float | None, call_id: str | None, name: str | None
    ) -> None:
        self._show_waiting()
        index = self._calls.add_call(number, time, self._agent, call_id, name)
        self._tokens.item_shown(index, time)

    def _take_result(
        self,
        number: int,
        time: float | None,
        call_id: str | None,
        status: SpanStatus,
        output: object,
    ) -> None:
        call = None if call_id is None else self._calls.call_of(call_id)
        result = self._calls.add_result(number, time, self._agent, call_id, call, status)
        if call_id is not None:
            self._calls.answered(call_id, call, result, output)

    def _take_report(self, number: int, time: float | None, entry: Entry) -> None:
        """Take what is known of a call after the event; show it where nothing else shows it."""
        call_id, calls = entry.call_id, self._calls
        known = call_id is not None and calls.call_of(call_id) is not None
        shown = None
        if not (entry.twin and known):
            shown = self._show_report(number, time, entry)
        elif call_id is not None and entry.status is not SpanStatus.UNKNOWN:
            calls.reported(call_id, entry.status)
        for thread in entry.spawned:
            if call_id is not None and (known or calls.result_of(call_id) is not None):
                calls.spawned(call_id, thread)
            elif shown is not None:
                self.table.spawned.setdefault(thread, self.table.key_of(shown))

    def _show_report(self, number: int, time: float | None, entry: Entry) -> int:
        """Show a call with its result as a report tells of both, or what else is reported."""
        result = entry.result
        if result is None:
            return self._show(number, time, entry)
        start = None if time is None else time - (entry.lasted or 0.0)
        call_id, calls = entry.call_id, self._calls
        call = calls.add_call(number, start, self._agent, call_id, entry.name)
        calls.add_result(number, time, self._agent, call_id, call, result.status)
        return call

    def _take_thought(self, number: int, time: float | None, key: str | None, marks: Marks) -> None:
        """Show a thought once."""
        self._has_items = True
        if self._twice.was_announced(marks) or self._twice.item_is_new(marks):
            shape = (SpanKind.REASONING, Role.AGENT, self._agent, None)
            index = self.table.add(number, number, shape, key, None, time)
            self._tokens.item_shown(index, time)

    def _take_message(
        self,
        number: int,
        time: float | None,
        role: Role,
        agent: str | None,
        key: str | None,
        marks: Marks,
        task: str | None,
    ) -> None:
        """Show a message once: drop the events that announced it, remember it for those to come."""
        self._has_items = True
        announced = self._twice.was_announced(marks)
        if role is Role.USER and not announced:
            self._show_waiting()
            self._twice.prompted()
        if announced or self._twice.item_is_new(marks):
            shape = (SpanKind.MESSAGE, role, self._name_of(role, agent), None)
            index = self.table.add(number, number, shape, key, None, time)
            self._message_shown(marks, task)
            if role is Role.AGENT and not agent:
                self._tokens.item_shown(index, time)

    def _message_shown(self, marks: Marks, task: str | None) -> None:
        self._twice.message_shown(marks)
        if task is not None and self.meta.task is None:
            self.meta = self.meta._replace(task=task)

    def _name_of(self, role: Role, agent: str | None) -> str:
        return agent or _AGENT_NAMES.get(role, self._agent)

    def _show_waiting(self) -> None:
        for number, line in self._twice.no_longer_waiting():
            record = _record_on(line)
            entry = self._entry(*payload_of(record))
            if entry is not None:
                self._show_event(number, time_of(record), entry)

    def _show_event(self, number: int, time: float | None, entry: Entry) -> None:
        self._show(number, time, entry)
        self._twice.event_shown(marks_of(entry))

    def _show(self, number: int, time: float | None, entry: Entry) -> int:
        """Make a span of what is said, thought or noted."""
        agent = self._name_of(entry.role, entry.agent)
        shape = (entry.kind, entry.role, agent, entry.name or None)
        index = self.table.add(number, number, shape, entry.key, None, time, entry.status)
        if entry.kind is SpanKind.MESSAGE:
            task = task_of_text(entry.text) if entry.role is Role.USER else None
            self._message_shown(marks_of(entry), task)
        return index


def _record_on(line: bytes) -> Fields:
    """The record on a line that was read before."""
    record = load_json(line)
    assert isinstance(record, dict)
    return record


_TAKE: Final[Mapping[str, Callable[..., None]]] = {
    "call": CodexParser._take_call,
    "result": CodexParser._take_result,
    "event": CodexParser._take_event,
    "message": CodexParser._take_message,
    "thought": CodexParser._take_thought,
    "counts": CodexParser._take_counts,
}
"""How what most records come down to is taken."""
