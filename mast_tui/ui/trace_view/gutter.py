"""The marks at the end of a timeline row: labels, suggestions and notes on its span."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from mast_tui.labels import Target


class MarkKind(StrEnum):
    """The kind of a mark. ``MORE`` stands for the marks without space in a row."""

    OWN = "own"
    SUGGESTION = "suggestion"
    OTHER = "other"
    NOTE = "note"
    MORE = "more"


GLYPHS: Final[Mapping[MarkKind, str]] = {
    MarkKind.OWN: "●",
    MarkKind.SUGGESTION: "◌",
    MarkKind.OTHER: "○",
    MarkKind.NOTE: "✎",
    MarkKind.MORE: "",
}

_ORDER: Final = {kind: position for position, kind in enumerate(MarkKind)}

LOOK_HERE: Final = "┊"
"""The mark at the edge of a span that probably contains the decisive step."""

FIRST: Final = "┌"
BETWEEN: Final = "│"
LAST: Final = "└"
"""The prefixes of a mark on the first row of a range, on the rows between, and on the last row."""

_PARTS: Final = ("", FIRST, LAST, BETWEEN)
"""The order of marks that differ only in their prefix."""

_RANGE_PREFIXES: Final = {
    (False, False): FIRST,
    (False, True): "",
    (True, False): BETWEEN,
    (True, True): LAST,
}
"""The prefix of a range in a row. The key is: begins before the row, ends in the row."""


@dataclass(frozen=True, slots=True)
class GutterMark:
    """A mark in the row of a span.

    Attributes:
        code: The code of a mode; empty for a note.
        kind: The kind of the mark. It decides the glyph.
        rank: The order among the marks of one kind on one span; the lowest comes first.
        part: The prefix for the part of a range that lies in the row; empty for a whole range.
        count: The number of equal marks.
    """

    code: str
    kind: MarkKind
    rank: int = field(default=0, compare=False)
    part: str = ""
    count: int = 1

    @property
    def text(self) -> str:
        """The mark as a row shows it: ``┌1.3 ●``, ``1.3 ◌2``."""
        count_text = "" if self.count == 1 else str(self.count)
        return f"{self.part}{self.code} {GLYPHS[self.kind]}{count_text}".strip()


PlacedMark = tuple[int, int, GutterMark]
"""The first and the last span (inclusive) of a mark, and the mark."""


class GutterMarks:
    """The marks of a trace and the spans that they are on. The object never changes.

    A mark on a range is stored once. In a row the annotator's labels come first, then suggestions,
    labels of other annotators, and notes. Equal marks become one mark with their count.
    """

    def __init__(self, marks: Iterable[PlacedMark] = ()) -> None:
        """Sort marks for lookups."""
        self._marks_by_span: dict[int, list[GutterMark]] = {}
        """The marks on single spans."""
        self._ranges: list[PlacedMark] = []
        """The marks on several spans, sorted by their spans."""
        self._number_of_mark: dict[GutterMark, int] = {}
        """For each distinct mark its number in the order of the constructor's ``marks``."""
        for placed_mark in marks:
            first, last, mark = placed_mark
            self._number_of_mark.setdefault(mark, len(self._number_of_mark))
            if first == last:
                self._marks_by_span.setdefault(first, []).append(mark)
            else:
                self._ranges.append(placed_mark)
        self._marked_spans = sorted(self._marks_by_span)
        self._ranges.sort(key=itemgetter(0, 1))
        self._range_starts = [first for first, _, _ in self._ranges]
        # For each range, the furthest end of this range and all ranges before it.
        self._furthest_ends = list(accumulate((last for _, last, _ in self._ranges), max))

    def marks_on(self, index: int) -> tuple[GutterMark, ...]:
        """Return the marks for the row of one span."""
        return self.marks_within(index, index + 1)

    def marks_within(self, first: int, end: int) -> tuple[GutterMark, ...]:
        """Return the marks of a row that shows one or more spans.

        Args:
            first: The first span of the row.
            end: The span after the last one.
        """
        parts = self._parts_within(first, end)
        # These usual cases need no counting and sorting.
        if not parts:
            return ()
        if len(parts) == 1:
            mark, prefix = parts[0]
            return (replace(mark, part=prefix) if prefix else mark,)
        marks = [
            replace(mark, part=prefix, count=count)
            for (mark, prefix), count in Counter(parts).items()
        ]
        return tuple(sorted(marks, key=self._sort_key))

    def _parts_within(self, first: int, end: int) -> list[tuple[GutterMark, str]]:
        """Return the marks of a row with their prefixes."""
        parts: list[tuple[GutterMark, str]] = []
        for index in _indices_between(self._marked_spans, first, end):
            parts += [(mark, "") for mark in self._marks_by_span[index]]
        # Search backwards from the last range that begins before the row's end, until no range
        # reaches the row.
        position = bisect_right(self._range_starts, end - 1) - 1
        while position >= 0 and self._furthest_ends[position] >= first:
            range_first, range_last, mark = self._ranges[position]
            if range_last >= first:
                begins_before = range_first < first
                ends_in_row = range_last < end
                parts.append((mark, _RANGE_PREFIXES[begins_before, ends_in_row]))
            position -= 1
        return parts

    def beginning_in(self, first: int, end: int) -> Iterator[tuple[int, GutterMark]]:
        """Yield the marks that begin in a range of spans, after the index of their first span.

        Args:
            first: The first span.
            end: The span after the last one.
        """
        for index in _indices_between(self._marked_spans, first, end):
            for mark in self._marks_by_span[index]:
                yield index, mark
        start_position = bisect_left(self._range_starts, first)
        end_position = bisect_left(self._range_starts, end, start_position)
        for range_first, _, mark in self._ranges[start_position:end_position]:
            yield range_first, mark

    def _sort_key(self, mark: GutterMark) -> tuple[int, int, int, int]:
        number = self._number_of_mark[replace(mark, part="", count=1)]
        return _ORDER[mark.kind], mark.rank, number, _PARTS.index(mark.part)


