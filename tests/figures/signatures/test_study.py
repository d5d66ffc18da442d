"""Figures of the published counts of the ITBench study."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from statsmodels.stats.proportion import proportion_confint

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from tests.figures.signatures.study_counts import COUNTS, TRACES, csv_wide


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The output of ``report --json --by model`` on the counts of the study."""
    folder: Path = tmp_path_factory.mktemp("study")
    (folder / "study.csv").write_text(csv_wide(), "utf-8")
    workspace_options = ["--workspace", str(folder / "workspace.db")]
    study = ["import", str(folder / "study.csv"), "--format", "csv-wide"]
    with redirect_stdout(StringIO()):
        assert run(split_command([*workspace_options, *study])) == 0
    with redirect_stdout(StringIO()) as printed:
        assert run(split_command([*workspace_options, "report", "--json", "--by", "model"])) == 0
    return json.loads(printed.getvalue())


def modes(report: Any) -> list[tuple[str, str, Any]]:
    return [
        (model, code, report["groups"][model]["modes"][code]) for model in TRACES for code in COUNTS
    ]


def test_modes_per_failed_trace_are_as_published(report: Any) -> None:
    published = {"Gemini-3-Flash": 2.6, "GPT-OSS-120B": 5.3}
    for model, value in published.items():
        mean = report["groups"][model]["modes_per_failed_trace"]
        assert round(mean["value"], 1) == value
        low, high = mean["ci"]
        assert low < mean["value"] < high
        assert sum(mean["distribution"].values()) == TRACES[model][1]


def test_shares_are_as_published_with_wilson_intervals(report: Any) -> None:
    for index, (model, sizes) in enumerate(TRACES.items()):
        group = report["groups"][model]
        assert (group["succeeded"], group["failed"]) == sizes
        for code, counts in COUNTS.items():
            for side, outcome in enumerate(("succeeded", "failed")):
                rate = group["modes"][code][outcome]
                assert (rate["count"], rate["n"]) == (counts[index][side], sizes[side])
                assert rate["rate"] == pytest.approx(counts[index][side] / sizes[side])
                expected = proportion_confint(rate["count"], rate["n"], method="wilson")
                assert rate["ci"] == pytest.approx(list(expected))


def test_severities_and_stated_classes_are_those_of_the_study(report: Any) -> None:
    gemini = report["groups"]["Gemini-3-Flash"]["modes"]
    assert round(gemini["3.3"]["difference_pp"]) == 52
    for _model, code, mode in modes(report):
        assert (mode["p_adjusted"] < 0.05) == (code == "3.3")
        assert mode["severity"] == ("fatal" if code == "3.3" else "unclear")
    stated: dict[str, set[str]] = {}
    for model, code, mode in modes(report):
        if "GPT" in model:
            stated.setdefault(mode["stated"], set()).add(code)
    assert stated["fatal"] == {"1.4", "1.5", "2.2", "2.3", "3.1"}
    assert stated["benign"] == {"1.1", "1.3"}
    assert stated["both"] == {"2.6", "3.3"}
    assert "ITBench" in report["stated"]["source"]
    unseen = report["groups"]["GPT-OSS-120B"]["modes"]["3.2"]
    assert unseen["risk_ratio"] is None
    assert unseen["undefined"]["risk_ratio"] == "never_seen"
    assert gemini["1.5"]["undefined"]["risk_ratio"] == "none_in_succeeded"
