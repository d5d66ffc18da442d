"""The reading of one file up to its first spans, or the reason why it is no trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from mast_tui.counts import counted
from mast_tui.traces.file_places import missing_file_text
from mast_tui.traces.io.decoding import decode
from mast_tui.traces.io.json_lines import (
    NUL_BYTES,
    TEXT_AFTER_DOCUMENT,
    begins_with_text,
    document_in_string,
    split_records,
)
from mast_tui.traces.io.json_values import dump_line, python_literal, why_not_json
from mast_tui.traces.io.packed import TooBig
from mast_tui.traces.io.regular_files import FOLDER_NOT_FILE, NOT_REGULAR, is_regular
from mast_tui.traces.io.source import RecordsSource, Source
from mast_tui.traces.model import FileReport, Problem, Thread, Trace
from mast_tui.traces.readers import read_recognised, read_text
from mast_tui.traces.readers.codex import reader as codex
from mast_tui.traces.readers.json_fields import is_of_other_format, items_of
from mast_tui.traces.scan.big_documents import BIG_BYTES, BIG_DOCUMENTS, BigDocuments
from mast_tui.traces.scan.file_kinds import kind_by_name

LOOKED_FOR: Final = (
    "looked for agent sessions (Codex, Claude Code), message lists, OpenTelemetry and other "
    "tracing exports, benchmark trajectories and logs, MAST-Data"
)
"""The end of the message about a named file without a trace."""

_TEXT_SUFFIXES: Final = frozenset({".log", ".txt"})
_JSON_SUFFIXES: Final = frozenset({".json", ".jsonl", ".ndjson", ".traj"})
_MOST_SPLIT_BYTES: Final = 64 << 20
"""The largest file of an unknown format that is split into records."""

_MOST_UNKNOWN_RECORDS: Final = 20
_MOST_UNKNOWN_PARTS: Final = 8
"""The number of unknown records, or parts of a document, after which the search for traces ends."""

_FALLBACK_FORMAT: Final = "message-list"
"""The format of a record that resembles a message of any program."""

_WORKSPACE_FORMAT: Final = "mast-tui-workspace"
"""The format of the export ``jsonl`` of a workspace."""

_NEVER_TEXT: Final = frozenset({"table", "image", "recording", "database"})


def read_one(path: Path, named: bool, big: BigDocuments = BIG_DOCUMENTS) -> FileReport:
    """Read one file, a file of lines only up to its first slice.

    Another process reads a big document.

    Args:
        path: The file.
        named: True if the user named this very file; then a file without a trace is ``failed``.
        big: The limits above which another process reads documents.

    Returns:
        The traces and problems. If there is no trace, ``skipped`` has the reason; if the file
        cannot be read, ``failed`` has the reason. Nothing is raised.
    """
    source = Source(path)
    report = _read_whole(source, named, big)
    nul_line = source.line_of_nul_bytes if report.traces else None
    if nul_line is not None:
        damage = Problem(f"line {nul_line}", NUL_BYTES)
        if all(damage not in trace.problems for trace in report.traces):
            report = report._replace(problems=(*report.problems, damage))
    for trace in report.traces:
        trace.opened = source.opened
        big.offer(trace, source)  # lets another process read the rest of a long file
    if named and report.skipped is not None:
        return FileReport(path, failed=f"no trace: {report.skipped}; {LOOKED_FOR}")
    return report


def _read_whole(source: Source, named: bool, big: BigDocuments) -> FileReport:
    """Read a file, and its single records if that finds more; a big one in another process."""
    path = source.path
    big_document = None
    try:
        if is_regular(path):
            big_document = big.read(source)
    except TooBig as error:  # do not unpack the file again
        return FileReport(path, failed=error.strerror)
    except OSError:
        pass  # the reading below raises the error again, and reports it
    if big_document is None:
        report = _read_safely(source, partial(_read_by_recognition, named=named))
    else:  # no report means that no reader has recognised the document
        report = big_document.report or _read_safely(source, partial(_read_text, named=named))
    assert report is not None  # only ``_read_known`` may return None
    is_too_big = big_document is not None and report.failed is not None
    return report if is_too_big else _with_split_records(source, report)


def _with_split_records(source: Source, report: FileReport) -> FileReport:
    """Return the report on the single records of a file, if that finds more than ``report``."""
    if not report.traces or report.format == "text":
        split_report = _split_records_report(source)
        if split_report is None or not begins_with_text(source.head):
            return split_report or report
        return split_report._replace(
            problems=(*split_report.problems, Problem("line 1", "text beside the JSON, left out"))
        )
    if _holds_documents(source, report):
        return _split_records_report(source, are_documents=True) or report
    # More text, such as another document, may follow the document that was read.
    if any(problem.message.endswith(TEXT_AFTER_DOCUMENT) for problem in source.damage):
        split_report = _split_records_report(source, report.format)
        if split_report is not None and _span_count(split_report) >= _span_count(report):
            return split_report
    return report


def _holds_documents(source: Source, report: FileReport) -> bool:
    """Return whether records were read as messages of any program, but are documents.

    The first, the middle and the last record are tried, as messages may follow a document.
    """
    if report.format != _FALLBACK_FORMAT or source.size > BIG_BYTES:
        return False
    records = source.json_lines or source.json
    if not isinstance(records, list) or not records:
        return False
    return all(
        _read_content(source, dump_line(records[index])).format not in (None, _FALLBACK_FORMAT)
        for index in (0, len(records) // 2, -1)
    )


def _span_count(report: FileReport) -> int:
    return sum(map(len, report.traces))


def read_known(source: Source) -> FileReport | None:
    """Read a file of a known format; None if no reader knows the file.

    If the file cannot be read, ``failed`` has the reason; nothing is raised.
    """
    return _read_safely(source, _read_known)


def _read_safely(source: Source, read: Callable[[Source], FileReport | None]) -> FileReport | None:
    """Return the report of ``read``, with the problems that the source has found in its content.

    If the file cannot be read, ``failed`` has the reason.
    """
    path = source.path
    try:
        report = read(source)
    except FileNotFoundError:
        return FileReport(path, failed=missing_file_text(path))
    except OSError as error:
        return FileReport(path, failed=error.strerror or str(error))
    if report is None:
        return None
    if report.format is None:  # the file is no trace
        return _with_remarks(report, source.remarks)
    problems = [*report.problems, *source.remarks]
    if source.broken is not None:  # compressed data ends early
        problems.append(Problem("whole file", f"{source.broken}; what came before it was read"))
    if report.format != "text":  # the text of a log need not be JSON
        problems += source.damage
    return report._replace(problems=tuple(problems))


def _with_remarks(report: FileReport, remarks: Sequence[Problem]) -> FileReport:
    """Return the report on a file that is no trace, with readers' remarks added to the reason."""
    remarks_text = "; ".join(f"{remark.place} {remark.message}" for remark in remarks)
    if not remarks_text:
        return report
    if report.skipped is not None:
        return report._replace(skipped=f"{report.skipped}; {remarks_text}")
    return report._replace(failed=f"{report.failed}; {remarks_text}")


