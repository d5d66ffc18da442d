"""Who marked which places in which traces, and which spans they had read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mast_tui.figures.spans.places import Place, Stretch, merged


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
