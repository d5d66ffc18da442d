"""Claude Code sessions: one JSON record a line, with the id of the record before it (its parent).

Spans are the blocks of messages and the program's reports. Their keys are ``<call id>:call`` and
``<call id>:result``, else the record's ``uuid`` (``<uuid>/2`` for its second block), else
``line N``; those of a sub-agent begin with its id. The file is read once from end to end, as its
last record decides which branch is shown. Texts are read on demand.

The session's own records keep the order of their lines. The records of a sub-agent come together
before the result of the call that started it, or at the line of its first record. If a sub-agent
has no file, its progress records are read.

A rewind leaves the abandoned records in the file. After a rewind two prompts have the same parent.
The prompt that leads to the last record is shown; the other prompt is abandoned with all records
after it, and is a problem. Every other fork is kept whole, as results of parallel calls, hooks,
progress and retries make forks too. A record without a known parent follows the record before it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from errno import ESTALE
from itertools import chain
from typing import Final

from mast_tui.counts import counted
from mast_tui.traces.index.line_index import LineIndex
from mast_tui.traces.index.lines import IndexedSpans
from mast_tui.traces.index.span_table import SpanTable, list_problem
from mast_tui.traces.io.json_values import as_text
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import (
    FileReport,
    Loaded,
    Role,
    SpanKind,
    Thread,
    Tokens,
    Trace,
    TraceMeta,
)
from mast_tui.traces.readers.base import FormatReader, Reader, identity_of, is_gemini_shaped
from mast_tui.traces.readers.chat.pieces import Piece
from mast_tui.traces.readers.claude_code.records import (
    CLAUDE_CODE,
    SPAWNING_TOOLS,
    RecordEntry,
    RecordKind,
    Spawn,
    entry_of,
    pieces_of,
    records_on,
    type_of,
    without_progress_wrapper,
)
from mast_tui.traces.readers.document_traces import neighbour_bytes
from mast_tui.traces.readers.json_fields import Fields, add_new, fields_of, object_in

_BYTES_PER_READ: Final = 4 << 20
"""The number of bytes to read at a time."""


_AGENT_ID: Final = re.compile(r"[\w-]{1,100}")
"""The ids of sub-agents that can be in the name of a file."""

_SHORT_ID_LENGTH: Final = 8


@dataclass(frozen=True, slots=True)
class AgentThread:
    """The thread of an agent, with the names in its spans.

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
            agent_id: The beginning of the keys of its spans.
            agent_type: The type of the sub-agent, which is also its name.
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
        native_id: The id of the run in the file.
        task: The first request of the user.
    """

    def __init__(self, source: Source) -> None:
        self.table = SpanTable()
        self.native_id: str | None = None
        self.model: str | None = None
        self.version: str | None = None
        self.task: str | None = None
        self._source = source
        # The index of each span's piece in its record, to read its text again.
        self._text_positions = array("I")
        # The indices are those of spans. The key of a response is its thread and its own id.
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
            for number, line in enumerate(lines, line_count + 1):
                is_last_line = number == line_count + len(lines)
                lacks_line_feed = index.ends_open and is_last_line
                self.feed(number, line, lacks_line_feed)
        self.finish()

        # The last span of a model call has its tokens.
        for response_key, tokens in self._tokens_by_response.items():
            if response_key in self._last_index_by_response:
                self.table.set_counts(self._last_index_by_response[response_key], *tokens)
        path = self._source.path
        identity = identity_of(reader, path, self._source.head, native=self.native_id)
        meta = TraceMeta(system=CLAUDE_CODE, model=self.model, task=self.task, version=self.version)
        spans = RecordSpans(index, self.table, self._text_positions, self.texts_on_lines)
        return Trace(identity, path, spans, meta=meta)

    def add(self, entry: RecordEntry, thread: AgentThread, last_line: int | None = None) -> None:
        """Append the spans of a record's pieces, and record the tokens of its model call.

        Args:
            entry: The record with its pieces.
            thread: The thread of the record.
            last_line: The last line of the record; by default its first line.
        """
        span_count = len(self.table)
        for piece_index, piece in enumerate(entry.pieces, entry.first_piece_index):
            if piece_index not in entry.repeated_calls:
                self._add_piece(entry, piece, thread, last_line or entry.line)
                self._text_positions.append(piece_index)
        if entry.response is not None:
            response_key = thread.prefix + entry.response
            if entry.tokens is not None:
                self._tokens_by_response[response_key] = entry.tokens
            if len(self.table) > span_count:
                self._last_index_by_response[response_key] = len(self.table) - 1

    def _add_piece(
        self, entry: RecordEntry, piece: Piece, thread: AgentThread, last_line: int
    ) -> None:
        """Append the span of a piece; a result also sets the end of its call."""
        table = self.table
        name = piece.name
        key = entry.key + piece.key_suffix
        # The parent of a sub-agent's spans is the call that started it.
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
            if name in SPAWNING_TOOLS and entry.sub_agents:  # the first id is the most reliable
                table.spawned.setdefault(entry.sub_agents[0], table.key_of(index))


class RecordSpans(IndexedSpans):
    """Spans that are all known from the beginning; several of them may share a line.

    Args:
        index: The index of the file's lines.
        table: The spans.
        text_positions: The index of each span's text among the texts on its lines.
        texts_on_lines: Returns the texts on some lines.
    """

    def __init__(
        self,
        index: LineIndex,
        table: SpanTable,
        text_positions: Sequence[int],
        texts_on_lines: Callable[[bytes], Sequence[str]],
    ) -> None:
        super().__init__(index, table)
        self._text_positions = text_positions
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


_ROOT: Final = -1
"""The index of the parent of first records, and so of the last list of children."""


@dataclass(slots=True)
class SubAgent:
    """A sub-agent with its records, and the call that started it, if known."""

    id: str
    entries: list[RecordEntry] = field(default_factory=list)
    spawn: Spawn | None = None

    @property
    def line(self) -> int:
        """The line of the sub-agent's first record."""
        return self.entries[0].line

    def thread(self) -> AgentThread:
        """Return the thread of the sub-agent's records."""
        if self.spawn is None:
            return AgentThread.of_sub_agent(self.id)
        return AgentThread.of_sub_agent(self.id, self.spawn.agent_type, self.spawn.call_id)


