"""What one judge found beside another judge, or beside the gold: counts per mode, and the cases.

The unit is trace × mode where both have said present or absent; where either is unsure, or has
said nothing, nothing is compared and it is counted apart. Whether the places meet is told beside
it: two places meet where they overlap. A word about the whole trace names no place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from mast_tui.gold.overlaps import Order, overlap
from mast_tui.labels import Label, Target, VerdictValue


class Outcome(StrEnum):
    """Who says that a mode shows in a trace."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Mark:
    """One place that a side names, and the label it stands in (None for gold)."""

    target: Target
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """What one side says: verdicts and marks by trace id and mode (slug).

    A mode with marks is present, whatever its verdict says.
    """

    verdicts: Mapping[tuple[str, str], VerdictValue] = field(default_factory=dict)
    marks: Mapping[tuple[str, str], tuple[Mark, ...]] = field(default_factory=dict)

    def value(self, trace_id: str, mode: str) -> VerdictValue | None:
        """The verdict on a mode in a trace; None where nothing was said."""
        key = (trace_id, mode)
        return VerdictValue.PRESENT if self.marks.get(key) else self.verdicts.get(key)


@dataclass(frozen=True, slots=True)
class Case:
    """A trace in which at least one side says that a mode shows, and where.

    ``meet`` is whether a place of one overlaps one of the other, None where only one side says it
    or either names no place.
    """

    trace_id: str
    mode: str
    outcome: Outcome
    first: tuple[Mark, ...]
    second: tuple[Mark, ...]
    meet: bool | None = None

    @property
    def differs(self) -> bool:
        """Whether the sides differ about the mode or about its place."""
        return self.outcome is not Outcome.BOTH or self.meet is False


@dataclass(frozen=True, slots=True)
class ModeCounts:
    """How many traces have each outcome on a mode.

    Of ``both`` the places meet in ``meet`` and differ in ``apart``; in the rest none is named.
    ``undecided`` are the traces in which a side is unsure or has said nothing.
    """

    mode: str
    both: int = 0
    first: int = 0
    second: int = 0
    neither: int = 0
    undecided: int = 0
    meet: int = 0
    apart: int = 0

    @property
    def compared(self) -> int:
        """The traces on which both have said present or absent."""
        return self.both + self.first + self.second + self.neither

    @property
    def precision(self) -> float | None:
        """Which share of what the first says the second says too; None where it says nothing."""
        said = self.both + self.first
        return self.both / said if said else None

    @property
    def recall(self) -> float | None:
        """Which share of what the second says the first says too; None where it says nothing."""
        said = self.both + self.second
        return self.both / said if said else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Counts per mode in the taxonomy's order, and the cases behind them by mode."""

    counts: tuple[ModeCounts, ...]
    cases: Mapping[str, tuple[Case, ...]]

    @property
    def total(self) -> ModeCounts:
        """All modes together; its ``mode`` is empty."""
        names = ("both", "first", "second", "neither", "undecided", "meet", "apart")
        return ModeCounts("", *(sum(getattr(c, name) for c in self.counts) for name in names))


def side_of(labels: Iterable[Label], verdicts: Mapping[tuple[str, str], VerdictValue]) -> Side:
    """A side from an annotator's labels, and their verdicts by trace id and mode."""
    marks: dict[tuple[str, str], list[Mark]] = {}
    for label in labels:
        marks.setdefault((label.trace_id, label.mode), []).append(Mark(label.target, label.id))
    return Side(verdicts, {key: tuple(found) for key, found in marks.items()})


def compare(
    first: Side,
    second: Side,
    traces: Collection[str],
    modes: Sequence[str],
    order_of: Callable[[str], Order],
    *,
    left_out: Collection[tuple[str, str]] = frozenset(),
) -> Comparison:
    """Both sides over these traces and modes (slugs).

    ``order_of`` gives the order of a trace's spans by its id; it is asked only where both name
    places. ``left_out`` are pairs of trace id and mode that do not count.
    """
    counts, cases = [], {}
    for mode in modes:
        found, undecided, neither = list[Case](), 0, 0
        for trace_id in sorted(traces):
            if (trace_id, mode) in left_out:
                continue
            values = first.value(trace_id, mode), second.value(trace_id, mode)
            if None in values or VerdictValue.UNSURE in values:
                undecided += 1
            elif VerdictValue.PRESENT in values:
                found.append(_case(first, second, trace_id, mode, order_of))
            else:
                neither += 1
        of = [case.outcome for case in found]
        counts.append(
            ModeCounts(
                mode,
                both=of.count(Outcome.BOTH),
                first=of.count(Outcome.FIRST),
                second=of.count(Outcome.SECOND),
                neither=neither,
                undecided=undecided,
                meet=sum(case.meet is True for case in found),
                apart=sum(case.meet is False for case in found),
            )
        )
        cases[mode] = tuple(sorted(found, key=_rank))
    return Comparison(tuple(counts), cases)


def _case(
    first: Side, second: Side, trace_id: str, mode: str, order_of: Callable[[str], Order]
) -> Case:
    key = (trace_id, mode)
    ours, theirs = first.marks.get(key, ()), second.marks.get(key, ())
    says = [side.value(trace_id, mode) is VerdictValue.PRESENT for side in (first, second)]
    if not all(says):
        outcome = Outcome.FIRST if says[0] else Outcome.SECOND
        return Case(trace_id, mode, outcome, ours, theirs)
    return Case(trace_id, mode, Outcome.BOTH, ours, theirs, _meet(ours, theirs, order_of(trace_id)))


def _meet(ours: Sequence[Mark], theirs: Sequence[Mark], order: Order) -> bool | None:
    places = [[m.target for m in marks if not m.target.is_whole] for marks in (ours, theirs)]
    if not all(places):
        return None
    return any(overlap(a, b, order) for a in places[0] for b in places[1])


def _rank(case: Case) -> tuple[int, str]:
    """Where they differ comes first: about the mode, then about the place."""
    order = [Outcome.FIRST, Outcome.SECOND, Outcome.BOTH]
    agreed = {False: 0, None: 1, True: 2}[case.meet]
    return (order.index(case.outcome) * 3 + agreed, case.trace_id)
