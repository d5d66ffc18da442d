"""The rows of a timeline with folds or a filter."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from mast_tui.ui.trace_view.folding import MAX_PERIOD, Fold, FoldedRun, FoldedSteps, TimelineRows


@st.composite
def random_folds(draw: st.DrawFn) -> list[Fold]:
    folds: list[Fold] = []
    for _ in range(draw(st.integers(0, 8))):
        first = draw(st.integers(1, 60))
        length = draw(st.integers(1, 9))
        kind = draw(st.sampled_from(("run", "agent", "own")))
        if kind == "run":
            period = draw(st.integers(1, MAX_PERIOD))
            times = draw(st.integers(2, 6))
            folds.append(FoldedRun(first, first + period * times, period))
        elif kind == "agent":
            folds.append(FoldedSteps(first, first + length, "helper"))
        else:
            head = draw(st.integers(max(0, first - 5), first - 1))
            folds.append(FoldedSteps(first, first + length, head=head))
    return folds


def rows_of(folds: list[Fold], spans: int) -> TimelineRows:
    rows = TimelineRows()
    rows.grow(spans)
    for fold in folds:
        rows.fold(fold)
    return rows


def spans_and_folds(rows: TimelineRows) -> list[tuple[int, Fold | None]]:
    return [rows.span_and_fold(row) for row in range(len(rows))]


def expected_rows(folds: tuple[Fold, ...], spans: int) -> list[tuple[int, Fold | None]]:
    lines: list[tuple[int, Fold | None]] = []
    for index in range(spans):
        fold = next((fold for fold in folds if fold.hidden_from <= index < fold.end), None)
        if fold is None:
            lines.append((index, None))
        elif index == fold.hidden_from and fold.head is None:
            lines.append((index, fold))
    return lines


def all_spans(folds: list[Fold]) -> int:
    return max((fold.end for fold in folds), default=0)


@given(random_folds(), st.integers(0, 3))
@example([FoldedRun(0, 2, 1), FoldedRun(2, 4, 1)], 0)
@example([FoldedSteps(2, 3, head=0), FoldedSteps(3, 4, head=1), FoldedRun(4, 8, 1)], 1)
def test_rows_and_spans_are_mapped(folds: list[Fold], more: int) -> None:
    spans = all_spans(folds) + more
    rows = rows_of(folds, spans)
    expected = expected_rows(rows.folds, spans)
    assert spans_and_folds(rows) == expected
    for index in range(spans):
        span, line = rows.span_and_fold(rows.row_of(index))
        hiding = rows.fold_that_hides(index)
        if hiding is None:
            assert (span, line) == (index, None)
            assert rows.shows(index)
        elif hiding.head is None:
            assert line == hiding
            assert span == hiding.hidden_from <= index < hiding.end
        else:
            assert (span, rows.folded_under(span)) == (hiding.head, hiding)


@given(random_folds())
def test_a_new_fold_replaces_those_it_overlaps(folds: list[Fold]) -> None:
    rows = TimelineRows()
    for fold in folds:
        rows.fold(fold)
        assert fold in rows.folds
        heads = {fold.head: fold for fold in rows.folds if fold.head is not None}
        for index in range(all_spans(folds)):
            inside = [other for other in rows.folds if other.first <= index < other.end]
            assert len(inside) <= 1
            rows.grow(all_spans(folds))
            assert rows.folded_at(index) == (heads.get(index) or (inside[0] if inside else None))
        for other in rows.folds:
            assert other.head is None or rows.fold_that_hides(other.head) is None


@given(random_folds())
def test_unfolding_all_shows_one_row_for_each_span(folds: list[Fold]) -> None:
    rows = rows_of(folds, 80)
    for fold in rows.folds:
        rows.unfold(fold)
    assert (rows.folds, spans_and_folds(rows)) == ((), [(row, None) for row in range(80)])


@given(random_folds(), st.sets(st.integers(0, 79)), st.integers(0, 79))
def test_a_filter_shows_its_spans(folds: list[Fold], matches: set[int], index: int) -> None:
    rows = rows_of(folds, 80)
    previous = spans_and_folds(rows)
    only = sorted(matches)
    rows.set_filter(only)
    assert rows.is_filtered
    assert spans_and_folds(rows) == [(index, None) for index in only]
    assert rows.shows(index) == (index in matches)
    if only:
        distance = abs(rows.index_at(rows.row_of(index)) - index)
        assert distance == min(abs(match - index) for match in only)
    rows.set_filter(None)
    assert not rows.is_filtered
    assert spans_and_folds(rows) == previous


def test_filters_and_growing_traces() -> None:
    rows = rows_of([], 1_000_000)
    only = [5, 10]
    rows.set_filter(only)
    only.append(999_999)
    assert (len(rows), rows.index_at(rows.row_of(999_999))) == (2, 10)
    rows.set_filter(only)
    assert (len(rows), rows.index_at(rows.row_of(999_999))) == (3, 999_999)
    rows = rows_of([FoldedRun(2, 8, 2), FoldedSteps(9, 10, head=8)], 10)
    assert len(rows) == 6
    rows.grow(1_000_000)
    assert (len(rows), rows.index_at(len(rows) - 1)) == (1_000_000 - 4, 999_999)
    assert rows.row_of(999_999) == len(rows) - 1


def test_a_million_rows_keep_only_their_folds() -> None:
    rows = TimelineRows()
    rows.grow(1_000_000)
    rows.fold(FoldedSteps(10, 900_010, "helper"))
    assert len(rows) == 100_001
    assert rows.span_and_fold(10) == (10, FoldedSteps(10, 900_010, "helper"))
    assert rows.index_at(11) == 900_010
    containers = [value for value in vars(rows).values() if hasattr(value, "__len__")]
    assert all(len(value) <= 1 for value in containers)
