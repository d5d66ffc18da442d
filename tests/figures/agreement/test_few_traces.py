"""Intervals of few traces: their ends, and reasons to withhold them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mast_tui.figures.agreement.counting import (
    ABSENT,
    PRESENT,
    VerdictArray,
    sums_of,
    table_coefficients,
    table_values,
)
from mast_tui.figures.agreement.sets import set_agreement
from mast_tui.figures.bootstrap import NO_RESAMPLING, Resampling
from mast_tui.figures.intervals import Z, student_t, wilson, wilson_of
from mast_tui.figures.jackknife import Scale, Support, jackknife_interval, why_no_interval
from mast_tui.figures.prevalence import corrected_prevalence
from mast_tui.figures.record import FigureTable
from tests.figures.agreement.build_judge import MODES, counted, judge_document
from tests.figures.agreement.tables import agreement_document, rotating_lines
from tests.figures.agreement.test_study import study

CHANCES = np.linspace(0.05, 0.5, 14)
TPR = (0.85, 0.80)
TNR = (0.95, 0.93)

ONE = Resampling(1)
FIFTY = Resampling(50)


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 9, 39, 298, 1_000, 99_999])
def test_students_t_is_that_of_scipy(degrees: int) -> None:
    assert student_t(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-9)


@pytest.mark.parametrize(("traces", "quantile"), [(0, stats.t.ppf(0.975, 7)), (8, Z)])
def test_ends_of_an_interval_have_the_score_of_the_quantile(traces: int, quantile: float) -> None:
    """With Student's t for traces of several units, whose variance has 7 in it and not 8."""
    answers = np.array([1.0, 0, 1, 1, 0, 1, 1, 1])
    share = answers.mean()
    interval = jackknife_interval(share, (answers.sum() - answers) / 7, Scale(0.0, traces))
    assert interval is not None
    for end in interval:
        score = abs(share - end) / np.sqrt(end * (1 - end) / (traces or 7))
        assert score == pytest.approx(quantile)


counts = st.integers(0, 12)


@given(counts, counts, counts, st.integers(5, 12))
def test_agreement_of_two_on_one_mode_has_the_interval_of_a_share(
    both: int, first: int, second: int, neither: int
) -> None:
    """Also where all agree or none do; positive agreement is 2J / (1 + J) of such a share J."""
    lines = ("1" * both + "1" * first + "0" * second, "1" * both + "0" * first + "1" * second)
    modes = document_of_two(*(line + "0" * neither for line in lines))["modes"]["1.3"]
    any_present = both + first + second
    n = any_present + neither
    present = both + (first + second) / 2
    if n >= 16:
        raw = modes["raw_agreement"].get("ci")
        assert raw == pytest.approx(wilson(both + neither, n))
    if n >= 16 and min(present, n - present) >= 5:
        positive = modes["positive_agreement"].get("ci")
        ends = [2 * end / (1 + end) for end in wilson(both, any_present) or ()]
        # Between the ends the jackknife of few traces only comes near: over all these counts within
        # 0.0562 where a single trace has the answer of both, and within 0.0343 elsewhere.
        tolerance = 1e-9
        if both and first + second:
            tolerance = 0.057 if both == 1 else 0.035
        assert positive == pytest.approx(ends, abs=tolerance)
        kappa = modes["cohen_kappa"]
        low, high = kappa.get("ci") or (-1, 1)
        assert low <= (kappa["value"] or 0) <= high


@pytest.mark.parametrize(
    ("lines", "name", "least"),
    [
        (("1100000000", "0011000000"), "cohen_kappa", -0.25),
        (("1100000000", "0011000000"), "fleiss_kappa", -0.25),
        (("1100000000", "0011000000"), "krippendorff_alpha", -0.1875),
        (("1111111110", "0111111101"), "cohen_kappa", -2 / 13),
        (("1111100000", "0000011111"), "gwet_ac1", -1),
        (("1000000000", "0110000000", "0001000000"), "fleiss_kappa", -2 / 13),
    ],
)
def test_scale_begins_where_no_one_agrees(lines: tuple[str, ...], name: str, least: float) -> None:
    """On anything for AC1, else on the rarer answer."""
    verdicts = np.array([[[int(c)] for c in line] for line in lines], dtype=np.int8)
    table = sums_of(verdicts, range(10), NO_RESAMPLING).everything()
    assert table.scale(name).lowest == pytest.approx(least)
    if least == -0.25 or name in ("krippendorff_alpha", "gwet_ac1"):
        assert table_values(table)[name][0] == pytest.approx(least)


