"""What all measures of one run share: the data, the programs compared, how often and how long."""

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
        """The size of the biggest rollout in this run."""
        return SMALL if self.quick else BIG

    @property
    def big(self) -> Rollout:
        """The biggest rollout in this run, in the page cache."""
        rollout = self.data.long_rollout(self.megabytes)
        rollout.warm()
        return rollout

    @property
    def big_name(self) -> str:
        """How its size is written."""
        return size_name(self.megabytes)

    def times(self, full: int, quick: int) -> int:
        """How often something is done."""
        return quick if self.quick else full

    def others(self) -> dict[str, str]:
        """The log viewers that are here, each with its command."""
        lnav = shutil.which("lnav")
        found = {"toolong": str(self.toolong)} if self.toolong else {}
        return found | ({"lnav": lnav} if lnav else {})

    def absent(self) -> list[Row]:
        """Rows that say which log viewers are not here."""
        said = {"toolong": "give --toolong PATH", "lnav": "it is not on PATH"}
        here = self.others()
        return [missing(name, reason) for name, reason in said.items() if name not in here]

    def versions(self) -> dict[str, str]:
        """The versions of all programs compared."""
        found = {"mast_tui": version("mast-tui"), "textual": version("textual")}
        for name, command in self.others().items():
            flag = "-V" if name == "lnav" else "--version"
            told = subprocess.run([command, flag], capture_output=True, text=True, check=False)
            found[name] = told.stdout.strip().rpartition(" ")[2]
        return found


def size_name(megabytes: int) -> str:
    """A size as it is written in the table."""
    return f"{megabytes // 1000} GB" if megabytes >= 1000 else f"{megabytes} MB"


@contextmanager
def new_home() -> Iterator[Path]:
    """A home folder in which somebody has seen the welcome; it goes when it is left."""
    with tempfile.TemporaryDirectory(prefix="mast-tui-benchmark-") as folder:
        home = Path(folder)
        seen = home / ".local" / "share" / "mast-tui"
        seen.mkdir(parents=True)
        (seen / "welcomed").touch()
        yield home


@contextmanager
def ours(path: Path, workspace: Path | None = None) -> Iterator[Program]:
    """The app with a trace or a folder open, in a new home."""
    with new_home() as home:
        command = our_app(path, workspace or home / "workspace.db")
        with Program(command, home) as program:
            yield program


def attempt(what: str, measure: Callable[[], Sequence[Row]]) -> Sequence[Row]:
    """The rows of one step; one that takes too long is told as such, and the run goes on."""
    try:
        return measure()
    except TooLate as error:
        return [missing(what, f"given up: {error}")]


def say(words: str) -> None:
    """Tell whoever waits how far it is, apart from the table."""
    print(words, file=sys.stderr, flush=True)
