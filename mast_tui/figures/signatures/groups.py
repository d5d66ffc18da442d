"""The figures of one group: outcomes, modes, categories, what shows together, and places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
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
    SignatureInput,
    SignatureRules,
    Whole,
)
from mast_tui.figures.signatures.modes import Counts, mode_figures, severity
from mast_tui.figures.signatures.onset import FirstFatal, Onsets, first_fatal, places_figures
from mast_tui.figures.signatures.stratified import stratified
from mast_tui.taxonomy.model import Group

Shape = Literal["none", "isolated", "between", "cascading", "open"]

SHAPES: Final[tuple[Shape, ...]] = ("none", "isolated", "between", "cascading", "open")


def shapes(verdicts: NDArray[np.uint8], rules: SignatureRules) -> Whole:
    """Per trace the place of its shape in ``SHAPES``.

    A trace with modes that are open or unsure has a shape only where none of them could change it;
    modes that nobody was judged on are not looked at.
    """
    judged = _judged(verdicts)
    used = judged.any(axis=0)
    least = (verdicts == PRESENT).sum(axis=1)
    most = least + (~judged[:, used]).sum(axis=1)
    low, high = _shape(least, rules), _shape(most, rules)
    return np.where(low == high, low, SHAPES.index("open"))


def _shape(modes: Whole, rules: SignatureRules) -> Whole:
    where = [modes == 0, modes <= rules.isolated, modes >= rules.cascading]
    which = [SHAPES.index(shape) for shape in ("none", "isolated", "cascading")]
    return np.select(where, which, SHAPES.index("between"))


def complete(verdicts: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Whether each trace was judged on every mode that any of them was judged on."""
    judged = _judged(verdicts)
    return np.asarray(judged[:, judged.any(axis=0)].all(axis=1) & judged.any(axis=1))


MOST_PATTERNS: Final = 1000
"""Beyond so many different traces the interval is that of the standard error, which then says the
same in a hundredth of the time."""

Values = NDArray[np.float64]


def modes_per_trace(verdicts: NDArray[np.uint8], weights: Values | None = None) -> float | None:
    """The sum over the modes of the share of traces that show it, among those judged on it.

    Where every trace was judged on every mode this is the mean number of modes. None where no
    mode was judged.
    """
    each = np.ones(len(verdicts)) if weights is None else weights
    present, judged = each @ (verdicts == PRESENT), each @ _judged(verdicts)
    seen = judged > 0
    return float((present[seen] / judged[seen]).sum()) if seen.any() else None


def resampled(
    verdicts: NDArray[np.uint8], rounds: int, seed: int, weights: Values | None = None
) -> Values:
    """``modes_per_trace`` in so many resamples of the traces; NaN where one leaves a mode unjudged.

    Traces that are alike are drawn together, which is the same and takes less. Empty where there
    are too many different ones.
    """
    judged = _judged(verdicts)
    used = judged.any(axis=0)
    features, counts = _alike(verdicts[:, used], weights, complete=bool(judged[:, used].all()))
    if not len(features) or len(features) > MOST_PATTERNS:
        return np.empty(0)
    total = int(counts.sum())
    drawn = np.random.default_rng(seed).multinomial(total, counts / total, size=rounds)
    sums = drawn @ features
    present, of = np.split(sums, 2, axis=1)
    found: Values = ratio(present, of).sum(axis=1)
    return found


