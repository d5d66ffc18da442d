"""Who marked which places in which traces, and which spans they had read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mast_tui.gold import Order
from mast_tui.labels import Target

LEVELS: Final = 10
"""Overlap is told in tenths: level 3 is an intersection of at least 0.3 of the union."""

Stretch = tuple[int, int]
"""The spans from an index up to another (exclusive)."""


@dataclass(frozen=True, slots=True)
class Place:
    """The spans from ``first`` to ``last`` (indices, both included), or a quote in one of them.

    ``chars`` are the quote's start and end (exclusive) in code points of the span's text, None
    where the whole spans are meant or nobody knows where the quote stands. ``text`` is how many
    code points that text has, None where it is not known.
    """

    first: int
    last: int
    chars: tuple[int, int] | None = None
    text: int | None = None

    @property
    def spans(self) -> int:
        """How many spans it touches."""
        return self.last - self.first + 1


def place_of(
    target: Target, order: Order, length_of: Callable[[str], int | None] | None = None
) -> Place | None:
    """The place of a target, None for the whole trace and where a span is not in the trace.

    ``length_of`` gives the length of a span's text by its key. A quote that does not fit into the
    text has moved: it counts as its whole span.
    """
    if target.first is None or target.last is None:
        return None
    one, other = order(target.first), order(target.last)
    if one is None or other is None:
        return None
    chars, text = None, None
    start, end = target.char_start, target.char_end
    if target.quote is not None and start is not None and end is not None:
        text = length_of(target.first) if length_of is not None else None
        if 0 <= start < end and (text is None or end <= text):
            chars = start, end
    return Place(min(one, other), max(one, other), chars, text if chars else None)


def level(a: Place, b: Place) -> int:
    """By how many tenths two places overlap, from 0 to 10: intersection over union, rounded down.

    It is counted in spans, each of length 1, of which a quote is the part that it covers; two
    quotes in one span are compared by their characters. Where the length of the span's text is
    not known, a quote counts as the whole span beside anything but a quote, yet never as exactly
    that: the level is 9 at most.
    """
    shared = min(a.last, b.last) - max(a.first, b.first) + 1
    if shared <= 0:
        return 0
    if a.chars and b.chars:
        shared = max(0, min(a.chars[1], b.chars[1]) - max(a.chars[0], b.chars[0]))
        return LEVELS * shared // (max(a.chars[1], b.chars[1]) - min(a.chars[0], b.chars[0]))
    quote, wide = (a, b) if a.chars else (b, a)
    if quote.chars is None:
        return LEVELS * shared // (a.spans + b.spans - shared)
    if quote.text is None:
        return min(LEVELS - 1, LEVELS // wide.spans)
    return LEVELS * (quote.chars[1] - quote.chars[0]) // (quote.text * wide.spans)


def merged(stretches: Iterable[Stretch], *, touching: bool) -> tuple[Stretch, ...]:
    """The same spans in order, each once; what overlaps is joined, and so is what is ``touching``.

    Stretches that hold nothing are left out.
    """
    found: list[Stretch] = []
    for first, after in sorted(stretches):
        if first >= after:
            continue
        if found and (first < found[-1][1] or (touching and first == found[-1][1])):
            found[-1] = found[-1][0], max(found[-1][1], after)
        else:
            found.append((first, after))
    return tuple(found)


def matched(ours: Sequence[Place], theirs: Sequence[Place]) -> tuple[int, ...]:
    """How many pairs can be made at each level of overlap, from 1 to 10 tenths.

    Each place is in one pair at most, and the two of a pair overlap by that level or more. There
    is no way to make more pairs: this is the size of a maximum matching (Berge 1957), found by
    augmenting paths. It cannot grow with the level.
    """
    edges: dict[int, list[tuple[int, int]]] = {}
    by_first = sorted(range(len(theirs)), key=lambda place: theirs[place].first)
    for left, one in enumerate(ours):
        for right in by_first:
            if theirs[right].first > one.last:
                break
            tenths = level(one, theirs[right])
            if tenths:
                edges.setdefault(tenths, []).append((left, right))
    pairs = _Pairs()
    sizes = []
    for tenths in range(LEVELS, 0, -1):
        # Pairs that overlap more stay pairs, so each level goes on from the one above.
        for left, right in edges.get(tenths, ()):
            pairs.reach.setdefault(left, []).append(right)
        if tenths in edges:
            pairs.augment()
        sizes.append(len(pairs.of_right))
    return tuple(reversed(sizes))


class _Pairs:
    """A matching of places on the left with places on the right that they reach."""

    def __init__(self) -> None:
        self.reach: dict[int, list[int]] = {}
        self.of_right: dict[int, int] = {}
        self._of_left: dict[int, int] = {}

    def augment(self) -> None:
        """Make as many pairs as can be made."""
        for left in self.reach:
            if left not in self._of_left:
                self._pair(left)

    def _pair(self, start: int) -> None:
        """Find a partner for one on the left, where others must change theirs for it as well."""
        came_from: dict[int, int] = {}
        waiting = [start]
        while waiting:
            left = waiting.pop()
            for right in self.reach[left]:
                if right in came_from:
                    continue
                came_from[right] = left
                if right not in self.of_right:
                    self._flip(right, came_from)
                    return
                waiting.append(self.of_right[right])

    def _flip(self, end: int, came_from: Mapping[int, int]) -> None:
        """Make the pairs along a path that ends at one on the right without a partner."""
        right: int | None = end
        while right is not None:
            left = came_from[right]
            self.of_right[right], self._of_left[left], right = left, right, self._of_left.get(left)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one annotator made of one trace.

    ``places`` are the places that they marked, by mode. ``read`` are the spans that they have
    read; None where nobody kept a record of it, as with judges and imported labels: such a
    reading counts as one of the whole trace. ``unanswered`` are the modes on which they gave no
    answer, so that a place without a mark says nothing. ``unplaced`` are the modes that they
    called present without a place: these show somewhere, and nothing is said of where.
    ``whole_trace`` counts their labels on the trace as a whole, ``not_found`` those on spans that
    the trace does not have. Raises ``ValueError`` where a mode has places and is unplaced.
    """

    places: Mapping[str, tuple[Place, ...]]
    read: tuple[Stretch, ...] | None = None
    unanswered: frozenset[str] = frozenset()
    whole_trace: int = 0
    not_found: int = 0
    unplaced: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if any(self.places.get(mode) for mode in self.unplaced):
            raise ValueError("a mode with places says where it shows")
        # Two quotes of the same words are one place.
        object.__setattr__(
            self, "places", {mode: tuple(dict.fromkeys(p)) for mode, p in self.places.items()}
        )

    def seen(self, spans: int) -> tuple[Stretch, ...]:
        """The spans of a trace of that many on which a missing mark says something.

        They are those that were read, and those that were marked with whatever mode.
        """
        if self.read is None:
            return merged([(0, spans)], touching=True)
        marked = covered(place for places in self.places.values() for place in places)
        return merged([*self.read, *marked], touching=True)


