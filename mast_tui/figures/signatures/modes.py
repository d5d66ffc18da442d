"""The modes of one group in failed and in successful traces, also within each model.

Over several models a mode may look harmful, or harmless, only because one model fails more often
and shows the mode more often (Simpson's paradox). Stratified figures compare only traces of the
same model.

The risk ratio is Mantel and Haenszel's, and the variance of its logarithm is that of Greenland and
Robins (Biometrics 41, 1985, 55-68). The risk difference has the same weights and the score interval
of Miettinen and Nurminen (Statistics in Medicine 4, 1985, 213-226): all common differences that the
score test does not reject. Unlike Sato's interval, it holds for few strata of 20 traces as well as
for many sparse ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import exp, log, pi, sqrt
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import Interval
from mast_tui.figures.intervals import (
    LEAST_CASES,
    MARGIN,
    Doubt,
    Effective,
    Weighed,
    Z,
    bisected,
    effective_cases,
    katz,
    more_for,
    newcombe,
    rate,
    to_resolve,
    why_no_difference,
)
from mast_tui.figures.record import OUTCOMES, Figure, FigureScope, FigureTable
from mast_tui.figures.signatures.model import (
    ABSENT,
    ALL,
    FAILED,
    PRESENT,
    SUCCEEDED,
    UNRESOLVED,
    Flags,
    Rules,
    SignatureInput,
)
from mast_tui.figures.significance import MANY, LogFactorials, benjamini_hochberg, fisher_exact

Severity = Literal["fatal", "benign", "unclear"]
Why = Literal[
    "more_in_failed", "seen_in_successes", "too_few_traces", "unresolved", "not_told_apart"
]


Weights = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """The numbers of traces by mode.

    Attributes:
        present: The number of traces with each mode.
        judged: The number of traces that were judged on each mode.
        weights: Modes × (traces with the mode, without it) × (sum of weights, sum of squared
            weights); None if traces have equal weights.
        unresolved: The number of traces on which annotators differ; empty for none.
        doubtful: The sums of the weights of these traces; empty for none.
    """

    present: tuple[int, ...]
    judged: tuple[int, ...]
    weights: Weights | None = None
    unresolved: tuple[int, ...] = ()
    doubtful: tuple[float, ...] = ()

    @classmethod
    def from_verdicts(cls, verdicts: NDArray[np.uint8], weights: Weights | None = None) -> Counts:
        """Count the verdicts of each mode.

        Args:
            verdicts: Traces × modes.
            weights: The number of traces that each trace represents; None if all are equal.
        """
        # (Present, absent) × traces × modes.
        has_answer = np.stack([verdicts == PRESENT, verdicts == ABSENT])
        present, absent = has_answer.sum(axis=1)
        unresolved = verdicts == UNRESOLVED
        weight_sums = None
        unresolved_weights = unresolved.sum(axis=0, dtype=np.float64)
        if weights is not None:
            # Modes × (present, absent) × (sum of weights, sum of squared weights).
            weight_sums = np.einsum("pt,stm->msp", np.stack([weights, weights**2]), has_answer)
            unresolved_weights = weights @ unresolved
        return cls(
            tuple(present.tolist()),
            tuple((present + absent).tolist()),
            weight_sums,
            tuple(unresolved.sum(axis=0).tolist()),
            tuple(unresolved_weights.tolist()),
        )

    def of_mode(self, mode: int) -> tuple[Weighed, Weighed]:
        """Return the number and weights of traces with a mode, and of those judged without it."""
        present = self.present[mode]
        absent = self.judged[mode] - present
        # With weights of 1, both sums are the number of traces.
        if self.weights is None:
            return Weighed(present, present, present), Weighed(absent, absent, absent)
        with_mode, without_mode = self.weights[mode].tolist()
        return Weighed(present, *with_mode), Weighed(absent, *without_mode)

    def effective(self, mode: int) -> Effective:
        """Return the effective numbers of traces with a mode, and of all traces judged on it."""
        return effective_cases(*self.of_mode(mode))

    def doubt(self, mode: int) -> Doubt | None:
        """Return the number of unresolved traces of a mode and the bounds of its share, or None."""
        if not self.unresolved or not self.unresolved[mode]:
            return None
        present_weight, absent_weight = (side.weight for side in self.of_mode(mode))
        unresolved_weight = self.doubtful[mode]
        total_weight = present_weight + absent_weight + unresolved_weight
        return Doubt(
            self.unresolved[mode],
            (present_weight / total_weight, (present_weight + unresolved_weight) / total_weight),
        )

    def rate(self, mode: int, scope: FigureScope, condition: str = "") -> Figure:
        """Return the share of traces with a mode among those judged on it, as a figure.

        Args:
            mode: The index of the mode.
            scope: The scope of the figure.
            condition: The condition of the figure, such as ``failed``.
        """
        present = self.present[mode]
        judged = self.judged[mode]
        return rate(scope, condition, present, judged, self.effective(mode), self.doubt(mode))

    def bounds(self, mode: int) -> Interval | None:
        """Return the bounds of a mode's share if too many verdicts are unresolved, or None."""
        doubt = self.doubt(mode)
        needs = doubt is not None and to_resolve(doubt.unresolved, self.judged[mode])
        return doubt.bounds if doubt is not None and needs else None

    def more_labels(self, mode: int) -> int | None:
        """Return the number of further labels that would narrow a share's interval to ± ``MARGIN``.

        The result is None if the share has bounds instead of an interval.
        """
        if self.bounds(mode) is not None:
            return None
        hits, cases = self.effective(mode)
        # With unequal weights, a trace adds less than one effective case.
        return more_for(hits, cases, MARGIN, each=cases / max(self.judged[mode], 1))


