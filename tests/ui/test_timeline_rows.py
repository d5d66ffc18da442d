"""The rows of a timeline in which some steps are folded away, or only some are shown."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from mast_tui.ui.trace_view.folding import MAX_PERIOD, Fold, FoldedRun, FoldedSteps, TimelineRows


@st.composite
def some_folds(draw: st.DrawFn) -> list[Fold]:
    found: list[Fold] = []
    for _ in range(draw(st.integers(0, 8))):
        first, length = draw(st.integers(1, 60)), draw(st.integers(1, 9))
        kind = draw(st.sampled_from(("run", "agent", "own")))
        if kind == "run":
            period, times = draw(st.integers(1, MAX_PERIOD)), draw(st.integers(2, 6))
            found.append(FoldedRun(first, first + period * times, period))
        elif kind == "agent":
            found.append(FoldedSteps(first, first + length, "helper"))
        else:
            head = draw(st.integers(max(0, first - 5), first - 1))
            found.append(FoldedSteps(first, first + length, head=head))
    return found


def rows_of(folds: list[Fold], spans: int) -> TimelineRows:
    rows = TimelineRows()
    rows.grow(spans)
    for fold in folds:
        rows.fold(fold)
    return rows


def shown(rows: TimelineRows) -> list[tuple[int, Fold | None]]:
    return [rows.span_and_fold(row) for row in range(len(rows))]


def worked_out(folds: tuple[Fold, ...], spans: int) -> list[tuple[int, Fold | None]]:
    """What each row shows, found span by span."""
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


@given(some_folds(), st.integers(0, 3))
@example([FoldedRun(0, 2, 1), FoldedRun(2, 4, 1)], 0)
@example([FoldedSteps(2, 3, head=0), FoldedSteps(3, 4, head=1), FoldedRun(4, 8, 1)], 1)
def test_each_row_shows_its_span_and_each_span_has_its_row(folds: list[Fold], more: int) -> None:
    spans = all_spans(folds) + more
    rows = rows_of(folds, spans)
    expected = worked_out(rows.folds, spans)
    assert shown(rows) == expected
    for index in range(spans):
        at, line = rows.span_and_fold(rows.row_of(index))
        hiding = rows.hiding(index)
        if hiding is None:
            assert (at, line) == (index, None)
            assert rows.shows(index)
        elif hiding.head is None:
            assert line == hiding
            assert at == hiding.hidden_from <= index < hiding.end
        else:
            assert at == hiding.head
            assert rows.folded_under(at) == hiding


@given(some_folds())
def test_the_last_fold_always_stays_and_no_span_is_in_two(folds: list[Fold]) -> None:
    rows = TimelineRows()
    for fold in folds:
        rows.fold(fold)
        assert fold in rows.folds
        for index in range(all_spans(folds)):
            assert sum(other.first <= index < other.end for other in rows.folds) <= 1
        for other in rows.folds:
            assert other.head is None or rows.hiding(other.head) is None


@given(some_folds())
def test_what_a_span_is_folded_with_is_known_wherever_it_stands_in_it(folds: list[Fold]) -> None:
    rows = rows_of(folds, all_spans(folds))
    heads = {fold.head: fold for fold in rows.folds if fold.head is not None}
    for index in range(all_spans(folds)):
        inside = [fold for fold in rows.folds if fold.first <= index < fold.end]
        expected = heads.get(index) or (inside[0] if inside else None)
        assert rows.folded_at(index) == expected


@given(some_folds())
def test_unfolding_leads_back_to_one_row_a_span(folds: list[Fold]) -> None:
    rows = rows_of(folds, 80)
    for fold in rows.folds:
        rows.unfold(fold)
    assert rows.folds == ()
    assert shown(rows) == [(row, None) for row in range(80)]


@given(some_folds(), st.sets(st.integers(0, 79)), st.integers(0, 79))
def test_only_what_is_asked_for_is_shown_and_the_nearest_stands_for_the_rest(
    folds: list[Fold], wanted: set[int], index: int
) -> None:
    rows = rows_of(folds, 80)
    before = shown(rows)
    only = sorted(wanted)
    rows.set_filter(only)
    assert rows.is_filtered
    assert shown(rows) == [(index, None) for index in only]
    assert rows.shows(index) == (index in wanted)
    if only:
        distance = abs(rows.index_at(rows.row_of(index)) - index)
        assert distance == min(abs(one - index) for one in only)
    rows.set_filter(None)
    assert not rows.is_filtered
    assert shown(rows) == before


def test_what_is_added_to_the_end_counts_once_it_is_given_again() -> None:
    rows = rows_of([], 1_000_000)
    only = [5, 10]
    rows.set_filter(only)
    only.append(999_999)
    assert len(rows) == 2
    assert rows.index_at(rows.row_of(999_999)) == 10
    rows.set_filter(only)
    assert len(rows) == 3
    assert rows.index_at(rows.row_of(999_999)) == 999_999


def test_a_trace_that_grows_gains_rows_behind_its_folds() -> None:
    rows = rows_of([FoldedRun(2, 8, 2), FoldedSteps(9, 10, head=8)], 10)
    assert len(rows) == 6
    rows.grow(1_000_000)
    assert len(rows) == 1_000_000 - 4
    assert rows.index_at(len(rows) - 1) == 999_999
    assert rows.row_of(999_999) == len(rows) - 1


def test_no_span_is_kept_for_a_million_rows() -> None:
    """What is kept is the folds: going to any row and back needs nothing else."""
    rows = TimelineRows()
    rows.grow(1_000_000)
    rows.fold(FoldedSteps(10, 900_010, "helper"))
    assert len(rows) == 100_001
    assert rows.span_and_fold(10) == (10, FoldedSteps(10, 900_010, "helper"))
    assert rows.index_at(11) == 900_010
    kept = [value for value in vars(rows).values() if hasattr(value, "__len__")]
    assert all(len(value) <= 1 for value in kept)
