"""The figures of an exam: the answers of judges, scored by a labelled set.

Steps are counted from 0; they are the set's own steps where a span is part of one. All figures are
over the questions that a judge was asked. A question to which it names no step counts as wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypedDict

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.agreement.coefficients import CoefficientJson
from mast_tui.figures.bootstrap import Resampling, ratio
from mast_tui.figures.intervals import share
from mast_tui.figures.jackknife import share_of_traces
from mast_tui.taxonomy.model import Group

DISTANCES: Final = (0, 1, 3, 5)
"""The distances to the true step within which a named step counts as right."""


Location = tuple[int | str, str]
"""The location of a failure with its category: a step, or the key of a span without a step."""


@dataclass(frozen=True, slots=True)
class Decisive:
    """The step that decided a run, with its agent and category; None if they are unknown."""

    step: int
    agent: str | None = None
    category: str | None = None


@dataclass(frozen=True, slots=True)
class StepMarks:
    """The marks of one annotator on a trace: the decisive step, and the locations of failures."""

    decisive: Decisive | None = None
    locations: frozenset[Location] = frozenset()


@dataclass(frozen=True, slots=True)
class Question:
    """A trace of the set with its truth.

    ``agents`` names the agent of each step, None if the trace was not read.
    """

    trace_id: str
    truth: StepMarks
    agents: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Answers:
    """The marks of a judge by trace id, without the traces that it has not judged.

    ``uses_set_taxonomy`` is True if the judge used the set's taxonomy: only then its categories
    count.
    """

    by_trace: Mapping[str, StepMarks]
    uses_set_taxonomy: bool = True


class DecisiveJson(TypedDict):
    """The shares of questions in which the decisive step, its agent or its category is named.

    Attributes:
        n: The number of judged questions with a decisive step.
        named: The number of these questions in which the judge named a step.
        not_asked: The number of questions that the judge has not judged.
        step: The share of right steps, by the distance to the true step that counts as right.
        agent: The share of right agents, of the questions whose truth has an agent.
        category: The share of right categories, of the questions whose truth has a category.
        step_and_category: The share of these questions with both right.
        published_step: The share that the set's own scorer counts as right; None if the set has no
            scorer other than the exact one.
    """

    n: int
    named: int
    not_asked: int
    step: dict[str, CoefficientJson]
    agent: CoefficientJson
    category: CoefficientJson
    step_and_category: CoefficientJson
    published_step: CoefficientJson | None


class MatchJson(TypedDict):
    """Precision, recall and F1 of the named locations, counted over all traces together.

    ``per_trace`` is the mean over the traces of the recall, which TRAIL calls accuracy.
    """

    right: int
    named: int
    true: int
    precision: CoefficientJson
    recall: CoefficientJson
    f1: CoefficientJson
    per_trace: CoefficientJson


class PlacesJson(TypedDict):
    """The matches of locations: ``location`` by step, ``category`` by the categories in the trace,
    ``joint`` by both together."""

    n: int
    not_asked: int
    location: MatchJson
    category: MatchJson
    joint: MatchJson


class LevelJson(TypedDict):
    """The shares with the true category of a level: of decisive steps, and of the failures in a
    trace, None if the set has none; ``joint`` is with the exact step."""

    decisive: CoefficientJson | None
    step_and_category: CoefficientJson | None
    places: MatchJson | None
    joint: MatchJson | None


class CaseJson(TypedDict):
    """The true step of one trace, the named step, both from 0, and the distance between them."""

    trace: str
    true_step: int | None
    named_step: int | None
    off_by: int | None


class BaselinesJson(TypedDict):
    """The shares that are right when a random step is named, always the first, or always the last.

    Attributes:
        n: The number of traces.
        random: The shares for a random step, by the distance that counts as right.
        first: The shares for the first step.
        last: The shares for the last step.
        agent: The share of right agents by baseline; None if the truth has no agents.
        published_step: The shares by the set's own scorer, see ``DecisiveJson``.
    """

    n: int
    random: dict[str, float]
    first: dict[str, float]
    last: dict[str, float]
    agent: dict[str, float | None]
    published_step: dict[str, float] | None


StepScorer = Callable[[int, int], bool]
"""A function that checks a named step; its arguments are the true step and the named one."""


def contains_digits(true_step: int, named_step: int) -> bool:
    """Check whether the digits of the true step are in those of the named step: 1 is in 15.

    The published scorer of Who&When compares the numbers as texts in this way (``evaluate.py`` in
    github.com/ag2ai/Agents_Failure_Attribution), so that it counts some wrong steps as right.

    Args:
        true_step: The true step.
        named_step: The named step.
    """
    return str(true_step) in str(named_step)


def decisive_figures(
    questions: Sequence[Question], answers: Answers, published: StepScorer | None = None
) -> DecisiveJson:
    """Score the decisive step of each question that has one.

    Args:
        questions: The questions of the set.
        answers: The answers of one judge.
        published: The scorer published with the set; None if there is none, and only the exact
            step is right.
    """
    truths = [
        (question.trace_id, question.truth.decisive)
        for question in questions
        if question.truth.decisive is not None
    ]
    asked = [(trace_id, truth) for trace_id, truth in truths if trace_id in answers.by_trace]
    named_steps = [(truth, answers.by_trace[trace_id].decisive) for trace_id, truth in asked]
    pairs = [(truth, named) for truth, named in named_steps if named is not None]
    agent_count = sum(truth.agent is not None for _, truth in asked)
    category_count = sum(
        answers.uses_set_taxonomy and truth.category is not None for _, truth in asked
    )

    def _right_share(
        is_right: Callable[[Decisive, Decisive], bool], question_count: int
    ) -> CoefficientJson:
        """Return the share of questions with a right answer; a missing answer is wrong."""
        return share(sum(is_right(*pair) for pair in pairs), question_count).to_json()

    def _step_share(is_right: StepScorer) -> CoefficientJson:
        return _right_share(lambda truth, named: is_right(truth.step, named.step), len(asked))

    def _is_category_right(truth: Decisive, named: Decisive) -> bool:
        has_category = answers.uses_set_taxonomy and bool(truth.category)
        return has_category and truth.category == named.category

    return {
        "n": len(asked),
        "named": len(pairs),
        "not_asked": len(truths) - len(asked),
        "step": {str(limit): _step_share(_within_distance(limit)) for limit in DISTANCES},
        "agent": _right_share(
            lambda truth, named: truth.agent is not None and truth.agent == named.agent,
            agent_count,
        ),
        "category": _right_share(_is_category_right, category_count),
        "step_and_category": _right_share(
            lambda truth, named: _is_category_right(truth, named) and truth.step == named.step,
            category_count,
        ),
        "published_step": None if published is None else _step_share(published),
    }


def _marks_at_level(marks: StepMarks, category_by_mode: Mapping[str, str]) -> StepMarks:
    """Return marks whose modes are replaced by their categories at a level.

    Before that, the category of the decisive step is a mode. A mode without a category at the level
    stays.
    """
    decisive = marks.decisive
    if decisive is not None and decisive.category:
        mode = decisive.category
        decisive = replace(decisive, category=category_by_mode.get(mode, mode))
    locations = frozenset(
        (step, category_by_mode.get(mode, mode)) for step, mode in marks.locations
    )
    return StepMarks(decisive, locations)


def level_figures(
    questions: Sequence[Question],
    answers: Answers,
    groups: Iterable[Group],
    *,
    scored_by: Container[str],
    rounds: int,
    seed: int,
) -> LevelJson:
    """Score answers by categories at one level of the taxonomy instead of by mode.

    Args:
        questions: The questions of the set.
        answers: The answers of one judge.
        groups: The categories of the level, as from ``Taxonomy.at_level``.
        scored_by: The scores of the set: ``decisive`` (the decisive step), ``places`` (the
            locations of failures) or both.
        rounds: The number of resamples; 0 leaves out the intervals.
        seed: The seed of the resamples.
    """
    category_by_mode = {mode: category_id for category_id, _, modes in groups for mode in modes}
    level_questions = [
        replace(question, truth=_marks_at_level(question.truth, category_by_mode))
        for question in questions
    ]
    marks_by_trace = {
        trace_id: _marks_at_level(marks, category_by_mode)
        for trace_id, marks in answers.by_trace.items()
    }
    level_answers = replace(answers, by_trace=marks_by_trace)
    decisive = None
    if "decisive" in scored_by:
        decisive = decisive_figures(level_questions, level_answers)
    places = None
    if "places" in scored_by:
        places = places_figures(level_questions, level_answers, rounds=rounds, seed=seed)
    return {
        "decisive": decisive and decisive["category"],
        "step_and_category": decisive and decisive["step_and_category"],
        "places": places and places["category"],
        "joint": places and places["joint"],
    }


def decisive_cases(questions: Sequence[Question], answers: Answers) -> list[CaseJson]:
    """Return the true and the named decisive step of each judged trace.

    Args:
        questions: The questions of the set.
        answers: The answers of one judge.
    """
    cases: list[CaseJson] = []
    for question in questions:
        if question.truth.decisive is None or question.trace_id not in answers.by_trace:
            continue
        truth = question.truth.decisive
        named = answers.by_trace[question.trace_id].decisive
        step = None if named is None else named.step
        cases.append(
            {
                "trace": question.trace_id,
                "true_step": truth.step,
                "named_step": step,
                "off_by": None if step is None else abs(step - truth.step),
            }
        )
    return cases


_StepChoice = Callable[[int], Sequence[int]]
"""A function of a trace's number of steps; it returns the steps to name, each equally likely."""

