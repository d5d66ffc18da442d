"""The places that annotators of a workspace marked, as the input of a report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from mast_tui.figures.spans.input import (
    LabelRange,
    SpanInput,
    Stretch,
    TraceReading,
    TraceReadings,
    merged_stretches,
    place_of,
)
from mast_tui.gold import Order
from mast_tui.labels import (
    AnnotatorKind,
    Label,
    Pass,
    VerdictValue,
    Which,
    annotator_kind,
    counted_passes,
)

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace
    from mast_tui.workspace.events.types import SpansRead

SpanOrderOf = Callable[[str], tuple[Order, int] | None]
"""Returns the order of the spans of a trace and their number, None if they are unknown.

The order may raise ``UnknownSpan``."""

LengthOf = Callable[[str, str], int | None]
"""Returns the code points of a span's text by trace id and key; None if it is unknown."""


class UnknownSpan(LookupError):
    """A span whose index is unknown, because its trace was not read yet."""


def span_input_from_workspace(
    workspace: Workspace,
    taxonomy: Taxonomy,
    annotators: Sequence[str],
    *,
    order_of: SpanOrderOf,
    length_of: LengthOf | None = None,
    which: Which = "first",
    traces: Container[str] | None = None,
    read_passes: Sequence[Pass] | None = None,
) -> SpanInput:
    """Read the places marked under one taxonomy in finished traces, of the pass that counts.

    If it is recorded which spans were read before the pass was finished, only these count as seen.
    Modes left open then count as looked for on these spans, modes marked unsure do not. Without a
    record (judges, imports), the whole trace counts as seen for the modes with a verdict, and no
    span of it for other modes.

    A judge is never compared on a trace that was an example in its prompt.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        annotators: The annotators to compare.
        order_of: The function that returns the order of a trace's spans and their number. It is
            called once a trace, for the traces of one file one after the other. A trace with a span
            of unknown index is left out.
        length_of: The function that returns the length of a span's text, for quotes.
        which: The pass of each annotator that counts.
        traces: The ids of the traces that may be shown, None for all.
        read_passes: All passes of the taxonomy, if they were read already.
    """
    passes_by_trace: dict[str, dict[str, Pass]] = defaultdict(dict)
    examples: dict[str, int] = {}
    examples_of = {
        name: workspace.run_examples(name)
        for name in annotators
        if annotator_kind(name) is AnnotatorKind.JUDGE
    }
    if read_passes is None:
        read_passes = workspace.passes(taxonomy=taxonomy.ref)
    pass_by_key = counted_passes(read_passes, which)
    for (name, trace_id), labelling in pass_by_key.items():
        if name not in annotators or (traces is not None and trace_id not in traces):
            continue
        if trace_id in examples_of.get(name, ()):
            examples[name] = examples.get(name, 0) + 1
        else:
            passes_by_trace[trace_id][name] = labelling
    compared_traces: list[TraceReadings] = []
    not_at_hand = 0
    for trace_id in _shared_traces_by_file(workspace, passes_by_trace):
        known_order = order_of(trace_id)
        if known_order is None:
            not_at_hand += 1
            continue
        length = None if length_of is None else partial(length_of, trace_id)
        order, span_count = known_order
        labels = _TraceLabels(workspace, taxonomy, trace_id, order, length)
        try:
            readings = {
                name: labels.reading(labelling)
                for name, labelling in passes_by_trace[trace_id].items()
            }
        except UnknownSpan:
            not_at_hand += 1
            continue
        compared_traces.append(TraceReadings(trace_id, span_count, readings))
    return SpanInput(
        taxonomy_ref=taxonomy.ref,
        modes=tuple((mode.slug, mode.code, mode.name) for mode in taxonomy.modes),
        annotators=tuple(annotators),
        pass_label="1" if which == "first" else "last",
        traces=tuple(sorted(compared_traces, key=lambda trace: trace.trace_id)),
        finished={
            name: sum(name in trace_passes for trace_passes in passes_by_trace.values())
            for name in annotators
        },
        not_at_hand=not_at_hand,
        examples=examples,
    )


