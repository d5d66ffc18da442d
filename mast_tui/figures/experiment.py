"""Arms of an experiment over the same tasks with several runs of each.

The task is the unit. The rate of an arm is the mean over its tasks of the share of runs (pass@1 of
Chen and others 2021, arXiv 2107.03374), so each task counts once. An arm is compared with the
baseline over the tasks that both have run. If they share none, their tasks count as independent.

The interval of a rate is Wilson's, for the effective number of cases by the variance between tasks
(Korn and Graubard 1998), with Student's t. The interval of a difference is Student's over the
differences of tasks. The test flips the signs of these differences. Arms without a common task are
tested by exchanging whole tasks. ``docs/simulations.md`` reports the accuracy of these methods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import comb, lcm, sqrt
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import Floats, Interval, ratio
from mast_tui.figures.intervals import decisions_needed, student_t, wilson_with_student
from mast_tui.figures.record import Figure, FigureScope, Sources
from mast_tui.figures.signatures.model import (
    ABSENT,
    FAILED,
    PRESENT,
    SUCCEEDED,
    UNKNOWN,
    UNRESOLVED,
    Integers,
    SignatureInput,
)
from mast_tui.figures.significance import group_permutations, holm, sign_flips
from mast_tui.grouping import values_by_key

LEAST_TASKS: Final = 5
"""The fewest tasks for an interval, and for a share the fewest with a hit and with a miss."""

AMOUNTS: Final = ("tokens", "minutes", "money")
"""The amounts that runs use: tokens in and out, minutes, and money by the prices of models."""

MOST_RUNS: Final = 10
"""The highest k of pass^k."""

_ROUNDING: Final = 1e-12
"""The greatest difference, relative to a mean, that counts as rounding."""

_FINEST: Final = 1000
"""The number of steps into which values are divided to test differences of means."""

Kind = Literal["share", "mean"]


@dataclass(frozen=True, slots=True, eq=False)
class Experiment:
    """The runs of an experiment, in columns.

    Args:
        inputs: The runs; their groups are the arms.
        baseline: The name of the arm that the others are compared with.
        tested: The codes of the modes whose p-values are adjusted together.
        judged: A judge's verdicts (runs × modes) on all runs if people labelled a part; None
            without a judge.
        amounts: The amount that each run used, by its name; NaN if unknown.
        change: The planned change of a rate, 0.2 for 20 points.
        without_arm: The number of runs left out because they have no arm.
    """

    inputs: SignatureInput
    baseline: str
    tested: tuple[str, ...] = ()
    judged: NDArray[np.uint8] | None = None
    amounts: Mapping[str, Floats] = field(default_factory=dict)
    change: float = 0.2
    without_arm: int = 0

    @property
    def runs_without_task_id(self) -> int:
        """The number of runs whose task has no id and is identified by its text."""
        flags = self.inputs.task_from_text
        return 0 if flags is None else int(flags.sum())

    @property
    def similar_tasks(self) -> tuple[str, ...]:
        """The names of the first tasks that differ only by case or spaces; empty for none."""
        numbers = self.inputs.task_numbers
        used_numbers = set[int]() if numbers is None else set(numbers.tolist())
        keys = enumerate(self.inputs.task_keys)
        names = [" ".join(key).strip() for number, key in keys if number in used_numbers]
        similar = values_by_key((" ".join(name.split()).casefold(), name) for name in names)
        return next((tuple(group) for group in similar.values() if len(group) > 1), ())

    @property
    def repeated_trials(self) -> int:
        """The number of runs that repeat the arm, task and trial number of an earlier run."""
        trial_numbers = self.inputs.trial_numbers
        if trial_numbers is None:
            return 0
        # A trial or task below 0 is unknown.
        has_trial = (trial_numbers >= 0) & (self.tasks >= 0)
        trials = np.stack([self.inputs.group, self.tasks, trial_numbers])[:, has_trial]
        different_trials = np.unique(trials, axis=1)
        return int(has_trial.sum()) - int(different_trials.shape[1])

    @property
    def compared(self) -> tuple[str, ...]:
        """The arms other than the baseline."""
        return tuple(name for name in self.inputs.group_names if name != self.baseline)

    @property
    def has_verdict(self) -> NDArray[np.bool_]:
        """A mask of the runs on which people or the judge have a verdict on any mode."""
        verdicts = [self.inputs.verdicts, *(() if self.judged is None else (self.judged,))]
        return np.asarray(np.isin(np.hstack(verdicts), (PRESENT, ABSENT)).any(axis=1))

    def rows(self, arm: str) -> NDArray[np.bool_]:
        """Return a mask of the runs that belong to an arm and name a task."""
        in_arm = self.inputs.group == self.inputs.group_names.index(arm)
        return np.asarray(in_arm & (self.tasks >= 0))

    @property
    def tasks(self) -> Integers:
        """The task number of each run, -1 if it has no task.

        Without any task numbers, each run is a task of its own.
        """
        task_numbers = self.inputs.task_numbers
        if task_numbers is None or (task_numbers < 0).all():
            return np.arange(len(self.inputs.traces), dtype=np.int64)
        return task_numbers


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """A figure of runs: the share of runs with a feature, or the mean of an amount.

    Args:
        name: The name of the scope of its records.
        mode: The code of a mode, the id of a category, or the name of an amount.
        kind: Share of runs or mean.
        values: The value of each run; NaN if it has none.
        unresolved: The runs on which annotators differ.
        by_judge: The judge's values if people labelled a part of the runs.
        sources: The slugs of the modes on which the figure rests.
    """

    name: str
    mode: str
    kind: Kind
    values: Floats
    unresolved: NDArray[np.bool_] | None = None
    by_judge: Floats | None = None
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class TaskMeans:
    """The mean of a measure in each task of one arm; NaN for a task without a value.

    Attributes:
        values: The mean of each task.
        runs: The number of runs of each task.
        hits: The sum of the values of each task's runs, without runs that people have not labelled.
        labelled_runs: The number of runs of each task that people labelled, if the means are those
            of a judge, corrected by these labels; None otherwise.
    """

    values: Floats
    runs: Integers
    hits: Floats
    labelled_runs: Integers | None = None

    @property
    def is_corrected(self) -> bool:
        """True if the means are a judge's, corrected by people's labels (``powered_means``)."""
        return self.labelled_runs is not None

    @property
    def defined(self) -> NDArray[np.bool_]:
        """The tasks that have a mean."""
        return ~np.isnan(self.values)

    def subset(self, tasks: NDArray[np.bool_]) -> TaskMeans:
        """Return the means of some of the tasks."""
        labelled_runs = None if self.labelled_runs is None else self.labelled_runs[tasks]
        return TaskMeans(self.values[tasks], self.runs[tasks], self.hits[tasks], labelled_runs)

    def with_hits_and_misses(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return a mask of the tasks with a hit, and one of the tasks with a miss.

        A hit is a run with the measured feature, a miss is one without it. Only runs that people
        labelled count.
        """
        run_counts = self.runs if self.labelled_runs is None else self.labelled_runs
        return self.hits > 0, self.hits < run_counts


