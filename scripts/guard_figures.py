"""Print how often the conditions of guards fire on public runs, and the errors of their tests.

    python scripts/guard_figures.py --corpus FOLDER > docs/guards.csv
    python scripts/guard_figures.py --mast FILE
    python scripts/guard_figures.py --simulate > docs/simulations/guards.csv

``--corpus`` is the folder of the labelled sets of scripts/rules_figures.py. It prints, by the
outcomes of tau-bench, inspect and mast-human, the number of successful and of failed runs in which
each condition fires.

``--mast FILE`` has records of MAST's human labels, a yes or no for each mode. It prints precision,
recall and F1 of the conditions on 3.3, with percentile intervals from resampled records, and from
resampled blocks of records with equal labels.

``--simulate`` draws test halves with a true share of false alarms, and prints how often a guard
passes its test nevertheless.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from mast_tui.cli.guard import MOST_FALSE_ALARMS
from mast_tui.figures.intervals import wilson
from mast_tui.judges.rules import GUARD_RULES
from mast_tui.judges.rules.walk import walk
from mast_tui.traces.library import read_fully, scan
from mast_tui.traces.model import Outcome, Trace

ROUNDS: Final = 10_000
SEED: Final = 0
OF_33: Final = ("failed-check", "unchecked-claim")

Fires = frozenset[str]
"""The conditions that fire in a run."""


def fires_in(trace: Trace) -> Fires:
    """Return the names of the conditions that fire in a trace."""
    read_fully(trace)
    walked = walk(trace)
    return frozenset(rule.name for rule in GUARD_RULES if any(True for _ in rule.find(walked)))


def traces_under(path: Path) -> Iterable[Trace]:
    """Yield the traces under a path."""
    for report in scan((path,)):
        yield from report.traces


def goals(corpus: Path) -> list[tuple[Trace, bool]]:
    """Return the runs with a known outcome, and whether each succeeded."""
    folders = [corpus / name for name in ("tau-bench", "inspect", "mast-human")]
    return [
        (trace, trace.meta.outcome is Outcome.SUCCEEDED)
        for folder in folders
        for trace in traces_under(folder)
        if trace.meta.outcome is not Outcome.UNKNOWN
    ]


def print_goals(corpus: Path) -> None:
    """Print the alarms of each condition on successful and on failed runs."""
    judged = [(fires_in(trace), reached) for trace, reached in goals(corpus)]
    good = [fires for fires, reached in judged if reached]
    bad = [fires for fires, reached in judged if not reached]
    print("condition,successful_runs,alarms,alarms_at_most,failed_runs,hits")
    for rule in GUARD_RULES:
        alarms = sum(rule.name in fires for fires in good)
        hits = sum(rule.name in fires for fires in bad)
        bound = (wilson(alarms, len(good)) or (0.0, 1.0))[1]
        print(f"{rule.name},{len(good)},{alarms},{bound:.3f},{len(bad)},{hits}")


# MAST's human labels


def f1_of(pairs: Sequence[tuple[bool, bool]]) -> tuple[float, float, float] | None:
    """Return precision, recall and F1 of pairs (fires, labelled); None if F1 is undefined."""
    both = sum(fires and labelled for fires, labelled in pairs)
    fired = sum(fires for fires, _ in pairs)
    labelled = sum(label for _, label in pairs)
    if not fired + labelled:
        return None
    precision = both / fired if fired else 0.0
    recall = both / labelled if labelled else 0.0
    return precision, recall, 2 * both / (fired + labelled)


def interval_of(pairs: Sequence[tuple[bool, bool]], units: Sequence[Sequence[int]]) -> str:
    """Return the 95 % percentile interval of F1 over resamples, as text.

    Args:
        pairs: Whether the condition fires and whether the failure is labelled, for each record.
        units: Groups of records that are drawn together.
    """
    source = random.Random(SEED)
    values = []
    for _ in range(ROUNDS):
        drawn = source.choices(units, k=len(units))
        result = f1_of([pairs[number] for unit in drawn for number in unit])
        if result is not None:
            values.append(result[2])
    values.sort()
    low = values[int(0.025 * len(values))]
    high = values[int(0.975 * len(values)) - 1]
    return f"[{low:.3f}, {high:.3f}]"


def print_mast(path: Path) -> None:
    """Print precision, recall and F1 on 3.3 of each condition and of both together."""
    records = json.loads(path.read_text("utf-8"))
    traces = list(traces_under(path))
    if len(traces) != len(records):
        raise SystemExit(f"{path}: {len(records)} records, {len(traces)} traces")
    traces.sort(key=lambda trace: trace.record or 0)
    labels = [bool(record["human_labels"]["3.3"]) for record in records]
    groups: dict[str, list[int]] = {}
    for number, record in enumerate(records):
        groups.setdefault(f"{record['round']} {record['human_labels']}", []).append(number)
    blocks = list(groups.values())
    fires = [fires_in(trace) for trace in traces]
    print(f"{len(records)} records, {sum(labels)} with 3.3, {len(blocks)} blocks of equal labels")
    print("| condition | fires | right | precision | recall | F1 | by record | by block |")
    print("|---|---:|---:|---:|---:|---:|---|---|")
    choices = {name: {name} for name in OF_33} | {"either": set(OF_33), "always": set()}
    for name, conditions in choices.items():
        fired = [not conditions or bool(conditions & names) for names in fires]
        pairs = list(zip(fired, labels, strict=True))
        result = f1_of(pairs)
        assert result is not None
        right = sum(both == (True, True) for both in pairs)
        low, high = wilson(right, sum(labels)) or (0.0, 1.0)
        # Without hits all resamples are 0 and give no interval.
        intervals = (
            (interval_of(pairs, [[n] for n in range(len(pairs))]), interval_of(pairs, blocks))
            if right
            else ("–", "–")
        )
        print(
            f"| {name} | {sum(fired)} | {right} | {result[0]:.2f} | {result[1]:.2f} "
            f"[{low:.2f}, {high:.2f}] | {result[2]:.3f} | {intervals[0]} | {intervals[1]} |"
        )


# Simulation


def print_simulation() -> None:
    """Print how often a guard passes its test, by true false alarms and size of the test half."""
    source = random.Random(SEED)
    shares = (0.0, 0.01, 0.02, 0.05, 0.06, 0.10)
    print("runs_without_failure,true_false_alarms,on")
    for runs in (50, 73, 100, 200, 400, 1000):
        for share in shares:
            on = 0
            for _ in range(ROUNDS):
                alarms = sum(source.random() < share for _ in range(runs))
                interval = wilson(alarms, runs)
                on += interval is not None and interval[1] <= MOST_FALSE_ALARMS
            print(f"{runs},{share},{on / ROUNDS:.3f}")


def main() -> None:
    """Print the chosen figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--mast", type=Path)
    parser.add_argument("--simulate", action="store_true")
    arguments = parser.parse_args()
    if arguments.corpus is not None:
        print_goals(arguments.corpus)
    if arguments.mast is not None:
        print_mast(arguments.mast)
    if arguments.simulate:
        print_simulation()


if __name__ == "__main__":
    main()
