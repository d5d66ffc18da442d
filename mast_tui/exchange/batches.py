"""The batches of an import. Between them, annotators can save."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from time import monotonic
from typing import Final, TypeVar

from mast_tui.workspace import TraceRecord, Workspace
from mast_tui.writes import pause

EVENTS_AT_ONCE: Final = 12_000
"""Events in one transaction: somewhat less than a second of processor time. The work of one person
on one trace stays together, so there can be more."""

REGISTERED_AT_ONCE: Final = 6000
"""Traces in one transaction."""

_OTHERS_TURN: Final = 0.03
"""Seconds between two transactions. A waiting program tries every 10 ms."""

Item = TypeVar("Item")


def let_others_write(since: float | None = None) -> None:
    """Pause, so that other programs can write.

    Args:
        since: The start of the pause (``time.monotonic``); None for now.
    """
    seconds = _OTHERS_TURN if since is None else since + _OTHERS_TURN - monotonic()
    if seconds > 0:
        pause(seconds)


def batched(
    items: Iterable[Item], size: Callable[[Item], int], at_most: int
) -> Iterator[list[Item]]:
    """Yield lists of items up to a total size.

    An item above this size is alone in its list.

    Args:
        items: The items.
        size: Returns the size of an item.
        at_most: The largest total size of a list.
    """
    batch = list[Item]()
    total_size = 0
    for item in items:
        item_size = size(item)
        if batch and total_size + item_size > at_most:
            yield batch
            batch = []
            total_size = 0
        batch.append(item)
        total_size += item_size
    if batch:
        yield batch


def register_traces(
    records: Sequence[TraceRecord], register: Callable[[TraceRecord], str], workspace: Workspace
) -> dict[str, str]:
    """Register traces in batches, and return their ids in the workspace by their given ids.

    Args:
        records: The facts of the traces.
        register: Registers a trace that may be known, and returns its id in the workspace.
        workspace: The workspace.
    """
    local_ids = {record.trace_id: record.trace_id for record in records}
    for start in range(0, len(records), REGISTERED_AT_ONCE):
        if start:  # not before the first transaction
            let_others_write()
        with workspace.transaction():
            batch = records[start : start + REGISTERED_AT_ONCE]
            # Registering new traces together is faster than one by one.
            not_registered = workspace.register_unknown_traces(batch)
            for record in not_registered:
                local_ids[record.trace_id] = register(record)
    return local_ids