def task_means(values: Floats, task_numbers: Integers, task_count: int) -> TaskMeans:
    """Return the means of a measure by task.

    Args:
        values: The value of each run; NaN if it has none.
        task_numbers: The number of each run's task, from 0.
        task_count: The number of tasks.
    """
    has_value = ~np.isnan(values)
    tasks = task_numbers[has_value]
    runs = np.bincount(tasks, minlength=task_count).astype(np.int64)
    # For a share, values are 0 or 1, and their sum is the number of hits.
    hits = np.bincount(tasks, weights=values[has_value], minlength=task_count).astype(np.float64)
    return TaskMeans(ratio(hits, runs.astype(np.float64)), runs, hits)


def powered_means(
    people: Floats, judge: Floats, task_numbers: Integers, task_count: int
) -> TaskMeans:
    """Return the means by task from a judge's labels of all runs and people's of some runs.

    The method is prediction-powered inference (Angelopoulos and others 2023, arXiv 2311.01453). The
    estimate is the weighted mean of the judge, corrected by the judge's error on the labelled runs.
    The weight makes the variance least. The value of a task is the estimate plus the task's
    influence on it. So the mean of the values is the estimate, and their variance gives its
    standard error.

    Args:
        people: The value of each run by people; NaN if they have not labelled it.
        judge: The value of each run by the judge; NaN if it has none.
        task_numbers: The number of each run's task, from 0.
        task_count: The number of tasks.
    """
    is_judged = ~np.isnan(judge)
    labelled_by_both = ~np.isnan(people) & is_judged
    people_means = task_means(people, task_numbers, task_count)
    # With too few labels the judge's errors are unknown. Without further runs of the judge there is
    # nothing to add to the people's labels.
    if labelled_by_both.sum() < LEAST_TASKS or (labelled_by_both == is_judged).all():
        return people_means
    covariances = np.cov(people[labelled_by_both], judge[labelled_by_both])
    best_weight = float(covariances[0, 1] / covariances[1, 1]) if covariances[1, 1] else 0.0
    judge_weight = min(1.0, max(0.0, best_weight))
    judge_means = task_means(judge, task_numbers, task_count)
    errors = np.where(labelled_by_both, people - judge_weight * judge, np.nan)
    error_means = task_means(errors, task_numbers, task_count)
    mean_of_judge = np.nanmean(judge_means.values)
    mean_error = np.nanmean(error_means.values)
    estimated_mean = judge_weight * mean_of_judge + mean_error
    # A labelled task stands for all tasks that the judge has judged.
    task_ratio = judge_means.defined.sum() / error_means.defined.sum()
    influence_of_errors = np.where(
        error_means.defined, task_ratio * (error_means.values - mean_error), 0.0
    )
    influence = judge_weight * (judge_means.values - mean_of_judge) + influence_of_errors
    return TaskMeans(
        estimated_mean + influence, judge_means.runs, people_means.hits, people_means.runs
    )


