"""Figures of reports with all parts."""

from __future__ import annotations

from dataclasses import replace

from mast_tui.figures.agreement.report import Agreement, agreement_figures
from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.judge.report import judge_report
from mast_tui.figures.spans.input import LabelRange, SharedTrace, SpanInput, TraceMarks
from mast_tui.figures.spans.report import span_figures
from tests.figures.agreement.build_judge import assisted, judge_with, votes
from tests.figures.agreement.build_reports import MODES, study_of
from tests.figures.agreement.tables import retest_table
from tests.gold.build import ABSENT, MODE, PRESENT

SAID = {"ann": "11010010?", "bob": "110010110", "cat": "1·0·11010"}


def agreement() -> Agreement:
    """Return figures of three annotators with rounds, retests and places, and of a judge."""
    study = study_of(SAID)
    again = {("t0", "m0"): ABSENT, ("t1", "m1"): PRESENT}
    first = {("t0", "m0"): PRESENT, ("t1", "m1"): PRESENT}
    study = replace(
        study,
        rounds={"pilot": frozenset({"t0", "t1", "t2"}), "main": frozenset({"t3", "t4"})},
        retests={"ann": retest_table(MODES, ("t0", "t1"), first, again)},
        unfinished={"bob": 2},
        not_in_study={"dan": 3},
    )
    resampling = Resampling(20)
    report = agreement_figures(study, resampling)
    verdicts = votes("110101001")
    passes = tuple(
        assisted("ann", f"t{i}", i > 3, {MODE: PRESENT if i % 2 else ABSENT}) for i in range(8)
    )
    judged = judge_with(verdicts, votes("100101011"), passes=passes, unlabelled=frozenset({"t8"}))
    return replace(
        report, spans=span_figures(_places(), resampling), judge=judge_report(judged, resampling)
    )


def _places() -> SpanInput:
    """Return the places of two annotators in three equal traces; a third has finished none."""
    ann = TraceMarks({"m0": (LabelRange(1, 2),), "m1": (LabelRange(4, 4),)}, None, frozenset())
    bob = TraceMarks({"m0": (LabelRange(2, 3),)}, None, frozenset(), unplaced=frozenset({"m1"}))
    traces = tuple(SharedTrace(f"t{number}", 10, {"ann": ann, "bob": bob}) for number in range(3))
    finished = {"ann": 3, "bob": 3, "cat": 0}
    return SpanInput("mast@3", MODES, ("ann", "bob", "cat"), "1", traces, finished)
