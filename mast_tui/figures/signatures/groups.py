"""The table of one group: outcomes, modes, categories, what shows together, and places."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Final, Literal, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from mast_tui.counts import counted
from mast_tui.figures.bootstrap import LEAST_DEFINED, LEVEL, Interval, ratio
from mast_tui.figures.intervals import RateJson, Z, to_resolve
from mast_tui.figures.signatures.bill import BillJson, SpentOf, bills
from mast_tui.figures.signatures.model import (
    ABSENT,
    FAILED,
    OPEN,
    PRESENT,
    SUCCEEDED,
    UNRESOLVED,
    UNSURE,
    Flags,
    Rules,
    SignatureInput,
    Whole,
)
from mast_tui.figures.signatures.modes import Counts, ModeJson, mode_tables
from mast_tui.figures.signatures.onset import (
    FirstFatal,
    Onsets,
    PlacesJson,
    first_fatal,
    places_table,
)
from mast_tui.figures.signatures.stratified import StratifiedJson, stratified
from mast_tui.taxonomy.model import Group

Shape = Literal["none", "isolated", "between", "cascading", "open"]

SHAPES: Final[tuple[Shape, ...]] = ("none", "isolated", "between", "cascading", "open")


def shapes(verdicts: NDArray[np.uint8], rules: Rules) -> Whole:
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


def _shape(modes: Whole, rules: Rules) -> Whole:
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


class TogetherJson(TypedDict):
    """Two modes over the ``n`` traces that were judged on both, each shown by some of them.

    ``jaccard`` is the share of the traces with either that have both; ``phi`` their correlation,
    null (``no_variance``) where one of them shows in every trace.
    """

    modes: list[str]
    n: int
    both: int
    only_first: int
    only_second: int
    neither: int
    jaccard: float
    phi: float | None
    undefined: NotRequired[dict[str, str]]


def together(verdicts: NDArray[np.uint8], codes: tuple[str, ...]) -> list[TogetherJson]:
    """Every pair of modes that both show somewhere among the traces judged on both."""
    present = (verdicts == PRESENT).astype(np.float64)
    absent = (verdicts == ABSENT).astype(np.float64)
    both, first = _whole(present.T @ present), _whole(present.T @ absent)
    neither = _whole(absent.T @ absent)
    return [
        _pair([codes[i], codes[j]], both[i][j], first[i][j], first[j][i], neither[i][j])
        for i in range(len(codes))
        for j in range(i + 1, len(codes))
        if both[i][j] + first[i][j] and both[i][j] + first[j][i]
    ]


def _whole(sums: NDArray[np.float64]) -> list[list[int]]:
    numbers: list[list[int]] = sums.astype(np.int64).tolist()
    return numbers


def _pair(modes: list[str], both: int, first: int, second: int, neither: int) -> TogetherJson:
    margins = (both + first, both + second, second + neither, first + neither)
    product = margins[0] * margins[1] * margins[2] * margins[3]
    pair: TogetherJson = {
        "modes": modes,
        "n": both + first + second + neither,
        "both": both,
        "only_first": first,
        "only_second": second,
        "neither": neither,
        "jaccard": both / (both + first + second),
        "phi": (both * neither - first * second) / sqrt(product) if product else None,
    }
    if not product:
        pair["undefined"] = {"phi": "no_variance"}
    return pair


Verdicts = NDArray[np.uint8]


class MeanJson(TypedDict):
    """A mean over ``n`` traces, with ``undefined`` where there is none."""

    value: float | None
    n: int
    undefined: NotRequired[str]


class ModesPerTraceJson(TypedDict):
    """How many modes a failed trace shows.

    ``value`` is the sum over the modes of the share of traces that show it among those judged on
    it, the mean where all ``n`` were judged on all ``modes``. ``distribution`` counts traces by
    their number of modes, over the ``complete`` ones alone. Where more than 2 % of their verdicts
    are ``unresolved`` there are ``bounds`` in the place of an interval.
    """

    value: float | None
    ci: list[float] | None
    n: int
    modes: int
    complete: int
    distribution: dict[str, int]
    undefined: NotRequired[str]
    unresolved: NotRequired[int]
    bounds: NotRequired[list[float]]
    ci_withheld: NotRequired[str]
    ci_needs: NotRequired[int]


class CategorySideJson(TypedDict):
    """A category among some traces: how often its modes show, their share of all, and in how many
    of the traces that were judged on any of its modes."""

    count: int
    share: float | None
    traces: RateJson


class CategoryJson(TypedDict):
    """A category of modes in one group, by outcome.

    ``count``, ``share`` and ``traces`` are of all traces, whatever their outcome.
    """

    name: str
    count: int
    share: float | None
    traces: RateJson
    failed: CategorySideJson
    succeeded: CategorySideJson


class TogetherByOutcome(TypedDict):
    """Pairs of modes over the failed traces, and over all."""

    failed: list[TogetherJson]
    all: list[TogetherJson]


class PlacesByOutcome(TypedDict):
    """What places tell of the failed traces, and of all."""

    failed: PlacesJson
    all: PlacesJson


class LevelJson(TypedDict):
    """The categories of one level by id."""

    categories: dict[str, CategoryJson]


class _LevelsJson(TypedDict):
    """All levels of categories by name, where there are several."""

    levels: NotRequired[dict[str, LevelJson]]


class GroupJson(_LevelsJson):
    """One model, system or benchmark; ``shapes`` count its failed traces.

    ``parts`` are the values by field that make the group, none where it is all traces. ``bill`` is
    what the failed traces used up, None where that was not asked for or no place is known.
    """

    parts: dict[str, str]
    traces: int
    failed: int
    succeeded: int
    unknown: int
    mean_score: MeanJson
    modes_per_failed_trace: ModesPerTraceJson
    shapes: dict[str, int]
    categories: dict[str, CategoryJson]
    modes: dict[str, ModeJson]
    stratified: StratifiedJson | None
    together: TogetherByOutcome
    places: PlacesByOutcome | None
    bill: list[BillJson] | None
    cannot_say: list[str]


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """A group's table, and the resampled number of modes per failed trace."""

    table: GroupJson
    per_failed: Values


