"""The reader of sessions: a format describes its records, and the reader makes a trace of them.

A session is a log of a coding agent, small enough to be read whole. A file has one record a line, a
list of records, or one object with such a list.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final

from mast_tui.counts import counted
from mast_tui.traces.index.document import Step, StepList
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import canonical_bytes, dump_text
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
from mast_tui.traces.readers.chat.pieces import Piece, Speaker, Turn, json_log_piece, log_piece
from mast_tui.traces.readers.chat.turns import turn_of
from mast_tui.traces.readers.document_traces import (
    RunOrigin,
    records_by_line,
    report_of,
    trace_of_steps,
)
from mast_tui.traces.readers.json_fields import (
    Fields,
    fields_at,
    fields_of,
    identifier_in,
    kind_of,
    names,
    short_name,
    text_in,
    time_in,
    without,
)
from mast_tui.traces.readers.run_facts import task_of

SYSTEM: Final = Speaker("system", Role.SYSTEM)
USER: Final = Speaker("user", Role.USER)

_USER_TEXT_TAG: Final = re.compile(
    r"<(?P<tag>USER_REQUEST|user_query)>(?P<text>.*?)</(?P=tag)>", re.DOTALL
)
_PROGRAM_TEXT_TAG: Final = re.compile(
    r"<(?P<tag>system-reminder|system-notification|USER_SETTINGS_CHANGE|ADDITIONAL_METADATA"
    r"|user_info|attached_files|git_status|git-context|environment_context)>.*?</(?P=tag)>",
    re.DOTALL,
)
_ENVELOPE_FIELDS: Final = frozenset(
    names("id parentId parentUuid uuid timestamp time ts type sessionId session_id agentId")
)
"""Fields of a record that are not shown in its log."""


def message_turn(
    record: Fields, message: object, *, tokens: Tokens | None = None, model: str | None = None
) -> Turn:
    """Return the turn of a chat message: its pieces, time, tokens and model.

    Empty pieces are left out. If ``message`` is no object or empty, the record is a log.

    Args:
        record: The record that holds the message; its time replaces the message's own.
        message: A message of any shape that ``chat.turns`` knows.
        tokens: The tokens of the model call, if ``chat.turns`` does not know their form.
        model: The model, if the record names it.
    """
    if not isinstance(message, Mapping) or not message:
        return unknown_record_turn(record)
    parsed_turn = turn_of(message)
    nonempty_pieces = tuple(piece for piece in parsed_turn.pieces if not is_empty(piece))
    time = record_time(record)
    return Turn(
        nonempty_pieces,
        parsed_turn.start if time is None else time,
        parsed_turn.tokens if tokens is None else tokens,
        model or parsed_turn.model,
    )


def is_empty(piece: Piece) -> bool:
    """Return whether a piece is a message or a thought with a blank text."""
    return piece.kind in (SpanKind.MESSAGE, SpanKind.REASONING) and not piece.text.strip()


def record_turn(record: Fields, *pieces: Piece) -> Turn:
    """Return a turn with these pieces at the time of a record.

    Args:
        record: The record.
        pieces: The pieces, in their order.
    """
    return Turn(pieces, record_time(record))


def turn_without_empty_pieces(record: Fields, pieces: Iterable[Piece]) -> Turn:
    """Return a turn of the pieces, without messages and thoughts of blank text.

    Args:
        record: The record, which has the time of the turn.
        pieces: The pieces, in their order.
    """
    return record_turn(record, *(piece for piece in pieces if not is_empty(piece)))


def unknown_record_turn(record: Fields) -> Turn:
    """Return a log of the fields of a record with an unknown type."""
    fields = without(record, _ENVELOPE_FIELDS)
    return record_turn(record, json_log_piece(fields, name=kind_of(record) or None))


def log_turn(
    record: Fields, *text_fields: str, name: str | None = None, failed: bool = False
) -> Turn:
    """Return a turn with one log: the event's text, else its fields, else its type.

    Args:
        record: The record of the event.
        text_fields: The fields that may hold the event's text; the first nonblank text is used.
        name: The name of the event; by default its type.
        failed: Whether the event is an error.
    """
    text = text_in(record, *text_fields)
    if text is None:
        event_fields = without(record, _ENVELOPE_FIELDS)
        text = dump_text(event_fields) if event_fields else kind_of(record)
    return record_turn(record, log_piece(text, name or kind_of(record) or None, failed=failed))


def user_prompt_piece(text: str) -> Piece:
    """Return the piece of a user's message, or of the system's if the program wrote all of it."""
    return (USER if user_text(text) else SYSTEM).piece(text)


def user_text(text: str) -> str:
    """Return the text that the user wrote, without tagged additions of the program."""
    tag = _USER_TEXT_TAG.search(text)  # Some programs put the user's text in a tag.
    if tag is not None:
        return tag["text"].strip()
    return _PROGRAM_TEXT_TAG.sub("", text).strip()


_TIME_FIELDS: Final = (
    "timestamp",
    "timestamp_ms",
    "time",
    "ts",
    "created_at",
    "created",
    "createdAt",
)


def record_time(record: Fields) -> float | None:
    """Return the time of a record in Unix seconds."""
    return time_in(record, *_TIME_FIELDS)


def new_pieces(pieces: Iterable[Piece], counts: Counter[str]) -> Iterator[Piece]:
    """Yield the pieces of a request that no earlier request has, as each repeats the conversation.

    Args:
        pieces: The pieces of all messages in the request.
        counts: The most occurrences of each text in one request so far, which this updates.
    """
    new_counts: Counter[str] = Counter()
    for piece in pieces:
        new_counts[piece.text] += 1
        if new_counts[piece.text] > counts[piece.text]:
            counts[piece.text] = new_counts[piece.text]
            yield piece


def as_system(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Return the pieces with the system as their speaker; results of tools are unchanged."""
    return tuple(
        piece
        if piece.kind is SpanKind.TOOL_RESULT
        else replace(piece, role=SYSTEM.role, agent=SYSTEM.agent)
        for piece in pieces
    )