def sub_agents_by_id(entries: Iterable[RecordEntry]) -> dict[str, SubAgent]:
    """Return the sub-agents with their records, by the ids of the sub-agents.

    A record without an agent belongs to the agent of its parent; without a known parent, to the
    agent of the previous record. A record without a parent begins a sub-agent.
    """
    agents: dict[str, SubAgent] = {}
    agent_id_by_key: dict[str, str] = {}
    previous_agent_id: str | None = None
    for entry in entries:
        agent_id = entry.agent_id
        if agent_id is None and entry.parent is not None:
            agent_id = agent_id_by_key.get(entry.parent, previous_agent_id)
        agent_id = agent_id or entry.key
        agent_id_by_key.setdefault(entry.key, agent_id)
        agents.setdefault(agent_id, SubAgent(agent_id)).entries.append(entry)
        previous_agent_id = agent_id
    return agents


def assign_spawns(agents: Mapping[str, SubAgent], entries: Sequence[RecordEntry]) -> None:
    """Set the call that started each sub-agent.

    The result of the call names the sub-agent. If no result does, the call is the first unassigned
    one with the sub-agent's prompt.

    Args:
        agents: The sub-agents by id.
        entries: All records of the file.
    """
    spawn_by_call = {spawn.call_id: spawn for entry in entries for spawn in entry.spawns}
    for entry in entries:
        agent = next((agents[id_] for id_ in entry.sub_agents if id_ in agents), None)
        if agent is not None and agent.spawn is None:
            agent.spawn = next(filter(None, map(spawn_by_call.get, entry.results)), None)

    assigned_calls = {agent.spawn.call_id for agent in agents.values() if agent.spawn is not None}
    spawns_by_prompt_hash: defaultdict[int | None, deque[Spawn]] = defaultdict(deque)
    for entry in entries:
        for spawn in entry.spawns:
            if spawn.prompt is not None and spawn.call_id not in assigned_calls:
                spawns_by_prompt_hash[spawn.prompt].append(spawn)
    for agent in agents.values():
        candidates = spawns_by_prompt_hash[agent.entries[0].prompt]
        if candidates and agent.spawn is None:
            agent.spawn = candidates.popleft()


