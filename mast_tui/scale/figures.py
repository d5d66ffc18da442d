"""Failure signatures of shards, from counts that are added up file by file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.judge.input import JudgedOutsideWorkspace
from mast_tui.figures.record import FigureIndex, FigureScope
from mast_tui.figures.signatures.model import (
    ALL,
    FAILED,
    NO_VALUE,
    SUCCEEDED,
    UNKNOWN,
    Rules,
)
from mast_tui.figures.signatures.modes import TraceCounts, mode_figures
from mast_tui.figures.signatures.report import published_classes
from mast_tui.parallel import LostItem, Workers, each
from mast_tui.reports.signature_document import mode_document
from mast_tui.scale.shards import (
    ABSENT,
    BINS,
    PRESENT,
    UNSURE,
    Manifest,
    ShardFolder,
    ShardsError,
    onset_column,
    pyarrow,
    trace_key,
    traces_file,
    verdict_column,
)
from mast_tui.taxonomy.model import Group
from mast_tui.traces.model import Outcome
from mast_tui.workspace import TraceRecord

FIELDS: Final = ("model", "system", "benchmark", "task", "reader", "version")
"""The fields by which traces in shards can be grouped."""

_FILES_PER_BATCH: Final = 128
"""The number of shards that are counted at once."""

_NULL: Final = -128
"""The number for a missing verdict or onset; neither has this value."""

_CELLS_PER_GROUP: Final = 3
"""The number of cells of a group, one for each outcome: failed, succeeded, unknown."""

_OUTCOMES: Final = {Outcome.FAILED.value: FAILED, Outcome.SUCCEEDED.value: SUCCEEDED}

Integers = NDArray[np.int64]


Document = dict[str, Any]


def shard_report(
    folder: ShardFolder,
    *,
    group_by: str = "model",
    rules: Rules | None = None,
    failed_below: float | None = None,
    workers: Workers | None = None,
    tell: Callable[[int, int], object] = lambda _done, _total: None,
) -> Document:
    """Return the document of the report on all shards of a folder.

    It has those fields of a report on failure signatures that counts can fill.

    Args:
        folder: The folder of the shards.
        group_by: The field that groups the traces: one of ``FIELDS``, or ``all``.
        rules: The thresholds of the report; None for the defaults of ``Rules``.
        failed_below: The score below which a trace counts as failed; None to use its outcome.
        workers: The processes that read and count; None for this process alone.
        tell: Receives the number of counted shards and the number of all shards.

    Raises:
        ShardsError: The shards cannot be read, or there is no such field.
    """
    if group_by not in (*FIELDS, ALL):
        raise ShardsError(
            f"--by {group_by!r} is not a field of shards; there are {', '.join((*FIELDS, ALL))}"
        )
    manifest = folder.manifest()
    files = [*map(traces_file, folder.done(manifest))]
    new_counts = partial(_Counts, manifest, group_by, failed_below)
    counts = _counts_of_files(folder, files, new_counts, workers, tell) if files else new_counts()
    return counts.report(Rules() if rules is None else rules, len(files))


def _counts_of_files(
    folder: ShardFolder,
    files: Sequence[str],
    new_counts: Callable[[], _Counts],
    workers: Workers | None,
    tell: Callable[[int, int], object],
) -> _Counts:
    """Return the counts of files, with each trace counted once."""
    counts = new_counts()
    keys_by_batch = []
    batches = list(_batches(files))
    count = partial(_count_files, folder, new_counts)
    for batch, result in zip(batches, each(count, batches, workers), strict=True):
        if isinstance(result, LostItem):
            raise ShardsError(f"{folder.address}: {batch[0]} and following: {result.reason}")
        batch_keys, batch_counts = result
        keys_by_batch.append(batch_keys)
        counts.join(batch_counts)
        tell(min(len(files), len(keys_by_batch) * _FILES_PER_BATCH), len(files))
    repeated_keys = _repeated_keys(keys_by_batch)
    if not len(repeated_keys):
        return counts
    # Traces in two shards were counted twice. Count all files again in order, in one process, with
    # only the first row of each trace.
    counts = new_counts()
    seen_keys: set[int] = set()
    for table in _read_tables(folder, files, counts.columns):
        counts.add(table, _first_rows(table, repeated_keys, seen_keys))
    return counts


def _batches(files: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(files), _FILES_PER_BATCH):
        yield files[start : start + _FILES_PER_BATCH]


def judged_outside_workspace(
    address: str, judge: str, stored_traces: Iterable[TraceRecord]
) -> JudgedOutsideWorkspace:
    """Count the verdicts of a judge on traces of shards that are not in a workspace.

    Each trace counts once.

    Args:
        address: The path or URL of the shards.
        judge: The name of the judge.
        stored_traces: The traces of the workspace with verdicts of the judge.

    Raises:
        ShardsError: The shards cannot be read, or another judge wrote them.
    """
    folder = ShardFolder(address)
    manifest = folder.manifest()
    if manifest.judge != judge:
        raise ShardsError(
            f"{folder.address}: contains the verdicts of {manifest.judge}, not of {judge}"
        )
    files = [*map(traces_file, folder.done(manifest))]
    if not files:
        return JudgedOutsideWorkspace()
    # Stored traces count as seen, so that ``_first_rows`` leaves them out.
    seen_keys = set(map(trace_key, stored_traces))
    repeated = _repeated_keys(
        [key_table["key"].to_numpy().copy() for key_table in _read_tables(folder, files, ["key"])]
    )
    repeated_or_stored_keys = np.union1d(repeated, np.array(sorted(seen_keys), dtype=np.uint64))
    trace_count = 0
    counts: Counter[tuple[str, int]] = Counter()
    """The number of traces by the slug of a mode and the verdict on it."""
    columns = ["key", "problem", *map(verdict_column, manifest.looks_at)]
    for table in _read_tables(folder, files, columns):
        is_judged = table["problem"].is_null().to_numpy()
        rows = is_judged & _first_rows(table, repeated_or_stored_keys, seen_keys)
        trace_count += int(rows.sum())
        for slug in manifest.looks_at:
            verdicts = table[verdict_column(slug)].fill_null(_NULL).to_numpy()[rows]
            for verdict in (PRESENT, ABSENT, UNSURE):
                counts[slug, verdict] += int((verdicts == verdict).sum())
    return JudgedOutsideWorkspace(
        trace_count,
        {
            slug: (counts[slug, PRESENT], counts[slug, ABSENT], counts[slug, UNSURE])
            for slug in manifest.looks_at
        },
    )


def _read_tables(
    folder: ShardFolder, files: Sequence[str], columns: Sequence[str]
) -> Iterator[Any]:
    """Yield a table for each batch of files.

    A single data set of all files would be too large, because it keeps their metadata in memory.

    Raises:
        ShardsError: A file cannot be read.
    """
    dataset = pyarrow("pyarrow.dataset")
    for names in _batches(files):
        paths = [folder.path(name) for name in names]
        try:
            batch = dataset.dataset(paths, format="parquet", filesystem=folder.filesystem())
            table = batch.to_table(columns=[*columns]).combine_chunks()
        except (pyarrow().ArrowException, OSError) as error:
            raise ShardsError(f"{folder.address}: a shard cannot be read: {error}") from None
        yield table


def _repeated_keys(key_arrays: list[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Return the keys that occur more than once; ``key_arrays`` is emptied to free memory."""
    all_keys = np.concatenate(key_arrays)
    key_arrays.clear()
    all_keys.sort()
    return np.unique(all_keys[1:][all_keys[1:] == all_keys[:-1]])


