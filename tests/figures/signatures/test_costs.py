"""Tokens and minutes of failed runs before and after their first fatal failure."""

from __future__ import annotations

from typing import Any

import numpy as np

from mast_tui.figures.signatures.costs import SpanUsage, UsageOf
from mast_tui.figures.signatures.model import SignatureInput
from tests.figures.signatures.build_input import document_of, input_of


def usage(*tokens: int, minutes: float | None = 1.0) -> SpanUsage:
    """Return spans with these input tokens and one output token each."""
    durations = None if minutes is None else np.full(len(tokens), minutes)
    return SpanUsage(np.array([(count, 1) for count in tokens], dtype=np.int64), durations)


def bills_of(signatures: SignatureInput, usage_of: UsageOf | None) -> Any:
    return document_of(signatures, rounds=0, usage_of=usage_of)["groups"]["g"]["bill"]


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
        "t0": usage(10, 20, 30, 41),
        "t1": usage(5, 5, 5, minutes=None),
        "t2": SpanUsage(None, np.array([2.0])),
    }
    bill, _ = bills_of(signatures, books.get)
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
    assert bill["output_tokens"]["total"] == 7
    assert bill["tokens"]["total"] == 123
    assert [bill["minutes"][k] for k in ("total", "without_fatal", "after")] == [6, 2, 2]


def test_unknown_tokens_and_times_have_no_sum() -> None:
    signatures = input_of("g - F 10", places=[(0, 0, 0, True)])
    bill, *_ = bills_of(signatures, lambda _trace: SpanUsage(None, None))
    assert bill["tokens"] is bill["minutes"] is None
    assert bills_of(signatures, None) is None


def test_class_of_the_mode_decides_without_fatal_labels() -> None:
    rows = ["g - F 10"] * 12 + ["g - S 00"] * 12
    signatures = input_of(*rows, places=[(i, 0, 1, False) for i in range(12)])
    by_labels, by_class = bills_of(signatures, lambda _trace: usage(7, 8))
    assert (by_labels["with_fatal"], by_class["with_fatal"]) == (0, 12)
    assert by_class["input_tokens"]["by_mode"] == {"1.3": 12 * 8}
