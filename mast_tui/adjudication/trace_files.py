"""The traces of a workspace, read from their files, and the order of their spans."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path

from mast_tui.errors import MastError, WorkspaceError
from mast_tui.figures.source.agreement import UnknownSpan
from mast_tui.gold import Order
from mast_tui.parallel import LostItem, Workers, each
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Named, Trace
from mast_tui.traces.trials import trial_facts
from mast_tui.workspace.records import SpanIndex, TraceRecord, indices_in, missing_indices
from mast_tui.workspace.store import Workspace

OrderOf = Callable[[str], Order]
"""A function from a trace's id to the order of its spans."""

TraceOf = Callable[[str], Trace | None]
"""A function from a trace's id to the completely read trace; None if its file is missing."""


def traces_from_files(workspace: Workspace, loaded_traces: Sequence[Trace] = ()) -> TraceOf:
    """Return a function that reads a trace of the workspace from its file.

    The function returns None if the file is missing, unreadable or has another trace. It keeps the
    last file, so callers should request all traces of a file together.

    Args:
        workspace: The workspace.
        loaded_traces: Traces that need not be read from files.
    """
    paths = {record.trace_id: record.path for record in workspace.traces()}
    loaded_by_id = {trace.identity.trace_id: trace for trace in loaded_traces}

    @lru_cache(maxsize=1)
    def traces_in_file(path: Path) -> dict[str, Trace]:
        """Return the traces of a file by their ids in the workspace."""
        traces_by_id = {}
        for trace in read_file(path, named=True).traces:
            record = workspace.find_trace(TraceRecord.from_trace(trace))
            if record is not None:
                traces_by_id[record.trace_id] = trace
        return traces_by_id

    def trace_of(trace_id: str) -> Trace | None:
        """Return a completely read trace; None if its file does not have it."""
        trace = loaded_by_id.get(trace_id)
        path = paths.get(trace_id)
        if trace is None and path is not None:
            trace = traces_in_file(path).get(trace_id)
        if trace is not None:
            read_fully(trace)
        return trace

    return trace_of


def scores_from_files(workspace: Workspace) -> Callable[[str], Named]:
    """Return a function from a trace's id to the scores in its answer key.

    For one of several files of a trial, these are the scores in the trial's folder.
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

    An instance is an ``OrderOf``, safe in any thread. Missing orders and lengths are read from the
    file of the trace and stored in the workspace.
    """

    def __init__(
        self,
        workspace: Workspace,
        loaded_traces: Sequence[Trace] = (),
        *,
        trace_of: TraceOf | None = None,
    ) -> None:
        """Prepare the orders without reading anything.

        Args:
            workspace: The workspace.
            loaded_traces: Traces that need not be read from files.
            trace_of: Reads a trace; None for ``traces_from_files``.
        """
        self._workspace = workspace
        self._loaded_traces = loaded_traces
        self._trace_of = trace_of
        self._stored: dict[str, dict[str, SpanIndex]] | None = None
        """The stored indices by trace id and span key; None before they are read."""
        self._records: Mapping[str, TraceRecord] | None = None
        self._traces_without_file: set[str] = set()
        """The ids of the traces with missing files."""

    def __call__(self, trace_id: str) -> Order:
        """Return the order of a trace's spans."""
        return partial(self._index_of, trace_id)

    def load(self) -> SpanOrders:
        """Read all stored indices now, so that ``stored_order`` need not read them."""
        self._all_stored()
        return self

    def stored_order(self, trace_id: str) -> Order:
        """Return the stored order of a trace's spans, without reading a file."""
        indices = self._all_stored().get(trace_id, {})

        def order(key: str) -> int | None:
            span_index = indices.get(key)
            return None if span_index is None else span_index.index

        return order

    def spans_of(self, trace_id: str) -> tuple[Order, int] | None:
        """Return the order of a trace's spans and their number; None if the number is unknown.

        The order raises ``UnknownSpan`` for a span with an unknown index.
        """
        record = self._trace_record(trace_id)
        span_count = None if record is None else record.spans
        if span_count is None:
            trace = self._read_trace(trace_id)
            if trace is None:
                return None
            span_count = len(trace)
        # The stored number is too small if the trace has grown and has labels on new spans.
        indices = self._all_stored().get(trace_id, {}).values()
        ends = (span_index.index + 1 for span_index in indices if span_index.index is not None)
        return partial(self._index_or_raise, trace_id), max(span_count, *ends, 0)

    def length_of(self, trace_id: str, key: str) -> int | None:
        """Return the length of a span's text in code points; None if unknown.

        Args:
            trace_id: The trace's id.
            key: The span's key.
        """
        span_index = self._span_index(trace_id, key, with_length=True)
        return None if span_index is None else span_index.text_chars

    def _index_of(self, trace_id: str, key: str) -> int | None:
        span_index = self._span_index(trace_id, key)
        return None if span_index is None else span_index.index

    def _index_or_raise(self, trace_id: str, key: str) -> int | None:
        span_index = self._span_index(trace_id, key)
        if span_index is None:
            raise UnknownSpan(key)
        return span_index.index

    def _span_index(
        self, trace_id: str, key: str, *, with_length: bool = False
    ) -> SpanIndex | None:
        """Return the stored index of a span, or read it from the file; None if unknown.

        With ``with_length``, the length of the span's text is needed too.
        """
        keys = {key: with_length}
        indices = self._all_stored().setdefault(trace_id, {})
        if missing_indices(keys, indices) and trace_id not in self._traces_without_file:
            # Another program may have stored the index meanwhile.
            indices |= self._workspace.span_indices(trace_id).get(trace_id, {})
            if missing_indices(keys, indices):
                indices |= self._indices_in_file(trace_id, keys)
        return indices.get(key)

    def _all_stored(self) -> dict[str, dict[str, SpanIndex]]:
        if self._stored is None:
            self._stored = self._workspace.span_indices()
        return self._stored

    def _indices_in_file(self, trace_id: str, keys: Mapping[str, bool]) -> dict[str, SpanIndex]:
        """Read the indices of the spans in ``keys``, and of all spans in events, from the file.

        A key is True if the length of the span's text is needed too.
        """
        trace = self._read_trace(trace_id)
        if trace is None:
            return {}
        return indices_in(trace, {**self._workspace.referred_spans(trace_id), **keys})

    def _read_trace(self, trace_id: str) -> Trace | None:
        """Read a trace and store its missing facts; None if the file is missing."""
        if self._trace_of is None:
            self._trace_of = traces_from_files(self._workspace, self._loaded_traces)
        trace = self._trace_of(trace_id)
        if trace is None:
            self._traces_without_file.add(trace_id)
            return None
        # Storing only saves a later reading, so a failure is ignored.
        record = self._trace_record(trace_id)
        with suppress(WorkspaceError):
            self._workspace.refresh_span_indices(trace_id, trace)
            if record is not None and record.spans is None:
                self._workspace.register_trace(TraceRecord.from_trace(trace))
        return trace

    def _trace_record(self, trace_id: str) -> TraceRecord | None:
        if self._records is None:
            self._records = {record.trace_id: record for record in self._workspace.traces()}
        return self._records.get(trace_id)


