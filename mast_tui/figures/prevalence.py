"""The prevalence of a mode, from a judge's verdicts on all traces and people's labels on some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from math import ceil, sqrt
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np

from mast_tui.figures.bootstrap import Floats, Interval, ratio
from mast_tui.figures.intervals import (
    MARGIN,
    Z,
    decisions_needed,
    share,
    share_figure,
    share_of_all,
    wilson_of,
)
from mast_tui.figures.judge.confusion import ComparedUnits, compared_units, unit_cells
from mast_tui.figures.judge.input import JudgeInput
from mast_tui.figures.record import Figure, FigureScope, Undefined, scope_paths
from mast_tui.figures.two_by_two import Tables, true_negative_rate, true_positive_rate
from mast_tui.labels import VerdictValue

_LEAST_LABELLED: Final = 30
"""The fewest labelled traces for an interval of the corrected prevalence."""

_LEAST_FINITE_SAMPLE: Final = 20
"""The fewest labelled traces for an interval of a known number of traces."""

_STEPS: Final = 21
"""The number of shares of the unresolved verdicts that are tried, from 0 to 1."""

_UNSEEN_ERRORS: Final = 0.2
"""The part of a trace that is added to either kind of error before the variance is computed.

A judge that rarely errs may show no error on a hundred labelled traces. The interval would then be
too narrow (``scripts/simulate_prevalence.py``).
"""

_LEAST_PREDICTION_POWERED: Final = 100
"""The fewest labelled traces for a prediction-powered interval."""


PREVALENCE_PATHS: Final = scope_paths("""
    prevalence         | prevalence.{mode}         | no n | no subject
    prevalence_overall | prevalence.{mode}.overall | no n | no subject
