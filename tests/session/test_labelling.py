"""Labels and verdicts of an annotator's own."""

from __future__ import annotations

import pytest

from mast_tui.labels import WHOLE_TRACE, Origin, PassKind, Severity, Target, VerdictValue
from mast_tui.session import SessionError
from mast_tui.workspace import WorkspaceError
from tests.session.build import Desk, content, put, span, spans
from tests.workspace.build import MAST, MODES, TRACE

ONE, TWO = MODES[:2]
QUOTE = Target("k1", "k1", "get", 8, 11)


@pytest.mark.parametrize(("blind", "kind"), [(True, PassKind.BLIND), (False, PassKind.ASSISTED)])
def test_the_first_label_starts_a_pass(desk: Desk, blind: bool, kind: PassKind) -> None:
    session = desk.open(blind=blind)
    assert (session.current, session.finished) == (None, False)
    assert list(desk.workspace.events()) == []
    assert [trace.trace_id for trace in desk.workspace.traces()] == [TRACE]
    change = session.toggle_label(ONE, span(2), suggestions_on_screen=False)
    assert session.current is not None
    assert ((session.current.number, session.current.kind), change.key) == ((1, kind), "k2")
    assert change.mode == ONE
    assert "#3" in change.message
    assert MAST.mode(ONE).name in change.message
    (label,) = session.labels
    assert (label.annotator, label.trace_id, label.taxonomy) == ("alice", TRACE, MAST.ref)
    assert (label.origin, desk.workspace.labels()) == (Origin.MANUAL, session.labels)


def test_the_same_target_again_removes_the_label(desk: Desk) -> None:
    session = desk.open()
    targets = [WHOLE_TRACE, span(1), QUOTE, spans(1, 3), span(3)]
    for target in reversed(targets):
        put(session, ONE, target)
    assert {label.target for label in session.labels} == set(targets)
    assert (session.labels[0].target, session.labels[-1].target) == (WHOLE_TRACE, span(3))
    for target in (WHOLE_TRACE, span(1), QUOTE, spans(3, 1), span(3)):  # a range backwards too
        session.toggle_label(ONE, target, suggestions_on_screen=False)
    assert not session.labels
    assert not desk.workspace.labels()
    session.toggle_label(ONE, spans(3, 1), suggestions_on_screen=False)
    assert [label.target for label in session.labels] == [spans(1, 3)]


def test_labels_are_found_on_each_of_their_spans(desk: Desk) -> None:
    session = desk.open()
    put(session, ONE, spans(1, 3))
    put(session, TWO, span(2))
    put(session, TWO, WHOLE_TRACE)
    put(session, TWO, QUOTE)
    found = {f"k{i}": [x.mode for x in session.labels_at(f"k{i}")] for i in range(5)}
    assert found == {"k0": [], "k1": [ONE, TWO], "k2": [ONE, TWO], "k3": [ONE], "k4": []}
    assert session.labels_at("elsewhere") == ()


def test_unknown_targets_and_modes_are_refused(desk: Desk) -> None:
    session = desk.open()
    version = session.version
    for target in (
        Target("nowhere", "nowhere"),
        Target("k0", "nowhere"),
        Target("k1", "k1", "get"),
        Target("k1", "k1", "get", 8, 9),
        Target("k1", "k1", "", 8, 8),
    ):
        with pytest.raises(SessionError):
            session.toggle_label(ONE, target, suggestions_on_screen=False)
    with pytest.raises(SessionError, match="no mode 'x'"):
        session.toggle_label("x", span(0), suggestions_on_screen=False)
    with pytest.raises(SessionError, match="no mode 'x'"):
        session.set_verdict("x", VerdictValue.ABSENT)
    with pytest.raises(SessionError, match="label a span"):
        session.set_verdict(ONE, VerdictValue.PRESENT)
    assert (session.version, list(desk.workspace.events())) == (version, [])


def test_labels_are_edited_and_duplicates_refused(desk: Desk) -> None:
    session = desk.open()
    label_id = put(session, ONE, span(0))
    session.edit_label(label_id, note="why", confidence=0.0, severity=Severity.FATAL)
    (label,) = session.labels
    assert (label.note, label.confidence, label.severity) == ("why", 0.0, Severity.FATAL)
    session.edit_label(label_id, mode=TWO, target=span(4))
    (label,) = session.labels
    assert (label.id, label.mode, label.target, label.note) == (label_id, TWO, span(4), "why")
    session.edit_label(label_id, confidence=None, severity=None, note="")
    (label,) = session.labels
    assert (label.note, label.confidence, label.severity) == ("", None, None)
    assert desk.workspace.labels() == session.labels
    events = list(desk.workspace.events())
    session.edit_label(label_id, note="")
    session.note_span("k0", "")
    session.set_verdict(ONE, None)
    session.mark_read([])
    assert list(desk.workspace.events()) == events
    put(session, TWO, span(1))
    with pytest.raises(SessionError, match="already"):
        session.edit_label(label_id, target=span(1))
    with pytest.raises(SessionError, match="from 0 to 1"):
        session.edit_label(label_id, confidence=1.5)
    assert len(session.labels) == 2