def estimate(means: TaskMeans, kind: Kind) -> Figure:
    """Return the mean over the tasks of one arm, with its interval or the reason for none.

    With few tasks there is an interval, and the reason ``few_tasks`` against it.

    Args:
        means: The means by task.
        kind: ``share`` for the share of runs with a feature, ``mean`` for the mean of an amount.
    """
    values = means.values[means.defined]
    task_count = len(values)
    if not task_count:
        return Figure(reason="no_runs")
    value = float(values.sum()) / task_count
    if task_count < 2:
        return Figure(value=value, reason="few_tasks")
    variance = _variance_of_mean(values, kind)
    if kind == "mean":
        if not variance:
            return Figure(value=value, reason="no_variance")
        interval = _student_interval(value, sqrt(variance), task_count - 1, kind)
    else:
        value = min(1.0, max(0.0, value))
        interval = _share_interval(value, variance, values, means.runs[means.defined])
    reason = "few_tasks" if task_count < LEAST_TASKS else ""
    return Figure(value=value, interval=interval, reason=reason)


def _share_interval(share: float, variance: float, task_shares: Floats, runs: Integers) -> Interval:
    """Return Wilson's interval of a mean of shares, for the effective number of runs."""
    binomial_variance = share * (1 - share)
    # Tasks with equal shares show no variance; then each task counts as one run.
    effective_runs = float(len(task_shares))
    if variance and binomial_variance:
        effective_runs = min(float(runs.sum()), binomial_variance / variance)
    return wilson_with_student(share, effective_runs, _degrees_of_freedom(task_shares))


def _variance_of_mean(values: Floats, kind: Kind) -> float:
    """Return the variance of the mean of tasks; 0 if it is rounding or for a single task."""
    task_count = len(values)
    if task_count < 2:
        return 0.0
    mean = float(values.sum()) / task_count
    variance = float(((values - mean) ** 2).sum()) / (task_count - 1) / task_count
    has_equal_amounts = kind == "mean" and sqrt(variance) <= _ROUNDING * abs(mean)
    return 0.0 if has_equal_amounts else variance


def _degrees_of_freedom(values: Floats) -> int:
    """Return the degrees of freedom of the variance of n values (Satterthwaite 1946).

    The formula is 2 / (2 / (n - 1) + κ / n), where κ is the excess kurtosis. κ is large if most
    values are 0, as for a rare mode. Only half of it counts, because the kurtosis of few values is
    uncertain (``docs/simulations.md``).
    """
    deviations = values - values.mean()
    variance = float((deviations**2).mean())
    excess_kurtosis = float((deviations**4).mean()) / variance**2 - 3 if variance else 0.0
    counted_kurtosis = max(excess_kurtosis, 0.0) / 2
    degrees = 2 / (2 / (len(values) - 1) + counted_kurtosis / len(values))
    return max(1, int(degrees))


