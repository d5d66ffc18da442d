"""What the adjudicate screen lists: all traces that two or more have finished, read at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mast_tui.errors import MastError
from mast_tui.traces.model import Trace
from mast_tui.ui.adjudicate.items import TraceItems
from mast_tui.ui.services.trace_loader import TraceLoader

if TYPE_CHECKING:
    from mast_tui.adjudication import QueueEntry, TraceWords
    from mast_tui.study.model import Study
    from mast_tui.ui.services.open_workspace import OpenWorkspace


@dataclass(frozen=True, slots=True)
class Cases:
    """The queue, the items of each trace that one may see, and who has finished how many traces.

    ``entries`` are in the order of the queue. ``at_hand`` finds the traces themselves; ``study`` is
    the protocol, if any; ``problem`` is why nothing could be read.
    """

    entries: tuple[QueueEntry, ...] = ()
    items: Mapping[str, TraceItems] = field(default_factory=dict)
    finished: Mapping[str, int] = field(default_factory=dict)
    at_hand: TraceLoader | None = None
    study: Study | None = None
    problem: str | None = None


def read_cases(opened: OpenWorkspace, traces: Sequence[Trace]) -> Cases:
    """Read the whole queue; ``traces`` are those open in the app.

    What the study gives to this adjudicator is taken on first. Slow where many traces have to be
    read, so for workers only.
    """
    from mast_tui.adjudication import (
        Access,
        queue,
        take_on_as_study_says,
        words_by_trace,
    )
    from mast_tui.session import status

    workspace, taxonomy = opened.workspace, opened.taxonomy
    try:
        at_hand = TraceLoader(workspace, traces)
        study = workspace.study(taxonomy.ref)
        take_on_as_study_says(workspace, taxonomy, opened.annotator)
        entries = queue(workspace, taxonomy, opened.annotator, order_of=at_hand.order_of)
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
                    letters_of(said, study),
                )
        finished = {one.name: one.finished for one in status(workspace, taxonomy).annotators}
    except MastError as error:
        return Cases(problem=str(error))
    return Cases(entries, items, finished, at_hand, study)


def letters_of(said: TraceWords, study: Study | None) -> Mapping[str, str]:
    """The letters that stand for all who have a word on a trace, or had one in a decision."""
    from mast_tui.adjudication import letters

    names = {side.annotator for side in said.sides}
    names |= {side.annotator for decision in said.decisions for side in decision.said}
    return letters(said.trace_id, names, study.seed if study is not None else 0)
