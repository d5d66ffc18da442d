"""The columns of a run, made from the columns of its files."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from threading import Lock

from mast_tui.traces.model import Shape, SpanColumns


class ShapeNumbers(dict[Shape, int]):
    """The numbers of the shapes of one trace, in order of appearance; for one thread.

    A shape is a kind, role, agent and name, which many spans share.
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
    """A builder of the columns of a run from the columns of its files.

    Each file has its own numbers of shapes, which are replaced by numbers of the run.
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
                # Replace the file's numbers of shapes by those of the run.
                numbers_in_run = self._numbers_in_run(file_number, part.shape_list)
                shapes.extend(map(numbers_in_run.__getitem__, part.shapes))
                statuses += part.statuses
                starts += part.starts
                ends += part.ends
        return SpanColumns(
            first, shapes, self._shape_numbers.shape_list, bytes(statuses), starts, ends
        )

    def _numbers_in_run(self, file_number: int, shape_list: Sequence[Shape]) -> array[int]:
        """Return the number in the run of each shape (kind, role, agent, name) of a file."""
        earlier_list, numbers = self._numbers_by_file.get(file_number, (None, array("I")))
        if earlier_list is not shape_list:  # the file was read again
            numbers = array("I")
        numbers.extend(map(self._shape_numbers.__getitem__, shape_list[len(numbers) :]))
        self._numbers_by_file[file_number] = shape_list, numbers
        return numbers
