"""All coefficients of present and absent as functions of sums over traces, many at once.

A trace adds to a sum what it would count by itself, so the sums of a resample are the traces'
weights times their counts, and the figure of a resample is the same function as the figure
itself. ``Sums`` holds both: its first row is of the traces as they are, the others are what their
spread is told from: of the resamples, or if there are few traces with each left out in turn.
Values are arrays with one entry per row, NaN where a figure is undefined; the
definitions are in ``tests/figures/agreement/reference.py``, with which every one is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import ceil
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.coefficients import (
    Coefficient,
    Undefined,
    Withheld,
    mean_of_defined,
)
from mast_tui.figures.agreement.verdict_table import ABSENT, PRESENT, VerdictArray
from mast_tui.figures.bootstrap import interval, ratio, resamples
from mast_tui.figures.jackknife import (
    MANY,
    SEEN_TWICE,
    Scale,
    Support,
    jackknife_interval,
    least_over_chance,
    scale_of_mean,
    why_no_interval,
    why_no_mean_interval,
)
from mast_tui.figures.record import COEFFICIENTS, STATISTICS, Basis
from mast_tui.figures.two_by_two import cohen_kappa, least_kappa

Floats = NDArray[np.float64]
Values = Mapping[str, Floats]

_SHARED_ENOUGH: Final = 300
"""Traces of a pair from which on its κ is not pulled down, however many traces others share."""

_RARE_AMONG_MANY: Final = 0.1
"""The share of the rarer answer up to which agreement on it rests on few traces.

