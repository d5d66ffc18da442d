"""What the report screen asks of its source: to count, to offer choices, to list traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from textual.app import App

from mast_tui.adjudication import OrderOf
from mast_tui.gold import Order
from mast_tui.reports.model import Behind, Note, Report, Row, Section, Table
from mast_tui.ui.context import AppContext, Destination, TraceLocation
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.widgets.hint_bar import HintBar
from mast_tui.ui.wording import counted

Stage = TypeVar("Stage")

Stopped = Callable[[], bool]
"""Whether nobody waits for the figures any more."""

COUNTING: Final = "Counting verdicts …"

MOST: Final = 2000
"""Traces that are listed; the rest is counted."""


class LeftError(Exception):
    """The screen was left, or counts something else, while this was counted."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The traces behind a figure.

    Args:
        table: A row a trace, or a trace and mode.
        titles: What the detail of each row is called, by the rows' ids.
        facts: How many there are, in words, for the title.
        open: Where Enter on a row leads: into its trace, or to another screen. It may raise
            ``WorkspaceError``.
        differing: The rows on which the sides differ; None where there are no sides.
    """

    table: Table
    titles: Mapping[str, str]
    facts: tuple[str, ...]
    open: Callable[[OpenWorkspace, str], TraceLocation | Destination]
    differing: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """One page as it is known now: its section, or the ``words`` that stand in its place.

    ``pending`` says that intervals are still to come; ``notes`` hold for the whole report. ``keys``
    are told beside the row under the cursor.
    """

    section: Section | None = None
    words: str = COUNTING
    pending: bool = False
    notes: Sequence[Note] = ()
    about: str = ""
    keys: tuple[str, ...] = ()


class Host(Protocol):
    """What a source may ask of the screen that shows it."""

    page: str
    """The id of the page that is open."""

    @property
    def mast(self) -> AppContext:
        """The app, with what it shares."""

    @property
    def app(self) -> App[object]:
        """The app, on whose stack dialogs stand."""

    @property
    def hints(self) -> HintBar:
        """The last line."""

    def begins(self, opened: OpenWorkspace) -> None:
        """All of it is counted now: say so, and from here on what is new."""

    def count(
        self,
        group: str,
        counting: Callable[[Stopped], Iterator[Stage]],
        take: Callable[[Stage], None],
        failed: Callable[[str], Stage],
    ) -> None:
        """Count in a worker; a later counting of the group takes the place of an earlier one.

        Args:
            group: What is counted.
            counting: Counts in stages; it may raise ``LeftError`` once it is stopped.
            take: Keeps what a stage has found, and shows it.
            failed: What is found where nothing could be counted, from why not.
        """

    def forget(self, group: str) -> None:
        """Stop the group's counting that is under way, and pass over what it has posted."""

    def show(self) -> None:
        """Show the open page anew."""

    @property
    def row(self) -> Row | None:
        """The row under the cursor, None where there are no figures."""

    def offer_adjudication(self, hidden: Sequence[str]) -> None:
        """Ask whether to count traces as their adjudicator, and count them anew if so."""


class Source(Protocol):
    """Counts a report for the screen, offers what can be chosen, and lists the traces behind."""

    @property
    def pages(self) -> Mapping[str, str]:
        """What the pages are called, by the ids of their sections, in the order of their keys."""

    @property
    def choices(self) -> Mapping[str, Callable[..., None]]:
        """What a key can choose, by the names that the registry's commands give."""

    def attach(self, host: Host) -> None:
        """Work for this screen from now on."""

    def start(self, opened: OpenWorkspace) -> None:
        """Count all of it, or count it anew."""

    def page_opened(self, opened: OpenWorkspace) -> None:
        """Count what the open page needs and is not there."""

    def come_back(self, opened: OpenWorkspace) -> None:
        """Count again what may have changed while one was on another screen."""

    def title(self) -> tuple[str, ...]:
        """What is open: whose figures, of what."""

    def shown(self) -> Page:
        """The open page."""

    def whole_report(self) -> Callable[[OpenWorkspace, Stopped], Report] | None:
        """Take what is chosen now; in a worker that counts all pages of it, with intervals.

        None while there are no figures.
        """

    def list_behind(self, behind: Behind) -> Callable[[OpenWorkspace], Listing | None]:
        """Take what is on the open page now; in a worker that lists the traces behind a figure.

        The worker gets None where the figure is being counted anew.
        """

    def opening(self, row: str) -> TraceLocation | None:
        """Where a row of the open page leads that is itself a trace."""


def until(stopped: Stopped, orders: OrderOf) -> OrderOf:
    """Make orders of spans that raise ``LeftError`` once nobody waits, as they read the traces."""

    def order_of(trace_id: str) -> Order:
        order = orders(trace_id)

        def asked(key: str) -> int | None:
            if stopped():
                raise LeftError
            return order(key)

        return asked

    return order_of


def hidden_words(count: int) -> str:
    """Say that traces are left out, and how they can be counted.

    Some may be finished by their annotator and come back to be labelled once more, so it is not
    said that they are not.
    """
    it = "it" if count == 1 else "them"
    return f"{counted(count, 'trace')} left out that you may not look into yet · o counts {it}"
