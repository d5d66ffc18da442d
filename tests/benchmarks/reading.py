"""Processor time of reading: a judge of rules, each format, ``status``, and filling a library.

Run by hand: ``python -m tests.benchmarks.reading [PART …] [--traces N] [--profile]``. The parts are
``judge``, ``formats``, ``status`` and ``library``; without any all are measured. Every command runs
in a process of its own. Times are processor time, which a busy machine changes by up to half.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import orjson

from mast_tui.traces.library import read_file, read_fully
from tests.benchmarks.rollouts import small_traces, write_short
from tests.traces.golden import INPUTS, golden_inputs

ROOT: Final = Path(__file__).resolve().parents[2]
PARTS: Final = ("judge", "formats", "status", "library")

SPANS: Final = 75
STATUS_TRACES: Final = 81
LIBRARY_FILES_PER_TRACE: Final = 10

_COMMAND: Final = """
import cProfile, json, pstats, resource, runpy, sys, time
profile = cProfile.Profile() if sys.argv.pop(1) == "profile" else None
begun = time.perf_counter()
try:
    if profile:
        profile.enable()
    runpy.run_module("mast_tui", run_name="__main__")
except SystemExit as ended:
    code = ended.code
finally:
    if profile:
        profile.disable()
        pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(25)
waited = time.perf_counter() - begun
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
seconds = [each.ru_utime + each.ru_stime for each in used]
print("\\n" + json.dumps([code, waited, *seconds]))
"""
"""The program of a measured process: it prints its exit code and the seconds that it took."""

_FILL: Final = """
import sys
from pathlib import Path
from mast_tui.ui.services.folder_scan import scan_paths
for _ in scan_paths([Path(sys.argv[1])], lambda: False, lambda _found: None):
    pass
"""


class Measured:
    """The seconds that a process took: by the clock, of its own processor, of its children's."""

    def __init__(self, waited: float, own: float, children: float) -> None:
        self.waited = waited
        self.own = own
        self.children = children

    @property
    def cpu(self) -> float:
        """Return all processor time."""
        return self.own + self.children

    def per(self, count: int) -> str:
        """Return the times, and the share of one of ``count`` things."""
        share = 1000 * self.cpu / count
        return (
            f"{share:.2f} ms of processor each, {self.cpu:.2f} s in all "
            f"({self.children:.2f} s in other processes), {self.waited:.2f} s by the clock"
        )


def run_command(home: Path, arguments: Sequence[str], *, profile: bool = False) -> Measured:
    """Run a command of the app in a process of its own.

    Args:
        home: The home folder of the process.
        arguments: The command and its options.
        profile: Whether the costliest functions are printed to stderr.

    Returns:
        The seconds that it took.

    Raises:
        SystemExit: The command failed.
    """
    how = "profile" if profile else "plain"
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, how, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=_environment(home),
        check=True,
    )
    printed, _, figures = done.stdout.rstrip().rpartition("\n")
    code, *seconds = json.loads(figures)
    if code:
        raise SystemExit(f"{' '.join(arguments)} failed: {printed}")
    return Measured(*seconds)


