"""The places that annotators marked in traces, and the spans that the annotators read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from mast_tui.gold.overlaps import Order, index_range
from mast_tui.labels import Target
from mast_tui.taxonomy.model import Mode

LEVELS: Final = 10
"""The number of levels of overlap: level 3 is an intersection over union of at least 0.3."""

Stretch = tuple[int, int]
"""Neighbouring spans: the index of the first, and the index after the last."""


@dataclass(frozen=True, slots=True)
class LabelRange:
    """A range of spans of a trace, or a quote in one span.

    Attributes:
        first: The index of the first span.
        last: The index of the last span, included.
        chars: The start and the end (excluded) of the quote in the text of the span; None for whole
            spans.
        text_length: The length of that text; None if unknown.
    """

    first: int
    last: int
    chars: tuple[int, int] | None = None
    text_length: int | None = None

    @property
    def spans(self) -> int:
        """The number of its spans."""
        return self.last - self.first + 1


def label_range_of(
    target: Target, order: Order, length_of: Callable[[str], int | None] | None = None
) -> LabelRange | None:
    """Return the range that a target covers in its trace.

    A quote that does not fit into the text of its span counts as the whole span. The result is None
    for a whole trace, or if a span is not in the trace.

    Args:
        target: The target of a label.
        order: Returns the index of a span by its key.
        length_of: Returns the length of a span's text by its key.
    """
    spans = index_range(target, order)
    if spans is None or target.first is None:
        return None
    chars = None
    text_length = None
    start = target.char_start
    end = target.char_end
    if target.quote is not None and start is not None and end is not None:
        text_length = length_of(target.first) if length_of is not None else None
        if 0 <= start < end and (text_length is None or end <= text_length):
            chars = (start, end)
    return LabelRange(spans.start, spans.stop - 1, chars, text_length if chars else None)


def overlap_level(a: LabelRange, b: LabelRange) -> int:
    """Return the overlap of two places, intersection over union, in tenths, rounded down.

    A span has the length 1, and a quote the part of its span that it covers. If the length of the
    text is unknown, a quote compared with whole spans counts as its whole span, but the overlap is
    at most 9.

    Args:
        a: One place.
        b: The other place.
    """
    shared_spans = min(a.last, b.last) - max(a.first, b.first) + 1
    if shared_spans <= 0:
        return 0
    if a.chars and b.chars:
        start_a, end_a = a.chars
        start_b, end_b = b.chars
        shared_chars = max(0, min(end_a, end_b) - max(start_a, start_b))
        return LEVELS * shared_chars // (max(end_a, end_b) - min(start_a, start_b))
    quote, whole_spans = (a, b) if a.chars else (b, a)
    if quote.chars is None:
        return LEVELS * shared_spans // (a.spans + b.spans - shared_spans)
    if quote.text_length is None:
        return min(LEVELS - 1, LEVELS // whole_spans.spans)
    start, end = quote.chars
    return LEVELS * (end - start) // (quote.text_length * whole_spans.spans)


def merged_stretches(stretches: Iterable[Stretch], *, join_touching: bool) -> tuple[Stretch, ...]:
    """Return stretches of spans in order, with overlapping ones joined and without empty ones.

    Args:
        stretches: Stretches as (index of the first span, index after the last span).
        join_touching: Whether to join stretches that only touch.
    """
    merged: list[Stretch] = []
    for first, after in sorted(stretches):
        if first >= after:
            continue
        last_first, last_after = merged[-1] if merged else (first, -1)
        if first < last_after or (join_touching and first == last_after):
            merged[-1] = (last_first, max(last_after, after))
        else:
            merged.append((first, after))
    return tuple(merged)


def matched_pair_counts(
    ours: Sequence[LabelRange], theirs: Sequence[LabelRange]
) -> tuple[int, ...]:
    """Return how many pairs of places two annotators share at each level of overlap.

    The levels are overlaps of at least 1 to 10 tenths. Each place is in one pair at most. The
    number of pairs is that of a maximum matching (Berge 1957), by augmenting paths.

    Args:
        ours: The places of one annotator.
        theirs: The places of the other annotator.
    """
    # The overlapping pairs of places, as indices, by their overlap in tenths.
    edges_by_level: dict[int, list[tuple[int, int]]] = {}
    theirs_by_first_span = sorted(
        range(len(theirs)), key=lambda theirs_index: theirs[theirs_index].first
    )
    for ours_index, our_place in enumerate(ours):
        for theirs_index in theirs_by_first_span:
            if theirs[theirs_index].first > our_place.last:
                break
            tenths = overlap_level(our_place, theirs[theirs_index])
            if tenths:
                edges_by_level.setdefault(tenths, []).append((ours_index, theirs_index))
    matching = _Matching()
    pair_counts = []
    for tenths in range(LEVELS, 0, -1):
        # This level adds possible pairs to those of higher levels.
        for ours_index, theirs_index in edges_by_level.get(tenths, ()):
            matching.rights_in_reach.setdefault(ours_index, []).append(theirs_index)
        if tenths in edges_by_level:
            matching.augment()
        pair_counts.append(len(matching.left_of_right))
    return tuple(reversed(pair_counts))


class _Matching:
    """A matching of one annotator's places (left) with another's (right).

    Attributes:
        rights_in_reach: The right places that overlap enough, by left place.
        left_of_right: The left partner of each right place that has one.
    """

    def __init__(self) -> None:
        self.rights_in_reach: dict[int, list[int]] = {}
        self.left_of_right: dict[int, int] = {}
        self._right_of_left: dict[int, int] = {}

    def augment(self) -> None:
        """Match as many places as possible."""
        for left in self.rights_in_reach:
            if left not in self._right_of_left:
                self._find_partner(left)

    def _find_partner(self, start: int) -> None:
        """Find a right partner for a left place; other left places may change their partners."""
        # The left place from which each right place was reached.
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
        """Pair the right place at the end of a path, and change the partners along the path.

        ``came_from`` has the left place before each right place.
        """
        right: int | None = end
        while right is not None:
            left = came_from[right]
            next_right = self._right_of_left.get(left)
            self.left_of_right[right] = left
            self._right_of_left[left] = right
            right = next_right


@dataclass(frozen=True, slots=True)
class TraceMarks:
    """The places that one annotator marked in one trace, and the spans that the annotator read.

    Attributes:
        places: The marked places by mode.
        read: The stretches that were read; None without a record, which counts as the whole trace.
        unanswered: The modes without an answer, for which a missing mark is not negative.
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
        # Two labels of a mode with the same range are one place.
        object.__setattr__(
            self,
            "places",
            {mode: tuple(dict.fromkeys(places)) for mode, places in self.places.items()},
        )

    def seen(self, spans: int) -> tuple[Stretch, ...]:
        """Return the stretches that the annotator has read or marked.

        Without a record of reading, the whole trace, of ``spans`` spans, is one stretch.
        """
        if self.read is None:
            return merged_stretches([(0, spans)], join_touching=True)
        marked_stretches = covered_stretches(chain.from_iterable(self.places.values()))
        return merged_stretches([*self.read, *marked_stretches], join_touching=True)


