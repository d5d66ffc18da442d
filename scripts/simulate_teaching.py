"""Print how often a new version of a judge is called better, if it is better or not.

    python scripts/simulate_teaching.py --loops 500

Each loop has gold, a judge with errors, and a new version with errors of its own. The app calls it
better if it has more right verdicts and p is at most 0.05: over all modes in a test that flips the
signs of whole traces, or in a single mode after adjustment.
"""

from __future__ import annotations

import argparse
import csv
import sys

import numpy as np

from mast_tui.figures.significance import benjamini_hochberg, sign_flips

LEVEL = 0.05
MODES = 14
ERROR = 0.15
"""The share of wrong verdicts of either version."""


def claims(rng: np.random.Generator, traces: int, shared: float, gain: float) -> tuple[bool, bool]:
    """Simulate one loop.

    Args:
        rng: The source of randomness.
        traces: The number of held-out traces.
        shared: The share of errors that both versions make because a trace is hard.
        gain: The share of the old errors that the new version avoids.

    Returns:
        Whether the new version is called better over all modes, and in any single mode.
    """
    hard = rng.beta(0.5, 0.5 * (1 - ERROR) / ERROR, size=(traces, 1))
    wrong = rng.random((2, traces, MODES)) < (shared * hard + (1 - shared) * ERROR)
    remains = rng.random((traces, MODES)) >= gain
    differences = wrong[0].astype(int) - (wrong[1] & remains)
    pooled = differences.sum(axis=1)
    better = sign_flips(pooled.tolist()) <= LEVEL and pooled.sum() > 0
    by_mode = differences.T
    adjusted = benjamini_hochberg([sign_flips(mode.tolist()) for mode in by_mode])
    single = any(
        p is not None and p <= LEVEL and mode.sum() > 0
        for p, mode in zip(adjusted, by_mode, strict=True)
    )
    return bool(better), single


def main() -> None:
    """Print a table of the shares of loops with a claim."""
    parser = argparse.ArgumentParser(description="Simulate versions of a judge.")
    parser.add_argument("--loops", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(("held-out traces", "errors shared", "gain", "better", "better in a mode"))
    for gain in (0.0, 0.3, 0.6):
        for traces in (10, 30, 100):
            for shared in (0.0, 0.8):
                rng = np.random.default_rng((options.seed, traces, int(10 * shared)))
                loops = [claims(rng, traces, shared, gain) for _ in range(options.loops)]
                shares = (sum(column) / options.loops for column in zip(*loops, strict=True))
                table.writerow((traces, shared, gain, *(f"{share:.1%}" for share in shares)))


if __name__ == "__main__":
    main()
