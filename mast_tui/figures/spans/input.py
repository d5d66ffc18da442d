"""The places that annotators marked in traces, and the spans that the annotators read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mast_tui.gold import Order
from mast_tui.labels import Target

LEVELS: Final = 10
"""The levels of overlap, in tenths: level 3 is an intersection of at least 0.3 of the union."""

Stretch = tuple[int, int]
"""Neighbouring spans: the index of the first, and the index after the last."""


@dataclass(frozen=True, slots=True)
class LabelRange:
    """The spans from ``first`` to ``last`` (indices, both included), or a quote in one of them.

    ``chars`` are the quote's start and end (exclusive) in code points of the span's text, None for
    whole spans, or if the position of the quote is unknown. ``text_length`` is the number of code
    points of that text, None if it is unknown.
    """

    first: int
    last: int
    chars: tuple[int, int] | None = None
    text_length: int | None = None

    @property
    def spans(self) -> int:
        """The number of spans that it touches."""
        return self.last - self.first + 1


def place_of(
    target: Target, order: Order, length_of: Callable[[str], int | None] | None = None
) -> LabelRange | None:
    """Return the place of a target, None for the whole trace or a span outside the trace.

    A quote that does not fit into the text of its span has moved: it counts as the whole span.

    Args:
        target: The target of a label.
        order: Returns the index of a span by its key.
        length_of: Returns the length of a span's text by its key.
    """
    if target.first is None or target.last is None:
        return None
    first = order(target.first)
    last = order(target.last)
    if first is None or last is None:
        return None
    chars = None
    text_length = None
    start = target.char_start
    end = target.char_end
    if target.quote is not None and start is not None and end is not None:
        text_length = length_of(target.first) if length_of is not None else None
        if 0 <= start < end and (text_length is None or end <= text_length):
            chars = (start, end)
    return LabelRange(min(first, last), max(first, last), chars, text_length if chars else None)


def level(a: LabelRange, b: LabelRange) -> int:
    """Return the overlap of two places in tenths, from 0 to 10: intersection over union.

    It is rounded down and counted in spans of length 1, of which a quote is the part that it
    covers. Two quotes in one span are compared by their characters. If the length of the span's
    text is unknown, a quote beside a range counts as the whole span, but the level is 9 at most.

    Args:
        a: One place.
        b: The other place.
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
    if quote.text_length is None:
        return min(LEVELS - 1, LEVELS // wide.spans)
    return LEVELS * (quote.chars[1] - quote.chars[0]) // (quote.text_length * wide.spans)


def merged(stretches: Iterable[Stretch], *, touching: bool) -> tuple[Stretch, ...]:
    """Return the same spans in order, each once, with overlapping stretches joined.

    Empty stretches are left out.

    Args:
        stretches: The stretches.
        touching: Whether stretches that only touch are joined too.
    """
    joined: list[Stretch] = []
    for first, after in sorted(stretches):
        if first >= after:
            continue
        if joined and (first < joined[-1][1] or (touching and first == joined[-1][1])):
            joined[-1] = (joined[-1][0], max(joined[-1][1], after))
        else:
            joined.append((first, after))
    return tuple(joined)


def matched(ours: Sequence[LabelRange], theirs: Sequence[LabelRange]) -> tuple[int, ...]:
    """Return the most pairs that can be made at each level of overlap, from 1 to 10 tenths.

    Each place is in one pair at most, and both places of a pair overlap by that level or more. The
    number is the size of a maximum matching (Berge 1957), computed by augmenting paths. It cannot
    grow with the level.

    Args:
        ours: The places of one annotator.
        theirs: The places of the other.
    """
    edges: dict[int, list[tuple[int, int]]] = {}
    by_first = sorted(range(len(theirs)), key=lambda right: theirs[right].first)
    for left, our_place in enumerate(ours):
        for right in by_first:
            if theirs[right].first > our_place.last:
                break
            tenths = level(our_place, theirs[right])
            if tenths:
                edges.setdefault(tenths, []).append((left, right))
    pairs = _Pairs()
    sizes = []
    for tenths in range(LEVELS, 0, -1):
        # Pairs that overlap more remain pairs, so each level continues from the one above.
        for left, right in edges.get(tenths, ()):
            pairs.reach.setdefault(left, []).append(right)
        if tenths in edges:
            pairs.augment()
        sizes.append(len(pairs.of_right))
    return tuple(reversed(sizes))


class _Pairs:
    """A matching of the places of one annotator (left) with those of another (right).

    ``reach`` has, by each left place, the right places that overlap enough. ``of_right`` is the
    left partner of each right place.
    """

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
        """Find a partner for a left place; other left places may get other partners for it."""
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
        """Make the pairs along a path that ends at a right place without a partner."""
        right: int | None = end
        while right is not None:
            left = came_from[right]
            next_right = self._of_left.get(left)
            self.of_right[right] = left
            self._of_left[left] = right
            right = next_right


@dataclass(frozen=True, slots=True)
class TraceReading:
    """The reading of one trace by one annotator.

    ``places`` are the marked places by mode. ``read`` are the spans that were read; None without a
    record, as with judges and imported labels, which count as readings of the whole trace.
    ``unanswered`` are the modes without an answer, on which a missing mark means nothing.
    ``unplaced`` are the modes called present without a place.
    ``whole_trace`` counts labels on the whole trace, ``not_found`` labels on spans that the trace
    does not have. Raises ``ValueError`` if a mode has places and is unplaced.
    """

    places: Mapping[str, tuple[LabelRange, ...]]
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
        """Return the stretches in which a missing mark means absent: those read or marked.

        Args:
            spans: The number of spans of the trace.
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
    readings: Mapping[str, TraceReading]


@dataclass(frozen=True, slots=True)
class SpanInput:
    """The marked places of annotators, as the input of the figures on places.

    ``modes`` are (slug, code, name) in the taxonomy's order; ``pass_label`` is the report's name of
    the pass. ``traces`` are those that two annotators or more have finished and whose spans are
    known; ``not_at_hand`` counts the finished traces with unknown spans, ``finished`` all finished
    traces of each annotator. ``examples`` counts traces that were left out because they were in a
    judge's prompt. Raises ``ValueError`` if an annotator or a trace is named twice.
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


def covered(places: Iterable[LabelRange]) -> tuple[Stretch, ...]:
    """Return the spans that places touch, each once."""
    return merged(((marked.first, marked.last + 1) for marked in places), touching=True)


def touches(marked: LabelRange, stretches: tuple[Stretch, ...]) -> bool:
    """Return whether any span of a place is in the stretches.

    Args:
        marked: The place.
        stretches: Disjoint stretches in order.
    """
    last = bisect_right(stretches, marked.last, key=lambda stretch: stretch[0])
    return last > 0 and stretches[last - 1][1] > marked.first
