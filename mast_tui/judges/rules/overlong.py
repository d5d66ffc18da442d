"""1.5 Unaware of termination conditions, by length: far longer than runs that reached the goal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from mast_tui.judges.rules.steps import Step
from mast_tui.judges.rules.walk import UsualLength, Walk
from mast_tui.labels import Finding
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Outcome, Role, Span, Trace

MODE: Final = "unaware_of_termination_conditions"

_FEWEST_RUNS: Final = 2
"""From so many successful runs of a task on it is known how long the task takes."""

_TIMES: Final = 2.0
_MORE_TURNS: Final = 10
_MORE_SECONDS: Final = 120.0
"""A run is overlong from twice the longest success on, and by so much at least."""

_Task = tuple[str, str]


class SuccessfulRun(NamedTuple):
    """A run of a task that reached its goal, and how long that took."""

    task: _Task
    trace_id: str
    turns: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class UsualLengths:
    """By task how long its successful runs took, and which traces those were."""

    by_task: dict[_Task, UsualLength]
    successes: frozenset[str]

    @classmethod
    def measured(cls, successes: Iterable[SuccessfulRun | None]) -> UsualLengths:
        """Take together what was measured of traces; None is one that does not count."""
        runs: dict[_Task, dict[str, SuccessfulRun]] = defaultdict(dict)
        for run in successes:
            if run is not None:
                runs[run.task][run.trace_id] = run
        usual = {}
        for task, found in runs.items():
            times = [run.seconds for run in found.values() if run.seconds is not None]
            usual[task] = UsualLength(
                len(found),
                max(run.turns for run in found.values()),
                max(times) if len(times) == len(found) else None,
            )
        return cls(usual, frozenset(name for found in runs.values() for name in found))

    def of(self, trace: Trace) -> UsualLength | None:
        """How long successful runs of a trace's task took; None where it is one of them."""
        task = trace.meta.same_task
        if task is None or trace.identity.trace_id in self.successes:
            return None
        usual = self.by_task.get(task)
        return usual if usual is not None and usual.runs >= _FEWEST_RUNS else None


def successful_run(trace: Trace) -> SuccessfulRun | None:
    """Measure a run to its end; None where it did not succeed, its task is not known, or it cannot
    be read."""
    try:
        read_fully(trace)
    except OSError:
        return None  # whoever judges it says so
    task = trace.meta.same_task
    if task is None or trace.meta.outcome is not Outcome.SUCCEEDED:
        return None
    spans = [trace.span(index) for index in range(len(trace))]
    turns = sum(map(_is_turn, spans))
    return SuccessfulRun(task, trace.identity.trace_id, turns, _seconds(spans))


def _is_turn(span: Span) -> bool:
    return span.role is Role.AGENT


def _seconds(spans: Iterable[Span]) -> float | None:
    times = [time for span in spans for time in (span.start, span.end) if time is not None]
    return max(times) - min(times) if times else None


def find(walk: Walk) -> Iterator[Finding]:
    """Suggest what of a run lies beyond the usual length of successful runs of its task."""
    if walk.usual is None:
        return
    beyond = _beyond_turns(walk, walk.usual) or _beyond_time(walk, walk.usual)
    if beyond is None:
        return
    step, why = beyond
    quote = step.first_words() or step.quote(0, 160)
    yield walk.finding(
        MODE,
        (step.index, walk.steps[-1].index),
        quote,
        f"{why}; the longest of {walk.usual.runs} successful runs of this task took "
        f"{_length(walk.usual)}.",
        0.6,
    )


def _beyond_turns(walk: Walk, usual: UsualLength) -> tuple[Step, str] | None:
    turns = [step for step in walk.steps if _is_turn(step.span)]
    if len(turns) < max(_TIMES * usual.turns, usual.turns + _MORE_TURNS):
        return None
    return turns[usual.turns], f"{len(turns)} turns"


def _beyond_time(walk: Walk, usual: UsualLength) -> tuple[Step, str] | None:
    seconds = _seconds(step.span for step in walk.steps)
    if usual.seconds is None or seconds is None:
        return None
    if seconds < max(_TIMES * usual.seconds, usual.seconds + _MORE_SECONDS):
        return None
    start = min(s.span.start for s in walk.steps if s.span.start is not None)
    for step in walk.steps:
        if step.span.start is not None and step.span.start - start > usual.seconds:
            return step, f"{seconds:.0f} seconds"
    return None


def _length(usual: UsualLength) -> str:
    if usual.seconds is None:
        return f"{usual.turns} turns"
    return f"{usual.turns} turns, or {usual.seconds:.0f} seconds"