def interval(
    verdicts: NDArray[np.uint8], values: Values, weights: Values | None = None
) -> Interval | None:
    """The interval of ``modes_per_trace``: the percentiles of its resampled values.

    Without those it is the estimate and so many standard errors. None where half of the resamples
    or more leave it undefined, and of fewer than two traces.
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
    """The standard error of ``modes_per_trace`` by what each trace adds to it."""
    each = np.ones(len(verdicts)) if weights is None else weights
    judged, present = _judged(verdicts), verdicts == PRESENT
    of = each @ judged
    of[of == 0] = 1
    pulls = each * (judged * (present - each @ present / of) / of).sum(axis=1)
    return float(np.sqrt((pulls**2).sum()))


def _alike(
    verdicts: NDArray[np.uint8], weights: Values | None, *, complete: bool
) -> tuple[Values, NDArray[np.int64]]:
    """Per kind of trace what it adds to the sums (present, judged), and how many there are."""
    present = (verdicts == PRESENT).astype(np.float64)
    # Of complete traces only the number of modes matters.
    adds = (
        np.stack([present.sum(axis=1), np.ones(len(present))], axis=1)
        if complete
        else np.concatenate([present, _judged(verdicts)], axis=1)
    )
    kinds, counts = np.unique(
        adds if weights is None else adds * weights[:, None], axis=0, return_counts=True
    )
    return kinds, counts


def _judged(verdicts: NDArray[np.uint8]) -> NDArray[np.bool_]:
    judged: NDArray[np.bool_] = (verdicts == PRESENT) | (verdicts == ABSENT)
    return judged


def together(
    verdicts: NDArray[np.uint8], codes: tuple[str, ...], side: str, group: GroupScope
) -> Iterator[Figure]:
    """Yield every pair of modes that both show somewhere among the traces judged on both.

    Jaccard is the share of the traces with either that have both (``count``), φ their correlation
    over all traces judged on both, undefined (``no_variance``) where a mode shows in every trace.

    Args:
        verdicts: Traces × modes.
        codes: The codes of the modes.
        side: ``failed`` or ``all``: the traces that these are.
        group: The group that they are of.
    """
    present = (verdicts == PRESENT).astype(np.float64)
    absent = (verdicts == ABSENT).astype(np.float64)
    both = _whole(present.T @ present)
    alone = _whole(present.T @ absent)
    neither = _whole(absent.T @ absent)
    for i in range(len(codes)):
        for j in range(i + 1, len(codes)):
            if both[i][j] + alone[i][j] and both[i][j] + alone[j][i]:
                pair = (codes[i], codes[j])
                scope = group.scope(f"together_{side}", PAIR.join(pair), *pair)
                yield from _pair(scope, both[i][j], alone[i][j], alone[j][i], neither[i][j])


def _whole(sums: NDArray[np.float64]) -> list[list[int]]:
    numbers: list[list[int]] = sums.astype(np.int64).tolist()
    return numbers


def _pair(scope: FigureScope, both: int, first: int, second: int, neither: int) -> Iterator[Figure]:
    margins = (both + first, both + second, second + neither, first + neither)
    product = margins[0] * margins[1] * margins[2] * margins[3]
    either = both + first + second
    n = either + neither
    phi = (both * neither - first * second) / sqrt(product) if product else None
    yield scope.figure("jaccard", both / either, count=both, n=either)
    yield scope.figure("phi", phi, n=n, reason="" if product else "no_variance")
    yield scope.figure("only_first", first, n=n)
    yield scope.figure("only_second", second, n=n)


Verdicts = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class GroupContext:
    """What is the same for every group of a report.

    ``fatal`` are the first failures that were labelled as fatal. ``spent_of`` tells what traces
    used up, where that is asked for.
    """

    inputs: SignatureInput
    onsets: Onsets
    fatal: FirstFatal
    rules: SignatureRules
    rounds: int
    seed: int
    spent_of: SpentOf | None = None


def group_figures(setting: GroupContext, number: int, name: str) -> tuple[Figure, ...]:
    """Compute the figures of a group.

    Args:
        setting: What is the same for every group.
        number: The place of the group in the input's ``group_names``.
        name: The group in records: its name, or ``OVERALL``.
    """
    inputs = setting.inputs
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
    values = resampled(verdicts[failed], setting.rounds, setting.seed, of_failed)
    per_failed, *distribution = _modes_per_trace(
        scope, verdicts[failed], values, setting.rounds, of_failed
    )
    figures += [per_failed, *distribution]
    of_shape = np.bincount(shapes(verdicts[failed], setting.rules), minlength=len(SHAPES)).tolist()
    figures += [
        scope.number("shape", n, condition=shape) for shape, n in zip(SHAPES, of_shape, strict=True)
    ]
    codes = tuple(mode.code for mode in inputs.modes)
    of_modes = tuple(
        mode_figures(
            Counts.of(verdicts, weights),
            Counts.of(verdicts[failed], of_failed),
            Counts.of(verdicts[succeeded], of_succeeded),
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
    figures += lengths(inputs, setting.onsets, chosen, group)
    stratum_scopes = [group.scope("stratified", code, code) for code in codes]
    figures += stratified(inputs, chosen, stratum_scopes)
    figures += together(verdicts[failed], codes, "failed", group)
    figures += together(verdicts, codes, "all", group)
    places = inputs.places
    here = chosen[places.trace]
    if here.any():
        modes = FigureIndex(of_modes).rows("mode", group=name)
        fatal = np.array(
            [severity(modes[code], setting.rules)[0] == "fatal" for code in codes], dtype=bool
        )
        of_fatal_modes = fatal[places.mode] & here
        first = {"labels": setting.fatal, "class": first_fatal(inputs, of_fatal_modes)}
        lost = chosen & (inputs.outcome == FAILED)
        shows = (verdicts == PRESENT).any(axis=1)
        for side, flags, showing in (
            ("failed", lost, int(shows[failed].sum())),
            ("all", chosen, int(shows.sum())),
        ):
            figures += places_figures(inputs, setting.onsets, flags, showing, side, group, first)
        if setting.spent_of is not None:
            by = {"labels": places.fatal & here, "class": of_fatal_modes}
            figures += costs(inputs, setting.spent_of, lost, by, group)
    return tuple(figures)


def _mean_score(scope: FigureScope, scores: Values, task: Whole | None) -> Figure:
    """Return the mean score; where each trace names a task, its interval rests on the tasks."""
    known = ~np.isnan(scores)
    values = scores[known]
    if not len(values):
        return scope.number("mean_score", None, n=0, reason="no_scores")
    mean = float(values.mean())
    clusters = np.arange(len(values))
    if task is not None and (task[known] >= 0).all():
        clusters = np.unique(task[known], return_inverse=True)[1]
    units = int(clusters.max()) + 1
    if units < LEAST_OF_DIFFERENCE or not 0 < mean < 1:
        return scope.figure(
            "mean_score", mean, n=len(values), reason="few_traces", needs=LEAST_OF_DIFFERENCE
        )
    pulls = np.bincount(clusters, weights=values - mean, minlength=units)
    variance = units / (units - 1) * float((pulls**2).sum()) / len(values) ** 2
    cases = mean * (1 - mean) / variance if variance else float(units)
    # Wilson's formula has the normal distribution's quantile in it.
    ends = wilson_of(mean, cases * (Z / student_t(units - 1)) ** 2)
    return scope.figure("mean_score", mean, interval=ends, n=len(values))


def _modes_per_trace(
    scope: FigureScope, verdicts: Verdicts, values: Values, rounds: int, weights: Values | None
) -> Iterator[Figure]:
    """Yield how many modes a failed trace shows, and of traces judged on all modes how many do.

    The first is the sum over the modes of the share of traces that show it among those judged on
    it, the mean where all were judged on all modes. Where more than 2 % of their verdicts are
    unresolved it has bounds in the place of an interval.
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
    """Yield how often the modes of each category show, their share of all, and in how many traces.

    The traces are those that were judged on any of its modes.
    """
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
    each = np.ones(len(verdicts)) if weights is None else weights
    everything = float((each @ present).sum())
    own = present[:, columns]
    shows = own.any(axis=1)
    # Without any present, only a trace judged on all of them is known not to show the category.
    judged = shows | complete(verdicts[:, columns])
    of_category = verdicts[:, columns]
    differ = of_category == UNRESOLVED
    decided = complete(np.where(differ, ABSENT, of_category)) & differ.any(axis=1)
    others = np.where(judged, ABSENT, np.where(decided, UNRESOLVED, OPEN))
    known = np.where(shows, PRESENT, others).astype(np.uint8)
    share = float((each @ own).sum()) / everything if everything else None
    yield scope.number("shown", int(own.sum()), condition=side)
    yield scope.number("share", share, condition=side, reason="" if everything else "no_traces")
    yield Counts.of(known[:, None], weights).rate(0, scope, side)
