"""The traces under the paths of the command line, in the order in which they were found."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from msgspec import Struct, field

from mast_tui.traces.model import FileReport, Trace, TraceMasks

READ_AT_ONCE: Final = 1 << 20
"""The largest file that is read completely before its screen is shown, in bytes."""


class FileProblem(NamedTuple):
    """A file, or a part of a file, that was not read."""

    path: str
    place: str
    message: str

    @property
    def text(self) -> str:
        """File, place and message in one line. They are foreign text."""
        return ": ".join(part for part in (self.path, self.place, self.message) if part)


class Catalog(Struct):
    """The traces under the paths, and the files that were skipped or could not be read.

    The listed traces have no spans; ``opened`` returns a trace with spans.

    Attributes:
        traces: The traces, by id.
        changes: The ids of added, changed and removed traces, in order. A screen remembers how many
            of them it has shown.
        troubles: The unreadable files, and the broken parts of other files.
        unreadable: The files without any readable part.
        skipped: The files that are no traces, and add nothing to traces.
        looked_at: The number of files that were read.
        total: The number of files known so far.
        checking: Whether traces of the last scan are still to be checked.
        being_read: The name of a big document that is being read, with the progress.
        complete: Whether all files were read.
        masks: The masks over the texts of all traces; None if the study masks nothing.
    """

    traces: dict[str, Trace] = {}
    changes: list[str] = []
    troubles: list[FileProblem] = []
    unreadable: list[FileProblem] = []
    skipped: list[FileProblem] = []
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
        if report.skipped is not None and not report.is_used:
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
            new_reading: The new reading of its file.
        """
        trace_id = trace.identity.trace_id
        new_id = new_reading.identity.trace_id
        if trace_id != new_id:
            self.remove((trace_id,))
        # The catalog holds a copy without spans, and only a weak reference to the new reading.
        self.add_traces((new_reading.anew(),))
        self._open[new_id] = new_reading

    def remove(self, trace_ids: Iterable[str]) -> None:
        """Remove traces that no longer exist."""
        for trace_id in trace_ids:
            if self.traces.pop(trace_id, None) is not None:
                self.changes.append(trace_id)

    def opened(self, trace: Trace) -> Trace:
        """Return a copy of a listed trace with readable spans.

        A copy that is still in use is returned again, unless its file has changed. A new copy of a
        small file is read completely. The catalog holds only the last copy, which frees the memory
        of others. A trace that is not listed is returned unchanged.
        """
        trace_id = trace.identity.trace_id
        if self.traces.get(trace_id) is not trace:
            return trace
        opened_trace = self._open.get(trace_id)
        if opened_trace is None or opened_trace.change_reason() is not None:
            opened_trace = trace.anew()
            # ``anew`` returns the trace itself if it was complete when it was added.
            if opened_trace is not trace:
                if _is_small(opened_trace):
                    opened_trace.advance()
                self._open[trace_id] = opened_trace
        self._last_opened = opened_trace
        return opened_trace

    def learn(self) -> None:
        """Update listed traces if a screen has read more of them."""
        for trace_id, opened_trace in list(self._open.items()):
            without_spans = opened_trace.anew()
            listed_trace = self.traces.get(trace_id)
            if listed_trace is None or opened_trace.identity.trace_id != trace_id:
                continue
            if without_spans.summary != listed_trace.summary:
                self.traces[trace_id] = without_spans
                self.changes.append(trace_id)


class OneByOne(Collection[Trace]):
    """Traces for a judge, without masks, that are read one after the other.

    Their spans are not kept.
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
    """Return whether a file is read before its screen is shown."""
    try:
        size = trace.path.stat().st_size
    except OSError:
        return True  # reading the trace shows the error
    # The total includes the other files of a trace in several files.
    return max(size, trace.loaded.total) <= READ_AT_ONCE
