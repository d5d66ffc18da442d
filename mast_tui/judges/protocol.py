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
        judged_modes: The modes with a verdict; None for all modes that the judge looks at. A mode
            with a verdict is absent if it has no finding and the judge is not unsure of it.
    """

    findings: tuple[Finding, ...] = ()
    unsure: tuple[str, ...] = ()
    judged_modes: tuple[str, ...] | None = None


class Judge(Protocol):
    """A reader of traces that suggests failure modes.

    ``name`` is the annotator of its labels, such as ``judge:rules@1``; each version of a judge has
    its own name. ``looks_at`` holds the slugs of the modes on which it gives verdicts.
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
