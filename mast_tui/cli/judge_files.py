"""The traces that ``mast-tui judge`` is given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mast_tui.traces.library import scan

if TYPE_CHECKING:
    from mast_tui.traces.model import FileReport, Trace


def traces_under(paths: tuple[Path, ...], reports: list[FileReport]) -> Iterator[Trace]:
    """The traces under the paths; what is none is collected in ``reports``."""
    for report in scan(paths):
        if report.format is None:
            reports.append(report)
        yield from report.traces
