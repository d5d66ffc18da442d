"""The same done with every trace under paths: here, or by other processes that read it there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, Generic, TypeVar

from mast_tui.parallel import LostItem, Workers
from mast_tui.traces.io.remote import fetch_all
from mast_tui.traces.model import FileReport, Trace, TraceSummary
from mast_tui.traces.scan.scanning import Scan, Step, Unit
from mast_tui.traces.scan.unread import FileToRead, unread_trace

Result = TypeVar("Result")

MOST_AT_ONCE: Final = 8
"""So many files are given to a process at a time: sending them costs little beside reading them."""

_ROUNDS: Final = 4
"""Each process gets at least so many batches, so that none waits long for the last one."""


@dataclass(frozen=True, slots=True)
class Read(Generic[Result]):
    """A report that another process read, with the results of its traces.

    ``report`` is without its traces; ``traces`` has their records and summaries.
    """

    report: FileReport
    traces: tuple[tuple[int | None, TraceSummary], ...]
    results: tuple[Result, ...]


@dataclass(frozen=True, slots=True)
class ReadAndDo(Generic[Result]):
    """Reads units, and does something with each of their traces; it can be sent elsewhere."""

    work: Callable[[Trace], Result]

    def __call__(self, units: Sequence[Unit]) -> list[list[Read[Result]]]:
        """Read each unit and do the work with its traces."""
        walk = Scan(())
        fetch_all(path for unit in units for path in unit.files)
        return [[self._done(walk.with_outcomes(report)) for report in walk.read(u)] for u in units]

    def _done(self, report: FileReport) -> Read[Result]:
        summaries = tuple((trace.record, trace.summary) for trace in report.traces)
        results = tuple(map(self.work, report.traces))
        return Read(report._replace(traces=()), summaries, results)


def each_trace(
    paths: Iterable[Path],
    work: Callable[[Trace], Result],
    workers: Workers | None = None,
    *,
    without: Iterable[Path] = (),
    tell: Callable[[int, int], object] = lambda _done, _total: None,
) -> Iterator[tuple[FileReport, Iterable[Result]]]:
    """Do the same with every trace under paths; the results are those of the plain loop over them.

    Args:
        paths: Files and folders.
        work: Handles a trace, of which the first spans are read; with workers it must be
            picklable, as must what it returns.
        workers: The workers; without any it is done here, trace by trace as the results
            are drawn.
        without: Files that are left out of the reports.
        tell: Called with the number of done steps and of all steps, as far as is known.

    Returns:
        Each report of the walk, and what came of each of its traces. With workers these are traces
        of which nothing was read here.
    """
    walk = Scan(paths, without)
    if workers is None:
        for report in walk:
            yield report, map(work, report.traces)
        return
    pending: deque[Step] = deque()
    done = 0
    for read_reports in workers.map(ReadAndDo(work), _batches(walk, pending, workers.count)):
        while not isinstance(unit := pending.popleft(), Unit):
            yield from _reports_without_reading(walk, unit)
            done += 1
        if isinstance(read_reports, LostItem):
            yield FileReport(unit.path, failed=read_reports.reason), ()
        elif read_reports is not None:
            yield from _final_results(walk, unit, read_reports, work)
        done += 1
        tell(done, walk.total)
    for step in pending:
        yield from _reports_without_reading(walk, step)


def _batches(walk: Scan, pending: deque[Step], workers: int) -> Iterator[list[Unit]]:
    """Yield the units to read, some at a time; all steps of the walk are queued in ``pending``."""
    units = _units(walk, pending)
    for first in units:
        size = max(1, min(MOST_AT_ONCE, walk.total // (_ROUNDS * workers)))
        yield [first, *islice(units, size - 1)]


def _units(walk: Scan, pending: deque[Step]) -> Iterator[Unit]:
    for step in walk.steps():
        pending.append(step)
        if isinstance(step, Unit):
            yield step


def _reports_without_reading(walk: Scan, step: Step) -> Iterator[tuple[FileReport, tuple[()]]]:
    """Yield the reports of a step that needs no reading."""
    for report in walk.final_reports(step):
        yield report, ()


def _final_results(
    walk: Scan, unit: Unit, read_reports: Sequence[Read[Result]], work: Callable[[Trace], Result]
) -> Iterator[tuple[FileReport, list[Result]]]:
    by_trace: dict[tuple[str, int | None], tuple[str, Result]] = {}
    reports = []
    for number, read in enumerate(read_reports):
        file = FileToRead(str(read.report.path), (), partial(_read_again, unit, number))
        traces = [unread_trace(file, record, summary) for record, summary in read.traces]
        reports.append(read.report._replace(traces=tuple(traces)))
        for trace, result in zip(traces, read.results, strict=True):
            by_trace[trace.file, trace.record] = (trace.identity.trace_id, result)
    for report in walk.final_reports(unit, reports):
        results = []
        for trace in report.traces:
            trace_id, result = by_trace[trace.file, trace.record]
            # One that shares its id with another trace was not known by its own when it was read.
            results.append(result if trace_id == trace.identity.trace_id else work(trace))
        yield report, results


def _read_again(unit: Unit, number: int) -> FileReport:
    return [*Scan(()).read(unit)][number]
