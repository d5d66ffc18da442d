"""The source traces of a figure of failure signatures, with the onsets of their modes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, groupby
from typing import Final, NamedTuple

from mast_tui.figures.record import PAIR, Sources
from mast_tui.figures.signatures.groups import SHAPES, trace_shapes
from mast_tui.figures.signatures.model import (
    FAILED,
    PRESENT,
    SUCCEEDED,
    UNKNOWN,
    Flags,
    Rules,
    SignatureInput,
)
from mast_tui.figures.signatures.onset import BINS, Chain, chain_of, onsets
from mast_tui.reports.model import Column, Kind, Row, Table
from mast_tui.safe_text import one_line
from mast_tui.ui.actions.registry import Where
from mast_tui.ui.context import TraceLocation
from mast_tui.ui.reports.screen import MOST_SOURCE_TRACES, Listing, TracesScreen
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.wording import counted

COLUMNS: Final = (
    Column("trace", "trace", Kind.TEXT),
    Column("modes", "modes", Kind.COUNT, priority=85),
    Column("outcome", "outcome", Kind.TEXT, priority=70),
    Column("shape", "shape", Kind.TEXT, priority=80),
    Column("first", "first at", Kind.TEXT, priority=75),
    Column("chain", "modes by onset", Kind.TEXT, priority=90),
)


class ShapeText(NamedTuple):
    """The sign and the description of a shape of failure."""

    sign: str
    description: str


_SHAPE_TEXTS: Final[Mapping[str, ShapeText]] = {
    "isolated": ShapeText("·", "Isolated: one or two modes."),
    "between": ShapeText("+", "Between isolated and cascading: three modes."),
    "cascading": ShapeText("»", "Cascading: four modes or more."),
    "open": ShapeText("?", "Open: open or unsure verdicts could change the classification."),
    "none": ShapeText("", "No mode."),
}

_OUTCOMES: Final = {"": UNKNOWN, "failed": FAILED, "succeeded": SUCCEEDED}
OUTCOME_NAMES: Final = {outcome: name for name, outcome in _OUTCOMES.items()}


class ModeOnset(NamedTuple):
    """The onset of a mode in a trace.

    Attributes:
        code: The code of the mode.
        span: The index of its first span.
        step_number: The number of this span among the different first spans of modes, from 0.
    """

    code: str
    span: int
    step_number: int


class SignatureTracesScreen(TracesScreen):
    """The source traces of a figure, with their modes."""

    where = Where.SIGNATURE_TRACES


@dataclass(frozen=True, slots=True)
class FailingTrace:
    """One trace with its modes, named by their codes.

    Attributes:
        trace_id: The id of the trace.
        outcome: ``failed``, ``succeeded``, or empty if it is unknown.
        shape: The shape of its failure.
        modes: The modes that are present.
        chain: The modes with a known span, in the order of their onsets.
        first: The index of the first failing span; None if no mode has a span.
        opens_at: The index of the span at which the trace opens; None without one.
        spans: The number of spans; -1 if it is unknown.
    """

    trace_id: str
    outcome: str
    shape: str
    modes: tuple[str, ...]
    chain: Chain
    first: int | None
    opens_at: int | None
    spans: int

    @property
    def location(self) -> TraceLocation:
        """The location at which the trace opens."""
        return TraceLocation(self.trace_id, position=self.opens_at)


@dataclass(frozen=True, slots=True)
class FailingTraces:
    """The first failing traces, and the number of all."""

    traces: tuple[FailingTrace, ...]
    total: int


def failing_traces(inputs: SignatureInput, group: str, sources: Sources) -> FailingTraces:
    """List the traces of a group that a query selects, those with the most modes first.

    The list has at most ``MOST_SOURCE_TRACES`` traces.

    Args:
        inputs: The input of the figures, with a row for each trace and a column for each mode.
        group: The name of the group, or ``OVERALL``.
        sources: The query for the traces of a figure.
    """
    columns = [column for column, mode in enumerate(inputs.modes) if mode.slug in sources.modes]
    sought_codes = {inputs.modes[column].code for column in columns}
    conditions = dict(sources.where)
    members = inputs.members()[group]
    # The slow conditions on onsets are checked only for these traces.
    chosen_flags = members & (inputs.verdicts[:, columns] == PRESENT).all(axis=1)
    if "outcome" in conditions:
        chosen_flags = chosen_flags & (inputs.outcome == _OUTCOMES[conditions["outcome"]])
    onsets_by_row = _onsets_by_row(inputs, chosen_flags)
    counts = (inputs.verdicts == PRESENT).sum(axis=1).tolist()
    rows = [
        row
        for row in chosen_flags.nonzero()[0].tolist()
        if _meets_conditions(onsets_by_row[row], int(inputs.spans[row]), sought_codes, conditions)
    ]
    rows.sort(key=lambda row: (-counts[row], inputs.traces[row]))
    # A query on successive modes names the modes only in its condition.
    codes_to_open = sought_codes or set(conditions.get("step", "").split(PAIR)) - {""}
    shape_by_row = _shape_by_row(inputs, members)
    traces = tuple(
        _failing_trace(inputs, row, shape_by_row[row], onsets_by_row[row], codes_to_open)
        for row in rows[:MOST_SOURCE_TRACES]
    )
    return FailingTraces(traces, len(rows))


def _failing_trace(
    inputs: SignatureInput,
    row: int,
    shape: str,
    trace_onsets: Sequence[ModeOnset],
    codes_to_open: Collection[str],
) -> FailingTrace:
    """Return the trace of a row of the input.

    It opens at the first of ``codes_to_open`` or, without any, at the first of its modes.
    """
    present_flags = (inputs.verdicts[row] == PRESENT).tolist()
    opening_spans = [
        onset.span for onset in trace_onsets if not codes_to_open or onset.code in codes_to_open
    ]
    return FailingTrace(
        trace_id=inputs.traces[row],
        outcome=OUTCOME_NAMES[int(inputs.outcome[row])],
        shape=shape,
        modes=tuple(mode.code for mode in compress(inputs.modes, present_flags)),
        chain=_chain_of_onsets(trace_onsets),
        first=trace_onsets[0].span if trace_onsets else None,
        opens_at=opening_spans[0] if opening_spans else None,
        spans=int(inputs.spans[row]),
    )


def _onsets_by_row(inputs: SignatureInput, included: Flags) -> defaultdict[int, list[ModeOnset]]:
    """Return the onsets (first spans) of modes on each included trace, by its row in ``inputs``.

    The onsets of a trace are in order. A trace without onsets has an empty list.
    """
    table = onsets(inputs).in_traces(included)
    onsets_by_row: defaultdict[int, list[ModeOnset]] = defaultdict(list)
    columns = (table.trace.tolist(), table.mode.tolist(), table.first.tolist(), table.step.tolist())
    for row, mode, span, step in zip(*columns, strict=True):
        onsets_by_row[row].append(ModeOnset(inputs.modes[mode].code, span, step))
    return onsets_by_row


def _shape_by_row(inputs: SignatureInput, members: Flags) -> dict[int, str]:
    """Return the shape of each trace of a group, such as ``isolated``, by the row of the trace.

    The shape of a failed trace is determined among the failed traces, because it depends on the
    modes that were judged on any trace.
    """
    failed = members & (inputs.outcome == FAILED)
    shape_by_row: dict[int, str] = {}
    for population in (members, failed):  # ``failed`` replaces some shapes
        numbers = trace_shapes(inputs.verdicts[population], Rules()).tolist()
        rows = population.nonzero()[0].tolist()
        shape_by_row |= {row: SHAPES[number] for row, number in zip(rows, numbers, strict=True)}
    return shape_by_row


def _chain_of_onsets(trace_onsets: Sequence[ModeOnset]) -> Chain:
    """Return the modes of a trace in order of onset; modes with the same onset are one step."""
    return tuple(
        tuple(onset.code for onset in same_step)
        for _, same_step in groupby(trace_onsets, key=lambda onset: onset.step_number)
    )


def _meets_conditions(
    trace_onsets: Sequence[ModeOnset],
    span_count: int,
    codes: Collection[str],
    conditions: Mapping[str, str],
) -> bool:
    """Return whether a trace meets the conditions of a query on onsets.

    Args:
        trace_onsets: The onsets of the trace, in order.
        span_count: The number of spans of the trace.
        codes: The modes that must have a span under the condition ``placed``.
        conditions: The conditions by field: the ``chain`` of modes, the ``tenth`` of the run in
            which it first fails, its ``first`` mode, a ``step``: two modes at successive steps.
    """
    step_number_by_code = {onset.code: onset.step_number for onset in trace_onsets}
    if "placed" in conditions and not step_number_by_code.keys() >= set(codes):
        return False
    if "chain" in conditions and _chain_of_onsets(trace_onsets) != chain_of(conditions["chain"]):
        return False
    if "tenth" in conditions:
        if not trace_onsets or span_count < 1:
            return False
        tenth = trace_onsets[0].span * BINS // span_count
        if min(BINS - 1, tenth) != int(conditions["tenth"]):
            return False
    if "first" in conditions and step_number_by_code.get(conditions["first"]) != 0:
        return False
    if "step" in conditions:
        first, second = map(step_number_by_code.get, conditions["step"].split(PAIR))
        return first is not None and second is not None and second == first + 1
    return True


def listing_of(failing: FailingTraces, names: Mapping[str, str]) -> Listing:
    """Return the listing of the failing traces that a figure counts.

    Args:
        failing: The failing traces.
        names: The names of the traces, by id.
    """
    location_by_id = {trace.trace_id: trace.location for trace in failing.traces}
    facts = [counted(failing.total, "trace")]
    if failing.total > MOST_SOURCE_TRACES:
        facts.append(f"the first {MOST_SOURCE_TRACES:,} are listed")

    def _location_of(_opened: OpenWorkspace, row_id: str) -> TraceLocation:
        return location_by_id[row_id]

    return Listing(
        traces_table(failing, names),
        {trace_id: one_line(names.get(trace_id, trace_id)) for trace_id in location_by_id},
        tuple(facts),
        _location_of,
    )


def traces_table(failing: FailingTraces, names: Mapping[str, str]) -> Table:
    """Return the table of traces, with outcomes if these differ.

    Args:
        failing: The traces.
        names: The names of the traces, by id.
    """
    outcomes_differ = len({trace.outcome for trace in failing.traces}) > 1
    rows = tuple(
        Row(
            trace.trace_id,
            {
                "trace": names.get(trace.trace_id, trace.trace_id),
                "outcome": (trace.outcome or "unknown") if outcomes_differ else "",
                "shape": trace.shape,
                "modes": len(trace.modes),
                "first": position_text(trace),
                "chain": chain_text(trace),
            },
            _SHAPE_TEXTS[trace.shape].sign,
            tuple(_detail_lines(trace)),
        )
        for trace in failing.traces
    )
    return Table("traces", "How each trace fails", COLUMNS, (rows,))


def position_text(trace: FailingTrace) -> str:
    """Return the position of the first failure: ``#13 of 84``."""
    if trace.first is None:
        return ""
    return f"#{trace.first + 1}" + (f" of {trace.spans}" if trace.spans > 0 else "")


