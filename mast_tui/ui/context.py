"""What a screen, or a part of one, may ask of the app, and the places to which it can send one.

Screens import this, never the app and never each other; the app alone knows the screens.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.events import Key
    from textual.geometry import Size
    from textual.screen import Screen
    from textual.worker import Worker

    from mast_tui.adjudication.guidelines import Case
    from mast_tui.configuration import Configuration
    from mast_tui.reports.model import Report
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.traces.model import Trace
    from mast_tui.ui.actions.registry import Keymap, Where
    from mast_tui.ui.options import AppOptions
    from mast_tui.ui.services.input_queue import InputPriority
    from mast_tui.ui.services.judging import UnderWay
    from mast_tui.ui.services.open_workspace import OpenWorkspace
    from mast_tui.ui.services.trace_catalog import Catalog
    from mast_tui.ui.services.traces import TraceQueue
    from mast_tui.ui.widgets.hint_bar import HintBar
    from mast_tui.writes import Writes

Result = TypeVar("Result")
Answer = TypeVar("Answer")


class TraceLocation(NamedTuple):
    """Where to look in a trace: at a suggestion, at the next of a judge, else at a span by its key
    or its ``position``; ``find`` is what to look for there."""

    trace_id: str
    suggestion: str | None = None
    judge: str | None = None
    key: str | None = None
    position: int | None = None
    find: str | None = None


# Where to go. A screen is made with what stands here under the same names. They are tuples, as
# dataclasses of their number would take 2 % of the time to the first spans.


class ShowLibrary(NamedTuple):
    """The library of traces; all screens above it are left."""


class ShowTrace(NamedTuple):
    """A trace on the annotate screen, which is the open one where there is one."""

    trace: Trace
    at: TraceLocation | None = None


class ShowSideBySide(NamedTuple):
    """Two runs side by side, under the names that they go by."""

    a: Trace
    b: Trace
    names: tuple[str, str]


class ShowAdjudication(NamedTuple):
    """The queue of disagreements."""


class ShowDisagreements(NamedTuple):
    """The disagreements on one mode (a slug), above the screen that asks.

    With the id of a ``trace`` the cursor begins there; ``agreed`` lists what was agreed too.
    """

    mode: str
    trace: str | None = None
    agreed: bool = False


class ShowAgreement(NamedTuple):
    """The agreement per mode."""


class ShowSignatures(NamedTuple):
    """How and why runs fail."""


class ShowRuns(NamedTuple):
    """What the judges have run on."""


class ShowStudy(NamedTuple):
    """What was set up, and how far everybody is."""


class ShowOpenCodes(NamedTuple):
    """What was written down that no mode describes, of all traces."""


class ShowGuidelines(NamedTuple):
    """What was agreed about a mode (a slug), above the screen that asks.

    ``occasion`` is the trace and the item whose decision a change of the page comes from; ``go``
    puts the cursor of the screen that asks on a case, and tells whether it is listed there.
    """

    mode_slug: str
    may_write: bool = False
    occasion: tuple[str, str] | None = None
    go: Callable[[Case], bool] | None = None


class ShowHelp(NamedTuple):
    """The keys and signs of a screen, above it."""

    where: Where
    keymap: Keymap


class ShowPalette(NamedTuple):
    """Every action of a screen, and its places, above it."""

    where: Where
    keymap: Keymap


class ShowThemes(NamedTuple):
    """The themes, above the screen that is open; ``current`` is the one that is set."""

    current: str


class ReportToWrite(NamedTuple):
    """A report that a screen shows: what its file is called, and what makes all of it anew.

    ``make`` is slow, for workers; it asks now and then whether nobody waits any more, which may
    raise an error to stop.
    """

    name: str
    make: Callable[[OpenWorkspace, Callable[[], bool]], Report]


@runtime_checkable
class HasReport(Protocol):
    """A screen that shows a report which can be written to a file."""

    def report_to_write(self) -> ReportToWrite | None:
        """What is on screen, None while there are no figures."""


class ShowExportFormats(NamedTuple):
    """The formats in which can be exported, above the screen that is open: those of labels, and
    of its report where it has one."""

    report: ReportToWrite | None = None


class ShowExport(NamedTuple):
    """Where an export in a format goes and what it holds, above the screen that is open."""

    opened: OpenWorkspace
    file_format: str
    report: ReportToWrite | None = None


Destination = (
    ShowLibrary
    | ShowTrace
    | ShowSideBySide
    | ShowAdjudication
    | ShowDisagreements
    | ShowAgreement
    | ShowSignatures
    | ShowRuns
    | ShowStudy
    | ShowOpenCodes
    | ShowGuidelines
    | ShowHelp
    | ShowPalette
    | ShowThemes
    | ShowExportFormats
    | ShowExport
)


class AppContext(Protocol):
    """The app, as screens know it."""

    options: AppOptions
    configuration: Configuration
    writes: Writes
    """What is written to the workspace, in order."""
    trace_queue: TraceQueue
    """The traces that one goes through."""

    @property
    def opened(self) -> OpenWorkspace | None:
        """The workspace and who works in it, None until it is open."""

    @property
    def refused(self) -> str | None:
        """Why there is no workspace, where one could not be opened."""

    @property
    def judge_at_work(self) -> UnderWay | None:
        """The judge that is at work now."""

    @property
    def input_priority(self) -> InputPriority:
        """Tells background threads to pause while input is handled."""

    @property
    def taxonomy(self) -> Taxonomy:
        """The taxonomy that is labelled with."""

    @property
    def catalog(self) -> Catalog:
        """The traces that were found."""

    @property
    def keys_set(self) -> dict[str, tuple[str, ...]]:
        """Keys that the person has set, by the ids of actions."""

    def key_of(self, action_id: str) -> str:
        """Return how the key of an action is shown, as the user has set it."""

    @property
    def open_trace_id(self) -> str | None:
        """The id of the trace that is open on an annotate screen, if any."""

    def go(self, destination: Destination) -> None:
        """Show another screen."""

    def put_back(self, event: Key) -> None:
        """Deliver a key again: it was meant for the screen below the one that received it."""

    def when_ready(self, work: Callable[[OpenWorkspace], object]) -> None:
        """Do ``work`` with the workspace, now or once it is open, in order."""

    def guarded(self, step: Callable[[], Result]) -> Result | None:
        """Do ``step``; what is refused is said in words, and None given back."""

    def ask(self, screen: Screen[Answer], answered: Callable[[Answer | None], None]) -> None:
        """Show a dialog above the open screen, and give its answer to ``answered``."""

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

    def say(self, words: str, *, seconds: float | None = None) -> None:
        """Show a short message on whatever screen is open."""

    def show_error(self, words: str) -> None:
        """Say what went wrong, on whatever screen is open."""

    def leave(self, code: int = 0) -> None:
        """End the app."""

    def waiting_words(self) -> str:
        """What stands in place of the annotator while no workspace is open."""

    def unsent_words(self) -> tuple[str, ...]:
        """How much waits on this machine for the server; nothing where nothing does."""

    def stop_reading(self) -> None:
        """Nobody waits for the one file that was named any more."""

    def queue_changed(self) -> None:
        """What is to do has changed: let the library read its queue anew."""

    def study_changed(self) -> None:
        """A study was set up or changed: work as it says from now on, on the open trace too."""

    def judge_traces(self, traces: Sequence[Trace]) -> None:
        """Have a judge look at these traces; while one does, ask whether to cancel it."""


class HostApp(AppContext, Protocol):
    """The app, as the services know it that it owns."""

    @property
    def screen(self) -> Screen[Any]:
        """The screen on top."""

    @property
    def screen_stack(self) -> list[Screen[Any]]:
        """All screens that are open."""

    @property
    def size(self) -> Size:
        """The size of the terminal."""

    def call_later(self, callback: Callable[..., object], *args: object) -> bool:
        """Call this on the app's thread, behind all messages that wait."""

    def call_after_refresh(self, callback: Callable[..., object]) -> bool:
        """Call this when the next frame is on screen."""

    def run_worker(
        self,
        work: Coroutine[Any, Any, None] | Callable[[], None],
        *,
        group: str,
        exclusive: bool,
        thread: bool = False,
    ) -> Worker[None]:
        """Run this beside everything else, where it is told in a ``thread``; leaving ends it."""

    def refresh_hints(self) -> None:
        """Draw the last line of every screen anew."""

    def traces_found(self) -> None:
        """More traces are in the catalog."""

    def open_workspace(self, *, trusted: bool = False) -> object:
        """Have the workspace opened beside the screen."""

    def workspace_ready(self) -> None:
        """The workspace is open, and who works in it is known."""

    def workspace_failed(self) -> None:
        """There will be no workspace."""

    def workspace_changed(self) -> None:
        """Another program has written to the workspace."""

    def presence_changed(self) -> None:
        """Somebody has come to where one is, or left."""


