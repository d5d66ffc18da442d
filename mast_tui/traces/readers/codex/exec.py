"""The output of ``codex exec --json``: one event a line, between other output of the terminal.

An item that starts and completes is a call with its result; its key is ``<item id>:call`` and
``<item id>:result``, that of any other item its id. Ids restart with every process. Lines that
are no events, such as warnings, are kept as log spans, each run of them one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from mast_tui.traces.index.line_index import LineIndex
from mast_tui.traces.index.lines import FIRST_SLICE, LineSpans, feed_lines
from mast_tui.traces.io.json_values import as_text, content_text, dump_text, tokens_of
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import (
    FileReport,
    Role,
    SpanKind,
    SpanStatus,
    Tokens,
    Trace,
)
from mast_tui.traces.readers.base import identity_of
from mast_tui.traces.readers.codex.records import (
    AGENT,
    EXEC_EVENTS,
    CodexLines,
    RewordedLines,
    ToolReport,
    report_of,
)
from mast_tui.traces.readers.json_fields import Fields, fields_of, object_in, text_in
from mast_tui.traces.result_status import status_of_result

_EVENT_MARKS: Final = (b'"thread.', b'"turn.', b'"item.', b'"session.created"')
_EVENT_BEGINNING: Final = re.compile(rb'[\s\0]*\{\s*"type"\s*:\s*"(?:thread|turn|item)\.')
_BEGINNINGS: Final = ("thread.started", "session.created")
_STAGES: Final = ("item.started", "item.updated", "item.completed")
_SILENT: Final = frozenset({"turn.started", "item.plan.delta"})


class CodexExecReader:
    """Reads the output of ``codex exec --json``, slice by slice."""

    name: Final = "codex-exec"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Return whether a line of the head is an event that only ``codex exec`` writes."""
        return any(map(_is_distinctive, _events_in(source.head_lines)))

    def read(self, source: Source) -> FileReport:
        """Return one trace, of which the first slice has been read."""
        index = LineIndex.of_source(source)
        parser = CodexExecParser()
        feed_lines(index, parser, FIRST_SLICE)
        thread = next(filter(None, map(_thread_of, _events_in(source.head_lines))), None)
        identity = identity_of(self, source.path, source.head, native=thread)
        trace = Trace(identity, source.path, LineSpans(index, parser))
        return FileReport(source.path, format=self.name, traces=(trace,))


READER: Final = CodexExecReader()


def _events_in(lines: list[bytes]) -> Iterator[Fields]:
    for line in lines:
        if any(mark in line for mark in _EVENT_MARKS) and (event := _event_on(line)) is not None:
            yield event


def _event_on(line: bytes) -> Fields | None:
    if not line.lstrip().startswith(b"{"):
        return None
    event = object_in(line)
    return event if event is not None and _is_event(event) else None


def _is_event(event: Fields) -> bool:
    kind = event.get("type")
    if not isinstance(kind, str):
        return False
    if kind == "error":
        return isinstance(event.get("message"), str)
    if kind in ("session.created", "request_user_input"):
        return True
    return kind.startswith(EXEC_EVENTS)


def _is_distinctive(event: Fields) -> bool:
    """Return whether an event is of a kind that no other program writes."""
    kind = event.get("type")
    if kind == "turn.completed":
        return isinstance(event.get("usage"), dict)
    if kind in _STAGES:
        item = fields_of(event.get("item"))
        return isinstance(item.get("type", item.get("item_type")), str)
    return kind == "thread.started" and _thread_of(event) is not None


def _thread_of(event: Fields) -> str | None:
    is_beginning = event.get("type") in _BEGINNINGS
    return text_in(event, "thread_id", "session_id") if is_beginning else None


class ExecItem(NamedTuple):
    """An item in an event of any stage.

    Attributes:
        kind: Its type.
        id: Its id.
        report: Its text, or its call; without output where it has none.
        waits: Whether its content is known only when it is completed.
    """

    kind: str
    id: str | None
    report: ToolReport
    waits: bool = False


_SPAN_KINDS: Final[Mapping[str, SpanKind]] = {
    "agent_message": SpanKind.MESSAGE,
    "plan": SpanKind.MESSAGE,
    "reasoning": SpanKind.REASONING,
    "error": SpanKind.LOG,
}
"""The items that say something; the others are calls, or unknown."""

