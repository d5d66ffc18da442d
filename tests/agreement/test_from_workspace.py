"""Which passes, people and traces of a workspace a study compares."""

from __future__ import annotations

import pytest

from mast_tui.agreement.from_workspace import study_from_workspace
from mast_tui.agreement.study import agreement_report
from mast_tui.agreement.text_table import render_table
from mast_tui.labels import AnnotatorKind, PassKind
from mast_tui.workspace import WorkspaceError, store_judgement
from mast_tui.workspace.records import RunSettings
from tests.adjudication.office import TAXONOMY, Office
from tests.gold.build import ABSENT, MODE, OTHER, PRESENT, at


@pytest.fixture
def office() -> Office:
    """Two traces; on t1 bob came round to ann's view in a second look."""
    office = Office("t1", "t2")
    office.finish("ann", at(3), trace="t1")
    office.finish("bob", value=ABSENT, trace="t1")
    office.finish("bob", at(3), trace="t1", number=2, kind=PassKind.SECOND_LOOK)
    office.finish("ann", value=ABSENT, trace="t2")
    office.finish("bob", value=ABSENT, trace="t2")
    return office


def test_the_first_pass_is_what_people_said_by_themselves(office: Office) -> None:
    study = study_from_workspace(office.workspace, TAXONOMY)
    assert study.annotators == ("ann", "bob")
    assert study.pass_label == "1"
    assert study.verdicts["ann", "t1", MODE] is PRESENT
    assert study.verdicts["bob", "t1", MODE] is ABSENT
    assert study.verdicts["bob", "t1", OTHER] is ABSENT
    assert study.finished == {"ann": {"t1", "t2"}, "bob": {"t1", "t2"}}


def test_the_last_pass_is_what_they_say_now(office: Office) -> None:
    study = study_from_workspace(office.workspace, TAXONOMY, which="last")
    assert study.pass_label == "last"
    assert study.verdicts["bob", "t1", MODE] is PRESENT


def test_an_open_pass_is_not_finished_and_does_not_count(office: Office) -> None:
    office.start("cat", "t1")
    office.say("cat", at(1), trace="t1")
    office.start("ann", "t1", number=2, kind=PassKind.SECOND_LOOK)
    study = study_from_workspace(office.workspace, TAXONOMY, which="last")
    assert study.annotators == ("ann", "bob")
    assert study.verdicts["ann", "t1", MODE] is PRESENT


def test_who_only_took_a_second_look_has_no_first_pass(office: Office) -> None:
    office.finish("judy", at(3), trace="t1", number=2, kind=PassKind.SECOND_LOOK)
    assert "judy" not in study_from_workspace(office.workspace, TAXONOMY).annotators
    assert "judy" in study_from_workspace(office.workspace, TAXONOMY, which="last").annotators


def test_judges_are_compared_only_where_they_are_named(office: Office) -> None:
    judge = "judge:rules@1"
    office.workspace.add_annotator(judge, AnnotatorKind.JUDGE)
    store_judgement(
        office.workspace,
        judge=judge,
        taxonomy=TAXONOMY.ref,
        trace_id="t1",
        looks_at=[MODE],
        findings=[],
    )
    assert judge not in study_from_workspace(office.workspace, TAXONOMY).annotators
    named = study_from_workspace(office.workspace, TAXONOMY, annotators=["ann", judge])
    assert named.verdicts[judge, "t1", MODE] is ABSENT
    assert agreement_report(named)["modes"]["1.3"]["n"] == 1


def test_a_judge_is_not_measured_on_the_examples_in_its_prompt(office: Office) -> None:
    judge = "judge:small@12ab34cd"
    settings = RunSettings("small", "12ab34cd", "localhost", examples=("t1",))
    office.workspace.add_annotator(judge, AnnotatorKind.JUDGE)
    run = office.workspace.start_run(judge, TAXONOMY.ref, settings=settings)
    for trace in ("t1", "t2"):
        store_judgement(
            office.workspace,
            judge=judge,
            taxonomy=TAXONOMY.ref,
            trace_id=trace,
            looks_at=[MODE],
            findings=[],
            run_id=run,
        )
    study = study_from_workspace(office.workspace, TAXONOMY, annotators=["ann", judge])
    report = agreement_report(study)
    assert study.finished[judge] == {"t2"}
    assert report["modes"]["1.3"]["n"] == 1
    assert report["traces"]["examples_left_out"] == {judge: 1}
    assert any(f"{judge} 1 traces" in line for line in render_table(report))


def test_traces_and_people_can_be_named(office: Office) -> None:
    office.start("cat", "t1")
    study = study_from_workspace(
        office.workspace, TAXONOMY, annotators=["bob", "cat"], traces=frozenset({"t2"})
    )
    assert study.annotators == ("bob", "cat")
    assert study.finished == {"bob": {"t2"}, "cat": frozenset()}
    report = agreement_report(study)
    assert report["pooled"]["raw_agreement"] == {"value": None, "undefined": "single_rater"}


def test_the_report_follows(office: Office) -> None:
    first = agreement_report(study_from_workspace(office.workspace, TAXONOMY))
    last = agreement_report(study_from_workspace(office.workspace, TAXONOMY, which="last"))
    assert first["taxonomy"] == TAXONOMY.ref
    assert first["modes"]["1.3"]["raw_agreement"]["value"] == 0.5
    assert last["modes"]["1.3"]["cohen_kappa"]["value"] == 1.0


def test_a_name_that_nobody_has_is_refused_with_those_that_are_known(office: Office) -> None:
    with pytest.raises(WorkspaceError, match=r"'bop'.*ann, bob"):
        study_from_workspace(office.workspace, TAXONOMY, annotators=["bop"])


def test_imported_annotators_are_compared_where_nobody_labelled_here() -> None:
    office = Office()
    for name in ("paper-1", "paper-2"):
        office.workspace.add_annotator(name, AnnotatorKind.IMPORTED)
        office.finish(name, at(3))
    assert study_from_workspace(office.workspace, TAXONOMY).annotators == ("paper-1", "paper-2")
    office.finish("ann", at(3))
    assert study_from_workspace(office.workspace, TAXONOMY).annotators == ("ann",)
