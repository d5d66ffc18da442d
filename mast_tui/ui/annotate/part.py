"""A part of the annotate screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mast_tui.ui.annotate.screen import AnnotateScreen


class ScreenPart:
    """A part of the annotate screen. It knows the panes that most parts need."""

    def __init__(self, screen: AnnotateScreen) -> None:
        """Keep the screen and its panes.

        The timeline, hints and state of the screen must exist.
        """
        self._screen = screen
        self._state = screen.state
        self._timeline = screen.timeline
        self._hints = screen.hints
        self._modes = screen.modes
        self._key_of = screen.mast.key_of
