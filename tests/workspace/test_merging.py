"""Two workspaces become one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from mast_tui.gold import Guideline
from mast_tui.labels import AnnotatorKind, Target
from mast_tui.study import Assignment, Draw, Membership, Release, Study
from mast_tui.workspace import NewEvent, RunTrace, TraceRecord, Workspace, WorkspaceError
from mast_tui.workspace.events.types import (
    GuidelineSet,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    StudySet,
)
from mast_tui.workspace.merging import merge
from mast_tui.workspace.registers.tags import keep_tags, tags_by
from tests.taxonomy.rewording import changed
from tests.workspace.build import MAST, TRACE, event, label, started, state, trace_of


@pytest.fixture
def here() -> Iterator[Workspace]:
    with closing(Workspace.open(":memory:")) as opened:
        yield opened


@pytest.fixture
def there() -> Iterator[Workspace]:
    with closing(Workspace.open(":memory:")) as opened:
        yield opened


def test_everything_comes_over(here: Workspace, there: Workspace) -> None:
    there.add_taxonomy(MAST)
    there.add_annotator("bob", AnnotatorKind.IMPORTED)
    there.register_trace(TraceRecord.from_trace(trace_of("one")))
    run = there.start_run("judge:rules@1", MAST.ref)
    there.note_run_trace(run, RunTrace(TRACE, 1))
    started(there, label(there, annotator="bob"), annotator="bob")
    started(here, label(here))
    report = merge(here, there)
    assert (report.added, report.known) == (2, 0)
    assert {one.annotator for one in here.labels()} == {"alice", "bob"}
    assert here.taxonomies() == there.taxonomies()
    assert here.traces() == there.traces()
    assert here.runs() == there.runs()
    assert there.annotators()[0] in here.annotators()
    before = state(here)
    assert merge(here, there).added == 0
    assert state(here) == before


def test_another_content_under_the_same_id_keeps_its_labels(
    here: Workspace, there: Workspace
) -> None:
    here.register_trace(TraceRecord.from_trace(trace_of("one")))
    there.register_trace(TraceRecord.from_trace(trace_of("another")))
    one, gone = label(there), label(there)
    started(there, one, gone)
    after = structs.replace(one, note="changed")
    there.append([event(LabelChanged(one, after)), event(LabelRemoved(gone))])
    merge(here, there)
    assert merge(here, there).altered == ()
    assert [found.trace_id for found in here.labels()] == [f"{TRACE}~2"]
    assert [found.note for found in here.labels()] == ["changed"]
    assert len(here.traces()) == 2


def test_where_a_trace_was_seen_here_stays(here: Workspace, there: Workspace) -> None:
    record = TraceRecord.from_trace(trace_of("one"))
    here.register_trace(record)
    there.register_trace(replace(record, path=Path("far") / "away.json", task="known there"))
    merge(here, there)
    (kept,) = here.traces()
    assert (kept.path, kept.task) == (record.path, "known there")


def test_nothing_comes_over_where_a_taxonomy_does_not_fit(
    here: Workspace, there: Workspace
) -> None:
    here.add_taxonomy(MAST)
    there.add_taxonomy(changed(MAST, lambda modes: modes[::-1]))
    there.append([event(LabelAdded(label(there)))])
    before = state(here)
    with pytest.raises(WorkspaceError, match="raise the version"):
        merge(here, there)
    assert state(here) == before
    assert list(here.events()) == []


def test_a_study_and_its_guidelines_speak_of_the_traces_under_their_names_here(
    here: Workspace, there: Workspace
) -> None:
    here.register_trace(TraceRecord.from_trace(trace_of("one")))
    there.register_trace(TraceRecord.from_trace(trace_of("another")))
    study = Study(
        MAST.ref,
        ("alice", "bob"),
        batches=((TRACE,), ("not there",)),
        memberships=(Membership("alice", 0, 2), Membership("alice", 3)),
        releases=(Release("alice", ("not there", TRACE)),),
        draws=(Draw(1, 7, ("outcome", "length"), 3),),
        assignments=(Assignment(TRACE, ("bob",)),),
    )
    words = Guideline("g", MAST.modes[0].slug, "only with a reason", "bob", "now", TRACE)
    there.append(
        [
            NewEvent("bob", None, MAST.ref, None, fact)
            for fact in (StudySet(None, study), GuidelineSet("g", None, words))
        ]
    )
    merge(here, there)
    moved = f"{TRACE}~2"
    assert here.study(MAST.ref) == structs.replace(
        study,
        batches=((moved,), ("not there",)),
        releases=(Release("alice", ("not there", moved)),),
        assignments=(Assignment(moved, ("bob",)),),
    )
    assert here.guidelines(MAST.ref) == (structs.replace(words, trace_id=moved),)
    assert merge(here, there).added == 0


def test_tags_given_to_open_codes_come_over_beside_those_that_are_here(
    here: Workspace, there: Workspace
) -> None:
    first, second = (("alice", TRACE, Target(key, key), False) for key in ("k0", "k1"))
    for place, text, tags in (
        (here, "one", {first: ("money",)}),
        (there, "another", {first: ("money", "refund"), second: ("late",)}),
    ):
        place.add_taxonomy(MAST)
        place.register_trace(TraceRecord.from_trace(trace_of(text)))
        place.add_annotator("bob", AnnotatorKind.HUMAN)
        keep_tags(place, MAST.id, "bob", tags)
    merge(here, there)
    moved = {(whose, f"{TRACE}~2", *rest): tags for (whose, _, *rest), tags in tags.items()}
    assert tags_by(here, MAST.id, "bob") == {first: ("money",)} | moved
    merge(here, there)
    assert tags_by(here, MAST.id, "bob") == {first: ("money",)} | moved


def test_of_two_peoples_studies_the_last_one_stands(here: Workspace, there: Workspace) -> None:
    study = Study(MAST.ref, ("alice", "bob"))
    for place, name, seed in ((here, "alice", 1), (there, "bob", 2)):
        fact = StudySet(None, structs.replace(study, seed=seed))
        place.append([NewEvent(name, None, MAST.ref, None, fact)])
    merge(here, there, replacing=["alice"])
    assert here.study(MAST.ref) == structs.replace(study, seed=2)


def test_a_guideline_is_there_as_it_was_put_last_until_it_is_taken_back(here: Workspace) -> None:
    first = Guideline("g", MAST.modes[0].slug, "only with a reason", "bob", "2026-05-04T10:00:00Z")
    later = structs.replace(
        first, text="always", written_by="carol", written_at="2026-05-05T10:00:00Z"
    )
    here.append([NewEvent("bob", None, MAST.ref, None, GuidelineSet("g", None, first))])
    here.append([NewEvent("carol", None, MAST.ref, None, GuidelineSet("g", first, later))])
    assert here.guidelines(MAST.ref) == (later,)
    gone = structs.replace(later, text="")
    here.append([NewEvent("carol", None, MAST.ref, None, GuidelineSet("g", later, gone))])
    assert here.guidelines(MAST.ref) == ()
