"""Print how often the prediction-powered interval holds a known prevalence, and what it saves.

    python scripts/simulate_prevalence.py [--runs N] [--seed S]

In each run a mode shows in a trace with a known chance; a judge with known rates looks at all
traces, and people at a random part of them. A Markdown table tells for each setting, in %, how
often the interval of people alone (Wilson's) and the prediction-powered one hold the truth, how
wide the second is beside the first (the median), and how many labels that saves for the same width.
The exit code is 1 where one holds the truth in less than 93 or more than 97 % of the runs, by more
than two standard errors of such a share.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from typing import Final

import numpy as np

from mast_tui.figures.prevalence import powered

JUDGES: Final = ((0.8, 0.9), (0.95, 0.97), (0.6, 0.8), (0.5, 0.5))
"""True positive and true negative rate; the last is at chance."""

PREVALENCES: Final = (0.03, 0.1, 0.3, 0.5)
LABELLED: Final = (100, 200)
ALL: Final = 1200


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance = np.random.default_rng(given.seed)
    print(f"{given.runs:,} runs each, {ALL:,} traces\n")
    print("| TPR, TNR | mode in | labelled | people | with the judge | width | labels saved |")
    print("|---|---|---|---|---|---|---|")
    worst = 0.0
    for (tpr, tnr), true, labelled in product(JUDGES, PREVALENCES, LABELLED):
        cells = (true * tpr, (1 - true) * (1 - tnr), true * (1 - tpr), (1 - true) * tnr)
        people, joined, widths = 0, 0, []
        for _ in range(given.runs):
            part = chance.multinomial(labelled, cells)
            said = chance.binomial(ALL - labelled, cells[0] + cells[1])
            found = powered(part, np.array([said, ALL - labelled - said]))
            alone, both = found["people"]["ci"], found["powered"]["ci"]
            assert alone is not None
            assert both is not None
            people += alone[0] <= true <= alone[1]
            joined += both[0] <= true <= both[1]
            widths.append((both[1] - both[0]) / (alone[1] - alone[0]))
        width = float(np.median(widths))
        held = 100 * joined / given.runs
        worst = max(worst, abs(held - 95))
        print(
            f"| {tpr:g}, {tnr:g} | {true:.0%} | {labelled} | {100 * people / given.runs:.1f} | "
            f"{held:.1f} | {width:.2f} | {1 - width**2:.0%} |"
        )
    chance_of_it = 100 * (0.95 * 0.05 / given.runs) ** 0.5
    return int(worst > 2 + 2 * chance_of_it)


if __name__ == "__main__":
    sys.exit(main())
