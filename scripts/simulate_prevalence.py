"""Print how often intervals of a known prevalence hold it, and how many labels a judge saves.

    python scripts/simulate_prevalence.py [random|chosen|report|rule] [--runs N] [--seed S]

In each run a mode shows in a trace with a known chance; a judge with known rates looks at all
traces, and people at a part of them: a random one, or (chosen) a random half of it and then those
traces rather of which labels tell most by what the judge says. A Markdown table tells for each
setting, in %, how often the interval of as many random labels of people alone (Wilson's) and the
prediction-powered one hold the truth; how wide the second is beside the first (their means);
how many labels that saves for the same width; and the most that could be saved with random labels
by any estimate without bias: rho^2 (1 - n/N), and rho^2 where the traces have no end. rho is the
correlation of the judge's word with the truth, n of N traces are labelled. With ``report`` it is
told of the weighted share that ``mast-tui report`` gives of the chosen labels, without the judge.

``rule``: 100 random labels, and then as many more as are said to be needed for 3 points on either
side: of people alone as ``report`` has it, and with the judge as ``agree`` has it. The table tells
how many that makes on average, half the width of the interval then (its mean, and what 90 % of the
runs stay under), and how often it holds the truth.

The exit code is 1 where an interval holds the truth in less than 93 or more than 97 % of the runs,
by more than two standard errors of such a share, with random labels is more than 2 % wider than
that of people alone, or where half the width is more than 3.1 points on average under the rule.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
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
from mast_tui.figures.signatures.modes import Counts
from mast_tui.labels import VerdictValue
from mast_tui.study import Draw, Study, weighted_sample

JUDGES: Final = ((0.8, 0.9), (0.95, 0.97), (0.6, 0.8), (0.5, 0.5))
"""True positive and true negative rate; the last is at chance."""

PREVALENCES: Final = (0.03, 0.1, 0.2, 0.3, 0.5)
LABELLED: Final = (100, 200)
ALL: Final = 1200
MANY: Final = 20_000
"""So many traces that the rule never runs out of them."""

MOST_HALF: Final = 0.031
"""What half a width may be on average under the rule."""

Ends = Sequence[float] | None
"""Both ends of an interval."""

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
) -> Ends:
    """The interval of one run with random labels."""
    part, further = drawn(rates, true, labelled, ALL - labelled, chance)
    return prediction_powered(part, further).powered.interval


def drawn(
    rates: tuple[float, float], true: float, labelled: int, left: int, chance: np.random.Generator
) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """Draw labelled traces as TP, FP, FN, TN, and what the judge says of those left."""
    tpr, tnr = rates
    cells = (true * tpr, (1 - true) * (1 - tnr), true * (1 - tpr), (1 - true) * tnr)
    part = chance.multinomial(labelled, cells)
    said = int(chance.binomial(left, cells[0] + cells[1]))
    return part, np.array([said, left - said])


def of_chosen(
    rates: tuple[float, float],
    true: float,
    labelled: int,
    chance: np.random.Generator,
    *,
    alone: bool = False,
) -> Ends:
    """The interval of one run with a random half, and a half that was chosen by its worth.

    ``alone`` is that of the weighted labels, without the judge.
    """
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
    drawn = weighted_sample(worth_of_labels(given, left, [_MODE]), labelled - len(first), seed)
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
    each = np.array(list(weights.values()))
    if alone:
        verdicts = np.where(there[places], PRESENT, ABSENT).astype(np.uint8)[:, None]
        return Counts.from_verdicts(verdicts, each).rate(0, FigureScope("mode")).interval
    cells = _cells(says[places], there[places])
    rest = np.delete(says, places)
    further = np.array([rest.sum(), (~rest).sum()])
    (weighted,) = weighted_tables(cells[:, None, :], each)
    return prediction_powered(cells.sum(axis=0), further, weighted).powered.interval


def _cells(says: NDArray[np.bool_], there: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Zeros and ones, traces × (TP, FP, FN, TN)."""
    four = (says & there, says & ~there, ~says & there, ~says & ~there)
    return np.stack(four, axis=1).astype(np.float64)


