"""Judgements: suggestions with lasting ids, verdicts, and notes of runs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from mast_tui.figures.source.agreement import study_from_workspace
from mast_tui.labels import (
    AnnotatorKind,
    Evidence,
    Finding,
    Match,
    PassKind,
    QuoteCounts,
    ReviewAnswer,
    Target,
    VerdictValue,
)
from mast_tui.workspace import RunTrace, Workspace, WorkspaceError, store_judgement
from mast_tui.workspace.events.types import Judged, PassStarted, ReviewGiven, ReviewSet
from tests.figures.agreement.tables import verdicts_in
from tests.gold.build import ABSENT, PRESENT, UNSURE
from tests.workspace.build import MAST, MODES, TRACE, event, state

JUDGE = "judge:rules@1"
QUOTE = Evidence(key="k0", quote="word", char_start=3, char_end=7)


def finding(
    mode: str = MODES[0],
    first: str | None = "k0",
    last: str | None = "k0",
    confidence: float = 0.5,
    evidence: Evidence | None = None,
) -> Finding:
    return Finding(mode, first, last, "because", confidence, evidence=evidence)


def store(workspace: Workspace, *findings: Finding, **options: Any) -> int:
    """Store a judgement on the first three modes; return its number of suggestions."""
    defaults = {"judge": JUDGE, "taxonomy": MAST.ref, "trace_id": TRACE, "looks_at": MODES[:3]}
    return store_judgement(workspace, findings=findings, **(defaults | options))


def store_part(workspace: Workspace, *findings: Finding, **options: Any) -> int:
    return store(workspace, *findings, looks_at=(), partial=True, **options)


def reject(workspace: Workspace, suggestion: str) -> None:
    review = ReviewSet(suggestion, None, ReviewGiven(ReviewAnswer.REJECT))
    workspace.append([event(PassStarted(PassKind.ASSISTED)), event(review)])


def verdicts_of(workspace: Workspace) -> dict[str, VerdictValue]:
    return {verdict.mode: verdict.value for verdict in workspace.verdicts(annotator=JUDGE)}


def suggestions(workspace: Workspace) -> dict[str, str]:
    return {label.mode: label.id for label in workspace.labels(annotator=JUDGE)}


def assert_rebuild_keeps_state(workspace: Workspace) -> None:
    state_before = state(workspace)
    workspace.rebuild()
    assert state(workspace) == state_before


def test_findings_become_labels_and_verdicts_once(workspace: Workspace, other: Workspace) -> None:
    assert store(workspace, finding(), finding(MODES[1], "k1", "k3", 0.9)) == 2
    assert verdicts_of(workspace) == {MODES[0]: PRESENT, MODES[1]: PRESENT, MODES[2]: ABSENT}
    labels = {label.mode: label for label in workspace.labels(pass_number="finished")}
    assert labels[MODES[1]].target == Target("k1", "k3")
    assert (labels[MODES[1]].confidence, labels[MODES[1]].note) == (0.9, "because")
    assert [(a.name, a.kind) for a in workspace.annotators()] == [(JUDGE, AnnotatorKind.JUDGE)]
    (judgement,) = workspace.judgements()
    assert (judgement.judge, judgement.looks_at) == (JUDGE, MODES[:3])
    state_before = state(workspace), list(workspace.events())
    store(workspace, finding(MODES[1], "k1", "k3", 0.9), finding())
    assert (state(workspace), list(workspace.events())) == state_before
    # The same suggestion has the same id in every workspace.
    store(other, finding(MODES[1], "k1", "k3", 0.9), finding())
    assert suggestions(other) == suggestions(workspace)
    with pytest.raises(WorkspaceError, match="judge:"):
        store(workspace, judge="alice")


@pytest.mark.parametrize(
    ("stored", "target"),
    [
        (finding(evidence=QUOTE), Target("k0", "k0", "word", 3, 7)),
        (finding(evidence=Evidence(key="k0", quote="word")), Target("k0", "k0")),
        (finding(evidence=Evidence(key=None, quote="word")), Target("k0", "k0")),
        (finding(first=None, last=None, evidence=Evidence(key=None, quote="word")), Target()),
        (finding(evidence=structs.replace(QUOTE, key="k5")), Target("k0", "k0")),
        (finding(last="k2", evidence=structs.replace(QUOTE, key="k1")), Target("k0", "k2")),
    ],
)
def test_finding_targets_its_quote_or_else_its_range(
    workspace: Workspace, stored: Finding, target: Target
) -> None:
    store(workspace, stored)
    (label,) = workspace.labels()
    assert (label.target, label.evidence) == (target, stored.evidence)


def test_every_field_of_a_finding_is_stored(workspace: Workspace) -> None:
    fields: dict[str, Any] = {
        "match": Match.ALTERED,
        "misnamed_spans": ("k0", "k1"),
        "wording": "sword",
    }
    evidence = structs.replace(QUOTE, key="k3", **fields)
    store(
        workspace,
        structs.replace(finding(first="k2", last="k3", evidence=evidence), decisive=False),
    )
    (label,) = workspace.labels()
    assert (label.decisive, label.evidence) == (False, structs.replace(QUOTE, key="k3", **fields))
    assert_rebuild_keeps_state(workspace)


def test_unsure_modes_are_unsure_unless_found(workspace: Workspace) -> None:
    store(workspace, finding(), unsure=(MODES[0], MODES[1], MODES[5]))
    assert verdicts_of(workspace) == {MODES[0]: PRESENT, MODES[1]: UNSURE, MODES[2]: ABSENT}
    (judged,) = (row.fact for row in workspace.events() if isinstance(row.fact, Judged))
    assert (judged.absent, judged.unsure) == ((MODES[2],), (MODES[1],))
    count = len(list(workspace.events()))
    store(workspace, finding(), unsure=(MODES[1],))
    assert len(list(workspace.events())) == count
    assert_rebuild_keeps_state(workspace)
    store(workspace, finding(), unsure=(MODES[2],))
    assert verdicts_of(workspace) == {MODES[0]: PRESENT, MODES[1]: ABSENT, MODES[2]: UNSURE}


def counted_traces(workspace: Workspace) -> tuple[int, ...]:
    """Count the traces that resumed runs, comparisons and adjudication treat as judged."""
    study = study_from_workspace(workspace, MAST, annotators=[JUDGE])
    return (
        len(workspace.judgements()),
        len(study.finished[JUDGE]),
        len(verdicts_in(study.verdicts)),
        len(workspace.labels(pass_number="finished")),
        len(workspace.finished_traces(JUDGE, MAST.ref)),
    )


def test_partial_judgement_only_suggests_until_the_whole_one_replaces_it(
    workspace: Workspace,
) -> None:
    assert store_part(workspace) == 0
    assert list(workspace.events()) == []
    assert store_part(workspace, finding()) == 1
    events = list(workspace.events())
    assert store_part(workspace, finding()) == 1
    assert list(workspace.events()) == events
    changed = structs.replace(finding(), rationale="for another reason")
    assert store_part(workspace, changed, finding(MODES[1])) == 2
    notes = {label.mode: label.note for label in workspace.labels()}
    assert notes == {MODES[0]: "for another reason", MODES[1]: "because"}
    assert workspace.waiting_counts("alice", MAST.ref) == {TRACE: 2}
    assert counted_traces(workspace) == (0, 0, 0, 0, 0)
    assert_rebuild_keeps_state(workspace)
    reject(workspace, suggestions(workspace)[MODES[1]])
    assert store(workspace, finding(MODES[2])) == 2
    assert suggestions(workspace).keys() == {MODES[1], MODES[2]}
    assert verdicts_of(workspace)[MODES[0]] is ABSENT
    assert counted_traces(workspace) == (1, 1, 3, 2, 1)
    state_before = state(workspace)
    assert store_part(workspace, finding(MODES[1])) == 0
    assert state(workspace) == state_before


def test_run_notes_count_the_stored_findings(workspace: Workspace) -> None:
    run = workspace.start_run(JUDGE, MAST.ref)
    store_part(workspace, finding(), run_id=run)
    assert workspace.runs()[0].traces == ()
    note = RunTrace("", 7, quotes=QuoteCounts(1, not_found=1), windows=3, remarks=("cut",))
    store(workspace, finding(), finding(MODES[7]), run_id=run, trace=note)
    assert workspace.runs()[0].traces == (structs.replace(note, trace_id=TRACE, findings=1),)
    findings = [
        finding(MODES[2]),
        finding(evidence=QUOTE),
        finding(MODES[1], evidence=Evidence(key="k0", quote="word")),
        finding(MODES[1], evidence=structs.replace(QUOTE, match=Match.ALTERED)),
    ]
    store(workspace, *findings, run_id=run)
    counts = QuoteCounts(exact=1, altered=1, not_found=1)
    assert workspace.runs()[0].traces == (RunTrace(TRACE, 4, quotes=counts),)
    second = workspace.start_run(JUDGE, MAST.ref)
    store(workspace, *findings, run_id=second)
    assert [(trace.trace_id, trace.findings) for trace in workspace.runs()[1].traces] == [
        (TRACE, 4)
    ]


def test_judgement_without_findings_is_recorded_once(workspace: Workspace) -> None:
    assert (store(workspace), store(workspace)) == (0, 0)
    assert len(workspace.judgements()) == 1
    assert {verdict.value for verdict in workspace.verdicts()} == {ABSENT}
    assert len({row.action for row in workspace.events()}) == 1


def test_new_findings_replace_unanswered_suggestions(workspace: Workspace) -> None:
    store(workspace, finding(), finding(MODES[1]), finding(MODES[2]))
    earlier = suggestions(workspace)
    reject(workspace, earlier[MODES[0]])
    reject(workspace, earlier[MODES[1]])
    assert workspace.waiting_counts("alice", MAST.ref) == {TRACE: 1}
    assert workspace.waiting_counts("bob", MAST.ref) == {TRACE: 3}
    assert workspace.waiting_counts("bob", "other@1") == {}
    assert workspace.label_counts(JUDGE, MAST.ref) == {TRACE: 3}
    store(workspace, structs.replace(finding(), rationale="for another reason", confidence=0.7))
    assert suggestions(workspace) == {mode: earlier[mode] for mode in MODES[:2]}
    changed = next(label for label in workspace.labels() if label.mode == MODES[0])
    assert (changed.note, changed.confidence) == ("for another reason", 0.7)
    assert verdicts_of(workspace)[MODES[2]] is ABSENT


def test_surest_finding_of_a_place_is_stored_and_modes_outside_are_ignored(
    workspace: Workspace,
) -> None:
    assert store(workspace, finding(), looks_at=MODES[1:2]) == 0
    assert workspace.labels() == ()
    assert store(workspace, finding(confidence=0.2), finding(confidence=0.8)) == 1
    assert [label.confidence for label in workspace.labels()] == [0.8]
