"""Figures as files, one SVG each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_tui.reports.render.svg import standalone_svg
from mast_tui.signatures.figure_set import report_figures

if TYPE_CHECKING:
    from mast_tui.figures.signatures.report import Report


def figure_files(report: Report) -> dict[str, str]:
    """The texts of a report's figures by their names, ``prevalence-<group>.svg`` and so on.

    The names are the same for the same groups, so that figures of an earlier report are replaced.
    """
    return {f"{one.name}.svg": standalone_svg(one.chart()) for one in report_figures(report)}
