"""Sets of steps that contain the decisive step with 90 % probability (split conformal sets).

A model of plain features and of a judge's marks gives each step of a run a probability. A step is
in the set if the steps before it in the order of probability, and a part of its own, come to at
most the quantile of the same sum for the true steps of calibration runs (adaptive prediction sets:
Romano, Sesia and Candès 2020, arXiv 2006.02544). The set then contains the true step of another
run with the stated probability, whatever the model is worth; a poor model has large sets.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor, log, log1p
from typing import Final, TypedDict

import numpy as np
from numpy.typing import NDArray

from mast_tui.exam.figures import Answers, Question, StepMarks
from mast_tui.traces.model import Trace

LEVEL: Final = 0.9
"""The probability with which a set contains the step."""

SPLITS: Final = 100
LEAST_RUNS: Final = 30
"""The runs below which no model can be fitted and calibrated apart."""

FITTED: Final = 0.4
CALIBRATED: Final = 0.4
"""The shares of the runs for the model and for its calibration; the rest measures coverage."""

PENALTY: Final = 10.0
"""The weight of the squared coefficients: with few runs most features should count little."""

_MOST_STEPS: Final = 50
_NEAR: Final = 1e-6

MOST_CHARS: Final = 4_000
"""The characters of a step that its features are taken from."""

MOST_COMPARED: Final = 200
"""The earlier steps that a step is compared with, for repetition."""

_ERROR: Final = re.compile(
    r"error|failed|exception|traceback|not found|cannot|unable|invalid|incorrect|timeout", re.I
)
_CHECK: Final = re.compile(r"verif|check|validat", re.I)
_WORD: Final = re.compile(r"\w{4,}")

Matrix = NDArray[np.float64]


class CoverageJson(TypedDict):
    """The coverage of the sets of one judge, as the mean over splits.

    ``value`` is the share of runs whose set contains the decisive step, ``mean_share`` the mean
    share of a run's steps in its set; ``chance_share`` is that of sets of random steps with the
    same guarantee. All are None with too few runs.
    """

    value: float | None
    mean_share: float | None
    chance_share: float | None
    splits: int
    runs: int


def step_features(trace: Trace, numbers: Mapping[str, int]) -> tuple[tuple[float, ...], ...]:
    """Return the plain features of each step: place, errors, repetition, agent, length.

    Args:
        trace: The trace, read to its end.
        numbers: The number of the step of each span, by its key.
    """
    steps = max(numbers.values(), default=-1) + 1
    texts = [""] * steps
    agents = [""] * steps
    failed = [False] * steps
    for index in range(len(trace)):
        span = trace.span(index)
        step = numbers[span.key]
        texts[step] += trace.text(index)[: max(0, MOST_CHARS - len(texts[step]))]
        agents[step] = agents[step] or span.agent
        failed[step] = failed[step] or span.status.value == "error"
    word_sets = [frozenset(_WORD.findall(text.lower())) for text in texts]
    names_error = [_ERROR.search(text) is not None for text in texts]
    seen: set[str] = set()
    seen_agents: set[str] = set()
    features = []
    for step, text in enumerate(texts):
        position = step / max(1, steps - 1)
        overlaps = (
            len(word_sets[step] & other) / max(1, len(word_sets[step] | other))
            for other in word_sets[max(0, step - MOST_COMPARED) : step]
        )
        features.append(
            (
                position,
                position * position,
                float(step == 0),
                float(step == 1),
                float(step == steps - 1),
                step / (1 + step),
                float(failed[step]),
                float(names_error[step]),
                float(step + 1 < steps and names_error[step + 1]),
                len(word_sets[step] - seen) / max(1, len(word_sets[step])),
                max(overlaps, default=0.0),
                float(agents[step] not in seen_agents),
                log1p(len(text)) / 10,
                float(_CHECK.search(text) is not None),
                float("```" in text),
            )
        )
        seen |= word_sets[step]
        seen_agents.add(agents[step])
    return tuple(features)


@dataclass(frozen=True, slots=True)
class _Run:
    """A run: the features of its steps, and the number of the true step."""

    steps: Matrix
    true: int


def coverage(
    questions: Sequence[Question],
    features: Mapping[str, tuple[tuple[float, ...], ...]],
    answers: Answers | None = None,
    *,
    splits: int = SPLITS,
    seed: int = 0,
) -> CoverageJson:
    """Measure sets of steps by repeated splits of the runs.

    Args:
        questions: The runs with their truth.
        features: The plain features of the steps, by trace id.
        answers: The marks of a judge, which become features too; None for plain features alone.
        splits: The number of splits.
        seed: The seed of the splits.
    """
    runs = _runs_of(questions, features, answers)
    if len(runs) < LEAST_RUNS:
        return {
            "value": None,
            "mean_share": None,
            "chance_share": None,
            "splits": 0,
            "runs": len(runs),
        }
    rng = np.random.default_rng(seed)
    results = np.array([_split(runs, rng) for _ in range(splits)])
    value, mean_share, chance_share = (float(figure) for figure in results.mean(axis=0))
    return {
        "value": value,
        "mean_share": mean_share,
        "chance_share": chance_share,
        "splits": splits,
        "runs": len(runs),
    }


def _runs_of(
    questions: Sequence[Question],
    features: Mapping[str, tuple[tuple[float, ...], ...]],
    answers: Answers | None,
) -> list[_Run]:
    """Return the runs whose true step is known."""
    runs = []
    for question in questions:
        true = _true_step(question)
        plain = features.get(question.trace_id, ())
        if true is not None and true < len(plain):
            runs.append(_Run(_columns(question.trace_id, plain, answers), true))
    return runs


def _columns(
    trace_id: str, plain: tuple[tuple[float, ...], ...], answers: Answers | None
) -> Matrix:
    """Return the features of the steps of a trace, with the marks of a judge if there is one."""
    columns = np.array(plain)
    if answers is None:
        return columns
    marks = answers.by_trace.get(trace_id, StepMarks())
    return np.column_stack([columns, _marked(marks, len(plain))])


def _true_step(question: Question) -> int | None:
    """Return the decisive step, else the first failing one."""
    if question.truth.decisive is not None:
        return question.truth.decisive.step
    steps = (step for step, _ in question.truth.locations if isinstance(step, int))
    return min(steps, default=None)


def _marked(marks: StepMarks, steps: int) -> Matrix:
    """Return for each step whether a judge calls it decisive, and whether it marks it at all."""
    columns = np.zeros((steps, 2))
    if marks.decisive is not None and marks.decisive.step < steps:
        columns[marks.decisive.step, 0] = 1
    for step, _ in marks.locations:
        if isinstance(step, int) and step < steps:
            columns[step, 1] = 1
    return columns


@dataclass(frozen=True, slots=True)
class StepSets:
    """A fitted and calibrated model, which returns for a run the set of its steps to look at."""

    weights: Matrix
    mean: Matrix
    spread: Matrix
    limit: float

    @classmethod
    def calibrate(
        cls,
        fitted: Sequence[_Run],
        calibration: Sequence[_Run],
        rng: np.random.Generator,
        draw: float = 0.0,
    ) -> StepSets:
        """Fit the model on some runs, and its limit on others.

        Args:
            fitted: The runs for the model.
            calibration: The runs for the limit.
            rng: The source of chance.
            draw: Chooses between the two ranks around the level; 0 takes the safe one.
        """
        model = cls(*_fit(fitted), float("inf"))
        sums = [float(model.sums(run.steps, rng)[run.true]) for run in calibration]
        return replace(model, limit=_quantile(sums, draw))

    def sums(self, steps: Matrix, rng: np.random.Generator) -> Matrix:
        """Return for each step the sum that the limit is compared with.

        Args:
            steps: The features of the steps.
            rng: The source of chance.
        """
        return _sums(((steps - self.mean) / self.spread) @ self.weights, rng)

    def steps_of(
        self,
        trace_id: str,
        plain: tuple[tuple[float, ...], ...],
        answers: Answers | None,
    ) -> frozenset[int]:
        """Return the steps of a trace to look at; the same whenever it is asked.

        Args:
            trace_id: The trace.
            plain: The plain features of its steps.
            answers: The marks of the judge that the model was fitted with.
        """
        if not plain:
            return frozenset()
        digest = hashlib.sha256(trace_id.encode("utf-8", "surrogatepass")).digest()
        rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
        inside = self.sums(_columns(trace_id, plain, answers), rng) <= self.limit
        return frozenset(int(step) for step in np.flatnonzero(inside))

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
    """Fit sets for further runs: the model on half of the runs, its limit on the others.

    Args:
        questions: The runs with their truth.
        features: The plain features of the steps, by trace id.
        answers: The marks of a judge, which become features too; None for plain features alone.
        seed: The seed of the division.

    Returns:
        The sets, or None with too few runs.
    """
    runs = _runs_of(questions, features, answers)
    if len(runs) < LEAST_RUNS:
        return None
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(runs))
    half = len(runs) // 2
    fitted = [runs[i] for i in order[:half]]
    return StepSets.calibrate(fitted, [runs[i] for i in order[half:]], rng)


def _split(runs: Sequence[_Run], rng: np.random.Generator) -> tuple[float, float, float]:
    """Fit, calibrate and measure once; return coverage, share of steps, and that by chance."""
    order = rng.permutation(len(runs))
    fitted = round(FITTED * len(runs))
    calibrated = fitted + round(CALIBRATED * len(runs))
    calibration = [runs[i] for i in order[fitted:calibrated]]
    tests = [runs[i] for i in order[calibrated:]]
    # Chance chooses between the two ranks around the level, so that coverage is the level itself.
    draw = rng.random()
    sets = StepSets.calibrate([runs[i] for i in order[:fitted]], calibration, rng, draw)
    by_chance = _quantile([_chance(len(run.steps), rng) for run in calibration], draw)
    inside = [sets.sums(run.steps, rng) <= sets.limit for run in tests]
    covered = [bool(steps[run.true]) for steps, run in zip(inside, tests, strict=True)]
    shares = [float(steps.mean()) for steps in inside]
    return float(np.mean(covered)), float(np.mean(shares)), min(1.0, by_chance)


def _sums(scores: Matrix, rng: np.random.Generator) -> Matrix:
    """Return for each step the probability of the steps before it and of a part of its own."""
    chances = _chances(scores)
    higher = np.array([float(chances[chances > chance].sum()) for chance in chances])
    part: Matrix = rng.random(len(chances)) * chances
    return higher + part


def _chance(steps: int, rng: np.random.Generator) -> float:
    """Return the share of a run up to its true step, in a random order of the steps."""
    return float((rng.integers(steps) + rng.random()) / steps)


def _quantile(sums: Sequence[float], draw: float) -> float:
    """Return the limit of the sets; no limit if there are too few runs for the level.

    Args:
        sums: The sums of the true steps of the calibration runs.
        draw: A random number that chooses between the two ranks around the level.
    """
    exact = (len(sums) + 1) * LEVEL
    rank = floor(exact) + (draw < exact % 1)
    return float(np.sort(sums)[rank - 1]) if rank <= len(sums) else float("inf")


def _fit(runs: Sequence[_Run]) -> tuple[Matrix, Matrix, Matrix]:
    """Fit a conditional logit of the true step (McFadden 1974) by Newton's method, with a penalty.

    Returns:
        The weights, and the mean and spread by which features are standardised.
    """
    every = np.concatenate([run.steps for run in runs])
    mean = every.mean(axis=0)
    spread = every.std(axis=0)
    spread = np.where(spread == 0, 1, spread)
    standard = [(run.steps - mean) / spread for run in runs]
    penalty = PENALTY / len(runs)

    def loss(weights: Matrix) -> float:
        total = penalty * float(weights @ weights) / 2
        for run, steps in zip(runs, standard, strict=True):
            scores = steps @ weights
            highest = float(scores.max())
            total += (highest + log(float(np.exp(scores - highest).sum()))) / len(runs)
            total -= float(scores[run.true]) / len(runs)
        return total

    weights = np.zeros(every.shape[1])
    for _ in range(_MOST_STEPS):
        slope = -penalty * weights
        curve = penalty * np.eye(len(weights))
        for run, steps in zip(runs, standard, strict=True):
            chances = _chances(steps @ weights)
            expected = chances @ steps
            slope += (steps[run.true] - expected) / len(runs)
            curve += ((steps.T * chances) @ steps - np.outer(expected, expected)) / len(runs)
        change = np.linalg.solve(curve, slope)
        old_loss = loss(weights)
        # Where features part the runs well, a whole step leads too far.
        while loss(weights + change) > old_loss and float(np.abs(change).max()) > _NEAR:
            change = change / 2
        weights = weights + change
        if float(np.abs(change).max()) <= _NEAR:
            break
    return weights, mean, spread


def _chances(scores: Matrix) -> Matrix:
    """Return the probabilities of the steps of a run from their scores."""
    odds = np.exp(scores - scores.max())
    chances: Matrix = odds / odds.sum()
    return chances
