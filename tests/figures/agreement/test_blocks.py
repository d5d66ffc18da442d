"""Blocks of verdicts that several traces share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.counting import VerdictArray, VerdictTable
from mast_tui.figures.agreement.report import Blocks, identical_blocks

MODES = 14


def study(traces: int, seed: int, share: float = 0.15, people: int = 3) -> VerdictArray:
    """Draw verdicts of annotators who are mostly right, on independent traces."""
    chance = np.random.default_rng(seed)
    truth = chance.random((traces, MODES)) < share
    wrong = chance.random((people, traces, MODES)) < 0.05
    return np.where(wrong, ~truth, truth).astype(np.int8)


def blocks_of(verdicts: VerdictArray, finished: NDArray[np.bool_] | None = None) -> Blocks:
    people, traces, modes = (tuple(map(str, range(count))) for count in verdicts.shape)
    mask = np.ones(verdicts.shape[:2], dtype=bool) if finished is None else finished
    return identical_blocks(VerdictTable(people, traces, modes, verdicts), mask)


def test_copies_are_found_among_few_and_many_traces() -> None:
    for traces in (6, 300):
        verdicts = study(traces, seed=traces, share=0.3)
        verdicts[:, 1] = verdicts[:, 4] = verdicts[:, 2]
        blocks = blocks_of(verdicts)
        assert (blocks.traces, blocks.distinct) == (traces, traces - 2)
        assert [block.traces for block in blocks.identical] == [("1", "2", "4")]
        assert blocks.identical[0].annotators == ("0", "1", "2")


def test_equal_traces_are_one_block_with_its_open_verdicts_and_people() -> None:
    verdicts = np.repeat(study(1, seed=1, share=0.4), 5, axis=1)
    blocks = blocks_of(verdicts)
    assert blocks.distinct == 1
    assert [block.traces for block in blocks.identical] == [tuple("01234")]
    verdicts[1, 2, 5] = -1
    assert [block.traces for block in blocks_of(verdicts).identical] == [tuple("0134")]
    verdicts = np.repeat(study(1, seed=3, share=0.4), 4, axis=1)
    finished = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 0]], dtype=bool)
    verdicts[~finished] = -1
    blocks = blocks_of(verdicts, finished)
    assert (blocks.traces, blocks.distinct) == (3, 2)
    assert [(b.traces, b.annotators) for b in blocks.identical] == [(("0", "1"), ("0", "1"))]


def test_traces_equal_by_chance_are_no_block() -> None:
    for seed in range(5):
        blocks = blocks_of(study(400, seed, share=0.05, people=2))
        # Most traces of such a study show no mode or one.
        assert blocks.distinct < 300
        assert blocks.identical == ()
    for traces in (0, 8):
        absent = np.zeros((2, traces, MODES), dtype=np.int8)
        assert blocks_of(absent) == Blocks(traces, min(traces, 1), ())
    assert blocks_of(np.zeros((0, 0, MODES), dtype=np.int8)) == Blocks(0, 0, ())
    verdicts = np.zeros((2, 40, MODES), dtype=np.int8)
    verdicts[:, :10, 3] = 1
    assert blocks_of(verdicts).identical == ()
    verdicts[:, :10, 5] = 1
    blocks = blocks_of(verdicts)
    assert [block.traces for block in blocks.identical] == [tuple("0123456789")]
    numbers = blocks.numbers(list(map(str, range(40))))
    assert set(numbers[:10]) == {0}
    assert numbers[10:].tolist() == list(range(10, 40))
