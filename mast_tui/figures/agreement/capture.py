"""Estimates of the failures that all finders missed, by capture and recapture.

A unit is trace × mode. A finder has looked at a unit with a verdict on it, and has found the
failure if the verdict is present. The estimate follows from the number of failures that several
finders found, as for marked fish that are caught again. It assumes that

- finders are independent: one finder's success does not change the chances of another;
- all failures of a mode are equally easy to find (finders and modes may differ);
- every found failure is real, unless it was adjudicated as absent.

Failures that are hard for all finders make the estimate too low. Wrong calls of single finders make
it too high. ``scripts/simulate_missed.py`` tests the intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations, product
from math import atan, ceil, erfc, exp, floor, log, pi, prod, sqrt, tan
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.counting import PRESENT, VerdictArray, numbered_rows
from mast_tui.figures.bootstrap import Floats, Interval
from mast_tui.figures.intervals import Z
from mast_tui.figures.record import Figure, FigureScope, NoInterval
from mast_tui.figures.significance import benjamini_hochberg

FEWEST_TWICE: Final = 5
"""The fewest failures found by two finders or more for an interval."""

ALPHA: Final = 0.05
"""The p-value below which finders are called dependent."""

_NO_SPREAD: Final = 1e-9
"""The greatest variance that counts as 0."""

_MOST_FINDERS: Final = 10
"""The most finders for whom the 2ⁿ sets of finders are enumerated."""

_MOST_FAILURES: Final = 1e6
"""The largest estimate of all failures, as a multiple of the found ones."""


@dataclass(frozen=True, slots=True)
class Capture:
    """The result of capture and recapture over all modes.

    Attributes:
        finders: The names of the finders.
        finders_dependent: Whether finders depend on each other; None if that cannot be tested.
        finders_alike: Whether finders found more of the same failures than by chance, so that more
            were missed; None if that cannot be tested.
        figures: The figures.
    """

    finders: tuple[str, ...]
    finders_dependent: bool | None
    finders_alike: bool | None
    figures: tuple[Figure, ...]


class Dependence(NamedTuple):
    """A test whether two finders find the same failures, among those that a third found.

    Attributes:
        n: The number of failures that a third finder found.
        odds_ratio: The common odds ratio, above 1 if both find the same failures more often than by
            chance; None if they never differ.
        p_value: The p-value; None if it cannot be computed.
    """

    n: int
    odds_ratio: float | None
    p_value: float | None


@dataclass(frozen=True, slots=True)
class Catch:
    """The failures of one mode in the units at which the same finders have looked.

    Attributes:
        unit_count: The number of units.
        finders: The indices of the finders among all finders.
        caught: Found failures × finders: True if the finder found the failure.
    """

    unit_count: int
    finders: tuple[int, ...]
    caught: NDArray[np.bool_]

    @property
    def finder_counts(self) -> NDArray[np.int_]:
        """The number of finders of each failure."""
        return np.asarray(self.caught.sum(axis=1))

    @property
    def lone_counts(self) -> Floats:
        """The number of failures that each finder alone found."""
        return np.asarray(self.caught[self.finder_counts == 1].sum(axis=0), dtype=np.float64)

    @property
    def twice_count(self) -> int:
        """The number of failures that exactly two finders found."""
        return int((self.finder_counts == 2).sum())


def capture(
    names: Sequence[str],
    modes: Mapping[str, int],
    verdicts: VerdictArray,
    *,
    suggested: NDArray[np.bool_],
    settled_absent: NDArray[np.bool_],
    with_intervals: bool = True,
    taxonomy: str = "",
) -> Capture:
    """Estimate the number of failures that all finders missed, by mode and over all modes.

    Args:
        names: The names of the finders: the annotators who looked for failures.
        modes: The index of each mode in ``verdicts``, by code.
        verdicts: Finders × traces × modes.
        suggested: Finders × traces: True if a judge's suggestions were on screen.
        settled_absent: Traces × modes: True if the mode was adjudicated as absent.
        with_intervals: Whether to compute intervals.
        taxonomy: The taxonomy of the modes.
    """
    # Unsure and open are negative.
    has_verdict = verdicts >= 0
    present = verdicts == PRESENT
    # With suggestions on screen a finder is not independent of the judge.
    looked = has_verdict & ~suggested[:, :, None]
    caught = present & looked & ~settled_absent
    catches_by_code = {
        code: tuple(_catches_of_mode(looked[:, :, mode], caught[:, :, mode]))
        for code, mode in modes.items()
    }
    all_catches = tuple(chain.from_iterable(catches_by_code.values()))
    # The test of a pair needs a third finder.
    pairs = list(combinations(range(len(names)), 2)) if len(names) > 2 else []
    tests = [dependence(all_catches, first, second) for first, second in pairs]
    together = _combined_test(all_catches, len(names), [test.p_value for test in tests])
    dependent = None if together.p_value is None else together.p_value < ALPHA
    estimates = partial(missed_figures, dependent=bool(dependent), with_intervals=with_intervals)
    figures: list[Figure] = []
    for code, catches in catches_by_code.items():
        figures += estimates(catches, FigureScope("missed", taxonomy, mode=code))
    figures += estimates(all_catches, FigureScope("missed_pooled", taxonomy))
    name_pairs = [(names[first], names[second]) for first, second in pairs]
    figures += _pair_test_figures(dict(zip(name_pairs, tests, strict=True)), taxonomy)
    figures.append(FigureScope("missed_together", taxonomy).number("p_value", together.p_value))
    left_out = FigureScope("missed_left_out", taxonomy)
    suggested_counts = (has_verdict & suggested[:, :, None]).sum(axis=(1, 2)).tolist()
    figures += left_out.numbers("with_suggestions", dict(zip(names, suggested_counts, strict=True)))
    absent_count = int((present.any(axis=0) & settled_absent).sum())
    figures.append(left_out.number("settled_absent", absent_count))
    return Capture(tuple(names), dependent, together.find_same_failures, tuple(figures))


def _pair_test_figures(
    tests: Mapping[tuple[str, str], Dependence], taxonomy: str
) -> Iterator[Figure]:
    """Yield the tests of pairs of finders, with p-values adjusted over the pairs."""
    adjusted = benjamini_hochberg([test.p_value for test in tests.values()])
    for (pair, test), p_adjusted in zip(tests.items(), adjusted, strict=True):
        scope = FigureScope("missed_pair", taxonomy, subject=pair)
        yield scope.number("n", test.n)
        yield from scope.counts(
            {
                "odds_ratio": test.odds_ratio,
                "p_value": test.p_value,
                "p_adjusted": p_adjusted,
            },
            n=test.n,
        )


def _catches_of_mode(looked: NDArray[np.bool_], caught: NDArray[np.bool_]) -> Iterator[Catch]:
    """Group the traces by the finders who looked for a mode, and yield groups of several finders.

    ``looked`` and ``caught`` are finders × traces: whether the finder looked for, or found, the
    mode.
    """
    group_numbers = numbered_rows(looked.T.astype(np.int8))
    for group_number in range(group_numbers.max(initial=-1) + 1):
        in_group = group_numbers == group_number
        first_trace = in_group.argmax()
        finders = np.flatnonzero(looked[:, first_trace])
        if len(finders) > 1:
            caught_in_group = caught[np.ix_(finders, in_group)].T
            was_caught = caught_in_group.any(axis=1)
            yield Catch(len(caught_in_group), tuple(finders.tolist()), caught_in_group[was_caught])


def missed_figures(
    catches: Sequence[Catch],
    scope: FigureScope,
    *,
    dependent: bool = False,
    with_intervals: bool = True,
) -> Iterator[Figure]:
    """Yield the counts of found failures, the estimate of missed ones, and the share found.

    Args:
        catches: The found failures, by mode and group of finders. Their estimates are added up.
        scope: The scope of the figures.
        dependent: Whether finders depend on each other, so that no interval is valid.
        with_intervals: Whether to compute intervals.
    """
    unit_count = sum(catch.unit_count for catch in catches)
    caught_count = sum(len(catch.caught) for catch in catches)
    yield scope.number("n", unit_count)
    yield from scope.counts(
        {
            "found": caught_count,
            "found_once": sum(int((catch.finder_counts == 1).sum()) for catch in catches),
            "found_twice": sum(catch.twice_count for catch in catches),
        },
        n=unit_count,
    )
    # If only one finder found anything, no failure shows how much finders miss.
    if not any(catch.caught.any(axis=0).sum() > 1 for catch in catches):
        undefined = Figure(
            reason="single_rater" if caught_count else "no_variance" if unit_count else "no_overlap"
        )
        yield scope.figure("missed", undefined, n=unit_count)
        yield scope.figure("share_found", undefined, n=unit_count)
        return
    # A unit has at most one failure.
    missed_count = sum(
        min(
            unseen_count(catch.lone_counts, catch.twice_count),
            catch.unit_count - len(catch.caught),
        )
        for catch in catches
    )
    withheld = _withheld_reason(catches, dependent) if with_intervals else None
    reason, needs = withheld or ("", None)
    missed_interval = None
    share_interval = None
    if with_intervals and withheld is None:
        lowest, highest = _missed_interval(catches, missed_count)
        missed_interval = (lowest, highest)
        share_interval = (
            caught_count / (caught_count + highest),
            caught_count / (caught_count + lowest),
        )
    missed = Figure(value=missed_count, interval=missed_interval, reason=reason, needs=needs)
    caught_share = replace(
        missed, value=caught_count / (caught_count + missed_count), interval=share_interval
    )
    yield scope.figure("missed", missed, n=unit_count)
    yield scope.figure("share_found", caught_share, n=unit_count)


def _missed_interval(catches: Sequence[Catch], missed_count: float) -> Interval:
    """Return the interval of the number of missed failures: whole numbers around the estimate."""
    low, high = (
        sadinle_interval(catches[0].lone_counts, catches[0].twice_count)
        if len(catches) == 1
        else lognormal_interval(catches)
    )
    most_missed = sum(catch.unit_count - len(catch.caught) for catch in catches)
    return (
        float(min(max(0, floor(low)), missed_count)),
        float(max(min(ceil(high), most_missed), missed_count)),
    )


def unseen_count(lone_counts: Floats, twice_count: float) -> float:
    """Estimate the number of failures that no finder found.

    The estimate is (f₁² − Σ Z²) / (2 (f₂ + 1)). f₁ failures were found by one finder, f₂ by two,
    and Z by each finder alone. It is Chao's estimator for finders of different skill (Chao 1989,
    Biometrics 45:427-438). With two finders it equals Chapman's estimate of all failures (1951,
    University of California Publications in Statistics 1:131-160) minus the found failures.

    Args:
        lone_counts: The number of failures that each finder alone found.
        twice_count: The number of failures that exactly two finders found.
    """
    # f₁² − Σ Z² is twice the sum of Z₁·Z₂ over the pairs of finders.
    return _sum_of_pair_products(lone_counts) / (twice_count + 1)


def sadinle_interval(lone_counts: Floats, twice_count: float) -> Interval:
    """Return the interval of the number of failures that no finder found, for one ``Catch``.

    For two finders it is Sadinle's transformed logit interval (2009, Communications in Statistics:
    Simulation and Computation 38:1909-1924), extended by the delta method. Half a failure is added
    to each count, so that a count of 0 has an interval.

    Args:
        lone_counts: The number of failures that each finder alone found.
        twice_count: The number of failures that exactly two finders found.
    """
    corrected_alone = lone_counts + 0.5
    corrected_twice = twice_count + 0.5
    centre = _sum_of_pair_products(corrected_alone) / corrected_twice
    derivatives = (corrected_alone.sum() - corrected_alone) / (centre * corrected_twice)
    factor = exp(
        Z * sqrt(float((derivatives**2 * corrected_alone).sum()) + 1 / corrected_twice + 1 / centre)
    )
    return centre / factor - 0.5, centre * factor - 0.5


def lognormal_interval(catches: Sequence[Catch]) -> Interval:
    """Return the interval of the number of failures that no finder found, over several catches.

    It is Chao's interval on the logarithmic scale (1987, Biometrics 43:783-791). The variances of
    the catches follow from the delta method and are added up. Half a failure is added to both sums,
    so that a sum of 0 has an interval.

    Args:
        catches: The found failures, one catch for each mode and group of finders.
    """
    centre = 0.5
    variance = 0.5
    for catch in catches:
        lone_counts = catch.lone_counts
        corrected_twice = catch.twice_count + 1
        derivatives = (lone_counts.sum() - lone_counts) / corrected_twice
        missed_count = unseen_count(lone_counts, catch.twice_count)
        centre += missed_count
        variance += (
            float((derivatives**2 * lone_counts).sum())
            + missed_count**2 * catch.twice_count / corrected_twice**2
            + missed_count
        )
    factor = exp(Z * sqrt(log(1 + variance / centre**2)))
    # Only the lower end loses the added half failure again.
    return centre / factor - 0.5, centre * factor


def _sum_of_pair_products(lone_counts: Floats) -> float:
    """Return the sum, over pairs of finders, of the products of their lone counts."""
    return float((lone_counts.sum() ** 2 - (lone_counts**2).sum()) / 2)


def _withheld_reason(catches: Sequence[Catch], dependent: bool) -> NoInterval | None:
    """Return the reason for no interval and the number of failures found by several that it needs.

    The number is 0 for dependent finders, because more failures would not help.
    """
    if dependent:
        return NoInterval("dependent_finders", 0)
    caught_by_several = sum(int((catch.finder_counts > 1).sum()) for catch in catches)
    if caught_by_several < FEWEST_TWICE:
        return NoInterval("few_found_twice", FEWEST_TWICE)
    return None


def dependence(catches: Sequence[Catch], first: int, second: int) -> Dependence:
    """Test whether two finders find the same failures, among those that a third finder found.

    It is the test of Cochran (1954, Biometrics 10:417-451) and of Mantel and Haenszel (1959,
    Journal of the National Cancer Institute 22:719-748), with one 2 × 2 table for each catch.

    Args:
        catches: The found failures, by mode and group of finders.
        first: The index of one finder among all finders.
        second: The index of the other finder.
    """
    tables = [
        _pair_table(catch, first, second)
        for catch in catches
        if {first, second} < set(catch.finders)  # there is a third finder
    ]
    # A table with a single failure has no variance.
    compared = [table for table in tables if table.n > 1]
    deviation = sum(table.both - table.first * table.second / table.n for table in compared)
    variance = sum(
        table.first
        * (table.n - table.first)
        * table.second
        * (table.n - table.second)
        / (table.n * table.n * (table.n - 1))
        for table in compared
    )
    concordant_sum = sum(table.both * table.neither / table.n for table in compared)
    discordant_sum = sum(
        (table.first - table.both) * (table.second - table.both) / table.n for table in compared
    )
    return Dependence(
        n=sum(table.n for table in tables),
        odds_ratio=concordant_sum / discordant_sum if discordant_sum else None,
        p_value=erfc(abs(deviation) / sqrt(2 * variance)) if variance else None,
    )


class _PairTable(NamedTuple):
    """The number of failures that a third finder found, by the success of two finders."""

    n: int
    first: int
    second: int
    both: int
    neither: int


def _pair_table(catch: Catch, first: int, second: int) -> _PairTable:
    """Count the failures of a catch that a third finder found, by the success of two finders."""
    columns = [catch.finders.index(first), catch.finders.index(second)]
    caught_by_third = np.delete(catch.caught, columns, axis=1).any(axis=1)
    first_caught, second_caught = catch.caught[caught_by_third][:, columns].T
    return _PairTable(
        n=int(caught_by_third.sum()),
        first=int(first_caught.sum()),
        second=int(second_caught.sum()),
        both=int((first_caught & second_caught).sum()),
        neither=int((~first_caught & ~second_caught).sum()),
    )


class _CombinedTest(NamedTuple):
    """A test of all finders together; None if nothing can be tested.

    ``find_same_failures`` is True if they find the same failures more often than by chance.
    """

    p_value: float | None
    find_same_failures: bool | None


def _combined_test(
    catches: Sequence[Catch], finder_count: int, pair_p_values: Sequence[float | None]
) -> _CombinedTest:
    """Combine the tests of the pairs with score tests of all found failures.

    There is a score test for each pair and one for all pairs together. The latter detects failures
    that are hard for all finders. The p-values are combined after Liu and Xie (2020, Journal of the
    American Statistical Association 115:393-402), because the tests depend on each other.
    """
    scores, covariances = interaction_scores(catches, finder_count)
    tests = [*zip(scores, np.diag(covariances), strict=True), (scores.sum(), covariances.sum())]
    p_values = [
        erfc(abs(score) / sqrt(2 * variance)) for score, variance in tests if variance > _NO_SPREAD
    ]
    p_values += [p_value for p_value in pair_p_values if p_value is not None]
    if not p_values:
        return _CombinedTest(None, None)
    # The Cauchy combination. The tangent is infinite at 0 and 1, so p-values are moved inwards.
    mean_tangent = sum(
        tan((0.5 - min(max(p_value, 1e-15), 1 - 1e-6)) * pi) for p_value in p_values
    ) / len(p_values)
    return _CombinedTest(0.5 - atan(mean_tangent) / pi, bool(scores.sum() > 0))


def interaction_scores(catches: Sequence[Catch], finder_count: int) -> tuple[Floats, Floats]:
    """Return, for each pair of finders, how many more failures both found than expected.

    This is the score of the pair's interaction in a log-linear model of independent finders
    (Fienberg 1972, Biometrika 59:591-603). The covariances are conditional on the number of
    failures that each finder found. The finders' skills are estimated for each catch.

    Args:
        catches: The found failures, by mode and group of finders.
        finder_count: The number of finders.

    Returns:
        The scores by pair, in the order of ``combinations``, and their covariances.
    """
    pairs = list(combinations(range(finder_count), 2))
    scores = np.zeros(len(pairs))
    covariances = np.zeros((len(pairs), len(pairs)))
    for catch in catches:
        skills = _finder_skills(catch)
        if skills is None:
            continue
        pair_numbers = [pairs.index(pair) for pair in combinations(catch.finders, 2)]
        caught_count = len(catch.caught)
        first, second = np.array(list(combinations(range(len(skills)), 2))).T
        caught_by_both = (catch.caught[:, first] & catch.caught[:, second]).sum(axis=0)
        expected, covariance = _moments_of_pairs(skills, first, second)
        scores[pair_numbers] += caught_by_both - caught_count * expected
        covariances[np.ix_(pair_numbers, pair_numbers)] += caught_count * covariance
    return scores, covariances


def _moments_of_pairs(
    skills: Floats, first: NDArray[np.int_], second: NDArray[np.int_]
) -> tuple[Floats, Floats]:
    """Return the chances that both finders of a pair find a failure, and their covariances.

    The covariances are conditional on the number of failures that each finder found. ``skills`` has
    the share of failures that each finder finds, ``first`` and ``second`` the finders of each pair.
    """
    # A row for each set of finders, with 1 for these finders. The first row is left out, because
    # failures that no finder found are not observed.
    finder_sets = np.array(list(product((0, 1), repeat=len(skills)))[1:])
    has_both = finder_sets[:, first] * finder_sets[:, second]
    probabilities = np.where(finder_sets, skills, 1 - skills).prod(axis=1)
    probabilities /= probabilities.sum()
    finder_deviations = finder_sets - probabilities @ finder_sets
    pair_deviations = has_both - probabilities @ has_both
    cross_covariance = pair_deviations.T @ (probabilities[:, None] * finder_deviations)
    finder_covariance = finder_deviations.T @ (probabilities[:, None] * finder_deviations)
    pair_covariance = pair_deviations.T @ (probabilities[:, None] * pair_deviations)
    # The covariance that the numbers of the single finders do not explain.
    residual_covariance = (
        pair_covariance
        - cross_covariance
        @ np.linalg.pinv(finder_covariance, rcond=_NO_SPREAD)
        @ cross_covariance.T
    )
    return probabilities @ has_both, residual_covariance


def _finder_skills(catch: Catch) -> Floats | None:
    """Estimate the share of failures that each finder finds, by maximum likelihood.

    Finders are taken as independent. The result is None if the estimate is impossible or too
    expensive.
    """
    caught_count = len(catch.caught)
    counts_by_finder = catch.caught.sum(axis=0).astype(np.float64)
    if not 2 < len(counts_by_finder) <= _MOST_FINDERS or counts_by_finder.sum() <= caught_count:
        return None
    low = float(caught_count)
    high = _MOST_FAILURES * caught_count
    # Bisect for the number of all failures, of which the finders would find ``caught_count``.
    while high / low > 1 + 1e-12:
        failure_count = sqrt(low * high)
        expected_caught = failure_count * (1 - prod(1 - counts_by_finder / failure_count))
        if expected_caught < caught_count:
            low = failure_count
        else:
            high = failure_count
    return np.asarray(np.minimum(counts_by_finder / low, 1.0))
