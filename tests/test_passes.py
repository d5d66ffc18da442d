"""The pass of an annotator over a trace that counts."""

from __future__ import annotations

from mast_tui.labels import Pass, PassKind, Which, counted_passes


def a_pass(number: int, kind: PassKind, *, finished: bool = True) -> Pass:
    return Pass("ann", "t1", "mast@3", number, kind, "then", "now" if finished else None)


def counted_number(which: Which, *passes: Pass) -> int | None:
    counted = counted_passes(passes, which).get(("ann", "t1"))
    return None if counted is None else counted.number


def test_first_is_the_pass_without_knowledge_of_others() -> None:
    looks = (
        a_pass(1, PassKind.BLIND),
        a_pass(2, PassKind.SECOND_LOOK),
        a_pass(3, PassKind.SECOND_LOOK),
    )
    assert counted_number("first", *looks) == counted_number("first", *looks[::-1]) == 1
    assert counted_number("first", a_pass(1, PassKind.ASSISTED)) == 1
    assert counted_number("first", a_pass(2, PassKind.SECOND_LOOK)) is None
    assert counted_number("first", a_pass(1, PassKind.BLIND, finished=False), looks[1]) is None


def test_last_is_the_latest_finished_pass() -> None:
    looks = a_pass(1, PassKind.BLIND), a_pass(2, PassKind.SECOND_LOOK)
    assert counted_number("last", *looks) == counted_number("last", *looks[::-1]) == 2
    assert counted_number("last", *looks, a_pass(3, PassKind.SECOND_LOOK, finished=False)) == 2
    assert counted_number("last", a_pass(1, PassKind.BLIND, finished=False)) is None


def test_an_adjudication_never_counts() -> None:
    assert counted_number("last", a_pass(1, PassKind.BLIND), a_pass(2, PassKind.ADJUDICATION)) == 1
    assert counted_number("first", a_pass(1, PassKind.ADJUDICATION)) is None


def test_passes_are_counted_for_each_annotator_and_trace() -> None:
    keys = {(name, trace) for name in ("ann", "bob") for trace in ("t1", "t2")}
    passes = [Pass(*key, "mast@3", 1, PassKind.BLIND, "then", "now") for key in keys]
    assert set(counted_passes(passes, "last")) == keys
