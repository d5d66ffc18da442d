"""The option ``--workers``: processes that read traces, and their progress."""

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
from mast_tui.parallel import Workers, workers_of

if TYPE_CHECKING:
    from rich.progress import Progress


class WorkerPool(AbstractContextManager["WorkerPool"]):
    """The worker processes of a command, and their progress.

    The progress is a bar in a terminal, else a line at the end.

    Attributes:
        workers: The workers; None if this process works alone.
    """

    def __init__(
        self,
        requested: str | None,
        *,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start the workers.

        Args:
            requested: The value of ``--workers``; None for no workers.
            quiet: Show no progress.
            clock: Returns the current time in seconds.

        Raises:
            NoWorkers: The requested workers are not available.
        """
        self.workers: Workers | None = None if requested is None else workers_of(requested)
        self._reports_progress = not quiet and self.workers is not None
        self._bar: Progress | None = None
        self._clock = clock
        self._start_time = clock()
        self._trace_count = 0
        self._failed_count = 0

    def __enter__(self) -> Self:
        if self._reports_progress and sys.stderr.isatty():
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
        if self._reports_progress and kind is None:
            seconds = self._clock() - self._start_time
            say(f"{self._pace_text(seconds)}, by {self.workers.description}")
        self.workers.close()

    def reachable(self, paths: tuple[Path, ...]) -> tuple[Path, ...]:
        """Return the paths in a form that remote workers understand."""
        if self.workers is not None and self.workers.is_remote:
            return tuple(path.absolute() for path in paths)
        return paths

    def on_trace(self, count: int = 1, *, failed: bool = False) -> None:
        """Count completed traces.

        Args:
            count: The number of completed traces.
            failed: True if one of them failed.
        """
        self._trace_count += count
        self._failed_count += failed

    def show_progress(self, done: int, total: int) -> None:
        """Update the bar.

        Args:
            done: The number of completed files.
            total: The number of all files.
        """
        if self._bar is not None:
            self._bar.update(
                self._bar.task_ids[0],
                completed=done,
                total=total,
                facts=self._pace_text(self._clock() - self._start_time),
            )

    def set_counts(self, traces: int, failed: int) -> None:
        """Set the numbers of completed and failed traces.

        Args:
            traces: The number of completed traces.
            failed: The number of failed traces.
        """
        self._trace_count = traces
        self._failed_count = failed

    def _pace_text(self, seconds: float) -> str:
        speed = f"{self._trace_count / seconds:,.0f} a second" if seconds > 0 else ""
        failed_text = f"{self._failed_count} failed" if self._failed_count else ""
        return ", ".join(filter(None, (counted(self._trace_count, "trace"), speed, failed_text)))


def progress_bar(total: int, unit: str = "", *, show_elapsed: bool = False) -> Progress:
    """Create a progress bar on stderr.

    It has one task, with a changeable text in the field ``facts``.

    Args:
        total: The number of items.
        unit: The name of the items, with a space before it.
        show_elapsed: Also show the elapsed time.
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
        *([TimeElapsedColumn(table_column=Column(no_wrap=True))] if show_elapsed else []),
        TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True)),
        TextColumn("left"),
        TextColumn("{task.fields[facts]}", markup=False),
        console=Console(file=sys.stderr),
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bar.add_task(unit, total=total, facts="")
    return bar
