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

from mast_tui.traces.index.span_table import list_problem
from mast_tui.traces.io.json_values import as_text
from mast_tui.traces.io.regular_files import UnreadableFile, read_beside
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem, SpanKind, Thread
from mast_tui.traces.readers.base import records_on
from mast_tui.traces.readers.claude_code.records import (
    Entry,
    RecordKind,
    entry_of,
    is_gemini_shaped,
    model_of,
    pieces_of,
    type_of,
)
from mast_tui.traces.readers.claude_code.rewinds import abandoned_branches
from mast_tui.traces.readers.claude_code.spans import AgentThread, SpanMaker
from mast_tui.traces.readers.claude_code.sub_agents import (
    assign_spawns,
    in_reading_order,
    sub_agents_among,
)
from mast_tui.traces.readers.json_fields import Fields, fields_of, object_in

_CUT_RECORD: Final = re.compile(
    rb'\s*\{"parentUuid":\s*(?:null|"[^"]{1,100}"),[^{}]{0,300}"isSidechain":'
)
_META_BYTES: Final = 64 * 1024


class ClaudeCodeReader:
    """Reads session files, and those of sub-agents."""

    name: Final = "claude-code"
    key_scheme: Final = 1

    def recognises(self, source: Source) -> bool:
        """Tell whether one of the first records is of such a session, and none of Qwen Code's."""
        if any(map(is_gemini_shaped, source.head_records)):
            return False
        if any(map(_is_record, source.head_records)):
            return True
        cut_off = source.head.rpartition(b"\n")[2]
        return len(source.head) < source.size and _CUT_RECORD.match(cut_off) is not None

    def read(self, source: Source) -> FileReport:
        """Return one trace, and the thread that it is among the files of a run."""
        session = _Session(source)
        for number, line, ends_open in session.maker.lines():
            session.feed(number, line, ends_open)
        session.add_spans()
        thread = session.thread
        names = () if thread is None else (thread.parent, thread.id)
        trace = session.maker.trace(
            self,
            _texts_of,
            native="/".join(filter(None, names)),
            model=session.model,
            version=session.version,
            task=session.task,
        )
        return FileReport(source.path, format=self.name, traces=(trace,), thread=thread)


READER: Final = ClaudeCodeReader()


def _is_record(record: Fields) -> bool:
    """Tell whether a record has a session, an id, and a parent or a message."""
    if as_text(record.get("sessionId")) is None or as_text(record.get("uuid")) is None:
        return False
    return "parentUuid" in record or isinstance(record.get("message"), str | Mapping)


def _has_id(record: Fields) -> bool:
    return "uuid" in record or "sessionId" in record or "leafUuid" in record


def _texts_of(line: bytes) -> list[str]:
    records = records_on(line, 0, False, [], _has_id)
    return [piece.text for record in records for piece in pieces_of(record)]


class _Session:
    """The records of one file, and their spans once all of them were read."""

    def __init__(self, source: Source) -> None:
        self.maker = SpanMaker(source)
        self.model: str | None = None
        self.version: str | None = None
        self.task: str | None = None
        self.thread: Thread | None = None
        self._path = source.path
        self._problems = self.maker.table.problems
        self._entries: list[Entry] = []
        self._session_id: str | None = None
        self._hashes: set[int] = set()
        self._tip: str | None = None

    def feed(self, number: int, line: bytes, ends_open: bool) -> None:
        """Read a line.

        Args:
            number: Its number.
            line: Its content.
            ends_open: Whether it is a last line without its line feed.
        """
        offset = 0
        for record in records_on(line, number, ends_open, self._problems, _has_id):
            pieces = pieces_of(record)
            # Some builds wrote a record twice, byte for byte.
            line_hash = hash((line, offset))
            if "uuid" not in record or line_hash not in self._hashes:
                self._add(record, entry_of(record, number, pieces, offset))
            if "uuid" in record:
                self._hashes.add(line_hash)
            offset += len(pieces)

    def _add(self, record: Fields, entry: Entry) -> None:
        if type_of(record) == "last-prompt":
            self._tip = as_text(record.get("leafUuid")) or self._tip
        if entry.uuid is not None:
            self._session_id = as_text(record.get("sessionId")) or self._session_id
        if entry.uuid is not None or entry.pieces:
            self._entries.append(entry)
        self.model = self.model or model_of(record)
        self.version = self.version or as_text(record.get("version"))

    def add_spans(self) -> None:
        """Make the spans of every record that counts, in reading order."""
        thread = self._begin_thread()
        own_entries = []
        others = []
        for entry in self._entries:
            (own_entries if self._is_of_thread(entry) else others).append(entry)
        agents = sub_agents_among(others)
        assign_spawns(agents, self._entries)
        abandoned = self._abandoned(own_entries)
        calls = {piece.call_id for entry in abandoned for piece in entry.pieces}
        for agent in list(agents.values()):
            if agent.spawn is not None and agent.spawn.call_id in calls:
                del agents[agent.id]
        entries = [entry for entry in own_entries if entry not in abandoned]
        self.task = next((entry.task for entry in entries if entry.task), None)
        for entry, entry_thread in in_reading_order(entries, thread, agents):
            self.maker.add(entry, entry_thread)

    def _begin_thread(self) -> AgentThread:
        """Return the file's thread: of a sub-agent where all of it is on the side."""
        linked = [entry for entry in self._entries if entry.uuid is not None]
        if not linked or self._session_id is None:
            return AgentThread()
        agent_id = linked[0].agent_id
        if agent_id is None or not all(entry.is_sidechain for entry in linked):
            self.thread = Thread(self._session_id)
            return AgentThread()
        self.thread = Thread(agent_id, self._session_id)
        return AgentThread.of_sub_agent(agent_id, self._agent_type())

    def _agent_type(self) -> str | None:
        """Return a sub-agent's type from the small file beside its own."""
        beside = self._path.with_name(self._path.name.split(".jsonl")[0] + ".meta.json")
        try:
            data = read_beside(beside, _META_BYTES)
        except UnreadableFile as error:
            self._problems.append(Problem(beside.name, f"not read: {error.strerror}"))
            return None
        return None if data is None else as_text(fields_of(object_in(data)).get("agentType"))

    def _is_of_thread(self, entry: Entry) -> bool:
        """Tell whether a record is of the file's own thread."""
        if self.thread is None or self.thread.parent is None:
            return not entry.is_sidechain
        return entry.agent_id in (None, self.thread.id)

    def _abandoned(self, entries: list[Entry]) -> set[Entry]:
        """Return the records on abandoned branches, without results of calls that are shown."""
        linked = [entry for entry in entries if entry.uuid is not None]
        branches = abandoned_branches(linked, self._tip)
        abandoned = {entry for branch in branches for entry in branch}
        calls = {
            piece.call_id
            for entry in entries
            if entry not in abandoned
            for piece in entry.pieces
            if piece.kind is SpanKind.TOOL_CALL
        }
        for branch in branches:
            abandoned -= {entry for entry in branch if _answers_any(entry, calls)}
            count = sum(bool(entry.pieces) for entry in branch if entry in abandoned)
            if count:
                records = "1 record" if count == 1 else f"{count} records"
                verb = "is" if count == 1 else "are"
                message = f"{records} of an abandoned branch {verb} not shown"
                list_problem(self._problems, branch[0].line, message)
        return abandoned


def _answers_any(entry: Entry, calls: Container[str | None]) -> bool:
    """Tell whether a record brings the result of one of the calls."""
    return entry.kind is RecordKind.REPLY and any(call_id in calls for call_id in entry.results)
