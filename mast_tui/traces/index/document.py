"""Steps of a source that was read whole, and the spans that become of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from operator import attrgetter
from typing import Final, TypedDict, Unpack

from mast_tui.traces.index.span_columns import ColumnsOfSteps
from mast_tui.traces.keys import UniqueKeys
from mast_tui.traces.model import (
    PREVIEW_CHARS,
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


@dataclass(slots=True)  # Not frozen: many are made, and freezing costs time.
class Step:
    """A span as a reader made it, before it has an index and a preview.

    ``key`` may repeat when a step is handed to ``StepList.add``; everything else is as in
    ``Span``. ``text`` is the span's whole text as read; its first ``lead`` code points (a
    heading, a prompt that every turn repeats) are passed over by the preview, and ``shown``
    replaces the preview where that is known from an earlier reading.
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
        """Return the preview, and whether that is the entire text."""
        if self.shown is not None:
            return " ".join(self.shown[:PREVIEW_CHARS].splitlines()), False
        if self.kind is SpanKind.TOOL_CALL:
            return call_preview(self.text)
        return preview(self.text, self.lead)


class More(TypedDict, total=False):
    """Further fields of a step for ``StepList.add``; ``place`` is the key where it is missing."""

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
    """The steps of one trace in reading order, each under a key of its own."""

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
        **more: Unpack[More],
    ) -> str:
        """Append a step.

        The status of a tool's result is decided by its text where ``more`` leaves it unknown.

        Args:
            key: The key that the step should have; also its place where ``more`` has none.
            kind: The kind of the step.
            role: The side that acts.
            agent: The name of who acts.
            text: The whole text.
            more: Further fields of the step.

        Returns:
            The key that the step has: ``key``, or ``key~2`` where that is in use.
        """
        if more.get("place") is None:
            more["place"] = key
        step = Step(self._keys.take(key), kind, role, agent, text, **more)
        if kind is SpanKind.TOOL_RESULT and step.status is SpanStatus.UNKNOWN:
            step.status = status_of_result(text)
        self.steps.append(step)
        return step.key

    def call(self, key: str, agent: str, text: str, **more: Unpack[More]) -> str:
        """Append a tool call of an agent.

        Args:
            key: The key that the step should have.
            agent: The name of the agent.
            text: The arguments of the call.
            more: Further fields of the step.

        Returns:
            The key that the step has.
        """
        return self.add(key, SpanKind.TOOL_CALL, Role.AGENT, agent, text, **more)

    def result(self, key: str, agent: str, text: str, **more: Unpack[More]) -> str:
        """Append the result of a tool.

        Args:
            key: The key that the step should have.
            agent: The name of the agent that called the tool.
            text: The output of the tool.
            more: Further fields of the step.

        Returns:
            The key that the step has.
        """
        return self.add(key, SpanKind.TOOL_RESULT, Role.TOOL, agent, text, **more)

    def log(self, key: str, text: str, **more: Unpack[More]) -> str:
        """Append a log entry that belongs to no one.

        Args:
            key: The key that the step should have.
            text: The text of the entry.
            more: Further fields of the step.

        Returns:
            The key that the step has.
        """
        return self.add(key, SpanKind.LOG, Role.LOG, "log", text, **more)

    def amend(
        self,
        key: str,
        *,
        end: float | None = None,
        status: SpanStatus | None = None,
        tokens: Tokens | None = None,
        text: str | None = None,
    ) -> None:
        """Change a step that was added; None leaves a field as it is.

        Args:
            key: The key of the step.
            end: The time of its end in Unix seconds.
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
        """Move a result that came before its call to the end, and tie it to the call.

        A result that is far from its call stays where it is, so that the cost stays small.

        Args:
            result: The key of the result.
            call: The key of the call, which was added last.
        """
        first = self._keys.number(result)
        moved = self.steps[first]
        if len(self.steps) - first > _FARTHEST_MOVE:
            return
        moved.parent = call
        self.steps.append(self.steps.pop(first))
        for number in range(first, len(self.steps)):
            self._keys.renumber(self.steps[number].key, number)


class StepSpans(Spans):
    """The spans of a source that was parsed once, with their texts in memory."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = tuple(steps)
        self._spans: list[Span | None] = [None] * len(self._steps)
        self._columns = ColumnsOfSteps()

    @cached_property
    def _index(self) -> dict[str, int]:
        return {step.key: index for index, step in enumerate(self._steps)}

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def steps(self) -> Sequence[Step]:
        """The steps that are the spans."""
        return self._steps

    def span(self, index: int, /) -> Span:
        """Return the span at ``index``; its preview is made on first use."""
        span = self._spans[index]
        if span is None:
            span = self._spans[index] = _span(index, self._steps[index])
        return span

    def text(self, index: int, /) -> str:
        """Return the whole text of the span at ``index``, as read."""
        return self._steps[index].text

    def columns(self, first: int, end: int, /) -> SpanColumns:
        """Return columns of spans.

        Args:
            first: The first span.
            end: The span after the last.
        """
        return self._columns.columns(first, self._steps[first:end])

    @cached_property
    def _first_at(self) -> dict[str, int]:
        """The first span in each place of the source, and in all that is around it."""
        first: dict[str, int] = {}
        for index, step in enumerate(self._steps):
            for position in _places_around(step.place):
                first.setdefault(position, index)
        return first

    def index_of(self, key: str, /) -> int | None:
        """Return the index of the span with this key, or None.

        A key that is the place of a message which is now read as several spans, such as ``/3`` or
        ``line 4``, is that of the first of them, so that earlier labels find their text.
        """
        index = self._index.get(key)
        if index is None and _POSITION.match(key):
            return self._first_at.get(key)
        return index


_POSITION: Final = re.compile(r"line [0-9]+|/[^:]*\Z")
"""Keys that may be a location in the source."""


def _places_around(position: str) -> Iterator[str]:
    """Yield a location, ``line 3 /message/content/1``, then ``line 3 /message`` and so on."""
    yield position
    while "/" in position[1:]:
        position = position.rpartition("/")[0].rstrip()
        yield position


_ALIKE: Final = attrgetter(*(field.name for field in fields(Span)[1:-3]))
"""The fields that a span and its step share."""


def _span(index: int, step: Step) -> Span:
    return Span(*(index, *_ALIKE(step), *step.row(), step.tokens))
