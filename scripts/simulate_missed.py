"""Print how often the interval of missed failures holds, and how often dependence is reported.

    python scripts/simulate_missed.py independent|hard|follows|wrong … [--runs N] [--seed S]

In each study finders look at all traces for 14 modes, which show in 3 to 50 % of the traces. The
finders are independent; or half of the failures are hard for all (found a third as often); or the
second finder also finds half of the first finder's failures; or every finder marks 1 % of what is
not a failure. Each line of the CSV is a setting: how often the 95 % interval holds the true number
of missed failures, of one mode and over all modes, in % of the studies with an interval; in how
many studies there is one; the mean error of the estimate in % of all failures; and how often
finders are called dependent. The exit code is 1 if an interval of independent finders holds in less
than 90 %.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import product
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.capture import Capture, capture
from mast_tui.figures.record import FigureIndex, FigureTable

SHOWS: Final = (0.03, 0.05, 0.07, 0.1, 0.12, 0.14, 0.16, 0.18, 0.2, 0.22, 0.28, 0.35, 0.42, 0.5)
"""The share of traces in which each mode shows."""

SKILLS: Final = {
    "2": (0.8, 0.7),
    "2, weak": (0.6, 0.45),
    "3": (0.8, 0.7, 0.6),
    "3, weak": (0.6, 0.5, 0.4),
    "4": (0.8, 0.7, 0.6, 0.5),
}
"""The share of failures that each finder finds."""

DESIGNS: Final = ("independent", "hard", "follows", "wrong")
TRACES: Final = (50, 200)


class MissedFigures(NamedTuple):
    """The figures of a setting, in %.

    Attributes:
        mode_holds: The share of intervals of one mode that hold the true number.
        mode_given: The share of modes with an interval.
        all_holds: The share of intervals over all modes that hold the true number.
        all_given: The share of studies with an interval over all modes.
        bias: The mean error of the estimate, of all failures.
        dependent: The share of studies whose finders are called dependent.
    """

    mode_holds: float
    mode_given: float
    all_holds: float
    all_given: float
    bias: float
    dependent: float


def _study(
    skills: tuple[float, ...], traces: int, design: str, random: np.random.Generator
) -> tuple[Capture, NDArray[np.int_]]:
    """Draw one study, and return its figures and the number of missed failures of each mode."""
    shows = random.random((traces, len(SHOWS))) < np.array(SHOWS)
    skill = np.array(skills)[:, None, None] * np.ones(shows.shape)
    if design == "hard":
        skill = np.where(random.random(shows.shape) < 0.5, skill, skill / 3)
    finds = random.random(skill.shape) < skill
    if design == "follows":
        finds[1] |= finds[0] & (random.random(shows.shape) < 0.5)
    calls = (finds & shows).astype(np.int8)
    if design == "wrong":
        calls |= (random.random(skill.shape) < 0.01).astype(np.int8)
    report = capture(
        [f"finder {number}" for number in range(len(skills))],
        {str(mode): mode for mode in range(len(SHOWS))},
        calls,
        suggested=np.zeros(calls.shape[:2], dtype=np.bool_),
        settled_absent=np.zeros(shows.shape, dtype=np.bool_),
    )
    return report, (shows & ~calls.any(axis=0)).sum(axis=0)


def _simulate(
    skills: tuple[float, ...], traces: int, design: str, runs: int, random: np.random.Generator
) -> MissedFigures:
    """Return the figures of many studies of one setting."""
    mode_holds: list[bool] = []
    all_holds: list[bool] = []
    bias = []
    dependent = 0
    for _ in range(runs):
        report, missed_by_mode = _study(skills, traces, design, random)
        dependent += bool(report.finders_dependent)
        index = FigureIndex(report.figures)
        pooled = index.table("missed_pooled")
        estimate = pooled.value("missed")
        assert estimate is not None
        missed = int(missed_by_mode.sum())
        bias.append((estimate - missed) / (pooled.count("found") + missed))
        all_holds += _holds(pooled, missed)
        for mode, missed_of_mode in enumerate(missed_by_mode.tolist()):
            mode_holds += _holds(index.table("missed", mode=str(mode)), missed_of_mode)
    shares = (
        _share(mode_holds),
        len(mode_holds) / (runs * len(SHOWS)),
        _share(all_holds),
        len(all_holds) / runs,
        float(np.mean(bias)),
        dependent / runs,
    )
    return MissedFigures(*(100 * share for share in shares))


def _holds(table: FigureTable, missed: int) -> list[bool]:
    """Return whether the interval holds the number of missed failures; nothing without one."""
    interval = table["missed"].interval
    return [] if interval is None else [interval[0] <= missed <= interval[1]]


def _share(holds: Sequence[bool]) -> float:
    return sum(holds) / len(holds) if holds else float("nan")


def main() -> int:
    """Print a line for each setting, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("designs", nargs="+", choices=DESIGNS)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    print(
        "finders,traces,dependence,mode_holds,mode_given,all_holds,all_given,bias,called_dependent",
        flush=True,
    )
    fails = False
    for design, (name, skills), traces in product(options.designs, SKILLS.items(), TRACES):
        figures = _simulate(skills, traces, design, options.runs, random)
        fails |= design == "independent" and min(figures.mode_holds, figures.all_holds) < 90
        dependent = f"{figures.dependent:.0f}" if len(skills) > 2 else ""
        coverage = [
            f"{holds:.1f},{given:.0f}" if given else ",0"
            for holds, given in (
                (figures.mode_holds, figures.mode_given),
                (figures.all_holds, figures.all_given),
            )
        ]
        cells = (f'"{name}"', str(traces), design, *coverage, f"{figures.bias:+.1f}", dependent)
        print(",".join(cells), flush=True)
    return int(fails)


if __name__ == "__main__":
    sys.exit(main())
