"""The modes of one group in failed and in successful traces, and the class of each mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import Interval
from mast_tui.figures.intervals import (
    LEAST_OF_DIFFERENCE,
    MARGIN,
    Doubt,
    Effective,
    Weighed,
    effective_cases,
    katz,
    more_for,
    newcombe,
    rate,
    to_resolve,
    why_no_difference,
)
from mast_tui.figures.record import OUTCOMES, Figure, FigureScope, FigureTable
from mast_tui.figures.signatures.model import ABSENT, PRESENT, UNRESOLVED, Rules
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
        doubtful: The sum of the weights of these traces; empty for none.
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
        has_answer = np.stack([verdicts == PRESENT, verdicts == ABSENT])
        present, absent = has_answer.sum(axis=1)
        unresolved = verdicts == UNRESOLVED
        weight_sums = None
        unresolved_weights = unresolved.sum(axis=0, dtype=np.float64)
        if weights is not None:
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
        """Return the weighted cases with a mode, and those judged on it without it."""
        present = self.present[mode]
        absent = self.judged[mode] - present
        if self.weights is None:
            return Weighed(present, present, present), Weighed(absent, absent, absent)
        with_mode, without_mode = self.weights[mode].tolist()
        return Weighed(present, *with_mode), Weighed(absent, *without_mode)

    def effective(self, mode: int) -> Effective:
        """Return the effective numbers of traces with a mode, and of all judged on it."""
        return effective_cases(*self.of_mode(mode))

    def doubt(self, mode: int) -> Doubt | None:
        """Return the unresolved traces of a mode and the bounds of its share; None without any."""
        if not self.unresolved or not self.unresolved[mode]:
            return None
        present_weight, absent_weight = (side.weight for side in self.of_mode(mode))
        unresolved_weight = self.doubtful[mode]
        total = present_weight + absent_weight + unresolved_weight
        return Doubt(
            self.unresolved[mode],
            (present_weight / total, (present_weight + unresolved_weight) / total),
        )

    def rate(self, mode: int, scope: FigureScope, condition: str = "") -> Figure:
        """Return the share of one mode.

        Args:
            mode: The column of the mode.
            scope: The scope of the figure.
            condition: The name of the traces that it is over.
        """
        present = self.present[mode]
        judged = self.judged[mode]
        return rate(scope, condition, present, judged, self.effective(mode), self.doubt(mode))

    def bounds(self, mode: int) -> Interval | None:
        """Return the bounds of a mode's share if too many verdicts are unresolved, else None."""
        doubt = self.doubt(mode)
        needs = doubt is not None and to_resolve(doubt.unresolved, self.judged[mode])
        return doubt.bounds if doubt is not None and needs else None

    def more_labels(self, mode: int) -> int | None:
        """Return the number of further traces that narrow the interval to ``MARGIN``.

        None if the mode has no interval.
        """
        if self.bounds(mode) is not None:
            return None
        hits, cases = self.effective(mode)
        return more_for(hits, cases, MARGIN, each=cases / max(self.judged[mode], 1))


def differences(
    first: Counts, second: Counts, sides: tuple[str, str], scopes: Sequence[FigureScope]
) -> list[tuple[Figure, ...]]:
    """Compare the shares of each mode on two sides.

    Args:
        first: The counts of one side.
        second: The counts of the other side.
        sides: The names of both sides in reasons, such as ``failed`` and ``succeeded``.
        scopes: The scope of the figures of each mode.

    Returns:
        For each mode the first share less the second (``difference``), their ratio
        (``risk_ratio``), and the p-values of Fisher's test, the second one adjusted over the modes.
    """
    largest_n = max(map(sum, zip(first.judged, second.judged, strict=True)), default=0)
    logs = LogFactorials(largest_n) if largest_n <= MANY else None
    p_values = [
        fisher_exact(
            first.present[mode], first.judged[mode], second.present[mode], second.judged[mode], logs
        )
        for mode in range(len(first.present))
    ]
    adjusted = benjamini_hochberg(p_values)
    figures: list[tuple[Figure, ...]] = []
    for mode, scope in enumerate(scopes):
        missing_reason = _why_no_ratio(first, second, mode, sides)
        test_reason = (missing_reason or "") if p_values[mode] is None else ""
        figures.append(
            (
                *_difference_and_ratio(
                    first, second, mode, scope, missing_reason, f"none_in_{sides[0]}"
                ),
                scope.number("p_value", p_values[mode], reason=test_reason),
                scope.number("p_adjusted", adjusted[mode], reason=test_reason),
            )
        )
    return figures


