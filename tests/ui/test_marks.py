"""The marks at the end of timeline rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mast_tui.labels import WHOLE_TRACE, Target
from mast_tui.ui.marks import GLYPHS, MAX_RANGE_MARKS, Mark, MarkKind, marks_by_span

OWN = Mark("1.3", MarkKind.OWN)
keys = st.integers(0, 20)


def index_of(key: str) -> int | None:
    return int(key) if key.isdigit() else None


@given(st.lists(st.tuples(keys, keys, st.sampled_from("abc"), st.sampled_from(MarkKind))))
def test_each_span_of_a_target_is_marked_once_and_no_other(
    given_marks: list[tuple[int, int, str, MarkKind]],
) -> None:
    targets = [(Target(str(a), str(b)), Mark(code, kind)) for a, b, code, kind in given_marks]
    found = marks_by_span(targets, index_of)
    for index in range(21):
        expected = {
            Mark(code, kind) for a, b, code, kind in given_marks if min(a, b) <= index <= max(a, b)
        }
        marks = found.get(index, ())
        assert set(marks) == expected
        assert len(marks) == len(expected)
        order = [list(MarkKind).index(mark.kind) for mark in marks]
        assert order == sorted(order)


def test_a_label_on_the_whole_trace_stands_in_no_row() -> None:
    assert marks_by_span([(WHOLE_TRACE, OWN)], index_of) == {}


def test_a_range_of_which_one_end_is_gone_is_marked_at_the_other() -> None:
    assert marks_by_span([(Target("4", "gone"), OWN)], index_of) == {4: (OWN,)}
    assert marks_by_span([(Target("gone", "4"), OWN)], index_of) == {4: (OWN,)}
    assert marks_by_span([(Target("gone", "gone"), OWN)], index_of) == {}


def test_a_huge_range_is_marked_at_its_ends_only() -> None:
    found = marks_by_span([(Target("0", str(MAX_RANGE_MARKS + 1)), OWN)], index_of)
    assert found.keys() == {0, MAX_RANGE_MARKS + 1}


def test_marks_differ_by_more_than_colour() -> None:
    assert len(set(GLYPHS.values())) == len(MarkKind)
    assert Mark("1.3", MarkKind.OWN).shown != Mark("1.3", MarkKind.SUGGESTION).shown
    assert Mark("", MarkKind.NOTE).shown == GLYPHS[MarkKind.NOTE]
