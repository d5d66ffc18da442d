"""The reader of sessions: a format describes its records, and the reader makes one trace of them.

A session is a log of events that a coding agent keeps while it works, small enough to be read
whole. A file has one record a line, a list of records, or one object that holds such a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final

from mast_tui.counts import counted
from mast_tui.traces.index.document import Step, StepList
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import InvalidJSON, canonical_bytes, load_json
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import (
    FileReport,
    Problem,
    Role,
    SpanKind,
    Tokens,
    Trace,
    TraceMeta,
)
from mast_tui.traces.readers.chat.messages import MessageMapper
from mast_tui.traces.readers.chat.pieces import Turn
from mast_tui.traces.readers.document_traces import records_by_line, report_of, trace_of_steps
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    identifier_in,
    names,
    short_name,
)
from mast_tui.traces.readers.run_facts import task_of
from mast_tui.traces.readers.sessions.pieces import user_text

_LOOKED_AT: Final = 40
_TEXT_BEFORE: Final = 4096
"""The most bytes of a program's own messages that may come before a document."""


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """One record of a session.

    Attributes:
        value: The JSON object.
        location: Its location in the file: ``line 3`` or a JSON pointer.
    """

    value: Fields
    location: str


@dataclass(slots=True)
class SessionContext:
    """One session while it is translated, with the facts that its records state.

    Attributes:
        header: The fields beside the list of records, in a document.
        values: The records that count, in reading order.
        id: The session's own id.
        model: The first model that is named.
        version: The version of the agent's program.
        tokens: The tokens of the whole session, for sessions that count no model call by itself.
    """

    header: Fields
    values: Sequence[Fields]
    id: str | None = None
    model: str | None = None
    version: str | None = None
    tokens: Tokens | None = None


Translate = Callable[[Fields], Turn | None]
"""A function that takes a record apart; it returns None for one without content."""

Order = Callable[[Sequence[SessionRecord], list[Problem]], Sequence[SessionRecord]]
"""A function that selects records in reading order, and adds a problem for those it leaves out."""


def stateless(translate: Translate) -> Callable[[SessionContext], Translate]:
    """Return the translator of a format whose records can be taken apart one by one."""
    return lambda _session: translate


def in_file_order(
    records: Sequence[SessionRecord], _problems: list[Problem]
) -> Sequence[SessionRecord]:
    """Return all records.

    Args:
        records: The records of a session.
        _problems: The list for problems, of which there are none.
    """
    return records


@dataclass(frozen=True, slots=True)
class SessionFormat:
    """A format of sessions.

    Attributes:
        name: The name that ``inspect`` shows.
        system: The agent that writes such files.
        marks: Byte strings of which one is in the first 64 KB of every file.
        recognises: Tells by the first records whether a file is of the format.
        translator: Makes the function that takes the records of a session apart.
        order: Selects the records that count.
        lists: The dotted paths in a document to the list of records.
        keys: The dotted paths to the id of a record, by which its spans are known.
        facts: The fields, as dotted paths, that state a session's ``id``, ``model`` or ``version``.
        documents_only: Whether files of lines are read by another reader.
        session_of: Returns the name of the session that a record belongs to, for files that may
            hold several.
    """

    name: str
    system: str | None
    marks: tuple[bytes, ...]
    recognises: Callable[[Sequence[Fields]], bool]
    translator: Callable[[SessionContext], Translate]
    order: Order = in_file_order
    lists: tuple[str, ...] = ()
    keys: str = "id"
    facts: Mapping[str, str] = field(default_factory=dict)
    documents_only: bool = False
    session_of: Callable[[Fields], str | None] | None = None