class TaskDifference(NamedTuple):
    """The difference of the means of two arms, and its p-value."""

    figure: Figure
    p_value: float | None


def difference(first: TaskMeans, second: TaskMeans, kind: Kind) -> TaskDifference:
    """Return the mean of one arm less that of another, over the tasks that both have run.

    Arms that share no task are compared over all of their tasks.

    Args:
        first: The means of one arm by task.
        second: The means of the other arm, by the same tasks.
        kind: ``share`` for the share of runs with a feature, ``mean`` for the mean of an amount.
    """
    shared_tasks = first.defined & second.defined
    if not shared_tasks.any():
        return _unpaired_difference(first, second, kind)
    arms = (first.subset(shared_tasks), second.subset(shared_tasks))
    task_differences = arms[0].values - arms[1].values
    task_count = len(task_differences)
    value = float(task_differences.sum()) / task_count
    (whole_differences,) = _whole_numbers([task_differences], arms)
    p_value = sign_flips(whole_differences.tolist())
    least_count = _least_task_count(arms, paired=True)
    reason = _lacking_reason(task_count, least_count, kind)
    figure = Figure(value=value, n=task_count, reason=reason)
    if task_count < 2:
        return TaskDifference(figure, p_value)
    standard_error = float(task_differences.std(ddof=1)) / sqrt(task_count)
    if standard_error <= _ROUNDING * float(np.abs(arms[0].values).max()):
        return TaskDifference(replace(figure, reason=reason or "no_variance"), p_value)
    degrees = task_count - 1
    if any(arm.is_corrected for arm in arms):
        # The judge's errors are known only on the few tasks that people labelled.
        degrees = min(degrees, max(1, 2 * least_count))
    interval = _student_interval(value, standard_error, degrees, kind)
    return TaskDifference(replace(figure, interval=interval), p_value)


def _unpaired_difference(first: TaskMeans, second: TaskMeans, kind: Kind) -> TaskDifference:
    """Return the difference of two arms that share no task, with Welch's interval."""
    arms = [first.subset(first.defined), second.subset(second.defined)]
    first_mean, second_mean = (estimate(arm, kind).value for arm in arms)
    task_counts = [len(arm.values) for arm in arms]
    task_count = min(task_counts)  # the smaller arm limits what can be said
    if first_mean is None or second_mean is None:
        return TaskDifference(Figure(n=0, reason="no_runs"), None)
    value = first_mean - second_mean
    variances = [_variance_of_mean(arm.values, kind) for arm in arms]
    variance = sum(variances)
    p_value = group_permutations(*_whole_numbers([arm.values for arm in arms], arms))
    reason = _lacking_reason(task_count, _least_task_count(arms, paired=False), kind)
    figure = Figure(value=value, n=task_count, reason=reason)
    if task_count < 2 or not variance:
        return TaskDifference(replace(figure, reason=reason or "no_variance"), p_value)
    welch_terms = (
        arm_variance**2 / (arm_task_count - 1)
        for arm_variance, arm_task_count in zip(variances, task_counts, strict=True)
    )
    degrees = max(1, int(variance**2 / sum(welch_terms)))
    interval = _student_interval(value, sqrt(variance), degrees, kind)
    return TaskDifference(replace(figure, interval=interval), p_value)


def least_p_value(first: TaskMeans, second: TaskMeans) -> float:
    """Return the least p-value that the test of ``difference`` can reach with these tasks.

    The test counts whole combinations: of the signs of shared tasks, or of tasks in two arms.

    Args:
        first: The means of one arm by task.
        second: The means of the other arm, by the same tasks.
    """
    shared_count = int((first.defined & second.defined).sum())
    if shared_count:
        return 2.0 ** (1 - min(shared_count, 1000))  # 2⁻¹⁰⁷⁵ is 0 as a float
    task_counts = int(first.defined.sum()), int(second.defined.sum())
    both_sides = 2 if task_counts[0] == task_counts[1] else 1
    return both_sides / comb(sum(task_counts), task_counts[0])


def _student_interval(value: float, standard_error: float, degrees: int, kind: Kind) -> Interval:
    """Return Student's interval of a value, within -1 and 1 for a share."""
    half_width = student_t(degrees) * standard_error
    if kind == "mean":
        return value - half_width, value + half_width
    return max(-1.0, value - half_width), min(1.0, value + half_width)


