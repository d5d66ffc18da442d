"""The traces behind a figure of failure signatures, and how each of them fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mast_tui.reports.model import Column, Kind, Row, Table
from mast_tui.safe_text import one_line
from mast_tui.ui.context import TraceLocation
from mast_tui.ui.phrases import counted
from mast_tui.ui.reports.source import MOST, Listing

if TYPE_CHECKING:
    from mast_tui.figures.signatures.model import Flags, SignatureInput
    from mast_tui.figures.signatures.onset import Onsets
    from mast_tui.ui.services.open_workspace import OpenWorkspace

COLUMNS: Final = (
    Column("trace", "trace", Kind.TEXT),
    Column("modes", "modes", Kind.COUNT, keeps=85),
    Column("outcome", "outcome", Kind.TEXT, keeps=70),
    Column("shape", "shape", Kind.TEXT, keeps=80),
    Column("first", "first at", Kind.TEXT, keeps=75),
    Column("chain", "by onset", Kind.TEXT, keeps=90),
)

Chain = tuple[tuple[str, ...], ...]
"""Modes by their onset, those of one span together."""

_SIGNS: Final[Mapping[str, str]] = {
    "isolated": "·",
    "between": "+",
    "cascading": "»",
    "open": "?",
    "none": "",
}

_SHAPES: Final[Mapping[str, str]] = {
    "isolated": "Isolated: it fails by one or two modes.",
    "between": "Between isolated and cascading: three modes.",
    "cascading": "Cascading: four modes or more.",
    "open": "Open: modes that are not judged, or unsure, could change its shape.",
    "none": "No mode shows in it.",
}


@dataclass(frozen=True, slots=True)
class Wanted:
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


@dataclass(frozen=True, slots=True)
class Listed:
    """The first of ``total`` traces."""

    traces: tuple[FailingTrace, ...]
    total: int


def traces_behind(given: SignatureInput, group: str, wanted: Wanted) -> Listed:
    """The wanted traces of a group, those with most modes first."""
    from mast_tui.figures.signatures.model import FAILED, PRESENT, SUCCEEDED
    from mast_tui.figures.signatures.onset import onsets

    codes = [mode.code for mode in given.modes]
    chosen = given.group == given.group_names.index(group)
    if wanted.outcome is not None:
        chosen &= given.outcome == (FAILED if wanted.outcome == "failed" else SUCCEEDED)
    for code in wanted.modes:
        chosen = chosen & (given.verdicts[:, codes.index(code)] == PRESENT)
    placed = _placed(onsets(given).of(chosen), codes)
    rows = [row for row in chosen.nonzero()[0].tolist() if _fits(given, row, placed, wanted)]
    counts = (given.verdicts == PRESENT).sum(axis=1).tolist()
    rows.sort(key=lambda row: (-counts[row], given.traces[row]))
    shapes = _shapes(given, group, rows[:MOST])
    made = tuple(
        _failing(given, row, codes, placed.get(row, []), shapes[row], wanted) for row in rows[:MOST]
    )
    return Listed(made, len(rows))


Placed = list[tuple[str, int, int]]
"""The modes of one trace by onset: code, index of the first span, number of the step from 0."""


def _placed(found: Onsets, codes: Sequence[str]) -> dict[int, Placed]:
    placed: dict[int, Placed] = {}
    columns = (found.trace.tolist(), found.mode.tolist(), found.first.tolist(), found.step.tolist())
    for trace, mode, first, step in zip(*columns, strict=True):
        placed.setdefault(trace, []).append((codes[mode], first, step))
    return placed


def _chain(placed: Placed) -> Chain:
    steps: dict[int, list[str]] = {}
    for code, _, step in placed:
        steps.setdefault(step, []).append(code)
    return tuple(tuple(codes) for codes in steps.values())


def _fits(
    given: SignatureInput, row: int, everything: Mapping[int, Placed], wanted: Wanted
) -> bool:
    placed = everything.get(row, [])
    if wanted.placed and not set(wanted.modes) <= {code for code, _, _ in placed}:
        return False
    if wanted.chain is not None and _chain(placed) != wanted.chain:
        return False
    if wanted.first is not None and (wanted.first, 0) not in {(c, s) for c, _, s in placed}:
        return False
    if wanted.tenth is not None:
        spans = int(given.spans[row])
        if not placed or spans < 1 or min(9, placed[0][1] * 10 // spans) != wanted.tenth:
            return False
    if wanted.step is not None:
        steps = {code: step for code, _, step in placed}
        earlier, later = (steps.get(code) for code in wanted.step)
        return earlier is not None and later is not None and later == earlier + 1
    return True


def _shapes(given: SignatureInput, group: str, rows: Sequence[int]) -> dict[int, str]:
    """The shapes of some traces of a group: failed ones among the failed, others among all."""
    from mast_tui.figures.signatures.model import FAILED, Rules
    from mast_tui.figures.signatures.patterns import SHAPES, shapes

    found: dict[int, str] = {}

    def add(chosen: Flags) -> None:
        numbers = shapes(given.verdicts[chosen], Rules()).tolist()
        for row, number in zip(chosen.nonzero()[0].tolist(), numbers, strict=True):
            found[row] = SHAPES[number]

    here = given.group == given.group_names.index(group)
    add(here)
    add(here & (given.outcome == FAILED))
    return {row: found[row] for row in rows}


def _failing(
    given: SignatureInput,
    row: int,
    codes: Sequence[str],
    placed: Placed,
    shape: str,
    wanted: Wanted,
) -> FailingTrace:
    from mast_tui.figures.signatures.model import PRESENT

    verdicts = (given.verdicts[row] == PRESENT).tolist()
    looked = wanted.modes or wanted.step or ()
    at = next((first for code, first, _ in placed if code in looked or not looked), None)
    outcome = ("", "failed", "succeeded")[int(given.outcome[row])]
    return FailingTrace(
        given.traces[row],
        outcome,
        shape,
        tuple(code for code, present in zip(codes, verdicts, strict=True) if present),
        _chain(placed),
        placed[0][1] if placed else None,
        at,
        int(given.spans[row]),
    )


def listing_of(listed: Listed, names: Mapping[str, str]) -> Listing:
    """Make rows of the traces behind a figure.

    Args:
        listed: The traces.
        names: What traces go by, by their ids.
    """
    by_id = {one.trace_id: one for one in listed.traces}
    cut = (f"the first {MOST:,} are listed",) if listed.total > MOST else ()

    def opening(_opened: OpenWorkspace, row: str) -> TraceLocation:
        return place_of(by_id[row])

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
            _SIGNS.get(one.shape, ""),
            tuple(_words_of(one)),
        )
        for one in listed.traces
    )
    return Table("traces", "How each trace fails", COLUMNS, (rows,))


def place_of(one: FailingTrace) -> TraceLocation:
    """Where a trace is looked at: where it fails."""
    return TraceLocation(one.trace_id, index=one.at)


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
    lines = [f"{one.trace_id} · outcome {one.outcome or 'unknown'}", _SHAPES[one.shape]]
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
