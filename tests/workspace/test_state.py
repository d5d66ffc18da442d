"""State of a workspace: registers, labels by pass, decisions, and transactions."""

from __future__ import annotations

from contextlib import suppress

import pytest

from mast_tui.errors import ChangedElsewhere
from mast_tui.labels import AnnotatorKind, Label, PassKind, Verdict, VerdictValue
from mast_tui.taxonomy.loader import from_dict, to_dict
from mast_tui.workspace import Workspace, WorkspaceError
from mast_tui.workspace.events.model import IdSource, uuid7
from mast_tui.workspace.events.types import (
    BlindWorkSet,
    Fact,
    LabelAdded,
    LabelRemoved,
    PassFinished,
    PassStarted,
    PassWithdrawn,
    SpansRead,
    VerdictSet,
)
from tests.workspace.build import MAST, MODES, TRACE, event, label, start_pass, state

HUMAN = AnnotatorKind.HUMAN
JUDGE = AnnotatorKind.JUDGE
IMPORTED = AnnotatorKind.IMPORTED


def test_taxonomy_is_stored_completely_beside_its_next_version(workspace: Workspace) -> None:
    workspace.add_taxonomy(MAST)
    workspace.add_taxonomy(MAST)
    assert workspace.taxonomies() == (MAST,)
    assert workspace.taxonomy(MAST.ref) == MAST
    with pytest.raises(WorkspaceError, match="other@1"):
        workspace.taxonomy("other@1")
    workspace.add_taxonomy(from_dict(to_dict(MAST) | {"version": "99"}))
    assert len(workspace.taxonomies()) == 2


def test_annotators_have_kinds_that_fit_their_names(workspace: Workspace) -> None:
    for name, kind in (
        ("judge:x", HUMAN),
        ("bob", JUDGE),
        ("  ", HUMAN),
        (" bob", HUMAN),
        ("a|b", IMPORTED),
    ):
        with pytest.raises(WorkspaceError):
            workspace.add_annotator(name, kind)
    workspace.add_annotator("judge:x", JUDGE)
    for kind, expected in ((IMPORTED, IMPORTED), (HUMAN, HUMAN), (IMPORTED, HUMAN)):
        workspace.add_annotator("alice", kind)
        kinds = {row.name: row.kind for row in workspace.annotators()}
        assert kinds == {"alice": expected, "judge:x": JUDGE}


def test_events_register_annotators_and_their_blindness(workspace: Workspace) -> None:
    for name in ("alice", "bob", "judge:rules@1"):
        start_pass(workspace, annotator=name)
    for blind in (True, False, True):
        workspace.append(
            [event(BlindWorkSet(None, blind))._replace(trace_id=None, pass_number=None)]
        )
    assert [(row.name, row.kind, row.blind) for row in workspace.annotators()] == [
        ("alice", HUMAN, True),
        ("bob", HUMAN, None),
        ("judge:rules@1", JUDGE, None),
    ]


def fail_half_way(workspace: Workspace) -> None:
    with workspace.transaction():
        workspace.append([event(LabelAdded(label(workspace)))])
        workspace.set_setting("a", "b")
        raise KeyError


def test_failed_transaction_or_part_leaves_nothing(workspace: Workspace) -> None:
    start_pass(workspace)
    state_before = state(workspace)
    with pytest.raises(KeyError):
        fail_half_way(workspace)
    assert state(workspace) == state_before
    with workspace.transaction():
        workspace.append([event(LabelAdded(label(workspace)))])
        with pytest.raises(KeyError):
            fail_half_way(workspace)
    assert len(workspace.labels()) == 1
    assert workspace.get_setting("a") is None


def hide_failed_part(workspace: Workspace) -> None:
    with workspace.transaction(without_savepoints=True):
        workspace.set_setting("before", "1")
        with suppress(KeyError):
            fail_half_way(workspace)


def test_failed_part_ends_a_whole_transaction(workspace: Workspace) -> None:
    with pytest.raises(AssertionError, match="has to end the transaction"):
        hide_failed_part(workspace)
    assert workspace.get_setting("before") is None
    assert workspace.get_setting("a") is None
    with workspace.transaction(without_savepoints=True):
        workspace.set_setting("after", "1")
    assert workspace.get_setting("after") == "1"


