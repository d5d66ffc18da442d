"""Time of ``mast-tui agree`` on a large study; run by hand.

    .venv/bin/python -m tests.benchmarks.agreement_speed [--traces N] [--times N]

Five annotators, 10,000 traces, fourteen modes, 2,000 resamples. The workspace has state tables
without events.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from sqlalchemy import create_engine

from mast_tui.labels import AnnotatorKind
from mast_tui.taxonomy.loader import load_mast
from mast_tui.workspace import Workspace, schema
from tests.benchmarks.commands import timed

ANNOTATORS: Final = ("ann", "bob", "cat", "dan", "eve")
ROUNDS: Final = 2000
WRONG: Final = 0.08
"""The error rate of annotators."""

TIME: Final = "2026-01-01T00:00:00Z"


def write_workspace(path: Path, traces: int, seed: int) -> None:
    """Write verdicts of annotators who err independently, on modes of different prevalence.

    A present mode is a label on the whole trace.

    Args:
        path: The workspace, which is made.
        traces: The number of traces.
        seed: The same seed gives the same verdicts.
    """
    chance = np.random.default_rng(seed)
    taxonomy = load_mast()
    modes = len(taxonomy.modes)
    truth = chance.random((traces, modes)) < chance.uniform(0.03, 0.35, modes)
    wrong = chance.random((len(ANNOTATORS), traces, modes)) < WRONG
    present = np.where(wrong, ~truth, truth)
    ids = [f"trace-{number:05d}" for number in range(traces)]
    workspace = Workspace.open(path)
    workspace.add_taxonomy(taxonomy)
    for name in ANNOTATORS:
        workspace.add_annotator(name, AnnotatorKind.HUMAN)
    workspace.close()
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        connection.execute(schema.traces.insert(), [_trace(trace) for trace in ids])
        for index, name in enumerate(ANNOTATORS):
            passes = [
                {"annotator": name, "trace_id": trace, "taxonomy": taxonomy.ref} for trace in ids
            ]
            connection.execute(schema.passes.insert(), [key | _PASS for key in passes])
            verdicts: list[dict[str, Any]] = []
            labels: list[dict[str, Any]] = []
            for key, row in zip(passes, present[index].tolist(), strict=True):
                for mode, is_present in zip(taxonomy.modes, row, strict=True):
                    cell = key | {"pass_number": 1, "mode": mode.slug}
                    if is_present:
                        labels.append(cell | _LABEL | {"id": f"label-{name}-{len(labels)}"})
                    else:
                        verdicts.append(cell | {"value": "absent"})
            connection.execute(schema.verdicts.insert(), verdicts)
            connection.execute(schema.labels.insert(), labels)
    engine.dispose()


_PASS: Final[dict[str, Any]] = {
    "number": 1,
    "kind": "blind",
    "started_at": TIME,
    "finished_at": TIME,
    "judge_seen": False,
    "withdrawn": False,
    "withheld": False,
}
_LABEL: Final[dict[str, Any]] = {
    "note": "",
    "origin": "manual",
    "saw_suggestions": False,
    "created_at": TIME,
}


def _trace(name: str) -> dict[str, Any]:
    return {"id": name, "base_id": name, "native": True, "outcome": "unknown"}


def main() -> None:
    """Measure the command, and print its times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mast-tui-agreement-") as name:
        path = Path(name) / "workspace.db"
        write_workspace(path, options.traces, 1)
        runs = [timed("agree", "--workspace", str(path), "--json") for _ in range(options.times)]
    document = json.loads(runs[0].output)
    assert document["bootstrap"]["rounds"] == ROUNDS, "the command takes another number of rounds"
    every = ", ".join(f"{run.wall:.2f}" for run in runs)
    print(
        f"{len(ANNOTATORS)} annotators, {options.traces} traces, {ROUNDS} resamples: "
        f"{median(run.wall for run in runs):.2f} s ({every}), "
        f"{median(run.processor for run in runs):.2f} s of processors"
    )


if __name__ == "__main__":
    main()