def differences(
    first: Counts, second: Counts, sides: tuple[str, str], scopes: Sequence[FigureScope]
) -> list[tuple[Figure, ...]]:
    """Compare the share of each mode on two sides, such as failed and succeeded traces.

    Args:
        first: The counts of one side.
        second: The counts of the other side.
        sides: The names of both sides, for reasons.
        scopes: The scope of the figures of each mode.

    Returns:
        For each mode the difference of the shares, their ratio, the p-value of Fisher's test, and
        the p-value adjusted over the modes.
    """
    largest_n = max(map(sum, zip(first.judged, second.judged, strict=True)), default=0)
    # The tests share a table of logarithms if it is not too large.
    log_factorials = LogFactorials(largest_n) if largest_n <= MANY else None
    p_values = [
        fisher_exact(
            first.present[mode],
            first.judged[mode],
            second.present[mode],
            second.judged[mode],
            log_factorials,
        )
        for mode in range(len(first.present))
    ]
    adjusted = benjamini_hochberg(p_values)
    figures: list[tuple[Figure, ...]] = []
    for mode, scope in enumerate(scopes):
        reason = _why_no_ratio(first, second, mode, sides)
        # A side without cases has neither p-value nor share.
        is_undefined = p_values[mode] is None
        if is_undefined:
            difference = scope.number("difference", None, reason=reason)
        else:
            difference = _difference(first, second, mode, scope)
        if reason:
            ratio = scope.number("risk_ratio", None, reason=reason)
        else:
            ratio = _ratio(first, second, mode, scope, difference, f"none_in_{sides[0]}")
        test_reason = reason if is_undefined else ""
        figures.append(
            (
                difference,
                ratio,
                scope.number("p_value", p_values[mode], reason=test_reason),
                scope.number("p_adjusted", adjusted[mode], reason=test_reason),
            )
        )
    return figures


def _difference(first: Counts, second: Counts, mode: int, scope: FigureScope) -> Figure:
    """Return the difference of one mode's shares on two sides that both have cases."""
    first_hits, first_cases = first.effective(mode)
    second_hits, second_cases = second.effective(mode)
    first_share = first_hits / first_cases
    second_share = second_hits / second_cases
    first_bounds = first.bounds(mode)
    second_bounds = second.bounds(mode)
    if first_bounds is not None or second_bounds is not None:
        first_low, first_high = first_bounds or (first_share, first_share)
        second_low, second_high = second_bounds or (second_share, second_share)
        return scope.figure(
            "difference",
            Figure(
                value=first_share - second_share,
                bounds=(first_low - second_high, first_high - second_low),
                reason="unresolved",
            ),
        )
    hit_count = first.present[mode] + second.present[mode]
    reason = why_no_difference(hit_count, (first.judged[mode], second.judged[mode]))
    return scope.figure(
        "difference",
        Figure(
            value=first_share - second_share,
            interval=None
            if reason
            else newcombe(first_hits, first_cases, second_hits, second_cases),
            reason=reason or "",
            needs=LEAST_CASES if reason else None,
        ),
    )


