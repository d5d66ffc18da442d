"""Chance that is the same on every machine: it follows from a seed and from words alone."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from itertools import accumulate, pairwise
from math import floor
from typing import Final

_TWIN: Final = re.compile(r"(?:~\d+)+\Z")


def drawn(seed: int, *texts: str) -> int:
    """Return a number from 0 to 2^64 − 1 that these words draw; others draw another one."""
    text = "\0".join((str(seed), *texts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big")


def stem(trace_id: str) -> str:
    """Return the id under which a trace draws: without ``~2``, which a merge may add."""
    return _TWIN.sub("", trace_id)


def rounded(share: float, count: int) -> int:
    """Return a share of so many, to the nearest whole number, a half upwards, as it is written.

    Args:
        share: The share, between 0 and 1.
        count: The whole.
    """
    exact = Decimal(str(share)) * count
    return int(exact.quantize(Decimal(1), rounding=ROUND_HALF_UP))


def random_sample(ids: Iterable[str], seed: int, n: int) -> tuple[str, ...]:
    """Return ``n`` of the ids, each once, in the order in which they are drawn.

    A greater sample of the same ids begins with the smaller one.

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
    """Draw traces with the same chance each, of each kind as many as its share, give or take one.

    A systematic sample: the traces stand kind after kind, in a drawn order in each; from a drawn
    start on every (N/n)th is taken, so that each has the chance n/N (Madow and Madow 1944, Annals
    of Mathematical Statistics 15:1-24). As all chances are alike, shares of the sample are shares
    of all without weights.

    Args:
        strata: Of which traces there are how many kinds, by the kind's name.
        n: How many are drawn; all where there are fewer.
        seed: What they are drawn from.
        batch_number: For which batch; each draws anew.

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
    return tuple(sorted(frame[(start + turn * len(frame)) // n] for turn in range(n)))


def weighted_sample(
    sizes: Mapping[str, float], n: int, seed: int, *, batch_number: int = 0
) -> dict[str, float]:
    """Draw traces with chances in proportion to a size.

    A systematic sample of unequal chances: the traces stand in a drawn order, each as long as its
    chance; from a drawn start on whatever lies at every whole step is taken (Madow 1949, Annals of
    Mathematical Statistics 20:333-354). So chances are exactly what they are said to be.

    Args:
        sizes: How large each trace is, above 0.
        n: How many are drawn; all where there are fewer.
        seed: What they are drawn from.
        batch_number: For which batch; each draws anew.

    Returns:
        The chances of the drawn ones by id, sorted by it.
    """
    chances = _chances(sizes, min(n, len(sizes)))
    frame = sorted(sizes, key=lambda x: (drawn(seed, f"lot {batch_number}", stem(x)), x))
    start = drawn(seed, f"start {batch_number}") / 2**64
    ends = [0.0, *accumulate(chances[trace_id] for trace_id in frame)]
    # The chances add up to n but for rounding, which must not cost a trace.
    ends[-1] = float(round(ends[-1]))
    sample = [
        trace_id
        for trace_id, (low, high) in zip(frame, pairwise(ends), strict=True)
        if floor(high - start) > floor(low - start)
    ]
    return {trace_id: chances[trace_id] for trace_id in sorted(sample)}


def _chances(sizes: Mapping[str, float], n: int) -> dict[str, float]:
    """Chances in proportion to sizes that add up to ``n``, none of them over 1."""
    certain: set[str] = set()
    while True:
        total = sum(size for trace_id, size in sizes.items() if trace_id not in certain)
        left = n - len(certain)
        more = {x for x, size in sizes.items() if x not in certain and size * left >= total}
        if not more:
            break
        certain |= more
    return {
        trace_id: 1.0 if trace_id in certain else size * left / total
        for trace_id, size in sizes.items()
    }
