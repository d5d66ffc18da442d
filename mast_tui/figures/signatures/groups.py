"""The figures of one group: outcomes, modes, categories, pairs of modes, and places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import LEAST_DEFINED, LEVEL, Interval, ratio
from mast_tui.figures.intervals import LEAST_OF_DIFFERENCE, Z, to_resolve, wilson_of
from mast_tui.figures.jackknife import student_t
from mast_tui.figures.record import PAIR, Figure, FigureIndex, FigureScope
from mast_tui.figures.signatures.bill import SpentOf, costs
from mast_tui.figures.signatures.length import lengths
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
    Rules,
    SignatureInput,
    Whole,
)
from mast_tui.figures.signatures.modes import Counts, mode_figures, severity
from mast_tui.figures.signatures.onset import FirstFatal, Onsets, first_fatal, places_figures
from mast_tui.figures.signatures.stratified import stratified
from mast_tui.taxonomy.model import Group

Shape = Literal["none", "isolated", "between", "cascading", "open"]

SHAPES: Final[tuple[Shape, ...]] = ("none", "isolated", "between", "cascading", "open")


def shapes(verdicts: NDArray[np.uint8], rules: Rules) -> Whole:
    """Return the shape of each trace as an index in ``SHAPES``.

    A trace with modes that are open or unsure has a shape only if none of them could change it.
    Modes on which no trace was judged are ignored.

    Args:
        verdicts: Traces × modes.
        rules: The limits of the shapes.
    """
    judged = _judged(verdicts)
    used = judged.any(axis=0)
    least = (verdicts == PRESENT).sum(axis=1)
    most = least + (~judged[:, used]).sum(axis=1)
    lowest = _shape(least, rules)
    highest = _shape(most, rules)
    return np.where(lowest == highest, lowest, SHAPES.index("open"))


def _shape(modes: Whole, rules: Rules) -> Whole:
    conditions = [modes == 0, modes <= rules.isolated, modes >= rules.cascading]
    indices = [SHAPES.index(shape) for shape in ("none", "isolated", "cascading")]
    return np.select(conditions, indices, SHAPES.index("between"))


def complete(verdicts: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return for each trace whether it was judged on all modes that any trace was judged on."""
    judged = _judged(verdicts)
    return np.asarray(judged[:, judged.any(axis=0)].all(axis=1) & judged.any(axis=1))


MOST_PATTERNS: Final = 1000
"""The largest number of different traces that are resampled.

Beyond it the interval comes from the standard error, which then gives the same in a hundredth of
the time.
"""

Values = NDArray[np.float64]


def modes_per_trace(verdicts: NDArray[np.uint8], weights: Values | None = None) -> float | None:
    """Return the sum of the modes' shares, each over the traces that were judged on it.

    If every trace was judged on every mode, this is the mean number of modes of a trace.

    Args:
        verdicts: Traces × modes.
        weights: The weight of each trace; None for equal weights.

    Returns:
        The sum; None if no mode was judged.
    """
    trace_weights = np.ones(len(verdicts)) if weights is None else weights
    present = trace_weights @ (verdicts == PRESENT)
    judged = trace_weights @ _judged(verdicts)
    has_cases = judged > 0
    if not has_cases.any():
        return None
    return float((present[has_cases] / judged[has_cases]).sum())


def resampled(
    verdicts: NDArray[np.uint8], rounds: int, seed: int, weights: Values | None = None
) -> Values:
    """Compute ``modes_per_trace`` in resamples of the traces.

    Equal traces are drawn together, which gives the same distribution faster.

    Args:
        verdicts: Traces × modes.
        rounds: The number of resamples.
        seed: The seed of the resamples.
        weights: The weight of each trace; None for equal weights.

    Returns:
        A value for each resample, NaN if no trace of it was judged on some mode; empty if more
        than ``MOST_PATTERNS`` traces differ.
    """
    judged = _judged(verdicts)
    used = judged.any(axis=0)
    features, counts = _alike(verdicts[:, used], weights, complete=bool(judged[:, used].all()))
    if not len(features) or len(features) > MOST_PATTERNS:
        return np.empty(0)
    total = int(counts.sum())
    drawn = np.random.default_rng(seed).multinomial(total, counts / total, size=rounds)
    sums = drawn @ features
    present, cases = np.split(sums, 2, axis=1)
    values: Values = ratio(present, cases).sum(axis=1)
    return values


