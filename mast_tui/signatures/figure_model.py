"""What a figure of a report is, and the words that stand under every one of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from mast_tui.figures.signatures.report import whose_labels
from mast_tui.reports.model import Chart
from mast_tui.reports.render.svg import Drawing

if TYPE_CHECKING:
    from mast_tui.figures.signatures.report import Report

LABELS: Final = 196
"""How much of that the names of modes take."""

_LONGEST_NAME: Final = 48


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing with its words.

    ``name`` is what its file is called, without ``.svg``; ``kind`` and ``group`` say what is shown
    of whom, and ``heading`` what is shown alone. ``note`` says n, whose labels, which taxonomy, and
    what is drawn.
    """

    name: str
    kind: str
    group: str
    heading: str
    title: str
    note: str
    drawing: Drawing

    def chart(self) -> Chart:
        """The drawing as a part of a report."""
        drawn = self.drawing
        return Chart(
            self.name, self.title, self.note, drawn.width, drawn.height, tuple(drawn.parts)
        )


def group_words(report: Report, name: str) -> str:
    """What a group is called where people read it."""
    return "All traces" if report["by"] == "all" else name


def source_words(report: Report) -> str:
    """Whose labels the figures rest on, and under which taxonomy."""
    return f"Labels: {whose_labels(report)}; taxonomy: {report['taxonomy']}."


def file_names(names: Iterable[str]) -> dict[str, str]:
    """A part of a file name for each of several foreign names: lower case, plain and unlike.

    A name keeps its part whatever stands beside it, unless two names would share one; then, and
    where nothing plain is left of a name, the part ends in a few digits of the name's hash.
    """
    plain: dict[str, str] = {}
    for name in names:
        ascii_only = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        plain[name] = re.sub(r"[^a-z0-9._]+", "-", ascii_only.lower()).strip("-._")
    shared = list(plain.values())
    return {
        name: part
        if part and len(part) <= _LONGEST_NAME and shared.count(part) == 1
        else f"{part[:_LONGEST_NAME]}-{_digits(name)}".lstrip("-")
        for name, part in plain.items()
    }


def _digits(name: str) -> str:
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
