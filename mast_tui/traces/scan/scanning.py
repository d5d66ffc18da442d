"""A walk over files and folders: the kind of each file, and the files that are one run together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mast_tui.traces.io.named_paths import RecordPath, only_records
from mast_tui.traces.io.regular_files import is_folder, is_regular
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

_FETCHED_AHEAD: Final = 32

_NO_MEMBERS: Final[tuple[Path, ...]] = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """The files that are read together: a file with those of its sub-agents, or a trial's folder.

    ``named`` says that the user named just this file, ``records`` which of its traces;
    None for all.
    """

    path: Path
    members: Sequence[Path] = _NO_MEMBERS
    named: bool = False
    trial: Trial | None = None
    records: frozenset[int] | None = None

    @property
    def files(self) -> Sequence[Path]:
        """All that is read, as far as is known before."""
        if self.trial is None:
            return (self.path, *self.members)
        parts = (path for group in self.trial.sources for path in group)
        return sorted({self.path, *self.trial.fact_files, *parts})


class _TraceIds:
    """Keeps trace ids unique over many files."""

    def __init__(self) -> None:
        self._ids = UniqueKeys()
        self._contents: dict[str, dict[str, Path]] = {}

    def unique_traces(self, report: FileReport) -> FileReport:
        """Return the report without traces that are known already, and with ids that are unique."""
        traces: list[Trace] = []
        problems = list(report.problems)
        twin: Path | None = None
        for trace in report.traces:
            identity = trace.identity
            same_id = self._contents.setdefault(identity.trace_id, {})
            twin = same_id.get(identity.content_hash)
            location = "whole file" if trace.record is None else f"record {trace.record}"
            if twin is not None:
                problems.append(Problem(location, f"the same trace as in {twin}; shown once"))
                continue
            trace_id = self._ids.take(identity.trace_id)
            if trace_id != identity.trace_id:
                other = next(iter(same_id.values()), None)
                where = f"a trace in {other}" if other else "another trace"
                message = f"has the id of {where}, but other content; shown as {trace_id}"
                problems.append(Problem(location, message))
                trace = trace.with_id(trace_id)
            same_id[identity.content_hash] = report.path
            traces.append(trace)
        if report.traces and not traces:
            return FileReport(report.path, skipped=f"the same trace as in {twin}")
        return report._replace(traces=tuple(traces), problems=tuple(problems))


def _records_by_file(paths: Iterable[Path]) -> dict[str, frozenset[int]]:
    """Return the numbers of the traces asked for, by the file; none of a file that is whole."""
    records: dict[str, frozenset[int]] = {}
    whole: set[str] = set()
    for path in paths:
        file = os.path.realpath(path)
        if isinstance(path, RecordPath) and path.record is not None:
            records[file] = records.get(file, frozenset()) | {path.record}
        else:
            whole.add(file)
    return {file: numbers for file, numbers in records.items() if file not in whole}


@dataclass(frozen=True, slots=True)
class OutcomesFile:
    """An ``outcomes.csv``; ``whole`` says that all traces beside it came before."""

    path: Path
    whole: bool


Step = Unit | OutcomesFile | FileReport
"""A step of a walk: files to read, or a report that needs no reading."""


class Scan:
    """A walk over files and folders; ``total`` is how many things there are, as far as is known.

    ``members`` are by path the files of the sub-agents of each run that has any. Without
    ``keep_spans`` traces come without their spans, which are read when they are asked for, so
    that memory does not grow with what the files hold. ``wait`` is called while another process
    reads a big document, and returns when that is over.
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
        self._records = _records_by_file(self._paths)
        self._library = library
        self._ids = _TraceIds()
        self._outcomes: dict[Path, Outcomes] = {}
        self._rows_met: dict[Path, set[str]] = {}
        self._sees_all = not self._seen

    @classmethod
    def one_run(cls, path: Path) -> FileReport:
        """Read a folder that was named as if it were a file: one run, or none."""
        try:
            trial = trial_in(path, frozenset(member.name for member in path.iterdir()))
        except OSError as error:
            return FileReport(path, failed=error.strerror or str(error))
        if trial is None:
            return FileReport(path, failed="a folder, not a file")
        reports = [report for report in cls((path,)) if report.traces]
        if len(reports) != 1:
            reason = f"{trial.kind} with {len(reports)} runs; name one of them"
            return FileReport(path, failed=reason)
        return reports[0]

    def __iter__(self) -> Iterator[FileReport]:
        for step in self._fetched_steps(self.steps()):
            yield from self.final_reports(step, self.read(step) if isinstance(step, Unit) else ())

    def _fetched_steps(self, steps: Iterator[Step]) -> Iterator[Step]:
        """Yield the steps; remote files are fetched some at a time."""
        if not any(isinstance(path, RemotePath) for path in self._paths):
            yield from steps
            return
        while some := list(islice(steps, _FETCHED_AHEAD)):
            fetch_all(path for step in some if isinstance(step, Unit) for path in step.files)
            yield from some

    def steps(self) -> Iterator[Step]:
        """Walk over the files without reading their traces."""
        list_folders(self._paths)
        files = [path for path in self._paths if not is_folder(path)]
        among_named = threads_among(filter(may_hold_thread, files))
        for path in self._paths:
            if not is_folder(path):
                self.total += 1
                yield from self._entries((FolderEntry(path),), among_named, named=True)
                continue
            entries = list(entries_under(path))
            self.total += len(entries)
            if self._library is not None:
                self._library.open_folder(path)
            threads = self._threads(
                entry.path
                for entry in entries
                if entry.skipped is None and entry.trial is None and may_hold_thread(entry.path)
            )
            yield from self._entries(entries, threads, named=False)

    def _entries(
        self, entries: Iterable[FolderEntry], threads: Threads, *, named: bool
    ) -> Iterator[Step]:
        outcomes = []
        for entry in entries:
            if entry.failed is not None:
                yield FileReport(entry.path, failed=entry.failed)
                continue
            real = entry.real or os.path.realpath(entry.path)
            if real in self._seen:
                continue
            self._seen.add(real)
            if entry.path.name == FILE_NAME:
                outcomes.append(entry.path)
            elif entry.skipped is not None:
                yield FileReport(entry.path, skipped=entry.skipped)
            elif entry.trial is not None:
                yield Unit(entry.path, trial=entry.trial)
            elif (run := threads.run_of.get(entry.path)) is not None:
                reason = f"a sub-agent of the run in {relative_name(run, entry.path)}"
                yield FileReport(entry.path, skipped=reason)
            else:
                members = threads.members.get(entry.path, _NO_MEMBERS)
                if named:
                    members = sorted({*members, *sub_agents_of(entry.path)})
                yield Unit(entry.path, members, named, records=self._records.get(real))
        # Only now is it known of which traces they speak.
        for path in outcomes:
            yield OutcomesFile(path, whole=self._sees_all and not named)

    def read(self, unit: Unit) -> Iterator[FileReport]:
        """Read the traces of a unit, with the facts from its other files."""
        if unit.trial is not None:
            yield from self._trial(unit.trial)
            return
        report = self._report(unit.path, unit.members, named=unit.named)
        yield report if unit.records is None else only_records(report, unit.records)

    def final_reports(self, step: Step, reports: Iterable[FileReport] = ()) -> Iterator[FileReport]:
        """Yield the reports of a step with unique ids and the facts from ``outcomes.csv``.

        Args:
            step: One of ``steps``, in their order.
            reports: The reports of reading it.
        """
        match step:
            case FileReport():
                yield step
            case OutcomesFile():
                yield self._outcomes_report(step.path, whole=step.whole)
            case Unit():
                for report in map(self._final_report, reports):
                    with_problem = (
                        self._outcomes_in(step.path.parent).with_problem_in if step.named else None
                    )
                    yield report if with_problem is None else with_problem(report)

    def with_outcomes(self, report: FileReport) -> FileReport:
        """Return a report with the facts from the ``outcomes.csv`` beside it."""
        return self._outcomes_in(report.path.parent).added_to(report)

    def _outcomes_report(self, path: Path, *, whole: bool) -> FileReport:
        """Return the report on an ``outcomes.csv``; ``whole`` if all traces beside it were read."""
        outcomes = self._outcomes_in(path.parent)
        met = self._rows_met.get(path.parent, set())
        if not whole:
            return FileReport(path, problems=outcomes.problems, skipped=outcomes.description)
        problems = (*outcomes.problems, *outcomes.unmatched(met))
        return FileReport(path, problems=problems, skipped=outcomes.description_of_folder(met))

    def _report(self, path: Path, members: Sequence[Path], *, named: bool) -> FileReport:
        read = partial(read_run, path, members, named=named)
        names = tuple(map(str, members))
        if names:
            self.members[str(path)] = names
        file = FileToRead(str(path), names, read, as_told=named)
        library = self._library if not named else None
        return self._from_cache(path, members, partial(self._read, path, read), file, library)

    def _read(self, path: Path, read: Callable[[], FileReport]) -> FileReport:
        process = None if self._wait is None else BIG_DOCUMENTS.begin(path)
        if process is not None and self._wait is not None:
            self._wait(process)
            if process.failed is not None:
                return FileReport(path, failed=process.failed)
        return read()

    def _from_cache(
        self,
        path: Path,
        members: Sequence[Path],
        read: Callable[[], FileReport],
        file: FileToRead,
        library: LibraryCache | None,
    ) -> FileReport:
        report = read() if library is None else library.report(path, members, read, file)
        return report if self._keep_spans else without_spans(report, file)

    def _threads(self, paths: Iterable[Path]) -> Threads:
        if self._library is None:
            return threads_among(paths)
        return threads_among(paths, self._library.thread_of)

    def _trial(self, trial: Trial) -> Iterator[FileReport]:
        """Yield the reports of a trial's run, with the facts from the other files of its folder."""
        reports = self._of_trial(trial)
        read = {report.path for report in reports}
        for report in reports:
            traces = tuple(trace.with_facts(trial.facts) for trace in report.traces)
            problems = (*report.problems, *trial.problems) if traces else report.problems
            yield report._replace(traces=traces, problems=problems)
        other_files = sum(is_regular(path) and path not in read for path in trial.folder.rglob("*"))
        if other_files and reports:
            files = "one other file" if other_files == 1 else f"{other_files} other files"
            yield FileReport(trial.folder, skipped=f"{files} of the {trial.kind}")
        elif not reports:
            yield FileReport(trial.folder, skipped=f"{trial.kind} without a trace of its run")

    def _of_trial(self, trial: Trial) -> list[FileReport]:
        for group in trial.sources:
            files = [path for path in group if is_regular(path)]
            threads = self._threads(filter(may_hold_thread, files))
            reports = [
                self._report(path, threads.members.get(path, _NO_MEMBERS), named=False)
                for path in files
                if path not in threads.run_of
            ]
            if any(report.traces for report in reports):
                return [report for report in reports if report.traces or report.failed]
        if trial.read is None:
            return []
        file = FileToRead(str(trial.folder), (), trial.read)
        report = self._from_cache(trial.folder, trial.fact_files, trial.read, file, self._library)
        return [report] if report.traces or report.failed else []

    def _final_report(self, report: FileReport) -> FileReport:
        if not report.traces:
            return report
        folder = report.path.parent
        outcomes = self._outcomes_in(folder)
        settled = self._ids.unique_traces(report)
        if outcomes.facts:
            # A trace that is there twice is shown once, and the rows of both files are its own.
            rows = self._rows_met.setdefault(folder, set())
            for trace in (*report.traces, *settled.traces):
                rows.update(rows_of_trace(outcomes, trace))
        return outcomes.added_to(settled)

    def _outcomes_in(self, folder: Path) -> Outcomes:
        if folder not in self._outcomes:
            self._outcomes[folder] = load_outcomes(folder)
        return self._outcomes[folder]
