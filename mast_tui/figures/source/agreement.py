"""The verdicts and marked places of a workspace as the input of an agreement report."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from mast_tui.figures.agreement.counting import CELL_OF, MISSING, VerdictArray, VerdictTable
from mast_tui.figures.agreement.report import StudyInput
from mast_tui.figures.source.verdicts import verdict_cells
from mast_tui.figures.spans.input import (
    SharedTrace,
    SpanInput,
    Stretch,
    TraceMarks,
    label_range_of,
    merged_stretches,
)
from mast_tui.gold import Order
from mast_tui.grouping import values_by_key
from mast_tui.labels import (
    AnnotatorKind,
    Pass,
    PassKind,
    VerdictValue,
    Which,
    annotator_kind,
    counted_passes,
    finished_by,
    is_judge,
)
from mast_tui.study import Study, is_expected
from mast_tui.taxonomy.model import OPEN_CODE_SLUG

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace
    from mast_tui.workspace.events.types import SpansRead

SpanOrderOf = Callable[[str], tuple[Order, int] | None]
"""Returns the order of a trace's spans and their number; None if unknown.

The order may raise ``UnknownSpan``.
"""

LengthOf = Callable[[str, str], int | None]
"""Returns the number of code points of a span's text by trace id and key; None if unknown."""


class UnknownSpan(LookupError):
    """A span with an unknown index, because its trace was not read yet."""


def span_input_from_workspace(
    workspace: Workspace,
    taxonomy: Taxonomy,
    annotators: Sequence[str],
    *,
    order_of: SpanOrderOf,
    length_of: LengthOf | None = None,
    which: Which = "first",
    traces: Container[str] | None = None,
    passes: Sequence[Pass] | None = None,
) -> SpanInput:
    """Read the places that annotators marked under one taxonomy, in the finished passes that count.

    An absent mode is absent on the spans that were read; an open or unsure mode has no answer. A
    pass without a record of reading (of judges and imports) counts as read completely.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        annotators: The annotators to compare.
        order_of: Returns the order of a trace's spans and their number, or None if the trace cannot
            be read. It is called once for each trace, in the order of files.
        length_of: Returns the length of a span's text, for quotes.
        which: The pass of each annotator that counts.
        traces: The ids of the traces that may be shown; None for all.
        passes: All passes of the taxonomy; None to read them from the workspace.
    """
    if passes is None:
        passes = workspace.passes(taxonomy=taxonomy.ref)
    pass_by_key = counted_passes(_visible_passes(passes, traces), which)
    finished = _finished_traces(workspace, annotators, pass_by_key)
    compared_traces: list[SharedTrace] = []
    not_at_hand = 0
    for trace_id in _shared_traces_by_file(workspace, finished.traces):
        trace_passes = {
            name: pass_by_key[name, trace_id]
            for name, own_traces in finished.traces.items()
            if trace_id in own_traces
        }
        length = None if length_of is None else partial(length_of, trace_id)
        shared_trace = _shared_trace(
            workspace, taxonomy, trace_id, trace_passes, order_of(trace_id), length
        )
        if shared_trace is None:
            not_at_hand += 1
        else:
            compared_traces.append(shared_trace)
    return SpanInput(
        taxonomy_ref=taxonomy.ref,
        modes=taxonomy.modes,
        annotators=tuple(annotators),
        pass_label="1" if which == "first" else "last",
        traces=tuple(sorted(compared_traces, key=lambda trace: trace.trace_id)),
        finished={name: len(own_traces) for name, own_traces in finished.traces.items()},
        not_at_hand=not_at_hand,
        examples=finished.examples,
    )


def _visible_passes(passes: Sequence[Pass], visible: Container[str] | None) -> list[Pass]:
    """Return the passes on traces that may be shown; None stands for all traces."""
    return [labelling for labelling in passes if visible is None or labelling.trace_id in visible]


def _shared_traces_by_file(
    workspace: Workspace, traces_by_name: Mapping[str, frozenset[str]]
) -> list[str]:
    """Return the traces that two or more annotators have finished, sorted by file."""
    path_by_trace = {record.trace_id: str(record.path or "") for record in workspace.traces()}
    annotator_counts = Counter(chain.from_iterable(traces_by_name.values()))
    shared_traces = [trace_id for trace_id, count in annotator_counts.items() if count > 1]
    return sorted(shared_traces, key=lambda trace_id: (path_by_trace.get(trace_id, ""), trace_id))


