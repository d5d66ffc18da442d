"""The figures of one group: outcomes, modes, categories, pairs of modes, and places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from math import sqrt
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import Floats, Interval, Resampling, percentiles, ratio
from mast_tui.figures.intervals import LEAST_CASES, Z, decisions_needed, rate, wilson_with_student
from mast_tui.figures.record import OUTCOMES, PAIR, Figure, FigureIndex, FigureScope
from mast_tui.figures.signatures.costs import UsageOf, costs
from mast_tui.figures.signatures.model import (
    ABSENT,
    FAILED,
    OPEN,
    PRESENT,
    SUCCEEDED,
    UNRESOLVED,
    UNSURE,
    Flags,
    GroupScope,
    Integers,
    Rules,
    SignatureInput,
)
from mast_tui.figures.signatures.modes import (
    class_of_mode,
    counts_by_mode,
    mode_figures,
    stratified_figures,
)
from mast_tui.figures.signatures.onset import FirstFatal, Onsets, first_fatal, places_figures
from mast_tui.figures.significance import benjamini_hochberg, cochran_armitage
from mast_tui.taxonomy.model import Group

Shape = Literal["none", "isolated", "between", "cascading", "open"]

SHAPES: Final[tuple[Shape, ...]] = ("none", "isolated", "between", "cascading", "open")


def trace_shapes(verdicts: NDArray[np.uint8], rules: Rules) -> Integers:
    """Return the shape of each trace, which depends on its number of modes.

    A trace is ``open`` if its modes without a verdict could change its shape. Modes on which no
    trace was judged are ignored.

    Args:
        verdicts: The verdict codes, traces × modes.
        rules: The limits between the shapes.

    Returns:
        The index of the shape in ``SHAPES`` for each trace.
    """
    is_judged = _judged_mask(verdicts)
    judged_modes = is_judged.any(axis=0)
    fewest_modes = (verdicts == PRESENT).sum(axis=1)
    most_modes = fewest_modes + (~is_judged[:, judged_modes]).sum(axis=1)
    lowest_shape = _shape_indices(fewest_modes, rules)
    highest_shape = _shape_indices(most_modes, rules)
    return np.where(lowest_shape == highest_shape, lowest_shape, SHAPES.index("open"))


def _shape_indices(mode_counts: Integers, rules: Rules) -> Integers:
    """Return the shapes of traces with these numbers of modes, as indices in ``SHAPES``."""
    conditions = [mode_counts == 0, mode_counts <= rules.isolated, mode_counts >= rules.cascading]
    indices = [SHAPES.index(shape) for shape in ("none", "isolated", "cascading")]
    return np.select(conditions, indices, SHAPES.index("between"))


def judged_on_all_modes(verdicts: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return a mask of the traces that were judged on every mode on which any trace was judged."""
    is_judged = _judged_mask(verdicts)
    return np.asarray(is_judged[:, is_judged.any(axis=0)].all(axis=1) & is_judged.any(axis=1))


MOST_PATTERNS: Final = 1000
"""The largest number of different traces that are resampled.

With more, the standard error gives about the same interval in a hundredth of the time.
"""

Verdicts = NDArray[np.uint8]


def modes_per_trace(verdicts: NDArray[np.uint8], weights: Floats | None = None) -> float | None:
    """Return the mean number of modes per trace, as the sum of the modes' shares.

    The share of a mode is over the traces judged on it.

    Args:
        verdicts: The verdict codes, traces × modes.
        weights: The weight of each trace; None for equal weights.

    Returns:
        The sum; None if no mode was judged.
    """
    trace_weights = np.ones(len(verdicts)) if weights is None else weights
    present_weights = trace_weights @ (verdicts == PRESENT)
    judged_weights = trace_weights @ _judged_mask(verdicts)
    was_judged = judged_weights > 0
    if not was_judged.any():
        return None
    return float((present_weights[was_judged] / judged_weights[was_judged]).sum())


