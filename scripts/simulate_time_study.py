"""Print how well ``agree --time`` finds the pull of suggestions in simulated time studies.

    python scripts/simulate_time_study.py --studies 400

Two annotators label all traces; suggestions are hidden on half of the traces of each. A suggestion
raises the chance of present by a known bias, and saves a share of the minutes.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.judge.input import AssistedPass
from mast_tui.figures.time_study import time_study
from mast_tui.labels import VerdictValue
from mast_tui.taxonomy.model import Mode

MODES = tuple(Mode(f"mode{number}", f"{number}", f"Mode {number}", "") for number in range(14))
BIAS = 0.12
"""The increase in the chance of present by a suggestion."""

SAVED = 0.25
"""The share of the minutes that suggestions save."""

MINUTES = 12.0
"""The mean minutes of a trace of mean difficulty without suggestions."""


def passes_of(
    rng: np.random.Generator, traces: int, pace: NDArray[np.float64]
) -> Iterator[AssistedPass]:
    """Simulate the passes of a study.

    Args:
        rng: The source of randomness.
        traces: The number of traces.
        pace: The minutes of each annotator, as multiples of the mean.
    """
    for trace in range(traces):
        difficulty = rng.lognormal(-0.125, 0.5)
        chances = rng.beta(0.6, 1.4, size=len(MODES))
        suggested = frozenset(
            mode.slug for mode, chance in zip(MODES, chances, strict=True) if chance > 0.5
        )
        first_hidden = int(rng.integers(2))
        for annotator in range(2):
            withheld = annotator == first_hidden
            verdicts = {}
            for mode, chance in zip(MODES, chances, strict=True):
                pull = 0.0 if withheld or mode.slug not in suggested else BIAS
                present = rng.random() < 0.85 * chance + pull
                verdicts[mode.slug] = VerdictValue.PRESENT if present else VerdictValue.ABSENT
            noise = rng.lognormal(-0.08, 0.4)
            minutes = MINUTES * pace[annotator] * difficulty * noise
            yield AssistedPass(
                f"annotator {annotator}",
                f"trace {trace}",
                withheld,
                not withheld,
                verdicts,
                {slug: int(value is VerdictValue.PRESENT) for slug, value in verdicts.items()},
                minutes=minutes if withheld else (1 - SAVED) * minutes,
                suggested=suggested,
            )


def main() -> None:
    """Print the mean bias found and how often intervals hold the true values."""
    parser = argparse.ArgumentParser(description="Simulate time studies.")
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    table = csv.writer(sys.stdout, lineterminator="\n")
    heading = ("traces", "mean bias found", "interval holds it", "no bias elsewhere, holds")
    table.writerow((*heading, "interval of minutes holds"))
    for traces in (20, 60, 200):
        rng = np.random.default_rng((options.seed, traces))
        bias: list[float] = []
        holds: list[bool] = []
        holds_elsewhere: list[bool] = []
        holds_minutes: list[bool] = []
        for _ in range(options.studies):
            pace = rng.lognormal(0, 0.3, size=2)
            document = time_study(list(passes_of(rng, traces, pace)), MODES)
            anchoring = document["anchoring"]
            bias.append(anchoring["suggested"]["value"] or 0.0)
            holds.append(_holds(anchoring["suggested"], BIAS))
            holds_elsewhere.append(_holds(anchoring["other"], 0.0))
            saved = -SAVED * MINUTES * float(pace.mean())
            holds_minutes.append(_holds(document["minutes_difference"], saved))
        shares = (sum(column) / len(column) for column in (holds, holds_elsewhere, holds_minutes))
        table.writerow((traces, f"{np.mean(bias):.3f}", *(f"{share:.1%}" for share in shares)))


def _holds(figure: object, truth: float) -> bool:
    assert isinstance(figure, dict)
    ends = figure.get("ci")
    return ends is not None and ends[0] <= truth <= ends[1]


if __name__ == "__main__":
    main()
