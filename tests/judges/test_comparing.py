"""Comparison of the verdicts and span ranges of two sides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mast_tui.gold.overlaps import Order
from mast_tui.judges.comparing import Case, Comparison, Mark, PresentSide, Side, compare
from mast_tui.labels import WHOLE_TRACE, Evidence, Finding, Target, VerdictValue
from tests.gold.build import ABSENT, PRESENT, UNSURE

TRACES = ("t1", "t2", "t3")
MODES = ("repetition", "derailment")


def order_of(_trace_id: str) -> Order:
    return int


def span(first: int, last: int | None = None) -> Target:
    return Target(str(first), str(first if last is None else last))


marks = st.builds(
    lambda first, more: Mark(span(first, first + more)), st.integers(0, 9), st.integers(0, 3)
) | st.just(Mark(WHOLE_TRACE))
keys = st.tuples(st.sampled_from(TRACES), st.sampled_from(MODES))
sides = st.builds(
    Side,
    st.dictionaries(keys, st.sampled_from(VerdictValue)),
    st.dictionaries(keys, st.lists(marks, max_size=3).map(tuple)),
)


def compared(first: Side, second: Side) -> Comparison:
    return compare(first, second, TRACES, MODES, order_of)


@given(sides, sides)
def test_each_trace_counts_once_per_mode(first: Side, second: Side) -> None:
    comparison = compared(first, second)
    for counts in comparison.counts:
        assert counts.compared + counts.undecided == len(TRACES)
        assert counts.meet + counts.apart <= counts.both
        outcomes = [case.outcome for case in comparison.cases[counts.mode]]
        assert (
            outcomes.count(PresentSide.BOTH),
            outcomes.count(PresentSide.FIRST),
            outcomes.count(PresentSide.SECOND),
        ) == (counts.both, counts.first, counts.second)
    assert comparison.total.compared == sum(counts.compared for counts in comparison.counts)


@given(sides, sides)
def test_swapping_sides_swaps_outcomes(first: Side, second: Side) -> None:
    swapped = {PresentSide.FIRST: PresentSide.SECOND, PresentSide.SECOND: PresentSide.FIRST}

    def swap(case: Case) -> Case:
        outcome = swapped.get(case.outcome, case.outcome)
        return Case(case.trace_id, case.mode, outcome, case.second, case.first, case.meet)

    forward = compared(first, second)
    backward = compared(second, first)
    for mode in MODES:
        assert {swap(case) for case in forward.cases[mode]} == set(backward.cases[mode])


@given(sides, sides, st.sets(keys))
def test_left_out_traces_are_in_no_count(
    first: Side, second: Side, left_out: set[tuple[str, str]]
) -> None:
    comparison = compare(first, second, TRACES, MODES, order_of, left_out=left_out)
    total = comparison.total
    assert total.compared + total.undecided == len(TRACES) * len(MODES) - len(left_out)
    counted = {(case.trace_id, case.mode) for cases in comparison.cases.values() for case in cases}
    assert not counted & left_out


def compare_reports(
    first: Target | VerdictValue | None, second: Target | VerdictValue | None
) -> Case:
    """Return the case of a trace on which the sides report this of a mode."""
    pair = []
    for report in (first, second):
        key = ("t1", "repetition")
        if isinstance(report, Target):
            pair.append(Side({}, {key: (Mark(report),)}))
        else:
            pair.append(Side({} if report is None else {key: report}))
    comparison = compare(pair[0], pair[1], ["t1"], ["repetition"], order_of)
    return comparison.cases["repetition"][0]


MEETINGS: list[tuple[Target, Target | VerdictValue, PresentSide, bool | None]] = [
    (span(3, 5), span(5, 9), PresentSide.BOTH, True),
    (span(3, 5), span(6, 9), PresentSide.BOTH, False),
    (span(3, 5), WHOLE_TRACE, PresentSide.BOTH, None),
    (span(3), PRESENT, PresentSide.BOTH, None),
    (span(3), ABSENT, PresentSide.FIRST, None),
]


def test_overlapping_places_meet_and_silence_is_undecided() -> None:
    for first, second, outcome, meet in MEETINGS:
        case = compare_reports(first, second)
        assert (case.outcome, case.meet) == (outcome, meet)
    for report in (None, UNSURE):
        annotated = Side({}, {("t1", "repetition"): (Mark(span(3)),)})
        other_side = Side({} if report is None else {("t1", "repetition"): report})
        comparison = compare(annotated, other_side, ["t1"], ["repetition"], order_of)
        assert (comparison.total.undecided, comparison.total.compared) == (1, 0)


def test_differences_come_first() -> None:
    reports: dict[str, tuple[Target | VerdictValue, Target | VerdictValue]] = {
        "a": (span(1), span(1)),
        "b": (span(1), span(7)),
        "c": (ABSENT, span(1)),
        "d": (span(1), ABSENT),
    }

    def side(index: int) -> Side:
        verdicts = {}
        marks_by_key = {}
        for trace_id, both in reports.items():
            report = both[index]
            if isinstance(report, Target):
                marks_by_key[trace_id, "m"] = (Mark(report),)
            else:
                verdicts[trace_id, "m"] = report
        return Side(verdicts, marks_by_key)

    comparison = compare(side(0), side(1), list(reports), ["m"], order_of)
    assert [case.trace_id for case in comparison.cases["m"]] == ["d", "c", "b", "a"]
    assert comparison.total.precision == 2 / 3


# Findings


SOUND = Finding(
    mode="step_repetition",
    first="call_1:call",
    last="call_3:result",
    rationale="#7 is #3 over again, with no change between.",
    confidence=0.8,
    evidence=Evidence(key="call_3:call", quote="kubectl get pods", char_start=12, char_end=28),
)


def test_contradicting_parts_are_refused() -> None:
    for parts in [
        {"confidence": 1.01},
        {"confidence": -0.1},
        {"confidence": float("nan")},
        {"last": None},
        {"evidence": Evidence(key="call_3:call", quote="kubectl get pods", char_start=12)},
    ]:
        not_found = Evidence(key="call_3:call", quote="kubectl get pods")
        assert replace(SOUND, evidence=not_found).evidence == not_found
        with pytest.raises(ValueError, match=r"confidence|quote|range"):
            replace(SOUND, **parts)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ValueError, match="needs a span"):
        Evidence(key=None, quote="kubectl get pods", char_start=12, char_end=28)
