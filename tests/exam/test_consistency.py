"""The consistency of judges, calculated by hand and for random readings."""

from __future__ import annotations

import pytest

from mast_tui.exam.consistency import TraceComparison, judge_pair_figures, samples_figures
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.jackknife import share_of_traces


def test_findings_repeated_by_other_readings() -> None:
    # Of three readings two see the first finding, one the second and all the third: of the six
    # times that something is found, two other readings each, eight of twelve find it too.
    figures = samples_figures([[2 / 3, 1 / 3], [1.0]], 3, rounds=0, seed=0)
    assert figures["again"]["value"] == pytest.approx(8 / 12)
    assert figures["always"]["value"] == pytest.approx(1 / 3)
    assert (figures["found"], figures["traces"]) == (3, 2)


def test_readings_without_findings_have_no_figure() -> None:
    figures = samples_figures([[], []], 5, rounds=0, seed=0)
    assert figures["again"]["value"] is None
    with pytest.raises(ValueError, match="two readings or more"):
        samples_figures([[1.0]], 1, rounds=0, seed=0)


def test_figures_of_two_judges() -> None:
    traces = [TraceComparison(1, 1, 0, 12, 1, 0, True), TraceComparison(1, 0, 1, 12, 0, 1, False)]
    figures = judge_pair_figures(traces, rounds=0, seed=0)
    assert figures["verdicts"]["value"] == pytest.approx(26 / 28)
    assert figures["modes"]["value"] == pytest.approx(4 / 6)
    assert figures["places"]["value"] == 0.5
    assert figures["step"]["value"] == 0.5
    nothing = judge_pair_figures([TraceComparison(0, 0, 0, 14, 0, 0)] * 3, rounds=0, seed=0)
    assert nothing["verdicts"]["value"] == 1
    assert nothing["modes"]["value"] is None
    assert nothing["step"]["value"] is None


def test_an_interval_needs_three_traces() -> None:
    two = share_of_traces([(1, 2), (2, 2), (0, 0)], Resampling(200))
    assert (two["value"], two["ci"]) == (0.75, None)
    ends = share_of_traces([(1, 2), (2, 2), (1, 3), (2, 5)], Resampling(200))["ci"]
    assert ends is not None
    assert ends[0] < 6 / 12 < ends[1]
