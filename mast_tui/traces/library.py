"""Traces under paths: files and folders, runs of several files, unique ids, and files that grow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mast_tui.traces.file_places import samples_folder as samples_folder
from mast_tui.traces.io.named_paths import RecordPath, only_records
from mast_tui.traces.io.regular_files import is_folder
from mast_tui.traces.model import FileReport, Trace
from mast_tui.traces.scan.file_reader import read_run
from mast_tui.traces.scan.outcomes import load_outcomes
from mast_tui.traces.scan.sub_agents import sub_agents_of

if TYPE_CHECKING:
    from mast_tui.traces.scan.document_process import DocumentProcess
    from mast_tui.traces.scan.library_cache import LibraryCache
    from mast_tui.traces.scan.scanning import Scan

LOOK_EVERY: Final = 1.0
"""The seconds between two looks at a file that may grow."""

LOOK_PAUSE_FACTOR: Final = 5
"""The pause between two looks, as a multiple of the duration of a look with its reading."""

MOST_REST: Final = 30.0
"""The longest pause between two looks, in seconds."""


def rest_after(seconds: float) -> float:
    """Return the pause after a look, from its duration; both in seconds."""
    return min(MOST_REST, LOOK_PAUSE_FACTOR * seconds)


def read_file(path: Path, named: bool) -> FileReport:
    """Read one file, or a folder that holds one run, with ``outcomes.csv`` beside it.

    The files of sub-agents belong to the trace. Of a file of lines only the first slice is read.

    Args:
        path: The file or folder.
        named: True if the user named this very file, not a folder that holds it.

    Returns:
        The traces and problems. If the file cannot be read, ``failed`` is the reason; nothing is
        raised.
    """
    if is_folder(path):
        report = _scan_class().one_run(path)
    else:
        report = read_run(path, sub_agents_of(path), named=named)
        if isinstance(path, RecordPath) and path.record is not None:
            report = only_records(report, (path.record,))
    if not report.traces:
        return report
    outcomes = load_outcomes(path.parent)
    report = outcomes.add_facts_to(report)
    return outcomes.add_problem_to(report)


def read_fully(trace: Trace) -> None:
    """Read a trace to its end."""
    while trace.advance():
        pass


def read_anew(trace: Trace) -> Trace | None:
    """Read the file of a trace again from the beginning, up to its first slice.

    Return None if the file no longer has a trace with this record number.
    """
    unread_trace = trace.anew()
    if unread_trace is not trace:
        unread_trace.advance()
        return unread_trace
    traces = read_file(trace.path, named=True).traces
    return next((candidate for candidate in traces if candidate.record == trace.record), None)


def read_again(path: Path, members: Sequence[Path]) -> FileReport:
    """Read a file or folder as ``scan`` does, without the facts of ``outcomes.csv``.

    Args:
        path: The file, or the folder that holds one run.
        members: The files of its sub-agents.
    """
    if is_folder(path):
        return _scan_class().one_run(path)
    return read_run(path, members, named=False)


def _scan_class() -> type[Scan]:
    # A local import for a fast start: one file needs no walk over folders.
    from mast_tui.traces.scan.scanning import Scan

    return Scan


def scan(
    paths: Iterable[Path],
    without: Iterable[Path] = (),
    library: LibraryCache | None = None,
    *,
    keep_spans: bool = True,
    wait: Callable[[DocumentProcess], object] | None = None,
) -> Scan:
    """Return an iterator over the reports of files and folders, in sorted order.

    - Each file is read when its report is requested.
    - The report of ``outcomes.csv`` comes after the traces of its folder.
    - Equal traces are reported once.
    - A later trace with the same id but other content gets ``~2``, ``~3`` and a problem.

    Args:
        paths: Files and folders.
        without: Files that are left out of the reports.
        library: The cache of files that have not changed.
        keep_spans: True to keep the spans in memory; False to read them on demand.
        wait: Called while another process reads a big document, until that process is done.
    """
    return _scan_class()(paths, without, library, keep_spans=keep_spans, wait=wait)
