"""The comparison of a judge with another judge or with the gold: counts and cases of each mode.

The unit is a trace and a mode with the verdict present or absent on both sides. All other units are
counted as undecided. Two span ranges meet if they overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from mast_tui.gold.overlaps import Order, overlap
from mast_tui.labels import Label, Target, VerdictValue


class PresentSide(StrEnum):
    """The side or sides with the verdict present on a mode in a trace."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Mark:
    """A span range that a side marks, with the id of its label (None for gold)."""

    target: Target
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """The verdicts and marks of one side, by trace id and slug of the mode.

    A mode with marks is present, also against its verdict.
    """

    verdicts: Mapping[tuple[str, str], VerdictValue] = field(default_factory=dict)
    marks: Mapping[tuple[str, str], tuple[Mark, ...]] = field(default_factory=dict)

    def value(self, trace_id: str, mode: str) -> VerdictValue | None:
        """Return the verdict on a mode in a trace, or None without a verdict.

        Args:
            trace_id: The id of the trace.
            mode: The slug of the mode.
        """
        key = (trace_id, mode)
        # Marks count as the verdict present, even against the recorded verdict.
        return VerdictValue.PRESENT if self.marks.get(key) else self.verdicts.get(key)


@dataclass(frozen=True, slots=True)
class Case:
    """A trace in which one side or both have the verdict present on a mode.

    Attributes:
        trace_id: The id of the trace.
        mode: The slug of the mode.
        outcome: The side or sides with the verdict present.
        first: The marks of the first side.
        second: The marks of the second side.
        meet: True if span ranges of the two sides overlap, None if they cannot be compared.
    """

    trace_id: str
    mode: str
    outcome: PresentSide
    first: tuple[Mark, ...]
    second: tuple[Mark, ...]
    meet: bool | None = None

    @property
    def differs(self) -> bool:
        """True if the sides differ about the mode or about its span range."""
        return self.outcome is not PresentSide.BOTH or self.meet is False


