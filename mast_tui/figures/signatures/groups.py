"""The table of one group: outcomes, modes, categories, what shows together, and places."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.signatures.bill import BillJson, SpentOf, bills
from mast_tui.figures.signatures.co_occurrence import TogetherJson, together
from mast_tui.figures.signatures.model import (
    ABSENT,
    FAILED,
    PRESENT,
    SUCCEEDED,
    Flags,
    Rules,
    SignatureInput,
)
from mast_tui.figures.signatures.modes import ModeJson, mode_tables
from mast_tui.figures.signatures.onset import FirstFatal, Onsets, first_fatal
from mast_tui.figures.signatures.patterns import SHAPES, complete, shapes
from mast_tui.figures.signatures.places import PlacesJson, places_table
from mast_tui.figures.signatures.rates import RateJson, rate
from mast_tui.figures.signatures.resampling import Values, interval, modes_per_trace, resampled
from mast_tui.figures.signatures.stratified import StratifiedJson, stratified

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
    their number of modes, over the ``complete`` ones alone.
    """

    value: float | None
    ci: list[float] | None
    n: int
    modes: int
    complete: int
    distribution: dict[str, int]
    undefined: NotRequired[str]


class CategorySideJson(TypedDict):
    """A category among some traces: how often its modes show, their share of all, and in how many
    of the traces that were judged on any of its modes."""

    count: int
    share: float | None
    traces: RateJson


class CategoryJson(TypedDict):
    """A category of modes in one group, by outcome; ``count`` and ``share`` are of all traces."""

    name: str
    count: int
    share: float | None
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


class GroupJson(TypedDict):
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

    def seeded(self, seed: int) -> Setting:
        """The same with another seed."""
        return replace(self, seed=seed)


def group_figures(setting: Setting, group: int) -> GroupFigures:
    """Make the table of a group.

    Args:
        setting: What is the same for every group.
        group: Its place in the input's ``group_names``.
    """
    given, rules = setting.given, setting.rules
    chosen = given.group == group
    verdicts = given.verdicts[chosen]
    failed = given.outcome[chosen] == FAILED
    succeeded = given.outcome[chosen] == SUCCEEDED
    names = [mode.name for mode in given.modes]
    tables = mode_tables(verdicts, failed, succeeded, names, setting.stated, rules)
    codes = tuple(mode.code for mode in given.modes)
    modes = dict(zip(codes, tables, strict=True))
    values = resampled(verdicts[failed], setting.rounds, setting.seed)
    counted = np.bincount(shapes(verdicts[failed], rules), minlength=len(SHAPES)).tolist()
    table: GroupJson = {
        "parts": given.parts(group),
        "traces": int(chosen.sum()),
        "failed": int(failed.sum()),
        "succeeded": int(succeeded.sum()),
        "unknown": int((~failed & ~succeeded).sum()),
        "mean_score": _mean_score(given, chosen),
        "modes_per_failed_trace": _modes_per_trace(verdicts[failed], values, setting.rounds),
        "shapes": dict(zip(SHAPES, counted, strict=True)),
        "categories": _categories(given, chosen),
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
            f"The outcome of {table['unknown']} of {table['traces']} traces is not known; they "
            "count neither as failed nor as successful."
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
    if not table["failed"] and not table["succeeded"]:
        said += _whatever_the_outcome(table)
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


def _whatever_the_outcome(table: GroupJson) -> list[str]:
    """How often each mode shows, where no outcome tells the traces apart."""
    shown = [
        f"{code} in {mode['count']} of {mode['n']}"
        for code, mode in table["modes"].items()
        if mode["count"]
    ]
    return [f"Of all traces judged on it, a mode shows: {', '.join(shown)}."] if shown else []


def _mean_score(given: SignatureInput, chosen: Flags) -> MeanJson:
    scores = given.score[chosen]
    scores = scores[~np.isnan(scores)]
    if not len(scores):
        return {"value": None, "n": 0, "undefined": "no_scores"}
    return {"value": float(scores.mean()), "n": len(scores)}


def _modes_per_trace(verdicts: Verdicts, values: Values, rounds: int) -> ModesPerTraceJson:
    value = modes_per_trace(verdicts)
    ends = interval(verdicts, values) if rounds else None
    whole = verdicts[complete(verdicts)]
    numbers = (whole == PRESENT).sum(axis=1)
    counts = np.bincount(numbers).tolist() if len(whole) else []
    some = ((verdicts == PRESENT) | (verdicts == ABSENT)).any(axis=0)
    found: ModesPerTraceJson = {
        "value": value,
        "ci": None if ends is None else list(ends),
        "n": len(verdicts),
        "modes": int(some.sum()),
        "complete": len(whole),
        "distribution": {str(modes): count for modes, count in enumerate(counts)},
    }
    if value is None:
        found["undefined"] = "not_judged" if len(verdicts) else "no_failed"
    return found


def _categories(given: SignatureInput, chosen: Flags) -> dict[str, CategoryJson]:
    verdicts, outcome = given.verdicts[chosen], given.outcome[chosen]
    everything = int((verdicts == PRESENT).sum())
    found: dict[str, CategoryJson] = {}
    for category, name in given.categories:
        columns = [i for i, mode in enumerate(given.modes) if mode.category == category]
        count = int((verdicts[:, columns] == PRESENT).sum())
        found[category] = {
            "name": name,
            "count": count,
            "share": count / everything if everything else None,
            "failed": _side(verdicts[outcome == FAILED], columns),
            "succeeded": _side(verdicts[outcome == SUCCEEDED], columns),
        }
    return found


def _side(verdicts: Verdicts, columns: list[int]) -> CategorySideJson:
    own = verdicts[:, columns]
    count, everything = int((own == PRESENT).sum()), int((verdicts == PRESENT).sum())
    shows = (own == PRESENT).any(axis=1)
    # Without any present, only a trace judged on all of them is known not to show the category.
    judged = shows | complete(own)
    return {
        "count": count,
        "share": count / everything if everything else None,
        "traces": rate(int(shows.sum()), int(judged.sum())),
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
