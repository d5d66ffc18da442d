"""Verdicts as one array."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.figures.agreement.counting import numbered_rows


@given(
    st.integers(0, 4).flatmap(
        lambda width: st.lists(
            st.lists(st.integers(-3, 2), min_size=width, max_size=width), min_size=1, max_size=25
        )
    )
)
def test_equal_rows_share_a_number_and_others_do_not(rows: list[list[int]]) -> None:
    numbers = numbered_rows(np.array(rows, dtype=np.int8)).tolist()
    assert len(set(zip(numbers, map(tuple, rows), strict=True))) == len(set(numbers))
    assert set(numbers) == set(range(len(set(map(tuple, rows)))))