def _least_task_count(arms: Sequence[TaskMeans], *, paired: bool) -> int:
    """Return the number of tasks with a hit or the number with a miss, whichever is less.

    A hit is a run with the measured feature, a miss is one without it. With ``paired``, both arms
    have the same tasks, and a task with a hit in either arm counts once.
    """
    (first_hits, first_misses), (second_hits, second_misses) = (
        arm.with_hits_and_misses() for arm in arms
    )
    if any(arm.is_corrected for arm in arms):
        masks = (first_hits, first_misses, second_hits, second_misses)
        return min(int(tasks.sum()) for tasks in masks)
    if not paired:
        hit_count = int(first_hits.sum()) + int(second_hits.sum())
        return min(hit_count, int(first_misses.sum()) + int(second_misses.sum()))
    hit_tasks = first_hits | second_hits
    miss_tasks = first_misses | second_misses
    return min(int(hit_tasks.sum()), int(miss_tasks.sum()))


def _lacking_reason(task_count: int, least_task_count: int, kind: Kind) -> str:
    """Return the reason why a difference has no interval; empty if it has one.

    ``least_task_count`` is the result of ``_least_task_count``.
    """
    if task_count < LEAST_TASKS:
        return "few_tasks"
    return "rare_mode" if kind == "share" and least_task_count < LEAST_TASKS else ""


def _whole_numbers(values: Sequence[Floats], arms: Sequence[TaskMeans]) -> list[Integers]:
    """Scale the values of the tasks of both arms to whole numbers.

    A share is a fraction of its task's runs, so the factor is the least common multiple of the
    numbers of runs. Values that are no such fractions, or need too large a factor, are rounded to
    ``_FINEST`` steps.

    Args:
        values: The values of each arm to multiply.
        arms: The means of each arm.
    """
    run_counts = {n for arm in arms for n in arm.runs.tolist() if n}
    factor: float = lcm(*run_counts) if run_counts else 1
    largest = max(float(np.abs(arm_values).max(initial=0.0)) for arm_values in values)
    # Corrected means of a judge are no fractions of runs.
    if factor > _FINEST or largest > 1 or any(arm.is_corrected for arm in arms):
        factor = _FINEST / largest if largest else 1
    return [np.rint(arm_values * factor).astype(np.int64) for arm_values in values]


def measures(experiment: Experiment) -> Iterator[Measure]:
    """Yield the measures of an experiment, in the order of the report."""
    inputs = experiment.inputs
    success = _values_where_defined(inputs.outcome == SUCCEEDED, inputs.outcome != UNKNOWN)
    yield Measure("experiment_success", "", "share", success)
    yield from _mode_measures(experiment)
    yield from _category_measures(inputs)
    present_counts = (inputs.verdicts == PRESENT).sum(axis=1)
    judged_and_failed = np.logical_and(_judged_on_all(inputs), inputs.outcome == FAILED)
    modes_per_failed_run = _values_where_defined(present_counts, judged_and_failed)
    yield Measure("experiment_amount", "modes_per_failed_run", "mean", modes_per_failed_run)
    yield from _place_measures(inputs)
    for name in AMOUNTS:
        if name in experiment.amounts:
            yield Measure("experiment_cost", name, "mean", experiment.amounts[name])


def _mode_measures(experiment: Experiment) -> Iterator[Measure]:
    """Yield the share of runs with each mode, among the runs that were judged on it."""
    inputs = experiment.inputs
    for mode_index, mode in enumerate(inputs.modes):
        verdicts = inputs.verdicts[:, mode_index]
        by_judge = None
        if experiment.judged is not None:
            by_judge = _values_of_verdicts(experiment.judged[:, mode_index])
        yield Measure(
            "experiment_mode",
            mode.code,
            "share",
            _values_of_verdicts(verdicts),
            unresolved=verdicts == UNRESOLVED,
            by_judge=by_judge,
            sources=(mode.slug,),
        )


def _category_measures(inputs: SignatureInput) -> Iterator[Measure]:
    """Yield the share of runs with each category: with any of its modes."""
    for category in inputs.categories:
        in_category = np.array([mode.slug in category.slugs for mode in inputs.modes], dtype=bool)
        shows_category = (inputs.verdicts[:, in_category] == PRESENT).any(axis=1)
        is_defined = np.logical_or(shows_category, _judged_on_all(inputs, in_category))
        values = _values_where_defined(shows_category, is_defined)
        yield Measure("experiment_category", category.id, "share", values, sources=category.slugs)


