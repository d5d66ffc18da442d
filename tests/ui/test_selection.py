"""What a label would point at."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mast_tui.labels import WHOLE_TRACE, Target
from mast_tui.ui.annotate.state import PLAIN, Selection, target_of
from mast_tui.ui.text.layout import QuoteCursor
from mast_tui.ui.trace_view.folding import FoldedRun
from tests.ui.build import SmallTrace

TRACE = SmallTrace(*(f"step {n}: nothing new" for n in range(10)))
places = st.integers(0, 9)


def target(selection: Selection, cursor: int, fold: FoldedRun | None = None) -> Target:
    return target_of(selection, TRACE, cursor, fold, TRACE.text(cursor))


@given(places)
def test_with_nothing_marked_it_is_the_span_under_the_cursor(cursor: int) -> None:
    assert PLAIN.is_plain
    assert target(PLAIN, cursor) == Target(f"k{cursor}", f"k{cursor}")


@given(places, places)
def test_a_range_reaches_from_where_it_was_begun_to_the_cursor_either_way(
    begun: int, cursor: int
) -> None:
    selection = Selection(range_from=begun)
    assert not selection.is_plain
    low, high = sorted((begun, cursor))
    assert selection.span_range(cursor) == (low, high)
    assert target(selection, cursor) == Target(f"k{low}", f"k{high}")


@given(places)
def test_the_whole_trace_is_no_place(cursor: int) -> None:
    assert target(Selection(whole=True), cursor) == WHOLE_TRACE


@given(places)
def test_a_quote_holds_the_text_between_its_offsets(cursor: int) -> None:
    found = target(Selection(quote=QuoteCursor((5, 6), (8, 15), True)), cursor)
    assert found == Target(f"k{cursor}", f"k{cursor}", f"{cursor}: nothing", 5, 15)


def test_on_the_line_of_a_fold_it_is_the_whole_run() -> None:
    assert target(PLAIN, 4, FoldedRun(2, 8, 2)) == Target("k2", "k7")


def test_a_range_that_was_begun_goes_before_the_fold_that_it_ends_on() -> None:
    assert target(Selection(range_from=1), 4, FoldedRun(2, 8, 2)) == Target("k1", "k4")