def _ratio(
    first: Counts,
    second: Counts,
    mode: int,
    scope: FigureScope,
    difference: Figure,
    no_hits_reason: str,
) -> Figure:
    """Return the ratio of one mode's shares on two sides; the second share is above 0.

    The ratio has no interval if the ``difference`` has none, or for the ``no_hits_reason`` if the
    first share is 0.
    """
    first_hits, first_cases = first.effective(mode)
    second_hits, second_cases = second.effective(mode)
    ends = katz(first_hits, first_cases, second_hits, second_cases)
    return scope.figure(
        "risk_ratio",
        Figure(
            value=(first_hits / first_cases) / (second_hits / second_cases),
            interval=None if difference.reason else ends,
            reason=no_hits_reason if ends is None else difference.reason,
            needs=difference.needs,
        ),
    )


def _why_no_ratio(first: Counts, second: Counts, mode: int, sides: tuple[str, str]) -> str:
    """Return the reason why the shares of a mode have no ratio; empty if they have one."""
    first_cases = first.judged[mode]
    second_cases = second.judged[mode]
    if not first_cases and not second_cases:
        return "not_judged"
    if not first_cases or not second_cases:
        return f"no_{sides[1] if first_cases else sides[0]}"
    if not first.present[mode] and not second.present[mode]:
        return "never_seen"
    return "" if second.present[mode] else f"none_in_{sides[1]}"


def severity(mode: FigureTable, rules: Rules) -> tuple[Severity, Why]:
    """Return the class of a mode in a group of traces, and the reason; see ``docs/report.md``.

    Args:
        mode: The figures of the mode.
        rules: The limits of the classes.
    """
    failed, succeeded = (mode.find("rate", side) for side in OUTCOMES)
    difference = mode["difference"]
    has_few_traces = min(failed.n or 0, succeeded.n or 0) < rules.least
    if has_few_traces or difference.value is None:
        return "unclear", "too_few_traces"
    if difference.reason == "unresolved":
        return "unclear", "unresolved"
    adjusted_p_value = mode.value("p_adjusted")
    if difference.value > 0 and adjusted_p_value is not None and adjusted_p_value < rules.alpha:
        return "fatal", "more_in_failed"
    seen_in_successes = (succeeded.count or 0) >= rules.least
    if seen_in_successes and difference.high is not None and difference.high <= rules.margin:
        return "benign", "seen_in_successes"
    return "unclear", "not_told_apart"


def mode_figures(
    everything: Counts,
    failed: Counts,
    succeeded: Counts,
    trace_count: int,
    unsure: Sequence[int],
    scopes: Sequence[FigureScope],
) -> Iterator[Figure]:
    """Yield the figures of every mode of one group.

    Args:
        everything: The counts over all traces.
        failed: The counts over failed traces.
        succeeded: The counts over successful traces.
        trace_count: The number of traces.
        unsure: The number of unsure verdicts on each mode.
        scopes: The scope of the figures of each mode.
    """
    comparisons = differences(failed, succeeded, OUTCOMES, scopes)
    for mode, scope in enumerate(scopes):
        succeeded_with, succeeded_without = succeeded.of_mode(mode)
        failed_with, failed_without = failed.of_mode(mode)
        sides = (succeeded, failed)
        yield everything.rate(mode, scope, "all")
        yield failed.rate(mode, scope, "failed")
        yield succeeded.rate(mode, scope, "succeeded")
        yield _success_share(succeeded_with, failed_with, sides, mode, scope, "success_if_present")
        yield _success_share(
            succeeded_without, failed_without, sides, mode, scope, "success_if_absent"
        )
        yield scope.number("unsure", unsure[mode])
        yield scope.number("open", trace_count - everything.judged[mode] - unsure[mode])
        yield scope.number(
            "unresolved", everything.unresolved[mode] if everything.unresolved else 0
        )
        yield scope.number("more_labels", everything.more_labels(mode))
        yield from comparisons[mode]


