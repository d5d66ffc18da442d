"""What a judge is: something that reads a trace and suggests failure modes with evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mast_tui.labels import Finding
from mast_tui.traces.model import Trace


@dataclass(frozen=True, slots=True)
class Judgement:
    """All that a judge found in one trace, in reading order.

    ``judged`` are the modes on which it came to a verdict, None for all that it looks at. Such a
    mode that has no finding here and is not in ``unsure`` is absent in its eyes; about every
    other mode it has said nothing.
    """

    findings: tuple[Finding, ...] = ()
    unsure: tuple[str, ...] = ()
    judged: tuple[str, ...] | None = None


class Judge(Protocol):
    """Reads traces and suggests failure modes.

    ``name`` is the annotator under which its labels are kept, such as ``judge:rules@1``; another
    version of the judge has another name. ``looks_at`` are the slugs on which it gives a
    verdict; about every other mode it says nothing.
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
