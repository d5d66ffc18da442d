"""Judging of more traces than fit in one workspace: each batch of files becomes a shard."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol
from zlib import crc32

from mast_tui import __version__
from mast_tui.errors import WorkspaceError
from mast_tui.judges.runner import Judge, JudgedTrace, TraceJudging
from mast_tui.parallel import LostItem, Workers, each
from mast_tui.scale.shards import Manifest, RequestSize, ShardFolder, trace_key, write_shard
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.io.remote import fetch_all
from mast_tui.traces.model import FileReport
from mast_tui.traces.scan.outcomes import FILE_NAME
from mast_tui.traces.scan.scanning import Scan, Unit
from mast_tui.workspace import Usage

_MOST_FILES: Final = 512
_FEWEST_FILES: Final = 8
_FEWEST_SHARDS: Final = 16
"""The number of shards of a small set; a larger set has more, of the greatest size.

With so many, workers end at about the same time, and little is lost when one of them dies.
"""

_MOST_BYTES: Final = 256 << 20
"""The size above which no file is added to a shard."""

_SIZE_RATIO: Final = 4
"""The ratio of the most files of a shard to the average, and of the average to the fewest."""


_NOTHING_USED: Final = Usage()


@dataclass(frozen=True, slots=True)
class Shard:
    """Files that are judged together.

    The name is a hash of the files, the judge and the taxonomy.
    """

    name: str
    units: tuple[Unit, ...]


@dataclass(frozen=True, slots=True)
class UnitResult:
    """The result of judging a unit (files that are read together).

    ``judged`` are its judged traces, ``reports`` its reports without traces. ``unanswered`` has the
    path and the reason of each trace that a later run may judge. ``stopped`` is the reason why the
    run cannot go on. ``usage`` and ``requests`` are those of the model.
    """

    judged: tuple[JudgedTrace, ...] = ()
    reports: tuple[FileReport, ...] = ()
    unanswered: tuple[tuple[str, str], ...] = ()
    stopped: str | None = None
    usage: Usage = _NOTHING_USED
    requests: frozenset[RequestSize] = frozenset()


class Judging(Protocol):
    """A judge of the traces of units, which can be sent to other processes."""

    @property
    def name(self) -> str:
        """The judge's name."""

    @property
    def looks_at(self) -> Sequence[str]:
        """The slugs of the modes on which it gives verdicts."""

    def __call__(self, units: Sequence[Unit], /) -> Sequence[UnitResult]:
        """Judge the traces of each unit."""

    def outdated(self, shards: Iterable[str], /) -> Collection[str]:
        """Return the written shards among these that have to be judged again."""


@dataclass(slots=True, kw_only=True)
class ShardTotals:
    """The counts of judged shards.

    ``written`` leaves out shards with a trace that a later run may judge, because they are not
    written. ``failed`` and ``skipped`` are paths with the reason. ``stopped`` is the reason of an
    early end, ``usage`` that of the model.
    """

    written: int = 0
    traces: int = 0
    by_mode: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    stopped: str | None = None
    usage: Usage = _NOTHING_USED

    def add(self, other: ShardTotals) -> None:
        """Add the counts of another shard."""
        self.written += other.written
        self.traces += other.traces
        self.by_mode.update(other.by_mode)
        self.failed += other.failed
        self.skipped += other.skipped
        self.stopped = self.stopped or other.stopped
        self.usage += other.usage

    def add_unit(self, unit: UnitResult) -> None:
        """Add the usage and the failures of a unit of the shard.

        The shard is not written if a later run may judge more of the unit's traces.
        """
        if unit.stopped is not None or unit.unanswered:
            self.written = 0
        self.stopped = self.stopped or unit.stopped
        self.usage += unit.usage
        self.failed += unit.unanswered
        for trace in unit.judged:
            if trace.problem is not None:
                self.failed.append((str(trace.path), trace.problem))
        _add_unread_files(unit.reports, self)


@dataclass(slots=True, kw_only=True)
class ShardRun(ShardTotals):
    """The counts of a run; ``known`` shards were written before it."""

    judge: str
    shards: int
    known: int

    def forget_shard(self, totals: ShardTotals | None) -> None:
        """Subtract the counts of a shard that is judged again, except its usage.

        ``totals`` is None for a shard of an earlier run.
        """
        if totals is None:
            self.known -= 1
            return
        self.written -= totals.written
        self.traces -= totals.traces
        self.by_mode.subtract(totals.by_mode)
        self.failed = [failure for failure in self.failed if failure not in totals.failed]
        self.skipped = [skip for skip in self.skipped if skip not in totals.skipped]


