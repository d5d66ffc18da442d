"""The filter of the timeline by kind, agent, error, label, suggestion and match."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.labels import Target
from mast_tui.traces.model import Span, SpanColumns, SpanKind, SpanStatus
from mast_tui.ui.annotate.filter import (
    NO_FILTER,
    Condition,
    FilterChoice,
    FilterScan,
    MarkedSpans,
    SpanFilter,
    SpanRanges,
    filter_description,
    values_of,
)
from mast_tui.ui.annotate.search import Hits
from mast_tui.ui.trace_view.gutter import span_range_of
from tests.traces import rollouts
from tests.ui.build import SmallTrace
from tests.ui.stage import Stage, finding, missing, read_trace, stage, suggest, write_trace


@pytest.fixture
def workspace(tmp_path: Path, small: Path) -> Path:
    """Suggestions on #4 and on #9."""
    path = tmp_path / "workspace.db"
    trace = read_trace(small)
    suggest(path, trace, [finding(trace, "1.3", 4, 4), finding(trace, "2.6", 9, 9)])
    return path


def shown_numbers(on: Stage) -> list[int]:
    timeline = on.annotate.timeline
    return [timeline.rows.index_at(row) + 1 for row in range(timeline.row_count)]


def title(on: Stage) -> str:
    return str(on.annotate.timeline.border_title)


def choice(on: Stage) -> str:
    on.screen(FilterChoice)
    return on.text


async def test_kinds_are_chosen_by_keys_and_ranges_follow_the_filter(small: Path) -> None:
    async with stage(small) as on:
        await on.press("j", "j", "F", "c")
        assert "tool calls · 4 of 12" in choice(on)
        assert shown_numbers(on) == [3, 5, 7, 10]
        await on.press("o")
        assert shown_numbers(on) == [3, 4, 5, 6, 7, 8, 10, 11]
        await on.press("o", "enter")
        assert (shown_numbers(on), title(on)) == ([3, 5, 7, 10], "Timeline · tool calls · 4 of 12")
        assert on.number == 3
        await on.press("j")
        assert on.number == 5
        await on.press("1", "3")
        assert on.labels == {("1.3", 5, 5)}
        await on.press("u", "escape")
        await on.press("F", "c", "enter")
        await on.press("g", "v", "j", "1", "3")
        assert on.labels == {("1.3", 3, 5)}


async def test_everything_is_shown_again(small: Path) -> None:
    async with stage(small) as on:
        await on.press("j", "F", "c", "escape")
        assert (len(shown_numbers(on)), on.number, title(on)) == (12, 2, "Timeline")
        await on.press("F")
        assert "all 12 spans" in choice(on)
        await on.press("c", "enter")
        assert len(shown_numbers(on)) < 12
        await on.press("escape")
        assert (len(shown_numbers(on)), on.number, title(on)) == (12, 3, "Timeline")
        await on.press("F", "c", "e", "x")
        assert "all 12 spans" in choice(on)
        await on.press("enter")
        assert len(shown_numbers(on)) == 12
        await on.press("g")
        await on.press("j", "F", "g")
        assert "log records · 0 of 12" in choice(on)
        assert shown_numbers(on) == []
        await on.press("enter")
        assert len(shown_numbers(on)) == 12
        assert "Filter removed: no span matches" in on.message
        assert on.number == 2


async def test_escape_undoes_filter_and_search_in_reverse_order(small: Path) -> None:
    async with stage(small) as on:
        everything = len(shown_numbers(on))
        await on.press("/", *"pod", "enter")
        await on.press("F", "c", "enter")
        assert (on.annotate.state.needle, len(shown_numbers(on))) == ("pod", 4)
        await on.press("escape")
        assert (on.annotate.state.needle, len(shown_numbers(on))) == ("pod", everything)
        await on.press("escape")
        assert on.annotate.state.needle == ""
        await on.press("F", "c", "enter")
        narrowed = len(shown_numbers(on))
        await on.press("/", *"zzz", "enter")
        await on.press("escape")
        assert (on.annotate.state.needle, len(shown_numbers(on))) == ("", narrowed)
        await on.press("escape")
        assert len(shown_numbers(on)) == everything
        await on.press("g")
        await on.press("/", *"restart", "enter")
        await on.press("F", "/", "enter")
        assert shown_numbers(on) == [1, 9, 10, 11]
        await on.press("/", *"ed")
        assert shown_numbers(on) == [11]
        await on.press("escape")
        assert len(shown_numbers(on)) == 12
        assert "the search has ended" in on.message
        await on.press("g")
        await on.press("F", "m", "enter")
        await on.press("/", *"crashloop", "enter")
        assert (len(shown_numbers(on)), on.number) == (12, 4)
        await on.press("n")
        assert on.number == 6


