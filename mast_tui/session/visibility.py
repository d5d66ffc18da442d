"""The visibility of a workspace for an annotator, who works blind or assisted.

A study sets conditions for its annotators: blind, without suggestions, labelled once more. Someone
without a part in it sees nothing that it hides from its annotators, since a second name must not be
a way around the study.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mast_tui.errors import SessionError
from mast_tui.labels import AnnotatorKind, Pass, PassKind, annotator_kind
from mast_tui.session.retests import by_trace, retest_open, retest_progress, retests_of
from mast_tui.study import OpenModes, Study, annotators_of, retest_traces, withheld_traces
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import Revealed, SightSet
from mast_tui.workspace.registers.look_here import look_here


@dataclass(frozen=True, slots=True)
class StudyConditions:
    """The conditions under which a trace is labelled.

    ``withheld``: without the suggestions that are there, until finished. ``retest``: once more,
    without sight of the first time. ``open_modes`` is what finishing does with modes without a
    verdict where spans were not read; None where the annotator is asked.
    """

    withheld: bool = False
    retest: bool = False
    open_modes: Literal["leave", "absent"] | None = None


def conditions_for(
    workspace: Workspace, annotator: str, trace_id: str, taxonomy: str
) -> StudyConditions:
    """Return the conditions under the study of a taxonomy.

    A retest is asked for where it is due; one that was begun is known by its pass. Of somebody
    who is not assigned the trace only suggestions can be withheld.

    Args:
        workspace: The workspace with the study.
        annotator: The name of the person who labels.
        trace_id: The trace.
        taxonomy: The taxonomy, as ``id@version``.
    """
    study = workspace.study(taxonomy)
    if study is None:
        return StudyConditions()
    withheld = trace_id in withheld_by_study(workspace, study, annotator)
    if annotator not in annotators_of(study, trace_id):
        return StudyConditions(withheld)
    due = trace_id in retest_traces(study, annotator) and (
        trace_id in retest_progress(workspace, annotator, taxonomy).due
    )
    answers: Mapping[OpenModes, Literal["leave", "absent"]] = {
        OpenModes.LEAVE: "leave",
        OpenModes.ABSENT: "absent",
    }
    return StudyConditions(withheld, due, answers.get(study.open_modes))


def blind_by_study(workspace: Workspace, study: Study | None, name: str) -> bool | None:
    """Return whether a study has somebody work blind; None where it does not decide that.

    Args:
        workspace: The workspace with the study.
        study: The study, if there is one.
        name: The person's name.
    """
    if study is None or _may_see_all(workspace, study, name):
        return None
    if name in study.annotators:
        return study.blind
    return True if study.blind else None


def withheld_by_study(workspace: Workspace, study: Study | None, name: str) -> frozenset[str]:
    """Return the ids of the traces on which a study withholds suggestions from somebody.

    Args:
        workspace: The workspace with the study.
        study: The study, if there is one.
        name: The person's name.
    """
    if study is None or _may_see_all(workspace, study, name):
        return frozenset()
    return withheld_traces(study, name)


def _may_see_all(workspace: Workspace, study: Study, name: str) -> bool:
    """Return whether a study hides no suggestions from somebody: its adjudicators, and members of
    a server without a part in it whom the lead lets see suggestions."""
    if name in study.annotators:
        return False
    member = workspace.member
    return name in study.adjudicators or (
        member is not None and (member.sees_all or member.assisted)
    )


State = Literal["untouched", "open", "finished"]


@dataclass(frozen=True, slots=True)
class LibraryEntry:
    """What a library shows of one trace to one annotator.

    ``finished_by`` names everybody but judges who has finished it. ``waiting`` counts the judges'
    suggestions without an answer, and is 0 while they are hidden. ``hidden_visible`` is whether
    outcome, reward and ground truth may be shown; ``withheld`` whether a study keeps from them what
    judges say all the same. A trace that comes back to be labelled once more looks like any other
    that was not finished. ``look_here`` counts the spans that probably contain the
    decisive step; it is None if they are unknown or hidden.
    """

    state: State
    finished_by: tuple[str, ...]
    own_labels: int
    waiting: int
    hidden_visible: bool
    withheld: bool = False
    look_here: int | None = None

    @property
    def suggestions_visible(self) -> bool:
        """Whether anything that judges say may be shown."""
        return self.hidden_visible and not self.withheld


def library_view(
    workspace: Workspace, annotator: str, taxonomy: str, *, blind: bool
) -> Mapping[str, LibraryEntry]:
    """Return what an annotator may know of each registered trace, by its id.

    The number of queries does not depend on that of the traces.

    Args:
        workspace: The workspace.
        annotator: The annotator's name.
        taxonomy: The taxonomy, as ``id@version``.
        blind: Whether the annotator works blind.
    """
    sets = look_here(workspace, taxonomy)
    sizes = {} if sets is None else sets.sizes
    passes: dict[str, list[Pass]] = {}
    for one in workspace.passes(taxonomy=taxonomy):
        passes.setdefault(one.trace_id, []).append(one)
    everything = [one for here in passes.values() for one in here if one.annotator == annotator]
    study = workspace.study(taxonomy)
    again = retests_of(study, annotator, by_trace(everything)).now
    without = withheld_by_study(workspace, study, annotator)
    labels = workspace.label_counts(annotator, taxonomy)
    waiting = workspace.waiting_counts(annotator, taxonomy)
    # What comes back waits anew: nobody by no name has answered anything.
    all_waiting = workspace.waiting_counts("", taxonomy) if again else {}
    ids = dict.fromkeys([record.trace_id for record in workspace.traces()])
    view = {}
    for trace_id in ids | dict.fromkeys(passes):
        here = passes.get(trace_id, [])
        own = [one for one in here if one.annotator == annotator]
        counts = all_waiting if trace_id in again else waiting
        revealed = trace_id not in again and _has_revealed(own)
        visible = not blind or revealed
        kept_back = not revealed and suggestions_withheld(own, trace_id in without)
        view[trace_id] = LibraryEntry(
            state=_state(own, again=trace_id in again),
            finished_by=_finished_by(here, but=annotator if trace_id in again else None),
            own_labels=0 if trace_id in again else labels.get(trace_id, 0),
            waiting=counts.get(trace_id, 0) if visible and not kept_back else 0,
            hidden_visible=visible,
            withheld=kept_back,
            look_here=sizes.get(trace_id) if visible and not kept_back else None,
        )
    return view


def _state(own: list[Pass], *, again: bool) -> State:
    if again:
        return "open" if retest_open(own) else "untouched"
    mine = [one for one in own if one.kind.is_reading]
    if not mine:
        return "untouched"
    return "finished" if mine[-1].finished else "open"


def suggestions_withheld(own: Sequence[Pass], planned: bool) -> bool:
    """Whether a study keeps suggestions from an annotator with these passes over a trace, as long
    as nothing hidden was shown; ``planned`` says so before there is any."""
    mine = [one for one in own if one.kind is not PassKind.ADJUDICATION]
    return mine[-1].withheld if mine else planned


def _finished_by(passes: list[Pass], *, but: str | None) -> tuple[str, ...]:
    names = {
        one.annotator
        for one in passes
        if one.finished
        and one.kind.is_reading
        and one.annotator != but
        and annotator_kind(one.annotator) is not AnnotatorKind.JUDGE
    }
    return tuple(sorted(names))


def _has_revealed(own: Iterable[Pass]) -> bool:
    return any(
        one.kind is PassKind.ADJUDICATION or (one.finished and one.revealed_at is not None)
        for one in own
    )


def visible_traces_for_agreement(
    workspace: Workspace, annotator: str, taxonomy: str
) -> frozenset[str]:
    """The ids of the traces whose figures an annotator may see: finished or adjudicated by them.

    Those that a study lets come back are left out until they have, lest the figures spoil it.
    Whoever shows the figures calls ``record_reveal`` first: they tell what others said.
    """
    own = by_trace(workspace.passes(annotator=annotator, taxonomy=taxonomy))
    untaken = retests_of(workspace.study(taxonomy), annotator, own).untaken
    return frozenset(
        trace_id
        for trace_id, passes in own.items()
        if trace_id not in untaken
        and any(one.kind is PassKind.ADJUDICATION or one.finished for one in passes)
    )


def said_by(workspace: Workspace, taxonomy: str) -> dict[str, frozenset[str]]:
    """Map each name to the traces that this annotator has finished, or this judge has judged."""
    found: dict[str, set[str]] = {info.name: set() for info in workspace.annotators()}

    def take(rows: Iterator[tuple[Any, ...]]) -> None:
        for name, trace_id, kind, withdrawn in rows:
            if not withdrawn and PassKind(kind).is_reading:
                found.setdefault(name, set()).add(trace_id)

    columns = ("annotator", "trace_id", "kind", "withdrawn")
    wanted = {"taxonomy": taxonomy}
    workspace.read_columns("passes", columns, take, equal_to=wanted, not_null="finished_at")
    for judged in workspace.judgements(taxonomy=taxonomy):
        found.setdefault(judged.judge, set()).add(judged.trace_id)
    return {name: frozenset(traces) for name, traces in found.items()}


@dataclass(frozen=True, slots=True)
class WithinSight:
    """Which traces may be counted, which are left out, and which tell what others said."""

    seen: frozenset[str]
    hidden: frozenset[str] = frozenset()
    told: frozenset[str] = frozenset()


def within_sight(
    workspace: Workspace,
    annotator: str,
    taxonomy: str,
    labels: str | None,
    *,
    blind: bool,
    said: Mapping[str, frozenset[str]],
) -> WithinSight:
    """Tell apart the traces on which somebody may be shown labels or figures of them.

    Args:
        workspace: Where to look.
        annotator: Who asks.
        taxonomy: Under which taxonomy, as ``id@version``.
        labels: Whose labels, an annotator's or a judge's; None for the gold.
        blind: Whether the one who asks works blind.
        said: Who has spoken on which traces, from ``said_by``.
    """
    seen = visible_traces_for_agreement(workspace, annotator, taxonomy)
    if labels == annotator:
        # Without those that are to be labelled once more: one's own words would spoil that.
        return WithinSight(said.get(annotator, frozenset()) & seen)
    of_judge = labels is not None and annotator_kind(labels) is AnnotatorKind.JUDGE
    others = frozenset[str]().union(
        *(
            traces
            for name, traces in said.items()
            if name != annotator
            and (of_judge or labels in (None, name))
            and annotator_kind(name) is not AnnotatorKind.JUDGE
        )
    )
    if labels is None or not of_judge:
        return WithinSight(seen, others - seen, others & seen)
    view = library_view(workspace, annotator, taxonomy, blind=blind)
    judged = said.get(labels, frozenset())
    shown = frozenset(t for t in judged if t in view and view[t].suggestions_visible)
    # The gold beside the judge tells how it errs, and so what others said.
    return WithinSight(shown, judged - shown, seen & judged & others)


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
    own = by_trace(workspace.passes(annotator=annotator, taxonomy=taxonomy))
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
    workspace: Workspace,
    annotator: str,
    *,
    blind: bool = False,
    assisted: bool = False,
    taxonomy: str | None = None,
) -> bool:
    """Return whether an annotator works blind now, and record a change.

    ``blind`` and ``assisted`` are what they ask for now; ``assisted`` alone leaves blind. Without
    either the study decides (``blind_by_study``), and where it does not, they work as the last
    time, at first assisted. Under a study both flags hold until the next time.

    Args:
        workspace: The workspace.
        annotator: The annotator's name.
        blind: Work blind from now on.
        assisted: Work with suggestions from now on.
        taxonomy: The taxonomy of the study, as ``id@version``.

    Raises:
        SessionError: Both flags are set, or the server hides suggestions from them.
    """
    if blind and assisted:
        raise SessionError("--blind and --assisted exclude each other; give one of them")
    member = workspace.member
    if member is not None and not (member.sees_all or member.assisted):
        if assisted:
            raise SessionError("the server keeps from you what judges say; the lead can change it")
        blind = True
    known = next((a.blind for a in workspace.annotators() if a.name == annotator), None)
    study = None if taxonomy is None else workspace.study(taxonomy)
    planned = blind_by_study(workspace, study, annotator)
    if blind or assisted:
        wanted = blind
    elif planned is not None:
        wanted = planned
    else:
        return bool(known)
    if known is not wanted and (known is not None or blind or assisted or wanted):
        workspace.append([NewEvent(annotator, None, None, None, SightSet(known, wanted))])
    return wanted
