"""The places that annotators marked in traces, and the spans that the annotators read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from mast_tui.gold import Order
from mast_tui.labels import Target

LEVELS: Final = 10
"""The levels of overlap, in tenths: level 3 is an intersection of at least 0.3 of the union."""

Stretch = tuple[int, int]
"""Neighbouring spans: the index of the first, and the index after the last."""


@dataclass(frozen=True, slots=True)
class LabelRange:
    """Some spans of a trace, or a quote in one span.

    Attributes:
        first: The index of the first span.
        last: The index of the last span, included.
        chars: The start and the end (excluded) of the quote in the text of the span; None for whole
            spans, or if the position of the quote is unknown.
        text_length: The length of that text; None if it is unknown.
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
    """Return the place of a target; None for the whole trace or a span outside the trace.

    A quote that does not fit into the text of its span counts as the whole span.

    Args:
        target: The target of a label.
        order: The function that returns the index of a span by its key.
        length_of: The function that returns the length of a span's text by its key.
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


def overlap_level(a: LabelRange, b: LabelRange) -> int:
    """Return the overlap of two places in tenths, from 0 to 10: intersection over union.

    The overlap is rounded down. A span has the length 1, and a quote the part of its span that it
    covers. Two quotes in one span are compared by their characters. If the length of the text is
    unknown, a quote compared with whole spans counts as its whole span, but the level is at most 9.

    Args:
        a: One place.
        b: The other place.
    """
    shared_count = min(a.last, b.last) - max(a.first, b.first) + 1
    if shared_count <= 0:
        return 0
    if a.chars and b.chars:
        start_a, end_a = a.chars
        start_b, end_b = b.chars
        shared_count = max(0, min(end_a, end_b) - max(start_a, start_b))
        return LEVELS * shared_count // (max(end_a, end_b) - min(start_a, start_b))
    quote, whole_spans = (a, b) if a.chars else (b, a)
    if quote.chars is None:
        return LEVELS * shared_count // (a.spans + b.spans - shared_count)
    if quote.text_length is None:
        return min(LEVELS - 1, LEVELS // whole_spans.spans)
    start, end = quote.chars
    return LEVELS * (end - start) // (quote.text_length * whole_spans.spans)


def merged_stretches(stretches: Iterable[Stretch], *, touching: bool) -> tuple[Stretch, ...]:
    """Return stretches in order, with overlapping stretches joined and empty ones left out.

    Args:
        stretches: Stretches as (first, after).
        touching: Whether stretches that only touch are joined too.
    """
    joined_stretches: list[Stretch] = []
    for first, after in sorted(stretches):
        if first >= after:
            continue
        last_first, last_after = joined_stretches[-1] if joined_stretches else (first, -1)
        if first < last_after or (touching and first == last_after):
            joined_stretches[-1] = (last_first, max(last_after, after))
        else:
            joined_stretches.append((first, after))
    return tuple(joined_stretches)


def matched_pair_counts(
    ours: Sequence[LabelRange], theirs: Sequence[LabelRange]
) -> tuple[int, ...]:
    """Return the greatest number of pairs of places at each level of overlap, from 1 to 10 tenths.

    Each place is in one pair at most, and both places of a pair overlap by that level or more. The
    number is the size of a maximum matching (Berge 1957), computed by augmenting paths. It never
    grows with the level.

    Args:
        ours: The places of one annotator.
        theirs: The places of the other annotator.
    """
    edges_by_level: dict[int, list[tuple[int, int]]] = {}
    theirs_by_first_span = sorted(
        range(len(theirs)), key=lambda their_number: theirs[their_number].first
    )
    for our_number, our_place in enumerate(ours):
        for their_number in theirs_by_first_span:
            if theirs[their_number].first > our_place.last:
                break
            tenths = overlap_level(our_place, theirs[their_number])
            if tenths:
                edges_by_level.setdefault(tenths, []).append((our_number, their_number))
    matching = _Matching()
    pair_counts = []
    for tenths in range(LEVELS, 0, -1):
        # Pairs that overlap more remain pairs, so each level continues from the one above.
        for our_number, their_number in edges_by_level.get(tenths, ()):
            matching.rights_in_reach.setdefault(our_number, []).append(their_number)
        if tenths in edges_by_level:
            matching.augment()
        pair_counts.append(len(matching.left_of_right))
    return tuple(reversed(pair_counts))


class _Matching:
    """A matching of the places of one annotator (left) with those of another annotator (right).

    Attributes:
        rights_in_reach: The right places that overlap enough, by left place.
        left_of_right: The left partner of each right place that has one.
    """

    def __init__(self) -> None:
        self.rights_in_reach: dict[int, list[int]] = {}
        self.left_of_right: dict[int, int] = {}
        self._right_of_left: dict[int, int] = {}

    def augment(self) -> None:
        """Make as many pairs as can be made."""
        for left in self.rights_in_reach:
            if left not in self._right_of_left:
                self._find_partner(left)

    def _find_partner(self, start: int) -> None:
        """Find a partner for a left place, if there is one.

        For this, other left places may change their partners.
        """
        came_from: dict[int, int] = {}
        open_lefts = [start]
        while open_lefts:
            left = open_lefts.pop()
            for right in self.rights_in_reach[left]:
                if right in came_from:
                    continue
                came_from[right] = left
                if right not in self.left_of_right:
                    self._pair_along_path(right, came_from)
                    return
                open_lefts.append(self.left_of_right[right])

    def _pair_along_path(self, end: int, came_from: Mapping[int, int]) -> None:
        """Pair the places along a path, which ends at a right place without a partner."""
        right: int | None = end
        while right is not None:
            left = came_from[right]
            next_right = self._right_of_left.get(left)
            self.left_of_right[right] = left
            self._right_of_left[left] = right
            right = next_right


@dataclass(frozen=True, slots=True)
class TraceReading:
    """The reading of one trace by one annotator.

    Attributes:
        places: The marked places by mode.
        read: The stretches that were read; None without a record, as for judges and imported
            labels, which count as readings of the whole trace.
        unanswered: The modes without an answer, on which a missing mark means nothing.
        whole_trace: The number of labels on the whole trace.
        not_found: The number of labels on spans that the trace does not have.
        unplaced: The modes that are called present without a place.

    Raises:
        ValueError: A mode has places and is unplaced.
    """

    places: Mapping[str, tuple[LabelRange, ...]]
    read: tuple[Stretch, ...] | None = None
    unanswered: frozenset[str] = frozenset()
    whole_trace: int = 0
    not_found: int = 0
    unplaced: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if any(self.places.get(mode) for mode in self.unplaced):
            raise ValueError("a mode with places cannot be unplaced")
        # Two quotes of the same words are one place.
        object.__setattr__(
            self,
            "places",
            {mode: tuple(dict.fromkeys(places)) for mode, places in self.places.items()},
        )

    def seen(self, spans: int) -> tuple[Stretch, ...]:
        """Return the read or marked stretches, in which a missing mark means absent.

        Args:
            spans: The number of spans of the trace.
        """
        if self.read is None:
            return merged_stretches([(0, spans)], touching=True)
        marked_stretches = covered_stretches(chain.from_iterable(self.places.values()))
        return merged_stretches([*self.read, *marked_stretches], touching=True)


@dataclass(frozen=True, slots=True)
class TraceReadings:
    """A trace of ``spans`` spans and who has finished it, by annotator."""

    trace_id: str
    spans: int
    readings: Mapping[str, TraceReading]


@dataclass(frozen=True, slots=True)
class SpanInput:
    """The marked places of annotators, as the input of the figures on places.

    Attributes:
        taxonomy_ref: The taxonomy, as ``id@version``.
        modes: The modes as (slug, code, name), in the taxonomy's order.
        annotators: The names of the annotators.
        pass_label: The name of the pass that counts: ``1`` or ``last``.
        traces: The traces with known spans that two annotators or more have finished.
        finished: The number of finished traces of each annotator.
        not_at_hand: The number of finished traces with unknown spans.
        examples: The number of traces of each judge that are left out as they were in its prompt.

    Raises:
        ValueError: An annotator or a trace is named twice.
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
                raise ValueError(f"{twice!r} is named twice")


def covered_stretches(places: Iterable[LabelRange]) -> tuple[Stretch, ...]:
    """Return the spans that places touch, each once."""
    return merged_stretches(((marked.first, marked.last + 1) for marked in places), touching=True)


def touches(place: LabelRange, stretches: tuple[Stretch, ...]) -> bool:
    """Return whether any span of a place is in the stretches.

    Args:
        place: The place.
        stretches: Disjoint stretches in order.
    """
    stretch_count = bisect_right(stretches, place.last, key=lambda stretch: stretch[0])
    return stretch_count > 0 and stretches[stretch_count - 1][1] > place.first
