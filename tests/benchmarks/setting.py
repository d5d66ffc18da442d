"""Settings of a run: data, compared programs, repeats, and time limits."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from tests.benchmarks.data import Data, Rollout
from tests.benchmarks.table import Row, missing
from tests.benchmarks.terminals import Program, TooLate, our_app

BIG: Final = 1000
SMALL: Final = 100
"""Megabytes of the two long rollouts."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One run: ``quick`` means few repeats and nothing bigger than 100 MB.

    ``toolong`` is the path of its ``tl`` command; it has to live in an environment of its own.
    """

    data: Data
    quick: bool
    toolong: Path | None
    timeout: float

    @property
    def megabytes(self) -> int:
        """Return the size of the biggest rollout in this run."""
        return SMALL if self.quick else BIG

    @property
    def big(self) -> Rollout:
        """Return the biggest rollout in this run, in the page cache."""
        rollout = self.data.long_rollout(self.megabytes)
        rollout.warm()
        return rollout

    @property
    def big_name(self) -> str:
        """Return its size as text."""
        return size_name(self.megabytes)

    def times(self, full: int, quick: int) -> int:
        """Return the number of repeats."""
        return quick if self.quick else full

    def others(self) -> dict[str, str]:
        """Return the installed log viewers with their commands."""
        lnav = shutil.which("lnav")
        found = {"toolong": str(self.toolong)} if self.toolong else {}
        return found | ({"lnav": lnav} if lnav else {})

    def absent(self) -> list[Row]:
        """Return rows that name the missing log viewers."""
        said = {"toolong": "give --toolong PATH", "lnav": "it is not on PATH"}
        here = self.others()
        return [missing(name, reason) for name, reason in said.items() if name not in here]

    def versions(self) -> dict[str, str]:
        """Return the versions of all compared programs."""
        found = {"mast_tui": version("mast-tui"), "textual": version("textual")}
        for name, command in self.others().items():
            flag = "-V" if name == "lnav" else "--version"
            told = subprocess.run([command, flag], capture_output=True, text=True, check=False)
            found[name] = told.stdout.strip().rpartition(" ")[2]
        return found


def size_name(megabytes: int) -> str:
    """Return a size as text."""
    return f"{megabytes // 1000} GB" if megabytes >= 1000 else f"{megabytes} MB"


@contextmanager
def new_home() -> Iterator[Path]:
    """Yield a temporary home folder in which the welcome was seen."""
    with tempfile.TemporaryDirectory(prefix="mast-tui-benchmark-") as folder:
        home = Path(folder)
        seen = home / ".local" / "share" / "mast-tui"
        seen.mkdir(parents=True)
        (seen / "welcomed").touch()
        yield home


@contextmanager
def ours(path: Path, workspace: Path | None = None) -> Iterator[Program]:
    """Start the app with a trace or a folder open, in a new home."""
    with new_home() as home:
        command = our_app(path, workspace or home / "workspace.db")
        with Program(command, home) as program:
            yield program


def attempt(what: str, measure: Callable[[], Sequence[Row]]) -> Sequence[Row]:
    """Return the rows of one step, or a row that says that it was given up."""
    try:
        return measure()
    except TooLate as error:
        return [missing(what, f"given up: {error}")]


def say(words: str) -> None:
    """Print the progress to stderr."""
    print(words, file=sys.stderr, flush=True)