_CHECKED_COUNT: Final = 40


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
    """One session, with the facts in its records.

    Attributes:
        header: The fields beside the list of records, in a document.
        values: The records that are shown, in reading order.
        id: The id of the session.
        model: The first model that a record names.
        version: The version of the agent's program.
        system: The agent, if it is not the format's.
        tokens: The tokens of the whole session, if single model calls have none.
    """

    header: Fields
    values: Sequence[Fields]
    id: str | None = None
    model: str | None = None
    version: str | None = None
    system: str | None = None
    tokens: Tokens | None = None


Translator = Callable[[Fields], Turn | None]
"""A function that returns the turn of a record; None for a record without content."""

RecordSelector = Callable[[Sequence[SessionRecord], list[Problem]], Sequence[SessionRecord]]
"""A function that returns the records that are shown, and adds problems for others."""


def stateless(translate: Translator) -> Callable[[SessionContext], Translator]:
    """Return a ``make_translator`` for records that do not depend on one another."""
    return lambda _session: translate


def any_record_with(
    fields_by_kind: Mapping[str, Set[str]],
) -> Callable[[Sequence[Fields]], bool]:
    """Return a test for records of one of the types with all fields of that type."""
    return lambda records: any(
        kind_of(record) in fields_by_kind and fields_by_kind[kind_of(record)] <= record.keys()
        for record in records
    )


def in_file_order(
    records: Sequence[SessionRecord], _problems: list[Problem]
) -> Sequence[SessionRecord]:
    """Return the records unchanged.

    Args:
        records: The records of a session.
        _problems: Unused, as no record is left out.
    """
    return records