Three annotators or more then agree on it trace by trace, and the jackknife of the traces at hand
takes the figure to be steadier than it is.
"""

_EXACT_SINGLES: Final = 2**24
"""Up to here a sum of whole numbers is exact in single precision."""


@dataclass(frozen=True, slots=True)
class Sums:
    """The counts of each mode, summed over traces: a row for all traces, then further rows.

    The further rows are resamples or, if ``left_out``, all traces but one.

    ``pairs`` is rows × modes × pairs × (both present, first only, second only, both absent), over
    the traces that both rated, pairs in the order of ``combinations``. ``patterns`` is rows ×
    modes × ways, the number of units with n ratings of which k are present, for the (n, k) of
    ``ways(annotators)``. ``rated`` is annotators × modes: True if there is any rating. ``both`` is
    pairs × traces × modes: True if both of a pair rated it.
    """

    pairs: Floats
    patterns: Floats
    rated: NDArray[np.bool_]
    both: NDArray[np.bool_]
    left_out: bool
    copied: bool = False
    """Whether traces were copies of each other and count as one."""

    @property
    def annotators(self) -> int:
        """The number of annotators."""
        return len(self.rated)

    def of_modes(self, modes: Sequence[int]) -> TableSums:
        """Return the sums of some modes; each mode of a trace is a unit of its own."""
        chosen = list(modes)
        shared = self.both[:, :, chosen].any(axis=2)
        return TableSums(
            self.pairs[:, chosen].sum(axis=1),
            self.patterns[:, chosen].sum(axis=1),
            np.asarray(self.rated[:, chosen].any(axis=1)),
            int(shared.any(axis=0).sum()),
            tuple(shared.sum(axis=1).tolist()),
            self.left_out,
            int(self.both[:, :, chosen].any(axis=0).sum()),
            self.copied,
            self.both[:, :, chosen],
        )

    def everything(self) -> TableSums:
        """Return the sums of all modes together."""
        return self.of_modes(range(self.rated.shape[1]))


@dataclass(frozen=True, slots=True)
class TableSums:
    """The counts of one table of units: those of ``Sums`` without the modes.

    ``traces`` are those in which two annotators or more rated a unit, ``pair_traces`` those of
    each pair. ``both`` is pairs × traces × modes: whether both of a pair rated the unit.
    """

    pairs: Floats
    patterns: Floats
    rated: NDArray[np.bool_]
    traces: int
    pair_traces: tuple[int, ...]
    left_out: bool
    units: int
    """Those of ``n``, copies of one block counted once."""
    copied: bool = False
    both: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0, 0), dtype=bool))

    @property
    def complete_traces(self) -> int:
        """The traces in which everybody rated a unit, on which alone Fleiss' κ rests."""
        judged_by_all: NDArray[np.bool_] = np.asarray(self.both.all(axis=0))
        return int(judged_by_all.any(axis=1).sum()) if len(self.both) else 0

    @property
    def most_shared(self) -> int:
        """The traces of the pair that shares most, without two of which there is no Cohen's κ."""
        return max(self.pair_traces, default=0)

    @property
    def n(self) -> int:
        """The units with two ratings or more."""
        return int(self.patterns[0].sum())

    @property
    def complete(self) -> int:
        """The units that everybody rated, on which alone Fleiss' κ rests."""
        return int(self._judged_by_all.sum())

    @property
    def ratings(self) -> float:
        """The mean number of ratings of a unit."""
        return float(self.patterns[0] @ ways(len(self.rated))[:, 0]) / self.n if self.n else 0.0

    @property
    def present(self) -> float:
        """The mean number of presents that each annotator of a unit gave."""
        if not self.n:
            return 0.0
        return float(self.patterns[0] @ ways(len(self.rated))[:, 1]) / self.ratings

    def traces_with(self, ratings: NDArray[np.int_]) -> int:
        """Count the traces in which any rating is one of some.

        Args:
            ratings: How many of these ratings a unit has, for each of ``ways``.
        """
        # Without the sums of the single traces every unit is taken for a trace of its own.
        if not self.left_out:
            return int(self.patterns[0] @ (ratings > 0))
        return int(((self.patterns[0] - self.patterns[1:]) @ ratings > 0).sum())

    @property
    def rare_traces(self) -> int:
        """The number of traces in which the rarer answer occurs."""
        ratings, present = ways(len(self.rated)).T
        return min(self.traces_with(answer) for answer in (present, ratings - present))

    @property
    def support(self) -> Support:
        """The data that the figures rest on."""
        counted_once = self.units / self.n if self.n else 0.0
        return Support(
            self.traces,
            self.units,
            self.present * counted_once,
            (self.n - self.present) * counted_once,
            self.rare_traces,
            self.copied,
        )

    def scale(self, name: str) -> Scale:
        """Return the scale of a figure, by the figure's name."""
        lowest = self._least(name)
        several_units = self.units != self.traces or self.copied
        over_chance = STATISTICS[name].over_chance
        if several_units or (over_chance and not lowest < 0):
            return Scale(lowest)
        if STATISTICS[name].basis is Basis.ALL:
            return Scale(lowest, self.traces)
        capped = self.ratings > 2 and self._rarer(self.patterns[0]) < _RARE_AMONG_MANY
        return Scale(lowest, self._traces_of(name), of_answer=True, capped=capped)

    def _least(self, name: str) -> float:
        """Return what a figure is where no two agree: on anything, or on the rarer answer."""
        if not STATISTICS[name].over_chance:
            return STATISTICS[name].lowest
        if not self.n:
            return 0.0
        ratings, present = ways(len(self.rated)).T
        if name == "gwet_ac1":
            share = float(self.patterns[0] @ (present / ratings)) / self.n
            return least_over_chance(2 * share * (1 - share))
        if name == "cohen_kappa":
            return float(defined_mean(_pair_figures(self, least_kappa), len(self.pairs))[0][0])
        if name == "fleiss_kappa":
            return least_over_chance(self._rarer(self._judged_by_all))
        # Krippendorff's α compares each rating with all but itself.
        compared = float(self.patterns[0] @ ratings)
        return 1 - (1 - 1 / compared) / (1 - self._rarer(self.patterns[0]))

    def _traces_of(self, name: str) -> int:
        """Count the traces with the answer on which a figure rests."""
        ratings, present = ways(len(self.rated)).T
        answers = {
            "positive_agreement": [present],
            "negative_agreement": [ratings - present],
        }.get(name, [present, ratings - present])
        if name == "fleiss_kappa":
            everybody = ratings == len(self.rated)
            answers = [np.where(everybody, answer, 0) for answer in answers]
        return min(self.traces_with(answer) for answer in answers)

    @property
    def _judged_by_all(self) -> Floats:
        """The numbers of units of each of ``ways``, of those that everybody rated."""
        people = len(self.rated)
        return np.where(ways(people)[:, 0] == people, self.patterns[0], 0.0)

    def _rarer(self, units: Floats) -> float:
        """Return the share of the rarer answer among the ratings of some units."""
        ratings, present = ways(len(self.rated)).T
        every = float(units @ ratings)
        share = float(units @ present) / every if every else 0.0
        return min(share, 1 - share)

    @property
    def rotates(self) -> bool:
        """True if two of three annotators or more share few of the traces, as in rotating pairs.

        Their κ is pulled down (by 0.06 at 13 traces), and so is the mean over the pairs, which
        therefore has no interval that holds.
        """
        fewest = min((n for n in self.pair_traces if n), default=0)
        return len(self.rated) > 2 and fewest < min(_SHARED_ENOUGH, self.traces / 2)

    def pair(self, number: int) -> TableSums:
        """Return the table of one pair of annotators, by its number among the combinations."""
        cells = self.pairs[:, number]
        both, first, second, neither = np.moveaxis(cells, -1, 0)
        names = list(combinations(range(len(self.rated)), 2))[number]
        patterns = np.stack((neither, first + second, both), axis=-1)
        traces = self.pair_traces[number]
        return TableSums(
            cells[:, None],
            patterns,
            self.rated[list(names)],
            traces,
            (traces,),
            self.left_out,
            int(cells[0].sum()),
            self.copied,
            self.both[[number]],
        )

    def rests_on(self, name: str) -> int:
        """Return the number of units on which a figure rests, by the figure's name."""
        if name == "fleiss_kappa":
            return self.complete
        if name == "cohen_kappa":
            values = [kappas[0] for kappas in _pair_figures(self, cohen_kappa)]
            defined = [pair for pair, value in enumerate(values) if not np.isnan(value)]
            if 0 < len(defined) < len(values):
                return int(self.both[defined].any(axis=0).sum())
        return self.n


