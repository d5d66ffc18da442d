"""Cost, safety under kills, and reports of judging into shards.

    .venv/bin/python -m tests.benchmarks.scale growth [--traces 100000] [--workers 2]
    .venv/bin/python -m tests.benchmarks.scale kills [--traces 400] [--kills 20] [--seed 0]
    .venv/bin/python -m tests.benchmarks.scale report [--traces 10000000]

Run by hand. All data are made from a seed, in a folder that is deleted at the end. Traces are
message lists, every tenth a Codex rollout. ``growth`` has workers judge 1,000 traces, a tenth and
all of them, and prints the cost of a trace and the memory of the command; then one process judges
all, and the bytes are compared. ``kills`` kills workers and drivers at random times and repeats
the same command until it ends. ``report`` makes shards of the given number of traces and reports
on them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np

from mast_tui.judges.rules import RulesJudge
from mast_tui.scale.shards import (
    BINS,
    Manifest,
    ShardFolder,
    onset_column,
    pyarrow,
    traces_file,
    traces_schema,
    verdict_column,
)
from mast_tui.taxonomy.loader import load_mast
from tests.benchmarks.rollouts import small_traces

TURNS: Final = 30
ROWS: Final = 500
SECONDS: Final = 60.0
MEGABYTES: Final = 1000.0

_RUN: Final = """
import resource, sys
from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
code = run(split_command(sys.argv[1:]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)
sys.exit(code)
"""


def write_traces(folder: Path, count: int, seed: int) -> None:
    """Write traces of some 75 spans, a tenth of them Codex rollouts, of which some repeat calls."""
    rng = random.Random(seed)
    rollouts = small_traces(max(1, count // 10), seed=seed)
    for number in range(count):
        below = folder / f"{number // 1000:04}"
        below.mkdir(exist_ok=True)
        if number % 10 == 9 and (found := next(rollouts, None)) is not None:
            name, data = found
            (below / name).write_bytes(data)
            continue
        repeats = rng.random() < 0.3
        messages: list[dict[str, object]] = [{"role": "user", "content": f"Task {number}"}]
        for turn in range(TURNS):
            told = 0 if repeats and turn > TURNS // 2 else turn
            call = {"name": "shell", "arguments": json.dumps({"command": f"get {number} {told}"})}
            messages += [
                {
                    "role": "assistant",
                    "content": f"I look at part {told}.",
                    "tool_calls": [{"id": f"c{turn}", "type": "function", "function": call}],
                },
                {"role": "tool", "tool_call_id": f"c{turn}", "content": f"part {told} is up " * 20},
            ]
        document = {"messages": messages, "model": f"m-{number % 3}"}
        (below / f"run-{number:07}.json").write_text(json.dumps(document))


def judge(traces: Path, out: Path, *more: str) -> tuple[str, ...]:
    """Return the command that judges traces into shards."""
    words = ("judge", str(traces), "--judge", "rules", "--out", str(out), "--json", *more)
    return (sys.executable, "-c", _RUN, *words)


def timed(command: Sequence[str]) -> tuple[float, float]:
    """Return the seconds of a command, and the peak memory of its process in MB."""
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    if done.returncode:
        sys.exit(done.stderr)
    return took, float(done.stderr.split()[-1])


def contents(folder: Path) -> dict[str, bytes]:
    """Return the shards of a folder by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".parquet"}


