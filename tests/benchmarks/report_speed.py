"""How long ``report --json`` takes on a million labels, and how much memory; run it by hand.

    .venv/bin/python -m tests.benchmarks.report_speed [--sides 2] [--spans]

The workspace is made from a seed: 100,000 traces of eight models, ten labels on each and the other
four modes absent. What follows from events is written straight into the tables, as a million events
would take a quarter of an hour; the report reads those tables alone.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mast_tui.labels import AnnotatorKind
from mast_tui.taxonomy.loader import load_mast
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import Workspace

TRACES: Final = 100_000
LABELS: Final = 10
"""On each trace, by all annotators together at least."""

SECONDS: Final = 10
MEGABYTES: Final = 1000

_LABEL: Final = (
    "INSERT INTO labels (annotator, id, trace_id, taxonomy, pass_number, mode, first_key, last_key,"
    " note, origin, saw_suggestions, created_at) VALUES (?,?,?,?,1,?,?,?,'','imported',0,'')"
)
_VERDICT: Final = "INSERT INTO verdicts VALUES (?,?,?,1,?,'absent')"
_PASS: Final = (
    "INSERT INTO passes (annotator, trace_id, taxonomy, number, kind, started_at, finished_at,"
    " judge_seen, withdrawn, withheld) VALUES (?,?,?,1,'blind','','',0,0,0)"
)
_TRACE: Final = (
    "INSERT INTO traces (id, base_id, native, model, outcome, score, spans) VALUES (?,?,0,?,?,?,80)"
)

Row = tuple[object, ...]


def write_workspace(path: Path, sides: int, spans: bool) -> int:
    """Write the workspace and return how many labels are in it."""
    taxonomy = load_mast()
    workspace = Workspace.open(path)
    workspace.add_taxonomy(taxonomy)
    names = [f"person-{number}" for number in range(sides)]
    for name in names:
        workspace.add_annotator(name, AnnotatorKind.HUMAN)
    workspace.close()
    chance = random.Random(7)
    traces = [f"trace-{number:06d}" for number in range(TRACES)]
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA synchronous=OFF")
        file.executemany(_TRACE, (_trace(trace, chance) for trace in traces))
        for name in names:
            file.executemany(_PASS, ((name, trace, taxonomy.ref) for trace in traces))
            rows = list(_shown(taxonomy, traces, chance, LABELS // sides))
            file.executemany(_LABEL, _labels(name, taxonomy, rows, spans))
            file.executemany(_VERDICT, _verdicts(name, taxonomy, rows))
        (labels,) = file.execute("SELECT count(*) FROM labels").fetchone()
    return int(labels)


def _trace(trace: str, chance: random.Random) -> Row:
    outcome = chance.choice(["failed", "failed", "succeeded"])
    return trace, trace, f"model-{chance.randrange(8)}", outcome, chance.random()


Shown = tuple[str, frozenset[int]]


def _shown(
    taxonomy: Taxonomy, traces: list[str], chance: random.Random, labels: int
) -> Iterator[Shown]:
    places = range(len(taxonomy.modes))
    for trace in traces:
        yield trace, frozenset(chance.sample(places, labels))


def _labels(name: str, taxonomy: Taxonomy, rows: list[Shown], spans: bool) -> Iterator[Row]:
    for trace, modes in rows:
        for mode in modes:
            key = f"line {mode}" if spans else None
            slug = taxonomy.modes[mode].slug
            yield name, f"{name}:{trace}:{mode}", trace, taxonomy.ref, slug, key, key


def _verdicts(name: str, taxonomy: Taxonomy, rows: list[Shown]) -> Iterator[Row]:
    for trace, modes in rows:
        for place, mode in enumerate(taxonomy.modes):
            if place not in modes:
                yield name, trace, taxonomy.ref, mode.slug


def measure(path: Path, *options: str) -> None:
    """Run the command once and print what it took."""
    command = [sys.executable, "-m", "mast_tui", "report", "--json", "--workspace", str(path)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    done = subprocess.run([*command, *options], capture_output=True, check=True, timeout=600)
    seconds = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    counts = json.loads(done.stdout)["traces"]
    print(
        f"report --json {' '.join(options)}: {seconds:.1f} s (at most {SECONDS}), of that "
        f"{used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime:.1f} s at work, "
        f"{used.ru_maxrss / 1024:.0f} MB (at most {MEGABYTES}); {counts}"
    )


def main() -> None:
    """Make the workspace and measure the report on it."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--sides", type=int, default=1, help="how many people labelled each trace")
    words.add_argument("--spans", action="store_true", help="labels name spans nobody has here")
    given = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "workspace.db"
        labels = write_workspace(path, given.sides, given.spans)
        print(f"{labels} labels on {TRACES} traces, {path.stat().st_size / 1e6:.0f} MB")
        measure(path)
        measure(path, "--labels", "person-0", "--by", "all")


if __name__ == "__main__":
    main()