def in_reading_order(
    entries: Sequence[RecordEntry], thread: AgentThread, agents: Mapping[str, SubAgent]
) -> Iterator[tuple[RecordEntry, AgentThread]]:
    """Yield the records of a file's thread and of its sub-agents, with their threads.

    A sub-agent's records come before the result of its call, or else at the line of its first
    record.

    Args:
        entries: The records of the file's own thread.
        thread: The file's own thread.
        agents: The sub-agents by id.
    """
    agents_by_call = _agents_by_answered_call(entries, agents.values())
    agents_without_result = [
        agent
        for agent in agents.values()
        if agent.spawn is None or agent.spawn.call_id not in agents_by_call
    ]
    items: list[RecordEntry | SubAgent] = [*entries, *agents_without_result]
    items.sort(key=_reading_position(entries))
    # Some results are never reached, so all sub-agents follow at the end. Each is read only once.
    items += agents.values()
    # A stack, because sub-agents may be nested more deeply than Python calls.
    stack = [(item, thread) for item in reversed(items)]
    read_ids: set[str] = set()
    while stack:
        item, item_thread = stack.pop()
        if isinstance(item, SubAgent):
            if add_new(read_ids, item.id):
                agent_thread = item.thread()
                stack += [(entry, agent_thread) for entry in reversed(item.entries)]
            continue
        started_agents = [
            agent
            for call_id in item.results
            for agent in agents_by_call.get(call_id, ())
            if agent.id not in read_ids
        ]
        if started_agents:
            # The record has the result of their calls, so it comes after their records.
            stack.append((item, item_thread))
            stack += [(agent, item_thread) for agent in reversed(started_agents)]
        else:
            yield item, item_thread


def _reading_position(
    entries: Iterable[RecordEntry],
) -> Callable[[RecordEntry | SubAgent], tuple[int, int]]:
    """Return the key by which records and sub-agents are sorted: their line.

    A result that the program wrote before its call is sorted after the call's line.
    """
    line_by_call: dict[str | None, int] = {}
    for entry in entries:
        for piece in entry.pieces:
            if piece.kind is SpanKind.TOOL_CALL:
                line_by_call.setdefault(piece.call_id, entry.line)

    def position(item: RecordEntry | SubAgent) -> tuple[int, int]:
        calls = item.results if isinstance(item, RecordEntry) else ()
        call_lines = (line_by_call.get(call_id, 0) for call_id in calls)
        return max(item.line, *call_lines, 0), -item.line

    return position


def _agents_by_answered_call(
    entries: Sequence[RecordEntry], agents: Collection[SubAgent]
) -> dict[str, list[SubAgent]]:
    """Group the sub-agents by the call that started them, if a record has the call's result."""
    agent_entries = (agent.entries for agent in agents)
    answered_calls = {
        call_id for entry in chain(entries, *agent_entries) for call_id in entry.results
    }
    agents_by_call: dict[str, list[SubAgent]] = {}
    for agent in agents:
        if agent.spawn is not None and agent.spawn.call_id in answered_calls:
            agents_by_call.setdefault(agent.spawn.call_id, []).append(agent)
    return agents_by_call


