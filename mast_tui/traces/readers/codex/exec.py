"""What ``codex exec --json`` prints: one event a line, among whatever else reached the terminal.

An item that starts and completes is a call with its result; its key is ``<item id>:call`` and
``<item id>:result``, that of any other item its id. Ids begin anew with every process. Lines that
are no events, such as warnings, are kept as log spans, each run of them one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

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
    TraceMeta,
)
from mast_tui.traces.readers.base import CUT_OFF, identity_of
from mast_tui.traces.readers.codex.records import (
    AGENT,
    RewordedLines,
    answer_of_mcp,
    receivers_of,
    status_of_word,
    status_or_word,
    tool_of_mcp,
    with_error,
)
from mast_tui.traces.readers.json_fields import Fields, fields_of, name_set, object_in, text_in
from mast_tui.traces.result_status import status_of_code, status_of_result

_EVENT_MARKS: Final = (b'"thread.', b'"turn.', b'"item.', b'"session.created"')
_BROKEN_EVENT: Final = (b'{"type":"thread.', b'{"type":"turn.', b'{"type":"item.')
_OTHER_EVENTS: Final = frozenset({"session.created", "request_user_input"})
_SILENT: Final = frozenset(
    {"thread.started", "session.created", "turn.started", "turn.completed", "item.plan.delta"}
)


class CodexExecReader:
    """Reads the output of ``codex exec --json``, slice by slice."""

    name: Final = "codex-exec"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Whether a line of the head is an event that only ``codex exec`` writes."""
        return any(map(_is_telling, _events_among(source.head_lines)))

    def read(self, source: Source) -> FileReport:
        """One trace, of which the first slice has been read."""
        index = LineIndex.of(source)
        parser = CodexExecParser()
        feed_lines(index, parser, FIRST_SLICE)
        thread = next(filter(None, map(_thread_of, _events_among(source.head_lines))), None)
        identity = identity_of(self, source.path, source.head, native=thread)
        trace = Trace(identity, source.path, LineSpans(index, parser))
        return FileReport(source.path, format=self.name, traces=(trace,))


READER: Final = CodexExecReader()


def _events_among(lines: list[bytes]) -> Iterator[Fields]:
    for line in lines:
        if any(mark in line for mark in _EVENT_MARKS) and (event := _event_of(line)) is not None:
            yield event


def _event_of(line: bytes) -> Fields | None:
    """The event on a line; None where it is anything else."""
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
    return kind in _OTHER_EVENTS or kind.startswith(("thread.", "turn.", "item."))


def _is_telling(event: Fields) -> bool:
    """Whether an event is of a kind that cannot be mistaken for another program's."""
    kind = event.get("type")
    if kind == "turn.completed":
        return isinstance(event.get("usage"), dict)
    if kind in ("item.started", "item.updated", "item.completed"):
        item = event.get("item")
        return isinstance(item, dict) and isinstance(item.get("type", item.get("item_type")), str)
    return kind == "thread.started" and _thread_of(event) is not None


def _thread_of(event: Fields) -> str | None:
    if event.get("type") not in ("thread.started", "session.created"):
        return None
    return text_in(event, "thread_id", "session_id")


class _Table(RewordedLines):
    reworded = frozenset({SpanKind.LOG, SpanKind.TOOL_RESULT})


