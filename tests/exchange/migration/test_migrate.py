"""Migration of labels from one version of a codebook to the next, and its undo."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import select

from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.jsonl import merge_content, read_jsonl, workspace_lines
from mast_tui.exchange.migration.mapping import CodebookMap
from mast_tui.exchange.migration.migrate import GONE_ON, OWN_WORK, Left, Migrated, migrate
from mast_tui.exchange.undo_import import find_import, undo_import
from mast_tui.figures.time_study import minutes_worked
from mast_tui.gold.model import Decision, Guideline, SideAnswer
from mast_tui.gold.overlaps import item_id
from mast_tui.labels import Target, VerdictValue
from mast_tui.session import Session
from mast_tui.session.queues import QueueItem, QueueKind, queue
from mast_tui.workspace import NewEvent, Workspace, schema
from mast_tui.workspace.events.types import Decided, GuidelineSet
from mast_tui.workspace.merging import merge
from tests.exchange.migration.codebooks import (
    DROPPED,
    FIRST,
    INTO,
    MAP,
    MERGED,
    NAMED,
    NEXT,
    PARTS,
    RENAMED,
    SECOND,
    SPLIT,
)
from tests.session.build import put, span
from tests.session.studies import Class
from tests.workspace.build import MAST, MODES

pytestmark = pytest.mark.slow

ABSENT = VerdictValue.ABSENT
UNSURE = VerdictValue.UNSURE
PRESENT = VerdictValue.PRESENT
SAME = MODES[5]


def tables(workspace: Workspace, ref: str | None = None) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of all state tables, of one taxonomy or all, without withdrawn passes."""
    rows = {}
    with workspace._database.reading() as connection:
        for table in schema.STATE_TABLES:
            statement = select(table)
            if "withdrawn" in table.columns:
                statement = statement.where(table.c.withdrawn.is_(False))
            if ref is not None and "taxonomy" in table.columns:
                statement = statement.where(table.c.taxonomy == ref)
            rows[table.name] = sorted(map(tuple, connection.execute(statement)), key=repr)
    return rows


def undo(workspace: Workspace) -> tuple[str, ...]:
    return undo_import(workspace, find_import(workspace, ""), "alice").built_on


def verdicts(
    workspace: Workspace, trace_id: str, annotator: str = "alice"
) -> dict[str, VerdictValue]:
    stored = workspace.verdicts(trace_id=trace_id, annotator=annotator, taxonomy=NEXT.ref)
    return {verdict.mode: verdict.value for verdict in stored}


def open_migrated(study: Class, trace_id: str, annotator: str = "alice") -> Session:
    return Session.open(study.workspace, study.traces[trace_id], NEXT, annotator, blind=False)


@pytest.fixture
def study() -> Iterator[Class]:
    study = Class(6)
    yield study
    study.workspace.close()


def migrate_study(study: Class) -> Migrated:
    return migrate(study.workspace, MAP, "alice")


def test_a_renamed_mode_keeps_labels_notes_and_verdicts(study: Class) -> None:
    session = study.open("t00")
    put(session, RENAMED, span(1))
    session.note_span("k0", "look here")
    session.finish(open_modes="absent")
    (old,) = study.workspace.labels(taxonomy=MAST.ref)
    done = migrate_study(study)
    (new,) = study.workspace.labels(taxonomy=NEXT.ref)
    assert new == structs.replace(old, id=new.id, taxonomy=NEXT.ref, mode=NAMED)
    assert new.id != old.id
    assert verdicts(study.workspace, "t00") == {
        mode.slug: PRESENT if mode.slug == NAMED else ABSENT for mode in NEXT.modes
    }
    (note,) = study.workspace.span_notes(taxonomy=NEXT.ref)
    assert note.text == "look here"
    (old_pass,) = study.workspace.passes(taxonomy=MAST.ref)
    (new_pass,) = study.workspace.passes(taxonomy=NEXT.ref)
    assert new_pass == structs.replace(old_pass, taxonomy=NEXT.ref)
    assert minutes_worked(study.workspace, NEXT) == minutes_worked(study.workspace, MAST)
    assert minutes_worked(study.workspace, NEXT)
    assert (done.lost, done.look_again, done.dropped, done.left) == ([], [], [], [])


