"""The steps of a source that was read as a whole, and their spans."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import nan
from operator import attrgetter
from threading import Lock
from typing import Final, TypedDict, Unpack

from mast_tui.traces.index.span_table import ShapeNumbers
from mast_tui.traces.keys import UniqueKeys
from mast_tui.traces.model import (
    PREVIEW_CHARS,
    STATUSES,
    Role,
    Span,
    SpanColumns,
    SpanKind,
    Spans,
    SpanStatus,
    Tokens,
)
from mast_tui.traces.preview import call_preview, preview
from mast_tui.traces.result_status import status_of_result


@dataclass(slots=True)  # Not frozen: there are many, and freezing costs time.
class Step:
    """A span from a reader, still without an index and a preview.

    The other fields are those of ``Span``.

    Attributes:
        text: The whole text.
        lead: The number of code points at the beginning of the text that the preview leaves out,
            such as a heading.
        shown: The text of the preview, if the reader knows it; None to use ``text``.
    """

    key: str
    kind: SpanKind
    role: Role
    agent: str
    text: str
    place: str
    name: str | None = None
    parent: str | None = None
    start: float | None = None
    end: float | None = None
    status: SpanStatus = SpanStatus.UNKNOWN
    lead: int = 0
    tokens: Tokens | None = None
    shown: str | None = None

    def row(self) -> tuple[str, bool]:
        """Return the preview, and True if it is the entire text."""
        if self.shown is not None:  # a preview that the reader has made, perhaps of other text
            return " ".join(self.shown[:PREVIEW_CHARS].splitlines()), False
        if self.kind is SpanKind.TOOL_CALL:
            return call_preview(self.text)
        return preview(self.text, self.lead)


class StepDetails(TypedDict, total=False):
    """The optional fields of a step for ``StepList.add``; by default the key is the place."""

    place: str
    name: str | None
    parent: str | None
    start: float | None
    end: float | None
    status: SpanStatus
    lead: int
    tokens: Tokens | None
    shown: str | None


_FARTHEST_MOVE: Final = 50


class StepList:
    """The steps of one trace in reading order, with unique keys."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._keys = UniqueKeys()

    def __len__(self) -> int:
        return len(self.steps)

    def add(
        self,
        key: str,
        kind: SpanKind,
        role: Role,
        agent: str,
        text: str,
        **details: Unpack[StepDetails],
    ) -> str:
        """Append a step.

        If ``details`` has no status, the text of a tool's result decides whether it is an error.

        Args:
            key: The preferred key of the step; also its place by default.
            kind: The kind of the step.
            role: The side that acts.
            agent: The name of the acting agent, person or tool.
            text: The whole text.
            details: Further fields of the step.

        Returns:
            The key of the step: ``key``, or ``key~2`` and so on if ``key`` is in use.
        """
        if details.get("place") is None:
            details["place"] = key
        step = Step(self._keys.take(key), kind, role, agent, text, **details)
        if kind is SpanKind.TOOL_RESULT and step.status is SpanStatus.UNKNOWN:
            step.status = status_of_result(text)
        self.steps.append(step)
        return step.key

    def call(self, key: str, agent: str, text: str, **details: Unpack[StepDetails]) -> str:
        """Append a tool call of an agent, and return its key.

        Args:
            key: The preferred key of the step.
            agent: The name of the agent.
            text: The arguments of the call.
            details: Further fields of the step.
        """
        return self.add(key, SpanKind.TOOL_CALL, Role.AGENT, agent, text, **details)

    def result(self, key: str, agent: str, text: str, **details: Unpack[StepDetails]) -> str:
        """Append the result of a tool call, and return its key.

        Args:
            key: The preferred key of the step.
            agent: The name of the agent that called the tool.
            text: The output of the tool.
            details: Further fields of the step.
        """
        return self.add(key, SpanKind.TOOL_RESULT, Role.TOOL, agent, text, **details)

    def log(self, key: str, text: str, **details: Unpack[StepDetails]) -> str:
        """Append a log entry, which no agent wrote, and return its key.

        Args:
            key: The preferred key of the step.
            text: The text of the entry.
            details: Further fields of the step.
        """
        return self.add(key, SpanKind.LOG, Role.LOG, "log", text, **details)

    def amend(
        self,
        key: str,
        *,
        end: float | None = None,
        status: SpanStatus | None = None,
        tokens: Tokens | None = None,
        text: str | None = None,
    ) -> None:
        """Change a step that was added; None keeps a field unchanged.

        Args:
            key: The key of the step.
            end: The end in Unix seconds.
            status: Its result.
            tokens: The tokens of its model call.
            text: Its whole text.
        """
        step = self.steps[self._keys.number(key)]
        step.end = step.end if end is None else end
        step.status = status or step.status
        step.tokens = tokens or step.tokens
        step.text = step.text if text is None else text

    def move_after_call(self, result: str, call: str) -> None:
        """Move a result that came before its call to the end, and make the call its parent.

        To limit the cost, a result more than 50 steps before the end is not moved.

        Args:
            result: The key of the result.
            call: The key of the call, the last step.
        """
        old_number = self._keys.number(result)
        if len(self.steps) - old_number > _FARTHEST_MOVE:
            return
        result_step = self.steps.pop(old_number)
        result_step.parent = call
        self.steps.append(result_step)
        for number in range(old_number, len(self.steps)):
            self._keys.renumber(self.steps[number].key, number)