def _success_share(
    hits: Weighed,
    misses: Weighed,
    sides: tuple[Counts, Counts],
    mode: int,
    scope: FigureScope,
    condition: str,
) -> Figure:
    """Return the share of successes among the traces with a mode, or among those without it.

    ``hits`` are these traces that succeeded, ``misses`` those that failed. ``sides`` has the counts
    over all succeeded and over all failed traces. The bounds add the traces on which annotators
    differ: the lower bound those that failed, the upper bound those that succeeded.
    """
    succeeded, failed = sides
    trace_count = hits.n + misses.n
    doubtful_succeeded = succeeded.doubtful[mode] if succeeded.doubtful else 0.0
    doubtful_failed = failed.doubtful[mode] if failed.doubtful else 0.0
    if not doubtful_succeeded and not doubtful_failed:
        return rate(scope, condition, hits.n, trace_count, effective_cases(hits, misses))
    total_weight = hits.weight + misses.weight
    low = hits.weight / (total_weight + doubtful_failed) if total_weight + doubtful_failed else 0.0
    high = (
        (hits.weight + doubtful_succeeded) / (total_weight + doubtful_succeeded)
        if total_weight + doubtful_succeeded
        else 1.0
    )
    doubt = Doubt(succeeded.unresolved[mode] + failed.unresolved[mode], (low, high))
    effective = effective_cases(hits, misses) if trace_count else (0.0, 0.0)
    return rate(scope, condition, hits.n, trace_count, effective, doubt)


_HALVINGS: Final = 40

Floats = NDArray[np.float64]


class Stratum(NamedTuple):
    """The traces of one model: those with a mode and those judged on it, by outcome."""

    failed_hits: int
    failed_cases: int
    succeeded_hits: int
    succeeded_cases: int

    @property
    def hits(self) -> int:
        """The number of traces with the mode."""
        return self.failed_hits + self.succeeded_hits

    @property
    def cases(self) -> int:
        """The number of traces judged on the mode."""
        return self.failed_cases + self.succeeded_cases


def stratified_figures(
    inputs: SignatureInput, is_counted: Flags, scopes: Sequence[FigureScope]
) -> list[Figure]:
    """Compare failed and successful traces within each model, and join the models' differences.

    Each model is a stratum. The result is empty for fewer than two models or for a report with
    groups.

    Args:
        inputs: The input of the report.
        is_counted: A mask of the traces that count.
        scopes: The scope of the figures of each mode.
    """
    if inputs.by != ALL or inputs.stratum_numbers is None or len(inputs.stratum_names) < 2:
        return []
    counts_by_stratum: list[tuple[Counts, Counts]] = []
    for number in range(len(inputs.stratum_names)):
        in_stratum = is_counted & (inputs.stratum_numbers == number)
        failed, succeeded = (
            Counts.from_verdicts(inputs.verdicts[in_stratum & (inputs.outcome == outcome)])
            for outcome in (FAILED, SUCCEEDED)
        )
        counts_by_stratum.append((failed, succeeded))
    figures = []
    for mode, scope in enumerate(scopes):
        strata = [
            Stratum(
                failed.present[mode],
                failed.judged[mode],
                succeeded.present[mode],
                succeeded.judged[mode],
            )
            for failed, succeeded in counts_by_stratum
        ]
        unresolved = sum(
            counts.unresolved[mode] for counts in chain.from_iterable(counts_by_stratum)
        )
        judged = sum(stratum.cases for stratum in strata)
        figures += mantel_haenszel(strata, scope, needs=to_resolve(unresolved, judged))
    left_out = int(np.count_nonzero(is_counted & (inputs.stratum_numbers < 0)))
    scope_without_mode = replace(scopes[0], mode="")  # the scopes differ only in their modes
    figures.append(scope_without_mode.number("unknown_model", left_out))
    return figures


def mantel_haenszel(
    strata: Sequence[Stratum], scope: FigureScope, *, needs: int = 0
) -> list[Figure]:
    """Return the common risk difference and risk ratio of one mode over strata.

    In each stratum the share of the mode is compared between failed and succeeded traces. Strata
    without traces on one side are left out.

    Args:
        strata: The counts of each stratum.
        scope: The scope of the figures.
        needs: The number of disagreements to resolve before the figures have intervals.
    """
    compared = [stratum for stratum in strata if stratum.failed_cases and stratum.succeeded_cases]
    n = sum(stratum.cases for stratum in compared)
    strata_figure = scope.number("strata", len(compared), n=n)
    if not compared:
        return [
            strata_figure,
            scope.number("difference", None, n=n, reason="no_strata"),
            scope.number("risk_ratio", None, n=n, reason="no_strata"),
        ]
    case_counts = (
        sum(stratum.failed_cases for stratum in compared),
        sum(stratum.succeeded_cases for stratum in compared),
    )
    few_cases_reason = why_no_difference(sum(stratum.hits for stratum in compared), case_counts)
    reason = "unresolved" if needs else few_cases_reason or ""
    common_difference, ends = _common_difference(compared)
    difference = scope.figure(
        "difference",
        Figure(
            value=common_difference,
            interval=None if reason else ends,
            n=n,
            reason=reason,
            needs=needs or (LEAST_CASES if reason else None),
        ),
    )
    return [strata_figure, difference, _common_ratio(compared, scope, difference)]