def ways(annotators: int) -> NDArray[np.int_]:
    """Return the possible (n ratings, k of them present) of a shared unit, as rows."""
    pairs = [(n, k) for n in range(2, annotators + 1) for k in range(n + 1)]
    return np.array(pairs, dtype=np.int_).reshape(-1, 2)


def sums_of(
    verdicts: VerdictArray,
    shared: Sequence[int],
    rounds: int,
    seed: int,
    *,
    blocks: NDArray[np.int_] | None = None,
    many: int = MANY,
) -> Sums:
    """Sum the counts over the shared traces, and over resamples of them.

    Args:
        verdicts: Annotators × traces × modes; unsure and open count as missing. Verdicts on other
            traces only serve to explain an undefined figure.
        shared: The indices of the traces that count.
        rounds: The number of resamples; with 0 there is only the sum over the traces themselves.
        seed: The seed of the resamples.
        blocks: A number for each trace; traces with the same number are copies of one block and
            are left out or drawn together. None if there are no copies.
        many: With fewer traces than this, each is left out in turn instead of resampling.
    """
    rated = np.asarray((verdicts >= 0).any(axis=1))
    verdicts = verdicts[:, list(shared)]
    people, traces, modes = verdicts.shape
    counts: list[NDArray[np.integer[Any]]] = [
        _counts_of_mode(verdicts[:, :, mode]) for mode in range(modes)
    ]
    both = [(verdicts[a] >= 0) & (verdicts[b] >= 0) for a, b in combinations(range(people), 2)]
    shared_by = np.array(both, dtype=np.bool_).reshape(_pairs(people), traces, modes)
    units = traces
    if blocks is not None:
        names, block = np.unique(blocks[list(shared)], return_inverse=True)
        units = len(names)
        if units < traces:
            counts = [_by_block(count, block, units) for count in counts]
            merged = np.zeros((_pairs(people), units, modes), dtype=np.bool_)
            for trace, block_number in enumerate(block.tolist()):
                merged[:, block_number] |= shared_by[:, trace]
            shared_by = merged
    columns = 4 * _pairs(people) + len(ways(people))
    left_out = rounds > 0 and units < many
    rows = 1 + (units if left_out else rounds)
    summed = np.empty((rows, modes, columns))
    summed[0] = [count.sum(axis=0, dtype=np.float64) for count in counts] or 0
    summed[1:] = 0
    if left_out:
        for mode, count in enumerate(counts):
            summed[1:, mode] = summed[0, mode] - count
    else:
        row = 1
        # Sums of counts are whole and at most the traces.
        exact = np.float32 if traces < _EXACT_SINGLES else np.float64
        for weights in resamples(units, rounds, seed):
            whole = weights.astype(exact, copy=False)
            for mode, count in enumerate(counts):
                summed[row : row + len(weights), mode] = whole @ count.astype(exact)
            row += len(weights)
    split = 4 * _pairs(people)
    pairs = summed[:, :, :split].reshape(rows, modes, _pairs(people), 4)
    return Sums(pairs, summed[:, :, split:], rated, shared_by, left_out, units < traces)


def _by_block(
    counts: NDArray[np.integer[Any]], block: NDArray[np.int_], blocks: int
) -> NDArray[np.int64]:
    """Return blocks × columns: the counts of the traces of each block together."""
    summed = np.zeros((blocks, counts.shape[1]), dtype=np.int64)
    np.add.at(summed, block, counts)
    return summed


def _pairs(people: int) -> int:
    return people * (people - 1) // 2