def _shared_trace(
    workspace: Workspace,
    taxonomy: Taxonomy,
    trace_id: str,
    passes: Mapping[str, Pass],
    known_order: tuple[Order, int] | None,
    length_of: Callable[[str], int | None] | None,
) -> SharedTrace | None:
    """Return a trace with the marks of its annotators in these passes.

    ``known_order`` is the order of the trace's spans and their number. The result is None if the
    index of a span is unknown.
    """
    if known_order is None:
        return None
    order, span_count = known_order
    labels = _TraceLabels(workspace, taxonomy, trace_id, order, length_of)
    try:
        marks_by_name = {name: labels.marks(labelling) for name, labelling in passes.items()}
    except UnknownSpan:
        return None
    return SharedTrace(trace_id, span_count, marks_by_name)


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
        # Returns the length of a span's text, for quotes; None without texts.
        self._length_of = length_of
        self._verdicts: dict[tuple[str, int], dict[str, VerdictValue]] = defaultdict(dict)
        ref = taxonomy.ref
        self._labels = values_by_key(
            ((label.annotator, label.pass_number), label)
            for label in workspace.labels(trace_id=trace_id, taxonomy=ref, pass_number=None)
            if label.mode in self._modes  # not an open code
        )
        for verdict in workspace.verdicts(trace_id=trace_id, taxonomy=ref, pass_number=None):
            self._verdicts[verdict.annotator, verdict.pass_number][verdict.mode] = verdict.value

    def marks(self, labelling: Pass) -> TraceMarks:
        """Return the places that an annotator marked in a pass, and the spans that were read.

        Raises:
            UnknownSpan: The index of a span is unknown.
        """
        key = (labelling.annotator, labelling.number)
        labels = self._labels.get(key, [])
        ranges = [label_range_of(label.target, self._order, self._length_of) for label in labels]
        places = values_by_key(
            (label.mode, label_range)
            for label, label_range in zip(labels, ranges, strict=True)
            if label_range is not None
        )
        whole_trace_count = sum(label.target.is_whole for label in labels)
        answers = self._verdicts.get(key, {})
        present_modes = {mode for mode, value in answers.items() if value is VerdictValue.PRESENT}
        answered_modes = {
            mode for mode, value in answers.items() if value is not VerdictValue.UNSURE
        }
        return TraceMarks(
            places={mode: tuple(mode_places) for mode, mode_places in places.items()},
            read=self._read_stretches(labelling),
            unanswered=self._modes - answered_modes,
            whole_trace=whole_trace_count,
            not_found=ranges.count(None) - whole_trace_count,
            unplaced=frozenset(present_modes - places.keys()),
        )

    def _read_stretches(self, labelling: Pass) -> tuple[Stretch, ...] | None:
        """Return the stretches of spans that were read in a pass; None without a record."""
        if labelling.read is None:
            return None
        spans_read = self._workspace.reads(
            labelling.annotator, labelling.trace_id, labelling.taxonomy, labelling.number
        )
        return merged_stretches(_stretches_of(spans_read, self._order), join_touching=True)


def _stretches_of(spans_read: SpansRead, index_of: Order) -> Iterator[Stretch]:
    """Yield the spans and ranges that were read as (first index, index after the last)."""
    single_spans = ((key, key) for key in spans_read.keys)
    ranges = ((span_range.first, span_range.last) for span_range in spans_read.ranges)
    for first_key, last_key in (*single_spans, *ranges):
        first = index_of(first_key)
        last = index_of(last_key)
        if first is not None and last is not None:
            yield min(first, last), max(first, last) + 1


_NO_VERDICTS_ROW: Final = -1


def study_from_workspace(
    workspace: Workspace,
    taxonomy: Taxonomy,
    *,
    annotators: Sequence[str] | None = None,
    which: Which = "first",
    traces: Container[str] | None = None,
    passes: Sequence[Pass] | None = None,
    with_agents: bool = False,
) -> StudyInput:
    """Read the verdicts of annotators under one taxonomy, in the finished passes that count.

    Retests are compared with the first pass, even if the last pass counts. A judge's verdicts on
    examples in its prompt are left out.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        annotators: The annotators to compare. By default the study's people who have finished a
            trace, or, without a study, all people (without people, all imported annotators).
        which: The pass of each annotator that counts.
        traces: The ids of the traces that may be shown; None for all.
        passes: All passes of the taxonomy; None to read them from the workspace.
        with_agents: Whether to compare agents with the ``annotators``. With the default annotators,
            agents are always compared.

    Raises:
        WorkspaceError: There is no such annotator.
    """
    all_passes = workspace.passes(taxonomy=taxonomy.ref) if passes is None else passes
    passes = _visible_passes(all_passes, traces)
    pass_by_key = counted_passes(passes, which)
    outside_names = frozenset[str]() if annotators else workspace.outside_study(taxonomy.ref)
    if annotators:
        workspace.check_annotators(*annotators)
        names = tuple(annotators)
    else:
        names_with_finished = {name for name, _ in pass_by_key} - outside_names
        is_study = workspace.study(taxonomy.ref) is not None
        names = tuple(_compared_people(workspace, names_with_finished, in_study=is_study))
    finished = _finished_traces(workspace, names, pass_by_key)
    compared_passes = {
        (name, trace): pass_by_key[name, trace]
        for name, own_traces in finished.traces.items()
        for trace in own_traces
    }
    verdicts = _Verdicts(workspace, taxonomy, passes)
    compares_agents = with_agents or not annotators
    return StudyInput(
        taxonomy_ref=taxonomy.ref,
        modes=taxonomy.modes,
        annotators=names,
        pass_label="1" if which == "first" else "last",
        verdicts=verdicts.table(names, {trace for _, trace in compared_passes}, compared_passes),
        finished=finished.traces,
        examples=finished.examples,
        categories=taxonomy.at_level(0),
        levels=taxonomy.by_level,
        # How many traces someone has begun is not hidden.
        unfinished=_unfinished_counts(all_passes, which, workspace.study(taxonomy.ref)),
        rounds=_rounds_of_study(workspace, taxonomy),
        retests=_retest_verdicts(passes, verdicts),
        agents=_agent_verdicts(pass_by_key, finished.traces, verdicts) if compares_agents else (),
        not_in_study=finished_by(outside_names, pass_by_key),
        open_codes=_open_code_counts(workspace, taxonomy, pass_by_key),
        suggested=_traces_with_suggestions(names, pass_by_key),
        settled_absent=_settled_absent(workspace, taxonomy.ref),
    )


