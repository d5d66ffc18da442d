"""Shares with unresolved disagreements, beside values computed by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.intervals import (
    UnresolvedShare,
    decisions_needed,
    newcombe,
    rate,
    share_of_all,
    wilson,
)
from mast_tui.figures.judge.report import JudgeReport, judge_json, judge_report
from mast_tui.figures.prevalence import prediction_powered
from mast_tui.figures.record import Figure, FigureScope, rate_json
from mast_tui.figures.signatures.model import ABSENT, PRESENT, UNRESOLVED
from mast_tui.figures.signatures.modes import TraceCounts, counts_by_mode, differences
from mast_tui.figures.signatures.report import SignatureReport, signature_report
from mast_tui.gold.model import GoldMixJson, gold_words
from mast_tui.reports.judge import judge_section
from mast_tui.reports.model import Table
from mast_tui.reports.render.html import render_html
from mast_tui.reports.render.latex import render_latex
from mast_tui.reports.render.markdown import render_markdown
from mast_tui.reports.render.text import render_text
from mast_tui.reports.signature_document import signature_document
from mast_tui.reports.signatures import signatures_report
from tests.figures.agreement.build_judge import judge_with, votes
from tests.figures.signatures.build_input import input_of

MIX: GoldMixJson = {
    "sources": {"unanimous": 60, "majority": 0, "adjudicated": 0, "single": 0, "unresolved": 20},
    "traces": {"unanimous": 40, "majority": 0, "adjudicated": 0, "single": 0, "unresolved": 20},
    "annotators": ["ann", "bob"],
    "settled_only": False,
    "not_in_study": {},
    "merged": 0,
}

MODE = FigureScope("mode")


def compared(first: TraceCounts, second: TraceCounts) -> tuple[Figure, Figure]:
    """Return the difference and the ratio of the only mode."""
    ((difference, ratio, *_),) = differences([first], [second], ("failed", "succeeded"), [MODE])
    return difference, ratio


@pytest.mark.parametrize(
    ("unresolved", "n", "needs"), [(0, 10, 0), (2, 98, 0), (3, 97, 1), (1, 30, 1), (270, 1330, 238)]
)
def test_up_to_two_percent_may_be_unresolved(unresolved: int, n: int, needs: int) -> None:
    assert decisions_needed(unresolved, n) == needs


def test_share_with_unresolved_verdicts_has_bounds() -> None:
    estimate = rate(MODE, "", 10, 40, unresolved=UnresolvedShare(10, (0.2, 0.4)))
    assert rate_json(estimate) == {
        "count": 10, "n": 40, "rate": 0.25, "ci": None, "unresolved": 10, "bounds": [0.2, 0.4],
        "ci_withheld": "unresolved", "ci_needs": 9,
    }  # fmt: skip
    few = rate(MODE, "", 20, 98, unresolved=UnresolvedShare(2, (0.2, 0.22)))
    assert few.interval == wilson(20, 98)
    assert few.unresolved == 2
    assert few.bounds is None


def test_bounds_are_weighted_like_the_share() -> None:
    verdicts = np.array([[PRESENT], [ABSENT], [UNRESOLVED]], dtype=np.uint8)
    (plain,) = counts_by_mode(verdicts)
    assert plain.rate(MODE).bounds == pytest.approx((1 / 3, 2 / 3))
    (heavy,) = counts_by_mode(verdicts, np.array([1.0, 1.0, 6.0]))
    assert heavy.rate(MODE).bounds == pytest.approx((1 / 8, 7 / 8))
    assert plain.more_labels is None


def test_difference_is_bounded_by_the_bounds_of_its_sides() -> None:
    first = replace(TraceCounts.unweighted(6, 16), unresolved=4, unresolved_weight=4.0)
    difference, ratio = compared(first, TraceCounts.unweighted(5, 20))
    # 6 to 10 of 20, less 5 of 20.
    assert difference.bounds == pytest.approx((0.05, 0.25))
    assert difference.value == pytest.approx(6 / 16 - 5 / 20)
    assert difference.interval is ratio.interval is None
    assert difference.withheld == ratio.withheld == "unresolved"


@pytest.mark.parametrize(("first", "second"), [((0, 2), (3, 3)), ((2, 4), (10, 30))])
def test_difference_of_fewer_than_five_traces_has_no_interval(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    first_counts, second_counts = (TraceCounts.unweighted(*counts) for counts in (first, second))
    difference, ratio = compared(first_counts, second_counts)
    assert difference.value is not None
    assert difference.interval is ratio.interval is None
    assert difference.withheld == "few_traces"
    enough, _ = compared(TraceCounts.unweighted(2, 5), TraceCounts.unweighted(3, 9))
    assert enough.interval == newcombe(2, 5, 3, 9)


def test_share_of_a_finite_number_of_traces() -> None:
    # 10 of 50 of 100 have the variance of 50 * 99 / 50 = 99 cases with replacement.
    expected = proportion_confint(0.2 * 99, 99, method="wilson")
    assert share_of_all(10, 50, 100) == pytest.approx(expected)
    assert share_of_all(3, 11, 12) == pytest.approx((3 / 12, 4 / 12))
    estimate = prediction_powered(np.array([40.0, 10, 10, 40]), np.array([50.0, 50]))
    assert estimate.share_of_these is not None
    assert estimate.share_of_these.interval == share_of_all(50, 100, 200)
    few = prediction_powered(np.array([4.0, 1, 1, 4]), np.array([50.0, 50]))
    assert few.share_of_these == Figure(value=0.5, reason="few_traces", needs=20)
    # Needed labels may exceed the traces left.
    estimate = prediction_powered(np.array([44.0, 6, 6, 54]), np.array([18.0, 22]))
    assert estimate.more_labels is not None
    assert estimate.more_labels > 40


@pytest.fixture(scope="module")
def judged() -> JudgeReport:
    """A judge on 40 traces on which people agree, 10 on which they differ, and 50 unlabelled."""
    letters = "1" * 10 + "0" * 30 + "1" * 6 + "0" * 4
    judge = votes(letters) | votes("1" * 15 + "0" * 35, prefix="u")
    reference = votes("1" * 8 + "0" * 30 + "1" * 2)
    differ = frozenset(votes("·" * 40 + "1" * 10))
    alone = frozenset(f"u{n}" for n in range(50))
    judge_input = judge_with(judge, reference, unresolved=differ, unlabelled=alone)
    return judge_report(judge_input, Resampling(20))


def test_prevalence_with_a_judge_is_bounded(judged: JudgeReport) -> None:
    prevalence = judge_json(judged)["prevalence"]["1.3"]
    overall = prevalence["overall"]
    assert (overall["n_labelled"], overall["unresolved"], overall["n"]) == (40, 10, 90)
    # 10 of 40 by people, 10 to 20 of 50 with those that they differ on.
    assert overall["people"]["value"] == pytest.approx(0.25)
    for figure in (overall["people"], overall["these"]):
        assert figure["bounds"] == pytest.approx([0.2, 0.4])
    # TP 8, FP 2, FN 2, TN 28 where people agree; of the other ten the judge calls 6 present.
    ends = [(8, 8, 2, 32), (14, 2, 6, 28)]
    further = np.array([15.0, 35])
    assert overall["powered"]["bounds"] == pytest.approx(
        [prediction_powered(np.array(table, float), further).powered.value for table in ends]
    )
    for figure in (overall["people"], overall["powered"], prevalence["corrected"]):
        assert (figure["ci"], figure["ci_withheld"], figure["ci_needs"]) == (None, "unresolved", 9)
    low, high = prevalence["corrected"]["bounds"]
    assert 0 <= low <= prevalence["corrected"]["value"] <= high <= 1
    assert overall["more_labels"] is None
    assert judged.gold is not None
    assert judged.gold["sources"]["unresolved"] == 10


def test_table_shows_its_traces_and_bounds(judged: JudgeReport) -> None:
    section = judge_section(judged)
    (table,) = (table for table in section.tables if table.id == "judge_overall")
    assert "in 90 of 100 traces" in table.title
    row = table.rows[0]
    people = row.cells["people"]
    assert isinstance(people, Figure)
    assert people.bounds == pytest.approx((0.2, 0.4))
    assert row.cells["unresolved"] == 10
    assert "unresolved" in {note.reason for note in table.notes}


@pytest.fixture(scope="module")
def report() -> SignatureReport:
    rows = [*["gpt - F 10"] * 12, *["gpt - F 00"] * 12, *["gpt - F !0"] * 4]
    rows += [*["gpt - S 00"] * 20, "gpt - S 10"]
    return signature_report(replace(input_of(*rows, by="all", groups=("gpt",)), gold=MIX))


def test_report_bounds_every_figure_with_disagreements(report: SignatureReport) -> None:
    (group,) = signature_document(report)["groups"].values()
    mode = group["modes"]["1.3"]
    assert (mode["unresolved"], mode["open"]) == (4, 4)
    assert mode["failed"]["bounds"] == pytest.approx([12 / 28, 16 / 28])
    assert mode["all"]["bounds"] == pytest.approx([13 / 49, 17 / 49])
    assert mode["succeeded"]["ci"] is not None
    assert (mode["severity"], mode["severity_because"]) == ("unclear", "unresolved")
    mean = group["modes_per_failed_trace"]
    assert (mean["ci"], mean["unresolved"]) == (None, 4)
    assert mean["bounds"] == pytest.approx([12 / 28, 16 / 28])
    # 1 of 13 traces with it succeeded; the four that failed may show it too, or not.
    success = mode["success_given"]["present"]
    assert success["bounds"] == pytest.approx([1 / 17, 1 / 13])
    design = group["categories"]["1"]["failed"]["traces"]
    assert design["bounds"] == pytest.approx([12 / 28, 16 / 28])
    assert group["modes"]["3.1"]["failed"]["ci"] is not None


def test_every_format_shows_the_unresolved_verdicts(report: SignatureReport) -> None:
    document = signatures_report(report)
    written = [
        " ".join(" ".join(render_text(document, 120)).split()),
        render_markdown(document),
        render_latex(document),
        render_html(document),
        *(chart.note for chart in document.charts),
    ]
    for text in written:
        assert "20 unresolved" in text
    tables = {table.id: table for table in document.tables if isinstance(table, Table)}
    (modes,) = (table for key, table in tables.items() if key.startswith("modes"))
    assert "unresolved" in {note.reason for note in modes.notes}
    assert gold_words(MIX) == "gold (verdicts: 60 unanimous, 20 unresolved)"
