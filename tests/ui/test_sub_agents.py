"""The steps of sub-agents, and the steps below a step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from mast_tui.traces.model import Role, Span, SpanKind
from mast_tui.traces.sub_agent_steps import SubAgentFinder
from mast_tui.ui.trace_view.folding import FoldedSteps, steps_of_sub_agent, steps_under
from tests.ui.long_trace import GlancedTrace, LongTrace

CALL = SpanKind.TOOL_CALL
RESULT = SpanKind.TOOL_RESULT
SAYS = SpanKind.MESSAGE


@dataclass
class Step:
    key: str
    kind: SpanKind = SAYS
    parent: str | None = None
    agent: str = "main"
    place: str = "line 1"
    role: Role = Role.AGENT


class ListedTrace(LongTrace):
    """A trace of these steps."""

    def __init__(self, *steps: Step) -> None:
        super().__init__(len(steps))
        self.steps = steps

    def span(self, index: int, /) -> Span:
        step = self.steps[index]
        return replace(super().span(index), start=None, end=None, **vars(step))


def finder_of(trace: LongTrace) -> SubAgentFinder:
    finder = SubAgentFinder()
    finder.read(trace.span(index) for index in range(len(trace)))
    return finder


def beginnings(trace: LongTrace) -> list[tuple[int, int]]:
    finder = finder_of(trace)
    blocks = (finder.beginning_at(index) for index in range(len(trace)))
    return [block for block in blocks if block is not None]


NESTED = ListedTrace(
    Step("u1"),
    Step("c1:call", CALL),
    Step("t1/u1", parent="c1:call", agent="user", role=Role.USER),
    Step("t1/c2:call", CALL, parent="c1:call", agent="helper"),
    Step("t2/u1", parent="t1/c2:call", agent="inner"),
    Step("t2/c3:call", CALL, parent="t1/c2:call", agent="inner"),
    Step("t2/c3:result", RESULT, parent="t2/c3:call", agent="inner"),
    Step("t1/c2:result", RESULT, parent="t1/c2:call", agent="helper"),
    Step("t1/u9", parent="c1:call", agent="helper"),
    Step("c1:result", RESULT, parent="c1:call"),
    Step("u2"),
)


def test_folds_of_nested_sub_agents() -> None:
    assert beginnings(NESTED) == [(2, 9), (4, 7)]
    assert steps_of_sub_agent(NESTED, 2, 9) == FoldedSteps(2, 9, "helper")
    assert steps_of_sub_agent(NESTED, 4, 7) == FoldedSteps(4, 7, "inner")
    finder = finder_of(NESTED)
    assert steps_under(NESTED, 1, finder) == FoldedSteps(2, 10, "helper", 1)
    assert steps_under(NESTED, 3, finder) == FoldedSteps(4, 8, "inner", 3)
    assert steps_under(NESTED, 5, finder) == FoldedSteps(6, 7, "", 5)
    assert steps_under(NESTED, 0, finder) is None
    assert steps_under(NESTED, 10, finder) is None


def test_two_sub_agents_in_sequence() -> None:
    trace = ListedTrace(
        Step("c1:call", CALL),
        Step("c2:call", CALL),
        Step("t1/a", parent="c1:call"),
        Step("t1/b", parent="c1:call"),
        Step("c1:result", RESULT, parent="c1:call"),
        Step("t2/a", parent="c2:call"),
        Step("t2/b", parent="c2:call"),
        Step("c2:result", RESULT, parent="c2:call"),
    )
    assert beginnings(trace) == [(2, 4), (5, 7)]
    assert steps_under(trace, 0, finder_of(trace)) == FoldedSteps(2, 5, "main", 0)
    assert steps_under(trace, 1, finder_of(trace)) == FoldedSteps(5, 8, "main", 1)


def test_sub_agents_of_files_and_parts_of_records() -> None:
    parts = ListedTrace(
        Step("u1"),
        Step("m1", CALL),
        Step("m1/2", CALL),
        Step("m2/1"),
        Step("m2/2"),
        Step("m3/1", RESULT, parent="m1"),
        Step("m3/2", RESULT, parent="m1/2"),
    )
    assert beginnings(parts) == []
    trace = ListedTrace(
        Step("u1"),
        Step("t1/a", place="agent-1.jsonl line 1"),
        Step("t1/b", place="agent-1.jsonl line 2"),
    )
    assert beginnings(trace) == [(1, 3)]


def test_an_open_sub_agent_ends_at_the_last_known_step() -> None:
    finder = SubAgentFinder()
    finder.read(NESTED.span(index) for index in range(4))
    assert finder.beginning_at(2) == (2, 4)
    finder.read(NESTED.span(index) for index in range(4, 8))
    assert (finder.beginning_at(2), finder.beginning_at(4)) == ((2, 8), (4, 7))


class Threaded(ListedTrace):
    """A trace that knows the threads of its spans."""

    def has_one_thread(self, first: int, end: int, /) -> bool:
        threads = {step.key.rpartition("/")[0] for step in self.steps[first:end]}
        return len(threads) == 1


def test_steps_of_one_thread_are_skipped() -> None:
    trace = Threaded(*NESTED.steps)
    for slices in range(1, 12):
        finder = SubAgentFinder()
        while finder.span_count < len(trace):
            finder.read_until(trace, min(len(trace), finder.span_count + slices))
        blocks = (finder.beginning_at(index) for index in range(len(trace)))
        assert [block for block in blocks if block is not None] == [(2, 9), (4, 7)], slices


@pytest.mark.slow
def test_a_long_thread_is_skipped() -> None:
    trace = GlancedTrace(100_000)
    finder = SubAgentFinder()
    finder.read_until(trace, 100_000)
    assert (trace.asked, finder.span_count) == (2, 100_000)


def test_a_million_steps_are_searched_in_part() -> None:
    trace = LongTrace(1_000_000)
    finder = SubAgentFinder()
    assert steps_under(trace, 5, finder) is None
    assert trace.asked <= 100
