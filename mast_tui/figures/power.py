"""Planning of an experiment: the tasks and runs that detect a change, by simulation.

Runs so far give unbiased estimates of the baseline's rate, the variance between tasks, and the
correlation of the arms. Simulated experiments with these values are tested as in ``experiment``, at
the level that one change among all tested modes must reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, reduce
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.polynomial.hermite import hermgauss
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import Floats
from mast_tui.figures.experiment import (
    Experiment,
    Measure,
    TaskMeans,
    measures,
    task_means,
)
from mast_tui.figures.intervals import bisected
from mast_tui.figures.record import Figure, FigureScope
from mast_tui.figures.significance import sign_flips_of_rows

TARGET: Final = 0.8
"""The power for which an experiment is planned."""

ALPHA: Final = 0.05

PLANNED_RUNS: Final = (1, 3, 5)
"""The numbers of runs of each task in each arm, for which the tasks needed are counted."""

MOST_TASKS: Final = 5_000
PLANNED_MODES: Final = 3
"""The number of modes to plan if none were named: the most frequent ones."""

_DRAWS: Final = 2_000
"""The number of simulated experiments for one power."""

_MANY: Final = 20_000
"""The number of tasks for the normal approximation."""

_HALVINGS: Final = 60
_STEPS: Final = 7
"""The number of bisections for the least change; each simulates a power."""


@dataclass(frozen=True, slots=True)
class RateChange:
    """A rate in two arms over the same tasks.

    Args:
        baseline: The rate of the baseline.
        changed_rate: The rate of the other arm.
        within_arm: The correlation of two runs of one task in one arm.
        across_arms: The correlation of two runs of one task in two arms, at most ``within_arm``.
        alpha: The level of the test.
    """

    baseline: float
    changed_rate: float
    within_arm: float = 0.0
    across_arms: float = 0.0
    alpha: float = ALPHA


@cache
def _quadrature_nodes() -> tuple[Floats, Floats]:
    points, weights = hermgauss(60)
    return points * np.sqrt(2), weights / np.sqrt(np.pi)


def _rate_moments(mean_logit: float, spread: float) -> tuple[float, float]:
    """Return the mean and the variance of a rate whose logit is normally distributed.

    ``mean_logit`` and ``spread`` are the mean and the standard deviation of the logit.
    """
    # Gauss-Hermite quadrature.
    points, weights = _quadrature_nodes()
    rates = 1 / (1 + np.exp(-(mean_logit + spread * points)))
    mean = float(weights @ rates)
    return mean, float(weights @ rates**2) - mean**2


def _mean_logit_for(rate: float, spread: float) -> float:
    """Return the mean logit for which the mean of the rates is ``rate``.

    The logits are normally distributed with the standard deviation ``spread``.
    """

    def is_low(mean_logit: float) -> bool:
        mean_rate, _ = _rate_moments(mean_logit, spread)
        return mean_rate < rate

    # The middle of the last range.
    return sum(bisected(-60.0, 60.0, is_low, _HALVINGS)) / 2


@cache
def logit_normal(rate: float, within_arm: float) -> tuple[float, float]:
    """Return the mean and the standard deviation of the logits of the tasks' rates.

    The rate of a task is the chance that a run is a hit. The logits of the rates are normally
    distributed.

    Args:
        rate: The mean of the tasks' rates.
        within_arm: The correlation of two runs of one task in one arm.
    """
    if not 0 < rate < 1 or within_arm <= 0:
        return _mean_logit_for(min(max(rate, 1e-9), 1 - 1e-9), 0.0), 0.0

    def is_low(spread: float) -> bool:
        _, variance = _rate_moments(_mean_logit_for(rate, spread), spread)
        # The correlation of two runs: the variance of the rates, divided by the variance of a run.
        return variance < within_arm * rate * (1 - rate)

    # Each halving is slow, and half of them are enough.
    spread = sum(bisected(0.0, 20.0, is_low, _HALVINGS // 2 - 1)) / 2
    return _mean_logit_for(rate, spread), spread


def draw_hits(
    design: RateChange, tasks: int, runs: int, draws: int, random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Simulate experiments: draw the number of hits of each task in both arms.

    The logit of a task's rate is the sum of a part that both arms share and a part of each arm.

    Args:
        design: The rates of both arms and the correlations of runs.
        tasks: The number of tasks.
        runs: The number of runs of each task in each arm.
        draws: The number of experiments.
        random: The source of randomness.

    Returns:
        The hits of the baseline and of the other arm, each as experiments × tasks.
    """
    shared_part = random.standard_normal((draws, tasks))
    shared_weight = (
        min(1.0, max(0.0, design.across_arms / design.within_arm)) if design.within_arm > 0 else 0.0
    )
    hits_by_arm = []
    for rate in (design.baseline, design.changed_rate):
        mean_logit, spread = logit_normal(rate, design.within_arm)
        arm_part = random.standard_normal((draws, tasks))
        logits = mean_logit + spread * (
            np.sqrt(shared_weight) * shared_part + np.sqrt(1 - shared_weight) * arm_part
        )
        hits_by_arm.append(random.binomial(runs, 1 / (1 + np.exp(-logits))).astype(np.int64))
    baseline_hits, changed_hits = hits_by_arm
    return baseline_hits, changed_hits


