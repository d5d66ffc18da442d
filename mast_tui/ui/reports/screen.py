"""The base screens of both reports: pages of tables, and the source traces of a figure."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import ClassVar, Final, TypeVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widgets import Static

from mast_tui.adjudication import take_on
from mast_tui.errors import MastError
from mast_tui.figures.record import Sources
from mast_tui.labels import GOLD, annotator_kind
from mast_tui.reports.model import Note, Report, ReportSection, Row, Table
from mast_tui.safe_text import one_line
from mast_tui.session import VisibleWork, visible_work
from mast_tui.ui.base_screen import Stopped, StoppedError
from mast_tui.ui.context import Destination, ReportToWrite, TraceLocation
from mast_tui.ui.reports.lines import (
    ReportLines,
    choosable_columns,
    note_lines,
    row_text,
    row_title,
)
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.styles import BASE_SCREEN, REPORTS
from mast_tui.ui.table_screen import DetailScreen, OpensTraces
from mast_tui.ui.textual_internals import TITLE_FRAME, RenderCache
from mast_tui.ui.trace_view.span_view import SpanView
from mast_tui.ui.wording import counted, plain_title
from mast_tui.writes import piece_of_work


class PageBar(RenderCache):
    """The titles of the pages, which can be clicked.

    The title of the open page is in brackets, to be visible without colours.
    """

    css_prefix = "page-bar"
    css_parts = ("open", "other")

    DEFAULT_CSS = """
    PageBar { height: 1; width: 1fr; }
    """

    def __init__(self, titles: Mapping[str, str]) -> None:
        """Make the bar; the first page is open.

        Args:
            titles: The title of each page with its key, by the id of the page.
        """
        super().__init__()
        self._title_by_page = titles
        self._open_page = next(iter(titles))

    def show(self, page: str) -> None:
        """Mark another page as the open one."""
        self._open_page = page
        self.refresh()

    def _drawn_titles(self) -> dict[str, str]:
        """Return the title of each page as drawn."""
        return {
            page: f"[{title}]" if page == self._open_page else f" {title} "
            for page, title in self._title_by_page.items()
        }

    def render_line(self, y: int) -> Strip:
        """Render the titles."""
        base = self.rich_style
        segments = [Segment(" ", base)]
        for page, text in self._drawn_titles().items():
            style = base + self._part("open" if page == self._open_page else "other")
            segments.append(Segment(text, style))
        return Strip(segments).adjust_cell_length(self.size.width, base)

    async def on_click(self, event: events.Click) -> None:
        """Open the page that was clicked."""
        end = 1  # a blank precedes the first title
        for page, text in self._drawn_titles().items():
            end += cell_len(text)
            if 1 <= event.x < end:
                await self.screen.run_action(f"show_page({page!r})")
                return


COUNTING_TEXT: Final = "Counting verdicts …"

MOST_SOURCE_TRACES: Final = 2000
"""The most source traces in a list."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The source traces of a figure.

    Attributes:
        table: A row for each trace, or for each trace and mode.
        titles: The title of each row's detail, by the ids of the rows.
        facts: Parts of the title, such as the number of traces.
        open: Returns the trace or the screen for Enter on a row, by the id of the row. It may raise
            ``WorkspaceError``.
        differing_ids: The ids of the rows on which the sides differ, such as two annotators; None
            without sides.
        adjudicated_ids: The ids of the rows that open the adjudication.
    """

    table: Table
    titles: Mapping[str, str]
    facts: tuple[str, ...]
    open: Callable[[OpenWorkspace, str], TraceLocation | Destination]
    differing_ids: frozenset[str] | None = None
    adjudicated_ids: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Page:
    """A page in its current state.

    Attributes:
        section: The tables of the page; None for only a text.
        text: The text in place of the section.
        intervals_pending: Whether intervals are still being computed.
        notes: The notes that hold for the whole report.
        about: The line or lines over the tables.
        keys: The keys of the page, shown beside the row under the cursor.
    """

    section: ReportSection | None = None
    text: str = COUNTING_TEXT
    intervals_pending: bool = False
    notes: Sequence[Note] = ()
    about: str = ""
    keys: tuple[str, ...] = ()


class TablesScreen(OpensTraces, DetailScreen):
    """Tables with a description of the row under their cursor, or a text instead of both."""

    CSS_PATH: ClassVar[list[str | PurePath]] = [
        BASE_SCREEN,
        REPORTS,
    ]
    AUTO_FOCUS = "#table"

    def compose_panes(self) -> ComposeResult:
        """Yield the tables, and the description of the row under the cursor."""
        yield Static(id="about", markup=False)
        yield ReportLines(id="table")
        yield SpanView(id="detail", classes="detail")

    def on_mount(self) -> None:
        """Hide the line over the tables."""
        self.show_about("")

    @property
    def main_list(self) -> ReportLines:
        """The tables."""
        return self.query_one(ReportLines)

    def show_about(self, text: str) -> None:
        """Show a line over the tables; an empty text hides it."""
        about = self.query_one("#about", Static)
        about.display = bool(text)
        about.update(Content(text))


class ReportScreen(TablesScreen):
    """A report in pages. A subclass computes it and offers choices."""

    pages: ClassVar[Mapping[str, str]]
    """The titles of the pages, by the ids of their sections, in the order of their keys."""

    traces: ClassVar[type[TracesScreen]]
    """The screen that lists the source traces of a figure."""

    def __init__(self) -> None:
        super().__init__()
        self.page = next(iter(self.pages))
        self._open_page = Page()
        self._row_key_by_section: dict[str, tuple[str, str]] = {}
        """The row of the cursor in each section that was shown, by the id of the section."""
        self._was_left = False
        """True if another screen has been shown since the report was computed."""
        self._counted_work: frozenset[object] | None = None
        """The finished passes and decisions when the report was computed; None until read."""

    @abstractmethod
    def start(self, opened: OpenWorkspace) -> None:
        """Compute the whole report."""

    def start_page(self, opened: OpenWorkspace) -> None:
        """Compute the figures of the open page, if pages are computed separately."""

    @abstractmethod
    def start_changed(self, opened: OpenWorkspace) -> None:
        """Compute again what may have changed on another screen."""

    @abstractmethod
    def title_parts(self) -> tuple[str, ...]:
        """Return the parts of the title: the name of the screen, and the subject of its figures."""

    @property
    @abstractmethod
    def can_look(self) -> bool:
        """True if the open page leaves out traces that an adjudicator may see."""

    @abstractmethod
    def open_page(self) -> Page:
        """Return the open page."""

    @abstractmethod
    def whole_report(self) -> Callable[[OpenWorkspace, Stopped], Report] | None:
        """Return a function for a worker that computes all pages with the current choices.

        The result is None while there are no figures.
        """

    @abstractmethod
    def list_sources(self, sources: Sources) -> Callable[[OpenWorkspace], Listing | None]:
        """Return a function for a worker that lists the source traces of a figure.

        The function returns None if the figure is being computed again.
        """

    def location_of(self, row: str) -> TraceLocation | None:
        """Return the location of the trace in a row of the open page; None for other rows.

        ``row`` is the id of the row. Subclasses with rows of traces override this method.

        Args:
            row: The id of the row.
        """
        return None

    def compose_pages(self) -> ComposeResult:
        """Yield the titles of the pages."""
        yield PageBar(
            {page: f"{self._key_text(page)} {title}" for page, title in self.pages.items()}
        )

    @property
    def row(self) -> Row | None:
        """The row under the cursor, or None if there are no figures."""
        return None if self._open_page.section is None else self.main_list.row

    def on_mount(self) -> None:
        """Compute the report as soon as the workspace is open."""
        self.show_message_only("Opening the workspace …")
        self.show_title()
        self.mast.workspace.when_ready(self.start)

    def on_screen_suspend(self) -> None:
        """Remember that labels may change on another screen; a dialog changes none."""
        self._was_left = self._was_left or not isinstance(self.app.screen, ModalScreen)

    def on_screen_resume(self) -> None:
        """Compute again what may have changed on another screen."""
        if self._was_left:
            self._was_left = False
            self.mast.workspace.when_ready(self.start_changed)

    def announce_start(self, opened: OpenWorkspace) -> None:
        """Show that the report is being computed, and count changes from now on."""
        self.hints.prompt(COUNTING_TEXT)
        self._counted_work = None
        self._read_changes(opened)

    def show_changes_of_others(self) -> None:
        """Show the number of changes; the figures stay until the user asks for new ones."""
        if self.mast.opened is not None:
            self._read_changes(self.mast.opened)

    def _read_changes(self, opened: OpenWorkspace) -> None:
        """Read the finished passes and the decisions in a worker, which then shows the changes."""
        workspace = opened.workspace
        ref = opened.taxonomy.ref

        def read_finished_work() -> frozenset[object]:
            finished_work: set[object] = {
                (a_pass.annotator, a_pass.trace_id, a_pass.number, a_pass.finished_at)
                for a_pass in workspace.passes(taxonomy=ref)
                if a_pass.finished and annotator_kind(a_pass.annotator).is_person
            }
            for trace_id, decisions in workspace.all_decisions(ref).items():
                finished_work |= {
                    (trace_id, decision.mode, decision.decided_at) for decision in decisions
                }
            return frozenset(finished_work)

        # A failure is not shown, because the title shows that the server is away.
        self.work.run("changes", read_finished_work, self._show_changes, failed=lambda _: None)

    def _show_changes(self, finished_work: frozenset[object]) -> None:
        """Show how many passes and decisions are new since the report was computed."""
        if self._counted_work is None:
            self._counted_work = finished_work
        # Work that was done again is in both differences and counts once.
        added_count = len(finished_work - self._counted_work)
        change_count = max(added_count, len(self._counted_work - finished_work))
        if change_count:
            key = self.mast.key_of(f"{self.where}.anew")
            self.hints.say(
                "Not in these figures: "
                f"{counted(change_count, 'new pass or decision', 'new passes or decisions')} · "
                f"{key} counts again"
            )

    def action_anew(self) -> None:
        """Compute the whole report again."""
        self.mast.workspace.when_ready(self.start)

    def _show_page_keys(self) -> None:
        """Show the hint of the key for hidden traces first, or leave it out.

        Then follows the effect of Enter on the row under the cursor. Without figures on the page,
        leave out the keys for its rows.
        """
        first_hints = {"look": "look as adjudicator"} if self.can_look else {}
        hidden_actions = [] if self.can_look else ["look"]
        if self._open_page.section is None:
            hidden_actions += ["open", "adjudicate", "passes"]
        elif self._open_effect:
            first_hints["open"] = self._open_effect
        else:
            hidden_actions.append("open")
        self.hints.leave_out(hidden_actions, first=first_hints)

    def offer_adjudication(self, hidden_ids: Sequence[str]) -> None:
        """Ask whether to adjudicate hidden traces; if so, compute the report with them.

        Args:
            hidden_ids: The ids of the hidden traces.
        """

        def take_on_traces() -> None:
            self.mast.workspace.when_ready(lambda opened: self._take_on(opened, hidden_ids))

        self.mast.ask_key(
            f"Adjudicate {counted(len(hidden_ids), 'hidden trace')}?",
            "You will see the labels of others, as an adjudicator does. After that you cannot "
            "label these traces independently. This is recorded.",
            (("a", "see them as adjudicator"), ("n", "leave them out")),
            {"a": take_on_traces},
            default="n",
        )

    @piece_of_work
    async def _take_on(self, opened: OpenWorkspace, hidden_ids: Sequence[str]) -> None:
        """Begin to adjudicate hidden traces, and compute the report again.

        Traces that the annotator has begun to label stay hidden.
        """
        started_ids = await self.mast.workspace.carry_out(
            lambda: take_on(opened.workspace, opened.taxonomy, opened.annotator, hidden_ids)
        )
        if started_ids is None:
            return
        self.start(opened)
        omitted_count = len(hidden_ids) - len(started_ids)
        if omitted_count:
            self.notify(
                f"{counted(omitted_count, 'trace')} excluded: you have begun to label "
                f"{'it' if omitted_count == 1 else 'them'}; finish your work there first",
                markup=False,
            )

    def report_to_write(self) -> ReportToWrite | None:
        """Return the report for an export, or None while there are no figures."""
        compute_report = self.whole_report()
        return None if compute_report is None else ReportToWrite(self.where.value, compute_report)

    def show_title(self) -> None:
        """Show the parts of the title, and the annotator."""
        self.title_bar.show(self.title_parts(), self.right_title_parts())

    def show(self) -> None:
        """Show the open page, or its text."""
        self.query_one(PageBar).show(self.page)
        self.show_title()
        page = self.open_page()
        self._open_page = page
        if page.section is None:
            self._show_page_keys()
            self.show_message_only(page.text)
            return
        self.remove_class("-empty")
        self.show_about(page.about)
        self.main_list.show(
            page.section.parts,
            intervals_pending=page.intervals_pending,
            row_key=self._row_key_by_section.get(self._section_id),
        )
        self.main_list.focus()
        self.show_detail()

    @property
    def _section_id(self) -> str:
        """The id of the section on screen, or of the page if it has only a text."""
        section = self._open_page.section
        return self.page if section is None else section.id

    def show_detail(self) -> None:
        """Describe the row under the cursor, with the notes on its figures; show its keys."""
        self._show_page_keys()
        line = self.main_list.line
        page = self._open_page
        notes = (*(page.section.notes if page.section else ()), *page.notes)
        if line.table is not None and line.row is not None:
            title = row_title(line.table, line.row)
            text = row_text(
                line.table,
                line.row,
                chosen_column=self.main_list.chosen_column,
                intervals_pending=page.intervals_pending,
                notes=notes,
            )
        elif line.foldable_part is not None:
            title = line.foldable_part.title
            text = ""
            if isinstance(line.foldable_part, Table):
                text = "\n".join(note_lines(line.foldable_part, notes=notes))
        else:
            return
        self.detail.show_titles(plain_title(title), plain_title(" · ".join(self._row_keys())))
        if self.detail.text != text:
            self.detail.show_text(text)

    def _key_text(self, name: str) -> str:
        """Return the text of the key of an action of this screen, by the action's name."""
        return self.mast.key_of(f"{self.where}.{name}")

    @property
    def _open_effect(self) -> str:
        """The effect of the key that opens the row under the cursor; empty if it opens nothing."""
        lines = self.main_list
        if lines.line.foldable_part is not None:
            return "fold, unfold"
        if lines.sources is not None:
            return "traces counted"
        if lines.row is not None and self.location_of(lines.row.id) is not None:
            return "open it"
        return ""

    def _row_keys(self) -> Sequence[str]:
        """Return the keys for the row under the cursor, as many as fit."""
        lines = self.main_list
        keys = [f"{self._key_text('open')}: {self._open_effect}"] if self._open_effect else []
        if lines.line.table is not None and len(choosable_columns(lines.line.table)) > 1:
            keys.append(f"{self._key_text('left')} {self._key_text('right')} column")
        keys += self._open_page.keys
        keys.append(f"{self._key_text('text_down')} {self._key_text('text_up')} scroll")
        while keys and len(" · ".join(keys)) > self.size.width - 2 * TITLE_FRAME:
            keys.pop()
        return keys

    def row_moved(self) -> None:
        """Remember the row, and describe it."""
        row_key = self.main_list.row_key
        if row_key is not None:
            self._row_key_by_section[self._section_id] = row_key
        self.show_detail()
        if not self._open_page.intervals_pending:  # until then a hint says so
            self.hints.clear()

    def action_show_page(self, page: str) -> None:
        """Show a page, and compute its figures if needed."""
        self.page = page
        if not self._open_page.intervals_pending:  # until then a hint says so
            self.hints.clear()
        self.mast.workspace.when_ready(self.start_page)
        self.show()

    def action_page(self, step: int) -> None:
        """Open the next or previous page; the last is followed by the first."""
        pages = list(self.pages)
        self.action_show_page(pages[(pages.index(self.page) + step) % len(pages)])

    def action_across(self, delta: int) -> None:
        """Move to another cell of the row."""
        if not self.main_list.move_across(delta):
            self.hints.say("There is no other cell to choose in this row")

    def action_open(self) -> None:
        """Fold the part, open the trace, or list the source traces under the cursor."""
        if self._open_page.section is not None and self.main_list.toggle_fold():
            self.show_detail()
            return
        row = self.row
        if row is None:
            self.hints.say("There is no trace to open here")
            return
        location = self.location_of(row.id)
        if location is not None:
            self.open_at(location)
            return
        sources = self.main_list.sources
        if sources is None:
            self.hints.say("This figure counts no traces: choose another row or cell")
            return
        title = one_line(self.main_list.sources_title)
        self.app.push_screen(self.traces(title, self.list_sources(sources)))