@dataclass(frozen=True, slots=True)
class SessionFormat:
    """A format of sessions.

    Attributes:
        name: The name that ``inspect`` shows.
        system: The agent that writes such files.
        typical_bytes: Byte strings; the first 64 KB of every file contain at least one.
        recognises: Returns whether a file is of the format, from its first records.
        make_translator: Returns the function that makes the turns of a session's records.
        select_records: Returns the records that are shown, in reading order.
        list_paths: The dotted paths in a document to the list of records.
        id_paths: The dotted paths to the id of a record, which becomes the key of its spans.
        fact_paths: The dotted paths of a session's ``id``, ``model`` and ``version``.
        documents_only: Whether files of lines are left to another reader.
        repeats_calls: Whether a later record may repeat a call; the repetition is not shown.
        session_of: Returns the name of a record's session, for files with several sessions.
    """

    name: str
    system: str | None
    typical_bytes: tuple[bytes, ...]
    recognises: Callable[[Sequence[Fields]], bool]
    make_translator: Callable[[SessionContext], Translator]
    select_records: RecordSelector = in_file_order
    list_paths: tuple[str, ...] = ()
    id_paths: str = "id"
    fact_paths: Mapping[str, str] = field(default_factory=dict)
    documents_only: bool = False
    repeats_calls: bool = False
    session_of: Callable[[Fields], str | None] | None = None


class SessionReader:
    """Reads the sessions of one format.

    A span's key is ``<call id>:call`` or ``<call id>:result``, else the record's id with the JSON
    pointer to the part in its message, else the record's location.
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
        if not any(typical_bytes in head for typical_bytes in self._format.typical_bytes):
            return False
        if self._format.documents_only and source.json_lines:
            return False
        if source.json_lines or len(source.head_records) > 1:
            return self._format.recognises(source.head_records)
        header, values, list_pointer = self._record_list_in(source.json)
        if source.damage and list_pointer is None:
            # The object may be only the first of several records in a broken file.
            return False
        return self._format.recognises([header, *map(fields_of, values[:_CHECKED_COUNT])])

    def read(self, source: Source) -> FileReport:
        """Return a trace of each session in the file."""
        problems: list[Problem] = []
        header, records = self._records_of_file(source, problems)
        sessions = self._records_by_session(records)
        if len(sessions) == 1:
            traces = [self.trace(source.path, source.data, sessions[0], header)]
        else:
            traces = [
                self.trace(
                    source.path,
                    canonical_bytes([record.value for record in session_records]),
                    session_records,
                    header,
                    number,
                )
                for number, session_records in enumerate(sessions)
            ]
        return report_of(self, source, traces, problems)

    def trace(
        self,
        path: Path,
        content: bytes,
        records: Sequence[SessionRecord],
        header: Fields,
        number: int | None = None,
        problems: Iterable[Problem] = (),
    ) -> Trace:
        """Return the trace of a session.

        Args:
            path: The file, or the folder with the files of the session.
            content: The bytes that identify the session if it has no id.
            records: The records of the session.
            header: The fields beside the list of records.
            number: The number of the session in the file; None if it is the only one.
            problems: The problems that reading the records had.
        """
        problems = list(problems)
        shown_records = self._format.select_records(records, problems)
        session = SessionContext(header, [record.value for record in shown_records])
        self._set_facts(session, records)
        steps = StepList()
        mapper = MessageMapper(steps)
        self._add_turns(session, shown_records, mapper)
        if session.tokens is not None and all(step.tokens is None for step in steps.steps):
            mapper.count_tokens(session.tokens)
        meta = TraceMeta(
            task=task_of(_first_prompt(steps.steps), steps=steps.steps),
            system=session.system or self._format.system,
            model=session.model or mapper.model,
            version=session.version,
        )
        origin = RunOrigin(self, path, content, number, session.id)
        return trace_of_steps(origin, steps, meta, [*problems, *mapper.problems])

    def _add_turns(
        self, session: SessionContext, records: Sequence[SessionRecord], mapper: MessageMapper
    ) -> None:
        """Add the spans of a session's shown records to a mapper."""
        translate = self._format.make_translator(session)
        for record in records:
            turn = translate(record.value)
            if turn is not None:
                if self._format.repeats_calls:
                    turn = _without_calls(turn, mapper.calls)
                key = text_at(record.value, self._format.id_paths) or record.location
                mapper.add_turn(turn, key, record.location)

    def _set_facts(self, session: SessionContext, records: Sequence[SessionRecord]) -> None:
        """Set the id, model and version of a session, each from the first value that has it.

        The header comes first, then the shown records, then all ``records``.
        """
        missing_paths = dict(self._format.fact_paths)
        are_all_shown = len(session.values) == len(records)
        all_values = () if are_all_shown else (record.value for record in records)
        for value in chain((session.header,), session.values, all_values):
            for name, paths in tuple(missing_paths.items()):
                fact = text_at(value, paths)
                # A whole number is the version of the file format, not of the program.
                is_file_version = name == "version" and fact is not None and fact.isdecimal()
                if fact is None or is_file_version:
                    continue
                setattr(session, name, fact)
                del missing_paths[name]
            if not missing_paths:
                return

    def _records_of_file(
        self, source: Source, problems: list[Problem]
    ) -> tuple[Fields, Sequence[SessionRecord]]:
        """Return the fields beside the list of records, and the list."""
        # A file of lines may have other text between its records.
        is_mixed_with_text = source.json is None and len(source.head_records) > 1
        if source.json_lines or is_mixed_with_text:
            return {}, list(records_on_lines(source, problems))
        header, values, list_pointer = self._record_list_in(source.json)
        located_values = (
            ("/" if list_pointer is None else f"{list_pointer}/{number}", value)
            for number, value in enumerate(values)
        )
        return header, list(_objects_among(located_values, problems))

    def _record_list_in(self, document: object) -> tuple[Fields, Sequence[object], str | None]:
        """Return the fields beside the list of records, the list, and the JSON pointer to the list.

        A document without such a list is the only record, and the pointer is None.
        """
        if isinstance(document, list):
            return {}, document, ""
        fields = fields_of(document)
        for path in self._format.list_paths:
            *outer_fields, name = path.split(".")
            values = fields_at(fields, *outer_fields).get(name)
            if isinstance(values, list):
                header = without(fields, (name,))
                return header, values, f"/{path.replace('.', '/')}"
        return {}, [fields] if fields else [], None

    def _records_by_session(self, records: Sequence[SessionRecord]) -> list[list[SessionRecord]]:
        """Group the records by session.

        A record without a session name belongs to the session of the previous record. Records
        before the first name belong to the first session.
        """
        session_of = self._format.session_of
        if session_of is None:
            return [list(records)]
        records_by_name: dict[str, list[SessionRecord]] = {}
        unnamed_records: list[SessionRecord] = []
        current_session = unnamed_records
        for record in records:
            name = session_of(record.value)
            if name is not None:
                current_session = records_by_name.setdefault(name, [])
            current_session.append(record)
        if not records_by_name:
            return [unnamed_records]
        first_session = next(iter(records_by_name.values()))
        first_session[:0] = unnamed_records
        return list(records_by_name.values())