""")
"""The paths of the figures in JSON documents."""


def rogan_gladen(apparent: Floats, tpr: Floats, tnr: Floats) -> Floats:
    """Return θ = (p + TNR − 1) / (TPR + TNR − 1), clipped to [0, 1] (Rogan and Gladen 1978).

    Args:
        apparent: The shares p that the judge calls present.
        tpr: The judge's true positive rates.
        tnr: The judge's true negative rates.

    Returns:
        The prevalences θ; NaN if TPR + TNR ≤ 1 or an argument is NaN.
    """
    return np.asarray(np.clip(ratio(apparent + tnr - 1, tpr + tnr - 1), 0, 1))


def corrected_prevalence(labelled: Tables, unlabelled: Tables) -> Figure:
    """Return the prevalence of one mode, corrected for the judge's errors, or why there is none.

    The interval is that of Lang and Reiczigel (2014, Preventive Veterinary Medicine 113:13-22).

    Args:
        labelled: The counts TP, FP, FN, TN of the judge against the reference.
        unlabelled: The numbers of unlabelled traces that the judge calls present, and absent.
    """
    undefined = _undefined_reason(labelled, unlabelled)
    if undefined is not None:
        return Figure(reason=undefined)
    value = float(_corrected_shares(labelled, unlabelled))
    if labelled.sum() < _LEAST_LABELLED:
        return Figure(value=value, reason="few_traces", needs=_LEAST_LABELLED)

    low, high = _lang_reiczigel(labelled, unlabelled)
    return Figure(value=value, interval=(min(value, low), max(value, high)))


def _lang_reiczigel(labelled: Tables, unlabelled: Tables) -> Interval:
    """Return the interval of Lang and Reiczigel, between 0 and 1.

    One right and one wrong verdict are added to each rate of the judge, and z² / 2 present and z² /
    2 absent traces to the judge's share of present.
    """
    tp, fp, fn, tn = (float(count) for count in labelled)
    positives = tp + fn + 2
    negatives = tn + fp + 2
    trace_count = float(unlabelled.sum()) + Z**2
    tpr = (tp + 1) / positives
    tnr = (tn + 1) / negatives
    apparent = (float(unlabelled[0]) + Z**2 / 2) / trace_count
    youden = tpr + tnr - 1
    if youden <= 0:  # the judge is no better than chance
        return 0.0, 1.0
    centre = (apparent + tnr - 1) / youden
    tpr_variance = tpr * (1 - tpr) / positives
    tnr_variance = tnr * (1 - tnr) / negatives
    variance = (
        apparent * (1 - apparent) / trace_count
        + (1 - centre) ** 2 * tnr_variance
        + centre**2 * tpr_variance
    )
    half_width = Z * sqrt(variance) / youden
    moved_centre = centre + 2 * Z**2 * (centre * tpr_variance - (1 - centre) * tnr_variance)
    return max(0.0, moved_centre - half_width), min(1.0, moved_centre + half_width)


def prevalence_figures(
    judge_input: JudgeInput, units: ComparedUnits, *, group: str = ""
) -> Iterator[Figure]:
    """Yield the prevalence of each mode, from people's labels on some traces and a judge's on all.

    The scope ``prevalence`` is over the traces that only the judge has judged. It assumes that the
    judge makes the same errors on these as on the labelled traces. The scope ``prevalence_overall``
    is over all traces; see ``PoweredPrevalence``.

    Args:
        judge_input: The judge's verdicts, with those on unlabelled traces.
        units: The verdicts of judge and reference on the same units.
        group: The name of the group of traces; empty for all traces.
    """
    counts_by_mode = zip(
        judge_input.modes,
        _unlabelled_counts(judge_input),
        _labelled_counts(judge_input, units),
        # The counts with all disagreements decided as absent, and with all decided as present.
        _labelled_counts(judge_input, units.resolved_as(present=False)),
        _labelled_counts(judge_input, units.resolved_as(present=True)),
        strict=True,
    )
    for mode, unlabelled, labelled, all_absent, all_present in counts_by_mode:
        judge_present, judge_absent, unsure_count = (int(count) for count in unlabelled)
        tp, fp, fn, tn = (int(count) for count in labelled.table)
        scope = judge_input.scope("prevalence", [mode.slug], mode=mode.code, group=group)
        yield from scope.counts(
            {
                "n_unlabelled": judge_present + judge_absent,
                "n_unsure": unsure_count,
                "n_positives": tp + fn,
                "n_negatives": fp + tn,
            }
        )
        yield share_figure(scope, "apparent", judge_present, judge_present + judge_absent)
        yield from _mode_prevalences(
            scope,
            labelled,
            (all_absent, all_present),
            judge_verdicts=unlabelled[:2],
            unresolved=units.left_out["unresolved"][mode.slug],
        )


def _mode_prevalences(
    scope: FigureScope,
    labelled: _LabelledCounts,
    extremes: tuple[_LabelledCounts, _LabelledCounts],
    *,
    judge_verdicts: Tables,
    unresolved: int,
) -> Iterator[Figure]:
    """Yield the prevalence of a mode corrected for the judge's errors, then that over all traces.

    Bounds replace the intervals if too many disagreements are unresolved.

    Args:
        scope: The scope of the corrected prevalence.
        labelled: The counts without unresolved disagreements.
        extremes: The counts with all disagreements decided as absent, and decided as present.
        judge_verdicts: The numbers of unlabelled traces that the judge calls present, and absent.
        unresolved: The number of unresolved disagreements.
    """
    corrected = scope.figure("corrected", corrected_prevalence(labelled.table, judge_verdicts))
    overall_scope = replace(scope, name="prevalence_overall")
    powered = prediction_powered(labelled.table, judge_verdicts, labelled.weighted)
    overall = _overall_figures(overall_scope, powered, unresolved)
    needed_decisions = decisions_needed(unresolved, int(labelled.table.sum()))
    if not needed_decisions:
        yield corrected
        yield from overall
        return
    all_absent, all_present = (extreme.table for extreme in extremes)
    corrected_bounds = _corrected_bounds(all_absent, all_present, judge_verdicts)
    yield _with_bounds(corrected, corrected_bounds, needed_decisions)
    low, high = (
        prediction_powered(extreme.table, judge_verdicts, extreme.weighted) for extreme in extremes
    )
    bounds = {
        "people": (low.people.value, high.people.value),
        "powered": (low.powered.value, high.powered.value),
        "these": (low.people.value, high.people.value),
    }
    for figure in overall:
        if figure.statistic == "more_labels":
            yield overall_scope.number("more_labels", None)
        else:
            bounds_of_figure = bounds.get(figure.statistic, (None, None))
            yield _with_bounds(figure, bounds_of_figure, needed_decisions)


def _overall_figures(
    scope: FigureScope, prevalence: PoweredPrevalence, unresolved: int
) -> Iterator[Figure]:
    """Yield the figures of the prevalence over all traces.

    ``unresolved`` is the number of disagreements that no one has decided.
    """
    yield from scope.counts(
        {
            "n": prevalence.n,
            "n_labelled": prevalence.n_labelled,
            "unresolved": unresolved,
            "weighted": prevalence.weighted,
        }
    )
    yield scope.figure("people", prevalence.people)
    yield scope.figure("powered", prevalence.powered)
    yield scope.number("judge_weight", prevalence.judge_weight)
    yield scope.number("more_labels", prevalence.more_labels)
    # The share among these traces, not in the population that they represent.
    if prevalence.share_of_these is not None:
        yield scope.figure("these", prevalence.share_of_these)


def _with_bounds(
    figure: Figure, bounds: tuple[float | None, float | None], needed_decisions: int
) -> Figure:
    """Return a figure with bounds instead of its interval; unchanged if either is undefined.

    ``needed_decisions`` is the number of disagreements to resolve before there is an interval.
    """
    low, high = bounds
    if figure.value is None or low is None or high is None:
        return figure
    return replace(
        figure,
        interval=None,
        bounds=(low, high),
        reason="unresolved",
        needs=needed_decisions,
    )


def _corrected_bounds(
    all_absent: Tables, all_present: Tables, unlabelled: Tables
) -> tuple[float, float]:
    """Return the least and the greatest corrected prevalence to which decisions can lead.

    Two shares of the disagreements to call present are varied: one for the traces that the judge
    calls present, one for the other traces. The bounds are 0 and 1 if the judge is no better than
    chance for some pair of shares.

    Args:
        all_absent: The counts TP, FP, FN, TN if all disagreements are decided as absent.
        all_present: The counts if all disagreements are decided as present.
        unlabelled: The numbers of unlabelled traces that the judge calls present, and absent.
    """
    shares = np.linspace(0, 1, _STEPS)
    tables_by_share = all_absent + shares[:, None] * (all_present - all_absent)
    # TP and FP are the traces that the judge calls present, FN and TN the others.
    grid = np.empty((_STEPS, _STEPS, 4))
    grid[..., :2] = tables_by_share[:, None, :2]
    grid[..., 2:] = tables_by_share[None, :, 2:]
    values = _corrected_shares(grid, unlabelled)
    if np.isnan(values).any():
        return 0.0, 1.0
    return float(values.min()), float(values.max())


class _LabelledCounts(NamedTuple):
    """The table (TP, FP, FN, TN) of one mode, and its weighted sums if traces have weights."""

    table: Tables
    weighted: Weighted | None


def _labelled_counts(judge_input: JudgeInput, units: ComparedUnits) -> list[_LabelledCounts]:
    """Count the cells of each mode, and sum the traces' weights in each cell.

    Traces have weights if the study drew them with different chances.
    """
    cells = unit_cells(units, judge_input.slugs)
    study = judge_input.study
    weight_by_trace = None
    if study is not None and not study.chances_alike:
        weight_by_trace = study.trace_weights(frozenset(units.traces))
    if weight_by_trace is None:
        return [_LabelledCounts(table, None) for table in cells.sum(axis=0)]
    # A trace outside the study was not drawn, and has no weight.
    trace_weights = np.array([weight_by_trace.get(trace, 0.0) for trace in units.traces])
    return list(map(_LabelledCounts, cells.sum(axis=0), weighted_tables(cells, trace_weights)))


@dataclass(frozen=True, slots=True)
class Weighted:
    """The weighted tables (TP, FP, FN, TN) of one mode.

    The weight w of a trace is the number of traces that it represents. ``sums``, ``squares`` and
    ``variance_weights`` are the sums of w, of w² and of w(w − 1).
    """

    sums: Tables
    squares: Tables
    variance_weights: Tables


def weighted_tables(cells: Tables, weights: Floats) -> list[Weighted]:
    """Sum the weights of the traces in each cell, for each mode.

    Args:
        cells: Zeros and ones, traces × modes × (TP, FP, FN, TN).
        weights: The weight of each trace: the number of traces that it represents.
    """
    # A trace with the residual r, drawn with the chance 1/w, adds w(w − 1) r² to the variance.
    variance_weights = np.maximum(weights * (weights - 1), 0)
    # Three arrays, for w, w² and w(w − 1): modes × (TP, FP, FN, TN).
    sums = [
        np.tensordot(factors, cells, axes=1) for factors in (weights, weights**2, variance_weights)
    ]
    return [Weighted(*sums_of_mode) for sums_of_mode in zip(*sums, strict=True)]


class _JoinedPrevalence(NamedTuple):
    """A prevalence from the labels of people and the verdicts of a judge.

    Attributes:
        value: The prevalence.
        judge_weight: The weight of the judge, from 0 to 1.
        variance: The variance of the prevalence.
        people: The prevalence from the labels alone.
        least_effective_count: The effective number of traces by the labels alone.
    """

    value: float
    judge_weight: float
    variance: float
    people: Figure
    least_effective_count: float

    def effective_count(self, trace_count: int) -> float:
        """Return the effective number of traces, at most ``trace_count``."""
        cases = (
            self.value * (1 - self.value) / self.variance if self.variance else float(trace_count)
        )
        return min(max(cases, self.least_effective_count), trace_count)


_NO_OVERLAP: Final = Figure(reason="no_overlap")


@dataclass(frozen=True, slots=True)
class PoweredPrevalence:
    """The prevalence of a mode over all traces, of which annotators have labelled a part.

    Attributes:
        n: The number of traces that the judge has judged.
        n_labelled: The number of these with a verdict of the reference.
        weighted: Whether traces were drawn with different chances, so that figures are weighted.
        people: The share among the labelled traces, as an estimate for all traces like these.
        powered: The prediction-powered share, as an estimate for all traces like these.
        share_of_these: The share of exactly these ``n`` traces; None if they are weighted.
        judge_weight: The weight of the judge in ``powered``, from 0 to 1.
        more_labels: The number of further labels for an interval of ``powered`` of ± ``MARGIN``. It
            may exceed the traces that are left.
    """

    n: int
    n_labelled: int
    weighted: bool
    people: Figure
    powered: Figure = _NO_OVERLAP
    share_of_these: Figure | None = None
    judge_weight: float | None = None
    more_labels: int | None = None


def prediction_powered(
    labelled: Tables, unlabelled: Tables, weighted: Weighted | None = None
) -> PoweredPrevalence:
    """Return the prevalence θ of a mode over all traces by prediction-powered inference.

    θ = λ f̄ + mean(y − λ f). f̄ is the share of the unlabelled traces that the judge calls present.
    On the labelled traces, f are the verdicts of the judge and y those of the reference. The weight
    λ between 0 and 1 makes the variance least (PPI++: Angelopoulos, Duchi and Zrnic 2023, arXiv
    2311.01453). It is 0 for a judge at chance.

    The interval is Wilson's for the effective number of traces, θ(1 − θ)/Var θ (Korn and Graubard
    1998, Survey Methodology 24:193-201). The symmetric interval of the paper is too narrow for rare
    modes. The effective number is at least that of the labelled traces.

    Args:
        labelled: The counts TP, FP, FN, TN of the judge against the reference.
        unlabelled: The numbers of unlabelled traces that the judge calls present, and absent.
        weighted: The weighted counts if the labelled traces were drawn with different chances; None
            if they are a random sample.
    """
    labelled_count = int(labelled.sum())
    trace_count = labelled_count + int(unlabelled.sum())
    present_count = int(labelled[0] + labelled[2])
    people = share(present_count, labelled_count)
    result = PoweredPrevalence(trace_count, labelled_count, weighted is not None, people)
    has_no_weights = weighted is not None and not weighted.sums.any()
    if labelled_count < 2 or trace_count == labelled_count or has_no_weights:
        return result
    if weighted is None:
        estimate = _powered_from_sample(labelled, unlabelled, people)
        share_of_these = _share_of_these(present_count, labelled_count, trace_count)
    else:
        estimate = _powered_from_unequal_chances(labelled, unlabelled, weighted)
        share_of_these = None
    result = replace(
        result,
        people=estimate.people,
        judge_weight=estimate.judge_weight,
        share_of_these=share_of_these,
    )
    if labelled_count < _LEAST_PREDICTION_POWERED:
        return replace(
            result,
            powered=Figure(
                value=estimate.value, reason="few_traces", needs=_LEAST_PREDICTION_POWERED
            ),
        )
    effective_count = estimate.effective_count(trace_count)
    low, high = (float(end) for end in wilson_of(estimate.value, effective_count))
    # The number of further labels that would narrow the interval to ± MARGIN.
    more_labels = 0
    if high - low > 2 * MARGIN:
        needed_cases = Z**2 * estimate.value * (1 - estimate.value) / MARGIN**2
        more_labels = max(0, ceil(labelled_count * (needed_cases / effective_count - 1)))
    return replace(
        result, powered=Figure(value=estimate.value, interval=(low, high)), more_labels=more_labels
    )


def _share_of_these(hits: int, n: int, total: int) -> Figure:
    """Return the share of hits in exactly ``total`` traces, of which only ``n`` were labelled."""
    if n < _LEAST_FINITE_SAMPLE:
        return Figure(value=hits / n, reason="few_traces", needs=_LEAST_FINITE_SAMPLE)
    return Figure(value=hits / n, interval=share_of_all(hits, n, total))


def _powered_from_sample(labelled: Tables, unlabelled: Tables, people: Figure) -> _JoinedPrevalence:
    """Return θ of ``prediction_powered`` if the labelled traces are a random sample.

    ``labelled`` has the counts TP, FP, FN, TN; ``unlabelled`` has the judge's presents and absents.
    ``people`` is the share of the labelled traces that people call present.
    """
    tp, fp, fn, _ = (int(count) for count in labelled)
    labelled_count = int(labelled.sum())
    unlabelled_count = int(unlabelled.sum())
    trace_count = labelled_count + unlabelled_count

    # The weight of the judge that makes the variance least: λ of ``prediction_powered``.
    unlabelled_share = unlabelled[0] / unlabelled_count  # those that the judge calls present
    judge_share = (tp + fp + unlabelled[0]) / trace_count
    judge_variance = judge_share * (1 - judge_share) * trace_count / (trace_count - 1)
    covariance = tp / labelled_count - (tp + fn) / labelled_count * (tp + fp) / labelled_count
    weight = (
        min(1.0, max(0.0, covariance / ((1 + labelled_count / unlabelled_count) * judge_variance)))
        if judge_variance
        else 0.0
    )
    value = weight * unlabelled_share + (tp + fn - weight * (tp + fp)) / labelled_count

    # A part of an error is added to both kinds, because the labelled traces may show no error by
    # chance.
    missed_count = fn + _UNSEEN_ERRORS
    invented_count = fp + _UNSEEN_ERRORS
    case_count = labelled_count + 2 * _UNSEEN_ERRORS
    mean_residual = (tp + missed_count - weight * (tp + invented_count)) / case_count
    mean_square = (tp * (1 - weight) ** 2 + invented_count * weight**2 + missed_count) / case_count
    variance = weight**2 * unlabelled_share * (1 - unlabelled_share) / unlabelled_count
    variance += (mean_square - mean_residual**2) / (labelled_count - 1)
    return _JoinedPrevalence(
        min(1.0, max(0.0, float(value))), float(weight), float(variance), people, labelled_count
    )


_PEOPLE: Final = np.array([1.0, 0.0, 1.0, 0.0])
_JUDGE: Final = np.array([1.0, 1.0, 0.0, 0.0])
"""The cells TP, FP, FN, TN in which people, or the judge, call the mode present."""


def _powered_from_unequal_chances(
    labelled: Tables, unlabelled: Tables, weighted: Weighted
) -> _JoinedPrevalence:
    """Return θ of ``prediction_powered`` if traces were drawn with different chances.

    The means are weighted by one over the chances (active statistical inference: Zrnic and Candès
    2024, arXiv 2403.03208). The variance has two parts: Σ w(w − 1) r² over the residuals r, because
    only a part of all N traces was drawn, and θ(1 − θ) / N, because these N are a sample too.
    ``labelled`` has the counts TP, FP, FN, TN, ``weighted`` the sums of weights in these cells, and
    ``unlabelled`` the judge's presents and absents.
    """
    labelled_count = float(labelled.sum())
    trace_count = labelled_count + float(unlabelled.sum())
    weight_sum = float(weighted.sums.sum())
    people_share = float((weighted.sums * _PEOPLE).sum()) / weight_sum
    judge_share = float((weighted.sums * _JUDGE).sum()) / weight_sum
    judge_share_of_all = float((labelled * _JUDGE).sum() + unlabelled[0]) / trace_count
    variance_weights = weighted.variance_weights
    judge_variance = float((variance_weights * (_JUDGE - judge_share) ** 2).sum())
    covariance = float((variance_weights * (_PEOPLE - people_share) * (_JUDGE - judge_share)).sum())
    weight = min(1.0, max(0.0, covariance / judge_variance)) if judge_variance else 0.0
    value = min(1.0, max(0.0, people_share + weight * (judge_share_of_all - judge_share)))

    def variance_of(judge_weight: float, corrected_share: float, case_weights: Tables) -> float:
        """Return the variance of a share that is corrected by the judge's verdicts.

        Args:
            judge_weight: The weight of the judge's verdicts.
            corrected_share: The corrected share.
            case_weights: The weights w(w - 1) of the cells TP, FP, FN, TN.
        """
        residual = _PEOPLE - people_share - judge_weight * (_JUDGE - judge_share)
        sampling_variance = float((case_weights * residual**2).sum()) / weight_sum**2
        return (
            labelled_count / (labelled_count - 1) * sampling_variance
            + corrected_share * (1 - corrected_share) / trace_count
        )

    people_variance = variance_of(0.0, people_share, variance_weights)
    # A share of 0 or 1 shows no variance, so half of the labelled traces count.
    effective_count = (
        people_share * (1 - people_share) / people_variance
        if 0 < people_share < 1
        else labelled_count / 2
    )
    return _JoinedPrevalence(
        value,
        weight,
        variance_of(weight, value, variance_weights + _unseen_errors(labelled, weighted)),
        people=Figure(value=people_share, interval=wilson_of(people_share, effective_count)),
        least_effective_count=weight_sum**2 / float(weighted.squares.sum()),
    )


def _unseen_errors(labelled: Tables, weighted: Weighted) -> Tables:
    """Return weights that are added to the cells of both kinds of error.

    The sample may show no error by chance. The weight of an added error is the mean variance weight
    of the traces with the same verdict of the judge.
    """
    weight_if_present, weight_if_absent = (
        float(weighted.variance_weights[cells].sum() / max(labelled[cells].sum(), 1))
        for cells in ([0, 1], [2, 3])
    )
    return np.array([0.0, weight_if_present, weight_if_absent, 0.0]) * _UNSEEN_ERRORS


_UNLABELLED_COLUMNS: Final = {
    VerdictValue.PRESENT: 0,
    VerdictValue.ABSENT: 1,
    VerdictValue.UNSURE: 2,
}


def _unlabelled_counts(judge_input: JudgeInput) -> Tables:
    """Count the traces that only the judge has judged, as modes × (present, absent, unsure).

    Examples in the judge's prompt are left out; traces outside the workspace count.
    """
    outside_counts = judge_input.outside_workspace.verdicts
    rows = [outside_counts.get(slug, (0, 0, 0)) for slug in judge_input.slugs]
    counts = np.array(rows, dtype=np.float64).reshape(-1, 3)
    only_judged = judge_input.unlabelled - judge_input.examples
    row_by_slug = {slug: row for row, slug in enumerate(judge_input.slugs)}
    for (trace, mode), value in judge_input.verdicts.items():
        if trace in only_judged and mode in row_by_slug:
            counts[row_by_slug[mode], _UNLABELLED_COLUMNS[value]] += 1
    return counts


def _undefined_reason(labelled: Tables, unlabelled: Tables) -> Undefined | None:
    """Return why a prevalence cannot be corrected; None if it can.

    ``labelled`` has the counts TP, FP, FN, TN; ``unlabelled`` has the judge's presents and absents.
    """
    tp, fp, fn, tn = labelled
    if not unlabelled.sum():
        return "no_unlabelled"
    if not tp + fn:
        return "no_positives"
    if not tn + fp:
        return "no_negatives"
    # TPR + TNR > 1, written with whole numbers to avoid rounding errors.
    return None if tp * tn > fp * fn else "no_better_than_chance"


def _corrected_shares(labelled: Tables, unlabelled: Tables) -> Floats:
    apparent = ratio(unlabelled[..., 0], unlabelled[..., 0] + unlabelled[..., 1])
    return rogan_gladen(apparent, true_positive_rate(labelled), true_negative_rate(labelled))


_EVEN_PART: Final = 0.2
"""The part that is equal for all traces, because the judge's errors are only estimated."""