def _common_ratio(strata: Sequence[Stratum], scope: FigureScope, difference: Figure) -> Figure:
    """Return the common risk ratio of strata (Mantel and Haenszel 1959).

    It has an interval if the difference has one.
    """
    n = difference.n
    failed_sum = sum(
        stratum.failed_hits * stratum.succeeded_cases / stratum.cases for stratum in strata
    )
    succeeded_sum = sum(
        stratum.succeeded_hits * stratum.failed_cases / stratum.cases for stratum in strata
    )
    if not succeeded_sum:
        reason = "none_in_succeeded" if failed_sum else "never_seen"
        return scope.number("risk_ratio", None, n=n, reason=reason)
    interval = None
    if failed_sum and not difference.reason:
        log_variance = sum(
            (
                stratum.failed_cases * stratum.succeeded_cases * stratum.hits
                - stratum.failed_hits * stratum.succeeded_hits * stratum.cases
            )
            / stratum.cases**2
            for stratum in strata
        ) / (failed_sum * succeeded_sum)
        log_ratio = log(failed_sum / succeeded_sum)
        half_width = Z * sqrt(log_variance)
        interval = (exp(log_ratio - half_width), exp(log_ratio + half_width))
    return scope.figure(
        "risk_ratio",
        Figure(
            value=failed_sum / succeeded_sum,
            interval=interval,
            n=n,
            reason=difference.reason or ("" if failed_sum else "none_in_failed"),
            needs=difference.needs,
        ),
    )


def _common_difference(strata: Sequence[Stratum]) -> tuple[float, Interval]:
    """Return the common difference of the shares of all strata, with its score interval."""
    hits, cases, other_hits, other_cases = np.array(strata, dtype=np.float64).T
    weights = cases * other_cases / (cases + other_cases)
    estimate = float((weights * (hits / cases - other_hits / other_cases)).sum() / weights.sum())

    def is_rejected(difference: float) -> bool:
        """Test whether the data contradict a common difference."""
        shares, other_shares = _restricted_shares(hits, cases, other_hits, other_cases, difference)
        variance = (
            (shares * (1 - shares) / cases + other_shares * (1 - other_shares) / other_cases)
            * (cases + other_cases)
            / (cases + other_cases - 1)
        )
        standard_error = sqrt(float((weights**2 * variance).sum())) / float(weights.sum())
        return abs(estimate - difference) > Z * standard_error

    return estimate, (
        _interval_end(estimate, -1.0, is_rejected),
        _interval_end(estimate, 1.0, is_rejected),
    )


def _interval_end(accepted: float, limit: float, is_rejected: Callable[[float], bool]) -> float:
    """Return the value nearest to the limit that the test does not reject, by bisection."""
    if not is_rejected(limit):
        return limit
    return bisected(accepted, limit, lambda value: not is_rejected(value), _HALVINGS)[0]


def _restricted_shares(
    hits: Floats, cases: Floats, other_hits: Floats, other_cases: Floats, difference: float
) -> tuple[Floats, Floats]:
    """Return for each stratum the most likely shares of both sides that differ by ``difference``.

    ``difference`` is the first share minus the second. The second share is a root of a cubic
    polynomial (Farrington and Manning 1990, Statistics in Medicine 9:1447-1454).
    """
    # The coefficients of the polynomial; the coefficient of the cube is ``all_cases``.
    all_cases = cases + other_cases
    square = (cases + 2 * other_cases) * difference - all_cases - hits - other_hits
    linear = (
        (other_cases * difference - all_cases - 2 * other_hits) * difference + hits + other_hits
    )
    constant = other_hits * difference * (1 - difference)
    # The trigonometric solution.
    shift = square / (3 * all_cases)
    offset = shift**3 - linear * square / (6 * all_cases**2) + constant / (2 * all_cases)
    radius = np.sqrt(np.maximum(shift**2 - linear / (3 * all_cases), 0)) * np.where(
        offset >= 0, 1, -1
    )
    cosine = np.divide(offset, radius**3, out=np.zeros_like(offset), where=radius != 0)
    angle = (pi + np.arccos(np.clip(cosine, -1, 1))) / 3
    other_shares = np.clip(2 * radius * np.cos(angle) - shift, 0, 1)
    return np.clip(other_shares + difference, 0, 1), other_shares
