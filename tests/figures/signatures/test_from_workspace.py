"""Input of signatures from workspaces: verdicts, places, groups, and outcomes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.adjudication import read_work_by_trace
from mast_tui.adjudication.for_signatures import gold_of
from mast_tui.figures.signatures.model import (
    FAILED,
    NO_VALUE,
    OPEN,
    SUCCEEDED,
    UNKNOWN,
    UNRESOLVED,
    SignatureInput,
)
from mast_tui.figures.signatures.report import trend_axis
from mast_tui.figures.source.signatures import input_from_workspace
from mast_tui.figures.source.verdicts import FLAGS
from mast_tui.gold import Decision, GoldTrace, GoldVerdict, Order
from mast_tui.gold.model import GoldMixJson, gold_mix, only_settled, source_if_counted
from mast_tui.labels import WHOLE_TRACE, AnnotatorKind, Finding, PassKind, Target, VerdictValue
from mast_tui.traces.model import Outcome
from mast_tui.workspace import NewEvent, TraceRecord, WorkspaceError, store_judgement
from mast_tui.workspace.events.types import Decided, PassStarted
from tests.adjudication.annotated_workspace import TAXONOMY, THIRD, AnnotatedWorkspace
from tests.figures.signatures.build_input import document_of
from tests.gold.build import ABSENT, MODE, OTHER, PRESENT, UNSURE, order, target

JUDGE = "judge:rules@1"
TRACES = ("t1", "t2")


def read(annotated: AnnotatedWorkspace, labels: str = "gold", **options: object) -> SignatureInput:
    """Return the input of a report on the labels of the workspace."""

    def order_of(_trace: str) -> Order:
        return order

    gold = gold_of(annotated.workspace, TAXONOMY, order_of)
    return input_from_workspace(
        annotated.workspace,
        TAXONOMY,
        labels=labels,
        gold=gold,
        order_of=order_of,
        **options,  # type: ignore[arg-type]
    )


def verdicts(signatures: SignatureInput, trace: str) -> dict[str, int]:
    row = signatures.verdicts[signatures.traces.index(trace)].tolist()
    return {mode.slug: cell for mode, cell in zip(signatures.modes, row, strict=True)}


def decide(
    annotated: AnnotatedWorkspace, trace: str, value: VerdictValue, *targets: Target
) -> None:
    """Record a decision of an adjudicator on the first mode."""
    decision = Decision(MODE, MODE, value, targets, (), (), "judy", "2026-01-01T00:00:00Z")
    annotated.start("judy", trace, number=9, kind=PassKind.ADJUDICATION)
    annotated.workspace.append(
        [NewEvent("judy", trace, TAXONOMY.ref, 9, Decided(MODE, None, decision))]
    )


def mix_of(golds: dict[str, GoldTrace], settled_only: bool) -> GoldMixJson:
    """Return the mix of sources counted over whole gold traces."""
    return gold_mix(
        {t: [s for v in g.verdicts if (s := source_if_counted(v))] for t, g in golds.items()},
        {name for g in golds.values() for v in g.verdicts for name in v.sides},
        settled_only=settled_only,
        not_in_study={},
        merged=sum(label.merged for gold in golds.values() for label in gold.labels),
    )


def cell(verdict: GoldVerdict) -> int:
    if verdict.value is not None:
        return FLAGS[verdict.value]
    return UNRESOLVED if source_if_counted(verdict) else OPEN


values = st.sampled_from([PRESENT, ABSENT, UNSURE, None])
targets = st.lists(
    st.one_of(st.just(WHOLE_TRACE), st.tuples(st.integers(0, 6), st.integers(0, 3))),
    max_size=2,
    unique_by=str,  # the app and imports refuse the same label twice
).map(lambda drawn: [t if isinstance(t, Target) else target(t[0], t[0] + t[1]) for t in drawn])


@given(st.data())
@settings(max_examples=12, deadline=None)
def test_gold_in_columns_is_the_gold_of_every_trace(data: st.DataObject) -> None:
    annotated = AnnotatedWorkspace(*TRACES)
    for trace in TRACES:
        for name in ("ann", "bob", "cat"):
            if data.draw(st.booleans()):
                value = data.draw(values)
                places = data.draw(targets) if value in (None, PRESENT) else []
                unsure_or_absent = {OTHER: data.draw(st.sampled_from([ABSENT, UNSURE]))}
                value = None if places or value is PRESENT else value
                annotated.finish(
                    name, *places, trace=trace, value=value, other_verdicts=unsure_or_absent
                )
        if data.draw(st.booleans()):
            decide(annotated, trace, data.draw(st.sampled_from([PRESENT, ABSENT])), target(2))
    signatures = read(annotated)
    work_by_trace = read_work_by_trace(annotated.workspace, TAXONOMY)
    assert set(signatures.traces) == work_by_trace.keys()
    expected = set()
    for trace, work in work_by_trace.items():
        gold = work.gold(TAXONOMY, order)
        assert verdicts(signatures, trace) == {v.mode: cell(v) for v in gold.verdicts}
        expected |= {
            (trace, label.mode, order(label.target.first), order(label.target.last))
            for label in gold.labels
            if label.target.first is not None and label.target.last is not None
        }
    golds = {t: w.gold(TAXONOMY, order) for t, w in work_by_trace.items()}
    assert signatures.gold == mix_of(golds, False)
    settled = read(annotated, which="settled")
    all_settled = {t: only_settled(gold) for t, gold in golds.items()}
    settled_golds = {
        t: gold for t, gold in all_settled.items() if any(map(source_if_counted, gold.verdicts))
    }
    assert set(settled.traces) == settled_golds.keys()
    for trace, gold in settled_golds.items():
        assert verdicts(settled, trace) == {v.mode: cell(v) for v in gold.verdicts}
    for counted, by_trace in ((settled, settled_golds), (signatures, golds)):
        unplaced = counted.whole_trace_labels + counted.labels_on_unknown_spans
        labels = sum(len(gold.labels) for gold in by_trace.values())
        assert len(counted.places.trace) + unplaced == labels
    assert settled.gold is not None
    assert settled.gold["sources"] == mix_of(settled_golds, True)["sources"]
    at_spans = signatures.places
    columns = zip(at_spans.trace, at_spans.mode, at_spans.first, at_spans.last, strict=True)
    assert {
        (signatures.traces[trace], signatures.modes[mode].slug, first, last)
        for trace, mode, first, last in columns
    } == expected


def test_last_finished_pass_of_a_person_counts() -> None:
    annotated = AnnotatedWorkspace(*TRACES)
    annotated.finish("ann", target(3))
    annotated.finish("ann", value=ABSENT, number=2, kind=PassKind.SECOND_LOOK)
    annotated.start("ann", number=3, kind=PassKind.SECOND_LOOK)
    annotated.mark("ann", target(1), number=3)
    annotated.start("ann", "t2")
    signatures = read(annotated, "ann")
    assert signatures.traces == ("t1",)
    assert verdicts(signatures, "t1")[MODE] == FLAGS[ABSENT]
    assert len(signatures.places.trace) == 0
    assert (signatures.label_source_kind, signatures.unfinished) == ("human", 1)


def test_judge_has_verdicts_only_on_modes_that_it_looks_at() -> None:
    annotated = AnnotatedWorkspace(*TRACES)
    annotated.workspace.add_annotator(JUDGE, AnnotatorKind.JUDGE)
    store_judgement(
        annotated.workspace,
        judge=JUDGE,
        taxonomy=TAXONOMY.ref,
        trace_id="t1",
        looks_at=[MODE, OTHER],
        findings=[Finding(MODE, "k4", "k5", "why", 0.5, decisive=True)],
    )
    annotated.start(JUDGE, "t2")
    signatures = read(annotated, JUDGE)
    report = document_of(signatures, rounds=0)
    assert report["traces"]["unfinished"] == 1
    assert "1 trace that the annotator has begun but not finished" in report["cannot_say"][0]
    # A name within a sentence would not be replaced by a pseudonym.
    nothing = document_of(read(annotated, JUDGE, traces=frozenset({"t2"})), rounds=0)
    assert not [sentence for sentence in nothing["cannot_say"] if JUDGE in sentence]
    assert signatures.traces == ("t1",)
    assert verdicts(signatures, "t1") == {MODE: FLAGS[PRESENT], OTHER: FLAGS[ABSENT], THIRD: OPEN}
    assert signatures.places.first.tolist() == [4]
    assert signatures.places.fatal.tolist() == [True]
    assert read(annotated).traces == ()


def test_outcome_follows_the_score_on_request() -> None:
    annotated = label_traces(
        TraceRecord("t1", outcome=Outcome.SUCCEEDED, score=0.4),
        TraceRecord("t2", outcome=Outcome.UNKNOWN, score=0.5),
        TraceRecord("t3", outcome=Outcome.FAILED),
    )
    assert read(annotated).outcome.tolist() == [SUCCEEDED, UNKNOWN, FAILED]
    assert read(annotated, failed_below=0.5).outcome.tolist() == [FAILED, SUCCEEDED, UNKNOWN]


def label_traces(*records: TraceRecord) -> AnnotatedWorkspace:
    """Return an office in which ann has finished these traces."""
    annotated = AnnotatedWorkspace("t0")
    for record in records:
        annotated.workspace.register_trace(record)
        annotated.finish("ann", value=ABSENT, trace=record.trace_id)
    return annotated


def test_traces_are_grouped_by_one_field_with_the_unknown_last() -> None:
    systems = {"t1": "zeta", "t2": None, "t3": "alpha"}
    annotated = label_traces(
        *(TraceRecord(name, system=system) for name, system in systems.items())
    )
    signatures = read(annotated, by="system")
    assert signatures.group_names == ("alpha", "zeta", NO_VALUE)
    assert signatures.group.tolist() == [1, 2, 0]
    assert read(annotated, by="all").group_names == ("all",)
    for by, problem in (
        ("weather", "weather"),
        ("model,model", "twice"),
        ("model,all", "combined"),
        ("model,", "cannot be grouped"),
    ):
        with pytest.raises(WorkspaceError, match=problem):
            read(annotated, by=by)


def test_traces_are_grouped_by_two_fields() -> None:
    fields = [("b", "swe"), ("a", "swe"), ("a", None), ("a", "tau"), ("a", "swe")]
    annotated = label_traces(
        *(
            TraceRecord(f"t{number}", model=model, benchmark=benchmark)
            for number, (model, benchmark) in enumerate(fields, start=1)
        )
    )
    signatures = read(annotated, by="model, benchmark")
    assert signatures.by == "model,benchmark"
    assert signatures.group_names == ("a · swe", "a · tau", f"a · {NO_VALUE}", "b · swe")
    assert signatures.group.tolist() == [3, 0, 2, 1, 0]
    assert signatures.parts(2) == {"model": "a", "benchmark": NO_VALUE}
    assert read(annotated, by="benchmark").parts(0) == {"benchmark": "swe"}
    assert read(annotated, by="all").parts(0) == {}
    # Values that contain the separator make two groups.
    first = TraceRecord("t1", model="a · b", benchmark="c")
    second = TraceRecord("t2", model="a", benchmark="b · c")
    signatures = read(label_traces(first, second), by="model,benchmark")
    assert len(set(signatures.group_names)) == 2
    assert signatures.group.tolist() == [1, 0]


def test_traces_are_grouped_by_versions_and_days() -> None:
    annotated = label_traces(
        TraceRecord("t1", version="1.10", started=1_767_225_599.0),  # the last second of 2025
        TraceRecord("t2", version="1.9", started=1_767_225_600.0),
        TraceRecord("t3"),
        TraceRecord("t4", version="1.9", started=1e300),
    )
    dates = read(annotated, by="date")
    assert dates.group_names == ("2025-12-31", "2026-01-01", NO_VALUE)
    assert dates.group.tolist() == [0, 1, 2, 2]
    assert read(annotated, by="version,date").group_names == (
        "1.10 · 2025-12-31",
        "1.9 · 2026-01-01",
        f"1.9 · {NO_VALUE}",
        f"{NO_VALUE} · {NO_VALUE}",
    )
    axis = trend_axis(read(annotated, by="version"))
    assert axis is not None
    assert axis.groups == ("1.9", "1.10")


def test_tasks_are_those_of_their_benchmark_and_models_are_strata() -> None:
    annotated = label_traces(
        TraceRecord("t1", model="b", benchmark="swe", task="1"),
        TraceRecord("t2", model="a", benchmark="swe", task="1"),
        TraceRecord("t3", benchmark="tau", task="1"),
        TraceRecord("t4", model="a"),
    )
    signatures = read(annotated, by="all")
    assert signatures.task_numbers is not None
    assert signatures.stratum_numbers is not None
    assert signatures.task_numbers.tolist() == [0, 0, 1, -1]
    assert signatures.stratum_numbers.tolist() == [1, 0, -1, 0]
    assert signatures.stratum_names == ("a", "b")


def test_only_visible_traces_are_counted() -> None:
    annotated = AnnotatedWorkspace(*TRACES)
    for trace in TRACES:
        annotated.finish("ann", target(1), trace=trace)
        annotated.finish("bob", value=ABSENT, trace=trace)
        decide(annotated, trace, PRESENT, target(1))
    signatures = read(annotated, traces={"t2"})
    assert signatures.traces == ("t2",)
    assert np.unique(signatures.places.trace).tolist() == [0]


def test_unknown_names_places_and_open_adjudications() -> None:
    annotated = AnnotatedWorkspace()
    annotated.workspace.append(
        [NewEvent("judy", "t1", TAXONOMY.ref, 1, PassStarted(PassKind.BLIND))]
    )
    assert read(annotated).traces == ()
    annotated.finish("ann", target(1), Target("lost1", "lost1"), WHOLE_TRACE)
    signatures = read(annotated)
    counts = (
        len(signatures.places.trace),
        signatures.labels_on_unknown_spans,
        signatures.whole_trace_labels,
    )
    assert counts == (1, 1, 1)
    with pytest.raises(WorkspaceError, match=r"zoe.*gold, ann"):
        read(annotated, "zoe")