def keep_missing_indices(
    workspace: Workspace,
    workers: Workers | None = None,
    tell: Callable[[int, int], object] = lambda _done, _of: None,
) -> int:
    """Store the missing indices of labelled spans, read from the files of their traces.

    Args:
        workspace: The workspace.
        workers: The processes that read the files; None for this process.
        tell: Called with the number of files read so far and the number of all files.

    Returns:
        The number of traces that were read.

    Raises:
        MastError: Every process that reads a certain file has ended.
        WorkspaceError: The workspace cannot be read.
    """
    incomplete_traces = _traces_with_missing_indices(workspace)
    if not incomplete_traces:
        return 0
    keys_by_path = _referred_keys_by_path(workspace, incomplete_traces)
    trace_count = 0
    results = each(_indices_in_files, keys_by_path.items(), workers)
    for number, (path, file_traces) in enumerate(zip(keys_by_path, results, strict=True), start=1):
        if isinstance(file_traces, LostItem):
            raise MastError(f"{path}: {file_traces.reason}")
        trace_count += sum(_store_indices(workspace, *trace) for trace in file_traces)
        tell(number, len(keys_by_path))
    return trace_count


def _referred_keys_by_path(
    workspace: Workspace, trace_ids: Collection[str]
) -> dict[Path, dict[str, bool]]:
    """Return the keys of the spans in events on some traces, by file.

    A key is True if the length of the span's text is needed, for a quote.
    """
    keys_by_path: dict[Path, dict[str, bool]] = {}
    for record in workspace.traces():
        if record.path is None or record.trace_id not in trace_ids:
            continue
        keys = keys_by_path.setdefault(record.path, {})
        for key, has_quote in workspace.referred_spans(record.trace_id).items():
            keys[key] = keys.get(key, False) or has_quote
    return keys_by_path


def _store_indices(
    workspace: Workspace, record: TraceRecord, indices: Mapping[str, SpanIndex]
) -> bool:
    """Store the indices of a trace's spans; return False if the trace is unknown."""
    # The workspace may have another id for the trace.
    record_in_workspace = workspace.find_trace(record)
    if record_in_workspace is None:
        return False
    trace_id = record_in_workspace.trace_id
    referred_keys = workspace.referred_spans(trace_id)
    new_indices = {key: indices[key] for key in referred_keys if key in indices}
    # If the workspace cannot be written, the files are read again later.
    with suppress(WorkspaceError), workspace.transaction():
        workspace.register_trace(record)  # its stored facts may be missing or old
        workspace.keep_span_indices({trace_id: new_indices})
    return True


def _traces_with_missing_indices(workspace: Workspace) -> set[str]:
    """Return the ids of traces with labelled spans without a stored index or length."""

    def labelled_keys(
        rows: Iterator[tuple[str, str, str, str | None]],
    ) -> dict[str, dict[str, bool]]:
        """Return the keys of labelled spans by trace; True if the text length is needed."""
        keys_by_trace: dict[str, dict[str, bool]] = {}
        for trace_id, first, last, quote in rows:
            keys = keys_by_trace.setdefault(trace_id, {})
            keys.setdefault(last, False)
            keys[first] = keys.get(first, False) or quote is not None
        return keys_by_trace

    columns = ("trace_id", "first_key", "last_key", "quote")
    keys_by_trace = workspace.read_columns("labels", columns, labelled_keys, not_null="first_key")
    indices = workspace.span_indices()
    return {
        trace_id
        for trace_id, keys in keys_by_trace.items()
        if missing_indices(keys, indices.get(trace_id, {}))
    }


def _indices_in_files(
    files: Iterable[tuple[Path, Mapping[str, bool]]],
) -> Iterator[list[tuple[TraceRecord, dict[str, SpanIndex]]]]:
    """Yield the traces of each file with the indices of the spans in the file's keys.

    A key is True if the length of the span's text is needed too.
    """
    for path, keys in files:
        traces = read_file(path, named=True).traces
        for trace in traces:
            read_fully(trace)
        yield [(TraceRecord.from_trace(trace), indices_in(trace, keys)) for trace in traces]
