"""Labelling under a study: withheld suggestions, retests, blind work, and open modes."""

from __future__ import annotations

from contextlib import closing

import pytest

from mast_tui.figures.source.agreement import study_from_workspace
from mast_tui.labels import Pass, PassKind, VerdictValue
from mast_tui.session import (
    LibraryEntry,
    QueueItem,
    QueueKind,
    Session,
    SessionError,
    library_view,
    progress,
    queue,
    register_opened_trace,
    resolve_blind,
    retest_progress,
    status,
    visible_traces_for_agreement,
    with_released_traces,
)
from mast_tui.study import OpenModes, overlap_traces, retest_traces, withheld_traces
from mast_tui.workspace import Workspace
from mast_tui.workspace.events.types import BlindWorkSet
from tests.session.build import content, finding, put, span
from tests.session.studies import Class, study_of
from tests.workspace.build import MAST, MODES, state

ONE, TWO, THREE = MODES[:3]


def withheld_and_other(room: Class) -> tuple[str, str]:
    held = [x for x in room.order() if x in withheld_traces(room.study, "alice")]
    return held[0], next(x for x in room.order() if x not in held)


def current(session: Session) -> Pass:
    assert session.current is not None
    return session.current


def entry_of(room: Class, trace_id: str, annotator: str = "alice") -> LibraryEntry:
    view = library_view(room.workspace, annotator, MAST.ref, blind=False)
    return view[trace_id]


def test_withheld_suggestions_are_hidden() -> None:
    room = Class(blind=False, withheld=0.5)
    room.judge(*room.traces)
    held, other = withheld_and_other(room)
    session = room.open(held)
    assert session.outcome_visible
    assert not session.suggestions_visible
    assert session.suggestions == session.pending == ()
    assert dict(session.pending_by_id) == {}
    assert room.open(other).suggestions_visible
    (suggestion,) = room.open(other).pending
    session.note_suggestions_on_screen()
    put(session, ONE, span(1))
    assert current(session).withheld
    assert (current(session).kind, current(session).judge_seen) == (PassKind.ASSISTED, False)
    with pytest.raises(SessionError, match="hidden from you"):
        session.accept(suggestion.id)
    put(room.open(other), ONE, span(1))
    kept = {one.trace_id: one.withheld for one in room.workspace.passes(annotator="alice")}
    assert kept == {held: True, other: False}


def test_withheld_suggestions_appear_after_revealing() -> None:
    room = Class(withheld=1.0)
    room.judge("t00")
    session = room.open("t00")
    session.finish(open_modes="absent")
    assert session.suggestions == room.open("t00").suggestions == ()
    put(session, TWO, span(1))  # a second look before revealing is withheld too
    assert (current(session).number, current(session).withheld) == (2, True)
    assert session.suggestions == ()
    session.undo()
    session.reveal()
    assert len(session.suggestions) == 1
    put(session, TWO, span(1))
    assert (current(session).kind, current(session).withheld) == (PassKind.SECOND_LOOK, False)
    assert room.open("t00").suggestions_visible


def test_the_library_does_not_count_withheld_suggestions() -> None:
    room = Class(withheld=0.5, adjudicators=("dora",))
    room.judge(*room.traces)
    held, other = withheld_and_other(room)
    view = library_view(room.workspace, "alice", MAST.ref, blind=False)
    assert (view[held].waiting, view[held].suggestions_visible) == (0, False)
    assert view[held].outcome_visible
    assert (view[other].waiting, view[other].suggestions_visible) == (1, True)
    session = room.open(held)
    session.finish(open_modes="leave")
    session.reveal()
    view = library_view(room.workspace, "alice", MAST.ref, blind=False)
    assert (view[held].waiting, view[held].suggestions_visible) == (1, True)
    assert library_view(room.workspace, "dora", MAST.ref, blind=False)[held].waiting == 1


