"""The tables of the agreement report, as ``agree --json`` prints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NotRequired, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.coefficients import Coefficient, CoefficientJson, Undefined
from mast_tui.figures.agreement.counting import (
    Sums,
    TableSums,
    macro_coefficients,
    sums_of,
    table_coefficients,
)
from mast_tui.figures.agreement.sets import SetAgreement
from mast_tui.figures.agreement.verdict_table import PRESENT, UNSURE, Said
from mast_tui.figures.jackknife import MANY

NoPlan = Undefined | Literal["no_interval"]


@dataclass(frozen=True, slots=True)
class Halving:
    """About how many more traces, labelled twice, would halve an interval, or why none is told.

    ``width`` is that of the interval as it is.
    """

    more_traces: int | None = None
    width: float | None = None
    undefined: NoPlan | None = None


def halving(kappa: Coefficient, n: int) -> Halving:
    """What would halve the interval of a figure that rests on ``n`` traces labelled twice.

    An interval shrinks with one over the square root of the traces, so half of it takes four
    times as many: three times as many more. That holds where the new traces are like the ones
    there are; it is a rule of thumb for planning, not a promise. Undefined for the figure's own
    reason, or with ``no_interval`` where the interval is missing or has no width to halve.
    """
    if kappa.undefined is not None:
        return Halving(undefined=kappa.undefined)
    if kappa.ci is None or kappa.ci[1] <= kappa.ci[0]:
        return Halving(undefined="no_interval")
    return Halving(3 * n, kappa.ci[1] - kappa.ci[0])


class CoefficientsJson(TypedDict):
    """Every coefficient of one table of verdicts."""

    raw_agreement: CoefficientJson
    positive_agreement: CoefficientJson
    negative_agreement: CoefficientJson
    cohen_kappa: CoefficientJson
    fleiss_kappa: CoefficientJson
    krippendorff_alpha: CoefficientJson
    gwet_ac1: CoefficientJson


class PairJson(CoefficientsJson):
    """Two annotators compared; ``prevalence`` is None for one without a verdict among the n."""

    n: int
    prevalence: dict[str, float | None]


class TableJson(PairJson):
    """One mode, or several pooled; ``unsure`` counts that verdict in finished traces.

    ``prevalence_n`` says of how many units each annotator's ``prevalence`` is the share.
    ``n_complete`` are the units that everybody rated, on which alone Fleiss' κ rests.
    ``few_shared_by_pair`` counts the traces in which both of a pair rated a unit; it is None but
    where some two of three or more share few of the traces, so that κ of pairs is pulled down and
    Krippendorff's α is the figure to lead with.
    """

    n_complete: int
    few_shared_by_pair: dict[str, int] | None
    prevalence_n: dict[str, int]
    unsure: dict[str, int]
    pairs: dict[str, PairJson]


class ModeJson(TableJson):
    """One mode, with what it is called."""

    slug: str
    name: str


class CategoryJson(TableJson):
    """The modes of one category pooled: its name, and the codes of its modes."""

    name: str
    modes: list[str]


class MacroJson(CoefficientsJson):
    """Means over the modes where a coefficient is defined, and how many modes those are."""

    modes_defined: dict[str, int]


class FinishedJson(TypedDict):
    """How many traces every annotator has finished, and how many two or more have.

    ``only_seen_by`` is there where only the traces count that this person may see.
    ``examples_left_out`` counts, by judge, those that stood in its prompt; it is there where some
    did.
    """

    finished_by_all: int
    finished_by_two: int
    only_seen_by: NotRequired[str]
    examples_left_out: NotRequired[dict[str, int]]


class BootstrapJson(TypedDict):
    """What the intervals rest on; with no ``rounds`` there are none."""

    rounds: int
    seed: int
    level: float
    unit: str


class SetsJson(TypedDict):
    """Agreement on the set of modes in a trace, over ``n`` traces."""

    krippendorff_alpha_jaccard: CoefficientJson
    krippendorff_alpha_masi: CoefficientJson
    n: int


class BlockJson(TypedDict):
    """Traces that share one block of verdicts of these annotators."""

    traces: list[str]
    annotators: list[str]


class BlocksJson(TypedDict):
    """How many different blocks of verdicts stand on how many traces that two have finished."""

    traces: int
    distinct: int


class RoundJson(TypedDict):
    """The figures of one round; ``traces`` are those of it that two or more have finished."""

    traces: int
    macro: MacroJson
    pooled: TableJson


class RetestJson(PairJson):
    """An annotator's first pass against their retests, all modes pooled."""

    n_traces: int


class HalvingJson(TypedDict):
    """About how many more traces, labelled twice, would halve the interval of κ."""

    more_traces: int | None
    width: NotRequired[float]
    undefined: NotRequired[NoPlan]


class LeftOutJson(TypedDict):
    """What no figure rests on, by annotator.

    ``unfinished`` are traces that were begun and have no finished pass of the counted kind,
    ``examples`` those that stood in a judge's prompt, ``alone`` finished ones that no other of the
    annotators has finished. ``unsure`` and ``open`` are verdicts on modes in finished traces.
    ``not_in_study`` are the finished traces of people who have no part in the study.
    """

    unfinished: dict[str, int]
    examples: dict[str, int]
    alone: dict[str, int]
    unsure: dict[str, int]
    open: dict[str, int]
    not_in_study: dict[str, int]


