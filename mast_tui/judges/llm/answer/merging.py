"""Merging the answers on the windows and samples of a trace to one judgement."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from msgspec import structs

from mast_tui.judges.llm.request import Window
from mast_tui.labels import Finding, Judgement, Match, VerdictValue
from mast_tui.traces.model import Trace

SAME_RANGE: Final = 0.5
"""The overlap (intersection over union) from which ranges of two windows are the same finding."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A finding with the indices of its spans.

    Attributes:
        finding: The finding.
        first: The index of the first span of its range; None for the whole trace.
        last: The index of the last span of its range; None for the whole trace.
        quoted_span: The index of the span with its quote; None if the quote was not located.
        window_spans: The first and last index of the window.
        sample: The number of the sample.
    """

    finding: Finding
    first: int | None
    last: int | None
    quoted_span: int | None
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
        """Add the indices of the spans to a finding.

        Args:
            finding: The finding.
            trace: The trace.
            window_spans: The indices of the first and last span of the window.
            sample: The number of the sample.
        """
        evidence = finding.evidence
        span_key = evidence.key if evidence and evidence.placed else None
        return cls(
            finding,
            _index_or_none(trace, finding.first),
            _index_or_none(trace, finding.last),
            _index_or_none(trace, span_key),
            window_spans,
            sample,
        )


def _index_or_none(trace: Trace, key: str | None) -> int | None:
    return None if key is None else trace.index_of(key)


@dataclass(frozen=True, slots=True)
class WindowAnswer:
    """The answer on one window: verdicts by slug of the mode, and the findings."""

    window: Window
    verdicts: Mapping[str, VerdictValue]
    sightings: tuple[Sighting, ...]


Sample = Sequence[WindowAnswer]
"""The answers of one sample, in the order of the windows."""


def judgement_of(
    samples: Sequence[Sample], modes: Sequence[str], confirmed: Sequence[Sighting] | None = None
) -> Judgement:
    """Merge the answers of all samples to a judgement.

    - A mode with a finding is present.
    - Any other mode has the verdict of most samples, unsure on a tie.
    - A mode without a verdict in any sample is not judged.

    Args:
        samples: The answers on the trace.
        modes: The slugs of the modes, in their order.
        confirmed: The merged findings that hold; None for all findings.
    """
    sightings = merge_sightings(samples, modes) if confirmed is None else confirmed
    findings = tuple(sighting.finding for sighting in sightings)
    present_modes = {finding.mode for finding in findings}
    judged = []
    unsure = []
    for mode in modes:
        sample_verdicts = (verdict_of(sample, mode) for sample in samples)
        # These verdicts count only for modes without a finding that holds. For such a mode, a
        # sample's "present" was not confirmed, so it counts as absent.
        verdicts = [
            VerdictValue.ABSENT if verdict is VerdictValue.PRESENT else verdict
            for verdict in sample_verdicts
        ]
        verdict = VerdictValue.PRESENT if mode in present_modes else _majority_verdict(verdicts)
        if verdict is not None:
            judged.append(mode)
        if verdict is VerdictValue.UNSURE:
            unsure.append(mode)
    return Judgement(findings, tuple(unsure), tuple(judged))


def partial_judgement(sightings: Sequence[Sighting]) -> Judgement:
    """Return a judgement with verdicts only on the modes of the findings."""
    findings = tuple(sighting.finding for sighting in sightings)
    return Judgement(findings, (), tuple(dict.fromkeys(finding.mode for finding in findings)))


def merge_sightings(samples: Sequence[Sample], modes: Sequence[str]) -> list[Sighting]:
    """Merge the equal findings of all windows (parts of the trace) and samples (repeated answers).

    Args:
        samples: The answers on the trace.
        modes: The slugs of the modes that count.

    Returns:
        The distinct findings, in reading order.
    """
    sightings = [sighting for sample in samples for sighting in merged_windows(sample)]
    merged = merged_samples(sightings, len(samples))
    counted_sightings = [sighting for sighting in merged if sighting.finding.mode in modes]
    return in_reading_order(counted_sightings, modes)


def decisive_sightings(samples: Sequence[Sample]) -> list[Sighting]:
    """Return the decisive step that most samples name as the only item, or an empty list.

    On a tie, the earliest step counts. With several samples, the confidence is the share of samples
    that name the step.
    """
    sample_choices = []
    for sample in samples:
        sightings = [sighting for answer in sample for sighting in answer.sightings]
        if sightings:
            sample_choices.append(min(sightings, key=_highest_confidence_first))
    if not sample_choices:
        return []
    votes = Counter(_span_range(sighting) for sighting in sample_choices)
    chosen_range = min(votes, key=lambda span_range: (-votes[span_range], span_range))
    best = best_of(
        [sighting for sighting in sample_choices if _span_range(sighting) == chosen_range]
    )
    if len(samples) == 1:
        return [best]
    share = votes[chosen_range] / len(samples)
    return [replace(best, finding=structs.replace(best.finding, confidence=share))]


def verdict_of(sample: Sample, mode: str) -> VerdictValue | None:
    """Return the verdict of one sample on a mode.

    A mode with a finding is present. Without one, it is absent if all windows say absent, otherwise
    unsure.

    Args:
        sample: The answers of the sample.
        mode: The slug of the mode.

    Returns:
        The verdict, or None without a verdict on each window that was asked.
    """
    if any(sighting.finding.mode == mode for answer in sample for sighting in answer.sightings):
        return VerdictValue.PRESENT
    verdicts = [answer.verdicts.get(mode) for answer in sample if mode in answer.window.modes]
    if not verdicts or None in verdicts:
        return None
    all_absent = all(verdict is VerdictValue.ABSENT for verdict in verdicts)
    return VerdictValue.ABSENT if all_absent else VerdictValue.UNSURE


def merged_windows(sample: Sample) -> list[Sighting]:
    """Merge the findings of one sample; the best one of equal findings stays."""
    sightings = (sighting for answer in sample for sighting in answer.sightings)
    return [best_of(group) for group in _group_same(sightings, _is_same_finding)]


def merged_samples(sightings: Sequence[Sighting], sample_count: int) -> list[Sighting]:
    """Merge the findings of several samples with the same mode and overlapping ranges.

    Args:
        sightings: The findings of all samples.
        sample_count: The number of samples.

    Returns:
        The merged findings. With several samples, their confidence is the share of samples with the
        finding.
    """
    if sample_count == 1:
        return list(sightings)
    merged = []
    for group in _group_same(sightings, _ranges_overlap):
        best = best_of(group)
        share = len({sighting.sample for sighting in group}) / sample_count
        merged.append(replace(best, finding=structs.replace(best.finding, confidence=share)))
    return merged


def best_of(group: Sequence[Sighting]) -> Sighting:
    """Return the finding with the best evidence, then confidence, then position."""
    return min(
        group,
        key=lambda sighting: (
            -_evidence_rank(sighting.finding),
            *_highest_confidence_first(sighting),
        ),
    )


def in_reading_order(sightings: Iterable[Sighting], modes: Sequence[str]) -> list[Sighting]:
    """Sort findings by range; findings on the whole trace come last.

    Args:
        sightings: The findings.
        modes: The slugs of the modes, in the order for equal ranges.
    """
    mode_position = {mode: position for position, mode in enumerate(modes)}

    def order_key(sighting: Sighting) -> tuple[object, ...]:
        """Return a sort key: the range, the position of the mode, and the words of a finding."""
        finding = sighting.finding
        return (
            *_span_range(sighting),
            mode_position.get(finding.mode, len(mode_position)),
            *_text_key(finding),
        )

    return sorted(sightings, key=order_key)


def _majority_verdict(verdicts: Iterable[VerdictValue | None]) -> VerdictValue | None:
    """Return absent if more verdicts are absent than unsure, else unsure; None without verdicts.

    No verdict may be present.
    """
    counts = Counter(verdict for verdict in verdicts if verdict is not None)
    if not counts:
        return None
    if counts[VerdictValue.ABSENT] > counts[VerdictValue.UNSURE]:
        return VerdictValue.ABSENT
    return VerdictValue.UNSURE


def _group_same(
    sightings: Iterable[Sighting], is_same: Callable[[Sighting, Sighting], bool]
) -> list[list[Sighting]]:
    """Group the findings of each mode that are the same, directly or through other findings.

    ``is_same`` must return False for findings without a common span.
    """
    sightings_by_mode: dict[str, list[Sighting]] = defaultdict(list)
    for sighting in sightings:
        sightings_by_mode[sighting.finding.mode].append(sighting)
    complete_groups: list[list[Sighting]] = []
    for mode_sightings in sightings_by_mode.values():
        open_groups: list[list[Sighting]] = []
        for sighting in sorted(mode_sightings, key=_span_range):
            first_span, _ = _span_range(sighting)
            still_open: list[list[Sighting]] = []
            merged_group: list[Sighting] = []
            for group in open_groups:
                # All following findings begin after this group, because they are sorted by first
                # span.
                last_span = max(_span_range(other)[1] for other in group)
                if last_span < first_span:
                    complete_groups.append(group)
                elif any(is_same(other, sighting) for other in group):
                    merged_group += group
                else:
                    still_open.append(group)
            open_groups = [*still_open, [*merged_group, sighting]]
        complete_groups += open_groups
    return complete_groups


def _is_same_finding(sighting: Sighting, other: Sighting) -> bool:
    """Check whether two findings of a mode in one sample are the same.

    - Findings on the whole trace are the same.
    - Findings with overlapping quotes are the same.
    - In one window, findings with equal ranges are the same, unless they quote one span
      differently.
    - In different windows, findings that share half of the spans of both are the same. So are
      findings with one range inside the other, if both windows show the shorter range.
    """
    spans = sighting.range
    other_spans = other.range
    if spans is None or other_spans is None:
        return spans is None and other_spans is None
    has_quotes = None not in (sighting.quoted_span, other.quoted_span)
    quote_same_span = has_quotes and sighting.quoted_span == other.quoted_span
    if quote_same_span and _quotes_overlap(sighting.finding, other.finding):
        return True
    if sighting.window_spans == other.window_spans:
        # Quotes that overlap have returned above.
        quotes_differ_in_span = has_quotes and _span_count(spans) == 1
        return spans == other_spans and not quotes_differ_in_span
    common_count = _common_span_count(spans, other_spans)
    union_count = _span_count(spans) + _span_count(other_spans) - common_count
    if common_count >= SAME_RANGE * union_count:
        return True
    shorter = min(spans, other_spans, key=_span_count)
    return (
        common_count == _span_count(shorter)
        and _is_within(shorter, sighting.window_spans)
        and _is_within(shorter, other.window_spans)
    )


def _quotes_overlap(finding: Finding, other: Finding) -> bool:
    start, end = _quote_range(finding)
    other_start, other_end = _quote_range(other)
    return start < other_end and other_start < end


def _quote_range(finding: Finding) -> tuple[int, int]:
    """Return the offsets of the quote in its span; -1 and -1 if it was not located."""
    evidence = finding.evidence
    if evidence is None or evidence.char_start is None or evidence.char_end is None:
        return -1, -1
    return evidence.char_start, evidence.char_end


def _ranges_overlap(sighting: Sighting, other: Sighting) -> bool:
    """Check whether two findings have a common span, or are both on the whole trace."""
    first, last = _span_range(sighting)
    other_first, other_last = _span_range(other)
    return first <= other_last and other_first <= last


def _common_span_count(spans: tuple[int, int], other: tuple[int, int]) -> int:
    first, last = spans
    other_first, other_last = other
    return max(0, min(last, other_last) - max(first, other_first) + 1)


def _is_within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return _common_span_count(inner, outer) == _span_count(inner)


def _span_count(spans: tuple[int, int]) -> int:
    first, last = spans
    return last - first + 1


def _span_range(sighting: Sighting) -> tuple[float, float]:
    """Return the first and last span; infinity for the whole trace, so that it sorts last."""
    return sighting.range or (float("inf"), float("inf"))


def _evidence_rank(finding: Finding) -> int:
    """Return the rank of a finding's evidence; better evidence has a higher rank."""
    if finding.evidence is None:
        return 2
    # From the best: a located quote, a quote in parts, no quote, altered words, a quote not
    # located.
    if not finding.evidence.placed:
        return 0
    # A quote without a kind of match is exact.
    return {Match.ALTERED: 1, Match.IN_PARTS: 3}.get(finding.evidence.match or Match.EXACT, 4)


def _highest_confidence_first(sighting: Sighting) -> tuple[float, float, float, int, str, str]:
    return -sighting.finding.confidence, *_span_range(sighting), *_text_key(sighting.finding)


def _text_key(finding: Finding) -> tuple[int, str, str]:
    """Return the quote's offset, the quote and the rationale as a sort key."""
    evidence = finding.evidence
    if evidence is None:
        return 0, "", finding.rationale
    return evidence.char_start or 0, evidence.quote, finding.rationale