def _open_code_counts(
    workspace: Workspace, taxonomy: Taxonomy, pass_by_key: Mapping[tuple[str, str], Pass]
) -> dict[str, int]:
    """Return the number of each annotator's open codes (labels without a mode) in these passes."""
    pass_numbers = {key: labelling.number for key, labelling in pass_by_key.items()}

    def collect(rows: Iterator[tuple[Any, ...]]) -> Counter[str]:
        return Counter(
            name for name, trace, number in rows if pass_numbers.get((name, trace)) == number
        )

    # Labels of a mode with this slug are no open codes.
    if any(mode.slug == OPEN_CODE_SLUG for mode in taxonomy.modes):
        return {}
    columns = ("annotator", "trace_id", "pass_number")
    equal_to = {"taxonomy": taxonomy.ref, "mode": OPEN_CODE_SLUG}
    return dict(workspace.read_columns("labels", columns, collect, equal_to=equal_to))


class _Finished(NamedTuple):
    """The finished traces of annotators, without examples in the prompt of a judge.

    Attributes:
        traces: The traces by annotator.
        examples: The number of examples that were left out, by judge.
    """

    traces: dict[str, frozenset[str]]
    examples: dict[str, int]


def _finished_traces(
    workspace: Workspace, names: Iterable[str], pass_by_key: Mapping[tuple[str, str], Pass]
) -> _Finished:
    """Return the finished traces of some annotators, from the passes that count."""
    traces_by_name: dict[str, set[str]] = {name: set() for name in names}
    for name, trace_id in pass_by_key:
        if name in traces_by_name:
            traces_by_name[name].add(trace_id)
    examples: dict[str, int] = {}
    for name, traces in traces_by_name.items():
        if is_judge(name):
            own_examples = traces & workspace.unmeasured_traces(name)
            traces -= own_examples
            if own_examples:
                examples[name] = len(own_examples)
    return _Finished({name: frozenset(traces_by_name[name]) for name in traces_by_name}, examples)


def _traces_with_suggestions(
    names: Container[str], pass_by_key: Mapping[tuple[str, str], Pass]
) -> dict[str, frozenset[str]]:
    """Return the traces that each annotator labelled with a judge's suggestions on screen."""
    traces_by_name = values_by_key(
        (name, trace_id)
        for (name, trace_id), labelling in pass_by_key.items()
        if name in names and labelling.judge_seen
    )
    return {name: frozenset(traces) for name, traces in traces_by_name.items()}


def _settled_absent(workspace: Workspace, ref: str) -> frozenset[tuple[str, str]]:
    """Return each (trace, mode) on which an adjudicator's last decision is absent."""
    study = workspace.study(ref)
    # A later decision replaces an earlier one on the same mode.
    last_decisions = {
        (trace_id, decision.mode): decision.value
        for trace_id, decisions in workspace.all_decisions(ref).items()
        for decision in decisions
        if decision.is_verdict and (study is None or study.counts_decisions_of(decision.decided_by))
    }
    return frozenset(unit for unit, value in last_decisions.items() if value is VerdictValue.ABSENT)


def _unfinished_counts(passes: Sequence[Pass], which: Which, study: Study | None) -> dict[str, int]:
    """Return the number of traces that each annotator has begun without a pass that counts."""
    begun = counted_passes(passes, which, finished_only=False).keys()
    unfinished = begun - counted_passes(passes, which).keys()
    return dict(Counter(name for name, trace in unfinished if is_expected(study, name, trace)))


