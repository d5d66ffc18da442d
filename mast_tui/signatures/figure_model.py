"""What a figure of a report is, and the words that stand under every one of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from mast_tui.figures.signatures.report import whose_labels
from mast_tui.signatures.svg import (
    LIGHT,
    Drawing,
    figure_style,
    number,
    shown,
    wrapped,
)

if TYPE_CHECKING:
    from mast_tui.figures.signatures.report import Report

WIDTH: Final = 680
"""How wide most figures are, in user units."""

LABELS: Final = 196
"""How much of that the names of modes take."""

MARK: Final = "mast-tui figure"
"""Stands in every figure that is written, so that one's own are known again."""

_MARGIN: Final = 16
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


def inline_svg(figure: Figure) -> str:
    """The drawing as an element of an HTML page, which styles it."""
    drawing = figure.drawing
    wide = ' class="wide"' if drawing.width > WIDTH else ""
    return (
        f'<svg{wide} viewBox="0 0 {number(drawing.width)} {number(drawing.height)}" role="img" '
        f'aria-labelledby="{figure.name}-t {figure.name}-d">'
        f'<title id="{figure.name}-t">{shown(figure.title)}</title>'
        f'<desc id="{figure.name}-d">{shown(figure.note)}</desc>'
        f"{''.join(drawing.parts)}</svg>"
    )


def standalone_svg(figure: Figure) -> str:
    """The drawing as a file of its own, on white, with its title above and its note below."""
    drawing = figure.drawing
    width = drawing.width + 2 * _MARGIN
    around = Drawing(width)
    heading = wrapped(figure.title, drawing.width, 15.5)
    note = wrapped(figure.note, drawing.width, 10.5, most=8)
    top = _MARGIN + 20 * len(heading) + 6
    height = top + drawing.height + 12 + 14 * len(note) + _MARGIN
    around.rect(0, 0, width, height, "v-paper")
    around.lines(_MARGIN, _MARGIN + 12, heading, "v-h", step=20)
    around.lines(_MARGIN, top + drawing.height + 18, note, "v-s v-m")
    body = "\n".join([*around.parts, f'<g transform="translate({_MARGIN} {number(top)})">'])
    inner = "\n".join(drawing.parts)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<!-- {MARK} -->\n"
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{number(width)}" '
        f'height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}" role="img" '
        f'aria-labelledby="t d">\n<title id="t">{shown(figure.title)}</title>\n'
        f'<desc id="d">{shown(figure.note)}</desc>\n'
        f"<style>\n{figure_style(LIGHT)}\n</style>\n{body}\n{inner}\n</g>\n</svg>\n"
    )
