"""The app: it starts, knows all screens and owns what outlives them. Screens do the rest."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar, runtime_checkable

from textual import events, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.worker import Worker

from mast_tui.configuration import Configuration, read_configuration
from mast_tui.errors import MastError
from mast_tui.gc_tuning import COLLECT_AFTER, collect_again
from mast_tui.safe_text import one_line
from mast_tui.traces.model import Trace
from mast_tui.ui.actions.keymap import checked
from mast_tui.ui.actions.registry import (
    Where,
    bindings_for,
    find_action,
    key_of,
    shown,
    textual_keymap,
)
from mast_tui.ui.colours import line_colours
from mast_tui.ui.context import (
    Destination,
    HasReport,
    JudgeProgress,
    ShowAdjudication,
    ShowAgreement,
    ShowDisagreements,
    ShowExport,
    ShowExportFormats,
    ShowGuidelines,
    ShowHelp,
    ShowLibrary,
    ShowOpenCodes,
    ShowPalette,
    ShowRuns,
    ShowSideBySide,
    ShowSignatures,
    ShowStudy,
    ShowThemes,
    ShowTrace,
    TraceLocation,
)
from mast_tui.ui.crashes import log_error
from mast_tui.ui.options import AppOptions
from mast_tui.ui.services.input_queue import (
    InputEvent,
    InputQueue,
)
from mast_tui.ui.services.trace_scan import FilesRead
from mast_tui.ui.services.traces import ListsTraces, TraceQueue, TraceService
from mast_tui.ui.services.workspace import WorkspaceService
from mast_tui.ui.signals import EndingSignals
from mast_tui.ui.styles import ANNOTATE, FIRST_SPANS, WIDE
from mast_tui.ui.textual_internals import TextualApp
from mast_tui.ui.widgets.hint_bar import HintBar
from mast_tui.ui.widgets.title_bar import TitleBar
from mast_tui.ui.wording import trace_title
from mast_tui.writes import HeldKeys, Writes

if TYPE_CHECKING:
    from mast_tui.session import Session
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.ui.services.judging import JudgeRuns, RunningJudge
    from mast_tui.ui.services.open_workspace import OpenWorkspace
    from mast_tui.ui.services.trace_catalog import Catalog

Result = TypeVar("Result")
Answer = TypeVar("Answer")

PATIENCE: Final = 0.1
"""Seconds for which the first frame waits for a single file."""

SCREENS: Final[Mapping[type[object], str]] = {
    ShowLibrary: "mast_tui.ui.library.screen:LibraryScreen",
    ShowTrace: "mast_tui.ui.annotate.screen:AnnotateScreen",
    ShowAdjudication: "mast_tui.ui.adjudicate.screen:AdjudicateScreen",
    ShowDisagreements: "mast_tui.ui.adjudicate.screen:AdjudicateScreen",
    ShowAgreement: "mast_tui.ui.reports.agreement:AgreementScreen",
    ShowSignatures: "mast_tui.ui.reports.signatures:SignaturesScreen",
    ShowRuns: "mast_tui.ui.judge_runs.runs:RunsScreen",
    ShowSideBySide: "mast_tui.ui.side_by_side:SideBySideScreen",
    ShowStudy: "mast_tui.ui.study.screen:StudyScreen",
    ShowOpenCodes: "mast_tui.ui.open_codes:OpenCodesScreen",
    ShowGuidelines: "mast_tui.ui.study.guidelines:GuidelinesScreen",
    ShowHelp: "mast_tui.ui.dialogs.help:HelpScreen",
    ShowPalette: "mast_tui.ui.dialogs.finder:Palette",
    ShowThemes: "mast_tui.ui.dialogs.finder:ThemeChoice",
    ShowExportFormats: "mast_tui.ui.dialogs.export:ExportFormats",
    ShowExport: "mast_tui.ui.dialogs.export:ExportForm",
}
"""Where the screens are; each is imported when it is first shown."""


MAIN_SCREENS: Final[Mapping[str, Callable[[], Destination]]] = {
    "library": ShowLibrary,
    "adjudicate": ShowAdjudication,
    "agreement": ShowAgreement,
    "signatures": ShowSignatures,
    "runs": ShowRuns,
    "study": ShowStudy,
    "open_codes": ShowOpenCodes,
}
"""Where one can go from everywhere, by the names of the actions."""


def screen_of(destination: type[object]) -> type[Screen[None]]:
    """The class of screen that is meant."""
    module, _, name = SCREENS[destination].partition(":")
    found: type[Screen[None]] = getattr(import_module(module), name)
    return found


def make_screen(destination: Destination) -> Screen[None]:
    """Make the screen that is meant, with what its destination says of it."""
    return screen_of(type(destination))(**destination._asdict())


# What some screens do beyond being shown


@runtime_checkable
class TraceScreen(Protocol):
    """The screen on which a trace is labelled."""

    trace: Trace | None

    @property
    def session(self) -> Session | None:
        """The session on it, once there is one."""

    def show_trace(self, trace: Trace) -> None:
        """Show another trace; its session follows with ``attach``."""

    def attach(self, session: Session) -> None:
        """Show the labels, and do what keys have asked for meanwhile."""

    def look_at(self, at: TraceLocation) -> None:
        """Go to a place, as soon as the workspace is open."""

    def leave_for_a_while(self) -> None:
        """Another screen is opened above this one."""

    def call_after_refresh(self, callback: Callable[..., object], *args: object) -> bool:
        """Call this when the screen has been drawn."""


@runtime_checkable
class QueueScreen(Protocol):
    """The screen on which one chooses which traces to go through."""

    def queue_changed(self) -> None:
        """What is to do has changed: read the queue anew."""

    def begin_anew(self) -> None:
        """A study was set up: begin with what is to do."""


@runtime_checkable
class GivesWay(Protocol):
    """A main screen, in whose place another is shown."""

    gives_way: bool


@runtime_checkable
class NeedsWorkspace(Protocol):
    """A screen that waits for the workspace."""

    def workspace_failed(self) -> None:
        """There will be none."""


@runtime_checkable
class HearsOthers(Protocol):
    """A screen that shows at once what other programs write to the workspace."""

    def written_elsewhere(self) -> None:
        """Something was written."""


@runtime_checkable
class ShowsPresence(Protocol):
    """A screen that tells who else works on what is under its cursor."""

    def presence_changed(self) -> None:
        """Somebody has come or left."""


@runtime_checkable
class HasPlaces(Protocol):
    """A screen with places that one can name."""

    def go_to_place(self, text: str) -> bool:
        """Go to a place; False where there is none of that name."""


class MastApp(TextualApp):
    """One workspace, one annotator, and the traces that were named on the command line."""

    TITLE = "mast_tui"
    CSS_PATH = FIRST_SPANS
    ENABLE_COMMAND_PALETTE = False
    """The palette is one of our own: it has the keys beside the actions, and places too."""
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(Where.EVERYWHERE)

    opening = True
    """Whether the first screen is not on screen yet."""

    def __init__(self, options: AppOptions, taxonomy: Taxonomy | None = None) -> None:
        """Without a ``taxonomy`` it is MAST, which is read when it is asked for."""
        super().__init__()
        self.options = options
        self.traces = TraceService(self, options)
        self._taxonomy = taxonomy
        self.configuration: Configuration = checked(read_configuration())
        self._writes_report = ""
        """What the last lines say of writes that take long."""
        self.writes = Writes(self._writes_changed, partial(self.call_later, _raise))
        """What the screens write to the workspace, in order."""
        self.workspace = WorkspaceService(self, options, self.configuration, self.writes)
        self.trace_queue = TraceQueue(self.traces, self.workspace)
        """The traces that one goes through."""
        self._judges: JudgeRuns | None = None
        self.input_queue = InputQueue(self, self.writes, self._send_as_textual, self._nothing_bound)

    # The start: the first spans are there before most of the app is imported

    def compose(self) -> ComposeResult:
        """The first spans of a single file, where they are there; a screen takes their place."""
        early = self.traces.prefetch.first_spans(PATIENCE)
        if early is None or len(early.traces) != 1 or not len(early.traces[0]):
            return
        # Start-up: a library begins without a timeline.
        from mast_tui.ui.trace_view.first_spans import BelowFirstSpans, FirstSpans, FirstStrip

        trace, wide = early.traces[0], self.size.width >= WIDE
        title = TitleBar()
        title.show(tuple(trace_title(trace)), (self.workspace.waiting_words(),))
        yield title
        spans = FirstSpans(trace, wide=wide)
        yield spans
        yield BelowFirstSpans(wide=wide)
        yield FirstStrip(spans, self.size, wide=wide)

    def on_mount(self) -> None:
        """Set keys and colours; the first screen follows, and what is slow after its frame."""
        if self.configuration.theme is not None:
            self.theme = self.configuration.theme
        self.set_keymap(textual_keymap(self.keys_set))
        if self.query("FirstSpans"):
            # They are on screen before anything else is imported.
            self.call_after_refresh(self._open_first_screen)
        else:
            self.call_later(self._open_first_screen)

    def _open_first_screen(self) -> None:
        self.traces.prefetch.load_cache()
        self.add_styles(ANNOTATE)
        if self.traces.prefetch.single:
            self.push_screen(self._make_trace_screen())
        else:
            self.go(ShowLibrary())
        self.traces.begin()
        self.input_queue.open()
        self.call_after_refresh(self._first_screen_open)

    def _first_screen_open(self) -> None:
        self.opening = False
        for waiting in self.query("FirstSpans, BelowFirstSpans, FirstStrip, TitleBar"):
            waiting.remove()
        self.open_workspace()
        self.set_timer(COLLECT_AFTER, self._is_quiet)

    def _is_quiet(self) -> None:
        screen_of(ShowTrace)  # imported before a key waits for it
        collect_again()

    def get_css_variables(self) -> dict[str, str]:
        """The theme's colours, and those that lines are drawn in."""
        variables = super().get_css_variables()
        return {**variables, **line_colours(variables)}

    @property
    def taxonomy(self) -> Taxonomy:
        """The taxonomy that is labelled with."""
        if self._taxonomy is None:
            self._taxonomy = _taxonomy_in(None)
        return self._taxonomy

    # Screens

    def go(self, destination: Destination) -> None:
        """Show another screen; an open trace takes note that it is left for a while."""
        match destination:
            case ShowLibrary():
                self._show_library()
            case ShowTrace(trace, at):
                self._show_trace(trace, at)
            case ShowDisagreements() | ShowGuidelines():
                self._leave_trace()
                self.push_screen(make_screen(destination))
            case _:
                self.show_main(make_screen(destination))

    def show_main(self, screen: Screen[None]) -> None:
        """Show one of the main screens; another that is open gives way, an open trace stays."""
        while isinstance(self.screen, GivesWay):
            self.pop_screen()
        self._leave_trace()
        self.push_screen(screen)

    def _leave_trace(self) -> None:
        if isinstance(self.screen, TraceScreen):
            self.screen.leave_for_a_while()

    def _show_library(self) -> None:
        while len(self.screen_stack) > 1:
            if isinstance(self.screen, ListsTraces):
                self.screen.refresh_rows()
                return
            self._leave_trace()
            self.pop_screen()
        self.push_screen(make_screen(ShowLibrary()))

    def _make_trace_screen(self) -> Screen[None]:
        return screen_of(ShowTrace)(self.taxonomy)  # type: ignore[arg-type]

    def _show_trace(self, trace: Trace, at: TraceLocation | None) -> None:
        trace = self.catalog.opened(trace)
        current: Screen[Any] = self.screen
        screen = current if isinstance(current, TraceScreen) else self._make_trace_screen()
        assert isinstance(screen, TraceScreen)
        screen.show_trace(trace)
        if screen is not current:
            self.push_screen(screen)
        self._attach_session(screen)
        if at is not None:
            screen.call_after_refresh(screen.look_at, at)

    def _attach_session(self, screen: TraceScreen, *, anew: bool = False) -> None:
        """Give a screen the session on its trace, as soon as the workspace is open.

        With ``anew`` also where it has one, which shows what other rules allowed.
        """
        trace = screen.trace
        if trace is None:
            return

        async def attach(opened: OpenWorkspace) -> None:
            if not anew and screen.trace is trace and screen.session is not None:
                return
            session = await self.workspace.carry_out(lambda: opened.open(trace))
            if session is not None:
                screen.attach(session)

        def queue(opened: OpenWorkspace) -> None:
            # Keys wait for the session, because it brings the place at which the trace was left.
            # A server that is away would hold them for as long as it is.
            keys_wait = not anew and not opened.workspace.away
            holds = HeldKeys.ALL if keys_wait else HeldKeys.NOTHING
            self.writes.do(partial(attach, opened), holds)

        self.workspace.when_ready(queue)

    @property
    def open_trace_id(self) -> str | None:
        """The id of the trace that is open, if any."""
        found = (screen.trace for screen in self.screen_stack if isinstance(screen, TraceScreen))
        trace = next(found, None)
        return None if trace is None else trace.identity.trace_id

    def ask(self, screen: Screen[Answer], answered: Callable[[Answer | None], None]) -> None:
        """Show a dialog above the open screen, and give its answer to ``answered``."""
        self.push_screen(screen, answered)

    def ask_key(
        self,
        title: str,
        question: str,
        answers: tuple[tuple[str, str], ...],
        answered: Callable[[str | None], None],
        *,
        default: str,
    ) -> None:
        """Ask a question that one key answers, and give that to ``answered``."""
        # Start-up: whoever asks is there before the first spans are, and seldom asks.
        from mast_tui.ui.dialogs.dialog import Ask

        self.ask(Ask(title, question, answers, default=default), answered)

    def say(self, words: str, *, seconds: float | None = None) -> None:
        """Show a short message on whatever screen is open."""
        self.notify(words, timeout=seconds, markup=False)

    def show_error(self, words: str) -> None:
        """Say what went wrong, on whatever screen is open."""
        self.notify(one_line(words), severity="error", timeout=12, markup=False)

    def leave(self, code: int = 0) -> None:
        """End the app."""
        self.exit(return_code=code)

    def refresh_hints(self) -> None:
        """Draw the last line of every screen anew."""
        for screen in self.screen_stack:
            for bar in screen.query(HintBar):
                bar.refresh()

    # What keys do everywhere

    def action_show(self, place: str) -> None:
        """Show a main screen, by the name of its action."""
        self.go(MAIN_SCREENS[place]())

    def action_keys_help(self) -> None:
        """All keys of the screen that is open."""
        self.push_screen(make_screen(ShowHelp(self._where(self.screen), self.keys_set)))

    def action_palette(self) -> None:
        """Go to a number, a key or an action by name."""
        screen = self.screen
        palette: Screen[Any] = make_screen(ShowPalette(self._where(screen), self.keys_set))
        self.push_screen(palette, partial(self._chosen, screen))

    def action_theme(self) -> None:
        """Choose the colours."""
        self.push_screen(make_screen(ShowThemes(self.theme)))

    def action_export(self) -> None:
        """Write labels to a file, once there is a workspace."""
        if self.refused is not None:
            self.show_error("No workspace is open, so there is nothing to export")
            return
        self.workspace.when_ready(self._choose_format)

    def _choose_format(self, opened: OpenWorkspace) -> None:
        screen = self.screen
        report = screen.report_to_write() if isinstance(screen, HasReport) else None

        def chosen(file_format: str | None) -> None:
            if file_format is not None:
                self.push_screen(make_screen(ShowExport(opened, file_format, report)))

        formats: Screen[Any] = make_screen(ShowExportFormats(report))
        self.push_screen(formats, chosen)

    async def _chosen(self, screen: Screen[Any], value: str | None) -> None:
        """Do what was chosen in the palette: an action, or a place to go to."""
        if value is None:
            return
        action = find_action(value)
        if action is not None:
            await screen.run_action(action.command)
        elif not isinstance(screen, HasPlaces) or not screen.go_to_place(value):
            self.show_error(f"There is no place and no action {one_line(value)!r} here")

    @staticmethod
    def _where(screen: Screen[Any]) -> Where:
        return getattr(screen, "where", Where.EVERYWHERE)

    # Keys

    @property
    def keys_set(self) -> dict[str, tuple[str, ...]]:
        """Keys that the person has set, by the ids of actions."""
        return dict(self.configuration.keys)

    def key_of(self, action_id: str) -> str:
        """Return how the key of an action is shown, as the user has set it."""
        return key_of(action_id, self.configuration.keys)

    @property
    def keys_come(self) -> bool:
        """True if a key has come a moment ago, so that another may follow."""
        return self.input_queue.keys_come

    @property
    def input_delivered(self) -> int:
        """The number of keys, clicks and pastes that were delivered."""
        return self.input_queue.delivered

    @property
    def busy_with_input(self) -> bool:
        """Whether an input event is not handled yet, or something is still being saved."""
        return not self.input_queue.idle or not self.writes.idle

    async def on_event(self, event: events.Event) -> None:
        """Put keys, mouse events and pastes in order; handle all others at once."""
        if isinstance(event, InputEvent) and not event.is_forwarded:
            await self.input_queue.put(event)
        else:
            await super().on_event(event)

    async def _send_as_textual(self, event: InputEvent) -> None:
        """Deliver an event to the widget that Textual sends it to."""
        await super().on_event(event)

    def _nothing_bound(self, event: events.Key) -> None:
        """Say in the last line that a key does nothing here."""
        key = event.character if event.is_printable and event.character else event.key
        for bar in self.screen.query(HintBar):
            bar.say(
                f"{shown(key)} does nothing here · {self.key_of('everywhere.help')} shows the keys"
            )

    # Traces

    @property
    def catalog(self) -> Catalog:
        """The traces that were found."""
        return self.traces.catalog

    def traces_found(self) -> None:
        """Show what was found: the one trace of a single file, else the library."""
        screens: list[Screen[Any]] = self.screen_stack
        waiting = next((s for s in screens if isinstance(s, TraceScreen) and not s.trace), None)
        if waiting is not None:
            if len(self.catalog.traces) == 1:
                waiting.show_trace(next(iter(self.catalog.traces.values())))
                self._attach_session(waiting)
            else:
                self.go(ShowLibrary())
        for screen in screens:
            if isinstance(screen, ListsTraces):
                screen.refresh_rows()
        self.input_queue.resume()

    def queue_changed(self) -> None:
        """What is to do has changed: let the library read its queue anew."""
        for screen in self.screen_stack:
            if isinstance(screen, QueueScreen):
                screen.queue_changed()

    def study_changed(self) -> None:
        """A study was set up or changed: work as it says from now on, on the open trace too."""
        opened = self.opened
        if opened is not None:
            self.writes.do(partial(self._follow_study, opened), HeldKeys.NOTHING)

    async def _follow_study(self, opened: OpenWorkspace) -> None:
        await self.workspace.carry_out(opened.follow_study)
        await self.trace_queue.count_finished()
        for screen in self.screen_stack:
            if isinstance(screen, TraceScreen):
                self._attach_session(screen, anew=True)
            elif isinstance(screen, QueueScreen):
                screen.begin_anew()

    # The workspace

    @work(thread=True, group="workspace", exclusive=True)
    def open_workspace(self, *, trusted: bool = False) -> None:
        """Open the workspace; one that others can have prepared is asked about first."""
        self.workspace.open(trusted=trusted)

    @property
    def opened(self) -> OpenWorkspace | None:
        """The workspace and who works in it, None until it is open."""
        return self.workspace.opened

    @property
    def refused(self) -> str | None:
        """Why there is no workspace, where one could not be opened."""
        return self.workspace.refused

    async def workspace_ready(self) -> None:
        """The workspace is open, and who works in it is known."""
        if self.workspace.opened is not None:
            self._taxonomy = self.workspace.opened.taxonomy  # as it is worded there
        await self.trace_queue.count_finished()

    def workspace_failed(self) -> None:
        """Tell the screens that wait for a workspace that there will be none."""
        for screen in self.screen_stack:
            if isinstance(screen, NeedsWorkspace):
                screen.workspace_failed()
        self.input_queue.resume()

    def workspace_changed(self) -> None:
        """Tell the screens that another program has written to the workspace."""
        for screen in self.screen_stack:
            if isinstance(screen, TraceScreen) and screen.session is None:
                self._attach_session(screen)  # the server was away when it was opened
            elif isinstance(screen, HearsOthers):
                screen.written_elsewhere()

    def presence_changed(self) -> None:
        """Tell the screens that somebody has come to where one is, or left."""
        for screen in self.screen_stack:
            if isinstance(screen, ShowsPresence):
                screen.presence_changed()

    def _writes_changed(self) -> None:
        """Something was written, or takes long: say so, and let the keys in that waited for it."""
        if self.writes.report != self._writes_report:
            self._writes_report = self.writes.report
            self.refresh_hints()
        self.input_queue.resume()

    @property
    def urgently(self) -> str:
        """What is waited for before anything else can be saved, or nothing."""
        return self.writes.report

    def on_unmount(self) -> None:
        """Nobody hears any more what others write."""
        self.workspace.stop_watching()

    # Judges

    @property
    def judge_at_work(self) -> RunningJudge | None:
        """The judge that is at work now."""
        return None if self._judges is None else self._judges.at_work

    @property
    def report(self) -> str:
        """How far the judge at work has come, or nothing; shown in the last line."""
        return "" if self.judge_at_work is None else self.judge_at_work.message

    def judge_traces(self, traces: Sequence[Trace]) -> None:
        """Have a judge look at these traces; while one does, ask whether to cancel it."""
        if self._judges is None:
            # Start-up: it brings the judges, and nobody has one at work before it is asked for.
            from mast_tui.ui.services.judging import JudgeRuns

            self._judges = JudgeRuns(self, self.workspace)
        self._judges.begin(traces)

    def worker_failed(self, worker: Worker[Any], words: str) -> None:
        """Say that work beside the screen broke, to whatever waits for that work too."""
        match worker.group if worker.node is self else "":
            case "workspace":
                self.call_later(self.workspace.not_opened, words)
                return
            case "judge" if self._judges is not None:
                told = JudgeProgress(f"The judge stopped: {words}", done=True, problem=True)
                self.call_later(self._judges.judged, told)
                return
            case "read":
                self.call_later(self.traces.take, FilesRead([], True))
        self.show_error(f"Something went wrong in the background: {words}")