async def test_labelled_and_suggested_spans_and_leaving_the_filter(
    small: Path, workspace: Path
) -> None:
    async with stage(small, workspace=workspace) as on:
        await on.press("j", "v", "j", "1", "1", "F", "l", "enter")
        assert shown_numbers(on) == [2, 3]
        await on.press("F", "l", "s", "enter")
        assert (shown_numbers(on), title(on)) == ([4, 9], "Timeline · suggested · 2 of 12")
        await on.press("escape", "g")
        await on.press("F", "m", "enter")
        assert 4 not in shown_numbers(on)
        await on.press("]")
        assert (on.number, len(shown_numbers(on))) == (4, 12)
        assert "Filter removed: #4 does not match" in on.message
        assert title(on) == "Timeline"


async def test_blind_annotators_are_offered_no_suggestions(small: Path, workspace: Path) -> None:
    async with stage(small, workspace=workspace, blind=True) as on:
        await on.press("F")
        assert "suggested" not in choice(on)
        await on.press("s")
        assert len(shown_numbers(on)) == 12
        assert on.annotate.filter.present_filter == NO_FILTER


async def test_another_trace_is_not_filtered(small: Path, tmp_path: Path) -> None:
    other = write_trace(tmp_path / "z.json")
    async with stage(small, other) as on:
        await on.press("enter", "F", "c", "enter")
        assert len(shown_numbers(on)) == 4
        await on.press(">")
        assert (len(shown_numbers(on)), title(on)) == (12, "Timeline")


async def test_kinds_are_clicked_and_log_records_left_out(small: Path) -> None:
    async with stage(small) as on:
        await on.press("F")
        await on.pilot.click(".offer")
        await on.press("enter")
        assert shown_numbers(on) == [1, 2, 9, 12]
        await on.press("escape")
        await on.press("F", "n")
        assert not missing(choice(on), "no log records · 12 of 12", "[x] all but log records")
        await on.press("c", "enter")
        assert title(on) == "Timeline · tool calls, no log records · 4 of 12"


