"""Two groups against each other, mode by mode."""

from __future__ import annotations

from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import LEVEL
from mast_tui.figures.intervals import (
    LEAST_OF_DIFFERENCE,
    Doubt,
    RateJson,
    newcombe_paired,
    rate,
    to_resolve,
)
from mast_tui.figures.signatures.groups import GroupFigures, GroupJson
from mast_tui.figures.signatures.model import (
    ABSENT,
    FAILED,
    PRESENT,
    UNKNOWN,
    UNRESOLVED,
    Flags,
    SignatureInput,
    Whole,
)
from mast_tui.figures.signatures.modes import Counts, DifferenceJson, differences
from mast_tui.figures.significance import benjamini_hochberg, mcnemar


class ComparedModeJson(DifferenceJson):
    """One mode among the failed traces of two groups: the first less the second."""

    name: str
    first: RateJson
    second: RateJson


class ComparedMeansJson(TypedDict):
    """The modes per failed trace of both groups, and the first less the second.

    ``ci_withheld`` says why the difference has no interval though both means are known.
    """

    first: float | None
    second: float | None
    difference: float | None
    ci: list[float] | None
    ci_withheld: NotRequired[str]
    ci_needs: NotRequired[int]


class ComparisonJson(TypedDict):
    """Two groups of one report, over their failed traces; p-values are adjusted over the modes."""

    groups: list[str]
    over: str
    modes_per_failed_trace: ComparedMeansJson
    modes: dict[str, ComparedModeJson]


def comparison(
    given: SignatureInput, names: tuple[str, str], figures: dict[str, GroupFigures]
) -> ComparisonJson:
    """Compare two groups over their failed traces.

    Args:
        given: The input of the report.
        names: The names of both groups.
        figures: What was counted of each group, by its name.

    Raises:
        KeyError: A name is no group's.
    """
    sides = _failed(given, names[0]), _failed(given, names[1])
    found = differences(*sides, ("first", "second"))
    return {
        "groups": list(names),
        "over": "failed",
        "modes_per_failed_trace": _means(figures[names[0]], figures[names[1]]),
        "modes": {
            mode.code: {
                "name": mode.name,
                "first": sides[0].rate(i),
                "second": sides[1].rate(i),
                **found[i],
            }
            for i, mode in enumerate(given.modes)
        },
    }


def _failed(given: SignatureInput, name: str) -> Counts:
    here = given.group == given.group_names.index(name)
    here &= given.outcome == FAILED
    return Counts.of(given.verdicts[here], given.weights_of(here))


