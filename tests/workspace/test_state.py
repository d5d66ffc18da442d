"""What a workspace answers: registers, labels by pass, and transactions."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_tui.errors import ChangedElsewhere
from mast_tui.gold.model import Decision
from mast_tui.labels import (
    AnnotatorKind,
    Label,
    PassKind,
    Target,
    Verdict,
    VerdictValue,
    annotator_kind,
)
from mast_tui.taxonomy.loader import from_dict, to_dict
from mast_tui.workspace import Run, RunTrace, Workspace, WorkspaceError
from mast_tui.workspace.events.model import IdSource, uuid5, uuid7
from mast_tui.workspace.events.types import (
    Decided,
    Fact,
    LabelAdded,
    LabelRemoved,
    PassFinished,
    PassStarted,
    PassWithdrawn,
    SightSet,
    SpansRead,
    VerdictSet,
)
from tests.taxonomy.rewording import changed
from tests.workspace.build import MAST, MODES, TRACE, event, label, started, state


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with closing(Workspace.open(":memory:")) as opened:
        yield opened


def test_a_taxonomy_comes_back_whole(workspace: Workspace) -> None:
    workspace.add_taxonomy(MAST)
    workspace.add_taxonomy(MAST)
    assert workspace.taxonomies() == (MAST,)
    assert workspace.taxonomy(MAST.ref) == MAST
    with pytest.raises(WorkspaceError, match="other@1"):
        workspace.taxonomy("other@1")


def test_a_taxonomy_with_other_modes_needs_another_version(workspace: Workspace) -> None:
    workspace.add_taxonomy(MAST)
    other = changed(MAST, lambda modes: [*modes[:-1], replace(modes[-1], code="3.9")])
    with pytest.raises(WorkspaceError, match=r"has the code 3.9, not 3.3.*raise the version"):
        workspace.add_taxonomy(other)
    assert workspace.taxonomies() == (MAST,)
    workspace.add_taxonomy(from_dict(to_dict(other) | {"version": "99"}))
    assert len(workspace.taxonomies()) == 2


def test_annotators_have_kinds_that_fit_their_names(workspace: Workspace) -> None:
    workspace.add_annotator("alice", AnnotatorKind.IMPORTED)
    workspace.add_annotator("judge:rules@1", AnnotatorKind.JUDGE)
    for name, kind in (
        ("judge:x", AnnotatorKind.HUMAN),
        ("bob", AnnotatorKind.JUDGE),
        ("  ", AnnotatorKind.HUMAN),
        (" bob", AnnotatorKind.HUMAN),
        ("a|b", AnnotatorKind.IMPORTED),
    ):
        with pytest.raises(WorkspaceError):
            workspace.add_annotator(name, kind)
    assert {info.name: info.kind for info in workspace.annotators()} == {
        "alice": AnnotatorKind.IMPORTED,
        "judge:rules@1": AnnotatorKind.JUDGE,
    }


def test_whoever_labels_here_is_human_from_then_on(workspace: Workspace) -> None:
    workspace.add_annotator("alice", AnnotatorKind.IMPORTED)
    workspace.add_annotator("alice", AnnotatorKind.HUMAN)
    workspace.add_annotator("alice", AnnotatorKind.IMPORTED)
    assert [info.kind for info in workspace.annotators()] == [AnnotatorKind.HUMAN]


def test_whoever_has_an_event_is_known_by_name(workspace: Workspace) -> None:
    started(workspace, annotator="bob")
    started(workspace, annotator="judge:rules@1")
    assert [(a.name, a.kind) for a in workspace.annotators()] == [
        (name, annotator_kind(name)) for name in ("bob", "judge:rules@1")
    ]


def test_sight_is_remembered_per_annotator(workspace: Workspace) -> None:
    started(workspace, annotator="alice")
    started(workspace, annotator="bob")
    for blind in (True, False, True):
        workspace.append([event(SightSet(None, blind))._replace(trace_id=None, pass_number=None)])
    assert [(a.name, a.blind) for a in workspace.annotators()] == [("alice", True), ("bob", None)]


def fails_half_way(workspace: Workspace) -> None:
    with workspace.transaction():
        workspace.append([event(LabelAdded(label(workspace)))])
        workspace.set_setting("a", "b")
        raise KeyError


def test_a_transaction_that_fails_leaves_nothing(workspace: Workspace) -> None:
    started(workspace)
    before = state(workspace)
    with pytest.raises(KeyError):
        fails_half_way(workspace)
    assert state(workspace) == before
    assert workspace.get_setting("a") is None


def test_a_part_of_a_transaction_can_fail_alone(workspace: Workspace) -> None:
    with workspace.transaction():
        started(workspace, label(workspace))
        with pytest.raises(KeyError):
            fails_half_way(workspace)
    assert len(workspace.labels()) == 1
    assert workspace.get_setting("a") is None


def test_what_came_between_is_refused(workspace: Workspace) -> None:
    started(workspace)
    (first,) = workspace.events(trace_id=TRACE)
    workspace.append([event(LabelAdded(label(workspace)))], known_seq=first.seq)
    with pytest.raises(ChangedElsewhere):
        workspace.append([event(LabelAdded(label(workspace)))], known_seq=first.seq)
    other = label(workspace, trace_id="other")
    workspace.append([event(LabelAdded(other), trace_id="other")], known_seq=0)
    assert len(workspace.labels(pass_number=None)) == 2


def test_an_event_with_a_name_of_its_own_is_recorded_once(workspace: Workspace) -> None:
    named = event(PassStarted(PassKind.BLIND))._replace(id="lasting")
    assert len(workspace.append([named])) == 1
    assert workspace.append([named]) == ()
    assert [one.id for one in workspace.events()] == ["lasting"]


def test_a_label_of_somebody_else_is_no_event_of_mine(workspace: Workspace) -> None:
    with pytest.raises(ValueError, match="other work"):
        workspace.append([event(LabelAdded(label(workspace, annotator="bob")))])
    assert list(workspace.events()) == []


def two_passes(workspace: Workspace) -> tuple[Label, Label]:
    first = label(workspace, MODES[0])
    second = label(workspace, MODES[1], pass_number=2)
    started(workspace, first)
    absent = VerdictSet(MODES[2], None, VerdictValue.ABSENT)
    workspace.append([event(absent), event(PassFinished(at="2026-05-04T10:00:00Z"))])
    later: list[Fact] = [PassStarted(PassKind.SECOND_LOOK, 1), LabelAdded(second)]
    workspace.append([event(fact, pass_number=2) for fact in later])
    return first, second


def test_labels_are_those_of_the_pass_asked_for(workspace: Workspace) -> None:
    first, second = two_passes(workspace)
    assert workspace.labels() == (second,)
    assert workspace.labels(pass_number="finished") == (first,)
    assert workspace.labels(pass_number=1) == (first,)
    assert workspace.labels(pass_number=None) == (first, second)
    assert workspace.labels(annotator="bob") == ()
    assert workspace.labels(trace_id="other") == ()
    assert workspace.labels(taxonomy="other@1") == ()
    assert [(one.number, one.finished_at) for one in workspace.passes()] == [
        (1, "2026-05-04T10:00:00Z"),
        (2, None),
    ]


def test_an_adjudication_is_nobodys_last_pass(workspace: Workspace) -> None:
    _, second = two_passes(workspace)
    workspace.append([event(PassStarted(PassKind.ADJUDICATION), pass_number=3)])
    assert workspace.labels() == (second,)
    assert len(workspace.passes()) == 3


def test_a_withdrawn_pass_is_as_if_it_never_was(workspace: Workspace) -> None:
    first, second = two_passes(workspace)
    back: list[Fact] = [LabelRemoved(second), PassWithdrawn(PassKind.SECOND_LOOK, 1)]
    workspace.append([event(fact, pass_number=2) for fact in back])
    assert workspace.labels() == (first,)
    assert [one.number for one in workspace.passes()] == [1]
    workspace.append([event(PassStarted(PassKind.SECOND_LOOK, 1), pass_number=2)])
    assert [one.number for one in workspace.passes()] == [1, 2]


def test_a_mode_with_labels_is_present(workspace: Workspace) -> None:
    two_passes(workspace)
    who = ("alice", TRACE, MAST.ref)
    assert workspace.verdicts(pass_number=None) == (
        *sorted(
            (
                Verdict(*who, MODES[0], VerdictValue.PRESENT, 1),
                Verdict(*who, MODES[2], VerdictValue.ABSENT, 1),
            ),
            key=lambda verdict: verdict.mode,
        ),
        Verdict(*who, MODES[1], VerdictValue.PRESENT, 2),
    )


def test_reads_add_up_over_passes(workspace: Workspace) -> None:
    two_passes(workspace)
    workspace.append([event(SpansRead(("k0", "k1")))])
    workspace.append([event(SpansRead(("k2",)), pass_number=2)])
    workspace.append([event(SpansRead(("k9",)), trace_id="other")])
    assert workspace.reads("alice", TRACE, MAST.ref, 1) == SpansRead(("k0", "k1"))
    assert workspace.reads("alice", TRACE, MAST.ref, 2) == SpansRead(("k0", "k1", "k2"))


def decision(item: str, by: str, at: str) -> Decision:
    target = Target("k0", "k0")
    return Decision(MODES[0], item, VerdictValue.PRESENT, (target,), ("alice",), (), by, at)


def test_of_several_decisions_on_an_item_the_last_one_stands(workspace: Workspace) -> None:
    early = decision("x", "bob", "2026-05-04T10:00:00Z")
    other = decision("y", "alice", "2026-05-04T11:00:00Z")
    late = decision("x", "alice", "2026-05-04T12:00:00Z")
    workspace.append([event(Decided("x", None, early), annotator="bob", pass_number=2)])
    for one in (late, other):
        workspace.append([event(Decided(one.item, None, one), pass_number=2)])
    assert workspace.decisions(TRACE, MAST.ref) == (other, late)
    assert workspace.decisions(TRACE, MAST.ref, annotator="bob") == (early,)
    workspace.append([event(Decided("x", late, None), pass_number=2)])
    assert workspace.decisions(TRACE, MAST.ref) == (early, other)
    assert workspace.decisions("other", MAST.ref) == ()


def test_events_are_read_beyond_one_batch(workspace: Workspace) -> None:
    started(workspace)
    many = [event(SpansRead((f"k{number}",))) for number in range(2100)]
    workspace.append(many)
    workspace.append([event(SpansRead(("k",)), annotator="bob", trace_id="other")])
    found = list(workspace.events())
    assert [(one.annotator, one.seq) for one in found] == [
        *(("alice", number) for number in range(1, 2102)),
        ("bob", 1),
    ]
    assert len(list(workspace.events(trace_id="other"))) == 1


def test_a_run_tells_what_it_did(workspace: Workspace) -> None:
    run = workspace.start_run("judge:rules@1", MAST.ref, note="all of it")
    workspace.note_run_trace(run, RunTrace("b", 2))
    workspace.note_run_trace(run, RunTrace("a", 0, "could not be read"))
    workspace.note_run_trace(run, RunTrace("b", 3))
    (kept,) = workspace.runs()
    assert kept.finished_at is None
    assert kept.traces == (RunTrace("a", 0, "could not be read"), RunTrace("b", 3))
    assert kept.findings == 3
    workspace.finish_run(run)
    (kept,) = workspace.runs()
    assert kept.finished_at is not None
    assert kept.finished_at >= kept.started_at
    assert isinstance(kept, Run)


def test_ids_only_grow_and_tell_their_time() -> None:
    source = IdSource()
    ids = [source.new() for _ in range(5000)]
    assert sorted(set(ids)) == ids
    assert {one[14] for one in ids} == {"7"}
    assert {one[19] for one in ids} <= set("89ab")
    # The example of RFC 9562, appendix A.6.
    low = 0xCC3 << 62 | 0x18C4DC0C0C07398F
    assert uuid7(0x017F22E279B0, low) == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_named_ids_are_those_of_the_standard_library(name: str) -> None:
    assert uuid5(uuid.NAMESPACE_URL.bytes, name) == str(uuid.uuid5(uuid.NAMESPACE_URL, name))