def resampled_modes_per_trace(
    verdicts: NDArray[np.uint8], resampling: Resampling, weights: Floats | None = None
) -> Floats:
    """Return ``modes_per_trace`` of each resample of the traces.

    Args:
        verdicts: The verdict codes, traces × modes.
        resampling: The number and the seed of the resamples.
        weights: The weight of each trace; None for equal weights.

    Returns:
        A value for each resample, NaN if a mode has no judged trace in it; empty if there are more
        than ``MOST_PATTERNS`` different traces.
    """
    is_judged = _judged_mask(verdicts)
    judged_modes = is_judged.any(axis=0)
    # Equal traces are drawn together, which has the same distribution and is faster.
    features, counts = _different_traces(
        verdicts[:, judged_modes], weights, all_judged=bool(is_judged[:, judged_modes].all())
    )
    if not len(features) or len(features) > MOST_PATTERNS:
        return np.empty(0)
    trace_count = int(counts.sum())
    resample_counts = np.random.default_rng(resampling.seed).multinomial(
        trace_count, counts / trace_count, size=resampling.count
    )
    present_sums, judged_sums = np.split(resample_counts @ features, 2, axis=1)
    return np.asarray(ratio(present_sums, judged_sums).sum(axis=1))


def modes_per_trace_interval(
    verdicts: NDArray[np.uint8], resampling: Resampling, weights: Floats | None = None
) -> Interval | None:
    """Return the interval of ``modes_per_trace``: the percentiles of its resampled values.

    With too many different traces to resample, it is computed from the standard error.

    Args:
        verdicts: The verdict codes, traces × modes.
        resampling: The resamples of the traces.
        weights: The weight of each trace; None for equal weights.

    Returns:
        The interval; None if half of the resamples or more are undefined, or with fewer than two
        traces.
    """
    estimate = modes_per_trace(verdicts, weights)
    if estimate is None or len(verdicts) < 2:
        return None
    values = resampled_modes_per_trace(verdicts, resampling, weights)
    if not len(values):
        half_width = Z * standard_error(verdicts, weights)
        return max(0.0, estimate - half_width), estimate + half_width
    return percentiles(estimate, values)


def standard_error(verdicts: NDArray[np.uint8], weights: Floats | None = None) -> float:
    """Return the standard error of ``modes_per_trace``, from the influence of each trace.

    Args:
        verdicts: The verdict codes, traces × modes.
        weights: The weight of each trace; None for equal weights.
    """
    trace_weights = np.ones(len(verdicts)) if weights is None else weights
    judged = _judged_mask(verdicts)
    present = verdicts == PRESENT
    judged_weights = trace_weights @ judged
    judged_weights[judged_weights == 0] = 1  # a mode that was never judged has no residuals
    shares = trace_weights @ present / judged_weights
    residuals = judged * (present - shares) / judged_weights
    influences = trace_weights * residuals.sum(axis=1)
    return float(np.sqrt((influences**2).sum()))


def _different_traces(
    verdicts: NDArray[np.uint8], weights: Floats | None, *, all_judged: bool
) -> tuple[Floats, NDArray[np.int64]]:
    """Return the distinct rows of features of traces, and the number of traces with each row.

    The features are the weighted numbers of present and of judged modes: for each mode or, if
    ``all_judged``, for all modes together. ``verdicts`` are traces × modes.
    """
    present = (verdicts == PRESENT).astype(np.float64)
    if all_judged:
        # Every mode is judged in every trace, so the total numbers suffice.
        features = np.stack([present.sum(axis=1), np.ones(len(present))], axis=1)
    else:
        features = np.concatenate([present, _judged_mask(verdicts)], axis=1)
    if weights is not None:
        features = features * weights[:, None]
    different_features, counts = np.unique(features, axis=0, return_counts=True)
    return different_features, counts