def abandoned_branches(
    entries: Sequence[RecordEntry], leaf_id: str | None
) -> list[list[RecordEntry]]:
    """Return the branches that a rewind abandoned, each as its prompt and the records after it.

    Args:
        entries: The records of one thread that have ids, in file order.
        leaf_id: The id of the last record of the conversation, if the file states it.
    """

    def is_prompt(index: int) -> bool:
        return entries[index].kind is RecordKind.PROMPT

    parent_indices = _parent_indices(entries, leaf_id)
    # The last list has the children of ``_ROOT``, whose index is -1.
    children_by_index: list[list[int]] = [[] for _ in (*parent_indices, _ROOT)]
    for index, parent in enumerate(parent_indices):
        children_by_index[parent].append(index)
    # Records in a circle are not among the root's descendants.
    _root, *connected_indices = _indices_of_branch(children_by_index, _ROOT)
    # A branch may begin with notes, so a note has the kind of the records after it.
    opening_kinds = _opening_kinds(entries, children_by_index, connected_indices)
    conversation_indices = (
        index for index, entry in enumerate(entries) if entry.kind is not RecordKind.NOTE
    )
    index = max(conversation_indices, default=_ROOT)
    if index not in set(connected_indices):
        return []

    # From the last record of the conversation back to the root, look for rewinds.
    abandoned_prompts: list[int] = []
    while index != _ROOT:
        if opening_kinds[index] is RecordKind.PROMPT:
            for sibling in children_by_index[parent_indices[index]]:
                # Two prompts with the same parent show that the user went back to it.
                if sibling != index and opening_kinds[sibling] is RecordKind.PROMPT:
                    # The prompts come after the first notes of the branch.
                    branch = _indices_of_branch(children_by_index, sibling, is_end=is_prompt)
                    abandoned_prompts += filter(is_prompt, branch)
        index = parent_indices[index]
    return [
        [entries[index] for index in sorted(_indices_of_branch(children_by_index, prompt))]
        for prompt in sorted(abandoned_prompts)
    ]


def _opening_kinds(
    entries: Sequence[RecordEntry],
    children_by_index: Sequence[Sequence[int]],
    connected_indices: Sequence[int],
) -> list[RecordKind]:
    """Return the kind of each record; for a note, the highest kind of the records after it."""
    opening_kinds = [entry.kind for entry in entries]
    for index in reversed(connected_indices):  # children before their parents
        if opening_kinds[index] is RecordKind.NOTE:
            opening_kinds[index] = max(
                (opening_kinds[child] for child in children_by_index[index]),
                default=RecordKind.NOTE,
            )
    return opening_kinds


def _parent_indices(entries: Sequence[RecordEntry], leaf_id: str | None) -> list[int]:
    """Return the index of each record's parent; ``_ROOT`` for the first record of a tree.

    After a restart, each prompt without a parent begins a tree. Any other record without a known
    parent follows the previous record.
    """
    index_by_id: dict[str | None, int] = {}
    for index, entry in enumerate(entries):
        index_by_id.setdefault(entry.uuid, index)
    has_restarted = _has_restarted(entries, index_by_id, leaf_id)
    parent_indices: list[int] = []
    for index, entry in enumerate(entries):
        parent_index = index_by_id.get(entry.parent)
        if parent_index is None or entry.parent == entry.uuid:
            begins_tree = has_restarted and entry.is_root and entry.kind is RecordKind.PROMPT
            parent_index = _ROOT if begins_tree else index - 1  # -1 is ``_ROOT`` too
        parent_indices.append(parent_index)
    return parent_indices


def _has_restarted(
    entries: Sequence[RecordEntry], index_by_id: Mapping[str | None, int], leaf_id: str | None
) -> bool:
    """Return whether the user went back to the very beginning of the session.

    The last record of the conversation, the leaf, then leads back to a prompt without a parent that
    is not the first record of the file.
    """
    index = index_by_id.get(leaf_id)
    visited_indices: set[int] = set()
    while index is not None and index not in visited_indices:
        visited_indices.add(index)
        entry = entries[index]
        if entry.parent is None:
            return index > 0 and entry.kind is RecordKind.PROMPT
        index = index_by_id.get(entry.parent)
    return False