def _read_by_recognition(source: Source, named: bool) -> FileReport:
    """Read a file by the first reader that recognises it, else as text."""
    path = source.path
    if path.is_dir():
        return FileReport(path, failed=FOLDER_NOT_FILE)
    if path.exists() and not path.is_file():
        return FileReport(path, skipped=NOT_REGULAR)
    if source.size == 0:
        return FileReport(path, skipped=_empty_file_text(source))
    if not source.is_binary and codex.READER.recognises(source):
        return codex.READER.read(source)  # first, as other readers may need the whole file
    return _read_known(source) or _read_text(source, named)


def _read_known(source: Source) -> FileReport | None:
    """Return the report on a binary file, a file of labels, a known format or unknown JSON.

    Return None for any other file, which may be text.
    """
    path = source.path
    if source.is_binary:
        return read_recognised(source) or FileReport(path, skipped="binary file")
    # A local import, because a Codex session needs it not and should start fast.
    from mast_tui.traces.scan.label_files import label_file_kind

    label_description = label_file_kind(source)
    if label_description is not None:
        return FileReport(path, skipped=label_description)
    report = read_recognised(source)
    if report is not None:
        return report
    if path.suffix.lower() in _JSON_SUFFIXES or (source.json is not None and not source.damage):
        return _unknown_json_report(source)
    return None