def _judged_mask(verdicts: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return np.asarray((verdicts == PRESENT) | (verdicts == ABSENT))


def cooccurrence_figures(
    verdicts: NDArray[np.uint8], codes: tuple[str, ...], side: str, group: GroupScope
) -> Iterator[Figure]:
    """Yield for each pair of modes how often both occur in the same trace.

    The figures of a pair are over the traces judged on both modes. Jaccard is the share with both
    modes among the traces with either of them. φ is the correlation of the modes, undefined
    (``no_variance``) if a mode is in every trace.

    Args:
        verdicts: The verdict codes, traces × modes.
        codes: The codes of the modes.
        side: The set of traces: ``failed`` or ``all``.
        group: The group of the traces.
    """
    present = (verdicts == PRESENT).astype(np.float64)
    absent = (verdicts == ABSENT).astype(np.float64)
    # Modes × modes: the number of traces with both, with only the mode of the row, with neither.
    both_present, only_row, neither = (
        sums.astype(np.int64).tolist()
        for sums in (present.T @ present, present.T @ absent, absent.T @ absent)
    )
    for first, second in combinations(range(len(codes)), 2):
        with_both = both_present[first][second]
        only_first = only_row[first][second]
        only_second = only_row[second][first]
        if with_both + only_first and with_both + only_second:
            pair = (codes[first], codes[second])
            scope = group.scope(f"together_{side}", PAIR.join(pair), *pair)
            yield from _pair_figures(
                scope, with_both, only_first, only_second, neither[first][second]
            )


def _pair_figures(
    scope: FigureScope, with_both: int, only_first: int, only_second: int, with_neither: int
) -> Iterator[Figure]:
    """Yield the figures of two modes from the numbers of traces with both, only one, or neither."""
    margin_product = (
        (with_both + only_first)
        * (with_both + only_second)
        * (only_second + with_neither)
        * (only_first + with_neither)
    )
    with_either = with_both + only_first + only_second
    n = with_either + with_neither
    determinant = with_both * with_neither - only_first * only_second
    phi = determinant / sqrt(margin_product) if margin_product else None
    yield scope.figure(
        "jaccard", Figure(value=with_both / with_either, count=with_both, n=with_either)
    )
    yield scope.number("phi", phi, n=n, reason="" if margin_product else "no_variance")
    yield scope.number("only_first", only_first, n=n)
    yield scope.number("only_second", only_second, n=n)


@dataclass(frozen=True, slots=True)
class GroupInputs:
    """The inputs that all groups of a report share.

    Attributes:
        inputs: The labels, outcomes and places of all traces.
        onsets: The first span of each mode in each trace.
        fatal: The first failures labelled as fatal.
        rules: The limits between classes and shapes.
        resampling: The resamples of the traces.
        usage_of: Returns the tokens and minutes of a trace; None for no costs.
        scores: Further scores of the traces by metric.
    """

    inputs: SignatureInput
    onsets: Onsets
    fatal: FirstFatal
    rules: Rules
    resampling: Resampling
    usage_of: UsageOf | None = None
    scores: Mapping[str, Floats] = field(default_factory=dict)


def group_figures(context: GroupInputs, number: int, name: str) -> tuple[Figure, ...]:
    """Compute the figures of one group of traces.

    Args:
        context: The inputs that all groups share.
        number: The index of the group in ``group_names`` of the inputs.
        name: The name of the group, or ``OVERALL``.
    """
    inputs = context.inputs
    group = GroupScope.named(inputs, name)
    in_group = inputs.group == number
    sides = _sides_of(inputs, in_group)
    codes = tuple(mode.code for mode in inputs.modes)
    verdicts = sides["all"].verdicts
    counts = {
        side_name: counts_by_mode(side.verdicts, side.weights) for side_name, side in sides.items()
    }
    figures_of_modes = tuple(
        mode_figures(
            counts["all"],
            counts["failed"],
            counts["succeeded"],
            trace_count=len(verdicts),
            unsure=(verdicts == UNSURE).sum(axis=0).tolist(),
            scopes=[group.scope("mode", code, code) for code in codes],
        )
    )
    categories_by_scope = {
        "category": inputs.categories,
        **{f"level {level}": groups for level, groups in inputs.levels.items()},
    }
    stratum_scopes = [group.scope("stratified", code, code) for code in codes]
    return (
        *_trace_figures(context, group.scope("group"), in_group, sides),
        *figures_of_modes,
        *chain.from_iterable(
            _category_figures(inputs, sides, categories, group, scope_name)
            for scope_name, categories in categories_by_scope.items()
        ),
        *length_figures(inputs, context.onsets, in_group, group),
        *stratified_figures(inputs, in_group, stratum_scopes),
        *cooccurrence_figures(sides["failed"].verdicts, codes, "failed", group),
        *cooccurrence_figures(verdicts, codes, "all", group),
        *_figures_on_places(context, group, in_group, sides, figures_of_modes),
    )


def _trace_figures(
    context: GroupInputs, scope: FigureScope, in_group: Flags, sides: Mapping[str, _Side]
) -> Iterator[Figure]:
    """Yield the numbers of traces by outcome and shape, their scores, and their modes per trace."""
    inputs = context.inputs
    failed = sides["failed"]
    trace_counts = {name: int(side.mask.sum()) for name, side in sides.items()}
    yield scope.number("traces", trace_counts["all"])
    unknown_count = trace_counts["all"] - trace_counts["failed"] - trace_counts["succeeded"]
    counts_by_outcome = {
        **{outcome: trace_counts[outcome] for outcome in OUTCOMES},
        "unknown": unknown_count,
    }
    for outcome, count in counts_by_outcome.items():
        yield scope.number("traces", count, condition=outcome)
    task_numbers = None if inputs.task_numbers is None else inputs.task_numbers[in_group]
    for metric, scores in {"": inputs.score, **context.scores}.items():
        yield _mean_score(scope, scores[in_group], task_numbers, metric)
    yield _modes_per_failed_trace(scope, failed, context.resampling)
    yield from _mode_counts_of_traces(scope, failed.verdicts)
    shape_counts = np.bincount(
        trace_shapes(failed.verdicts, context.rules), minlength=len(SHAPES)
    ).tolist()
    for shape, n in zip(SHAPES, shape_counts, strict=True):
        yield scope.number("shape", n, condition=shape)


def _figures_on_places(
    context: GroupInputs,
    group: GroupScope,
    in_group: Flags,
    sides: Mapping[str, _Side],
    figures_of_modes: Sequence[Figure],
) -> Iterator[Figure]:
    """Yield the figures on the places of failures, and on the costs before and after them."""
    inputs = context.inputs
    places = inputs.places
    is_in_group = in_group[places.trace]  # for each label
    if not is_in_group.any():
        return
    figures_by_code = FigureIndex(figures_of_modes).figures_by_key("mode", group=group.group)
    fatal_modes = np.array(
        [
            class_of_mode(figures_by_code[mode.code], context.rules).severity == "fatal"
            for mode in inputs.modes
        ],
        dtype=bool,
    )
    # A label is fatal by its own severity (``labels``) or by the class of its mode (``class``).
    has_fatal_mode = fatal_modes[places.mode] & is_in_group
    first_failures = {"labels": context.fatal, "class": first_fatal(inputs, has_fatal_mode)}
    for name in ("failed", "all"):
        with_mode_count = int((sides[name].verdicts == PRESENT).any(axis=1).sum())
        yield from places_figures(
            inputs, context.onsets, sides[name].mask, with_mode_count, name, group, first_failures
        )
    if context.usage_of is not None:
        fatal_labels = {"labels": places.fatal & is_in_group, "class": has_fatal_mode}
        yield from costs(inputs, context.usage_of, sides["failed"].mask, fatal_labels, group)


def _mean_score(
    scope: FigureScope, scores: Floats, task_numbers: Integers | None, metric: str = ""
) -> Figure:
    """Return the mean of a score (NaN for traces without one) with its interval.

    The cases of the interval are the tasks if all traces have one, otherwise the traces.
    """
    has_score = ~np.isnan(scores)
    known_scores = scores[has_score]
    if not len(known_scores):
        return scope.number("mean_score", None, condition=metric, n=0, reason="no_scores")
    mean = float(known_scores.mean())
    case_of_score = np.arange(len(known_scores))  # each trace is a case
    if task_numbers is not None and (task_numbers[has_score] >= 0).all():
        _, case_of_score = np.unique(task_numbers[has_score], return_inverse=True)
    case_count = int(case_of_score.max()) + 1
    if case_count < LEAST_CASES or not 0 < mean < 1:
        return scope.figure(
            "mean_score",
            Figure(value=mean, n=len(known_scores), reason="few_traces", needs=LEAST_CASES),
            condition=metric,
        )
    case_sums = np.bincount(case_of_score, weights=known_scores - mean, minlength=case_count)
    variance = case_count / (case_count - 1) * float((case_sums**2).sum()) / len(known_scores) ** 2
    effective_count = mean * (1 - mean) / variance if variance else float(case_count)
    score_interval = wilson_with_student(mean, effective_count, case_count - 1)
    return scope.figure(
        "mean_score",
        Figure(value=mean, interval=score_interval, n=len(known_scores)),
        condition=metric,
    )


def _modes_per_failed_trace(scope: FigureScope, failed: _Side, resampling: Resampling) -> Figure:
    """Return the mean number of modes per failed trace, with bounds if too much is unresolved."""
    verdicts = failed.verdicts
    mean = modes_per_trace(verdicts, failed.weights)
    if mean is None:
        reason = "not_judged" if len(verdicts) else "no_failed"
        return scope.number("modes_per_failed_trace", None, n=len(verdicts), reason=reason)
    is_unresolved = verdicts == UNRESOLVED
    unresolved_count = int(is_unresolved.sum())
    needed_decisions = decisions_needed(unresolved_count, int(_judged_mask(verdicts).sum()))
    if needed_decisions:
        # All unresolved verdicts are taken as absent, then all as present.
        least, greatest = (
            modes_per_trace(np.where(is_unresolved, answer, verdicts), failed.weights) or 0.0
            for answer in (ABSENT, PRESENT)
        )
        return scope.figure(
            "modes_per_failed_trace",
            Figure(
                value=mean,
                bounds=(least, greatest),
                n=len(verdicts),
                unresolved=unresolved_count,
                reason="unresolved",
                needs=needed_decisions,
            ),
        )
    interval = (
        modes_per_trace_interval(verdicts, resampling, failed.weights) if resampling.count else None
    )
    return scope.figure(
        "modes_per_failed_trace",
        Figure(value=mean, interval=interval, n=len(verdicts), unresolved=unresolved_count or None),
    )


def _mode_counts_of_traces(scope: FigureScope, verdicts: Verdicts) -> Iterator[Figure]:
    """Yield the number of traces by their number of modes, among those judged on all modes."""
    complete_verdicts = verdicts[judged_on_all_modes(verdicts)]
    yield scope.number("modes_judged", int(_judged_mask(verdicts).any(axis=0).sum()))
    yield scope.number("n_complete", len(complete_verdicts))
    trace_counts = np.bincount((complete_verdicts == PRESENT).sum(axis=1)).tolist()
    for mode_count, trace_count in enumerate(trace_counts):
        yield scope.number("traces_with_modes", trace_count, condition=str(mode_count))


class _Side(NamedTuple):
    """The traces of a group with one outcome, or all of them.

    Attributes:
        mask: A mask of these traces among all traces.
        verdicts: The verdict codes, traces × modes.
        weights: The weight of each trace; None if the traces are not weighted.
        trace_weights: The weight of each trace; 1 if the traces are not weighted.
        present_sum: The weighted number of present modes.
    """

    mask: Flags
    verdicts: Verdicts
    weights: Floats | None
    trace_weights: Floats
    present_sum: float


def _sides_of(inputs: SignatureInput, in_group: Flags) -> dict[str, _Side]:
    """Return the sides of a group: all traces, the failed ones, the succeeded ones."""
    masks = {
        "all": in_group,
        "failed": in_group & (inputs.outcome == FAILED),
        "succeeded": in_group & (inputs.outcome == SUCCEEDED),
    }
    sides = {}
    for name, mask in masks.items():
        verdicts = inputs.verdicts[mask]
        weights = None if inputs.weights is None else inputs.weights[mask]
        trace_weights = np.ones(len(verdicts)) if weights is None else weights
        present_sum = float((trace_weights @ (verdicts == PRESENT)).sum())
        sides[name] = _Side(mask, verdicts, weights, trace_weights, present_sum)
    return sides


def _category_figures(
    inputs: SignatureInput,
    sides: Mapping[str, _Side],
    categories: Iterable[Group],
    group: GroupScope,
    scope_name: str,
) -> Iterator[Figure]:
    """Yield the figures of each category on each side."""
    for category, _, slugs in categories:
        columns = [column for column, mode in enumerate(inputs.modes) if mode.slug in slugs]
        scope = group.scope(scope_name, category)
        for side_name, side in sides.items():
            yield from _category_figures_of(side, columns, scope, side_name)


def _category_figures_of(
    side: _Side, columns: list[int], scope: FigureScope, side_name: str
) -> Iterator[Figure]:
    """Yield the figures of one category of modes in the traces of one side.

    ``shown`` counts its present modes, ``share`` is their share of all present modes, and the rate
    is the share of traces with the category. ``columns`` are the indices of its modes.
    """
    # The category is present if any mode is, and absent only if all its modes were judged absent.
    category_verdicts = side.verdicts[:, columns]
    is_present = category_verdicts == PRESENT
    shows_category = is_present.any(axis=1)
    is_judged = shows_category | judged_on_all_modes(category_verdicts)
    is_unresolved = category_verdicts == UNRESOLVED
    # Judged on all modes except for unresolved disagreements.
    lacks_decisions = judged_on_all_modes(
        np.where(is_unresolved, ABSENT, category_verdicts)
    ) & is_unresolved.any(axis=1)
    trace_verdicts = np.select(
        [shows_category, is_judged, lacks_decisions], [PRESENT, ABSENT, UNRESOLVED], OPEN
    )
    present_sum = float((side.trace_weights @ is_present).sum())
    share = present_sum / side.present_sum if side.present_sum else None
    yield scope.number("shown", int(is_present.sum()), condition=side_name)
    reason = "" if side.present_sum else "no_traces"
    yield scope.number("share", share, condition=side_name, reason=reason)
    (counts,) = counts_by_mode(trace_verdicts.astype(np.uint8)[:, None], side.weights)
    yield counts.rate(scope, side_name)


# Modes by the length of runs: their share in runs of each length, and their hazard.
#
# Runs are divided into bins by their numbers of spans, at the quartiles. The hazard of a mode in a
# range of span numbers is the share of runs in which the mode begins there, among the runs that
# reach the range without it (a life table: Cutler and Ederer 1958, Journal of Chronic Diseases
# 8:699-712).


LEAST_RUNS: Final = 20
"""The fewest runs with a known length that are divided into bins."""

_BINS: Final = 4


def length_figures(
    inputs: SignatureInput, all_onsets: Onsets, in_group: Flags, group: GroupScope
) -> Iterator[Figure]:
    """Yield the share and the hazard of each mode by the length of the runs of a group.

    The length of a run is its number of spans. The scope ``length`` has the share in each range of
    lengths, such as ``13-25``, and the test for a trend over the ranges. The scope ``hazard`` has
    the hazard in each range of span numbers.

    Args:
        inputs: The labels and traces of the report.
        all_onsets: The first span of each mode in each trace.
        in_group: A mask of the traces of the group.
        group: The group.
    """
    has_length = in_group & (inputs.spans > 0)
    lengths = inputs.spans[has_length]
    ranges = _length_ranges(lengths)
    if len(ranges) < 2:
        return
    last_lengths = np.array([last for _, last in ranges])
    range_of_run = np.searchsorted(last_lengths, lengths)
    # Traces × modes: the first span of the mode, -1 if it is absent or has no place.
    first_spans = np.full(inputs.verdicts.shape, -1, dtype=np.int64)
    first_spans[all_onsets.trace, all_onsets.mode] = all_onsets.first
    tests: list[Figure] = []
    for mode_index, mode in enumerate(inputs.modes):
        verdicts = inputs.verdicts[has_length, mode_index]
        hits, cases = (
            np.bincount(range_of_run[mask], minlength=len(ranges)).tolist()
            for mask in (verdicts == PRESENT, _judged_mask(verdicts))
        )
        scope = group.scope("length", mode.code, mode.code)
        for (first, last), hit_count, case_count in zip(ranges, hits, cases, strict=True):
            yield rate(scope, f"{first}-{last}", hit_count, case_count)
        trend = cochran_armitage(hits, cases)
        if trend is None:
            tests.append(scope.number("p_value", None, reason="no_variance"))
        else:
            tests.append(scope.number("p_value", trend.p_value))
        yield from _hazard_figures(
            first_spans[has_length, mode_index], verdicts, lengths, last_lengths, group, mode.code
        )
    adjusted = benjamini_hochberg([test.value for test in tests])
    for test, p_adjusted in zip(tests, adjusted, strict=True):
        yield test
        yield replace(test, statistic="p_adjusted", value=p_adjusted)


def _length_ranges(lengths: Integers) -> list[tuple[int, int]]:
    """Divide lengths of runs into ranges (first, last) with about equal numbers of runs."""
    if len(lengths) < LEAST_RUNS:
        return []
    quantiles = np.quantile(lengths, np.arange(1, _BINS + 1) / _BINS)
    last_lengths = np.unique(np.ceil(quantiles).astype(np.int64)).tolist()
    first_lengths = [int(lengths.min()), *(last + 1 for last in last_lengths[:-1])]
    return list(zip(first_lengths, last_lengths, strict=True))


def _hazard_figures(
    first_spans: Integers,
    verdicts: NDArray[np.uint8],
    lengths: Integers,
    range_ends: Integers,
    group: GroupScope,
    code: str,
) -> Iterator[Figure]:
    """Yield the hazard of a mode in each range of span numbers.

    The hazard is the number of runs in which the mode begins in the range, divided by the number of
    runs that reach the range without it. ``first_spans`` has the index of the first span of the
    mode in each run, -1 if unknown, and ``lengths`` the number of spans. ``range_ends`` has the
    last span number of each range.
    """
    scope = group.scope("hazard", code, code, placed="yes")
    is_usable = (verdicts == ABSENT) | ((verdicts == PRESENT) & (first_spans >= 0))
    never = np.iinfo(np.int64).max
    onset_span = np.where(verdicts == PRESENT, first_spans, never)
    range_start = 0
    for range_end in range_ends.tolist():
        at_risk = is_usable & (lengths > range_start) & (onset_span >= range_start)
        onset_count = int((at_risk & (onset_span < range_end)).sum())
        yield rate(scope, f"{range_start + 1}-{range_end}", onset_count, int(at_risk.sum()))
        range_start = range_end