_BASELINES: Final[Mapping[str, _StepChoice]] = {
    "random": range,
    "first": lambda _: (0,),
    "last": lambda steps: (steps - 1,),
}


def baselines(questions: Sequence[Question], published: StepScorer | None = None) -> BaselinesJson:
    """Score three judges that read no trace: a random step, the first step, and the last step.

    Only the traces with a decisive step whose agents are known count.

    Args:
        questions: The questions of the set.
        published: The scorer published with the set; None if there is none, and only the exact
            step is right.
    """
    traces = [
        (question.truth.decisive, question.agents)
        for question in questions
        if question.truth.decisive is not None and question.agents
    ]
    traces_with_agent = [(truth, agents) for truth, agents in traces if truth.agent is not None]

    def chances(is_right: StepScorer) -> dict[str, float]:
        """Return the mean chance of each baseline to name a right step."""
        return {
            name: _mean_or_zero(
                _mean_or_zero(is_right(truth.step, step) for step in choose_steps(len(agents)))
                for truth, agents in traces
            )
            for name, choose_steps in _BASELINES.items()
        }

    chances_by_distance = {
        str(distance): chances(_within_distance(distance)) for distance in DISTANCES
    }
    random, first, last = (
        {distance: by_name[name] for distance, by_name in chances_by_distance.items()}
        for name in _BASELINES
    )
    agent_shares: dict[str, float | None] = dict.fromkeys(_BASELINES)
    if traces_with_agent:
        for name, choose_steps in _BASELINES.items():
            agent_shares[name] = _mean_or_zero(
                _mean_or_zero(agents[step] == truth.agent for step in choose_steps(len(agents)))
                for truth, agents in traces_with_agent
            )
    return {
        "n": len(traces),
        "random": random,
        "first": first,
        "last": last,
        "agent": agent_shares,
        "published_step": None if published is None else chances(published),
    }


