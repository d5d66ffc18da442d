"""Capture and recapture: failures that no one found, and dependence of finders."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from math import exp, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from statsmodels.genmod.families import Poisson
from statsmodels.genmod.generalized_linear_model import GLM
from statsmodels.stats.contingency_tables import StratifiedTable
from statsmodels.tools.tools import add_constant

from mast_tui.figures.agreement.capture import (
    Capture,
    Catch,
    capture,
    dependence,
    interaction_scores,
    missed_figures,
    sadinle_interval,
    unseen_count,
)
from mast_tui.figures.agreement.counting import ABSENT, PRESENT, UNSURE
from mast_tui.figures.record import FigureIndex, FigureScope, FigureTable

COUNTS = st.integers(0, 60)


def captured(
    *lines: str,
    suggested: NDArray[np.bool_] | None = None,
    settled_absent: NDArray[np.bool_] | None = None,
) -> Capture:
    """Return the capture of one mode: a line for each finder, a character for each trace."""
    letters = {"1": PRESENT, "0": ABSENT, "?": UNSURE, ".": -1}
    verdicts = np.array([[[letters[letter]] for letter in line] for line in lines], dtype=np.int8)
    return capture(
        [f"f{number}" for number in range(len(lines))],
        {"1.3": 0},
        verdicts,
        suggested=np.zeros(verdicts.shape[:2], np.bool_) if suggested is None else suggested,
        settled_absent=np.zeros(verdicts.shape[1:], np.bool_)
        if settled_absent is None
        else settled_absent,
    )


def of_mode(study: Capture) -> FigureTable:
    return FigureIndex(study.figures).table("missed", mode="1.3")


def of_all(study: Capture) -> FigureTable:
    return FigureIndex(study.figures).table("missed_pooled")


@given(COUNTS, COUNTS, COUNTS)
def test_two_finders_have_chapmans_estimate_and_sadinles_interval(
    both: int, first: int, second: int
) -> None:
    alone = np.array([first, second], np.float64)
    chapman = (both + first + 1) * (both + second + 1) / (both + 1) - 1
    assert unseen_count(alone, both) == pytest.approx(chapman - (both + first + second))
    m, a, b = both + 0.5, first + 0.5, second + 0.5
    error = sqrt(1 / m + 1 / a + 1 / b + m / (a * b))
    for end, sign in zip(sadinle_interval(alone, both), (-1, 1), strict=True):
        assert end == pytest.approx(a * b / m * exp(sign * 1.959964 * error) - 0.5, rel=1e-5)


def test_three_finders_have_chaos_estimate() -> None:
    """30, 20 and 10 found by one alone, 24 by two: (60² − 900 − 400 − 100) / 50."""
    assert unseen_count(np.array([30.0, 20.0, 10.0]), 24) == pytest.approx(2200 / 50)


def test_two_finders_give_the_number_of_missed_failures() -> None:
    study = captured("1" * 12 + "1" * 4 + "0" * 24, "1" * 12 + "0" * 4 + "1" * 6 + "0" * 18)
    table = of_mode(study)
    counts = [table.value(name) for name in ("n", "found", "found_once", "found_twice")]
    assert counts == [40, 22, 10, 12]
    assert table.value("missed") == pytest.approx(4 * 6 / 13)
    low, high = table["missed"].interval or (0, 0)
    assert 0 <= low < 4 * 6 / 13 < high <= 18
    assert table.value("share_found") == pytest.approx(22 / (22 + 24 / 13))
    assert table["share_found"].interval == pytest.approx((22 / (22 + high), 22 / (22 + low)))
    same = [replace(figure, scope="missed", mode="1.3") for figure in of_all(study).figures]
    assert tuple(same) == table.figures
    assert study.finders_dependent is None
    assert not any(figure.scope == "missed_pair" for figure in study.figures)


def test_only_units_of_two_finders_count() -> None:
    table = of_mode(captured("11?.0", "1.110"))
    assert (table.value("n"), table.value("found")) == (2, 1)
    # Pairs that rotate are taken pair by pair.
    both = "1" * 6
    alone = "1100" * 5
    other = "0011" * 5
    study = captured(both + alone + "." * 26, both + other + both + alone, "." * 26 + both + other)
    values = {name: of_all(study).value(name) for name in ("n", "missed", "found")}
    assert values == {"n": 52, "missed": 0, "found": 52}


def test_few_failures_have_no_figure_or_interval() -> None:
    assert of_all(captured("000", "000"))["missed"].undefined == "no_variance"
    assert of_all(captured("1..", ".1."))["missed"].undefined == "no_overlap"
    few = of_all(captured("11110000", "11000110"))["missed"]
    assert few.value is not None
    assert (few.interval, few.withheld, few.needs) == (None, "few_found_twice", 5)


def test_traces_with_suggestions_and_settled_absent_units_are_left_out() -> None:
    suggested = np.zeros((2, 6), np.bool_)
    suggested[0, :2] = True
    absent = np.zeros((6, 1), np.bool_)
    absent[3] = True
    study = captured("111110", "110111", suggested=suggested, settled_absent=absent)
    assert (of_all(study).value("n"), of_all(study).value("found")) == (4, 3)
    left_out = FigureIndex(study.figures).table("missed_left_out")
    assert left_out.values("with_suggestions") == {"f0": 2, "f1": 0}
    assert left_out.value("settled_absent") == 1


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 9)] * 4).filter(lambda x: sum(x) > 1), min_size=1))
def test_dependence_is_tested_as_by_mantel_and_haenszel(tables: list[tuple[int, ...]]) -> None:
    rows = [(1, 1, 1), (1, 0, 1), (0, 1, 1), (0, 0, 1)]
    groups = [
        Catch(99, (0, 1, 2), np.repeat(np.array(rows, np.bool_), table, axis=0)) for table in tables
    ]
    result = dependence(groups, 0, 1)
    assert result.n == sum(map(sum, tables))
    if result.p_value is None or result.odds_ratio is None:
        return
    theirs = StratifiedTable([np.reshape(table, (2, 2)).astype(float) for table in tables])
    assert result.odds_ratio == pytest.approx(theirs.oddsratio_pooled)
    assert result.p_value == pytest.approx(theirs.test_null_odds().pvalue)


@pytest.mark.filterwarnings("ignore:Perfect separation")
@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 30), min_size=7, max_size=7))
def test_scores_of_interactions_are_those_of_log_linear_models(counts: list[int]) -> None:
    cells = np.array(list(product((0, 1), repeat=3))[1:])
    group = Catch(999, (0, 1, 2), np.repeat(cells, counts, axis=0).astype(np.bool_))
    scores, spread = interaction_scores([group], 3)
    both = np.stack([cells[:, a] * cells[:, b] for a, b in combinations(range(3), 2)], axis=1)
    model = GLM(np.array(counts), add_constant(cells), family=Poisson())
    fitted = model.fit(tol=1e-12)
    for index in range(3):
        cells_of_extra = np.column_stack([model.exog, both[:, index]])
        extra = GLM(np.array(counts), cells_of_extra, family=Poisson())
        params = np.append(fitted.params, 0.0)
        score = extra.score(params)
        information = extra.information(params)
        assert scores[index] == pytest.approx(score[-1], abs=1e-4)
        variance = -1 / np.linalg.inv(information)[-1, -1]
        assert spread[index, index] == pytest.approx(variance, rel=1e-4)


def test_equal_finders_are_dependent_and_have_no_interval() -> None:
    same = "1" * 20 + "0" * 20
    study = captured(same + "0" * 40, same + "0" * 40, "1" * 40 + "0" * 40)
    assert study.finders_dependent is True
    pair = FigureIndex(study.figures).table("missed_pair", subject=("f0", "f1"))
    assert pair["odds_ratio"].value is None
    assert study.finders_alike
    assert of_all(study)["missed"].withheld == "dependent_finders"


@given(
    st.lists(st.tuples(*[st.booleans()] * 3).filter(any), min_size=1, max_size=40),
    st.integers(0, 40),
)
def test_missed_failures_are_at_most_the_units_left(
    finders: list[tuple[bool, ...]], more: int
) -> None:
    figures = missed_figures(
        [Catch(len(finders) + more, (0, 1, 2), np.array(finders))], FigureScope("missed")
    )
    missed = FigureTable(tuple(figures))["missed"]
    value = missed.value
    ends = missed.interval
    if np.array(finders).any(axis=0).sum() < 2:  # one finder alone shows nothing missed
        assert value is None
        return
    assert value is not None
    assert 0 <= value <= more
    if ends is not None:
        assert 0 <= ends[0] <= value <= ends[1] <= max(more, value)
