"""The working time on a trace, with and without suggestions, and the effect of suggestions.

The working time is computed from the times of a person's events on the trace. A study may hide
suggestions on a random share of each annotator's traces. Differences between these traces and the
others are then due to the suggestions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np

from mast_tui.figures.bootstrap import Floats, ratio
from mast_tui.figures.intervals import student_t
from mast_tui.figures.judge.confusion import DEFINITE
from mast_tui.figures.judge.input import AssistedPass
from mast_tui.figures.record import Figure, estimate_json
from mast_tui.grouping import values_by_key
from mast_tui.labels import VerdictValue, annotator_kind
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.workspace import Workspace
from mast_tui.workspace.events.model import IMPORT_PREFIX
from mast_tui.workspace.events.types import KIND_OF, PassFinished
from mast_tui.workspace.registers.imports import MIGRATION

LONGEST_PAUSE: Final = 5
"""The longest pause, in minutes, that counts as work; a longer one does not count at all."""

_MIGRATED: Final = f"{IMPORT_PREFIX}{MIGRATION}:"
"""The prefix of actions of migrations; their events keep their original times."""

PassKey = tuple[str, str, int]
"""The annotator, trace id and number of a pass."""


class _Event(NamedTuple):
    """An event of a pass: its time, and whether it is a finish or was imported."""

    time: str
    is_finish: bool
    is_imported: bool


def minutes_worked(workspace: Workspace, taxonomy: Taxonomy) -> Mapping[PassKey, float]:
    """Return the minutes that people worked on each pass.

    They run from the first event of the pass to its finish, without long pauses. Passes with
    imported events are left out, because these have the time of the import.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
    """
    columns = ("annotator", "trace_id", "pass_number", "at", "kind", "action")

    def events_by_pass(rows: Iterator[tuple[Any, ...]]) -> dict[PassKey, list[_Event]]:
        return values_by_key(
            (
                (annotator, trace_id, number),
                _Event(time, kind == KIND_OF[PassFinished], _is_imported(action)),
            )
            for annotator, trace_id, number, time, kind, action in rows
            if trace_id is not None and number is not None
        )

    minutes_by_pass = {
        key: _minutes_until_finish(events)
        for key, events in workspace.read_columns(
            "events", columns, events_by_pass, equal_to={"taxonomy": taxonomy.ref}
        ).items()
        if annotator_kind(key[0]).is_person
    }
    return {key: minutes for key, minutes in minutes_by_pass.items() if minutes is not None}


def _is_imported(action: str) -> bool:
    """Return whether an action was an import, whose events have the time of the import."""
    return action.startswith(IMPORT_PREFIX) and not action.startswith(_MIGRATED)


def _minutes_until_finish(events: Sequence[_Event]) -> float | None:
    """Return the minutes of work up to the last finish of a pass, without long pauses.

    The result is None without a finish, without an event before it, or with an imported event.
    """
    moments = sorted((datetime.fromisoformat(event.time), event.is_finish) for event in events)
    finishes = [index for index, (_, is_finish) in enumerate(moments) if is_finish]
    if not finishes or finishes[-1] == 0 or any(event.is_imported for event in events):
        return None
    times = [time for time, _ in moments[: finishes[-1] + 1]]
    gaps = ((end - start).total_seconds() / 60 for start, end in pairwise(times))
    return sum(gap for gap in gaps if gap <= LONGEST_PAUSE)


def minutes_summary(minutes: Iterable[tuple[str, float]]) -> dict[str, Any]:
    """Return the number of passes and the median minutes of each annotator, as a JSON object.

    ``minutes`` has the annotator and the minutes of each pass.
    """
    return {
        "longest_pause": LONGEST_PAUSE,
        "annotators": {
            name: {"n": len(own_minutes), "median": round(median(own_minutes), 2)}
            for name, own_minutes in sorted(values_by_key(minutes).items())
        },
    }


LEAST_TRACES: Final = 10
"""The fewest traces for an interval."""

Amount = tuple[float, float]
"""The number of units of a pass, and the sum of an amount over these units."""


def time_study(passes: Sequence[AssistedPass], modes: Sequence[Mode]) -> dict[str, Any]:
    """Compare passes with a judge's suggestions and passes without, for ``agree --time``.

    Differences are with suggestions minus without, over the annotators who worked both ways.

    Args:
        passes: The passes, with their minutes and the modes that a judge suggests.
        modes: The modes.

    Returns:
        The JSON document.
    """
    compared_annotators = {study_pass.annotator for study_pass in passes if study_pass.withheld} & {
        study_pass.annotator for study_pass in passes if not study_pass.withheld
    }
    compared_passes = [
        study_pass for study_pass in passes if study_pass.annotator in compared_annotators
    ]
    # One pass is one unit, without minutes none.
    minutes_difference = difference(
        compared_passes,
        lambda study_pass: (0, 0) if study_pass.minutes is None else (1, study_pass.minutes),
    )
    return {
        "annotators": sorted(compared_annotators),
        "shown": _condition_json([study_pass for study_pass in passes if not study_pass.withheld]),
        "withheld": _condition_json([study_pass for study_pass in passes if study_pass.withheld]),
        "minutes_difference": estimate_json(minutes_difference),
        "anchoring": _anchoring_json(compared_passes, [mode.slug for mode in modes]),
        "modes": {mode.code: _anchoring_json(compared_passes, [mode.slug]) for mode in modes},
    }


def _condition_json(passes: Sequence[AssistedPass]) -> dict[str, Any]:
    """Return the minutes per trace and per label of these passes, with intervals."""
    timed = [study_pass for study_pass in passes if study_pass.minutes is not None]
    minutes = [study_pass.minutes or 0.0 for study_pass in timed]
    traces = sorted({study_pass.trace_id for study_pass in timed})
    # Traces × (passes, minutes, labels).
    sums = np.zeros((len(traces), 3))
    for study_pass in timed:
        sums[traces.index(study_pass.trace_id)] += (
            1,
            study_pass.minutes or 0.0,
            sum(study_pass.labels.values()),
        )
    return {
        "passes": len(passes),
        "timed": len(timed),
        "traces": len({study_pass.trace_id for study_pass in passes}),
        "median_minutes": median(minutes) if minutes else None,
        "minutes_per_trace": estimate_json(
            _jackknifed(sums, lambda totals: ratio(totals[..., 1], totals[..., 0]))
        ),
        "minutes_per_label": estimate_json(
            _jackknifed(sums, lambda totals: ratio(totals[..., 1], totals[..., 2]))
        ),
    }


def _anchoring_json(passes: Sequence[AssistedPass], modes: Sequence[str]) -> dict[str, Any]:
    """Return how much more often annotators call these modes present if they see suggestions.

    ``suggested`` is over verdicts on modes that a judge suggests in the trace, ``other`` over all
    other verdicts. ``units`` and ``other_units`` are the numbers of these verdicts.
    """

    def _verdict_counts(assisted_pass: AssistedPass, *, on_suggested: bool) -> Amount:
        """Count the verdicts on suggested or on other modes, and how many of them are present."""
        if assisted_pass.suggested is None:
            return 0, 0
        verdicts = [
            assisted_pass.verdicts[mode]
            for mode in modes
            if (mode in assisted_pass.suggested) is on_suggested
            and assisted_pass.verdicts.get(mode) in DEFINITE
        ]
        return len(verdicts), verdicts.count(VerdictValue.PRESENT)

    suggested_amount = partial(_verdict_counts, on_suggested=True)
    other_amount = partial(_verdict_counts, on_suggested=False)
    return {
        "suggested": estimate_json(difference(passes, suggested_amount)),
        "units": int(sum(suggested_amount(assisted_pass)[0] for assisted_pass in passes)),
        "other": estimate_json(difference(passes, other_amount)),
        "other_units": int(sum(other_amount(assisted_pass)[0] for assisted_pass in passes)),
    }


def difference(passes: Sequence[AssistedPass], amount: Callable[[AssistedPass], Amount]) -> Figure:
    """Return the mean amount per unit with suggestions minus that without, with its interval.

    It is the weighted mean of the annotators' own differences, so that fast and slow annotators do
    not bias it. The weight of an annotator is m·n/(m + n), where m and n are the numbers of units
    with and without suggestions (Cochran 1954, Biometrics 10:417-451).

    Args:
        passes: The passes of annotators who worked both ways.
        amount: The number of units of a pass, and the sum of the amount over them.
    """
    names = sorted({study_pass.annotator for study_pass in passes})
    traces = sorted({study_pass.trace_id for study_pass in passes})
    row_by_trace = {trace_id: row for row, trace_id in enumerate(traces)}
    # Traces × annotators × (suggestions shown, withheld) × (units, sum of the amount).
    sums = np.zeros((len(traces), len(names), 2, 2))
    for study_pass in passes:
        cell = sums[
            row_by_trace[study_pass.trace_id],
            names.index(study_pass.annotator),
            int(study_pass.withheld),
        ]
        cell += amount(study_pass)

    def weighted_difference(totals: Floats) -> Floats:
        """Return the weighted mean of the annotators' differences, from sums over traces."""
        shown_units, shown_sums = np.moveaxis(totals[..., 0, :], -1, 0)
        withheld_units, withheld_sums = np.moveaxis(totals[..., 1, :], -1, 0)
        mean_differences = ratio(shown_sums, shown_units) - ratio(withheld_sums, withheld_units)
        # The weight of an annotator who worked in one way only is 0.
        weights = ratio(shown_units * withheld_units, shown_units + withheld_units, default=0.0)
        weighted = np.where(weights > 0, mean_differences, 0.0) * weights
        return ratio(weighted.sum(axis=-1), weights.sum(axis=-1))

    return _jackknifed(sums, weighted_difference)


def _jackknifed(sums: Floats, figure: Callable[[Floats], Floats]) -> Figure:
    """Return a figure with its interval by the jackknife over traces, with Student's t.

    ``sums`` has a row for each trace; ``figure`` computes the figure from their total.
    """
    value = float(figure(sums.sum(axis=0)))
    if np.isnan(value):
        return Figure(reason="no_overlap")
    # A trace without sums adds nothing to the precision.
    nonzero_sums = sums[sums.reshape(len(sums), -1).any(axis=1)]
    # The figure without each trace in turn.
    without_each = figure(nonzero_sums.sum(axis=0) - nonzero_sums)
    trace_count = len(nonzero_sums)
    if trace_count < LEAST_TRACES or bool(np.isnan(without_each).any()):
        return Figure(value=value, reason="few_traces", needs=LEAST_TRACES)
    standard_error = float(
        np.sqrt((trace_count - 1) / trace_count * ((without_each - without_each.mean()) ** 2).sum())
    )
    if standard_error == 0:
        return Figure(value=value, reason="rare_answer", needs=LEAST_TRACES)
    half_width = student_t(trace_count - 1) * standard_error
    return Figure(value=value, interval=(value - half_width, value + half_width))