def _taxonomy_in(path: Path | None) -> Taxonomy:
    """The taxonomy in a file, or MAST."""
    # Start-up: the first spans are shown without a taxonomy.
    from mast_tui.taxonomy.loader import load_mast, load_taxonomy

    return load_mast() if path is None else load_taxonomy(path)


def _raise(error: BaseException) -> None:
    """Raise what a write raised where the app deals with bugs."""
    raise error


def run_app(options: AppOptions) -> int:
    """Run the app to its end; the exit code."""
    taxonomy = None
    if options.taxonomy is not None:
        try:
            taxonomy = _taxonomy_in(options.taxonomy)
        except MastError as error:
            print(f"mast-tui: {one_line(str(error))}", file=sys.stderr)
            return 1
    app = MastApp(options, taxonomy)
    asyncio.run(_run(app))
    app.workspace.close()
    for words in app.workspace.unsent_words():
        then = "kept on this machine, and sent when mast-tui has this workspace open again"
        print(f"mast-tui: {words}: {then}", file=sys.stderr)
    return app.return_code or 0


async def _run(app: MastApp) -> None:
    """Run the app; where a signal or an error ends it, the process ends here."""
    signals = EndingSignals(app, app.workspace.close)
    asyncio.get_running_loop().set_exception_handler(_broken_callback)
    await signals.run()
    if app.crash is not None:
        with suppress(OSError):  # the terminal may have gone
            sys.stderr.write(f"mast-tui: {app.crash}\n")
            sys.stderr.flush()
        signals.leave(1)


def _broken_callback(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Keep a log of what broke where nobody waits for it; its words stay off the terminal."""
    error = context.get("exception")
    if isinstance(error, BaseException):
        log_error(error)