class TracesScreen(TablesScreen):
    """The source traces of a figure. Enter opens a trace at its evidence."""

    def __init__(self, figure: str, find: Callable[[OpenWorkspace], Listing | None]) -> None:
        """Make the screen.

        Args:
            figure: The title of the figure.
            find: Lists the source traces in a worker; returns None without a figure.
        """
        super().__init__()
        self._figure = figure
        self._find = find
        self._listing: Listing | None = None
        self._shows_only_differing = False
        self._is_searching = True
        self._delayed_actions: list[Callable[[], None]] = []

    def on_mount(self) -> None:
        """Search the traces."""
        self.show_message_only("Finding the traces …")
        self._show_title()
        self.mast.workspace.when_ready(self._find_traces)

    def _find_traces(self, opened: OpenWorkspace) -> None:
        """Find the source traces of the figure in a worker, then show them or the problem."""
        self.work.run(
            "sources",
            lambda: self._find(opened),
            self._show_listing,
            partial(self._show_listing, None),
        )

    def _show_listing(self, listing: Listing | None, problem: str | None = None) -> None:
        """List the traces or show the problem, then run the actions that were delayed."""
        self._listing = listing
        self._is_searching = False
        if listing is None or not listing.table.rows:
            back = self.mast.key_of("everywhere.back")
            empty_text = f"This figure counts no traces.\n\n{back} goes back to the figures."
            self.hints.leave_out(("open", "differing"))
            self.show_message_only(empty_text if problem is None else problem)
        else:
            self._show_rows(listing)
        self._show_title()
        while self._delayed_actions:
            self._delayed_actions.pop(0)()

    def _show_title(self) -> None:
        facts = () if self._listing is None else self._listing.facts
        self.title_bar.show((self._figure, *facts), self.right_title_parts())

    def _show_rows(self, listing: Listing) -> None:
        """Show all traces, or only those on which the sides differ."""
        table = listing.table
        if self._shows_only_differing and listing.differing_ids is not None:
            differing_rows = tuple(row for row in table.rows if row.id in listing.differing_ids)
            table = replace(table, groups=(differing_rows,))
        self.remove_class("-empty")
        self.main_list.show((table,))
        self.main_list.focus()
        self.show_detail()

    def show_detail(self) -> None:
        """Describe the trace under the cursor."""
        line = self.main_list.line
        listing = self._listing
        if line.table is None or line.row is None or listing is None:
            return
        key_of = self.mast.key_of
        effect = "adjudicate" if line.row.id in listing.adjudicated_ids else "open"
        self.hints.leave_out(self.keys_left_out, first={"open": effect})
        keys = [f"{key_of(f'{self.where}.open')} {effect}s it"]
        if listing.differing_ids is not None:
            keys.append(f"{key_of('agreement_traces.differing')} only where they differ")
        title = listing.titles.get(line.row.id, line.row.id)
        self.describe(title, row_text(line.table, line.row), " · ".join(keys))

    def action_differing(self) -> None:
        """Switch between all traces and those on which the sides of the figure differ.

        The switch is delayed until the traces are found.
        """
        if self._is_searching:
            self._delayed_actions.append(self.action_differing)
            return
        listing = self._listing
        if listing is None or not listing.table.rows:
            return
        if not listing.differing_ids:
            self.hints.say("The sides differ in none of these traces")
            return
        self._shows_only_differing = not self._shows_only_differing
        self._show_rows(listing)
        key = self.mast.key_of("agreement_traces.differing")
        message = (
            f"Only where the sides differ · {key} lists all"
            if self._shows_only_differing
            else "All"
        )
        self.hints.say(message)

    def action_open(self) -> None:
        """Open the trace under the cursor at its evidence; delayed until the traces are found."""
        if self._is_searching:
            self._delayed_actions.append(self.action_open)
        elif self.main_list.row is not None and not self.has_class("-empty"):
            self.mast.workspace.when_ready(self._open_row)

    def _open_row(self, opened: OpenWorkspace) -> None:
        """Open the trace or the screen of the row."""
        row = self.main_list.row
        if row is None or self._listing is None:
            return
        try:
            destination = self._listing.open(opened, row.id)
        except MastError as error:
            self.say_error(error)
            return
        if isinstance(destination, TraceLocation):
            self.open_at(destination)
        else:
            self.mast.go(destination)


Found = TypeVar("Found")


def stop_when(stopped: Stopped, find: Callable[[str], Found]) -> Callable[[str], Found]:
    """Return a function that does what ``find`` does, and raises ``StoppedError`` after the stop.

    Args:
        stopped: Returns whether the figures are no longer needed.
        find: Finds something about a trace, such as the order of its spans, from its id.
    """

    def find_unless_stopped(trace_id: str) -> Found:
        if stopped():
            raise StoppedError
        return find(trace_id)

    return find_unless_stopped


def visible_labels(
    opened: OpenWorkspace, source: str, traces_by_author: Mapping[str, frozenset[str]]
) -> VisibleWork:
    """Return on which traces the user may see labels.

    The caller must record the reveal of the ``revealing`` traces, if it shows them.

    Args:
        opened: The open workspace.
        source: ``GOLD``, or the annotator or judge of the labels.
        traces_by_author: The result of ``finished_or_judged_traces``.
    """
    return visible_work(
        opened.workspace,
        opened.annotator,
        opened.taxonomy.ref,
        None if source == GOLD else source,
        blind=opened.blind,
        traces_by_author=traces_by_author,
    )


HIDDEN_TEXT: Final = "The labels of others on these traces are hidden from you."
