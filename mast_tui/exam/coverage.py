"""Sets of steps that contain the decisive step with 90 % probability (split conformal sets).

A model of plain features and of a judge's marks gives each step of a run a probability. The steps
are ordered by probability. The sum for a step is that of all steps before it and a random part of
its own. A step is in the set if this sum is at most a limit: the quantile of the sums of the true
steps in calibration runs (adaptive prediction sets: Romano, Sesia and Candès 2020, arXiv
2006.02544). The set of another run then contains the true step with the stated probability; a poor
model only has larger sets.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor, log, log1p
from typing import Final, NamedTuple

import numpy as np

from mast_tui.exam.figures import Answers, Question, StepMarks
from mast_tui.figures.bootstrap import Floats
from mast_tui.figures.record import Figure, FigureScope
from mast_tui.traces.model import Trace

LEVEL: Final = 0.9
"""The probability that a set contains the true step."""

SPLITS: Final = 100
LEAST_RUNS: Final = 30
"""The least number of runs with which a model can be fitted and calibrated separately."""

FITTED: Final = 0.4
CALIBRATED: Final = 0.4
"""The shares of the runs for the model and for its calibration; the rest measures coverage."""

PENALTY: Final = 10.0
"""The weight of the squared coefficients, so that with few runs most features count little."""

_MOST_ITERATIONS: Final = 50
_CONVERGED: Final = 1e-6

MOST_CHARS: Final = 4_000
"""The characters of a step from which its features are computed."""

MOST_COMPARED: Final = 200
"""The most earlier steps that are compared with a step, for repetition."""

_ERROR: Final = re.compile(
    r"error|failed|exception|traceback|not found|cannot|unable|invalid|incorrect|timeout", re.I
)
_CHECK: Final = re.compile(r"verif|check|validat", re.I)
_WORD: Final = re.compile(r"\w{4,}")


def step_features(trace: Trace, numbers: Mapping[str, int]) -> tuple[tuple[float, ...], ...]:
    """Return the plain features of each step, which depend on no judge.

    They are its position, errors, repetition, agent and length.

    Args:
        trace: The trace, read to its end.
        numbers: The number of the step of each span, by its key.
    """
    steps = _read_steps(trace, numbers)
    earlier_words: set[str] = set()
    earlier_agents: set[str] = set()
    features = []
    for number, step in enumerate(steps):
        position = number / max(1, len(steps) - 1)
        overlaps = (
            len(step.words & other.words) / max(1, len(step.words | other.words))
            for other in steps[max(0, number - MOST_COMPARED) : number]
        )
        features.append(
            (
                position,
                position * position,
                float(number == 0),
                float(number == 1),
                float(number == len(steps) - 1),
                number / (1 + number),
                float(step.has_failed),
                float(step.names_error),
                float(any(following.names_error for following in steps[number + 1 : number + 2])),
                len(step.words - earlier_words) / max(1, len(step.words)),
                max(overlaps, default=0.0),
                float(step.agent not in earlier_agents),
                log1p(len(step.text)) / 10,
                float(_CHECK.search(step.text) is not None),
                float("```" in step.text),
            )
        )
        earlier_words |= step.words
        earlier_agents.add(step.agent)
    return tuple(features)


class _Step(NamedTuple):
    """The parts of a step from which its features are computed."""

    text: str
    agent: str
    has_failed: bool
    words: frozenset[str]
    names_error: bool


def _read_steps(trace: Trace, numbers: Mapping[str, int]) -> list[_Step]:
    """Read the steps of a trace, each from the texts and agents of its spans."""
    step_count = max(numbers.values(), default=-1) + 1
    texts = [""] * step_count
    agents = [""] * step_count
    has_failed = [False] * step_count
    for index in range(len(trace)):
        span = trace.span(index)
        step = numbers[span.key]
        texts[step] += trace.text(index)[: max(0, MOST_CHARS - len(texts[step]))]
        agents[step] = agents[step] or span.agent
        has_failed[step] = has_failed[step] or span.status.value == "error"
    return [
        _Step(
            text,
            agent,
            failed,
            frozenset(_WORD.findall(text.lower())),
            _ERROR.search(text) is not None,
        )
        for text, agent, failed in zip(texts, agents, has_failed, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Run:
    """A run: the features of its steps, and the number of the true step."""

    steps: Floats
    true_step: int


def coverage_figures(
    scope: FigureScope,
    questions: Sequence[Question],
    features: Mapping[str, tuple[tuple[float, ...], ...]],
    answers: Answers | None = None,
    *,
    splits: int = SPLITS,
    seed: int = 0,
) -> list[Figure]:
    """Measure how often sets of steps contain the true step, by repeated splits of the runs.

    The shares are None with fewer than ``LEAST_RUNS`` runs.

    Args:
        scope: The scope of the figures.
        questions: The runs with their true marks.
        features: The plain features of the steps, by trace id.
        answers: The marks of a judge, as further features; None for plain features alone.
        splits: The number of splits.
        seed: The seed of the splits.
    """
    runs = _runs_of(questions, features, answers)
    means: Sequence[float | None] = (None, None, None)
    if len(runs) >= LEAST_RUNS:
        rng = np.random.default_rng(seed)
        means = np.mean([_split_figures(runs, rng) for _ in range(splits)], axis=0).tolist()
    return [
        *map(scope.number, ("coverage", "mean_share", "chance_share"), means),
        scope.number("splits", splits if len(runs) >= LEAST_RUNS else 0),
        scope.number("labelled_runs", len(runs)),
    ]


def _runs_of(
    questions: Sequence[Question],
    features: Mapping[str, tuple[tuple[float, ...], ...]],
    answers: Answers | None,
) -> list[_Run]:
    """Return the runs with known true steps and features."""
    runs = []
    for question in questions:
        true_step = _true_step(question)
        run_features = features.get(question.trace_id, ())
        if true_step is not None and true_step < len(run_features):
            runs.append(_Run(_feature_matrix(question.trace_id, run_features, answers), true_step))
    return runs


def _feature_matrix(
    trace_id: str, features: tuple[tuple[float, ...], ...], answers: Answers | None
) -> Floats:
    """Return the features of a trace, a row for each step, with columns for a judge's marks."""
    plain_matrix = np.array(features)
    if answers is None:
        return plain_matrix
    marks = answers.by_trace.get(trace_id, StepMarks())
    return np.column_stack([plain_matrix, _mark_columns(marks, len(features))])