def _indices_of_branch(
    children_by_index: Sequence[Sequence[int]],
    start: int,
    is_end: Callable[[int], bool] = lambda _index: False,
) -> Iterator[int]:
    """Yield the indices of a record and of all records after it, parents first.

    Records after one for which ``is_end`` is true are left out.
    """
    stack = [start]
    while stack:
        index = stack.pop()
        yield index
        if not is_end(index):
            stack += children_by_index[index]


_MAX_META_BYTES: Final = 64 * 1024


def _recognises(source: Source) -> bool:
    """Return whether one of the first records is a session's, and none is of Qwen Code."""
    if any(map(is_gemini_shaped, source.head_records)):
        return False
    return any(map(_is_session_record, source.head_records))


def _read(source: Source) -> FileReport:
    """Return one trace, and its thread in a run of several files."""
    session = _SessionBuilder(source)
    trace = session.trace(READER)
    return FileReport(source.path, format=READER.name, traces=(trace,), thread=session.thread)


READER: Final = FormatReader("claude-code", _recognises, _read)
"""Reads the files of sessions and of sub-agents."""


def _is_session_record(record: Fields) -> bool:
    """Return whether a record has a session, an id, and a parent or a message."""
    if as_text(record.get("sessionId")) is None or as_text(record.get("uuid")) is None:
        return False
    return "parentUuid" in record or isinstance(record.get("message"), str | Mapping)


