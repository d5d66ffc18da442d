"""The report on a judge: counted and left-out units, undefined figures, and prevalence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from mast_tui.figures.agreement.drill_down import judged_source_traces
from mast_tui.figures.intervals import wilson
from mast_tui.figures.judge.confusion import compared_units
from mast_tui.figures.prevalence import corrected_prevalence, rogan_gladen
from tests.figures.agreement.build_judge import JUDGE, counted, judge_document, judge_with, votes
from tests.gold.build import ABSENT, MODE, OTHER, PRESENT

COUNTS = ("true_positives", "false_positives", "false_negatives", "true_negatives")


def test_figures_of_the_published_judge() -> None:
    report = judge_document(counted(6, 13, 33, 106), rounds=200)
    mode = report["modes"]["1.3"]
    assert [mode[name] for name in COUNTS] == [6, 13, 33, 106]
    assert mode["n"] == 158
    assert mode["true_positive_rate"] == {"value": 6 / 39, "ci": list(wilson(6, 39) or ())}
    assert mode["true_negative_rate"]["ci"] == list(wilson(106, 119) or ())
    assert mode["precision"]["ci"] == list(wilson(6, 19) or ())
    for name in ("f1", "cohen_kappa", "gwet_ac1"):
        low, high = mode[name]["ci"]
        assert low < mode[name]["value"] < high
    assert mode["mcnemar_p"] < 0.01
    assert mode["prevalence"] == {"judge": 19 / 158, "reference": 39 / 158}
    assert report["judge"] == JUDGE
    assert report["against"] == "gold"
    assert report["bootstrap"] == {"rounds": 200, "seed": 0, "level": 0.95, "unit": "trace"}


def test_mcnemar_is_adjusted_over_modes_as_in_statsmodels() -> None:
    judge = votes("1111110000") | votes("0001110000", OTHER)
    report = judge_document(judge_with(judge, votes("0" * 10) | votes("1" * 10, OTHER)), rounds=0)
    modes = report["modes"].values()
    expected = multipletests([mode["mcnemar_p"] for mode in modes], method="fdr_bh")[1]
    assert [mode["mcnemar_p_adjusted"] for mode in modes] == pytest.approx(list(expected))
    alone = judge_document(counted(6, 13, 33, 106), rounds=0)["modes"]
    assert alone["3.1"]["mcnemar_p_adjusted"] is None
    assert alone["1.3"]["mcnemar_p_adjusted"] == alone["1.3"]["mcnemar_p"]


def test_only_present_and_absent_of_both_are_compared() -> None:
    report = judge_document(judge_with(votes("110?·0"), votes("10?011")), rounds=0)
    mode = report["modes"]["1.3"]
    assert [mode[name] for name in COUNTS] == [1, 1, 1, 0]
    assert mode["left_out"]["unsure_reference"] == 1
    assert mode["left_out"]["unsure_judge"] == 1
    assert report["left_out"]["unsure_judge"] == 1


def test_verdicts_made_with_a_judge_on_screen_count_only_on_request() -> None:
    judge_input = judge_with(
        votes("1100"), votes("1010"), seen=frozenset({("t0", MODE), ("t1", MODE)})
    )
    without = judge_document(judge_input, rounds=0)
    assert without["modes"]["1.3"]["n"] == 2
    assert without["left_out"]["judge_seen"] == 2
    assert not without["judge_seen_counted"]
    with_them = judge_document(judge_input, rounds=0, with_seen=True)
    assert with_them["modes"]["1.3"]["n"] == 4
    assert with_them["left_out"]["judge_seen"] == 0
    assert with_them["judge_seen_counted"]
    # Examples of the prompt and open conflicts are left out, too.
    examples = frozenset({"t0", "t7"})
    report = judge_document(judge_with(votes("1100"), votes("1010"), examples=examples), rounds=0)
    assert report["modes"]["1.3"]["n"] == 3
    assert report["left_out"]["examples"] == 1
    unresolved = frozenset({("t1", MODE), ("t9", MODE)})
    report = judge_document(judge_with(votes("11"), votes("1"), unresolved=unresolved), rounds=0)
    assert report["left_out"]["unresolved"] == 1


def test_macro_is_of_modes_with_a_figure_and_pooled_of_all_units() -> None:
    judge = {**votes("1100"), **votes("0001", OTHER)}
    gold = {**votes("1010"), **votes("0000", OTHER)}
    report = judge_document(judge_with(judge, gold), rounds=300)
    first = report["modes"]["1.3"]
    second = report["modes"]["3.1"]
    assert second["true_positive_rate"] == {"value": None, "undefined": "no_variance"}
    assert report["macro"]["modes_defined"]["true_positive_rate"] == 1
    assert report["macro"]["modes_defined"]["raw_agreement"] == 2
    assert report["macro"]["raw_agreement"]["value"] == pytest.approx(
        (first["raw_agreement"]["value"] + second["raw_agreement"]["value"]) / 2
    )
    assert [report["pooled"][name] for name in COUNTS] == [1, 2, 1, 4]
    assert report["pooled"]["n"] == first["n"] + second["n"]


def test_mode_that_the_judge_does_not_look_at_has_no_figures() -> None:
    report = judge_document(judge_with(votes("10"), votes("11", OTHER)), rounds=50)
    for mode in report["modes"].values():
        assert mode["n"] == 0
        assert mode["mcnemar_p"] is None
        assert mode["cohen_kappa"] == {"value": None, "undefined": "no_overlap"}
    assert report["macro"]["cohen_kappa"]["undefined"] == "no_overlap"


LINES = st.text("10?·", min_size=0, max_size=8)


@settings(max_examples=40)
@given(LINES, LINES, LINES, LINES, LINES)
def test_any_verdicts_make_strict_json(a: str, b: str, c: str, d: str, alone: str) -> None:
    judge = {**votes(a), **votes(b, OTHER), **votes(alone, prefix="u")}
    gold = {**votes(c), **votes(d, OTHER)}
    unlabelled = frozenset(f"u{i}" for i in range(8))
    report = judge_document(judge_with(judge, gold, unlabelled=unlabelled), rounds=20)
    for mode in report["modes"].values():
        assert mode["n"] == sum(mode[name] for name in COUNTS)
        for name in ("f1", "cohen_kappa", "gwet_ac1", "precision"):
            assert ("undefined" in mode[name]) == (mode[name]["value"] is None)


def test_source_traces_have_errors_first() -> None:
    judge_input = judge_with(
        {**votes("011001"), **votes("1", OTHER)}, {**votes("010110"), **votes("1", OTHER)}
    )
    sources = judged_source_traces(judge_input, compared_units(judge_input), MODE)
    assert [trace.trace_id for trace in sources] == ["t3", "t4", "t2", "t5", "t1", "t0"]
    assert [trace.disagreement for trace in sources] == [1.0] * 4 + [0.0] * 2
    figures = judge_document(judge_input, rounds=0)["modes"]["1.3"]
    missed = [trace for trace in sources if [*trace.verdicts.values()] == [ABSENT, PRESENT]]
    assert figures["false_negatives"] == len(missed)
    assert figures["n"] == len(sources)


def test_correction_of_prevalence_is_clipped_and_refused_at_chance() -> None:
    corrected = rogan_gladen(np.array(0.60), np.array(0.90), np.array(0.85))
    assert float(corrected) == pytest.approx(0.60)
    apparent = np.array([0.01, 0.99, 0.5])
    rate = np.array([0.8, 0.8, 0.5])
    assert rogan_gladen(apparent, rate, rate) == pytest.approx([0, 1, np.nan], nan_ok=True)


def test_prevalence_of_unlabelled_traces_is_corrected() -> None:
    # 9 of 10 found, 17 of 20 cleared: the published rates.
    judge = {
        **votes("1" * 9 + "0" + "1" * 3 + "0" * 17),
        **votes("1" * 60 + "0" * 40 + "?", prefix="u"),
    }
    gold = votes("1" * 10 + "0" * 20)
    report = judge_document(
        judge_with(judge, gold, unlabelled=frozenset(f"u{i}" for i in range(101))), rounds=500
    )
    prevalence = report["prevalence"]["1.3"]
    assert report["traces"] == {"judged": 131, "compared": 30, "unlabelled": 101}
    counts = {"n_unlabelled": 100, "n_positives": 10, "n_negatives": 20, "n_unsure": 1}
    assert {name: prevalence[name] for name in counts} == counts
    assert prevalence["apparent"]["value"] == 0.6
    assert prevalence["corrected"]["value"] == pytest.approx(0.6)
    ends = prevalence["corrected"]["ci"]
    assert ends is not None
    # Uncertain rates of the judge make the interval wider than that of the share.
    apparent = prevalence["apparent"]["ci"]
    assert apparent is not None
    assert ends[0] < apparent[0] < 0.6 < apparent[1] < ends[1]


@pytest.mark.parametrize(
    ("labelled", "unlabelled", "reason"),
    [
        ((5, 1, 1, 5), (0, 0), "no_unlabelled"),
        ((0, 1, 0, 5), (3, 4), "no_positives"),
        ((5, 0, 1, 0), (3, 4), "no_negatives"),
        ((3, 3, 3, 3), (3, 4), "no_better_than_chance"),
        ((1, 9, 9, 1), (3, 4), "no_better_than_chance"),
    ],
)
def test_uncorrectable_prevalence_has_its_reason(
    labelled: tuple[int, ...], unlabelled: tuple[int, ...], reason: str
) -> None:
    estimate = corrected_prevalence(
        np.array(labelled, dtype=np.float64), np.array(unlabelled, dtype=np.float64)
    )
    assert (estimate.value, estimate.undefined) == (None, reason)


def test_judge_near_chance_gives_an_interval_from_0_to_1() -> None:
    judge = {**votes("1" * 9 + "0" * 8 + "1" * 8 + "0" * 8), **votes("10" * 30, prefix="u")}
    gold = votes("1" * 17 + "0" * 16)
    report = judge_document(
        judge_with(judge, gold, unlabelled=frozenset(f"u{i}" for i in range(60))), rounds=500
    )
    assert report["prevalence"]["1.3"]["corrected"]["ci"] == [0.0, 1.0]
