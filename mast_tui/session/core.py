"""What a session knows: one annotator's work on one open trace, and how it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Literal

from mast_tui.labels import (
    AnnotatorKind,
    Label,
    Pass,
    PassKind,
    Review,
    VerdictValue,
    annotator_kind,
)
from mast_tui.session.errors import ChangedMeanwhile, SessionError
from mast_tui.session.model import Change, Suggestion
from mast_tui.session.pass_state import Work
from mast_tui.session.pending_change import PendingChange
from mast_tui.session.read_model import NOWHERE, OwnLabels, Place, Suggested
from mast_tui.session.reading import ReadSpans
from mast_tui.session.study_conditions import FREE, StudyConditions
from mast_tui.session.words import Words
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace
from mast_tui.workspace import ChangedElsewhere, NewEvent, TraceRecord, Workspace
from mast_tui.workspace.facts import Fact, PassKindSet


class SessionCore:
    """Reads of the state, and the one way in which anything is written."""

    def __init__(
        self,
        workspace: Workspace,
        trace: Trace,
        taxonomy: Taxonomy,
        annotator: str,
        trace_id: str,
        *,
        blind: bool,
        conditions: StudyConditions = FREE,
    ) -> None:
        self.workspace = workspace
        self.trace = trace
        self.taxonomy = taxonomy
        self.annotator = annotator
        self.trace_id = trace_id
        self.blind = blind
        self._conditions = conditions
        self.version = 0
        self._modes = {mode.slug for mode in taxonomy.modes}
        self._words = Words(taxonomy, trace, self._judged_label)
        self._own = OwnLabels(self._place_of_label)
        self._verdicts: Mapping[str, VerdictValue] = MappingProxyType({})
        self._answered: frozenset[str] = frozenset()
        self._seen_version = -1
        self._suggested: Suggested | None = None
        self._others: tuple[Label, ...] | None = None
        self._judge_on_screen = False
        self._news = ""
        self._in_retest = conditions.retest
        self._work = self._load()
        self._leave_blind_pass()

    # What is seen

    @property
    def current(self) -> Pass | None:
        """The pass that is being worked on, or the finished one; None before there is any."""
        current = self._work.current
        return None if current is None else self._work.as_pass(current)

    @property
    def finished(self) -> bool:
        """Whether the current pass is finished: then an edit opens the next one."""
        current = self._work.current
        return current is not None and current.finished_at is not None

    @property
    def labels(self) -> tuple[Label, ...]:
        """One's own labels of this pass, those on the whole trace first, then in span order."""
        return self._own_now().in_order()

    @property
    def labels_by_id(self) -> Mapping[str, Label]:
        """The same by their ids; a label that was changed is another object."""
        current = self._work.current
        return MappingProxyType({} if current is None else current.labels)

    @property
    def labels_of_modes(self) -> Mapping[str, int]:
        """How many labels of one's own each mode has that has any."""
        return MappingProxyType(self._own_now().by_mode)

    def labels_at(self, key: str) -> tuple[Label, ...]:
        """One's own labels that cover a span; those on the whole trace are on none of them."""
        return self._own_now().at(key, self.trace.index_of(key))

    @property
    def verdicts(self) -> Mapping[str, VerdictValue]:
        """The verdict on each mode that has one; a mode with labels is present."""
        self._own_now()
        return self._verdicts

    def verdict(self, mode: str) -> VerdictValue | None:
        """The verdict on a mode (slug), or None where it is open."""
        return self.verdicts.get(mode)

    @property
    def hidden_visible(self) -> bool:
        """Whether outcome, reward, ground truth and the like may be shown."""
        return not self.blind or self._work.revealed

    @property
    def suggestions_visible(self) -> bool:
        """Whether anything that a judge says may be shown.

        Where a study withholds suggestions they come after finishing, once asked for (``reveal``).
        """
        return self.hidden_visible and not self._withheld

    @property
    def _withheld(self) -> bool:
        """Whether a study keeps suggestions from this pass, or from the one that would begin."""
        if self._work.revealed:
            return False
        current = self._work.current
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
        if not self.suggestions_visible:
            return ()
        return self._suggestions().in_order(len(self.trace))

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """The suggestions that wait for this annotator's answer, in the same order."""
        if not self.suggestions_visible:
            return ()
        self._own_now()
        return self._suggestions().pending(len(self.trace), self._answered)

    @property
    def pending_by_id(self) -> Mapping[str, Suggestion]:
        """The same by their ids."""
        return MappingProxyType(self._suggestions().pending_by_id if self.pending else {})

    def review_of(self, suggestion_id: str) -> Review | None:
        """This annotator's answer to a suggestion; of several passes the last one."""
        for one in reversed(self._work.answering):
            given = one.reviews.get(suggestion_id)
            if given is not None:
                return Review(
                    annotator=self.annotator,
                    suggestion=suggestion_id,
                    answer=given.answer,
                    label=given.label,
                    reason=given.reason,
                    trace_id=self.trace_id,
                    taxonomy=self.taxonomy.ref,
                    pass_number=one.number,
                )
        return None

    @property
    def others_shown(self) -> bool:
        """Whether other people's labels may be shown: finished, and then asked for (``reveal``),
        or taken on as an adjudicator."""
        return self._work.revealed

    @property
    def others(self) -> tuple[Label, ...]:
        """Other people's labels; none before ``reveal``."""
        if not self.others_shown:
            return ()
        if self._others is None:
            found = self.workspace.labels(trace_id=self.trace_id, taxonomy=self.taxonomy.ref)
            self._others = tuple(
                sorted(
                    (
                        label
                        for label in found
                        if label.annotator != self.annotator
                        and annotator_kind(label.annotator) is not AnnotatorKind.JUDGE
                    ),
                    key=self._place_of_label,
                )
            )
        return self._others

    @property
    def span_notes(self) -> Mapping[str, str]:
        """One's own notes on spans of this pass, by key."""
        current = self._work.current
        return MappingProxyType({} if current is None else current.notes)

    @property
    def read(self) -> Set[str]:
        """The keys of the spans that this annotator has read, in whatever pass.

        A retest begins with nothing read.
        """
        return self._work.read

    def unread(self) -> tuple[range, ...]:
        """The stretches of spans that were not read, of those that are loaded, in order."""
        return self._work.read.unread()

    # Writing

    def refresh_suggestions(self) -> None:
        """Look again at what judges and others say: a judge has run, or a file was imported."""
        self._suggested = self._others = None
        self._changed()

    def reload(self) -> None:
        """Read everything anew: this annotator has changed the trace elsewhere."""
        labels, verdicts = dict(self.labels_by_id), dict(self.verdicts)
        self._work = self._load()
        self.refresh_suggestions()
        news = self._words.difference(labels, self.labels_by_id, verdicts, self.verdicts)
        self._news = ", ".join(filter(None, (self._news, news)))

    def catch_up(self) -> None:
        """Take in what has been written elsewhere, by anybody."""
        known = self._work.last_seq
        if self.workspace.last_seq(self.annotator, self.trace_id, self.taxonomy.ref) != known:
            self.reload()
        else:
            self.refresh_suggestions()

    @property
    def has_news(self) -> bool:
        """Whether ``take_news`` has something to say."""
        return bool(self._news)

    def take_news(self) -> str:
        """What has become of one's labels elsewhere, in words; said once, empty for nothing."""
        news, self._news = self._news, ""
        return news

    def _load(self) -> Work:
        events = self.workspace.events(
            trace_id=self.trace_id, annotator=self.annotator, taxonomy=self.taxonomy.ref
        )
        work = Work(
            self.annotator,
            self.trace_id,
            self.taxonomy.ref,
            partial(ReadSpans, self.trace),
            events,
        )
        # Begun on another screen, it is gone on with here: nothing else may change meanwhile.
        self._in_retest = self._in_retest or work.retest_open
        work.in_retest = self._in_retest
        return work

    def _draft(self) -> PendingChange:
        if self._work.in_retest and self._work.frozen:
            raise SessionError(
                "this reading is finished and cannot be changed; u takes the finish back, and "
                "opening the trace again shows your labels on it"
            )
        return PendingChange(
            self._work,
            self.workspace.new_id,
            blind=self.blind,
            withheld=self._withheld,
            judge_on_screen=self._judge_on_screen and self.suggestions_visible,
        )

    def _commit(self, draft: PendingChange) -> Change:
        """Write a draft; its last fact is what is told of it."""
        change = self._words.change(draft.facts)
        if draft.opens_second_look:
            change = replace(change, message=f"{change.message} · a second look begins")
        self._write(draft.facts, draft.number)
        return change

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
            changed = self.take_news() or "something that shows nowhere here"
            raise ChangedMeanwhile(
                f"In another window meanwhile: {changed}. Your key has done nothing"
            ) from error

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
                replaces=tuple(replaces),
            )
            for fact in facts
        ]
        recorded = self.workspace.append(
            events, undoes=undoes, redoes=redoes, known_seq=self._work.last_seq
        )
        for event in recorded:
            self._work.take(event)
        self._changed()

    def _changed(self) -> None:
        self.version += 1

    def _leave_blind_pass(self) -> None:
        """A pass that began blind and is opened with everything shown is no blind one any more."""
        current = self._work.current
        if (
            current is not None
            and not self.blind
            and not self._work.frozen
            and current.kind is PassKind.BLIND
        ):
            self._write([PassKindSet(PassKind.BLIND, PassKind.ASSISTED)], current.number)

    # Places

    def _own_now(self) -> OwnLabels:
        """One's own labels as they are, with what follows of verdicts and answers.

        Spans that come later change their order.
        """
        current = self._work.current
        labels = {} if current is None else current.labels
        if self._seen_version != self.version:
            self._own.follow(labels, len(self.trace))
            self._seen_version = self.version
            self._answered = frozenset(self._work.reviews)
            present = dict.fromkeys(self._own.by_mode, VerdictValue.PRESENT)
            said = {} if current is None else current.verdicts
            self._verdicts = MappingProxyType(said | present)
        else:
            self._own.grown(len(self.trace))
        return self._own

    def _index(self, key: str) -> int:
        index = self.trace.index_of(key)
        return NOWHERE if index is None else index

    def _place_of_label(self, label: Label) -> Place:
        target = label.target
        if target.first is None or target.last is None:
            return (-1, 0, 0, label.mode, label.id)
        return (
            self._index(target.first),
            target.char_start or 0,
            self._index(target.last),
            label.mode,
            label.id,
        )

    def _place_of_suggestion(self, suggestion: Suggestion) -> tuple[int, int, str, str]:
        key, offsets = suggestion.evidence_key, suggestion.quote_offsets
        index = -1 if key is None else self._index(key)
        return (index, offsets[0] if offsets else 0, suggestion.mode, suggestion.id)

    def _suggestions(self) -> Suggested:
        if self._suggested is None:
            labels = self.workspace.labels(trace_id=self.trace_id, taxonomy=self.taxonomy.ref)
            judged = (x for x in labels if annotator_kind(x.annotator) is AnnotatorKind.JUDGE)
            self._suggested = Suggested(map(Suggestion.of, judged), self._place_of_suggestion)
        return self._suggested

    def _judged_label(self, suggestion_id: str) -> Suggestion | None:
        if not self.suggestions_visible:
            return None
        return self._suggestions().by_id.get(suggestion_id)


def known_trace(workspace: Workspace, trace: Trace) -> str:
    """Register an open trace and return the id that the workspace has for it."""
    return workspace.register_trace(TraceRecord.of(trace))
