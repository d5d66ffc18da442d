"""Open codes: their labels, visibility, groups, and saturation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from mast_tui.figures.source.agreement import study_from_workspace
from mast_tui.labels import Target, VerdictValue
from mast_tui.session import Session, SessionError, visible_traces_for_agreement
from mast_tui.session.open_codes import NO_WORDS, OpenCode, OpenCoding, grouped, open_coding
from mast_tui.taxonomy.model import OPEN_CODE_SLUG
from tests.figures.agreement.tables import agreement_document
from tests.session.build import Desk, put, span
from tests.session.studies import Class
from tests.workspace.build import MAST, MODES


@pytest.fixture
def room() -> Iterator[Class]:
    room = Class(6)
    yield room
    room.workspace.close()


def code_open(session: Session, words: str, number: int = 0) -> None:
    session.edit_label(put(session, OPEN_CODE_SLUG, span(number)), note=words)


def seen_by(room: Class, name: str = "alice") -> OpenCoding:
    visible = visible_traces_for_agreement(room.workspace, name, MAST.ref)
    return open_coding(room.workspace, MAST, name, visible)


def codes(*texts: str) -> list[OpenCode]:
    return [
        OpenCode("alice", f"t{n}", Target("k", "k"), text, True) for n, text in enumerate(texts)
    ]


def test_open_codes_are_labels_without_mode() -> None:
    desk = Desk.set_up()
    session = desk.open()
    change = session.toggle_label(OPEN_CODE_SLUG, span(1), suggestions_on_screen=False)
    assert change.message == "0.0 None of these modes on #2"
    (label,) = session.labels
    session.edit_label(label.id, note="talks to the wrong pod")
    session.undo()
    session.undo()
    assert not session.labels
    session.redo()
    session.finish(open_modes="absent")
    (label,) = session.labels
    assert label.mode == OPEN_CODE_SLUG
    assert {session.verdict(mode) for mode in MODES} == {VerdictValue.ABSENT}
    with pytest.raises(SessionError, match="can only be a label on a place"):
        desk.open("bob").set_verdict(OPEN_CODE_SLUG, VerdictValue.ABSENT)


def test_agreement_counts_open_codes_apart(room: Class) -> None:
    for name in ("alice", "bob"):
        room.finish("t00", "t01", annotator=name)
    before = agreement_document(study_from_workspace(room.workspace, MAST), rounds=0)
    session = room.open("t02")
    code_open(session, "something")
    session.finish(open_modes="absent")
    room.finish("t02", annotator="bob")
    after = agreement_document(study_from_workspace(room.workspace, MAST), rounds=0)
    assert after["left_out"]["open_codes"] == {"alice": 1, "bob": 0}
    assert before["left_out"]["open_codes"] == {"alice": 0, "bob": 0}
    assert after["pooled"]["n"] == before["pooled"]["n"] + len(MODES)
    assert after["pooled"]["raw_agreement"]["value"] == 1.0


def test_codes_of_others_are_shown_after_finishing(room: Class) -> None:
    code_open(room.open("t00"), "one's own")
    room.open("t00").note_span("k1", "beside it")
    for trace_id in ("t01", "t02"):
        session = room.open(trace_id, "bob")
        code_open(session, f"bob's on {trace_id}")
        session.finish(open_modes="absent")
    assert {code.text for code in seen_by(room).codes} == {"one's own", "beside it"}
    room.finish("t01")
    found = seen_by(room)
    assert {code.text for code in found.codes} == {"one's own", "beside it", "bob's on t01"}
    assert found.revealed_traces == {"t01"}
    assert not seen_by(room, "carol").codes
    assert len(open_coding(room.workspace, MAST, None, None).codes) == 4


def test_codes_of_retests_are_hidden() -> None:
    room = Class(6, retests=1.0)
    with closing(room.workspace):
        for trace_id in room.order():
            session = room.open(trace_id)
            code_open(session, trace_id)
            session.finish(open_modes="absent")
        shown = {code.trace_id for code in seen_by(room).codes}
        assert shown < set(room.order())
        assert len(open_coding(room.workspace, MAST, None, None).codes) == 6


def test_similar_texts_are_grouped() -> None:
    texts = (
        "ignores the error of the tool",
        "talks to the wrong customer",
        "the tool's error was ignored",
        "Ignored an error that the tool gave",
        "wrong customer!",
        "never asks for the order number",
    )
    found = grouped(codes(*texts))
    assert [sorted(code.text for code in group.codes) for group in found] == [
        sorted(texts[n] for n in (0, 2, 3)),
        sorted(texts[n] for n in (1, 4)),
        [texts[5]],
    ]
    assert found[1].name == "wrong customer!"


def test_later_texts_leave_groups_together() -> None:
    texts = ["ignores the tool's error", "wrong customer", "tool error ignored", "asks twice"]
    before = grouped(codes(*texts))
    after = grouped(codes(*texts, "asks for the same twice", "the wrong customer again"))
    assert all(any(set(group.codes) <= set(other.codes) for other in after) for group in before)


def test_tags_name_groups() -> None:
    found = grouped(codes("#Retry like #13", "again and again #retry", "see #13", "", "ok#not"))
    assert [(group.name, len(group.codes)) for group in found] == [
        ("#retry", 2),
        ("see #13", 1),
        ("ok#not", 1),
        (NO_WORDS, 1),
    ]


def test_texts_and_tags_are_searched(room: Class) -> None:
    session = room.open("t00")
    code_open(session, "asks twice #retry")
    session.note_span("k1", "Asks the wrong person")
    found = seen_by(room)
    assert [code.text for code in found.matching("ASKS person").codes] == ["Asks the wrong person"]
    assert [code.text for code in found.matching("#retry").codes] == ["asks twice #retry"]
    assert found.matching("nowhere").groups == ()


def test_saturation_counts_new_kinds(room: Class) -> None:
    room.finish("t03", mode=MODES[0])
    session = room.open("t00")
    code_open(session, "asks twice")
    put(session, MODES[0], span(1))
    session.finish(open_modes="absent")
    room.finish("t01", mode=MODES[1])
    session = room.open("t02")
    code_open(session, "asks again twice")
    session.finish(open_modes="absent")
    code_open(room.open("t04"), "not finished yet")
    found = seen_by(room).saturation
    assert [(one.trace_id, one.kinds, len(one.new)) for one in found.traces] == [
        ("t03", 1, 1),
        ("t00", 2, 1),
        ("t01", 1, 1),
        ("t02", 1, 0),
    ]
    assert (found.kinds, found.since_last_new, found.new_in_last(2)) == (3, 1, 1)
