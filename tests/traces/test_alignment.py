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

VOCABULARY = ("pod", "log", "error", "config", "restart", "memory", "disk", "port", "queue", "mail")
TOOLS = ("shell", "search", "edit", "browse")

SEEDS = 200


def new_trace() -> MemoryTrace:
    return MemoryTrace().user("Find out why the shop is slow.")


def symbols_of(alignment: RunAlignment) -> list[str]:
    """Return each pair of an alignment as two span numbers from 1 with a symbol between them."""
    symbols = dict(zip(Likeness, "=~|<>", strict=True))
    return [
        f"{'' if a is None else a + 1}{symbols[likeness]}{'' if b is None else b + 1}"
        for a, b, likeness in alignment.pairs
    ]


def test_a_run_does_not_diverge_from_itself() -> None:
    trace = new_trace().run("ls", "a b").think("Hm.").say("Done.")
    actual = align(trace, trace)
    assert symbols_of(actual) == [f"{n}={n}" for n in range(1, len(trace) + 1)]
    assert (actual.first_difference, actual.fork, actual.cause) == (None, None, None)


def test_runs_diverge_where_one_call_has_two_results() -> None:
    first = new_trace().run("get 1", "Error: no such order").say("It cannot be done.")
    second = new_trace().run("get 1", '{"status": "paid"}').say("The order is paid, all is well.")
    actual = align(first, second)
    assert symbols_of(actual) == ["1=1", "2=2", "3~3", "4|4"]
    assert (actual.fork, actual.cause) == (3, 2)


def test_other_arguments_are_a_difference_and_ids_in_results_are_none() -> None:
    first = new_trace().run("curl -s host:25/mail", "id 7f3a9c21e0 at 12:01:07").run("ls", "a")
    second = new_trace().run("curl -s host:587/mail", "id 00aa9c21e1 at 13:44:59").run("ls", "a")
    assert symbols_of(align(first, second)) == ["1=1", "2~2", "3=3", "4=4", "5=5"]


def test_similar_messages_are_aligned() -> None:
    first = new_trace().say("I will now look at the logs of the mail service.").run("ls", "a")
    second = new_trace().say("I will now look at the logs of the mail service!").run("ls", "a")
    assert align(first, second).first_difference is None


def test_an_additional_step_is_a_difference_and_no_divergence() -> None:
    first = new_trace()
    second = new_trace()
    for number in range(6):
        first.run(f"step {number}", f"{number} done")
        second.run(f"step {number}", f"{number} done")
        if number == 1:
            second.run("date", "Monday")
    actual = align(first, second)
    assert actual.pairs[actual.first_difference or 0] == (None, 5, Likeness.ONLY_B)
    assert actual.fork is None


@given(st.randoms(use_true_random=False), st.integers(0, 25), st.integers(0, 25))
def test_every_span_is_aligned_once_and_in_order(
    random: Random, a_steps: int, b_steps: int
) -> None:
    a = new_trace()
    b = new_trace()
    _add_random_steps(a, random, a_steps)
    _add_random_steps(b, random, b_steps)
    actual = align(a, b)
    assert [pair.a for pair in actual.pairs if pair.a is not None] == [*range(len(a))]
    assert [pair.b for pair in actual.pairs if pair.b is not None] == [*range(len(b))]
    for pair in actual.pairs:
        both = pair.a is not None and pair.b is not None
        assert both == (pair.likeness not in (Likeness.ONLY_A, Likeness.ONLY_B))


def test_planted_forks_are_found() -> None:
    """Runs diverge at a known call, with a few differences before it and shared steps after it."""
    exact = near = 0
    for seed in range(SEEDS):
        a, b, (planted_a, planted_b) = _forked(Random(seed))
        actual = align(a, b)
        assert actual.fork is not None
        pair = actual.pairs[actual.fork]
        distance = pair.a - planted_a if pair.a is not None else (pair.b or 0) - planted_b
        exact += distance == 0
        near += abs(distance) <= 3
    assert exact >= 0.8 * SEEDS
    assert near >= 0.95 * SEEDS


def _forked(random: Random) -> tuple[Trace, Trace, tuple[int, int]]:
    """Return two runs that are alike up to one call, and the index of the call in each."""
    a = new_trace()
    b = new_trace()
    for _ in range(random.randint(3, 25)):
        tool = random.choice(TOOLS)
        arguments = _random_words(random, 6)
        result = _random_words(random, 12)
        if random.random() < 0.3:
            thought = _random_words(random, 10)
            a.say(thought)
            b.say(thought if random.random() < 0.7 else _random_words(random, 10))
        for run in (a, b):
            if random.random() < 0.05:
                run.run(f"{tool} {_random_words(random, 5)}", _random_words(random, 8))
            run.run(f"{tool} {arguments}", result)
    planted = (len(a), len(b))
    for _ in range(random.randint(3, 20)):
        for run in (a, b):
            _add_random_steps(run, random, random.randint(1, 2))
        if random.random() < 0.1:  # both runs take the same step
            arguments = _random_words(random, 6)
            result = _random_words(random, 12)
            for run in (a, b):
                run.run(f"shell {arguments}", result)
    return a, b, planted


def _add_random_steps(run: MemoryTrace, random: Random, steps: int) -> None:
    for _ in range(steps):
        run.run(f"{random.choice(TOOLS)} {_random_words(random, 6)}", _random_words(random, 12))


def _random_words(random: Random, count: int) -> str:
    return " ".join(random.choice(VOCABULARY) for _ in range(count))