class SessionReader:
    """Reads the sessions of one format.

    Keys are ``<call id>:call`` and ``<call id>:result``, else the record's id with the pointer to
    the part in its message, else the record's location.
    """

    key_scheme: Final = 1

    def __init__(self, session_format: SessionFormat) -> None:
        self._format = session_format

    @property
    def name(self) -> str:
        """The name of the format."""
        return self._format.name

    def recognises(self, source: Source) -> bool:
        """Return whether the file begins with records of the format."""
        head = as_utf8(source.head)
        if not any(mark in head for mark in self._format.marks):
            return False
        if self._format.documents_only and source.json_lines:
            return False
        if source.json_lines or len(source.head_records) > 1:
            return self._format.recognises(source.head_records)
        header, listed, pointer = self._list_in(_document(source, []))
        if source.damage and pointer is None:
            return False  # the first of several records: they are split before they are read
        return self._format.recognises([header, *map(fields_of, listed[:_LOOKED_AT])])

    def read(self, source: Source) -> FileReport:
        """Return a trace of each session; broken records are problems."""
        problems: list[Problem] = []
        header, records = self._records(source, problems)
        sessions = self._sessions(records)
        if len(sessions) == 1:
            traces = [self.trace(source.path, source.data, sessions[0], header)]
        else:
            traces = [
                self.trace(
                    source.path,
                    canonical_bytes([record.value for record in session]),
                    session,
                    header,
                    number,
                )
                for number, session in enumerate(sessions)
            ]
        return report_of(self, source, traces, problems)

    def trace(
        self,
        path: Path,
        content: bytes,
        records: Sequence[SessionRecord],
        header: Fields,
        number: int | None = None,
    ) -> Trace:
        """Return the trace of a session.

        Args:
            path: The file, or the folder with the files of the session.
            content: The bytes by which the session is known again.
            records: The records of the session.
            header: The fields beside the list of records.
            number: The number of the session in a file with several; None for the only one.
        """
        problems: list[Problem] = []
        selected = self._format.order(records, problems)
        session = SessionContext(header, [record.value for record in selected])
        all_values = () if len(selected) == len(records) else (record.value for record in records)
        self._take_facts(session, chain((header,), session.values, all_values))
        translate = self._format.translator(session)
        steps = StepList()
        mapper = MessageMapper(steps)
        for record in selected:
            turn = translate(record.value)
            if turn is not None:
                key = text_at(record.value, self._format.keys) or record.location
                mapper.add_turn(turn, key, record.location)
        if session.tokens is not None and all(step.tokens is None for step in steps.steps):
            mapper.count_tokens(session.tokens)
        meta = TraceMeta(
            task=task_of(_first_prompt(steps.steps), steps=steps.steps),
            system=self._format.system,
            model=session.model or mapper.model,
            version=session.version,
        )
        return trace_of_steps(
            self,
            path,
            content,
            steps,
            meta=meta,
            record=number,
            native=session.id,
            problems=[*problems, *mapper.problems],
        )

    def _take_facts(self, session: SessionContext, values: Iterable[Fields]) -> None:
        missing = dict(self._format.facts)
        for value in values:
            for name, paths in tuple(missing.items()):
                fact = text_at(value, paths)
                if fact is None or (name == "version" and fact.isdecimal()):
                    continue  # a number is the version of the file's layout
                setattr(session, name, fact)
                del missing[name]
            if not missing:
                return

    def _records(
        self, source: Source, problems: list[Problem]
    ) -> tuple[Fields, Sequence[SessionRecord]]:
        """Return the fields beside the list of records, and the records."""
        lines_among_text = source.json is None and len(source.head_records) > 1
        if not source.json_lines and not lines_among_text:
            header, listed, pointer = self._list_in(_document(source, problems))
            return header, list(_records_listed(listed, pointer, problems))
        records = []
        for record in records_by_line(source, problems):
            if isinstance(record.value, Mapping):
                records.append(SessionRecord(record.value, record.location))
            else:
                problems.append(Problem(record.location, "not a JSON object, left out"))
        return {}, records

    def _list_in(self, document: object) -> tuple[Fields, Sequence[object], str | None]:
        """Return the fields beside the list of records, the list, and the pointer to it.

        A document without such a list is a record itself; then there is no pointer.
        """
        if isinstance(document, list):
            return {}, document, ""
        fields = fields_of(document)
        for path in self._format.lists:
            *outer, name = path.split(".")
            listed = fields_at(fields, *outer).get(name)
            if isinstance(listed, list):
                header = {key: value for key, value in fields.items() if key != name}
                return header, listed, f"/{path.replace('.', '/')}"
        return {}, [fields] if fields else [], None

    def _sessions(self, records: Sequence[SessionRecord]) -> list[list[SessionRecord]]:
        """Group the records by session; one that names none belongs to the one before it."""
        session_of = self._format.session_of
        if session_of is None:
            return [list(records)]
        sessions: dict[str, list[SessionRecord]] = {}
        unnamed: list[SessionRecord] = []
        current = unnamed
        for record in records:
            name = session_of(record.value)
            if name is not None:
                current = sessions.setdefault(name, [])
            current.append(record)
        if not sessions:
            return [unnamed]
        first = next(iter(sessions.values()))
        first[:0] = unnamed
        return list(sessions.values())


def text_at(value: Fields, paths: str) -> str | None:
    """Return the first text or number that is at one of the dotted paths, as one line.

    Args:
        value: A record.
        paths: Dotted paths, separated by spaces; ``type:path`` for records of that type alone.
    """
    for kind, outer, last in _parsed_paths(paths):
        if kind and value.get("type") != kind:
            continue
        fields = value
        for name in outer:
            fields = fields_of(fields.get(name))
        if last in fields:
            text = identifier_in(fields, last)
            if text is not None:
                return short_name(text)
    return None