@dataclass(frozen=True, slots=True)
class ModeCounts:
    """The number of traces with each outcome on a mode.

    Attributes:
        mode: The slug of the mode.
        both: The traces in which both sides say present.
        first: The traces in which only the first side says present.
        second: The traces in which only the second side says present.
        neither: The traces in which both sides say absent.
        undecided: The traces in which a side is unsure or has no verdict.
        meet: The traces of ``both`` with overlapping span ranges.
        apart: The traces of ``both`` with separate span ranges. The other traces of ``both`` lack a
            span range on one side.
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
        """The number of traces on which both sides say present or absent."""
        return self.both + self.first + self.second + self.neither

    @property
    def precision(self) -> float | None:
        """The share of the first side's present verdicts that the second side shares, or None."""
        present = self.both + self.first
        return self.both / present if present else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The counts of each mode, in the order of the taxonomy, and the cases by mode."""

    counts: tuple[ModeCounts, ...]
    cases: Mapping[str, tuple[Case, ...]]

    @property
    def total(self) -> ModeCounts:
        """The sums over all modes; the field ``mode`` is empty."""
        names = ("both", "first", "second", "neither", "undecided", "meet", "apart")
        sums = {name: sum(getattr(counts, name) for counts in self.counts) for name in names}
        return ModeCounts("", **sums)


def side_of(labels: Iterable[Label], verdicts: Mapping[tuple[str, str], VerdictValue]) -> Side:
    """Combine the labels and verdicts of one annotator into a side of a comparison.

    Args:
        labels: The labels of the annotator.
        verdicts: The verdicts, by trace id and slug of the mode.
    """
    marks: dict[tuple[str, str], list[Mark]] = {}
    for label in labels:
        marks.setdefault((label.trace_id, label.mode), []).append(Mark(label.target, label.id))
    return Side(verdicts, {unit: tuple(unit_marks) for unit, unit_marks in marks.items()})


def compare(
    first: Side,
    second: Side,
    traces: Collection[str],
    modes: Sequence[str],
    order_of: Callable[[str], Order],
    *,
    left_out: Collection[tuple[str, str]] = frozenset(),
) -> Comparison:
    """Compare the verdicts and marks of two sides, mode by mode.

    Args:
        first: One side.
        second: The other side.
        traces: The ids of the traces.
        modes: The slugs of the modes.
        order_of: Returns the order of the spans of a trace.
        left_out: Pairs of a trace id and a mode that are not counted.
    """
    counts = []
    cases = {}
    for mode in modes:
        trace_ids = [trace for trace in sorted(traces) if (trace, mode) not in left_out]
        mode_counts, cases[mode] = _compare_mode(first, second, mode, trace_ids, order_of)
        counts.append(mode_counts)
    return Comparison(tuple(counts), cases)


_DECIDED: Final = {VerdictValue.PRESENT, VerdictValue.ABSENT}


def _compare_mode(
    first: Side,
    second: Side,
    mode: str,
    trace_ids: Sequence[str],
    order_of: Callable[[str], Order],
) -> tuple[ModeCounts, tuple[Case, ...]]:
    """Return the counts and cases of a mode; cases with a difference come first."""
    values = {
        trace_id: {first.value(trace_id, mode), second.value(trace_id, mode)}
        for trace_id in trace_ids
    }
    decided = [trace_id for trace_id in trace_ids if values[trace_id] <= _DECIDED]
    cases = [
        _compare_marks(first, second, trace_id, mode, order_of)
        for trace_id in decided
        if VerdictValue.PRESENT in values[trace_id]
    ]
    outcomes = [case.outcome for case in cases]
    counts = ModeCounts(
        mode,
        both=outcomes.count(PresentSide.BOTH),
        first=outcomes.count(PresentSide.FIRST),
        second=outcomes.count(PresentSide.SECOND),
        neither=len(decided) - len(cases),
        undecided=len(trace_ids) - len(decided),
        # ``meet`` is None in a case without span ranges to compare.
        meet=sum(case.meet is True for case in cases),
        apart=sum(case.meet is False for case in cases),
    )
    return counts, tuple(sorted(cases, key=_differences_first))


def _compare_marks(
    first: Side, second: Side, trace_id: str, mode: str, order_of: Callable[[str], Order]
) -> Case:
    """Return the case of a trace in which one side or both have the mode present."""
    marks = first.marks.get((trace_id, mode), ())
    other_marks = second.marks.get((trace_id, mode), ())
    if first.value(trace_id, mode) is not VerdictValue.PRESENT:
        return Case(trace_id, mode, PresentSide.SECOND, marks, other_marks)
    if second.value(trace_id, mode) is not VerdictValue.PRESENT:
        return Case(trace_id, mode, PresentSide.FIRST, marks, other_marks)
    meet = _ranges_meet(marks, other_marks, order_of(trace_id))
    return Case(trace_id, mode, PresentSide.BOTH, marks, other_marks, meet)


def _ranges_meet(marks: Sequence[Mark], other_marks: Sequence[Mark], order: Order) -> bool | None:
    """Check whether any ranges of the two sides overlap; return None if a side has no range."""
    ranges = [mark.target for mark in marks if not mark.target.is_whole]
    other_ranges = [mark.target for mark in other_marks if not mark.target.is_whole]
    if not ranges or not other_ranges:
        return None
    return any(overlap(target, other, order) for target in ranges for other in other_ranges)


def _differences_first(case: Case) -> tuple[int, int, str]:
    """Return a sort key: differences on the mode come first, then differences on the span range."""
    outcome_rank = (PresentSide.FIRST, PresentSide.SECOND, PresentSide.BOTH).index(case.outcome)
    range_rank = (False, None, True).index(case.meet)
    return (outcome_rank, range_rank, case.trace_id)
