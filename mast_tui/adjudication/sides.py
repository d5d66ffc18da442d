"""What everybody said about the traces of a workspace, as sides of their gold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mast_tui.errors import MastError
from mast_tui.gold import Decision, GoldTrace, Order, Side, gold_of_trace, no_order
from mast_tui.labels import AnnotatorKind, Label, Pass, VerdictValue, annotator_kind
from mast_tui.parallel import LostItem, Workers, each
from mast_tui.passes import counted_passes
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace
from mast_tui.workspace.records import TraceRecord
from mast_tui.workspace.store import Workspace

OrderOf = Callable[[str], Order]
"""The order of the spans of a trace, by its id; ``no_order`` where the trace is not at hand."""


@dataclass(frozen=True, slots=True)
class TraceWords:
    """What was said about one trace: the sides, the pass each said it in, and the decisions.

    ``boundaries`` is whether the study makes different places of one mode a conflict.
    """

    trace_id: str
    sides: tuple[Side, ...] = ()
    passes: Mapping[str, Pass] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()
    boundaries: bool = False

    def gold(
        self,
        taxonomy: Taxonomy,
        order: Order = no_order,
        *,
        majority: bool = False,
        boundaries: bool | None = None,
    ) -> GoldTrace:
        """The gold that follows; see ``gold_of_trace``. ``boundaries`` is else the study's."""
        modes = [mode.slug for mode in taxonomy.modes]
        return gold_of_trace(
            self.sides,
            self.decisions,
            modes,
            order,
            majority=majority,
            boundaries=self.boundaries if boundaries is None else boundaries,
        )


def words_by_trace(
    workspace: Workspace,
    taxonomy: Taxonomy,
    *,
    annotators: Collection[str] | None = None,
    trace_id: str | None = None,
) -> dict[str, TraceWords]:
    """What was said about each trace that somebody finished or adjudicated, by trace id.

    Each side is an annotator's last finished pass. Without ``annotators`` these are all people, by
    name, but those without a part in the taxonomy's study; judges and these count only where they
    are named. The number of queries does not depend on that of the traces.
    """
    ref = taxonomy.ref
    passes = counted_passes(workspace.passes(trace_id=trace_id, taxonomy=ref), "last")
    kinds = {info.name: info.kind for info in workspace.annotators()}
    labels: dict[tuple[str, str], list[Label]] = defaultdict(list)
    for label in workspace.labels(trace_id=trace_id, taxonomy=ref, pass_number="finished"):
        labels[label.annotator, label.trace_id].append(label)
    verdicts: dict[tuple[str, str], dict[str, VerdictValue]] = defaultdict(dict)
    for said in workspace.verdicts(trace_id=trace_id, taxonomy=ref, pass_number="finished"):
        verdicts[said.annotator, said.trace_id][said.mode] = said.value
    sides: dict[str, list[Side]] = defaultdict(list)
    passes_of: dict[str, dict[str, Pass]] = defaultdict(dict)
    outside = workspace.outside_study(ref)
    for (name, trace), one in sorted(passes.items()):
        kind = kinds.get(name, annotator_kind(name))
        unnamed = kind is AnnotatorKind.JUDGE or name in outside
        if name not in annotators if annotators is not None else unnamed:
            continue
        key = name, trace
        sides[trace].append(
            Side(name, verdicts.get(key, {}), tuple(labels.get(key, ())), one.judge_seen, kind)
        )
        passes_of[trace][name] = one
    decisions = workspace.all_decisions(ref, trace_id=trace_id)
    study = workspace.study(ref)
    return {
        trace: TraceWords(
            trace,
            tuple(sides.get(trace, ())),
            passes_of.get(trace, {}),
            decisions.get(trace, ()),
            boundaries=study is not None and study.boundaries,
        )
        for trace in sorted(sides.keys() | decisions.keys())
    }


def traces_from_files(
    workspace: Workspace, known: Sequence[Trace] = ()
) -> Callable[[str], Trace | None]:
    """Give the workspace's traces, wholly read, from their files.

    Args:
        workspace: The workspace that knows where the files were.
        known: Traces that are read already.

    Returns:
        A function from a trace's id to the trace; to None where its file has gone, cannot be read
        or holds something else now. It remembers nothing.
    """
    records = {record.trace_id: record for record in workspace.traces()}
    at_hand = {trace.identity.trace_id: trace for trace in known}

    def trace_of(trace_id: str) -> Trace | None:
        record = records.get(trace_id)
        trace = at_hand.get(trace_id)
        if trace is None and record is not None and record.path is not None:
            for found in read_file(record.path, named=True).traces:
                here = workspace.find_trace(TraceRecord.of(found))
                if here is not None and here.trace_id == trace_id:
                    trace = found
        if trace is not None:
            read_fully(trace)
        return trace

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
