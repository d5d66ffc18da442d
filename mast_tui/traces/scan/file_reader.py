"""Reading of one file: as far as its first spans need it, or left out with a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mast_tui.traces.io.decoding import decode
from mast_tui.traces.io.json_lines import NUL_BYTES, TEXT_AFTER_DOCUMENT, split_records
from mast_tui.traces.io.json_values import why_not_json
from mast_tui.traces.io.packed import TooBig
from mast_tui.traces.io.python_literals import python_literal
from mast_tui.traces.io.regular_files import NOT_REGULAR, is_regular
from mast_tui.traces.io.source import RecordsSource, Source, is_no_json
from mast_tui.traces.model import FileReport, Problem, Thread, Trace
from mast_tui.traces.readers import read_recognised, read_text
from mast_tui.traces.readers.codex import reader as codex
from mast_tui.traces.scan.big_documents import BIG_DOCUMENTS, BigDocuments
from mast_tui.traces.scan.folder import kind_by_name

if TYPE_CHECKING:
    from mast_tui.traces.index.store import CachedDocument

LOOKED_FOR: Final = (
    "looked for agent sessions (Codex, Claude Code), message lists, OpenTelemetry and other "
    "tracing exports, benchmark trajectories and logs, MAST-Data"
)
"""The end of the message on a file without a trace that the user named."""

_TEXT_SUFFIXES: Final = frozenset({".log", ".txt"})
_JSON_SUFFIXES: Final = frozenset({".json", ".jsonl", ".ndjson", ".traj"})
_MOST_SPLIT_BYTES: Final = 64 << 20
"""The largest file of an unknown format that is split into records."""

_RECORDS_TRIED: Final = 20
"""The number of unknown records after which the file is given up."""

_NEVER_TEXT: Final = frozenset({"table", "image", "recording", "database"})


def read_one(path: Path, named: bool, big: BigDocuments = BIG_DOCUMENTS) -> FileReport:
    """Read one file.

    A line-based trace has been read up to its first slice and grows by ``advance``; a ``big``
    document is read in a process of its own.

    Args:
        path: The file.
        named: Whether the user named just this file; then one without a trace is ``failed``.
        big: The limits above which documents are read in another process.

    Returns:
        The traces and problems. A file that holds no trace is ``skipped``. Nothing is raised: what
        cannot be read is ``failed`` with the reason.
    """
    source = Source(path)
    try:
        document = _read_in_background(source, big)
    except TooBig as error:  # unpacking it once to find that out is enough
        report: FileReport | None = FileReport(path, failed=error.strerror)
    else:
        if document is None:
            report = _read_safely(source, lambda: _read(source, named))
        else:
            report = document.report or _read_safely(source, lambda: _read_text(source, named))
    assert report is not None
    if not report.traces or report.format == "text":
        report = _of_split_records(source) or report
    elif _is_followed(source):
        split = _of_split_records(source, report.format)
        if split is not None and len(split.traces) > len(report.traces):
            report = split
    nul_line = source.line_of_nul_bytes if report.traces else None
    if nul_line is not None:
        damage = Problem(f"line {nul_line}", NUL_BYTES)
        if all(damage not in trace.problems for trace in report.traces):
            report = report._replace(problems=(*report.problems, damage))
    for trace in report.traces:
        trace.opened = source.opened
        big.offer(trace, source)
    if named and report.skipped is not None:
        return FileReport(path, failed=f"no trace: {report.skipped}; {LOOKED_FOR}")
    return report


def _is_followed(source: Source) -> bool:
    """Return whether a document was read and more text, such as another document, follows it."""
    return any(problem.message.endswith(TEXT_AFTER_DOCUMENT) for problem in source.damage)


def read_known(source: Source) -> FileReport | None:
    """Read a file that may have to be read whole; None if no reader knows it.

    Nothing is raised: what cannot be read is ``failed`` with the reason.
    """
    return _read_safely(source, lambda: _read_known(source))


def _read_safely(source: Source, read: Callable[[], FileReport | None]) -> FileReport | None:
    """Return the report with the file's damage; a file that cannot be read has ``failed``."""
    path = source.path
    try:
        report = read()
    except FileNotFoundError:
        return FileReport(path, failed="no such file or folder")
    except OSError as error:
        return FileReport(path, failed=error.strerror or str(error))
    if report is None:
        return None
    if report.format is None:
        return _with_remarks(report, source.remarks)
    if source.remarks:
        report = report._replace(problems=(*report.problems, *source.remarks))
    if source.broken is not None:
        problem = Problem("whole file", f"{source.broken}; what came before it was read")
        report = report._replace(problems=(*report.problems, problem))
    if source.damage and report.format != "text":
        report = report._replace(problems=(*report.problems, *source.damage))
    return report


def _with_remarks(report: FileReport, remarks: Sequence[Problem]) -> FileReport:
    """Return the report on a file that is no trace with readers' remarks as possible reasons."""
    reasons = "; ".join(f"{remark.place} {remark.message}" for remark in remarks)
    if not reasons:
        return report
    if report.skipped is not None:
        return report._replace(skipped=f"{report.skipped}; {reasons}")
    return report._replace(failed=f"{report.failed}; {reasons}")


def _read_in_background(source: Source, big: BigDocuments) -> CachedDocument | None:
    """Return a big document; None for a file that is read here, if it can be read at all.

    Raises:
        TooBig: It holds more than may be unpacked.
    """
    try:
        return big.read(source) if is_regular(source.path) else None
    except TooBig:
        raise
    except OSError:
        return None  # it comes again where it is said


