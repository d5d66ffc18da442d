"""Comparison of two sides' verdicts and places."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mast_tui.gold.overlaps import Order
from mast_tui.judges.comparing import Case, Comparison, Mark, PresentSide, Side, compare
from mast_tui.labels import WHOLE_TRACE, Evidence, Finding, Target, VerdictValue

TRACES = ("t1", "t2", "t3")
MODES = ("repetition", "derailment")
PRESENT, ABSENT, UNSURE = VerdictValue.PRESENT, VerdictValue.ABSENT, VerdictValue.UNSURE


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
    found = compared(first, second)
    for counts in found.counts:
        assert counts.compared + counts.undecided == len(TRACES)
        assert counts.meet + counts.apart <= counts.both
        of = [case.outcome for case in found.cases[counts.mode]]
        assert (
            of.count(PresentSide.BOTH),
            of.count(PresentSide.FIRST),
            of.count(PresentSide.SECOND),
        ) == (counts.both, counts.first, counts.second)
    assert found.total.compared == sum(counts.compared for counts in found.counts)


@given(sides, sides)
def test_swapping_sides_swaps_outcomes(first: Side, second: Side) -> None:
    swapped = {PresentSide.FIRST: PresentSide.SECOND, PresentSide.SECOND: PresentSide.FIRST}

    def turned(case: Case) -> Case:
        outcome = swapped.get(case.outcome, case.outcome)
        return Case(case.trace_id, case.mode, outcome, case.second, case.first, case.meet)

    one, other = compared(first, second), compared(second, first)
    for mode in MODES:
        assert {turned(case) for case in one.cases[mode]} == set(other.cases[mode])


@given(sides, sides, st.sets(keys))
def test_left_out_traces_are_in_no_count(
    first: Side, second: Side, left_out: set[tuple[str, str]]
) -> None:
    found = compare(first, second, TRACES, MODES, order_of, left_out=left_out)
    assert found.total.compared + found.total.undecided == len(TRACES) * len(MODES) - len(left_out)
    shown = {(case.trace_id, case.mode) for cases in found.cases.values() for case in cases}
    assert not shown & left_out


def one_mode(first: Target | VerdictValue | None, second: Target | VerdictValue | None) -> Case:
    """Return the case of a trace on which the sides report this of a mode."""
    said = []
    for word in (first, second):
        key = ("t1", "repetition")
        if isinstance(word, Target):
            said.append(Side({}, {key: (Mark(word),)}))
        else:
            said.append(Side({} if word is None else {key: word}))
    found = compare(said[0], said[1], ["t1"], ["repetition"], order_of)
    return found.cases["repetition"][0]


MEETINGS: list[tuple[Target, Target | VerdictValue, PresentSide, bool | None]] = [
    (span(3, 5), span(5, 9), PresentSide.BOTH, True),
    (span(3, 5), span(6, 9), PresentSide.BOTH, False),
    (span(3, 5), WHOLE_TRACE, PresentSide.BOTH, None),
    (span(3), PRESENT, PresentSide.BOTH, None),
    (span(3), ABSENT, PresentSide.FIRST, None),
]


def test_overlapping_places_meet_and_silence_is_undecided() -> None:
    for first, second, outcome, meet in MEETINGS:
        case = one_mode(first, second)
        assert (case.outcome, case.meet) == (outcome, meet)
    for word in (None, UNSURE):
        one = Side({}, {("t1", "repetition"): (Mark(span(3)),)})
        other = Side({} if word is None else {("t1", "repetition"): word})
        found = compare(one, other, ["t1"], ["repetition"], order_of)
        assert (found.total.undecided, found.total.compared) == (1, 0)


def test_differences_come_first() -> None:
    words: dict[str, tuple[Target | VerdictValue, Target | VerdictValue]] = {
        "a": (span(1), span(1)),
        "b": (span(1), span(7)),
        "c": (ABSENT, span(1)),
        "d": (span(1), ABSENT),
    }

    def side(place: int) -> Side:
        verdicts, places = {}, {}
        for trace_id, both in words.items():
            word = both[place]
            if isinstance(word, Target):
                places[trace_id, "m"] = (Mark(word),)
            else:
                verdicts[trace_id, "m"] = word
        return Side(verdicts, places)

    found = compare(side(0), side(1), list(words), ["m"], order_of)
    assert [case.trace_id for case in found.cases["m"]] == ["d", "c", "b", "a"]
    assert found.total.precision == 2 / 3


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
        lost = Evidence(key="call_3:call", quote="kubectl get pods")  # a quote that was not found
        assert replace(SOUND, evidence=lost).evidence == lost
        with pytest.raises(ValueError, match=r"confidence|quote|range"):
            replace(SOUND, **parts)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ValueError, match="needs a span"):
        Evidence(key=None, quote="kubectl get pods", char_start=12, char_end=28)