def test_passes_before_the_study_keep_their_suggestions() -> None:
    room = Class(withheld=0.0)
    room.judge("t00")
    put(room.open("t00"), ONE, span(1))
    room.set_up(study_of(tuple(room.traces), withheld=1.0, adjudicators=("dora",)))
    assert len(room.open("t00").suggestions) == 1
    room.judge("t01")
    put(room.open("t01", blind=True), ONE, span(1))
    session = room.open("t01", blind=False)
    assert (current(session).kind, session.suggestions) == (PassKind.ASSISTED, ())
    assert room.open("t00", "dora").suggestions_visible


def test_a_study_answers_for_open_modes() -> None:
    room = Class(open_modes=OpenModes.LEAVE)
    session = room.open("t00")
    unread = session.open_modes_answer
    session.mark_read(["k0", "k1", "k2"])
    assert (unread, session.open_modes_answer) == ("leave", "absent")
    assert room.open("t01", "dora").open_modes_answer is None
    room.set_up(study_of(tuple(room.traces), open_modes=OpenModes.ABSENT))
    assert room.open("t01").open_modes_answer == "absent"
    room.set_up(study_of(tuple(room.traces)))
    assert room.open("t01").open_modes_answer is None


def test_a_study_decides_on_blind_work() -> None:
    room = Class(blind=True)
    assert resolve_blind(room.workspace, "alice", taxonomy=MAST.ref)
    assert not resolve_blind(room.workspace, "alice", assisted=True, taxonomy=MAST.ref)
    assert resolve_blind(room.workspace, "alice", taxonomy=MAST.ref)
    said = [e.fact for e in room.workspace.events() if isinstance(e.fact, BlindWorkSet)]
    assert said == [BlindWorkSet(None, True), BlindWorkSet(True, False), BlindWorkSet(False, True)]
    assisted = Class().workspace
    assert resolve_blind(assisted, "alice", blind=True, taxonomy=MAST.ref)
    assert not resolve_blind(assisted, "alice", taxonomy=MAST.ref)
    assert not resolve_blind(assisted, "alice")


def test_others_work_blind_in_a_blind_study() -> None:
    room = Class(blind=True, adjudicators=("dee",))
    assert resolve_blind(room.workspace, "mallory", taxonomy=MAST.ref)
    assert not resolve_blind(room.workspace, "dee", taxonomy=MAST.ref)
    assert not resolve_blind(room.workspace, "mallory", assisted=True, taxonomy=MAST.ref)
    assert resolve_blind(room.workspace, "mallory", taxonomy=MAST.ref)


def test_others_see_no_withheld_suggestions() -> None:
    room = Class(blind=False, withheld=0.5, adjudicators=("dee",))
    room.judge(*room.traces)
    held, _ = withheld_and_other(room)
    for name, shown in (("mallory", False), ("dee", True)):
        session = room.open(held, name)
        assert session.suggestions_visible is shown
        assert bool(session.pending) is shown
        assert entry_of(room, held, name).suggestions_visible is shown
    # Traces that the study withholds from nobody are shown.
    shown_to_all = next(x for x in room.traces if x not in withheld_traces(room.study, "mallory"))
    assert room.open(shown_to_all, "mallory").suggestions_visible


def trace_to_retest(room: Class) -> str:
    room.finish(*room.order(), mode=ONE)
    (due, *_) = retest_progress(room.workspace, "alice", MAST.ref).due
    return due


