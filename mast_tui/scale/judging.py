"""A judge over more traces than one workspace should hold: each batch of files becomes a shard."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Protocol
from zlib import crc32

from mast_tui import __version__
from mast_tui.errors import WorkspaceError
from mast_tui.judges.protocol import Judge, Judgement
from mast_tui.judges.runner import TraceJudging
from mast_tui.labels import Finding
from mast_tui.parallel import LostItem, Workers, each
from mast_tui.scale.folder import Manifest, ShardFolder
from mast_tui.scale.tables import Judged, RequestSize, write_shard
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.io.remote import fetch_all
from mast_tui.traces.model import FileReport, Trace
from mast_tui.traces.scan.outcomes import FILE_NAME
from mast_tui.traces.scan.scanning import Scan, Unit
from mast_tui.workspace import TraceRecord, Usage

_MOST_FILES: Final = 512
_FEWEST_FILES: Final = 8
_FEWEST_SHARDS: Final = 16
"""There are about so many shards, or more of the greatest size: then workers end at about the same
time, and little is lost with one of them."""

_MOST_BYTES: Final = 256 << 20
"""A shard with more in it than this is not made longer."""

_LONGEST: Final = 4
"""A shard has at most so many times the files that it has on average, and at least this part."""


_NOTHING_USED: Final = Usage()


@dataclass(frozen=True, slots=True)
class Shard:
    """Files whose traces are judged together; the name follows from them, the judge and the
    taxonomy."""

    name: str
    units: tuple[Unit, ...]


@dataclass(frozen=True, slots=True)
class UnitJudged:
    """What came of a unit: what was said of its traces, and its reports, without traces.

    ``unanswered`` are paths of which nothing was said for a reason that may pass; ``stopped`` says
    why nothing more can be said of any. ``usage`` is what asking a model took, ``requests`` are
    those on whose answers the judgements rest.
    """

    judged: tuple[Judged, ...] = ()
    reports: tuple[FileReport, ...] = ()
    unanswered: tuple[tuple[str, str], ...] = ()
    stopped: str | None = None
    usage: Usage = _NOTHING_USED
    requests: frozenset[RequestSize] = frozenset()


class Judging(Protocol):
    """A judge that looks at the traces of units; it can be sent to other processes."""

    @property
    def name(self) -> str:
        """The judge's name."""

    @property
    def looks_at(self) -> Sequence[str]:
        """The slugs on which it gives verdicts."""

    def __call__(self, units: Sequence[Unit], /) -> Sequence[UnitJudged]:
        """Judge the traces of each unit."""

    def outdated(self, shards: Iterable[str], /) -> Collection[str]:
        """Return those of some written shards that have to be judged again."""


@dataclass(slots=True, kw_only=True)
class ShardTotals:
    """What came of shards: ``failed`` are paths with the reason.

    ``written`` counts them but for those of which there may be more to say: these were not written.
    ``stopped`` says why a run ended before its time, ``usage`` what asking a model took.
    """

    written: int = 0
    traces: int = 0
    by_mode: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    stopped: str | None = None
    usage: Usage = _NOTHING_USED

    def take(self, other: ShardTotals) -> None:
        """Add what came of another shard."""
        self.written += other.written
        self.traces += other.traces
        self.by_mode.update(other.by_mode)
        self.failed += other.failed
        self.skipped += other.skipped
        self.stopped = self.stopped or other.stopped
        self.usage += other.usage

    def drop(self, other: ShardTotals) -> None:
        """Take out what came of a shard that is judged again; what was paid stays."""
        self.written -= other.written
        self.traces -= other.traces
        self.by_mode.subtract(other.by_mode)
        self.failed = [one for one in self.failed if one not in other.failed]
        self.skipped = [one for one in self.skipped if one not in other.skipped]


@dataclass(slots=True, kw_only=True)
class ShardRun(ShardTotals):
    """What came of a run; ``known`` shards were there before it."""

    judge: str
    shards: int
    known: int