def _rounds_of_study(workspace: Workspace, taxonomy: Taxonomy) -> dict[str, frozenset[str]]:
    """Return the rounds by number: the traces of each batch; none for a single batch."""
    study = workspace.study(taxonomy.ref)
    if study is None or len(study.batches) < 2:
        return {}
    return {str(number): frozenset(batch) for number, batch in enumerate(study.batches, start=1)}


def _retest_verdicts(passes: Sequence[Pass], verdicts: _Verdicts) -> dict[str, VerdictTable]:
    """Return by annotator the verdicts of the first pass and of the first retest, as two rows."""
    first_passes = counted_passes(passes, "first")
    retest_passes: dict[tuple[str, str], Pass] = {}
    # In reverse order, so that the first retest replaces later ones.
    for labelling in sorted(passes, key=lambda labelling: labelling.number, reverse=True):
        key = (labelling.annotator, labelling.trace_id)
        if labelling.kind is PassKind.RETEST and labelling.finished and key in first_passes:
            retest_passes[key] = labelling
    retests: dict[str, VerdictTable] = {}
    for name in sorted({name for name, _ in retest_passes}):
        traces = {trace for annotator, trace in retest_passes if annotator == name}
        sides = {"first": first_passes, "retest": retest_passes}
        passes_by_side = {
            (side, trace): sides[side][name, trace] for side in sides for trace in traces
        }
        retests[name] = verdicts.table(tuple(sides), traces, passes_by_side)
    return retests


def _agent_verdicts(
    pass_by_key: Mapping[tuple[str, str], Pass],
    finished: Mapping[str, frozenset[str]],
    verdicts: _Verdicts,
) -> tuple[VerdictTable, ...]:
    """Return a table for each pair of an agent and a person, on the traces that both have finished.

    ``pass_by_key`` has the passes that count, ``finished`` the traces of the compared annotators.
    """
    traces_by_agent = values_by_key(
        key for key in pass_by_key if annotator_kind(key[0]) is AnnotatorKind.AGENT
    )
    shared_traces = {
        (agent, person): person_traces.intersection(agent_traces)
        for agent, agent_traces in sorted(traces_by_agent.items())
        for person, person_traces in finished.items()
    }
    return tuple(
        verdicts.table(pair, traces, pass_by_key)
        for pair, traces in shared_traces.items()
        if traces
    )


class _Verdicts:
    """The verdicts of passes under one taxonomy."""

    def __init__(self, workspace: Workspace, taxonomy: Taxonomy, passes: Sequence[Pass]) -> None:
        self._slugs = tuple(mode.slug for mode in taxonomy.modes)
        self._rows = {_pass_key(labelling): row for row, labelling in enumerate(passes)}
        cells: VerdictArray = verdict_cells(workspace, taxonomy, self._rows, CELL_OF, MISSING).cells
        # The last row, ``_NO_VERDICTS_ROW``, is for unfinished traces.
        self._cells = np.pad(cells, ((0, 1), (0, 0)), constant_values=MISSING)

    def table(
        self,
        sides: tuple[str, ...],
        traces: Iterable[str],
        passes: Mapping[tuple[str, str], Pass],
    ) -> VerdictTable:
        """Return the verdicts of several annotators, or of several passes, on the same traces.

        Args:
            sides: The names of the annotators or passes.
            traces: The ids of the traces.
            passes: The pass of each side and trace; a missing one has no verdicts.
        """
        sorted_traces = tuple(sorted(traces))
        passes_of_cells = (passes.get(key) for key in product(sides, sorted_traces))
        rows = [
            _NO_VERDICTS_ROW if trace_pass is None else self._rows[_pass_key(trace_pass)]
            for trace_pass in passes_of_cells
        ]
        shape = len(sides), len(sorted_traces), len(self._slugs)
        cells = self._cells[np.array(rows, dtype=np.intp)].reshape(shape)
        return VerdictTable(sides, sorted_traces, self._slugs, cells)


def _pass_key(labelling: Pass) -> tuple[str, str, int]:
    return labelling.annotator, labelling.trace_id, labelling.number


def _compared_people(
    workspace: Workspace, names_with_finished: Container[str], *, in_study: bool
) -> list[str]:
    """Return the people who have finished traces or, without any, the imported annotators.

    With ``in_study``, return both, because members of a study may have imported their labels.
    """
    infos = [info for info in workspace.annotators() if info.name in names_with_finished]
    people = [info.name for info in infos if info.kind is AnnotatorKind.HUMAN]
    imported = [info.name for info in infos if info.kind is AnnotatorKind.IMPORTED]
    return sorted(people + imported) if in_study else people or imported
