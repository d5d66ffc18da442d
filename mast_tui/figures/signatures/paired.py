"""Two models, or two groups, on the same tasks: mode by mode, task by task.

Where both did the same tasks their runs are pairs, and what is hard about a task weighs on both.

    given = input_from_workspace(workspace, taxonomy, gold=…)
    document["paired"] = paired_models(given, "gpt-oss-120b", "llama-4")
"""

from __future__ import annotations

from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from mast_tui.figures.intervals import newcombe_paired
from mast_tui.figures.signatures.model import (
    ABSENT,
    FAILED,
    PRESENT,
    UNKNOWN,
    Flags,
    SignatureInput,
    Whole,
)
from mast_tui.figures.signatures.rates import RateJson, rate
from mast_tui.figures.significance import benjamini_hochberg, mcnemar


class PairedCountsJson(TypedDict):
    """One thing that shows in a run or does not, over the ``n`` tasks where it is known of both.

    ``both``, ``only_first``, ``only_second`` and ``neither`` count these tasks. The difference is
    the first share less the second in points, with Newcombe's paired interval; ``p_value`` that of
    McNemar's exact test, ``p_adjusted`` corrected over the modes (Benjamini and Hochberg). Of no
    task they are null, and ``undefined`` is ``no_pairs``.
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

    That is the first by trace id, whatever was judged on it. ``by`` is ``model``, or what tells the
    groups apart; ``failed`` is whether the run failed, over the tasks where both outcomes are
    known.
    """

    by: str
    pair: list[str]
    tasks: int
    left_out: PairedLeftOutJson
    failed: PairedCountsJson
    modes: dict[str, PairedModeJson]


def paired_models(given: SignatureInput, first: str, second: str) -> PairedJson:
    """Compare two models over the tasks that both did.

    Args:
        given: The input of a report, whatever it is grouped by; with ``runs``.
        first: A model's name.
        second: Another model's name.

    Returns:
        The document.

    Raises:
        ValueError: There is no such model, both are one, or tasks were not read.
    """
    if given.runs is None:
        raise ValueError("which task each trace is a run of was not read")
    names = given.runs.model_names
    rows = [given.runs.model == _place(names, name, "model") for name in (first, second)]
    return _paired(given, "model", (first, second), rows)


def paired_groups(given: SignatureInput, first: str, second: str) -> PairedJson:
    """Compare two groups of a report, such as two versions, over the tasks that both did.

    Args:
        given: The input of a report, with ``runs``.
        first: A group's name.
        second: Another group's name.

    Returns:
        The document, as of ``paired_models``.

    Raises:
        ValueError: There is no such group, both are one, or tasks were not read.
    """
    rows = [given.group == _place(given.group_names, name, given.by) for name in (first, second)]
    return _paired(given, given.by, (first, second), rows)


def _place(names: tuple[str, ...], name: str, what: str) -> int:
    if name not in names:
        there = ", ".join(names) or "none"
        raise ValueError(f"no {what} {name!r} among these traces; there are: {there}")
    return names.index(name)


def _paired(
    given: SignatureInput, by: str, pair: tuple[str, str], sides: list[Flags]
) -> PairedJson:
    if pair[0] == pair[1]:
        raise ValueError(f"{pair[0]!r} cannot be compared with itself")
    if given.runs is None:
        raise ValueError("which task each trace is a run of was not read")
    firsts = [_first_runs(given, given.runs.task, side) for side in sides]
    tasks, *rows = np.intersect1d(
        given.runs.task[firsts[0]],
        given.runs.task[firsts[1]],
        assume_unique=True,
        return_indices=True,
    )
    runs = [mine[row] for mine, row in zip(firsts, rows, strict=True)]
    known = [side & (given.runs.task >= 0) for side in sides]
    verdicts = [given.verdicts[one] for one in runs]
    outcomes = [given.outcome[one] for one in runs]
    both_known = (outcomes[0] != UNKNOWN) & (outcomes[1] != UNKNOWN)
    judged = [(one == PRESENT) | (one == ABSENT) for one in verdicts]
    counted: list[PairedCountsJson] = [
        _counts(
            verdicts[0][:, i] == PRESENT,
            verdicts[1][:, i] == PRESENT,
            judged[0][:, i] & judged[1][:, i],
        )
        for i in range(len(given.modes))
    ]
    adjusted = benjamini_hochberg([one["p_value"] for one in counted])
    return {
        "by": by,
        "pair": list(pair),
        "tasks": len(tasks),
        "left_out": {
            "no_task": [int((side & (given.runs.task < 0)).sum()) for side in sides],
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


def _counts(
    first: NDArray[np.bool_], second: NDArray[np.bool_], known: NDArray[np.bool_]
) -> PairedCountsJson:
    cells = [
        int((one & other & known).sum())
        for one, other in ((first, second), (first, ~second), (~first, second), (~first, ~second))
    ]
    both, only_first, only_second, neither = cells
    n = sum(cells)
    ends = newcombe_paired(*cells)
    found: PairedCountsJson = {
        "n": n,
        "both": both,
        "only_first": only_first,
        "only_second": only_second,
        "neither": neither,
        "first": rate(both + only_first, n),
        "second": rate(both + only_second, n),
        "difference_pp": 100 * (only_first - only_second) / n if n else None,
        "difference_ci_pp": None if ends is None else [100 * end for end in ends],
        "p_value": mcnemar(only_first, only_second) if n else None,
    }
    if not n:
        found["undefined"] = "no_pairs"
    return found
