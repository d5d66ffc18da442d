"""The index of a trace that is built in the background: in small steps, and each span once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mast_tui.traces.model import Loaded, Span, SpanStatus
from mast_tui.ui.trace_view.background_index import (
    COMPARISONS_PER_STEP,
    SPANS_PER_STEP,
    BackgroundIndex,
    TraceFacts,
    index_more,
)
from mast_tui.ui.trace_view.folding import FoldedRun
from tests.ui.long_trace import GlancedTrace, calling


@pytest.mark.parametrize(("agents", "cells"), [(["main", "helper"], 6), (["編集者"], 6), ([""], 0)])
def test_the_widest_name_is_measured(agents: list[str], cells: int) -> None:
    trace = GlancedTrace(9, lambda span: replace(span, agent=agents[span.index % len(agents)]))
    index = BackgroundIndex()
    for _ in index_more(trace, index, reads_to_end=True):
        pass
    assert index.facts == TraceFacts(9, 0.0, 9.0, tuple(agents), cells)


class GrowingTrace(GlancedTrace):
    """A trace that is read in slices of spans."""

    def __init__(self, length: int, slices: int) -> None:
        super().__init__(0, self.as_known)
        self.whole = length
        self.slices = slices
        self.loaded = Loaded(0, length, False)
        self.advances = 0

    def as_known(self, span: Span) -> Span:
        """Make every hundredth step an error once the trace is complete."""
        if self.loaded.complete and span.index % 100 == 0:
            return replace(span, status=SpanStatus.ERROR, end=span.index + 500.0)
        return span

    def advance(self, max_bytes: int = 1 << 20, /) -> bool:
        self.advances += 1
        self.length = min(self.whole, self.length + self.slices)
        self.loaded = Loaded(self.length, self.whole, self.length >= self.whole)
        return not self.loaded.complete


@pytest.mark.slow
def test_the_index_reads_in_small_steps() -> None:
    trace = GrowingTrace(10_000, 30)
    index = BackgroundIndex()
    previous = trace.advances, trace.glanced_at, trace.asked
    for _ in index_more(trace, index, reads_to_end=True):
        current = trace.advances, trace.glanced_at, trace.asked
        advanced, glanced_at, asked = (b - a for a, b in zip(previous, current, strict=True))
        assert advanced <= 1
        assert not (advanced and glanced_at)
        assert glanced_at <= SPANS_PER_STEP + COMPARISONS_PER_STEP
        assert asked <= COMPARISONS_PER_STEP + 2
        assert len(trace) - index.totals.span_count < SPANS_PER_STEP + 30
        assert index.search_repeats or index.repeats.seen == 0
        previous = current
        if index.totals.span_count == 10_000:
            index.search_repeats = True
    assert index.totals.span_count == 10_000
    assert index.complete(trace)


def test_errors_known_at_the_end_are_counted() -> None:
    trace = GrowingTrace(3050, 300)
    index = BackgroundIndex()
    announced = []
    for is_news in index_more(trace, index, reads_to_end=True):
        assert index.totals.span_count == index.facts.seen
        if is_news:
            announced.append(len(trace))
    assert (announced, list(index.totals.errors)) == ([3050], list(range(0, 3050, 100)))
    assert index.facts.total == 3500.0


def test_a_trace_that_another_thread_reads_is_not_advanced() -> None:
    trace = GrowingTrace(5000, 300)
    trace.advance()
    index = BackgroundIndex()
    for _ in index_more(trace, index, reads_to_end=False):
        pass
    assert (trace.advances, index.totals.span_count) == (1, 300)
    assert index.complete(trace)


def test_repeats_are_searched_on_request() -> None:
    trace = GlancedTrace(100, lambda span: calling(span, "same"))
    index = BackgroundIndex()
    assert all(not worth for worth in index_more(trace, index, reads_to_end=True))
    assert index.repeats.run_at(50) is None
    index.search_repeats = True
    assert not index.complete(trace)
    assert list(index_more(trace, index, reads_to_end=True))
    assert index.repeats.run_at(50) == FoldedRun(0, 100, 1)
    assert index.complete(trace)


def test_errors_are_counted_as_far_as_the_index_goes() -> None:
    trace = GlancedTrace(600, lambda span: replace(span, status=SpanStatus.ERROR))
    index = BackgroundIndex()
    assert index.step(trace, 200)
    assert index.totals.errors_in(0, 600) == 200
