"""Two groups against each other, mode by mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.bootstrap import LEVEL
from mast_tui.figures.intervals import (
    LEAST_OF_DIFFERENCE,
    Doubt,
    newcombe_paired,
    rate,
    to_resolve,
)
from mast_tui.figures.record import Figure, FigureScope, Sources
from mast_tui.figures.signatures.groups import GroupFigures
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
from mast_tui.figures.signatures.modes import Counts, differences
from mast_tui.figures.significance import benjamini_hochberg, mcnemar

SIDES: Final = ("first", "second")
"""The sides of a comparison, as conditions of its figures."""


def comparison(
    given: SignatureInput, names: tuple[str, str], groups: Mapping[str, GroupFigures]
) -> Iterator[Figure]:
    """Yield two groups of one report against each other, over their failed traces.

    Args:
        given: The input of the report.
        names: The names of both groups.
        groups: What was counted of each group, by its name.

    Raises:
        KeyError: A name is no group's.
    """
    first, second = (_failed(given, name) for name in names)
    yield from _means(given, names, groups)
    scopes = [FigureScope("comparison", given.taxonomy_ref, "", m.code, names) for m in given.modes]
    compared = differences(first, second, SIDES, scopes)
    for i, mode in enumerate(given.modes):
        for name, side, counts in zip(names, SIDES, (first, second), strict=True):
            sources = Sources(
                "signatures", (mode.slug,), group=name, where=(("outcome", "failed"),)
            )
            yield counts.rate(i, replace(scopes[i], sources=sources), side)
        yield from compared[i]


def _failed(given: SignatureInput, name: str) -> Counts:
    here = given.group == given.group_names.index(name)
    here &= given.outcome == FAILED
    return Counts.of(given.verdicts[here], given.weights_of(here))


def _means(
    given: SignatureInput, names: tuple[str, str], groups: Mapping[str, GroupFigures]
) -> Iterator[Figure]:
    """Yield the modes per failed trace of both groups, and the first less the second."""
    scope = FigureScope("comparison", given.taxonomy_ref, subject=names)
    statistic = "modes_per_failed_trace"
    sides = [groups[name] for name in names]
    p, q = (one.per_failed.value for one in sides)
    yield scope.number(statistic, p, condition="first")
    yield scope.number(statistic, q, condition="second")
    value = None if p is None or q is None else p - q
    withheld = next(
        ((one.per_failed.reason, one.per_failed.needs) for one in sides if one.withholds), None
    )
    fewest = min(one.failed for one in sides)
    if withheld is None and 0 < fewest < LEAST_OF_DIFFERENCE:
        withheld = ("few_traces", LEAST_OF_DIFFERENCE)
    reason, needs = withheld or ("", None)
    ends = None
    resampled = [one.resampled for one in sides]
    if not withheld and value is not None and all(map(len, resampled)):
        apart = resampled[0] - resampled[1]
        apart = apart[~np.isnan(apart)]
        if len(apart):
            quantiles = np.quantile(apart, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
            ends = [float(end) for end in quantiles]
    yield scope.figure(
        statistic, value, condition="difference", interval=ends, reason=reason, needs=needs
    )


def paired_groups(given: SignatureInput, first: str, second: str) -> list[Figure]:
    """Compare two groups of a report, such as two versions, over the tasks that both did.

    Each side counts with one run of a task, the first by trace id, whatever was judged on it.
    ``runs`` are how many runs of known tasks either side has; ``no_task`` traces name no task,
    ``repeated`` traces are further runs of a task by the same side, and ``unpaired`` tasks were not
    done by the other one. Whether the run failed is over the tasks where both outcomes are known.

    Args:
        given: The input of a report.
        first: A group's name.
        second: Another group's name.

    Returns:
        The figures; none where no task is known that both did.
    """
    task = given.task
    if task is None:
        return []
    sides = [given.group == given.group_names.index(name) for name in (first, second)]
    firsts = [_first_runs(given, task, side) for side in sides]
    tasks, *rows = np.intersect1d(
        task[firsts[0]],
        task[firsts[1]],
        assume_unique=True,
        return_indices=True,
    )
    if not len(tasks):
        return []
    runs = [mine[row] for mine, row in zip(firsts, rows, strict=True)]
    verdicts = [given.verdicts[one] for one in runs]
    outcomes = [given.outcome[one] for one in runs]
    both_known = (outcomes[0] != UNKNOWN) & (outcomes[1] != UNKNOWN)
    judged = [(one == PRESENT) | (one == ABSENT) for one in verdicts]
    scope = FigureScope("paired", given.taxonomy_ref, subject=(first, second))
    figures = [scope.number("tasks", len(tasks))]
    for condition, side, mine in zip(SIDES, sides, firsts, strict=True):
        known = int((side & (task >= 0)).sum())
        counts = {
            "runs": known,
            "no_task": int((side & (task < 0)).sum()),
            "repeated": known - len(mine),
            "unpaired": len(mine) - len(tasks),
        }
        figures += [scope.number(key, n, condition=condition) for key, n in counts.items()]
    of_outcome = replace(scope, name="paired_outcome")
    figures += _counts(of_outcome, outcomes[0] == FAILED, outcomes[1] == FAILED, both_known)
    by_mode = [
        _counts(
            replace(scope, mode=mode.code),
            verdicts[0][:, i] == PRESENT,
            verdicts[1][:, i] == PRESENT,
            judged[0][:, i] & judged[1][:, i],
            _doubts(verdicts[0][:, i], verdicts[1][:, i]),
        )
        for i, mode in enumerate(given.modes)
    ]
    # The p-value is the last of the figures of a mode.
    adjusted = benjamini_hochberg([of_mode[-1].value for of_mode in by_mode])
    for of_mode, p in zip(by_mode, adjusted, strict=True):
        missing = of_mode[-1]
        figures += of_mode
        figures.append(replace(missing, statistic="p_adjusted", value=p))
    return figures


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
    scope: FigureScope,
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
    known: NDArray[np.bool_],
    doubts: tuple[Doubt, Doubt] | None = None,
) -> list[Figure]:
    """Return the figures of one thing that shows in a run or does not, over pairs of runs.

    The difference of both shares has Newcombe's paired interval, the p-value is McNemar's.
    """
    cells = [
        int((one & other & known).sum())
        for one, other in ((first, second), (first, ~second), (~first, second), (~first, ~second))
    ]
    both, only_first, only_second, neither = cells
    n = sum(cells)
    ends = newcombe_paired(*cells)
    of_first, of_second = doubts or (None, None)
    unresolved = 0 if of_first is None else of_first.unresolved
    needs = to_resolve(unresolved, n) if unresolved else 0
    reason = "" if n else "no_pairs"
    least: int | None = None
    if n and needs:
        reason = "unresolved"
        least = needs
    elif n and n < LEAST_OF_DIFFERENCE:
        reason = "few_traces"
        least = LEAST_OF_DIFFERENCE
    difference = scope.figure(
        "difference",
        (only_first - only_second) / n if n else None,
        interval=None if reason else ends,
        n=n,
        reason=reason,
        needs=least,
    )
    counts = {"both": both, "only_first": only_first, "only_second": only_second}
    return [
        rate(scope, "first", both + only_first, n, doubt=of_first),
        rate(scope, "second", both + only_second, n, doubt=of_second),
        *(scope.number(name, count, n=n) for name, count in counts.items()),
        scope.number("neither", neither, n=n),
        replace(difference, unresolved=unresolved or None),
        scope.number(
            "p_value",
            mcnemar(only_first, only_second) if n else None,
            n=n,
            reason="" if n else "no_pairs",
        ),
    ]
