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
OF_KINDS = (
    replace(PLAIN, role=Role.USER),
    PLAIN,
    replace(PLAIN, kind=SpanKind.TOOL_CALL),
    replace(PLAIN, kind=SpanKind.LOG, role=Role.LOG),
)
times = st.one_of(st.none(), st.floats(0, 1e9))
spans = st.builds(
    lambda like, agent, start, end, status: replace(
        like, agent=agent, start=start, end=end, status=status
    ),
    st.sampled_from(OF_KINDS),
    st.sampled_from(["main", "helper", ""]),
    times,
    times,
    st.sampled_from(SpanStatus),
)
many = st.lists(spans, max_size=60)


def totals_by_spans(told: Sequence[Span], slices: int = 1 << 20) -> SpanTotals:
    """Return the totals of spans, taken in slices."""
    totals, columns = SpanTotals(), ColumnsOfSteps()
    for first in range(0, len(told), slices):
        totals.add(columns.columns(first, told[first : first + slices]))
    return totals


def values_of(totals: SpanTotals) -> list[object]:
    counts = [list(one) for one in totals.buckets.counts]
    known = [totals.span_count, totals.start, totals.duration, list(totals.agents)]
    return [*known, list(totals.errors), totals.buckets.shift, counts]


@given(many, st.integers(1, 20))
def test_totals_by_columns_equal_totals_by_spans(told: list[Span], slices: int) -> None:
    totals = totals_by_spans(told, slices)
    known = [span for span in told if span.start is not None]
    ends = [span.start if span.end is None else span.end for span in known]
    start = known[0].start if known else None
    assert totals.span_count == len(told)
    assert totals.start == start
    assert totals.duration == max((0.0, *(end - start for end in ends)))  # type: ignore[operator]
    assert [*totals.agents] == [*dict.fromkeys(s.agent for s in told if s.role is Role.AGENT)]
    assert [*totals.errors] == [n for n, s in enumerate(told) if s.status is SpanStatus.ERROR]
    kinds = [kind_of(span.kind, span.role) for span in told]
    assert [list(one) for one in totals.buckets.counts] == [
        [int(kind == one) for kind in kinds] for one in KINDS
    ]


@given(many)
def test_shapes_listed_before_their_spans_count(told: list[Span]) -> None:
    columns, totals = ColumnsOfSteps(), SpanTotals()
    columns.columns(0, reversed(told))
    totals.add(columns.columns(0, told))
    assert values_of(totals) == values_of(totals_by_spans(told))


@given(many, many)
def test_a_block_of_totals_continues(told: list[Span], more: list[Span]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "block")
        with path.open("wb") as file:
            write_block(file, totals_by_spans(told).block())
        with path.open("rb") as file:
            actual = block_at(file.fileno(), 0)
    assert actual is not None
    totals = SpanTotals.of_block(actual[0])
    assert values_of(totals) == values_of(totals_by_spans(told))
    other = totals.copy()
    totals.add(ColumnsOfSteps().columns(len(told), more))
    assert values_of(totals) == values_of(totals_by_spans([*told, *more]))
    assert values_of(other) == values_of(totals_by_spans(told))


@pytest.mark.parametrize("extra", [0, 1, 2])
@pytest.mark.parametrize("slices", [700, 1 << 20])
def test_merged_totals_are_complete(extra: int, slices: int) -> None:
    kinds = [number * 7 % 4 for number in range(MOST_BUCKETS * 4 + extra)]
    buckets = totals_by_spans([OF_KINDS[kind] for kind in kinds], slices).buckets
    stretches = range(0, len(kinds), 1 << buckets.shift)
    assert [list(one) for one in buckets.counts] == [
        [kinds[first : first + (1 << buckets.shift)].count(kind) for first in stretches]
        for kind in KINDS
    ]


@given(st.sets(st.integers(0, 99)), st.integers(0, 99))
def test_errors_are_found_in_both_directions(errors: set[int], position: int) -> None:
    failed = replace(PLAIN, status=SpanStatus.ERROR)
    totals = totals_by_spans([failed if index in errors else PLAIN for index in range(100)])
    assert totals.error_from(position, 1) == min((i for i in errors if i > position), default=None)
    assert totals.error_from(position, -1) == max((i for i in errors if i < position), default=None)
