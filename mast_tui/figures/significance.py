"""Two-sided tests of hypotheses, exact if possible, and their correction for multiple tests."""

from __future__ import annotations

from collections.abc import Sequence
from math import erfc, sqrt
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import Floats

_TIE: Final = 1e-7
"""The tolerance of rounding within which two chances or distances are equal."""

_MOST_STEPS: Final = 20_000_000
"""The most additions of an exact test; beyond, the normal distribution replaces it."""

_MOST_CASES: Final = 900
"""The most cases for which the number of divisions into two groups fits into a float."""

_RARE: Final = 50
"""The most hits, or misses, for an exact test; beyond, the normal distribution is accurate."""

Method = Literal["exact", "normal"]


MANY: Final = 1_000_000
"""The most cases for a table of logarithms; beyond, it takes too much memory."""

_FAR: Final = 40.0
"""The standard deviations from the likeliest table beyond which chances are 0 as floats."""


class LogFactorials:
    """The logarithms of 0!, 1!, … up to a number, for many tests."""

    def __init__(self, most: int) -> None:
        steps = np.log(np.arange(1, most + 1, dtype=np.longdouble))
        self._table = np.concatenate([np.zeros(1, dtype=np.longdouble), np.cumsum(steps)])

    def choose(self, n: int, k: NDArray[np.int64]) -> NDArray[np.longdouble]:
        """Return the logarithms of the numbers of ways to choose ``k`` of ``n`` elements.

        Args:
            n: The size of the set.
            k: The sizes of the subsets.
        """
        return np.asarray(self._table[n] - self._table[k] - self._table[n - k])


def fisher_exact(
    hits: int, n: int, other_hits: int, other_n: int, logs: LogFactorials | None = None
) -> float | None:
    """Test whether two independent shares differ (Fisher 1935).

    Args:
        hits: The hits of the first share.
        n: The cases of the first share.
        other_hits: The hits of the second share.
        other_n: The cases of the second share.
        logs: The logarithms of factorials up to ``n + other_n``; None if these need too much
            memory.

    Returns:
        The chance of all 2 × 2 tables with these margins that are no more likely than the observed
        one; None if a share has no cases.
    """
    if not n or not other_n:
        return None
    all_hits = hits + other_hits
    # The hits of the first share determine a table.
    possible_hits = np.arange(max(0, all_hits - other_n), min(n, all_hits) + 1, dtype=np.int64)
    if len(possible_hits) == 1:
        return 1.0
    if logs is None:
        return _fisher_near_likeliest(hits, n, other_hits, other_n)
    log_chances = logs.choose(n, possible_hits) + logs.choose(other_n, all_hits - possible_hits)
    return _chance_of_unlikelier(log_chances, hits - int(possible_hits[0]))


def _chance_of_unlikelier(log_chances: NDArray[np.longdouble], observed: int) -> float:
    """Return the chance of all tables that are no more likely than the observed one (an index)."""
    chances = np.exp(log_chances - log_chances.max())
    is_no_likelier = chances <= chances[observed] * (1 + _TIE)
    return min(1.0, float(chances[is_no_likelier].sum() / chances.sum()))


def _fisher_near_likeliest(hits: int, n: int, other_hits: int, other_n: int) -> float:
    """Return the p-value of ``fisher_exact`` from the tables near the likeliest one.

    The chances of all other tables are 0 as floats. The hits of the first share determine a table.
    """
    all_hits = hits + other_hits
    cases = n + other_n
    likeliest = (all_hits + 1) * (n + 1) // (cases + 2)
    miss_share = (cases - all_hits) / (cases - 1)
    standard_deviation = (all_hits * (n / cases) * (other_n / cases) * miss_share) ** 0.5
    reach = int(_FAR * standard_deviation) + 1
    low = max(0, all_hits - other_n, likeliest - reach)
    high = min(n, all_hits, likeliest + reach)
    if not low <= hits <= high:
        return 0.0
    # The chance of each table but the first, divided by the chance of the table before it.
    possible_hits = np.arange(low, high, dtype=np.longdouble)
    log_ratios = np.log(
        (n - possible_hits)
        * (all_hits - possible_hits)
        / ((possible_hits + 1) * (other_n - all_hits + possible_hits + 1))
    )
    log_chances = np.concatenate([np.zeros(1, dtype=np.longdouble), np.cumsum(log_ratios)])
    return _chance_of_unlikelier(log_chances, hits - low)


