"""What each annotator said of each mode of each trace, as one array."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.coefficients import MISSING
from mast_tui.labels import VerdictValue

ABSENT: Final = 0
PRESENT: Final = 1
UNSURE: Final = -2

Said = NDArray[np.int8]
"""Annotators × traces × modes of ``ABSENT``, ``PRESENT``, ``UNSURE`` and ``MISSING``."""

CELL_OF: Final = {
    VerdictValue.ABSENT: ABSENT,
    VerdictValue.PRESENT: PRESENT,
    VerdictValue.UNSURE: UNSURE,
}
VALUE_OF: Final = {cell: value for value, cell in CELL_OF.items()}


@dataclass(frozen=True, slots=True, eq=False)
class VerdictTable(Mapping[tuple[str, str, str], VerdictValue]):
    """The verdicts by (annotator, trace id, slug), kept as ``said``: annotators × traces × modes.

    An open mode is not among the keys. Compares equal to any mapping with the same items.
    """

    annotators: tuple[str, ...]
    traces: tuple[str, ...]
    slugs: tuple[str, ...]
    said: Said

    def __getitem__(self, key: tuple[str, str, str]) -> VerdictValue:
        annotator, trace_id, slug = key
        try:
            place = (
                self.annotators.index(annotator),
                self.traces.index(trace_id),
                self.slugs.index(slug),
            )
            return VALUE_OF[int(self.said[place])]
        except ValueError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[tuple[str, str, str]]:
        for a, t, m in np.argwhere(self.said != MISSING).tolist():
            yield self.annotators[a], self.traces[t], self.slugs[m]

    def __len__(self) -> int:
        return int((self.said != MISSING).sum())


def verdict_table(
    annotators: Iterable[str],
    slugs: Iterable[str],
    finished: Mapping[str, frozenset[str]],
    verdicts: Mapping[tuple[str, str, str], VerdictValue],
) -> VerdictTable:
    """The table of these annotators and modes over the traces that somebody has finished.

    Verdicts of others, on other modes, or in traces that the annotator has not finished are left
    out. A table of just these annotators, modes and traces is given back as it is.
    """
    names, modes = tuple(annotators), tuple(slugs)
    done = {name: finished.get(name, frozenset()) for name in names}
    traces = tuple(sorted(frozenset().union(*done.values())))
    if (
        isinstance(verdicts, VerdictTable)
        and (verdicts.annotators, verdicts.traces, verdicts.slugs) == (names, traces, modes)
    ):  # fmt: skip
        return verdicts
    people = {name: i for i, name in enumerate(names)}
    columns = {slug: i for i, slug in enumerate(modes)}
    rows = {trace: i for i, trace in enumerate(traces)}
    said = np.full((len(names), len(traces), len(modes)), MISSING, dtype=np.int8)
    for (name, trace, slug), value in verdicts.items():
        if name in people and slug in columns and trace in done[name]:
            said[people[name], rows[trace], columns[slug]] = CELL_OF[value]
    return VerdictTable(names, traces, modes, said)


def numbered_rows(rows: NDArray[np.integer]) -> NDArray[np.int_]:
    """For each row of a matrix a number from 0 that equal rows share, and no others.

    Column by column, which is many times as fast as telling whole rows apart.
    """
    numbers = np.zeros(len(rows), dtype=np.int_)
    for column in rows.T:
        low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        joined = numbers * (high - low + 1) + (column.astype(np.int_) - low)
        numbers = np.unique(joined, return_inverse=True)[1].ravel()
    return numbers
