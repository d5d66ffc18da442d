"""The style files of screens, the sizes at which layouts change, and the colours of drawn lines.

Paths are absolute, because Textual would search beside the class. Lines are drawn by hand, so they
cannot use half-transparent colours and ``$text``. Such colours are therefore computed once per
theme: mixed grounds, and text colours with the contrast ``MIN_CONTRAST`` on every ground.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from textual.color import BLACK, WHITE, Color

_FOLDER: Final = Path(__file__).parent

ADJUDICATE: Final = _FOLDER / "adjudicate" / "adjudicate.tcss"
ANNOTATE: Final = _FOLDER / "annotate" / "annotate.tcss"
BASE_SCREEN: Final = _FOLDER / "base_screen.tcss"
DIALOGS: Final = _FOLDER / "dialogs" / "dialogs.tcss"
FIRST_SPANS: Final = _FOLDER / "trace_view" / "first_spans.tcss"
GUIDELINES: Final = _FOLDER / "study" / "guidelines.tcss"
LIBRARY: Final = _FOLDER / "library" / "library.tcss"
OPEN_CODES: Final = _FOLDER / "open_codes.tcss"
REPORTS: Final = _FOLDER / "reports" / "reports.tcss"
RUNS: Final = _FOLDER / "judge_runs" / "runs.tcss"
SIDE_BY_SIDE: Final = _FOLDER / "side_by_side.tcss"
STUDY: Final = _FOLDER / "study" / "study.tcss"

WIDE: Final = 100
"""The least width at which the taxonomy is beside the timeline."""

WIDEST: Final = 180
"""The least width at which the taxonomy has space for the longest names of modes."""

HIGH: Final = 20
"""The least height at which a trace has space for more than its rows and some text."""


MIN_CONTRAST: Final = 4.5
"""The least contrast of text on any ground (WCAG 2.2, success criterion 1.4.3)."""

MIN_CONTRAST_SHARE: Final = 0.72
"""The share of the background's contrast that a mixed ground keeps.

It keeps quiet text and hues distinguishable on the ground.
"""

MIXED: Final[Mapping[str, tuple[str, float]]] = MappingProxyType(
    {
        "cursor-line": ("foreground", 0.17),
        "range-line": ("primary", 0.38),
        "success-muted": ("success", 0.3),
        "warning-muted": ("warning", 0.3),
    }
)
"""The grounds that are mixed: the colour to mix into the background, and its largest share."""

THEME_GROUNDS: Final = ("background", "surface", "panel")
"""The grounds that a theme has."""

GROUNDS: Final = (*THEME_GROUNDS, *MIXED)
"""All grounds of text."""

HUES: Final = (
    *("foreground", "text-primary", "text-secondary"),
    *("text-accent", "text-success", "text-warning", "text-error"),
)
"""The text colours of a theme. They are made stronger if needed."""

SHADES: Final[Mapping[str, float]] = MappingProxyType({"ink": 0.94, "quiet": 0.62, "faint": 0.38})
"""The text colours without a hue, as the least position between background and strongest text."""

EDGE: Final = 0.3
"""The colour of borders of panes without focus, as a position between background and foreground."""

TEXTS: Final = (*HUES, *SHADES)
"""All text colours."""

_LEFT_TO_THE_TERMINAL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ink": "ansi_default",
        "quiet": "ansi_default",
        "faint": "ansi_default",
        "edge": "ansi_bright_black",
        "cursor-line": "ansi_bright_black",
        "range-line": "ansi_bright_black",
        "success-muted": "ansi_bright_black",
        "warning-muted": "ansi_bright_black",
    }
)
"""The colours for a theme that leaves them to the terminal, where nothing can be mixed.

No other of the sixteen colours is legible on the cursor's line in dark and light terminals.
"""


def luminance(colour: Color) -> float:
    """Return the relative luminance of a colour (WCAG), from 0 to 1."""
    red, green, blue = (
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in colour.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: Color, second: Color) -> float:
    """Return the contrast of two colours, from 1 to 21, in either order.

    Args:
        first: A colour.
        second: The other colour.
    """
    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def line_colours(theme: Mapping[str, str]) -> Mapping[str, str]:
    """Return the CSS variables for drawn lines, computed from the colours of a theme.

    Args:
        theme: The CSS variables of a theme.
    """
    names = {*THEME_GROUNDS, *HUES, *(name for name, _ in MIXED.values())}
    return _line_colours(tuple(sorted((name, theme[name]) for name in names)))


@lru_cache(maxsize=32)
def _line_colours(theme: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """Compute the CSS variables for drawn lines from the names and values of a theme's colours.

    The result is cached, because Textual asks for it each time it reads styles.
    """
    theme_colours = {name: Color.parse(value) for name, value in theme}
    background = theme_colours["background"]
    foreground = theme_colours["foreground"]
    if background.ansi is not None or foreground.ansi is not None:
        return _LEFT_TO_THE_TERMINAL
    strongest_text = _strongest_text(background)
    least_contrast = MIN_CONTRAST_SHARE * contrast(strongest_text, background)
    computed: dict[str, Color] = {}
    for name, (mixed_name, most_share) in MIXED.items():
        mixed_colour = theme_colours[mixed_name]
        share = _mixed_share(background, mixed_colour, most_share, least_contrast)
        computed[name] = background.blend(mixed_colour, share, alpha=1)
    # The ground with the least contrast is the hardest, so it decides for all.
    grounds = [computed.get(name) or theme_colours[name] for name in GROUNDS]
    hardest_ground = min(grounds, key=lambda ground: contrast(strongest_text, ground))
    for name in HUES:
        hue = theme_colours[name]
        computed[name] = _made_legible(background.blend(hue, hue.a, alpha=1), hardest_ground)
    for name, share in SHADES.items():
        computed[name] = _made_legible(background.blend(foreground, share, alpha=1), hardest_ground)
    computed["edge"] = background.blend(foreground, EDGE, alpha=1)
    return MappingProxyType({name: colour.hex6 for name, colour in computed.items()})


def _mixed_share(
    background: Color, mixed_colour: Color, share: float, least_contrast: float
) -> float:
    """Return the largest share of a colour in a background with enough contrast for text.

    It is at most ``share``. About 0.05 is always allowed, because a smaller share would be
    invisible.
    """
    strongest_text = _strongest_text(background)
    while share > 0.05:
        if contrast(strongest_text, background.blend(mixed_colour, share)) >= least_contrast:
            break
        share *= 0.9
    return share


def _strongest_text(ground: Color) -> Color:
    """Return black or white, whichever has more contrast on a ground."""
    return max(WHITE, BLACK, key=lambda ink: contrast(ink, ground))


def _made_legible(colour: Color, ground: Color) -> Color:
    """Return a colour, moved towards black or white until it is legible on a ground."""
    strongest_text = _strongest_text(ground)
    for step in range(20):
        stronger = colour.blend(strongest_text, step / 20, alpha=1)
        if contrast(stronger, ground) >= MIN_CONTRAST:
            return stronger
    return colour.blend(strongest_text, 1.0, alpha=1)