def test_append_refuses_outdated_counters_and_foreign_labels(workspace: Workspace) -> None:
    start_pass(workspace)
    (first,) = workspace.events(trace_id=TRACE)
    workspace.append([event(LabelAdded(label(workspace)))], known_seq=first.seq)
    with pytest.raises(ChangedElsewhere):
        workspace.append([event(LabelAdded(label(workspace)))], known_seq=first.seq)
    other = label(workspace, trace_id="other")
    workspace.append([event(LabelAdded(other), trace_id="other")], known_seq=0)
    with pytest.raises(ValueError, match="other work"):
        workspace.append([event(LabelAdded(label(workspace, annotator="bob")))])
    assert len(workspace.labels(pass_number=None)) == 2


def test_event_with_an_id_is_recorded_once(workspace: Workspace) -> None:
    named = event(PassStarted(PassKind.BLIND))._replace(id="lasting")
    assert len(workspace.append([named])) == 1
    assert workspace.append([named]) == ()
    assert [row.id for row in workspace.events()] == ["lasting"]


def two_passes(workspace: Workspace) -> tuple[Label, Label]:
    first = label(workspace, MODES[0])
    second = label(workspace, MODES[1], pass_number=2)
    start_pass(workspace, first)
    absent = VerdictSet(MODES[2], None, VerdictValue.ABSENT)
    workspace.append([event(absent), event(PassFinished(at="2026-05-04T10:00:00Z"))])
    later: list[Fact] = [PassStarted(PassKind.SECOND_LOOK, 1), LabelAdded(second)]
    workspace.append([event(fact, pass_number=2) for fact in later])
    return first, second


def test_labels_verdicts_and_reads_are_those_of_the_pass(workspace: Workspace) -> None:
    first, second = two_passes(workspace)
    assert workspace.labels() == (second,)
    assert workspace.labels(pass_number="finished") == (first,)
    assert workspace.labels(pass_number=1) == (first,)
    assert workspace.labels(pass_number=None) == (first, second)
    assert workspace.labels(annotator="bob") == ()
    assert workspace.labels(trace_id="other") == ()
    assert workspace.labels(taxonomy="other@1") == ()
    assert [(row.number, row.finished_at) for row in workspace.passes()] == [
        (1, "2026-05-04T10:00:00Z"),
        (2, None),
    ]
    work = ("alice", TRACE, MAST.ref)
    assert sorted(workspace.verdicts(pass_number=None), key=lambda row: MODES.index(row.mode)) == [
        Verdict(*work, MODES[0], VerdictValue.PRESENT, 1),
        Verdict(*work, MODES[1], VerdictValue.PRESENT, 2),
        Verdict(*work, MODES[2], VerdictValue.ABSENT, 1),
    ]
    workspace.append([event(SpansRead(("k0", "k1")))])
    workspace.append([event(SpansRead(("k2",)), pass_number=2)])
    workspace.append([event(SpansRead(("k9",)), trace_id="other")])
    assert workspace.reads(*work, 1) == SpansRead(("k0", "k1"))
    assert workspace.reads(*work, 2) == SpansRead(("k0", "k1", "k2"))


def test_adjudication_and_withdrawn_passes_are_not_the_last_pass(workspace: Workspace) -> None:
    first, second = two_passes(workspace)
    workspace.append([event(PassStarted(PassKind.ADJUDICATION), pass_number=3)])
    assert workspace.labels() == (second,)
    assert [row.number for row in workspace.passes()] == [1, 2, 3]
    withdrawal: list[Fact] = [LabelRemoved(second), PassWithdrawn(PassKind.SECOND_LOOK, 1)]
    workspace.append([event(fact, pass_number=2) for fact in withdrawal])
    assert workspace.labels() == (first,)
    assert [row.number for row in workspace.passes()] == [1, 3]
    workspace.append([event(PassStarted(PassKind.SECOND_LOOK, 1), pass_number=2)])
    assert [row.number for row in workspace.passes()] == [1, 2, 3]


def test_events_are_read_in_more_than_one_batch(workspace: Workspace) -> None:
    start_pass(workspace)
    workspace.append([event(SpansRead((f"k{number}",))) for number in range(2100)])
    workspace.append([event(SpansRead(("k",)), annotator="bob", trace_id="other")])
    assert [(row.annotator, row.seq) for row in workspace.events()] == [
        *(("alice", number) for number in range(1, 2102)),
        ("bob", 1),
    ]
    assert len(list(workspace.events(trace_id="other"))) == 1


def test_ids_grow_and_are_uuids_of_version_7() -> None:
    source = IdSource()
    ids = [source.new() for _ in range(5000)]
    assert sorted(set(ids)) == ids
    assert {new[14] for new in ids} == {"7"}
    assert {new[19] for new in ids} <= set("89ab")
    # The example of RFC 9562, appendix A.6.
    low = 0xCC3 << 62 | 0x18C4DC0C0C07398F
    assert uuid7(0x017F22E279B0, low) == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
