"""``langfuse``: JSON lines, each the body of ``POST /api/public/scores``.

The fields are those of ``CreateScoreRequest`` in Langfuse's public API, as its Python client
4.14.3 has them: ``id`` (a score with the id of an earlier one takes its place), ``traceId``,
``observationId``, ``name``, ``value``, ``dataType``, ``comment``, ``metadata``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from mast_tui.exchange.exporters.native_ids import Tool
from mast_tui.exchange.exporters.scores import Score

TOOLS: Final[tuple[Tool, ...]] = ("langfuse", "otel")
"""Whose ids are Langfuse's: its exports', and OpenTelemetry's, which it takes over."""


def langfuse_lines(scores: Iterable[Score]) -> Iterator[str]:
    """The bodies, each with its line break.

    All three verdicts are categories, as ``unsure`` is neither of the two of ``BOOLEAN``.
    """
    for score in scores:
        yield json.dumps(_body(score), ensure_ascii=False, allow_nan=False) + "\n"


def _body(score: Score) -> dict[str, Any]:
    body = {
        "dataType": "CATEGORICAL",
        "id": score.id,
        "traceId": score.trace.id,
        "observationId": score.span,
        "name": score.name,
        "value": score.value.value,
        "comment": score.comment or None,
        "metadata": dict(score.facts),
    }
    return {name: value for name, value in body.items() if value is not None}
