"""The tree of timed calls that tracing tools record of a run, each with its input and output.

A vendor's reader turns its records into rows of this one shape; ``observed_steps`` makes spans of
them.
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
"""A chat message in a shape that ``MessageMapper`` reads: role, content, tool_calls and so on."""


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

    ``id`` is the tool's own name for it and ``parent`` the id of the row within which it ran;
    an unknown parent counts as none. ``location`` is that of the row in the file. ``agent`` is
    who acted, where the row itself tells. A model's row has its messages in ``asked`` (the whole
    history, as every call repeats it) and ``answered``; other rows have ``input`` and ``output``
    as JSON values or texts, and so has a model's row whose messages are not told apart.
    ``call_id`` of a tool's row is the id under which a model asked for it. ``start`` and ``end``
    are Unix seconds; ``error`` is what went wrong, as text. ``instructions`` is the system prompt
    that an agent's or another row has beside its messages. ``speaks`` says of an ``OTHER`` row
    that what came out of it is worth reading by itself: a retriever's documents, the verdict of a
    guardrail or an evaluator; it has no meaning for other kinds.
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
    asked: tuple[Message, ...] = ()
    answered: tuple[Message, ...] = ()
    input: object = None
    output: object = None
    call_id: str | None = None
    instructions: str | None = None
    speaks: bool = False


class RowTree:
    """The rows of a run, each before those under it: as many as ``sizes`` tells.

    Children stand in the order of their start times; where one has none, it stays behind the one
    before it in the file. A row whose parent is not there is a root, and so is the first row of
    parents that go round in a circle.
    """

    def __init__(self, rows: Sequence[SpanRow]) -> None:
        self.rows, self.sizes = _in_order(rows)
        self._models: list[int] = []
        self._failures: list[int] = []
        self._errors: dict[str, list[int]] = defaultdict(list)
        for number, row in enumerate(self.rows):
            if row.kind is RowKind.MODEL and has_messages(row):
                self._models.append(number)
            if row.status is SpanStatus.ERROR:
                self._failures.append(number)
            if row.error is not None:
                self._errors[row.error].append(number)

    def first_model(self, number: int) -> SpanRow | None:
        """Return the first row of a model with content under the row with this number, or None."""
        position = self._first_under(number, self._models)
        return None if position is None else self.rows[position]

    def fails_by_itself(self, number: int) -> bool:
        """Return whether a row failed without a failed row under it."""
        row = self.rows[number]
        if row.error is not None:
            return self._first_under(number, self._errors[row.error]) is None
        failed = row.status is SpanStatus.ERROR
        return failed and self._first_under(number, self._failures) is None

    def _first_under(self, number: int, places: Sequence[int]) -> int | None:
        """Return the first of the sorted numbers that is under a row."""
        index = bisect_right(places, number)
        if index == len(places) or places[index] > number + self.sizes[number]:
            return None
        return places[index]


def has_messages(row: SpanRow) -> bool:
    """Return whether a model's row has any input or output."""
    return bool(row.asked or row.answered) or row.input is not None or row.output is not None


def _in_order(rows: Sequence[SpanRow]) -> tuple[list[SpanRow], list[int]]:
    """Return the rows, each before those under it, and how many are under each."""
    numbers: dict[str, int] = {}
    for number, row in enumerate(rows):
        numbers.setdefault(row.id, number)
    children: list[list[int]] = [[] for _row in rows]
    roots: list[int] = []
    for number, row in enumerate(rows):
        parent = None if row.parent is None else numbers.get(row.parent)
        if parent is None or parent == number:
            roots.append(number)
        else:
            children[parent].append(number)
    order: list[int] = []
    sizes = [0] * len(rows)
    seen = [False] * len(rows)
    for root in [*_by_start(roots, rows), *range(len(rows))]:
        # The second half are the rows that no root leads to: their parents go round.
        stack = [] if seen[root] else [root]
        while stack:
            number = stack.pop()
            if number < 0:  # all under this row have had their turn
                sizes[~number] = len(order) - 1 - sizes[~number]
                continue
            if seen[number]:
                continue
            seen[number] = True
            sizes[number] = len(order)
            order.append(number)
            stack.append(~number)
            stack.extend(reversed(_by_start(children[number], rows)))
    return [rows[number] for number in order], [sizes[number] for number in order]


def _by_start(numbers: Iterable[int], rows: Sequence[SpanRow]) -> list[int]:
    timed: list[tuple[float, int]] = []
    last = float("-inf")
    for number in numbers:
        start = rows[number].start
        last = last if start is None else start
        timed.append((last, number))
    return [number for _start, number in sorted(timed)]