def _read_text(source: Source, named: bool) -> FileReport:
    """Read a file as text if the user named it or its suffix is that of a text."""
    path = source.path
    kind = kind_by_name(path)
    if kind in _NEVER_TEXT:
        return FileReport(path, skipped=kind)
    if named or path.suffix.lower() in _TEXT_SUFFIXES:
        return read_text(source)
    return FileReport(path, skipped="plain text; give the file itself to read it as a trace")


class _RecordList(NamedTuple):
    """Records in a file, each as JSON on one line.

    ``are_parts`` is True unless they are the objects of one list. Parts of a document may also be
    something else than traces, so they are checked more strictly.
    """

    records: list[bytes]
    are_parts: bool = False


def _split_records_report(
    source: Source, format_name: str | None = None, are_documents: bool = False
) -> FileReport | None:
    """Return the report on a file whose JSON records are laid out in an unusual way.

    The records may be in lists and objects, in one JSON string, have any separators, or have text
    around them. They are read as JSON lines, or else as one document each. Return None if the
    layout is not unusual, or no reader knows the records.
    """
    try:
        if not is_regular(source.path) or not 0 < source.size <= _MOST_SPLIT_BYTES:
            return None
        inner_document = document_in_string(source.data)
        if inner_document is not None:  # the whole file is one JSON string
            return _read_content(source, inner_document)
        is_intact = not source.is_binary and source.json is not None and not source.damage
        split_lists = (
            _record_lists(source.json)
            if is_intact
            else iter([_RecordList(split_records(source.data))])
        )
        lines = [line for line in source.data.split(b"\n") if line.strip()]
    except OSError:
        return None  # the caller has reported this error
    for records, are_parts in split_lists:
        if records == lines:  # JSON lines were read before, but not as documents
            report = _separate_documents_report(source, records)
            are_whole_runs = report is not None and _span_count(report) > len(report.traces)
            return report if are_whole_runs else None
        if not are_documents and not are_parts:
            report = _read_content(source, b"".join(record + b"\n" for record in records))
            if report.traces and format_name in (None, _FALLBACK_FORMAT, report.format):
                return report
        report = _separate_documents_report(source, records, are_parts)
        if report is not None:
            return report
    return None


def _read_content(source: Source, content: bytes) -> FileReport:
    """Read a file as if it had this content; the report is empty if no reader knows it."""
    return _read_safely(RecordsSource(source, content), read_recognised) or FileReport(source.path)


def _separate_documents_report(
    source: Source, records: Sequence[bytes], are_parts: bool = False
) -> FileReport | None:
    """Return the report on a file whose records are traces of their own.

    Return None if none of the first records is a trace. Of the parts of one document, at least half
    must be traces, and messages of any program must include a user's.
    """
    traces: list[Trace] = []
    problems: list[Problem] = []
    format_of_records: str | None = None
    unknown_count = 0
    most_unknown = _MOST_UNKNOWN_PARTS if are_parts else _MOST_UNKNOWN_RECORDS
    for record in records:
        if unknown_count == most_unknown and format_of_records is None:
            return None
        report = _read_content(source, record)
        problems += report.problems
        if any(
            trace.meta.task or not are_parts or report.format != _FALLBACK_FORMAT
            for trace in report.traces
        ):
            format_of_records = report.format
            traces += report.traces
        else:
            unknown_count += 1
    if format_of_records is None or (are_parts and 2 * unknown_count > len(records)):
        return None
    for trace_number, trace in enumerate(traces):
        trace.record = trace_number
    if are_parts and unknown_count:
        message = f"{counted(unknown_count, 'part')} of no known format, left out"
        problems.append(Problem("whole file", message))
    return FileReport(source.path, format_of_records, tuple(traces), tuple(problems))


