"""The same work on every trace under paths, in this process or in others."""

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
"""The most files in one batch for a process."""

_LEAST_BATCHES: Final = 4
"""The least number of batches for each process, so that no process waits long for the last one."""


@dataclass(frozen=True, slots=True)
class ReadReport(Generic[Result]):
    """A report that another process read, with the results of its traces.

    Attributes:
        report: The report without its traces.
        traces: The record number and the summary of each trace.
        results: The result of each trace.
    """

    report: FileReport
    traces: tuple[tuple[int | None, TraceSummary], ...]
    results: tuple[Result, ...]


@dataclass(frozen=True, slots=True)
class ReadAndDo(Generic[Result]):
    """A function that reads units and works on their traces, which other processes can receive."""

    work: Callable[[Trace], Result]

    def __call__(self, units: Sequence[Unit]) -> list[list[ReadReport[Result]]]:
        """Return the reports on each unit (files read together), with the results of its traces."""
        scan = Scan(())  # without paths, since the units are known
        fetch_all(path for unit in units for path in unit.files)
        return [
            [self._results_of_report(scan.with_outcomes(report)) for report in scan.read(unit)]
            for unit in units
        ]

    def _results_of_report(self, report: FileReport) -> ReadReport[Result]:
        """Work on the traces of a report; return it with the results, and without the spans."""
        summaries = tuple((trace.record, trace.summary) for trace in report.traces)
        results = tuple(map(self.work, report.traces))
        return ReadReport(report._replace(traces=()), summaries, results)


def each_trace(
    paths: Iterable[Path],
    work: Callable[[Trace], Result],
    workers: Workers | None = None,
    *,
    without: Iterable[Path] = (),
    tell: Callable[[int, int], object] = lambda _done, _total: None,
) -> Iterator[tuple[FileReport, Iterable[Result]]]:
    """Return the report on each file under paths, with the results of a function for its traces.

    Args:
        paths: Files and folders.
        work: Returns the result of a trace whose first spans are read. For workers the function and
            its results must be picklable.
        workers: The workers; None computes each result in this process, when it is requested.
        without: Files that are left out of the reports.
        tell: Receives the numbers of finished and of all known steps. A step is a unit of files, or
            a report that needs no reading.

    Returns:
        Each report with its results. With workers the traces of the reports are unread.
    """
    scan = Scan(paths, without)
    if workers is None:
        return ((report, map(work, report.traces)) for report in scan)
    return _results_of_workers(scan, work, workers, tell)


def _results_of_workers(
    scan: Scan,
    work: Callable[[Trace], Result],
    workers: Workers,
    tell: Callable[[int, int], object],
) -> Iterator[tuple[FileReport, Iterable[Result]]]:
    """Yield the reports of a scan with the results that workers computed, in the scan's order."""
    pending: deque[Step] = deque()
    done_count = 0
    batches = _unit_batches(scan, pending, workers.count)
    for read_reports in workers.map(ReadAndDo(work), batches):
        # Workers get only units, so the other steps before this unit need no reading.
        while not isinstance(step := pending.popleft(), Unit):
            yield from _reports_without_reading(scan, step)
            done_count += 1
        if isinstance(read_reports, LostItem):
            yield FileReport(step.path, failed=read_reports.reason), ()
        elif read_reports is not None:
            yield from _final_results(scan, step, read_reports, work)
        done_count += 1
        tell(done_count, scan.total)
    for step in pending:
        yield from _reports_without_reading(scan, step)


def _unit_batches(scan: Scan, pending: deque[Step], workers: int) -> Iterator[list[Unit]]:
    """Yield the units (files read together) of a scan in batches; add all steps to ``pending``."""
    units = _queued_units(scan, pending)
    for first_unit in units:
        # The known total grows during the scan, and the batches with it.
        size = max(1, min(MOST_AT_ONCE, scan.total // (_LEAST_BATCHES * workers)))
        yield [first_unit, *islice(units, size - 1)]


def _queued_units(scan: Scan, pending: deque[Step]) -> Iterator[Unit]:
    """Yield the units among the steps of a scan, and add all steps to ``pending``."""
    for step in scan.steps():
        pending.append(step)
        if isinstance(step, Unit):
            yield step


def _reports_without_reading(scan: Scan, step: Step) -> Iterator[tuple[FileReport, tuple[()]]]:
    for report in scan.final_reports(step):
        yield report, ()


def _final_results(
    scan: Scan,
    unit: Unit,
    read_reports: Sequence[ReadReport[Result]],
    work: Callable[[Trace], Result],
) -> Iterator[tuple[FileReport, list[Result]]]:
    """Yield the final reports on files that another process has read, with the results.

    If a trace gets another id, its result is computed again here.
    """
    results_by_trace: dict[tuple[str, int | None], tuple[str, Result]] = {}
    reports = []
    for report_index, read_report in enumerate(read_reports):
        file = FileToRead(str(read_report.report.path), partial(_read_again, unit, report_index))
        traces = [unread_trace(file, record, summary) for record, summary in read_report.traces]
        reports.append(read_report.report._replace(traces=tuple(traces)))
        for trace, result in zip(traces, read_report.results, strict=True):
            results_by_trace[trace.file, trace.record] = (trace.identity.trace_id, result)
    for report in scan.final_reports(unit, reports):
        results = []
        for trace in report.traces:
            trace_id, result = results_by_trace[trace.file, trace.record]
            # The other process cannot know that another trace has the same id.
            results.append(result if trace_id == trace.identity.trace_id else work(trace))
        yield report, results


def _read_again(unit: Unit, number: int) -> FileReport:
    return [*Scan(()).read(unit)][number]