def test_merged_modes_are_present_where_either_is_and_dropped_ones_listed(study: Class) -> None:
    for trace_id, mode in (("t00", MERGED), ("t01", INTO)):
        study.finish(trace_id, mode=mode)
    study.finish("t02")
    session = study.open("t03")
    session.set_verdict(MERGED, ABSENT)
    session.set_verdict(INTO, UNSURE)
    study.open("t04").set_verdict(MERGED, ABSENT)
    session = study.open("t05")
    for mode in (MERGED, INTO):
        put(session, mode, span(0))
        (new_label,) = [label for label in session.labels if label.mode == mode]
        session.edit_label(new_label.id, note=f"as {mode}")
    put(session, INTO, span(1))
    study.finish("t00", mode=DROPPED, annotator="bob")
    done = migrate_study(study)
    values = [verdicts(study.workspace, f"t0{n}").get(INTO) for n in range(5)]
    assert values == [PRESENT, PRESENT, ABSENT, UNSURE, None]
    # Labels on one span are joined with both notes.
    notes = {
        label.target.first: label.note
        for label in study.workspace.labels(trace_id="t05", taxonomy=NEXT.ref)
    }
    assert notes == {"k0": f"as {MERGED}\nas {INTO}", "k1": ""}
    assert (len(done.carried), len(done.joined), done.lost) == (5, 1, [])
    (dropped,) = done.dropped
    assert (dropped.mode, dropped.annotator, dropped.trace_id) == (DROPPED, "bob", "t00")
    assert study.workspace.labels(annotator="bob", taxonomy=NEXT.ref) == ()
    assert [label.mode for label in study.workspace.labels(annotator="bob")] == [DROPPED]


def test_a_split_mode_is_open_where_it_was_present(study: Class, tmp_path: Path) -> None:
    study.finish("t00", mode=SPLIT)
    study.finish("t01", mode=SAME)
    study.finish("t00", annotator="bob")
    session = study.open("t02")
    session.set_verdict(SPLIT, UNSURE)
    session.finish(open_modes="absent")
    done = migrate_study(study)
    (reopened,) = done.look_again
    assert (reopened.annotator, reopened.trace_id, reopened.modes) == ("alice", "t00", PARTS)
    assert [label.target for label in reopened.places] == [Target("k0", "k0")]
    values = [
        [verdicts(study.workspace, trace_id, annotator).get(part) for part in PARTS]
        for trace_id, annotator in (("t00", "alice"), ("t00", "bob"), ("t02", "alice"))
    ]
    assert values == [[None, None], [ABSENT, ABSENT], [UNSURE, UNSURE]]
    passes = study.workspace.passes(taxonomy=NEXT.ref)
    open_passes = [(p.annotator, p.trace_id) for p in passes if not p.finished]
    assert (len(passes), open_passes) == (4, [("alice", "t00")])
    waiting = queue(study.workspace, NEXT, "alice", QueueKind.CHANGED)
    assert waiting == (QueueItem("t00", PARTS, begun=True),)
    assert queue(study.workspace, NEXT, "bob", QueueKind.CHANGED) == ()
    # An export has the migration, and a second migration keeps the open parts.
    file = tmp_path / "all.jsonl"
    file.write_text("".join(workspace_lines(study.workspace)))
    later = structs.replace(NEXT, version="5")
    same = CodebookMap(NEXT, later, {mode.slug: (mode.slug,) for mode in NEXT.modes})
    with closing(Workspace.open(":memory:")) as copy:
        merge_content(read_jsonl(file), copy)
        assert tables(copy) == tables(study.workspace)
        assert copy.edited_histories() == ()
        assert queue(copy, NEXT, "alice", QueueKind.CHANGED) == waiting
        (reopened,) = migrate(copy, same, None).look_again
        assert (reopened.trace_id, reopened.modes) == ("t00", PARTS)
        assert len(queue(copy, later, "alice", QueueKind.CHANGED)) == 1
    # Labelling a part continues the pass and empties the queue.
    session = open_migrated(study, "t00")
    put(session, SECOND, span(0))
    waiting = queue(study.workspace, NEXT, "alice", QueueKind.CHANGED)
    assert waiting == (QueueItem("t00", (FIRST,), begun=True),)
    session.finish(open_modes="absent")
    assert queue(study.workspace, NEXT, "alice", QueueKind.CHANGED) == ()
    (only,) = study.workspace.passes(annotator="alice", trace_id="t00", taxonomy=NEXT.ref)
    assert (only.number, only.finished) == (1, True)
    assert verdicts(study.workspace, "t00")[FIRST] is ABSENT


