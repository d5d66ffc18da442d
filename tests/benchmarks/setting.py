"""Settings of a run: data, repeats, and time limits."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.benchmarks.data import Data, Rollout
from tests.benchmarks.table import Row, missing
from tests.benchmarks.terminals import Program, TooLate, first_words, our_app

BIG: Final = 1000
SMALL: Final = 100
"""Megabytes of the two long rollouts."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One run: ``quick`` means few repeats and nothing bigger than 100 MB."""

    data: Data
    quick: bool
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


def wait_until_read(program: Program, rollout: Rollout, seconds: float) -> None:
    """Wait until the first spans are shown, all are counted, and the app is idle."""
    program.until_screen(re.escape(first_words(rollout.path)), seconds)
    program.until_bytes(rb"%d spans" % rollout.facts.spans, seconds)
    program.until_idle(seconds)


@contextmanager
def ours(path: Path) -> Iterator[Program]:
    """Start the app with a trace or a folder open, in a new home."""
    with new_home() as home:
        command = our_app(path, home / "workspace.db")
        with Program(command, home) as program:
            yield program


def attempt(title: str, measure: Callable[[], Sequence[Row]]) -> Sequence[Row]:
    """Return the rows of one step, or a row that says that it was given up."""
    try:
        return measure()
    except TooLate as error:
        return [missing(title, f"given up: {error}")]
