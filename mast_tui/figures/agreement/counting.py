"""Coefficients of present and absent, computed from sums over traces.

A resample weights the counts of each trace. So a coefficient of a resample is the same function of
sums as the coefficient of all traces. The first row of ``Sums`` has the sums over all traces. Its
other rows have the sums of resamples or, with few traces, without each trace in turn.

Values are arrays with one entry per row, NaN if the coefficient is undefined. The definitions are
in ``tests/figures/agreement/reference.py``, which tests compare with every coefficient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import ceil
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import (
    Floats,
    Resampling,
    interval,
    mean_of_defined_values,
    ratio,
    resamples,
)
from mast_tui.figures.jackknife import (
    MANY,
    Scale,
    Support,
    jackknifed_coefficient,
    least_over_chance,
    scale_of_mean,
    why_no_interval,
    why_no_mean_interval,
)
from mast_tui.figures.record import (
    COEFFICIENTS,
    STATISTICS,
    Basis,
    Figure,
    NoInterval,
    Undefined,
    mean_of_defined,
)
from mast_tui.figures.two_by_two import cohen_kappa, least_kappa
from mast_tui.labels import VerdictValue

ABSENT: Final = 0
PRESENT: Final = 1
MISSING: Final = -1
"""No rating."""

UNSURE: Final = -2

Ratings = NDArray[np.int_]
"""Raters × units: any number from 0 is a category."""

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
    """Return a number from 0 for each row of a matrix; equal rows have the same number."""
    # Refining numbers column by column is much faster than comparing whole rows.
    numbers = np.zeros(len(rows), dtype=np.int_)
    if not len(rows):
        return numbers
    for column in rows.T:
        low = int(column.min())
        value_count = int(column.max()) - low + 1
        refined = numbers * value_count + (column.astype(np.int_) - low)
        numbers = np.unique(refined, return_inverse=True)[1].ravel()
    return numbers


_SHARED_ENOUGH: Final = 300
"""The number of shared traces from which the κ of a pair is never too low."""

_RARE_AMONG_MANY: Final = 0.1
"""The share of the rarer answer below which agreement on it rests on few traces.

