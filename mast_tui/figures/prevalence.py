"""How often a mode really shows where only a judge has looked, given how it errs elsewhere."""

from __future__ import annotations

from collections import Counter
from math import ceil
from typing import Final, Literal, NotRequired, TypedDict

import numpy as np

from mast_tui.figures.agreement.coefficients import CoefficientJson, Withheld
from mast_tui.figures.bootstrap import Interval, interval, resampled_sums
from mast_tui.figures.intervals import normal_quantile, share, wilson_of
from mast_tui.figures.jackknife import student_t
from mast_tui.figures.judge.confusion import TraceSums
from mast_tui.figures.judge.input import JudgeInput
from mast_tui.figures.two_by_two import Tables, Values, true_negative_rate, true_positive_rate
from mast_tui.labels import VerdictValue

Refused = Literal["no_unlabelled", "no_positives", "no_negatives", "no_better_than_chance"]
"""Why a prevalence cannot be corrected.

No trace was seen by the judge alone; the reference calls the mode present, or absent, nowhere; or
TPR + TNR ≤ 1, so that the judge's word says nothing of the truth.
"""

_LEAST_LABELLED: Final = 10
"""Labelled traces below which the rates of the judge tell too little for an interval."""

_SEEDS_APART: Final = 1
"""The two sets are drawn apart from each other, so from seeds of their own."""


class CorrectedJson(TypedDict):
    """A prevalence between 0 and 1 with its interval, or why there is none."""

    value: float | None
    ci: NotRequired[list[float] | None]
    ci_withheld: NotRequired[Withheld]
    ci_needs: NotRequired[int]
    undefined: NotRequired[Refused]


MARGIN: Final = 0.03
"""Half the width of an interval for which the labels still needed are counted."""

_UNSEEN_ERRORS: Final = 0.2
"""So much of a trace is added to either kind of error before the spread is taken: of a judge that
hardly errs a hundred labelled traces may show no error at all, and the interval would be too
narrow (scripts/simulate_prevalence.py)."""

_LEAST_POWERED: Final = 100
"""Labelled traces below which the prediction-powered interval does not hold what it says."""


class PrevalenceJson(TypedDict):
    """One mode over the traces that only the judge saw.

    ``n_unlabelled`` are those on which it said present or absent, ``apparent`` the share that it
    calls present; ``n_unsure``, on which it was unsure, are left out. ``n_positives`` and
    ``n_negatives`` are the labelled units behind its rates.
    """

    n_unlabelled: int
    n_unsure: int
    n_positives: int
    n_negatives: int
    apparent: CoefficientJson
    corrected: CorrectedJson
    overall: OverallJson


class OverallJson(TypedDict):
    """How often a mode shows over all traces, of which people have labelled a part.

    Of ``n`` that the judge has judged ``n_labelled`` have a verdict of the reference too.
    ``people`` is the share among these alone, ``powered`` the prediction-powered one, with
    ``judge_weight``, from 0 to 1, as the weight of the judge's word. So many ``more_labels`` would
    bring its interval to ``MARGIN`` on either side, where it has one.
    """

    n: int
    n_labelled: int
    people: CoefficientJson
    powered: CoefficientJson
    judge_weight: float | None
    more_labels: int | None


def rogan_gladen(apparent: Values, tpr: Values, tnr: Values) -> Values:
    """θ = (p + TNR − 1) / (TPR + TNR − 1), clipped to [0, 1] (Rogan and Gladen 1978).

    NaN where TPR + TNR ≤ 1 or anything is NaN.
    """
    better = tpr + tnr - 1
    useful = better > 0
    found = np.divide(
        apparent + tnr - 1, better, out=np.full(np.shape(better), np.nan), where=useful
    )
    clipped: Values = np.clip(found, 0, 1)
    return clipped


