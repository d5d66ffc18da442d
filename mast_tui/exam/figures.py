"""How well judges pass an exam: a labelled set, and what each of them says of its traces.

Steps are counted from 0, in the set's own steps where a span is a part of one. All figures are over
the questions that a judge was asked; one to which it names no step is one that it got wrong.
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
"""How far from the true step a named one may be."""


Place = tuple[int | str, str]
"""Where something shows, and its category."""


@dataclass(frozen=True, slots=True)
class Decisive:
    """The one step that decided a run, whose it is, and its category; None where nobody told."""

    step: int
    agent: str | None = None
    category: str | None = None


@dataclass(frozen=True, slots=True)
class Marks:
    """What somebody says of a trace: the decisive step, and every place with its category.

    A place is a step, or the key of a span whose step nobody can tell.
    """

    decisive: Decisive | None = None
    places: frozenset[Place] = frozenset()


@dataclass(frozen=True, slots=True)
class Question:
    """A trace of the set with its truth.

    ``agents`` names who takes each step, None where the trace is not at hand.
    """

    trace_id: str
    truth: Marks
    agents: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Answers:
    """What a judge says, by trace id; a trace that it has not looked at is missing.

    ``categories`` is whether it speaks in the set's taxonomy: only then its categories count.
    """

    by_trace: Mapping[str, Marks]
    categories: bool = True


class DecisiveJson(TypedDict):
    """Shares of the questions in which the decisive step, its agent or its category is named.

    ``step`` is by how many steps the named one may be off. ``named`` is in how many questions a
    step was named at all, ``not_asked`` how many of the set the judge has not looked at. ``agent``
    and ``category`` are over the questions that tell them; ``step_and_category`` wants both.
    ``published_step`` is the share that the set's own scorer counts as right, None where the set
    has no scorer of another rule than the exact one.
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
    """Precision, recall and F1 of what is named, counted over all traces together.

    ``per_trace`` is the mean over the traces of the share of the true ones that are named, which
    TRAIL calls accuracy.
    """

    right: int
    named: int
    true: int
    precision: CoefficientJson
    recall: CoefficientJson
    f1: CoefficientJson
    per_trace: CoefficientJson


class PlacesJson(TypedDict):
    """How the marked places are met: ``location`` the steps, ``category`` what shows in the trace,
    ``joint`` both together."""

    n: int
    not_asked: int
    location: MatchJson
    category: MatchJson
    joint: MatchJson


class LevelJson(TypedDict):
    """How often what is named falls in the true category of a level: of decisive steps and of what
    shows in a trace, None where the set has none; ``joint`` with the very step."""

    decisive: CoefficientJson | None
    step_and_category: CoefficientJson | None
    places: MatchJson | None
    joint: MatchJson | None


class CaseJson(TypedDict):
    """One trace: the true step and the one named, each from 0, and how far they are apart."""

    trace: str
    true_step: int | None
    named_step: int | None
    off_by: int | None


class BaselinesJson(TypedDict):
    """The shares that are right by any step, always the first, or always the last.

    They are over ``n`` traces; ``published_step`` is by the set's own scorer, see ``DecisiveJson``.
    """

    n: int
    random: dict[str, float]
    first: dict[str, float]
    last: dict[str, float]
    agent: dict[str, float | None]
    published_step: dict[str, float] | None


StepScorer = Callable[[int, int], bool]
"""A function that says whether a named step is right, given the true step and the named one."""


def contains_digits(true_step: int, named_step: int) -> bool:
    """Return whether the digits of the true step are in those of the named one: 1 is in 15.

    The published scorer of Who&When compares the numbers as texts in this way (``evaluate.py`` in
    github.com/ag2ai/Agents_Failure_Attribution), so that it counts some wrong steps as right.
    """
    return str(true_step) in str(named_step)


