"""The traces of a workspace with files on this machine, read to their end on request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock

from mast_tui.adjudication import SpanOrders
from mast_tui.gold import Order
from mast_tui.labels import Target
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace, TraceMasks
from mast_tui.ui.wording import trace_names
from mast_tui.workspace import TraceRecord, Workspace


class TraceLoader:
    """The traces of a workspace, found among the open traces or in their files.

    An incomplete open trace is read again from its file, because only one thread may advance it.
    The traces have the masks of the study.
    """

    def __init__(
        self,
        workspace: Workspace,
        open_traces: Sequence[Trace],
        masks: TraceMasks | None = None,
    ) -> None:
        self._masks = masks
        self._workspace = workspace
        self._record_by_id: Mapping[str, TraceRecord] = {r.trace_id: r for r in workspace.traces()}
        self._name_by_id = trace_names(self._record_by_id.values())
        self._open_traces_by_id: dict[str, list[Trace]] = {}
        for trace in open_traces:
            same_id_traces = self._open_traces_by_id.setdefault(trace.identity.trace_id, [])
            same_id_traces.append(trace.with_masks(masks))
        self._trace_by_id: dict[str, Trace | None] = {}
        self._lock = Lock()
        self.orders = SpanOrders(workspace, trace_of=self.read).load()
        """The orders of the spans.

        A lookup may read files, so it belongs in workers.
        """

    def name_of(self, trace_id: str) -> str:
        """Return the last known file name of a trace, or else the trace's id."""
        return self._name_by_id.get(trace_id, trace_id)

    def read(self, trace_id: str) -> Trace | None:
        """Return a trace with all its spans, or None if it is not on this machine.

        The first call for a trace is slow, so make it in a worker.

        Raises:
            WorkspaceError: The workspace cannot be read.
        """
        with self._lock:
            if trace_id not in self._trace_by_id:
                self._trace_by_id[trace_id] = self._find_trace(trace_id)
            return self._trace_by_id[trace_id]

    def read_more(self, trace_ids: Iterable[str], limit: int, stopped: Callable[[], bool]) -> bool:
        """Read traces that were not read yet, so that their spans have numbers.

        Args:
            trace_ids: The ids of the traces.
            limit: The most traces to read.
            stopped: Returns whether to stop.

        Returns:
            False if ``stopped`` returned True, or no trace was unread.

        Raises:
            WorkspaceError: The workspace cannot be read.
        """
        unread_ids = [
            trace_id for trace_id in dict.fromkeys(trace_ids) if not self.was_read(trace_id)
        ]
        for trace_id in unread_ids[:limit]:
            if stopped():
                return False
            self.read(trace_id)
        return bool(unread_ids)

    def lacks_order(self, trace_id: str, targets: Iterable[Target]) -> bool:
        """Return whether a span of a target has no known position in the trace.

        Args:
            trace_id: The id of the trace.
            targets: Targets in the trace.
        """
        order = self.known_order(trace_id)
        keys = {key for target in targets for key in (target.first, target.last) if key is not None}
        return any(order(key) is None for key in keys)

    def was_read(self, trace_id: str) -> bool:
        """Return whether ``read`` was called for a trace."""
        return trace_id in self._trace_by_id

    def loaded(self, trace_id: str) -> Trace | None:
        """Return a trace that was read already, or None."""
        return self._trace_by_id.get(trace_id)

    def known_order(self, trace_id: str) -> Order:
        """Return the order of a trace's spans, without reading files.

        It returns None for a span with unknown position.
        """
        stored_order = self.orders.stored_order(trace_id)

        def order(key: str) -> int | None:
            index = stored_order(key)
            trace = self.loaded(trace_id)
            return trace.index_of(key) if index is None and trace is not None else index

        return order

    def _find_trace(self, trace_id: str) -> Trace | None:
        """Return a trace from the open traces, or else from its recorded file, or None."""
        record = self._record_by_id.get(trace_id)
        # The id in the workspace may differ from the id in the file.
        possible_ids = {trace_id}
        if record is not None and record.identity is not None:
            possible_ids.add(record.identity.trace_id)
        for possible_id in possible_ids:
            for trace in self._open_traces_by_id.get(possible_id, ()):
                if self._has_id(trace, trace_id):
                    if trace.loaded.complete:
                        return trace
                    return self._read_from(trace.path, trace_id, trace)
        if record is None or record.path is None:
            return None
        return self._read_from(record.path, trace_id)

    def _read_from(self, path: Path, trace_id: str, previous: Trace | None = None) -> Trace | None:
        """Return a trace from a file, read to its end, or None if it is not in the file.

        Args:
            path: The file.
            trace_id: The id of the trace in the workspace.
            previous: An earlier reading; the trace must have the same record number. None for any
                record.
        """
        for trace in read_file(path, named=True).traces:
            is_same_record = previous is None or trace.record == previous.record
            if is_same_record and self._has_id(trace, trace_id):
                read_fully(trace)
                return trace.with_masks(self._masks)
        return None

    def _has_id(self, trace: Trace, trace_id: str) -> bool:
        """Return whether a trace has an id in the workspace, which may differ from its own id."""
        record = self._record_by_id.get(trace_id)
        if record is not None and record.identity == trace.identity:
            return True
        stored_record = self._workspace.find_trace(TraceRecord.from_trace(trace))
        return stored_record is not None and stored_record.trace_id == trace_id
