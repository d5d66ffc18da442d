"""A judge over more traces than one workspace should hold: each batch of files becomes a shard."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from mast_tui import __version__
from mast_tui.errors import WorkspaceError
from mast_tui.gc_tuning import seldom_collecting
from mast_tui.judges.protocol import Judge, Judgement
from mast_tui.judges.runner import Looking
from mast_tui.labels import Finding
from mast_tui.parallel import Lost, Workers
from mast_tui.shards.folder import Manifest, ShardFolder
from mast_tui.shards.tables import Judged, write_shard
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import FileReport, Trace
from mast_tui.traces.scan.outcomes import FILE_NAME
from mast_tui.traces.scan.scanning import Scan, Unit

_MOST_FILES: Final = 512
_FEWEST_FILES: Final = 8
_FEWEST_SHARDS: Final = 16
"""There are about so many shards, or more of the greatest size: then workers end at about the same
time, and little is lost with one of them."""

_MOST_BYTES: Final = 256 << 20
"""A shard with more in it than this is not made longer."""

_LONGEST: Final = 4
"""A shard has at most so many times the files that it has on average, and at least this part."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Files whose traces are judged together; the name follows from them, the judge and the
    taxonomy."""

    name: str
    units: tuple[Unit, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """What came of a shard that was written: ``failed`` are paths with the reason."""

    traces: int
    by_mode: Mapping[str, int]
    failed: tuple[tuple[str, str], ...]
    skipped: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class ShardRun:
    """What came of a run; ``known`` shards were there before it."""

    judge: str
    shards: int
    known: int
    written: int = 0
    traces: int = 0
    by_mode: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def take(self, written: Written) -> None:
        """Add what came of a shard."""
        self.written += 1
        self.traces += written.traces
        self.by_mode.update(written.by_mode)
        self.failed += written.failed
        self.skipped += written.skipped


@dataclass(frozen=True, slots=True)
class JudgeUnits:
    """Judges the traces of files; it can be sent to other processes."""

    judge: Judge

    def __call__(self, units: Sequence[Unit]) -> list[tuple[list[Judged], list[FileReport]]]:
        """Of each unit what was said of its traces, and its reports, without traces."""
        walk = Scan(())
        with seldom_collecting():
            return [self._of_unit(walk, unit) for unit in units]

    def _of_unit(self, walk: Scan, unit: Unit) -> tuple[list[Judged], list[FileReport]]:
        judged: list[Judged] = []
        reports: list[FileReport] = []
        for report in map(walk.with_outcomes, walk.read(unit)):
            judged += map(self._judged, report.traces)
            reports.append(replace(report, traces=()))
        return judged, reports

    def _judged(self, trace: Trace) -> Judged:
        look = Looking(self.judge)(trace)
        said = look.judgement or Judgement()
        onsets = _onsets(trace, said.findings)
        return Judged(
            look.record, said.findings, onsets, said.unsure, said.judged, problem=look.problem
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
    judge: Judge

    def __call__(self, shards: Sequence[Shard]) -> list[Written]:
        """What came of each."""
        return [self.write(one, JudgeUnits(self.judge)(one.units)) for one in shards]

    def write(
        self, shard: Shard, found: Iterable[tuple[list[Judged], list[FileReport]]]
    ) -> Written:
        """Write what was said of the traces of a shard, each trace once.

        Args:
            shard: The shard.
            found: What came of each of its units.
        """
        judged: dict[int, Judged] = {}
        failed, skipped = [], []
        for traces, reports in found:
            for one in traces:
                judged.setdefault(one.key, one)
                if one.problem is not None:
                    failed.append((str(one.record.path), one.problem))
            for report in reports:
                if report.failed is not None:
                    failed.append((str(report.path), report.failed))
                elif report.skipped is not None:
                    skipped.append((str(report.path), report.skipped))
        manifest = self.manifest
        write_shard(
            self.folder,
            shard.name,
            [*judged.values()],
            judge=manifest.judge,
            taxonomy=manifest.taxonomy,
            looks_at=manifest.looks_at,
        )
        by_mode = Counter(
            finding.mode
            for one in judged.values()
            for finding in one.findings
            if finding.mode in manifest.looks_at
        )
        return Written(len(judged), by_mode, tuple(failed), tuple(skipped))


def judge_into_shards(
    judge: Judge,
    taxonomy: Taxonomy,
    paths: Iterable[Path],
    folder: ShardFolder,
    workers: Workers | None = None,
    *,
    files: int | None = None,
    tell: Callable[[ShardRun], object] = lambda _: None,
) -> ShardRun:
    """Let a judge look at all traces under paths, and write what it finds as shards.

    A shard that is written is not written again: after a death the same call goes on.

    Args:
        judge: Who looks; with workers it can be pickled.
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
    looks_at = tuple(slug for slug in judge.looks_at if slug in known_modes)
    if not looks_at:
        raise WorkspaceError(
            f"{judge.name} knows no mode of {taxonomy.ref}; it was made for another taxonomy"
        )
    skipped: list[FileReport] = []
    shards = [*_cut(paths, f"{judge.name} {taxonomy.content_hash}", files, skipped)]
    manifest = Manifest(judge.name, taxonomy, looks_at, tuple(shard.name for shard in shards))
    folder.begin(manifest)
    done = folder.done(manifest)
    run = ShardRun(judge.name, len(shards), len(done))
    run.failed += [(str(one.path), one.failed) for one in skipped if one.failed is not None]
    run.skipped += [(str(one.path), one.skipped) for one in skipped if one.skipped is not None]
    tell(run)
    write = WriteShards(folder, manifest, judge)
    left = [shard for shard in shards if shard.name not in done]
    lost: list[Shard] = []
    for shard, written in zip(left, _results(write, left, workers), strict=True):
        if isinstance(written, Lost):
            lost.append(shard)
        else:
            run.take(written)
            tell(run)
    for shard in lost:
        run.take(_one_by_one(write, shard, workers))
        tell(run)
    return run