async def test_search_and_filter_cover_spans_that_are_read_later(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    filler = "word " * 60
    records = [rollouts.meta()]
    for number in range(1500):
        records.append(rollouts.call(f"c{number}", f'{{"command": ["{filler}"]}}'))
        records.append(rollouts.output(f"c{number}", f"{filler} zebra {number}"))
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    async with stage(path, settled=False) as on:
        await on.press("/", *"zebra", "enter")
        assert on.annotate.state.hits.total == 1500
        await on.press("escape", "F", "c", "enter")
        assert title(on) == "Timeline · tool calls · 1,500 of 3,000"
        assert on.annotate.timeline.row_count == 1500


TRACE = SmallTrace("a", "b", "c", "d", "e")
SPAN = TRACE.span(2)
NO_LOGS = Condition("no_logs")
ERRORS = Condition("errors")


def keeps(chosen: SpanFilter, marks: Mapping[str, Set[int]], span: Span) -> bool:
    return (
        (not values_of("kind", chosen) or span.kind in values_of("kind", chosen))
        and (not values_of("agent", chosen) or span.agent in values_of("agent", chosen))
        and not (NO_LOGS in chosen and span.kind is SpanKind.LOG)
        and (ERRORS not in chosen or span.status is SpanStatus.ERROR)
        and all(span.index in marks[name] for name in marks if Condition(name) in chosen)
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


class StepTrace(SmallTrace):
    """A trace of these steps."""

    def __init__(self, spans: Sequence[Span]) -> None:
        super().__init__(*(str(span.index) for span in spans))
        self._steps = spans

    def span(self, index: int, /) -> Span:
        return self._steps[index]


index_sets = st.frozensets(st.integers(0, 29))
conditions = [Condition(name) for name in ("no_logs", "errors", "labelled", "suggested", "matches")]
filters = st.frozensets(
    st.sampled_from(conditions)
    | st.builds(Condition, st.just("kind"), st.sampled_from(SpanKind))
    | st.just(Condition("agent", "a"))
)


@given(
    st.lists(st.sampled_from(SpanKind), max_size=30),
    st.sampled_from(["a", "ab", "abc"]),
    index_sets,
    filters,
    st.tuples(index_sets, index_sets, index_sets),
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
    labelled, suggested, with_hits = marks
    hits = Hits(15)
    hits.add((index, 1) for index in sorted(with_hits))
    labelled_ranges = SpanRanges((index, index) for index in labelled)
    suggested_ranges = SpanRanges((index, index) for index in suggested)
    marked = MarkedSpans(labelled_ranges, suggested_ranges, hits)
    scan = FilterScan(StepTrace(spans), chosen, marked)
    passing: list[int] = []
    while scan.checked_count < len(spans):
        passing += scan.check_more(most)
    named = {"labelled": labelled, "suggested": suggested, "matches": with_hits}
    assert passing == [span.index for span in spans if keeps(chosen, named, span)]


def test_a_filter_reads_columns_slice_by_slice() -> None:
    class Columns(SmallTrace):
        def span(self, index: int, /) -> Span:
            raise AssertionError(f"span {index} was made")

        def columns(self, first: int, end: int, /) -> SpanColumns:
            return TRACE.columns(first, end)

    chosen = SpanFilter({Condition("agent", "agent"), Condition("kind", SpanKind.MESSAGE)})
    scan = FilterScan(Columns("a", "b", "c", "d", "e"), chosen, MarkedSpans())
    assert list(scan.check_more(9)) == [0, 1, 2, 3, 4]
    matches = MarkedSpans(matches=SpanRanges([(0, 0), (2, 4)]))
    scan = FilterScan(TRACE, SpanFilter({Condition("matches")}), matches)
    assert (list(scan.check_more(3)), scan.checked_count) == ([0, 2], 3)
    assert (list(scan.check_more(10)), list(scan.check_more(10))) == ([3, 4], [])


def test_descriptions() -> None:
    chosen = {Condition("kind", kind) for kind in (SpanKind.TOOL_RESULT, SpanKind.MESSAGE)}
    assert filter_description(SpanFilter(chosen)) == "messages or tool results"
    assert filter_description(SpanFilter({*chosen, Condition("agent", "bob"), ERRORS})) == (
        "messages or tool results, by bob, errors"
    )
    assert filter_description(NO_FILTER) == ""


def test_places_of_targets() -> None:
    targets = [Target("k3", "k1"), Target(None, None), Target("k9", "k9"), Target("k4", "k9")]
    ranges = [span_range_of(target, TRACE.index_of) for target in targets]
    assert ranges == [(1, 3), None, None, (4, 4)]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=8))
def test_span_ranges_hold_the_indices_of_all_ranges(spans: list[tuple[int, int]]) -> None:
    ranges = [(first, first + more) for first, more in spans]
    span_ranges = SpanRanges(ranges)
    expected = [i for i in range(40) if any(a <= i <= b for a, b in ranges)]
    assert list(span_ranges.within(0, 40)) == expected
    assert list(span_ranges.within(7, 20)) == [i for i in expected if 7 <= i < 20]


def test_slow_steps_and_idle_times_are_found_across_slices() -> None:
    call = SpanKind.TOOL_CALL
    result = SpanKind.TOOL_RESULT
    message = SpanKind.MESSAGE
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
        matches = {}
        for name in ("slow", "idle"):
            scan = FilterScan(StepTrace(spans), SpanFilter({Condition(name)}), MarkedSpans())
            matches[name] = [i for _ in range(len(spans)) for i in scan.check_more(limit)]
        assert matches == {"slow": [1, 5, 8], "idle": [7]}
    both = FilterScan(StepTrace(spans), SpanFilter({ERRORS, Condition("slow")}), MarkedSpans())
    assert list(both.check_more(20)) == []
