"""Which modes show in the same traces."""

from __future__ import annotations

from math import sqrt
from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.signatures.model import ABSENT, PRESENT


class TogetherJson(TypedDict):
    """Two modes over the ``n`` traces that were judged on both, each shown by some of them.

    ``jaccard`` is the share of the traces with either that have both; ``phi`` their correlation,
    null (``no_variance``) where one of them shows in every trace.
    """

    modes: list[str]
    n: int
    both: int
    only_first: int
    only_second: int
    neither: int
    jaccard: float
    phi: float | None
    undefined: NotRequired[dict[str, str]]


def together(verdicts: NDArray[np.uint8], codes: tuple[str, ...]) -> list[TogetherJson]:
    """Every pair of modes that both show somewhere among the traces judged on both."""
    present = (verdicts == PRESENT).astype(np.float64)
    absent = (verdicts == ABSENT).astype(np.float64)
    both, first = _whole(present.T @ present), _whole(present.T @ absent)
    neither = _whole(absent.T @ absent)
    return [
        _pair([codes[i], codes[j]], both[i][j], first[i][j], first[j][i], neither[i][j])
        for i in range(len(codes))
        for j in range(i + 1, len(codes))
        if both[i][j] + first[i][j] and both[i][j] + first[j][i]
    ]


def _whole(sums: NDArray[np.float64]) -> list[list[int]]:
    numbers: list[list[int]] = sums.astype(np.int64).tolist()
    return numbers


def _pair(modes: list[str], both: int, first: int, second: int, neither: int) -> TogetherJson:
    margins = (both + first, both + second, second + neither, first + neither)
    product = margins[0] * margins[1] * margins[2] * margins[3]
    pair: TogetherJson = {
        "modes": modes,
        "n": both + first + second + neither,
        "both": both,
        "only_first": first,
        "only_second": second,
        "neither": neither,
        "jaccard": both / (both + first + second),
        "phi": (both * neither - first * second) / sqrt(product) if product else None,
    }
    if not product:
        pair["undefined"] = {"phi": "no_variance"}
    return pair
