"""The output of ``codex exec --json``: one event a line, between other output of the terminal.

An item that starts and completes is a call with its result; their keys are ``<item id>:call`` and
``<item id>:result``. The key of any other item is its id. Ids restart with every process. Adjacent
lines without events, such as warnings, are one log span.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from mast_tui.traces.io.json_values import as_text, content_text, dump_text
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Role, SpanKind, SpanStatus, Tokens
from mast_tui.traces.readers.base import FormatReader, extended_range, trace_of_lines
from mast_tui.traces.readers.chat.values import usage_tokens
from mast_tui.traces.readers.codex.records import (
    CODEX,
    EXEC_EVENTS,
    CodexLines,
    RewordedLines,
    RolloutStep,
    log_step,
    report_step_of,
)
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_of,
    items_of,
    kind_of,
    object_in,
    text_in,
    without,
)
from mast_tui.traces.result_status import status_of_result

_EVENT_TYPE_BYTES: Final = (b'"thread.', b'"turn.', b'"item.', b'"session.created"')
_EVENT_BEGINNING: Final = re.compile(rb'[\s\0]*\{\s*"type"\s*:\s*"(?:thread|turn|item)\.')
_PROCESS_START_TYPES: Final = ("thread.started", "session.created")
_SILENT_TYPES: Final = frozenset({"turn.started", "item.plan.delta"})


def _read(source: Source) -> FileReport:
    """Return one trace with its first slice; the rest is read on demand."""
    threads = filter(None, map(_thread_of, _events_in(source.head_lines)))
    trace = trace_of_lines(READER, source, CodexExecParser(), lambda: next(threads, None))
    return FileReport(source.path, format=READER.name, traces=(trace,))


READER: Final = FormatReader(
    "codex-exec",
    lambda source: any(map(_is_distinctive_event, _events_in(source.head_lines))),
    _read,
)
"""Reads the output of ``codex exec --json``, slice by slice."""


def _events_in(lines: list[bytes]) -> Iterator[Fields]:
    for line in lines:
        # This test saves the parsing of other lines.
        if not any(type_bytes in line for type_bytes in _EVENT_TYPE_BYTES):
            continue
        event = _event_on_line(line)
        if event is not None:
            yield event


def _event_on_line(line: bytes) -> Fields | None:
    """Return the event on a line, if it is no other output."""
    if not line.lstrip().startswith(b"{"):
        return None
    event = object_in(line)
    return event if event is not None and _is_exec_event(event) else None


def _is_exec_event(event: Fields) -> bool:
    """Return whether an object has the type of an event; an ``error`` must also have a message."""
    kind = kind_of(event)
    if kind == "error":
        return isinstance(event.get("message"), str)
    return kind.startswith(EXEC_EVENTS) or kind in ("session.created", "request_user_input")


def _is_distinctive_event(event: Fields) -> bool:
    """Return whether an event is of a kind that only Codex writes."""
    kind = event.get("type")
    if kind == "turn.completed":
        return isinstance(event.get("usage"), dict)
    if kind in ("item.started", "item.updated", "item.completed"):
        item = fields_of(event.get("item"))
        return isinstance(item.get("type", item.get("item_type")), str)
    return kind == "thread.started" and _thread_of(event) is not None


def _thread_of(event: Fields) -> str | None:
    """Return the thread id in an event that begins a process."""
    is_beginning = event.get("type") in _PROCESS_START_TYPES
    return text_in(event, "thread_id", "session_id") if is_beginning else None


_TEXT_SPAN_KINDS: Final[Mapping[str, SpanKind]] = {
    "agent_message": SpanKind.MESSAGE,
    "plan": SpanKind.MESSAGE,
    "reasoning": SpanKind.REASONING,
    "error": SpanKind.LOG,
}
"""The kinds of the items with a text; an item of another type is a call, or unknown."""

_PLAN: Final = "todo_list"
_NON_ARGUMENT_FIELDS: Final = frozenset({"id", "type", "item_type", "status"})


def _step_of_event(event: Fields) -> RolloutStep | None:
    """Return the step of the item in an event, with the item's id as the call id."""
    item = event.get("item")
    if not isinstance(item, dict):
        return None
    kind = text_in(item, "type", "item_type") or "item"
    if kind == "assistant_message":  # the name in the first builds
        kind = "agent_message"
    step = _step_of_item(kind, item)
    step.call_id = as_text(item.get("id"))
    return step


