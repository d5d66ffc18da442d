"""Studies from workspaces: passes, annotators, traces, rounds and retests."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mast_tui.figures.source.agreement import study_from_workspace
from mast_tui.labels import AnnotatorKind, Label, PassKind
from mast_tui.study.model import Study
from mast_tui.taxonomy.model import Mode
from mast_tui.workspace import NewEvent, TraceRecord, Workspace, WorkspaceError, store_judgement
from mast_tui.workspace.events.types import Fact, LabelAdded, PassFinished, PassStarted, VerdictSet
from mast_tui.workspace.records import RunSettings
from tests.adjudication.annotated_workspace import TAXONOMY, AnnotatedWorkspace
from tests.figures.agreement.tables import agreement_document, verdicts_in
from tests.gold.build import ABSENT, MODE, OTHER, PRESENT, UNSURE, target


@pytest.fixture
def annotated() -> AnnotatedWorkspace:
    """Two traces; on t1 bob agreed with ann in a second look."""
    annotated = AnnotatedWorkspace("t1", "t2")
    annotated.finish("ann", target(3), trace="t1")
    annotated.finish("bob", value=ABSENT, trace="t1")
    annotated.finish("bob", target(3), trace="t1", number=2, kind=PassKind.SECOND_LOOK)
    annotated.finish("ann", value=ABSENT, trace="t2")
    annotated.finish("bob", value=ABSENT, trace="t2")
    return annotated


def test_first_and_last_finished_passes_are_compared(annotated: AnnotatedWorkspace) -> None:
    annotated.finish("judy", target(3), trace="t1", number=2, kind=PassKind.SECOND_LOOK)
    annotated.start("cat", "t1")
    annotated.mark("cat", target(1), trace="t1")
    annotated.start("ann", "t1", number=2, kind=PassKind.SECOND_LOOK)
    first = study_from_workspace(annotated.workspace, TAXONOMY)
    assert (first.annotators, first.pass_label) == (("ann", "bob"), "1")
    verdicts = verdicts_in(first.verdicts)
    assert verdicts["ann", "t1", MODE] is PRESENT
    assert verdicts["bob", "t1", MODE] is verdicts["bob", "t1", OTHER] is ABSENT
    assert first.finished == {"ann": {"t1", "t2"}, "bob": {"t1", "t2"}}
    last = study_from_workspace(annotated.workspace, TAXONOMY, which="last")
    assert (last.annotators, last.pass_label) == (("ann", "bob", "judy"), "last")
    verdicts = verdicts_in(last.verdicts)
    assert verdicts["ann", "t1", MODE] is verdicts["bob", "t1", MODE] is PRESENT
    report = agreement_document(first)
    assert report["taxonomy"] == TAXONOMY.ref
    assert report["modes"]["1.3"]["raw_agreement"]["value"] == 0.5
    assert report["categories"]["1"]["name"] == "All"
    assert report["categories"]["1"]["modes"] == [mode.code for mode in TAXONOMY.modes]
    two = study_from_workspace(
        annotated.workspace, TAXONOMY, annotators=["ann", "bob"], which="last"
    )
    assert agreement_document(two)["modes"]["1.3"]["cohen_kappa"]["value"] == 1.0


def test_judges_are_compared_if_named_without_examples_of_their_prompt(
    annotated: AnnotatedWorkspace,
) -> None:
    judge = "judge:small@12ab34cd"
    settings = RunSettings("small", "12ab34cd", "localhost", examples=("t1",))
    annotated.workspace.add_annotator(judge, AnnotatorKind.JUDGE)
    run = annotated.workspace.start_run(judge, TAXONOMY.ref, settings=settings)
    for trace in ("t1", "t2"):
        store_judgement(
            annotated.workspace,
            judge=judge,
            taxonomy=TAXONOMY.ref,
            trace_id=trace,
            looks_at=[MODE],
            findings=[],
            run_id=run,
        )
    assert judge not in study_from_workspace(annotated.workspace, TAXONOMY).annotators
    study = study_from_workspace(annotated.workspace, TAXONOMY, annotators=["ann", judge])
    report = agreement_document(study)
    assert study.finished[judge] == {"t2"}
    assert verdicts_in(study.verdicts)[judge, "t2", MODE] is ABSENT
    assert report["modes"]["1.3"]["n"] == 1
    assert report["traces"]["examples_left_out"] == {judge: 1}
    assert report["left_out"]["examples"][judge] == 1


def test_annotators_and_traces_can_be_named(annotated: AnnotatedWorkspace) -> None:
    annotated.start("cat", "t1")
    names = ["bob", "cat"]
    traces = frozenset({"t2"})
    study = study_from_workspace(annotated.workspace, TAXONOMY, annotators=names, traces=traces)
    assert study.annotators == ("bob", "cat")
    assert study.finished == {"bob": {"t2"}, "cat": frozenset()}
    report = agreement_document(study)
    assert report["pooled"]["raw_agreement"] == {"value": None, "undefined": "single_rater", "n": 0}
    with pytest.raises(WorkspaceError, match=r"'bop'.*ann, bob"):
        study_from_workspace(annotated.workspace, TAXONOMY, annotators=["bop"])


def test_imported_annotators_are_compared_if_no_one_labelled_here() -> None:
    annotated = AnnotatedWorkspace()
    for name in ("paper-1", "paper-2"):
        annotated.workspace.add_annotator(name, AnnotatorKind.IMPORTED)
        annotated.finish(name, target(3))
    assert study_from_workspace(annotated.workspace, TAXONOMY).annotators == ("paper-1", "paper-2")
    annotated.finish("ann", target(3))
    assert study_from_workspace(annotated.workspace, TAXONOMY).annotators == ("ann",)


def test_unfinished_traces_are_counted_also_if_they_are_hidden(
    annotated: AnnotatedWorkspace,
) -> None:
    annotated.start("ann", "t3")
    annotated.start("bob", "t2", number=2, kind=PassKind.SECOND_LOOK)
    study = study_from_workspace(annotated.workspace, TAXONOMY)
    assert agreement_document(study, rounds=0)["left_out"]["unfinished"] == {"ann": 1, "bob": 0}
    some = study_from_workspace(annotated.workspace, TAXONOMY, traces=frozenset({"t1", "t2"}))
    assert agreement_document(some, rounds=0)["left_out"]["unfinished"] == {"ann": 1, "bob": 0}


def test_retest_is_compared_only_with_the_first_pass_of_the_same_person(
    annotated: AnnotatedWorkspace,
) -> None:
    previous = agreement_document(study_from_workspace(annotated.workspace, TAXONOMY), rounds=0)
    annotated.finish("bob", value=ABSENT, trace="t1", number=3, kind=PassKind.RETEST)
    annotated.finish("bob", target(3), trace="t2", number=2, kind=PassKind.RETEST)
    annotated.start("ann", "t1", number=2, kind=PassKind.RETEST)
    for which in ("first", "last"):
        study = study_from_workspace(annotated.workspace, TAXONOMY, which=which)
        assert set(study.retests) == {"bob"}
        retest = study.retests["bob"]
        assert retest.traces == ("t1", "t2")
        verdicts = verdicts_in(retest)
        assert [verdicts["first", trace, MODE] for trace in ("t1", "t2")] == [ABSENT, ABSENT]
        assert [verdicts["retest", trace, MODE] for trace in ("t1", "t2")] == [ABSENT, PRESENT]
        report = agreement_document(study, rounds=0)
        assert report["retests"]["bob"]["n_traces"] == 2
    after = agreement_document(study_from_workspace(annotated.workspace, TAXONOMY), rounds=0)
    assert after["pooled"] == previous["pooled"]
    hidden = study_from_workspace(annotated.workspace, TAXONOMY, traces=frozenset({"t1"}))
    assert hidden.retests["bob"].traces == ("t1",)


def test_batches_of_a_study_are_its_rounds(annotated: AnnotatedWorkspace) -> None:
    def set_up(*batches: tuple[str, ...]) -> None:
        annotated.study(Study(TAXONOMY.ref, ("ann", "bob"), batches=batches))

    assert study_from_workspace(annotated.workspace, TAXONOMY).rounds == {}
    set_up(("t1", "t2"))
    assert study_from_workspace(annotated.workspace, TAXONOMY).rounds == {}
    set_up(("t1",), ("t2", "t9"))
    study = study_from_workspace(annotated.workspace, TAXONOMY)
    assert study.rounds == {"1": {"t1"}, "2": {"t2", "t9"}}
    rounds = agreement_document(study, rounds=0)["rounds"]
    assert {name: verdict["traces"] for name, verdict in rounds.items()} == {"1": 1, "2": 1}


def test_verdicts_on_seventy_modes_are_read() -> None:
    """Seventy modes take three whole numbers; a mode may have labels and a verdict."""
    modes = tuple(Mode(f"m{n}", f"1.{n}", f"Mode {n}", "1") for n in range(70))
    wide = replace(TAXONOMY, id="wide", modes=modes)
    workspace = Workspace.open(":memory:")
    workspace.add_taxonomy(wide)
    workspace.add_annotator("ann", AnnotatorKind.HUMAN)
    trace = workspace.register_trace(TraceRecord("t"))
    values = {"m0": ABSENT, "m1": PRESENT, "m31": UNSURE, "m32": PRESENT, "m63": ABSENT}
    values |= {"m64": UNSURE, "m69": PRESENT}
    facts: list[Fact] = [PassStarted(PassKind.BLIND), VerdictSet("m69", None, ABSENT)]
    for mode, value in values.items():
        label = Label(mode, "ann", trace, wide.ref, mode, target(1))
        is_present = value is PRESENT
        facts.append(LabelAdded(label) if is_present else VerdictSet(mode, None, value))
    facts.append(PassFinished())
    workspace.append([NewEvent("ann", trace, wide.ref, 1, fact) for fact in facts])
    verdicts = verdicts_in(study_from_workspace(workspace, wide).verdicts)
    assert verdicts == {("ann", trace, mode): value for mode, value in values.items()}
