"""The source traces of a figure of failure signatures, with the modes of each by onset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from mast_tui.figures.record import PAIR, Sources
from mast_tui.figures.signatures.groups import SHAPES, trace_shapes
from mast_tui.figures.signatures.model import (
    FAILED,
    PRESENT,
    SUCCEEDED,
    Flags,
    Rules,
    SignatureInput,
)
from mast_tui.figures.signatures.onset import Chain, chain_of, onsets
from mast_tui.reports.model import Column, Kind, Row, Table
from mast_tui.safe_text import one_line
from mast_tui.ui.actions.registry import Where
from mast_tui.ui.context import TraceLocation
from mast_tui.ui.reports.screen import MOST, Listing, TracesScreen
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.wording import counted

COLUMNS: Final = (
    Column("trace", "trace", Kind.TEXT),
    Column("modes", "modes", Kind.COUNT, keeps=85),
    Column("outcome", "outcome", Kind.TEXT, keeps=70),
    Column("shape", "shape", Kind.TEXT, keeps=80),
    Column("first", "first at", Kind.TEXT, keeps=75),
    Column("chain", "by onset", Kind.TEXT, keeps=90),
)

_SHAPES: Final[Mapping[str, tuple[str, str]]] = {
    "isolated": ("·", "Isolated: it fails by one or two modes."),
    "between": ("+", "Between isolated and cascading: three modes."),
    "cascading": ("»", "Cascading: four modes or more."),
    "open": ("?", "Open: modes that are not judged, or unsure, could change its shape."),
    "none": ("", "No mode shows in it."),
}
"""The sign and the description of each shape of failure."""


class ModeOnset(NamedTuple):
    """The onset of a mode in a trace: the index of its first span, and the step from 0."""

    code: str
    span: int
    step: int


class SignatureTracesScreen(TracesScreen):
    """The source traces of a figure, with the modes by which each fails."""

    where = Where.SIGNATURE_TRACES


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """A filter for the source traces of a figure.

    ``modes`` (codes) must all be present. ``tenth`` is the tenth of the run, from 0, with the first
    failure. ``first`` is a mode that must come first; ``step`` are two modes of which the second
    must be the next onset after the first. ``placed`` requires a span for each of the ``modes``;
    ``chain`` requires exactly this order of onsets.
    """

    outcome: str | None = None
    modes: tuple[str, ...] = ()
    tenth: int | None = None
    first: str | None = None
    step: tuple[str, str] | None = None
    placed: bool = False
    chain: Chain | None = None

    @classmethod
    def for_sources(cls, sources: Sources, inputs: SignatureInput) -> TraceFilter:
        """Return the filter of a query.

        Args:
            sources: The query for the traces of a figure.
            inputs: The input of the figures.
        """
        conditions = dict(sources.where)
        codes = {mode.slug: mode.code for mode in inputs.modes}
        tenth = conditions.get("tenth")
        first, second = conditions["step"].split(PAIR) if "step" in conditions else ("", "")
        return cls(
            outcome=conditions.get("outcome"),
            modes=tuple(codes[slug] for slug in sources.modes),
            tenth=None if tenth is None else int(tenth),
            first=conditions.get("first"),
            step=(first, second) if first else None,
            placed="placed" in conditions,
            chain=chain_of(conditions["chain"]) if "chain" in conditions else None,
        )


@dataclass(frozen=True, slots=True)
class FailingTrace:
    """One trace with its modes (codes), and their order of onset as far as their spans are known.

    ``first`` is the index of the first failing span, of ``spans`` spans (-1 if unknown).
    ``opens_at`` is the index of the span at which the trace is opened. Both are None without a
    span.
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
        """The span at which the trace is opened."""
        return TraceLocation(self.trace_id, position=self.opens_at)


@dataclass(frozen=True, slots=True)
class FailingTraces:
    """The first of ``total`` failing traces."""

    traces: tuple[FailingTrace, ...]
    total: int


def failing_traces(inputs: SignatureInput, group: str, trace_filter: TraceFilter) -> FailingTraces:
    """List the traces of a group that pass a filter, those with the most modes first.

    Args:
        inputs: The input of the figures.
        group: The name of the group, or ``OVERALL``.
        trace_filter: The filter.
    """
    codes = [mode.code for mode in inputs.modes]
    members = inputs.members()[group]
    failed = members & (inputs.outcome == FAILED)
    chosen = members
    if trace_filter.outcome == "failed":
        chosen = failed
    elif trace_filter.outcome is not None:
        chosen = members & (inputs.outcome == SUCCEEDED)
    for code in trace_filter.modes:
        chosen = chosen & (inputs.verdicts[:, codes.index(code)] == PRESENT)
    onsets_by_row = _onsets_by_row(inputs, codes, chosen)
    shape_of = _shapes(inputs, members, failed)

    def failing_trace(row: int) -> FailingTrace:
        trace_onsets = onsets_by_row.get(row, [])
        codes_to_open = trace_filter.modes or trace_filter.step
        return FailingTrace(
            trace_id=inputs.traces[row],
            outcome=("", "failed", "succeeded")[int(inputs.outcome[row])],
            shape=shape_of[row],
            modes=tuple(
                codes[mode] for mode in (inputs.verdicts[row] == PRESENT).nonzero()[0].tolist()
            ),
            chain=_chain(trace_onsets),
            first=trace_onsets[0].span if trace_onsets else None,
            opens_at=next(
                (o.span for o in trace_onsets if not codes_to_open or o.code in codes_to_open),
                None,
            ),
            spans=int(inputs.spans[row]),
        )

    counts = (inputs.verdicts == PRESENT).sum(axis=1).tolist()
    rows = [
        row
        for row in chosen.nonzero()[0].tolist()
        if _passes(onsets_by_row.get(row, []), int(inputs.spans[row]), trace_filter)
    ]
    rows.sort(key=lambda row: (-counts[row], inputs.traces[row]))
    return FailingTraces(tuple(map(failing_trace, rows[:MOST])), len(rows))


