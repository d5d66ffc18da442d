"""Prediction-powered prevalence, beside the library of its authors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.figures.prevalence import Weighted, prediction_powered, weighted_tables
from scripts.simulate_prevalence import PrevalenceSetting, simulate

# The results of ppi_mean_pointestimate of ppi-python 0.2.3 (lam=None) for labels with these counts:
# TP, FP, FN, TN of the judge, and the further traces that it calls present and absent.
OF_THE_LIBRARY = (
    ((24, 7, 6, 63), (310, 690), 0.30000000000000004),
    ((4, 10, 1, 85), (120, 880), 0.044396495781959755),
    ((40, 3, 2, 55), (400, 560), 0.40911937950689825),
    ((10, 20, 10, 20), (500, 500), 0.3333333333333333),
    ((12, 5, 8, 175), (70, 430), 0.11856253867356695),
    ((3, 1, 2, 194), (15, 985), 0.021126052854405282),
    ((90, 12, 20, 78), (600, 900), 0.4821766288988233),
)


@pytest.mark.parametrize(("labelled", "further", "value"), OF_THE_LIBRARY)
def test_value_is_that_of_the_library_of_its_authors(
    labelled: tuple[int, ...], further: tuple[int, ...], value: float
) -> None:
    estimate = prediction_powered(np.array(labelled), np.array(further))
    assert estimate.powered.value == pytest.approx(value, abs=1e-9)


def test_weight_of_the_judge_grows_with_its_accuracy() -> None:
    at_chance = prediction_powered(np.array((10, 20, 10, 20)), np.array((500, 500)))
    assert at_chance.judge_weight == 0
    assert at_chance.powered.value == at_chance.people.value
    right = prediction_powered(np.array((30, 0, 0, 70)), np.array((300, 700)))
    assert right.judge_weight == pytest.approx(1000 / 1100, abs=0.01)


def test_too_few_labels_have_a_reason() -> None:
    estimate = prediction_powered(np.array((5, 1, 1, 20)), np.array((100, 200)))
    assert (estimate.powered.withheld, estimate.powered.needs) == ("few_traces", 100)
    assert estimate.more_labels is None
    nothing = prediction_powered(np.array((5, 1, 1, 20)), np.array((0, 0)))
    assert (nothing.powered.value, nothing.powered.undefined) == (None, "no_overlap")


COUNTS = st.integers(0, 400)


@given(st.tuples(COUNTS, COUNTS, COUNTS, COUNTS), st.tuples(COUNTS, COUNTS))
def test_any_counts_give_shares_within_their_intervals(
    labelled: tuple[int, ...], further: tuple[int, ...]
) -> None:
    estimate = prediction_powered(np.array(labelled), np.array(further))
    assert (estimate.n_labelled, estimate.n) == (sum(labelled), sum(labelled) + sum(further))
    value = estimate.powered.value
    if value is None:
        return
    assert 0 <= value <= 1
    assert 0 <= (estimate.judge_weight or 0) <= 1
    ends = estimate.powered.interval
    if ends is not None:
        assert 0 <= ends[0] <= value <= ends[1] <= 1
    if estimate.more_labels is not None:
        assert estimate.more_labels >= 0
    these = estimate.share_of_these
    if these is not None and these.interval is not None:
        low, high = these.interval
        assert (labelled[0] + labelled[2]) / estimate.n <= low <= high
        assert high <= 1 - (labelled[1] + labelled[3]) / estimate.n


def test_equal_weights_give_the_figures_of_a_random_sample() -> None:
    labelled = np.array((24, 7, 6, 63))
    further = np.array((310, 690))
    cells = np.repeat(np.eye(4), labelled, axis=0)[:, None, :]
    (weighted,) = weighted_tables(cells, np.full(100, 11.0))
    plain = prediction_powered(labelled, further)
    weighted_estimate = prediction_powered(labelled, further, weighted)
    assert weighted_estimate.weighted
    assert weighted_estimate.powered.value == pytest.approx(plain.powered.value, abs=0.002)
    assert weighted_estimate.powered.interval == pytest.approx(plain.powered.interval, abs=0.005)


def test_rarely_drawn_traces_weigh_more() -> None:
    labelled = np.array((40, 0, 0, 60))
    further = np.array((100, 900))
    cells = np.repeat(np.eye(4), labelled, axis=0)[:, None, :]
    weights = np.repeat([3.5, 16.0], [40, 60])
    (weighted,) = weighted_tables(cells, weights)
    estimate = prediction_powered(labelled, further, weighted)
    assert estimate.people.value == pytest.approx(140 / 1100)
    assert estimate.powered.value == pytest.approx(140 / 1100)
    nothing = Weighted(np.zeros(4), np.zeros(4), np.zeros(4))
    assert prediction_powered(labelled, further, nothing).powered.value is None


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["random", "chosen"])
def test_simulated_intervals_hold_and_are_no_wider_than_those_of_people(sampling: str) -> None:
    """``scripts/simulate_prevalence.py`` has 2,000 runs of each; these are few, of fixed seed."""
    random = np.random.default_rng(4)
    runs = 400 if sampling == "random" else 25
    for tpr, tnr in ((0.8, 0.9), (0.5, 0.5)):
        _, coverage, width = simulate(sampling, PrevalenceSetting(tpr, tnr, 0.1, 100), runs, random)
        assert coverage >= (92 if sampling == "random" else 84)
        assert width <= 1.1 if sampling == "chosen" else width <= 1.02
