"""A replay of the published runs of ITBench: 35 scenarios with three runs each."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

import pytest

from mast_tui.taxonomy.loader import load_mast
from tests.cli.conftest import COLUMNS, Cli
from tests.traces.checks import write_json, write_json_lines
from tests.traces.rollouts import message, meta, record

MODEL: Final = "GPT-OSS-120B"
PROMPT: Final = "Find the root cause of the incident."
"""The prompt of every scenario, so that only its name identifies the task."""

LONG: Final = 40


def recall(scenario: int, run: int) -> float:
    """Return the recall of a run; the mean of all is 12.4 % as in the published study."""
    if run == 1 and scenario <= 10:
        return 1.0
    return 0.1 if run == 2 and scenario <= 30 else 0.0


def spans_of(scenario: int, run: int) -> int:
    """Return the number of messages of a run, from 5 to 60."""
    return 5 + (scenario * 7 + run * 18) % 56


def write_runs(folder: Path) -> None:
    """Write 105 runs as the set publishes them."""
    runs = folder / "ReAct-Agent-Trajectories" / "OpenAI-GPT-OSS-120B" / "sre"
    for scenario in range(1, 36):
        for run in (1, 2, 3):
            run_folder = runs / f"Scenario-{scenario}" / str(run)
            run_folder.mkdir(parents=True)
            head = meta(f"00000000-0000-4000-8000-0000{scenario:04}{run:04}")
            lines = [head, record("turn_context", {"model": MODEL}), message("user", PROMPT)]
            lines += [
                message("assistant", f"Step {step} of {scenario}.")
                for step in range(spans_of(scenario, run) - 1)
            ]
            write_json_lines(run_folder / "session.jsonl", *lines)
            write_json(run_folder / "agent_output.json", {"entities": []})
            run_recall = recall(scenario, run)
            scores = {
                "root_cause_entity": {"calculation_recall": run_recall},
                "root_cause_entity_k": {
                    "calculation_recall": 2 * run_recall if run_recall < 0.5 else 1,
                    "k": 5,
                },
            }
            write_json(run_folder / "judge_output.json", {"scores": scores})


@pytest.fixture
def replay(cli: Cli) -> Cli:
    """A workspace with these runs: 1.4 is present in all long runs, 2.6 in all runs but one."""
    write_runs(Path("set"))
    cli.ok("judge", "set", "--judge", "rules")
    runs = list(csv.DictReader(cli.export("csv-wide", "--labels", "all").splitlines()))
    assert len(runs) == 105
    rows = []
    for run in runs:
        scenario = int(run["task_id"].removeprefix("Scenario-"))
        number = int(run["trial"])
        long = spans_of(scenario, number) > LONG
        present_modes = {"1.4": long, "2.6": (scenario, number) != (1, 1)}
        for mode in load_mast().modes:
            present = f"present,line {LONG if long else 4}"
            value = present if present_modes.get(mode.code, False) else "absent,"
            rows.append(f"{run['trace_id']},ann,{mode.code},{value}")
        rows.append(f"{run['trace_id']},ann,,finished,")
    cli.label(*rows, columns=f"{COLUMNS},span_first")
    return cli


def test_the_published_study_is_replayed(replay: Cli, tmp_path: Path) -> None:
    report = replay.json("report", "--labels", "ann", "--rounds", "200")
    group = report["groups"][MODEL]
    assert (group["traces"], group["failed"], group["succeeded"]) == (105, 95, 10)
    mean = group["mean_score"]
    assert mean["value"] == pytest.approx(0.124, abs=0.0005)
    assert mean["ci"][0] < 0.124 < mean["ci"][1]
    claims = {claim["claim"]: claim["verdict"] for claim in report["claims"]}
    assert claims["mean recall 12.4 %"] == "reproduced"
    assert claims["5.3 modes per failed trace"] == "contradicted"
    assert all(claim["group"] == MODEL for claim in report["claims"])
    by_rules = replay.json("report", "--labels", "judge:rules@5", "--rounds", "200")["claims"]
    assert "1 of 14 modes judged" in [claim["reason"] for claim in by_rules]
    lengths = group["lengths"]
    rates = [figure["rate"] for figure in lengths["1.4"]["share"].values()]
    assert rates == sorted(rates)
    assert (rates[0], rates[-1]) == (0, 1)
    assert lengths["1.4"]["p_adjusted"] < 0.001 < 0.05 < lengths["2.6"]["p_adjusted"]
    # Only runs of this length are at risk, and the mode begins in the last range of steps.
    hazard = list(lengths["1.4"]["hazard"].values())
    assert any(figure["count"] > 0 for figure in hazard)
    assert hazard[0]["count"] == 0
    at_risk = [figure["n"] for figure in hazard]
    assert at_risk == sorted(at_risk, reverse=True)
    assert at_risk[0] == 105
    runs = replay("experiment", "--arms", "model", "--labels", "ann")
    assert "an experiment needs two arms or more" in runs.err

    # Further scores are reported if asked for, and not to a blind annotator.
    arguments = ("report", "--labels", "ann", "--rounds", "0")
    assert report["overall"]["scores"] == {}
    scores = replay.json(*arguments, "--scores")["groups"][MODEL]["scores"]
    names = ["root_cause_entity calculation_recall", "root_cause_entity_k calculation_recall"]
    assert list(scores) == names
    main, at_k = scores.values()
    assert main["value"] == pytest.approx(0.124, abs=0.0005)
    assert at_k["value"] == pytest.approx((10 + 30 * 0.2) / 105)
    assert (at_k["n"], at_k["ci"][0] < at_k["value"] < at_k["ci"][1]) == (105, True)
    assert names[1] in replay(*arguments, "--scores").out
    replay.ok(*arguments, "--html", "page.html")
    html = (tmp_path / "page.html").read_text()
    assert "Published claims compared with" in html
    assert "mean recall 12.4 %" in html
    assert "by length of the run" in html
    assert "about 15.6 % from prompts, and up to 53 %" in html
    group = replay.json(*arguments, "--scores", "--annotator", "ann", "--blind")["groups"][MODEL]
    assert (group["mean_score"]["n"], group["scores"]) == (0, {})
