"""A study on the screen: bars, rows, and what was set up in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from mast_tui.session import set_study
from mast_tui.study import Study
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.study.screen import (
    Overlap,
    StudyView,
    bar,
    progress_text,
    protocol_text,
    study_view,
    table_columns,
    table_rows,
)
from mast_tui.workspace import Workspace
from tests.session.studies import Class
from tests.ui.office import Office
from tests.workspace.build import MAST, MODES


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 500), st.integers(2, 60))
def test_a_bar_shows_what_there_is_and_looks_full_only_when_it_is(
    done: int, begun: int, rest: int, cells: int
) -> None:
    drawn = bar(done, begun, done + begun + rest, cells)
    assert len(drawn) == cells
    assert list(drawn) == sorted(drawn, key="█▒·".index)
    total = done + begun + rest
    assert ("█" * cells == drawn) == (done == total > 0)
    if cells >= 3:
        assert ("█" in drawn) == (done > 0)
        assert ("▒" in drawn) == (begun > 0)
        assert ("·" in drawn) == (rest > 0 or not total)


def seen_by(room: Class, who: str) -> StudyView:
    view = study_view(OpenWorkspace(room.workspace, MAST, who, False))
    assert view is not None
    return view


def shown(view: StudyView, me: str, *titles: str) -> list[tuple[str, ...]]:
    """The cells under some headings, by row."""
    columns = {column.title: column for column in table_columns(view, me)}
    return [tuple(columns[title].cell(row) for title in titles) for row in table_rows(view)]


def counts(view: StudyView) -> tuple[str, ...]:
    """The numbers of alice."""
    return shown(view, "", "assigned", "finished", "left")[0]


def test_an_annotator_sees_how_far_all_are_and_nothing_of_what_others_say_or_what_comes_back() -> (
    None
):
    room = Class(12, retests=0.2)
    room.finish(*room.order()[:11], mode=MODES[0])
    room.finish(*room.order()[:2], annotator="bob")
    mine, theirs = seen_by(room, "alice"), seen_by(room, "carol")
    assert mine.conflicts is None
    assert theirs.conflicts == 2
    assert mine.overlap == theirs.overlap == Overlap(12, 2, 9)
    assert shown(mine, "alice", "repeat") == [("",)] * 3
    assert shown(theirs, "carol", "repeat") == [("0 of 2",), ("0 of 2",), ("",)]
    assert len(mine.progress[0].retests.due) == 1
    # What is to be labelled once more is to its annotator a trace that is not finished.
    assert counts(mine) == ("12", "10", "2")
    assert counts(theirs) == ("12", "11", "1")
    assert "conflict" not in progress_text(mine) + protocol_text(mine, "A")
    assert "2 conflicts left" in progress_text(theirs)
    assert "A opens them" in protocol_text(theirs, "A")


def test_without_a_study_there_is_no_view() -> None:
    room = Class(1)
    assert study_view(OpenWorkspace(room.workspace, MAST, "alice", False)) is not None
    room.workspace.study = lambda taxonomy: None  # type: ignore[method-assign]
    assert study_view(OpenWorkspace(room.workspace, MAST, "alice", False)) is None


def test_what_was_set_up_is_told_in_sentences() -> None:
    study = Study("mast@1", ("alice", "bo\x1bb"), ("carol",), (("t1", "t2"), ("t3",)))
    view = StudyView(study, (), Overlap(3, 0, 0), False, None)
    words = protocol_text(view, "A")
    assert "3 traces in 2 lots" in words
    assert "\x1b" not in words
    assert "carol decides" in words
    assert "work blind" in words
    assisted = structs.replace(study, blind=False, withheld=0.25, retests=0.1)
    words = protocol_text(replace(view, study=assisted), "A")
    assert "on 25% of each annotator's traces" in words
    assert "10% of each annotator's finished traces repeat" in words
    alone = structs.replace(study, per_trace=1, annotators=("alice",))
    words = protocol_text(replace(view, study=alone, overlap=Overlap(0, 0, 0)), "A")
    assert "carol" not in words
    assert "by one of them" in words


def test_places_that_overlap_are_not_left_to_decide(tmp_path: Path) -> None:
    office = Office(tmp_path / "set")
    office.label("alice", "one", {"1.3": (3, 6), "3.1": (2, 3)})
    office.label("bob", "one", {"1.3": (4, 8), "3.1": (7, 8)})
    store = Workspace.open(office.workspace)
    study = Study(MAST.ref, ("alice", "bob"), batches=((office.trace_id(store, "one"),),))
    set_study(store, "carol", study)
    opened = OpenWorkspace(store, MAST, "carol", False)
    seen = study_view(opened, [office.trace("one")])
    quick = study_view(opened, count_conflicts=False)
    store.close()
    assert seen is not None
    assert quick is not None
    assert seen.conflicts == 1  # where 3.1 shows
    assert quick.conflicts is None


def test_whoever_runs_the_study_sees_all_shares_and_an_annotator_their_own() -> None:
    room = Class(12, overlap=0.5, withheld=0.25)

    def shares(who: str) -> list[tuple[str, ...]]:
        return shown(seen_by(room, who), who, "with others", "without suggestions")

    assert shares("carol") == [("6", "2"), ("6", "2"), ("", "")]
    assert shares("alice") == [("6", "2"), ("", ""), ("", "")]
