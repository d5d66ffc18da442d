"""``mast-tui import SHARDS``: the import of judged traces from shards into a workspace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from heapq import nsmallest
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared.common import open_workspace, print_json, print_line
from mast_tui.cli.shared.workers import WorkerPool
from mast_tui.counts import counted
from mast_tui.grouping import values_by_key
from mast_tui.judges.runner import JudgedTrace, TraceStatus, run_judge
from mast_tui.labels import Judgement
from mast_tui.parallel import Item, LostItem, Result, Work, each
from mast_tui.scale.shards import (
    MANIFEST,
    PRESENT,
    Manifest,
    ShardFolder,
    ShardsError,
    read_shard,
    read_table,
    traces_file,
    verdict_column,
)
from mast_tui.taxonomy.model import Taxonomy

if TYPE_CHECKING:
    from mast_tui.cli.import_labels import ImportCommandRequest
    from mast_tui.traces.model import Trace

FIELDS: Final = ("model", "system", "benchmark", "task", "outcome", "reader", "version")
"""The fields of a trace that ``--where`` accepts, besides modes."""

_OF_STUDY: Final = "study=yes"
"""The condition of ``--where`` for the traces of the workspace's study."""


def are_shards(address: str) -> bool:
    """Check whether a path or URL is a folder of shards."""
    return ShardFolder(address).read(MANIFEST) is not None


@dataclass(frozen=True, slots=True)
class _ShardsJudge:
    """The judge that wrote the shards; it cannot judge other traces."""

    name: str
    looks_at: tuple[str, ...]

    def judge(self, _trace: Trace, /) -> Judgement:
        raise AssertionError("the judgements are read from the shards")


def import_shards(request: ImportCommandRequest, pool: WorkerPool) -> int:
    """Import traces of shards and the judge's suggestions, and return the exit code.

    The keys of all matching traces are read first, then the traces of the sample.

    Args:
        request: The options of the command; its first file is the folder's path or URL.
        pool: The processes that read the shards.

    Raises:
        ShardsError: The shards cannot be read.
        click.UsageError: A condition is not valid.
        click.ClickException: No trace meets the conditions.
    """
    address = request.files[0]
    folder = ShardFolder(address)
    manifest = folder.manifest()
    find_keys = partial(
        _matching_keys, folder, _parsed_conditions(request.where, manifest, request.common)
    )
    shards = folder.done(manifest)
    keys = zip(shards, _results_of_shards(find_keys, shards, address, pool), strict=True)
    sample = _draw_sample(keys, request.sample, request.seed)
    if request.where and not sample.matching_count:
        conditions = " ".join(f"--where {argument}" for argument in request.where)
        raise click.ClickException(f"{address}: no trace matches {conditions}")
    selection = [(shard, sample.keys[shard]) for shard in shards if shard in sample.keys]
    read = partial(_read_selection, folder, manifest.taxonomy)
    target = open_workspace(request.common, create=True)
    summary = run_judge(
        _ShardsJudge(manifest.judge, manifest.looks_at),
        manifest.taxonomy,
        _judged_traces(_results_of_shards(read, selection, address, pool), len(selection), pool),
        target,
    )
    traces = {status.value: count for status, count in summary.traces.items()}
    _print_import(request, manifest, sample.matching_count, traces)
    return 0


def _print_import(
    request: ImportCommandRequest,
    manifest: Manifest,
    matching_count: int,
    traces: Mapping[str, int],
) -> None:
    """Print the number of imported traces by status, as a line or as JSON."""
    if request.as_json:
        print_json(
            {
                "shards": request.files[0],
                "judge": manifest.judge,
                "taxonomy": manifest.taxonomy.ref,
                "where": list(request.where),
                "matching": matching_count,
                "sample": request.sample,
                "seed": request.seed,
                "traces": traces,
            }
        )
        return
    new_count = traces.get(TraceStatus.JUDGED, 0)
    earlier_count = traces.get(TraceStatus.KNOWN, 0)
    sample_text = (
        "" if request.sample is None else f" drawn from {matching_count:,} with seed {request.seed}"
    )
    print_line(
        f"{manifest.judge}: {counted(new_count + earlier_count, 'trace')}{sample_text} "
        f"imported with its suggestions, {earlier_count:,} of them already here"
    )


