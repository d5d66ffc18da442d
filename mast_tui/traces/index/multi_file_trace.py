"""A run as one trace, read from the file of its main agent and the files of its sub-agents."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from threading import Lock
from typing import Final

from mast_tui.traces.byte_prefilter import Prefilter
from mast_tui.traces.index.lazy_span import relocated_span
from mast_tui.traces.index.span_table import ShapeNumbers
from mast_tui.traces.model import (
    Candidates,
    Loaded,
    Problem,
    Shape,
    Span,
    SpanColumns,
    Spans,
    Thread,
    Trace,
    TraceMeta,
)

_MOST_CANDIDATES: Final = 4096

_MOST_WATCHED_FILES: Final = 50
"""The most sub-agents whose files are checked for growth."""


@dataclass(slots=True, eq=False)
class MemberFile:
    """One file of a run, and the progress of merging it into the run.

    Attributes:
        thread: The thread in the file.
        trace: The trace of the file.
        name: The name of the file; in the run, the places of its spans begin with it.
        parent: The key of the call that began the thread; None if unknown.
        begun: True once spans of the file may be merged.
        run_indices: The index in the run of each merged span.
    """

    thread: Thread
    trace: Trace
    name: str
    parent: str | None = field(default=None, init=False)
    begun: bool = field(default=False, init=False)
    run_indices: array[int] = field(default_factory=lambda: array("Q"), init=False)


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


class RunSpans(Spans):
    """The merged spans of a run's main thread and of its sub-agents.

    A sub-agent's spans come before the result of the call that began it, or at the end if the call
    is unknown. The places of its spans begin with the name of its file.
    """

    def __init__(self, main: MemberFile, sub_agents: Iterable[MemberFile]) -> None:
        self._files = [main, *sub_agents]
        self._last_read_file = self._files[0]
        # Reversed, so that the first of two files with the same thread stays.
        self._by_thread = {file.thread.id: file for file in reversed(self._files)}
        self._file_numbers = array("Q")
        """The number of the file of each merged span."""
        self._inner_indices = array("Q")
        """The index of each merged span in its own file."""
        self._columns = ColumnsOfParts()
        self._merging_files = [0]
        """The numbers of the files that are being merged, as a stack: the main file, then the file
        of a sub-agent, then that of its own sub-agent, and so on."""
        self._files[0].begun = True
        self._finished = False
        self._merge_new_spans()

    @property
    def meta(self) -> TraceMeta:
        """The facts of the main thread."""
        return self._files[0].trace.meta

    @property
    def problems(self) -> Sequence[Problem]:
        """The problems of all files."""
        return tuple(
            problem
            if file is self._files[0]
            else Problem(f"{file.name} {problem.place}", problem.message)
            for file in self._files
            for problem in file.trace.problems
        )

    @property
    def loaded(self) -> Loaded:
        """The progress of reading all files together."""
        file_progresses = [file.trace.loaded for file in self._files]
        return Loaded(
            sum(loaded.done for loaded in file_progresses),
            sum(loaded.total for loaded in file_progresses),
            self._finished,
        )

    def __len__(self) -> int:
        return len(self._file_numbers)

    def span(self, index: int, /) -> Span:
        """Return the span at ``index``, with its index and place in the run."""
        file, inner_index = self._file_at(index)
        span = file.trace.span(inner_index)
        if file is not self._files[0]:
            location = f"{file.name} {span.place}"
            return relocated_span(span, index, location, span.parent or file.parent)
        if inner_index == index:
            return span
        return relocated_span(span, index, span.place, span.parent)

    def text(self, index: int, /) -> str:
        """Return the whole text of the span at ``index``."""
        file, inner_index = self._file_at(index)
        self._last_read_file = file
        return file.trace.text(inner_index)

    def source_lines(self, index: int, /) -> bytes | None:
        """Return the lines that hold the span, from the file of its thread."""
        file, inner_index = self._file_at(index)
        return file.trace.spans.source_lines(inner_index)

    def change_reason(self) -> str | None:
        """Return why a sub-agent's file has changed; None if it has not.

        Only the file of the last text is checked, because a run may have hundreds of files, and
        each displayed text causes a check.
        """
        if self._last_read_file is self._files[0]:
            return None  # ``Trace.change_reason`` checks the main file
        member = self._last_read_file
        reason = member.trace.change_reason()
        return None if reason is None else f"{member.name}: {reason}"

    def has_grown(self) -> bool:
        """Return whether the file of one of the first 50 sub-agents has grown."""
        watched_files = self._files[1 : 1 + _MOST_WATCHED_FILES]
        return any(file.trace.has_grown() for file in watched_files)

    def candidates(
        self, prefilter: Prefilter | None, begin: int, limit: int, max_bytes: int, /
    ) -> Candidates:
        """Return the texts in a slice of spans of one file that may match a search.

        Args:
            prefilter: The filter for the searched text; None for all texts.
            begin: The index of the first span.
            limit: The greatest index at which the slice may end.
            max_bytes: The approximate number of bytes to read.
        """
        number = self._file_numbers[begin]
        inner_index = self._inner_indices[begin]
        end_limit = min(limit, begin + _MOST_CANDIDATES)
        end = begin + 1
        while end < end_limit and self._file_numbers[end] == number:
            end += 1
        trace = self._files[number].trace
        inner_end, texts = trace.candidates(
            prefilter, inner_index, inner_index + end - begin, max_bytes
        )
        shift = begin - inner_index
        run_texts = ((index + shift, text) for index, text in texts)
        return Candidates(inner_end + shift, run_texts)

    def columns(self, first: int, end: int, /) -> SpanColumns:
        """Return the fields of a range of spans as columns.

        Args:
            first: The index of the first span.
            end: The index after the last span.
        """
        return self._columns.columns(first, self._file_columns(first, end))

    def _file_columns(self, first: int, end: int) -> Iterator[tuple[int, SpanColumns]]:
        """Yield the number of a file and the columns of its spans, for each range in one file."""
        for number, group in groupby(self._file_numbers[first:end]):
            length = len(list(group))
            inner_index = self._inner_indices[first]
            yield (
                number,
                self._files[number].trace.columns(inner_index, inner_index + length),
            )
            first += length

    def index_of(self, key: str, /) -> int | None:
        """Return the index of the span with this key; None if no such span is known yet."""
        for file in self._files:
            inner_index = file.trace.index_of(key)
            if inner_index is not None and inner_index < len(file.run_indices):
                return file.run_indices[inner_index]
        return None

    def advance(self, max_bytes: int, /) -> bool:
        """Read about ``max_bytes`` more of the file that is being merged.

        Return False if all files were read.
        """
        if self._finished:
            return False
        self._files[self._merging_files[-1]].trace.advance(max_bytes)
        self._merge_new_spans()
        return not self._finished

    def read_in_background(self) -> None:
        """Start another process that reads the file that is being merged, if its rest is long."""
        if not self._finished:
            self._files[self._merging_files[-1]].trace.spans.read_in_background()

    def stop_background_read(self) -> None:
        """Stop all other processes; ``advance`` then reads the rest."""
        for file in self._files:
            file.trace.spans.stop_background_read()

    def _merge_new_spans(self) -> None:
        """Merge the known spans of all files in the order of the run.

        Stop at a file that is not read completely; after the last file the run is finished.
        """
        while self._merging_files:
            number = self._merging_files[-1]
            if self._merge_up_to_sub_agent(number):
                continue  # with the spans of the sub-agent
            if not self._files[number].trace.loaded.complete:
                return
            self._merging_files.pop()
            if not self._merging_files:
                self._begin_uncalled_file()  # which puts it on the stack
        self._finished = True

    def _merge_up_to_sub_agent(self, number: int) -> bool:
        """Merge the spans of a file before the next sub-agent, and begin the sub-agent's file.

        Return False if all known spans are merged, and no sub-agent has begun.
        """
        file = self._files[number]
        trace = file.trace
        waiting_files = self._waiting_files_by_key(trace)
        for inner_index in range(len(file.run_indices), len(trace)):
            # Most traces have no sub-agents, and making spans only for their keys takes time.
            if waiting_files:
                span = trace.span(inner_index)
                sub_agent_file = waiting_files.get(span.key)
                if sub_agent_file is not None:
                    self._begin_file(sub_agent_file, span.parent)
                    return True
            file.run_indices.append(len(self._file_numbers))
            self._file_numbers.append(number)
            self._inner_indices.append(inner_index)
        return False

    def _waiting_files_by_key(self, trace: Trace) -> dict[str, int]:
        """Return the numbers of the files of a trace's sub-agents that are still to be merged.

        The key is that of the span before which the sub-agent's spans belong.
        """
        numbers_by_key = {}
        for thread, key in trace.spawned.items():
            file = self._by_thread.get(thread)
            if file is not None and not file.begun:
                numbers_by_key[key] = self._files.index(file)
        return numbers_by_key

    def _begin_file(self, number: int, parent: str | None) -> None:
        """Make a file the next to merge; ``parent`` is the call that began its thread."""
        file = self._files[number]
        file.begun = True
        file.parent = parent
        self._merging_files.append(number)

    def _begin_uncalled_file(self) -> None:
        """Begin the first file of a sub-agent whose call is in no file, if there is one."""
        unbegun = (number for number, file in enumerate(self._files) if not file.begun)
        number = next(unbegun, None)
        if number is not None:
            self._begin_file(number, None)

    def _file_at(self, index: int) -> tuple[MemberFile, int]:
        return self._files[self._file_numbers[index]], self._inner_indices[index]


def join_members(main: MemberFile, members: Sequence[MemberFile]) -> Trace:
    """Return the files of a run as one trace; of two files with the same thread, use the first.

    Args:
        main: The file of the main thread.
        members: The files of its sub-agents.
    """
    # Reversed, so that the first of two files with the same thread stays.
    by_thread = {member.thread.id: member for member in reversed(members)}
    by_thread.pop(main.thread.id, None)
    sub_agents = [member for member in members if by_thread.get(member.thread.id) is member]
    if not sub_agents:
        return main.trace
    run = Trace(main.trace.identity, main.trace.path, RunSpans(main, sub_agents))
    run.opened = main.trace.opened
    return run
