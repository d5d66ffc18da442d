"""The interface of judges: each reads traces and suggests failure modes with evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mast_tui.labels import Finding
from mast_tui.traces.model import Trace


@dataclass(frozen=True, slots=True)
class Judgement:
    """The findings and verdicts of a judge on one trace.

    Attributes:
        findings: The findings, in reading order; their modes are present.
        unsure: The modes of which the judge is unsure.
        judged_modes: The modes with a verdict, or None for all modes in ``looks_at``. A judged mode
            without a finding is absent unless it is in ``unsure``.
    """

    findings: tuple[Finding, ...] = ()
    unsure: tuple[str, ...] = ()
    judged_modes: tuple[str, ...] | None = None


class Judge(Protocol):
    """A reader of traces that suggests failure modes.

    ``name`` is the annotator of the judge's labels, such as ``judge:rules@1``. Each version of a
    judge has its own name. ``looks_at`` holds the slugs of the modes that the judge gives verdicts
    on.
    """

    @property
    def name(self) -> str: ...
    @property
    def looks_at(self) -> tuple[str, ...]: ...
    def judge(self, trace: Trace, /) -> Judgement:
        """Judge a trace whose index is complete (``trace.loaded.complete``).

        Raises:
            OSError: the trace's source could not be read.
        """
