"""What a workspace knows of the places that its annotators marked, as the input of a report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from mast_tui.figures.spans.input import (
    Place,
    Reading,
    SpanInput,
    Stretch,
    TraceReadings,
    merged,
    place_of,
)
from mast_tui.gold import Order
from mast_tui.labels import AnnotatorKind, Label, Pass, VerdictValue, annotator_kind
from mast_tui.passes import Which, counted_passes

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace
    from mast_tui.workspace.events.types import SpansRead

SpanOrderOf = Callable[[str], tuple[Order, int] | None]
"""The order of the spans of a trace and how many it has, None where that is not known.

The order may raise ``UnknownSpan``."""

LengthOf = Callable[[str, str], int | None]
"""The code points of a span's text, by trace id and key; None where it is not known."""


class UnknownSpan(LookupError):
    """A span of a trace that nobody has read yet, so that its index is not known."""


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

    Where it is known which spans were read by when the pass was finished, only these count as
    seen, whatever was said of open modes at the finish; modes left open count as looked for on
    them, and those said to be unsure do not. Where nobody kept that record (judges, imports), the
    trace counts as seen from end to end for the modes with a verdict, and not at all for others.

    A judge is never compared on a trace that stood as an example in its prompt.

    Args:
        workspace: Where they are.
        taxonomy: Under which taxonomy.
        annotators: Whose.
        order_of: Gives the order of a trace's spans, and how many there are; asked once a trace,
            and for traces in one file one after the other. A trace with a span whose index is not
            known is left out.
        length_of: Gives how long the text of a span is, for quotes.
        which: Which pass of each counts.
        traces: Those that may be seen; None for all.
        read_passes: All of the taxonomy, where they were read already.
    """
    passes: dict[str, dict[str, Pass]] = defaultdict(dict)
    examples: dict[str, int] = {}
    shown = {
        name: workspace.run_examples(name)
        for name in annotators
        if annotator_kind(name) is AnnotatorKind.JUDGE
    }
    if read_passes is None:
        read_passes = workspace.passes(taxonomy=taxonomy.ref)
    counted = counted_passes(read_passes, which)
    for (name, trace_id), one in counted.items():
        if name not in annotators or (traces is not None and trace_id not in traces):
            continue
        if trace_id in shown.get(name, ()):
            examples[name] = examples.get(name, 0) + 1
        else:
            passes[trace_id][name] = one
    compared: list[TraceReadings] = []
    not_at_hand = 0
    for trace_id in _by_file(workspace, passes):
        order = order_of(trace_id)
        if order is None:
            not_at_hand += 1
            continue
        length = None if length_of is None else partial(length_of, trace_id)
        words = _Words(workspace, taxonomy, trace_id, order[0], length)
        try:
            readings = {name: words.reading(one) for name, one in passes[trace_id].items()}
        except UnknownSpan:
            not_at_hand += 1
            continue
        compared.append(TraceReadings(trace_id, order[1], readings))
    return SpanInput(
        taxonomy_ref=taxonomy.ref,
        modes=tuple((mode.slug, mode.code, mode.name) for mode in taxonomy.modes),
        annotators=tuple(annotators),
        pass_label="1" if which == "first" else "last",
        traces=tuple(sorted(compared, key=lambda trace: trace.trace_id)),
        finished={name: sum(name in by for by in passes.values()) for name in annotators},
        not_at_hand=not_at_hand,
        examples=examples,
    )


def _by_file(workspace: Workspace, passes: Mapping[str, Mapping[str, Pass]]) -> list[str]:
    """The traces that two or more have finished, those of one file together."""
    files = {record.trace_id: str(record.path or "") for record in workspace.traces()}
    shared = [trace_id for trace_id, by in passes.items() if len(by) > 1]
    return sorted(shared, key=lambda trace_id: (files.get(trace_id, ""), trace_id))


class _Words:
    """What everybody said about one trace."""

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
        for said in workspace.verdicts(trace_id=trace_id, taxonomy=ref, pass_number=None):
            self._verdicts[said.annotator, said.pass_number][said.mode] = said.value

    def reading(self, one: Pass) -> Reading:
        """What an annotator made of the trace in a pass."""
        verdicts = self._verdicts.get((one.annotator, one.number), {})
        read = self._read(one)
        said = frozenset(
            mode for mode, value in verdicts.items() if value is not VerdictValue.UNSURE
        )
        unsure = verdicts.keys() - said
        places: dict[str, list[Place]] = defaultdict(list)
        whole_trace = not_found = 0
        for label in self._labels.get((one.annotator, one.number), ()):
            if label.mode not in self._modes:  # an open code
                continue
            place = place_of(label.target, self._order, self._length_of)
            if place is not None:
                places[label.mode].append(place)
            elif label.target.is_whole:
                whole_trace += 1
            else:
                not_found += 1
        present = {mode for mode, value in verdicts.items() if value is VerdictValue.PRESENT}
        return Reading(
            {mode: tuple(marked) for mode, marked in places.items()},
            read,
            frozenset(self._modes - said if read is None else unsure),
            whole_trace,
            not_found,
            frozenset(present - places.keys()),
        )

    def _read(self, one: Pass) -> tuple[Stretch, ...] | None:
        """The spans that were read by the end of a pass, None where nobody counted them."""
        if one.read is None:
            return None
        read = self._workspace.reads(one.annotator, one.trace_id, one.taxonomy, one.number)
        return merged(_stretches(read, self._order), touching=True)


def _stretches(read: SpansRead, order: Order) -> Iterator[Stretch]:
    runs = ((run.first, run.last) for run in read.runs)
    for first, last in (*((key, key) for key in read.keys), *runs):
        one, other = order(first), order(last)
        if one is not None and other is not None:
            yield min(one, other), max(one, other) + 1
