"""The agreement report as rows and in words."""

from __future__ import annotations

from mast_tui.figures.agreement.report import Report
from mast_tui.ui.agreement_cells import NO_FIGURE, PageRow
from mast_tui.ui.agreement_pairs import cell_words, matrix_rows
from mast_tui.ui.agreement_rows import columns_of, mode_rows
from mast_tui.ui.agreement_words import blocks_in_short
from tests.figures.agreement.test_study import of_one_mode


def row(report: Report, code: str) -> PageRow:
    return next(one for one in mode_rows(report) if one.shown.cells.get("code") == code)


def cells(report: Report, code: str) -> dict[str, str]:
    return dict(row(report, code).shown.cells)


def words(report: Report, code: str) -> str:
    return row(report, code).words


def test_every_mode_has_a_row_and_totals_come_last_with_all_modes_behind_them() -> None:
    rows = mode_rows(of_one_mode(ann="10", bob="11"))
    assert [one.shown.id for one in rows[2:]] == ["macro", "pooled", "sets"]
    assert [len(one.modes) for one in rows] == [1, 1, 2, 2, 2]


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
    assert not shown["ci"]
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


def test_the_interval_of_kappa_and_what_would_halve_it_are_told() -> None:
    report = of_one_mode(ann="1101100100" * 3, bob="1101000110" * 3)
    kappa = report["modes"]["1.3"]["cohen_kappa"]
    ends = kappa.get("ci")
    assert ends is not None
    interval = f"[{ends[0]:.2f}, {ends[1]:.2f}]"
    assert cells(report, "1.3")["ci"] == interval
    assert f"Cohen's κ {kappa['value']:.2f} {interval}" in words(report, "1.3")
    assert "About 90 more traces" in words(report, "1.3")


def test_before_the_intervals_are_counted_there_are_dots_and_no_plans() -> None:
    rows = mode_rows(of_one_mode(ann="110110", bob="110100"), pending=True)
    assert "being counted" in rows[0].words
    assert "halve" not in rows[0].words


def test_prevalence_is_one_share_each_for_two_and_a_range_for_more() -> None:
    assert cells(of_one_mode(ann="10", bob="11"), "1.3")["prevalence"] == "0.50/1.00"
    three = of_one_mode(ann="1000", bob="1100", cat="1110")
    assert cells(three, "1.3")["prevalence"] == "0.25–0.75"
    assert "ann and cat: n 4" in words(three, "1.3")


def test_fleiss_kappa_is_a_column_for_three_only() -> None:
    two, three = of_one_mode(ann="10", bob="11"), of_one_mode(ann="10", bob="11", cat="10")
    assert "fleiss_kappa" not in {column.name for column in columns_of(two)}
    assert "fleiss_kappa" in {column.name for column in columns_of(three)}


def test_unsure_verdicts_and_what_was_left_out_are_told() -> None:
    report = of_one_mode(ann="?10", bob="010")
    assert "ann 1" in words(report, "1.3")
    pooled = next(one for one in mode_rows(report) if one.shown.id == "pooled")
    assert "Left open in finished traces (modes): ann 3, bob 3." in pooled.words


def test_copied_blocks_are_named_where_chance_would_not_bring_them() -> None:
    report = of_one_mode(ann="10", bob="11")
    assert blocks_in_short(report) == ""
    report["identical_blocks"] = [{"traces": ["t0", "t1"], "annotators": ["ann", "bob"]}]
    assert "2 traces share 1 block" in blocks_in_short(report)
    pooled = next(one for one in mode_rows(report) if one.shown.id == "pooled")
    assert pooled.shown.glyph == "!"
    assert "copied: t0, t1" in pooled.words


def test_the_matrix_has_the_kappa_of_every_two_and_nothing_for_one_alone() -> None:
    report = of_one_mode(ann="1100", bob="1101", cat="0011")
    rows = matrix_rows(report)
    kappa = report["pooled"]["pairs"]["ann|cat"]["cohen_kappa"]["value"]
    assert rows[2].cells["with 0"] == rows[0].cells["with 2"] == f"{kappa:.2f}"
    assert rows[1].cells["with 1"] == "·"
    assert "4 trace × mode pairs" in cell_words(report, "cat", "ann", pending=False)
    assert "with themselves" in cell_words(report, "cat", "cat", pending=False)
