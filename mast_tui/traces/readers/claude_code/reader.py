"""Claude Code sessions: one JSON record a line, each naming the record that it follows.

Spans are the blocks of messages and what the program reports; ``records`` says which records are
mere bookkeeping. What the user took back by a rewind is left out and is a problem. Keys are
``<call id>:call`` and ``<call id>:result``, else the record's ``uuid`` (``<uuid>/2`` for its second
block), else ``line N``; those of a sub-agent begin with its id. The file is read once from end to
end, as only its last record decides which branch counts; texts are read when asked for.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Final

from mast_tui.counts import counted
from mast_tui.traces.index.span_table import list_problem
from mast_tui.traces.io.json_values import as_text
from mast_tui.traces.io.regular_files import UnreadableFile, read_beside
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem, SpanKind, Thread
from mast_tui.traces.readers.claude_code.order import (
    abandoned_branches,
    assign_spawns,
    in_reading_order,
    sub_agents_by_id,
)
from mast_tui.traces.readers.claude_code.records import (
    RecordEntry,
    RecordKind,
    entry_of,
    is_gemini_shaped,
    pieces_of,
    records_on,
    type_of,
)
from mast_tui.traces.readers.claude_code.spans import AgentThread, TraceBuilder
from mast_tui.traces.readers.json_fields import Fields, fields_of, object_in

_CUT_OFF_RECORD: Final = re.compile(
    rb'\s*\{"parentUuid":\s*(?:null|"[^"]{1,100}"),[^{}]{0,300}"isSidechain":'
)
_MAX_META_BYTES: Final = 64 * 1024


class ClaudeCodeReader:
    """Reads the files of sessions and of sub-agents."""

    name: Final = "claude-code"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Return whether one of the first records is a session's, and none is of Qwen Code."""
        if any(map(is_gemini_shaped, source.head_records)):
            return False
        if any(map(_is_session_record, source.head_records)):
            return True
        cut_off = source.head.rpartition(b"\n")[2]
        return len(source.head) < source.size and _CUT_OFF_RECORD.match(cut_off) is not None

    def read(self, source: Source) -> FileReport:
        """Return one trace, and its thread in a run that has several files."""
        session = _SessionBuilder(source)
        trace = session.trace(self)
        return FileReport(source.path, format=self.name, traces=(trace,), thread=session.thread)


READER: Final = ClaudeCodeReader()


def _is_session_record(record: Fields) -> bool:
    """Return whether a record has a session, an id, and a parent or a message."""
    if as_text(record.get("sessionId")) is None or as_text(record.get("uuid")) is None:
        return False
    return "parentUuid" in record or isinstance(record.get("message"), str | Mapping)


