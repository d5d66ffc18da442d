"""Agreement on the set of modes that a trace shows: α with Jaccard and with MASI distance.

An annotator's set has the modes that are present in the trace. The annotator must have judged every
mode, because an open or unsure mode leaves the set unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.counting import (
    MISSING,
    PRESENT,
    Ratings,
    VerdictArray,
    block_indices,
    numbered_rows,
    with_interval,
)
from mast_tui.figures.bootstrap import NO_RESAMPLING, Floats, Resampling, resamples
from mast_tui.figures.jackknife import FEWEST, MANY, Scale
from mast_tui.figures.record import Figure, FigureScope, NoInterval, Undefined

Members = NDArray[np.bool_]
"""Sets × elements: True if the element is in the set."""

Distance = Callable[[Floats, Floats, Floats], Floats]
"""The distance of the sets A and B, between 0 and 1, from the sizes of A ∩ B, A and B."""

_MOST_EXACT: Final = 512
"""The largest number of different sets for which the expected distance of a resample is exact."""

_ROWS_AT_ONCE: Final = 512


def jaccard_distance(shared_size: Floats, size: Floats, other_size: Floats) -> Floats:
    """Return the Jaccard distance 1 - |A ∩ B| / |A ∪ B|, which is 0 for two empty sets.

    Args:
        shared_size: The size of A ∩ B.
        size: The size of A.
        other_size: The size of B.
    """
    return 1 - _jaccard_index(shared_size, size + other_size - shared_size)


def masi_distance(shared_size: Floats, size: Floats, other_size: Floats) -> Floats:
    """Return the MASI distance 1 - J · M (Passonneau 2006) of the sets A and B.

    J is |A ∩ B| / |A ∪ B|. M is 1 for equal sets, 2/3 if one set contains the other, and 1/3
    otherwise. The distance of two empty sets is 0.

    Args:
        shared_size: The size of A ∩ B.
        size: The size of A.
        other_size: The size of B.
    """
    union = size + other_size - shared_size
    one_contains_other = shared_size == np.minimum(size, other_size)
    monotonicity = np.where(one_contains_other, 2 / 3, 1 / 3)
    monotonicity = np.where(shared_size == union, 1, monotonicity)
    return 1 - _jaccard_index(shared_size, union) * monotonicity


def _jaccard_index(shared: Floats, union: Floats) -> Floats:
    return np.asarray(np.divide(shared, union, out=np.ones_like(shared), where=union > 0))


SETS: Final = FigureScope("sets")
"""The scope of the figures on sets of modes."""


COMPLETE: Final = ("verdicts", "complete")
"""The condition of their source traces: two or more annotators have a verdict on each mode."""


def set_agreement(
    verdicts: VerdictArray,
    resampling: Resampling,
    *,
    blocks: NDArray[np.int_] | None = None,
    scope: FigureScope = SETS,
) -> tuple[Figure, ...]:
    """Return the agreement on the sets of modes that annotators call present.

    The last figure is the number of traces with sets by two annotators or more.

    Args:
        verdicts: Annotators × traces × modes.
        resampling: The resamples of the traces; none for no intervals.
        blocks: The block number of each trace, the same for copies; None if there are no copies.
        scope: The scope of the figures.
    """
    sets, members = _sets_of(verdicts)
    jaccard, masi = set_alphas(
        sets, members, (jaccard_distance, masi_distance), resampling=resampling, blocks=blocks
    )
    n = int(((sets != MISSING).sum(axis=0) > 1).sum())
    return (
        scope.figure("krippendorff_alpha_jaccard", jaccard, n=n),
        scope.figure("krippendorff_alpha_masi", masi, n=n),
        scope.number("n", n),
    )


def _sets_of(verdicts: VerdictArray) -> tuple[Ratings, Members]:
    """Number the different sets of modes that annotators call present.

    An annotator has a set on a trace if each mode is present or absent.

    Returns:
        The number of each annotator's set on each trace (annotators × traces, ``MISSING`` without a
        set), and the modes of each set (sets × modes, True if the mode is in the set).
    """
    annotator_count, trace_count, mode_count = verdicts.shape
    has_set = (verdicts >= 0).all(axis=2)
    set_rows = (verdicts == PRESENT)[has_set].reshape(int(has_set.sum()), mode_count)
    numbers = numbered_rows(set_rows.astype(np.int8))
    sets = np.full((annotator_count, trace_count), MISSING, dtype=np.int_)
    sets[has_set] = numbers
    first_rows = np.unique(numbers, return_index=True)[1]
    return sets, set_rows[first_rows]


def set_alphas(
    sets: Ratings,
    members: Members,
    distances: Sequence[Distance],
    *,
    resampling: Resampling = NO_RESAMPLING,
    blocks: NDArray[np.int_] | None = None,
) -> list[Figure]:
    """Return Krippendorff's α of sets of modes, one for each distance.

    α is 1 - D_o / D_e. D_o is the mean distance of two raters' sets of one unit, and D_e the mean
    distance of any two sets. With more than ``_MOST_EXACT`` different sets, the D_e of a resample
    is an approximation to first order in the weights, which affects only the interval.

    Args:
        sets: Raters × units: the number of the rater's set, or ``MISSING``.
        members: Sets × modes: True if the mode is in the set with this number.
        distances: The distances between two sets.
        resampling: The resamples of the units; none for no intervals.
        blocks: The block number of each unit, the same for copies; None if there are no copies.
    """
    has_value = sets != MISSING
    compared_units = has_value.sum(axis=0) > 1
    shared_sets = sets[:, compared_units]
    unit_count = shared_sets.shape[1]
    if unit_count < 2:
        return [Figure(reason=_why_no_alpha(has_value, unit_count)) for _ in distances]
    # Number the sets that occur from 0.
    used_numbers, numbers = np.unique(shared_sets[shared_sets != MISSING], return_inverse=True)
    renumbered = np.full_like(shared_sets, MISSING)
    renumbered[shared_sets != MISSING] = numbers.ravel()
    tables = _distance_tables(renumbered, members[used_numbers], distances)

    block_of_unit = block_indices(None if blocks is None else blocks[compared_units], unit_count)
    block_count = int(block_of_unit.max()) + 1
    by_jackknife = resampling.count > 0 and block_count < MANY
    withheld: NoInterval | None = None
    if block_count < FEWEST:
        withheld = NoInterval("copied_blocks" if block_count < unit_count else "few_traces", FEWEST)
    return [
        with_interval(
            alphas,
            "no_variance",
            Scale(lowest=-1.0) if by_jackknife else None,
            withheld=withheld,
        )
        for alphas in _alphas_by_distance(
            tables, block_of_unit, None if by_jackknife else resampling
        )
    ]


def _alphas_by_distance(
    tables: Sequence[_DistanceTable], block_of_unit: NDArray[np.int_], resampling: Resampling | None
) -> list[Floats]:
    """Return for each distance α of all units, then α of the resamples.

    If ``resampling`` is None, α without each block in turn replaces that of the resamples.
    """
    block_count = int(block_of_unit.max()) + 1
    # The jackknife gives each block in turn the weight 0.
    weight_batches = (
        [1 - np.eye(block_count)] if resampling is None else resamples(block_count, resampling)
    )
    alphas_by_distance = [[table.alpha(np.ones((1, len(block_of_unit))))] for table in tables]
    for weights in weight_batches:
        for table, alphas in zip(tables, alphas_by_distance, strict=True):
            alphas.append(table.alpha(weights[:, block_of_unit].astype(np.float64)))
    return list(map(np.concatenate, alphas_by_distance))


def _why_no_alpha(has_value: NDArray[np.bool_], unit_count: int) -> Undefined:
    """Return the reason why α is undefined with fewer than two shared units."""
    if unit_count:
        return "single_trace"
    rater_count = int(has_value.any(axis=1).sum())
    return "single_rater" if len(has_value) < 2 or rater_count == 1 else "no_overlap"


def _distance_tables(
    sets: Ratings, members: Members, distances: Sequence[Distance]
) -> list[_DistanceTable]:
    """Return a table for each distance. Every unit must have the sets of two raters or more."""
    occurring_sets = sets[sets != MISSING]
    counts = np.bincount(occurring_sets, minlength=len(members)).astype(np.float64)
    lookups = [_distances_by_sizes(distance, members.shape[1]) for distance in distances]
    sums_by_lookup = _distances_from_all(members, counts, lookups)
    return [
        _DistanceTable(sets, members, lookup, counts, distance_sums)
        for lookup, distance_sums in zip(lookups, sums_by_lookup, strict=True)
    ]


class _DistanceTable:
    """The sums from which α is computed for one distance of sets, by unit."""

    def __init__(
        self, sets: Ratings, members: Members, lookup: Floats, counts: Floats, from_all: Floats
    ) -> None:
        """Compute the parts of α by unit. A rating is the set of one rater on one unit.

        Args:
            sets: Raters × units: the number of the rater's set, or ``MISSING``. Every unit has two
                ratings or more.
            members: Sets × modes: True if the mode is in the set.
            lookup: The distances, at the indices of ``_lookup_indices``.
            counts: The number of ratings with each set.
            from_all: The sum of each set's distances from all ratings.
        """
        has_rating = sets != MISSING
        rating_counts = has_rating.sum(axis=0)
        unit_count = sets.shape[1]
        # The set and the unit of each rating, unit by unit.
        rated_sets = sets.T[has_rating.T]
        unit_of_rating = np.repeat(np.arange(unit_count), rating_counts)
        distance_within = _distances_within_units(sets, members, lookup) / (rating_counts - 1)
        distance_from_all_ratings = np.bincount(
            unit_of_rating, weights=from_all[rated_sets], minlength=unit_count
        )
        # Only these sums are linear in the weights of units.
        self._linear_parts: Floats = np.stack(
            (rating_counts, distance_within, distance_from_all_ratings), axis=1
        )
        self._unweighted_distance = float(counts @ from_all)
        """The sum of the distances over all pairs of ratings if all units have the weight 1."""
        self._exact_parts: tuple[Floats, Floats] | None = None
        """The number of ratings of each set in each unit, and the distances of the sets.

        They are None with more than ``_MOST_EXACT`` sets.
        """
        if len(members) <= _MOST_EXACT:
            counts_by_unit = np.zeros((unit_count, len(members)))
            np.add.at(counts_by_unit, (unit_of_rating, rated_sets), 1)
            self._exact_parts = (counts_by_unit, lookup.take(_lookup_indices(members, members)))

    def alpha(self, weights: Floats) -> Floats:
        """Return α for each row of ``weights`` (resamples × units); NaN if all sets are equal."""
        rating_count, distance_within, distance_from_all_ratings = (weights @ self._linear_parts).T
        # The sum of the distances over all pairs of ratings.
        if self._exact_parts is None:
            # The approximation to first order in the weights.
            total_distance = 2 * distance_from_all_ratings - self._unweighted_distance
        else:
            counts_by_unit, distances = self._exact_parts
            counts = weights @ counts_by_unit
            total_distance = ((counts @ distances) * counts).sum(axis=1)
        expected = total_distance / (rating_count - 1)
        undefined = np.full(len(weights), np.nan)
        ratio: Floats = np.divide(distance_within, expected, out=undefined, where=expected > 1e-9)
        return 1 - ratio


def _distances_by_sizes(distance: Distance, mode_count: int) -> Floats:
    """Return the distance of two sets for each combination of their sizes and their shared size.

    The combinations are in the order of ``_lookup_indices``: the shared size varies fastest.
    """
    sizes = np.arange(mode_count + 1, dtype=np.float64)
    column_size, row_size, shared_size = np.meshgrid(sizes, sizes, sizes, indexing="ij")
    # A shared size above a set's size is never looked up, so any valid value will do.
    possible_shared_size = np.minimum(shared_size, np.minimum(row_size, column_size))
    return distance(possible_shared_size, row_size, column_size).ravel()


def _lookup_indices(row_sets: Members, column_sets: Members) -> NDArray[np.intp]:
    """Return the index in a lookup of the distance of each row set from each column set.

    The sets are sets × modes. An index has three digits: the size of the column set, the size of
    the row set, and their shared size.
    """
    base = row_sets.shape[1] + 1
    # For most taxonomies single precision is exact up to the largest index, base³.
    float_type = "f4" if base**3 < 2**24 else "f8"
    row_sizes = row_sets.sum(axis=1, keepdims=True)
    column_sizes = column_sets.sum(axis=1, keepdims=True)
    row_factors = np.hstack((row_sets, base * row_sizes, np.ones_like(row_sizes))).astype(
        float_type
    )
    column_factors = np.hstack((column_sets, np.ones_like(column_sizes), base**2 * column_sizes))
    column_factors = column_factors.astype(float_type)
    # The product is shared size + base · size of the row set + base² · size of the column set.
    return np.asarray((row_factors @ column_factors.T).astype(np.intp))


def _distances_within_units(sets: Ratings, members: Members, lookup: Floats) -> Floats:
    """Return for each unit the sum of the distances over the ordered pairs of its raters' sets.

    ``lookup`` has the distances of two sets at the indices of ``_lookup_indices``.
    """
    distance_sums = np.zeros(sets.shape[1])
    size_of_set = members.sum(axis=1)
    # As in ``_lookup_indices``.
    base = members.shape[1] + 1
    for first, second in combinations(range(len(sets)), 2):
        rated_by_both = np.flatnonzero((sets[first] != MISSING) & (sets[second] != MISSING))
        first_sets = sets[first, rated_by_both]
        second_sets = sets[second, rated_by_both]
        shared_modes = members[first_sets] & members[second_sets]
        shared_sizes = shared_modes.sum(axis=1)
        indices = shared_sizes + base * size_of_set[first_sets] + base**2 * size_of_set[second_sets]
        # Each pair counts in both orders.
        distance_sums[rated_by_both] += 2 * lookup[indices]
    return distance_sums


def _distances_from_all(
    members: Members, counts: Floats, lookups: Sequence[Floats]
) -> list[Floats]:
    """Return for each lookup the sum of each set's distances from all ratings.

    ``counts`` has the number of ratings with each set, and ``members`` is sets × modes. A lookup
    has the distances at the indices of ``_lookup_indices``.
    """
    sums_by_lookup = [np.zeros(len(members)) for _ in lookups]
    for start in range(0, len(members), _ROWS_AT_ONCE):
        # Distances are symmetric, so these sets are compared only with themselves and later sets.
        stop = min(start + _ROWS_AT_ONCE, len(members))
        indices = _lookup_indices(members[start:stop], members[start:])
        for distance_sums, lookup in zip(sums_by_lookup, lookups, strict=True):
            distances = lookup.take(indices)
            distance_sums[start:stop] += distances @ counts[start:]
            distance_sums[stop:] += counts[start:stop] @ distances[:, stop - start :]
    return sums_by_lookup
