"""What an annotator may see of a workspace, and how they work: blind or assisted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from mast_tui.labels import AnnotatorKind, Pass, PassKind, annotator_kind
from mast_tui.session.errors import SessionError
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.facts import Revealed, SightSet

State = Literal["untouched", "open", "finished"]


@dataclass(frozen=True, slots=True)
class LibraryEntry:
    """What a library shows of one trace to one annotator.

    ``finished_by`` names everybody but judges who has finished it. ``waiting`` counts the judges'
    suggestions without an answer, and is 0 while they are hidden. ``hidden_visible`` is whether
    outcome, reward and ground truth may be shown.
    """

    state: State
    finished_by: tuple[str, ...]
    own_labels: int
    waiting: int
    hidden_visible: bool


def library_view(
    workspace: Workspace, annotator: str, taxonomy: str, *, blind: bool
) -> Mapping[str, LibraryEntry]:
    """What ``annotator`` may know of each registered trace, by its id; three queries and one
    for the traces, however many there are.

    ``taxonomy`` is ``id@version``.
    """
    passes: dict[str, list[Pass]] = {}
    for one in workspace.passes(taxonomy=taxonomy):
        passes.setdefault(one.trace_id, []).append(one)
    labels = workspace.label_counts(annotator, taxonomy)
    waiting = workspace.waiting_counts(annotator, taxonomy)
    ids = dict.fromkeys([record.trace_id for record in workspace.traces()])
    view = {}
    for trace_id in ids | dict.fromkeys(passes):
        here = passes.get(trace_id, [])
        own = [one for one in here if one.annotator == annotator]
        visible = not blind or _has_revealed(own)
        view[trace_id] = LibraryEntry(
            state=_state(own),
            finished_by=_finished_by(here),
            own_labels=labels.get(trace_id, 0),
            waiting=waiting.get(trace_id, 0) if visible else 0,
            hidden_visible=visible,
        )
    return view


def _state(own: list[Pass]) -> State:
    mine = [one for one in own if one.kind is not PassKind.ADJUDICATION]
    if not mine:
        return "untouched"
    return "finished" if mine[-1].finished else "open"


def _finished_by(passes: list[Pass]) -> tuple[str, ...]:
    names = {
        one.annotator
        for one in passes
        if one.finished
        and one.kind is not PassKind.ADJUDICATION
        and annotator_kind(one.annotator) is not AnnotatorKind.JUDGE
    }
    return tuple(sorted(names))


def _has_revealed(own: Iterable[Pass]) -> bool:
    return any(
        one.kind is PassKind.ADJUDICATION or (one.finished and one.revealed_at is not None)
        for one in own
    )


def _may_see(own: Iterable[Pass]) -> bool:
    return any(one.kind is PassKind.ADJUDICATION or one.finished for one in own)


def may_see_others(workspace: Workspace, annotator: str, trace_id: str, taxonomy: str) -> bool:
    """Whether an annotator may see what others say of a trace: finished, or adjudicating it.

    Whoever shows it calls ``record_reveal`` first.
    """
    return _may_see(workspace.passes(trace_id=trace_id, annotator=annotator, taxonomy=taxonomy))


def visible_traces_for_agreement(
    workspace: Workspace, annotator: str, taxonomy: str
) -> frozenset[str]:
    """The ids of the traces whose figures an annotator may see: finished or adjudicated by them.

    Whoever shows the figures calls ``record_reveal`` first: they tell what others said.
    """
    own: dict[str, list[Pass]] = {}
    for one in workspace.passes(annotator=annotator, taxonomy=taxonomy):
        own.setdefault(one.trace_id, []).append(one)
    return frozenset(trace_id for trace_id, passes in own.items() if _may_see(passes))


def record_reveal(
    workspace: Workspace,
    annotator: str,
    taxonomy: str,
    trace_ids: Iterable[str],
    *,
    what: str = "others",
) -> None:
    """Note that an annotator is shown what was hidden on these traces, so that their finishes
    stand from now on; in one transaction, and nothing where that is noted already.

    Raises ``SessionError`` where one of them is neither finished nor adjudicated by them.
    """
    own: dict[str, list[Pass]] = {}
    for one in workspace.passes(annotator=annotator, taxonomy=taxonomy):
        own.setdefault(one.trace_id, []).append(one)
    events = []
    for trace_id in dict.fromkeys(trace_ids):
        passes = own.get(trace_id, [])
        if _has_revealed(passes):
            continue
        finished = [one for one in passes if one.finished]
        if not finished:
            raise SessionError(
                f"{annotator} has not finished {trace_id}: what others say is hidden"
            )
        last = finished[-1]
        events.append(NewEvent(annotator, trace_id, taxonomy, last.number, Revealed(what)))
    if events:
        workspace.append(events)


def resolve_sight(
    workspace: Workspace, annotator: str, *, blind: bool = False, assisted: bool = False
) -> bool:
    """Whether an annotator works blind now, by what they asked for and what is remembered.

    Without a flag it is as the last time, at first assisted. ``blind`` holds from now on, as does
    ``assisted``, which alone leaves blind; both are recorded.
    """
    if blind and assisted:
        raise SessionError("--blind and --assisted exclude each other; give one of them")
    known = next((a.blind for a in workspace.annotators() if a.name == annotator), None)
    if not blind and not assisted:
        return bool(known)
    if known is not blind:
        workspace.append([NewEvent(annotator, None, None, None, SightSet(known, blind))])
    return blind
