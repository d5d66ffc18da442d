"""Sets of steps that contain the decisive step with 90 % probability."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mast_tui.exam.coverage import LEAST_RUNS, coverage_figures, step_features
from mast_tui.exam.figures import Answers, Decisive, Question, StepMarks
from mast_tui.figures.record import FigureScope, FigureTable
from tests.judges.memory_trace import MemoryTrace

RUNS = 90
Features = dict[str, tuple[tuple[float, ...], ...]]


def coverage(*runs: Any, **settings: Any) -> FigureTable:
    return FigureTable(tuple(coverage_figures(FigureScope("coverage"), *runs, **settings)))


def simulated(right: float, *, seed: int = 3) -> tuple[list[Question], Features, Answers]:
    """Runs of 10 to 40 steps with one useless feature, and a judge that is right so often."""
    rng = np.random.default_rng(seed)
    questions, answers = [], {}
    features: Features = {}
    for number in range(RUNS):
        steps = int(rng.integers(10, 41))
        true = int(rng.integers(steps))
        named = true if rng.random() < right else int(rng.integers(steps))
        name = f"run {number}"
        questions.append(Question(name, StepMarks(Decisive(true))))
        features[name] = tuple((float(value),) for value in rng.random(steps))
        answers[name] = StepMarks(Decisive(named), frozenset({(named, "mode")}))
    return questions, features, Answers(answers)


@pytest.mark.parametrize(("right", "most", "least"), [(0.95, 0.3, 0.0), (0.0, 1.0, 0.8)])
def test_sets_have_their_coverage_and_are_small_for_a_good_judge(
    right: float, most: float, least: float
) -> None:
    questions, features, answers = simulated(right)
    sets = coverage(questions, features, answers, splits=20)
    value, share = sets.value("coverage"), sets.value("mean_share")
    assert value is not None
    assert share is not None
    # The mean of 20 splits of 90 runs.
    assert value == pytest.approx(0.9, abs=0.05)
    assert least <= share <= most
    assert sets.value("chance_share") == pytest.approx(0.9, abs=0.05)
    assert coverage(questions, features, answers, splits=20) == sets
    assert coverage(questions, features, answers, splits=20, seed=1) != sets


def test_useless_features_make_no_set_smaller() -> None:
    questions, features, _ = simulated(0.5)
    sets = coverage(questions, features, splits=20)
    assert sets.value("mean_share") == pytest.approx(0.9, abs=0.08)


def test_too_few_runs_have_no_sets() -> None:
    questions, features, answers = simulated(1.0)
    sets = coverage(questions[: LEAST_RUNS - 1], features, answers)
    values = [None, None, None, 0, LEAST_RUNS - 1]
    assert [figure.value for figure in sets.figures] == values


def test_a_run_without_a_decisive_step_counts_with_its_first_failure() -> None:
    truth = StepMarks(None, frozenset({(7, "mode"), (4, "mode"), ("key", "mode")}))
    questions, features, _ = simulated(1.0)
    unknown = Question("other", StepMarks(None, frozenset()))
    more = [*questions, Question("run 0", truth), unknown]
    assert coverage(more, features, splits=2).count("labelled_runs") == RUNS + 1


def test_features_have_place_errors_repetition_and_agents() -> None:
    trace = MemoryTrace().user("find the cause").say("I look at the pods carefully")
    trace.say("I look at the pods carefully").say("Traceback: it failed")
    numbers = {trace.span(index).key: index for index in range(len(trace))}
    features = np.array(step_features(trace, numbers))
    assert features.shape == (4, 15)
    assert features[:, 0].tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert features[:, 7].tolist() == [0, 0, 0, 1]
    assert features[:, 8].tolist() == [0, 0, 1, 0]
    # The third step repeats the second, and has no new word.
    assert features[2, 10] == 1
    assert features[2, 9] == 0
    assert step_features(MemoryTrace(), {}) == ()
