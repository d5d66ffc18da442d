"""Arms of an experiment over the same tasks with several runs of each: did the change help?

The task is the unit. The rate of an arm is the mean over its tasks of the share of runs (pass@1 of
Chen and others 2021, arXiv 2107.03374), so a task counts once, however often it was run. An arm is
compared with the baseline over the tasks that both have run. Where they share none, their tasks
count as independent.

An interval of a rate is Wilson's for as many cases as have the variance between tasks (Korn and
Graubard 1998), with Student's t. That of a difference is Student's over the differences of tasks.
The test flips the signs of these differences; between arms without a common task it exchanges whole
tasks. ``docs/simulations.md`` reports how well these and other methods hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import lcm, sqrt
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import Interval, ratio
from mast_tui.figures.intervals import Z, to_resolve, wilson_of
from mast_tui.figures.jackknife import student_t
from mast_tui.figures.record import Figure, FigureScope, Sources
from mast_tui.figures.signatures.model import (
    ABSENT,
    FAILED,
    PRESENT,
    SUCCEEDED,
    UNKNOWN,
    UNRESOLVED,
    SignatureInput,
    Whole,
)
from mast_tui.figures.significance import group_permutations, holm, sign_flips_of_rows

Values = NDArray[np.float64]

LEAST_TASKS: Final = 5
"""Tasks that an interval needs; of a share, also tasks that have it in a run, and that lack it."""

AMOUNTS: Final = ("tokens", "minutes", "money")
"""The amounts that runs use: tokens in and out, minutes, and money by the prices of models."""

MOST_RUNS: Final = 10
"""The highest k of pass^k."""

_ROUNDING: Final = 1e-12
"""The part of a mean by which equal values may differ in floating point."""

_FINEST: Final = 1000
"""The number of steps in which differences of means are tested."""

Kind = Literal["share", "mean"]


@dataclass(frozen=True, slots=True, eq=False)
class Experiment:
    """The runs of an experiment, in columns.

    Args:
        inputs: The runs; their groups are the arms.
        baseline: The name of the arm that the others are compared with.
        tested: The codes of the modes whose p-values are adjusted for each other; those that were
            named beforehand, or all.
        judged: The verdicts of a judge on all runs where ``inputs`` has those of people on a part
            of them (runs × modes); None without a judge.
        amounts: The amount that each run used, by its name; NaN where it is unknown.
        change: The change of a rate that planning is about, 0.2 for 20 points.
        without_arm: The number of runs that were left out because they have no arm.
    """

    inputs: SignatureInput
    baseline: str
    tested: tuple[str, ...] = ()
    judged: NDArray[np.uint8] | None = None
    amounts: Mapping[str, Values] = field(default_factory=dict)
    change: float = 0.2
    without_arm: int = 0

    @property
    def by_words(self) -> int:
        """The number of runs whose task has no id and is identified by its text."""
        flags = self.inputs.task_by_words
        return 0 if flags is None else int(flags.sum())

    @property
    def compared(self) -> tuple[str, ...]:
        """The arms other than the baseline."""
        return tuple(name for name in self.inputs.group_names if name != self.baseline)

    def rows(self, arm: str) -> NDArray[np.bool_]:
        """Return a mask of the runs that belong to an arm and name a task."""
        in_arm = self.inputs.group == self.inputs.group_names.index(arm)
        selected: NDArray[np.bool_] = in_arm & (self.tasks >= 0)
        return selected

    @property
    def tasks(self) -> Whole:
        """The number of each run's task, -1 if it has none; without any, each run is its own."""
        task = self.inputs.task
        if task is None or (task < 0).all():
            return np.arange(len(self.inputs.traces), dtype=np.int64)
        return task


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """A figure of runs: a share of runs that have something, or the mean of an amount.

    Args:
        name: The name of the scope of its records.
        mode: The code of a mode, the id of a category, or the name of an amount.
        kind: A share of runs or a mean.
        values: Its value of each run, NaN if there is none.
        unresolved: The runs on which annotators differ.
        judged: The values by the judge, where people labelled only a part of the runs.
        sources: The slugs of the modes that its runs show.
    """

    name: str
    mode: str
    kind: Kind
    values: Values
    unresolved: NDArray[np.bool_] | None = None
    judged: Values | None = None
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class TaskMeans:
    """The mean of a measure in each task of one arm, with the number of its runs."""

    values: Values
    runs: Whole
    hits: Values
    """The sum of the values of its runs, as far as people have labelled them."""
    labelled: Whole | None = None
    """The runs that people have labelled, where a judge has labelled all."""

    @property
    def defined(self) -> NDArray[np.bool_]:
        """The tasks that have a mean."""
        return ~np.isnan(self.values)

    def subset(self, tasks: NDArray[np.bool_]) -> TaskMeans:
        """Return the means of some of the tasks."""
        labelled = None if self.labelled is None else self.labelled[tasks]
        return TaskMeans(self.values[tasks], self.runs[tasks], self.hits[tasks], labelled)

    def with_hits_and_misses(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the tasks with a run that has the feature, and those with a run that lacks it."""
        runs = self.runs if self.labelled is None else self.labelled
        return self.hits > 0, self.hits < runs


def task_means(values: Values, task: Whole, tasks: int) -> TaskMeans:
    """Return the means of a measure by task.

    Args:
        values: The value of each run, NaN if there is none.
        task: The number of its task.
        tasks: The number of tasks.
    """
    counted = ~np.isnan(values)
    runs = np.bincount(task[counted], minlength=tasks).astype(np.int64)
    hits = np.bincount(task[counted], weights=values[counted], minlength=tasks).astype(np.float64)
    return TaskMeans(ratio(hits, runs.astype(np.float64)), runs, hits)


def powered_means(people: Values, judge: Values, task: Whole, tasks: int) -> TaskMeans:
    """Return the means by task where a judge labelled all runs and people a part of them.

    Prediction-powered inference (Angelopoulos and others 2023, arXiv 2311.01453): the mean of the
    judge, corrected by its error on the runs that people labelled, with the weight λ of the least
    variance. The value of a task is the estimate plus the influence of the task, so that the mean
    of the values is the estimate, and their variance gives its standard error.

    Args:
        people: The value of each run by people, NaN where they have not labelled it.
        judge: The value by the judge.
        task: The number of the run's task.
        tasks: The number of tasks.
    """
    both = ~np.isnan(people) & ~np.isnan(judge)
    of_people = task_means(people, task, tasks)
    if both.sum() < LEAST_TASKS or both.sum() == (~np.isnan(judge)).sum():
        return of_people
    spreads = np.cov(people[both], judge[both])
    weight = float(spreads[0, 1] / spreads[1, 1]) if spreads[1, 1] else 0.0
    weight = min(1.0, max(0.0, weight))
    of_judge = task_means(judge, task, tasks)
    error = task_means(np.where(both, people - weight * judge, np.nan), task, tasks)
    every = of_judge.defined
    labelled = error.defined
    value = weight * np.nanmean(of_judge.values) + np.nanmean(error.values)
    pull = weight * (of_judge.values - np.nanmean(of_judge.values))
    share = every.sum() / labelled.sum()
    pull = pull + np.where(labelled, share * (error.values - np.nanmean(error.values)), 0.0)
    return TaskMeans(value + pull, of_judge.runs, of_people.hits, of_people.runs)


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A mean over tasks, with its variance and its interval."""

    value: float | None
    variance: float = 0.0
    interval: Interval | None = None
    reason: str = ""


def estimate(means: TaskMeans, kind: Kind) -> MeanEstimate:
    """Return the mean over the tasks of one arm.

    Args:
        means: The means by task.
        kind: A share lies between 0 and 1.
    """
    values = means.values[means.defined]
    tasks = len(values)
    if not tasks:
        return MeanEstimate(None, reason="no_runs")
    value = float(values.sum()) / tasks
    if tasks < 2:
        return MeanEstimate(value, reason="few_tasks")
    variance = float(((values - value) ** 2).sum()) / (tasks - 1) / tasks
    if kind == "mean":
        error = sqrt(variance)
        if error <= _ROUNDING * abs(value):
            return MeanEstimate(value, reason="no_variance")
        interval = _student(value, error, tasks - 1, kind)
    else:
        value = min(1.0, max(0.0, value))
        spread = value * (1 - value)
        runs = float(means.runs[means.defined].sum())
        # Equal tasks give no estimate of their variance; then each counts as one case.
        cases = min(runs, spread / variance) if variance and spread else float(tasks)
        # Wilson's formula has the quantile of the normal distribution in it.
        interval = wilson_of(value, cases * (Z / student_t(_degrees_of_freedom(values))) ** 2)
    reason = "few_tasks" if tasks < LEAST_TASKS else ""
    return MeanEstimate(value, variance, interval, reason)


def _degrees_of_freedom(values: Values) -> int:
    """Return Satterthwaite's degrees of freedom of the variance of some values.

    They follow from the variance of that variance, 2 / (n - 1) + κ / n with the excess kurtosis κ
    (Satterthwaite 1946), which is large in rare modes, as few tasks have any hit. Half of it is
    taken, as the kurtosis of few values is uncertain itself (``docs/simulations.md``).
    """
    deviations = values - values.mean()
    square = float((deviations**2).mean())
    excess = float((deviations**4).mean()) / square**2 - 3 if square else 0.0
    degrees = 2 / (2 / (len(values) - 1) + max(excess, 0.0) / 2 / len(values))
    return max(1, int(degrees))


@dataclass(frozen=True, slots=True)
class ArmDifference:
    """A mean over tasks of one arm less that of another."""

    value: float | None
    interval: Interval | None = None
    reason: str = ""
    p_value: float | None = None
    tasks: int = 0


def difference(first: TaskMeans, second: TaskMeans, kind: Kind) -> ArmDifference:
    """Return the mean of one arm less that of another, over the tasks that both have run.

    Args:
        first: The means of the arm by task.
        second: Those of the other, of the same tasks.
        kind: A share lies between 0 and 1.
    """
    shared = first.defined & second.defined
    if not shared.any():
        return _unpaired(first, second, kind)
    sides = (first.subset(shared), second.subset(shared))
    a, b = (side.values for side in sides)
    apart = a - b
    tasks = len(apart)
    value = float(apart.sum()) / tasks
    p_value = _flip_test(sides)
    reason = "few_tasks" if tasks < LEAST_TASKS else _too_rare(sides, kind)
    if tasks < 2:
        return ArmDifference(value, None, reason, p_value, tasks)
    error = float(apart.std(ddof=1)) / sqrt(tasks)
    if error <= _ROUNDING * float(np.abs(sides[0].values).max()):
        return ArmDifference(value, None, reason or "no_variance", p_value, tasks)
    degrees = tasks - 1
    if any(side.labelled is not None for side in sides):
        # The correction of the judge rests on the few tasks that people have labelled.
        degrees = min(degrees, max(1, 2 * _fewest(sides)))
    return ArmDifference(value, _student(value, error, degrees, kind), reason, p_value, tasks)


def _unpaired(first: TaskMeans, second: TaskMeans, kind: Kind) -> ArmDifference:
    """Return the difference of arms that share no task, with Welch's interval over their tasks."""
    sides = [first.subset(first.defined), second.subset(second.defined)]
    ends = [estimate(side, kind) for side in sides]
    sizes = [len(side.values) for side in sides]
    tasks = min(sizes)
    if ends[0].value is None or ends[1].value is None:
        return ArmDifference(None, reason="no_runs")
    value = ends[0].value - ends[1].value
    variance = ends[0].variance + ends[1].variance
    p_value = group_permutations(*_whole_numbers([side.values for side in sides], sides))
    reason = "few_tasks" if tasks < LEAST_TASKS else _too_rare(sides, kind)
    if tasks < 2 or not variance:
        return ArmDifference(value, None, reason or "no_variance", p_value, tasks)
    parts = (end.variance**2 / (size - 1) for end, size in zip(ends, sizes, strict=True))
    degrees = max(1, int(variance**2 / sum(parts)))
    interval = _student(value, sqrt(variance), degrees, kind)
    return ArmDifference(value, interval, reason, p_value, tasks)


def _student(value: float, error: float, degrees: int, kind: Kind) -> Interval:
    """Return Student's interval; that of a difference of shares ends at -1 and 1."""
    half = student_t(degrees) * error
    if kind == "mean":
        return value - half, value + half
    return max(-1.0, value - half), min(1.0, value + half)


def _fewest(sides: Sequence[TaskMeans]) -> int:
    """Return the tasks with a run that has the feature, or that lacks it, whichever are fewer."""
    by_side = [side.with_hits_and_misses() for side in sides]
    if any(side.labelled is not None for side in sides):
        return min(int(tasks.sum()) for counts in by_side for tasks in counts)
    if len(by_side[0][0]) != len(by_side[1][0]):
        return min(sum(int(counts[i].sum()) for counts in by_side) for i in (0, 1))
    return min(int((by_side[0][i] | by_side[1][i]).sum()) for i in (0, 1))


def _too_rare(sides: Sequence[TaskMeans], kind: Kind) -> str:
    return "rare_mode" if kind == "share" and _fewest(sides) < LEAST_TASKS else ""


def _flip_test(sides: tuple[TaskMeans, TaskMeans]) -> float:
    (apart,) = _whole_numbers([sides[0].values - sides[1].values], sides)
    return float(sign_flips_of_rows(apart[None, :])[0])


def _whole_numbers(values: Sequence[Values], sides: Sequence[TaskMeans]) -> list[Whole]:
    """Return the values of tasks in a unit that makes them whole numbers.

    The unit of shares is that of all numbers of runs of a task; other values, those of very many
    runs and those with a judge's corrections are rounded to a thousandth of the largest one.
    """
    sizes = {n for side in sides for n in side.runs.tolist() if n}
    parts: float = lcm(*sizes) if sizes else 1
    largest = max(float(np.abs(of_side).max(initial=0.0)) for of_side in values)
    corrected = any(side.labelled is not None for side in sides)
    if parts > _FINEST or largest > 1 or corrected:
        parts = _FINEST / largest if largest else 1
    return [np.rint(of_side * parts).astype(np.int64) for of_side in values]


# The measures of an experiment


def measures(experiment: Experiment) -> Iterator[Measure]:
    """Yield the measures of an experiment, in the order of the report."""
    inputs = experiment.inputs
    has_outcome = inputs.outcome != UNKNOWN
    success = _where(inputs.outcome == SUCCEEDED, has_outcome)
    yield Measure("experiment_success", "", "share", success)
    present = inputs.verdicts == PRESENT
    judged = present | (inputs.verdicts == ABSENT)
    for i, mode in enumerate(inputs.modes):
        by_judge = None
        if experiment.judged is not None:
            verdicts = experiment.judged[:, i]
            by_judge = _where(verdicts == PRESENT, np.isin(verdicts, (PRESENT, ABSENT)))
        yield Measure(
            "experiment_mode",
            mode.code,
            "share",
            _where(present[:, i], judged[:, i]),
            inputs.verdicts[:, i] == UNRESOLVED,
            by_judge,
            (mode.slug,),
        )
    used = judged.any(axis=0)
    for category, _ in inputs.categories:
        members = np.array([mode.category == category for mode in inputs.modes], dtype=bool)
        shows = present[:, members].any(axis=1)
        complete = judged[:, members & used].all(axis=1) & bool((members & used).any())
        slugs = tuple(mode.slug for mode in inputs.modes if mode.category == category)
        values = _where(shows, shows | complete)
        yield Measure("experiment_category", category, "share", values, sources=slugs)
    failed = (inputs.outcome == FAILED) & judged[:, used].all(axis=1) & bool(used.any())
    counts = _where(present.sum(axis=1), failed)
    yield Measure("experiment_amount", "modes_per_failed_run", "mean", counts)
    places = inputs.places
    if places.fatal.any():
        fatal = np.zeros(len(inputs.traces), dtype=bool)
        fatal[places.trace[places.fatal]] = True
        values = _where(fatal, judged.any(axis=1))
        yield Measure("experiment_amount", "fatal_failure", "share", values)
    if len(places.trace):
        first = np.full(len(inputs.traces), np.inf)
        np.minimum.at(first, places.trace, places.first.astype(np.float64))
        counted = np.isfinite(first) & (inputs.spans > 0)
        lengths = np.maximum(inputs.spans, 1).astype(np.float64)
        values = np.where(counted, np.minimum(first, lengths - 1) / lengths, np.nan)
        yield Measure("experiment_amount", "onset", "mean", values)
    for name in AMOUNTS:
        if name in experiment.amounts:
            yield Measure("experiment_cost", name, "mean", experiment.amounts[name])


def _where(values: NDArray[np.bool_] | Whole, defined: NDArray[np.bool_]) -> Values:
    return np.where(defined, values.astype(np.float64), np.nan)


def experiment_figures(experiment: Experiment) -> list[Figure]:
    """Return the figures of an experiment; the scope of a measure has a group for each arm.

    Beside the measures, ``experiment`` counts the tasks and the runs of each arm and the runs that
    are left out; ``experiment_pass`` has pass^k with k as the condition.
    """
    figures = [
        figure for arm in experiment.inputs.group_names for figure in _sizes(experiment, arm)
    ]
    by_family: dict[str, list[list[Figure]]] = {}
    for measure in measures(experiment):
        family = measure.name
        if measure.name in ("experiment_amount", "experiment_cost"):
            family = measure.mode
        elif measure.mode and measure.name == "experiment_mode" and experiment.tested:
            family += "" if measure.mode in experiment.tested else " not tested"
        by_family.setdefault(family, []).append(list(_of_measure(experiment, measure)))
    for of_family in by_family.values():
        flat = [figure for rows in of_family for figure in rows]
        tests = [figure for figure in flat if figure.statistic == "flip_p"]
        adjusted = holm([test.value for test in tests])
        figures += flat
        figures += [
            replace(test, statistic="flip_p_adjusted", value=p)
            for test, p in zip(tests, adjusted, strict=True)
        ]
    figures += _pass_figures(experiment)
    return figures


def _scope(experiment: Experiment, name: str, arm: str, mode: str = "") -> FigureScope:
    sources = Sources("signatures", group=arm)
    return FigureScope(name, experiment.inputs.taxonomy_ref, arm, mode, sources=sources)


def _sizes(experiment: Experiment, arm: str) -> Iterator[Figure]:
    inputs = experiment.inputs
    in_arm = inputs.group == inputs.group_names.index(arm)
    rows = experiment.rows(arm)
    arm_tasks = np.unique(experiment.tasks[rows])
    shared = np.intersect1d(arm_tasks, experiment.tasks[experiment.rows(experiment.baseline)])
    scope = _scope(experiment, "experiment", arm)
    yield scope.number("tasks", len(arm_tasks))
    yield scope.number("runs", int(rows.sum()))
    yield scope.number("shared_tasks", len(shared))
    yield scope.number("no_task", int((in_arm & ~rows).sum()))


def _of_measure(experiment: Experiment, measure: Measure) -> Iterator[Figure]:
    """Yield a measure of each arm, with its difference from the baseline."""
    tasks = int(experiment.tasks.max(initial=-1)) + 1
    means: dict[str, TaskMeans] = {}
    missing_verdicts: dict[str, int | None] = {}
    for arm in (experiment.baseline, *experiment.compared):
        rows = experiment.rows(arm)
        task = experiment.tasks[rows]
        values = measure.values[rows]
        if measure.judged is None:
            means[arm] = task_means(values, task, tasks)
        else:
            means[arm] = powered_means(values, measure.judged[rows], task, tasks)
        missing_verdicts[arm] = None
        if measure.unresolved is not None:
            unresolved = int(measure.unresolved[rows].sum())
            missing_verdicts[arm] = to_resolve(unresolved, int((~np.isnan(values)).sum())) or None
    for arm in experiment.inputs.group_names:
        scope = _scope(experiment, measure.name, arm, measure.mode)
        if measure.sources:
            scope = replace(scope, sources=Sources("signatures", measure.sources, group=arm))
        mean = estimate(means[arm], measure.kind)
        reason = "unresolved" if missing_verdicts[arm] else mean.reason
        yield scope.figure(
            f"task_{measure.kind}",
            mean.value,
            interval=None if reason else mean.interval,
            n=int(means[arm].runs.sum()),
            reason=reason,
            needs=missing_verdicts[arm],
        )
        if arm == experiment.baseline:
            continue
        apart = difference(means[arm], means[experiment.baseline], measure.kind)
        missing = missing_verdicts[arm] or missing_verdicts[experiment.baseline]
        reason = "unresolved" if missing else apart.reason
        yield scope.figure(
            "arm_difference",
            apart.value,
            interval=None if reason else apart.interval,
            n=apart.tasks,
            reason=reason,
            needs=missing,
        )
        undefined = apart.reason if apart.p_value is None else ""
        yield scope.number("flip_p", apart.p_value, n=apart.tasks, reason=undefined)


def pass_values(successes: Whole, runs: Whole, k: int) -> Values:
    """Return the unbiased estimate of pass^k of each task: the chance that k runs all succeed.

    C(c, k) / C(n, k) of c successes in n runs (Yao and others 2024, τ-bench, arXiv 2406.12045);
    NaN where a task has fewer than k runs.

    Args:
        successes: The successes c of each task.
        runs: Its runs n.
        k: The number of runs that must all succeed.
    """
    values = np.where(runs >= k, 1.0, np.nan)
    for i in range(k):
        values = values * ratio(np.maximum(successes - i, 0.0), np.maximum(runs - i, 0.0))
    return values


def _pass_figures(experiment: Experiment) -> Iterator[Figure]:
    success = next(measures(experiment))
    tasks = int(experiment.tasks.max(initial=-1)) + 1
    for arm in experiment.inputs.group_names:
        rows = experiment.rows(arm)
        means = task_means(success.values[rows], experiment.tasks[rows], tasks)
        scope = _scope(experiment, "experiment_pass", arm)
        for k in range(1, min(MOST_RUNS, int(means.runs.max(initial=0))) + 1):
            values = pass_values(means.hits.astype(np.int64), means.runs, k)
            mean = estimate(replace(means, values=values), "share")
            yield scope.figure(
                "pass_k",
                mean.value,
                condition=str(k),
                interval=None if mean.reason else mean.interval,
                n=int((~np.isnan(values)).sum()),
                reason=mean.reason,
            )
