"""A study on the screen: progress, protocol, preview of a change, and the form."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from mast_tui.errors import MastError
from mast_tui.session import check_changes, count_reassigned_traces, earlier_work_text
from mast_tui.study import OpenModes, Study, assigned
from mast_tui.traces.model import Trace
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.study.screen import (
    COLUMNS,
    Overlap,
    StudyView,
    bar,
    progress_text,
    protocol_text,
    study_view,
    table_rows,
)
from mast_tui.ui.study.setup import (
    EFFECTS,
    FIELDS,
    assignment_text,
    effect_lines,
    preview_text,
    share_text,
    texts_of,
    trace_selections,
)
from mast_tui.ui.study.setup import study_of as study_from_texts
from tests.session.build import put, span
from tests.session.studies import Class, study_of
from tests.ui.stage import missing
from tests.ui.team_dir import TeamDir
from tests.workspace.build import MAST, MODES


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 500), st.integers(2, 60))
def test_bars_show_progress(done: int, begun: int, open_count: int, cells: int) -> None:
    drawn = bar(done, begun, done + begun + open_count, cells)
    assert (len(drawn), list(drawn)) == (cells, sorted(drawn, key="█▒·".index))
    total = done + begun + open_count
    assert ("█" * cells == drawn) == (done == total > 0)
    if cells >= 3:
        assert ("█" in drawn) == (done > 0)
        assert ("▒" in drawn) == (begun > 0)
        assert ("·" in drawn) == (open_count > 0 or not total)


def view_of(room: Class, annotator: str) -> StudyView:
    view = study_view(OpenWorkspace(room.workspace, MAST, annotator, False))
    assert view is not None
    return view


def cells_of(view: StudyView, reader: str, *titles: str) -> list[tuple[str, ...]]:
    columns = {column.title: column for column in COLUMNS}
    return [tuple(columns[title].cell(row) for title in titles) for row in table_rows(view, reader)]


def counts(view: StudyView) -> tuple[str, ...]:
    return cells_of(view, "", "assigned", "finished", "left")[0]


def test_annotators_see_progress_without_conflicts_and_later_retests() -> None:
    room = Class(12, retests=0.2)
    room.finish(*room.order()[:11], mode=MODES[0])
    room.finish(*room.order()[:2], annotator="bob")
    mine = view_of(room, "alice")
    theirs = view_of(room, "carol")
    assert mine.conflicts is None
    assert theirs.conflicts == 2
    assert mine.overlap == theirs.overlap == Overlap(12, 2, 9)
    assert cells_of(mine, "alice", "retest") == [("1 to do",), ("",), ("",)]
    assert cells_of(theirs, "carol", "retest") == [("0 of 2",), ("0 of 2",), ("",)]
    assert len(mine.progress[0].retests.due) == 1
    assert counts(mine) == counts(theirs) == ("12", "11", "1")
    assert "conflict" not in progress_text(mine)
    assert "Hidden from annotators: how many" in protocol_text(mine, "A")
    assert "2 conflicts left" in progress_text(theirs)
    assert "A opens them" in protocol_text(theirs, "A")
    room.workspace.study = lambda taxonomy: None  # type: ignore[method-assign]
    assert study_view(OpenWorkspace(room.workspace, MAST, "alice", False)) is None


def test_the_protocol_is_described() -> None:
    study = Study("mast@1", ("alice", "bo\x1bb"), ("carol",), (("t1", "t2"), ("t3",)))
    view = StudyView(study, (), Overlap(3, 0, 0), False, None)
    text = protocol_text(view, "A")
    assert "3 traces in 2 batches" in text
    assert "\x1b" not in text
    assert not missing(text, "carol decides", "work blind")
    assisted = structs.replace(study, blind=False, withheld=0.25, retests=0.1)
    text = protocol_text(replace(view, study=assisted), "A")
    assert "On 25% of each annotator's traces" in text
    assert "10% of each annotator's finished traces have a retest" in text
    alone = structs.replace(study, per_trace=1, annotators=("alice",))
    text = protocol_text(replace(view, study=alone, overlap=Overlap(0, 0, 0)), "A")
    assert "carol" not in text
    assert "by one; each annotator" in text


def test_overlapping_places_are_no_conflicts(tmp_path: Path) -> None:
    team = TeamDir(tmp_path / "set")
    team.label("alice", "one", {"1.3": (3, 6), "3.1": (2, 3)})
    team.label("bob", "one", {"1.3": (4, 8), "3.1": (7, 8)})
    team.set_study(author="carol", adjudicators=())
    with team.store() as store:
        opened = OpenWorkspace(store, MAST, "carol", False)
        seen = study_view(opened, [team.trace("one")])
        quick = study_view(opened, count_conflicts=False)
    assert seen is not None
    assert quick is not None
    assert seen.conflicts == 1  # where 3.1 shows
    assert quick.conflicts is None


def test_annotators_see_their_own_shares() -> None:
    room = Class(12, overlap=0.5, withheld=0.25)

    def shares(annotator: str) -> list[tuple[str, ...]]:
        return cells_of(view_of(room, annotator), annotator, "shared", "without suggestions")

    assert shares("carol") == [("6", "2"), ("6", "2"), ("", "")]
    assert shares("alice") == [("6", "2"), ("", ""), ("", "")]


TRACES = tuple(f"t{number:02}" for number in range(12))


def test_assignments_are_described() -> None:
    study = study_of(TRACES, overlap=0.5, withheld=0.25, retests=0.2)
    lines = assignment_text(None, study).splitlines()
    assert lines[0] == "12 traces: 6 labelled by every annotator, 6 by one."
    for name, line in zip(study.annotators, lines[1:], strict=True):
        assert line.startswith(f"{name:<5}  {len(assigned(study, name))} traces · 6 shared")
        assert not missing(line, "without suggestions", "retest")
    study = study_of(TRACES, annotators=("ann", "李明明"))
    *_, ann, other = assignment_text(None, study).splitlines()
    assert ann.startswith("ann     12 traces")
    assert other.startswith("李明明  12 traces")
    previous = study_of(TRACES, per_trace=1)
    text = assignment_text(previous, study_of(TRACES))
    assert "alice  6 → 12 traces" in text
    assert preview_text(study_of(TRACES), study_of(TRACES)) == "Nothing changes."


def test_changes_of_the_protocol_name_their_effect() -> None:
    previous = study_of(TRACES)
    values: dict[str, object] = {
        "blind": True,
        "withheld": 0.5,
        "retests": 0.5,
        "open_modes": "leave",
        "judge_first": True,
        "names_hidden": False,
        "boundaries": True,
        "reasons": True,
        "redact": True,
    }
    assert values.keys() == EFFECTS.keys()
    for field, value in values.items():
        changed = structs.replace(previous, **{field: value})
        assert effect_lines(previous, changed, {}) == [EFFECTS[field]]
        assert "Who labels what stays as it is." not in assignment_text(previous, changed)
        assert EFFECTS[field] in preview_text(previous, changed)


def test_reassigned_traces_are_counted() -> None:
    set_up = Class(traces=4)
    put(set_up.open("t00"), MODES[0], span(0))
    changed = structs.replace(set_up.study, annotators=("bob", "carol"))
    assert count_reassigned_traces(set_up.workspace, changed) == {"alice": 1}
    text = preview_text(set_up.study, changed, lost_traces={"alice": 1})
    assert "alice has begun 1 trace that would no longer be theirs." in text
    assert "The traces are assigned again" in text
    check_changes(set_up.workspace, changed)
    set_up.finish("t00")
    text = earlier_work_text(set_up.workspace, set_up.study)
    assert "Finished already: alice 1 trace; with suggestions on screen: 0 of 1" in text


def test_selections_of_traces(tmp_path: Path) -> None:
    team = TeamDir(tmp_path / "set")
    library: list[Trace] = [team.trace(name) for name in ("one", "two", "three")]
    ids = sorted(trace.identity.trace_id for trace in library)
    (whole,) = trace_selections(library, ids, ids[:1], None)
    assert whole.title == "in the library (3)"
    _, few, every = trace_selections(library, ids[:1], [*ids, "elsewhere"], None)
    assert (few.title, few.ids) == ("listed in the library (1)", (ids[0],))
    assert [trace.identity.trace_id for trace in few.traces] == ids[:1]
    assert (every.title, every.traces) == ("in the workspace (4)", ())
    previous: Study = study_of(("x",))
    assert trace_selections(library, ids, [], previous)[0].title == "as they are (1)"
    assert trace_selections([], [], [], None) == ()


SHARES = st.floats(0, 1, allow_subnormal=False)

STUDIES = st.builds(
    Study,
    taxonomy=st.just("mast@1"),
    annotators=st.just(("alice", "bob", "Étienne d'A.")),
    adjudicators=st.sampled_from([(), ("carol",), ("carol", "dan")]),
    batches=st.just((("t1", "t2"), ("t3",))),
    per_trace=st.integers(1, 3),
    overlap=SHARES,
    seed=st.integers(-(10**6), 10**12),
    blind=st.just(False),
    withheld=SHARES,
    retests=SHARES,
    open_modes=st.sampled_from(OpenModes),
    **dict.fromkeys(
        ("names_hidden", "judge_first", "boundaries", "reasons", "redact"), st.booleans()
    ),
)


def test_percentages_are_read_as_shares() -> None:
    for percent in range(101):
        texts = {**texts_of(None, ["a", "b"]), "overlap": f"{percent} %"}
        overlap = study_from_texts(texts, taxonomy="mast@1", previous=None).overlap
        assert (overlap, share_text(overlap)) == (percent / 100, f"{percent} %")


@given(STUDIES)
def test_an_unchanged_form_changes_nothing(study: Study) -> None:
    texts = texts_of(study, ())
    assert set(texts) == {field.name for field in FIELDS}
    assert study_from_texts(texts, taxonomy=study.taxonomy, previous=study) == study


def test_forms_are_read() -> None:
    study = study_from_texts(
        texts_of(None, ["alice", "bob"]), taxonomy="mast@1", previous=None, traces=["t1", "t2"]
    )
    assert study == Study("mast@1", ("alice", "bob"), batches=(("t1", "t2"),))
    previous = Study("mast@1", ("alice", "bob"), batches=(("t1",),), reasons=True, boundaries=True)
    texts = {**texts_of(previous, ()), "seed": "7", "sight": "assisted", "withheld": "12.5"}
    changed = study_from_texts(texts, taxonomy="mast@1", previous=previous)
    assert changed == structs.replace(previous, seed=7, blind=False, withheld=0.125)


def test_invalid_fields_are_refused() -> None:
    for field, text, message in (
        ("annotators", " , ", "annotators: a study needs at least one"),
        ("annotators", "judge:x, b", "annotators: "),
        ("annotators", "a", "each trace needs 2 annotators"),
        ("annotators", "a=two", "“a=two” is not a weight"),
        ("annotators", "a, a", "a is listed twice"),
        ("per_trace", "two", "per trace: “two” is not a whole number"),
        ("overlap", "0.5", "overlap: write 0.5 as a percentage"),
        ("overlap", "1", "overlap: write 1 as a percentage"),
        ("overlap", "120 %", "overlap: 120 % is more than 100 %"),
        ("retests", "some", "retest: “some” is not a share"),
        ("withheld", "20 %", "no share of traces can be without"),
        ("seed", "", "seed: “” is not a whole number"),
    ):
        texts = {**texts_of(None, ["a", "b"]), field: text}
        with pytest.raises(MastError, match=re.escape(message)):
            study_from_texts(texts, taxonomy="mast@1", previous=None)
