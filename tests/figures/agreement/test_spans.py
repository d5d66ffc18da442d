"""The report on spans: finding, naming, reading, and reasons of undefined figures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mast_tui.figures.agreement.counting import MISSING
from mast_tui.figures.record import Figure
from mast_tui.figures.spans.input import LabelRange, SharedTrace, SpanInput, Stretch, TraceMarks
from mast_tui.figures.spans.report import THRESHOLDS
from mast_tui.taxonomy.model import Mode
from tests.figures.agreement.build_reports import figures_in
from tests.figures.agreement.reference import krippendorff_alpha
from tests.figures.agreement.tables import span_document

MODES = (Mode("a", "1.1", "First", "1"), Mode("b", "1.2", "Second", "1"))
NO_VARIANCE = {"value": None, "undefined": "no_variance"}
NO_OVERLAP = {"value": None, "undefined": "no_overlap"}
SINGLE_RATER = {"value": None, "undefined": "single_rater"}


def reading(
    *marked: tuple[str, LabelRange],
    read: tuple[Stretch, ...] | None = None,
    unanswered: tuple[str, ...] = (),
    unplaced: tuple[str, ...] = (),
) -> TraceMarks:
    """Return the reading of a trace with these marked places."""
    places_by_mode = {
        mode.slug: tuple(span for slug, span in marked if slug == mode.slug) for mode in MODES
    }
    return TraceMarks(
        {mode: places for mode, places in places_by_mode.items() if places},
        read,
        frozenset(unanswered),
        unplaced=frozenset(unplaced),
    )


def study(*traces: Mapping[str, TraceMarks], spans: int = 10) -> SpanInput:
    """Return a study of these readings of traces."""
    names = sorted({name for readings in traces for name in readings})
    return SpanInput(
        taxonomy_ref="small@1",
        modes=MODES,
        annotators=tuple(names),
        pass_label="1",
        traces=tuple(SharedTrace(f"t{i}", spans, by_name) for i, by_name in enumerate(traces)),
        finished={name: sum(name in by_name for by_name in traces) for name in names},
    )


def report(*traces: Mapping[str, TraceMarks], spans: int = 10, rounds: int = 0) -> dict[str, Any]:
    return span_document(study(*traces, spans=spans), rounds=rounds)


NOTHING = reading()
AT_1 = reading(("a", LabelRange(1, 1)))
AT_5 = reading(("a", LabelRange(5, 5)))


def test_finding_counts_places_and_naming_their_modes() -> None:
    first = reading(("a", LabelRange(1, 2)))
    second = reading(("b", LabelRange(1, 2)))
    figures = report({"ann": first, "bob": second})["all"]
    assert figures["finding"]["exact"]["value"] == 1
    assert figures["finding_and_naming"]["exact"]["value"] == 0
    assert figures["finding"]["places"] == figures["finding_and_naming"]["places"] == 2
    # One place under two modes is found once.
    twice = reading(("a", LabelRange(1, 2)), ("b", LabelRange(1, 2)))
    figures = report({"ann": twice, "bob": first})["all"]
    assert figures["finding"]["exact"]["value"] == 1
    assert figures["finding_and_naming"]["exact"]["value"] == pytest.approx(2 / 3)
    missed = report({"ann": first, "bob": NOTHING})["all"]
    assert missed["finding"]["exact"]["value"] == 0


def test_overlap_counts_up_to_its_degree() -> None:
    ann = reading(("a", LabelRange(0, 3)))
    bob = reading(("a", LabelRange(2, 5)))
    overlap = report({"ann": ann, "bob": bob})["all"]["finding"]["overlap"]
    assert [overlap[t]["value"] for t in THRESHOLDS] == [1] * 3 + [0] * 7


def test_places_add_up_over_traces_and_pairs() -> None:
    three = report({"ann": AT_1, "bob": AT_1, "cat": AT_5}, {"ann": AT_5, "bob": AT_5})
    # ann|bob agree twice; ann|cat and bob|cat differ once each.
    assert three["pairs"]["ann|bob"]["finding"]["exact"]["value"] == 1
    assert three["pairs"]["ann|cat"]["traces"] == 1
    assert three["all"]["finding"]["exact"]["value"] == pytest.approx(2 * 2 / 8)


def test_unread_spans_are_left_out_unless_they_are_marked() -> None:
    ann = reading(("a", LabelRange(1, 1)), ("a", LabelRange(8, 8)))
    bob = reading(("a", LabelRange(1, 1)), read=((0, 5),))
    figures = report({"ann": ann, "bob": bob})["all"]
    assert figures["finding"]["exact"]["value"] == 1
    assert (figures["finding"]["places"], figures["finding"]["left_out"]) == (2, 1)
    mode = figures["modes"]["1.1"]
    assert (mode["spans"], mode["spans_left_out"], mode["positions"]) == (5, 5, 5)
    assert mode["krippendorff_alpha"]["value"] == mode["krippendorff_alpha_u"]["value"] == 1
    ann = reading(("a", LabelRange(8, 9)), read=((0, 9),))
    bob = reading(("a", LabelRange(8, 9)), read=((0, 5),))
    figures = report({"ann": ann, "bob": bob})["all"]
    assert figures["modes"]["1.1"]["spans"] == 7
    assert figures["finding"]["exact"]["value"] == 1


def test_unanswered_mode_is_left_out() -> None:
    both = reading(("a", LabelRange(1, 1)), ("b", LabelRange(2, 2)))
    unsure = reading(unanswered=("a",))
    figures = report({"ann": AT_1, "bob": unsure}, {"ann": both, "bob": both})["all"]
    first = figures["modes"]["1.1"]
    second = figures["modes"]["1.2"]
    assert (first["traces"], first["spans"], first["spans_left_out"]) == (1, 10, 10)
    assert (second["traces"], second["spans"], second["spans_left_out"]) == (2, 20, 0)
    assert first["f1"]["exact"]["value"] == 1
    assert first["f1"]["left_out"] == figures["finding"]["left_out"] == 1


def test_unread_spans_separate_units() -> None:
    halves = reading(("a", LabelRange(0, 1)), ("a", LabelRange(4, 5)))
    bob = replace(halves, read=((0, 2), (4, 10)))
    whole = reading(("a", LabelRange(0, 5)))
    assert report({"ann": halves, "bob": bob})["all"]["modes"]["1.1"]["units"] == 4
    figures = report({"ann": whole, "bob": bob})["all"]["modes"]["1.1"]
    assert (figures["units"], figures["positions"]) == (3, 8)
    # One unit of four against its two halves: (0² + 2²) + (2² + 0²), in both directions.
    alpha = figures["krippendorff_alpha_u"]["value"]
    assert alpha is not None
    assert alpha < 1


def test_present_without_a_place_is_left_out_and_counted() -> None:
    with pytest.raises(ValueError, match="cannot be unplaced"):
        reading(("a", LabelRange(1, 1)), unplaced=("a",))
    same = {"ann": AT_1, "bob": AT_1}
    unplaced = {"ann": reading(("a", LabelRange(3, 4))), "bob": reading(unplaced=("a",))}
    figures = report(same, unplaced)["all"]
    mode = figures["modes"]["1.1"]
    for f1 in (figures["finding"], figures["finding_and_naming"], mode["f1"]):
        assert f1["exact"]["value"] == 1
        assert (f1["places"], f1["left_out"]) == (2, 1)
    assert mode["krippendorff_alpha"]["value"] == mode["krippendorff_alpha_u"]["value"] == 1
    assert (mode["traces"], mode["no_places"], figures["no_places"]) == (1, 1, 1)
    assert figures["modes"]["1.2"]["traces"] == 2, "the other mode still counts there"
    # Two others are still compared there.
    traces = [{"ann": AT_1, "bob": AT_1, "cat": AT_1}]
    traces.append({"ann": AT_1, "bob": AT_5, "cat": reading(unplaced=("a",))})
    document = report(*traces)
    assert document["pairs"]["ann|bob"]["finding"]["exact"]["value"] == 0.5
    assert document["pairs"]["ann|cat"]["finding"]["exact"]["value"] == 1
    assert document["all"]["finding"]["exact"]["value"] == pytest.approx(2 * 3 / 8)
    assert document["all"]["modes"]["1.1"]["spans"] == 20


def test_annotator_who_never_marks_places_is_in_no_figure_on_them() -> None:
    # The absences of bob alone would only count against ann.
    traces = [{"ann": AT_1, "bob": reading(unplaced=("a",))}, {"ann": AT_1, "bob": NOTHING}]
    document = report(*traces, rounds=20)
    figures = document["all"]
    for f1 in (figures["finding"], figures["finding_and_naming"]):
        assert f1["exact"] == NO_OVERLAP
        assert (f1["places"], f1["left_out"]) == (0, 2)
    for code in ("1.1", "1.2"):
        mode = figures["modes"][code]
        assert mode["f1"]["exact"] == NO_OVERLAP
        assert mode["krippendorff_alpha"] == mode["krippendorff_alpha_u"] == SINGLE_RATER
    assert figures["no_places"] == 1
    assert document["annotators"]["bob"]["no_places"] == 1
    assert document["annotators"]["bob"]["never_placed"] == ["1.1", "1.2"]
    assert document["annotators"]["ann"]["never_placed"] == []
    # Of one mode without places, the others count.
    ann = reading(("a", LabelRange(1, 1)), ("b", LabelRange(2, 2)))
    bob = reading(("b", LabelRange(2, 2)), unplaced=("a",))
    document = report(
        {"ann": ann, "bob": bob}, {"ann": ann, "bob": replace(bob, unplaced=frozenset())}
    )
    assert document["annotators"]["bob"]["never_placed"] == ["1.1"]
    assert document["all"]["modes"]["1.1"]["f1"]["exact"] == NO_OVERLAP
    assert document["all"]["finding_and_naming"]["exact"]["value"] == 1


def test_undefined_figures_have_their_reason() -> None:
    figures = report({"ann": NOTHING, "bob": NOTHING})["all"]
    mode = figures["modes"]["1.1"]
    for figure in (
        figures["finding"]["exact"],
        figures["finding_and_naming"]["overlap"]["0.5"],
        figures["krippendorff_alpha_u"],
        mode["f1"]["exact"],
        mode["krippendorff_alpha"],
        mode["krippendorff_alpha_u"],
    ):
        assert figure == NO_VARIANCE
    pair = report({"ann": AT_1, "cat": NOTHING}, {"bob": AT_1, "cat": NOTHING})["pairs"]["ann|bob"]
    assert pair["traces"] == 0
    assert pair["finding"]["exact"] == NO_OVERLAP
    assert pair["modes"]["1.1"]["krippendorff_alpha"] == NO_OVERLAP
    assert pair["modes"]["1.1"]["krippendorff_alpha_u"] == NO_OVERLAP
    other_spans = {"ann": reading(read=((0, 5),)), "bob": reading(read=((5, 10),))}
    figures = report(other_spans)["all"]
    assert figures["modes"]["1.1"]["krippendorff_alpha"] == NO_OVERLAP
    assert figures["krippendorff_alpha_u"] == NO_OVERLAP
    for names in (("ann",), ("ann", "bob"), ()):
        alone = replace(study(), annotators=names, finished=dict.fromkeys(names[:1], 3))
        figures = span_document(alone, rounds=10)["all"]
        assert figures["finding"]["exact"] == SINGLE_RATER
        assert figures["krippendorff_alpha_u"] == SINGLE_RATER
        assert figures["modes"]["1.1"]["krippendorff_alpha"] == SINGLE_RATER
    with pytest.raises(ValueError, match="'ann' is named twice"):
        replace(study(), annotators=("ann", "ann"))


def test_document_has_its_traces_readings_and_resamples() -> None:
    ann = TraceMarks({"a": (LabelRange(1, 1),)}, ((0, 4),), whole_trace=2, not_found=1)
    span_input = replace(study({"ann": ann, "bob": reading()}), not_at_hand=3, examples={"bob": 2})
    document = span_document(span_input, rounds=100, seed=4)
    assert document["traces"] == {"compared": 1, "not_at_hand": 3, "examples_left_out": {"bob": 2}}
    assert document["bootstrap"] == {"rounds": 100, "seed": 4, "level": 0.95, "unit": "trace"}
    assert document["annotators"]["ann"] == {
        "traces": 1,
        "reading_recorded": 1,
        "places": 1,
        "whole_trace": 2,
        "not_found": 1,
        "no_places": 0,
        "never_placed": [],
    }
    assert document["annotators"]["bob"]["reading_recorded"] == 0


def test_intervals_contain_the_figure_and_follow_the_seed() -> None:
    same = reading(("a", LabelRange(1, 3)))
    other = reading(("a", LabelRange(2, 6)))
    traces = [{"ann": same, "bob": same if i % 3 else other} for i in range(24)]
    once = report(*traces, rounds=200)
    assert once == report(*traces, rounds=200)
    figures = once["all"]
    mode = figures["modes"]["1.1"]
    for figure in (
        figures["finding"]["exact"],
        mode["krippendorff_alpha"],
        mode["krippendorff_alpha_u"],
        figures["krippendorff_alpha_u"],
    ):
        ci = figure.get("ci")
        value = figure["value"]
        assert ci is not None
        assert value is not None
        assert ci[0] < value < ci[1]
    assert report(*traces)["all"]["finding"]["exact"]["ci"] is None


def test_equal_traces_give_no_interval() -> None:
    ann = reading(("a", LabelRange(1, 3)))
    bob = reading(("a", LabelRange(1, 3)), ("b", LabelRange(5, 5)))
    figures = report(*[{"ann": ann, "bob": bob}] * 5, rounds=50)["all"]
    assert figures["modes"]["1.1"]["f1"]["exact"] == {"value": 1, "ci": None}
    assert figures["modes"]["1.2"]["f1"]["exact"] == {"value": 0, "ci": None}
    assert figures["finding"]["exact"]["ci"] is None


SPANS = 8
NAMES = ("a", "b", "c")


@st.composite
def readings(draw: st.DrawFn) -> TraceMarks:
    def label_range() -> LabelRange:
        first = draw(st.integers(0, SPANS - 1))
        return LabelRange(first, min(SPANS - 1, first + draw(st.integers(0, 3))))

    marked = [(mode.slug, label_range()) for mode in MODES for _ in range(draw(st.integers(0, 2)))]
    unanswered = tuple(
        mode.slug
        for mode in MODES
        if draw(st.integers(0, 5)) == 0 and all(slug != mode.slug for slug, _ in marked)
    )
    ends = sorted(draw(st.sets(st.integers(0, SPANS), min_size=2, max_size=2)))
    read = None if draw(st.booleans()) else ((ends[0], ends[1]),)
    return reading(*marked, read=read, unanswered=unanswered)


@st.composite
def studies(draw: st.DrawFn) -> SpanInput:
    """Draw the readings of several traces by two or three annotators each."""
    traces = [
        {
            name: draw(readings())
            for name in draw(st.sets(st.sampled_from(NAMES), min_size=2, max_size=3))
        }
        for _ in range(draw(st.integers(1, 4)))
    ]
    span_input = study(*traces, spans=SPANS)
    return replace(
        span_input,
        annotators=NAMES,
        finished={name: span_input.finished.get(name, 0) for name in NAMES},
    )


def expanded(span_input: SpanInput, slug: str) -> Figure:
    """Return α over all spans of all traces in one table."""
    columns = []
    for trace in span_input.traces:
        for span in range(trace.spans):
            column = []
            for name in span_input.annotators:
                reading = trace.marks_by_name.get(name)
                by_mode = {} if reading is None else reading.places
                ranges = (p for ranges_of_mode in by_mode.values() for p in ranges_of_mode)
                is_read = reading is not None and (
                    reading.read is None
                    or any(first <= span < after for first, after in reading.read)
                    or any(p.first <= span <= p.last for p in ranges)
                )
                if reading is None or not is_read or slug in reading.unanswered:
                    column.append(MISSING)
                else:
                    places = reading.places.get(slug, ())
                    column.append(int(any(p.first <= span <= p.last for p in places)))
            columns.append(column)
    return krippendorff_alpha(np.array(columns).T)


@settings(max_examples=40)
@given(studies())
def test_any_study_has_alpha_of_all_spans_and_falling_f1_without_nan(drawn: SpanInput) -> None:
    document = span_document(drawn, rounds=2)
    modes = document["all"]["modes"]
    for mode in MODES:
        alpha = modes[mode.code]["krippendorff_alpha"]
        expected = expanded(drawn, mode.slug)
        assert alpha.get("undefined") == expected.undefined
        if expected.value is not None:
            assert alpha["value"] == pytest.approx(expected.value, abs=1e-9)
    for figures in (document["all"], *document["pairs"].values()):
        by_mode = [figures_of_mode["f1"] for figures_of_mode in figures["modes"].values()]
        for f1 in (figures["finding"], figures["finding_and_naming"], *by_mode):
            assert f1["exact"]["value"] == f1["overlap"]["1.0"]["value"]
            values = [f1["overlap"][t]["value"] for t in THRESHOLDS]
            assert values == sorted(values, key=lambda v: -(v or 0))
    json.dumps(document, allow_nan=False)
    for figure in figures_in(document):
        assert figure["value"] is None or figure["value"] <= 1 + 1e-9
        assert (figure["value"] is None) == ("undefined" in figure)
