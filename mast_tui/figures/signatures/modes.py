"""One group's modes in failed against successful traces, and what follows from it."""

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
from mast_tui.figures.signatures.model import ABSENT, PRESENT, UNRESOLVED, SignatureRules
from mast_tui.figures.significance import MANY, LogFactorials, benjamini_hochberg, fisher_exact

Severity = Literal["fatal", "benign", "unclear"]
Why = Literal[
    "more_in_failed", "seen_in_successes", "too_few_traces", "unresolved", "not_told_apart"
]


Weights = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """The numbers of traces that show each mode (``present``) and were judged on it (``judged``).

    Where traces have weights, ``weights`` are the sums of these and of their squares by mode, of
    those that show it and of those that do not: modes × 2 × 2. ``unresolved`` are the traces on
    which annotators differ, with the sums of their weights in ``doubtful``; none where no mode has
    any.
    """

    present: tuple[int, ...]
    judged: tuple[int, ...]
    weights: Weights | None = None
    unresolved: tuple[int, ...] = ()
    doubtful: tuple[float, ...] = ()

    @classmethod
    def of(cls, verdicts: NDArray[np.uint8], weights: Weights | None = None) -> Counts:
        """Count over rows of verdicts.

        Args:
            verdicts: Traces × modes.
            weights: How many traces each stands for; None where all stand for as many.
        """
        shows = np.stack([verdicts == PRESENT, verdicts == ABSENT])
        present, absent = shows.sum(axis=1)
        open_ = verdicts == UNRESOLVED
        sums = None
        doubtful = open_.sum(axis=0, dtype=np.float64)
        if weights is not None:
            sums = np.einsum("pt,stm->msp", np.stack([weights, weights**2]), shows)
            doubtful = weights @ open_
        return cls(
            tuple(present.tolist()),
            tuple((present + absent).tolist()),
            sums,
            tuple(open_.sum(axis=0).tolist()),
            tuple(doubtful.tolist()),
        )

    def of_mode(self, mode: int) -> tuple[Weighed, Weighed]:
        """Give the traces that show one mode, and those judged on it that do not."""
        present = self.present[mode]
        absent = self.judged[mode] - present
        if self.weights is None:
            return Weighed(present, present, present), Weighed(absent, absent, absent)
        shows, lacks = self.weights[mode].tolist()
        return Weighed(present, *shows), Weighed(absent, *lacks)

    def effective(self, mode: int) -> Effective:
        """Give as how many traces those that show one mode count, and all judged on it."""
        return effective_cases(*self.of_mode(mode))

    def doubt(self, mode: int) -> Doubt | None:
        """Return the unresolved traces of one mode and the bounds of its share, None of none."""
        if not self.unresolved or not self.unresolved[mode]:
            return None
        shows, lacks = (side.weight for side in self.of_mode(mode))
        open_ = self.doubtful[mode]
        every = shows + lacks + open_
        return Doubt(self.unresolved[mode], (shows / every, (shows + open_) / every))

    def rate(self, mode: int, scope: FigureScope, condition: str = "") -> Figure:
        """Return the share of one mode.

        Args:
            mode: The column of the mode.
            scope: What the share is about.
            condition: The traces that it is over.
        """
        counts = self.present[mode], self.judged[mode]
        return rate(scope, condition, *counts, self.effective(mode), self.doubt(mode))

    def bounds(self, mode: int) -> Interval | None:
        """Return the bounds of one mode's share where too much of it is unresolved, else None."""
        doubt = self.doubt(mode)
        needs = doubt is not None and to_resolve(doubt.unresolved, self.judged[mode])
        return doubt.bounds if doubt is not None and needs else None

    def more_labels(self, mode: int) -> int | None:
        """Return how many more traces bring its interval to ``MARGIN``; None where it has none."""
        if self.bounds(mode) is not None:
            return None
        hits, cases = self.effective(mode)
        return more_for(hits, cases, MARGIN, each=cases / max(self.judged[mode], 1))


