"""Print how often intervals of a prevalence hold the true value, and how many labels a judge saves.

    python scripts/simulate_prevalence.py [random|chosen|report|rule] [--runs N] [--seed S]

In each run a mode shows in a trace with a known probability. A judge with known rates judges all
traces, and people label some of them: ``random`` ones, or (``chosen``) random ones for half of the
labels and the traces most worth labelling for the other half. Each line of the CSV is a setting,
with figures in %: how often the interval of people alone with random labels (Wilson's) and the
prediction-powered interval hold the true value; the mean width of the second as a part of that of
the first; the labels saved at the same width; and the most that any unbiased estimate could save
with random labels, rho² (1 - n/N), and of endless traces, rho². rho is the correlation of the judge
with the truth, and n of N traces are labelled. With ``report`` the second interval is that of the
weighted share of the chosen labels in ``mast-tui report``, without the judge.

``rule``: 100 random labels, then as many more as the app asks for to reach 3 points on either side,
by ``report`` for people alone and by ``agree`` with the judge. Each line has the mean number of
labels, half the width of the interval (its mean and its 90th percentile), and how often the
interval holds the true value.

The exit code is 1 if an interval holds in less than 93 or more than 97 % of the runs by more than
two standard errors, if the interval with random labels is more than 2 % wider than that of people
alone, or if the mean of half the width is more than 3.1 points under the rule.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import Interval
from mast_tui.figures.intervals import MARGIN, more_for, wilson
from mast_tui.figures.judge.input import JudgeInput, Reference
from mast_tui.figures.prevalence import prediction_powered, weighted_tables, worth_of_labels
from mast_tui.figures.record import FigureScope
from mast_tui.figures.signatures.model import ABSENT, PRESENT
from mast_tui.figures.signatures.modes import counts_by_mode
from mast_tui.figures.two_by_two import Tables
from mast_tui.labels import VerdictValue
from mast_tui.study import Draw, Study, weighted_sample
from mast_tui.taxonomy.model import Mode

JUDGES: Final = ((0.8, 0.9), (0.95, 0.97), (0.6, 0.8), (0.5, 0.5))
"""The true positive and true negative rates; the last judge is at chance."""

PREVALENCES: Final = (0.03, 0.1, 0.2, 0.3, 0.5)
LABELLED: Final = (100, 200)
ALL: Final = 1200
MANY: Final = 20_000
"""Enough traces for the rule in every setting."""

MOST_HALF: Final = 0.031
"""The greatest mean of half the width under the rule."""

_MODE: Final = Mode("m", "1", "a mode", "")
_VALUES: Final = (VerdictValue.ABSENT, VerdictValue.PRESENT)
_TRACE_IDS: Final = tuple(f"t{index:04}" for index in range(ALL))


class PrevalenceSetting(NamedTuple):
    """The setting of a simulation.

    Attributes:
        tpr: The judge's true positive rate.
        tnr: The judge's true negative rate.
        prevalence: The probability that the mode shows in a trace.
        labelled: The number of labelled traces.
    """

    tpr: float
    tnr: float
    prevalence: float
    labelled: int

    @property
    def squared_correlation(self) -> float:
        """The squared correlation of the judge's verdicts with the truth."""
        calls = self.prevalence * self.tpr + (1 - self.prevalence) * (1 - self.tnr)
        informedness = self.tpr + self.tnr - 1
        return self.prevalence * (1 - self.prevalence) * informedness**2 / (calls * (1 - calls))

    def draw(
        self, labelled: int, unlabelled: int, random: np.random.Generator
    ) -> tuple[Tables, Tables]:
        """Draw traces.

        Args:
            labelled: The number of labelled traces.
            unlabelled: The number of other traces.
            random: The source of randomness.

        Returns:
            The labelled traces by cell (TP, FP, FN, TN), and the numbers of other traces that the
            judge calls present and absent.
        """
        shows = self.prevalence
        cells = (
            shows * self.tpr,
            (1 - shows) * (1 - self.tnr),
            shows * (1 - self.tpr),
            (1 - shows) * self.tnr,
        )
        table = random.multinomial(labelled, cells).astype(np.float64)
        present = int(random.binomial(unlabelled, cells[0] + cells[1]))
        return table, np.array([present, unlabelled - present], dtype=np.float64)


