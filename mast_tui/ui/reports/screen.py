"""What both reports share: pages of tables, a row in words, and the traces behind a figure."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import ClassVar, Final, TypeVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import events, on, work
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widgets import Static
from textual.worker import get_current_worker

from mast_tui.adjudication import OrderOf, take_on
from mast_tui.errors import MastError
from mast_tui.gold import Order
from mast_tui.reports.model import Behind, Note, Report, Row, Section, Table
from mast_tui.safe_text import one_line
from mast_tui.ui.context import Destination, ReportToWrite, TraceLocation
from mast_tui.ui.dialogs.dialog import Ask
from mast_tui.ui.reports.cells import choosable, notes_words, row_title, row_words
from mast_tui.ui.reports.lines import ReportLines
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.styles import BASE_SCREEN, REPORTS
from mast_tui.ui.table_screen import DetailScreen, OpensTraces
from mast_tui.ui.textual_internals import RenderCache
from mast_tui.ui.trace_view.span_view import TITLE_FRAME, SpanView
from mast_tui.ui.wording import counted, plain_title
from mast_tui.writes import piece_of_work


class PageBar(RenderCache):
    """Pages can be clicked. The open one is in brackets, so that it shows without colours."""

    css_prefix = "page-bar"
    css_parts = ("open", "other")

    DEFAULT_CSS = """
    PageBar { height: 1; width: 1fr; }
    """

    @dataclass
    class Chosen(Message):
        """A page was clicked."""

        page: str

    def __init__(self, keys: Mapping[str, str]) -> None:
        """Show the first page as the open one.

        Args:
            keys: The key that opens a page, by the title of the page.
        """
        super().__init__()
        self._keys = keys
        self._open = next(iter(keys))
        self._spans: list[tuple[int, int, str]] = []

    def show(self, page: str) -> None:
        """Mark another page as the open one."""
        self._open = page
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """The pages."""
        base = self.rich_style
        segments, used = [Segment(" ", base)], 1
        self._spans = []
        for page, key in self._keys.items():
            here = page == self._open
            text = f"[{key} {page}]" if here else f" {key} {page} "
            segments.append(Segment(text, base + self._part("open" if here else "other")))
            self._spans.append((used, used + cell_len(text), page))
            used += cell_len(text)
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def on_click(self, event: events.Click) -> None:
        """Open the page that was clicked."""
        for start, end, page in self._spans:
            if start <= event.x < end:
                self.post_message(self.Chosen(page))
                return


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


class TablesScreen(OpensTraces, DetailScreen):
    """Tables, the row under their cursor in words, or words in place of both."""

    CSS_PATH: ClassVar[list[str | PurePath]] = [
        BASE_SCREEN,
        REPORTS,
    ]
    AUTO_FOCUS = "#table"

    def compose_panes(self) -> ComposeResult:
        """The tables, and the row under the cursor in words."""
        yield Static(id="about", markup=False)
        yield ReportLines(id="table")
        yield SpanView(id="detail", classes="detail")

    def on_mount(self) -> None:
        """Nothing is said over the tables yet."""
        self.show_about("")

    @property
    def main_list(self) -> ReportLines:
        """The tables."""
        return self.query_one(ReportLines)

    def show_about(self, words: str) -> None:
        """Say one line over the tables, or nothing."""
        about = self.query_one("#about", Static)
        about.display = bool(words)
        about.update(Content(words))


class ReportScreen(TablesScreen):
    """Counts a report and shows it; a subclass says what is counted, and what can be chosen."""

    pages: ClassVar[Mapping[str, str]]
    """What the pages are called, by the ids of their sections, in the order of their keys."""

    traces: ClassVar[type[TracesScreen]]
    """What lists the traces behind a figure."""

    def __init__(self) -> None:
        super().__init__()
        self.page = next(iter(self.pages))
        self._shown = Page()
        self._stood: dict[str, tuple[str, str]] = {}
        self._turns: dict[str, int] = {}
        self._away = False
        self._counted: frozenset[object] | None = None

    @abstractmethod
    def start(self, opened: OpenWorkspace) -> None:
        """Count all of it, or count it anew."""

    def count_page(self, opened: OpenWorkspace) -> None:
        """Count what the open page needs and is not there; nothing where pages come together."""

    @abstractmethod
    def count_again(self, opened: OpenWorkspace) -> None:
        """Count again what may have changed while one was on another screen."""

    @abstractmethod
    def title_parts(self) -> tuple[str, ...]:
        """What is open: whose figures, of what."""

    @abstractmethod
    def open_page(self) -> Page:
        """The open page."""

    @abstractmethod
    def whole_report(self) -> Callable[[OpenWorkspace, Stopped], Report] | None:
        """Take what is chosen now; in a worker that counts all pages of it, with intervals.

        None while there are no figures.
        """

    @abstractmethod
    def list_behind(self, behind: Behind) -> Callable[[OpenWorkspace], Listing | None]:
        """Take what is on the open page now; in a worker that lists the traces behind a figure.

        The worker gets None where the figure is being counted anew.
        """

    def opening(self, row: str) -> TraceLocation | None:
        """Where a row of the open page leads that is itself a trace; None for any other."""
        return None

    def compose_pages(self) -> ComposeResult:
        """The names of the pages."""
        yield PageBar({title: self._key(page) for page, title in self.pages.items()})

    @property
    def row(self) -> Row | None:
        """The row under the cursor, None where there are no figures."""
        return None if self._shown.section is None else self.main_list.row

    def on_mount(self) -> None:
        """Count as soon as the workspace is open."""
        self.show_words("Opening the workspace …")
        self.show_title()
        self.mast.workspace.when_ready(self.start)

    def on_screen_suspend(self) -> None:
        """Elsewhere, but for a question asked here, labels may change."""
        self._away = self._away or not isinstance(self.app.screen, ModalScreen)

    def on_screen_resume(self) -> None:
        """Count again what may have changed while one was elsewhere."""
        if self._away:
            self._away = False
            self.mast.workspace.when_ready(self.count_again)

    # What others say meanwhile

    def begins(self, opened: OpenWorkspace) -> None:
        """All of it is counted now: say so, and from here on what is new."""
        self.hints.prompt(COUNTING)
        self._counted = None
        self._look(opened)

    def written_elsewhere(self) -> None:
        """Look whether there is more to count; until it is asked for, figures stay as they are."""
        if self.mast.opened is not None:
            self._look(self.mast.opened)

    @work(thread=True, group="said", exclusive=True)
    def _look(self, opened: OpenWorkspace) -> None:
        workspace, ref = opened.workspace, opened.taxonomy.ref
        with suppress(MastError):  # a server that is away is told of elsewhere
            said: set[object] = {
                (one.annotator, one.trace_id, one.number, one.finished_at)
                for one in workspace.passes(taxonomy=ref)
                if one.finished
            }
            for trace_id, decisions in workspace.all_decisions(ref).items():
                said |= {(trace_id, one.item, one.decided_at) for one in decisions}
            self.call_later(self._show_new, frozenset(said))

    def _show_new(self, said: frozenset[object]) -> None:
        """Say how much was finished or decided since it was counted."""
        if self._counted is None:
            self._counted = said
        new = max(len(said - self._counted), len(self._counted - said))
        if new:
            key = self.mast.key_of(f"{self.where}.anew")
            self.hints.say(f"{new:,} new since, finished or decided · {key} counts anew")

    def action_anew(self) -> None:
        """Count all of it anew."""
        self.mast.workspace.when_ready(self.start)

    # Counting

    def count(
        self,
        group: str,
        counting: Callable[[Stopped], Iterator[Stage]],
        take: Callable[[Stage], None],
        failed: Callable[[str], Stage],
    ) -> None:
        """Count in a worker, in place of what is counted for this group now.

        Args:
            group: What is counted.
            counting: Counts in stages; it may raise ``LeftError`` once it is stopped.
            take: Keeps what a stage has found, and shows it.
            failed: What is found where nothing could be counted, from why not.
        """
        self.forget(group)
        turn = self._turns[group]

        def work() -> None:
            worker = get_current_worker()

            def found(stage: Stage) -> None:
                if not worker.is_cancelled:
                    self.call_later(self._take_in, group, turn, take, stage)

            try:
                for stage in counting(lambda: worker.is_cancelled):
                    found(stage)
            except LeftError:
                return
            except (MastError, OSError) as error:
                found(failed(str(error)))

        self.run_worker(work, group=group, thread=True)

    def forget(self, group: str) -> None:
        """Stop the group's counting that is under way, and pass over what it has posted."""
        self._turns[group] = self._turns.get(group, 0) + 1
        self.workers.cancel_group(self, group)

    def _take_in(self, group: str, turn: int, take: Callable[[Stage], None], stage: Stage) -> None:
        """Take in a stage, unless the group's counting has begun anew since."""
        if turn == self._turns[group]:
            take(stage)

    def offer_adjudication(self, hidden: Sequence[str]) -> None:
        """Ask whether to count traces as their adjudicator, and count them anew if so."""

        def answered(answer: str | None) -> None:
            if answer == "a":
                self.mast.workspace.when_ready(lambda opened: self._take_on(opened, hidden))

        self.app.push_screen(
            Ask(
                f"{counted(len(hidden), 'trace')} that you may not look into yet",
                "As their adjudicator you will see what others said, and can no longer label "
                "them, or label them again, without sight of it. This is recorded.",
                (("a", "see them as adjudicator"), ("n", "leave them out")),
                default="n",
            ),
            answered,
        )

    @piece_of_work
    async def _take_on(self, opened: OpenWorkspace, hidden: Sequence[str]) -> None:
        taken = await self.mast.workspace.carry_out(
            lambda: take_on(opened.workspace, opened.taxonomy, opened.annotator, hidden)
        )
        if taken is None:
            return
        self.start(opened)
        left = len(hidden) - len(taken)
        if left:
            self.notify(
                f"{counted(left, 'trace')} left out: you have begun to label; finish first",
                markup=False,
            )

    def report_to_write(self) -> ReportToWrite | None:
        """What is on screen, None while there are no figures."""
        make = self.whole_report()
        return None if make is None else ReportToWrite(self.where.value, make)

    # Showing

    def show_title(self) -> None:
        """What is open, and who works."""
        self.title_bar.show(self.title_parts(), self.who())

    def show(self) -> None:
        """The open page, or why there is nothing on it."""
        self.query_one(PageBar).show(self.pages[self.page])
        self.show_title()
        shown = self._shown = self.open_page()
        section = shown.section
        if section is None:
            self.show_words(shown.words)
            return
        self.remove_class("-empty")
        self.show_about(shown.about)
        self.main_list.show(
            section.parts, pending=shown.pending, place=self._stood.get(self._place)
        )
        self.main_list.focus()
        self.show_detail()

    @property
    def _place(self) -> str:
        """What the cursor's row is remembered by: the section, as a page may show several."""
        section = self._shown.section
        return self.page if section is None else section.id

    def show_detail(self) -> None:
        """Put the row under the cursor into words, with what its figures rest on."""
        line, shown = self.main_list.line, self._shown
        table, row, folds = line.table, line.row, line.folds
        notes = (*(shown.section.notes if shown.section else ()), *shown.notes)
        if table is not None and row is not None:
            title = row_title(table, row)
            words = row_words(
                table, row, chosen=self.main_list.chosen, pending=shown.pending, notes=notes
            )
        elif folds is not None:
            title = folds.title
            words = "\n".join(notes_words(folds, notes=notes)) if isinstance(folds, Table) else ""
        else:
            return
        self.detail.border_title = plain_title(title)
        self.detail.border_subtitle = plain_title(" · ".join(self._keys_here()))
        if self.detail.text != words:
            self.detail.show_text(words)

    def _key(self, name: str) -> str:
        """Return how the key of an action of this screen is shown, given the action's name."""
        return self.mast.key_of(f"{self.where}.{name}")

    def _keys_here(self) -> Sequence[str]:
        """Return what keys do on the row under the cursor, as much of it as fits."""
        lines = self.main_list
        keys: list[str] = []
        enter = self._key("open")
        if lines.line.folds is not None:
            keys.append(f"{enter}: fold, unfold")
        elif lines.behind is not None:
            keys.append(f"{enter}: the traces behind")
        elif lines.row is not None and self.opening(lines.row.id) is not None:
            keys.append(f"{enter}: open it")
        if lines.line.table is not None and len(choosable(lines.line.table)) > 1:
            keys.append(f"{self._key('left')} {self._key('right')} column")
        keys += [*self._shown.keys, f"{self._key('text_down')} {self._key('text_up')} scroll"]
        while len(" · ".join(keys)) > self.size.width - 2 * TITLE_FRAME:
            keys.pop()
        return keys

    def row_moved(self) -> None:
        """Remember the row, and put it into words."""
        place = self.main_list.place
        if place is not None:
            self._stood[self._place] = place
        self.show_detail()
        if not self._shown.pending:
            self.hints.clear()

    @on(PageBar.Chosen)
    def _page_chosen(self, event: PageBar.Chosen) -> None:
        event.stop()
        titles = list(self.pages.values())
        self.action_show_page(list(self.pages)[titles.index(event.page)])

    # Keys

    def action_show_page(self, page: str) -> None:
        """One of the pages."""
        self.page = page
        if not self._shown.pending:
            self.hints.clear()
        self.mast.workspace.when_ready(self.count_page)
        self.show()

    def action_page(self, step: int) -> None:
        """The next page, around the end."""
        pages = list(self.pages)
        self.action_show_page(pages[(pages.index(self.page) + step) % len(pages)])

    def action_across(self, delta: int) -> None:
        """Another cell of the row."""
        if not self.main_list.move_across(delta):
            self.hints.say("There is no other cell to choose in this row")

    def action_open(self) -> None:
        """The traces behind the row or cell under the cursor, or the trace that it is."""
        if self._shown.section is not None and self.main_list.unfold():
            self.show_detail()
            return
        row = self.row
        if row is None:
            self.hints.say("No trace stands here to be opened")
            return
        opening = self.opening(row.id)
        if opening is not None:
            self.open_at(opening)
            return
        behind = self.main_list.behind
        if behind is None:
            self.hints.say("No trace stands behind this: choose another row or cell")
            return
        self.app.push_screen(self.traces(one_line(behind.title), self.list_behind(behind)))


