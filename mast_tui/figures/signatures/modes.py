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
from math import exp, log, pi, sqrt
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import Floats, Interval
from mast_tui.figures.intervals import (
    LEAST_CASES,
    MARGIN,
    Effective,
    UnresolvedShare,
    WeightSums,
    Z,
    bisected,
    decisions_needed,
    effective_cases,
    katz,
    more_for,
    newcombe,
    rate,
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


class ModeClass(NamedTuple):
    """The class of a mode in a group of traces, and the reason for it."""

    severity: Literal["fatal", "benign", "unclear"]
    reason: Literal[
        "more_in_failed", "seen_in_successes", "too_few_traces", "unresolved", "not_told_apart"
    ]


@dataclass(frozen=True, slots=True)
class TraceCounts:
    """The traces that were judged on one mode, with their weights.

    Attributes:
        with_mode: The traces with the mode.
        without_mode: The traces judged without it.
        unresolved: The number of further traces on which annotators differ.
        unresolved_weight: The sum of the weights of these traces.
    """

    with_mode: WeightSums
    without_mode: WeightSums
    unresolved: int = 0
    unresolved_weight: float = 0.0

    @classmethod
    def unweighted(cls, present: int, judged: int) -> TraceCounts:
        """Return the counts of traces with equal weights.

        Args:
            present: The number of traces with the mode.
            judged: The number of traces judged on it.
        """
        absent = judged - present
        return cls(WeightSums(present, present, present), WeightSums(absent, absent, absent))

    @property
    def present(self) -> int:
        """The number of traces with the mode."""
        return self.with_mode.n

    @property
    def judged(self) -> int:
        """The number of traces judged on the mode."""
        return self.with_mode.n + self.without_mode.n

    @property
    def effective(self) -> Effective:
        """The effective numbers of traces with the mode, and of all traces judged on it."""
        return effective_cases(self.with_mode, self.without_mode)

    @property
    def unresolved_share(self) -> UnresolvedShare | None:
        """The number of unresolved traces and the bounds of the share; None if all are resolved."""
        if not self.unresolved:
            return None
        present_weight = self.with_mode.weight_sum
        total_weight = present_weight + self.without_mode.weight_sum + self.unresolved_weight
        bounds = (
            present_weight / total_weight,
            (present_weight + self.unresolved_weight) / total_weight,
        )
        return UnresolvedShare(self.unresolved, bounds)

    @property
    def bounds(self) -> Interval | None:
        """The bounds of the share if too many verdicts are unresolved, or None."""
        share = self.unresolved_share
        return share.bounds if share and decisions_needed(share.trace_count, self.judged) else None

    @property
    def more_labels(self) -> int | None:
        """The number of further labels that would narrow the share's interval to ± ``MARGIN``.

        It is None if the share has bounds instead of an interval.
        """
        if self.bounds is not None:
            return None
        hits, cases = self.effective
        # With unequal weights, a trace adds less than one effective case.
        return more_for(hits, cases, MARGIN, each=cases / max(self.judged, 1))

    def rate(self, scope: FigureScope, condition: str = "") -> Figure:
        """Return the share of traces with the mode among those judged on it, as a figure.

        Args:
            scope: The scope of the figure.
            condition: The condition of the figure, such as ``failed``.
        """
        return rate(
            scope, condition, self.present, self.judged, self.effective, self.unresolved_share
        )


def counts_by_mode(verdicts: NDArray[np.uint8], weights: Floats | None = None) -> list[TraceCounts]:
    """Count the verdicts on each mode.

    Args:
        verdicts: Traces × modes.
        weights: The number of traces that each trace represents; None if all are equal.
    """
    # (Present, absent) × traces × modes.
    has_answer = np.stack([verdicts == PRESENT, verdicts == ABSENT])
    unresolved = verdicts == UNRESOLVED
    trace_counts = has_answer.sum(axis=1)
    unresolved_counts = unresolved.sum(axis=0)
    if weights is None:
        # With weights of 1, the sums of weights and of squared weights are the number of traces.
        weight_sums = np.stack([trace_counts, trace_counts], axis=-1)
        unresolved_weights = unresolved_counts
    else:
        factors = np.stack([weights, weights**2])
        weight_sums = np.einsum("pt,stm->msp", factors, has_answer).transpose(1, 0, 2)
        unresolved_weights = weights @ unresolved
    with_mode, without_mode = (
        [WeightSums(n, *sums) for n, sums in zip(*columns, strict=True)]
        for columns in zip(trace_counts.tolist(), weight_sums.tolist(), strict=True)
    )
    return list(
        map(
            TraceCounts,
            with_mode,
            without_mode,
            unresolved_counts.tolist(),
            unresolved_weights.tolist(),
        )
    )


def differences(
    first: Sequence[TraceCounts],
    second: Sequence[TraceCounts],
    sides: tuple[str, str],
    scopes: Sequence[FigureScope],
) -> list[tuple[Figure, ...]]:
    """Compare the share of each mode on two sides, such as failed and succeeded traces.

    Args:
        first: The counts of one side, by mode.
        second: The counts of the other side, by mode.
        sides: The names of both sides, for reasons.
        scopes: The scope of the figures of each mode.

    Returns:
        For each mode the difference of the shares, their ratio, the p-value of Fisher's test, and
        the p-value adjusted over the modes.
    """
    pairs = list(zip(first, second, strict=True))
    largest_n = max((counts.judged + other.judged for counts, other in pairs), default=0)
    # The tests share a table of logarithms if it is not too large.
    log_factorials = LogFactorials(largest_n) if largest_n <= MANY else None
    p_values = [
        fisher_exact(counts.present, counts.judged, other.present, other.judged, log_factorials)
        for counts, other in pairs
    ]
    adjusted = benjamini_hochberg(p_values)
    figures: list[tuple[Figure, ...]] = []
    for (counts, other), scope, p_value, p_adjusted in zip(
        pairs, scopes, p_values, adjusted, strict=True
    ):
        reason = _why_not_comparable(counts, other, sides)
        figures.append(
            (
                *_compared_shares(counts, other, sides, scope),
                scope.number("p_value", p_value, reason=reason),
                scope.number("p_adjusted", p_adjusted, reason=reason),
            )
        )
    return figures


def _compared_shares(
    first: TraceCounts, second: TraceCounts, sides: tuple[str, str], scope: FigureScope
) -> tuple[Figure, Figure]:
    """Return the difference of one mode's shares on two sides, and their ratio."""
    not_comparable = _why_not_comparable(first, second, sides)
    if not_comparable:
        return (
            scope.number("difference", None, reason=not_comparable),
            scope.number("risk_ratio", None, reason=not_comparable),
        )
    difference = _difference(first, second, scope)
    if not second.present:
        no_ratio = f"none_in_{sides[1]}" if first.present else "never_seen"
        return difference, scope.number("risk_ratio", None, reason=no_ratio)
    return difference, _ratio(first, second, scope, difference, f"none_in_{sides[0]}")


def _why_not_comparable(first: TraceCounts, second: TraceCounts, sides: tuple[str, str]) -> str:
    """Return the reason why the shares of a mode cannot be compared; empty if they can."""
    if first.judged and second.judged:
        return ""
    if not first.judged and not second.judged:
        return "not_judged"
    return f"no_{sides[1] if first.judged else sides[0]}"


def _difference(first: TraceCounts, second: TraceCounts, scope: FigureScope) -> Figure:
    """Return the difference of one mode's shares on two sides that both have cases."""
    first_hits, first_cases = first.effective
    second_hits, second_cases = second.effective
    first_share = first_hits / first_cases
    second_share = second_hits / second_cases
    difference = Figure(value=first_share - second_share)
    if first.bounds is not None or second.bounds is not None:
        first_low, first_high = first.bounds or (first_share, first_share)
        second_low, second_high = second.bounds or (second_share, second_share)
        bounds = (first_low - second_high, first_high - second_low)
        return scope.figure("difference", replace(difference, bounds=bounds, reason="unresolved"))
    reason = why_no_difference(first.present + second.present, (first.judged, second.judged))
    if reason is not None:
        return scope.figure("difference", replace(difference, reason=reason, needs=LEAST_CASES))
    interval = newcombe(first_hits, first_cases, second_hits, second_cases)
    return scope.figure("difference", replace(difference, interval=interval))


def _ratio(
    first: TraceCounts,
    second: TraceCounts,
    scope: FigureScope,
    difference: Figure,
    no_hits_reason: str,
) -> Figure:
    """Return the ratio of one mode's shares on two sides; the second share is above 0.

    The ratio has no interval if the ``difference`` has none, or for the ``no_hits_reason`` if the
    first share is 0.
    """
    first_hits, first_cases = first.effective
    second_hits, second_cases = second.effective
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


def class_of_mode(mode: FigureTable, rules: Rules) -> ModeClass:
    """Return the class of a mode in a group of traces by the rules in ``docs/report.md``.

    Args:
        mode: The figures of the mode.
        rules: The limits of the classes.
    """
    failed, succeeded = (mode.find("rate", side) for side in OUTCOMES)
    difference = mode["difference"]
    has_few_traces = min(failed.n or 0, succeeded.n or 0) < rules.least
    if has_few_traces or difference.value is None:
        return ModeClass("unclear", "too_few_traces")
    if difference.reason == "unresolved":
        return ModeClass("unclear", "unresolved")
    adjusted_p_value = mode.value("p_adjusted")
    if difference.value > 0 and adjusted_p_value is not None and adjusted_p_value < rules.alpha:
        return ModeClass("fatal", "more_in_failed")
    seen_in_successes = (succeeded.count or 0) >= rules.least
    if seen_in_successes and difference.high is not None and difference.high <= rules.margin:
        return ModeClass("benign", "seen_in_successes")
    return ModeClass("unclear", "not_told_apart")


def mode_figures(
    everything: Sequence[TraceCounts],
    failed: Sequence[TraceCounts],
    succeeded: Sequence[TraceCounts],
    trace_count: int,
    unsure: Sequence[int],
    scopes: Sequence[FigureScope],
) -> Iterator[Figure]:
    """Yield the figures of every mode of one group.

    Args:
        everything: The counts over all traces, by mode.
        failed: The counts over failed traces.
        succeeded: The counts over successful traces.
        trace_count: The number of traces.
        unsure: The number of unsure verdicts on each mode.
        scopes: The scope of the figures of each mode.
    """
    comparisons = differences(failed, succeeded, OUTCOMES, scopes)
    for scope, in_all, in_failed, in_succeeded, unsure_count, comparison in zip(
        scopes, everything, failed, succeeded, unsure, comparisons, strict=True
    ):
        yield in_all.rate(scope, "all")
        yield in_failed.rate(scope, "failed")
        yield in_succeeded.rate(scope, "succeeded")
        yield _success_share(in_succeeded, in_failed, scope, with_mode=True)
        yield _success_share(in_succeeded, in_failed, scope, with_mode=False)
        yield scope.number("unsure", unsure_count)
        yield scope.number("open", trace_count - in_all.judged - unsure_count)
        yield scope.number("unresolved", in_all.unresolved)
        yield scope.number("more_labels", in_all.more_labels)
        yield from comparison


def _success_share(
    succeeded: TraceCounts, failed: TraceCounts, scope: FigureScope, *, with_mode: bool
) -> Figure:
    """Return the share of successes among the traces with a mode, or among those without it.

    The bounds add the traces on which annotators differ: the lower bound those that failed, the
    upper bound those that succeeded.
    """
    hits, misses = (
        side.with_mode if with_mode else side.without_mode for side in (succeeded, failed)
    )
    unresolved_share = None
    if succeeded.unresolved_weight or failed.unresolved_weight:
        total_weight = hits.weight_sum + misses.weight_sum
        weight_with_failed = total_weight + failed.unresolved_weight
        low = hits.weight_sum / weight_with_failed if weight_with_failed else 0.0
        weight_with_succeeded = total_weight + succeeded.unresolved_weight
        high = (
            (hits.weight_sum + succeeded.unresolved_weight) / weight_with_succeeded
            if weight_with_succeeded
            else 1.0
        )
        unresolved_share = UnresolvedShare(succeeded.unresolved + failed.unresolved, (low, high))
    condition = "success_if_present" if with_mode else "success_if_absent"
    effective = effective_cases(hits, misses)
    return rate(scope, condition, hits.n, hits.n + misses.n, effective, unresolved_share)


_HALVINGS: Final = 40


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
    # For each stratum, the counts by mode of failed and of succeeded traces.
    counts_by_stratum = [
        [
            counts_by_mode(inputs.verdicts[in_stratum & (inputs.outcome == outcome)])
            for outcome in (FAILED, SUCCEEDED)
        ]
        for in_stratum in (
            is_counted & (inputs.stratum_numbers == number)
            for number in range(len(inputs.stratum_names))
        )
    ]
    figures = []
    for mode, scope in enumerate(scopes):
        counts = [(failed[mode], succeeded[mode]) for failed, succeeded in counts_by_stratum]
        strata = [
            Stratum(failed.present, failed.judged, succeeded.present, succeeded.judged)
            for failed, succeeded in counts
        ]
        unresolved = sum(failed.unresolved + succeeded.unresolved for failed, succeeded in counts)
        judged = sum(stratum.cases for stratum in strata)
        figures += mantel_haenszel(strata, scope, needs=decisions_needed(unresolved, judged))
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