def _random_interval(setting: PrevalenceSetting, random: np.random.Generator) -> Interval | None:
    """Return the interval of one run with random labels."""
    labelled, unlabelled = setting.draw(setting.labelled, ALL - setting.labelled, random)
    return prediction_powered(labelled, unlabelled).powered.interval


def _chosen_interval(
    setting: PrevalenceSetting, random: np.random.Generator, *, without_judge: bool = False
) -> Interval | None:
    """Return the interval of one run with half of the labels on chosen traces."""
    shows = random.random(ALL) < setting.prevalence
    calls = np.where(shows, random.random(ALL) < setting.tpr, random.random(ALL) > setting.tnr)
    weights = _study_weights(setting, shows, calls, random)
    indices = [int(trace_id[1:]) for trace_id in weights]
    trace_weights = np.array(list(weights.values()))
    if without_judge:
        verdicts = np.where(shows[indices], PRESENT, ABSENT).astype(np.uint8)[:, None]
        (counts,) = counts_by_mode(verdicts, trace_weights)
        return counts.rate(FigureScope("mode")).interval
    cells = _cells(calls[indices], shows[indices])
    other_calls = np.delete(calls, indices)
    unlabelled = np.array([other_calls.sum(), (~other_calls).sum()], dtype=np.float64)
    (weighted,) = weighted_tables(cells[:, None, :], trace_weights)
    return prediction_powered(cells.sum(axis=0), unlabelled, weighted).powered.interval


