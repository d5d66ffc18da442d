"""Sides, labels and decisions for tests of the gold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mast_tui.gold import Conflict, Decision, GoldTrace, Resolution, gold_of_trace
from mast_tui.labels import WHOLE_TRACE, Label, Severity, Target, TraceWork, VerdictValue

MODE = "step_repetition"
OTHER = "premature_termination"
MODES = (MODE, OTHER)

PRESENT = VerdictValue.PRESENT
ABSENT = VerdictValue.ABSENT
UNSURE = VerdictValue.UNSURE


def target(first: int, last: int | None = None) -> Target:
    """Return the target of a range of spans, whose keys are ``k0``, ``k1``, …"""
    return Target(f"k{first}", f"k{first if last is None else last}")


def quote(span: int, start: int, text: str) -> Target:
    return Target(f"k{span}", f"k{span}", text, start, start + len(text))


def order(key: str) -> int | None:
    """Return the reading order by the number in the key; None for ``lost…``."""
    return int(key[1:]) if key.startswith("k") else None


def label(
    annotator: str,
    target: Target = WHOLE_TRACE,
    mode: str = MODE,
    note: str = "",
    severity: Severity | None = None,
    saw_suggestions: bool = False,
) -> Label:
    position = (target.first, target.last, target.char_start, target.char_end)
    return Label(
        id=f"{annotator}:{mode}:{position}",
        annotator=annotator,
        trace_id="t1",
        taxonomy="mast@3",
        mode=mode,
        target=target,
        note=note,
        severity=severity,
        saw_suggestions=saw_suggestions,
    )


def side(
    annotator: str,
    *targets: Target,
    value: VerdictValue | None = None,
    labels: Iterable[Label] = (),
    judge_seen: bool = False,
    other_verdicts: Mapping[str, VerdictValue] | None = None,
) -> TraceWork:
    """Return the work of an annotator: labels of the first mode, or a verdict on it."""
    verdicts = dict(other_verdicts or {})
    if value is not None:
        verdicts[MODE] = value
    marks = tuple(label(annotator, target) for target in targets)
    return TraceWork(
        annotator,
        "t1",
        "mast@3",
        labels={label.id: label for label in (*marks, *labels)},
        verdicts=verdicts,
        judge_seen=judge_seen,
    )


def gold(
    sides: Sequence[TraceWork],
    *decisions: Decision,
    majority: bool = False,
    boundaries: bool = False,
) -> GoldTrace:
    return gold_of_trace(sides, decisions, MODES, order, majority=majority, boundaries=boundaries)


def decide(
    conflict: Conflict,
    value: VerdictValue,
    *targets: Target,
    sides: tuple[str, ...] = (),
    judge_seen: bool = False,
    adjudicator: str = "judy",
) -> Decision:
    item = (conflict.mode, conflict.id, value, targets, sides, conflict.answers)
    return Decision(*item, adjudicator, "2026-01-01T00:00:00Z", judge_seen)


def places(result: GoldTrace) -> list[tuple[Target, Resolution, bool]]:
    return [(label.target, label.source, label.merged) for label in result.labels]