def _without_calls(turn: Turn, known_ids: Container[str | None]) -> Turn:
    new_pieces = (
        piece
        for piece in turn.pieces
        if piece.kind is not SpanKind.TOOL_CALL or piece.call_id not in known_ids
    )
    return replace(turn, pieces=tuple(new_pieces))


def text_at(value: Fields, paths: str) -> str | None:
    """Return the first text or number at the dotted paths, as one short line.

    Args:
        value: A record.
        paths: Dotted paths, separated by spaces; ``type:path`` applies to records of that type.
    """
    for kind, outer_fields, last_field in _parsed_paths(paths):
        if kind and value.get("type") != kind:
            continue
        fields = value
        for name in outer_fields:
            fields = fields_of(fields.get(name))
        if last_field in fields:
            text = identifier_in(fields, last_field)
            if text is not None:
                return short_name(text)
    return None


@cache
def _parsed_paths(paths: str) -> list[tuple[str, list[str], str]]:
    """Return the type, outer fields and last field of each path ``type:outer_field.last_field``."""
    parsed_paths = []
    for path in names(paths):
        kind, _colon, dotted_path = path.rpartition(":")
        *outer_fields, last_field = dotted_path.split(".")
        parsed_paths.append((kind, outer_fields, last_field))
    return parsed_paths


