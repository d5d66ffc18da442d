"""``langsmith``: JSON lines, each the body of LangSmith's ``POST /api/v1/feedback``.

The fields are those of ``FeedbackCreate`` in the Python SDK 0.11.1, which calls ``source_info``
what the API has as ``feedback_source.metadata``. LangSmith knows feedback again by its ``id``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from mast_tui.exchange.exporters.native_ids import Tool
from mast_tui.exchange.exporters.scores import NUMBERS, Score
from mast_tui.labels import AnnotatorKind

TOOLS: Final[tuple[Tool, ...]] = ("langsmith",)


def langsmith_lines(scores: Iterable[Score]) -> Iterator[str]:
    """The bodies, each with its line break; a trace is meant by its root run, whose id it has."""
    for score in scores:
        yield json.dumps(_body(score), ensure_ascii=False, allow_nan=False) + "\n"


def _body(score: Score) -> dict[str, Any]:
    run = score.span or score.trace.id
    body = {
        "feedback_source": {
            "type": "model" if score.kind is AnnotatorKind.JUDGE else "api",
            "metadata": dict(score.facts),
        },
        "id": score.id,
        "run_id": run,
        "trace_id": score.trace.id,
        "session_id": score.trace.projects.get(run),
        "created_at": score.at or None,
        "key": score.name,
        "score": NUMBERS.get(score.value),
        "value": score.value.value,
        "comment": score.comment or None,
    }
    return {name: value for name, value in body.items() if value is not None}
