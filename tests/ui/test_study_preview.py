"""What a study comes to before it is set up, in words."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from mast_tui.session import check_changes, count_reassigned_traces
from mast_tui.study import Study, assigned
from mast_tui.traces.model import Trace
from mast_tui.ui.study.setup import (
    EFFECTS,
    assignment_text,
    effect_lines,
    preview_text,
    trace_selections,
)
from tests.session.build import put, span
from tests.session.studies import Class, study_of
from tests.ui.office import Office
from tests.workspace.build import MODES

TRACES = tuple(f"t{number:02}" for number in range(12))


def test_it_says_who_labels_how_much() -> None:
    study = study_of(TRACES, overlap=0.5, withheld=0.25, retests=0.2)
    lines = assignment_text(None, study).splitlines()
    assert lines[0] == "12 traces: 6 labelled by each of them, 6 by one."
    for name, line in zip(study.annotators, lines[1:], strict=True):
        assert line.startswith(f"{name:<5}  {len(assigned(study, name))} traces · 6 with others")
        assert "without suggestions" in line
        assert "repeat" in line


def test_what_each_labels_begins_in_the_same_cell() -> None:
    study = study_of(TRACES, annotators=("ann", "李明明"))
    *_, ann, other = assignment_text(None, study).splitlines()
    assert ann.startswith("ann     12 traces")
    assert other.startswith("李明明  12 traces")


def test_of_a_change_it_says_from_how_many_to_how_many() -> None:
    before = study_of(TRACES, per_trace=1)
    words = assignment_text(before, study_of(TRACES))
    assert "alice  6 → 12 traces" in words


def test_every_part_of_the_protocol_says_what_it_does_to_work() -> None:
    before = study_of(TRACES)
    values: dict[str, object] = {
        "blind": True,
        "withheld": 0.5,
        "retests": 0.5,
        "open_modes": "leave",
        "judge_first": True,
        "names_hidden": False,
        "boundaries": True,
        "reasons": True,
    }
    assert values.keys() == EFFECTS.keys()
    for field, value in values.items():
        after = replace(before, **{field: value})
        assert effect_lines(before, after, {}) == [EFFECTS[field]]
        assert "Who labels what stays as it is." not in assignment_text(before, after)
        assert EFFECTS[field] in preview_text(before, after)


def test_who_has_begun_what_is_dealt_to_others_is_told() -> None:
    set_up = Class(traces=4)
    put(set_up.open("t00"), MODES[0], span(0))
    after = replace(set_up.study, annotators=("bob", "carol"))
    assert count_reassigned_traces(set_up.workspace, after) == {"alice": 1}
    words = preview_text(set_up.study, after, lost_traces={"alice": 1})
    assert "alice has begun 1 trace that would no longer be theirs." in words
    assert "The traces are assigned again" in words
    check_changes(set_up.workspace, after)


def test_the_same_study_changes_nothing() -> None:
    assert preview_text(study_of(TRACES), study_of(TRACES)) == "Nothing changes."


def test_what_a_study_can_be_about(tmp_path: Path) -> None:
    office = Office(tmp_path / "set")
    library: list[Trace] = [office.trace(name) for name in ("one", "two", "three")]
    ids = sorted(trace.identity.trace_id for trace in library)
    (whole,) = trace_selections(library, ids, ids[:1], None)
    assert whole.title == "the library (3)"
    _, few, known = trace_selections(library, ids[:1], [*ids, "elsewhere"], None)
    assert (few.title, few.ids) == ("listed there (1)", (ids[0],))
    assert [trace.identity.trace_id for trace in few.traces] == ids[:1]
    assert (known.title, known.traces) == ("all that is known (4)", ())
    before: Study = study_of(("x",))
    assert trace_selections(library, ids, [], before)[0].title == "as they are (1)"
    assert trace_selections([], [], [], None) == ()
