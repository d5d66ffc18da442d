"""``phoenix``: the bodies of Phoenix's ``POST /v1/span_annotations`` and ``/v1/trace_annotations``.

The fields are those of ``SpanAnnotationData`` and ``TraceAnnotationData`` in the REST API of
arize-phoenix 20.3. ``identifier`` makes an annotation known again: one with the name, span and
identifier of an earlier one takes its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mast_tui.exchange.exporters.native_ids import Tool
from mast_tui.exchange.exporters.scores import NUMBERS, Score
from mast_tui.labels import JUDGE_PREFIX, AnnotatorKind

TOOLS: Final[tuple[Tool, ...]] = ("otel",)
"""Whose ids are Phoenix's: OpenTelemetry's, in hex."""

_CODE: Final = (f"{JUDGE_PREFIX}rules@", f"{JUDGE_PREFIX}twins@")
"""How the names of judges begin that ask no model."""


def phoenix_bodies(scores: Iterable[Score]) -> dict[str, Any]:
    """Both bodies under the last part of their paths, as one JSON document has no two roots."""
    spans, traces = [], []
    for score in scores:
        if score.span is None:
            traces.append({"trace_id": score.trace.id, **_annotation(score)})
        else:
            spans.append({"span_id": score.span, **_annotation(score)})
    return {"span_annotations": {"data": spans}, "trace_annotations": {"data": traces}}


def _annotation(score: Score) -> Mapping[str, Any]:
    return {
        "name": score.name,
        "annotator_kind": _kind(score),
        "result": {
            "label": score.value.value,
            "score": NUMBERS.get(score.value),
            "explanation": score.comment or None,
        },
        "metadata": dict(score.facts),
        "identifier": score.id,
    }


def _kind(score: Score) -> str:
    if score.kind is not AnnotatorKind.JUDGE:
        return "HUMAN"
    return "CODE" if score.annotator.startswith(_CODE) else "LLM"
