"""The consistency of judges, calculated by hand and for random readings."""

from __future__ import annotations

import pytest

from mast_tui.exam.consistency import TraceComparison, judge_pair_figures, samples_figures
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.jackknife import share_of_traces
from mast_tui.judges.comparing import ModeCounts


def test_findings_repeated_by_other_readings() -> None:
    # Of three readings two see the first finding, one the second and all the third: of the six
    # times that something is found, two other readings each, eight of twelve find it too.
    figures = samples_figures([[2 / 3, 1 / 3], [1.0]], 3, rounds=0, seed=0)
    assert figures["again"]["value"] == pytest.approx(8 / 12)
    assert figures["always"]["value"] == pytest.approx(1 / 3)
    assert (figures["found"], figures["traces"]) == (3, 2)


def test_readings_without_findings_have_no_figure() -> None:
    assert samples_figures([[], []], 5, rounds=0, seed=0)["again"]["value"] is None
    with pytest.raises(ValueError, match="two readings or more"):
        samples_figures([[1.0]], 1, rounds=0, seed=0)


def test_figures_of_two_judges() -> None:
    traces = [
        TraceComparison(ModeCounts("", both=1, first=1, neither=12, meet=1), True),
        TraceComparison(ModeCounts("", both=1, second=1, neither=12, apart=1), False),
    ]
    figures = judge_pair_figures(traces, rounds=0, seed=0)
    values = [figures[key]["value"] for key in ("verdicts", "modes", "places", "step")]
    assert values == pytest.approx([26 / 28, 4 / 6, 0.5, 0.5])
    all_absent = [TraceComparison(ModeCounts("", neither=14))] * 3
    nothing = judge_pair_figures(all_absent, rounds=0, seed=0)
    assert [nothing[key]["value"] for key in ("verdicts", "modes", "step")] == [1, None, None]


def test_an_interval_needs_three_traces() -> None:
    two = share_of_traces([(1, 2), (2, 2), (0, 0)], Resampling(200))
    assert (two["value"], two["ci"]) == (0.75, None)
    ends = share_of_traces([(1, 2), (2, 2), (1, 3), (2, 5)], Resampling(200))["ci"]
    assert ends is not None
    assert ends[0] < 6 / 12 < ends[1]
