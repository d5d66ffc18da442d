"""The output of ``claude -p --output-format stream-json``: one JSON message a line, a result last.

Spans are made as from a session file, in the order of the lines. The messages of a sub-agent name
the call that started it; their keys begin with that call's id. The result is shown only if it
differs from the last message. The parts of a message (``stream_event``) are shown only if the whole
message is never written. Lines that are no JSON are logs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from mast_tui.traces.index.span_table import list_problem
from mast_tui.traces.io.json_lines import NUL_BYTES
from mast_tui.traces.io.json_values import as_text, content_text, dump_text
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem, Role, SpanKind, SpanStatus
from mast_tui.traces.readers.base import CUT_OFF, FormatReader, extended_range
from mast_tui.traces.readers.chat.pieces import Piece
from mast_tui.traces.readers.claude_code.reader import AgentThread, TraceBuilder
from mast_tui.traces.readers.claude_code.records import (
    CLAUDE_CODE,
    RecordEntry,
    entry_of,
    hash_of,
    note_pieces,
    pieces_of,
    records_on,
    type_of,
)
from mast_tui.traces.readers.json_fields import Fields, fields_of, name_set, text_in

_EVENT_TYPE_BYTES: Final = b'"stream_event"'
_BYTES_BEFORE_RECORD: Final = b"\xef\xbb\xbf\0 \t\r"
_BOOKKEEPING_TYPES: Final = name_set("""
    control_cancel_request control_request control_response keep_alive rate_limit_event
    stream_event tool_progress
""")
_SYSTEM_BOOKKEEPING_TYPES: Final = name_set(
    "hook_progress hook_started init session_state_changed status task_progress task_updated"
)
_TEXT_PIECE: Final = Piece(SpanKind.LOG, Role.LOG, agent="log", text="", name="text")
_PARTIAL_PIECE: Final = Piece(SpanKind.MESSAGE, Role.AGENT, agent=CLAUDE_CODE, text="")


def _recognises(source: Source) -> bool:
    """Return whether a first record is a message of a stream, and none is of a session file."""
    records = source.head_records
    if any("parentUuid" in record or "tool_call" in record for record in records):
        return False  # a session file, or a stream of Cursor
    return any(map(_is_stream_message, records))


def _read(source: Source) -> FileReport:
    """Return one trace."""
    return FileReport(
        source.path, format=READER.name, traces=(_StreamBuilder(source).trace(READER),)
    )


READER: Final = FormatReader("claude-code-stream", _recognises, _read)
"""Reads the printed messages of a run, or of several runs that continue one another."""


def _is_stream_message(record: Fields) -> bool:
    """Return whether a record is the beginning, a message or the result of a session."""
    if as_text(record.get("session_id")) is None:
        return False
    kind = record.get("type")
    if kind == "system":
        return record.get("subtype") == "init"
    if kind in ("user", "assistant"):
        return isinstance(record.get("message"), Mapping)
    return kind == "result" and "subtype" in record and "num_turns" in record


def _shown_pieces_of(record: Fields) -> list[Piece]:
    """Return the pieces of a record that have spans; none for the program's bookkeeping."""
    kind = type_of(record)
    if kind in _BOOKKEEPING_TYPES:
        return []
    if kind == "result":
        return [_result_piece(record)]
    if kind == "system":
        subtype = as_text(record.get("subtype"))
        return [] if subtype in _SYSTEM_BOOKKEEPING_TYPES else note_pieces(record)
    return pieces_of(record)


def _result_piece(record: Fields) -> Piece:
    """Return the piece of a run's result: its last message, or its error."""
    subtype = as_text(record.get("subtype")) or "result"
    text = as_text(record.get("result"))
    if record.get("is_error") is True or subtype.startswith("error"):
        text = text or content_text(record.get("errors")) or subtype
        error = SpanStatus.ERROR
        return Piece(
            SpanKind.LOG, Role.SYSTEM, agent="system", text=text, name=subtype, status=error
        )
    if text is None:
        text = dump_text(record.get("structured_output"))
    return Piece(SpanKind.MESSAGE, Role.AGENT, agent=CLAUDE_CODE, text=text, name="result")


