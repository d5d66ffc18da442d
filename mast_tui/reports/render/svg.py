"""Drawings in SVG: shapes and texts on a canvas, the width of texts, and charts as files."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from html import escape
from string import Template
from typing import Final, Literal

from mast_tui.reports.model import Chart
from mast_tui.safe_text import one_line

Anchor = Literal["start", "middle", "end"]

WIDTH: Final = 680
"""The width of most drawings in user units."""

MARK: Final = "mast-tui figure"
"""The text by which the SVG files of this app are recognised."""

_MARGIN: Final = 16

_TITLE_SIZE: Final = 17.0
"""The font size for the width of a title: bold letters of 15 are as wide as plain ones of 17."""

FONTS: Final = '"Helvetica Neue", Helvetica, Arial, "Liberation Sans", "DejaVu Sans", sans-serif'

LIGHT: Final = {
    "paper": "#ffffff",
    "ink": "#1b1f24",
    "muted": "#57606a",
    "grid": "#dde2e7",
    "failed": "#a8402f",
    "succeeded": "#cfe3ef",
    "edge": "#3f7191",
    "first": "#33518a",
    "second": "#f0dfb8",
    "second_edge": "#8a6d1f",
    "heat": "#33518a",
    "on_heat": "#ffffff",
    "on_half": "#1b1f24",
}
"""The colours on white. Each pair also differs in lightness, to be legible in greyscale."""

DARK: Final = {
    "paper": "#14171b",
    "ink": "#e8ebee",
    "muted": "#a3adb8",
    "grid": "#343b43",
    "failed": "#ee8a70",
    "succeeded": "#1e3d50",
    "edge": "#85b8d6",
    "first": "#8fb0ee",
    "second": "#4a3d18",
    "second_edge": "#d8bb6a",
    "heat": "#8fb0ee",
    "on_heat": "#0d1014",
    "on_half": "#0d1014",
}

_STYLE: Final = Template("""
.v-paper { fill: $paper; }
.v-t { font-family: $fonts; font-size: 12px; fill: $ink; text-rendering: geometricPrecision; }
.v-s { font-size: 10.5px; }
.v-m { fill: $muted; }
.v-b { font-weight: 600; }
.v-h { font-size: 15px; font-weight: 600; }
.v-halo { paint-order: stroke; stroke: $paper; stroke-width: 3px; stroke-linejoin: round; }
.v-on { fill: $on_heat; }
.v-mid { fill: $on_half; }
.v-grid { stroke: $grid; stroke-width: 1; }
.v-axis { stroke: $muted; stroke-width: 1; }
.v-failed { fill: $failed; stroke: $failed; stroke-width: 1; }
.v-succeeded { fill: $succeeded; stroke: $edge; stroke-width: 1; }
.v-first { fill: $first; stroke: $first; stroke-width: 1; }
.v-second { fill: $second; stroke: $second_edge; stroke-width: 1; }
.v-other { fill: $grid; stroke: $muted; stroke-width: 1; }
.v-heat { fill: $heat; }
.v-cell { fill: none; stroke: $grid; stroke-width: 1; }
.v-end { stroke: $ink; stroke-width: 1.3; fill: none; }
.v-in { stroke: $paper; stroke-width: 1.3; fill: none; }
.v-under { stroke: $paper; stroke-width: 2.8; fill: none; }
.v-dot { fill: $ink; stroke: $paper; stroke-width: 1; }
""")


def figure_style(colours: dict[str, str]) -> str:
    """Return the style sheet of the drawings with the given colours."""
    return _STYLE.substitute(colours, fonts=FONTS).strip()


def escaped(text: str) -> str:
    """Return a text as the safe content of an element or an attribute."""
    return escape(one_line(text), quote=True)


def text_width(text: str, size: float = 12) -> float:
    """Estimate the width of a text in a common sans-serif font; rather too wide than too narrow.

    Args:
        text: The text.
        size: The size of the font.
    """
    return size * sum(_char_width(char) for char in text)


def _char_width(char: str) -> float:
    """Estimate the width of a character, as a fraction of the font's size."""
    if char in "ijl.,:;|!'":
        return 0.3
    if char in " tfrI()[]/-·":
        return 0.36
    if char in "mwMW%—…→":
        return 0.92
    if unicodedata.east_asian_width(char) in "WF":
        return 1.05
    return 0.72 if char.isupper() else 0.62


