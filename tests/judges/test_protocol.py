"""Validation of findings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mast_tui.labels import Evidence, Finding

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