def _parsed_conditions(
    where: Sequence[str], manifest: Manifest, common: CommonOptions
) -> _Conditions:
    """Return the accepted values of ``--where`` by column of the table of traces.

    Raises:
        click.UsageError: A condition has no valid field or mode.
    """
    conditions: dict[str, set[object]] = {}
    for argument in where:
        name, separator, value = argument.partition("=")
        if separator and name == "mode":
            mode = manifest.taxonomy.find(value)
            if mode is None:
                raise click.UsageError(
                    f"--where {argument}: {manifest.taxonomy.ref} has no such mode"
                )
            conditions.setdefault(verdict_column(mode.slug), set()).add(PRESENT)
        elif argument == _OF_STUDY:
            conditions.setdefault("trace_id", set()).update(_traces_of_study(common, manifest))
        elif value and name in FIELDS:
            conditions.setdefault(name, set()).add(value)
        else:
            names = ", ".join(f"{field}=…" for field in ("mode", *FIELDS))
            raise click.UsageError(f"--where {argument}: write it as {_OF_STUDY} or one of {names}")
    return conditions


def _traces_of_study(common: CommonOptions, manifest: Manifest) -> Iterator[str]:
    """Return the ids of the traces of the workspace's study.

    Raises:
        click.ClickException: There is no study.
    """
    workspace = open_workspace(common)
    study = workspace.study(manifest.taxonomy.ref)
    workspace.close()
    if study is None:
        raise click.ClickException(
            f"--where {_OF_STUDY}: this workspace has no study under {manifest.taxonomy.ref}"
        )
    return chain.from_iterable(study.batches)


def _results_of_shards(
    work: Work[Item, Result], shards: Iterable[Item], address: str, pool: WorkerPool
) -> Iterator[Result]:
    """Yield the result of ``work`` for each shard.

    Raises:
        ShardsError: A shard cannot be read.
    """
    for result in each(work, shards, pool.workers):
        if isinstance(result, LostItem):
            raise ShardsError(f"{address}: a shard cannot be read: {result.reason}")
        yield result


_Conditions = Mapping[str, set[object]]
"""The accepted values of each column with a condition."""


def _matching_keys(
    folder: ShardFolder, conditions: _Conditions, shards: Sequence[str]
) -> list[list[int]]:
    """Return the keys of the traces in each shard that meet all conditions."""
    columns = ["key", *conditions]
    return [
        [
            row["key"]
            for row in read_table(folder, traces_file(shard), columns).to_pylist()
            if all(row[name] in values for name, values in conditions.items())
        ]
        for shard in shards
    ]


def _read_selection(
    folder: ShardFolder, taxonomy: Taxonomy, selection: Sequence[tuple[str, Sequence[int]]]
) -> list[list[JudgedTrace]]:
    """Read the selected traces of each shard."""
    return [[*read_shard(folder, shard, taxonomy, keys)] for shard, keys in selection]


class _Sample(NamedTuple):
    """The keys of a sample of traces by shard, and the number of traces to draw from."""

    keys: Mapping[str, Sequence[int]]
    matching_count: int


def _draw_sample(
    keys_of_shards: Iterable[tuple[str, list[int]]], size: int | None, seed: int
) -> _Sample:
    """Draw a sample of traces; without a size, return all of them.

    A sample has the traces with the smallest hashes of seed and key. So all samples of a size are
    equally likely, and the division into shards has no influence.
    """
    shard_by_key: dict[int, str] = {}
    for shard, keys in keys_of_shards:
        for key in keys:
            shard_by_key.setdefault(key, shard)  # the first shard that has the trace
    drawn_keys: Iterable[int] = shard_by_key
    if size is not None:
        # The key breaks ties, so that the order of the shards has no influence.
        drawn_keys = nsmallest(size, shard_by_key, key=lambda key: (_seeded_hash(seed, key), -key))
    return _Sample(values_by_key((shard_by_key[key], key) for key in drawn_keys), len(shard_by_key))


def _seeded_hash(seed: int, key: int) -> int:
    return int.from_bytes(blake2b(f"{seed} {key}".encode(), digest_size=8).digest(), "big")


def _judged_traces(
    shards: Iterable[list[JudgedTrace]], shard_count: int, pool: WorkerPool
) -> Iterator[JudgedTrace]:
    """Yield the traces of shards, and show the progress."""
    for number, traces in enumerate(shards, start=1):
        for trace in traces:
            pool.on_trace()
            yield trace
        pool.show_progress(number, shard_count)
