"""Print how often intervals, tests and power plans of simulated experiments are right.

    python scripts/simulate_experiments.py [designs|methods|judge] [--runs N] [--seed S]
        [--jobs N]

The logits of a rate are normal over tasks, so that two runs of a task correlate with 0.3 in one arm
and with 0.2 in two arms. Each experiment draws new tasks; the true values are those of all tasks.

``designs``: 40 designs of 10 to 200 tasks, 1 to 5 runs and 2 or 4 arms, with 14 modes: eight in
5 %, four in 20 % and two in 40 % of the runs. In the last arm one mode falls from 40 to 20 %;
nothing else changes. The columns, in % of the experiments: how often intervals hold the true rate
of an arm and the true difference, and how many differences have one (``shown``), by rate; how often
a change is reported that does not exist (``false``), with p adjusted over modes and arms, and the
share of such changes among all reported ones (``false of found``); how often the fall is found
after adjustment (``found``) and at the adjusted level alone (``reached``), and the power that
planning promises for the latter (``promised``).

``methods``: how often the interval of a difference holds by three methods: that of ``mast-tui
experiment`` (Student's t over the differences of tasks), percentiles of 2,000 resamples of tasks
(cluster bootstrap), and Newcombe's for all runs as if they were independent.

``judge``: people label a random part of the runs, and a judge with a true positive rate of 0.8 and
a true negative rate of 0.9 all of them. The columns: how often the interval of the difference holds
with both (``powered``) and with people alone, and the median of its width with both as a part of
that of people alone.

The output is CSV with a line for each design. Run i of a design has seed S + i.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.experiment import (
    TaskMeans,
    difference,
    estimate,
    powered_means,
)
from mast_tui.figures.intervals import newcombe
from mast_tui.figures.power import (
    ALPHA,
    RateChange,
    draw_hits,
    logit_normal,
    power,
)
from mast_tui.figures.record import Figure
from mast_tui.figures.significance import holm

TASKS: Final = (10, 20, 50, 100, 200)
RUNS: Final = (1, 2, 3, 5)
ARMS: Final = (2, 4)
RATES: Final = (0.05,) * 8 + (0.2,) * 4 + (0.4,) * 2
FALL: Final = (0.4, 0.2)
BETWEEN: Final = 0.3
SHARED: Final = 0.2
METHODS: Final = ("reported", "bootstrap", "independent")
RESAMPLES: Final = 2000

Hits = NDArray[np.int64]

_LOGITS: Final = {rate: logit_normal(rate, BETWEEN) for rate in {*RATES, *FALL}}
"""The mean and the standard deviation of the logits of tasks, by the rate."""


def draw_arms(
    rates: Sequence[float], tasks: int, runs: int, random: np.random.Generator
) -> list[Hits]:
    """Draw the hits of one mode in each task, an array for each arm.

    Args:
        rates: The rate of each arm.
        tasks: The number of tasks.
        runs: The runs of each task and arm.
        random: The source of randomness.
    """
    common = random.standard_normal(tasks)
    arms = []
    for rate in rates:
        middle, spread = _LOGITS[rate]
        separate = random.standard_normal(tasks)
        share = SHARED / BETWEEN
        logits = middle + spread * (np.sqrt(share) * common + np.sqrt(1 - share) * separate)
        arms.append(random.binomial(runs, 1 / (1 + np.exp(-logits))))
    return arms


def means(hits: Hits, runs: int) -> TaskMeans:
    """Return the means by task.

    Args:
        hits: The runs with a hit, by task.
        runs: The runs of each task.
    """
    return TaskMeans(hits / runs, np.full(len(hits), runs), hits.astype(np.float64))


def holds(interval: tuple[float, float] | None, true: float) -> bool:
    """Return whether an interval contains a value.

    Args:
        interval: The interval; None if there is none.
        true: The value.
    """
    return interval is not None and interval[0] - 1e-12 <= true <= interval[1] + 1e-12


def one_experiment(design: tuple[int, int, int], seed: int) -> dict[str, list[float]]:
    """Return the results of one experiment by column: 1 if an interval holds or a test is right.

    Args:
        design: The tasks, the runs of each, and the arms.
        seed: The seed of the draws.
    """
    tasks, runs, arms = design
    random = np.random.default_rng(seed)
    results: dict[str, list[float]] = {}
    tests: list[float | None] = []
    changed: list[bool] = []
    for i, rate in enumerate(RATES):
        falls = i == len(RATES) - 1
        rates = [rate] * (arms - 1) + [FALL[1] if falls else rate]
        sides = [means(hits, runs) for hits in draw_arms(rates, tasks, runs, random)]
        for side, true in zip(sides, rates, strict=True):
            name = f"rate {true:g}"
            results.setdefault(name, []).append(holds(estimate(side, "share").interval, true))
        for side, true in zip(sides[1:], rates[1:], strict=True):
            change, p_value = difference(side, sides[0], "share")
            name = "fall" if true != rate else f"difference {rate:g}"
            results.setdefault(f"{name} shown", []).append(not change.reason)
            if not change.reason:
                results.setdefault(name, []).append(holds(change.interval, true - rate))
            tests.append(p_value)
            changed.append(true != rate)
            if true != rate:
                level = ALPHA / (len(RATES) * (arms - 1))
                results["reached"] = [(p_value or 0.0) < level]
    adjusted = [p is not None and p < ALPHA for p in holm(tests)]
    results["false"] = [any(p and not true for p, true in zip(adjusted, changed, strict=True))]
    share = [p and not true for p, true in zip(adjusted, changed, strict=True)]
    results["false of found"] = [sum(share) / max(1, sum(adjusted))]
    results["found"] = [any(p and true for p, true in zip(adjusted, changed, strict=True))]
    return results


def design_line(design: tuple[int, int, int], runs: int, seed: int) -> str:
    """Return the line of a design.

    Args:
        design: The tasks, the runs of each, and the arms.
        runs: The number of experiments.
        seed: The seed of the first one.
    """
    together: dict[str, list[float]] = {}
    for i in range(runs):
        for name, values in one_experiment(design, seed + i).items():
            together.setdefault(name, []).extend(values)
    tasks, each, arms = design
    level = ALPHA / (len(RATES) * (arms - 1))
    promised = power(RateChange(*FALL, BETWEEN, SHARED, level), tasks, each, draws=20_000)
    cells = [_percent(together.get(name)) for name in COLUMNS]
    return ",".join([str(tasks), str(each), str(arms), *cells, f"{100 * promised:.1f}"])


def _percent(values: Sequence[float] | None) -> str:
    return f"{100 * float(np.mean(values)):.1f}" if values else ""


_CLASSES: Final = ("0.05", "0.2", "0.4")
COLUMNS: Final = (
    *(f"rate {rate}" for rate in _CLASSES),
    *(f"difference {rate}{more}" for rate in _CLASSES for more in ("", " shown")),
    *("fall", "fall shown", "false", "false of found", "found", "reached"),
)


def designs(runs: int, seed: int, jobs: int) -> Iterator[str]:
    """Yield the lines of all designs, with a heading.

    Args:
        runs: The number of experiments of each.
        seed: The seed of the first one.
        jobs: The number of processes.
    """
    yield ",".join(["tasks", "runs", "arms", *COLUMNS, "promised"])
    settings = [(tasks, each, arms) for arms, tasks, each in product(ARMS, TASKS, RUNS)]
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(partial(design_line, runs=runs, seed=seed), settings)


def method_line(design: tuple[int, int, float, float], runs: int, seed: int) -> str:
    """Return how often the intervals of a difference hold by each method.

    Args:
        design: The tasks, the runs of each, and the rate of both arms.
        runs: The number of experiments.
        seed: The seed of the first one.
    """
    tasks, each, rate, changed = design
    random = np.random.default_rng(seed)
    holding: dict[str, list[float]] = {name: [] for name in METHODS}
    resamples = random.multinomial(tasks, np.full(tasks, 1 / tasks), RESAMPLES) / tasks
    for i in range(runs):
        random = np.random.default_rng(seed + i)
        hits = draw_arms([rate, changed], tasks, each, random)
        sides = [means(arm_hits, each) for arm_hits in hits]
        change, _ = difference(sides[1], sides[0], "share")
        if change.reason:
            continue
        ends = np.quantile(resamples @ (sides[1].values - sides[0].values), (0.025, 0.975))
        size = tasks * each
        as_independent = newcombe(int(hits[1].sum()), size, int(hits[0].sum()), size)
        intervals = (change.interval, (ends[0], ends[1]), as_independent)
        for name, interval in zip(METHODS, intervals, strict=True):
            holding[name].append(holds(interval, changed - rate))
    cells = [_percent(holding[name]) for name in METHODS]
    return ",".join([str(tasks), str(each), f"{rate:g}", f"{changed:g}", *cells])


def methods(runs: int, seed: int, jobs: int) -> Iterator[str]:
    """Yield the lines of the methods, with a heading.

    Args:
        runs: The number of experiments of each design.
        seed: The seed of the first one.
        jobs: The number of processes.
    """
    yield ",".join(["tasks", "runs", "rate", "changed", *METHODS])
    rates = ((0.05, 0.05), (0.2, 0.2), (0.4, 0.2))
    settings = [
        (tasks, each, *pair) for tasks, each, pair in product((10, 20, 50, 200), (1, 3, 5), rates)
    ]
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(partial(method_line, runs=runs, seed=seed), settings)


def judge_line(design: tuple[int, int, float, float], runs: int, seed: int) -> str:
    """Return how the intervals of a difference hold with a judge beside people.

    Args:
        design: The tasks, the runs of each, the part that people label, and the rate.
        runs: The number of experiments.
        seed: The seed of the first one.
    """
    tasks, each, part, rate = design
    holding: dict[str, list[float]] = {"powered": [], "people": []}
    widths = []
    task = np.repeat(np.arange(tasks), each)
    for i in range(runs):
        random = np.random.default_rng(seed + i)
        sides: dict[str, list[TaskMeans]] = {"powered": [], "people": []}
        changed = rate / 2 if rate > 0.1 else rate
        for hits in draw_hits(RateChange(rate, changed, BETWEEN, SHARED), tasks, each, 1, random):
            true = np.concatenate([random.permutation(each) < count for count in hits[0]])
            calls = random.random(len(true)) < np.where(true, 0.8, 0.1)
            people = np.where(random.random(len(true)) < part, true, np.nan)
            sides["powered"].append(powered_means(people, calls.astype(float), task, tasks))
            no_judge = np.full(len(true), np.nan)
            sides["people"].append(powered_means(people, no_judge, task, tasks))
        change = {
            name: difference(arms[1], arms[0], "share").figure for name, arms in sides.items()
        }
        for name, figure in change.items():
            if not figure.reason:
                holding[name].append(holds(figure.interval, changed - rate))
        if not any(figure.reason for figure in change.values()):
            widths.append(_width(change["powered"]) / _width(change["people"]))
    cells = [_percent(holding["powered"]), _percent(holding["people"])]
    return ",".join(
        [
            *(str(tasks), str(each), f"{part:g}", f"{rate:g}", *cells),
            f"{np.median(widths):.2f}" if widths else "",
        ]
    )


def _width(change: Figure) -> float:
    return 0.0 if change.interval is None else change.interval[1] - change.interval[0]


def judges(runs: int, seed: int, jobs: int) -> Iterator[str]:
    """Yield the lines of experiments with a judge, with a heading.

    Args:
        runs: The number of experiments of each design.
        seed: The seed of the first one.
        jobs: The number of processes.
    """
    yield "tasks,runs,labelled,rate,powered,people,width"
    settings = list(product((50, 100, 200), (1, 3), (0.2, 0.5), (0.2, 0.4)))
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(partial(judge_line, runs=runs, seed=seed), settings)


def main(arguments: Sequence[str]) -> int:
    """Print the lines of the chosen simulation.

    Args:
        arguments: The arguments of the command.
    """
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    kinds = {"designs": designs, "methods": methods, "judge": judges}
    parser.add_argument("kind", choices=kinds, nargs="?", default="designs")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    for line in kinds[options.kind](options.runs, options.seed, options.jobs):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