def _study_weights(
    setting: PrevalenceSetting,
    shows: NDArray[np.bool_],
    calls: NDArray[np.bool_],
    random: np.random.Generator,
) -> Mapping[str, float]:
    """Draw a study of random traces and of traces most worth labelling, and return its weights."""
    first = sorted(random.choice(ALL, setting.labelled // 2, replace=False).tolist())
    first_ids = [_TRACE_IDS[index] for index in first]
    judge_input = JudgeInput(
        "mast@3",
        (_MODE,),
        "judge:j",
        {
            (trace_id, _MODE.slug): _VALUES[int(call)]
            for trace_id, call in zip(_TRACE_IDS, calls, strict=True)
        },
        Reference(
            "gold", {(_TRACE_IDS[index], _MODE.slug): _VALUES[int(shows[index])] for index in first}
        ),
    )
    other_ids = [trace_id for trace_id in _TRACE_IDS if trace_id not in set(first_ids)]
    seed = int(random.integers(2**60))
    worths = worth_of_labels(judge_input, other_ids, [_MODE.slug])
    chosen = weighted_sample(worths, setting.labelled - len(first), seed)
    chances = tuple(chosen.values())
    study = Study(
        "mast@3",
        ("a",),
        per_trace=1,
        batches=(tuple(first_ids), tuple(chosen)),
        draws=(Draw(0, ALL, (), 0), Draw(1, len(other_ids), (), 0, chances, "judge:j")),
    )
    weights = study.trace_weights(study.traces)
    assert weights is not None
    return weights


def _cells(calls: NDArray[np.bool_], shows: NDArray[np.bool_]) -> Tables:
    """Return an array of zeros and ones, traces × (TP, FP, FN, TN)."""
    cells = (calls & shows, calls & ~shows, ~calls & shows, ~calls & ~shows)
    return np.stack(cells, axis=1).astype(np.float64)


_INTERVALS: Final[
    Mapping[str, Callable[[PrevalenceSetting, np.random.Generator], Interval | None]]
] = {
    "random": _random_interval,
    "chosen": _chosen_interval,
    "report": partial(_chosen_interval, without_judge=True),
}
"""The functions that simulate one run, by the name of the simulation."""


class PrevalenceCoverage(NamedTuple):
    """The results of many runs of a setting.

    Attributes:
        people_hold: The share of intervals of people alone that hold the true value, in %.
        joined_hold: The share of intervals with both that hold the true value, in %.
        width: The mean width of intervals with both, as a part of that of people alone.
    """

    people_hold: float
    joined_hold: float
    width: float


def simulate(
    kind: str, setting: PrevalenceSetting, runs: int, random: np.random.Generator
) -> PrevalenceCoverage:
    """Simulate many runs of a setting.

    Args:
        kind: ``random``, ``chosen`` or ``report``.
        setting: The setting.
        runs: The number of runs.
        random: The source of randomness.
    """
    people: list[Interval] = []
    joined: list[Interval] = []
    for _ in range(runs):
        interval = _INTERVALS[kind](setting, random)
        assert interval is not None
        joined.append(interval)
        hits = int(random.binomial(setting.labelled, setting.prevalence))
        people_interval = wilson(hits, setting.labelled)
        assert people_interval is not None
        people.append(people_interval)
    lows, highs = np.array([people, joined]).transpose(2, 0, 1)
    holds = ((lows <= setting.prevalence) & (setting.prevalence <= highs)).mean(axis=1)
    widths = (highs - lows).mean(axis=1)
    return PrevalenceCoverage(
        100 * float(holds[0]), 100 * float(holds[1]), float(widths[1] / widths[0])
    )


class RuleResult(NamedTuple):
    """The number of labels, half the width of the interval, and whether it holds."""

    labels: int
    half_width: float
    holds: bool


def _follow_rule(
    setting: PrevalenceSetting, random: np.random.Generator
) -> tuple[RuleResult, RuleResult]:
    """Simulate one study that follows the rule, with people alone and with the judge."""
    first, _ = setting.draw(setting.labelled, MANY, random)

    def with_more(count: int) -> Tables:
        return first + setting.draw(count, 0, random)[0]

    def result(labelled: Tables, interval: Interval | None) -> RuleResult:
        assert interval is not None
        low, high = interval
        holds = low <= setting.prevalence <= high
        return RuleResult(int(labelled.sum()), (high - low) / 2, holds)

    def hits(labelled: Tables) -> tuple[int, int]:
        return int(labelled[0] + labelled[2]), int(labelled.sum())

    by_people = with_more(more_for(*hits(first), MARGIN) or 0)
    _, unlabelled = setting.draw(0, MANY, random)
    with_judge = with_more(prediction_powered(first, unlabelled).more_labels or 0)
    joined = prediction_powered(with_judge, unlabelled).powered.interval
    return result(by_people, wilson(*hits(by_people))), result(with_judge, joined)


def _print_rule(runs: int, random: np.random.Generator) -> bool:
    """Print the results of the rule, and return whether an interval is too wide."""
    print(
        "tpr,tnr,mode_in_percent,labelled_by,labels,half_width,half_width_90,holds",
        flush=True,
    )
    is_too_wide = False
    for (tpr, tnr), prevalence in product(JUDGES, PREVALENCES):
        setting = PrevalenceSetting(tpr, tnr, prevalence, min(LABELLED))
        studies = [_follow_rule(setting, random) for _ in range(runs)]
        for by, results in zip(
            ("people", "with the judge"), zip(*studies, strict=True), strict=True
        ):
            labels, half_widths, holds = (np.array(column) for column in zip(*results, strict=True))
            is_too_wide |= bool(half_widths.mean() > MOST_HALF)
            print(
                f"{tpr:g},{tnr:g},{100 * prevalence:g},{by},{labels.mean():.0f},"
                f"{100 * half_widths.mean():.2f},{100 * np.quantile(half_widths, 0.9):.2f},"
                f"{100 * holds.mean():.1f}",
                flush=True,
            )
    return is_too_wide


def _print_coverage(kind: str, runs: int, random: np.random.Generator) -> bool:
    """Print a line for each setting, and return whether an interval fails."""
    print(
        "tpr,tnr,mode_in_percent,labelled,people_holds,joined_holds,width,saved,"
        "most_saved_at_random,most_saved_without_end",
        flush=True,
    )
    fails = False
    error = 100 * (0.95 * 0.05 / runs) ** 0.5
    for (tpr, tnr), prevalence, labelled in product(JUDGES, PREVALENCES, LABELLED):
        setting = PrevalenceSetting(tpr, tnr, prevalence, labelled)
        people, joined, width = simulate(kind, setting, runs, random)
        fails |= abs(joined - 95) > 2 + 2 * error or (kind == "random" and width > 1.02)
        most = setting.squared_correlation
        print(
            f"{tpr:g},{tnr:g},{100 * prevalence:g},{labelled},{people:.1f},{joined:.1f},"
            f"{width:.2f},{100 * (1 - width**2):.0f},{100 * most * (1 - labelled / ALL):.0f},"
            f"{100 * most:.0f}",
            flush=True,
        )
    return fails


def main() -> int:
    """Print the lines of the chosen simulation, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kind", nargs="?", choices=(*_INTERVALS, "rule"), default="random")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    if options.kind == "rule":
        return int(_print_rule(options.runs, random))
    return int(_print_coverage(options.kind, options.runs, random))


if __name__ == "__main__":
    sys.exit(main())
