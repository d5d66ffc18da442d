"""Actions in any order: disk, memory and events agree, and everything can be undone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mast_tui.labels import WHOLE_TRACE, PassKind, Severity, Target, VerdictValue
from mast_tui.session import Session, SessionError
from tests.session.build import TEXTS, Desk, content, finding, span, spans
from tests.workspace.build import MAST, MODES, TRACE, state

places = st.integers(0, len(TEXTS) - 1)
targets = st.just(WHOLE_TRACE) | places.map(span) | st.builds(spans, places, places)
modes = st.sampled_from(MODES[:3])
picks = st.integers(0, 20)
answers = st.sampled_from(["accept", "reject", "edit"])


class Annotating(RuleBasedStateMachine):
    """One annotator at one trace, with a judge that may look again and a colleague."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk.set_up()
        self.desk.judge(finding(MODES[0], 1), finding(MODES[1], 0, 2))
        self.blind = False
        self.session = self.desk.open()

    def teardown(self) -> None:
        before = state(self.desk.workspace)
        self.desk.workspace.rebuild()
        assert state(self.desk.workspace) == before
        self.desk.workspace.close()

    def attempt(self, command: Callable[[Session], object]) -> None:
        before, version = content(self.session), self.session.version
        count = len(list(self.desk.workspace.events()))
        try:
            command(self.session)
        except SessionError:
            assert content(self.session) == before
            assert self.session.version in (version, version + 1)
            assert len(list(self.desk.workspace.events())) == count

    @rule(mode=modes, where=targets, on_screen=st.booleans())
    def label(self, mode: str, where: Target, on_screen: bool) -> None:
        self.attempt(lambda s: s.toggle_label(mode, where, suggestions_on_screen=on_screen))

    @precondition(lambda self: self.session.labels)
    @rule(pick=picks)
    def remove(self, pick: int) -> None:
        labels = self.session.labels
        self.attempt(lambda s: s.remove_label(labels[pick % len(labels)].id))

    @precondition(lambda self: self.session.labels)
    @rule(
        pick=picks,
        values=st.fixed_dictionaries(
            {"severity": st.none() | st.sampled_from(Severity)},
            optional={"mode": modes, "note": st.sampled_from(["", "why"])},
        ),
    )
    def change(self, pick: int, values: dict[str, Any]) -> None:
        labels = self.session.labels
        self.attempt(lambda s: s.edit_label(labels[pick % len(labels)].id, **values))

    @rule(mode=modes, value=st.none() | st.sampled_from(VerdictValue), remove=st.booleans())
    def verdict(self, mode: str, value: VerdictValue | None, remove: bool) -> None:
        self.attempt(lambda s: s.set_verdict(mode, value, remove_labels=remove))

    @precondition(lambda self: self.session.suggestions)
    @rule(pick=picks, mode=modes, place=places, answer=answers)
    def answer(self, pick: int, mode: str, place: int, answer: str) -> None:
        suggestions = self.session.suggestions
        one = suggestions[pick % len(suggestions)].id
        if answer == "accept":
            self.attempt(lambda s: s.accept(one))
        elif answer == "reject":
            self.attempt(lambda s: s.reject(one))
        else:
            self.attempt(lambda s: s.edit(one, mode, span(place)))

    @rule(place=places, text=st.sampled_from(["", "a", "b"]))
    def note(self, place: int, text: str) -> None:
        self.attempt(lambda s: s.note_span(f"k{place}", text))

    @rule(place=places)
    def read(self, place: int) -> None:
        self.session.mark_read([f"k{place}"])

    @rule()
    def suggestions_on_screen(self) -> None:
        self.session.note_suggestions_on_screen()

    @rule(absent=st.booleans())
    def finish(self, absent: bool) -> None:
        self.attempt(lambda s: s.finish(open_modes="absent" if absent else "leave"))

    @rule()
    def reveal(self) -> None:
        self.attempt(lambda s: s.reveal())

    @rule()
    def undo(self) -> None:
        self.attempt(lambda s: s.undo())

    @rule()
    def redo(self) -> None:
        self.attempt(lambda s: s.redo())

    @rule(blind=st.booleans())
    def open_again(self, blind: bool) -> None:
        before = content(self.session)
        same = blind == self.session.blind
        self.session = self.desk.open(blind=blind)
        if same:
            assert content(self.session) == before

    @rule(number=places)
    def judge_looks_again(self, number: int) -> None:
        self.desk.judge(finding(MODES[0], 1), finding(MODES[2], number))
        self.session.refresh_suggestions()

    @rule()
    def take_back_and_do_again_all_there_is(self) -> None:
        revealed = self.session.others_shown
        before, labels = content(self.session), self.session.labels
        count = 0
        with contextlib.suppress(SessionError):
            while self.session.undo() is not None:
                count += 1
        if not revealed:
            start = content(self.session)
            assert (start["labels"], start["verdicts"], start["notes"]) == ([], {}, {})
            assert start["pending"] == [s.id for s in self.session.suggestions]
            assert not self.session.finished
            assert start["number"] in (None, 1)
        # What was taken back before stays to be done after these.
        for _ in range(count):
            assert self.session.redo() is not None
        assert (content(self.session), self.session.labels) == (before, labels)

    @invariant()
    def disk_says_what_memory_says(self) -> None:
        workspace, session = self.desk.workspace, self.session
        assert set(workspace.labels(annotator="alice")) == set(session.labels)
        assert {v.mode: v.value for v in workspace.verdicts(annotator="alice")} == dict(
            session.verdicts
        )
        assert {n.key: n.text for n in workspace.span_notes()} == dict(session.span_notes)
        passes = workspace.passes(annotator="alice")
        assert (passes[-1] if passes else None) == session.current
        in_all_passes = workspace.reads("alice", TRACE, MAST.ref, 99)
        assert set(in_all_passes.keys) == session.read
        last = {r.suggestion: r for r in workspace.reviews(pass_number=None)}
        waiting = {s.id for s in session.suggestions} - last.keys()
        assert session.pending_by_id.keys() == waiting

    @invariant()
    def frozen_passes_are_not_touched(self) -> None:
        for one in self.desk.workspace.passes(annotator="alice")[:-1]:
            assert one.finished
            assert one.kind is not PassKind.ADJUDICATION

    @invariant()
    def a_mode_is_either_labelled_or_called_absent(self) -> None:
        labelled = {label.mode for label in self.session.labels}
        present = {m for m, v in self.session.verdicts.items() if v is VerdictValue.PRESENT}
        assert labelled == present

    @invariant()
    def no_two_labels_are_the_same(self) -> None:
        pairs = [(label.mode, label.target) for label in self.session.labels]
        assert len(set(pairs)) == len(pairs)


TestAnnotating = Annotating.TestCase
TestAnnotating.settings = settings(max_examples=8, stateful_step_count=30, deadline=None)
