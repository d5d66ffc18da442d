"""One group's modes in failed against successful traces, and what follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import Interval
from mast_tui.figures.intervals import (
    MARGIN,
    Doubt,
    Effective,
    RateJson,
    Weighed,
    effective_cases,
    katz,
    more_for,
    newcombe,
    rate,
    to_resolve,
    why_no_difference,
)
from mast_tui.figures.signatures.model import ABSENT, PRESENT, UNRESOLVED, Rules
from mast_tui.figures.significance import MANY, LogFactorials, benjamini_hochberg, fisher_exact

Severity = Literal["fatal", "benign", "unclear"]
Why = Literal[
    "more_in_failed", "seen_in_successes", "too_few_traces", "unresolved", "not_told_apart"
]


class DifferenceJson(TypedDict):
    """Two shares against each other: in points, as a ratio, and the test.

    The first less the second, the first by the second. What cannot be had is null, and
    ``undefined`` says why by its name: one side has no trace judged on the mode (``no_failed``,
    ``no_succeeded``) or neither (``not_judged``), or the mode shows in none of one side's
    (``none_in_failed``, ``none_in_succeeded``) or in none at all (``never_seen``). An interval is
    missing where a side has fewer than 5 traces (``few_traces``), where fewer than 5 of both
    together show the mode, or do not (``rare_mode``), or where more than 2 % of a side's verdicts
    are ``unresolved``; the difference has ``bounds`` then. Where two groups are compared the sides
    are ``first`` and ``second``.
    """

    difference_pp: float | None
    difference_ci_pp: list[float] | None
    risk_ratio: float | None
    risk_ratio_ci: list[float] | None
    p_value: float | None
    p_adjusted: float | None
    undefined: NotRequired[dict[str, str]]
    difference_bounds_pp: NotRequired[list[float]]


class SuccessGivenJson(TypedDict):
    """Of the traces that show a mode, and of those without it, the shares that succeeded.

    Both are of the traces judged on the mode whose outcome is known. Since outcomes were not drawn
    but came as they did, neither is an effect of the mode.
    """

    present: RateJson
    absent: RateJson


class ModeJson(DifferenceJson):
    """One mode in one group.

    ``count`` of the ``n`` traces judged on it show it, whatever their outcome; ``unsure`` and
    ``open`` of the others were not judged. On ``unresolved`` of the open ones annotators differ,
    and nobody has decided. So many ``more_labels`` would bring the interval of ``all`` to
    ``MARGIN`` on either side; None where it has none. ``stated`` is the class that the study's
    posts give; ``corrected`` how often it shows where only a judge has looked, where that was
    computed.
    """

    name: str
    count: int
    n: int
    unsure: int
    open: int
    unresolved: int
    all: RateJson
    more_labels: int | None
    failed: RateJson
    succeeded: RateJson
    success_given: SuccessGivenJson
    severity: Severity
    severity_because: Why
    stated: str | None
    corrected: dict[str, object] | None


Weights = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """How many traces show each mode (``present``) of those judged on it (``judged``).

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

    def rate(self, mode: int) -> RateJson:
        """Return the share of one mode."""
        doubt = self.doubt(mode)
        return rate(self.present[mode], self.judged[mode], self.effective(mode), doubt)

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


def differences(first: Counts, second: Counts, words: tuple[str, str]) -> list[DifferenceJson]:
    """Take two sides' shares of each mode from each other, with a test.

    Args:
        first: The counts of one side.
        second: Those of the other.
        words: What reasons call both sides, such as ``failed`` and ``succeeded``.

    Returns:
        Per mode the first share less the second, with p-values adjusted over the modes.
    """
    sides = (first, second)
    most = max((n + m for n, m in zip(first.judged, second.judged, strict=True)), default=0)
    logs = LogFactorials(most) if most <= MANY else None
    rows = [
        (first.present[i], first.judged[i], second.present[i], second.judged[i])
        for i in range(len(first.present))
    ]
    p_values = [fisher_exact(*row, logs) for row in rows]
    adjusted = benjamini_hochberg(p_values)
    differences = []
    for i, (count, n, other, of) in enumerate(rows):
        effective = (*first.effective(i), *second.effective(i))
        difference = _difference(effective, p_values[i], adjusted[i], words)
        if difference["difference_pp"] is not None:
            _withhold(
                difference,
                why_no_difference(count + other, (n, of)),
                [side.bounds(i) or _certain(side, i) for side in sides],
            )
        differences.append(difference)
    return differences


def _certain(side: Counts, mode: int) -> Interval:
    """Return a share as bounds without room between them."""
    hits, cases = side.effective(mode)
    return hits / cases, hits / cases


def _withhold(difference: DifferenceJson, why: str | None, bounds: Sequence[Interval]) -> None:
    """Take out the intervals of a difference that would not hold.

    Args:
        difference: The difference, which is changed.
        why: Why it has no interval though nothing is in doubt; None where it has one.
        bounds: Those of the shares of both sides, alike at both ends where nothing is in doubt.
    """
    (low, high), (other_low, other_high) = bounds
    doubtful = (low, other_low) != (high, other_high)
    if doubtful:
        difference["difference_bounds_pp"] = [100 * (low - other_high), 100 * (high - other_low)]
    reason = "unresolved" if doubtful else why
    if reason is None:
        return
    difference["difference_ci_pp"] = None
    undefined = {"difference_ci_pp": reason} | difference.get("undefined", {})
    if difference["risk_ratio_ci"] is not None:
        difference["risk_ratio_ci"] = None
        undefined["risk_ratio_ci"] = reason
    difference["undefined"] = undefined


