"""The page of a mode: its definition, its guidelines, and its decided cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Final

from textual.app import ComposeResult

from mast_tui.adjudication import (
    GuidelineBook,
    GuidelineCase,
    ModePage,
    decided_words,
    mode_page,
    targets_taken,
)
from mast_tui.errors import MastError
from mast_tui.gold import Guideline, Order
from mast_tui.gold.overlaps import in_reading_order
from mast_tui.safe_text import display_lines, one_line
from mast_tui.session.visibility import record_reveal
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.ui.actions.registry import Where
from mast_tui.ui.context import TraceLocation
from mast_tui.ui.dialogs.dialog import NoteScreen
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.services.trace_loader import TraceLoader
from mast_tui.ui.styles import BASE_SCREEN, GUIDELINES
from mast_tui.ui.table_screen import OpensTraces
from mast_tui.ui.text.layout import wrapped
from mast_tui.ui.widgets.bars import TitleBar
from mast_tui.ui.widgets.taxonomy_panel import definition_of
from mast_tui.ui.widgets.virtual_lines import StyledRow, StyledRows
from mast_tui.ui.wording import counted, places_text, plain_title
from mast_tui.writes import piece_of_work

MOST_RANGES: Final = 3
"""The most span ranges of a case that are named."""

DATE_CHARS: Final = 10
"""The length of the date in a time (ISO 8601)."""


@dataclass(frozen=True, slots=True)
class PageParagraph:
    """A paragraph of the page.

    Attributes:
        style: The style of the text, such as ``heading``.
        text: The text.
        below: The quiet lines below the text.
        entry: The guideline or case that the paragraph describes, or None.
    """

    style: str
    text: str
    below: tuple[str, ...] = ()
    entry: Guideline | GuidelineCase | None = None


def page_paragraphs(
    page: ModePage,
    taxonomy: Taxonomy,
    name_of: Callable[[str], str],
    order_of: Callable[[str], Order],
    *,
    how_to_write: str = "",
    quoted: bool = True,
) -> list[PageParagraph]:
    """Return the paragraphs of a page.

    Args:
        page: The mode with its guidelines and cases.
        taxonomy: The taxonomy.
        name_of: Returns the name of a trace by its id.
        order_of: Returns the order of the spans of a trace by its id.
        how_to_write: A sentence for a page without guidelines.
        quoted: True to show quotes, which may have no masks.
    """
    paragraphs = [
        PageParagraph("heading", "Definition"),
        PageParagraph("text", definition_of(page.mode, taxonomy)),
        PageParagraph("heading", "Guidelines"),
    ]
    paragraphs += [_guideline_paragraph(guideline, name_of) for guideline in page.guidelines]
    if not page.guidelines:
        paragraphs.append(PageParagraph("text", f"None yet. {how_to_write}".rstrip()))
    return [*paragraphs, *_case_paragraphs(page, name_of, order_of, quoted)]


def _case_paragraphs(
    page: ModePage,
    name_of: Callable[[str], str],
    order_of: Callable[[str], Order],
    quoted: bool,
) -> Iterator[PageParagraph]:
    """Yield the decided cases under their heading, and the number of hidden cases."""
    steps = [list(step_cases) for _, step_cases in groupby(page.cases, _step_key)]
    yield PageParagraph("heading", f"Decided cases: {len(steps)}" if steps else "Decided cases")
    for step_cases in steps:
        order = order_of(step_cases[0].trace_id)
        yield _decided_cases_paragraph(step_cases, name_of, order, quoted)
    if page.hidden:
        more = " more" if page.cases else ""
        noun = f"{more} case" if page.hidden == 1 else f"{more} cases"
        finish = "its trace" if page.hidden == 1 else "their traces"
        yield PageParagraph("text", f"{page.hidden}{noun}, shown after you finish {finish}.")
    elif not page.cases:
        yield PageParagraph("text", "None yet.")


def _guideline_paragraph(guideline: Guideline, name_of: Callable[[str], str]) -> PageParagraph:
    source = f"{one_line(guideline.written_by)} · {guideline.written_at[:DATE_CHARS]}"
    if guideline.trace_id is not None:
        source += f" · at {one_line(name_of(guideline.trace_id))}"
    return PageParagraph("guideline", guideline.text, (source,), guideline)


def _step_key(case: GuidelineCase) -> tuple[str, str, str, str]:
    """Return a key shared by all cases that were decided in one step.

    A step decides one verdict, or the span ranges of a trace.
    """
    decision = case.decision
    verdict_item = decision.item if decision.is_verdict else ""
    return (case.trace_id, decision.decided_by, decision.decided_at, verdict_item)


def _decided_cases_paragraph(
    cases: Sequence[GuidelineCase], name_of: Callable[[str], str], order: Order, quoted: bool
) -> PageParagraph:
    """Return a paragraph on cases that were decided together, with reasons, adjudicator and
    date.
    """
    first_case, *_ = cases
    decisions = [case.decision for case in cases]
    text = f"{one_line(name_of(first_case.trace_id))}: {decided_words(decisions)}"
    targets = in_reading_order(targets_taken(decisions), lambda target: target, order)
    if targets:
        text += f" at {places_text(targets, order, MOST_RANGES, quoted=quoted)}"
    reasons = dict.fromkeys(decision.reason for decision in decisions if decision.reason)
    first_decision = first_case.decision
    date = first_decision.decided_at[:DATE_CHARS]
    lines_below = [*reasons, f"{one_line(first_decision.decided_by)} · {date}"]
    return PageParagraph("case", text, tuple(lines_below), first_case)


INDENT: Final = 2
MOST_LINES: Final = 200
"""The most rows of a line of a paragraph."""

WIDEST_LINE: Final = 100
"""The cells of the widest lines, because longer lines are hard to read."""

_GLYPHS: Final = {"guideline": "• ", "case": "→ "}


_PageRow = StyledRow[PageParagraph]
"""A row of a paragraph. An empty row belongs to the paragraph below it."""


class PageLines(StyledRows[PageParagraph]):
    """Paragraphs wrapped to the width, with a cursor."""

    css_prefix = "page-lines"
    css_parts = ("cursor", "heading", "text", "guideline", "case", "below")
    edge_part = "case"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.paragraphs: Sequence[PageParagraph] = ()

    @property
    def entry(self) -> Guideline | GuidelineCase | None:
        """The guideline or case under the cursor."""
        return None if self.item is None else self.item.entry

    def show(self, paragraphs: Sequence[PageParagraph], *, keep_cursor: bool) -> None:
        """Show a page.

        Args:
            paragraphs: The paragraphs.
            keep_cursor: Whether the cursor keeps its row instead of moving to the top.
        """
        self.paragraphs = paragraphs
        if not keep_cursor:
            self.cursor = 0
            self.scroll_to(y=0, animate=False, force=True)
        self.rows_changed()
        self.show_row(self.cursor)

    def rows_changed(self) -> None:
        """Wrap the texts to the width."""
        width = min(WIDEST_LINE, self.lines_area.width)
        rows: list[_PageRow] = []
        for paragraph in self.paragraphs:
            if rows and paragraph.style == "heading":
                rows.append(StyledRow((), paragraph))  # a blank row
            rows += _rows_of(paragraph, width)
        self.rows = rows
        super().rows_changed()

    def next_entry(self) -> bool:
        """Move the cursor to the next guideline or case; return False if there is no other.

        The first row follows the last one.
        """
        current_paragraph = self.item
        for offset in range(1, len(self.rows) + 1):
            row = (self.cursor + offset) % len(self.rows)
            paragraph = self.rows[row].item
            if paragraph is None or paragraph is current_paragraph:
                continue
            if paragraph.entry is not None:
                self.move_to(row)
                return True
        return False


def _rows_of(paragraph: PageParagraph, width: int) -> list[_PageRow]:
    """Return the rows of a paragraph, wrapped to a width."""
    if paragraph.style == "heading":
        return [StyledRow([(paragraph.text, paragraph.style)], paragraph)]
    # One column stays free. On a screen that is too narrow, rows are cut.
    cells = max(8, width - 1 - INDENT)
    rows = []
    prefix = _GLYPHS.get(paragraph.style, "  ")
    for line in paragraph.text.split("\n"):
        for part in wrapped(line, cells, MOST_LINES) or [""]:
            rows.append(StyledRow([(prefix + part, paragraph.style)], paragraph))
            prefix = "  "
    for text in paragraph.below:
        for line in display_lines(text):
            rows += [
                StyledRow([(f"  {part}", "below")], paragraph)
                for part in wrapped(line, cells, MOST_LINES)
            ]
    return rows


WRITING_ACTIONS: Final = ("write", "edit", "take_back")
"""The actions that change a page."""


class GuidelinesScreen(OpensTraces):
    """The pages of the modes, one at a time."""

    CSS_PATH = [BASE_SCREEN, GUIDELINES]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]
    AUTO_FOCUS = "#page"
    where = Where.GUIDELINES

    def __init__(
        self,
        mode_slug: str,
        *,
        may_write: bool = False,
        occasion: tuple[str, str] | None = None,
        go_to_case: Callable[[GuidelineCase], bool] | None = None,
    ) -> None:
        """Make the screen.

        Args:
            mode_slug: The mode of the first page.
            may_write: Whether guidelines can be written.
            occasion: The trace id and the item of the decision that is the reason for a new
                guideline of this mode.
            go_to_case: Moves the screen below to a chosen case. If it returns False, the trace
                opens on the annotate screen.
        """
        super().__init__()
        self.mode_slug = mode_slug
        self.may_write = may_write
        self.hints.leave_out(() if may_write else WRITING_ACTIONS)
        self._occasion_ids = occasion
        self._occasion_mode = mode_slug
        self._go_to_case = go_to_case
        self._mode_page: ModePage | None = None
        self._loader: TraceLoader | None = None

    def compose_panes(self) -> ComposeResult:
        """Yield the page."""
        yield PageLines(id="page")

    @property
    def main_list(self) -> PageLines:
        """The rows of the page."""
        return self.query_one(PageLines)

    def on_mount(self) -> None:
        """Read the page as soon as the workspace is open."""
        self.show_message_only("Reading the guidelines …")
        self.show_title()
        self.mast.workspace.when_ready(self._read_page)

    def show_title(self) -> None:
        """Show the mode and its number, and the annotator."""
        taxonomy = self.mast.taxonomy
        mode = taxonomy.mode(self.mode_slug)
        number = taxonomy.modes.index(mode) + 1
        position = f"{number} of {len(taxonomy.modes)}"
        self.title_bar.show(
            ("Guidelines", f"{mode.code} {mode.name}", position), self.right_title_parts()
        )
        self.main_list.border_title = plain_title(f"{mode.code} {mode.name}")

    def show_changes_of_others(self) -> None:
        """Show the number of unsent changes."""
        if self.query(TitleBar):
            self.show_title()

    def _read_page(self, opened: OpenWorkspace) -> None:
        """Read the page in a worker, and show it.

        Record that the decisions on the page were revealed.
        """
        mode = self.mode_slug
        open_traces = list(self.mast.catalog.traces.values())
        workspace = opened.workspace
        taxonomy = opened.taxonomy

        def read_page() -> tuple[ModePage, TraceLoader]:
            # Without a connection to the server, the local copy is read.
            with workspace.reading_local_copy():
                page = mode_page(workspace, taxonomy, mode, reader=opened.annotator)
                case_ids = [case.trace_id for case in page.cases]
                record_reveal(workspace, opened.annotator, taxonomy.ref, case_ids)
                return page, self._loader or TraceLoader(workspace, open_traces)

        self.work.run("page", read_page, self._update_page)

    def _update_page(self, page_and_loader: tuple[ModePage, TraceLoader]) -> None:
        """Show a page that was read, with the loader of its traces.

        Then read its traces, to show numbers of spans in place of keys.
        """
        page, self._loader = page_and_loader
        is_same_mode = self._mode_page is not None and self._mode_page.mode == page.mode
        self._mode_page = page
        self._show_page(keep_cursor=is_same_mode)
        places = [(case.trace_id, case.decision.targets) for case in page.cases]
        self.read_orders(self._loader, places, partial(self._show_page, keep_cursor=True))

    def _show_page(self, *, keep_cursor: bool) -> None:
        """Show the page with the numbers of spans that are known so far."""
        page = self._mode_page
        loader = self._loader
        if page is None or loader is None:
            return
        self.remove_class("-empty")
        key = self.mast.key_of("guidelines.write")
        how_to_write = f"{key} writes the first one." if self.may_write else ""
        paragraphs = page_paragraphs(
            page,
            self.mast.taxonomy,
            loader.name_of,
            loader.known_order,
            how_to_write=how_to_write,
            quoted=self.mast.catalog.masks is None,
        )
        self.main_list.show(paragraphs, keep_cursor=keep_cursor)
        self.main_list.border_subtitle = plain_title(_counts_text(page))
        self.main_list.focus()

    def action_entry(self) -> None:
        """Move to the next guideline or case."""
        if not self.main_list.next_entry():
            self.hints.say("This mode has no guidelines and no decided cases yet")

    def action_mode(self, step: int) -> None:
        """Show the page of the next or previous mode."""
        modes = [mode.slug for mode in self.mast.taxonomy.modes]
        self.mode_slug = modes[(modes.index(self.mode_slug) + step) % len(modes)]
        self.hints.clear()
        self.show_title()
        self.mast.workspace.when_ready(self._read_page)

    def action_open(self) -> None:
        """Go to the decided case under the cursor, or show how to find one."""
        case = self.main_list.entry
        if not isinstance(case, GuidelineCase):
            key_of = self.mast.key_of
            self.hints.say(
                f"{key_of('guidelines.open')} goes to a decided case: "
                f"{key_of('guidelines.entry')} finds one"
            )
            return
        if self._go_to_case is not None and self._go_to_case(case):
            self.app.pop_screen()
            return
        span_keys = (target.first for target in case.decision.targets if target.first is not None)
        self.open_at(TraceLocation(case.trace_id, key=next(span_keys, None)))

    def _say_read_only(self) -> None:
        key_of = self.mast.key_of
        self.hints.say(
            "You can only read guidelines here; write them in adjudication "
            f"({key_of('everywhere.adjudicate')}, then {key_of('adjudicate.guidelines')})"
        )

    def action_write(self) -> None:
        """Ask for a new guideline of the mode.

        It records the decision that was the reason to open this page, if there is one.
        """
        if not self.may_write:
            self._say_read_only()
            return
        mode_slug = self.mode_slug
        trace_id: str | None = None
        item: str | None = None
        if self._occasion_ids is not None and self._occasion_mode == mode_slug:
            trace_id, item = self._occasion_ids
        self._ask_for_text(
            "",
            lambda book, text: book.write(mode_slug, text, trace_id=trace_id, item=item),
            f"Saved · {self.mast.key_of('everywhere.undo')} undoes it",
        )

    def action_edit(self) -> None:
        """Edit the guideline under the cursor."""
        guideline = self._require_guideline()
        if guideline is not None:
            self._ask_for_text(
                guideline.text, lambda book, text: book.edit(guideline.id, text), "Changed"
            )

    def action_take_back(self) -> None:
        """Remove the guideline under the cursor."""
        guideline = self._require_guideline()
        if guideline is not None:
            message = f"Removed · {self.mast.key_of('everywhere.undo')} undoes it"
            self._change_page(lambda book: book.take_back(guideline.id), message)

    def action_undo(self) -> None:
        """Undo the user's last change on this page."""
        self._change_page(
            partial(GuidelineBook.undo, mode=self.mode_slug),
            f"Undone · {self.mast.key_of('everywhere.redo')} redoes it",
            "Nothing of yours to undo on this page",
        )

    def action_redo(self) -> None:
        """Repeat the last undone change on this page."""
        redo = partial(GuidelineBook.redo, mode=self.mode_slug)
        self._change_page(redo, "Redone", "Nothing to redo")

    def _require_guideline(self) -> Guideline | None:
        """Return the guideline under the cursor, or show a hint and return None."""
        if not self.may_write:
            self._say_read_only()
            return None
        entry = self.main_list.entry
        if isinstance(entry, Guideline):
            return entry
        key_of = self.mast.key_of
        self.hints.say(
            f"There is no guideline under the cursor: {key_of('guidelines.entry')} finds one, "
            f"{key_of('guidelines.write')} writes one"
        )
        return None

    def _ask_for_text(
        self,
        text: str,
        write_text: Callable[[GuidelineBook, str], Guideline | None],
        message: str,
    ) -> None:
        """Ask for the text of a guideline, and write it unless it is empty."""
        mode = self.mast.taxonomy.mode(self.mode_slug)

        def text_entered(new_text: str, ask_again: Callable[[], None]) -> None:
            """Write the text unless it is empty.

            Args:
                new_text: The typed text.
                ask_again: Asks again, with the same text, if it cannot be written.
            """
            if new_text.strip():
                self._change_page(
                    lambda book: write_text(book, new_text), message, failed=ask_again
                )

        title = f"Guideline for {mode.code} {mode.name}"
        self.mast.ask_to_write(partial(NoteScreen, title, text), text_entered)

    @piece_of_work
    async def _change_page(
        self,
        change: Callable[[GuidelineBook], object],
        message: str,
        message_if_none: str | None = None,
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        """Change the guidelines, show a message, and read the page again.

        If ``change`` returns None, nothing has changed, and ``message_if_none`` is shown. After an
        error ``failed`` is called.
        """
        opened = self.mast.opened
        if not self.may_write:
            self._say_read_only()
            return
        if opened is None:
            return
        try:
            book = GuidelineBook(opened.workspace, opened.taxonomy, opened.annotator)
            result = await self.writes.run(partial(change, book))
        except MastError as error:
            self.say_error(error)
            failed()
            return
        if result is None and message_if_none is not None:
            self.hints.say(message_if_none)
            return
        self.hints.say(message)
        self.show_title()  # it counts changes that wait for a server
        self.mast.workspace.when_ready(self._read_page)


def _counts_text(page: ModePage) -> str:
    """Return the number of guidelines and of decided cases, without zeros."""
    counts = {"guideline": len(page.guidelines), "decided case": len(page.cases)}
    return " · ".join(counted(count, noun) for noun, count in counts.items() if count)
