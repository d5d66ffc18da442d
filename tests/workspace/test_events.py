"""Events: JSON, rebuilding of state tables, and merging."""

from __future__ import annotations

import json
from contextlib import closing
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mast_tui.labels import Label, VerdictValue
from mast_tui.workspace import Event, Workspace
from mast_tui.workspace.events.model import event_from_dict, event_to_dict
from mast_tui.workspace.events.types import (
    Fact,
    LabelAdded,
    PassStarted,
    SpansRead,
    VerdictSet,
    inverse,
)
from mast_tui.workspace.records import MergeRefused
from tests.workspace.build import MAST, TRACE, event, label, open_workspaces, state
from tests.workspace.facts import facts, labels, names, texts

passes = st.integers(1, 3)
ABSENT = VerdictValue.ABSENT


@st.composite
def recorded(draw: st.DrawFn) -> Event:
    """Return an event as a workspace returns it."""
    number = draw(passes)
    return Event(
        id=draw(texts),
        annotator="alice",
        seq=draw(st.integers(1, 1 << 40)),
        at="2026-05-04T10:20:30.000000Z",
        trace_id=TRACE,
        taxonomy=MAST.ref,
        pass_number=number,
        fact=draw(facts(pass_number=number)),
        action=draw(names),
        undoes=draw(st.none() | names),
        redoes=draw(st.none() | names),
        replaces=draw(st.lists(names, max_size=2).map(tuple)),
    )


@given(recorded(), st.data())
@settings(max_examples=25)
def test_missing_or_mistyped_field_is_named(stored: Event, data: st.DataObject) -> None:
    values = event_to_dict(stored)
    name = data.draw(st.sampled_from(["id", "annotator", "seq", "at", "kind", "payload", "action"]))
    broken: dict[str, Any] = dict(values)
    if data.draw(st.booleans()):
        del broken[name]
    else:
        broken[name] = 3.5
    with pytest.raises(ValueError, match=name):
        event_from_dict(broken)


@given(facts())
def test_inverse_of_an_inverse_is_the_fact(fact: Fact) -> None:
    undo = inverse(fact)
    if isinstance(fact, PassStarted):
        # The first start of a pass records what the study hides; a later start does not count.
        fact = replace(fact, withheld=False)
    redo = None if undo is None else inverse(undo)
    assert redo is None or redo == fact


@given(st.lists(labels(), max_size=6, unique_by=lambda row: row.id))
@settings(max_examples=8, deadline=None)
def test_labels_survive_the_tables(added: list[Label]) -> None:
    with closing(Workspace.open(":memory:")) as workspace:
        workspace.append([event(LabelAdded(row)) for row in added])
        assert workspace.labels() == tuple(sorted(added, key=lambda row: row.id))


def test_impossible_values_in_events_are_refused(workspace: Workspace) -> None:
    workspace.append([event(LabelAdded(label(workspace))), event(VerdictSet("x", None, ABSENT))])
    added, verdict = (json.loads(json.dumps(event_to_dict(row))) for row in workspace.events())
    for evidence, reason in (
        ({"key": "k0"}, "'quote'"),
        ({"quote": "x", "start": 0, "end": 1}, "needs a span"),
        ({"quote": "x", "named": ["k0"]}, "evidence.named: Expected a list of length 2"),
        ({"quote": "x", "match": "nearly"}, "evidence.match: Invalid enum value 'nearly'"),
    ):
        added["payload"]["label"]["evidence"] = evidence
        with pytest.raises(ValueError, match=reason):
            event_from_dict(added)
    verdict["payload"]["after"] = "present"
    with pytest.raises(ValueError, match="present"):
        event_from_dict(verdict)


ANNOTATORS = ("alice", "bob")
annotators = st.sampled_from(ANNOTATORS)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, int, Fact]]:
    """Return facts of several people in some order, sensible or not."""
    steps = []
    for _ in range(draw(st.integers(0, 12))):
        annotator = draw(annotators)
        number = draw(passes)
        steps.append((annotator, number, draw(facts(annotator, number))))
    return steps


def record(workspace: Workspace, steps: list[tuple[str, int, Fact]]) -> None:
    for annotator, number, fact in steps:
        workspace.append([event(fact, annotator=annotator, pass_number=number)])


@given(histories(), histories(), histories())
@settings(max_examples=8, deadline=None)
def test_merging_in_any_order_again_and_rebuilding_give_the_same_state(
    common: list[tuple[str, int, Fact]],
    first_steps: list[tuple[str, int, Fact]],
    second_steps: list[tuple[str, int, Fact]],
) -> None:
    with open_workspaces(2) as (first, second):
        record(first, common)
        second.merge_events(first.events())
        record(first, first_steps)
        record(second, second_steps)
        first_events = list(first.events())
        second_events = list(second.events())
        report = first.merge_events(second_events, replacing=ANNOTATORS)
        assert (report.added, report.known) == (len(second_steps), len(common))
        second.merge_events(first_events, replacing=ANNOTATORS)
        assert state(first) == state(second)
        assert list(first.events()) == list(second.events())
        assert first.conflicts() == second.conflicts()
        assert first.edited_histories() == second.edited_histories() == ()
        merged = state(first)
        second.rebuild()
        assert state(second) == merged
        repeated = first.merge_events(second_events)
        assert (repeated.added, repeated.known) == (0, len(second_events))
        assert state(first) == merged


def test_different_events_with_equal_counters_conflict_for_people_only(
    workspace: Workspace, other: Workspace
) -> None:
    for target, note in ((workspace, "here"), (other, "there")):
        target.append([event(LabelAdded(label(target, note=note)))])
        target.append([event(SpansRead(("k0",)))])
        judged = label(target, annotator="judge:rules@1", note=note)
        target.append([event(LabelAdded(judged), annotator="judge:rules@1")])
    report = workspace.merge_events(other.events())
    (conflict,) = report.conflicts
    assert (conflict.annotator, conflict.seq, len(conflict.events)) == ("alice", 1, 2)
    assert workspace.conflicts() == report.conflicts
    notes = {(row.annotator, row.note) for row in workspace.labels()}
    assert notes == set(product(("alice", "judge:rules@1"), ("here", "there")))


def test_altered_event_is_refused_unless_it_replaces_ours(
    workspace: Workspace, other: Workspace
) -> None:
    original = label(workspace, note="original")
    workspace.append([event(LabelAdded(original))])
    (stored,) = workspace.events()
    other.append([event(LabelAdded(replace(original, note="altered")))])
    (altered,) = other.events()
    incoming = [replace(altered, id=stored.id, chain_hash=None)]
    with pytest.raises(MergeRefused) as refused:
        workspace.merge_events(incoming)
    (person,) = refused.value.people
    assert (person.annotator, person.edited, person.labels_changed) == ("alice", 1, 0)
    assert [row.note for row in workspace.labels()] == ["original"]
    report = workspace.merge_events(incoming, replacing=["alice"])
    assert (report.altered, report.people[0].replaced) == ((stored.id,), True)
    assert [row.note for row in workspace.labels()] == ["altered"]
    assert workspace.edited_histories() == ()
