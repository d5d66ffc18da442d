"""Counts of a run's spans by kind, and where its errors are, taken from columns."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from mast_tui.traces.glances import STATUSES, Glances, Shape
from mast_tui.traces.model import Role, SpanKind, SpanStatus

MOST_BUCKETS: Final = 1024
"""How many stretches are counted apart; when there would be more, each two become one."""


class Matter(Enum):
    """What a cell of the overview shows, the weightiest first; ``UNSEEN`` was not looked at yet.

    What is looked for now comes before what stays, and what fails often after what is rare.
    """

    MATCH = "match"
    OWN = "own"
    SUGGESTION = "suggestion"
    ERROR = "error"
    USER = "user"
    AGENT = "agent"
    TOOL = "tool"
    OTHER = "other"
    UNSEEN = "unseen"


KINDS: Final = (Matter.USER, Matter.AGENT, Matter.TOOL, Matter.OTHER)
"""What is counted in each stretch; of equally many the first is shown."""

_ERROR: Final = STATUSES.index(SpanStatus.ERROR)


def kind_of(kind: SpanKind, role: Role) -> Matter:
    """On whose account a span of this kind and role goes."""
    if kind in (SpanKind.TOOL_CALL, SpanKind.TOOL_RESULT):
        return Matter.TOOL
    if role is Role.USER:
        return Matter.USER
    if role is Role.AGENT:
        return Matter.AGENT
    return Matter.OTHER


@dataclass(frozen=True, slots=True)
class Buckets:
    """For each of ``KINDS`` how many spans there are in each stretch of ``1 << shift`` spans."""

    shift: int
    counts: tuple[array[int], ...]

    def halved(self) -> Buckets:
        """The same in stretches of twice the length."""
        pairs = (zip(counts[::2], counts[1::2], strict=True) for counts in self.counts)
        return Buckets(self.shift + 1, tuple(array("I", map(sum, each)) for each in pairs))


class RunCounts:
    """Counts of the spans looked at so far, which are given in order.

    Kinds are counted in at most ``MOST_BUCKETS`` stretches of 1, 2, 4, … spans. Of spans that are
    errors the index is kept, so that one can go from one to the next. One thread may ``take``
    while others ask.
    """

    # Whoever asks meanwhile reads arrays that only grow, or ``buckets``, which is replaced as a
    # whole; ``seen`` is set last, when what it counts is there.

    def __init__(self) -> None:
        self.seen = 0
        self.errors: array[int] = array("I")
        self.buckets = Buckets(0, tuple(array("I") for _ in KINDS))
        self._told: Sequence[Shape] = ()
        self._kinds = bytearray()  # for each shape that was told the place of its kind in KINDS

    def take(self, found: Glances) -> None:
        """Count the spans that follow those counted."""
        kinds = self._kinds_of(found)
        size, place = len(kinds), 0
        while place < size:
            at = self.seen + place
            buckets = self.buckets
            if at >> buckets.shift == MOST_BUCKETS:
                buckets = self.buckets = buckets.halved()
            bucket = at >> buckets.shift
            end = min(size, place + ((bucket + 1) << buckets.shift) - at)
            for number, counts in enumerate(buckets.counts):
                if bucket == len(counts):
                    counts.append(0)
                counts[bucket] += kinds.count(number, place, end)
            place = end
        statuses = found.statuses
        error = statuses.find(_ERROR)
        while error >= 0:
            self.errors.append(self.seen + error)
            error = statuses.find(_ERROR, error + 1)
        self.seen += size

    def _kinds_of(self, found: Glances) -> bytes:
        told = found.told
        if told is not self._told:
            self._told, self._kinds = told, bytearray()
        for kind, role, *_ in told[len(self._kinds) :]:
            self._kinds.append(KINDS.index(kind_of(kind, role)))
        return bytes(map(self._kinds.__getitem__, found.shapes))

    def kinds_in(self, first: int, end: int) -> list[int]:
        """How many spans of each kind there are; stretches that reach in are counted whole."""
        buckets = self.buckets
        low, high = first >> buckets.shift, ((end - 1) >> buckets.shift) + 1
        return [sum(counts[low:high]) for counts in buckets.counts]

    def kind_in(self, first: int, end: int) -> Matter:
        """Which kind is the most frequent; stretches that reach in are counted whole."""
        sums = self.kinds_in(first, end)
        most = max(sums)
        return KINDS[sums.index(most)] if most else Matter.UNSEEN

    def errors_in(self, first: int, end: int) -> int:
        """How many of these spans are errors."""
        low = bisect_left(self.errors, first)
        return bisect_left(self.errors, end, low) - low

    def error_from(self, index: int, step: int) -> int | None:
        """The next error behind span ``index``, or with a negative step before it."""
        errors = self.errors
        if step > 0:
            place = bisect_right(errors, index)
            return errors[place] if place < len(errors) else None
        place = bisect_left(errors, index)
        return errors[place - 1] if place else None
