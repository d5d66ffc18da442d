"""Tidy rows: every figure of a document once, in fixed columns."""

from __future__ import annotations

import csv
import io
import sys
from collections import Counter
from collections.abc import Iterable
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
    return rows_with(tidy_rows(document), **columns)


def rows_with(rows: Iterable[dict[str, str]], **columns: str) -> list[dict[str, str]]:
    return [row for row in rows if all(row[name] == cell for name, cell in columns.items())]


@pytest.fixture(scope="module")
def people() -> Any:
    return agreement_json(agreement())


@pytest.fixture(scope="module")
def signatures() -> Any:
    return small_document()


def test_rows_of_agreement_are_those_of_the_golden_file(people: Any) -> None:
    rows = read(render_csv(replace(sample.report(), document=people)))
    golden = read(GOLDEN.read_text("utf-8"))
    assert len({row["scope"] for row in golden}) == 26
    assert list(golden[0]) == csv_columns({})
    for row, expected in zip(rows, golden, strict=True):
        for name in NUMBERS:
            here = row.pop(name)
            there = expected.pop(name)
            assert (here == "") is (there == ""), (row, name)
            assert here == "" or float(here) == pytest.approx(float(there), abs=1e-9)
        assert row == expected


def test_rows_of_signatures_hold_the_document(signatures: Any) -> None:
    group = signatures["groups"][PLAIN]
    mode = group["modes"]["2.6"]
    rows = list(tidy_rows(signatures))
    assert csv_columns(signatures) == ["scope", "group", *csv_columns({})[1:]]

    def row(statistic: str, **columns: str) -> dict[str, str]:
        (row,) = rows_with(rows, group=PLAIN, statistic=statistic, **columns)
        return row

    def interval(row: dict[str, str]) -> list[float]:
        return [float(row["ci_low"]), float(row["ci_high"])]

    rate = row("failed_rate", scope="mode", mode="2.6")
    assert float(rate["value"]) == mode["failed"]["rate"]
    assert interval(rate) == mode["failed"]["ci"]
    assert rate["n"] == str(mode["failed"]["n"])
    count = row("failed_count", scope="mode", mode="2.6")
    assert count["value"] == str(mode["failed"]["count"])
    points = row("difference_pp", scope="mode", mode="2.6")
    assert interval(points) == mode["difference_ci_pp"]
    assert float(row("p_adjusted", scope="mode", mode="2.6")["value"]) == mode["p_adjusted"]
    pair = group["together"]["failed"][0]
    assert float(row("failed_phi", mode="|".join(pair["modes"]))["value"]) == pair["phi"]
    chain = group["places"]["failed"]["chains"][0]
    steps = " > ".join("+".join(step) for step in chain["steps"])
    assert row("failed_chains_count", mode=steps)["value"] == str(chain["count"])
    tenths = group["places"]["failed"]["first_failure"]["bins"]
    assert row("failed_first_failure_bins_1")["value"] == str(tenths[0])
    ratios = [row for row in rows if row["statistic"] == "risk_ratio"]
    assert any(row["undefined"] == "none_in_succeeded" for row in ratios)
    assert all((row["value"] == "") is (row["undefined"] != "") for row in ratios)
    assert not [row for row in rows if row["statistic"].endswith("_ci")]
    keys = ("scope", "group", "mode", "name", "statistic")
    assert max(Counter(tuple(row[key] for key in keys) for row in rows).values()) == 1


if __name__ == "__main__":
    sys.stdout.write(render_csv(replace(sample.report(), document=agreement_json(agreement()))))
