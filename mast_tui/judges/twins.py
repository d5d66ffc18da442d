"""The judge of paired runs: it looks for steps that only failed runs of a task share."""

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
from mast_tui.labels import Evidence, Finding, Judgement
from mast_tui.traces.alignment import is_action
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Outcome, SpanKind, Trace

VERSION: Final = 1

MODE: Final = "task_derailment"
"""The suggested mode. The judge sees where runs leave the path to the goal, not why."""

CHANCE: Final = 0.1
"""The highest share of permutations in which some step may separate the runs as well."""

NEARLY: Final = 0.75
"""The suggested step is the first with at least this share of the largest number of sharing
runs."""

SIMILARITY: Final = 90.0
"""The similarity (0 to 100) from which two actions of one kind and tool count as the same."""

MOST_PERMUTATIONS: Final = 500
"""The most permutations of the outcomes; if there are more, a random sample of them is used."""

MOST_COMPARED: Final = 1_500
"""The most different actions of one tool that are compared by similarity."""

COMPARED_CHARS: Final = 400
"""The number of code points at the beginning of an action that are compared."""

QUOTED_CHARS: Final = 240

_Matrix = NDArray[np.float32]

_SPACE: Final = re.compile(r"\s+")
_ID: Final = re.compile(r"\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b")


class _Action(NamedTuple):
    """The action of an agent in a step; equal actions of several runs count as the same."""

    kind: SpanKind
    tool: str | None
    text: str


@dataclass(frozen=True, slots=True)
class SharedStep:
    """A step of a failed run that other failed runs share and no successful run has.

    Attributes:
        index: The index of its span in the run.
        sharing_count: The number of failed runs with the step, this run included.
        failed_count: The number of failed runs of the task.
        successful_count: The number of successful runs of the task.
        chance: The share of random permutations of the outcomes in which some step separates the
            runs as well.
    """

    index: int
    sharing_count: int
    failed_count: int
    successful_count: int
    chance: float


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of a task."""

    trace_id: str
    failed: bool
    actions: Sequence[tuple[int, int]]
    """Pairs of a step's index and the number of the action in it."""


@dataclass(slots=True)
class _Task:
    """The runs of one task, and the number of each distinct action."""

    runs: dict[str, _Run] = field(default_factory=dict)
    numbers: dict[_Action, int] = field(default_factory=dict)

    def add(self, trace: Trace) -> None:
        """Add a run that was read to its end.

        Actions that differ only in ids and white space get the same number.
        """
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

    def shared_steps(self) -> Iterator[tuple[str, SharedStep]]:
        """Yield the trace id and the shared step of each failed run that has such a step.

        A shared step occurs in at least two failed runs and in no successful run. It is significant
        at the level ``CHANCE`` in a permutation test.
        """
        runs = list(self.runs.values())
        is_failed = np.array([run.failed for run in runs])
        failed_count = int(is_failed.sum())
        success_count = len(runs) - failed_count
        if comb(len(runs), success_count) * CHANCE < 1:
            return
        has_action = np.zeros((len(self.numbers), len(runs)), dtype=np.float32)
        for column, run in enumerate(runs):
            has_action[[number for _, number in run.actions], column] = 1
        # Each action has two rows: the runs with the action, and the runs with it or a similar
        # action.
        has_step = np.vstack([has_action, self._with_similar_actions(has_action)])
        run_counts = has_step.sum(axis=1)
        only_failed = has_step @ is_failed == run_counts
        sharing_counts = np.where(only_failed, run_counts, 0).astype(int)
        permuted_largest_counts = _largest_shared_counts(has_step, run_counts, is_failed)
        for run in runs:
            if not run.failed or not run.actions:
                continue
            # The larger count of the two rows of an action.
            step_counts = [
                max(sharing_counts[number], sharing_counts[number + len(has_action)])
                for _, number in run.actions
            ]
            largest_count = max(step_counts)
            chance = float((permuted_largest_counts >= largest_count).mean())
            if largest_count < 2 or chance > CHANCE:
                continue
            for (index, _), count in zip(run.actions, step_counts, strict=True):
                if count >= NEARLY * largest_count:
                    step = SharedStep(index, int(count), failed_count, success_count, chance)
                    yield run.trace_id, step
                    break

    def _with_similar_actions(self, has_action: _Matrix) -> _Matrix:
        """Return the runs with each action or a similar one of its tool, as actions × runs."""
        actions_by_tool = defaultdict(list)
        for action, number in self.numbers.items():
            actions_by_tool[action.kind, action.tool].append((number, action.text))
        has_similar = has_action.copy()
        for actions in actions_by_tool.values():
            if 1 < len(actions) <= MOST_COMPARED:
                numbers, texts = zip(*actions, strict=True)
                rows = list(numbers)
                is_similar = (
                    cdist(texts, texts, scorer=ratio, score_cutoff=SIMILARITY, dtype=np.uint8) > 0
                )
                has_similar[rows] = is_similar.astype(np.float32) @ has_action[rows] > 0
        return has_similar