def differences(
    first: Counts, second: Counts, sides: tuple[str, str], scopes: Sequence[FigureScope]
) -> list[tuple[Figure, ...]]:
    """Subtract the shares of each mode on two sides, with a test.

    Args:
        first: The counts of one side.
        second: Those of the other.
        sides: The names of both sides in reasons, such as ``failed`` and ``succeeded``.
        scopes: What the figures of each mode are about.

    Returns:
        Per mode the first share less the second (``difference``), their ratio (``risk_ratio``), and
        the p-values of Fisher's test, the second one adjusted over the modes.
    """
    most = max((n + m for n, m in zip(first.judged, second.judged, strict=True)), default=0)
    logs = LogFactorials(most) if most <= MANY else None
    rows = [
        (first.present[i], first.judged[i], second.present[i], second.judged[i])
        for i in range(len(first.present))
    ]
    p_values = [fisher_exact(*row, logs) for row in rows]
    adjusted = benjamini_hochberg(p_values)
    figures: list[tuple[Figure, ...]] = []
    for i, scope in enumerate(scopes):
        row = rows[i]
        missing = _missing(row, sides)
        nothing = missing if p_values[i] is None else None
        figures.append(
            (
                *_compared(first, second, i, scope, missing, f"none_in_{sides[0]}"),
                scope.number("p_value", p_values[i], reason=nothing or ""),
                scope.number("p_adjusted", adjusted[i], reason=nothing or ""),
            )
        )
    return figures


def _compared(
    first: Counts, second: Counts, mode: int, scope: FigureScope, missing: str | None, no_hits: str
) -> tuple[Figure, Figure]:
    """Return the difference and the ratio of one mode's shares on two sides.

    Intervals that would not hold are left out: a side has few traces, the mode is rare, or
    disagreements are unresolved, in which case the difference has bounds.
    """
    row = (*first.effective(mode), *second.effective(mode))
    count, n, other, of = row
    ends = newcombe(*row)
    if ends is None:
        return (
            scope.figure("difference", None, reason=missing or ""),
            scope.figure("risk_ratio", None, reason=missing or ""),
        )
    hits = first.present[mode] + second.present[mode]
    why = why_no_difference(hits, (first.judged[mode], second.judged[mode]))
    (low, high), (other_low, other_high) = (
        side.bounds(mode) or (share, share)
        for side, share in ((first, count / n), (second, other / of))
    )
    bounds = None
    if (low, other_low) != (high, other_high):
        why = "unresolved"
        bounds = (low - other_high, high - other_low)
    needs = LEAST_OF_DIFFERENCE if why and not bounds else None
    difference = scope.figure(
        "difference",
        count / n - other / of,
        interval=None if why else ends,
        bounds=bounds,
        reason=why or "",
        needs=needs,
    )
    if missing is not None:
        return difference, scope.figure("risk_ratio", None, reason=missing)
    ratio_ends = katz(*row)
    ratio = scope.figure(
        "risk_ratio",
        (count / n) / (other / of),
        interval=None if why else ratio_ends,
        reason=no_hits if ratio_ends is None else why or "",
        needs=needs,
    )
    return difference, ratio


def _missing(row: tuple[float, float, float, float], sides: tuple[str, str]) -> str | None:
    """Return why there is no ratio, or nothing at all; None where there is one."""
    count, n, other, of = row
    if not n and not of:
        return "not_judged"
    if not n or not of:
        return f"no_{sides[1] if n else sides[0]}"
    if not count and not other:
        return "never_seen"
    return None if other else f"none_in_{sides[1]}"


def severity(mode: FigureTable, rules: SignatureRules) -> tuple[Severity, Why]:
    """Return what a mode is called in a group, and why; the rule is in ``docs/report.md``.

    Args:
        mode: The figures of the mode.
        rules: Where the lines are drawn.
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
        lost: Over those that failed.
        won: Over those that succeeded.
        traces: How many there are.
        unsure: By mode how many of them are unsure.
        scopes: What the figures of each mode are about.
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
    """Return a share of success among traces with, or without, a mode.

    Any unresolved trace may be one of them: the bounds take those that failed for all of them, or
    those that succeeded.
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
