"""Parts of answers, as a model is asked to give them."""

from __future__ import annotations


def finding(**changes: object) -> dict[str, object]:
    return {
        "first": 12,
        "last": 14,
        "quote": "the same call",
        "rationale": "#14 repeats #12.",
        "confidence": 0.8,
        "decisive": True,
    } | changes


def entry(
    mode: object = "1.3", verdict: object = "present", *findings: object
) -> dict[str, object]:
    return {"mode": mode, "verdict": verdict, "findings": list(findings)}
