"""Verdicts, suggestions and reports of judges for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from mast_tui.figures.bootstrap import Resampling
from mast_tui.figures.judge.input import AssistedPass, JudgeInput, Reference, Unit
from mast_tui.figures.judge.report import judge_json, judge_report
from mast_tui.labels import Label, Target, VerdictValue
from mast_tui.taxonomy.model import Mode
from tests.gold.build import ABSENT, MODE, OTHER, PRESENT, UNSURE, label, order

JUDGE = "judge:small@12ab34cd"
MODES = (Mode(MODE, "1.3", "Step repetition", ""), Mode(OTHER, "3.1", "Premature termination", ""))
_VALUES = {"1": PRESENT, "0": ABSENT, "?": UNSURE}


def votes(letters: str, mode: str = MODE, prefix: str = "t") -> dict[Unit, VerdictValue]:
    """Return verdicts on traces ``t0``, ``t1``, …: ``1``, ``0``, ``?`` and ``·`` for none."""
    return {
        (f"{prefix}{i}", mode): _VALUES[letter]
        for i, letter in enumerate(letters)
        if letter in _VALUES
    }


def judge_with(
    judge: Mapping[Unit, VerdictValue], reference: Mapping[Unit, VerdictValue], **more: Any
) -> JudgeInput:
    """Return verdicts of a judge and gold; ``seen``, ``places``, ``unresolved`` are of gold."""
    reference_fields = {
        name: more.pop(name) for name in ("seen", "places", "unresolved") if name in more
    }
    return JudgeInput(
        "small@1", MODES, JUDGE, judge, Reference("gold", reference, **reference_fields), **more
    )


def counted(tp: int, fp: int, fn: int, tn: int) -> JudgeInput:
    """Return a judge with these counts on the first mode."""
    return judge_with(
        votes("1" * (tp + fp) + "0" * (fn + tn)), votes("1" * tp + "0" * fp + "1" * fn + "0" * tn)
    )


def suggestion(
    trace: str, target: Target, confidence: float | None = None, mode: str = MODE
) -> Label:
    plain = label(JUDGE, target, mode)
    return replace(plain, id=f"{trace}/{plain.id}", trace_id=trace, confidence=confidence)


def assisted(
    name: str,
    trace: str,
    withheld: bool,
    values: Mapping[str, VerdictValue],
    labels: Iterable[str] = (),
) -> AssistedPass:
    """Return a pass with the suggestions hidden or shown, and its number of labels by mode."""
    label_count_by_mode: dict[str, int] = {}
    for mode in labels:
        label_count_by_mode[mode] = label_count_by_mode.get(mode, 0) + 1
    return AssistedPass(name, trace, withheld, not withheld, values, label_count_by_mode)


def in_order(_trace_id: str) -> Any:
    return order


def judge_document(judge_input: JudgeInput, rounds: int = 2000, **settings: Any) -> Any:
    """Return the report on a judge, read back from strict JSON."""
    document = judge_json(judge_report(judge_input, Resampling(rounds), **settings))
    return json.loads(json.dumps(document, allow_nan=False))
