"""The app: its start, its screens, its services, and its end by a signal."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from types import FrameType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    NoReturn,
    TypeGuard,
    TypeVar,
    cast,
)

from msgspec.structs import asdict
from textual import work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.worker import Worker

from mast_tui.configuration import Configuration, read_configuration
from mast_tui.errors import MastError
from mast_tui.gc_tuning import COLLECT_AFTER, collect_again
from mast_tui.safe_text import one_line
from mast_tui.traces.model import Trace
from mast_tui.ui.actions.registry import (
    Where,
    bindings_for,
    checked,
    find_action,
    key_of,
    textual_keymap,
)
from mast_tui.ui.base_screen import KeepsTypedTexts, MainScreen
from mast_tui.ui.context import (
    Destination,
    JudgeProgress,
    ShowDisagreements,
    ShowGuidelines,
    ShowLibrary,
    ShowSideBySide,
    ShowTrace,
    TraceLocation,
)
from mast_tui.ui.crashes import log_error
from mast_tui.ui.options import AppOptions, in_browser
from mast_tui.ui.services.input_queue import QueuedInputApp
from mast_tui.ui.services.trace_scan import FilesRead
from mast_tui.ui.services.traces import TraceQueue, TraceService
from mast_tui.ui.services.workspace import WorkspaceService
from mast_tui.ui.styles import ANNOTATE, FIRST_SPANS, WIDE, line_colours
from mast_tui.ui.textual_internals import (
    restore_terminal,
    terminal_released,
    writes_to_terminal,
)
from mast_tui.ui.widgets.bars import TitleBar
from mast_tui.ui.wording import trace_title
from mast_tui.writes import HeldKeys, Writes

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.ui.annotate.screen import AnnotateScreen
    from mast_tui.ui.dialogs.dialog import NoteScreen
    from mast_tui.ui.services.judging import JudgeRuns, RunningJudge
    from mast_tui.ui.services.model_judge import Plan
    from mast_tui.ui.services.open_workspace import OpenWorkspace
    from mast_tui.ui.services.trace_catalog import Catalog

FIRST_FRAME_PATIENCE: Final = 0.1
"""Seconds that the first frame waits for a single file."""

SCREENS: Final[Mapping[type[object] | str, str]] = {
    ShowLibrary: "mast_tui.ui.library.screen:LibraryScreen",
    ShowTrace: "mast_tui.ui.annotate.screen:AnnotateScreen",
    "adjudicate": "mast_tui.ui.adjudicate.screen:AdjudicateScreen",
    ShowDisagreements: "mast_tui.ui.adjudicate.screen:AdjudicateScreen",
    "agreement": "mast_tui.ui.reports.agreement:AgreementScreen",
    "signatures": "mast_tui.ui.reports.signatures:SignaturesScreen",
    "runs": "mast_tui.ui.judge_runs.runs:RunsScreen",
    ShowSideBySide: "mast_tui.ui.side_by_side:SideBySideScreen",
    "study": "mast_tui.ui.study.screen:StudyScreen",
    "open_codes": "mast_tui.ui.open_codes:OpenCodesScreen",
    ShowGuidelines: "mast_tui.ui.study.guidelines:GuidelinesScreen",
    "help": "mast_tui.ui.dialogs.help:HelpScreen",
    "palette": "mast_tui.ui.dialogs.finder:Palette",
    "themes": "mast_tui.ui.dialogs.finder:ThemeChoice",
    "export_formats": "mast_tui.ui.dialogs.export:ExportFormats",
    "export": "mast_tui.ui.dialogs.export:ExportForm",
}
"""The class of each screen, imported when the screen is first shown.

