"""The agreement report as rows and in words."""

from __future__ import annotations

from mast_tui.agreement.study import Report
from mast_tui.ui.agreement_rows import NO_FIGURE, RowKind, columns_of, explained, rows_of
from tests.agreement.test_study import of_one_mode


def cells(report: Report, code: str) -> dict[str, str]:
    return dict(next(row for row in rows_of(report) if row.code == code).cells)


def words(report: Report, code: str) -> str:
    return explained(report, next(row for row in rows_of(report) if row.code == code))


def test_every_mode_has_a_row_and_totals_come_last() -> None:
    rows = rows_of(of_one_mode(ann="10", bob="11"))
    assert [row.kind for row in rows] == [
        RowKind.MODE,
        RowKind.MODE,
        RowKind.MACRO,
        RowKind.POOLED,
    ]
    assert [row.slug for row in rows if row.kind is not RowKind.MODE] == [None, None]


def test_what_is_undefined_is_a_dash_with_its_reason_and_never_a_number() -> None:
    report = of_one_mode(ann="000", bob="000")
    shown = cells(report, "1.3")
    assert {key for key, text in shown.items() if text.strip() == NO_FIGURE} == {
        "positive_agreement",
        "cohen_kappa",
        "fleiss_kappa",
        "krippendorff_alpha",
        "gwet_ac1",
    }
    assert shown["raw_agreement"] == "1.00"
    assert "all verdicts are the same" in words(report, "1.3")
    assert "nobody said present" in words(report, "1.3")


def test_a_mode_that_only_one_has_judged_says_so() -> None:
    report = of_one_mode(ann="010", bob="...")
    assert "only one person" in words(report, "1.3")


def test_a_low_kappa_at_extreme_prevalence_is_marked_and_explained() -> None:
    low = of_one_mode(ann="1" + "0" * 29, bob="01" + "0" * 28)
    assert cells(low, "1.3")["cohen_kappa"].endswith("*")
    assert "nearly all verdicts are the same" in words(low, "1.3")
    fair = of_one_mode(ann="1" * 15 + "0" * 15, bob="1" * 15 + "0" * 15)
    assert "*" not in cells(fair, "1.3")["cohen_kappa"]
    assert "nearly all" not in words(fair, "1.3")


def test_prevalence_is_one_share_each_for_two_and_a_range_for_more() -> None:
    assert cells(of_one_mode(ann="10", bob="11"), "1.3")["prevalence"] == "0.50/1.00"
    three = of_one_mode(ann="1000", bob="1100", cat="1110")
    assert cells(three, "1.3")["prevalence"] == "0.25–0.75"
    assert "ann and cat: n 4" in words(three, "1.3")


def test_fleiss_kappa_is_a_column_for_three_only() -> None:
    two, three = of_one_mode(ann="10", bob="11"), of_one_mode(ann="10", bob="11", cat="10")
    assert "fleiss_kappa" not in dict(columns_of(two))
    assert "fleiss_kappa" in dict(columns_of(three))


def test_unsure_verdicts_are_told() -> None:
    assert "ann 1" in words(of_one_mode(ann="?10", bob="010"), "1.3")
