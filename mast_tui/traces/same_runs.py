"""A search for traces of the same run in two files or formats, by the agents' texts.

Tasks and results of tools are not compared, because many runs of a benchmark share them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Final

from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Role, Trace

LEAST_SHARED: Final = 3
"""The fewest texts that two traces must share."""

SHARE: Final = 0.8
"""The least share of common texts, of the texts of the trace with fewer texts."""

_TASK_CHARS: Final = 120
_TEXT_CHARS: Final = 40
_MOST_OF_ONE_TASK: Final = 20
_MOST_TRACES: Final = 400
_MOST_BYTES: Final = 64 << 20


def same_runs(traces: Iterable[Trace]) -> Mapping[str, tuple[str, ...]]:
    """Find traces that are the same run as another trace.

    Only traces of one task from different files are compared, up to limits of number and size.

    Args:
        traces: All traces; copies of them are read and dropped.

    Returns:
        The ids of the other traces of the same run, by trace id.
    """
    groups = _groups_by_task(traces)
    # Copy all traces before the first is read, so that traces of one file share one reading.
    copies = {id(trace): trace.anew() for group in groups for trace in group}
    texts = {object_id: _agent_texts(trace) for object_id, trace in copies.items()}
    same_ids: dict[str, list[str]] = {}
    for group in groups:
        for first, second in combinations(group, 2):
            if first.path != second.path and _are_same(texts[id(first)], texts[id(second)]):
                first_id = first.identity.trace_id
                second_id = second.identity.trace_id
                same_ids.setdefault(first_id, []).append(second_id)
                same_ids.setdefault(second_id, []).append(first_id)
    return {trace_id: tuple(ids) for trace_id, ids in same_ids.items()}


def _groups_by_task(traces: Iterable[Trace]) -> Sequence[Sequence[Trace]]:
    """Return groups of traces with one task from at least two files, up to the limits."""
    by_task: dict[str, list[Trace]] = {}
    for trace in traces:
        task = _letters_and_digits(trace.summary.task or "")[:_TASK_CHARS]
        if task:
            by_task.setdefault(task, []).append(trace)
    groups: list[list[Trace]] = []
    trace_count = 0
    byte_count = 0
    for group in by_task.values():
        if len(group) > _MOST_OF_ONE_TASK or len({trace.path for trace in group}) < 2:
            continue
        trace_count += len(group)
        byte_count += sum(trace.summary.total for trace in group)
        if trace_count > _MOST_TRACES or byte_count > _MOST_BYTES:
            break
        groups.append(group)
    return groups


def _agent_texts(trace: Trace) -> frozenset[str]:
    """Return the letters and digits of each long text of the agents."""
    read_fully(trace)
    texts = set()
    for index in range(len(trace)):
        if trace.span(index).role is Role.AGENT:
            try:
                text = _letters_and_digits(trace.text(index))
            except OSError:
                continue
            if len(text) >= _TEXT_CHARS:
                texts.add(text)
    return frozenset(texts)


def _letters_and_digits(text: str) -> str:
    """Return the letters and digits of a text in small letters, which all formats share."""
    return "".join(filter(str.isalnum, text.casefold()))


def _are_same(texts_a: frozenset[str], texts_b: frozenset[str]) -> bool:
    shared_count = len(texts_a & texts_b)
    least_count = max(LEAST_SHARED, SHARE * min(len(texts_a), len(texts_b)))
    return shared_count >= least_count
