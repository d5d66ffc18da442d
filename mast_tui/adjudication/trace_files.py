"""The traces of a workspace, read from their files, and the order of their spans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path

from mast_tui.errors import MastError, WorkspaceError
from mast_tui.figures.source.spans import UnknownSpan
from mast_tui.gold import Order
from mast_tui.parallel import LostItem, Workers, each
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Named, Trace
from mast_tui.traces.trials import trial_facts
from mast_tui.workspace.records import SpanIndex, TraceRecord, indices_in, missing_indices
from mast_tui.workspace.store import Workspace

OrderOf = Callable[[str], Order]
"""The order of the spans of a trace, by its id."""

TraceOf = Callable[[str], Trace | None]
"""A trace by its id, read to its end; None where it is not at hand."""


def traces_from_files(workspace: Workspace, open_traces: Sequence[Trace] = ()) -> TraceOf:
    """Return the workspace's traces, each read from its file when it is asked for.

    ``open_traces`` are traces that are read already. A trace whose file has gone, cannot be read or
    holds something else now is not at hand. The file read last is kept, so ask for the traces of
    one file one after the other. Asking raises ``WorkspaceError``.

    Args:
        workspace: The workspace.
        open_traces: The traces that are read already.
    """
    paths = {record.trace_id: record.path for record in workspace.traces()}
    at_hand = {trace.identity.trace_id: trace for trace in open_traces}

    @lru_cache(maxsize=1)
    def in_file(path: Path) -> dict[str, Trace]:
        """Return the traces of a file by the ids that they have in the workspace."""
        by_id = {}
        for trace in read_file(path, named=True).traces:
            record = workspace.find_trace(TraceRecord.from_trace(trace))
            if record is not None:
                by_id[record.trace_id] = trace
        return by_id

    def trace_of(trace_id: str) -> Trace | None:
        trace = at_hand.get(trace_id)
        path = paths.get(trace_id)
        if trace is None and path is not None:
            trace = in_file(path).get(trace_id)
        if trace is not None:
            read_fully(trace)
        return trace

    return trace_of


def scores_from_files(workspace: Workspace) -> Callable[[str], Named]:
    """Return a function for the scores in the answer key of a trace, by the id of the trace.

    Of a trial in several files the scores are those of the trial's folder.
    """
    paths = {record.trace_id: record.path for record in workspace.traces()}
    trace_of = traces_from_files(workspace)

    def scores_of(trace_id: str) -> Named:
        path = paths.get(trace_id)
        facts = None if path is None else trial_facts(path)
        if facts is None:
            trace = trace_of(trace_id)
            facts = None if trace is None else trace.meta
        return () if facts is None else facts.answer_key.scores

    return scores_of


class SpanOrders:
    """The order of the spans of a workspace's traces, and the lengths of texts with quotes.

    An instance is an ``OrderOf``. Both are kept in the workspace. Only where something is missing
    there is the file of the trace read, and what it says is kept for the next time. May be used
    from any thread.
    """

    def __init__(
        self,
        workspace: Workspace,
        open_traces: Sequence[Trace] = (),
        *,
        trace_of: TraceOf | None = None,
    ) -> None:
        """Prepare it; nothing is read before something is asked.

        Args:
            workspace: The workspace.
            open_traces: Traces that are read already.
            trace_of: Reads a trace from its file; by default as ``traces_from_files`` does.
        """
        self._workspace = workspace
        self._open_traces = open_traces
        self._trace_of = trace_of
        self._stored: dict[str, dict[str, SpanIndex]] | None = None
        self._records: Mapping[str, TraceRecord] | None = None
        self._unread: set[str] = set()
        """The traces whose files are not at hand."""

    def __call__(self, trace_id: str) -> Order:
        """Return the order of a trace's spans: None for a span whose index is not known."""
        return partial(self._index, trace_id)

    def load(self) -> SpanOrders:
        """Read what the workspace keeps now, so that ``kept`` need not."""
        self._all_stored()
        return self

    def kept(self, trace_id: str) -> Order:
        """Return the order of a trace's spans as the workspace keeps it; no file is read."""
        indices = self._all_stored().get(trace_id, {})

        def order(key: str) -> int | None:
            span_index = indices.get(key)
            return None if span_index is None else span_index.index

        return order

    def spans_of(self, trace_id: str) -> tuple[Order, int] | None:
        """Return the order of a trace's spans and their number; None where that is not known.

        The order raises ``UnknownSpan`` for a span of which nobody knows where it stands.
        """
        record = self._record(trace_id)
        spans = None if record is None else record.spans
        if spans is None:
            trace = self._read(trace_id)
            if trace is None:
                return None
            spans = len(trace)
        # A trace that has grown may have been counted before its last labels were made.
        indices = self._all_stored().get(trace_id, {}).values()
        ends = (span_index.index + 1 for span_index in indices if span_index.index is not None)
        return partial(self._index_or_raise, trace_id), max(spans, *ends, 0)

    def length_of(self, trace_id: str, key: str) -> int | None:
        """Return how many code points the text of a span has; None where that is not known.

        Args:
            trace_id: The trace's id.
            key: The span's key.
        """
        span_index = self._find(trace_id, key, with_length=True)
        return None if span_index is None else span_index.text_chars

    def _index(self, trace_id: str, key: str) -> int | None:
        span_index = self._find(trace_id, key)
        return None if span_index is None else span_index.index

    def _index_or_raise(self, trace_id: str, key: str) -> int | None:
        span_index = self._find(trace_id, key)
        if span_index is None:
            raise UnknownSpan(key)
        return span_index.index

    def _find(self, trace_id: str, key: str, *, with_length: bool = False) -> SpanIndex | None:
        keys = {key: with_length}
        indices = self._all_stored().setdefault(trace_id, {})
        if missing_indices(keys, indices) and trace_id not in self._unread:
            # Kept meanwhile, by this program or another.
            indices |= self._workspace.span_indices(trace_id).get(trace_id, {})
            if missing_indices(keys, indices):
                indices |= self._indices_in_file(trace_id, keys)
        return indices.get(key)

    def _all_stored(self) -> dict[str, dict[str, SpanIndex]]:
        if self._stored is None:
            self._stored = self._workspace.span_indices()
        return self._stored

    def _indices_in_file(self, trace_id: str, keys: Mapping[str, bool]) -> dict[str, SpanIndex]:
        """Return the indices of the wanted spans, and of all that events refer to."""
        trace = self._read(trace_id)
        if trace is None:
            return {}
        return indices_in(trace, {**self._workspace.referred_spans(trace_id), **keys})

    def _read(self, trace_id: str) -> Trace | None:
        """Read a trace from its file, and keep what is missing in the workspace."""
        if self._trace_of is None:
            self._trace_of = traces_from_files(self._workspace, self._open_traces)
        trace = self._trace_of(trace_id)
        if trace is None:
            self._unread.add(trace_id)
            return None
        # What is kept spares the next reader the file; without it the figures are the same.
        record = self._record(trace_id)
        with suppress(WorkspaceError):
            self._workspace.refresh_span_indices(trace_id, trace)
            if record is not None and record.spans is None:
                self._workspace.register_trace(TraceRecord.from_trace(trace))
        return trace

    def _record(self, trace_id: str) -> TraceRecord | None:
        if self._records is None:
            self._records = {record.trace_id: record for record in self._workspace.traces()}
        return self._records.get(trace_id)