def interval(
    verdicts: NDArray[np.uint8], values: Values, weights: Values | None = None
) -> Interval | None:
    """Return the interval of ``modes_per_trace``: the percentiles of its resampled values.

    Without resampled values it comes from the standard error.

    Args:
        verdicts: Traces × modes.
        values: The resampled values, possibly empty.
        weights: The weight of each trace; None for equal weights.

    Returns:
        The interval; None if half of the resamples are undefined or there are fewer than two
        traces.
    """
    estimate = modes_per_trace(verdicts, weights)
    if estimate is None or len(verdicts) < 2:
        return None
    if not len(values):
        half = Z * standard_error(verdicts, weights)
        return max(0.0, estimate - half), estimate + half
    defined = values[~np.isnan(values)]
    if defined.size <= LEAST_DEFINED * values.size:
        return None
    low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return min(float(low), estimate), max(float(high), estimate)


def standard_error(verdicts: NDArray[np.uint8], weights: Values | None = None) -> float:
    """Return the standard error of ``modes_per_trace``, from the influence of each trace.

    Args:
        verdicts: Traces × modes.
        weights: The weight of each trace; None for equal weights.
    """
    trace_weights = np.ones(len(verdicts)) if weights is None else weights
    judged = _judged(verdicts)
    present = verdicts == PRESENT
    cases = trace_weights @ judged
    cases[cases == 0] = 1
    residuals = judged * (present - trace_weights @ present / cases) / cases
    influences = trace_weights * residuals.sum(axis=1)
    return float(np.sqrt((influences**2).sum()))


def _alike(
    verdicts: NDArray[np.uint8], weights: Values | None, *, complete: bool
) -> tuple[Values, NDArray[np.int64]]:
    """Return what each different trace adds to the sums of present and judged, and its number."""
    present = (verdicts == PRESENT).astype(np.float64)
    if complete:
        # Of complete traces only the number of modes matters.
        features = np.stack([present.sum(axis=1), np.ones(len(present))], axis=1)
    else:
        features = np.concatenate([present, _judged(verdicts)], axis=1)
    if weights is not None:
        features = features * weights[:, None]
    kinds, counts = np.unique(features, axis=0, return_counts=True)
    return kinds, counts


def _judged(verdicts: NDArray[np.uint8]) -> NDArray[np.bool_]:
    judged: NDArray[np.bool_] = (verdicts == PRESENT) | (verdicts == ABSENT)
    return judged


def together(
    verdicts: NDArray[np.uint8], codes: tuple[str, ...], side: str, group: GroupScope
) -> Iterator[Figure]:
    """Yield the figures of each pair of modes that are present among the traces judged on both.

    Jaccard is the share of traces with either mode that have both (``count``). φ is the correlation
    over all traces judged on both, undefined (``no_variance``) if a mode is in every trace.

    Args:
        verdicts: Traces × modes.
        codes: The codes of the modes.
        side: ``failed`` or ``all``: the kind of these traces.
        group: The group of the traces.
    """
    present = (verdicts == PRESENT).astype(np.float64)
    absent = (verdicts == ABSENT).astype(np.float64)
    both = _integers(present.T @ present)
    only_row = _integers(present.T @ absent)
    neither = _integers(absent.T @ absent)
    for i in range(len(codes)):
        for j in range(i + 1, len(codes)):
            if both[i][j] + only_row[i][j] and both[i][j] + only_row[j][i]:
                pair = (codes[i], codes[j])
                scope = group.scope(f"together_{side}", PAIR.join(pair), *pair)
                yield from _pair(scope, both[i][j], only_row[i][j], only_row[j][i], neither[i][j])


def _integers(sums: NDArray[np.float64]) -> list[list[int]]:
    numbers: list[list[int]] = sums.astype(np.int64).tolist()
    return numbers


def _pair(scope: FigureScope, both: int, first: int, second: int, neither: int) -> Iterator[Figure]:
    product = (both + first) * (both + second) * (second + neither) * (first + neither)
    either = both + first + second
    n = either + neither
    phi = (both * neither - first * second) / sqrt(product) if product else None
    yield scope.figure("jaccard", both / either, count=both, n=either)
    yield scope.figure("phi", phi, n=n, reason="" if product else "no_variance")
    yield scope.figure("only_first", first, n=n)
    yield scope.figure("only_second", second, n=n)


Verdicts = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class GroupInputs:
    """The inputs that all groups of a report share.

    ``fatal`` has the first failures labelled as fatal. ``spent_of`` returns the tokens and
    minutes of a trace; None if the report does not need them.
    """

    inputs: SignatureInput
    onsets: Onsets
    fatal: FirstFatal
    rules: Rules
    rounds: int
    seed: int
    spent_of: SpentOf | None = None
    scores: Mapping[str, Values] = field(default_factory=dict)


