"""The published counts of the ITBench study come out as published, with what they carry."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import fisher_exact
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from tests.figures.signatures.study_counts import COUNTS, TRACES, csv_wide


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What ``report --json --by model`` says of the study's counts."""
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


def test_a_failed_trace_shows_as_many_modes_as_published(report: Any) -> None:
    published = {"Gemini-3-Flash": 2.6, "GPT-OSS-120B": 5.3}
    for model, value in published.items():
        found = report["groups"][model]["modes_per_failed_trace"]
        assert round(found["value"], 1) == value
        low, high = found["ci"]
        assert low < found["value"] < high
        assert sum(found["distribution"].values()) == TRACES[model][1]


def test_every_share_is_that_of_the_figures_with_its_interval(report: Any) -> None:
    for place, (model, sizes) in enumerate(TRACES.items()):
        group = report["groups"][model]
        assert (group["succeeded"], group["failed"]) == sizes
        for code, counts in COUNTS.items():
            for side, outcome in enumerate(("succeeded", "failed")):
                found = group["modes"][code][outcome]
                assert (found["count"], found["n"]) == (counts[place][side], sizes[side])
                assert found["rate"] == pytest.approx(counts[place][side] / sizes[side])
                theirs = proportion_confint(found["count"], found["n"], method="wilson")
                assert found["ci"] == pytest.approx(list(theirs))


def test_incorrect_verification_is_52_points_more_frequent_where_gemini_fails(report: Any) -> None:
    found = report["groups"]["Gemini-3-Flash"]["modes"]["3.3"]
    assert round(found["difference_pp"]) == 52


def test_differences_and_p_values_are_those_of_scipy_and_statsmodels(report: Any) -> None:
    for model, _code, found in modes(report):
        lost, won = found["failed"], found["succeeded"]
        cells = (lost["count"], lost["n"], won["count"], won["n"])
        ends = confint_proportions_2indep(*cells, compare="diff", method="newcomb")
        shows = lost["count"] + won["count"]
        rare = min(shows, lost["n"] + won["n"] - shows) < 5
        if rare:
            assert found["undefined"]["difference_ci_pp"] == "rare_mode"
            assert found["difference_ci_pp"] is None
        else:
            assert found["difference_ci_pp"] == pytest.approx([100 * end for end in ends])
        table = [[c, n - c] for c, n in ((cells[0], cells[1]), (cells[2], cells[3]))]
        assert found["p_value"] == pytest.approx(fisher_exact(table).pvalue)
        if lost["count"] and won["count"] and not rare:
            ratio = confint_proportions_2indep(
                *cells, compare="ratio", method="log", correction=False
            )
            assert found["risk_ratio_ci"] == pytest.approx(list(ratio))
        group = report["groups"][model]["modes"]
        theirs = multipletests([one["p_value"] for one in group.values()], method="fdr_bh")[1]
        assert [one["p_adjusted"] for one in group.values()] == pytest.approx(theirs.tolist())


def test_only_incorrect_verification_is_carried_by_the_counts(report: Any) -> None:
    for _model, code, found in modes(report):
        assert (found["p_adjusted"] < 0.05) == (code == "3.3")
        assert found["severity"] == ("fatal" if code == "3.3" else "unclear")


def test_what_the_posts_say_stands_beside_it(report: Any) -> None:
    said = {code: found["stated"] for model, code, found in modes(report) if "GPT" in model}
    assert {code for code, word in said.items() if word == "fatal"} == {
        "1.4",
        "1.5",
        "2.2",
        "2.3",
        "3.1",
    }
    assert {code for code, word in said.items() if word == "benign"} == {"1.1", "1.3"}
    assert {code for code, word in said.items() if word == "both"} == {"2.6", "3.3"}
    assert "ITBench" in report["stated"]["source"]


def test_a_mode_that_nobody_saw_has_no_ratio(report: Any) -> None:
    mode = report["groups"]["GPT-OSS-120B"]["modes"]["3.2"]
    assert mode["risk_ratio"] is None
    assert mode["undefined"]["risk_ratio"] == "never_seen"
    none_won = report["groups"]["Gemini-3-Flash"]["modes"]["1.5"]
    assert none_won["undefined"]["risk_ratio"] == "none_in_succeeded"