def _counts_of_mode(verdicts: VerdictArray) -> NDArray[np.uint8]:
    """Return the part of each trace in each sum (traces × columns), from annotators × traces."""
    present = verdicts == PRESENT
    absent = verdicts == ABSENT
    columns: list[NDArray[np.bool_]] = []
    for a, b in combinations(range(len(verdicts)), 2):
        columns += [present[a] & present[b], present[a] & absent[b]]
        columns += [absent[a] & present[b], absent[a] & absent[b]]
    chosen = present.sum(axis=0)
    ratings = chosen + absent.sum(axis=0)
    columns += [(ratings == n) & (chosen == k) for n, k in ways(len(verdicts)).tolist()]
    if not columns:
        return np.zeros((verdicts.shape[1], 0), dtype=np.uint8)
    return np.stack(columns, axis=1).astype(np.uint8)


def table_values(table: TableSums) -> dict[str, Floats]:
    """Return every figure of a table, one value per row, NaN where it is undefined."""
    values = _shared_values(table.patterns, len(table.rated))
    if table.complete_traces == 1:
        values["fleiss_kappa"][:] = np.nan
    if table.traces == 1:
        for name, of_rows in values.items():
            if STATISTICS[name].over_chance:
                of_rows[:] = np.nan
    kappas = _pair_figures(table, cohen_kappa)
    values["cohen_kappa"] = defined_mean(kappas, len(table.pairs))[0]
    if table.most_shared == 1:  # one trace tells nothing of chance
        values["cohen_kappa"][:] = np.nan
    return values


def _pair_figures(table: TableSums, figure: Callable[[Floats], Floats]) -> list[Floats]:
    """Return a figure of each pair, one value per row, NaN where it is undefined."""
    return [figure(table.pairs[:, pair]) for pair in range(table.pairs.shape[1])]


def defined_mean(values: Sequence[Floats], rows: int) -> tuple[Floats, Floats]:
    """Return the mean of the defined values in each row, and their number.

    Args:
        values: The values of several statistics.
        rows: The number of rows.
    """
    stacked = np.array(values).reshape(len(values), rows)
    defined = ~np.isnan(stacked)
    count = defined.sum(axis=0).astype(np.float64)
    return ratio(np.where(defined, stacked, 0).sum(axis=0), count), count


def _shared_values(patterns: Floats, people: int) -> dict[str, Floats]:
    """Return all figures but Cohen's κ, from rows × patterns of units with two ratings or more."""
    pattern = ways(people)
    ratings, present = pattern.astype(float).T
    absent = ratings - present
    units = patterns.sum(axis=-1)
    alike = present * (present - 1) + absent * (absent - 1)
    raw = ratio(patterns @ (alike / (ratings * (ratings - 1))), units)
    presents = patterns @ present
    absents = patterns @ absent
    varied = (presents > 0) & (absents > 0)
    share = ratio(patterns @ (present / ratings), units)
    return {
        "raw_agreement": raw,
        "positive_agreement": _specific(patterns, present, ratings),
        "negative_agreement": _specific(patterns, absent, ratings),
        "fleiss_kappa": _fleiss(patterns[..., ratings == people], people),
        "krippendorff_alpha": _alpha(presents, absents, patterns @ (alike / (ratings - 1)), varied),
        "gwet_ac1": _over_chance(raw, 2 * share * (1 - share), varied),
        "pabak": 2 * raw - 1,
    }


def _specific(patterns: Floats, chosen: Floats, ratings: Floats) -> Floats:
    """Return the agreement on the answer that ``chosen`` counts in each pattern."""
    return ratio(patterns @ (chosen * (chosen - 1)), patterns @ (chosen * (ratings - 1)))


def _fleiss(complete: Floats, people: int) -> Floats:
    """Return Fleiss' κ; ``complete`` is rows × the units with 0, 1, … ``people`` times present."""
    present = np.arange(complete.shape[-1], dtype=np.float64)
    absent = people - present
    units = complete.sum(axis=-1)
    alike = present * (present - 1) + absent * (absent - 1)
    observed = ratio(complete @ alike, units * people * (people - 1))
    share = ratio(complete @ present, units * people)
    varied = (complete @ present > 0) & (complete @ absent > 0)
    return _over_chance(observed, 1 - 2 * share * (1 - share), varied)


def _alpha(present: Floats, absent: Floats, matching: Floats, varied: NDArray[np.bool_]) -> Floats:
    """Return Krippendorff's α from the numbers of both answers and of matching answers."""
    n = present + absent
    expected = ratio(2 * present * absent, n - 1)
    return np.where(varied, 1 - ratio(n - matching, expected), np.nan)