def _results(
    write: WriteShards, shards: Sequence[Shard], workers: Workers | None
) -> Iterator[Written | Lost]:
    if workers is None:
        yield from (write([shard])[0] for shard in shards)
        return
    for found in workers.map(write, ([shard] for shard in shards)):
        if found is not None:
            yield found


def _one_by_one(write: WriteShards, shard: Shard, workers: Workers | None) -> Written:
    """Write a shard that has ended every process that had it, but what of it ends them."""
    assert workers is not None
    found = workers.map(JudgeUnits(write.judge), ([unit] for unit in shard.units))
    return write.write(
        shard,
        (
            ([], [FileReport(unit.path, failed=one.reason)]) if isinstance(one, Lost) else one
            for unit, one in zip(shard.units, found, strict=True)
            if one is not None
        ),
    )


def _cut(
    paths: Iterable[Path], whose: str, wanted: int | None, skipped: list[FileReport]
) -> Iterator[Shard]:
    """The files under paths as shards.

    Where one ends follows from a file's own name, so that a file which comes or goes changes the
    shard that it is in and no other.
    """
    found: list[Unit] = []
    for step in Scan(Path(path).absolute() for path in paths).steps():
        if isinstance(step, FileReport):
            skipped.append(step)
        elif isinstance(step, Unit):
            found.append(step)
    size = wanted or _files_for(len(found))
    states: dict[Path, object] = {}
    units: list[Unit] = []
    room = 0
    for unit in found:
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
    told: list[Any] = [whose, __version__]
    for unit in units:
        folder = unit.path.parent
        if folder not in states:
            states[folder] = _state(folder / FILE_NAME)
        told.append([*_parts(unit), unit.named, states[folder]])
    return Shard(sha256(json.dumps(told).encode()).hexdigest()[:24], tuple(units))


def _parts(unit: Unit) -> list[tuple[str, int, int]]:
    """The files of a unit, with what shows that somebody has written to them."""
    paths = [unit.path, *unit.members]
    if unit.trial is not None:
        paths = sorted(
            {unit.path, *unit.trial.told_by, *(p for g in unit.trial.sources for p in g)}
        )
    return [_state(path) for path in paths]


def _state(path: Path) -> tuple[str, int, int]:
    try:
        found = path.stat()
    except OSError:  # whoever reads it says why
        return str(path), 0, 0
    return str(path), found.st_size, found.st_mtime_ns
