"""What several windows and several samples say of one trace, as one judgement."""

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
"""Ranges of one mode that two windows give are the same from this share (IoU) in common on."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A finding with the numbers of its spans.

    ``first`` and ``last`` are the indices of its range, None for the trace as a whole; ``span`` is
    that of its evidence where it was found. ``shown`` are the first and last span of the window,
    ``sample`` tells which reading of the trace it was.
    """

    finding: Finding
    first: int | None
    last: int | None
    span: int | None
    shown: tuple[int, int]
    sample: int = 0

    @classmethod
    def of(cls, finding: Finding, trace: Trace, shown: tuple[int, int], sample: int) -> Sighting:
        """An anchored finding as one window of one reading saw it."""
        words = finding.evidence
        keys = finding.first, finding.last, words.key if words and words.placed else None
        first, last, span = (None if key is None else trace.index_of(key) for key in keys)
        return cls(finding, first, last, span, shown, sample)


@dataclass(frozen=True, slots=True)
class Part:
    """What one window's answer says: a verdict for each mode it names, and what was seen."""

    window: Window
    verdicts: Mapping[str, VerdictValue]
    sightings: tuple[Sighting, ...]


Sample = Sequence[Part]
"""The windows of one reading of a trace, in order."""


def judgement_of(
    samples: Sequence[Sample], modes: Sequence[str], found: Sequence[Sighting] | None = None
) -> Judgement:
    """Judge a trace that was read to its end in each of the samples.

    A mode is present where it was found, else what most samples say, unsure on a tie; one that no
    sample judged is not judged. Where all that was seen of a mode did not hold on a second look,
    the sample that saw it counts as having seen none.

    Args:
        samples: What was said of the trace.
        modes: The slugs in their order.
        found: What of ``sightings_of`` holds; None for all.
    """
    found = sightings_of(samples, modes) if found is None else found
    findings = tuple(sighting.finding for sighting in found)
    shown = {finding.mode for finding in findings}
    judged = []
    unsure = []
    for mode in modes:
        said = (verdict_of(sample, mode) for sample in samples)
        verdicts = [VerdictValue.ABSENT if v is VerdictValue.PRESENT else v for v in said]
        verdict = VerdictValue.PRESENT if mode in shown else _most_frequent(verdicts)
        if verdict is not None:
            judged.append(mode)
        if verdict is VerdictValue.UNSURE:
            unsure.append(mode)
    return Judgement(findings, tuple(unsure), tuple(judged))


def judgement_so_far(found: Sequence[Sighting]) -> Judgement:
    """What was found by now, while more windows follow: no verdict but on what was found."""
    findings = tuple(sighting.finding for sighting in found)
    return Judgement(findings, (), tuple(dict.fromkeys(finding.mode for finding in findings)))


def sightings_of(samples: Sequence[Sample], modes: Sequence[str]) -> list[Sighting]:
    """What all windows of all samples saw of these modes, each thing once, in reading order."""
    seen = [sighting for sample in samples for sighting in merged_windows(sample)]
    merged = merged_samples(seen, len(samples))
    known = [sighting for sighting in merged if sighting.finding.mode in modes]
    return in_reading_order(known, modes)


def decisive_of(samples: Sequence[Sample]) -> list[Sighting]:
    """The decisive step by most samples, the earliest of those that are named as often; or none.

    A sample whose windows name several means the one that it is surest of. Of several samples the
    confidence is the share that names the step.
    """
    named = []
    for sample in samples:
        seen = [sighting for part in sample for sighting in part.sightings]
        if seen:
            named.append(min(seen, key=_by_confidence))
    if not named:
        return []
    votes = Counter(_place(sighting) for sighting in named)
    place = min(votes, key=lambda place: (-votes[place], place))
    best = best_of([sighting for sighting in named if _place(sighting) == place])
    if len(samples) == 1:
        return [best]
    share = votes[place] / len(samples)
    return [replace(best, finding=replace(best.finding, confidence=share))]


def verdict_of(sample: Sample, mode: str) -> VerdictValue | None:
    """What the windows of one sample say of a mode together, None where that is no verdict.

    Present where anything was seen. Else every window that should have judged the mode must have
    said something: unsure where any did, absent where all did.
    """
    if any(s.finding.mode == mode for part in sample for s in part.sightings):
        return VerdictValue.PRESENT
    said = [part.verdicts.get(mode) for part in sample if mode in part.window.modes]
    if not said or None in said:
        return None
    absent = all(verdict is VerdictValue.ABSENT for verdict in said)
    return VerdictValue.ABSENT if absent else VerdictValue.UNSURE


def merged_windows(sample: Sample) -> list[Sighting]:
    """What the windows of one sample saw, each thing once: the surest of those that are one."""
    seen = (sighting for part in sample for sighting in part.sightings)
    return [best_of(group) for group in _groups(seen, _same)]


def merged_samples(seen: Sequence[Sighting], samples: int) -> list[Sighting]:
    """What so many samples saw: of one mode, what overlaps is one thing.

    Its confidence is the share of the samples that saw it; a single sample's stays its own.
    """
    if samples == 1:
        return list(seen)
    merged = []
    for group in _groups(seen, _overlap):
        best = best_of(group)
        share = len({sighting.sample for sighting in group}) / samples
        merged.append(replace(best, finding=replace(best.finding, confidence=share)))
    return merged