class _SessionBuilder(TraceBuilder):
    """The records of one file, whose spans are made after the last line."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.thread: Thread | None = None
        self._path = source.path
        self._entries: list[RecordEntry] = []
        self._session_id: str | None = None
        self._line_hashes: set[int] = set()
        self._call_hashes: set[int] = set()
        self._has_file_by_agent: dict[str, bool] = {}
        self._leaf_id: str | None = None

    @staticmethod
    def texts_on_lines(data: bytes, /) -> list[str]:
        """Return the texts of all pieces on a line."""
        records = map(without_progress_wrapper, records_on(data, 0, False, []))
        return [piece.text for record in records for piece in pieces_of(record)]

    def feed(self, number: int, line: bytes, ends_open: bool, /) -> None:
        """Read a line.

        Args:
            number: The number of the line, from 1 on.
            line: The line without its line feed.
            ends_open: Whether it is a last line without a line feed.
        """
        piece_count = 0
        for written_record in records_on(line, number, ends_open, self.table.problems):
            record = without_progress_wrapper(written_record)
            is_progress = record is not written_record
            if is_progress and self._has_file(as_text(record["agentId"])):
                continue  # The file of the sub-agent has the same record.
            pieces = pieces_of(record)
            # The count distinguishes the records of a damaged line.
            record_hash = hash((line, piece_count))
            # Some builds wrote a record twice, byte for byte.
            if record_hash not in self._line_hashes:
                entry = entry_of(record, number, pieces, first_piece_index=piece_count)
                entry.repeated_calls = frozenset(self._repeated_calls(pieces, piece_count))
                self._add_record(record, entry)
            # Two equal records without an id need not be copies.
            if "uuid" in record:
                self._line_hashes.add(record_hash)
            piece_count += len(pieces)

    def _has_file(self, agent_id: str | None) -> bool:
        """Return whether a sub-agent has a file of its own."""
        if agent_id is None or not _AGENT_ID.fullmatch(agent_id):
            return False
        if agent_id not in self._has_file_by_agent:
            name = f"agent-{agent_id}.jsonl"
            # ``stem`` would leave ``.jsonl`` in the name of a compressed file.
            session_folder = self._path.with_name(self._path.name.split(".jsonl")[0])
            self._has_file_by_agent[agent_id] = self._path.with_name(name).exists() or any(
                (session_folder / "subagents").rglob(name)
            )
        return self._has_file_by_agent[agent_id]

    def _repeated_calls(self, pieces: Sequence[Piece], first_piece_index: int) -> Iterator[int]:
        """Yield the indices of pieces that repeat earlier calls, as in iFlow's files."""
        for piece_index, piece in enumerate(pieces, first_piece_index):
            if piece.kind is SpanKind.TOOL_CALL and piece.call_id is not None:
                call_hash = hash((piece.call_id, piece.name, piece.text))
                if call_hash in self._call_hashes:
                    yield piece_index
                self._call_hashes.add(call_hash)

    def _add_record(self, record: Fields, entry: RecordEntry) -> None:
        """Store the facts of a record, and its entry if that has an id or pieces."""
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
        own_thread = self._set_thread()
        agents = sub_agents_by_id(entry for entry in self._entries if not self._is_own(entry))
        assign_spawns(agents, self._entries)
        own_entries = list(filter(self._is_own, self._entries))
        abandoned_entries = self._abandoned_entries(own_entries)
        # A sub-agent whose call was abandoned is left out too.
        abandoned_calls = {piece.call_id for entry in abandoned_entries for piece in entry.pieces}
        agents = {
            agent.id: agent
            for agent in agents.values()
            if agent.spawn is None or agent.spawn.call_id not in abandoned_calls
        }
        shown_entries = [entry for entry in own_entries if entry not in abandoned_entries]
        self.task = next((entry.task for entry in shown_entries if entry.task), None)
        for entry, entry_thread in in_reading_order(shown_entries, own_thread, agents):
            self.add(entry, entry_thread)

    def _set_thread(self) -> AgentThread:
        """Set ``thread`` and the id of the file; return the same thread as an ``AgentThread``."""
        identified_entries = [entry for entry in self._entries if entry.uuid is not None]
        if not identified_entries or self._session_id is None:
            return AgentThread()
        agent_id = identified_entries[0].agent_id
        # All records of a sub-agent's file are marked as a side chain.
        if agent_id is None or not all(entry.is_sidechain for entry in identified_entries):
            self.thread = Thread(self._session_id)
            self.native_id = self._session_id
            return AgentThread()
        self.thread = Thread(agent_id, self._session_id)
        self.native_id = f"{self._session_id}/{agent_id}"
        return AgentThread.of_sub_agent(agent_id, self._read_agent_type())

    def _read_agent_type(self) -> str | None:
        """Return a sub-agent's type from the ``.meta.json`` file beside this file."""
        meta_path = self._path.with_name(self._path.name.split(".jsonl")[0] + ".meta.json")
        data = neighbour_bytes(meta_path, meta_path.name, self.table.problems, _MAX_META_BYTES)
        return None if data is None else as_text(fields_of(object_in(data)).get("agentType"))

    def _is_own(self, entry: RecordEntry) -> bool:
        """Return whether a record belongs to the file's own thread."""
        if self.thread is None or self.thread.parent is None:
            return not entry.is_sidechain
        return entry.agent_id in (None, self.thread.id)

    def _abandoned_entries(self, entries: list[RecordEntry]) -> set[RecordEntry]:
        """Return the records on abandoned branches, and add a problem for each branch.

        A record with the result of a shown call is not abandoned.
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
            abandoned_entries -= {
                entry
                for entry in branch
                if entry.kind is RecordKind.REPLY and not shown_calls.isdisjoint(entry.results)
            }
            hidden_count = sum(bool(entry.pieces) for entry in branch if entry in abandoned_entries)
            if hidden_count:
                message = counted(
                    hidden_count,
                    "record of an abandoned branch is not shown",
                    "records of an abandoned branch are not shown",
                )
                list_problem(self.table.problems, branch[0].line, message)
        return abandoned_entries
