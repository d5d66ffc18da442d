"""The traces under the paths of the command line, in the order in which they were found."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from mast_tui.traces.model import FileReport, Trace, TraceMasks

READ_AT_ONCE: Final = 1 << 20
"""The size up to which a file is read before its screen is shown."""


class FileProblem(NamedTuple):
    """A file, or a part of one, that was not read."""

    path: str
    place: str
    message: str

    @property
    def text(self) -> str:
        """File, place and message in one line; foreign text."""
        return ": ".join(part for part in (self.path, self.place, self.message) if part)


@dataclass(slots=True)
class Catalog:
    """The traces under the paths, and the files that were skipped or could not be read.

    The traces of a catalog have no spans; ``opened`` returns a trace whose spans can be read.

    Attributes:
        traces: The traces, by id.
        changes: The ids of the traces that were added, changed or removed, in this order. A screen
            remembers how many of them it has shown.
        troubles: The problems: the unreadable files, and the broken parts of other files.
        unreadable: The files of which nothing could be read.
        skipped: The files that are no traces.
        looked_at: The number of files that were read.
        total: The number of files known so far.
        checking: Whether some traces are from the last scan and are still to be checked.
        being_read: The name of a big document that is being read, and how much of it was read.
        complete: Whether all files were read.
        masks: The masks over the texts of all traces; None if the study masks nothing.
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
    masks: TraceMasks | None = None
    _open: WeakValueDictionary[str, Trace] = field(default_factory=WeakValueDictionary)
    _last_opened: Trace | None = None

    def add(self, report: FileReport) -> None:
        """Add the result of reading one file."""
        name = report.path.name
        self.looked_at += 1
        if report.skipped is not None:
            self.skipped.append(FileProblem(name, place="", message=report.skipped))
        if report.failed is not None:
            problem = FileProblem(name, place="", message=report.failed)
            self.unreadable.append(problem)
            self.troubles.append(problem)
        self.troubles += [FileProblem(name, p.place, p.message) for p in report.problems]
        self.add_traces(report.traces)

    def add_traces(self, traces: Iterable[Trace]) -> None:
        """Add traces; each replaces a trace with the same id."""
        for trace in traces:
            trace_id = trace.identity.trace_id
            self.traces[trace_id] = trace.with_masks(self.masks)
            self.changes.append(trace_id)
            self._open.pop(trace_id, None)

    def mask(self, masks: TraceMasks | None) -> None:
        """Put masks over the texts of all traces; None removes them."""
        self.masks = masks
        self._last_opened = None
        self.add_traces(list(self.traces.values()))

    def renew(self, trace: Trace, new_reading: Trace) -> None:
        """Replace a trace by another reading of its file.

        Args:
            trace: The trace.
            new_reading: The new reading.
        """
        trace_id = trace.identity.trace_id
        new_id = new_reading.identity.trace_id
        if trace_id != new_id:
            self.remove((trace_id,))
        # The catalog keeps a copy without spans, and only a weak reference to the reading.
        self.add_traces((new_reading.anew(),))
        self._open[new_id] = new_reading

    def remove(self, trace_ids: Iterable[str]) -> None:
        """Remove traces that do not exist any more."""
        for trace_id in trace_ids:
            if self.traces.pop(trace_id, None) is not None:
                self.changes.append(trace_id)

    def opened(self, trace: Trace) -> Trace:
        """Return a copy of a listed trace that can read its spans.

        The traces in the catalog have no spans. A copy that is still in use is returned again,
        unless its file has changed. A new copy of a small file is read at once. The catalog itself
        holds only the copy that was opened last, so that the memory of others is freed. A trace
        that is not in the catalog is returned as it is.
        """
        trace_id = trace.identity.trace_id
        if self.traces.get(trace_id) is not trace:
            return trace
        opened_trace = self._open.get(trace_id)
        if opened_trace is None or opened_trace.change_reason() is not None:
            opened_trace = trace.anew()
            # ``anew`` returns the trace itself if it was read completely before it was added.
            if opened_trace is not trace:
                if _is_small(opened_trace):
                    opened_trace.advance()
                self._open[trace_id] = opened_trace
        self._last_opened = opened_trace
        return opened_trace

    def learn(self) -> None:
        """Update the listed traces whose summaries have changed since a screen opened them."""
        for trace_id, opened_trace in list(self._open.items()):
            without_spans = opened_trace.anew()
            listed_trace = self.traces.get(trace_id)
            if listed_trace is None or opened_trace.identity.trace_id != trace_id:
                continue
            if without_spans.summary != listed_trace.summary:
                self.traces[trace_id] = without_spans
                self.changes.append(trace_id)


class OneByOne(Collection[Trace]):
    """Traces of a catalog for a judge, without masks, to be read one after the other.

    None keeps its spans afterwards.
    """

    def __init__(self, traces: Collection[Trace]) -> None:
        self._traces = traces

    def __len__(self) -> int:
        return len(self._traces)

    def __contains__(self, trace: object) -> bool:
        return trace in self._traces

    def __iter__(self) -> Iterator[Trace]:
        return (trace.anew().with_masks(None) for trace in self._traces)


def _is_small(trace: Trace) -> bool:
    """Return whether the file is small enough to be read before its screen is shown."""
    try:
        size = trace.path.stat().st_size
    except OSError:
        return True  # reading the trace shows the error
    # A trace may be in several files, which only the total counts.
    return max(size, trace.loaded.total) <= READ_AT_ONCE
