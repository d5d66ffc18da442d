"""What is found behind the screen: from columns as from spans, in small steps, and only once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.traces.index.span_columns import ColumnsOfSteps
from mast_tui.traces.model import Loaded, Role, Span, SpanKind, SpanStatus
from mast_tui.ui.trace_view.background_index import (
    COMPARED,
    SPANS,
    BackgroundIndex,
    FactFinder,
    TraceFacts,
    look_on,
)
from mast_tui.ui.trace_view.folding import Run
from tests.ui.build import SmallTrace
from tests.ui.long_trace import GlancedTrace, calling

PLAIN = SmallTrace("a step").span(0)
times = st.one_of(st.none(), st.floats(0, 1e9))
spans = st.builds(
    lambda role, agent, start, end: replace(PLAIN, role=role, agent=agent, start=start, end=end),
    st.sampled_from([Role.AGENT, Role.USER, Role.TOOL]),
    st.sampled_from(["main", "helper", "編集者", ""]),
    times,
    times,
)


def facts_of(told: Sequence[Span]) -> TraceFacts:
    """What the spans tell, looked at one by one."""
    known = [span for span in told if span.start is not None]
    start = known[0].start if known else None
    total = 0.0
    for span in known:
        last = span.start if span.end is None else span.end
        assert last is not None
        assert start is not None
        total = max(total, last - start)
    agents = tuple(dict.fromkeys(span.agent for span in told if span.role is Role.AGENT))
    widths = {"main": 4, "helper": 6, "編集者": 6, "": 0}
    cells = max((widths[agent] for agent in agents), default=0)
    return TraceFacts(len(told), start, total, agents, cells)


@given(st.lists(spans, max_size=60), st.integers(1, 20))
def test_columns_tell_what_spans_do(told: list[Span], slices: int) -> None:
    finder, columns = FactFinder(), ColumnsOfSteps()
    for first in range(0, len(told), slices):
        finder.take(columns.columns(first, told[first : first + slices]))
        assert finder.facts == facts_of(told[: first + slices])


@given(st.lists(spans, max_size=60))
def test_shapes_that_were_told_before_their_spans_count_with_them(told: list[Span]) -> None:
    columns = ColumnsOfSteps()
    columns.columns(0, reversed(told))
    finder = FactFinder()
    for first in range(0, len(told), 7):
        finder.take(columns.columns(first, told[first : first + 7]))
        assert finder.facts == facts_of(told[: first + 7])


class GrowingTrace(GlancedTrace):
    """A trace that is read on, ``slice`` spans at a time."""

    def __init__(self, length: int, slices: int) -> None:
        super().__init__(0, self.as_known)
        self.whole, self.slices = length, slices
        self.loaded = Loaded(0, length, False)
        self.advances = 0

    def as_known(self, span: Span) -> Span:
        """How every hundredth step went is told when the trace is whole."""
        if self.loaded.complete and span.index % 100 == 0:
            return replace(span, status=SpanStatus.ERROR, end=span.index + 500.0)
        return span

    def advance(self, max_bytes: int = 1 << 20, /) -> bool:
        self.advances += 1
        self.length = min(self.whole, self.length + self.slices)
        self.loaded = Loaded(self.length, self.whole, self.length >= self.whole)
        return not self.loaded.complete


@pytest.mark.slow
def test_no_step_looks_at_much() -> None:
    trace = GrowingTrace(10_000, 30)
    survey = BackgroundIndex()
    survey.wanted = True
    before = trace.advances, trace.glanced_at, trace.asked
    for _ in look_on(trace, survey, reads=True):
        now = trace.advances, trace.glanced_at, trace.asked
        advanced, glanced_at, asked = (b - a for a, b in zip(before, now, strict=True))
        assert advanced <= 1
        assert not (advanced and glanced_at)
        assert glanced_at <= SPANS + COMPARED
        assert asked <= COMPARED + 2
        before = now


def test_spans_are_looked_at_while_the_trace_is_read() -> None:
    trace = GrowingTrace(10_000, 30)
    survey = BackgroundIndex()
    for _ in look_on(trace, survey, reads=True):
        assert len(trace) - survey.counts.seen < SPANS + 30
        assert survey.repeats.seen == 0
    assert survey.counts.seen == 10_000
    assert survey.complete(trace)


def test_what_the_end_of_a_trace_tells_of_its_beginning_is_known_when_it_is_whole() -> None:
    trace = GrowingTrace(3050, 300)
    survey = BackgroundIndex()
    told = 0
    for _ in look_on(trace, survey, reads=True):
        told = max(told, survey.counts.seen)
        assert survey.counts.seen == survey.facts.seen == told
    assert list(survey.counts.errors) == list(range(0, 3050, 100))
    assert survey.facts.duration == 3500.0


def test_a_trace_that_was_whole_from_the_beginning_is_glanced_at_once() -> None:
    trace = GlancedTrace(5000)
    survey = BackgroundIndex()
    assert list(look_on(trace, survey, reads=True)) == [False] * -(-5000 // SPANS)
    assert trace.glanced_at == 5000
    assert trace.asked == 2 * -(-5000 // SPANS)


def test_a_trace_that_another_reads_is_not_read_on() -> None:
    trace = GrowingTrace(5000, 300)
    trace.advance()
    survey = BackgroundIndex()
    for _ in look_on(trace, survey, reads=False):
        pass
    assert (trace.advances, survey.counts.seen) == (1, 300)
    assert survey.complete(trace)


def test_that_the_end_is_known_is_worth_telling_at_once() -> None:
    trace = GrowingTrace(1000, 300)
    told = [len(trace) for worth in look_on(trace, BackgroundIndex(), reads=True) if worth]
    assert told == [1000]


def test_repeated_steps_are_looked_for_once_they_are_wanted_and_all_is_known() -> None:
    trace = GlancedTrace(100, lambda span: calling(span, "same"))
    survey = BackgroundIndex()
    assert all(not worth for worth in look_on(trace, survey, reads=True))
    assert survey.repeats.run_at(50) is None
    survey.wanted = True
    assert not survey.complete(trace)
    assert list(look_on(trace, survey, reads=True))
    assert survey.repeats.run_at(50) == Run(0, 100, 1)
    assert survey.complete(trace)


def test_kinds_and_errors_are_told_as_far_as_was_looked() -> None:
    trace = GlancedTrace(600, lambda span: replace(span, status=SpanStatus.ERROR))
    survey = BackgroundIndex()
    assert survey.step(trace, 200)
    assert survey.counts.errors_in(0, 600) == 200
    assert trace.span(0).kind is SpanKind.MESSAGE
