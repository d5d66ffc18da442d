"""Severities of modes, modes per trace, and shapes of traces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.record import FigureIndex, FigureScope
from mast_tui.figures.signatures.groups import (
    SHAPES,
    modes_per_trace,
    modes_per_trace_interval,
    resampled_modes_per_trace,
    trace_shapes,
)
from mast_tui.figures.signatures.model import ABSENT, OPEN, PRESENT, UNSURE, Rules
from mast_tui.figures.signatures.modes import counts_by_mode, mode_figures
from mast_tui.reports.signature_document import mode_document


def tables(
    failed: list[tuple[int, int]], succeeded: list[tuple[int, int]], rules: Rules | None = None
) -> list[Any]:
    """Return the tables of modes with these counts of traces on either side."""
    sides = []
    for counts in (failed, succeeded):
        rows = max(n for _, n in counts)
        side = np.full((rows, len(counts)), OPEN, dtype=np.uint8)
        for column, (count, n) in enumerate(counts):
            side[:n, column] = ABSENT
            side[:count, column] = PRESENT
        sides.append(side)
    verdicts = np.concatenate(sides)
    lost = np.arange(len(verdicts)) < len(sides[0])
    return tables_of(verdicts, lost, rules or Rules())


def tables_of(verdicts: NDArray[np.uint8], lost: NDArray[np.bool_], rules: Rules) -> list[Any]:
    """Return the tables of all modes, of traces that failed or succeeded."""
    modes = range(verdicts.shape[1])
    figures = mode_figures(
        counts_by_mode(verdicts),
        counts_by_mode(verdicts[lost]),
        counts_by_mode(verdicts[~lost]),
        len(verdicts),
        (verdicts == UNSURE).sum(axis=0).tolist(),
        [FigureScope("mode", mode=f"mode {column}") for column in modes],
    )
    tables = FigureIndex(figures).figures_by_key("mode").values()
    return [mode_document(table, rules, None) for table in tables]


@pytest.mark.parametrize(
    ("failed", "succeeded", "rules", "severity", "because"),
    [
        ((90, 100), (5, 100), {}, "fatal", "more_in_failed"),
        ((50, 100), (70, 100), {}, "benign", "seen_in_successes"),
        ((1000, 1000), (0, 4), {}, "unclear", "too_few_traces"),
        ((1000, 1000), (0, 4), {"least": 4}, "fatal", "more_in_failed"),
        ((0, 500), (0, 500), {}, "unclear", "not_told_apart"),
        ((12, 40), (8, 40), {}, "unclear", "not_told_apart"),
        ((12, 40), (8, 40), {"margin": 0.5}, "benign", "seen_in_successes"),
        ((12, 40), (8, 40), {"alpha": 0.9}, "fatal", "more_in_failed"),
    ],
)
def test_severity_follows_the_rules(
    failed: tuple[int, int],
    succeeded: tuple[int, int],
    rules: dict[str, Any],
    severity: str,
    because: str,
) -> None:
    (mode,) = tables([failed], [succeeded], Rules(**rules))
    assert (mode["severity"], mode["severity_because"]) == (severity, because)


def test_open_and_unsure_verdicts_are_not_absent() -> None:
    verdicts = np.array([[PRESENT], [ABSENT], [UNSURE], [OPEN]], dtype=np.uint8)
    (mode,) = tables_of(verdicts, np.ones(4, dtype=bool), Rules())
    assert (mode["failed"]["count"], mode["failed"]["n"]) == (1, 2)
    assert (mode["unsure"], mode["open"]) == (1, 1)
    assert mode["difference_pp"] is None
    assert mode["undefined"]["p_value"] == "no_succeeded"


cells = st.lists(
    st.lists(st.sampled_from([PRESENT, ABSENT, UNSURE, OPEN]), min_size=4, max_size=4),
    min_size=1,
    max_size=30,
)


@given(cells)
@settings(max_examples=60, deadline=None)
def test_modes_per_trace_is_the_sum_of_shares_within_its_interval(rows: list[list[int]]) -> None:
    verdicts: NDArray[np.uint8] = np.array(rows, dtype=np.uint8)
    value = modes_per_trace(verdicts)
    settled = [
        [cell for cell in column if cell in (PRESENT, ABSENT)] for column in zip(*rows, strict=True)
    ]
    shares = [column.count(PRESENT) / len(column) for column in settled if column]
    assert value == (pytest.approx(sum(shares)) if shares else None)
    ends = modes_per_trace_interval(verdicts, Resampling(200))
    if ends is not None and value is not None:
        assert ends[0] <= value <= ends[1]


def test_interval_of_many_kinds_of_traces_is_that_of_resampling() -> None:
    random = np.random.default_rng(3)
    verdicts = random.choice(
        np.array([PRESENT, ABSENT, OPEN], dtype=np.uint8), size=(3000, 12), p=[0.4, 0.5, 0.1]
    )
    assert len(resampled_modes_per_trace(verdicts, Resampling(10))) == 0
    quick = modes_per_trace_interval(verdicts, Resampling(10))
    draws = random.integers(0, len(verdicts), size=(400, len(verdicts)))
    slow = np.quantile([modes_per_trace(verdicts[rows]) for rows in draws], [0.025, 0.975])
    assert quick == pytest.approx(tuple(slow), abs=0.03)


@given(st.lists(st.sampled_from([PRESENT, ABSENT, UNSURE, OPEN]), min_size=6, max_size=6))
def test_trace_has_a_shape_only_if_open_verdicts_cannot_change_it(row: list[int]) -> None:
    rules = Rules()
    settled = np.full((1, 6), ABSENT, dtype=np.uint8)

    def shape(cells: list[int]) -> str:
        both = np.concatenate([np.array([cells], dtype=np.uint8), settled])
        return SHAPES[int(trace_shapes(both, rules)[0])]

    least = [cell if cell == PRESENT else ABSENT for cell in row]
    most = [ABSENT if cell == ABSENT else PRESENT for cell in row]
    expected = shape(least) if shape(least) == shape(most) else "open"
    assert shape(row) == expected


def test_impossible_rules_are_refused() -> None:
    for wrong in ({"alpha": 0.0}, {"margin": 2.0}, {"least": 0}, {"isolated": 4}):
        with pytest.raises(ValueError, match=r"must be"):
            Rules(**wrong)
