"""What a timeline can fold away: runs of equal steps, and steps that belong to another one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

from mast_tui.traces.model import Span, SpanKind

MAX_PERIOD: Final = 4
"""Longest cycle of steps that counts as a repetition, in spans."""

MAX_REACH: Final = 2000
"""How far to each side a run is followed, in spans."""


@dataclass(frozen=True, slots=True)
class Run:
    """Equal steps: spans ``first`` to ``end`` (exclusive), in cycles of ``period`` spans.

    ``near`` says that some of them are only nearly equal. Folded, the first cycle stays in sight.
    """

    first: int
    end: int
    period: int
    near: bool = False

    @property
    def times(self) -> int:
        """How often the cycle occurs."""
        return (self.end - self.first) // self.period

    @property
    def hidden_from(self) -> int:
        """The first span that is out of sight when the run is folded."""
        return self.first + self.period

    @property
    def head(self) -> int | None:
        """A run has a line of its own for what it hides."""
        return None


@dataclass(frozen=True, slots=True)
class Steps:
    """Spans ``first`` to ``end`` (exclusive) that belong together: a sub-agent's, or a step's own.

    Folded, they are one line that tells of ``agent``; or, where ``head`` is the step that they
    belong to, no line but that step's.
    """

    first: int
    end: int
    agent: str = ""
    head: int | None = None

    @property
    def hidden_from(self) -> int:
        """The first span that is out of sight when they are folded: all of them are."""
        return self.first


Fold = Run | Steps


def step_signature(span: Span) -> Hashable:
    """What makes two steps look equal; answers may differ, the question counts."""
    if span.kind is SpanKind.TOOL_RESULT:
        return (span.kind, span.agent, span.name)
    return (span.kind, span.agent, span.name, span.preview)


def run_at(index: int, length: int, signature: Callable[[int], Hashable]) -> Run | None:
    """The run of equal steps in which span ``index`` stands, or None.

    The shortest cycle wins, and a run holds it at least twice, whole. At most ``MAX_REACH`` spans
    to each side are looked at.
    """
    low, high = max(0, index - MAX_REACH), min(length, index + MAX_REACH + 1)
    for period in range(1, MAX_PERIOD + 1):
        run = _run_of_period(index, period, low, high, signature)
        if run is not None:
            return run
    return None


def _run_of_period(
    index: int, period: int, low: int, high: int, signature: Callable[[int], Hashable]
) -> Run | None:
    def comes_again(step: int) -> bool:
        return low <= step < high - period and signature(step) == signature(step + period)

    place = index
    while place >= index - period:
        if not comes_again(place):
            place -= 1
            continue
        first, end = place, place + 1
        while comes_again(first - 1):
            first -= 1
        while comes_again(end):
            end += 1
        end += period
        odd = (end - first) % period
        if (end - first) // period >= 2:
            # What is no whole cycle stays outside, at the end that is further from the cursor.
            return (
                Run(first, end - odd, period)
                if index < end - odd
                else Run(first + odd, end, period)
            )
        place = first - 1
    return None
