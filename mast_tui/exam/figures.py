"""The figures of an exam: the answers of judges, scored by a labelled set.

Steps are counted from 0; they are the set's own steps. All figures are over the questions that a
judge was asked. A question without a named step counts as wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np

from mast_tui.figures.bootstrap import Resampling, ratio
from mast_tui.figures.intervals import share_figure
from mast_tui.figures.jackknife import share_of_traces
from mast_tui.figures.record import Figure, FigureScope
from mast_tui.taxonomy.model import Group

DISTANCES: Final = (0, 1, 3, 5)
"""The distances to the true step within which a named step counts as right."""


Location = tuple[int | str, str]
"""The location of a failure with its category: a step, or the key of a span without a step."""


@dataclass(frozen=True, slots=True)
class Decisive:
    """The step that decided a run, with its agent and category; None if unknown."""

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
    """A trace of the set with its true marks.

    ``agents`` has the agent of each step; None if the trace was not read.
    """

    trace_id: str
    truth: StepMarks
    agents: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Answers:
    """The marks of a judge by trace id, without traces that it has not judged.

    ``uses_set_taxonomy`` is False if the judge used another taxonomy, so that its categories do not
    count.
    """

    by_trace: Mapping[str, StepMarks]
    uses_set_taxonomy: bool = True


StepScorer = Callable[[int, int], bool]
"""A function that checks a named step; its arguments are the true step and the named step."""


def contains_digits(true_step: int, named_step: int) -> bool:
    """Check whether the named step has the digits of the true step: step 15 has those of step 1.

    The published scorer of Who&When compares the numbers as texts in this way (``evaluate.py`` in
    github.com/ag2ai/Agents_Failure_Attribution), so that it counts some wrong steps as right.

    Args:
        true_step: The true step.
        named_step: The named step.
    """
    return str(true_step) in str(named_step)


def decisive_figures(
    scope: FigureScope,
    questions: Sequence[Question],
    answers: Answers,
    published: StepScorer | None = None,
) -> list[Figure]:
    """Score the decisive step of each question that has one.

    Args:
        scope: The scope of the figures.
        questions: The questions of the set.
        answers: The answers of one judge.
        published: The scorer published with the set, if there is one.
    """
    truths = [
        (question.trace_id, question.truth.decisive)
        for question in questions
        if question.truth.decisive is not None
    ]
    asked = [
        _DecisiveAnswer(truth, answers.by_trace[trace_id].decisive)
        for trace_id, truth in truths
        if trace_id in answers.by_trace
    ]
    with_agent = [answer for answer in asked if answer.truth.agent is not None]
    with_category = [
        answer
        for answer in asked
        if answers.uses_set_taxonomy and answer.truth.category is not None
    ]
    is_step_right = _within_distance(0)

    def _share(statistic: str, is_right: Sequence[bool]) -> Figure:
        return share_figure(scope, statistic, sum(is_right), len(is_right))

    def _step_share(statistic: str, is_right: StepScorer) -> Figure:
        return _share(statistic, [answer.has_right_step(is_right) for answer in asked])

    counts = {
        "asked": len(asked),
        "named": sum(answer.named is not None for answer in asked),
        "not_asked": len(truths) - len(asked),
    }
    figures = [
        *scope.counts(counts),
        *(
            replace(_step_share("step", _within_distance(limit)), condition=str(limit))
            for limit in DISTANCES
        ),
        _share("agent", [answer.has_right_agent for answer in with_agent]),
        _share("category", [answer.has_right_category for answer in with_category]),
        _share(
            "step_and_category",
            [
                answer.has_right_category and answer.has_right_step(is_step_right)
                for answer in with_category
            ],
        ),
    ]
    return figures if published is None else [*figures, _step_share("published_step", published)]


class _DecisiveAnswer(NamedTuple):
    """The true decisive step of a trace, and the named one; a missing answer (None) is wrong."""

    truth: Decisive
    named: Decisive | None

    def has_right_step(self, is_right: StepScorer) -> bool:
        """Return whether a scorer counts the named step as right."""
        return self.named is not None and is_right(self.truth.step, self.named.step)

    @property
    def has_right_agent(self) -> bool:
        """True if the agent of the named step is the true one."""
        return self.named is not None and self.named.agent == self.truth.agent

    @property
    def has_right_category(self) -> bool:
        """True if the category of the named step is the true one."""
        return (
            bool(self.truth.category)
            and self.named is not None
            and self.named.category == self.truth.category
        )


def _marks_at_level(marks: StepMarks, category_by_mode: Mapping[str, str]) -> StepMarks:
    """Return marks with each mode replaced by its category at a level, if it has one."""
    decisive = marks.decisive
    if decisive is not None and decisive.category:
        mode = decisive.category
        decisive = replace(decisive, category=category_by_mode.get(mode, mode))
    locations = frozenset(
        (step, category_by_mode.get(mode, mode)) for step, mode in marks.locations
    )
    return StepMarks(decisive, locations)


_LEVEL_STATISTICS: Final = {
    "category": "decisive_category",
    "step_and_category": "step_and_category",
}
"""The statistics of a level, by the corresponding statistics of the decisive step."""


def level_figures(
    scope: FigureScope,
    questions: Sequence[Question],
    answers: Answers,
    groups: Iterable[Group],
    *,
    scored_by: Container[str],
    resampling: Resampling,
) -> Iterator[Figure]:
    """Score answers by categories at one level of the taxonomy instead of by mode.

    Args:
        scope: The scope of the figures of the decisive step.
        questions: The questions of the set.
        answers: The answers of one judge.
        groups: The categories of the level, as from ``Taxonomy.at_level``.
        scored_by: The scores of the set: ``decisive`` (the decisive step), ``places`` (the
            locations of failures) or both.
        resampling: The resamples of the traces.
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
    if "decisive" in scored_by:
        for figure in decisive_figures(scope, level_questions, level_answers):
            if figure.statistic in _LEVEL_STATISTICS:
                yield replace(figure, statistic=_LEVEL_STATISTICS[figure.statistic])
    if "places" in scored_by:
        for part in ("category", "joint"):
            yield from _match_figures(
                replace(scope, name=f"{scope.name}_{part}"),
                part,
                level_questions,
                level_answers,
                resampling,
            )


