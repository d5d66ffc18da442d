"""A walk over files and folders that finds the files that are read together as one run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mast_tui.traces.io.named_paths import RecordPath, only_records
from mast_tui.traces.io.regular_files import FOLDER_NOT_FILE, is_folder, is_regular
from mast_tui.traces.io.remote import RemotePath, fetch_all, list_folders
from mast_tui.traces.keys import UniqueKeys
from mast_tui.traces.model import FileReport, Problem, Trace
from mast_tui.traces.scan.big_documents import BIG_DOCUMENTS
from mast_tui.traces.scan.file_reader import read_run, relative_name
from mast_tui.traces.scan.folder import FolderEntry, entries_under
from mast_tui.traces.scan.outcomes import FILE_NAME, Outcomes, load_outcomes, rows_of_trace
from mast_tui.traces.scan.sub_agents import Threads, may_hold_thread, sub_agents_of, threads_among
from mast_tui.traces.scan.unread import FileToRead, without_spans
from mast_tui.traces.trials import Trial, trial_in

if TYPE_CHECKING:
    from mast_tui.traces.scan.document_process import DocumentProcess
    from mast_tui.traces.scan.library_cache import LibraryCache

_MOST_FETCHED_STEPS: Final = 32

_NO_MEMBERS: Final[tuple[Path, ...]] = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """The files that are read together: a file and its sub-agents' files, or a trial's folder.

    Attributes:
        path: The file, or the folder of the trial.
        members: The files of the sub-agents.
        named: True if the user named this very file.
        trial: The trial; None for a file.
        records: The numbers of the traces that the user named; None for all.
    """

    path: Path
    members: Sequence[Path] = _NO_MEMBERS
    named: bool = False
    trial: Trial | None = None
    records: frozenset[int] | None = None

    @property
    def files(self) -> Sequence[Path]:
        """The files to read that are known before reading."""
        if self.trial is None:
            return (self.path, *self.members)
        parts = (path for group in self.trial.sources for path in group)
        return sorted({self.path, *self.trial.fact_files, *parts})


class _TraceIds:
    """The ids of the traces in many files, each used for one trace."""

    def __init__(self) -> None:
        self._ids = UniqueKeys()
        self._files_by_id: dict[str, dict[str, Path]] = {}
        """The file of each trace, by the id and the content hash of the trace."""

    def unique_traces(self, report: FileReport) -> FileReport:
        """Return the report without repeated traces, and with unique ids.

        A problem reports each trace that is left out or gets a new id. A report without other
        traces is marked as skipped.
        """
        traces: list[Trace] = []
        problems = list(report.problems)
        earlier_file: Path | None = None
        for trace in report.traces:
            location = "whole file" if trace.record is None else f"record {trace.record}"
            files_by_hash = self._files_by_id.setdefault(trace.identity.trace_id, {})
            earlier_file = files_by_hash.get(trace.identity.content_hash)
            if earlier_file is not None:
                message = f"the same trace as in {earlier_file}; shown once"
                problems.append(Problem(location, message))
                continue
            other_file = next(iter(files_by_hash.values()), None)
            files_by_hash[trace.identity.content_hash] = report.path
            trace_id = self._ids.take(trace.identity.trace_id)
            if trace_id != trace.identity.trace_id:
                other_trace = f"a trace in {other_file}" if other_file else "another trace"
                message = f"has the id of {other_trace}, but other content; shown as {trace_id}"
                problems.append(Problem(location, message))
                trace = trace.with_id(trace_id)
            traces.append(trace)
        if report.traces and not traces:
            return FileReport(report.path, skipped=f"the same trace as in {earlier_file}")
        return report._replace(traces=tuple(traces), problems=tuple(problems))


def _records_by_file(paths: Iterable[Path]) -> dict[str, frozenset[int]]:
    """Return the numbers of the traces that paths name, by file.

    A file that is also named without a number is left out, because all its traces are read.
    """
    records: dict[str, frozenset[int]] = {}
    complete_files: set[str] = set()
    for path in paths:
        file = os.path.realpath(path)
        if isinstance(path, RecordPath) and path.record is not None:
            records[file] = records.get(file, frozenset()) | {path.record}
        else:
            complete_files.add(file)
    return {file: numbers for file, numbers in records.items() if file not in complete_files}


@dataclass(frozen=True, slots=True)
class OutcomesFile:
    """An ``outcomes.csv``; ``follows_all`` is True if all traces beside it were read before."""

    path: Path
    follows_all: bool


Step = Unit | OutcomesFile | FileReport
"""A step of a walk: files to read, or a report that needs no reading."""


class Scan:
    """A walk over files and folders; its iterator yields a report for each file or trial.

    Args:
        paths: The files and folders.
        without: Files that are left out.
        library: The cache of files that have not changed.
        keep_spans: True to keep the spans in memory; False to read them on demand.
        wait: Called while another process reads a big document, until that process is done.

    Attributes:
        total: The number of files and trials that are known so far.
        members: The files of the sub-agents of each run, by the path of the run.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        without: Iterable[Path] = (),
        library: LibraryCache | None = None,
        *,
        keep_spans: bool = True,
        wait: Callable[[DocumentProcess], object] | None = None,
    ) -> None:
        self.total = 0
        self.members: dict[str, tuple[str, ...]] = {}
        self._keep_spans = keep_spans
        self._wait = wait
        self._paths = tuple(paths)
        self._seen = {os.path.realpath(path) for path in without}
        """The real paths of the files that were read, or are left out."""
        self._records = _records_by_file(self._paths)
        self._library = library
        self._ids = _TraceIds()
        self._outcomes: dict[Path, Outcomes] = {}
        """The loaded outcomes by folder."""
        self._matched_rows: dict[Path, set[str]] = {}
        """The rows of each folder's outcomes that match a trace."""
        self._reads_all = not self._seen
        """True if no file is left out, so that a row without a trace is a problem."""

    @classmethod
    def one_run(cls, path: Path) -> FileReport:
        """Return the report on the folder of a trial: one run in several files.

        For any other folder, or for several runs, ``failed`` has the reason.
        """
        try:
            trial = trial_in(path, frozenset(member.name for member in path.iterdir()))
        except OSError as error:
            return FileReport(path, failed=error.strerror or str(error))
        if trial is None:
            return FileReport(path, failed=FOLDER_NOT_FILE)
        reports = [report for report in cls((path,)) if report.traces]
        if len(reports) != 1:
            reason = f"{trial.kind} with {len(reports)} runs; give one of them"
            return FileReport(path, failed=reason)
        return reports[0]

    def __iter__(self) -> Iterator[FileReport]:
        for step in self._fetched_steps(self.steps()):
            yield from self.final_reports(step, self.read(step) if isinstance(step, Unit) else ())

    def _fetched_steps(self, steps: Iterator[Step]) -> Iterator[Step]:
        """Yield the steps in groups, after the remote files of the group were fetched."""
        if not any(isinstance(path, RemotePath) for path in self._paths):
            yield from steps
            return
        while group := list(islice(steps, _MOST_FETCHED_STEPS)):
            fetch_all(path for step in group if isinstance(step, Unit) for path in step.files)
            yield from group

    def steps(self) -> Iterator[Step]:
        """Yield the steps of the walk without reading traces, and count them in ``total``."""
        list_folders(self._paths)  # one request for a remote folder instead of one for each file
        files = [path for path in self._paths if not is_folder(path)]
        named_threads = threads_among(filter(may_hold_thread, files))
        for path in self._paths:
            if not is_folder(path):
                self.total += 1
                yield from self._steps_for_entries((FolderEntry(path),), named_threads, named=True)
                continue
            entries = list(entries_under(path))
            self.total += len(entries)
            if self._library is not None:
                self._library.load_folder(path)
            threads = self._threads_of(
                entry.path
                for entry in entries
                if entry.skipped is None and entry.trial is None and may_hold_thread(entry.path)
            )
            yield from self._steps_for_entries(entries, threads, named=False)

    def _steps_for_entries(
        self, entries: Iterable[FolderEntry], threads: Threads, *, named: bool
    ) -> Iterator[Step]:
        """Yield the steps for entries that were not seen before; ``outcomes.csv`` comes last.

        ``threads`` has the sub-agents among the files, which are read with the file of their run.
        ``named`` is True if the user named the file, not its folder.
        """
        outcomes_paths = []
        for entry in entries:
            if entry.failed is not None:
                yield FileReport(entry.path, failed=entry.failed)
                continue
            real_path = entry.real or os.path.realpath(entry.path)
            if real_path in self._seen:
                continue
            self._seen.add(real_path)
            if entry.path.name == FILE_NAME:
                outcomes_paths.append(entry.path)
            else:
                yield self._step_for_entry(entry, self._records.get(real_path), threads, named)
        # The traces of the folder come first, because the rows are matched with them. If some
        # traces are not read, a row without a trace is no problem.
        for path in outcomes_paths:
            yield OutcomesFile(path, follows_all=self._reads_all and not named)

    def _step_for_entry(
        self, entry: FolderEntry, records: frozenset[int] | None, threads: Threads, named: bool
    ) -> Step:
        """Return the step for a file or trial; ``records`` are the traces that the user named."""
        if entry.skipped is not None:
            return FileReport(entry.path, skipped=entry.skipped)
        if entry.trial is not None:
            return Unit(entry.path, trial=entry.trial)
        run = threads.run_of.get(entry.path)
        if run is not None:
            reason = f"a sub-agent of the run in {relative_name(run, entry.path)}"
            return FileReport(entry.path, skipped=reason)
        members = threads.members.get(entry.path, _NO_MEMBERS)
        if named:
            members = sorted({*members, *sub_agents_of(entry.path)})
        return Unit(entry.path, members, named, records=records)

    def read(self, unit: Unit) -> Iterator[FileReport]:
        """Read the traces of a unit: a file with its sub-agents' files, or a trial's folder."""
        if unit.trial is not None:
            yield from self._trial_reports(unit.trial)
            return
        report = self._read_report(unit.path, unit.members, named=unit.named)
        yield report if unit.records is None else only_records(report, unit.records)

    def final_reports(self, step: Step, reports: Iterable[FileReport] = ()) -> Iterator[FileReport]:
        """Yield the reports of a step with unique ids and the facts from ``outcomes.csv``.

        Args:
            step: The next of ``steps``; this method must be called for all of them in order.
            reports: The results of reading the step.
        """
        match step:
            case FileReport():
                yield step
            case OutcomesFile():
                yield self._outcomes_report(step.path, follows_all=step.follows_all)
            case Unit():
                for report in map(self._final_report, reports):
                    if step.named:  # else the ``outcomes.csv`` has a report of its own
                        yield self._outcomes_in(step.path.parent).add_problem_to(report)
                    else:
                        yield report

    def with_outcomes(self, report: FileReport) -> FileReport:
        """Return a report with the facts from the ``outcomes.csv`` beside it."""
        return self._outcomes_in(report.path.parent).add_facts_to(report)

    def _outcomes_report(self, path: Path, *, follows_all: bool) -> FileReport:
        """Return the report on an ``outcomes.csv``.

        If ``follows_all``, all traces beside it were read, and rows without a trace are problems.
        """
        outcomes = self._outcomes_in(path.parent)
        matched_rows = self._matched_rows.get(path.parent, set())
        unmatched = outcomes.unmatched(matched_rows) if follows_all else ()
        problems = (*outcomes.problems, *unmatched)
        return FileReport(
            path,
            problems=problems,
            skipped=outcomes.description(unmatched),
            is_used=outcomes.unread is None,
        )

    def _read_report(self, path: Path, members: Sequence[Path], *, named: bool) -> FileReport:
        """Return the report on a file and its members, and record the members.

        The cache is used only if the user has not named the file.
        """
        read_file = partial(read_run, path, members, named=named)
        if members:
            self.members[str(path)] = tuple(map(str, members))
        file = FileToRead(str(path), read_file)
        library = self._library if not named else None
        return self._cached_or_new_report(
            path, members, partial(self._read_or_wait, path, read_file), file, library
        )

    def _read_or_wait(self, path: Path, read: Callable[[], FileReport]) -> FileReport:
        """Read a file; wait for another process that reads it if it is big."""
        process = None if self._wait is None else BIG_DOCUMENTS.begin(path)
        if process is not None and self._wait is not None:
            self._wait(process)
            if process.failed is not None:
                return FileReport(path, failed=process.failed)
        return read()  # a big file now comes from the cache

    def _cached_or_new_report(
        self,
        path: Path,
        members: Sequence[Path],
        read: Callable[[], FileReport],
        file: FileToRead,
        library: LibraryCache | None,
    ) -> FileReport:
        """Return the report from the cache, or else from ``read``.

        Without ``keep_spans``, ``file`` reads the traces again on demand.
        """
        report = read() if library is None else library.report(path, members, read, file)
        return report if self._keep_spans else without_spans(report, file)

    def _threads_of(self, paths: Iterable[Path]) -> Threads:
        if self._library is None:
            return threads_among(paths)
        return threads_among(paths, self._library.thread_of)

    def _trial_reports(self, trial: Trial) -> Iterator[FileReport]:
        """Yield the reports on the run in a trial's folder, with the facts from its other files.

        The last report has the number of files that were not read, or says that there is no trace.
        """
        reports = self._run_reports_of_trial(trial)
        read_paths = {report.path for report in reports}
        for report in reports:
            traces = tuple(trace.with_facts(trial.facts) for trace in report.traces)
            problems = (*report.problems, *trial.problems) if traces else report.problems
            yield report._replace(traces=traces, problems=problems)
        other_count = sum(
            is_regular(path) and path not in read_paths for path in trial.folder.rglob("*")
        )
        if other_count and reports:
            files_text = "one other file" if other_count == 1 else f"{other_count} other files"
            yield FileReport(trial.folder, skipped=f"{files_text} of the {trial.kind}")
        elif not reports:
            yield FileReport(trial.folder, skipped=f"{trial.kind} without a trace of its run")

    def _run_reports_of_trial(self, trial: Trial) -> list[FileReport]:
        """Return the reports on the first group of a trial's files that has a trace.

        If no group has one, the trial is read as a folder.
        """
        for group in trial.sources:
            files = [path for path in group if is_regular(path)]
            threads = self._threads_of(filter(may_hold_thread, files))
            reports = [
                self._read_report(path, threads.members.get(path, _NO_MEMBERS), named=False)
                for path in files
                if path not in threads.run_of  # sub-agents are read with the file of their run
            ]
            if any(report.traces for report in reports):
                return [report for report in reports if report.traces or report.failed]
        if trial.read is None:
            return []
        file = FileToRead(str(trial.folder), trial.read)
        report = self._cached_or_new_report(
            trial.folder, trial.fact_files, trial.read, file, self._library
        )
        return [report] if report.traces or report.failed else []

    def _final_report(self, report: FileReport) -> FileReport:
        """Return a report with unique traces and the facts of ``outcomes.csv``.

        Record the rows that match a trace.
        """
        if not report.traces:
            return report
        folder = report.path.parent
        outcomes = self._outcomes_in(folder)
        unique_report = self._ids.unique_traces(report)
        if outcomes.facts:
            # A repeated trace is shown once, but the rows of all its files and ids match.
            matched_rows = self._matched_rows.setdefault(folder, set())
            for trace in (*report.traces, *unique_report.traces):
                matched_rows.update(rows_of_trace(outcomes, trace))
        return outcomes.add_facts_to(unique_report)

    def _outcomes_in(self, folder: Path) -> Outcomes:
        """Return the outcomes in a folder, which are read once."""
        if folder not in self._outcomes:
            self._outcomes[folder] = load_outcomes(folder)
        return self._outcomes[folder]
