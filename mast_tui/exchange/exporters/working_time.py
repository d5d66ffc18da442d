"""The working time of people on a trace, from the times of their events there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Any, Final

from mast_tui.labels import annotator_kind
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import Workspace
from mast_tui.workspace.events.model import IMPORT_PREFIX
from mast_tui.workspace.events.types import KIND_OF, PassFinished
from mast_tui.workspace.registers.imports import MIGRATION

LONGEST_PAUSE: Final = 5
"""So many minutes without an event may lie within the work; a longer pause is cut out whole."""

_MIGRATED: Final = f"{IMPORT_PREFIX}{MIGRATION}:"
"""So begin the actions of what came from another codebook, with the times that it had there."""

PassKey = tuple[str, str, int]
"""Annotator, trace id and number of a pass."""

_Moments = dict[PassKey, list[tuple[str, bool]]]


def minutes_worked(workspace: Workspace, taxonomy: Taxonomy) -> Mapping[PassKey, float]:
    """Return the minutes of each finished pass from its first event, without long pauses.

    Judges are left out, and passes of which an import made anything: its events say when the file
    was read. So are those with no event but the finish.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
    """
    columns = ("annotator", "trace_id", "pass_number", "at", "kind", "action")
    imported = set[PassKey]()

    def take(rows: Iterator[tuple[Any, ...]]) -> _Moments:
        moments: _Moments = defaultdict(list)
        for annotator, trace_id, number, time, kind, action in rows:
            if trace_id is None or number is None:
                continue
            key = (annotator, trace_id, number)
            moments[key].append((time, kind == KIND_OF[PassFinished]))
            if action.startswith(IMPORT_PREFIX) and not action.startswith(_MIGRATED):
                imported.add(key)
        return moments

    moments = workspace.read_columns("events", columns, take, equal_to={"taxonomy": taxonomy.ref})
    worked = {
        key: _minutes(times)
        for key, times in moments.items()
        if key not in imported and annotator_kind(key[0]).is_person
    }
    return {key: minutes for key, minutes in worked.items() if minutes is not None}


def _minutes(moments: Iterable[tuple[str, bool]]) -> float | None:
    """Return the minutes up to the last finish; None if there is no finish, or nothing else."""
    times = sorted((datetime.fromisoformat(time), finish) for time, finish in moments)
    finishes = [index for index, (_, finish) in enumerate(times) if finish]
    if not finishes or not finishes[-1]:
        return None
    until = [moment for moment, _ in times[: finishes[-1] + 1]]
    gaps = ((after - earlier).total_seconds() / 60 for earlier, after in pairwise(until))
    return sum(gap for gap in gaps if gap <= LONGEST_PAUSE)


def minutes_summary(minutes: Iterable[tuple[str, float]]) -> dict[str, Any]:
    """Return the median over traces and their number by annotator, with the longest pause."""
    by_name: dict[str, list[float]] = defaultdict(list)
    for name, minutes_of_trace in minutes:
        by_name[name].append(minutes_of_trace)
    return {
        "longest_pause": LONGEST_PAUSE,
        "annotators": {
            name: {"n": len(own_minutes), "median": round(median(own_minutes), 2)}
            for name, own_minutes in sorted(by_name.items())
        },
    }
