"""The tree of timed calls that tracing tools record of a run, each with its input and output.

A vendor's reader makes rows of its records, and ``observed_steps`` makes spans of the rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from mast_tui.traces.model import SpanStatus, Tokens
from mast_tui.traces.readers.json_fields import Fields

Message = Fields
"""A chat message in a shape that ``MessageMapper`` reads."""


class RowKind(StrEnum):
    """The kind of thing that was called."""

    MODEL = "model"
    TOOL = "tool"
    AGENT = "agent"
    OTHER = "other"
    """A chain, a workflow, a retriever, an embedding or any other timed call."""


@dataclass(frozen=True, slots=True)
class SpanRow:
    """One timed call of a run.

    Attributes:
        id: The id that the tracing tool gave to the row.
        parent: The id of the row within which this row ran; an unknown id is ignored.
        kind: The kind of thing that was called.
        name: The name of the model, tool, agent or function that was called.
        location: The location of the row in the file.
        start: The time in Unix seconds at which the call began.
        end: The time in Unix seconds at which the call ended.
        status: The result of the call.
        error: The error message of a failed call.
        agent: The agent that acted, if the row itself names it.
        model: The model that was called.
        tokens: The tokens of the call.
        request: The messages to a model: the whole history.
        answer: The messages of a model.
        input: The input as a JSON value or a text; not shown for a model's row.
        output: The output as a JSON value or a text; not shown for a model's row.
        call_id: The id that a model gave to the call of a tool's row.
        instructions: The system prompt beside the messages of an agent's or ``OTHER`` row.
        has_readable_output: Whether the output of an ``OTHER`` row is shown as a log: a retriever's
            documents, or the verdict of a guardrail or an evaluator.
    """

    id: str
    parent: str | None
    kind: RowKind
    name: str
    location: str
    start: float | None = None
    end: float | None = None
    status: SpanStatus = SpanStatus.UNKNOWN
    error: str | None = None
    agent: str | None = None
    model: str | None = None
    tokens: Tokens | None = None
    request: tuple[Message, ...] = ()
    answer: tuple[Message, ...] = ()
    input: object = None
    output: object = None
    call_id: str | None = None
    instructions: str | None = None
    has_readable_output: bool = False


class RowTree:
    """The rows of a run as a tree.

    Children are sorted by start time; a child without one follows the previous child in the file. A
    row without a known parent is a root. In a circle of parents, the first row is a root.

    Attributes:
        rows: The rows, each before its descendants.
        sizes: The number of descendants of each row.
    """

    def __init__(self, rows: Sequence[SpanRow]) -> None:
        self.rows, self.sizes = _rows_in_tree_order(rows)
        self._model_indices: list[int] = []
        self._failed_indices: list[int] = []
        self._indices_by_error: dict[str, list[int]] = defaultdict(list)
        for index, row in enumerate(self.rows):
            if row.kind is RowKind.MODEL and has_messages(row):
                self._model_indices.append(index)
            if row.status is SpanStatus.ERROR:
                self._failed_indices.append(index)
            if row.error is not None:
                self._indices_by_error[row.error].append(index)

    def first_model(self, row_index: int) -> SpanRow | None:
        """Return the first model's row with messages under a row."""
        model_index = self._first_descendant(row_index, self._model_indices)
        return None if model_index is None else self.rows[model_index]

    def fails_by_itself(self, row_index: int) -> bool:
        """Return whether a row failed for another reason than the rows under it."""
        row = self.rows[row_index]
        if row.error is not None:
            # Equal error messages, or no message of the outer row, mean the same reason.
            same_errors = self._indices_by_error[row.error]
            return self._first_descendant(row_index, same_errors) is None
        has_failed = row.status is SpanStatus.ERROR
        return has_failed and self._first_descendant(row_index, self._failed_indices) is None

    def _first_descendant(self, row_index: int, sorted_indices: Sequence[int]) -> int | None:
        """Return the first of the sorted indices that is under a row."""
        # The descendants of a row directly follow it.
        last_descendant = row_index + self.sizes[row_index]
        position = bisect_right(sorted_indices, row_index)
        if position == len(sorted_indices) or sorted_indices[position] > last_descendant:
            return None
        return sorted_indices[position]


def has_messages(row: SpanRow) -> bool:
    """Return whether a model's row has a request or an answer."""
    return bool(row.request or row.answer)


def _rows_in_tree_order(rows: Sequence[SpanRow]) -> tuple[list[SpanRow], list[int]]:
    """Return the rows, each before its descendants, and the number of descendants of each."""
    index_by_id: dict[str, int] = {}
    for index, row in enumerate(rows):
        index_by_id.setdefault(row.id, index)
    children: list[list[int]] = [[] for _row in rows]
    roots: list[int] = []
    for index, row in enumerate(rows):
        parent_index = None if row.parent is None else index_by_id.get(row.parent)
        if parent_index is None or parent_index == index:
            roots.append(index)
        else:
            children[parent_index].append(index)

    order: list[int] = []
    positions = [-1] * len(rows)  # -1: not in ``order`` yet
    descendant_counts = [0] * len(rows)
    for root in [*_sorted_by_start(roots, rows), *range(len(rows))]:
        # The range adds the rows without a root: their parents form a circle.
        stack = [(root, False)]
        while stack:
            index, has_all_descendants = stack.pop()
            if has_all_descendants:
                descendant_counts[index] = len(order) - 1 - positions[index]
            elif positions[index] < 0:
                positions[index] = len(order)
                order.append(index)
                # The row is popped again after all its descendants.
                stack.append((index, True))
                sorted_children = _sorted_by_start(children[index], rows)
                stack.extend((child, False) for child in reversed(sorted_children))
    return [rows[index] for index in order], [descendant_counts[index] for index in order]


def _sorted_by_start(row_indices: Iterable[int], rows: Sequence[SpanRow]) -> list[int]:
    """Return row indices sorted by start time; the default time is that of the previous row."""
    timed_indices: list[tuple[float, int]] = []
    start = float("-inf")
    for index in row_indices:
        own_start = rows[index].start
        start = start if own_start is None else own_start
        timed_indices.append((start, index))
    return [index for _start, index in sorted(timed_indices)]
