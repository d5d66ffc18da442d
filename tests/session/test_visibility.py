"""What each annotator sees, and when."""

from __future__ import annotations

import pytest

from mast_tui.labels import AnnotatorKind, PassKind
from mast_tui.session import (
    AnnotatorStatus,
    LibraryEntry,
    SessionError,
    library_view,
    record_reveal,
    resolve_blind,
    status,
    visible_traces_for_agreement,
)
from mast_tui.workspace import TraceRecord
from mast_tui.workspace.events.types import BlindWorkSet, PassFinished, PassStarted
from tests.session.build import Desk, finding, put, span
from tests.workspace.build import MAST, MODES, TRACE, event, trace_of

ONE, TWO = MODES[:2]


def entry(desk: Desk, annotator: str = "alice", *, blind: bool = False) -> LibraryEntry:
    return library_view(desk.workspace, annotator, MAST.ref, blind=blind)[TRACE]


def test_blind_annotators_see_suggestions_after_revealing(desk: Desk) -> None:
    desk.judge(finding(ONE, 0))
    session = desk.open(blind=True)
    hidden = desk.workspace.labels()[0].id
    for finished in (False, True):
        assert session.suggestions == session.pending == ()
        assert not session.outcome_visible
        with pytest.raises(SessionError, match="hidden"):
            session.accept(hidden)
        with pytest.raises(SessionError, match="hidden"):
            session.reject(hidden)
        session.note_suggestions_on_screen()
        if not finished:
            put(session, ONE, span(0))
            session.finish(open_modes="leave")
    assert session.current is not None
    assert not session.current.judge_seen
    session.reveal()
    assert session.outcome_visible
    assert (len(session.suggestions), len(desk.open(blind=True).pending)) == (1, 1)
    session.accept(hidden)
    assert session.current.kind is PassKind.SECOND_LOOK


def test_assisted_annotators_see_others_after_revealing(desk: Desk) -> None:
    desk.judge(finding(ONE, 0))
    put(desk.open("bob"), TWO, span(1))
    session = desk.open()
    assert session.outcome_visible
    assert len(session.suggestions) == 1
    assert not session.others
    session.finish(open_modes="leave")
    assert not session.others
    session.reveal()
    assert {x.annotator for x in session.others} == {"bob"}
    put(desk.open("carol"), TWO, span(1))
    session.refresh_suggestions()
    assert {x.annotator for x in session.others} == {"bob", "carol"}


def test_the_library_shows_the_state_of_traces(desk: Desk) -> None:
    desk.judge(finding(ONE, 0), finding(TWO, 1))
    desk.workspace.register_trace(TraceRecord.from_trace(trace_of("x", trace_id="other")))
    session = desk.open()
    assert entry(desk) == LibraryEntry("untouched", (), 0, 2, True)
    session.accept(session.pending[0].id)
    assert entry(desk) == LibraryEntry("open", (), 1, 1, True)
    session.finish(open_modes="leave")
    assert entry(desk) == LibraryEntry("finished", ("alice",), 1, 1, True)
    other = library_view(desk.workspace, "alice", "other@1", blind=False)[TRACE]
    assert other == LibraryEntry("untouched", (), 0, 0, True)
    put(session, TWO, span(4))
    assert entry(desk) == LibraryEntry("open", (), 2, 1, True)
    other = library_view(desk.workspace, "alice", MAST.ref, blind=False)["other"]
    assert other == LibraryEntry("untouched", (), 0, 0, True)


def test_the_library_counts_nothing_hidden(desk: Desk) -> None:
    desk.judge(finding(ONE, 0))
    bob = desk.open("bob")
    put(bob, ONE, span(0))
    bob.finish(open_modes="leave")
    alice = desk.open(blind=True)
    assert entry(desk, blind=True) == LibraryEntry("untouched", ("bob",), 0, 0, False)
    alice.finish(open_modes="leave")
    assert entry(desk, blind=True) == LibraryEntry("finished", ("alice", "bob"), 0, 0, False)
    alice.reveal()
    assert entry(desk, blind=True) == LibraryEntry("finished", ("alice", "bob"), 0, 1, True)
    alice.reject(alice.pending[0].id)
    assert entry(desk, blind=True).waiting == 0


def test_agreement_covers_finished_traces(desk: Desk) -> None:
    session = desk.open()
    put(session, ONE, span(0))
    assert visible_traces_for_agreement(desk.workspace, "alice", MAST.ref) == frozenset()
    session.finish(open_modes="leave")
    assert visible_traces_for_agreement(desk.workspace, "alice", MAST.ref) == {TRACE}
    assert visible_traces_for_agreement(desk.workspace, "bob", MAST.ref) == frozenset()
    session.undo()
    assert visible_traces_for_agreement(desk.workspace, "alice", MAST.ref) == frozenset()


def test_adjudicators_see_all_labels(desk: Desk) -> None:
    start = PassStarted(PassKind.ADJUDICATION)
    desk.workspace.append([event(start, annotator="carol")])
    assert visible_traces_for_agreement(desk.workspace, "carol", MAST.ref) == {TRACE}
    assert entry(desk, "carol", blind=True).outcome_visible
    desk.workspace.append([event(PassFinished(), annotator="carol")])
    assert (entry(desk, "carol").finished_by, entry(desk, "carol").state) == ((), "untouched")


def test_seeing_figures_makes_the_finish_final(desk: Desk) -> None:
    session = desk.open()
    with pytest.raises(SessionError, match="not finished"):
        record_reveal(desk.workspace, "alice", MAST.ref, [TRACE])
    session.finish(open_modes="leave")
    record_reveal(desk.workspace, "alice", MAST.ref, [TRACE, TRACE])
    events = list(desk.workspace.events())
    record_reveal(desk.workspace, "alice", MAST.ref, [TRACE])
    assert list(desk.workspace.events()) == events
    again = desk.open()
    assert again.others_shown
    with pytest.raises(SessionError, match="cannot be undone"):
        again.undo()


def test_blind_work_is_remembered(desk: Desk) -> None:
    workspace = desk.workspace
    desk.open()
    assert not resolve_blind(workspace, "alice")
    assert list(workspace.events()) == []
    assert resolve_blind(workspace, "alice", blind=True)
    assert resolve_blind(workspace, "alice")
    assert resolve_blind(workspace, "alice", blind=True)
    assert not resolve_blind(workspace, "alice", assisted=True)
    assert not resolve_blind(workspace, "alice")
    assert resolve_blind(workspace, "alice", blind=True)
    assert [one.fact for one in workspace.events()] == [
        BlindWorkSet(None, True),
        BlindWorkSet(True, False),
        BlindWorkSet(False, True),
    ]
    assert not resolve_blind(workspace, "bob")
    with pytest.raises(SessionError, match="exclude"):
        resolve_blind(workspace, "alice", blind=True, assisted=True)


def test_status_counts_traces_by_annotator(desk: Desk) -> None:
    desk.judge(finding(ONE, 0))
    desk.workspace.add_annotator("zoe", AnnotatorKind.IMPORTED)
    bob = desk.open("bob")
    put(bob, ONE, span(0))
    alice = desk.open()
    alice.finish(open_modes="leave")
    put(alice, TWO, span(1))
    report = status(desk.workspace, MAST)
    assert (report.taxonomy, report.traces) == (MAST.ref, 1)
    assert report.annotators == (
        AnnotatorStatus("alice", AnnotatorKind.HUMAN, 1, 1),
        AnnotatorStatus("bob", AnnotatorKind.HUMAN, 0, 1),
        AnnotatorStatus("zoe", AnnotatorKind.IMPORTED, 0, 0),
    )