def _onsets_by_row(
    inputs: SignatureInput, codes: Sequence[str], chosen: Flags
) -> dict[int, list[ModeOnset]]:
    """Return the onsets of the modes, by the row of the trace, in order of onset."""
    table = onsets(inputs).in_traces(chosen)
    by_row: dict[int, list[ModeOnset]] = {}
    columns = (table.trace.tolist(), table.mode.tolist(), table.first.tolist(), table.step.tolist())
    for row, mode, span, step in zip(*columns, strict=True):
        by_row.setdefault(row, []).append(ModeOnset(codes[mode], span, step))
    return by_row


def _shapes(inputs: SignatureInput, members: Flags, failed: Flags) -> dict[int, str]:
    """Return the shapes of a group's traces: of failed ones among the failed, else among all."""
    shape_of: dict[int, str] = {}
    for population in (members, failed):
        numbers = trace_shapes(inputs.verdicts[population], Rules()).tolist()
        rows = population.nonzero()[0].tolist()
        shape_of |= {row: SHAPES[number] for row, number in zip(rows, numbers, strict=True)}
    return shape_of


def _chain(trace_onsets: Sequence[ModeOnset]) -> Chain:
    return tuple(
        tuple(onset.code for onset in same_step)
        for _, same_step in groupby(trace_onsets, key=lambda onset: onset.step)
    )


def _passes(trace_onsets: Sequence[ModeOnset], spans: int, trace_filter: TraceFilter) -> bool:
    """Return whether a trace with these onsets and number of spans passes a filter."""
    steps = {onset.code: onset.step for onset in trace_onsets}
    if trace_filter.placed and not set(trace_filter.modes) <= steps.keys():
        return False
    if trace_filter.chain is not None and _chain(trace_onsets) != trace_filter.chain:
        return False
    if trace_filter.tenth is not None:
        if not trace_onsets or spans < 1:
            return False
        if min(9, trace_onsets[0].span * 10 // spans) != trace_filter.tenth:
            return False
    if trace_filter.first is not None and steps.get(trace_filter.first) != 0:
        return False
    if trace_filter.step is not None:
        earlier, later = (steps.get(code) for code in trace_filter.step)
        return earlier is not None and later is not None and later == earlier + 1
    return True


def listing_of(failing: FailingTraces, names: Mapping[str, str]) -> Listing:
    """Return the rows of the source traces of a figure.

    Args:
        failing: The traces.
        names: The names of the traces, by id.
    """
    by_id = {trace.trace_id: trace for trace in failing.traces}
    omission = (f"the first {MOST:,} are listed",) if failing.total > MOST else ()

    def _open_row(_opened: OpenWorkspace, row_id: str) -> TraceLocation:
        return by_id[row_id].location

    return Listing(
        traces_table(failing, names),
        {trace_id: one_line(names.get(trace_id, trace_id)) for trace_id in by_id},
        (counted(failing.total, "trace"), *omission),
        _open_row,
    )


def traces_table(failing: FailingTraces, names: Mapping[str, str]) -> Table:
    """Return the table of traces; it has an outcome only if these differ.

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
            _SHAPES[trace.shape][0],
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
    """Return the modes by onset, those of the same span joined, then those without a span."""
    in_chain = {code for step in trace.chain for code in step}
    ordered = " → ".join("+".join(step) for step in trace.chain)
    without_span = [code for code in trace.modes if code not in in_chain]
    parts = [ordered] if ordered else []
    if without_span:
        parts.append(f"no place: {' '.join(without_span)}")
    return " · ".join(parts)


def _detail_lines(trace: FailingTrace) -> list[str]:
    """Return sentences on the outcome, the shape and the onsets of a trace."""
    lines = [f"{trace.trace_id} · outcome {trace.outcome or 'unknown'}", _SHAPES[trace.shape][1]]
    if trace.modes:
        lines.append(f"Modes by onset: {chain_text(trace)}")
        lines.append("A → B: B begins next after A. A+B: both begin at the same span.")
    if trace.first is not None and trace.spans > 0:
        share = min(trace.first / trace.spans, 1.0)
        lines.append(
            f"The first failure is at span {position_text(trace)}, {share:.0%} of the run."
        )
    elif trace.modes:
        lines.append("The failing span is unknown: its labels name no span of this trace.")
    return lines
