"""Cost of runs of a judge that asks a model: processor time, memory, and waiting time.

Run by hand: ``python tests/benchmarks/judge_runs.py``. A server on this machine gives the same
right answer to every request, at once or after two seconds; it and the run are processes of their
own. What is measured is the whole command, from its start to its summary: reading, estimating,
asking, looking for the quotes, keeping it all.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]

SPANS: Final = 100
WORDS: Final = 60
"""Words of a span's text, about 400 characters."""

PROVEN: Final = "the deployment was rolled back before anybody had looked at the logs"
"""Words in the middle of every trace, which every answer quotes."""

CONCURRENCY: Final = 16


def write_traces(folder: Path, count: int) -> None:
    """Write different runs of a hundred messages each."""
    chance = random.Random(11)
    vocabulary = ["".join(chance.choices("abcdefghijklmnop", k=n)) for n in range(3, 11)] * 40
    for number in range(count):
        messages = []
        for place in range(SPANS):
            words = chance.choices(vocabulary, k=WORDS)
            words.insert(WORDS // 2, PROVEN if place == SPANS // 2 else f"{number}-{place}")
            role = ("user", "assistant")[place % 2]
            messages.append({"role": role, "content": " ".join(words)})
        (folder / f"run-{number:05d}.json").write_text(json.dumps(messages))


def right_answer() -> str:
    """Return an answer with five findings, of which some name other spans than they quote."""
    from mast_tui.taxonomy.loader import load_mast

    place = SPANS // 2 + 1
    finding = {
        "first": place,
        "last": place,
        "quote": PROVEN,
        "rationale": f"the agent acts in #{place} without having looked",
        "confidence": 0.7,
        "decisive": True,
    }
    shows = {"1.1": finding, "1.3": finding, "2.6": finding, "3.2": finding | {"first": 3}}
    shows["3.3"] = finding | {"first": 10, "last": 12}
    modes = [
        {
            "mode": mode.code,
            "verdict": "present" if mode.code in shows else "absent",
            "findings": [shows[mode.code]] if mode.code in shows else [],
        }
        for mode in load_mast().modes
    ]
    return json.dumps({"modes": modes})


def serve(seconds: float) -> None:
    """Answer every request; when stdin ends, print their number."""
    from tests.judges.llm.server import ModelServer, answer

    action = answer(right_answer(), tokens_in=12_000, tokens_out=700).after(seconds)
    with ModelServer(lambda _body, _n: action) as server:
        print(server.base_url, flush=True)
        sys.stdin.read()
        count = len(server.chats)
    print(json.dumps({"requests": count}), flush=True)


def run_here(words: Sequence[str]) -> None:
    """Run the command line in this process, and tell what it took."""
    from mast_tui.cli.command_line import split_command
    from mast_tui.cli.dispatch import run

    begun = time.monotonic()
    code = run(split_command(list(words)))
    sys.stdout.flush()
    used = resource.getrusage(resource.RUSAGE_SELF)
    told = {
        "code": code,
        "cpu": used.ru_utime + used.ru_stime,
        "wall": time.monotonic() - begun,
        "megabytes": used.ru_maxrss / 1024,
    }
    print("\n" + json.dumps(told))


@dataclass(frozen=True, slots=True)
class Took:
    """The cost of a run in seconds and megabytes."""

    cpu: float
    wall: float
    megabytes: float
    said: str


@contextmanager
def server(seconds: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the address of a server, and a dict that holds its counts afterwards."""
    seen: dict[str, Any] = {}
    with subprocess.Popen(
        [sys.executable, __file__, "--serve", str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as program:
        assert program.stdout is not None
        assert program.stdin is not None
        yield program.stdout.readline().strip(), seen
        program.stdin.close()
        seen.update(json.loads(program.stdout.readline()))


def environment() -> dict[str, str]:
    """Return the environment of all processes, without a personal configuration."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    return plain | {"PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": os.devnull}


def judge(folder: Path, workspace: Path, base_url: str, *more: str) -> Took:
    """Judge a folder in a process of its own."""
    words = [
        *("judge", str(folder), "--judge", "llm", "--model", "test-model", "--quiet"),
        *("--base-url", base_url, "--workspace", str(workspace)),
        *("--concurrency", str(CONCURRENCY), *more),
    ]
    done = subprocess.run(
        [sys.executable, __file__, "--run", *words],
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    said, _, told = done.stdout.rstrip().rpartition("\n")
    took = json.loads(told)
    if took["code"] != 0:
        raise SystemExit(f"the run failed: {said}\n{done.stderr}")
    return Took(took["cpu"], took["wall"], took["megabytes"], said)


def report(traces: int, slow: int) -> None:
    """Measure, and print what came of it."""
    with tempfile.TemporaryDirectory(prefix="mast-tui-judge-") as name:
        folder = Path(name) / "runs"
        folder.mkdir()
        write_traces(folder, traces)
        with server(0.0) as (url, seen):
            estimate = judge(folder, Path(name) / "w.db", url, "--dry-run")
            first = judge(folder, Path(name) / "w.db", url)
            again = judge(folder, Path(name) / "w.db", url)
        print(first.said)
        told(f"{traces} traces of {SPANS} spans, a server that answers at once", first, traces)
        told("  of that the start and the estimate", estimate, traces)
        told("  the same command once more, all known", again, traces)
        print(f"  requests: {seen['requests']}")
        few = Path(name) / "few"
        few.mkdir()
        write_traces(few, slow)
        with server(2.0) as (url, _):
            waiting = judge(few, Path(name) / "few.db", url)
        told(f"{slow} traces, answers after 2 s, concurrency {CONCURRENCY}", waiting, slow)
        ideal = slow * 2.0 / CONCURRENCY
        print(f"  {waiting.wall / ideal:.2f} × the ideal time")


def told(what: str, took: Took, traces: int) -> None:
    """Print one line of the report."""
    print(
        f"{what}: {1000 * took.cpu / traces:.1f} ms of processor a trace, {took.wall:.1f} s, "
        f"{took.megabytes:.0f} MB at most"
    )


def main() -> None:
    """Measure, or be one of the processes that are measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--traces", type=int, default=1_000)
    parser.add_argument("--slow", type=int, default=160, help="traces against the slow server")
    parser.add_argument("--serve", type=float)
    parser.add_argument("--run", nargs=argparse.REMAINDER)
    chosen = parser.parse_args()
    if chosen.serve is not None:
        serve(chosen.serve)
    elif chosen.run is not None:
        run_here(chosen.run)
    else:
        report(chosen.traces, chosen.slow)


if __name__ == "__main__":
    main()