def _place_measures(inputs: SignatureInput) -> Iterator[Measure]:
    """Yield the share of runs with a fatal failure, and the position where failures begin."""
    places = inputs.places
    if places.fatal.any():
        is_judged = np.asarray(np.isin(inputs.verdicts, (PRESENT, ABSENT)).any(axis=1))
        fatal = np.zeros(len(inputs.traces), dtype=bool)
        fatal[places.trace[places.fatal]] = True
        values = _values_where_defined(fatal, is_judged)
        yield Measure("experiment_amount", "fatal_failure", "share", values)
    if len(places.trace):
        # For each run, the index of the span where the first failure begins.
        onset = np.full(len(inputs.traces), np.inf)
        np.minimum.at(onset, places.trace, places.first.astype(np.float64))
        has_onset = np.isfinite(onset) & (inputs.spans > 0)
        span_counts = np.maximum(inputs.spans, 1).astype(np.float64)
        values = np.where(has_onset, np.minimum(onset, span_counts - 1) / span_counts, np.nan)
        yield Measure("experiment_amount", "onset", "mean", values)


def _judged_on_all(
    inputs: SignatureInput, modes: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_]:
    """Return a mask of the runs that were judged on every mode on which any run was judged.

    ``modes`` is a mask of the modes to consider; None for all.
    """
    judged = np.isin(inputs.verdicts, (PRESENT, ABSENT))
    needed_modes = judged.any(axis=0)
    if modes is not None:
        needed_modes &= modes
    return np.asarray(judged[:, needed_modes].all(axis=1) & needed_modes.any())


def _values_of_verdicts(verdicts: NDArray[np.uint8]) -> Floats:
    """Return 1 for present, 0 for absent, and NaN for other verdicts."""
    return _values_where_defined(verdicts == PRESENT, np.isin(verdicts, (PRESENT, ABSENT)))


def _values_where_defined(
    values: NDArray[np.bool_] | Integers, defined: NDArray[np.bool_]
) -> Floats:
    return np.where(defined, values.astype(np.float64), np.nan)


def experiment_figures(experiment: Experiment) -> list[Figure]:
    """Return the figures of an experiment; the group of a figure is its arm.

    P-values are adjusted over all arms and all measures of one family, such as the modes.
    """
    figures = [
        figure for arm in experiment.inputs.group_names for figure in _size_figures(experiment, arm)
    ]
    figures_by_family: dict[str, list[Figure]] = {}
    for measure in measures(experiment):
        family = measure.name
        if measure.name in ("experiment_amount", "experiment_cost"):
            family = measure.mode
        elif measure.name == "experiment_mode" and experiment.tested:
            # The other modes are a family of their own.
            family += "" if measure.mode in experiment.tested else " not tested"
        figures_by_family.setdefault(family, []).extend(_measure_figures(experiment, measure))
    for family_figures in figures_by_family.values():
        tests = [figure for figure in family_figures if figure.statistic == "flip_p"]
        adjusted = holm([test.value for test in tests])
        figures += family_figures
        figures += [
            replace(test, statistic="flip_p_adjusted", value=p_adjusted)
            for test, p_adjusted in zip(tests, adjusted, strict=True)
        ]
    figures += _pass_figures(experiment)
    return figures


def _arm_scope(experiment: Experiment, name: str, arm: str, mode: str = "") -> FigureScope:
    return FigureScope(
        name, experiment.inputs.taxonomy_ref, arm, mode, sources=Sources("signatures", group=arm)
    )


def _size_figures(experiment: Experiment, arm: str) -> Iterator[Figure]:
    """Yield the numbers of an arm's tasks and runs.

    Shared tasks are those that the baseline has run too.
    """
    inputs = experiment.inputs
    in_arm = inputs.group == inputs.group_names.index(arm)
    has_task = experiment.rows(arm)
    arm_tasks = np.unique(experiment.tasks[has_task])
    shared_tasks = np.intersect1d(arm_tasks, experiment.tasks[experiment.rows(experiment.baseline)])
    scope = _arm_scope(experiment, "experiment", arm)
    yield from scope.counts(
        {
            "tasks": len(arm_tasks),
            "runs": int(has_task.sum()),
            "shared_tasks": len(shared_tasks),
            "no_task": int((in_arm & ~has_task).sum()),
        }
    )