def _within_distance(distance: int) -> StepScorer:
    return lambda true_step, named_step: abs(named_step - true_step) <= distance


def _mean_or_zero(values: Iterable[float]) -> float:
    """Return the mean of values, 0 if there are none."""
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else 0.0


def places_figures(
    questions: Sequence[Question], answers: Answers, *, rounds: int, seed: int
) -> PlacesJson:
    """Score the locations of failures; the intervals come from resampling the traces.

    Args:
        questions: The questions of the set.
        answers: The answers of one judge.
        rounds: The number of resamples; 0 leaves out the intervals.
        seed: The seed of the resamples.
    """
    pairs = [
        (question.truth.locations, answers.by_trace[question.trace_id].locations)
        for question in questions
        if question.trace_id in answers.by_trace
    ]

    def match(part: Callable[[Location], object], *, has_part: bool = True) -> MatchJson:
        """Return the figures of true against named locations, compared by one part of a location.

        Args:
            part: Returns the part of a location that must be equal.
            has_part: True if the set has this part; otherwise all figures are zero.
        """
        rows = []
        for true_locations, named_locations in pairs if has_part else ():
            true = set(map(part, true_locations))
            named = set(map(part, named_locations))
            rows.append((len(true & named), len(named), len(true)))
        return _match_figures(np.array(rows, dtype=np.float64).reshape(-1, 3), rounds, seed)

    return {
        "n": len(pairs),
        "not_asked": len(questions) - len(pairs),
        "location": match(_step_of),
        "category": match(_category_of, has_part=answers.uses_set_taxonomy),
        "joint": match(lambda location: location, has_part=answers.uses_set_taxonomy),
    }


def _step_of(location: Location) -> int | str:
    step, _ = location
    return step


def _category_of(location: Location) -> str:
    _, category = location
    return category


def _match_figures(rows: NDArray[np.float64], rounds: int, seed: int) -> MatchJson:
    """Compute the figures from the right, named and true counts, a row for each trace."""
    right_counts, named_counts, true_counts = rows.T

    def _share_of(
        numerators: NDArray[np.float64], denominators: NDArray[np.float64]
    ) -> CoefficientJson:
        """Return the share of two counts, each with a value for each trace."""
        counts = np.stack([numerators, denominators], axis=1)
        return share_of_traces(counts, Resampling(rounds, seed))

    return {
        "right": int(right_counts.sum()),
        "named": int(named_counts.sum()),
        "true": int(true_counts.sum()),
        "precision": _share_of(right_counts, named_counts),
        "recall": _share_of(right_counts, true_counts),
        "f1": _share_of(2 * right_counts, named_counts + true_counts),
        # The mean recall of the traces that have a true location.
        "per_trace": _share_of(ratio(right_counts, true_counts, 0.0), np.sign(true_counts)),
    }
