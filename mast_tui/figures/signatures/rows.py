"""The traces behind the figures, one by one, for whoever wants to look at them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from mast_tui.figures.signatures.model import (
    ABSENT,
    FAILED,
    PRESENT,
    SUCCEEDED,
    Rules,
    SignatureInput,
)
from mast_tui.figures.signatures.onset import first_fatal, onsets
from mast_tui.figures.signatures.patterns import SHAPES, Shape, shapes
from mast_tui.figures.signatures.places import Chain, chains

Outcome = Literal["failed", "succeeded", "unknown"]

_OUTCOMES: Final[dict[int, Outcome]] = {FAILED: "failed", SUCCEEDED: "succeeded"}


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One trace of a group: what shows in it, and where.

    ``modes`` and ``open_modes`` are codes. ``shape`` is isolated or cascading, of a trace with any
    outcome. ``chain`` holds the codes by their onset, those of one span together. ``onset`` is the
    index of the span at which each placed mode first stands; ``spans`` is None where nobody
    counted. ``fatal_at`` and ``fatal_to`` are the first and last span of the first failure that
    was labelled as fatal.
    """

    trace_id: str
    group: str
    outcome: Outcome
    score: float | None
    modes: tuple[str, ...]
    open_modes: tuple[str, ...]
    shape: Shape
    spans: int | None
    chain: Chain
    onset: dict[str, int]
    fatal_at: int | None
    fatal_to: int | None


def trace_rows(given: SignatureInput, rules: Rules, group: str | None = None) -> list[TraceRow]:
    """The traces of a group, or of all, by id.

    Whether a trace is isolated or cascading rests on the modes that were judged in its own group,
    as in the report. Raises ``ValueError`` for a group that there is not.
    """
    names = given.group_names if group is None else (group,)
    found = onsets(given)
    codes = [mode.code for mode in given.modes]
    chain_of = chains(found, codes)
    onset_of: dict[int, dict[str, int]] = {}
    for trace, mode, first in zip(
        found.trace.tolist(), found.mode.tolist(), found.first.tolist(), strict=True
    ):
        onset_of.setdefault(trace, {})[codes[mode]] = first
    fatal = first_fatal(given, given.places.fatal)
    rows: list[TraceRow] = []
    for name in names:
        if name not in given.group_names:
            raise ValueError(f"no {given.by} {name!r} among these traces")
        chosen = np.flatnonzero(given.group == given.group_names.index(name))
        shape = shape_of(given, chosen, rules)
        for row, one in zip(chosen.tolist(), shape, strict=True):
            score, cells = float(given.score[row]), given.verdicts[row].tolist()
            spans, at = int(given.spans[row]), int(fatal.first[row])
            rows.append(
                TraceRow(
                    trace_id=given.traces[row],
                    group=name,
                    outcome=_OUTCOMES.get(int(given.outcome[row]), "unknown"),
                    score=None if np.isnan(score) else score,
                    modes=_codes(codes, cells, (PRESENT,)),
                    open_modes=tuple(
                        code
                        for code, cell in zip(codes, cells, strict=True)
                        if cell not in (PRESENT, ABSENT)
                    ),
                    shape=one,
                    spans=spans if spans >= 0 else None,
                    chain=chain_of.get(row, ()),
                    onset=onset_of.get(row, {}),
                    fatal_at=at if at >= 0 else None,
                    fatal_to=int(fatal.last[row]) if at >= 0 else None,
                )
            )
    return sorted(rows, key=lambda row: row.trace_id)


def shape_of(
    given: SignatureInput, chosen: np.ndarray[tuple[int], np.dtype[np.intp]], rules: Rules
) -> list[Shape]:
    """The shape of each chosen trace; of failed ones against the modes judged on failed ones."""
    found: list[Shape] = ["open"] * len(chosen)
    outcome = given.outcome[chosen]
    for which in (FAILED, None):
        part = np.flatnonzero(outcome == FAILED if which == FAILED else outcome != FAILED)
        places = shapes(given.verdicts[chosen[part]], rules).tolist()
        for row, place in zip(part.tolist(), places, strict=True):
            found[row] = SHAPES[place]
    return found


def _codes(codes: list[str], cells: list[int], wanted: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(code for code, cell in zip(codes, cells, strict=True) if cell in wanted)
