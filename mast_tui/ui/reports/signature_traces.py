"""The traces behind a figure of failure signatures, and how each of them fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from mast_tui.figures.record import PAIR, Sources
from mast_tui.figures.signatures.groups import SHAPES, shapes
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
"""The sign before a trace of each shape, and the shape in words."""


Placed = list[tuple[str, int, int]]
"""The modes of one trace by onset: code, index of the first span, number of the step from 0."""


class SignatureTracesScreen(TracesScreen):
    """How each trace fails."""

    where = Where.SIGNATURE_TRACES


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """Which traces of a group: with this outcome, all of these ``modes`` (codes) and more.

    ``tenth`` is the part of the run, from 0, in which the first failure stands; ``first`` a mode
    that comes first; ``step`` two modes of which the second sets on next after the first;
    ``placed`` keeps only traces in which all the ``modes`` have a place; ``chain`` those in which
    modes set on in just this order.
    """

    outcome: str | None = None
    modes: tuple[str, ...] = ()
    tenth: int | None = None
    first: str | None = None
    step: tuple[str, str] | None = None
    placed: bool = False
    chain: Chain | None = None

    @classmethod
    def of(cls, sources: Sources, inputs: SignatureInput) -> TraceFilter:
        """Return the filter of a query.

        Args:
            sources: The query for the traces of a figure.
            inputs: What was counted.
        """
        where = dict(sources.where)
        codes = {mode.slug: mode.code for mode in inputs.modes}
        tenth = where.get("tenth")
        first, second = where["step"].split(PAIR) if "step" in where else ("", "")
        return cls(
            outcome=where.get("outcome"),
            modes=tuple(codes[slug] for slug in sources.modes),
            tenth=None if tenth is None else int(tenth),
            first=where.get("first"),
            step=(first, second) if first else None,
            placed="placed" in where,
            chain=chain_of(where["chain"]) if "chain" in where else None,
        )


@dataclass(frozen=True, slots=True)
class FailingTrace:
    """One trace: its modes by code, and in what order they set on where places are known.

    ``at`` is the index of the span at which to look, None without a place; ``first`` that of the
    first failure, by ``spans`` spans (-1 where nobody counted).
    """

    trace_id: str
    outcome: str
    shape: str
    modes: tuple[str, ...]
    chain: Chain
    first: int | None
    at: int | None
    spans: int

    @property
    def location(self) -> TraceLocation:
        """Where it is looked at: where it fails."""
        return TraceLocation(self.trace_id, position=self.at)


@dataclass(frozen=True, slots=True)
class Listed:
    """The first of ``total`` traces."""

    traces: tuple[FailingTrace, ...]
    total: int


def traces_behind(inputs: SignatureInput, group: str, wanted: TraceFilter) -> Listed:
    """List the wanted traces of a group, those with most modes first.

    Args:
        inputs: What was counted.
        group: The name of the group, or ``OVERALL``.
        wanted: Which of its traces.
    """
    codes = [mode.code for mode in inputs.modes]
    here = inputs.members()[group]
    failed = here & (inputs.outcome == FAILED)
    chosen = here
    if wanted.outcome is not None:
        chosen = failed if wanted.outcome == "failed" else here & (inputs.outcome == SUCCEEDED)
    for code in wanted.modes:
        chosen = chosen & (inputs.verdicts[:, codes.index(code)] == PRESENT)
    found = onsets(inputs).of(chosen)
    placed_in: dict[int, Placed] = {}
    columns = (found.trace.tolist(), found.mode.tolist(), found.first.tolist(), found.step.tolist())
    for row, mode, first, step in zip(*columns, strict=True):
        placed_in.setdefault(row, []).append((codes[mode], first, step))
    shape_of = _shapes(inputs, here, failed)

    def failing(row: int) -> FailingTrace:
        placed, looked = placed_in.get(row, []), wanted.modes or wanted.step
        return FailingTrace(
            inputs.traces[row],
            ("", "failed", "succeeded")[int(inputs.outcome[row])],
            shape_of[row],
            tuple(codes[mode] for mode in (inputs.verdicts[row] == PRESENT).nonzero()[0].tolist()),
            _chain(placed),
            placed[0][1] if placed else None,
            next((first for code, first, _ in placed if not looked or code in looked), None),
            int(inputs.spans[row]),
        )

    counts = (inputs.verdicts == PRESENT).sum(axis=1).tolist()
    rows = [
        row
        for row in chosen.nonzero()[0].tolist()
        if _fits(placed_in.get(row, []), int(inputs.spans[row]), wanted)
    ]
    rows.sort(key=lambda row: (-counts[row], inputs.traces[row]))
    return Listed(tuple(map(failing, rows[:MOST])), len(rows))


def _shapes(inputs: SignatureInput, here: Flags, failed: Flags) -> dict[int, str]:
    """The shapes of the traces of a group: of failed ones among the failed, of others among all."""
    found: dict[int, str] = {}
    for among in (here, failed):
        numbers = shapes(inputs.verdicts[among], Rules()).tolist()
        rows = among.nonzero()[0].tolist()
        found |= {row: SHAPES[number] for row, number in zip(rows, numbers, strict=True)}
    return found


def _chain(placed: Placed) -> Chain:
    return tuple(
        tuple(code for code, _, _ in together)
        for _, together in groupby(placed, key=lambda one: one[2])
    )


def _fits(placed: Placed, spans: int, wanted: TraceFilter) -> bool:
    """Whether a trace is wanted whose modes have these places."""
    if wanted.placed and not set(wanted.modes) <= {code for code, _, _ in placed}:
        return False
    if wanted.chain is not None and _chain(placed) != wanted.chain:
        return False
    if wanted.tenth is not None and (
        not placed or spans < 1 or min(9, placed[0][1] * 10 // spans) != wanted.tenth
    ):
        return False
    steps = {code: step for code, _, step in placed} if wanted.first or wanted.step else {}
    if wanted.first is not None and steps.get(wanted.first) != 0:
        return False
    if wanted.step is not None:
        earlier, later = (steps.get(code) for code in wanted.step)
        return earlier is not None and later is not None and later == earlier + 1
    return True


def listing_of(listed: Listed, names: Mapping[str, str]) -> Listing:
    """Make rows of the traces behind a figure.

    Args:
        listed: The traces.
        names: What traces go by, by their ids.
    """
    by_id = {one.trace_id: one for one in listed.traces}
    cut = (f"the first {MOST:,} are listed",) if listed.total > MOST else ()

    def opening(_opened: OpenWorkspace, row: str) -> TraceLocation:
        return by_id[row].location

    return Listing(
        traces_table(listed, names),
        {trace: one_line(names.get(trace, trace)) for trace in by_id},
        (counted(listed.total, "trace"), *cut),
        opening,
    )


def traces_table(listed: Listed, names: Mapping[str, str]) -> Table:
    """Make a table of traces; their outcome stands where it differs."""
    differ = len({one.outcome for one in listed.traces}) > 1
    rows = tuple(
        Row(
            one.trace_id,
            {
                "trace": names.get(one.trace_id, one.trace_id),
                "outcome": (one.outcome or "unknown") if differ else "",
                "shape": one.shape,
                "modes": len(one.modes),
                "first": where_words(one),
                "chain": chain_words(one),
            },
            _SHAPES[one.shape][0],
            tuple(_words_of(one)),
        )
        for one in listed.traces
    )
    return Table("traces", "How each trace fails", COLUMNS, (rows,))


def where_words(one: FailingTrace) -> str:
    """Where the first failure stands: ``#13 of 84``."""
    if one.first is None:
        return ""
    return f"#{one.first + 1}" + (f" of {one.spans}" if one.spans > 0 else "")


def chain_words(one: FailingTrace) -> str:
    """The modes by their onset, those of one span together, then those without a place."""
    placed = {code for step in one.chain for code in step}
    words = " → ".join("+".join(step) for step in one.chain)
    rest = " ".join(code for code in one.modes if code not in placed)
    return " · ".join(part for part in (words, rest and f"no place: {rest}") if part)


def _words_of(one: FailingTrace) -> list[str]:
    """How a trace fails, in words."""
    lines = [f"{one.trace_id} · outcome {one.outcome or 'unknown'}", _SHAPES[one.shape][1]]
    if one.modes:
        lines.append(f"Modes by onset: {chain_words(one)}")
        lines.append("A → B: B sets on next after A. A+B: both set on at the same span.")
    if one.first is not None and one.spans > 0:
        share = min(one.first / one.spans, 1.0)
        lines.append(
            f"The first failure stands at span {where_words(one)}, {share:.0%} of the run."
        )
    elif one.modes:
        lines.append("Where it fails is not known: its labels name no span that is known here.")
    return lines