def _shared_traces_by_file(
    workspace: Workspace, passes: Mapping[str, Mapping[str, Pass]]
) -> list[str]:
    """Return the traces that two or more annotators have finished, sorted by file."""
    files = {record.trace_id: str(record.path or "") for record in workspace.traces()}
    shared_traces = [trace_id for trace_id, trace_passes in passes.items() if len(trace_passes) > 1]
    return sorted(shared_traces, key=lambda trace_id: (files.get(trace_id, ""), trace_id))


class _TraceLabels:
    """The labels and verdicts of all annotators on one trace."""

    def __init__(
        self,
        workspace: Workspace,
        taxonomy: Taxonomy,
        trace_id: str,
        order: Order,
        length_of: Callable[[str], int | None] | None,
    ) -> None:
        self._workspace = workspace
        self._modes = frozenset(mode.slug for mode in taxonomy.modes)
        self._order = order
        self._length_of = length_of
        self._labels: dict[tuple[str, int], list[Label]] = defaultdict(list)
        self._verdicts: dict[tuple[str, int], dict[str, VerdictValue]] = defaultdict(dict)
        ref = taxonomy.ref
        for label in workspace.labels(trace_id=trace_id, taxonomy=ref, pass_number=None):
            self._labels[label.annotator, label.pass_number].append(label)
        for verdict in workspace.verdicts(trace_id=trace_id, taxonomy=ref, pass_number=None):
            self._verdicts[verdict.annotator, verdict.pass_number][verdict.mode] = verdict.value

    def reading(self, labelling: Pass) -> TraceReading:
        """Return the places that an annotator marked in a pass, and the spans that count as seen.

        Raises:
            UnknownSpan: The index of a span is unknown.
        """
        key = (labelling.annotator, labelling.number)
        verdicts = self._verdicts.get(key, {})
        read_stretches = self._read_stretches(labelling)
        decided_modes = frozenset(
            mode for mode, value in verdicts.items() if value is not VerdictValue.UNSURE
        )
        unsure_modes = verdicts.keys() - decided_modes
        places: dict[str, list[LabelRange]] = defaultdict(list)
        whole_trace = 0
        not_found = 0
        for label in self._labels.get(key, ()):
            if label.mode not in self._modes:  # an open code
                continue
            label_range = place_of(label.target, self._order, self._length_of)
            if label_range is not None:
                places[label.mode].append(label_range)
            elif label.target.is_whole:
                whole_trace += 1
            else:
                not_found += 1
        present_modes = {mode for mode, value in verdicts.items() if value is VerdictValue.PRESENT}
        return TraceReading(
            {mode: tuple(mode_places) for mode, mode_places in places.items()},
            read_stretches,
            frozenset(self._modes - decided_modes if read_stretches is None else unsure_modes),
            whole_trace,
            not_found,
            frozenset(present_modes - places.keys()),
        )

    def _read_stretches(self, labelling: Pass) -> tuple[Stretch, ...] | None:
        """Return the spans that were read before the end of a pass, None without a record."""
        if labelling.read is None:
            return None
        read = self._workspace.reads(
            labelling.annotator, labelling.trace_id, labelling.taxonomy, labelling.number
        )
        return merged_stretches(_stretches_of(read, self._order), touching=True)


def _stretches_of(read: SpansRead, order: Order) -> Iterator[Stretch]:
    """Yield the stretches of the recorded single spans and runs of spans, in any order."""
    run_keys = ((run.first, run.last) for run in read.runs)
    for first, last in (*((key, key) for key in read.keys), *run_keys):
        start = order(first)
        end = order(last)
        if start is not None and end is not None:
            yield min(start, end), max(start, end) + 1
