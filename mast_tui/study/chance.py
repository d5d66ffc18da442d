"""Random draws that are the same on every machine: they follow from a seed and texts alone."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from itertools import accumulate, pairwise
from math import floor
from typing import Final

_COPY_SUFFIX: Final = re.compile(r"(?:~\d+)+\Z")


def drawn(seed: int, *texts: str) -> int:
    """Return a pseudo-random number from 0 to 2^64 − 1 that follows from a seed and texts."""
    text = "\0".join((str(seed), *texts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big")


def stem(trace_id: str) -> str:
    """Return the id of a trace for draws: without a suffix ``~2``, which a merge may add."""
    return _COPY_SUFFIX.sub("", trace_id)


def rounded(share: float, count: int) -> int:
    """Return a share of a count, rounded to the nearest whole number, and a half upwards.

    Args:
        share: The share between 0 and 1, which counts as the decimal number that is written.
        count: The count.
    """
    exact = Decimal(str(share)) * count
    return int(exact.quantize(Decimal(1), rounding=ROUND_HALF_UP))


def random_sample(ids: Iterable[str], seed: int, n: int) -> tuple[str, ...]:
    """Return ``n`` of the ids, each once, in the order in which they are drawn.

    A larger sample of the same ids begins with the smaller one.

    Args:
        ids: The ids.
        seed: The seed of the draw.
        n: The number of ids.
    """
    return tuple(
        sorted(
            dict.fromkeys(ids),
            key=lambda trace_id: (drawn(seed, "sample", stem(trace_id)), trace_id),
        )[:n]
    )


def stratified_sample(
    strata: Mapping[str, tuple[str, ...]], n: int, seed: int, *, batch_number: int = 0
) -> tuple[str, ...]:
    """Draw traces with equal chances, so that each stratum has its share up to one trace.

    It is a systematic sample: the traces are sorted by stratum, in random order within each. From a
    random start every (N/n)th is drawn, so that each has the chance n/N (Madow and Madow 1944,
    Annals of Mathematical Statistics 15:1-24). So shares of the sample are shares of all traces
    without weights.

    Args:
        strata: The ids of the traces by the name of their stratum.
        n: The number of traces to draw; all if there are fewer.
        seed: The seed of the draw.
        batch_number: The number of the batch; each batch has another draw.

    Returns:
        The ids, sorted.
    """
    frame = [
        trace_id
        for name in sorted(strata)
        for trace_id in sorted(
            strata[name], key=lambda x: (drawn(seed, f"lot {batch_number}", stem(x)), x)
        )
    ]
    if n >= len(frame):
        return tuple(sorted(frame))
    start = drawn(seed, f"start {batch_number}") % len(frame)
    indices = [(start + step * len(frame)) // n for step in range(n)]
    return tuple(sorted(frame[index] for index in indices))


def weighted_sample(
    sizes: Mapping[str, float], n: int, seed: int, *, batch_number: int = 0
) -> dict[str, float]:
    """Draw traces with chances in proportion to a size.

    It is a systematic sample with unequal chances: the traces lie on a line in random order, each
    as long as its chance. From a random start every trace at a whole step is drawn (Madow 1949,
    Annals of Mathematical Statistics 20:333-354). So each trace has exactly its chance.

    Args:
        sizes: The size of each trace by id, above 0.
        n: The number of traces to draw; all if there are fewer.
        seed: The seed of the draw.
        batch_number: The number of the batch; each batch has another draw.

    Returns:
        The chances of the drawn traces by id, sorted by id.
    """
    chances = _inclusion_chances(sizes, min(n, len(sizes)))
    frame = sorted(
        sizes, key=lambda trace_id: (drawn(seed, f"lot {batch_number}", stem(trace_id)), trace_id)
    )
    start = drawn(seed, f"start {batch_number}") / 2**64
    ends = [0.0, *accumulate(chances[trace_id] for trace_id in frame)]
    # The chances add up to n except for rounding, which must not leave out a trace.
    ends[-1] = float(round(ends[-1]))
    sample = [
        trace_id
        for trace_id, (range_start, range_end) in zip(frame, pairwise(ends), strict=True)
        if floor(range_end - start) > floor(range_start - start)
    ]
    return {trace_id: chances[trace_id] for trace_id in sorted(sample)}


def _inclusion_chances(sizes: Mapping[str, float], n: int) -> dict[str, float]:
    """Return chances in proportion to sizes, at most 1 each, that add up to ``n``."""
    certain_ids: set[str] = set()
    while True:
        total_size = sum(size for trace_id, size in sizes.items() if trace_id not in certain_ids)
        draw_count = n - len(certain_ids)
        new_ids = {
            trace_id
            for trace_id, size in sizes.items()
            if trace_id not in certain_ids and size * draw_count >= total_size
        }
        if not new_ids:
            break
        certain_ids |= new_ids
    return {
        trace_id: 1.0 if trace_id in certain_ids else size * draw_count / total_size
        for trace_id, size in sizes.items()
    }
