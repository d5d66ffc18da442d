"""Columns of many spans at once, made from steps and from the parts of a run."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from math import nan
from threading import Lock
from typing import Protocol

from mast_tui.traces.model import STATUSES, Role, Shape, SpanColumns, SpanKind, SpanStatus


class ShapeNumbers(dict[Shape, int]):
    """Numbers the shapes of one trace in the order in which they are met, in one thread."""

    def __init__(self) -> None:
        super().__init__()
        self.shape_list: list[Shape] = []

    def __missing__(self, shape: Shape) -> int:
        """Give a new shape the next number."""
        number = self[shape] = len(self.shape_list)
        self.shape_list.append(shape)
        return number


class SpanFields(Protocol):
    """The fields of a span, or of the step that becomes one, that columns hold."""

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


class ColumnsOfSteps:
    """Makes the columns of one trace from its steps, one by one."""

    def __init__(self) -> None:
        self._numbers = ShapeNumbers()
        self._lock = Lock()

    def columns(self, first: int, steps: Iterable[SpanFields]) -> SpanColumns:
        """Return the columns of consecutive steps.

        Args:
            first: The index of the span of the first step.
            steps: The steps.
        """
        shapes = array("I")
        statuses = bytearray()
        starts = array("d")
        ends = array("d")
        with self._lock:
            for step in steps:
                shapes.append(self._numbers[step.kind, step.role, step.agent, step.name])
                statuses.append(STATUSES.index(step.status))
                starts.append(nan if step.start is None else step.start)
                ends.append(nan if step.end is None else step.end)
        return SpanColumns(first, shapes, self._numbers.shape_list, bytes(statuses), starts, ends)


class ColumnsOfParts:
    """Makes the columns of a run from those of the traces that it is made up of."""

    def __init__(self) -> None:
        self._numbers = ShapeNumbers()
        self._in_run: dict[int, tuple[Sequence[Shape], array[int]]] = {}
        self._lock = Lock()

    def columns(self, first: int, parts: Iterable[tuple[int, SpanColumns]]) -> SpanColumns:
        """Return the columns of consecutive parts of a run.

        Args:
            first: The index of the first span.
            parts: The columns of each part, with the number of its trace.
        """
        shapes = array("I")
        statuses = bytearray()
        starts = array("d")
        ends = array("d")
        with self._lock:
            for number, part in parts:
                shapes.extend(
                    map(self._numbers_of(number, part.shape_list).__getitem__, part.shapes)
                )
                statuses += part.statuses
                starts += part.starts
                ends += part.ends
        return SpanColumns(first, shapes, self._numbers.shape_list, bytes(statuses), starts, ends)

    def _numbers_of(self, number: int, shapes: Sequence[Shape]) -> array[int]:
        """Return the numbers in the run of the shapes of the trace with this number."""
        numbered, numbers = self._in_run.get(number, (shapes, array("I")))
        if numbered is not shapes:
            numbers = array("I")
        numbers.extend(map(self._numbers.__getitem__, shapes[len(numbers) :]))
        self._in_run[number] = shapes, numbers
        return numbers
