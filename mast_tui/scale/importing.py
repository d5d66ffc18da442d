"""``mast-tui import SHARDS``: a part of what a judge found comes into a workspace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from heapq import nlargest
from io import BytesIO
from itertools import chain
from typing import TYPE_CHECKING, Final

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared.common import open_workspace, print_json, print_line
from mast_tui.cli.shared.workers import WorkerPool
from mast_tui.counts import counted
from mast_tui.judges.protocol import Judgement
from mast_tui.judges.runner import JudgedTrace, run_judge
from mast_tui.parallel import Item, LostItem, Result, Work, each
from mast_tui.scale.folder import MANIFEST, Manifest, ShardFolder, ShardsError, traces_file
from mast_tui.scale.tables import PRESENT, Judged, pyarrow, read_shard, verdict_column
from mast_tui.taxonomy.model import Taxonomy

if TYPE_CHECKING:
    from mast_tui.cli.import_labels import ImportCommandRequest
    from mast_tui.traces.model import Trace

FIELDS: Final = ("model", "system", "benchmark", "task", "outcome", "reader", "version")
"""What of a trace ``--where`` may ask for, beside the mode that it shows."""

_OF_STUDY: Final = "study=yes"
"""What ``--where`` takes for the traces of the workspace's study."""


def are_shards(place: str) -> bool:
    """Whether a judge has written shards there.

    Args:
        place: A path or a URL.
    """
    return ShardFolder(place).read(MANIFEST) is not None


@dataclass(frozen=True, slots=True)
class _Told:
    """The judge whose words the shards hold; it judges nothing any more."""

    name: str
    looks_at: tuple[str, ...]

    def judge(self, _trace: Trace, /) -> Judgement:
        raise AssertionError("what it says stands in the shards")


def import_shards(request: ImportCommandRequest, pool: WorkerPool) -> int:
    """Import traces of shards with the judge's suggestions, and return the exit code.

    The sample follows from the seed and the traces, whatever their order.

    Args:
        request: The options of the command; its first file is the folder's path or URL.
        pool: The workers that read the shards.

    Raises:
        ShardsError: They cannot be read.
        click.UsageError: A condition is none.
    """
    place = request.files[0]
    folder = ShardFolder(place)
    manifest = folder.manifest()
    conditions = _conditions(request.where, manifest, request.common)
    matches = partial(_matching, folder, conditions)
    done = folder.done(manifest)
    shards = [shard for shard in manifest.shards if shard in done]
    found = zip(shards, _each(matches, shards, place, pool), strict=True)
    chosen, matching = _chosen(found, request.sample, request.seed)
    wanted = [(shard, chosen[shard]) for shard in shards if shard in chosen]
    read = partial(_read, folder, manifest.taxonomy)
    target = open_workspace(request.common, create=True)
    summary = run_judge(
        _Told(manifest.judge, manifest.looks_at),
        manifest.taxonomy,
        _looks(_each(read, wanted, place, pool), len(wanted), pool),
        target,
    )
    traces = {step.value: count for step, count in summary.traces.items()}
    document = {
        "shards": place,
        "judge": manifest.judge,
        "taxonomy": manifest.taxonomy.ref,
        "where": list(request.where),
        "matching": matching,
        "sample": request.sample,
        "seed": request.seed,
        "traces": traces,
    }
    if request.as_json:
        print_json(document)
        return 0
    new, known = (traces.get(step, 0) for step in ("judged", "known"))
    drawn = "" if request.sample is None else f" drawn of {matching:,} with seed {request.seed}"
    print_line(
        f"{manifest.judge}: {counted(new + known, 'trace')}{drawn} imported with what it "
        f"suggests, {known:,} of them here before"
    )
    return 0


