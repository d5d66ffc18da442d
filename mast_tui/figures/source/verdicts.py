"""Verdicts and labels of a workspace, read into columns, for figures of failure signatures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_tui.errors import WorkspaceError
from mast_tui.figures.judge.input import GOLD
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


class VerdictMark(NamedTuple):
    """A label with spans: its trace, the column of its mode, and the keys of its ends."""

    trace: str
    mode: int
    first: str
    last: str
    fatal: bool


_READING_KINDS: Final = frozenset(kind.value for kind in PassKind if kind.is_reading)
_UNANIMOUS: Final = SOURCES.index(Resolution.UNANIMOUS)
_SINGLE: Final = SOURCES.index(Resolution.SINGLE)


@dataclass(slots=True)
class Marks:
    """The labels with spans, and the number of labels without spans.

    Attributes:
        placed: The labels with spans.
        whole_trace_labels: The number of labels on whole traces.
        merged: The number of gold places that join different places of several annotators.
    """

    placed: list[VerdictMark] = field(default_factory=list)
    whole_trace_labels: int = 0
    merged: int = 0


@dataclass(frozen=True, slots=True)
class LabelledTraces:
    """The traces that an annotator has judged, or those of the gold.

    Attributes:
        traces: The ids of the traces.
        verdicts: The verdicts, traces × modes.
        marks: The labels with spans.
        mix: For the gold, the number of verdicts and traces by source.
        unfinished: The number of traces that the annotator has begun and not finished.
    """

    traces: tuple[str, ...]
    verdicts: NDArray[np.uint8]
    marks: Marks
    mix: GoldMixJson | None = None
    unfinished: int = 0


def last_pass_numbers(
    workspace: Workspace, equal_to: Mapping[str, str], *, unfinished: bool
) -> dict[tuple[str, str], int]:
    """Return the number of the last pass that counts, by annotator and trace id.

    Withdrawn passes do not count, nor passes without reading, such as those of adjudication.

    Args:
        workspace: The workspace.
        equal_to: The values that certain columns of the passes must have.
        unfinished: Whether unfinished passes count too.
    """

    def collect(rows: Iterator[tuple[Any, ...]]) -> dict[tuple[str, str], int]:
        numbers: dict[tuple[str, str], int] = {}
        for name, trace, number, kind, finished_at, withdrawn in rows:
            if not withdrawn and kind in _READING_KINDS and (unfinished or finished_at is not None):
                key = (name, trace)
                numbers[key] = max(number, numbers.get(key, number))
        return numbers

    columns = ("annotator", "trace_id", "number", "kind", "finished_at", "withdrawn")
    return workspace.read_columns("passes", columns, collect, equal_to=equal_to)


def verdict_cells(
    workspace: Workspace,
    taxonomy: Taxonomy,
    rows: Mapping[PassKey, int],
    cell_values: Mapping[VerdictValue, int],
    no_verdict: int,
    *,
    annotator: str | None = None,
) -> tuple[NDArray[Any], int]:
    """Read the verdicts of some passes as a table; a mode with labels is present.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy, whose modes are the columns.
        rows: The row of each pass in the table, from 0.
        cell_values: The number that stands for each verdict in the table.
        no_verdict: The number that stands for no verdict.
        annotator: The annotator to read; None for all.

    Returns:
        The table, passes × modes, and the number of labels on whole traces in these passes.
    """
    slugs = [mode.slug for mode in taxonomy.modes]
    # The workspace returns the verdicts on ``MODES_AT_ONCE`` modes packed in one number, with
    # ``BITS`` bits for each mode.
    part_count = ceil(len(slugs) / MODES_AT_ONCE)
    packed = np.zeros((len(rows), part_count), dtype=np.int64)
    whole_trace_count = 0
    for part_number, chunk in enumerate(workspace.packed_verdicts(taxonomy.ref, slugs, annotator)):
        row_indices = []
        packed_values = []
        for name, trace, number, packed_verdicts, whole_trace_labels in chunk.rows:
            row = rows.get((name, trace, number))
            if row is not None:
                row_indices.append(row)
                packed_values.append(packed_verdicts)
                # Each part repeats the number of labels on the whole trace.
                whole_trace_count += whole_trace_labels if part_number == 0 else 0
        row_array = np.array(row_indices, dtype=np.intp)
        np.bitwise_or.at(packed[:, part_number], row_array, np.array(packed_values, np.int64))
    columns = np.arange(len(slugs))
    codes = packed[:, columns // MODES_AT_ONCE] >> (BITS * (columns % MODES_AT_ONCE))
    value_of_code = np.full(1 << BITS, no_verdict, dtype=np.int8)
    for verdict, code in CODES.items():
        value_of_code[code] = cell_values[verdict]
    return value_of_code[codes & ((1 << BITS) - 1)], whole_trace_count


class _SideVerdicts:
    """The verdicts of annotators in the passes that count.

    Attributes:
        row_keys: The annotator and the trace id of each row, sorted by trace.
        cells: The verdicts, rows × modes.
        marks: The labels with spans in these passes.
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
        # By annotator, trace and number of the pass.
        rows = {(*key, passes[key]): row for row, key in enumerate(self.row_keys)}
        cells, whole_trace_count = verdict_cells(
            workspace, taxonomy, rows, FLAGS, OPEN, annotator=annotator
        )
        self.cells: NDArray[np.uint8] = cells.astype(np.uint8)
        columns = {mode.slug: column for column, mode in enumerate(taxonomy.modes)}
        trace_ids = [trace for _, trace in self.row_keys]

        def collect(records: Iterator[tuple[Any, ...]]) -> Marks:
            placed = []
            for name, trace, number, mode, first_span, last_span, severity, decisive in records:
                row = rows.get((name, trace, number))
                if row is not None and mode in columns:
                    # There may be a million labels: those of a pass share one string of the trace
                    # id, and the two ends of a label share one string if they are equal.
                    placed.append(
                        VerdictMark(
                            trace_ids[row],
                            columns[mode],
                            first_span,
                            last=first_span if last_span == first_span else last_span,
                            # A label that a judge calls decisive counts as fatal.
                            fatal=severity == Severity.FATAL or decisive == 1,
                        )
                    )
            return Marks(placed, whole_trace_count)

        equal_to = {"taxonomy": taxonomy.ref}
        if annotator is not None:
            equal_to["annotator"] = annotator
        pass_columns = ("annotator", "trace_id", "pass_number")
        label_columns = ("mode", "first_key", "last_key", "severity", "decisive")
        self.marks = workspace.read_columns(
            "labels",
            (*pass_columns, *label_columns),
            collect,
            equal_to=equal_to,
            not_null="first_key",
        )

    def joined_verdicts(
        self, further_traces: Collection[str]
    ) -> tuple[list[str], NDArray[np.uint8], NDArray[np.bool_]]:
        """Join the verdicts of all annotators on each trace: different verdicts are unresolved.

        Args:
            further_traces: The ids of further traces, on which every mode is open.

        Returns:
            The ids of the traces, the joint verdicts (traces × modes), and a mask of the verdicts
            that several annotators gave.
        """
        # The rows are sorted by trace; ``starts`` has the first row of each.
        ids: list[str] = []
        starts = []
        for row, (_, trace) in enumerate(self.row_keys):
            if not ids or trace != ids[-1]:
                ids.append(trace)
                starts.append(row)
        further_ids = sorted(set(further_traces) - set(ids))
        cells = np.full((len(ids) + len(further_ids), self.cells.shape[1]), OPEN, dtype=np.uint8)
        given_by_several = np.zeros(cells.shape, dtype=bool)
        if ids:
            has_verdict = self.cells != OPEN
            cells[: len(ids)] = np.bitwise_or.reduceat(self.cells, starts, axis=0)
            given_by_several[: len(ids)] = (
                np.add.reduceat(has_verdict.astype(np.int64), starts, axis=0) > 1
            )
        # Each verdict is a bit of its own, so different verdicts joined by "or" are none of these.
        cells[~np.isin(cells, (OPEN, PRESENT, ABSENT, UNSURE))] = UNRESOLVED
        return [*ids, *further_ids], cells, given_by_several


