"""``inspect-scores``: JSON lines, each an edit for ``inspect_ai.log.edit_score``.

The fields are its arguments and those of ``ScoreEdit`` and ``ProvenanceData`` in inspect_ai
0.3.260. A score is of a sample: it says whether a mode shows there, and its metadata where. Values
are numbers, as Inspect's metrics take what they cannot read as 0; so ``unsure`` is not written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from mast_tui.exchange.exporters.native_ids import Sample, Tool
from mast_tui.exchange.exporters.scores import GOLD, NUMBERS, Score, label_facts
from mast_tui.labels import Label

TOOLS: Final[tuple[Tool, ...]] = ("inspect",)


def inspect_lines(scores: Iterable[Score]) -> Iterator[str]:
    """The edits, each with its line break, from scores that come by trace, annotator and mode."""
    for _, own in groupby(scores, lambda score: (score.trace.id, score.annotator, score.name)):
        verdict, *places = own
        sample, number = verdict.trace.sample, NUMBERS.get(verdict.value)
        if sample is not None and number is not None:
            edit = _edit(sample, verdict, places, number)
            yield json.dumps(edit, ensure_ascii=False, allow_nan=False) + "\n"


def _edit(sample: Sample, verdict: Score, places: Sequence[Score], number: int) -> dict[str, Any]:
    said = [verdict, *places]
    labels = [label for score in said for label in score.labels]
    times = [score.at for score in said if score.at]
    gold = verdict.annotator == GOLD
    return {
        "score_name": verdict.name if gold else f"{verdict.name} ({verdict.annotator})",
        "log": str(sample.log.absolute()),
        "sample_id": sample.id,
        "epoch": sample.epoch,
        "sample_uuid": sample.uuid,
        "edit": {
            "value": number,
            "answer": verdict.value.value,
            "explanation": "\n".join(map(_line, filter(_is_noted, labels))) or None,
            "metadata": {
                **verdict.facts,
                "labels": [{**label_facts(label), "note": label.note} for label in labels],
            },
            "provenance": {
                **({"timestamp": max(times)} if times else {}),
                "author": verdict.annotator,
                "reason": f"labelled for the failure modes of {verdict.taxonomy}",
            },
        },
    }


def _is_noted(label: Label) -> bool:
    return bool(label.note)


def _line(label: Label) -> str:
    return label.note if label.target.is_whole else f"{label.target.first}: {label.note}"
