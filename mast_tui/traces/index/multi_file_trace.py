"""A run whose sub-agents have files of their own, as one trace."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from mast_tui.traces.byte_prefilter import Prefilter
from mast_tui.traces.index.lazy_span import relocated_span
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
"""The number of sub-agents whose files are watched for growth."""


@dataclass(frozen=True, slots=True)
class MemberFile:
    """One file of a run: the thread it holds, its trace, and its name as places show it."""

    thread: Thread
    trace: Trace
    name: str


@dataclass(slots=True)
class _Progress:
    """The progress of a member, a file of the run, in being merged into the run.

    ``places`` has the index in the run of each merged span; ``parent`` is the key of the call that
    began the member.
    """

    member: MemberFile
    parent: str | None = None
    begun: bool = False
    places: array[int] = field(default_factory=lambda: array("Q"))


class RunSpans(Spans):
    """The spans of a run's main thread with those of its sub-agents where they were at work.

    A sub-agent's spans come before the span that its spawner names, which is the result of the
    call that began it; one that is named nowhere comes at the end. Places of sub-agents' spans
    begin with the file's name.
    """

    def __init__(self, main: MemberFile, sub_agents: Iterable[MemberFile]) -> None:
        self._files = [_Progress(main), *(_Progress(other) for other in sub_agents)]
        self._read_last = self._files[0]
        self._by_thread = {
            progress.member.thread.id: progress for progress in reversed(self._files)
        }
        self._order = array("Q")
        self._inner = array("Q")
        self._columns = ColumnsOfParts()
        self._stack = [0]
        self._files[0].begun = True
        self._finished = False
        self._merge_new_spans()

    @property
    def meta(self) -> TraceMeta:
        """The metadata of the main thread."""
        return self._files[0].member.trace.meta

    @property
    def problems(self) -> Sequence[Problem]:
        """The problems of all files."""
        return tuple(
            problem
            if progress is self._files[0]
            else _problem_in_file(problem, progress.member.name)
            for progress in self._files
            for problem in progress.member.trace.problems
        )

    @property
    def loaded(self) -> Loaded:
        """The progress of the indices of all files together."""
        each = [progress.member.trace.loaded for progress in self._files]
        return Loaded(
            sum(loaded.done for loaded in each),
            sum(loaded.total for loaded in each),
            self._finished,
        )

    def __len__(self) -> int:
        return len(self._order)

    def span(self, index: int, /) -> Span:
        """Return the span at ``index``, under its index in the run."""
        progress, inner = self._member_at(index)
        span = progress.member.trace.span(inner)
        if progress is self._files[0]:
            return span if inner == index else relocated_span(span, index, span.place, span.parent)
        return relocated_span(
            span, index, f"{progress.member.name} {span.place}", span.parent or progress.parent
        )

    def text(self, index: int, /) -> str:
        """Return the whole text of the span at ``index``."""
        progress, inner = self._member_at(index)
        self._read_last = progress
        return progress.member.trace.text(inner)

    def source_lines(self, index: int, /) -> bytes | None:
        """Return the lines of its file that hold the span."""
        progress, inner = self._member_at(index)
        return progress.member.trace.spans.source_lines(inner)

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
        """Return whether the file of a sub-agent has grown."""
        return any(progress.member.trace.has_grown() for progress in self._files[1 : 1 + _WATCHED])

    def candidates(
        self, prefilter: Prefilter | None, begin: int, limit: int, max_bytes: int, /
    ) -> Candidates:
        """Return the texts that may hold a needle, up to the end of one file's consecutive spans.

        Args:
            prefilter: The filter for the needle; None for all texts.
            begin: The first span.
            limit: The span after the last.
            max_bytes: About how much of the source to read.
        """
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
        """Return columns of spans.

        Args:
            first: The first span.
            end: The span after the last.
        """
        return self._columns.columns(first, self._parts(first, end))

    def _parts(self, first: int, end: int) -> Iterator[tuple[int, SpanColumns]]:
        """Yield the columns of each stretch of one file's spans, with the number of the file."""
        for number, stretch in groupby(self._order[first:end]):
            length = len(list(stretch))
            inner = self._inner[first]
            yield number, self._files[number].member.trace.columns(inner, inner + length)
            first += length

    def index_of(self, key: str, /) -> int | None:
        """Return the index of the span with this key, or None if no such span is known (yet)."""
        for progress in self._files:
            inner = progress.member.trace.index_of(key)
            if inner is not None and inner < len(progress.places):
                return progress.places[inner]
        return None

    def advance(self, max_bytes: int, /) -> bool:
        """Read about ``max_bytes`` more of the file whose turn it is; False when all is read."""
        if self._finished:
            return False
        self._files[self._stack[-1]].member.trace.advance(max_bytes)
        self._merge_new_spans()
        return not self._finished

    def read_in_background(self) -> None:
        """Have other processes read the biggest of the files, one after the other."""
        if not self._finished:
            self._files[self._stack[-1]].member.trace.spans.read_in_background()

    def stop_background_read(self) -> None:
        """Stop all background reads; the rest is read here."""
        for progress in self._files:
            progress.member.trace.spans.stop_background_read()

    def _merge_new_spans(self) -> None:
        """Merge every span that is known and whose turn has come."""
        while self._stack:
            number = self._stack[-1]
            progress = self._files[number]
            trace = progress.member.trace
            awaited = self._awaited(trace)
            while len(progress.places) < len(trace):
                inner = len(progress.places)
                child = awaited.pop(trace.span(inner).key, None) if awaited else None
                if child is not None:
                    self._begin(child, trace.span(inner).parent)
                    break
                progress.places.append(len(self._order))
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
        """Return the sub-agents that have not begun, by the key of the span they precede."""
        awaited = {}
        for thread, key in trace.spawned.items():
            progress = self._by_thread.get(thread)
            if progress is not None and not progress.begun:
                awaited[key] = self._files.index(progress)
        return awaited

    def _begin(self, number: int, parent: str | None) -> None:
        progress = self._files[number]
        progress.begun = True
        progress.parent = parent
        self._stack.append(number)

    def _begin_unnamed(self) -> None:
        """Begin the first sub-agent that no other thread names."""
        waiting = (number for number, progress in enumerate(self._files) if not progress.begun)
        number = next(waiting, None)
        if number is not None:
            self._begin(number, None)

    def _member_at(self, index: int) -> tuple[_Progress, int]:
        return self._files[self._order[index]], self._inner[index]


def join_members(main: MemberFile, members: Sequence[MemberFile]) -> Trace:
    """Join the files of a run to one trace; a thread that is there twice is used once.

    Args:
        main: The file of the main thread.
        members: The files of its sub-agents.
    """
    by_thread = {member.thread.id: member for member in reversed(members)}
    by_thread.pop(main.thread.id, None)
    sub_agents = [member for member in members if by_thread.get(member.thread.id) is member]
    if not sub_agents:
        return main.trace
    run = Trace(main.trace.identity, main.trace.path, RunSpans(main, sub_agents))
    run.opened = main.trace.opened
    return run


def _problem_in_file(problem: Problem, name: str) -> Problem:
    return Problem(f"{name} {problem.place}", problem.message)
