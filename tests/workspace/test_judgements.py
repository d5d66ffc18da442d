"""A judge's findings become suggestions whose names last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import pytest

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
from tests.workspace.build import MAST, MODES, TRACE, event, state

JUDGE = "judge:rules@1"


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with closing(Workspace.open(":memory:")) as opened:
        yield opened


def finding(
    mode: str = MODES[0], first: str = "k0", last: str = "k0", confidence: float = 0.5
) -> Finding:
    return Finding(mode, first, last, "because", confidence)


def store(
    workspace: Workspace,
    *findings: Finding,
    looks_at: Sequence[str] = MODES[:3],
    unsure: Sequence[str] = (),
    partial: bool = False,
    run_id: str | None = None,
    trace: RunTrace | None = None,
) -> int:
    return store_judgement(
        workspace,
        judge=JUDGE,
        taxonomy=MAST.ref,
        trace_id=TRACE,
        looks_at=looks_at,
        findings=findings,
        unsure=unsure,
        partial=partial,
        run_id=run_id,
        trace=trace,
    )


def answer(workspace: Workspace, suggestion: str) -> None:
    review = ReviewSet(suggestion, None, ReviewGiven(ReviewAnswer.REJECT))
    workspace.append([event(PassStarted(PassKind.ASSISTED)), event(review)])


def test_findings_are_labels_and_verdicts_of_the_judge(workspace: Workspace) -> None:
    assert store(workspace, finding(), finding(MODES[1], "k1", "k3", 0.9)) == 2
    verdicts = {v.mode: v.value for v in workspace.verdicts(annotator=JUDGE)}
    assert verdicts == {
        MODES[0]: VerdictValue.PRESENT,
        MODES[1]: VerdictValue.PRESENT,
        MODES[2]: VerdictValue.ABSENT,
    }
    found = {one.mode: one for one in workspace.labels(annotator=JUDGE, pass_number="finished")}
    assert found[MODES[1]].target == Target("k1", "k3")
    assert (found[MODES[1]].confidence, found[MODES[1]].note) == (0.9, "because")
    assert [(a.name, a.kind) for a in workspace.annotators()] == [(JUDGE, AnnotatorKind.JUDGE)]
    (judgement,) = workspace.judgements()
    assert (judgement.judge, judgement.looks_at) == (JUDGE, MODES[:3])


@pytest.mark.parametrize(
    ("one", "target"),
    [
        (
            Finding(
                MODES[0],
                "k0",
                "k0",
                "r",
                1.0,
                evidence=Evidence(key="k0", quote="word", char_start=3, char_end=7),
            ),
            Target("k0", "k0", "word", 3, 7),
        ),
        (
            Finding(MODES[0], "k0", "k0", "r", 1.0, evidence=Evidence(key="k0", quote="word")),
            Target("k0", "k0"),
        ),
        (
            Finding(MODES[0], "k0", "k0", "r", 1.0, evidence=Evidence(key=None, quote="word")),
            Target("k0", "k0"),
        ),
        (
            Finding(MODES[0], None, None, "r", 1.0, evidence=Evidence(key=None, quote="word")),
            Target(),
        ),
        (
            Finding(
                MODES[0],
                "k0",
                "k0",
                "r",
                1.0,
                evidence=Evidence(key="k5", quote="word", char_start=3, char_end=7),
            ),
            Target("k0", "k0"),
        ),
        (
            Finding(
                MODES[0],
                "k0",
                "k2",
                "r",
                1.0,
                evidence=Evidence(key="k1", quote="word", char_start=3, char_end=7),
            ),
            Target("k0", "k2"),
        ),
    ],
)
def test_a_finding_points_at_its_range_or_at_its_words(
    workspace: Workspace, one: Finding, target: Target
) -> None:
    store(workspace, one)
    (label,) = workspace.labels()
    assert label.target == target
    assert one.evidence is not None
    assert label.evidence == one.evidence


def test_all_that_a_finding_says_is_kept(workspace: Workspace) -> None:
    whole = Finding(
        MODES[0],
        "k2",
        "k3",
        "r",
        1.0,
        decisive=False,
        evidence=Evidence(
            key="k3",
            quote="word",
            char_start=3,
            char_end=7,
            match=Match.ALTERED,
            named=("k0", "k1"),
            wording="sword",
        ),
    )
    store(workspace, whole)
    (label,) = workspace.labels()
    assert label.decisive is False
    assert label.evidence == Evidence(
        key="k3",
        quote="word",
        char_start=3,
        char_end=7,
        match=Match.ALTERED,
        named=("k0", "k1"),
        wording="sword",
    )
    before = state(workspace)
    workspace.rebuild()
    assert state(workspace) == before


def verdicts_of(workspace: Workspace) -> dict[str, VerdictValue]:
    return {v.mode: v.value for v in workspace.verdicts(annotator=JUDGE)}


def test_where_it_is_unsure_it_says_so_unless_it_found_something(workspace: Workspace) -> None:
    store(workspace, finding(MODES[0]), unsure=(MODES[0], MODES[1], MODES[5]))
    assert verdicts_of(workspace) == {
        MODES[0]: VerdictValue.PRESENT,
        MODES[1]: VerdictValue.UNSURE,
        MODES[2]: VerdictValue.ABSENT,
    }
    (said,) = (one.fact for one in workspace.events() if isinstance(one.fact, Judged))
    assert (said.absent, said.unsure) == ((MODES[2],), (MODES[1],))
    before, count = state(workspace), len(list(workspace.events()))
    store(workspace, finding(MODES[0]), unsure=(MODES[1],))
    assert len(list(workspace.events())) == count
    workspace.rebuild()
    assert state(workspace) == before
    store(workspace, finding(MODES[0]), unsure=(MODES[2],))
    assert verdicts_of(workspace) == {
        MODES[0]: VerdictValue.PRESENT,
        MODES[1]: VerdictValue.ABSENT,
        MODES[2]: VerdictValue.UNSURE,
    }


def counted_traces(workspace: Workspace) -> tuple[object, ...]:
    """What counts as judged for those who go on with a run, compare, or adjudicate."""
    study = study_from_workspace(workspace, MAST, annotators=[JUDGE])
    return (
        len(workspace.judgements()),
        len(study.finished[JUDGE]),
        len(verdicts_in(study.verdicts)),
        len(workspace.labels(pass_number="finished")),
        len(workspace.finished_traces(JUDGE, MAST.ref)),
    )


def test_a_part_of_a_judgement_suggests_and_says_nothing_more(workspace: Workspace) -> None:
    assert store(workspace, looks_at=(), partial=True) == 0
    assert list(workspace.events()) == []
    assert store(workspace, finding(MODES[0]), looks_at=(), partial=True) == 1
    part = list(workspace.events())
    assert store(workspace, finding(MODES[0]), looks_at=(), partial=True) == 1
    assert list(workspace.events()) == part
    changed = replace(finding(MODES[0]), rationale="for another reason")
    assert store(workspace, changed, finding(MODES[1]), looks_at=(), partial=True) == 2
    found = {one.mode: one.note for one in workspace.labels()}
    assert found == {MODES[0]: "for another reason", MODES[1]: "because"}
    assert workspace.waiting_counts("alice", MAST.ref) == {TRACE: 2}
    assert counted_traces(workspace) == (0, 0, 0, 0, 0)
    before = state(workspace)
    workspace.rebuild()
    assert state(workspace) == before


def test_the_whole_judgement_takes_the_place_of_its_parts(workspace: Workspace) -> None:
    store(workspace, finding(MODES[0]), finding(MODES[1]), looks_at=(), partial=True)
    by_mode = {one.mode: one.id for one in workspace.labels(annotator=JUDGE)}
    answer(workspace, by_mode[MODES[1]])
    assert store(workspace, finding(MODES[2])) == 2
    assert {one.mode for one in workspace.labels(annotator=JUDGE)} == {MODES[1], MODES[2]}
    assert verdicts_of(workspace)[MODES[0]] is VerdictValue.ABSENT
    assert counted_traces(workspace) == (1, 1, 3, 2, 1)


def test_a_part_changes_nothing_where_the_whole_is_known(workspace: Workspace) -> None:
    store(workspace, finding(MODES[0]))
    before = state(workspace)
    assert store(workspace, finding(MODES[1]), looks_at=(), partial=True) == 0
    assert state(workspace) == before


def test_what_is_noted_with_the_run_counts_what_is_kept(workspace: Workspace) -> None:
    run = workspace.start_run(JUDGE, MAST.ref)
    store(workspace, finding(), looks_at=(), partial=True, run_id=run)
    assert workspace.runs()[0].traces == ()
    noted = RunTrace("", 7, quotes=QuoteCounts(1, not_found=1), windows=3, remarks=("cut",))
    store(workspace, finding(), finding(MODES[7]), run_id=run, trace=noted)
    (kept,) = workspace.runs()
    assert kept.traces == (replace(noted, trace_id=TRACE, findings=1),)
    quoted = Finding(
        MODES[0],
        "k0",
        "k0",
        "r",
        1.0,
        evidence=Evidence(key="k0", quote="word", char_start=3, char_end=7),
    )
    lost = Finding(MODES[1], "k0", "k0", "r", 1.0, evidence=Evidence(key="k0", quote="word"))
    reworded = Evidence(key="k0", quote="word", char_start=3, char_end=7, match=Match.ALTERED)
    altered = replace(quoted, mode=MODES[1], evidence=reworded)
    store(workspace, finding(MODES[2]), quoted, lost, altered, run_id=run)
    counts = QuoteCounts(exact=1, altered=1, not_found=1)
    assert workspace.runs()[0].traces == (RunTrace(TRACE, 4, quotes=counts),)


def test_the_same_findings_again_change_nothing(workspace: Workspace) -> None:
    store(workspace, finding(), finding(MODES[1]))
    before, events = state(workspace), list(workspace.events())
    store(workspace, finding(MODES[1]), finding())
    assert state(workspace) == before
    assert list(workspace.events()) == events


def test_finding_nothing_is_recorded_and_recorded_once(workspace: Workspace) -> None:
    assert store(workspace) == 0
    assert store(workspace) == 0
    assert len(workspace.judgements()) == 1
    assert {v.value for v in workspace.verdicts()} == {VerdictValue.ABSENT}
    assert len({one.action for one in workspace.events()}) == 1


def test_other_findings_replace_what_nobody_has_answered(workspace: Workspace) -> None:
    store(workspace, finding(MODES[0]), finding(MODES[1]), finding(MODES[2]))
    by_mode = {one.mode: one.id for one in workspace.labels(annotator=JUDGE)}
    answer(workspace, by_mode[MODES[0]])
    answer(workspace, by_mode[MODES[1]])
    store(workspace, replace(finding(MODES[0]), rationale="for another reason", confidence=0.7))
    after = {one.mode: one for one in workspace.labels(annotator=JUDGE)}
    assert set(after) == {MODES[0], MODES[1]}
    assert after[MODES[0]].id == by_mode[MODES[0]]
    assert (after[MODES[0]].note, after[MODES[0]].confidence) == ("for another reason", 0.7)
    assert after[MODES[1]].id == by_mode[MODES[1]]
    verdicts = {v.mode: v.value for v in workspace.verdicts(annotator=JUDGE)}
    assert verdicts[MODES[2]] is VerdictValue.ABSENT


def test_a_suggestion_has_the_same_name_in_every_workspace(workspace: Workspace) -> None:
    with closing(Workspace.open(":memory:")) as other:
        store(workspace, finding(), finding(MODES[1]))
        store(other, finding(MODES[1]), finding())
        ours = {(one.mode, one.id) for one in workspace.labels()}
        assert {(one.mode, one.id) for one in other.labels()} == ours


def test_of_findings_at_one_place_the_surest_is_kept(workspace: Workspace) -> None:
    assert store(workspace, finding(confidence=0.2), finding(confidence=0.8)) == 1
    assert [one.confidence for one in workspace.labels()] == [0.8]


def test_what_it_does_not_look_at_it_does_not_find(workspace: Workspace) -> None:
    assert store(workspace, finding(MODES[0]), looks_at=MODES[1:2]) == 0
    assert workspace.labels() == ()


def test_a_run_notes_its_traces_even_where_nothing_changes(workspace: Workspace) -> None:
    store(workspace, finding())
    run = workspace.start_run(JUDGE, MAST.ref)
    store_judgement(
        workspace,
        judge=JUDGE,
        taxonomy=MAST.ref,
        trace_id=TRACE,
        looks_at=MODES[:3],
        findings=[finding()],
        run_id=run,
    )
    (kept,) = workspace.runs()
    assert [(trace.trace_id, trace.findings) for trace in kept.traces] == [(TRACE, 1)]


def test_people_are_no_judges(workspace: Workspace) -> None:
    with pytest.raises(WorkspaceError, match="judge:"):
        store_judgement(
            workspace, judge="alice", taxonomy=MAST.ref, trace_id=TRACE, looks_at=MODES, findings=[]
        )


def test_waiting_suggestions_are_counted_for_each_person(workspace: Workspace) -> None:
    store(workspace, finding(MODES[0]), finding(MODES[1]))
    answer(workspace, workspace.labels(annotator=JUDGE)[0].id)
    assert workspace.waiting_counts("alice", MAST.ref) == {TRACE: 1}
    assert workspace.waiting_counts("bob", MAST.ref) == {TRACE: 2}
    assert workspace.waiting_counts("bob", "other@1") == {}
    assert workspace.label_counts(JUDGE, MAST.ref) == {TRACE: 2}
