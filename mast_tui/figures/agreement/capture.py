"""Estimates of the failures that all finders missed: capture and recapture.

A unit is trace × mode. A finder has looked at it who has a verdict on it, and has found it by
saying present. From how often finders found the same failures follows how many none of them found,
as from marked fish that are caught again. That holds where

- finders are independent: that one found a failure says nothing of whether another does;
- each failure of a mode is as easy to find as any other of it (finders and modes may differ);
- what is found is a failure: what was settled as absent is left out, everything else that somebody
  calls present is taken for one.

Failures that are hard for all make finders alike and the number too low; wrong calls, which others
do not share, make it too high. ``scripts/simulate_missed.py`` tells how often the intervals hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import atan, ceil, erfc, exp, floor, log, pi, prod, sqrt, tan
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.coefficients import Coefficient, Withheld
from mast_tui.figures.agreement.verdict_table import PRESENT, VerdictArray, numbered_rows
from mast_tui.figures.bootstrap import Interval
from mast_tui.figures.intervals import Z
from mast_tui.figures.record import Figure, FigureScope
from mast_tui.figures.significance import benjamini_hochberg

FEWEST_TWICE: Final = 5
"""Failures found by two or more below which no interval is given."""

ALPHA: Final = 0.05
"""Below it finders are called dependent."""

_NO_SPREAD: Final = 1e-9
_MOST_FINDERS: Final = 10
_MOST_FAILURES: Final = 1e6
"""So many times those found."""


@dataclass(frozen=True, slots=True)
class Capture:
    """The result of capture and recapture over all modes.

    ``finders_dependent`` is True if the failures that one finder finds depend on those of another,
    None with two finders or if a third found too little. ``finders_alike`` is True if several
    finders found more of the same failures than expected by chance, so that more were missed; None
    if nothing could be tested.
    """

    finders: tuple[str, ...]
    finders_dependent: bool | None
    finders_alike: bool | None
    figures: tuple[Figure, ...]


class Dependence(NamedTuple):
    """A test of whether two finders find the same failures, among ``n`` that a third found.

    With an ``odds_ratio`` above 1 each finds more often what the other finds. It is None if they
    never differ; ``p_value`` is None if there is nothing to test.
    """

    n: int
    odds_ratio: float | None
    p_value: float | None


@dataclass(frozen=True, slots=True)
class Catch:
    """The failures of one mode among ``n`` units that just these finders have looked at.

    ``finders`` are their numbers; ``caught`` is found failures × these finders.
    """

    n: int
    finders: tuple[int, ...]
    caught: NDArray[np.bool_]

    @property
    def times(self) -> NDArray[np.int_]:
        """The number of finders of each failure."""
        times: NDArray[np.int_] = self.caught.sum(axis=1)
        return times

    @property
    def alone(self) -> NDArray[np.float64]:
        """By finder, the failures that no other finder found."""
        return np.asarray(self.caught[self.times == 1].sum(axis=0), dtype=np.float64)

    @property
    def twice(self) -> int:
        """The number of failures that just two found."""
        return int((self.times == 2).sum())


def capture(
    names: Sequence[str],
    modes: Mapping[str, int],
    verdicts: VerdictArray,
    *,
    suggested: NDArray[np.bool_],
    settled_absent: NDArray[np.bool_],
    intervals: bool = True,
    taxonomy: str = "",
) -> Capture:
    """Estimate the number of missed failures, for each mode and over all.

    Args:
        names: The finders.
        modes: The columns of the modes, by code.
        verdicts: Finders × traces × modes.
        suggested: Finders × traces: True if a judge's suggestions were on screen.
        settled_absent: Traces × modes: True if the mode was adjudicated as absent.
        intervals: Whether to compute intervals.
        taxonomy: The taxonomy of the modes.
    """
    rated = verdicts >= 0
    present = verdicts == PRESENT
    looked = rated & ~suggested[:, :, None]
    caught = present & looked & ~settled_absent
    groups = {code: tuple(_groups(looked[:, :, m], caught[:, :, m])) for code, m in modes.items()}
    every = tuple(group for of_mode in groups.values() for group in of_mode)
    pairs = list(combinations(range(len(names)), 2)) if len(names) > 2 else []
    tests = [dependence(every, first, second) for first, second in pairs]
    p_value, alike = _together(every, len(names), [test.p_value for test in tests])
    dependent = None if p_value is None else p_value < ALPHA

    def figures() -> Iterator[Figure]:
        for code, of_mode in groups.items():
            scope = FigureScope("missed", taxonomy, mode=code)
            yield from missed(of_mode, scope, dependent=bool(dependent), intervals=intervals)
        pooled = FigureScope("missed_pooled", taxonomy)
        yield from missed(every, pooled, dependent=bool(dependent), intervals=intervals)
        adjusted = benjamini_hochberg([test.p_value for test in tests])
        for pair, test, p_adjusted in zip(pairs, tests, adjusted, strict=True):
            scope = FigureScope(
                "missed_pair", taxonomy, subject=tuple(names[number] for number in pair)
            )
            yield scope.number("n", test.n)
            yield scope.number("odds_ratio", test.odds_ratio, n=test.n)
            yield scope.number("p_value", test.p_value, n=test.n)
            yield scope.number("p_adjusted", p_adjusted, n=test.n)
        yield FigureScope("missed_together", taxonomy).number("p_value", p_value)
        left_out = FigureScope("missed_left_out", taxonomy)
        for name, finder_rated, with_judge in zip(names, rated, suggested, strict=True):
            units = int((finder_rated & with_judge[:, None]).sum())
            yield left_out.number("with_suggestions", units, annotator=name)
        absent = int((present.any(axis=0) & settled_absent).sum())
        yield left_out.number("settled_absent", absent)

    return Capture(tuple(names), dependent, alike, tuple(figures()))


def _groups(looked: NDArray[np.bool_], caught: NDArray[np.bool_]) -> Iterator[Catch]:
    """Yield the failures of one mode by who looked for them, where these are two or more.

    Args:
        looked: Finders × traces.
        caught: The same.
    """
    kinds = numbered_rows(looked.T.astype(np.int8))
    for kind in range(kinds.max(initial=-1) + 1):
        same = kinds == kind
        finders = np.flatnonzero(looked[:, same.argmax()])
        if len(finders) > 1:
            units = caught[np.ix_(finders, same)].T
            yield Catch(len(units), tuple(finders.tolist()), units[units.any(axis=1)])


def missed(
    groups: Sequence[Catch], scope: FigureScope, *, dependent: bool = False, intervals: bool = True
) -> Iterator[Figure]:
    """Estimate the number of missed failures.

    Args:
        groups: The found failures, by mode and by set of finders. The missed ones are estimated in
            each group and added up, so that modes may differ in difficulty.
        scope: The scope of the figures.
        dependent: Whether finders are dependent, so that no interval would hold.
        intervals: Whether to compute intervals.
    """
    n = sum(group.n for group in groups)
    total = sum(len(group.caught) for group in groups)
    # No more are missed than there are units left that could be one.
    value = sum(
        min(unseen(group.alone, group.twice), group.n - len(group.caught)) for group in groups
    )
    figure = share = Coefficient(undefined="no_variance" if n else "no_overlap")
    if total:
        ends: Interval | None = None
        shares: Interval | None = None
        withheld = _withheld(groups, dependent) if intervals else None
        if intervals and withheld is None:
            low, high = (
                sadinle_interval(groups[0].alone, groups[0].twice)
                if len(groups) == 1
                else lognormal_interval(groups)
            )
            # Failures are whole, so ends are; and the figure lies between them.
            least = float(min(max(0, floor(low)), value))
            most = float(max(min(ceil(high), n - total), value))
            ends = (least, most)
            shares = (total / (total + most), total / (total + least))
        figure = Coefficient(value, ci=ends, withheld=withheld)
        share = Coefficient(total / (total + value), ci=shares, withheld=withheld)
    yield scope.number("n", n)
    yield scope.number("found", total, n=n)
    once = sum(int((group.times == 1).sum()) for group in groups)
    yield scope.number("found_once", once, n=n)
    yield scope.number("found_twice", sum(group.twice for group in groups), n=n)
    yield scope.estimate("missed", figure, n=n)
    yield scope.estimate("share_found", share, n=n)


def unseen(alone: NDArray[np.float64], twice: float) -> float:
    """Estimate the number of failures that no finder found.

    (f₁² − Σ Z²) / (2 (f₂ + 1)), with f₁ found by one finder and f₂ by two, and Z of each finder
    alone: Chao's estimator for finders of different skill (Chao 1989, Biometrics 45:427-438). With
    two finders it is Chapman's (1951, University of California Publications in Statistics
    1:131-160), (n₁ + 1)(n₂ + 1)/(m + 1) − 1, less the found failures.

    Args:
        alone: For each finder, the number of failures that only this finder found.
        twice: The number of failures that exactly two finders found.
    """
    return _products(alone) / (twice + 1)


def sadinle_interval(alone: NDArray[np.float64], twice: float) -> Interval:
    """Return the interval of the number of failures that no finder found, in one group.

    For two finders it is Sadinle's transformed logit interval (2009, Communications in Statistics:
    Simulation and Computation 38:1909-1924): half a failure is added to each count, so that a count
    of 0 leaves an interval. For more finders it is the same by the delta method.

    Args:
        alone: For each finder, the number of failures that only this finder found.
        twice: The number of failures that exactly two finders found.
    """
    by_finder = alone + 0.5
    both = twice + 0.5
    middle = _products(by_finder) / both
    pulls = (by_finder.sum() - by_finder) / (middle * both)
    factor = exp(Z * sqrt(float((pulls**2 * by_finder).sum()) + 1 / both + 1 / middle))
    return middle / factor - 0.5, middle * factor - 0.5


def lognormal_interval(groups: Sequence[Catch]) -> Interval:
    """Give the interval of what nobody found, over several groups.

    Chao's, on the scale of the logarithm (1987, Biometrics 43:783-791): the variances of the
    groups by the delta method, added up; with half a failure, as above.

    Args:
        groups: What was found, by mode and by who looked.
    """
    middle = 0.5
    variance = 0.5
    for group in groups:
        alone = group.alone
        both = group.twice + 1
        pulls = (alone.sum() - alone) / both
        left = unseen(alone, group.twice)
        middle += left
        variance += float((pulls**2 * alone).sum()) + left**2 * group.twice / both**2 + left
    factor = exp(Z * sqrt(log(1 + variance / middle**2)))
    return middle / factor - 0.5, middle * factor


def _products(alone: NDArray[np.float64]) -> float:
    """Return the failures of one finder alone times those of another, over all pairs."""
    return float((alone.sum() ** 2 - (alone**2).sum()) / 2)


def _withheld(groups: Sequence[Catch], dependent: bool) -> tuple[Withheld, int] | None:
    if dependent:
        return "dependent_finders", 0
    often = sum(int((group.times > 1).sum()) for group in groups)
    return ("few_found_twice", FEWEST_TWICE) if often < FEWEST_TWICE else None


def dependence(groups: Sequence[Catch], first: int, second: int) -> Dependence:
    """Test whether two finders find the same failures, among those that a third one found.

    It is the test of Cochran (1954, Biometrics 10:417-451) and of Mantel and Haenszel (1959,
    Journal of the National Cancer Institute 22:719-748) over the groups, with their common odds
    ratio.

    Args:
        groups: The found failures, by mode and by set of finders.
        first: The number of a finder.
        second: The number of another finder.
    """
    count = 0
    off = 0.0
    variance = 0.0
    alike = 0.0
    unlike = 0.0
    for group in groups:
        if not {first, second} < set(group.finders):
            continue
        columns_of_pair = [group.finders.index(first), group.finders.index(second)]
        of_third = np.delete(group.caught, columns_of_pair, axis=1).any(axis=1)
        n = int(of_third.sum())
        count += n
        if n < 2:
            continue
        a, b = group.caught[of_third][:, columns_of_pair].T
        both = int((a & b).sum())
        neither = int((~a & ~b).sum())
        rows = int(a.sum())
        columns = int(b.sum())
        off += both - rows * columns / n
        variance += rows * (n - rows) * columns * (n - columns) / (n * n * (n - 1))
        alike += both * neither / n
        unlike += (rows - both) * (columns - both) / n
    return Dependence(
        count,
        alike / unlike if unlike else None,
        erfc(abs(off) / sqrt(2 * variance)) if variance else None,
    )


def _together(
    groups: Sequence[Catch], finders: int, of_pairs: Sequence[float | None]
) -> tuple[float | None, bool | None]:
    """Combine the tests of the pairs with score tests of all found failures.

    There is a score test for each pair and one for all pairs together, which detects failures that
    are hard for all finders. The p-values are combined after Liu and Xie (2020, Journal of the
    American Statistical Association 115:393-402), which holds for dependent tests too.
    """
    scores, spread = interaction_scores(groups, finders)
    tests = [*zip(scores, np.diag(spread), strict=True), (scores.sum(), spread.sum())]
    p_values = [erfc(abs(score) / sqrt(2 * var)) for score, var in tests if var > _NO_SPREAD]
    p_values += [p for p in of_pairs if p is not None]
    if not p_values:
        return None, None
    # At 0 and 1 the tangent has no end.
    joined = sum(tan((0.5 - min(max(p, 1e-15), 1 - 1e-6)) * pi) for p in p_values) / len(p_values)
    return 0.5 - atan(joined) / pi, bool(scores.sum() > 0)


def interaction_scores(
    groups: Sequence[Catch], finders: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the scores of the interactions of each two finders in log-linear models.

    A score is the number of failures that both found, less the number expected of independent
    finders (Fienberg 1972, Biometrika 59:591-603). The covariances are those of the counts, given
    the number of failures that each finder found.

    Args:
        groups: The found failures, by mode and by set of finders; each has its own skills.
        finders: The number of finders.

    Returns:
        The scores by pair, in the order of ``combinations``, and their covariances.
    """
    pairs = list(combinations(range(finders), 2))
    scores = np.zeros(len(pairs))
    spread = np.zeros((len(pairs), len(pairs)))
    for group in groups:
        skills = _skills(group)
        if skills is None:
            continue
        cells = np.array(list(product((0, 1), repeat=len(skills)))[1:])
        couples = np.array(list(combinations(range(len(skills)), 2)))
        both = cells[:, couples[:, 0]] * cells[:, couples[:, 1]]
        p = np.where(cells, skills, 1 - skills).prod(axis=1)
        p /= p.sum()
        off_x = cells - p @ cells
        off_z = both - p @ both
        across = off_z.T @ (p[:, None] * off_x)
        within = off_x.T @ (p[:, None] * off_x)
        alone = off_z.T @ (p[:, None] * off_z)
        places = [pairs.index(pair) for pair in combinations(group.finders, 2)]
        n = len(group.caught)
        seen = (group.caught[:, couples[:, 0]] & group.caught[:, couples[:, 1]]).sum(axis=0)
        scores[places] += seen - n * (p @ both)
        left = alone - across @ np.linalg.pinv(within, rcond=_NO_SPREAD) @ across.T
        spread[np.ix_(places, places)] += n * left
    return scores, spread


def _skills(group: Catch) -> NDArray[np.float64] | None:
    """Estimate the share of failures that each independent finder finds, by maximum likelihood.

    None with two finders, with too many, or if no failure was found by two.
    """
    n = len(group.caught)
    each = group.caught.sum(axis=0).astype(np.float64)
    if not 2 < len(each) <= _MOST_FINDERS or each.sum() <= n:
        return None
    low = float(n)
    high = _MOST_FAILURES * n
    while high / low > 1 + 1e-12:
        # All failures, of which so many were found by nobody.
        whole = sqrt(low * high)
        if whole * (1 - prod(1 - each / whole)) < n:
            low = whole
        else:
            high = whole
    skills: NDArray[np.float64] = np.minimum(each / low, 1.0)
    return skills
