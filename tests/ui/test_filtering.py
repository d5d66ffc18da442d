"""The spans that a filter keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mast_tui.labels import Target
from mast_tui.traces.model import Span, SpanColumns, SpanKind, SpanStatus
from mast_tui.ui.annotate.search import Hits
from mast_tui.ui.annotate.span_filter import (
    EVERYTHING,
    FilterScan,
    MarkedSpans,
    SpanFilter,
    SpanRanges,
)
from mast_tui.ui.trace_view.gutter import place_of
from tests.ui.build import SmallTrace

TRACE = SmallTrace("a", "b", "c", "d", "e")
SPAN = TRACE.span(2)


def keeps(chosen: SpanFilter, marks: Mapping[str, Set[int]], span: Span) -> bool:
    return (
        (not chosen.kinds or span.kind in chosen.kinds)
        and (not chosen.agents or span.agent in chosen.agents)
        and not (chosen.no_logs and span.kind is SpanKind.LOG)
        and (not chosen.errors or span.status is SpanStatus.ERROR)
        and (not chosen.labelled or span.index in marks["labelled"])
        and (not chosen.suggested or span.index in marks["suggested"])
        and (not chosen.matches or span.index in marks["matches"])
    )


def steps(kinds: Sequence[SpanKind], agents: Sequence[str], failed: Set[int]) -> list[Span]:
    return [
        replace(
            SPAN,
            index=index,
            kind=kind,
            agent=agents[index % len(agents)],
            status=SpanStatus.ERROR if index in failed else SpanStatus.OK,
        )
        for index, kind in enumerate(kinds)
    ]


class Steps(SmallTrace):
    """A trace of these steps."""

    def __init__(self, spans: Sequence[Span]) -> None:
        super().__init__(*(str(span.index) for span in spans))
        self._steps = spans

    def span(self, index: int, /) -> Span:
        return self._steps[index]


places = st.frozensets(st.integers(0, 29))
filters = st.builds(
    SpanFilter,
    st.frozensets(st.sampled_from(SpanKind), max_size=2),
    st.frozensets(st.sampled_from("ab"), max_size=1),
    *[st.booleans()] * 5,
)


@given(
    st.lists(st.sampled_from(SpanKind), max_size=30),
    st.sampled_from(["a", "ab", "abc"]),
    places,
    filters,
    st.tuples(places, places, places),
    st.integers(1, 12),
)
def test_filters_keep_the_spans_that_match(
    kinds: list[SpanKind],
    agents: str,
    failed: frozenset[int],
    chosen: SpanFilter,
    marks: tuple[frozenset[int], frozenset[int], frozenset[int]],
    most: int,
) -> None:
    spans = steps(kinds, agents, failed)
    labelled, suggested, matches = marks
    hits = Hits(15)
    hits.add((index, 1) for index in sorted(matches))
    own, asked = (SpanRanges((index, index) for index in found) for found in (labelled, suggested))
    narrowing = FilterScan(Steps(spans), chosen, MarkedSpans(own, asked, hits))
    found: list[int] = []
    while narrowing.seen < len(spans):
        found += narrowing.step(most)
    named = {"labelled": labelled, "suggested": suggested, "matches": matches}
    assert found == [span.index for span in spans if keeps(chosen, named, span)]


def test_a_filter_reads_columns_slice_by_slice() -> None:
    class Columns(SmallTrace):
        def span(self, index: int, /) -> Span:
            raise AssertionError(f"span {index} was made")

        def columns(self, first: int, end: int, /) -> SpanColumns:
            return TRACE.columns(first, end)

    chosen = replace(EVERYTHING.with_agent("agent").with_kind(SpanKind.MESSAGE), errors=False)
    narrowing = FilterScan(Columns("a", "b", "c", "d", "e"), chosen, MarkedSpans())
    assert list(narrowing.step(9)) == [0, 1, 2, 3, 4]
    narrowing = FilterScan(
        TRACE, SpanFilter(matches=True), MarkedSpans(matches=SpanRanges([(0, 0), (2, 4)]))
    )
    assert (list(narrowing.step(3)), narrowing.seen) == ([0, 2], 3)
    assert (list(narrowing.step(10)), list(narrowing.step(10))) == ([3, 4], [])


def test_choosing_twice_and_descriptions() -> None:
    assert EVERYTHING.with_kind(SpanKind.LOG).with_kind(SpanKind.LOG).shows_all
    assert not EVERYTHING.with_agent("a").shows_all
    chosen = EVERYTHING.with_kind(SpanKind.TOOL_RESULT).with_kind(SpanKind.MESSAGE)
    assert chosen.description == "messages or tool results"
    assert replace(chosen.with_agent("bob"), errors=True).description == (
        "messages or tool results, by bob, errors"
    )
    assert EVERYTHING.description == ""


def test_places_of_targets() -> None:
    targets = [Target("k3", "k1"), Target(None, None), Target("k9", "k9"), Target("k4", "k9")]
    found = [place_of(target, TRACE.index_of) for target in targets]
    assert found == [(1, 3), None, None, (4, 4)]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=8))
def test_span_ranges_hold_the_indices_of_all_ranges(spans: list[tuple[int, int]]) -> None:
    ranges = [(first, first + more) for first, more in spans]
    found = SpanRanges(ranges)
    wanted = [i for i in range(40) if any(a <= i <= b for a, b in ranges)]
    assert list(found.within(0, 40)) == wanted
    assert list(found.within(7, 20)) == [i for i in wanted if 7 <= i < 20]


def test_slow_steps_and_idle_times_are_found_across_slices() -> None:
    call, result, message = SpanKind.TOOL_CALL, SpanKind.TOOL_RESULT, SpanKind.MESSAGE
    times = (
        (message, 0.0, None),
        (call, 1.0, 11.0),
        (result, 11.5, None),
        (call, 12.0, None),
        (message, None, None),
        (result, 30.0, None),
        (message, 89.0, None),
        (message, 149.0, None),
        (result, 300.0, None),
        (message, 290.0, 295.0),
    )
    spans = [
        replace(SPAN, index=index, kind=kind, start=start, end=end)
        for index, (kind, start, end) in enumerate(times)
    ]
    for limit in (1, 3, 20):
        found = {}
        for name in ("slow", "idle"):
            scan = FilterScan(Steps(spans), EVERYTHING.toggled(name), MarkedSpans())
            found[name] = [i for _ in range(len(spans)) for i in scan.step(limit)]
        assert found == {"slow": [1, 5, 8], "idle": [7]}
    both = FilterScan(Steps(spans), SpanFilter(errors=True, slow=True), MarkedSpans())
    assert list(both.step(20)) == []
