"""The consistency of judges, calculated by hand and for random readings."""

from __future__ import annotations

import pytest

from mast_tui.exam.consistency import TraceComparison, judge_pair_figures, samples_figures
from mast_tui.figures.bootstrap import NO_RESAMPLING, Resampling
from mast_tui.figures.jackknife import share_of_traces
from mast_tui.figures.record import FigureScope, FigureTable
from mast_tui.judges.comparing import ModeCounts

SCOPE = FigureScope("judge")


def test_findings_repeated_by_other_readings() -> None:
    # Of three readings two see the first finding, one the second and all the third: of the six
    # times that something is found, two other readings each, eight of twelve find it too.
    shares = [[2 / 3, 1 / 3], [1.0]]
    figures = FigureTable(tuple(samples_figures(SCOPE, shares, 3, NO_RESAMPLING)))
    assert figures.value("again") == pytest.approx(8 / 12)
    assert figures.value("always") == pytest.approx(1 / 3)
    assert (figures.count("sampled_findings"), figures.count("judged_traces")) == (3, 2)


def test_readings_without_findings_have_no_figure() -> None:
    figures = FigureTable(tuple(samples_figures(SCOPE, [[], []], 5, NO_RESAMPLING)))
    assert figures["again"].value is None


def test_figures_of_two_judges() -> None:
    traces = [
        TraceComparison(ModeCounts("", both=1, first=1, neither=12, meet=1), True),
        TraceComparison(ModeCounts("", both=1, second=1, neither=12, apart=1), False),
    ]
    _, *shares = judge_pair_figures(SCOPE, traces, NO_RESAMPLING)
    statistics = ["same_verdicts", "same_modes", "same_places", "same_step"]
    assert [share.statistic for share in shares] == statistics
    assert [share.value for share in shares] == pytest.approx([26 / 28, 4 / 6, 0.5, 0.5])
    all_absent = [TraceComparison(ModeCounts("", neither=14))] * 3
    _, *shares = judge_pair_figures(SCOPE, all_absent, NO_RESAMPLING)
    assert [share.value for share in shares] == [1, None, None, None]


def test_an_interval_needs_three_traces() -> None:
    two = share_of_traces([(1, 2), (2, 2), (0, 0)], Resampling(200))
    assert (two.value, two.interval) == (0.75, None)
    ends = share_of_traces([(1, 2), (2, 2), (1, 3), (2, 5)], Resampling(200)).interval
    assert ends is not None
    assert ends[0] < 6 / 12 < ends[1]
