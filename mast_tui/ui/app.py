"""The app: it holds what all screens share, and opens them. Screens do the rest."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.console import RenderableType
from textual.app import SystemCommand
from textual.binding import BindingType
from textual.message import Message
from textual.screen import Screen
from textual.worker import WorkerFailed, get_current_worker

from mast_tui.configuration import Configuration, read_configuration
from mast_tui.safe_text import one_line
from mast_tui.traces.model import Trace
from mast_tui.ui.actions.keymap import checked
from mast_tui.ui.actions.registry import Where, actions_for, bindings_for, textual_keymap
from mast_tui.ui.background import ListsTraces, WorkspaceRefused
from mast_tui.ui.colours import line_colours
from mast_tui.ui.context import (
    Destination,
    ShowAdjudication,
    ShowAgreement,
    ShowDisagreement,
    ShowDisagreements,
    ShowGuidelines,
    ShowLibrary,
    ShowRuns,
    ShowSignatures,
    ShowStudy,
    ShowTrace,
    TraceLocation,
)
from mast_tui.ui.input_priority import take_short_turns
from mast_tui.ui.options import AppOptions
from mast_tui.ui.services.judging import Judged
from mast_tui.ui.services.prefetch import Prefetch
from mast_tui.ui.services.trace_queue import TraceQueue
from mast_tui.ui.services.trace_scan import FilesRead
from mast_tui.ui.services.workspace_writer import Holds
from mast_tui.ui.signals import EndingSignals

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.ui.annotate.screen import AnnotateScreen
    from mast_tui.ui.services.open_workspace import OpenWorkspace


SCREENS: Final[Mapping[type[object], str]] = {
    ShowAdjudication: "mast_tui.ui.adjudicate.screen:AdjudicateScreen",
    ShowDisagreements: "mast_tui.ui.adjudicate.screen:AdjudicateScreen",
    ShowDisagreement: "mast_tui.ui.adjudicate.screen:AdjudicateScreen",
    ShowAgreement: "mast_tui.ui.reports.screen:AgreementScreen",
    ShowSignatures: "mast_tui.ui.reports.screen:SignaturesScreen",
    ShowRuns: "mast_tui.ui.judge_runs.runs:RunsScreen",
    ShowStudy: "mast_tui.ui.study.screen:StudyScreen",
    ShowGuidelines: "mast_tui.ui.study.guidelines:GuidelinesScreen",
}
"""Where the screens are; each is imported when it is first shown."""


def make_screen(destination: Destination) -> Screen[None]:
    """Make the screen that is meant, with what its destination says of it."""
    module, _, name = SCREENS[type(destination)].partition(":")
    screen: type[Screen[None]] = getattr(import_module(module), name)
    return screen(**{one.name: getattr(destination, one.name) for one in fields(destination)})


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
        self.prefetch = Prefetch(options)
        self.options = options
        self._taxonomy = taxonomy
        self.configuration: Configuration = checked(read_configuration())
        self.opened: OpenWorkspace | None = None
        self.crash: str | None = None
        """What has ended the app though nobody expected it, in words, with the log's place."""
        self._when_ready: list[Callable[[OpenWorkspace], None]] = []

    @property
    def taxonomy(self) -> Taxonomy:
        """The taxonomy that is labelled with."""
        if self._taxonomy is None:
            from mast_tui.taxonomy.loader import load_mast

            self._taxonomy = load_mast()
        return self._taxonomy

    def on_mount(self) -> None:
        """Set keys and colours; the first screen follows, and what is slow after its frame."""
        if self.configuration.theme is not None:
            self.theme = self.configuration.theme
        self.set_keymap(textual_keymap(self.keys_set))
        self.begin()

    def get_css_variables(self) -> dict[str, str]:
        """The theme's colours, and those that lines are drawn in."""
        variables = super().get_css_variables()
        return {**variables, **line_colours(variables)}

    # Screens

    def go(self, destination: Destination) -> None:
        """Show another screen; an open trace takes note that it is left for a while."""
        match destination:
            case ShowLibrary():
                self._show_library()
            case ShowTrace(trace, at):
                self._show_trace(trace, at)
            case ShowDisagreements() | ShowDisagreement() | ShowGuidelines():
                self._leave_trace()
                self.push_screen(make_screen(destination))
            case _:
                self.show_room(make_screen(destination))

    def show_room(self, screen: Screen[None]) -> None:
        """Show one of the main screens; another that is open gives way, an open trace stays."""
        from mast_tui.ui.screens.base_screen import BaseScreen

        while isinstance(self.screen, BaseScreen):
            self.pop_screen()
        self._leave_trace()
        self.push_screen(screen)

    def _leave_trace(self) -> None:
        from mast_tui.ui.annotate.screen import AnnotateScreen

        if isinstance(self.screen, AnnotateScreen):
            self.screen.leave_for_a_while()

    def _show_library(self) -> None:
        from mast_tui.ui.library.screen import LibraryScreen

        while len(self.screen_stack) > 1:
            if isinstance(self.screen, LibraryScreen):
                self.screen.refresh_rows()
                return
            self._leave_trace()
            self.pop_screen()
        self.push_screen(LibraryScreen())

    def make_annotate(self) -> AnnotateScreen:
        """An annotate screen without a trace yet."""
        from mast_tui.ui.annotate.screen import AnnotateScreen

        return AnnotateScreen(self.taxonomy)

    def _show_trace(self, trace: Trace, at: TraceLocation | None) -> None:
        from mast_tui.ui.annotate.screen import AnnotateScreen

        trace = self.catalog.opened(trace)
        current = self.screen
        screen = current if isinstance(current, AnnotateScreen) else self.make_annotate()
        screen.show_trace(trace)
        if screen is not current:
            self.push_screen(screen)
        self.attach_session(screen)
        if at is not None:
            screen.call_after_refresh(screen.look_at, at)

    def attach_session(self, screen: AnnotateScreen) -> None:
        """Give an annotate screen its session, as soon as the workspace is open."""
        trace = screen.trace
        if trace is None:
            return

        def attach(opened: OpenWorkspace) -> None:
            session = self.guarded(lambda: opened.open(trace))
            if session is not None:
                screen.attach(session)

        self.when_ready(lambda opened: self.writes.do(partial(attach, opened), Holds.NOTHING))

    def action_library(self) -> None:
        """The library of traces."""
        self.go(ShowLibrary())

    def action_adjudicate(self) -> None:
        """The queue of disagreements."""
        self.go(ShowAdjudication())

    def action_agreement(self) -> None:
        """The agreement per mode."""
        self.go(ShowAgreement())

    def action_signatures(self) -> None:
        """How and why runs fail."""
        self.go(ShowSignatures())

    def action_runs(self) -> None:
        """What the judges have run on."""
        self.go(ShowRuns())

    def action_study(self) -> None:
        """What was set up, and how far everybody is."""
        self.go(ShowStudy())

    def action_guidelines(self) -> None:
        """What was agreed about the mode under the cursor of the open trace's taxonomy, to read."""
        from mast_tui.ui.annotate.screen import AnnotateScreen

        if isinstance(self.screen, AnnotateScreen):
            mode = self.screen.modes.mode or self.taxonomy.modes[0]
            self.go(ShowGuidelines(mode.slug))

    def action_keys_help(self) -> None:
        """All keys of the screen that is open."""
        from mast_tui.ui.dialogs.help import HelpScreen

        where = getattr(self.screen, "where", Where.EVERYWHERE)
        self.push_screen(HelpScreen(where, self.keys_set))

    def action_goto(self) -> None:
        """Go to a number, a key or an action by name."""
        from mast_tui.ui.dialogs.goto import go_somewhere

        go_somewhere(self.screen)

    @property
    def keys_set(self) -> dict[str, tuple[str, ...]]:
        """Keys that the person has set."""
        return dict(self.configuration.keys)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: every action of the open screen and of the whole app."""
        where = getattr(screen, "where", Where.EVERYWHERE)
        for action in (*actions_for(where), *actions_for(Where.EVERYWHERE)):
            if not action.name.startswith(("digit_", "side_")):
                yield SystemCommand(
                    action.help, action.id, lambda command=action.command: self.run_named(command)
                )

    async def run_named(self, command: str) -> None:
        """Run an action of the registry as its key would."""
        await self.screen.run_action(command)

    # The workspace

    def when_ready(self, work: Callable[[OpenWorkspace], None]) -> None:
        """Do ``work`` with the workspace, now or once the workspace is open, in order."""
        if self.opened is not None:
            work(self.opened)
        else:
            self._when_ready.append(work)

    def workspace_ready(self, opened: OpenWorkspace) -> None:
        """The workspace is open, and who works in it is known."""
        self.opened = opened
        self.count_finished()
        waiting, self._when_ready = self._when_ready, []
        for step in waiting:
            step(opened)

    def traces_found(self) -> None:
        """Show what was found: the one trace of a single file, else the library."""
        from mast_tui.ui.annotate.screen import AnnotateScreen

        screens = self.screen_stack
        waiting = next((s for s in screens if isinstance(s, AnnotateScreen) and not s.trace), None)
        if waiting is not None:
            if len(self.catalog.traces) == 1:
                waiting.show_trace(next(iter(self.catalog.traces.values())))
                self.attach_session(waiting)
            else:
                self.go(ShowLibrary())
        for screen in screens:
            if isinstance(screen, ListsTraces):
                screen.refresh_rows()

    def stop_reading(self) -> None:
        """Nobody waits for the one file that was named any more."""
        self.prefetch.stop()

    def action_suspend_process(self) -> None:
        """Stop, with all that runs beside it, until the shell has it go on."""
        driver = self._driver
        if driver is None or not driver.can_suspend:
            return
        if os.getpgrp() == os.getsid(0):
            # No shell would notice that it has stopped, and nothing could have it go on.
            self.notify("No shell has started the app, so nothing could bring it back.")
            return
        self._suspend_signal()
        os.killpg(0, signal.SIGTSTP)  # the driver restores the terminal, and then stops

    # What nobody expected. Textual (8.2) brings all such errors here, and would print them with the
    # values of variables, which hold text of traces; TEXTUAL=debug still has it do so.

    def _handle_exception(self, error: Exception) -> None:
        """Keep a log of an error: one in a worker is told, any other ends the app."""
        if "debug" in self.features:
            super()._handle_exception(error)
            return
        if self._exception is None:  # what run_test raises at its end
            self._exception = error
            self._exception_event.set()
        from mast_tui.ui.crashes import told

        if isinstance(error, WorkerFailed):
            self._worker_failed(told(error.error))
        elif self.crash is None:
            self.crash = told(error)
            self._return_code = 1
            self._close_messages_no_wait()

    def _worker_failed(self, words: str) -> None:
        """Say that work beside the screen broke, to whatever waits for that work too."""
        worker: Any = get_current_worker()
        waiting: dict[str, Message] = {
            "workspace": WorkspaceRefused(words),
            "judge": Judged(f"The judge stopped: {words}", done=True, problem=True),
            "read": FilesRead([], True),
        }
        message = waiting.get(worker.group) if worker.node is self else None
        if message is not None:
            self.post_message(message)
        if not isinstance(message, WorkspaceRefused | Judged):
            self.complain(f"Something went wrong in the background: {words}")

    def panic(self, *renderables: RenderableType) -> None:
        """End the app where Textual has only a traceback to show, not the error it is of."""
        if "debug" in self.features:
            super().panic(*renderables)
        elif self.crash is None:
            from rich.traceback import Traceback

            from mast_tui.ui.crashes import told_of_traceback

            shown = next((one for one in renderables if isinstance(one, Traceback)), None)
            self.crash = "unexpected end" if shown is None else told_of_traceback(shown)
            self._return_code = 1
            self._close_messages_no_wait()


def run_app(options: AppOptions) -> int:
    """Run the app to its end; the exit code."""
    taxonomy = None
    if options.taxonomy is not None:
        from mast_tui.taxonomy.loader import TaxonomyError, load_taxonomy

        try:
            taxonomy = load_taxonomy(options.taxonomy)
        except TaxonomyError as error:
            print(f"mast-tui: {one_line(str(error))}", file=sys.stderr)
            return 1
    take_short_turns()
    app = MastApp(options, taxonomy)
    asyncio.run(_run(app))
    app.close_workspace()
    return app.return_code or 0


async def _run(app: MastApp) -> None:
    """Run the app; where a signal or an error ends it, the process ends here."""
    signals = EndingSignals(app, app.close_workspace)
    asyncio.get_running_loop().set_exception_handler(_broken_callback)
    await signals.run()
    if app.crash is not None:
        with suppress(OSError):  # the terminal may have gone
            sys.stderr.write(f"mast-tui: {app.crash}\n")
            sys.stderr.flush()
        signals.leave(1)


def _broken_callback(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Keep a log of what broke where nobody waits for it; its words stay off the terminal."""
    from mast_tui.ui.crashes import told

    error = context.get("exception")
    if isinstance(error, BaseException):
        told(error)