@runtime_checkable
class HasInputQueue(Protocol):
    """An app with an input queue; widgets that are tested alone do without."""

    @property
    def input_priority(self) -> InputPriority:
        """Tells background threads to pause while input is handled."""

    @property
    def input_delivered(self) -> int:
        """The number of keys, clicks and pastes that were delivered."""


def context_of(node: DOMNode) -> AppContext:
    """The app of a screen or widget, with what it shares."""
    return cast("AppContext", node.app)


@dataclass
class Judged:
    """How far a judge has come, in words that are fit for display.

    ``done`` is said once, at the end; with ``problem`` the words say what went wrong. ``more`` is
    what else there is to know then. ``trace_id`` is the trace of which something new is in the
    workspace, None where any may be.
    """

    words: str
    done: bool = False
    problem: bool = False
    more: str = ""
    trace_id: str | None = None

    def tell(self, hints: HintBar, then: str = "") -> None:
        """Say how it ended, and what to do ``then``; how far it is the bar says by itself."""
        if self.done:
            parts = (self.words, then, self.more)
            hints.say(" · ".join(part for part in parts if part), error=self.problem)


@runtime_checkable
class HearsJudge(Protocol):
    """A screen that wants to know how far a judge has come."""

    def judged(self, message: Judged) -> None: ...