def corrected_prevalence(
    labelled: Tables, unlabelled: Tables, labelled_resampled: Tables, unlabelled_resampled: Tables
) -> CorrectedJson:
    """Correct the prevalence of one mode, or tell why it cannot be.

    Args:
        labelled: The counts TP, FP, FN, TN of the judge against the reference.
        unlabelled: How many traces it calls present, and absent.
        labelled_resampled: The first in resamples, rounds × 4; none gives no interval.
        unlabelled_resampled: The second in resamples, rounds × 2.

    Returns:
        The prevalence, whose interval holds the percentiles. A resample in which the judge is no
        better than chance leaves it open, so that counts as 0 for the lower end and as 1 for the
        upper one.
    """
    refused = _refused(labelled, unlabelled)
    if refused is not None:
        return {"value": None, "undefined": refused}
    value = float(_theta(labelled, unlabelled))
    if len(labelled_resampled) and labelled.sum() < _LEAST_LABELLED:
        return {
            "value": value,
            "ci": None,
            "ci_withheld": "few_traces",
            "ci_needs": _LEAST_LABELLED,
        }
    values = _theta(labelled_resampled, unlabelled_resampled)
    ends = _interval(value, values) if values.size else None
    return {"value": value, "ci": None if ends is None else list(ends)}


def prevalence(
    given: JudgeInput, labelled: TraceSums, *, rounds: int, seed: int
) -> dict[str, PrevalenceJson]:
    """Correct the prevalence of each mode, with intervals by resampling traces of both kinds.

    Args:
        given: What the judge said, also of traces that nobody else has labelled.
        labelled: The judge's tables beside the reference, with as many resamples.
        rounds: How many resamples.
        seed: What they are drawn from.

    Returns:
        The prevalences by mode code. They hold as far as the judge errs on the unlabelled traces
        as it does on the labelled ones, which is so where those are a random sample.
    """
    slugs = [slug for slug, _, _ in given.modes]
    cells = _unlabelled(given, slugs)
    alone = given.unlabelled - given.examples
    unsure = Counter(
        mode
        for (trace, mode), value in given.verdicts.items()
        if value is VerdictValue.UNSURE and trace in alone
    )
    unlabelled = cells.sum(axis=0)
    flat = resampled_sums(cells.reshape(len(cells), unlabelled.size), rounds, seed + _SEEDS_APART)
    drawn = flat.reshape(-1, *unlabelled.shape)
    result: dict[str, PrevalenceJson] = {}
    for i, (slug, code, _) in enumerate(given.modes):
        own = labelled.mode(i)
        tp, fp, fn, tn = (int(count) for count in own.total)
        present, absent = (int(count) for count in unlabelled[i])
        result[code] = {
            "n_unlabelled": present + absent,
            "n_unsure": unsure[slug],
            "n_positives": tp + fn,
            "n_negatives": fp + tn,
            "apparent": share(present, present + absent).to_json(),
            "corrected": corrected_prevalence(own.total, unlabelled[i], own.resampled, drawn[:, i]),
            "overall": powered(own.total, unlabelled[i]),
        }
    return result


