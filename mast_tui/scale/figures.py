"""Failure signatures of shards: counts that are added up file by file, whatever their number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import add
from typing import Any, Final, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.judge.input import JudgedBeyond
from mast_tui.figures.record import FigureIndex, FigureScope
from mast_tui.figures.signatures.model import ALL, FAILED, NO_VALUE, SUCCEEDED, UNKNOWN, Rules
from mast_tui.figures.signatures.modes import Counts, mode_figures
from mast_tui.figures.signatures.report import stated_for
from mast_tui.parallel import LostItem, Workers, each
from mast_tui.reports.signature_document import mode_document
from mast_tui.scale.folder import Manifest, ShardFolder, ShardsError, traces_file
from mast_tui.scale.tables import (
    ABSENT,
    BINS,
    PRESENT,
    UNSURE,
    onset_column,
    pyarrow,
    trace_key,
    verdict_column,
)
from mast_tui.taxonomy.model import Group
from mast_tui.traces.model import Outcome
from mast_tui.workspace import TraceRecord

FIELDS: Final = ("model", "system", "benchmark", "task", "reader", "version")
"""What can tell groups of traces in shards apart."""

_FILES: Final = 128
"""So many shards are counted in one go."""

_NULL: Final = -128
_SIDES: Final = 3
_OUTCOMES: Final = {Outcome.FAILED.value: FAILED, Outcome.SUCCEEDED.value: SUCCEEDED}

Whole = NDArray[np.int64]


class PerFailedJson(TypedDict):
    """How many modes a failed trace shows: the sum of the modes' shares among the traces judged on
    them, and how many of ``n`` traces show how many."""

    value: float | None
    n: int
    distribution: dict[str, int]


class ShardCategoryJson(TypedDict):
    """How often the modes of a category show, and their share of all that show."""

    name: str
    count: int
    share: float | None


class OnsetJson(TypedDict):
    """In which tenth of the run a mode first shows, over the ``n`` traces of which that is
    known."""

    n: int
    bins: list[int]


class ShardLevelJson(TypedDict):
    """The categories of one level by id."""

    categories: dict[str, ShardCategoryJson]


class _LevelsJson(TypedDict):
    """All levels of categories by name, where there are several."""

    levels: NotRequired[dict[str, ShardLevelJson]]


class ShardGroupJson(_LevelsJson):
    """One model, system or benchmark."""

    traces: int
    failed: int
    succeeded: int
    unknown: int
    modes_per_failed_trace: PerFailedJson
    categories: dict[str, ShardCategoryJson]
    modes: dict[str, dict[str, Any]]
    onset: dict[str, OnsetJson]


class ShardTracesJson(TypedDict):
    """All traces; ``unread`` could not be judged, ``twice`` were there more than once and count
    once."""

    labelled: int
    failed: int
    succeeded: int
    unknown: int
    unread: int
    twice: int


class ShardReport(TypedDict):
    """What ``report SHARDS --json`` prints: the fields of a report that counts can tell."""

    by: str
    labels: str
    labels_kind: str
    taxonomy: str
    shards: dict[str, int]
    traces: ShardTracesJson
    groups: dict[str, ShardGroupJson]
    cannot_say: list[str]


def shard_report(
    folder: ShardFolder,
    *,
    by: str = "model",
    rules: Rules | None = None,
    failed_below: float | None = None,
    workers: Workers | None = None,
    tell: Callable[[int, int], object] = lambda _done, _total: None,
) -> ShardReport:
    """Add up all shards of a folder.

    Args:
        folder: Where they are.
        by: What tells groups apart: one of ``FIELDS``, or ``all``.
        rules: Where the lines are drawn; by default as ``Rules`` has them.
        failed_below: Lets the outcome follow from the score.
        workers: Who reads and counts; None for this process alone.
        tell: Told how many of how many shards are counted.

    Raises:
        ShardsError: They cannot be read, or nothing is known of traces by that name.
    """
    if by not in (*FIELDS, ALL):
        raise ShardsError(f"--by {by!r}: of shards there are {', '.join((*FIELDS, ALL))}")
    manifest = folder.manifest()
    done = folder.done(manifest)
    files = [traces_file(name) for name in manifest.shards if name in done]
    counts = _Counts(manifest, by, failed_below)
    if files:
        keys = []
        some = [files[start : start + _FILES] for start in range(0, len(files), _FILES)]
        count = partial(_count_files, folder, manifest, by, failed_below)
        for number, found in enumerate(each(count, some, workers)):
            if isinstance(found, LostItem):
                raise ShardsError(f"{folder.place}: {some[number][0]} and so on: {found.reason}")
            keys.append(found[0])
            counts.join(found[1])
            tell(min(len(files), (number + 1) * _FILES), len(files))
        repeated = _repeated(keys)
        if len(repeated):
            counts = _Counts(manifest, by, failed_below)
            seen: set[int] = set()
            for table in _tables(folder, files, counts.columns):
                counts.add(table, _once(table, repeated, seen))
    return counts.report(Rules() if rules is None else rules, len(files))


def judged_beyond(address: str, judge: str, known: Iterable[TraceRecord]) -> JudgedBeyond:
    """Count the verdicts of a judge on the traces of shards that are not in a workspace.

    Args:
        address: The folder or URL of the shards.
        judge: The judge.
        known: The traces that the workspace has with verdicts of the judge.

    Raises:
        ShardsError: They cannot be read, or another judge wrote them.
    """
    folder = ShardFolder(address)
    manifest = folder.manifest()
    if manifest.judge != judge:
        raise ShardsError(f"{folder.place}: holds the word of {manifest.judge}, not of {judge}")
    done = folder.done(manifest)
    files = [traces_file(name) for name in manifest.shards if name in done]
    if not files:
        return JudgedBeyond()
    seen = set(map(trace_key, known))
    repeated = _repeated([t["key"].to_numpy().copy() for t in _tables(folder, files, ["key"])])
    looked_at = np.union1d(repeated, np.array(sorted(seen), dtype=np.uint64))
    traces, counts = 0, dict.fromkeys(manifest.looks_at, (0, 0, 0))
    columns = ["key", "problem", *map(verdict_column, counts)]
    for table in _tables(folder, files, columns):
        rows = _once(table, looked_at, seen) & table["problem"].is_null().to_numpy()
        traces += int(rows.sum())
        for slug, before in counts.items():
            said = table[verdict_column(slug)].fill_null(_NULL).to_numpy()[rows]
            now = (int((said == value).sum()) for value in (PRESENT, ABSENT, UNSURE))
            present, absent, unsure = map(add, before, now)
            counts[slug] = present, absent, unsure
    return JudgedBeyond(traces, counts)


def _tables(folder: ShardFolder, files: Sequence[str], columns: Sequence[str]) -> Iterator[Any]:
    """The rows, those of some files at a time: a data set keeps what it knows of each file."""
    broken, dataset = pyarrow().ArrowException, pyarrow("pyarrow.dataset")
    for start in range(0, len(files), _FILES):
        paths = [folder.path(name) for name in files[start : start + _FILES]]
        try:
            some = dataset.dataset(paths, format="parquet", filesystem=folder.filesystem())
            table = some.to_table(columns=[*columns]).combine_chunks()
        except (broken, OSError) as error:
            raise ShardsError(f"{folder.place}: a shard cannot be read: {error}") from None
        yield table


def _repeated(keys: list[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """The keys that stand there more than once."""
    whole = np.concatenate(keys)
    keys.clear()
    whole.sort()
    return np.unique(whole[1:][whole[1:] == whole[:-1]])


def _once(table: Any, repeated: NDArray[np.uint64], seen: set[int]) -> NDArray[np.bool_]:
    """Which rows are the first of their trace."""
    keys = table["key"].to_numpy()
    first = np.ones(len(keys), dtype=bool)
    for row in np.flatnonzero(np.isin(keys, repeated)) if len(repeated) else ():
        key = int(keys[row])
        first[row] = key not in seen
        seen.add(key)
    return first


class _Counts:
    """The sums over rows by cell: a group's traces of one outcome."""

    def __init__(self, manifest: Manifest, by: str, failed_below: float | None) -> None:
        self._manifest = manifest
        self._by = by
        self._failed_below = failed_below
        self._modes = manifest.taxonomy.modes
        self._groups: dict[str | None, int] = {}
        modes = len(self._modes)
        self._traces = np.zeros(0, dtype=np.int64)
        self._verdicts = {
            value: np.zeros((0, modes), dtype=np.int64) for value in (PRESENT, ABSENT, UNSURE)
        }
        self._onsets = np.zeros((0, modes, BINS), dtype=np.int64)
        self._numbers = np.zeros((0, modes + 1), dtype=np.int64)
        self._unread = self._twice = 0
        names = ["key", "outcome", "score", "problem", *(() if by == ALL else (by,))]
        for mode in self._modes:
            names += [verdict_column(mode.slug), onset_column(mode.slug)]
        self.columns: Final = tuple(names)

    def add(self, table: Any, first: NDArray[np.bool_]) -> None:
        """Count rows.

        Args:
            table: The columns.
            first: Which rows count.
        """
        self._twice += int((~first).sum())
        judged = first & table["problem"].is_null().to_numpy()
        self._unread += int((first & ~judged).sum())
        cells = self._cells(table)
        self._traces += np.bincount(cells[judged], minlength=len(self._traces))
        numbers = np.zeros(len(cells), dtype=np.int64)
        shape = self._onsets.shape
        for place, mode in enumerate(self._modes):
            verdicts = table[verdict_column(mode.slug)].fill_null(_NULL).to_numpy()
            for value, counted in self._verdicts.items():
                rows = judged & (verdicts == value)
                counted[:, place] += np.bincount(cells[rows], minlength=len(counted))
                if value == PRESENT:
                    numbers += rows
            onset = table[onset_column(mode.slug)].fill_null(_NULL).to_numpy()
            rows = judged & (onset >= 0)
            found = np.bincount(cells[rows] * BINS + onset[rows], minlength=shape[0] * BINS)
            self._onsets[:, place] += found.reshape(shape[0], BINS)
        width = self._numbers.shape[1]
        found = np.bincount((cells * width + numbers)[judged], minlength=self._numbers.size)
        self._numbers += found.reshape(self._numbers.shape)

    def join(self, other: _Counts) -> None:
        """Add what was counted in other rows."""
        self._unread += other._unread
        places = [self._place(name) for name in other._groups]
        self._make_room()
        cells = [place * _SIDES + side for place in places for side in range(_SIDES)]
        self._traces[cells] += other._traces
        self._onsets[cells] += other._onsets
        self._numbers[cells] += other._numbers
        for value, counted in self._verdicts.items():
            counted[cells] += other._verdicts[value]

    def _place(self, group: str | None) -> int:
        return self._groups.setdefault(group, len(self._groups))

    def _make_room(self) -> None:
        more = len(self._groups) * _SIDES - len(self._traces)
        if more:
            self._traces = _longer(self._traces, more)
            self._onsets = _longer(self._onsets, more)
            self._numbers = _longer(self._numbers, more)
            self._verdicts = {value: _longer(one, more) for value, one in self._verdicts.items()}

    def _cells(self, table: Any) -> Whole:
        """The cell of each row; there is room for all of them then."""
        group = np.zeros(table.num_rows, dtype=np.int64)
        if self._by == ALL:
            self._place(ALL)
        else:
            coded = table[self._by].combine_chunks().dictionary_encode(null_encoding="encode")
            places = [self._place(name or None) for name in coded.dictionary.to_pylist()]
            group = np.array(places, dtype=np.int64)[coded.indices.to_numpy()]
        if self._failed_below is None:
            told = table["outcome"].combine_chunks().dictionary_encode()
            sides = [_OUTCOMES.get(name, UNKNOWN) for name in told.dictionary.to_pylist()]
            outcome = np.array(sides, dtype=np.int64)[told.indices.to_numpy()]
        else:
            score = table["score"].to_numpy()
            outcome = np.where(score < self._failed_below, FAILED, SUCCEEDED)
            outcome = np.where(np.isnan(score), UNKNOWN, outcome).astype(np.int64)
        self._make_room()
        cells: Whole = group * _SIDES + outcome
        return cells

    def report(self, rules: Rules, done: int) -> ShardReport:
        """What the counts tell.

        Args:
            rules: Where the lines are drawn.
            done: How many shards were added up.
        """
        manifest = self._manifest
        by_name = sorted(self._groups.items(), key=lambda item: (item[0] is None, item[0] or ""))
        sides = self._traces.reshape(-1, _SIDES).sum(axis=0) if self._groups else np.zeros(_SIDES)
        all_traces = int(self._traces.sum())
        shards = len(manifest.shards)
        cannot_say = [
            "These are the suggestions of a judge that nobody has checked; 'mast-tui import' "
            "brings a sample of them into a workspace for people to label."
        ]
        if done < shards:
            cannot_say.append(
                f"{shards - done} of {shards} shards are not written; the judge's command goes on."
            )
        return {
            "by": self._by,
            "labels": manifest.judge,
            "labels_kind": "judge",
            "taxonomy": manifest.taxonomy.ref,
            "shards": {"all": shards, "done": done},
            "traces": {
                "labelled": all_traces,
                "failed": int(sides[FAILED]),
                "succeeded": int(sides[SUCCEEDED]),
                "unknown": int(sides[UNKNOWN]),
                "unread": self._unread,
                "twice": self._twice,
            },
            "groups": {name or NO_VALUE: self._group(place, rules) for name, place in by_name},
            "cannot_say": cannot_say,
        }

    def _group(self, place: int, rules: Rules) -> ShardGroupJson:
        cells = slice(place * _SIDES, (place + 1) * _SIDES)
        traces = self._traces[cells]
        lost, won = self._counted(cells.start + FAILED), self._counted(cells.start + SUCCEEDED)
        everything = self._counted(cells)
        stated = stated_for(self._manifest.taxonomy.ref)
        classes = {} if stated is None else stated.classes
        ref = self._manifest.taxonomy.ref
        figures = mode_figures(
            everything,
            lost,
            won,
            int(traces.sum()),
            self._verdicts[UNSURE][cells].sum(axis=0).tolist(),
            [FigureScope("mode", ref, mode=mode.code) for mode in self._modes],
        )
        tables = FigureIndex(figures).rows("mode")
        onsets = self._onsets[cells].sum(axis=0)
        shares = [
            present / judged
            for present, judged in zip(lost.present, lost.judged, strict=True)
            if judged
        ]
        numbers = self._numbers[cells.start + FAILED].tolist()
        most = max((number for number, count in enumerate(numbers) if count), default=-1)
        return {
            "traces": int(traces.sum()),
            "failed": int(traces[FAILED]),
            "succeeded": int(traces[SUCCEEDED]),
            "unknown": int(traces[UNKNOWN]),
            "modes_per_failed_trace": {
                "value": sum(shares) if shares else None,
                "n": int(traces[FAILED]),
                "distribution": {str(number): numbers[number] for number in range(most + 1)},
            },
            "categories": self._categories(self._manifest.taxonomy.at_level(0), everything),
            **self._levels(everything),
            "modes": {
                mode.code: {
                    "name": mode.name,
                    **mode_document(tables[mode.code], rules, classes.get(mode.slug)),
                    "corrected": None,
                }
                for mode in self._modes
            },
            "onset": {
                mode.code: {"n": int(bins.sum()), "bins": bins.tolist()}
                for mode, bins in zip(self._modes, onsets, strict=True)
                if bins.any()
            },
        }

    def _counted(self, cells: int | slice) -> Counts:
        present, absent = (
            np.atleast_2d(self._verdicts[value][cells]).sum(axis=0) for value in (PRESENT, ABSENT)
        )
        return Counts(tuple(present.tolist()), tuple((present + absent).tolist()))

    def _levels(self, everything: Counts) -> _LevelsJson:
        """The categories of each level, where there are several."""
        levels = self._manifest.taxonomy.by_level
        if not levels:
            return {}
        told = {name: self._categories(groups, everything) for name, groups in levels.items()}
        return {"levels": {name: {"categories": one} for name, one in told.items()}}

    def _categories(
        self, groups: Iterable[Group], everything: Counts
    ) -> dict[str, ShardCategoryJson]:
        total = sum(everything.present)
        found: dict[str, ShardCategoryJson] = {}
        for ident, name, slugs in groups:
            count = sum(
                present
                for mode, present in zip(self._modes, everything.present, strict=True)
                if mode.slug in slugs
            )
            share = count / total if total else None
            found[ident] = {"name": name, "count": count, "share": share}
        return found


def _count_files(
    folder: ShardFolder,
    manifest: Manifest,
    by: str,
    failed_below: float | None,
    batch: Sequence[Sequence[str]],
) -> Iterator[tuple[NDArray[np.uint64], _Counts]]:
    """Give the keys in each item's files, and the sums over their rows, wherever it is sent."""
    for files in batch:
        counts = _Counts(manifest, by, failed_below)
        keys = []
        for table in _tables(folder, files, counts.columns):
            keys.append(table["key"].to_numpy().copy())
            counts.add(table, np.ones(table.num_rows, dtype=bool))
        yield np.concatenate(keys), counts


def _longer(counts: NDArray[np.int64], more: int) -> NDArray[np.int64]:
    return np.concatenate([counts, np.zeros((more, *counts.shape[1:]), dtype=np.int64)])