def _true_step(question: Question) -> int | None:
    """Return the decisive step, or else the first step with a failure, if known."""
    if question.truth.decisive is not None:
        return question.truth.decisive.step
    return min(
        (step for step, _ in question.truth.locations if isinstance(step, int)), default=None
    )


def _mark_columns(marks: StepMarks, step_count: int) -> Floats:
    """Return a row for each step with two flags, 1 if the step is decisive, 1 if it has a mark.

    A mark without a step's number has no row.
    """
    is_decisive = np.zeros(step_count)
    has_mark = np.zeros(step_count)
    if marks.decisive is not None and marks.decisive.step < step_count:
        is_decisive[marks.decisive.step] = 1
    for step, _ in marks.locations:
        if isinstance(step, int) and step < step_count:
            has_mark[step] = 1
    return np.column_stack([is_decisive, has_mark])


@dataclass(frozen=True, slots=True)
class StepSets:
    """A fitted and calibrated model, which returns the set of likely decisive steps of a run.

    Attributes:
        weights: The weights of the standardised features.
        mean: The mean of each feature in the fitted runs.
        spread: The standard deviation of each feature in the fitted runs.
        limit: The highest result of ``cumulative_probabilities`` for a step in the set.
    """

    weights: Floats
    mean: Floats
    spread: Floats
    limit: float

    @classmethod
    def calibrate(
        cls,
        fitted: Sequence[_Run],
        calibration: Sequence[_Run],
        rng: np.random.Generator,
        draw: float = 0.0,
    ) -> StepSets:
        """Fit the model on some runs, and the limit of the sets on others.

        Args:
            fitted: The runs for the model.
            calibration: The runs for the limit.
            rng: The source of chance.
            draw: A random number in [0, 1) that rounds the rank of the limit; 0 rounds it up.
        """
        weights, mean, spread = _fit_model(fitted)
        model = cls(weights, mean, spread, limit=float("inf"))
        true_step_values = [
            float(model.cumulative_probabilities(run.steps, rng)[run.true_step])
            for run in calibration
        ]
        return replace(model, limit=_set_limit(true_step_values, draw))

    def cumulative_probabilities(self, steps: Floats, rng: np.random.Generator) -> Floats:
        """Return a sum of probabilities for each step; the step is in the set up to ``limit``.

        Args:
            steps: The features of the steps of a run.
            rng: The source of chance in the sums.
        """
        return _cumulative_probabilities(((steps - self.mean) / self.spread) @ self.weights, rng)

    def steps_of(
        self,
        trace_id: str,
        features: tuple[tuple[float, ...], ...],
        answers: Answers | None,
    ) -> frozenset[int]:
        """Return the likely decisive steps of a trace, the same at each call.

        Args:
            trace_id: The id of the trace, the seed of the random numbers.
            features: The features of its steps, without those from a judge's marks.
            answers: The answers of the judge whose marks are features of the model, or None.
        """
        if not features:
            return frozenset()
        digest = hashlib.sha256(trace_id.encode("utf-8", "surrogatepass")).digest()
        rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
        matrix = _feature_matrix(trace_id, features, answers)
        is_in_set = self.cumulative_probabilities(matrix, rng) <= self.limit
        return frozenset(int(step) for step in np.flatnonzero(is_in_set))

    @property
    def hash(self) -> str:
        """Eight hexadecimal digits that name the model and its limit."""
        numbers = [self.weights.tolist(), self.mean.tolist(), self.spread.tolist(), self.limit]
        return hashlib.sha256(json.dumps(numbers).encode()).hexdigest()[:8]


