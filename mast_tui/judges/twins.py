"""The judge of paired runs: it compares the trials of a task for steps only failed runs share."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from random import Random
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.fuzz import ratio
from rapidfuzz.process import cdist

from mast_tui.counts import counted
from mast_tui.judges.protocol import Judgement
from mast_tui.labels import Evidence, Finding
from mast_tui.traces.alignment import is_action
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Outcome, SpanKind, Trace

VERSION: Final = 1

MODE: Final = "task_derailment"
"""The mode that the judge suggests: it sees where runs leave the path to the goal, not why."""

CHANCE: Final = 0.1
"""The highest probability that some step separates randomly permuted outcomes as well."""

NEARLY: Final = 0.75
"""The suggested step is the first that this share of the largest number of failed runs share."""

ALIKE: Final = 90.0
"""The similarity, of 100, from which two steps of one kind and tool count as the same."""

DEALS: Final = 500
"""The largest number of permutations of the outcomes; of more, so many are drawn at random."""

MOST_ALIKE: Final = 1_500
"""The largest number of different steps of one tool that are compared by similarity."""

COMPARED_CHARS: Final = 400
"""The number of code points at the beginning of a step that are compared."""

QUOTED_CHARS: Final = 240

_Table = NDArray[np.float32]

_SPACE: Final = re.compile(r"\s+")
_ID: Final = re.compile(r"\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b")


class _Action(NamedTuple):
    """An agent's action in a step, by which the steps of several runs are compared."""

    kind: SpanKind
    tool: str | None
    text: str


@dataclass(frozen=True, slots=True)
class SharedStep:
    """The step of a failed run by which the failed runs of its task differ from the others.

    Attributes:
        index: The index of its span in the run.
        sharing: The number of failed runs with such a step, this one included; no successful run
            has one.
        failed: The number of failed runs of the task.
        succeeded: The number of successful runs.
        chance: The share of random permutations of the outcomes in which some step separates the
            runs as well.
    """

    index: int
    sharing: int
    failed: int
    succeeded: int
    chance: float


@dataclass(frozen=True, slots=True)
class _Run:
    trace_id: str
    failed: bool
    actions: Sequence[tuple[int, int]]
    """The index of each step in which the agent acts, and the number of the action."""


@dataclass(slots=True)
class _Task:
    """The runs of one task, and the numbers of all actions in them."""

    runs: dict[str, _Run] = field(default_factory=dict)
    numbers: dict[_Action, int] = field(default_factory=dict)

    def add(self, trace: Trace) -> None:
        """Add a run that was read to its end."""
        actions = []
        for index in range(len(trace)):
            span = trace.span(index)
            if is_action(span):
                text = _ID.sub("0", trace.text(index)[:COMPARED_CHARS])
                action = _Action(span.kind, span.name, _SPACE.sub(" ", text).strip())
                actions.append((index, self.numbers.setdefault(action, len(self.numbers))))
        trace_id = trace.identity.trace_id
        failed = trace.meta.outcome is Outcome.FAILED
        self.runs[trace_id] = _Run(trace_id, failed, actions)

    def shared(self) -> Iterator[tuple[str, SharedStep]]:
        """Yield the id of each failed run that has a shared step, and that step."""
        runs = list(self.runs.values())
        failed = np.array([run.failed for run in runs])
        failures = int(failed.sum())
        successes = len(runs) - failures
        if comb(len(runs), successes) * CHANCE < 1:
            return
        same = np.zeros((len(self.numbers), len(runs)), dtype=np.float32)
        for column, run in enumerate(runs):
            same[[number for _, number in run.actions], column] = 1
        have = np.vstack([same, self._alike(same)])
        count = have.sum(axis=1)
        sharing = np.where(have @ failed == count, count, 0).astype(int)
        best = _most_by_chance(have, count, failed)
        for run in runs:
            if not run.failed or not run.actions:
                continue
            # A step counts with the same text, or with a similar text if more runs share that.
            shares = [
                max(sharing[number], sharing[number + len(same)]) for _, number in run.actions
            ]
            most = max(shares)
            chance = float((best >= most).mean())
            if most < 2 or chance > CHANCE:
                continue
            first = next(i for i, share in enumerate(shares) if share >= NEARLY * most)
            index = run.actions[first][0]
            yield run.trace_id, SharedStep(index, int(shares[first]), failures, successes, chance)

    def _alike(self, same: _Table) -> _Table:
        """Mark the runs that have each action or one with a similar text.

        Args:
            same: The runs that have each action, as actions × runs.
        """
        by_tool = defaultdict(list)
        for action, number in self.numbers.items():
            by_tool[action.kind, action.tool].append((number, action.text))
        alike = same.copy()
        for actions in by_tool.values():
            if 1 < len(actions) <= MOST_ALIKE:
                numbers, texts = zip(*actions, strict=True)
                near = cdist(texts, texts, scorer=ratio, score_cutoff=ALIKE, dtype=np.uint8) > 0
                alike[list(numbers)] = near.astype(np.float32) @ same[list(numbers)] > 0
        return alike