_StepChoice = Callable[[int], Sequence[int]]
"""A function that returns the steps to name, each equally likely, from a trace's number of
steps."""

_BASELINES: Final[Mapping[str, _StepChoice]] = {
    "random": range,
    "first": lambda _: (0,),
    "last": lambda steps: (steps - 1,),
}


def baseline_figures(
    scope: FigureScope, questions: Sequence[Question], published: StepScorer | None = None
) -> list[Figure]:
    """Score three judges that read no trace: a random step, the first step, and the last step.

    Only traces with a decisive step and known agents count.

    Args:
        scope: The scope of the figures.
        questions: The questions of the set.
        published: The scorer published with the set, if there is one.
    """
    traces = [
        (question.truth.decisive, question.agents)
        for question in questions
        if question.truth.decisive is not None and question.agents
    ]

    def _chance(choose_steps: _StepChoice, is_right: StepScorer) -> float:
        """Return the mean chance of a baseline to name a right step."""
        return _mean_or_zero(
            _mean_or_zero(is_right(truth.step, step) for step in choose_steps(len(agents)))
            for truth, agents in traces
        )

    def _agent_chance(choose_steps: _StepChoice) -> float | None:
        """Return the mean chance of a baseline to name a step of the right agent."""
        shares = [
            _mean_or_zero(agents[step] == truth.agent for step in choose_steps(len(agents)))
            for truth, agents in traces
            if truth.agent is not None
        ]
        return _mean_or_zero(shares) if shares else None

    return [
        scope.number("asked", len(traces)),
        *(
            scope.number(
                f"{name}_step", _chance(choose_steps, _within_distance(limit)), condition=str(limit)
            )
            for name, choose_steps in _BASELINES.items()
            for limit in DISTANCES
        ),
        *(
            scope.number("baseline_agent", _agent_chance(choose_steps), condition=name)
            for name, choose_steps in _BASELINES.items()
        ),
        *(
            scope.number("baseline_published", _chance(choose_steps, published), condition=name)
            for name, choose_steps in _BASELINES.items()
            if published is not None
        ),
    ]


def _within_distance(distance: int) -> StepScorer:
    return lambda true_step, named_step: abs(named_step - true_step) <= distance


def _mean_or_zero(values: Iterable[float]) -> float:
    """Return the mean of values, 0 if there are none."""
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else 0.0


_PARTS: Final[Mapping[str, Callable[[Location], object]]] = {
    "location": itemgetter(0),
    "category": itemgetter(1),
    "joint": itemgetter(0, 1),
}
"""The parts of a location that are compared, each with a function that returns it."""


def places_figures(
    scope: FigureScope, questions: Sequence[Question], answers: Answers, resampling: Resampling
) -> Iterator[Figure]:
    """Score the locations of failures: by step, by category, and by both together.

    Args:
        scope: The scope of the counts; the figures of a part have the scope ``match``.
        questions: The questions of the set.
        answers: The answers of one judge.
        resampling: The resamples of the traces.
    """
    asked_count = sum(question.trace_id in answers.by_trace for question in questions)
    yield scope.number("asked", asked_count)
    yield scope.number("not_asked", len(questions) - asked_count)
    for part in _PARTS:
        part_scope = replace(scope, name="match", group=part)
        yield from _match_figures(part_scope, part, questions, answers, resampling)


def _match_figures(
    scope: FigureScope,
    part: str,
    questions: Sequence[Question],
    answers: Answers,
    resampling: Resampling,
) -> list[Figure]:
    """Return precision, recall and F1 of the named locations, counted over all traces together.

    ``part`` is the part of a location that must be equal. Parts with a category are not scored if
    the judge used another taxonomy.
    """
    part_of = _PARTS[part]
    is_scored = part == "location" or answers.uses_set_taxonomy
    rows = []
    for question in questions:
        if is_scored and question.trace_id in answers.by_trace:
            true = set(map(part_of, question.truth.locations))
            named = set(map(part_of, answers.by_trace[question.trace_id].locations))
            rows.append((len(true & named), len(named), len(true)))
    right_counts, named_counts, true_counts = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    hits_and_cases = {
        "precision": (right_counts, named_counts),
        "recall": (right_counts, true_counts),
        "f1": (2 * right_counts, named_counts + true_counts),
        # The mean recall of the traces that have a true location.
        "per_trace": (ratio(right_counts, true_counts, 0.0), np.sign(true_counts)),
    }
    return [
        scope.number("matching_locations", int(right_counts.sum())),
        scope.number("named_locations", int(named_counts.sum())),
        scope.number("true_locations", int(true_counts.sum())),
        *(
            scope.figure(statistic, share_of_traces(np.stack(counts, axis=1), resampling))
            for statistic, counts in hits_and_cases.items()
        ),
    ]
