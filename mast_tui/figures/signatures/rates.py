"""Shares of traces with their intervals; one that cannot be had has a reason instead."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from mast_tui.figures.intervals import wilson


class RateJson(TypedDict):
    """``count`` of ``n`` traces, as a share between 0 and 1 with its Wilson interval.

    Of no traces there is no share: ``undefined`` says ``no_traces``.
    """

    count: int
    n: int
    rate: float | None
    ci: list[float] | None
    undefined: NotRequired[str]


def rate(count: int, n: int) -> RateJson:
    """Give the share ``count`` / ``n``; raises ``ValueError`` for more hits than cases."""
    ends = wilson(count, n)
    if ends is None:
        return {"count": count, "n": n, "rate": None, "ci": None, "undefined": "no_traces"}
    return {"count": count, "n": n, "rate": count / n, "ci": list(ends)}
