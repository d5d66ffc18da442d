"""The traces of a workspace whose files are on this machine, read to their end on request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock

from mast_tui.adjudication import SpanOrders
from mast_tui.gold import Order
from mast_tui.labels import Target
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace
from mast_tui.ui.wording import trace_names
from mast_tui.workspace import TraceRecord, Workspace


class TraceLoader:
    """Finds a trace by its id: among the open traces, or else in its file.

    A trace that a screen is still reading is read again here, because only one thread may advance
    it.
    """

    def __init__(self, workspace: Workspace, open_traces: Sequence[Trace]) -> None:
        self._workspace = workspace
        self._records: Mapping[str, TraceRecord] = {r.trace_id: r for r in workspace.traces()}
        self._names = trace_names(self._records.values())
        self._open: dict[str, list[Trace]] = {}
        for trace in open_traces:
            self._open.setdefault(trace.identity.trace_id, []).append(trace)
        self._read: dict[str, Trace | None] = {}
        self._lock = Lock()
        self.orders = SpanOrders(workspace, trace_of=self.read).load()
        """The orders of the spans; a lookup may read files, so it is for workers only."""

    def name_of(self, trace_id: str) -> str:
        """Return the name of a trace: that of the file it was last seen in, or else its id."""
        return self._names.get(trace_id, trace_id)

    def read(self, trace_id: str) -> Trace | None:
        """Return a trace, read to its end; None if it is not on this machine. Slow: for workers
        only.

        Raises:
            WorkspaceError: The workspace cannot be read.
        """
        with self._lock:
            if trace_id not in self._read:
                self._read[trace_id] = self._find(trace_id)
            return self._read[trace_id]

    def read_more(self, trace_ids: Iterable[str], limit: int, stopped: Callable[[], bool]) -> bool:
        """Read traces that were not read yet, so that their spans have numbers.

        Args:
            trace_ids: The traces; those that were read are skipped.
            limit: The most traces to read.
            stopped: Returns whether to stop.

        Returns:
            Whether a trace was read and the caller has not stopped.

        Raises:
            WorkspaceError: The workspace cannot be read.
        """
        missing = [trace_id for trace_id in dict.fromkeys(trace_ids) if not self.is_known(trace_id)]
        for trace_id in missing[:limit]:
            if stopped():
                return False
            self.read(trace_id)
        return bool(missing)

    def lacks_order(self, trace_id: str, targets: Iterable[Target]) -> bool:
        """Check if the order of some targets is not known yet.

        Args:
            trace_id: The trace.
            targets: Targets in it.
        """
        order = self.known_order(trace_id)
        keys = {key for target in targets for key in (target.first, target.last) if key is not None}
        return any(order(key) is None for key in keys)

    def is_known(self, trace_id: str) -> bool:
        """Check if it is known whether the trace is on this machine."""
        return trace_id in self._read

    def loaded(self, trace_id: str) -> Trace | None:
        """Return the trace if it was read already, or None."""
        return self._read.get(trace_id)

    def known_order(self, trace_id: str) -> Order:
        """Return the order of the spans as far as it is known; no file is read."""
        stored_order = self.orders.kept(trace_id)

        def order(key: str) -> int | None:
            index = stored_order(key)
            trace = self.loaded(trace_id)
            return trace.index_of(key) if index is None and trace is not None else index

        return order

    def _find(self, trace_id: str) -> Trace | None:
        """Find a trace among the open ones, or else in the file that the workspace has for it."""
        record = self._records.get(trace_id)
        names = {trace_id}
        if record is not None and record.identity is not None:
            names.add(record.identity.trace_id)
        for name in names:
            for trace in self._open.get(name, ()):
                if self._has_id(trace, trace_id):
                    complete = trace.loaded.complete
                    return trace if complete else self._read_from(trace.path, trace_id, trace)
        if record is None or record.path is None:
            return None
        return self._read_from(record.path, trace_id)

    def _read_from(self, path: Path, trace_id: str, previous: Trace | None = None) -> Trace | None:
        """Return the trace of a file; of several with this id, the one at the record of
        ``previous``.
        """
        for trace in read_file(path, named=True).traces:
            if (previous is None or trace.record == previous.record) and self._has_id(
                trace, trace_id
            ):
                read_fully(trace)
                return trace
        return None

    def _has_id(self, trace: Trace, trace_id: str) -> bool:
        record = self._records.get(trace_id)
        if record is not None and record.identity == trace.identity:
            return True
        stored = self._workspace.find_trace(TraceRecord.from_trace(trace))
        return stored is not None and stored.trace_id == trace_id