def chain_text(trace: FailingTrace) -> str:
    """Return the modes in order of onset, such as ``A → B+C · no place: D``."""
    codes_in_chain = {code for step in trace.chain for code in step}
    chain = " → ".join("+".join(step) for step in trace.chain)
    codes_without_span = [code for code in trace.modes if code not in codes_in_chain]
    parts = [chain] if chain else []
    if codes_without_span:
        parts.append(f"no place: {' '.join(codes_without_span)}")
    return " · ".join(parts)


def _detail_lines(trace: FailingTrace) -> list[str]:
    """Return sentences on the outcome, the shape and the onsets of a trace."""
    lines = [
        f"{trace.trace_id} · outcome {trace.outcome or 'unknown'}",
        _SHAPE_TEXTS[trace.shape].description,
    ]
    if trace.modes:
        lines.append(f"Modes in order: {chain_text(trace)}")
        lines.append("A → B: B first occurs after A. A+B: both first occur at the same span.")
    if trace.first is not None and trace.spans > 0:
        share = min(trace.first / trace.spans, 1.0)
        lines.append(
            f"The first failure is at span {position_text(trace)}, {share:.0%} of the run."
        )
    elif trace.modes:
        lines.append("The failing span is unknown: no label is on a known span of this trace.")
    return lines