@cache
def _parsed_paths(paths: str) -> list[tuple[str, list[str], str]]:
    """Return type, outer fields and last field of each path in a table of formats."""
    parsed = []
    for path in names(paths):
        kind, _colon, dotted = path.rpartition(":")
        *outer, last = dotted.split(".")
        parsed.append((kind, outer, last))
    return parsed


def along_last_branch(id_field: str, parent_field: str) -> Order:
    """Return an ``Order`` for records that form a tree: it selects the branch to the last record.

    Another branch is left out if it has messages. Records without a message, such as changed
    settings, are always selected. A record whose parent is not among the records before it follows
    the previous record; but a message whose parent is null begins a new tree.

    Args:
        id_field: The field with the id of a record; records with the same id are one node.
        parent_field: The field with the id of the record that it follows.
    """

    def _order(
        records: Sequence[SessionRecord], problems: list[Problem]
    ) -> Sequence[SessionRecord]:
        parents = _parents(records, id_field, parent_field)
        branches = _branches(parents)
        abandoned: dict[str, list[SessionRecord]] = {}
        for record in records:
            branch = branches.get(identifier_in(record.value, id_field))
            if branch is not None and holds_message(record.value):
                abandoned.setdefault(branch, []).append(record)
        if not abandoned:
            return records
        messages = sum(map(len, abandoned.values()))
        first = next(iter(abandoned.values()))[0]
        count = counted(messages, "message")
        origin = "an abandoned branch" if len(abandoned) == 1 else f"{len(abandoned)} branches"
        verb = "is" if messages == 1 else "are"
        problems.append(Problem(first.location, f"{count} of {origin} {verb} not shown"))
        return [
            record
            for record in records
            if branches.get(identifier_in(record.value, id_field)) not in abandoned
        ]

    return _order


def _parents(
    records: Sequence[SessionRecord], id_field: str, parent_field: str
) -> dict[str, str | None]:
    """Return the parent of each node, which comes before it; None for the root of a tree."""
    parents: dict[str, str | None] = {}
    previous: str | None = None
    for record in records:
        node = identifier_in(record.value, id_field)
        if node is None:
            continue
        if node not in parents:
            parent = identifier_in(record.value, parent_field)
            is_root = parent_field in record.value and record.value[parent_field] is None
            if parent not in parents:
                parent = None if is_root and holds_message(record.value) else previous
            parents[node] = parent
        previous = node
    return parents


def _branches(parents: dict[str, str | None]) -> dict[str | None, str]:
    """Return the first node of the branch of each node; nodes on the last branch are left out."""
    on_last_branch: set[str] = set()
    node = next(reversed(parents), None)
    while node is not None:
        on_last_branch.add(node)
        node = parents[node]
    branches: dict[str | None, str] = {}
    for node, parent in parents.items():
        if node not in on_last_branch:
            branches[node] = branches.get(parent, node)
    return branches


def holds_message(record: Fields) -> bool:
    """Return whether a record holds a message of a user, a model or a tool."""
    role = fields_of(record.get("message")).get("role", record.get("role"))
    return isinstance(role, str) and role != "system"


def _first_prompt(steps: Sequence[Step]) -> str | None:
    """Return the first text that the user typed, without what the program added to it."""
    prompts = (
        user_text(step.text)
        for step in steps
        if step.role is Role.USER and step.kind is SpanKind.MESSAGE
    )
    return next(filter(None, prompts), None)


def _records_listed(
    values: Iterable[object], pointer: str | None, problems: list[Problem]
) -> Iterator[SessionRecord]:
    for number, value in enumerate(values):
        location = "/" if pointer is None else f"{pointer}/{number}"
        if isinstance(value, Mapping):
            yield SessionRecord(value, location)
        else:
            problems.append(Problem(location, "not a JSON object, left out"))


def _document(source: Source, problems: list[Problem]) -> object:
    """Return the document that a file is, or that follows lines of text in it."""
    return source.json if source.json is not None else _document_after_text(source, problems)


def _document_after_text(source: Source, problems: list[Problem]) -> object:
    """Return the document that follows lines of text, as where a program wrote its progress."""
    head = as_utf8(source.head[:_TEXT_BEFORE])
    begin = head.find(b"\n{") + 1
    if not begin or head.lstrip()[:1] in (b"{", b"["):
        return None
    try:
        document = load_json(as_utf8(source.data)[begin:])
    except InvalidJSON:
        return None
    problems.append(Problem("line 1", "text before the JSON, left out"))
    return document
