"""A finding cannot be built from parts that do not go together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mast_tui.judges.protocol import Finding

SOUND = Finding(
    mode="step_repetition",
    first="call_1:call",
    last="call_3:result",
    evidence_key="call_3:call",
    quote="kubectl get pods",
    char_start=12,
    char_end=28,
    rationale="#7 is #3 over again, with no change between.",
    confidence=0.8,
)


def test_a_quote_that_was_not_found_keeps_its_words() -> None:
    assert replace(SOUND, char_start=None, char_end=None).quote == "kubectl get pods"


@pytest.mark.parametrize(
    "parts",
    [
        {"confidence": 1.01},
        {"confidence": -0.1},
        {"confidence": float("nan")},
        {"quote": None},
        {"evidence_key": None},
        {"char_end": None},
        {"quote": None, "evidence_key": None},
    ],
)
def test_parts_that_contradict_each_other_are_refused(parts: dict[str, float | None]) -> None:
    with pytest.raises(ValueError, match=r"confidence|quote"):
        replace(SOUND, **parts)  # type: ignore[arg-type]  # wrong on purpose
