"""The few colours that lines are drawn in, mixed from whatever theme is chosen.

Lines are drawn by hand, and a half-transparent colour cannot be mixed with what is under it
there; so the quiet ones are mixed here, once a theme.
"""

from __future__ import annotations

from collections.abc import Mapping

from textual.color import Color


def line_colours(theme: Mapping[str, str]) -> dict[str, str]:
    """CSS variables for drawn lines: ``quiet``, ``faint``, ``cursor-line``, ``range-line``.

    ``theme`` holds at least ``background``, ``foreground`` and ``primary``. Where the theme leaves
    colours to the terminal there is nothing to mix, and its own colours are taken.
    """
    background = Color.parse(theme["background"])
    foreground = Color.parse(theme["foreground"])
    primary = Color.parse(theme["primary"])
    if background.ansi is not None or foreground.ansi is not None:
        return {
            "quiet": "ansi_bright_black",
            "faint": "ansi_bright_black",
            "cursor-line": "ansi_bright_black",
            "range-line": "ansi_blue",
        }
    return {
        "quiet": background.blend(foreground, 0.62).hex6,
        "faint": background.blend(foreground, 0.38).hex6,
        "cursor-line": background.blend(foreground, 0.17).hex6,
        "range-line": background.blend(primary, 0.38).hex6,
    }