def _first_rows(
    table: Any, repeated_keys: NDArray[np.uint64], seen_keys: set[int]
) -> NDArray[np.bool_]:
    """Return a mask of the rows that are the first of their trace.

    Only keys in ``repeated_keys`` can have several rows. ``seen_keys`` has those of earlier rows;
    the keys of this table are added.
    """
    keys = table["key"].to_numpy()
    is_first = np.ones(len(keys), dtype=bool)
    if not len(repeated_keys):
        return is_first
    for row in np.flatnonzero(np.isin(keys, repeated_keys)):
        key = int(keys[row])
        is_first[row] = key not in seen_keys
        seen_keys.add(key)
    return is_first


class _Counts:
    """The counts of traces by cell: the traces of a group with one outcome.

    The first axis of each array is the cell; new groups add cells.
    """

    def __init__(self, manifest: Manifest, group_by: str, failed_below: float | None) -> None:
        self._manifest = manifest
        self._group_by = group_by
        self._failed_below = failed_below
        self._modes = manifest.taxonomy.modes
        self._groups: dict[str | None, int] = {}
        mode_count = len(self._modes)
        self._traces = np.zeros(0, dtype=np.int64)
        self._verdicts = {
            value: np.zeros((0, mode_count), dtype=np.int64) for value in (PRESENT, ABSENT, UNSURE)
        }
        self._onsets = np.zeros((0, mode_count, BINS), dtype=np.int64)
        self._traces_by_mode_count = np.zeros((0, mode_count + 1), dtype=np.int64)
        self._unread_count = 0
        self._repeated_count = 0
        names = ["key", "outcome", "score", "problem", *(() if group_by == ALL else (group_by,))]
        for mode in self._modes:
            names += [verdict_column(mode.slug), onset_column(mode.slug)]
        self.columns: Final = tuple(names)

    def add(self, table: Any, is_counted: NDArray[np.bool_]) -> None:
        """Add rows to the counts.

        Args:
            table: The rows, with the columns of ``self.columns``.
            is_counted: True for each row that counts; other rows repeat a trace.
        """
        self._repeated_count += int((~is_counted).sum())
        judged_rows = is_counted & table["problem"].is_null().to_numpy()
        self._unread_count += int((is_counted & ~judged_rows).sum())

        # Each array has one entry per cell, that is, per group and outcome.
        cells = self._cells_of_rows(table)
        self._traces += np.bincount(cells[judged_rows], minlength=len(self._traces))
        mode_counts = np.zeros(len(cells), dtype=np.int64)
        onset_shape = self._onsets.shape
        for mode_index, mode in enumerate(self._modes):
            verdicts = table[verdict_column(mode.slug)].fill_null(_NULL).to_numpy()
            for value, sums in self._verdicts.items():
                matching_rows = judged_rows & (verdicts == value)
                sums[:, mode_index] += np.bincount(cells[matching_rows], minlength=len(sums))
                if value == PRESENT:
                    mode_counts += matching_rows
            onset = table[onset_column(mode.slug)].fill_null(_NULL).to_numpy()
            matching_rows = judged_rows & (onset >= 0)
            by_bin = np.bincount(
                cells[matching_rows] * BINS + onset[matching_rows], minlength=onset_shape[0] * BINS
            )
            self._onsets[:, mode_index] += by_bin.reshape(onset_shape[0], BINS)
        possible_mode_counts = self._traces_by_mode_count.shape[1]
        added_counts = np.bincount(
            (cells * possible_mode_counts + mode_counts)[judged_rows],
            minlength=self._traces_by_mode_count.size,
        )
        self._traces_by_mode_count += added_counts.reshape(self._traces_by_mode_count.shape)

    def join(self, other: _Counts) -> None:
        """Add the counts of other rows, which may have other groups."""
        self._unread_count += other._unread_count
        groups = [self._group_number(name) for name in other._groups]
        self._add_cells_for_new_groups()
        cells = [
            group * _CELLS_PER_GROUP + outcome
            for group in groups
            for outcome in range(_CELLS_PER_GROUP)
        ]
        self._traces[cells] += other._traces
        self._onsets[cells] += other._onsets
        self._traces_by_mode_count[cells] += other._traces_by_mode_count
        for value, sums in self._verdicts.items():
            sums[cells] += other._verdicts[value]

    def _group_number(self, name: str | None) -> int:
        """Return the number of a group; a new group is added."""
        return self._groups.setdefault(name, len(self._groups))

    def _add_cells_for_new_groups(self) -> None:
        """Lengthen the arrays by the cells of new groups."""
        missing_count = len(self._groups) * _CELLS_PER_GROUP - len(self._traces)
        if missing_count:
            self._traces = _with_zeros(self._traces, missing_count)
            self._onsets = _with_zeros(self._onsets, missing_count)
            self._traces_by_mode_count = _with_zeros(self._traces_by_mode_count, missing_count)
            self._verdicts = {
                value: _with_zeros(sums, missing_count) for value, sums in self._verdicts.items()
            }

    def _cells_of_rows(self, table: Any) -> Integers:
        """Return the cell (group and outcome) of each row, and add cells for new groups."""
        if self._group_by == ALL:
            self._group_number(ALL)
            group_of_row = np.zeros(table.num_rows, dtype=np.int64)
        else:
            group_of_row = _numbers_of_names(table[self._group_by], self._group_number)
        if self._failed_below is None:
            outcome_of_row = _numbers_of_names(
                table["outcome"], lambda name: _OUTCOMES.get(name or "", UNKNOWN)
            )
        else:
            score = table["score"].to_numpy()
            outcome_of_row = np.where(score < self._failed_below, FAILED, SUCCEEDED)
            outcome_of_row = np.where(np.isnan(score), UNKNOWN, outcome_of_row).astype(np.int64)
        self._add_cells_for_new_groups()
        cells: Integers = group_of_row * _CELLS_PER_GROUP + outcome_of_row
        return cells

    def report(self, rules: Rules, done_count: int) -> Document:
        """Return the document of the counts.

        Args:
            rules: The thresholds of the report.
            done_count: The number of shards that were added up.
        """
        manifest = self._manifest
        shard_count = len(manifest.shards)
        groups_by_name = sorted(
            self._groups.items(), key=lambda item: (item[0] is None, item[0] or "")
        )
        outcome_counts = self._traces.reshape(-1, _CELLS_PER_GROUP).sum(axis=0)
        return {
            "by": self._group_by,
            "labels": manifest.judge,
            "labels_kind": "judge",
            "taxonomy": manifest.taxonomy.ref,
            "shards": {"all": shard_count, "done": done_count},
            "traces": {
                "labelled": int(self._traces.sum()),
                "failed": int(outcome_counts[FAILED]),
                "succeeded": int(outcome_counts[SUCCEEDED]),
                "unknown": int(outcome_counts[UNKNOWN]),
                "unread": self._unread_count,  # they could not be judged
                "twice": self._repeated_count,
            },
            "groups": {
                name or NO_VALUE: self._group_json(number, rules) for name, number in groups_by_name
            },
            "cannot_say": list(_limit_sentences(shard_count, shard_count - done_count)),
        }

    def _group_json(self, group_number: int, rules: Rules) -> Document:
        """Return the figures of one group."""
        cells = slice(group_number * _CELLS_PER_GROUP, (group_number + 1) * _CELLS_PER_GROUP)
        traces = self._traces[cells]
        all_counts = self._counts_of_cells(cells)
        taxonomy = self._manifest.taxonomy
        document: Document = {
            "traces": int(traces.sum()),
            "failed": int(traces[FAILED]),
            "succeeded": int(traces[SUCCEEDED]),
            "unknown": int(traces[UNKNOWN]),
            "modes_per_failed_trace": self._modes_per_failed_trace(cells.start + FAILED),
            "categories": self._categories_json(taxonomy.at_level(0), all_counts),
        }
        if taxonomy.by_level:
            document["levels"] = {
                name: {"categories": self._categories_json(groups, all_counts)}
                for name, groups in taxonomy.by_level.items()
            }
        return document | {
            "modes": self._modes_json(cells, rules),
            # The traces by the tenth of the run in which a mode first appears.
            "onset": {
                mode.code: {"n": int(bins.sum()), "bins": bins.tolist()}
                for mode, bins in zip(self._modes, self._onsets[cells].sum(axis=0), strict=True)
                if bins.any()
            },
        }

    def _modes_json(self, cells: slice, rules: Rules) -> Document:
        """Return the figures of each mode in a group, by the code of the mode."""
        ref = self._manifest.taxonomy.ref
        figures = mode_figures(
            self._counts_of_cells(cells),
            self._counts_of_cells(cells.start + FAILED),
            self._counts_of_cells(cells.start + SUCCEEDED),
            trace_count=int(self._traces[cells].sum()),
            unsure=self._verdicts[UNSURE][cells].sum(axis=0).tolist(),
            scopes=[FigureScope("mode", ref, mode=mode.code) for mode in self._modes],
        )
        figures_by_mode = FigureIndex(figures).figures_by_key("mode")
        published = published_classes(ref)
        classes = {} if published is None else published.classes
        return {
            mode.code: {
                "name": mode.name,
                **mode_document(figures_by_mode[mode.code], rules, classes.get(mode.slug)),
                "corrected": None,
            }
            for mode in self._modes
        }

    def _modes_per_failed_trace(self, cell: int) -> Document:
        """Return the number of modes per trace in a cell of failed traces."""
        counts = self._counts_of_cells(cell)
        # The mean number of modes in a failed trace is the sum of these shares.
        shares = [mode.present / mode.judged for mode in counts if mode.judged]
        traces_by_mode_count = np.trim_zeros(self._traces_by_mode_count[cell], "b").tolist()
        return {
            "value": sum(shares) if shares else None,
            "n": int(self._traces[cell]),
            "distribution": {str(n): count for n, count in enumerate(traces_by_mode_count)},
        }

    def _counts_of_cells(self, cells: int | slice) -> list[TraceCounts]:
        """Return the numbers of traces with each mode, and judged on it, in some cells."""
        present, absent = (
            np.atleast_2d(self._verdicts[value][cells]).sum(axis=0) for value in (PRESENT, ABSENT)
        )
        return list(map(TraceCounts.unweighted, present.tolist(), (present + absent).tolist()))

    def _categories_json(self, groups: Iterable[Group], counts: Iterable[TraceCounts]) -> Document:
        """Return the number of present verdicts of each category, and its share of all."""
        present_counts = [mode.present for mode in counts]
        total = sum(present_counts)
        categories: Document = {}
        for ident, name, slugs in groups:
            count = sum(
                present
                for mode, present in zip(self._modes, present_counts, strict=True)
                if mode.slug in slugs
            )
            share = count / total if total else None
            categories[ident] = {"name": name, "count": count, "share": share}
        return categories


