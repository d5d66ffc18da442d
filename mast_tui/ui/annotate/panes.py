"""How the window is divided: between timeline and text, or all for the text of one span."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mast_tui.ui.services.view_settings import (
    LEAST_SHARE,
    MOST_SHARE,
    SHARE,
    ViewSettings,
    remembered_settings,
)
from mast_tui.ui.trace_view.timeline import Timeline

if TYPE_CHECKING:
    from mast_tui.ui.annotate.screen import AnnotateScreen

STEP: Final = 10
SHARES: Final = (SHARE, 60, MOST_SHARE, LEAST_SHARE)
"""Through which one key goes round."""


class Panes:
    """Divides the screen, and remembers how for the next start.

    While one reads, the text of a span has the window, with the suggestion under it where there
    is one; all keys go on to work on the span under the timeline's cursor.
    """

    def __init__(self, screen: AnnotateScreen) -> None:
        self._screen = screen
        self._settings = ViewSettings()

    def restore(self) -> None:
        """Divide the screen as it was at the end of the last start."""
        self._settings = remembered_settings()
        self._divide()
        self._screen.timeline.show_bar(self._settings.time_bar)

    # The text alone

    @property
    def reading(self) -> bool:
        """Whether the text of a span has the window."""
        return self._screen.has_class("-reading")

    def read(self) -> None:
        """Give the window to the text."""
        self._screen.add_class("-reading")
        self._screen.set_focus(self._screen.span_view)
        self._screen.show_span()
        key_of = self._screen.context.key_of
        self._screen.hints.say(
            f"{key_of('annotate.down')} {key_of('annotate.up')} scroll · "
            f"{key_of('annotate.next_span')} {key_of('annotate.previous_span')} other spans · "
            f"{key_of('annotate.read')} goes back"
        )

    def leave(self) -> bool:
        """Go back to the timeline, which stands where it stood; False where one is there."""
        if not self.reading:
            return False
        self._screen.remove_class("-reading")
        timeline = self._screen.timeline
        self._screen.call_after_refresh(self._back, timeline)
        return True

    def _back(self, timeline: Timeline) -> None:
        if timeline.is_attached and not self.reading:
            self._screen.set_focus(timeline)
            timeline.show_row(timeline.cursor, centre=True)
            self._screen.show_span()

    # The two side by side

    def move_split(self, step: int) -> None:
        """Give the text more of the height, or less."""
        share = self._settings.text_share + step * STEP
        self._set_share(share // STEP * STEP if step > 0 else -(-share // STEP) * STEP)

    def next_split(self) -> None:
        """Give the text more of the height; after most of it, little."""
        share = self._settings.text_share
        larger = [one for one in SHARES if one > share]
        self._set_share(min(larger) if larger else LEAST_SHARE)

    def drag_split(self, y: int) -> None:
        """Put the border above the text on this line of the screen."""
        top, bottom = self._screen.timeline.region.y, self._screen.span_view.region.bottom
        if bottom > top:
            self._set_share(round(100 * (bottom - y) / (bottom - top)))

    def _set_share(self, share: int) -> None:
        if self.reading:
            key = self._screen.context.key_of("annotate.read")
            self._screen.hints.say(f"The text has the window; {key} goes back")
            return
        share = max(LEAST_SHARE, min(share, MOST_SHARE))
        if share != self._settings.text_share:
            self._settings = self._settings._replace(text_share=share)
            self._settings.remember()
            self._divide()
        self._screen.hints.say(f"{share} % of the height for the text")

    def _divide(self) -> None:
        share = self._settings.text_share
        self._screen.timeline.styles.height = f"{100 - share}fr"
        self._screen.span_view.styles.height = f"{share}fr"

    # The time bar

    def toggle_bar(self) -> None:
        """Show in each row when the step was, or leave its columns to the text."""
        shown = not self._settings.time_bar
        self._settings = self._settings._replace(time_bar=shown)
        self._settings.remember()
        self._screen.timeline.show_bar(shown)
        where = "shown where the timeline is wide and the trace has times" if shown else "hidden"
        self._screen.hints.say(f"The bar of when each step was is {where}")
