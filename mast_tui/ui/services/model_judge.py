"""A model as judge, for the screens: the estimate of its run, the run, and its reports.

Everything in this module runs in worker threads.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mast_tui.counts import counted, duration
from mast_tui.errors import MastError
from mast_tui.judges.llm.client.budget import Allowance
from mast_tui.judges.llm.run.estimate import RunEstimate
from mast_tui.judges.llm.run.run_journal import RunRecord
from mast_tui.judges.llm.run.running import ModelRunSummary, Watch, run_model_judge
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.judges.runner import Progress, TraceStatus
from mast_tui.labels import Judgement
from mast_tui.safe_text import one_line
from mast_tui.traces.model import Trace
from mast_tui.ui.context import JudgeProgress
from mast_tui.ui.wording import cost_text, short_count
from mast_tui.workspace import Usage

if TYPE_CHECKING:
    from mast_tui.ui.services.open_workspace import OpenWorkspace

Result = TypeVar("Result")

REPORT_WAIT_AFTER: Final = 5.0
"""Seconds without an answer after which the wait is reported."""

CHECK_EVERY: Final = 0.1
"""Seconds between two checks if the user has cancelled."""

ALLOWANCE_FACTOR: Final = 1.25
"""The default allowance for several traces, as a multiple of the estimate."""

ONE_TRACE_MARGIN: Final = 3
"""The default allowance for one trace.

It is larger, because the trace may be judged again in smaller pieces.
"""

ROUND_TO: Final = 1_000
"""The unit, in tokens, to which an allowance is rounded up."""

MIN_SHOWN_COST: Final = 0.01
"""The lowest cost that is shown as a number."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned run: its setup and its estimate."""

    setup: Setup
    estimate: RunEstimate

    @property
    def name(self) -> str:
        """The name of the model, fit for display."""
        return model_name(self.setup)

    def with_allowance(self, tokens: int) -> Plan:
        """Return the plan with a limit on the tokens."""
        return replace(self, setup=replace(self.setup, allowance=Allowance(tokens=tokens)))

    def default_allowance(self) -> int:
        """Return the suggested token limit."""
        margin = ONE_TRACE_MARGIN if self.estimate.traces == 1 else ALLOWANCE_FACTOR
        tokens = int((self.estimate.tokens_in + self.estimate.tokens_out) * margin)
        return math.ceil(tokens / ROUND_TO) * ROUND_TO


def model_name(setup: Setup) -> str:
    """Return the name of the model, fit for display."""
    return one_line(setup.parameters.model, 40)


def estimate_text(plan: Plan) -> str:
    """Return the estimate of requests, tokens and cost in sentences."""
    estimate = plan.estimate
    if not estimate.to_judge:
        traces_text = "this trace" if estimate.traces == 1 else "all of these traces"
        return f"{plan.name} has judged {traces_text} already: no request is sent."
    parts = [
        f"{counted(estimate.requests, 'request')}, "
        f"about {short_count(estimate.tokens_in)} tokens in and "
        f"{short_count(estimate.tokens_out)} out"
    ]
    cost = estimate.cost(plan.setup)
    if cost is not None:
        amount = "less than 0.01" if cost < MIN_SHOWN_COST else f"about {cost_text(cost)}"
        parts.append(f"cost {amount}")
    sentences = [f"{', '.join(parts)}."]
    if estimate.known:
        clause = counted(estimate.known, "trace judged before is", "traces judged before are")
        sentences.append(f"{clause} skipped.")
    if estimate.unread:
        sentences.append(f"{counted(estimate.unread, 'trace')} cannot be read.")
    if estimate.shortened:
        clause = counted(estimate.shortened, "long text is", "long texts are")
        sentences.append(f"{clause} shortened.")
    return " ".join(sentences)


def run_model(
    plan: Plan,
    traces: Collection[Trace],
    opened: OpenWorkspace,
    report: Callable[[JudgeProgress], object],
    is_cancelled: Callable[[], bool],
) -> None:
    """Run the model on traces, and report its progress and its result.

    Answers are stored even if the run is cancelled.

    Args:
        plan: The plan of the run.
        traces: The traces.
        opened: The workspace that stores the answers.
        report: Receives each report.
        is_cancelled: Returns whether the user has cancelled the run.
    """
    hides_count = opened.judges_hidden
    reporter = _RunReporter(plan, hides_count, report)
    watch = Watch(reporter.on_trace, reporter.on_use, reporter.on_wait, reporter.on_window)
    try:
        setup = _with_spent_tokens(plan.setup, opened)
        work = run_model_judge(setup, traces, opened.workspace, watch=watch)
        summary = asyncio.run(run_until_cancelled(work, is_cancelled, reporter.on_check))
    except MastError as error:
        report(JudgeProgress(f"{plan.name}: {one_line(str(error))}", done=True, problem=True))
        return
    if summary is None:
        message = f"{plan.name} was cancelled. What it answered is kept; run it again to continue"
        report(JudgeProgress(message, done=True))
    else:
        report(final_report(plan, summary, hides_count=hides_count))


def _with_spent_tokens(setup: Setup, opened: OpenWorkspace) -> Setup:
    """Return the setup with an allowance that includes the tokens of an interrupted run.

    The run counts these tokens too, but the plan's allowance does not.
    """
    if setup.allowance.tokens is None:
        return setup
    spent_usage = RunRecord(setup, opened.workspace, again=False).spent
    tokens = setup.allowance.tokens + spent_usage.tokens_in + spent_usage.tokens_out
    return replace(setup, allowance=Allowance(tokens=tokens))


