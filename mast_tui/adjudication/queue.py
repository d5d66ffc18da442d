"""What is left to decide in a workspace, as far as an adjudicator may know it."""

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
    """Whether somebody may see what others said about a trace.

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
    """The traces on which annotators can differ, those without conflicts too.

    Most disagreement first, then most decisions whose sides have changed, then by trace id; what
    one may not see yet comes last.

    What others said is in it, so it is recorded as shown: from then on the adjudicator's own finish
    of these traces cannot be undone.
    """
    accesses = accesses_of(workspace, taxonomy, adjudicator)
    open_ones: list[tuple[float, int, QueueEntry]] = []
    hidden = []
    for trace_id, said in words_by_trace(workspace, taxonomy).items():
        if len(said.sides) < 2:
            continue
        names = tuple(side.annotator for side in said.sides)
        access = accesses.get(trace_id, Access.HIDDEN)
        if access is not Access.OPEN:
            hidden.append(QueueEntry(trace_id, names, access))
            continue
        order = order_of(trace_id)
        gold = said.gold(taxonomy, order)
        rows = disputes(gold.conflicts, said.decisions)
        changed = sum(row.has_changed(said.sides, order) for row in rows)
        entry = QueueEntry(trace_id, names, access, said, gold)
        open_ones.append((trace_disagreement(gold.conflicts), changed, entry))
    record_reveal(workspace, adjudicator, taxonomy.ref, [one.trace_id for *_, one in open_ones])
    open_ones.sort(key=lambda one: (-one[0], -one[1]))  # they come by trace id
    return (*(entry for *_, entry in open_ones), *hidden)


def accesses_of(workspace: Workspace, taxonomy: Taxonomy, adjudicator: str) -> dict[str, Access]:
    """What somebody may see of each trace that they have a pass over; the others are hidden."""
    own = by_trace(workspace.passes(annotator=adjudicator, taxonomy=taxonomy.ref))
    retests = retests_of(workspace.study(taxonomy.ref), adjudicator, own)
    return {
        trace_id: _access(
            passes, begun=trace_id in retests.begun, again=trace_id in retests.untaken
        )
        for trace_id, passes in own.items()
    }


def access_to(workspace: Workspace, taxonomy: Taxonomy, adjudicator: str, trace_id: str) -> Access:
    """What somebody may see of one trace: as ``accesses_of``, without looking at all the others
    where no study lets traces come back."""
    own = workspace.passes(trace_id=trace_id, annotator=adjudicator, taxonomy=taxonomy.ref)
    study = workspace.study(taxonomy.ref)
    if study is not None and study.retests:
        return accesses_of(workspace, taxonomy, adjudicator).get(trace_id, Access.HIDDEN)
    return _access(own, begun=retest_open(own), again=False)


def _access(own: Iterable[Pass], *, begun: bool, again: bool) -> Access:
    """With ``begun`` they are labelling the trace once more, with ``again`` they will."""
    if begun:
        return Access.UNFINISHED
    own = tuple(own)
    if any(one.kind is PassKind.ADJUDICATION for one in own):
        return Access.OPEN
    if not any(one.finished for one in own):
        return Access.UNFINISHED if own else Access.HIDDEN
    return Access.AGAIN if again else Access.OPEN


def take_on(
    workspace: Workspace, taxonomy: Taxonomy, adjudicator: str, trace_ids: Iterable[str]
) -> tuple[str, ...]:
    """Take on traces as adjudicator that one has not read oneself, and return which these are.

    From then on the adjudicator sees what others said about them, and a reading of their own is a
    second look. Traces that they have begun to label are left alone; a reading in which nothing was
    said yet ends unfinished.
    """
    own = by_trace(workspace.passes(annotator=adjudicator, taxonomy=taxonomy.ref))
    accesses = accesses_of(workspace, taxonomy, adjudicator)

    def can_be_taken(trace_id: str) -> bool:
        access = accesses.get(trace_id, Access.HIDDEN)
        if access is Access.UNFINISHED:
            passes = own.get(trace_id, ())
            return not any(one.finished or _has_words(workspace, one) for one in passes)
        return access is not Access.OPEN

    taken = [trace_id for trace_id in dict.fromkeys(trace_ids) if can_be_taken(trace_id)]
    start = PassStarted(PassKind.ADJUDICATION)
    events = [
        NewEvent(adjudicator, trace_id, taxonomy.ref, number, start)
        for trace_id in taken
        for number in [next_pass_number(workspace, taxonomy, adjudicator, trace_id)]
    ]
    if events:
        workspace.append(events)
    return tuple(taken)


def take_on_as_study_says(
    workspace: Workspace, taxonomy: Taxonomy, adjudicator: str
) -> tuple[str, ...]:
    """Take on what the study gives to this adjudicator, and return which traces these are.

    Only where the study names them an adjudicator and not an annotator as well: then there is no
    reading of their own that it could spoil. Of its traces these are the ones that two or more
    have finished.
    """
    study = workspace.study(taxonomy.ref)
    if study is None or adjudicator not in study.adjudicators or adjudicator in study.annotators:
        return ()
    words = words_by_trace(workspace, taxonomy)
    ready = [one for one in study.traces if one in words and len(words[one].sides) > 1]
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
    """
    words = words_by_trace(workspace, taxonomy, annotators=annotators)
    return {
        trace_id: conflict_groups(said.gold(taxonomy, order_of(trace_id)).conflicts)
        for trace_id, said in words.items()
        if len(said.sides) > 1
    }


def next_pass_number(
    workspace: Workspace, taxonomy: Taxonomy, adjudicator: str, trace_id: str
) -> int:
    """The first number that none of somebody's passes ever had, those taken back included."""
    events = workspace.events(trace_id=trace_id, annotator=adjudicator, taxonomy=taxonomy.ref)
    return max((event.pass_number or 0 for event in events), default=0) + 1


def _has_words(workspace: Workspace, one: Pass) -> bool:
    """Whether anything was said in a pass: a label, a verdict, an answer or a note."""
    where = {"trace_id": one.trace_id, "annotator": one.annotator, "taxonomy": one.taxonomy}
    return bool(
        workspace.labels(**where, pass_number=one.number)
        or workspace.verdicts(**where, pass_number=one.number)
        or workspace.reviews(**where, pass_number=one.number)
        or workspace.span_notes(**where, pass_number=one.number)
    )


def disagreement(group: ConflictGroup) -> float:
    """Return how evenly the sides of a conflict split, above 0 and up to 1.

    Twice the share of the sides that do not say what most say, at most 1: one against one is 1,
    as is two against two; one against two is 0.67, one against three 0.5. In a conflict of places
    the sides that marked exactly the same stand together, those without a mark too.
    """
    verdict = group.kind is ConflictKind.VERDICT
    words: Counter[object] = Counter(
        said.value if verdict else frozenset(said.targets) for said in group.said
    )
    most = max(words.values(), default=0)
    sides = words.total()
    return min(1.0, 2 * (sides - most) / sides) if sides else 0.0


def trace_disagreement(conflicts: Iterable[Conflict]) -> float:
    """Return the disagreement over a trace: the sum over what is left, as it is decided."""
    return sum(disagreement(group) for group in conflict_groups(conflicts))