def group_figures(context: GroupInputs, number: int, name: str) -> tuple[Figure, ...]:
    """Compute the figures of a group.

    Args:
        context: The values that all groups share.
        number: The index of the group in the input's ``group_names``.
        name: The name of the group, or ``OVERALL``.
    """
    inputs = context.inputs
    group = GroupScope.named(inputs, name)
    chosen = inputs.group == number
    verdicts = inputs.verdicts[chosen]
    weights = inputs.weights_of(chosen)
    failed = inputs.outcome[chosen] == FAILED
    succeeded = inputs.outcome[chosen] == SUCCEEDED
    of_failed, of_succeeded = (
        None if weights is None else weights[side] for side in (failed, succeeded)
    )
    scope = group.scope("group")
    counts = {
        "": int(chosen.sum()),
        "failed": int(failed.sum()),
        "succeeded": int(succeeded.sum()),
        "unknown": int((~failed & ~succeeded).sum()),
    }
    figures = [scope.number("traces", n, condition=side) for side, n in counts.items()]
    task = None if inputs.task is None else inputs.task[chosen]
    figures.append(_mean_score(scope, inputs.score[chosen], task))
    figures += [
        _mean_score(scope, scores[chosen], task, metric)
        for metric, scores in context.scores.items()
    ]
    values = resampled(verdicts[failed], context.rounds, context.seed, of_failed)
    per_failed, *distribution = _modes_per_trace(
        scope, verdicts[failed], values, context.rounds, of_failed
    )
    figures += [per_failed, *distribution]
    of_shape = np.bincount(shapes(verdicts[failed], context.rules), minlength=len(SHAPES)).tolist()
    figures += [
        scope.number("shape", n, condition=shape) for shape, n in zip(SHAPES, of_shape, strict=True)
    ]
    codes = tuple(mode.code for mode in inputs.modes)
    of_modes = tuple(
        mode_figures(
            Counts.from_verdicts(verdicts, weights),
            Counts.from_verdicts(verdicts[failed], of_failed),
            Counts.from_verdicts(verdicts[succeeded], of_succeeded),
            len(verdicts),
            (verdicts == UNSURE).sum(axis=0).tolist(),
            [group.scope("mode", code, code) for code in codes],
        )
    )
    figures += of_modes
    top = [
        (id, name, tuple(mode.slug for mode in inputs.modes if mode.category == id))
        for id, name in inputs.categories
    ]
    figures += _categories(inputs, chosen, top, group, "category")
    for level, groups in inputs.levels.items():
        figures += _categories(inputs, chosen, groups, group, f"level {level}")
    figures += lengths(inputs, context.onsets, chosen, group)
    stratum_scopes = [group.scope("stratified", code, code) for code in codes]
    figures += stratified(inputs, chosen, stratum_scopes)
    figures += together(verdicts[failed], codes, "failed", group)
    figures += together(verdicts, codes, "all", group)
    places = inputs.places
    in_group = chosen[places.trace]
    if in_group.any():
        modes = FigureIndex(of_modes).rows("mode", group=name)
        fatal = np.array(
            [severity(modes[code], context.rules)[0] == "fatal" for code in codes], dtype=bool
        )
        of_fatal_modes = fatal[places.mode] & in_group
        first = {"labels": context.fatal, "class": first_fatal(inputs, of_fatal_modes)}
        lost = chosen & (inputs.outcome == FAILED)
        shows = (verdicts == PRESENT).any(axis=1)
        for side, flags, showing in (
            ("failed", lost, int(shows[failed].sum())),
            ("all", chosen, int(shows.sum())),
        ):
            figures += places_figures(inputs, context.onsets, flags, showing, side, group, first)
        if context.spent_of is not None:
            fatal_labels = {"labels": places.fatal & in_group, "class": of_fatal_modes}
            figures += costs(inputs, context.spent_of, lost, fatal_labels, group)
    return tuple(figures)


