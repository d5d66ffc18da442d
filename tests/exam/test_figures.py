"""Scores of an exam, calculated by hand."""

from __future__ import annotations

import pytest

from mast_tui.exam.figures import (
    Answers,
    Decisive,
    Question,
    StepMarks,
    baselines,
    contains_digits,
    decisive_cases,
    decisive_figures,
    level_figures,
    places_figures,
)
from mast_tui.taxonomy.model import Group


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
    found = decisive_figures(questions, answers)
    assert (found["n"], found["named"], found["not_asked"]) == (4, 3, 0)
    assert {off: one["value"] for off, one in found["step"].items()} == {
        "0": 0.25,
        "1": 0.5,
        "3": 0.75,
        "5": 0.75,
    }
    assert found["agent"]["value"] == 0.5
    assert found["category"]["value"] == 0.5
    assert found["step_and_category"]["value"] == 0.25
    off = {case["trace"]: case["off_by"] for case in decisive_cases(questions, answers)}
    assert off == {"p": 0, "q": 1, "r": 2, "s": None}


def test_the_published_score_by_digits_is_reported_too() -> None:
    questions = [question(name, 1, "ab" * 9) for name in "pqr"]
    answers = Answers({"p": named(1), "q": named(15), "r": named(2)})
    found = decisive_figures(questions, answers, contains_digits)
    assert found["step"]["0"]["value"] == pytest.approx(1 / 3)
    assert found["published_step"] is not None
    assert found["published_step"]["value"] == pytest.approx(2 / 3)
    assert decisive_figures(questions, answers)["published_step"] is None
    without_looking = baselines(questions, contains_digits)
    # Of the steps 0 to 17 those with a 1 in them are 1 and 10 to 17.
    assert without_looking["published_step"] == pytest.approx(
        {"random": 9 / 18, "first": 0.0, "last": 1.0}
    )
    assert without_looking["last"]["0"] == 0.0


def test_questions_without_an_answer_or_a_trace_are_left_out() -> None:
    scored = decisive_figures([question("p", 1), question("q", 1)], Answers({"p": named(1)}))
    assert (scored["n"], scored["not_asked"], scored["step"]["0"]["value"]) == (1, 1, 1.0)
    questions = [question("p", 1, agents=None)]
    assert decisive_figures(questions, Answers({"p": named(1)}))["agent"]["value"] is None
    assert baselines(questions)["n"] == 0
    answers = Answers({"p": StepMarks()})
    places = places_figures([Question("p", StepMarks())], answers, rounds=100, seed=0)
    assert places["joint"]["f1"] == {"value": None, "undefined": "no_overlap"}


def test_baselines_of_judges_that_do_not_read() -> None:
    found = baselines([question("p", 0), question("q", 3)])
    assert found["random"]["0"] == pytest.approx(1 / 4)
    assert found["random"]["1"] == pytest.approx(2 / 4)
    assert (found["first"]["0"], found["first"]["3"], found["last"]["0"]) == (0.5, 1.0, 0.5)
    assert found["agent"] == {"random": 0.5, "first": 0.5, "last": 0.5}


def test_places_are_scored_by_step_category_and_both() -> None:
    truth = StepMarks(None, frozenset({(1, "x"), (4, "y")}))
    questions = [Question(name, truth) for name in "pq"]
    said = StepMarks(None, frozenset({(1, "y"), (2, "x"), (4, "y")}))
    found = places_figures(questions, Answers({"p": said, "q": StepMarks()}), rounds=0, seed=0)
    assert (found["n"], found["not_asked"]) == (2, 0)
    location, joint = found["location"], found["joint"]
    assert (location["right"], location["named"], location["true"]) == (2, 3, 4)
    assert location["precision"]["value"] == pytest.approx(2 / 3)
    assert location["f1"]["value"] == pytest.approx(4 / 7)
    assert location["per_trace"]["value"] == 0.5
    assert (joint["right"], joint["recall"]["value"]) == (1, 0.25)
    assert found["category"]["recall"]["value"] == 0.5


def test_categories_of_another_taxonomy_do_not_count() -> None:
    questions, answers = [question("p", 1)], Answers({"p": named(1)}, uses_set_taxonomy=False)
    found = decisive_figures(questions, answers)
    assert (found["step"]["0"]["value"], found["category"]["value"]) == (1, None)
    places = places_figures(questions, answers, rounds=0, seed=0)
    assert places["location"]["f1"]["value"] == 1
    assert (places["joint"]["true"], places["joint"]["f1"]["value"]) == (0, None)


def test_a_category_of_a_level_is_right_if_another_of_its_modes_is_named() -> None:
    questions = [question("p", 1, category="a"), question("q", 2, category="a")]
    answers = Answers({"p": named(1, category="b"), "q": named(3, category="c")})
    groups = (Group("first", "First", ("a", "b")), Group("second", "Second", ("c",)))
    found = level_figures(
        questions, answers, groups, scored_by=("decisive", "places"), rounds=0, seed=0
    )
    assert decisive_figures(questions, answers)["category"]["value"] == 0.0
    assert found["decisive"] == found["step_and_category"]
    assert found["decisive"] is not None
    assert found["decisive"]["value"] == 0.5
    assert found["places"] is not None
    assert (found["places"]["right"], found["places"]["true"]) == (1, 2)
    only = level_figures(questions, answers, groups, scored_by=("decisive",), rounds=0, seed=0)
    assert only["places"] is None
