"""What ``claude -p --output-format stream-json`` prints: one JSON message a line, a result last.

Spans are made as of a session file, in the order of the lines; the messages of a sub-agent name
the call that began it, and their keys begin with that call's id. The result is shown where it says
more than the last message did. Pieces of a message that is being written (``stream_event``) are
shown only where the whole message never came. Nothing is made of the record with which a session
begins (``init``) and of the others in ``_BOOKKEEPING`` and ``_SYSTEM_BOOKKEEPING``. Lines that are
no JSON are logs.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mast_tui.traces.index.line_index import LineIndex
from mast_tui.traces.index.span_table import list_problem
from mast_tui.traces.io.json_values import as_text, content_text, dump_text
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem, Role, SpanKind, SpanStatus
from mast_tui.traces.readers.base import CUT_OFF
from mast_tui.traces.readers.claude_code.records import (
    AGENT,
    Facts,
    Part,
    facts_of,
    mark_of,
    parts_of,
    system_parts,
    type_of,
    without_text,
)
from mast_tui.traces.readers.claude_code.trace import SpanMaker, Voice, lines_of, short_name
from mast_tui.traces.readers.json_fields import Fields, fields_of, name_set, object_in, text_in

_LINES: Final = 0
"""The part that stands for all lines of a span, of those counted from 1 on one line."""

_CUT_INIT: Final = re.compile(
    rb'\s*\{"type":\s*"system",\s*"subtype":\s*"init",.{0,2000}"session_id"'
)
_EVENT_MARK: Final = b'"stream_event"'
_BOOKKEEPING: Final = name_set("""
    control_cancel_request control_request control_response keep_alive rate_limit_event
    stream_event tool_progress
""")
_SYSTEM_BOOKKEEPING: Final = name_set(
    "hook_progress hook_started init session_state_changed status task_progress task_updated"
)


class ClaudeStreamReader:
    """Reads the printed messages of one run, or of several that continue one another."""

    name: Final = "claude-code-stream"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Whether one of the first records begins a session, or is a message or result of one."""
        records = source.head_records
        if any("parentUuid" in record for record in records):
            return False
        if any(map(_is_message, records)):
            return True
        cut_off = source.head.rpartition(b"\n")[2]
        return len(source.head) < source.size and _CUT_INIT.match(cut_off) is not None

    def read(self, source: Source) -> FileReport:
        """One trace."""
        index = LineIndex.of(source)
        stream = _Stream()
        for number, line, ends_open in lines_of(index):
            stream.feed(number, line, ends_open)
        stream.finish()
        trace = stream.maker.trace(
            self,
            source,
            index,
            _texts_of,
            native=stream.session,
            model=stream.model,
            version=stream.version,
            problems=stream.problems,
            spawned={},
        )
        return FileReport(source.path, format=self.name, traces=(trace,))


READER: Final = ClaudeStreamReader()


def _is_message(record: Fields) -> bool:
    if as_text(record.get("session_id")) is None:
        return False
    kind = record.get("type")
    if kind == "system":
        return record.get("subtype") == "init"
    if kind in ("user", "assistant"):
        return isinstance(record.get("message"), Mapping)
    return kind == "result" and "subtype" in record and "num_turns" in record


def _parts(record: Fields) -> list[Part]:
    kind = type_of(record)
    if kind in _BOOKKEEPING:
        return []
    if kind == "result":
        return [_result(record)]
    if kind == "system":
        subtype = as_text(record.get("subtype"))
        return [] if subtype in _SYSTEM_BOOKKEEPING else system_parts(record)
    return parts_of(record)


def _result(record: Fields) -> Part:
    """The end of a run: its last words, or what went wrong."""
    subtype = as_text(record.get("subtype")) or "result"
    text = as_text(record.get("result"))
    if record.get("is_error") is True or subtype.startswith("error"):
        text = text or content_text(record.get("errors")) or subtype
        return Part(1, SpanKind.LOG, Role.SYSTEM, text, name=subtype, status=SpanStatus.ERROR)
    if text is None:
        text = dump_text(record.get("structured_output")) or ""
    return Part(1, SpanKind.MESSAGE, Role.AGENT, text, name="result")


def _texts_of(data: bytes) -> dict[int, str]:
    record = None if b"\n" in data else _object_of(data)
    if record is None or record.get("type") == "stream_event":
        return {_LINES: _lines_text(data)}
    return {part.number: part.text for part in _parts(record)}


def _lines_text(data: bytes) -> str:
    """The text of several lines: what they say, or the pieces of a message that they bring."""
    lines = data.split(b"\n")
    first = _event_of(lines[0])
    if first is None:
        return data.decode("utf-8", "replace").strip("\r\n")
    events = (event for line in lines if (event := _event_of(line)) is not None)
    return "".join(_piece(event) for caller, event in events if caller == first[0])


def _event_of(line: bytes) -> tuple[str | None, Fields] | None:
    """Whose message a line brings a piece of, and the piece; None for other lines."""
    if _EVENT_MARK not in line:
        return None
    record = _object_of(line) or {}
    event = record.get("event")
    if record.get("type") != "stream_event" or not isinstance(event, Mapping):
        return None
    return as_text(record.get("parent_tool_use_id")), event


