"""Events: JSON, rebuilding of state tables, and merging."""

from __future__ import annotations

import json
from contextlib import closing
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
def test_missing_or_mistyped_field_is_named(one: Event, data: st.DataObject) -> None:
    values = event_to_dict(one)
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
    back = inverse(fact)
    if isinstance(fact, PassStarted):
        # The first start of a pass tells what the study hides; a later start does not count.
        fact = replace(fact, withheld=False)
    if back is not None and (again := inverse(back)) is not None:
        assert again == fact


@given(st.lists(labels(), max_size=6, unique_by=lambda one: one.id))
@settings(max_examples=8, deadline=None)
def test_labels_survive_the_tables(added: list[Label]) -> None:
    with closing(Workspace.open(":memory:")) as workspace:
        workspace.append([event(LabelAdded(one)) for one in added])
        assert workspace.labels() == tuple(sorted(added, key=lambda one: one.id))


def test_impossible_values_in_events_are_refused(workspace: Workspace) -> None:
    workspace.append([event(LabelAdded(label(workspace))), event(VerdictSet("x", None, ABSENT))])
    added, verdict = (json.loads(json.dumps(event_to_dict(one))) for one in workspace.events())
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


PEOPLE = ("alice", "bob")
people = st.sampled_from(PEOPLE)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, int, Fact]]:
    """Return facts of several people in some order, sensible or not."""
    steps = []
    for _ in range(draw(st.integers(0, 12))):
        who = draw(people)
        number = draw(passes)
        steps.append((who, number, draw(facts(who, number))))
    return steps


def record(workspace: Workspace, steps: list[tuple[str, int, Fact]]) -> None:
    for who, number, fact in steps:
        workspace.append([event(fact, annotator=who, pass_number=number)])


@given(histories(), histories(), histories())
@settings(max_examples=8, deadline=None)
def test_merging_in_any_order_again_and_rebuilding_give_the_same_state(
    common: list[tuple[str, int, Fact]],
    here: list[tuple[str, int, Fact]],
    there: list[tuple[str, int, Fact]],
) -> None:
    with open_workspaces(2) as (first, second):
        record(first, common)
        second.merge_events(first.events())
        record(first, here)
        record(second, there)
        ours = list(first.events())
        theirs = list(second.events())
        report = first.merge_events(theirs, replacing=PEOPLE)
        assert (report.added, report.known) == (len(there), len(common))
        second.merge_events(ours, replacing=PEOPLE)
        assert state(first) == state(second)
        assert list(first.events()) == list(second.events())
        assert first.conflicts() == second.conflicts()
        assert first.edited_histories() == second.edited_histories() == ()
        once = state(first)
        second.rebuild()
        assert state(second) == once
        again = first.merge_events(theirs)
        assert (again.added, again.known) == (0, len(theirs))
        assert state(first) == once


def test_different_events_with_equal_counters_conflict_for_people_only(
    workspace: Workspace, other: Workspace
) -> None:
    for place, note in ((workspace, "here"), (other, "there")):
        place.append([event(LabelAdded(label(place, note=note)))])
        place.append([event(SpansRead(("k0",)))])
        judged = label(place, annotator="judge:rules@1", note=note)
        place.append([event(LabelAdded(judged), annotator="judge:rules@1")])
    report = workspace.merge_events(other.events())
    assert [(c.annotator, c.seq, len(c.events)) for c in report.conflicts] == [("alice", 1, 2)]
    assert workspace.conflicts() == report.conflicts
    notes = {(row.annotator, row.note) for row in workspace.labels()}
    assert notes == {(who, n) for who in ("alice", "judge:rules@1") for n in ("here", "there")}


def test_altered_event_is_refused_unless_it_replaces_ours(
    workspace: Workspace, other: Workspace
) -> None:
    original = label(workspace, note="original")
    workspace.append([event(LabelAdded(original))])
    (known,) = workspace.events()
    other.append([event(LabelAdded(replace(original, note="altered")))])
    (altered,) = other.events()
    theirs = [replace(altered, id=known.id, chain=None)]
    with pytest.raises(MergeRefused) as refused:
        workspace.merge_events(theirs)
    (person,) = refused.value.people
    assert (person.annotator, person.edited, person.labels_changed) == ("alice", 1, 0)
    assert [row.note for row in workspace.labels()] == ["original"]
    report = workspace.merge_events(theirs, replacing=["alice"])
    assert (report.altered, report.people[0].replaced) == ((known.id,), True)
    assert [row.note for row in workspace.labels()] == ["altered"]
    assert workspace.edited_histories() == ()
