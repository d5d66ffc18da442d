"""The verdicts of annotators on all modes of all traces, as one array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.labels import VerdictValue

ABSENT: Final = 0
PRESENT: Final = 1
UNSURE: Final = -2

VerdictArray = NDArray[np.int8]
"""Annotators × traces × modes of ``ABSENT``, ``PRESENT``, ``UNSURE`` and ``MISSING``."""

CELL_OF: Final = {
    VerdictValue.ABSENT: ABSENT,
    VerdictValue.PRESENT: PRESENT,
    VerdictValue.UNSURE: UNSURE,
}
VALUE_OF: Final = {cell: value for value, cell in CELL_OF.items()}


@dataclass(frozen=True, slots=True, eq=False)
class VerdictTable:
    """The verdicts of annotators on the traces that they have finished."""

    annotators: tuple[str, ...]
    traces: tuple[str, ...]
    slugs: tuple[str, ...]
    verdicts: VerdictArray


def numbered_rows(rows: NDArray[np.integer]) -> NDArray[np.int_]:
    """Return a number from 0 for each row of a matrix; equal rows have the same number.

    Numbers are refined column by column, which is much faster than comparing whole rows.
    """
    numbers = np.zeros(len(rows), dtype=np.int_)
    if not len(rows):
        return numbers
    for column in rows.T:
        low = int(column.min())
        high = int(column.max())
        refined = numbers * (high - low + 1) + (column.astype(np.int_) - low)
        numbers = np.unique(refined, return_inverse=True)[1].ravel()
    return numbers
