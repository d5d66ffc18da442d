"""The cells of an overview: their spans, contents and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mast_tui.traces.index.document import ColumnsOfSteps
from mast_tui.traces.index.span_totals import SpanTotals
from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus
from mast_tui.ui.trace_view.background_index import CellContent
from mast_tui.ui.trace_view.gutter import NO_MARKS, GutterMark, GutterMarks, MarkKind
from mast_tui.ui.trace_view.overview import (
    FEW_ERRORS,
    STANDS_OUT,
    Cell,
    Cells,
    cell_of,
    spans_of_cell,
)
from tests.ui.build import SmallTrace

PLAIN = SmallTrace("a step").span(0)
KINDS = {
    CellContent.USER: replace(PLAIN, role=Role.USER),
    CellContent.AGENT: PLAIN,
    CellContent.TOOL: replace(PLAIN, kind=SpanKind.TOOL_CALL, role=Role.AGENT),
    CellContent.OTHER: replace(PLAIN, kind=SpanKind.LOG, role=Role.LOG),
}
ERROR = replace(PLAIN, status=SpanStatus.ERROR)

heights = st.integers(1, 80)


def totals_of(spans: Sequence[Span], slices: int = 1_000_000) -> SpanTotals:
    counts = SpanTotals()
    columns = ColumnsOfSteps()
    for first in range(0, len(spans), slices):
        counts.add(columns.columns(first, spans[first : first + slices]))
    return counts


def cells(spans: Sequence[Span], height: int, marks: GutterMarks = NO_MARKS) -> list[Cell]:
    return Cells(totals_of(spans), marks).compute(height, len(spans))


def failing_steps(total: int, *errors: int) -> list[Span]:
    spans = [PLAIN] * total
    for index in errors:
        spans[index] = ERROR
    return spans


@given(heights, st.integers(0, 5000))
def test_spans_and_cells_are_mapped(height: int, total: int) -> None:
    stretches = [spans_of_cell(cell, height, total) for cell in range(height)]
    filled = [pair for pair in stretches if pair[0] < pair[1]]
    assert [i for first, end in filled for i in range(first, end)] == list(range(total))
    assert (stretches[: len(filled)], len(filled)) == (filled, min(height, total))
    for cell, (first, end) in enumerate(filled):
        assert cell_of(first, height, total) == cell_of(end - 1, height, total) == cell


def test_empty_tiny_and_partly_read_traces() -> None:
    assert cells([], 20) == []
    spans = [*KINDS.values(), ERROR]
    assert [cell.content for cell in cells(spans, 20)] == [*KINDS, CellContent.ERROR]
    partial = Cells(totals_of([PLAIN] * 25), NO_MARKS).compute(10, 100)
    assert [cell.content for cell in partial] == [CellContent.AGENT] * 3 + [CellContent.UNSEEN] * 7


MARKS = GutterMarks(
    [
        (0, 3, GutterMark("1.3", MarkKind.OWN)),
        (2, 5, GutterMark("1.3", MarkKind.SUGGESTION)),
        (9, 9, GutterMark("", MarkKind.NOTE)),
        (9, 9, GutterMark("1.1", MarkKind.OTHER)),
    ]
)


def test_matches_and_marks_come_before_errors() -> None:
    cells = Cells(totals_of(failing_steps(10, 1, 4, 8, 9)), MARKS, [3, 4, 6]).compute(10, 10)
    assert [cell.content.name for cell in cells] == [
        *("OWN", "ERROR", "SUGGESTION", "MATCH", "MATCH", "SUGGESTION"),
        *("MATCH", "AGENT", "ERROR", "ERROR"),
    ]
    assert [number for number, cell in enumerate(cells) if cell.errors] == [1, 4, 8, 9]


def test_errors_show_within_a_long_range() -> None:
    marks = GutterMarks(
        [
            (20, 89, GutterMark("1.3", MarkKind.SUGGESTION)),
            (55, 55, GutterMark("2.1", MarkKind.OWN)),
        ]
    )
    run = Cells(totals_of(failing_steps(100, 25, 45, 55)), marks)
    cells = run.compute(10, 100)
    assert [cell.content.name for cell in cells] == [
        *("AGENT", "AGENT", "SUGGESTION", "SUGGESTION", "ERROR"),
        *("OWN", "SUGGESTION", "SUGGESTION", "SUGGESTION", "AGENT"),
    ]
    assert [run.span_to_show(cell) for cell in cells] == [0, 10, 20, 30, 45, 55, 60, 70, 80, 90]


@given(
    st.lists(st.sampled_from([*KINDS.values(), ERROR]), min_size=1, max_size=300),
    st.integers(1, 70),
)
def test_cells_know_whether_they_have_errors(spans: list[Span], height: int) -> None:
    for cell in cells(spans, height):
        has_error = any(s.status is SpanStatus.ERROR for s in spans[cell.first : cell.end])
        assert cell.errors is has_error
        assert has_error or cell.content is not CellContent.ERROR


@given(st.sets(st.integers(0, 999), max_size=10), st.sets(st.integers(0, 29)))
def test_few_errors_and_those_with_own_cells_are_shown(errors: set[int], few: set[int]) -> None:
    drawn = cells(failing_steps(30, *few), 40)
    assert {cell.first for cell in drawn if cell.content is CellContent.ERROR} == few
    drawn = cells(failing_steps(1000, *errors), 40)
    assert {cell.first for cell in drawn if cell.content is CellContent.ERROR} == {
        cell.first for cell in drawn if errors & set(range(cell.first, cell.end))
    }


@given(st.lists(st.booleans(), min_size=41, max_size=400), st.integers(1, 40))
def test_the_most_frequent_of_many_errors_are_shown(failed: list[bool], height: int) -> None:
    total = len(failed)
    drawn = cells(failing_steps(total, *(i for i in range(total) if failed[i])), height)
    if sum(cell.errors for cell in drawn) <= FEW_ERRORS * len(drawn):
        return
    for cell in drawn:
        part = failed[cell.first : cell.end]
        stands_out = sum(part) / len(part) >= STANDS_OUT * sum(failed) / total - 1e-9
        assert (cell.content is CellContent.ERROR) is (cell.errors and stands_out)


@given(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=300), st.integers(1, 70))
def test_the_most_frequent_kind_is_shown(kinds: list[CellContent], height: int) -> None:
    for cell in cells([KINDS[kind] for kind in kinds], height):
        part = kinds[cell.first : cell.end]
        assert part.count(cell.content) == max(map(part.count, part))


def test_clicks_lead_to_the_content_of_a_cell() -> None:
    marks = GutterMarks(
        [
            (570, 590, GutterMark("1.3", MarkKind.OWN)),
            (731, 731, GutterMark("1.3", MarkKind.SUGGESTION)),
        ]
    )
    run = Cells(totals_of(failing_steps(1000, 333, 340)), marks, [44, 46, 888])
    places = [run.span_to_show(cell) for cell in run.compute(10, 1000)]
    assert places == [44, 100, 200, 333, 400, 570, 600, 731, 888, 900]
