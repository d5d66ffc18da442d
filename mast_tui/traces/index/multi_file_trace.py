"""A run whose sub-agents lie in files of their own, as one trace."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from mast_tui.traces.byte_prefilter import Prefilter
from mast_tui.traces.index.lazy_span import moved
from mast_tui.traces.index.span_columns import ColumnsOfParts
from mast_tui.traces.model import (
    Candidates,
    Loaded,
    Problem,
    Span,
    SpanColumns,
    Spans,
    Thread,
    Trace,
    TraceMeta,
)

_SIFTED_AT_ONCE: Final = 4096

_WATCHED: Final = 50
"""Of how many sub-agents it is looked whether their files have grown."""


@dataclass(frozen=True, slots=True)
class Member:
    """One file of a run: the thread it holds, its trace, and its name as places show it."""

    thread: Thread
    trace: Trace
    name: str


@dataclass(slots=True)
class _Progress:
    """How far the spans of a member have been taken into the run.

    ``places`` has the index in the run of each span taken so far; ``parent`` is the key of the
    call that began the member.
    """

    member: Member
    parent: str | None = None
    begun: bool = False
    places: array[int] = field(default_factory=lambda: array("Q"))


class RunSpans(Spans):
    """The spans of a run's main thread with those of its sub-agents where they were at work.

    A sub-agent's spans stand before the span that its spawner names, which is the result of the
    call that began it; one that is named nowhere comes at the end. Places of sub-agents' spans
    begin with the file's name.
    """

    def __init__(self, main: Member, others: Iterable[Member]) -> None:
        self._files = [_Progress(main), *(_Progress(other) for other in others)]
        self._read_last = self._files[0]
        self._by_thread = {one.member.thread.id: one for one in reversed(self._files)}
        self._order = array("Q")
        self._inner = array("Q")
        self._columns = ColumnsOfParts()
        self._stack = [0]
        self._files[0].begun = True
        self._finished = False
        self._take_in()

    @property
    def meta(self) -> TraceMeta:
        """What the main thread tells about the run."""
        return self._files[0].member.trace.meta

    @property
    def problems(self) -> Sequence[Problem]:
        """What could not be read in any of the files."""
        return tuple(
            problem if one is self._files[0] else _named(problem, one.member.name)
            for one in self._files
            for problem in one.member.trace.problems
        )

    @property
    def loaded(self) -> Loaded:
        """How far the indices of all files have come."""
        each = [one.member.trace.loaded for one in self._files]
        return Loaded(
            sum(loaded.done for loaded in each),
            sum(loaded.total for loaded in each),
            self._finished,
        )

    def __len__(self) -> int:
        return len(self._order)

    def span(self, index: int, /) -> Span:
        """The span at ``index``, under its index in the run."""
        one, inner = self._at(index)
        span = one.member.trace.span(inner)
        if one is self._files[0]:
            return span if inner == index else moved(span, index, span.place, span.parent)
        return moved(span, index, f"{one.member.name} {span.place}", span.parent or one.parent)

    def text(self, index: int, /) -> str:
        """The whole text of the span at ``index``."""
        one, inner = self._at(index)
        self._read_last = one
        return one.member.trace.text(inner)

    def changed(self) -> str | None:
        """Say why the file of the text read last is not what was read.

        A run may have hundreds of files, and this is asked with each text that is shown.
        """
        last = self._read_last
        if last is self._files[0]:
            return None
        reason = last.member.trace.changed()
        return None if reason is None else f"{last.member.name}: {reason}"

    def has_grown(self) -> bool:
        """Whether the file of a sub-agent has grown."""
        return any(one.member.trace.has_grown() for one in self._files[1 : 1 + _WATCHED])

    def candidates(
        self, prefilter: Prefilter | None, begin: int, limit: int, max_bytes: int, /
    ) -> Candidates:
        """The texts that may hold what the prefilter is for, as far as one file's spans follow."""
        number = self._order[begin]
        inner = self._inner[begin]
        last = min(limit, begin + _SIFTED_AT_ONCE)
        end = begin + 1
        while end < last and self._order[end] == number:
            end += 1
        trace = self._files[number].member.trace
        done, texts, rows = trace.candidates(prefilter, inner, inner + end - begin, max_bytes)
        shift = begin - inner
        return Candidates(done + shift, ((index + shift, text) for index, text in texts), rows)

    def columns(self, first: int, end: int, /) -> SpanColumns:
        """What is known of the spans from ``first`` up to ``end`` (exclusive)."""
        return self._columns.columns(first, self._parts(first, end))

    def _parts(self, first: int, end: int) -> Iterator[tuple[int, SpanColumns]]:
        """The columns of each stretch of one file's spans, with the number of the file."""
        for number, stretch in groupby(self._order[first:end]):
            length = len(list(stretch))
            inner = self._inner[first]
            yield number, self._files[number].member.trace.columns(inner, inner + length)
            first += length

    def index_of(self, key: str, /) -> int | None:
        """The index of the span with this key, or None where no such span is known (yet)."""
        for one in self._files:
            inner = one.member.trace.index_of(key)
            if inner is not None and inner < len(one.places):
                return one.places[inner]
        return None

    def advance(self, max_bytes: int, /) -> bool:
        """Read about ``max_bytes`` more of the file whose turn it is; False when all is read."""
        if self._finished:
            return False
        self._files[self._stack[-1]].member.trace.advance(max_bytes)
        self._take_in()
        return not self._finished

    def read_in_background(self) -> None:
        """Have other processes read the biggest of the files, one after the other."""
        if not self._finished:
            self._files[self._stack[-1]].member.trace.spans.read_in_background()

    def stop_background_read(self) -> None:
        """Let what is not known be read here."""
        for one in self._files:
            one.member.trace.spans.stop_background_read()

    def _take_in(self) -> None:
        """Take in every span that is known and whose turn has come."""
        while self._stack:
            number = self._stack[-1]
            one = self._files[number]
            trace = one.member.trace
            awaited = self._awaited(trace)
            while len(one.places) < len(trace):
                inner = len(one.places)
                child = awaited.pop(trace.span(inner).key, None) if awaited else None
                if child is not None:
                    self._begin(child, trace.span(inner).parent)
                    break
                one.places.append(len(self._order))
                self._order.append(number)
                self._inner.append(inner)
            else:
                if not trace.loaded.complete:
                    return
                self._stack.pop()
            if not self._stack:
                self._begin_unnamed()
        self._finished = True

    def _awaited(self, trace: Trace) -> dict[str, int]:
        """By key the spans before which a sub-agent belongs that has not begun yet."""
        found = {}
        for thread, key in trace.spawned.items():
            one = self._by_thread.get(thread)
            if one is not None and not one.begun:
                found[key] = self._files.index(one)
        return found

    def _begin(self, number: int, parent: str | None) -> None:
        one = self._files[number]
        one.begun = True
        one.parent = parent
        self._stack.append(number)

    def _begin_unnamed(self) -> None:
        """Let the first sub-agent that nobody has named follow."""
        waiting = (number for number, one in enumerate(self._files) if not one.begun)
        number = next(waiting, None)
        if number is not None:
            self._begin(number, None)

    def _at(self, index: int) -> tuple[_Progress, int]:
        return self._files[self._order[index]], self._inner[index]


def joined(main: Member, others: Sequence[Member]) -> Trace:
    """The run of these files; a thread that is there twice is taken once."""
    by_thread = {other.thread.id: other for other in reversed(others)}
    by_thread.pop(main.thread.id, None)
    kept = [other for other in others if by_thread.get(other.thread.id) is other]
    if not kept:
        return main.trace
    run = Trace(main.trace.identity, main.trace.path, RunSpans(main, kept))
    run.opened = main.trace.opened
    return run


def _named(problem: Problem, name: str) -> Problem:
    return Problem(f"{name} {problem.place}", problem.message)
