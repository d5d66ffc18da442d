"""Which traces wait for an adjudicator, and how much of that they may know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.adjudication import (
    Access,
    Adjudication,
    QueueEntry,
    SpanOrders,
    conflicts_by_trace,
    queue,
    take_on,
    words_by_trace,
)
from mast_tui.adjudication.conflicts import NOBODY
from mast_tui.gold import ConflictKind
from mast_tui.labels import AnnotatorKind, PassKind, Target
from mast_tui.traces.library import read_file
from mast_tui.workspace import TraceRecord
from tests.adjudication.office import TAXONOMY, Office
from tests.gold.build import ABSENT, MODE, OTHER, PRESENT, at, order


@pytest.fixture
def office() -> Office:
    """t1 has a conflict of verdicts, t2 one of places, t3 none; ann and bob finished all."""
    office = Office("t1", "t2", "t3", "t4")
    office.finish("ann", at(3), trace="t1")
    office.finish("bob", value=ABSENT, trace="t1")
    office.finish("ann", at(3), trace="t2")
    office.finish("bob", at(9), trace="t2")
    for name in ("ann", "bob"):
        office.finish(name, at(3), trace="t3")
    office.finish("ann", at(3), trace="t4")
    return office


def left(entry: QueueEntry) -> list[ConflictKind]:
    """What is left to decide, as far as it may be known."""
    return [] if entry.gold is None else [conflict.kind for conflict in entry.gold.conflicts]


def of(office: Office, who: str) -> dict[str, QueueEntry]:
    entries = queue(office.workspace, TAXONOMY, who, order_of=lambda _: order)
    return {entry.trace_id: entry for entry in entries}


def test_it_knows_what_is_left_where_two_have_finished(office: Office) -> None:
    entries = of(office, "ann")
    assert {trace: left(entry) for trace, entry in entries.items()} == {
        "t1": [ConflictKind.VERDICT],
        "t2": [ConflictKind.PLACE, ConflictKind.PLACE],
        "t3": [],
    }
    assert entries["t1"].sides == ("ann", "bob")


def test_decided_ones_come_last_and_before_those_the_ones_with_later_changes(
    office: Office,
) -> None:
    work = Adjudication(office.workspace, TAXONOMY, "t1", "bob", order=order)
    decision = work.decide(work.gold.conflicts[0], NOBODY)
    office.finish("bob", value=ABSENT, trace="t4")
    other = Adjudication(office.workspace, TAXONOMY, "t4", "bob", order=order)
    other.decide(other.gold.conflicts[0], NOBODY)
    entries = of(office, "ann")
    assert list(entries) == ["t2", "t1", "t3", "t4"]
    words = entries["t1"].words
    assert words is not None
    assert (words.decisions, left(entries["t1"])) == ((decision,), [])
    office.finish("ann", value=ABSENT, trace="t4", number=2, kind=PassKind.SECOND_LOOK)
    assert list(of(office, "ann")) == ["t2", "t4", "t1", "t3"]


@pytest.mark.parametrize(("started", "access"), [(False, Access.HIDDEN), (True, Access.UNFINISHED)])
def test_no_word_of_what_one_has_not_finished(
    office: Office, started: bool, access: Access
) -> None:
    if started:
        office.start("cat", "t1")
    entry = of(office, "cat")["t1"]
    assert (entry.access, entry.words, entry.gold) == (access, None, None)


def test_words_that_were_shown_are_recorded_for_whom_they_were_shown_to(office: Office) -> None:
    of(office, "ann")
    revealed = {
        (p.annotator, p.trace_id) for p in office.workspace.passes() if p.revealed_at is not None
    }
    assert revealed == {("ann", "t1"), ("ann", "t2"), ("ann", "t3")}
    events = len(list(office.workspace.events()))
    of(office, "ann")
    assert len(list(office.workspace.events())) == events


class TestTakingOn:
    def test_it_opens_the_trace_for_good(self, office: Office) -> None:
        assert take_on(office.workspace, TAXONOMY, "judy", ["t1", "t3"]) == ("t1", "t3")
        entries = of(office, "judy")
        assert [entries[t].access for t in ("t1", "t2", "t3")] == [
            Access.OPEN,
            Access.HIDDEN,
            Access.OPEN,
        ]
        assert take_on(office.workspace, TAXONOMY, "judy", ["t1"]) == ()

    def test_ones_own_finished_traces_need_no_taking_on(self, office: Office) -> None:
        assert take_on(office.workspace, TAXONOMY, "ann", ["t1"]) == ()

    def test_a_reading_that_has_begun_to_label_is_left_alone(self, office: Office) -> None:
        office.start("cat", "t1")
        office.say("cat", trace="t1", verdicts={MODE: ABSENT})
        assert take_on(office.workspace, TAXONOMY, "cat", ["t1"]) == ()
        assert of(office, "cat")["t1"].access is Access.UNFINISHED

    def test_a_reading_without_a_word_ends_unfinished(self, office: Office) -> None:
        office.start("cat", "t1")
        assert take_on(office.workspace, TAXONOMY, "cat", ["t1", "t1"]) == ("t1",)
        passes = {p.number: p for p in office.workspace.passes(annotator="cat")}
        assert passes[2].kind is PassKind.ADJUDICATION
        assert not passes[1].finished
        assert of(office, "cat")["t1"].access is Access.OPEN
        assert "cat" not in of(office, "cat")["t1"].sides


def test_what_is_left_can_be_counted_without_showing_it(office: Office) -> None:
    events = len(list(office.workspace.events()))
    left = conflicts_by_trace(office.workspace, TAXONOMY, order_of=lambda _: order)
    assert {trace: len(found) for trace, found in left.items()} == {"t1": 1, "t2": 1, "t3": 0}
    assert len(list(office.workspace.events())) == events


class TestWords:
    def test_a_side_is_the_last_finished_pass(self, office: Office) -> None:
        office.finish("ann", at(7), trace="t1", number=2, kind=PassKind.SECOND_LOOK)
        office.start("ann", "t1", number=3, kind=PassKind.SECOND_LOOK)
        office.say("ann", at(8), trace="t1", number=3)
        ann = words_by_trace(office.workspace, TAXONOMY)["t1"].sides[0]
        assert [label.target for label in ann.labels.values()] == [at(7)]

    def test_who_has_not_finished_is_no_side(self, office: Office) -> None:
        office.start("cat", "t4")
        office.say("cat", at(1), trace="t4")
        (ann,) = words_by_trace(office.workspace, TAXONOMY)["t4"].sides
        assert ann.annotator == "ann"

    def test_absent_and_present_are_both_words(self, office: Office) -> None:
        ann = words_by_trace(office.workspace, TAXONOMY)["t1"].sides[0]
        assert (ann.verdict(MODE), ann.verdict(OTHER)) == (PRESENT, ABSENT)

    def test_annotators_and_a_trace_can_be_named(self, office: Office) -> None:
        words = words_by_trace(office.workspace, TAXONOMY, annotators=["bob"], trace_id="t1")
        assert set(words) == {"t1"}
        assert [side.annotator for side in words["t1"].sides] == ["bob"]

    def test_imported_ones_count_as_people(self) -> None:
        office = Office()
        office.workspace.add_annotator("paper", AnnotatorKind.IMPORTED)
        office.finish("paper", at(3))
        office.finish("ann", at(3))
        sides = words_by_trace(office.workspace, TAXONOMY)["t1"].sides
        assert {side.annotator: side.author_kind for side in sides} == {
            "ann": AnnotatorKind.HUMAN,
            "paper": AnnotatorKind.IMPORTED,
        }

    def test_gold_follows_from_the_words(self, office: Office) -> None:
        words = words_by_trace(office.workspace, TAXONOMY)
        assert words["t3"].gold(TAXONOMY, order).verdict(MODE).value is PRESENT
        assert len(words["t2"].gold(TAXONOMY, order).conflicts) == 2


class TestOrders:
    @pytest.fixture
    def messages(self, tmp_path: Path) -> Path:
        path = tmp_path / "run.json"
        turns = [
            {"role": "user" if i % 2 == 0 else "assistant", "content": f"turn {i}"}
            for i in range(8)
        ]
        path.write_text(json.dumps({"messages": turns}), encoding="utf-8")
        return path

    def test_the_order_is_that_of_the_file_where_it_was_last_seen(self, messages: Path) -> None:
        (trace,) = read_file(messages, named=True).traces
        office = Office()
        trace_id = office.workspace.register_trace(TraceRecord.from_trace(trace))
        order_of = SpanOrders(office.workspace)
        keys = [trace.span(i).key for i in range(len(trace))]
        assert [order_of(trace_id)(key) for key in keys] == list(range(len(keys)))
        assert order_of(trace_id)("no such span") is None

    def test_a_trace_that_is_gone_or_unknown_has_no_order(self, messages: Path) -> None:
        (trace,) = read_file(messages, named=True).traces
        office = Office()
        trace_id = office.workspace.register_trace(TraceRecord.from_trace(trace))
        key = trace.span(0).key
        messages.unlink()
        assert SpanOrders(office.workspace)(trace_id)(key) is None
        assert SpanOrders(office.workspace)("t9")(key) is None
        assert SpanOrders(office.workspace, [trace])(trace_id)(key) == 0

    def test_another_trace_in_the_same_place_lends_it_no_order(self, messages: Path) -> None:
        (trace,) = read_file(messages, named=True).traces
        office = Office()
        trace_id = office.workspace.register_trace(TraceRecord.from_trace(trace))
        messages.write_text(
            json.dumps({"messages": [{"role": "user", "content": "something else"}] * 3}),
            encoding="utf-8",
        )
        assert SpanOrders(office.workspace)(trace_id)(trace.span(0).key) is None

    def test_it_joins_overlapping_places(self, messages: Path) -> None:
        (trace,) = read_file(messages, named=True).traces
        keys = [trace.span(i).key for i in range(len(trace))]
        office = Office()
        trace_id = office.workspace.register_trace(TraceRecord.from_trace(trace))
        office.finish("ann", Target(keys[1], keys[3]), trace=trace_id)
        office.finish("bob", Target(keys[2], keys[5]), trace=trace_id)
        (without,) = queue(office.workspace, TAXONOMY, "ann")
        (within,) = queue(office.workspace, TAXONOMY, "ann", order_of=SpanOrders(office.workspace))
        assert (len(left(without)), left(within)) == (2, [])