def _difference(
    row: tuple[float, float, float, float],
    p: float | None,
    adjusted: float | None,
    words: tuple[str, str],
) -> DifferenceJson:
    count, n, other, of = row
    ends = newcombe(count, n, other, of)
    missing = _missing(row, words)
    ratio = None if missing or not n or not of else (count / n) / (other / of)
    ratio_ends = None if ratio is None else katz(count, n, other, of)
    found: DifferenceJson = {
        "difference_pp": None if ends is None else 100 * (count / n - other / of),
        "difference_ci_pp": None if ends is None else [100 * end for end in ends],
        "risk_ratio": ratio,
        "risk_ratio_ci": None if ratio_ends is None else list(ratio_ends),
        "p_value": p,
        "p_adjusted": adjusted,
    }
    if missing:
        names = ["risk_ratio", "risk_ratio_ci"]
        if ends is None:
            names = ["difference_pp", "difference_ci_pp", *names, "p_value", "p_adjusted"]
        found["undefined"] = dict.fromkeys(names, missing)
    elif ratio_ends is None:
        found["undefined"] = {"risk_ratio_ci": f"none_in_{words[0]}"}
    return found


def _missing(row: tuple[float, float, float, float], words: tuple[str, str]) -> str | None:
    """Why there is no ratio, or nothing at all; None where there is one."""
    count, n, other, of = row
    if not n and not of:
        return "not_judged"
    if not n or not of:
        return f"no_{words[1] if n else words[0]}"
    if not count and not other:
        return "never_seen"
    return None if other else f"none_in_{words[1]}"


def severity(
    failed: RateJson, succeeded: RateJson, found: DifferenceJson, rules: Rules
) -> tuple[Severity, Why]:
    """Tell what a mode is called in a group, and why; the rule is in ``docs/report.md``.

    Args:
        failed: Its share of the failed traces.
        succeeded: Its share of the successful ones.
        found: The difference of both.
        rules: Where the lines are drawn.
    """
    difference, ends = found["difference_pp"], found["difference_ci_pp"]
    few = min(failed["n"], succeeded["n"]) < rules.least
    if few or difference is None:
        return "unclear", "too_few_traces"
    if found.get("undefined", {}).get("difference_ci_pp") == "unresolved":
        return "unclear", "unresolved"
    adjusted = found["p_adjusted"]
    if difference > 0 and adjusted is not None and adjusted < rules.alpha:
        return "fatal", "more_in_failed"
    seen_in_successes = succeeded["count"] >= rules.least
    if seen_in_successes and ends is not None and ends[1] <= 100 * rules.margin:
        return "benign", "seen_in_successes"
    return "unclear", "not_told_apart"


def mode_tables(
    everything: Counts,
    lost: Counts,
    won: Counts,
    traces: int,
    unsure: Sequence[int],
    names: Sequence[str],
    stated: Sequence[str | None],
    rules: Rules,
) -> list[ModeJson]:
    """Make the table of every mode of one group.

    Args:
        everything: The counts over all traces.
        lost: Over those that failed.
        won: Over those that succeeded.
        traces: How many there are.
        unsure: By mode how many of them are unsure.
        names: The names of the modes.
        stated: The class that a published study gives each mode.
        rules: Where the lines are drawn.

    Returns:
        One for each mode, in the order of the counts.
    """
    tables: list[ModeJson] = []
    for i, found in enumerate(differences(lost, won, ("failed", "succeeded"))):
        word, why = severity(lost.rate(i), won.rate(i), found, rules)
        with_it, without = zip(won.of_mode(i), lost.of_mode(i), strict=True)
        tables.append(
            {
                "name": names[i],
                "count": everything.present[i],
                "n": everything.judged[i],
                "unsure": unsure[i],
                "open": traces - everything.judged[i] - unsure[i],
                "unresolved": everything.unresolved[i] if everything.unresolved else 0,
                "all": everything.rate(i),
                "more_labels": everything.more_labels(i),
                "failed": lost.rate(i),
                "succeeded": won.rate(i),
                "success_given": {
                    "present": _share(*with_it, (won, lost), i),
                    "absent": _share(*without, (won, lost), i),
                },
                **found,
                "severity": word,
                "severity_because": why,
                "stated": stated[i],
                "corrected": None,
            }
        )
    return tables


def _share(hits: Weighed, misses: Weighed, sides: tuple[Counts, Counts], mode: int) -> RateJson:
    """Return a share of success among traces with, or without, a mode.

    Any unresolved trace may be one of them: the bounds take those that failed for all of them, or
    those that succeeded.
    """
    won, lost = sides
    n = hits.n + misses.n
    open_won = won.doubtful[mode] if won.doubtful else 0.0
    open_lost = lost.doubtful[mode] if lost.doubtful else 0.0
    if not open_won and not open_lost:
        return rate(hits.n, n, effective_cases(hits, misses))
    total = hits.weight + misses.weight
    low = hits.weight / (total + open_lost) if total + open_lost else 0.0
    high = (hits.weight + open_won) / (total + open_won) if total + open_won else 1.0
    doubt = Doubt(won.unresolved[mode] + lost.unresolved[mode], (low, high))
    effective = effective_cases(hits, misses) if n else (0.0, 0.0)
    return rate(hits.n, n, effective, doubt)
