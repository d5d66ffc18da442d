"""Attacks mast_tui in many ways: nothing that was shown or written may be lost, hang or crash.

    .venv/bin/python scripts/attack.py [--only KIND ...] [--share 0.02] [--seed S] [--jobs J]
        [--keep FOLDER]

The kinds: ``kills`` (SIGKILL in every screen and command), ``planted`` (folders and workspaces
with traps), ``servers`` (hostile servers of a model judge), ``imports`` (fuzzed and forged ones),
``files`` (damaged traces, as ``scripts/damage.py``), ``archives`` (``zip://`` and ``tar://``),
``copies`` (backups, copies and mending of workspaces) and ``team`` (SQL of a blind annotator for a
PostgreSQL server). A share of 1 makes as many tries as docs/reliability.md says; the same seed
makes the same ones. Prints the progress of each kind on stderr, a table in Markdown, and below it
one case of each kind of fall; exits with code 1 if anything fell.
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
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.queues import Queue
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, Self

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the attacks stand beside the tests, whose tools they use

from tests.attack import (  # noqa: E402
    archives,
    copies,
    files,
    imports,
    kills,
    planted,
    servers,
    team,
)
from tests.attack.trying import Outcome, Setting, prepare  # noqa: E402

SHOWN: Final = 2_000
"""Characters of a case that are shown."""

PROGRESS_SECONDS: Final = 5.0
"""Seconds between two lines of progress where stderr is no terminal."""


class AttackKind(NamedTuple):
    """One kind of attack."""

    tries: Callable[[Setting], Iterator[Outcome]]
    whole: int
    """Tries of a whole run."""
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
    """The tries that are done of each kind, on stderr, from a thread of its own.

    A terminal shows one line that is rewritten; anything else gets a line every few seconds.
    """

    def __init__(self, planned: Mapping[str, int]) -> None:
        self._planned = planned
        self._done: Counter[str] = Counter()
        self._fallen: Counter[str] = Counter()
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
        self._fallen[outcome.kind] += bool(outcome.fell)

    def line(self) -> str:
        """Return the kinds with their tries done, planned and fallen."""
        return " · ".join(
            f"{kind} {self._done[kind]}/{planned}, {self._fallen[kind]} fell"
            for kind, planned in self._planned.items()
        )

    def _run(self) -> None:
        is_terminal = sys.stderr.isatty()
        is_over = False
        while not is_over:
            is_over = self._is_over.wait(0.5 if is_terminal else PROGRESS_SECONDS)
            start, end = ("\r", "\n" if is_over else "") if is_terminal else ("", "\n")
            print(f"{start}{self.line()}", end=end, file=sys.stderr, flush=True)


def work(settings: list[Setting], told: Queue[Outcome | None]) -> None:
    """Make the tries that are for this process, and tell what came of each."""
    prepare()
    for setting in settings:
        setting.folder.mkdir(parents=True)
        try:
            for outcome in KINDS[setting.kind].tries(setting):
                told.put(outcome)
        except Exception:  # noqa: BLE001 - a try that cannot be made is told as one that fell
            told.put(Outcome(setting.kind, "the attack itself", traceback.format_exc()))
    told.put(None)


def outcomes(
    shares: Mapping[str, float], folder: Path, *, seed: int, jobs: int, kept: Path | None = None
) -> Iterator[Outcome]:
    """Make all tries, and tell what came of each as it comes.

    Args:
        shares: Of each kind that is wanted, the share of the tries of a whole run.
        folder: An empty one, for all that is written.
        seed: The same one makes the same tries.
        jobs: How many processes make them side by side.
        kept: Where files are kept by which something fell.
    """
    context = multiprocessing.get_context("spawn")
    told: Queue[Outcome | None] = context.Queue()
    processes = []
    for job in range(jobs):
        settings = [
            Setting(kind, folder / f"{kind}-{job}", share, seed, job, jobs, kept)
            for kind, share in shares.items()
        ]
        process = context.Process(target=work, args=(settings, told))
        process.start()
        processes.append(process)
    left = len(processes)
    while left:
        outcome = told.get()
        if outcome is None:
            left -= 1
        else:
            yield outcome
    for process in processes:
        process.join()


def print_table(tried: dict[str, list[Outcome]]) -> None:
    """The tables in Markdown: what was tried, how often, and what of it held."""
    print("| what was tried | how often | held | fell |\n|---|---|---|---|")
    for kind, found in tried.items():
        fell = sum(bool(outcome.fell) for outcome in found)
        print(
            f"| **{KINDS[kind].title}** | **{len(found):,}** | **{len(found) - fell:,}** | {fell} |"
        )
        whats = Counter(outcome.what for outcome in found)
        falls = Counter(outcome.what for outcome in found if outcome.fell)
        for what, times in sorted(whats.items()):
            print(f"| {what} | {times:,} | {times - falls[what]:,} | {falls[what]} |")
    print()
    for kind, found in tried.items():
        notes: dict[str, list[float]] = defaultdict(list)
        for outcome in found:
            for note, figure in outcome.notes.items():
                notes[note].append(figure)
        for note, figures in notes.items():
            figure = max(figures) if note.startswith(("longest", "most")) else sum(figures)
            print(f"- {kind}: {note}: {figure:,.0f}")


def short(fell: str) -> str:
    """The beginning and the end of what is told of a case."""
    return fell if len(fell) < SHOWN else f"{fell[: SHOWN // 4]} … {fell[-SHOWN * 3 // 4 :]}"


def main() -> int:
    """Read the arguments, attack, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND")
    parser.add_argument("--share", type=float, default=1.0, help="of the tries of a whole run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="for files that brought a fall")
    options = parser.parse_args()
    tried: dict[str, list[Outcome]] = {kind: [] for kind in KINDS if kind in options.only}
    cases: dict[tuple[str, str, str], str] = {}
    with tempfile.TemporaryDirectory() as folder:
        shares = dict.fromkeys(tried, options.share)
        planned = {kind: KINDS[kind].planned(share) for kind, share in shares.items()}
        with AttackProgress(planned) as progress:
            for outcome in outcomes(
                shares, Path(folder), seed=options.seed, jobs=options.jobs, kept=options.keep
            ):
                progress.add(outcome)
                tried[outcome.kind].append(outcome)
                if outcome.fell:
                    cases.setdefault((outcome.kind, outcome.what, outcome.fell[:80]), outcome.fell)
    print_table(tried)
    for (kind, what, _), fell in sorted(cases.items()):
        print(f"\n{kind}: {what}: {short(fell)}")
    return 1 if cases else 0


if __name__ == "__main__":
    sys.exit(main())