class _SessionBuilder(TraceBuilder):
    """The records of one file. The spans are made when all lines have been read."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.thread: Thread | None = None
        self._path = source.path
        self._entries: list[RecordEntry] = []
        self._session_id: str | None = None
        self._line_hashes: set[int] = set()
        self._leaf_id: str | None = None

    @staticmethod
    def texts_on_lines(data: bytes, /) -> list[str]:
        """Return the texts of all pieces on a line."""
        records = records_on(data, 0, False, [])
        return [piece.text for record in records for piece in pieces_of(record)]

    def feed(self, number: int, line: bytes, ends_open: bool, /) -> None:
        """Read a line.

        Args:
            number: The number of the line, from 1 on.
            line: The line without its line feed.
            ends_open: Whether it is a last line without a line feed.
        """
        offset = 0
        for record in records_on(line, number, ends_open, self.table.problems):
            pieces = pieces_of(record)
            record_hash = hash((line, offset))
            # Some builds wrote a record twice, byte for byte.
            if record_hash not in self._line_hashes:
                self._add_record(record, entry_of(record, number, pieces, offset))
            if "uuid" in record:
                self._line_hashes.add(record_hash)
            offset += len(pieces)

    def _add_record(self, record: Fields, entry: RecordEntry) -> None:
        """Keep the entry of a record that has an id or pieces, and the facts of the run in it."""
        if type_of(record) == "last-prompt":
            self._leaf_id = as_text(record.get("leafUuid")) or self._leaf_id
        if entry.uuid is not None:
            self._session_id = as_text(record.get("sessionId")) or self._session_id
        if entry.uuid is not None or entry.pieces:
            self._entries.append(entry)
        self.model = self.model or entry.model
        self.version = self.version or as_text(record.get("version"))

    def finish(self) -> None:
        """Add the spans of all records in reading order, without those on abandoned branches."""
        thread = self._set_thread()
        agents = sub_agents_by_id(entry for entry in self._entries if not self._is_own(entry))
        assign_spawns(agents, self._entries)
        own_entries = list(filter(self._is_own, self._entries))
        abandoned_entries = self._abandoned_entries(own_entries)
        abandoned_calls = {piece.call_id for entry in abandoned_entries for piece in entry.pieces}
        agents = {
            agent.id: agent
            for agent in agents.values()
            if agent.spawn is None or agent.spawn.call_id not in abandoned_calls
        }
        shown_entries = [entry for entry in own_entries if entry not in abandoned_entries]
        self.task = next((entry.task for entry in shown_entries if entry.task), None)
        for entry, entry_thread in in_reading_order(shown_entries, thread, agents):
            self.add(entry, entry_thread)

    def _set_thread(self) -> AgentThread:
        """Set the thread and the id of the file; return the thread of its records.

        The file belongs to a sub-agent if all of its records are on a side chain.
        """
        identified_entries = [entry for entry in self._entries if entry.uuid is not None]
        if not identified_entries or self._session_id is None:
            return AgentThread()
        agent_id = identified_entries[0].agent_id
        if agent_id is None or not all(entry.is_sidechain for entry in identified_entries):
            self.thread = Thread(self._session_id)
            self.native = self._session_id
            return AgentThread()
        self.thread = Thread(agent_id, self._session_id)
        self.native = f"{self._session_id}/{agent_id}"
        return AgentThread.of_sub_agent(agent_id, self._read_agent_type())

    def _read_agent_type(self) -> str | None:
        """Return a sub-agent's type from the ``.meta.json`` file beside this file; None without.

        A file that cannot be read is added to the problems.
        """
        meta_path = self._path.with_name(self._path.name.split(".jsonl")[0] + ".meta.json")
        try:
            data = read_beside(meta_path, _MAX_META_BYTES)
        except UnreadableFile as error:
            self.table.problems.append(Problem(meta_path.name, f"not read: {error.strerror}"))
            return None
        return None if data is None else as_text(fields_of(object_in(data)).get("agentType"))

    def _is_own(self, entry: RecordEntry) -> bool:
        """Return whether a record belongs to the file's own thread."""
        if self.thread is None or self.thread.parent is None:
            return not entry.is_sidechain
        return entry.agent_id in (None, self.thread.id)

    def _abandoned_entries(self, entries: list[RecordEntry]) -> set[RecordEntry]:
        """Return the records on abandoned branches, and add a problem for each branch.

        A record with the result of a call that is shown is not abandoned.
        """
        identified_entries = [entry for entry in entries if entry.uuid is not None]
        branches = abandoned_branches(identified_entries, self._leaf_id)
        abandoned_entries = {entry for branch in branches for entry in branch}
        shown_calls = {
            piece.call_id
            for entry in entries
            if entry not in abandoned_entries
            for piece in entry.pieces
            if piece.kind is SpanKind.TOOL_CALL
        }
        for branch in branches:
            abandoned_entries -= {entry for entry in branch if _answers_any(entry, shown_calls)}
            hidden_count = sum(bool(entry.pieces) for entry in branch if entry in abandoned_entries)
            if hidden_count:
                count_phrase = counted(hidden_count, "record")
                verb = "is" if hidden_count == 1 else "are"
                message = f"{count_phrase} of an abandoned branch {verb} not shown"
                list_problem(self.table.problems, branch[0].line, message)
        return abandoned_entries


def _answers_any(entry: RecordEntry, calls: Container[str | None]) -> bool:
    """Return whether a record holds the result of one of the calls."""
    return entry.kind is RecordKind.REPLY and any(call_id in calls for call_id in entry.results)
