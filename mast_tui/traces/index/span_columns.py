"""What is known of many spans at once, as columns, for those that go through a whole trace."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import nan
from threading import Lock
from typing import Final, Protocol, runtime_checkable

from mast_tui.traces.model import Role, SpanKind, SpanStatus, Trace

STATUSES: Final = (SpanStatus.UNKNOWN, SpanStatus.OK, SpanStatus.ERROR)
"""What the numbers in ``Glances.statuses`` stand for."""

Shape = tuple[SpanKind, Role, str, str | None]
"""Kind, role, agent and name: of these there are few combinations in a trace."""


@dataclass(frozen=True, slots=True)
class Glances:
    """What is known of a stretch of spans without looking at any text, as columns of equal length.

    ``first`` is the index of the first span. ``shapes`` holds for each a number into ``told``,
    which is one list for all stretches of a trace and only ever grows. ``statuses`` holds 0 for
    unknown, 1 for ok, 2 for an error; ``starts`` and ``ends`` are Unix seconds, NaN where unknown.
    """

    first: int
    shapes: Sequence[int]
    told: Sequence[Shape]
    statuses: bytes
    starts: array[float]
    ends: array[float]

    def __len__(self) -> int:
        return len(self.statuses)


@runtime_checkable
class GivesGlances(Protocol):
    """A trace that tells of many of its spans at once."""

    def glances(self, first: int, end: int, /) -> Glances:
        """What is known of the spans from ``first`` up to ``end``, of which there is at least one
        and all are known."""


@runtime_checkable
class TellsThreads(Protocol):
    """A trace that tells of many of its spans at once whether they are one thread's."""

    def one_thread(self, first: int, end: int, /) -> bool:
        """Whether the keys of the spans from ``first`` up to ``end`` (exclusive) all name the same
        thread, or none; where that is not known at once it may be denied."""


def glances(trace: Trace, first: int, end: int) -> Glances:
    """What is known of the spans from ``first`` up to ``end`` (exclusive) or the last known one.

    May be called while another thread reads on in the trace. A trace that gives no glances itself
    has its spans looked at one by one, and their shapes told anew in each call.
    """
    end = min(end, len(trace))
    if first >= end:
        return Glances(first, (), [], b"", array("d"), array("d"))
    if isinstance(trace, GivesGlances):
        return trace.glances(first, end)
    return GlancesAtSteps().glances(first, map(trace.span, range(first, end)))


class ShapeNumbers(dict[Shape, int]):
    """Numbers the shapes of one trace in the order in which they are met, in one thread."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Shape] = []

    def __missing__(self, shape: Shape) -> int:
        """The number of a shape that is met for the first time."""
        number = self[shape] = len(self.told)
        self.told.append(shape)
        return number


class Known(Protocol):
    """What glances tell of a step, as a span or what becomes one has it."""

    @property
    def kind(self) -> SpanKind: ...
    @property
    def role(self) -> Role: ...
    @property
    def agent(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def status(self) -> SpanStatus: ...
    @property
    def start(self) -> float | None: ...
    @property
    def end(self) -> float | None: ...


class GlancesAtSteps:
    """Makes the glances of one trace from its steps, one by one."""

    def __init__(self) -> None:
        self._numbers = ShapeNumbers()
        self._lock = Lock()

    def glances(self, first: int, steps: Iterable[Known]) -> Glances:
        """Those at ``steps``, of which the first becomes the span with the index ``first``."""
        shapes, statuses = array("I"), bytearray()
        starts, ends = array("d"), array("d")
        with self._lock:
            for step in steps:
                shapes.append(self._numbers[step.kind, step.role, step.agent, step.name])
                statuses.append(STATUSES.index(step.status))
                starts.append(nan if step.start is None else step.start)
                ends.append(nan if step.end is None else step.end)
        return Glances(first, shapes, self._numbers.told, bytes(statuses), starts, ends)


class GlancesAtParts:
    """Makes the glances of a run from those of the traces that it is made up of."""

    def __init__(self) -> None:
        self._numbers = ShapeNumbers()
        self._in_run: dict[int, tuple[Sequence[Shape], array[int]]] = {}
        self._lock = Lock()

    def glances(self, first: int, parts: Iterable[tuple[int, Glances]]) -> Glances:
        """Those at ``parts``, each with the number of its trace, which follow each other."""
        shapes, statuses = array("I"), bytearray()
        starts, ends = array("d"), array("d")
        with self._lock:
            for number, part in parts:
                shapes.extend(map(self._numbers_of(number, part.told).__getitem__, part.shapes))
                statuses += part.statuses
                starts += part.starts
                ends += part.ends
        return Glances(first, shapes, self._numbers.told, bytes(statuses), starts, ends)

    def _numbers_of(self, number: int, told: Sequence[Shape]) -> array[int]:
        """The numbers in the run of the shapes that the trace with this number has told."""
        known, numbers = self._in_run.get(number, (told, array("I")))
        if known is not told:
            numbers = array("I")
        numbers.extend(map(self._numbers.__getitem__, told[len(numbers) :]))
        self._in_run[number] = told, numbers
        return numbers