def worth_of_labels(
    judge_input: JudgeInput, traces: Collection[str], modes: Collection[str]
) -> dict[str, float]:
    """Return how much a label of each trace would add to the prevalences; the mean is 1.

    A label adds most if present and absent are equally likely. Chances in proportion to √Σ p(1 − p)
    over the modes make the sum of the variances least (Neyman 1934, Journal of the Royal
    Statistical Society 97:558-625; Zrnic and Candès 2024, arXiv 2403.03208). The probability p of
    present is (k + ½)/(n + 1): the reference calls k of the n units with the same verdict of the
    judge present.

    Args:
        judge_input: The verdicts of the judge and of its reference.
        traces: The ids of the traces.
        modes: The slugs of the modes.
    """
    unit_counts: Counter[tuple[str, VerdictValue | None]] = Counter()
    present_counts: Counter[tuple[str, VerdictValue | None]] = Counter()
    for (trace, mode), is_present in compared_units(judge_input).reference.items():
        # One count for all units of a mode with the same verdict of the judge.
        key = (mode, judge_input.verdicts[trace, mode])
        unit_counts[key] += 1
        present_counts[key] += is_present

    def spread_of(trace: str) -> float:
        """Return how uncertain people's verdicts on a trace are."""
        variance = 0.0
        for mode in modes:
            key = (mode, judge_input.verdicts.get((trace, mode)))
            present_share = (present_counts[key] + 0.5) / (unit_counts[key] + 1)
            variance += present_share * (1 - present_share)
        return sqrt(variance)

    spread_by_trace = {trace: spread_of(trace) for trace in traces}
    mean_spread = fmean(spread_by_trace.values()) if spread_by_trace else 1.0
    return {
        trace: (1 - _EVEN_PART) * spread / mean_spread + _EVEN_PART
        for trace, spread in spread_by_trace.items()
    }