def labelled_by(
    workspace: Workspace, taxonomy: Taxonomy, name: str, traces: Container[str] | None = None
) -> LabelledTraces:
    """Read the verdicts of one annotator, from the last finished pass on each trace.

    Traces that a judge has not finished, or that were examples in its prompt, are left out. Modes
    that it does not look at are open.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        name: The name of the annotator.
        traces: The ids of the traces that may be shown, None for all.

    Raises:
        WorkspaceError: There is no such annotator.
    """
    kinds = {info.name: info.kind for info in workspace.annotators()}
    if name not in kinds:
        names = ", ".join([GOLD, *kinds])
        raise WorkspaceError(
            f"--labels: no annotator {name!r} in this workspace; there are: {names}"
        )
    is_judge = kinds[name] is AnnotatorKind.JUDGE
    equal_to = {"taxonomy": taxonomy.ref, "annotator": name}
    left_out = workspace.run_examples(name) if is_judge else frozenset[str]()
    begun_passes = {
        (name, trace): number
        for (_, trace), number in last_pass_numbers(workspace, equal_to, unfinished=True).items()
        if (traces is None or trace in traces) and trace not in left_out
    }
    judgements = workspace.judgements(annotator=name, taxonomy=taxonomy.ref) if is_judge else ()
    looks_at = {judgement.trace_id: judgement.looks_at for judgement in judgements}
    # A judge has finished a trace if there is a judgement.
    if is_judge:
        counted_numbers = {
            (name, trace): number
            for (_, trace), number in begun_passes.items()
            if trace in looks_at
        }
    else:
        finished = last_pass_numbers(workspace, equal_to, unfinished=False)
        counted_numbers = {key: number for key, number in finished.items() if key in begun_passes}
    sides = _SideVerdicts(workspace, taxonomy, counted_numbers, name)
    if is_judge:
        for row, (_, trace) in enumerate(sides.row_keys):
            judged_modes = looks_at.get(trace, ())
            not_judged = [mode.slug not in judged_modes for mode in taxonomy.modes]
            sides.cells[row, not_judged] = OPEN
    return LabelledTraces(
        tuple(trace for _, trace in sides.row_keys),
        sides.cells,
        sides.marks,
        unfinished=len(begun_passes) - len(counted_numbers),
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
    - for traces of several annotators in which a label has a span that ``order_of`` knows, because
      the gold may join spans of several labels.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        gold: The function that returns the gold of traces.
        order_of: The function that returns the order of a trace's spans.
        traces: The ids of the traces that may be shown, None for all.
        which: The part of the gold that counts; ``settled`` leaves out verdicts that only one
            annotator gave.
    """
    equal_to = {"taxonomy": taxonomy.ref}
    passes = last_pass_numbers(workspace, equal_to, unfinished=False)
    if traces is not None:
        passes = {
            (name, trace): number for (name, trace), number in passes.items() if trace in traces
        }
    outside_names = workspace.outside_study(taxonomy.ref)
    not_in_study = finished_by(outside_names, passes)
    kinds = {info.name: info.kind for info in workspace.annotators()}
    names = {name for name, _ in passes}
    people = {
        name for name in names - outside_names if kinds.get(name, annotator_kind(name)).is_person
    }
    # The gold has no verdicts of judges, of agents, or of annotators outside the study.
    if people < names:
        passes = {
            (name, trace): number for (name, trace), number in passes.items() if name in people
        }
    sides = _SideVerdicts(workspace, taxonomy, passes)

    decided_traces = workspace.read_columns(
        "decisions",
        ("trace_id",),
        lambda rows: {trace for (trace,) in rows},
        equal_to=equal_to,
    )
    if traces is not None:
        decided_traces = {trace for trace in decided_traces if trace in traces}
    # First the verdicts that follow from those of the annotators.
    ids, verdicts, given_by_several = sides.joined_verdicts(decided_traces)
    sources = np.where(given_by_several, _UNANIMOUS, _SINGLE).astype(np.uint8)
    sources[verdicts == UNRESOLVED] = SOURCES.index(Resolution.UNRESOLVED)

    # Then the traces that need ``gold``. Rows are sorted by trace, so a trace of several annotators
    # has neighbouring rows.
    shared_traces = {
        trace for (_, trace), (_, next_trace) in pairwise(sides.row_keys) if trace == next_trace
    }
    marks = sides.marks
    if which == "settled":
        # A verdict is settled by a decision or by several annotators. So the gold of these traces
        # has all settled verdicts, and those of the annotators are not needed.
        traces_by_gold = decided_traces | shared_traces
        verdicts[:] = OPEN
        marks = Marks()
    else:
        traces_by_gold = decided_traces | {
            mark.trace
            for mark in marks.placed
            if mark.trace in shared_traces and order_of(mark.trace)(mark.first) is not None
        }
    if traces_by_gold:
        placed = [mark for mark in marks.placed if mark.trace not in traces_by_gold]
        marks = Marks(placed, marks.whole_trace_labels)
        row_by_trace = {trace: row for row, trace in enumerate(ids)}
        column_by_slug = {mode.slug: column for column, mode in enumerate(taxonomy.modes)}
        for trace, gold_trace in gold(traces_by_gold).items():
            if trace in row_by_trace:
                counted_gold = only_settled(gold_trace) if which == "settled" else gold_trace
                row = row_by_trace[trace]
                _replace_by_gold(
                    counted_gold, trace, verdicts[row], sources[row], column_by_slug, marks
                )

    if which == "settled":
        has_verdict = (verdicts != OPEN).any(axis=1)
        ids = [trace for trace, is_judged in zip(ids, has_verdict, strict=True) if is_judged]
        verdicts = verdicts[has_verdict]
        sources = sources[has_verdict]
    counted_ids = set(ids)
    mix: GoldMixJson = {
        "sources": {},
        "traces": {},
        "annotators": sorted({name for name, trace in sides.row_keys if trace in counted_ids}),
        "settled_only": which == "settled",
        "not_in_study": not_in_study,
        "merged": marks.merged,
    }
    for number, source in enumerate(SOURCES):
        from_source = (sources == number) & (verdicts != OPEN)
        mix["sources"][source.value] = int(from_source.sum())
        mix["traces"][source.value] = int(from_source.any(axis=1).sum())
    return LabelledTraces(tuple(ids), verdicts, marks, mix)


def _replace_by_gold(
    gold_trace: GoldTrace,
    trace: str,
    verdict_row: NDArray[np.uint8],
    source_row: NDArray[np.uint8],
    column_by_slug: Mapping[str, int],
    marks: Marks,
) -> None:
    """Replace the annotators' verdicts and labels in a trace by its gold.

    This changes ``marks``, and ``verdict_row`` and ``source_row``, which have a code for each mode.
    """
    verdict_row[:] = OPEN
    for verdict in gold_trace.verdicts:
        source = source_if_counted(verdict)
        if source is not None and verdict.mode in column_by_slug:
            value = verdict.value
            verdict_row[column_by_slug[verdict.mode]] = (
                UNRESOLVED if value is None else FLAGS[value]
            )
            source_row[column_by_slug[verdict.mode]] = SOURCES.index(source)
    for label in gold_trace.labels:
        first_key = label.target.first
        last_key = label.target.last
        if label.mode in column_by_slug and (first_key is None or last_key is None):
            marks.whole_trace_labels += 1
        elif label.mode in column_by_slug and first_key is not None and last_key is not None:
            fatal = label.severity is Severity.FATAL
            marks.placed.append(
                VerdictMark(trace, column_by_slug[label.mode], first_key, last_key, fatal)
            )
            marks.merged += label.merged
