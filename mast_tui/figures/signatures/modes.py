"""One group's modes in failed against successful traces, and what follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.intervals import RateJson, katz, newcombe, rate
from mast_tui.figures.signatures.model import ABSENT, PRESENT, UNSURE, Rules
from mast_tui.figures.significance import MANY, LogFactorials, benjamini_hochberg, fisher_exact

Severity = Literal["fatal", "benign", "unclear"]
Why = Literal["more_in_failed", "seen_in_successes", "too_few_traces", "not_told_apart"]


class DifferenceJson(TypedDict):
    """Two shares against each other: in points, as a ratio, and the test.

    The first less the second, the first by the second. What cannot be had is null, and
    ``undefined`` says why by its name: one side has no trace judged on the mode (``no_failed``,
    ``no_succeeded``) or neither (``not_judged``), or the mode shows in none of one side's
    (``none_in_failed``, ``none_in_succeeded``) or in none at all (``never_seen``). Where two groups
    are compared the sides are ``first`` and ``second``.
    """

    difference_pp: float | None
    difference_ci_pp: list[float] | None
    risk_ratio: float | None
    risk_ratio_ci: list[float] | None
    p_value: float | None
    p_adjusted: float | None
    undefined: NotRequired[dict[str, str]]


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
    ``open`` of the others were not judged. ``stated`` is the class that the study's posts give;
    ``corrected`` how often it shows where only a judge has looked, where that was computed.
    """

    name: str
    count: int
    n: int
    unsure: int
    open: int
    all: RateJson
    failed: RateJson
    succeeded: RateJson
    success_given: SuccessGivenJson
    severity: Severity
    severity_because: Why
    stated: str | None
    corrected: dict[str, object] | None


@dataclass(frozen=True, slots=True)
class Counts:
    """How many traces show each mode (``present``) of those judged on it (``judged``)."""

    present: tuple[int, ...]
    judged: tuple[int, ...]

    @classmethod
    def of(cls, verdicts: NDArray[np.uint8]) -> Counts:
        """The counts over rows of verdicts."""
        present = (verdicts == PRESENT).sum(axis=0)
        absent = (verdicts == ABSENT).sum(axis=0)
        return cls(tuple(present.tolist()), tuple((present + absent).tolist()))

    def absent(self, mode: int) -> int:
        """Count the traces judged on one mode that do not show it."""
        return self.judged[mode] - self.present[mode]

    def rate(self, mode: int) -> RateJson:
        """Give the share of one mode."""
        return rate(self.present[mode], self.judged[mode])


def differences(first: Counts, second: Counts, words: tuple[str, str]) -> list[DifferenceJson]:
    """Take two sides' shares of each mode from each other, with a test.

    Args:
        first: The counts of one side.
        second: Those of the other.
        words: What reasons call both sides, such as ``failed`` and ``succeeded``.

    Returns:
        Per mode the first share less the second, with p-values adjusted over the modes.
    """
    most = max((n + m for n, m in zip(first.judged, second.judged, strict=True)), default=0)
    logs = LogFactorials(most) if most <= MANY else None
    rows = [
        (first.present[i], first.judged[i], second.present[i], second.judged[i])
        for i in range(len(first.present))
    ]
    p_values = [fisher_exact(*row, logs) for row in rows]
    adjusted = benjamini_hochberg(p_values)
    return [
        _difference(row, p, q, words) for row, p, q in zip(rows, p_values, adjusted, strict=True)
    ]


def _difference(
    row: tuple[int, int, int, int], p: float | None, adjusted: float | None, words: tuple[str, str]
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


def _missing(row: tuple[int, int, int, int], words: tuple[str, str]) -> str | None:
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
    if few or difference is None or ends is None:
        return "unclear", "too_few_traces"
    adjusted = found["p_adjusted"]
    if difference > 0 and adjusted is not None and adjusted < rules.alpha:
        return "fatal", "more_in_failed"
    if succeeded["count"] >= rules.least and ends[1] <= 100 * rules.margin:
        return "benign", "seen_in_successes"
    return "unclear", "not_told_apart"


def mode_tables(
    verdicts: NDArray[np.uint8],
    failed: NDArray[np.bool_],
    succeeded: NDArray[np.bool_],
    names: Sequence[str],
    stated: Sequence[str | None],
    rules: Rules,
) -> list[ModeJson]:
    """Make the table of every mode of one group.

    Args:
        verdicts: Traces × modes.
        failed: Which of the traces failed, a flag for each.
        succeeded: Which of them succeeded.
        names: The names of the modes.
        stated: The class that a published study gives each mode.
        rules: Where the lines are drawn.

    Returns:
        One for each mode, in the order of the columns.
    """
    return tables_of_counts(
        Counts.of(verdicts),
        Counts.of(verdicts[failed]),
        Counts.of(verdicts[succeeded]),
        len(verdicts),
        (verdicts == UNSURE).sum(axis=0).tolist(),
        names,
        stated,
        rules,
    )


def tables_of_counts(
    everything: Counts,
    lost: Counts,
    won: Counts,
    traces: int,
    unsure: Sequence[int],
    names: Sequence[str],
    stated: Sequence[str | None],
    rules: Rules,
) -> list[ModeJson]:
    """Make the table of every mode of one group of which only the counts are known.

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
        tables.append(
            {
                "name": names[i],
                "count": everything.present[i],
                "n": everything.judged[i],
                "unsure": unsure[i],
                "open": traces - everything.judged[i] - unsure[i],
                "all": everything.rate(i),
                "failed": lost.rate(i),
                "succeeded": won.rate(i),
                "success_given": {
                    "present": rate(won.present[i], won.present[i] + lost.present[i]),
                    "absent": rate(won.absent(i), won.absent(i) + lost.absent(i)),
                },
                **found,
                "severity": word,
                "severity_because": why,
                "stated": stated[i],
                "corrected": None,
            }
        )
    return tables
