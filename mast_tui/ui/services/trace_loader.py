"""Traces of a workspace whose files are on this machine, read to their end when asked for."""

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
    """Finds a trace by its id in the workspace: among those that are open, else in its file.

    A trace that a screen is still reading is read anew here, as only one thread may advance it.
    """

    def __init__(self, workspace: Workspace, known: Sequence[Trace]) -> None:
        self._workspace = workspace
        self._records: Mapping[str, TraceRecord] = {r.trace_id: r for r in workspace.traces()}
        self._names = trace_names(self._records.values())
        self._open: dict[str, list[Trace]] = {}
        for trace in known:
            self._open.setdefault(trace.identity.trace_id, []).append(trace)
        self._found: dict[str, Trace | None] = {}
        self._lock = Lock()
        self.orders = SpanOrders(workspace, trace_of=self.read).load()
        """The orders of the spans; asking may read files, so for workers only."""

    def name_of(self, trace_id: str) -> str:
        """What a trace goes by: the file it was last seen in, else its id."""
        return self._names.get(trace_id, trace_id)

    def read(self, trace_id: str) -> Trace | None:
        """The trace, read to its end; None where it is not here. Slow: for workers only.

        Raises ``WorkspaceError``.
        """
        with self._lock:
            if trace_id not in self._found:
                self._found[trace_id] = self._look_for(trace_id)
            return self._found[trace_id]

    def read_more(self, trace_ids: Iterable[str], most: int, stopped: Callable[[], bool]) -> bool:
        """Read traces that were not looked for yet, so that places in them go by their numbers.

        Args:
            trace_ids: The traces; those that are known are passed over.
            most: How many are read.
            stopped: Whether nobody waits for them any more.

        Returns:
            Whether there was one to read, and somebody still waits.

        Raises:
            WorkspaceError: The workspace could not be asked which trace it is.
        """
        wanted = [one for one in dict.fromkeys(trace_ids) if not self.is_known(one)]
        for trace_id in wanted[:most]:
            if stopped():
                return False
            self.read(trace_id)
        return bool(wanted)

    def lacks_order(self, trace_id: str, targets: Iterable[Target]) -> bool:
        """Whether it is not known yet where some of these targets stand."""
        order = self.known_order(trace_id)
        keys = {key for one in targets for key in (one.first, one.last) if key is not None}
        return any(order(key) is None for key in keys)

    def is_known(self, trace_id: str) -> bool:
        """Whether it has been settled if the trace is here."""
        return trace_id in self._found

    def known(self, trace_id: str) -> Trace | None:
        """The trace where it has been read already."""
        return self._found.get(trace_id)

    def known_order(self, trace_id: str) -> Order:
        """The order of a trace's spans as far as it is known already; no file is read for it."""
        kept = self.orders.kept(trace_id)

        def order(key: str) -> int | None:
            index = kept(key)
            trace = self.known(trace_id)
            return trace.index_of(key) if index is None and trace is not None else index

        return order

    def _look_for(self, trace_id: str) -> Trace | None:
        record = self._records.get(trace_id)
        names = {trace_id}
        if record is not None and record.identity is not None:
            names.add(record.identity.trace_id)
        for name in names:
            for trace in self._open.get(name, ()):
                if self._is(trace, trace_id):
                    complete = trace.loaded.complete
                    return trace if complete else self._read_from(trace.path, trace_id, trace)
        if record is None or record.path is None:
            return None
        return self._read_from(record.path, trace_id)

    def _read_from(self, path: Path, trace_id: str, anew: Trace | None = None) -> Trace | None:
        """The trace of a file; of several with this id the one that is read ``anew``."""
        for trace in read_file(path, named=True).traces:
            if (anew is None or trace.record == anew.record) and self._is(trace, trace_id):
                read_fully(trace)
                return trace
        return None

    def _is(self, trace: Trace, trace_id: str) -> bool:
        record = self._records.get(trace_id)
        if record is not None and record.identity == trace.identity:
            return True
        known = self._workspace.find_trace(TraceRecord.of(trace))
        return known is not None and known.trace_id == trace_id
