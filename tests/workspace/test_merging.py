"""Merging of two workspaces."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from mast_tui.gold import Guideline
from mast_tui.labels import AnnotatorKind, PassKind, Target, VerdictValue
from mast_tui.study import Assignment, Draw, Membership, Release, Study
from mast_tui.workspace import NewEvent, RunTrace, TraceRecord, Workspace
from mast_tui.workspace.events.changes import only_adds
from mast_tui.workspace.events.types import (
    BlindWorkSet,
    Fact,
    GuidelineSet,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    PassFinished,
    PassStarted,
    StudySet,
    VerdictSet,
)
from mast_tui.workspace.merging import merge
from mast_tui.workspace.records import MergeRefused
from mast_tui.workspace.registers.tags import keep_tags, tags_by
from tests.workspace.build import MAST, TRACE, event, label, start_pass, state, trace_of


@pytest.fixture
def target(workspace: Workspace) -> Workspace:
    return workspace


@pytest.fixture
def source(other: Workspace) -> Workspace:
    return other


@pytest.fixture
def moved(target: Workspace, source: Workspace) -> str:
    """Return the new id of the trace of the source: another trace of the target has its id."""
    target.register_trace(TraceRecord.from_trace(trace_of("one")))
    source.register_trace(TraceRecord.from_trace(trace_of("another")))
    return f"{TRACE}~2"


def test_merging_brings_every_register_and_event_once(target: Workspace, source: Workspace) -> None:
    source.add_taxonomy(MAST)
    source.add_annotator("bob", AnnotatorKind.IMPORTED)
    source.register_trace(TraceRecord.from_trace(trace_of("one")))
    run = source.start_run("judge:rules@1", MAST.ref)
    source.note_run_trace(run, RunTrace(TRACE, 1))
    start_pass(source, label(source, annotator="bob"), annotator="bob")
    start_pass(target, label(target))
    report = merge(target, source)
    assert (report.added, report.known) == (2, 0)
    assert {entry.annotator for entry in target.labels()} == {"alice", "bob"}
    assert target.taxonomies() == source.taxonomies()
    assert target.traces() == source.traces()
    assert target.runs() == source.runs()
    assert source.annotators()[0] in target.annotators()
    merged = state(target)
    assert merge(target, source).added == 0
    assert state(target) == merged


def test_labels_follow_the_new_id_of_their_trace(
    target: Workspace, source: Workspace, moved: str
) -> None:
    remaining = label(source)
    removed = label(source)
    start_pass(source, remaining, removed)
    after = structs.replace(remaining, note="changed")
    source.append([event(LabelChanged(remaining, after)), event(LabelRemoved(removed))])
    merge(target, source)
    assert merge(target, source).altered == ()
    assert [(row.trace_id, row.note) for row in target.labels()] == [(moved, "changed")]
    assert len(target.traces()) == 2


def test_path_known_here_stays(target: Workspace, source: Workspace) -> None:
    record = TraceRecord.from_trace(trace_of("one"))
    target.register_trace(record)
    source.register_trace(
        structs.replace(record, path=Path("far") / "away.json", task="known there")
    )
    merge(target, source)
    (stored,) = target.traces()
    assert (stored.path, stored.task) == (record.path, "known there")


def test_study_and_guidelines_follow_the_new_ids_of_traces(
    target: Workspace, source: Workspace, moved: str
) -> None:
    study = Study(
        MAST.ref,
        ("alice", "bob"),
        batches=((TRACE,), ("not there",)),
        memberships=(Membership("alice", 0, 2), Membership("alice", 3)),
        releases=(Release("alice", ("not there", TRACE)),),
        draws=(Draw(1, 7, ("outcome", "length"), 3),),
        assignments=(Assignment(TRACE, ("bob",)),),
    )
    guideline = Guideline("g", MAST.modes[0].slug, "only with a reason", "bob", "now", TRACE)
    source.append(
        [
            NewEvent("bob", None, MAST.ref, None, fact)
            for fact in (StudySet(None, study), GuidelineSet("g", None, guideline))
        ]
    )
    merge(target, source)
    assert target.study(MAST.ref) == structs.replace(
        study,
        batches=((moved,), ("not there",)),
        releases=(Release("alice", ("not there", moved)),),
        assignments=(Assignment(moved, ("bob",)),),
    )
    assert target.guidelines(MAST.ref) == (structs.replace(guideline, trace_id=moved),)
    assert merge(target, source).added == 0


def test_tags_of_open_codes_are_added_once_to_those_here(
    target: Workspace, source: Workspace, moved: str
) -> None:
    first, second = (("alice", TRACE, Target(key, key), False) for key in ("k0", "k1"))
    theirs = {first: ("money", "refund"), second: ("late",)}
    for workspace, tags in ((target, {first: ("money",)}), (source, theirs)):
        workspace.add_taxonomy(MAST)
        workspace.add_annotator("bob", AnnotatorKind.HUMAN)
        keep_tags(workspace, MAST.id, "bob", tags)
    added = {(author, moved, *parts): tags for (author, _, *parts), tags in theirs.items()}
    for _ in range(2):
        merge(target, source)
        assert tags_by(target, MAST.id, "bob") == {first: ("money",)} | added


def test_last_study_of_two_people_is_valid(target: Workspace, source: Workspace) -> None:
    study = Study(MAST.ref, ("alice", "bob"))
    for workspace, name, seed in ((target, "alice", 1), (source, "bob", 2)):
        fact = StudySet(None, structs.replace(study, seed=seed))
        workspace.append([NewEvent(name, None, MAST.ref, None, fact)])
    merge(target, source, replacing=["alice"])
    assert target.study(MAST.ref) == structs.replace(study, seed=2)


def test_last_guideline_is_valid_until_it_is_emptied(target: Workspace) -> None:
    first = Guideline("g", MAST.modes[0].slug, "only with a reason", "bob", "2026-05-04T10:00:00Z")
    later = structs.replace(
        first, text="always", written_by="carol", written_at="2026-05-05T10:00:00Z"
    )
    target.append([NewEvent("bob", None, MAST.ref, None, GuidelineSet("g", None, first))])
    target.append([NewEvent("carol", None, MAST.ref, None, GuidelineSet("g", first, later))])
    assert target.guidelines(MAST.ref) == (later,)
    gone = structs.replace(later, text="")
    target.append([NewEvent("carol", None, MAST.ref, None, GuidelineSet("g", later, gone))])
    assert target.guidelines(MAST.ref) == ()


def test_only_a_later_guideline_overrules_that_of_another(
    target: Workspace, source: Workspace
) -> None:
    mode = MAST.modes[0].slug
    ours = Guideline("g", mode, "always", "bob", "2026-05-05T10:00:00Z")
    target.append([NewEvent("bob", None, MAST.ref, None, GuidelineSet("g", None, ours))])
    older = Guideline("g", mode, "never", "carol", "2026-05-04T10:00:00Z")
    source.append([NewEvent("carol", None, MAST.ref, None, GuidelineSet("g", None, older))])
    (person,) = merge(target, source).people
    assert (person.annotator, person.needs, person.overruled) == ("carol", (), {})
    assert target.guidelines(MAST.ref) == (ours,)
    later = structs.replace(older, written_at="2026-05-06T10:00:00Z")
    source.append([NewEvent("carol", None, MAST.ref, None, GuidelineSet("g", older, later))])
    with pytest.raises(MergeRefused):
        merge(target, source)
    assert target.guidelines(MAST.ref) == (ours,)


def test_events_that_only_add_are_distinguished_from_changes(target: Workspace) -> None:
    facts: dict[str, Fact] = {
        "start": PassStarted(PassKind.BLIND),
        "label": LabelAdded(label(target)),
        "finish": PassFinished(),
        "sight": BlindWorkSet(None, True),
        "verdict removed": VerdictSet(MAST.modes[0].slug, VerdictValue.ABSENT, None),
    }
    target.append([event(fact) for fact in facts.values()])
    events = dict(zip(facts, target.events(), strict=True))
    for names, has_no_gaps, expected in (
        (("start", "label", "finish"), False, True),
        (("label", "finish"), True, False),  # of a pass that began elsewhere
        (("sight",), True, True),
        (("sight",), False, False),
        (("label", "verdict removed"), True, False),
    ):
        assert only_adds([events[name] for name in names], has_no_gaps=has_no_gaps) is expected