@dataclass(frozen=True, slots=True)
class JudgeUnits:
    """A judge of the traces in files, which can be sent to other processes."""

    judge: Judge

    @property
    def name(self) -> str:
        """The judge's name."""
        return self.judge.name

    @property
    def looks_at(self) -> Sequence[str]:
        """The slugs of the modes on which it gives verdicts."""
        return self.judge.looks_at

    def outdated(self, _shards: Iterable[str], /) -> Collection[str]:
        """Return none, because the verdicts depend on the traces alone."""
        return ()

    def __call__(self, units: Sequence[Unit], /) -> list[UnitResult]:
        """Judge the traces of each unit."""
        scan = Scan(())
        fetch_all(path for unit in units for path in unit.files)
        return [self._judge_unit(scan, unit) for unit in units]

    def _judge_unit(self, scan: Scan, unit: Unit) -> UnitResult:
        """Judge all traces in the files of a unit."""
        judged: list[JudgedTrace] = []
        reports: list[FileReport] = []
        for report in map(scan.with_outcomes, scan.read(unit)):
            judged += map(TraceJudging(self.judge), report.traces)
            reports.append(report._replace(traces=()))
        return UnitResult(tuple(judged), tuple(reports))


@dataclass(frozen=True, slots=True)
class WriteShards:
    """A function that judges and writes shards, which can be sent to other processes."""

    folder: ShardFolder
    manifest: Manifest
    judging: Judging

    def __call__(self, shards: Sequence[Shard]) -> list[ShardTotals]:
        """Judge and write each shard."""
        return [self.write(shard, self.judging(shard.units)) for shard in shards]

    def write(self, shard: Shard, units: Iterable[UnitResult]) -> ShardTotals:
        """Write a shard, with each trace once, and return its counts.

        The shard is not written if a later run may judge more of its traces.

        Args:
            shard: The shard.
            units: The result of each of its units.
        """
        trace_by_key: dict[int, JudgedTrace] = {}
        totals = ShardTotals(written=1)
        requests: set[RequestSize] = set()
        for unit in units:
            requests |= unit.requests
            totals.add_unit(unit)
            for trace in unit.judged:
                trace_by_key.setdefault(trace_key(trace.record), trace)
        if totals.written:
            traces = list(trace_by_key.values())
            write_shard(self.folder, shard.name, traces, self.manifest, requests)
            totals.traces = len(traces)
            totals.by_mode.update(
                finding.mode
                for trace in traces
                if trace.judgement is not None
                for finding in trace.judgement.findings
                if finding.mode in self.manifest.looks_at
            )
        return totals


def _add_unread_files(reports: Iterable[FileReport], totals: ShardTotals) -> None:
    """Add the files that failed or were skipped to the totals."""
    for report in reports:
        if report.failed is not None:
            totals.failed.append((str(report.path), report.failed))
        elif report.skipped is not None:
            totals.skipped.append((str(report.path), report.skipped))


def judge_into_shards(
    judging: Judging,
    taxonomy: Taxonomy,
    paths: Iterable[Path],
    folder: ShardFolder,
    workers: Workers | None = None,
    *,
    files: int | None = None,
    tell: Callable[[ShardRun], object] = lambda _: None,
) -> ShardRun:
    """Judge all traces under paths, write the results as shards, and return the counts.

    After an interruption, the same call continues the run. Written shards are judged again only if
    a model's server truncated requests for them.

    Args:
        judging: The judge; workers need a picklable one.
        taxonomy: The taxonomy; other modes do not count.
        paths: The files and folders of the traces.
        folder: The folder of the shards.
        workers: The processes that read and judge; None for this process alone.
        files: The average number of files of a shard; None to derive it from their number.
        tell: Receives the counts of the run so far.

    Raises:
        WorkspaceError: The judge knows no mode of the taxonomy.
        ShardsError: The folder has other files or shards, or cannot be written.
    """
    looks_at = _judged_modes(judging, taxonomy)
    steps = list(Scan(path.absolute() for path in paths).steps())
    units = [step for step in steps if isinstance(step, Unit)]
    shards = [*_divide_into_shards(units, f"{judging.name} {taxonomy.content_hash}", files)]
    manifest = Manifest(judging.name, taxonomy, looks_at, tuple(shard.name for shard in shards))
    folder.begin(manifest)
    written_names = frozenset(folder.done(manifest))
    run = ShardRun(judge=judging.name, shards=len(shards), known=len(written_names))
    _add_unread_files((step for step in steps if isinstance(step, FileReport)), run)
    tell(run)
    write = WriteShards(folder, manifest, judging)
    _write_missing(write, shards, written_names, workers, run, tell)
    folder.set_aside_others(manifest)
    return run


def _write_missing(
    write: WriteShards,
    shards: Sequence[Shard],
    written_names: Collection[str],
    workers: Workers | None,
    run: ShardRun,
    tell: Callable[[ShardRun], object],
) -> None:
    """Judge and write the missing shards, then once more all shards with outdated verdicts.

    The counts are added to ``run``.
    """
    results: dict[str, ShardTotals] = {}
    judged_again: set[str] = set()  # no shard is judged a third time
    missing_shards = [shard for shard in shards if shard.name not in written_names]
    while True:
        for shard, totals in _write_all(write, missing_shards, workers, run):
            results[shard.name] = totals
            run.add(totals)
            tell(run)
        candidates = {*write.folder.done(write.manifest)} - judged_again
        outdated_names = write.judging.outdated(candidates)
        for name in outdated_names:
            write.folder.withdraw(name)
            run.forget_shard(results.pop(name, None))
        if run.stopped is not None or not outdated_names:
            return
        judged_again.update(outdated_names)
        missing_shards = [shard for shard in shards if shard.name in outdated_names]


