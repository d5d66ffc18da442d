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
from mast_tui.figures.agreement.counting import PRESENT, VerdictArray, numbered_rows

_HARDLY: Final = 0.05
_LEAST_PRESENT: Final = 2


@dataclass(frozen=True, slots=True)
class VerdictBlock:
    """Traces, by their numbers, that share a block of verdicts of these annotators."""

    traces: tuple[int, ...]
    annotators: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of verdicts of a study.

    Attributes:
        traces: The number of traces that two annotators or more have finished.
        distinct: The number of different blocks on these traces.
        identical: The blocks that several traces share, the greatest first.
    """

    traces: int
    distinct: int
    identical: tuple[VerdictBlock, ...]

    def numbers(self, traces: int) -> NDArray[np.int_]:
        """Return a number for each trace; traces that share a block have the same number."""
        numbers = np.arange(traces)
        for block in self.identical:
            numbers[list(block.traces)] = block.traces[0]
        return numbers


def identical_blocks(verdicts: VerdictArray, finished: NDArray[np.bool_]) -> Blocks:
    """Return the blocks of verdicts that several traces share, unless chance explains them.

    Only traces that two annotators or more have finished count.

    Args:
        verdicts: Annotators × traces × modes.
        finished: Annotators × traces: whether the annotator has finished the trace.
    """
    mode_count = verdicts.shape[2]
    traces = np.flatnonzero(finished.sum(axis=0) > 1)
    if not traces.size or not mode_count:
        return Blocks(len(traces), len(traces), ())
    cells = verdicts[:, traces].transpose(1, 2, 0)
    has_finished = np.broadcast_to(finished.T[traces][:, None, :], cells.shape)
    # An unfinished trace differs from a finished one with all modes left open.
    answers = np.where(has_finished, cells, np.int8(MISSING - 2))
    # For each trace and mode a number for the joint answer of the annotators.
    columns = np.stack([numbered_rows(answers[:, mode]) for mode in range(mode_count)], axis=1)
    block_numbers = numbered_rows(columns)
    sizes = np.bincount(block_numbers)
    answer_counts = [np.bincount(column) for column in columns.T]
    shared_blocks = []
    for number in np.flatnonzero(sizes > 1).tolist():
        rows_of_block = np.flatnonzero(block_numbers == number)
        first_row = int(rows_of_block[0])
        if (answers[first_row] == PRESENT).any(axis=1).sum() < _LEAST_PRESENT:
            continue
        chance = _chance_of_block(
            columns[first_row], answer_counts, len(rows_of_block), len(traces)
        )
        if _bound_on_chance(len(rows_of_block) - 1, chance * len(traces)) * len(sizes) < _HARDLY:
            members = np.flatnonzero(finished[:, traces[first_row]])
            shared_blocks.append(
                VerdictBlock(tuple(traces[rows_of_block].tolist()), tuple(members.tolist()))
            )
    shared_blocks.sort(key=lambda block: (-len(block.traces), block.traces))
    return Blocks(len(traces), len(sizes), tuple(shared_blocks))


def _chance_of_block(
    block: NDArray[np.int_], answer_counts: list[NDArray[np.int_]], block_count: int, traces: int
) -> float:
    """Return the chance of a block if modes are independent, from the traces without the block.

    Args:
        block: The number of the joint answer on each mode.
        answer_counts: For each mode, the number of traces with each joint answer.
        block_count: The number of traces with the block.
        traces: The number of all traces.
    """
    other_count = traces - block_count
    logs = [
        math.log((int(counts[answer]) - block_count + 1) / (other_count + 2))
        for answer, counts in zip(block.tolist(), answer_counts, strict=True)
    ]
    return math.exp(sum(logs))


def _bound_on_chance(count: int, expected: float) -> float:
    """Return a bound on the chance of ``count`` or more of a Poisson variable (Chernoff)."""
    if expected >= count:
        return 1.0
    return math.exp(count - expected + count * math.log(expected / count))
