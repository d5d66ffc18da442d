"""Labels and verdicts of one's own."""

from __future__ import annotations

import pytest

from mast_tui.labels import (
    WHOLE_TRACE,
    Origin,
    PassKind,
    Severity,
    Target,
    VerdictValue,
)
from mast_tui.session import Session, SessionError
from mast_tui.workspace import WorkspaceError
from tests.session.build import Desk, content, put, span, spans
from tests.workspace.build import MAST, MODES, TRACE, state

ONE, TWO = MODES[:2]
QUOTE = Target("k1", "k1", "get", 8, 11)


def test_opening_begins_no_pass(desk: Desk) -> None:
    session = desk.open()
    assert session.current is None
    assert not session.finished
    assert session.labels == ()
    assert list(desk.workspace.events()) == []
    assert [trace.trace_id for trace in desk.workspace.traces()] == [TRACE]


@pytest.mark.parametrize(("blind", "kind"), [(True, PassKind.BLIND), (False, PassKind.ASSISTED)])
def test_the_first_label_begins_the_first_pass(desk: Desk, blind: bool, kind: PassKind) -> None:
    session = desk.open(blind=blind)
    change = session.toggle_label(ONE, span(2), suggestions_on_screen=False)
    assert session.current is not None
    assert (session.current.number, session.current.kind) == (1, kind)
    assert change.key == "k2"
    assert change.mode == ONE
    assert "#3" in change.message
    assert MAST.mode(ONE).name in change.message
    (label,) = session.labels
    assert (label.annotator, label.trace_id, label.taxonomy) == ("alice", TRACE, MAST.ref)
    assert label.origin is Origin.MANUAL
    assert desk.workspace.labels() == session.labels


@pytest.mark.parametrize("target", [span(0), spans(1, 3), QUOTE, WHOLE_TRACE])
def test_the_same_again_takes_the_label_off(desk: Desk, target: Target) -> None:
    session = desk.open()
    session.toggle_label(ONE, target, suggestions_on_screen=False)
    assert [label.target for label in session.labels] == [target]
    session.toggle_label(ONE, target, suggestions_on_screen=False)
    assert session.labels == ()
    assert desk.workspace.labels() == ()


def test_only_exactly_the_same_target_is_the_same(desk: Desk) -> None:
    session = desk.open()
    targets = [WHOLE_TRACE, span(1), QUOTE, spans(1, 3), span(3)]
    for target in reversed(targets):
        put(session, ONE, target)
    assert {label.target for label in session.labels} == set(targets)
    assert session.labels[0].target == WHOLE_TRACE
    assert session.labels[-1].target == span(3)


def test_a_range_may_be_marked_backwards(desk: Desk) -> None:
    session = desk.open()
    session.toggle_label(ONE, spans(3, 1), suggestions_on_screen=False)
    assert [label.target for label in session.labels] == [spans(1, 3)]
    session.toggle_label(ONE, spans(1, 3), suggestions_on_screen=False)
    assert session.labels == ()


def test_a_label_is_on_every_span_that_it_covers(desk: Desk) -> None:
    session = desk.open()
    put(session, ONE, spans(1, 3))
    put(session, TWO, span(2))
    put(session, TWO, WHOLE_TRACE)
    put(session, TWO, QUOTE)
    found = {f"k{i}": [x.mode for x in session.labels_at(f"k{i}")] for i in range(5)}
    assert found == {
        "k0": [],
        "k1": [ONE, TWO],
        "k2": [ONE, TWO],
        "k3": [ONE],
        "k4": [],
    }
    assert session.labels_at("elsewhere") == ()


@pytest.mark.parametrize(
    "target",
    [
        Target("nowhere", "nowhere"),
        Target("k0", "nowhere"),
        Target("k1", "k1", "get"),
        Target("k1", "k1", "get", 8, 9),
        Target("k1", "k1", "", 8, 8),
    ],
)
def test_what_is_not_in_the_trace_is_refused(desk: Desk, target: Target) -> None:
    session = desk.open()
    version = session.version
    with pytest.raises(SessionError):
        session.toggle_label(ONE, target, suggestions_on_screen=False)
    assert session.version == version
    assert list(desk.workspace.events()) == []


def test_an_unknown_mode_is_refused(desk: Desk) -> None:
    session = desk.open()
    with pytest.raises(SessionError, match="no mode 'x'"):
        session.toggle_label("x", span(0), suggestions_on_screen=False)
    with pytest.raises(SessionError, match="no mode 'x'"):
        session.set_verdict("x", VerdictValue.ABSENT)


def test_a_label_can_be_changed_in_every_part(desk: Desk) -> None:
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


def test_a_label_cannot_become_one_that_is_there(desk: Desk) -> None:
    session = desk.open()
    first, _ = put(session, ONE, span(0)), put(session, ONE, span(1))
    with pytest.raises(SessionError, match="already"):
        session.edit_label(first, target=span(1))
    with pytest.raises(SessionError, match="between 0 and 1"):
        session.edit_label(first, confidence=1.5)
    assert len(session.labels) == 2


def test_changing_nothing_writes_nothing(desk: Desk) -> None:
    session = desk.open()
    label_id = put(session, ONE, span(0))
    events = list(desk.workspace.events())
    session.edit_label(label_id, note="")
    session.note_span("k0", "")
    session.set_verdict(TWO, None)
    session.mark_read([])
    assert list(desk.workspace.events()) == events


