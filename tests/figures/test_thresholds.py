"""Thresholds for the confidences of a judge."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mast_tui.figures.judge.confusion import compared_units
from mast_tui.figures.judge.input import JudgeInput, Reference
from mast_tui.figures.judge.thresholds import (
    Threshold,
    fit_thresholds,
    input_on_traces,
    named_thresholds,
    with_thresholds,
)
from mast_tui.labels import WHOLE_TRACE, Label
from mast_tui.taxonomy.model import Mode
from tests.gold.build import ABSENT, PRESENT

MODES = (Mode("repeat", "1.3", "Repetition", "1"), Mode("stop", "3.1", "Stop", "3"))


def judged(cases: Sequence[tuple[float | None, bool]], mode: str = "repeat") -> JudgeInput:
    """Return a judge with a confidence on each trace (None for absent), and gold."""
    verdicts = {}
    truths = {}
    labels = []
    for number, (confidence, truth) in enumerate(cases):
        unit = (f"t{number}", mode)
        truths[unit] = PRESENT if truth else ABSENT
        verdicts[unit] = ABSENT if confidence is None else PRESENT
        if confidence is not None:
            name = f"l{number}"
            label = Label(name, "judge:m@1", unit[0], "mast@3", mode, WHOLE_TRACE)
            labels.append(replace(label, confidence=confidence))
    reference = Reference("gold", truths)
    return JudgeInput("mast@3", MODES, "judge:m@1", verdicts, reference, tuple(labels))


SURE = [(0.9, True)] * 6 + [(0.3, False)] * 4 + [(None, False)] * 5


def test_threshold_separates_sure_findings_from_false_alarms() -> None:
    judge_input = judged(SURE)
    fitted = fit_thresholds(judge_input)
    assert fitted == {"repeat": Threshold(0.6, present=6, absent=9)}
    cut = with_thresholds(judge_input, fitted)
    units = compared_units(cut)
    assert units.judge == units.reference
    assert len(cut.suggestions) == 6


def test_equal_confidences_and_few_traces_have_no_threshold() -> None:
    alike = judged([(0.5, True)] * 6 + [(0.5, False)] * 6)
    assert fit_thresholds(alike)["repeat"].value == 0
    few = judged(SURE[2:])
    assert fit_thresholds(few) == {}
    assert with_thresholds(few, {}).verdicts == few.verdicts


def test_hash_depends_on_thresholds_and_traces() -> None:
    judge_input = judged(SURE)
    fitted = fit_thresholds(judge_input)
    traces = {f"t{n}" for n in range(len(SURE))}
    thresholds = named_thresholds(judge_input, fitted, traces)
    assert thresholds.modes == {"1.3": fitted["repeat"]}
    assert thresholds == named_thresholds(judge_input, fitted, sorted(traces))
    assert thresholds.hash != named_thresholds(judge_input, {}, traces).hash
    assert thresholds.hash != named_thresholds(judge_input, fitted, traces - {"t0"}).hash
    assert len(compared_units(input_on_traces(judge_input, {"t0", "t1"})).judge) == 2
