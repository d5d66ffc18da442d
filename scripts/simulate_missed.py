"""Print how often the interval of missed failures holds, and how often dependence is told.

    python scripts/simulate_missed.py [independent|hard|follows|wrong …] [--runs N] [--seed S]

In each study finders look at all traces for 14 modes, that show in 3 to 50 % of them. They are
independent; or half of the failures are hard for all (found a third as often); or the second
finder also finds half of what the first one found; or every finder makes wrong calls, of 1 % of
what is no failure. A Markdown table tells for each setting, in % of those studies that have one,
how often the 95 % interval holds the number that was really missed, of one mode and over all; of
how many there is one; how far the estimate is off on average, in % of all failures; and how often
finders are said to be dependent. The exit code is 1 where an interval of independent finders holds
in less than 90 %.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.capture import Capture, capture
from mast_tui.figures.record import FigureIndex

SHOWS: Final = (0.03, 0.05, 0.07, 0.1, 0.12, 0.14, 0.16, 0.18, 0.2, 0.22, 0.28, 0.35, 0.42, 0.5)
"""In what part of the traces each mode shows."""

SKILLS: Final = {
    "2": (0.8, 0.7),
    "2, weak": (0.6, 0.45),
    "3": (0.8, 0.7, 0.6),
    "3, weak": (0.6, 0.5, 0.4),
    "4": (0.8, 0.7, 0.6, 0.5),
}
"""What part of the failures each finder finds."""

DESIGNS: Final = ("independent", "hard", "follows", "wrong")
TRACES: Final = (50, 200)


def study(
    skills: tuple[float, ...], traces: int, design: str, chance: np.random.Generator
) -> tuple[Capture, NDArray[np.int_]]:
    """Draw one study: its figures, and by mode how many failures nobody found."""
    there = chance.random((traces, len(SHOWS))) < np.array(SHOWS)
    skill = np.array(skills)[:, None, None] * np.ones(there.shape)
    if design == "hard":
        skill = np.where(chance.random(there.shape) < 0.5, skill, skill / 3)
    found = chance.random(skill.shape) < skill
    if design == "follows":
        found[1] |= found[0] & (chance.random(there.shape) < 0.5)
    said = (found & there).astype(np.int8)
    if design == "wrong":
        said |= (chance.random(skill.shape) < 0.01).astype(np.int8)
    report = capture(
        [f"finder {number}" for number in range(len(skills))],
        {str(mode): mode for mode in range(len(SHOWS))},
        said,
        suggested=np.zeros(said.shape[:2], dtype=np.bool_),
        settled_absent=np.zeros(there.shape, dtype=np.bool_),
    )
    return report, (there & ~said.any(axis=0)).sum(axis=0)


def simulate(
    skills: tuple[float, ...], traces: int, design: str, runs: int, chance: np.random.Generator
) -> list[float]:
    """Coverage of one mode and its share of intervals, the same over all, bias, dependence."""
    of_mode: list[bool] = []
    of_all: list[bool] = []
    bias, told = [], 0
    for _ in range(runs):
        report, true = study(skills, traces, design, chance)
        told += bool(report.finders_dependent)
        index = FigureIndex(report.figures)
        every = index.table("missed_pooled")
        missed = every.value("missed")
        assert missed is not None
        total = every.count("found") + int(true.sum())
        bias.append((missed - int(true.sum())) / total)
        modes = [index.table("missed", mode=str(mode)) for mode in range(len(SHOWS))]
        for held, figures, truth in (
            (of_all, [every], [true.sum()]),
            (of_mode, modes, true),
        ):
            for one, really in zip(figures, truth, strict=True):
                ends = one["missed"].interval
                if ends is not None:
                    held.append(ends[0] <= really <= ends[1])
    every_mode = runs * len(SHOWS)
    held = [sum(one) / len(one) if one else np.nan for one in (of_mode, of_all)]
    shares = [held[0], len(of_mode) / every_mode, held[1], len(of_all) / runs]
    return [100 * float(x) for x in (*shares, np.mean(bias), told / runs)]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("designs", nargs="*", choices=DESIGNS, default=list(DESIGNS))
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance = np.random.default_rng(given.seed)
    print(
        "finders,traces,dependence,mode_holds,mode_given,all_holds,all_given,bias,called_dependent",
        flush=True,
    )
    fails = False
    for design, (name, skills), traces in product(given.designs, SKILLS.items(), TRACES):
        own, there, every, there_too, off, told = simulate(
            skills, traces, design, given.runs, chance
        )
        fails |= design == "independent" and min(own, every) < 90
        called = f"{told:.0f}" if len(skills) > 2 else ""
        held = [
            f"{share:.1f},{how_many:.0f}" if how_many else ",0"
            for share, how_many in ((own, there), (every, there_too))
        ]
        print(f'"{name}",{traces},{design},{",".join(held)},{off:+.1f},{called}', flush=True)
    return int(fails)


if __name__ == "__main__":
    sys.exit(main())
