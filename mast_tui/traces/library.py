"""Traces under paths: files and folders, runs of several files, unique ids, and files that grow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

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
"""Seconds between two looks at the file."""

LOOK_PAUSE_FACTOR: Final = 5
"""The pause between two looks, in multiples of the time that looking and reading take."""

MOST_REST: Final = 30.0
"""Seconds that pass at most."""


def rest_after(seconds: float) -> float:
    """Return how many seconds to wait after a look that took so many."""
    return min(MOST_REST, LOOK_PAUSE_FACTOR * seconds)


def samples_folder() -> Path:
    """Return the folder of the sample traces: in an installed package, or beside it in a checkout.

    Raises:
        FileNotFoundError: The installation has no sample traces.
    """
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "sample_traces", package.parent / "sample_traces"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(
        f"the sample traces are missing from {package}: install mast-tui again, or name a trace"
    )


def read_file(path: Path, named: bool) -> FileReport:
    """Read one file, or a folder that holds one run.

    A line-based trace has been read up to its first slice and grows by ``advance``. Sub-agents
    whose files lie beside it belong to its trace. What ``outcomes.csv`` in the same folder says
    of the traces is filled in.

    Args:
        path: The file or folder.
        named: Whether the user named just this file.

    Returns:
        The traces and problems. Nothing is raised: what cannot be read is ``failed`` with the
        reason.
    """
    if is_folder(path):
        report = _walk().one_run(path)
    else:
        report = read_run(path, sub_agents_of(path), named=named)
        if isinstance(path, RecordPath) and path.record is not None:
            report = only_records(report, (path.record,))
    if not report.traces:
        return report
    outcomes = load_outcomes(path.parent)
    return outcomes.with_problem_in(outcomes.added_to(report))


def read_fully(trace: Trace) -> None:
    """Read a trace to its end."""
    while trace.advance():
        pass


def read_anew(trace: Trace) -> Trace | None:
    """Read the file of a trace once more from its beginning, as far as its first slice.

    Returns None if the file does not hold a trace at that position any more.
    """
    fresh = trace.anew()
    if fresh is not trace:
        fresh.advance()
        return fresh
    traces = read_file(trace.path, named=True).traces
    return next((candidate for candidate in traces if candidate.record == trace.record), None)


def read_again(path: Path, members: Sequence[Path]) -> FileReport:
    """Read what a trace was known of without its spans, in the way in which a walk reads it.

    Args:
        path: The file, or the folder that holds one run.
        members: The files of its sub-agents.

    Returns:
        What came of it.
    """
    if is_folder(path):
        return _walk().one_run(path)
    return read_run(path, members, named=False)


def _walk() -> type[Scan]:
    # Start-up: what walks over folders is not needed for the spans of one file.
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
    """Return a walk over files and folders that yields their reports in sorted order.

    The ``outcomes.csv`` of a folder come last, as they speak of the traces before them. A trace
    that is there twice is reported once. Of traces that share an id but not their content, the
    later ones get ``~2``, ``~3`` and a problem.

    Args:
        paths: Files and folders.
        without: Files that are left out of the reports.
        library: The cache of files that have not changed.
        keep_spans: Whether spans are kept; else they are read when they are asked for.
        wait: Called while another process reads a big document, until that is over.

    Returns:
        The walk, which is done as its reports are drawn.
    """
    return _walk()(paths, without, library, keep_spans=keep_spans, wait=wait)
