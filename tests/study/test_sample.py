"""A sample of traces: each with the same chance, and of each kind its share."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.study import Draw, Study, chance, stratified_sample
from mast_tui.study.model import InvalidStudy

SIZES = st.lists(st.integers(0, 12), min_size=1, max_size=6).filter(any)


def kinds(sizes: list[int]) -> dict[str, tuple[str, ...]]:
    return {f"k{i}": tuple(f"k{i}-{j}" for j in range(size)) for i, size in enumerate(sizes)}


@given(SIZES, st.data(), st.integers(0, 9))
def test_each_kind_has_its_share_give_or_take_one(
    sizes: list[int], data: st.DataObject, seed: int
) -> None:
    strata = kinds(sizes)
    n = data.draw(st.integers(1, sum(sizes)))
    found = stratified_sample(strata, n, seed)
    assert len(set(found)) == len(found) == n
    of_kind = Counter(one.split("-")[0] for one in found)
    for name, ids in strata.items():
        assert abs(of_kind[name] - n * len(ids) / sum(sizes)) < 1


@given(SIZES, st.data())
def test_over_all_starts_each_trace_is_drawn_as_often(
    sizes: list[int], data: st.DataObject
) -> None:
    """So the share of a mode in the sample is on average its share in all: weights are alike."""
    strata = kinds(sizes)
    of = sum(sizes)
    n = data.draw(st.integers(1, of))
    drawn: Counter[str] = Counter()
    with patch.object(chance, "drawn") as number:
        for start in range(of):
            number.side_effect = lambda _seed, what, *_words, start=start: (
                start if what.startswith("start") else 0
            )
            drawn.update(stratified_sample(strata, n, 0))
    assert set(drawn.values()) == {n}
    assert len(drawn) == of


def test_the_same_seed_draws_the_same_and_another_one_others() -> None:
    strata = kinds([10, 20])
    assert stratified_sample(strata, 5, 1) == stratified_sample(
        dict(reversed(strata.items())), 5, 1
    )
    assert len({stratified_sample(strata, 5, seed) for seed in range(20)}) > 10


def test_known_prevalences_come_out_of_many_samples() -> None:
    strata = kinds([30, 10, 60])
    showing = {one for name, ids in strata.items() for one in ids if name == "k1" or one[-1] == "3"}
    truth = len(showing) / 100
    shares = [len(showing & set(stratified_sample(strata, 20, seed))) / 20 for seed in range(400)]
    assert sum(shares) / 400 == pytest.approx(truth, abs=0.01)


def test_chances_are_alike_where_later_lots_are_drawn_from_what_was_left() -> None:
    study = Study("mast@3", ("a",), batches=(("1", "2"),), per_trace=1)
    assert study.chances_alike
    study = replace(study, draws=(Draw(0, 10, (), 0),))
    assert study.chances_alike
    further = replace(study, batches=(("1", "2"), ("3",)))
    assert not further.chances_alike
    assert replace(further, draws=(*study.draws, Draw(1, 8, (), 0))).chances_alike
    assert not replace(further, draws=(*study.draws, Draw(1, 20, (), 0))).chances_alike


def test_a_lot_is_no_sample_of_fewer_traces_than_it_has() -> None:
    with pytest.raises(InvalidStudy, match="sample of 1 traces"):
        Study("mast@3", ("a",), batches=(("1", "2"),), per_trace=1, draws=(Draw(0, 1, (), 0),))
