"""The queue of an adjudicator: order, access, taking on, sides, and open sessions."""

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
)
from mast_tui.adjudication.conflicts import ABSENT_CHOICE, choice_of_side
from mast_tui.gold import ConflictKind
from mast_tui.labels import PassKind, Target
from mast_tui.session import Session
from mast_tui.traces.library import read_file
from mast_tui.traces.model import Trace
from mast_tui.workspace import TraceRecord, Workspace
from tests.adjudication.annotated_workspace import TAXONOMY, AnnotatedWorkspace
from tests.gold.build import ABSENT, MODE, order, target


@pytest.fixture
def annotated() -> AnnotatedWorkspace:
    """Conflicts of verdicts on t1 and of places on t2; ann and bob finished all but t4."""
    annotated = AnnotatedWorkspace("t1", "t2", "t3", "t4")
    annotated.finish("ann", target(3), trace="t1")
    annotated.finish("bob", value=ABSENT, trace="t1")
    annotated.finish("ann", target(3), trace="t2")
    annotated.finish("bob", target(9), trace="t2")
    for name in ("ann", "bob"):
        annotated.finish(name, target(3), trace="t3")
    annotated.finish("ann", target(3), trace="t4")
    return annotated


def open_kinds(entry: QueueEntry) -> list[ConflictKind]:
    """Return the kinds of open conflicts, as far as they may be known."""
    return [] if entry.gold is None else [conflict.kind for conflict in entry.gold.conflicts]


def entries_of(annotated: AnnotatedWorkspace, annotator: str) -> dict[str, QueueEntry]:
    entries = queue(annotated.workspace, TAXONOMY, annotator, order_of=lambda _: order)
    return {entry.trace_id: entry for entry in entries}


def test_entries_have_the_open_conflicts_of_traces_that_two_finished(
    annotated: AnnotatedWorkspace,
) -> None:
    entries = entries_of(annotated, "ann")
    assert {trace: open_kinds(entry) for trace, entry in entries.items()} == {
        "t1": [ConflictKind.VERDICT],
        "t2": [ConflictKind.PLACE, ConflictKind.PLACE],
        "t3": [],
    }
    assert entries["t1"].sides == ("ann", "bob")


def test_decided_traces_come_last_after_changed_ones(annotated: AnnotatedWorkspace) -> None:
    work = Adjudication(annotated.workspace, TAXONOMY, "t1", "bob", order=order)
    decision = work.decide(work.gold.conflicts[0], ABSENT_CHOICE)
    annotated.finish("bob", value=ABSENT, trace="t4")
    other = Adjudication(annotated.workspace, TAXONOMY, "t4", "bob", order=order)
    other.decide(other.gold.conflicts[0], ABSENT_CHOICE)
    entries = entries_of(annotated, "ann")
    assert list(entries) == ["t2", "t1", "t3", "t4"]
    trace_sides = entries["t1"].trace_sides
    assert trace_sides is not None
    assert (trace_sides.decisions, open_kinds(entries["t1"])) == ((decision,), [])
    annotated.finish("ann", value=ABSENT, trace="t4", number=2, kind=PassKind.SECOND_LOOK)
    assert list(entries_of(annotated, "ann")) == ["t2", "t4", "t1", "t3"]


def test_shown_traces_are_recorded_as_revealed_once(annotated: AnnotatedWorkspace) -> None:
    entries_of(annotated, "ann")
    revealed = {
        (p.annotator, p.trace_id) for p in annotated.workspace.passes() if p.revealed_at is not None
    }
    assert revealed == {("ann", "t1"), ("ann", "t2"), ("ann", "t3")}
    events = len(list(annotated.workspace.events()))
    entries_of(annotated, "ann")
    assert len(list(annotated.workspace.events())) == events


