"""Input of the report on spans from workspaces: places, traces, and readings."""

from __future__ import annotations

from typing import Literal

import pytest

from mast_tui.figures.source.agreement import span_input_from_workspace
from mast_tui.figures.spans.input import LabelRange, SpanInput, TraceMarks
from mast_tui.gold import Order
from mast_tui.labels import WHOLE_TRACE, AnnotatorKind, PassKind
from mast_tui.workspace import Workspace, store_judgement
from mast_tui.workspace.records import RunSettings
from tests.adjudication.annotated_workspace import TAXONOMY, THIRD, AnnotatedWorkspace
from tests.figures.agreement.tables import span_document
from tests.gold.build import ABSENT, MODE, OTHER, UNSURE, order, quote, target
from tests.session.build import Desk, put, span
from tests.workspace.build import MAST, MODES, TRACE, trace_of

SPANS = 9


def order_of(_trace_id: str) -> tuple[Order, int]:
    return order, SPANS


def input_of(annotated: AnnotatedWorkspace, *annotators: str, **changes: object) -> SpanInput:
    names = annotators or ("ann", "bob")
    options = {"order_of": order_of, **changes}
    return span_input_from_workspace(annotated.workspace, TAXONOMY, names, **options)  # type: ignore[arg-type]


def readings(study: SpanInput) -> dict[tuple[str, str], TraceMarks]:
    return {(t.trace_id, name): r for t in study.traces for name, r in t.marks_by_name.items()}


def test_labels_become_places_and_others_are_counted() -> None:
    annotated = AnnotatedWorkspace()
    annotated.finish("ann", target(2, 4), quote(6, 1, "pods"), WHOLE_TRACE)
    annotated.finish("bob", target(4, 2), target(3), value=None)
    by_key = readings(input_of(annotated, length_of=lambda trace, key: 8))
    quoted = LabelRange(6, 6, (1, 5), 8)
    assert by_key["t1", "ann"].places == {MODE: (LabelRange(2, 4), quoted)}
    assert by_key["t1", "ann"].whole_trace == 1
    assert by_key["t1", "bob"].places == {MODE: (LabelRange(2, 4), LabelRange(3, 3))}

    def lost(key: str) -> int | None:
        return None if key == "k3" else order(key)

    by_key = readings(input_of(annotated, order_of=lambda trace: (lost, SPANS)))
    assert by_key["t1", "bob"].not_found == 1
    assert by_key["t1", "bob"].places == {MODE: (LabelRange(2, 4),)}


def test_label_on_the_whole_trace_alone_is_no_place() -> None:
    annotated = AnnotatedWorkspace("t1", "t2", "t3")
    annotated.finish("ann", target(2), trace="t1")
    annotated.finish("bob", WHOLE_TRACE, trace="t1")
    for name in ("ann", "bob"):
        annotated.finish(name, target(2), WHOLE_TRACE, trace="t2")
    annotated.finish("ann", target(2), trace="t3")
    annotated.finish("bob", value=ABSENT, trace="t3")
    study = input_of(annotated)
    unplaced = {trace: readings(study)[trace, "bob"].unplaced for trace in ("t1", "t2", "t3")}
    assert unplaced == {"t1": {MODE}, "t2": frozenset(), "t3": frozenset()}
    figures = span_document(study, rounds=0)["all"]
    # Both places of t2 meet, the one of t3 meets none, and that of t1 does not count.
    assert figures["finding"]["exact"]["value"] == pytest.approx(2 / 3)
    assert figures["no_places"] == 1


def test_places_are_those_of_the_named_pass() -> None:
    annotated = AnnotatedWorkspace()
    annotated.finish("ann", target(2))
    annotated.finish("bob", target(7))
    annotated.finish("bob", target(2), number=2, kind=PassKind.SECOND_LOOK)
    annotated.finish("bob", target(8), number=3, kind=PassKind.RETEST)
    first = input_of(annotated)
    last = input_of(annotated, which="last")
    assert readings(first)["t1", "bob"].places == {MODE: (LabelRange(7, 7),)}
    assert readings(last)["t1", "bob"].places == {MODE: (LabelRange(2, 2),)}
    assert (first.pass_label, last.pass_label) == ("1", "last")


