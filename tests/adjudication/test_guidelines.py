"""Pages of modes: guidelines, decided cases, and their readers."""

from __future__ import annotations

import json

import pytest

from mast_tui.adjudication import (
    Adjudication,
    AdjudicationError,
    GuidelineBook,
    guidelines_document,
    mode_page,
)
from mast_tui.adjudication.conflicts import choice_of_side
from mast_tui.labels import PassKind
from tests.adjudication.annotated_workspace import TAXONOMY, AnnotatedWorkspace
from tests.gold.build import ABSENT, MODE, OTHER, order, target


@pytest.fixture
def annotated() -> AnnotatedWorkspace:
    """Two traces on which ann and bob differ, the first also finished by dan."""
    annotated = AnnotatedWorkspace("t1", "t2")
    for trace in ("t1", "t2"):
        annotated.finish("ann", target(3), trace=trace)
        annotated.finish("bob", value=ABSENT, trace=trace)
    annotated.finish("dan", value=ABSENT, trace="t1")
    return annotated


def decide(annotated: AnnotatedWorkspace, trace: str, reason: str = "") -> None:
    work = Adjudication(annotated.workspace, TAXONOMY, trace, "ann", order=order)
    (conflict,) = work.gold.conflicts
    work.decide(conflict, choice_of_side(conflict, "ann"), reason=reason)


def book(annotated: AnnotatedWorkspace, annotator: str = "ann") -> GuidelineBook:
    return GuidelineBook(annotated.workspace, TAXONOMY, annotator)


def texts(annotated: AnnotatedWorkspace, mode: str = MODE) -> list[str]:
    return [
        guideline.text for guideline in mode_page(annotated.workspace, TAXONOMY, mode).guidelines
    ]


def test_page_has_definition_guidelines_and_decided_cases(annotated: AnnotatedWorkspace) -> None:
    decide(annotated, "t2", "the same call twice is enough")
    decide(annotated, "t1")
    guideline = book(annotated).write(MODE, "Twice is enough", trace_id="t2", item=MODE)
    page = mode_page(annotated.workspace, TAXONOMY, MODE)
    assert page.mode.name == "Step repetition"
    assert page.guidelines == (guideline,)
    assert [(case.trace_id, case.decision.reason) for case in page.cases] == [
        ("t2", "the same call twice is enough"),
        ("t1", ""),
    ]
    assert mode_page(annotated.workspace, TAXONOMY, OTHER).cases == ()
    with pytest.raises(KeyError):
        mode_page(annotated.workspace, TAXONOMY, "no_such_mode")


def test_reader_sees_all_guidelines_and_cases_of_finished_traces(
    annotated: AnnotatedWorkspace,
) -> None:
    decide(annotated, "t1")
    decide(annotated, "t2")
    book(annotated).write(MODE, "Twice is enough", trace_id="t2", item=MODE)
    page = mode_page(annotated.workspace, TAXONOMY, MODE, reader="dan")
    assert [case.trace_id for case in page.cases] == ["t1"]
    assert page.hidden == 1
    (guideline,) = page.guidelines
    assert (guideline.text, guideline.trace_id, guideline.item) == ("Twice is enough", None, None)
    nobody = mode_page(annotated.workspace, TAXONOMY, MODE, reader="eve")
    assert (nobody.cases, nobody.hidden, len(nobody.guidelines)) == ((), 2, 1)
    seen = mode_page(annotated.workspace, TAXONOMY, MODE, reader="bob")
    assert seen.guidelines[0].trace_id == "t2"
    annotated.start("dan", "t1", number=2, kind=PassKind.RETEST)
    assert mode_page(annotated.workspace, TAXONOMY, MODE, reader="dan").cases == ()
    annotated.end("dan", "t1", number=2)
    assert len(mode_page(annotated.workspace, TAXONOMY, MODE, reader="dan").cases) == 1


def test_guidelines_are_edited_removed_and_undone_also_by_another(
    annotated: AnnotatedWorkspace,
) -> None:
    mine = book(annotated)
    theirs = book(annotated, "bob")
    guideline = mine.write(MODE, "  Twice is enough ")
    assert texts(annotated) == ["Twice is enough"]
    edited = theirs.edit(guideline.id, "Three times are needed")
    assert (edited.written_by, edited.id) == ("bob", guideline.id)
    assert texts(annotated) == ["Three times are needed"]
    assert theirs.undo(MODE) is not None
    assert texts(annotated) == ["Twice is enough"]
    theirs.take_back(guideline.id)
    assert texts(annotated) == []
    theirs.undo(MODE)
    assert texts(annotated) == ["Twice is enough"]
    theirs.redo(MODE)
    assert texts(annotated) == []
    theirs.undo(MODE)
    # A reopened book can undo what was written before.
    book(annotated).undo(MODE)
    assert texts(annotated) == []
    book(annotated).redo(MODE)
    assert texts(annotated) == ["Twice is enough"]


def test_undo_stays_on_the_page_and_ends(annotated: AnnotatedWorkspace) -> None:
    pages = book(annotated)
    pages.write(MODE, "one")
    pages.write(OTHER, "two")
    pages.undo(MODE)
    assert (texts(annotated), texts(annotated, OTHER)) == ([], ["two"])
    assert pages.undo(MODE) is None
    assert book(annotated, "bob").undo(OTHER) is None


def test_impossible_guidelines_are_refused(annotated: AnnotatedWorkspace) -> None:
    pages = book(annotated)
    with pytest.raises(AdjudicationError, match="no mode"):
        pages.write("no_such_mode", "x")
    with pytest.raises(AdjudicationError, match="must not be empty"):
        pages.write(MODE, "  ")
    with pytest.raises(AdjudicationError, match="no longer exists"):
        pages.edit("gone", "x")


def test_document_is_plain_json_with_every_page(annotated: AnnotatedWorkspace) -> None:
    assert guidelines_document(AnnotatedWorkspace().workspace, TAXONOMY) == {}
    decide(annotated, "t1", "twice")
    book(annotated).write(OTHER, "Only at the very end", trace_id="t1", item=MODE)
    document = json.loads(json.dumps(guidelines_document(annotated.workspace, TAXONOMY)))
    assert list(document) == ["1.3", "3.1"]
    (case,) = document["1.3"]["cases"]
    expected = {"trace": "t1", "value": "present", "reason": "twice", "by": "ann"}
    assert case | expected == case
    assert case["targets"] == [{"span_first": "k3", "span_last": "k3"}]
    (guideline,) = document["3.1"]["guidelines"]
    assert (guideline["text"], guideline["trace"]) == ("Only at the very end", "t1")