@dataclass(frozen=True, slots=True)
class JudgeUnits:
    """Judges the traces of files; it can be sent to other processes."""

    judge: Judge

    @property
    def name(self) -> str:
        """The judge's name."""
        return self.judge.name

    @property
    def looks_at(self) -> Sequence[str]:
        """The slugs on which it gives verdicts."""
        return self.judge.looks_at

    def outdated(self, _shards: Iterable[str], /) -> Collection[str]:
        """Return none: what is judged depends on the traces alone."""
        return ()

    def __call__(self, units: Sequence[Unit], /) -> list[UnitJudged]:
        """Judge the traces of each unit."""
        walk = Scan(())
        fetch_all(path for unit in units for path in unit.files)
        return [self._of_unit(walk, unit) for unit in units]

    def _of_unit(self, walk: Scan, unit: Unit) -> UnitJudged:
        judged: list[Judged] = []
        reports: list[FileReport] = []
        for report in map(walk.with_outcomes, walk.read(unit)):
            judged += map(self._judged, report.traces)
            reports.append(report._replace(traces=()))
        return UnitJudged(tuple(judged), tuple(reports))

    def _judged(self, trace: Trace) -> Judged:
        look = TraceJudging(self.judge)(trace)
        if look.problem is not None:
            return Judged(look.record, problem=look.problem)
        return judged_as(trace, look.judgement or Judgement())


def judged_as(trace: Trace, judgement: Judgement) -> Judged:
    """What was said of a trace, with all that is known of it.

    Args:
        trace: Read to its end.
        said: By any judge.
    """
    onsets = _onsets(trace, judgement.findings)
    return Judged(
        TraceRecord.of(trace), judgement.findings, onsets, judgement.unsure, judgement.judged
    )


def _onsets(trace: Trace, findings: Iterable[Finding]) -> dict[str, int]:
    """The first span with which each mode shows."""
    onsets: dict[str, int] = {}
    for finding in findings:
        place = None if finding.first is None else trace.index_of(finding.first)
        if place is not None:
            onsets[finding.mode] = min(place, onsets.get(finding.mode, place))
    return onsets


@dataclass(frozen=True, slots=True)
class WriteShards:
    """Judges and writes shards; it can be sent to other processes."""

    folder: ShardFolder
    manifest: Manifest
    judging: Judging

    def __call__(self, shards: Sequence[Shard]) -> list[ShardTotals]:
        """What came of each."""
        return [self.write(one, self.judging(one.units)) for one in shards]

    def write(self, shard: Shard, units: Iterable[UnitJudged]) -> ShardTotals:
        """Write what was said of the traces of a shard, each trace once.

        Args:
            shard: The shard.
            found: What came of each of its units.
        """
        judged: dict[int, Judged] = {}
        totals = ShardTotals(written=1)
        requests: set[RequestSize] = set()
        for unit in units:
            requests |= unit.requests
            if unit.stopped is not None or unit.unanswered:
                totals.written = 0
            totals.stopped = totals.stopped or unit.stopped
            totals.usage += unit.usage
            totals.failed += unit.unanswered
            for one in unit.judged:
                judged.setdefault(one.key, one)
                if one.problem is not None:
                    totals.failed.append((str(one.record.path), one.problem))
            _note_unread(unit.reports, totals)
        if totals.written:
            write_shard(self.folder, shard.name, [*judged.values()], self.manifest, requests)
            totals.traces = len(judged)
            totals.by_mode.update(
                finding.mode
                for one in judged.values()
                for finding in one.findings
                if finding.mode in self.manifest.looks_at
            )
        return totals


def _note_unread(reports: Iterable[FileReport], totals: ShardTotals) -> None:
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
    """Let a judge look at all traces under paths, and write what it finds as shards.

    A shard that is written is not written again, unless it is outdated: after a death the same
    call goes on.

    Args:
        judging: The judge; with workers it can be pickled.
        taxonomy: Only its modes count.
        paths: Files and folders.
        folder: Where the shards are written.
        workers: Who reads and judges; None for this process alone.
        files: How many files a shard has on average; None leaves it to their number.
        tell: Told of the run as far as it has come.

    Raises:
        WorkspaceError: The judge knows no mode of the taxonomy.
        ShardsError: The folder holds something else, or cannot be written.
    """
    known_modes = {mode.slug for mode in taxonomy.modes}
    judge = judging.name
    looks_at = tuple(slug for slug in judging.looks_at if slug in known_modes)
    if not looks_at:
        raise WorkspaceError(
            f"{judge} knows no mode of {taxonomy.ref}; it was made for another taxonomy"
        )
    skipped: list[FileReport] = []
    shards = [*_cut(paths, f"{judge} {taxonomy.content_hash}", files, skipped)]
    manifest = Manifest(judge, taxonomy, looks_at, tuple(shard.name for shard in shards))
    folder.begin(manifest)
    done = folder.done(manifest)
    run = ShardRun(judge=judge, shards=len(shards), known=len(done))
    _note_unread(skipped, run)
    tell(run)
    write = WriteShards(folder, manifest, judging)
    results: dict[str, ShardTotals] = {}
    judged_again: set[str] = set()
    left = [shard for shard in shards if shard.name not in done]
    while True:
        for shard, totals in _written(write, left, workers, run):
            results[shard.name] = totals
            run.take(totals)
            tell(run)
        again = judging.outdated(folder.done(manifest) - judged_again)
        for name in again:
            folder.withdraw(name)
            if name in results:
                run.drop(results.pop(name))
            else:
                run.known -= 1
        if run.stopped is not None or not again:
            return run
        judged_again.update(again)
        left = [shard for shard in shards if shard.name in again]