def _record_lists(document: object, is_inner: bool = False) -> Iterator[_RecordList]:
    """Yield the lists of values in a document that may be its records.

    First come the items of a list or the values of an object, then those within each value.
    Logfire's records between a program and Claude Code are in the field ``messages``.
    """
    values = items_of(document)
    is_object = isinstance(document, dict)
    if isinstance(document, dict):
        values = list(document.values())
        exchanged = [each for each in items_of(document.get("messages")) if isinstance(each, dict)]
        messages = [each.get("message") for each in exchanged if "direction" in each]
        if any(messages):
            values = messages
            is_object = False
        elif is_of_other_format(document):
            return
    parts = [value for value in values if value and isinstance(value, dict | list)]
    are_parts = is_object or is_inner or not any(isinstance(part, dict) for part in parts)
    if parts:
        records = [dump_line(each).rstrip() for each in (parts if are_parts else values)]
        yield _RecordList(records, are_parts)
    for part in () if is_inner else parts[:_MOST_UNKNOWN_PARTS]:
        yield from _record_lists(part, is_inner=True)


def _empty_file_text(source: Source) -> str:
    """Return the reason why a file with no content is no trace."""
    if source.packing is None:
        return "empty"
    reason = f": {source.broken}" if source.broken else ""
    return f"{source.packing} data with nothing in it{reason}"


def _unknown_json_report(source: Source) -> FileReport:
    """Return the report on a file that should be JSON, but has no known format or is damaged."""
    filled_lines = [line for line in source.head_lines if line.strip()]
    if source.head_records and len(filled_lines) > 1:
        if source.head_records[0].get("format") == _WORKSPACE_FORMAT:
            return FileReport(source.path, skipped="labels of a workspace, for mast-tui import")
        return FileReport(source.path, skipped="JSON lines of no known trace format")
    text, _problem = decode(source.data)
    if python_literal(text) is not None:
        return FileReport(source.path, skipped="Python values of no known trace format")
    reason = why_not_json(text)
    if reason:
        hint = "fix it, or rename it to .txt to read it as plain text"
        return FileReport(source.path, failed=f"not JSON, {reason}; {hint}")
    return FileReport(source.path, skipped="JSON of no known trace format")


def read_run(path: Path, members: Sequence[Path], *, named: bool) -> FileReport:
    """Read a file and the files of its sub-agents as one trace.

    Args:
        path: The file of the run.
        members: The files of its sub-agents.
        named: True if the user named this very file.
    """
    report = read_one(path, named)
    if not members or len(report.traces) != 1:
        return report
    # A local import for a fast start of the app, because most runs are one file.
    from mast_tui.traces.index.multi_file_trace import MemberFile, join_members

    sub_agents = []
    problems = list(report.problems)
    for member in members:
        member_report = read_one(member, named=False)
        problems += member_report.problems
        for trace in member_report.traces[:1]:
            # A thread is the part of one agent or sub-agent in a run.
            member_thread = member_report.thread or Thread(member.stem, path.stem)
            sub_agents.append(MemberFile(member_thread, trace, relative_name(member, path)))
    thread = report.thread or Thread(report.traces[0].identity.trace_id)
    run = join_members(MemberFile(thread, report.traces[0], path.name), sub_agents)
    return report._replace(traces=(run,), problems=tuple(problems))


def relative_name(path: Path, other: Path) -> str:
    """Return the path of a file relative to the nearest folder that it shares with another file.

    Args:
        path: The file.
        other: The other file.

    Returns:
        The relative path; the name of the file if the files share no folder.
    """
    for folder in other.parents:
        if path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
    return path.name
