"""Traces on which all annotators said one and the same thing, mode by mode, beyond chance.

Records that were copied by mistake, or labelled together, look like perfect agreement. What gives
them away is that several traces share the whole block of verdicts: annotators × modes.

The rule. Two traces share a block where the same two or more annotators have finished them and
every verdict of every one of them is the same, open and unsure included. A block is named where
two modes or more are called present in it, as one mode in many traces is no sign of a copy, and
where chance would hardly bring it about: were the modes independent,
with each mode's verdicts as often as in the traces outside the block (counted with one more of
either kind, so that few traces prove nothing), the block would be found on so many traces in
fewer than one of twenty studies, all blocks of the study taken together. Modes that go together
are likelier than that, so in large studies a block that is named is a reason to look at the
traces, not a proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.coefficients import MISSING
from mast_tui.figures.agreement.verdict_table import PRESENT, Said, numbered_rows

_HARDLY: Final = 0.05
_LEAST_PRESENT: Final = 2


@dataclass(frozen=True, slots=True)
class Block:
    """Traces, by their places, that share a block of verdicts of these annotators."""

    traces: tuple[int, ...]
    annotators: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Blocks:
    """The ``identical`` blocks, greatest first, of ``distinct`` blocks on ``traces`` traces."""

    traces: int
    distinct: int
    identical: tuple[Block, ...]

    def numbers(self, traces: int) -> NDArray[np.int_]:
        """Return a number for each of so many traces, the same for those that share a block."""
        numbers = np.arange(traces)
        for block in self.identical:
            numbers[list(block.traces)] = block.traces[0]
        return numbers


def identical_blocks(said: Said, finished: NDArray[np.bool_]) -> Blocks:
    """The blocks that several traces share; ``finished`` is annotators × traces.

    Only traces that two annotators or more have finished are looked at.
    """
    modes = said.shape[2]
    places = np.flatnonzero(finished.sum(axis=0) > 1)
    if not places.size or not modes:
        return Blocks(len(places), len(places), ())
    cells = said[:, places].transpose(1, 2, 0)
    who = np.broadcast_to(finished.T[places][:, None, :], cells.shape)
    # Who has not finished is told from who left everything open.
    answers = np.where(who, cells, np.int8(MISSING - 2))
    # For each trace and mode a number for all that the annotators say together.
    columns = np.stack([numbered_rows(answers[:, mode]) for mode in range(modes)], axis=1)
    block = numbered_rows(columns)
    sizes = np.bincount(block)
    shares = [np.bincount(column) for column in columns.T]
    named = []
    for number in np.flatnonzero(sizes > 1).tolist():
        inside = np.flatnonzero(block == number)
        first = int(inside[0])
        if (answers[first] == PRESENT).any(axis=1).sum() < _LEAST_PRESENT:
            continue
        chance = _chance(columns[first], shares, len(inside), len(places))
        if _at_least(len(inside) - 1, chance * len(places)) * len(sizes) < _HARDLY:
            members = np.flatnonzero(finished[:, places[first]])
            named.append(Block(tuple(places[inside].tolist()), tuple(members.tolist())))
    named.sort(key=lambda one: (-len(one.traces), one.traces))
    return Blocks(len(places), len(sizes), tuple(named))


def _chance(
    block: NDArray[np.int_], shares: list[NDArray[np.int_]], inside: int, traces: int
) -> float:
    """How likely independent modes give this block, from the traces outside it."""
    outside = traces - inside
    logs = [
        math.log((int(share[answer]) - inside + 1) / (outside + 2))
        for answer, share in zip(block.tolist(), shares, strict=True)
    ]
    return math.exp(sum(logs))


def _at_least(count: int, expected: float) -> float:
    """A bound on the chance of ``count`` or more where so many are expected (Poisson, Chernoff)."""
    if expected >= count:
        return 1.0
    return math.exp(count - expected + count * math.log(expected / count))