def wrapped_lines(text: str, width: float, size: float = 12, max_lines: int = 3) -> list[str]:
    """Break a text into lines at spaces, and inside words longer than a line.

    Args:
        text: The text.
        width: The width of a line.
        size: The size of the font.
        max_lines: The most lines; a longer text is cut and ends in ``…``.
    """
    lines = [""]
    for word in one_line(text).split(" "):
        extended = f"{lines[-1]} {word}" if lines[-1] else word
        if text_width(extended, size) <= width:
            lines[-1] = extended
            continue
        # The word begins a new line, and is broken if it is too long.
        if lines[-1]:
            lines.append("")
        for char in word:
            if lines[-1] and text_width(lines[-1] + char, size) > width:
                lines.append("")
            lines[-1] += char
    if len(lines) > max_lines:
        last_line = clipped_text(f"{lines[max_lines - 1]}…", width, size)
        lines = [*lines[: max_lines - 1], last_line]
    return lines


def clipped_text(text: str, width: float, size: float = 12) -> str:
    """Return a text on one line; a text wider than the line is cut and ends in ``…``.

    Args:
        text: The text.
        width: The width of the line.
        size: The size of the font.
    """
    text = one_line(text)
    if text_width(text, size) <= width:
        return text
    text = text.rstrip("…")
    while text and text_width(f"{text}…", size) > width:
        text = text[:-1]
    return f"{text.rstrip()}…"


