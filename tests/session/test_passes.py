"""Finishing, revealing, and second looks."""

from __future__ import annotations

import pytest

from mast_tui.labels import Pass, PassKind, ReviewAnswer, VerdictValue
from mast_tui.session import Session, SessionError, status
from mast_tui.traces.model import Loaded
from mast_tui.workspace import NewEvent
from mast_tui.workspace.events.types import LabelAdded, PassFinished, PassStarted
from tests.session.build import TEXTS, Desk, content, finding, put, review_of, span
from tests.workspace.build import MAST, MODES, TRACE, event, label, state

ONE, TWO, THREE = MODES[:3]


def current(session: Session) -> Pass:
    assert session.current is not None
    return session.current


def test_finishing_leaves_open_modes_open(desk: Desk) -> None:
    session = desk.open()
    put(session, ONE, span(0))
    assert session.unread() == (range(len(TEXTS)),)
    session.mark_read(["k0", "k1", "nowhere"])
    assert session.unread() == (range(2, 5),)
    assert "nowhere" not in session.read
    before = content(session)
    change = session.finish(open_modes="leave")
    assert "2 of 5" in change.message
    assert session.finished
    one = current(session)
    assert (one.read, one.spans) == (2, 5)
    assert one.finished_at is not None
    assert dict(session.verdicts) == {ONE: VerdictValue.PRESENT}
    assert desk.workspace.passes() == (one,)
    with pytest.raises(SessionError, match="already finished"):
        session.finish(open_modes="leave")
    session.mark_read(["k2"])  # reads after the finish are not counted
    assert set(session.read) == {"k0", "k1"}
    session.undo()
    assert content(session) == before
    assert current(session).read is None
    session.mark_read(["k2", "k3", "k4"])
    assert session.unread() == ()


def test_finishing_sets_open_modes_absent(desk: Desk) -> None:
    session = desk.open()
    put(session, ONE, span(0))
    session.set_verdict(TWO, VerdictValue.UNSURE)
    session.finish(open_modes="absent")
    expected = dict.fromkeys(MODES, VerdictValue.ABSENT)
    expected |= {ONE: VerdictValue.PRESENT, TWO: VerdictValue.UNSURE}
    assert dict(session.verdicts) == expected
    assert {v.mode: v.value for v in desk.workspace.verdicts(pass_number="finished")} == expected
    session.undo()
    assert dict(session.verdicts) == {ONE: VerdictValue.PRESENT, TWO: VerdictValue.UNSURE}


