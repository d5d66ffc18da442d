"""The way to the first screen: the first spans are there before most of the app is imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.screen import Screen

from mast_tui.ui.background import PATIENCE
from mast_tui.ui.context import Destination, ShowLibrary
from mast_tui.ui.garbage import COLLECT_AFTER, collect_again
from mast_tui.ui.services.judging import Judging
from mast_tui.ui.sizes import WIDE
from mast_tui.ui.styles import ANNOTATE, FIRST_SPANS
from mast_tui.ui.titles import trace_title
from mast_tui.ui.widgets.title_bar import TitleBar

if TYPE_CHECKING:
    from mast_tui.ui.annotate.screen import AnnotateScreen


class FirstScreen(Judging):
    """Shows what is there at once, and opens the screen that takes its place."""

    CSS_PATH = FIRST_SPANS

    opening = True
    """Whether the first screen is not on screen yet."""

    def compose(self) -> ComposeResult:
        """The first spans of a single file, where they are there; a screen takes their place."""
        early = self.prefetch.report(PATIENCE)
        if early is None or len(early.traces) != 1 or not len(early.traces[0]):
            return
        from mast_tui.ui.trace_view.first_spans import BelowFirstSpans, FirstSpans

        trace, wide = early.traces[0], self.size.width >= WIDE
        title = TitleBar()
        title.show(tuple(trace_title(trace)), (self.waiting_words(),))
        yield title
        yield FirstSpans(trace, wide=wide)
        yield BelowFirstSpans(wide=wide)

    def _open_first_screen(self) -> None:
        self.add_styles(ANNOTATE)
        if self.prefetch.single:
            self.push_screen(self.make_annotate())
        else:
            self.go(ShowLibrary())
        self.begin_reading()
        self.let_keys_in()
        self.call_after_refresh(self._first_screen_open)

    def _first_screen_open(self) -> None:
        self.opening = False
        for waiting in self.query("FirstSpans, BelowFirstSpans, TitleBar"):
            waiting.remove()
        self.open_workspace()
        self.set_timer(COLLECT_AFTER, collect_again)

    def add_styles(self, path: Path) -> None:
        """Take in another file of styles.

        Textual would parse all others again with it, and style every widget anew.
        """
        if not self.stylesheet.has_source(str(path)):
            self.stylesheet.add_source(path.read_text("utf-8"), (str(path), ""))

    def _load_screen_css(self, screen: Screen[object]) -> None:
        for path in screen.css_path:
            self.add_styles(Path(path))
        super()._load_screen_css(screen)

    def begin(self) -> None:
        """Open the first screen, after a frame where that shows spans already."""
        if self.query("FirstSpans"):
            # They are on screen before anything else is imported.
            self.call_after_refresh(self._open_first_screen)
        else:
            self.call_later(self._open_first_screen)

    def go(self, destination: Destination) -> None:
        """Show another screen."""
        raise NotImplementedError

    def make_annotate(self) -> AnnotateScreen:
        """An annotate screen without a trace yet."""
        raise NotImplementedError