def _most_by_chance(have: _Table, count: _Table, failed: NDArray[np.bool_]) -> _Table:
    """Count the runs that share the best separating step, for each permutation of the outcomes.

    The permutations are all that exist, or a seeded sample of them. The maximum over all steps
    corrects for the number of steps (Westfall and Young 1993).

    Args:
        have: The runs that have each step, as steps × runs.
        count: The number of runs that have each step.
        failed: The runs that failed.
    """
    rows = np.unique(have[count > 1], axis=0)
    runs = len(failed)
    failures = int(failed.sum())
    if comb(runs, failures) <= DEALS:
        permutations = [list(chosen) for chosen in combinations(range(runs), failures)]
    else:
        random = Random(0)
        permutations = [list(np.flatnonzero(failed))]
        permutations += [random.sample(range(runs), failures) for _ in range(DEALS - 1)]
    permuted = np.zeros((runs, len(permutations)), dtype=np.float32)
    for column, chosen in enumerate(permutations):
        permuted[chosen, column] = 1
    shared = rows.sum(axis=1, keepdims=True)
    best: _Table = np.where(rows @ permuted == shared, shared, 0).max(axis=0, initial=0)
    return best


def comparable(traces: Iterable[Trace]) -> list[Trace]:
    """Return the runs of tasks that have both failed and successful runs."""
    by_task: defaultdict[tuple[str, str], list[Trace]] = defaultdict(list)
    for trace in traces:
        meta = trace.meta
        if meta.outcome is not Outcome.UNKNOWN and meta.same_task is not None:
            by_task[meta.same_task].append(trace)
    tasks = [runs for runs in by_task.values() if len({run.meta.outcome for run in runs}) > 1]
    return [run for runs in tasks for run in runs]


class TwinsJudge:
    """A judge that suggests where failed runs of a task leave the path of the successful ones.

    It has a verdict only where it suggests a step. It has none on runs without an outcome, without
    other runs of the task, or without a step that separates them better than chance.
    """

    name: Final = f"judge:twins@{VERSION}"
    looks_at: Final = (MODE,)

    def __init__(self, traces: Iterable[Trace]) -> None:
        """Compare the runs of each task.

        Args:
            traces: All runs. They are not kept, and one that cannot be read is skipped.
        """
        tasks: defaultdict[tuple[str, str], _Task] = defaultdict(_Task)
        by_words = 0
        for trace in traces:
            try:
                read_fully(trace)
                task = trace.meta.same_task
                if task is not None and trace.meta.outcome is not Outcome.UNKNOWN:
                    tasks[task].add(trace)
                    by_words += not trace.meta.task_id
            except OSError:
                continue  # the runner reports the error when it judges the trace
        self._by_words: Final = by_words
        self._tasks: Final = len(tasks)
        self._runs: Final = sum(len(task.runs) for task in tasks.values())
        self.shared: Final[Mapping[str, SharedStep]] = {
            trace_id: step for task in tasks.values() for trace_id, step in task.shared()
        }

    @property
    def summary(self) -> str:
        """The number of runs and tasks that were compared, as a sentence."""
        if not self._runs:
            return "no run has a task and an outcome, so there is nothing to compare"
        compared = f"comparing {counted(self._runs, 'run')} of {counted(self._tasks, 'task')}"
        if not self._by_words:
            return compared
        return (
            f"{compared}; {self._by_words:,} of them have no task_id, so their words tell the task"
        )

    def judge(self, trace: Trace, /) -> Judgement:
        """Suggest the step that only failed runs share, if this run has it."""
        step = self.shared.get(trace.identity.trace_id)
        if step is None:
            return Judgement(judged=())
        key = trace.span(step.index).key
        text = trace.text(step.index)
        begin = len(text) - len(text.lstrip())
        quote = text[begin : begin + QUOTED_CHARS].rstrip()
        why = (
            f"{step.sharing} of {step.failed} failed runs of this task do this at some time, "
            f"none of {step.succeeded} successful ones. With outcomes dealt at random, some step "
            f"would part the runs as well {step.chance:.0%} of the time. This says where, not "
            "why: the mode is yours to choose."
        )
        evidence = (
            Evidence(key=key, quote=quote, char_start=begin, char_end=begin + len(quote))
            if quote
            else None
        )
        finding = Finding(MODE, key, key, why, round(1 - step.chance, 2), evidence=evidence)
        return Judgement((finding,))
