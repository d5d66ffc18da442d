"""The judge of twins: over many trials of a task, the steps that only failed runs share."""

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

from mast_tui.judges.protocol import Judgement
from mast_tui.labels import Evidence, Finding
from mast_tui.traces.alignment import is_action
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Outcome, SpanKind, Trace

VERSION: Final = 1

MODE: Final = "task_derailment"
"""What it suggests: it sees where runs leave the way to the goal, and not why."""

CHANCE: Final = 0.1
"""With outcomes dealt at random, no step may part the runs as well more often than this."""

NEARLY: Final = 0.75
"""Of the steps that only failed runs share it is the first that so much of the most runs share."""

ALIKE: Final = 90.0
"""From which per cent of likeness on two steps of one kind and tool may be one."""

DEALS: Final = 500
"""How often outcomes are dealt at random where there are more ways than that to deal them."""

MOST_ALIKE: Final = 1_500
"""Of more different steps with one tool only those count as one that say the same."""

COMPARED_CHARS: Final = 400
"""Of longer steps only the beginning is compared, in code points."""

QUOTED_CHARS: Final = 240

_Table = NDArray[np.float32]

_SPACE: Final = re.compile(r"\s+")
_ID: Final = re.compile(r"\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b")


class _Does(NamedTuple):
    """What an agent does in a step, by which steps of several runs are compared."""

    kind: SpanKind
    tool: str | None
    text: str


@dataclass(frozen=True, slots=True)
class SharedStep:
    """The step of a failed run by which the failed runs of its task differ from the others.

    Attributes:
        index: Where it stands in the run.
        by: How many failed runs have such a step, this one among them; of the successful none has.
        failed: How many failed runs of the task there are.
        succeeded: How many successful ones.
        chance: How often some step parts the runs as well where outcomes are dealt at random.
    """

    index: int
    by: int
    failed: int
    succeeded: int
    chance: float


@dataclass(frozen=True, slots=True)
class _Run:
    trace_id: str
    failed: bool
    actions: Sequence[tuple[int, int]]
    """The index of each step in which the agent acts, and the number of what it does."""


@dataclass(slots=True)
class _Task:
    """The runs of one task, and all that is done in them, each thing under a number."""

    runs: dict[str, _Run] = field(default_factory=dict)
    numbers: dict[_Does, int] = field(default_factory=dict)

    def add(self, trace: Trace) -> None:
        """Take in a run that was read to its end."""
        actions = []
        for index in range(len(trace)):
            span = trace.span(index)
            if is_action(span):
                text = _ID.sub("0", trace.text(index)[:COMPARED_CHARS])
                does = _Does(span.kind, span.name, _SPACE.sub(" ", text).strip())
                actions.append((index, self.numbers.setdefault(does, len(self.numbers))))
        trace_id = trace.identity.trace_id
        failed = trace.meta.outcome is Outcome.FAILED
        self.runs[trace_id] = _Run(trace_id, failed, actions)

    def shared(self) -> Iterator[tuple[str, SharedStep]]:
        """For each failed run the step that only failed runs share, where there is one."""
        runs = list(self.runs.values())
        failed = np.array([run.failed for run in runs])
        bad, good = int(failed.sum()), int((~failed).sum())
        if comb(bad + good, good) * CHANCE < 1:
            return
        same = np.zeros((len(self.numbers), len(runs)), dtype=np.float32)
        for column, run in enumerate(runs):
            same[[number for _, number in run.actions], column] = 1
        have = np.vstack([same, self._alike(same)])
        count = have.sum(axis=1)
        by = np.where(have @ failed == count, count, 0).astype(int)
        best = _most_by_chance(have, count, failed)
        for run in runs:
            if not run.failed or not run.actions:
                continue
            # A step counts by the same words, or by much the same where more runs share these.
            shares = [max(by[number], by[number + len(same)]) for _, number in run.actions]
            most = max(shares)
            chance = float((best >= most).mean())
            if most < 2 or chance > CHANCE:
                continue
            place = next(at for at, share in enumerate(shares) if share >= NEARLY * most)
            yield (
                run.trace_id,
                SharedStep(run.actions[place][0], int(shares[place]), bad, good, chance),
            )

    def _alike(self, same: _Table) -> _Table:
        """Which runs do a thing in much the same words."""
        by_tool = defaultdict(list)
        for does, number in self.numbers.items():
            by_tool[does[:2]].append((number, does.text))
        alike = same.copy()
        for things in by_tool.values():
            if 1 < len(things) <= MOST_ALIKE:
                numbers, texts = zip(*things, strict=True)
                near = cdist(texts, texts, scorer=ratio, score_cutoff=ALIKE, dtype=np.uint8) > 0
                alike[list(numbers)] = near.astype(np.float32) @ same[list(numbers)] > 0
        return alike


