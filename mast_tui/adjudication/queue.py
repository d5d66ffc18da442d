"""The open conflicts of a workspace, as far as an adjudicator may know them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from mast_tui.adjudication.conflict_groups import ConflictGroup, conflict_groups, disputes
from mast_tui.adjudication.sides import TraceWords, words_by_trace
from mast_tui.adjudication.trace_files import OrderOf
from mast_tui.gold import Conflict, ConflictKind, GoldTrace, no_orders
from mast_tui.labels import Pass, PassKind
from mast_tui.session.retests import by_trace, retest_open, retests_of
from mast_tui.session.visibility import record_reveal
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace.events.model import NewEvent
from mast_tui.workspace.events.types import PassStarted
from mast_tui.workspace.store import Workspace


class Access(StrEnum):
    """The access of an adjudicator to the answers of others on a trace.

    ``hidden`` ones can be taken on as adjudicator, as can those that a study lets come back to be
    labelled once more (``again``), which then do not; one's own open reading (``unfinished``) has
    to be finished first.
    """

    OPEN = "open"
    HIDDEN = "hidden"
    AGAIN = "again"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """One trace that two or more have finished.

    ``words`` is what was said there, and ``gold`` what follows; None unless ``access`` is open.
    """

    trace_id: str
    sides: tuple[str, ...]
    access: Access
    words: TraceWords | None = None
    gold: GoldTrace | None = None


def queue(
    workspace: Workspace,
    taxonomy: Taxonomy,
    adjudicator: str,
    *,
    order_of: OrderOf = no_orders,
) -> tuple[QueueEntry, ...]:
    """Return the traces on which annotators can differ, those without conflicts too.

    Most disagreement first, then most decisions whose sides have changed, then by trace id; what
    one may not see yet comes last.

    What others said is in it, so it is recorded as shown: from then on the adjudicator's own finish
    of these traces cannot be undone.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        adjudicator: The adjudicator's name.
        order_of: Returns the order of a trace's spans by the trace's id.
    """
    accesses = accesses_of(workspace, taxonomy, adjudicator)
    open_ones: list[tuple[float, int, QueueEntry]] = []
    hidden = []
    for trace_id, trace_sides in words_by_trace(workspace, taxonomy).items():
        if len(trace_sides.sides) < 2:
            continue
        names = tuple(side.annotator for side in trace_sides.sides)
        access = accesses.get(trace_id, Access.HIDDEN)
        if access is not Access.OPEN:
            hidden.append(QueueEntry(trace_id, names, access))
            continue
        order = order_of(trace_id)
        gold = trace_sides.gold(taxonomy, order)
        rows = disputes(gold.conflicts, trace_sides.decisions)
        changed = sum(row.has_changed(trace_sides.sides, order) for row in rows)
        entry = QueueEntry(trace_id, names, access, trace_sides, gold)
        open_ones.append((trace_disagreement(gold.conflicts), changed, entry))
    record_reveal(workspace, adjudicator, taxonomy.ref, [entry.trace_id for *_, entry in open_ones])
    open_ones.sort(key=lambda entry: (-entry[0], -entry[1]))  # they come by trace id
    return (*(entry for *_, entry in open_ones), *hidden)


def accesses_of(workspace: Workspace, taxonomy: Taxonomy, adjudicator: str) -> dict[str, Access]:
    """Return an annotator's access to each trace on which they have a pass.

    Other traces are hidden.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        adjudicator: The adjudicator's name.
    """
    passes_by_trace = by_trace(workspace.passes(annotator=adjudicator, taxonomy=taxonomy.ref))
    retests = retests_of(workspace.study(taxonomy.ref), adjudicator, passes_by_trace)
    return {
        trace_id: _access(
            passes, begun=trace_id in retests.begun, retest=trace_id in retests.protected
        )
        for trace_id, passes in passes_by_trace.items()
    }


def access_to(workspace: Workspace, taxonomy: Taxonomy, adjudicator: str, trace_id: str) -> Access:
    """Return the access to one trace, as ``accesses_of`` without a look at all other traces.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        adjudicator: The adjudicator's name.
        trace_id: The trace's id.
    """
    passes = workspace.passes(trace_id=trace_id, annotator=adjudicator, taxonomy=taxonomy.ref)
    study = workspace.study(taxonomy.ref)
    if study is not None and study.retests:
        return accesses_of(workspace, taxonomy, adjudicator).get(trace_id, Access.HIDDEN)
    return _access(passes, begun=retest_open(passes), retest=False)


def _access(passes: Iterable[Pass], *, begun: bool, retest: bool) -> Access:
    """With ``begun`` they are labelling the trace once more, with ``retest`` they will."""
    if begun:
        return Access.UNFINISHED
    passes = tuple(passes)
    if any(trace_pass.kind is PassKind.ADJUDICATION for trace_pass in passes):
        return Access.OPEN
    if not any(trace_pass.finished for trace_pass in passes):
        return Access.UNFINISHED if passes else Access.HIDDEN
    return Access.AGAIN if retest else Access.OPEN


def take_on(
    workspace: Workspace, taxonomy: Taxonomy, adjudicator: str, trace_ids: Iterable[str]
) -> tuple[str, ...]:
    """Take on traces as adjudicator that one has not read oneself, and return which these are.

    From then on the adjudicator sees what others said about them, and a reading of their own is a
    second look. Traces that they have begun to label are left alone; a reading in which nothing was
    said yet ends unfinished.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        adjudicator: The adjudicator's name.
        trace_ids: The ids of the traces.
    """
    passes_by_trace = by_trace(workspace.passes(annotator=adjudicator, taxonomy=taxonomy.ref))
    accesses = accesses_of(workspace, taxonomy, adjudicator)

    def is_available(trace_id: str) -> bool:
        access = accesses.get(trace_id, Access.HIDDEN)
        if access is Access.UNFINISHED:
            passes = passes_by_trace.get(trace_id, ())
            return not any(
                trace_pass.finished or _has_words(workspace, trace_pass) for trace_pass in passes
            )
        return access is not Access.OPEN

    accepted = [trace_id for trace_id in dict.fromkeys(trace_ids) if is_available(trace_id)]
    start = PassStarted(PassKind.ADJUDICATION)
    events = [
        NewEvent(adjudicator, trace_id, taxonomy.ref, number, start)
        for trace_id in accepted
        for number in [next_pass_number(workspace, taxonomy, adjudicator, trace_id)]
    ]
    if events:
        workspace.append(events)
    return tuple(accepted)


def take_on_as_study_says(
    workspace: Workspace, taxonomy: Taxonomy, adjudicator: str
) -> tuple[str, ...]:
    """Take on what the study gives to this adjudicator, and return which traces these are.

    Only where the study names them an adjudicator and not an annotator as well: then there is no
    reading of their own that it could spoil. Of its traces these are the ones that two or more
    have finished.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        adjudicator: The adjudicator's name.
    """
    study = workspace.study(taxonomy.ref)
    if study is None or adjudicator not in study.adjudicators or adjudicator in study.annotators:
        return ()
    sides_by_trace = words_by_trace(workspace, taxonomy)
    ready = [
        trace_id
        for trace_id in study.traces
        if trace_id in sides_by_trace and len(sides_by_trace[trace_id].sides) > 1
    ]
    return take_on(workspace, taxonomy, adjudicator, ready)


def conflicts_by_trace(
    workspace: Workspace,
    taxonomy: Taxonomy,
    *,
    annotators: Collection[str] | None = None,
    order_of: OrderOf = no_orders,
) -> dict[str, tuple[ConflictGroup, ...]]:
    """Return what is left to decide on each trace that two or more have finished, by trace id.

    All disputed places of a mode are one entry, as they are decided in one step.
    Nothing is recorded, so this is for what shows nobody's words to anybody still reading; screens
    use ``queue``.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        annotators: The names of the sides, None for all people.
        order_of: Returns the order of a trace's spans by the trace's id.
    """
    sides_by_trace = words_by_trace(workspace, taxonomy, annotators=annotators)
    return {
        trace_id: conflict_groups(trace_sides.gold(taxonomy, order_of(trace_id)).conflicts)
        for trace_id, trace_sides in sides_by_trace.items()
        if len(trace_sides.sides) > 1
    }


def next_pass_number(
    workspace: Workspace, taxonomy: Taxonomy, adjudicator: str, trace_id: str
) -> int:
    """Return the first number that no pass of an annotator ever had.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        adjudicator: The adjudicator's name.
        trace_id: The trace's id.
    """
    events = workspace.events(trace_id=trace_id, annotator=adjudicator, taxonomy=taxonomy.ref)
    return max((event.pass_number or 0 for event in events), default=0) + 1


def _has_words(workspace: Workspace, trace_pass: Pass) -> bool:
    """Return whether a pass has a label, a verdict, an answer or a note."""
    where = {
        "trace_id": trace_pass.trace_id,
        "annotator": trace_pass.annotator,
        "taxonomy": trace_pass.taxonomy,
    }
    return bool(
        workspace.labels(**where, pass_number=trace_pass.number)
        or workspace.verdicts(**where, pass_number=trace_pass.number)
        or workspace.reviews(**where, pass_number=trace_pass.number)
        or workspace.span_notes(**where, pass_number=trace_pass.number)
    )


def disagreement(group: ConflictGroup) -> float:
    """Return how evenly the sides of a conflict split, above 0 and up to 1.

    Twice the share of the sides that do not say what most say, at most 1: one against one is 1,
    as is two against two; one against two is 0.67, one against three 0.5. In a conflict of places
    the sides that marked exactly the same stand together, those without a mark too.
    """
    verdict = group.kind is ConflictKind.VERDICT
    answer_counts: Counter[object] = Counter(
        answer.value if verdict else frozenset(answer.targets) for answer in group.said
    )
    most = max(answer_counts.values(), default=0)
    sides = answer_counts.total()
    return min(1.0, 2 * (sides - most) / sides) if sides else 0.0


def trace_disagreement(conflicts: Iterable[Conflict]) -> float:
    """Return the disagreement over a trace: the sum over what is left, as it is decided."""
    return sum(disagreement(group) for group in conflict_groups(conflicts))