def mcnemar(only_first: int, only_second: int) -> float:
    """Test whether two shares of the same cases differ (McNemar 1947, exact).

    Args:
        only_first: The number of cases that are hits in the first share alone.
        only_second: The number of cases that are hits in the second share alone.

    Returns:
        Twice the chance that the rarer kind of case occurs at most as often as observed, if both
        kinds are equally likely; at most 1.
    """
    differing_cases = only_first + only_second
    # The number of ways to choose k cases, and its sum over k up to the rarer kind.
    ways = total_ways = 1
    for k in range(min(only_first, only_second)):
        ways = ways * (differing_cases - k) // (k + 1)
        total_ways += ways
    return min(1.0, 2 * total_ways / 2**differing_cases) if differing_cases else 1.0


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values for the false discovery rate (Benjamini and Hochberg 1995).

    None stays None."""
    adjusted: list[float | None] = [None] * len(p_values)
    sorted_p_values = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    count = len(sorted_p_values)
    lowest = 1.0
    for rank, (p, index) in reversed(list(enumerate(sorted_p_values, start=1))):
        # An adjusted value is at most that of the next larger p-value.
        lowest = min(lowest, p * count / rank)
        adjusted[index] = lowest
    return adjusted


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values for the chance of any false finding (Holm 1979); None stays None."""
    adjusted: list[float | None] = [None] * len(p_values)
    sorted_p_values = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    highest = 0.0
    for rank, (p, index) in enumerate(sorted_p_values):
        # An adjusted value is at least that of the next smaller p-value.
        highest = max(highest, min(1.0, p * (len(sorted_p_values) - rank)))
        adjusted[index] = highest
    return adjusted


def sign_flips(differences: Sequence[int]) -> float:
    """Return the p-value of ``sign_flips_of_rows`` for one row of differences."""
    return float(sign_flips_of_rows(np.asarray([differences], dtype=np.int64))[0])