def _means(first: GroupFigures, second: GroupFigures) -> ComparedMeansJson:
    p = first.table["modes_per_failed_trace"]["value"]
    q = second.table["modes_per_failed_trace"]["value"]
    found: ComparedMeansJson = {
        "first": p,
        "second": q,
        "difference": None if p is None or q is None else p - q,
        "ci": None,
    }
    withheld = _why_no_difference(first.table, second.table)
    if withheld is not None:
        found["ci_withheld"], found["ci_needs"] = withheld
    elif found["difference"] is not None and len(first.per_failed) and len(second.per_failed):
        apart = first.per_failed - second.per_failed
        apart = apart[~np.isnan(apart)]
        if len(apart):
            ends = np.quantile(apart, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
            found["ci"] = [float(end) for end in ends]
    return found


def _why_no_difference(first: GroupJson, second: GroupJson) -> tuple[str, int] | None:
    """Return why the difference of both means has no interval, with how many it takes."""
    for side in (first["modes_per_failed_trace"], second["modes_per_failed_trace"]):
        if side["value"] is not None and "ci_withheld" in side:
            return side["ci_withheld"], side["ci_needs"]
    fewest = min(first["failed"], second["failed"])
    return ("few_traces", LEAST_OF_DIFFERENCE) if 0 < fewest < LEAST_OF_DIFFERENCE else None


class PairedCountsJson(TypedDict):
    """One thing that shows in a run or does not, over the ``n`` tasks where it is known of both.

    ``both``, ``only_first``, ``only_second`` and ``neither`` count these tasks. The difference is
    the first share less the second in points, with Newcombe's paired interval; ``p_value`` that of
    McNemar's exact test, ``p_adjusted`` corrected over the modes (Benjamini and Hochberg). Of no
    task they are null, and ``undefined`` is ``no_pairs``. About a run of ``unresolved`` further
    tasks annotators differ, if there are any. ``ci_withheld`` says why the difference has
    no interval: it rests on fewer than 5 tasks (``few_traces``), or more than 2 % are
    ``unresolved``; ``ci_needs`` says how many it takes, or how many to resolve.
    """

    n: int
    both: int
    only_first: int
    only_second: int
    neither: int
    first: RateJson
    second: RateJson
    difference_pp: float | None
    difference_ci_pp: list[float] | None
    p_value: float | None
    undefined: NotRequired[str]
    unresolved: NotRequired[int]
    ci_withheld: NotRequired[str]
    ci_needs: NotRequired[int]


class PairedModeJson(PairedCountsJson):
    """One mode over the tasks on whose two runs it was judged."""

    name: str
    p_adjusted: float | None


class PairedLeftOutJson(TypedDict):
    """What does not count, for the first and the second side.

    ``no_task`` traces name no task; ``repeated`` traces are further runs of a task by the same
    side; ``unpaired`` tasks were not done by the other one.
    """

    no_task: list[int]
    repeated: list[int]
    unpaired: list[int]


class PairedJson(TypedDict):
    """Two sides over the ``tasks`` that both did, of which each counts with one run.

    That is the first by trace id, whatever was judged on it; ``runs`` are how many runs of known
    tasks either side has. ``by`` is what tells the groups apart;
    ``failed`` is whether the run failed, over the tasks where both outcomes are
    known.
    """

    by: str
    pair: list[str]
    tasks: int
    runs: list[int]
    left_out: PairedLeftOutJson
    failed: PairedCountsJson
    modes: dict[str, PairedModeJson]


def paired_groups(given: SignatureInput, first: str, second: str) -> PairedJson | None:
    """Compare two groups of a report, such as two versions, over the tasks that both did.

    Args:
        given: The input of a report.
        first: A group's name.
        second: Another group's name.

    Returns:
        The document, None where nobody has asked which task each trace is a run of.
    """
    task = given.task
    if task is None:
        return None
    sides = [given.group == given.group_names.index(name) for name in (first, second)]
    firsts = [_first_runs(given, task, side) for side in sides]
    tasks, *rows = np.intersect1d(
        task[firsts[0]],
        task[firsts[1]],
        assume_unique=True,
        return_indices=True,
    )
    runs = [mine[row] for mine, row in zip(firsts, rows, strict=True)]
    known = [side & (task >= 0) for side in sides]
    verdicts = [given.verdicts[one] for one in runs]
    outcomes = [given.outcome[one] for one in runs]
    both_known = (outcomes[0] != UNKNOWN) & (outcomes[1] != UNKNOWN)
    judged = [(one == PRESENT) | (one == ABSENT) for one in verdicts]
    counted: list[PairedCountsJson] = [
        _counts(
            verdicts[0][:, i] == PRESENT,
            verdicts[1][:, i] == PRESENT,
            judged[0][:, i] & judged[1][:, i],
            _doubts(verdicts[0][:, i], verdicts[1][:, i]),
        )
        for i in range(len(given.modes))
    ]
    adjusted = benjamini_hochberg([one["p_value"] for one in counted])
    return {
        "by": given.by,
        "pair": [first, second],
        "tasks": len(tasks),
        "runs": [int(side.sum()) for side in known],
        "left_out": {
            "no_task": [int((side & (task < 0)).sum()) for side in sides],
            "repeated": [int(of.sum()) - len(mine) for of, mine in zip(known, firsts, strict=True)],
            "unpaired": [len(mine) - len(tasks) for mine in firsts],
        },
        "failed": _counts(outcomes[0] == FAILED, outcomes[1] == FAILED, both_known),
        "modes": {
            mode.code: {"name": mode.name, **one, "p_adjusted": p}
            for mode, one, p in zip(given.modes, counted, adjusted, strict=True)
        },
    }


def _first_runs(given: SignatureInput, task: Whole, side: Flags) -> Whole:
    """The rows of the first trace by id of every task that a side did, by task."""
    found: dict[int, int] = {}
    rows = np.flatnonzero(side & (task >= 0)).tolist()
    for row in sorted(rows, key=lambda row: given.traces[row]):
        found.setdefault(int(task[row]), row)
    return np.array([found[one] for one in sorted(found)], dtype=np.int64)


def _doubts(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> tuple[Doubt, Doubt] | None:
    """Return the tasks of which a run is unresolved, with the bounds of both shares."""
    judged = (PRESENT, ABSENT, UNRESOLVED)
    judged_in_both = np.isin(first, judged) & np.isin(second, judged)
    differ = int((judged_in_both & ((first == UNRESOLVED) | (second == UNRESOLVED))).sum())
    if not differ:
        return None
    bounds = [
        (
            float((side[judged_in_both] == PRESENT).mean()),
            float((side[judged_in_both] != ABSENT).mean()),
        )
        for side in (first, second)
    ]
    return Doubt(differ, bounds[0]), Doubt(differ, bounds[1])


def _counts(
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
    outcome_known: NDArray[np.bool_],
    doubts: tuple[Doubt, Doubt] | None = None,
) -> PairedCountsJson:
    cells = [
        int((one & other & outcome_known).sum())
        for one, other in ((first, second), (first, ~second), (~first, second), (~first, ~second))
    ]
    both, only_first, only_second, neither = cells
    n = sum(cells)
    ends = newcombe_paired(*cells)
    of_first, of_second = doubts or (None, None)
    rates: PairedCountsJson = {
        "n": n,
        "both": both,
        "only_first": only_first,
        "only_second": only_second,
        "neither": neither,
        "first": rate(both + only_first, n, doubt=of_first),
        "second": rate(both + only_second, n, doubt=of_second),
        "difference_pp": 100 * (only_first - only_second) / n if n else None,
        "difference_ci_pp": None if ends is None else [100 * end for end in ends],
        "p_value": mcnemar(only_first, only_second) if n else None,
    }
    unresolved = 0 if of_first is None else of_first.unresolved
    if unresolved:
        rates["unresolved"] = unresolved
    if not n:
        rates["undefined"] = "no_pairs"
        return rates
    needs = to_resolve(unresolved, n)
    if needs:
        rates |= {"difference_ci_pp": None, "ci_withheld": "unresolved", "ci_needs": needs}
    elif n < LEAST_OF_DIFFERENCE:
        rates |= {
            "difference_ci_pp": None,
            "ci_withheld": "few_traces",
            "ci_needs": LEAST_OF_DIFFERENCE,
        }
    return rates
