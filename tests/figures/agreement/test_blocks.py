"""Blocks of verdicts that several traces share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.counting import VerdictArray
from mast_tui.figures.agreement.report import Blocks, identical_blocks

MODES = 14


def study(traces: int, seed: int, share: float = 0.15, people: int = 3) -> VerdictArray:
    """Annotators who mostly see what is there, in traces that have nothing to do with another."""
    chance = np.random.default_rng(seed)
    truth = chance.random((traces, MODES)) < share
    wrong = chance.random((people, traces, MODES)) < 0.05
    return np.where(wrong, ~truth, truth).astype(np.int8)


def found(said: VerdictArray, finished: NDArray[np.bool_] | None = None) -> Blocks:
    everybody = np.ones(said.shape[:2], dtype=bool)
    return identical_blocks(said, everybody if finished is None else finished)


def test_copies_are_found_among_few_traces_and_among_many() -> None:
    for traces in (6, 300):
        verdicts = study(traces, seed=traces, share=0.3)
        verdicts[:, 1] = verdicts[:, 4] = verdicts[:, 2]
        blocks = found(verdicts)
        assert (blocks.traces, blocks.distinct) == (traces, traces - 2)
        assert [block.traces for block in blocks.identical] == [(1, 2, 4)]
        assert blocks.identical[0].annotators == (0, 1, 2)


def test_when_all_is_one_block_it_is_named() -> None:
    verdicts = np.repeat(study(1, seed=1, share=0.4), 5, axis=1)
    assert verdicts.any()
    blocks = found(verdicts)
    assert blocks.distinct == 1
    assert [block.traces for block in blocks.identical] == [(0, 1, 2, 3, 4)]


def test_traces_that_are_alike_by_chance_are_not_named() -> None:
    for seed in range(5):
        blocks = found(study(400, seed, share=0.05, people=2))
        # Most traces of such a study show nothing, or one of the modes.
        assert blocks.distinct < 300
        assert blocks.identical == ()


def test_nothing_seen_anywhere_proves_nothing() -> None:
    blocks = found(np.zeros((2, 8, MODES), dtype=np.int8))
    assert blocks == Blocks(8, 1, ())


def test_one_annotator_alone_makes_no_block_and_other_people_make_another() -> None:
    verdicts = np.repeat(study(1, seed=3, share=0.4), 4, axis=1)
    finished = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 0]], dtype=bool)
    verdicts[~finished] = -1
    blocks = found(verdicts, finished)
    assert (blocks.traces, blocks.distinct) == (3, 2)
    assert [(b.traces, b.annotators) for b in blocks.identical] == [((0, 1), (0, 1))]


def test_what_was_left_open_is_part_of_the_block() -> None:
    said = np.repeat(study(1, seed=4, share=0.4), 3, axis=1)
    said[1, 2, 5] = -1
    assert [block.traces for block in found(said).identical] == [(0, 1)]


def test_no_traces_have_no_blocks() -> None:
    assert found(np.zeros((0, 0, MODES), dtype=np.int8)) == Blocks(0, 0, ())
    assert found(np.zeros((2, 0, MODES), dtype=np.int8)) == Blocks(0, 0, ())


def test_one_mode_in_many_traces_is_no_copy() -> None:
    verdicts = np.zeros((2, 40, MODES), dtype=np.int8)
    verdicts[:, :10, 3] = 1
    assert found(verdicts).identical == ()
    verdicts[:, :10, 5] = 1
    blocks = found(verdicts)
    assert [block.traces for block in blocks.identical] == [tuple(range(10))]
    numbers = blocks.numbers(40)
    assert set(numbers[:10]) == {0}
    assert numbers[10:].tolist() == list(range(10, 40))
