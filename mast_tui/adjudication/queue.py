"""What is left to decide in a workspace, as far as an adjudicator may know it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from mast_tui.adjudication.sides import TraceWords, words_by_trace
from mast_tui.adjudication.trace_files import OrderOf
from mast_tui.gold import (
    Conflict,
    ConflictKind,
    Decision,
    GoldTrace,
    Order,
    Said,
    Side,
    no_order,
    no_orders,
    words_on,
)
from mast_tui.gold.overlaps import items_of_mode, overlap
from mast_tui.gold.settle import places_said, verdicts_said
from mast_tui.labels import Pass, PassKind, VerdictValue
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
        changed = sum(has_changed(one, said.sides, order) for one in said.decisions)
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
) -> dict[str, tuple[Conflict, ...]]:
    """What is left to decide on every trace that two or more have finished, by trace id.

    Nothing is recorded, so this is for what shows nobody's words to anybody still reading; screens
    use ``queue``.
    """
    words = words_by_trace(workspace, taxonomy, annotators=annotators)
    return {
        trace_id: said.gold(taxonomy, order_of(trace_id)).conflicts
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


def disagreement(conflict: Conflict) -> float:
    """How evenly the sides of a conflict split, above 0 and up to 1.

    Twice the share of the sides that do not say what most say, at most 1: one against one is 1,
    as is two against two; one against two is 0.67, one against three 0.5. In a conflict of places
    the sides that marked exactly the same stand together, those without a mark too.
    """
    verdict = conflict.kind is ConflictKind.VERDICT
    words: Counter[object] = Counter(
        said.value if verdict else frozenset(said.targets) for said in conflict.said
    )
    most = max(words.values(), default=0)
    sides = words.total()
    return min(1.0, 2 * (sides - most) / sides) if sides else 0.0


def trace_disagreement(conflicts: Iterable[Conflict]) -> float:
    """The disagreement over a trace: the sum over its conflicts that are left."""
    return sum(disagreement(conflict) for conflict in conflicts)


def outcome_words(value: VerdictValue, *, is_verdict: bool) -> str:
    """What was decided, in words: the verdict, or what became of the place."""
    if is_verdict:
        return value.value
    return "place taken" if value is VerdictValue.PRESENT else "place dropped"


def settles_conflict(decision: Decision) -> bool:
    """Whether the sides differed when it was decided; else it adds to, or overrules, the agreed."""
    if decision.is_verdict:
        return len({said.value for said in decision.said}) > 1
    return len({frozenset(said.targets) for said in decision.said}) > 1


def said_now(
    decision: Decision, sides: Sequence[Side], order: Order = no_order
) -> tuple[Said, ...]:
    """What the sides say now of what a decision is about.

    Of a mode all that have a verdict; of a place those that the decision names, who may have left
    it, and whoever has marked it since.
    """
    if decision.is_verdict:
        return words_on(decision.mode, sides)
    labels = [label for side in sides for label in side.labels if label.mode == decision.mode]
    items = items_of_mode(labels, order)
    about = [*decision.targets, *(t for said in decision.said for t in said.targets)]
    here = [item for item in items if item.id == decision.item] or [
        item for item in items if any(overlap(item.target, target, order) for target in about)
    ]
    marked = [label for item in here for label in item.labels]
    names = [*(said.annotator for said in decision.said), *(label.annotator for label in marked)]
    return tuple(
        Said(
            name,
            VerdictValue.PRESENT,
            tuple(dict.fromkeys(label.target for label in marked if label.annotator == name)),
        )
        for name in dict.fromkeys(names)
    )


def has_changed(decision: Decision, sides: Sequence[Side], order: Order = no_order) -> bool:
    """Whether a side has said something else about it since it was decided."""
    now = said_now(decision, sides, order)
    if decision.is_verdict:
        return verdicts_said(decision.said) != verdicts_said(now)
    return places_said(decision.said) != places_said(now)