def test_a_retest_starts_empty() -> None:
    room = Class(retests=0.2)
    trace_id = trace_to_retest(room)
    room.judge(trace_id, findings=(finding(ONE, 0), finding(TWO, 1)))
    first = room.workspace.labels(trace_id=trace_id, annotator="alice")
    assert len(first) == 1
    session = room.open(trace_id)
    assert (session.current, session.finished) == (None, False)
    assert not session.labels
    assert not session.verdicts
    assert not session.span_notes
    assert not session.read
    assert len(session.pending) == 2
    assert session.undo() is None
    session.mark_read(["k0"])
    put(session, TWO, span(1))
    assert (current(session).kind, current(session).number) == (PassKind.RETEST, 2)
    assert [x.mode for x in session.labels] == [TWO]
    assert content(room.open(trace_id)) == content(session)
    session.finish(open_modes="absent")
    assert (current(session).read, session.verdict(ONE)) == (1, VerdictValue.ABSENT)
    assert room.workspace.reads("alice", trace_id, MAST.ref, 2).keys == ("k0",)
    again = room.open(trace_id)
    assert ([x.id for x in again.labels], current(again).number) == ([x.id for x in first], 1)
    assert not again.read
    put(again, THREE, span(0))
    again.mark_read(["k1"])
    assert room.workspace.reads("alice", trace_id, MAST.ref, 3).keys == ("k1",)
    again.undo()
    assert again.verdict(ONE) is VerdictValue.PRESENT
    assert room.workspace.labels(trace_id=trace_id, annotator="alice") == first
    assert [x.mode for x in room.workspace.labels(trace_id=trace_id, pass_number=2)] == [TWO]
    before = state(room.workspace)
    room.workspace.rebuild()
    assert state(room.workspace) == before
    assert retest_progress(room.workspace, "alice", MAST.ref).done == {trace_id}


def test_undo_in_a_retest_ends_at_its_start() -> None:
    room = Class(retests=0.2, withheld=1.0)
    trace_id = trace_to_retest(room)
    room.judge(trace_id)
    session = room.open(trace_id)
    assert session.suggestions == ()  # as in the first reading
    put(session, TWO, span(1))
    assert current(session).withheld
    assert session.undo() is not None
    assert session.undo() is None
    assert not session.labels
    session.redo()
    assert [x.mode for x in session.labels] == [TWO]
    session.finish(open_modes="absent")
    session.undo()
    assert not session.finished
    session.finish(open_modes="leave")
    first = room.workspace.labels(trace_id=trace_id, annotator="alice", pass_number=1)
    assert [x.mode for x in first] == [ONE]


def test_a_finished_retest_is_changed_by_undo_alone() -> None:
    room = Class(retests=0.2)
    trace_id = trace_to_retest(room)
    session = room.open(trace_id)
    session.finish(open_modes="leave")
    with pytest.raises(SessionError, match="finished and cannot be changed"):
        put(session, TWO, span(1))
    session.undo()
    put(session, TWO, span(1))
    assert current(session).number == 2
    session.finish(open_modes="leave")
    later = room.open(trace_id)
    assert later.undo() is None
    put(later, THREE, span(1))
    assert (current(later).number, current(later).kind) == (3, PassKind.SECOND_LOOK)
    assert [x.mode for x in later.labels] == [ONE, THREE]


def test_another_window_continues_a_retest() -> None:
    room = Class(retests=0.2)
    trace_id = next(iter(retest_traces(room.study, "alice")))
    room.finish(trace_id, mode=ONE)
    open_before = room.open(trace_id)
    room.finish(*(x for x in room.order() if x != trace_id))
    put(room.open(trace_id), TWO, span(1))
    with pytest.raises(SessionError, match="another window"):
        put(open_before, THREE, span(0))
    assert [x.mode for x in open_before.labels] == [TWO]
    put(open_before, THREE, span(0))
    kinds = [p.kind for p in room.workspace.passes(trace_id=trace_id)]
    assert kinds == [PassKind.ASSISTED, PassKind.RETEST]


def test_a_trace_of_others_is_not_begun_by_looking_at_it() -> None:
    room = Class(overlap=0.0)
    for trace_id in (room.order()[0], room.order("bob")[0]):
        session = room.open(trace_id)
        session.mark_read([session.trace.span(0).key])
    assert [row.open for row in status(room.workspace, MAST).annotators if row.name == "alice"] == [
        1
    ]
    assert study_from_workspace(room.workspace, MAST).unfinished == {"alice": 1}


