"""Arms over the same tasks: estimates, intervals, tests, and plans."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest

from mast_tui.errors import WorkspaceError
from mast_tui.figures.experiment import (
    Experiment,
    TaskMeans,
    difference,
    estimate,
    experiment_figures,
    pass_values,
    powered_means,
    task_means,
)
from mast_tui.figures.power import RateChange, detectable_change, power, power_figures, tasks_needed
from mast_tui.figures.record import FigureIndex
from mast_tui.figures.signatures.model import ABSENT, NO_VALUE, OPEN, PRESENT
from mast_tui.figures.significance import holm, sign_flips, sign_flips_of_rows
from mast_tui.figures.source.signatures import experiment_of
from mast_tui.reports.experiment import experiment_document, experiment_report
from mast_tui.reports.render.text import render_text
from tests.figures.signatures.build_input import input_of

TASKS = "abcdefgh"
BOTH = tuple(
    f"{arm} {task} {'S' if success else 'F'} {int(loops)}0"
    for arm, loops in (("old", True), ("new", False))
    for number, task in enumerate(TASKS)
    for success in ((arm == "new") != (number == 0), arm == "new")
)
"""Two runs of eight tasks; the new arm never repeats steps, and fails once."""


def document_of(experiment: Experiment) -> Any:
    return experiment_document(experiment, FigureIndex(experiment_figures(experiment)))


def means(values: list[float], runs: int = 1) -> TaskMeans:
    return TaskMeans(np.array(values), np.full(len(values), runs), np.array(values) * runs)


def test_tasks_count_equally_whatever_their_number_of_runs() -> None:
    result = task_means(np.array([1, 0, 0, 0, 0, 1.0, np.nan]), np.array([0, 0, 0, 0, 0, 1, 2]), 3)
    assert result.values[:2].tolist() == [0.2, 1.0]
    assert result.defined.tolist() == [True, True, False]
    assert estimate(result, "share").value == pytest.approx(0.6)


@pytest.mark.parametrize(("successes", "runs"), [(0, 3), (2, 3), (3, 5), (5, 5)])
def test_pass_k_is_the_share_of_samples_that_all_succeed(successes: int, runs: int) -> None:
    results = [True] * successes + [False] * (runs - successes)
    for k in range(1, runs + 1):
        samples = [all(chosen) for chosen in combinations(results, k)]
        value = pass_values(np.array([successes]), np.array([runs]), k)[0]
        assert value == pytest.approx(sum(samples) / len(samples))
        assert value == pytest.approx(comb(successes, k) / comb(runs, k))
    assert np.isnan(pass_values(np.array([successes]), np.array([runs]), runs + 1)[0])


def test_exchanging_the_arms_negates_the_difference() -> None:
    a = means([0.5, 1, 0, 0.5, 1, 0.5], 2)
    b = means([0, 0.5, 0, 0.5, 0.5, 0], 2)
    forward, p_value = difference(a, b, "share")
    backward, backward_p_value = difference(b, a, "share")
    assert forward.interval is not None
    assert backward.interval == pytest.approx((-forward.interval[1], -forward.interval[0]))
    assert p_value == pytest.approx(backward_p_value)


def test_sign_flips_of_many_rows_and_holm_adjustment() -> None:
    random = np.random.default_rng(2)
    for cases, most in ((5, 1), (12, 3), (40, 5)):
        rows = random.integers(-most, most + 1, (30, cases))
        expected = [sign_flips(row.tolist()) for row in rows]
        assert sign_flips_of_rows(rows) == pytest.approx(expected, abs=1e-12)
    multipletests = pytest.importorskip("statsmodels.stats.multitest").multipletests
    p_values = [0.01, 0.04, 0.03, 0.005, 0.9]
    expected = multipletests(p_values, method="holm")[1].tolist()
    adjusted = holm([*p_values, None])
    assert adjusted[-1] is None
    assert adjusted[:-1] == pytest.approx(expected)


def test_judge_is_corrected_by_people() -> None:
    random = np.random.default_rng(3)
    task = np.repeat(np.arange(400), 3)
    true = (random.random(1200) < 0.4).astype(float)
    people = np.where(random.random(1200) < 0.3, true, np.nan)
    exact = powered_means(people, true, task, 400)
    assert exact.values.mean() == pytest.approx(true.mean(), abs=1e-9)
    noisy = np.where(random.random(1200) < 0.5, 1.0, true)
    corrected = powered_means(people, noisy, task, 400)
    assert noisy.mean() > true.mean() + 0.2
    assert corrected.values.mean() == pytest.approx(true.mean(), abs=0.06)


def test_changed_modes_differ_and_others_do_not() -> None:
    experiment = experiment_of(input_of(*BOTH), baseline="old")
    document = document_of(experiment)
    assert list(document["arms"]) == ["old", "new"]
    new = document["arms"]["new"]
    assert (new["tasks"], new["runs"], new["shared_tasks"]) == (8, 16, 8)
    assert new["success"]["rate"]["value"] == pytest.approx(15 / 16)
    assert document["arms"]["old"]["pass_k"]["2"]["value"] == 0
    assert new["pass_k"]["2"]["value"] == pytest.approx(7 / 8)
    loop = new["modes"]["1.3"]
    assert loop["difference"]["value"] == -1
    # Of all 256 exchanges of the arms in eight tasks, two are as extreme.
    assert loop["difference"]["p"] == pytest.approx(2 / 256)
    assert loop["difference"]["p_adjusted"] == pytest.approx(4 / 256)
    assert new["modes"]["3.1"]["difference"]["value"] == 0
    report = experiment_report(experiment, FigureIndex(experiment_figures(experiment)))
    text = " ".join(" ".join(render_text(report, 100)).split())
    assert "less often 1.3 -100 points" in text
    assert "more often" not in text


def test_modes_named_beforehand_are_adjusted_alone() -> None:
    experiment = experiment_of(input_of(*BOTH), baseline="old", tested=("1.3", "1.3"))
    assert experiment.tested == ("1.3",)
    loop = document_of(experiment)["arms"]["new"]["modes"]["1.3"]["difference"]
    assert loop["p_adjusted"] == loop["p"]


def test_experiment_needs_two_arms_a_known_baseline_and_known_modes() -> None:
    for rows in (("a t F 10", "a u F 10"), ("a t F 10", f"{NO_VALUE} u F 10")):
        with pytest.raises(WorkspaceError, match="two arms or more"):
            experiment_of(input_of(*rows))
    unknown = "no arm is named 'older'; by model there are: new, old"
    with pytest.raises(WorkspaceError, match=unknown):
        experiment_of(input_of(*BOTH), baseline="older")
    with pytest.raises(WorkspaceError, match=r"no mode '9\.9'; there are: 1\.3, 3\.1"):
        experiment_of(input_of(*BOTH), tested=("9.9",))


def test_unreliable_intervals_are_withheld() -> None:
    few = document_of(experiment_of(input_of(*BOTH[:6], *BOTH[16:22]), baseline="old"))
    assert few["arms"]["new"]["modes"]["1.3"]["difference"]["ci_withheld"] == "few_tasks"
    experiment = experiment_of(input_of(*BOTH), baseline="old")
    rare = document_of(experiment)["arms"]["new"]["modes"]["3.1"]["difference"]
    assert rare["ci_withheld"] == "rare_mode"
    open_ = tuple(row.replace(" 10", " !0") if " c " in row else row for row in BOTH)
    unresolved = document_of(experiment_of(input_of(*open_), baseline="old"))
    assert unresolved["arms"]["old"]["modes"]["1.3"]["rate"]["ci_withheld"] == "unresolved"


def test_arms_without_common_tasks_are_independent() -> None:
    rows = [f"old a{i} F {int(i < 6)}0" for i in range(10)]
    rows += [f"new b{i} F {int(i < 2)}0" for i in range(10)]
    arm = document_of(experiment_of(input_of(*rows), baseline="old"))["arms"]["new"]
    assert arm["shared_tasks"] == 0
    loop = arm["modes"]["1.3"]["difference"]
    assert loop["value"] == pytest.approx(-0.4)
    assert loop["ci"][0] < -0.4 < loop["ci"][1]
    # All divisions of 8 hits among 20 tasks into tens with 6 and 2 hits, or farther apart.
    assert loop["p"] == pytest.approx(0.16980233)


def test_equal_differences_have_a_test_and_no_interval() -> None:
    for first, second, p_value in (
        ([1.0] * 8, [0.0] * 8, 2 / 256),
        ([1.0] * 8 + [np.nan] * 8, [np.nan] * 8 + [0.0] * 8, 2 / comb(16, 8)),
        ([0.0] * 8 + [np.nan] * 8, [np.nan] * 8 + [0.0] * 8, 1.0),
    ):
        apart, tested = difference(means(first), means(second), "share")
        assert apart.interval is None
        assert apart.reason in ("no_variance", "rare_mode")
        assert tested == pytest.approx(p_value)


def test_interval_of_independent_arms_is_that_of_welch() -> None:
    stats = pytest.importorskip("scipy.stats")
    a = [0.5, 1, 0, 0.5, 1, 0.5, 1, 0]
    b = [0, 0.5, 0, 0, 0.5, 0, 0.25, 0, 0.5, 0]
    first = means([*a, *[np.nan] * len(b)], 4)
    second = means([*[np.nan] * len(a), *b], 4)
    apart, _ = difference(first, second, "share")
    result = stats.ttest_ind(a, b, equal_var=False)
    low, high = result.confidence_interval()
    assert apart.interval == pytest.approx((low, high), abs=0.01)
    # Tasks of independent arms are counted separately.
    arm = [1.0] * 3 + [0.0] * 7
    apart, _ = difference(means([*arm, *[np.nan] * 10]), means([*[np.nan] * 10, *arm]), "share")
    assert apart.reason == ""  # six tasks have it, three of each arm
    assert apart.interval is not None
    shared, _ = difference(means(arm), means([*arm[:-1], 0.0]), "share")
    assert shared.reason == "rare_mode"


def test_corrections_of_a_judge_are_not_rounded_in_the_test() -> None:
    labelled = np.ones(12, dtype=np.int64)
    first = replace(means([0.3 + i / 100 for i in range(12)]), labelled_runs=labelled)
    second = replace(means([0.1] * 12), labelled_runs=labelled)
    assert difference(first, second, "share").p_value == pytest.approx(2 / 2**12)


def test_judge_on_all_runs_narrows_the_interval() -> None:
    inputs = input_of(*(f"{arm} t{i} F {i % 2}0" for arm in ("old", "new") for i in range(40)))
    judge = inputs.verdicts.copy()
    people = inputs.verdicts.copy()
    people[np.arange(80) % 4 > 1] = OPEN
    inputs.verdicts[:] = people
    powered = replace(experiment_of(inputs, baseline="old"), judged=judge)
    both = document_of(powered)["arms"]["new"]["modes"]["1.3"]["rate"]
    alone = document_of(experiment_of(inputs, baseline="old"))["arms"]["new"]["modes"]["1.3"]
    assert both["value"] == pytest.approx(0.5)
    assert both["ci"][1] - both["ci"][0] < alone["rate"]["ci"][1] - alone["rate"]["ci"][0]
    assert {int(v) for v in np.unique(judge)} == {PRESENT, ABSENT}


def test_planned_tasks_have_the_promised_power() -> None:
    design = RateChange(0.4, 0.2, within_arm=0.3, across_arms=0.2, alpha=0.05)
    needed = tasks_needed(design, 3)
    assert needed is not None
    assert power(design, needed, 3, draws=4000, seed=5) == pytest.approx(0.8, abs=0.04)
    from_single_runs = tasks_needed(design, 1)
    assert from_single_runs is not None
    assert from_single_runs > needed
    least = detectable_change(design, needed, 3)
    assert least == pytest.approx(0.2, abs=0.03)
    assert power(RateChange(0.4, 0.4, 0.3, 0.2, 0.05), 40, 3, draws=4000) <= 0.06
    assert detectable_change(RateChange(0.05, 0.0), 5, 1) is None


def test_planning_uses_earlier_runs() -> None:
    figures = FigureIndex(power_figures(experiment_of(input_of(*BOTH), baseline="old", change=0.3)))
    success = figures.table("experiment_success_power", group="old")
    assert success.value("power") is not None
    assert success.value("tasks_needed", "3") is not None
    # A mode in all runs or in none shows nothing about differences between tasks.
    assert figures.table("experiment_mode_power", group="old", mode="1.3")["power"].reason


def test_left_out_runs_are_named() -> None:
    rows = (*BOTH, "old a ? 00", "old b ? 00", "new b F 0?", "new c F ??", f"{NO_VALUE} a S 00")
    inputs = replace(input_of(*rows), task_keys=(*(("τ", task) for task in TASKS[:7]), ("τ", "A")))
    experiment = experiment_of(inputs, baseline="old")
    report = experiment_report(experiment, FigureIndex(experiment_figures(experiment)))
    texts = [note.text for note in report.notes]
    assert "'τ a' and 'τ A' are different tasks here, but differ only by case or spaces." in texts
    assert f"Excluded: 1 run without a {experiment.inputs.by}." in texts
    assert "Excluded from success of old: 2 runs without an outcome." in texts
    failed_runs = "2 failed runs without a verdict on every mode."
    assert f"Excluded from modes per failed run of new: {failed_runs}" in texts
    assert "Excluded from modes of new: 1 run without a verdict." in texts


def test_least_p_value_of_few_tasks_is_reported() -> None:
    rows = [f"{arm} {task} {outcome} 10" for arm, outcome in ("oF", "nS") for task in TASKS[:5]]
    experiment = experiment_of(input_of(*rows))
    report = experiment_report(experiment, FigureIndex(experiment_figures(experiment)))
    success = report.document["arms"]["o"]["success"]["difference"]
    assert success["p"] == success["p_least"] == 0.0625
    assert "0.0625 for success and at least 0.125 for a mode" in report.notes[0].text