def test_taking_on_opens_a_trace_that_one_does_not_label(annotated: AnnotatedWorkspace) -> None:
    assert take_on(annotated.workspace, TAXONOMY, "judy", ["t1", "t3"]) == ("t1", "t3")
    access = {trace: entry.access for trace, entry in entries_of(annotated, "judy").items()}
    assert access == {"t1": Access.OPEN, "t2": Access.HIDDEN, "t3": Access.OPEN}
    assert take_on(annotated.workspace, TAXONOMY, "judy", ["t1"]) == ()
    assert take_on(annotated.workspace, TAXONOMY, "ann", ["t1"]) == (), "a trace that one finished"
    annotated.start("cat", "t1")
    annotated.mark("cat", trace="t1", verdicts={MODE: ABSENT})
    assert take_on(annotated.workspace, TAXONOMY, "cat", ["t1"]) == (), "a trace that one labels"
    assert entries_of(annotated, "cat")["t1"].access is Access.UNFINISHED
    # A reading without labels ends unfinished.
    annotated.start("dan", "t1")
    entry = entries_of(annotated, "dan")["t1"]
    assert (entry.access, entry.trace_sides, entry.gold) == (Access.HIDDEN, None, None)
    assert take_on(annotated.workspace, TAXONOMY, "dan", ["t1", "t1"]) == ("t1",)
    passes = {p.number: p for p in annotated.workspace.passes(annotator="dan")}
    assert passes[2].kind is PassKind.ADJUDICATION
    assert not passes[1].finished
    entry = entries_of(annotated, "dan")["t1"]
    assert entry.access is Access.OPEN
    assert "dan" not in entry.sides


def test_open_conflicts_are_counted_without_revealing(annotated: AnnotatedWorkspace) -> None:
    events = len(list(annotated.workspace.events()))
    groups_by_trace = conflicts_by_trace(annotated.workspace, TAXONOMY, order_of=lambda _: order)
    assert {trace: len(groups) for trace, groups in groups_by_trace.items()} == {
        "t1": 1,
        "t2": 1,
        "t3": 0,
    }
    assert len(list(annotated.workspace.events())) == events


def test_span_orders_join_overlapping_places(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    turns = [{"role": ("user", "assistant")[i % 2], "content": f"turn {i}"} for i in range(8)]
    path.write_text(json.dumps({"messages": turns}), encoding="utf-8")
    (trace,) = read_file(path, named=True).traces
    keys = [trace.span(i).key for i in range(len(trace))]
    annotated = AnnotatedWorkspace()
    trace_id = annotated.workspace.register_trace(TraceRecord.from_trace(trace))
    annotated.finish("ann", Target(keys[1], keys[3]), trace=trace_id)
    annotated.finish("bob", Target(keys[2], keys[5]), trace=trace_id)
    (without,) = queue(annotated.workspace, TAXONOMY, "ann")
    (within,) = queue(
        annotated.workspace, TAXONOMY, "ann", order_of=SpanOrders(annotated.workspace)
    )
    assert (len(open_kinds(without)), open_kinds(within)) == (2, [])


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    path = tmp_path / "run.json"
    turns = [
        {"role": "user" if i % 2 == 0 else "assistant", "content": f"turn {i}"} for i in range(6)
    ]
    path.write_text(json.dumps({"messages": turns}), encoding="utf-8")
    (trace,) = read_file(path, named=True).traces
    return trace


@pytest.fixture
def workspace() -> Workspace:
    return Workspace.open(":memory:")


def session(workspace: Workspace, trace: Trace, name: str) -> Session:
    return Session.open(workspace, trace, TAXONOMY, name, blind=True)


def span_target(trace: Trace, index: int) -> Target:
    return Target(trace.span(index).key, trace.span(index).key)


def read_and_finish(workspace: Workspace, trace: Trace, name: str, *marks: int) -> Session:
    """Label these spans, read all, and finish with the other modes absent."""
    own_session = session(workspace, trace, name)
    own_session.mark_read([trace.span(i).key for i in range(len(trace))])
    for index in marks:
        own_session.toggle_label(MODE, span_target(trace, index), suggestions_on_screen=False)
    own_session.finish(open_modes="absent")
    return own_session


def adjudication(workspace: Workspace, trace_id: str, name: str, trace: Trace) -> Adjudication:
    return Adjudication(workspace, TAXONOMY, trace_id, name, order=trace.index_of)


def test_undo_in_sessions_and_in_adjudication_are_separate(
    workspace: Workspace, trace: Trace
) -> None:
    ann = read_and_finish(workspace, trace, "ann", 1)
    read_and_finish(workspace, trace, "bob")
    work = adjudication(workspace, ann.trace_id, "ann", trace)
    decision = work.decide(work.gold.conflicts[0], choice_of_side(work.gold.conflicts[0], "bob"))
    later = session(workspace, trace, "ann")
    later.toggle_label(MODE, span_target(trace, 3), suggestions_on_screen=False)
    later.undo()
    work.refresh()
    assert work.decisions == (decision,)
    later.toggle_label(MODE, span_target(trace, 4), suggestions_on_screen=False)
    labels = session(workspace, trace, "ann").labels
    work.undo()
    assert not work.decisions
    assert session(workspace, trace, "ann").labels == labels
