"""The parts of a workspace that a blind or an assisted annotator may see.

A person outside of a study does not see what is hidden from its annotators, since nobody may
circumvent the study with a second name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from mast_tui.errors import SessionError
from mast_tui.grouping import values_by_key
from mast_tui.labels import Pass, PassKind, is_judge
from mast_tui.session.progress import by_trace, retest_open, retest_progress, retests_of
from mast_tui.study import OpenModes, Study, annotators_of, retest_traces, withheld_traces
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import BlindWorkSet, Revealed
from mast_tui.workspace.registers.look_here import look_here

if TYPE_CHECKING:
    from mast_tui.redaction.masked_trace import Masks


class StudyConditions(Struct, frozen=True):
    """The conditions under which a trace is labelled.

    Attributes:
        withheld: True if suggestions are hidden until the trace is finished.
        retest: True if the trace is labelled again and the first labels are hidden.
        open_modes: The action for modes without a verdict if spans are unread; None to ask.
    """

    withheld: bool = False
    retest: bool = False
    open_modes: Literal["leave", "absent"] | None = None


def conditions_for(
    workspace: Workspace, annotator: str, trace_id: str, taxonomy: str
) -> StudyConditions:
    """Return the conditions that the study sets for an annotator on a trace.

    ``retest`` is True only if a retest is due and not begun.

    Args:
        workspace: The workspace with the study.
        annotator: The name of the person who labels.
        trace_id: The trace.
        taxonomy: The taxonomy, as ``id@version``.
    """
    study = workspace.study(taxonomy)
    if study is None:
        return StudyConditions()
    is_withheld = trace_id in withheld_traces_of(workspace, study, annotator)
    if annotator not in annotators_of(study, trace_id):
        return StudyConditions(withheld=is_withheld)
    # Progress is read only for a planned retest.
    is_retest_due = trace_id in retest_traces(study, annotator) and (
        trace_id in retest_progress(workspace, annotator, taxonomy).due
    )
    actions: Mapping[OpenModes, Literal["leave", "absent"]] = {
        OpenModes.LEAVE: "leave",
        OpenModes.ABSENT: "absent",
    }
    return StudyConditions(
        withheld=is_withheld, retest=is_retest_due, open_modes=actions.get(study.open_modes)
    )


def trace_masks(study: Study | None) -> Masks | None:
    """Return the masks that hide personal data in a study's traces; None if the study has none.

    Raises:
        RedactionError: A library that finds personal data is missing.
    """
    if study is None or not study.redact:
        return None
    # Start-up: the module compiles patterns, and few studies mask.
    from mast_tui.redaction.masked_trace import masks_of_same_length

    return masks_of_same_length(study.redact_patterns, bytes.fromhex(study.redact_key))


def blind_by_study(workspace: Workspace, study: Study | None, name: str) -> bool | None:
    """Return whether a study makes a person work blind; None if the person may choose.

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


def withheld_traces_of(workspace: Workspace, study: Study | None, name: str) -> frozenset[str]:
    """Return the traces on which a study withholds suggestions from a person.

    Args:
        workspace: The workspace with the study.
        study: The study, if there is one.
        name: The person's name.
    """
    if study is None or _may_see_all(workspace, study, name):
        return frozenset()
    return withheld_traces(study, name)


def _may_see_all(workspace: Workspace, study: Study, name: str) -> bool:
    """Return whether a study hides no suggestions from a person who is none of its annotators."""
    if name in study.annotators:
        return False
    member = workspace.member
    return name in study.adjudicators or (
        member is not None and (member.sees_all or member.assisted)
    )


State = Literal["untouched", "open", "finished"]


class LibraryEntry(Struct, frozen=True):
    """The work on one trace that the library shows to an annotator.

    In a retest the work of earlier passes is left out.

    Attributes:
        state: The state of the annotator's last labelling pass, or of the retest.
        finished_by: The people who have finished the trace. The annotator is among them only if
            the state is ``finished``.
        own_labels: The number of the annotator's labels.
        waiting: The number of suggestions without an answer; 0 while they are hidden.
        outcome_visible: True if outcome, reward and ground truth may be shown.
        withheld: True if a study still withholds suggestions.
        look_here: The number of spans that probably contain the decisive step; None if unknown or
            hidden.
        is_retest: True if the annotator must label the finished trace again.
    """

    state: State
    finished_by: tuple[str, ...]
    own_labels: int
    waiting: int
    outcome_visible: bool
    withheld: bool = False
    look_here: int | None = None
    is_retest: bool = False

    @property
    def suggestions_visible(self) -> bool:
        """True if judges' suggestions may be shown."""
        return self.outcome_visible and not self.withheld