def test_scale_of_three_raters_with_a_rare_answer_is_capped() -> None:
    random = np.random.default_rng(1)
    verdicts = (random.random((3, 200, 1)) < 0.06).astype(np.int8)
    verdicts[:, :6] = 1
    table = sums_of(verdicts, range(200), ONE).everything()
    scale = table.scale("positive_agreement")
    assert scale.caps_cases
    assert scale.traces == int(verdicts.any(axis=0).sum())
    assert not sums_of(verdicts[:2], range(200), ONE).everything().scale("cohen_kappa").caps_cases
    left_out = np.array([0.5, 0.51, 0.49, 0.5] * 2)
    assert jackknife_interval(0.5, left_out, Scale(0.0, 8, caps_cases=True)) == wilson_of(0.5, 8)


@pytest.mark.parametrize(
    ("estimate", "left_out", "scale"),
    [
        (1.0, [1.0, 1.0, 1.0, 1.0], Scale(-1.0)),
        (1.0, [0.9, 1.0, 1.0, 1.0], Scale(-1.0)),
        (0.5, [0.5, 0.5, 0.5, 0.5], Scale(-1.0, 4)),
        (0.5, [0.4, np.nan, np.nan, np.nan], Scale(-1.0, 4)),
        (0.5, [0.4, 0.6], Scale(-1.0, 2)),
    ],
)
def test_estimate_without_spread_has_no_interval(
    estimate: float, left_out: list[float], scale: Scale
) -> None:
    assert jackknife_interval(estimate, np.array(left_out), scale) is None


def drawn(random: np.random.Generator, traces: int) -> VerdictArray:
    """Draw verdicts of two people with known error rates."""
    truth = random.random((traces, len(CHANCES))) < CHANCES
    answers = [
        np.where(truth, random.random(truth.shape) < tpr, random.random(truth.shape) >= tnr)
        for tpr, tnr in zip(TPR, TNR, strict=True)
    ]
    return np.where(np.array(answers), PRESENT, ABSENT).astype(np.int8)


def document_of_two(ann: str, bob: str) -> dict[str, Any]:
    slug = MODES[0].slug
    return agreement_document(study({("ann", slug): ann, ("bob", slug): bob}), rounds=50)


def test_mode_needs_sixteen_traces_and_five_of_either_answer() -> None:
    names = ("raw_agreement", "cohen_kappa", "gwet_ac1")
    few_traces = (document_of_two("10", "11"), document_of_two("10" * 7, "11" + "10" * 6))
    for few, name in product(few_traces, names):
        figure = few["modes"]["1.3"][name]
        assert (figure["ci_withheld"], figure["ci_needs"]) == ("few_traces", 16)
    rare: Any = document_of_two("11" + "0" * 38, "101" + "0" * 37)["modes"]["1.3"]
    for name in ("positive_agreement", "cohen_kappa", "fleiss_kappa", "krippendorff_alpha"):
        assert (rare[name]["ci_withheld"], rare[name]["ci_needs"]) == ("rare_answer", 5)
    for name in ("raw_agreement", "negative_agreement", "gwet_ac1"):
        assert rare[name]["ci"] is not None
    assert why_no_interval("cohen_kappa", Support(40, 40, 5.0, 35.0, 8)) is None
    assert why_no_interval("negative_agreement", Support(40, 40, 36.0, 4.0, 8)) == (
        "rare_answer", 5,
    )  # fmt: skip


def test_pair_that_shares_one_trace_has_no_kappa() -> None:
    lines = {"ann": "1100", "bob": "1010", "cat": "...1"}
    three = agreement_document(study({(n, MODES[0].slug): s for n, s in lines.items()}), rounds=0)
    two = document_of_two(lines["ann"], lines["bob"])["modes"]["1.3"]["cohen_kappa"]
    mode = three["modes"]["1.3"]
    assert mode["cohen_kappa"]["value"] == two["value"]
    assert mode["cohen_kappa"]["n"] == 4
    assert mode["pairs"]["ann|cat"]["cohen_kappa"]["undefined"] == "single_trace"


def test_mode_that_one_trace_shows_has_no_interval() -> None:
    """The figures would spread over nothing but the missing verdicts: AC1 0.963 [0.959, 0.967]."""
    mode = document_of_two("1" + "0" * 29, "0" * 28 + "..")["modes"]["1.3"]
    assert mode["gwet_ac1"]["value"] == pytest.approx(0.963, abs=0.001)
    for name in ("gwet_ac1", "negative_agreement"):
        assert (mode[name]["ci"], mode[name]["ci_withheld"]) == (None, "single_trace")
        assert mode[name]["ci_needs"] == 2
    assert mode["raw_agreement"]["ci"] is not None
    twice = document_of_two("11" + "0" * 28, "0" * 28 + "..")["modes"]["1.3"]
    assert twice["gwet_ac1"]["ci"] is not None
    mode = judge_document(counted(0, 0, 1, 30), rounds=50)["modes"]["1.3"]
    assert mode["gwet_ac1"]["ci_withheld"] == "single_trace"
    assert mode["true_negative_rate"]["ci"] is not None


