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
from tests.adjudication.office import TAXONOMY, Office
from tests.gold.build import ABSENT, MODE, OTHER, at, order


@pytest.fixture
def office() -> Office:
    """Two traces on which ann and bob differ, the first also finished by dan."""
    office = Office("t1", "t2")
    for trace in ("t1", "t2"):
        office.finish("ann", at(3), trace=trace)
        office.finish("bob", value=ABSENT, trace=trace)
    office.finish("dan", value=ABSENT, trace="t1")
    return office


def decide(office: Office, trace: str, reason: str = "") -> None:
    work = Adjudication(office.workspace, TAXONOMY, trace, "ann", order=order)
    (conflict,) = work.gold.conflicts
    work.decide(conflict, choice_of_side(conflict, "ann"), reason=reason)


def book(office: Office, who: str = "ann") -> GuidelineBook:
    return GuidelineBook(office.workspace, TAXONOMY, who)


def texts(office: Office, mode: str = MODE) -> list[str]:
    return [one.text for one in mode_page(office.workspace, TAXONOMY, mode).guidelines]


def test_page_has_definition_guidelines_and_decided_cases(office: Office) -> None:
    decide(office, "t2", "the same call twice is enough")
    decide(office, "t1")
    made = book(office).write(MODE, "Twice is enough", trace_id="t2", item=MODE)
    page = mode_page(office.workspace, TAXONOMY, MODE)
    assert page.mode.name == "Step repetition"
    assert page.guidelines == (made,)
    assert [(case.trace_id, case.decision.reason) for case in page.cases] == [
        ("t2", "the same call twice is enough"),
        ("t1", ""),
    ]
    assert mode_page(office.workspace, TAXONOMY, OTHER).cases == ()
    with pytest.raises(KeyError):
        mode_page(office.workspace, TAXONOMY, "no_such_mode")


def test_reader_sees_all_guidelines_and_cases_of_finished_traces(office: Office) -> None:
    decide(office, "t1")
    decide(office, "t2")
    book(office).write(MODE, "Twice is enough", trace_id="t2", item=MODE)
    page = mode_page(office.workspace, TAXONOMY, MODE, reader="dan")
    assert [case.trace_id for case in page.cases] == ["t1"]
    assert page.hidden == 1
    (guideline,) = page.guidelines
    assert (guideline.text, guideline.trace_id, guideline.item) == ("Twice is enough", None, None)
    nobody = mode_page(office.workspace, TAXONOMY, MODE, reader="eve")
    assert (nobody.cases, nobody.hidden, len(nobody.guidelines)) == ((), 2, 1)
    seen = mode_page(office.workspace, TAXONOMY, MODE, reader="bob")
    assert seen.guidelines[0].trace_id == "t2"
    office.start("dan", "t1", number=2, kind=PassKind.RETEST)
    assert mode_page(office.workspace, TAXONOMY, MODE, reader="dan").cases == ()
    office.end("dan", "t1", number=2)
    assert len(mode_page(office.workspace, TAXONOMY, MODE, reader="dan").cases) == 1


def test_guidelines_are_edited_removed_and_undone_also_by_another(office: Office) -> None:
    mine = book(office)
    theirs = book(office, "bob")
    made = mine.write(MODE, "  Twice is enough ")
    assert texts(office) == ["Twice is enough"]
    edited = theirs.edit(made.id, "Three times are needed")
    assert (edited.written_by, edited.id) == ("bob", made.id)
    assert texts(office) == ["Three times are needed"]
    assert theirs.undo(MODE) is not None
    assert texts(office) == ["Twice is enough"]
    theirs.take_back(made.id)
    assert texts(office) == []
    theirs.undo(MODE)
    assert texts(office) == ["Twice is enough"]
    theirs.redo(MODE)
    assert texts(office) == []
    theirs.undo(MODE)
    # A reopened book can undo what was written before.
    book(office).undo(MODE)
    assert texts(office) == []
    book(office).redo(MODE)
    assert texts(office) == ["Twice is enough"]


def test_undo_stays_on_the_page_and_ends(office: Office) -> None:
    pages = book(office)
    pages.write(MODE, "one")
    pages.write(OTHER, "two")
    pages.undo(MODE)
    assert (texts(office), texts(office, OTHER)) == ([], ["two"])
    assert pages.undo(MODE) is None
    assert book(office, "bob").undo(OTHER) is None


def test_impossible_guidelines_are_refused(office: Office) -> None:
    pages = book(office)
    with pytest.raises(AdjudicationError, match="no mode"):
        pages.write("no_such_mode", "x")
    with pytest.raises(AdjudicationError, match="must not be empty"):
        pages.write(MODE, "  ")
    with pytest.raises(AdjudicationError, match="no longer exists"):
        pages.edit("gone", "x")


def test_document_is_plain_json_with_every_page(office: Office) -> None:
    assert guidelines_document(Office().workspace, TAXONOMY) == {}
    decide(office, "t1", "twice")
    book(office).write(OTHER, "Only at the very end", trace_id="t1", item=MODE)
    document = json.loads(json.dumps(guidelines_document(office.workspace, TAXONOMY)))
    assert list(document) == ["1.3", "3.1"]
    (case,) = document["1.3"]["cases"]
    expected = {"trace": "t1", "value": "present", "reason": "twice", "by": "ann"}
    assert case | expected == case
    assert case["targets"] == [{"span_first": "k3", "span_last": "k3"}]
    (guideline,) = document["3.1"]["guidelines"]
    assert (guideline["text"], guideline["trace"]) == ("Only at the very end", "t1")
