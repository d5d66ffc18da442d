"""Random trials of a task whose failed runs leave the common path at a known step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from mast_tui.traces.model import Outcome, TraceMeta
from tests.judges.memory_trace import MemoryTrace

WORDS = (
    *("pod", "log", "error", "config", "restart", "memory", "disk", "port", "queue", "mail"),
    *("cache", "token", "proxy", "schema", "index", "batch", "worker", "shard", "limit", "quota"),
    *("backup", "route", "certificate", "timeout", "user", "order", "stock", "price", "session"),
)
TOOLS = ("shell", "search", "edit", "browse")

_Step = tuple[str, str]
"""A tool and its query."""


@dataclass(frozen=True)
class Trials:
    """The runs of a task, and the index of the planted step by trace id."""

    runs: Sequence[MemoryTrace]
    planted: Mapping[str, int]


def planted_trials(random: Random) -> Trials:
    """Make 8 to 24 runs of a task, a third at least of each outcome.

    Up to a certain step all follow one path, with some steps added, left out or reworded, and
    with checks that any run may do. There the failed runs do one wrong step, some reworded, and
    continue with random steps, of which they share some. A tenth of them fails without the step.
    """
    runs = random.randint(8, 24)
    failing = random.randint(-(-runs // 3), runs - -(-runs // 3))
    path = [_step(random) for _ in range(random.randint(6, 30))]
    fork = random.randint(2, len(path) - 3)
    wrong = _step(random, 10)
    checks = [_step(random, 3) for _ in range(5)]
    common = [_step(random) for _ in range(6)]
    trials = []
    planted = {}
    for number in range(runs):
        is_failed = number < failing
        run = _run(f"{'failed' if is_failed else 'succeeded'}-{number}", is_failed)
        is_unrelated = is_failed and random.random() < 0.1
        steps = random.randint(2, len(path) - 3) if is_unrelated else fork
        for step in path[:steps] if is_failed else path:
            _follow(run, random, step, checks)
        if is_failed:
            if not is_unrelated:
                tool, query = _reworded(random, wrong) if random.random() < 0.15 else wrong
                planted[run.identity.trace_id] = len(run)
                run.call(tool, query, _words(random, 12))
            for _ in range(random.randint(3, 20)):
                choices = (random.choice(common), random.choice(path), _step(random))
                (step,) = random.choices(choices, (3, 1, 6))
                _do(run, random, step)
        trials.append(run)
    return Trials(trials, planted)


def aimless_trials(random: Random, runs: int) -> Trials:
    path = [_step(random) for _ in range(20)]
    checks = [_step(random, 3) for _ in range(20)]
    trials = []
    for number in range(runs):
        run = _run(f"run-{number}", random.random() < 0.5)
        for step in path:
            _follow(run, random, random.choice(checks) if random.random() < 0.3 else step, checks)
        trials.append(run)
    return Trials(trials, {})


def long_trials(random: Random, runs: int, steps: int) -> Trials:
    """Make runs of this many spans each, of which every third step is their own."""
    path = [_step(random) for _ in range(steps // 2)]
    trials = []
    for number in range(runs):
        run = _run(f"run-{number}", number % 2 == 0)
        for step in path:
            _do(run, random, _step(random) if random.random() < 0.33 else step)
        trials.append(run)
    return Trials(trials, {})


def _run(trace_id: str, fails: bool) -> MemoryTrace:
    outcome = Outcome.FAILED if fails else Outcome.SUCCEEDED
    meta = TraceMeta(task_id="7", benchmark="planted", outcome=outcome)
    return MemoryTrace(trace_id, meta).user("Find out why the shop is slow.")


def _follow(run: MemoryTrace, random: Random, step: _Step, checks: Sequence[_Step]) -> None:
    """Do a step of the path, at times with another step before it."""
    if random.random() < 0.1:
        _do(run, random, random.choice(checks))
    if random.random() < 0.05:
        _do(run, random, _step(random))
    if random.random() < 0.95:
        _do(run, random, _reworded(random, step) if random.random() < 0.1 else step)


def _do(run: MemoryTrace, random: Random, step: _Step) -> None:
    tool, query = step
    if random.random() < 0.2:
        run.think(_words(random, 12))
    run.call(tool, query, _words(random, 12))


def _step(random: Random, word_count: int = 6) -> _Step:
    return random.choice(TOOLS), _words(random, word_count)


def _reworded(random: Random, step: _Step) -> _Step:
    query = step[1].split()
    query[random.randrange(len(query))] = random.choice(WORDS)
    return step[0], " ".join(query)


def _words(random: Random, count: int) -> str:
    return " ".join(random.choice(WORDS) for _ in range(count))