_NO_ARGUMENTS: Final = frozenset({"id", "type", "item_type", "status"})


def _item_of(event: Fields) -> ExecItem | None:
    item = event.get("item")
    if not isinstance(item, dict):
        return None
    kind = text_in(item, "type", "item_type") or "item"
    if kind == "assistant_message":  # so the first builds called it
        kind = "agent_message"
    item_id = as_text(item.get("id"))
    if kind == "todo_list":
        return ExecItem(kind, item_id, ToolReport(kind, _checklist(item.get("items"))))
    if kind == "error":
        text = content_text(item.get("message")) or dump_text(item)
        return ExecItem(kind, item_id, ToolReport(kind, text))
    if kind in _SPAN_KINDS:
        return ExecItem(kind, item_id, ToolReport(kind, content_text(item.get("text"))))
    report = report_of(kind, item)
    if report is not None:
        return ExecItem(kind, item_id, report)
    fields = {name: value for name, value in item.items() if name not in _NO_ARGUMENTS}
    waits = kind != "web_search" or as_text(item.get("query")) is None
    return ExecItem(kind, item_id, ToolReport(kind, fields), waits)


def _checklist(items: object) -> str:
    """Return the agent's plan, a line a step."""
    if not isinstance(items, list):
        return dump_text(items)
    lines = []
    for step in items:
        if isinstance(step, Mapping):
            mark = "x" if step.get("completed") is True else " "
            lines.append(f"[{mark}] {content_text(step.get('text'))}")
        else:
            lines.append(dump_text(step))
    return "\n".join(lines)


def _text_of(event: Fields) -> str:
    """Return the text of an event without an item: an error's message, else all of it."""
    error = event.get("error")
    if isinstance(error, dict):
        error = error.get("message")
    text = content_text(error) or content_text(event.get("message"))
    return text if text.strip() else dump_text(event)


class _Table(RewordedLines):
    reworded = frozenset({SpanKind.LOG, SpanKind.TOOL_RESULT})


