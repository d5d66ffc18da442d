"""What an annotator can do on an open trace; screens and commands both go through here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from mast_tui.labels import (
    AnnotatorKind,
    Answer,
    Label,
    Origin,
    Severity,
    Target,
    VerdictValue,
    annotator_kind,
)
from mast_tui.session.core import SessionCore, known_trace
from mast_tui.session.errors import LabelsStand, SessionError
from mast_tui.session.history import Action
from mast_tui.session.model import KEEP, Change, Keep, Suggestion
from mast_tui.session.pending_change import PendingChange
from mast_tui.session.reading import SHORT_RUN
from mast_tui.session.study_conditions import conditions_for
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace
from mast_tui.workspace import ChangedElsewhere, Workspace
from mast_tui.workspace.facts import (
    Fact,
    PassFinished,
    Revealed,
    ReviewGiven,
    SpansRead,
    SuggestionsSeen,
)
from mast_tui.workspace.ids import now


class Session(SessionCore):
    """One annotator at work on one trace under one taxonomy.

    Each command is one transaction and is on disk when it returns. It raises ``SessionError``
    for what cannot be done and ``WorkspaceError`` for what cannot be written, both in words, and
    then nothing has changed. ``version`` grows with every change.
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
        if annotator_kind(annotator) is AnnotatorKind.JUDGE:
            raise SessionError(f"{annotator!r} is a judge's name; give a person's")
        workspace.add_taxonomy(taxonomy)
        workspace.add_annotator(annotator, AnnotatorKind.HUMAN)
        trace_id = known_trace(workspace, trace)
        conditions = conditions_for(workspace, annotator, trace_id, taxonomy.ref)
        return cls(
            workspace, trace, taxonomy, annotator, trace_id, blind=blind, conditions=conditions
        )

    # Labels and verdicts

    def toggle_label(self, mode: str, target: Target, *, suggestions_on_screen: bool) -> Change:
        """Label ``target`` with a mode (slug), or take off the label with exactly this target.

        Labelling withdraws an absent or unsure said of the mode.
        """
        self._check_mode(mode)
        target = self._checked_target(target)
        if suggestions_on_screen:
            self._judge_on_screen = True
        draft = self._draft()
        label = draft.find(mode, target)
        if label is not None:
            draft.remove_label(label)
        else:
            draft.add_label(mode, target, at=now(), saw_suggestions=suggestions_on_screen)
        return self._commit(draft)

    def remove_label(self, label_id: str) -> Change:
        """Remove one of one's own labels; a suggestion that was answered with it waits again."""
        draft = self._draft()
        draft.remove_label(self._own_label(draft, label_id))
        return self._commit(draft)

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
        draft = self._draft()
        before = self._own_label(draft, label_id)
        after = before
        if mode is not None:
            self._check_mode(mode)
            after = replace(after, mode=mode)
        if target is not None:
            after = replace(after, target=self._checked_target(target))
        if note is not None:
            after = replace(after, note=note)
        if not isinstance(confidence, Keep):
            if confidence is not None and not 0 <= confidence <= 1:
                raise SessionError(f"a confidence lies between 0 and 1, not at {confidence}")
            after = replace(after, confidence=confidence)
        if not isinstance(severity, Keep):
            after = replace(after, severity=severity)
        return self._change_label(draft, before, after)

    def _change_label(self, draft: PendingChange, before: Label, after: Label) -> Change:
        same = draft.find(after.mode, after.target)
        if same is not None and same.id != after.id:
            place = self._words.place(after.target)
            raise SessionError(f"you have {self._words.mode(after.mode)} on {place} already")
        if before == after:
            return Change("nothing changed", after.mode, after.target, after.target.first)
        moved = (before.mode, before.target) != (after.mode, after.target)
        if moved and before.origin is Origin.ACCEPTED:
            draft.accepted_with_changes(before)
            after = replace(after, origin=Origin.EDITED)
        draft.change_label(before, after)
        return self._commit(draft)

    def set_verdict(
        self, mode: str, value: VerdictValue | None, *, remove_labels: bool = False
    ) -> Change:
        """Call a mode absent or unsure; the same again, or None, leaves it open.

        Raises ``LabelsStand`` where labels say that it shows, unless they are to be removed.
        """
        self._check_mode(mode)
        if value is VerdictValue.PRESENT:
            raise SessionError("label a span, or the whole trace (t), to say that a mode shows")
        draft = self._draft()
        labels = draft.of_mode(mode)
        if labels and not remove_labels:
            count = "1 label" if len(labels) == 1 else f"{len(labels)} labels"
            raise LabelsStand(
                f"{count} of {self._words.mode(mode)} stand on this trace; remove them first",
                labels,
            )
        for label in labels:
            draft.remove_label(label)
        if not labels and draft.verdicts.get(mode) is value:
            value = None
        draft.set_verdict(mode, value)
        if not draft.changes_something:
            return Change(f"{self._words.mode(mode)} is open already", mode)
        return self._commit(draft)

    def note_span(self, key: str, text: str) -> Change:
        """Write a note beside a span; an empty one takes it away."""
        self._checked_target(Target(key, key))
        draft = self._draft()
        draft.set_note(key, text.strip())
        if not draft.changes_something:
            return Change("nothing changed", key=key)
        return self._commit(draft)

    # Suggestions

    def accept(self, suggestion_id: str) -> Change:
        """Make a label of one's own of a suggestion; one that is there already will do."""
        suggestion = self._visible(suggestion_id)
        return self._take_over(
            suggestion, suggestion.mode, suggestion.target, Answer.ACCEPT, Origin.ACCEPTED
        )

    def edit(self, suggestion_id: str, mode: str, target: Target) -> Change:
        """Accept a suggestion with another mode or place; with its own it is accepted as is."""
        suggestion = self._visible(suggestion_id)
        self._check_mode(mode)
        target = self._checked_target(target)
        if (mode, target) == (suggestion.mode, suggestion.target):
            return self.accept(suggestion_id)
        return self._take_over(suggestion, mode, target, Answer.EDIT, Origin.EDITED)

    def reject(self, suggestion_id: str, reason: str = "") -> Change:
        """Say that a suggestion is wrong; says nothing about its mode otherwise.

        A label that came of accepting it before goes.
        """
        suggestion = self._visible(suggestion_id)
        self._judge_on_screen = True
        draft = self._draft()
        label = self._label_made_of(draft, suggestion)
        if label is not None:
            draft.remove_label(label)
        draft.set_review(suggestion.id, ReviewGiven(Answer.REJECT, reason=reason.strip()))
        return self._commit_answer(draft, suggestion)

    def _take_over(
        self, suggestion: Suggestion, mode: str, target: Target, answer: Answer, origin: Origin
    ) -> Change:
        self._check_mode(mode)
        self._judge_on_screen = True
        draft = self._draft()
        made = self._label_made_of(draft, suggestion)
        label = draft.find(mode, target)
        if label is None and made is not None:
            label = draft.change_label(made, replace(made, mode=mode, target=target, origin=origin))
        elif label is None:
            label = draft.add_label(
                mode,
                target,
                at=now(),
                origin=origin,
                suggestion=suggestion.id,
                saw_suggestions=True,
            )
        elif made is not None and made is not label:
            draft.remove_label(made)
        draft.set_review(suggestion.id, ReviewGiven(answer, label.id))
        return self._commit_answer(draft, suggestion)

    def _commit_answer(self, draft: PendingChange, suggestion: Suggestion) -> Change:
        if not draft.changes_something:
            return Change(
                "answered so already", suggestion.mode, suggestion.target, suggestion.evidence_key
            )
        return self._commit(draft)

    def _label_made_of(self, draft: PendingChange, suggestion: Suggestion) -> Label | None:
        """The label that came of an earlier answer to this suggestion, not one's own before it."""
        for label in draft.labels.values():
            if label.suggestion == suggestion.id:
                return label
        return None

    # What is only noted

    def mark_read(self, keys: Iterable[str], runs: Iterable[range] = ()) -> None:
        """Note that spans were read, and ``runs`` of them by their indices, however long.

        Only what is new is written, and nothing once finished.
        """
        wanted = list(keys)
        long = []
        for run in runs:
            if len(run) > SHORT_RUN:
                long.append(run)
            else:
                wanted += [self.trace.span(index).key for index in run]
        wanted = list(dict.fromkeys(wanted))
        try:
            self._mark_read(wanted, long)
        except ChangedElsewhere:
            self.reload()
            self._mark_read(wanted, long)

    def _mark_read(self, keys: Sequence[str], runs: Sequence[range]) -> None:
        read, index_of, span = self._work.read, self.trace.index_of, self.trace.span
        new = tuple(key for key in keys if key not in read and index_of(key) is not None)
        ends = tuple(
            (span(run.start).key, span(run.stop - 1).key)
            for run in runs
            if not read.has_run(run.start, run.stop)
        )
        if (new or ends) and not self._work.frozen:
            draft = self._draft()
            self._append([*draft.facts, SpansRead(new, ends)], draft.number)

    def note_suggestions_on_screen(self) -> None:
        """Note that a judge's suggestions are shown: what is labelled from here on saw them.

        Written once per pass; before there is a pass, with what begins it.
        """
        if not self.suggestions_visible:
            return
        self._judge_on_screen = True
        try:
            self._note_judge_seen()
        except ChangedElsewhere:
            self.reload()
            self._note_judge_seen()

    def _note_judge_seen(self) -> None:
        current = self._work.current
        if current is not None and not self._work.frozen and not current.judge_seen:
            self._append([SuggestionsSeen()], current.number)

    def reveal(self) -> None:
        """Show what was hidden: from here on the finish stands. Raises before the finish."""
        if self._work.revealed:
            return
        current = self._work.current
        if current is None or current.finished_at is None:
            raise SessionError("what others say is shown once you have finished the trace (D)")
        self._write([Revealed("others")], current.number)

    # Finishing

    def finish(self, *, open_modes: Literal["leave", "absent"]) -> Change:
        """Freeze the pass; modes without a verdict stay open or are set absent."""
        if self.finished:
            raise SessionError("this trace is finished already; an edit begins a second look")
        if not self.trace.loaded.complete:
            raise SessionError("this trace is still being read; finish it when it is all there")
        draft = self._draft()
        if open_modes == "absent":
            present = {label.mode for label in draft.labels.values()}
            for mode in self.taxonomy.modes:
                if mode.slug not in present and mode.slug not in draft.verdicts:
                    draft.set_verdict(mode.slug, VerdictValue.ABSENT)
        draft.facts.append(self._finish(open_modes))
        return self._commit(draft)

    def _finish(self, open_modes: str) -> PassFinished:
        read = sum(map(len, self._work.read.stretches()))
        return PassFinished(open_modes, read, len(self.trace))

    def unfinish(self) -> Change:
        """Take the finish back; raises once something hidden has been shown since."""
        if not self.finished:
            raise SessionError("this trace is not finished")
        action = self._work.last_done
        if action is None or not isinstance(action.facts[-1], PassFinished):
            raise SessionError(
                "this finish was not made here and stands; an edit begins a second look"
            )
        return self._take_back(action)

    # Taking back

    def undo(self) -> Change | None:
        """Take back the last change on this trace; None where there is none in this pass.

        Raises ``SessionError`` for a finish after which something hidden was shown.
        """
        action = self._work.last_done
        return None if action is None else self._take_back(action)

    def redo(self) -> Change | None:
        """Do again what was taken back last; None where there is nothing."""
        action = self._work.last_undone
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
        current = self._work.current
        if current is not None and current.finished_at and current.revealed_at:
            raise SessionError(
                "what others say was shown since you finished, so the finish stands; "
                "an edit begins a second look"
            )
        change = self._words.change(action.facts)
        self._write(
            action.taken_back(),
            action.pass_number,
            undoes=action.id,
            replaces=[event.id for event in action.events],
        )
        return replace(change, message=f"taken back: {change.message}")

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

    def _own_label(self, draft: PendingChange, label_id: str) -> Label:
        label = draft.label(label_id)
        if label is None:
            raise SessionError("this label is gone, or it is not yours")
        return label

    def _visible(self, suggestion_id: str) -> Suggestion:
        """The suggestion, where this annotator may see it; looks again for one that is new."""
        found = self._judged_label(suggestion_id)
        if found is None and self.suggestions_visible:
            self.refresh_suggestions()
            found = self._judged_label(suggestion_id)
        if found is None:
            raise SessionError("this suggestion is not on this trace, or hidden until you finish")
        return found
