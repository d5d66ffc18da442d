"""Planning of an experiment: the tasks and runs that show a change, by simulation from its data.

The baseline's rate, the variance between tasks, and the correlation of the arms over tasks are
estimated without bias from pairs of runs. Simulated experiments with these values are tested as
``experiment`` tests, at the level that one change among all tested modes must reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, reduce
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.polynomial.hermite import hermgauss
from numpy.typing import NDArray

from mast_tui.figures.experiment import (
    Experiment,
    Measure,
    TaskMeans,
    measures,
    task_means,
)
from mast_tui.figures.record import Figure, FigureScope
from mast_tui.figures.significance import sign_flips_of_rows

TARGET: Final = 0.8
"""The power that an experiment is planned for."""

ALPHA: Final = 0.05

PLANNED_RUNS: Final = (1, 3, 5)
"""The runs of a task and arm for which tasks are counted."""

MOST_TASKS: Final = 5_000
PLANNED_MODES: Final = 3
"""The modes that are planned for where none were named: the most frequent ones."""

_DRAWS: Final = 2_000
_MANY: Final = 20_000
_HALVINGS: Final = 60
_STEPS: Final = 7


@dataclass(frozen=True, slots=True)
class RateChange:
    """A rate in two arms over the same tasks.

    Args:
        baseline: The rate of the baseline.
        changed: The rate of the other arm.
        between: The correlation of two runs of one task in one arm.
        shared: The correlation of two runs of one task in two arms, at most ``between``.
        alpha: The level of the test.
    """

    baseline: float
    changed: float
    between: float = 0.0
    shared: float = 0.0
    alpha: float = ALPHA


@cache
def _nodes() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    points, weights = hermgauss(60)
    return points * np.sqrt(2), weights / np.sqrt(np.pi)


def _moments(middle: float, spread: float) -> tuple[float, float]:
    """Return the mean and the variance of a rate whose logit is normal."""
    points, weights = _nodes()
    rates = 1 / (1 + np.exp(-(middle + spread * points)))
    mean = float(weights @ rates)
    return mean, float(weights @ rates**2) - mean**2


def _middle_for(rate: float, spread: float) -> float:
    low = -60.0
    high = 60.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _moments(middle, spread)[0] < rate:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@cache
def logit_normal(rate: float, between: float) -> tuple[float, float]:
    """Return the mean and the standard deviation of the logits of tasks.

    Args:
        rate: The mean rate over tasks.
        between: The correlation of two runs of one task.
    """
    if not 0 < rate < 1 or between <= 0:
        return _middle_for(min(max(rate, 1e-9), 1 - 1e-9), 0.0), 0.0
    low = 0.0
    high = 20.0
    for _ in range(_HALVINGS // 2):
        spread = (low + high) / 2
        if _moments(_middle_for(rate, spread), spread)[1] < between * rate * (1 - rate):
            low = spread
        else:
            high = spread
    return _middle_for(rate, spread), spread


def draw_hits(
    design: RateChange, tasks: int, runs: int, draws: int, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw the hits of each task in both arms, the baseline first.

    Args:
        design: The rates.
        tasks: The number of tasks.
        runs: The runs of each task and arm.
        draws: The number of experiments.
        random: The source of randomness.

    Returns:
        Two tables of experiments × tasks.
    """
    common = random.standard_normal((draws, tasks))
    share = min(1.0, max(0.0, design.shared / design.between)) if design.between > 0 else 0.0
    sides = []
    for rate in (design.baseline, design.changed):
        middle, spread = logit_normal(rate, design.between)
        of_arm = random.standard_normal((draws, tasks))
        logits = middle + spread * (np.sqrt(share) * common + np.sqrt(1 - share) * of_arm)
        sides.append(random.binomial(runs, 1 / (1 + np.exp(-logits))).astype(np.int64))
    return sides[0], sides[1]