def _largest_shared_counts(
    has_step: _Matrix, run_counts: _Matrix, is_failed: NDArray[np.bool_]
) -> _Matrix:
    """Return the largest number of runs that share a separating step, for each permutation.

    A step separates if only failed runs have it. The maximum over all steps corrects for the number
    of steps tested (Westfall and Young 1993). ``has_step`` is steps × runs.
    """
    # Equal rows have equal counts, and a step of a single run is not shared.
    distinct_rows = np.unique(has_step[run_counts > 1], axis=0)
    total_count = len(is_failed)
    failed_count = int(is_failed.sum())
    if comb(total_count, failed_count) <= MOST_PERMUTATIONS:
        failed_sets = [list(chosen) for chosen in combinations(range(total_count), failed_count)]
    else:
        random = Random(0)
        # The sample contains the real outcomes.
        failed_sets = [list(np.flatnonzero(is_failed))]
        for _ in range(MOST_PERMUTATIONS - 1):
            failed_sets.append(random.sample(range(total_count), failed_count))
    permuted = np.zeros((total_count, len(failed_sets)), dtype=np.float32)
    for column, failed_set in enumerate(failed_sets):
        permuted[failed_set, column] = 1
    row_counts = distinct_rows.sum(axis=1, keepdims=True)
    only_failed = distinct_rows @ permuted == row_counts
    largest_counts: _Matrix = np.where(only_failed, row_counts, 0).max(axis=0, initial=0)
    return largest_counts


def comparable_runs(traces: Iterable[Trace]) -> list[Trace]:
    """Return the runs of each task that has both failed and successful runs."""
    runs_by_task: defaultdict[tuple[str, str], list[Trace]] = defaultdict(list)
    for trace in traces:
        meta = trace.meta
        if meta.outcome is not Outcome.UNKNOWN and meta.task_key is not None:
            runs_by_task[meta.task_key].append(trace)
    all_runs: list[Trace] = []
    for runs in runs_by_task.values():
        if len({run.meta.outcome for run in runs}) > 1:
            all_runs += runs
    return all_runs


class TwinsJudge:
    """A judge that suggests where failed runs of a task leave the path of the successful runs.

    It gives a verdict only on runs in which it suggests a step.
    """

    name: Final = f"judge:twins@{VERSION}"
    looks_at: Final = (MODE,)

    def __init__(self, traces: Iterable[Trace]) -> None:
        """Compare the runs of each task.

        Args:
            traces: All runs. A run that cannot be read is skipped.
        """
        tasks: defaultdict[tuple[str, str], _Task] = defaultdict(_Task)
        without_task_id = 0
        for trace in traces:
            try:
                read_fully(trace)
                task = trace.meta.task_key
                if task is not None and trace.meta.outcome is not Outcome.UNKNOWN:
                    tasks[task].add(trace)
                    without_task_id += not trace.meta.task_id  # its task is identified by its text
            except OSError:
                continue  # the runner reports the error when it judges the trace
        self._without_task_id: Final = without_task_id
        self._tasks: Final = len(tasks)
        self._runs: Final = sum(len(task.runs) for task in tasks.values())
        self.shared_step_by_trace: Final[Mapping[str, SharedStep]] = {
            trace_id: step for task in tasks.values() for trace_id, step in task.shared_steps()
        }

    @property
    def summary(self) -> str:
        """The number of runs and tasks that were compared, as a sentence."""
        if not self._runs:
            return "no run has a task and an outcome, so there is nothing to compare"
        summary = f"comparing {counted(self._runs, 'run')} of {counted(self._tasks, 'task')}"
        if not self._without_task_id:
            return summary
        clause = f"{counted(self._without_task_id, 'run')} without a task_id"
        return f"{summary}; for {clause}, the text of the task identifies it"

    def judge(self, trace: Trace, /) -> Judgement:
        """Return a finding on the step of this run that only failed runs share, if there is one."""
        step = self.shared_step_by_trace.get(trace.identity.trace_id)
        if step is None:
            return Judgement(judged_modes=())
        key = trace.span(step.index).key
        text = trace.text(step.index)
        start = len(text) - len(text.lstrip())
        quote = text[start : start + QUOTED_CHARS].rstrip()
        rationale = (
            f"{step.sharing_count} of {step.failed_count} failed runs of this task do this at some "
            f"time, none of {step.successful_count} successful ones. If outcomes were "
            f"random, some step would separate the runs this well {step.chance:.0%} of the time. "
            "This shows where the runs differ, not why: choose the mode yourself."
        )
        evidence = None
        if quote:
            evidence = Evidence(key=key, quote=quote, char_start=start, char_end=start + len(quote))
        confidence = round(1 - step.chance, 2)
        finding = Finding(MODE, key, key, rationale, confidence, evidence=evidence)
        return Judgement((finding,))
