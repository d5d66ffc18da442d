"""Cost of judging into shards.

    .venv/bin/python -m tests.benchmarks.scale [--traces 100000] [--workers 2]

Run by hand. The traces are made from a seed, in a folder that is deleted at the end: message
lists, every tenth a Codex rollout. Workers judge 1,000 traces, a tenth and all of them; the
benchmark prints the cost of a trace and the memory of the largest process. Then one process judges
all, and the bytes are compared.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from pathlib import Path
from typing import Final

from tests.benchmarks.commands import Took, timed
from tests.benchmarks.rollouts import small_traces

TURNS: Final = 30


def write_traces(folder: Path, count: int, seed: int) -> None:
    """Write traces of some 75 spans, a tenth of them Codex rollouts, of which some repeat calls."""
    rng = random.Random(seed)
    rollouts = small_traces(max(1, count // 10), seed=seed)
    for number in range(count):
        below = folder / f"{number // 1000:04}"
        below.mkdir(exist_ok=True)
        if number % 10 == 9 and (rollout := next(rollouts, None)) is not None:
            name, data = rollout
            (below / name).write_bytes(data)
            continue
        repeats = rng.random() < 0.3
        messages: list[dict[str, object]] = [{"role": "user", "content": f"Task {number}"}]
        for turn in range(TURNS):
            part = 0 if repeats and turn > TURNS // 2 else turn
            call = {"name": "shell", "arguments": json.dumps({"command": f"get {number} {part}"})}
            messages += [
                {
                    "role": "assistant",
                    "content": f"I look at part {part}.",
                    "tool_calls": [{"id": f"c{turn}", "type": "function", "function": call}],
                },
                {"role": "tool", "tool_call_id": f"c{turn}", "content": f"part {part} is up " * 20},
            ]
        document = {"messages": messages, "model": f"m-{number % 3}"}
        (below / f"run-{number:07}.json").write_text(json.dumps(document))


def judge(traces: Path, out: Path, *more: str) -> Took:
    """Judge traces into shards."""
    return timed("judge", str(traces), "--judge", "rules", "--out", str(out), "--json", *more)


def contents(folder: Path) -> dict[str, bytes]:
    """Return the shards of a folder by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".parquet"}


def growth(folder: Path, traces: int, workers: int) -> None:
    """Print what a trace costs and how large the command grows as traces come to be more."""
    runs = folder
    for count in sorted({1000, traces // 10, traces}):
        runs = folder / f"{count}"
        runs.mkdir()
        write_traces(runs, count, 1)
        took = judge(runs, folder / f"{count}-out", "--workers", str(workers))
        print(
            f"{count:,} traces, {workers} workers: {took.wall:.1f} s, "
            f"{1000 * took.wall / count:.2f} ms and {1000 * took.processor / count:.2f} ms of "
            f"processor time a trace; {took.megabytes:.0f} MB",
            flush=True,
        )
    took = judge(runs, folder / "plain")
    same = contents(folder / "plain") == contents(folder / f"{traces}-out")
    print(f"in one process: {took.wall:.1f} s, {took.megabytes:.0f} MB; the same bytes: {same}")


def main() -> None:
    """Measure the growth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mast-scale-") as folder:
        growth(Path(folder), options.traces, options.workers)


if __name__ == "__main__":
    main()