def coefficients_json(coefficients: Mapping[str, Coefficient]) -> CoefficientsJson:
    """The coefficients of a table as JSON objects."""
    return cast("CoefficientsJson", {name: c.to_json() for name, c in coefficients.items()})


def sets_json(found: SetAgreement) -> SetsJson:
    """Set agreement as a JSON object."""
    return {
        "krippendorff_alpha_jaccard": found.jaccard.to_json(),
        "krippendorff_alpha_masi": found.masi.to_json(),
        "n": found.n,
    }


def halving_json(found: Halving) -> HalvingJson:
    """A plan as a JSON object."""
    if found.undefined is not None or found.width is None:
        return {"more_traces": None, "undefined": found.undefined or "no_interval"}
    return {"more_traces": found.more_traces, "width": found.width}


class Tables:
    """All tables of what some annotators said, from one counting and the same resamples.

    ``said`` is annotators × traces × modes and ``shared`` says which of the traces two or more
    have finished: these are resampled, ``rounds`` times with ``seed``.
    """

    def __init__(
        self, names: Sequence[str], said: Said, shared: Sequence[int], rounds: int, seed: int
    ) -> None:
        self._names = tuple(names)
        self._pair_names = tuple(map("|".join, combinations(self._names, 2)))
        self._said = said
        self._sums: Sums = sums_of(said, shared, rounds, seed)
        self._alone = self._pairs_alone(shared, rounds, seed)
        self._modes = said.shape[2]
        self._of_mode = [table_coefficients(self._sums.of([m])) for m in range(self._modes)]

    def _pairs_alone(self, shared: Sequence[int], rounds: int, seed: int) -> dict[int, Sums]:
        """The sums over their own traces, of pairs that share fewer than there are.

        Resamples of all the traces, or one of them left out, tell too little of these.
        """
        traces = np.asarray(shared, dtype=np.intp)
        together: NDArray[np.bool_] = np.asarray(self._sums.both.any(axis=2))
        if len(together) < 2 or not rounds:
            return {}
        return {
            place: sums_of(self._said[list(pair)], traces[own].tolist(), rounds, seed)
            for place, (pair, own) in enumerate(
                zip(combinations(range(len(self._names)), 2), together, strict=True)
            )
            if own.sum() < min(MANY, len(traces))
        }

    def coefficients(self, mode: int) -> dict[str, Coefficient]:
        """The figures of one mode."""
        return self._of_mode[mode]

    def n(self, mode: int) -> int:
        """How many traces have two ratings or more of the mode."""
        return self._sums.of([mode]).n

    def mode(self, mode: int) -> TableJson:
        """The table of one mode."""
        return self._table([mode], self._of_mode[mode])

    def pooled(self, modes: Sequence[int] | None = None) -> TableJson:
        """Some modes, or all, in one table."""
        chosen = list(range(self._modes)) if modes is None else list(modes)
        return self._table(chosen, table_coefficients(self._sums.of(chosen)))

    def _table(self, chosen: list[int], figures: Mapping[str, Coefficient]) -> TableJson:
        said, table = self._said[:, :, chosen], self._sums.of(chosen)
        pairs = enumerate(combinations(range(len(self._names)), 2))
        shared = zip(self._pair_names, table.pair_traces, strict=True)
        prevalence, prevalence_n = _prevalence(self._names, said)
        return {
            "n": table.n,
            "n_complete": table.complete,
            "prevalence": prevalence,
            "prevalence_n": prevalence_n,
            **coefficients_json(figures),
            "unsure": counts_of(self._names, said, UNSURE),
            "pairs": {
                f"{self._names[a]}|{self._names[b]}": self._pair(
                    self._alone[place].of(chosen) if place in self._alone else table.pair(place),
                    a,
                    b,
                )
                for place, (a, b) in pairs
            },
            "few_shared_by_pair": dict(shared) if table.rotates else None,
        }

    def macro(self) -> MacroJson:
        """The means over the modes."""
        means, defined = macro_coefficients(self._sums, self._of_mode)
        return {**coefficients_json(means), "modes_defined": defined}

    def _pair(self, pair: TableSums, a: int, b: int) -> PairJson:
        both, first, second, _ = pair.pairs[0, 0].tolist()
        n = pair.n
        return {
            "n": n,
            "prevalence": {
                self._names[a]: (both + first) / n if n else None,
                self._names[b]: (both + second) / n if n else None,
            },
            **coefficients_json(table_coefficients(pair)),
        }


def counts_of(names: Sequence[str], said: Said, cell: int) -> dict[str, int]:
    """How often each annotator said one thing."""
    return {name: int((rows == cell).sum()) for name, rows in zip(names, said, strict=True)}


def _prevalence(names: Sequence[str], said: Said) -> tuple[dict[str, float | None], dict[str, int]]:
    """Each annotator's share of 'present' in the units that two or more have rated, and of how
    many of these."""
    rated = said >= 0
    shared = rated.sum(axis=0) > 1
    prevalence: dict[str, float | None] = {}
    units: dict[str, int] = {}
    for name, given, rows in zip(names, rated & shared, said, strict=True):
        n = units[name] = int(given.sum())
        prevalence[name] = int(((rows == PRESENT) & given).sum()) / n if n else None
    return prevalence, units