def power(
    design: RateChange, tasks: int, runs: int, *, draws: int = _DRAWS, seed: int = 0
) -> float:
    """Return the share of simulated experiments in which a test detects the change of the rate.

    Args:
        design: The rates of both arms and the level of the test.
        tasks: The number of tasks.
        runs: The number of runs of each task in each arm.
        draws: The number of experiments.
        seed: The seed of the draws.
    """
    baseline_hits, changed_hits = draw_hits(design, tasks, runs, draws, np.random.default_rng(seed))
    return float((sign_flips_of_rows(changed_hits - baseline_hits) < design.alpha).mean())


def tasks_needed(design: RateChange, runs: int, *, seed: int = 0) -> int | None:
    """Return the fewest tasks with the power of ``TARGET``; None above ``MOST_TASKS``.

    Args:
        design: The rates of both arms and the level of the test.
        runs: The number of runs of each task in each arm.
        seed: The seed of the simulated experiments.
    """

    def is_detected(tasks: int) -> bool:
        return power(design, tasks, runs, draws=_DRAWS // 2, seed=seed) >= TARGET

    approximate_tasks = _approximate_tasks(design, runs, seed)
    if approximate_tasks > 2 * MOST_TASKS:
        return None

    # Search a range around the approximation: ``low`` tasks are too few, ``high`` suffice.
    low = max(2, int(approximate_tasks / 1.3))
    high = max(low + 1, int(approximate_tasks * 1.3))
    while is_detected(low) and low > 2:
        high = low
        low = max(2, low // 2)
    while not is_detected(high) and high <= MOST_TASKS:
        low = high
        high *= 2

    # Each step simulates experiments, so an accuracy of 2.5 % is enough.
    while high - low > max(1, high // 40):
        middle = (low + high) // 2
        if is_detected(middle):
            high = middle
        else:
            low = middle
    return high if high <= MOST_TASKS else None


def _approximate_tasks(design: RateChange, runs: int, seed: int) -> float:
    """Return the tasks needed by the normal approximation, from one experiment with many tasks."""
    baseline_hits, changed_hits = draw_hits(
        design, _MANY, runs, draws=1, random=np.random.default_rng(seed)
    )
    differences = (changed_hits - baseline_hits)[0].astype(np.float64)
    normal = NormalDist()
    quantile_sum = normal.inv_cdf(1 - design.alpha / 2) + normal.inv_cdf(TARGET)
    return quantile_sum**2 * float(differences.var()) / max(float(differences.mean()) ** 2, 1e-9)


def detectable_change(design: RateChange, tasks: int, runs: int, *, seed: int = 0) -> float | None:
    """Return the least change that is detected with a power of ``TARGET``.

    Args:
        design: The design; only the direction of its change matters.
        tasks: The number of tasks.
        runs: The number of runs of each task in each arm.
        seed: The seed of the simulated experiments.

    Returns:
        The change as a share; None if even the largest possible change has less power.
    """
    rises = design.changed_rate > design.baseline
    largest = 1 - design.baseline if rises else design.baseline

    def is_detected(change: float) -> bool:
        changed_rate = design.baseline + (change if rises else -change)
        design_with_change = replace(design, changed_rate=min(max(changed_rate, 0.0), 1.0))
        # Fewer draws, because the search computes many powers.
        return power(design_with_change, tasks, runs, draws=_DRAWS // 2, seed=seed) >= TARGET

    if not is_detected(largest):
        return None
    return bisected(0.0, largest, lambda change: not is_detected(change), _STEPS)[1]


def design_of(experiment: Experiment, measure: Measure, change: float) -> RateChange | None:
    """Return the rates and correlations for a planned change, estimated from an experiment's runs.

    The correlation within an arm needs tasks with several runs in an arm. Without them, the
    correlation across arms replaces it.

    Args:
        experiment: The runs so far.
        measure: The share that is to change.
        change: The change of the baseline's rate, below 0 for a fall.

    Returns:
        The design; None if the baseline has no runs, or if its rate cannot change by that much.
    """
    task_count = int(experiment.tasks.max(initial=-1)) + 1
    means_by_arm = {}
    for arm in experiment.inputs.group_names:
        in_arm = experiment.rows(arm)
        means_by_arm[arm] = task_means(measure.values[in_arm], experiment.tasks[in_arm], task_count)
    baseline_means = means_by_arm[experiment.baseline]
    if not baseline_means.defined.any():
        return None
    rate = float(np.nanmean(baseline_means.values))
    across = (
        correlation_across_arms(baseline_means, means_by_arm[arm]) for arm in experiment.compared
    )
    across_correlation = _mean_correlation(across) or 0.0
    within_correlation = _mean_correlation(map(correlation_within_arm, means_by_arm.values()))
    if within_correlation is None:
        within_correlation = across_correlation
    changed_rate = rate + change
    if not 0 <= changed_rate <= 1 or not 0 < rate < 1:
        return None
    return RateChange(
        rate,
        changed_rate,
        # A correlation of 1 would need an infinite spread of the logits.
        within_arm=min(within_correlation, 0.99),
        across_arms=min(across_correlation, within_correlation, 0.99),
    )


def _mean_correlation(correlations: Iterable[float | None]) -> float | None:
    """Return the mean of the defined correlations, at least 0; None if there are none."""
    defined = [correlation for correlation in correlations if correlation is not None]
    return max(0.0, float(np.mean(defined))) if defined else None


def correlation_within_arm(means: TaskMeans) -> float | None:
    """Return the correlation of two runs of one task in one arm, from the tasks' rates.

    The result is None with fewer than two tasks with several runs, or for a mean rate of 0 or 1.
    """
    has_several_runs = means.defined & (means.runs > 1)
    if has_several_runs.sum() < 2:
        return None
    rates = means.values[has_several_runs]
    runs = means.runs[has_several_runs]
    mean_rate = float(rates.mean())
    variance_in_tasks = float((rates * (1 - rates) * runs / (runs - 1)).mean())
    total_variance = mean_rate * (1 - mean_rate)
    return 1 - variance_in_tasks / total_variance if total_variance else None


def correlation_across_arms(first: TaskMeans, second: TaskMeans) -> float | None:
    """Return the correlation of two runs of one task, one run in each of two arms.

    Args:
        first: The rates of one arm by task.
        second: The rates of the other arm.

    Returns:
        The correlation; None with fewer than two shared tasks, or for a mean rate of 0 or 1.
    """
    in_both = first.defined & second.defined
    if in_both.sum() < 2:
        return None
    first_rates = first.values[in_both]
    second_rates = second.values[in_both]
    # The deviations are those of single runs (0 or 1), because the correlation is of two runs.
    deviation_product = np.sqrt(
        first_rates.mean()
        * (1 - first_rates.mean())
        * second_rates.mean()
        * (1 - second_rates.mean())
    )
    covariance = float(
        ((first_rates - first_rates.mean()) * (second_rates - second_rates.mean())).sum()
    ) / (len(first_rates) - 1)
    return covariance / float(deviation_product) if deviation_product else None


def power_figures(experiment: Experiment, *, seed: int = 0) -> Iterator[Figure]:
    """Yield the power, the least change and the tasks needed, for success and for some modes.

    The planned change is a rise of success or a fall of a mode. The condition of ``tasks_needed``
    is the number of runs of each task in each arm.

    Args:
        experiment: The runs so far and the planned change.
        seed: The seed of the simulated experiments.
    """
    inputs = experiment.inputs
    # For each arm, the task of each run.
    tasks_of_runs = [experiment.tasks[experiment.rows(arm)] for arm in inputs.group_names]
    shared_task_count = len(reduce(np.intersect1d, tasks_of_runs))
    first_arm_tasks = tasks_of_runs[0]
    runs_per_task = max(1, round(len(first_arm_tasks) / max(1, len(np.unique(first_arm_tasks)))))
    for measure, test_count in _planned_measures(experiment):
        scope = FigureScope(
            f"{measure.name}_power", inputs.taxonomy_ref, experiment.baseline, measure.mode
        )
        is_success = measure.name == "experiment_success"
        change = experiment.change if is_success else -experiment.change
        design = design_of(experiment, measure, change)
        if design is None:
            yield scope.number("power", None, reason="no_such_change")
            continue
        # Holm's correction divides the level of the smallest p-value by the number of tests.
        design = replace(design, alpha=ALPHA / test_count)
        if shared_task_count:
            reached_power = power(design, shared_task_count, runs_per_task, seed=seed)
            yield scope.number("power", reached_power, n=shared_task_count)
            least_change = detectable_change(design, shared_task_count, runs_per_task, seed=seed)
            reason = "" if least_change is not None else "more_tasks"
            yield scope.number("detectable", least_change, n=shared_task_count, reason=reason)
        for planned_runs in PLANNED_RUNS:
            fewest_tasks = tasks_needed(design, planned_runs, seed=seed)
            reason = "" if fewest_tasks is not None else "more_tasks"
            yield scope.number(
                "tasks_needed", fewest_tasks, condition=str(planned_runs), reason=reason
            )


def _planned_measures(experiment: Experiment) -> Iterator[tuple[Measure, int]]:
    """Yield success and the planned modes, each with the number of tests of its family."""
    success, *other_measures = measures(experiment)
    arm_count = max(1, len(experiment.compared))
    yield success, arm_count
    modes = [measure for measure in other_measures if measure.name == "experiment_mode"]
    planned_modes = [measure for measure in modes if measure.mode in experiment.tested]
    if not planned_modes:
        in_baseline = experiment.rows(experiment.baseline)
        judged_modes = [
            measure for measure in modes if not np.isnan(measure.values[in_baseline]).all()
        ]
        planned_modes = sorted(
            judged_modes, key=lambda measure: -float(np.nanmean(measure.values[in_baseline]))
        )[:PLANNED_MODES]
    # Without tested modes, all modes with any verdict are tested.
    judged_count = sum(not np.isnan(measure.values).all() for measure in modes)
    test_count = max(1, len(experiment.tested) or judged_count) * arm_count
    for measure in planned_modes:
        yield measure, test_count
