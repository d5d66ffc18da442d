"""Which words of a judge and its reference can be compared, and what had to be left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import resampled_sums
from mast_tui.figures.judge.input import JudgeInput, Unit
from mast_tui.labels import VerdictValue

_DEFINITE: Final = (VerdictValue.PRESENT, VerdictValue.ABSENT)


@dataclass(frozen=True, slots=True)
class Compared:
    """The units (trace × mode) on which judge and reference have said present or absent.

    Values say present. ``left_out`` counts by mode, under the reason: ``judge_seen`` verdicts of
    the reference came about with a judge on screen, ``unsure_judge`` and ``unsure_reference`` are
    no verdicts, ``unresolved`` nobody has settled yet. ``examples`` counts traces that stood in
    the judge's prompt.
    """

    judge: Mapping[Unit, bool]
    reference: Mapping[Unit, bool]
    left_out: Mapping[str, Counter[str]] = field(default_factory=dict)
    examples: int = 0

    @property
    def traces(self) -> list[str]:
        """The traces with any such unit, sorted."""
        return sorted({trace for trace, _ in self.judge})


REASONS: Final = ("judge_seen", "unsure_judge", "unsure_reference", "unresolved")


def compared(given: JudgeInput, *, with_seen: bool = False) -> Compared:
    """Tell what can be compared.

    Args:
        given: What the judge said, and what it is measured by.
        with_seen: Whether verdicts of the reference count that came about with a judge on screen.
    """
    left_out: dict[str, Counter[str]] = {reason: Counter() for reason in REASONS}
    unresolved = given.reference.unresolved & given.verdicts.keys()
    left_out["unresolved"].update(
        mode for trace_id, mode in unresolved if trace_id not in given.examples
    )
    judge: dict[Unit, bool] = {}
    reference: dict[Unit, bool] = {}
    examples: set[str] = set()
    for unit, true in given.reference.verdicts.items():
        trace_id, mode = unit
        said = given.verdicts.get(unit)
        if said is None:
            continue
        if trace_id in given.examples:
            examples.add(trace_id)
        elif unit in given.reference.seen and not with_seen:
            left_out["judge_seen"][mode] += 1
        elif true not in _DEFINITE:
            left_out["unsure_reference"][mode] += 1
        elif said not in _DEFINITE:
            left_out["unsure_judge"][mode] += 1
        else:
            judge[unit] = said is VerdictValue.PRESENT
            reference[unit] = true is VerdictValue.PRESENT
    return Compared(judge, reference, left_out, len(examples))


def features(found: Compared, modes: Sequence[str]) -> NDArray[np.float64]:
    """Give for each unit the one table that it adds to.

    Args:
        found: What was compared.
        modes: Slugs, in the order of the columns.

    Returns:
        Zeros and ones, traces × modes × (TP, FP, FN, TN), the traces as ``found.traces``.
    """
    rows = {trace: i for i, trace in enumerate(found.traces)}
    columns = {mode: i for i, mode in enumerate(modes)}
    cells = np.zeros((len(rows), len(columns), 4))
    for (trace, mode), said in found.judge.items():
        if mode in columns:
            cells[rows[trace], columns[mode], _cell(said, found.reference[trace, mode])] = 1
    return cells


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """One trace behind a mode's figures: whether the judge, and the reference, call it present."""

    trace_id: str
    judge: bool
    reference: bool

    @property
    def differs(self) -> bool:
        """Whether the judge is wrong here."""
        return self.judge is not self.reference


def cases_behind(found: Compared, mode: str) -> tuple[JudgedCase, ...]:
    """The traces behind the figures of a mode (slug): errors first, what both call absent last."""
    cases = [
        JudgedCase(trace, said, found.reference[trace, slug])
        for (trace, slug), said in found.judge.items()
        if slug == mode
    ]
    return tuple(sorted(cases, key=lambda c: (not c.differs, not c.reference, c.trace_id)))


@dataclass(frozen=True, slots=True)
class TraceSums:
    """The tables of all modes, in their order, summed over traces; the last axis is a table.

    ``total`` is modes × 4; ``resampled`` rounds × modes × 4, the sums in each resample, none
    without rounds; ``without`` traces × modes × 4, the sums with each trace left out in turn, None
    without rounds.
    """

    total: NDArray[np.float64]
    resampled: NDArray[np.float64]
    without: NDArray[np.float64] | None

    def mode(self, place: int) -> TraceSums:
        """The one table of a mode."""
        without = None if self.without is None else self.without[:, place]
        return TraceSums(self.total[place], self.resampled[:, place], without)

    def pooled(self) -> TraceSums:
        """One table of all modes together."""
        without = None if self.without is None else self.without.sum(axis=1)
        return TraceSums(self.total.sum(axis=0), self.resampled.sum(axis=1), without)


def trace_sums(found: Compared, modes: Sequence[str], *, rounds: int, seed: int) -> TraceSums:
    """Sum the tables of what was compared over traces.

    Args:
        found: What was compared.
        modes: Slugs, in the order of the tables.
        rounds: How many resamples of the traces; none gives no sums without each trace either.
        seed: What they are drawn from.
    """
    cells = features(found, modes)
    total = cells.sum(axis=0)
    flat = resampled_sums(cells.reshape(len(cells), total.size), rounds, seed)
    resampled = flat.reshape(-1, *total.shape)
    return TraceSums(total, resampled, total - cells if len(resampled) else None)


def _cell(said: bool, true: bool) -> int:
    if true:
        return 0 if said else 2
    return 1 if said else 3
