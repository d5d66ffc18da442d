"""Success with and without a mode, and trends over versions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.intervals import rate
from mast_tui.figures.record import FigureScope, rate_json
from mast_tui.figures.signatures.model import SignatureInput
from mast_tui.figures.signatures.report import natural_order, signature_report
from mast_tui.figures.significance import cochran_armitage
from mast_tui.reports.render.text import render_text
from mast_tui.reports.signatures import signatures_report
from tests.figures.signatures.build_input import document_of, input_of


def text_of(signatures: SignatureInput, **options: Any) -> list[str]:
    report = signature_report(signatures, Resampling(0), **options)
    return render_text(signatures_report(report), None)


def share(count: int, n: int) -> dict[str, Any]:
    return rate_json(rate(FigureScope("mode"), "", count, n))


def test_success_is_counted_with_and_without_a_mode() -> None:
    rows = [*["g - S 10"] * 3, *["g - F 10"] * 5, *["g - S 00"] * 6]
    signatures = input_of(*rows, "g - F 0?", "g - ? 11")
    mode = document_of(signatures, rounds=0)["groups"]["g"]["modes"]
    assert mode["1.3"]["success_given"] == {"present": share(3, 8), "absent": share(6, 7)}
    assert mode["3.1"]["success_given"] == {"present": share(0, 0), "absent": share(9, 14)}


VERSIONS = ("1.2", "1.9", "1.10")


def over_versions(*hit_counts: int, trace_count: int = 10) -> list[str]:
    """Return the traces of each version, of which this many show the mode."""
    return [
        f"{version} - {'FS'[number % 2]} {int(number < hits)}0"
        for version, hits in zip(VERSIONS, hit_counts, strict=True)
        for number in range(trace_count)
    ]


def test_growing_mode_has_a_trend_over_versions() -> None:
    signatures = input_of(*over_versions(1, 3, 6), "(unknown) - F 10", by="version")
    report = document_of(signatures, rounds=0)
    trend = report["trend"]
    assert trend is not None
    assert trend["groups"] == ["1.2", "1.9", "1.10"]
    assert trend["left_out"] == 1
    loop = trend["modes"]["all"]["1.3"]
    tested = cochran_armitage([1, 3, 6], [10, 10, 10])
    assert tested is not None
    assert (loop["z"], loop["p_value"], loop["method"]) == tested
    assert loop["slope_pp"] == pytest.approx(25)
    assert [row["count"] for row in loop["rates"]] == [1, 3, 6]
    assert [row["count"] for row in trend["modes"]["failed"]["1.3"]["rates"]] == [1, 2, 3]
    stop = trend["modes"]["all"]["3.1"]
    assert (stop["undefined"], stop["p_adjusted"], stop["slope_pp"]) == ("no_variance", None, 0)
    assert loop["p_adjusted"] == loop["p_value"]


def test_dates_are_apart_by_their_days() -> None:
    days = {"1.2": "2026-01-01", "1.9": "2026-01-02", "1.10": "2026-06-01"}
    signatures = input_of(*over_versions(1, 3, 6), by="version")
    names = tuple(days.get(name, name) for name in signatures.group_names)
    signatures = replace(signatures, by="date", group_names=names, group_parts=())
    trend = document_of(signatures, rounds=0)["trend"]
    assert trend is not None
    assert (trend["groups"], trend["unit"]) == (list(days.values()), "day")
    assert trend["scores"] == [0, 1, 151]
    loop = trend["modes"]["all"]["1.3"]
    tested = cochran_armitage([1, 3, 6], [10, 10, 10], [0, 1, 151])
    assert tested is not None
    assert (loop["z"], loop["p_value"], loop["method"]) == tested
    slope, _ = np.polyfit([0, 1, 151], [10, 30, 60], 1)
    assert loop["slope_pp"] == pytest.approx(slope)
    text = " ".join(text_of(signatures))
    assert "in 151 days" in text
    assert "Dates are scaled in days." in text
    by_version = text_of(input_of(*over_versions(1, 3, 6), by="version"))
    assert "Versions count as equal steps" in " ".join(by_version)


def test_other_groups_and_single_versions_have_no_trend() -> None:
    signatures = input_of(*over_versions(1, 3, 6), by="system")
    assert document_of(signatures, rounds=0)["trend"] is None
    assert document_of(input_of("1.2 - F 10", by="version"), rounds=0)["trend"] is None


def test_versions_are_sorted_by_their_numbers() -> None:
    versions = ["v2", "v10", "1.10.0", "1.9", "1.9-rc2", "2026-03-01", "2025-12-31"]
    assert sorted(versions, key=natural_order) == [
        "1.9", "1.9-rc2", "1.10.0", "2025-12-31", "2026-03-01", "v2", "v10",
    ]  # fmt: skip


def test_groups_have_their_fields_as_parts() -> None:
    signatures = input_of("x - F 10", "y - F 10")
    assert document_of(signatures, rounds=0)["groups"]["y"]["parts"] == {"model": "y"}
    names = ("a · q", "b · q")
    parts = (("a", "q"), ("b", "q"))
    two_fields = replace(signatures, by="model,benchmark", group_names=names, group_parts=parts)
    report = document_of(two_fields, rounds=0)
    assert report["by"] == "model,benchmark"
    assert report["groups"]["b · q"]["parts"] == {"model": "b", "benchmark": "q"}
    one_group = replace(signatures, by="all", group_names=("all",), group=signatures.group * 0)
    assert document_of(one_group, rounds=0)["groups"]["all"]["parts"] == {}
