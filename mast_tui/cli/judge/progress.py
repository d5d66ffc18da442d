"""How far a run of a judge has come, on stderr: a bar in a terminal, else a line a trace."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, Self

from mast_tui.cli.shared.common import say
from mast_tui.cli.shared.workers import progress_bar
from mast_tui.counts import counted
from mast_tui.safe_text import one_line

if TYPE_CHECKING:
    from mast_tui.configuration import Prices
    from mast_tui.judges.llm.run.estimate import Estimate
    from mast_tui.judges.runner import Progress
    from mast_tui.workspace import Usage


WAITS_SHOWN: Final = 10.0
"""Seconds for which it is said at least why requests wait: meanwhile answers still come to what
was asked before, and no shorter wait is told."""


def show_trace(progress: Progress, *, hidden: bool = False) -> None:
    """Write one line on stderr for a trace that is through.

    Args:
        progress: The trace, and what came of it.
        hidden: Do not tell what was found.
    """
    outcome = {
        "judged": "judged" if hidden else counted(progress.suggestions, "suggestion"),
        "known": "judged before",
        "failed": f"failed: {progress.problem}",
    }[progress.status]
    say(f"{progress.done:5d}  {progress.trace_id}  {outcome}")


class Lines(AbstractContextManager["Lines"]):
    """A line for each trace, and one for each wait; nothing where ``quiet``."""

    def __init__(
        self, quiet: bool, *, hidden: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._hidden = hidden
        self._quiet = quiet
        self._began = clock()
        self._clock = clock

    def __exit__(self, *_: object) -> None:
        return None

    def on_trace(self, progress: Progress) -> None:
        """A trace is through."""
        if not self._quiet:
            show_trace(progress, hidden=self._hidden)

    def on_use(self, usage: Usage) -> None:
        """An answer came."""

    def on_wait(self, words: str) -> None:
        """Requests wait; it is told how long the run has taken by then."""
        if not self._quiet:
            say(f"{words} ({elapsed(self._clock() - self._began)} since the start)")


class BarLines(AbstractContextManager["BarLines"]):
    """A bar with traces, suggestions, tokens, cost, pace and what is left, in a terminal."""

    def __init__(
        self,
        traces: int,
        prices: Prices | None,
        clock: Callable[[], float] = time.monotonic,
        *,
        hidden: bool = False,
    ) -> None:
        self._prices = prices
        self._found = 0
        self._hidden = hidden
        self._used = self._waits = ""
        self._waits_since = 0.0
        self._clock = clock
        self._bar = progress_bar(traces, " traces", elapsed=True)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def on_trace(self, progress: Progress) -> None:
        """A trace is through; why one failed stands above the bar at once."""
        self._found += progress.suggestions
        self._bar.update(self._bar.task_ids[0], completed=progress.done)
        self._show()
        if progress.problem is not None:
            words = f"{progress.path}: {progress.problem}"
            self._bar.console.print(one_line(words), markup=False, highlight=False, soft_wrap=True)

    def on_use(self, usage: Usage) -> None:
        """An answer came."""
        self._used = f"{tokens(usage.tokens_in + usage.tokens_out)} tokens"
        if self._prices is not None:
            cost = self._prices.cost(usage.tokens_in, usage.tokens_out, usage.tokens_cached)
            self._used += f" · cost {money(cost)}"
        if self._clock() - self._waits_since >= WAITS_SHOWN:
            self._waits = ""
        self._show()

    def on_wait(self, words: str) -> None:
        """Requests wait; the words go with an answer that comes later than some seconds."""
        self._waits = one_line(words, 80)
        self._waits_since = self._clock()
        self._show()

    def _show(self) -> None:
        speed = self._bar.tasks[0].speed
        parts = (
            self._waits,
            "" if self._hidden else f"{self._found} found",
            self._used,
            f"{speed * 60:.0f} a minute" if speed else "",
        )
        self._bar.update(self._bar.task_ids[0], facts=" · ".join(part for part in parts if part))


def run_progress(
    estimate: Estimate | None, prices: Prices | None, *, hidden: bool = False
) -> Lines | BarLines:
    """Make what shows a run: a bar where stderr is a terminal; nothing without an estimate.

    Args:
        estimate: What the run will take, where that was counted.
        prices: What tokens cost, where that is known.
        hidden: Do not tell what was found.
    """
    if estimate is not None and sys.stderr.isatty():
        return BarLines(estimate.traces, prices, hidden=hidden)
    return Lines(quiet=estimate is None, hidden=hidden)


class Counting(AbstractContextManager["Counting"]):
    """How many traces were looked at for the estimate, on one line of a terminal."""

    def __init__(self, quiet: bool) -> None:
        self._shows = not quiet and sys.stderr.isatty()

    def __exit__(self, *_: object) -> None:
        if self._shows:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def on_trace(self, estimate: Estimate) -> None:
        """One more was looked at."""
        if self._shows and estimate.traces % 10 == 0:
            sys.stderr.write(f"\r{estimate.traces} traces looked at")
            sys.stderr.flush()


def elapsed(seconds: float) -> str:
    """A stretch of time as people say it."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minute:02d}m"
    return f"{minute}m{second:02d}s" if minute else f"{second} s"


def tokens(count: int) -> str:
    """A number of tokens as people say it."""
    if count >= 10_000_000:
        return f"{count / 1e6:,.0f} M"
    if count >= 999_500:
        return f"{count / 1e6:.1f} M"
    return f"{count / 1000:,.0f} k" if count >= 10_000 else f"{count:,}"


def money(cost: float) -> str:
    """A sum in the currency of the prices; small ones with more digits."""
    return f"{cost:,.2f}" if cost >= 0.1 or cost == 0 else f"{cost:.4f}"
