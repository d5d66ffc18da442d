"""Alignment of two runs: equal steps, differences and the point of divergence."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.traces.alignment import Likeness, RunAlignment, align
from mast_tui.traces.model import Trace
from tests.judges.memory_trace import MemoryTrace

pytestmark = pytest.mark.slow

WORDS = ("pod", "log", "error", "config", "restart", "memory", "disk", "port", "queue", "mail")
TOOLS = ("shell", "search", "edit", "browse")

RUNS = 200


def start() -> MemoryTrace:
    return MemoryTrace().user("Find out why the shop is slow.")


def signs_of(found: RunAlignment) -> list[str]:
    """Each place in few signs, numbers from 1."""
    signs = dict(zip(Likeness, "=~|<>", strict=True))
    return [
        f"{'' if a is None else a + 1}{signs[likeness]}{'' if b is None else b + 1}"
        for a, b, likeness in found.pairs
    ]


def test_a_run_does_not_diverge_from_itself() -> None:
    trace = start().run("ls", "a b").think("Hm.").say("Done.")
    actual = align(trace, trace)
    assert signs_of(actual) == [f"{n}={n}" for n in range(1, len(trace) + 1)]
    assert (actual.first_difference, actual.fork, actual.cause) == (None, None, None)


def test_runs_diverge_where_one_call_has_two_results() -> None:
    one = start().run("get 1", "Error: no such order").say("It cannot be done.")
    other = start().run("get 1", '{"status": "paid"}').say("The order is paid, all is well.")
    actual = align(one, other)
    assert signs_of(actual) == ["1=1", "2=2", "3~3", "4|4"]
    assert (actual.fork, actual.cause) == (3, 2)


def test_other_arguments_are_a_difference_and_ids_in_results_are_none() -> None:
    one = start().run("curl -s host:25/mail", "id 7f3a9c21e0 at 12:01:07").run("ls", "a")
    other = start().run("curl -s host:587/mail", "id 00aa9c21e1 at 13:44:59").run("ls", "a")
    assert signs_of(align(one, other)) == ["1=1", "2~2", "3=3", "4=4", "5=5"]


def test_similar_messages_are_aligned() -> None:
    one = start().say("I will now look at the logs of the mail service.").run("ls", "a")
    other = start().say("I will now look at the logs of the mail service!").run("ls", "a")
    assert align(one, other).first_difference is None


def test_an_additional_step_is_a_difference_and_no_divergence() -> None:
    one, other = start(), start()
    for number in range(6):
        one.run(f"step {number}", f"{number} done")
        other.run(f"step {number}", f"{number} done")
        if number == 1:
            other.run("date", "Monday")
    actual = align(one, other)
    assert actual.pairs[actual.first_difference or 0] == (None, 5, Likeness.ONLY_B)
    assert actual.fork is None


@given(st.randoms(use_true_random=False), st.integers(0, 25), st.integers(0, 25))
def test_every_span_is_aligned_once_and_in_order(random: Random, one: int, other: int) -> None:
    a, b = start(), start()
    _go_on(a, random, one)
    _go_on(b, random, other)
    actual = align(a, b)
    assert [pair.a for pair in actual.pairs if pair.a is not None] == [*range(len(a))]
    assert [pair.b for pair in actual.pairs if pair.b is not None] == [*range(len(b))]
    for pair in actual.pairs:
        both = pair.a is not None and pair.b is not None
        assert both == (pair.likeness not in (Likeness.ONLY_A, Likeness.ONLY_B))


def test_planted_forks_are_found() -> None:
    """Of runs that part at a known call; other words and steps are strewn in before it, and steps
    that both do behind it."""
    exact = near = 0
    for seed in range(RUNS):
        a, b, (planted_a, planted_b) = _forked(Random(seed))
        actual = align(a, b)
        assert actual.fork is not None
        pair = actual.pairs[actual.fork]
        off = pair.a - planted_a if pair.a is not None else (pair.b or 0) - planted_b
        exact += off == 0
        near += abs(off) <= 3
    assert exact >= 0.8 * RUNS
    assert near >= 0.95 * RUNS


def _forked(random: Random) -> tuple[Trace, Trace, tuple[int, int]]:
    """Two runs that are alike up to one call, and where that stands in each."""
    a, b = start(), start()
    for _ in range(random.randint(3, 25)):
        tool, words, answer = random.choice(TOOLS), _words(random, 6), _words(random, 12)
        if random.random() < 0.3:
            thought = _words(random, 10)
            a.say(thought)
            b.say(thought if random.random() < 0.7 else _words(random, 10))
        for run in (a, b):
            if random.random() < 0.05:
                run.run(f"{tool} {_words(random, 5)}", _words(random, 8))
            run.run(f"{tool} {words}", answer)
    planted = (len(a), len(b))
    for _ in range(random.randint(3, 20)):
        for run in (a, b):
            _go_on(run, random, random.randint(1, 2))
        if random.random() < 0.1:  # both do the same, by the way
            words, answer = _words(random, 6), _words(random, 12)
            for run in (a, b):
                run.run(f"shell {words}", answer)
    return a, b, planted


def _go_on(run: MemoryTrace, random: Random, steps: int) -> None:
    for _ in range(steps):
        run.run(f"{random.choice(TOOLS)} {_words(random, 6)}", _words(random, 12))


def _words(random: Random, count: int) -> str:
    return " ".join(random.choice(WORDS) for _ in range(count))
