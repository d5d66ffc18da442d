"""The progress of a judge on stderr: a bar in a terminal, else a line per trace."""

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
    from mast_tui.judges.llm.run.estimate import RunEstimate
    from mast_tui.judges.runner import Progress
    from mast_tui.workspace import Usage


WAIT_SECONDS: Final = 10.0
"""The minimum seconds for which the reason of a wait is shown: answers to earlier requests still
arrive meanwhile, and would hide it."""


def show_trace(progress: Progress, *, hidden: bool = False) -> None:
    """Print one line on stderr for a trace that is done.

    Args:
        progress: The trace and its result.
        hidden: Do not show the number of suggestions.
    """
    outcome = {
        "judged": "judged" if hidden else counted(progress.suggestions, "suggestion"),
        "known": "judged before",
        "failed": f"failed: {progress.problem}",
    }[progress.status]
    say(f"{progress.done:5d}  {progress.trace_id}  {outcome}")


class LineProgress(AbstractContextManager["LineProgress"]):
    """The progress of a run as a line for each trace and each wait; nothing if ``quiet``."""

    def __init__(
        self, quiet: bool, *, hidden: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._hidden = hidden
        self._quiet = quiet
        self._start_time = clock()
        self._clock = clock

    def __exit__(self, *_: object) -> None:
        return None

    def on_trace(self, progress: Progress) -> None:
        """Report a trace that is done."""
        if not self._quiet:
            show_trace(progress, hidden=self._hidden)

    def on_use(self, usage: Usage) -> None:
        """Ignore the usage of an answer, which only a bar shows."""

    def on_wait(self, reason: str) -> None:
        """Report that requests wait, and how long the run has taken so far."""
        if not self._quiet:
            say(f"{reason} ({elapsed_text(self._clock() - self._start_time)} since the start)")


class BarProgress(AbstractContextManager["BarProgress"]):
    """A bar with traces, suggestions, tokens, cost, speed and time left, in a terminal."""

    def __init__(
        self,
        traces: int,
        prices: Prices | None,
        clock: Callable[[], float] = time.monotonic,
        *,
        hidden: bool = False,
    ) -> None:
        self._prices = prices
        self._suggestions = 0
        self._hidden = hidden
        self._usage_text = ""
        self._wait_text = ""
        self._wait_start = 0.0
        self._clock = clock
        self._bar = progress_bar(traces, " traces", show_elapsed=True)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def on_trace(self, progress: Progress) -> None:
        """Count a trace as done; if it failed, print its problem above the bar."""
        self._suggestions += progress.suggestions
        self._bar.update(self._bar.task_ids[0], completed=progress.done)
        self._update_bar()
        if progress.problem is not None:
            message = f"{progress.path}: {progress.problem}"
            self._bar.console.print(
                one_line(message), markup=False, highlight=False, soft_wrap=True
            )

    def on_use(self, usage: Usage) -> None:
        """Show the tokens and the cost so far."""
        self._usage_text = f"{token_text(usage.tokens_in + usage.tokens_out)} tokens"
        if self._prices is not None:
            cost = self._prices.cost(usage.tokens_in, usage.tokens_out, usage.tokens_cached)
            self._usage_text += f" · cost {money(cost)}"
        if self._clock() - self._wait_start >= WAIT_SECONDS:
            self._wait_text = ""
        self._update_bar()

    def on_wait(self, reason: str) -> None:
        """Show why requests wait, until an answer arrives some seconds later."""
        self._wait_text = one_line(reason, 80)
        self._wait_start = self._clock()
        self._update_bar()

    def _update_bar(self) -> None:
        """Show the wait, the suggestions, the usage and the speed beside the bar."""
        speed = self._bar.tasks[0].speed
        parts = (
            self._wait_text,
            "" if self._hidden else f"{self._suggestions} found",
            self._usage_text,
            f"{speed * 60:.0f} a minute" if speed else "",
        )
        self._bar.update(self._bar.task_ids[0], facts=" · ".join(part for part in parts if part))


def run_progress(
    estimate: RunEstimate | None, prices: Prices | None, *, hidden: bool = False
) -> LineProgress | BarProgress:
    """Return the display of progress: a bar in a terminal, else lines; silent without an estimate.

    Args:
        estimate: The estimate of the run, if it was computed.
        prices: The prices of tokens, if they are known.
        hidden: Do not show the number of suggestions.
    """
    if estimate is not None and sys.stderr.isatty():
        return BarProgress(estimate.traces, prices, hidden=hidden)
    return LineProgress(quiet=estimate is None, hidden=hidden)


class EstimateProgress(AbstractContextManager["EstimateProgress"]):
    """The number of traces read for the estimate, on one line of a terminal."""

    def __init__(self, quiet: bool) -> None:
        self._in_terminal = not quiet and sys.stderr.isatty()

    def __exit__(self, *_: object) -> None:
        if self._in_terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def on_trace(self, estimate: RunEstimate) -> None:
        """Show the number of traces read so far."""
        if self._in_terminal and estimate.traces % 10 == 0:
            sys.stderr.write(f"\r{estimate.traces} traces read")
            sys.stderr.flush()


def elapsed_text(seconds: float) -> str:
    """Return a duration as text."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minute:02d}m"
    return f"{minute}m{second:02d}s" if minute else f"{second} s"


def token_text(count: int) -> str:
    """Return a number of tokens as text."""
    if count >= 10_000_000:
        return f"{count / 1e6:,.0f} M"
    if count >= 999_500:
        return f"{count / 1e6:.1f} M"
    return f"{count / 1000:,.0f} k" if count >= 10_000 else f"{count:,}"


def money(cost: float) -> str:
    """Return an amount of money; small amounts with more digits."""
    return f"{cost:,.2f}" if cost >= 0.1 or cost == 0 else f"{cost:.4f}"