class CodexExecParser:
    """Makes spans of the events of one or several runs in a row."""

    def __init__(self) -> None:
        self.table = _Table()
        self.meta = TraceMeta(system=AGENT)
        self._run: tuple[int, int] | None = None  # first and last line
        self._open: dict[str, int] = {}
        self._held: dict[str, tuple[int, ExecItem]] = {}
        self._plan: str | None = None
        self._last: int | None = None
        self._error: str | None = None
        self._thread: str | None = None
        self._spent = Tokens()

    def feed(self, number: int, line: bytes, cut_off: bool, /) -> None:
        """Take line ``number``; ``cut_off`` marks a last line without its line feed."""
        event = _event_of(line)
        if event is not None:
            self._end_run()
            self._take(number, event)
        elif line.lstrip().startswith(_BROKEN_EVENT):
            self._end_run()
            broken = "an event that is not JSON, left out"
            self.table.add_problem(number, CUT_OFF if cut_off else broken)
        elif line.strip():
            self._run = (number if self._run is None else self._run[0], number)

    def finish(self) -> None:
        """Show the text at the end, and what was begun without more being known of it."""
        self._end_run()
        self._show_held()

    def text(self, data: bytes, kind: SpanKind, /) -> str:
        """The text of the span on these lines; of two the call's or the result's."""
        event = None if b"\n" in data else _event_of(data)
        if event is None:
            return data.decode("utf-8", "replace")
        item = _item_of(event)
        if item is None:
            return _words_of(event)
        return item.output or "" if kind is SpanKind.TOOL_RESULT else item.text

    def _end_run(self) -> None:
        run, self._run = self._run, None
        if run is not None:
            self.table.add(*run, (SpanKind.LOG, Role.LOG, AGENT, None))

    def _take(self, number: int, event: Fields) -> None:
        kind = event.get("type")
        item = _item_of(event)
        if item is not None:
            self._take_item(number, str(kind), item)
        elif kind in ("thread.started", "session.created"):
            self._begin(_thread_of(event))
        elif kind == "turn.completed":
            self._show_held()
            self._spend(event.get("usage"))
            self._last = None
        elif kind not in _SILENT:
            failed = kind in ("turn.failed", "error")
            if failed:
                self._show_held()
            words = _words_of(event)
            if not (kind == "turn.failed" and words == self._error):  # the stream's error again
                status = SpanStatus.ERROR if failed else SpanStatus.UNKNOWN
                self._log(number, str(kind), status)
            self._error = words if kind == "error" else None
            return
        self._error = None

    def _begin(self, thread: str | None) -> None:
        """Another process: its ids begin anew, and its count goes on only for the same thread."""
        self._show_held()
        self._open.clear()
        self._plan = self._last = None
        if thread != self._thread:
            self._thread, self._spent = thread, Tokens()

    def _take_item(self, number: int, kind: str, item: ExecItem) -> None:
        completed = kind == "item.completed"
        if item.kind in TEXTS:
            if completed:
                span = SpanKind.REASONING if item.kind == "reasoning" else SpanKind.MESSAGE
                self._last = self._add(number, span, item.id)
        elif item.kind == "error":
            if completed:
                self._log(number, item.kind, SpanStatus.ERROR, item.id)
        elif item.kind == "todo_list":
            if item.text != self._plan:
                self._plan = item.text
                self._add_call(number, item)
        elif completed:
            self._complete(number, item)
        elif kind == "item.started" and item.id is not None:
            if item.waits:
                self._held[item.id] = (number, item)
            else:
                self._open[item.id] = self._add_call(number, item)

    def _complete(self, number: int, item: ExecItem) -> None:
        call = None
        if item.id is not None:
            self._held.pop(item.id, None)
            call = self._open.pop(item.id, None)
        if item.kind not in CALLS:
            self._log(number, item.kind, SpanStatus.UNKNOWN, item.id)
            return
        if call is None:
            call = self._add_call(number, item)
        if item.output is None:
            return
        result = self.table.add(
            number,
            number,
            (SpanKind.TOOL_RESULT, Role.TOOL, AGENT, self.table.name_of(call)),
            key=f"{item.id}:result" if item.id else None,
            parent=call,
            status=item.status
            if item.status is not SpanStatus.UNKNOWN
            else status_of_result(item.output),
        )
        for thread in item.spawned:
            self.table.spawned.setdefault(thread, self.table.key_of(result))

    def _show_held(self) -> None:
        """Show what was started and has said nothing more by the end of its turn."""
        for number, item in self._held.values():
            if item.kind in CALLS:
                self._add_call(number, item)
            else:
                self._log(number, item.kind, SpanStatus.UNKNOWN, item.id)
        self._held.clear()

    def _add_call(self, number: int, item: ExecItem) -> int:
        key = f"{item.id}:call" if item.id else None
        self._last = self._add(number, SpanKind.TOOL_CALL, key, item.name)
        return self._last

    def _add(self, number: int, kind: SpanKind, key: str | None, name: str | None = None) -> int:
        return self.table.add(number, number, (kind, Role.AGENT, AGENT, name), key)

    def _log(self, number: int, name: str, status: SpanStatus, key: str | None = None) -> None:
        shape = (SpanKind.LOG, Role.LOG, AGENT, name)
        self.table.add(number, number, shape, key, status=status)

    def _spend(self, usage: object) -> None:
        """Give the turn's last step what the turn took: the counts are those of the thread.

        Cached tokens are part of the input, those of reasoning part of the output.
        """
        counts = fields_of(usage)
        total = tokens_of(counts.get("input_tokens"), counts.get("output_tokens"))
        if total is None:
            return
        spent, self._spent = self._spent, total
        if self._last is None:
            return
        taken, given = _since(total.input, spent.input), _since(total.output, spent.output)
        if (taken or 0) < 0 or (given or 0) < 0:  # a count that began anew
            taken, given = total.input, total.output
        self.table.set_tokens(self._last, Tokens(taken, given))