The key is the destination of the screen, or a name. The name of a main screen is that of its
action.
"""


def screen_of(destination: type[object] | str) -> type[Screen[Any]]:
    """Import the class of the screen for a destination, and return it."""
    module_name, _, class_name = SCREENS[destination].partition(":")
    screen_class: type[Screen[Any]] = getattr(import_module(module_name), class_name)
    return screen_class


def make_screen(destination: Destination | str, *arguments: Any) -> Screen[Any]:
    """Create a screen.

    Args:
        destination: A destination with the arguments of the screen as fields, or a name in
            ``SCREENS``.
        arguments: The screen's arguments if ``destination`` is a name.
    """
    if isinstance(destination, str):
        return screen_of(destination)(*arguments)
    return screen_of(type(destination))(**asdict(destination))


def shows_trace(screen: Screen[Any]) -> TypeGuard[AnnotateScreen]:
    """Check if a screen is the annotate screen."""
    return isinstance(screen, MainScreen) and screen.where is Where.ANNOTATE


class MastApp(QueuedInputApp):
    """The app, with one workspace, one annotator, and the traces of the command line."""

    TITLE = "mast_tui"
    CSS_PATH = FIRST_SPANS
    ENABLE_COMMAND_PALETTE = False
    """False, because the app has its own palette."""
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(Where.EVERYWHERE)

    opening = True
    """True until the first screen is visible."""

    def __init__(self, options: AppOptions, taxonomy: Taxonomy | None = None) -> None:
        """Create the app.

        Args:
            options: The options of the command line.
            taxonomy: The taxonomy to label with; None for MAST, which is read when needed.
        """
        super().__init__()
        self.options = options
        self.traces = TraceService(self)
        self._taxonomy = taxonomy
        self.configuration: Configuration = checked(read_configuration())
        self._writes_report = ""
        """The message in the last line about slow writes."""
        self.writes = Writes(
            self._writes_changed, partial(self.call_later, _raise_error), self._hold_drawing
        )
        """The queue of all writes to the workspace."""
        self.workspace = WorkspaceService(self)
        self.trace_queue = TraceQueue(self)
        """The order in which the user goes through the traces."""
        self._judges: JudgeRuns | None = None

    # The start: the first spans are shown before most of the app is imported

    def compose(self) -> ComposeResult:
        """Yield a title, and the first spans of a single file if they have been read.

        The first screen covers them.
        """
        title = TitleBar()
        title.show(("Starting …",), ())
        yield title
        if self.traces.awaits_masks:  # A study may hide parts of the text.
            return
        file_report = self.traces.prefetch.first_spans(FIRST_FRAME_PATIENCE)
        if file_report is None or len(file_report.traces) != 1 or not len(file_report.traces[0]):
            return
        # A library does not need this import, which would delay the start.
        from mast_tui.ui.trace_view.first_spans import BelowFirstSpans, FirstSpans, FirstStrip

        (trace,) = file_report.traces
        wide = self.size.width >= WIDE
        title.show(tuple(trace_title(trace)), (self.workspace.waiting_text(),))
        spans = FirstSpans(trace, self.size, wide=wide)
        yield spans
        yield BelowFirstSpans(self.size, wide=wide)
        yield FirstStrip(spans, self.size, wide=wide)

    def on_mount(self) -> None:
        """Set keys and colours, and open the first screen."""
        if self.configuration.theme is not None:
            self.theme = self.configuration.theme
        self.set_keymap(textual_keymap(self.keys_set))
        # The title is drawn before anything else is imported.
        self.call_after_refresh(self._open_first_screen)

    def _open_first_screen(self) -> None:
        """Open the annotate screen for a single file or else the library, and begin to read."""
        self.traces.prefetch.load_cache()
        self.add_styles(ANNOTATE)
        if self.traces.prefetch.single:
            self.push_screen(self._make_trace_screen())
        else:
            self.go(ShowLibrary())
        self.traces.begin()
        self.input_queue.open()
        self.call_after_refresh(self._end_opening)

    def _end_opening(self) -> None:
        """Open the workspace, and remove the spans drawn at the start."""
        self.opening = False
        for first_widget in self.query("FirstSpans, BelowFirstSpans, FirstStrip, TitleBar"):
            first_widget.remove()
        self.open_workspace()
        self.set_timer(COLLECT_AFTER, self._do_deferred_work)

    def _do_deferred_work(self) -> None:
        screen_of(ShowTrace)  # imported before a key waits for it
        collect_again()

    def get_css_variables(self) -> dict[str, str]:
        """Return the colours of the theme, and those for drawn lines."""
        variables = super().get_css_variables()
        return {**variables, **line_colours(variables)}

    @property
    def taxonomy(self) -> Taxonomy:
        """The taxonomy to label with."""
        if self._taxonomy is None:
            self._taxonomy = _taxonomy_in(None)
        return self._taxonomy

    def go(self, destination: Destination) -> None:
        """Show another screen."""
        match destination:
            case ShowLibrary():
                self._show_library()
            case ShowTrace(trace, location):
                self._show_trace(trace, location)
            case ShowDisagreements() | ShowGuidelines():
                self._leave_main_screen()
                self.push_screen(make_screen(destination))
            case _:
                self.show_main(make_screen(destination))

    def show_main(self, screen: Screen[None]) -> None:
        """Show a main screen, from which the user returns to the present one.

        If a screen of this kind is open below screens that give way, close it and those screens.
        """
        while any(type(open_screen) is type(screen) for open_screen in self._giving_way):
            self.pop_screen()
        self._leave_main_screen()
        self.push_screen(screen)

    @property
    def main_screens(self) -> list[MainScreen]:
        """The open screens except dialogs, the topmost last."""
        return [screen for screen in self.screen_stack if isinstance(screen, MainScreen)]

    @property
    def _giving_way(self) -> Iterable[Screen[Any]]:
        """The screens on top that give way to another one, the topmost first."""
        screens: list[Screen[Any]] = self.screen_stack
        return takewhile(
            lambda screen: isinstance(screen, MainScreen) and screen.gives_way, reversed(screens)
        )

    def _leave_main_screen(self) -> None:
        if isinstance(self.screen, MainScreen):
            self.screen.leave_for_a_while()

    def _show_library(self) -> None:
        """Close all screens above the library, or open it if there is none below."""
        while len(self.screen_stack) > 1:
            screen: Screen[Any] = self.screen
            if isinstance(screen, screen_of(ShowLibrary)) and isinstance(screen, MainScreen):
                screen.refresh_rows()
                return
            self._leave_main_screen()
            self.pop_screen()
        self.push_screen(make_screen(ShowLibrary()))

    def _make_trace_screen(self) -> AnnotateScreen:
        return cast("type[AnnotateScreen]", screen_of(ShowTrace))(self.taxonomy)

    def _show_trace(self, trace: Trace, location: TraceLocation | None) -> None:
        """Show a trace on the present annotate screen or on a new one.

        Go to the location after the screen is drawn.
        """
        trace = self.catalog.opened(trace)
        present_screen: Screen[Any] = self.screen
        screen = present_screen if shows_trace(present_screen) else self._make_trace_screen()
        screen.show_trace(trace)
        self.trace_queue.note_opened(trace, from_trace=screen is present_screen)
        if screen is not present_screen:
            self.push_screen(screen)
        self.attach_session(screen)
        if location is not None:
            screen.call_after_refresh(screen.look_at, location)

    def attach_session(self, screen: AnnotateScreen, *, replaces_session: bool = False) -> None:
        """Attach a session to a screen once the workspace is open.

        Args:
            screen: The screen. Nothing happens if it has no trace.
            replaces_session: True to replace the screen's session after a change of the study.
        """
        trace = screen.trace
        if trace is None:
            return

        async def attach(opened: OpenWorkspace) -> None:
            """Open a session and attach it, unless the present session may stay."""
            if not replaces_session and screen.trace is trace and screen.session is not None:
                return
            session = await self.workspace.carry_out(lambda: opened.open(trace))
            if session is not None:
                screen.attach(session)
                find_text = partial(opened.earlier_content_text, session)
                if text := await self.workspace.carry_out(find_text):
                    self.say(text)
            else:
                screen.workspace_failed()
                self.input_queue.resume()

        def queue_attaching(opened: OpenWorkspace) -> None:
            """Queue the attaching of the session."""
            # The session has the position at which the trace was left, so keys wait for it. They do
            # not wait for a server that is away.
            keys_wait = not replaces_session and not opened.workspace.away
            held_keys = HeldKeys.ALL if keys_wait else HeldKeys.NOTHING
            self.writes.do(partial(attach, opened), held_keys)

        self.workspace.when_ready(queue_attaching)

    @property
    def open_trace_id(self) -> str | None:
        """The id of the open trace, or None."""
        for screen in self.screen_stack:
            if shows_trace(screen):
                return None if screen.trace is None else screen.trace.identity.trace_id
        return None

    def ask(
        self,
        screen: Screen[Answer | None],
        answered: Callable[[Answer], object],
        *,
        left: Callable[[], object] | None = None,
    ) -> None:
        """Show a dialog.

        Args:
            screen: The dialog.
            answered: Receives the answer of the dialog.
            left: Called after Escape.
        """

        def closed(answer: Answer | None) -> None:
            if answer is not None:
                answered(answer)
            elif left is not None:
                left()

        self.push_screen(screen, closed)

    def ask_to_write(
        self,
        make_dialog: Callable[[], NoteScreen],
        write: Callable[[str, Callable[[], None]], object],
        *,
        left: Callable[[], object] | None = None,
        typed: str | None = None,
    ) -> None:
        """Ask for a text, and write it.

        Args:
            make_dialog: Makes the dialog.
            write: Writes the text. If that fails, it calls its second argument, which asks again,
                with the typed text.
            left: Called after Escape.
            typed: A text that could not be written before; None for the first question.
        """

        def answered(text: str) -> None:
            write(text, partial(self.ask_to_write, make_dialog, write, left=left, typed=text))

        dialog = make_dialog()
        if typed is not None:
            dialog.first_text = typed
        self.ask(dialog, answered, left=left)

    def ask_key(
        self,
        title: str,
        question: str,
        answers: tuple[tuple[str, str], ...],
        effects: Mapping[str | None, Callable[[], object]],
        *,
        default: str | None,
    ) -> None:
        """Ask a question that one key answers.

        Args:
            title: The title of the dialog.
            question: The question.
            answers: The keys with their meanings.
            effects: The functions that the keys call. None stands for Escape.
            default: The key for Enter; None if Enter does nothing.
        """
        # The import would delay the start.
        from mast_tui.ui.dialogs.dialog import Ask

        def answered(key: str | None) -> None:
            if key in effects:
                effects[key]()

        self.push_screen(Ask(title, question, answers, default=default), answered)

    def say(self, message: str, *, seconds: float | None = None) -> None:
        """Show a short message above the open screen.

        Args:
            message: The message.
            seconds: The seconds to show it; None for the usual time.
        """
        self.notify(message, timeout=seconds, markup=False)

    def answer(self, message: str, *, error: bool = False) -> None:
        """Answer a key in the last line of the open screen.

        Args:
            message: The message.
            error: True if it reports an error.
        """
        self.main_screens[-1].hints.say(message, error=error)

    def show_error(self, message: str) -> None:
        """Show an error above the open screen."""
        self.notify(one_line(message), severity="error", timeout=12, markup=False)

    def leave(self, code: int = 0) -> None:
        """End the app."""
        self.exit(return_code=code)

    def refresh_hints(self) -> None:
        """Draw the last line of every screen again."""
        for screen in self.main_screens:
            screen.hints.refresh()

    async def action_quit(self) -> None:
        """End the app. Before typed texts are lost, ask for the key again."""
        typing_screens = [s for s in self.screen_stack if isinstance(s, KeepsTypedTexts)]
        key = self.key_of("everywhere.quit")
        if all(screen.may_drop_texts(key) for screen in typing_screens):
            self.exit()

    def action_show(self, name: str) -> None:
        """Show a main screen, by the name of its action."""
        if name == "library":
            self.go(ShowLibrary())
        else:
            self.show_main(make_screen(name))

    def action_keys_help(self) -> None:
        """Show all keys of the open screen."""
        self.push_screen(make_screen("help", self._keys_screen(self.screen), self.keys_set))

    def action_palette(self) -> None:
        """Open the palette: go to a number or key, or run an action."""
        screen = self.screen
        palette = make_screen("palette", self._keys_screen(screen), self.keys_set)
        self.push_screen(palette, partial(self._run_palette_choice, screen))

    def action_another_annotator(self) -> None:
        """Ask for a name, and label under it."""
        self.workspace.ask_for_another_annotator()

    def action_theme(self) -> None:
        """Choose a theme."""
        self.push_screen(make_screen("themes", self.theme))

    def action_export(self) -> None:
        """Ask how to export labels, once there is a workspace."""
        self.workspace.when_ready_or_refuse(self._choose_format, "there is nothing to export")

    def _choose_format(self, opened: OpenWorkspace) -> None:
        screen = self.screen
        report = screen.report_to_write() if isinstance(screen, MainScreen) else None
        self.ask(
            make_screen("export_formats", report),
            lambda name: self.push_screen(make_screen("export", opened, name, report, self.key_of)),
        )

    async def _run_palette_choice(self, screen: Screen[Any], choice: str | None) -> None:
        """Run the action chosen in the palette, or go to the chosen span or trace.

        Args:
            screen: The screen on which the palette was opened.
            choice: The id of an action, or the number, key or name of a span or trace; None for no
                choice.
        """
        if choice is None:
            return
        action = find_action(choice)
        if action is not None:
            await screen.run_action(action.command)
        elif isinstance(screen, MainScreen) and not screen.go_to_place(choice):
            screen.say_error(f"Nothing here has the number or name “{one_line(choice)}”")

    @staticmethod
    def _keys_screen(screen: Screen[Any]) -> Where:
        """Return the screen of the action tables that a screen shows."""
        return getattr(screen, "where", Where.EVERYWHERE)

    @property
    def keys_set(self) -> dict[str, tuple[str, ...]]:
        """The keys that the user has set, by the ids of actions."""
        return dict(self.configuration.keys)

    def key_of(self, action_id: str) -> str:
        """Return the user's key of an action as text."""
        return key_of(action_id, self.configuration.keys)

    @property
    def catalog(self) -> Catalog:
        """The traces that were found so far."""
        return self.traces.catalog

    def show_new_traces(self) -> None:
        """Show new traces in the library, and deliver the keys that waited for them.

        An annotate screen that waits for its trace shows a single trace. For several or no traces,
        the library opens instead.
        """
        screens: list[Screen[Any]] = self.screen_stack
        waiting_screen = next((s for s in screens if shows_trace(s) and s.trace is None), None)
        traces = list(self.catalog.traces.values())
        if waiting_screen is not None and len(traces) == 1:
            waiting_screen.show_trace(traces[0])
            self.attach_session(waiting_screen)
        elif waiting_screen is not None and (traces or self.catalog.complete):
            self.go(ShowLibrary())
        for main_screen in self.main_screens:
            main_screen.refresh_rows()
        self.input_queue.resume()

    def queue_changed(self) -> None:
        """Tell the screens that the queue of traces has changed."""
        for screen in self.main_screens:
            screen.queue_changed()

    def study_changed(self) -> None:
        """Apply a changed study, also to the open trace."""
        opened = self.opened
        if opened is not None:
            self.writes.do(partial(self._follow_study, opened), HeldKeys.NOTHING)

    def masks_changed(self) -> None:
        """Show the open trace with the masks of the catalog."""
        for screen in self.screen_stack:
            if shows_trace(screen) and screen.trace is not None:
                screen.show_trace(screen.trace.with_masks(self.catalog.masks))

    async def _follow_study(self, opened: OpenWorkspace) -> None:
        """Apply a changed study to the counts, the queue and the open trace.

        The session on the open trace is replaced, because its visibility may change.
        """
        await self.workspace.carry_out(opened.follow_study)
        self.traces.mask(opened.masks)
        await self.trace_queue.count_finished()
        for screen in self.main_screens:
            screen.reset_queue()
            if shows_trace(screen):
                self.attach_session(screen, replaces_session=True)

    @work(thread=True, group="workspace", exclusive=True)
    def open_workspace(self, *, trusted: bool = False) -> None:
        """Open the workspace.

        Args:
            trusted: True to open it without a question even if another person may have prepared it.
        """
        self.workspace.open(trusted=trusted)

    @property
    def opened(self) -> OpenWorkspace | None:
        """The open workspace, or None."""
        return self.workspace.opened

    async def workspace_ready(self, opened: OpenWorkspace) -> None:
        """Prepare the app for the workspace that was opened."""
        self._taxonomy = opened.taxonomy  # the workspace may have another wording of it
        await self.trace_queue.count_finished()

    async def annotator_changed(self) -> None:
        """Open the library and the open trace again, as the new annotator may see them."""
        await self.trace_queue.count_finished()
        trace_id = self.open_trace_id
        while len(self.screen_stack) > 1:
            self._leave_main_screen()
            self.pop_screen()
        self.go(ShowLibrary())
        if trace_id is not None:
            self.go(ShowTrace(self.catalog.traces[trace_id]))

    def workspace_failed(self) -> None:
        """Tell the screens that no workspace will be open."""
        for screen in self.main_screens:
            screen.workspace_failed()
        self.input_queue.resume()

    def workspace_changed(self) -> None:
        """Tell the screens that another program has written to the workspace."""
        for screen in self.main_screens:
            if shows_trace(screen) and screen.session is None:
                self.attach_session(screen)  # the server was away when it was opened
            else:
                screen.show_changes_of_others()

    def presence_changed(self) -> None:
        """Tell the screens that someone has begun or stopped working."""
        for screen in self.main_screens:
            screen.presence_changed()

    @contextmanager
    def _hold_drawing(self) -> Iterator[None]:
        """Draw nothing until the context ends, then draw all changes."""
        with self.batch_update():
            yield
        # Only the top screen is drawn. A screen below it would draw the whole window again.
        if self.screen_stack:
            self.screen.check_idle()

    def _writes_changed(self) -> None:
        """Show the report on writes, and deliver the keys that waited for a write."""
        if self.writes.report != self._writes_report:
            self._writes_report = self.writes.report
            self.refresh_hints()
        self.input_queue.resume()

    @property
    def urgent_message(self) -> str:
        """The message about a write that everything waits for; empty for none."""
        return self.writes.report

    def on_unmount(self) -> None:
        """Stop watching the workspace."""
        self.workspace.stop_watching()

    @property
    def judge_at_work(self) -> RunningJudge | None:
        """The judge at work, or None."""
        return None if self._judges is None else self._judges.running_judge

    @property
    def report(self) -> str:
        """The progress of the judge at work for the last line; empty without a judge."""
        return "" if self.judge_at_work is None else self.judge_at_work.message

    def judge_traces(self, traces: Collection[Trace], plan: Plan | None = None) -> None:
        """Run a judge on traces. If a judge is at work, ask whether to cancel it.

        Args:
            traces: The traces.
            plan: The plan of a model; None to let the user choose a judge.
        """
        if self._judges is None:
            # Drawing waits for the end of the first piece of work.
            self.writes.do(self._announce_judges)
            self.writes.do(partial(self._load_judges, traces, plan))
        else:
            self._judges.begin(traces, plan)

    async def _announce_judges(self) -> None:
        self.answer("Loading the judges …")

    async def _load_judges(self, traces: Collection[Trace], plan: Plan | None) -> None:
        """Import the judges once the screen is drawn, and run one on traces."""
        drawn = asyncio.Event()
        self.call_after_refresh(drawn.set)
        await drawn.wait()
        # The import would delay the start. Nothing is drawn while it lasts.
        from mast_tui.ui.services.judging import JudgeRuns

        self.answer("")
        self._judges = JudgeRuns(self)
        self._judges.begin(traces, plan)

    def worker_failed(self, worker: Worker[Any], message: str) -> None:
        """Report that background work has failed.

        Services report failures of the workspace and of judges themselves.

        Args:
            worker: The worker.
            message: The error in one line.
        """
        group = worker.group if worker.node is self else ""
        if group == "workspace":
            self.call_later(self.workspace.not_opened, message)
            return
        if group == "judge" and self._judges is not None:
            progress = JudgeProgress(f"The judge stopped: {message}", done=True, problem=True)
            self.call_later(self._judges.show_judge_progress, progress)
            return
        if group == "read":
            self.call_later(self.traces.take, FilesRead([], done=True))
        self.show_error(f"Something went wrong in the background: {message}")


