"""Merging the answers on the windows of a trace, from one sample or several, to a judgement."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from mast_tui.judges.llm.request import Window
from mast_tui.judges.protocol import Judgement
from mast_tui.labels import Finding, Match, VerdictValue
from mast_tui.traces.model import Trace

SAME_RANGE: Final = 0.5
"""The overlap (intersection over union) from which ranges of two windows are the same finding."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A finding with the indices of its spans.

    ``first`` and ``last`` are those of its range, None for the whole trace; ``span`` is that of its
    evidence, if that was located. ``window_spans`` are the first and last span of the window,
    ``sample`` is the number of the sample.
    """

    finding: Finding
    first: int | None
    last: int | None
    span: int | None
    window_spans: tuple[int, int]
    sample: int = 0

    @property
    def range(self) -> tuple[int, int] | None:
        """The first and last span, or None for the whole trace."""
        if self.first is None or self.last is None:
            return None
        return self.first, self.last

    @classmethod
    def from_finding(
        cls, finding: Finding, trace: Trace, window_spans: tuple[int, int], sample: int
    ) -> Sighting:
        """Make the sighting of an anchored finding.

        Args:
            finding: The finding.
            trace: The trace.
            window_spans: The first and last span of the window.
            sample: The number of the sample.
        """
        evidence = finding.evidence
        span_key = evidence.key if evidence and evidence.placed else None
        keys = (finding.first, finding.last, span_key)
        first, last, span = (None if key is None else trace.index_of(key) for key in keys)
        return cls(finding, first, last, span, window_spans, sample)


@dataclass(frozen=True, slots=True)
class WindowAnswer:
    """The answer on one window: a verdict for each mode that it names, and the findings."""

    window: Window
    verdicts: Mapping[str, VerdictValue]
    sightings: tuple[Sighting, ...]


Sample = Sequence[WindowAnswer]
"""The answers of one sample on the windows of a trace, in their order."""


def judgement_of(
    samples: Sequence[Sample], modes: Sequence[str], confirmed: Sequence[Sighting] | None = None
) -> Judgement:
    """Judge a trace that each sample has read to its end.

    A mode with a finding is present. Any other has the verdict of most samples, unsure on a tie, or
    none if no sample has one. A sample whose findings of a mode were not confirmed counts as
    absent.

    Args:
        samples: The answers on the trace.
        modes: The slugs of the modes, in their order.
        confirmed: The findings of ``merge_sightings`` that hold; None for all.
    """
    sightings = merge_sightings(samples, modes) if confirmed is None else confirmed
    findings = tuple(sighting.finding for sighting in sightings)
    present = {finding.mode for finding in findings}
    judged = []
    unsure = []
    for mode in modes:
        sample_verdicts = (verdict_of(sample, mode) for sample in samples)
        verdicts = [
            VerdictValue.ABSENT if verdict is VerdictValue.PRESENT else verdict
            for verdict in sample_verdicts
        ]
        verdict = VerdictValue.PRESENT if mode in present else _most_frequent(verdicts)
        if verdict is not None:
            judged.append(mode)
        if verdict is VerdictValue.UNSURE:
            unsure.append(mode)
    return Judgement(findings, tuple(unsure), tuple(judged))


def partial_judgement(sightings: Sequence[Sighting]) -> Judgement:
    """Return the judgement before the last window: verdicts only on the modes that were found."""
    findings = tuple(sighting.finding for sighting in sightings)
    return Judgement(findings, (), tuple(dict.fromkeys(finding.mode for finding in findings)))


def merge_sightings(samples: Sequence[Sample], modes: Sequence[str]) -> list[Sighting]:
    """Merge the findings of all windows and samples.

    Args:
        samples: The answers on the trace.
        modes: The slugs of the modes that count.

    Returns:
        Each finding once, in reading order.
    """
    sightings = [sighting for sample in samples for sighting in merged_windows(sample)]
    merged = merged_samples(sightings, len(samples))
    of_modes = [sighting for sighting in merged if sighting.finding.mode in modes]
    return in_reading_order(of_modes, modes)


def decisive_sightings(samples: Sequence[Sample]) -> list[Sighting]:
    """Return the decisive step that most samples name, the earliest on a tie, or an empty list.

    Of a sample that names several steps, the one with the highest confidence counts. With several
    samples, the confidence is the share of samples that name the step.
    """
    named = []
    for sample in samples:
        sightings = [sighting for answer in sample for sighting in answer.sightings]
        if sightings:
            named.append(min(sightings, key=_by_confidence))
    if not named:
        return []
    votes = Counter(_sort_range(sighting) for sighting in named)
    winner = min(votes, key=lambda spans: (-votes[spans], spans))
    best = best_of([sighting for sighting in named if _sort_range(sighting) == winner])
    if len(samples) == 1:
        return [best]
    share = votes[winner] / len(samples)
    return [replace(best, finding=replace(best.finding, confidence=share))]


def verdict_of(sample: Sample, mode: str) -> VerdictValue | None:
    """Return the verdict of one sample on a mode.

    A mode with a finding is present. Otherwise each window that was asked about the mode must have
    a verdict: the mode is absent if all say so, else unsure.

    Args:
        sample: The answers of the sample.
        mode: The slug of the mode.

    Returns:
        The verdict, or None without one.
    """
    if any(sighting.finding.mode == mode for answer in sample for sighting in answer.sightings):
        return VerdictValue.PRESENT
    verdicts = [answer.verdicts.get(mode) for answer in sample if mode in answer.window.modes]
    if not verdicts or None in verdicts:
        return None
    absent = all(verdict is VerdictValue.ABSENT for verdict in verdicts)
    return VerdictValue.ABSENT if absent else VerdictValue.UNSURE


def merged_windows(sample: Sample) -> list[Sighting]:
    """Merge the findings of one sample: of those that are the same, the best one stays."""
    sightings = (sighting for answer in sample for sighting in answer.sightings)
    return [best_of(group) for group in _groups(sightings, _is_same)]


def merged_samples(sightings: Sequence[Sighting], samples: int) -> list[Sighting]:
    """Merge the findings of several samples: overlapping ones of a mode are the same.

    Args:
        sightings: The findings of all samples.
        samples: The number of samples.

    Returns:
        The merged findings; their confidence is the share of samples with the finding, or that of
        the finding itself if there is one sample.
    """
    if samples == 1:
        return list(sightings)
    merged = []
    for group in _groups(sightings, _overlap):
        best = best_of(group)
        share = len({sighting.sample for sighting in group}) / samples
        merged.append(replace(best, finding=replace(best.finding, confidence=share)))
    return merged


def best_of(group: Sequence[Sighting]) -> Sighting:
    """Return the finding of a group with the best evidence, then confidence, then position.

    From the best: a quote that was located, one in parts, no quote, altered words, one that was not
    located.
    """
    return min(group, key=lambda sighting: (-_proof(sighting.finding), *_by_confidence(sighting)))


def in_reading_order(sightings: Iterable[Sighting], modes: Sequence[str]) -> list[Sighting]:
    """Sort findings by their ranges, those of the whole trace last.

    Args:
        sightings: The findings.
        modes: The slugs of the modes in the order for findings with one range.
    """
    order = {mode: number for number, mode in enumerate(modes)}

    def key(sighting: Sighting) -> tuple[object, ...]:
        finding = sighting.finding
        return (
            *_sort_range(sighting),
            order.get(finding.mode, len(order)),
            *_sort_text(finding),
        )

    return sorted(sightings, key=key)


def _most_frequent(verdicts: Iterable[VerdictValue | None]) -> VerdictValue | None:
    counts = Counter(verdict for verdict in verdicts if verdict is not None)
    if not counts:
        return None
    if counts[VerdictValue.ABSENT] > counts[VerdictValue.UNSURE]:
        return VerdictValue.ABSENT
    return VerdictValue.UNSURE


def _groups(
    sightings: Iterable[Sighting], same: Callable[[Sighting, Sighting], bool]
) -> list[list[Sighting]]:
    """Group the findings of one mode that are the same, directly or by way of others.

    Findings without a common span are never the same, so groups that have ended are not compared.
    """
    by_mode: dict[str, list[Sighting]] = defaultdict(list)
    for sighting in sightings:
        by_mode[sighting.finding.mode].append(sighting)
    groups: list[list[Sighting]] = []
    for of_mode in by_mode.values():
        open_groups: list[list[Sighting]] = []
        for sighting in sorted(of_mode, key=_sort_range):
            first = _sort_range(sighting)[0]
            reaching: list[list[Sighting]] = []
            for group in open_groups:
                reaches = any(_sort_range(other)[1] >= first for other in group)
                (reaching if reaches else groups).append(group)
            merged: list[Sighting] = []
            open_groups = []
            for group in reaching:
                if any(same(other, sighting) for other in group):
                    merged += group
                else:
                    open_groups.append(group)
            open_groups.append([*merged, sighting])
        groups += open_groups
    return groups


def _is_same(sighting: Sighting, other: Sighting) -> bool:
    """Check whether two findings of a mode in one sample are the same."""
    spans = sighting.range
    other_spans = other.range
    if spans is None or other_spans is None:
        return spans is None and other_spans is None
    same_span = sighting.span is not None and sighting.span == other.span
    if same_span and _quotes_overlap(sighting.finding, other.finding):
        return True
    if sighting.window_spans == other.window_spans:
        both_quoted = spans[0] == spans[1] and None not in (sighting.span, other.span)
        return spans == other_spans and not both_quoted
    common = _common(spans, other_spans)
    shorter = min(spans, other_spans, key=_length)
    union = _length(spans) + _length(other_spans) - common
    if common >= SAME_RANGE * union:
        return True
    # A range within the other one is the same finding if both windows show it whole.
    is_within = common == _length(shorter)
    return (
        is_within
        and _contains(sighting.window_spans, shorter)
        and _contains(other.window_spans, shorter)
    )


def _quotes_overlap(finding: Finding, other: Finding) -> bool:
    start, end = _quote_range(finding)
    other_start, other_end = _quote_range(other)
    return start < other_end and other_start < end


def _quote_range(finding: Finding) -> tuple[int, int]:
    """Return the offsets of the quote in its span, -1 for one that was not located."""
    evidence = finding.evidence
    if evidence is None or evidence.char_start is None or evidence.char_end is None:
        return -1, -1
    return evidence.char_start, evidence.char_end


def _overlap(sighting: Sighting, other: Sighting) -> bool:
    """Check whether two findings have a common span, or both are of the whole trace."""
    first, last = _sort_range(sighting)
    other_first, other_last = _sort_range(other)
    return first <= other_last and other_first <= last


def _common(spans: tuple[int, int], other: tuple[int, int]) -> int:
    """Count the common spans of two ranges."""
    return max(0, min(spans[1], other[1]) - max(spans[0], other[0]) + 1)


def _contains(outer: tuple[int, int], inner: tuple[int, int]) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _length(spans: tuple[int, int]) -> int:
    return spans[1] - spans[0] + 1


def _sort_range(sighting: Sighting) -> tuple[float, float]:
    """Return the range for sorting, with the whole trace after all spans."""
    return sighting.range or (float("inf"), float("inf"))


def _proof(finding: Finding) -> int:
    if finding.evidence is None:
        return 2
    if not finding.evidence.placed:
        return 0
    return {Match.ALTERED: 1, Match.IN_PARTS: 3}.get(finding.evidence.match or Match.EXACT, 4)


def _by_confidence(sighting: Sighting) -> tuple[float, float, float, int, str, str]:
    return -sighting.finding.confidence, *_sort_range(sighting), *_sort_text(sighting.finding)


def _sort_text(finding: Finding) -> tuple[int, str, str]:
    """Return quote and rationale, for sorting the findings of one range."""
    evidence = finding.evidence
    if evidence is None:
        return 0, "", finding.rationale
    return evidence.char_start or 0, evidence.quote, finding.rationale
