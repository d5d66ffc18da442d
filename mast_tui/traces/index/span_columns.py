"""Columns of many spans at once, made from the parts of a run, and the numbers of shapes."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from threading import Lock

from mast_tui.traces.model import Shape, SpanColumns


class ShapeNumbers(dict[Shape, int]):
    """The numbers of the shapes of one trace, in order of appearance; for one thread.

    A shape is the kind, role, agent and name that many spans share.
    """

    def __init__(self) -> None:
        super().__init__()
        self.shape_list: list[Shape] = []

    def __missing__(self, shape: Shape) -> int:
        """Add a new shape, and return its number, the next one."""
        number = self[shape] = len(self.shape_list)
        self.shape_list.append(shape)
        return number


class ColumnsOfParts:
    """A builder of the columns of a run from the columns of its files' traces.

    Each file numbers its shapes itself, so they get new numbers, which count over all files.
    """

    def __init__(self) -> None:
        self._shape_numbers = ShapeNumbers()
        self._numbers_by_file: dict[int, tuple[Sequence[Shape], array[int]]] = {}
        """By the number of a file: the shapes of the file, and their numbers in the run."""
        self._lock = Lock()

    def columns(self, first: int, parts: Iterable[tuple[int, SpanColumns]]) -> SpanColumns:
        """Return the columns of consecutive parts of a run.

        Args:
            first: The index of the first span.
            parts: The columns of each part, with the number of its file.
        """
        shapes = array("I")
        statuses = bytearray()
        starts = array("d")
        ends = array("d")
        with self._lock:
            for file_number, part in parts:
                # A part numbers the shapes of its file; the columns number those of the run.
                numbers_in_run = self._numbers_in_run(file_number, part.shape_list)
                shapes.extend(map(numbers_in_run.__getitem__, part.shapes))
                statuses += part.statuses
                starts += part.starts
                ends += part.ends
        return SpanColumns(
            first, shapes, self._shape_numbers.shape_list, bytes(statuses), starts, ends
        )

    def _numbers_in_run(self, file_number: int, shape_list: Sequence[Shape]) -> array[int]:
        """Return, for each shape (kind, role, agent, name) of a file, its number among all files.

        The numbers are kept, and the next call adds only those of new shapes.
        """
        earlier_list, numbers = self._numbers_by_file.get(file_number, (None, array("I")))
        if earlier_list is not shape_list:  # the file was read again
            numbers = array("I")
        numbers.extend(map(self._shape_numbers.__getitem__, shape_list[len(numbers) :]))
        self._numbers_by_file[file_number] = shape_list, numbers
        return numbers