@dataclass(frozen=True, slots=True)
class Setting:
    """What is the same for every group of a report.

    ``fatal`` are the first failures that were labelled as fatal. ``spent_of`` tells what traces
    used up, where that is asked for.
    """

    given: SignatureInput
    stated: list[str | None]
    onsets: Onsets
    fatal: FirstFatal
    rules: Rules
    rounds: int
    seed: int
    spent_of: SpentOf | None = None


def group_figures(setting: Setting, group: int) -> GroupFigures:
    """Make the table of a group.

    Args:
        setting: What is the same for every group.
        group: Its place in the input's ``group_names``.
    """
    given, rules = setting.given, setting.rules
    chosen = given.group == group
    verdicts = given.verdicts[chosen]
    weights = given.weights_of(chosen)
    failed = given.outcome[chosen] == FAILED
    succeeded = given.outcome[chosen] == SUCCEEDED
    of_failed, of_succeeded = (
        None if weights is None else weights[side] for side in (failed, succeeded)
    )
    names = [mode.name for mode in given.modes]
    tables = mode_tables(
        Counts.of(verdicts, weights),
        Counts.of(verdicts[failed], of_failed),
        Counts.of(verdicts[succeeded], of_succeeded),
        len(verdicts),
        (verdicts == UNSURE).sum(axis=0).tolist(),
        names,
        setting.stated,
        rules,
    )
    codes = tuple(mode.code for mode in given.modes)
    modes = dict(zip(codes, tables, strict=True))
    values = resampled(verdicts[failed], setting.rounds, setting.seed, of_failed)
    counted = np.bincount(shapes(verdicts[failed], rules), minlength=len(SHAPES)).tolist()
    top = [
        (id, name, tuple(mode.slug for mode in given.modes if mode.category == id))
        for id, name in given.categories
    ]
    levels: _LevelsJson = {}
    if given.levels:
        levels["levels"] = {
            name: {"categories": _categories(given, chosen, groups)}
            for name, groups in given.levels.items()
        }
    table: GroupJson = {
        "parts": given.parts(group),
        "traces": int(chosen.sum()),
        "failed": int(failed.sum()),
        "succeeded": int(succeeded.sum()),
        "unknown": int((~failed & ~succeeded).sum()),
        "mean_score": _mean_score(given, chosen),
        "modes_per_failed_trace": _modes_per_trace(
            verdicts[failed], values, setting.rounds, of_failed
        ),
        "shapes": dict(zip(SHAPES, counted, strict=True)),
        "categories": _categories(given, chosen, top),
        **levels,
        "modes": modes,
        "stratified": stratified(
            given, chosen, {code: mode["difference_pp"] for code, mode in modes.items()}
        ),
        "together": {
            "failed": together(verdicts[failed], codes),
            "all": together(verdicts, codes),
        },
        "places": _places(setting, chosen, modes),
        "bill": _bill(setting, chosen, modes),
        "cannot_say": [],
    }
    table["cannot_say"] = cannot_say(table, rules)
    return GroupFigures(table, values)


