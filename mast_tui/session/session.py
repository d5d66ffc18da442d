"""The work of an annotator on an open trace; screens and commands both go through here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Literal, TypeVar

from msgspec import structs

from mast_tui.counts import counted
from mast_tui.errors import ChangedElsewhere, ChangedMeanwhile, SessionError
from mast_tui.labels import (
    AnnotatorKind,
    Answer,
    Label,
    Origin,
    Pass,
    PassKind,
    Severity,
    Target,
    VerdictValue,
    annotator_kind,
)
from mast_tui.session.messages import Change, Words
from mast_tui.session.pass_state import SHORT_RUN, Action, Passes
from mast_tui.session.pending_change import PendingChange
from mast_tui.session.read_model import OthersWork, ReadModel, Suggestion
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
    ReviewGiven,
    SpanRange,
    SpansRead,
    SuggestionsSeen,
    span_keys,
)
from mast_tui.workspace.records import SpanIndex, indices_in, missing_indices


class Keep(Enum):
    """Stands for a value that stays as it is, where None means something."""

    KEEP = "keep"


KEEP = Keep.KEEP

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class SessionWrite:
    """The one write of a command: all that recording it takes, in whatever thread."""

    workspace: Workspace
    trace_id: str
    events: Sequence[NewEvent]
    undoes: str | None
    redoes: str | None
    known_seq: int
    indices: Mapping[str, SpanIndex]

    def record(self) -> tuple[Event, ...]:
        """Write the events in one transaction, and return them as they are recorded.

        Raises:
            ChangedElsewhere: The annotator has changed the trace in another window.
            WorkspaceError: They cannot be written.
        """
        return self.workspace.append(
            self.events,
            undoes=self.undoes,
            redoes=self.redoes,
            known_seq=self.known_seq,
            indices={self.trace_id: self.indices} if self.indices else None,
        )


@dataclass(frozen=True, slots=True)
class ReadAnew:
    """The state of a session as the workspace has it now; None for what need not be read."""

    passes: Passes | None
    others: OthersWork | None


class Session:
    """One annotator at work on one trace under one taxonomy.

    Each command is one transaction and is on disk when it returns. It raises ``SessionError``
    for what cannot be done and ``WorkspaceError`` for what cannot be written, both in words, and
    then nothing has changed. ``version`` grows with every change.

    Who must not wait for the disk splits that in three: ``planned`` carries a command out up to its
    write, ``SessionWrite.record`` may then run in another thread, and ``take_in`` shows what was
    recorded. Meanwhile the session stays as it was. In the same way ``read_anew`` may run in
    another thread, and ``take_anew`` shows what it has read.
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
        """Sit down at a trace; registers trace, taxonomy and annotator where they are new.

        Begins no pass: the first thing worth recording does. A study under this taxonomy can have
        a finished trace come back (a retest): then nothing of the first time is shown, and from
        the next opening after the finish on it is as it was before.
        """
        kind = annotator_kind(annotator)
        if kind is AnnotatorKind.JUDGE:
            raise SessionError(f"{annotator!r} is a judge's name; give a person's")
        workspace.add_taxonomy(taxonomy)
        workspace.add_annotator(annotator, kind)
        trace_id = known_trace(workspace, trace)
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
        self._modes = {mode.slug for mode in taxonomy.all_modes}
        self._words = Words(taxonomy, trace, self._suggestion)
        self._read_model = ReadModel(workspace, trace, trace_id, taxonomy.ref, annotator)
        self._shown_version = -1
        self._judge_on_screen = False
        self._news = ""
        self._in_retest = conditions.retest
        self._registered_spans = len(trace) if trace.loaded.complete else None
        """How many spans the workspace knows of the trace."""
        self._planned: list[SessionWrite] | None = None
        """The write of a command that is carried out up to it, as ``planned`` does."""
        self._kept_indices: dict[str, SpanIndex] = {}
        """The indices of spans that this session has kept in the workspace."""
        self._take_passes(self._load())
        self._leave_blind_pass()

    # What is seen

    def _shown(self) -> ReadModel:
        """Return what is shown, as of the last change."""
        if self._shown_version != self.version:
            self._read_model.follow(self._passes.current, self._passes.reviews)
            self._shown_version = self.version
        return self._read_model

    def _shown_of_others(self) -> ReadModel:
        """Return what is shown, after what others say was read where that was not done yet."""
        shown = self._shown()
        if shown.lacks(people=self.others_shown):
            shown.take_others(shown.read_others(), people=self.others_shown)
        return shown

    def _suggestion(self, suggestion_id: str) -> Suggestion | None:
        visible = self.suggestions_visible
        return self._shown_of_others().suggestion(suggestion_id) if visible else None

    @property
    def current(self) -> Pass | None:
        """The pass that is being worked on, or the finished one; None before there is any."""
        current = self._passes.current
        return None if current is None else current.as_pass()

    @property
    def finished(self) -> bool:
        """True if the current pass is finished: then an edit opens the next one."""
        current = self._passes.current
        return current is not None and current.finished_at is not None

    @property
    def labels(self) -> tuple[Label, ...]:
        """One's own labels of this pass, those on the whole trace first, then in span order."""
        return self._shown().own.in_order()

    @property
    def labels_by_id(self) -> Mapping[str, Label]:
        """The same by their ids; a label that was changed is another object."""
        current = self._passes.current
        return MappingProxyType({} if current is None else current.labels)

    @property
    def labels_of_modes(self) -> Mapping[str, int]:
        """The number of one's own labels by mode."""
        return MappingProxyType(self._shown().own.by_mode)

    def labels_at(self, key: str) -> tuple[Label, ...]:
        """One's own labels that cover a span; those on the whole trace are on none of them."""
        return self._shown().own.at(key, self.trace.index_of(key))

    @property
    def verdicts(self) -> Mapping[str, VerdictValue]:
        """The verdict on each mode that has one; a mode with labels is present."""
        return self._shown().verdicts

    def verdict(self, mode: str) -> VerdictValue | None:
        """The verdict on a mode (slug), or None where it is open."""
        return self.verdicts.get(mode)

    @property
    def hidden_visible(self) -> bool:
        """Whether outcome, reward, ground truth and the like may be shown."""
        return not self.blind or self._passes.revealed

    @property
    def suggestions_visible(self) -> bool:
        """Whether anything that a judge says may be shown.

        Where a study withholds suggestions they come after finishing, once asked for (``reveal``).
        """
        return self.hidden_visible and not self._withheld

    @property
    def _withheld(self) -> bool:
        """Whether a study keeps suggestions from this pass, or from the one that would begin."""
        if self._passes.revealed:
            return False
        current = self._passes.current
        return self._conditions.withheld if current is None else current.withheld

    @property
    def open_modes_answer(self) -> Literal["leave", "absent"] | None:
        """What finishing does with modes without a verdict; None where the annotator is asked.

        With everything read they are absent; else a study can have fixed the answer.
        """
        if not self.unread():
            return "absent"
        return self._conditions.open_modes

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """Judges' suggestions in the reading order of their evidence; none while hidden.

        Those whose quote was not found come last.
        """
        return self._shown_of_others().suggestions if self.suggestions_visible else ()

    @property
    def judged_by(self) -> tuple[str, ...]:
        """The judges that suggest something here, or else have looked at the trace.

        None while their word is hidden.
        """
        return self._shown_of_others().judges if self.suggestions_visible else ()

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """The suggestions that wait for this annotator's answer, in the same order."""
        return self._shown_of_others().pending if self.suggestions_visible else ()

    @property
    def pending_by_id(self) -> Mapping[str, Suggestion]:
        """The same by their ids."""
        visible = self.suggestions_visible
        return MappingProxyType(self._shown_of_others().pending_by_id if visible else {})

    @property
    def others_shown(self) -> bool:
        """Whether other people's labels may be shown: finished, and then asked for (``reveal``),
        or taken on as an adjudicator."""
        return self._passes.revealed

    @property
    def others(self) -> tuple[Label, ...]:
        """Other people's labels; none before ``reveal``."""
        return self._shown_of_others().others if self.others_shown else ()

    @property
    def span_notes(self) -> Mapping[str, str]:
        """One's own notes on spans of this pass, by key."""
        current = self._passes.current
        return MappingProxyType({} if current is None else current.notes)

    @property
    def read(self) -> Set[str]:
        """The keys of the spans that this annotator has read, in whatever pass.

        A retest begins with nothing read.
        """
        return self._passes.read

    def unread(self) -> tuple[range, ...]:
        """The stretches of spans that were not read, of those that are loaded, in order."""
        return self._passes.read.unread()

    # Labels and verdicts

    def toggle_label(self, mode: str, target: Target, *, suggestions_on_screen: bool) -> Change:
        """Label ``target`` with a mode (slug), or take off the label with exactly this target.

        Labelling withdraws an absent or unsure said of the mode.
        """
        self._check_mode(mode)
        target = self._checked_target(target)
        if suggestions_on_screen:
            self._judge_on_screen = True
        change = self._begin()
        label = change.state.find(mode, target)
        if label is not None:
            change.remove_label(label)
        else:
            change.add_label(mode, target, saw_suggestions=suggestions_on_screen)
        return self._commit(change)

    def remove_label(self, label_id: str) -> Change:
        """Remove one of one's own labels; a suggestion that was answered with it waits again."""
        change = self._begin()
        change.remove_label(self._own_label(change, label_id))
        return self._commit(change)

    def edit_label(
        self,
        label_id: str,
        *,
        mode: str | None = None,
        target: Target | None = None,
        note: str | None = None,
        confidence: float | Keep | None = KEEP,
        severity: Severity | Keep | None = KEEP,
    ) -> Change:
        """Change one of one's own labels; what is not given stays.

        An accepted suggestion whose mode or place is changed counts as edited.
        """
        change = self._begin()
        before = self._own_label(change, label_id)
        after = before
        if mode is not None:
            self._check_mode(mode)
            after = structs.replace(after, mode=mode)
        if target is not None:
            after = structs.replace(after, target=self._checked_target(target))
        if note is not None:
            after = structs.replace(after, note=note)
        if not isinstance(confidence, Keep):
            if confidence is not None and not 0 <= confidence <= 1:
                raise SessionError(f"a confidence lies between 0 and 1, not at {confidence}")
            after = structs.replace(after, confidence=confidence)
        if not isinstance(severity, Keep):
            after = structs.replace(after, severity=severity)
        return self._change_label(change, before, after)

    def _change_label(self, change: PendingChange, before: Label, after: Label) -> Change:
        same = change.state.find(after.mode, after.target)
        if same is not None and same.id != after.id:
            place = self._words.place(after.target)
            raise SessionError(f"you have {self._words.mode(after.mode)} on {place} already")
        if before == after:
            return Change("nothing changed", after.mode, after.target, after.target.first)
        moved = (before.mode, before.target) != (after.mode, after.target)
        if moved and before.origin is Origin.ACCEPTED:
            change.accepted_with_changes(before)
            after = structs.replace(after, origin=Origin.EDITED)
        change.change_label(before, after)
        return self._commit(change)

    def set_verdict(
        self, mode: str, value: VerdictValue | None, *, remove_labels: bool = False
    ) -> Change:
        """Call a mode absent or unsure; the same again, or None, leaves it open.

        Raises ``SessionError`` where labels say that it shows, unless they are to be removed.
        """
        self._check_mode(mode)
        if value is VerdictValue.PRESENT:
            raise SessionError("label a span or the whole trace to say that a mode shows")
        if all(one.slug != mode for one in self.taxonomy.modes):
            raise SessionError(f"{self._words.mode(mode)} can only be labelled where it shows")
        change = self._begin()
        labels = change.state.labels_of(mode)
        if labels and not remove_labels:
            count = counted(len(labels), "label")
            raise SessionError(
                f"{count} of {self._words.mode(mode)} stand on this trace; remove them first"
            )
        for label in labels:
            change.remove_label(label)
        if not labels and change.state.verdicts.get(mode) is value:
            value = None
        change.set_verdict(mode, value)
        if not change.changes_something:
            return Change(f"{self._words.mode(mode)} is open already", mode)
        return self._commit(change)

    def note_span(self, key: str, text: str) -> Change:
        """Write a note beside a span; an empty one takes it away."""
        self._checked_target(Target(key, key))
        change = self._begin()
        change.set_note(key, text.strip())
        if not change.changes_something:
            return Change("nothing changed", key=key)
        return self._commit(change)

    # Suggestions

    def accept(self, suggestion_id: str) -> Change:
        """Make a label of one's own of a suggestion; one that is there already will do."""
        suggestion = self._visible(suggestion_id)
        return self._take_over(suggestion, suggestion.mode, suggestion.target, Answer.ACCEPT)

    def edit(self, suggestion_id: str, mode: str, target: Target) -> Change:
        """Accept a suggestion with another mode or place; with its own it is accepted as is."""
        suggestion = self._visible(suggestion_id)
        self._check_mode(mode)
        target = self._checked_target(target)
        if (mode, target) == (suggestion.mode, suggestion.target):
            return self.accept(suggestion_id)
        return self._take_over(suggestion, mode, target, Answer.EDIT)

    def reject(self, suggestion_id: str, reason: str = "") -> Change:
        """Say that a suggestion is wrong; says nothing about its mode otherwise.

        A label that came of accepting it before goes.
        """
        suggestion = self._visible(suggestion_id)
        self._judge_on_screen = True
        change = self._begin()
        self._reject(change, suggestion, reason)
        return self._commit_answer(change, suggestion)

    def answer_all(
        self, suggestion_ids: Sequence[str], answer: Literal[Answer.ACCEPT, Answer.REJECT]
    ) -> Change:
        """Accept or reject several suggestions as one change, which is taken back as one."""
        suggestions = [self._visible(suggestion_id) for suggestion_id in suggestion_ids]
        if not suggestions:
            raise SessionError("there is no suggestion to answer")
        self._judge_on_screen = True
        change = self._begin()
        for one in suggestions:
            if answer is Answer.REJECT:
                self._reject(change, one)
            else:
                self._take(change, one, one.mode, one.target, answer)
        return self._commit_answer(change, suggestions[-1])

    def _reject(self, change: PendingChange, suggestion: Suggestion, reason: str = "") -> None:
        label = self._label_made_of(change, suggestion)
        if label is not None:
            change.remove_label(label)
        change.set_review(suggestion.id, ReviewGiven(Answer.REJECT, reason=reason.strip()))

    def _take_over(
        self, suggestion: Suggestion, mode: str, target: Target, answer: Answer
    ) -> Change:
        self._check_mode(mode)
        self._judge_on_screen = True
        change = self._begin()
        self._take(change, suggestion, mode, target, answer)
        return self._commit_answer(change, suggestion)

    def _take(
        self,
        change: PendingChange,
        suggestion: Suggestion,
        mode: str,
        target: Target,
        answer: Answer,
    ) -> None:
        origin = Origin.ACCEPTED if answer is Answer.ACCEPT else Origin.EDITED
        made = self._label_made_of(change, suggestion)
        label = change.state.find(mode, target)
        if label is None and made is not None:
            after = structs.replace(made, mode=mode, target=target, origin=origin)
            label = change.change_label(made, after)
        elif label is None:
            label = change.add_label(
                mode,
                target,
                origin=origin,
                suggestion=suggestion.id,
                saw_suggestions=True,
                severity=Severity.FATAL if suggestion.remedy else None,
            )
        elif made is not None and made is not label:
            change.remove_label(made)
        change.set_review(suggestion.id, ReviewGiven(answer, label.id))

    def _commit_answer(self, change: PendingChange, suggestion: Suggestion) -> Change:
        if not change.changes_something:
            return Change(
                "answered so already", suggestion.mode, suggestion.target, suggestion.evidence_key
            )
        return self._commit(change)

    def _label_made_of(self, change: PendingChange, suggestion: Suggestion) -> Label | None:
        """The label that came of an earlier answer to this suggestion, not one's own before it."""
        made = (x for x in change.state.labels.values() if x.suggestion == suggestion.id)
        return next(made, None)

    # What is only noted

    def mark_read(self, keys: Iterable[str], runs: Iterable[range] = ()) -> None:
        """Note that spans were read, and ``runs`` of them by their indices, however long.

        Only what is new is written, and nothing once finished.
        """
        single = list(keys)
        long_runs = []
        for run in runs:
            if len(run) > SHORT_RUN:
                long_runs.append(run)
            else:
                single += [self.trace.span(index).key for index in run]
        single = list(dict.fromkeys(single))
        self._note(lambda: self._mark_read(single, long_runs))

    def _note(self, step: Callable[[], None]) -> None:
        """Carry out what is only noted, also where the trace was changed in another window."""
        try:
            step()
        except ChangedElsewhere:
            self.reload()
            step()

    def _mark_read(self, keys: Sequence[str], runs: Sequence[range]) -> None:
        read, index_of, span = self._passes.read, self.trace.index_of, self.trace.span
        new = tuple(key for key in keys if key not in read and index_of(key) is not None)
        ends = tuple(
            SpanRange(span(run.start).key, span(run.stop - 1).key)
            for run in runs
            if not read.has_run(run.start, run.stop)
        )
        if (new or ends) and not self._passes.frozen:
            change = self._begin()
            self._append([*change.facts, SpansRead(new, ends)], change.state.number)

    def note_suggestions_on_screen(self) -> None:
        """Note that a judge's suggestions are shown: what is labelled from here on saw them.

        Written once per pass; before there is a pass, with what begins it.
        """
        if not self.suggestions_visible:
            return
        self._judge_on_screen = True
        self._note(self._note_judge_seen)

    def _note_judge_seen(self) -> None:
        current = self._passes.current
        if current is not None and not self._passes.frozen and not current.judge_seen:
            self._append([SuggestionsSeen()], current.number)

    def reveal(self) -> None:
        """Show what was hidden: from here on the finish stands. Raises before the finish."""
        if self._passes.revealed:
            return
        current = self._passes.current
        if current is None or current.finished_at is None:
            raise SessionError("what others say is shown once you have finished the trace")
        self._write([Revealed("others")], current.number)

    # Finishing

    def finish(
        self,
        *,
        open_modes: Literal["leave", "absent"],
        split_modes: Collection[str] | None = None,
    ) -> Change:
        """Freeze the pass; modes without a verdict stay open or are set absent.

        Where a mode that the annotator had seen was split, and they have said nothing of its parts
        since, these stay open whatever is asked for: one of them shows.

        Args:
            open_modes: What becomes of modes without a verdict.
            split_modes: The result of ``before_finish``; by default that is called.

        Returns:
            What was done.

        Raises:
            SessionError: It is finished already, or still being read.
            WorkspaceError: It cannot be written.
        """
        parts = self.before_finish(open_modes) if split_modes is None else split_modes
        change = self._begin()
        if open_modes == "absent":
            said = {label.mode for label in change.state.labels.values()}
            said |= change.state.verdicts.keys()
            stay = frozenset(parts) if said.isdisjoint(parts) else frozenset[str]()
            for mode in self.taxonomy.modes:
                if mode.slug not in said and mode.slug not in stay:
                    change.set_verdict(mode.slug, VerdictValue.ABSENT)
        change.record(self._finish(open_modes))
        return self._commit(change)

    def before_finish(self, open_modes: Literal["leave", "absent"]) -> tuple[str, ...]:
        """Register spans that have come since the trace was opened, as finishing needs.

        Shows nothing, so that it may run in another thread.

        Args:
            open_modes: What becomes of modes without a verdict.

        Returns:
            The modes that are parts of a mode that was split, where finishing needs them.

        Raises:
            SessionError: The trace is finished already, or still being read.
            WorkspaceError: It cannot be written.
        """
        if self.finished:
            raise SessionError("this trace is finished already; an edit begins a new pass")
        if not self.trace.loaded.complete:
            raise SessionError("this trace is still being read; finish it when it is all there")
        if len(self.trace) != self._registered_spans:
            # It has grown, or was read on, since it was opened.
            known_trace(self.workspace, self.trace)
            self._registered_spans = len(self.trace)
        if open_modes == "leave":
            return ()
        parts = self.workspace.look_again(self.annotator, self.taxonomy.ref, self.trace_id)
        return tuple(parts.get(self.trace_id, ()))

    def _finish(self, open_modes: str) -> PassFinished:
        read = sum(map(len, self._passes.read.stretches()))
        return PassFinished(open_modes, read, len(self.trace))

    # Taking back

    def undo(self) -> Change | None:
        """Take back the last change on this trace; None where there is none in this pass.

        Raises ``SessionError`` for a finish after which something hidden was shown.
        """
        action = self._passes.last_done
        return None if action is None else self._take_back(action)

    def redo(self) -> Change | None:
        """Do again what was taken back last; None where there is nothing."""
        action = self._passes.last_undone
        if action is None:
            return None
        facts: list[Fact] = [
            self._finish(fact.open_modes) if isinstance(fact, PassFinished) else fact
            for fact in action.facts
        ]
        change = self._words.change(facts)
        self._write(facts, action.pass_number, redoes=action.id)
        return replace(change, message=f"again: {change.message}")

    def _take_back(self, action: Action) -> Change:
        current = self._passes.current
        if current is not None and current.finished_at and current.revealed_at:
            raise SessionError(
                "what others say was shown since you finished, so the finish stands; "
                "an edit begins a new pass"
            )
        change = self._words.taken_back(action.facts)
        self._write(
            action.undoing_facts(),
            action.pass_number,
            undoes=action.id,
            replaces=[event.id for event in action.events],
        )
        return change

    # Writing

    def planned(self, command: Callable[[Session], Result]) -> tuple[Result, SessionWrite | None]:
        """Carry out a command up to its write, which is left to the caller.

        Args:
            command: Calls one method of this session.

        Returns:
            What the command returns, and its write; None where it writes nothing. Nothing else may
            be done with the session until the write is given to ``take_in``, or has failed.
        """
        self._planned = []
        try:
            result = command(self)
            write = next(iter(self._planned), None)
        finally:
            self._planned = None
        return result, write

    def take_in(self, write: SessionWrite, recorded: Iterable[Event]) -> None:
        """Show what was recorded.

        Args:
            write: The write of a command.
            recorded: What its ``record`` has returned.
        """
        if not self.workspace.waiting:
            self._kept_indices |= write.indices
        for event in recorded:
            self._passes.take(event)
        self._changed()

    @property
    def lacks_others(self) -> bool:
        """True if something of others may be shown that was not read yet."""
        visible = self.suggestions_visible or self.others_shown
        return visible and self._read_model.lacks(people=self.others_shown)

    def refresh_suggestions(self) -> None:
        """Look again at what judges and others say: a judge has run, or a file was imported."""
        self._read_model.forget_others()
        self._changed()

    def reload(self) -> None:
        """Read everything anew: this annotator has changed the trace elsewhere."""
        self.take_anew(ReadAnew(self._load(), None))

    def read_anew(self, *, passes: bool | None = None) -> ReadAnew:
        """Read what the workspace has now, and change nothing here; may run in any thread.

        Args:
            passes: Whether to read one's own work; by default where it was changed elsewhere.
        """
        if passes is None:
            key = (self.annotator, self.trace_id, self.taxonomy.ref)
            passes = self.workspace.last_seq(*key) != self._passes.last_seq
        visible = self.suggestions_visible or self.others_shown
        others = self._read_model.read_others() if visible else None
        return ReadAnew(self._load() if passes else None, others)

    def take_anew(self, anew: ReadAnew) -> None:
        """Show what ``read_anew`` has read; what it has not read of others is read when shown."""
        labels = dict(self.labels_by_id)
        verdicts = dict(self.verdicts)
        if anew.passes is not None:
            self._take_passes(anew.passes)
        self.refresh_suggestions()
        if anew.others is not None:
            self._read_model.take_others(anew.others, people=self.others_shown)
        if anew.passes is not None:
            news = self._words.difference(labels, self.labels_by_id, verdicts, self.verdicts)
            self._news = ", ".join(filter(None, (self._news, news)))

    def take_news(self) -> str:
        """What has become of one's labels elsewhere, in words; said once, empty for nothing."""
        news, self._news = self._news, ""
        return news

    def _load(self) -> Passes:
        ref = self.taxonomy.ref
        events = self.workspace.events(
            trace_id=self.trace_id, annotator=self.annotator, taxonomy=ref
        )
        return Passes(self.annotator, self.trace_id, ref, self.trace, events)

    def _take_passes(self, passes: Passes) -> None:
        # Begun on another screen, it is gone on with here: nothing else may change meanwhile.
        self._in_retest = self._in_retest or passes.retest_open
        passes.in_retest = self._in_retest
        self._passes = passes

    def _begin(self) -> PendingChange:
        if self._passes.in_retest and self._passes.frozen:
            raise SessionError(
                "this reading is finished and cannot be changed; undo takes the finish back, and "
                "opening the trace again shows your labels on it"
            )
        return PendingChange(
            self._passes,
            self.workspace.new_id,
            blind=self.blind,
            withheld=self._withheld,
            judge_on_screen=self._judge_on_screen and self.suggestions_visible,
        )

    def _commit(self, change: PendingChange) -> Change:
        """Write a change; its last fact is what is told of it."""
        told = self._words.change(change.facts)
        if change.opens_second_look:
            number = change.state.number
            kept = "your first stays" if number == 2 else "the others stay"
            told = replace(told, message=f"{told.message} · new pass ({number}); {kept} frozen")
        self._write(change.facts, change.state.number)
        return told

    def _write(
        self,
        facts: Sequence[Fact],
        number: int,
        *,
        undoes: str | None = None,
        redoes: str | None = None,
        replaces: Sequence[str] = (),
    ) -> None:
        """Write what a person asked for, unless the trace has changed under their eyes."""
        try:
            self._append(facts, number, undoes=undoes, redoes=redoes, replaces=replaces)
        except ChangedElsewhere as error:
            self.reload()
            raise self.changed_meanwhile() from error

    def changed_meanwhile(self) -> ChangedMeanwhile:
        """Return the error that says what was changed in another window, after it was read."""
        changed = self.take_news() or "something that shows nowhere here"
        return ChangedMeanwhile(
            f"In another window meanwhile: {changed}. Your key has done nothing"
        )

    def _append(
        self,
        facts: Sequence[Fact],
        number: int,
        *,
        undoes: str | None = None,
        redoes: str | None = None,
        replaces: Sequence[str] = (),
    ) -> None:
        """One transaction, on disk before memory follows."""
        events = [
            NewEvent(
                self.annotator,
                self.trace_id,
                self.taxonomy.ref,
                number,
                fact,
                replaces=tuple(replaces) or self._passes.replaced_by(fact),
            )
            for fact in facts
        ]
        write = SessionWrite(
            self.workspace,
            self.trace_id,
            events,
            undoes,
            redoes,
            self._passes.last_seq,
            self._new_indices(facts),
        )
        if self._planned is None:
            self.take_in(write, write.record())
        else:
            assert not self._planned, "a command writes once"
            self._planned.append(write)

    def _new_indices(self, facts: Sequence[Fact]) -> dict[str, SpanIndex]:
        """Return the indices of the spans that the facts refer to, but for those that are kept."""
        keys: dict[str, bool] = {}
        for fact in facts:
            keys |= span_keys(fact)
        return indices_in(self.trace, missing_indices(keys, self._kept_indices)) if keys else {}

    def _changed(self) -> None:
        self.version += 1

    def _leave_blind_pass(self) -> None:
        """A pass that began blind and is opened with everything shown is no blind one any more."""
        current = self._passes.current
        if (
            current is not None
            and not self.blind
            and not self._passes.frozen
            and current.kind is PassKind.BLIND
        ):
            self._write([PassKindSet(PassKind.BLIND, PassKind.ASSISTED)], current.number)

    # Checks

    def _check_mode(self, mode: str) -> None:
        if mode not in self._modes:
            raise SessionError(f"{self.taxonomy.ref} has no mode {mode!r}")

    def _checked_target(self, target: Target) -> Target:
        """The target with its ends in reading order; raises for what is not in this trace."""
        if target.first is None or target.last is None:
            return target
        first, last = self.trace.index_of(target.first), self.trace.index_of(target.last)
        for key, index in ((target.first, first), (target.last, last)):
            if index is None:
                raise SessionError(f"there is no span {key!r} in this trace")
        if first is not None and last is not None and first > last:
            target = Target(target.last, target.first)
        if target.quote is not None:
            start, end = target.char_start, target.char_end
            if start is None or end is None or end - start != len(target.quote) or start < 0:
                raise SessionError("a quote needs the place where it stands in the span")
            if not target.quote:
                raise SessionError("an empty quote points at nothing")
        return target

    def _own_label(self, change: PendingChange, label_id: str) -> Label:
        label = change.label(label_id)
        if label is None:
            raise SessionError("this label is gone, or it is not yours")
        return label

    def _visible(self, suggestion_id: str) -> Suggestion:
        """The suggestion, where this annotator may see it; looks again for one that is new."""
        suggestion = self._suggestion(suggestion_id)
        if suggestion is None and self.suggestions_visible:
            self.refresh_suggestions()
            suggestion = self._suggestion(suggestion_id)
        if suggestion is None:
            raise SessionError("this suggestion is not on this trace, or hidden until you finish")
        return suggestion


def known_trace(workspace: Workspace, trace: Trace) -> str:
    """Register an open trace and return the id that the workspace has for it.

    Keeps the indices of the spans that events on the trace refer to.
    """
    trace_id = workspace.register_trace(TraceRecord.of(trace))
    workspace.refresh_span_indices(trace_id, trace)
    return trace_id
