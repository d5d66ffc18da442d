"""The report as tidy rows: every figure once, with its reason where it is undefined."""

from __future__ import annotations

import pytest

from mast_tui.agreement.csv_table import COLUMNS, tidy_rows
from mast_tui.agreement.text_report import render_report
from tests.figures.agreement.build_reports import DEGENERATE, figures_in, whole


@pytest.mark.parametrize("name", DEGENERATE)
def test_an_undefined_figure_has_its_reason_in_text_and_rows(name: str) -> None:
    said, reasons = DEGENERATE[name]
    report = whole(said, (0, 0, 0, 0))
    kappas = [row for row in tidy_rows(report) if row["statistic"] == "cohen_kappa"]
    assert {row["undefined"] for row in kappas if row["scope"] == "mode"} == reasons
    assert {row["value"] for row in kappas} == {""}
    text = "\n".join(render_report(report, 80))
    assert all(f"— {reason.replace('_', ' ')}" in text for reason in reasons)
    assert "nan" not in text.lower()


def test_every_row_has_a_value_or_a_reason_and_a_whole_interval_or_none() -> None:
    report = whole({"ann": "1101001?", "bob": "110010·1"}, (6, 13, 33, 106))
    rows = list(tidy_rows(report))
    for row in rows:
        assert tuple(row) == COLUMNS
        assert (row["ci_low"] == "") is (row["ci_high"] == "")
        assert row["ci_withheld"] == "" or (row["ci_low"] == "" and row["value"])
        assert (row["value"] == "") is not (row["undefined"] == ""), row
        for key in ("value", "ci_low", "ci_high", "n"):
            assert row[key] == "" or float(row[key]) == float(row[key])


def test_values_are_those_of_the_report() -> None:
    report = whole({"ann": "11010010" * 3, "bob": "11001011" * 3}, (20, 5, 10, 15))
    rows = {(r["scope"], r["mode"], r["statistic"]): r for r in tidy_rows(report)}
    kappa = report["modes"]["1.1"]["cohen_kappa"]
    row = rows["mode", "1.1", "cohen_kappa"]
    assert float(row["value"]) == kappa["value"]
    assert [float(row["ci_low"]), float(row["ci_high"])] == kappa.get("ci")
    assert (row["n"], row["annotators"]) == ("24", "ann|bob")
    assert rows["judge", "1.3", "true_positives"]["value"] == "20"
    assert rows["judge", "1.3", "true_positive_rate"]["annotators"].endswith("|gold")


def test_an_interval_that_would_not_hold_has_its_reason() -> None:
    rows = tidy_rows(whole({"ann": "11010010", "bob": "11001011"}, (20, 5, 10, 15)))
    kappa = next(r for r in rows if (r["scope"], r["statistic"]) == ("mode", "cohen_kappa"))
    assert (kappa["ci_low"], kappa["ci_withheld"]) == ("", "few_traces")


def test_no_figure_of_the_report_is_passed_over() -> None:
    report = whole({"ann": "11010010", "bob": "11001011"}, (20, 5, 10, 15))
    found = {row["value"] for row in tidy_rows(report)}
    told = {repr(figure["value"]) for figure in figures_in(report) if figure["value"] is not None}
    assert told <= found


def test_the_same_row_never_stands_twice() -> None:
    report = whole({"ann": "110", "bob": "111", "cat": "010"}, (2, 1, 1, 2))
    rows = [
        (row["scope"], row["mode"], row["name"], row["statistic"], row["annotators"])
        for row in tidy_rows(report)
    ]
    assert len(set(rows)) == len(rows)


def test_a_share_of_present_has_the_n_of_its_annotator() -> None:
    report = whole({"ann": "1101", "bob": "10··", "cat": "··11"}, (1, 1, 1, 1))
    rows = [row for row in tidy_rows(report) if row["statistic"] == "prevalence"]
    assert {(row["annotators"], row["n"]) for row in rows if row["scope"] == "mode"} == {
        ("ann", "4"),
        ("bob", "2"),
        ("cat", "2"),
    }
    assert {row["n"] for row in rows if row["scope"] == "pooled"} == {"8", "4"}