def _step_of_item(kind: str, item: Fields) -> RolloutStep:
    """Return the step of an item of this type."""
    if kind == "error":
        return log_step(content_text(item.get("message")) or dump_text(item), kind, failed=True)
    if kind in _TEXT_SPAN_KINDS:
        return RolloutStep(_TEXT_SPAN_KINDS[kind], Role.AGENT, content_text(item.get("text")))
    report = report_step_of(kind, item)
    if report is not None:
        return report

    text = (
        _checklist_text(item) if kind == _PLAN else dump_text(without(item, _NON_ARGUMENT_FIELDS))
    )
    step = RolloutStep(SpanKind.TOOL_CALL, Role.AGENT, text, name=kind)
    if kind == "web_search":
        # A search has no output, so it is complete as soon as it has its query.
        step.is_incomplete = as_text(item.get("query")) is None
    elif kind != _PLAN:  # An item of an unknown type is shown once, at its last event.
        step = replace(log_step(text, kind), is_incomplete=True)
    return step


def _checklist_text(plan: Fields) -> str:
    """Return the agent's plan as text, one line for each step."""
    return "\n".join(
        f"[{'x' if step.get('completed') is True else ' '}] {content_text(step.get('text'))}"
        for step in map(fields_of, items_of(plan.get("items")))
    )


def _text_of(event: Fields) -> str:
    """Return the error or the message of an event, else all its fields."""
    error = event.get("error")
    if isinstance(error, dict):
        error = error.get("message")
    text = content_text(error) or content_text(event.get("message"))
    return text if text.strip() else dump_text(event)


class _ExecTable(RewordedLines):
    reworded_kinds = frozenset({SpanKind.LOG, SpanKind.TOOL_RESULT})