def _mean_score(scope: FigureScope, scores: Values, task: Whole | None, metric: str = "") -> Figure:
    """Return the mean of a score; if each trace names a task, its interval rests on the tasks."""
    has_score = ~np.isnan(scores)
    values = scores[has_score]
    if not len(values):
        return scope.number("mean_score", None, condition=metric, n=0, reason="no_scores")
    mean = float(values.mean())
    clusters = np.arange(len(values))
    if task is not None and (task[has_score] >= 0).all():
        clusters = np.unique(task[has_score], return_inverse=True)[1]
    units = int(clusters.max()) + 1
    if units < LEAST_OF_DIFFERENCE or not 0 < mean < 1:
        return scope.figure(
            "mean_score",
            mean,
            condition=metric,
            n=len(values),
            reason="few_traces",
            needs=LEAST_OF_DIFFERENCE,
        )
    pulls = np.bincount(clusters, weights=values - mean, minlength=units)
    variance = units / (units - 1) * float((pulls**2).sum()) / len(values) ** 2
    cases = mean * (1 - mean) / variance if variance else float(units)
    # Wilson's formula has the normal distribution's quantile in it.
    ends = wilson_of(mean, cases * (Z / student_t(units - 1)) ** 2)
    return scope.figure("mean_score", mean, condition=metric, interval=ends, n=len(values))


def _modes_per_trace(
    scope: FigureScope, verdicts: Verdicts, values: Values, rounds: int, weights: Values | None
) -> Iterator[Figure]:
    """Yield the modes per failed trace, then the distribution over traces judged on all modes.

    If more than 2 % of the verdicts are unresolved, the first figure has bounds instead of an
    interval.
    """
    value = modes_per_trace(verdicts, weights)
    ends = interval(verdicts, values, weights) if rounds else None
    differ = verdicts == UNRESOLVED
    unresolved = int(differ.sum())
    needs = to_resolve(unresolved, int(_judged(verdicts).sum())) if unresolved else 0
    reason = ""
    bounds = None
    if value is None:
        reason = "not_judged" if len(verdicts) else "no_failed"
    elif needs:
        reason = "unresolved"
        ends = None
        bounds = [
            modes_per_trace(np.where(differ, answer, verdicts), weights) or 0.0
            for answer in (ABSENT, PRESENT)
        ]
    figure = scope.figure(
        "modes_per_failed_trace",
        value,
        interval=ends,
        bounds=bounds,
        n=len(verdicts),
        reason=reason,
        needs=needs if bounds else None,
    )
    yield replace(figure, unresolved=None if value is None else unresolved or None)
    whole = verdicts[complete(verdicts)]
    yield scope.number("modes_judged", int(_judged(verdicts).any(axis=0).sum()))
    yield scope.number("n_complete", len(whole))
    counts = np.bincount((whole == PRESENT).sum(axis=1)).tolist() if len(whole) else []
    for modes, count in enumerate(counts):
        yield scope.number("traces_with_modes", count, condition=str(modes))


def _categories(
    inputs: SignatureInput,
    chosen: Flags,
    categories: Iterable[Group],
    group: GroupScope,
    name: str,
) -> Iterator[Figure]:
    """Yield the number of present modes of each category, their share, and the rate of traces."""
    sides = {
        "all": chosen,
        "failed": chosen & (inputs.outcome == FAILED),
        "succeeded": chosen & (inputs.outcome == SUCCEEDED),
    }
    for category, _, slugs in categories:
        columns = [i for i, mode in enumerate(inputs.modes) if mode.slug in slugs]
        scope = group.scope(name, category)
        for side, flags in sides.items():
            yield from _side(inputs, flags, columns, scope, side)


def _side(
    inputs: SignatureInput, chosen: Flags, columns: list[int], scope: FigureScope, side: str
) -> Iterator[Figure]:
    verdicts = inputs.verdicts[chosen]
    weights = inputs.weights_of(chosen)
    present = verdicts == PRESENT
    trace_weights = np.ones(len(verdicts)) if weights is None else weights
    of_all_modes = float((trace_weights @ present).sum())
    in_category = present[:, columns]
    shows = in_category.any(axis=1)
    # A trace without a present mode lacks the category only if it was judged on all its modes.
    of_category = verdicts[:, columns]
    judged = shows | complete(of_category)
    differ = of_category == UNRESOLVED
    unresolved = complete(np.where(differ, ABSENT, of_category)) & differ.any(axis=1)
    category = np.select([shows, judged, unresolved], [PRESENT, ABSENT, UNRESOLVED], OPEN)
    share = float((trace_weights @ in_category).sum()) / of_all_modes if of_all_modes else None
    yield scope.number("shown", int(in_category.sum()), condition=side)
    yield scope.number("share", share, condition=side, reason="" if of_all_modes else "no_traces")
    counts = Counts.from_verdicts(category.astype(np.uint8)[:, None], weights)
    yield counts.rate(0, scope, side)
