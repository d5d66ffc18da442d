"""Scores of an exam, consistency of judges, and sets of steps, calculated by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mast_tui.exam.coverage import LEAST_RUNS, coverage_figures, step_features
from mast_tui.exam.figures import (
    Answers,
    Decisive,
    Question,
    StepMarks,
    baseline_figures,
    contains_digits,
    decisive_figures,
    level_figures,
    places_figures,
)
from mast_tui.exam.result import decisive_cases
from mast_tui.figures.bootstrap import NO_RESAMPLING
from mast_tui.figures.record import FigureIndex, FigureScope, FigureTable
from mast_tui.taxonomy.model import Group
from tests.judges.memory_trace import MemoryTrace


def decisive(*answers: Any) -> FigureTable:
    return FigureTable(tuple(decisive_figures(FigureScope("decisive"), *answers)))


def baselines(*questions: Any) -> FigureTable:
    return FigureTable(tuple(baseline_figures(FigureScope("baselines"), *questions)))


def places(questions: list[Question], answers: Answers) -> FigureIndex:
    return FigureIndex(places_figures(FigureScope("places"), questions, answers, NO_RESAMPLING))


def question(name: str, step: int, agents: str | None = "abab", category: str = "x") -> Question:
    """A run whose decisive step is ``step``; of its agents each has a letter."""
    agent = None if agents is None else agents[step]
    truth = StepMarks(Decisive(step, agent, category), frozenset({(step, category)}))
    return Question(name, truth, None if agents is None else tuple(agents))


def named(step: int, agent: str = "a", category: str = "x") -> StepMarks:
    return StepMarks(Decisive(step, agent, category), frozenset({(step, category)}))


def test_steps_are_scored_by_their_distance() -> None:
    questions = [question(name, 1) for name in "pqrs"]
    answers = Answers(
        {"p": named(1, "b"), "q": named(2), "r": named(3, "b", "y"), "s": StepMarks()}
    )
    found = decisive(questions, answers)
    assert [found.count(name) for name in ("asked", "named", "not_asked")] == [4, 3, 0]
    assert found.values("step") == {"0": 0.25, "1": 0.5, "3": 0.75, "5": 0.75}
    assert found.value("agent") == 0.5
    assert found.value("category") == 0.5
    assert found.value("step_and_category") == 0.25
    off = {case["trace"]: case["off_by"] for case in decisive_cases(questions, answers)}
    assert off == {"p": 0, "q": 1, "r": 2, "s": None}


def test_the_published_score_by_digits_is_reported_too() -> None:
    questions = [question(name, 1, "ab" * 9) for name in "pqr"]
    answers = Answers({"p": named(1), "q": named(15), "r": named(2)})
    found = decisive(questions, answers, contains_digits)
    assert found.value("step", "0") == pytest.approx(1 / 3)
    assert found.value("published_step") == pytest.approx(2 / 3)
    assert "published_step" not in decisive(questions, answers)
    without_looking = baselines(questions, contains_digits)
    # Of the steps 0 to 17 those with a 1 in them are 1 and 10 to 17.
    assert without_looking.values("baseline_published") == pytest.approx(
        {"random": 9 / 18, "first": 0.0, "last": 1.0}
    )
    assert without_looking.value("last_step", "0") == 0.0


def test_questions_without_an_answer_or_a_trace_are_left_out() -> None:
    scored = decisive([question("p", 1), question("q", 1)], Answers({"p": named(1)}))
    assert (scored.count("asked"), scored.count("not_asked")) == (1, 1)
    assert scored.value("step", "0") == 1.0
    questions = [question("p", 1, agents=None)]
    assert decisive(questions, Answers({"p": named(1)}))["agent"].value is None
    assert baselines(questions).count("asked") == 0
    found = places([Question("p", StepMarks())], Answers({"p": StepMarks()}))
    assert found.table("match", group="joint")["f1"].undefined == "no_overlap"


def test_baselines_of_judges_that_do_not_read() -> None:
    found = baselines([question("p", 0), question("q", 3)])
    assert found.value("random_step", "0") == pytest.approx(1 / 4)
    assert found.value("random_step", "1") == pytest.approx(2 / 4)
    assert (found.value("first_step", "0"), found.value("first_step", "3")) == (0.5, 1.0)
    assert found.value("last_step", "0") == 0.5
    assert found.values("baseline_agent") == {"random": 0.5, "first": 0.5, "last": 0.5}


def test_places_are_scored_by_step_category_and_both() -> None:
    truth = StepMarks(None, frozenset({(1, "x"), (4, "y")}))
    questions = [Question(name, truth) for name in "pq"]
    said = StepMarks(None, frozenset({(1, "y"), (2, "x"), (4, "y")}))
    found = places(questions, Answers({"p": said, "q": StepMarks()}))
    counts = found.table("places")
    assert (counts.count("asked"), counts.count("not_asked")) == (2, 0)
    location, category, joint = (
        found.table("match", group=part) for part in ("location", "category", "joint")
    )
    kinds = ("matching_locations", "named_locations", "true_locations")
    assert [location.count(kind) for kind in kinds] == [2, 3, 4]
    assert location.value("precision") == pytest.approx(2 / 3)
    assert location.value("f1") == pytest.approx(4 / 7)
    assert location.value("per_trace") == 0.5
    assert (joint.count("matching_locations"), joint.value("recall")) == (1, 0.25)
    assert category.value("recall") == 0.5


def test_categories_of_another_taxonomy_do_not_count() -> None:
    questions, answers = [question("p", 1)], Answers({"p": named(1)}, uses_set_taxonomy=False)
    found = decisive(questions, answers)
    assert (found.value("step", "0"), found["category"].value) == (1, None)
    scored = places(questions, answers)
    assert scored.table("match", group="location").value("f1") == 1
    joint = scored.table("match", group="joint")
    assert (joint["true_locations"].value, joint["f1"].value) == (0, None)


def test_a_category_of_a_level_is_right_if_another_of_its_modes_is_named() -> None:
    questions = [question("p", 1, category="a"), question("q", 2, category="a")]
    answers = Answers({"p": named(1, category="b"), "q": named(3, category="c")})
    groups = (Group("first", "First", ("a", "b")), Group("second", "Second", ("c",)))

    def levels(*scored_by: str) -> FigureIndex:
        marks = (FigureScope("level"), questions, answers, groups)
        return FigureIndex(level_figures(*marks, scored_by=scored_by, resampling=NO_RESAMPLING))

    assert decisive(questions, answers).value("category") == 0.0
    found = levels("decisive", "places")
    shares = found.table("level")
    assert shares.value("decisive_category") == shares.value("step_and_category") == 0.5
    categories = found.table("level_category")
    counts = (categories.count("matching_locations"), categories.count("true_locations"))
    assert counts == (1, 2)
    assert {figure.scope for figure in levels("decisive").figures} == {"level"}


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