def powered(labelled: Tables, unlabelled: Tables) -> OverallJson:
    """Join what people say of a part with what the judge says of all: prediction-powered inference.

    θ = λ f̄ + mean(y − λ f): the judge's share f̄ of the unlabelled traces, and how far people's
    word y differs from the judge's f on the labelled ones; the weight λ that makes its variance
    least (PPI++: Angelopoulos, Duchi and Zrnic 2023, arXiv 2311.01453), between 0 and 1. A judge at
    chance gets the weight 0, and what is left is people's own share.

    The interval is Wilson's for the effective number of traces, θ(1 − θ)/Var θ, with Student's t
    (Korn and Graubard 1998, Survey Methodology 24:193-201): that of the paper, which is symmetric,
    holds the truth too seldom where a mode is rare.

    Args:
        labelled: The counts TP, FP, FN, TN of the judge against the reference.
        unlabelled: How many further traces it calls present, and absent.

    Returns:
        The prevalence over all. It holds where the labelled traces are a random sample of them.
    """
    tp, fp, fn, _tn = (int(count) for count in labelled)
    n, further = int(labelled.sum()), int(unlabelled.sum())
    found: OverallJson = {
        "n": n + further,
        "n_labelled": n,
        "people": share(tp + fn, n).to_json(),
        "powered": {"value": None, "undefined": "no_overlap"},
        "judge_weight": None,
        "more_labels": None,
    }
    if n < 2 or not further:
        return found
    said, of_all = unlabelled[0] / further, (tp + fp + unlabelled[0]) / (n + further)
    spread = of_all * (1 - of_all) * (n + further) / (n + further - 1)
    together = tp / n - (tp + fn) / n * (tp + fp) / n
    weight = min(1.0, max(0.0, together / ((1 + n / further) * spread))) if spread else 0.0
    value = weight * said + (tp + fn - weight * (tp + fp)) / n
    value = min(1.0, max(0.0, float(value)))
    missed, invented, seen = fn + _UNSEEN_ERRORS, fp + _UNSEEN_ERRORS, n + 2 * _UNSEEN_ERRORS
    off = (tp + missed - weight * (tp + invented)) / seen
    squares = (tp * (1 - weight) ** 2 + invented * weight**2 + missed) / seen
    variance = weight**2 * said * (1 - said) / further + (squares - off**2) / (n - 1)
    found["powered"] = {"value": value, "ci": None}
    found["judge_weight"] = float(weight)
    if n < _LEAST_POWERED:
        found["powered"] |= {"ci_withheld": "few_traces", "ci_needs": _LEAST_POWERED}
        return found
    effective = min(max(value * (1 - value) / variance, n / 2), n + further)
    ends = wilson_of(value, effective, student_t(n - 1))
    found["powered"]["ci"] = [float(end) for end in ends]
    wanted = normal_quantile() ** 2 * value * (1 - value) / MARGIN**2
    if ends[1] - ends[0] > 2 * MARGIN:
        found["more_labels"] = min(further, max(0, ceil(n * (wanted / effective - 1))))
    else:
        found["more_labels"] = 0
    return found


def _unlabelled(given: JudgeInput, slugs: list[str]) -> Tables:
    """Traces × modes × (present, absent) of the traces that only the judge saw."""
    rows = {trace: i for i, trace in enumerate(sorted(given.unlabelled - given.examples))}
    columns = {slug: i for i, slug in enumerate(slugs)}
    cells = np.zeros((len(rows), len(columns), 2))
    places = {VerdictValue.PRESENT: 0, VerdictValue.ABSENT: 1}
    for (trace, mode), value in given.verdicts.items():
        if trace in rows and mode in columns and value in places:
            cells[rows[trace], columns[mode], places[value]] = 1
    return cells


def _refused(labelled: Tables, unlabelled: Tables) -> Refused | None:
    tp, fp, fn, tn = labelled
    if not unlabelled.sum():
        return "no_unlabelled"
    if not tp + fn:
        return "no_positives"
    if not tn + fp:
        return "no_negatives"
    # In whole numbers, so that a judge at chance is not saved by a rounding error.
    return None if tp * tn > fp * fn else "no_better_than_chance"


def _theta(labelled: Tables, unlabelled: Tables) -> Values:
    present, absent = unlabelled[..., 0], unlabelled[..., 1]
    n = present + absent
    apparent = np.divide(present, n, out=np.full(np.shape(n), np.nan), where=n > 0)
    return rogan_gladen(apparent, true_positive_rate(labelled), true_negative_rate(labelled))


def _interval(value: float, values: Values) -> Interval | None:
    """The lower end with open resamples at 0, the upper with them at 1; None where all is alike."""
    open_ = np.isnan(values)
    low, high = np.where(open_, 0.0, values), np.where(open_, 1.0, values)
    lower, upper = interval(value, low), interval(value, high)
    # Only one of the ends may be the same in every resample.
    ends = (
        min(value, float(low[0])) if lower is None else lower[0],
        max(value, float(high[0])) if upper is None else upper[1],
    )
    return None if ends[0] == ends[1] else ends