def along_last_branch(id_field: str, parent_field: str) -> RecordSelector:
    """Return a selector that leaves out the abandoned branches of a tree of records.

    An abandoned branch has messages and does not lead to the last record.

    Args:
        id_field: The field with the id of a record; records with the same id are one node.
        parent_field: The field with the id of the record that a record follows.
    """

    def _select_last_branch(
        records: Sequence[SessionRecord], problems: list[Problem]
    ) -> Sequence[SessionRecord]:
        """Return the records that are on no abandoned branch; add a problem for the others."""
        side_branch_by_node = _side_branch_by_node(_parent_by_node(records, id_field, parent_field))
        located_records = [
            (side_branch_by_node.get(identifier_in(record.value, id_field)), record)
            for record in records
        ]
        messages = [
            (side_branch, record)
            for side_branch, record in located_records
            if side_branch is not None and has_message(record.value)
        ]
        if not messages:
            return records
        abandoned_branches = {side_branch for side_branch, _record in messages}
        branch_count = len(abandoned_branches)
        origin = "an abandoned branch" if branch_count == 1 else f"{branch_count} branches"
        singular = f"message of {origin} is not shown"
        plural = f"messages of {origin} are not shown"
        _side_branch, first_message = messages[0]
        problem = Problem(first_message.location, counted(len(messages), singular, plural))
        problems.append(problem)
        return [record for branch, record in located_records if branch not in abandoned_branches]

    return _select_last_branch


def _parent_by_node(
    records: Sequence[SessionRecord], id_field: str, parent_field: str
) -> dict[str, str | None]:
    """Map the id of each record to the id of its parent; None for a root.

    A record without a known parent follows the previous record. A message with a null parent is a
    root.
    """
    parent_by_node: dict[str, str | None] = {}
    previous_node: str | None = None
    for record in records:
        node = identifier_in(record.value, id_field)
        if node is None:
            continue
        if node not in parent_by_node:
            parent = identifier_in(record.value, parent_field)
            if parent not in parent_by_node:
                has_null_parent = record.value.get(parent_field, "") is None
                is_root = has_null_parent and has_message(record.value)
                parent = None if is_root else previous_node
            parent_by_node[node] = parent
        previous_node = node
    return parent_by_node


def _side_branch_by_node(parent_by_node: dict[str, str | None]) -> dict[str | None, str]:
    """Map each node on a side branch to the branch's first node.

    The main branch leads to the last node; all others are side branches.
    """
    main_branch_nodes: set[str] = set()
    node = next(reversed(parent_by_node), None)
    while node is not None:
        main_branch_nodes.add(node)
        node = parent_by_node[node]

    side_branch_by_node: dict[str | None, str] = {}
    for node, parent in parent_by_node.items():
        if node not in main_branch_nodes:
            # A node whose parent is on the main branch begins a side branch.
            side_branch_by_node[node] = side_branch_by_node.get(parent, node)
    return side_branch_by_node


def has_message(record: Fields) -> bool:
    """Return whether a record holds a message of a user, a model or a tool."""
    role = fields_of(record.get("message")).get("role", record.get("role"))
    return isinstance(role, str) and role != "system"


def _first_prompt(steps: Sequence[Step]) -> str | None:
    """Return the first text that the user typed, without the program's additions."""
    prompts = (
        user_text(step.text)
        for step in steps
        if step.role is Role.USER and step.kind is SpanKind.MESSAGE
    )
    return next(filter(None, prompts), None)


def records_on_lines(source: Source, problems: list[Problem]) -> Iterator[SessionRecord]:
    """Return the objects on the lines of a file as records.

    Args:
        source: The file.
        problems: The list to which a problem is added for each line that is no object.
    """
    records = records_by_line(source, problems)
    return _objects_among(((record.location, record.value) for record in records), problems)


def _objects_among(
    located_values: Iterable[tuple[str, object]], problems: list[Problem]
) -> Iterator[SessionRecord]:
    """Yield the objects among values with locations; add a problem for each other value."""
    for location, value in located_values:
        if isinstance(value, Mapping):
            yield SessionRecord(value, location)
        else:
            problems.append(Problem(location, "not a JSON object, left out"))