ENDING_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

END_PATIENCE: Final = 5.0
"""Seconds that the app has to end and close its workspace."""

AFTER_ANOTHER: Final = 1.0
"""Seconds that remain after a second signal.

A shell that ends sends SIGHUP twice.
"""

CHECK_TERMINAL_EVERY: Final = 1.0
"""Seconds between two checks that the terminal, or the server of a browser, still exists.

Not every process receives a SIGHUP, and Textual would read from a missing terminal in a loop.
"""


class EndingSignals:
    """A runner of the app that ends it on a signal, with the exit code 128 + n.

    The event loop ends the app as a key would, restores the terminal and closes the workspace. If
    the loop is stuck, a second signal or a few seconds end the app at once.

    Checked against Textual 8.2: ``App.exit`` works under any dialog, and the driver restores the
    terminal before ``run_async`` returns. Threads are not waited for, because each write is one
    transaction, and unfinished work is requested again at the next start.

    Args:
        app: The app.
        close: Closes the workspace at the end.

    Attributes:
        number: The first signal; None before.
    """

    def __init__(self, app: App[Any], close: Callable[[], object]) -> None:
        self.number: int | None = None
        self._app = app
        self._close = close
        self._has_terminal = True
        """True while the app uses the terminal."""

    async def run(self) -> None:
        """Run the app in the loop of the main thread. If a signal ends the app, end the process."""
        loop = asyncio.get_running_loop()
        for number in ENDING_SIGNALS:
            loop.add_signal_handler(number, self._exit_app)
            # This handler runs before that of the loop, even if the loop is stuck.
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGALRM, self._on_signal)  # ends an app that does not end in time
        threading.excepthook = self._on_thread_error
        if sys.stdin is not None and (sys.stdin.isatty() or in_browser(os.environ)):
            self._check_terminal(loop, sys.stdin.fileno())
        await self._app.run_async()
        self._has_terminal = False
        if self.number is not None:
            self.leave(128 + self.number)

    def leave(self, code: int) -> NoReturn:
        """Close the workspace and end the process, without waiting for other threads.

        If this takes longer than ``END_PATIENCE``, the alarm ends the process.
        """
        signal.setitimer(signal.ITIMER_REAL, END_PATIENCE)
        try:
            self._close_safely()
        finally:
            os._exit(code)

    def _close_safely(self) -> None:
        """Close the workspace. If that fails, log the error and raise it."""
        try:
            self._close()
        finally:
            error = sys.exception()
            if error is not None:
                log_error(error)

    def _exit_app(self) -> None:
        if self.number is not None:
            self._app.exit(return_code=128 + self.number)

    def _check_terminal(self, loop: asyncio.AbstractEventLoop, terminal: int) -> None:
        """Check regularly that a terminal exists, and send this process a SIGHUP if it is gone.

        ``terminal`` is a file descriptor.
        """
        poll = select.poll()
        poll.register(terminal, 0)  # a hang-up is always reported
        if poll.poll(0):
            os.kill(os.getpid(), signal.SIGHUP)
        else:
            loop.call_later(CHECK_TERMINAL_EVERY, self._check_terminal, loop, terminal)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        """Handle a signal.

        - The first ending signal is recorded, and starts the time limit ``END_PATIENCE``.
        - A further ending signal shortens the time limit to ``AFTER_ANOTHER``.
        - SIGALRM, the end of the time limit, restores the terminal and ends the process.
        """
        if number == signal.SIGALRM:
            if self._has_terminal:
                restore_terminal(self._app)
            os._exit(1 if self.number is None else 128 + self.number)
        elif self.number is None:
            self.number = number
            # A closed terminal sends SIGCONT after SIGHUP, which would make Textual start again.
            signal.signal(signal.SIGCONT, lambda *_: None)
            signal.setitimer(signal.ITIMER_REAL, END_PATIENCE)
            if terminal_released(self._app) and self._has_terminal:
                # The app is suspended, so the terminal belongs to another program.
                self._has_terminal = False
                self.leave(128 + number)
        else:
            seconds_left, _interval = signal.getitimer(signal.ITIMER_REAL)
            seconds_left = min(seconds_left or AFTER_ANOTHER, AFTER_ANOTHER)
            signal.setitimer(signal.ITIMER_REAL, seconds_left)

    def _on_thread_error(self, arguments: threading.ExceptHookArgs) -> None:
        """Log the error of a thread. If the thread writes to the terminal, end the app."""
        if writes_to_terminal(arguments.thread):
            # Output to a lost terminal would pile up until the app stops.
            os.kill(os.getpid(), signal.SIGHUP)
        elif arguments.exc_value is not None:
            log_error(arguments.exc_value)