def growth(folder: Path, traces: int, workers: int) -> None:
    """Print what a trace costs and how large the driver grows as traces come to be more."""
    runs = folder
    for count in sorted({1000, traces // 10, traces}):
        runs = folder / f"{count}"
        runs.mkdir()
        write_traces(runs, count, 1)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        out = folder / f"{count}-out"
        took, memory = timed(judge(runs, out, "--workers", str(workers)))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(
            f"{count:,} traces, {workers} workers: {took:.1f} s, {1000 * took / count:.2f} ms and "
            f"{1000 * spent / count:.2f} ms of processor time a trace; driver {memory:.0f} MB",
            flush=True,
        )
    took, memory = timed(judge(runs, folder / "plain"))
    same = contents(folder / "plain") == contents(folder / f"{traces}-out")
    print(f"in one process: {took:.1f} s, {memory:.0f} MB; the same bytes: {same}")


def children(pid: int) -> list[int]:
    """Return the child processes of a process."""
    told = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in told.split()]


def kills(folder: Path, traces: int, times: int, seed: int) -> None:
    """Kill workers and drivers at random, and compare what is written in the end."""
    runs = folder / "runs"
    runs.mkdir()
    write_traces(runs, traces, 1)
    took, _ = timed(judge(runs, folder / "plain", "--shard-files", "8"))
    print(f"{traces:,} traces without kills: {took:.1f} s")
    rng = random.Random(seed)
    killed = {"worker": 0, "driver": 0}
    begun = 0
    while sum(killed.values()) < times:
        out = folder / f"killed-{begun}"
        rounds = 0
        while True:
            rounds += 1
            command = judge(runs, out, "--shard-files", "8", "--workers", "2")
            driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while driver.poll() is None and sum(killed.values()) < times:
                time.sleep(rng.uniform(0.1, took / 3))
                if driver.poll() is not None:
                    break
                workers = children(driver.pid)
                if not workers:
                    continue  # nothing was begun that could be lost
                if rng.random() < 0.25:
                    killed["driver"] += 1
                    driver.kill()
                    break
                killed["worker"] += 1
                os.kill(rng.choice(workers), signal.SIGKILL)
            if driver.wait() == 0:
                break
        begun += 1
        same = contents(out) == contents(folder / "plain")
        print(f"{killed} so far; command given {rounds} times; the same bytes: {same}")


def write_shards(folder: ShardFolder, traces: int) -> None:
    """Write shards of made-up traces, as those of a judge are."""
    arrow, taxonomy, rng = pyarrow(), load_mast(), np.random.default_rng(1)
    names = [f"{number:024x}" for number in range(-(-traces // ROWS))]
    judge_of_all = RulesJudge()
    folder.begin(Manifest(judge_of_all.name, taxonomy, judge_of_all.looks_at, tuple(names)))
    schema = traces_schema(arrow, taxonomy)
    for number, name in enumerate(names):
        rows = min(ROWS, traces - number * ROWS)
        columns: dict[str, Any] = {}
        for field in schema:
            columns[field.name] = arrow.nulls(rows, field.type)
        numbers = np.arange(number * ROWS, number * ROWS + rows, dtype=np.uint64)
        columns["key"] = numbers * np.uint64(0x9E3779B97F4A7C15)
        columns["trace_id"] = [f"trace-{one}" for one in numbers]
        columns["model"] = [f"model-{one}" for one in rng.integers(0, 8, rows)]
        columns["outcome"] = rng.choice(["failed", "succeeded", "unknown"], rows)
        columns["spans"] = rng.integers(10, 200, rows)
        for mode in taxonomy.modes:
            present = rng.random(rows) < 0.1
            columns[verdict_column(mode.slug)] = present.astype(np.int8)
            onset = arrow.array(rng.integers(0, BINS, rows), arrow.int8(), mask=~present)
            columns[onset_column(mode.slug)] = onset
        table = arrow.table(columns).cast(schema)
        data = BytesIO()
        pyarrow("pyarrow.parquet").write_table(table, data, compression="zstd")
        (Path(folder.address) / traces_file(name)).write_bytes(data.getvalue())


def report(folder: Path, traces: int) -> None:
    """Print how long shards of so many traces take to be added up, and the most memory."""
    shards = folder / "shards"
    write_shards(ShardFolder(str(shards)), traces)
    took, memory = timed((sys.executable, "-c", _RUN, "report", str(shards), "--json"))
    print(f"report of {traces:,} traces in {-(-traces // ROWS):,} shards: {took:.1f} s", end="")
    print(f" (at most {SECONDS:.0f} s), {memory:.0f} MB (at most {MEGABYTES:.0f} MB)")


def main() -> None:
    """Run one measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["growth", "kills", "report"])
    parser.add_argument("--traces", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kills", type=int)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mast-scale-") as place:
        folder = Path(place)
        match asked.what:
            case "growth":
                growth(folder, asked.traces or 100_000, asked.workers)
            case "kills":
                kills(folder, asked.traces or 400, asked.kills or 20, asked.seed)
            case _:
                report(folder, asked.traces or 10_000_000)


if __name__ == "__main__":
    main()