def test_somebody_elses_label_is_not_mine_to_remove(desk: Desk) -> None:
    label_id = put(desk.open("bob"), ONE, span(0))
    session = desk.open("alice")
    with pytest.raises(SessionError, match="not yours"):
        session.remove_label(label_id)
    with pytest.raises(SessionError, match="not yours"):
        session.edit_label(label_id, note="x")
    assert len(desk.workspace.labels()) == 1


def test_a_verdict_said_twice_is_open_again(desk: Desk) -> None:
    session = desk.open()
    assert session.verdict(ONE) is None
    session.set_verdict(ONE, VerdictValue.UNSURE)
    session.set_verdict(ONE, VerdictValue.ABSENT)
    assert session.verdict(ONE) is VerdictValue.ABSENT
    session.set_verdict(ONE, VerdictValue.ABSENT)
    assert session.verdict(ONE) is None
    assert dict(session.verdicts) == {}


def test_a_label_withdraws_what_was_said_against_its_mode(desk: Desk) -> None:
    session = desk.open()
    session.set_verdict(ONE, VerdictValue.ABSENT)
    session.set_verdict(TWO, VerdictValue.UNSURE)
    label_id = put(session, ONE, span(0))
    assert session.verdict(ONE) is VerdictValue.PRESENT
    session.edit_label(label_id, mode=TWO)
    assert dict(session.verdicts) == {TWO: VerdictValue.PRESENT}
    session.remove_label(label_id)
    assert dict(session.verdicts) == {}


def test_absent_over_labels_asks_first(desk: Desk) -> None:
    session = desk.open()
    put(session, ONE, span(0))
    put(session, ONE, span(1))
    put(session, TWO, span(1))
    with pytest.raises(SessionError, match=r"2 labels of .* are on this trace"):
        session.set_verdict(ONE, VerdictValue.ABSENT)
    assert len(session.labels) == 3
    session.set_verdict(ONE, VerdictValue.ABSENT, remove_labels=True)
    assert [x.mode for x in session.labels] == [TWO]
    assert session.verdict(ONE) is VerdictValue.ABSENT
    session.undo()
    assert len(session.labels) == 3
    assert session.verdict(ONE) is VerdictValue.PRESENT


def test_present_is_said_with_a_label(desk: Desk) -> None:
    with pytest.raises(SessionError, match="label a span"):
        desk.open().set_verdict(ONE, VerdictValue.PRESENT)


def test_spans_have_notes(desk: Desk) -> None:
    session = desk.open()
    change = session.note_span("k2", "  odd \n")
    assert change.key == "k2"
    assert dict(session.span_notes) == {"k2": "odd"}
    assert desk.workspace.span_notes()[0].text == "odd"
    session.note_span("k2", " ")
    assert dict(session.span_notes) == {}
    with pytest.raises(SessionError):
        session.note_span("nowhere", "x")


def test_every_change_counts_the_version_up(desk: Desk) -> None:
    session = desk.open()
    seen = [session.version]
    for step in (
        lambda: put(session, ONE, span(0)),
        lambda: session.set_verdict(TWO, VerdictValue.ABSENT),
        lambda: session.note_span("k0", "x"),
        lambda: session.mark_read(["k0"]),
        session.undo,
        session.redo,
        session.refresh_suggestions,
    ):
        step()
        seen.append(session.version)
    assert seen == sorted(set(seen))


def test_a_judge_cannot_sit_down(desk: Desk) -> None:
    with pytest.raises(SessionError, match="judge"):
        desk.open("judge:rules@1")
    with pytest.raises(WorkspaceError):
        desk.open("a|b")


def test_the_trace_has_one_id_wherever_it_is_opened(desk: Desk) -> None:
    session = desk.open()
    assert session.trace_id == TRACE
    other = desk.trace.identity._replace(content_hash="0" * 64)
    desk.trace._identity = other
    assert desk.open().trace_id == f"{TRACE}~2"


def test_what_the_session_shows_is_what_the_workspace_keeps(desk: Desk) -> None:
    session = desk.open()
    put(session, ONE, spans(0, 2))
    session.set_verdict(TWO, VerdictValue.UNSURE)
    session.note_span("k1", "note")
    session.mark_read(["k0", "k3"])
    again = desk.open()
    assert content(again) == content(session)
    assert again.labels == session.labels
    assert set(again.read) == {"k0", "k3"}
    before = state(desk.workspace)
    desk.workspace.rebuild()
    assert state(desk.workspace) == before


def test_nothing_changes_where_nothing_can_be_written(desk: Desk) -> None:
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
    assert content(session) == before
    assert session.version == version


def label_elsewhere(desk: Desk) -> Session:
    other = desk.open()
    put(other, TWO, span(4))
    return other


def test_two_windows_of_one_person_do_not_overwrite_each_other(desk: Desk) -> None:
    session = desk.open()
    put(session, ONE, span(0))
    label_elsewhere(desk)
    with pytest.raises(SessionError, match="Your key had no effect"):
        session.toggle_label(ONE, span(0), suggestions_on_screen=False)
    assert [x.mode for x in session.labels] == [ONE, TWO]
    session.toggle_label(ONE, span(0), suggestions_on_screen=False)
    assert [x.mode for x in session.labels] == [TWO]
    assert desk.workspace.labels() == session.labels


def test_reading_on_in_two_windows_disturbs_nobody(desk: Desk) -> None:
    session = desk.open()
    session.mark_read(["k0"])
    other = label_elsewhere(desk)
    session.mark_read(["k1"])
    other.mark_read(["k1", "k2"])
    assert set(other.read) == {"k0", "k1", "k2"}
    assert [x.mode for x in session.labels] == [TWO]