def library_view(
    workspace: Workspace, annotator: str, taxonomy: str, *, blind: bool
) -> Mapping[str, LibraryEntry]:
    """Return the work on each registered trace that an annotator may see, by trace id.

    Args:
        workspace: The workspace.
        annotator: The annotator.
        taxonomy: The taxonomy, as ``id@version``.
        blind: True if the annotator works blind.
    """
    passes_by_trace: dict[str, list[Pass]] = {record.trace_id: [] for record in workspace.traces()}
    passes_by_trace |= values_by_key(
        (trace_pass.trace_id, trace_pass) for trace_pass in workspace.passes(taxonomy=taxonomy)
    )
    facts = _LibraryFacts(workspace, annotator, taxonomy, passes_by_trace, blind=blind)
    return {trace_id: facts.entry(trace_id) for trace_id in passes_by_trace}


class _LibraryFacts:
    """The work on all traces, from which the entries of one annotator's library are made."""

    def __init__(
        self,
        workspace: Workspace,
        annotator: str,
        taxonomy: str,
        passes_by_trace: Mapping[str, Sequence[Pass]],
        *,
        blind: bool,
    ) -> None:
        self._annotator = annotator
        self._blind = blind
        self._passes_by_trace = passes_by_trace
        self._own_passes_by_trace = by_trace(
            trace_pass
            for passes in passes_by_trace.values()
            for trace_pass in passes
            if trace_pass.annotator == annotator
        )
        study = workspace.study(taxonomy)
        self._retests = retests_of(study, annotator, self._own_passes_by_trace).current
        self._withheld_traces = withheld_traces_of(workspace, study, annotator)
        self._label_counts = workspace.label_counts(annotator, taxonomy)
        self._waiting_counts = workspace.waiting_counts(annotator, taxonomy)
        # In a retest all suggestions wait again. Nobody has the empty name, so for it all wait.
        self._retest_waiting_counts = (
            workspace.waiting_counts("", taxonomy) if self._retests else {}
        )
        look_here_sets = look_here(workspace, taxonomy)
        self._look_here_counts = {} if look_here_sets is None else look_here_sets.sizes

    def entry(self, trace_id: str) -> LibraryEntry:
        """Return the entry of a trace, without counts of hidden suggestions."""
        is_retest = trace_id in self._retests
        entry = self._retest_entry(trace_id) if is_retest else self._entry_of_work(trace_id)
        if entry.suggestions_visible:
            return entry
        # For many traces ``replace`` would be too slow.
        return LibraryEntry(
            entry.state,
            entry.finished_by,
            entry.own_labels,
            waiting=0,
            outcome_visible=entry.outcome_visible,
            withheld=entry.withheld,
            is_retest=is_retest,
        )

    def _entry_of_work(self, trace_id: str) -> LibraryEntry:
        """Return the entry of a trace outside of retests, with counts of hidden suggestions."""
        own_passes = self._own_passes_by_trace.get(trace_id, [])
        is_revealed = has_revealed(own_passes)
        state = labelling_state(own_passes)
        return LibraryEntry(
            state=state,
            finished_by=self._finished_by(trace_id, state),
            own_labels=self._label_counts.get(trace_id, 0),
            waiting=self._waiting_counts.get(trace_id, 0),
            outcome_visible=is_revealed or not self._blind,
            withheld=not is_revealed and self._is_withheld(trace_id),
            look_here=self._look_here_counts.get(trace_id),
        )

    def _retest_entry(self, trace_id: str) -> LibraryEntry:
        """Return the entry of a retest, with counts of hidden suggestions."""
        is_begun = retest_open(self._own_passes_by_trace.get(trace_id, []))
        state: State = "open" if is_begun else "untouched"
        return LibraryEntry(
            state=state,
            finished_by=self._finished_by(trace_id, state),
            own_labels=0,
            waiting=self._retest_waiting_counts.get(trace_id, 0),
            outcome_visible=not self._blind,
            withheld=self._is_withheld(trace_id),
            look_here=self._look_here_counts.get(trace_id),
            is_retest=True,
        )

    def _finished_by(self, trace_id: str, state: State) -> tuple[str, ...]:
        """Return the names of the people who have finished a labelling pass, sorted.

        The annotator is among them only if the state of the trace is ``finished``.
        """
        names = {
            trace_pass.annotator
            for trace_pass in self._passes_by_trace[trace_id]
            if trace_pass.finished
            and trace_pass.kind.is_labelling
            and not is_judge(trace_pass.annotator)
        }
        if state != "finished":
            names.discard(self._annotator)
        return tuple(sorted(names))

    def _is_withheld(self, trace_id: str) -> bool:
        own_passes = self._own_passes_by_trace.get(trace_id, [])
        return suggestions_withheld(own_passes, planned=trace_id in self._withheld_traces)


