"""Samples of traces: equal chances, and a share of each stratum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mast_tui.study import Draw, Study, plan, stratified_sample, weighted_sample
from mast_tui.study.model import InvalidStudy

SIZES = st.lists(st.integers(0, 12), min_size=1, max_size=6).filter(any)


def strata_of(sizes: list[int]) -> dict[str, tuple[str, ...]]:
    return {f"k{i}": tuple(f"k{i}-{j}" for j in range(size)) for i, size in enumerate(sizes)}


@given(SIZES, st.data(), st.integers(0, 9))
def test_each_stratum_has_its_share(sizes: list[int], data: st.DataObject, seed: int) -> None:
    strata = strata_of(sizes)
    n = data.draw(st.integers(1, sum(sizes)))
    sample = stratified_sample(strata, n, seed)
    assert len(set(sample)) == len(sample) == n
    count_by_stratum = Counter(trace_id.split("-")[0] for trace_id in sample)
    for name, ids in strata.items():
        assert abs(count_by_stratum[name] - n * len(ids) / sum(sizes)) < 1


@given(SIZES, st.data())
def test_each_trace_is_drawn_equally_often(sizes: list[int], data: st.DataObject) -> None:
    strata = strata_of(sizes)
    trace_count = sum(sizes)
    n = data.draw(st.integers(1, trace_count))
    drawn: Counter[str] = Counter()
    with patch.object(plan, "random_number") as number:
        for start in range(trace_count):
            number.side_effect = lambda _seed, purpose, *_keys, start=start: (
                start if purpose.startswith("start") else 0
            )
            drawn.update(stratified_sample(strata, n, 0))
    assert set(drawn.values()) == {n}
    assert len(drawn) == trace_count


def test_a_sample_depends_on_its_seed() -> None:
    strata = strata_of([10, 20])
    assert stratified_sample(strata, 5, 1) == stratified_sample(
        dict(reversed(strata.items())), 5, 1
    )
    assert len({stratified_sample(strata, 5, seed) for seed in range(20)}) > 10


def test_chances_are_equal_if_later_batches_are_drawn_from_the_remaining_traces() -> None:
    study = Study("mast@3", ("a",), batches=(("1", "2"),), per_trace=1)
    assert study.chances_alike
    study = replace(study, draws=(Draw(0, 10, (), 0),))
    assert study.chances_alike
    further = replace(study, batches=(("1", "2"), ("3",)))
    assert not further.chances_alike
    assert replace(further, draws=(*study.draws, Draw(1, 8, (), 0))).chances_alike
    assert not replace(further, draws=(*study.draws, Draw(1, 20, (), 0))).chances_alike


def test_a_batch_is_no_larger_than_its_population() -> None:
    with pytest.raises(InvalidStudy, match="sample of 1 trace"):
        Study("mast@3", ("a",), batches=(("1", "2"),), per_trace=1, draws=(Draw(0, 1, (), 0),))


def every_weighted_sample(
    sizes: Mapping[str, float], n: int
) -> Iterator[tuple[float, dict[str, float]]]:
    """Yield every possible sample with its probability."""
    steps = {0.0, 1.0}
    total = 0.0
    chances = plan._inclusion_chances(sizes, n)
    for trace_id in sorted(sizes):
        total += chances[trace_id]
        steps.add(total % 1)
    for low, high in pairwise(sorted(steps)):
        if high - low > 1e-9:
            start = int((low + high) / 2 * 2**64)
            with patch.object(
                plan,
                "random_number",
                side_effect=lambda _, purpose, *__, start=start: start * ("start" in purpose),
            ):
                yield high - low, weighted_sample(sizes, n, 0, batch_number=1)


TRACES_WITH_SIZES = st.lists(st.tuples(st.booleans(), st.floats(0.05, 20)), min_size=4, max_size=7)


@settings(deadline=None, max_examples=25)
@given(TRACES_WITH_SIZES, st.data())
def test_weights_reproduce_known_prevalences(
    traces: list[tuple[bool, float]], data: st.DataObject
) -> None:
    sizes = {f"t{number}": size for number, (_, size) in enumerate(traces)}
    present = {f"t{number}" for number, (is_present, _) in enumerate(traces) if is_present}
    trace_count = len(traces)
    first = data.draw(st.integers(1, trace_count - 2))
    second = data.draw(st.integers(1, trace_count - first - 1))
    mean_present = mean_all = 0.0
    for start in range(trace_count):
        with patch.object(
            plan,
            "random_number",
            side_effect=lambda _, purpose, *__, start=start: start * ("start" in purpose),
        ):
            first_batch = stratified_sample({"": tuple(sizes)}, first, 0)
        remaining = {trace: size for trace, size in sizes.items() if trace not in first_batch}
        for probability, sample in every_weighted_sample(remaining, second):
            study = Study(
                *("mast@3", ("a",)),
                per_trace=1,
                batches=(first_batch, tuple(sample)),
                draws=(
                    Draw(0, trace_count, (), 0),
                    Draw(1, len(remaining), (), 0, tuple(sample.values())),
                ),
            )
            assert len(sample) == second
            assert not study.chances_alike
            weights = study.trace_weights(study.traces)
            assert weights is not None
            mean_present += (
                probability
                / trace_count
                * sum(weights[trace] for trace in present & weights.keys())
            )
            mean_all += probability / trace_count * sum(weights.values())
    assert mean_present == pytest.approx(len(present))
    assert mean_all == pytest.approx(trace_count)


def test_equal_chances_have_equal_weights_in_all_batches() -> None:
    study = Study(
        *("mast@3", ("a",)),
        per_trace=1,
        batches=(("1", "2", "3"), ("4",), ("5", "6")),
        draws=(Draw(0, 12, (), 0), Draw(1, 9, (), 0), Draw(2, 8, (), 0)),
    )
    assert study.trace_weights(study.traces) == pytest.approx(dict.fromkeys("123456", 2.0))
    assert study.trace_weights({"1", "2"}) == pytest.approx({"1": 6.0, "2": 6.0})


def test_batches_that_were_not_drawn_have_no_weights() -> None:
    study = Study("mast@3", ("a",), per_trace=1, batches=(("1",), ("2",)))
    assert study.trace_weights({"1"}) is None
    assert replace(study, draws=(Draw(0, 3, (), 0),)).trace_weights({"1"}) is None


def test_each_trace_has_a_chance_of_at_most_one() -> None:
    chances = weighted_sample({"a": 100.0, "b": 1.0, "c": 1.0, "d": 2.0}, 2, 7)
    assert chances["a"] == 1.0
    assert len(chances) == 2
    assert set(weighted_sample({"a": 1.0, "b": 3.0}, 5, 0)) == {"a", "b"}
    with pytest.raises(InvalidStudy, match="a chance greater than 0"):
        Study(
            *("mast@3", ("a",)),
            per_trace=1,
            batches=(("1",),),
            draws=(Draw(0, 1, (), 0, (0.5, 0.5)),),
        )
