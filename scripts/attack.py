"""Attack mast_tui in many ways: nothing may crash or hang, and no shown label may be lost.

    .venv/bin/python scripts/attack.py [--only KIND ...] [--share 0.02] [--seed S] [--jobs J]
        [--keep FOLDER]

The kinds: ``kills`` (SIGKILL in every screen and command), ``planted`` (folders and workspaces
with traps), ``servers`` (hostile servers of a model judge), ``imports`` (fuzzed and forged files),
``files`` (damaged traces, as in ``scripts/damage.py``), ``archives`` (``zip://`` and ``tar://``),
``copies`` (backups, copies and repair of workspaces) and ``team`` (SQL of a blind annotator for a
PostgreSQL server). A share of 1 is the whole run of docs/reliability.md. The same seed gives the
same tries. The script prints the progress on stderr, then a table in Markdown and one case of each
failure. The exit code is 1 if the app failed any try.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import threading
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.queues import Queue
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, Self

from tests.attack import archives, copies, files, imports, kills, planted, servers, team
from tests.attack.trying import Outcome, Setting, prepare

LONGEST_CASE: Final = 2_000
"""The most characters of a case that are printed."""

PROGRESS_SECONDS: Final = 5.0
"""Seconds between two lines of progress if stderr is not a terminal."""


class AttackKind(NamedTuple):
    """One kind of attack."""

    tries: Callable[[Setting], Iterator[Outcome]]
    whole: int
    """The number of tries of a whole run."""
    title: str

    def planned(self, share: float) -> int:
        """Return the number of tries in a share of a whole run."""
        return max(1, round(self.whole * share))


KINDS: Final[Mapping[str, AttackKind]] = MappingProxyType(
    {
        "kills": AttackKind(kills.tries, kills.WHOLE, "SIGKILL at a random moment"),
        "planted": AttackKind(
            planted.tries, planted.WHOLE, "planted folders, workspaces and caches"
        ),
        "servers": AttackKind(servers.tries, servers.WHOLE, "hostile servers of a judge"),
        "imports": AttackKind(imports.tries, imports.WHOLE, "fuzzed and forged imports"),
        "files": AttackKind(files.tries, files.WHOLE, "damaged traces"),
        "archives": AttackKind(archives.tries, archives.WHOLE, "archives that a URL names"),
        "copies": AttackKind(copies.tries, copies.WHOLE, "copies and mending of workspaces"),
        "team": AttackKind(team.tries, team.WHOLE, "SQL of a blind annotator"),
    }
)


class AttackProgress:
    """A thread that prints the finished tries of each kind on stderr.

    On a terminal it rewrites one line; elsewhere it prints a line every few seconds.
    """

    def __init__(self, planned: Mapping[str, int]) -> None:
        self._planned = planned
        self._done: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def add(self, outcome: Outcome) -> None:
        """Count a try."""
        self._done[outcome.kind] += 1
        self._failed[outcome.kind] += bool(outcome.failure)

    def line(self) -> str:
        """Return the numbers of finished, planned and failed tries of each kind."""
        return " · ".join(
            f"{kind} {self._done[kind]}/{planned}, {self._failed[kind]} failed"
            for kind, planned in self._planned.items()
        )

    def _run(self) -> None:
        is_terminal = sys.stderr.isatty()
        is_over = False
        while not is_over:
            is_over = self._is_over.wait(0.5 if is_terminal else PROGRESS_SECONDS)
            start, end = ("\r", "\n" if is_over else "") if is_terminal else ("", "\n")
            print(f"{start}{self.line()}", end=end, file=sys.stderr, flush=True)


def _run_tries(settings: list[Setting], results: Queue[Outcome | None]) -> None:
    """Make the tries of this process and queue their outcomes, with None as the last item."""
    prepare()
    for setting in settings:
        setting.folder.mkdir(parents=True)
        try:
            for outcome in KINDS[setting.kind].tries(setting):
                results.put(outcome)
        except Exception:  # noqa: BLE001 - a try that cannot be made counts as failed
            results.put(Outcome(setting.kind, "the attack itself", traceback.format_exc()))
    results.put(None)


def outcomes(
    shares: Mapping[str, float], folder: Path, *, seed: int, jobs: int, keep: Path | None = None
) -> Iterator[Outcome]:
    """Make all tries and yield their outcomes.

    Args:
        shares: The share of a whole run, by kind.
        folder: An empty folder for all written files.
        seed: The seed of the tries.
        jobs: The number of processes.
        keep: The folder for the files of failed tries.
    """
    context = multiprocessing.get_context("spawn")
    results: Queue[Outcome | None] = context.Queue()
    processes = []
    for job in range(jobs):
        settings = [
            Setting(kind, folder / f"{kind}-{job}", share, seed, job, jobs, keep)
            for kind, share in shares.items()
        ]
        process = context.Process(target=_run_tries, args=(settings, results))
        process.start()
        processes.append(process)
    running = len(processes)
    while running:
        outcome = results.get()
        if outcome is None:
            running -= 1
        else:
            yield outcome
    for process in processes:
        process.join()


def print_table(tried: Mapping[str, Sequence[Outcome]]) -> None:
    """Print the number of tries by kind and attack, and the notes of each kind, in Markdown."""
    print("| what was tried | how often | held | fell |\n|---|---|---|---|")
    for kind, tries in tried.items():
        failed = sum(bool(outcome.failure) for outcome in tries)
        held = len(tries) - failed
        print(f"| **{KINDS[kind].title}** | **{len(tries):,}** | **{held:,}** | {failed} |")
        counts = Counter(outcome.attack for outcome in tries)
        failures = Counter(outcome.attack for outcome in tries if outcome.failure)
        for attack, count in sorted(counts.items()):
            print(f"| {attack} | {count:,} | {count - failures[attack]:,} | {failures[attack]} |")
    print()
    for kind, tries in tried.items():
        notes: dict[str, list[float]] = defaultdict(list)
        for outcome in tries:
            for note, figure in outcome.notes.items():
                notes[note].append(figure)
        for note, figures in notes.items():
            figure = max(figures) if note.startswith(("longest", "most")) else sum(figures)
            print(f"- {kind}: {note}: {figure:,.0f}")


def _shortened(failure: str) -> str:
    """Return the beginning and the end of a long description of a failure."""
    if len(failure) < LONGEST_CASE:
        return failure
    return f"{failure[: LONGEST_CASE // 4]} … {failure[-LONGEST_CASE * 3 // 4 :]}"


def main() -> int:
    """Attack the app, print the tables, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND")
    parser.add_argument("--share", type=float, default=1.0, help="of the tries of a whole run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="for files of failed tries")
    options = parser.parse_args()
    tried: dict[str, list[Outcome]] = {kind: [] for kind in KINDS if kind in options.only}
    cases: dict[tuple[str, str, str], str] = {}
    with tempfile.TemporaryDirectory() as folder:
        shares = dict.fromkeys(tried, options.share)
        planned = {kind: KINDS[kind].planned(share) for kind, share in shares.items()}
        with AttackProgress(planned) as progress:
            for outcome in outcomes(
                shares, Path(folder), seed=options.seed, jobs=options.jobs, keep=options.keep
            ):
                progress.add(outcome)
                tried[outcome.kind].append(outcome)
                if outcome.failure:
                    case = (outcome.kind, outcome.attack, outcome.failure[:80])
                    cases.setdefault(case, outcome.failure)
    print_table(tried)
    for (kind, attack, _), failure in sorted(cases.items()):
        print(f"\n{kind}: {attack}: {_shortened(failure)}")
    return 1 if cases else 0


if __name__ == "__main__":
    sys.exit(main())
