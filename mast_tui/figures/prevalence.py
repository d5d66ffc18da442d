"""How often a mode really shows where only a judge has looked, given how it errs elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Final, NamedTuple, NotRequired, TypedDict

import numpy as np

from mast_tui.figures.agreement.coefficients import Coefficient, CoefficientJson, Undefined
from mast_tui.figures.bootstrap import ratio
from mast_tui.figures.intervals import MARGIN, Z, share, share_of_all, to_resolve, wilson_of
from mast_tui.figures.judge.confusion import Compared, features
from mast_tui.figures.judge.input import JudgeInput
from mast_tui.figures.two_by_two import Tables, Values, true_negative_rate, true_positive_rate
from mast_tui.labels import VerdictValue

_LEAST_LABELLED: Final = 30
"""Labelled traces below which the rates of the judge tell too little for an interval."""

_LEAST_OF_THESE: Final = 20
"""Labelled traces below which the interval of a known number of traces does not hold."""

_STEPS: Final = 21
"""Of the unresolved verdicts so many parts are tried, from none to all."""

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
    corrected: CoefficientJson
    overall: OverallJson


class OverallJson(TypedDict):
    """How often a mode shows over all traces, of which people have labelled a part.

    Of ``n`` that the judge has judged ``n_labelled`` have a verdict of the reference too;
    annotators differ on ``unresolved`` more. ``weighted`` is whether they had chances of their
    own, by which the figures are weighted.
    ``people`` is the share among these alone, ``powered`` the prediction-powered one, with
    ``judge_weight``, from 0 to 1, as the weight of the judge's word. Both are estimates for all
    traces like these, ``these`` is the share of these ``n`` alone, where they were not weighted.
    So many ``more_labels`` would bring the interval of ``powered`` to ``MARGIN`` on either side,
    where it has one; that may be more than are left.
    """

    n: int
    n_labelled: int
    unresolved: int
    weighted: bool
    people: CoefficientJson
    these: NotRequired[CoefficientJson]
    powered: CoefficientJson
    judge_weight: float | None
    more_labels: int | None


def rogan_gladen(apparent: Values, tpr: Values, tnr: Values) -> Values:
    """Return θ = (p + TNR − 1) / (TPR + TNR − 1), clipped to [0, 1] (Rogan and Gladen 1978).

    Args:
        apparent: The shares p that the judge calls present.
        tpr: The judge's true positive rates.
        tnr: The judge's true negative rates.

    Returns:
        The prevalences; NaN where TPR + TNR ≤ 1 or anything is NaN.
    """
    clipped: Values = np.clip(ratio(apparent + tnr - 1, tpr + tnr - 1), 0, 1)
    return clipped


def corrected_prevalence(labelled: Tables, unlabelled: Tables) -> CoefficientJson:
    """Correct the prevalence of one mode, or tell why it cannot be.

    The interval is that of Lang and Reiczigel (2014, Preventive Veterinary Medicine 113:13-22),
    with z and z² as in Agresti and Coull's: one trace of either kind is added to the rates of the
    judge, z² / 2 to its findings, and the middle is moved for the rates' own errors.

    Args:
        labelled: The counts TP, FP, FN, TN of the judge against the reference.
        unlabelled: How many traces it calls present, and absent.
    """
    refused = _refused(labelled, unlabelled)
    if refused is not None:
        return Coefficient(undefined=refused).to_json()
    value = float(_theta(labelled, unlabelled))
    if labelled.sum() < _LEAST_LABELLED:
        return Coefficient(value, withheld=("few_traces", _LEAST_LABELLED)).to_json()
    tp, fp, fn, tn = (float(count) for count in labelled)
    positives = tp + fn + 2
    negatives = tn + fp + 2
    traces = float(unlabelled.sum()) + Z**2
    tpr = (tp + 1) / positives
    tnr = (tn + 1) / negatives
    says = (float(unlabelled[0]) + Z**2 / 2) / traces
    better = tpr + tnr - 1
    if better <= 0:
        return Coefficient(value, ci=(0.0, 1.0)).to_json()
    middle = (says + tnr - 1) / better
    of_tpr = tpr * (1 - tpr) / positives
    of_tnr = tnr * (1 - tnr) / negatives
    variance = says * (1 - says) / traces + (1 - middle) ** 2 * of_tnr + middle**2 * of_tpr
    half = Z * sqrt(variance) / better
    moved = middle + 2 * Z**2 * (middle * of_tpr - (1 - middle) * of_tnr)
    ends = (min(value, max(0.0, moved - half)), max(value, min(1.0, moved + half)))
    return Coefficient(value, ci=ends).to_json()


def prevalence(judge_input: JudgeInput, compared: Compared) -> dict[str, PrevalenceJson]:
    """Estimate how often each mode shows, from people's verdicts on a part and the judge's on all.

    Args:
        judge_input: The judge's verdicts, also on traces that nobody else has labelled.
        compared: Its verdicts beside the reference.

    Returns:
        The prevalences by mode code. They hold as far as the judge errs on the unlabelled traces
        as it does on the labelled ones, which is so where those are a random sample.
    """
    slugs = [slug for slug, _, _ in judge_input.modes]
    alone = judge_input.unlabelled - judge_input.examples
    unsure = Counter(
        mode
        for (trace, mode), value in judge_input.verdicts.items()
        if value is VerdictValue.UNSURE and trace in alone
    )
    beyond = np.array([judge_input.beyond.verdicts.get(slug, (0, 0, 0)) for slug in slugs])
    unlabelled = _unlabelled(judge_input, slugs) + beyond.reshape(-1, 3)[:, :2]
    labelled = _Labelled.of(judge_input, compared, slugs)
    absent = _Labelled.of(judge_input, compared.resolved_as(False), slugs)
    present = _Labelled.of(judge_input, compared.resolved_as(True), slugs)
    result: dict[str, PrevalenceJson] = {}
    for i, (slug, code, _) in enumerate(judge_input.modes):
        table = labelled.tables[i]
        tp, fp, fn, tn = (int(count) for count in table)
        says, says_not = (int(count) for count in unlabelled[i])
        mode_prevalence: PrevalenceJson = {
            "n_unlabelled": says + says_not,
            "n_unsure": unsure[slug] + int(beyond[i, 2]),
            "n_positives": tp + fn,
            "n_negatives": fp + tn,
            "apparent": share(says, says + says_not).to_json(),
            "corrected": corrected_prevalence(table, unlabelled[i]),
            "overall": powered(table, unlabelled[i], labelled.weighted_of(i)),
        }
        unresolved = compared.left_out["unresolved"][slug]
        mode_prevalence["overall"]["unresolved"] = unresolved
        needs = to_resolve(unresolved, int(table.sum()))
        if needs:
            ends = [
                powered(of.tables[i], unlabelled[i], of.weighted_of(i)) for of in (absent, present)
            ]
            _bound_overall(mode_prevalence["overall"], ends, needs)
            tables = (absent.tables[i], present.tables[i])
            _bound(mode_prevalence["corrected"], _corrected_bounds(tables, unlabelled[i]), needs)
        result[code] = mode_prevalence
    return result


def _bound_overall(overall: OverallJson, ends: Sequence[OverallJson], needs: int) -> None:
    """Put bounds in the place of intervals: those with all unresolved absent, and present."""
    low, high = ends
    overall["more_labels"] = None
    people = (low["people"]["value"], high["people"]["value"])
    _bound(overall["people"], people, needs)
    _bound(overall["powered"], (low["powered"]["value"], high["powered"]["value"]), needs)
    if "these" in overall:
        _bound(overall["these"], people, needs)


def _bound(figure: CoefficientJson, bounds: tuple[float | None, float | None], needs: int) -> None:
    low, high = bounds
    if figure["value"] is None or low is None or high is None:
        return
    figure |= {
        "ci": None,
        "bounds": [low, high],
        "ci_withheld": "unresolved",
        "ci_needs": needs,
    }


def _corrected_bounds(tables: tuple[Tables, Tables], unlabelled: Tables) -> tuple[float, float]:
    """Return the least and the greatest corrected prevalence as disagreements are decided.

    Those on traces that the judge calls present and those on the others may be decided apart. Where
    the judge is no better than chance under some of these decisions, nothing is ruled out.
    """
    absent, present = tables
    part = np.linspace(0, 1, _STEPS)
    mixed = absent + part[:, None] * (present - absent)
    grid = np.empty((_STEPS, _STEPS, 4))
    grid[..., :2] = mixed[:, None, :2]
    grid[..., 2:] = mixed[None, :, 2:]
    values = _theta(grid, unlabelled)
    if np.isnan(values).any():
        return 0.0, 1.0
    return float(values.min()), float(values.max())


@dataclass(frozen=True, slots=True)
class _Labelled:
    """The tables of all modes (TP, FP, FN, TN), and by weight where traces have weights."""

    tables: Tables
    weighted: Sequence[Weighted]

    @classmethod
    def of(cls, judge_input: JudgeInput, compared: Compared, slugs: Sequence[str]) -> _Labelled:
        cells = features(compared, slugs)
        study = judge_input.study
        weights = None
        if study is not None and not study.chances_alike:
            weights = study.trace_weights(frozenset(compared.traces))
        if weights is None:
            return cls(cells.sum(axis=0), ())
        # What is not in the study has no chance, and no weight.
        each = np.array([weights.get(trace, 0.0) for trace in compared.traces])
        return cls(cells.sum(axis=0), weighted_tables(cells, each))

    def weighted_of(self, mode: int) -> Weighted | None:
        return self.weighted[mode] if self.weighted else None


@dataclass(frozen=True, slots=True)
class Weighted:
    """The labelled traces of one mode that were drawn with chances of their own.

    Tables (TP, FP, FN, TN) of the judge against the reference over ``n`` traces: ``sums`` of their
    weights w, each the number of traces that one stands for, and ``squares`` and ``spreads`` the
    sums of w² and of w(w − 1).
    """

    sums: Tables
    squares: Tables
    spreads: Tables


def weighted_tables(cells: Tables, weights: Values) -> list[Weighted]:
    """Sum weights by mode.

    Args:
        cells: Zeros and ones, traces × modes × (TP, FP, FN, TN).
        weights: One for each trace.
    """
    spreads = np.maximum(weights * (weights - 1), 0)
    sums = [np.tensordot(of, cells, axes=1) for of in (weights, weights**2, spreads)]
    return [Weighted(*of_mode) for of_mode in zip(*sums, strict=True)]


class _Joined(NamedTuple):
    """A prevalence with the judge's weight in it, its variance, and people's own.

    ``least`` is what the labelled traces tell by themselves, as a number of traces.
    """

    value: float
    judge_weight: float
    variance: float
    people: CoefficientJson
    least: float


def powered(labelled: Tables, unlabelled: Tables, weighted: Weighted | None = None) -> OverallJson:
    """Join what people say of a part with what the judge says of all: prediction-powered inference.

    θ = λ f̄ + mean(y − λ f): the judge's share f̄ of the unlabelled traces, and how far people's
    word y differs from the judge's f on the labelled ones; the weight λ that makes its variance
    least (PPI++: Angelopoulos, Duchi and Zrnic 2023, arXiv 2311.01453), between 0 and 1. A judge at
    chance gets the weight 0, and what is left is people's own share.

    The interval is Wilson's for the effective number of traces, θ(1 − θ)/Var θ (Korn and Graubard
    1998, Survey Methodology 24:193-201): that of the paper, which is symmetric, holds the truth too
    seldom where a mode is rare. The effective number is never taken for less than that of the
    labelled traces: with the best λ the judge adds to what they tell, and a few of them may only
    seem to say otherwise, which made intervals up to 6 % wider than people's own.

    Args:
        labelled: The counts TP, FP, FN, TN of the judge against the reference.
        unlabelled: How many further traces it calls present, and absent.
        weighted: The first by weight; None where the labelled traces are a random sample.

    Returns:
        The prevalence over all. It holds where the labelled traces are a random sample of them, or
        were drawn with the chances that the weights come from.
    """
    n, further = int(labelled.sum()), int(unlabelled.sum())
    found: OverallJson = {
        "n": n + further,
        "n_labelled": n,
        "unresolved": 0,
        "weighted": weighted is not None,
        "people": share(int(labelled[0] + labelled[2]), n).to_json(),
        "powered": Coefficient(undefined="no_overlap").to_json(),
        "judge_weight": None,
        "more_labels": None,
    }
    if n < 2 or not further or (weighted is not None and not weighted.sums.any()):
        return found
    if weighted is None:
        one = _of_sample(labelled, unlabelled, found["people"])
        found["these"] = _these(int(labelled[0] + labelled[2]), n, n + further)
    else:
        one = _of_chances(labelled, unlabelled, weighted)
    value = one.value
    found["people"], found["judge_weight"] = one.people, one.judge_weight
    if n < _LEAST_POWERED:
        withheld = Coefficient(value, withheld=("few_traces", _LEAST_POWERED))
        found["powered"] = withheld.to_json()
        return found
    told = value * (1 - value) / one.variance if one.variance else float(n + further)
    effective = min(max(told, one.least), n + further)
    ends = wilson_of(value, effective)
    found["powered"] = Coefficient(value, ci=(float(ends[0]), float(ends[1]))).to_json()
    wanted = Z**2 * value * (1 - value) / MARGIN**2
    if ends[1] - ends[0] > 2 * MARGIN:
        found["more_labels"] = max(0, ceil(n * (wanted / effective - 1)))
    else:
        found["more_labels"] = 0
    return found


def _these(hits: int, n: int, whole: int) -> CoefficientJson:
    """Return the share of these traces alone, of which a part was labelled."""
    if n < _LEAST_OF_THESE:
        return Coefficient(hits / n, withheld=("few_traces", _LEAST_OF_THESE)).to_json()
    return Coefficient(hits / n, ci=share_of_all(hits, n, whole)).to_json()


def _of_sample(labelled: Tables, unlabelled: Tables, people: CoefficientJson) -> _Joined:
    """The prevalence where the labelled traces are a random sample of all."""
    tp, fp, fn, _tn = (int(count) for count in labelled)
    n, further = int(labelled.sum()), int(unlabelled.sum())
    said, of_all = unlabelled[0] / further, (tp + fp + unlabelled[0]) / (n + further)
    spread = of_all * (1 - of_all) * (n + further) / (n + further - 1)
    together = tp / n - (tp + fn) / n * (tp + fp) / n
    weight = min(1.0, max(0.0, together / ((1 + n / further) * spread))) if spread else 0.0
    value = weight * said + (tp + fn - weight * (tp + fp)) / n
    missed, invented, seen = fn + _UNSEEN_ERRORS, fp + _UNSEEN_ERRORS, n + 2 * _UNSEEN_ERRORS
    off = (tp + missed - weight * (tp + invented)) / seen
    squares = (tp * (1 - weight) ** 2 + invented * weight**2 + missed) / seen
    variance = weight**2 * said * (1 - said) / further + (squares - off**2) / (n - 1)
    return _Joined(min(1.0, max(0.0, float(value))), float(weight), float(variance), people, n)


_PEOPLE: Final = np.array([1.0, 0.0, 1.0, 0.0])
_JUDGE: Final = np.array([1.0, 1.0, 0.0, 0.0])
"""Whether either says present, in the cells TP, FP, FN, TN."""


def _of_chances(labelled: Tables, unlabelled: Tables, weighted: Weighted) -> _Joined:
    """The prevalence where labelled traces had chances of their own.

    The means are weighted by one over the chances (active statistical inference: Zrnic and Candès
    2024, arXiv 2403.03208), and f̄ is the judge's share of all traces. The variance is that of
    independent draws, Σ w(w − 1) r² of the residuals r, and that of all traces about the truth.
    """
    n, whole = float(labelled.sum()), float(labelled.sum() + unlabelled.sum())
    total = float(weighted.sums.sum())
    y, f = (float((weighted.sums * says).sum()) / total for says in (_PEOPLE, _JUDGE))
    of_all = float((labelled * _JUDGE).sum() + unlabelled[0]) / whole
    spreads = weighted.spreads
    square = float((spreads * (_JUDGE - f) ** 2).sum())
    together = float((spreads * (_PEOPLE - y) * (_JUDGE - f)).sum())
    weight = min(1.0, max(0.0, together / square)) if square else 0.0
    value = min(1.0, max(0.0, y + weight * (of_all - f)))
    # Of either kind of error a part of a trace, as heavy as those with the judge's word are.
    heavy = [float(spreads[word].sum() / max(labelled[word].sum(), 1)) for word in ([0, 1], [2, 3])]
    unseen = np.array([0.0, heavy[0], heavy[1], 0.0]) * _UNSEEN_ERRORS

    def variance(weight: float, mean: float, unseen: Tables) -> float:
        off = _PEOPLE - y - weight * (_JUDGE - f)
        within = float(((spreads + unseen) * off**2).sum()) / total**2
        return n / (n - 1) * within + mean * (1 - mean) / whole

    alone = variance(0.0, y, np.zeros(4))
    people = Coefficient(y, ci=wilson_of(y, y * (1 - y) / alone if 0 < y < 1 else n / 2))
    least = total**2 / float(weighted.squares.sum())
    return _Joined(value, weight, variance(weight, value, unseen), people.to_json(), least)


def _unlabelled(given: JudgeInput, slugs: list[str]) -> Tables:
    """Return modes × (present, absent) over the traces that only the judge saw."""
    alone = given.unlabelled - given.examples
    columns = {slug: i for i, slug in enumerate(slugs)}
    counts = np.zeros((len(columns), 2))
    places = {VerdictValue.PRESENT: 0, VerdictValue.ABSENT: 1}
    for (trace, mode), value in given.verdicts.items():
        if trace in alone and mode in columns and value in places:
            counts[columns[mode], places[value]] += 1
    return counts


def _refused(labelled: Tables, unlabelled: Tables) -> Undefined | None:
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
    apparent = ratio(unlabelled[..., 0], unlabelled[..., 0] + unlabelled[..., 1])
    return rogan_gladen(apparent, true_positive_rate(labelled), true_negative_rate(labelled))
