"""Events survive a file, and what follows from them can be made anew."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mast_tui.labels import Label
from mast_tui.workspace import Event, Workspace
from mast_tui.workspace.events.model import event_from_dict, event_to_dict
from mast_tui.workspace.events.types import Fact, LabelAdded, SpansRead, inverse
from mast_tui.workspace.records import MergeRefused
from tests.workspace.build import MAST, TRACE, event, label, state
from tests.workspace.facts import facts, labels, names, texts

passes = st.integers(1, 3)


@st.composite
def recorded(draw: st.DrawFn) -> Event:
    """An event as it comes out of a workspace."""
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


@given(recorded())
def test_an_event_comes_back_from_json_as_it_was(one: Event) -> None:
    assert event_from_dict(json.loads(json.dumps(event_to_dict(one)))) == one


@given(recorded(), st.data())
def test_a_field_that_is_missing_or_of_another_type_is_named(
    one: Event, data: st.DataObject
) -> None:
    values = event_to_dict(one)
    name = data.draw(st.sampled_from(["id", "annotator", "seq", "at", "kind", "payload", "action"]))
    broken: dict[str, Any] = dict(values)
    if data.draw(st.booleans()):
        del broken[name]
    else:
        broken[name] = 3.5
    with pytest.raises(ValueError, match=name):
        event_from_dict(broken)


def test_present_is_not_a_verdict_that_can_be_set() -> None:
    values = {
        "id": "1",
        "annotator": "alice",
        "seq": 1,
        "at": "",
        "kind": "verdict_set",
        "trace_id": TRACE,
        "taxonomy": MAST.ref,
        "pass": 1,
        "action": "a",
        "payload": {"mode": "x", "before": None, "after": "present"},
    }
    with pytest.raises(ValueError, match="present"):
        event_from_dict(values)


@given(facts())
def test_the_inverse_of_an_inverse_is_the_fact(fact: Fact) -> None:
    back = inverse(fact)
    if back is not None and (again := inverse(back)) is not None:
        assert again == fact


@given(st.lists(labels(), max_size=6, unique_by=lambda one: one.id))
@settings(max_examples=12, deadline=None)
def test_labels_come_back_from_the_tables_as_they_were(said: list[Label]) -> None:
    with closing(Workspace.open(":memory:")) as workspace:
        workspace.append([event(LabelAdded(one)) for one in said])
        assert workspace.labels() == tuple(sorted(said, key=lambda one: one.id))


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        ({"key": "k0"}, "'quote'"),
        ({"quote": "x", "start": 0, "end": 1}, "needs a span"),
        ({"quote": "x", "named": ["k0"]}, "evidence.named: Expected a list of length 2"),
        ({"quote": "x", "match": "nearly"}, "evidence.match: Invalid enum value 'nearly'"),
    ],
)
def test_evidence_that_cannot_be_is_refused(evidence: dict[str, object], words: str) -> None:
    with closing(Workspace.open(":memory:")) as workspace:
        workspace.append([event(LabelAdded(label(workspace)))])
        (one,) = workspace.events()
    values: dict[str, Any] = json.loads(json.dumps(event_to_dict(one)))
    assert event_from_dict(values) == one
    values["payload"]["label"]["evidence"] = evidence
    with pytest.raises(ValueError, match=words):
        event_from_dict(values)


PEOPLE = ("alice", "bob")
people = st.sampled_from(PEOPLE)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, int, Fact]]:
    """What several people did in some order, sensible or not."""
    steps = []
    for _ in range(draw(st.integers(0, 12))):
        who, number = draw(people), draw(passes)
        steps.append((who, number, draw(facts(who, number))))
    return steps


def record(workspace: Workspace, steps: list[tuple[str, int, Fact]]) -> None:
    for who, number, fact in steps:
        workspace.append([event(fact, annotator=who, pass_number=number)])


@given(histories())
@settings(max_examples=12, deadline=None)
def test_the_state_is_the_same_when_made_anew(steps: list[tuple[str, int, Fact]]) -> None:
    with closing(Workspace.open(":memory:")) as workspace:
        record(workspace, steps)
        before = state(workspace)
        workspace.rebuild()
        assert state(workspace) == before


@given(histories(), histories(), histories())
@settings(max_examples=12, deadline=None)
def test_merging_gives_the_same_in_any_order_and_once(
    common: list[tuple[str, int, Fact]],
    here: list[tuple[str, int, Fact]],
    there: list[tuple[str, int, Fact]],
) -> None:
    with (
        closing(Workspace.open(":memory:")) as first,
        closing(Workspace.open(":memory:")) as second,
    ):
        record(first, common)
        second.merge_events(first.events())
        record(first, here)
        record(second, there)
        ours, theirs = list(first.events()), list(second.events())
        report = first.merge_events(theirs, replacing=PEOPLE)
        assert (report.added, report.known) == (len(there), len(common))
        second.merge_events(ours, replacing=PEOPLE)
        assert state(first) == state(second)
        assert list(first.events()) == list(second.events())
        assert first.conflicts() == second.conflicts()
        assert first.edited_histories() == second.edited_histories() == ()
        once = state(first)
        again = first.merge_events(theirs)
        assert (again.added, again.known) == (0, len(theirs))
        assert state(first) == once


def test_equal_counters_with_other_content_are_a_conflict() -> None:
    with (
        closing(Workspace.open(":memory:")) as first,
        closing(Workspace.open(":memory:")) as second,
    ):
        first.append([event(LabelAdded(label(first, note="here")))])
        second.append([event(LabelAdded(label(second, note="there")))])
        first.append([event(SpansRead(("k0",)))])
        second.append([event(SpansRead(("k0",)))])
        report = first.merge_events(second.events())
        assert [(c.annotator, c.seq, len(c.events)) for c in report.conflicts] == [("alice", 1, 2)]
        assert first.conflicts() == report.conflicts
        assert {one.note for one in first.labels()} == {"here", "there"}


def test_judges_may_count_as_they_like() -> None:
    with (
        closing(Workspace.open(":memory:")) as first,
        closing(Workspace.open(":memory:")) as second,
    ):
        for workspace, note in ((first, "here"), (second, "there")):
            one = label(workspace, annotator="judge:rules@1", note=note)
            workspace.append([event(LabelAdded(one), annotator="judge:rules@1")])
        assert first.merge_events(second.events()).conflicts == ()


def test_an_event_that_was_altered_is_refused_unless_it_is_to_replace_ours() -> None:
    with (
        closing(Workspace.open(":memory:")) as first,
        closing(Workspace.open(":memory:")) as second,
    ):
        one = label(first, note="as it was")
        first.append([event(LabelAdded(one))])
        (known,) = first.events()
        second.append([event(LabelAdded(replace(one, note="altered")))])
        (altered,) = second.events()
        theirs = [replace(altered, id=known.id, chain=None)]
        with pytest.raises(MergeRefused) as refused:
            first.merge_events(theirs)
        (told,) = refused.value.people
        assert (told.annotator, told.edited, told.labels_changed) == ("alice", 1, 0)
        assert [found.note for found in first.labels()] == ["as it was"]
        report = first.merge_events(theirs, replacing=["alice"])
        assert (report.altered, report.people[0].replaced) == ((known.id,), True)
        assert [found.note for found in first.labels()] == ["altered"]
        assert first.edited_histories() == ()