def best_of(group: Sequence[Sighting]) -> Sighting:
    """The one to show: words that were found before such in parts, these before none, none before
    altered words, and these before words that were not found.

    Among those the surest, then the first.
    """
    return min(group, key=lambda sighting: (-_proof(sighting.finding), *_by_confidence(sighting)))


def in_reading_order(sightings: Iterable[Sighting], modes: Sequence[str]) -> list[Sighting]:
    """By the spans of their ranges, those of the whole trace last, then in the modes' order."""
    order = {mode: place for place, mode in enumerate(modes)}

    def key(sighting: Sighting) -> tuple[object, ...]:
        finding = sighting.finding
        return (
            *_place(sighting),
            order.get(finding.mode, len(order)),
            *_words(finding),
        )

    return sorted(sightings, key=key)


def _most_frequent(verdicts: Iterable[VerdictValue | None]) -> VerdictValue | None:
    counts = Counter(verdict for verdict in verdicts if verdict is not None)
    if not counts:
        return None
    absent, unsure = counts[VerdictValue.ABSENT], counts[VerdictValue.UNSURE]
    return VerdictValue.ABSENT if absent > unsure else VerdictValue.UNSURE


def _groups(
    sightings: Iterable[Sighting], same: Callable[[Sighting, Sighting], bool]
) -> list[list[Sighting]]:
    """Those of one mode that are the same, directly or by way of others.

    Ranges that have no span in common are never the same, so those that ended are not compared.
    """
    by_mode: dict[str, list[Sighting]] = defaultdict(list)
    for sighting in sightings:
        by_mode[sighting.finding.mode].append(sighting)
    groups: list[list[Sighting]] = []
    for of_mode in by_mode.values():
        open_groups: list[list[Sighting]] = []
        for sighting in sorted(of_mode, key=_place):
            first = _place(sighting)[0]
            reaching = [g for g in open_groups if any(_place(s)[1] >= first for s in g)]
            groups += [g for g in open_groups if not any(g is r for r in reaching)]
            joining = [g for g in reaching if any(same(s, sighting) for s in g)]
            group = [s for g in joining for s in g] + [sighting]
            open_groups = [g for g in reaching if not any(g is j for j in joining)] + [group]
        groups += open_groups
    return groups


def _same(one: Sighting, other: Sighting) -> bool:
    """Whether two sightings of a mode, by one window or two, are of the same thing."""
    if one.first is None or other.first is None or one.last is None or other.last is None:
        return one.first is None and other.first is None
    if one.span is not None and one.span == other.span and _words_overlap(one, other):
        return True
    one_range, other_range = (one.first, one.last), (other.first, other.last)
    if one.shown == other.shown:
        quoted = one.first == one.last and None not in (one.span, other.span)
        return one_range == other_range and not quoted
    common = _common(one_range, other_range)
    inner = min(_length(one_range), _length(other_range))
    union = _length(one_range) + _length(other_range) - common
    if common >= SAME_RANGE * union:
        return True
    inside = one_range if _length(one_range) == inner else other_range
    overlap = _common(one.shown, other.shown)
    in_overlap = overlap and _common(inside, one.shown) == inner == _common(inside, other.shown)
    return bool(common == inner and in_overlap)


def _words_overlap(one: Sighting, other: Sighting) -> bool:
    (start, end), (other_start, other_end) = _characters(one.finding), _characters(other.finding)
    return start < other_end and other_start < end


def _characters(finding: Finding) -> tuple[int, int]:
    """Where the quote begins and ends in its span, -1 where it has no place."""
    words = finding.evidence
    if words is None or words.char_start is None or words.char_end is None:
        return -1, -1
    return words.char_start, words.char_end


def _overlap(one: Sighting, other: Sighting) -> bool:
    """Whether two ranges have a span in common, where those of the whole trace are one range."""
    (first, last), (other_first, other_last) = _place(one), _place(other)
    return first <= other_last and other_first <= last


def _common(one: tuple[int, int], other: tuple[int, int]) -> int:
    """How many spans two ranges have in common."""
    return max(0, min(one[1], other[1]) - max(one[0], other[0]) + 1)


def _length(spans: tuple[int, int]) -> int:
    return spans[1] - spans[0] + 1


def _place(sighting: Sighting) -> tuple[float, float]:
    """The range, for sorting: the whole trace stands after all spans."""
    if sighting.first is None or sighting.last is None:
        return float("inf"), float("inf")
    return sighting.first, sighting.last


def _proof(finding: Finding) -> int:
    if finding.evidence is None:
        return 2
    if not finding.evidence.placed:
        return 0
    return {Match.ALTERED: 1, Match.IN_PARTS: 3}.get(finding.evidence.match or Match.EXACT, 4)


def _by_confidence(sighting: Sighting) -> tuple[float, float, float, int, str, str]:
    return -sighting.finding.confidence, *_place(sighting), *_words(sighting.finding)


def _words(finding: Finding) -> tuple[int, str, str]:
    """What is quoted and what is said, for sorting those of one range."""
    words = finding.evidence
    if words is None:
        return 0, "", finding.rationale
    return words.char_start or 0, words.quote, finding.rationale
