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
from mast_tui.figures.bootstrap import ratio
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

    ``categories`` is True if it judged under the set's taxonomy: only then its categories count.
    """

    by_trace: Mapping[str, StepMarks]
    categories: bool = True


class DecisiveJson(TypedDict):
    """The shares of questions in which the decisive step, its agent or its category is named.

    ``step`` has a share for each distance to the true step. ``named`` counts the questions in which
    any step was named, ``not_asked`` those of the set that the judge has not judged. ``agent`` and
    ``category`` are over the questions whose truth has them; ``step_and_category`` is the share
    with both right. ``published_step`` is the share that the set's own scorer counts as right, None
    if the set has no scorer other than the exact one.
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

    They are over ``n`` traces; ``published_step`` is by the set's own scorer, see ``DecisiveJson``.
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
    """Check whether the digits of the true step are in those of the named one: 1 is in 15.

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
        published: The set's own scorer, if it is not the exact one.

    Returns:
        The shares that are right.
    """
    asked = [q for q in questions if q.truth.decisive is not None]
    pairs = [
        (q.truth.decisive, answers.by_trace[q.trace_id].decisive)
        for q in asked
        if q.trace_id in answers.by_trace and q.truth.decisive is not None
    ]

    def same_category(true: Decisive, named: Decisive) -> bool:
        return (
            answers.categories
            and true.category not in (None, "")
            and (true.category == named.category)
        )

    def hits(right: Callable[[Decisive, Decisive], bool]) -> int:
        return sum(named is not None and right(true, named) for true, named in pairs)

    distances = [abs(true.step - named.step) for true, named in pairs if named is not None]
    with_agent = sum(true.agent is not None for true, _ in pairs)
    with_category = sum(answers.categories and true.category is not None for true, _ in pairs)
    return {
        "n": len(pairs),
        "named": sum(named is not None for _, named in pairs),
        "not_asked": len(asked) - len(pairs),
        "step": {
            str(off): share(sum(distance <= off for distance in distances), len(pairs)).to_json()
            for off in DISTANCES
        },
        "agent": share(
            hits(lambda true, named: true.agent is not None and true.agent == named.agent),
            with_agent,
        ).to_json(),
        "category": share(hits(same_category), with_category).to_json(),
        "step_and_category": share(
            hits(lambda true, named: true.step == named.step and same_category(true, named)),
            with_category,
        ).to_json(),
        "published_step": None
        if published is None
        else share(
            hits(lambda true, named: published(true.step, named.step)), len(pairs)
        ).to_json(),
    }


def _at_level(marks: StepMarks, category_of: Mapping[str, str]) -> StepMarks:
    """Replace the mode of each mark by its category at a level."""
    decisive = marks.decisive
    if decisive is not None and decisive.category:
        mode = decisive.category
        decisive = replace(decisive, category=category_of.get(mode, mode))
    locations = frozenset((step, category_of.get(mode, mode)) for step, mode in marks.locations)
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
    """Score answers by the categories of a level instead of by mode.

    Args:
        questions: The questions of the set.
        answers: The answers of one judge.
        groups: The categories of the level, as from ``Taxonomy.at_level``.
        scored_by: ``decisive``, ``places`` or both.
        rounds: The number of resamples; 0 leaves out the intervals.
        seed: The seed of the resamples.

    Returns:
        The shares that are right.
    """
    category_of = {slug: ident for ident, _, slugs in groups for slug in slugs}
    asked = [
        replace(question, truth=_at_level(question.truth, category_of)) for question in questions
    ]
    by_trace = {trace: _at_level(marks, category_of) for trace, marks in answers.by_trace.items()}
    lifted = replace(answers, by_trace=by_trace)
    decisive = decisive_figures(asked, lifted) if "decisive" in scored_by else None
    places = (
        places_figures(asked, lifted, rounds=rounds, seed=seed) if "places" in scored_by else None
    )
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
        true = question.truth.decisive
        named = answers.by_trace[question.trace_id].decisive
        step = None if named is None else named.step
        cases.append(
            {
                "trace": question.trace_id,
                "true_step": true.step,
                "named_step": step,
                "off_by": None if step is None else abs(step - true.step),
            }
        )
    return cases


def baselines(questions: Sequence[Question], published: StepScorer | None = None) -> BaselinesJson:
    """Score three judges that look at nothing, over the traces that were read.

    Args:
        questions: The questions of the set.
        published: The set's own scorer, if it is not the exact one.

    Returns:
        The shares that are right.
    """
    decided = [
        (q.truth.decisive, q.agents) for q in questions if q.truth.decisive is not None and q.agents
    ]

    def mean(of_trace: Callable[[Decisive, tuple[str, ...]], float]) -> float:
        if not decided:
            return 0.0
        return sum(of_trace(true, agents) for true, agents in decided) / len(decided)

    def scored(is_right: StepScorer, step: Callable[[int], Sequence[int]]) -> float:
        return mean(
            lambda true, agents: _share_of(
                [is_right(true.step, named) for named in step(len(agents))]
            )
        )

    def near(off: int, step: Callable[[int], Sequence[int]]) -> float:
        return scored(lambda true, named: abs(named - true) <= off, step)

    ways: dict[str, Callable[[int], Sequence[int]]] = {
        "random": range,
        "first": lambda _: (0,),
        "last": lambda steps: (steps - 1,),
    }
    by_way = {way: {str(off): near(off, step) for off in DISTANCES} for way, step in ways.items()}
    with_agent = [(true, agents) for true, agents in decided if true.agent is not None]
    return {
        "n": len(decided),
        "random": by_way["random"],
        "first": by_way["first"],
        "last": by_way["last"],
        "agent": {
            way: _share_of(
                [
                    _share_of([agents[named] == true.agent for named in step(len(agents))])
                    for true, agents in with_agent
                ]
            )
            if with_agent
            else None
            for way, step in ways.items()
        },
        "published_step": None
        if published is None
        else {way: scored(published, step) for way, step in ways.items()},
    }


def _share_of(hits: Sequence[float]) -> float:
    return sum(hits) / len(hits)


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
    asked = [q for q in questions if q.trace_id in answers.by_trace]
    pairs = [(q.truth.locations, answers.by_trace[q.trace_id].locations) for q in asked]

    def match(part: Callable[[Location], object], *, counts: bool = True) -> MatchJson:
        rows = []
        for true, named in pairs if counts else ():
            trues = set(map(part, true))
            names = set(map(part, named))
            rows.append((len(trues & names), len(names), len(trues)))
        return _match(np.array(rows, dtype=np.float64).reshape(-1, 3), rounds, seed)

    return {
        "n": len(asked),
        "not_asked": len(questions) - len(asked),
        "location": match(lambda location: location[0]),
        "category": match(lambda location: location[1], counts=answers.categories),
        "joint": match(lambda location: location, counts=answers.categories),
    }


def _match(rows: NDArray[np.float64], rounds: int, seed: int) -> MatchJson:
    """Compute the figures from the right, named and true counts, a row for each trace."""
    right, named, true = rows.T

    def figure(above: NDArray[np.float64], below: NDArray[np.float64]) -> CoefficientJson:
        return share_of_traces(np.stack([above, below], axis=1), rounds=rounds, seed=seed)

    return {
        "right": int(right.sum()),
        "named": int(named.sum()),
        "true": int(true.sum()),
        "precision": figure(right, named),
        "recall": figure(right, true),
        "f1": figure(2 * right, named + true),
        "per_trace": figure(ratio(right, true, 0.0), np.sign(true)),
    }
