"""Each person's events in a chain of hashes."""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from msgspec.structs import replace

from mast_tui.exchange.apply import apply_incoming
from mast_tui.exchange.csv_labels import read_csv_long
from mast_tui.exchange.jsonl import workspace_lines
from mast_tui.gold import Guideline
from mast_tui.study import Release, Study
from mast_tui.workspace import Event, NewEvent, TraceRecord, Workspace
from mast_tui.workspace.events.chain import LENGTH, digest, first_break, with_checked_chains
from mast_tui.workspace.events.codec import fact_to_values
from mast_tui.workspace.events.model import event_from_dict, event_to_dict
from mast_tui.workspace.events.types import (
    GuidelineSet,
    LabelAdded,
    PassFinished,
    SpansRead,
    StudySet,
)
from mast_tui.workspace.merging import merge
from tests.workspace.build import (
    MAST,
    MODES,
    TRACE,
    event,
    label,
    open_workspaces,
    start_pass,
    trace_of,
)
from tests.workspace.test_events import recorded


def exported(workspace: Workspace) -> str:
    return "".join(workspace_lines(workspace))


@given(recorded())
def test_event_and_its_hash_survive_json(stored: Event) -> None:
    """Chains of existing workspaces depend on the very bytes that are hashed here."""
    parsed = event_from_dict(json.loads(json.dumps(event_to_dict(stored))))
    assert parsed == stored
    assert digest(parsed) == digest(stored)
    if isinstance(stored.fact, StudySet | GuidelineSet):
        return  # they name traces
    assert stored.trace_id in (None, TRACE)
    values: list[object] = [stored.id, stored.annotator, stored.kind]
    values += [stored.trace_id, stored.taxonomy]
    if not stored.action.startswith("import:"):
        values += [stored.seq, stored.at, stored.pass_number, stored.action]
        values += [stored.undoes or None, stored.redoes or None, list(stored.replaces)]
    payload = json.dumps(fact_to_values(stored.fact), sort_keys=True, separators=(",", ":"))
    hashed = json.dumps(values, separators=(",", ":")) + payload
    assert digest(stored) == hashlib.sha256(hashed.encode("ascii")).digest()


def test_each_event_of_a_person_is_chained_to_the_one_before(workspace: Workspace) -> None:
    for _ in range(2):
        workspace.append([event(SpansRead(("k0",))) for _ in range(2)])
    judged = label(workspace, annotator="judge:rules@1")
    workspace.append([event(LabelAdded(judged), annotator="judge:rules@1")])
    events = list(workspace.events(annotator="alice"))
    chains = [row.chain_hash for row in events]
    assert len(set(chains)) == 4
    assert {len(chain or "") for chain in chains} == {LENGTH}
    assert [row.chain_hash for row in workspace.events(annotator="judge:rules@1")] == [None]
    assert first_break(events) is None
    assert first_break(events[1:]) == events[1]
    assert first_break([events[0], *events[2:]]) == events[2]
    unchained = with_checked_chains([replace(row, chain_hash=None) for row in reversed(events)])
    assert [row.chain_hash for row in unchained.events] == chains
    assert unchained.first_broken == {}
    # A whole number is hashed as the fraction that is read back.
    added = replace(label(workspace), confidence=1)
    workspace.append([event(LabelAdded(added))])
    assert workspace.edited_histories() == ()


def test_renaming_a_trace_keeps_chains() -> None:
    with open_workspaces(3) as (target, source, third):
        target.register_trace(TraceRecord.from_trace(trace_of("one")))
        source.register_trace(TraceRecord.from_trace(trace_of("another")))
        start_pass(source, label(source))
        released = (Release("alice", (TRACE,)),)
        study = Study(MAST.ref, ("alice", "bob"), batches=((TRACE,),), releases=released)
        guideline = Guideline("g", MODES[0], "only with a reason", "alice", "now", TRACE)
        source.append(
            [
                NewEvent("alice", None, MAST.ref, None, fact)
                for fact in (StudySet(None, study), GuidelineSet("g", None, guideline))
            ]
        )
        merge(target, source)
        assert {row.trace_id for row in target.labels()} == {f"{TRACE}~2"}
        assert target.edited_histories() == ()
        assert merge(target, source).people == ()
        merge(third, target)
        assert merge(source, third).people == ()


def test_same_import_on_two_machines_can_be_continued_on_either(tmp_path: Path) -> None:
    """The events have other times and counters there, but no one has edited anything."""
    table = tmp_path / "a.csv"
    table.write_text("trace_id,annotator,mode,value\nt,alice,1.3,present\nt,alice,1.1,absent\n")
    with open_workspaces(3) as (first, second, third):
        first.append([event(SpansRead(("k0",)), trace_id="other")])
        for workspace in (first, second):
            incoming = read_csv_long([table], taxonomy=MAST, find_taxonomy=lambda _: None)
            apply_incoming(incoming, workspace, source="csv-long")
        facts = (SpansRead(("k1",)), PassFinished())
        second.append([event(fact, trace_id="t") for fact in facts])
        (person,) = merge(first, second).people
        assert (person.events, person.passes_finished) == (2, 1)
        assert first.edited_histories() == ()
        merge(third, first)
        assert third.edited_histories() == ()
        assert merge(third, second).people == ()


@pytest.mark.parametrize("seconds", [1, 2])
def test_chains_computed_on_two_machines_become_one(seconds: int) -> None:
    """Files of earlier versions have no chains, and workspaces may have computed different ones."""
    with open_workspaces(2) as (first, second):
        first.append([event(SpansRead(("k0",)))])
        merge(second, first)
        for workspace, key in ((first, "k1"), (second, "k2")):
            workspace.append([event(SpansRead((key,)))])
        with closing(Workspace.open(":memory:")) as merged:
            merge(merged, first)
            merge(merged, second)
            merged.append([event(SpansRead((f"k{seconds}",)))])
            unchained = [replace(row, chain_hash=None) for row in merged.events()]
        for workspace, events in ((first, unchained), (second, unchained[::-1])):
            workspace.merge_events(events)
            assert workspace.edited_histories() == ()
        merge(first, second)
        merge(second, first)
        assert exported(first) == exported(second)
