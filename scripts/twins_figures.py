"""Print how often the judge of twins names the step that was planted.

    python scripts/twins_figures.py [--tasks N] [--seed N]

Tasks with trials are made by seed: runs that go one way, of which the failed ones leave it at a
known step (``tests/judges/planted_trials.py`` says how). Then tasks whose outcomes are dealt at
random, where there is nothing to find; and how long 10,000 steps take.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from mast_tui.judges.twins import TwinsJudge  # noqa: E402
from tests.judges.planted_trials import (  # noqa: E402
    aimless_trials,
    long_trials,
    planted_trials,
)

NEAR: Final = 3
"""So many spans away is still near."""


def found(tasks: int, seed: int) -> Counter[str]:
    """Count what is named in failed runs: the planted step, one near it, another, or none."""
    counts: Counter[str] = Counter()
    for task in range(tasks):
        trials = planted_trials(Random(f"{seed} {task}"))
        shared = TwinsJudge(trials.runs).shared_step_by_trace
        for trace_id, place in trials.planted.items():
            step = shared.get(trace_id)
            if step is None:
                counts["nothing"] += 1
            elif step.index == place:
                counts["exact"] += 1
            else:
                counts["near" if abs(step.index - place) <= NEAR else "elsewhere"] += 1
        failing = [one for one in trials.runs if one.identity.trace_id.startswith("failed")]
        alone = [one for one in failing if one.identity.trace_id not in trials.planted]
        counts["alone"] += len(alone)
        counts["alone told"] += sum(one.identity.trace_id in shared for one in alone)
    return counts


def false_alarms(tasks: int, seed: int) -> int:
    """Count the tasks with a suggestion among those in which nothing tells the runs apart."""
    return sum(
        bool(TwinsJudge(aimless_trials(random, random.randint(6, 24)).runs).shared_step_by_trace)
        for random in (Random(f"{seed} aimless {task}") for task in range(tasks))
    )


def main() -> None:
    """Make the tasks and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    counts = found(given.tasks, given.seed)
    runs = sum(counts[name] for name in ("exact", "near", "elsewhere", "nothing"))
    near = counts["exact"] + counts["near"]
    print(f"{given.tasks} tasks, {runs} runs with a planted step")
    print(f"found exactly: {counts['exact']} ({counts['exact'] / runs:.1%})")
    print(f"found within {NEAR} spans: {near} ({near / runs:.1%})")
    print(f"another step: {counts['elsewhere']}, none: {counts['nothing']}")
    print(f"runs that fail for a reason of their own, told all the same: "
          f"{counts['alone told']} of {counts['alone']}")  # fmt: skip
    alarms = false_alarms(given.tasks, given.seed)
    print(f"tasks without a difference: {alarms} of {given.tasks} with a suggestion "
          f"({alarms / given.tasks:.1%})")  # fmt: skip
    trials = long_trials(Random(given.seed), 40, 250)
    began = time.perf_counter()
    TwinsJudge(trials.runs)
    spent = time.perf_counter() - began
    print(f"{sum(map(len, trials.runs)):,} steps in {len(trials.runs)} runs: {spent:.1f} s")


if __name__ == "__main__":
    main()
