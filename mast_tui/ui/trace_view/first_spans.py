"""The first spans of a trace, shown while the annotate screen is being set up."""

from __future__ import annotations

from textual.geometry import Size
from textual.widget import Widget

from mast_tui.traces.model import Trace
from mast_tui.ui.services.view_settings import remembered_settings
from mast_tui.ui.styles import WIDEST
from mast_tui.ui.trace_view.overview import Overview
from mast_tui.ui.trace_view.timeline import INDEXED_AT_ONCE, TimelineLines


class FirstSpans(TimelineLines, can_focus=False):
    """The top of a timeline, shown until the timeline of the annotate screen replaces it."""

    def __init__(self, trace: Trace, screen: Size, *, wide: bool) -> None:
        """Index the first spans of a trace, and show them for a size of the screen."""
        super().__init__()
        self.set_class(not wide, "-narrow")
        self.trace = trace
        self.border_title = "Timeline"
        self.rows.grow(len(trace))
        self.background_index.step(trace, INDEXED_AT_ONCE)
        if trace.loaded.complete:
            self.background_index.include_last_time(trace)
        self.facts = self.background_index.facts
        settings = remembered_settings()
        self._shows_bar = settings.time_bar
        text_share = settings.share(screen.height)  # the height of ``BelowFirstSpans``
        self.styles.height = f"{100 - text_share}fr"


class FirstStrip(Overview):
    """The overview beside the first spans, until the annotate screen shows its own."""

    def __init__(self, spans: FirstSpans, screen: Size, *, wide: bool) -> None:
        """Show the overview of the first spans for a size of the screen."""
        super().__init__(id="first-strip")
        self.set_class(not wide, "-narrow")
        self.set_class(screen.width >= WIDEST, "-widest")
        self.styles.height = screen.height - 2  # without the first line and the last
        assert spans.trace is not None
        self.show_trace(spans.trace, spans.background_index)


class BelowFirstSpans(Widget):
    """Empty space for the text of a span and, on a narrow screen, for a suggestion."""

    def __init__(self, screen: Size, *, wide: bool) -> None:
        super().__init__()
        self.set_class(not wide, "-narrow")
        self.styles.height = f"{remembered_settings().share(screen.height)}fr"

    def render(self) -> str:
        """Return nothing, because a widget shows its name by default."""
        return ""