def test_a_retest_looks_like_ordinary_work() -> None:
    room = Class(retests=0.2)
    trace_id = trace_to_retest(room)
    room.finish(trace_id, annotator="bob")
    entry = entry_of(room, trace_id)
    assert (entry.state, entry.finished_by, entry.own_labels) == ("untouched", ("bob",), 0)
    session = room.open(trace_id)
    put(session, TWO, span(1))
    assert entry_of(room, trace_id).state == "open"
    room.judge(trace_id)
    assert entry_of(room, trace_id).waiting == 1
    session.finish(open_modes="leave")
    entry = entry_of(room, trace_id)
    assert (entry.state, entry.finished_by) == ("finished", ("alice", "bob"))


def test_others_are_hidden_in_a_retest() -> None:
    room = Class(retests=0.2)
    trace_id = trace_to_retest(room)
    room.finish(trace_id, annotator="bob", mode=THREE)
    others = [x for x in room.traces if x not in retest_traces(room.study, "alice")]
    assert visible_traces_for_agreement(room.workspace, "alice", MAST.ref) == set(others)
    session = room.open(trace_id)
    with pytest.raises(SessionError, match="once you have finished"):
        session.reveal()
    session.finish(open_modes="leave")
    assert not session.others
    session.reveal()
    assert [x.mode for x in session.others] == [THREE]
    assert room.open(trace_id).others_shown
    assert trace_id in visible_traces_for_agreement(room.workspace, "alice", MAST.ref)


def test_revealed_traces_are_not_retested() -> None:
    room = Class(retests=0.2)
    first, second = retest_traces(room.study, "alice")
    room.finish(first, second)
    room.open(first).reveal()
    put(room.open(second), TWO, span(0))
    room.open(second).finish(open_modes="leave")
    room.finish(*(x for x in room.order() if x not in (first, second)))
    found = retest_progress(room.workspace, "alice", MAST.ref)
    assert not found.due
    assert found.lost == {first, second}
    assert room.open(first).finished


# Queues of traces, and the progress of annotators


def ids(room: Class, kind: QueueKind = QueueKind.MINE, annotator: str = "alice") -> list[str]:
    return [item.trace_id for item in queue(room.workspace, MAST, annotator, kind)]


def test_open_traces_come_in_the_annotators_order() -> None:
    room = Class(8)
    with closing(Workspace.open(":memory:")) as workspace:
        for trace in room.traces.values():
            register_opened_trace(workspace, trace)
        assert [x.trace_id for x in queue(workspace, MAST, "alice")] == list(room.traces)
    assert ids(room) == list(room.order())
    assert ids(room, annotator="bob") == list(room.order("bob")) != ids(room)
    first, second, third, *rest = room.order()
    room.finish(first, third)
    put(room.open(second), ONE, span(0))
    assert queue(room.workspace, MAST, "alice")[0] == QueueItem(second, begun=True)
    assert ids(room) == [second, *rest]
    put(room.open(third), ONE, span(0))  # a second look must be finished again
    assert (ids(room), ids(room, annotator="carol")) == ([second, third, *rest], [])


def test_retests_are_mixed_in() -> None:
    room = Class(14, retests=0.2)
    order = room.order()
    room.finish(*order[:12])
    put(room.open(order[12]), ONE, span(0))
    due = [x for x in order[:2] if x in retest_traces(room.study, "alice")]
    assert due
    assert (ids(room), ids(room, QueueKind.RETESTS)) == ([order[12], *due, order[13]], due)
    put(room.open(due[0]), TWO, span(0))
    assert [(x.trace_id, x.begun, x.retest) for x in queue(room.workspace, MAST, "alice")] == [
        (order[12], True, False),
        (due[0], True, True),
        *((x, False, True) for x in due[1:]),
        (order[13], False, False),
    ]
    room.open(due[0]).finish(open_modes="absent")
    assert ids(room) == [order[12], *due[1:], order[13]]