def test_finishing_leaves_the_parts_open(study: Class) -> None:
    put(study.open("t00"), SPLIT, span(0))
    migrate_study(study)
    session = open_migrated(study, "t00")
    session.finish(open_modes="absent")
    assert verdicts(study.workspace, "t00") == {
        mode.slug: ABSENT for mode in NEXT.modes if mode.slug not in PARTS
    }
    assert len(queue(study.workspace, NEXT, "alice", QueueKind.CHANGED)) == 1


def test_suggestions_and_reviews_are_carried(study: Class) -> None:
    study.judge("t00")
    session = study.open("t00")
    (suggestion,) = session.suggestions
    session.accept(suggestion.id)
    session.finish(open_modes="absent")
    migrate_study(study)
    labels = {label.annotator: label for label in study.workspace.labels(taxonomy=NEXT.ref)}
    own_label = labels.pop("alice")
    (judge_label,) = labels.values()
    assert own_label.suggestion == judge_label.id
    (review,) = study.workspace.reviews(taxonomy=NEXT.ref)
    assert (review.suggestion, review.label) == (judge_label.id, own_label.id)
    (judgement,) = study.workspace.judgements(taxonomy=NEXT.ref)
    assert judgement.looks_at == tuple(mode.slug for mode in NEXT.modes)
    assert open_migrated(study, "t00").suggestions
    assert undo(study.workspace) == ()
    assert study.workspace.labels(taxonomy=NEXT.ref) == ()


def decide(
    study: Class, mode: str, value: VerdictValue, item: str | None = None, trace_id: str = "t00"
) -> None:
    target = Target("k0", "k0")
    sides = (SideAnswer("alice", PRESENT, (target,)), SideAnswer("bob", ABSENT))
    targets = (target,) if value is PRESENT else ()
    decided_at = f"2026-05-04T10:20:3{len(tuple(study.workspace.events(annotator='carol')))}Z"
    answer = (targets, ("alice",), sides, "carol", decided_at)
    decision = Decision(mode, item or mode, value, *answer, reason=f"about {mode}")
    fact = Decided(decision.item, None, decision)
    study.workspace.append([NewEvent("carol", trace_id, MAST.ref, None, fact)])


def test_decisions_are_carried_unless_their_mode_was_split_or_half_merged(study: Class) -> None:
    study.finish("t00", mode=RENAMED)
    study.finish("t01", mode=INTO)
    item = item_id(RENAMED, Target("k0", "k0"))
    decide(study, RENAMED, PRESENT)
    decide(study, RENAMED, PRESENT, item)
    for mode, value in ((MERGED, ABSENT), (SPLIT, ABSENT), (DROPPED, PRESENT)):
        decide(study, mode, value)
    decide(study, MERGED, ABSENT, trace_id="t01")
    migrate_study(study)
    decisions = study.workspace.decisions("t00", NEXT.ref)
    assert {decision.item: (decision.value, decision.reason) for decision in decisions} == {
        NAMED: (PRESENT, f"about {RENAMED}"),
        item_id(NAMED, Target("k0", "k0")): (PRESENT, f"about {RENAMED}"),
        INTO: (ABSENT, f"about {MERGED}"),
        FIRST: (ABSENT, f"about {SPLIT}"),
        SECOND: (ABSENT, f"about {SPLIT}"),
    }
    assert study.workspace.decisions("t01", NEXT.ref) == ()
    undo(study.workspace)
    decide(study, INTO, PRESENT, trace_id="t01")
    migrate_study(study)
    (decision,) = study.workspace.decisions("t01", NEXT.ref)
    assert (decision.item, decision.value) == (INTO, PRESENT)
    assert decision.reason == f"about {MERGED}\nabout {INTO}"