def cannot_say(table: GroupJson, rules: Rules) -> list[str]:
    """What a group's traces do not carry, in sentences."""
    said = []
    if table["unknown"]:
        said.append(
            f"The outcome of {table['unknown']} of {counted(table['traces'], 'trace')} is not "
            "known; they count neither as failed nor as successful."
        )
    if not table["failed"]:
        said.append("No trace is known to have failed, so nothing is said of failed traces.")
    if not table["succeeded"]:
        said.append("No trace is known to have succeeded, so failed ones have no counterpart.")
    elif 0 < min(table["failed"], table["succeeded"]) < rules.least:
        said.append(
            f"With fewer than {rules.least} failed or successful traces no mode is called fatal "
            "or benign."
        )
    never = [code for code, mode in table["modes"].items() if not mode["n"]]
    if len(never) == len(table["modes"]):
        said.append("No mode was judged present or absent on any trace.")
    elif never:
        said.append(f"Not judged on any trace: {', '.join(never)}.")
    unseen = [code for code, mode in table["modes"].items() if mode["n"] and not mode["count"]]
    if unseen:
        said.append(
            f"Seen on no trace: {', '.join(unseen)}; what that rules out is told by the intervals."
        )
    if table["places"] is None:
        said.append("No label names spans that are known here, so nothing is said of places.")
    return said


def _mean_score(given: SignatureInput, chosen: Flags) -> MeanJson:
    scores = given.score[chosen]
    scores = scores[~np.isnan(scores)]
    if not len(scores):
        return {"value": None, "n": 0, "undefined": "no_scores"}
    return {"value": float(scores.mean()), "n": len(scores)}


def _modes_per_trace(
    verdicts: Verdicts, values: Values, rounds: int, weights: Values | None
) -> ModesPerTraceJson:
    value = modes_per_trace(verdicts, weights)
    ends = interval(verdicts, values, weights) if rounds else None
    whole = verdicts[complete(verdicts)]
    numbers = (whole == PRESENT).sum(axis=1)
    counts = np.bincount(numbers).tolist() if len(whole) else []
    found: ModesPerTraceJson = {
        "value": value,
        "ci": None if ends is None else list(ends),
        "n": len(verdicts),
        "modes": int(_judged(verdicts).any(axis=0).sum()),
        "complete": len(whole),
        "distribution": {str(modes): count for modes, count in enumerate(counts)},
    }
    if value is None:
        found["undefined"] = "not_judged" if len(verdicts) else "no_failed"
        return found
    differ = verdicts == UNRESOLVED
    unresolved = int(differ.sum())
    if not unresolved:
        return found
    found["unresolved"] = unresolved
    needs = to_resolve(unresolved, int(_judged(verdicts).sum()))
    if needs:
        bounds = [
            modes_per_trace(np.where(differ, answer, verdicts), weights) or 0.0
            for answer in (ABSENT, PRESENT)
        ]
        found |= {"ci": None, "bounds": bounds, "ci_withheld": "unresolved", "ci_needs": needs}
    return found


def _categories(
    given: SignatureInput, chosen: Flags, groups: Iterable[Group]
) -> dict[str, CategoryJson]:
    found: dict[str, CategoryJson] = {}
    failed, succeeded = (chosen & (given.outcome == one) for one in (FAILED, SUCCEEDED))
    for category, name, slugs in groups:
        columns = [i for i, mode in enumerate(given.modes) if mode.slug in slugs]
        every = _side(given, chosen, columns)
        found[category] = {
            "name": name,
            "count": every["count"],
            "share": every["share"],
            "traces": every["traces"],
            "failed": _side(given, failed, columns),
            "succeeded": _side(given, succeeded, columns),
        }
    return found


def _side(given: SignatureInput, chosen: Flags, columns: list[int]) -> CategorySideJson:
    verdicts, weights = given.verdicts[chosen], given.weights_of(chosen)
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
    return {
        "count": int(own.sum()),
        "share": float((each @ own).sum()) / everything if everything else None,
        "traces": Counts.of(known[:, None], weights).rate(0),
    }


def _places(setting: Setting, chosen: Flags, modes: dict[str, ModeJson]) -> PlacesByOutcome | None:
    given, places = setting.given, setting.given.places
    if not chosen[places.trace].any():
        return None
    found: dict[str, FirstFatal] = {
        "labels": setting.fatal,
        "class": first_fatal(given, _of_fatal_modes(given, modes) & chosen[places.trace]),
    }
    failed = chosen & (given.outcome == FAILED)
    shows = (given.verdicts == PRESENT).any(axis=1)

    def table(traces: Flags) -> PlacesJson:
        showing = int((traces & shows).sum())
        return places_table(given, setting.onsets, traces, showing, found)

    return {"failed": table(failed), "all": table(chosen)}


def _of_fatal_modes(given: SignatureInput, modes: dict[str, ModeJson]) -> Flags:
    """Whether each label with a place is of a mode that is called fatal in the group."""
    fatal = np.array([table["severity"] == "fatal" for table in modes.values()], dtype=bool)
    found: Flags = fatal[given.places.mode]
    return found


def _bill(setting: Setting, chosen: Flags, modes: dict[str, ModeJson]) -> list[BillJson] | None:
    given = setting.given
    if setting.spent_of is None or not chosen[given.places.trace].any():
        return None
    here = chosen[given.places.trace]
    return bills(
        given,
        setting.spent_of,
        chosen & (given.outcome == FAILED),
        {"labels": given.places.fatal & here, "class": _of_fatal_modes(given, modes) & here},
    )