def test_a_trace_that_is_still_read_is_not_finished(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = desk.open()
    half = Loaded(1, 2, complete=False)
    monkeypatch.setattr(type(desk.trace), "loaded", property(lambda _: half))
    with pytest.raises(SessionError, match="still loading"):
        session.finish(open_modes="leave")
    assert session.current is None


def test_a_redone_finish_counts_later_reads(desk: Desk) -> None:
    session = desk.open()
    session.mark_read(["k0"])
    session.finish(open_modes="absent")
    session.undo()
    session.mark_read(["k1", "k2"])
    session.redo()
    assert (current(session).read, current(session).spans) == (3, 5)
    assert session.verdict(ONE) is VerdictValue.ABSENT


def test_revealing_makes_the_finish_final(desk: Desk) -> None:
    put(desk.open("bob"), TWO, span(3))
    session = desk.open()
    put(session, ONE, span(0))
    with pytest.raises(SessionError, match="finished"):
        session.reveal()
    assert session.others == ()
    session.finish(open_modes="leave")
    assert not session.others_shown
    assert session.others == ()
    session.reveal()
    assert session.others_shown
    assert [(x.annotator, x.mode) for x in session.others] == [("bob", TWO)]
    assert current(session).revealed_at is not None
    with pytest.raises(SessionError, match="cannot be undone"):
        session.undo()
    events = len(list(desk.workspace.events()))
    session.reveal()
    assert len(list(desk.workspace.events())) == events
    with pytest.raises(SessionError, match="cannot be undone"):
        desk.open().undo()


def test_an_edit_after_the_finish_starts_a_second_look(desk: Desk) -> None:
    session = desk.open(blind=True)
    put(session, ONE, span(0))
    session.edit_label(session.labels[0].id, note="why", confidence=0.5)
    session.set_verdict(TWO, VerdictValue.ABSENT)
    session.note_span("k1", "note")
    session.mark_read(["k0"])
    session.finish(open_modes="leave")
    frozen = desk.workspace.labels()
    change = session.toggle_label(THREE, span(4), suggestions_on_screen=False)
    assert change.message.endswith("your first finish, the gold (final labels) your last")
    assert (current(session).number, current(session).kind) == (2, PassKind.SECOND_LOOK)
    assert not session.finished
    copy, added = session.labels
    assert copy.id != frozen[0].id
    assert (copy.mode, copy.note, copy.confidence) == (ONE, "why", 0.5)
    assert (copy.created_at, added.mode) == (frozen[0].created_at, THREE)
    assert session.verdict(TWO) is VerdictValue.ABSENT
    assert (dict(session.span_notes), set(session.read)) == ({"k1": "note"}, {"k0"})
    assert desk.workspace.labels(pass_number=1) == frozen
    assert desk.workspace.labels(pass_number="finished") == frozen
    assert desk.workspace.labels() == tuple(sorted(session.labels, key=lambda x: x.id))
    assert content(desk.open()) == content(session)


def test_answers_stay_with_their_pass(desk: Desk) -> None:
    desk.judge(finding(ONE, 0), finding(TWO, 1))
    session = desk.open()
    first, second = session.suggestions
    session.accept(first.id)
    session.finish(open_modes="leave")
    session.reject(second.id)
    reviews = {r.pass_number: r for r in desk.workspace.reviews(pass_number=None)}
    assert (reviews[1].suggestion, reviews[2].suggestion) == (first.id, second.id)
    assert (session.pending, [x.suggestion for x in session.labels]) == ((), [first.id])
    session.reject(first.id)
    assert session.labels == ()
    review = review_of(session, first.id)
    assert review is not None
    assert (review.answer, review.pass_number) == (ReviewAnswer.REJECT, 2)
    kept = desk.workspace.reviews(pass_number=1)
    assert [r.answer for r in kept] == [ReviewAnswer.ACCEPT]


def test_a_second_look_is_undone_completely(desk: Desk) -> None:
    session = desk.open()
    put(session, ONE, span(0))
    session.finish(open_modes="leave")
    before, labels = content(session), session.labels
    session.toggle_label(TWO, span(1), suggestions_on_screen=False)
    session.undo()
    assert (content(session), session.labels, content(desk.open())) == (before, labels, before)
    assert [p.number for p in desk.workspace.passes()] == [1]
    rebuilt = state(desk.workspace)
    desk.workspace.rebuild()
    assert state(desk.workspace) == rebuilt
    session.redo()
    assert (current(session).number, [x.mode for x in session.labels]) == (2, [ONE, TWO])
    session.undo()
    put(session, THREE, span(2))
    assert (current(session).number, [x.mode for x in session.labels]) == (2, [ONE, THREE])
    assert session.redo() is None
    session.undo()
    session.undo()
    assert not session.finished
    assert current(session).number == 1


def test_second_looks_are_counted_and_finished(desk: Desk) -> None:
    def counts() -> tuple[int, int]:
        (row,) = (r for r in status(desk.workspace, MAST).annotators if r.name == "alice")
        return row.finished, row.open

    session = desk.open()
    put(session, ONE, span(0))
    assert counts() == (0, 1)
    session.finish(open_modes="leave")
    assert counts() == (1, 0)
    session.reveal()
    put(session, TWO, span(1))
    assert counts() == (1, 1)
    session.finish(open_modes="absent")
    assert (counts(), [p.finished for p in desk.workspace.passes()]) == ((1, 0), [True, True])
    assert session.others_shown
    session.undo()
    assert not session.finished
    assert current(session).number == 2


def adjudicate(desk: Desk, number: int) -> None:
    start = PassStarted(PassKind.ADJUDICATION)
    desk.workspace.append([event(start, pass_number=number)])


def test_adjudicators_take_second_looks(desk: Desk) -> None:
    put(desk.open("bob"), TWO, span(3))
    adjudicate(desk, 1)
    session = desk.open(blind=True)
    assert session.current is None
    assert session.outcome_visible
    assert [x.mode for x in session.others] == [TWO]
    put(session, ONE, span(0))
    assert (current(session).number, current(session).kind) == (2, PassKind.SECOND_LOOK)


def test_adjudicating_ends_an_open_pass(desk: Desk) -> None:
    session = desk.open(blind=True)
    put(session, ONE, span(0))
    adjudicate(desk, 2)
    session = desk.open(blind=True)
    assert [x.mode for x in session.labels] == [ONE]
    assert session.undo() is None
    session.mark_read(["k0"])
    assert set(session.read) == set()
    put(session, TWO, span(1))
    assert (current(session).number, current(session).kind) == (3, PassKind.SECOND_LOOK)
    assert [x.mode for x in session.labels] == [ONE, TWO]
    session.finish(open_modes="leave")
    assert [(p.number, p.finished) for p in desk.workspace.passes()] == [
        (1, False),
        (2, False),
        (3, True),
    ]


def test_a_finish_before_an_adjudication_is_not_undone(desk: Desk) -> None:
    desk.open().finish(open_modes="leave")
    adjudicate(desk, 2)
    with pytest.raises(SessionError, match="cannot be undone"):
        desk.open().undo()


def test_a_blind_pass_that_is_opened_assisted(desk: Desk) -> None:
    session = desk.open(blind=True)
    put(session, ONE, span(0))
    assert current(desk.open(blind=True)).kind is PassKind.BLIND
    assert current(desk.open(blind=False)).kind is PassKind.ASSISTED
    assert current(desk.open(blind=True)).kind is PassKind.ASSISTED
    assert desk.workspace.passes()[0].kind is PassKind.ASSISTED
    desk.open("bob", blind=True).finish(open_modes="leave")
    assert current(desk.open("bob", blind=False)).kind is PassKind.BLIND


def test_imported_work_is_not_undone(desk: Desk) -> None:
    desk.open()
    imported = label(desk.workspace)
    facts = (PassStarted(PassKind.BLIND), LabelAdded(imported), PassFinished("leave"))
    desk.workspace.append(
        [NewEvent("alice", TRACE, MAST.ref, 1, fact) for fact in facts], action="import:file"
    )
    session = desk.open()
    assert session.finished
    assert session.undo() is None
    put(session, TWO, span(1))
    assert current(session).number == 2
    session.undo()
    assert session.labels == (imported,)
    assert session.finished
