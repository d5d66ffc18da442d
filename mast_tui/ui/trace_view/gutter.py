"""What stands at the end of a timeline row: labels and suggestions on that span."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from mast_tui.labels import Target


class MarkKind(StrEnum):
    """Whose mark it is; ``MORE`` stands for those that have no room."""

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

_ORDER: Final = {kind: place for place, kind in enumerate(MarkKind)}

FIRST: Final = "┌"
BETWEEN: Final = "│"
LAST: Final = "└"
"""What stands before a mark on the first row of a range, on those between, and on the last."""

_PARTS: Final = ("", FIRST, LAST, BETWEEN)
"""Where two are alike but for this, what begins or ends here stands before what goes on."""


@dataclass(frozen=True, slots=True)
class GutterMark:
    """A mode's code with a glyph that says whose it is.

    Of those of one kind on one span the one with the lowest ``rank`` stands first. In a row
    ``part`` tells which part of a range it is, and ``count`` how many there are that look alike.
    """

    code: str
    kind: MarkKind
    rank: int = field(default=0, compare=False)
    part: str = ""
    count: int = 1

    @property
    def shown(self) -> str:
        """The mark as it stands in the row: ``┌1.3 ●``, ``1.3 ◌2``."""
        count = "" if self.count == 1 else str(self.count)
        return f"{self.part}{self.code} {GLYPHS[self.kind]}{count}".strip()


Marked = tuple[int, int, GutterMark]
"""The first and the last span (inclusive) of a mark."""


class GutterMarks:
    """Where marks stand, kept as places: a range costs no more than a single span.

    Own labels come first, then suggestions, then others'; marks that look alike are counted. It
    stays as it is; ``changed`` gives another one.
    """

    def __init__(self, places: Iterable[Marked] = ()) -> None:
        self._points: dict[int, tuple[GutterMark, ...]] = {}
        self._marked: list[int] = []
        self._ranges: list[tuple[int, int, int, GutterMark]] = []
        self._order: dict[GutterMark, int] = {}
        self._given = 0
        self._add(places)
        self._prepare()

    def changed(self, gone: Iterable[Marked], come: Iterable[Marked]) -> GutterMarks:
        """The marks without some places and with others; each of ``gone`` is taken away once."""
        other = GutterMarks()
        other._points = self._points.copy()
        other._ranges = self._ranges.copy()
        other._order, other._given = self._order.copy(), self._given
        for place in gone:
            other._remove(*place)
        other._add(come)
        other._prepare()
        return other

    def _add(self, places: Iterable[Marked]) -> None:
        for low, high, mark in places:
            self._order.setdefault(mark, len(self._order))
            if low == high:
                self._points[low] = (*self._points.get(low, ()), mark)
            else:
                self._ranges.append((low, high, self._given, mark))
                self._given += 1

    def _remove(self, low: int, high: int, mark: GutterMark) -> None:
        if low == high:
            left = list(self._points.pop(low))
            left.remove(mark)
            if left:
                self._points[low] = tuple(left)
            return
        place = bisect_left(self._ranges, (low, high), key=lambda one: one[:2])
        while self._ranges[place][3] != mark:
            place += 1
        del self._ranges[place]

    def _prepare(self) -> None:
        self._marked = sorted(self._points)
        self._ranges.sort(key=lambda item: item[:3])
        self._lows = [low for low, *_ in self._ranges]
        # The furthest end of the ranges so far: from there back none reaches a span beyond it.
        self._reach = list(accumulate((high for _, high, *_ in self._ranges), max))

    def at(self, index: int) -> tuple[GutterMark, ...]:
        """The marks on one span."""
        return self.within(index, index + 1)

    def within(self, first: int, end: int) -> tuple[GutterMark, ...]:
        """The marks on the spans ``first`` to ``end`` (exclusive), as one row stands for them."""
        found: list[tuple[GutterMark, str]] = []
        low = bisect_left(self._marked, first)
        for index in self._marked[low : bisect_left(self._marked, end, low)]:
            found += [(mark, "") for mark in self._points[index]]
        place = bisect_right(self._lows, end - 1) - 1
        while place >= 0 and self._reach[place] >= first:
            begin, last, _, mark = self._ranges[place]
            if last >= first:
                found.append((mark, _part_of(begin, last, first, end)))
            place -= 1
        if not found:
            return ()
        if len(found) == 1 and not found[0][1]:
            return (found[0][0],)
        counts = Counter(found)
        return tuple(
            mark if not part and count == 1 else replace(mark, part=part, count=count)
            for (mark, part), count in sorted(counts.items(), key=self._place_in_row)
        )

    def beginning_in(self, first: int, end: int) -> Iterator[tuple[int, GutterMark]]:
        """The marks that begin on the spans ``first`` to ``end`` (exclusive), each with where."""
        low = bisect_left(self._marked, first)
        for index in self._marked[low : bisect_left(self._marked, end, low)]:
            for mark in self._points[index]:
                yield index, mark
        low = bisect_left(self._lows, first)
        for index, _high, _given, mark in self._ranges[low : bisect_left(self._lows, end, low)]:
            yield index, mark

    def _place_in_row(self, one: tuple[tuple[GutterMark, str], int]) -> tuple[int, int, int, int]:
        (mark, part), _ = one
        return _ORDER[mark.kind], mark.rank, self._order[mark], _PARTS.index(part)


def _part_of(begin: int, last: int, first: int, end: int) -> str:
    """Which part of a range stands in a row for the spans ``first`` to ``end`` (exclusive)."""
    if begin < first:
        return LAST if last < end else BETWEEN
    return "" if last < end else FIRST


NO_MARKS: Final = GutterMarks()


def place_of(target: Target, index_of: Callable[[str], int | None]) -> tuple[int, int] | None:
    """The first and the last span of a target; None for the whole trace and what is not here."""
    if target.first is None or target.last is None:
        return None
    first, last = index_of(target.first), index_of(target.last)
    ends = [end for end in (first, last) if end is not None]
    return (min(ends), max(ends)) if ends else None


def marks_by_span(
    targets: Iterable[tuple[Target, GutterMark]], index_of: Callable[[str], int | None]
) -> GutterMarks:
    """The marks of each span; labels on the whole trace stand in none."""
    places = ((place_of(target, index_of), mark) for target, mark in targets)
    return GutterMarks((*place, mark) for place, mark in places if place is not None)


class Pointing(Protocol):
    """What is marked where it points: a label, a suggestion, a note. It never changes."""

    @property
    def target(self) -> Target: ...
    @property
    def mode(self) -> str: ...


class Noted(NamedTuple):
    """A note on a span, which is of no mode."""

    target: Target
    mode: str = ""


class MarkKeeper:
    """The marks of one trace, kept up with its labels: what has not changed is not placed again.

    ``mark_of`` gives the mark of a mode (slug); ``index_of`` the place of a span's key.
    """

    def __init__(
        self,
        mark_of: Callable[[str, MarkKind], GutterMark],
        index_of: Callable[[str], int | None],
    ) -> None:
        self.marks = NO_MARKS
        self._mark_of = mark_of
        self._index_of = index_of
        self._shown: dict[MarkKind, dict[str, Pointing]] = {}
        self._places: dict[tuple[MarkKind, str], Marked | None] = {}
        self._partly: set[tuple[MarkKind, str]] = set()
        self._spans = 0

    @property
    def waits(self) -> bool:
        """Whether something points to a span that is not known (yet)."""
        return bool(self._partly)

    def follow(self, shown: Mapping[MarkKind, Mapping[str, Pointing]], spans: int) -> GutterMarks:
        """The marks of all that is ``shown``, by kind and id, in a trace of so many spans."""
        gone: list[Marked] = []
        come: list[Marked] = []
        # What is gone goes first: a mark is taken only from where it was, not where it would be.
        for kind in {*self._shown, *shown}:
            things, known = shown.get(kind, {}), self._shown.setdefault(kind, {})
            for name in [n for n, one in known.items() if not _same(one, things.get(n))]:
                del known[name]
                self._partly.discard((kind, name))
                place = self._places.pop((kind, name))
                if place is not None:
                    gone.append(place)
        if spans != self._spans:
            self._spans = spans
            for kind, name in list(self._partly):
                self._place(kind, name, self._shown[kind][name], gone, come)
        for kind, things in shown.items():
            known = self._shown[kind]
            for name, thing in [(n, t) for n, t in things.items() if n not in known]:
                known[name] = thing
                self._place(kind, name, thing, gone, come)
        if gone or come:
            self.marks = self.marks.changed(gone, come)
        return self.marks

    def _place(
        self, kind: MarkKind, name: str, thing: Pointing, gone: list[Marked], come: list[Marked]
    ) -> None:
        before = self._places.get((kind, name))
        if before is not None:
            gone.append(before)
        target, index_of = thing.target, self._index_of
        ends = place_of(target, index_of)
        place = None if ends is None else (*ends, self._mark_of(thing.mode, kind))
        self._places[kind, name] = place
        if place is not None:
            come.append(place)
        keys = (target.first, target.last)
        if all(key is None or index_of(key) is not None for key in keys):
            self._partly.discard((kind, name))
        else:
            self._partly.add((kind, name))


def _same(one: Pointing, other: Pointing | None) -> bool:
    # Nearly all are the very same objects; only of the others it matters what they say.
    return one is other or one == other
