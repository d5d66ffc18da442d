"""What the adjudicate screen lists: all traces that two or more have finished, read at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mast_tui.traces.model import Trace
from mast_tui.ui.adjudicate_items import TraceItems
from mast_tui.ui.traces_at_hand import TracesAtHand

if TYPE_CHECKING:
    from mast_tui.adjudication import QueueEntry
    from mast_tui.ui.desk import Desk


@dataclass(frozen=True, slots=True)
class Cases:
    """The queue, the items of each trace that one may see, and who has finished how many traces.

    ``at_hand`` finds the traces themselves; ``problem`` is why nothing could be read.
    """

    entries: tuple[QueueEntry, ...] = ()
    items: Mapping[str, TraceItems] = field(default_factory=dict)
    finished: Mapping[str, int] = field(default_factory=dict)
    at_hand: TracesAtHand | None = None
    problem: str | None = None


def read_cases(desk: Desk, traces: Sequence[Trace]) -> Cases:
    """Read the whole queue; ``traces`` are those open in the app.

    Slow where many traces have to be read, so for workers only.
    """
    from mast_tui.adjudication import Access, AdjudicationError, queue, words_by_trace
    from mast_tui.session import SessionError, status
    from mast_tui.workspace import WorkspaceError

    workspace, taxonomy = desk.workspace, desk.taxonomy
    try:
        at_hand = TracesAtHand(workspace, traces)
        entries = queue(workspace, taxonomy, desk.annotator, order_of=at_hand.order_of)
        words = words_by_trace(workspace, taxonomy)
        items = {}
        for entry in entries:
            if entry.access is Access.OPEN:
                said = words[entry.trace_id]
                gold = said.gold(taxonomy, at_hand.order_of(entry.trace_id))
                items[entry.trace_id] = TraceItems(
                    entry.trace_id,
                    said.sides,
                    gold,
                    said.decisions,
                    taxonomy,
                    at_hand.known_order(entry.trace_id),
                )
        finished = {one.name: one.finished for one in status(workspace, taxonomy).annotators}
    except (AdjudicationError, SessionError, WorkspaceError, ValueError) as error:
        return Cases(problem=str(error))
    return Cases(entries, items, finished, at_hand)