class CodexExecParser(CodexLines):
    """Makes the spans of a run, or of several runs with consecutive output."""

    def __init__(self) -> None:
        super().__init__(_ExecTable())
        self._text_line_range: tuple[int, int] | None = None
        """The first and the last number of the lines of text since the last event, if any."""
        self._call_index_by_item: dict[str, int] = {}
        self._waiting_items: dict[str, tuple[int, RolloutStep]] = {}
        """The incomplete items without a span, with their line numbers, by the id of the item."""
        self._last_plan: str | None = None
        self._last_step_index: int | None = None
        self._stream_error: str | None = None
        self._thread_id: str | None = None
        self._thread_tokens = Tokens()

    def feed(self, line_number: int, line: bytes, cut_off: bool, /) -> None:
        """Read a line: an event, or other text.

        Args:
            line_number: The number of the line, from 1 on.
            line: The line without its line feed.
            cut_off: Whether it is a last line without a line feed.
        """
        if not line.strip():
            return
        # NUL bytes are damage, which ``_damaged_records`` reports.
        event = None if b"\0" in line else _event_on_line(line)
        if event is not None:
            self._add_text_span()
            self._take_event(line_number, event)
        elif _EVENT_BEGINNING.match(line):
            self._add_text_span()
            for damaged_event in self._damaged_records(line_number, line, cut_off):
                self._take_event(line_number, damaged_event)
        else:
            self._text_line_range = extended_range(self._text_line_range, line_number)

    def finish(self) -> None:
        """Add the spans of the text at the end of the file and of the incomplete items."""
        self._add_text_span()
        self._add_waiting_items()

    def text(self, data: bytes, kind: SpanKind, index: int, /) -> str:
        """Return the text of a span.

        Args:
            data: The content of its lines.
            kind: The kind of the span, as an event may hold both a call and its result.
            index: The index of the span.
        """
        # An event is on one line, only a log of text has several.
        event = None if b"\n" in data else _event_on_line(data)
        # A damaged line may hold several events; the span has one of them.
        if event is None and _EVENT_BEGINNING.match(data):
            event = self._record_of(index, data)
        if event is None:
            return data.decode("utf-8", "replace")
        step = _step_of_event(event)
        if step is None:
            return _text_of(event)
        return step.output or "" if kind is SpanKind.TOOL_RESULT else step.text

    def _add_text_span(self) -> None:
        """Add a log span for the lines of text before an event."""
        if self._text_line_range is not None:
            self.table.add(*self._text_line_range, (SpanKind.LOG, Role.LOG, CODEX, None))
            self._text_line_range = None

    def _take_event(self, line_number: int, event: Fields) -> None:
        """Add the spans of an event, and set the tokens at the end of a turn."""
        kind = str(event.get("type"))
        previous_error = self._stream_error
        self._stream_error = None
        step = _step_of_event(event)
        if step is not None:
            self._take_item(line_number, kind, step)
        elif kind in _PROCESS_START_TYPES:
            self._start_process(_thread_of(event))
        elif kind == "turn.completed":
            self._add_waiting_items()
            self._set_turn_tokens(event.get("usage"))
            self._last_step_index = None
        elif kind in ("turn.failed", "error"):
            self._add_waiting_items()
            text = _text_of(event)
            if kind == "error":
                self._stream_error = text
            if kind == "error" or text != previous_error:  # A failed turn repeats the last error.
                self._add_item_span(line_number, log_step(text, kind, failed=True))
        elif kind not in _SILENT_TYPES:
            self._add_item_span(line_number, log_step("", kind))

    def _start_process(self, thread: str | None) -> None:
        """Forget the items of the previous process, and the token counts of another thread.

        Item ids begin anew in every process. Token counts continue within a thread.
        """
        self._add_waiting_items()
        self._call_index_by_item.clear()
        self._last_plan = None
        self._last_step_index = None
        if thread != self._thread_id:
            self._thread_id = thread
            self._thread_tokens = Tokens()

    def _take_item(self, line_number: int, stage: str, item: RolloutStep) -> None:
        """Add the spans of an item at this stage, such as ``item.started``."""
        if item.name == _PLAN:
            if item.text != self._last_plan:
                self._last_plan = item.text
                self._add_item_span(line_number, item)
        elif stage == "item.completed":
            self._complete_item(line_number, item)
        elif stage == "item.started" and item.call_id is not None:
            # A call is shown when it starts; a text, when it is complete.
            if item.is_incomplete:
                self._waiting_items[item.call_id] = (line_number, item)
            elif item.kind is SpanKind.TOOL_CALL:
                self._call_index_by_item[item.call_id] = self._add_item_span(line_number, item)

    def _complete_item(self, line_number: int, item: RolloutStep) -> None:
        """Add the spans of a completed item and of its result."""
        self._waiting_items.pop(item.call_id or "", None)
        item_index = self._call_index_by_item.pop(item.call_id or "", None)
        if item_index is None or item.kind is not SpanKind.TOOL_CALL:
            item_index = self._add_item_span(line_number, item)
        if item.output is None:
            return
        status = item.status
        if status is SpanStatus.UNKNOWN:
            status = status_of_result(item.output)
        shape = (SpanKind.TOOL_RESULT, Role.TOOL, CODEX, self.table.name_of(item_index))
        key = f"{item.call_id}:result" if item.call_id else None
        result_index = self._add_span(line_number, shape, key, status=status, parent=item_index)
        for thread in item.spawned_threads:
            self.table.spawned.setdefault(thread, self.table.key_of(result_index))

    def _add_waiting_items(self) -> None:
        """Add the spans of the items that started but did not complete within their turn."""
        for line_number, item in self._waiting_items.values():
            self._add_item_span(line_number, item)
        self._waiting_items.clear()

    def _add_item_span(self, line_number: int, item: RolloutStep) -> int:
        """Add the span of an item and return its index."""
        shape = (item.kind, item.role, CODEX, item.name)
        key = item.call_id
        # The status of a call is with its result, so only a log has one here.
        if item.kind is SpanKind.LOG:
            return self._add_span(line_number, shape, key, status=item.status)
        if key and item.kind is SpanKind.TOOL_CALL:
            key = f"{key}:call"
        self._last_step_index = self._add_span(line_number, shape, key)
        return self._last_step_index

    def _set_turn_tokens(self, usage: object) -> None:
        """Set the tokens of a turn on its last step.

        ``usage`` has the totals of the whole thread, so the previous totals are subtracted.
        """
        thread_total = usage_tokens(usage, "input_tokens", "output_tokens")
        if thread_total is None:
            return
        tokens = Tokens(
            _count_difference(thread_total.input, self._thread_tokens.input),
            _count_difference(thread_total.output, self._thread_tokens.output),
        )
        self._thread_tokens = thread_total
        if (tokens.input or 0) < 0 or (tokens.output or 0) < 0:
            tokens = thread_total  # The thread has begun to count anew.
        if self._last_step_index is not None:
            self.table.set_counts(self._last_step_index, *tokens)


def _count_difference(total: int | None, previous_total: int | None) -> int | None:
    return None if total is None else total - (previous_total or 0)