With three annotators or more, the jackknife then underestimates the spread.
"""

_EXACT_SINGLES: Final = 2**24
"""The limit up to which single precision holds sums of whole numbers exactly."""


@dataclass(frozen=True, slots=True)
class Sums:
    """The counts of each mode, summed over traces: a row for all traces, then further rows.

    The further rows are resamples or, if ``by_jackknife``, all traces but one.

    Attributes:
        pairs: Rows × modes × pairs × (both present, first only, second only, both absent), over the
            traces that both rated. Pairs are in the order of ``combinations``.
        units_by_pattern: Rows × modes × patterns: the number of units with n ratings of which k are
            present, for the (n, k) of ``rating_patterns(annotators)``.
        rated: Annotators × modes: True if there is any rating.
        rated_by_both: Pairs × traces × modes: True if both of the pair rated the mode in the trace.
        by_jackknife: Whether each further row leaves out one trace.
        has_copies: Whether some traces are copies of each other, which count as one.
    """

    pairs: Floats
    units_by_pattern: Floats
    rated: NDArray[np.bool_]
    rated_by_both: NDArray[np.bool_]
    by_jackknife: bool
    has_copies: bool = False

    def of_modes(self, modes: Sequence[int]) -> TableSums:
        """Add up the sums of the modes with these indices; each mode of a trace is a unit."""
        mode_indices = list(modes)
        # Pairs × traces × modes, then pairs × traces.
        rated_by_both = self.rated_by_both[:, :, mode_indices]
        shared_traces = rated_by_both.any(axis=2)
        return TableSums(
            pairs=self.pairs[:, mode_indices].sum(axis=1),
            units_by_pattern=self.units_by_pattern[:, mode_indices].sum(axis=1),
            rated=np.asarray(self.rated[:, mode_indices].any(axis=1)),
            traces=int(shared_traces.any(axis=0).sum()),
            pair_trace_counts=tuple(shared_traces.sum(axis=1).tolist()),
            by_jackknife=self.by_jackknife,
            units=int(rated_by_both.any(axis=0).sum()),
            has_copies=self.has_copies,
            rated_by_both=rated_by_both,
        )

    def everything(self) -> TableSums:
        """Return the sums of all modes together."""
        return self.of_modes(range(self.rated.shape[1]))


@dataclass(frozen=True, slots=True)
class TableSums:
    """The counts of one table of units: those of ``Sums``, added up over modes.

    ``traces`` counts the traces in which two annotators or more rated a unit, ``pair_trace_counts``
    the traces that each pair shares. ``units`` counts the units with two ratings or more; copies of
    a block count once.
    """

    pairs: Floats
    units_by_pattern: Floats
    rated: NDArray[np.bool_]
    traces: int
    pair_trace_counts: tuple[int, ...]
    by_jackknife: bool
    units: int
    has_copies: bool = False
    rated_by_both: NDArray[np.bool_] = field(
        default_factory=lambda: np.zeros((0, 0, 0), dtype=bool)
    )

    @property
    def complete_traces(self) -> int:
        """The number of traces in which all annotators rated a unit."""
        rated_by_all = np.asarray(self.rated_by_both.all(axis=0))
        return int(rated_by_all.any(axis=1).sum()) if len(self.rated_by_both) else 0

    @property
    def most_shared(self) -> int:
        """The largest number of traces that a pair shares."""
        return max(self.pair_trace_counts, default=0)

    @property
    def n(self) -> int:
        """The number of units with two ratings or more."""
        return int(self.units_by_pattern[0].sum())

    @property
    def complete_units(self) -> int:
        """The number of units that all annotators rated."""
        return int(self._units_judged_by_all.sum())

    @property
    def mean_ratings(self) -> float:
        """The mean number of ratings of a unit."""
        rating_counts, _ = rating_patterns(len(self.rated)).T
        return float(self.units_by_pattern[0] @ rating_counts) / self.n if self.n else 0.0

    @property
    def present(self) -> float:
        """The number of units that an average annotator who rates all units calls present."""
        if not self.n:
            return 0.0
        _, present_counts = rating_patterns(len(self.rated)).T
        return float(self.units_by_pattern[0] @ present_counts) / self.mean_ratings

    def traces_with(self, ratings: NDArray[np.int_]) -> int:
        """Count the traces that have at least one rating of a kind, such as present.

        Args:
            ratings: The number of ratings of this kind in each of ``rating_patterns``.
        """
        # Resamples hide single traces, so every unit counts as a trace.
        if not self.by_jackknife:
            return int(self.units_by_pattern[0] @ (ratings > 0))
        # Row 0 sums all traces, each later row all but one. The difference is that one trace.
        units_by_trace = self.units_by_pattern[0] - self.units_by_pattern[1:]
        return int((units_by_trace @ ratings > 0).sum())

    @property
    def rare_traces(self) -> int:
        """The number of traces in which the rarer answer occurs."""
        ratings, present = rating_patterns(len(self.rated)).T
        return min(self.traces_with(answer) for answer in (present, ratings - present))

    @property
    def support(self) -> Support:
        """The numbers of traces, units and answers on which the figures rest."""
        # ``n`` counts every copy of a trace, ``units`` counts them once.
        share_without_copies = self.units / self.n if self.n else 0.0
        return Support(
            traces=self.traces,
            units=self.units,
            present=self.present * share_without_copies,
            absent=(self.n - self.present) * share_without_copies,
            rare_traces=self.rare_traces,
            has_copies=self.has_copies,
        )

    def scale(self, name: str) -> Scale:
        """Return the range of possible values of a figure, with its number of independent cases."""
        lowest = self._least_value(name)
        # The number of cases is unknown if traces have several units, and for a figure over chance
        # with a least value of 0 or NaN.
        several_units = self.units != self.traces or self.has_copies
        over_chance = STATISTICS[name].over_chance
        if several_units or (over_chance and not lowest < 0):
            return Scale(lowest)
        if STATISTICS[name].basis is Basis.ALL:
            return Scale(lowest, self.traces)
        # Agreement of several raters on a rare answer rests on few traces, however high it is.
        caps_cases = (
            self.mean_ratings > 2
            and self._share_of_rarer_answer(self.units_by_pattern[0]) < _RARE_AMONG_MANY
        )
        return Scale(
            lowest,
            self._traces_with_answers_of(name),
            on_one_answer=True,
            caps_cases=caps_cases,
        )

    def _least_value(self, name: str) -> float:
        """Return the least value that a figure could have with the same numbers of answers.

        Raises:
            ValueError: The least value of a figure over chance is not defined here.
        """
        if not STATISTICS[name].over_chance:
            return STATISTICS[name].lowest
        if not self.n:
            return 0.0
        ratings, present = rating_patterns(len(self.rated)).T
        unit_counts = self.units_by_pattern[0]  # the row for all traces
        if name == "gwet_ac1":
            # No two raters agree.
            present_share = float(unit_counts @ (present / ratings)) / self.n
            return least_over_chance(2 * present_share * (1 - present_share))
        # For the other figures, no two raters agree on the rarer answer.
        if name == "cohen_kappa":
            return float(_mean_over_pairs(self, least_kappa)[0])
        if name == "fleiss_kappa":
            # Then κ is -r / (1 - r), where r is the share of the rarer answer.
            return least_over_chance(self._share_of_rarer_answer(self._units_judged_by_all))
        if name != "krippendorff_alpha":
            raise ValueError(f"{name} has no least value")
        # For α, chance pairs each rating with all ratings but itself.
        rating_count = float(unit_counts @ ratings)
        return 1 - (1 - 1 / rating_count) / (1 - self._share_of_rarer_answer(unit_counts))

    def _traces_with_answers_of(self, name: str) -> int:
        """Count the traces with the answer on which a figure rests: by default the rarer one."""
        # The number of ratings with each answer, for each pattern.
        ratings, present = rating_patterns(len(self.rated)).T
        answers = {
            "positive_agreement": [present],
            "negative_agreement": [ratings - present],
        }.get(name, [present, ratings - present])
        if name == "fleiss_kappa":  # it rests only on units that all annotators rated
            rated_by_all = ratings == len(self.rated)
            answers = [np.where(rated_by_all, answer, 0) for answer in answers]
        return min(self.traces_with(answer) for answer in answers)

    @property
    def _units_judged_by_all(self) -> Floats:
        """The number of units that all annotators rated, for each of ``rating_patterns``."""
        annotator_count = len(self.rated)
        ratings, _present = rating_patterns(annotator_count).T
        # Row 0 is over all traces; further rows only serve intervals.
        return np.where(ratings == annotator_count, self.units_by_pattern[0], 0.0)

    def _share_of_rarer_answer(self, units_by_pattern: Floats) -> float:
        """Return the share of the rarer answer among the ratings of some units.

        ``units_by_pattern`` has the number of units for each row of ``rating_patterns``.
        """
        ratings, present = rating_patterns(len(self.rated)).T
        rating_count = float(units_by_pattern @ ratings)
        present_share = float(units_by_pattern @ present) / rating_count if rating_count else 0.0
        return min(present_share, 1 - present_share)

    @property
    def has_pairs_with_few_traces(self) -> bool:
        """True if there are three annotators or more, and a pair shares few of the traces.

        κ of such a pair is too low (by 0.06 at 13 traces), and so is the mean over the pairs.
        """
        # A pair without a shared trace has no κ.
        fewest_shared = min((count for count in self.pair_trace_counts if count), default=0)
        return len(self.rated) > 2 and fewest_shared < min(_SHARED_ENOUGH, self.traces / 2)

    def pair(self, pair_number: int) -> TableSums:
        """Return the sums of a pair of annotators, by its index in their ``combinations``."""
        cells = self.pairs[:, pair_number]
        both_present, first_only, second_only, neither = np.moveaxis(cells, -1, 0)
        annotators = list(combinations(range(len(self.rated)), 2))[pair_number]
        # A pair rates a unit twice, and calls it present 0, 1 or 2 times.
        units_by_pattern = np.stack((neither, first_only + second_only, both_present), axis=-1)
        trace_count = self.pair_trace_counts[pair_number]
        return TableSums(
            pairs=cells[:, None],
            units_by_pattern=units_by_pattern,
            rated=self.rated[list(annotators)],
            traces=trace_count,
            pair_trace_counts=(trace_count,),
            by_jackknife=self.by_jackknife,
            units=int(cells[0].sum()),
            has_copies=self.has_copies,
            rated_by_both=self.rated_by_both[[pair_number]],
        )

    def unit_count_of(self, name: str) -> int:
        """Return the number of units on which the figure with this name rests."""
        if name == "fleiss_kappa":
            return self.complete_units
        if name == "cohen_kappa":
            # The mean is over the pairs with a defined κ.
            is_defined = ~np.isnan(cohen_kappa(self.pairs[0]))
            # Without a defined κ there is no figure, and all units are counted.
            if is_defined.any() and not is_defined.all():
                return int(self.rated_by_both[is_defined].any(axis=0).sum())
        return self.n


def block_indices(blocks: NDArray[np.int_] | None, unit_count: int) -> NDArray[np.int_]:
    """Return the index of each unit's block, from 0; a unit without copies is a block of its own.

    Args:
        blocks: The block number of each unit, the same for copies; None if there are no copies.
        unit_count: The number of units.
    """
    if blocks is None:
        return np.arange(unit_count)
    return np.unique(blocks, return_inverse=True)[1].ravel()


def rating_patterns(annotators: int) -> NDArray[np.int_]:
    """Return a row (n, k) for each possible unit with n ratings, k of them present."""
    pairs = [(n, k) for n in range(2, annotators + 1) for k in range(n + 1)]
    return np.array(pairs, dtype=np.int_).reshape(-1, 2)


def sums_of(
    verdicts: VerdictArray,
    shared_traces: Sequence[int],
    resampling: Resampling,
    *,
    blocks: NDArray[np.int_] | None = None,
    resampled_from: int = MANY,
) -> Sums:
    """Count the verdicts of each pair of annotators, and the units by their ratings.

    Counts are summed over the shared traces, and over resamples of these traces.

    Args:
        verdicts: Annotators × traces × modes; unsure and open count as missing. Verdicts on other
            traces only serve to explain an undefined figure.
        shared_traces: The indices of the shared traces, which count.
        resampling: The resamples; none for only the sums over all shared traces.
        blocks: The block number of each trace, the same for copies; None if there are no copies.
            Copies are drawn together.
        resampled_from: The fewest blocks that are resampled; of fewer, each is left out in turn.
    """
    shared = verdicts[:, list(shared_traces)]
    annotator_count, trace_count, mode_count = shared.shape
    pairs = list(combinations(range(annotator_count), 2))
    # For each mode, traces × columns.
    counts_by_mode: list[NDArray[np.integer[Any]]] = [
        _counts_of_mode(shared[:, :, mode]) for mode in range(mode_count)
    ]
    has_verdict = shared >= 0
    rated_by_both = np.zeros((len(pairs), trace_count, mode_count), dtype=np.bool_)
    for pair_number, (first, second) in enumerate(pairs):
        rated_by_both[pair_number] = has_verdict[first] & has_verdict[second]

    shared_blocks = None if blocks is None else blocks[list(shared_traces)]
    block_of_trace = block_indices(shared_blocks, trace_count)
    block_count = int(block_of_trace.max(initial=-1)) + 1
    has_copies = block_count < trace_count
    if has_copies:
        counts_by_mode = [
            _counts_of_blocks(counts, block_of_trace, block_count) for counts in counts_by_mode
        ]
        rated_by_block = np.zeros((block_count, len(pairs), mode_count), dtype=np.bool_)
        np.logical_or.at(rated_by_block, block_of_trace, np.moveaxis(rated_by_both, 1, 0))
        rated_by_both = np.moveaxis(rated_by_block, 0, 1)

    by_jackknife = resampling.count > 0 and block_count < resampled_from
    row_count = 1 + (block_count if by_jackknife else resampling.count)
    pair_column_count = 4 * len(pairs)  # as in ``_counts_of_mode``
    column_count = pair_column_count + len(rating_patterns(annotator_count))
    summed = np.zeros((row_count, mode_count, column_count))
    _fill_with_sums(summed, counts_by_mode, block_count, None if by_jackknife else resampling)
    return Sums(
        pairs=summed[:, :, :pair_column_count].reshape(row_count, mode_count, len(pairs), 4),
        units_by_pattern=summed[:, :, pair_column_count:],
        rated=np.asarray((verdicts >= 0).any(axis=1)),
        rated_by_both=rated_by_both,
        by_jackknife=by_jackknife,
        has_copies=has_copies,
    )


def _fill_with_sums(
    summed: Floats,
    counts_by_mode: Sequence[NDArray[np.integer[Any]]],
    block_count: int,
    resampling: Resampling | None,
) -> None:
    """Fill the rows of ``summed`` (rows × modes × columns) with sums of counts over blocks.

    The first row is over all blocks. The others are over resamples or, if ``resampling`` is None,
    over all blocks but one. ``counts_by_mode`` has blocks × columns for each mode.
    """
    for mode, counts in enumerate(counts_by_mode):
        summed[0, mode] = counts.sum(axis=0, dtype=np.float64)
        if resampling is None:
            summed[1:, mode] = summed[0, mode] - counts
    if resampling is None:
        return
    # Single precision is faster, and exact up to this number of blocks.
    float_type = np.float32 if block_count < _EXACT_SINGLES else np.float64
    _fill_with_resamples(
        summed[1:],
        [counts.astype(float_type) for counts in counts_by_mode],
        resamples(block_count, resampling),
    )


def _fill_with_resamples(
    rows: Floats,
    counts_by_mode: Sequence[NDArray[np.floating[Any]]],
    weight_batches: Iterable[NDArray[np.float32]],
) -> None:
    """Fill ``rows`` (resamples × modes × columns) with the sums of counts over resamples.

    ``counts_by_mode`` has blocks × columns for each mode. ``weight_batches`` have how often each
    block is drawn, resamples × blocks.
    """
    row = 0
    for weights in weight_batches:
        for mode, counts in enumerate(counts_by_mode):
            batch_sums = weights.astype(counts.dtype, copy=False) @ counts
            rows[row : row + len(weights), mode] = batch_sums
        row += len(weights)


def _counts_of_blocks(
    counts: NDArray[np.integer[Any]], block_of_trace: NDArray[np.int_], block_count: int
) -> NDArray[np.int64]:
    """Sum counts (traces × columns) over the traces of each block; return blocks × columns."""
    summed = np.zeros((block_count, counts.shape[1]), dtype=np.int64)
    np.add.at(summed, block_of_trace, counts)
    return summed


def _counts_of_mode(verdicts: VerdictArray) -> NDArray[np.uint8]:
    """Return the counts (0 or 1) of one mode in each trace, as traces × columns.

    Each pair has four columns: both present, first only, second only, both absent. Then each of
    ``rating_patterns`` has a column. ``verdicts`` is annotators × traces.
    """
    present = verdicts == PRESENT
    absent = verdicts == ABSENT
    columns: list[NDArray[np.bool_]] = []
    for first, second in combinations(range(len(verdicts)), 2):
        columns += [present[first] & present[second], present[first] & absent[second]]
        columns += [absent[first] & present[second], absent[first] & absent[second]]
    present_count = present.sum(axis=0)
    rating_count = present_count + absent.sum(axis=0)
    columns += [
        (rating_count == n) & (present_count == k)
        for n, k in rating_patterns(len(verdicts)).tolist()
    ]
    if not columns:
        return np.zeros((verdicts.shape[1], 0), dtype=np.uint8)
    return np.stack(columns, axis=1).astype(np.uint8)


def table_values(table: TableSums) -> dict[str, Floats]:
    """Return every figure of a table by name, as one value per row; NaN if it is undefined."""
    values = _shared_values(table.units_by_pattern, len(table.rated))
    # Agreement over chance cannot be estimated from a single trace.
    if table.complete_traces == 1:
        values["fleiss_kappa"][:] = np.nan
    if table.traces == 1:
        for name, row_values in values.items():
            if STATISTICS[name].over_chance:
                row_values[:] = np.nan
    values["cohen_kappa"] = _mean_over_pairs(table, cohen_kappa)
    if table.most_shared == 1:
        values["cohen_kappa"][:] = np.nan
    return values


def _mean_over_pairs(table: TableSums, figure: Callable[[Floats], Floats]) -> Floats:
    """Return the mean of a figure over the pairs with a defined figure, one value per row."""
    # With pairs first, NumPy always adds up their values in the same order.
    pairs = np.ascontiguousarray(np.moveaxis(table.pairs, 1, 0))
    return mean_of_defined_values(figure(pairs), axis=0)


def _shared_values(units_by_pattern: Floats, annotator_count: int) -> dict[str, Floats]:
    """Return by name all figures but Cohen's κ, one value per row.

    ``units_by_pattern`` is rows × ``rating_patterns``: the number of units with each pattern.
    """
    # The numbers of ratings and of presents in a unit of each pattern.
    ratings, present = rating_patterns(annotator_count).astype(float).T
    absent = ratings - present
    unit_counts = units_by_pattern.sum(axis=-1)
    # The number of ordered pairs of equal ratings in a unit of each pattern.
    equal_pairs = present * (present - 1) + absent * (absent - 1)
    raw_agreement = ratio(units_by_pattern @ (equal_pairs / (ratings * (ratings - 1))), unit_counts)
    present_sums = units_by_pattern @ present
    absent_sums = units_by_pattern @ absent
    both_answers_occur = (present_sums > 0) & (absent_sums > 0)
    present_share = ratio(units_by_pattern @ (present / ratings), unit_counts)
    return {
        "raw_agreement": raw_agreement,
        "positive_agreement": _specific_agreement(units_by_pattern, present, ratings),
        "negative_agreement": _specific_agreement(units_by_pattern, absent, ratings),
        "fleiss_kappa": _fleiss_kappa(
            units_by_pattern[..., ratings == annotator_count], annotator_count
        ),
        "krippendorff_alpha": _krippendorff_alpha(
            present_sums,
            absent_sums,
            units_by_pattern @ (equal_pairs / (ratings - 1)),
            both_answers_occur,
        ),
        "gwet_ac1": _agreement_over_chance(
            raw_agreement, 2 * present_share * (1 - present_share), both_answers_occur
        ),
        "pabak": 2 * raw_agreement - 1,
    }


def _specific_agreement(
    units_by_pattern: Floats, answer_counts: Floats, rating_counts: Floats
) -> Floats:
    """Return the share of agreeing pairs among the pairs of ratings with a certain answer.

    A unit of each pattern has ``rating_counts`` ratings, ``answer_counts`` of them with the answer.
    """
    return ratio(
        units_by_pattern @ (answer_counts * (answer_counts - 1)),
        units_by_pattern @ (answer_counts * (rating_counts - 1)),
    )


def _fleiss_kappa(complete_units: Floats, annotator_count: int) -> Floats:
    """Return Fleiss' κ of each row of ``complete_units``.

    A row has the numbers of units that 0, 1, … all annotators call present.
    """
    present = np.arange(complete_units.shape[-1], dtype=np.float64)
    absent = annotator_count - present
    unit_counts = complete_units.sum(axis=-1)
    equal_pairs = present * (present - 1) + absent * (absent - 1)
    observed = ratio(
        complete_units @ equal_pairs, unit_counts * annotator_count * (annotator_count - 1)
    )
    present_share = ratio(complete_units @ present, unit_counts * annotator_count)
    by_chance = 1 - 2 * present_share * (1 - present_share)
    both_answers_occur = (complete_units @ present > 0) & (complete_units @ absent > 0)
    return _agreement_over_chance(observed, by_chance, both_answers_occur)


def _krippendorff_alpha(
    present_sums: Floats,
    absent_sums: Floats,
    matching_sums: Floats,
    both_answers_occur: NDArray[np.bool_],
) -> Floats:
    """Return Krippendorff's α from the numbers of both answers and of matching answers.

    A pair of equal ratings matches; in a unit of n ratings it counts 1 / (n - 1).
    """
    rating_sums = present_sums + absent_sums
    expected = ratio(2 * present_sums * absent_sums, rating_sums - 1)
    return np.where(both_answers_occur, 1 - ratio(rating_sums - matching_sums, expected), np.nan)


def _agreement_over_chance(
    observed: Floats, by_chance: Floats, both_answers_occur: NDArray[np.bool_]
) -> Floats:
    return np.where(both_answers_occur, ratio(observed - by_chance, 1 - by_chance), np.nan)


def table_coefficients(table: TableSums) -> dict[str, Figure]:
    """Return the coefficients of a table by name, each with its interval or the reason for none."""
    values = table_values(table)
    support = table.support
    coefficients = {
        name: with_interval(
            values[name],
            _undefined_reason(name, table),
            table.scale(name) if table.by_jackknife else None,
            withheld=_reason_for_no_interval(name, why_no_interval(name, support), table),
        )
        for name in COEFFICIENTS
    }
    return {
        name: replace(coefficient, n=table.unit_count_of(name))
        for name, coefficient in coefficients.items()
    }


def with_interval(
    values: Floats,
    undefined: str,
    jackknife_scale: Scale | None,
    *,
    withheld: NoInterval | None = None,
) -> Figure:
    """Return a figure with its interval, or with the reason for none.

    Args:
        values: The figure of all traces, NaN if undefined, then the figures of the resamples or
            without each trace.
        undefined: The reason for no value, if the figure is NaN.
        jackknife_scale: The possible values of the figure if ``values`` leave out each trace; None
            for resamples.
        withheld: The reason for no interval; None if the figure may have one.
    """
    estimate = float(values[0])
    if np.isnan(estimate):
        return Figure(reason=undefined)
    if len(values) == 1:
        return Figure(value=estimate)
    if withheld is not None:
        return Figure(value=estimate, reason=withheld.reason, needs=withheld.needs)
    if jackknife_scale is not None:
        return jackknifed_coefficient(estimate, values[1:], jackknife_scale)
    return Figure(value=estimate, interval=interval(estimate, values[1:]))


def _reason_for_no_interval(
    name: str, general_reason: NoInterval | None, table: TableSums
) -> NoInterval | None:
    """Return the reason why a figure has no interval, and the number of cases that it needs.

    Cohen's κ of three annotators or more also needs pairs that share enough traces.
    """
    reason, _ = general_reason or ("", 0)
    # Too few traces in all is the more helpful reason.
    if (
        name == "cohen_kappa"
        and table.has_pairs_with_few_traces
        and reason not in ("few_traces", "copied_blocks")
    ):
        return NoInterval("few_shared_traces", min(_SHARED_ENOUGH, ceil(table.traces / 2)))
    return general_reason


def _undefined_reason(name: str, table: TableSums) -> Undefined:
    """Return the reason why a figure of the table is undefined."""
    annotator_count = len(table.rated)
    if annotator_count < 2:
        return "single_rater"
    if name == "fleiss_kappa":
        if table.complete_traces == 1:
            return "single_trace"
        return "no_variance" if table.complete_units else "no_overlap"
    if table.n:  # units that two annotators rated, but the figure is undefined on them
        trace_count = table.most_shared if name == "cohen_kappa" else table.traces
        return (
            "single_trace" if STATISTICS[name].over_chance and trace_count == 1 else "no_variance"
        )
    # Cohen's κ is a mean over pairs. If only one of three annotators rated, the other two have no
    # overlap, which is the reason for the mean.
    single_rater = int(table.rated.sum()) == 1 and (name != "cohen_kappa" or annotator_count == 2)
    return "single_rater" if single_rater else "no_overlap"


def macro_coefficients(sums: Sums, per_mode: Sequence[Mapping[str, Figure]]) -> dict[str, Figure]:
    """Return the mean of each figure over the modes; its ``n`` is the number of defined modes.

    In each resample, the mean is over the modes with a defined figure in that resample.

    Args:
        sums: The sums of all modes.
        per_mode: The figures of each mode by name, in the order of the modes.
    """
    pooled_sums = sums.everything()
    values_by_mode = [table_values(sums.of_modes([mode])) for mode in range(len(per_mode))]
    means: dict[str, Figure] = {}
    for name in COEFFICIENTS:
        # Only the count and the reason are used; the mean itself is computed from the values, which
        # include the resamples.
        mean, mode_count = mean_of_defined([figures[name] for figures in per_mode])
        # Modes × rows.
        values = np.array([mode_values[name] for mode_values in values_by_mode])
        mean_with_interval = with_interval(
            mean_of_defined_values(values.reshape(len(per_mode), len(sums.pairs)), axis=0),
            mean.undefined or "no_variance",
            scale_of_mean(name) if sums.by_jackknife else None,
            withheld=_reason_for_no_interval(
                name,
                why_no_mean_interval(name, pooled_sums.traces, pooled_sums.mean_ratings),
                pooled_sums,
            ),
        )
        means[name] = replace(mean_with_interval, n=mode_count)
    return means