def test_study_and_guidelines_are_carried(study: Class) -> None:
    study.finish("t00")
    for name, mode in (("one", MERGED), ("two", SPLIT)):
        guideline = Guideline(name, mode, f"of {mode}", "carol", "2026-05-04T10:20:30Z")
        fact = GuidelineSet(name, None, guideline)
        study.workspace.append([NewEvent("carol", None, MAST.ref, None, fact)])
    migrate_study(study)
    assert study.workspace.study(NEXT.ref) == structs.replace(study.study, taxonomy=NEXT.ref)
    (migrated,) = study.workspace.guidelines(NEXT.ref)
    assert (migrated.mode, migrated.text) == (INTO, f"of {MERGED}")


def test_a_second_migration_carries_new_work_and_reports_what_it_leaves(study: Class) -> None:
    study.finish("t00", "t01", mode=RENAMED)
    open_migrated(study, "t00").finish(open_modes="absent")
    first_verdicts = tables(study.workspace, NEXT.ref)["verdicts"]
    own_work = Left("alice", "t00", OWN_WORK)
    assert migrate_study(study).left == [own_work]
    assert set(first_verdicts) <= set(tables(study.workspace, NEXT.ref)["verdicts"])
    assert verdicts(study.workspace, "t01")[NAMED] is PRESENT
    study.finish("t02", mode=RENAMED)
    assert migrate_study(study).works == [("alice", "t02")]
    assert {label.trace_id for label in study.workspace.labels(taxonomy=NEXT.ref)} == {"t01", "t02"}
    third = migrate_study(study)
    assert (third.events, third.left) == (0, [own_work])
    assert len(study.workspace.imports()) == 2
    put(study.open("t01"), SAME, span(1))
    assert migrate_study(study).left == [own_work, Left("alice", "t01", GONE_ON)]
    assert {label.mode for label in study.workspace.labels(taxonomy=NEXT.ref)} == {NAMED}


def test_equal_migrations_on_two_machines_merge(study: Class) -> None:
    study.finish("t00", mode=SPLIT)
    study.finish("t01", mode=RENAMED, annotator="bob")
    with closing(Workspace.open(":memory:")) as other, closing(Workspace.open(":memory:")) as third:
        merge(other, study.workspace)
        migrate_study(study)
        migrate(other, MAP, "bob")
        migrated = tables(study.workspace)
        merge(third, other)
        merge(other, study.workspace)
        assert tables(other) == migrated
        merge(study.workspace, third)
        assert tables(study.workspace) == migrated


def test_a_migration_can_be_undone_and_repeated_unless_work_was_built_on_it(study: Class) -> None:
    study.finish("t00", mode=SPLIT)
    study.finish("t01", mode=RENAMED)
    previous = tables(study.workspace)
    migrate_study(study)
    first = tables(study.workspace)
    assert undo(study.workspace) == ()
    assert tables(study.workspace) == previous
    assert queue(study.workspace, NEXT, "alice", QueueKind.CHANGED) == ()
    assert study.workspace.current_taxonomies() == (MAST.ref,)
    assert [labelling.trace_id for labelling in migrate_study(study).look_again] == ["t00"]
    repeated = tables(study.workspace)
    assert {name: len(rows) for name, rows in repeated.items()} == {
        name: len(rows) for name, rows in first.items()
    }
    assert study.workspace.current_taxonomies() == (NEXT.ref,)
    put(open_migrated(study, "t00"), FIRST, span(0))
    previous = tables(study.workspace)
    assert undo(study.workspace) == ("alice on t00: labels added since",)
    assert tables(study.workspace) == previous


def test_nothing_to_carry_is_refused() -> None:
    with closing(Workspace.open(":memory:")) as workspace:
        workspace.add_taxonomy(MAST)
        with pytest.raises(ExchangeError, match="there are no labels under mast@3"):
            migrate(workspace, MAP, None)
