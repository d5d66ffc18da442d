"""Print how often the prediction-powered interval holds a known prevalence, and what it saves.

    python scripts/simulate_prevalence.py [random|chosen] [--runs N] [--seed S]

In each run a mode shows in a trace with a known chance; a judge with known rates looks at all
traces, and people at a part of them: a random one, or (chosen) a random half of it and then those
traces rather of which labels tell most by what the judge says. A Markdown table tells for each
setting, in %, how often the interval of as many random labels of people alone (Wilson's) and the
prediction-powered one hold the truth; how wide the second is beside the first (their means);
how many labels that saves for the same width; and the most that could be saved with random labels
by any estimate without bias, rho^2 (1 - n/N): rho is the correlation of the judge's word with the
truth, n of N traces are labelled. The exit code is 1 where an interval holds the truth in less than
93 or more than 97 % of the runs, by more than two standard errors of such a share, or with
random labels is more than 2 % wider than that of people alone.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import Interval
from mast_tui.figures.intervals import wilson
from mast_tui.figures.judge.input import JudgeInput, Reference
from mast_tui.figures.judge.worth import worth
from mast_tui.figures.prevalence import OverallJson, powered, weighted_tables
from mast_tui.labels import VerdictValue
from mast_tui.study import Draw, Study, weighted_sample

JUDGES: Final = ((0.8, 0.9), (0.95, 0.97), (0.6, 0.8), (0.5, 0.5))
"""True positive and true negative rate; the last is at chance."""

PREVALENCES: Final = (0.03, 0.1, 0.3, 0.5)
LABELLED: Final = (100, 200)
ALL: Final = 1200

_MODE: Final = "m"
_WORDS: Final = (VerdictValue.ABSENT, VerdictValue.PRESENT)
_NAMES: Final = tuple(f"t{place:04}" for place in range(ALL))


def correlation(true: float, tpr: float, tnr: float) -> float:
    """Give the correlation of the judge's word with the truth."""
    says = true * tpr + (1 - true) * (1 - tnr)
    together = true * (1 - true) * (tpr + tnr - 1)
    return float(together / (true * (1 - true) * says * (1 - says)) ** 0.5)


def of_random(
    rates: tuple[float, float], true: float, labelled: int, chance: np.random.Generator
) -> OverallJson:
    """The figures of one run with random labels."""
    tpr, tnr = rates
    cells = (true * tpr, (1 - true) * (1 - tnr), true * (1 - tpr), (1 - true) * tnr)
    part = chance.multinomial(labelled, cells)
    said = chance.binomial(ALL - labelled, cells[0] + cells[1])
    return powered(part, np.array([said, ALL - labelled - said]))


def of_chosen(
    rates: tuple[float, float], true: float, labelled: int, chance: np.random.Generator
) -> OverallJson:
    """The figures of one run with a random half, and a half that was chosen by its worth."""
    there = chance.random(ALL) < true
    says = np.where(there, chance.random(ALL) < rates[0], chance.random(ALL) > rates[1])
    first = sorted(chance.choice(ALL, labelled // 2, replace=False).tolist())
    names = [_NAMES[place] for place in first]
    given = JudgeInput(
        "mast@3",
        ((_MODE, "1", "a mode"),),
        "judge:j",
        {(name, _MODE): _WORDS[int(word)] for name, word in zip(_NAMES, says, strict=True)},
        Reference("gold", {(_NAMES[x], _MODE): _WORDS[int(there[x])] for x in first}),
    )
    left = [name for name in _NAMES if name not in set(names)]
    seed = int(chance.integers(2**60))
    drawn = weighted_sample(worth(given, left, [_MODE]), labelled - len(first), seed)
    study = Study(
        "mast@3",
        ("a",),
        per_trace=1,
        batches=(tuple(names), tuple(drawn)),
        draws=(Draw(0, ALL, (), 0), Draw(1, len(left), (), 0, tuple(drawn.values()), "judge:j")),
    )
    weights = study.trace_weights(study.traces)
    assert weights is not None
    places = [int(name[1:]) for name in weights]
    cells = _cells(says[places], there[places])
    rest = np.delete(says, places)
    further = np.array([rest.sum(), (~rest).sum()])
    (weighted,) = weighted_tables(cells[:, None, :], np.array(list(weights.values())))
    return powered(cells.sum(axis=0), further, weighted)


def _cells(says: NDArray[np.bool_], there: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Zeros and ones, traces × (TP, FP, FN, TN)."""
    four = (says & there, says & ~there, ~says & there, ~says & ~there)
    return np.stack(four, axis=1).astype(np.float64)


RUNS: Final = {"random": of_random, "chosen": of_chosen}


def simulate(
    how: str,
    rates: tuple[float, float],
    true: float,
    labelled: int,
    runs: int,
    chance: np.random.Generator,
) -> tuple[float, float, float]:
    """How often, in %, people's interval and the joined one hold; how wide it is beside theirs."""
    alone: list[Interval] = []
    joined: list[Interval] = []
    for _ in range(runs):
        ends = RUNS[how](rates, true, labelled, chance)["powered"]["ci"]
        assert ends is not None
        joined.append((ends[0], ends[1]))
        own = wilson(int(chance.binomial(labelled, true)), labelled)
        assert own is not None
        alone.append(own)
    people, both = np.array(alone), np.array(joined)
    held = [float(100 * ((x[:, 0] <= true) & (true <= x[:, 1])).mean()) for x in (people, both)]
    widths = [float((x[:, 1] - x[:, 0]).mean()) for x in (people, both)]
    return held[0], held[1], widths[1] / widths[0]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("how", nargs="?", choices=tuple(RUNS), default="random")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance = np.random.default_rng(given.seed)
    print(f"{given.runs:,} runs each, {ALL:,} traces\n")
    print("| TPR, TNR | mode in | labelled | people | joined | width | saved | at most, random |")
    print("|---|---|---|---|---|---|---|---|")
    fails = False
    error = 100 * (0.95 * 0.05 / given.runs) ** 0.5
    for rates, true, labelled in product(JUDGES, PREVALENCES, LABELLED):
        people, held, width = simulate(given.how, rates, true, labelled, given.runs, chance)
        fails |= abs(held - 95) > 2 + 2 * error or (given.how == "random" and width > 1.02)
        most = correlation(true, *rates) ** 2 * (1 - labelled / ALL)
        print(
            f"| {rates[0]:g}, {rates[1]:g} | {true:.0%} | {labelled} | {people:.1f} | {held:.1f} | "
            f"{width:.2f} | {1 - width**2:.0%} | {most:.0%} |",
            flush=True,
        )
    return int(fails)


if __name__ == "__main__":
    sys.exit(main())
