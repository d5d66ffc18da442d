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
    """The numbers of traces with each mode (``present``) and judged on it (``judged``).

    If traces have weights, ``weights`` are their sums and the sums of their squares by mode, of the
    traces with the mode and of those without: modes × 2 × 2. ``unresolved`` counts the traces on
    which annotators differ, and ``doubtful`` has the sums of their weights; both are empty if no
    mode has any.
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
            weights: The number of traces that each represents; None if all are equal.
        """
        shows = np.stack([verdicts == PRESENT, verdicts == ABSENT])
        present, absent = shows.sum(axis=1)
        unresolved = verdicts == UNRESOLVED
        sums = None
        doubtful = unresolved.sum(axis=0, dtype=np.float64)
        if weights is not None:
            sums = np.einsum("pt,stm->msp", np.stack([weights, weights**2]), shows)
            doubtful = weights @ unresolved
        return cls(
            tuple(present.tolist()),
            tuple((present + absent).tolist()),
            sums,
            tuple(unresolved.sum(axis=0).tolist()),
            tuple(doubtful.tolist()),
        )

    def of_mode(self, mode: int) -> tuple[Weighed, Weighed]:
        """Return the weighted cases with a mode, and those judged on it without it."""
        present = self.present[mode]
        absent = self.judged[mode] - present
        if self.weights is None:
            return Weighed(present, present, present), Weighed(absent, absent, absent)
        shows, lacks = self.weights[mode].tolist()
        return Weighed(present, *shows), Weighed(absent, *lacks)

    def effective(self, mode: int) -> Effective:
        """Return the effective numbers of traces with a mode, and of all judged on it."""
        return effective_cases(*self.of_mode(mode))

    def doubt(self, mode: int) -> Doubt | None:
        """Return the unresolved traces of a mode and the bounds of its share; None without any."""
        if not self.unresolved or not self.unresolved[mode]:
            return None
        shows, lacks = (side.weight for side in self.of_mode(mode))
        doubtful = self.doubtful[mode]
        total = shows + lacks + doubtful
        return Doubt(self.unresolved[mode], (shows / total, (shows + doubtful) / total))

    def rate(self, mode: int, scope: FigureScope, condition: str = "") -> Figure:
        """Return the share of one mode.

        Args:
            mode: The column of the mode.
            scope: The scope of the figure.
            condition: The name of the traces that it is over.
        """
        counts = self.present[mode], self.judged[mode]
        return rate(scope, condition, *counts, self.effective(mode), self.doubt(mode))

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
    most = max((n + m for n, m in zip(first.judged, second.judged, strict=True)), default=0)
    logs = LogFactorials(most) if most <= MANY else None
    p_values = [
        fisher_exact(first.present[i], first.judged[i], second.present[i], second.judged[i], logs)
        for i in range(len(first.present))
    ]
    adjusted = benjamini_hochberg(p_values)
    figures: list[tuple[Figure, ...]] = []
    for i, scope in enumerate(scopes):
        missing = _why_no_ratio(first, second, i, sides)
        no_test = (missing or "") if p_values[i] is None else ""
        figures.append(
            (
                *_compared(first, second, i, scope, missing, f"none_in_{sides[0]}"),
                scope.number("p_value", p_values[i], reason=no_test),
                scope.number("p_adjusted", adjusted[i], reason=no_test),
            )
        )
    return figures


def _compared(
    first: Counts, second: Counts, mode: int, scope: FigureScope, missing: str | None, no_hits: str
) -> tuple[Figure, Figure]:
    """Return the difference and the ratio of one mode's shares on two sides.

    There is no interval if a side has few traces, the mode is rare, or disagreements are
    unresolved; in the last case the difference has bounds.
    """
    hits_first, n_first = first.effective(mode)
    hits_second, n_second = second.effective(mode)
    ends = newcombe(hits_first, n_first, hits_second, n_second)
    if ends is None:
        return (
            scope.figure("difference", None, reason=missing or ""),
            scope.figure("risk_ratio", None, reason=missing or ""),
        )
    hits = first.present[mode] + second.present[mode]
    why = why_no_difference(hits, (first.judged[mode], second.judged[mode]))
    share_first = hits_first / n_first
    share_second = hits_second / n_second
    low_first, high_first = first.bounds(mode) or (share_first, share_first)
    low_second, high_second = second.bounds(mode) or (share_second, share_second)
    bounds = None
    if low_first != high_first or low_second != high_second:
        why = "unresolved"
        bounds = (low_first - high_second, high_first - low_second)
    needs = LEAST_OF_DIFFERENCE if why and not bounds else None
    difference = scope.figure(
        "difference",
        share_first - share_second,
        interval=None if why else ends,
        bounds=bounds,
        reason=why or "",
        needs=needs,
    )
    if missing is not None:
        return difference, scope.figure("risk_ratio", None, reason=missing)
    ratio_ends = katz(hits_first, n_first, hits_second, n_second)
    ratio = scope.figure(
        "risk_ratio",
        share_first / share_second,
        interval=None if why else ratio_ends,
        reason=no_hits if ratio_ends is None else why or "",
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
    few = min(failed.n or 0, succeeded.n or 0) < rules.least
    if few or difference.value is None:
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
    lost: Counts,
    won: Counts,
    traces: int,
    unsure: Sequence[int],
    scopes: Sequence[FigureScope],
) -> Iterator[Figure]:
    """Yield the figures of every mode of one group.

    Args:
        everything: The counts over all traces.
        lost: The counts over failed traces.
        won: The counts over successful traces.
        traces: The number of traces.
        unsure: The number of unsure verdicts of each mode.
        scopes: The scope of the figures of each mode.
    """
    compared = differences(lost, won, OUTCOMES, scopes)
    for i, scope in enumerate(scopes):
        with_it, without = zip(won.of_mode(i), lost.of_mode(i), strict=True)
        yield everything.rate(i, scope, "all")
        yield lost.rate(i, scope, "failed")
        yield won.rate(i, scope, "succeeded")
        yield _share(*with_it, (won, lost), i, scope, "success_if_present")
        yield _share(*without, (won, lost), i, scope, "success_if_absent")
        yield scope.number("unsure", unsure[i])
        yield scope.number("open", traces - everything.judged[i] - unsure[i])
        yield scope.number("unresolved", everything.unresolved[i] if everything.unresolved else 0)
        yield scope.number("more_labels", everything.more_labels(i))
        yield from compared[i]


def _share(
    hits: Weighed,
    misses: Weighed,
    sides: tuple[Counts, Counts],
    mode: int,
    scope: FigureScope,
    condition: str,
) -> Figure:
    """Return the share of successes among the traces with, or without, a mode.

    Each unresolved trace may belong to them. For the lower bound only the failed unresolved traces
    do, for the upper bound only the successful ones.
    """
    won, lost = sides
    n = hits.n + misses.n
    open_won = won.doubtful[mode] if won.doubtful else 0.0
    open_lost = lost.doubtful[mode] if lost.doubtful else 0.0
    if not open_won and not open_lost:
        return rate(scope, condition, hits.n, n, effective_cases(hits, misses))
    total = hits.weight + misses.weight
    low = hits.weight / (total + open_lost) if total + open_lost else 0.0
    high = (hits.weight + open_won) / (total + open_won) if total + open_won else 1.0
    doubt = Doubt(won.unresolved[mode] + lost.unresolved[mode], (low, high))
    effective = effective_cases(hits, misses) if n else (0.0, 0.0)
    return rate(scope, condition, hits.n, n, effective, doubt)
