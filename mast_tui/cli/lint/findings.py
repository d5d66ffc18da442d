"""The findings of a judge in traces, with file and line of each."""

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
    """A finding with its mode, its rule and its location in a file.

    Attributes:
        place: The location of the shown span: that with the quote, else the first of the finding.
        key: The key of the shown span.
        number: The number of the shown span on screen.
        first: The number of the first span of the finding.
        last: The number of the last span of the finding.
        rule: The name of the rule; None for a model.
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
    def title(self) -> str:
        """The mode and the rule."""
        rule = "" if self.rule is None else f" ({self.rule})"
        return f"{self.mode.code} {self.mode.name}{rule}"


@dataclass(frozen=True, slots=True)
class LintedTrace:
    """A judged trace and its findings, in reading order."""

    trace_id: str
    path: Path
    findings: tuple[PlacedFinding, ...]


@dataclass(slots=True)
class LintReport:
    """The result of judging all traces.

    Attributes:
        rules: The rules that ran as (name, mode); for a model, (None, mode).
        failed: The files that could not be read, with the reason.
        skipped: The files that are no traces, with the reason.
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
        """All findings, trace by trace."""
        return [finding for trace in self.traces for finding in trace.findings]

    @property
    def failing(self) -> int:
        """The number of findings that fail."""
        return sum(finding.fails for finding in self.findings)


def relative_path(path: Path) -> str:
    """Return a path relative to the working folder if it is inside it, else absolute."""
    relative = Path(os.path.relpath(path))
    return path.as_posix() if relative.parts[:1] == ("..",) else relative.as_posix()


def find_by_rules(judge: RulesJudge, gate: Gate, trace: Trace, /) -> Sequence[PlacedFinding]:
    """Read a trace to its end and return the findings of the rules, in reading order.

    Args:
        judge: The rules.
        gate: Decides which findings fail.
        trace: The trace.

    Raises:
        OSError: The trace cannot be read.
    """
    read_fully(trace)
    return [
        placed_finding(trace, rule.name, finding, gate) for rule, finding in judge.findings(trace)
    ]


def placed_finding(trace: Trace, rule: str | None, finding: Finding, gate: Gate) -> PlacedFinding:
    """Return a finding with its location.

    Args:
        trace: The trace of the finding.
        rule: The rule that found it; None for a model.
        finding: The finding.
        gate: Decides whether it fails, and names the taxonomy.
    """
    evidence = finding.evidence
    first = _span_index(trace, finding.first, 0)
    last = _span_index(trace, finding.last, len(trace) - 1)
    shown_index = _span_index(
        trace, evidence.key if evidence is not None and evidence.placed else finding.first, first
    )
    span = trace.span(shown_index)
    return PlacedFinding(
        trace.identity.trace_id,
        trace.path,
        place_in_file(trace.path, span.place),
        span.key,
        shown_index + 1,
        first + 1,
        last + 1,
        gate.taxonomy.mode(finding.mode),
        rule,
        "" if evidence is None else evidence.quote,
        finding.rationale,
        finding.confidence,
        finding.decisive,
        gate.fails(finding),
    )


def _span_index(trace: Trace, key: str | None, default: int) -> int:
    index = None if key is None else trace.index_of(key)
    return default if index is None else index