def _difference_and_ratio(
    first: Counts,
    second: Counts,
    mode: int,
    scope: FigureScope,
    missing_reason: str | None,
    no_hits_reason: str,
) -> tuple[Figure, Figure]:
    """Return the difference and the ratio of one mode's shares on two sides.

    There is no interval if a side has few traces, the mode is rare, or disagreements are
    unresolved; in the last case the difference has bounds.
    """
    hits_first, n_first = first.effective(mode)
    hits_second, n_second = second.effective(mode)
    difference_ends = newcombe(hits_first, n_first, hits_second, n_second)
    if difference_ends is None:
        return (
            scope.figure("difference", None, reason=missing_reason or ""),
            scope.figure("risk_ratio", None, reason=missing_reason or ""),
        )
    hits = first.present[mode] + second.present[mode]
    reason = why_no_difference(hits, (first.judged[mode], second.judged[mode]))
    share_first = hits_first / n_first
    share_second = hits_second / n_second
    low_first, high_first = first.bounds(mode) or (share_first, share_first)
    low_second, high_second = second.bounds(mode) or (share_second, share_second)
    bounds = None
    if low_first != high_first or low_second != high_second:
        reason = "unresolved"
        bounds = (low_first - high_second, high_first - low_second)
    needs = LEAST_OF_DIFFERENCE if reason and not bounds else None
    difference = scope.figure(
        "difference",
        share_first - share_second,
        interval=None if reason else difference_ends,
        bounds=bounds,
        reason=reason or "",
        needs=needs,
    )
    if missing_reason is not None:
        return difference, scope.figure("risk_ratio", None, reason=missing_reason)
    ratio_ends = katz(hits_first, n_first, hits_second, n_second)
    ratio = scope.figure(
        "risk_ratio",
        share_first / share_second,
        interval=None if reason else ratio_ends,
        reason=no_hits_reason if ratio_ends is None else reason or "",
        needs=needs,
    )
    return difference, ratio


def _why_no_ratio(first: Counts, second: Counts, mode: int, sides: tuple[str, str]) -> str | None:
    """Return the reason why a mode has no ratio of shares; None if it has one."""
    n_first = first.judged[mode]
    n_second = second.judged[mode]
    if not n_first and not n_second:
        return "not_judged"
    if not n_first or not n_second:
        return f"no_{sides[1] if n_first else sides[0]}"
    if not first.present[mode] and not second.present[mode]:
        return "never_seen"
    return None if second.present[mode] else f"none_in_{sides[1]}"


def severity(mode: FigureTable, rules: Rules) -> tuple[Severity, Why]:
    """Return the class of a mode in a group, and the reason; see ``docs/report.md``.

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
    adjusted = mode.value("p_adjusted")
    if difference.value > 0 and adjusted is not None and adjusted < rules.alpha:
        return "fatal", "more_in_failed"
    seen_in_successes = (succeeded.count or 0) >= rules.least
    if seen_in_successes and difference.high is not None and difference.high <= rules.margin:
        return "benign", "seen_in_successes"
    return "unclear", "not_told_apart"


def mode_figures(
    everything: Counts,
    failed: Counts,
    succeeded: Counts,
    traces: int,
    unsure: Sequence[int],
    scopes: Sequence[FigureScope],
) -> Iterator[Figure]:
    """Yield the figures of every mode of one group.

    Args:
        everything: The counts over all traces.
        failed: The counts over failed traces.
        succeeded: The counts over successful traces.
        traces: The number of traces.
        unsure: The number of unsure verdicts of each mode.
        scopes: The scope of the figures of each mode.
    """
    comparisons = differences(failed, succeeded, OUTCOMES, scopes)
    for mode, scope in enumerate(scopes):
        with_mode, without_mode = zip(succeeded.of_mode(mode), failed.of_mode(mode), strict=True)
        yield everything.rate(mode, scope, "all")
        yield failed.rate(mode, scope, "failed")
        yield succeeded.rate(mode, scope, "succeeded")
        yield _success_share(*with_mode, (succeeded, failed), mode, scope, "success_if_present")
        yield _success_share(*without_mode, (succeeded, failed), mode, scope, "success_if_absent")
        yield scope.number("unsure", unsure[mode])
        yield scope.number("open", traces - everything.judged[mode] - unsure[mode])
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

    An unresolved trace may have the mode or not. The lower bound includes only unresolved traces
    that failed, the upper bound only those that succeeded.

    Args:
        hits: The successful traces.
        misses: The failed traces.
        sides: The counts of successful and of failed traces.
        mode: The column of the mode.
        scope: The scope of the figure.
        condition: The condition of the figure.
    """
    succeeded, failed = sides
    n = hits.n + misses.n
    doubtful_succeeded = succeeded.doubtful[mode] if succeeded.doubtful else 0.0
    doubtful_failed = failed.doubtful[mode] if failed.doubtful else 0.0
    if not doubtful_succeeded and not doubtful_failed:
        return rate(scope, condition, hits.n, n, effective_cases(hits, misses))
    total = hits.weight + misses.weight
    low = hits.weight / (total + doubtful_failed) if total + doubtful_failed else 0.0
    high = (
        (hits.weight + doubtful_succeeded) / (total + doubtful_succeeded)
        if total + doubtful_succeeded
        else 1.0
    )
    doubt = Doubt(succeeded.unresolved[mode] + failed.unresolved[mode], (low, high))
    effective = effective_cases(hits, misses) if n else (0.0, 0.0)
    return rate(scope, condition, hits.n, n, effective, doubt)