class TracesScreen(TablesScreen):
    """One row per trace; Enter opens it at its place, Escape comes back to the figure."""

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
        self.show_words("Finding the traces …")
        self._show_title()
        self.mast.workspace.when_ready(self._look)

    @work(thread=True, group="behind", exclusive=True)
    def _look(self, opened: OpenWorkspace) -> None:
        try:
            self.call_later(self._show_found, self._find(opened))
        except MastError as error:
            self.call_later(self._show_found, None, one_line(str(error)))

    def _show_found(self, listing: Listing | None, problem: str | None = None) -> None:
        """List the traces, or say why not, and do what was asked for while they were looked for."""
        self._listing, self._looking = listing, False
        if listing is None or not listing.table.rows:
            back = self.mast.key_of("everywhere.back")
            nothing = f"No trace stands behind this figure.\n\n{back} goes back to the figures."
            self.show_words(nothing if problem is None else problem)
        else:
            self._show_rows(listing)
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
        self.show_detail()

    def show_detail(self) -> None:
        """Put the trace under the cursor into words."""
        line, listing = self.main_list.line, self._listing
        table, row = line.table, line.row
        if table is None or row is None or listing is None:
            return
        self.detail.border_title = plain_title(listing.titles.get(row.id, row.id))
        key_of = self.mast.key_of
        keys = [f"{key_of(f'{self.where}.open')} opens it"]
        if listing.differing is not None:
            keys.append(f"{key_of('agreement_traces.differing')} only where they differ")
        self.detail.border_subtitle = plain_title(" · ".join(keys))
        self.detail.show_text(row_words(table, row))

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
        key = self.mast.key_of("agreement_traces.differing")
        words = f"Only where the sides differ · {key} lists all" if self._only_unlike else "All"
        self.hints.say(words)

    def action_open(self) -> None:
        """The trace under the cursor, at its place."""
        if self._looking:
            self._then.append(self.action_open)
        elif self.main_list.row is not None and not self.has_class("-empty"):
            self.mast.workspace.when_ready(self._open)

    def _open(self, opened: OpenWorkspace) -> None:
        row, listing = self.main_list.row, self._listing
        if row is None or listing is None:
            return
        try:
            opening = listing.open(opened, row.id)
        except MastError as error:
            self.say_error(error)
            return
        if isinstance(opening, TraceLocation):
            self.open_at(opening)
        else:
            self.mast.go(opening)


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


def hidden_traces_text(count: int, key: str) -> str:
    """Return that traces are hidden, and how to include them.

    The words do not say that the annotator has not finished them: a finished trace may be labelled
    once more later, and stays hidden until then.

    Args:
        count: The number of traces.
        key: The key that includes them.
    """
    them = "it" if count == 1 else "them"
    return f"{counted(count, 'trace')} hidden from you. {key} = include {them} as adjudicator"
