"""Fisher's exact test."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

_TIE: Final = 1e-7
"""Tables as likely as the one seen count with it; rounding must not tell them apart."""


class LogFactorials:
    """The logarithms of 0!, 1!, … up to a number, made once for many tests."""

    def __init__(self, most: int) -> None:
        steps = np.log(np.arange(1, most + 1, dtype=np.longdouble))
        self._table = np.concatenate([np.zeros(1, dtype=np.longdouble), np.cumsum(steps)])

    def choose(self, n: int, k: NDArray[np.int64]) -> NDArray[np.longdouble]:
        """The logarithm of ``n`` over each ``k``."""
        found: NDArray[np.longdouble] = self._table[n] - self._table[k] - self._table[n - k]
        return found


def fisher_exact(count: int, n: int, other: int, of: int, logs: LogFactorials) -> float | None:
    """The two-sided p of ``count`` of ``n`` against ``other`` of ``of`` (Fisher 1935).

    The chance of all tables with these margins that are no more likely than the one seen. None
    where one side is empty. ``logs`` must reach to ``n + of``.
    """
    if not n or not of:
        return None
    hits = count + other
    k = np.arange(max(0, hits - of), min(n, hits) + 1, dtype=np.int64)
    if len(k) == 1:
        return 1.0
    chance = logs.choose(n, k) + logs.choose(of, hits - k)
    chance = np.exp(chance - chance.max())
    seen = chance[count - int(k[0])]
    return min(1.0, float(chance[chance <= seen * (1 + _TIE)].sum() / chance.sum()))