def _records_on(line: bytes, number: int, problems: list[Problem]) -> Sequence[Fields]:
    """Return the records on a line; empty for a line of text."""
    if not line.lstrip(_BYTES_BEFORE_RECORD).startswith(b"{"):
        return ()
    return records_on(line, number, False, problems)


def _caller_of(record: Fields) -> str | None:
    """Return the id of the call that started a message's sub-agent; None for the main agent."""
    return as_text(record.get("parent_tool_use_id"))


def _delta_text(record: Fields) -> str:
    """Return the text that an event adds to a partial message."""
    event = fields_of(record.get("event"))
    if event.get("type") != "content_block_delta":
        return ""
    delta = fields_of(event.get("delta"))
    text = delta.get("text", delta.get("thinking"))
    return text if isinstance(text, str) else ""


class _StreamBuilder(TraceBuilder):
    """Makes the spans of a stream, in the order of the lines."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._thread_by_caller: dict[str, AgentThread] = {}
        self._agent_type_by_call: dict[str, str] = {}
        self._last_message: tuple[int, int] | None = None
        """The hash of its text, and the index of its span."""
        self._text_line_range: tuple[int, int] | None = None
        """The first and the last number of the lines of text since the last record, if any."""
        self._partial_lines_by_caller: dict[str | None, tuple[int, int]] = {}
        """The first and the last number of the lines of each agent's partial message."""

    @staticmethod
    def texts_on_lines(data: bytes, /) -> list[str]:
        """Return the texts of the spans that were made of some lines of the stream.

        - One line with a record: the text of each of its pieces.
        - Lines without a record: all lines as one text.
        - Lines of a partial message: the texts of its events, as one text.
        """
        data = data.replace(b"\0", b"")  # the spans were made without NUL bytes too
        lines = data.split(b"\n")
        records = _records_on(lines[0], 0, [])
        if len(lines) == 1 and any(type_of(record) != "stream_event" for record in records):
            return [piece.text for record in records for piece in _shown_pieces_of(record)]
        if not records or type_of(records[0]) != "stream_event":
            return [data.decode("utf-8", "replace").strip("\r\n")]
        caller = _caller_of(records[0])
        event_lines = (line for line in lines if _EVENT_TYPE_BYTES in line)
        events = (event for line in event_lines for event in _records_on(line, 0, []))
        return ["".join(_delta_text(event) for event in events if _caller_of(event) == caller)]

    def feed(self, number: int, line: bytes, ends_open: bool, /) -> None:
        """Read a line.

        Args:
            number: The number of the line, from 1 on.
            line: The line without its line feed.
            ends_open: Whether it is a last line without a line feed.
        """
        problems = self.table.problems
        if b"\0" in line:
            list_problem(problems, number, NUL_BYTES)
            line = line.replace(b"\0", b"")
        problem_count = len(problems)
        records = _records_on(line, number, problems)
        if records:
            self._add_text_span()
        else:
            del problems[problem_count:]  # a line of text is no damaged record
            self._take_text_line(number, line, ends_open)
        piece_count = 0
        for record in records:
            self.native_id = self.native_id or as_text(record.get("session_id"))
            if type_of(record) == "stream_event":
                self._take_event(number, record)
            else:
                piece_count += self._add_record(number, record, first_piece_index=piece_count)

    def _take_text_line(self, number: int, line: bytes, ends_open: bool) -> None:
        """Add a line to the text since the last record, or report it as a cut-off record."""
        if ends_open and line.lstrip().startswith(b'{"'):
            list_problem(self.table.problems, number, CUT_OFF)
        elif line.strip():
            self._text_line_range = extended_range(self._text_line_range, number)

    def finish(self) -> None:
        """Add the spans of the text and the partial messages at the end of the file."""
        self._add_text_span()
        for caller in list(self._partial_lines_by_caller):
            self._add_partial_span(caller)

    def _add_record(self, number: int, record: Fields, first_piece_index: int) -> int:
        """Add the spans of a record; return the number of its pieces.

        A result that repeats the last message has no span.
        """
        caller = _caller_of(record)
        pieces = _shown_pieces_of(record)
        entry = entry_of(record, number, pieces, first_piece_index)
        entry.sub_agents = ()  # sub-agents of a stream have no files

        if record.get("subtype") == "init":
            self.model = self.model or as_text(record.get("model"))
            self.version = text_in(record, "claude_code_version", "version")
        self.model = self.model or entry.model
        kind = type_of(record)
        if kind == "assistant":
            self._partial_lines_by_caller.pop(caller, None)
        elif kind == "result":
            self._add_partial_span(caller)
            if self._fold_into_last_message(pieces[0]):
                return len(pieces)

        for spawn in entry.spawns:
            if spawn.agent_type is not None:
                self._agent_type_by_call[spawn.call_id] = spawn.agent_type
        self.add(entry, self._thread_of_caller(caller))
        if caller is None:  # the main thread, not a sub-agent
            self.task = self.task or entry.task
            if kind == "assistant":
                self._record_message(pieces)
        return len(pieces)

    def _record_message(self, pieces: list[Piece]) -> None:
        """Record the last text in an answer of the agent, for comparison with the run's result."""
        for index_from_end, piece in enumerate(reversed(pieces), 1):
            # A call, a result or a note has another name.
            if piece.name in (None, "api_error") and piece.text:
                span_index = len(self.table) - index_from_end  # the pieces are the last spans
                self._last_message = (hash_of(piece.text), span_index)
                return

    def _fold_into_last_message(self, result: Piece) -> bool:
        """Compare a run's result with the last message; return whether the result needs no span.

        A repeated error sets the status of the message. The message is then forgotten.
        """
        last_message = self._last_message
        self._last_message = None
        failed = result.status is SpanStatus.ERROR
        if not failed and not result.text.strip():
            return True
        if last_message is None:
            return False
        text_hash, span_index = last_message
        if text_hash != hash_of(result.text):
            return False
        if failed:
            self.table.set_status(span_index, SpanStatus.ERROR)
        return True

    def _thread_of_caller(self, call_id: str | None) -> AgentThread:
        """Return the thread of the sub-agent that a call started; the main thread for None."""
        if call_id is None:
            return AgentThread()
        # The stream names a sub-agent only by the call that started it.
        new_thread = AgentThread.of_sub_agent(
            agent_id=call_id, agent_type=self._agent_type_by_call.get(call_id), call_id=call_id
        )
        return self._thread_by_caller.setdefault(call_id, new_thread)

    def _take_event(self, number: int, record: Fields) -> None:
        """Add the line of an event to a partial message, or begin a new message.

        Each caller has its own: the call that started a sub-agent, or None for the main agent.
        """
        caller = _caller_of(record)
        if fields_of(record.get("event")).get("type") == "message_start":
            # The remaining partial lines are of a message that was never written whole.
            self._add_partial_span(caller)
        elif _delta_text(record):
            line_range = self._partial_lines_by_caller.get(caller)
            self._partial_lines_by_caller[caller] = extended_range(line_range, number)

    def _add_text_span(self) -> None:
        """Add a log span for the lines of text before a record."""
        if self._text_line_range is not None:
            self._add_lines_span(self._text_line_range, _TEXT_PIECE, caller=None)
            self._text_line_range = None

    def _add_partial_span(self, caller: str | None) -> None:
        """Add the span of a caller's partial message without a whole message."""
        lines = self._partial_lines_by_caller.pop(caller, None)
        if lines is not None:
            self._add_lines_span(lines, _PARTIAL_PIECE, caller)

    def _add_lines_span(self, lines: tuple[int, int], piece: Piece, caller: str | None) -> None:
        first_line, last_line = lines
        self.add(RecordEntry(first_line, (piece,)), self._thread_of_caller(caller), last_line)
