"""Tidy rows: every figure of a document once, in the columns that scripts rely on."""

from __future__ import annotations

import csv
import io
import sys
from collections import Counter
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mast_tui.figures.agreement.report import agreement_json
from mast_tui.reports.render.csv import csv_columns, render_csv, tidy_rows
from tests.figures.signatures.small_report import PLAIN, small_document
from tests.reports import sample
from tests.reports.documents import agreement

GOLDEN = Path(__file__).with_name("agreement_rows.csv")
NUMBERS = ("value", "ci_low", "ci_high")


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def of(document: Any, **columns: str) -> list[dict[str, str]]:
    rows = tidy_rows(document)
    return [row for row in rows if all(row[name] == cell for name, cell in columns.items())]


def test_the_rows_of_agreement_are_these() -> None:
    signatures = read(render_csv(replace(sample.report(), document=agreement_json(agreement()))))
    golden = read(GOLDEN.read_text("utf-8"))
    assert len({row["scope"] for row in golden}) == 26
    assert list(golden[0]) == csv_columns({})
    for row, expected in zip(signatures, golden, strict=True):
        for name in NUMBERS:
            here, there = row.pop(name), expected.pop(name)
            assert (here == "") is (there == ""), (row, name)
            assert here == "" or float(here) == pytest.approx(float(there), abs=1e-9)
        assert row == expected


@pytest.mark.slow
def test_a_new_figure_has_its_row() -> None:
    document: Any = deepcopy(agreement_json(agreement()))
    document["modes"]["1.1"]["scott_pi"] = {"value": 0.25, "ci": [0.1, 0.4]}
    document["judge"]["pooled"]["youden_j"] = {"value": None, "undefined": "no_positives"}
    document["pooled"]["bias_index"] = 0.5
    (row,) = of(document, statistic="scott_pi")
    assert (row["scope"], row["mode"], row["name"]) == ("mode", "1.1", "Step repetition")
    assert (row["value"], row["ci_low"], row["ci_high"]) == ("0.25", "0.1", "0.4")
    assert (row["n"], row["annotators"]) == ("9", "ann|bob|cat")
    (row,) = of(document, statistic="youden_j")
    assert (row["scope"], row["undefined"]) == ("judge_pooled", "no_positives")
    assert [row["scope"] for row in of(document, statistic="bias_index")] == ["pooled"]
    signatures: Any = small_document()
    signatures["groups"][PLAIN]["entropy"] = {"value": 1.5, "ci": None}
    (row,) = of(signatures, statistic="entropy")
    assert (row["scope"], row["group"], row["value"]) == ("group", PLAIN, "1.5")


class TestSignatures:
    @pytest.mark.slow
    def test_rates_differences_and_p_values(self) -> None:
        report = small_document()
        mode = report["groups"][PLAIN]["modes"]["2.6"]
        assert csv_columns(report) == ["scope", "group", *csv_columns({})[1:]]
        (rate,) = of(report, scope="mode", group=PLAIN, mode="2.6", statistic="failed_rate")
        assert float(rate["value"]) == mode["failed"]["rate"]
        assert [float(rate["ci_low"]), float(rate["ci_high"])] == mode["failed"]["ci"]
        assert rate["n"] == str(mode["failed"]["n"])
        (count,) = of(report, scope="mode", group=PLAIN, mode="2.6", statistic="failed_count")
        assert count["value"] == str(mode["failed"]["count"])
        (points,) = of(report, scope="mode", group=PLAIN, mode="2.6", statistic="difference_pp")
        assert [float(points["ci_low"]), float(points["ci_high"])] == mode["difference_ci_pp"]
        (p,) = of(report, scope="mode", group=PLAIN, mode="2.6", statistic="p_adjusted")
        assert float(p["value"]) == mode["p_adjusted"]

    @pytest.mark.slow
    def test_what_stands_in_lists(self) -> None:
        report = small_document()
        group = report["groups"][PLAIN]
        pair = group["together"]["failed"][0]
        (phi,) = of(report, group=PLAIN, mode="|".join(pair["modes"]), statistic="failed_phi")
        assert float(phi["value"]) == pair["phi"]
        assert group["places"] is not None
        chain = group["places"]["failed"]["chains"][0]
        steps = " > ".join("+".join(step) for step in chain["steps"])
        (row,) = of(report, group=PLAIN, mode=steps, statistic="failed_chains_count")
        assert row["value"] == str(chain["count"])
        bins = of(report, group=PLAIN, statistic="failed_first_failure_bins_1")
        assert [row["value"] for row in bins] == [
            str(group["places"]["failed"]["first_failure"]["bins"][0])
        ]

    @pytest.mark.slow
    def test_a_missing_ratio_and_a_missing_interval_say_why(self) -> None:
        report: Any = small_document()
        ratios = [row for row in tidy_rows(report) if row["statistic"] == "risk_ratio"]
        assert any(row["undefined"] == "none_in_succeeded" for row in ratios)
        assert all((row["value"] == "") is (row["undefined"] != "") for row in ratios)
        assert not [row for row in tidy_rows(report) if row["statistic"].endswith("_ci")]

    def test_no_row_stands_twice(self) -> None:
        keys = ("scope", "group", "mode", "name", "statistic")
        counted = Counter(tuple(row[key] for key in keys) for row in tidy_rows(small_document()))
        assert max(counted.values()) == 1


if __name__ == "__main__":
    sys.stdout.write(render_csv(replace(sample.report(), document=agreement_json(agreement()))))