def fit_sets(
    questions: Sequence[Question],
    features: Mapping[str, tuple[tuple[float, ...], ...]],
    answers: Answers | None,
    *,
    seed: int = 0,
) -> StepSets | None:
    """Return a model for the likely decisive steps of further runs.

    The model is fitted on half of the runs, and calibrated on the other half. Return None with
    fewer than ``LEAST_RUNS`` runs.

    Args:
        questions: The runs with their true marks.
        features: The plain features of the steps, by trace id.
        answers: The marks of a judge, as further features; None for plain features alone.
        seed: The seed of the division.
    """
    runs = _runs_of(questions, features, answers)
    if len(runs) < LEAST_RUNS:
        return None
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(runs))
    fitted_count = len(runs) // 2
    fitted_runs = [runs[index] for index in order[:fitted_count]]
    calibration_runs = [runs[index] for index in order[fitted_count:]]
    return StepSets.calibrate(fitted_runs, calibration_runs, rng)


def _split_figures(runs: Sequence[_Run], rng: np.random.Generator) -> tuple[float, float, float]:
    """Fit, calibrate and test sets with one random division of the runs.

    Returns:
        The share of test runs with the true step in their set, the mean share of steps in the sets,
        and that share for sets of random steps with the same coverage.
    """
    order = rng.permutation(len(runs))
    fitted_end = round(FITTED * len(runs))
    calibration_end = fitted_end + round(CALIBRATED * len(runs))
    fitted_runs = [runs[index] for index in order[:fitted_end]]
    calibration_runs = [runs[index] for index in order[fitted_end:calibration_end]]
    test_runs = [runs[index] for index in order[calibration_end:]]
    # A random choice between the two ranks around the level makes the mean coverage equal to it.
    draw = rng.random()
    sets = StepSets.calibrate(fitted_runs, calibration_runs, rng, draw)
    # The share of each run up to its true step, in a random order of the steps. The limit is itself
    # a share of steps.
    random_shares = [
        float((rng.integers(len(run.steps)) + rng.random()) / len(run.steps))
        for run in calibration_runs
    ]
    chance_share = _set_limit(random_shares, draw)
    has_true_step = []
    shares = []
    for run in test_runs:
        is_in_set = sets.cumulative_probabilities(run.steps, rng) <= sets.limit
        has_true_step.append(bool(is_in_set[run.true_step]))
        shares.append(float(is_in_set.mean()))
    return float(np.mean(has_true_step)), float(np.mean(shares)), min(1.0, chance_share)


