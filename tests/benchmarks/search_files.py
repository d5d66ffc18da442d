"""Time of a search for a rare word in 200 files of 10 MB, beside ``grep -r``; run by hand.

    .venv/bin/python -m tests.benchmarks.search_files [--files N] [--holding N] [--repeats N]

The files are Codex rollouts made from a seed, in a folder of /tmp that is deleted at the end. Ten
of them hold the word, in three messages each, the last of these at the end. The files are warm,
each run is a process of its own, and ``mast-tui search`` and ``grep`` take turns. ``grep`` uses one
core and ``search`` all of them: on a machine that others use too look at the processor time.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final
from uuid import UUID

from tests.benchmarks.rollouts import RARE_WORD, write_long

ROOT: Final = Path(__file__).resolve().parents[2]
FILES: Final = 200
FILE_BYTES: Final = 10 << 20
HOLDING: Final = 10
FIRST_SECONDS: Final = 1.0
TIMES_GREP: Final = 1.5


def write_files(folder: Path, count: int, holding: int) -> int:
    """Write the files; returns how many spans hold the word."""
    first = folder / "rollout-000.jsonl"
    facts = write_long(first, FILE_BYTES, seed=3, block_bytes=FILE_BYTES)
    data = first.read_bytes()
    own = data.split(b'"id":"', 1)[1][:36]
    without = data.replace(RARE_WORD.encode(), b"common")
    first.unlink()
    every = count // holding
    for number in range(count):
        source = data if number % every == every - 1 else without
        name = str(UUID(int=number, version=4)).encode()
        (folder / f"rollout-{number:03d}.jsonl").write_bytes(source.replace(own, name))
    return len(facts.rare) * (count // every)


def run(command: Sequence[str]) -> tuple[float, float, float, int]:
    """Return seconds to the first line, to the end and of processors, and the number of lines."""
    begun, used = perf_counter(), processor_seconds()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    first, lines = 0.0, 0
    for _line in process.stdout:
        first = first or perf_counter() - begun
        lines += 1
    process.wait()
    return first, perf_counter() - begun, processor_seconds() - used, lines


def processor_seconds() -> float:
    """Return the processor time of all ended child processes."""
    taken = resource.getrusage(resource.RUSAGE_CHILDREN)
    return taken.ru_utime + taken.ru_stime


def main() -> None:
    """Write the files, look for the word, and print what that took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--holding", type=int, default=HOLDING)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="mast-search-"))
    try:
        hits = write_files(folder, options.files, options.holding)
        size = sum(path.stat().st_size for path in folder.iterdir())
        commands = {
            "grep -r": ["/usr/bin/grep", "-r", RARE_WORD, str(folder)],
            "search": [sys.executable, "-m", "mast_tui", "search", RARE_WORD, str(folder)],
        }
        took: dict[str, list[tuple[float, float, float]]] = {name: [] for name in commands}
        for turn in range(options.repeats + 1):
            for name, command in commands.items():
                first, whole, used, lines = run(command)
                if lines != hits:
                    sys.exit(f"{name} found {lines} lines, not {hits}")
                if turn:  # the first one warms the files
                    took[name].append((first, whole, used))
        print(f"{options.files} files, {size / 1e9:.2f} GB, {hits} hits; median of the runs")
        for name, runs in took.items():
            first, whole, used = (median(values) for values in zip(*runs, strict=True))
            print(f"{name:8}  first hit {first:.2f} s  all {whole:.2f} s  processors {used:.2f} s")
        grep, search = (median(whole for _, whole, _ in runs) for runs in took.values())
        first = median(first for first, _, _ in took["search"])
        print(f"search takes {search / grep:.2f} times as long as grep (aim: {TIMES_GREP})")
        print(f"its first hit comes after {first:.2f} s (aim: {FIRST_SECONDS})")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