def keep_missing_indices(
    workspace: Workspace,
    workers: Workers | None = None,
    tell: Callable[[int, int], object] = lambda _done, _of: None,
) -> int:
    """Read the files of traces with labelled spans whose index is not kept yet, and keep it.

    Args:
        workspace: The workspace that keeps the indices.
        workers: Who reads the files; None for this process.
        tell: Told how many of how many files are read.

    Returns:
        How many traces were read.

    Raises:
        MastError: A file ends every process that reads it.
        WorkspaceError: The workspace cannot be read.
    """
    files: dict[Path, dict[str, bool]] = {}
    incomplete = _with_missing_indices(workspace)
    for record in workspace.traces() if incomplete else ():
        if record.path is None or record.trace_id not in incomplete:
            continue
        keys = files.setdefault(record.path, {})
        for key, with_length in workspace.referred_spans(record.trace_id).items():
            keys[key] = keys.get(key, False) or with_length
    traces = 0
    results = each(_indices_in_files, files.items(), workers)
    for number, (path, of_file) in enumerate(zip(files, results, strict=True), start=1):
        if isinstance(of_file, LostItem):
            raise MastError(f"{path}: {of_file.reason}")
        for record, indices in of_file:
            record_in_workspace = workspace.find_trace(record)
            if record_in_workspace is None:
                continue
            traces += 1
            referred = workspace.referred_spans(record_in_workspace.trace_id)
            # Where it cannot be written, the files are read again when an index is needed.
            with suppress(WorkspaceError), workspace.transaction():
                workspace.register_trace(record)
                workspace.keep_span_indices(
                    {
                        record_in_workspace.trace_id: {
                            key: indices[key] for key in referred if key in indices
                        }
                    }
                )
        tell(number, len(files))
    return traces


def _with_missing_indices(workspace: Workspace) -> set[str]:
    """Return the traces with a label on a span whose index, or length of text, is not kept."""

    def take(rows: Iterator[tuple[str, str, str, str | None]]) -> dict[str, dict[str, bool]]:
        labelled: dict[str, dict[str, bool]] = {}
        for trace_id, first, last, quote in rows:
            of_trace = labelled.setdefault(trace_id, {})
            of_trace.setdefault(last, False)
            of_trace[first] = of_trace.get(first, False) or quote is not None
        return labelled

    columns = ("trace_id", "first_key", "last_key", "quote")
    labelled = workspace.read_columns("labels", columns, take, not_null="first_key")
    indices = workspace.span_indices()
    return {
        trace_id
        for trace_id, keys in labelled.items()
        if missing_indices(keys, indices.get(trace_id, {}))
    }


def _indices_in_files(
    files: Iterable[tuple[Path, Mapping[str, bool]]],
) -> Iterator[list[tuple[TraceRecord, dict[str, SpanIndex]]]]:
    for path, keys in files:
        traces = read_file(path, named=True).traces
        for trace in traces:
            read_fully(trace)
        yield [(TraceRecord.from_trace(trace), indices_in(trace, keys)) for trace in traces]