def test_disagreements_on_finished_traces() -> None:
    room = Class(5)
    room.finish("t00", "t01", "t02", "t03", mode=ONE)
    room.finish("t00", "t04", annotator="bob", mode=TWO)
    room.finish("t01", annotator="bob", mode=ONE)
    room.finish("t02", annotator="bob")
    put(room.open("t03", "bob"), TWO, span(0))
    assert queue(room.workspace, MAST, "alice", QueueKind.DISAGREEMENTS) == (
        QueueItem("t00", (ONE, TWO)),
        QueueItem("t02", (ONE,)),
    )
    with pytest.raises(Exception, match="cannot be undone"):
        room.open("t01").undo()
    assert room.open("t04").current is None


def test_disagreements_on_retests_are_hidden() -> None:
    room = Class(12, retests=0.2)
    room.finish(*room.traces, mode=ONE)
    room.finish(*room.traces, annotator="bob", mode=TWO)
    back = set(retest_traces(room.study, "alice"))
    assert set(ids(room, QueueKind.DISAGREEMENTS)) == set(room.traces) - back
    assert set(ids(room, QueueKind.RETESTS)) == back
    for trace_id in back:
        room.finish(trace_id, mode=TWO)
    assert set(ids(room, QueueKind.DISAGREEMENTS)) == set(room.traces)


def test_traces_where_a_judge_differs() -> None:
    room = Class(4, withheld=1.0)
    room.judge("t00", "t01", "t02", findings=(finding(ONE, 0),))
    room.finish("t00", mode=ONE)
    room.finish("t01", "t03")
    assert queue(room.workspace, MAST, "alice", QueueKind.JUDGE) == (QueueItem("t01", (ONE,)),)
    assert room.open("t01").suggestions
    assert room.open("t02").suggestions == ()


def test_traces_with_unsure_modes() -> None:
    room = Class(4)
    session = room.open("t02")
    session.set_verdict(TWO, VerdictValue.UNSURE)
    session.set_verdict(ONE, VerdictValue.UNSURE)
    assert queue(room.workspace, MAST, "alice", QueueKind.UNSURE) == (
        QueueItem("t02", (ONE, TWO), begun=True),
    )
    assert ids(room, QueueKind.UNSURE, "bob") == []


def test_samples_are_of_own_traces() -> None:
    room = Class(10, overlap=0.0)
    found = queue(room.workspace, MAST, "alice", QueueKind.SAMPLE, n=3)
    assert {x.trace_id for x in found} < set(room.order())
    assert len(found) == 3
    assert found == queue(room.workspace, MAST, "alice", QueueKind.SAMPLE, n=3)
    samples = {
        queue(room.workspace, MAST, "alice", QueueKind.SAMPLE, n=3, seed=seed) for seed in range(9)
    }
    assert len(samples) > 1
    assert set(ids(room, QueueKind.SAMPLE, "carol")) == set(room.traces)


def test_progress_of_assigned_traces() -> None:
    room = Class(12, overlap=0.5, withheld=0.25, retests=0.25)
    alice, bob = progress(room.workspace, room.study)
    assert (alice.assigned + bob.assigned, (alice.shared, bob.shared)) == (12 + 6, (6, 6))
    assert alice.planned == alice.withheld == round(alice.assigned / 4)
    assert (alice.finished, alice.begun, alice.left) == (0, 0, alice.assigned)
    first, second, *_ = room.order()
    room.finish(first)
    put(room.open(second), ONE, span(0))
    not_hers = next(x for x in room.traces if x not in room.order())
    room.finish(not_hers)
    alice, bob = progress(room.workspace, room.study)
    assert (alice.finished, alice.begun, alice.left) == (1, 1, alice.assigned - 1)
    assert ((bob.finished, bob.begun), len(alice.retests.to_come)) == ((0, 0), alice.planned)
    released = with_released_traces(room.workspace, room.study, "alice")
    (release,) = released.releases
    assert (release.annotator, {*release.traces}) == ("alice", {*room.order()} - {first})
    assert {*overlap_traces(released)}.isdisjoint(release.traces)
    room.finish(*release.traces)
    assert with_released_traces(room.workspace, room.study, "alice") == room.study
