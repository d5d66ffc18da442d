"""The app: it holds what all screens share, and opens them. Screens do the rest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from mast_tui.safe_text import one_line
from mast_tui.traces.model import Trace
from mast_tui.ui.actions import Where, bindings_for, textual_keymap
from mast_tui.ui.background import ListsTraces
from mast_tui.ui.colours import line_colours
from mast_tui.ui.courtesy import take_short_turns
from mast_tui.ui.keys_file import Configuration, configuration_path, read_configuration
from mast_tui.ui.options import AppOptions
from mast_tui.ui.read_ahead import ReadAhead
from mast_tui.ui.services.writes import Holds
from mast_tui.ui.trace_queue import TraceQueue

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.ui.desk import Desk
    from mast_tui.ui.screens.annotate import AnnotateScreen


class MastApp(TraceQueue):
    """One workspace, one annotator, and the traces that were named on the command line."""

    TITLE = "mast_tui"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "f24"
    """The palette's keys stand in the registry; this one is never pressed."""
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(Where.EVERYWHERE)

    def __init__(self, options: AppOptions, taxonomy: Taxonomy | None = None) -> None:
        """Without a ``taxonomy`` it is MAST, which is read when it is asked for."""
        super().__init__()
        self.read_ahead = ReadAhead(options)
        self.options = options
        self._taxonomy = taxonomy
        self.configuration: Configuration = read_configuration(configuration_path())
        self.desk: Desk | None = None
        self._at_desk: list[Callable[[Desk], None]] = []

    @property
    def taxonomy(self) -> Taxonomy:
        """The taxonomy that is labelled with."""
        if self._taxonomy is None:
            from mast_tui.taxonomy.loader import load_mast

            self._taxonomy = load_mast()
        return self._taxonomy

    def on_mount(self) -> None:
        """Set keys and colours; the first screen follows, and what is slow after its frame."""
        if self.configuration.theme in self.available_themes:
            self.theme = self.configuration.theme
        self.set_keymap(textual_keymap(self.keys_set))
        self.begin()

    def get_css_variables(self) -> dict[str, str]:
        """The theme's colours, and those that lines are drawn in."""
        variables = super().get_css_variables()
        return {**variables, **line_colours(variables)}

    # Screens

    def make_annotate(self) -> AnnotateScreen:
        """An annotate screen without a trace yet."""
        from mast_tui.ui.screens.annotate import AnnotateScreen

        return AnnotateScreen(self.taxonomy)

    def open_trace(self, trace: Trace) -> None:
        """Show a trace in the annotate screen, in the one that is open where there is one."""
        from mast_tui.ui.screens.annotate import AnnotateScreen

        trace = self.catalog.opened(trace)
        current = self.screen
        if isinstance(current, AnnotateScreen):
            current.show_trace(trace)
            self.seat(current)
        else:
            opened = self.make_annotate()
            opened.show_trace(trace)
            self.push_screen(opened)
            self.seat(opened)

    def seat(self, screen: AnnotateScreen) -> None:
        """Give an annotate screen its session, as soon as the workspace is open."""

        trace = screen.trace
        if trace is None:
            return

        def sit(desk: Desk) -> None:
            session = self.guarded(lambda: desk.open(trace))
            if session is not None:
                screen.sit(session)

        self.when_ready(lambda desk: self.writes.do(partial(sit, desk), Holds.NOTHING))

    def when_ready(self, work: Callable[[Desk], None]) -> None:
        """Do ``work`` with the desk, now or once the workspace is open, in order."""
        if self.desk is not None:
            work(self.desk)
        else:
            self._at_desk.append(work)

    def desk_ready(self, desk: Desk) -> None:
        """The workspace is open and somebody sits at it."""
        self.desk = desk
        self.count_finished()
        waiting, self._at_desk = self._at_desk, []
        for step in waiting:
            step(desk)

    def traces_found(self) -> None:
        """Show what was found: the one trace of a single file, else the library."""
        from mast_tui.ui.screens.annotate import AnnotateScreen

        screens = self.screen_stack
        waiting = next((s for s in screens if isinstance(s, AnnotateScreen) and not s.trace), None)
        if waiting is not None:
            if len(self.catalog.traces) == 1:
                waiting.show_trace(next(iter(self.catalog.traces.values())))
                self.seat(waiting)
            else:
                self.action_library()
        for screen in screens:
            if isinstance(screen, ListsTraces):
                screen.refresh_rows()


def run_app(options: AppOptions) -> int:
    """Run the app to its end; the exit code."""
    taxonomy = None
    if options.taxonomy is not None:
        import sys

        from mast_tui.taxonomy.loader import TaxonomyError, load_taxonomy

        try:
            taxonomy = load_taxonomy(options.taxonomy)
        except TaxonomyError as error:
            print(f"mast-tui: {one_line(str(error))}", file=sys.stderr)
            return 1
    take_short_turns()
    app = MastApp(options, taxonomy)
    try:
        app.run()
    finally:
        app.close_workspace()
    return 0