def _since(total: int | None, before: int | None) -> int | None:
    return None if total is None else total - (before or 0)


def _item_of(event: Fields) -> ExecItem | None:
    item = event.get("item")
    return exec_item(item) if isinstance(item, dict) else None


def _words_of(event: Fields) -> str:
    """The text of an event that is no item: an error's message, else all of it."""
    error = event.get("error")
    if isinstance(error, dict):
        error = error.get("message")
    words = content_text(error) or content_text(event.get("message"))
    return words if words.strip() else dump_text(event)


TEXTS: Final = frozenset({"agent_message", "plan", "reasoning"})
CALLS: Final = name_set(
    "collab_tool_call command_execution file_change mcp_tool_call todo_list web_search"
)
_OLD_NAMES: Final[Mapping[str, str]] = {"assistant_message": "agent_message"}
_NO_ARGUMENTS: Final = frozenset({"id", "type", "item_type", "status"})


@dataclass(frozen=True, slots=True)
class ExecItem:
    """An item: ``text`` is what it says or asks, ``output`` what came of it.

    ``output`` is None where there is nothing to tell. ``waits`` marks one that tells what it is
    about only when it is completed. ``spawned`` are the threads of sub-agents that it began.
    """

    kind: str
    id: str | None
    text: str
    name: str | None = None
    output: str | None = None
    status: SpanStatus = SpanStatus.UNKNOWN
    waits: bool = False
    spawned: tuple[str, ...] = ()


def exec_item(item: Fields) -> ExecItem:
    """The item in an event of any stage."""
    said = text_in(item, "type", "item_type") or "item"
    kind, key = _OLD_NAMES.get(said, said), as_text(item.get("id"))
    if kind in TEXTS:
        return ExecItem(kind, key, content_text(item.get("text")))
    if kind == "error":
        return ExecItem(kind, key, content_text(item.get("message")) or dump_text(item))
    if kind == "todo_list":
        return ExecItem(kind, key, _checklist(item.get("items")), kind)
    if kind == "command_execution":
        status = status_or_word(status_of_code(item.get("exit_code")), item)
        asked, output = {"command": item.get("command")}, item.get("aggregated_output")
        return ExecItem(kind, key, dump_text(asked), "shell", content_text(output), status)
    if kind == "mcp_tool_call":
        text, status = with_error(item, *answer_of_mcp(item.get("result")))
        return ExecItem(
            kind, key, dump_text(item.get("arguments")), tool_of_mcp(item), text, status
        )
    if kind == "collab_tool_call":
        return _collaboration(item, key)
    if kind == "file_change":
        asked, came_to = {"changes": item.get("changes")}, as_text(item.get("status"))
        return ExecItem(kind, key, dump_text(asked), kind, came_to or "", status_of_word(came_to))
    asked = {name: value for name, value in item.items() if name not in _NO_ARGUMENTS}
    empty = kind != "web_search" or as_text(item.get("query")) is None
    return ExecItem(kind, key, dump_text(asked), kind, waits=empty)


def _collaboration(item: Fields, key: str | None) -> ExecItem:
    names = receivers_of(item)
    tool = as_text(item.get("tool")) or "agent"
    spawns = tool == "spawn_agent"
    asked: dict[str, object] = {"prompt": item["prompt"]} if item.get("prompt") else {}
    if names and not spawns:
        asked["receiver_thread_ids"] = list(names)
    told = {"receiver_thread_ids": list(names)} if names and spawns else {}
    return ExecItem(
        "collab_tool_call",
        key,
        dump_text(asked),
        tool,
        dump_text({**told, "agents_states": item.get("agents_states")}),
        status_of_word(item.get("status")),
        spawned=names if spawns else (),
    )


def _checklist(items: object) -> str:
    """The agent's plan, a line a step."""
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