def _environment(home: Path) -> dict[str, str]:
    left_out = ("XDG_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return kept | {"HOME": str(home), "PYTHONPATH": str(ROOT)}


def write_runs(folder: Path, count: int) -> None:
    """Write Codex rollouts of 75 spans and about 15 kB.

    Args:
        folder: A new folder.
        count: The number of rollouts.
    """
    folder.mkdir(parents=True)
    for number in range(count):
        write_short(folder / f"run-{number:05d}.jsonl", SPANS, seed=number)


def measure_judge(home: Path, traces: int, *, profile: bool) -> None:
    """Measure ``judge --judge rules`` over many traces.

    Args:
        home: An empty folder.
        traces: The number of traces.
        profile: Whether the costliest functions are printed.
    """
    write_runs(home / "runs", traces)
    workspace = ["--workspace", str(home / "rules.db")]
    arguments = ["judge", str(home / "runs"), "--judge", "rules", "--quiet", *workspace]
    took = run_command(home, arguments, profile=profile)
    print(f"judge rules, {traces} traces of {SPANS} spans: {took.per(traces)}")


def measure_status(home: Path, *, profile: bool) -> None:
    """Measure ``status`` on a workspace of 81 traces with suggestions.

    Args:
        home: An empty folder.
        profile: Whether the costliest functions are printed.
    """
    write_runs(home / "few", STATUS_TRACES)
    workspace = ["--workspace", str(home / "few.db")]
    run_command(home, ["judge", str(home / "few"), "--judge", "rules", "--quiet", *workspace])
    took = run_command(home, ["status", *workspace], profile=profile)
    print(f"status, {STATUS_TRACES} traces: {took.per(1)}")


def measure_library(home: Path, traces: int) -> None:
    """Measure the first and the second filling of a library.

    Args:
        home: An empty folder.
        traces: The number of traces.
    """
    folder = home / "library"
    folder.mkdir()
    for name, content in small_traces(traces, seed=1):
        (folder / name).write_bytes(content)
    for title in ("first", "second"):
        before = os.times()
        begun = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", _FILL, str(folder)], env=_environment(home), check=True
        )
        waited = time.perf_counter() - begun
        after = os.times()
        cpu = after.children_user + after.children_system
        cpu -= before.children_user + before.children_system
        print(
            f"{title} filling of a library, {traces} traces: {Measured(waited, cpu, 0).per(traces)}"
        )


def measure_formats(scratch: Path) -> None:
    """Measure the reading of every format, beside parsing the same bytes as JSON.

    Args:
        scratch: An empty folder, in which the files are written.
    """
    print(f"{'format':24}{'spans':>7}{'µs a span':>11}{'× orjson':>10}")
    for name in sorted(path.stem for path in INPUTS.glob("*.jsonl")):
        paths = []
        for golden_input in golden_inputs(name):
            paths.append(golden_input.write_to(scratch / name / golden_input.name))
        _read_all(paths)  # imports
        begun = time.process_time()
        spans = _read_all(paths)
        reading = time.process_time() - begun
        parsing = _parsing_time(paths)
        if spans:
            ratio = f"{reading / parsing:.1f}" if parsing else "–"
            print(f"{name:24}{spans:>7}{1e6 * reading / spans:>11.0f}{ratio:>10}")


def _read_all(paths: Sequence[Path]) -> int:
    """Read files with all texts of their spans; return the number of spans."""
    spans = 0
    for path in paths:
        for trace in read_file(path, named=True).traces:
            read_fully(trace)
            spans += len(trace)
            for index in range(len(trace)):
                trace.text(index)
    return spans


def _parsing_time(paths: Sequence[Path]) -> float:
    """Return the seconds that ``orjson.loads`` takes for the documents or lines of the files."""
    total = 0.0
    for path in paths:
        if not path.is_file():
            continue
        data = path.read_bytes()
        for piece in [data] if _is_document(data) else data.split(b"\n"):
            begun = time.process_time()
            _is_document(piece)
            total += time.process_time() - begun
    return total


def _is_document(data: bytes) -> bool:
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return True


def main() -> None:
    """Measure the parts that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--traces", type=int, default=1_000)
    parser.add_argument("--profile", action="store_true", help="print the costliest functions")
    arguments = parser.parse_args()
    parts = arguments.parts or PARTS
    with tempfile.TemporaryDirectory(prefix="mast-tui-reading-") as name:
        home = Path(name)
        if "judge" in parts:
            measure_judge(home, arguments.traces, profile=arguments.profile)
        if "status" in parts:
            measure_status(home, profile=arguments.profile)
        if "library" in parts:
            measure_library(home, LIBRARY_FILES_PER_TRACE * arguments.traces)
        if "formats" in parts:
            measure_formats(home / "formats")


if __name__ == "__main__":
    main()