def sign_flips_of_rows(differences: NDArray[np.int64]) -> Floats:
    """Test for each row whether the mean of its whole numbers is 0 (Fisher's randomisation test).

    A row has one number for each independent case. The test flips the signs of the numbers in all
    combinations. The chances of all sums are the Fourier transform of their characteristic
    function, the product of the cosines of the numbers.

    Args:
        differences: Rows × cases; zeros have no effect.

    Returns:
        For each row, the share of all combinations of signs with a sum at least as far from 0. If
        there are too many sums to count, it is the p-value of the normal distribution with z = Σd /
        √Σd² (Durkalski and others 2003, Statistics in Medicine 22:2417-2428).
    """
    sizes = np.abs(differences)
    distances = np.abs(differences.sum(axis=1))
    largest_sum = int(sizes.sum(axis=1).max(initial=0))
    # The transform needs a power of 2 above the number of possible sums.
    length = 1 << (2 * largest_sum + 1).bit_length()
    different_sizes = np.unique(sizes[sizes > 0])
    if len(different_sizes) * length * len(sizes) > _MOST_STEPS:
        squares = np.maximum((sizes.astype(np.float64) ** 2).sum(axis=1), 1)
        return np.array([erfc(z) for z in distances / np.sqrt(2 * squares)])
    angles = 2 * np.pi / length * np.arange(length // 2 + 1)
    product = np.ones((len(sizes), length // 2 + 1))
    for size in different_sizes.tolist():
        # Few exponents differ among many rows, and powers are slow.
        exponents, row_exponents = np.unique((sizes == size).sum(axis=1), return_inverse=True)
        product *= (np.cos(size * angles) ** exponents[:, None])[row_exponents]
    chances = np.fft.irfft(product, n=length, axis=1)[:, : length // 2]
    is_as_far = np.arange(length // 2) >= distances[:, None]
    both_sides = 2 * np.where(is_as_far, chances, 0.0).sum(axis=1)
    # The least p-value is the chance of the two combinations with all signs equal. The exponent is
    # limited, because 2⁻¹⁰⁷⁵ is 0 as a float.
    least_chance = 2.0 ** (1 - np.minimum((sizes > 0).sum(axis=1), 1000))
    return np.where(distances == 0, 1.0, np.clip(both_sides, least_chance, 1.0))


def group_permutations(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Test whether two independent groups of whole numbers have the same mean.

    Fisher's randomisation test counts all divisions of the numbers into groups of these two sizes.

    Args:
        first: The numbers of one group, at least one.
        second: The numbers of the other group, at least one.

    Returns:
        The share of all divisions whose means are at least as far apart. If there are too many sums
        to count, the p-value is that of the normal distribution.
    """
    numbers = np.concatenate([first, second])
    numbers -= numbers.min()
    smaller_group = numbers[: len(first)] if len(first) <= len(second) else numbers[len(first) :]
    size = len(smaller_group)
    # The sum of the smaller group determines the difference of the means. It is multiplied by the
    # count of all numbers, so that the expected sum is a whole number.
    expected_sum = size * int(numbers.sum())
    distance = abs(len(numbers) * int(smaller_group.sum()) - expected_sum)
    if distance == 0:
        return 1.0
    highest_sum = int(np.sort(numbers)[-size:].sum())
    if len(numbers) * size * (highest_sum + 1) > _MOST_STEPS or len(numbers) > _MOST_CASES:
        squares = float(((numbers - numbers.mean()) ** 2).sum())
        variance = size * (len(numbers) - size) / len(numbers) / (len(numbers) - 1) * squares
        return erfc(distance / len(numbers) / sqrt(2 * variance))
    # The number of ways to choose numbers: a row for each count, a column for each sum.
    ways = np.zeros((size + 1, highest_sum + 1))
    ways[0, 0] = 1
    for number in numbers.tolist():
        ways[1:, number:] += ways[:-1, : highest_sum + 1 - number]
    way_counts = ways[size]
    is_as_far = np.abs(len(numbers) * np.arange(highest_sum + 1) - expected_sum) >= distance
    return float(way_counts[is_as_far].sum() / way_counts.sum())


class Trend(NamedTuple):
    """The result of the test for a trend; z is above 0 if shares rise."""

    z: float
    p_value: float
    method: Method


def cochran_armitage(
    hits: Sequence[int], cases: Sequence[int], scores: Sequence[int] | None = None
) -> Trend | None:
    """Test whether shares of hits rise or fall along ordered groups.

    The groups have scores t, by default 0, 1, 2, … With X hits among all N cases and p = X / N, the
    statistic is T = Σ t·(x - n·p), its variance p·(1 - p)·(Σ n·t² - (Σ n·t)² / N), and z =
    T / √variance (Cochran 1954, Biometrics 10:417-451; Armitage 1955, Biometrics 11:375-386).

    Args:
        hits: The number x of hits of each group, in the order of the groups.
        cases: The number n of cases of each group.
        scores: The score of each group on a scale, such as the days since the first group.

    Returns:
        z with its p-value; None with fewer than two groups with cases, or if all cases or none are
        hits. The exact p-value is the chance of a T at least as far from 0, used with few hits or
        misses. Otherwise the p-value is that of the normal distribution.
    """
    x = np.asarray(hits, dtype=np.int64)
    n = np.asarray(cases, dtype=np.int64)
    all_hits = int(x.sum())
    all_cases = int(n.sum())
    if np.count_nonzero(n) < 2 or all_hits in (0, all_cases):
        return None
    score = np.arange(len(n)) if scores is None else np.asarray(scores, dtype=np.int64)
    # The least equivalent scores have the same z and fewer sums to count.
    score = score - score.min()
    score = score // int(np.gcd.reduce(score))
    share = all_hits / all_cases
    statistic = float((score * (x - n * share)).sum())
    score_sum = float((n * score).sum())
    score_variance = float((n * score * score).sum()) - score_sum * score_sum / all_cases
    z = statistic / sqrt(share * (1 - share) * score_variance)
    if 2 * all_hits > all_cases:
        # The misses have the same p-value and are fewer.
        x = n - x
        all_hits = all_cases - all_hits
    # The exact test adds to a whole table for each number of hits that a group can have.
    table_cells = all_hits * all_hits * int(score.max())
    table_count = int(np.minimum(n, all_hits).sum() + len(n))
    if all_hits > _RARE or table_cells * table_count > _MOST_STEPS:
        return Trend(z, erfc(abs(z) / sqrt(2)), "normal")
    return Trend(z, _exact_trend(x, n, score, all_hits), "exact")


def _exact_trend(
    x: NDArray[np.int64], n: NDArray[np.int64], score: NDArray[np.int64], all_hits: int
) -> float:
    """Return the exact p-value of the test for a trend.

    It is the chance that the sum of the hits' scores is at least as far from its expected value as
    the observed sum. ``x``, ``n`` and ``score`` have the hits, the cases and the score of each
    group.
    """
    expected = float((n * score).sum()) * all_hits / float(n.sum())
    # The number of ways: a row for each number of hits, a column for each sum of scores.
    ways = np.zeros((all_hits + 1, all_hits * int(score.max()) + 1))
    ways[0, 0] = 1.0
    for group_score, cases in zip(score.tolist(), n.tolist(), strict=True):
        next_ways = np.zeros_like(ways)
        binomial = 1.0
        for group_hits in range(min(cases, all_hits) + 1):
            row_count = all_hits + 1 - group_hits
            column_count = ways.shape[1] - group_score * group_hits
            next_ways[group_hits:, group_score * group_hits :] += (
                binomial * ways[:row_count, :column_count]
            )
            binomial *= (cases - group_hits) / (group_hits + 1)
        # Only proportions matter, so the numbers are scaled down to fit into a float.
        ways = next_ways / next_ways.max()
    way_counts = ways[all_hits]
    distances = np.abs(np.arange(len(way_counts)) - expected)
    observed_distance = abs(float((score * x).sum()) - expected)
    return min(
        1.0, float(way_counts[distances >= observed_distance - _TIE].sum() / way_counts.sum())
    )
