"""Runs of repeated steps, and the earlier step that a step repeats."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.traces.model import Loaded, Span, SpanKind
from mast_tui.ui.trace_view.folding import MAX_PERIOD, FoldedRun
from mast_tui.ui.trace_view.repeats import (
    EARLIER_REACH,
    RepeatFinder,
    StepFeatures,
    earlier_repetition,
)
from tests.ui.long_trace import GlancedTrace, LongTrace, calling

FAR_APART = {"a": "list the pods", "b": "restart everything", "c": "what is 17 + 4?"}


def calls_of_steps(steps: str) -> LongTrace:
    return LongTrace(len(steps), lambda span: calling(span, FAR_APART[steps[span.index]]))


def calls(*arguments: str) -> LongTrace:
    return LongTrace(len(arguments), lambda span: calling(span, arguments[span.index]))


def runs_in(trace: LongTrace, slices: int = 1_000_000) -> tuple[FoldedRun, ...]:
    finder = RepeatFinder()
    while finder.seen < len(trace):
        finder.read_until(trace, min(len(trace), finder.seen + slices))
    return finder.runs()


@pytest.mark.parametrize(
    ("steps", "runs"),
    [
        ("abc", []),
        ("aaaa", [FoldedRun(0, 4, 1)]),
        ("caaaab", [FoldedRun(1, 5, 1)]),
        ("ababab", [FoldedRun(0, 6, 2)]),
        ("cabcabcab", [FoldedRun(0, 9, 3)]),
        ("aabaabaab", [FoldedRun(0, 9, 3)]),
        ("abababbbbbb", [FoldedRun(0, 4, 2), FoldedRun(5, 11, 1)]),
        ("aabb", [FoldedRun(0, 2, 1), FoldedRun(2, 4, 1)]),
        ("aaabccc", [FoldedRun(0, 3, 1), FoldedRun(4, 7, 1)]),
        # A longer run is over later than a short one behind it, which stays.
        ("aacbaacbaa", [FoldedRun(0, 8, 4), FoldedRun(8, 10, 1)]),
    ],
)
def test_runs_of_repeated_steps(steps: str, runs: list[FoldedRun]) -> None:
    assert list(runs_in(calls_of_steps(steps))) == runs


@given(st.text("abc", max_size=40), st.integers(1, 7))
def test_runs_are_whole_cycles_for_any_slices(steps: str, slices: int) -> None:
    runs = runs_in(calls_of_steps(steps), slices)
    assert runs == runs_in(calls_of_steps(steps))
    assert all(earlier.end <= later.first for earlier, later in pairwise(runs))
    for run in runs:
        assert 1 <= run.period <= MAX_PERIOD
        assert not run.nearly_equal
        assert run.times >= 2
        assert steps[run.first : run.end] == steps[run.first : run.hidden_from] * run.times


def test_similar_steps_are_near_repetitions() -> None:
    for arguments in (
        ("offset=0 limit=50", "offset=50 limit=50", "offset=1000 limit=50"),
        ("echo 'ok'", 'echo "ok"', "echo ok"),
        ("cat src/main.py", "cat src/lib.py", "cat src/util_test.py"),
        ("find the cause of the slow checkout page", "find the cause of a slow checkout page"),
    ):
        assert runs_in(calls(*arguments)) == (FoldedRun(0, len(arguments), 1, nearly_equal=True),)
    for arguments in (
        ("list the pods", "restart everything"),
        ("cat src/main.py", "rm src/main.py now"),
        ("", "delete"),
    ):
        assert runs_in(calls(*arguments)) == ()


def test_tools_agents_and_results_of_repeated_steps() -> None:
    def change(span: Span) -> Span:
        return calling(span, "same", tool=f"tool{span.index % 8}")

    assert runs_in(LongTrace(8, change)) == ()
    by_other = LongTrace(8, lambda span: replace(calling(span, "same"), agent=f"a{span.index}"))
    assert runs_in(by_other) == ()

    def pairs(span: Span) -> Span:
        if span.index % 2:
            return replace(span, kind=SpanKind.TOOL_RESULT, name="look")
        return calling(span, "same")

    def answers(span: Span) -> Span:
        return replace(span, kind=SpanKind.TOOL_RESULT, name="look")

    assert runs_in(LongTrace(10, pairs)) == (FoldedRun(0, 10, 2),)
    assert runs_in(LongTrace(10, answers)) == ()


def test_equal_steps_beside_similar_ones() -> None:
    trace = calls(*["page=1"] * 6, *["page=2"] * 6)
    assert runs_in(trace) == (FoldedRun(0, 6, 1), FoldedRun(6, 12, 1))
    trace = calls(*(f"page={number}" for number in range(9)))
    assert runs_in(trace) == (FoldedRun(0, 9, 1, nearly_equal=True),)


def test_a_run_is_known_before_it_ends() -> None:
    trace = calls_of_steps("b" + "a" * 99)
    trace.loaded = Loaded(0, 1, False)
    finder = RepeatFinder()
    # The last few steps may still belong to a run with a longer cycle.
    finder.read_until(trace, 50)
    assert (finder.runs(), finder.run_at(30)) == ((), FoldedRun(1, 42, 1))
    finder.read_until(trace, 80)
    assert finder.run_at(30) == FoldedRun(1, 72, 1)
    trace.loaded = Loaded(1, 1, True)
    finder.read_until(trace, 100)
    assert finder.runs() == (FoldedRun(1, 100, 1),)


TEXTS = ("list the pods", "list the pod", "restart everything", "page=1", "page=22", "")
steps = st.builds(
    lambda kind, tool, text: (kind, tool, text),
    st.sampled_from([SpanKind.TOOL_CALL, SpanKind.TOOL_CALL, SpanKind.TOOL_RESULT]),
    st.sampled_from(["look", "look", "act"]),
    st.sampled_from(TEXTS),
)
cycles = st.lists(
    st.tuples(st.lists(steps, min_size=1, max_size=5), st.integers(1, 5)), max_size=8
).map(lambda parts: [step for part, times in parts for step in part * times])


@given(cycles, st.integers(1, 30))
def test_skipped_steps_have_no_runs(
    step_fields: list[tuple[SpanKind, str, str]], slices: int
) -> None:
    def change(span: Span) -> Span:
        kind, tool, text = step_fields[span.index]
        return replace(calling(span, text, tool=tool), kind=kind)

    trace = GlancedTrace(len(step_fields), change)
    thorough = RepeatFinder()
    thorough._candidates = [(0, len(step_fields))]
    thorough.read_until(trace, len(step_fields))
    assert runs_in(trace, slices) == thorough.runs()


def test_the_repeated_step_is_the_nearest_within_reach() -> None:
    trace = calls("page=1", "page=2", "something else", "page=3", "page=1")
    assert (earlier_repetition(trace, 4), earlier_repetition(trace, 3)) == (0, 1)
    assert earlier_repetition(trace, 2) is None
    assert earlier_repetition(trace, 0) is None
    trace = LongTrace(1_000_000)
    assert earlier_repetition(trace, 999_999) is not None or trace.asked <= EARLIER_REACH + 1
    far = calls("first", *(f"{'xyz'[i % 3] * 9}" for i in range(EARLIER_REACH)), "first")
    assert earlier_repetition(far, len(far) - 1) is None


@given(st.text(max_size=300), st.text(max_size=300))
def test_resemblance_is_symmetric(first: str, second: str) -> None:
    span = LongTrace(1).span(0)
    a = StepFeatures(calling(span, first))
    b = StepFeatures(calling(span, second))
    assert a.resembles(b) == b.resembles(a)
    assert a.resembles(a)
    assert a.equals(b) <= a.resembles(b)