def decisive_figures(
    questions: Sequence[Question], answers: Answers, published: StepScorer | None = None
) -> DecisiveJson:
    """Score the decisive step of each question that has one.

    Args:
        questions: The questions of the set.
        answers: The answers of one judge.
        published: The rule of the set's own scorer, where it is not the exact one.

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


def _at_level(marks: Marks, within: Mapping[str, str]) -> Marks:
    """Say of each mark in which category of a level it falls, by the category of each mode."""
    decisive = marks.decisive
    if decisive is not None and decisive.category:
        decisive = replace(decisive, category=within.get(decisive.category, decisive.category))
    return Marks(
        decisive, frozenset((where, within.get(mode, mode)) for where, mode in marks.places)
    )


def level_figures(
    questions: Sequence[Question],
    answers: Answers,
    groups: Iterable[Group],
    *,
    scored_by: Container[str],
    rounds: int,
    seed: int,
) -> LevelJson:
    """Score what is named by the categories of a level, not by mode.

    Args:
        questions: Those of the set.
        answers: What the judge says.
        groups: The categories of the level, as the taxonomy tells them.
        scored_by: ``decisive``, ``places`` or both.
        rounds: How many resamples; 0 leaves out the intervals.
        seed: What they are drawn from.
    """
    within = {slug: ident for ident, _, slugs in groups for slug in slugs}
    asked = [replace(one, truth=_at_level(one.truth, within)) for one in questions]
    said = {trace: _at_level(marks, within) for trace, marks in answers.by_trace.items()}
    lifted = replace(answers, by_trace=said)
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
    """Return trace by trace which step is true and which was named.

    Args:
        questions: The questions of the set.
        answers: The answers of one judge.
    """
    cases: list[CaseJson] = []
    for question in questions:
        if question.truth.decisive is None or question.trace_id not in answers.by_trace:
            continue
        true, named = question.truth.decisive, answers.by_trace[question.trace_id].decisive
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
    """Score judges that look at nothing, exactly: over the traces that are at hand.

    Args:
        questions: The questions of the set.
        published: The rule of the set's own scorer, where it is not the exact one.

    Returns:
        The shares that are right.
    """
    known = [
        (q.truth.decisive, q.agents) for q in questions if q.truth.decisive is not None and q.agents
    ]

    def mean(of_trace: Callable[[Decisive, tuple[str, ...]], float]) -> float:
        return sum(of_trace(true, agents) for true, agents in known) / len(known) if known else 0.0

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
    with_agent = [(true, agents) for true, agents in known if true.agent is not None]
    return {
        "n": len(known),
        "random": by_way["random"],
        "first": by_way["first"],
        "last": by_way["last"],
        "agent": {
            way: _share_of(
                [
                    _share_of([agents[one] == true.agent for one in step(len(agents))])
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
    """Score all marked places of the questions; intervals by resampling the traces.

    Args:
        questions: Those of the set.
        answers: What the judge says.
        rounds: How many resamples; 0 leaves out the intervals.
        seed: What they are drawn from.
    """
    asked = [q for q in questions if q.trace_id in answers.by_trace]
    pairs = [(q.truth.places, answers.by_trace[q.trace_id].places) for q in asked]

    def match(part: Callable[[Place], object], *, counts: bool = True) -> MatchJson:
        rows = []
        for true, named in pairs if counts else ():
            trues, names = set(map(part, true)), set(map(part, named))
            rows.append((len(trues & names), len(names), len(trues)))
        return _match(np.array(rows, dtype=np.float64).reshape(-1, 3), rounds, seed)

    return {
        "n": len(asked),
        "not_asked": len(questions) - len(asked),
        "location": match(lambda place: place[0]),
        "category": match(lambda place: place[1], counts=answers.categories),
        "joint": match(lambda place: place, counts=answers.categories),
    }


def _match(rows: NDArray[np.float64], rounds: int, seed: int) -> MatchJson:
    """The figures of right, named and true ones, a row for each trace."""
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
