"""Sessions of agents that keep each event, message or part of a message in a file of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import InvalidJSON, as_text, canonical_bytes, load_json
from mast_tui.traces.model import FileReport, Problem, Trace
from mast_tui.traces.readers.json_fields import Fields, fields_of
from mast_tui.traces.readers.openhands import reader as openhands
from mast_tui.traces.readers.sessions.documents import OPENCODE
from mast_tui.traces.readers.sessions.engine import SessionReader, SessionRecord
from mast_tui.traces.readers.sessions.messages import STRANDS
from mast_tui.traces.times import unix_seconds
from mast_tui.traces.trials.base import Trial, bytes_of

_MAX_BYTES: Final = 64 << 20
_EVENT_FILE: Final = re.compile(r"(?:event-)?\d{1,12}(?:-[^/]*)?\.json")
_MESSAGE_FILE: Final = re.compile(r"message_\d{1,12}\.json")
_MESSAGE_NUMBER: Final = re.compile(r"\d{1,12}")


def find_openhands(folder: Path, names: frozenset[str]) -> Trial | None:
    """Return the conversation in a folder of files such as ``event-00001-….json`` or ``1.json``.

    Args:
        folder: A folder.
        names: The names of the files and folders in it.

    Returns:
        The trial; None if the folder holds no such conversation.
    """
    if not any(map(_EVENT_FILE.fullmatch, names)):
        return None
    files = openhands.event_files(folder)
    if not files:
        return None
    return Trial(
        "OpenHands conversation",
        folder,
        sources=(),
        fact_files=tuple(files),
        read=partial(_read_openhands, folder),
    )


def find_opencode(folder: Path, names: frozenset[str]) -> Trial | None:
    """Return the sessions in OpenCode's storage, which has a folder for each kind of record.

    Args:
        folder: A folder.
        names: The names of the files and folders in it.

    Returns:
        The trial; None if the folder is no such storage.
    """
    if not {"session", "message", "part"} <= names:
        return None
    nested_sessions = sorted(folder.glob("session/*/*.json"))
    sessions = (*nested_sessions, *sorted(folder.glob("session/*.json")))
    if not sessions:
        return None
    messages = sorted(folder.glob("message/*/*.json"))
    parts = sorted(folder.glob("part/**/*.json"))
    return Trial(
        "OpenCode storage",
        folder,
        sources=(),
        fact_files=(*sessions, *messages, *parts),
        read=partial(_read_opencode, folder, sessions),
    )


def find_strands(folder: Path, names: frozenset[str]) -> Trial | None:
    """Return the session in a folder of Strands, of one of its agents, or of its messages.

    Args:
        folder: A folder.
        names: The names of the files and folders in it.

    Returns:
        The trial; None if the folder is none of these.
    """
    if {"session.json", "agents"} <= names:
        files = folder.glob("agents/*/messages/*.json")
    elif {"agent.json", "messages"} <= names:
        files = folder.glob("messages/*.json")
    elif any(map(_MESSAGE_FILE.fullmatch, names)):
        files = (path for path in folder.iterdir() if _MESSAGE_FILE.fullmatch(path.name))
    else:
        return None
    messages = tuple(sorted(files, key=_message_sort_key))
    if not messages or "message_id" not in _json_object_in(messages[0], folder, []):
        return None
    return Trial(
        "Strands session",
        folder,
        sources=(),
        fact_files=(*(path for path in (folder / "session.json",) if path.is_file()), *messages),
        read=partial(_read_strands, folder, messages),
    )


def _read_openhands(folder: Path) -> FileReport:
    report = openhands.read_event_folder(folder)
    return report or FileReport(folder, failed="its event files cannot be read any more")


def _read_opencode(folder: Path, session_files: Sequence[Path]) -> FileReport:
    """Return a trace for each session that has an id and messages."""
    problems: list[Problem] = []
    parts_by_message = _parts_by_message(folder, problems)
    reader = SessionReader(OPENCODE)
    traces = []
    for session_index, session_file in enumerate(session_files):
        session = _json_object_in(session_file, folder, problems)
        session_id = as_text(session.get("id"))
        if session_id is None:
            continue
        records = []
        for message_file in sorted((folder / "message" / session_id).glob("*.json")):
            info = _json_object_in(message_file, folder, problems)
            message_id = as_text(info.get("id")) or message_file.stem
            message = {"info": info, "parts": parts_by_message.get(message_id, [])}
            records.append(SessionRecord(message, str(message_file.relative_to(folder))))
        records.sort(key=_time_of_message)
        if records:
            header = {"info": {"sessionID": session_id, **session}}
            traces.append(_trace_of_session(reader, folder, header, records, session_index))
    return FileReport(folder, OPENCODE.name, tuple(traces), tuple(problems))


def _parts_by_message(folder: Path, problems: list[Problem]) -> dict[str, list[object]]:
    """Return the parts of each message; older versions keep all parts in one folder."""
    parts: dict[str, list[object]] = {}
    for path in sorted((folder / "part").glob("**/*.json")):
        part = _json_object_in(path, folder, problems)
        if part:
            message_id = as_text(part.get("messageID")) or path.parent.name
            parts.setdefault(message_id, []).append(part)
    return parts


def _time_of_message(record: SessionRecord) -> float:
    times = fields_of(fields_of(record.value.get("info")).get("time"))
    return unix_seconds(times.get("created")) or 0.0


def _read_strands(folder: Path, message_files: Sequence[Path]) -> FileReport:
    """Return the trace of a session; the messages of several agents are sorted by time."""
    problems: list[Problem] = []
    header = _json_object_in(folder / "session.json", folder, problems)
    agents = {path.parent.parent.name for path in message_files}
    records = []
    for path in message_files:
        message = _json_object_in(path, folder, problems)
        if not message:
            continue
        if len(agents) > 1:
            message = {**message, "agent": path.parent.parent.name.removeprefix("agent_")}
        records.append(SessionRecord(message, str(path.relative_to(folder))))
    if len(agents) > 1:
        records.sort(key=lambda record: unix_seconds(record.value.get("created_at")) or 0.0)
    traces = [_trace_of_session(SessionReader(STRANDS), folder, header, records)] if records else []
    return FileReport(folder, STRANDS.name, tuple(traces), tuple(problems))


def _trace_of_session(
    reader: SessionReader,
    folder: Path,
    header: Fields,
    records: Sequence[SessionRecord],
    session_number: int | None = None,
) -> Trace:
    """Return the trace of a session; ``session_number`` is None if the folder has only one."""
    content = canonical_bytes([record.value for record in records])
    return reader.trace(folder, content, records, header, session_number)


def _json_object_in(path: Path, folder: Path, problems: list[Problem]) -> Fields:
    """Return the JSON object in a file; report an unreadable file and return an empty object."""
    name = str(path.relative_to(folder))
    data = bytes_of(path, name, problems, _MAX_BYTES)
    try:
        return {} if data is None else fields_of(load_json(as_utf8(data)))
    except InvalidJSON as error:
        problems.append(Problem(name, f"not JSON, left out: {error}"))
    return {}


def _message_sort_key(path: Path) -> tuple[str, int, str]:
    """Return a sort key: the folder of a message file, then the number in its name."""
    number = _MESSAGE_NUMBER.search(path.stem)
    return str(path.parent), int(number[0]) if number else 0, path.name
