"""From the start of the process to the first spans on screen, beside a trivial Textual app.

Run by hand, on a machine that does nothing else:

    .venv/bin/python tests/benchmarks/startup.py [--runs N] [--trace PATH]

Both are started in turn in a pseudo-terminal of 120 × 40, each with warm caches; the time is that
from spawning the process to the byte that completes the text looked for. Medians are printed, with
their ratio.
"""

from __future__ import annotations

import argparse
import os
import pty
import select
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from mast_tui.traces.library import samples_folder
from tests.benchmarks.starts import (
    TRIVIAL_TEXT,
    environment,
    first_words,
    our_app,
    set_size,
    trivial_app,
)

PATIENCE: Final = 30.0
"""Seconds after which a start counts as failed."""


def seconds_until(text: str, command: Sequence[str], env: dict[str, str]) -> float:
    """Seconds from spawning ``command`` until it has written ``text`` to its terminal."""
    wanted = text.encode()
    started = perf_counter()
    child, terminal = pty.fork()
    if child == 0:
        os.execve(command[0], list(command), env)
    try:
        set_size(terminal)
        written = b""
        while (left := started + PATIENCE - perf_counter()) > 0:
            if not select.select([terminal], [], [], left)[0]:
                break
            written += os.read(terminal, 1 << 16)
            if wanted in written:
                return perf_counter() - started
    except OSError as error:
        raise SystemExit(f"{' '.join(command[:3])} ended before it showed {text!r}") from error
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)
    raise SystemExit(f"{' '.join(command[:3])} has not shown {text!r} after {PATIENCE:.0f} s")


def main() -> None:
    """Measure, and print what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    sample = samples_folder() / "cart-valkey-noeviction.jsonl"
    parser.add_argument("--runs", type=int, default=15, help="starts of each app (default: 15)")
    parser.add_argument("--trace", type=Path, default=sample, help="the trace to open")
    given = parser.parse_args()
    text = first_words(given.trace)
    with tempfile.TemporaryDirectory() as home:
        env = environment(home)
        ours = our_app(given.trace, Path(home) / "workspace.db")
        commands = {
            "trivial app": (TRIVIAL_TEXT, trivial_app()),
            "first spans": (text, ours),
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for run in range(given.runs + 1):
            for name, (wanted, command) in commands.items():
                took = seconds_until(wanted, command, env)
                if run:  # The first of each only warms caches.
                    times[name].append(took)
    for name, took_each in times.items():
        spread = f"{min(took_each) * 1000:.0f} to {max(took_each) * 1000:.0f}"
        print(f"{name}  {median(took_each) * 1000:4.0f} ms  ({spread})")
    trivial, spans = (median(took_each) for took_each in times.values())
    print(f"ratio        {spans / trivial:.2f}  ({given.trace.name}, {given.runs} runs)")


if __name__ == "__main__":
    main()
