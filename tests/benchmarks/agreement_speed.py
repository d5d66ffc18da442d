"""How long the agreement of a large study takes, beside the same bootstrap over scikit-learn.

Run by hand: ``python tests/benchmarks/agreement_speed.py``. Five annotators, 10,000 traces,
fourteen modes, 2,000 resamples; the report by itself from verdicts in memory, and the whole
command from a workspace. scikit-learn's ``cohen_kappa_score`` gets a tenth of the traces, the
same annotators and modes, and only κ of every pair and mode, of some of the rounds; what all
rounds would take is those times their number. The three are measured in turn, several times.

The workspace's tables are written as they are read by figures, without the events behind them.
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
import warnings
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.metrics import cohen_kappa_score
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
"""How often an annotator does not see what is there, or sees what is not."""

THEN: Final = "2026-01-01T00:00:00Z"


def make_study(traces: int, seed: int) -> StudyInput:
    """Annotators who err by themselves over modes of different prevalence."""
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
    """The whole ``agree``, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "mast_tui", "agree", "--workspace", str(path), "--json"],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": os.devnull},
    )
    report = json.loads(done.stdout)
    assert report["bootstrap"]["rounds"] == ROUNDS, "the command takes another number of rounds"


def run_scikit_learn(study: StudyInput, rounds: int) -> None:
    """κ of every pair and mode in every resample of the traces."""
    said = study.verdicts.verdicts
    chance = np.random.default_rng(0)
    traces = said.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(rounds):
            drawn = said[:, chance.integers(0, traces, traces)]
            for a, b in combinations(range(len(said)), 2):
                for mode in range(said.shape[2]):
                    cohen_kappa_score(drawn[a, :, mode], drawn[b, :, mode])


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """How long something takes: on the clock, and of processors (with the processes it starts)."""
    begun, used = time.perf_counter(), _processor()
    work()
    return time.perf_counter() - begun, _processor() - used


def _processor() -> float:
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in spent)


def told(what: str, taken: Sequence[tuple[float, float]]) -> float:
    """Print what was measured; the median of the clock."""
    median = statistics.median(clock for clock, _ in taken)
    every = ", ".join(f"{clock:.2f}" for clock, _ in taken)
    processor = statistics.median(used for _, used in taken)
    print(f"{what}: {median:.2f} s ({every}), {processor:.2f} s of processors")
    return median


def main() -> None:
    """Measure all, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--their-rounds", type=int, default=40)
    chosen = parser.parse_args()
    study, tenth = make_study(chosen.traces, 1), make_study(chosen.traces // 10, 2)
    report, command, theirs = [], [], []
    with tempfile.TemporaryDirectory(prefix="mast-tui-agreement-") as name:
        path = Path(name) / "workspace.db"
        write_workspace(path, study)
        for _ in range(chosen.times):
            report.append(seconds(lambda: agreement_document(study, rounds=ROUNDS)))
            command.append(seconds(lambda: run_command(path)))
            theirs.append(seconds(lambda: run_scikit_learn(tenth, chosen.their_rounds)))
    size = f"{len(ANNOTATORS)} × {chosen.traces} × {len(study.modes)}, {ROUNDS} rounds"
    told(f"the report, {size}", report)
    ours = told(f"the whole command, {size}", command)
    few = f"{len(ANNOTATORS)} × {chosen.traces // 10} × {len(study.modes)}"
    some = told(f"cohen_kappa_score, {few}, {chosen.their_rounds} rounds", theirs)
    all_rounds = some * ROUNDS / chosen.their_rounds
    print(f"  that is {all_rounds:.0f} s for {ROUNDS} rounds on a tenth of the traces:")
    print(f"  {all_rounds / ours:.0f} × what the whole command takes for all of them")


if __name__ == "__main__":
    main()
