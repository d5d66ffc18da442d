"""Figures counted from sums, beside the coefficients, in every resample."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mast_tui.figures.agreement.counting import (
    MISSING,
    UNSURE,
    Ratings,
    TableSums,
    VerdictArray,
    macro_coefficients,
    sums_of,
    table_coefficients,
    table_values,
)
from mast_tui.figures.bootstrap import Resampling, resamples
from mast_tui.figures.record import COEFFICIENTS, STATISTICS, Figure, mean_of_defined
from tests.figures.agreement.reference import (
    cohen_kappa,
    cohen_kappa_pairs,
    complete_units,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    raw_agreement,
    specific_agreement,
)

ROUNDS = 4


@st.composite
def verdicts(draw: st.DrawFn) -> VerdictArray:
    """Draw verdicts of annotators × traces × modes, often degenerate."""
    annotators = draw(st.integers(0, 5))
    traces = draw(st.integers(0, 12))
    modes = draw(st.integers(1, 3))
    answers = st.sampled_from(draw(st.sampled_from([(0, 1), (0, 0, 1, -1, UNSURE), (0, -1), (1,)])))
    cells = annotators * traces * modes
    drawn = draw(st.lists(answers, min_size=cells, max_size=cells))
    return np.array(drawn, dtype=np.int8).reshape(annotators, traces, modes)


def shared_units(units: VerdictArray) -> Ratings:
    """Return the units with two ratings or more, or all if there are none."""
    ratings = np.where(units == UNSURE, MISSING, units).astype(int)
    shared = ratings[:, (ratings != MISSING).sum(axis=0) > 1]
    return shared if shared.shape[1] else ratings


def reference_figures(units: VerdictArray) -> dict[str, Figure]:
    """Return every figure of raters × units by the general functions."""
    ratings = shared_units(units)
    raw = raw_agreement(ratings)
    return {
        "raw_agreement": raw,
        "positive_agreement": specific_agreement(ratings, 1),
        "negative_agreement": specific_agreement(ratings, 0),
        "cohen_kappa": (cohen_kappa if len(ratings) == 2 else cohen_kappa_pairs)(ratings),
        "fleiss_kappa": fleiss_kappa(complete_units(ratings)),
        "krippendorff_alpha": krippendorff_alpha(ratings),
        "gwet_ac1": gwet_ac1(ratings),
        "pabak": replace(raw, value=None if raw.value is None else 2 * raw.value - 1),
    }


def same(ours: Figure, theirs: Figure) -> bool:
    if theirs.value is None:
        return ours.undefined == theirs.undefined
    return ours.value == pytest.approx(theirs.value, abs=1e-12)


def pairs_with_traces(cells: VerdictArray) -> list[tuple[list[int], int]]:
    """Return the pairs of annotators with their numbers of shared traces."""
    pairs = [list(pair) for pair in combinations(range(len(cells)), 2)]
    return [(p, int(np.any(np.all(cells[p] >= 0, axis=0), axis=1).sum())) for p in pairs]


def of_two_traces(cells: VerdictArray) -> dict[str, Figure]:
    """Return every figure of annotators × traces × modes; chance needs two traces."""
    people, traces, modes = cells.shape
    figures = reference_figures(cells.reshape(people, traces * modes))
    rated = (cells >= 0).sum(axis=0)
    if people < 2:
        return figures
    shared = int((rated > 1).any(axis=1).sum())
    by_all = int((rated == people).any(axis=1).sum())
    alone = Figure(reason="single_trace")
    shared_by = pairs_with_traces(cells)
    kappas = [reference_figures(cells[p].reshape(2, -1))["cohen_kappa"] for p, _ in shared_by]
    most = max(n for _, n in shared_by)
    figures["cohen_kappa"] = alone if most == 1 else mean_of_defined(kappas)[0]
    figures["fleiss_kappa"] = alone if by_all == 1 else figures["fleiss_kappa"]
    for name in figures.keys() - {"cohen_kappa", "fleiss_kappa"}:
        if shared == 1 and STATISTICS[name].over_chance:
            figures[name] = alone
    return figures


def units_of(cells: VerdictArray, name: str) -> int:
    """Return the number of traces × modes that a figure counts."""
    rated = cells >= 0
    if name == "fleiss_kappa":
        return int(rated.all(axis=0).sum()) if len(cells) > 1 else 0
    if name == "cohen_kappa":
        pairs = [pair for pair, _ in pairs_with_traces(cells)]
        tables = [reference_figures(cells[pair].reshape(2, -1)) for pair in pairs]
        defined = [
            pair for pair, table in zip(pairs, tables, strict=True) if table[name].value is not None
        ]
        if defined:
            return int(np.any([rated[pair].all(axis=0) for pair in defined], axis=0).sum())
    return int((rated.sum(axis=0) > 1).sum())


def assert_figures(table: TableSums, cells: VerdictArray) -> None:
    """Fail unless a table and its pairs have the figures of these verdicts, with their n."""
    ours = table_coefficients(table)
    theirs = of_two_traces(cells)
    assert [name for name in COEFFICIENTS if not same(ours[name], theirs[name])] == []
    assert {name: ours[name].n for name in COEFFICIENTS} == {
        name: units_of(cells, name) for name in COEFFICIENTS
    }
    for index, pair in enumerate(combinations(range(len(cells)), 2)):
        ours = table_coefficients(table.pair(index))
        theirs = of_two_traces(cells[list(pair)])
        assert [name for name in COEFFICIENTS if not same(ours[name], theirs[name])] == []


def no_single_trace(table: TableSums) -> bool:
    return 1 not in (table.traces, table.complete_traces, *table.pair_trace_counts)


@given(verdicts())
def test_every_figure_and_reason_is_that_of_the_coefficients(cells: VerdictArray) -> None:
    _, traces, modes = cells.shape
    sums = sums_of(cells, range(traces), Resampling(0))
    for mode in range(modes):
        assert_figures(sums.of_modes([mode]), cells[:, :, [mode]])
    assert_figures(sums.everything(), cells)


@given(verdicts())
def test_macro_is_the_mean_of_defined_modes(cells: VerdictArray) -> None:
    _, traces, modes = cells.shape
    sums = sums_of(cells, range(traces), Resampling(0))
    per_mode = [of_two_traces(cells[:, :, [mode]]) for mode in range(modes)]
    means = macro_coefficients(sums, per_mode)
    for name in COEFFICIENTS:
        mean, count = mean_of_defined([mode[name] for mode in per_mode])
        assert same(means[name], mean)
        assert means[name].n == count


@settings(max_examples=30)
@given(verdicts())
def test_few_traces_have_the_figures_without_each_trace(cells: VerdictArray) -> None:
    people, traces, modes = cells.shape
    table = sums_of(cells, range(traces), Resampling(ROUNDS)).everything()
    assume(no_single_trace(table))
    values = table_values(table)
    assert len(table.pairs) == 1 + traces
    for left_out in range(traces):
        units = np.delete(cells, left_out, axis=1).reshape(people, (traces - 1) * modes)
        for name, theirs in reference_figures(units).items():
            expected = np.nan if theirs.value is None else theirs.value
            value = values[name][1 + left_out]
            assert value == pytest.approx(expected, abs=1e-12, nan_ok=True), name


@settings(max_examples=30)
@given(verdicts(), st.integers(0, 99))
def test_resamples_have_the_figures_of_their_traces(cells: VerdictArray, seed: int) -> None:
    people, traces, modes = cells.shape
    resampling = Resampling(ROUNDS, seed)
    table = sums_of(cells, range(traces), resampling, resampled_from=0).everything()
    assume(no_single_trace(table))
    values = table_values(table)
    drawn = np.concatenate([np.zeros((0, traces)), *resamples(traces, resampling)]).astype(int)
    for row, weights in enumerate(drawn, start=1):
        units = np.repeat(cells, weights, axis=1).reshape(people, traces * modes)
        for name, theirs in reference_figures(units).items():
            expected = np.nan if theirs.value is None else theirs.value
            assert values[name][row] == pytest.approx(expected, abs=1e-12, nan_ok=True), name


def test_traces_of_one_annotator_are_not_resampled() -> None:
    cells = np.array([[[1], [0], [1], [0]], [[1], [0], [-1], [-1]]], dtype=np.int8)
    with_single = sums_of(cells, [0, 1], Resampling(50, 3))
    without = sums_of(cells[:, :2], [0, 1], Resampling(50, 3))
    assert np.array_equal(with_single.units_by_pattern, without.units_by_pattern)
    assert np.array_equal(with_single.pairs, without.pairs)


@pytest.mark.parametrize(("traces", "noise"), [(30, 0.2), (2100, 0.2), (30, 0.0), (8, 0.2)])
def test_pabak_has_the_interval_of_raw_agreement(traces: int, noise: float) -> None:
    random = np.random.default_rng(traces)
    truth = random.random((traces, 3)) < 0.3
    answers = np.stack([truth, truth ^ (random.random(truth.shape) < noise)]).astype(np.int8)
    sums = sums_of(answers, range(traces), Resampling(100))
    per_mode = [table_coefficients(sums.of_modes([mode])) for mode in range(3)]
    tables = (*per_mode, table_coefficients(sums.everything()), macro_coefficients(sums, per_mode))
    for table in tables:
        raw = table["raw_agreement"]
        pabak = table["pabak"]
        assert raw.value is not None
        assert pabak.value == pytest.approx(2 * raw.value - 1)
        assert pabak.withheld == raw.withheld
        expected = None if raw.interval is None else [2 * end - 1 for end in raw.interval]
        assert pabak.interval == (None if expected is None else pytest.approx(expected))
