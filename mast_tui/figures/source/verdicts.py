"""The verdicts and labels of a workspace in columns, for figures of failure signatures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, pairwise
from math import ceil
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.signatures.model import ABSENT, OPEN, PRESENT, UNRESOLVED, UNSURE
from mast_tui.gold.model import (
    SOURCES,
    GoldKind,
    GoldMixJson,
    GoldTrace,
    Resolution,
    only_settled,
    source_if_counted,
)
from mast_tui.gold.overlaps import Order
from mast_tui.labels import (
    GOLD,
    AnnotatorKind,
    PassKind,
    Severity,
    VerdictValue,
    annotator_kind,
    finished_by,
)
from mast_tui.workspace.queries import BITS, CODES, MODES_AT_ONCE

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace

FLAGS: Final = {
    VerdictValue.PRESENT: PRESENT,
    VerdictValue.ABSENT: ABSENT,
    VerdictValue.UNSURE: UNSURE,
}
"""The flag of each verdict in ``LabelledTraces``."""

GoldOf = Callable[[Collection[str]], Mapping[str, GoldTrace]]
"""Returns the gold of traces by their ids."""

PassKey = tuple[str, str, int]
"""The annotator, the trace id and the number of a pass."""


class PlacedLabel(NamedTuple):
    """A label with spans: its trace, the column of its mode, and the keys of its ends."""

    trace: str
    mode: int
    first: str
    last: str
    fatal: bool


_LABELLING_KINDS: Final = frozenset(kind.value for kind in PassKind if kind.is_labelling)
_UNANIMOUS: Final = SOURCES.index(Resolution.UNANIMOUS)
_SINGLE: Final = SOURCES.index(Resolution.SINGLE)


@dataclass(slots=True)
class TraceLabels:
    """The labels with spans, and counts of other labels.

    Attributes:
        placed: The labels with spans.
        whole_trace_labels: The number of labels on each whole trace, by its id.
        merged: The number of gold places that join different places of several annotators.
    """

    placed: list[PlacedLabel] = field(default_factory=list)
    whole_trace_labels: Counter[str] = field(default_factory=Counter)
    merged: int = 0


@dataclass(frozen=True, slots=True)
class LabelledTraces:
    """The traces that an annotator has judged, or those of the gold.

    Attributes:
        traces: The ids of the traces.
        verdicts: The verdicts, traces × modes.
        labels: The labels with spans.
        mix: For the gold, the numbers of verdicts and traces by source.
        unfinished: The number of traces that the annotator has begun and not finished.
        source_kind: ``gold``, or the kind of the annotator.
    """

    traces: tuple[str, ...]
    verdicts: NDArray[np.uint8]
    labels: TraceLabels
    mix: GoldMixJson | None = None
    unfinished: int = 0
    source_kind: str = GOLD


def last_pass_numbers(
    workspace: Workspace,
    equal_to: Mapping[str, str],
    visible: Container[str] | None = None,
    *,
    unfinished: bool,
) -> dict[tuple[str, str], int]:
    """Return the number of the last pass that counts, by annotator and trace id.

    Withdrawn passes and passes without reading, such as those of adjudication, do not count.

    Args:
        workspace: The workspace.
        equal_to: The values that certain columns of the passes must have.
        visible: The ids of the traces that may be shown; None for all.
        unfinished: Whether unfinished passes count too.
    """

    def collect(rows: Iterator[tuple[Any, ...]]) -> dict[tuple[str, str], int]:
        numbers: dict[tuple[str, str], int] = {}
        for name, trace, number, kind, finished_at, withdrawn in rows:
            if withdrawn or kind not in _LABELLING_KINDS:
                continue
            if visible is not None and trace not in visible:
                continue
            if unfinished or finished_at is not None:
                key = (name, trace)
                numbers[key] = max(number, numbers.get(key, number))
        return numbers

    columns = ("annotator", "trace_id", "number", "kind", "finished_at", "withdrawn")
    return workspace.read_columns("passes", columns, collect, equal_to=equal_to)


class VerdictCells(NamedTuple):
    """The verdicts of passes as a table.

    Attributes:
        cells: Passes × modes: the number that stands for the verdict.
        whole_trace_labels: The number of labels in these passes on each whole trace, by its id.
    """

    cells: NDArray[Any]
    whole_trace_labels: Counter[str]


def verdict_cells(
    workspace: Workspace,
    taxonomy: Taxonomy,
    rows: Mapping[PassKey, int],
    cell_values: Mapping[VerdictValue, int],
    no_verdict: int,
    *,
    annotator: str | None = None,
) -> VerdictCells:
    """Read the verdicts of some passes as a table; a mode with labels is present.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy, whose modes are the columns.
        rows: The row of each pass in the table, from 0.
        cell_values: The number for each verdict in the table.
        no_verdict: The number for a missing verdict.
        annotator: The annotator to read; None for all.
    """
    slugs = [mode.slug for mode in taxonomy.modes]
    # The workspace packs the verdicts on ``MODES_AT_ONCE`` modes into one number.
    packed = np.zeros((len(rows), ceil(len(slugs) / MODES_AT_ONCE)), dtype=np.int64)
    whole_trace_labels = Counter[str]()
    for part_number, chunk in enumerate(workspace.packed_verdicts(taxonomy.ref, slugs, annotator)):
        row_indices = []
        packed_values = []
        for name, trace, number, packed_verdicts, pass_whole_trace_labels in chunk.rows:
            row = rows.get((name, trace, number))
            if row is not None:
                row_indices.append(row)
                packed_values.append(packed_verdicts)
                # Each part repeats the number of labels on the whole trace.
                if pass_whole_trace_labels and part_number == 0:
                    whole_trace_labels[trace] += pass_whole_trace_labels
        row_array = np.array(row_indices, dtype=np.intp)
        np.bitwise_or.at(packed[:, part_number], row_array, np.array(packed_values, np.int64))
    cell_of_code = np.full(1 << BITS, no_verdict, dtype=np.int8)
    for verdict, code in CODES.items():
        cell_of_code[code] = cell_values[verdict]
    return VerdictCells(cell_of_code[_unpacked_codes(packed, len(slugs))], whole_trace_labels)


def _unpacked_codes(packed: NDArray[np.int64], mode_count: int) -> NDArray[np.int64]:
    """Return the codes of the verdicts on each mode: ``BITS`` bits of a packed number."""
    columns = np.arange(mode_count)
    codes = packed[:, columns // MODES_AT_ONCE] >> (BITS * (columns % MODES_AT_ONCE))
    return codes & ((1 << BITS) - 1)


class _PassVerdicts:
    """The verdicts of annotators in the passes that count.

    Attributes:
        row_keys: The annotator and the trace id of each row, sorted by trace.
        cells: The verdicts, rows × modes.
        labels: The labels with spans in these passes.
    """

    def __init__(
        self,
        workspace: Workspace,
        taxonomy: Taxonomy,
        passes: Mapping[tuple[str, str], int],
        annotator: str | None = None,
    ) -> None:
        """Read the verdicts and the labels.

        Args:
            workspace: The workspace.
            taxonomy: The taxonomy.
            passes: The number of the pass that counts, by annotator and trace id.
            annotator: The annotator of all passes; None for several.
        """
        self.row_keys = sorted(passes, key=itemgetter(1, 0))
        rows = {(*key, passes[key]): row for row, key in enumerate(self.row_keys)}
        table = verdict_cells(workspace, taxonomy, rows, FLAGS, OPEN, annotator=annotator)
        self.cells: NDArray[np.uint8] = table.cells.astype(np.uint8)
        placed = _placed_labels(workspace, taxonomy, list(rows), annotator)
        self.labels = TraceLabels(placed, table.whole_trace_labels)

    def shared_traces(self) -> set[str]:
        """Return the traces with passes of several annotators."""
        # Rows are sorted by trace.
        return {
            trace for (_, trace), (_, next_trace) in pairwise(self.row_keys) if trace == next_trace
        }


def _placed_labels(
    workspace: Workspace, taxonomy: Taxonomy, pass_keys: Sequence[PassKey], annotator: str | None
) -> list[PlacedLabel]:
    """Read the labels with spans of these passes, all by ``annotator`` unless it is None."""
    columns = {mode.slug: column for column, mode in enumerate(taxonomy.modes)}
    # Labels share strings of trace ids and span keys, because there may be a million labels.
    shared_trace_ids = {key: key[1] for key in pass_keys}

    def collect(records: Iterator[tuple[Any, ...]]) -> list[PlacedLabel]:
        placed = []
        for name, trace, number, mode, first_span, last_span, severity, decisive in records:
            trace_id = shared_trace_ids.get((name, trace, number))
            if trace_id is not None and mode in columns:
                last = first_span if last_span == first_span else last_span
                # A label that a judge calls decisive counts as fatal.
                fatal = severity == Severity.FATAL or decisive == 1
                placed.append(PlacedLabel(trace_id, columns[mode], first_span, last, fatal))
        return placed

    equal_to = {"taxonomy": taxonomy.ref}
    if annotator is not None:
        equal_to["annotator"] = annotator
    pass_columns = ("annotator", "trace_id", "pass_number")
    label_columns = ("mode", "first_key", "last_key", "severity", "decisive")
    return workspace.read_columns(
        "labels", (*pass_columns, *label_columns), collect, equal_to=equal_to, not_null="first_key"
    )


def labelled_by(
    workspace: Workspace, taxonomy: Taxonomy, name: str, traces: Container[str] | None = None
) -> LabelledTraces:
    """Read the verdicts of one annotator, from the last finished pass on each trace.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        name: The name of the annotator.
        traces: The ids of the traces that may be shown; None for all.

    Raises:
        WorkspaceError: There is no such annotator.
    """
    workspace.check_annotators(name, other_choices=[GOLD])
    kinds = {info.name: info.kind for info in workspace.annotators()}
    equal_to = {"taxonomy": taxonomy.ref, "annotator": name}
    begun = last_pass_numbers(workspace, equal_to, traces, unfinished=True)
    if kinds[name] is AnnotatorKind.JUDGE:
        return _labelled_by_judge(workspace, taxonomy, name, begun)
    finished = last_pass_numbers(workspace, equal_to, traces, unfinished=False)
    verdicts = _PassVerdicts(workspace, taxonomy, finished, name)
    return LabelledTraces(
        tuple(trace for _, trace in verdicts.row_keys),
        verdicts.cells,
        verdicts.labels,
        unfinished=len(begun) - len(finished),
        source_kind=kinds[name],
    )


def _labelled_by_judge(
    workspace: Workspace, taxonomy: Taxonomy, name: str, begun: Mapping[tuple[str, str], int]
) -> LabelledTraces:
    """Read the verdicts of a judge on its finished traces: those with a judgement.

    Examples in its prompt are left out. Modes that it does not judge are open. ``begun`` has the
    number of its last pass on each trace.
    """
    examples = workspace.unmeasured_traces(name)
    looks_at = {
        judgement.trace_id: judgement.looks_at
        for judgement in workspace.judgements(annotator=name, taxonomy=taxonomy.ref)
    }
    numbers = {key: number for key, number in begun.items() if key[1] not in examples}
    finished = {key: number for key, number in numbers.items() if key[1] in looks_at}
    verdicts = _PassVerdicts(workspace, taxonomy, finished, name)
    traces = tuple(trace for _, trace in verdicts.row_keys)
    for row, trace in enumerate(traces):
        not_judged = [mode.slug not in looks_at[trace] for mode in taxonomy.modes]
        verdicts.cells[row, not_judged] = OPEN
    return LabelledTraces(
        traces,
        verdicts.cells,
        verdicts.labels,
        unfinished=len(numbers) - len(finished),
        source_kind=AnnotatorKind.JUDGE,
    )


def labelled_by_gold(
    workspace: Workspace,
    taxonomy: Taxonomy,
    gold: GoldOf,
    order_of: Callable[[str], Order],
    traces: Container[str] | None = None,
    which: GoldKind = "all",
) -> LabelledTraces:
    """Read the gold verdicts of all traces, and the gold labels with spans.

    Without decisions, the gold follows from the annotators' verdicts: equal verdicts hold,
    different ones are unresolved. So the slow function ``gold`` is called only

    - for traces with decisions,
    - for traces of several annotators in which a label is on the whole trace, or has a span that
      ``order_of`` knows, because the gold may join several labels.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        gold: Returns the gold of traces.
        order_of: Returns the order of a trace's spans.
        traces: The ids of the traces that may be shown; None for all.
        which: The part of the gold that counts; ``settled`` leaves out verdicts of a single
            annotator.
    """
    passes = last_pass_numbers(workspace, {"taxonomy": taxonomy.ref}, traces, unfinished=False)
    outside_names = workspace.outside_study(taxonomy.ref)
    passes_of_people = _passes_of_people(workspace, passes, outside_names)
    verdicts = _PassVerdicts(workspace, taxonomy, passes_of_people)
    decided_traces = _decided_traces(workspace, taxonomy, traces)
    table = _GoldTable(taxonomy, verdicts, decided_traces)
    if which == "settled":
        # A verdict is settled by a decision or by several annotators, so the gold of these traces
        # has all settled verdicts.
        table.clear()
        traces_by_gold = decided_traces | verdicts.shared_traces()
        gold_by_trace = gold(traces_by_gold) if traces_by_gold else {}
        table.replace({trace: only_settled(gold_by_trace[trace]) for trace in gold_by_trace})
        table.remove_open_rows()
    else:
        traces_by_gold = decided_traces | _traces_with_joined_labels(verdicts, order_of)
        table.replace(gold(traces_by_gold) if traces_by_gold else {})
    counted_traces = set(table.traces)
    mix: GoldMixJson = {
        "sources": table.counts_by_source(of_traces=False),
        "traces": table.counts_by_source(of_traces=True),
        "annotators": sorted(
            {name for name, trace in verdicts.row_keys if trace in counted_traces}
        ),
        "settled_only": which == "settled",
        "not_in_study": finished_by(outside_names, passes),
        "merged": table.labels.merged,
    }
    return LabelledTraces(tuple(table.traces), table.verdicts, table.labels, mix)


def _traces_with_joined_labels(
    verdicts: _PassVerdicts, order_of: Callable[[str], Order]
) -> set[str]:
    """Return the traces of several annotators in which the gold may join several labels."""
    shared_traces = verdicts.shared_traces()
    return (shared_traces & verdicts.labels.whole_trace_labels.keys()) | {
        label.trace
        for label in verdicts.labels.placed
        if label.trace in shared_traces and order_of(label.trace)(label.first) is not None
    }


def _passes_of_people(
    workspace: Workspace, passes: Mapping[tuple[str, str], int], outside_names: Container[str]
) -> dict[tuple[str, str], int]:
    """Return the passes of people in the study, from which the gold is made."""
    kinds = {info.name: info.kind for info in workspace.annotators()}
    people = {
        name
        for name in {name for name, _ in passes}
        if name not in outside_names and kinds.get(name, annotator_kind(name)).is_person
    }
    return {key: number for key, number in passes.items() if key[0] in people}


def _decided_traces(
    workspace: Workspace, taxonomy: Taxonomy, visible: Container[str] | None
) -> set[str]:
    """Return the ids of the visible traces with decisions."""
    return workspace.read_columns(
        "decisions",
        ("trace_id",),
        lambda rows: {trace for (trace,) in rows if visible is None or trace in visible},
        equal_to={"taxonomy": taxonomy.ref},
    )


class _GoldTable:
    """The gold verdicts of traces, and the gold labels with spans.

    At first, the verdicts follow from those of the annotators. Traces with decisions and without a
    finished pass come last; on these, every mode is open.

    Attributes:
        traces: The ids of the traces.
        verdicts: The verdicts, traces × modes.
        labels: The labels with spans.
    """

    def __init__(
        self, taxonomy: Taxonomy, annotators: _PassVerdicts, decided_traces: set[str]
    ) -> None:
        self._columns = {mode.slug: column for column, mode in enumerate(taxonomy.modes)}
        self.labels = annotators.labels
        row_traces = [trace for _, trace in annotators.row_keys]
        # The first row of each trace; rows are sorted by trace.
        starts = [
            row for row, trace in enumerate(row_traces) if not row or trace != row_traces[row - 1]
        ]
        labelled_traces = [row_traces[row] for row in starts]
        further_traces = sorted(decided_traces.difference(labelled_traces))
        self.traces = labelled_traces + further_traces

        indices = np.array(starts, dtype=np.intp)
        joint = np.bitwise_or.reduceat(annotators.cells, indices, axis=0)
        # Each verdict is one bit, so different verdicts joined by "or" are none of these.
        joint[~np.isin(joint, (OPEN, PRESENT, ABSENT, UNSURE))] = UNRESOLVED
        verdict_counts = np.add.reduceat((annotators.cells != OPEN).astype(int), indices, axis=0)
        sources = np.where(verdict_counts > 1, _UNANIMOUS, _SINGLE).astype(np.uint8)
        sources[joint == UNRESOLVED] = SOURCES.index(Resolution.UNRESOLVED)
        added_rows = ((0, len(further_traces)), (0, 0))
        self.verdicts: NDArray[np.uint8] = np.pad(joint, added_rows, constant_values=OPEN)
        self._sources = np.pad(sources, added_rows)
        """The index of each verdict's source in ``SOURCES``."""

    def clear(self) -> None:
        """Open every mode, and remove all labels."""
        self.verdicts[:] = OPEN
        self.labels = TraceLabels()

    def replace(self, gold_by_trace: Mapping[str, GoldTrace]) -> None:
        """Replace the verdicts and the labels of traces by their gold."""
        placed = [label for label in self.labels.placed if label.trace not in gold_by_trace]
        for trace in gold_by_trace:
            del self.labels.whole_trace_labels[trace]
        self.labels = TraceLabels(placed, self.labels.whole_trace_labels)
        row_by_trace = {trace: row for row, trace in enumerate(self.traces)}
        for trace, gold_trace in gold_by_trace.items():
            if trace in row_by_trace:
                self._replace_verdicts(row_by_trace[trace], gold_trace)
                self._add_labels(trace, gold_trace)

    def _replace_verdicts(self, row: int, gold_trace: GoldTrace) -> None:
        self.verdicts[row] = OPEN
        for verdict in gold_trace.verdicts:
            source = source_if_counted(verdict)
            if source is not None and verdict.mode in self._columns:
                column = self._columns[verdict.mode]
                flag = UNRESOLVED if verdict.value is None else FLAGS[verdict.value]
                self.verdicts[row, column] = flag
                self._sources[row, column] = SOURCES.index(source)

    def _add_labels(self, trace: str, gold_trace: GoldTrace) -> None:
        for label in gold_trace.labels:
            if label.mode not in self._columns:
                continue
            first_key = label.target.first
            last_key = label.target.last
            if first_key is None or last_key is None:
                self.labels.whole_trace_labels[trace] += 1
                continue
            column = self._columns[label.mode]
            fatal = label.severity is Severity.FATAL
            self.labels.placed.append(PlacedLabel(trace, column, first_key, last_key, fatal))
            self.labels.merged += label.merged

    def remove_open_rows(self) -> None:
        """Remove the traces on which every mode is open."""
        has_verdict = (self.verdicts != OPEN).any(axis=1)
        self.traces = list(compress(self.traces, has_verdict.tolist()))
        self.verdicts = self.verdicts[has_verdict]
        self._sources = self._sources[has_verdict]

    def counts_by_source(self, *, of_traces: bool) -> dict[str, int]:
        """Return the number of verdicts by source, or of the traces with such a verdict."""
        masks = {
            source.value: (self._sources == number) & (self.verdicts != OPEN)
            for number, source in enumerate(SOURCES)
        }
        return {
            name: int((mask.any(axis=1) if of_traces else mask).sum())
            for name, mask in masks.items()
        }
