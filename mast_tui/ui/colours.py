"""The few colours that lines are drawn in, made of whatever theme is chosen, and always legible.

Lines are drawn by hand: a half-transparent colour cannot be mixed with what is under it there, and
one that Textual would choose by what is under it (``$text``) is not known. So both are worked out
here, once a theme: grounds that stay apart from the background, and texts that keep ``LEAST``
against every one of these grounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from textual.color import BLACK, WHITE, Color

LEAST: Final = 4.5
"""The contrast that text has on any ground (WCAG 2.2, success criterion 1.4.3)."""

ROOM: Final = 0.72
"""How much of the background's contrast a ground of our own keeps at least, so that on it, too,
quiet text is quieter than the rest and hues can be told apart."""

MIXED: Final[Mapping[str, tuple[str, float]]] = MappingProxyType(
    {
        "cursor-line": ("foreground", 0.17),
        "range-line": ("primary", 0.38),
        "success-muted": ("success", 0.3),
        "warning-muted": ("warning", 0.3),
    }
)
"""Grounds of our own: which colour is mixed into the background, and how much of it at most."""

GROUNDS: Final = ("background", "surface", "panel", *MIXED)
"""All that text stands on."""

HUES: Final = (
    *("foreground", "text-primary", "text-secondary"),
    *("text-accent", "text-success", "text-warning", "text-error"),
)
"""A theme's own colours for text, which are made stronger where they have to be."""

SHADES: Final[Mapping[str, float]] = MappingProxyType({"ink": 0.94, "quiet": 0.62, "faint": 0.38})
"""Texts without a hue: how far each is at least from the background to the strongest text."""

EDGE: Final = 0.3
"""How far from the background the lines around panes are that have not the keys."""

TEXTS: Final = (*HUES, *SHADES)
"""All that text may be drawn in."""

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
"""What a theme has that leaves its colours to the terminal: there is nothing to mix, and no other
colour of sixteen can be read on the cursor's line in dark terminals and light ones."""


def luminance(colour: Color) -> float:
    """How bright a colour is, from 0 to 1 (WCAG's relative luminance)."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in colour.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Color, other: Color) -> float:
    """The contrast of two colours, from 1 to 21, in either order."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def line_colours(theme: Mapping[str, str]) -> Mapping[str, str]:
    """CSS variables for drawn lines: those of ``MIXED``, ``HUES`` and ``SHADES``, and ``edge``.

    Args:
        theme: The variables of a theme.
    """
    names = {*GROUNDS[:3], *HUES, *(name for name, _ in MIXED.values())}
    return _line_colours(tuple(sorted((name, theme[name]) for name in names)))


@lru_cache(maxsize=32)
def _line_colours(theme: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    # Textual asks for variables each time that it reads styles; looks over themes come back.
    known = {name: Color.parse(value) for name, value in theme}
    background, foreground = known["background"], known["foreground"]
    if background.ansi is not None or foreground.ansi is not None:
        return _LEFT_TO_THE_TERMINAL
    strongest = max(WHITE, BLACK, key=lambda ink: contrast(ink, background))
    least = ROOM * contrast(strongest, background)
    made: dict[str, Color] = {}
    for name, (colour, share) in MIXED.items():
        while contrast(strongest, background.blend(known[colour], share)) < least and share > 0.05:
            share *= 0.9
        made[name] = background.blend(known[colour], share, alpha=1)
    grounds = [made.get(name) or known[name] for name in GROUNDS]
    hardest = min(grounds, key=lambda ground: contrast(strongest, ground))
    for name in HUES:
        made[name] = _legible(background.blend(known[name], known[name].a, alpha=1), hardest)
    for name, share in SHADES.items():
        made[name] = _legible(background.blend(foreground, share, alpha=1), hardest)
    made["edge"] = background.blend(foreground, EDGE, alpha=1)
    return MappingProxyType({name: colour.hex6 for name, colour in made.items()})


def _legible(colour: Color, ground: Color) -> Color:
    """The colour, moved towards black or white as far as it takes to be read on a ground."""
    strongest = max(WHITE, BLACK, key=lambda ink: contrast(ink, ground))
    return next(
        stronger
        for part in range(21)
        if contrast(stronger := colour.blend(strongest, part / 20, alpha=1), ground) >= LEAST
        or part == 20
    )