@dataclass(frozen=True, slots=True)
class TraceReadings:
    """A trace of ``spans`` spans and who has finished it, by annotator."""

    trace_id: str
    spans: int
    readings: Mapping[str, Reading]


@dataclass(frozen=True, slots=True)
class SpanInput:
    """Whose places are compared, on which modes, in which traces.

    ``modes`` are (slug, code, name) in the taxonomy's order; ``pass_label`` is what the report
    calls the pass. ``traces`` are those that two annotators or more have finished and that are at
    hand; ``not_at_hand`` is how many are not, ``finished`` how many each annotator has finished at
    all. ``examples`` is how many were left out of a judge's figures as they stood in its prompt.
    Raises ``ValueError`` where an annotator or a trace is named twice.
    """

    taxonomy_ref: str
    modes: tuple[tuple[str, str, str], ...]
    annotators: tuple[str, ...]
    pass_label: str
    traces: tuple[TraceReadings, ...]
    finished: Mapping[str, int]
    not_at_hand: int = 0
    examples: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for names in (self.annotators, tuple(trace.trace_id for trace in self.traces)):
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise ValueError(f"{twice!r} is compared with itself")


def covered(places: Iterable[Place]) -> tuple[Stretch, ...]:
    """The spans that places touch, each once."""
    return merged(((place.first, place.last + 1) for place in places), touching=True)


def touches(place: Place, stretches: tuple[Stretch, ...]) -> bool:
    """Whether any span of a place stands in stretches that are in order and disjoint."""
    last = bisect_right(stretches, place.last, key=lambda stretch: stretch[0])
    return last > 0 and stretches[last - 1][1] > place.first