class ColumnsOfSteps:
    """A builder of the columns of one trace from its steps."""

    def __init__(self) -> None:
        self._shape_numbers = ShapeNumbers()
        self._lock = Lock()

    def columns(self, first: int, steps: Iterable[Step | Span]) -> SpanColumns:
        """Return the columns of consecutive steps.

        Args:
            first: The index of the first step's span.
            steps: The steps.
        """
        steps = tuple(steps)
        numbers = self._shape_numbers
        with self._lock:
            shapes = [numbers[step.kind, step.role, step.agent, step.name] for step in steps]
        return SpanColumns(
            first,
            array("I", shapes),
            numbers.shape_list,
            bytes([STATUSES.index(step.status) for step in steps]),
            array("d", [nan if step.start is None else step.start for step in steps]),
            array("d", [nan if step.end is None else step.end for step in steps]),
        )


class StepSpans(Spans):
    """The spans of a source that was parsed completely, with their texts in memory."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps: Final = tuple(steps)
        """The steps of the spans."""
        self._spans: list[Span | None] = [None] * len(self.steps)
        self._columns = ColumnsOfSteps()

    @cached_property
    def _index_by_key(self) -> dict[str, int]:
        return {step.key: index for index, step in enumerate(self.steps)}

    def __len__(self) -> int:
        return len(self.steps)

    def span(self, index: int, /) -> Span:
        """Return the span at ``index``, with its preview made on first use."""
        span = self._spans[index]
        if span is None:
            span = _span_of_step(index, self.steps[index])
            self._spans[index] = span
        return span

    def text(self, index: int, /) -> str:
        """Return the whole text of the span at ``index``."""
        return self.steps[index].text

    def columns(self, first: int, end: int, /) -> SpanColumns:
        """Return the fields of a range of spans as columns.

        Args:
            first: The index of the first span.
            end: The index after the last span.
        """
        return self._columns.columns(first, self.steps[first:end])

    @cached_property
    def _first_by_location(self) -> dict[str, int]:
        """The index of the first span at or within each location of the source."""
        first_by_location: dict[str, int] = {}
        for index, step in enumerate(self.steps):
            for location in _enclosing_locations(step.place):
                first_by_location.setdefault(location, index)
        return first_by_location

    def index_of(self, key: str, /) -> int | None:
        """Return the index of the span with this key; None if there is none.

        A key such as ``/3`` from an earlier version may be the location of a message that is now
        several spans. Then the index is that of the first of them.
        """
        index = self._index_by_key.get(key)
        if index is None and _LOCATION_KEY.match(key):
            return self._first_by_location.get(key)
        return index


_LOCATION_KEY: Final = re.compile(r"line [0-9]+|/[^:]*\Z")
"""A pattern of keys that may be a location in the source."""


def _enclosing_locations(location: str) -> Iterator[str]:
    """Yield a location, such as ``line 3 /message/1``, then ``line 3 /message`` and ``line 3``."""
    yield location
    # No location precedes a slash at the very beginning.
    while "/" in location.removeprefix("/"):
        location = location.rpartition("/")[0].rstrip()
        yield location


_shared_fields: Final = attrgetter(*(field.name for field in fields(Span)[1:-3]))
"""Returns the fields that a step and its span share, from ``key`` to ``place``."""


def _span_of_step(index: int, step: Step) -> Span:
    return Span(*(index, *_shared_fields(step), *step.row(), step.tokens))
