"""The work of an annotator on an open trace."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import partial
from types import MappingProxyType
from typing import Literal, TypedDict, TypeVar, Unpack

from msgspec import Struct, structs

from mast_tui.counts import counted
from mast_tui.errors import ChangedElsewhere, ChangedMeanwhile, SessionError
from mast_tui.labels import (
    AnnotatorKind,
    Label,
    Origin,
    Pass,
    PassKind,
    ReviewAnswer,
    Severity,
    Target,
    VerdictValue,
    annotator_kind,
    is_judge,
)
from mast_tui.redaction.filled_masks import with_whole_masks
from mast_tui.session.changes import Change, ChangeMessages, PendingChange
from mast_tui.session.pass_state import SHORT_RANGE, Passes, PassState
from mast_tui.session.read_model import OthersWork, ReadModel, Suggestion
from mast_tui.session.undo_history import Action
from mast_tui.session.visibility import StudyConditions, conditions_for
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace
from mast_tui.workspace import NewEvent, TraceRecord, Workspace
from mast_tui.workspace.events.model import Event
from mast_tui.workspace.events.types import (
    Fact,
    PassFinished,
    PassKindSet,
    Revealed,
    SpanRange,
    SpansRead,
    SuggestionsSeen,
    span_keys,
)
from mast_tui.workspace.records import SpanIndex, indices_in, missing_indices

Result = TypeVar("Result")


class LabelValues(TypedDict, total=False):
    """The values of a label that an annotator can change; omitted values stay unchanged.

    Attributes:
        mode: The mode (slug).
        target: The span range.
        note: The note.
        confidence: A number in [0, 1]; None for no confidence.
        severity: The severity; None for none.
    """

    mode: str
    target: Target
    note: str
    confidence: float | None
    severity: Severity | None


class SessionWrite(Struct, frozen=True):
    """The write of a command: everything needed to record it in any thread."""

    workspace: Workspace
    trace_id: str
    events: Sequence[NewEvent]
    undoes: str | None
    redoes: str | None
    known_seq: int
    indices: Mapping[str, SpanIndex]

    def record(self) -> tuple[Event, ...]:
        """Write the events in one transaction, and return them with their recorded values.

        Raises:
            ChangedElsewhere: The annotator has changed the trace in another window.
            WorkspaceError: The events cannot be written.
        """
        return self.workspace.append(
            self.events,
            undoes=self.undoes,
            redoes=self.redoes,
            known_seq=self.known_seq,
            indices={self.trace_id: self.indices} if self.indices else None,
        )


class SessionState(Struct, frozen=True):
    """The state of a session as read from the workspace; None for parts that were not read."""

    passes: Passes | None
    others: OthersWork | None


class Session:
    """The work of one annotator on one trace under one taxonomy.

    Each command is one transaction and is on disk when it returns. An impossible command raises
    ``SessionError``, and a failed write ``WorkspaceError``; then nothing has changed. ``version``
    grows with every change.

    A caller that must not wait for the disk splits a command in three: ``plan`` prepares the write,
    ``SessionWrite.record`` may run in another thread, and ``apply_write`` shows the result.
    Likewise ``read_state`` may run in another thread, and ``show_state`` shows the result.
    """

    @classmethod
    def open(
        cls,
        workspace: Workspace,
        trace: Trace,
        taxonomy: Taxonomy,
        annotator: str,
        *,
        blind: bool,
    ) -> Session:
        """Start to work on a trace; register trace, taxonomy and annotator if they are new.

        No pass begins before the first change. In a retest nothing of earlier passes is shown.

        Args:
            workspace: The workspace.
            trace: The trace.
            taxonomy: The taxonomy.
            annotator: The annotator.
            blind: True if the annotator works blind.

        Raises:
            SessionError: The name is a judge's.
            WorkspaceError: The workspace cannot be written.
        """
        kind = annotator_kind(annotator)
        if kind is AnnotatorKind.JUDGE:
            raise SessionError(f"{annotator!r} is a judge's name; give the name of a person")
        workspace.add_taxonomy(taxonomy)
        workspace.add_annotator(annotator, kind)
        trace_id = register_opened_trace(workspace, trace)
        conditions = conditions_for(workspace, annotator, trace_id, taxonomy.ref)
        return cls(
            workspace, trace, taxonomy, annotator, trace_id, blind=blind, conditions=conditions
        )

    def __init__(
        self,
        workspace: Workspace,
        trace: Trace,
        taxonomy: Taxonomy,
        annotator: str,
        trace_id: str,
        *,
        blind: bool,
        conditions: StudyConditions,
    ) -> None:
        self.workspace = workspace
        self.trace = trace
        self.taxonomy = taxonomy
        self.annotator = annotator
        self.trace_id = trace_id
        self.blind = blind
        self._conditions = conditions
        self.version = 0
        """The number of changes so far."""
        self._modes = {mode.slug for mode in taxonomy.all_modes}
        self._messages = ChangeMessages(taxonomy, trace, self._find_visible_suggestion)
        self._read_model = ReadModel(workspace, trace, trace_id, taxonomy.ref, annotator)
        self._visible_version = -1
        """The ``version`` that ``_read_model`` shows; -1 before the first update."""
        self._judge_on_screen = False
        """True if suggestions were shown in this session."""
        self._elsewhere_message = ""
        """The message about changes in other windows, until it is fetched."""
        self._registered_spans = len(trace) if trace.loaded.complete else None
        """The number of registered spans; None if the trace was not completely loaded."""
        self._planned: list[SessionWrite] | None = None
        """The writes of the command inside ``plan``; None outside of ``plan``."""
        self._stored_indices: dict[str, SpanIndex] = {}
        """The indices of spans that this session has stored in the workspace."""
        self._take_passes(self._read_passes(), in_retest=conditions.retest)
        self._leave_blind_pass()

    def _visible_state(self) -> ReadModel:
        """Return the visible state after the last change."""
        if self._visible_version != self.version:
            self._read_model.update(self._passes.current, self._passes.reviews)
            self._visible_version = self.version
        return self._read_model

    def _visible_others(self) -> ReadModel:
        """Return the visible state, with others' labels as far as they may be shown."""
        state = self._visible_state()
        if state.must_read(people=self.others_shown):
            state.show_others(state.read_others(), people=self.others_shown)
        return state

    def _find_visible_suggestion(self, suggestion_id: str) -> Suggestion | None:
        """Return a suggestion; None if it does not exist or suggestions are hidden."""
        if not self.suggestions_visible:
            return None
        return self._visible_others().suggestion(suggestion_id)

    @property
    def current(self) -> Pass | None:
        """The current pass, finished or not; None if no pass has begun."""
        current = self._passes.current
        return None if current is None else current.as_pass()

    @property
    def finished(self) -> bool:
        """True if the current pass is finished; an edit then begins the next one."""
        current = self._passes.current
        return current is not None and current.finished_at is not None

    @property
    def in_retest(self) -> bool:
        """True if the annotator labels a finished trace again; the first labels are hidden."""
        return self._passes.in_retest

    @property
    def labels(self) -> tuple[Label, ...]:
        """The annotator's labels in this pass: on the whole trace first, then in span order."""
        return self._visible_state().own.in_order()

    @property
    def labels_by_id(self) -> Mapping[str, Label]:
        """The labels by their ids; a changed label is another object."""
        current = self._passes.current
        return MappingProxyType({} if current is None else current.labels)

    @property
    def labels_of_modes(self) -> Mapping[str, int]:
        """The number of the annotator's labels by mode."""
        return MappingProxyType(self._visible_state().own.by_mode)

    def labels_at(self, key: str) -> tuple[Label, ...]:
        """Return the annotator's labels that cover a span, without labels on the whole trace."""
        return self._visible_state().own.at(key, self.trace.index_of(key))

    @property
    def verdicts(self) -> Mapping[str, VerdictValue]:
        """The verdict on each mode that has one; a mode with labels is present."""
        return self._visible_state().verdicts

    def verdict(self, mode: str) -> VerdictValue | None:
        """Return the verdict on a mode (slug); None if it is open."""
        return self.verdicts.get(mode)

    @property
    def outcome_visible(self) -> bool:
        """True if outcome, reward and ground truth may be shown."""
        return not self.blind or self._passes.revealed

    @property
    def suggestions_visible(self) -> bool:
        """True if judges' suggestions may be shown."""
        return self.outcome_visible and not self._suggestions_withheld

    @property
    def _suggestions_withheld(self) -> bool:
        """True if a study hides suggestions in the current or the next pass."""
        if self._passes.revealed:
            return False
        current = self._passes.current
        return self._conditions.withheld if current is None else current.withheld

    @property
    def open_modes_answer(self) -> Literal["leave", "absent"] | None:
        """The effect of finishing on modes without a verdict; None to ask the annotator.

        They become absent if all spans were read. Otherwise the study decides, if there is one.
        """
        if not self.unread():
            return "absent"
        return self._conditions.open_modes

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """Judges' suggestions in reading order, doubtful quotes last; none while hidden."""
        return self._visible_others().suggestions if self.suggestions_visible else ()

    @property
    def look_here(self) -> tuple[str, ...]:
        """The keys of the spans that probably contain the decisive step; none while hidden."""
        return self._visible_others().others_work.look_here if self.suggestions_visible else ()

    @property
    def judged_by(self) -> tuple[str, ...]:
        """The judges with labels; without any, all judges that have judged the trace.

        Empty while suggestions are hidden.
        """
        return self._visible_others().others_work.judges if self.suggestions_visible else ()

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """The suggestions without an answer, in the same order."""
        return self._visible_others().pending if self.suggestions_visible else ()

    @property
    def pending_by_id(self) -> Mapping[str, Suggestion]:
        """The suggestions without an answer, by their ids."""
        is_visible = self.suggestions_visible
        return MappingProxyType(self._visible_others().pending_by_id if is_visible else {})

    @property
    def others_shown(self) -> bool:
        """True if others' labels may be shown: after ``reveal``, or to an adjudicator."""
        return self._passes.revealed

    @property
    def others(self) -> tuple[Label, ...]:
        """Other people's labels; none while hidden."""
        return self._visible_others().others if self.others_shown else ()

    def other_people(self) -> tuple[str, ...]:
        """Return the others who have labelled or finished the trace; may run in any thread.

        A server returns only those whose work this annotator may see.
        """
        passes = self.workspace.passes(trace_id=self.trace_id, taxonomy=self.taxonomy.ref)
        people = {trace_pass.annotator for trace_pass in passes if trace_pass.finished}
        people |= {label.annotator for label in self._read_model.read_others().labels}
        people.discard(self.annotator)
        return tuple(sorted(name for name in people if not is_judge(name)))

    def may_show_others(self) -> bool:
        """Return whether ``reveal`` may show labels of others; may run in any thread."""
        is_on_server = self.workspace.member is not None  # which may hide the work of others
        return is_on_server or bool(self.other_people())

    @property
    def span_notes(self) -> Mapping[str, str]:
        """The annotator's notes on spans of this pass, by key."""
        current = self._passes.current
        return MappingProxyType({} if current is None else current.notes)

    @property
    def read(self) -> Set[str]:
        """The keys of the spans that the annotator has read in any pass, or in the retest."""
        return self._passes.read

    def unread(self) -> tuple[range, ...]:
        """Return the ranges of loaded spans that were not read, in order."""
        return self._passes.read.unread()

    def toggle_label(self, mode: str, target: Target, *, suggestions_on_screen: bool) -> Change:
        """Add a label, or remove the label with exactly this mode and target.

        A new label removes an absent or unsure verdict on the mode.

        Args:
            mode: The slug of the mode.
            target: The span range.
            suggestions_on_screen: True if suggestions are shown to the annotator.

        Raises:
            SessionError: The mode or a span does not exist.
            WorkspaceError: The label cannot be written.
        """
        self._check_mode(mode)
        target = self._checked_target(target)
        if suggestions_on_screen:
            self._judge_on_screen = True
        change = self._begin_change()
        label = change.state.find(mode, target)
        if label is not None:
            change.remove_label(label)
        else:
            change.add_label(mode, target, saw_suggestions=suggestions_on_screen)
        return self._commit_change(change)

    def remove_label(self, label_id: str) -> Change:
        """Remove a label; suggestions that were answered with it wait again."""
        change = self._begin_change()
        change.remove_label(self._own_label(change, label_id))
        return self._commit_change(change)

    def edit_label(self, label_id: str, **values: Unpack[LabelValues]) -> Change:
        """Change values of a label of the annotator; omitted values stay unchanged.

        An accepted suggestion counts as edited once its mode or target changes.

        Args:
            label_id: The id of the label.
            values: The new values.

        Raises:
            SessionError: A value is invalid, or the change would duplicate another label.
            WorkspaceError: The change cannot be written.
        """
        change = self._begin_change()
        previous = self._own_label(change, label_id)
        if "mode" in values:
            self._check_mode(values["mode"])
        if "target" in values:
            values["target"] = self._checked_target(values["target"])
        confidence = values.get("confidence")
        if confidence is not None and not 0 <= confidence <= 1:
            raise SessionError(f"a confidence must be from 0 to 1, not {confidence}")
        return self._change_label(change, previous, structs.replace(previous, **values))

    def _change_label(self, change: PendingChange, previous: Label, changed: Label) -> Change:
        """Replace a label by its changed copy, unless they are equal.

        Raises:
            SessionError: Another label has the same mode and target.
        """
        duplicate = change.state.find(changed.mode, changed.target)
        if duplicate is not None and duplicate.id != changed.id:
            location = self._messages.location(changed.target)
            raise SessionError(
                f"you already have {self._messages.mode(changed.mode)} on {location}"
            )
        if previous == changed:
            return Change("nothing changed", changed.mode, changed.target, changed.target.first)
        has_moved = (previous.mode, previous.target) != (changed.mode, changed.target)
        if has_moved and previous.origin is Origin.ACCEPTED:
            change.mark_as_edited(previous)
            changed = structs.replace(changed, origin=Origin.EDITED)
        change.change_label(previous, changed)
        return self._commit_change(change)

    def set_verdict(
        self, mode: str, value: VerdictValue | None, *, remove_labels: bool = False
    ) -> Change:
        """Set the verdict absent or unsure on a mode; the same verdict again removes it.

        Args:
            mode: The slug of the mode.
            value: The verdict; None removes any verdict.
            remove_labels: True to remove labels of the mode.

        Raises:
            SessionError: The mode has labels that must stay, or it cannot have this verdict.
            WorkspaceError: The verdict cannot be written.
        """
        self._check_mode(mode)
        if value is VerdictValue.PRESENT:
            raise SessionError("label a span or the whole trace to mark a mode as present")
        if all(candidate.slug != mode for candidate in self.taxonomy.modes):
            raise SessionError(f"{self._messages.mode(mode)} can only be a label on a place")
        change = self._begin_change()
        labels = change.state.labels_of(mode)
        if labels and not remove_labels:
            count = counted(len(labels), "label")
            raise SessionError(f"remove {count} of {self._messages.mode(mode)} on this trace first")
        for label in labels:
            change.remove_label(label)
        is_repeated = not labels and change.state.verdicts.get(mode) is value
        change.set_verdict(mode, None if is_repeated else value)
        if not change.changes_something:
            return Change(f"{self._messages.mode(mode)} already has no verdict", mode)
        return self._commit_change(change)

    def note_span(self, key: str, text: str) -> Change:
        """Write a note on a span; an empty text removes it.

        Args:
            key: The key of the span.
            text: The note.

        Raises:
            SessionError: There is no such span.
            WorkspaceError: The note cannot be written.
        """
        self._checked_target(Target(key, key))
        change = self._begin_change()
        change.set_note(key, text.strip())
        if not change.changes_something:
            return Change("nothing changed", key=key)
        return self._commit_change(change)

    def accept(self, suggestion_id: str) -> Change:
        """Accept a suggestion; an existing label with its mode and target is used."""
        suggestion = self._require_visible_suggestion(suggestion_id)
        self._check_mode(suggestion.mode)
        return self._answer([suggestion], PendingChange.accept)

    def edit(self, suggestion_id: str, mode: str, target: Target) -> Change:
        """Accept a suggestion with another mode or target.

        Args:
            suggestion_id: The id of the suggestion.
            mode: The slug of the mode.
            target: The span range.

        Raises:
            SessionError: The suggestion is hidden or gone, or the mode or a span does not exist.
            WorkspaceError: The answer cannot be written.
        """
        suggestion = self._require_visible_suggestion(suggestion_id)
        self._check_mode(mode)
        target = self._checked_target(target)
        return self._answer([suggestion], partial(PendingChange.accept, mode=mode, target=target))

    def reject(self, suggestion_id: str, reason: str = "") -> Change:
        """Reject a suggestion, and remove the label of an earlier acceptance.

        The mode gets no verdict.

        Args:
            suggestion_id: The id of the suggestion.
            reason: The reason.

        Raises:
            SessionError: The suggestion is hidden or gone.
            WorkspaceError: The answer cannot be written.
        """
        suggestion = self._require_visible_suggestion(suggestion_id)
        return self._answer([suggestion], partial(PendingChange.reject, reason=reason))

    def answer_all(
        self,
        suggestion_ids: Sequence[str],
        answer: Literal[ReviewAnswer.ACCEPT, ReviewAnswer.REJECT],
    ) -> Change:
        """Accept or reject several suggestions as one change.

        Args:
            suggestion_ids: The ids of the suggestions.
            answer: The answer to all.

        Raises:
            SessionError: A suggestion is hidden or gone, or there is none.
            WorkspaceError: The answers cannot be written.
        """
        suggestions = [
            self._require_visible_suggestion(suggestion_id) for suggestion_id in suggestion_ids
        ]
        if not suggestions:
            raise SessionError("there is no suggestion to answer")
        rejects = answer is ReviewAnswer.REJECT
        return self._answer(suggestions, PendingChange.reject if rejects else PendingChange.accept)

    def _answer(
        self,
        suggestions: Sequence[Suggestion],
        add_answer: Callable[[PendingChange, Suggestion], None],
    ) -> Change:
        """Answer suggestions in one change.

        ``add_answer`` adds the answer to one suggestion to the change.
        """
        self._judge_on_screen = True
        change = self._begin_change()
        for suggestion in suggestions:
            add_answer(change, suggestion)
        if change.changes_something:
            return self._commit_change(change)
        last = suggestions[-1]
        message = "the suggestion already has this answer"
        return Change(message, last.mode, last.target, last.evidence_key)

    def mark_read(self, keys: Iterable[str], ranges: Iterable[range] = ()) -> None:
        """Record that spans were read, unless they are recorded already or the pass is frozen.

        Args:
            keys: The keys of single spans.
            ranges: Ranges of span indices; long ranges are stored by their two ends.
        """
        single_keys = list(keys)
        long_ranges = []
        for indices in ranges:
            if len(indices) > SHORT_RANGE:
                long_ranges.append(indices)
            else:
                single_keys += [self.trace.span(index).key for index in indices]
        single_keys = list(dict.fromkeys(single_keys))
        self._retry_after_reload(lambda: self._mark_read(single_keys, long_ranges))

    def _retry_after_reload(self, record: Callable[[], None]) -> None:
        """Record something; if another window has changed the trace, reload it and try again."""
        try:
            record()
        except ChangedElsewhere:
            self.reload()
            record()

    def _mark_read(self, keys: Sequence[str], ranges: Sequence[range]) -> None:
        """Write the new spans that were read, unless the pass is frozen."""
        read_spans = self._passes.read
        trace = self.trace
        new_keys = tuple(
            key for key in keys if key not in read_spans and trace.index_of(key) is not None
        )
        new_ranges = tuple(
            SpanRange(trace.span(indices.start).key, trace.span(indices.stop - 1).key)
            for indices in ranges
            if not read_spans.has_range(indices.start, indices.stop)
        )
        if (new_keys or new_ranges) and not self._passes.frozen:
            change = self._begin_change()
            read_fact = SpansRead(new_keys, new_ranges)
            self._execute(self._new_write([*change.facts, read_fact], change.state.number))

    def note_suggestions_on_screen(self) -> None:
        """Record once per pass that a judge's suggestions are shown.

        Before the first pass this is written when the pass begins.
        """
        if not self.suggestions_visible:
            return
        self._judge_on_screen = True
        self._retry_after_reload(self._note_judge_seen)

    def _note_judge_seen(self) -> None:
        """Write that suggestions were seen in the current pass, unless it is recorded."""
        current = self._passes.current
        if current is not None and not self._passes.frozen and not current.judge_seen:
            self._execute(self._new_write([SuggestionsSeen()], current.number))

    def reveal(self) -> None:
        """Show others' labels and the outcome; the finish can then no longer be undone.

        Raises:
            SessionError: The trace is not finished.
        """
        if self._passes.revealed:
            return
        current = self._passes.current
        if current is None or current.finished_at is None:
            raise SessionError("others' labels are shown once you have finished the trace")
        self._commit(self._new_write([Revealed("others")], current.number))

    def finish(
        self,
        *,
        open_modes: Literal["leave", "absent"],
        split_modes: Collection[str] | None = None,
    ) -> Change:
        """Freeze the pass; modes without a verdict stay open or become absent.

        Split modes are new modes into which the codebook has split a labelled mode. They stay open
        until the annotator has judged one of them.

        Args:
            open_modes: The action for modes without a verdict.
            split_modes: The result of ``before_finish``; None to call it.

        Raises:
            SessionError: The trace is finished already, or still being read.
            WorkspaceError: The finish cannot be written.
        """
        if split_modes is None:
            split_modes = self.before_finish(open_modes)
        change = self._begin_change()
        if open_modes == "absent":
            for mode in self._modes_that_become_absent(change.state, split_modes):
                change.set_verdict(mode, VerdictValue.ABSENT)
        change.record(self._finish_fact(open_modes))
        return self._commit_change(change)

    def _modes_that_become_absent(
        self, state: PassState, split_modes: Collection[str]
    ) -> Sequence[str]:
        """Return the modes that become absent; split modes stay open if none of them is judged."""
        kept_modes = {label.mode for label in state.labels.values()} | state.verdicts.keys()
        if kept_modes.isdisjoint(split_modes):
            kept_modes.update(split_modes)
        return [mode.slug for mode in self.taxonomy.modes if mode.slug not in kept_modes]

    def before_finish(self, open_modes: Literal["leave", "absent"]) -> tuple[str, ...]:
        """Prepare ``finish``: register the trace's new spans, and return the split modes.

        Nothing visible changes, so this may run in another thread.

        Args:
            open_modes: The action for modes without a verdict.

        Returns:
            The modes from a split that the annotator must look at again; empty for ``leave``.

        Raises:
            SessionError: The trace is finished already, or still being read.
            WorkspaceError: The workspace cannot be written.
        """
        if self.finished:
            raise SessionError(
                "this trace is already finished; after a changed label it is unfinished again"
            )
        if not self.trace.loaded.complete:
            raise SessionError("this trace is still loading; finish it when it is complete")
        if len(self.trace) != self._registered_spans:
            # The trace has grown, or more of it is loaded.
            register_opened_trace(self.workspace, self.trace)
            self._registered_spans = len(self.trace)
        if open_modes == "leave":
            return ()
        split_modes = self.workspace.modes_to_look_at_again(
            self.annotator, self.taxonomy.ref, self.trace_id
        )
        return tuple(split_modes.get(self.trace_id, ()))

    def _finish_fact(self, open_modes: str) -> PassFinished:
        """Return the fact of a finish at this moment."""
        read_count = sum(map(len, self._passes.read.read_ranges()))
        return PassFinished(open_modes, read=read_count, spans=len(self.trace))

    @property
    def can_undo(self) -> bool:
        """True if a change in this pass can be undone."""
        return self._passes.last_done is not None

    def undo(self) -> Change | None:
        """Undo the last change in this pass; return None if there is none.

        Raises:
            SessionError: Others' labels were shown after the finish.
        """
        if self._passes.shown_since_finish:
            raise SessionError(
                "the finish cannot be undone, as you have seen others' answers; if you change a "
                "label, the trace is unfinished again; agreement still counts your first finish"
            )
        action = self._passes.last_done
        if action is None:
            return None
        change = self._messages.undone(action.facts)
        self._commit(self._new_write(action.undoing_facts(), action.pass_number, undoes=action))
        return change

    def redo(self) -> Change | None:
        """Redo the last undone change; return None if there is none."""
        action = self._passes.last_undone
        if action is None:
            return None
        # A finish records the number of spans that are read by now.
        facts: list[Fact] = [
            self._finish_fact(fact.open_modes) if isinstance(fact, PassFinished) else fact
            for fact in action.facts
        ]
        change = self._messages.change_with_message(facts)
        self._commit(self._new_write(facts, action.pass_number, redoes=action))
        return structs.replace(change, message=f"redone: {change.message}")

    def plan(self, command: Callable[[Session], Result]) -> tuple[Result, SessionWrite | None]:
        """Execute a command without its write, and return the result and the write.

        The session must not be used until the write was passed to ``apply_write`` or has failed.

        Args:
            command: Calls one method of this session.

        Returns:
            The result of the command, and its write; None for the write if there is nothing to
            write.
        """
        self._planned = []
        try:
            result = command(self)
            write = self._planned[0] if self._planned else None
        finally:
            self._planned = None
        return result, write

    def apply_write(self, write: SessionWrite, recorded: Iterable[Event]) -> None:
        """Show a write that was recorded.

        Args:
            write: The write of a command.
            recorded: The events that ``write.record`` has returned.
        """
        if not self.workspace.waiting:  # a change that waits for the server is kept without indices
            self._stored_indices |= write.indices
        for event in recorded:
            self._passes.apply_event(event)
        self.version += 1

    @property
    def _others_visible(self) -> bool:
        """True if labels of judges or other people may be shown."""
        return self.suggestions_visible or self.others_shown

    @property
    def needs_others(self) -> bool:
        """True if others' labels may be shown and were not read yet."""
        return self._others_visible and self._read_model.must_read(people=self.others_shown)

    def refresh_suggestions(self) -> None:
        """Mark others' labels to be read again."""
        self._read_model.forget_others()
        self.version += 1

    def reload(self) -> None:
        """Read everything again after a change in another window."""
        self.show_state(SessionState(self._read_passes(), None))

    def read_state(self, *, with_own_work: bool | None = None) -> SessionState:
        """Read the current state of the workspace; may run in any thread.

        Args:
            with_own_work: True to include the annotator's own work; None to include it if it was
                changed elsewhere.
        """
        if with_own_work is None:
            last_seq = self.workspace.last_seq(self.annotator, self.trace_id, self.taxonomy.ref)
            with_own_work = last_seq != self._passes.last_seq
        others_work = self._read_model.read_others() if self._others_visible else None
        return SessionState(self._read_passes() if with_own_work else None, others_work)

    def show_state(self, state: SessionState) -> None:
        """Show the result of ``read_state``, and keep a message about changes elsewhere.

        Others' labels that were not read are read when they are next shown.
        """
        if state.passes is not None:
            self._show_passes(state.passes)
        self.refresh_suggestions()
        if state.others is not None:
            self._read_model.show_others(state.others, people=self.others_shown)

    def _show_passes(self, passes: Passes) -> None:
        """Replace the annotator's own work, and keep a message about the differences."""
        previous_labels = self.labels_by_id
        previous_verdicts = self.verdicts
        self._take_passes(passes, in_retest=self.in_retest)
        self.version += 1
        message = self._messages.difference(
            previous_labels, self.labels_by_id, previous_verdicts, self.verdicts
        )
        self._elsewhere_message = ", ".join(filter(None, (self._elsewhere_message, message)))

    def pop_news(self) -> str:
        """Return and clear the message about changes in another window; empty if there are none."""
        message = self._elsewhere_message
        self._elsewhere_message = ""
        return message

    def _read_passes(self) -> Passes:
        """Read the events on this trace, and return the passes that follow from them."""
        ref = self.taxonomy.ref
        events = self.workspace.events(
            trace_id=self.trace_id, annotator=self.annotator, taxonomy=ref
        )
        return Passes(self.annotator, self.trace_id, ref, self.trace, events)

    def _take_passes(self, passes: Passes, *, in_retest: bool) -> None:
        """Replace the passes; in a retest, even a finished one, only its passes are shown."""
        # A retest that was begun in another window continues in this session.
        passes.in_retest = in_retest or passes.retest_open
        self._passes = passes

    def _begin_change(self) -> PendingChange:
        """Return an empty change of the current pass, or of the next pass if it is frozen.

        Raises:
            SessionError: The pass is a finished retest, which cannot be changed.
        """
        if self._passes.in_retest and self._passes.frozen:
            raise SessionError(
                "this retest is finished and cannot be changed; undo reopens it, and opening "
                "the trace again shows all your labels on it"
            )
        return PendingChange(
            self._passes,
            self.workspace.new_id,
            blind=self.blind,
            withheld=self._suggestions_withheld,
            judge_on_screen=self._judge_on_screen and self.suggestions_visible,
        )

    def _commit_change(self, change: PendingChange) -> Change:
        """Write the facts of a change, and return a message about it."""
        result = self._messages.change_with_message(change.facts)
        # A change after the finish begins a second look, the next pass on the trace.
        if change.opens_second_look:
            is_person = annotator_kind(self.annotator).is_person
            use_in_gold = ", the gold (final labels) your last" if is_person else ""
            message = (
                f"{result.message} · the trace is unfinished again: finish it again, or undo · "
                f"agreement counts your first finish{use_in_gold}"
            )
            result = structs.replace(result, message=message)
        self._commit(self._new_write(change.facts, change.state.number))
        return result

    def _commit(self, write: SessionWrite) -> None:
        """Execute the write of a command.

        Raises:
            ChangedMeanwhile: The trace was changed in another window; that change is shown.
        """
        try:
            self._execute(write)
        except ChangedElsewhere as error:
            self.reload()
            raise self.changed_meanwhile() from error

    def changed_meanwhile(self) -> ChangedMeanwhile:
        """Return an error that describes the changes in another window; clear their message."""
        changes = self.pop_news() or "a change that is not visible here"
        return ChangedMeanwhile(f"In another window meanwhile: {changes}. Your key had no effect")

    def _execute(self, write: SessionWrite) -> None:
        """Record a write and show it; inside ``plan``, keep it for the caller instead.

        Raises:
            ChangedElsewhere: The trace was changed in another window; nothing is recorded.
        """
        if self._planned is None:
            self.apply_write(write, write.record())
        else:
            assert not self._planned, "a command writes once"
            self._planned.append(write)

    def _new_write(
        self,
        facts: Sequence[Fact],
        pass_number: int,
        *,
        undoes: Action | None = None,
        redoes: Action | None = None,
    ) -> SessionWrite:
        """Return a write that records facts as events of a pass.

        ``undoes`` or ``redoes`` is the action that the facts undo or repeat.
        """
        undone_events = () if undoes is None else tuple(event.id for event in undoes.events)
        events = [
            NewEvent(
                self.annotator,
                self.trace_id,
                self.taxonomy.ref,
                pass_number,
                fact,
                replaces=undone_events or self._passes.replaced_by(fact),
            )
            for fact in facts
        ]
        return SessionWrite(
            self.workspace,
            self.trace_id,
            events,
            undoes=None if undoes is None else undoes.id,
            redoes=None if redoes is None else redoes.id,
            known_seq=self._passes.last_seq,
            indices=self._new_indices(facts),
        )

    def _new_indices(self, facts: Sequence[Fact]) -> dict[str, SpanIndex]:
        """Return the indices of the spans in facts, without those that are stored already."""
        has_quote_by_key: dict[str, bool] = {}
        for fact in facts:
            has_quote_by_key |= span_keys(fact)
        if not has_quote_by_key:
            return {}
        return indices_in(self.trace, missing_indices(has_quote_by_key, self._stored_indices))

    def _leave_blind_pass(self) -> None:
        """Turn an unfinished blind pass into an assisted one if the session is not blind."""
        current = self._passes.current
        if (
            current is not None
            and not self.blind
            and not self._passes.frozen
            and current.kind is PassKind.BLIND
        ):
            kind_fact = PassKindSet(PassKind.BLIND, PassKind.ASSISTED)
            self._commit(self._new_write([kind_fact], current.number))

    def _check_mode(self, mode: str) -> None:
        if mode not in self._modes:
            raise SessionError(f"{self.taxonomy.ref} has no mode {mode!r}")

    def _checked_target(self, target: Target) -> Target:
        """Return the target with its ends in order and its quote extended to whole masks.

        Raises:
            SessionError: A span is not in the trace, or the quote is invalid.
        """
        if target.first is None or target.last is None:
            return target
        first_index = self._require_index(target.first)
        if first_index > self._require_index(target.last):
            return Target(target.last, target.first)
        return target if target.quote is None else self._with_whole_quote(target, target.quote)

    def _require_index(self, key: str) -> int:
        index = self.trace.index_of(key)
        if index is None:
            raise SessionError(f"there is no span {key!r} in this trace")
        return index

    def _with_whole_quote(self, target: Target, quote: str) -> Target:
        """Return a target with its quote extended to whole masks.

        Raises:
            SessionError: The quote is empty, or its start and end do not fit its length.
        """
        start = target.char_start
        end = target.char_end
        if start is None or end is None or end - start != len(quote) or start < 0:
            raise SessionError("a quote needs its start and end in the span")
        if not quote:
            raise SessionError("a quote must not be empty")
        if self.trace.masks is None or target.first is None:
            return target
        text = self.trace.text(self._require_index(target.first))
        start, end = with_whole_masks(text, start, end)
        return Target(target.first, target.last, text[start:end], start, end)

    def _own_label(self, change: PendingChange, label_id: str) -> Label:
        label = change.label(label_id)
        if label is None:
            raise SessionError("this label no longer exists, or it is not yours")
        return label

    def _require_visible_suggestion(self, suggestion_id: str) -> Suggestion:
        """Return a suggestion; if it is unknown, read the suggestions again first.

        Raises:
            SessionError: The suggestion is not on this trace, or hidden.
        """
        suggestion = self._find_visible_suggestion(suggestion_id)
        if suggestion is None and self.suggestions_visible:
            self.refresh_suggestions()
            suggestion = self._find_visible_suggestion(suggestion_id)
        if suggestion is None:
            raise SessionError("this suggestion is not on this trace, or it is hidden from you")
        return suggestion


def register_opened_trace(workspace: Workspace, trace: Trace) -> str:
    """Register a trace that was read from its file, with the current indices of its spans.

    Args:
        workspace: The workspace.
        trace: The trace.

    Returns:
        The id of the trace in the workspace.
    """
    trace_id = workspace.register_trace(TraceRecord.from_trace(trace))
    workspace.refresh_span_indices(trace_id, trace)
    return trace_id
