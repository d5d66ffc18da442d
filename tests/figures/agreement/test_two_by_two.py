"""Figures of two-by-two tables beside the general coefficients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.figures.two_by_two import FIGURES, JudgeTables, coefficient
from tests.figures.agreement import reference as coefficients

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
