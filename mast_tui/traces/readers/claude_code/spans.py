"""The spans of a trace of Claude Code: in a table, with texts that are read when asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from errno import ESTALE
from typing import Final

from mast_tui.traces.index.line_index import LineIndex
from mast_tui.traces.index.lines import IndexedSpans
from mast_tui.traces.index.span_table import SpanTable
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import Loaded, Role, SpanKind, Tokens, Trace, TraceMeta
from mast_tui.traces.readers.base import Reader, identity_of
from mast_tui.traces.readers.chat.pieces import Piece
from mast_tui.traces.readers.claude_code.records import CLAUDE_CODE, SPAWNING_TOOLS, RecordEntry

_BYTES_PER_READ: Final = 4 << 20
"""The bytes of a file that are read at a time."""


_SHORT_ID_LENGTH: Final = 8


@dataclass(frozen=True, slots=True)
class AgentThread:
    """The thread of an agent.

    Attributes:
        prefix: The beginning of the keys of the thread's spans.
        agent: The name of the agent.
        asker: The name of the user or agent that prompts it.
        call_id: The id of the call that started a sub-agent, if known.
    """

    prefix: str = ""
    agent: str = CLAUDE_CODE
    asker: str = "user"
    call_id: str | None = None

    @classmethod
    def of_sub_agent(
        cls, agent_id: str, agent_type: str | None = None, call_id: str | None = None
    ) -> AgentThread:
        """Return the thread of a sub-agent.

        Args:
            agent_id: The id with which the keys of its spans begin.
            agent_type: The type of the sub-agent, which is also its name; None if it is unknown.
            call_id: The id of the call that started the sub-agent.
        """
        name = agent_type or f"sub-agent {agent_id[:_SHORT_ID_LENGTH]}"
        return cls(f"{agent_id}/", name, CLAUDE_CODE, call_id)

    def agent_of(self, piece: Piece) -> str:
        """Return the name of the agent or user who wrote a piece."""
        if piece.agent == CLAUDE_CODE or piece.role is Role.TOOL:
            return self.agent
        return self.asker if piece.role is Role.USER else piece.agent


class TraceBuilder(ABC):
    """A builder of a trace's spans, in reading order, from a file that is read line by line.

    Attributes:
        native: The id that the file states for the run.
        task: The first request of the user.
    """

    def __init__(self, source: Source) -> None:
        self.table = SpanTable()
        self.native: str | None = None
        self.model: str | None = None
        self.version: str | None = None
        self.task: str | None = None
        self._source = source
        self._text_positions = array("I")
        self._call_index_by_id: dict[str, int] = {}
        self._last_index_by_response: dict[str, int] = {}
        self._tokens_by_response: dict[str, Tokens] = {}

    @abstractmethod
    def feed(self, number: int, line: bytes, ends_open: bool, /) -> None:
        """Read a line.

        Args:
            number: The number of the line, from 1 on.
            line: The line without its line feed.
            ends_open: Whether it is a last line without a line feed.
        """

    @abstractmethod
    def finish(self) -> None:
        """Add the spans that need the whole file."""

    @staticmethod
    @abstractmethod
    def texts_on_lines(lines: bytes, /) -> Sequence[str]:
        """Return the texts of all pieces on some lines."""

    def trace(self, reader: Reader) -> Trace:
        """Read the file and return its trace."""
        index = LineIndex.of_source(self._source)
        while not index.complete:
            line_count = len(index)
            lines = index.advance(_BYTES_PER_READ)
            for line_offset, line in enumerate(lines, 1):
                self.feed(
                    line_count + line_offset, line, index.ends_open and line_offset == len(lines)
                )
        self.finish()
        for response_key, tokens in self._tokens_by_response.items():
            if response_key in self._last_index_by_response:
                self.table.set_tokens(self._last_index_by_response[response_key], tokens)
        path = self._source.path
        identity = identity_of(reader, path, self._source.head, native=self.native)
        meta = TraceMeta(system=CLAUDE_CODE, model=self.model, task=self.task, version=self.version)
        spans = RecordSpans(index, self.table, self._text_positions, self.texts_on_lines)
        return Trace(identity, path, spans, meta=meta)

    def add(self, entry: RecordEntry, thread: AgentThread, last_line: int | None = None) -> None:
        """Append the spans of an entry.

        Args:
            entry: The entry of a record, or of several lines.
            thread: The thread of the entry.
            last_line: The last line of the entry; None if it is on one line.
        """
        for position, piece in enumerate(entry.pieces, entry.offset):
            self._add_piece(entry, piece, thread, last_line or entry.line)
            self._text_positions.append(position)
        if entry.response is not None:
            response_key = thread.prefix + entry.response
            if entry.tokens is not None:
                self._tokens_by_response[response_key] = entry.tokens
            if entry.pieces:
                self._last_index_by_response[response_key] = len(self.table) - 1

    def _add_piece(
        self, entry: RecordEntry, piece: Piece, thread: AgentThread, last_line: int
    ) -> None:
        """Append the span of a piece.

        A result also sets the end of its call, and records the sub-agent that the call started.
        """
        table = self.table
        name = piece.name
        key = entry.key + piece.key_suffix
        parent = self._call_index_by_id.get(thread.call_id or "")
        if piece.kind is SpanKind.TOOL_RESULT:
            parent = self._call_index_by_id.get(piece.call_id or "")
            name = name or (None if parent is None else table.name_of(parent))
            key = f"{piece.call_id}:result" if piece.call_id else key
        elif piece.kind is SpanKind.TOOL_CALL and piece.call_id:
            key = f"{piece.call_id}:call"
            self._call_index_by_id[piece.call_id] = len(table)
        shape = (piece.kind, piece.role, thread.agent_of(piece), name)
        key = thread.prefix + key
        index = table.add(entry.line, last_line, shape, key, parent, entry.time, piece.status)
        if piece.kind is SpanKind.TOOL_RESULT and parent is not None:
            table.set_end(parent, entry.time)
            if name in SPAWNING_TOOLS and entry.sub_agents:
                table.spawned.setdefault(entry.sub_agents[0], table.key_of(index))


class RecordSpans(IndexedSpans):
    """Spans that are all known from the beginning; several of them may share a line.

    The texts of the last lines that were read are cached.

    Args:
        index: The index of the file's lines.
        table: The spans.
        positions: The number of each span's text among the texts on its lines.
        texts_on_lines: A function that returns the texts on some lines.
    """

    def __init__(
        self,
        index: LineIndex,
        table: SpanTable,
        positions: Sequence[int],
        texts_on_lines: Callable[[bytes], Sequence[str]],
    ) -> None:
        super().__init__(index, table)
        self._text_positions = positions
        self._texts_on = texts_on_lines
        self._last_read: tuple[bytes, Sequence[str]] = (b"", ())

    @property
    def loaded(self) -> Loaded:
        """The size of the file, which has been read completely."""
        return Loaded(self._index.done, self._index.size, complete=True)

    def _text_of(self, index: int, lines: bytes, /) -> str:
        """Return the text of a span from its lines.

        Raises:
            OSError: The file has changed, so that the lines lack the text.
        """
        last_lines, texts = self._last_read
        if lines != last_lines:
            texts = self._texts_on(lines)
            self._last_read = (lines, texts)
        if self._text_positions[index] >= len(texts):
            raise OSError(ESTALE, "the file has changed")
        return texts[self._text_positions[index]]