def _count_files(
    folder: ShardFolder, new_counts: Callable[[], _Counts], items: Sequence[Sequence[str]]
) -> Iterator[tuple[NDArray[np.uint64], _Counts]]:
    """Yield the keys and the counts of the traces in each item, a list of files."""
    for files in items:
        counts = new_counts()
        keys = []
        for table in _read_tables(folder, files, counts.columns):
            keys.append(table["key"].to_numpy().copy())
            # The mask selects all rows.
            counts.add(table, np.ones(table.num_rows, dtype=bool))
        yield np.concatenate(keys), counts


def _numbers_of_names(column: Any, number_of: Callable[[str | None], int]) -> Integers:
    """Return the number of the name in each row, with one call of ``number_of`` per name."""
    names = column.combine_chunks().dictionary_encode(null_encoding="encode")
    numbers = [number_of(name or None) for name in names.dictionary.to_pylist()]
    row_numbers: Integers = np.array(numbers, dtype=np.int64)[names.indices.to_numpy()]
    return row_numbers


def _limit_sentences(shard_count: int, missing_count: int) -> Iterator[str]:
    """Yield sentences on the limits of the figures."""
    yield (
        "These are unchecked suggestions of a judge; 'mast-tui import' imports a sample of them "
        "into a workspace for people to label."
    )
    if missing_count:
        yield (
            f"{missing_count} of {shard_count} shards are not written yet; run the judge's command "
            "again to continue."
        )


def _with_zeros(counts: NDArray[np.int64], more: int) -> NDArray[np.int64]:
    return np.concatenate([counts, np.zeros((more, *counts.shape[1:]), dtype=np.int64)])
