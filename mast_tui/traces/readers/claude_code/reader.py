"""Claude Code sessions: one JSON record a line, each naming the record that it follows.

Spans are the blocks of messages, and what the harness tells; ``records`` says which
records only keep the books. What the user took back by a rewind is left out and noted as a problem.
Keys are ``<call id>:call`` and ``<call id>:result``, else the record's ``uuid`` (``<uuid>/2`` for
its second block), else ``line N``; those of a sub-agent begin with its id. The file is read once
from end to end, as only its last record tells which branch counts; texts are read when asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mast_tui.traces.index.line_index import LineIndex
from mast_tui.traces.index.span_table import list_problem
from mast_tui.traces.io.json_values import as_text
from mast_tui.traces.io.regular_files import UnreadableFile, read_beside
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Problem, SpanKind, Thread
from mast_tui.traces.readers.base import record_on
from mast_tui.traces.readers.claude_code.order import (
    Worker,
    abandoned_branches,
    find_calls,
    in_reading_order,
    workers_among,
)
from mast_tui.traces.readers.claude_code.records import (
    AGENT,
    Facts,
    Place,
    facts_of,
    is_gemini_shaped,
    parts_of,
    type_of,
)
from mast_tui.traces.readers.claude_code.trace import SpanMaker, Voice, lines_of, short_name
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
        """One trace; ``thread`` says whose it is among the files of a run."""
        index = LineIndex.of(source)
        session = _Session()
        for number, line, ends_open in lines_of(index):
            session.feed(number, line, ends_open)
        maker, thread = session.spans(source.path), session.thread
        names = () if thread is None else (thread.parent, thread.id)
        trace = maker.trace(
            self,
            source,
            index,
            _texts_of,
            native="/".join(filter(None, names)),
            model=session.model,
            version=session.version,
            problems=session.problems,
            spawned=maker.spawned,
        )
        return FileReport(source.path, format=self.name, traces=(trace,), thread=thread)


READER: Final = ClaudeCodeReader()


def _is_record(record: Fields) -> bool:
    """Tell whether a record has a session, an id, and a parent or a message."""
    if as_text(record.get("sessionId")) is None or as_text(record.get("uuid")) is None:
        return False
    return "parentUuid" in record or isinstance(record.get("message"), str | Mapping)


def _texts_of(line: bytes) -> dict[int, str]:
    record = object_in(line)
    return {} if record is None else {part.number: part.text for part in parts_of(record)}


class _Session:
    """The records of one file, and what becomes of them when all have come."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.model: str | None = None
        self.version: str | None = None
        self.thread: Thread | None = None
        self._records: list[Facts] = []
        self._lines: set[int] = set()
        self._tip: str | None = None

    def feed(self, number: int, line: bytes, cut_off: bool) -> None:
        """Take line ``number``; ``cut_off`` marks a last line without its line feed."""
        if not line.strip():
            return
        record = record_on(line, number, cut_off, self.problems)
        if record is None:
            return
        if type_of(record) == "last-prompt":
            self._tip = as_text(record.get("leafUuid")) or self._tip
        if "uuid" in record:
            # Some builds wrote a record twice, byte for byte.
            mark = hash(line)
            if mark in self._lines:
                return
            self._lines.add(mark)
        facts = facts_of(record, number, parts_of(record))
        if facts.uuid is not None or facts.parts:
            self._records.append(facts)
        self.model = self.model or facts.model
        self.version = self.version or as_text(record.get("version"))

    def spans(self, path: Path) -> SpanMaker:
        """The spans of every record that counts, in reading order."""
        voice = self._begin_thread(path)
        own = [record for record in self._records if self._is_own(record)]
        workers = workers_among(record for record in self._records if not self._is_own(record))
        find_calls(workers, self._records)
        dropped = self._dropped(own)
        _drop_workers(workers, dropped)
        kept = [record for record in own if record.first not in dropped]
        maker = SpanMaker(voice)
        for record, speaker in in_reading_order(kept, voice, workers):
            maker.add(record, speaker)
        maker.set_tokens()
        return maker

    def _begin_thread(self, path: Path) -> Voice:
        """Find out whose file it is: of a sub-agent where all of it is on the side."""
        linked = [record for record in self._records if record.uuid is not None]
        session = next((one.session for one in reversed(linked) if one.session is not None), None)
        if not linked or session is None:
            return Voice()
        agent_id = linked[0].agent_id
        if agent_id is None or not all(record.sidechain for record in linked):
            self.thread = Thread(session)
            return Voice()
        self.thread = Thread(agent_id, session)
        agent = _agent_type(path, self.problems) or short_name(agent_id)
        return Voice(prefix=f"{agent_id}/", agent=agent, asker=AGENT)

    def _is_own(self, record: Facts) -> bool:
        """Whether a record belongs to the file's own thread."""
        if self.thread is None or self.thread.parent is None:
            return not record.sidechain
        return record.agent_id in (None, self.thread.id)

    def _dropped(self, own: list[Facts]) -> dict[int, Facts]:
        """By line the records on abandoned branches, of which a problem tells."""
        linked = [record for record in own if record.uuid is not None]
        dropped: dict[int, Facts] = {}
        branches = abandoned_branches(linked, self._tip)
        for branch in branches:
            dropped.update((linked[place].first, linked[place]) for place in branch)
        calls = {
            part.tool_id
            for record in own
            if record.first not in dropped
            for part in record.parts
            if part.kind is SpanKind.TOOL_CALL
        }
        for branch in branches:
            shown = 0
            for place in branch:
                record = linked[place]
                if _answers(record, calls):
                    del dropped[record.first]
                elif record.parts:
                    shown += 1
            if shown:
                records = "1 record" if shown == 1 else f"{shown} records"
                verb = "is" if shown == 1 else "are"
                message = f"{records} of an abandoned branch {verb} not shown"
                list_problem(self.problems, linked[branch[0]].first, message)
        return dropped


def _answers(record: Facts, calls: set[str | None]) -> bool:
    """Whether a record brings the result of one of these calls."""
    return record.place is Place.TURN and any(
        part.kind is SpanKind.TOOL_RESULT and part.tool_id in calls
        for part in record.parts
        if part.tool_id is not None
    )


def _drop_workers(workers: dict[str, Worker], dropped: Mapping[int, Facts]) -> None:
    """Leave out the sub-agents that were begun on an abandoned branch."""
    calls = {part.tool_id for record in dropped.values() for part in record.parts}
    for name, worker in list(workers.items()):
        if worker.call is not None and worker.call.tool_id in calls:
            del workers[name]


def _agent_type(path: Path, problems: list[Problem]) -> str | None:
    """A sub-agent's type from the small file that lies beside its own."""
    beside = path.with_name(path.name.split(".jsonl")[0] + ".meta.json")
    try:
        data = read_beside(beside, _META_BYTES)
    except UnreadableFile as error:
        problems.append(Problem(beside.name, f"not read: {error.strerror}"))
        return None
    return None if data is None else as_text(fields_of(object_in(data)).get("agentType"))
