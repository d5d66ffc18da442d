"""What a judge finds in traces, with the file and line of each place."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mast_tui.traces.file_places import FilePlace, place_in_file
from mast_tui.traces.library import read_fully

if TYPE_CHECKING:
    from mast_tui.cli.lint.gate import Gate
    from mast_tui.judges.rules import RulesJudge
    from mast_tui.labels import Finding
    from mast_tui.taxonomy.model import Mode, Taxonomy
    from mast_tui.traces.model import Trace


@dataclass(frozen=True, slots=True)
class PlacedFinding:
    """A finding with its mode, its rule (None where a model found it) and where it stands.

    ``place`` is that of ``key``: the span whose words show it, else the first of those that it is
    about. ``number`` is that span's number as people see it, ``first`` and ``last`` those of the
    range.
    """

    trace_id: str
    path: Path
    place: FilePlace
    key: str
    number: int
    first: int
    last: int
    mode: Mode
    rule: str | None
    quote: str
    reason: str
    confidence: float
    decisive: bool | None
    fails: bool

    @property
    def what(self) -> str:
        """The mode and the rule, in words."""
        by = "" if self.rule is None else f" ({self.rule})"
        return f"{self.mode.code} {self.mode.name}{by}"


@dataclass(frozen=True, slots=True)
class LintedTrace:
    """A trace that was judged, and what was found in it, in reading order."""

    trace_id: str
    path: Path
    findings: tuple[PlacedFinding, ...]


@dataclass(slots=True)
class LintReport:
    """What came of all traces.

    ``rules`` are what could be found: rules by name with their modes, of a model the modes alone.
    ``failed`` and ``skipped`` are files, each with the reason.
    """

    judge: str
    taxonomy: Taxonomy
    rules: tuple[tuple[str | None, Mode], ...]
    fail_on: str
    traces: list[LintedTrace] = field(default_factory=list)
    failed: list[tuple[Path, str]] = field(default_factory=list)
    skipped: list[tuple[Path, str]] = field(default_factory=list)

    @property
    def findings(self) -> list[PlacedFinding]:
        """All that was found, trace by trace."""
        return [finding for trace in self.traces for finding in trace.findings]

    @property
    def failing(self) -> int:
        """How many findings fail."""
        return sum(finding.fails for finding in self.findings)


def shown_path(path: Path) -> str:
    """A path as reports name it: from the working folder on where it is under it."""
    inside = Path(os.path.relpath(path))
    return path.as_posix() if inside.parts[:1] == ("..",) else inside.as_posix()


def judged_now(judge: RulesJudge, gate: Gate, trace: Trace, /) -> Sequence[PlacedFinding]:
    """Read a trace to its end and tell what the rules find in it.

    Args:
        judge: The rules.
        gate: Tells what fails.
        trace: What they look at.

    Returns:
        The findings, in reading order.

    Raises:
        OSError: The trace cannot be read.
    """
    read_fully(trace)
    return [placed(trace, rule.name, finding, gate) for rule, finding in judge.findings(trace)]


def placed(trace: Trace, rule: str | None, finding: Finding, gate: Gate) -> PlacedFinding:
    """Give a finding its place.

    Args:
        trace: In which it was found.
        rule: Which rule found it; None for a model.
        finding: What was found.
        gate: Tells whether it fails, and of which taxonomy its mode is.

    Returns:
        The same with its place.
    """
    words = finding.evidence
    first, last = _index(trace, finding.first, 0), _index(trace, finding.last, len(trace) - 1)
    at = _index(trace, words.key if words is not None and words.placed else finding.first, first)
    span = trace.span(at)
    return PlacedFinding(
        trace.identity.trace_id,
        trace.path,
        place_in_file(trace.path, span.place),
        span.key,
        at + 1,
        first + 1,
        last + 1,
        gate.taxonomy.mode(finding.mode),
        rule,
        "" if words is None else words.quote,
        finding.rationale,
        finding.confidence,
        finding.decisive,
        gate.fails(finding),
    )


def _index(trace: Trace, key: str | None, other: int) -> int:
    index = None if key is None else trace.index_of(key)
    return other if index is None else index