def _judged_modes(judging: Judging, taxonomy: Taxonomy) -> tuple[str, ...]:
    """Return the slugs of the taxonomy on which a judge gives verdicts.

    Raises:
        WorkspaceError: The judge knows no mode of the taxonomy.
    """
    slugs = {mode.slug for mode in taxonomy.modes}
    looks_at = tuple(slug for slug in judging.looks_at if slug in slugs)
    if not looks_at:
        raise WorkspaceError(
            f"{judging.name} supports no mode of {taxonomy.ref}; it was made for another taxonomy"
        )
    return looks_at


def _write_all(
    write: WriteShards, shards: Sequence[Shard], workers: Workers | None, run: ShardRun
) -> Iterator[tuple[Shard, ShardTotals]]:
    """Write shards until the run stops, and yield each with its counts.

    Shards that killed their workers are written last, unit by unit.
    """
    lost_shards: list[Shard] = []
    started_shards = takewhile(lambda _: run.stopped is None, shards)
    # If the run stops, there are fewer results than shards.
    for shard, totals in zip(shards, each(write, started_shards, workers), strict=False):
        if isinstance(totals, LostItem):
            lost_shards.append(shard)
        else:
            yield shard, totals
    for shard in lost_shards:
        yield shard, _write_without_lost_units(write, shard, workers)


def _write_without_lost_units(
    write: WriteShards, shard: Shard, workers: Workers | None
) -> ShardTotals:
    """Judge a shard again, one unit per task, and write it without units that kill a worker."""
    units = each(write.judging, shard.units, workers)
    return write.write(
        shard,
        (
            _unread_unit(unit, result) if isinstance(result, LostItem) else result
            for unit, result in zip(shard.units, units, strict=True)
        ),
    )


def _unread_unit(unit: Unit, lost: LostItem) -> UnitResult:
    return UnitResult(reports=(FileReport(unit.path, failed=lost.reason),))


def _divide_into_shards(
    all_units: Sequence[Unit], judge: str, files: int | None
) -> Iterator[Shard]:
    """Divide files into shards.

    A hash of a file's path decides whether a shard ends with it. So a file that is added or removed
    changes only its own shard.
    """
    files_per_shard = files or _files_per_shard(len(all_units))
    folder_states: dict[Path, object] = {}
    units: list[Unit] = []
    size_in_bytes = 0
    for unit in all_units:
        units.append(unit)
        size_in_bytes += sum(file.size for file in _file_states(unit))
        # The number of files is between a quarter of the average and four times it, except in the
        # last shard.
        is_last = (
            len(units) * _SIZE_RATIO >= files_per_shard
            and crc32(str(unit.path).encode()) % files_per_shard == 0
        )
        if is_last or len(units) >= _SIZE_RATIO * files_per_shard or size_in_bytes >= _MOST_BYTES:
            yield _named_shard(units, judge, folder_states)
            units = []
            size_in_bytes = 0
    if units:
        yield _named_shard(units, judge, folder_states)


def _files_per_shard(file_count: int) -> int:
    """Return the average number of files of a shard; it changes only when the total doubles."""
    size = _FEWEST_FILES
    while size < _MOST_FILES and size * 2 * _FEWEST_SHARDS <= file_count:
        size *= 2
    return size


def _named_shard(units: Sequence[Unit], judge: str, folder_states: dict[Path, object]) -> Shard:
    """Return a shard with a hash of its files' states, the judge and the version as its name."""
    states_of_units: list[Any] = [judge, __version__]
    for unit in units:
        # The outcomes of traces may come from a file in their folder.
        folder = unit.path.parent
        if folder not in folder_states:
            folder_states[folder] = _state_of_file(folder / FILE_NAME)
        state = [*_file_states(unit), unit.named, folder_states[folder]]
        states_of_units.append(state if unit.records is None else [*state, sorted(unit.records)])
    return Shard(sha256(json.dumps(states_of_units).encode()).hexdigest()[:24], tuple(units))


class _FileState(NamedTuple):
    """A file, with the size and time that change when it is written."""

    path: str
    size: int
    modified: int


def _file_states(unit: Unit) -> list[_FileState]:
    return [_state_of_file(path) for path in unit.files]


def _state_of_file(path: Path) -> _FileState:
    """Return the state of a file; size and time are 0 if it cannot be read."""
    try:
        stat = path.stat()
    except OSError:  # reading the file reports the error
        return _FileState(str(path), 0, 0)
    return _FileState(str(path), stat.st_size, stat.st_mtime_ns)