def _most_by_chance(have: _Table, count: _Table, failed: NDArray[np.bool_]) -> _Table:
    """How many runs share the step that parts them best, for outcomes dealt in other ways.

    All ways there are, or some of them drawn by seed: the test of Westfall and Young (1993) by the
    maximum over all steps, so that looking at many steps makes no step stand out.
    """
    rows = np.unique(have[count > 1], axis=0)
    runs, bad = len(failed), int(failed.sum())
    if comb(runs, bad) <= DEALS:
        dealt = [list(some) for some in combinations(range(runs), bad)]
    else:
        random = Random(0)
        dealt = [list(np.flatnonzero(failed))]
        dealt += [random.sample(range(runs), bad) for _ in range(DEALS - 1)]
    deals = np.zeros((runs, len(dealt)), dtype=np.float32)
    for column, some in enumerate(dealt):
        deals[some, column] = 1
    shared = rows.sum(axis=1, keepdims=True)
    best: _Table = np.where(rows @ deals == shared, shared, 0).max(axis=0, initial=0)
    return best


def comparable(traces: Iterable[Trace]) -> list[Trace]:
    """The runs of those tasks in which some have failed and others have succeeded."""
    told: defaultdict[tuple[str, str], list[Trace]] = defaultdict(list)
    for trace in traces:
        meta = trace.meta
        if meta.outcome is not Outcome.UNKNOWN and meta.same_task is not None:
            told[meta.same_task].append(trace)
    return [
        run for runs in told.values() if len({run.meta.outcome for run in runs}) > 1 for run in runs
    ]


class TwinsJudge:
    """Suggests where failed runs of a task leave the way of the successful ones.

    It has a verdict only where it suggests something: of runs without twins, without an outcome,
    or that differ from their twins in no step by more than chance it says nothing.
    """

    name: Final = f"judge:twins@{VERSION}"
    looks_at: Final = (MODE,)

    def __init__(self, traces: Iterable[Trace]) -> None:
        """Compare the runs of each task.

        Args:
            traces: All runs; none is kept, and one that cannot be read is passed over.
        """
        tasks: defaultdict[tuple[str, str], _Task] = defaultdict(_Task)
        for trace in traces:
            try:
                read_fully(trace)
                task = trace.meta.same_task
                if task is not None and trace.meta.outcome is not Outcome.UNKNOWN:
                    tasks[task].add(trace)
            except OSError:
                continue  # whoever has it judged hears why
        self._tasks: Final = len(tasks)
        self._runs: Final = sum(len(task.runs) for task in tasks.values())
        self.shared: Final[Mapping[str, SharedStep]] = {
            trace_id: step for task in tasks.values() for trace_id, step in task.shared()
        }

    @property
    def words(self) -> str:
        """What was compared, in a sentence."""
        runs, tasks = self._runs, self._tasks
        if not runs:
            return "no run tells its task and its outcome, so there is nothing to compare"
        return f"comparing {runs} run{'s' * (runs > 1)} of {tasks} task{'s' * (tasks > 1)}"

    def judge(self, trace: Trace, /) -> Judgement:
        """Suggest the step that only failed runs share, if this is one of them."""
        step = self.shared.get(trace.identity.trace_id)
        if step is None:
            return Judgement(judged=())
        key, text = trace.span(step.index).key, trace.text(step.index)
        begin = len(text) - len(text.lstrip())
        quote = text[begin : begin + QUOTED_CHARS].rstrip()
        why = (
            f"{step.by} of {step.failed} failed runs of this task do this at some time, "
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