Answer = TypeVar("Answer")


def _taxonomy_in(path: Path | None) -> Taxonomy:
    # The first spans do not need this import, which would delay the start.
    from mast_tui.taxonomy.loader import load_mast, load_taxonomy

    return load_mast() if path is None else load_taxonomy(path)


def _raise_error(error: BaseException) -> None:
    """Raise the error of a write in the app's message queue, where bugs are handled."""
    raise error


def run_app(options: AppOptions) -> int:
    """Run the app to its end, and return the exit code.

    Errors in the taxonomy's file, and unsent changes, are reported on stderr.
    """
    taxonomy = None
    if options.taxonomy is not None:
        try:
            taxonomy = _taxonomy_in(options.taxonomy)
        except MastError as error:
            print(f"mast-tui: {one_line(str(error))}", file=sys.stderr)
            return 1
    app = MastApp(options, taxonomy)
    asyncio.run(_run_to_end(app))
    app.workspace.close()
    for unsent_text in app.workspace.unsent_text():
        consequence = "kept on this machine, and sent when mast-tui opens this workspace again"
        print(f"mast-tui: {unsent_text}: {consequence}", file=sys.stderr)
    return app.return_code or 0


async def _run_to_end(app: MastApp) -> None:
    """Run the app. If a signal or an error ends it, end the process."""
    signals = EndingSignals(app, app.workspace.close)
    asyncio.get_running_loop().set_exception_handler(_log_callback_error)
    await signals.run()
    if app.crash is not None:
        with suppress(OSError):  # the terminal may have gone
            sys.stderr.write(f"mast-tui: {app.crash}\n")
            sys.stderr.flush()
        signals.leave(1)


def _log_callback_error(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log the error of a callback, and keep its text away from the terminal."""
    error = context.get("exception")
    if isinstance(error, BaseException):
        log_error(error)
