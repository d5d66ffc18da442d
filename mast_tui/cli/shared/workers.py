"""``--workers``: who does what a command has to do with every trace, and how far they are."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from mast_tui.cli.shared.common import say
from mast_tui.counts import counted
from mast_tui.parallel import workers_of

if TYPE_CHECKING:
    from rich.progress import Progress

    from mast_tui.parallel import Workers


class WorkerPool(AbstractContextManager["WorkerPool"]):
    """The workers of a command, if any were asked for, and how far they have come.

    In a terminal that is a bar on stderr; else one line tells at the end how fast they were.

    Attributes:
        workers: Who works; None where it is this process alone.
    """

    def __init__(
        self,
        wanted: str | None,
        *,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin.

        Args:
            wanted: What ``--workers`` says, None where it was not given.
            quiet: Whether nothing is told.
            clock: Seconds since some time.

        Raises:
            NoWorkers: There are none of that kind.
        """
        self.workers: Workers | None = None if wanted is None else workers_of(wanted)
        self._shows = not quiet and self.workers is not None
        self._bar: Progress | None = None
        self._clock = clock
        self._began = clock()
        self._traces = self._failed = 0

    def __enter__(self) -> Self:
        if self._shows and sys.stderr.isatty():
            self._bar = progress_bar(0)
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self.workers is None:
            return
        if self._shows and kind is None:
            took = self._clock() - self._began
            say(f"{self._pace(took)}, by {self.workers.place}")
        self.workers.close()

    def reachable(self, paths: tuple[Path, ...]) -> tuple[Path, ...]:
        """The paths as workers find them who stand in another folder."""
        if self.workers is not None and self.workers.elsewhere:
            return tuple(path.absolute() for path in paths)
        return paths

    def on_trace(self, count: int = 1, *, failed: bool = False) -> None:
        """A trace is through, or several."""
        self._traces += count
        self._failed += failed

    def tell(self, done: int, total: int) -> None:
        """So many of so many files are through."""
        if self._bar is not None:
            facts = self._pace(self._clock() - self._began)
            self._bar.update(self._bar.task_ids[0], completed=done, total=total, facts=facts)

    def count(self, traces: int, failed: int) -> None:
        """Set how many traces are through in all, and how many of them failed.

        Args:
            traces: All that are through.
            failed: Those that could not be read or judged.
        """
        self._traces = traces
        self._failed = failed

    def _pace(self, seconds: float) -> str:
        pace = f"{self._traces / seconds:,.0f} a second" if seconds > 0 else ""
        failed = f"{self._failed} failed" if self._failed else ""
        return ", ".join(filter(None, (counted(self._traces, "trace"), pace, failed)))


def progress_bar(total: int, what: str = "", *, elapsed: bool = False) -> Progress:
    """Make a bar on stderr for one task: how many are through, the time left, and its ``facts``.

    Args:
        total: How many there are.
        what: What they are.
        elapsed: Whether it also tells how long it has taken.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    bar = Progress(
        TextColumn("{task.completed:.0f} of {task.total:.0f}{task.description}", markup=False),
        BarColumn(bar_width=10),
        *([TimeElapsedColumn(table_column=Column(no_wrap=True))] if elapsed else []),
        TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True)),
        TextColumn("left"),
        TextColumn("{task.fields[facts]}", markup=False),
        console=Console(file=sys.stderr),
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bar.add_task(what, total=total, facts="")
    return bar
