"""Totals of spans: by columns, by blocks and merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.traces.index.blocks import block_at, write_block
from mast_tui.traces.index.document import ColumnsOfSteps, Step, StepSpans
from mast_tui.traces.index.span_totals import KINDS, MOST_BUCKETS, SpanTotals, kind_of
from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus

STEP = Step("k", SpanKind.MESSAGE, Role.AGENT, "main", "a step", "line 1")
PLAIN = StepSpans([STEP]).span(0)
SPANS_OF_KINDS = (
    replace(PLAIN, role=Role.USER),
    PLAIN,
    replace(PLAIN, kind=SpanKind.TOOL_CALL),
    replace(PLAIN, kind=SpanKind.LOG, role=Role.LOG),
)
times = st.one_of(st.none(), st.floats(0, 1e9))
any_span = st.builds(
    lambda template, agent, start, end, status: replace(
        template, agent=agent, start=start, end=end, status=status
    ),
    st.sampled_from(SPANS_OF_KINDS),
    st.sampled_from(["main", "helper", ""]),
    times,
    times,
    st.sampled_from(SpanStatus),
)
span_lists = st.lists(any_span, max_size=60)


def totals_by_spans(spans: Sequence[Span], slice_length: int = 1 << 20) -> SpanTotals:
    """Return the totals of spans, taken in slices."""
    totals = SpanTotals()
    columns = ColumnsOfSteps()
    for first in range(0, len(spans), slice_length):
        totals.add(columns.columns(first, spans[first : first + slice_length]))
    return totals


def values_of(totals: SpanTotals) -> list[object]:
    counts_by_kind = [list(counts) for counts in totals.buckets.counts]
    values = [totals.span_count, totals.start, totals.duration, list(totals.agents)]
    return [*values, list(totals.errors), totals.buckets.shift, counts_by_kind]


@given(span_lists, st.integers(1, 20))
def test_totals_by_columns_equal_totals_by_spans(spans: list[Span], slice_length: int) -> None:
    totals = totals_by_spans(spans, slice_length)
    timed_spans = [span for span in spans if span.start is not None]
    ends = [span.start if span.end is None else span.end for span in timed_spans]
    start = timed_spans[0].start if timed_spans else None
    assert totals.span_count == len(spans)
    assert totals.start == start
    assert totals.duration == max((0.0, *(end - start for end in ends)))  # type: ignore[operator]
    assert [*totals.agents] == [*dict.fromkeys(s.agent for s in spans if s.role is Role.AGENT)]
    assert [*totals.errors] == [n for n, s in enumerate(spans) if s.status is SpanStatus.ERROR]
    kinds = [kind_of(span.kind, span.role) for span in spans]
    assert [list(counts) for counts in totals.buckets.counts] == [
        [int(kind == bucket_kind) for kind in kinds] for bucket_kind in KINDS
    ]


@given(span_lists)
def test_shapes_listed_before_their_spans_count(spans: list[Span]) -> None:
    columns = ColumnsOfSteps()
    totals = SpanTotals()
    columns.columns(0, reversed(spans))
    totals.add(columns.columns(0, spans))
    assert values_of(totals) == values_of(totals_by_spans(spans))


@given(span_lists, span_lists)
def test_totals_of_a_block_can_be_continued(spans: list[Span], later_spans: list[Span]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "block")
        with path.open("wb") as file:
            write_block(file, totals_by_spans(spans).block())
        with path.open("rb") as file:
            block = block_at(file.fileno(), 0)
    assert block is not None
    totals = SpanTotals.of_block(block[0])
    assert values_of(totals) == values_of(totals_by_spans(spans))
    original = totals.copy()
    totals.add(ColumnsOfSteps().columns(len(spans), later_spans))
    assert values_of(totals) == values_of(totals_by_spans([*spans, *later_spans]))
    assert values_of(original) == values_of(totals_by_spans(spans))


@pytest.mark.parametrize("extra", [0, 1, 2])
@pytest.mark.parametrize("slice_length", [700, 1 << 20])
def test_merged_totals_are_complete(extra: int, slice_length: int) -> None:
    kinds = [number * 7 % 4 for number in range(MOST_BUCKETS * 4 + extra)]
    buckets = totals_by_spans([SPANS_OF_KINDS[kind] for kind in kinds], slice_length).buckets
    ranges = range(0, len(kinds), 1 << buckets.shift)
    assert [list(counts) for counts in buckets.counts] == [
        [kinds[first : first + (1 << buckets.shift)].count(kind) for first in ranges]
        for kind in KINDS
    ]


@given(st.sets(st.integers(0, 99)), st.integers(0, 99))
def test_errors_are_found_in_both_directions(errors: set[int], position: int) -> None:
    failed = replace(PLAIN, status=SpanStatus.ERROR)
    totals = totals_by_spans([failed if index in errors else PLAIN for index in range(100)])
    assert totals.error_from(position, 1) == min((i for i in errors if i > position), default=None)
    assert totals.error_from(position, -1) == max((i for i in errors if i < position), default=None)