def _over_chance(observed: Floats, by_chance: Floats, varied: NDArray[np.bool_]) -> Floats:
    return np.where(varied, ratio(observed - by_chance, 1 - by_chance), np.nan)


def table_coefficients(table: TableSums) -> dict[str, Coefficient]:
    """Return the figures of a table with their intervals, or the reasons why there are none."""
    values = table_values(table)
    support = table.support
    coefficients = {
        name: with_interval(
            values[name],
            _reason(name, table),
            left_out=table.left_out,
            scale=table.scale(name) if table.left_out else None,
            withheld=_or_rotating(name, why_no_interval(name, support), table),
        )
        for name in COEFFICIENTS
    }
    return {
        name: replace(coefficient, n=table.rests_on(name))
        for name, coefficient in coefficients.items()
    }


def with_interval(
    values: Floats,
    reason: Undefined,
    scale: Scale | None,
    *,
    left_out: bool = False,
    withheld: tuple[Withheld, int] | None = None,
) -> Coefficient:
    """Return a figure with its interval, or with the reason why it has none.

    Args:
        values: The figure, NaN if it is undefined, then its values in the resamples or without
            each trace in turn; without such values it gets no interval.
        reason: The reason if the figure is undefined.
        scale: The possible values of the figure; only the jackknife needs them.
        left_out: Whether the further values are those without each trace in turn.
        withheld: The reason why an interval would not hold, with the number that is needed.

    Raises:
        ValueError: ``left_out`` is set without a scale.
    """
    estimate = float(values[0])
    if np.isnan(estimate):
        return Coefficient(undefined=reason)
    if len(values) == 1:
        return Coefficient(estimate)
    if withheld is not None:
        return Coefficient(estimate, withheld=withheld)
    if left_out and np.isnan(values).any():
        return Coefficient(estimate, withheld=("single_trace", SEEN_TWICE))
    if left_out:
        if scale is None:
            raise ValueError("the jackknife needs the scale of the figure")
        return Coefficient(estimate, ci=jackknife_interval(estimate, values[1:], scale))
    return Coefficient(estimate, ci=interval(estimate, values[1:]))


def _or_rotating(
    name: str, why: tuple[Withheld, int] | None, table: TableSums
) -> tuple[Withheld, int] | None:
    """Return the reason for no interval, also for κ if its pairs share too few traces."""
    rotates = name == "cohen_kappa" and table.rotates
    if rotates and (why is None or why[0] not in ("few_traces", "copied_blocks")):
        return "few_shared_traces", min(_SHARED_ENOUGH, ceil(table.traces / 2))
    return why


def _reason(name: str, table: TableSums) -> Undefined:
    """Return why this figure of the table is undefined, where it is."""
    people = len(table.rated)
    if people < 2:
        return "single_rater"
    if name == "fleiss_kappa":
        if table.complete_traces == 1:
            return "single_trace"
        return "no_variance" if table.complete else "no_overlap"
    if table.n:
        most = table.most_shared if name == "cohen_kappa" else table.traces
        return "single_trace" if STATISTICS[name].over_chance and most == 1 else "no_variance"
    # The mean over pairs takes the reason of the pair that is nearest to a figure, and of three
    # annotators with a single one who rated there is a pair without anybody.
    alone = int(table.rated.sum()) == 1 and (name != "cohen_kappa" or people == 2)
    return "single_rater" if alone else "no_overlap"


def macro_coefficients(
    sums: Sums, per_mode: Sequence[Mapping[str, Coefficient]]
) -> tuple[dict[str, Coefficient], dict[str, int]]:
    """Return the mean of each figure over the modes, and the number of modes that have it.

    In each resample the mean is over the modes with a defined figure in that resample.

    Args:
        sums: The sums of all modes.
        per_mode: The figures of each mode.
    """
    rows = len(sums.pairs)
    every = sums.everything()
    values = [table_values(sums.of_modes([mode])) for mode in range(len(per_mode))]
    means: dict[str, Coefficient] = {}
    defined: dict[str, int] = {}
    for name in COEFFICIENTS:
        mean, defined[name] = mean_of_defined([mode[name] for mode in per_mode])
        reason: Undefined = mean.undefined or "no_variance"
        means[name] = with_interval(
            defined_mean([v[name] for v in values], rows)[0],
            reason,
            left_out=sums.left_out,
            scale=scale_of_mean(name),
            withheld=_or_rotating(
                name, why_no_mean_interval(name, every.traces, every.ratings), every
            ),
        )
    return means, defined
