"""The traces behind a figure of a report, and from each the way to its place and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on, work
from textual.binding import BindingType
from textual.message import Message

from mast_tui.safe_text import one_line
from mast_tui.ui.actions.registry import Where, bindings_for
from mast_tui.ui.context import TraceLocation
from mast_tui.ui.reports.base import TablesScreen
from mast_tui.ui.reports.detail import row_words
from mast_tui.ui.reports.source import Listing
from mast_tui.ui.titles import plain_title
from mast_tui.ui.widgets.virtual_lines import VirtualLines

if TYPE_CHECKING:
    from mast_tui.ui.services.open_workspace import OpenWorkspace

NOTHING: Final = "No trace stands behind this figure.\n\nEsc goes back to the figures."


class TracesScreen(TablesScreen):
    """One row per trace; Enter opens it at its place, Escape comes back to the figure."""

    @dataclass
    class Found(Message):
        """The traces behind the figure, None where it is being counted anew."""

        listing: Listing | None
        problem: str | None = None

    def __init__(self, figure: str, find: Callable[[OpenWorkspace], Listing | None]) -> None:
        """Show the traces behind a figure.

        Args:
            figure: What it is called.
            find: Lists them; it runs in a worker.
        """
        super().__init__()
        self._figure = figure
        self._find = find
        self._listing: Listing | None = None
        self._only_unlike = False
        self._looking = True
        self._then: list[Callable[[], None]] = []

    def on_mount(self) -> None:
        """Find the traces."""
        super().on_mount()
        self.show_words("Finding the traces …")
        self._show_title()
        self.mast.when_ready(self._start)

    def _start(self, opened: OpenWorkspace) -> None:
        self._look(opened)

    @work(thread=True, group="behind", exclusive=True)
    def _look(self, opened: OpenWorkspace) -> None:
        from mast_tui.workspace import WorkspaceError

        try:
            self.post_message(self.Found(self._find(opened)))
        except (WorkspaceError, ValueError) as error:
            self.post_message(self.Found(None, str(error)))

    def on_traces_screen_found(self, message: Found) -> None:
        """List the traces, and do what was asked for while they were looked for."""
        self._listing, self._looking = message.listing, False
        if message.problem is not None:
            self.show_words(one_line(message.problem))
        elif message.listing is None or not message.listing.table.rows:
            self.show_words(NOTHING)
        else:
            self._show_rows(message.listing)
        self._show_title()
        then, self._then = self._then, []
        for step in then:
            step()

    # Showing

    def _show_title(self) -> None:
        facts = () if self._listing is None else self._listing.facts
        self.title_bar.show((self._figure, *facts), self.who())

    def _show_rows(self, listing: Listing) -> None:
        table = listing.table
        if self._only_unlike and listing.differing is not None:
            kept = tuple(row for row in table.rows if row.id in listing.differing)
            table = replace(table, groups=(kept,))
        self.remove_class("-empty")
        self.main_list.show((table,))
        self.main_list.focus()
        self._show_detail()

    def _show_detail(self) -> None:
        table, row, listing = self.main_list.table, self.main_list.row, self._listing
        if table is None or row is None or listing is None:
            return
        self.detail.border_title = plain_title(listing.titles.get(row.id, row.id))
        keys = ["Enter opens it"]
        if listing.differing is not None:
            keys.append("v only where they differ")
        self.detail.border_subtitle = plain_title(" · ".join(keys))
        self.detail.show_text(row_words(table, row))

    @on(VirtualLines.Moved, "#table")
    def _moved(self, event: VirtualLines.Moved) -> None:
        event.stop()
        self.hints.clear()
        self._show_detail()

    @on(VirtualLines.Chosen, "#table")
    def _chosen(self, event: VirtualLines.Chosen) -> None:
        event.stop()
        self.action_open()

    # Keys

    def action_differing(self) -> None:
        """List only where the sides differ, or all again."""
        if self._looking:
            self._then.append(self.action_differing)
            return
        listing = self._listing
        if listing is None or not listing.table.rows:
            return
        if not listing.differing:
            self.hints.say("The sides differ in none of these traces")
            return
        self._only_unlike = not self._only_unlike
        self._show_rows(listing)
        self.hints.say("Only where the sides differ · v lists all" if self._only_unlike else "All")

    def action_open(self) -> None:
        """The trace under the cursor, at its place."""
        if self._looking:
            self._then.append(self.action_open)
        elif self.main_list.row is not None and not self.has_class("-empty"):
            self.mast.when_ready(self._open)

    def _open(self, opened: OpenWorkspace) -> None:
        from mast_tui.workspace import WorkspaceError

        row, listing = self.main_list.row, self._listing
        if row is None or listing is None:
            return
        try:
            opening = listing.open(opened, row.id)
        except WorkspaceError as error:
            self.hints.say(one_line(str(error)), error=True)
            return
        if isinstance(opening, TraceLocation):
            self.open_at(opening)
        else:
            self.mast.go(opening)


class AgreementTracesScreen(TracesScreen):
    """What the sides say of each trace: where they differ, first."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_for(Where.AGREEMENT_TRACES, Where.EVERYWHERE)
    where = Where.AGREEMENT_TRACES


class SignatureTracesScreen(TracesScreen):
    """How each trace fails."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_for(Where.SIGNATURE_TRACES, Where.EVERYWHERE)
    where = Where.SIGNATURE_TRACES