def test_labels_of_others_cannot_be_changed(desk: Desk) -> None:
    label_id = put(desk.open("bob"), ONE, span(0))
    session = desk.open("alice")
    with pytest.raises(SessionError, match="not yours"):
        session.remove_label(label_id)
    with pytest.raises(SessionError, match="not yours"):
        session.edit_label(label_id, note="x")
    assert len(desk.workspace.labels()) == 1


def test_verdicts_are_replaced_and_withdrawn(desk: Desk) -> None:
    session = desk.open()
    assert session.verdict(ONE) is None
    session.set_verdict(ONE, VerdictValue.UNSURE)
    session.set_verdict(ONE, VerdictValue.ABSENT)
    assert session.verdict(ONE) is VerdictValue.ABSENT
    session.set_verdict(ONE, VerdictValue.ABSENT)  # the same again withdraws it
    assert dict(session.verdicts) == {}
    session.set_verdict(ONE, VerdictValue.ABSENT)
    session.set_verdict(TWO, VerdictValue.UNSURE)
    label_id = put(session, ONE, span(0))
    assert session.verdict(ONE) is VerdictValue.PRESENT
    session.edit_label(label_id, mode=TWO)
    assert dict(session.verdicts) == {TWO: VerdictValue.PRESENT}
    session.remove_label(label_id)
    assert dict(session.verdicts) == {}


def test_absent_on_labels_is_confirmed(desk: Desk) -> None:
    session = desk.open()
    put(session, ONE, span(0))
    put(session, ONE, span(1))
    put(session, TWO, span(1))
    with pytest.raises(SessionError, match=r"remove 2 labels of .* on this trace first"):
        session.set_verdict(ONE, VerdictValue.ABSENT)
    assert len(session.labels) == 3
    session.set_verdict(ONE, VerdictValue.ABSENT, remove_labels=True)
    assert [x.mode for x in session.labels] == [TWO]
    assert session.verdict(ONE) is VerdictValue.ABSENT
    session.undo()
    assert (len(session.labels), session.verdict(ONE)) == (3, VerdictValue.PRESENT)


def test_spans_have_notes(desk: Desk) -> None:
    session = desk.open()
    change = session.note_span("k2", "  odd \n")
    assert (change.key, dict(session.span_notes)) == ("k2", {"k2": "odd"})
    assert desk.workspace.span_notes()[0].text == "odd"
    session.note_span("k2", " ")
    assert dict(session.span_notes) == {}
    with pytest.raises(SessionError):
        session.note_span("nowhere", "x")


def test_names_and_ids_of_traces(desk: Desk) -> None:
    with pytest.raises(SessionError, match="judge"):
        desk.open("judge:rules@1")
    with pytest.raises(WorkspaceError):
        desk.open("a|b")
    assert desk.open().trace_id == TRACE
    desk.trace._identity = desk.trace.identity._replace(content_hash="0" * 64)
    assert desk.open().trace_id == f"{TRACE}~2"


def test_failed_writes_change_nothing(desk: Desk) -> None:
    session = desk.open()
    put(session, ONE, span(0))
    before, version = content(session), session.version
    desk.workspace.close()
    for step in (
        lambda: session.toggle_label(TWO, span(1), suggestions_on_screen=False),
        lambda: session.mark_read(["k1"]),
        lambda: session.finish(open_modes="absent"),
        session.undo,
    ):
        with pytest.raises(WorkspaceError):
            step()
    assert (content(session), session.version) == (before, version)


def test_two_windows_of_one_annotator(desk: Desk) -> None:
    session = desk.open()
    session.mark_read(["k0"])
    other = desk.open()
    put(other, TWO, span(4))
    session.mark_read(["k1"])
    other.mark_read(["k1", "k2"])
    assert set(other.read) == {"k0", "k1", "k2"}
    assert [x.mode for x in session.labels] == [TWO]
    put(desk.open(), ONE, span(0))
    with pytest.raises(SessionError, match="Your key had no effect"):
        session.toggle_label(ONE, span(0), suggestions_on_screen=False)
    assert [x.mode for x in session.labels] == [ONE, TWO]
    session.toggle_label(ONE, span(0), suggestions_on_screen=False)
    assert [x.mode for x in session.labels] == [TWO]
    assert desk.workspace.labels() == session.labels
