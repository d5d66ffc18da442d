"""What is found behind the screen: from columns as from spans, in small steps, and only once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mast_tui.traces.model import Loaded, Span, SpanKind, SpanStatus
from mast_tui.ui.trace_view.background_index import (
    COMPARED,
    SPANS,
    BackgroundIndex,
    TraceFacts,
    index_more,
)
from mast_tui.ui.trace_view.folding import FoldedRun
from tests.ui.long_trace import GlancedTrace, calling


@pytest.mark.parametrize(("agents", "cells"), [(["main", "helper"], 6), (["編集者"], 6), ([""], 0)])
def test_the_widest_name_is_known(agents: list[str], cells: int) -> None:
    trace = GlancedTrace(9, lambda span: replace(span, agent=agents[span.index % len(agents)]))
    survey = BackgroundIndex()
    for _ in index_more(trace, survey, reads=True):
        pass
    assert survey.facts == TraceFacts(9, 0.0, 9.0, tuple(agents), cells)


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
    survey.search_repeats = True
    before = trace.advances, trace.glanced_at, trace.asked
    for _ in index_more(trace, survey, reads=True):
        now = trace.advances, trace.glanced_at, trace.asked
        advanced, glanced_at, asked = (b - a for a, b in zip(before, now, strict=True))
        assert advanced <= 1
        assert not (advanced and glanced_at)
        assert glanced_at <= SPANS + COMPARED
        assert asked <= COMPARED + 2
        before = now


@pytest.mark.slow
def test_spans_are_looked_at_while_the_trace_is_read() -> None:
    trace = GrowingTrace(10_000, 30)
    survey = BackgroundIndex()
    for _ in index_more(trace, survey, reads=True):
        assert len(trace) - survey.totals.seen < SPANS + 30
        assert survey.repeats.seen == 0
    assert survey.totals.seen == 10_000
    assert survey.complete(trace)


def test_what_the_end_of_a_trace_tells_of_its_beginning_is_known_when_it_is_whole() -> None:
    trace = GrowingTrace(3050, 300)
    survey = BackgroundIndex()
    told = 0
    for _ in index_more(trace, survey, reads=True):
        told = max(told, survey.totals.seen)
        assert survey.totals.seen == survey.facts.seen == told
    assert list(survey.totals.errors) == list(range(0, 3050, 100))
    assert survey.facts.total == 3500.0


def test_a_trace_that_was_whole_from_the_beginning_is_glanced_at_once() -> None:
    trace = GlancedTrace(5000)
    survey = BackgroundIndex()
    assert list(index_more(trace, survey, reads=True)) == [False] * -(-5000 // SPANS)
    assert trace.glanced_at == 5000
    assert trace.asked == 2 * -(-5000 // SPANS)


def test_a_trace_that_another_reads_is_not_read_on() -> None:
    trace = GrowingTrace(5000, 300)
    trace.advance()
    survey = BackgroundIndex()
    for _ in index_more(trace, survey, reads=False):
        pass
    assert (trace.advances, survey.totals.seen) == (1, 300)
    assert survey.complete(trace)


def test_that_the_end_is_known_is_worth_telling_at_once() -> None:
    trace = GrowingTrace(1000, 300)
    told = [len(trace) for worth in index_more(trace, BackgroundIndex(), reads=True) if worth]
    assert told == [1000]


def test_repeated_steps_are_looked_for_once_they_are_wanted_and_all_is_known() -> None:
    trace = GlancedTrace(100, lambda span: calling(span, "same"))
    survey = BackgroundIndex()
    assert all(not worth for worth in index_more(trace, survey, reads=True))
    assert survey.repeats.run_at(50) is None
    survey.search_repeats = True
    assert not survey.complete(trace)
    assert list(index_more(trace, survey, reads=True))
    assert survey.repeats.run_at(50) == FoldedRun(0, 100, 1)
    assert survey.complete(trace)


def test_kinds_and_errors_are_told_as_far_as_was_looked() -> None:
    trace = GlancedTrace(600, lambda span: replace(span, status=SpanStatus.ERROR))
    survey = BackgroundIndex()
    assert survey.step(trace, 200)
    assert survey.totals.errors_in(0, 600) == 200
    assert trace.span(0).kind is SpanKind.MESSAGE
