"""Verdicts as one array."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.figures.agreement.verdict_table import numbered_rows, verdict_table
from mast_tui.labels import VerdictValue
from tests.figures.agreement.test_study import study


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


def test_only_what_was_asked_for_is_in_the_table() -> None:
    said = study({("ann", "step_repetition"): "01?.", ("bob", "premature_termination"): "1111"})
    table = verdict_table(("ann",), ("step_repetition",), said.finished, said.verdicts)
    assert dict(table) == {
        ("ann", "t0", "step_repetition"): VerdictValue.ABSENT,
        ("ann", "t1", "step_repetition"): VerdictValue.PRESENT,
        ("ann", "t2", "step_repetition"): VerdictValue.UNSURE,
    }
    assert table.traces == ("t0", "t1", "t2", "t3")
    assert verdict_table(("ann",), ("step_repetition",), said.finished, table) is table
