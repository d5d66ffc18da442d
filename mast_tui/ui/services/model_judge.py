"""A model that judges, for the screens: what it would take, having it asked, how far it is.

Everything here is for threads beside the screen's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mast_tui.counts import counted, duration
from mast_tui.errors import MastError
from mast_tui.judges.llm.client.budget import Allowance
from mast_tui.judges.llm.run.estimate import Estimate
from mast_tui.judges.llm.run.run_journal import RunRecord
from mast_tui.judges.llm.run.running import ModelRunSummary, Watch, run_model_judge
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.judges.protocol import Judgement
from mast_tui.judges.runner import Progress, TraceStatus
from mast_tui.safe_text import one_line
from mast_tui.traces.model import Trace
from mast_tui.ui.context import JudgeProgress
from mast_tui.ui.wording import cost_words, short_count
from mast_tui.workspace import Usage

if TYPE_CHECKING:
    from mast_tui.ui.services.open_workspace import OpenWorkspace

T = TypeVar("T")

WAIT_TOLD: Final = 5.0
"""Seconds without news after which it is told how long there was none."""

LOOK_EVERY: Final = 0.1
"""Seconds between looks whether somebody has cancelled."""

SPARE: Final = 1.25
"""How much more than the estimate is offered as allowance for many traces."""

SPARE_FOR_ONE: Final = 3
"""The same for one trace, whose questions may have to be asked again in smaller pieces."""

ROUND: Final = 1_000

LEAST_COST: Final = 0.01


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be asked: of which model, at what price at most."""

    setup: Setup
    estimate: Estimate

    @property
    def name(self) -> str:
        """The model, fit for display."""
        return model_name(self.setup)

    @property
    def tokens(self) -> int:
        """What the estimate says in all, in and out."""
        return self.estimate.tokens_in + self.estimate.tokens_out

    def allowing(self, tokens: int) -> Plan:
        """The same with at most so many tokens."""
        return replace(self, setup=replace(self.setup, allowance=Allowance(tokens=tokens)))

    def usual_allowance(self) -> int:
        """What is allowed unless somebody says otherwise, rounded up."""
        spare = SPARE_FOR_ONE if self.estimate.traces == 1 else SPARE
        return -(-int(self.tokens * spare) // ROUND) * ROUND


def model_name(setup: Setup) -> str:
    """The model that is asked, fit for display."""
    return one_line(setup.parameters.model, 40)


def estimate_words(plan: Plan) -> str:
    """The estimate in a sentence or two."""
    estimate = plan.estimate
    if not estimate.to_judge:
        return (
            f"{plan.name} has judged {'this' if estimate.traces == 1 else 'all of these'} "
            "already: nothing is asked."
        )
    words = [
        f"{counted(estimate.requests, 'request')}, "
        f"about {short_count(estimate.tokens_in)} tokens in and "
        f"{short_count(estimate.tokens_out)} out"
    ]
    cost = estimate.cost(plan.setup)
    if cost is not None:
        about = "less than 0.01" if cost < LEAST_COST else f"about {cost_words(cost)}"
        words.append(f"cost {about}")
    told = [f"{', '.join(words)}."]
    if estimate.known:
        one, many = "trace judged before is", "traces judged before are"
        told.append(f"{counted(estimate.known, one, many)} passed over.")
    if estimate.unread:
        told.append(f"{counted(estimate.unread, 'trace')} cannot be read.")
    if estimate.shortened:
        one, many = "long text is", "long texts are"
        told.append(f"{counted(estimate.shortened, one, many)} shortened.")
    return " ".join(told)


def run_model(
    plan: Plan,
    traces: Sequence[Trace],
    opened: OpenWorkspace,
    tell: Callable[[JudgeProgress], object],
    stopped: Callable[[], bool],
) -> None:
    """Have the model asked about the traces, and tell how far it is and how it ended.

    What was answered is kept, also where it is cancelled.
    """
    hidden = opened.judges_hidden
    told = _RunReporter(plan, hidden, tell)
    watch = Watch(told.on_trace, told.on_use, told.on_wait, told.on_part)
    try:
        setup = _with_what_was_spent(plan.setup, opened)
        work = run_model_judge(setup, traces, opened.workspace, watch=watch)
        summary = asyncio.run(unless_cancelled(work, stopped, told.on_look))
    except MastError as error:
        tell(JudgeProgress(f"{plan.name}: {one_line(str(error))}", done=True, problem=True))
        return
    if summary is None:
        words = f"{plan.name} was cancelled. What it answered is kept; run it again to continue"
        tell(JudgeProgress(words, done=True))
    else:
        tell(ended(plan, summary, blind=hidden))


def _with_what_was_spent(setup: Setup, opened: OpenWorkspace) -> Setup:
    """The setup with what a run that was broken off has spent on top of the allowance.

    What is allowed here is for what is still to be asked, as the estimate said it.
    """
    if setup.allowance.tokens is None:
        return setup
    spent = RunRecord(setup, opened.workspace, again=False).spent
    tokens = setup.allowance.tokens + spent.tokens_in + spent.tokens_out
    return replace(setup, allowance=Allowance(tokens=tokens))


async def unless_cancelled(
    work: Coroutine[Any, Any, T], stopped: Callable[[], bool], on_look: Callable[[], object]
) -> T | None:
    """Do what asks a model, in a thread, until it is done or ``stopped``.

    Args:
        work: What is done.
        stopped: Whether it is to be cancelled.
        on_look: Is told from time to time that it goes on.

    Returns:
        What comes of it; None where it was cancelled.
    """
    task = asyncio.create_task(work)
    while not task.done():
        on_look()
        if stopped() and not task.cancelling():
            task.cancel()
        await asyncio.wait({task}, timeout=LOOK_EVERY)
    return None if task.cancelled() else task.result()


def ended(plan: Plan, summary: ModelRunSummary, *, blind: bool) -> JudgeProgress:
    """How a run has ended, in words."""
    name, judged = plan.name, summary.traces.get(TraceStatus.JUDGED, 0)
    problem = bool(summary.stopped is not None or summary.ending is not None or summary.failed)
    if summary.stopped is not None:
        reason = one_line(summary.stopped)
        why = reason.replace("the same command goes on", "run it again to continue")
        words = f"{name}: {why}"
    elif summary.ending is not None:
        ending = one_line(summary.ending)
        words = f"{name}: {ending}; what was answered is kept, run it again to continue"
    elif summary.failed:
        first = one_line(summary.failed[0].problem or "")
        some = "" if plan.estimate.traces == 1 else f" on {counted(len(summary.failed), 'trace')}"
        words = f"{name} failed{some}: {first}"
    elif not judged:
        known_count = summary.traces.get(TraceStatus.KNOWN, 0)
        words = f"{name} had judged {counted(known_count, 'trace')} before"
    else:
        parts = [f"{name} has judged {counted(judged, 'trace')}"]
        if not blind:
            altered, missing = summary.quotes.altered, summary.quotes.not_found
            parts.append(f"{summary.suggestions} found")
            parts += [f"{altered} with an altered quote"] if altered else []
            its = "its" if missing == 1 else "their"
            parts += [f"{missing} without {its} quote"] if missing else []
        words = " · ".join(parts)
    return JudgeProgress(words, done=True, problem=problem)


class _RunReporter:
    """How far a run is, told in words after each step; without counts of what was found where
    it is hidden from who asks."""

    def __init__(self, plan: Plan, blind: bool, tell: Callable[[JudgeProgress], object]) -> None:
        self._plan = plan
        self._blind = blind
        self._tell = tell
        self._one = plan.estimate.traces == 1
        self._parts = 0
        self._done = 0
        self._found = 0
        self._used = Usage()
        self._words = f"{plan.name}: no answer yet"
        self._since = self._looked = time.monotonic()

    def on_look(self) -> None:
        """The run goes on: tell for how long nothing has come, once that is noticed."""
        now = time.monotonic()
        if now - self._looked >= 1.0 and now - self._since >= WAIT_TOLD:
            self._looked = now
            waited = duration(round(now - self._since))
            self._tell(JudgeProgress(f"{self._words} · waiting {waited}", trace_id=""))

    def on_trace(self, progress: Progress) -> None:
        """A trace is through."""
        self._done = progress.done
        self._found = self._found + progress.suggestions if not self._one else self._found
        self._say(trace_id=progress.trace_id)

    def on_use(self, usage: Usage) -> None:
        """A request was answered."""
        self._used = usage
        self._say(trace_id="")

    def on_wait(self, words: str) -> None:
        """Requests wait."""
        self._say_so(f"{self._plan.name}: {one_line(words)}", "")

    def on_part(self, trace_id: str, judgement: Judgement) -> None:
        """A window of a trace was answered."""
        self._parts += 1
        if self._one:
            self._found = len(judgement.findings)
        self._say(trace_id=trace_id)

    def _say(self, trace_id: str) -> None:
        estimate = self._plan.estimate
        if self._one:
            planned = estimate.windows * self._plan.setup.parameters.samples
            windows = max(planned, self._parts)
            parts = [f"window {min(self._parts + 1, windows)} of {windows}"]
        else:
            parts = [f"{self._done:,} of {counted(estimate.traces, 'trace')}"]
            used = self._used.tokens_in + self._used.tokens_out
            parts.append(f"{short_count(used)} tokens")
        if not self._blind:
            parts.append(f"{self._found} found")
        self._say_so(f"{self._plan.name}: {' · '.join(parts)}", trace_id)

    def _say_so(self, words: str, trace_id: str) -> None:
        """Tell something new, from which on waiting counts anew."""
        self._words, self._since = words, time.monotonic()
        self._tell(JudgeProgress(words, trace_id=trace_id))