def _written(
    write: WriteShards, shards: Sequence[Shard], workers: Workers | None, run: ShardRun
) -> Iterator[tuple[Shard, ShardTotals]]:
    """Write shards until the run stops; last those with a file that ends every process."""
    lost: list[Shard] = []
    begun = takewhile(lambda _: run.stopped is None, shards)
    for shard, totals in zip(shards, each(write, begun, workers), strict=False):
        if isinstance(totals, LostItem):
            lost.append(shard)
        else:
            yield shard, totals
    for shard in lost:
        yield shard, _one_by_one(write, shard, workers)


def _one_by_one(write: WriteShards, shard: Shard, workers: Workers | None) -> ShardTotals:
    """Write a shard that has ended every process that had it, but what of it ends them."""
    units = each(write.judging, shard.units, workers)
    return write.write(
        shard,
        (
            _lost(unit, one) if isinstance(one, LostItem) else one
            for unit, one in zip(shard.units, units, strict=True)
        ),
    )


def _lost(unit: Unit, lost: LostItem) -> UnitJudged:
    return UnitJudged(reports=(FileReport(unit.path, failed=lost.reason),))


def _cut(
    paths: Iterable[Path], whose: str, wanted: int | None, skipped: list[FileReport]
) -> Iterator[Shard]:
    """The files under paths as shards.

    Where one ends follows from a file's own name, so that a file which comes or goes changes the
    shard that it is in and no other.
    """
    all_units: list[Unit] = []
    for step in Scan(path.absolute() for path in paths).steps():
        if isinstance(step, FileReport):
            skipped.append(step)
        elif isinstance(step, Unit):
            all_units.append(step)
    size = wanted or _files_for(len(all_units))
    states: dict[Path, object] = {}
    units: list[Unit] = []
    room = 0
    for unit in all_units:
        units.append(unit)
        room += sum(size_of for _, size_of, _ in _parts(unit))
        ends = len(units) * _LONGEST >= size and crc32(str(unit.path).encode()) % size == 0
        if ends or len(units) >= _LONGEST * size or room >= _MOST_BYTES:
            yield _shard(units, whose, states)
            units, room = [], 0
    if units:
        yield _shard(units, whose, states)


def _files_for(files: int) -> int:
    """How many files a shard has; it changes only when their number doubles."""
    size = _FEWEST_FILES
    while size < _MOST_FILES and size * 2 * _FEWEST_SHARDS <= files:
        size *= 2
    return size


def _shard(units: Sequence[Unit], whose: str, states: dict[Path, object]) -> Shard:
    states_of_units: list[Any] = [whose, __version__]
    for unit in units:
        folder = unit.path.parent
        if folder not in states:
            states[folder] = _state(folder / FILE_NAME)
        state = [*_parts(unit), unit.named, states[folder]]
        states_of_units.append(state if unit.records is None else [*state, sorted(unit.records)])
    return Shard(sha256(json.dumps(states_of_units).encode()).hexdigest()[:24], tuple(units))


def _parts(unit: Unit) -> list[tuple[str, int, int]]:
    """The files of a unit, with what shows that somebody has written to them."""
    return [_state(path) for path in unit.files]


def _state(path: Path) -> tuple[str, int, int]:
    try:
        stat = path.stat()
    except OSError:  # whoever reads it says why
        return str(path), 0, 0
    return str(path), stat.st_size, stat.st_mtime_ns
