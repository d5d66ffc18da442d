"""Input of reports on judges from workspaces."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mast_tui.adjudication import read_work_by_trace
from mast_tui.figures.judge.input import GoldReference, JudgeInput, judge_input_from_workspace
from mast_tui.labels import AnnotatorKind, Finding, PassKind, ReviewAnswer
from mast_tui.workspace import NewEvent, WorkspaceError, store_judgement
from mast_tui.workspace.events.types import PassStarted, ReviewGiven, ReviewSet
from mast_tui.workspace.records import RunSettings
from tests.adjudication.annotated_workspace import TAXONOMY, THIRD, AnnotatedWorkspace
from tests.figures.agreement.build_judge import JUDGE, judge_document
from tests.gold.build import ABSENT, MODE, OTHER, PRESENT, target


def judge(
    annotated: AnnotatedWorkspace, trace: str, *findings: Finding, looks_at: Sequence[str] = (MODE,)
) -> None:
    annotated.workspace.add_annotator(JUDGE, AnnotatorKind.JUDGE)
    store_judgement(
        annotated.workspace, judge=JUDGE, taxonomy=TAXONOMY.ref, trace_id=trace,
        looks_at=looks_at, findings=findings,
    )  # fmt: skip


def against_gold(annotated: AnnotatedWorkspace, traces: frozenset[str] | None = None) -> JudgeInput:
    """Return the input of the judge beside the gold of the workspace."""
    work = read_work_by_trace(annotated.workspace, TAXONOMY)
    gold = GoldReference({trace: verdicts.gold(TAXONOMY) for trace, verdicts in work.items()})
    return judge_input_from_workspace(annotated.workspace, TAXONOMY, JUDGE, gold, traces=traces)


@pytest.fixture
def annotated() -> AnnotatedWorkspace:
    """Three traces labelled by two people, a fourth that only the judge has judged."""
    annotated = AnnotatedWorkspace("t1", "t2", "t3", "t4")
    annotated.finish("ann", target(3), trace="t1")
    annotated.finish("bob", target(3), trace="t1")
    annotated.finish("ann", value=ABSENT, trace="t2")
    annotated.finish("bob", target(1), trace="t2")
    annotated.finish("ann", value=ABSENT, trace="t3", kind=PassKind.ASSISTED, saw_suggestions=True)
    for trace in ("t1", "t2", "t3"):
        judge(annotated, trace, Finding(MODE, "k3", "k3", "", 0.8))
    judge(annotated, "t4")
    return annotated


def test_gold_is_what_people_settled_without_the_judge(annotated: AnnotatedWorkspace) -> None:
    judge_input = against_gold(annotated)
    assert judge_input.reference.verdicts[("t1", MODE)] is PRESENT
    assert ("t2", MODE) not in judge_input.reference.verdicts
    assert judge_input.verdicts == {
        ("t1", MODE): PRESENT, ("t2", MODE): PRESENT, ("t3", MODE): PRESENT, ("t4", MODE): ABSENT
    }  # fmt: skip
    assert judge_input.unlabelled == {"t4"}
    report = judge_document(judge_input, rounds=20)
    mode = report["modes"]["1.3"]
    assert (mode["n"], mode["true_positives"]) == (1, 1)
    assert report["left_out"] == {
        "judge_seen": 1, "unsure_judge": 0, "unsure_reference": 0, "unresolved": 1, "examples": 0,
        "unfinished": 0,
    }  # fmt: skip
    assert report["localisation"]["right_place"]["value"] == 1.0
    assert report["modes"]["3.1"]["n"] == 0
    assert report["withheld"] is None


def test_one_person_can_be_the_reference(annotated: AnnotatedWorkspace) -> None:
    judge_input = judge_input_from_workspace(annotated.workspace, TAXONOMY, JUDGE, "ann")
    report = judge_document(judge_input, rounds=0)
    assert report["against"] == "ann"
    assert report["modes"]["1.3"]["n"] == 2
    assert report["modes"]["1.3"]["false_positives"] == 1
    assert report["left_out"]["judge_seen"] == 1
    assert judge_document(judge_input, rounds=0, with_seen=True)["modes"]["1.3"]["n"] == 3


def test_named_pass_of_a_person_counts(annotated: AnnotatedWorkspace) -> None:
    annotated.finish("ann", target(3), trace="t2", number=2, kind=PassKind.SECOND_LOOK)
    annotated.finish("ann", target(3), trace="t3", number=2, kind=PassKind.RETEST)
    first = judge_input_from_workspace(annotated.workspace, TAXONOMY, JUDGE, "ann")
    last = judge_input_from_workspace(annotated.workspace, TAXONOMY, JUDGE, "ann", which="last")
    assert first.reference.verdicts["t2", MODE] is ABSENT
    assert last.reference.verdicts["t2", MODE] is PRESENT
    assert last.reference.places["t2", MODE] == (target(3),)
    assert last.reference.verdicts["t3", MODE] is ABSENT


def test_unlooked_modes_hidden_traces_and_examples_do_not_count(
    annotated: AnnotatedWorkspace,
) -> None:
    visible = against_gold(annotated, traces=frozenset({"t2"}))
    assert {trace for trace, _ in visible.reference.verdicts} == {"t2"}
    assert visible.unlabelled == {"t4"}
    settings = RunSettings("small", "12ab34cd", "localhost", examples=("t1",))
    annotated.workspace.start_run(JUDGE, TAXONOMY.ref, settings=settings)
    report = judge_document(against_gold(annotated), rounds=0)
    assert report["left_out"]["examples"] == 1
    assert report["modes"]["1.3"]["n"] == 0
    judge(annotated, "t1", looks_at=(OTHER, THIRD))
    verdicts = judge_input_from_workspace(annotated.workspace, TAXONOMY, JUDGE, "ann").verdicts
    assert ("t1", MODE) not in verdicts
    assert verdicts["t1", OTHER] is ABSENT


def test_input_has_answers_and_passes_with_withheld_suggestions(
    annotated: AnnotatedWorkspace,
) -> None:
    [suggestion] = annotated.workspace.labels(annotator=JUDGE, trace_id="t3")
    annotated.workspace.append(
        [
            NewEvent("ann", "t3", TAXONOMY.ref, 1,
                     ReviewSet(suggestion.id, None, ReviewGiven(ReviewAnswer.REJECT))),
            NewEvent("ann", "t4", TAXONOMY.ref, 1, PassStarted(PassKind.ASSISTED, withheld=True)),
        ]
    )  # fmt: skip
    annotated.mark("ann", trace="t4", verdicts={MODE: ABSENT})
    unfinished = judge_input_from_workspace(annotated.workspace, TAXONOMY, JUDGE, "ann")
    assert unfinished.passes == ()
    assert unfinished.unlabelled == {"t4"}
    annotated.end("ann", "t4")
    judge_input = judge_input_from_workspace(annotated.workspace, TAXONOMY, JUDGE, "ann")
    assert judge_input.unlabelled == frozenset()
    assert [(labelling.trace_id, labelling.withheld) for labelling in judge_input.passes] == [
        ("t3", False),
        ("t4", True),
    ]
    report = judge_document(judge_input, rounds=20)
    assert report["answers"]["reject"] == 1
    assert report["answers"]["bins"][8]["n"] == 1
    assert report["withheld"] is not None
    assert report["withheld"]["modes"]["1.3"]["agreement_with_judge"]["difference"]["value"] == -1


def test_unknown_judges_and_annotators_are_refused(annotated: AnnotatedWorkspace) -> None:
    with pytest.raises(WorkspaceError, match=rf"no judge 'ann'.*{JUDGE}"):
        judge_input_from_workspace(annotated.workspace, TAXONOMY, "ann", "bob")
    with pytest.raises(WorkspaceError, match=r"no annotator 'bop'.*ann, bob"):
        judge_input_from_workspace(annotated.workspace, TAXONOMY, JUDGE, "bop")