async def run_until_cancelled(
    work: Coroutine[Any, Any, Result],
    is_cancelled: Callable[[], bool],
    on_check: Callable[[], object],
) -> Result | None:
    """Run a coroutine until it is done or cancelled.

    Args:
        work: The coroutine.
        is_cancelled: Returns whether to cancel it.
        on_check: Called at each check.

    Returns:
        Its result, or None if it was cancelled.
    """
    task = asyncio.create_task(work)
    while not task.done():
        on_check()
        if is_cancelled() and not task.cancelling():
            task.cancel()
        await asyncio.wait({task}, timeout=CHECK_EVERY)
    return None if task.cancelled() else task.result()


def final_report(plan: Plan, summary: ModelRunSummary, *, hides_count: bool) -> JudgeProgress:
    """Return the last report of a run: its result, or the reason for its early end.

    Args:
        plan: The plan of the run.
        summary: Its result.
        hides_count: Whether to leave out the number of suggestions.
    """
    problem = _problem_message(plan, summary)
    if problem is not None:
        return JudgeProgress(problem, done=True, problem=True)
    judged_count = summary.traces.get(TraceStatus.JUDGED, 0)
    if not judged_count:
        known_count = summary.traces.get(TraceStatus.KNOWN, 0)
        message = f"{plan.name} has judged {counted(known_count, 'trace')} already"
        return JudgeProgress(message, done=True)
    parts = [f"{plan.name} has judged {counted(judged_count, 'trace')}"]
    if not hides_count:
        parts.append(counted(summary.suggestions, "suggestion"))
        if summary.quotes.altered:
            parts.append(f"{summary.quotes.altered} with an altered quote")
        if summary.quotes.not_found:
            parts.append(f"{summary.quotes.not_found} with a quote not found")
    return JudgeProgress(" · ".join(parts), done=True)


def _problem_message(plan: Plan, summary: ModelRunSummary) -> str | None:
    """Return the message why a run ended early or failed, or None."""
    if summary.stopped is not None:
        reason = one_line(summary.stopped)  # worded for the command line
        reason = reason.replace("the same command continues the run", "run it again to continue")
        return f"{plan.name}: {reason}"
    if summary.ending is not None:
        ending = one_line(summary.ending)
        return f"{plan.name}: {ending}; what was answered is kept, run it again to continue"
    if not summary.failed:
        return None
    problem = one_line(summary.failed[0].problem or "")
    location = "" if plan.estimate.traces == 1 else f" on {counted(len(summary.failed), 'trace')}"
    return f"{plan.name} failed{location}: {problem}"


class _RunReporter:
    """Reports after each step of a run."""

    def __init__(
        self, plan: Plan, hides_count: bool, report: Callable[[JudgeProgress], object]
    ) -> None:
        """Begin with no answer.

        Args:
            plan: The plan of the run.
            hides_count: Whether to leave out the number of suggestions.
            report: Receives each report.
        """
        self._plan = plan
        self._hides_count = hides_count
        self._report = report
        self._has_one_trace = plan.estimate.traces == 1
        self._judged_window_count = 0
        self._done_trace_count = 0
        self._suggestion_count = 0
        self._usage = Usage()
        self._message = f"{plan.name}: no answer yet"
        self._message_time = time.monotonic()
        self._wait_report_time = self._message_time

    def on_check(self) -> None:
        """Report the waiting time every second, if nothing else was reported for a while."""
        now = time.monotonic()
        waiting_seconds = now - self._message_time
        if now - self._wait_report_time >= 1.0 and waiting_seconds >= REPORT_WAIT_AFTER:
            self._wait_report_time = now
            wait_text = duration(round(waiting_seconds))
            self._report(JudgeProgress(f"{self._message} · waiting {wait_text}", trace_id=""))

    def on_trace(self, progress: Progress) -> None:
        """Report that a trace is done."""
        self._done_trace_count = progress.done
        if not self._has_one_trace:  # else ``on_window`` has counted them
            self._suggestion_count += progress.suggestions
        self._report_counts(trace_id=progress.trace_id)

    def on_use(self, usage: Usage) -> None:
        """Report that a request was answered."""
        self._usage = usage
        self._report_counts(trace_id="")

    def on_wait(self, reason: str) -> None:
        """Report that requests have to wait."""
        self._report_message(f"{self._plan.name}: {one_line(reason)}", trace_id="")

    def on_window(self, trace_id: str, judgement: Judgement) -> None:
        """Report that a window of a trace was judged.

        Args:
            trace_id: The trace.
            judgement: The judgement of the trace so far.
        """
        self._judged_window_count += 1
        # In a run over several traces, ``on_trace`` counts the suggestions of a finished trace.
        if self._has_one_trace:
            self._suggestion_count = len(judgement.findings)
        self._report_counts(trace_id=trace_id)

    def _report_counts(self, trace_id: str) -> None:
        """Report the windows of a single trace, or the traces and tokens of a longer run."""
        estimate = self._plan.estimate
        if self._has_one_trace:
            planned_windows = estimate.windows * self._plan.setup.parameters.samples
            window_count = max(planned_windows, self._judged_window_count)
            window = min(self._judged_window_count + 1, window_count)
            parts = [f"window {window} of {window_count}"]
        else:
            parts = [f"{self._done_trace_count:,} of {counted(estimate.traces, 'trace')}"]
            parts.append(f"{short_count(self._usage.tokens_in + self._usage.tokens_out)} tokens")
        if not self._hides_count:  # Suggestions are hidden from the user.
            parts.append(counted(self._suggestion_count, "suggestion"))
        self._report_message(f"{self._plan.name}: {' · '.join(parts)}", trace_id)

    def _report_message(self, message: str, trace_id: str) -> None:
        """Report a message, and measure the waiting time from now on.

        Args:
            message: The message.
            trace_id: The trace with new suggestions; empty for none.
        """
        self._message = message
        self._message_time = time.monotonic()
        self._report(JudgeProgress(message, trace_id=trace_id))