def _conditions(where: Sequence[str], manifest: Manifest, common: CommonOptions) -> _Wanted:
    """The columns that are asked for, and which values each may have."""
    wanted: dict[str, set[object]] = {}
    for words in where:
        name, found, value = words.partition("=")
        if found and name == "mode":
            mode = manifest.taxonomy.find(value)
            if mode is None:
                raise click.UsageError(f"--where {words}: {manifest.taxonomy.ref} has no such mode")
            wanted.setdefault(verdict_column(mode.slug), set()).add(PRESENT)
        elif words == _OF_STUDY:
            wanted.setdefault("trace_id", set()).update(_traces_of_study(common, manifest))
        elif found and name in FIELDS:
            wanted.setdefault(name, set()).add(value or None)
        else:
            names = ", ".join(f"{one}=…" for one in ("mode", *FIELDS))
            raise click.UsageError(f"--where {words}: write it as {_OF_STUDY} or one of {names}")
    return wanted


def _traces_of_study(common: CommonOptions, manifest: Manifest) -> Iterator[str]:
    place = open_workspace(common)
    study = place.study(manifest.taxonomy.ref)
    place.close()
    if study is None:
        raise click.ClickException(
            f"--where {_OF_STUDY}: this workspace has no study under {manifest.taxonomy.ref}"
        )
    return chain.from_iterable(study.batches)


def _each(
    work: Work[Item, Result], shards: Iterable[Item], place: str, pool: WorkerPool
) -> Iterator[Result]:
    for found in each(work, shards, pool.workers):
        if isinstance(found, LostItem):
            raise ShardsError(f"{place}: a shard cannot be read: {found.reason}")
        yield found


_Wanted = Mapping[str, set[object]]
"""The columns that are asked for, and which values each may have."""


def _matching(folder: ShardFolder, wanted: _Wanted, shards: Sequence[str]) -> list[list[int]]:
    """The keys of the traces in each shard for which conditions hold."""
    return [_keys(folder, wanted, shard) for shard in shards]


def _keys(folder: ShardFolder, wanted: _Wanted, shard: str) -> list[int]:
    data = folder.read(traces_file(shard))
    if data is None:
        raise ShardsError(f"{folder.place}: {traces_file(shard)} has gone")
    columns = ["key", *wanted]
    rows = pyarrow("pyarrow.parquet").read_table(BytesIO(data), columns=columns).to_pylist()
    return [row["key"] for row in rows if all(row[name] in wanted[name] for name in wanted)]


def _read(
    folder: ShardFolder, taxonomy: Taxonomy, chosen: Sequence[tuple[str, set[int]]]
) -> list[list[Judged]]:
    """What was said of the chosen traces of each shard."""
    return [[*read_shard(folder, shard, taxonomy, frozenset(keys))] for shard, keys in chosen]


def _chosen(
    found: Iterable[tuple[str, list[int]]], sample: int | None, seed: int
) -> tuple[dict[str, set[int]], int]:
    """The keys of the chosen traces by shard, and of how many they were chosen.

    A sample are those of the smallest hashes of seed and key: each set of traces is as likely as
    any other of its size, and who is drawn does not depend on how the traces lie in shards.
    """
    seen: set[int] = set()

    def each_once() -> Iterator[tuple[int, str]]:
        for shard, keys in found:
            for key in keys:
                if key not in seen:
                    seen.add(key)
                    yield key, shard

    drawn: Iterable[tuple[int, str]] = each_once()
    if sample is not None:
        drawn = nlargest(sample, drawn, key=lambda one: (-_lot(seed, one[0]), one[0]))
    chosen: dict[str, set[int]] = {}
    for key, shard in drawn:
        chosen.setdefault(shard, set()).add(key)
    return chosen, len(seen)


def _lot(seed: int, key: int) -> int:
    return int.from_bytes(blake2b(f"{seed} {key}".encode(), digest_size=8).digest(), "big")


def _looks(read: Iterable[list[Judged]], shards: int, pool: WorkerPool) -> Iterator[JudgedTrace]:
    for number, found in enumerate(read, start=1):
        for one in found:
            path = one.record.path
            assert path is not None, "a judge reads traces from files"
            said = Judgement(one.findings, one.unsure, one.judged)
            pool.on_trace()
            yield JudgedTrace(path, one.record, said, one.problem)
        pool.show_progress(number, shards)