def power(
    design: RateChange, tasks: int, runs: int, *, draws: int = _DRAWS, seed: int = 0
) -> float:
    """Return the share of simulated experiments in which the change is seen.

    Args:
        design: The rates and the level.
        tasks: The number of tasks.
        runs: The runs of each task and arm.
        draws: The number of experiments.
        seed: The seed of the draws.
    """
    hits, changed_hits = draw_hits(design, tasks, runs, draws, np.random.default_rng(seed))
    return float((sign_flips_of_rows(changed_hits - hits) < design.alpha).mean())


def tasks_needed(design: RateChange, runs: int, *, seed: int = 0) -> int | None:
    """Return the fewest tasks with the power of ``TARGET``; None if ``MOST_TASKS`` do not suffice.

    Args:
        design: The rates and the level.
        runs: The runs of each task and arm.
        seed: The seed of the simulated experiments.
    """

    def seen(tasks: int) -> bool:
        return power(design, tasks, runs, draws=_DRAWS // 2, seed=seed) >= TARGET

    hits, changed_hits = draw_hits(design, _MANY, runs, 1, np.random.default_rng(seed))
    apart = (changed_hits - hits)[0].astype(np.float64)
    normal = NormalDist()
    distance = normal.inv_cdf(1 - design.alpha / 2) + normal.inv_cdf(TARGET)
    near = distance**2 * float(apart.var()) / max(float(apart.mean()) ** 2, 1e-9)
    if near > 2 * MOST_TASKS:
        return None
    # The normal approximation gives the range to search; the test itself decides.
    low = max(2, int(near / 1.3))
    high = max(low + 1, int(near * 1.3))
    while seen(low) and low > 2:
        high = low
        low = max(2, low // 2)
    while not seen(high) and high <= MOST_TASKS:
        low = high
        high *= 2
    while high - low > max(1, high // 40):
        middle = (low + high) // 2
        if seen(middle):
            high = middle
        else:
            low = middle
    return high if high <= MOST_TASKS else None


def detectable(design: RateChange, tasks: int, runs: int, *, seed: int = 0) -> float | None:
    """Return the least change towards ``design.changed`` with the power of ``TARGET``.

    Args:
        design: The rates; the largest possible change is from the baseline to 0 or 1.
        tasks: The number of tasks.
        runs: The runs of each task and arm.
        seed: The seed of the simulated experiments.

    Returns:
        The change as a share, None if even the largest would be missed.
    """
    rises = design.changed > design.baseline
    high = 1 - design.baseline if rises else design.baseline
    low = 0.0

    def seen(change: float) -> bool:
        changed = design.baseline + (change if rises else -change)
        tried = replace(design, changed=min(max(changed, 0.0), 1.0))
        return power(tried, tasks, runs, draws=_DRAWS // 2, seed=seed) >= TARGET

    if not seen(high):
        return None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if seen(middle):
            high = middle
        else:
            low = middle
    return high


def design_of(experiment: Experiment, measure: Measure, change: float) -> RateChange | None:
    """Return the design of a planned change from the data so far; None without runs.

    The correlation within an arm is estimated from tasks with two runs or more, that across arms
    from tasks that both arms have run. With one run of each task the former is taken to be the
    latter.

    Args:
        experiment: The data.
        measure: The share that is to change.
        change: The change, below 0 for a fall.
    """
    tasks = int(experiment.tasks.max(initial=-1)) + 1
    arms = {}
    for arm in experiment.inputs.group_names:
        rows = experiment.rows(arm)
        arms[arm] = task_means(measure.values[rows], experiment.tasks[rows], tasks)
    first = arms[experiment.baseline]
    if not first.defined.any():
        return None
    rate = float(np.nanmean(first.values))
    within = [value for means in arms.values() if (value := between_runs(means)) is not None]
    across = [
        value for arm in experiment.compared if (value := across_arms(first, arms[arm])) is not None
    ]
    shared = max(0.0, float(np.mean(across))) if across else 0.0
    between = max(0.0, float(np.mean(within))) if within else shared
    changed = rate + change
    if not 0 <= changed <= 1 or not 0 < rate < 1:
        return None
    return RateChange(rate, changed, min(between, 0.99), min(shared, between, 0.99))


def between_runs(means: TaskMeans) -> float | None:
    """Return the correlation of two runs of one task of an arm."""
    several = means.defined & (means.runs > 1)
    if several.sum() < 2:
        return None
    values = means.values[several]
    runs = means.runs[several]
    mean = float(values.mean())
    noise = float((values * (1 - values) * runs / (runs - 1)).mean())
    spread = mean * (1 - mean)
    return 1 - noise / spread if spread else None


def across_arms(first: TaskMeans, second: TaskMeans) -> float | None:
    """Return the correlation of two runs of one task in two arms.

    Args:
        first: The rates of one arm by task.
        second: The rates of the other arm.

    Returns:
        The correlation; None with fewer than two tasks in both arms, or if a rate is 0 or 1.
    """
    both = first.defined & second.defined
    if both.sum() < 2:
        return None
    a = first.values[both]
    b = second.values[both]
    spread = np.sqrt(a.mean() * (1 - a.mean()) * b.mean() * (1 - b.mean()))
    covariance = float(((a - a.mean()) * (b - b.mean())).sum()) / (len(a) - 1)
    return covariance / float(spread) if spread else None


def power_figures(experiment: Experiment, *, seed: int = 0) -> Iterator[Figure]:
    """Yield the power, the least change and the tasks needed, for success and some modes.

    The modes are those named beforehand, else the most frequent ones of the baseline. A mode is
    planned to fall and success to rise. ``tasks_needed`` has the runs of a task and arm as its
    condition. An impossible change, such as a fall below 0, has no figures.

    Args:
        experiment: The data.
        seed: The seed of the simulated experiments.
    """
    inputs = experiment.inputs
    every = list(measures(experiment))
    by_mode = {measure.mode: measure for measure in every if measure.name == "experiment_mode"}
    rows = experiment.rows(experiment.baseline)
    named = [code for code in by_mode if code in experiment.tested]
    if len(named) in (0, len(by_mode)):
        rates = {
            code: float(np.nanmean(measure.values[rows]))
            for code, measure in by_mode.items()
            if not np.isnan(measure.values[rows]).all()
        }
        named = sorted(rates, key=lambda code: -rates[code])[:PLANNED_MODES]
    judged = sum(not np.isnan(measure.values).all() for measure in by_mode.values())
    tests = max(1, len(experiment.tested) or judged) * max(1, len(experiment.compared))
    tasks_of_runs = [experiment.tasks[experiment.rows(arm)] for arm in inputs.group_names]
    tasks = len(reduce(np.intersect1d, tasks_of_runs))
    baseline_tasks = tasks_of_runs[0]
    runs = max(1, round(len(baseline_tasks) / max(1, len(np.unique(baseline_tasks)))))
    for measure in (every[0], *(by_mode[code] for code in named)):
        rises = measure.name == "experiment_success"
        scope = FigureScope(
            f"{measure.name}_power", inputs.taxonomy_ref, experiment.baseline, measure.mode
        )
        change = experiment.change if rises else -experiment.change
        design = design_of(experiment, measure, change)
        if design is None:
            yield scope.number("power", None, reason="no_such_change")
            continue
        level = ALPHA / (max(1, len(experiment.compared)) if rises else tests)
        design = replace(design, alpha=level)
        if tasks:
            yield scope.number("power", power(design, tasks, runs, seed=seed), n=tasks)
            least = detectable(design, tasks, runs, seed=seed)
            reason = "" if least is not None else "more_tasks"
            yield scope.number("detectable", least, n=tasks, reason=reason)
        for planned in PLANNED_RUNS:
            needed = tasks_needed(design, planned, seed=seed)
            reason = "" if needed is not None else "more_tasks"
            yield scope.number("tasks_needed", needed, condition=str(planned), reason=reason)