def labelling_state(own_passes: Sequence[Pass]) -> State:
    """Return the state of an annotator's last labelling pass over a trace."""
    labelling_passes = [own_pass for own_pass in own_passes if own_pass.kind.is_labelling]
    if not labelling_passes:
        return "untouched"
    return "finished" if labelling_passes[-1].finished else "open"


def suggestions_withheld(own_passes: Sequence[Pass], planned: bool) -> bool:
    """Return whether a study withholds suggestions in an annotator's last pass over a trace.

    Adjudications do not count.

    Args:
        own_passes: The annotator's passes over the trace.
        planned: True if the study plans to withhold them; used before the first pass.
    """
    passes = [own_pass for own_pass in own_passes if own_pass.kind is not PassKind.ADJUDICATION]
    return passes[-1].withheld if passes else planned


def has_revealed(own_passes: Iterable[Pass]) -> bool:
    """Return whether hidden contents were shown after a finish or in an adjudication."""
    return any(
        own_pass.kind is PassKind.ADJUDICATION
        or (own_pass.finished and own_pass.revealed_at is not None)
        for own_pass in own_passes
    )


def visible_traces_for_agreement(
    workspace: Workspace, annotator: str, taxonomy: str
) -> frozenset[str]:
    """Return the traces on which an annotator may see figures.

    These are finished or adjudicated traces without a current or later retest. The caller must call
    ``record_reveal`` before it shows figures, because figures reveal others' labels.

    Args:
        workspace: The workspace.
        annotator: The annotator.
        taxonomy: The taxonomy, as ``id@version``.
    """
    passes_by_trace = by_trace(workspace.passes(annotator=annotator, taxonomy=taxonomy))
    protected = retests_of(workspace.study(taxonomy), annotator, passes_by_trace).protected
    return frozenset(
        trace_id
        for trace_id, passes in passes_by_trace.items()
        if trace_id not in protected
        and any(own_pass.kind is PassKind.ADJUDICATION or own_pass.finished for own_pass in passes)
    )


def finished_or_judged_traces(workspace: Workspace, taxonomy: str) -> dict[str, frozenset[str]]:
    """Return the finished or judged traces of each annotator, by name.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy, as ``id@version``.
    """
    traces: dict[str, set[str]] = {info.name: set() for info in workspace.annotators()}

    def add_rows(rows: Iterator[tuple[Any, ...]]) -> None:
        """Add the traces of labelling passes that were not withdrawn."""
        for name, trace_id, kind, withdrawn in rows:
            if not withdrawn and PassKind(kind).is_labelling:
                traces.setdefault(name, set()).add(trace_id)

    columns = ("annotator", "trace_id", "kind", "withdrawn")
    conditions = {"taxonomy": taxonomy}
    workspace.read_columns("passes", columns, add_rows, equal_to=conditions, not_null="finished_at")
    for judgement in workspace.judgements(taxonomy=taxonomy):
        traces.setdefault(judgement.judge, set()).add(judgement.trace_id)
    return {name: frozenset(ids) for name, ids in traces.items()}


class VisibleWork(Struct, frozen=True):
    """The traces on which labels or figures are visible to a person.

    Attributes:
        visible: The visible traces.
        hidden: The hidden traces.
        revealing: The visible traces on which others' labels are revealed.
    """

    visible: frozenset[str]
    hidden: frozenset[str] = frozenset()
    revealing: frozenset[str] = frozenset()


def visible_work(
    workspace: Workspace,
    annotator: str,
    taxonomy: str,
    label_source: str | None,
    *,
    blind: bool,
    traces_by_author: Mapping[str, frozenset[str]],
) -> VisibleWork:
    """Return the traces on which a person may see the labels of one author.

    The caller must record the reveal of the ``revealing`` traces.

    Args:
        workspace: The workspace.
        annotator: The person.
        taxonomy: The taxonomy, as ``id@version``.
        label_source: The author of the labels, a person or a judge; None for the gold.
        blind: True if the person works blind.
        traces_by_author: The result of ``finished_or_judged_traces``.
    """
    finished_traces = visible_traces_for_agreement(workspace, annotator, taxonomy)
    if label_source == annotator:
        # ``finished_traces`` leaves out retests, which the person's own labels would spoil.
        return VisibleWork(traces_by_author.get(annotator, frozenset()) & finished_traces)
    others = [name for name in traces_by_author if name != annotator and not is_judge(name)]
    if label_source is not None and not is_judge(label_source):
        others = [label_source]
    labelled_by_others = frozenset[str]().union(
        *(traces_by_author.get(name, ()) for name in others)
    )
    if label_source is not None and is_judge(label_source):
        return _visible_judgements(
            library_view(workspace, annotator, taxonomy, blind=blind),
            judged_traces=traces_by_author.get(label_source, frozenset()),
            gold_traces=finished_traces & labelled_by_others,
        )
    return VisibleWork(
        finished_traces,
        hidden=labelled_by_others - finished_traces,
        revealing=labelled_by_others & finished_traces,
    )


