"""The traces of a workspace as their files hold them, and the places of their spans."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from mast_tui.errors import MastError
from mast_tui.gold import Order, no_order
from mast_tui.labels import AnnotatorKind, annotator_kind
from mast_tui.parallel import LostItem, Workers, each
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace
from mast_tui.workspace.records import TraceRecord
from mast_tui.workspace.store import Workspace

OrderOf = Callable[[str], Order]
"""The order of the spans of a trace, by its id; ``no_order`` where the trace is not at hand."""

TraceOf = Callable[[str], Trace | None]
"""A trace by its id, read to its end; None where it is not at hand."""


def traces_from_files(workspace: Workspace, known: Sequence[Trace] = ()) -> TraceOf:
    """The workspace's traces, each read from its file when it is asked for.

    ``known`` are traces that are read already. A trace whose file has gone, cannot be read or
    holds something else now is not at hand. The file read last is kept, so ask for the traces of
    one file one after the other. Asking raises ``WorkspaceError``.
    """
    paths = {record.trace_id: record.path for record in workspace.traces()}
    at_hand = {trace.identity.trace_id: trace for trace in known}

    @lru_cache(maxsize=1)
    def in_file(path: Path) -> dict[str, Trace]:
        """The traces of a file by the ids that they have in the workspace."""
        found = {}
        for trace in read_file(path, named=True).traces:
            record = workspace.find_trace(TraceRecord.of(trace))
            if record is not None:
                found[record.trace_id] = trace
        return found

    def trace_of(trace_id: str) -> Trace | None:
        found, path = at_hand.get(trace_id), paths.get(trace_id)
        if found is None and path is not None:
            found = in_file(path).get(trace_id)
        if found is not None:
            read_fully(found)
        return found

    return trace_of


def orders_from_files(workspace: Workspace, known: Sequence[Trace] = ()) -> OrderOf:
    """Give the orders of the workspace's traces, read from their files when first asked for.

    Args:
        workspace: The workspace that knows where the files were.
        known: Traces that are read already.

    Returns:
        The order of a trace by its id; of one that is not at hand, ``no_order``.
    """
    trace_of = traces_from_files(workspace, known)
    orders: dict[str, Order] = {}

    def order_of(trace_id: str) -> Order:
        def order(key: str) -> int | None:
            # Most traces are never asked: equal targets need no order.
            if trace_id not in orders:
                trace = trace_of(trace_id)
                orders[trace_id] = no_order if trace is None else trace.index_of
            return orders[trace_id](key)

        return order

    return order_of


def places_from_files(
    workspace: Workspace,
    taxonomy: Taxonomy,
    annotator: str | None,
    workers: Workers,
    tell: Callable[[int, int], object],
) -> dict[str, Mapping[str, int | None]]:
    """Have workers look up where the spans stand on which labels lie, by trace and key.

    Args:
        workspace: The workspace that knows where the files were.
        taxonomy: Under which the labels are.
        annotator: Whose they are; None for all people.
        workers: Who reads the files.
        tell: Told how many of how many files are read.

    Raises:
        MastError: A file ends every process that reads it.
    """

    def take(rows: Iterator[tuple[str, ...]]) -> dict[str, set[str]]:
        keys: dict[str, set[str]] = {}
        for trace, name, *ends in rows:
            if annotator == name or annotator_kind(name) is not AnnotatorKind.JUDGE:
                keys.setdefault(trace, set()).update(ends)
        return keys

    wanted = {"taxonomy": taxonomy.ref} | ({"annotator": annotator} if annotator else {})
    columns = ("trace_id", "annotator", "first_key", "last_key")
    keys = workspace.read_columns("labels", columns, take, wanted=wanted, given="first_key")
    files: dict[Path, set[str]] = {}
    for record in workspace.traces():
        if record.path is not None and record.trace_id in keys:
            files.setdefault(record.path, set()).update(keys[record.trace_id])
    places: dict[str, Mapping[str, int | None]] = {}
    for number, (path, found) in enumerate(
        zip(files, each(_places_in, files.items(), workers), strict=True)
    ):
        if isinstance(found, LostItem):
            raise MastError(f"{path}: {found.reason}")
        for told, places_of in found:
            known = workspace.find_trace(told)
            if known is not None:
                places[known.trace_id] = places_of
        tell(number + 1, len(files))
    return places


_Found = tuple[TraceRecord, dict[str, int | None]]


def _places_in(files: Sequence[tuple[Path, Collection[str]]]) -> Iterator[list[_Found]]:
    for path, keys in files:
        traces = read_file(path, named=True).traces
        for trace in traces:
            read_fully(trace)
        yield [(TraceRecord.of(one), {key: one.index_of(key) for key in keys}) for one in traces]


class SpanPlaces:
    """Where the spans of traces stand and how long their texts are, for figures on places.

    ``trace_of`` gives a trace by its id; the one asked for last is kept.
    """

    def __init__(self, trace_of: TraceOf) -> None:
        self._trace_of = trace_of
        self._last: tuple[str, Trace | None] | None = None

    def order_of(self, trace_id: str) -> tuple[Order, int] | None:
        """The order of a trace's spans and how many there are, None where it is not at hand."""
        trace = self._trace(trace_id)
        return None if trace is None else (trace.index_of, len(trace))

    def length_of(self, trace_id: str, key: str) -> int | None:
        """How many code points a span's text has, None where there is no such span."""
        trace = self._trace(trace_id)
        index = None if trace is None else trace.index_of(key)
        return None if trace is None or index is None else len(trace.text(index))

    def _trace(self, trace_id: str) -> Trace | None:
        if self._last is None or self._last[0] != trace_id:
            self._last = trace_id, self._trace_of(trace_id)
        return self._last[1]
