"""The rules judge: offline, deterministic, without a model."""

from __future__ import annotations

from typing import Final

from mast_tui.judges.protocol import Judgement
from mast_tui.judges.rules import (
    mismatch,
    repeated_words,
    repetition,
    reset,
    termination,
    verification,
)
from mast_tui.judges.rules.walk import walk
from mast_tui.traces.model import Trace

VERSION: Final = 1


class RulesJudge:
    """Suggests the modes that can be seen without understanding, each with its evidence.

    Its cost grows with the number of spans; of long texts only the two ends are looked at.
    """

    @property
    def name(self) -> str:
        """The annotator under which its labels are kept."""
        return f"judge:rules@{VERSION}"

    @property
    def looks_at(self) -> tuple[str, ...]:
        """The slugs on which the rules give a verdict."""
        return (
            repetition.MODE,
            termination.TOO_LATE,
            reset.MODE,
            mismatch.MODE,
            termination.TOO_EARLY,
            verification.LEFT_OUT,
            verification.FAILING,
        )

    def judge(self, trace: Trace, /) -> Judgement:
        """Judge a trace whose index is complete; ``OSError`` where its source cannot be read."""
        walked = walk(trace)
        families = (repetition, repeated_words, termination, reset, mismatch, verification)
        findings = [finding for family in families for finding in family.find(walked)]
        place = {step.span.key: step.index for step in walked.steps}
        findings.sort(key=lambda f: (place[f.first], place[f.last], f.mode))
        return Judgement(tuple(findings))
