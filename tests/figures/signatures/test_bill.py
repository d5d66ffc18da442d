"""Tokens and minutes of failed runs before and after their first fatal failure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mast_tui.figures.signatures.bill import Spent, spent_in
from mast_tui.figures.signatures.model import SignatureInput
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace
from tests.figures.signatures.build_input import document_of, input_of
from tests.traces.checks import corpus_files, needs_corpus


def spent(*tokens: int, minutes: float | None = 1.0) -> Spent:
    """Return spans with these input tokens and one output token each."""
    took = None if minutes is None else np.full(len(tokens), minutes)
    return Spent(np.array([(one, 1) for one in tokens], dtype=np.int64), took)


def test_tokens_after_the_first_fatal_failure_are_those_of_its_modes() -> None:
    signatures = input_of(
        "g - F 11", "g - F 10", "g - F 00", "g - S 11", "g - F 10",
        places=[
            (0, 0, 2, True), (0, 1, 2, True), (0, 1, 0, False),  # both set on at #2
            (1, 0, 1, True), (1, 1, 3, True),  # the first one pays
            (3, 0, 0, True),  # has not failed
            (4, 0, 0, True),  # not at hand
        ],
    )  # fmt: skip
    books = {
        "t0": spent(10, 20, 30, 41),
        "t1": spent(5, 5, 5, minutes=None),
        "t2": Spent(None, np.array([2.0])),
    }
    report = document_of(signatures, rounds=0, spent_of=books.get)
    (bill, _) = report["groups"]["g"]["bill"] or []
    assert (bill["by"], bill["traces"], bill["with_fatal"], bill["at_hand"]) == ("labels", 4, 3, 3)
    assert (bill["traces_with_tokens"], bill["traces_with_minutes"]) == (2, 2)
    assert bill["input_tokens"] == {
        "traces": 2,
        "total": 116,
        "without_fatal": 0,
        "before_first_fatal": 35,
        "after": 81,
        "share_after": 81 / 116,
        "by_mode": {"1.3": 35.5 + 10, "3.1": 35.5},
    }
    assert bill["output_tokens"] is not None
    assert bill["output_tokens"]["total"] == 7
    assert bill["tokens"] is not None
    assert bill["tokens"]["total"] == 123
    assert bill["minutes"] is not None
    assert [bill["minutes"][k] for k in ("total", "without_fatal", "after")] == [6, 2, 2]


def test_unknown_tokens_and_times_have_no_sum() -> None:
    signatures = input_of("g - F 10", places=[(0, 0, 0, True)])
    bill = _one(signatures, Spent(None, None))
    assert bill["tokens"] is bill["minutes"] is None
    assert document_of(signatures, rounds=0)["groups"]["g"]["bill"] is None


def test_class_of_the_mode_decides_without_fatal_labels() -> None:
    rows = ["g - F 10"] * 12 + ["g - S 00"] * 12
    signatures = input_of(*rows, places=[(i, 0, 1, False) for i in range(12)])
    report = document_of(signatures, rounds=0, spent_of=lambda _trace: spent(7, 8))
    by_labels, by_class = report["groups"]["g"]["bill"] or []
    assert (by_labels["with_fatal"], by_class["with_fatal"]) == (0, 12)
    assert by_class["input_tokens"] is not None
    assert by_class["input_tokens"]["by_mode"] == {"1.3": 12 * 8}


def _corpus() -> list[Trace]:
    """Read the traces of every sixth file of the corpus."""
    traces: list[Trace] = []
    for path in corpus_files(6):
        traces += read_file(path, named=False).traces
    for trace in traces:
        read_fully(trace)
    return traces


@pytest.mark.slow
@needs_corpus
def test_bills_of_real_runs_add_up() -> None:
    with_tokens = with_times = 0
    for trace in _corpus():
        spans = [trace.span(i) for i in range(len(trace))]
        for at in {0, len(spans) // 2} if spans else ():
            signatures = input_of(
                "g - F 11", places=[(0, 0, at, True), (0, 1, at, True), (0, 1, 0, False)]
            )
            bill = _one(signatures, spent_in(trace))
            counted = [span.tokens for span in spans if span.tokens is not None]
            if counted:
                with_tokens += 1
                whole = sum((one.input or 0) + (one.output or 0) for one in counted)
                after = sum(
                    (span.tokens.input or 0) + (span.tokens.output or 0)
                    for span in spans[at:]
                    if span.tokens is not None
                )
                _adds_up(bill["tokens"], whole, after)
            else:
                assert bill["tokens"] is None
            times = [t for span in spans for t in (span.start, span.end) if t is not None]
            if times:
                with_times += 1
                _adds_up(bill["minutes"], (max(times) - min(times)) / 60)
    assert with_tokens >= 10
    assert with_times >= 10


def _one(given: SignatureInput, used: Spent) -> Any:
    report = document_of(given, rounds=0, spent_of=lambda _trace: used)
    return (report["groups"]["g"]["bill"] or [])[0]


def _adds_up(bill: Any, whole: float, after: float | None = None) -> None:
    """Assert that the parts of a bill add up to the whole."""
    assert bill is not None
    assert bill["total"] == pytest.approx(whole, abs=1e-6)
    parts = bill["without_fatal"] + bill["before_first_fatal"] + sum(bill["by_mode"].values())
    assert parts == pytest.approx(whole, abs=1e-6)
    assert bill["after"] == pytest.approx(sum(bill["by_mode"].values()), abs=1e-6)
    if after is not None:
        assert bill["after"] == after
