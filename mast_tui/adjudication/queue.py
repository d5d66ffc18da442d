"""The queue of conflicts that an adjudicator may see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from mast_tui.adjudication.conflicts import ConflictGroup, cases_of, conflict_groups
from mast_tui.adjudication.sides import TraceSides, read_work_by_trace
from mast_tui.adjudication.trace_files import OrderOf
from mast_tui.gold import Conflict, ConflictKind, GoldTrace, Order, no_orders
from mast_tui.labels import Pass, PassKind
from mast_tui.session.progress import by_trace, retest_open, retests_of
from mast_tui.session.visibility import record_reveal
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace.events.model import NewEvent
from mast_tui.workspace.events.types import PassStarted
from mast_tui.workspace.store import Workspace


class Access(StrEnum):
    """The access of an adjudicator to others' answers on a trace.

    - ``hidden``: the adjudicator has not labelled the trace, but can take it on.
    - ``again``: the study plans a retest by the adjudicator, which is cancelled by taking the trace
      on.
    - ``unfinished``: the adjudicator has begun to label the trace and must finish that first.
    """

    OPEN = "open"
    HIDDEN = "hidden"
    AGAIN = "again"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """One trace that several annotators have finished.

    ``trace_sides`` are the answers and decisions, ``gold`` is the gold that follows. Both are None
    unless ``access`` is open.
    """

    trace_id: str
    sides: tuple[str, ...]
    access: Access
    trace_sides: TraceSides | None = None
    gold: GoldTrace | None = None


def queue(
    workspace: Workspace,
    taxonomy: Taxonomy,
    adjudicator: str,
    *,
    order_of: OrderOf = no_orders,
) -> tuple[QueueEntry, ...]:
    """Return the traces that several annotators have finished, also those without conflicts.

    Traces with most disagreement come first, then those with most decided cases with a changed
    answer. Traces that the adjudicator may not see come last. The answers on all visible traces are
    recorded as shown, so that the adjudicator can no longer undo finishing these traces.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        adjudicator: The adjudicator's name.
        order_of: Returns the order of a trace's spans by the trace's id.
    """
    accesses = accesses_of(workspace, taxonomy, adjudicator)
    entries = []
    for trace_id, trace_sides in read_work_by_trace(workspace, taxonomy).items():
        if len(trace_sides.sides) < 2:
            continue
        names = tuple(side.annotator for side in trace_sides.sides)
        entry = QueueEntry(trace_id, names, accesses.get(trace_id, Access.HIDDEN))
        if entry.access is Access.OPEN:
            gold = trace_sides.gold(taxonomy, order_of(trace_id))
            entry = replace(entry, trace_sides=trace_sides, gold=gold)
        entries.append(entry)
    open_ids = sorted(entry.trace_id for entry in entries if entry.access is Access.OPEN)
    record_reveal(workspace, adjudicator, taxonomy.ref, open_ids)
    # Entries with equal ranks stay sorted by trace id.
    return tuple(sorted(entries, key=lambda entry: _rank(entry, order_of(entry.trace_id))))


def _rank(entry: QueueEntry, order: Order) -> tuple[bool, float, int]:
    """Return the sort key of a trace; the trace with the lowest key comes first."""
    if entry.trace_sides is None or entry.gold is None:  # a hidden trace
        return True, 0, 0
    changed_count = sum(
        case.has_changed(entry.trace_sides.sides, order)
        for case in cases_of(entry.gold.conflicts, entry.trace_sides.decisions)
    )
    return False, -trace_disagreement(entry.gold.conflicts), -changed_count


def accesses_of(workspace: Workspace, taxonomy: Taxonomy, adjudicator: str) -> dict[str, Access]:
    """Return an adjudicator's access to each trace with a pass of theirs; others are hidden.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        adjudicator: The adjudicator's name.
    """
    passes_by_trace = by_trace(workspace.passes(annotator=adjudicator, taxonomy=taxonomy.ref))
    retests = retests_of(workspace.study(taxonomy.ref), adjudicator, passes_by_trace)
    return {
        trace_id: _access_from_passes(
            workspace, passes, retest_planned=trace_id in retests.protected
        )
        for trace_id, passes in passes_by_trace.items()
    }


def access_to(workspace: Workspace, taxonomy: Taxonomy, adjudicator: str, trace_id: str) -> Access:
    """Return an adjudicator's access to one trace.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        adjudicator: The adjudicator's name.
        trace_id: The trace's id.
    """
    passes = workspace.passes(trace_id=trace_id, annotator=adjudicator, taxonomy=taxonomy.ref)
    study = workspace.study(taxonomy.ref)
    if study is not None and study.retests:
        # Planned retests depend on the passes on all traces.
        return accesses_of(workspace, taxonomy, adjudicator).get(trace_id, Access.HIDDEN)
    return _access_from_passes(workspace, passes, retest_planned=False)


def _access_from_passes(
    workspace: Workspace, passes: Sequence[Pass], *, retest_planned: bool
) -> Access:
    """Return the access that follows from an adjudicator's passes on a trace.

    In a retest the adjudicator labels the trace a second time.
    """
    # A retest that began under an earlier study must still be finished.
    if retest_open(passes):
        return Access.UNFINISHED
    if any(trace_pass.kind is PassKind.ADJUDICATION for trace_pass in passes):
        return Access.OPEN
    if any(trace_pass.finished for trace_pass in passes):
        return Access.AGAIN if retest_planned else Access.OPEN
    has_begun = any(_has_content(workspace, trace_pass) for trace_pass in passes)
    return Access.UNFINISHED if has_begun else Access.HIDDEN


def take_on(
    workspace: Workspace, taxonomy: Taxonomy, adjudicator: str, trace_ids: Iterable[str]
) -> tuple[str, ...]:
    """Begin an adjudication of each trace that the adjudicator has not labelled.

    After that the adjudicator sees others' answers on these traces. Traces with own unfinished work
    are left out.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        adjudicator: The adjudicator's name.
        trace_ids: The ids of the traces.

    Returns:
        The ids of the traces with a new adjudication.
    """
    accesses = accesses_of(workspace, taxonomy, adjudicator)
    accepted = [
        trace_id
        for trace_id in dict.fromkeys(trace_ids)
        if accesses.get(trace_id, Access.HIDDEN) in (Access.HIDDEN, Access.AGAIN)
    ]
    start = PassStarted(PassKind.ADJUDICATION)
    events = []
    for trace_id in accepted:
        number = next_pass_number(workspace, taxonomy, adjudicator, trace_id)
        events.append(NewEvent(adjudicator, trace_id, taxonomy.ref, number, start))
    if events:
        workspace.append(events)
    return tuple(accepted)


def take_on_as_study_says(
    workspace: Workspace, taxonomy: Taxonomy, adjudicator: str
) -> tuple[str, ...]:
    """Begin to adjudicate the study's traces that several annotators have finished.

    This is only for adjudicators who are no annotators of the study, since others' answers would
    spoil an annotator's own labels.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        adjudicator: The adjudicator's name.

    Returns:
        The ids of the traces with a new adjudication.
    """
    study = workspace.study(taxonomy.ref)
    if study is None or adjudicator not in study.adjudicators or adjudicator in study.annotators:
        return ()
    work_by_trace = read_work_by_trace(workspace, taxonomy)
    ready = [
        trace_id
        for trace_id in study.traces
        if trace_id in work_by_trace and len(work_by_trace[trace_id].sides) > 1
    ]
    return take_on(workspace, taxonomy, adjudicator, ready)


def conflicts_by_trace(
    workspace: Workspace,
    taxonomy: Taxonomy,
    *,
    annotators: Collection[str] | None = None,
    order_of: OrderOf = no_orders,
) -> dict[str, tuple[ConflictGroup, ...]]:
    """Return the open conflicts on each trace that several annotators have finished, by trace id.

    Nothing is recorded as shown, so callers must not show the answers to annotators.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        annotators: The names of the annotators to compare; None for all people.
        order_of: Returns the order of a trace's spans by the trace's id.
    """
    work_by_trace = read_work_by_trace(workspace, taxonomy, annotators=annotators)
    return {
        trace_id: conflict_groups(trace_sides.gold(taxonomy, order_of(trace_id)).conflicts)
        for trace_id, trace_sides in work_by_trace.items()
        if len(trace_sides.sides) > 1
    }


def next_pass_number(
    workspace: Workspace, taxonomy: Taxonomy, adjudicator: str, trace_id: str
) -> int:
    """Return the number of the adjudicator's next pass on a trace.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        adjudicator: The adjudicator's name.
        trace_id: The trace's id.
    """
    events = workspace.events(trace_id=trace_id, annotator=adjudicator, taxonomy=taxonomy.ref)
    return max((event.pass_number or 0 for event in events), default=0) + 1


def _has_content(workspace: Workspace, trace_pass: Pass) -> bool:
    """Return whether a pass has a label, a verdict, an answer to a suggestion, or a note."""
    filters = {
        "trace_id": trace_pass.trace_id,
        "annotator": trace_pass.annotator,
        "taxonomy": trace_pass.taxonomy,
    }
    return bool(
        workspace.labels(**filters, pass_number=trace_pass.number)
        or workspace.verdicts(**filters, pass_number=trace_pass.number)
        or workspace.reviews(**filters, pass_number=trace_pass.number)
        or workspace.span_notes(**filters, pass_number=trace_pass.number)
    )


def disagreement(group: ConflictGroup) -> float:
    """Return the disagreement of the sides of a conflict, from 0 to 1.

    This is twice the share of the sides outside the largest group of equal answers, at most 1: for
    one against one 1, one against two 0.67, one against three 0.5.
    """
    is_verdict = group.kind is ConflictKind.VERDICT
    answer_counts: Counter[object] = Counter(
        answer.value if is_verdict else frozenset(answer.targets) for answer in group.answers
    )
    largest_count = max(answer_counts.values(), default=0)
    side_count = answer_counts.total()
    return min(1.0, 2 * (side_count - largest_count) / side_count) if side_count else 0.0


def trace_disagreement(conflicts: Iterable[Conflict]) -> float:
    """Return the disagreement over a trace, summed over its groups of conflicts."""
    return sum(disagreement(group) for group in conflict_groups(conflicts))