def _read(source: Source, named: bool) -> FileReport:
    """Read a file by the first reader that recognises it, else as text."""
    path = source.path
    if path.is_dir():
        return FileReport(path, failed="a folder, not a file")
    if path.exists() and not path.is_file():
        return FileReport(path, skipped=NOT_REGULAR)
    if source.size == 0:
        return FileReport(path, skipped=_words_on_nothing(source))
    if not source.is_binary and codex.READER.recognises(source):
        return codex.READER.read(source)  # before anything that may need the whole file
    return _read_known(source) or _read_text(source, named)


def _read_known(source: Source) -> FileReport | None:
    path = source.path
    if source.is_binary:
        return read_recognised(source) or FileReport(path, skipped="binary file")
    # Start-up: Codex sessions, known by then, need none of what reads whole documents.
    from mast_tui.traces.scan.label_files import label_file

    if labels := label_file(source):
        return FileReport(path, skipped=labels)
    if (report := read_recognised(source)) is not None:
        return report
    if path.suffix.lower() in _JSON_SUFFIXES or (source.json is not None and not source.damage):
        return _unknown_json(source)
    return None


def _read_text(source: Source, named: bool) -> FileReport:
    """Read a file that no reader knows."""
    path = source.path
    kind = kind_by_name(path)
    if kind in _NEVER_TEXT:
        return FileReport(path, skipped=kind)
    if named or path.suffix.lower() in _TEXT_SUFFIXES:
        return read_text(source)
    return FileReport(path, skipped="plain text; name the file to read it as a trace")


def _of_split_records(source: Source, format_name: str | None = None) -> FileReport | None:
    """Return what the records of a file give that is not laid out as its format is.

    They are read as JSON lines, or else each as a document of its own.

    Args:
        source: The file.
        format_name: The format that its first record has, where that is known.

    Returns:
        The report; None if there is nothing to split or no reader knows the records.
    """
    try:
        if not is_regular(source.path) or not 0 < source.size <= _MOST_SPLIT_BYTES:
            return None
        sound = not source.is_binary and source.json is not None and not source.damage
        records = [] if sound or is_no_json(source.head) else split_records(source.data)
    except OSError:
        return None  # reported already
    if not records or records == [line for line in source.data.split(b"\n") if line.strip()]:
        return None
    lines = RecordsSource(source, b"".join(record + b"\n" for record in records))
    report = _read_safely(lines, lambda: _read_records(lines))
    if report is not None and report.traces and format_name in (None, report.format):
        return report
    traces: list[Trace] = []
    problems: list[Problem] = []
    format_of_records: str | None = None
    for number, record in enumerate(records):
        if number == _RECORDS_TRIED and format_of_records is None:
            break
        document = RecordsSource(source, record)
        document_report = _read_safely(document, partial(_read_records, document))
        if document_report is not None and document_report.traces:
            format_of_records = document_report.format
            traces += document_report.traces
            problems += document_report.problems
    for number, trace in enumerate(traces):
        trace.record = number
    if format_of_records is None:
        return None
    return FileReport(source.path, format_of_records, tuple(traces), tuple(problems))


def _read_records(source: Source) -> FileReport | None:
    return codex.READER.read(source) if codex.READER.recognises(source) else read_recognised(source)


def _words_on_nothing(source: Source) -> str:
    if source.packing is None:
        return "empty"
    return f"{source.packing} data with nothing in it" + (
        f": {source.broken}" if source.broken else ""
    )


def _unknown_json(source: Source) -> FileReport:
    if source.head_records and sum(map(bool, map(bytes.strip, source.head_lines))) > 1:
        return FileReport(source.path, skipped="JSON lines of no known trace format")
    text, _problem = decode(source.data)
    if python_literal(text) is not None:
        return FileReport(source.path, skipped="Python values of no known trace format")
    if reason := why_not_json(text):
        hint = "mend it, or let its name end in .txt to read it as plain text"
        return FileReport(source.path, failed=f"not JSON, {reason}; {hint}")
    return FileReport(source.path, skipped="JSON of no known trace format")


def read_run(path: Path, members: Sequence[Path], *, named: bool) -> FileReport:
    """Read a file and those of its sub-agents as one trace.

    Args:
        path: The file of the run.
        members: The files of its sub-agents.
        named: Whether the user named just this file.
    """
    report = read_one(path, named)
    if not members or len(report.traces) != 1:
        return report
    # Start-up: most runs are one file.
    from mast_tui.traces.index.multi_file_trace import MemberFile, join_members

    sub_agents = []
    problems = list(report.problems)
    for member in members:
        member_report = read_one(member, named=False)
        problems += member_report.problems
        for trace in member_report.traces[:1]:
            member_thread = member_report.thread or Thread(member.stem, path.stem)
            sub_agents.append(MemberFile(member_thread, trace, relative_name(member, path)))
    thread = report.thread or Thread(report.traces[0].identity.trace_id)
    run = join_members(MemberFile(thread, report.traces[0], path.name), sub_agents)
    return report._replace(traces=(run,), problems=tuple(problems))


def relative_name(path: Path, other: Path) -> str:
    """Return the name of a file from the folder of another: its path below it, else its name.

    Args:
        path: The file.
        other: The other file.
    """
    folder = other.parent
    if path.is_relative_to(folder):
        return path.relative_to(folder).as_posix()
    shared = next((up for up in folder.parents if path.is_relative_to(up)), None)
    return path.name if shared is None else path.relative_to(shared).as_posix()
