"""The app as screens see it: the destinations, and the messages for screens.

Screens import this module instead of the app or each other. Only the app imports the screens. Types
may name the app.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from msgspec import Struct

if TYPE_CHECKING:
    from textual.dom import DOMNode

    from mast_tui.adjudication.guidelines import GuidelineCase
    from mast_tui.reports.model import Report
    from mast_tui.traces.model import Trace
    from mast_tui.ui.app import MastApp as MastApp
    from mast_tui.ui.services.open_workspace import OpenWorkspace
    from mast_tui.ui.widgets.bars import HintBar


class TraceLocation(Struct, frozen=True):
    """A location in a trace: a suggestion, or a span.

    Attributes:
        trace_id: The id of the trace.
        suggestion: The id of the suggestion.
        judge: The judge of the suggestion, to go to its first one.
        key: The key of the span.
        position: The index of the span, in case the trace does not have the key.
        find: A text to search for, from the span on.
    """

    trace_id: str
    suggestion: str | None = None
    judge: str | None = None
    key: str | None = None
    position: int | None = None
    find: str | None = None


# Destinations. The constructor of the screen has the same arguments.


class ShowLibrary(Struct, frozen=True):
    """The library of traces, without the screens above it."""


class ShowTrace(Struct, frozen=True):
    """A trace on the present annotate screen or on a new one."""

    trace: Trace
    location: TraceLocation | None = None


class ShowSideBySide(Struct, frozen=True):
    """Two runs side by side, with their names."""

    a: Trace
    b: Trace
    names: tuple[str, str]


class ShowDisagreements(Struct, frozen=True):
    """The disagreements on one mode, above the present screen.

    Attributes:
        mode: The slug of the mode.
        trace: The id of the trace to put the cursor on; None for the first one.
        lists_agreed: True to list agreed items too.
    """

    mode: str
    trace: str | None = None
    lists_agreed: bool = False


class ShowGuidelines(Struct, frozen=True):
    """The guidelines for a mode, above the present screen.

    Attributes:
        mode_slug: The slug of the mode.
        may_write: True if the user may change the guidelines.
        occasion: The trace and the item of the decision that is the reason for a new guideline.
        go_to_case: Moves the present screen to a case, and returns whether it lists the case.
    """

    mode_slug: str
    may_write: bool = False
    occasion: tuple[str, str] | None = None
    go_to_case: Callable[[GuidelineCase], bool] | None = None


class ReportToWrite(Struct, frozen=True):
    """A report on screen that can be exported to a file.

    Attributes:
        name: The name of the file.
        make: Makes the report in a worker, because this is slow. It regularly calls its second
            argument, which returns whether to stop or raises an error.
    """

    name: str
    make: Callable[[OpenWorkspace, Callable[[], bool]], Report]


class RunsToWrite(Struct, frozen=True):
    """The runs on a screen that can be exported with their labels as pages.

    Attributes:
        run: The run on screen or under the cursor; None without one.
        listed: All runs of a list.
    """

    run: Trace | None
    listed: Sequence[Trace] = ()


Destination = ShowLibrary | ShowTrace | ShowSideBySide | ShowDisagreements | ShowGuidelines


def context_of(node: DOMNode) -> MastApp:
    """Return the app of a screen or widget."""
    return cast("MastApp", node.app)


class JudgeProgress(Struct):
    """A report on a judge at work.

    Attributes:
        text: The report.
        done: True for the last report.
        problem: True if ``text`` is an error.
        added_hint: A hint to add to the last report.
        trace_id: The trace with new suggestions; None if any trace may have them.
    """

    text: str
    done: bool = False
    problem: bool = False
    added_hint: str = ""
    trace_id: str | None = None

    def show_in(self, hints: HintBar) -> None:
        """Show this report with the added hint if it is the last one.

        The bar shows earlier reports without this method. A screen below another one shows nothing,
        as the message would be old when the user returns to it.

        Args:
            hints: The bar.
        """
        if self.done and hints.screen is context_of(hints).main_screens[-1]:
            parts = (self.text, self.added_hint)
            hints.say(" · ".join(part for part in parts if part), error=self.problem)


@runtime_checkable
class ShowsJudgeProgress(Protocol):
    """A screen that receives the reports on a judge."""

    def show_judge_progress(self, message: JudgeProgress) -> None: ...