def test_only_visible_traces_with_files_that_two_have_finished_are_compared() -> None:
    annotated = AnnotatedWorkspace("t1", "t2", "t3", "t4")
    for trace in ("t1", "t2", "t3"):
        annotated.finish("ann", target(1), trace=trace)
    for trace in ("t2", "t3"):
        annotated.finish("bob", target(1), trace=trace)
    annotated.start("bob", "t1")
    asked: list[str] = []

    def order_of_t2(trace_id: str) -> tuple[Order, int] | None:
        asked.append(trace_id)
        return (order, SPANS) if trace_id == "t2" else None

    study = input_of(annotated, order_of=order_of_t2)
    assert asked == ["t2", "t3"]
    assert [trace.trace_id for trace in study.traces] == ["t2"]
    assert study.not_at_hand == 1
    assert study.finished == {"ann": 3, "bob": 2}
    assert span_document(study, rounds=0)["traces"] == {"compared": 1, "not_at_hand": 1}
    visible = input_of(annotated, traces=frozenset({"t3"}))
    assert [trace.trace_id for trace in visible.traces] == ["t3"]


def test_judge_is_not_compared_on_examples_of_its_prompt() -> None:
    judge = "judge:small@12ab34cd"
    annotated = AnnotatedWorkspace("t1", "t2")
    settings = RunSettings("small", "12ab34cd", "localhost", examples=("t1",))
    annotated.workspace.add_annotator(judge, AnnotatorKind.JUDGE)
    run = annotated.workspace.start_run(judge, TAXONOMY.ref, settings=settings)
    for trace in ("t1", "t2"):
        annotated.finish("ann", target(1), trace=trace)
        store_judgement(
            annotated.workspace, judge=judge, taxonomy=TAXONOMY.ref, trace_id=trace,
            looks_at=[MODE], findings=[], run_id=run,
        )  # fmt: skip
    study = input_of(annotated, "ann", judge)
    assert [trace.trace_id for trace in study.traces] == ["t2"]
    assert study.examples == {judge: 1}
    assert readings(study)["t2", judge].unanswered == {OTHER, THIRD}


def test_unrecorded_reading_answers_for_modes_with_a_verdict() -> None:
    annotated = AnnotatedWorkspace()
    annotated.finish("ann", target(2), other_verdicts={OTHER: UNSURE})
    annotated.finish("bob")
    by_key = readings(input_of(annotated))
    assert by_key["t1", "ann"].read is None
    assert by_key["t1", "ann"].unanswered == {OTHER}
    assert by_key["t1", "bob"].unanswered == {MODE}


def input_of_desk(desk: Desk) -> SpanInput:
    def order_of_desk(_trace: str) -> tuple[Order, int]:
        return desk.trace.index_of, len(desk.trace)

    return span_input_from_workspace(desk.workspace, MAST, ("alice", "bob"), order_of=order_of_desk)


@pytest.mark.parametrize("open_modes", ["leave", "absent"])
def test_only_read_spans_of_judged_modes_count(open_modes: Literal["leave", "absent"]) -> None:
    desk = Desk.set_up()
    alice = desk.open("alice", blind=True)
    bob = desk.open("bob", blind=True)
    put(alice, MODES[0], span(1))
    put(bob, MODES[0], span(4))
    put(bob, MODES[1], span(1))
    alice.mark_read(["k0"], [range(1, 3)])
    bob.mark_read([f"k{i}" for i in range(5)])
    for session in (alice, bob):
        session.finish(open_modes=open_modes)
    study = input_of_desk(desk)
    by_key = readings(study)
    assert by_key[TRACE, "alice"].read == ((0, 3),)
    assert by_key[TRACE, "bob"].read == ((0, 5),)
    figures = span_document(study, rounds=0)["all"]
    assert figures["finding"]["left_out"] == (2 if open_modes == "leave" else 1)
    mode = figures["modes"][MAST.modes[0].code]
    assert (mode["spans"], mode["spans_left_out"]) == (3, 2)


def test_read_range_counts_with_all_spans_between_its_ends() -> None:
    trace = trace_of(*(f"step {number}" for number in range(40)))
    desk = Desk(Workspace.open(":memory:"), trace)
    alice = desk.open("alice", blind=True)
    bob = desk.open("bob", blind=True)
    alice.mark_read([], [range(2, 35)])
    for session in (alice, bob):
        put(session, MODES[0], span(1))
        session.finish(open_modes="absent")
    study = input_of_desk(desk)
    by_key = readings(study)
    assert by_key[TRACE, "alice"].read == ((2, 35),)
    assert by_key[TRACE, "bob"].read == ()
    assert span_document(study, rounds=0)["all"]["modes"][MAST.modes[0].code]["spans"] == 1
