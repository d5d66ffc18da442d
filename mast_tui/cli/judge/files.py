"""The traces that ``mast-tui judge``, ``lint`` and ``watch`` are given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mast_tui.traces.library import scan
from mast_tui.traces.scan.each_trace import each_trace

if TYPE_CHECKING:
    from mast_tui.cli.shared.workers import WorkerPool
    from mast_tui.judges.runner import Look, Looking
    from mast_tui.traces.model import FileReport, Trace


def traces_under(paths: tuple[Path, ...], reports: list[FileReport]) -> Iterator[Trace]:
    """The traces under the paths; what is none is collected in ``reports``."""
    for report in scan(paths):
        if report.format is None:
            reports.append(report)
        yield from report.traces


def looks_under(
    paths: tuple[Path, ...], reports: list[FileReport], looking: Looking, pool: WorkerPool
) -> Iterator[Look]:
    """What a judge sees in the traces under the paths, by the workers that read them.

    Args:
        paths: Files and folders.
        reports: Where what is no trace is collected.
        looking: Has the judge look.
        pool: Who reads, and hears how far that is.
    """
    for report, looks in each_trace(pool.reachable(paths), looking, pool.workers, tell=pool.tell):
        if report.format is None:
            reports.append(report)
        for look in looks:
            pool.on_trace(failed=look.problem is not None)
            yield look