@dataclass(frozen=True, slots=True)
class SharedTrace:
    """A trace with its number of spans, and the marks of its annotators by name."""

    trace_id: str
    spans: int
    marks_by_name: Mapping[str, TraceMarks]


@dataclass(frozen=True, slots=True)
class SpanInput:
    """The marked places of annotators, as the input of the figures on places.

    Attributes:
        taxonomy_ref: The taxonomy, as ``id@version``.
        modes: The modes, in the taxonomy's order.
        annotators: The names of the annotators.
        pass_label: The name of the pass that counts: ``1`` or ``last``.
        traces: The traces with known spans that two annotators or more have finished.
        finished: The number of finished traces of each annotator.
        not_at_hand: The number of finished traces with unknown spans.
        examples: The number of traces of each judge that were examples in its prompt.

    Raises:
        ValueError: An annotator or a trace is named twice.
    """

    taxonomy_ref: str
    modes: tuple[Mode, ...]
    annotators: tuple[str, ...]
    pass_label: str
    traces: tuple[SharedTrace, ...]
    finished: Mapping[str, int]
    not_at_hand: int = 0
    examples: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for names in (self.annotators, tuple(trace.trace_id for trace in self.traces)):
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise ValueError(f"{twice!r} is named twice")


def covered_stretches(places: Iterable[LabelRange]) -> tuple[Stretch, ...]:
    """Return the stretches of spans that places cover."""
    return merged_stretches(
        ((label_range.first, label_range.last + 1) for label_range in places), join_touching=True
    )


def touches(label_range: LabelRange, stretches: tuple[Stretch, ...]) -> bool:
    """Return whether any span of a label is in the stretches.

    Args:
        label_range: The spans of the label.
        stretches: Disjoint stretches in order.
    """
    # Stretches are disjoint, so only the last one that begins in time can touch the label.
    stretch_count = bisect_right(stretches, label_range.last, key=lambda stretch: stretch[0])
    return stretch_count > 0 and stretches[stretch_count - 1][1] > label_range.first
