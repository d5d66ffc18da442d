"""The app as screens know it: the places to go to, and what a screen can hear of.

Screens import this, never the app and never each other; the app alone imports the screens. Types
may name the app.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

if TYPE_CHECKING:
    from textual.dom import DOMNode

    from mast_tui.adjudication.guidelines import Case
    from mast_tui.reports.model import Report
    from mast_tui.traces.model import Trace
    from mast_tui.ui.actions.registry import Keymap, Where
    from mast_tui.ui.app import MastApp as MastApp
    from mast_tui.ui.services.open_workspace import OpenWorkspace
    from mast_tui.ui.widgets.hint_bar import HintBar

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


class RunToWrite(NamedTuple):
    """A run that a screen shows, which can be written with its labels as a page."""

    trace: Trace


@runtime_checkable
class HasReport(Protocol):
    """A screen that shows a report or a run which can be written to a file."""

    def report_to_write(self) -> ReportToWrite | RunToWrite | None:
        """Return the report or run on screen; None while there is none."""


class ShowExportFormats(NamedTuple):
    """The formats of an export, above the open screen: those of labels, and of its report or run
    where it has one."""

    report: ReportToWrite | RunToWrite | None = None


class ShowExport(NamedTuple):
    """Where an export in a format goes and what it holds, above the screen that is open."""

    opened: OpenWorkspace
    file_format: str
    report: ReportToWrite | RunToWrite | None = None


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


@runtime_checkable
class HasInputQueue(Protocol):
    """An app with an input queue; widgets that are tested alone do without."""

    @property
    def keys_come(self) -> bool:
        """True if a key has come a moment ago, so that another may follow."""

    @property
    def input_delivered(self) -> int:
        """The number of keys, clicks and pastes that were delivered."""


def context_of(node: DOMNode) -> MastApp:
    """Return the app of a screen or widget."""
    return cast("MastApp", node.app)


@dataclass
class JudgeProgress:
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

    def judged(self, message: JudgeProgress) -> None: ...
