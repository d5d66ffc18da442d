"""Trials of a task, made by seed, whose failed runs leave the way at a known step."""

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

_Does = tuple[str, str]
"""A tool, and what it is asked."""


@dataclass(frozen=True)
class Trials:
    """The runs of a task, and the index of the planted step by trace id."""

    runs: Sequence[MemoryTrace]
    planted: Mapping[str, int]


def planted_trials(random: Random) -> Trials:
    """Make 8 to 24 runs of a task, a third at least of each outcome.

    Up to a step all go the same way, with steps of their own, steps left out, and steps in other
    words in between, and looks around that any run may take. There the failed ones do one wrong
    thing, some in other words, then go their own ways, on which they meet again. A tenth of them
    fails for no reason that they share.
    """
    runs = random.randint(8, 24)
    failing = random.randint(-(-runs // 3), runs - -(-runs // 3))
    way = [_step(random) for _ in range(random.randint(6, 30))]
    fork = random.randint(2, len(way) - 3)
    wrong, looks = _step(random, 10), [_step(random, 3) for _ in range(5)]
    common = [_step(random) for _ in range(6)]
    made, planted = [], {}
    for number in range(runs):
        fails = number < failing
        run = _run(f"{'failed' if fails else 'succeeded'}-{number}", fails)
        alone = fails and random.random() < 0.1
        parts = random.randint(2, len(way) - 3) if alone else fork
        for step in way[:parts] if fails else way:
            _take(run, random, step, looks)
        if fails:
            if not alone:
                tool, words = _reworded(random, wrong) if random.random() < 0.15 else wrong
                planted[run.identity.trace_id] = len(run)
                run.call(tool, words, _words(random, 12))
            for _ in range(random.randint(3, 20)):
                ways = (random.choice(common), random.choice(way), _step(random))
                (step,) = random.choices(ways, (3, 1, 6))
                _do(run, random, step)
        made.append(run)
    return Trials(made, planted)


def aimless_trials(random: Random, runs: int) -> Trials:
    """Make runs whose outcomes are random."""
    way, looks = [_step(random) for _ in range(20)], [_step(random, 3) for _ in range(20)]
    made = []
    for number in range(runs):
        run = _run(f"run-{number}", random.random() < 0.5)
        for step in way:
            _take(run, random, random.choice(looks) if random.random() < 0.3 else step, looks)
        made.append(run)
    return Trials(made, {})


def long_trials(random: Random, runs: int, steps: int) -> Trials:
    """Make runs of so many spans each, of which every third step is their own."""
    way = [_step(random) for _ in range(steps // 2)]
    made = []
    for number in range(runs):
        run = _run(f"run-{number}", number % 2 == 0)
        for step in way:
            _do(run, random, _step(random) if random.random() < 0.33 else step)
        made.append(run)
    return Trials(made, {})


def _run(trace_id: str, fails: bool) -> MemoryTrace:
    outcome = Outcome.FAILED if fails else Outcome.SUCCEEDED
    meta = TraceMeta(task_id="7", benchmark="planted", outcome=outcome)
    return MemoryTrace(trace_id, meta).user("Find out why the shop is slow.")


def _take(run: MemoryTrace, random: Random, step: _Does, looks: Sequence[_Does]) -> None:
    """Go a step of the way, at times with a step beside it."""
    if random.random() < 0.1:
        _do(run, random, random.choice(looks))
    if random.random() < 0.05:
        _do(run, random, _step(random))
    if random.random() < 0.95:
        _do(run, random, _reworded(random, step) if random.random() < 0.1 else step)


def _do(run: MemoryTrace, random: Random, step: _Does) -> None:
    tool, words = step
    if random.random() < 0.2:
        run.think(_words(random, 12))
    run.call(tool, words, _words(random, 12))


def _step(random: Random, words: int = 6) -> _Does:
    return random.choice(TOOLS), _words(random, words)


def _reworded(random: Random, step: _Does) -> _Does:
    words = step[1].split()
    words[random.randrange(len(words))] = random.choice(WORDS)
    return step[0], " ".join(words)


def _words(random: Random, count: int) -> str:
    return " ".join(random.choice(WORDS) for _ in range(count))
