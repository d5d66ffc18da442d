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
from mast_tui.figures.agreement.verdict_table import PRESENT, VerdictArray, numbered_rows

_HARDLY: Final = 0.05
_LEAST_PRESENT: Final = 2


@dataclass(frozen=True, slots=True)
class VerdictBlock:
    """Traces, by their numbers, that share a block of verdicts of these annotators."""

    traces: tuple[int, ...]
    annotators: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Blocks:
    """The ``identical`` blocks, greatest first, of ``distinct`` blocks on ``traces`` traces."""

    traces: int
    distinct: int
    identical: tuple[VerdictBlock, ...]

    def numbers(self, traces: int) -> NDArray[np.int_]:
        """Return a number for each trace; traces that share a block have the same one."""
        numbers = np.arange(traces)
        for block in self.identical:
            numbers[list(block.traces)] = block.traces[0]
        return numbers


def identical_blocks(verdicts: VerdictArray, finished: NDArray[np.bool_]) -> Blocks:
    """Return the blocks that several traces share, among those that two or more have finished.

    Args:
        verdicts: Annotators × traces × modes.
        finished: Whether each annotator has finished each trace.
    """
    modes = verdicts.shape[2]
    traces = np.flatnonzero(finished.sum(axis=0) > 1)
    if not traces.size or not modes:
        return Blocks(len(traces), len(traces), ())
    cells = verdicts[:, traces].transpose(1, 2, 0)
    has_finished = np.broadcast_to(finished.T[traces][:, None, :], cells.shape)
    # An unfinished trace differs from a finished one with all modes left open.
    answers = np.where(has_finished, cells, np.int8(MISSING - 2))
    # For each trace and mode a number for the joint answer of the annotators.
    columns = np.stack([numbered_rows(answers[:, mode]) for mode in range(modes)], axis=1)
    block_numbers = numbered_rows(columns)
    sizes = np.bincount(block_numbers)
    shares = [np.bincount(column) for column in columns.T]
    named = []
    for number in np.flatnonzero(sizes > 1).tolist():
        inside = np.flatnonzero(block_numbers == number)
        first = int(inside[0])
        if (answers[first] == PRESENT).any(axis=1).sum() < _LEAST_PRESENT:
            continue
        chance = _chance(columns[first], shares, len(inside), len(traces))
        if _at_least(len(inside) - 1, chance * len(traces)) * len(sizes) < _HARDLY:
            members = np.flatnonzero(finished[:, traces[first]])
            named.append(VerdictBlock(tuple(traces[inside].tolist()), tuple(members.tolist())))
    named.sort(key=lambda block: (-len(block.traces), block.traces))
    return Blocks(len(traces), len(sizes), tuple(named))


def _chance(
    block: NDArray[np.int_], shares: list[NDArray[np.int_]], inside: int, traces: int
) -> float:
    """Return the chance of this block with independent modes, from the traces outside it."""
    outside = traces - inside
    logs = [
        math.log((int(share[answer]) - inside + 1) / (outside + 2))
        for answer, share in zip(block.tolist(), shares, strict=True)
    ]
    return math.exp(sum(logs))


def _at_least(count: int, expected: float) -> float:
    """Return a bound on the chance of ``count`` or more of a Poisson variable (Chernoff)."""
    if expected >= count:
        return 1.0
    return math.exp(count - expected + count * math.log(expected / count))