class CodexExecParser(CodexLines):
    """Makes the spans of one or several runs in a row."""

    def __init__(self) -> None:
        super().__init__(_Table())
        self._text_lines: tuple[int, int] | None = None  # the first and the last
        self._open: dict[str, int] = {}
        self._held: dict[str, tuple[int, ExecItem]] = {}
        self._plan: object = None
        self._last: int | None = None
        self._error: str | None = None
        self._thread: str | None = None
        self._spent = Tokens()

    def feed(self, number: int, line: bytes, cut_off: bool, /) -> None:
        """Read a line.

        Args:
            number: The number of the line, from 1 on.
            line: The line without its line feed.
            cut_off: Whether it is a last line without a line feed.
        """
        if not line.strip():
            return
        event = None if b"\0" in line else _event_on(line)
        if event is not None:
            self._end_text()
            self._take(number, event)
        elif _EVENT_BEGINNING.match(line):
            self._end_text()
            for damaged_event in self._damaged_records(number, line, cut_off):
                self._take(number, damaged_event)
        else:
            first = number if self._text_lines is None else self._text_lines[0]
            self._text_lines = (first, number)

    def finish(self) -> None:
        """Show the text at the end, and the items that began without saying anything more."""
        self._end_text()
        self._show_held()

    def text(self, data: bytes, kind: SpanKind, index: int, /) -> str:
        """Return the text of a span; of a call or of its result where an event has both.

        Args:
            data: The content of its lines.
            kind: The kind of the span.
            index: The index of the span.
        """
        event = None if b"\n" in data else _event_on(data)
        if event is None and _EVENT_BEGINNING.match(data):
            event = self._record_of(index, data)
        if event is None:
            return data.decode("utf-8", "replace")
        item = _item_of(event)
        if item is None:
            return _text_of(event)
        if kind is SpanKind.TOOL_RESULT:
            return item.report.output or ""
        return dump_text(item.report.arguments)

    def _end_text(self) -> None:
        if self._text_lines is not None:
            self.table.add(*self._text_lines, (SpanKind.LOG, Role.LOG, AGENT, None))
            self._text_lines = None

    def _take(self, number: int, event: Fields) -> None:
        kind = str(event.get("type"))
        error = self._error
        self._error = None
        item = _item_of(event)
        if item is not None:
            self._take_item(number, kind, item)
        elif kind in _BEGINNINGS:
            self._begin(_thread_of(event))
        elif kind == "turn.completed":
            self._show_held()
            self._spend(event.get("usage"))
            self._last = None
        elif kind in ("turn.failed", "error"):
            self._show_held()
            text = _text_of(event)
            if kind == "error":
                self._error = text
            if kind == "error" or text != error:  # else it repeats the stream's error
                self._log(number, kind, SpanStatus.ERROR)
        elif kind not in _SILENT:
            self._log(number, kind)

    def _begin(self, thread: str | None) -> None:
        """Begin another process: ids restart, and counts continue only for the same thread."""
        self._show_held()
        self._open.clear()
        self._plan = None
        self._last = None
        if thread != self._thread:
            self._thread = thread
            self._spent = Tokens()

    def _take_item(self, number: int, stage: str, item: ExecItem) -> None:
        is_completed = stage == "item.completed"
        if item.kind == "todo_list":
            if item.report.arguments != self._plan:
                self._plan = item.report.arguments
                self._add_call(number, item)
        elif item.kind == "error":
            if is_completed:
                self._log(number, item.kind, SpanStatus.ERROR, item.id)
        elif item.kind in _SPAN_KINDS:
            if is_completed:
                shape = (_SPAN_KINDS[item.kind], Role.AGENT, AGENT, None)
                self._last = self._add(number, shape, item.id)
        elif is_completed:
            self._complete(number, item)
        elif stage == "item.started" and item.id is not None:
            if item.waits:
                self._held[item.id] = (number, item)
            else:
                self._open[item.id] = self._add_call(number, item)

    def _complete(self, number: int, item: ExecItem) -> None:
        call = None
        if item.id is not None:
            self._held.pop(item.id, None)
            call = self._open.pop(item.id, None)
        if not _is_call(item):
            self._log(number, item.kind, key=item.id)
            return
        if call is None:
            call = self._add_call(number, item)
        output = item.report.output
        if output is None:
            return
        status = item.report.status
        if status is SpanStatus.UNKNOWN:
            status = status_of_result(output)
        shape = (SpanKind.TOOL_RESULT, Role.TOOL, AGENT, self.table.name_of(call))
        key = f"{item.id}:result" if item.id else None
        result = self._add(number, shape, key, None, status, call)
        for thread in item.report.spawned:
            self.table.spawned.setdefault(thread, self.table.key_of(result))

    def _show_held(self) -> None:
        """Show the items that started and had no other event by the end of their turn."""
        for number, item in self._held.values():
            if _is_call(item):
                self._add_call(number, item)
            else:
                self._log(number, item.kind, key=item.id)
        self._held.clear()

    def _add_call(self, number: int, item: ExecItem) -> int:
        key = f"{item.id}:call" if item.id else None
        shape = (SpanKind.TOOL_CALL, Role.AGENT, AGENT, item.report.name)
        self._last = self._add(number, shape, key)
        return self._last

    def _log(
        self,
        number: int,
        name: str,
        status: SpanStatus = SpanStatus.UNKNOWN,
        key: str | None = None,
    ) -> None:
        self._add(number, (SpanKind.LOG, Role.LOG, AGENT, name), key, status=status)

    def _spend(self, usage: object) -> None:
        """Give the turn's tokens to its last step: the counts are those of the whole thread."""
        counts = fields_of(usage)
        total = tokens_of(counts.get("input_tokens"), counts.get("output_tokens"))
        if total is None:
            return
        tokens = Tokens(
            _difference(total.input, self._spent.input),
            _difference(total.output, self._spent.output),
        )
        self._spent = total
        if (tokens.input or 0) < 0 or (tokens.output or 0) < 0:  # the count began anew
            tokens = total
        if self._last is not None:
            self.table.set_tokens(self._last, tokens)


def _is_call(item: ExecItem) -> bool:
    return item.kind == "web_search" or item.report.output is not None


def _difference(total: int | None, previous: int | None) -> int | None:
    return None if total is None else total - (previous or 0)
