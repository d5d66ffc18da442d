"""Runs of equal steps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus
from mast_tui.ui.trace_view.folding import MAX_PERIOD, MAX_REACH, FoldedRun, run_at, step_signature


def is_run(steps: str, run: FoldedRun) -> bool:
    """Whether the same cycle stands in ``steps`` again and again, whole, at least twice."""
    cycle = steps[run.first : run.first + run.period]
    return (
        run.first >= 0
        and run.end <= len(steps)
        and run.times >= 2
        and steps[run.first : run.end] == cycle * run.times
    )


def shortest_cycle_at(steps: str, index: int) -> int | None:
    """The shortest period of two equal cycles that hold ``index``, found by trying them all."""
    for period in range(1, MAX_PERIOD + 1):
        for first in range(max(0, index - 2 * period + 1), index + 1):
            if is_run(steps, FoldedRun(first, first + 2 * period, period)):
                return period
    return None


@given(st.text("abc", min_size=1, max_size=30), st.data())
def test_a_run_is_found_wherever_the_cursor_stands_in_it(steps: str, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(steps) - 1))
    run = run_at(index, len(steps), steps.__getitem__)
    period = shortest_cycle_at(steps, index)
    assert (run.period if run else None) == period
    if run is not None:
        assert is_run(steps, run)
        assert run.first <= index < run.end


@given(st.text("abc", min_size=1, max_size=30), st.data())
def test_no_cycle_of_a_run_is_left_out(steps: str, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(steps) - 1))
    run = run_at(index, len(steps), steps.__getitem__)
    if run is not None:
        before = FoldedRun(run.first - run.period, run.end, run.period)
        behind = FoldedRun(run.first, run.end + run.period, run.period)
        assert before.first < 0 or not is_run(steps, before)
        assert not is_run(steps, behind)


def test_a_run_of_any_length_costs_no_more_than_its_reach() -> None:
    asked: set[int] = set()

    def signature(step: int) -> int:
        asked.add(step)
        return 0

    run = run_at(500_000, 1_000_000, signature)
    assert run is not None
    assert run.first <= 500_000 < run.end
    assert len(asked) <= 2 * MAX_REACH + 1


def step(kind: SpanKind, *, agent: str = "a", name: str | None = None, preview: str = "") -> Span:
    return Span(
        0, "k", kind, Role.AGENT, agent, name, None, None, None, SpanStatus.OK, "", preview, True
    )


def test_results_look_equal_whatever_they_say_and_calls_only_with_what_they_ask() -> None:
    call, result = SpanKind.TOOL_CALL, SpanKind.TOOL_RESULT
    assert step_signature(step(result, preview="a")) == step_signature(step(result, preview="b"))
    assert step_signature(step(result, name="ls")) != step_signature(step(result, name="cat"))
    assert step_signature(step(call, preview="a")) != step_signature(step(call, preview="b"))
    assert step_signature(step(call, agent="a")) != step_signature(step(call, agent="b"))
    assert step_signature(step(call)) != step_signature(step(SpanKind.MESSAGE))
