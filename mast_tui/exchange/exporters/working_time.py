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
"""The longest pause in minutes that counts as work; a longer pause is left out completely."""

_MIGRATED: Final = f"{IMPORT_PREFIX}{MIGRATION}:"
"""The prefix of actions of migrations, whose events keep their original times."""

PassKey = tuple[str, str, int]
"""Annotator, trace id and number of a pass."""

_Moments = dict[PassKey, list[tuple[str, bool]]]


def minutes_worked(workspace: Workspace, taxonomy: Taxonomy) -> Mapping[PassKey, float]:
    """Return the minutes from the first event to the finish of each pass, without long pauses.

    Passes of judges and passes with only a finish are left out. So are passes with imported events,
    because these have the time of the import.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
    """
    columns = ("annotator", "trace_id", "pass_number", "at", "kind", "action")
    imported = set[PassKey]()

    def read_moments(rows: Iterator[tuple[Any, ...]]) -> _Moments:
        """Return the moments of each pass, and add passes with imported events to ``imported``."""
        moments: _Moments = defaultdict(list)
        for annotator, trace_id, number, time, kind, action in rows:
            if trace_id is None or number is None:
                continue
            key = (annotator, trace_id, number)
            moments[key].append((time, kind == KIND_OF[PassFinished]))
            # A migration to another version of the taxonomy keeps the times of events.
            if action.startswith(IMPORT_PREFIX) and not action.startswith(_MIGRATED):
                imported.add(key)
        return moments

    moments = workspace.read_columns(
        "events", columns, read_moments, equal_to={"taxonomy": taxonomy.ref}
    )
    minutes_by_pass = {}
    for key, times in moments.items():
        annotator, _, _ = key
        if key in imported or not annotator_kind(annotator).is_person:
            continue
        minutes = _minutes_until_finish(times)
        if minutes is not None:
            minutes_by_pass[key] = minutes
    return minutes_by_pass


def _minutes_until_finish(moments: Iterable[tuple[str, bool]]) -> float | None:
    """Return the minutes of work up to the last finish, from times that may be finishes.

    Each moment is a time, and True if the event is a finish. Returns None if there is no finish, or
    no event before it.
    """
    times = sorted((datetime.fromisoformat(time), is_finish) for time, is_finish in moments)
    finish_indices = [index for index, (_, is_finish) in enumerate(times) if is_finish]
    if not finish_indices or finish_indices[-1] == 0:
        return None
    work_times = [time for time, _ in times[: finish_indices[-1] + 1]]
    gaps = ((end - start).total_seconds() / 60 for start, end in pairwise(work_times))
    return sum(gap for gap in gaps if gap <= LONGEST_PAUSE)


def minutes_summary(minutes: Iterable[tuple[str, float]]) -> dict[str, Any]:
    """Return the median over traces and their number by annotator, with the longest pause."""
    minutes_by_annotator: dict[str, list[float]] = defaultdict(list)
    for name, trace_minutes in minutes:
        minutes_by_annotator[name].append(trace_minutes)
    return {
        "longest_pause": LONGEST_PAUSE,
        "annotators": {
            name: {"n": len(own_minutes), "median": round(median(own_minutes), 2)}
            for name, own_minutes in sorted(minutes_by_annotator.items())
        },
    }