RUNS: Final = {
    "random": of_random,
    "chosen": of_chosen,
    "report": partial(of_chosen, alone=True),
}


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
        ends = RUNS[how](rates, true, labelled, chance)
        assert ends is not None
        joined.append((ends[0], ends[1]))
        own = wilson(int(chance.binomial(labelled, true)), labelled)
        assert own is not None
        alone.append(own)
    people, both = np.array(alone), np.array(joined)
    held = [float(100 * ((x[:, 0] <= true) & (true <= x[:, 1])).mean()) for x in (people, both)]
    widths = [float((x[:, 1] - x[:, 0]).mean()) for x in (people, both)]
    return held[0], held[1], widths[1] / widths[0]


class Followed(NamedTuple):
    """What came of the rule: labels in all, half a width, whether the interval holds the truth."""

    labels: int
    half: float
    holds: bool


def follow(
    rates: tuple[float, float], true: float, chance: np.random.Generator
) -> tuple[Followed, Followed]:
    """One study that goes by the rule, with people alone and with the judge."""
    first, _ = drawn(rates, true, min(LABELLED), MANY, chance)

    def more(part: NDArray[np.int_], count: int) -> NDArray[np.int_]:
        return part + drawn(rates, true, count, 0, chance)[0]

    def told(part: NDArray[np.int_], ends: Ends) -> Followed:
        assert ends is not None
        return Followed(int(part.sum()), (ends[1] - ends[0]) / 2, ends[0] <= true <= ends[1])

    def hits(part: NDArray[np.int_]) -> tuple[int, int]:
        return int(part[0] + part[2]), int(part.sum())

    alone = more(first, more_for(*hits(first), MARGIN) or 0)
    _, further = drawn(rates, true, 0, MANY, chance)
    both = more(first, prediction_powered(first, further).more_labels or 0)
    joined = prediction_powered(both, further).powered.interval
    return told(alone, wilson(*hits(alone))), told(both, joined)


def follow_rule(runs: int, chance: np.random.Generator) -> bool:
    """Print what comes of the rule; whether it breaks its promise anywhere."""
    print(
        "tpr,tnr,mode_in_percent,labelled_by,labels,half_width,half_width_90,holds",
        flush=True,
    )
    broken = False
    for rates, true in product(JUDGES, PREVALENCES):
        found = [follow(rates, true, chance) for _ in range(runs)]
        for by, own in zip(("people", "with the judge"), zip(*found, strict=True), strict=True):
            labels, half, holds = (np.array(one) for one in zip(*own, strict=True))
            broken |= bool(half.mean() > MOST_HALF)
            print(
                f"{rates[0]:g},{rates[1]:g},{100 * true:g},{by},{labels.mean():.0f},"
                f"{100 * half.mean():.2f},{100 * np.quantile(half, 0.9):.2f},"
                f"{100 * holds.mean():.1f}",
                flush=True,
            )
    return broken


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("how", nargs="?", choices=(*RUNS, "rule"), default="random")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance = np.random.default_rng(given.seed)
    if given.how == "rule":
        return int(follow_rule(given.runs, chance))
    print(
        "tpr,tnr,mode_in_percent,labelled,people_holds,joined_holds,width,saved,"
        "most_saved_at_random,most_saved_without_end",
        flush=True,
    )
    fails = False
    error = 100 * (0.95 * 0.05 / given.runs) ** 0.5
    for rates, true, labelled in product(JUDGES, PREVALENCES, LABELLED):
        people, held, width = simulate(given.how, rates, true, labelled, given.runs, chance)
        fails |= abs(held - 95) > 2 + 2 * error or (given.how == "random" and width > 1.02)
        most = correlation(true, *rates) ** 2
        print(
            f"{rates[0]:g},{rates[1]:g},{100 * true:g},{labelled},{people:.1f},{held:.1f},"
            f"{width:.2f},{100 * (1 - width**2):.0f},{100 * most * (1 - labelled / ALL):.0f},"
            f"{100 * most:.0f}",
            flush=True,
        )
    return int(fails)


if __name__ == "__main__":
    sys.exit(main())