def _piece(event: Fields) -> str:
    delta = fields_of(event.get("delta"))
    if event.get("type") != "content_block_delta":
        return ""
    piece = delta.get("text", delta.get("thinking"))
    return piece if isinstance(piece, str) else ""


@dataclass(slots=True)
class _Waiting:
    """Lines of which it is not known yet whether they stand for a step of their own."""

    first: int
    last: int
    texts: list[str] = field(default_factory=list)


class _Stream:
    """Makes spans of the lines, given in order."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.maker = SpanMaker(Voice())
        self.model: str | None = None
        self.version: str | None = None
        self.session: str | None = None
        self._voices: dict[str | None, Voice] = {None: self.maker.voice}
        self._types: dict[str, str] = {}
        self._said: tuple[int, int] | None = None
        self._plain: _Waiting | None = None
        self._pieces: dict[str | None, _Waiting] = {}

    def feed(self, number: int, line: bytes, cut_off: bool) -> None:
        """Take line ``number``; ``cut_off`` marks a last line without its line feed."""
        if not line.strip():
            return
        record = _object_of(line)
        if record is None:
            if cut_off and line.lstrip().startswith(b'{"'):
                list_problem(self.problems, number, CUT_OFF)
            else:
                self._take_plain(number, line)
            return
        self._show_plain()
        self.session = self.session or as_text(record.get("session_id"))
        if record.get("type") == "stream_event":
            self._take_event(number, record)
        else:
            self._take(number, record)

    def finish(self) -> None:
        """Every line has been given."""
        self._show_plain()
        for caller in list(self._pieces):
            self._show_pieces(caller)
        self.maker.set_tokens()

    def _take(self, number: int, record: Fields) -> None:
        caller = as_text(record.get("parent_tool_use_id"))
        parts = _parts(record)
        facts = facts_of(record, number, parts)
        if record.get("subtype") == "init":
            self.model = self.model or as_text(record.get("model"))
            self.version = text_in(record, "claude_code_version", "version")
        self.model = self.model or facts.model
        if facts.type == "assistant":
            self._pieces.pop(caller, None)
        elif facts.type == "result":
            self._show_pieces(caller)
            if self._repeats(parts[0]):
                return
        for part in parts:
            if part.agent_type is not None and part.tool_id is not None:
                self._types[part.tool_id] = part.agent_type
        self.maker.add(facts, self._voice(caller))
        if caller is None:
            self._note_said(facts.type, parts)

    def _note_said(self, kind: str, parts: list[Part]) -> None:
        """Remember what the agent said last, which a result repeats."""
        spans = len(self.maker.spans)
        for offset, part in enumerate(reversed(parts), 1):
            if kind == "assistant" and part.name in (None, "api_error") and part.text:
                self._said = (mark_of(part.text), spans - offset)
                return

    def _repeats(self, result: Part) -> bool:
        """Whether a result only says what was said last; if as an error, that was one."""
        said, self._said = self._said, None
        if result.status is not SpanStatus.ERROR and not result.text.strip():
            return True
        if said is None or said[0] != mark_of(result.text):
            return False
        if result.status is SpanStatus.ERROR:
            self.maker.set_failed(said[1])
        return True

    def _voice(self, caller: str | None) -> Voice:
        voice = self._voices.get(caller)
        if voice is None:
            name = caller or ""
            agent = self._types.get(name) or short_name(name)
            voice = self._voices[caller] = Voice(f"{name}/", agent, AGENT, caller)
        return voice

    def _take_plain(self, number: int, line: bytes) -> None:
        if self._plain is None:
            self._plain = _Waiting(number, number)
        self._plain.last = number
        self._plain.texts.append(line.decode("utf-8", "replace"))

    def _show_plain(self) -> None:
        plain, self._plain = self._plain, None
        if plain is not None:
            text = "\n".join(plain.texts)
            self._show(plain, Part(_LINES, SpanKind.LOG, Role.LOG, text, name="text"), None)

    def _take_event(self, number: int, record: Fields) -> None:
        caller = as_text(record.get("parent_tool_use_id"))
        event = record.get("event")
        if not isinstance(event, Mapping):
            return
        if event.get("type") == "message_start":
            self._show_pieces(caller)
        elif piece := _piece(event):
            waiting = self._pieces.setdefault(caller, _Waiting(number, number))
            waiting.last = number
            waiting.texts.append(piece)

    def _show_pieces(self, caller: str | None) -> None:
        """Show what was written of a message that never came as a whole."""
        pieces = self._pieces.pop(caller, None)
        if pieces is not None:
            text = "".join(pieces.texts)
            self._show(pieces, Part(_LINES, SpanKind.MESSAGE, Role.AGENT, text), caller)

    def _show(self, lines: _Waiting, part: Part, caller: str | None) -> None:
        facts = Facts(lines.first, lines.last, "", (without_text(part),))
        self.maker.add(facts, self._voice(caller))


def _object_of(line: bytes) -> Fields | None:
    begins = line.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{")
    return object_in(line) if begins else None