def number(value: float) -> str:
    """Return a coordinate as text with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def on_shade(shade: float) -> str:
    """Return the CSS classes of text on a background of this darkness, from 0 to 1."""
    return "v-s v-on" if shade > 0.72 else "v-s v-mid" if shade > 0.56 else "v-s"


@dataclass(slots=True)
class Drawing:
    """Shapes on a canvas of ``width`` × ``height`` user units, in the order of drawing."""

    width: float
    height: float = 0
    parts: list[str] = field(default_factory=list)

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        css_class: str,
        *,
        tip: str = "",
        opacity: float | None = None,
        radius: float = 0,
    ) -> None:
        """Add a rectangle.

        Args:
            x: Its left edge.
            y: Its upper edge.
            width: Its width.
            height: Its height.
            css_class: The CSS class of its style.
            tip: The tooltip.
            opacity: The opacity of its fill; None for the style's.
            radius: The radius of its corners.
        """
        attributes = "" if opacity is None else f' fill-opacity="{number(opacity)}"'
        attributes += f' rx="{number(radius)}"' if radius else ""
        box = (
            f'x="{number(x)}" y="{number(y)}" width="{number(max(width, 0))}" '
            f'height="{number(height)}"'
        )
        end = f"><title>{escaped(tip)}</title></rect>" if tip else "/>"
        self.parts.append(f'<rect class="{css_class}" {box}{attributes}{end}')

    def line(self, x: float, y: float, to_x: float, to_y: float, css_class: str) -> None:
        """Add a straight line.

        Args:
            x: The x of its start.
            y: The y of its start.
            to_x: The x of its end.
            to_y: The y of its end.
            css_class: The CSS class of its style.
        """
        self.parts.append(
            f'<line class="{css_class}" x1="{number(x)}" y1="{number(y)}" '
            f'x2="{number(to_x)}" y2="{number(to_y)}"/>'
        )

    def dot(self, x: float, y: float, radius: float) -> None:
        """Add a filled circle.

        Args:
            x: The x of its centre.
            y: The y of its centre.
            radius: Its radius.
        """
        self.parts.append(
            f'<circle class="v-dot" cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"/>'
        )

    def text(
        self, x: float, y: float, text: str, css_class: str = "", anchor: Anchor = "start"
    ) -> None:
        """Add a text on one line.

        Args:
            x: The x of its anchor.
            y: The y of its baseline.
            text: The text; nothing is added if it is empty.
            css_class: The CSS class of its style.
            anchor: The part of the text at ``x``.
        """
        if not text:
            return
        attribute = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self.parts.append(
            f'<text class="v-t {css_class}" x="{number(x)}" y="{number(y)}"{attribute}>'
            f"{escaped(text)}</text>"
        )

    def lines(
        self, x: float, y: float, lines: list[str], css_class: str = "", *, step: float = 14
    ) -> None:
        """Add lines of text.

        Args:
            x: The x of their start.
            y: The y of the first baseline.
            lines: The lines.
            css_class: The CSS class of their style.
            step: The distance of two baselines.
        """
        for line_number, line in enumerate(lines):
            self.text(x, y + line_number * step, line, css_class)

    def interval(self, low: float, high: float, y: float, *, set_off: bool = True) -> None:
        """Add a horizontal interval with ends.

        Args:
            low: The x of the lower end.
            high: The x of the higher end.
            y: The y of the interval.
            set_off: Whether to draw a wider line in the colour of the background first, to contrast
                with bars.
        """
        if set_off:
            self.line(low - 1, y, high + 1, y, "v-under")
        self.line(low, y, high, y, "v-end")
        for x in (low, high):
            self.line(x, y - 3, x, y + 3, "v-end")


def inline_svg(chart: Chart) -> str:
    """Return a chart as an element of an HTML page, which must have the styles of its classes."""
    class_attribute = ' class="wide"' if chart.width > WIDTH else ""
    escaped_id = escaped(chart.id)
    return (
        f'<svg{class_attribute} viewBox="0 0 {number(chart.width)} {number(chart.height)}" '
        f'role="img" aria-labelledby="{escaped_id}-t {escaped_id}-d">'
        f'<title id="{escaped_id}-t">{escaped(chart.title)}</title>'
        f'<desc id="{escaped_id}-d">{escaped(chart.note)}</desc>'
        f"{''.join(chart.parts)}</svg>"
    )


def standalone_svg(chart: Chart, bare: bool = False) -> str:
    """Return a chart as the text of an SVG file, on white.

    Args:
        chart: The chart.
        bare: Whether to leave out the visible title and note, for a paper with its own. Both stay
            as texts for screen readers.
    """
    margin = 0 if bare else _MARGIN
    width = chart.width + 2 * margin
    frame = Drawing(width)
    heading = [] if bare else wrapped_lines(chart.title, chart.width, _TITLE_SIZE)
    note = [] if bare else wrapped_lines(chart.note, chart.width, 10.5, max_lines=8)
    top = 0.0 if bare else margin + 20 * len(heading) + 6
    height = chart.height if bare else top + chart.height + 12 + 14 * len(note) + margin
    frame.rect(0, 0, width, height, "v-paper")
    frame.lines(margin, margin + 12, heading, "v-h", step=20)
    frame.lines(margin, top + chart.height + 18, note, "v-s v-m")
    body = "\n".join([*frame.parts, f'<g transform="translate({margin} {number(top)})">'])
    shapes = "\n".join(chart.parts)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<!-- {MARK} -->\n"
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{number(width)}" '
        f'height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}" role="img" '
        f'aria-labelledby="t d">\n<title id="t">{escaped(chart.title)}</title>\n'
        f'<desc id="d">{escaped(chart.note)}</desc>\n'
        f"<style>\n{figure_style(LIGHT)}\n</style>\n{body}\n{shapes}\n</g>\n</svg>\n"
    )
