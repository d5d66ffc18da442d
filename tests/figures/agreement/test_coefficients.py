"""Agreement on one mode beside published values and other libraries, and two-by-two tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats import inter_rater

from mast_tui.figures.agreement.counting import MISSING, VerdictArray, sums_of, table_coefficients
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.record import Figure, mean_of_defined
from mast_tui.figures.two_by_two import FIGURES, JudgeTables, coefficient
from tests.figures.agreement import reference as coefficients
from tests.figures.agreement.reference import complete_units


def figures_of(lines: list[list[int]]) -> Mapping[str, Figure]:
    """Return every figure of annotators × traces on one mode."""
    cells: VerdictArray = np.array(lines, dtype=np.int8)[:, :, None]
    return table_coefficients(sums_of(cells, range(cells.shape[1]), Resampling(0)).everything())


def two_by_two(both: int, only_a: int, only_b: int, neither: int) -> list[list[int]]:
    """Return the verdicts of two annotators, 1 for present and 0 for absent."""
    counts = {(1, 1): both, (1, 0): only_a, (0, 1): only_b, (0, 0): neither}
    pairs = [pair for pair, count in counts.items() for _ in range(count)]
    return [list(line) for line in zip(*pairs, strict=True)]


def value_of(figure: Figure) -> float:
    assert figure.value is not None
    return figure.value


def holds(figure: Figure, printed: str) -> bool:
    """Return whether the value is the printed one to half a unit of its last digit."""
    digits = len(printed.partition(".")[2])
    half_a_unit: float = 0.5 * 10**-digits
    return abs(value_of(figure) - float(printed)) <= half_a_unit


PUBLISHED: Final[Mapping[tuple[int, int, int, int], Mapping[str, str]]] = {
    (1, 1, 3, 5): {"krippendorff_alpha": "0.095238"},
    (20, 5, 10, 15): {"cohen_kappa": "0.4"},
    (45, 15, 25, 15): {"cohen_kappa": "0.130435"},
    (25, 35, 5, 35): {"cohen_kappa": "0.259259"},
    (40, 9, 6, 45): {"cohen_kappa": "0.699519", "gwet_ac1": "0.700748"},
    (80, 10, 5, 5): {"cohen_kappa": "0.318182", "gwet_ac1": "0.808"},
    (118, 5, 2, 0): {
        "cohen_kappa": "-0.023392", "gwet_ac1": "0.940776", "krippendorff_alpha": "-0.024691"
    },
    (6, 13, 33, 106): {"cohen_kappa": "0.0539", "gwet_ac1": "0.584", "raw_agreement": "0.709"},
}  # fmt: skip


@pytest.mark.parametrize("cells", PUBLISHED)
def test_published_values(cells: tuple[int, int, int, int]) -> None:
    figures = figures_of(two_by_two(*cells))
    for name, printed in PUBLISHED[cells].items():
        assert holds(figures[name], printed), name


def test_specific_agreement_counts_pairs() -> None:
    figures = figures_of(two_by_two(80, 10, 5, 5))
    assert figures["positive_agreement"].value == pytest.approx(160 / 175)
    assert figures["negative_agreement"].value == pytest.approx(10 / 25)
    # 111 gives 3 pairs on present; 100 one on absent and 2 mixed; 00 one on absent.
    figures = figures_of([[1, 1, 0], [1, 0, 0], [1, 0, MISSING]])
    assert figures["positive_agreement"].value == pytest.approx(2 * 3 / (2 * 3 + 2))
    assert figures["negative_agreement"].value == pytest.approx(2 * 2 / (2 * 2 + 2))


# Small tables meet the degenerate cases often, and large ones the usual.
def verdicts(people: st.SearchStrategy[int], least: int) -> st.SearchStrategy[list[list[int]]]:
    """Draw annotators × traces, with missing verdicts if ``least`` is that number."""

    def lines(shape: tuple[int, int]) -> st.SearchStrategy[list[list[int]]]:
        row = st.lists(st.integers(least, 1), min_size=shape[1], max_size=shape[1])
        return st.lists(row, min_size=shape[0], max_size=shape[0])

    return st.tuples(people, st.integers(1, 30)).flatmap(lines)


@given(verdicts(st.just(2), MISSING))
def test_cohens_kappa_is_that_of_scikit_learn_and_statsmodels(lines: list[list[int]]) -> None:
    ours = figures_of(lines)["cohen_kappa"].value
    assume(ours is not None)
    first, second = complete_units(np.array(lines)).tolist()
    assert ours == pytest.approx(cohen_kappa_score(first, second), abs=1e-9)
    confusion = np.zeros((2, 2))
    np.add.at(confusion, (first, second), 1)
    theirs = inter_rater.cohens_kappa(confusion, return_results=False)
    assert ours == pytest.approx(theirs, abs=1e-9)


@given(verdicts(st.integers(2, 6), 0))
def test_fleiss_kappa_is_that_of_statsmodels(lines: list[list[int]]) -> None:
    ours = figures_of(lines)["fleiss_kappa"].value
    assume(ours is not None)
    counts, _ = inter_rater.aggregate_raters(np.array(lines).T)
    assert ours == pytest.approx(inter_rater.fleiss_kappa(counts), abs=1e-9)


def test_means_leave_out_undefined_coefficients() -> None:
    # a|b is defined; c shares no trace with a or b.
    lines = [[0, 1, 1, 0, MISSING], [0, 1, 0, 0, MISSING], [*[MISSING] * 4, 1]]
    assert figures_of(lines)["cohen_kappa"] == figures_of(lines[:2])["cohen_kappa"]
    reasons = [Figure(reason="single_rater"), Figure(reason="no_variance")]
    assert mean_of_defined(reasons) == (Figure(reason="no_variance"), 0)
    assert mean_of_defined([*reasons, Figure(value=0.5)]) == (Figure(value=0.5), 1)


COUNTS = st.lists(st.integers(0, 6), min_size=4, max_size=4)


@given(COUNTS)
def test_figures_are_the_general_coefficients(counts: list[int]) -> None:
    tp, fp, fn, tn = counts
    ratings = np.array([[1] * tp + [1] * fp + [0] * fn + [0] * tn,
                        [1] * tp + [0] * fp + [1] * fn + [0] * tn])  # fmt: skip
    table = np.array(counts, dtype=np.float64)
    if not table.sum():
        for name in FIGURES:
            assert coefficient(name, JudgeTables(table)).undefined == "no_overlap"
        return
    same = {
        "raw_agreement": coefficients.raw_agreement(ratings),
        "cohen_kappa": coefficients.cohen_kappa(ratings),
        "gwet_ac1": coefficients.gwet_ac1(ratings),
        "f1": coefficients.specific_agreement(ratings, 1),
    }
    for name, general in same.items():
        ours = coefficient(name, JudgeTables(table))
        if table.sum() == 1 and name in ("cohen_kappa", "gwet_ac1"):
            assert ours.undefined == "single_trace"
            continue
        assert ours.undefined == general.undefined
        assert ours.value == pytest.approx(general.value, abs=1e-12)


@given(st.lists(COUNTS, min_size=1, max_size=5))
def test_many_tables_are_computed_like_single_ones(tables: list[list[int]]) -> None:
    together = np.array(tables, dtype=np.float64)
    for figure in FIGURES.values():
        alone = [float(figure(table)) for table in together]
        assert figure(together) == pytest.approx(alone, nan_ok=True)
