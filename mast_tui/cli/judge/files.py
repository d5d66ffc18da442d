"""The traces that ``mast-tui judge``, ``lint`` and ``watch`` are given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mast_tui.judges.rules import Rule
from mast_tui.judges.rules.overlong import UsualLengths
from mast_tui.traces.library import read_fully, scan

if TYPE_CHECKING:
    from mast_tui.traces.model import FileReport, Trace


def traces_under(paths: tuple[Path, ...], reports: list[FileReport]) -> Iterator[Trace]:
    """The traces under the paths; what is none is collected in ``reports``."""
    for report in scan(paths):
        if report.format is None:
            reports.append(report)
        yield from report.traces


def usual_lengths(rules: tuple[Rule, ...], paths: tuple[Path, ...]) -> UsualLengths | None:
    """Measure how long successful runs of the tasks took, if a rule asks for that.

    Args:
        rules: Those that run.
        paths: Where the runs are, which are read once more for this.

    Returns:
        The lengths; None where no rule asks.
    """
    if not any(rule.compares_runs for rule in rules):
        return None
    return UsualLengths.measured(readable(paths))


def readable(paths: tuple[Path, ...]) -> Iterator[Trace]:
    """The traces there, read to their ends, but those that cannot be; the run tells of them."""
    for trace in traces_under(paths, []):
        try:
            read_fully(trace)
        except OSError:
            continue
        yield trace
