"""``inspect-scores``: JSON lines, each an edit for ``inspect_ai.log.edit_score``.

The fields are its arguments and those of ``ScoreEdit`` and ``ProvenanceData`` in inspect_ai
0.3.260. A score is of a sample, so there is one per sample and annotator; its value holds all
modes by code, and the places stand in its metadata.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Final

from mast_tui.exchange.native_ids import Sample, Tool
from mast_tui.exchange.scores import GOLD, NUMBERS, Score, label_facts
from mast_tui.taxonomy.model import Taxonomy

TOOLS: Final[tuple[Tool, ...]] = ("inspect",)


def inspect_lines(scores: Iterable[Score], taxonomy: Taxonomy) -> Iterator[str]:
    """The edits, each with its line break, from scores that come by trace and annotator.

    A mode that is unsure or open has no number, which Inspect leaves out of its metrics.
    """
    for (sample, annotator), own in groupby(scores, lambda s: (s.trace.sample, s.annotator)):
        if sample is not None:
            edit = _edit(sample, annotator, list(own), taxonomy)
            yield json.dumps(edit, ensure_ascii=False, allow_nan=False) + "\n"


def _edit(
    sample: Sample, annotator: str, scores: list[Score], taxonomy: Taxonomy
) -> dict[str, Any]:
    verdicts = [score for score in scores if score.span is None]
    numbers = {score.mode.code: NUMBERS.get(score.value) for score in verdicts}
    times = [score.at for score in scores if score.at]
    return {
        "log": str(sample.log.absolute()),
        "sample_id": sample.id,
        "epoch": sample.epoch,
        "sample_uuid": sample.uuid,
        "score_name": taxonomy.id if annotator == GOLD else f"{taxonomy.id} ({annotator})",
        "edit": {
            "value": {mode.code: numbers.get(mode.code) for mode in taxonomy.modes},
            "explanation": "\n".join(_lines(scores)) or None,
            "metadata": {
                "taxonomy": taxonomy.ref,
                "annotator": annotator,
                "verdicts": {score.mode.code: score.value.value for score in verdicts},
                "labels": [
                    {"mode": score.mode.code, **label_facts(label), "note": label.note}
                    for score in scores
                    for label in score.labels
                ],
            },
            "provenance": {
                **({"timestamp": max(times)} if times else {}),
                "author": annotator,
                "reason": f"labelled for the failure modes of {taxonomy.ref}",
            },
        },
    }


def _lines(scores: Iterable[Score]) -> Iterator[str]:
    """What was noted, with its mode and the key of its span."""
    for score in scores:
        for label in score.labels:
            if label.note:
                where = "" if label.target.is_whole else f" at {label.target.first}"
                yield f"{score.mode.code} {score.mode.name}{where}: {label.note}"