def _cumulative_probabilities(scores: Floats, rng: np.random.Generator) -> Floats:
    """Return for each step the sum of all higher probabilities and a random part of its own.

    With the random part, the coverage of the sets is exact on average.
    """
    probabilities = _step_probabilities(scores)
    higher_sums = np.array(
        [float(probabilities[probabilities > own].sum()) for own in probabilities]
    )
    own_parts: Floats = rng.random(len(probabilities)) * probabilities
    return higher_sums + own_parts


def _set_limit(sums: Sequence[float], draw: float) -> float:
    """Return the cumulative probability up to which steps are in the set of their run.

    ``sums`` has the cumulative probability of the true step in each calibration run. The share
    ``LEVEL`` of new runs then have their true step in the set. ``draw`` in [0, 1) rounds the rank
    of the limit up or down. With too few runs, the limit is infinite.
    """
    exact_rank = (len(sums) + 1) * LEVEL
    rank = floor(exact_rank)
    if draw < exact_rank % 1:
        rank += 1
    return float(np.sort(sums)[rank - 1]) if rank <= len(sums) else float("inf")


def _fit_model(runs: Sequence[_Run]) -> tuple[Floats, Floats, Floats]:
    """Fit a conditional logit of the true step (McFadden 1974) by Newton's method, with a penalty.

    Returns:
        The weights, and the mean and spread by which features are standardised.
    """
    all_steps = np.concatenate([run.steps for run in runs])
    mean = all_steps.mean(axis=0)
    spread = all_steps.std(axis=0)
    spread = np.where(spread == 0, 1, spread)
    runs = [replace(run, steps=(run.steps - mean) / spread) for run in runs]
    weights = np.zeros(all_steps.shape[1])
    for _ in range(_MOST_ITERATIONS):
        change = _newton_change(weights, runs)
        loss = _loss(weights, runs)
        # A full Newton step can be too long if the features separate the true steps well.
        while _loss(weights + change, runs) > loss and float(np.abs(change).max()) > _CONVERGED:
            change = change / 2
        weights = weights + change
        if float(np.abs(change).max()) <= _CONVERGED:
            break
    return weights, mean, spread


def _loss(weights: Floats, runs: Sequence[_Run]) -> float:
    """Return the mean negative log-likelihood of the true steps, with the penalty."""
    total = PENALTY / len(runs) * float(weights @ weights) / 2
    for run in runs:
        scores = run.steps @ weights
        highest = float(scores.max())
        total += (highest + log(float(np.exp(scores - highest).sum()))) / len(runs)
        total -= float(scores[run.true_step]) / len(runs)
    return total


def _newton_change(weights: Floats, runs: Sequence[_Run]) -> Floats:
    """Return the change of the weights by which Newton's method lowers the loss."""
    penalty = PENALTY / len(runs)
    gradient = -penalty * weights
    hessian = penalty * np.eye(len(weights))
    for run in runs:
        probabilities = _step_probabilities(run.steps @ weights)
        expected = probabilities @ run.steps
        gradient += (run.steps[run.true_step] - expected) / len(runs)
        covariance = (run.steps.T * probabilities) @ run.steps - np.outer(expected, expected)
        hessian += covariance / len(runs)
    return np.asarray(np.linalg.solve(hessian, gradient), np.float64)


def _step_probabilities(scores: Floats) -> Floats:
    """Return the probabilities of the steps of a run from their scores (softmax)."""
    odds = np.exp(scores - scores.max())
    probabilities: Floats = odds / odds.sum()
    return probabilities
