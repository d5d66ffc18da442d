"""Thresholds for the confidences of a judge, by mode, fitted on calibration traces."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from mast_tui.figures.judge.confusion import compared_units
from mast_tui.figures.judge.input import JudgeInput
from mast_tui.figures.judge.suggestions import highest_confidence
from mast_tui.labels import VerdictValue

LEAST_UNITS: Final = 5
"""The fewest traces with a mode, and without it, for a threshold."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """The confidence above which a finding of a mode counts.

    Attributes:
        value: The confidence; 0 if every finding counts.
        present: The number of calibration traces with the mode.
        absent: The number of calibration traces without the mode.
    """

    value: float
    present: int
    absent: int


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The thresholds of a judge by the code of the mode, with a hash that names them.

    The fields are the keys of its JSON object.
    """

    hash: str
    calibration_traces: int
    modes: Mapping[str, Threshold]


def input_on_traces(judge_input: JudgeInput, traces: Collection[str]) -> JudgeInput:
    """Return a copy of the input that keeps the reference's verdicts only on some traces.

    Args:
        judge_input: The verdicts of the judge and of its reference.
        traces: The ids of the traces whose verdicts are kept.
    """
    reference = judge_input.reference
    limited_reference = replace(
        reference,
        verdicts={
            (trace_id, mode): value
            for (trace_id, mode), value in reference.verdicts.items()
            if trace_id in traces
        },
        unresolved=frozenset(
            (trace_id, mode) for trace_id, mode in reference.unresolved if trace_id in traces
        ),
    )
    return replace(judge_input, reference=limited_reference)


def fit_thresholds(judge_input: JudgeInput) -> dict[str, Threshold]:
    """Return the confidence above which a judge's findings should count, by slug of the mode.

    The threshold has the greatest TPR + TNR (Youden 1950, Cancer 3:32-35). Modes with too few
    traces have none.

    Args:
        judge_input: The verdicts of the judge and of its reference, on calibration traces only.
    """
    compared = compared_units(judge_input)
    confidences = highest_confidence(judge_input.suggestions)
    thresholds = {}
    for slug in judge_input.slugs:
        # (confidence, reference says present). A finding without a confidence counts as certain.
        cases = [
            (
                confidences.get((trace_id, mode), 1.0) if judge_says_present else 0.0,
                compared.reference[trace_id, mode],
            )
            for (trace_id, mode), judge_says_present in compared.judge.items()
            if mode == slug
        ]
        present_count = sum(is_present for _, is_present in cases)
        absent_count = len(cases) - present_count
        if min(present_count, absent_count) >= LEAST_UNITS:
            thresholds[slug] = Threshold(
                _best_cut(cases, present_count, absent_count), present_count, absent_count
            )
    return thresholds


def _best_cut(cases: Sequence[tuple[float, bool]], present_count: int, absent_count: int) -> float:
    """Return the lowest confidence with the greatest TPR + TNR, if findings above it count.

    ``cases`` have the confidence of the judge's finding, 0 without one, and whether the reference
    says present.
    """
    confidences = sorted({confidence for confidence, _ in cases if confidence > 0})
    # 0, and the middle between neighbouring confidences.
    cuts = [0.0, *((low + high) / 2 for low, high in pairwise(confidences))]

    def sum_of_rates(cut: float) -> float:
        true_positives = sum(is_present for confidence, is_present in cases if confidence > cut)
        false_positives = sum(
            not is_present for confidence, is_present in cases if confidence > cut
        )
        return true_positives / present_count + (absent_count - false_positives) / absent_count

    # The lowest cut of equal sums, which rounding errors must not make different.
    return max(cuts, key=lambda cut: (round(sum_of_rates(cut), 12), -cut))


def with_thresholds(judge_input: JudgeInput, thresholds: Mapping[str, Threshold]) -> JudgeInput:
    """Return a copy of the judge in which only findings above the threshold of their mode count.

    Other findings are removed, and their verdicts become absent.

    Args:
        judge_input: The judge.
        thresholds: The thresholds by the slug of the mode; modes without one are unchanged.
    """
    confidences = highest_confidence(judge_input.suggestions)

    def is_above(unit: tuple[str, str]) -> bool:
        _, mode = unit
        threshold = thresholds.get(mode)
        return threshold is None or confidences.get(unit, 1.0) > threshold.value

    verdicts = {
        unit: VerdictValue.ABSENT if value is VerdictValue.PRESENT and not is_above(unit) else value
        for unit, value in judge_input.verdicts.items()
    }
    suggestions = tuple(
        label for label in judge_input.suggestions if is_above((label.trace_id, label.mode))
    )
    return replace(judge_input, verdicts=verdicts, suggestions=suggestions)


def named_thresholds(
    judge_input: JudgeInput, thresholds: Mapping[str, Threshold], traces: Collection[str]
) -> Thresholds:
    """Return thresholds with a hash of the judge, the thresholds and the traces.

    Args:
        judge_input: The judge.
        thresholds: The thresholds by the slug of the mode.
        traces: The ids of the calibration traces.
    """
    values = [(slug, threshold.value) for slug, threshold in sorted(thresholds.items())]
    content = json.dumps([judge_input.judge, judge_input.taxonomy_ref, values, sorted(traces)])
    codes = {mode.slug: mode.code for mode in judge_input.modes}
    return Thresholds(
        hash=hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:8],
        calibration_traces=len(traces),
        modes={codes[slug]: threshold for slug, threshold in thresholds.items()},
    )
