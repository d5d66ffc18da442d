"""The traces that were found under the paths given, in the order in which they were found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, overload
from weakref import WeakValueDictionary

from mast_tui.traces.model import FileReport, Trace

READ_AT_ONCE: Final = 1 << 20
"""Bytes of a trace's file up to which it is read before its screen is shown."""


class FileProblem(NamedTuple):
    """A file that could not be read or was passed over, or a part of one."""

    path: str
    place: str
    message: str

    @property
    def words(self) -> str:
        """File, place and message in one line; foreign text."""
        return ": ".join(part for part in (self.path, self.place, self.message) if part)


@dataclass(slots=True)
class Catalog:
    """Traces by id, files that were skipped, and what could not be read.

    ``unreadable`` are the files of which nothing could be read, ``troubles`` those and the broken
    parts of others. ``looked_at`` of ``total`` things under the paths have been seen so far; while
    ``checking``, the other traces are those of the last look. ``being_read`` names a big document
    that another process reads, and says how far it is. ``changes`` are the ids of traces
    that came, changed or went, in that order; whoever lists traces remembers how far it has come.

    Traces of many files have no spans here: ``opened`` gives one that can be read, and whoever
    reads it keeps it.
    """

    traces: dict[str, Trace] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    troubles: list[FileProblem] = field(default_factory=list)
    unreadable: list[FileProblem] = field(default_factory=list)
    skipped: list[FileProblem] = field(default_factory=list)
    looked_at: int = 0
    total: int = 0
    checking: bool = False
    being_read: str = ""
    complete: bool = False
    _open: WeakValueDictionary[str, Trace] = field(default_factory=WeakValueDictionary)
    _opened_last: Trace | None = None

    def add(self, report: FileReport) -> None:
        """Take in what came of one file."""
        name = report.path.name
        self.looked_at += 1
        if report.skipped is not None:
            self.skipped.append(FileProblem(name, "", report.skipped))
        if report.failed is not None:
            trouble = FileProblem(name, "", report.failed)
            self.unreadable.append(trouble)
            self.troubles.append(trouble)
        self.troubles += [FileProblem(name, p.place, p.message) for p in report.problems]
        self.add_traces(report.traces)

    def add_traces(self, traces: Iterable[Trace]) -> None:
        """Take in traces, each in the place of one with its id that is there already."""
        for trace in traces:
            trace_id = trace.identity.trace_id
            self.traces[trace_id] = trace
            self.changes.append(trace_id)
            self._open.pop(trace_id, None)

    def renew(self, trace: Trace, fresh: Trace) -> None:
        """Have another reading of its file in the place of a trace."""
        trace_id, fresh_id = trace.identity.trace_id, fresh.identity.trace_id
        if trace_id != fresh_id:
            self.remove((trace_id,))
        self.add_traces((fresh.anew(),))
        self._open[fresh_id] = fresh

    def remove(self, trace_ids: Iterable[str]) -> None:
        """Forget traces that are no more."""
        for trace_id in trace_ids:
            if self.traces.pop(trace_id, None) is not None:
                self.changes.append(trace_id)

    def opened(self, trace: Trace) -> Trace:
        """A trace of this catalog to read from: the one that is open, where it is.

        It takes the memory that its spans need until nobody holds it any more; only the one that
        was opened last is held here. Where its file is small it has been read already; where it is
        another one by now it is read anew.
        """
        trace_id = trace.identity.trace_id
        if self.traces.get(trace_id) is not trace:
            return trace
        found = self._open.get(trace_id)
        if found is None or found.changed() is not None:
            found = trace.anew()
            if found is not trace:
                if _is_small(found):
                    found.advance()
                self._open[trace_id] = found
        self._opened_last = found
        return found

    def learn(self) -> None:
        """Take in what reading an open trace has told of it."""
        for trace_id, found in list(self._open.items()):
            known, before = found.anew(), self.traces.get(trace_id)
            if before is None or found.identity.trace_id != trace_id:
                continue
            if known.summary != before.summary:
                self.traces[trace_id] = known
                self.changes.append(trace_id)


class OneByOne(Sequence[Trace]):
    """Traces of a catalog to be read one after the other, of which none keeps what was read."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self._traces = traces

    def __len__(self) -> int:
        return len(self._traces)

    @overload
    def __getitem__(self, place: int) -> Trace: ...
    @overload
    def __getitem__(self, place: slice) -> OneByOne: ...
    def __getitem__(self, place: int | slice) -> Trace | OneByOne:
        if isinstance(place, slice):
            return OneByOne(self._traces[place])
        return self._traces[place].anew()

    def __iter__(self) -> Iterator[Trace]:
        return (trace.anew() for trace in self._traces)


def _is_small(trace: Trace) -> bool:
    """Whether reading it takes no longer than a key press may."""
    try:
        size = trace.path.stat().st_size
    except OSError:
        return True
    return max(size, trace.loaded.total) <= READ_AT_ONCE
