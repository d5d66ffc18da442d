"""Answers to the suggestions of a judge."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from mast_tui.labels import Evidence, Finding, Match, Origin, ReviewAnswer, Severity, VerdictValue
from mast_tui.session import Session, SessionError, Suggestion
from mast_tui.workspace import store_judgement
from tests.session.build import JUDGE, Desk, content, finding, put, review_of, span, spans
from tests.workspace.build import MAST, MODES, TRACE, state

ONE, TWO, THREE = MODES[:3]


@pytest.fixture
def session(desk: Desk) -> Session:
    desk.judge(finding(TWO, 3), finding(ONE, 0, 2))
    return desk.open()


def by_mode(session: Session) -> dict[str, Suggestion]:
    return {s.mode: s for s in session.suggestions}


def answers(session: Session) -> dict[str, ReviewAnswer | None]:
    reviews = {s.mode: review_of(session, s.id) for s in session.suggestions}
    return {mode: None if r is None else r.answer for mode, r in reviews.items()}


def test_suggestions_are_ordered_by_evidence(desk: Desk) -> None:
    quoted = Finding(
        ONE,
        "k0",
        "k4",
        "why",
        0.75,
        evidence=Evidence(key="k4", quote="done", char_start=0, char_end=4),
    )
    desk.judge(quoted, finding(TWO, 2), finding(THREE, 1, 3))
    session = desk.open()
    assert [s.mode for s in session.suggestions] == [THREE, TWO, ONE]
    last = session.suggestions[-1]
    assert (last.judge, last.rationale, last.confidence) == (JUDGE, "why", 0.75)
    assert last.target == spans(0, 4)
    assert (last.evidence_key, last.quote_offsets) == ("k4", (0, 4))
    assert session.suggestions[0].evidence_key == "k1"
    assert session.suggestions[0].quote_offsets is None


def test_doubtful_quotes_come_last(desk: Desk) -> None:
    def quoting(
        mode: str, first: str, key: str | None, start: int | None, match: Match | None = None
    ) -> Finding:
        end = None if start is None else start + 4
        evidence = Evidence(key=key, quote="pods", char_start=start, char_end=end, match=match)
        return Finding(mode, first, first, "why", 0.75, decisive=True, evidence=evidence)

    desk.judge(
        quoting(ONE, "k0", None, None),
        quoting(TWO, "k3", "k1", None),
        quoting(MODES[4], "k0", "k0", 0, Match.ALTERED),
        quoting(THREE, "k2", "k2", 0, Match.IN_PARTS),
        finding(MODES[3], 4),
    )
    session = desk.open()
    assert [s.mode for s in session.suggestions] == [THREE, MODES[3], MODES[4], ONE, TWO]
    assert [s.doubt for s in session.suggestions] == [0, 0, 1, 2, 2]
    assert [s.evidence_key for s in session.suggestions] == ["k2", "k4", "k0", "k0", "k1"]
    assert [s.decisive for s in session.suggestions] == [True, None, True, True, True]
    session.accept(session.pending[0].id)
    session.reject(session.pending[-1].id)
    assert [s.mode for s in session.pending] == [MODES[3], MODES[4], ONE]
    assert [s.quote_offsets for s in session.pending] == [None, (0, 4), None]


def test_places_that_become_one_label_are_named(desk: Desk) -> None:
    desk.judge(finding(ONE, 1, 2), finding(ONE, 4))
    desk.judge(finding(ONE, 1, 2), judge="judge:other@1")
    session = desk.open()
    change = session.answer_all([s.id for s in session.pending], ReviewAnswer.ACCEPT)
    assert len(session.labels) == 2
    assert change.message.endswith(" · one label for several suggestions on #2 to #3")


def test_partial_judgements_can_be_answered(desk: Desk) -> None:
    def part(*findings: Finding) -> None:
        store_judgement(
            desk.workspace,
            judge=JUDGE,
            taxonomy=MAST.ref,
            trace_id=TRACE,
            looks_at=(),
            findings=findings,
            partial=True,
        )

    session = desk.open()
    part(finding(ONE, 0), finding(TWO, 1))
    session.refresh_suggestions()
    session.reject(by_mode(session)[ONE].id)
    part(finding(ONE, 0), finding(TWO, 1), finding(THREE, 2))
    session.refresh_suggestions()
    assert [s.mode for s in session.pending] == [TWO, THREE]
    desk.judge(finding(THREE, 2))
    session.refresh_suggestions()
    assert [s.mode for s in session.suggestions] == [ONE, THREE]
    assert [s.mode for s in session.pending] == [THREE]


def test_accepting_creates_a_label(desk: Desk, session: Session) -> None:
    suggestion = by_mode(session)[ONE]
    session.set_verdict(ONE, VerdictValue.ABSENT)
    change = session.accept(suggestion.id)
    assert "accepted" in change.message
    assert (session.verdict(ONE), change.key) == (VerdictValue.PRESENT, "k0")
    (label,) = session.labels
    assert (label.mode, label.target) == (ONE, spans(0, 2))
    assert (label.origin, label.suggestion) == (Origin.ACCEPTED, suggestion.id)
    assert label.saw_suggestions
    assert [s.mode for s in session.pending] == [TWO]
    (review,) = desk.workspace.reviews()
    assert review == review_of(session, suggestion.id)
    assert (review.answer, review.label) == (ReviewAnswer.ACCEPT, label.id)
    assert session.current is not None
    assert session.current.judge_seen
    events = list(desk.workspace.events())
    session.accept(suggestion.id)  # the same answer again
    assert list(desk.workspace.events()) == events


def test_accepting_uses_an_existing_label(session: Session) -> None:
    label_id = put(session, ONE, spans(0, 2))
    suggestion = by_mode(session)[ONE]
    session.accept(suggestion.id)
    assert [x.id for x in session.labels] == [label_id]
    assert session.labels[0].origin is Origin.MANUAL
    review = review_of(session, suggestion.id)
    assert review is not None
    assert review.label == label_id
    session.reject(suggestion.id)
    assert [x.id for x in session.labels] == [label_id]


def test_rejecting_sets_no_verdict(session: Session) -> None:
    suggestion = by_mode(session)[ONE]
    session.reject(suggestion.id, " polling ")
    review = review_of(session, suggestion.id)
    assert review is not None
    assert (review.answer, review.reason, review.label) == (ReviewAnswer.REJECT, "polling", None)
    assert session.verdict(ONE) is None
    assert (session.labels, [s.mode for s in session.pending]) == ((), [TWO])
    assert len(session.suggestions) == 2


def test_suggestions_are_edited(session: Session) -> None:
    suggestion = by_mode(session)[ONE]
    session.edit(suggestion.id, suggestion.mode, suggestion.target)
    assert answers(session)[ONE] is ReviewAnswer.ACCEPT
    assert session.labels[0].origin is Origin.ACCEPTED
    session.edit(suggestion.id, THREE, spans(2, 1))
    (label,) = session.labels
    assert (label.mode, label.target, label.origin) == (THREE, spans(1, 2), Origin.EDITED)
    assert answers(session)[ONE] is ReviewAnswer.EDIT


def test_a_new_answer_replaces_the_first(session: Session) -> None:
    suggestion = by_mode(session)[ONE]
    session.accept(suggestion.id)
    session.edit_label(session.labels[0].id, note="mine")
    session.edit(suggestion.id, ONE, span(1))
    assert [(x.target, x.origin, x.note) for x in session.labels] == [
        (span(1), Origin.EDITED, "mine")
    ]
    session.accept(suggestion.id)
    assert [(x.target, x.origin) for x in session.labels] == [(spans(0, 2), Origin.ACCEPTED)]
    session.reject(suggestion.id)
    assert (session.labels, answers(session)[ONE]) == ((), ReviewAnswer.REJECT)
    session.accept(suggestion.id)
    assert len(session.labels) == 1


def test_moved_and_removed_labels_of_suggestions(session: Session) -> None:
    suggestion = by_mode(session)[ONE]
    session.accept(suggestion.id)
    session.edit_label(session.labels[0].id, note="why", confidence=1.0)
    assert answers(session)[ONE] is ReviewAnswer.ACCEPT
    session.edit_label(session.labels[0].id, target=span(0))
    assert answers(session)[ONE] is ReviewAnswer.EDIT
    assert {x.origin for x in session.labels} == {Origin.EDITED}
    session.undo()
    assert answers(session)[ONE] is ReviewAnswer.ACCEPT
    assert {x.origin for x in session.labels} == {Origin.ACCEPTED}
    before = content(session)
    session.toggle_label(suggestion.mode, suggestion.target, suggestions_on_screen=True)
    assert (session.labels, len(session.pending)) == ((), 2)
    session.undo()
    assert content(session) == before


def test_labels_record_visible_suggestions(desk: Desk, session: Session) -> None:
    put(session, ONE, span(0))
    assert session.current is not None
    assert not session.current.judge_seen
    assert not session.labels[0].saw_suggestions
    session.toggle_label(TWO, span(1), suggestions_on_screen=True)
    assert session.current.judge_seen
    assert session.labels[1].saw_suggestions
    assert desk.workspace.passes(annotator="alice")[0].judge_seen


def test_visible_suggestions_are_recorded_in_a_pass(desk: Desk, session: Session) -> None:
    session.note_suggestions_on_screen()
    assert list(desk.workspace.events(annotator="alice")) == []
    session.mark_read(["k0"])
    assert session.current is not None
    assert session.current.judge_seen
    count = len(list(desk.workspace.events()))
    session.note_suggestions_on_screen()
    assert len(list(desk.workspace.events())) == count
    other = desk.open("bob")
    other.mark_read(["k0"])
    other.note_suggestions_on_screen()
    assert other.current is not None
    assert other.current.judge_seen


def test_new_judgements_appear_after_a_refresh(desk: Desk) -> None:
    session = desk.open()
    assert session.suggestions == ()
    desk.judge(finding(ONE, 1))
    session.refresh_suggestions()
    (suggestion,) = session.pending
    desk.judge(replace(finding(ONE, 1), rationale="another reason"))
    session.accept(suggestion.id)
    assert session.pending == ()
    answers: list[Callable[[], object]] = [
        lambda: session.accept("x"),
        lambda: session.reject("x"),
        lambda: session.edit("x", ONE, span(0)),
    ]
    for answer in answers:
        with pytest.raises(SessionError):
            answer()
    before = state(desk.workspace)
    desk.workspace.rebuild()
    assert (state(desk.workspace), content(desk.open())) == (before, content(session))


def test_an_accepted_decisive_step_is_fatal(desk: Desk) -> None:
    desk.judge(replace(finding(ONE, 1), decisive=True, remedy="Ask first."), finding(TWO, 3))
    session = desk.open()
    for suggestion in session.suggestions:
        session.accept(suggestion.id)
    assert {label.mode: label.severity for label in session.labels} == {
        ONE: Severity.FATAL,
        TWO: None,
    }
    assert [one.remedy for one in session.suggestions] == ["Ask first.", ""]