class _ArmMeans(NamedTuple):
    """The means by task in one arm, and the number of disagreements to resolve for an interval."""

    means: TaskMeans
    needs: int | None


def _arm_means(experiment: Experiment, measure: Measure, arm: str) -> _ArmMeans:
    """Return the means of a measure in one arm."""
    in_arm = experiment.rows(arm)
    task_numbers = experiment.tasks[in_arm]
    task_count = int(experiment.tasks.max(initial=-1)) + 1
    values = measure.values[in_arm]
    if measure.by_judge is None:
        means = task_means(values, task_numbers, task_count)
    else:
        means = powered_means(values, measure.by_judge[in_arm], task_numbers, task_count)
    unresolved = 0 if measure.unresolved is None else int(measure.unresolved[in_arm].sum())
    return _ArmMeans(means, decisions_needed(unresolved, int((~np.isnan(values)).sum())) or None)


def _measure_figures(experiment: Experiment, measure: Measure) -> Iterator[Figure]:
    """Yield a measure of each arm, with its difference from the baseline."""
    arms = {arm: _arm_means(experiment, measure, arm) for arm in experiment.inputs.group_names}
    baseline = arms[experiment.baseline]
    for arm, (means, needs) in arms.items():
        scope = _arm_scope(experiment, measure.name, arm, measure.mode)
        if measure.sources:
            scope = replace(scope, sources=Sources("signatures", measure.sources, group=arm))
        mean = _without_wrong_interval(estimate(means, measure.kind), needs)
        yield scope.figure(f"task_{measure.kind}", mean, n=int(means.runs.sum()))
        if arm == experiment.baseline:
            continue
        figure, p_value = difference(means, baseline.means, measure.kind)
        arm_difference = _without_wrong_interval(figure, needs or baseline.needs)
        yield scope.figure("arm_difference", arm_difference)
        undefined = figure.reason if p_value is None else ""
        yield scope.number("flip_p", p_value, n=figure.n, reason=undefined)
        if p_value is not None:
            yield scope.number("flip_p_least", least_p_value(means, baseline.means), n=figure.n)


def _without_wrong_interval(figure: Figure, needs: int | None = None) -> Figure:
    """Return a figure without its interval if there is a reason against it.

    ``needs`` is the number of disagreements to resolve before there is an interval.
    """
    reason = "unresolved" if needs else figure.reason
    interval = None if reason else figure.interval
    return replace(figure, interval=interval, reason=reason, needs=needs)


def pass_values(successes: Integers, runs: Integers, k: int) -> Floats:
    """Return the unbiased estimate of pass^k of each task: the chance that k runs all succeed.

    It is C(c, k) / C(n, k) for c successes in n runs (Yao and others 2024, τ-bench, arXiv
    2406.12045); NaN with fewer than k runs.

    Args:
        successes: The number of successes of each task.
        runs: The number of runs of each task.
        k: The number of runs that must all succeed.
    """
    values = np.where(runs >= k, 1.0, np.nan)
    # C(c, k) / C(n, k) is the product of (c - i) / (n - i) over i from 0 to k - 1.
    for i in range(k):
        values = values * ratio(np.maximum(successes - i, 0.0), np.maximum(runs - i, 0.0))
    return values


def _pass_figures(experiment: Experiment) -> Iterator[Figure]:
    """Yield pass^k of each arm, for k up to the most runs of a task."""
    success = next(measures(experiment))  # the first measure is success
    task_count = int(experiment.tasks.max(initial=-1)) + 1
    for arm in experiment.inputs.group_names:
        in_arm = experiment.rows(arm)
        means = task_means(success.values[in_arm], experiment.tasks[in_arm], task_count)
        scope = _arm_scope(experiment, "experiment_pass", arm)
        for k in range(1, min(MOST_RUNS, int(means.runs.max(initial=0))) + 1):
            values = pass_values(means.hits.astype(np.int64), means.runs, k)
            mean = _without_wrong_interval(estimate(replace(means, values=values), "share"))
            task_count_of_k = int((~np.isnan(values)).sum())
            yield scope.figure("pass_k", mean, condition=str(k), n=task_count_of_k)
