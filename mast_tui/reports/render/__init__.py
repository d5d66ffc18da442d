"""Renderers, each of which can show any report."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mast_tui.reports.model import Report


def rendered(report: Report, language: str) -> str:
    """Return the text of a report in a language; its renderer is imported on first use.

    Args:
        report: The report.
        language: ``html``, ``markdown``, ``csv`` or ``latex``.
    """
    renderer = import_module(f"mast_tui.reports.render.{language}")
    text: str = getattr(renderer, f"render_{language}")(report)
    return text
