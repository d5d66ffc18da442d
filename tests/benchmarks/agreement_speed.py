"""Time of the agreement of a large study; run by hand.

    .venv/bin/python tests/benchmarks/agreement_speed.py [--traces N] [--times N]

Five annotators, 10,000 traces, fourteen modes, 2,000 resamples: the report alone from verdicts in
memory, and the whole command from a workspace. The workspace has state tables without events.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from sqlalchemy import create_engine

from mast_tui.figures.agreement.counting import PRESENT, VerdictTable
from mast_tui.figures.agreement.report import StudyInput
from mast_tui.labels import AnnotatorKind
from mast_tui.taxonomy.loader import load_mast
from mast_tui.workspace import Workspace, schema
from tests.figures.agreement.tables import agreement_document

ROOT: Final = Path(__file__).resolve().parents[2]
ANNOTATORS: Final = ("ann", "bob", "cat", "dan", "eve")
ROUNDS: Final = 2000
WRONG: Final = 0.08
"""The error rate of annotators."""

THEN: Final = "2026-01-01T00:00:00Z"


def make_study(traces: int, seed: int) -> StudyInput:
    """Draw verdicts of annotators who err independently, on modes of different prevalence."""
    chance = np.random.default_rng(seed)
    taxonomy = load_mast()
    modes = len(taxonomy.modes)
    truth = chance.random((traces, modes)) < chance.uniform(0.03, 0.35, modes)
    wrong = chance.random((len(ANNOTATORS), traces, modes)) < WRONG
    said = np.where(wrong, ~truth, truth).astype(np.int8)
    ids = tuple(f"trace-{number:05d}" for number in range(traces))
    slugs = tuple(mode.slug for mode in taxonomy.modes)
    return StudyInput(
        taxonomy_ref=taxonomy.ref,
        modes=tuple((mode.slug, mode.code, mode.name) for mode in taxonomy.modes),
        annotators=ANNOTATORS,
        pass_label="1",
        verdicts=VerdictTable(ANNOTATORS, ids, slugs, said),
        finished=dict.fromkeys(ANNOTATORS, frozenset(ids)),
        categories=tuple(
            (group.id, group.name, tuple(m.slug for m in taxonomy.modes if m.category == group.id))
            for group in taxonomy.categories
        ),
    )


def write_workspace(path: Path, study: StudyInput) -> None:
    """Write the study's verdicts into a workspace, a label on the whole trace for each present."""
    workspace = Workspace.open(path)
    workspace.add_taxonomy(load_mast())
    for name in ANNOTATORS:
        workspace.add_annotator(name, AnnotatorKind.HUMAN)
    workspace.close()
    table = study.verdicts
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        connection.execute(schema.traces.insert(), [_trace(trace) for trace in table.traces])
        for place, name in enumerate(ANNOTATORS):
            cells = [
                ({"annotator": name, "trace_id": trace, "taxonomy": study.taxonomy_ref}, row)
                for trace, row in zip(table.traces, table.verdicts[place].tolist(), strict=True)
            ]
            connection.execute(schema.passes.insert(), [key | _PASS for key, _ in cells])
            given = [
                (key | {"pass_number": 1, "mode": slug}, cell == PRESENT)
                for key, row in cells
                for slug, cell in zip(table.slugs, row, strict=True)
            ]
            connection.execute(
                schema.verdicts.insert(),
                [key | {"value": "absent"} for key, present in given if not present],
            )
            connection.execute(
                schema.labels.insert(),
                [
                    key | _LABEL | {"id": f"label-{name}-{number}"}
                    for number, (key, present) in enumerate(given)
                    if present
                ],
            )
    engine.dispose()


_PASS: Final[dict[str, Any]] = {
    "number": 1,
    "kind": "blind",
    "started_at": THEN,
    "finished_at": THEN,
    "judge_seen": False,
    "withdrawn": False,
    "withheld": False,
}
_LABEL: Final[dict[str, Any]] = {
    "note": "",
    "origin": "manual",
    "saw_suggestions": False,
    "created_at": THEN,
}


def _trace(name: str) -> dict[str, Any]:
    return {"id": name, "base_id": name, "native": True, "outcome": "unknown"}


def run_command(path: Path) -> None:
    """Run ``agree`` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "mast_tui", "agree", "--workspace", str(path), "--json"],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": os.devnull},
    )
    report = json.loads(done.stdout)
    assert report["bootstrap"]["rounds"] == ROUNDS, "the command takes another number of rounds"


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Return the time by the clock and that of processors, with child processes."""
    begun, used = time.perf_counter(), _processor()
    work()
    return time.perf_counter() - begun, _processor() - used


def _processor() -> float:
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in spent)


def print_times(what: str, taken: Sequence[tuple[float, float]]) -> None:
    """Print the median and all times."""
    median = statistics.median(clock for clock, _ in taken)
    every = ", ".join(f"{clock:.2f}" for clock, _ in taken)
    processor = statistics.median(used for _, used in taken)
    print(f"{what}: {median:.2f} s ({every}), {processor:.2f} s of processors")


def main() -> None:
    """Measure all, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=3)
    chosen = parser.parse_args()
    study = make_study(chosen.traces, 1)
    report = []
    command = []
    with tempfile.TemporaryDirectory(prefix="mast-tui-agreement-") as name:
        path = Path(name) / "workspace.db"
        write_workspace(path, study)
        for _ in range(chosen.times):
            report.append(seconds(lambda: agreement_document(study, rounds=ROUNDS)))
            command.append(seconds(lambda: run_command(path)))
    size = f"{len(ANNOTATORS)} × {chosen.traces} × {len(study.modes)}, {ROUNDS} rounds"
    print_times(f"the report, {size}", report)
    print_times(f"the whole command, {size}", command)


if __name__ == "__main__":
    main()
