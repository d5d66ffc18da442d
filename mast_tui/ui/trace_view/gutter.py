"""The marks at the end of a timeline row: labels, suggestions and notes on its span."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from mast_tui.labels import Target


class MarkKind(StrEnum):
    """The kind of a mark; ``MORE`` counts the marks for which a row has no space."""

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
"""Prefixes of a mark on the first row of a range, on the rows between, and on the last row."""

_PARTS: Final = ("", FIRST, LAST, BETWEEN)
"""The order of marks that differ in their prefix only: a range that ends in the row comes first."""


@dataclass(frozen=True, slots=True)
class GutterMark:
    """The code of a mode and a glyph for the kind of mark.

    Marks of one kind on one span are sorted by ``rank``, the lowest first. In a row, ``part`` is
    the prefix for a part of a range and ``count`` the number of marks that look alike.
    """

    code: str
    kind: MarkKind
    rank: int = field(default=0, compare=False)
    part: str = ""
    count: int = 1

    @property
    def text(self) -> str:
        """The mark as a row shows it: ``┌1.3 ●``, ``1.3 ◌2``."""
        count = "" if self.count == 1 else str(self.count)
        return f"{self.part}{self.code} {GLYPHS[self.kind]}{count}".strip()


PlacedMark = tuple[int, int, GutterMark]
"""The first and the last span (inclusive) of a mark, and the mark."""


class _MarkedRange(NamedTuple):
    """A mark on several spans; ``number`` is the position in which it was added."""

    first: int
    last: int
    number: int
    mark: GutterMark


class GutterMarks:
    """The marks of a trace and the spans that they are on.

    A mark on a range is stored once. Own labels come first, then suggestions, then the labels of
    others; marks that look alike are counted. The object never changes: ``changed`` returns
    another.
    """

    def __init__(self, marks: Iterable[PlacedMark] = ()) -> None:
        self._points: dict[int, tuple[GutterMark, ...]] = {}
        self._marked_spans: list[int] = []
        self._ranges: list[_MarkedRange] = []
        self._order: dict[GutterMark, int] = {}
        self._next_number = 0
        self._add(marks)
        self._prepare()

    def changed(self, removed: Iterable[PlacedMark], added: Iterable[PlacedMark]) -> GutterMarks:
        """Return the marks without ``removed`` and with ``added``.

        Args:
            removed: Marks to take away, each of them once.
            added: Marks to add.
        """
        other = GutterMarks()
        other._points = self._points.copy()
        other._ranges = self._ranges.copy()
        other._order = self._order.copy()
        other._next_number = self._next_number
        for placed in removed:
            other._remove(*placed)
        other._add(added)
        other._prepare()
        return other

    def _add(self, marks: Iterable[PlacedMark]) -> None:
        """Add marks, single spans and ranges apart."""
        for first, last, mark in marks:
            self._order.setdefault(mark, len(self._order))
            if first == last:
                self._points[first] = (*self._points.get(first, ()), mark)
            else:
                self._ranges.append(_MarkedRange(first, last, self._next_number, mark))
                self._next_number += 1

    def _remove(self, first: int, last: int, mark: GutterMark) -> None:
        """Remove one mark; it must be there."""
        if first == last:
            remaining = list(self._points.pop(first))
            remaining.remove(mark)
            if remaining:
                self._points[first] = tuple(remaining)
            return
        position = bisect_left(self._ranges, (first, last), key=lambda item: item[:2])
        while self._ranges[position].mark != mark:
            position += 1
        del self._ranges[position]

    def _prepare(self) -> None:
        """Sort the marks and compute what lookups need; called after every change."""
        self._marked_spans = sorted(self._points)
        self._ranges.sort(key=lambda item: item[:3])
        self._range_starts = [item.first for item in self._ranges]
        # The furthest end of each range and all before it: none of them reaches a later span.
        self._reaches = list(accumulate((item.last for item in self._ranges), max))

    def marks_on(self, index: int) -> tuple[GutterMark, ...]:
        """Return the marks on one span."""
        return self.marks_within(index, index + 1)

    def marks_within(self, first: int, end: int) -> tuple[GutterMark, ...]:
        """Return the marks of a row that stands for several spans.

        Args:
            first: Its first span.
            end: The span after its last one.
        """
        marks: list[tuple[GutterMark, str]] = []
        start = bisect_left(self._marked_spans, first)
        for index in self._marked_spans[start : bisect_left(self._marked_spans, end, start)]:
            marks += [(mark, "") for mark in self._points[index]]
        position = bisect_right(self._range_starts, end - 1) - 1
        while position >= 0 and self._reaches[position] >= first:
            begin, last, _, mark = self._ranges[position]
            if last >= first:
                marks.append((mark, _part_of(begin, last, first, end)))
            position -= 1
        if not marks:
            return ()
        if len(marks) == 1 and not marks[0][1]:
            return (marks[0][0],)
        counts = Counter(marks)
        return tuple(
            mark if not part and count == 1 else replace(mark, part=part, count=count)
            for (mark, part), count in sorted(counts.items(), key=self._sort_key)
        )

    def beginning_in(self, first: int, end: int) -> Iterator[tuple[int, GutterMark]]:
        """Yield the marks that begin on some spans, each with its span.

        Args:
            first: The first span.
            end: The span after the last one.
        """
        start = bisect_left(self._marked_spans, first)
        for index in self._marked_spans[start : bisect_left(self._marked_spans, end, start)]:
            for mark in self._points[index]:
                yield index, mark
        start = bisect_left(self._range_starts, first)
        for index, _high, _number, mark in self._ranges[
            start : bisect_left(self._range_starts, end, start)
        ]:
            yield index, mark

    def _sort_key(self, counted: tuple[tuple[GutterMark, str], int]) -> tuple[int, int, int, int]:
        (mark, part), _ = counted
        return _ORDER[mark.kind], mark.rank, self._order[mark], _PARTS.index(part)


def _part_of(begin: int, last: int, first: int, end: int) -> str:
    """Return the prefix of a range in a row that stands for ``first`` to ``end`` (exclusive)."""
    if begin < first:
        return LAST if last < end else BETWEEN
    return "" if last < end else FIRST


NO_MARKS: Final = GutterMarks()


def any_within(indices: Sequence[int], first: int, end: int) -> bool:
    """Return whether one of the sorted indices is in a range.

    Args:
        indices: The indices.
        first: The first index of the range.
        end: The index after its last one.
    """
    position = bisect_left(indices, first)
    return position < len(indices) and indices[position] < end


def place_of(target: Target, index_of: Callable[[str], int | None]) -> tuple[int, int] | None:
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
    indices = (index_of(target.first), index_of(target.last))
    ends = [index for index in indices if index is not None]
    return (min(ends), max(ends)) if ends else None


def marks_by_span(
    targets: Iterable[tuple[Target, GutterMark]], index_of: Callable[[str], int | None]
) -> GutterMarks:
    """Return the marks of targets by span; targets on the whole trace have none.

    Args:
        targets: Targets and their marks.
        index_of: Returns the index of a span key, or None if the trace has no such span.
    """
    ranges = ((place_of(target, index_of), mark) for target, mark in targets)
    return GutterMarks((*span_range, mark) for span_range, mark in ranges if span_range is not None)


class Pointing(Protocol):
    """A label, suggestion or note: anything with a target and a mode. It never changes."""

    @property
    def target(self) -> Target: ...
    @property
    def mode(self) -> str: ...


class Noted(NamedTuple):
    """A note on a span, which has no mode."""

    target: Target
    mode: str = ""


class MarkKeeper:
    """The marks of one trace, updated with its labels; only what has changed is placed anew."""

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
        self._items: dict[MarkKind, dict[str, Pointing]] = {}
        self._ranges: dict[tuple[MarkKind, str], PlacedMark | None] = {}
        self._incomplete: set[tuple[MarkKind, str]] = set()
        self._span_count = 0

    @property
    def incomplete(self) -> bool:
        """True if a target has a span that the trace does not have (yet)."""
        return bool(self._incomplete)

    def update(
        self, items: Mapping[MarkKind, Mapping[str, Pointing]], span_count: int
    ) -> GutterMarks:
        """Set the items to mark.

        Args:
            items: The labels, suggestions and notes by kind and id.
            span_count: The number of spans of the trace.

        Returns:
            Their marks.
        """
        removed: list[PlacedMark] = []
        added: list[PlacedMark] = []
        # Removals come first: a mark is removed from its previous spans, not from its new ones.
        for kind in {*self._items, *items}:
            new_items = items.get(kind, {})
            old_items = self._items.setdefault(kind, {})
            for name in [n for n, item in old_items.items() if not _same(item, new_items.get(n))]:
                del old_items[name]
                self._incomplete.discard((kind, name))
                placed = self._ranges.pop((kind, name))
                if placed is not None:
                    removed.append(placed)
        if span_count != self._span_count:
            self._span_count = span_count
            for kind, name in list(self._incomplete):
                self._set_range(kind, name, self._items[kind][name], removed, added)
        for kind, new_items in items.items():
            old_items = self._items[kind]
            for name, item in [(n, t) for n, t in new_items.items() if n not in old_items]:
                old_items[name] = item
                self._set_range(kind, name, item, removed, added)
        if removed or added:
            self.marks = self.marks.changed(removed, added)
        return self.marks

    def _set_range(
        self,
        kind: MarkKind,
        name: str,
        item: Pointing,
        removed: list[PlacedMark],
        added: list[PlacedMark],
    ) -> None:
        """Place an item anew, and collect the marks that this removes and adds."""
        previous = self._ranges.get((kind, name))
        if previous is not None:
            removed.append(previous)
        target = item.target
        index_of = self._index_of
        ends = place_of(target, index_of)
        placed = None if ends is None else (*ends, self._mark_of(item.mode, kind))
        self._ranges[kind, name] = placed
        if placed is not None:
            added.append(placed)
        keys = (target.first, target.last)
        if all(key is None or index_of(key) is not None for key in keys):
            self._incomplete.discard((kind, name))
        else:
            self._incomplete.add((kind, name))


def _same(item: Pointing, other: Pointing | None) -> bool:
    # Nearly all are the same objects; comparing the others by value costs more.
    return item is other or item == other