def test_copies_of_a_block_count_once_for_an_interval() -> None:
    """Leaving out one copy shows no spread, so the copies go together."""
    random = np.random.default_rng(0)
    verdicts = drawn(random, 30)
    copied = np.concatenate([verdicts[:, :1]] * 6 + [verdicts[:, 1:]], axis=1)
    blocks = np.concatenate([np.zeros(6, int), np.arange(6, 35)])
    together = sums_of(copied, range(35), ONE, blocks=blocks).everything()
    assert (together.traces, together.units, together.n) == (30, 30 * 14, 35 * 14)
    # The sums without each block are those of the study without all of its copies.
    without = sums_of(copied[:, 6:], range(29), NO_RESAMPLING).everything()
    assert (together.units_by_pattern[1] == without.units_by_pattern[0]).all()
    assert (together.pairs[1] == without.pairs[0]).all()
    few = sums_of(copied[:, :8], range(8), ONE, blocks=blocks[:8]).everything()
    assert table_coefficients(few)["gwet_ac1"].interval is not None
    two = table_coefficients(sums_of(copied[:, :7], range(7), ONE, blocks=blocks[:7]).everything())
    for name in ("gwet_ac1", "cohen_kappa"):
        assert (two[name].withheld, two[name].needs) == ("copied_blocks", 3)
    separate = sums_of(copied[:, :7], range(7), ONE).everything()
    assert table_coefficients(separate)["gwet_ac1"].interval is not None


def test_sets_of_few_traces_or_copies_have_no_interval() -> None:
    verdicts = drawn(np.random.default_rng(0), 5)
    copies = np.repeat(verdicts[:, :2], (3, 2), axis=1)
    figures = FigureTable(set_agreement(copies, FIFTY, blocks=np.array([0, 0, 0, 1, 1])))
    assert figures["krippendorff_alpha_masi"].withheld == "copied_blocks"
    few = FigureTable(set_agreement(verdicts[:, :2], FIFTY))["krippendorff_alpha_jaccard"]
    assert (few.withheld, few.needs) == ("few_traces", 3)
    enough = FigureTable(set_agreement(verdicts, FIFTY))
    assert enough["krippendorff_alpha_jaccard"].interval is not None


def test_mean_over_modes_needs_more_traces() -> None:
    macro = document_of_two("10" * 20, "11" + "10" * 19)["macro"]
    kappa = macro["cohen_kappa"]
    assert (kappa["ci_withheld"], kappa["ci_needs"]) == ("few_traces", 50)
    assert macro["raw_agreement"]["ci"] is not None


def test_corrected_prevalence_needs_thirty_labelled_traces() -> None:
    labelled = np.array([12.0, 0, 5, 12])
    unlabelled = np.array([20.0, 30])
    few = corrected_prevalence(labelled, unlabelled)
    assert (few.interval, few.withheld, few.needs) == (None, "few_traces", 30)
    assert corrected_prevalence(2 * labelled, unlabelled).withheld is None


def test_corrected_prevalence_has_the_interval_of_lang_and_reiczigel() -> None:
    """By hand: TPR (8 + 1) / 12, TNR (36 + 1) / 42, and the judge calls 30 of 100 present."""
    estimate = corrected_prevalence(np.array([8, 4, 2, 36]), np.array([30, 70]))
    assert estimate.value == pytest.approx((0.3 + 0.9 - 1) / (0.8 + 0.9 - 1))
    z = stats.norm.ppf(0.975)
    apparent = (30 + z * z / 2) / (100 + z * z)
    tpr = 9 / 12
    tnr = 37 / 42
    middle = (apparent + tnr - 1) / (tpr + tnr - 1)
    errors = tpr * (1 - tpr) / 12, tnr * (1 - tnr) / 42
    moved = middle + 2 * z * z * (middle * errors[0] - (1 - middle) * errors[1])
    variance = apparent * (1 - apparent) / (100 + z * z)
    variance += middle**2 * errors[0] + (1 - middle) ** 2 * errors[1]
    half = z * np.sqrt(variance) / (tpr + tnr - 1)
    assert estimate.interval == pytest.approx([max(0, moved - half), min(1, moved + half)])


def test_mean_kappa_of_pairs_that_share_few_traces_has_no_interval() -> None:
    verdicts = {(name, MODES[0].slug): line for name, line in rotating_lines().items()}
    rotating = agreement_document(study(verdicts), rounds=50)
    table = rotating["modes"]["1.3"]
    assert table["few_shared_by_pair"] == {"ann|bob": 20, "ann|cat": 20, "bob|cat": 20}
    for level in (table, rotating["pooled"], rotating["macro"]):
        assert level["cohen_kappa"]["value"] is not None
        assert level["cohen_kappa"]["ci"] is None
        assert level["cohen_kappa"]["ci_withheld"] == "few_shared_traces"
    assert table["krippendorff_alpha"]["ci"] is not None
    assert table["pairs"]["ann|bob"]["gwet_ac1"]["ci"] is not None