def _indices_between(sorted_indices: Sequence[int], first: int, end: int) -> Sequence[int]:
    start_position = bisect_left(sorted_indices, first)
    return sorted_indices[start_position : bisect_left(sorted_indices, end, start_position)]


NO_MARKS: Final = GutterMarks()


def any_within(indices: Sequence[int], first: int, end: int) -> bool:
    """Check if a range contains one of some sorted indices.

    Args:
        indices: The sorted indices.
        first: The first index of the range.
        end: The index after the range.
    """
    position = bisect_left(indices, first)
    return position < len(indices) and indices[position] < end


def span_range_of(target: Target, index_of: Callable[[str], int | None]) -> tuple[int, int] | None:
    """Return the first and the last span of a target, in the order of the trace.

    Args:
        target: The target.
        index_of: Returns the index of a span key, or None if the trace has no such span.

    Returns:
        The two indices, or None for a target on the whole trace or outside this trace. If only one
        end is in the trace, both indices are that end.
    """
    if target.first is None or target.last is None:
        return None
    end_indices = (index_of(target.first), index_of(target.last))
    indices_in_trace = [index for index in end_indices if index is not None]
    return (min(indices_in_trace), max(indices_in_trace)) if indices_in_trace else None


def marks_by_span(
    targets: Iterable[tuple[Target, GutterMark]], index_of: Callable[[str], int | None]
) -> GutterMarks:
    """Return the marks of targets, placed on their spans.

    Targets on the whole trace have no mark.

    Args:
        targets: Targets and their marks.
        index_of: Returns the index of a span key, or None if the trace has no such span.
    """
    placed_marks: list[PlacedMark] = []
    for target, mark in targets:
        span_range = span_range_of(target, index_of)
        if span_range is not None:
            placed_marks.append((*span_range, mark))
    return GutterMarks(placed_marks)


class Pointing(Protocol):
    """A label, suggestion or note: anything with a target and a mode. It never changes."""

    @property
    def target(self) -> Target: ...
    @property
    def mode(self) -> str: ...


class Noted(NamedTuple):
    """A note on a span. It has no mode."""

    target: Target
    mode: str = ""


class _PlacedItem(NamedTuple):
    """A label, suggestion or note with its mark.

    Attributes:
        item: The label, suggestion or note.
        mark: The mark; None if none of the item's spans is in the trace.
        is_complete: False if the trace lacks a span of the item.
    """

    item: Pointing
    mark: PlacedMark | None
    is_complete: bool


class MarkKeeper:
    """The marks of one trace. Only items that have changed are placed again."""

    def __init__(
        self,
        mark_of: Callable[[str, MarkKind], GutterMark],
        index_of: Callable[[str], int | None],
    ) -> None:
        """Begin without marks.

        Args:
            mark_of: Returns the mark for a mode (slug) and a kind.
            index_of: Returns the index of a span key, or None if the trace has no such span.
        """
        self.marks = NO_MARKS
        self._mark_of = mark_of
        self._index_of = index_of
        self._placed_items: dict[MarkKind, dict[str, _PlacedItem]] = {}
        """The items with their marks, by kind and id."""
        self._span_count = 0

    @property
    def incomplete(self) -> bool:
        """True if the trace lacks a span of a target."""
        return not all(placed.is_complete for placed in self._all_placed())

    def update(
        self, items: Mapping[MarkKind, Mapping[str, Pointing]], span_count: int
    ) -> GutterMarks:
        """Place new and changed items, forget removed items, and return the marks of all items.

        Args:
            items: The labels, suggestions and notes by kind and id.
            span_count: The number of spans of the trace.
        """
        has_grown = span_count != self._span_count
        self._span_count = span_count
        # Fewer items mean that items were removed. The loop below finds new and changed items.
        has_changed = sum(map(len, items.values())) != len(self._all_placed())
        placed_items: dict[MarkKind, dict[str, _PlacedItem]] = {}
        for kind, items_of_kind in items.items():
            placed_before = self._placed_items.get(kind, {})
            placed_items[kind] = {}
            for item_id, item in items_of_kind.items():
                placed = placed_before.get(item_id)
                # Most items are the same objects, and comparing values is slower.
                is_same = placed is not None and (placed.item is item or placed.item == item)
                if placed is None or not is_same or (has_grown and not placed.is_complete):
                    placed = self._place_item(kind, item)
                    has_changed = True
                placed_items[kind][item_id] = placed
        if has_changed:
            self._placed_items = placed_items
            placed_marks = (placed.mark for placed in self._all_placed())
            self.marks = GutterMarks(mark for mark in placed_marks if mark is not None)
        return self.marks

    def _all_placed(self) -> list[_PlacedItem]:
        return [placed for by_id in self._placed_items.values() for placed in by_id.values()]

    def _place_item(self, kind: MarkKind, item: Pointing) -> _PlacedItem:
        target = item.target
        span_range = span_range_of(target, self._index_of)
        mark = None if span_range is None else (*span_range, self._mark_of(item.mode, kind))
        keys = [key for key in (target.first, target.last) if key is not None]
        is_complete = all(self._index_of(key) is not None for key in keys)
        return _PlacedItem(item, mark, is_complete)
