"""The marks at the end of timeline rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import example, given
from hypothesis import strategies as st

from mast_tui.labels import WHOLE_TRACE, Target
from mast_tui.ui.trace_view.gutter import (
    GLYPHS,
    GutterMark,
    GutterMarks,
    MarkKeeper,
    MarkKind,
    Pointing,
    marks_by_span,
)

OWN = GutterMark("1.3", MarkKind.OWN)
keys = st.integers(0, 20)
random_marks = st.lists(st.tuples(keys, keys, st.sampled_from("abc"), st.sampled_from(MarkKind)))
RandomMarks = list[tuple[int, int, str, MarkKind]]


def index_of(key: str) -> int | None:
    return int(key) if key.isdigit() else None


def is_ordered(marks: tuple[GutterMark, ...]) -> bool:
    order = [list(MarkKind).index(mark.kind) for mark in marks]
    return order == sorted(order)


@given(random_marks, keys, keys)
def test_spans_and_rows_have_the_marks_of_their_targets(
    labels: RandomMarks, x: int, y: int
) -> None:
    targets = [(Target(str(a), str(b)), GutterMark(code, kind)) for a, b, code, kind in labels]
    marks_of_trace = marks_by_span(targets, index_of)
    for index in range(21):
        expected = Counter(
            (code, kind, range_part(min(a, b), max(a, b), index))
            for a, b, code, kind in labels
            if min(a, b) <= index <= max(a, b)
        )
        marks = marks_of_trace.marks_on(index)
        assert {(mark.code, mark.kind, mark.part): mark.count for mark in marks} == expected
        assert len(marks) == len(expected)
        assert is_ordered(marks)
    first = min(x, y)
    last = max(x, y)
    marks = marks_of_trace.marks_within(first, last + 1)
    spans = [mark for index in range(first, last + 1) for mark in marks_of_trace.marks_on(index)]
    assert {(mark.code, mark.kind) for mark in marks} == {(mark.code, mark.kind) for mark in spans}
    is_within = [min(a, b) <= last and max(a, b) >= first for a, b, _, _ in labels]
    assert sum(mark.count for mark in marks) == sum(is_within)
    assert is_ordered(marks)


def range_part(first: int, last: int, index: int) -> str:
    if first == last:
        return ""
    if index == first:
        return "┌"
    return "└" if index == last else "│"


def test_nested_ranges_have_their_own_marks() -> None:
    targets = [(Target("2", "5"), OWN), (Target("3", "4"), OWN), (Target("4", "4"), OWN)]
    marks = marks_by_span([*targets, (Target("4", "4"), OWN)], index_of)
    rows = [" ".join(mark.text for mark in marks.marks_on(index)) for index in range(2, 6)]
    assert rows == ["┌1.3 ●", "┌1.3 ● │1.3 ●", "1.3 ●2 └1.3 ● │1.3 ●", "└1.3 ●"]
    # A row that stands for all of a range has no part of it.
    assert [mark.text for mark in marks.marks_within(2, 6)] == ["1.3 ●4"]
    assert [mark.text for mark in marks.marks_within(3, 5)] == ["1.3 ●3", "│1.3 ●"]


def test_marks_keep_their_order_and_have_distinct_signs() -> None:
    codes = ["2.1", "1.3", "3.3"]
    targets = [
        (Target("4", "4") if code == "1.3" else Target("2", "6"), GutterMark(code, MarkKind.OWN))
        for code in codes
    ]
    assert [mark.code for mark in marks_by_span(targets, index_of).marks_on(4)] == codes
    assert len(set(GLYPHS.values())) == len(MarkKind)
    assert GutterMark("1.3", MarkKind.OWN).text != GutterMark("1.3", MarkKind.SUGGESTION).text
    assert GutterMark("", MarkKind.NOTE).text == GLYPHS[MarkKind.NOTE]


def test_ranges_of_whole_missing_and_huge_targets() -> None:
    assert marks_by_span([(WHOLE_TRACE, OWN)], index_of).marks_within(0, 100) == ()
    for target in (Target("4", "gone"), Target("gone", "4")):
        marks = marks_by_span([(target, OWN)], index_of)
        assert [index for index in range(9) if marks.marks_on(index)] == [4]
    assert marks_by_span([(Target("gone", "gone"), OWN)], index_of).marks_within(0, 100) == ()
    marks = marks_by_span([(Target("0", "1000000"), OWN)], index_of)
    assert [mark.text for mark in marks.marks_on(500_000)] == ["│1.3 ●"]
    assert marks.marks_on(1_000_001) == ()
    containers = [value for value in vars(marks).values() if hasattr(value, "__len__")]
    assert all(len(value) <= 1 for value in containers)


@dataclass(frozen=True)
class MarkedLabel:
    """An object with a target and a mode."""

    target: Target
    mode: str


class Spans:
    """Spans of which only the first are known, with the number of lookups."""

    def __init__(self, known_count: int) -> None:
        self.known_count = known_count
        self.lookup_count = 0

    def index_of(self, key: str) -> int | None:
        self.lookup_count += 1
        return int(key) if int(key) < self.known_count else None


def mark_of(mode: str, kind: MarkKind) -> GutterMark:
    return GutterMark(mode, kind, "cba".index(mode))


labels_or_none = st.none() | st.builds(
    MarkedLabel,
    st.just(WHOLE_TRACE) | st.builds(Target, keys.map(str), keys.map(str)),
    st.sampled_from("abc"),
)
changes = st.lists(st.tuples(st.sampled_from(MarkKind), st.sampled_from("pqrs"), labels_or_none))


# Gone just when its other end would be known.
@example(
    steps=[
        (MarkKind.SUGGESTION, "p", MarkedLabel(Target("0", "6"), "a")),
        (MarkKind.SUGGESTION, "p", None),
    ],
    later=7,
    when=1,
)
@given(changes, st.integers(5, 21), st.integers(0, 10))
def test_updated_marks_equal_new_ones(
    steps: list[tuple[MarkKind, str, MarkedLabel | None]], later: int, when: int
) -> None:
    spans = Spans(5)
    labels = dict[MarkKind, dict[str, Pointing]]()
    keeper = MarkKeeper(mark_of, spans.index_of)
    for number, (kind, name, label) in enumerate(steps):
        if number == when:
            spans.known_count = later
        if label is not None:
            labels.setdefault(kind, {})[name] = label
        elif number % 2:
            labels.pop(kind, None)
        else:
            labels.get(kind, {}).pop(name, None)
        updated = keeper.update(labels, spans.known_count)
        expected = marks_by_span(
            [
                (label.target, mark_of(label.mode, kind))
                for kind, named in labels.items()
                for label in named.values()
            ],
            spans.index_of,
        )
        assert [updated.marks_on(index) for index in range(21)] == [
            expected.marks_on(index) for index in range(21)
        ]
        assert updated.marks_within(3, 15) == expected.marks_within(3, 15)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)), max_size=12),
    st.integers(0, 31),
    st.integers(0, 31),
)
def test_marks_are_found_by_their_first_span(
    ranges: list[tuple[int, int]], first: int, end: int
) -> None:
    marks = [GutterMark(str(number), MarkKind.OWN) for number in range(len(ranges))]
    places = [(low, low + more, mark) for (low, more), mark in zip(ranges, marks, strict=True)]
    matches = list(GutterMarks(places).beginning_in(first, end))
    assert len(matches) == len(set(matches))
    assert set(matches) == {(low, mark) for low, _, mark in places if first <= low < end}