def _visible_judgements(
    view: Mapping[str, LibraryEntry],
    *,
    judged_traces: frozenset[str],
    gold_traces: frozenset[str],
) -> VisibleWork:
    """Return the traces on which a judge's labels are visible in an annotator's library.

    On ``gold_traces`` the judge's errors are shown, which reveals others' labels.
    """
    visible_traces = frozenset(
        trace for trace in judged_traces if trace in view and view[trace].suggestions_visible
    )
    return VisibleWork(
        visible_traces,
        hidden=judged_traces - visible_traces,
        revealing=gold_traces & judged_traces,
    )


def record_reveal(
    workspace: Workspace,
    annotator: str,
    taxonomy: str,
    trace_ids: Iterable[str],
    *,
    source: str = "others",
) -> None:
    """Record in one transaction that hidden contents of traces are shown to an annotator.

    After that, the finish of these traces cannot be undone. Recorded traces are skipped.

    Args:
        workspace: The workspace.
        annotator: The annotator.
        taxonomy: The taxonomy, as ``id@version``.
        trace_ids: The shown traces.
        source: The revealed labels: ``others`` or ``judge``.

    Raises:
        SessionError: The annotator has not finished a trace, and does not adjudicate it.
    """
    passes_by_trace = by_trace(workspace.passes(annotator=annotator, taxonomy=taxonomy))
    events = []
    for trace_id in dict.fromkeys(trace_ids):
        passes = passes_by_trace.get(trace_id, [])
        # An adjudication counts as a reveal, so only finished passes are left.
        if has_revealed(passes):
            continue
        finished_passes = [own_pass for own_pass in passes if own_pass.finished]
        if not finished_passes:
            raise SessionError(
                f"{annotator} has not finished {trace_id}, so others' labels are hidden"
            )
        pass_number = finished_passes[-1].number
        events.append(NewEvent(annotator, trace_id, taxonomy, pass_number, Revealed(source)))
    if events:
        workspace.append(events)


def resolve_blind(
    workspace: Workspace,
    annotator: str,
    *,
    blind: bool = False,
    assisted: bool = False,
    taxonomy: str | None = None,
) -> bool:
    """Return whether an annotator works blind, and record a new setting.

    The first of these decides:

    - A server that hides suggestions from the annotator: blind.
    - ``blind`` or ``assisted``, if one of them is True.
    - The study, if ``blind_by_study`` does not return None.
    - The recorded setting, or assisted work without a setting.

    Args:
        workspace: The workspace.
        annotator: The annotator's name.
        blind: True to work blind from now on.
        assisted: True to work with suggestions from now on.
        taxonomy: The taxonomy of the study, as ``id@version``.

    Raises:
        SessionError: Both are requested, or the server hides suggestions from this person.
    """
    requested = _requested_blindness(workspace, blind=blind, assisted=assisted)
    if requested is None and taxonomy is not None:
        requested = blind_by_study(workspace, workspace.study(taxonomy), annotator)
    recorded = next((info.blind for info in workspace.annotators() if info.name == annotator), None)
    if requested is None:
        return bool(recorded)
    # Assisted work is the default, so it is recorded only by request or as a change.
    is_default = recorded is None and not requested and not assisted
    if requested is not recorded and not is_default:
        workspace.append([NewEvent(annotator, None, None, None, BlindWorkSet(recorded, requested))])
    return requested


def _requested_blindness(workspace: Workspace, *, blind: bool, assisted: bool) -> bool | None:
    """Return whether options or the server require blind work; None if they do not decide.

    Raises:
        SessionError: Both are requested, or the server hides suggestions from this person.
    """
    if blind and assisted:
        raise SessionError("--blind and --assisted exclude each other; give one of them")
    member = workspace.member
    if member is not None and not (member.sees_all or member.assisted):
        if assisted:
            raise SessionError(
                "the server hides judges' suggestions from you; the workspace's owner can change it"
            )
        return True
    return blind if blind or assisted else None
