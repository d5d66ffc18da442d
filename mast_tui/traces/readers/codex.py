"""Codex rollouts: one JSON record a line, response items with events that repeat them.

Spans are the response items; an event becomes one only where no item says the same, which is
how the thoughts of an interrupted turn look. Keys are ``<call id>:call`` and ``<call id>:result``,
the item's id, else ``line N``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from mast_tui.traces.identity import identity_by_content
from mast_tui.traces.json_values import InvalidJSON, as_text, load_json
from mast_tui.traces.line_index import LineIndex
from mast_tui.traces.lines import FIRST_SLICE, LineTrace, SpanTable, feed_lines
from mast_tui.traces.model import FileReport, Role, SpanKind, TraceIdentity, TraceMeta
from mast_tui.traces.preview import TASK_CHARS
from mast_tui.traces.readers.codex_records import (
    AGENT,
    RECORD_TYPES,
    Entry,
    entry_of,
    payload_of,
    time_of,
)
from mast_tui.traces.readers.codex_replay import ReplayFilter
from mast_tui.traces.source import Source

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
        trace = LineTrace(self._identity(source, parser), source.path, index, parser)
        return FileReport(source.path, format=self.name, traces=(trace,))

    def _identity(self, source: Source, parser: CodexParser) -> TraceIdentity:
        identity = identity_by_content(
            source.path, None, source.head, reader=self.name, key_scheme=self.key_scheme
        )
        if parser.session is None:
            return identity
        return replace(identity, trace_id=parser.session, native=True)


READER: Final = CodexReader()


def _is_wrapped(record: Mapping[str, object]) -> bool:
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


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An event of which it is not known yet whether an item says the same."""

    line: int
    time: float | None
    entry: Entry


class CodexParser:
    """Makes spans of the records of one rollout."""

    def __init__(self) -> None:
        self.table = SpanTable()
        self.meta = TraceMeta(system=AGENT)
        self.session: str | None = None
        self._calls: dict[str, int] = {}
        self._waiting: list[_Waiting] = []
        self._items: Counter[int] = Counter()
        self._events: Counter[int] = Counter()
        self._said: set[int] = set()
        self._replay = ReplayFilter()

    def feed(self, number: int, line: bytes, cut_off: bool, /) -> None:
        """Take line ``number``; ``cut_off`` marks a last line without its line feed."""
        if not line.strip():
            return
        try:
            record = load_json(line)
        except InvalidJSON as error:
            if cut_off:
                message = "the last line is cut off; everything before it was read"
            else:
                message = f"not JSON, left out: {error}"
            self.table.complain(number, message)
            return
        if not isinstance(record, Mapping):
            self.table.complain(number, "not a JSON object, left out")
            return
        if self._replay.begins(record):
            self._take_record(number, record)
            return
        for held_number, held in self._replay.let_through(number, record):
            self._take_record(held_number, held)

    def finish(self) -> None:
        """Show what was held back, and the events for which no item has come."""
        for number, record in self._replay.finish():
            self._take_record(number, record)
        self._show_waiting()

    def text(self, data: bytes, /) -> str:
        """The text of the span on this line."""
        try:
            record = load_json(data)
        except InvalidJSON:
            record = None
        entry = self._entry(record) if isinstance(record, Mapping) else None
        return entry.text if entry else "[cannot be read any more: the file has changed]"

    def _entry(self, record: Mapping[str, object]) -> Entry | None:
        """The step of a record, where the thread whose history is repeated gives only a note."""
        kind, payload = payload_of(record)
        thread = as_text(payload.get("id"))
        if kind == "session_meta" and thread is not None and thread == self._replay.thread:
            text = f"Here the history of thread {thread} is repeated; it is left out."
            return Entry(SpanKind.LOG, Role.LOG, text, name="history")
        return entry_of(record)

    def _take_record(self, number: int, record: Mapping[str, object]) -> None:
        self._note_facts(record)
        entry = self._entry(record)
        if entry is not None:
            self._take(number, time_of(record), entry)

    def _note_facts(self, record: Mapping[str, object]) -> None:
        kind, payload = payload_of(record)
        if kind == "session_meta" and self.session is None:
            self.session = as_text(payload.get("id"))
        if kind in ("turn_context", "session_meta") and self.meta.model is None:
            self.meta = replace(self.meta, model=as_text(payload.get("model")))

    def _take(self, number: int, time: float | None, entry: Entry) -> None:
        if entry.closes_turn:
            self._show_waiting()
            if entry.text and not self._said.intersection(_marks(entry)):
                self._show(number, time, entry)
        elif entry.event:
            if not _use_up(self._items, entry):
                self._waiting.append(_Waiting(number, time, entry))
        elif entry.kind in (SpanKind.MESSAGE, SpanKind.REASONING):
            self._take_item(number, time, entry)
        else:
            if entry.kind is SpanKind.TOOL_CALL:
                self._show_waiting()
            self._show(number, time, entry)

    def _take_item(self, number: int, time: float | None, entry: Entry) -> None:
        """Show an item once: drop the events that announced it, remember it for those to come."""
        announced = self._drop_waiting(entry)
        if entry.role is Role.USER and not announced:
            self._show_waiting()
            self._items.clear()
            self._events.clear()
            self._said.clear()
        if not announced:
            if _use_up(self._events, entry):
                return
            self._items.update(_marks(entry))
        self._show(number, time, entry)

    def _drop_waiting(self, entry: Entry) -> bool:
        """Drop the events that say what the item says; whether there were any."""
        marks = _marks(entry)
        before = len(self._waiting)
        self._waiting = [one for one in self._waiting if not marks & _marks(one.entry)]
        return len(self._waiting) < before

    def _show_waiting(self) -> None:
        for waiting in self._waiting:
            self._show(waiting.line, waiting.time, waiting.entry)
            self._events.update(_marks(waiting.entry))
        self._waiting = []

    def _show(self, number: int, time: float | None, entry: Entry) -> None:
        call = None
        if entry.kind is SpanKind.TOOL_RESULT and entry.call_id is not None:
            call = self._calls.get(entry.call_id)
        asked = None if call is None else self.table.spans[call]
        index = self.table.add(
            number,
            number,
            entry.kind,
            entry.role,
            _AGENT_NAMES.get(entry.role, AGENT),
            entry.text,
            key=entry.key,
            name=entry.name or (asked.name if asked else None),
            parent=asked.key if asked else None,
            start=time,
            status=entry.status,
        )
        if call is not None:
            self.table.set_end(call, time)
        if entry.kind is SpanKind.TOOL_CALL and entry.call_id is not None:
            self._calls[entry.call_id] = index
        elif entry.kind is SpanKind.MESSAGE:
            self._said.update(_marks(entry))
            if entry.role is Role.USER and self.meta.task is None:
                self.meta = replace(self.meta, task=entry.text[:TASK_CHARS])


def _use_up(seen: Counter[int], entry: Entry) -> bool:
    """Take one mention of the entry's text from what was seen; false where there was none."""
    marks = [mark for mark in _marks(entry) if seen[mark] > 0]
    seen.subtract(marks)
    return bool(marks)


def _marks(entry: Entry) -> set[int]:
    """What the entry is compared by: hashes of its kind with its text and with each part of it."""
    return {hash((entry.kind, text.strip())) for text in (entry.text, *entry.parts)}
